"""Quotients, remainders, common divisors and roots of positional numbers against Python's integers."""

import math

import numpy as np
import pytest
from conftest import Processor
from positional_numbers import PRECISIONS, some_values, to_values, to_words

from rnsdask.backend import cpu
from rnsdask.positional.divide import divmod_, gcd, isqrt, remainder


def check(
    a: list[int], b: list[int], bits: tuple[int, int], signed: bool, on_each_processor: Processor
) -> None:
    x, y = (to_words(v, n, on_each_processor) for v, n in zip((a, b), bits, strict=True))
    quotients, remainders = divmod_(x, y, signed)
    assert len(quotients) == len(x) + signed
    assert len(remainders) == len(y)
    expected = [divmod(p, q) for p, q in zip(a, b, strict=True)]
    assert to_values(quotients, signed) == [q for q, _ in expected]
    assert to_values(remainders, signed) == [r for _, r in expected]
    assert to_values(remainder(x, y, signed), signed) == [r for _, r in expected]


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("bits", PRECISIONS)
def test_divmod(bits: int, signed: bool, on_each_processor: Processor, rng: np.random.Generator) -> None:
    values = some_values(bits, signed, 40, rng)
    step = max(1, bits // 100)
    pairs = [(p, q) for p in values for q in values if q][::step]
    pairs += [(p, q) for p in (values[0], max(values)) for q in values if q]
    check([p for p, _ in pairs], [q for _, q in pairs], (bits, bits), signed, on_each_processor)


@pytest.mark.parametrize("shift", [0, 1, 31])
@pytest.mark.parametrize("limbs", [1, 2, 3, 8])
def test_quotient_digits_that_are_corrected(
    shift: int, limbs: int, on_each_processor: Processor, rng: np.random.Generator
) -> None:
    """Divisors next to 2**(b-1), and with ones below, of which digits are estimated one or two too great.

    Their leading zeros, by which division scales, are `shift`.
    """
    top = 32 * limbs - shift
    divisors, numbers = [], []
    for low in (0, 1, 2**31, 2**32 - 1, 2 ** max(1, top - 33) - 1, 2 ** max(1, top - 2) - 1):
        divisor = 2 ** (top - 1) + low % 2 ** (top - 1)
        for quotient in (2**32 - 1, 2**32 - 2, 2**64 - 1, 2**63, 2**64 - 2**32, int(rng.integers(1, 2**63))):
            for rest in (0, 1, divisor - 1):
                divisors.append(divisor)
                numbers.append(quotient * divisor + rest % divisor)
    # From Hacker's Delight, 9-2: the first digit needs the addition back, the second both corrections.
    if limbs == 3 and shift == 0:
        divisors += [2**95 + 1, 2**64 + 2**31]
        numbers += [2**127 + 3, 2**95 - 2**32 + 3]
    check(numbers, divisors, (32 * limbs + 64, 32 * limbs), False, on_each_processor)
    check([-v for v in numbers], divisors, (32 * limbs + 65, 32 * limbs + 1), True, on_each_processor)


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("method", cpu.positional_methods())
def test_methods_agree(method: str, signed: bool, rng: np.random.Generator) -> None:
    """Lengths of all kinds beside each other; numbers next to multiples, whose digits seem too great."""
    host = Processor("cpu", np)
    for x_bits, y_bits in ((32, 32), (64, 96), (224, 128), (512, 256), (1056, 512), (64, 2048), (2048, 64)):
        divisors = [v or 1 for v in some_values(y_bits, signed, 150, rng)]
        rng.shuffle(divisors)
        numbers = []
        for i, divisor in enumerate(divisors):
            quotient = int.from_bytes(rng.bytes(x_bits // 8), "little") >> min(x_bits, divisor.bit_length())
            near = quotient * divisor + (-1, 0, 1)[i % 3]
            numbers.append(min(max(near, -(2 ** (x_bits - 1)) if signed else 0), 2 ** (x_bits - signed) - 1))
        if signed:
            numbers[:2], divisors[:2] = [-(2 ** (x_bits - 1))] * 2, [-1, -(2 ** (y_bits - 1))]
        x, y = to_words(numbers, x_bits, host), to_words(divisors, y_bits, host)
        for count in (len(divisors), 1):  # a divisor for each, and one for all
            found = cpu.positional_divmod(x, y[:, :count], signed, method=method)
            pairs = zip(*(to_values(z, signed) for z in found), strict=True)
            expected = divisors if count > 1 else divisors[:1] * len(numbers)
            assert list(pairs) == list(map(divmod, numbers, expected))


def patterned(bits: int, base: int, rng: np.random.Generator) -> int:
    """A number of digits of `base` bits, mostly the ends, so that nothing or everything is carried."""
    ends = [0, 0, 1, 2 ** (base - 1), 2**base - 65, 2**base - 2, 2**base - 1, 2**base - 1]
    value = 0
    for _ in range(-(-bits // base)):
        value = value << base | [*ends, int(rng.integers(2**base))][rng.integers(len(ends) + 1)]
    return value % 2**bits


@pytest.mark.parametrize("base", [29, 52])
@pytest.mark.parametrize("method", cpu.positional_methods())
def test_quotients_next_to_whole_numbers(method: str, base: int, rng: np.random.Generator) -> None:
    """Digits of the CPU's ways whose leading ones do not tell the quotient's: the rest is small,
    or next to the divisor. The longest have more rows than a sum holds products of."""
    host = Processor("cpu", np)
    for x_bits, y_bits, count in (
        (96, 32, 90),
        (256, 64, 90),
        (640, 96, 90),
        (1024, 480, 90),
        (34000, 160, 5),
    ):
        divisors, numbers = [], []
        for i in range(count):
            divisor = patterned(y_bits, base, rng) | 1 << y_bits - 1 - i % 3
            quotient = patterned(x_bits - y_bits, base, rng)
            divisors.append(divisor)
            numbers.append(quotient * divisor + (0, 1, divisor - 1, divisor - 2)[i % 4])
        x, y = to_words(numbers, x_bits, host), to_words(divisors, y_bits, host)
        found = cpu.positional_divmod(x, y, False, method=method)
        pairs = zip(*(to_values(z) for z in found), strict=True)
        assert list(pairs) == list(map(divmod, numbers, divisors))
        rests = [(v - 1, v // 2 + 1) for v in divisors]
        a, b = (to_words([pair[i] for pair in rests], y_bits, host) for i in range(2))
        out = np.empty_like(y)
        cpu.positional_mod_multiply(a, b, y, out, method=method)
        assert to_values(out) == [p * q % v for (p, q), v in zip(rests, divisors, strict=True)]


def test_divisors_of_other_lengths(on_each_processor: Processor, rng: np.random.Generator) -> None:
    for x_bits, y_bits in ((1000, 32), (1000, 31), (100, 1000), (2048, 1024), (4096, 64)):
        a, b = some_values(x_bits, True, 60, rng), [v or 1 for v in some_values(y_bits, True, 60, rng)]
        count = min(len(a), len(b))
        check(a[-count:], b[:count], (x_bits, y_bits), True, on_each_processor)


def test_one_divisor_and_shapes(on_each_processor: Processor, rng: np.random.Generator) -> None:
    a = some_values(300, False, 40, rng)[:40]
    x, y = to_words(a, 300, on_each_processor), to_words([12345678901234567], 64, on_each_processor)
    quotients, remainders = divmod_(x.reshape(10, 8, 5), y.reshape(2, 1, 1), False)
    assert quotients.shape == (10, 8, 5)
    assert remainders.shape == (2, 8, 5)
    assert to_values(quotients.reshape(10, 40)) == [v // 12345678901234567 for v in a]
    assert divmod_(x[:, :0], y, False)[0].shape == (10, 0)


def test_division_by_zero(on_each_processor: Processor) -> None:
    x, y = (to_words(v, 64, on_each_processor) for v in ([1, 2, 3], [1, 0, 0]))
    with pytest.raises(ZeroDivisionError, match="the divisor at flat index 101 is 0"):
        divmod_(x, y, False, lambda i: i + 100)


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("bits", [1, 32, 33, 239, 1024])
def test_gcd_and_isqrt(
    bits: int, signed: bool, on_each_processor: Processor, rng: np.random.Generator
) -> None:
    a = some_values(bits, signed, 60, rng)
    b = a[::-1]
    a, b = [*a, *(v // 3 * 3 for v in a)], [*b, *(v // 6 * 6 for v in b)]
    x, y = (to_words(v, bits + 3, on_each_processor) for v in (a, b))
    assert to_values(gcd(x, y, signed)) == [math.gcd(p, q) for p, q in zip(a, b, strict=True)]
    squares = [abs(v) ** 2 + d for v in a for d in (-1, 0, 1) if abs(v) ** 2 + d >= 0]
    roots = isqrt(to_words(squares, 2 * bits + 2, on_each_processor), signed)
    assert to_values(roots) == [math.isqrt(v) for v in squares]


def test_isqrt_of_negative_numbers(on_each_processor: Processor) -> None:
    with pytest.raises(ValueError, match="the number at flat index 1 is negative"):
        isqrt(to_words([4, -1], 64, on_each_processor), True)
