"""Greatest common divisors and resultants of two long polynomials by half-gcds. No Dask in here.

The upper half of the coefficients of f and g decides the first half of their remainder sequence. A half-gcd
finds it as a matrix that takes f and g to two neighbours in the sequence, by recursion and products
(R. Moenck, 1973; K. Thull and C. Yap, 1990). Polynomials are words (A,) without zeros above the leading
coefficient.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rnsdask.backend import Array, kernels_of
from rnsdask.backend.protocol import HalfGcd
from rnsdask.core import rows
from rnsdask.core.moduli import ModuliSet
from rnsdask.core.place import ALONE
from rnsdask.fields import convolution, ntt
from rnsdask.fields.system import WidePrimeFields, fields_of
from rnsdask.fields.wide_products import through_residues

LONG = 8000
"""Fewest coefficients of both polynomials for which half-gcds are quicker than Euclid's algorithm."""

SHORT = 1600
"""Greatest difference of degrees that Euclid's algorithm goes through at a time."""


@dataclass(frozen=True)
class Euclid:
    """Euclid's algorithm on polynomials over one field."""

    field: WidePrimeFields

    def common_divisor(self, f: Array, g: Array) -> Array:
        """Monic greatest common divisor of polynomials that are not 0."""
        divisor, _, _ = self._sequence(f, g)
        inverse = self.field.apply(rows.inverse, divisor[None, -1:])
        monic: Array = self.field.apply(rows.multiply, divisor[None], inverse)[0]
        return monic

    def resultant(self, f: Array, g: Array) -> int:
        """Resultant of polynomials that are not 0.

        With r_0 = f, r_1 = g, ..., of degrees n_i, it is the product of all ``lc(r_i)**(n_(i-1) - n_(i+1))``,
        negative if an odd number of n_(i-1) n_i are odd; n is 0 after the last.
        """
        divisor, leading, degrees = self._sequence(f, g)
        if len(divisor) > 1:
            return 0
        p, result = self.field.primes[0], 1
        before = [len(f) - 1, *degrees[:-1]]
        after = [*degrees[1:], 0]
        for n, m, k, c in zip(degrees, before, after, leading, strict=True):
            result = result * pow(c, m - k, p) * (-1 if m & n & 1 else 1) % p
        return result

    def _sequence(self, f: Array, g: Array) -> tuple[Array, list[int], list[int]]:
        """Return the last remainder, and leading coefficients and degrees of all divisors."""
        leading, degrees = [int(g[-1])], [len(g) - 1]
        f, g = g, self._remainder(f, g)
        while len(g):
            n = len(f) - 1
            found = self._until(f, g, 0 if n <= LONG else n - n // 2, False)
            leading += found.leading.tolist()
            degrees += found.degrees.tolist()
            f, g = found.f, found.g
            if len(g):
                leading.append(int(g[-1]))
                degrees.append(len(g) - 1)
                f, g = g, self._remainder(f, g)
        return f, leading, degrees

    def _until(self, f: Array, g: Array, least: int, wants_matrix: bool = True) -> HalfGcd:
        """Go through the sequence until the degree of g is below `least`, at least half that of f; or 0."""
        n, shift = len(f) - 1, 2 * least - (len(f) - 1)
        if len(g) <= least:
            one = np.zeros_like(f, shape=(2, 2, 1), order="C")
            one[0, 0] = one[1, 1] = 1
            return HalfGcd(one, f, g, f[:0], f[:0].astype(np.int64))
        if shift > 0 and least:
            found = self._until(f[shift:], g[shift:], least - shift)
            low = self._times(found.matrix, _stacked(f[:shift], g[:shift])[:, None])[:, 0]
            f, g = self._raised(found.f, shift, low[0]), self._raised(found.g, shift, low[1])
            return HalfGcd(found.matrix, f, g, found.leading, found.degrees + shift)
        if n - least <= SHORT or not least:
            kernel: Callable[..., HalfGcd] | None = kernels_of(f).half_gcd
            assert kernel is not None
            return kernel(_stacked(f, g), least, self.field.moduli, wants_matrix)
        first = self._until(f, g, n - (n - least) // 2)
        if len(first.g) <= least:
            return first
        f, g = first.g, first.f
        quotient, rest = self._divided(g, f)
        leading, degrees = f[-1:], np.full_like(first.degrees, len(f) - 1, shape=(1,), order="C")
        last = self._until(f, rest, least, wants_matrix)
        matrix = first.matrix
        if wants_matrix:
            product = self._window(quotient[None, None], matrix[1:])[0]
            upper, lower = _stacked(matrix[0], product)
            below = self.field.apply(rows.subtract, upper[None], lower[None])[0]
            matrix = _trimmed(self._times(last.matrix, _stacked(matrix[1], below)))
        leading, degrees = (
            np.concatenate(parts)
            for parts in ((first.leading, leading, last.leading), (first.degrees, degrees, last.degrees))
        )
        return HalfGcd(matrix, last.f, last.g, leading, degrees)

    def _times(self, matrix: Array, columns: Array) -> Array:
        """Product of matrices (2, 2, A) and (2, K, B) of polynomials: each is transformed once."""
        lengths = matrix.shape[-1], columns.shape[-1]
        count = sum(lengths) - 1
        length = 1 << (count - 1).bit_length()

        def product(x: Array, y: Array, moduli: ModuliSet) -> Array:
            a, b = (ntt.transform(convolution.padded(v, length), moduli, 3, False) for v in (x, y))
            a, b = a[:, 0, :, :, None], b[:, 0, None]
            terms = a[:, :, 0], b[:, :, 0], a[:, :, 1], b[:, :, 1]
            sums = fields_of(moduli).apply(rows.muladd, *terms)
            return ntt.transform(sums, moduli, 2, True)[:, None, ..., :count]

        return through_residues(
            matrix[None], columns[None], self.field, 2 * min(lengths), product, length=length
        )[0]

    def _window(self, x: Array, y: Array) -> Array:
        return self.field.apply(rows.window, x, y, first=0, stop=x.shape[-1] + y.shape[-1] - 1)

    def _divided(self, f: Array, g: Array) -> tuple[Array, Array]:
        found = self.field.apply(rows.divided, f[None], g[None], place=ALONE)[0]
        return found[: len(f) - len(g) + 1], _trimmed(found[len(f) :])

    def _remainder(self, f: Array, g: Array) -> Array:
        return f if len(f) < len(g) else self._divided(f, g)[1]

    def _raised(self, high: Array, shift: int, low: Array) -> Array:
        """Polynomial high x**shift + low."""
        moved = np.zeros_like(low, shape=max(len(low), len(high) + shift), order="C")
        moved[shift : shift + len(high)] = high
        moved[: len(low)] = self.field.apply(rows.add, moved[None, : len(low)], low[None])[0]
        return _trimmed(moved)


def _stacked(f: Array, g: Array) -> Array:
    """Stack polynomials (..., A) and (..., B), padded with zeros: (2, ..., max(A, B))."""
    found = np.zeros_like(f, shape=(2, *f.shape[:-1], max(f.shape[-1], g.shape[-1])), order="C")
    found[0, ..., : f.shape[-1]] = f
    found[1, ..., : g.shape[-1]] = g
    return found


def _trimmed(words: Array) -> Array:
    """Cut polynomials (..., A) after the last coefficient that is not 0 in any of them."""
    places = words.reshape(-1, words.shape[-1]).any(axis=0).nonzero()[0]
    return words[..., : int(places[-1]) + 1 if len(places) else 0]
