"""Searching sorted numbers, and membership, against Python's bisect and `in`."""

from bisect import bisect_left, bisect_right

import dask.array as da
import gmpy2
import numpy as np
import pytest
from conftest import Processor
from oracles.integers import objects
from sample_arrays import CPU, array_of, chunked, host
from strategies import MODULI_SETS, edge_values

import rnsdask as rd

MODULI = MODULI_SETS["unsorted"]
SIDES = {"left": bisect_left, "right": bisect_right}


pytestmark = pytest.mark.usefixtures("in_this_thread")


def values_and_others(signed: bool) -> tuple[list[int], list[int]]:
    edges = edge_values(MODULI, signed)[::9]
    values = sorted(edges[::2] + [0, 5, 5, 5] + [edges[-1]] * 3)
    return values, [*edges, 4, 5, 6]


@pytest.mark.parametrize("signed", [False, True])
def test_places(on_each_processor: Processor, signed: bool) -> None:
    values, others = values_and_others(signed)
    product = MODULI.product
    eager = array_of(on_each_processor, values, MODULI, signed)
    v = array_of(on_each_processor, others, MODULI, signed)
    beyond = [*others, -(product**3), -product, product, product**3]
    arrays = [eager, chunked(eager, 13)] + [rd.IntervalRNSArray.from_rns(eager)] * signed
    for a in arrays:
        for side, bisect in SIDES.items():
            found = rd.searchsorted(a, beyond, side)
            assert host(found).tolist() == [bisect(values, w) for w in beyond]
            w = rd.IntervalRNSArray.from_rns(v) if type(a) is rd.IntervalRNSArray else v
            lazy = type(w)(da.from_array(w.words, chunks=(-1, 11)), w.system)
            for wanted in (w, lazy):
                found = host(rd.searchsorted(a, wanted, side))
                assert found.dtype == np.int64
                assert found.tolist() == [bisect(values, u) for u in others]


def test_one_integer_and_shapes(on_each_processor: Processor) -> None:
    x = array_of(on_each_processor, [1, 2, 2, 5], MODULI)
    assert rd.searchsorted(x, 2) == 1
    assert type(rd.searchsorted(x, gmpy2.mpz(2), "right")) is int
    assert rd.searchsorted(x, -(10**99)) == 0
    lazy = chunked(x, 3)
    found = rd.searchsorted(lazy, lazy.max())
    assert (found.shape, int(found)) == ((), 3)
    assert int(rd.searchsorted(lazy, lazy.max() + 10**99)) == 4
    assert host(rd.searchsorted(x, [[0, 9], [2, 5]])).tolist() == [[0, 4], [1, 3]]
    assert host(rd.searchsorted(x[:0], [1, 2])).tolist() == [0, 0]
    assert host(rd.searchsorted(x, [])).tolist() == []
    selected = lazy[lazy > 1]
    assert host(rd.searchsorted(lazy, selected)).tolist() == [1, 1, 3]
    assert host(rd.searchsorted(selected, [2, 9], "right")).tolist() == [2, 3]
    assert host(rd.isin(selected, [5])).tolist() == [False, False, True]


def test_sorters(on_each_processor: Processor) -> None:
    x = array_of(on_each_processor, [5, 1, 2, 2], MODULI)
    for a in (x, chunked(x, 3)):
        assert host(rd.searchsorted(a, [2, 3, 9], "right", sorter=x.argsort())).tolist() == [3, 3, 4]
    assert host(rd.searchsorted(x, [2], sorter=[1, 2, 3, 0])).tolist() == [1]
    with pytest.raises(ValueError, match=r"sorter must have shape \(4,\)"):
        rd.searchsorted(x, 2, sorter=[0])
    with pytest.raises(TypeError, match="sorter must be integers, got float64"):
        rd.searchsorted(x, 2, sorter=[0.0, 1, 2, 3])


def test_numbers_beyond_the_bound(on_each_processor: Processor) -> None:
    """A bound of the array says nothing of the numbers that are looked for."""
    a = array_of(on_each_processor, [1, 2, 3], MODULI, bound=3)
    v = array_of(on_each_processor, [0, 3, 4, MODULI.product - 1], MODULI)
    assert host(rd.searchsorted(a, v)).tolist() == [0, 2, 3, 3]
    assert host(rd.searchsorted(a, [4, 10**40])).tolist() == [3, 3]
    assert host(rd.isin(a, v)).tolist() == [False, False, True]
    assert host(rd.isin(v, a)).tolist() == [False, True, False, False]


def test_membership(on_each_processor: Processor, rng: np.random.Generator) -> None:
    numbers = objects(rng.integers(0, 12, size=40).tolist(), (5, 8))
    x = array_of(on_each_processor, numbers, MODULI)
    few = array_of(on_each_processor, [3, 3, 0, 11], MODULI)
    for array in (x, chunked(x, 2, 3)):
        for values, held in (
            ([3, 7, -1, 10**50], {3, 7}),
            ([], set()),
            (few, {0, 3, 11}),
            (chunked(few, 3), {0, 3, 11}),
            (few.max() if array is x else chunked(few, 2).max(), {11}),
            (7, {7}),
        ):
            expected = np.array([v in held for v in numbers.ravel()]).reshape(5, 8)
            found = host(rd.isin(array, values))
            assert found.dtype == bool
            assert (found == expected).all()
            assert (host(rd.isin(array, values, invert=True)) == ~expected).all()


def test_wrong_arguments() -> None:
    x = array_of(CPU, [1, 2], MODULI)
    with pytest.raises(ValueError, match="side must be 'left' or 'right', got 'middle'"):
        rd.searchsorted(x, 1, "middle")
    with pytest.raises(ValueError, match=r"along one axis, got shape \(1, 2\)"):
        rd.searchsorted(x[None], 1)
    with pytest.raises(TypeError, match=r"v, at flat index 1,"):
        rd.searchsorted(x, [1, 2.5])
    with pytest.raises(TypeError, match=r"rd\.from_ints makes one"):
        rd.searchsorted(x, da.ones(3, dtype=int))
    with pytest.raises(TypeError, match="do not mix"):
        rd.isin(x, rd.IntervalRNSArray.from_rns(x))
    with pytest.raises(ValueError, match="different ranges"):
        rd.searchsorted(x, array_of(CPU, [1], MODULI, True))
    with pytest.raises(TypeError, match="takes at least one array of numbers, got list"):
        rd.isin([1], x)
