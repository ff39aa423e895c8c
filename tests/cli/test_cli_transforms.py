"""The command ``ntt``: in one pass and in four, continued after each, against transforms in memory."""

import re
import shutil
from pathlib import Path
from typing import Any

import dask
import numpy as np
import pytest
from commands import as_json, contents, fail, succeed

import rnsdask as rd
from rnsdask import store
from rnsdask.core.layout import ChunkPlan
from rnsdask.jobs import transform

FIELDS = rd.PrimeFields([4294955009, 12289])


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of 16 elements and more, so that short axes go in several passes."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(transform, "default_chunk", lambda _rows: 16)


def drawn(rng: np.random.Generator, *shape: int) -> rd.FieldArray:
    return rd.FieldArray(
        np.stack([rng.integers(0, p, shape, dtype=np.uint32) for p in FIELDS.primes]), FIELDS
    )


def drawn_digits(rng: np.random.Generator, field: rd.FermatField, *shape: int) -> rd.FieldArray:
    """Elements of a Fermat field, of which the first is -1."""
    words = rng.integers(0, field.radix, (field.digits, *shape), dtype=field.word_dtype)
    words.reshape(field.digits, -1)[:, 0] = [0] * (field.digits - 1) + [field.radix]
    return rd.FieldArray.from_words(words, field)


def words_in(path: str) -> np.ndarray:
    return np.asarray(rd.open_zarr(path).words)


@pytest.mark.parametrize("options", [[], ["--inverse"], ["--negacyclic"], ["--inverse", "--negacyclic"]])
@pytest.mark.parametrize("chunk", [3, 8, 64])
def test_all_transforms(options: list[str], chunk: int, rng: np.random.Generator) -> None:
    x = drawn(rng, 64)
    x.rechunk(chunk).to_zarr("x.zarr")
    found = as_json("ntt", "x.zarr", "-o", "y.zarr", *options)
    function = rd.intt if "--inverse" in options else rd.ntt
    expected = function(x, negacyclic="--negacyclic" in options)
    np.testing.assert_array_equal(words_in("y.zarr"), expected.words)
    assert rd.open_zarr("y.zarr").chunks == rd.open_zarr("x.zarr").chunks
    passes = 1 if chunk == 64 else 4
    assert (found["op"], found["passes"], found["count"]) == ("ntt", passes, 64)
    assert (found["bytes_read"], found["bytes_written"]) == (passes * x.nbytes, x.nbytes)
    assert sorted(path.name for path in Path().iterdir()) == ["x.zarr", "y.zarr"]
    function(x.rechunk(chunk), negacyclic="--negacyclic" in options).to_zarr("z.zarr")
    assert contents("z.zarr").keys() == contents("y.zarr").keys()
    assert all(contents("z.zarr")[name] == one for name, one in contents("y.zarr").items() if "/" in name)


@pytest.mark.parametrize("order", ["natural", "bit-reversed"])
@pytest.mark.parametrize("options", [[], ["--inverse"], ["--negacyclic"], ["--inverse", "--negacyclic"]])
@pytest.mark.parametrize("which", ["least", "usual", None])
def test_other_roots_and_orders(
    which: str | None, options: list[str], order: Any, rng: np.random.Generator
) -> None:
    """Whole lines in one pass, and every byte that of Python's call; four passes where nothing is other."""
    x = drawn(rng, 3, 64)
    x.rechunk((2, 8)).to_zarr("x.zarr")
    negacyclic = "--negacyclic" in options
    roots = FIELDS.roots(128 if negacyclic else 64, minimal=which == "least") if which else None
    given = [] if roots is None else ["--root", ",".join(map(str, roots))]
    found = as_json("ntt", "x.zarr", "-o", "y.zarr", *options, *given, "--order", order)
    assert found["passes"] == (4 if order == "natural" and which != "least" else 1)
    assert rd.open_zarr("y.zarr").chunks == rd.open_zarr("x.zarr").chunks
    function = rd.intt if "--inverse" in options else rd.ntt
    expected = function(x, negacyclic=negacyclic, root=roots, order=order)
    np.testing.assert_array_equal(words_in("y.zarr"), expected.words)
    expected.rechunk((2, 8)).to_zarr("z.zarr")
    assert contents("z.zarr").keys() == contents("y.zarr").keys()
    assert all(contents("z.zarr")[name] == one for name, one in contents("y.zarr").items() if "/" in name)
    back = [] if "--inverse" in options else ["--inverse"]
    flags = [option for option in options if option != "--inverse"]
    succeed("ntt", "y.zarr", "-o", "same.zarr", *back, *flags, *given, "--order", order)
    np.testing.assert_array_equal(words_in("same.zarr"), x.words)


