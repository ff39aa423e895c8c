"""Polynomials of elements of fields and of integers."""

import math
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
from oracles.integers import objects

import rnsdask as rd
from fuzzing.case import Case
from fuzzing.checking import computed, must_fail, operation, require, same_array
from fuzzing.fields import ANY, array_of, element, field_of, same
from fuzzing.linear_algebra import determinant


def polynomial(rng: Random, size: int, length: int) -> np.ndarray:
    """Coefficients, the greatest of which has an inverse in all fields."""
    values = [element(rng, size) for _ in range(length)]
    return objects([*values[:-1], 1 % size])


def horner(coefficients: list[int], point: int, size: int) -> int:
    value = 0
    for coefficient in reversed(coefficients):
        value = (value * point + coefficient) % size
    return value


@operation("fields: polynomials", ANY)
def check_polynomials(case: Case, rng: Random) -> int:
    field, size = field_of(rng)
    case.note("field", repr(field))
    lengths = [rng.choice((1, 2, 3, 8, 17, 33, 70)) for _ in range(2)]
    f, g = (polynomial(rng, size, length) for length in lengths)
    points = objects(element(rng, size) for _ in range(rng.randint(1, 20)))
    case.note("f", f)
    case.note("g", g)
    x, y, z = (array_of(case, rng, field, v, whole_axes=1) for v in (f, g, points))
    exact = np.convolve(f, g) % size
    make: Callable[[Any, Any], Any] = rng.choice((rd.poly.multiply, rd.convolve))
    count = same(field, make(x, y), exact, "product")
    at_points = [horner(f.tolist(), point, size) for point in points.tolist()]
    count += same(field, rd.poly.evaluate(x, z), objects(at_points), "values")
    quotient, rest = (part.to_ints() for part in rd.poly.divmod(x, y))
    require(len(rest) < max(len(g), 2), "the remainder is too long")
    again = np.zeros(max(len(f), len(g), len(quotient) + len(g) - 1, len(rest)), dtype=object)
    whole_part = np.convolve(quotient, g) if quotient.size else objects([0])
    again[: len(whole_part)] += whole_part
    again[: len(rest)] += rest
    padded = np.zeros_like(again)
    padded[: len(f)] = f
    return count + same_array(again % size, padded % size, "quotient * divisor + remainder")


def trimmed(coefficients: list[int]) -> list[int]:
    """Without the zeros above the degree."""
    while coefficients and not coefficients[-1]:
        coefficients = coefficients[:-1]
    return coefficients


def sylvester(f: list[Any], g: list[Any]) -> list[list[Any]]:
    """The matrix of two polynomials of the degrees that their lengths say."""
    m, n = len(f) - 1, len(g) - 1
    rows = [[0] * i + f[::-1] + [0] * (n - 1 - i) for i in range(n)]
    return rows + [[0] * i + g[::-1] + [0] * (m - 1 - i) for i in range(m)]


def resultant(f: list[int], g: list[int]) -> int:
    f, g = trimmed(f), trimmed(g)
    return determinant(sylvester(f, g)) if f and g else 0


