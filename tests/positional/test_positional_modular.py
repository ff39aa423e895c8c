"""Modular arithmetic of positional numbers against Python's integers."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from conftest import Processor
from positional_numbers import PRECISIONS, some_values, to_values, to_words

from rnsdask.backend import cpu
from rnsdask.positional.modular import mod_add, mod_inverse, mod_multiply, mod_power, mod_subtract

OPERATIONS: dict[str, tuple[Callable[..., object], Callable[[int, int, int], int]]] = {
    "add": (mod_add, lambda a, b, m: (a + b) % m),
    "subtract": (mod_subtract, lambda a, b, m: (a - b) % m),
    "multiply": (mod_multiply, lambda a, b, m: a * b % m),
}


def moduli_of(bits: int, rng: np.random.Generator) -> list[int]:
    """Ends, neighbours of powers of two, even and odd ones, powers of two."""
    given = {1, 2, 3, 4, 2**bits - 1, 2**bits - 2, 2 ** (bits - 1), 2 ** (bits - 1) + 1, 2 ** (bits - 1) - 1}
    given |= {2 ** (bits // 2) + 1, 2 ** (bits // 2), 3 * 2 ** (bits // 2)}
    given |= {int.from_bytes(rng.bytes(bits // 8 + 1), "little") % 2**bits for _ in range(6)}
    return sorted(m for m in given if 0 < m < 2**bits)


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("bits", PRECISIONS)
def test_operations(
    bits: int, operation: str, on_each_processor: Processor, rng: np.random.Generator
) -> None:
    function, expected = OPERATIONS[operation]
    moduli = moduli_of(bits, rng)
    values = some_values(bits, False, 30, rng)
    values = values[:: max(1, len(values) // 30)] + values[-2:]
    a, b = values, values[::-1]
    x, y = (to_words(v, bits, on_each_processor) for v in (a, b))
    m = to_words(moduli, bits, on_each_processor)
    # One modulus for each number, and one for all; operands that are not below it.
    grid = function(x[:, :, None], y[:, :, None], m[:, None, :], False)
    pairs = list(zip(a, b, strict=True))
    assert to_values(grid.reshape(len(m), -1)) == [expected(p, q, n) for p, q in pairs for n in moduli]
    for i in range(0, len(moduli), 1 + len(moduli) // 5):
        one = function(x, y, m[:, i : i + 1], False)
        assert to_values(one) == [expected(p, q, moduli[i]) for p, q in pairs]
    # One operand for all, which moduli are below.
    for one in (0, len(values) - 1):
        found = function(x[:, one : one + 1], y[:, :1], m, False)
        assert to_values(found) == [expected(a[one], b[0], n) for n in moduli]
    # Operands below the moduli, whose sums may be the moduli.
    below = [
        [v % n for v, n in zip((values * 9)[: len(moduli)], moduli, strict=True)],
        [n - 1 for n in moduli],
    ]
    x, y = (to_words(v, bits, on_each_processor) for v in below)
    assert to_values(function(x, y, m, False)) == [expected(*t) for t in zip(*below, moduli, strict=True)]


@pytest.mark.parametrize("operation", OPERATIONS)
def test_signed_operands_of_other_precisions(
    operation: str, on_each_processor: Processor, rng: np.random.Generator
) -> None:
    function, expected = OPERATIONS[operation]
    for bits in (33, 100, 400):
        a = some_values(bits, True, 40, rng)
        b = a[::-1]
        for modulus in (1, 97, 2**99 - 1, 2**64):
            x, y = (to_words(v, bits, on_each_processor) for v in (a, b))
            result = function(x, y, to_words([modulus], 100, on_each_processor), True)
            assert len(result) == 4
            assert to_values(result) == [expected(p, q, modulus) for p, q in zip(a, b, strict=True)]


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("limbs", [2, 5])
def test_no_numbers_have_no_modulus_to_refuse(
    operation: str, limbs: int, on_each_processor: Processor
) -> None:
    """Also where one operand that would be reduced stands for all."""
    function, _ = OPERATIONS[operation]
    none = to_words([], 64, on_each_processor)
    one = to_words([-1], 32 * limbs, on_each_processor)
    for modulus in (0, -3):
        words = to_words([modulus], 64, on_each_processor)
        for signed in (False, True):
            assert function(one, none, words, signed).shape == (2, 0)
            assert mod_power(one, none, words, signed).shape == (2, 0)
            assert mod_inverse(none, words, signed).shape == (2, 0)


@pytest.mark.parametrize("operation", ["add", "subtract"])
@pytest.mark.parametrize("limbs", [1, 2, 16, 17, 32, 33, 130])
def test_sums_at_their_moduli(operation: str, limbs: int, on_each_processor: Processor) -> None:
    """Sums of m - 1, m and m + 1, by moduli of which few limbs are not 0 or all; and of one operand more."""
    function, expected = OPERATIONS[operation]
    whole = 2 ** (32 * limbs)
    for modulus in (1, 3, whole // 2**31 + 1, whole // 2 - 1, whole - 2**31, whole - 1):
        near = {modulus // 2, modulus // 2 + 1, 0, 1, modulus - 1, modulus - 2}
        values = sorted(v for v in near if 0 <= v < modulus)
        a = [v for v in values for _ in values]
        b = values * len(values)
        for more in ([], [modulus], [whole - 1]):  # which are to be reduced
            x, y = (to_words(z, 32 * limbs, on_each_processor) for z in (a + more, b + more[::-1]))
            results = [expected(p, q, modulus) for p, q in zip(a + more, b + more[::-1], strict=True)]
            for moduli in ([modulus], [modulus] * len(results)):
                m = to_words(moduli, 32 * limbs, on_each_processor)
                assert to_values(function(x, y, m, False)) == results


@pytest.mark.parametrize("bits", [b for b in PRECISIONS if b <= 1024])
def test_powers(bits: int, on_each_processor: Processor, rng: np.random.Generator) -> None:
    moduli = moduli_of(bits, rng)
    values = some_values(bits, False, 20, rng)
    values = values[:: max(1, len(values) // 6)] + values[-1:]
    x = to_words(values, bits, on_each_processor)
    m = to_words(moduli, bits, on_each_processor)
    for exponent in (0, 1, 2, 15, 16, 17, 65537, 2**80 - 1, 2**bits - 1 if bits < 300 else 2**299 + 1):
        grid = mod_power(x[:, :, None], exponent, m[:, None, :], False)
        assert to_values(grid.reshape(len(m), -1)) == [pow(v, exponent, n) for v in values for n in moduli]
    odd = [n for n in moduli if n % 2]
    for modulus in (odd[0], odd[-1], moduli[-1]):
        one = to_words([modulus], bits, on_each_processor)
        assert to_values(mod_power(x, 2**33 + 5, one, False)) == [pow(v, 2**33 + 5, modulus) for v in values]


@pytest.mark.parametrize("parity", ["odd", "any"])
def test_an_exponent_for_each(parity: str, on_each_processor: Processor, rng: np.random.Generator) -> None:
    bits, exponent_bits = 200, 70
    exponents = some_values(exponent_bits, False, 40, rng)
    values = (some_values(bits, False, 40, rng) * 3)[: len(exponents)]
    moduli = ([n for n in moduli_of(bits, rng) if n % 2 or parity == "any"] * 40)[: len(exponents)]
    x, m = (to_words(v, bits, on_each_processor) for v in (values, moduli))
    e = to_words(exponents, exponent_bits, on_each_processor)
    assert to_values(mod_power(x, e, m, False)) == list(map(pow, values, exponents, moduli))
    assert to_values(mod_power(x, e[:, -1:], m, False)) == [
        pow(v, exponents[-1], n) for v, n in zip(values, moduli, strict=True)
    ]


@pytest.mark.parametrize("bits", [1057, 1280, 2048, 2100, 4096, 8192, 8200])
def test_powers_of_long_numbers(bits: int, on_each_processor: Processor, rng: np.random.Generator) -> None:
    moduli = [
        2**bits - 1,
        2 ** (bits - 1) + 1,
        2**bits - 2,
        int.from_bytes(rng.bytes(bits // 8), "little") | 1,
    ]
    values = [2**bits - 1, 2, 2 ** (bits - 1), int.from_bytes(rng.bytes(bits // 8), "little")]
    x, m = (to_words(v, bits, on_each_processor) for v in (values, moduli))
    assert to_values(mod_power(x, 65537, m, False)) == [
        pow(v, 65537, n) for v, n in zip(values, moduli, strict=True)
    ]


def test_very_long_moduli(on_each_processor: Processor, rng: np.random.Generator) -> None:
    for bits in (20_000, 40_000):
        values = [2**bits - 1, int.from_bytes(rng.bytes(bits // 8), "little")]
        modulus = 2**bits - 3
        x, m = to_words(values, bits, on_each_processor), to_words([modulus], bits, on_each_processor)
        assert to_values(mod_power(x, 5, m, False)) == [pow(v, 5, modulus) for v in values]
        assert to_values(mod_multiply(x, x, m, False)) == [pow(v, 2, modulus) for v in values]


def test_sums_of_montgomery_products_do_not_overflow() -> None:
    """The greatest digits, in numbers of the longest moduli that have these products."""
    bits, host = 51_200, Processor("cpu", np)
    modulus = 2**bits - 1
    x, m = (to_words([v], bits, host) for v in (modulus - 1, modulus))
    for method in cpu.positional_methods()[1:]:
        square = to_words([pow(2, 2 * cpu.montgomery_bits(len(x), method), modulus)], bits, host)
        for y in (x, x.copy()):
            out = np.empty_like(x)
            cpu.montgomery_multiply(x, y, m, square, out, method=method)
            assert to_values(out) == [1]
            cpu.positional_mod_multiply(x, y, m, out, method=method)
            assert to_values(out) == [1]


def test_r_is_a_power_of_the_word(on_each_processor: Processor) -> None:
    """131 and 239 bits: R = 2**bits, no power of the word, would give wrong products."""
    for bits in (131, 239):
        modulus = 2**bits - 31
        values = [3, modulus - 1, 2 ** (bits - 1)]
        x, m = to_words(values, bits, on_each_processor), to_words([modulus], bits, on_each_processor)
        assert to_values(mod_multiply(x, x, m, False)) == [v * v % modulus for v in values]


@pytest.mark.parametrize("bits", [8, 64, 239, 1024])
def test_inverses(bits: int, on_each_processor: Processor, rng: np.random.Generator) -> None:
    primes = {8: 251, 64: 2**61 - 1, 239: 2**127 - 1, 1024: 2**521 - 1}
    p = primes[bits]
    values = [v for v in some_values(bits, False, 100, rng) if v % p]
    x = to_words(values, bits, on_each_processor)
    inverses = [pow(v, -1, p) for v in values]
    assert to_values(mod_inverse(x, to_words([p], bits, on_each_processor), False)) == inverses
    moduli = [2 ** (bits - 1), 3, 1, p, 9]
    numbers = [2**bits - 1, 2, 0, 3, 4]
    x, m = (to_words(v, bits, on_each_processor) for v in (numbers, moduli))
    assert to_values(mod_inverse(x, m, False)) == list(map(pow, numbers, [-1] * 5, moduli))
    assert to_values(mod_power(x, -3, m, False)) == list(map(pow, numbers, [-3] * 5, moduli))


@pytest.mark.parametrize("bits", [8, 33, 64, 239, 1024])
def test_inverses_modulo_each(bits: int, on_each_processor: Processor, rng: np.random.Generator) -> None:
    """Odd moduli, even ones and both; numbers above the moduli, 1 of each."""
    numbers, moduli = [1, 1, 2**bits - 1], [1, 2, 1]
    for m in moduli_of(bits, rng) * 4:
        x = int.from_bytes(rng.bytes(bits // 8 + 1), "little") % 2**bits
        while math.gcd(x, m) > 1:
            x = (x + 1) % 2**bits
        numbers.append(x)
        moduli.append(m)
    for parities in ((1,), (0,), (0, 1)):
        pairs = [(x, m) for x, m in zip(numbers, moduli, strict=True) if m % 2 in parities]
        x, m = (to_words([pair[i] for pair in pairs], bits, on_each_processor) for i in range(2))
        assert to_values(mod_inverse(x, m, False)) == [pow(v, -1, n) for v, n in pairs]
    # One that has none, odd and even, is found.
    for number, modulus in ((6, 9), (6, 8), (0, 5), (0, 4), (15, 10)):
        values = [number if i == 7 else v for i, v in enumerate(numbers)]
        n = [modulus if i == 7 else v for i, v in enumerate(moduli)]
        x, m = (to_words(v, bits, on_each_processor) for v in (values, n))
        with pytest.raises(ZeroDivisionError, match=f"flat index 7 has no inverse modulo {modulus}:"):
            mod_inverse(x, m, False)


def test_errors(on_each_processor: Processor) -> None:
    x = to_words([3, 5, 6], 64, on_each_processor)
    for function in (mod_add, mod_subtract, mod_multiply):
        with pytest.raises(ZeroDivisionError, match="the modulus at flat index 11 is 0"):
            function(x, x, to_words([1, 0, 0], 64, on_each_processor), False, lambda i: i + 10)
        with pytest.raises(ZeroDivisionError, match="the modulus at flat index 0 is 0"):
            function(x * 0, x, to_words([0], 64, on_each_processor), False)
        with pytest.raises(ValueError, match="the modulus at flat index 0 is negative"):
            function(x, x, to_words([-1], 64, on_each_processor), True)
    with pytest.raises(ZeroDivisionError, match=r"flat index 2 has no inverse modulo 9: .* is 3"):
        mod_inverse(x[:, 1:], to_words([9], 64, on_each_processor), False, lambda i: i + 1)
    many = to_words([2] * 50 + [21] + [2] * 50, 64, on_each_processor)
    with pytest.raises(ZeroDivisionError, match="flat index 50 has no inverse modulo 9"):
        mod_inverse(many, to_words([9], 64, on_each_processor), False)
    with pytest.raises(ValueError, match="the exponent at flat index 1 is negative"):
        mod_power(x, to_words([1, -1, 1], 64, on_each_processor), to_words([9], 64, on_each_processor), True)
    assert mod_power(x[:, :0], 3, to_words([9], 64, on_each_processor), False).shape == (2, 0)


def montgomery_agrees(method: str, values: list[int], moduli: list[int], bits: int) -> None:
    host = Processor("cpu", np)
    squares = [pow(2, 2 * cpu.montgomery_bits(-(-bits // 32), method), n) for n in moduli]
    x, m, r = (to_words(v, bits, host) for v in (values, moduli, squares))
    out = np.empty_like(x)
    cpu.montgomery_multiply(x, x, m, r, out, method=method)
    assert to_values(out) == [v * v % n for v, n in zip(values, moduli, strict=True)]
    others = values[::-1]
    cpu.montgomery_multiply(x, to_words(others, bits, host), m, r, out, method=method)
    assert to_values(out) == [v * w % n for v, w, n in zip(values, others, moduli, strict=True)]
    cpu.montgomery_power(x, x[:2], min(64, 32 * len(x)), m, r, out, method=method)
    assert to_values(out) == [pow(v, v % 2**64, n) for v, n in zip(values, moduli, strict=True)]


def test_methods_agree(rng: np.random.Generator) -> None:
    for bits in (31, 64, 239, 1024, 2500):
        host = Processor("cpu", np)
        values = some_values(bits, False, 30, rng)
        moduli = [int.from_bytes(rng.bytes(bits // 8 + 1), "little") % 2**bits | 1 for _ in values]
        x, m = (to_words(v, bits, host) for v in (values, moduli))
        for method in cpu.positional_methods():
            out = np.empty_like(x)
            if method == cpu.GMP:
                cpu.positional_mod_power(x, x[:2], m, out)
                assert to_values(out) == [pow(v, v % 2**64, n) for v, n in zip(values, moduli, strict=True)]
            else:
                montgomery_agrees(method, values, moduli, bits)
            cpu.positional_mod_multiply(x, x[:1], m, out, method=method)  # by a factor of one limb
            assert to_values(out) == [v * (v % 2**32) % n for v, n in zip(values, moduli, strict=True)]
            even = to_words([n & ~1 or 2 for n in moduli], bits, host)
            cpu.positional_mod_multiply(x, x, even, out, method=method)
            assert to_values(out) == [v * v % (n & ~1 or 2) for v, n in zip(values, moduli, strict=True)]
            ends = [n - 1 for n in moduli]  # which are their own inverses
            assert cpu.positional_inverse(to_words(ends, bits, host), m, out, method=method) is None
            assert to_values(out) == [v % n for v, n in zip(ends, moduli, strict=True)]
            coprime = [v if math.gcd(v, n) == 1 else 1 for v, n in zip(values, moduli, strict=True)]
            assert cpu.positional_inverse(to_words(coprime, bits, host), m, out, method=method) is None
            assert to_values(out) == [pow(v, -1, n) for v, n in zip(coprime, moduli, strict=True)]
            shared = to_words([0 if i in (9, 20) else v for i, v in enumerate(coprime)], bits, host)
            m_above = to_words([n if n > 1 else 3 for n in moduli], bits, host)
            assert cpu.positional_inverse(shared, m_above, out, method=method) == 9
            below = to_words([v % n for v, n in zip(values, moduli, strict=True)], bits, host)
            assert cpu.positional_mod_add(below, below, m, False, out, method=method)
            assert to_values(out) == [2 * v % n for v, n in zip(values, moduli, strict=True)]
