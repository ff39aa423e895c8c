"""``--resume``: it begins, goes on, or says that the very job is done; all else is an error."""

import json
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pytest
import zarr
from commands import call, contents, fail, succeed
from strategies import slow

import rnsdask as rd
from rnsdask import store
from rnsdask.cli.commands import way_on

NUMBERS = [(i * 123456789 + 7) % 2**31 for i in range(300)]
MODULI = rd.ModuliSet.for_bits(64)

JOBS = {
    "import": "import numbers.txt o --bits 64 --chunk 64",
    "import records": "import records o --binary 8 --bits 64 --chunk 64",
    "import residues": "import dump.npy o --residues --moduli-list 251,253 --chunk 64",
    "random": "random o --count 300 --bits 64 --seed 7 --chunk 64",
    "eval": "eval x*x x=x -o o",
    "eval with a mask": "eval x*x x=x -o o --overflow flag --mask m",
    "eval of several": "eval -e s=x+1 -e p=s*s -e c=s<9 x=x -o s=o -o p=p -o c=m",
    "comparison": "eval x<9 x=x -o o",
    "intervals": "convert x -o o --to interval",
    "cumsum": "cumsum x -o o",
    "slice": "slice x -o o 5:200",
    "ntt": "ntt f -o o",
    "rref": "rref matrix -o o --denominators m",
    "solve": "solve matrix matrix -o o --denominators m",
}

OTHERS = {
    "import": "import numbers.txt o --bits 64 --chunk 50",
    "import records": "import records o --binary 8 --byte-order big --bits 64 --chunk 64",
    "import residues": "import dump.npy o --residues --moduli-list 251,253 --chunk 64 --signed",
    "random": "random o --count 300 --bits 64 --seed 7 --chunk 64 --max-bits 9",
    "eval": "eval x*x+1 x=x -o o",
    "eval with a mask": "eval x*x x=x -o m --overflow flag --mask o",
    "eval of several": "eval -e s=x+1 -e p=s*s -e c=s<9 x=x -o s=p -o p=o -o c=m",
    "comparison": "eval x<8 x=x -o o",
    "intervals": "convert signed -o o --to interval",
    "cumsum": "cummax x -o o",
    "ntt": "ntt f -o o --inverse",
    "rref": "rref matrix -o m --denominators o",
    "solve": "solve matrix matrix -o m --denominators o",
}


@pytest.fixture(autouse=True)
def inputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("numbers.txt").write_text("".join(f"{number}\n" for number in NUMBERS))
    Path("records").write_bytes(np.array(NUMBERS, "<u8").tobytes())
    np.save("dump.npy", np.array([[v % m for v in NUMBERS] for m in (251, 253)]))
    x = rd.from_ints(NUMBERS, MODULI, chunks=64)
    x.to_zarr("x")


