"""Chunks of arrays in memory: what is asked for, by the rules of Dask, and the numbers in any of them."""

import itertools
import math
import re
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import distributed.shuffle
import numpy as np
import pytest
from conftest import Processor
from dask.array.utils import meta_from_array
from hypothesis import given
from hypothesis import strategies as st

import rnsdask as rd
from rnsdask.backend import WorkersArray
from rnsdask.core.errors import JobError
from rnsdask.lazy.chunks import normalize_chunks
from rnsdask.lazy.planning import PLANS_QUERIES

MODULI = rd.ModuliSet.for_bits(200)
ROWS = len(MODULI)


def by_dask(chunks: Any, shape: tuple[int, ...], current: Any = None) -> Any:
    """The chunks of a Dask array of as many bytes an item, which says what is right."""
    dtype = np.dtype((np.void, 4 * ROWS))
    if current is None and isinstance(chunks, list | tuple | str):
        return da.empty(shape, dtype=dtype, chunks=chunks).chunks
    return da.empty(shape, dtype=dtype, chunks=-1 if current is None else current).rechunk(chunks).chunks


@pytest.mark.parametrize(
    ("chunks", "shape"),
    [
        (1000, (2500,)),
        (3000, (2500,)),
        (-1, (2500,)),
        (7, (20, 30)),
        (-1, (20, 30)),
        ((1, 60, 35), (96,)),
        (((1, 60, 35),), (96,)),
        (((0, 60, 36),), (96,)),
        ([[1, 60, 35]], (96,)),
        ((7, -1), (20, 30)),
        ((7, None), (20, 30)),
        ((None, (1, 29)), (20, 30)),
        (((5, 15), 7), (20, 30)),
        ({0: 7}, (20, 30)),
        ({-1: 7}, (20, 30)),
        ({0: None, 1: (10, 20)}, (20, 30)),
        ({}, (20, 30)),
        ("1kB", (2500,)),
        ("64MiB", (2500,)),
        ("600 B", (20, 30)),
        ({1: "600 B"}, (20, 30)),
        (("auto", 7), (20, 30)),
        ((np.int64(7), np.uint8(5)), (20, 30)),
        (5, (0,)),
        ((5, 6), (0, 20)),
        (1, (1, 1, 1)),
    ],
)
def test_chunks_are_those_of_dask(chunks: Any, shape: tuple[int, ...]) -> None:
    assert normalize_chunks(chunks, shape, ROWS) == by_dask(chunks, shape)
    current = (3,) * len(shape)
    before = by_dask(current, shape)
    if chunks != (1, 60, 35):  # of which Dask's rechunk takes the first alone
        assert normalize_chunks(chunks, shape, ROWS, before) == by_dask(chunks, shape, current)


@given(st.data())
def test_random_chunks_are_those_of_dask(data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.integers(1, 40), min_size=1, max_size=3)))
    current = tuple(data.draw(st.integers(1, length)) for length in shape)
    one = st.none() | st.just(-1) | st.integers(1, 50)
    chunks = tuple(data.draw(one | st.just((length - 1, 1))) for length in shape)
    before = by_dask(current, shape)
    assert normalize_chunks(chunks, shape, ROWS, before) == by_dask(chunks, shape, current)
    given_axes = {axis: c for axis, c in enumerate(chunks) if data.draw(st.booleans())}
    assert normalize_chunks(given_axes, shape, ROWS, before) == by_dask(given_axes, shape, current)


@pytest.mark.parametrize("chunks", ["auto", ("auto", "auto"), {0: "auto", 1: "auto"}])
def test_automatic_chunks_are_long_rows_of_64_to_128_mib(chunks: Any) -> None:
    lengths = normalize_chunks(chunks, (2**20, 2**20), ROWS)
    bytes_of_chunk = 4 * ROWS * math.prod(axis[0] for axis in lengths)
    assert 2**26 <= bytes_of_chunk < 2**27
    assert lengths[1][0] % 128 == 0
    assert lengths[0][0] == 1 or len(lengths[1]) == 1  # the last axis is filled first


@pytest.mark.parametrize("chunks", ["auto", ("auto", -1), (-1, "auto"), "64MiB", {0: "auto"}])
@pytest.mark.parametrize("shape", [(1000, 0), (0, 1000), (0, 0)])
def test_automatic_chunks_of_no_numbers_are_whole_axes(chunks: Any, shape: tuple[int, ...]) -> None:
    assert normalize_chunks(chunks, shape, ROWS) == tuple((length,) for length in shape)
    x = rd.from_ints(np.empty(shape, dtype=object), MODULI, chunks=chunks)
    assert x.rechunk("auto").to_ints().shape == shape