def test_roots_that_are_none(rng: np.random.Generator) -> None:
    drawn(rng, 64).to_zarr("x.zarr")
    roots = FIELDS.roots(64)
    for given, message in (
        (f"{roots[0]},5", "ntt of x.zarr: root 5 is not a primitive root of unity of order 64 modulo 12289"),
        (f"{roots[0]}", "root must be one primitive root for each of the 2 fields, got 1"),
        (f"{roots[0]},{roots[1]},1", "root must be one primitive root for each of the 2 fields, got 3"),
        (f"{roots[0]},-1", "root -1 is not a primitive root of unity of order 64 modulo 12289"),
        (f"{roots[0]},{roots[1] + 12289}", "is not a primitive root of unity of order 64 modulo 12289"),
        (f"{roots[0]};{roots[1]}", "--root takes roots with commas between them, such as 4,16, got '"),
        ("", "--root takes roots with commas between them, such as 4,16, got ''"),
    ):
        assert message in fail("ntt", "x.zarr", "-o", "y.zarr", "--root", given, status=2)
    own = ",".join(map(str, roots))
    assert "of order 128 modulo" in fail(
        "ntt", "x.zarr", "-o", "y.zarr", "--root", own, "--negacyclic", status=2
    )
    message = fail("ntt", "x.zarr", "-o", "y.zarr", "--order", "reversed", status=2)
    assert "'reversed' is not one of 'natural', 'bit-reversed'" in message
    assert not Path("y.zarr").exists()


@pytest.mark.parametrize("options", [[], ["--inverse"], ["--negacyclic"], ["--inverse", "--negacyclic"]])
@pytest.mark.parametrize("name", ["F449", "P3"])
def test_elements_of_fermat_fields(name: str, options: list[str], rng: np.random.Generator) -> None:
    """In four passes, with words of 32 and of 64 bits, beside another axis."""
    x = drawn_digits(rng, rd.FermatField.named(name), 3, 64)
    x.rechunk((2, 8)).to_zarr("x.zarr")
    found = as_json("ntt", "x.zarr", "-o", "y.zarr", *options)
    function = rd.intt if "--inverse" in options else rd.ntt
    expected = function(x, negacyclic="--negacyclic" in options)
    np.testing.assert_array_equal(words_in("y.zarr"), expected.words)
    assert rd.open_zarr("y.zarr").chunks == rd.open_zarr("x.zarr").chunks
    assert (found["passes"], found["count"], found["bytes_read"]) == (4, 3 * 64, 4 * x.nbytes)
    assert sorted(path.name for path in Path().iterdir()) == ["x.zarr", "y.zarr"]


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("room", [16, 2**20])
def test_axes(axis: int, room: int, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transform, "default_chunk", lambda _rows: room)
    shape, chunks = [3, 2, 4], [2, 2, 3]
    shape[axis], chunks[axis] = 32, 12
    x = drawn(rng, *shape)
    x.rechunk(tuple(chunks)).to_zarr("x.zarr")
    found = as_json("ntt", "x.zarr", "-o", "y.zarr", "--axis", axis, "--negacyclic")
    assert found["passes"] == (4 if room == 16 else 1)
    np.testing.assert_array_equal(words_in("y.zarr"), rd.ntt(x, axis, True).words)
    succeed("ntt", "y.zarr", "-o", "z.zarr", "--axis", axis - 3, "--negacyclic", "--inverse")
    np.testing.assert_array_equal(words_in("z.zarr"), x.words)


