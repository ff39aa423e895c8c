"""Running sums, products and extrema of a chunk along an axis, and how chunks continue. No Dask in here.

A scan reduces a chunk to its total, joins totals of chunks one after another, and writes a chunk's results
given the total of all before it. Arrays of one axis have their own way for sums and extrema (:mod:`.scan`).
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from rnsdask.backend import Array, kernels_of, to_backend
from rnsdask.core.place import Place
from rnsdask.rns import axis_products, matmul, scan
from rnsdask.rns.associative import fold, running
from rnsdask.rns.axis import sums
from rnsdask.rns.compare import choose, compare
from rnsdask.rns.extend import base_extend
from rnsdask.rns.matmul import Product, enlarged
from rnsdask.rns.reduce import REDUCTIONS, reduce_chunk
from rnsdask.rns.system import RNS


@dataclass(frozen=True)
class Scan(ABC):
    """A running operation along an axis of the numbers of a system.

    Attributes
    ----------
    system : RNS
        The system.
    axis : int
        The axis, from 0.
    mode : str
        What happens on overflow.
    """

    system: RNS
    axis: int
    mode: str = "raise"

    @property
    def rows(self) -> int:
        """Words of a result, with ``"flag"`` one more."""
        return self.system.rows + (self.mode == "flag")

    @abstractmethod
    def total(self, block: Array) -> Any:
        """What a chunk (n, *shape) of at least one number along the axis contributes: in NumPy or Python."""

    @abstractmethod
    def join(self, first: Any, second: Any) -> Any:
        """The total of two chunks, the second after the first."""

    @abstractmethod
    def results(self, block: Array, before: Any | None, place: Place) -> Array:
        """The chunk's results, given the total of all before it along the axis, None if there is nothing.

        Residues (n, *shape); with ``"flag"`` one row more, 1 where the exact result is out of range.
        """


_REDUCTION_OF = {"cumsum": "sum", "cummax": "max", "cummin": "min"}


@dataclass(frozen=True)
class LineScan(Scan):
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
class AxisSums(Scan):
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
class AxisExtrema(Scan):
    """Running maxima or minima along an axis, by exact comparisons of pairs."""

    minimum: bool = False

    def _better(self, a: Array, b: Array) -> Array:
        order = compare(a, b, self.system)[None]
        return choose(order <= 0 if self.minimum else order >= 0, a, b)

    def total(self, block: Array) -> Any:
        """Residues of the extrema along the axis."""
        found = fold(np.moveaxis(block, self.axis + 1, -1), self._better)
        return to_backend(np.moveaxis(found, -1, self.axis + 1), "cpu")

    def join(self, first: Any, second: Any) -> Any:
        """Residues of the extrema of both."""
        return self._better(first, second)

    def results(self, block: Array, before: Any | None, place: Place) -> Array:  # noqa: ARG002
        """Residues of the running extrema."""
        axis = self.axis + 1
        found = np.moveaxis(running(np.moveaxis(block, axis, -1), self._better), -1, axis)
        return found if before is None else self._better(found, _spread(before, found))


@dataclass(frozen=True)
class AxisProducts(Scan):
    """Running products along an axis (:mod:`.rns.axis_products`)."""

    def total(self, block: Array) -> Any:
        """Factors of the products along the axis."""
        factors = self.factors(block)
        return to_backend(axis_products.factors_along(factors, self.system.moduli, (self.axis,)), "cpu")

    def join(self, first: Any, second: Any) -> Any:
        """Factors of both."""
        return axis_products.multiply(first, second, self.system.moduli)

    def results(self, block: Array, before: Any | None, place: Place) -> Array:
        """Residues of the running products, and with ``"flag"`` a mask."""
        factors = self.factors(block)
        found = axis_products.running_factors(factors, self.system.moduli, self.axis)
        if before is not None:
            found = self.join(found, _spread(before, found))
        return self.finish(found, place)

    def factors(self, block: Array) -> Array:
        """Factors of single numbers."""
        return axis_products.factors_of(block, self.system, self.mode)

    def finish(self, factors: Array, place: Place) -> Array:
        """Residues of products, and with ``"flag"`` a mask."""
        return axis_products.finish(factors, self.system, self.mode, place.flat_index)


def _spread(total: Any, like: Array) -> Array:
    """A total, words (rows, *reduced), for each number of the chunk."""
    return np.broadcast_to(np.asarray(total, like=like), like.shape)
