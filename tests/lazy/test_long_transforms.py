"""Transforms along an axis in several chunks, and negacyclic ones, against the definition in Python ints."""

from functools import cache
from itertools import combinations
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
from conftest import Processor
from dask.callbacks import Callback
from distributed import Client, LocalCluster
from strategies import slow

import rnsdask as rd
from rnsdask.core.primes import primes_below
from rnsdask.lazy.ntt import chunk_length

pytestmark = pytest.mark.usefixtures("in_steps")

# The greatest and the least with a root of order 128, and one between.
FIELDS = rd.PrimeFields([next(primes_below(2**32, 128)), 13631489, 257])


def definition(values: list[int], root: int, p: int, negacyclic: bool) -> list[int]:
    """X_j for `root` of order N, or of order 2N, by Python's integers."""
    if not negacyclic:
        return [sum(x * pow(root, i * j, p) for i, x in enumerate(values)) % p for j in range(len(values))]
    return [
        sum(x * pow(root, i * (2 * j + 1), p) for i, x in enumerate(values)) % p for j in range(len(values))
    ]


@cache
def example(length: int, negacyclic: bool) -> tuple[rd.FieldArray, np.ndarray]:
    """An array of two lines, and the words of their transforms."""
    rng = np.random.default_rng([length, negacyclic])
    words = np.stack([rng.integers(0, p, (2, length), dtype=np.uint32) for p in FIELDS.primes])
    words[:, 0] = [[p - 1] for p in FIELDS.primes]
    roots = FIELDS.roots(2 * length if negacyclic else length)
    found = [
        [definition(line, root, p, negacyclic) for line in row]
        for row, root, p in zip(words.tolist(), roots, FIELDS.primes, strict=True)
    ]
    return rd.FieldArray(words, FIELDS), np.array(found, dtype=np.uint32)


def compositions(length: int) -> list[tuple[int, ...]]:
    """All ways to cut an axis into chunks."""
    cuts = [cut for count in range(length) for cut in combinations(range(1, length), count)]
    return [tuple(np.diff([0, *cut, length]).tolist()) for cut in cuts]


def check(length: int, chunks: Any, negacyclic: bool) -> None:
    x, expected = example(length, negacyclic)
    lazy = x.rechunk((1, chunks))
    found = rd.ntt(lazy, negacyclic=negacyclic)
    back = rd.intt(rd.FieldArray(expected, FIELDS).rechunk((2, chunks)), 1, negacyclic)
    assert found.chunks == lazy.chunks
    with dask.config.set(scheduler="sync"):
        np.testing.assert_array_equal(np.asarray(found.words), expected, f"chunks {chunks}")
        np.testing.assert_array_equal(np.asarray(back.words), x.words, f"chunks {chunks}")


@pytest.mark.parametrize("negacyclic", [False, True])
@pytest.mark.parametrize("length", [1, 2, 4, 8, 16, 32, 64])
def test_of_arrays_in_memory(length: int, negacyclic: bool) -> None:
    x, expected = example(length, negacyclic)
    found = rd.ntt(x, negacyclic=negacyclic)
    np.testing.assert_array_equal(found.words, expected)
    np.testing.assert_array_equal(rd.intt(found, negacyclic=negacyclic).words, x.words)
    columns = rd.FieldArray(np.swapaxes(x.words, 1, 2), FIELDS)
    turned = rd.ntt(columns, 0, negacyclic=negacyclic)
    np.testing.assert_array_equal(np.swapaxes(turned.words, 1, 2), expected)


@pytest.mark.parametrize("negacyclic", [False, True])
@pytest.mark.parametrize("length", [1, 2, 4, *slow(8)])
def test_ways_to_cut_short_axes(length: int, negacyclic: bool) -> None:
    """All, but for the longest a third of them."""
    for chunks in compositions(length)[:: 3 if length == 8 else 1]:
        check(length, chunks, negacyclic)


