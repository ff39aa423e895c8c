"""The mode ``"flag"`` around a block: a pair where ``overflow`` is taken, and the result alone elsewhere."""

import operator
from collections.abc import Callable
from typing import Any

import pytest

import rnsdask as rd

VALUES = [5, 9, 16]
LIMBS = rd.from_ints(VALUES, chunks=None).to_positional(64)
RESIDUES = rd.from_ints(VALUES, rd.ModuliSet.for_bits(64), chunks=None)


@pytest.mark.parametrize("function", [operator.and_, operator.or_, operator.xor])
@pytest.mark.parametrize("chunks", [None, 2])
def test_bitwise_operations_return_their_result_alone(
    function: Callable[[Any, Any], Any], chunks: int | None
) -> None:
    x = LIMBS if chunks is None else LIMBS.rechunk(chunks)
    with rd.errstate(overflow="flag"):
        found = function(x, 6)
    assert found.to_ints().tolist() == [function(value, 6) for value in VALUES]


@pytest.mark.parametrize("x", [LIMBS, RESIDUES], ids=["limbs", "residues"])
def test_operations_without_overflow_return_their_result_alone(x: Any) -> None:
    with rd.errstate(overflow="flag"):
        roots, quotients, remainders = rd.isqrt(x), x // 3, x % 7
    assert roots.to_ints().tolist() == [2, 3, 4]
    assert quotients.to_ints().tolist() == [value // 3 for value in VALUES]
    assert remainders.to_ints().tolist() == [value % 7 for value in VALUES]


@pytest.mark.parametrize("x", [LIMBS, RESIDUES], ids=["limbs", "residues"])
def test_operations_that_take_overflow_return_a_pair(x: Any) -> None:
    with rd.errstate(overflow="flag"):
        pairs = [x + x, rd.negative(x), rd.gcd(x, x), abs(x)]
    assert [flags.tolist() for _, flags in pairs] == [[False] * 3, [True] * 3, [False] * 3, [False] * 3]


def test_opposites_of_intervals_are_a_pair() -> None:
    with rd.errstate(overflow="flag"):
        opposite, flags = rd.negative(rd.IntervalRNSArray.from_rns(RESIDUES))
    assert (opposite.to_ints().tolist(), flags.tolist()) == ([-5, -9, -16], [False] * 3)
