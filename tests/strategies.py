"""Test data: moduli sets, values at the edges of their ranges, and Hypothesis strategies for both."""

import math
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import gmpy2
import numpy as np
import pytest
from hypothesis import strategies as st

from rnsdask.core.moduli import ModuliSet


def slow(*values: Any) -> list[Any]:
    """Parameters of a test that are tried with --slow only."""
    return [pytest.param(value, marks=pytest.mark.slow) for value in values]


TABLE2_STARTS = {4: 65947, 8: 65725, 16: 65599, 32: 65533, 64: 65379, 128: 65139, 256: 64491}
"""First modulus by size of the sets in Table 2 of K. Isupov, "High-Performance Computation in Residue Number
System Using Floating-Point Arithmetic", Computation 9 (2021)."""


def _tiny_beside_huge(count: int) -> ModuliSet:
    """Interleave the smallest primes with the largest below 2**32."""
    small, large = [2], [2**32]
    while len(small) < count:
        small.append(int(gmpy2.next_prime(small[-1])))
    while len(large) <= count:
        large.append(int(gmpy2.prev_prime(large[-1])))
    return ModuliSet(m for pair in zip(large[1:], small, strict=True) for m in pair)


MODULI_SETS: dict[str, ModuliSet] = {
    "one": ModuliSet([65537]),
    "one_full": ModuliSet([2**32]),
    "two_three": ModuliSet([2, 3]),
    "three_two": ModuliSet([3, 2]),
    "tiny_unsorted": ModuliSet([5, 4, 3, 7, 11]),
    "top": ModuliSet([2**32, 2**32 - 1, 2**32 - 3, 2**32 - 5]),
    "unsorted": ModuliSet([2**32 - 5, 3, 2**31 - 1, 2, 65537, 5]),
    "tiny_beside_huge": _tiny_beside_huge(24),
    "bits2048": ModuliSet.for_bits(2048),
    "moduli512": ModuliSet.for_bits(16383),
    **{f"table2_{n}": ModuliSet.consecutive_odd(start, n) for n, start in TABLE2_STARTS.items()},
}
"""Moduli sets by name, the adversarial ones and those of real use."""

EXHAUSTIVE_SETS = {name: ms for name, ms in MODULI_SETS.items() if ms.product <= 5000}
"""Moduli sets with so few values that a test can try every one."""

SMALL_SETS = {name: ms for name, ms in MODULI_SETS.items() if len(ms) <= 64}
"""Moduli sets for tests whose cost grows with the square of the number of moduli."""

MS_357 = ModuliSet([3, 5, 7])
"""One to reckon with by hand: M = 105."""

STORE_SET = ModuliSet([2**32, 2**32 - 1, 7, 65519])
"""One for tests of stores: few moduli, long and short ones."""

BETWEEN_OTHERS = {"three_two", "table2_8", "table2_16", "table2_64", "table2_128", "table2_256"}
"""Sets that are tried with --slow only: others of their kind are shorter and longer, or in another order."""


def each_set(sets: dict[str, ModuliSet], name: str = "moduli") -> pytest.MarkDecorator:
    """Parametrize a test by moduli sets."""
    return pytest.mark.parametrize(name, [pytest.param(ms, id=k, marks=_marks(k)) for k, ms in sets.items()])


def each_name(sets: Iterable[str], name: str = "name") -> pytest.MarkDecorator:
    """Parametrize a test by the names of moduli sets."""
    return pytest.mark.parametrize(name, [pytest.param(k, marks=_marks(k)) for k in sets])


def _marks(name: str) -> list[pytest.MarkDecorator]:
    return [pytest.mark.slow] if name in BETWEEN_OTHERS else []


ALL_SETS = each_set(MODULI_SETS)
SHORT_SETS = each_set(SMALL_SETS)
BOTH_RANGES = pytest.mark.parametrize("signed", [False, True], ids=["unsigned", "signed"])
SIGNED_AT_LEAST = pytest.mark.parametrize("signed", [True, *slow(False)], ids=["signed", "unsigned"])
"""Both ranges, the unsigned one with --slow only."""


