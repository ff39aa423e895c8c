"""Laws of polynomials of elements of fields and of integers: products, values, divisions, resultants."""

from collections.abc import Callable
from typing import Any

import numpy as np
from oracles.integers import objects

import rnsdask as rd
from laws.case import FIELDS, RESIDUES, Case, computed, law_of, must_fail
from laws.fields import sizes_of
from laws.linear_algebra import determinant


def polynomial(case: Case, length: int) -> np.ndarray:
    """Coefficients, the greatest of which has an inverse in all fields."""
    values = case.numbers((length,))
    values[-1] = 1 % case.limits.product
    return values


def horner(coefficients: list[int], point: int, size: int) -> int:
    value = 0
    for coefficient in reversed(coefficients):
        value = (value * point + coefficient) % size
    return value


@law_of(*FIELDS)
def polynomials_of_elements_divide(case: Case) -> None:
    random = case.random
    size = case.limits.product
    lengths = [random.choice((1, 2, 3, 8, 17, 33, 70)) for _ in range(2)]
    f, g = (polynomial(case, length) for length in lengths)
    points = case.numbers((random.randint(1, 20),))
    case.note("f", f)
    case.note("g", g)
    x, y, z = (case.array(v, whole_axes=1) for v in (f, g, points))
    exact = np.convolve(f, g) % size
    make: Callable[[Any, Any], Any] = random.choice((rd.poly.multiply, rd.convolve))
    case.claim_array(make(x, y), exact, "product")
    at_points = [horner(f.tolist(), point, size) for point in points.tolist()]
    case.claim_array(rd.poly.evaluate(x, z), objects(at_points), "values")
    quotient, rest = (part.to_ints() for part in rd.poly.divmod(x, y))
    assert len(rest) < max(len(g), 2), "the remainder is too long"
    again = np.zeros(max(len(f), len(g), len(quotient) + len(g) - 1, len(rest)), dtype=object)
    whole_part = np.convolve(quotient, g) if quotient.size else objects([0])
    again[: len(whole_part)] += whole_part
    again[: len(rest)] += rest
    padded = np.zeros_like(again)
    padded[: len(f)] = f
    case.claim(again % size, padded % size, "quotient * divisor + remainder")


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


def drawn(case: Case, shape: tuple[int, ...]) -> np.ndarray:
    """Coefficients with zeros at the end of some polynomials, and some polynomials 0."""
    random = case.random
    values = case.numbers(shape)
    if random.random() < 0.4:
        values[..., random.randrange(shape[-1]) :] = 0
    return values


