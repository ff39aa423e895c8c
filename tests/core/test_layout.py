"""Chunk rules and shape checks, against worked cases and the rules themselves."""

import re
from itertools import product
from typing import Any

import dask.array as da
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rnsdask.core.layout import (
    CHUNK_MULTIPLE,
    ChunkPlan,
    are_regular,
    check_residue_array,
    default_chunk,
    grid_indices,
    plan_chunks,
    round_up,
    storable_plan,
)
from rnsdask.core.moduli import ModuliSet

MIB = 2**20


def test_round_up() -> None:
    assert [round_up(v, 128) for v in (0, 1, 127, 128, 129, 2**40 + 1)] == [
        0,
        128,
        128,
        128,
        256,
        2**40 + 128,
    ]


@pytest.mark.parametrize(
    ("n_moduli", "count", "chunk"),
    [
        (64, None, 262144),
        (65, None, 262144),
        (65, 5_000_000, 262144),
        (65, 262145, 262144),
        (65, 262144, 262144),
        (65, 262143, 262144),
        (65, 262000, 262016),
        (65, 1, 128),
        (1, None, 2**24),
        (512, None, 32768),
        (131072, None, 128),
        (10**6, None, 128),
        (65, 2**40, 262144),
    ],
)
def test_default_chunk_by_hand(n_moduli: int, count: int | None, chunk: int) -> None:
    assert default_chunk(n_moduli, count) == chunk


@given(st.integers(1, 131072), st.none() | st.integers(1, 2**50))
def test_default_chunk_is_aligned_and_of_64_to_128_mib(n_moduli: int, count: int | None) -> None:
    chunk = default_chunk(n_moduli, count)
    assert chunk % CHUNK_MULTIPLE == 0
    size = 4 * n_moduli * chunk
    if count is not None and chunk >= count:
        assert chunk - count < CHUNK_MULTIPLE
        assert size <= 128 * MIB
    else:
        assert 64 * MIB <= size <= 128 * MIB


@pytest.mark.parametrize(
    ("chunks", "shape", "expected"),
    [
        ("auto", (5_000_000,), (262144,)),
        ("auto", (1000,), (1024,)),
        ("auto", (0,), (262144,)),
        (262144, (5_000_000,), (262144,)),
        (np.int64(262144), (5_000_000,), (262144,)),
        ((256,), (5_000_000,), (256,)),
        ([256], (5_000_000,), (256,)),
        (262144, (1000,), (1024,)),
        (1000, (1000,), (1000,)),
        (1001, (1000,), (1000,)),
        (1024, (1000,), (1024,)),
        (262144, (0,), (262144,)),
        (1, (1,), (1,)),
        (100, (1000,), (100,)),
        (999, (1000,), (999,)),
        (100, (0,), (100,)),
        (-1, (1000,), (1000,)),
        (7, (100, 50), (7, 7)),
        ((-1, 33), (100, 50), (100, 33)),
        ((7, 128), (100, 1000), (7, 128)),
        ((7, 50), (100, 50), (7, 50)),
        ((700, 128), (100, 1000), (100, 128)),
        ("auto", (1000, 4096), (64, 4096)),
        ("auto", (10, 4096), (10, 4096)),
        ("auto", (0, 4096), (64, 4096)),
        ("auto", (0, 3, 4096), (21, 3, 4096)),
        ("auto", (5, 0), (1, 262144)),
        ((7, 128), (0, 256), (7, 128)),
        ("auto", (4, 3, 2**30), (1, 1, 262144)),
        ("auto", (1000, 3, 4096), (21, 3, 4096)),
    ],
)
def test_plan_chunks_by_hand(chunks: Any, shape: tuple[int, ...], expected: tuple[int, ...]) -> None:
    result = plan_chunks(chunks, shape, 64).chunks
    assert result == expected
    assert {type(c) for c in result} == {int}


@given(st.lists(st.integers(1, 5000), min_size=1, max_size=4), st.integers(1, 600))
def test_automatic_chunks_keep_every_rule(shape: list[int], n_moduli: int) -> None:
    chunks = plan_chunks("auto", shape, n_moduli).chunks
    size = 4 * n_moduli * int(np.prod(chunks))
    assert size <= 128 * MIB
    assert chunks[-1] % CHUNK_MULTIPLE == 0
    assert all(1 <= c <= s for c, s in zip(chunks[:-1], shape[:-1], strict=True))
    assert plan_chunks(chunks, shape, n_moduli).chunks == chunks  # it accepts its own answer
    # Small only because there is no more: one longer step along the axis it divides would pass 128 MiB.
    divided = [axis for axis, (c, s) in enumerate(zip(chunks, shape, strict=True)) if c < s]
    if divided:
        axis = divided[-1]
        assert size // chunks[axis] * 2 * chunks[axis] > 64 * MIB
        assert all(c == 1 for c in chunks[:axis])