def test_the_setting_of_dask_limits_what_is_automatic_along_some_axes() -> None:
    with dask.config.set({"array.chunk-size": "1MiB"}):
        lengths = normalize_chunks(("auto", -1), (10**6, 10), ROWS)
    assert lengths[1] == (10,)
    assert 2**18 < 4 * ROWS * 10 * lengths[0][0] <= 2**20


@pytest.mark.parametrize(
    ("chunks", "error", "message"),
    [
        ("Auto", ValueError, "chunks must be 'auto', a size such as '64MiB', or integers for lengths"),
        ("-5MiB", ValueError, "chunks must be 'auto', a size such as '64MiB', or integers for lengths"),
        ("0 B", ValueError, "got '0 B'"),
        ("", ValueError, "chunks must be 'auto', a size such as '64MiB', or integers for lengths, got ''"),
        (" ", ValueError, "got ' '"),
        (0, ValueError, "a chunk's length must be at least 1, or -1 for the whole axis, got 0 on axis 0"),
        ((5, -2), ValueError, "got -2 on axis 1"),
        (5.0, TypeError, "chunks must be an integer, got 5.0 of type float"),
        ((5, 5.5), TypeError, "chunk length of axis 1 must be an integer, got 5.5"),
        (True, TypeError, "chunks must be an integer, got True of type bool"),
        (None, TypeError, "chunks must be an integer, got None"),
        ((5,), ValueError, "chunks must give one length for each of the 2 axes, got (5,)"),
        ((5, 5, 5), ValueError, "one length for each of the 2 axes"),
        ((), ValueError, "one length for each of the 2 axes"),
        (((5, 5), 5), ValueError, "chunks of axis 0 must add up to its length 20, got 10"),
        (((-5, 25), 5), ValueError, "chunks of axis 0 must be lengths from 0 on, got (-5, 25)"),
        (((), 5), ValueError, "chunks of axis 0 must be lengths from 0 on, got ()"),
        ({2: 5}, ValueError, "axis 2 is out of bounds"),
        ({0.5: 5}, TypeError, "axis of chunks must be an integer"),
        ({0: "x"}, ValueError, "chunks must be 'auto'"),
    ],
)
def test_what_are_no_chunks_is_refused(chunks: Any, error: type[Exception], message: str) -> None:
    x = rd.from_ints(np.arange(600).reshape(20, 30), MODULI)
    with pytest.raises(error, match=re.escape(message)):
        x.rechunk(chunks)


def test_lengths_beyond_machine_integers_are_the_whole_axis() -> None:
    """Dask counts them as floating-point numbers."""
    x = rd.from_ints(np.arange(600).reshape(20, 30), MODULI, chunks=-1)
    for length in (2**63, 10**20, 10**400):
        assert x.rechunk(length).chunks == ((20,), (30,))
        assert x.rechunk({1: length}).chunks == (*x.chunks[:1], (30,))


def test_more_chunks_than_memory_are_refused_before_they_are_made() -> None:
    with pytest.raises(JobError, match="larger chunks are fewer"):
        rd.random(MODULI, 10**14, chunks=1)


@pytest.mark.parametrize("chunks", [2**70, (2**70, 2**63), {0: 2**64}])
def test_a_length_beyond_machine_integers_is_the_whole_axis(chunks: Any) -> None:
    assert normalize_chunks(chunks, (20, 30), ROWS) == ((20,), (30,))


@pytest.mark.parametrize("chunks", [1, 7, 100, -1, (1, 60, 35), ((0, 96),), "40 B", {0: 95}])
def test_numbers_are_the_same_in_any_chunks(on_each_processor: Processor, chunks: Any) -> None:
    values = [(-1) ** i * 3**i % 2**199 for i in range(96)]
    for signed in (False, True):
        numbers = values if signed else [abs(v) for v in values]
        eager = rd.from_ints(numbers, rd.RNS(MODULI, signed), chunks=None)
        eager = rd.RNSArray(on_each_processor.xp.asarray(eager.residues), eager.system)
        x = eager.rechunk(chunks)
        assert x.to_ints().tolist() == numbers
        assert (x * 3 + 1).to_ints().tolist() == [v * 3 + 1 for v in numbers]
        assert x.max().compute() == max(numbers)
        assert x.argmin().compute() == numbers.index(min(numbers))
        assert x.sum().compute() == sum(numbers)
        assert x.rechunk(33).rechunk({0: -1}).chunks == ((96,),)
    y = rd.IntervalRNSArray.from_ints(values, MODULI, chunks=chunks)
    assert y.to_ints().tolist() == values
    assert y.min().compute() == min(values)


