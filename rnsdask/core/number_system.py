"""Number systems: what the words of a number mean."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray


class NumberSystem(ABC):
    """How integers are written as rows of machine words: a frozen value, hashable and picklable.

    An array of numbers is an array of words, ``(rows, *shape)``, and its system. Operations ask the system;
    two operands go together when their systems have :meth:`same_numbers`.
    """

    word_dtype: ClassVar[np.dtype[Any]] = np.dtype(np.uint32)
    """Type of a word."""

    @property
    @abstractmethod
    def rows(self) -> int:
        """Words of a number."""

    @property
    @abstractmethod
    def value_range(self) -> tuple[int, int]:
        """The lowest and the highest number that the words can hold."""

    @abstractmethod
    def encode(self, values: Any) -> NDArray[Any]:
        """Write integers as words, ``(rows, *shape)``.

        Raises
        ------
        TypeError, ValueError
            If a value is no integer, or out of range; the message names its position.
        """

    @abstractmethod
    def decode(self, words: Any) -> NDArray[np.object_]:
        """Read words of NumPy or CuPy as Python ints, an object array of shape ``shape``."""

    @abstractmethod
    def check_words(self, words: Any) -> None:
        """Check type and shape of a NumPy, CuPy or Dask array of words, not what is in it.

        Raises
        ------
        TypeError, ValueError
            If it cannot hold numbers of this system.
        """

    @abstractmethod
    def same_numbers(self, other: "NumberSystem") -> bool:
        """Whether words of the other system mean the same numbers: what is known of their size may differ."""

    @abstractmethod
    def __dask_tokenize__(self) -> Any:
        """What tells this system from others, for Dask; numbers of any length in text that stays short."""
