"""Parts of number-theoretic transforms that are longer than a chunk: columns, twiddle factors, rows.

A transform of length N = K C is one of a matrix of K rows and C columns (D. Bailey, "FFTs in external or
hierarchical memory", 1990): of ``x_i`` with i = r C + k, the columns' transforms over r, times ``w**(k j)``
at value j of column k, then the rows' over k, whose value m in row j is ``X_(j + K m)``.

A chunk holds K parts of W = C / K elements, each for a part of another chunk of the step before: (n, *batch,
1, K, W). No Dask in here.
"""

from dataclasses import dataclass

from rnsdask.backend import Array
from rnsdask.constants import twiddle_factors
from rnsdask.core.moduli import ModuliSet
from rnsdask.fields.ntt import contiguous, multiplied, transform


@dataclass(frozen=True)
class FourStep:
    """A transform of length N = K C in K chunks; K divides C.

    Attributes
    ----------
    moduli : ModuliSet
        Primes p, where N divides each p - 1, and with `negacyclic` 2N.
    length, chunk : int
        N and C, powers of two.
    inverse, negacyclic : bool
        As :func:`.ntt.transform` takes them.
    """

    moduli: ModuliSet
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
        """Transforms of the columns in part `index` of each row, with their twiddle factors.

        A chunk (n, *batch, 1, K, W) has W columns of K elements, before and after.
        """
        matrices = self._matrices(words)
        turned = contiguous(matrices.swapaxes(2, 3))
        # psi**(r C) is a root of order 2K, so that the columns of a negacyclic transform are negacyclic.
        turned = transform(turned, self.moduli, 2, self.inverse, self.negacyclic and not self.inverse)
        factors = twiddle_factors(self.moduli, self.length, self.parts, self.inverse, self.negacyclic)
        turned = multiplied(turned, factors, index * self.part)
        return contiguous(turned.swapaxes(2, 3)).reshape(words.shape)

    def rows(self, words: Array) -> Array:
        """Transforms of rows, each in K parts of W elements: chunks (n, *batch, 1, K, W)."""
        lines = contiguous(words).reshape(len(self.moduli), -1, self.chunk)
        found = transform(lines, self.moduli, 1, self.inverse, self.negacyclic and self.inverse)
        return found.reshape(words.shape)

    def ordered(self, words: Array) -> Array:
        """W values of each of the K rows, in the order of the transform: (n, *batch, 1, W, K)."""
        return contiguous(words.swapaxes(-1, -2))

    def _matrices(self, words: Array) -> Array:
        return contiguous(words).reshape(len(self.moduli), -1, self.parts, self.part)
