"""Number-theoretic transforms of chunks of field elements along an axis. No Dask in here.

A transform of length N = K C is one of a matrix of K rows and C columns (D. Bailey, "FFTs in external or
hierarchical memory", 1990): of ``x_i`` with i = r C + k, the columns' transforms over r, times ``w**(k j)``
at value j of column k, then the rows' over k, whose value m in row j is ``X_(j + K m)``.

A chunk (n, *batch, 1, C) holds K parts of W = C / K elements, each for a different chunk of the next step. A
step takes the parts from all chunks of the previous step as (n, *batch, W, K).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from rnsdask.backend import Array, Moduli, kernels_of
from rnsdask.constants import transform_constants, twiddle_factors, twist_factors, twists
from rnsdask.core import rows
from rnsdask.core.conventions import Convention
from rnsdask.core.wide_moduli import WideModuli
from rnsdask.fields.system import FiniteFields, fields_of
from rnsdask.rns import arithmetic
from rnsdask.rns.system import RNS

# Words that are multiplied at a time: on a CPU they stay in its cache with their factors, on a GPU they take
# longer than their launch.
_CPU_WORDS, _GPU_WORDS = 2**18, 2**24


class Factors(Protocol):
    """Factors of the elements at (i, r) of a matrix of R columns: ``a**i * b**r * c**(i r)``."""

    @property
    def table(self) -> NDArray[Any]:
        """The words of ``a**i * c**(i r)`` for i from 0 to S - 1: (n, S, R)."""

    def at_row(self, i: int, /) -> NDArray[Any]:
        """Factors (n, R) of row i; times row k of `table` they are the factors of row i + k."""


def multiplied(
    words: Array, factors: Factors, first: int, multiply: Callable[[Array, Array], Array]
) -> Array:
    """Multiply contiguous matrices (n, B, rows, columns) by the factors from row `first` on.

    `multiply` returns the product of elements (n, *shape) that broadcast; an operand of one element may be
    NumPy's.
    """
    n, batch, rows, columns = words.shape
    table = np.asarray(factors.table, like=words)
    words_at_a_time = _CPU_WORDS if isinstance(words, np.ndarray) else _GPU_WORDS
    step = table.shape[1] * max(1, words_at_a_time // (n * table.shape[1] * columns))
    out = np.empty_like(words)
    given, result = (array.reshape(n, -1) for array in (words, out))
    for row in range(0, rows, step):
        count = min(step, rows - row)
        block = _factors_of_rows(factors, table, first + row, count, multiply)
        # Whole matrices are consecutive in memory; parts of several are not.
        together = max(1, words_at_a_time // (n * count * columns)) if count == rows else 1
        copies = np.broadcast_to(block[:, None], (n, min(together, batch), count, columns)).reshape(n, -1)
        for i in range(0, batch, together):
            begin = (i * rows + row) * columns
            size = min(together, batch - i) * count * columns
            part = np.s_[:, begin : begin + size]
            result[part] = multiply(given[part], copies[:, :size])
    return out


def _factors_of_rows(
    factors: Factors, table: Array, first: int, count: int, multiply: Callable[[Array, Array], Array]
) -> Array:
    """Factors (n, count, R) of the rows from `first` on, with the table on their processor."""
    size = table.shape[1]
    starts = [factors.at_row(first + row)[:, None, None] for row in range(0, count, size)]
    start = np.concatenate(starts, axis=1)  # (n, parts, 1, R)
    if start[0].size > 1:  # otherwise one element, which kernels take from the host
        start = np.asarray(start, like=table)
    part = table[:, None, : min(size, count)]
    return multiply(part, start).reshape(len(table), -1, table.shape[2])[:, :count]


def transform(
    words: Array,
    moduli: Moduli,
    axis: int,
    inverse: bool,
    negacyclic: bool = False,
    convention: Convention | None = None,
) -> Array:
    """Transforms of a chunk (n, *shape) along an axis of the numbers, or inverse ones, modulo primes p.

    The length N of the axis is a power of two that divides each p - 1. For negacyclic transforms 2N divides
    it too: element i is multiplied by ``psi**i`` before, or by its inverse after the inverse transform, where
    psi is the root of order 2N.
    """
    is_last = axis + 2 == words.ndim  # moving it would take longer than a few short transforms
    last = contiguous(words if is_last else np.moveaxis(words, axis + 1, -1))
    out = _transform_last(last, moduli, inverse, negacyclic, convention) if last.size else last.copy()
    return out if is_last else np.moveaxis(out, -1, axis + 1)


def _transform_last(
    words: Array, moduli: Moduli, inverse: bool, negacyclic: bool, convention: Convention | None
) -> Array:
    """Transforms of contiguous words along their last axis."""
    exponents = None if convention is None else convention.exponents
    is_reversed = convention is not None and convention.is_reversed
    how = moduli, words.shape[-1], inverse, exponents
    constants, out = transform_constants(*how), np.empty_like(words, order="C")
    lines, results = (array.reshape(len(moduli), -1) for array in (words, out))
    psi = twists(*how) if negacyclic else None
    kernels_of(words).ntt(lines, constants, results, twists=psi, is_inverse=inverse, is_reversed=is_reversed)
    return out


def contiguous(words: Array) -> Array:
    """Copy an array of either processor to C order, unless it has that order."""
    return words if words.flags.c_contiguous else words.copy(order="C")


def twisted(words: Array, moduli: Moduli, inverse: bool) -> Array:
    """Multiply elements along the last axis, of length N, by powers of psi, of order 2N, or its inverse."""
    length = words.shape[-1]
    lines = words.reshape(len(moduli), -1, length, 1)
    factors = twist_factors(moduli, length, inverse)
    return multiplied(lines, factors, 0, _product(moduli)).reshape(words.shape)


def twiddled(words: Array, moduli: Moduli, length: int, first: int, inverse: bool, negacyclic: bool) -> Array:
    """Multiply matrices (n, B, rows, columns) by the :func:`.twiddle_factors` of transforms of a length.

    Their first row takes the factors of row `first`.
    """
    factors = twiddle_factors(moduli, length, words.shape[3], inverse, negacyclic)
    return multiplied(words, factors, first, _product(moduli))


# ---- other orders -----------------------------------------------------------------------------------------


def placed(words: Array, axis: int, inverse: bool, negacyclic: bool, convention: Convention) -> Array:
    """Bring values (rows, *shape) of usual transforms along an axis to those by the power of one root.

    With `inverse`, bring them back. ``X_j`` by the root ``w**k`` is ``X_(k j)`` by w.
    """
    length, (k,) = words.shape[axis + 1], convention.exponents
    indices = reversed_bits(length) if convention.is_reversed else np.arange(length)
    own = (k * (2 * indices + 1) // 2 if negacyclic else k * indices) % length
    places = np.asarray(np.argsort(own) if inverse else own, like=words)
    out = np.empty_like(words, order="C")
    for row, result in zip(words, out, strict=True):
        result[...] = row.take(places, axis=axis)
    return out


def reversed_bits(length: int) -> NDArray[np.int64]:
    """Indices below a power of two with their bits in reversed order."""
    indices = np.zeros(1, dtype=np.int64)
    while len(indices) < length:
        indices = np.concatenate([2 * indices, 2 * indices + 1])
    return indices


def _product(moduli: Moduli) -> Callable[[Array, Array], Array]:
    if isinstance(moduli, WideModuli):
        fields = fields_of(moduli)
        return lambda x, y: fields.apply(rows.multiply, x, y)
    return lambda x, y: arithmetic.apply("multiply", (x, y), RNS(moduli), "wrap")


# ---- transforms longer than a chunk -----------------------------------------------------------------------


def interleaved(numbers: Array) -> Array:
    """Bring words from (*shape, k), contiguous by number, to (k, *shape), contiguous by row."""
    *shape, rows = numbers.shape
    return _transpose(numbers.reshape(math.prod(shape), rows)).reshape(rows, *shape)


def separated(words: Array) -> Array:
    """Bring words from (k, *shape) to (*shape, k): the inverse of :func:`interleaved`."""
    rows, *shape = words.shape
    return _transpose(words.reshape(rows, math.prod(shape))).reshape(*shape, rows)


def _transpose(matrix: Array) -> Array:
    matrix = np.asarray(matrix, order="C", like=matrix)
    out = np.empty_like(matrix, shape=matrix.shape[::-1], order="C")
    if out.size:
        kernels_of(matrix).transpose(matrix, out)
    return out


@dataclass(frozen=True)
class FourStep:
    """A transform of length N = K C in K chunks of C elements, powers of two; K divides C.

    The fields have roots of unity of order N, or 2N for a negacyclic transform.
    """

    system: FiniteFields
    length: int
    chunk: int
    inverse: bool
    negacyclic: bool

    @property
    def parts(self) -> int:
        """K: rows of the matrix, chunks of the axis, parts of a chunk."""
        return self.length // self.chunk

    @property
    def part(self) -> int:
        """W, the length of a part."""
        return self.chunk // self.parts

    def columns(self, words: Array, index: int) -> Array:
        """Transform the columns in part `index` of the matrix' rows, and multiply by twiddle factors."""
        matrices = contiguous(words).reshape(len(words), -1, self.part, self.parts)
        # psi**C is a root of order 2K, so the columns of a negacyclic transform are negacyclic.
        found = self._transformed(matrices, 2, self.negacyclic and not self.inverse)
        first = index * self.part
        how: dict[str, Any] = {"inverse": self.inverse, "negacyclic": self.negacyclic}
        twiddled = self.system.apply(rows.twiddled, found, length=self.length, first=first, **how)
        return self._chunk(twiddled.swapaxes(2, 3), words)

    def rows(self, words: Array) -> Array:
        """Transform the rows."""
        lines = self._chunk(words.swapaxes(-1, -2), words)
        return self._transformed(lines, lines.ndim - 2, self.negacyclic and self.inverse)

    def _transformed(self, words: Array, axis: int, negacyclic: bool) -> Array:
        return self.system.apply(
            rows.transform, words, axis=axis, inverse=self.inverse, negacyclic=negacyclic
        )

    def ordered(self, words: Array) -> Array:
        """Bring the values of all rows to the order of the transform."""
        return self._chunk(words, words)

    def _chunk(self, elements: Array, words: Array) -> Array:
        return contiguous(elements).reshape(*words.shape[:-2], 1, self.chunk)
