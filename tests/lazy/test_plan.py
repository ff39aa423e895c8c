"""Plans of operations: what is known before a chunk is touched, made once and kept."""

import itertools
import operator
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rnsdask as rd
from rnsdask.core import rows
from rnsdask.core.overflow import get_overflow
from rnsdask.core.rows import Row
from rnsdask.lazy.plan import Plan, meeting_of, plan_of

MODULI = rd.ModuliSet([11, 13])
SIGNED, UNSIGNED = rd.RNS(MODULI, signed=True), rd.RNS(MODULI)
OPERATIONS: list[tuple[Row[..., Any], Callable[[int, int], int]]] = [
    (rows.add, operator.add),
    (rows.subtract, operator.sub),
    (rows.multiply, operator.mul),
]


def planned(row: Row[..., Any], *known: Any, overflow: str | None = None) -> Plan:
    return plan_of(row, known, overflow, get_overflow())


def numbers_of(system: Any) -> range:
    low, high = system.known_range
    return range(low, high + 1)


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize(("row", "evaluate"), OPERATIONS)
def test_a_plan_knows_whether_a_result_can_be_out_of_range(
    row: Row[..., Any], evaluate: Callable[[int, int], int], signed: bool
) -> None:
    generator = random.Random(7)
    for _ in range(40):
        a, b = (rd.RNS(MODULI, signed, bound=generator.choice((0, 1, 5, 8, 12, 30, 71))) for _ in range(2))
        found = planned(row, a, b, overflow="raise")
        results = [evaluate(*pair) for pair in itertools.product(numbers_of(a), numbers_of(b))]
        low, high = a.value_range
        held = [value for value in results if low <= value <= high]
        assert (found.mode == "wrap") == (len(held) == len(results))
        assert found.result.known_magnitude >= max(map(abs, held), default=0)
        assert found.system.bound is None  # of the operands, it says nothing about results


def test_plans_are_made_once_for_what_is_known_of_operands() -> None:
    first = planned(rows.multiply, SIGNED.with_bound(5), SIGNED.with_bound(8))
    assert planned(rows.multiply, SIGNED.with_bound(5), SIGNED.with_bound(8)) is first
    assert planned(rows.multiply, SIGNED.with_bound(5), SIGNED.with_bound(9)) is not first
    assert planned(rows.add, SIGNED.with_bound(5), SIGNED.with_bound(8)).row is rows.add


def test_plans_follow_the_mode_that_errstate_sets() -> None:
    assert planned(rows.multiply, SIGNED, SIGNED).wanted == "raise"
    for mode in ("flag", "wrap", "raise"):
        with rd.errstate(overflow=mode):
            assert planned(rows.multiply, SIGNED, SIGNED).wanted == mode
            assert planned(rows.multiply, SIGNED, SIGNED, overflow="raise").wanted == "raise"
    with rd.errstate(overflow="extend"):
        found = planned(rows.multiply, SIGNED, SIGNED)
        assert (found.mode, found.is_alike) == ("wrap", False)
        assert found.meeting.value_range[1] >= SIGNED.value_range[0] ** 2
    assert planned(rows.multiply, SIGNED, SIGNED).wanted == "raise"


def test_an_integer_is_no_range_of_one_that_is_not_computed() -> None:
    beyond = UNSIGNED.value_range[1] + 7
    assert planned(rows.add, UNSIGNED, 5).ranges[1] == (5, 5)
    assert planned(rows.add, UNSIGNED, (3, beyond)).ranges[1] == (3, beyond - 7)
    assert planned(rows.add, UNSIGNED, ()).ranges[1] == UNSIGNED.value_range


def test_operands_meet_as_their_results_are_extended() -> None:
    x, y = (rd.from_ints([value, 3], chunks=None).system for value in (5, 2**90))
    found = planned(rows.multiply, x, y)
    system, is_alike = meeting_of((x, y))
    assert not is_alike
    assert found.meeting.rows >= system.rows == y.rows
    assert found.result.bound == 5 * 2**90
    assert found.mode == "wrap"


def test_a_plan_that_was_kept_does_not_hide_the_error_of_another_operand() -> None:
    x = rd.from_ints([1, 2], UNSIGNED, chunks=None)
    assert (x + 1).tolist() == [2, 3]
    for operand, error in (
        (True, TypeError),
        (1.0, TypeError),
        (np.float64(1), TypeError),
        (143, ValueError),
    ):
        with pytest.raises(error):
            x + operand
    assert (x + np.int64(1)).tolist() == [2, 3]
