"""Which way positional numbers are computed on the CPU, and functions of GMP on columns of limbs."""

from concurrent.futures import ThreadPoolExecutor

import gmpy2.gmpy2
import numpy as np
import pytest
from conftest import Processor
from positional_numbers import to_values, to_words

from rnsdask.backend import cpu
from rnsdask.backend.cpu import positional
from rnsdask.positional.divide import divmod_, gcd, isqrt
from rnsdask.positional.modular import mod_inverse, mod_multiply, mod_power
from rnsdask.positional.multiply import multiply_checked

HOST = Processor("cpu", np)
COUNTS = [1, 2, 3, 5, 9, 31, 32, 33, 65]  # 32 numbers are copied together


def some(bits: int, count: int, rng: np.random.Generator) -> list[int]:
    return [int.from_bytes(rng.bytes(-(-bits // 8)), "little") % 2**bits for _ in range(count)]


def test_long_and_few_numbers_are_gmps(monkeypatch: pytest.MonkeyPatch) -> None:
    choice = positional
    for level, lanes in (("avx2", 4), ("ifma", 8)):
        monkeypatch.setattr(choice, "best_method", level)
        for operation in ("multiply", "multiply_low", "mod_multiply", "mod_power", "mod_inverse"):
            assert choice.method_for(operation, 64, 1) == "gmp"
            assert choice.method_for(operation, 64, lanes) == level
            assert choice.method_for(operation, 64, 1000) == level
            if level == "avx2" or not operation.startswith("multiply"):
                assert choice.method_for(operation, 4096, 1000) == "gmp"
        assert choice.method_for("divmod", 64, 1000) == level
        assert choice.method_for("divmod", 0, 1000) == "gmp"
        assert choice.method_for("divmod_short", 16, 1000) == level
    monkeypatch.setattr(choice, "best_method", "gmp")
    assert choice.method_for("multiply", 1, 1000) == "gmp"
    assert choice.positional_methods()[0] == "gmp"


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("bits", [31, 64, 1000, 8224, 12_000])
def test_as_chosen(bits: int, count: int, rng: np.random.Generator) -> None:
    """Lengths and counts on both sides of where another way is chosen."""
    a, b, m = (some(bits, count, rng) for _ in range(3))
    a[0], b[0], m[0] = 2**bits - 1, 2**bits - 1, 2**bits - 1
    m = [v | 1 for v in m]
    x, y, each = (to_words(v, bits, HOST) for v in (a, b, m))
    low, beyond = multiply_checked(x, y, bits, False)
    assert to_values(low) == [p * q % 2**bits for p, q in zip(a, b, strict=True)]
    assert beyond.tolist() == [p * q >= 2**bits for p, q in zip(a, b, strict=True)]
    quotients, remainders = divmod_(x, each, False)
    assert list(zip(to_values(quotients), to_values(remainders), strict=True)) == list(map(divmod, a, m))
    assert to_values(gcd(x, y, False)) == list(map(gmpy2.gcd, a, b))
    assert to_values(isqrt(x, False)) == list(map(gmpy2.isqrt, a))
    for moduli, values in ((each, m), (each[:, :1], m[:1] * count)):
        triples = list(zip(a, b, values, strict=True))
        assert to_values(mod_multiply(x, y, moduli, False)) == [p * q % n for p, q, n in triples]
        assert to_values(mod_power(x, 5, moduli, False)) == [pow(p, 5, n) for p, _, n in triples]
    ends = to_words([n - 1 for n in m], bits, HOST)
    assert to_values(mod_inverse(ends, each, False)) == [(n - 1) % n for n in m]
    if count > 1:
        ends = np.where(np.arange(count) == count // 2, np.uint32(0), ends)
        message = f"flat index {count // 2} has no inverse modulo"
        with pytest.raises(ZeroDivisionError, match=message):
            mod_inverse(ends, each, False)


def test_operands_that_lie_apart(rng: np.random.Generator) -> None:
    """Columns of a wider matrix, with other numbers beside them, and an odd number of limbs."""
    values = some(320, 40, rng)
    x = to_words(values, 320, HOST)
    part, out = x[:5, 3:23], np.empty((10, 20), dtype=np.uint32)
    cpu.positional_multiply(part, part, None, 320, False, out, None, method=cpu.GMP)
    assert to_values(out) == [(v % 2**160) ** 2 for v in values[3:23]]


def test_no_divisor_is_0() -> None:
    """GMP would end the process."""
    x = to_words([5, 6, 7], 64, HOST)
    zero, out = to_words([1, 0, 1], 64, HOST), np.empty((2, 3), dtype=np.uint32)
    with pytest.raises(ValueError, match="a divisor must not be 0"):
        cpu.positional_divmod(x, zero, False, method=cpu.GMP)
    for function in (cpu.positional_mod_multiply, cpu.positional_mod_power):
        with pytest.raises(ValueError, match="a divisor must not be 0"):
            function(x, x, zero, out, **({"method": cpu.GMP} if "multiply" in function.__name__ else {}))
    with pytest.raises(ValueError, match="a divisor must not be 0"):
        cpu.positional_inverse(x, zero, out, method=cpu.GMP)


def test_arrays_that_do_not_fit_each_other() -> None:
    x, out = to_words([5, 6, 7], 64, HOST), np.empty((2, 3), dtype=np.uint32)
    for numbers in (x[:, :2], x[:0]):
        with pytest.raises(ValueError, match="an operand must have"):
            cpu.positional_gcd(numbers, x, False, out)
    for method in positional.positional_methods():  # else it might be taken for a square
        with pytest.raises(ValueError, match="must be contiguous"):
            cpu.positional_multiply(x[:, :2], x[:, ::2], None, 64, False, out[:, :2].copy(), None, method)
    long = np.broadcast_to(np.uint32(1), (2**31, 1))  # which takes no memory
    with pytest.raises(ValueError, match=r"must have less than 2\*\*31 - 1 limbs"):
        cpu.positional_isqrt(long, out)
    for bits in (0, 32, 65):
        with pytest.raises(ValueError, match="the limbs of its bits"):
            cpu.positional_multiply(x, x, None, bits, False, out, None, method=cpu.GMP)
    library = type(positional.gmp())
    with pytest.raises(RuntimeError, match="is not loaded"):
        library("libnone.so")
    with pytest.raises(RuntimeError, match="has no function"):
        library(np._core._multiarray_umath.__file__)


def test_threads(rng: np.random.Generator) -> None:
    """GMP works without the interpreter's lock."""
    bits = 20_000
    jobs = [(some(bits, 3, rng), some(bits, 3, rng)) for _ in range(24)]

    def product(pair: tuple[list[int], list[int]]) -> list[int]:
        x, y = (to_words(v, bits, HOST) for v in pair)
        out = np.empty((2 * len(x), 3), dtype=np.uint32)
        for _ in range(5):
            cpu.positional_multiply(x, y, None, 64 * len(x), False, out, None, method=cpu.GMP)
        return to_values(out)

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(product, jobs))
    assert found == [[p * q for p, q in zip(*pair, strict=True)] for pair in jobs]
