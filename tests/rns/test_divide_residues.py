"""Division of arrays by arrays, in tiles of digits and by limbs, against Python integers."""

import operator
from collections.abc import Sequence

import numpy as np
import pytest
from oracles import rns
from strategies import BOTH_RANGES, MODULI_SETS

import rnsdask as rd
from rnsdask.backend import cpu
from rnsdask.core.errors import RNSOverflowError
from rnsdask.core.rows import Part
from rnsdask.rns import divide

BOTH_PARTS: tuple[Part, ...] = ("quotient", "remainder")
LONG = MODULI_SETS["bits2048"]
EVEN = rd.ModuliSet([2**32, *MODULI_SETS["table2_64"]])

# Digits at which estimates, carries and the scaling of a divisor change.
DIGITS = [0, 1, 2, 2**51 - 1, 2**51, 2**51 + 1, 2**52 - 2, 2**52 - 1]


@pytest.fixture(params=["digits", "limbs"], autouse=True)
def _way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "limbs":
        monkeypatch.setattr(cpu, "divide_residues", None)
    elif cpu.divide_residues is None:
        pytest.skip("this processor does not multiply words of 52 bits")


def special_numbers(rng: np.random.Generator, most: int, count: int) -> list[int]:
    """Numbers of up to `most` digits of 52 bits from DIGITS, the lower ones often all the same."""
    values = []
    for _ in range(count):
        digits = rng.choice(np.array(DIGITS, dtype=object), int(rng.integers(1, most + 1)))
        digits[: int(rng.integers(0, len(digits) + 1))] = rng.choice([0, 2**52 - 1])
        values.append(sum(int(digit) << 52 * i for i, digit in enumerate(digits)))
    return values


def check(
    values: Sequence[int],
    divisors: Sequence[int],
    system: rd.RNS,
    parts: tuple[Part, ...] = BOTH_PARTS,
    divisor_bound: int | None = None,
) -> None:
    x, y = (rns.encode(list(v), system.moduli, system.signed) for v in (values, divisors))
    found = divide.floor_divide(x, y, system, parts, divisor_bound=divisor_bound)
    functions = {"quotient": operator.floordiv, "remainder": operator.mod}
    expected = [
        rns.encode(
            [functions[part](a, b) for a, b in zip(values, divisors, strict=True)],
            system.moduli,
            system.signed,
        )
        for part in parts
    ]
    np.testing.assert_array_equal(found, np.vstack(expected))


@pytest.mark.parametrize("lengths", [(1, 1), (3, 1), (4, 2), (2, 4), (19, 19), (9, 20), (20, 9), (35, 3)])
@BOTH_RANGES
def test_special_digits(lengths: tuple[int, int], signed: bool, rng: np.random.Generator) -> None:
    """Multiples of divisors and the numbers next to them, where an estimate is one too great, and any."""
    divisors = [d or 1 for d in special_numbers(rng, lengths[1], 400)]
    factors = special_numbers(rng, lengths[0], 400)
    values = [max(q * d + int(rng.integers(-1, 2)), 0) for q, d in zip(factors, divisors, strict=True)]
    values += special_numbers(rng, min(38, sum(lengths)), 400)
    divisors += divisors
    if signed:
        values, divisors = (
            [v * int(s) for v, s in zip(numbers, rng.choice([-1, 1], 800), strict=True)]
            for numbers in (values, divisors)
        )
    check(values, divisors, rd.RNS(LONG, signed))


def test_estimates_one_too_great() -> None:
    """The leading two digits say one more than all: 2^103 d' + something, with the rest at its most."""
    pairs = []
    for lead in (2**51, 2**51 + 1, 2**52 - 1):
        for second in (0, 1, 2**52 - 1):
            d = (lead << 104) + (second << 52) + 2**52 - 1
            pairs += [(d * q - 1, d) for q in (1, 2, 2**51, 2**52 - 1, 2**52, 2**104 - 1)]
    check([x for x, _ in pairs], [d for _, d in pairs], rd.RNS(LONG))


