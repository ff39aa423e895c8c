"""Running sums, products and extrema of a chunk along an axis, continued over chunks.

A scan reduces each chunk to its total, joins the totals in order, and writes a chunk's results given the
total of all chunks before it. One-dimensional arrays have their own algorithm for sums and extrema: one pass
for the numbers' keys, if needed, and one that writes the result.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate, count
from typing import Any, TypeVar

import numpy as np

from rnsdask.backend import Array, kernels_of, to_backend
from rnsdask.constants import KeyConstants, key_constants
from rnsdask.core.layout import as_matrix
from rnsdask.core.number_system import NumberSystem
from rnsdask.core.place import Place
from rnsdask.core.scan import Scan
from rnsdask.rns import matmul, products
from rnsdask.rns.axis import fold_along, running_along, sums
from rnsdask.rns.blocks import batches, column_of
from rnsdask.rns.compare import choose, compare
from rnsdask.rns.extend import base_extend
from rnsdask.rns.keys import certain_below, complemented, keyed, number_keys
from rnsdask.rns.matmul import Product, enlarged
from rnsdask.rns.reduce import reduce_chunk
from rnsdask.rns.system import RNS

# Fraction bits of running sums of keys, so that a sum of twice the range fits 64 bits.
_SUM_BITS = 61

# Bound of their error.
_SUM_ERROR = 2**60

# Keys that are added up at a time: CuPy's cumsum is wrong beyond 2**31.
KEY_BLOCK = 2**26

# Numbers whose running sums are checked as Python ints at a time.
EXACT_BLOCK = 2**12


def _sum_of(residues: Array, system: RNS) -> int:
    return reduce_chunk(residues, system, "sum").value


# ---- running sums -----------------------------------------------------------------------------------------


def running_sums(residues: Array, system: RNS, before: int = 0, start: int = 0) -> Array:
    """Sum of `before` and all numbers (n, N) up to each one.

    The system's bound may prove that nothing overflows. A sum out of range is an RNSOverflowError that names
    the index of the first, counted from `start`.
    """
    residues = as_matrix(residues)
    lowest, highest = system.value_range
    if not lowest <= before <= highest:
        raise system.overflow_error(before, start - 1)
    if not _sums_fit(residues, system, before):
        overflow = _first_overflow(residues, system.with_bound(None), before)
        if overflow is not None:
            index, value = overflow
            raise system.overflow_error(value, start + index)
    starts = np.asarray(column_of(before, system.moduli), like=residues)
    lines, kernels = residues.reshape(len(residues), 1, -1, 1), kernels_of(residues)
    return kernels.running_sums(lines, starts.reshape(-1, 1, 1), system.moduli).reshape(residues.shape)


def _sums_fit(residues: Array, system: RNS, before: int) -> bool:
    """Whether bounds and the total prove that all running sums are in range."""
    lowest, highest = system.value_range
    if system.bound is not None:
        reach = residues.shape[1] * system.bound
        if before + reach <= highest and (not system.signed or lowest <= before - reach):
            return True
    # Running sums of nonnegative numbers never decrease.
    return not system.signed and before + _sum_of(residues, system) <= highest


def _first_overflow(residues: Array, system: RNS, before: int) -> tuple[int, int] | None:
    """Index and value of the first running sum that is out of range."""
    constants = key_constants(system.moduli, system.signed)
    size = min(KEY_BLOCK, _SUM_ERROR // _step_error(constants))
    for first in range(0, residues.shape[1], size):
        block = residues[:, first : first + size]
        overflow = _first_overflow_of_block(block, system, constants, before)
        if overflow is not None:
            return first + overflow[0], overflow[1]
        before += _sum_of(block, system)
    return None


def _first_overflow_of_block(
    residues: Array, system: RNS, constants: KeyConstants, before: int
) -> tuple[int, int] | None:
    lowest, highest = system.value_range
    (suspects,) = _may_overflow(residues, constants, system.signed, before).nonzero()
    done = 0
    while len(suspects):
        # No sum before this one overflows, so all of these are exact.
        first = int(suspects[0])
        before += _sum_of(residues[:, done:first], system)
        done = min(first + EXACT_BLOCK, residues.shape[1])
        values = system.decode(residues[:, first:done]).tolist()
        values[0] += before
        for index, before in zip(count(first), accumulate(values), strict=False):
            if not lowest <= before <= highest:
                return index, before
        suspects = suspects[suspects >= done]
    return None


def _step_error(constants: KeyConstants) -> int:
    """Upper bound of the error, in either direction, that a number's key adds to a running sum of keys."""
    # A key is rounded down to _SUM_BITS, and so is the offset; it is less than 1 too small by itself.
    return (constants.slack >> 64 - _SUM_BITS) + 3


