"""Running operations along an axis, in any number system: what lazy arrays have to know of one.

A scan reduces a chunk to its total, joins totals of chunks one after another, and writes a chunk's results
given the total of all before it.
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
        """Words of a result, with ``"flag"`` one more."""
        return self.system.rows + (self.mode == "flag")

    @abstractmethod
    def total(self, block: Array) -> Any:
        """Contribution of a chunk (n, *shape) with at least one number along the axis, in NumPy or Python."""

    @abstractmethod
    def join(self, first: Any, second: Any) -> Any:
        """The total of two chunks, the second after the first."""

    @abstractmethod
    def results(self, block: Array, before: Any | None, place: Place) -> Array:
        """The chunk's results, given the total of all before it along the axis, None if there is nothing.

        Words (rows, *shape); with ``"flag"`` one row more, 1 where the exact result is out of range.
        """
