"""RNSArray on NumPy, CuPy and Dask: what users see."""

import pickle
import subprocess
import sys
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import gmpy2
import numpy as np
import pytest
from conftest import Processor
from dask.base import is_dask_collection, tokenize
from hypothesis import given
from hypothesis import strategies as st
from oracles import rns
from strategies import BOTH_RANGES, MODULI_SETS, arrays_of_values, edge_values, moduli_sets

import rnsdask as rd
from rnsdask import store
from rnsdask.core.errors import CorruptChunkError, StoreError
from rnsdask.rns.reduce import ReductionResult

MODULI = MODULI_SETS["table2_8"]


@pytest.fixture
def values(rng: np.random.Generator) -> list[int]:
    """A thousand numbers of the whole range, the ends among them twice."""
    some = [int(f) * MODULI.product >> 62 for f in rng.integers(0, 2**62, size=996)]
    some += [0, MODULI.product - 1] * 2
    return [some[i] for i in rng.permutation(len(some))]


@pytest.fixture
def no_compute() -> Any:
    """Fail if anything computes."""

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("computed too early")

    with dask.config.set(scheduler=refuse):
        yield


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


def test_from_ints_signed() -> None:
    lowest, highest = MODULI.value_range(signed=True)
    x = rd.from_ints([lowest, -1, 0, 1, highest], MODULI, signed=True)
    assert x.to_ints().tolist() == [lowest, -1, 0, 1, highest]
    assert x.bound == -lowest
    assert (x.max().compute(), x.min().compute(), x.sum().compute()) == (highest, lowest, highest + lowest)


def test_from_ints_of_numpy_integers() -> None:
    array = np.array([[2**64 - 1, 1, 0], [2**63, 5, 7]], dtype=np.uint64)
    x = rd.from_ints(array, MODULI, chunks=None)
    assert x.shape == (2, 3)
    assert x.to_ints().tolist() == array.tolist()
    assert x.max() == 2**64 - 1


def test_from_ints_refuses_floats_and_values_out_of_range() -> None:
    floats = np.array([2**64 - 1, 1.0])
    with pytest.raises(TypeError, match=r"float"):
        rd.from_ints(floats, MODULI)
    with pytest.raises(TypeError, match=r"position 1"):
        rd.from_ints([1, 2.0], MODULI)
    with pytest.raises(ValueError, match=r"position 2"):
        rd.from_ints([1, 2, MODULI.product], MODULI)
    with pytest.raises(ValueError, match=r"position 1"):
        rd.from_ints([1, -1], MODULI)


def test_empty_arrays_exist_but_have_no_reductions() -> None:
    for chunks in ("auto", None):
        x = rd.from_ints([], MODULI, chunks=chunks)
        assert x.shape == (0,)
        assert x.to_ints().tolist() == []
        assert dask.compute(x.sum()) == (0,)
        for operation in ("max", "min", "argmax", "argmin"):
            with pytest.raises(ValueError, match="empty array"):
                getattr(x, operation)()


def test_from_residues(on_each_processor: Processor, values: list[int]) -> None:
    residues = on_each_processor.xp.asarray(rns.encode(values, MODULI))
    x = rd.from_residues(residues, MODULI)
    assert not is_dask_collection(x)
    assert (x.max(), x.argmax()) == (max(values), values.index(max(values)))
    assert (x.min(), x.argmin()) == (min(values), values.index(min(values)))
    assert x.sum() == sum(values)
    assert type(x.sum()) is int
    assert x.to_ints().tolist() == values
    # The two M - 1, which could be near 0 as well, and the greatest number that could not.
    assert x.reduce("max") == ReductionResult(max(values), x.argmax(), 1000, 3, on_each_processor.name)


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


def test_a_bound_must_be_an_integer_that_is_not_negative() -> None:
    residues = rns.encode([1], MODULI)
    with pytest.raises(ValueError, match="bound must not be negative, got -1"):
        rd.from_residues(residues, MODULI, bound=-1)
    with pytest.raises(TypeError, match="bound must be an integer"):
        rd.from_residues(residues, MODULI, bound=1.5)


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