def test_chunks_of_all_ways_to_make_arrays() -> None:
    assert rd.from_ints(range(10), MODULI, chunks=4).chunks == ((4, 4, 2),)
    assert rd.from_ints(range(10), MODULI, chunks={0: (3, 7)}).chunks == ((3, 7),)
    assert rd.from_ints([[1, 2, 3]] * 5, MODULI, chunks=2).chunks == ((2, 2, 1), (2, 1))
    x = rd.random(MODULI, (9, 9), seed=1, chunks=((2, 7), -1))
    assert x.chunks == ((2, 7), (9,))
    assert rd.random(MODULI, (9, 9), seed=1, chunks=((2, 7), -1)).to_ints().tolist() == x.to_ints().tolist()


def test_axes_of_unknown_length_keep_their_chunks() -> None:
    x = rd.from_ints(np.arange(60).reshape(20, 3), MODULI, chunks=(6, 3))
    selected = x[x.residues[0][:, 0] % 2 == 0]
    assert selected.rechunk({1: 2}).chunks[1] == (2, 1)
    assert selected.rechunk((None, 1)).to_ints().tolist() == np.arange(60).reshape(20, 3)[::2].tolist()
    assert np.isnan(selected.shape[0])


@pytest.mark.parametrize("chunks", ["auto", 5, {0: -1}, ((10,), 3)])
def test_unknown_lengths_are_found_where_chunks_change(chunks: Any) -> None:
    x = rd.from_ints(np.arange(60).reshape(20, 3), MODULI, chunks=(6, 3))
    selected = x[x.residues[0][:, 0] % 2 == 0].rechunk(chunks)
    assert selected.chunks == (((5, 5) if chunks == 5 else (10,)), (3,))
    assert selected.to_ints().tolist() == np.arange(60).reshape(20, 3)[::2].tolist()


# ---- chunks that GPUs may hold -----------------------------------------------------------------------------


class CuPys(np.ndarray):
    """An array that stands for chunks of CuPy, where there is no CuPy."""


CuPys.__module__ = "cupy"

EXCHANGES = {
    "rechunk": lambda x: x.rechunk((2, 6)),
    "reshape": lambda x: x.reshape(4, 9),
    "flat": lambda x: x.ravel(),
    "other chunks": lambda x: rd.concatenate([x, x.rechunk((2, 2))]),
    "sum of other chunks": lambda x: x + x[::-1, ::-1],
    "solve": lambda x: rd.linalg.solve(x.rechunk(-1), x),
    "matrices": lambda x: x @ x[:, 1:],
    "mask": lambda x: x[x.T == 1],
    "transform": lambda x: rd.ntt(x[:4, :4].rechunk((1, 1)), axis=0),
}


OF_CUPY = ["rechunk", "reshape", "flat"]  # the others have Dask import CuPy


@pytest.mark.parametrize(
    ("name", "of_what"),
    [*itertools.product(EXCHANGES, (WorkersArray, np.ndarray)), *itertools.product(OF_CUPY, (CuPys,))],
)
def test_what_gpus_may_hold_is_exchanged_by_tasks(
    name: str, of_what: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    fields, exchanged = rd.PrimeFields([2013265921]), []

    def rechunk_p2p(x: da.Array, chunks: Any, **_: Any) -> da.Array:
        exchanged.append(x)
        return x.rechunk(chunks, method="tasks")

    monkeypatch.setattr(distributed.shuffle, "rechunk_p2p", rechunk_p2p)
    words = da.zeros((1, 6, 6), dtype=np.uint32, chunks=(1, 3, 4))
    words = words.map_blocks(np.copy, meta=np.empty((0, 0, 0), np.uint32).view(of_what))
    with dask.config.set({"array.rechunk.method": "p2p"}):
        EXCHANGES[name](rd.FieldArray(words, fields))
        assert dask.config.get("array.rechunk.method") == "p2p"
    assert bool(exchanged) == (of_what is np.ndarray and not PLANS_QUERIES)  # expressions ask later


def test_what_is_joined_to_chunks_of_workers_is_brought_there(tmp_path: Path, in_this_thread: None) -> None:
    rd.from_ints(range(20), MODULI, chunks=6).to_zarr(tmp_path / "x.zarr")
    x = rd.open_zarr(tmp_path / "x.zarr", backend="auto")
    made = {
        "pad": rd.pad(x, 2, constant_values=7)[2:-2],
        "sum": x + rd.from_ints(range(20), MODULI, chunks=5) - list(range(20)),
        "part": rd.concatenate([rd.from_ints([3], MODULI, chunks=None), x])[1:],
        "filled": rd.zeros_like(x) + x,
        "selected": x[x >= 0],
        "persisted": x.persist(),
    }
    for name, array in made.items():
        assert type(meta_from_array(array.words)) is WorkersArray, name
        assert array.to_ints().tolist() == list(range(20)), name
        assert type(array.compute().words) is np.ndarray, name