def _spread(items: list[int], limit: int) -> list[int]:
    """Take at most `limit` items at even distances, the first and the last among them."""
    if len(items) <= limit:
        return items
    return [items[i * (len(items) - 1) // (limit - 1)] for i in range(limit)]


def _landmarks(moduli: ModuliSet) -> Iterable[int]:
    """Values of 0 to M around which an algorithm may change its mind."""
    product = moduli.product
    yield from (0, product, product // 2, product // 3)
    # All powers of two of a short set; of a long one some everywhere, and all near limbs' and M's ends.
    exponents = list(range(moduli.bits + 1))
    ends = [k for k in exponents if k <= 2 or k % 32 == 0 or k > moduli.bits - 4]
    yield from (1 << k for k in _spread(exponents, 72) + _spread(ends, 72))
    # Where the last mixed-radix digit that is not zero changes, the partial products and the moduli.
    prefixes = [math.prod(moduli.moduli[:k]) for k in _spread(list(range(1, len(moduli) + 1)), 12)]
    yield from prefixes
    yield from (product - p for p in prefixes)
    yield from _spread(sorted(moduli.partial_products), 12)
    yield from _spread(sorted(moduli), 12)
    # The reach of the error of a fixed-point evaluation with F fraction bits, beside 0, M and M/2.
    error = sum(moduli) - len(moduli)
    for fraction_bits in (32, 64, 96, 128):
        reach = product * error >> fraction_bits
        yield from (reach, product - reach, product // 2 - reach, product // 2 + reach)


def edge_values(moduli: ModuliSet, signed: bool = False) -> list[int]:
    """Return the values at which mistakes show, each once and in rising order.

    They are 0, 1, 2, the ends and the middle of the range, powers of two, all with their neighbours,
    mixed-radix weights, partial products, and the places where an evaluation with F fraction bits becomes
    ambiguous. For a long set there are about a thousand, signed twice that.
    """
    lowest, highest = moduli.value_range(signed)
    near = {v + d for v in _landmarks(moduli) for d in (-2, -1, 0, 1, 2)}
    if signed:
        near |= {-v for v in near} | {v + d for v in (lowest, highest) for d in (-2, -1, 0, 1, 2)}
    return sorted(v for v in near if lowest <= v <= highest)


def some_edges(moduli: ModuliSet, signed: bool, rng: np.random.Generator, count: int) -> list[int]:
    """Edge values in random order, at most `count` of them."""
    values = edge_values(moduli, signed)
    return [values[i] for i in rng.permutation(len(values))[:count]]


def bounds_around_prefixes(moduli: ModuliSet, signed: bool = False, prefixes: int = 4) -> list[int]:
    """Bounds of magnitudes that need one modulus more or less, or leave most of a modulus unused.

    Around products of the first moduli, from those of one modulus to those of all: the products and powers of
    two (for signed numbers, their halves) with their neighbours, and far less than that.
    """
    _, highest = moduli.value_range(signed)
    bounds = {1, 2, 3}
    for count in _spread(list(range(1, len(moduli) + 1)), prefixes):
        product = math.prod(moduli.moduli[:count])
        power = 1 << product.bit_length() - 1
        middle = {product, product // 2} if signed else {product}
        bounds |= {m + d for m in middle for d in (-2, -1, 0)}
        bounds |= {power, power - 1, power // 2, product * 3 // 4, product * 5}
    return sorted(b for b in bounds if 0 < b <= highest)


def values_within(bound: int, signed: bool, rng: np.random.Generator, count: int = 24) -> list[int]:
    """Random numbers and numbers at the edges of what a bound allows, in random order."""
    values = [int(f) * (bound + 1) >> 62 for f in rng.integers(0, 2**62, size=count)]
    values += [v for v in (0, 1, 2, bound // 2, bound // 2 + 1, bound - 1, bound, bound) if 0 <= v <= bound]
    if signed:
        values = [v for pair in values for v in (pair, -pair)]
    return [values[i] for i in rng.permutation(len(values))[: 2 * count]]


@st.composite
def moduli_sets(draw: st.DrawFn, min_size: int = 1, max_size: int = 12) -> ModuliSet:
    """Draw pairwise coprime moduli of 2 to 2**32 in any order, small, large and composite ones mixed."""
    modulus = st.one_of(
        st.integers(2, 2**32),
        st.integers(2, 64),
        st.integers(2**32 - 1000, 2**32),
        st.sampled_from([2**k for k in range(1, 33)]),
        st.integers(60000, 70000),
    )
    size = draw(st.integers(min_size, max_size))
    moduli: list[int] = []
    for candidate in draw(st.lists(modulus, min_size=size, max_size=2 * size + 4)):
        if len(moduli) < size and math.gcd(candidate, math.prod(moduli)) == 1:
            moduli.append(candidate)
    while len(moduli) < min_size:  # too many shared a factor: fill up with primes, which shrink well
        prime = int(gmpy2.next_prime(max(moduli, default=2) % 2**31))
        while math.gcd(prime, math.prod(moduli)) > 1:
            prime = int(gmpy2.next_prime(prime))
        moduli.append(prime)
    return ModuliSet(draw(st.permutations(moduli)))


def values_in(moduli: ModuliSet, signed: bool = False) -> st.SearchStrategy[int]:
    """Draw values of the range, the edges as often as the rest."""
    lowest, highest = moduli.value_range(signed)
    return st.one_of(st.integers(lowest, highest), st.sampled_from(edge_values(moduli, signed)))


@st.composite
def arrays_of_values(
    draw: st.DrawFn, moduli: ModuliSet, signed: bool = False, min_size: int = 1, max_size: int = 40
) -> list[int]:
    """Draw lists of values with what makes comparison hard: equal values and values that differ by little."""
    lowest, highest = moduli.value_range(signed)
    value = values_in(moduli, signed)
    centre = draw(value)
    close = st.integers(max(lowest, centre - 3), min(highest, centre + 3))
    item: st.SearchStrategy[Any] = draw(st.sampled_from([value, close, st.one_of(value, close)]))
    return draw(st.lists(item, min_size=min_size, max_size=max_size))


@st.composite
def chunks_of(draw: st.DrawFn, length: int) -> tuple[int, ...]:
    """Draw the lengths of up to six chunks."""
    cuts = sorted({0, length, *draw(st.lists(st.integers(0, length), max_size=5))})
    return tuple(b - a for a, b in pairwise(cuts))
