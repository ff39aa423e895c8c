"""Tests that arrays in results of tasks go from worker to worker as Dask sends arrays, not pickled."""

from collections.abc import Callable
from typing import Any

import dask.array as da
import numpy as np
import pytest
from dask.sizeof import sizeof
from distributed.protocol.serialize import deserialize, serialize

import rnsdask as rd
from rnsdask.core.moduli import ModuliSet
from rnsdask.fields import block_elimination as blocks
from rnsdask.lazy import block_elimination, parcels

FIELDS = rd.PrimeFields([2**31 - 1, 2**32 - 5])
SMALL = 2**14
"""Bytes that are pickled, at most, beside arrays of 2**20 bytes."""


def panel(rng: np.random.Generator) -> blocks.Panel:
    words = rng.integers(0, 2**31 - 1, (2, 1024, 128), dtype=np.uint32)
    moduli = ModuliSet(FIELDS.moduli)
    return blocks.factor_panel(words, blocks.nothing_found(moduli, 1024, 1024), moduli=moduli, keeps=True)


def test_objects_are_packed_with_their_arrays(rng: np.random.Generator) -> None:
    given = panel(rng)
    packed = parcels.packed(given)
    assert type(packed) is tuple
    assert packed[1] is given.steps[0].pivots
    assert sizeof(packed) > given.steps[0].words.nbytes
    found = parcels.unpacked(packed)
    assert found.steps[0].words is given.steps[0].words
    assert found.keeps
    assert found.steps[0].count == 128


def test_arrays_are_not_pickled(rng: np.random.Generator) -> None:
    """Dask iterates over what a worker sends, and calls its own functions for arrays."""
    given = panel(rng)
    header, frames = serialize(parcels.packed(given), iterate_collection=True)
    kinds = [one["serializer"] for one in header["sub-headers"]]
    assert kinds == ["pickle", *["dask"] * (len(kinds) - 1)]
    assert len(bytes(frames[0])) < SMALL
    found = parcels.unpacked(deserialize(header, frames))
    np.testing.assert_array_equal(found.steps[0].words, given.steps[0].words)


@pytest.mark.parametrize("value", [None, 3, (), (1, 2), [b"a", (b"b",)], {"a": (1,)}])
def test_other_values_pass(value: Any) -> None:
    assert parcels.unpacked(value) == value


def test_arrays_stay_as_they_are() -> None:
    x = np.arange(5)
    assert parcels.packed(x) is x
    assert parcels.unpacked([x])[0] is x


@pytest.mark.parametrize(
    "function",
    [rd.linalg.det, rd.linalg.rank, lambda x: rd.linalg.rref(x).matrix, rd.linalg.inv, lambda x: x @ x],
    ids=["det", "rank", "rref", "inv", "matmul"],
)
def test_great_results_of_tasks_are_arrays_and_parcels(
    function: Callable[[Any], Any], rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever tasks exchange, Dask sees its size."""
    monkeypatch.setattr(block_elimination, "MOST_JOINED", 0)
    monkeypatch.setattr(block_elimination, "LEAST_COLUMNS", 8)
    seen = []
    pack = parcels.packed

    def watched(value: Any) -> Any:
        result = pack(value)
        seen.append(result)
        return result

    monkeypatch.setattr(parcels, "packed", watched)
    words = rng.integers(0, 2**31 - 1, (2, 64, 64), dtype=np.uint32)
    x = rd.FieldArray(da.from_array(words, chunks=(-1, -1, 16)), FIELDS)
    result = function(x)
    (result.words if hasattr(result, "words") else result).compute(scheduler="synchronous")
    assert len(seen) > 4
    for one in seen:
        assert isinstance(one, np.ndarray) or len(one[0].pickled) < SMALL
