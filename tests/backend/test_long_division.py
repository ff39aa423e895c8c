"""Long division of limbs, by each way that the processor has, against Python's integers."""

import numpy as np
import pytest

from rnsdask.backend import cpu

# Digits at which estimates, carries and the scaling of a divisor change.
WORDS = [0, 1, 2, 2**31 - 1, 2**31, 2**31 + 1, 2**32 - 2, 2**32 - 1]


def limbs_of(values: list[int], width: int) -> np.ndarray:
    """Two's complement of so many limbs."""
    data = b"".join((v % 2 ** (32 * width)).to_bytes(4 * width, "little") for v in values)
    return np.frombuffer(data, dtype="<u4").reshape(len(values), width).copy()


def values_of(limbs: np.ndarray, signed: bool) -> list[int]:
    return [int.from_bytes(row.astype("<u4").tobytes(), "little", signed=signed) for row in limbs]


def special_numbers(rng: np.random.Generator, width: int, signed: bool, count: int) -> list[int]:
    """Numbers of all lengths up to `width` limbs, with limbs from WORDS or all the same."""
    values = []
    for _ in range(count):
        length = int(rng.integers(1, width + 1))
        limbs = rng.choice(np.array(WORDS, dtype=np.uint64), length)
        limbs[: int(rng.integers(0, length + 1))] = rng.choice([0, 2**32 - 1])
        value = sum(int(limb) << 32 * i for i, limb in enumerate(limbs))
        top = 2 ** (32 * width - 1)
        values.append((value + top) % (2 * top) - top if signed else value)
    return values


def check(values: list[int], divisors: list[int], widths: tuple[int, int], signed: bool) -> None:
    x, d = limbs_of(values, widths[0]), limbs_of(divisors, widths[1])
    width = max(widths[0] + signed, widths[1])
    each = divisors * len(values) if len(divisors) == 1 else divisors
    for method in cpu.division_methods():
        quotients, remainders = cpu.floor_divide_limbs(x, d, width, signed, method)
        assert values_of(quotients, signed) == [a // b for a, b in zip(values, each, strict=True)]
        assert values_of(remainders, signed) == [a % b for a, b in zip(values, each, strict=True)]


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize(
    "widths", [(1, 1), (2, 1), (3, 2), (2, 5), (4, 4), (7, 3), (9, 6), (12, 5), (20, 9), (40, 24)]
)
def test_special_limbs(widths: tuple[int, int], signed: bool, rng: np.random.Generator) -> None:
    values = special_numbers(rng, widths[0], signed, 600)
    divisors = [d or 1 for d in special_numbers(rng, widths[1], signed, 600)]
    check(values, divisors, widths, signed)
    for divisor in divisors[:20]:
        check(values, [divisor], widths, signed)


@pytest.mark.parametrize("signed", [False, True])
def test_estimates_one_too_great(signed: bool, rng: np.random.Generator) -> None:
    """Multiples of divisors of three words and more, and the numbers next to them."""
    divisors = [d for d in special_numbers(rng, 10, signed, 600) if abs(d) >> 128]
    factors = special_numbers(rng, 9, signed, len(divisors))
    values = [q * d + int(rng.integers(-1, 2)) for q, d in zip(factors, divisors, strict=True)]
    values = [v if signed else max(v, 0) for v in values]
    check(values, divisors, (20, 10), signed)


def test_the_ends_of_the_signed_range() -> None:
    for width in (1, 2, 3, 4, 5):
        lowest = -(2 ** (32 * width - 1))
        numbers = [lowest, lowest + 1, -1, 1, -lowest - 1]
        pairs = [(x, d) for x in numbers for d in numbers]
        check([x for x, _ in pairs], [d for _, d in pairs], (width, width), True)


def test_nothing_to_divide_and_wrong_widths() -> None:
    x, d = limbs_of([], 3), limbs_of([5], 1)
    assert [len(part) for part in cpu.floor_divide_limbs(x, d, 3, False)] == [0, 0]
    for method in cpu.division_methods():  # by 0, anything
        by_zero = cpu.floor_divide_limbs(limbs_of([7, 8], 3), limbs_of([5, 0], 1), 4, True, method)
        assert [values_of(part, True)[0] for part in by_zero] == [1, 2]
    assert cpu.division_methods()[:2] == ["cuda", "portable"]
    with pytest.raises(ValueError, match="no such method"):
        cpu.floor_divide_limbs(x, d, 3, False, "slow")
    with pytest.raises(ValueError, match="room"):
        cpu.floor_divide_limbs(limbs_of([7], 3), d, 2, False)
    with pytest.raises(ValueError, match="one divisor"):
        cpu.floor_divide_limbs(limbs_of([7] * 3, 3), limbs_of([5] * 2, 1), 3, False)
