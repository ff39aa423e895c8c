"""Running operations along an axis, in any number system: the interface for lazy arrays.

A scan reduces a chunk to its total, joins totals of consecutive chunks, and writes a chunk's results, given
the total of all chunks before it.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from rnsdask.core.number_system import NumberSystem
from rnsdask.core.place import Place
from rnsdask.core.rows import Array

S = TypeVar("S", bound=NumberSystem)


@dataclass(frozen=True)
class Scan(ABC, Generic[S]):
    """A running operation along an axis, counted from 0, of the numbers of a system."""

    system: S
    axis: int
    mode: str = "raise"

    @property
    def rows(self) -> int:
        """Number of words of a result, one more with ``"flag"``."""
        return self.system.rows + (self.mode == "flag")

    @abstractmethod
    def total(self, block: Array) -> Any:
        """Return the total of a chunk (n, *shape) with at least one number along the axis."""

    @abstractmethod
    def join(self, first: Any, second: Any) -> Any:
        """Join the totals of two chunks, the second after the first."""

    @abstractmethod
    def results(self, block: Array, before: Any | None, place: Place) -> Array:
        """Return the chunk's results, given the total of the chunks before it, or None at the start.

        Words (rows, *shape); with ``"flag"`` an additional row, 1 where the exact result is out of range.
        """
