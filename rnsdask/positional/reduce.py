"""Order, reductions and running results of chunks of positional numbers."""

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import gmpy2
import numpy as np
from numpy.typing import NDArray

from rnsdask.backend import Array, backend_name, is_any, kernels_of
from rnsdask.core import generic
from rnsdask.core.axes import reduced_shape
from rnsdask.core.layout import as_matrix
from rnsdask.core.moduli import LIMB_BITS
from rnsdask.core.order import Ordering
from rnsdask.core.place import Place
from rnsdask.core.reductions import REDUCTIONS, ReductionResult
from rnsdask.core.scan import Scan
from rnsdask.positional import arithmetic
from rnsdask.positional.bits import count
from rnsdask.positional.divide import remainder
from rnsdask.positional.multiply import multiply
from rnsdask.positional.operands import from_integers, limb_beyond, limbs_of, resized, to_integers
from rnsdask.positional.system import Positional
from rnsdask.rns.axis import rows_along
from rnsdask.rns.blocks import batches, matrices
from rnsdask.rns.convert import limbs_to_ints
from rnsdask.rns.reduce import common_divisor
from rnsdask.rns.scan import Fold, better


def compare(x: Array, y: Array, system: Positional) -> Array:
    """Order of the numbers of two blocks: int8 of -1, 0 or +1 as x < y, x == y or x > y."""
    (a, b), shape = matrices(x, y)
    prototype = b if backend_name(b) == "cuda" else a
    return kernels_of(prototype).positional_compare(a, b, system.signed).reshape(shape)


def sign(x: Array, system: Positional) -> Array:
    """Sign of each number of a block (k, *shape): int8 of -1, 0 or +1."""
    return compare(x, np.zeros((len(x), *(1,) * (x.ndim - 1)), np.uint32), system)


_SIGN = np.uint32(1 << 31)


def ordering(words: Array, system: Positional) -> Ordering:
    """Sort keys of words (k, *shape): the two highest limbs in use, then all limbs."""
    matrix = _used_rows(as_matrix(words), system)
    flip = _SIGN if system.signed else np.uint32(0)
    keys = (matrix[-1] ^ flip).astype(np.uint64)
    if len(matrix) > 1:
        keys = (keys << np.uint64(32)) | matrix[-2]
    return Ordering(keys, 0, matrix, partial(_digits, matrix, flip))


def _used_rows(matrix: Array, system: Positional) -> Array:
    """View of the fewest lowest limbs that hold the numbers, in two's complement or unsigned."""
    if not matrix.shape[1]:
        return matrix
    beyond = limb_beyond(matrix, system.signed)
    used = len(matrix)
    while used > 1 and not is_any(matrix[used - 1] != beyond):
        used -= 1
    if system.signed and used < len(matrix):
        used += 1  # for the sign
    return matrix[:used]


def _digits(matrix: Array, flip: np.uint32, indices: Array) -> Array:
    parts = [kernels_of(matrix).gather(matrix, part) for part in batches(indices, len(matrix))]
    digits = np.concatenate(parts, axis=1)
    digits[-1] ^= flip
    return digits


# MAX, MIN, SUM, moments and a bound of a chunk of positional numbers, and along its axes.
# Limbs are read from the highest down, and only of numbers that are still equal: for most chunks, a single
# row of limbs.

# Number of limbs whose sum stays below 2**63.
_SUM_BLOCK = 2**31


def reduce_words(words: Array, system: Positional, operation: str) -> ReductionResult:
    """Reduce all numbers of one array by one of :data:`.REDUCTIONS`; ValueError for an extremum of none."""
    matrix = as_matrix(words)
    if matrix.shape[1] == 0:
        return REDUCTIONS[operation].empty_result(backend_name(matrix))
    if operation == "gcd":
        return common_divisor(matrix, system, lambda x, divisor: _is_multiple(x, divisor, system.signed))
    index = None
    if operation == "sum":
        value = _sum(matrix, system)
    elif operation == "bound":
        longest = int(count(matrix, system, "length").max())
        value = min(2**longest - 1, max(map(abs, system.value_range)))
    elif operation in ("max", "min"):
        index = _place(matrix, system, operation == "min")
        value = system.decode_at(matrix, index)
    else:
        return generic.reduce(matrix, system, operation)
    return ReductionResult(value, index, matrix.shape[1], 0, backend_name(matrix))


