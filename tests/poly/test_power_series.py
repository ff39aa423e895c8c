"""Power series, powers and compositions of polynomials against Python's integers and fractions."""

import itertools
import math
from fractions import Fraction
from typing import Any

import dask.array as da
import flint
import numpy as np
import pytest
from conftest import Processor
from sample_arrays import host

import rnsdask as rd

# Lengths around powers of two, where Newton's iteration ends.
LENGTHS = [1, 2, 3, 4, 7, 8, 9, 33]
PRIMES = rd.PrimeFields([37, 12289, 2**31 - 1, 4294967291])
FERMAT = rd.FermatField(2**8 + 2**5, 4)

pytestmark = pytest.mark.usefixtures("in_this_thread")


# ---- what is right ----------------------------------------------------------------------------------------


def product(a: list[Any], b: list[Any], length: int) -> list[Any]:
    return [
        sum(a[i] * b[k - i] for i in range(k + 1) if i < len(a) and k - i < len(b)) for k in range(length)
    ]


def inverse(f: list[Any], length: int) -> list[Fraction]:
    found = [Fraction(1, f[0])]
    for k in range(1, length):
        found.append(-sum(f[i] * found[k - i] for i in range(1, k + 1) if i < len(f)) / f[0])
    return found


def logarithm(f: list[Any], length: int) -> list[Fraction]:
    slopes = [Fraction(k * c) for k, c in enumerate(f)][1:]
    return [Fraction(0)] + [
        Fraction(c) / k for k, c in enumerate(product(slopes, inverse(f, length), length - 1), 1)
    ]


def exponential(f: list[Any], length: int) -> list[Fraction]:
    found = [Fraction(1)]
    for k in range(1, length):
        found.append(sum((i * f[i] * found[k - i] for i in range(1, k + 1) if i < len(f)), Fraction(0)) / k)
    return found


def power(f: list[Any], exponent: int, length: int) -> list[Any]:
    found: list[Any] = [1] + [0] * (length - 1)
    for _ in range(exponent):
        found = product(found, f, length)
    return found


def composition(f: list[Any], g: list[Any], length: int) -> list[Any]:
    total = [0] * length
    for c in reversed(f):
        total = product(total, g, length)
        total[0] += c
    return total


def remainder(f: list[int], g: list[int]) -> list[int]:
    rest, degree = list(f), max(k for k, c in enumerate(g) if c)
    for k in range(len(rest) - 1, degree - 1, -1):
        factor = rest[k] * g[degree]  # which is 1 or -1
        for i in range(degree + 1):
            rest[k - degree + i] -= factor * g[i]
    return (rest + [0] * len(g))[: max(len(g) - 1, 1)]


def modulo(values: list[Any], p: int) -> list[int]:
    return [Fraction(v).numerator * pow(Fraction(v).denominator, -1, p) % p for v in values]


SERIES = {
    "inverse_series": (inverse, (1, -1, 5)),
    "log_series": (logarithm, (1,)),
    "exp_series": (exponential, (0,)),
}


def draw(rng: np.random.Generator, length: int, constant: int, magnitude: int = 9) -> list[int]:
    return [constant, *(int(v) for v in rng.integers(-magnitude, magnitude + 1, length - 1))]


# ---- fields -----------------------------------------------------------------------------------------------


def elements(processor: Processor, fields: Any, values: Any) -> Any:
    return rd.FieldArray(processor.xp.asarray(fields.encode(np.array(values, dtype=object))), fields)


def check_fields(found: Any, fields: Any, expected: list[list[Any]]) -> None:
    words = host(found.words)
    if isinstance(fields, rd.FermatField):
        values = fields.decode(words).tolist()
        assert values == [modulo(line, fields.modulus) for line in expected]
        return
    for row, p in zip(words, fields.primes, strict=True):
        assert row.tolist() == [modulo(line, p) for line in expected]


