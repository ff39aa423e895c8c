"""Products of very long integers against GMP's, and Python's."""

import os
from typing import Any

import gmpy2
import numpy as np
import pytest
from gmpy2 import mpz

import rnsdask as rd
from rnsdask.backend import cpu
from rnsdask.fields import long_product

# Lengths that fill digits, and N of them, or do not.
BITS = [
    (128, 128),
    (1000, 24),
    (2**12, 2**12),
    (2**13 + 1, 2**13 - 1),
    (9999, 40000),
    (2**17 - 32, 2**17 + 7),
]


def random_integer(rng: np.random.Generator, bits: int) -> mpz:
    """An integer of exactly so many bits."""
    return mpz(int.from_bytes(rng.bytes(bits // 8 + 1), "little") % 2**bits) | mpz(1) << bits - 1


def check(x: mpz, y: mpz) -> None:
    assert long_product.multiply_by_transforms(x, y) == x * y


@pytest.mark.parametrize(("m", "n"), BITS)
def test_every_digit_at_its_greatest(m: int, n: int) -> None:
    ones = [(mpz(1) << bits) - 1 for bits in (m, n)]
    check(*ones)
    check(ones[0], ones[0])
    check(ones[1], mpz(1) << m - 1)
    check((mpz(1) << m - 1) + 1, ones[1])


@pytest.mark.parametrize(("m", "n"), [*BITS, (10**6, 2**20), (2**21, 70000), (3 * 2**20, 2**22 + 1)])
def test_any_digits(m: int, n: int, rng: np.random.Generator) -> None:
    x, y = random_integer(rng, m), random_integer(rng, n)
    check(x, y)
    check(y, x)
    check(x, x)
    # Long runs of the same digit, as carries like them.
    check(gmpy2.bit_clear(x << 3000, 0) + (mpz(1) << 2999) - 1, y)


def test_carries_through_all_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_product, "BLOCK", 2)
    for bits in (2**12, 5000, 2**14 - 1):
        ones = (mpz(1) << bits) - 1
        check(ones, ones)
        # 2**k - 1 times 2**k + 1: nothing but ones.
        check(ones, ones + 2)


def test_threads(monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator) -> None:
    monkeypatch.setattr(long_product, "PARALLEL_BITS", 0)
    monkeypatch.setattr(long_product, "BLOCK", 16)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2}, raising=False)
    check(random_integer(rng, 100_000), random_integer(rng, 150_001))


def test_products_too_long_for_the_primes(monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator) -> None:
    monkeypatch.setattr(long_product, "MOST_LIMBS", 2000)
    monkeypatch.setattr(long_product, "LEAST_OPERAND_BITS", 512)
    monkeypatch.setattr(long_product, "LEAST_SQUARE_BITS", 1024)
    monkeypatch.setattr(long_product, "LEAST_PRODUCT_BITS", 1024)
    for m, n in ((64000, 64001), (200_000, 190_000), (10**6, 700), (32 * 2000 - 513, 513)):
        x, y = random_integer(rng, m), random_integer(rng, n)
        assert rd.long_multiply(x, y) == x * y
        assert rd.long_multiply(y, x) == x * y
    power = mpz(1) << 150_000  # the lower half is 0
    assert rd.long_multiply(power, power) == power * power