@pytest.mark.parametrize(
    ("chunks", "shape", "error", "message"),
    [
        ("Auto", (10,), ValueError, "chunks must be 'auto', an integer or a tuple of integers, got 'Auto'"),
        (0, (10,), ValueError, "a chunk's length must be at least 1, got 0 on axis 0"),
        ((-2, 128), (10, 256), ValueError, "a chunk's length must be at least 1, got -2 on axis 0"),
        (-1, (0,), ValueError, "a chunk of a whole axis needs an axis of known length, got -1 on axis 0"),
        (
            (128, 128),
            (256,),
            ValueError,
            "chunks must give one length for each of the 1 axes, got (128, 128)",
        ),
        ((), (256,), ValueError, "chunks must give one length for each of the 1 axes, got ()"),
        (
            ((128, 128),),
            (256,),
            TypeError,
            "chunk length of axis 0 must be an integer, got (128, 128) of type tuple",
        ),
        (128.0, (256,), TypeError, "chunks must be an integer, got 128.0 of type float"),
        (True, (256,), TypeError, "chunks must be an integer, got True of type bool"),
        (None, (256,), TypeError, "chunks must be an integer, got None of type NoneType"),
        ("auto", (), ValueError, "an array of numbers needs at least one axis, got shape ()"),
        ("auto", (3, -1), ValueError, "shape must not be negative, got -1 on axis 1"),
    ],
)
def test_plan_chunks_refuses(
    chunks: Any, shape: tuple[int, ...], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=f"{re.escape(message)}$"):
        plan_chunks(chunks, shape, 64)


@pytest.mark.parametrize(
    ("chunks", "shape", "regular", "expected"),
    [
        (((3, 3, 2),), (8,), True, (3,)),
        (((3, 3, 3),), (9,), True, (3,)),
        (((3, 3, 4),), (10,), False, (4,)),
        (((1, 60, 35),), (96,), False, (60,)),
        (((2, 5), (4, 4)), (7, 8), False, (5, 4)),
        (((0,), (4, 4)), (0, 8), True, (1, 4)),
        (((1024, 976),), (2000,), True, (1024,)),
    ],
)
def test_chunks_of_a_store(chunks: Any, shape: tuple[int, ...], regular: bool, expected: Any) -> None:
    assert are_regular(chunks) is regular
    assert storable_plan(chunks, 64) == ChunkPlan(shape, expected)


def test_chunk_grid_beyond_32_bits() -> None:
    plan = ChunkPlan((2**33 + 1,), (2**20,))
    assert plan.grid == (2**13 + 1,)
    assert plan.slices((2**13,)) == (slice(2**33, 2**33 + 1),)


@given(st.data())
def test_chunks_cover_each_number_once(data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.integers(0, 12), min_size=1, max_size=3)))
    chunks = tuple(data.draw(st.integers(1, 14)) for _ in shape)
    plan, seen = ChunkPlan(shape, chunks), np.zeros(shape, dtype=int)
    for index in product(*map(range, plan.grid)):
        part = plan.slices(index)
        assert all(s.stop > s.start for s in part)  # no chunk is empty
        assert plan.part_shape(index) == seen[part].shape
        assert plan.part_shape(index) == tuple(axis[i] for axis, i in zip(plan.lengths, index, strict=True))
        seen[part] += 1
    assert (seen == 1).all()
    cut = tuple(max(1, min(c, s)) for c, s in zip(chunks, shape, strict=True))
    assert plan.lengths == da.core.normalize_chunks(cut, shape)


@pytest.mark.parametrize("index", [(2, 0), (0, -1), (0,), (0, 0, 0)])
def test_a_chunk_outside_the_grid_is_refused(index: tuple[int, ...]) -> None:
    with pytest.raises(IndexError, match=re.escape(f"no chunk {index} in a grid of (2, 3) chunks")):
        ChunkPlan((4, 300), (2, 128)).slices(index)


@pytest.mark.parametrize("grid", [(), (0,), (4,), (3, 0), (0, 3), (2, 1, 3), (1, 1)])
def test_indices_of_a_grid(grid: tuple[int, ...]) -> None:
    assert list(grid_indices(grid)) == list(product(*map(range, grid)))


def test_indices_of_a_grid_take_no_memory() -> None:
    for axes in (1, 2, 3):
        indices = grid_indices((2**60,) * axes)
        assert [next(indices), next(indices)] == [(0,) * axes, (*(0,) * (axes - 1), 1)]


@pytest.mark.parametrize("shape", [(3, 1), (3, 0), (3, 5, 7)])
def test_residue_arrays_of_any_library_are_accepted(shape: tuple[int, ...]) -> None:
    ms = ModuliSet([2, 3, 5])
    check_residue_array(np.zeros(shape, dtype=np.uint32), ms)
    check_residue_array(da.zeros(shape, dtype=np.uint32), ms)
    check_residue_array(np.zeros(shape, dtype=">u4").astype(np.uint32), ms)


@pytest.mark.parametrize(
    ("residues", "error", "message"),
    [
        ([[0], [0], [0]], TypeError, "residues must be a NumPy, CuPy or Dask array, got list"),
        (np.zeros((3, 4), np.int32), TypeError, "residues must have dtype uint32, got int32"),
        (np.zeros((3, 4), np.uint64), TypeError, "residues must have dtype uint32, got uint64"),
        (np.zeros((3, 4), float), TypeError, "residues must have dtype uint32, got float64"),
        (np.zeros((3, 4), ">u4"), TypeError, "residues must have dtype uint32, got >u4"),
        (np.zeros(3, np.uint32), ValueError, "at least one axis of numbers, got shape (3,)"),
        (np.zeros((4, 3), np.uint32), ValueError, "one row for each of the 3 moduli, got shape (4, 3)"),
    ],
)
def test_what_cannot_hold_residues_is_refused(residues: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=f"{re.escape(message)}$"):
        check_residue_array(residues, ModuliSet([2, 3, 5]))
