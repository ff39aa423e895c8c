"""RNSArray on NumPy, CuPy and Dask: what users see."""

import subprocess
import sys
from itertools import accumulate
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import gmpy2
import numpy as np
import pytest
from conftest import Processor
from dask.base import tokenize
from oracles import integers, rns
from strategies import MODULI_SETS

import rnsdask as rd
from rnsdask import store

MODULI = MODULI_SETS["table2_8"]


@pytest.fixture
def values(rng: np.random.Generator) -> list[int]:
    """A thousand numbers of the whole range, the ends among them twice."""
    some = [int(f) * MODULI.product >> 62 for f in rng.integers(0, 2**62, size=996)]
    some += [0, MODULI.product - 1] * 2
    return [some[i] for i in rng.permutation(len(some))]


# ---- making arrays ----------------------------------------------------------------------------------------


def test_from_ints_keeps_every_bit(values: list[int]) -> None:
    for given_values in (
        values,
        tuple(values),
        iter(values),
        np.array(values, dtype=object),
        map(gmpy2.mpz, values),
    ):
        x = rd.from_ints(given_values, MODULI)
        assert x.to_ints().tolist() == values
        assert x.bound == max(values)
        assert x.shape == (1000,)
        assert not x.signed


def test_from_residues_checks(values: list[int]) -> None:
    residues = rns.encode(values, MODULI)
    with pytest.raises(TypeError, match="residues must be integers, got dtype float64"):
        rd.from_residues(residues.astype(np.float64), MODULI)
    assert rd.from_residues(residues.astype(np.int64), MODULI).to_ints().tolist() == values
    with pytest.raises(ValueError, match="8 moduli"):
        rd.from_residues(residues[:7], MODULI)
    residues[3, 700] = MODULI[3]
    m = MODULI[3]
    message = rf"residue {m} of the number at flat position 700 is not below its modulus {m} \(row 3\)"
    with pytest.raises(ValueError, match=message):
        rd.from_residues(residues, MODULI)
    lazy = rd.from_residues(da.from_array(residues, chunks=(2, 500)), MODULI)
    with pytest.raises(ValueError, match=message):
        lazy.max().compute()


def test_random_is_the_same_for_the_same_seed_and_chunks() -> None:
    x = rd.random(MODULI, 1000, seed=5, chunks=256)
    y = rd.random(MODULI, 1000, seed=5, chunks=256)
    assert tokenize(x) == tokenize(y)
    whole = x.residues.compute(scheduler="synchronous")
    assert (whole == y.residues.compute(num_workers=4)).all()
    assert (whole[:, 256:512] == x[256:512].residues.compute()).all()
    assert (whole != rd.random(MODULI, 1000, seed=6, chunks=256).residues.compute()).any(axis=0).all()
    assert (whole < np.array(list(MODULI), dtype=np.uint64)[:, None]).all()
    # Chunks have streams of their own.
    assert (whole[:, :256] != whole[:, 256:512]).any(axis=0).all()


@pytest.mark.parametrize("seed", [0, 5, 2**32 - 1, 2**40 + 5])
def test_no_chunk_of_a_seed_is_one_of_another(seed: int) -> None:
    chunks = set()
    seeds = [seed, *(seed + c * 2**bits for bits in (32, 64, 96, 128) for c in (1, 2))]
    for each in seeds:
        residues = rd.random(MODULI, 32, seed=each, chunks=8).residues.compute()
        chunks |= {residues[:, start : start + 8].tobytes() for start in range(0, 32, 8)}
    assert len(chunks) == 4 * len(seeds)