def test_there_are_primes_for_every_length() -> None:
    most = long_product.MOST_LIMBS
    limbs = [
        (most // 2, most // 2),
        (most // 2 + 1, most // 2 - 1),
        (most - 2**11, 2**11),
        (2**22 + 1, 2**22 - 1),
    ]
    limbs += [((7 << e) // 2, (1 << e) // 2 - 1) for e in range(13, 24, 3)] + [(2**22 + 1, 2**22 - 1)]
    for a, b in limbs:
        plan = long_product.plan_for(a, b)
        counts = [-(-count // plan.limb_count) for count in (a, b)]
        assert sum(counts) <= plan.length <= 2**23
        assert min(counts) * (2 ** (32 * plan.limb_count) - 1) ** 2 < plan.moduli.product
        # The product's last coefficient is as long as M, and may end behind the product.
        assert plan.to_limbs.limb_count >= 2 * plan.limb_count


def test_operands_that_transforms_take(monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator) -> None:
    taken = []
    monkeypatch.setattr(long_product, "multiply_by_transforms", lambda x, y: taken.append((x, y)) or x * y)
    half, quarter = random_integer(rng, 2**19), random_integer(rng, 2**16)
    for x, y in ((half, half + 1), (quarter, half << 2**19), (half << 2**20 + 2**19, half << 2**20 + 2**19)):
        assert rd.long_multiply(x, y) == x * y
    assert len(taken) == 3
    for x, y in ((half - 1 >> 1, half), (half, half), (quarter >> 1, half << 2**20)):
        assert rd.long_multiply(x, y) == x * y
    assert len(taken) == 3


@pytest.mark.parametrize("bits", [1, 64, 70_000, 2**20])
def test_kinds_and_signs(bits: int, rng: np.random.Generator) -> None:
    x, y = random_integer(rng, bits), random_integer(rng, bits)
    for a, b in ((x, y), (-x, y), (x, -y), (-x, -y), (x, mpz(0)), (mpz(0), -y), (x, mpz(-1)), (-x, -x)):
        expected = a * b
        for kinds in ((mpz, mpz), (int, mpz), (mpz, int), (int, int)):
            found = rd.long_multiply(kinds[0](a), kinds[1](b))
            assert found == expected
            assert type(found) is (int if kinds == (int, int) else type(x))
    assert rd.long_multiply(np.int64(-3), 7) == -21


@pytest.mark.parametrize("value", [1.0, "1", None, True, np.float64(2), gmpy2.mpq(1, 2), np.array([1, 2])])
def test_operands_that_are_no_integers(value: Any) -> None:
    with pytest.raises(TypeError, match="b must be an integer, got"):
        rd.long_multiply(1, value)
    with pytest.raises(TypeError, match="a must be an integer, got"):
        rd.long_multiply(value, 1)


@pytest.mark.parametrize("step", [1, 2, 3, 5])
def test_overlap_add(step: int, rng: np.random.Generator) -> None:
    for count, width in ((1, 3), (7, 3), (40, 5)):
        numbers = rng.integers(0, 2**32, (count, width), dtype=np.uint32)
        numbers[rng.random(count) < 0.5] = 2**32 - 1
        size = (count - 1) * step + width + 2
        start = np.full(size, 2**32 - 1, dtype=np.uint32)
        start[-1] = 0
        total = sum(int.from_bytes(row.tobytes(), "little") << 32 * step * k for k, row in enumerate(numbers))
        expected = total + int.from_bytes(start.tobytes(), "little")
        cpu.overlap_add(numbers, step, start)
        assert int.from_bytes(start.tobytes(), "little") == expected % 2 ** (32 * size)
    top = np.full(3, 2**32 - 1, dtype=np.uint32)
    cpu.overlap_add(np.array([[1]], dtype=np.uint32), 1, top)  # the last carry is dropped
    assert top.tolist() == [0, 0, 0]
    with pytest.raises(ValueError, match="the sum must have all places"):
        cpu.overlap_add(np.ones((2, 3), dtype=np.uint32), 1, top)


@pytest.mark.parametrize("m", [1, 2, 3, 8, 33])
@pytest.mark.parametrize("n", [1, 2, 7])
def test_few_limbs(m: int, n: int) -> None:
    x, y = np.full(m, 2**32 - 1, np.uint32), np.full(n, 2**32 - 1, np.uint32)
    found = long_product.multiply_limbs(x, y)
    assert int.from_bytes(found.astype("<u4").tobytes(), "little") == (2 ** (32 * m) - 1) * (
        2 ** (32 * n) - 1
    )
