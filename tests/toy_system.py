"""Number systems of the tests' own: integers of 64 bits as two words, and signed ones as one word."""

import operator
from dataclasses import dataclass
from typing import Any

import numpy as np

from rnsdask.arrays.integer_array import IntegerArray
from rnsdask.core.number_system import NumberSystem

COUNT = 2**64


@dataclass(frozen=True, repr=False)
class Pair(NumberSystem):
    """Integers from 0 to 2**64 - 1 as two words, the higher one first.

    All that arrays of it can do follows from this value, also how they are stored.
    """

    stored_as = "pairs"
    rows = 2
    value_range = (0, COUNT - 1)

    def encode(self, values: Any) -> np.ndarray:
        numbers = np.array(values, dtype=object)
        flat = [operator.index(v) for v in numbers.ravel().tolist()]
        if not all(0 <= v < COUNT for v in flat):
            raise ValueError("a value is out of range")
        words = np.array([[v >> 32 for v in flat], [v & 0xFFFFFFFF for v in flat]], dtype=np.uint32)
        return words.reshape(2, *numbers.shape)

    def decode(self, words: Any) -> np.ndarray:
        found = np.empty(words.shape[1:], dtype=object)
        found[...] = (words[0].astype(object) << 32) + words[1].astype(object)
        return found

    def __dask_tokenize__(self) -> Any:
        return "toy_system.Pair"

    def __str__(self) -> str:
        return "pairs of words"


class PairArray(IntegerArray):
    """Numbers as pairs of words."""

    __slots__ = ()

    system_type = Pair


@dataclass(frozen=True, repr=False)
class Excess(NumberSystem):
    """Integers from a lowest one on as one word of 64 bits each, which counts from it.

    Without a name of its own, it is stored as ``toy_system.Excess``.
    """

    lowest: int = -COUNT // 2

    rows = 1
    word_dtype = np.dtype(np.uint64)

    @property
    def value_range(self) -> tuple[int, int]:
        return self.lowest, self.lowest + COUNT - 1

    def encode(self, values: Any) -> np.ndarray:
        numbers = np.array(values, dtype=object)
        flat = [operator.index(v) - self.lowest for v in numbers.ravel().tolist()]
        if not all(0 <= v < COUNT for v in flat):
            raise ValueError("a value is out of range")
        return np.array(flat, dtype=np.uint64).reshape(1, *numbers.shape)

    def decode(self, words: Any) -> np.ndarray:
        found = np.empty(words.shape[1:], dtype=object)
        found[...] = words[0].astype(object) + self.lowest
        return found

    def __dask_tokenize__(self) -> Any:
        return "toy_system.Excess", self.lowest

    def __str__(self) -> str:
        return f"words that count from {self.lowest}"


class ExcessArray(IntegerArray):
    """Signed numbers as one word each."""

    __slots__ = ()

    system_type = Excess
