"""Power series, quotients, values and divisors of chunks of integer polynomials, exact. No Dask in here.

A chunk is residues (n, *batch, coefficients) of an RNS, ascending. Each result is bounded
(docs/exact-polynomials.md), computed modulo primes with a product beyond that, and lifted
(:mod:`rnsdask.rns.lift`). Results are Python ints (1, *batch, length); rationals are numerators, and last
their least positive common denominator.
"""

import math
from collections.abc import Callable
from typing import Any

import gmpy2
import numpy as np
from numpy.typing import NDArray

from rnsdask.backend import Array, to_backend
from rnsdask.core import rows
from rnsdask.core.errors import NumberError, abbreviate
from rnsdask.core.moduli import ModuliSet, unchecked_set
from rnsdask.core.place import ALONE, Place
from rnsdask.fields import polynomial_values, polynomials, power_series
from rnsdask.fields.determinant_bounds import magnitude_of
from rnsdask.fields.exact_polynomials import integers_of, sylvester_bound
from rnsdask.fields.polynomials import index_at
from rnsdask.fields.system import PrimeFields, fields_of
from rnsdask.rns.lift import count_beyond, modulo_primes, parts_of, primes
from rnsdask.rns.system import MOST_BITS, RNS

Ints = NDArray[np.object_]
Image = Callable[..., Array]
"""Function from words of operands, and last the fields whose primes they are modulo, to words of results."""


# ---- power series -----------------------------------------------------------------------------------------


def inverses(f: Array, *, system: RNS, count: int, place: Place) -> Ints:
    """Invert series with the constant term 1 or -1.

    If coefficients are at most A, the coefficients of the inverse are at most those of ``(1 - x) / (1 - (1 +
    A) x)``. NumberError for another constant term, naming the value and the index, or if results may be too
    long.
    """
    _check_constants("inverse_series", (1, -1), f, system, place)

    def image(x: Array, fields: PrimeFields) -> Array:
        return power_series.inverses(x, count, fields, ALONE)

    f = f[..., :count]
    bound = _checked_power("inverse_series", 1 + _magnitude(f, system), count - 1)
    return lifted(image, (f,), system, bound, count)


def logarithms(f: Array, *, system: RNS, count: int, place: Place) -> Ints:
    """Logarithms of series with the constant term 1: rationals, k times whose coefficient k is an integer."""
    _check_constants("log_series", (1,), f, system, place)
    f = f[..., :count]
    bound = count * _checked_power("log_series", 1 + _magnitude(f, system), count)
    f = power_series.to_length(f, count)
    slopes = lifted(power_series.logarithmic_derivatives, (f,), system, bound, count - 1)
    found = np.zeros((*slopes.shape[:-1], count + 1), dtype=object)
    for index in np.ndindex(slopes.shape[:-1]):
        values = [gmpy2.mpq(value, k) for k, value in enumerate(slopes[index].tolist(), 1)]
        common = math.lcm(*(int(value.denominator) for value in values))
        found[index] = [0, *(int(value * common) for value in values), common]
    return found


