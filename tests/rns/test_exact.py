"""The oracle itself: worked examples, every value of small sets, and definitions it does not use."""

import math
import re
from fractions import Fraction
from typing import Any

import gmpy2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import EXHAUSTIVE_SETS, MODULI_SETS, arrays_of_values, edge_values, moduli_sets, values_in

from rnsdask.core.moduli import ModuliSet
from rnsdask.rns import exact

MS_357 = ModuliSet([3, 5, 7])


def test_by_hand() -> None:
    # Sun Zi's problem: 2 modulo 3, 3 modulo 5, 2 modulo 7 is 23 = 2 + 2 * 3 + 1 * 15.
    assert exact.residues_of(23, MS_357) == [2, 3, 2]
    assert exact.value_of([2, 3, 2], MS_357) == 23
    assert exact.mixed_radix_digits([2, 3, 2], MS_357) == [2, 2, 1]
    assert exact.from_mixed_radix([2, 2, 1], MS_357) == 23
    assert exact.fraction(23, MS_357) == Fraction(23, 105)
    assert exact.residues_of(-1, MS_357) == [2, 4, 6]
    assert exact.value_of([2, 4, 6], MS_357) == 104
    assert exact.value_of([2, 4, 6], MS_357, signed=True) == -1
    assert exact.mixed_radix_digits([2, 4, 6], MS_357) == [2, 4, 6]


def test_the_middle_of_the_signed_range_by_hand() -> None:
    assert [exact.value_of(exact.residues_of(v, MS_357), MS_357, signed=True) for v in (52, 53)] == [
        52,
        -52,
    ]
    even = ModuliSet([2, 3])
    assert [exact.value_of([v % 2, v % 3], even, signed=True) for v in range(6)] == [0, 1, 2, -3, -2, -1]


@pytest.mark.parametrize("ms", EXHAUSTIVE_SETS.values(), ids=EXHAUSTIVE_SETS.keys())
@pytest.mark.parametrize("signed", [False, True])
def test_every_value_of_small_sets(ms: ModuliSet, signed: bool) -> None:
    lowest, highest = ms.value_range(signed)
    values = list(range(lowest, highest + 1))
    residues = exact.encode(values, ms, signed)
    assert residues.dtype == np.uint32
    assert residues.shape == (len(ms), ms.product)
    assert len(set(map(tuple, residues.T.tolist()))) == ms.product  # no two values share their residues
    assert exact.decode(residues, ms, signed) == values


@pytest.mark.parametrize("ms", EXHAUSTIVE_SETS.values(), ids=EXHAUSTIVE_SETS.keys())
def test_mixed_radix_digits_count_like_an_odometer(ms: ModuliSet) -> None:
    digits = [0] * len(ms)
    for value in range(ms.product):
        residues = [value % m for m in ms]
        assert exact.mixed_radix_digits(residues, ms) == digits
        assert exact.from_mixed_radix(digits, ms) == value
        for i, m in enumerate(ms):
            digits[i] = (digits[i] + 1) % m
            if digits[i]:
                break


@pytest.mark.parametrize("name", ["top", "unsorted", "tiny_beside_huge", "table2_16", "bits2048"])
@pytest.mark.parametrize("signed", [False, True])
def test_edges_round_trip(name: str, signed: bool) -> None:
    ms = MODULI_SETS[name]
    values = edge_values(ms, signed)
    assert exact.decode(exact.encode(values, ms, signed), ms, signed) == values


@given(st.data(), moduli_sets(), st.booleans())
def test_any_value_round_trips_and_has_its_digits(data: st.DataObject, ms: ModuliSet, signed: bool) -> None:
    value = data.draw(values_in(ms, signed))
    residues = exact.residues_of(value, ms)
    assert exact.value_of(residues, ms, signed) == value
    digits = exact.mixed_radix_digits(residues, ms)
    assert all(0 <= d < m for d, m in zip(digits, ms, strict=True))
    weights = [math.prod(ms.moduli[:i]) for i in range(len(ms))]
    assert sum(d * w for d, w in zip(digits, weights, strict=True)) == value % ms.product
    assert exact.from_mixed_radix(digits, ms) == value % ms.product


def test_decode_reads_any_shape_in_c_order() -> None:
    residues = exact.encode(range(24), MS_357).reshape(3, 2, 3, 4)
    assert exact.decode(residues, MS_357) == list(range(24))
    assert exact.decode(np.asfortranarray(residues), MS_357) == list(range(24))
    assert (
        exact.decode(residues[:, ::-1, :, 1:], MS_357)
        == np.arange(24).reshape(2, 3, 4)[::-1, :, 1:].ravel().tolist()
    )
    assert exact.decode(np.zeros((3, 0), np.uint32), MS_357) == []