@pytest.mark.parametrize("fields", [PRIMES, FERMAT], ids=["primes", "fermat"])
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("name", SERIES)
def test_series_over_fields(
    on_each_processor: Processor, fields: Any, length: int, name: str, rng: np.random.Generator
) -> None:
    expected, constants = SERIES[name]
    for own in {1, 2, length, length + 3}:
        batch = [draw(rng, own, constant) for constant in constants]
        found = getattr(rd.poly, name)(elements(on_each_processor, fields, batch), length)
        assert found.shape == (len(batch), length)
        check_fields(found, fields, [expected(f, length) for f in batch])


@pytest.mark.parametrize("length", [1000, 1024, 1025])
def test_long_series(on_each_processor: Processor, length: int, rng: np.random.Generator) -> None:
    """They undo one another, and inverses times series are 1."""
    fields = rd.PrimeFields([12289, 2**31 - 1, 4294967291])
    f = elements(on_each_processor, fields, [draw(rng, length, 0, 10**9) for _ in range(2)])
    g = rd.poly.exp_series(f)
    assert bool((rd.poly.log_series(g) == f).all())
    one = rd.poly.multiply(g, rd.poly.inverse_series(g))[..., :length]
    assert bool((one == [1] + [0] * (length - 1)).all())
    # exp(f)**3 is exp(3 f).
    assert bool((rd.poly.power_mod(g, 3, length=length) == rd.poly.exp_series(f * 3)).all())


@pytest.mark.parametrize("fields", [PRIMES, FERMAT], ids=["primes", "fermat"])
@pytest.mark.parametrize(("first", "second"), [(1, 1), (1, 4), (4, 1), (2, 2), (5, 3), (17, 4), (6, 16)])
def test_compositions_and_powers(
    on_each_processor: Processor, fields: Any, first: int, second: int, rng: np.random.Generator
) -> None:
    f, g = ([draw(rng, length, 3) for _ in range(3)] for length in (first, second))
    x, y = (elements(on_each_processor, fields, v) for v in (f, g))
    whole = (first - 1) * (second - 1) + 1
    for length in (None, 1, 5, whole + 2):
        expected = [composition(a, b, length or whole) for a, b in zip(f, g, strict=True)]
        check_fields(rd.poly.compose(x, y, length), fields, expected)
    for exponent, length in itertools.product((0, 1, 2, 7), (1, 6)):
        found = rd.poly.power_mod(x, exponent, length=length)
        check_fields(found, fields, [power(a, exponent, length) for a in f])
    monic = [[*line[:-1], 1] for line in g]
    for exponent in (0, 1, 5):
        full = exponent * (first - 1) + 1
        expected = [remainder(power(a, exponent, full), b) for a, b in zip(f, monic, strict=True)]
        check_fields(
            rd.poly.power_mod(x, exponent, elements(on_each_processor, fields, monic)), fields, expected
        )


@pytest.mark.parametrize("exponent", [10**12, 10**30])
def test_powers_of_integers_that_may_be_too_long(exponent: int) -> None:
    f, g = (rd.from_ints(values, chunks=None) for values in ([1, 1], [1, 0, 1]))
    for call in (lambda: rd.poly.power_mod(f, exponent, g), lambda: rd.poly.power_mod(f, exponent, length=2)):
        with pytest.raises(rd.RNSError, match=r"power_mod: .* more than 33554432 bits; over rd.PrimeFields"):
            call()
    one = rd.from_ints([1], chunks=None)
    assert rd.poly.power_mod(one, exponent, length=2).tolist() == [1, 0]
    assert rd.poly.power_mod(one * 0, exponent, g).tolist() == [0, 0]


@pytest.mark.parametrize("name", ["inverse_series", "log_series", "exp_series"])
def test_series_of_integers_that_may_be_too_long(name: str) -> None:
    f = rd.from_ints([0, 1] if name == "exp_series" else [1, 1], chunks=None)
    with pytest.raises(rd.RNSError, match=f"{name}: .* more than 33554432 bits"):
        getattr(rd.poly, name)(f, 10**9)