def test_random_covers_the_greatest_modulus() -> None:
    moduli = rd.ModuliSet([2**32, 3])
    residues = rd.random(moduli, 4096, seed=1).residues.compute()
    assert residues[0].max() > 2**31
    assert set(residues[1].tolist()) == {0, 1, 2}


@pytest.mark.parametrize(("options", "message"), [({"seed": -1}, "seed"), ({"chunks": 0}, "at least 1")])
def test_random_refuses(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        rd.random(MODULI, 1000, **options)


# ---- a Dask collection ------------------------------------------------------------------------------------


@pytest.mark.usefixtures("no_compute")
def test_everything_is_lazy(values: list[int]) -> None:
    x = rd.from_ints(values, MODULI, chunks=128)
    for lazy in (
        x,
        x[3:],
        x[5],
        x.max(),
        x.argmin(),
        x.sum(),
        x.reduce("min"),
        x.rechunk(256),
        x.interval().low,
    ):
        assert is_dask_collection(lazy)
    assert isinstance(x.max(), da.Array)
    assert x.max().shape == ()
    assert x.max().dtype == object


def test_collection_methods(values: list[int], tmp_path: Path) -> None:
    x = rd.from_ints(values, MODULI, chunks=128)
    computed = x.compute()
    assert isinstance(computed, rd.RNSArray)
    assert isinstance(computed.residues, np.ndarray)
    assert computed.bound == x.bound
    persisted = x.persist()
    assert is_dask_collection(persisted)
    assert persisted.chunks == x.chunks == ((128,) * 7 + (104,),)
    assert dask.compute(x, x.max())[0].to_ints().tolist() == values
    assert dask.optimize(x)[0].to_ints().tolist() == values
    assert pickle.loads(pickle.dumps(x)).sum().compute() == sum(values)
    assert computed.compute() is computed


def test_results_are_ints(values: list[int]) -> None:
    x = rd.from_ints(values, MODULI, chunks=128)
    assert isinstance(x.max().compute(), int)
    assert int(x.max()) == max(values)
    assert int(x.max().persist()) == max(values)
    assert (x.max() - x.min()).compute() == max(values) - min(values)
    assert x[17].compute() == values[17]
    assert int(x[-1]) == values[-1]


@pytest.mark.parametrize("chunks", [128, 256, 512, 1000])
@pytest.mark.parametrize("split_every", [None, 2, 3, 100])
def test_independent_of_chunks_and_tree(values: list[int], chunks: int, split_every: int | None) -> None:
    x = rd.from_ints(values, MODULI, chunks=chunks)
    results = dask.compute(
        *(getattr(x, op)(split_every=split_every) for op in ("max", "min", "sum", "argmax", "argmin"))
    )
    top, bottom = max(values), min(values)
    assert results == (top, bottom, sum(values), values.index(top), values.index(bottom))


@pytest.mark.parametrize("scheduler", ["synchronous", "threads", "processes"])
def test_independent_of_scheduler(values: list[int], scheduler: str) -> None:
    x = rd.from_ints(values, MODULI, chunks=128)
    assert x.sum().compute(scheduler=scheduler, num_workers=2) == sum(values)


def test_values_that_differ_by_one_across_a_chunk_boundary() -> None:
    middle = MODULI.product // 2
    values = [middle] * 512
    for place in (127, 128, 255, 256):
        for difference, operation in ((1, "max"), (-1, "min")):
            changed = values.copy()
            changed[place] += difference
            x = rd.from_ints(changed, MODULI, chunks=128)
            result = x.reduce(operation).compute()
            assert (result.value, result.index) == (middle + difference, place)
    tie = rd.from_ints(values, MODULI, chunks=128).reduce("max").compute()
    assert tie == ReductionResult(middle, 0, 512, 512, "cpu")


def test_many_dimensions_and_uneven_chunks(values: list[int]) -> None:
    cube = np.array(values, dtype=object).reshape(10, 4, 25)
    x = rd.from_ints(cube, MODULI, chunks=None)
    lazy = da.from_array(x.residues, chunks=(3, (3, 3, 4), (1, 3), (9, 9, 7)))
    y = rd.from_residues(lazy, MODULI)
    assert y.chunks == ((3, 3, 4), (1, 3), (9, 9, 7))
    assert y.argmax().compute() == values.index(max(values))
    assert y.argmin().compute() == values.index(min(values))
    assert (y.to_ints() == cube).all()
    assert (y[2:5, 1, ::3].to_ints() == cube[2:5, 1, ::3]).all()
    assert y[1, 2, 3].compute() == cube[1, 2, 3]
    assert y[..., 0].shape == (10, 4)


def test_unknown_chunk_sizes_are_no_hindrance(values: list[int]) -> None:
    x = rd.from_ints(values, MODULI, chunks=128)
    mask = da.from_array(np.arange(1000) % 2 == 0, chunks=128)
    part = rd.RNSArray(x.residues[:, mask], rd.RNS(MODULI))
    assert dask.compute(part.max(), part.argmin()) == (
        max(values[::2]),
        values[::2].index(min(values[::2])),
    )
    assert np.isnan(part.shape[0])


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
        with pytest.raises(ValueError, match="max, min, sum, bound, got 'mean'"):
            x.reduce("mean")
    with pytest.raises(ValueError, match="auto, cpu, cuda, got 'tpu'"):
        x.reduce("max", backend="tpu")


def test_tokens_follow_content(values: list[int]) -> None:
    x = rd.from_ints(values, MODULI, chunks=128)
    tokens = {
        tokenize(y)
        for y in (
            x,
            rd.RNSArray(x.residues, rd.RNS(MODULI, True, x.bound)),
            rd.RNSArray(x.residues, rd.RNS(MODULI)),
            rd.RNSArray(x.residues, rd.RNS(rd.ModuliSet(reversed(list(MODULI))), bound=x.bound)),
            rd.from_ints(values[::-1], MODULI, chunks=128),
        )
    }
    assert len(tokens) == 5
    assert tokenize(x) == tokenize(rd.from_ints(values, MODULI, chunks=128))
    assert x.max().name == x.max().name
    assert x.max().name != x.min().name
    assert rd.RNSArray(x.residues, rd.RNS(MODULI)).max().name != x.max().name


def test_numbers_longer_than_python_prints(tmp_path: Path) -> None:
    moduli = MODULI_SETS["moduli512"]
    values = [moduli.product - 1, moduli.product - 2]
    x = rd.from_ints(values, moduli, chunks=128)
    assert dask.compute(x.max(), x.sum(), x.argmin()) == (values[0], sum(values), 1)
    assert tokenize(x) == tokenize(rd.from_ints(values, moduli, chunks=128))
    assert "512 moduli" in repr(x)
    assert "512 moduli" in x._repr_html_()
    x.to_zarr(tmp_path / "x.zarr")
    assert rd.open_zarr(tmp_path / "x.zarr").min().compute() == values[1]
    assert x.interval().low.compute() is not None


@given(st.data())
def test_any_set_values_and_chunks(data: st.DataObject) -> None:
    moduli = data.draw(moduli_sets(max_size=5))
    signed = data.draw(st.booleans())
    values = data.draw(arrays_of_values(moduli, signed, min_size=1, max_size=30))
    cuts = data.draw(st.sets(st.integers(1, len(values)), max_size=4)) - {len(values)}
    edges = [0, *sorted(cuts), len(values)]
    lengths = tuple(b - a for a, b in pairwise(edges))
    residues = da.from_array(rns.encode(values, moduli, signed), chunks=(len(moduli), lengths))
    x = rd.from_residues(residues, moduli, signed)
    with dask.config.set(scheduler="synchronous"):
        results = dask.compute(x.max(), x.min(), x.sum(), x.argmax(), x.argmin())
    top, bottom = max(values), min(values)
    assert results == (top, bottom, sum(values), values.index(top), values.index(bottom))


# ---- conversion and representation -------------------------------------------------------------------------


def test_numpy_conversion_never_loses_a_bit(values: list[int]) -> None:
    x = rd.from_ints(values, MODULI, chunks=None)
    assert np.asarray(x).dtype == object
    assert np.asarray(x).tolist() == values
    with pytest.raises(TypeError, match="dtype object only, got float64"):
        np.asarray(x, dtype=np.float64)
    assert list(x) == values
    assert [int(v) for v in rd.from_ints(values[:3], MODULI)] == values[:3]
    assert len(x) == 1000


def test_repr(values: list[int]) -> None:
    x = rd.from_ints(values, MODULI, chunks=128)
    assert repr(x).splitlines()[0] == (
        f"RNSArray<dask: shape=(1000,), {MODULI!r}, unsigned, bound of {MODULI.bits} bits, chunksize=(128,)>"
    )
    assert repr(x.compute()).startswith("RNSArray<numpy: shape=(1000,)")
    html = x._repr_html_()
    assert "(1000,)" in html
    assert "8 moduli" in html
    assert "<svg" in html or "Array" in html


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


@BOTH_RANGES
def test_round_trip_through_a_store(tmp_path: Path, signed: bool) -> None:
    values = edge_values(MODULI, signed)
    x = rd.from_ints(values, MODULI, signed, chunks=256)
    x.to_zarr(tmp_path / "x.zarr")
    y = rd.open_zarr(tmp_path / "x.zarr")
    assert (y.moduli, y.signed, y.bound, y.chunks) == (x.moduli, x.signed, x.bound, x.chunks)
    assert y.to_ints().tolist() == values
    assert y.sum().compute() == sum(values)


def test_uneven_chunks_are_stored_evenly(tmp_path: Path, values: list[int]) -> None:
    residues = da.from_array(rns.encode(values, MODULI), chunks=(8, (100, 350, 550)))
    rd.from_residues(residues, MODULI).to_zarr(tmp_path / "x.zarr")
    assert rd.open_zarr(tmp_path / "x.zarr").to_ints().tolist() == values


def test_eager_and_many_dimensional_arrays_are_stored(on_each_processor: Processor, tmp_path: Path) -> None:
    residues = on_each_processor.xp.asarray(rns.encode(list(range(24)), MODULI)).reshape(8, 2, 3, 4)
    rd.from_residues(residues, MODULI, bound=23).to_zarr(tmp_path / "x.zarr")
    y = rd.open_zarr(tmp_path / "x.zarr")
    assert (y.to_ints() == np.arange(24).reshape(2, 3, 4)).all()


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


def test_reading_and_reducing_are_one_task(tmp_path: Path, values: list[int]) -> None:
    rd.from_ints(values, MODULI, chunks=128).to_zarr(tmp_path / "x.zarr")
    (optimized,) = dask.optimize(rd.open_zarr(tmp_path / "x.zarr").reduce("max"))
    assert len(optimized.__dask_graph__()) == 8 + 1  # and one that combines their results


def test_a_flipped_byte_never_gives_an_answer(tmp_path: Path, values: list[int]) -> None:
    path = tmp_path / "x.zarr"
    rd.from_ints(values, MODULI, chunks=128).to_zarr(path)
    chunk = path / "c" / "0" / "5"
    data = bytearray(chunk.read_bytes())
    data[1234] ^= 1
    chunk.write_bytes(data)
    x = rd.open_zarr(path)
    for operation in ("max", "min", "sum"):
        with pytest.raises(CorruptChunkError, match="c/0/5"):
            getattr(x, operation)().compute()
    assert x[:640].sum().compute() == sum(values[:640])


def test_an_array_cannot_overwrite_its_own_store(tmp_path: Path, values: list[int]) -> None:
    path = tmp_path / "x.zarr"
    rd.from_ints(values, MODULI, chunks=128).to_zarr(path)
    with pytest.raises(StoreError, match="cannot overwrite the store that it is read from"):
        rd.open_zarr(path)[128:].to_zarr(path, overwrite=True)
    assert rd.open_zarr(path).sum().compute() == sum(values)
    with pytest.raises(StoreError):
        rd.random(MODULI, 10).to_zarr(path)
    rd.random(MODULI, 10).to_zarr(path, overwrite=True)
    assert rd.open_zarr(path).shape == (10,)


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
