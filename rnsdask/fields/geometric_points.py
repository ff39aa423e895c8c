"""Values and interpolation of polynomials modulo primes at points of geometric progressions. No Dask in here.

The points are q^i for i < N, with a q for each prime whose order is greater than N. With C(i) = i (i - 1) / 2
both are convolutions, for i j = C(i + j) - C(i) - C(j) (L. Bluestein, 1970; A. Bostan and E. Schost,
"Polynomial evaluation and interpolation on special sets of points", J. Complexity 21, 2005).
"""

import numpy as np

from rnsdask.backend import Array
from rnsdask.core.moduli import ModuliSet
from rnsdask.fields import arithmetic, convolution
from rnsdask.rns.arithmetic import apply
from rnsdask.rns.system import RNS


class GeometricPoints:
    """N points modulo each of n primes, and what interpolation takes, on the processor of an array.

    Attributes
    ----------
    points : array of uint32, shape (n, N)
    """

    def __init__(self, moduli: ModuliSet, count: int, like: Array) -> None:
        self._moduli, self._count = moduli, count
        ratios, factorials = self._found_ratios(like)
        inverse_ratios = arithmetic.inverse(ratios, moduli)
        self.points = self._progression(ratios, count)
        # q to the powers C(i), for i up to N, and 1 / q for i below 2 N.
        ahead = self._triangle(ratios, count + 1)
        self._back = self._triangle(inverse_ratios, 2 * count)
        self._ahead = ahead[:, 1:]
        inverses = arithmetic.inverse(factorials, moduli)
        self._master = self._coefficients(ahead, factorials, inverses)
        self._weights = self._barycentric(ahead, inverses)

    def interpolate(self, values: Array) -> Array:
        """Coefficients (n, N) of the polynomials with values (n, N) at the points.

        The polynomial is M times the sum of all c_i / (x - x_i), with M the product of all x - x_i, and c_i
        the value over M'(x_i). Coefficient k of that power series is minus the sum of the c_i x_i^(-k-1): a
        polynomial's value at a point of the progression of 1 / q.
        """
        count = self._count
        terms = self._multiply(values, self._weights)[:, ::-1]
        sums = convolution.convolve(self._back, terms, self._moduli, count, 2 * count)
        series = self._multiply(sums, self._ahead)
        return convolution.convolve(self._master, series, self._moduli, 0, count)

    def _multiply(self, *factors: Array) -> Array:
        result = factors[0]
        for factor in factors[1:]:
            result = apply("multiply", (result, factor), RNS(self._moduli), "wrap")
        return result

    def _subtract(self, x: Array, y: Array) -> Array:
        return apply("subtract", (x, y), RNS(self._moduli), "wrap")

    def _signed(self, x: Array, start: int) -> Array:
        """Every other element from `start` on negative."""
        result = x.copy()
        result[:, start::2] = self._subtract(np.zeros_like(x[:, start::2]), x[:, start::2])
        return result

    def _running(self, x: Array) -> Array:
        """Products of all up to each along the last axis."""
        step = 1
        while step < x.shape[-1]:
            x = np.concatenate([x[:, :step], self._multiply(x[:, step:], x[:, :-step])], axis=-1)
            step *= 2
        return x

    def _progression(self, ratios: Array, count: int) -> Array:
        ones = np.ones_like(ratios, shape=(len(ratios), 1), order="C")
        return self._running(
            np.concatenate([ones, np.broadcast_to(ratios, (len(ratios), count - 1))], axis=-1)
        )

    def _triangle(self, ratios: Array, count: int) -> Array:
        """Powers of the ratios by C(i) for i < count."""
        ones = np.ones_like(ratios, shape=(len(ratios), 1), order="C")
        return self._running(np.concatenate([ones, self._progression(ratios, count - 1)], axis=-1))

    def _found_ratios(self, like: Array) -> tuple[Array, Array]:
        """The least q from 2 on of each prime, (n, 1), and products of q^k - 1 for k up to i, (n, N + 1)."""
        n, count = len(self._moduli), self._count
        found = [2] * n
        while True:
            ratios = np.asarray(np.array(found, dtype=np.uint32)[:, None], like=like)
            powers = self._progression(ratios, count + 1)
            differences = self._subtract(powers, np.ones_like(powers))
            differences[:, 0] = 1
            factorials = self._running(differences)
            good = (factorials[:, -1] != 0).tolist()
            if all(good):
                return ratios, factorials
            found = [q if is_good else q + 1 for q, is_good in zip(found, good, strict=True)]

    def _coefficients(self, ahead: Array, factorials: Array, inverses: Array) -> Array:
        """Those of M below x^N, by the q-binomial theorem: (-1)^(N - k) q^C(N - k) times N over k."""
        count = self._count
        binomials = self._multiply(inverses[:, :count], inverses[:, :0:-1], factorials[:, count:])
        return self._signed(self._multiply(binomials, ahead[:, :0:-1]), 1 - count % 2)

    def _barycentric(self, ahead: Array, inverses: Array) -> Array:
        """-1 / M'(q^i) times q to the power C(i).

        M'(q^i) is (-1)^(N - 1 - i) q^(C(N) - C(N - i) - i) times the factorials of i and N - 1 - i.
        """
        count = self._count
        factors = inverses[:, :count], inverses[:, count - 1 :: -1], self._back[:, count : count + 1]
        products = self._multiply(*factors, ahead[:, :0:-1], self.points, ahead[:, :count])
        return self._signed(products, 1 - count % 2)
