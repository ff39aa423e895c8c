"""ModuliSet against the definitions: math.gcd over all pairs, constants by pow, the table of the paper."""

import copy
import json
import math
import pickle
import re
import time
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations

import gmpy2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import BOTH_RANGES, MODULI_SETS, each_set, moduli_sets

from rnsdask.core.moduli import ModuliSet, as_integer, fewest_moduli
from rnsdask.store.location import LONGEST_METADATA

# Table 2 of the paper: size, first and last modulus, bits, leading digits of M and its power of ten.
TABLE2 = [
    (4, 65947, 65953, 64, "1.891730206351222500900", 19),
    (8, 65725, 65749, 128, "3.486474761596273374449", 38),
    (16, 65599, 65657, 256, "1.182869237276559892956", 77),
    (32, 65533, 65683, 512, "1.381750867498453484869", 154),
    (64, 65379, 65771, 1024, "1.834972082650114435387", 308),
    (128, 65139, 66071, 2048, "3.267493893788783073405", 616),
    (256, 64491, 66889, 4096, "1.113716837551166769174", 1233),
]


@pytest.mark.parametrize(("count", "first", "last", "bits", "leading", "exponent"), TABLE2)
def test_consecutive_odd_reproduces_table_2(
    count: int, first: int, last: int, bits: int, leading: str, exponent: int
) -> None:
    ms = ModuliSet.consecutive_odd(first, count)
    assert (len(ms), ms[0], ms[-1]) == (count, first, last)
    # The paper rounds M to 22 significant digits, and calls the length of M its number of whole bits.
    digits = leading.replace(".", "")
    assert abs(ms.product / Fraction(10) ** (exponent - 21) - int(digits)) <= Fraction(1, 2)
    assert ms.product >= 2**bits
    assert ms.bits == bits + 1


def consecutive_odd_as_printed(start: int, count: int) -> list[int]:
    """Algorithm 3, step by step."""
    m = [start]
    t = start + 2
    while len(m) < count:
        if all(math.gcd(m_i, t) == 1 for m_i in m):
            m.append(t)
        t += 2
    return m


@pytest.mark.parametrize(("start", "count"), [(3, 1), (3, 40), (15, 30), (64491, 256), (2**32 - 1001, 30)])
def test_consecutive_odd_follows_the_algorithm(start: int, count: int) -> None:
    assert list(ModuliSet.consecutive_odd(start, count)) == consecutive_odd_as_printed(start, count)