def test_large_exponents() -> None:
    """Modulo an irreducible polynomial of degree 2 over the field of p elements, x**(p * p) is x."""
    p = 2**31 - 1
    fields = rd.PrimeFields([p])
    x, g = (rd.from_ints(v, fields, chunks=None) for v in ([0, 1], [1, 0, 1]))
    assert rd.poly.power_mod(x, p * p, g).tolist() == [0, 1]
    assert rd.poly.power_mod(x, p, g).tolist() == [0, p - 1]


def test_chunks_and_broadcasting(on_each_processor: Processor, rng: np.random.Generator) -> None:
    f = elements(on_each_processor, PRIMES, [[draw(rng, 9, 1) for _ in range(4)] for _ in range(3)])
    g = elements(on_each_processor, PRIMES, [draw(rng, 5, 1) for _ in range(4)])
    lazy = rd.FieldArray(da.from_array(f.words, chunks=(-1, 2, 3, 4), asarray=False), PRIMES)
    other = rd.FieldArray(da.from_array(g.words, chunks=(-1, 2, 5), asarray=False), PRIMES)
    calls = {
        "inverse": lambda x, _: rd.poly.inverse_series(x, 12),
        "log": lambda x, _: rd.poly.log_series(x),
        "exp": lambda x, _: rd.poly.exp_series(x - x[..., :1] * ([1] + [0] * 8), 7),
        "compose": lambda x, y: rd.poly.compose(x, y),
        "power": lambda x, y: rd.poly.power_mod(x, 10, y),
        "truncated": lambda x, _: rd.poly.power_mod(x, 10, length=20),
        "derivative": lambda x, _: rd.poly.derivative(x),
    }
    for call in calls.values():
        expected = call(f, g)
        found = call(lazy, other)
        assert isinstance(found.words, da.Array)
        assert found.shape == expected.shape
        assert (host(found.words) == host(expected.words)).all()
    assert rd.poly.inverse_series(f[:0]).shape == (0, 4, 9)


# ---- integers ---------------------------------------------------------------------------------------------


def integers(processor: Processor, values: Any, bits: int = 64) -> Any:
    system = rd.ModuliSet.for_bits(bits)
    x = rd.from_ints(np.array(values, dtype=object), system, signed=True, chunks=None)
    return rd.from_residues(processor.xp.asarray(x.residues), system, signed=True)


def check_rationals(found: tuple[Any, Any], expected: list[list[Fraction]]) -> None:
    numerators, denominators = found
    for line, below, right in zip(numerators.tolist(), denominators.tolist(), expected, strict=True):
        assert [Fraction(v, below) for v in line] == right
        assert below == math.lcm(*(v.denominator for v in right))
        assert {type(v) for v in [*line, below]} == {int}


@pytest.mark.parametrize("length", LENGTHS)
def test_series_over_the_integers(
    on_each_processor: Processor, length: int, rng: np.random.Generator
) -> None:
    for own, magnitude in itertools.product({1, 2, length}, (1, 9, 2**40)):
        batch = [draw(rng, own, constant, magnitude) for constant in (1, -1)]
        found = rd.poly.inverse_series(integers(on_each_processor, batch), length)
        assert found.tolist() == [[int(v) for v in inverse(f, length)] for f in batch]
        batch = [draw(rng, own, 1, magnitude), [1] + [0] * (own - 1)]
        found = rd.poly.log_series(integers(on_each_processor, batch), length)
        check_rationals(found, [logarithm(f, length) for f in batch])
        batch = [draw(rng, own, 0, magnitude), [0] * own]
        found = rd.poly.exp_series(integers(on_each_processor, batch), length)
        check_rationals(found, [exponential(f, length) for f in batch])