def batches(case: Case, most: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Shapes of two arrays of polynomials that broadcast."""
    random = case.random
    lengths = [random.randint(1, most) for _ in range(2)]
    batch = random.choice(((), (1,), (3,), (2, 2)))
    other = random.choice((batch, batch, (), (1,) * len(batch)))
    return (*batch, lengths[0]), (*other, lengths[1])


def pairs(f: np.ndarray, g: np.ndarray, axes: int = 1) -> tuple[tuple[int, ...], list[tuple[Any, Any]]]:
    """The shape of a batch, and its pairs of polynomials as lists."""
    batch = np.broadcast_shapes(f.shape[:-axes], g.shape[:-axes])
    both = [np.broadcast_to(v, (*batch, *v.shape[-axes:])).reshape(-1, *v.shape[-axes:]) for v in (f, g)]
    return batch, list(zip(*(v.tolist() for v in both), strict=True))


def claim_batch(case: Case, got: Any, expected: list[int], batch: tuple[int, ...], what: str) -> None:
    """Claim Python ints of a batch, or the only one."""
    case.claim(got, objects(expected, batch), what)


@law_of(*RESIDUES)
def resultants_are_determinants(case: Case) -> None:
    """Resultants of integer polynomials as determinants of Sylvester's matrix, and discriminants."""
    shapes = batches(case, 5)
    f, g = (case.fresh(shape, name) for shape, name in zip(shapes, "fg", strict=True))
    batch, both = pairs(f.values, g.values)
    claim_batch(case, rd.poly.resultant(f.array, g.array), [resultant(*p) for p in both], batch, "resultant")
    batch, alone = pairs(f.values, f.values)
    found = [discriminant(v) for v, _ in alone]
    claim_batch(case, rd.poly.discriminant(f.array), found, batch, "discriminant")


@law_of(*RESIDUES)
def resultants_in_two_variables_have_their_values(case: Case) -> None:
    """By what they are at as many x as they have coefficients."""
    random = case.random
    shapes = [(*shape[:-1], random.randint(1, 4), shape[-1]) for shape in batches(case, 3)]
    numbers = [case.numbers(shape) for shape in shapes]
    for values in numbers:
        if random.random() < 0.2 and case.limits.holds(0):
            values[..., -1, :] = 0
    f, g = (case.chosen(values, name) for values, name in zip(numbers, "fg", strict=True))
    batch, both = pairs(f.values, g.values, axes=2)
    (m, a), (n, c) = (shape[-2:] for shape in shapes)
    length = (n - 1) * (a - 1) + (m - 1) * (c - 1) + 1
    got = np.asarray(computed(rd.poly.resultant(f.array, g.array, variables=2)))
    assert got.shape == (*batch, length), f"shape {got.shape}"
    for coefficients, (left, right) in zip(got.reshape(-1, length).tolist(), both, strict=True):
        left, right = (trimmed([row if any(row) else 0 for row in rows]) for rows in (left, right))
        for x in range(length):
            at_x = [
                [sum(v * x**j for j, v in enumerate(row)) if row else 0 for row in r] for r in (left, right)
            ]
            exact = determinant(sylvester(*at_x)) if left and right else 0
            assert sum(v * x**j for j, v in enumerate(coefficients)) == exact, f"R({x}) is wrong"


@law_of(*FIELDS)
def resultants_and_divisors_in_fields(case: Case) -> None:
    """Resultants, discriminants and greatest common divisors, whose degrees differ from prime to prime."""
    random = case.random
    size = case.limits.product
    shapes = batches(case, 5)
    f, g = (drawn(case, shape) for shape in shapes)
    if random.random() < 0.5:  # a common factor
        common = drawn(case, (random.randint(1, 4),))
        f, g = (np.apply_along_axis(np.convolve, -1, v, common) % size for v in (f, g))
    case.note("f", f)
    case.note("g", g)
    x, y = (case.array(v, whole_axes=random.randint(0, 1)) for v in (f, g))
    batch, both = pairs(f, g)
    got = computed(rd.poly.resultant(x, y))
    results = got.to_ints() if batch else objects([int(got)], ())
    of_f = computed(rd.poly.discriminant(x))
    discriminants = of_f.to_ints() if f.ndim > 1 else objects([int(of_f)], ())
    divisors = rd.poly.gcd(x, y).to_ints()
    width = max(f.shape[-1], g.shape[-1])
    assert divisors.shape == (*batch, width), f"shape {divisors.shape} of divisors"
    for p in sizes_of(case):
        modulo = [[[v % p for v in one] for one in pair] for pair in both]
        case.claim(results % p, objects((resultant(*pair) % p for pair in modulo), batch), f"R modulo {p}")
        expected = objects((discriminant([v % p for v in one], p) for one, _ in pairs(f, f)[1]), f.shape[:-1])
        case.claim(discriminants % p, expected, f"discriminants modulo {p}")
        if case.system.kind != "fermat":
            for i, pair in enumerate(modulo):
                divisor = [*greatest_divisor(*pair, p), *[0] * width][:width]
                case.claim(divisors.reshape(-1, width)[i] % p, objects(divisor), f"divisor {i} modulo {p}")


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


@law_of(*FIELDS)
def interpolated_polynomials_have_the_values(case: Case) -> None:
    """Polynomials by their values at the points, and values at others, of batches that broadcast."""
    random = case.random
    size = case.limits.product
    shape, others = batches(case, 9)
    length = shape[-1]
    x, z = drawn(case, (*others[:-1], length)), drawn(case, others)
    if random.random() < 0.7:
        x = np.zeros_like(x) + objects(
            random.sample(range(min(size, 10**6)), length) if size > 10 else [0] * length
        )
    y = drawn(case, shape)
    for name, values in (("points", x), ("values", y), ("others", z)):
        case.note(name, values)
    points, values, at = (case.array(v, whole_axes=random.randint(0, 1)) for v in (x, y, z))
    primes = sizes_of(case)
    if any(len({v % p for v in row}) < length for row in x.reshape(-1, length).tolist() for p in primes):
        must_fail(lambda: rd.poly.interpolate(points, values), ValueError, "equal points")
        return
    got = rd.poly.interpolate(points, values)
    batch, both = pairs(got.to_ints(), x)
    assert got.shape == (*np.broadcast_shapes(x.shape[:-1], y.shape[:-1]), length), f"shape {got.shape}"
    wanted = np.broadcast_to(y, got.shape).reshape(-1, length)
    for (f, at_points), expected in zip(both, wanted, strict=True):
        case.claim(objects(horner(f, point, size) for point in at_points), expected, "values")
    batch, both = pairs(y, z)
    expected = [horner(f, point, size) for f, row in both for point in row]
    case.claim_array(rd.poly.evaluate(values, at), objects(expected, (*batch, z.shape[-1])))
