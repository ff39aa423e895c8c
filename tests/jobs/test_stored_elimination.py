"""One great matrix over prime fields panel by panel: against FLINT, killed, and what is read."""

import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import flint
import numpy as np
import pytest
from click.testing import CliRunner
from commands import as_json, fail
from strategies import slow

import rnsdask as rd
from rnsdask import store
from rnsdask.cli import main
from rnsdask.core.errors import StoreError
from rnsdask.jobs import elimination as job
from rnsdask.jobs import memory_plan
from rnsdask.jobs.panels import WorkingStore
from rnsdask.jobs.sources import OF_NUMBERS, Source
from rnsdask.lazy import block_elimination
from rnsdask.store.writing import StoreWriter

PRIMES = [2, 65537, 2**31 - 1]
FIELDS = rd.PrimeFields(PRIMES)
LONG = [3, 2**32 + 15, 2**61 - 1, 2**64 - 59]
"""Primes of which elements have words of 64 bits."""


@pytest.fixture(autouse=True)
def narrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep matrices in block columns, of three columns at least."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(block_elimination, "LEAST_COLUMNS", 3)
    monkeypatch.setattr(block_elimination, "MOST_JOINED", 0)


def of_rank(rng: np.random.Generator, rank: int, rows: int, columns: int, p: int) -> np.ndarray:
    """A matrix of at most a rank, in words of 64 bits."""
    left, right = (
        rng.integers(0, p, shape, dtype=np.uint64).astype(object) for shape in ((rows, rank), (rank, columns))
    )
    return (left @ right % p).astype(np.uint64)


def write(path: str, words: np.ndarray, chunks: tuple[int, ...], fields: rd.PrimeFields = FIELDS) -> None:
    rd.FieldArray(words.astype(fields.word_dtype), fields).rechunk(chunks).to_zarr(path)


def matrix(words: np.ndarray, p: int) -> flint.nmod_mat:
    return flint.nmod_mat(*words.shape, [int(v) for v in words.ravel()], p)


def ints(found: flint.nmod_mat) -> list[list[int]]:
    return [[int(v) for v in row] for row in found.tolist()]


def computed(operation: str, paths: list[str], group: int, folder: Path, **how: Any) -> Any:
    """Result of a job with groups of some block columns, which goes on once when all is finished."""
    prepared = job.prepare(operation, [Source.at(path, OF_NUMBERS) for path in paths], "cpu", how)
    assert prepared is not None
    folder.mkdir(parents=True)
    for _ in range(2):
        places = [str(folder / name) for name in ("words", "records")]
        working = WorkingStore.at(places, prepared.layout, prepared.job, "cpu")
        found = job.eliminate(prepared, working, group)
    result = job.result_of(prepared, working, found)
    return np.asarray(result.compute().words) if isinstance(result, rd.FieldArray) else result


SHAPES = [(7, 7), (5, 17), (17, 5), *slow((12, 12), (2, 9), (9, 2), (16, 16))]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_against_flint(shape: tuple[int, int], rng: np.random.Generator, tmp_path: Path) -> None:
    """All ranks from none to full, in several chunkings and groups."""
    check_against_flint(PRIMES, shape, rng, tmp_path)


@pytest.mark.parametrize("shape", [(7, 7), (5, 17), *slow((17, 5), (16, 16))], ids=str)
def test_long_primes_against_flint(shape: tuple[int, int], rng: np.random.Generator, tmp_path: Path) -> None:
    check_against_flint(LONG, shape, rng, tmp_path)