@pytest.mark.parametrize(
    ("start", "count", "message"),
    [
        (65536, 4, "start must be an odd integer from 3 to 2**32 - 1, got 65536"),
        (1, 4, "start must be an odd integer from 3 to 2**32 - 1, got 1"),
        (-3, 4, "start must be an odd integer from 3 to 2**32 - 1, got -3"),
        (2**32 + 1, 1, "start must be an odd integer from 3 to 2**32 - 1, got 4294967297"),
        (65537, 0, "count must be at least 1, got 0"),
        (2**32 - 5, 4, "only 3 moduli from 4294967291 to 2**32 qualify, 4 were asked for"),
    ],
)
def test_consecutive_odd_refuses(start: int, count: int, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        ModuliSet.consecutive_odd(start, count)


def test_for_bits_goes_down_from_the_largest_modulus() -> None:
    # 2**32 - 2 is even; 2**32 - 4 too; 2**32 - 1 = 3 * 5 * 17 * 257 * 65537 rules out 2**32 - 6 and others.
    assert list(ModuliSet.for_bits(128))[:4] == [2**32, 2**32 - 1, 2**32 - 3, 2**32 - 5]
    assert list(ModuliSet.for_bits(1)) == [2**32]
    assert list(ModuliSet.for_bits(32)) == [2**32]
    assert list(ModuliSet.for_bits(33)) == [2**32, 2**32 - 1]
    assert list(ModuliSet.for_bits(17, modulus_bits=4)) == [16, 15, 13, 11, 7]
    assert list(ModuliSet.for_bits(3, modulus_bits=2)) == [4, 3]


@given(st.integers(1, 3000), st.integers(9, 32))
def test_for_bits_is_sufficient_minimal_and_greedy(bits: int, modulus_bits: int) -> None:
    try:
        ms = ModuliSet.for_bits(bits, modulus_bits)
    except ValueError:
        assert modulus_bits < 12
        return
    assert ms.product >= 2**bits
    assert ms.product // ms[-1] < 2**bits
    # Greedy: each integer passed over shares a factor with one taken before it.
    assert list(ms) == sorted(ms, reverse=True)
    for skipped in set(range(ms[-1], 2**modulus_bits + 1)) - set(ms):
        assert any(math.gcd(skipped, m) > 1 for m in ms if m > skipped)


@pytest.mark.parametrize("modulus_bits", [2, 3, 4, 5, 8])
def test_for_bits_uses_up_a_width_and_then_says_so(modulus_bits: int) -> None:
    greedy: list[int] = []
    for m in range(2**modulus_bits, 1, -1):
        if all(math.gcd(m, other) == 1 for other in greedy):
            greedy.append(m)
    longest = math.prod(greedy).bit_length() - 1
    assert list(ModuliSet.for_bits(longest, modulus_bits)) == greedy
    with pytest.raises(
        ValueError, match=rf"2\*\*{modulus_bits} ha(ve|s) M .*2\*\*{longest + 1}; use larger moduli"
    ):
        ModuliSet.for_bits(longest + 1, modulus_bits)


def greedy_from(first: int, step: int, count: int) -> list[int]:
    """Integers from the first one on, up to 2**32, each coprime to all before: by the product of those."""
    found: list[int] = []
    product, candidate = gmpy2.mpz(1), first
    while len(found) < count and 2 <= candidate <= 2**32:
        if gmpy2.gcd(product, candidate) == 1:
            found.append(candidate)
            product *= candidate
        candidate += step
    return found


@pytest.mark.parametrize("modulus_bits", [2, 7, 12, 16, 17, 20, 25, 31, 32])
def test_many_moduli_for_bits_are_those_found_one_by_one(modulus_bits: int) -> None:
    greedy = greedy_from(2**modulus_bits, -1, 2500)
    longest = math.prod(greedy).bit_length() - 1
    for bits in (longest, longest - 1, longest // 2):
        ms = ModuliSet.for_bits(bits, modulus_bits)
        assert list(ms) == greedy[: len(ms)]
        assert ms.product >= 2**bits > ms.product // ms[-1]


@pytest.mark.parametrize("start", [3, 5, 9, 105, 255, 257, 4095, 65535, 65537, 2**17 + 1, 2**32 - 99_999])
def test_many_consecutive_odd_moduli_are_those_found_one_by_one(start: int) -> None:
    greedy = greedy_from(start, 2, 2000)
    assert list(ModuliSet.consecutive_odd(start, len(greedy))) == greedy


@pytest.mark.parametrize("bits", [2**25 + 1, 2**26])
@pytest.mark.parametrize(
    "make",
    [
        ModuliSet.for_bits,
        lambda bits: ModuliSet.ntt_primes(bits, 4),
        lambda bits: ModuliSet.consecutive_odd(3, bits),
        lambda bits: ModuliSet.for_bits(64 * bits),
        lambda bits: ModuliSet.for_bits(bits**4),
        lambda bits: fewest_moduli(0, 1 << bits, False),
    ],
)
def test_more_moduli_than_a_store_can_hold_are_refused_at_once(
    make: Callable[[int], ModuliSet], bits: int
) -> None:
    with pytest.raises(ValueError, match="at most 1048576 moduli, because no store can hold more"):
        make(bits)


@pytest.mark.slow
def test_no_store_can_hold_more_moduli() -> None:
    # Those with the shortest texts are the first ones.
    first = ModuliSet.consecutive_odd(3, 2**20)
    text = json.dumps({"attributes": {"rnsdask": {"moduli": list(first)}}}, indent=2)  # as Zarr writes it
    assert len(text) > LONGEST_METADATA
    with pytest.raises(ValueError, match="at most 1048576 moduli, because no store can hold more"):
        ModuliSet([2, *first])


@pytest.mark.slow
def test_large_sets_take_about_linear_time() -> None:
    start = time.process_time()
    ms = ModuliSet.for_bits(10**6)
    assert 2**10**6 <= ms.product < 2 ** (10**6 + 32)
    odd = ModuliSet.consecutive_odd(10**9 + 1, 60_000)
    assert len(ModuliSet(odd)) == 60_000
    assert len(ModuliSet.for_bits(10**7)) == 312_511
    assert time.process_time() - start < 100  # more than ten minutes if quadratic; 1.5 s on a quiet machine


def test_the_first_factor_that_two_of_many_moduli_share_is_found() -> None:
    moduli = list(ModuliSet.for_bits(10**6))
    shared = moduli[:]
    shared[20_011], shared[30_000] = shared[5], shared[700]
    message = rf"moduli {moduli[5]} \(position 5\) and {moduli[5]} \(position 20011\) are not coprime"
    start = time.process_time()
    with pytest.raises(ValueError, match=message):
        ModuliSet(shared)
    with pytest.raises(ValueError, match=r"\(position 0\) and 4294967296 \(position 31251\) are not coprime"):
        ModuliSet(moduli * 2)
    assert time.process_time() - start < 60


@given(st.lists(st.integers(2, 70), min_size=1, max_size=14))
def test_the_first_of_small_moduli_that_share_a_factor_is_named(moduli: list[int]) -> None:
    pairs = ((i, j) for j in range(len(moduli)) for i in range(j))
    shared = next(((i, j) for i, j in pairs if math.gcd(moduli[i], moduli[j]) > 1), None)
    if shared is None:
        assert list(ModuliSet(moduli)) == moduli
        return
    i, j = shared
    with pytest.raises(ValueError, match=rf"^moduli {moduli[i]} \(position {i}\) and .* \(position {j}\)"):
        ModuliSet(moduli)


def test_for_bits_refuses_a_hopeless_request_at_once() -> None:
    start = time.process_time()
    with pytest.raises(ValueError, match=r"no set of moduli up to 2\*\*20 has M >= 2\*\*1000000000"):
        ModuliSet.for_bits(10**9, 20)
    assert time.process_time() - start < 10  # the search itself would take hours


@pytest.mark.parametrize(
    ("bits", "modulus_bits", "message"),
    [
        (0, 32, "bits must be at least 1, got 0"),
        (-5, 32, "bits must be at least 1, got -5"),
        (64, 33, "modulus_bits must be from 2 to 32, got 33"),
        (64, 1, "modulus_bits must be from 2 to 32, got 1"),
    ],
)
def test_for_bits_refuses(bits: int, modulus_bits: int, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        ModuliSet.for_bits(bits, modulus_bits)


@pytest.mark.parametrize(
    ("moduli", "message"),
    [
        ([], "a moduli set needs at least one modulus, got none"),
        ([7, 1], "modulus 1 (position 1) is out of bounds: moduli are from 2 to 2**32"),
        ([0], "modulus 0 (position 0) is out of bounds: moduli are from 2 to 2**32"),
        ([3, 5, -7], "modulus -7 (position 2) is out of bounds: moduli are from 2 to 2**32"),
        (
            [2**70000],
            f"modulus 0x1{'0' * 15}...{'0' * 16} (70001 bits) (position 0) is out of bounds: moduli are from "
            "2 to 2**32",
        ),
        ([2**32 + 1], "modulus 4294967297 (position 0) is out of bounds: moduli are from 2 to 2**32"),
        ([6, 5, 7, 9], "moduli 6 (position 0) and 9 (position 3) are not coprime: both are divisible by 3"),
        ([5, 7, 7], "moduli 7 (position 1) and 7 (position 2) are not coprime: both are divisible by 7"),
        (
            [2**32, 2],
            "moduli 4294967296 (position 0) and 2 (position 1) are not coprime: both are divisible by 2",
        ),
        (
            [4, 35, 9, 21],
            "moduli 35 (position 1) and 21 (position 3) are not coprime: both are divisible by 7",
        ),
    ],
)
def test_a_broken_rule_is_named_with_values_and_positions(moduli: list[int], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        ModuliSet(moduli)


@given(st.lists(st.integers(2, 60), min_size=1, max_size=7))
def test_sets_are_accepted_exactly_when_all_pairs_are_coprime(moduli: list[int]) -> None:
    clashes = [(i, j) for i, j in combinations(range(len(moduli)), 2) if math.gcd(moduli[i], moduli[j]) > 1]
    if not clashes:
        assert list(ModuliSet(moduli)) == moduli
        return
    with pytest.raises(ValueError, match="not coprime") as error:
        ModuliSet(moduli)
    i, j = map(int, re.findall(r"position (\d+)", str(error.value)))
    assert (i, j) in clashes
    assert str(error.value).startswith(f"moduli {moduli[i]} (position {i}) and {moduli[j]} (position {j}) ")
    assert str(error.value).endswith(f" {math.gcd(moduli[i], moduli[j])}")


def test_one_shared_factor_among_many_moduli_is_found() -> None:
    moduli = list(ModuliSet.for_bits(16383))
    moduli[509] = 2 * 104729  # shares just the factor 2, with 2**32 alone
    with pytest.raises(
        ValueError, match=r"4294967296 \(position 0\) and 209458 \(position 509\).*divisible by 2$"
    ):
        ModuliSet(moduli)


@pytest.mark.parametrize(
    "bad", [2.0, np.float64(3), True, np.True_, "3", None, np.array(3), gmpy2.mpq(3), 3 + 0j]
)
def test_moduli_that_are_not_integers_are_refused(bad: object) -> None:
    with pytest.raises(TypeError, match=r"^modulus at position 1 must be an integer, got "):
        ModuliSet([5, bad])  # type: ignore[list-item]


def test_something_that_is_no_iterable_is_refused() -> None:
    with pytest.raises(TypeError, match=r"^moduli must be an iterable of integers, got int$"):
        ModuliSet(5)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "kind", [list, tuple, iter, lambda m: np.array(m, dtype=np.uint64), lambda m: map(gmpy2.mpz, m)]
)
def test_any_iterable_of_any_integer_type_gives_python_ints(kind: type) -> None:
    ms = ModuliSet(kind([2**32, 2**32 - 1, 7 * 11]))
    assert ms.moduli == (2**32, 2**32 - 1, 77)
    assert {type(m) for m in ms} == {int}
    assert type(ms.product) is int
    assert {type(c) for c in (*ms.partial_products, *ms.partial_inverses)} == {int}


@each_set(MODULI_SETS, "ms")
def test_constants_satisfy_their_definitions(ms: ModuliSet) -> None:
    assert ms.product == math.prod(ms.moduli)
    assert 2 ** (ms.bits - 1) <= ms.product < 2**ms.bits
    for m, partial_product, inverse in zip(ms, ms.partial_products, ms.partial_inverses, strict=True):
        assert partial_product * m == ms.product
        assert inverse == pow(partial_product % m, -1, m)
        assert 0 < inverse < m


@given(moduli_sets())
def test_chinese_remaindering_with_the_constants_gives_one(ms: ModuliSet) -> None:
    crt = sum(w * p for w, p in zip(ms.partial_inverses, ms.partial_products, strict=True))
    assert crt % ms.product == 1 % ms.product


def test_a_set_by_hand() -> None:
    ms = ModuliSet([3, 5, 7])
    assert (ms.product, ms.bits) == (105, 7)
    assert ms.partial_products == (35, 21, 15)
    assert ms.partial_inverses == (2, 1, 1)


@pytest.mark.parametrize(
    ("moduli", "unsigned", "signed"),
    [
        ([2], (0, 1), (-1, 0)),
        ([3], (0, 2), (-1, 1)),
        ([2, 3], (0, 5), (-3, 2)),
        ([3, 5, 7], (0, 104), (-52, 52)),
        ([2**32], (0, 2**32 - 1), (-(2**31), 2**31 - 1)),
    ],
)
def test_value_range_by_hand(moduli: list[int], unsigned: tuple[int, int], signed: tuple[int, int]) -> None:
    assert ModuliSet(moduli).value_range() == unsigned
    assert ModuliSet(moduli).value_range(signed=True) == signed


@each_set(MODULI_SETS, "ms")
@BOTH_RANGES
def test_value_range_has_m_values_and_limb_count_is_the_least_that_holds_them(
    ms: ModuliSet, signed: bool
) -> None:
    lowest, highest = ms.value_range(signed)
    assert highest - lowest + 1 == ms.product

    def holds(limbs: int) -> bool:
        try:
            for value in (lowest, highest):
                value.to_bytes(4 * limbs, "little", signed=signed)
        except OverflowError:
            return False
        return True

    count = ms.limb_count(signed)
    assert count >= 1
    assert holds(count)
    assert count == 1 or not holds(count - 1)


def test_limb_count_where_one_more_bit_needs_one_more_limb() -> None:
    full = ModuliSet([2**32])
    assert (full.limb_count(), full.limb_count(signed=True)) == (1, 1)
    more = ModuliSet(
        [2**31, 3]
    )  # M - 1 has 33 bits; the signed range, up to 3 * 2**30 - 1, has 32 and the sign
    assert (more.limb_count(), more.limb_count(signed=True)) == (2, 2)
    odd = ModuliSet([2**32 - 1])  # signed: up to 2**31 - 1, and the sign
    assert (odd.limb_count(), odd.limb_count(signed=True)) == (1, 1)


def test_prefix_is_the_set_of_the_first_moduli() -> None:
    ms = MODULI_SETS["unsorted"]
    _ = ms.product
    for k in range(1, len(ms) + 1):
        prefix = ms.prefix(k)
        assert prefix == ModuliSet(ms.moduli[:k])
        assert prefix.product == math.prod(ms.moduli[:k])
    for k in (0, -1, len(ms) + 1):
        with pytest.raises(ValueError, match=f"^a prefix has from 1 to 6 moduli, got {k}$"):
            ms.prefix(k)


def test_a_set_is_a_frozen_hashable_sequence_of_its_moduli() -> None:
    ms = ModuliSet([7, 3])
    assert (len(ms), list(ms), ms[0], ms[-1]) == (2, [7, 3], 7, 3)
    with pytest.raises(IndexError):
        ms[2]
    with pytest.raises(AttributeError):
        ms.moduli = (5,)  # type: ignore[misc]
    assert ms == ModuliSet((7, 3))
    assert hash(ms) == hash(ModuliSet((7, 3)))
    assert ms != ModuliSet([3, 7])  # the order of the residues is part of the data's meaning
    assert len({ms, ModuliSet([7, 3]), ModuliSet([3, 7])}) == 2


def test_pickle_and_copy_keep_the_moduli_and_nothing_cached() -> None:
    ms = ModuliSet.for_bits(4096)
    small = len(pickle.dumps(ms))
    assert ms.partial_inverses
    assert len(pickle.dumps(ms)) == small
    for twin in (pickle.loads(pickle.dumps(ms)), copy.copy(ms), copy.deepcopy(ms)):
        assert twin == ms
        assert set(vars(twin)) == {"moduli"}
        assert hash(twin) == hash(ms)
        assert twin.partial_products == ms.partial_products


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (ModuliSet([2**32, 3]), "ModuliSet([4294967296, 3])"),
        (ModuliSet.consecutive_odd(65725, 8), "ModuliSet(8 moduli of 17 bits, M of 129 bits)"),
        (ModuliSet.for_bits(2048), "ModuliSet(65 moduli of 32 bits, M of 2080 bits)"),
        (MODULI_SETS["unsorted"], "ModuliSet(6 moduli of 1 to 32 bits, M of 84 bits)"),
    ],
)
def test_repr(ms: ModuliSet, text: str) -> None:
    assert repr(ms) == text


def test_as_integer_loses_nothing() -> None:
    for value in (2**64 - 1, np.uint64(2**64 - 1), gmpy2.mpz(2**64 - 1)):
        assert as_integer(value, "it") == 2**64 - 1
        assert type(as_integer(value, "it")) is int
    with pytest.raises(
        TypeError, match=r"^it must be an integer, got 1\.8446744073709552e\+19 of type float$"
    ):
        as_integer(float(2**64), "it")
