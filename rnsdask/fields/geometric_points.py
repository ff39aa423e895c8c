"""Evaluation and interpolation of polynomials modulo primes at points chosen here. No Dask in here.

The points are w^t q^i, with w a root of unity of order T and q an integer for each prime; few are w^t alone.
For each s, the coefficients s + T u form a polynomial in x^T; its values at q^(T i) go through transforms of
length T.
"""

import numpy as np

from rnsdask.backend import Array, backend_name
from rnsdask.core.moduli import ModuliSet
from rnsdask.fields import arithmetic, convolution, ntt
from rnsdask.rns import lift
from rnsdask.rns.arithmetic import apply
from rnsdask.rns.system import RNS

# Greatest T, and least quotient of the count and T: on a GPU, tables and interpolation take longer with more
# parts, all else with more points.
SHAPES = {"cpu": (64, 8), "cuda": (512, 4)}

# Divisor of p - 1 for each prime: transforms of this length serve convolutions of up to half as many parts.
_STEP = 512


def primes(start: int, count: int) -> ModuliSet:
    """Take `count` primes below 2**31 that have these points, after the first `start`, the greatest first."""
    return lift.primes(start, count, step=_STEP)


def count_beyond(limit: int) -> int:
    """Number of these primes that gives a product above a limit."""
    return lift.count_beyond(limit, step=_STEP)


