"""Division, values, interpolation and common divisors of integer polynomials, against FLINT and fractions."""

import math
from fractions import Fraction
from typing import Any

import flint
import numpy as np
import pytest
from conftest import Processor

import rnsdask as rd
from rnsdask.fields import exact_polynomials
from rnsdask.rns import lift

LENGTHS = [(1, 1), (1, 4), (4, 1), (2, 2), (3, 2), (9, 4), (17, 16)]

pytestmark = pytest.mark.usefixtures("in_this_thread")


def integers(processor: Processor, values: Any, bits: int = 1024) -> Any:
    system = rd.ModuliSet.for_bits(bits)
    x = rd.from_ints(np.array(values, dtype=object), system, signed=True, chunks=None)
    return rd.from_residues(processor.xp.asarray(x.residues), system, signed=True)


def draw(rng: np.random.Generator, length: int, magnitude: int) -> list[int]:
    return [int(v) * magnitude // 2**30 for v in rng.integers(-(2**30), 2**30 + 1, length)]


def padded(polynomial: Any, length: int) -> list[int]:
    coefficients = [int(c) for c in polynomial.coeffs()]
    return coefficients + [0] * (length - len(coefficients))


@pytest.mark.parametrize("magnitude", [1, 9, 2**300], ids=["1", "9", "300 bits"])
@pytest.mark.parametrize(("first", "second"), LENGTHS)
def test_division(
    on_each_processor: Processor, first: int, second: int, magnitude: int, rng: np.random.Generator
) -> None:
    f = [draw(rng, first, magnitude) for _ in range(4)]
    g = [draw(rng, second, magnitude) for _ in range(4)]
    g[0][-1], g[1][-1], f[2] = 1, -1, [0] * first
    g[2], g[3] = [1] + [0] * (second - 1), [-magnitude] * (second - 1) + [1]
    f[3] = [magnitude] * first
    q, r = rd.poly.divmod(integers(on_each_processor, f), integers(on_each_processor, g))
    for k, (a, b) in enumerate(zip(f, g, strict=True)):
        quotient, rest = divmod(flint.fmpz_poly(a), flint.fmpz_poly(b))
        assert q[k].tolist() == padded(quotient, first)
        assert r[k].tolist() == padded(rest, max(1, second - 1))


@pytest.mark.parametrize(("length", "count"), [(1, 1), (1, 3), (8, 5), (33, 40)])
def test_values(on_each_processor: Processor, length: int, count: int, rng: np.random.Generator) -> None:
    f = [draw(rng, length, 2**200), [2**1000] * length, [0] * length]
    points = [[0, -1, 1, 2**60, -(2**60)][:count] + draw(rng, max(0, count - 5), 100)] * 3
    for shared in (False, True):
        x = integers(on_each_processor, points[0] if shared else points)
        found = rd.poly.evaluate(integers(on_each_processor, f), x)
        assert found.tolist() == [
            [sum(c * x**k for k, c in enumerate(line)) for x in own]
            for line, own in zip(f, points, strict=True)
        ]


@pytest.mark.parametrize("length", [1, 2, 3, 8, 17, 33])
def test_interpolation(on_each_processor: Processor, length: int, rng: np.random.Generator) -> None:
    points = [
        list(range(length)),
        [(-3) ** k for k in range(length)],
        [k * (2**31 - 1) for k in range(length)],
    ]
    values = [draw(rng, length, 2**100), [0] * length, draw(rng, length, 5)]
    x, y = (integers(on_each_processor, v) for v in (points, values))
    numerators, denominators = rd.poly.interpolate(x, y)
    for k, (own, line) in enumerate(zip(points, values, strict=True)):
        below, above = denominators.tolist()[k], numerators[k].tolist()
        assert below > 0
        assert math.gcd(below, *above) == 1
        assert [sum(Fraction(c, below) * p**i for i, c in enumerate(above)) for p in own] == line
    # One array of points serves for all, and one polynomial has one denominator.
    shared = rd.poly.interpolate(x[0], y)
    alone = [rd.poly.interpolate(x[0], y[k]) for k in range(3)]
    assert shared[0].tolist() == [above.tolist() for above, _ in alone]
    assert shared[1].tolist() == [below for _, below in alone]


def test_primes_that_divide_differences(monkeypatch: pytest.MonkeyPatch) -> None:
    """The greatest primes divide differences of points: they are left out, and others taken."""
    p, q = lift.primes(0, 2)
    x = rd.from_ints([0, p, p * q, 5], signed=True, chunks=None)
    y = rd.from_ints([1, -2, 3, 4], signed=True, chunks=None)
    numerators, below = rd.poly.interpolate(x, y)
    for point, value in zip(x.to_ints().tolist(), y.to_ints().tolist(), strict=True):
        assert sum(Fraction(c, below) * point**k for k, c in enumerate(numerators.tolist())) == value


@pytest.mark.parametrize("magnitude", [1, 9, 2**300], ids=["1", "9", "300 bits"])
@pytest.mark.parametrize(("first", "second"), LENGTHS)
def test_common_divisors(
    on_each_processor: Processor, first: int, second: int, magnitude: int, rng: np.random.Generator
) -> None:
    f = [draw(rng, first, magnitude) for _ in range(6)]
    g = [draw(rng, second, magnitude) for _ in range(6)]
    f[0], g[1], f[2], g[2] = [0] * first, [0] * second, [0] * first, [0] * second
    f[3], g[3] = [6 * c for c in f[3]], [-4 * c for c in g[3]]
    f[4][-1] = g[4][-1] = 0
    if min(first, second) > 2:
        factor = flint.fmpz_poly([*draw(rng, 2, magnitude), -3])
        f[5] = padded(flint.fmpz_poly(f[5][: first - 2]) * factor, first)
        g[5] = padded(flint.fmpz_poly(g[5][: second - 2]) * factor, second)
    found = rd.poly.gcd(integers(on_each_processor, f), integers(on_each_processor, g))
    for k, (a, b) in enumerate(zip(f, g, strict=True)):
        expected = padded(flint.fmpz_poly(a).gcd(flint.fmpz_poly(b)), max(first, second))
        assert found[k].tolist() == expected


def test_unlucky_primes() -> None:
    """Primes that divide leading coefficients, or make coprime polynomials alike."""
    p, q, r = lift.primes(0, 3)
    pairs = [
        ([p * q, 1], [0, 1]),  # x + p q and x are equal modulo p and q
        ([1, p], [1, p * r]),
        ([p, 0, p * q], [p * p, 0, p * p * q]),
        ([-1, 0, 1], [-1 - p * q, p * q, 1]),  # (x - 1) (x + 1) and (x - 1) (x + 1 + p q)
        ([1, 1, p], [2, p]),
    ]
    for f, g in pairs:
        length = max(len(f), len(g))
        expected = padded(flint.fmpz_poly(f).gcd(flint.fmpz_poly(g)), length)
        x, y = (rd.from_ints(v, signed=True, chunks=None) for v in (f, g))
        assert rd.poly.gcd(x, y).tolist() == expected


def test_many_primes(monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator) -> None:
    """More primes than are converted from together."""
    monkeypatch.setattr(exact_polynomials, "TOGETHER", 4)
    f = rd.from_ints([1, *draw(rng, 30, 2**50)], signed=True, chunks=None)
    g = rd.from_ints([*draw(rng, 5, 2**50), 1], signed=True, chunks=None)
    a, b = (flint.fmpz_poly([int(v) for v in x.to_ints()]) for x in (f, g))
    q, r = rd.poly.divmod(f, g)
    assert (q.tolist(), r.tolist()) == (padded(divmod(a, b)[0], 31), padded(divmod(a, b)[1], 5))
    product = rd.poly.multiply(f, g)
    assert rd.poly.gcd(product, f).tolist() == padded((a * b).gcd(a), 36)


def test_lazy_integers_and_other_systems(rng: np.random.Generator) -> None:
    values = [[*draw(rng, 5, 50), 1] for _ in range(4)]
    f = rd.from_ints(values, rd.ModuliSet.for_bits(64), signed=True, chunks=None)
    q, r = (v.tolist() for v in rd.poly.divmod(f, f[0]))
    at = rd.poly.evaluate(f, [-2, 0, 5]).tolist()
    divisors = rd.poly.gcd(f, f[:1]).tolist()
    fractions = [v.tolist() for v in rd.poly.interpolate([-2, 0, 5, 6, 7, 9], f)]
    system = rd.IntervalRNS(rd.ModuliSet.for_bits(64))
    for x in (
        f.rechunk((2, 3)),
        rd.from_ints(values, chunks=None),
        rd.from_ints(values, system, chunks=None),
        rd.from_ints(values, system, chunks=2),
    ):
        results = [
            *rd.poly.divmod(x, x[0]),
            rd.poly.evaluate(x, [-2, 0, 5]),
            rd.poly.gcd(x, x[:1]),
            *rd.poly.interpolate([-2, 0, 5, 6, 7, 9], x),
        ]
        if isinstance(x.words, np.ndarray):
            found = results
        else:
            assert all(hasattr(v, "dask") for v in results)
            found = [v.compute() for v in results]
        assert [v.tolist() for v in found] == [q, r, at, divisors, *fractions]
    assert rd.poly.gcd(f[:0], f[0]).shape == (0, 6)
    assert rd.poly.divmod(f[:0], f[:0])[0].shape == (0, 6)
    assert rd.poly.evaluate(f[:0], f[0]).shape == (0, 6)
    assert [v.shape for v in rd.poly.interpolate(f[:0], f[0])] == [(0, 6), (0,)]


def test_errors() -> None:
    f = rd.from_ints([[1, 2, 3], [3, 6, 5]], signed=True, chunks=None)
    g = rd.from_ints([[1, 1], [7, 0]], signed=True, chunks=None)
    for divisor in (g, g.rechunk(1)):
        message = (
            r"^divmod: the leading coefficient at index \(1,\) must be 1 or -1, got 7; over rd.PrimeFields"
        )
        with pytest.raises(ValueError, match=message):
            rd.poly.divmod(f, divisor)[0].compute()
        with pytest.raises(ZeroDivisionError, match=r"^divmod: the divisor at index \(1,\) is 0$"):
            rd.poly.divmod(f, divisor * [[1], [0]])[1].compute()
    message = r"^points must be different, but that at index \(1, 0\) equals another$"
    for points in (rd.from_ints([[1, 2], [3, 3]], chunks=None), rd.from_ints([[1, 2], [3, 3]], chunks=1)):
        with pytest.raises(ValueError, match=message):
            rd.poly.interpolate(points, f[:, :2])[1].compute()
    with pytest.raises(ValueError, match="as many values as points"):
        rd.poly.interpolate(g, f)
    with pytest.raises(TypeError, match="gcd takes no PositionalArray"):
        rd.poly.gcd(*[rd.from_ints([1, 2], rd.Positional(64), chunks=None)] * 2)