def test_no_values_make_an_empty_array() -> None:
    assert exact.encode([], MS_357).shape == (3, 0)


@pytest.mark.parametrize(
    "values",
    [
        [2**64 - 1, 1],
        np.array([2**64 - 1, 1], dtype=np.uint64),
        np.array([2**64 - 1, 1], dtype=object),
        [gmpy2.mpz(2**64 - 1), np.uint8(1)],
        iter([2**64 - 1, 1]),
    ],
)
def test_no_bit_is_lost_from_any_integer_type(values: Any) -> None:
    ms = MODULI_SETS["top"]
    assert exact.decode(exact.encode(values, ms), ms) == [2**64 - 1, 1]


@pytest.mark.parametrize("values", [[1, 2.0], [1, True], [1, "2"], np.array([1.0, 2**64]), [1, None]])
def test_values_that_are_not_integers_are_refused_with_their_position(values: Any) -> None:
    with pytest.raises(TypeError, match=r"^value at position [01] must be an integer, got "):
        exact.encode(values, MS_357)


@pytest.mark.parametrize(
    ("values", "signed", "message"),
    [
        (
            [0, 104, 105],
            False,
            "value 105 at position 2 is outside the unsigned range from 0 to 104 of the moduli set",
        ),
        (
            [0, -1],
            False,
            "value -1 at position 1 is outside the unsigned range from 0 to 104 of the moduli set",
        ),
        (
            [-52, 52, 53],
            True,
            "value 53 at position 2 is outside the signed range from -52 to 52 of the moduli set",
        ),
        ([-53], True, "value -53 at position 0 is outside the signed range from -52 to 52 of the moduli set"),
    ],
)
def test_values_out_of_range_are_refused_with_their_position(
    values: list[int], signed: bool, message: str
) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        exact.encode(values, MS_357, signed)


@pytest.mark.parametrize("name", ["one", "two_three", "top", "moduli512"])
@pytest.mark.parametrize("signed", [False, True])
def test_the_range_ends_exactly_where_it_says(name: str, signed: bool) -> None:
    ms = MODULI_SETS[name]
    lowest, highest = ms.value_range(signed)
    assert exact.check_range([lowest, highest], ms, signed) == [lowest, highest]
    for outside in (lowest - 1, highest + 1):
        with pytest.raises(ValueError, match="at position 1 is outside") as error:
            exact.check_range([lowest, outside], ms, signed)
        assert len(str(error.value)) < 300  # one line, however long the value


@pytest.mark.parametrize(
    ("residues", "message"),
    [
        ([0, 0], "there must be one residue for each of the 3 moduli, got 2"),
        ([0, 0, 0, 0], "there must be one residue for each of the 3 moduli, got 4"),
        ([0, 5, 0], "residue 1 must be from 0 to 4 under the modulus 5, got 5"),
        ([0, 0, -1], "residue 2 must be from 0 to 6 under the modulus 7, got -1"),
    ],
)
def test_residues_that_break_the_rules_are_refused(residues: list[int], message: str) -> None:
    for function in (exact.value_of, exact.mixed_radix_digits):
        with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
            function(residues, MS_357)
    with pytest.raises(ValueError, match=f"^{re.escape(message.replace('residue', 'digit'))}$"):
        exact.from_mixed_radix(residues, MS_357)


@pytest.mark.parametrize("name", MODULI_SETS)
@pytest.mark.parametrize("signed", [False, True])
def test_the_smallest_index_wins_among_equals(name: str, signed: bool) -> None:
    values = edge_values(MODULI_SETS[name], signed)
    doubled = values[1:-1] + 2 * [values[-1], values[0]] + values[1:-1]
    assert exact.maximum(doubled) == (values[-1], len(values) - 2)
    assert exact.minimum(doubled) == (values[0], len(values) - 1)


@given(st.data(), st.booleans())
def test_extremes_are_list_extremes(data: st.DataObject, signed: bool) -> None:
    values = data.draw(arrays_of_values(MODULI_SETS["unsorted"], signed))
    assert exact.maximum(values) == (max(values), values.index(max(values)))
    assert exact.minimum(values) == (min(values), values.index(min(values)))


def test_extremes_of_nothing_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^the maximum of no values is not defined$"):
        exact.maximum([])
    with pytest.raises(ValueError, match=r"^the minimum of no values is not defined$"):
        exact.minimum(iter([]))