def _may_overflow(residues: Array, constants: KeyConstants, signed: bool, before: int) -> Array:
    """Mask (N,) of running sums that may be out of range; valid up to the first one that is.

    Sums of keys estimate 2**61 S/M. Up to the first one out of range they are below 2**62 in magnitude; later
    ones do not matter, and may wrap.
    """
    product = constants.moduli.product
    lowest, highest = (value << _SUM_BITS for value in constants.moduli.value_range(signed))
    keys = number_keys(residues, constants)
    steps = (keys >> np.uint64(64 - _SUM_BITS)).astype(np.int64)
    steps -= np.int64((constants.offset << _SUM_BITS) // product)
    steps[0] += np.int64((before << _SUM_BITS) // product)
    sums = np.cumsum(steps)
    # One unit for each of the three values rounded down: `before` and the ends of the range.
    error = np.arange(1, len(sums) + 1, dtype=np.int64, like=sums) * _step_error(constants) + 3
    return (sums > highest // product - error) | (sums < lowest // product + error)


# ---- running maxima and minima ----------------------------------------------------------------------------


def running_extrema(residues: Array, system: RNS, minimum: bool, before: int | None = None) -> Array:
    """Maximum (minimum) of `before` and all numbers up to each one; arguments as in :func:`running_sums`.

    A number is a record if it is greater than `before` and all earlier numbers. Keys nearly always decide
    whether it is; if not, Python ints do.
    """
    residues = as_matrix(residues)
    if residues.shape[1] == 0:
        return residues
    # For the key of this one number, a GPU would launch as many kernels as for all others.
    head = to_backend(residues[:, :1], "cpu") if before is None else column_of(before, system.moduli)
    latest = _last_records(_records(residues, head, system, minimum))
    result: Array = kernels_of(residues).gather(residues, np.maximum(latest, 0))
    if first := int(np.count_nonzero(latest < 0)):
        result[:, :first] = np.asarray(head, like=result)
    return result


def _records(residues: Array, head: Array, system: RNS, minimum: bool) -> Array:
    """Mask (N,) of the numbers that are greater (less) than the head and all earlier numbers."""
    numbers = keyed(residues, system, head)
    residues, constants = numbers.residues, numbers.constants
    head = head[: len(residues)]
    first = np.asarray(number_keys(head, constants), like=numbers.keys)
    keys = complemented(np.concatenate([first, numbers.keys]), minimum)
    ahead, keys = kernels_of(keys).running_maximum(keys)[:-1], keys[1:]
    records = (keys > ahead) & (keys - ahead > np.uint64(constants.slack))
    (undecided,) = (~records & (keys >= certain_below(ahead, constants))).nonzero()
    if len(undecided):
        rivals = _last_records(records)[undecided]
        for found in _exact_records(residues, head, constants, minimum, undecided, rivals):
            records[found] = True
    return records


def _exact_records(
    residues: Array,
    head: Array,
    constants: KeyConstants,
    minimum: bool,
    undecided: Array,
    rivals: Array,
) -> Iterator[Array]:
    """Decide which undecided numbers are records, in batches.

    The greatest earlier number is the rival, which is the last certain record (-1: the head), or an undecided
    number after the rival: all other earlier numbers are proved to be less than one of these.
    """
    sign, system = -1 if minimum else 1, RNS(constants.moduli, constants.signed)
    last, best = -1, sign * system.decode_at(head, 0)
    for indices, opponents in zip(
        batches(undecided, len(residues)), batches(rivals, len(residues)), strict=True
    ):
        distinct = np.unique(opponents[opponents > last])
        values, rival_values = (
            system.decode(kernels_of(residues).gather(residues, chosen)) for chosen in (indices, distinct)
        )
        best_of = dict(zip(distinct.tolist(), rival_values, strict=True))
        is_record = np.zeros(len(indices), dtype=np.bool_)
        for position, (value, rival) in enumerate(zip(values, opponents.tolist(), strict=True)):
            if rival > last:
                last, best = rival, sign * best_of[rival]
            if sign * value > best:
                best, is_record[position] = sign * value, True
        yield indices[np.asarray(is_record, like=indices)]


def _last_records(records: Array) -> Array:
    """Index of the last record up to each place, int64; -1 before the first record."""
    places = np.arange(1, len(records) + 1, dtype=np.uint64, like=records) * records
    found: Array = kernels_of(places).running_maximum(places).view(np.int64) - 1
    return found


S = TypeVar("S", bound=NumberSystem)
_REDUCTION_OF = {"cumsum": "sum", "cummax": "max", "cummin": "min"}


@dataclass(frozen=True)
class LineScan(Scan[RNS]):
    """Running sums or extrema of a one-dimensional array; totals are Python ints."""

    operation: str = "cumsum"

    def total(self, block: Array) -> int:
        """Sum or extremum of a chunk."""
        return reduce_chunk(block, self.system, _REDUCTION_OF[self.operation]).value

    def join(self, first: int, second: int) -> int:
        """Sum or extremum of two totals."""
        if self.operation == "cumsum":
            return first + second
        return max(first, second) if self.operation == "cummax" else min(first, second)

    def results(self, block: Array, before: int | None, place: Place) -> Array:
        """Residues of the running results."""
        if self.operation == "cumsum":
            start = place.location[0][0] if place.location else 0
            return running_sums(block, self.system, before or 0, start)
        return running_extrema(block, self.system, self.operation == "cummin", before)


@dataclass(frozen=True)
class AxisSums(Scan[RNS]):
    """Running sums along an axis, under moduli that hold them all; then checked against the range."""

    def total(self, block: Array) -> Any:
        """Sums along the axis, an object array of Python ints."""
        return sums(block, self.system, (self.axis,))

    def join(self, first: Any, second: Any) -> Any:
        """Add two totals."""
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
    """Running sums of residues (n, *shape) along an axis, modulo each m, from a carry (n, *reduced) on."""
    n, shape = len(residues), residues.shape[1:]
    outer, inner = math.prod(shape[:axis]), math.prod(shape[axis + 1 :])
    lines = residues.reshape(n, outer, shape[axis], inner)
    starts = np.zeros_like(lines, shape=(n, outer, 1, inner), order="C") if carry is None else carry
    sums = kernels_of(lines).running_sums(lines, starts.reshape(n, outer, inner), system.moduli)
    return sums.reshape(residues.shape)


def scan_sums(system: RNS, axis: int, line: bool) -> Scan[RNS]:
    """Scan of running sums along an axis, or, with `line`, of one-dimensional chunks."""
    return LineScan(system, axis, operation="cumsum") if line else AxisSums(system, axis)


def scan_extrema(system: RNS, axis: int, line: bool, minimum: bool) -> Scan[RNS]:
    """Scan of running maxima or minima, as :func:`scan_sums`."""
    if line:
        return LineScan(system, axis, operation="cummin" if minimum else "cummax")
    return AxisExtrema(system, axis, minimum=minimum)


@dataclass(frozen=True)
class Fold(Scan[S]):
    """Running results of an associative operation, :meth:`join`, of words that represent single numbers."""

    def total(self, block: Array) -> Any:
        """Words of the result along the axis, in NumPy."""
        return to_backend(fold_along(self.begin(block), (self.axis,), self.join), "cpu")

    def results(self, block: Array, before: Any | None, place: Place) -> Array:
        """Words of the running results."""
        found = running_along(self.begin(block), self.axis, self.join)
        if before is not None:
            # A total, words (rows, *reduced), is joined to each number of the chunk.
            found = self.join(found, np.broadcast_to(np.asarray(before, like=found), found.shape))
        return self.finish(found, place)

    def begin(self, block: Array) -> Array:
        """Words that represent the numbers of a chunk: here the numbers themselves."""
        return block

    def finish(self, found: Array, place: Place) -> Array:  # noqa: ARG002
        """Convert results to words of numbers, and with ``"flag"`` a mask."""
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
    """Running products along an axis (:mod:`.rns.products`)."""

    def join(self, first: Any, second: Any) -> Any:
        """Factors of both."""
        return products.multiply(first, second, self.system.moduli)

    def begin(self, block: Array) -> Array:
        """Factors of single numbers."""
        return products.factors_of(block, self.system, self.mode)

    def finish(self, found: Array, place: Place) -> Array:
        """Residues of products, and with ``"flag"`` a mask."""
        return products.finish(found, self.system, self.mode, place.flat_index)


def better(x: Array, y: Array, order: Array, minimum: bool) -> Array:
    """Select the words of the greater or the lesser of two numbers, by their order."""
    return choose(order[None] <= 0 if minimum else order[None] >= 0, x, y)
