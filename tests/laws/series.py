"""Laws of power series, rational functions, and of division, divisors and values over the integers."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from oracles.integers import objects

import rnsdask as rd
from laws.case import FIELDS, RESIDUES, Case, Chosen, computed, law_of, must_fail
from laws.fields import sizes_of
from laws.polynomials import batches, drawn, horner, pairs, trimmed

Invert = Callable[[Any], Any]


def product(f: list[Any], g: list[Any], length: int | None = None) -> list[Any]:
    full = len(f) + len(g) - 1
    found = [0] * (full if length is None else length)
    for i, a in enumerate(f[: len(found)]):
        for j, b in enumerate(g[: len(found) - i]):
            found[i + j] += a * b
    return found


def to_length(f: list[Any], length: int) -> list[Any]:
    return [*f, *[0] * length][:length]


def inverse(f: list[Any], length: int, invert: Invert) -> list[Any]:
    """The series 1 / f, with a function that inverts numbers."""
    f, first = to_length(f, length), invert(f[0])
    found = [first]
    for k in range(1, length):
        found.append(-sum(f[i] * found[k - i] for i in range(1, k + 1)) * first)
    return found


def logarithm(f: list[Any], length: int, invert: Invert) -> list[Any]:
    slopes = [k * c for k, c in enumerate(to_length(f, length))][1:]
    quotients = product(slopes, inverse(f, length, invert), length - 1) if slopes else []
    return [0, *(c * invert(k) for k, c in enumerate(quotients, 1))]


def exponential(f: list[Any], length: int, invert: Invert) -> list[Any]:
    f, found = to_length(f, length), [1]
    for k in range(1, length):
        found.append(sum(i * f[i] * found[k - i] for i in range(1, k + 1)) * invert(k))
    return found


def composed(f: list[Any], g: list[Any], length: int) -> list[Any]:
    found = [0] * length
    for c in reversed(f):
        found = product(found, g, length)
        found[0] += c
    return found


def divided(f: list[Any], g: list[Any], invert: Invert) -> tuple[list[Any], list[Any]]:
    """Quotient and remainder, the one as long as f."""
    f, g = list(f), trimmed(g)
    quotient, leading = [0] * len(f), invert(g[-1])
    for k in range(len(f) - len(g), -1, -1):
        quotient[k] = f[k + len(g) - 1] * leading
        for i, c in enumerate(g):
            f[k + i] -= quotient[k] * c
    return quotient, f[: len(g) - 1]


def power_modulo(f: list[Any], exponent: int, g: list[Any], invert: Invert) -> list[Any]:
    found: list[Any] = divided([1], g, invert)[1]
    for _ in range(exponent):
        found = divided(product(found, f), g, invert)[1] if found else []
    return found


SERIES: dict[str, tuple[Callable[..., list[Any]], tuple[int, ...]]] = {
    "inverse_series": (inverse, (1, -1)),
    "log_series": (logarithm, (1,)),
    "exp_series": (exponential, (0,)),
}


def length_for(case: Case, own: int) -> int | None:
    return case.random.choice((None, 1, own, own + 1, case.random.randint(1, 12)))


# ---- over fields -------------------------------------------------------------------------------------------


def residue(value: Any, size: int) -> int:
    return int(value) % size


@law_of(*FIELDS)
def series_of_elements_are_those_of_numbers(case: Case) -> None:
    """Inverses, logarithms and exponentials, of which some do not exist."""
    random = case.random
    size = case.limits.product
    name = random.choice(tuple(SERIES))
    function, constants = SERIES[name]
    shape = batches(case, 9)[0]
    f = drawn(case, shape)
    if random.random() < 0.9:
        units = [1, size - 1] if name == "inverse_series" else constants
        f[..., 0] = objects((random.choice(units) % size for _ in range(math.prod(shape[:-1]))), shape[:-1])
    length = length_for(case, shape[-1])
    for what, value in (("f", f), ("function, length", (name, length))):
        case.note(what, value)
    x = case.array(f, whole_axes=random.randint(0, 1))
    call = lambda: getattr(rd.poly, name)(x, length)  # noqa: E731
    count = length or shape[-1]
    rows = f.reshape(-1, shape[-1]).tolist()
    primes = sizes_of(case)
    if name != "inverse_series" and min(primes) < count:
        must_fail(call, ValueError, "a prime below the length")
        return
    firsts = [row[0] for row in rows]
    if name == "inverse_series" and any(math.gcd(c, size) != 1 for c in firsts):
        must_fail(call, ZeroDivisionError, "a constant term without an inverse")
        return
    if name != "inverse_series" and any((c - constants[0]) % size for c in firsts):
        must_fail(call, ValueError, "another constant term")
        return
    invert = lambda v: pow(int(v), -1, size)  # noqa: E731
    expected = [residue(c, size) for row in rows for c in function(row, count, invert)]
    case.claim_array(call(), objects(expected, (*shape[:-1], count)), name)


@law_of(*FIELDS)
def compositions_and_powers_are_products(case: Case) -> None:
    random = case.random
    size = case.limits.product
    shapes = batches(case, 7)
    f, g = (drawn(case, shape) for shape in shapes)
    length, exponent = length_for(case, shapes[0][-1]), random.choice((0, 1, 2, 3, 7))
    for what, value in (
        ("f", f),
        ("g", g),
        ("length", length),
        ("exponent", exponent),
    ):
        case.note(what, value)
    x, y = (case.array(v, whole_axes=random.randint(0, 1)) for v in (f, g))
    batch, both = pairs(f, g)
    count = length or (f.shape[-1] - 1) * (g.shape[-1] - 1) + 1
    values = [residue(c, size) for a, b in both for c in composed(a, b, count)]
    case.claim_array(rd.poly.compose(x, y, length), objects(values, (*batch, count)), "compose")
    slopes = objects(
        (residue(k * c, size) for a, _ in pairs(f, f)[1] for k, c in enumerate(a) if k or len(a) == 1)
    )
    wide = max(f.shape[-1] - 1, 1)
    case.claim_array(rd.poly.derivative(x), slopes.reshape(*f.shape[:-1], wide), "derivative")
    own = length or f.shape[-1]
    powers = [residue(c, size) for a, _ in pairs(f, f)[1] for c in composed([0] * exponent + [1], a, own)]
    got = rd.poly.power_mod(x, exponent, length=own)
    case.claim_array(got, objects(powers, (*f.shape[:-1], own)), "power_mod of series")
    primes = sizes_of(case)
    call = lambda: rd.poly.power_mod(x, exponent, y)  # noqa: E731
    if any(not any(c % p for c in b) for _, b in both for p in primes):
        must_fail(call, ZeroDivisionError, "a modulus of 0")
        return
    got, width = call().to_ints(), max(g.shape[-1] - 1, 1)
    for p in primes:
        invert = lambda v, p=p: pow(int(v), -1, p)  # noqa: E731
        expected = []
        for a, b in both:
            rest = power_modulo(a, exponent, trimmed([c % p for c in b]), invert)
            expected += to_length([residue(c, p) for c in rest], width)
        case.claim(got % p, objects(expected, (*batch, width)), f"power_mod modulo {p}")


@law_of(*FIELDS)
def rational_functions_have_the_values(case: Case) -> None:
    """Functions from values at points; any that is found has the values, and is in lowest terms."""
    random = case.random
    size = case.limits.product
    primes = sizes_of(case)
    if min(primes) < 100:
        return
    m, n, extra = random.randint(0, 3), random.randint(0, 3), random.randint(0, 2)
    length = m + n + 1 + extra
    top, bottom = drawn(case, (m + 1,)), drawn(case, (n + 1,))
    points = random.sample(range(min(*primes, 2**62)), length)
    case.note("numerator, denominator, points", (top.tolist(), bottom.tolist(), points))
    below = [horner(bottom.tolist(), x, size) for x in points]
    is_function = all(math.gcd(v, size) == 1 for v in below)
    if is_function and random.random() < 0.8:
        values = [
            horner(top.tolist(), x, size) * pow(v, -1, size) % size
            for x, v in zip(points, below, strict=True)
        ]
    else:
        values, is_function = case.numbers((length,)).tolist(), False
    x, y = (case.array(objects(v), whole_axes=1) for v in (points, values))
    call = lambda: rd.poly.rational_interpolate(x, y, numerator_degree=m, denominator_degree=n)  # noqa: E731
    try:
        numerators, denominators = (computed(part).to_ints().tolist() for part in call())
    except rd.RNSError:
        assert not is_function, "a function is not found"
        return
    assert (len(numerators), len(denominators)) == (m + 1, n + 1), "other lengths"
    for p in primes:
        f, g = (trimmed([c % p for c in v]) for v in (numerators, denominators))
        assert g[-1:] == [1], f"a denominator is not monic modulo {p}"
        for point, value in zip(points, values, strict=True):
            left, right = horner(f, point, p), horner(g, point, p)
            assert right, f"a pole at {point} modulo {p}"
            assert (left - value * right) % p == 0, f"another value at {point} modulo {p}"
        invert = lambda v, p=p: pow(int(v), -1, p)  # noqa: E731
        while f:  # Euclid's algorithm, to a constant
            f, g = trimmed([c % p for c in divided(g, f, invert)[1]]), f
        assert len(g) == 1, f"numerator and denominator have a common factor modulo {p}"


# ---- over the integers -------------------------------------------------------------------------------------


def one_of(x: Any) -> Fraction:
    return 1 / Fraction(x)


@law_of(*RESIDUES)
def series_of_integers_are_rational(case: Case) -> None:
    """Inverses of integer series as integers, logarithms and exponentials as rationals."""
    random = case.random
    name = random.choice(tuple(SERIES))
    function, constants = SERIES[name]
    shape = batches(case, 5)[0]
    values = case.numbers(shape)
    if not all(case.limits.holds(c) for c in (0, 1)):
        return
    if random.random() < 0.9:
        allowed = [c for c in constants if case.limits.holds(c)]
        values[..., 0] = objects((random.choice(allowed) for _ in range(math.prod(shape[:-1]))), shape[:-1])
    f = case.chosen(values, "f")
    length = random.choice((None, 1, shape[-1], random.randint(1, 6)))
    case.note("function, length", (name, length))
    call = lambda: getattr(rd.poly, name)(f.array, length)  # noqa: E731
    count = length or shape[-1]
    rows = f.values.reshape(-1, shape[-1]).tolist()
    if any(row[0] not in constants for row in rows):
        must_fail(call, ValueError, "another constant term")
        return
    expected = objects(
        (Fraction(c) for row in rows for c in function(row, count, one_of)), (*shape[:-1], count)
    )
    if name == "inverse_series":
        case.claim(call(), expected, name)
    else:
        claim_rationals(case, call(), expected, name)


def claim_rationals(case: Case, got: Any, expected: np.ndarray, what: str) -> None:
    """Claim numerators and the least denominator of each row."""
    numerators, denominators = (np.asarray(computed(part), dtype=object) for part in got)
    assert numerators.shape == expected.shape, f"{what}: shape {numerators.shape}"
    assert denominators.shape == expected.shape[:-1], f"{what}: shape {denominators.shape} of denominators"
    below = np.broadcast_to(denominators[..., None], expected.shape)
    for row, factor in zip(
        numerators.reshape(-1, expected.shape[-1]).tolist(), denominators.ravel().tolist(), strict=True
    ):
        assert factor > 0, f"{what}: a denominator is not positive"
        assert math.gcd(factor, *row) == 1, f"{what}: a denominator is not the least"
    case.claim(numerators, expected * below, what)


@law_of(*RESIDUES)
def polynomials_of_integers_divide(case: Case) -> None:
    """Quotients, divisors, values, compositions and powers of integer polynomials."""
    random = case.random
    shapes = batches(case, 5)
    f, g = (case.fresh(shape, name) for shape, name in zip(shapes, "fg", strict=True))
    batch, both = pairs(f.values, g.values)
    exponent = random.choice((0, 1, 2, 3))
    full = (shapes[0][-1] - 1) * (shapes[1][-1] - 1) + 1
    expected = objects((c for a, b in both for c in composed(a, b, full)), (*batch, full))
    case.claim(rd.poly.compose(f.array, g.array), expected, "compose")
    expected = objects((exact(b, x) for b, a in both for x in a), (*batch, shapes[1][-1]))
    case.claim(rd.poly.evaluate(f.array, g.array), expected, "evaluate")
    own = shapes[0][-1] + 1
    rows = f.values.reshape(-1, shapes[0][-1]).tolist()
    powers = objects(
        (c for a in rows for c in composed([0] * exponent + [1], a, own)), (*shapes[0][:-1], own)
    )
    case.claim(rd.poly.power_mod(f.array, exponent, length=own), powers, "power_mod of series")
    width = max(shape[-1] for shape in shapes)
    got = np.asarray(computed(rd.poly.gcd(f.array, g.array)), dtype=object)
    assert got.shape == (*batch, width), f"shape {got.shape} of divisors"
    for divisor, (a, b) in zip(got.reshape(-1, width).tolist(), both, strict=True):
        assert trimmed(divisor) == common_divisor(a, b), f"gcd: {divisor}"
    claim_divisions(case, f, g, exponent)


def exact(f: list[int], x: int) -> int:
    value = 0
    for c in reversed(f):
        value = value * x + c
    return value


def common_divisor(f: list[int], g: list[int]) -> list[int]:
    """By Euclid's algorithm over the rationals, with the content of both."""
    content, (a, b) = math.gcd(*f, *g), (trimmed([Fraction(c) for c in v]) for v in (f, g))
    while b:
        a, b = b, trimmed(divided(a, b, one_of)[1])
    if not a:
        return []
    scale = math.lcm(*(c.denominator for c in a))
    values = [int(c * scale) for c in a]
    own = math.gcd(*values) * (1 if values[-1] > 0 else -1)
    return [v // own * content for v in values]


def claim_divisions(case: Case, f: Chosen, g: Chosen, exponent: int) -> None:
    """Quotients, remainders and powers by divisors that are mostly monic."""
    random = case.random
    if random.random() < 0.9 and all(case.limits.holds(c) for c in (0, 1)):
        k = random.randrange(g.values.shape[-1])
        g.values[..., k:] = 0
        g.values[..., k] = -1 if case.limits.holds(-1) and random.random() < 0.5 else 1
        g = case.chosen(g.values, "divisors")
    batch, both = pairs(f.values, g.values)
    leading = [(trimmed(b) or [0])[-1] for _, b in both]
    call = lambda: rd.poly.divmod(f.array, g.array)  # noqa: E731
    if any(c not in (1, -1) for c in leading):
        must_fail(call, (ZeroDivisionError, ValueError), "a divisor that is not monic")
        return
    width = max(g.values.shape[-1] - 1, 1)
    divisions = [divided(a, b, one_of) for a, b in both]
    quotients, rests = call()
    expected = objects((c for q, _ in divisions for c in q), (*batch, f.values.shape[-1]))
    case.claim(quotients, expected, "quotients")
    case.claim(
        rests, objects((c for _, r in divisions for c in to_length(r, width)), (*batch, width)), "rests"
    )
    powers = [to_length(power_modulo(a, exponent, trimmed(b), one_of), width) for a, b in both]
    got = rd.poly.power_mod(f.array, exponent, g.array)
    case.claim(got, objects((c for row in powers for c in row), (*batch, width)), "power_mod")


@law_of(*RESIDUES)
def interpolated_polynomials_of_integers_have_the_values(case: Case) -> None:
    random = case.random
    length = random.randint(1, 5)
    x, y = (case.fresh((length,), name) for name in ("points", "values"))
    points, values = x.values.tolist(), y.values.tolist()
    call = lambda: rd.poly.interpolate(x.array, y.array)  # noqa: E731
    if len(set(points)) < length:
        must_fail(call, ValueError, "equal points")
        return
    found = [Fraction(0)] * length
    for i, (point, value) in enumerate(zip(points, values, strict=True)):
        term = [Fraction(value)]
        for other in points[:i] + points[i + 1 :]:
            term = [c / (point - other) for c in product(term, [-other, 1])]
        found = [a + b for a, b in zip(found, term, strict=True)]
    claim_rationals(case, call(), objects(found), "interpolate")