@pytest.fixture(scope="session")
def further(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Inputs that few jobs have, which are made once."""
    folder = tmp_path_factory.mktemp("further")
    rd.from_ints(NUMBERS, MODULI, True, chunks=64).to_zarr(folder / "signed")
    rd.from_ints([[2, 1], [1, 3]], MODULI).to_zarr(folder / "matrix")
    fields = rd.PrimeFields(rd.ModuliSet.ntt_primes(30, 64))
    rd.random(fields, 64, seed=1, chunks=32).to_zarr(folder / "f")
    return folder


def words(job: str, further: Path) -> list[str]:
    names = {path.name for path in further.iterdir()}
    return [str(further / word) if word in names else word for word in job.split()]


def written() -> dict[str, tuple[int, int]]:
    """All files that are there, and which and how old each is."""
    files = (file for file in Path().rglob("*") if file.is_file())
    return {str(file): (file.stat().st_mtime_ns, file.stat().st_ino) for file in files}


@pytest.mark.parametrize("kind", [kind for kind in JOBS if kind != "eval"])
def test_twice(kind: str, further: Path) -> None:
    """It begins; then it says that all is done, and touches nothing; it refuses another job's store."""
    job = words(JOBS[kind], further)
    succeed(*job, "--resume", "--no-progress")
    before, outputs = written(), [path for path in "opm" if Path(path).exists()]
    told = succeed(*job, "--resume", "--no-progress").splitlines()
    lines = [path for path in outputs if not (path == "m" and "--mask" in job)]
    assert sorted(told) == [
        f"{path}: complete already, by this very job; nothing to do" for path in sorted(lines)
    ]
    assert written() == before
    if kind in OTHERS:
        other = words(OTHERS[kind], further)
        message = fail(*other, "--resume", "--no-progress")
        assert re.search(
            r": it is complete, but of another job: .*, was .*; replace it with --overwrite$", message
        )
        assert written() == before


@pytest.mark.parametrize("change", ["numbers.txt", "x/c/0/2"])
def test_inputs_that_changed(change: str) -> None:
    """Not those that were written again with the same content."""
    job = JOBS["import" if change == "numbers.txt" else "eval"].split()
    succeed(*job)
    content = Path(change).read_bytes()
    Path(change).unlink()
    Path(change).write_bytes(content)
    assert "nothing to do" in succeed(*job, "--resume")
    if change == "numbers.txt":
        Path(change).write_bytes(content + b"1\n")
        told = "numbers.txt: its bytes: "
    else:
        zarr.open_array("x", mode="r+")[0, 2 * 64] = 9
        told = "x: 1 chunk differs; replace it with --overwrite"
    assert told in fail(*job, "--resume")
    succeed(*job, "--resume", "--overwrite")
    assert "nothing to do" in succeed(*job, "--resume")


def append(path: str) -> None:
    rd.from_ints([1, 2], rd.open_zarr(path).moduli).to_zarr(path, append_dim=0)


def lower_bound(path: str) -> None:
    succeed("bound", path, "--write")


def rewrite_in_python(path: str) -> None:
    rd.from_ints([5] * 300, MODULI, chunks=64).to_zarr(path, overwrite=True)


def change_a_number(path: str) -> None:
    zarr.open_array(path)[:, 7] = 1


def lose_a_chunk(path: str) -> None:
    Path(path, "c/0/1").unlink()


def add_an_attribute(path: str) -> None:
    zarr.open_array(path).attrs["mine"] = 1


def copy_another_job(path: str) -> None:
    succeed("eval", "x+1", "x=x", "-o", "other")
    Path("other", store.location.JOB_KEY).rename(Path(path, store.location.JOB_KEY))


@pytest.mark.parametrize(
    "change",
    [
        append,
        lower_bound,
        rewrite_in_python,
        change_a_number,
        lose_a_chunk,
        add_an_attribute,
        copy_another_job,
    ],
)
def test_what_was_changed_is_not_done(change: Any) -> None:
    rd.from_ints(NUMBERS, MODULI, chunks=64).with_bound(2**40).to_zarr("x", overwrite=True)
    job = ["eval", "x+0", "x=x", "-o", "o"]
    succeed(*job)
    change("o")
    assert re.search(r"o: it is complete, but .*; replace it with --overwrite$", fail(*job, "--resume"))
    succeed(*job, "--resume", "--overwrite")
    assert rd.open_zarr("o").to_ints().tolist() == NUMBERS
    assert "nothing to do" in succeed(*job, "--resume")


def test_masks_and_intervals_that_were_changed() -> None:
    job = JOBS["eval with a mask"].split()
    succeed(*job)
    zarr.open_array("m")[5] = True
    assert "it is complete, but chunks of it are missing, or were changed" in fail(*job, "--resume")
    Path("m").rename("away")
    assert "its mask m is not; replace both with --overwrite" in fail(*job, "--resume")
    succeed(*job, "--resume", "--overwrite")
    assert not zarr.open_array("m")[:].any()
    job = ["convert", "x", "-o", "g", "--to", "interval", "--resume"]
    succeed(*job)
    Path("g/c/0/2").unlink()
    assert "chunks of it are missing" in fail(*job)


def test_an_identical_rewrite_by_another_job_breaks_no_reader() -> None:
    succeed("eval", "x*x", "x=x", "-o", "o")
    reader, before, job = rd.open_zarr("o"), contents("o"), Path("o", store.location.JOB_KEY).read_bytes()
    succeed("eval", "x**2", "x=x", "-o", "o", "--overwrite")
    assert contents("o") == before
    assert Path("o", store.location.JOB_KEY).read_bytes() != job
    assert reader.to_ints().tolist() == [v * v for v in NUMBERS]
    assert "of another job" in fail("eval", "x*x", "x=x", "-o", "o", "--resume")
    assert "nothing to do" in succeed("eval", "x**2", "x=x", "-o", "o", "--resume")


def test_done_needs_no_cluster_and_no_certain_processor() -> None:
    job = JOBS["eval"].split()
    succeed(*job, "--backend", "cpu", "--resume")
    assert "nothing to do" in succeed(*job, "--resume", "--scheduler", "tcp://127.0.0.1:1", "--retries", 0)


def test_reductions_beside_what_is_done() -> None:
    job = JOBS["eval"].split()
    succeed(*job)
    before = written()
    printed = succeed(*job, "--resume", "--max")
    assert printed.startswith("o: complete already")
    assert f"\n{max(NUMBERS) ** 2}\n" in printed
    found = json.loads(succeed(*job, "--resume", "--max", "--json"))
    assert (found["already_complete"], found["results"]["max"]["value"]) == (True, str(max(NUMBERS) ** 2))
    assert written() == before


def test_outputs_of_which_one_is_there() -> None:
    job = JOBS["eval of several"].split()
    succeed(*job)
    before = written()
    Path("p").rename("away")
    found = json.loads(succeed(*job, "--resume", "--json"))["results"]
    assert [name for name, about in found.items() if "already_complete" in about] == ["s", "c"]
    assert rd.open_zarr("p").to_ints().tolist() == [(v + 1) ** 2 for v in NUMBERS]
    assert {name: at for name, at in written().items() if name[:2] in ("o/", "m/")}.items() <= before.items()


# ---- interruptions ----------------------------------------------------------------------------------------

KILLED = """
import os, signal, sys
from rnsdask.cli import main
from rnsdask.store import writing
write, left = writing.write_chunk_file, [{count}]
def write_chunk(*args, **options):
    left[0] -= 1
    if left[0] < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return write(*args, **options)
writing.write_chunk_file = write_chunk
main(sys.argv[1:])
"""


@pytest.mark.parametrize("kind", ["intervals", *slow("eval of several")])
def test_killed_and_resumed(kind: str, further: Path) -> None:
    """By the signal that nothing can catch, in the middle of its chunks, then again by the very command."""
    job = [*words(JOBS[kind], further), "--resume"]
    script = KILLED.format(count=2 if kind == "intervals" else 4)
    ended = subprocess.run([sys.executable, "-c", script, *job], capture_output=True, check=False)
    assert ended.returncode == -signal.SIGKILL, ended
    assert not json.loads(succeed("info", "o", "--json"))["complete"]
    kept = list(Path().glob("[op].partial/c/0/*"))
    assert kept
    before = {path: path.stat().st_mtime_ns for path in kept}
    signed = str(further / "signed")
    other = [signed if word == "x" else word.replace("s*s", "s*x") for word in job]
    assert re.search("it cannot be resumed: .*; replace it with --overwrite$", fail(*other))
    assert re.search("[1-9][0-9]* chunks? kept", succeed(*job, "--no-progress"))
    placed = {path: Path(str(path).replace(".partial", "")) for path in kept}
    assert before == {path: placed[path].stat().st_mtime_ns for path in kept}
    expected = [v + 1 for v in NUMBERS] if kind == "eval of several" else NUMBERS
    found = rd.open_zarr("o")
    assert found.to_ints().tolist() == expected
    assert "nothing to do" in succeed(*job, "--no-progress")


INTERRUPTED = """
import os, signal, sys, time
from rnsdask.cli import main
from rnsdask.store import writing
signal.signal(signal.SIGINT, signal.default_int_handler)
write, left = writing.write_chunk_file, [2]
def write_chunk(*args, **options):
    left[0] -= 1
    if left[0] < 0:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(60)
    return write(*args, **options)
writing.write_chunk_file = write_chunk
main(sys.argv[1:])
"""


def test_an_interruption_says_how_to_go_on() -> None:
    """The command that it tells does so, here with the seed that was drawn."""
    job = ["random", "o", "--count", "300", "--bits", "64", "--chunk", "64", "--no-progress"]
    how: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "check": False}
    ended = subprocess.run([sys.executable, "-c", INTERRUPTED, *job], **how)
    seed, told = ended.stderr.splitlines()
    assert (ended.returncode, ended.stdout) == (130, "")
    way_on = told.removeprefix("rnsdask: error: interrupted; to go on: rnsdask ")
    assert way_on == shlex.join([*job, "--resume", "--seed", seed.removeprefix("rnsdask: seed ")])
    assert not json.loads(succeed("info", "o", "--json"))["complete"]
    assert "o: 300 random integers" in succeed(*shlex.split(way_on))
    assert "nothing to do" in succeed(*shlex.split(way_on))


