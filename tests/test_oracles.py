"""The oracle of residue number systems: worked examples, every value of small sets, laws it does not use."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import rns
from strategies import BOTH_RANGES, EXHAUSTIVE_SETS, MODULI_SETS, MS_357, edge_values, moduli_sets, values_in

from rnsdask.core.moduli import ModuliSet

SMALL = pytest.mark.parametrize("moduli", EXHAUSTIVE_SETS.values(), ids=EXHAUSTIVE_SETS)


def test_by_hand() -> None:
    # Sun Zi's problem: 2 modulo 3, 3 modulo 5, 2 modulo 7 is 23 = 2 + 2 * 3 + 1 * 15.
    assert rns.encode([23], MS_357).tolist() == [[2], [3], [2]]
    assert rns.value_of([2, 3, 2], MS_357) == 23
    assert rns.mixed_radix_digits(23, MS_357) == [2, 2, 1]
    assert rns.from_mixed_radix([2, 2, 1], MS_357) == 23
    assert rns.encode([-1], MS_357, signed=True).tolist() == [[2], [4], [6]]
    assert rns.value_of([2, 4, 6], MS_357) == 104
    assert rns.value_of([2, 4, 6], MS_357, signed=True) == -1
    assert rns.mixed_radix_digits(104, MS_357) == [2, 4, 6]


def test_the_middle_of_the_signed_range_by_hand() -> None:
    assert rns.decode(rns.encode([52, -52], MS_357, True), MS_357, True) == [52, -52]
    assert rns.wrapped(53, MS_357, True) == -52
    even = [2, 3]
    assert [rns.value_of([v % 2, v % 3], even, signed=True) for v in range(6)] == [0, 1, 2, -3, -2, -1]


@SMALL
@BOTH_RANGES
def test_every_value_of_small_sets(moduli: ModuliSet, signed: bool) -> None:
    limits = rns.limits_of(moduli, signed)
    values = list(range(limits.lowest, limits.highest + 1))
    assert len(values) == moduli.product
    residues = rns.encode(values, moduli, signed)
    assert len(set(map(tuple, residues.T.tolist()))) == moduli.product  # no two values share their residues
    assert rns.decode(residues, moduli, signed) == values


@SMALL
def test_mixed_radix_digits_count_like_an_odometer(moduli: ModuliSet) -> None:
    digits = [0] * len(moduli)
    for value in range(moduli.product):
        assert rns.mixed_radix_digits(value, moduli) == digits
        assert rns.from_mixed_radix(digits, moduli) == value
        for i, m in enumerate(moduli):
            digits[i] = (digits[i] + 1) % m
            if digits[i]:
                break


@pytest.mark.parametrize("name", ["top", "unsorted", "tiny_beside_huge", "table2_16", "bits2048"])
@BOTH_RANGES
def test_edges_round_trip(name: str, signed: bool) -> None:
    moduli = MODULI_SETS[name]
    values = edge_values(moduli, signed)
    assert rns.decode(rns.encode(values, moduli, signed), moduli, signed) == values


@given(st.data(), moduli_sets(), st.booleans())
def test_any_value_round_trips_and_has_its_digits(
    data: st.DataObject, moduli: ModuliSet, signed: bool
) -> None:
    value = data.draw(values_in(moduli, signed))
    residues = rns.encode([value], moduli, signed)
    assert residues[:, 0].tolist() == [value % m for m in moduli]
    assert rns.decode(residues, moduli, signed) == [value]
    digits = rns.mixed_radix_digits(value % moduli.product, moduli)
    weights = [math.prod(moduli.moduli[:i]) for i in range(len(moduli))]
    assert sum(d * w for d, w in zip(digits, weights, strict=True)) == value % moduli.product
    assert rns.from_mixed_radix(digits, moduli) == value % moduli.product


def test_shapes_in_c_order() -> None:
    residues = rns.encode(list(range(24)), MS_357).reshape(3, 2, 3, 4)
    assert rns.decode(residues, MS_357) == list(range(24))
    assert rns.decode(residues.transpose(0, 3, 2, 1), MS_357)[:4] == [0, 12, 4, 16]
    assert rns.encode([], MS_357).shape == (3, 0)
    assert rns.decode(rns.encode([], MS_357), MS_357) == []


@pytest.mark.parametrize("name", ["one", "two_three", "top", "moduli512"])
@BOTH_RANGES
def test_the_range_ends_where_the_package_says(name: str, signed: bool) -> None:
    moduli = MODULI_SETS[name]
    limits = rns.limits_of(moduli, signed)
    assert (limits.lowest, limits.highest) == moduli.value_range(signed)
    for outside in (limits.lowest - 1, limits.highest + 1):
        assert not rns.in_range(outside, moduli, signed)
        with pytest.raises(AssertionError):
            rns.encode([0, outside], moduli, signed)
