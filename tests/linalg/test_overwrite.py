"""Matrices over fields that are given up to the result: right results, what is refused, and memory."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask
import flint
import numpy as np
import pytest
from conftest import Processor
from sample_arrays import host

import rnsdask as rd
from rnsdask.core.place import ALONE
from rnsdask.fields import echelon, in_place

PRIMES = [2, 65537, 2**31 - 1, 4294967291]
FIELDS = rd.PrimeFields(PRIMES)
LONG = rd.PrimeFields([3, 2**32 + 15, 2**61 - 1, 2**64 - 59])
# As whole vectors, with a rest, and beyond what kernels keep in a copy.
SHAPES = [(1, 1), (5, 9), (9, 5), (64, 64), (70, 33), (130, 131), (530, 517)]

pytestmark = pytest.mark.usefixtures("in_this_thread")


@pytest.fixture(params=[FIELDS, LONG], ids=["short", "long"])
def fields(request: pytest.FixtureRequest) -> rd.PrimeFields:
    """Fields whose elements have words of 32 or of 64 bits."""
    return request.param


def of_rank(rng: np.random.Generator, rank: int, rows: int, columns: int, p: int) -> np.ndarray:
    """A matrix of at most a rank, in words of 64 bits, whose first columns may be 0."""
    left = flint.nmod_mat(rows, rank, rng.integers(0, p, rows * rank, dtype=np.uint64).tolist(), p)
    right = rng.integers(0, p, (rank, columns), dtype=np.uint64)
    right[:, rng.random(columns) < 0.1] = 0
    product = left * flint.nmod_mat(rank, columns, right.ravel().tolist(), p)
    return np.array(list(map(int, product.entries())), dtype=np.uint64).reshape(rows, columns)


def matrices(residues: np.ndarray, fields: rd.PrimeFields = FIELDS) -> list[flint.nmod_mat]:
    pairs = zip(residues, fields.primes, strict=True)
    return [flint.nmod_mat(*x.shape, x.ravel().tolist(), p) for x, p in pairs]


def rows_of(matrix: flint.nmod_mat) -> list[list[int]]:
    return [list(map(int, row)) for row in matrix.tolist()]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_forms_and_factors(
    on_each_processor: Processor, shape: tuple[int, int], fields: rd.PrimeFields, rng: np.random.Generator
) -> None:
    """Matrices of all ranks, also of several from prime to prime."""
    rows, columns = shape
    least = min(shape)
    for ranks in ([least] * 4, [least // 2] * 4, [0, least, 1, least - 1]):
        residues = np.stack([of_rank(rng, r, *shape, p) for r, p in zip(ranks, fields.primes, strict=True)])
        expected = matrices(residues, fields)

        def array(residues: np.ndarray = residues) -> rd.FieldArray:
            return rd.FieldArray(on_each_processor.xp.asarray(residues.astype(fields.word_dtype)), fields)

        found = [matrix.rank() for matrix in expected]
        assert host(rd.linalg.rank(array(), overwrite=True)).tolist() == found
        form, pivots = rd.linalg.rref(x := array(), overwrite=True)
        assert on_each_processor.xp.shares_memory(form.words, x.words)
        for i, matrix in enumerate(expected):
            reduced, rank = matrix.rref()
            assert host(form.words)[i].tolist() == rows_of(reduced)
            first = [next(j for j, v in enumerate(row) if v) for row in rows_of(reduced)[:rank]]
            assert host(pivots)[i].tolist() == [*first, *[-1] * (least - rank)]
        for ours, theirs in zip(rd.linalg.lu(array(), overwrite=True), rd.linalg.lu(array()), strict=True):
            assert (host(ours.words) == host(theirs.words)).all()
        if rows == columns:
            for i, matrix in enumerate(expected):
                field = rd.PrimeFields(fields.primes[i : i + 1])
                one = rd.FieldArray(array().words[i : i + 1].astype(field.word_dtype), field)
                assert int(rd.linalg.det(one, overwrite=True)) == int(matrix.det())


def regular(rng: np.random.Generator, rows: int, fields: rd.PrimeFields) -> np.ndarray:
    """Regular matrices whose rows have to be exchanged."""
    factors, ones = [], np.eye(rows, dtype=np.uint64)
    for p in fields.primes:
        lower, upper = (rng.integers(0, p, (rows, rows), dtype=np.uint64) for _ in range(2))
        lower, upper = np.tril(lower, -1) + ones, np.triu(upper, 1) + ones
        product = flint.nmod_mat(
            rows, rows, lower[rng.permutation(rows)].ravel().tolist(), p
        ) * flint.nmod_mat(rows, rows, upper.ravel().tolist(), p)
        entries = list(map(int, product.entries()))
        factors.append(np.array(entries, dtype=fields.word_dtype).reshape(rows, rows))
    return np.stack(factors)


@pytest.mark.parametrize("rows", [1, 2, 7, 24, 45])
def test_solutions_and_inverses(
    on_each_processor: Processor,
    rows: int,
    fields: rd.PrimeFields,
    monkeypatch: pytest.MonkeyPatch,
    rng: np.random.Generator,
) -> None:
    """By blocks of seven columns, of one matrix and of stacks."""
    monkeypatch.setattr(in_place, "LEAST_WIDTH", {"cpu": 7, "cuda": 7})
    residues = np.stack([regular(rng, rows, fields) for _ in range(2)], axis=1)
    right = fields.random_words((2, rows, 3), rng)
    x, b = (rd.FieldArray(on_each_processor.xp.asarray(a.copy()), fields) for a in (residues, right))
    solutions = rd.linalg.solve(x.copy(), b, overwrite=True)
    vectors = rd.linalg.solve(x[0].copy(), b[0, :, 0], overwrite=True)
    inverses = rd.linalg.inv(y := x.copy(), overwrite=True)
    assert (host(inverses.words) == host(y.words)).all()
    assert (host(in_place.inverses(x.words, fields.moduli, ALONE)) == host(y.words)).all()
    assert (host(x.words) == residues).all()
    for i, p in enumerate(fields.primes):
        for k in range(2):
            matrix = flint.nmod_mat(rows, rows, residues[i, k].ravel().tolist(), p)
            assert host(inverses.words)[i, k].tolist() == rows_of(matrix.inv())
            expected = rows_of(matrix.solve(flint.nmod_mat(rows, 3, right[i, k].ravel().tolist(), p)))
            assert host(solutions.words)[i, k].tolist() == expected
            if k == 0:
                assert host(vectors.words)[i].tolist() == [row[0] for row in expected]


def test_singular_matrices(on_each_processor: Processor, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first one is named with the first prime, as without overwrite."""
    monkeypatch.setattr(in_place, "LEAST_WIDTH", {"cpu": 2, "cuda": 2})
    fields = rd.PrimeFields([5, 7])
    words = np.tile(np.eye(5, dtype=np.uint32), (2, 3, 1, 1))
    words[1, 1, 3, 3] = words[0, 2, 0, 0] = 0
    x = rd.FieldArray(on_each_processor.xp.asarray(words), fields)
    for function in (rd.linalg.inv, lambda a, **how: rd.linalg.solve(a, a[..., :2].copy(), **how)):
        for overwrite in (False, True):
            with pytest.raises(
                np.linalg.LinAlgError, match=r"^the matrix at index \(1,\) is singular modulo 7$"
            ):
                function(x.copy(), overwrite=overwrite)


