"""Values and interpolation of polynomials modulo primes at points of their own choice. No Dask in here.

The points are w^t q^i, with w a root of unity of order T and q an integer for each prime. Coefficients
s + T u are those of a polynomial in x^T, for each s, whose values at q^(T i) go through transforms of
length T.
"""

import numpy as np

from rnsdask.backend import Array
from rnsdask.core.moduli import ModuliSet
from rnsdask.fields import arithmetic, convolution, ntt
from rnsdask.fields.polynomial_values import powers
from rnsdask.fields.system import PrimeFields
from rnsdask.rns import lift
from rnsdask.rns.arithmetic import apply
from rnsdask.rns.system import RNS

# The greatest T, which divides p - 1 of each prime; it is less where a root has fewer points than so many.
ROOTS = 32
_FEW = 16


def primes(start: int, count: int) -> ModuliSet:
    """So many primes below 2**31 that have these points, after the first `start`, the greatest first."""
    return lift.primes(start, count, step=ROOTS)


def count_beyond(limit: int) -> int:
    """How many of these primes have a product above a limit."""
    return lift.count_beyond(limit, step=ROOTS)


class GeometricPoints:
    """At least `count` points modulo each of n of these primes, and their tables, on an array's processor.

    Attributes
    ----------
    count : int
        How many there are: T times the parts.
    """

    def __init__(self, moduli: ModuliSet, count: int, like: Array) -> None:
        self._moduli = moduli
        self._roots = min(ROOTS, 1 << (max(1, count // _FEW).bit_length() - 1))
        self._parts = -(-count // self._roots)
        self.count = self._roots * self._parts
        ratios, self._progression = _progression_of(moduli, self._parts, self._roots, like)
        inverses = arithmetic.inverse(ratios, moduli)
        fields = PrimeFields(moduli)
        steps, back = (_powers_of(r, self._parts, moduli) for r in (ratios, inverses))
        self._twist, self._untwist = (powers(x, self._roots, fields) for x in (steps, back))

    def evaluate(self, f: Array) -> Array:
        """Values (n, rows, points) of polynomials (n, rows, A)."""
        n, rows, length = f.shape
        groups = -(-length // self._roots)
        padded = np.zeros_like(f, shape=(n, rows, groups * self._roots), order="C")
        padded[..., :length] = f
        groups_of = padded.reshape(n, rows, groups, self._roots, 1)
        total = np.broadcast_to(groups_of[:, :, -1], (n, rows, self._roots, self._parts))
        for u in range(groups - 2, -1, -1):  # G. Horner's rule
            factors = total, self._progression.points[:, None, None], groups_of[:, :, u]
            total = apply("fma", factors, RNS(self._moduli), "wrap")
        twisted = _product(self._moduli, total, self._twist[:, None])
        return ntt.transform(twisted, self._moduli, 1, False, False).reshape(n, rows, self.count)

    def interpolate(self, values: Array) -> Array:
        """Coefficients (n, points) of the polynomials with values (n, points)."""
        parts = values.reshape(len(values), self._roots, self._parts)
        parts = ntt.transform(parts, self._moduli, 0, True, False)
        found = self._progression.interpolate(_product(self._moduli, parts, self._untwist))
        return found.swapaxes(1, 2).reshape(len(values), self.count)


def _product(moduli: ModuliSet, *factors: Array) -> Array:
    result = factors[0]
    for factor in factors[1:]:
        result = apply("multiply", (result, factor), RNS(moduli), "wrap")
    return result


def _difference(moduli: ModuliSet, x: Array, y: Array) -> Array:
    return apply("subtract", (x, y), RNS(moduli), "wrap")


def _running_products(x: Array, moduli: ModuliSet) -> Array:
    """Products of all up to each along the last axis."""
    step = 1
    while step < x.shape[-1]:
        x = np.concatenate([x[:, :step], _product(moduli, x[:, step:], x[:, :-step])], axis=-1)
        step *= 2
    return x


def _after_one(x: Array) -> Array:
    return np.concatenate([np.ones_like(x, shape=(len(x), 1), order="C"), x], axis=-1)


def _powers_of(ratios: Array, count: int, moduli: ModuliSet) -> Array:
    """Powers (n, count) of (n, 1), from that by 0 on."""
    return _running_products(_after_one(np.broadcast_to(ratios, (len(ratios), count - 1))), moduli)


def _progression_of(moduli: ModuliSet, count: int, roots: int, like: Array) -> tuple[Array, "_Progression"]:
    """The least q from 2 on for each prime, (n, 1), and the progression of q^T.

    T = `roots`, and the powers of q^T by 1 to `count` are not 1.
    """
    found = [2] * len(moduli)
    while True:
        q = np.asarray(np.array(found, dtype=np.uint32)[:, None], like=like)
        ratios = arithmetic.power(q, roots, moduli)
        differences = _powers_of(ratios, count + 1, moduli)
        differences = _difference(moduli, differences, np.ones_like(differences))
        differences[:, 0] = 1
        factorials = _running_products(differences, moduli)
        good = (factorials[:, -1] != 0).tolist()
        if all(good):
            return q, _Progression(moduli, ratios, factorials)
        found = [k if is_good else k + 1 for k, is_good in zip(found, good, strict=True)]


class _Progression:
    """The points q^i for i < N, and what interpolation takes.

    With C(i) = i (i - 1) / 2 it is two convolutions, for i j = C(i + j) - C(i) - C(j) (L. Bluestein, 1970;
    A. Bostan and E. Schost, "Polynomial evaluation and interpolation on special sets of points", J.
    Complexity 21, 2005).

    Attributes
    ----------
    points : array of uint32, shape (n, N)
    """

    def __init__(self, moduli: ModuliSet, ratios: Array, factorials: Array) -> None:
        """`factorials` (n, N + 1) are the products of q^k - 1 for k up to i."""
        self._moduli, self._count = moduli, factorials.shape[-1] - 1
        inverse_ratios = arithmetic.inverse(ratios, moduli)
        self.points = _powers_of(ratios, self._count, moduli)
        # q to the powers C(i), for i up to N, and 1 / q for i below 2 N.
        ahead = self._triangle(ratios, self._count + 1)
        self._back = self._triangle(inverse_ratios, 2 * self._count)
        self._ahead = ahead[:, 1:]
        inverses = arithmetic.inverse(factorials, moduli)
        self._master = self._coefficients(ahead, factorials, inverses)
        self._weights = self._barycentric(ahead, inverses)

    def interpolate(self, values: Array) -> Array:
        """Coefficients (n, B, N) of the polynomials with values (n, B, N) at the points.

        The polynomial is M times the sum of all c_i / (x - x_i), with M the product of all x - x_i, and c_i
        the value over M'(x_i). Coefficient k of that power series is minus the sum of the c_i x_i^(-k-1): a
        polynomial's value at a point of the progression of 1 / q.
        """
        count = self._count
        terms = _product(self._moduli, values, self._weights[:, None])[..., ::-1]
        sums = convolution.convolve(self._back[:, None], terms, self._moduli, count, 2 * count)
        series = _product(self._moduli, sums, self._ahead[:, None])
        return convolution.convolve(self._master[:, None], series, self._moduli, 0, count)

    def _signed(self, x: Array, start: int) -> Array:
        """Every other element from `start` on negative."""
        result = x.copy()
        result[:, start::2] = _difference(self._moduli, np.zeros_like(x[:, start::2]), x[:, start::2])
        return result

    def _triangle(self, ratios: Array, count: int) -> Array:
        """Powers of the ratios by C(i) for i < count."""
        steps = _powers_of(ratios, count - 1, self._moduli)
        return _running_products(_after_one(steps), self._moduli)

    def _coefficients(self, ahead: Array, factorials: Array, inverses: Array) -> Array:
        """Those of M below x^N, by the q-binomial theorem: (-1)^(N - k) q^C(N - k) times N over k."""
        count = self._count
        factors = inverses[:, :count], inverses[:, :0:-1], factorials[:, count:], ahead[:, :0:-1]
        return self._signed(_product(self._moduli, *factors), 1 - count % 2)

    def _barycentric(self, ahead: Array, inverses: Array) -> Array:
        """-1 / M'(q^i) times q to the power C(i).

        M'(q^i) is (-1)^(N - 1 - i) q^(C(N) - C(N - i) - i) times the factorials of i and N - 1 - i.
        """
        count = self._count
        factors = inverses[:, :count], inverses[:, count - 1 :: -1], self._back[:, count : count + 1]
        products = _product(self._moduli, *factors, ahead[:, :0:-1], self.points, ahead[:, :count])
        return self._signed(products, 1 - count % 2)