@pytest.mark.parametrize("magnitude", [1, 10**6, 2**500])
def test_series_that_reach_their_bounds(on_each_processor: Processor, magnitude: int) -> None:
    """All coefficients of one sign, as the bounds assume."""
    length = 20
    series = integers(on_each_processor, [[1] + [-magnitude] * (length - 1)], 600)
    found = rd.poly.inverse_series(series)
    assert found.tolist() == [[1, *(magnitude * (1 + magnitude) ** k for k in range(length - 1))]]
    series = [0] + [magnitude] * (length - 1)
    found = rd.poly.exp_series(integers(on_each_processor, [series], 600))
    check_rationals(found, [exponential(series, length)])


@pytest.mark.parametrize(("first", "second"), [(1, 1), (1, 4), (4, 1), (2, 2), (5, 3), (9, 6)])
def test_compositions_and_powers_of_integers(
    on_each_processor: Processor, first: int, second: int, rng: np.random.Generator
) -> None:
    f, g = ([draw(rng, length, -3, 2**30) for _ in range(3)] for length in (first, second))
    f[0], g[0] = [0] * first, [0] * second
    x, y = (integers(on_each_processor, v) for v in (f, g))
    whole = (first - 1) * (second - 1) + 1
    for length in (None, 3):
        found = rd.poly.compose(x, y, length)
        expected = [composition(a, b, length or whole) for a, b in zip(f, g, strict=True)]
        assert found.tolist() == expected
    for exponent in (0, 1, 6):
        found = rd.poly.power_mod(x, exponent, length=7)
        assert found.tolist() == [power(a, exponent, 7) for a in f]
        monic = [[*g[1][:-1], 1], [*g[2][:-1], -1], ([1, *[0] * second])[:second]]
        found = rd.poly.power_mod(x, exponent, integers(on_each_processor, monic))
        full = exponent * (first - 1) + 1
        expected = [remainder(power(a, exponent, full), b) for a, b in zip(f, monic, strict=True)]
        assert found.tolist() == expected


def test_lazy_integers_and_other_systems(rng: np.random.Generator) -> None:
    values = [draw(rng, 6, 1) for _ in range(4)]
    f = rd.from_ints(values, rd.ModuliSet.for_bits(64), signed=True, chunks=None)
    kinds = {
        "lazy": f.rechunk((2, 3)),
        "grows": rd.from_ints(values, chunks=None),
        "interval": rd.from_ints(values, rd.IntervalRNS(rd.ModuliSet.for_bits(64)), chunks=None),
        "lazy interval": rd.from_ints(values, rd.IntervalRNS(rd.ModuliSet.for_bits(64)), chunks=2),
    }
    for name, x in kinds.items():
        inverses, logarithms = rd.poly.inverse_series(x), rd.poly.log_series(x, 9)
        compositions, powers = rd.poly.compose(x, x[:1]), rd.poly.power_mod(x, 3, [5, 7, 1])
        slopes = rd.poly.derivative(x)
        if name.startswith("lazy"):
            results = inverses, *logarithms, compositions, powers, slopes
            assert all(hasattr(v, "dask") or hasattr(v.words, "dask") for v in results)
            inverses, compositions, powers = (v.compute() for v in (inverses, compositions, powers))
            logarithms = tuple(v.compute() for v in logarithms)
        assert inverses.tolist() == [[int(v) for v in inverse(f, 6)] for f in values]
        check_rationals(logarithms, [logarithm(f, 9) for f in values])
        assert compositions.tolist() == [composition(f, values[0], 26) for f in values]
        assert powers.tolist() == [remainder(power(f, 3, 16), [5, 7, 1]) for f in values]
        assert slopes.to_ints().tolist() == [[k * c for k, c in enumerate(f)][1:] for f in values]
    numerators, denominator = rd.poly.log_series(f[0], 5)
    assert [Fraction(int(v), denominator) for v in numerators] == logarithm(values[0], 5)
    numerators, denominator = rd.poly.log_series(f.rechunk(2)[0], 5)
    assert [Fraction(int(v), int(denominator)) for v in numerators.compute()] == logarithm(values[0], 5)