def test_data_that_does_not_fit_leaves_nothing() -> None:
    job = ["eval", "x**4", "x=x", "-o", "o"]
    assert "overflow" in fail(*job, "--resume")
    assert not Path("o").exists()
    assert call(*job, "--resume", "--extend").exit_code == 0
    assert rd.open_zarr("o").to_ints().tolist() == [v**4 for v in NUMBERS]


def test_what_begins_anew_or_goes_on_with_both_options(monkeypatch: pytest.MonkeyPatch) -> None:
    """--overwrite beside --resume replaces what is another job's, whole or not, and goes on with its own."""
    write, left = store.StoreWriter.write_chunk, [2]

    def write_chunk(*args: Any) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise RuntimeError("the end")
        write(*args)

    both = ["--resume", "--overwrite", "--no-progress"]
    succeed("eval", "x+5", "x=x", "-o", "o")
    for text in ("x+6", "x+7"):  # beside what is whole; in place of what was begun beside it
        with monkeypatch.context() as patch:
            patch.setattr(store.StoreWriter, "write_chunk", write_chunk)
            left[0] = 2
            assert "the end" in fail("eval", text, "x=x", "-o", "o", *both)
        assert rd.open_zarr("o").to_ints().tolist() == [v + 5 for v in NUMBERS]
    assert "nothing to do" in succeed("eval", "x+5", "x=x", "-o", "o", *both)
    assert "chunks kept" in succeed("eval", "x+7", "x=x", "-o", "o", *both)
    assert rd.open_zarr("o").to_ints().tolist() == [v + 7 for v in NUMBERS]
    assert not list(Path().glob("*.partial"))