@pytest.mark.parametrize("negacyclic", [False, True])
@pytest.mark.parametrize("length", [32, *slow(16, 64)])
def test_chunks_of_many_lengths(length: int, negacyclic: bool, rng: np.random.Generator) -> None:
    for chunk in range(1, length, 1 if length < 32 else 5):
        check(length, chunk, negacyclic)
    for _ in range(5):
        cuts = np.sort(rng.choice(np.arange(1, length), size=int(rng.integers(1, 9)), replace=False))
        check(length, tuple(np.diff([0, *cuts, length]).tolist()), negacyclic)


def test_lengths_of_chunks() -> None:
    lengths = {(64,): 64, (32, 32): 32, (63, 1): 32, (1,) * 64: 8, (8,) * 8: 8, (7,) * 9 + (1,): 8}
    lengths |= {(1,): 1, (1, 1): 2, (1,) * 4: 2, (1,) * 8: 4, (2, 0, 2): 2}
    assert {chunks: chunk_length(sum(chunks), max(chunks)) for chunks in lengths} == lengths


@pytest.mark.parametrize("negacyclic", [False, True])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_axes_in_chunks_among_others(axis: int, negacyclic: bool, rng: np.random.Generator) -> None:
    fields = rd.PrimeFields(rd.ModuliSet.ntt_primes(100, 2**13))
    shape = [5, 3, 4]
    shape[axis] = 2**12
    chunks: list[Any] = [2, 2, 3]
    chunks[axis] = (1000, 1096, 2000)
    x = rd.FieldArray(np.stack([rng.integers(0, p, shape, dtype=np.uint32) for p in fields.primes]), fields)
    expected = rd.ntt(x, axis, negacyclic)
    found = rd.ntt(x.rechunk(tuple(chunks)), axis, negacyclic)
    np.testing.assert_array_equal(np.asarray(found.words), expected.words)
    back = rd.intt(found, axis - 3, negacyclic)
    np.testing.assert_array_equal(np.asarray(back.words), x.words)


@pytest.mark.parametrize("negacyclic", [False, True])
def test_many_primes(negacyclic: bool, on_each_processor: Processor, rng: np.random.Generator) -> None:
    """So many that a table of factors is shorter than a line: in memory and in chunks, on each processor."""
    fields, length = rd.PrimeFields(rd.ModuliSet.ntt_primes(12_000, 2**11)), 1024
    words = np.stack([rng.integers(0, p, (3, length), dtype=np.uint32) for p in fields.primes])
    rows = []
    for row, root, p in zip(words, fields.roots(2 * length), fields.primes, strict=True):
        powers = np.array([pow(root, i, p) if negacyclic else 1 for i in range(length)], dtype=np.uint64)
        rows.append((row * powers % np.uint64(p)).astype(np.uint32))
    xp, result = on_each_processor.xp, on_each_processor.to_numpy
    expected = result(rd.ntt(rd.FieldArray(xp.asarray(np.stack(rows)), fields)).words)
    x = rd.FieldArray(xp.asarray(words), fields)
    for given in (x, x.rechunk((2, 128))):
        found = rd.ntt(given, negacyclic=negacyclic).compute()
        assert isinstance(found.words, xp.ndarray)
        np.testing.assert_array_equal(result(found.words), expected)
        back = rd.intt(rd.ntt(given, negacyclic=negacyclic), negacyclic=negacyclic).compute()
        np.testing.assert_array_equal(result(back.words), words)


@pytest.mark.parametrize("negacyclic", [False, True])
def test_long_axes(negacyclic: bool, rng: np.random.Generator) -> None:
    """Factors of more than a table: of 2**20 elements in 4 and 32 chunks, and in one."""
    fields = rd.PrimeFields(rd.ModuliSet.ntt_primes(60, 2**21))
    length = 2**20
    x = rd.FieldArray(np.stack([rng.integers(0, p, length, dtype=np.uint32) for p in fields.primes]), fields)
    expected = rd.ntt(x, negacyclic=negacyclic)
    np.testing.assert_array_equal(rd.intt(expected, negacyclic=negacyclic).words, x.words)
    order = 2 * length if negacyclic else length
    first = rd.FieldArray(np.eye(1, length, 1, dtype=np.uint32).repeat(fields.rows, 0), fields)
    powers = rd.ntt(first, negacyclic=negacyclic).words
    for j in [0, 1, 2, length - 1, *rng.integers(length, size=20).tolist()]:
        exponent = 2 * j + 1 if negacyclic else j
        roots = zip(fields.roots(order), fields.primes, strict=True)
        assert powers[:, j].tolist() == [pow(root, exponent, p) for root, p in roots]
    for chunk in (2**18, 2**15):
        found = rd.ntt(x.rechunk(chunk), negacyclic=negacyclic)
        np.testing.assert_array_equal(np.asarray(found.words), expected.words)
        back = rd.intt(expected.rechunk(chunk), negacyclic=negacyclic)
        np.testing.assert_array_equal(np.asarray(back.words), x.words)