def _is_multiple(matrix: Array, divisor: int, signed: bool) -> Array:
    limbs = from_integers([gmpy2.mpz(divisor)], divisor.bit_length() // LIMB_BITS + 1, matrix)
    return ~remainder(matrix, limbs, signed).any(axis=0)


def _comparable(limbs: Array, is_signed: bool) -> Array:
    """Limbs of one row, converted so that unsigned comparison orders them."""
    return limbs.view(np.int32) if is_signed else limbs


def _place(matrix: Array, system: Positional, minimum: bool) -> int:
    """Smallest index of the maximum or minimum."""
    indices = None  # all
    for i in range(system.rows - 1, -1, -1):
        limbs = _comparable(matrix[i], system.signed and i == system.rows - 1)
        limbs = limbs if indices is None else limbs[indices]
        (best,) = (limbs == (limbs.min() if minimum else limbs.max())).nonzero()
        if len(best) < len(limbs):
            indices = best if indices is None else indices[best]
            if len(indices) == 1:
                break
    return 0 if indices is None else int(indices[0])


def _sum(matrix: Array, system: Positional) -> int:
    total = 0
    for start in range(0, matrix.shape[1], _SUM_BLOCK):
        block = matrix[:, start : start + _SUM_BLOCK]
        if not isinstance(block, np.ndarray):  # CuPy compiles sums of another type for seconds at first use
            block = block.astype(np.uint64)
        for i, row in enumerate(block.sum(axis=1, dtype=np.uint64).tolist()):
            total += row << 32 * i
        if system.signed:
            total -= int((block[-1] >> np.uint32(31)).sum(dtype=np.uint64)) << 32 * system.rows
    return total


# ---- along axes -------------------------------------------------------------------------------------------


def extrema(words: Array, system: Positional, axes: tuple[int, ...], minimum: bool) -> tuple[Array, Array]:
    """Maximum or minimum along axes and its index, as :func:`.rns.axis.extrema` gives them."""
    shape, matrix = words.shape[1:], as_matrix(words)
    reduced = reduced_shape(shape, axes)
    if matrix.shape[1] == 0:
        return words.reshape(len(words), *reduced), np.zeros_like(matrix[0], np.int64).reshape(reduced)
    numbers = rows_along(np.arange(matrix.shape[1], dtype=np.int64, like=matrix).reshape(shape), axes)
    alive = np.ones_like(numbers, dtype=np.bool_)
    for i in range(system.rows - 1, -1, -1):
        limbs = rows_along(matrix[i].reshape(shape), axes)
        limbs = _comparable(limbs, system.signed and i == system.rows - 1).astype(np.int64)
        limbs = np.where(alive, -limbs if minimum else limbs, np.int64(-(2**33)))
        alive &= limbs == limbs.max(axis=1, keepdims=True)
        if int(alive.sum()) == len(alive):
            break
    places = alive.argmax(axis=1)
    best = np.take_along_axis(numbers, places[:, None], axis=1)[:, 0]
    chosen = kernels_of(matrix).gather(matrix, best)
    return chosen.reshape(len(words), *reduced), places.reshape(reduced)


def sums(words: Array, system: Positional, axes: tuple[int, ...]) -> NDArray[np.object_]:
    """Exact sums along axes, which may be empty, as in :func:`.rns.axis.sums`: Python ints (*reduced)."""
    return _sums(words, system.signed, axes)


def moments(words: Array, system: Positional, axes: tuple[int, ...]) -> NDArray[np.object_]:
    """Exact sums along axes of numbers and of their squares: Python ints (2, *reduced)."""
    squares = multiply(words, words, 2 * system.bits, system.signed)
    return np.stack([_sums(words, system.signed, axes), _sums(squares, False, axes)])


def _sums(words: Array, signed: bool, axes: tuple[int, ...]) -> NDArray[np.object_]:
    """Sums of numbers of any limbs (k, *shape)."""
    shape = words.shape[1:]
    reduced = reduced_shape(shape, axes)
    if words[0].size == 0:
        return np.zeros(reduced, dtype=object)
    if math.prod(int(words.shape[1 + axis]) for axis in axes) > _SUM_BLOCK // 2:
        longest = max(axes, key=lambda axis: int(words.shape[1 + axis]))
        first, second = np.array_split(words, 2, axis=1 + longest)
        total: NDArray[np.object_] = _sums(first, signed, axes)
        total += _sums(second, signed, axes)
        return total
    totals = [rows_along(row, axes).sum(axis=1, dtype=np.uint64) for row in words]
    negative = rows_along(words[-1] >> np.uint32(31), axes).sum(axis=1, dtype=np.int64)
    limbs = np.empty_like(words, shape=(len(totals[0]), len(words) + 2), order="C")
    carry = np.zeros_like(negative)
    for i, total in enumerate(totals):
        carry = carry + total.astype(np.int64)
        limbs[:, i] = (carry & np.int64(2**32 - 1)).astype(np.uint32)
        carry >>= np.int64(32)
    top = carry - negative if signed else carry
    limbs[:, -2] = (top & np.int64(2**32 - 1)).astype(np.uint32)
    limbs[:, -1] = ((top >> np.int64(32)) & np.int64(2**32 - 1)).astype(np.uint32)
    return limbs_to_ints(limbs, True).reshape(reduced)


# Running sums, extrema and products of positional numbers along an axis, as for residues.
# :mod:`rnsdask.rns.scan` describes how chunks continue.

# Number of limbs whose sum stays far below 2**63, and for which CuPy's cumsum is right.
BLOCK = 2**26


@dataclass(frozen=True)
class PositionalSums(Scan[Positional]):
    """Running sums along an axis, in enough limbs to hold them all; then checked against the range."""

    def total(self, block: Array) -> Any:
        """Sums along the axis, an object array of Python ints."""
        return sums(block, self.system, (self.axis,))

    def join(self, first: Any, second: Any) -> Any:
        """Add two totals."""
        return first + second

    def results(self, block: Array, before: Any | None, place: Place) -> Array:
        """Limbs of the running sums."""
        system, length = self.system, int(block.shape[1 + self.axis])
        totals = [] if before is None else list(map(gmpy2.mpz, before.ravel().tolist()))
        longest = max((abs(total).bit_length() for total in totals), default=0)
        rows = limbs_of(max(system.bits, longest) + length.bit_length() + 2)
        shape = (rows, *block.shape[1 : 1 + self.axis], 1, *block.shape[2 + self.axis :])
        start = np.zeros_like(block, shape=shape, order="C")
        if totals:
            start = from_integers(totals, rows, block).reshape(shape)
        found = _running_sums(block, self.axis + 1, start, system.signed)
        flat = found.reshape(rows, -1)
        words, outside = resized(flat, True, system.rows, system.top_bits, system.signed)
        if is_any(outside):
            index = int(outside.argmax())
            value = int(to_integers(flat[:, index : index + 1], True)[0])
            raise system.overflow_error(value, place.flat_index(index))
        return words.reshape(block.shape)


def _running_sums(words: Array, axis: int, start: Array, signed: bool) -> Array:
    """Running sums modulo 2**(32 rows) along an axis of words (k, *shape), from a start (rows, *reduced)."""
    out = np.empty_like(words, shape=(len(start), *words.shape[1:]), order="C")
    for first in range(0, words.shape[axis], BLOCK):
        block: Any = (slice(None),) * (axis - 1) + (slice(first, first + BLOCK),)
        carry: Any = np.int64(0)
        for i, added in enumerate(start):
            if i < len(words):
                row = words[i][block]
                row = row.view(np.int32) if signed and i == len(words) - 1 else row
                carry = np.cumsum(row, axis=axis - 1, dtype=np.int64) + carry
            carry = carry + added.astype(np.int64)
            out[i][block] = (carry & np.int64(2**32 - 1)).astype(np.uint32)
            carry >>= np.int64(32)
        last: Any = (slice(None),) * axis + (slice(first + BLOCK - 1, first + BLOCK),)
        start = out[last] if first + BLOCK < words.shape[axis] else start
    return out


@dataclass(frozen=True)
class PositionalExtrema(Fold[Positional]):
    """Running maxima or minima along an axis, by comparisons of pairs."""

    minimum: bool = False

    def join(self, first: Any, second: Any) -> Any:
        """Limbs of the extrema of both."""
        return better(first, second, compare(first, second, self.system), self.minimum)


@dataclass(frozen=True)
class PositionalProducts(Fold[Positional]):
    """Running products along an axis (:mod:`.positional.arithmetic`)."""

    def join(self, first: Any, second: Any) -> Any:
        """Factors of both."""
        return arithmetic.join(first, second, self.system)

    def begin(self, block: Array) -> Array:
        """Factors of single numbers."""
        return arithmetic.factors_of(block, self.system, self.mode)

    def finish(self, found: Array, place: Place) -> Array:
        """Limbs of products, and with ``"flag"`` a mask."""
        return arithmetic.finish(found, self.system, self.mode, place.flat_index)