@pytest.mark.parametrize("alike", [True, False])
def test_great_forms_in_parts(
    on_each_processor: Processor, alike: bool, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    """Free columns a few at a time, rows a few at a time, matrices one by one."""
    for name, value in {"GREAT_WORDS": 0, "PARTS": 10**9, "LEAST_PART": 40, "BAND_WORDS": 60}.items():
        monkeypatch.setattr(echelon, name, value)
    residues = np.stack([of_rank(rng, 9, 15, 23, p) for p in PRIMES])
    residues[..., 2] = 0
    if not alike:
        residues[1, :, 4], residues[2] = 0, 0
    form, _ = rd.linalg.rref(rd.FieldArray(on_each_processor.xp.asarray(residues.astype(np.uint32)), FIELDS))
    for ours, matrix in zip(host(form.words), matrices(residues), strict=True):
        assert ours.tolist() == rows_of(matrix.rref()[0])


def test_what_is_refused(on_each_processor: Processor) -> None:
    words = on_each_processor.xp.asarray(np.arange(48, dtype=np.uint32).reshape(1, 3, 4, 4) % 7)
    x = rd.FieldArray(words, rd.PrimeFields([7]))
    calls: list[Callable[..., Any]] = [
        rd.linalg.rank,
        rd.linalg.rref,
        rd.linalg.lu,
        rd.linalg.det,
        rd.linalg.inv,
    ]
    calls.append(lambda a, **how: rd.linalg.solve(a, a[..., :1], **how))
    for function in calls:
        with pytest.raises(
            TypeError, match=r"overwrite=True for arrays in memory, got one on Dask.*x\.compute\(\)"
        ):
            function(x.rechunk(-1), overwrite=True)
        with pytest.raises(
            ValueError, match=r"got a view whose words are not contiguous; x\.copy\(\) is one"
        ):
            function(x.swapaxes(-1, -2), overwrite=True)
        with pytest.raises(TypeError, match="overwrite must be a bool, got 1"):
            function(x, overwrite=1)
    for function in calls[:2]:
        with pytest.raises(TypeError, match=r"takes no overwrite, got overwrite=True"):
            function(rd.from_ints([[1, 2], [3, 4]]), overwrite=True)
    with pytest.raises(TypeError, match=r"without unique=False"):
        rd.linalg.solve(x, x, unique=False, overwrite=True)
    with pytest.raises(ValueError, match=r"where each b has its own matrix"):
        rd.linalg.solve(x[0], x, overwrite=True)
    with pytest.raises(TypeError, match=r"without variables=1"):
        rd.linalg.det(x, variables=1, overwrite=True)
    assert (host(x.words) == np.arange(48).reshape(1, 3, 4, 4) % 7).all()


def test_a_read_only_array_is_refused() -> None:
    words = np.ones((1, 2, 2), dtype=np.uint32)
    words.flags.writeable = False
    with pytest.raises(ValueError, match=r"got one of read-only memory; x\.copy\(\) is one"):
        rd.linalg.rank(rd.FieldArray(words, rd.PrimeFields([7])), overwrite=True)


_PEAKS = """
import json, pathlib
import numpy as np
import rnsdask as rd

def bytes_of(name):
    status = pathlib.Path("/proc/self/status").read_text()
    return 1024 * int(status.split(name + ":")[1].split()[0])

N, p = 2944, 2**31 - 1
words = np.random.default_rng(1).integers(0, p, (1, N, N), dtype=np.uint32)
low = words.copy()
low[:, ::8] = 0
fields, found = rd.PrimeFields([p]), {}
calls = {
    **{name: getattr(rd.linalg, name) for name in ("det", "rank", "rref", "lu", "inv")},
    "solve": lambda x, **how: rd.linalg.solve(x, b, **how),
    "low": rd.linalg.rref,
}
b = rd.FieldArray(words[..., 0].copy(), fields)
rd.linalg.inv(rd.FieldArray(words[:, :600, :600].copy(), fields), overwrite=True)  # what a first call takes
for name, call in calls.items():
    for overwrite in (True, False):
        if not overwrite and name not in ("det", "rank", "rref"):
            continue
        x = rd.FieldArray((low if name == "low" else words).copy(), fields)
        pathlib.Path("/proc/self/clear_refs").write_text("5")  # the peak from here on
        before = bytes_of("VmRSS")
        result = call(x, overwrite=overwrite)
        found[f"{name} {overwrite}"] = 1 + (bytes_of("VmHWM") - before) / words.nbytes
rd.FieldArray(words, fields).rechunk((368, -1)).to_zarr("x.zarr")
for _ in range(2):  # a first call takes more
    pathlib.Path("/proc/self/clear_refs").write_text("5")
    before = bytes_of("VmRSS")
    rd.linalg.rank(rd.open_zarr("x.zarr", chunks=-1)).compute()
    found["read"] = (bytes_of("VmHWM") - before) / words.nbytes
print(json.dumps(found))
"""


def test_peaks_on_a_cpu(tmp_path: Path) -> None:
    """Peaks of resident memory, in matrices: a factor is one. What a task reads from a store is its own."""
    command = [sys.executable, "-c", _PEAKS]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    found = json.loads(done.stdout)
    in_place_peaks = {
        "det": 1.15,
        "rank": 1.15,
        "rref": 1.15,
        "solve": 1.25,
        "inv": 1.6,
        "lu": 3.15,
        "low": 1.5,
    }
    most = {f"{name} True": peak for name, peak in in_place_peaks.items()}
    most |= dict.fromkeys(("det False", "rank False", "rref False"), 2.15)
    most["read"] = 1.7  # with some stored chunks
    assert set(found) == set(most)
    assert all(found[name] <= most[name] for name in most), found


def test_chunks_that_others_have_are_not_overwritten(rng: np.random.Generator, tmp_path: Path) -> None:
    """Matrices of arrays in memory, of persisted ones, and of stores that are read for more than the rank."""
    words = rng.integers(0, 7, (1, 2, 600, 600), dtype=np.uint32)
    fields, path = rd.PrimeFields([7]), tmp_path / "x.zarr"
    x = rd.FieldArray(words, fields).rechunk((1, -1, -1))
    x.to_zarr(path)
    read = rd.open_zarr(path)
    for lazy in (x, x.persist(), read, read.persist(), rd.open_zarr(path, chunks=(2, 300, 600))):
        ranks, total, same = dask.compute(rd.linalg.rank(lazy), lazy.sum(), lazy)
        assert ranks.tolist() == [[flint.nmod_mat(600, 600, m.ravel().tolist(), 7).rank() for m in words[0]]]
        assert int(total) == int(words.sum(dtype=np.int64)) % 7
        assert (same.words == words).all()
        assert (lazy.compute().words == words).all()


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["rank", "det", "rref", "inv"])
def test_peaks_on_a_gpu(name: str) -> None:
    """Peak of CuPy's pool, for a matrix of 4.3 GB: workspaces of products take up to 3.4 GB by themselves."""
    import cupy

    rows, p = 32768, 2**31 - 1
    words = cupy.random.randint(0, p, (1, rows, rows), dtype=np.uint32)
    dependent = name in ("rank", "rref")
    if dependent:
        # Only the end goes by ranks: there the first product by halves of the columns takes 3.4 GB.
        words[0, rows - 50], words[0, rows - 3] = words[0, 5], words[0, 1000]
    x = rd.FieldArray(words, rd.PrimeFields([p]))

    class Peak(cupy.cuda.MemoryHook):  # type: ignore[misc]
        name = "peak"
        live = most = words.nbytes

        def malloc_postprocess(self, **allocation: Any) -> None:
            self.live += allocation["mem_size"]
            self.most = max(self.most, self.live)

        def free_postprocess(self, **allocation: Any) -> None:
            self.live -= allocation["mem_size"]

    with Peak() as peak:
        result: Any = getattr(rd.linalg, name)(x, overwrite=True)
    assert peak.most <= 1.6 * words.nbytes, peak.most / words.nbytes
    if name == "rank":
        assert host(result).tolist() == [rows - 2]
    elif name == "rref":
        assert (host(result.pivots)[0, : rows - 2] == np.arange(rows - 2)).all()