@pytest.mark.parametrize("chunks", [None, 64])
def test_negacyclic_products(chunks: int | None, rng: np.random.Generator) -> None:
    """Products of polynomials modulo x**N + 1."""
    flint = pytest.importorskip("flint")
    length = 256
    fields = rd.PrimeFields(rd.ModuliSet.ntt_primes(60, 2 * length))
    a, b = (
        rd.FieldArray(np.stack([rng.integers(0, p, length, dtype=np.uint32) for p in fields.primes]), fields)
        for _ in range(2)
    )
    x, y = (one if chunks is None else one.rechunk(chunks) for one in (a, b))
    found = np.asarray(rd.intt(rd.ntt(x, -1, True) * rd.ntt(y, -1, True), -1, True).words).tolist()
    for row, f, g, p in zip(found, a.words.tolist(), b.words.tolist(), fields.primes, strict=True):
        modulus = flint.nmod_poly([1] + [0] * (length - 1) + [1], p)
        product = (flint.nmod_poly(f, p) * flint.nmod_poly(g, p) % modulus).coeffs()
        assert row == [int(c) for c in product] + [0] * (length - len(product))


def test_on_a_cluster(rng: np.random.Generator) -> None:
    """Workers of a cluster, where Dask may pass the parts through their disks."""
    x, expected = example(64, False)
    with LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None) as cluster:
        for method in ("tasks", "p2p"):
            with Client(cluster), dask.config.set({"array.rechunk.method": method}):
                found = rd.ntt(x.rechunk((1, 16)))
                np.testing.assert_array_equal(np.asarray(found.words), expected, method)


class MostAlive(Callback):  # type: ignore[misc]
    """The most bytes of arrays that wait for tasks, at a time."""

    def __init__(self) -> None:
        super().__init__(posttask=self.count)
        self.most = 0

    def count(self, _key: Any, _value: Any, _dsk: Any, state: Any, _worker: Any) -> None:
        arrays = [base(value) for value in state["cache"].values() if isinstance(value, np.ndarray)]
        self.most = max(self.most, sum({id(array): array.nbytes for array in arrays}.values()))


def base(value: Any) -> Any:
    return value if value.base is None else base(value.base)


def test_threads_hold_the_array_but_no_more_than_three_times() -> None:
    words = da.zeros((1, 2**20), chunks=(1, 2**14), dtype=np.uint32)
    x = rd.FieldArray(words, rd.PrimeFields([998244353]))
    with MostAlive() as alive, dask.config.set(scheduler="sync"):
        rd.ntt(x).words.map_blocks(lambda block: block[:, :1], chunks=(1, 1)).compute()
    assert alive.most <= 3 * words.nbytes


def test_what_has_no_negacyclic_transform() -> None:
    fields = rd.PrimeFields([97, 193])
    x = rd.from_ints(list(range(32)), fields, chunks=8)
    rd.ntt(x)
    with pytest.raises(ValueError, match="field modulo 97 has no primitive root of unity of order 64"):
        rd.ntt(x, negacyclic=True)
    with pytest.raises(TypeError, match="negacyclic must be True or False, got int"):
        rd.intt(x, 0, 1)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="intt takes an axis of a power of two elements, got 31 on axis 0"):
        rd.intt(x[1:])
    selected = x[x != -1]  # of a length that Dask does not know
    assert (rd.intt(rd.ntt(selected)) == x).all()
    empty = rd.from_ints(np.empty((0, 32), dtype=object), fields, chunks=(1, 8))
    assert rd.ntt(empty).compute().shape == (0, 32)
