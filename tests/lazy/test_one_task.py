"""Arrays of CuPy's chunks that one task takes whole, where one GPU has room for them."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import dask.array as da
import numpy as np
import pytest

import rnsdask as rd
from rnsdask.core.errors import SchedulerLostError
from rnsdask.core.operations import Footprint
from rnsdask.lazy import block_elimination, one_task

FIELDS = rd.PrimeFields([2013265921, 469762049])
FERMAT = rd.FermatField(2**28 + 2**22, 16)
MODULI = rd.ModuliSet([251, 241, 239])

Room = Callable[[int | None], None]


@pytest.fixture
def room(monkeypatch: pytest.MonkeyPatch) -> Room:
    """Return a function that has chunks of NumPy's count as CuPy's, on a GPU of so many free bytes."""
    monkeypatch.setattr(one_task, "backend_name", lambda _: "cuda")

    def give(free: int | None) -> None:
        monkeypatch.setattr(one_task, "free_device_bytes", lambda: free)

    give(2**40)
    return give


def elements(shape: tuple[int, ...], fields: Any, seed: int = 1) -> Any:
    values = np.random.default_rng(seed).integers(0, 2**31, shape).astype(object)
    return rd.from_ints(values**3, fields, chunks=None)


def in_chunks(x: Any, chunks: Any) -> Any:
    return type(x)(da.from_array(x.words, chunks=(-1, *chunks)), x.system)


def has_one_task(words: da.Array) -> bool:
    return any("-whole" in str(key) for key in dict(words.__dask_graph__()))


def count_tasks(words: da.Array) -> int:
    return len(dict(words.__dask_graph__()))


@pytest.mark.parametrize("negacyclic", [False, True], ids=["cyclic", "negacyclic"])
@pytest.mark.parametrize("name", ["ntt", "intt"])
@pytest.mark.parametrize(
    ("shape", "chunks", "axis"),
    [
        ((64,), ((8,) * 8,), 0),
        ((64,), ((1, 62, 1),), 0),
        ((64,), ((0, 40, 24),), 0),
        ((3, 16), (2, 4), 1),
        ((16, 3, 2), (4, 1, 2), 0),
    ],
)
@pytest.mark.parametrize("fields", [FIELDS, FERMAT], ids=["primes", "fermat"])
def test_transforms(
    room: Room, fields: Any, shape: Any, chunks: Any, axis: int, name: str, negacyclic: bool
) -> None:
    x = elements(shape, fields)
    transform = getattr(rd, name)
    lazy = in_chunks(x, chunks)
    found = transform(lazy, axis, negacyclic)
    assert has_one_task(found.words)
    assert found.words.chunks == lazy.words.chunks
    expected = transform(x, axis, negacyclic)
    assert (found.words.compute() == expected.words).all()
    room(None)
    assert not has_one_task(transform(lazy, axis, negacyclic).words)


def test_lines_of_few_bytes_are_joined_on_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    x = elements((3, 64), FIELDS)
    lazy = in_chunks(x, (2, 4))
    expected = rd.ntt(x).words
    nbytes = 2 * 2 * 64 * 4  # two primes, two lines in a chunk
    for most, is_joined in ((nbytes, True), (nbytes - 1, False)):
        monkeypatch.setattr("rnsdask.lazy.ntt.JOINED_BYTES", most)
        found = rd.ntt(lazy)
        assert found.words.chunks == lazy.words.chunks
        assert is_joined != any("field-ntt-columns" in str(key) for key in dict(found.words.__dask_graph__()))
        assert (found.words.compute() == expected).all()


def test_a_transform_makes_a_task_a_chunk_and_one_more(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rnsdask.lazy.ntt.JOINED_BYTES", 0)
    lazy = in_chunks(elements((2**12,), FIELDS), (2**8,))
    whole = count_tasks(rd.ntt(lazy).words) - count_tasks(lazy.words)
    assert whole == lazy.words.numblocks[1] + 1
    room(0)
    assert count_tasks(rd.ntt(lazy).words) - count_tasks(lazy.words) > 10 * whole


def test_the_least_memory_that_suffices(room: Room) -> None:
    words = da.zeros((2, 100), dtype=np.uint32, chunks=(-1, 10))
    footprint = Footprint(3, 5, workspace=7)
    needed = (1 + 3) * (2 * 100 * 4) + 5 * 4 * 100 + 7
    room(2 * needed)
    assert one_task.fits_one_task(footprint, 1, words)
    room(2 * needed - 1)
    assert not one_task.fits_one_task(footprint, 1, words)
    room(None)
    assert not one_task.fits_one_task(footprint, 1, words)


def test_only_lazy_arrays_of_several_known_chunks(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    words = da.zeros((2, 100), dtype=np.uint32, chunks=(-1, 10))
    assert one_task.fits_one_task(Footprint(1, 0), 1, words)
    assert not one_task.fits_one_task(Footprint(1, 0), 1, words.compute())
    assert not one_task.fits_one_task(Footprint(1, 0), 1, words.rechunk(-1))
    assert not one_task.fits_one_task(Footprint(1, 1), 1, words[:, words[0] == 0])
    monkeypatch.undo()  # chunks of NumPy's
    assert not one_task.fits_one_task(Footprint(1, 0), 1, words)


@pytest.mark.parametrize(("workers", "exchanges", "fits"), [(1, 1, True), (2, 1, False), (3, 3, True)])
def test_workers_share_the_work_where_exchanges_cost_less(
    room: Room, monkeypatch: pytest.MonkeyPatch, workers: int, exchanges: int, fits: bool
) -> None:
    words = da.zeros((2, 100), dtype=np.uint32, chunks=(-1, 10))
    client = SimpleNamespace(asynchronous=False)
    monkeypatch.setattr(one_task, "active_client", lambda: client)
    monkeypatch.setattr(one_task, "workers_of", lambda _: dict.fromkeys(range(workers)))
    assert one_task.fits_one_task(Footprint(1, 0), exchanges, words) == fits
    client.asynchronous = True
    assert not one_task.fits_one_task(Footprint(1, 0), exchanges, words)


def test_one_of_several_workers_eliminates_what_is_quick(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(block_elimination, "is_small", lambda *_, **__: False)
    monkeypatch.setattr(one_task, "active_client", lambda: SimpleNamespace(asynchronous=False))
    monkeypatch.setattr(one_task, "workers_of", lambda _: dict.fromkeys(range(2)))
    lazy = in_chunks(elements((512, 512), FIELDS), (512, 64))
    few = count_tasks(rd.linalg.det(lazy))
    monkeypatch.setattr(block_elimination, "QUICK_BYTES", lazy.words.nbytes - 1)
    assert count_tasks(rd.linalg.det(lazy)) > few


def test_a_lost_scheduler_is_no_error_of_the_plan(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    def ask(_: Any) -> dict[str, Any]:
        raise SchedulerLostError("gone")

    monkeypatch.setattr(one_task, "active_client", lambda: SimpleNamespace(asynchronous=False))
    monkeypatch.setattr(one_task, "workers_of", ask)
    words = da.zeros((2, 100), dtype=np.uint32, chunks=(-1, 10))
    assert not one_task.fits_one_task(Footprint(1, 0), 3, words)


@pytest.mark.parametrize("mode", ["full", "same", "valid", "cyclic", "negacyclic"])
def test_convolutions_in_a_fermat_field(room: Room, monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
    x = elements((64,), FERMAT)
    y = elements((64 if "cyclic" in mode else 50,), FERMAT, 2)
    lazy = [in_chunks(v, (16,)) for v in (x, y)]
    found = rd.convolve(*lazy, mode=mode)
    assert found.words.numblocks == (1, -(-found.shape[0] // 16))
    assert not any("field-ntt" in str(key) for key in dict(found.words.__dask_graph__()))
    assert (found.words.compute() == rd.convolve(x, y, mode=mode).words).all()
    room(0)
    monkeypatch.setattr("rnsdask.lazy.ntt.JOINED_BYTES", 0)
    cut = rd.convolve(*lazy, mode=mode)
    assert any("field-ntt" in str(key) for key in dict(cut.words.__dask_graph__()))
    assert (cut.words.compute() == found.words.compute()).all()


@pytest.mark.parametrize(
    ("first", "second", "cut"),
    [
        ((6, 8), (8, 4), ((2, 8), (2, 4))),
        ((6, 8), (8, 4), ((6, 3), (8, 1))),
        ((1, 5), (5, 40), ((1, 2), (5, 13))),
        ((40, 1), (1, 40), ((7, 1), (1, 9))),
        ((8,), (8, 4), ((3,), (8, 2))),
        ((3, 2, 8), (8, 4), ((1, 2, 4), (8, 4))),
        ((3, 2, 8), (1, 8, 4), ((2, 2, 4), (1, 3, 4))),
        ((3, 2, 8), (3, 8, 4), ((2, 2, 4), (1, 3, 4))),
    ],
)
@pytest.mark.parametrize("overflow", [None, "wrap", "flag"])
def test_products(room: Room, first: Any, second: Any, cut: Any, overflow: Any) -> None:
    rng = np.random.default_rng(5)
    x, y = (rd.from_ints(rng.integers(0, 50, shape), MODULI, chunks=None) for shape in (first, second))
    lazy = [in_chunks(v, chunks) for v, chunks in zip((x, y), cut, strict=True)]
    found, expected = (rd.matmul(*pair, overflow=overflow) for pair in (lazy, (x, y)))
    pairs = zip(found, expected, strict=True) if overflow == "flag" else [(found, expected)]
    for one, right in pairs:
        words = [getattr(array, "words", array) for array in (one, right)]
        assert has_one_task(words[0])
        assert (words[0].compute() == words[1]).all()
    room(None)
    assert not has_one_task(rd.matmul(*lazy, overflow="wrap").words)


def test_an_overflow_in_a_product_names_the_number(room: Room) -> None:
    x = in_chunks(rd.from_ints([[1, 0], [0, 1], [2**12, 0], [2**13, 1]], MODULI, chunks=None), (1, 1))
    y = in_chunks(rd.from_ints([[3, 2**12], [5, 7]], MODULI, chunks=None), (1, 2))
    product = x @ y
    assert has_one_task(product.words)
    with pytest.raises(rd.RNSOverflowError, match="at flat index 5:"):
        product.compute()


VALUES = {
    "random": np.random.default_rng(3).integers(0, 2**20, 60).tolist(),
    "few different": [5, 3, 5, 5, 0, 3] * 10,
    "all equal": [7] * 60,
    "descending": list(range(60, 0, -1)),
    "next to one another at the end": [MODULI.product - 1 - k % 3 for k in range(60)],
}


@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES)
@pytest.mark.parametrize("chunks", [7, ((0, 1, 59),), ((30, 0, 30),)])
def test_orders(room: Room, values: list[int], chunks: Any) -> None:
    x = rd.from_ints(values, MODULI, chunks=None)
    lazy = in_chunks(x, (chunks,) if isinstance(chunks, int) else chunks)
    found = rd.sort(lazy)
    assert has_one_task(found.words)
    assert found.words.chunks == lazy.words.chunks
    assert found.to_ints().tolist() == sorted(values)
    indices = rd.argsort(lazy)
    assert has_one_task(indices)
    assert indices.compute().tolist() == sorted(range(60), key=values.__getitem__)
    assert rd.median(lazy).compute() == rd.median(x)
    parts = rd.unique(lazy, return_index=True, return_inverse=True, return_counts=True)
    expected = np.unique(values, return_index=True, return_inverse=True, return_counts=True)
    assert parts[0].to_ints().tolist() == expected[0].tolist()
    for part, right in zip(parts[1:], expected[1:], strict=True):
        assert part.compute().tolist() == right.tolist()
    assert parts[0].words.numblocks == (1, 1)
    room(0)
    assert not has_one_task(rd.sort(lazy).words)


@pytest.mark.gpu
@pytest.mark.parametrize("negacyclic", [False, True], ids=["cyclic", "negacyclic"])
def test_gpus_take_few_launches_for_a_transform_in_one_task_or_in_steps(
    monkeypatch: pytest.MonkeyPatch, negacyclic: bool
) -> None:
    import cupy

    from rnsdask.backend.cuda import launching

    launches: list[str] = []
    launch = launching.launch

    def counted(module: str, *arguments: Any, **options: Any) -> Any:
        launches.append(module)
        return launch(module, *arguments, **options)

    monkeypatch.setattr(launching, "launch", counted)
    x = elements((2**20,), FIELDS)
    words = da.from_array(cupy.asarray(x.words), chunks=(-1, 2**16), asarray=False)
    lazy = rd.FieldArray(words, FIELDS)
    found = rd.ntt(lazy, negacyclic=negacyclic)
    assert has_one_task(found.words)
    expected = rd.ntt(x, negacyclic=negacyclic).words
    assert (found.words.compute().get() == expected).all()
    assert len(launches) < 20
    launches.clear()
    monkeypatch.setattr(one_task, "free_device_bytes", lambda: 0)
    monkeypatch.setattr("rnsdask.lazy.ntt.JOINED_BYTES", 0)
    cut = rd.ntt(lazy, negacyclic=negacyclic)
    assert not has_one_task(cut.words)
    assert (cut.words.compute().get() == expected).all()
    assert len(launches) < 20 * lazy.words.numblocks[1]


@pytest.mark.gpu
@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES)
def test_gpus_sort_in_one_task(values: list[int]) -> None:
    import cupy

    x = rd.from_ints(values, MODULI, chunks=None)
    lazy = rd.RNSArray(da.from_array(cupy.asarray(x.words), chunks=(-1, 7), asarray=False), x.system)
    found = rd.sort(lazy)
    assert has_one_task(found.words)
    assert found.to_ints().tolist() == sorted(values)
    assert [int(k) for k in rd.argsort(lazy).compute()] == sorted(range(60), key=values.__getitem__)
    counts = rd.unique(lazy, return_counts=True)[1]
    assert counts.compute().tolist() == np.unique(values, return_counts=True)[1].tolist()


@pytest.mark.parametrize("name", ["det", "rank", "rref", "inv"])
def test_a_matrix_is_eliminated_in_one_task(room: Room, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rnsdask.lazy.block_elimination.MOST_JOINED", 0)
    x = elements((6, 6), FIELDS)
    lazy = in_chunks(x, (2, 3))
    found, expected = (getattr(rd.linalg, name)(given) for given in (lazy, x))
    first, second = (
        getattr(part[0] if name == "rref" else part, "words", part) for part in (found, expected)
    )
    assert not any("panel" in str(key) for key in dict(first.__dask_graph__()))
    assert np.asarray(first.compute()).tolist() == np.asarray(second).tolist()
    room(6 * 6 * 2 * 4 * 4)
    tight = getattr(rd.linalg, name)(lazy)
    tight = getattr(tight[0] if name == "rref" else tight, "words", tight)
    assert any("panel" in str(key) for key in dict(tight.__dask_graph__()))