@pytest.mark.parametrize(
    ("args", "params", "expected"),
    [
        ("import n x", {"resume": False, "source": "n"}, "import n x --resume"),
        ("import n x --resume", {"resume": True}, "import n x --resume"),
        ("import - x", {"resume": False, "source": "-"}, ""),
        ("eval x x=a -o b --overwrite", {"resume": False, "outputs": ("b",)}, None),
        ("eval x x=a --max", {"resume": False, "outputs": ()}, ""),
        ("slice x -o y -- -5:", {"resume": False}, "slice x -o y --resume -- -5:"),
        ("random x", {"resume": False, "seed": None}, "random x --resume --seed 17"),
        ("max x", {"checkpoint": None}, ""),
        ("max x --checkpoint c", {"checkpoint": Path("c")}, "max x --checkpoint c"),
        ("det x", {"resume": False, "output": None, "checkpoint": None}, ""),
        ("slice s3://user:secret@host/x y 5:", {"resume": False}, ""),
    ],
)
def test_the_way_on(args: str, params: dict[str, Any], expected: str | None) -> None:
    told = way_on(args.split(), params, 17)
    assert told == (f"rnsdask {args} --resume" if expected is None else expected and f"rnsdask {expected}")
    assert (
        way_on(["eval", "a * b", "-o", "o"], {"resume": False}, None) == "rnsdask eval 'a * b' -o o --resume"
    )


