"""Trees of products and remainders, and batch gcd, against Python's integers and GMP's."""

import math
from typing import Any

import gmpy2
import numpy as np
import pytest
from conftest import Processor
from strategies import slow

import rnsdask as rd
from rnsdask.fields import long_product
from rnsdask.positional import trees

PRIMES = [2**31 - 1, 2**61 - 1, 2**89 - 1, 2**107 - 1, 2**127 - 1]


def array_of(values: Any, bits: int, processor: Processor, signed: bool = False) -> Any:
    x = rd.from_ints(values, rd.Positional(bits, signed), chunks=None)
    return rd.PositionalArray(processor.xp.asarray(x.words), x.system)


def expected_divisors(values: list[int]) -> list[int]:
    product = math.prod(map(gmpy2.mpz, values))
    return [math.gcd(n, int(product % (n * n) // n)) for n in map(gmpy2.mpz, values)]


def check(values: list[int], bits: int, processor: Processor, signed: bool = False) -> None:
    """All results for an array in memory, and for lazy ones."""
    x = array_of(values, bits, processor, signed)
    divisors, product = expected_divisors(values), math.prod(values)
    integers = [0, 1, -1, product - 1, product, -3 * product - 7, product**2 + 5, 7**40]
    chunks = {max(1, len(values) // 10), len(values) // 3 + 1}
    for array in (x, *map(x.rechunk, chunks)):
        found = rd.batch_gcd(array)
        assert found.system == x.system
        assert found.to_ints().tolist() == divisors
        tree = rd.product_tree(array)
        assert int(tree.product) == product
        for value in integers:
            assert tree.remainders(value).to_ints().tolist() == [value % n for n in values]


def some_keys(rng: np.random.Generator, count: int, bits: int) -> list[int]:
    """Random numbers of all lengths up to so many bits, and some with a factor in common."""
    keys = [int.from_bytes(rng.bytes(bits // 8 + 1), "little") >> int(rng.integers(8, bits + 8)) or 1]
    while len(keys) < count:
        length = int(rng.integers(1, bits + 1))
        keys.append(int.from_bytes(rng.bytes(bits // 8 + 1), "little") % 2**length or 1)
    return keys


@pytest.mark.parametrize(
    "values",
    [
        [1],
        [6, 6],
        [PRIMES[0] * PRIMES[1], PRIMES[1] * PRIMES[0], PRIMES[1] * PRIMES[2], PRIMES[3], PRIMES[3]],
        [2, 4, 8, 16, 2**199, 3],
        [2**200 - 1] * 9,
        *slow([2**64 - 1], [1, 1, 1], [3 * p for p in PRIMES], [2**200 - 1, 1] * 5),
        *slow([2**199, 2**199 - 1, 2**199 + 1, 2**100]),
    ],
)
def test_special_keys(values: list[int], on_each_processor: Processor) -> None:
    check(values, 200, on_each_processor)
    check(values, 201, on_each_processor, signed=True)


@pytest.mark.parametrize("count", [2, 3, 7, 8, 17, 257, *slow(5, 31, 33, 100)])
def test_any_count(count: int, on_each_processor: Processor, rng: np.random.Generator) -> None:
    check(some_keys(rng, count, 300), 300, on_each_processor)


@pytest.mark.parametrize("bits", [1, 31, 32, 33, 2048, *slow(64, 1000, 8191, 40_000)])
def test_any_length(bits: int, on_each_processor: Processor, rng: np.random.Generator) -> None:
    check(some_keys(rng, 11, bits), bits, on_each_processor)
    check([2**bits - 1] * 5, bits, on_each_processor)


def test_long_products(on_each_processor: Processor, rng: np.random.Generator) -> None:
    keys = some_keys(rng, 700, 2048)
    keys[7], keys[654] = PRIMES[4] * PRIMES[3], PRIMES[4] * PRIMES[2]
    x = array_of(keys, 2048, on_each_processor)
    expected = expected_divisors(keys)
    assert expected[7] % PRIMES[4] == expected[654] % PRIMES[4] == 0
    for array in (x, x.rechunk(300)):
        assert rd.batch_gcd(array).to_ints().tolist() == expected


def test_products_beyond_all_transforms(
    monkeypatch: pytest.MonkeyPatch, on_each_processor: Processor, rng: np.random.Generator
) -> None:
    monkeypatch.setattr(trees, "MOST_LIMBS", 2000)
    keys = some_keys(rng, 300, 1024)
    assert rd.batch_gcd(array_of(keys, 1024, on_each_processor)).to_ints().tolist() == expected_divisors(keys)


def test_every_product_by_transforms(monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator) -> None:
    from rnsdask.backend import cpu

    monkeypatch.setattr(cpu, "most_product_limbs", 20)
    for bits in (700, 1500):
        for keys in (some_keys(rng, 50, bits), [2**bits - 1] * 21):
            x = rd.from_ints(keys, rd.Positional(bits), chunks=None)
            assert rd.batch_gcd(x).to_ints().tolist() == expected_divisors(keys)
            product = math.prod(keys)
            for value in (product - 1, -1, product // 3):
                assert rd.remainder_tree(value, x).to_ints().tolist() == [value % n for n in keys]


def test_axes_and_chunks(on_each_processor: Processor, rng: np.random.Generator) -> None:
    keys = some_keys(rng, 60, 100)
    x = array_of(np.array(keys, dtype=object).reshape(3, 4, 5), 100, on_each_processor)
    expected = np.array(expected_divisors(keys), dtype=object).reshape(3, 4, 5)
    for array in (x, x.rechunk((2, 3, 2)), x.rechunk((1, 4, 5)), x.rechunk((3, 1, 5))):
        assert (rd.batch_gcd(array).to_ints() == expected).all()
        assert rd.product_tree(array).product == math.prod(keys)


def test_no_numbers(on_each_processor: Processor) -> None:
    for shape in ((0,), (3, 0)):
        x = array_of(np.empty(shape, dtype=object), 64, on_each_processor)
        for array in (x, x.rechunk(2)):
            assert rd.batch_gcd(array).to_ints().shape == shape
            assert rd.remainder_tree(5, array).to_ints().shape == shape
            assert rd.product_tree(array).product == 1


@pytest.mark.parametrize(("value", "what"), [(0, "is 0"), (-5, "is negative")])
def test_numbers_that_are_not_positive(value: int, what: str, on_each_processor: Processor) -> None:
    x = array_of([[3, 5, 7], [9, value, 11]], 64, on_each_processor, signed=True)
    functions = (
        lambda a: rd.batch_gcd(a).to_ints(),
        lambda a: rd.remainder_tree(10, a).to_ints(),
        lambda a: int(rd.product_tree(a).product),
    )
    for array in (x, x.rechunk((1, 2)), x.rechunk((2, 2))):
        for function in functions:
            with pytest.raises(
                ValueError, match=f"^the number at flat index 4 {what}: a tree takes positive"
            ):
                function(array)


def test_a_lazy_integer(on_each_processor: Processor, rng: np.random.Generator) -> None:
    keys, others = some_keys(rng, 20, 90), some_keys(rng, 9, 70)
    x = array_of(keys, 90, on_each_processor).rechunk(6)
    product = rd.product_tree(array_of(others, 70, on_each_processor).rechunk(4)).product
    expected = [math.prod(others) % n for n in keys]
    for array in (x, array_of(keys, 90, on_each_processor)):
        assert rd.remainder_tree(product, array).to_ints().tolist() == expected


def test_a_selection_of_unknown_size(rng: np.random.Generator) -> None:
    keys = some_keys(rng, 40, 90)
    x = rd.from_ints(keys, rd.Positional(90), chunks=7)
    chosen = x[(x % 2 == 1)]
    with pytest.raises(ValueError, match="compute_chunk_sizes"):
        rd.batch_gcd(chosen)
    odd = [n for n in keys if n % 2]
    assert rd.batch_gcd(chosen.compute_chunk_sizes()).to_ints().tolist() == expected_divisors(odd)


def test_arguments_of_other_kinds() -> None:
    x = rd.from_ints([3, 5], rd.ModuliSet.for_bits(64), chunks=None)
    for name, function in (
        ("batch_gcd", rd.batch_gcd),
        ("product_tree", rd.product_tree),
        ("remainder_tree", lambda x: rd.remainder_tree(7, x)),
    ):
        with pytest.raises(TypeError, match=f"^{name} takes no RNSArray"):
            function(x)
        with pytest.raises(TypeError, match=f"^{name} takes at least one array of numbers, got list"):
            function([3, 5])
    with pytest.raises(TypeError, match="value must be an integer, got"):
        rd.remainder_tree(2.0, x.to_positional(64))


# ---- division of very long integers ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("m", "n"), [(100, 50), (9000, 4000), (9000, 8900), (20_000, 300), (10**6, 3 * 10**5)]
)
def test_floor_of_a_quotient(
    m: int, n: int, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    monkeypatch.setattr(long_product, "LEAST_QUOTIENT_BITS", 200)
    for x in (
        gmpy2.mpz(int.from_bytes(rng.bytes(m // 8), "little")),
        gmpy2.mpz(2) ** m,
        gmpy2.mpz(2) ** m - 1,
    ):
        divisors = [gmpy2.mpz(int.from_bytes(rng.bytes(n // 8), "little")) | 1 << n - 9]
        for y in (*divisors, gmpy2.mpz(2) ** n, gmpy2.mpz(2) ** n - 1, x, x + 1, x // 2 + 1, gmpy2.mpz(1)):
            assert long_product.long_floor_divide(x, y) == x // y
            assert long_product.long_floor_divide(x * y - 1, y) == x - 1
