"""Parts of number-theoretic transforms that are longer than a chunk: columns, twiddle factors, rows.

A transform of length N = K C is one of a matrix of K rows and C columns (D. Bailey, "FFTs in external or
hierarchical memory", 1990): of ``x_i`` with i = r C + k, the columns' transforms over r, times ``w**(k j)``
at value j of column k, then the rows' over k, whose value m in row j is ``X_(j + K m)``.

A chunk holds K parts of W = C / K elements, each for another chunk of the next step: (n, *batch, 1, C). A
step is given what each chunk of the one before has for it as (n, *batch, W, K). No Dask in here.
"""

import math
from dataclasses import dataclass

import numpy as np

from rnsdask.backend import Array, kernels_of
from rnsdask.fields.ntt import contiguous
from rnsdask.fields.system import FiniteFields


def interleaved(numbers: Array) -> Array:
    """Words (*shape, k), those of a number side by side, as (k, *shape), those of a row side by side."""
    *shape, rows = numbers.shape
    return _transposed(numbers.reshape(math.prod(shape), rows)).reshape(rows, *shape)


def separated(words: Array) -> Array:
    """Words (k, *shape) as (*shape, k): the inverse of :func:`interleaved`."""
    rows, *shape = words.shape
    return _transposed(words.reshape(rows, math.prod(shape))).reshape(*shape, rows)


def _transposed(matrix: Array) -> Array:
    matrix = np.asarray(matrix, order="C", like=matrix)
    out = np.empty_like(matrix, shape=matrix.shape[::-1], order="C")
    if out.size:
        kernels_of(matrix).transpose(matrix, out)
    return out


@dataclass(frozen=True)
class FourStep:
    """A transform of length N = K C in K chunks; K divides C.

    Attributes
    ----------
    system : FiniteFields
        The fields, which have roots of unity of order N, and with `negacyclic` 2N.
    length, chunk : int
        N and C, powers of two.
    inverse, negacyclic : bool
        As :func:`rnsdask.ntt` and :func:`rnsdask.intt` have it.
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
        """Transforms of the columns in part `index` of the matrix's rows, times their twiddle factors."""
        matrices = contiguous(words).reshape(len(words), -1, self.part, self.parts)
        # psi**C is a root of order 2K, so that the columns of a negacyclic transform are negacyclic.
        found = self._transformed(matrices, 2, self.negacyclic and not self.inverse)
        first = index * self.part
        how = {"length": self.length, "first": first, "inverse": self.inverse, "negacyclic": self.negacyclic}
        return self._chunk(self.system.apply("twiddled", found, **how).swapaxes(2, 3), words)

    def rows(self, words: Array) -> Array:
        """Transforms of rows."""
        lines = self._chunk(words.swapaxes(-1, -2), words)
        return self._transformed(lines, lines.ndim - 2, self.negacyclic and self.inverse)

    def _transformed(self, words: Array, axis: int, negacyclic: bool) -> Array:
        how = {"axis": axis, "inverse": self.inverse, "negacyclic": negacyclic}
        found: Array = self.system.apply("transform", words, **how)
        return found

    def ordered(self, words: Array) -> Array:
        """Values of all rows in the order of the transform."""
        return self._chunk(words, words)

    def _chunk(self, elements: Array, words: Array) -> Array:
        return contiguous(elements).reshape(*words.shape[:-2], 1, self.chunk)