class GeometricPoints:
    """At least `count` points modulo each of n such primes, and their tables, on an array's processor.

    The attribute `count` is their actual number: T times the parts.
    """

    def __init__(self, moduli: ModuliSet, count: int, like: Array) -> None:
        self._moduli = moduli
        most, few = SHAPES[backend_name(like)]
        if count <= most:  # roots of unity alone
            self._roots = 1 << (count - 1).bit_length()
        else:
            self._roots = min(most, 1 << ((count // few).bit_length() - 1))
        self._parts = -(-count // self._roots)
        self.count = self._roots * self._parts
        if self._parts == 1:
            self._points = np.ones_like(like, shape=(len(moduli), 1, 1, 1), dtype=np.uint32, order="C")
            return
        ratios, self._progression = _progression_of(moduli, self._parts, self._roots, like)
        self._points = self._progression.points[:, None, :, None]
        back = arithmetic.inverse(ratios, moduli)
        steps = np.concatenate([_powers_of(x, self._parts, moduli)[..., 0] for x in (ratios, back)], axis=-1)
        table = _powers_of(np.asarray(steps, like=like), self._roots, moduli)
        table = table.swapaxes(1, 2).copy(order="C")
        self._twist, self._untwist = table[:, : self._parts], table[:, self._parts :]

    def evaluate(self, f: Array) -> Array:
        """Values (n, rows, points) of polynomials (n, rows, A)."""
        n, rows, length = f.shape
        groups = -(-length // self._roots)
        padded = np.zeros_like(f, shape=(n, rows, groups, 1, self._roots), order="C")
        padded.reshape(n, rows, groups * self._roots)[..., :length] = f
        total = padded[:, :, -1]
        for u in range(groups - 2, -1, -1):  # Horner's rule
            factors = total, self._points, padded[:, :, u]
            total = apply("fma", factors, RNS(self._moduli), "wrap")
        if self._parts > 1:
            total = _product(self._moduli, total, self._twist[:, None])
        return ntt.transform(total, self._moduli, 2, False, False).reshape(n, rows, self.count)

    def interpolate(self, values: Array) -> Array:
        """Coefficients (n, rows, points) of the polynomials with values (n, rows, points)."""
        n, rows, _ = values.shape
        parts = values.reshape(n, rows, self._parts, self._roots)
        parts = ntt.transform(parts, self._moduli, 2, True, False)
        if self._parts > 1:
            parts = _product(self._moduli, parts, self._untwist[:, None])
            parts = self._progression.interpolate(parts.swapaxes(2, 3)).swapaxes(2, 3)
        return parts.reshape(values.shape)


def _product(moduli: ModuliSet, *factors: Array) -> Array:
    result = factors[0]
    for factor in factors[1:]:
        result = apply("multiply", (result, factor), RNS(moduli), "wrap")
    return result


def _difference(moduli: ModuliSet, x: Array, y: Array) -> Array:
    return apply("subtract", (x, y), RNS(moduli), "wrap")


def _running_products(x: Array, moduli: ModuliSet) -> Array:
    """Cumulative products along the last axis."""
    step = 1
    while step < x.shape[-1]:
        x = np.concatenate([x[:, :step], _product(moduli, x[:, step:], x[:, :-step])], axis=-1)
        step *= 2
    return x


def _prepend_one(x: Array) -> Array:
    return np.concatenate([np.ones_like(x, shape=(len(x), 1), order="C"), x], axis=-1)


def _powers_of(bases: Array, count: int, moduli: ModuliSet) -> Array:
    """Powers 0 to `count` - 1 of bases (n, P): (n, count, P)."""
    table = np.ones_like(bases, shape=(len(bases), 1, bases.shape[1]), order="C")
    power = bases[:, None]
    while (known := table.shape[1]) < count:
        table = np.concatenate([table, _product(moduli, table[:, : count - known], power)], axis=1)
        power = _product(moduli, power, power)
    return table


def _progression_of(moduli: ModuliSet, count: int, roots: int, like: Array) -> tuple[Array, "_Progression"]:
    """Find the least q >= 2 for each prime, (n, 1), and make the progression of q^T.

    T = `roots`, and the powers 1 to `count` of q^T are not 1. The small tables are made on the CPU.
    """
    found = [2] * len(moduli)
    while True:
        q = np.array(found, dtype=np.uint32)[:, None]
        ratios = arithmetic.power(q, roots, moduli)
        points = _powers_of(ratios, count + 1, moduli)[..., 0]
        differences = _difference(moduli, points, np.ones_like(points))
        differences[:, 0] = 1
        factorials = _running_products(differences, moduli)
        good = (factorials[:, -1] != 0).tolist()
        if all(good):
            return q, _Progression(moduli, points, factorials, like)
        found = [k if is_good else k + 1 for k, is_good in zip(found, good, strict=True)]


class _Progression:
    """The points q^i for i < N, and the tables of interpolation.

    With C(i) = i (i - 1) / 2 it is two convolutions, because i j = C(i + j) - C(i) - C(j) (L. Bluestein,
    1970; A. Bostan and E. Schost, "Polynomial evaluation and interpolation on special sets of points", J.
    Complexity 21, 2005).

    Attributes
    ----------
    points : array of uint32, shape (n, N)
    """

    def __init__(self, moduli: ModuliSet, points: Array, factorials: Array, like: Array) -> None:
        """`points` (n, N + 1) have one more point, `factorials` are the products of q^k - 1 for k up to i."""
        self._moduli, self._count = moduli, factorials.shape[-1] - 1
        # q^C(i) for i up to N, and q^-C(i) for i below 2 N.
        ahead = _running_products(_prepend_one(points[:, :-1]), moduli)
        inverse_ratios = arithmetic.inverse(points[:, 1:2], moduli)
        steps = _powers_of(inverse_ratios, 2 * self._count - 1, moduli)[..., 0]
        back = _running_products(_prepend_one(steps), moduli)
        points = points[:, :-1]
        inverses = arithmetic.inverse(factorials, moduli)
        tables = (
            points,
            back,
            ahead[:, 1:],
            self._coefficients(ahead, factorials, inverses),
            self._barycentric(ahead, back, points, inverses),
        )
        self.points, self._back, self._ahead, self._master, self._weights = (
            np.asarray(table, like=like) for table in tables
        )

    def interpolate(self, values: Array) -> Array:
        """Coefficients (n, *batch, N) of the polynomials with values (n, *batch, N) at the points.

        The polynomial is M times the sum of all c_i / (x - x_i), where M is the product of all x - x_i and
        c_i the value divided by M'(x_i). Coefficient k of that sum as a power series is minus the sum of the
        c_i x_i^(-k-1): the value of a polynomial at a point of the progression of 1 / q.
        """
        count = self._count
        terms = _product(self._moduli, values, self._weights[:, None, None])[..., ::-1]
        sums = convolution.convolve(self._back[:, None, None], terms, self._moduli, count, 2 * count)
        series = _product(self._moduli, sums, self._ahead[:, None, None])
        return convolution.convolve(self._master[:, None, None], series, self._moduli, 0, count)

    def _signed(self, x: Array, start: int) -> Array:
        """Negate every other element from `start` on."""
        result = x.copy()
        result[:, start::2] = _difference(self._moduli, np.zeros_like(x[:, start::2]), x[:, start::2])
        return result

    def _coefficients(self, ahead: Array, factorials: Array, inverses: Array) -> Array:
        """Coefficients of M below x^N by the q-binomial theorem: (-1)^(N - k) q^C(N - k) times N over k."""
        count = self._count
        factors = inverses[:, :count], inverses[:, :0:-1], factorials[:, count:], ahead[:, :0:-1]
        return self._signed(_product(self._moduli, *factors), 1 - count % 2)

    def _barycentric(self, ahead: Array, back: Array, points: Array, inverses: Array) -> Array:
        """-1 / M'(q^i) times q to the power C(i).

        M'(q^i) is (-1)^(N - 1 - i) q^(C(N) - C(N - i) - i) times the factorials of i and N - 1 - i.
        """
        count = self._count
        factors = inverses[:, :count], inverses[:, count - 1 :: -1], back[:, count : count + 1]
        products = _product(self._moduli, *factors, ahead[:, :0:-1], points, ahead[:, :count])
        return self._signed(products, 1 - count % 2)
