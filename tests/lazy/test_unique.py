"""Distinct numbers of nothing, of selections and without what is not asked for; laws say what they are."""

import dask
import numpy as np
import pytest
from conftest import Processor
from oracles.integers import objects
from sample_arrays import array_of, chunked, host
from strategies import MODULI_SETS

import rnsdask as rd

EIGHT = MODULI_SETS["table2_8"]


pytestmark = pytest.mark.usefixtures("in_this_thread")


def check(x: rd.RNSArray | rd.IntervalRNSArray, values: np.ndarray) -> None:
    expected = np.unique(values.astype(np.int64), True, True, True)
    numbers, *others = dask.compute(*rd.unique(x, True, True, True), traverse=False)
    assert numbers.to_ints().tolist() == expected[0].tolist()
    for found, wanted in zip(others, expected[1:], strict=True):
        assert found.dtype == np.int64
        assert found.shape == wanted.shape
        assert (host(found) == wanted).all()


def test_no_numbers(on_each_processor: Processor) -> None:
    x = array_of(on_each_processor, objects([], (0, 3)), EIGHT)
    check(x, np.empty((0, 3), dtype=object))
    check(chunked(x, 1, 2), np.empty((0, 3), dtype=object))


def test_what_is_asked_for() -> None:
    x = rd.from_ints([3, 1, 3], EIGHT, chunks=2)
    assert rd.unique(x).to_ints().tolist() == [1, 3]
    assert type(rd.unique(x)) is rd.RNSArray
    numbers, counts = rd.unique(x, return_counts=True)
    assert (numbers.to_ints().tolist(), counts.compute().tolist()) == ([1, 3], [1, 2])
    assert numbers.compute_chunk_sizes().shape == (2,)
    assert numbers.bound == x.bound
    with pytest.raises(TypeError, match="takes at least one array of numbers, got list"):
        rd.unique([1, 2])
    assert rd.unique(x[x > 1]).to_ints().tolist() == [3]
