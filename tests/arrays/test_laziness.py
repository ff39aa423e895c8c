"""Arrays in memory and lazy ones: only chunks, a store or a Dask array make an array lazy."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
import zarr
from public_calls import PRIME, ROWS, SYSTEMS, VALUES, Arrays, Row

import rnsdask as rd
from rnsdask.arrays.collection import NumberCollection

MODULI = rd.ModuliSet.for_bits(64)
NUMBERS = np.arange(6, dtype=np.uint32)

MAKERS: dict[str, Callable[..., Any]] = {
    "from_ints": lambda **how: rd.from_ints([1, 2, 3], **how),
    "from_ints of an array": lambda **how: rd.from_ints(NUMBERS, MODULI, **how),
    "array": lambda **how: rd.array([1, 2, 3], **how),
    "asarray": lambda **how: rd.asarray(NUMBERS, bits=9, **how),
    "from_residues": lambda **how: rd.from_residues(np.stack([NUMBERS] * len(MODULI)), MODULI, **how),
    "from_limbs": lambda **how: rd.from_limbs(NUMBERS[:, None], MODULI, **how),
    "from_bytes": lambda **how: rd.from_bytes(b"\x01\x02\x03", 1, **how),
    "random": lambda **how: rd.random(1000, bits=64, **how),
    "random of a field": lambda **how: rd.random(rd.PrimeFields([PRIME]), (3, 4), **how),
    "zeros": lambda **how: rd.zeros(3, **how),
    "ones": lambda **how: rd.ones((2, 3), **how),
    "full": lambda **how: rd.full(3, 10**30, **how),
    "arange": lambda **how: rd.arange(5, **how),
    "linspace": lambda **how: rd.linspace(0, 10, 6, **how),
    "eye": lambda **how: rd.eye(3, **how),
    "identity": lambda **how: rd.identity(3, **how),
    "IntervalRNSArray.from_ints": lambda **how: rd.IntervalRNSArray.from_ints([1, -2], MODULI, **how),
}

ASKS_FOR_DASK = {
    "x + NumPy's in chunks",  # beside a Dask array
    "rd.open_zarr",
    "x.blocks",
    "x.to_dask_array",
    "x.with_storable_chunks",
    "sparse.det",  # with chunks=
    "sparse.rank",
    "sparse.minpoly",
}
"""Rows of public calls that say themselves that the result is to be lazy."""


def is_lazy(result: Any) -> bool:
    if isinstance(result, tuple | list):
        return any(map(is_lazy, result))
    return dask.is_dask_collection(result)


@pytest.mark.parametrize("name", MAKERS)
def test_only_chunks_make_an_array_lazy(name: str) -> None:
    make = MAKERS[name]
    assert not is_lazy(make())
    assert not is_lazy(make(chunks=None))
    assert is_lazy(make(chunks="auto"))
    assert is_lazy(make(chunks=2))


def test_what_is_lazy_stays_lazy_and_keeps_its_chunks(tmp_path: Path) -> None:
    numbers = da.from_array(np.arange(6), chunks=4)
    stored = zarr.create_array(tmp_path / "plain.zarr", data=np.arange(6), chunks=(4,))
    rd.from_ints(range(6), MODULI, chunks=4).to_zarr(tmp_path / "x.zarr")
    for chunks in (None, "auto"):
        for made in (
            rd.from_ints(numbers, MODULI, chunks=chunks),
            rd.asarray(numbers, MODULI, chunks=chunks),
            rd.from_ints(stored, MODULI, chunks=chunks),
            rd.asarray(rd.from_ints(range(6), MODULI, chunks=4), chunks=chunks),
        ):
            assert made.chunks == ((4, 2),)
            assert made.to_ints().tolist() == list(range(6))
    assert rd.open_zarr(tmp_path / "x.zarr").chunks == ((4, 2),)


def test_compute_and_persist_return_an_array_in_memory() -> None:
    x = rd.from_ints([1, 2, 3])
    assert x.compute() is x
    assert x.persist() is x
    assert dask.compute(x, x.sum()) == (x, 6)


@pytest.mark.parametrize(
    "row",
    # What asks for Dask is lazy, and the row of x.reduce computes.
    [pytest.param(row, id=row.name) for row in ROWS if row.name not in (*ASKS_FOR_DASK, "x.reduce")],
)
def test_results_in_memory_come_at_once(row: Row, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No public call on arrays in memory gives anything lazy, unless it is asked for."""
    if not row.name.startswith(("x.map_blocks", "x.to_zarr")):  # which cut chunks themselves
        monkeypatch.setattr(NumberCollection, "rechunk", lambda x, *_: x)
    for name in row.systems:
        (tmp_path / name).mkdir()
        values = {**VALUES, "rns_x": VALUES["x"]}
        arrays = {
            key: rd.from_ints(ints, SYSTEMS["rns" if key == "rns_x" else name])
            for key, (ints, _) in values.items()
        }
        assert not is_lazy(row.call(Arrays(SYSTEMS[name], arrays, tmp_path / name))), name


@pytest.mark.parametrize("shape", [(1000,), (3, 0), (70, 11), 0])
@pytest.mark.parametrize("bits", [20, 64, 5000])
def test_random_numbers_in_memory_are_those_of_automatic_chunks(bits: int, shape: Any) -> None:
    x = rd.random(shape, bits=bits, seed=5)
    lazy = rd.random(shape, bits=bits, seed=5, chunks="auto")
    assert (x.to_ints() == lazy.to_ints()).all()
    assert (x.shape, x.system) == (lazy.shape, lazy.system)


def test_random_numbers_of_several_chunks() -> None:
    system = rd.Positional(2**20)
    x, lazy = (rd.random(system, (5, 1000), seed=2**40, chunks=chunks) for chunks in (None, "auto"))
    assert lazy.npartitions > 1
    assert (x.words == lazy.words.compute()).all()


@pytest.mark.parametrize(
    ("make", "shape"),
    [
        (lambda **how: rd.random(10**13, bits=64, **how), r"\(10000000000000,\)"),
        (lambda **how: rd.random((10**9, 10**9), bits=8, **how), r"\(1000000000, 1000000000\)"),
        (lambda **how: rd.arange(10**13, **how), r"\(10000000000000,\)"),
        (lambda **how: rd.linspace(0, 10**13 - 1, 10**13, **how), r"\(10000000000000,\)"),
        (lambda **how: rd.eye(10**7, **how), r"\(10000000, 10000000\)"),
    ],
)
def test_what_memory_does_not_hold_is_refused_with_the_way_out(make: Any, shape: str) -> None:
    message = (
        rf'an array of shape {shape} would take .* GB of .* GB of memory; chunks="auto" makes a lazy one'
    )
    with pytest.raises(rd.JobError, match=message):
        make()