def discriminant(f: list[int], p: int | None = None) -> int:
    """Over the integers, or modulo a prime."""
    f = trimmed(f)
    m = len(f) - 1
    if m < 1:
        return 0
    found = (-1) ** (m * (m - 1) // 2) * determinant(sylvester(f, [k * c for k, c in enumerate(f)][1:]))
    return found // f[-1] if p is None else found * pow(f[-1], -1, p) % p


def drawn(rng: Random, size: int, shape: tuple[int, ...]) -> np.ndarray:
    """Coefficients with zeros at the end of some polynomials, and some polynomials 0."""
    values = objects((element(rng, size) for _ in range(math.prod(shape))), shape)
    if rng.random() < 0.4:
        values[..., rng.randrange(shape[-1]) :] = 0
    return values


def batches(rng: Random, most: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Shapes of two arrays of polynomials that broadcast."""
    lengths = [rng.randint(1, most) for _ in range(2)]
    batch = rng.choice(((), (1,), (3,), (2, 2)))
    other = rng.choice((batch, batch, (), (1,) * len(batch)))
    return (*batch, lengths[0]), (*other, lengths[1])


def pairs(f: np.ndarray, g: np.ndarray, axes: int = 1) -> tuple[tuple[int, ...], list[tuple[Any, Any]]]:
    """The shape of a batch, and its pairs of polynomials as lists."""
    batch = np.broadcast_shapes(f.shape[:-axes], g.shape[:-axes])
    both = [np.broadcast_to(v, (*batch, *v.shape[-axes:])).reshape(-1, *v.shape[-axes:]) for v in (f, g)]
    return batch, list(zip(*(v.tolist() for v in both), strict=True))


def of_batch(got: Any, expected: list[int], batch: tuple[int, ...], what: str) -> int:
    """Check Python ints of a batch, or the only one."""
    return same_array(computed(got), objects(expected, batch), what)


@operation("resultants")
def check_resultants(case: Case, rng: Random) -> int:
    """Resultants of integer polynomials as determinants of Sylvester's matrix, and discriminants."""
    shapes = batches(rng, 5)
    f, g = (case.fresh(rng, shape, name) for shape, name in zip(shapes, "fg", strict=True))
    batch, both = pairs(f.values, g.values)
    count = of_batch(rd.poly.resultant(f.array, g.array), [resultant(*p) for p in both], batch, "resultant")
    batch, alone = pairs(f.values, f.values)
    found = [discriminant(v) for v, _ in alone]
    return count + of_batch(rd.poly.discriminant(f.array), found, batch, "discriminant")


@operation("resultants in two variables")
def check_bivariate_resultants(case: Case, rng: Random) -> int:
    """By what they are at as many x as they have coefficients."""
    shapes = [(*shape[:-1], rng.randint(1, 4), shape[-1]) for shape in batches(rng, 3)]
    f, g = (case.fresh(rng, shape, name) for shape, name in zip(shapes, "fg", strict=True))
    for one in (f, g):
        if rng.random() < 0.2:
            one.values[..., -1, :] = 0
            one.array = rd.concatenate([one.array[..., :-1, :], rd.zeros_like(one.array[..., -1:, :])], -2)
    batch, both = pairs(f.values, g.values, axes=2)
    (m, a), (n, c) = (shape[-2:] for shape in shapes)
    length = (n - 1) * (a - 1) + (m - 1) * (c - 1) + 1
    got = np.asarray(computed(rd.poly.resultant(f.array, g.array, variables=2)))
    require(got.shape == (*batch, length), f"shape {got.shape}")
    for coefficients, (left, right) in zip(got.reshape(-1, length).tolist(), both, strict=True):
        left, right = (trimmed([row if any(row) else 0 for row in rows]) for rows in (left, right))
        for x in range(length):
            at_x = [
                [sum(v * x**j for j, v in enumerate(row)) if row else 0 for row in r] for r in (left, right)
            ]
            exact = determinant(sylvester(*at_x)) if left and right else 0
            require(sum(v * x**j for j, v in enumerate(coefficients)) == exact, f"R({x}) is wrong")
    return got.size


@operation("fields: resultants and divisors", ANY)
def check_field_resultants(case: Case, rng: Random) -> int:
    """Resultants, discriminants and greatest common divisors, whose degrees differ from prime to prime."""
    field, size = field_of(rng)
    shapes = batches(rng, 5)
    f, g = (drawn(rng, size, shape) for shape in shapes)
    if rng.random() < 0.5:  # a common factor
        common = drawn(rng, size, (rng.randint(1, 4),))
        f, g = (np.apply_along_axis(np.convolve, -1, v, common) % size for v in (f, g))
    case.note("field", repr(field))
    case.note("f", f)
    case.note("g", g)
    x, y = (array_of(case, rng, field, v, whole_axes=rng.randint(0, 1)) for v in (f, g))
    batch, both = pairs(f, g)
    got = computed(rd.poly.resultant(x, y))
    results = got.to_ints() if batch else objects([int(got)], ())
    of_f = computed(rd.poly.discriminant(x))
    discriminants = of_f.to_ints() if f.ndim > 1 else objects([int(of_f)], ())
    divisors = rd.poly.gcd(x, y).to_ints()
    width = max(f.shape[-1], g.shape[-1])
    require(divisors.shape == (*batch, width), f"shape {divisors.shape} of divisors")
    for p in [size] if isinstance(field, rd.FermatField) else field.primes:
        modulo = [[[v % p for v in one] for one in pair] for pair in both]
        same_array(results % p, objects((resultant(*pair) % p for pair in modulo), batch), f"R modulo {p}")
        expected = objects((discriminant([v % p for v in one], p) for one, _ in pairs(f, f)[1]), f.shape[:-1])
        same_array(discriminants % p, expected, f"discriminants modulo {p}")
        if isinstance(field, rd.PrimeFields):
            for i, pair in enumerate(modulo):
                divisor = [*greatest_divisor(*pair, p), *[0] * width][:width]
                same_array(divisors.reshape(-1, width)[i] % p, objects(divisor), f"divisor {i} modulo {p}")
    return len(both) * 3


def greatest_divisor(f: list[int], g: list[int], p: int) -> list[int]:
    """By Euclid's algorithm, with the leading coefficient 1."""
    f, g = trimmed(f), trimmed(g)
    while g:
        inverse = pow(g[-1], -1, p)
        while len(f) >= len(g):
            factor, shift = f[-1] * inverse, len(f) - len(g)
            f = [(v - factor * g[i - shift]) % p if i >= shift else v for i, v in enumerate(f)]
            f = trimmed(f)
        f, g = g, f
    return [v * pow(f[-1], -1, p) % p for v in f]


@operation("fields: interpolation", ANY)
def check_interpolation(case: Case, rng: Random) -> int:
    """Polynomials by their values at the points, and values at others, of batches that broadcast."""
    field, size = field_of(rng)
    shape, others = batches(rng, 9)
    length = shape[-1]
    x, z = drawn(rng, size, (*others[:-1], length)), drawn(rng, size, others)
    if rng.random() < 0.7:
        x = np.zeros_like(x) + objects(
            rng.sample(range(min(size, 10**6)), length) if size > 10 else [0] * length
        )
    y = drawn(rng, size, shape)
    for name, values in (("field", repr(field)), ("points", x), ("values", y), ("others", z)):
        case.note(name, values)
    points, values, at = (array_of(case, rng, field, v, whole_axes=rng.randint(0, 1)) for v in (x, y, z))
    primes = [size] if isinstance(field, rd.FermatField) else field.primes
    if any(len({v % p for v in row}) < length for row in x.reshape(-1, length).tolist() for p in primes):
        must_fail(lambda: rd.poly.interpolate(points, values), ValueError, "equal points")
        return 1
    got = rd.poly.interpolate(points, values)
    batch, both = pairs(got.to_ints(), x)
    require(got.shape == (*np.broadcast_shapes(x.shape[:-1], y.shape[:-1]), length), f"shape {got.shape}")
    wanted = np.broadcast_to(y, got.shape).reshape(-1, length)
    for (f, at_points), expected in zip(both, wanted, strict=True):
        same_array(objects(horner(f, point, size) for point in at_points), expected, "values")
    batch, both = pairs(y, z)
    expected = [horner(f, point, size) for f, row in both for point in row]
    return got.size + same(field, rd.poly.evaluate(values, at), objects(expected, (*batch, z.shape[-1])))