@pytest.mark.parametrize(("options", "message"), [({"seed": -1}, "seed"), ({"chunks": 0}, "at least 1")])
def test_random_refuses(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        rd.random(MODULI, 1000, **options)


# ---- a Dask collection ------------------------------------------------------------------------------------


@pytest.mark.parametrize("unknown", [True, False])
def test_selected_numbers_with_empty_chunks(unknown: bool) -> None:
    values = [0] * 200 + [5, 9, 1] + [0] * 300 + [9, 4]
    x = rd.from_ints(values, MODULI, chunks=128)
    part = x[x > 0].compute_chunk_sizes()
    if not unknown:
        part = rd.RNSArray(
            da.from_array(part.residues.compute(), chunks=(8, (0, 3, 0, 2, 0))), rd.RNS(MODULI)
        )
    assert part.chunks == ((3, 2),)
    assert dask.compute(part.max(), part.argmax(), part.min(), part.sum()) == (9, 1, 1, 28)
    assert part.topk(2).compute().tolist() == [9, 9]
    assert part.max(axis=0, keepdims=True).to_ints().tolist() == [9]
    assert part.cumsum().to_ints().tolist() == [5, 14, 15, 24, 28]
    assert part.cummax().to_ints().tolist() == [5, 9, 9, 9, 9]


@pytest.mark.parametrize("key", [np.arange(1000) % 3 != 1, slice(None, None, 2), slice(None, None, -1)])
def test_numbers_that_are_not_next_to_one_another(
    on_each_processor: Processor, values: list[int], key: Any
) -> None:
    residues = on_each_processor.xp.asarray(rns.encode(values, MODULI))
    key = on_each_processor.xp.asarray(key) if isinstance(key, np.ndarray) else key
    x = rd.from_residues(residues, MODULI)[key]
    part = x.to_ints().tolist()
    assert (x.max(), x.sum()) == (max(part), sum(part))
    assert x.topk(3).tolist() == sorted(part)[:-4:-1]
    assert x.argtopk(-2).tolist() == sorted(range(len(part)), key=part.__getitem__)[:2]
    assert x.cummax().to_ints().tolist() == list(accumulate(part, max))
    assert x.cummin().to_ints().tolist() == list(accumulate(part, min))
    assert x.max(axis=0, keepdims=True).to_ints().tolist() == [max(part)]
    assert rd.add(x, x, overflow="wrap").to_ints().tolist() == [2 * v % MODULI.product for v in part]
    assert rd.subtract(x, x).sum() == 0
    assert (x // 3).to_ints().tolist() == [v // 3 for v in part]
    assert not (x < x).any()
    with pytest.raises(rd.RNSOverflowError):
        x.cumsum()


def test_wrong_operation_and_backend(values: list[int]) -> None:
    for chunks in (None, 128):
        x = rd.from_ints(values, MODULI, chunks=chunks)
        with pytest.raises(ValueError, match=f"{', '.join(integers.REDUCTIONS)}, bound, got 'mean'"):
            x.reduce("mean")
    with pytest.raises(ValueError, match="auto, cpu, cuda, got 'tpu'"):
        x.reduce("max", backend="tpu")


# ---- conversion and representation ------------------------------------------------------------------------


def test_numpy_conversion_never_loses_a_bit(values: list[int]) -> None:
    x = rd.from_ints(values, MODULI, chunks=None)
    assert np.asarray(x).dtype == object
    assert np.asarray(x).tolist() == values
    with pytest.raises(TypeError, match="dtype object only, got float64"):
        np.asarray(x, dtype=np.float64)
    assert list(x) == values
    assert [int(v) for v in rd.from_ints(values[:3], MODULI)] == values[:3]
    assert len(x) == 1000


def test_interval(values: list[int]) -> None:
    x = rd.from_ints(values, MODULI, chunks=128)
    lazy = x.interval()
    eager = x.compute().interval()
    for field in ("low", "upp", "exponent"):
        assert (getattr(lazy, field).compute() == getattr(eager, field)).all()
    with pytest.raises(ValueError, match="accuracy"):
        x.interval(accuracy=1e-30)


def test_names_are_imported_lazily() -> None:
    code = "import sys, rnsdask; assert not {'dask', 'zarr', 'numpy'} & set(sys.modules); rnsdask.from_ints"
    subprocess.run([sys.executable, "-c", code], check=True)
    assert set(dir(rd)) >= {"ModuliSet", "RNSArray", "from_ints", "open_zarr", "random", "StoreError"}
    for name in rd.__all__:
        assert getattr(rd, name) is not None


# ---- stores -----------------------------------------------------------------------------------------------


def test_each_chunk_is_read_once(tmp_path: Path, values: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    rd.from_ints(values, MODULI, chunks=128).to_zarr(tmp_path / "x.zarr")
    reads: list[tuple[int, ...]] = []
    read_chunk = store.read_chunk

    def counted(info: store.StoreInfo, index: tuple[int, ...]) -> Any:
        reads.append(index)
        return read_chunk(info, index)

    monkeypatch.setattr(store, "read_chunk", counted)
    x = rd.open_zarr(tmp_path / "x.zarr")
    assert reads == []
    results = dask.compute(x.max(), x.sum(), x.argmin(), x.min())
    assert results == (max(values), sum(values), values.index(min(values)), min(values))
    assert sorted(reads) == [(i,) for i in range(8)]


def test_numbers_that_are_wrong_leave_no_store(tmp_path: Path, values: list[int]) -> None:
    residues = rns.encode(values, MODULI)
    residues[0, 999] = MODULI[0]
    lazy = rd.from_residues(da.from_array(residues, chunks=(8, 128)), MODULI)
    with pytest.raises(ValueError, match="is not below its modulus"):
        lazy.to_zarr(tmp_path / "x.zarr")
    assert not (tmp_path / "x.zarr").exists()


# ---- GPUs -------------------------------------------------------------------------------------------------


@pytest.mark.gpu
def test_chunks_go_to_the_gpu(tmp_path: Path, values: list[int]) -> None:
    x = rd.from_ints(values, MODULI, chunks=128)
    for backend, expected in (("auto", "cuda"), ("cuda", "cuda"), ("cpu", "cpu")):
        result = x.reduce("max", backend=backend).compute()
        assert (result.value, result.index) == (max(values), values.index(max(values)))
        assert result.backend == expected


@pytest.mark.gpu
def test_dask_arrays_of_cupy_chunks(values: list[int]) -> None:
    import cupy

    x = rd.from_ints(values, MODULI, chunks=128)
    on_gpu = rd.RNSArray(
        x.residues.map_blocks(cupy.asarray, meta=cupy.empty((0, 0), dtype=np.uint32)), rd.RNS(MODULI)
    )
    assert on_gpu.sum().compute() == sum(values)
    assert on_gpu.reduce("max").compute().backend == "cuda"
    assert on_gpu.reduce("max", backend="cpu").compute().backend == "cpu"
    assert on_gpu.to_ints().tolist() == values