def exponentials(f: Array, *, system: RNS, count: int, place: Place) -> Ints:
    """Exponentials of series with the constant term 0: rationals, whose denominator divides (count - 1)!.

    If coefficients are at most A, the coefficients of the exponential are at most those of the exponential of
    A x / (1 - x), which never decrease if A is at least 1.
    """
    _check_constants("exp_series", (0,), f, system, place)
    f, last = f[..., :count], count - 1
    _checked_power("exp_series", count, last)  # greater than the factorial
    magnitude, scale = _magnitude(f, system), math.factorial(last)
    terms = (
        math.comb(last - 1, j - 1) * magnitude**j * (scale // math.factorial(j)) for j in range(1, count)
    )

    def image(x: Array, fields: PrimeFields) -> Array:
        series = power_series.exponentials(x, count, fields, ALONE)
        return _times(series, scale, fields)

    return _in_lowest_terms(lifted(image, (f,), system, max(scale, sum(terms)), count), scale)


def compositions(f: Array, g: Array, system: RNS, count: int) -> Ints:
    """Values f(g) modulo x**count."""

    def image(x: Array, y: Array, fields: PrimeFields) -> Array:
        return power_series.compositions(x, y, count, fields)

    g = g[..., :count]
    step, degree = g.shape[-1] * _magnitude(g, system), f.shape[-1] - 1
    bound = _magnitude(f, system) * sum(step**k for k in range(degree + 1))
    return lifted(image, (f, g), system, bound, count)


def powers(f: Array, system: RNS, exponent: int, count: int) -> Ints:
    """Powers of polynomials modulo x**count."""

    def image(x: Array, fields: PrimeFields) -> Array:
        return power_series.powers(x, exponent, count, fields)

    f = f[..., :count]
    bound = _checked_power("power_mod", f.shape[-1] * _magnitude(f, system), exponent)
    return lifted(image, (f,), system, bound, count)


def powers_modulo(f: Array, g: Array, system: RNS, exponent: int, place: Place) -> Ints:
    """Powers of f modulo polynomials g whose leading coefficients are 1 or -1.

    If coefficients of g are at most C, each step of a division by g grows coefficients at most by the factor
    1 + C.
    """
    least = _check_monic("power_mod", g, system, place)

    def image(x: Array, y: Array, fields: PrimeFields) -> Array:
        return power_series.powers_modulo(x, y, exponent, fields, ALONE)

    steps = max(0, exponent * (f.shape[-1] - 1) - least + 1)
    bound = _checked_power("power_mod", f.shape[-1] * _magnitude(f, system), exponent)
    bound *= _checked_power("power_mod", 1 + _magnitude(g, system), steps)
    return lifted(image, (f, g), system, bound, max(g.shape[-1] - 1, 1))


# ---- division, values -------------------------------------------------------------------------------------


def divided(f: Array, g: Array, system: RNS, place: Place) -> Ints:
    """Divide by polynomials whose leading coefficients are 1 or -1: quotients, then remainders.

    ZeroDivisionError if a divisor is 0, NumberError if it has another leading coefficient; they name its
    index.
    """
    least = _check_monic("divmod", g, system, place)

    def image(x: Array, y: Array, fields: PrimeFields) -> Array:
        return polynomials.divided(x, y, fields.moduli, ALONE)

    steps = max(0, f.shape[-1] - least)
    bound = _magnitude(f, system) * (1 + _magnitude(g, system)) ** steps
    return lifted(image, (f, g), system, bound, f.shape[-1] + max(g.shape[-1] - 1, 1))


def values_at(f: Array, points: Array, system: RNS) -> Ints:
    """Values of polynomials at integers."""
    farthest = _magnitude(points, system)
    bound = _magnitude(f, system) * sum(farthest**k for k in range(f.shape[-1]))
    return lifted(polynomial_values.values_at, (f, points), system, bound, points.shape[-1])


def interpolated(points: Array, values: Array, system: RNS, place: Place) -> Ints:
    """Interpolate polynomials from values at points; their coefficients are rationals.

    J. Lagrange's formula: with M the product of all x - x_i and D the least common multiple of all M'(x_i), D
    times the polynomial is the sum of ``v_i D / M'(x_i) M / (x - x_i)``, whose coefficients are integers.
    ValueError if two points of a polynomial are equal; it names the index of the first.
    """
    length, batch = points.shape[-1], points.shape[1:-1]
    exact = np.asarray(system.decode(points), dtype=object).reshape(-1, length)
    scales, reach = [], 1
    for row, line in enumerate(exact.tolist()):
        _check_different(line, row, batch, place)
        scales.append(_common_slope(line))
        reach = max(reach, math.prod(1 + abs(x) for x in line))
    whole = math.prod(scales)
    scale = np.array(scales, dtype=object).reshape(*batch, 1)
    bound = length * max(1, _magnitude(values, system)) * max(scales, default=1) * reach

    def image(x: Array, y: Array, fields: PrimeFields) -> Array:
        found = polynomial_values.interpolated(x, y, fields, ALONE)
        words = np.asarray(fields.encode(scale), like=found)
        product: Array = fields.apply(rows.multiply, found, words)
        return product

    found = lifted(image, (points, values), system, bound, length, avoid=whole)
    return _in_lowest_terms(found, np.broadcast_to(scale, (*found.shape[1:-1], 1)))


def _check_different(points: list[int], row: int, batch: tuple[int, ...], place: Place) -> None:
    if len(set(points)) < len(points):
        equal = next(k for k, x in enumerate(points) if points.count(x) > 1)
        which = index_at(row * len(points) + equal, (*batch, len(points)), place)
        raise ValueError(f"points must be different, but that at index {which} equals another")


def _common_slope(points: list[int]) -> int:
    """Least common multiple, over all points, of the product of differences from the other points."""
    common = gmpy2.mpz(1)
    for i, x in enumerate(points):
        common = gmpy2.lcm(
            common, math.prod((x - y for k, y in enumerate(points) if k != i), start=gmpy2.mpz(1))
        )
    return int(common)


# ---- common divisors --------------------------------------------------------------------------------------


def common_divisors(f: Array, g: Array, system: RNS) -> Ints:
    """Greatest common divisors over the integers, with a positive leading coefficient; 0 for two zeros.

    Let b be the greatest common divisor of the leading coefficients. A prime that does not divide b gives a
    divisor of too high a degree only if it divides a subresultant, which is at most Sylvester's bound. Primes
    are taken until their product exceeds the product of b, this bound, and twice M. Mignotte's bound (1974)
    of a factor's coefficients; then the primes of least degree have a product beyond the last.
    """
    x, y, batch = polynomials.stacks(f, g)
    length = max(f.shape[-1], g.shape[-1])
    magnitudes = _magnitude(x, system), _magnitude(y, system)
    m, n, greatest = f.shape[-1] - 1, g.shape[-1] - 1, max(1, *magnitudes)
    squares = ((d + 1) * magnitude**2 for d, magnitude in zip((m, n), magnitudes, strict=True))
    factor = 2 ** min(m, n) * (math.isqrt(length) + 1) * greatest
    limit = greatest * sylvester_bound(m, n, *squares) * (2 * factor + 1)
    lists = [np.asarray(system.decode(v), dtype=object).tolist() for v in (x, y)]
    parts = [primes(start, size) for start, size in parts_of(x, 0, count_beyond(limit))]
    words = [
        polynomials.common_divisors(modulo_primes(x, system, part), modulo_primes(y, system, part), part)
        for part in parts
    ]
    residues = to_backend(np.concatenate(words), "cpu")
    degrees = polynomials.degrees_of(residues)
    moduli = [p for part in parts for p in part]
    found = np.zeros((x.shape[1], length), dtype=object)
    for k, pair in enumerate(zip(*lists, strict=True)):
        found[k] = _common_divisor(pair, residues[:, k], degrees[:, k], moduli)
    return found.reshape(1, *batch, length)


def _common_divisor(pair: Any, images: Any, degrees: Any, moduli: list[int]) -> list[int]:
    """Greatest common divisor of a pair of coefficient lists, from monic divisors modulo primes."""
    content = math.gcd(*pair[0], *pair[1])
    if content == 0:
        return [0] * images.shape[-1]
    leading = math.gcd(*(next((c for c in reversed(line) if c), 0) for line in pair))
    good = np.array([leading % p != 0 for p in moduli])
    good &= degrees == degrees[good].min()
    kept = [p for p, is_good in zip(moduli, good.tolist(), strict=True) if is_good]
    residues = images[good][:, None]
    lifted = integers_of([residues], lambda start, count: unchecked_set(kept[start : start + count]))[0]
    product = unchecked_set(kept).product
    scaled = [int(value) * leading % product for value in lifted.tolist()]
    values = [value - product if 2 * value > product else value for value in scaled]
    own = math.gcd(*values)
    return [value // own * content for value in values]


# ---- shared helpers ----------------------------------------------------------------------------------------


def lifted(
    image: Image, operands: tuple[Array, ...], system: RNS, bound: int, length: int, avoid: int = 1
) -> Ints:
    """Integers (1, *batch, length) of magnitude up to a bound, from images modulo primes.

    Primes that divide the integer `avoid` are left out.
    """
    batch = np.broadcast_shapes(*(x.shape[1:-1] for x in operands))
    if 0 in batch or length == 0:
        return np.zeros((1, *batch, length), dtype=object)
    largest = max(operands, key=lambda x: x.size)
    residues, kept = [], list[int]()
    rest, first = gmpy2.mpz(2 * bound + 1), 0
    while rest:  # once, unless primes are left out
        count = count_beyond(int(rest), first)
        for start, size in parts_of(largest, first, count):
            part = primes(start, size)
            if avoid != 1:
                part = _without_divisors(part, avoid)
            if len(part) == 0:
                continue
            words = [modulo_primes(x, system, part) for x in operands]
            residues.append(image(*words, fields_of(part)))
            kept += part
            rest //= part.product
        first += count
    return integers_of(residues, lambda start, count: unchecked_set(kept[start : start + count]))[None]


def _without_divisors(part: ModuliSet, number: int) -> ModuliSet:
    value = gmpy2.mpz(number)
    return unchecked_set(p for p in part if value % p)


def _magnitude(words: Array, system: RNS) -> int:
    """Upper bound of the magnitudes in a chunk, which may be empty."""
    return magnitude_of(words, system) if words.size else 0


def _checked_power(name: str, base: int, exponent: int) -> int:
    """Return a power that bounds results; NumberError if it is longer than any number of an array."""
    if exponent * (base.bit_length() - 1) > MOST_BITS:
        raise NumberError(
            f"{name}: by their bound, results may have more than {MOST_BITS} bits; over rd.PrimeFields they "
            "are computed modulo primes alone"
        )
    return int(base**exponent)


def _times(words: Array, value: int, fields: PrimeFields) -> Array:
    column = np.asarray(fields.column(value, words.ndim - 1), like=words)
    found: Array = fields.apply(rows.multiply, words, column)
    return found


def _in_lowest_terms(numerators: Ints, denominators: Any) -> Ints:
    """Reduce numerators (1, *batch, length) over denominators to lowest terms; these end the rows."""
    below = np.broadcast_to(np.asarray(denominators, dtype=object), (*numerators.shape[:-1], 1))
    packed = np.concatenate([numerators, below], axis=-1)
    for index in np.ndindex(packed.shape[:-1]):
        common = math.gcd(*packed[index].tolist())
        if common > 1:
            packed[index] //= common
    return packed


def _check_constants(name: str, allowed: tuple[int, ...], f: Array, system: RNS, place: Place) -> None:
    """Raise NumberError unless all constant terms are among those allowed."""
    _check_allowed(f"{name}: the constant term", f[..., :1], allowed, system, place)


def _check_monic(name: str, g: Array, system: RNS, place: Place) -> int:
    """Check that the leading coefficients of divisors are 1 or -1, and return the least degree."""
    if 0 in g.shape:
        return 0
    degrees = to_backend(polynomials.degrees_of((g != 0).any(axis=0)[None])[0], "cpu")
    if (degrees < 0).any():
        index = index_at(int((degrees < 0).reshape(-1).argmax()), g.shape[1:-1], place)
        raise ZeroDivisionError(f"{name}: the divisor{f' at index {index}' if index else ''} is 0")
    where = np.asarray(np.broadcast_to(degrees[None, ..., None], (len(g), *degrees.shape, 1)), like=g)
    leading = np.take_along_axis(g, where.astype(np.int64), axis=-1)
    what, way_out = f"{name}: the leading coefficient", "; over rd.PrimeFields it may be any but 0"
    _check_allowed(what, leading, (1, -1), system, place, way_out)
    return int(degrees.min())


def _check_allowed(
    what: str, words: Array, allowed: tuple[int, ...], system: RNS, place: Place, way_out: str = ""
) -> None:
    """Raise NumberError unless numbers (n, *batch, 1) are among those allowed; it names the first."""
    for k, value in enumerate(np.asarray(system.decode(words), dtype=object).reshape(-1).tolist()):
        if value not in allowed:
            index = index_at(k, words.shape[1:-1], place)
            where = f" at index {index}" if index else ""
            rule = " or ".join(map(str, allowed))
            raise NumberError(f"{what}{where} must be {rule}, got {abbreviate(value)}{way_out}")