def test_what_reading_an_incomplete_store_says(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(store.StoreWriter, "finish", lambda _: 1 / 0)
        patch.setattr(store.PlainWriter, "finish", lambda _: 1 / 0)
        patch.setattr(store.ArrayWriter, "discard", lambda _: None)
        for job in ("eval x x=x -o o", "eval x<9 x=x -o m"):
            call(*job.split())
    way_out = "the command that began it goes on with --resume, or write it anew with overwrite=True"
    with pytest.raises(rd.IncompleteStoreError, match=f"o: the store is incomplete, .*; {way_out}$"):
        rd.open_zarr("o")
    with pytest.raises(rd.IncompleteStoreError, match=f"m: the array is incomplete, .*; {way_out}$"):
        store.open_plain("m")
    assert fail("max", "o").endswith("write the rest with --resume, or all of it anew with --overwrite")


# ---- reductions -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("job", ["sum x", "max x", "det matrix"])
def test_a_checkpoint_begins_and_answers_at_once(
    job: str, further: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is not there is begun; of one that is complete, no chunk is read."""
    command = [*words(job, further), "--checkpoint", "kept", "--no-progress"]
    first = succeed(*command).splitlines()[:2]

    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("a chunk was read")

    for name in ("read_chunk", "read_part"):
        monkeypatch.setattr(store.reading, name, refuse)
        monkeypatch.setattr(store, name, refuse)
    assert succeed(*command).splitlines()[:2] == first


# ---- what is told, and other places -----------------------------------------------------------------------


@pytest.fixture
def url() -> Iterator[str]:
    yield "memory://test-resume/o"
    fsspec.filesystem("memory").rm("/test-resume", recursive=True)


@pytest.mark.parametrize("job", ["eval x*x x=x -o", "eval x<9 x=x -o", "convert x --to interval -o"])
def test_object_stores(job: str, url: str) -> None:
    command = [*job.split(), url, "--no-progress"]
    succeed(*command, "--resume")
    file_system = fsspec.filesystem("memory")
    before = {name: about["created"] for name, about in file_system.find("/test-resume", detail=True).items()}
    assert "nothing to do" in succeed(*command, "--resume")
    after = {name: about["created"] for name, about in file_system.find("/test-resume", detail=True).items()}
    assert after == before
    assert re.fullmatch("[0-9a-f]{64}", json.loads(succeed("info", url, "--json"))["job"])
    other = [word.replace("x<9", "x<8").replace("x*x", "x+1") for word in command]
    if other != command:
        assert "of another job" in fail(*other, "--resume")
        succeed(*other, "--overwrite")
        assert "of another job" in fail(*command, "--resume")
        assert "nothing to do" in succeed(*other, "--resume")
    if "x<9" not in job:
        succeed("verify", url, "--no-progress")
    if "x*x" in job:
        append(url)
        assert store.locate(url).names() == {"c", "zarr.json"}
        assert "not known to be this job's" in fail(*other, "--resume")
        succeed("verify", url, "--no-progress")


def test_what_info_and_verify_say() -> None:
    for job, path in (("eval x x=x -o o", "o"), ("convert x -o g --to interval", "g")):
        succeed(*job.split(), "--no-progress")
        told = json.loads(Path(path, store.location.JOB_KEY).read_text())["job"]
        assert f"\njob        {told}\n" in succeed("info", path)
        assert "whole and valid" in succeed("verify", path, "--no-progress")
    assert json.loads(succeed("info", "x", "--json"))["job"] is None
    assert "\njob" not in succeed("info", "x")
    file = Path("o", store.location.JOB_KEY)
    for damaged in (b"", b"[]", b"{" * 10**5, b'{"job": 5}', b"x" * 10**5):
        file.write_bytes(damaged)
        assert json.loads(succeed("info", "o", "--json"))["job"] is None
        assert "not known to be this job's" in fail("eval", "x", "x=x", "-o", "o", "--resume")