def test_partition_numbers() -> None:
    """One over Euler's product, of integers, against FLINT."""
    euler = [0] * 200
    for k in range(-11, 12):
        if k * (3 * k - 1) // 2 < 200:
            euler[k * (3 * k - 1) // 2] = (-1) ** abs(k)
    found = rd.poly.inverse_series(rd.from_ints(euler, chunks=None))
    assert found.tolist() == [int(flint.fmpz(n).partitions_p()) for n in range(200)]


# ---- errors -----------------------------------------------------------------------------------------------


def test_constant_terms() -> None:
    fields = rd.PrimeFields([7, 11])
    f = rd.from_ints([[1, 2], [1, 3], [22, 1]], fields, chunks=None)
    message = r"^inverse_series: the constant term at index \(2,\) modulo 11 is 0, which has no inverse$"
    for x in (f, f.rechunk(1)):
        with pytest.raises(ZeroDivisionError, match=message):
            rd.poly.inverse_series(x).compute()
        with pytest.raises(
            ValueError, match=r"^log_series: the constant term at index \(2,\) modulo 11 is not 1$"
        ):
            rd.poly.log_series(x - [[0, 0], [0, 0], [14, 0]]).compute()
    with pytest.raises(ValueError, match=r"^exp_series: the constant term modulo 7 is not 0$"):
        rd.poly.exp_series(f[0])
    g = rd.from_ints([[1, 2], [1, 3], [2, 1]], signed=True, chunks=None)
    for x in (g, g.rechunk(1)):
        message = r"^inverse_series: the constant term at index \(2,\) must be 1 or -1, got 2$"
        with pytest.raises(ValueError, match=message):
            rd.poly.inverse_series(x).compute()
        with pytest.raises(
            ValueError, match=r"^log_series: the constant term at index \(2,\) must be 1, got 2$"
        ):
            rd.poly.log_series(x)[0].compute()
    with pytest.raises(ValueError, match=r"^exp_series: the constant term must be 0, got 1$"):
        rd.poly.exp_series(g[0])
    with pytest.raises(ValueError, match=r"must be 1 or -1, got 0$"):
        rd.poly.inverse_series(g[0] * 0)


def test_other_errors() -> None:
    fields = rd.PrimeFields([13, 7])
    f = rd.from_ints([0, 1], fields, chunks=None)
    with pytest.raises(
        ValueError, match=r"divides by 1 to 7, but 7 is 0 modulo 7; take primes of at least 8$"
    ):
        rd.poly.exp_series(f, 8)
    assert rd.poly.exp_series(f, 7).shape == (7,)
    with pytest.raises(ValueError, match="length must be at least 1, got 0"):
        rd.poly.inverse_series(f, 0)
    with pytest.raises(ValueError, match="exponent must be at least 0, got -1; inverse_series"):
        rd.poly.power_mod(f, -1, length=3)
    for options in ({}, {"g": f, "length": 3}):
        with pytest.raises(ValueError, match="either a modulus g or a length"):
            rd.poly.power_mod(f, 2, **options)
    with pytest.raises(ZeroDivisionError, match="is 0 modulo 13"):
        rd.poly.power_mod(f, 2, f * 0)
    with pytest.raises(TypeError, match="compose takes arrays of numbers, got int"):
        rd.poly.compose(f, 3)
    with pytest.raises(TypeError, match="inverse_series takes no PositionalArray"):
        rd.poly.inverse_series(rd.from_ints([1, 2], rd.Positional(64), chunks=None))
    g = rd.from_ints([1, 2, 3], signed=True, chunks=None)
    with pytest.raises(ValueError, match=r"^power_mod: the leading coefficient must be 1 or -1, got 3; over"):
        rd.poly.power_mod(g, 5, g)
    with pytest.raises(ZeroDivisionError, match=r"^power_mod: the divisor is 0$"):
        rd.poly.power_mod(g, 5, g * 0)