def test_quotients_that_round_to_one_digit_more() -> None:
    """The greatest number of so many digits by a power of 2^52, when all numbers of a tile are as long."""
    for length in range(1, 12):
        for shift in range(length):
            values, divisors = [1 - 2 ** (52 * length)] * 20, [2 ** (52 * shift)] * 20
            check(values, divisors, rd.RNS(LONG, signed=True))
            check([-v for v in values], [-d for d in divisors], rd.RNS(LONG, signed=True))


@pytest.mark.parametrize("count", [0, 1, 15, 16, 17, 63, 64, 65, 200])
@pytest.mark.parametrize("parts", [("quotient",), ("remainder",), ("remainder", "quotient")])
def test_counts_of_numbers(count: int, parts: tuple[Part, ...], rng: np.random.Generator) -> None:
    values, divisors = special_numbers(rng, 30, count), [d or 7 for d in special_numbers(rng, 12, count)]
    check(values, divisors, rd.RNS(LONG, signed=True), parts)


@BOTH_RANGES
def test_bounds(signed: bool, rng: np.random.Generator) -> None:
    """Fewer moduli of either number take part."""
    values, divisors = special_numbers(rng, 10, 100), [d or 1 for d in special_numbers(rng, 30, 100)]
    check(values, divisors, rd.RNS(LONG, signed, max(values)))
    check(divisors, [v or 1 for v in values], rd.RNS(LONG, signed), divisor_bound=max(values))


def test_parts_of_arrays(rng: np.random.Generator) -> None:
    values, divisors = (np.array(special_numbers(rng, 10, 300), dtype=object) + 1 for _ in range(2))
    x, y = (rd.from_ints(v, LONG, chunks=None) for v in (values, divisors))
    for at in (slice(None, None, 3), slice(None, None, -1), slice(7, 20)):
        assert (x[at] // y[at]).to_ints().tolist() == (values[at] // divisors[at]).tolist()
        assert (x[at] % y[at]).to_ints().tolist() == (values[at] % divisors[at]).tolist()


@BOTH_RANGES
def test_division_by_zero_names_the_first(signed: bool) -> None:
    x = rd.from_ints(range(200), LONG, signed, chunks=None)
    for first in (0, 15, 16, 100, 199):
        divisors = np.ones(200, dtype=object) * 5
        divisors[[first, 199]] = 0
        y = rd.from_ints(divisors, LONG, signed, chunks=None)
        for operation in (operator.floordiv, operator.mod):
            with pytest.raises(ZeroDivisionError, match=f"^division by zero at flat index {first}$"):
                operation(x, y)
    small = rd.RNSArray(rns.encode([5] * 3, LONG, signed), rd.RNS(LONG, signed))
    unreduced = rns.encode([1, 0, 2], LONG, signed)
    unreduced[:, 1] = [m % 2**32 for m in LONG]
    with pytest.raises(ZeroDivisionError, match="index 1"):
        small // rd.RNSArray(unreduced, rd.RNS(LONG, signed))


def test_the_lowest_value_by_minus_1() -> None:
    lowest, highest = EVEN.value_range(signed=True)
    values = [highest, lowest + 1, 5, *[lowest] * 70]
    divisors = [-1, -1, 1, *[1] * 50, -1, *[2] * 19]
    x, y = (rns.encode(v, EVEN, True) for v in (values, divisors))
    for parts in (BOTH_PARTS, ("quotient",)):
        with pytest.raises(RNSOverflowError, match="flat index 53") as error:
            divide.floor_divide(x, y, rd.RNS(EVEN, signed=True), parts)
        assert str(error.value) == str(rd.RNS(EVEN, signed=True).overflow_error(-lowest, 53))
    check(values, divisors, rd.RNS(EVEN, signed=True), ("remainder",))
    divisors[53] = 1
    check(values, divisors, rd.RNS(EVEN, signed=True))