def check_against_flint(
    primes: list[int], shape: tuple[int, int], rng: np.random.Generator, tmp_path: Path
) -> None:
    (rows, columns), fields = shape, rd.PrimeFields(primes)
    for rank in sorted({0, 1, min(shape) // 2, min(shape) - 1, min(shape)}):
        words = np.stack([of_rank(rng, rank, rows, columns, p) for p in primes])
        words[0, :, rng.random(columns) < 0.2] = 0
        if rank == min(shape):
            words = fields.random_words(shape, rng)
        chunks = int(rng.integers(1, rows + 1)), int(rng.integers(1, columns))
        group, width = int(rng.integers(1, 5)), 3
        name = f"{rank}-{chunks}-{group}-{width}"
        write(name, words, chunks, fields)
        exact = [matrix(words[i], p) for i, p in enumerate(primes)]
        forms, ranks = zip(*(one.rref() for one in exact), strict=True)
        assert computed("rank", [name], group, tmp_path / f"{name}r").tolist() == list(ranks)
        form = computed("rref", [name], group, tmp_path / f"{name}f")
        assert form.dtype == fields.word_dtype
        assert form.tolist() == [ints(one) for one in forms]
        if rows == columns:
            found = computed("det", [name], group, tmp_path / f"{name}d")
            assert found.tolist() == [[int(one.det())] for one in exact]
        check_nullspaces(words, ranks, chunks, group, tmp_path / f"{name}n", primes)
        check_solutions(words, ranks, chunks, group, rng, tmp_path / f"{name}s", primes)


def check_nullspaces(
    words: np.ndarray, ranks: Any, chunks: Any, group: int, folder: Path, primes: list[int]
) -> None:
    for i, p in enumerate(primes):
        name, columns = f"{folder.name}-{p}", words.shape[2]
        write(name, words[i : i + 1], chunks, rd.PrimeFields([p]))
        basis = computed("nullspace", [name], group, folder.with_name(f"{folder.name}{p}"))[0]
        assert basis.shape == (columns, columns - ranks[i])
        exact = matrix(words[i], p) * matrix(basis, p)
        assert not any(map(any, ints(exact)))
        # The basis is the identity in the free columns, the ends of null vectors.
        free = sorted(set(range(columns)) - pivots_of(words[i], p))
        np.testing.assert_array_equal(basis[free], np.eye(len(free), dtype=basis.dtype))


def pivots_of(words: np.ndarray, p: int) -> set[int]:
    form, rank = matrix(words, p).rref()
    return {next(j for j, v in enumerate(row) if v) for row in ints(form)[:rank]}


def check_solutions(
    words: np.ndarray,
    ranks: Any,
    chunks: Any,
    group: int,
    rng: np.random.Generator,
    folder: Path,
    primes: list[int],
) -> None:
    (rows, columns), fields = words.shape[1:], rd.PrimeFields(primes)
    write(f"{folder.name}-a", words, chunks, fields)
    for sides in (0, 1, 8):
        shape = (columns, sides or 1)
        wanted = fields.random_words(shape, rng).astype(object)
        right = np.stack([words[i].astype(object) @ wanted[i] % p for i, p in enumerate(primes)])
        right = right.astype(np.uint64)
        paths = [f"{folder.name}-a", f"{folder.name}-{sides}"]
        write(paths[1], right if sides else right[..., 0], (2, 3)[: 1 + bool(sides)], fields)
        for unique in (True, False) if rows == columns else (False,):
            place = folder.with_name(f"{folder.name}{sides}{unique}")
            how = {} if unique else {"unique": False}
            if unique and min(ranks) < rows:
                first = next(p for p, rank in zip(primes, ranks, strict=True) if rank < rows)
                with pytest.raises(np.linalg.LinAlgError, match=f"the matrix is singular modulo {first}$"):
                    computed("solve", paths, group, place, **how)
                continue
            found = computed("solve", paths, group, place, **how).reshape(len(primes), *shape)
            for i, p in enumerate(primes):
                assert ints(matrix(words[i], p) * matrix(found[i], p)) == right[i].tolist()
                assert not found[i][sorted(set(range(columns)) - pivots_of(words[i], p))].any()
        wrong = right.copy()
        wrong[1:, -1] ^= 1
        if all(rank < rows for rank in ranks) and not words[:, -1].any():
            write(f"{paths[1]}-wrong", wrong if sides else wrong[..., 0], (2, 3)[: 1 + bool(sides)], fields)
            without = rf"equations without a solution modulo {primes[1]}$"
            with pytest.raises(np.linalg.LinAlgError, match=without):
                computed("solve", [paths[0], f"{paths[1]}-wrong"], group, folder / f"w{sides}", unique=False)


# ---- commands ---------------------------------------------------------------------------------------------


@pytest.fixture(params=[PRIMES[1:]], ids=["short"])
def stores(rng: np.random.Generator, request: pytest.FixtureRequest) -> np.ndarray:
    """Stores x of a matrix of 40 rows and rank 37, y of a regular one, and b of right-hand sides."""
    fields = rd.PrimeFields(request.param)
    words = np.stack([of_rank(rng, 37, 40, 40, p) for p in fields.primes]).astype(fields.word_dtype)
    ones = np.eye(40, dtype=np.uint64)
    regular = np.stack([np.tril(of_rank(rng, 40, 40, 40, p), -1) + ones for p in fields.primes])
    write("x", words, (9, 8), fields)
    write("y", regular, (9, 8), fields)
    write(
        "b",
        (rd.FieldArray(words, fields) @ rd.FieldArray(words[..., :5].copy(), fields)).words,
        (7, 2),
        fields,
    )
    return words


COMMANDS = {
    "det": "det y --json",
    "rank": "rank x --json",
    "rank -o": "rank x -o o",
    "det -o": "det y -o o",
    "solve": "solve y b --json",
    "solve -o": "solve y b -o o",
    "solve --any -o": "solve x b --any -o o",
    "rref": "rref x -o o",
    "nullspace": "nullspace x -o o",
}

QUICK = ("det", "solve --any -o", "nullspace")

LONG_STORES = pytest.mark.parametrize("stores", [LONG[1:]], indirect=True, ids=["long"])

KILLED = """
import os, signal, sys
from rnsdask.cli import main
from rnsdask.jobs.panels import WorkingStore
from rnsdask.jobs import elimination
from rnsdask.lazy import block_elimination
block_elimination.LEAST_COLUMNS, block_elimination.MOST_JOINED = 3, 0
elimination.Elimination.group_for = lambda *_: 2
write, left = WorkingStore._write_record, [{count}]
def write_record(self, k, record):
    left[0] -= 1
    if left[0] < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    write(self, k, record)
WorkingStore._write_record = write_record
main(sys.argv[1:])
"""


def outcome(command: str) -> Any:
    """Run a command: what it prints but measures, or what it writes."""
    printed = CliRunner().invoke(main, [*command.split(), "--no-progress"])
    assert printed.exit_code == 0, printed.output
    if "-o" in command:
        return rd.open_zarr("o").to_ints().tolist()
    found = json.loads(printed.stdout)
    return found.get("value", found.get("values"))


def expected_of(command: str) -> Any:
    """Run a command in memory."""
    found = outcome(command)
    if Path("o").exists():
        Path("o").rename("in-memory")
    return found


@pytest.mark.usefixtures("stores")
@pytest.mark.parametrize("name", [*QUICK, *slow(*(name for name in COMMANDS if name not in QUICK))])
def test_killed_and_resumed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a checkpoint, and with a working store beside the output: no finished panel is written again."""
    check_killed(name, monkeypatch)


@LONG_STORES
@pytest.mark.usefixtures("stores")
@pytest.mark.parametrize("name", ["nullspace", *slow(*(name for name in COMMANDS if name != "nullspace"))])
def test_killed_and_resumed_with_long_primes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    check_killed(name, monkeypatch)


def check_killed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    command = COMMANDS[name]
    expected = expected_of(command)
    ways = [("--checkpoint kept", "kept/words")]
    if name == "nullspace":  # whose working store there always is
        ways += [("--resume", "o.*-1.partial")]
    monkeypatch.setattr(job.Elimination, "group_for", lambda *_: 2)
    for options, place in ways:
        line = f"{command} {options}"
        script = [sys.executable, "-c", KILLED.format(count=5), *line.split(), "--no-progress"]
        ended = subprocess.run(script, capture_output=True, check=False)
        assert ended.returncode == -signal.SIGKILL, ended
        tiles = {path: path.stat().st_mtime_ns for path in Path().glob(f"{place}.partial/c/0/*/*")}
        finished = {path: at for path, at in tiles.items() if int(path.name) < 5}
        assert finished
        assert outcome(line) == expected
        left = [path for path in finished if path.exists()]
        assert bool(left) == ("kept" in options)
        assert all(path.stat().st_mtime_ns == finished[path] for path in left)
        assert not list(Path().glob("o.*partial*"))
        if Path("o").exists():
            Path("o").rename(f"o-{options}")


@pytest.mark.usefixtures("stores")
@pytest.mark.parametrize("option", ["--resume", "--overwrite"])
def test_what_a_job_was_removing_when_it_was_killed_is_removed(
    option: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as until_killed:
        until_killed.setattr("shutil.rmtree", lambda *_, **__: None)
        outcome("nullspace x -o o")
    assert list(Path().glob(".o.*.partial"))
    outcome(f"nullspace x -o o {option}")
    assert not list(Path().glob(".*.partial"))


@pytest.mark.usefixtures("stores")
@pytest.mark.parametrize("command", ["nullspace x -o o --resume", "rref x -o o --overwrite"])
def test_working_stores_of_killed_jobs_are_removed(command: str) -> None:
    """One that was killed while it removed its own, and one whose output is made anew in memory."""
    outcome(command.rpartition(" ")[0])
    for name in ("o.0123456789ab-1.partial", "o.0123456789ab-2.partial"):
        store.create(name, FIELDS, (4, 4), chunks=(4, 4), job="0123456789ab")
    assert Path("o.0123456789ab-1.partial.partial").is_dir()
    outcome(command)
    assert sorted(Path().glob("o*")) == [Path("o")]


@pytest.mark.usefixtures("stores")
def test_without_room_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """A working store beside the output, or in a folder for a while; nothing is left."""
    expected = {name: expected_of(COMMANDS[name]) for name in ("det", "rref")}
    Path("in-memory").rename("elsewhere")
    for name in expected:
        prepared = job.prepare(name, [Source.at("x", OF_NUMBERS)], "cpu", {})
        assert prepared is not None
        work = prepared.work(2)
        place = memory_plan.places_of(work)[0]
        limit = place.need(work, place.threads)[0]
        monkeypatch.setattr(job.Elimination, "work_in_memory", memory_plan.replace(work, held=2**40))
        monkeypatch.setattr(memory_plan, "process_limit", lambda limit=limit: limit)
        before = set(Path().iterdir())
        result = CliRunner().invoke(main, COMMANDS[name].split())
        assert result.exit_code == 0, result.output
        assert ("finished parts are in" in result.stderr) == (name == "det")
        assert {path.name for path in set(Path().iterdir()) - before} <= {"o"}
    assert json.loads(CliRunner().invoke(main, COMMANDS["det"].split()).stdout)["value"] == expected["det"]
    assert rd.open_zarr("o").to_ints().tolist() == expected["rref"]


@pytest.mark.parametrize(("rows", "free"), [(60_000, 7.2e9), (100_000, 20e9)])
def test_a_gpu_with_half_the_memory_of_a_matrix_takes_few_groups(
    rows: int, free: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(block_elimination, "LEAST_COLUMNS", 256)
    info = store.create("m", rd.PrimeFields([2**31 - 1]), (rows, rows), chunks=(rows, rows // 25)).info
    prepared = job.prepare("rank", [Source("m", info)], "cuda", {})
    assert prepared is not None
    group = prepared.group_for(memory_plan.Place("a GPU", 8, 2**37, int(free)))
    panels = prepared.layout.panels
    assert panels <= 75
    assert panels <= 7 * group


@pytest.mark.usefixtures("stores")
def test_damaged_and_strange_checkpoints() -> None:
    expected = as_json("rank", "x")["values"]
    assert as_json("rank", "x", "--checkpoint", "kept")["values"] == expected
    for damage in (Path.unlink, lambda file: file.write_bytes(file.read_bytes()[:-9])):
        tile = sorted(Path("kept/words.partial/c/0").glob("*/3"))[-1]
        damage(tile)
        assert as_json("rank", "x", "--checkpoint", "kept")["values"] == expected
        record = next(Path("kept/records.partial/c").glob("5/*/*"))
        damage(record)
        assert as_json("rank", "x", "--checkpoint", "kept")["values"] == expected
    refusal = fail("rank", "y", "--checkpoint", "kept")
    assert refusal.startswith("kept: the checkpoint cannot be continued: ")
    assert "it was begun by another job" in refusal
    assert refusal.endswith("remove it, or give another folder")
    Path("other").mkdir()
    Path("other/mine").touch()
    assert "it is not a checkpoint, but a folder with other files" in fail(
        "rank", "x", "--checkpoint", "other"
    )
    assert "need -o" in fail("rref", "x", "--checkpoint", "new", status=2)
    write("whole", np.ones((3, 4, 4), dtype=np.uint32), (4, 4))
    assert "in several chunks" in fail("det", "whole", "--checkpoint", "new", status=2)


@pytest.mark.usefixtures("stores")
def test_a_panel_has_no_record_if_a_tile_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    expected, write_chunk = as_json("rank", "x")["values"], StoreWriter.write_chunk

    def fails(self: StoreWriter, index: tuple[int, int], words: np.ndarray) -> None:
        if index == (7, 3):
            raise StoreError("there is no room")
        write_chunk(self, index, words)

    with monkeypatch.context() as patch:
        patch.setattr(StoreWriter, "write_chunk", fails)
        assert "there is no room" in fail("rank", "x", "--checkpoint", "kept")
    assert sorted(path.name for path in Path("kept/records.partial/c").iterdir()) == ["0", "1", "2"]
    assert as_json("rank", "x", "--checkpoint", "kept")["values"] == expected


@pytest.mark.usefixtures("stores")
def test_errors_leave_no_working_store() -> None:
    assert "the matrix is singular modulo" in fail("solve", "x", "b", "-o", "o", "--checkpoint", "kept")
    assert not Path("o").exists()
    fields = rd.PrimeFields(PRIMES)
    words = np.stack([np.eye(9, dtype=np.uint32)] * 3)
    words[1, 8] = 0
    write("mixed", words, (3, 4), fields)
    message = fail("nullspace", "mixed", "-o", "o")
    assert re.search(r"nullspace of mixed: .*one rank, got 9 modulo 2 and 8 modulo 65537", message)
    assert not list(Path().glob("o*"))


def test_what_is_read_and_written(rng: np.random.Generator, tmp_path: Path) -> None:
    """The matrix once; of panels the rows from their pivots on, once for each later group; a word once."""
    length, width, group = 96, 3, 8
    words = rng.integers(0, PRIMES[-1], (1, length, length)).astype(np.uint32)
    write("x", words, (32, 3), rd.PrimeFields(PRIMES[-1:]))
    prepared = job.prepare("det", [Source.at("x", OF_NUMBERS)], "cpu", {})
    assert prepared is not None
    working = WorkingStore.at(
        [str(tmp_path / "w"), str(tmp_path / "r")], prepared.layout, prepared.job, "cpu"
    )
    found = job.eliminate(prepared, working, group)
    assert found.ranks.tolist() == [length]
    panels = length // width
    record = 8 * (2 + 2 * length)
    kept = [4 * width * (length - k * width) for k in range(panels)]  # tiles of three rows
    later = [panels // group - 1 - k // group for k in range(panels)]
    assert working.bytes_written == sum(kept) + panels * record
    assert working.source_bytes == 4 * length**2
    records = working.bytes_read - sum(a * b for a, b in zip(kept, later, strict=True))
    assert 0 <= records <= 4 * panels**2 * record


def test_what_is_not_of_one_great_matrix() -> None:
    fields = rd.PrimeFields([7])
    write("stack", np.ones((1, 2, 9, 9), dtype=np.uint32), (1, 3, 3), fields)
    write("wide", np.ones((1, 4, 9), dtype=np.uint32), (4, 3), fields)
    for operation, path in (("rank", "stack"), ("det", "wide"), ("charpoly", "wide")):
        assert job.prepare(operation, [Source.at(path, OF_NUMBERS)], "cpu", {}) is None


def test_small_matrices_over_long_primes(monkeypatch: pytest.MonkeyPatch) -> None:
    """In memory, and with a working store."""
    monkeypatch.setattr(block_elimination, "LEAST_COLUMNS", 1)
    p = 2**64 - 59
    words = np.array([[1, p - 1, 2**63], [2, p - 2, 5], [3, p - 3, 7], [4, p - 4, 9]], dtype=np.uint64)
    rd.FieldArray(words[None], rd.PrimeFields([p])).rechunk(2).to_zarr("long.zarr")
    assert as_json("rank", "long.zarr")["values"] == ["2"]
    result = CliRunner().invoke(main, ["nullspace", "long.zarr", "-o", "null.zarr"])
    assert result.exit_code == 0, result.output
    assert rd.open_zarr("null.zarr").to_ints().tolist() == [[1], [1], [0]]