class StopError(Exception):
    pass


STOPS = [
    *((k, "--resume") for k in (0, 16, 20, 47, 48, 63)),
    (50, "--overwrite"),
    *(pytest.param(k, "--resume", marks=pytest.mark.slow) for k in (5, 32, 50)),
    *(pytest.param(k, "--overwrite", marks=pytest.mark.slow) for k in (5, 20)),
]
FERMAT_STOPS = (20, 47, 50)


@pytest.mark.parametrize(("stopped_at", "mode"), STOPS)
def test_an_interrupted_transform_continues(
    stopped_at: int, mode: str, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After so many of the 3 * 16 parts and 16 chunks; of both kinds of fields."""
    x = drawn_digits(rng, rd.FermatField.named("P3"), 64) if stopped_at in FERMAT_STOPS else drawn(rng, 64)
    x.rechunk(4).to_zarr("x.zarr")
    job = ["ntt", "x.zarr", "-o", "y.zarr"]
    written = [0]
    write_chunk = store.StoreWriter.write_chunk

    def limited(self: store.StoreWriter, *args: Any) -> None:
        if written[0] == stopped_at:
            raise StopError
        write_chunk(self, *args)
        written[0] += 1

    with monkeypatch.context() as patched, dask.config.set(num_workers=1):
        patched.setattr(store.StoreWriter, "write_chunk", limited)
        with pytest.raises(AssertionError):
            succeed(*job)
    left = {path.name.replace(".partial.partial", ".partial") for path in Path().glob("*.partial")}
    assert "y.zarr.partial" in left
    assert len(left) in (2, 3)
    assert all(re.fullmatch(r"y\.zarr(\.[0-9a-f]{12}-[123])?\.partial", name) for name in left)
    assert "incomplete" in fail("ntt", "y.zarr", "-o", "z.zarr")
    assert "y.zarr: another job is writing it, or was interrupted" in fail(*job)
    found = as_json(*job, mode)
    assert found["chunks_kept"] == (max(0, stopped_at - 48) if mode == "--resume" else 0)
    np.testing.assert_array_equal(words_in("y.zarr"), rd.ntt(x).words)
    assert sorted(path.name for path in Path().iterdir()) == ["x.zarr", "y.zarr"]


def test_what_another_job_left_is_not_continued(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn(rng, 32).rechunk(8).to_zarr("x.zarr")
    with monkeypatch.context() as patched:
        patched.setattr(transform, "join_steps", None)
        with pytest.raises(AssertionError):
            succeed("ntt", "x.zarr", "-o", "y.zarr")
    for changed in (["--inverse"], ["--negacyclic"], ["--order", "bit-reversed"]):
        message = fail("ntt", "x.zarr", "-o", "y.zarr", "--resume", *changed)
        assert "y.zarr.partial: it cannot be resumed" in message
    other = drawn(rng, 32)
    other.rechunk(8).to_zarr("x.zarr", overwrite=True)
    assert "y.zarr.partial: it cannot be resumed" in fail("ntt", "x.zarr", "-o", "y.zarr", "--resume")
    others = [
        "y.zarr.0123456789ab-1.partial.zarr",
        "y2zarr.0123456789ab-1.partial",
        "z.zarr.0123456789ab-1.partial",
    ]
    for name in others:
        other.to_zarr(name)
    assert len(list(Path().glob("y.zarr.*-[123].partial"))) == 1
    succeed("ntt", "x.zarr", "-o", "y.zarr", "--overwrite")
    np.testing.assert_array_equal(words_in("y.zarr"), rd.ntt(other).words)
    assert sorted(path.name for path in Path().iterdir()) == ["x.zarr", "y.zarr", *others]


@pytest.mark.parametrize("chunk", [8, 32])
def test_what_a_removed_output_left_goes_with_the_next_job(
    chunk: int, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Leftovers of the same command, of a changed source, and of a transform in one pass."""
    x = drawn(rng, 32)
    x.rechunk(8).to_zarr("x.zarr")
    with monkeypatch.context() as patched:
        patched.setattr(transform, "join_steps", None)
        with pytest.raises(AssertionError):
            succeed("ntt", "x.zarr", "-o", "y.zarr")
    shutil.rmtree("y.zarr.partial")
    x.rechunk(chunk).to_zarr("x.zarr", overwrite=True)
    assert as_json("ntt", "x.zarr", "-o", "y.zarr")["passes"] == (4 if chunk == 8 else 1)
    np.testing.assert_array_equal(words_in("y.zarr"), rd.ntt(x).words)
    assert sorted(path.name for path in Path().iterdir()) == ["x.zarr", "y.zarr"]


def test_a_store_that_is_there_is_replaced_at_the_end(rng: np.random.Generator) -> None:
    x = drawn(rng, 64)
    x.rechunk(16).to_zarr("x.zarr")
    x.rechunk(16).to_zarr("y.zarr")
    before = contents("y.zarr")
    assert "it exists" in fail("ntt", "x.zarr", "-o", "y.zarr")
    assert contents("y.zarr") == before
    succeed("ntt", "x.zarr", "-o", "y.zarr", "--overwrite")
    np.testing.assert_array_equal(words_in("y.zarr"), rd.ntt(x).words)
    assert "is read from there" in fail("ntt", "y.zarr", "-o", "y.zarr", "--overwrite")


def test_what_has_no_transform(rng: np.random.Generator) -> None:
    drawn(rng, 3, 4096).rechunk((2, 1000)).to_zarr("x.zarr")
    rd.from_ints([1, 2], FIELDS.moduli).to_zarr("r.zarr")
    rd.IntervalRNSArray.from_rns(rd.open_zarr("r.zarr")).to_zarr("g.zarr")
    job = ["-o", "y.zarr"]
    message = fail("ntt", "x.zarr", *job, "--axis", 0, status=2)
    assert message.startswith("ntt of x.zarr: ntt takes an axis of a power of two elements, got 3 on axis 0")
    assert "modulo 4294955009 has no primitive root of unity of order 8192" in fail(
        "ntt", "x.zarr", *job, "--negacyclic", status=2
    )
    assert "intt takes a store of field elements, got a store of residues" in fail(
        "ntt", "r.zarr", *job, "--inverse", status=2
    )
    assert "ntt takes a store of field elements, got a store of intervals" in fail(
        "ntt", "g.zarr", *job, status=2
    )
    assert "axis 2 is out of bounds" in fail("ntt", "x.zarr", *job, "--axis", 2, status=2)
    assert "none.zarr" in fail("ntt", "none.zarr", *job)
    assert "a store cannot be standard output" in fail("ntt", "x.zarr", "-o", "-", status=2)
    assert not Path("y.zarr").exists()
    empty = rd.FieldArray(np.empty((2, 0, 64), np.uint32), FIELDS)
    empty.to_zarr("e.zarr", chunks=(2, 16))
    succeed("ntt", "e.zarr", "-o", "y.zarr")
    assert rd.open_zarr("y.zarr").shape == (0, 64)


def test_how_long_blocks_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """64 to 128 MiB, but at least the root of the length; one chunk stays one."""
    monkeypatch.undo()
    cases = {
        ((2**27,), (2**20,)): 2**24,
        ((2**27,), (2**27,)): 2**27,
        ((2**20,), (2**10,)): 2**20,
        ((4, 2**27), (4, 2**20)): 2**22,
        ((2**27, 2**14), (2**10, 2**14)): 2**14,
    }
    for (shape, chunks), block in cases.items():
        assert transform.block_length(ChunkPlan(shape, chunks), 1, int(shape[0] == 4)) == block


def test_a_name_too_long_for_stores_beside_it_shows_before_anything_is_written(
    rng: np.random.Generator,
) -> None:
    drawn(rng, 64).rechunk(8).to_zarr("x.zarr")
    assert fail("ntt", "x.zarr", "-o", "n" * 240).endswith("File name too long")
    assert [path.name for path in Path().iterdir()] == ["x.zarr"]
