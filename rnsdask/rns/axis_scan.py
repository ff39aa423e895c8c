"""Running sums, products and extrema of a chunk along an axis, and how chunks continue. No Dask in here.

A scan reduces a chunk to its total, joins totals of chunks one after another, and writes a chunk's results
given the total of all before it. Arrays of one axis have their own way for sums and extrema (:mod:`.scan`).
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np

from rnsdask.backend import Array, kernels_of, to_backend
from rnsdask.core.number_system import NumberSystem
from rnsdask.core.place import Place
from rnsdask.rns import axis_products, matmul, scan
from rnsdask.rns.axis import fold_along, running_along, sums
from rnsdask.rns.compare import choose, compare
from rnsdask.rns.extend import base_extend
from rnsdask.rns.matmul import Product, enlarged
from rnsdask.rns.reduce import REDUCTIONS, reduce_chunk
from rnsdask.rns.system import RNS

S = TypeVar("S", bound=NumberSystem)


@dataclass(frozen=True)
class Scan(ABC, Generic[S]):
    """A running operation along an axis of the numbers of a system.

    Attributes
    ----------
    system : NumberSystem
        The system.
    axis : int
        The axis, from 0.
    mode : str
        What happens on overflow.
    """

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


_REDUCTION_OF = {"cumsum": "sum", "cummax": "max", "cummin": "min"}


@dataclass(frozen=True)
class LineScan(Scan[RNS]):
    """Running sums or extrema of an array of one axis, whose totals are Python ints."""

    operation: str = "cumsum"

    def total(self, block: Array) -> int:
        """The sum, or the extremum."""
        return reduce_chunk(REDUCTIONS[_REDUCTION_OF[self.operation]], block, self.system).value

    def join(self, first: int, second: int) -> int:
        """The sum, or the extremum, of both."""
        if self.operation == "cumsum":
            return first + second
        return max(first, second) if self.operation == "cummax" else min(first, second)

    def results(self, block: Array, before: int | None, place: Place) -> Array:
        """Residues by :mod:`.scan`."""
        if self.operation == "cumsum":
            start = place.location[0][0] if place.location else 0
            return scan.running_sums(block, self.system, before or 0, start)
        return scan.running_extrema(block, self.system, self.operation == "cummin", before)


@dataclass(frozen=True)
class AxisSums(Scan[RNS]):
    """Running sums along an axis, under as many moduli as hold them all; a check shows which are in range."""

    def total(self, block: Array) -> Any:
        """Sums along the axis, an object array of Python ints."""
        return sums(block, self.system, (self.axis,))

    def join(self, first: Any, second: Any) -> Any:
        """Sums of both."""
        return first + second

    def results(self, block: Array, before: Any | None, place: Place) -> Array:
        """Residues of the running sums."""
        system = self.system
        reach = int(block.shape[1 + self.axis]) * system.known_magnitude
        if before is not None:
            reach += max(map(abs, before.ravel().tolist()), default=0)
        larger = enlarged(system, reach)
        if larger.rows > system.rows:
            block = base_extend(block, system, larger.moduli)
        carry = None if before is None else np.asarray(larger.encode(before), like=block)
        found = Product(_sums_modulo(block, carry, larger, self.axis), reach)
        return matmul.finish(found, system, self.mode, place.flat_index)


def _sums_modulo(residues: Array, carry: Array | None, system: RNS, axis: int) -> Array:
    """Running sums of residues (n, *shape) along an axis, modulo each m, after those of (n, *reduced)."""
    n, shape = len(residues), residues.shape[1:]
    outer, inner = math.prod(shape[:axis]), math.prod(shape[axis + 1 :])
    lines = residues.reshape(n, outer, shape[axis], inner)
    starts = np.zeros_like(lines, shape=(n, outer, 1, inner), order="C") if carry is None else carry
    sums = kernels_of(lines).running_sums(lines, starts.reshape(n, outer, inner), system.moduli)
    return sums.reshape(residues.shape)


@dataclass(frozen=True)
class Fold(Scan[S]):
    """Running results of an associative operation, :meth:`join`, of words that stand for single numbers."""

    def total(self, block: Array) -> Any:
        """Words of the result along the axis, in NumPy."""
        return to_backend(fold_along(self.begin(block), (self.axis,), self.join), "cpu")

    def results(self, block: Array, before: Any | None, place: Place) -> Array:
        """Words of the running results."""
        found = running_along(self.begin(block), self.axis, self.join)
        if before is not None:
            # A total, words (rows, *reduced), goes to each number of the chunk.
            found = self.join(found, np.broadcast_to(np.asarray(before, like=found), found.shape))
        return self.finish(found, place)

    def begin(self, block: Array) -> Array:
        """Values that stand for the numbers of a chunk: here the numbers themselves."""
        return block

    def finish(self, found: Array, place: Place) -> Array:  # noqa: ARG002
        """Words of the numbers that results stand for, and with ``"flag"`` a mask."""
        return found


@dataclass(frozen=True)
class AxisExtrema(Fold[RNS]):
    """Running maxima or minima along an axis, by exact comparisons of pairs."""

    minimum: bool = False

    def join(self, first: Any, second: Any) -> Any:
        """Residues of the extrema of both."""
        return better(first, second, compare(first, second, self.system), self.minimum)


@dataclass(frozen=True)
class AxisProducts(Fold[RNS]):
    """Running products along an axis (:mod:`.rns.axis_products`)."""

    def join(self, first: Any, second: Any) -> Any:
        """Factors of both."""
        return axis_products.multiply(first, second, self.system.moduli)

    def begin(self, block: Array) -> Array:
        """Factors of single numbers."""
        return axis_products.factors_of(block, self.system, self.mode)

    def finish(self, found: Array, place: Place) -> Array:
        """Residues of products, and with ``"flag"`` a mask."""
        return axis_products.finish(found, self.system, self.mode, place.flat_index)


def better(x: Array, y: Array, order: Array, minimum: bool) -> Array:
    """Words of the greater or the lesser of two numbers, by their order."""
    return choose(order[None] <= 0 if minimum else order[None] >= 0, x, y)
