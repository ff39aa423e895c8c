"""Inputs of jobs that are begun again: known by their content, not by places and times."""

import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import zarr
from commands import as_json, contents, fail, succeed

import rnsdask as rd
from rnsdask.jobs.hashes import import_hash, input_of, job_hash
from rnsdask.store import Identity, open_info
from rnsdask.store.identity import PARTS, described, differences

MODULI = rd.ModuliSet.for_bits(64)
COUNT = 700

CHAIN: dict[str, list[object]] = {
    "import": ["import", "n.txt", "x.zarr", "--bits", 64, "--chunk", 128],
    "eval": ["eval", "x**2 + k", "x=x.zarr", "k=x.zarr", "-o", "y.zarr"],
    "mask": ["eval", "x*x - 7", "x=x.zarr", "-o", "m.zarr", "--mask", "mask.zarr", "--overflow", "flag"],
    "several": ["eval", "-e", "a=x+1", "-e", "b=x+2", "x=x.zarr", "-o", "a=a.zarr", "-o", "b=b.zarr"],
    "sort": ["sort", "y.zarr", "-o", "s.zarr"],
    "scan": ["cumsum", "x.zarr", "-o", "c.zarr"],
    "slice": ["slice", "s.zarr", "-o", "part.zarr", "3:9"],
}


def make(project: Path) -> None:
    """Run a chain of commands in a folder."""
    project.mkdir()
    (project / "n.txt").write_text("".join(f"{k}\n" for k in range(COUNT)))
    run(project)


def run(project: Path) -> list[bool]:
    """Run all steps with --resume; return which were complete already."""
    before = Path.cwd()
    os.chdir(project)
    try:
        done = ["complete already" in succeed(*words, "--resume") for words in CHAIN.values()]
        succeed("sum", "x.zarr", "--checkpoint", "kept")
        return done
    finally:
        os.chdir(before)


def move(old: Path, new: Path) -> None:
    old.rename(new)


def copy(old: Path, new: Path) -> None:
    """Copy with other inodes, and the same times."""
    shutil.copytree(old, new, symlinks=True)


def copy_anew(old: Path, new: Path) -> None:
    """Copy with other inodes and times."""
    shutil.copytree(old, new, copy_function=shutil.copy)
    time.sleep(0.01)


def archive(old: Path, new: Path) -> None:
    subprocess.run(["cp", "-a", str(old), str(new)], check=True)


def link(old: Path, new: Path) -> None:
    """Mount it elsewhere."""
    new.symlink_to(old)


@pytest.mark.parametrize("how", [move, copy, copy_anew, archive, link])
def test_a_project_that_lies_elsewhere_is_complete(how: Callable[[Path, Path], None], tmp_path: Path) -> None:
    make(tmp_path / "old")
    new = tmp_path / "new"
    how(tmp_path / "old", new)
    before = {name: contents(str(new / name)) for name in ("x.zarr", "y.zarr", "s.zarr")}
    assert run(new) == [True] * len(CHAIN)
    assert {name: contents(str(new / name)) for name in before} == before


def test_a_project_that_was_moved_goes_on(tmp_path: Path) -> None:
    make(tmp_path / "old")
    y = tmp_path / "old" / "y.zarr"
    document = json.loads((y / "zarr.json").read_text())
    job = json.loads((y / "rnsdask-job.json").read_text())
    recipe = {"complete": False, "recipe": job["job"], "recipe_of": job["job_of"]}
    document["attributes"]["rnsdask"] = {
        **{name: document["attributes"]["rnsdask"][name] for name in ("format", "moduli", "signed", "bound")},
        **recipe,
    }
    (y / "zarr.json").write_text(json.dumps(document))
    (y / "rnsdask-job.json").unlink()
    (y / "c" / "0" / "3").unlink()
    whole = [rd.open_zarr(tmp_path / "old" / name).to_ints().tolist() for name in ("x.zarr", "s.zarr")]
    (tmp_path / "old").rename(tmp_path / "new")
    os.chdir(tmp_path / "new")
    done = as_json(*CHAIN["eval"], "--resume")
    assert (done["chunks_kept"], done["chunks_rewritten"]) == (5, 0)
    assert sorted(rd.open_zarr("y.zarr").to_ints().tolist()) == whole[1]


def test_written_again_with_the_same_numbers(tmp_path: Path) -> None:
    make(tmp_path / "p")
    os.chdir(tmp_path / "p")
    shutil.rmtree("x.zarr")
    succeed(*CHAIN["import"])
    assert run(Path()) == [True] * len(CHAIN)


# ---- what has changed -------------------------------------------------------------------------------------


def refused(tmp_path: Path, change: Callable[[], object], step: str = "eval", *options: object) -> str:
    make(tmp_path / "p")
    os.chdir(tmp_path / "p")
    change()
    return fail(*CHAIN[step], *options, "--resume")


def put(values: list[int], chunks: int = 128, path: str = "x.zarr", moduli: rd.ModuliSet = MODULI) -> None:
    rd.from_ints(values, moduli, chunks=chunks).to_zarr(path, overwrite=True)


def changed(*places: int) -> list[int]:
    return [5 if k in places else k for k in range(COUNT)]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda: put(changed(1)), "x.zarr: 1 chunk differs"),
        (lambda: put(changed(0, 300, 640)), "x.zarr: 3 chunks differ"),
        (lambda: put(list(range(COUNT - 1))), "x.zarr: its shape: [699], was [700]"),
        (lambda: put(list(range(COUNT)), 64), "x.zarr: its chunks: [64], was [128]"),
        (
            lambda: put(list(range(COUNT)), moduli=rd.ModuliSet.for_bits(128)),
            "x.zarr: its number system: RNS(ModuliSet(5 moduli",
        ),
    ],
)
def test_a_refusal_says_what_differs_of_an_input(
    tmp_path: Path, change: Callable[[], object], told: str
) -> None:
    message = refused(tmp_path, change)
    assert message.startswith(
        f"{tmp_path}/p/y.zarr: it is complete, but of another job: input {tmp_path}/p/x.zarr"
    )
    assert told in message
    assert message.endswith("; replace it with --overwrite")


def test_a_refusal_says_what_differs_of_the_options(tmp_path: Path) -> None:
    make(tmp_path / "p")
    os.chdir(tmp_path / "p")
    words = ["x=x.zarr", "k=x.zarr", "-o", "y.zarr", "--resume"]
    assert ": expression: x**3 + k, was x**2 + k; replace" in fail("eval", "x**3 + k", *words)
    both = fail("eval", "x**3 + k", *words, "--overflow", "wrap")
    assert ": expression: x**3 + k, was x**2 + k; overflow: wrap, was raise; replace" in both
    assert ": operation: cumsum, was eval" in fail("cumsum", "x.zarr", "-o", "y.zarr", "--resume")
    assert "chunks: 64, was 128" in fail("import", "n.txt", "x.zarr", "--bits", 64, "--chunk", 64, "--resume")


def test_a_chunk_that_another_program_has_written_is_seen_though_no_time_tells(tmp_path: Path) -> None:
    """A time, a size and an inode that stay the same do not hide other numbers."""

    def change() -> None:
        file = Path("x.zarr/c/0/2")
        times, content = file.stat(), file.read_bytes()
        array = zarr.open_array("x.zarr", mode="r+")
        array[0, 300] = 11
        written = file.read_bytes()
        assert written != content
        with file.open("r+b") as stream:  # in its place
            stream.write(written)
        os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))

    assert "x.zarr: 1 chunk differs" in refused(tmp_path, change)


def test_a_file_that_is_imported(tmp_path: Path) -> None:
    def change() -> None:
        """Change a digit, and restore the times of the file."""
        file = Path("n.txt")
        times = file.stat()
        text = file.read_text().replace("\n300\n", "\n301\n")
        with file.open("r+") as stream:
            stream.write(text)
        os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))

    message = refused(tmp_path, change, "import")
    assert f": input {tmp_path}/p/n.txt: its content differs; replace" in message


def test_a_file_that_nobody_touched_is_not_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path / "p")
    os.chdir(tmp_path / "p")
    monkeypatch.setattr(os, "pread", lambda *_: pytest.fail("it is read"))
    succeed(*CHAIN["import"], "--resume")
    os.utime("n.txt")
    with pytest.raises(pytest.fail.Exception, match="it is read"):
        import_hash("n.txt", "x.zarr")


def test_a_checkpoint_says_what_differs(tmp_path: Path) -> None:
    make(tmp_path / "p")
    os.chdir(tmp_path / "p")
    assert "operation is 'sum'" in fail("max", "x.zarr", "--checkpoint", "kept")
    put(changed(1, 300))
    message = fail("sum", "x.zarr", "--checkpoint", "kept")
    assert f"cannot be continued: input {tmp_path}/p/x.zarr: 2 chunks differ" in message


# ---- identities -------------------------------------------------------------------------------------------


def test_many_chunks_are_described_briefly(tmp_path: Path) -> None:
    """A description is as long for any number of chunks, and counts no chunk that is the same."""
    parts = [f"{k:08x}" for k in range(10 * PARTS + 3)]
    one = described("x", {}, parts)
    assert len(one["parts"]) == PARTS
    for places in ((0,), (5, 5 + PARTS), (1, 2, 3)):
        others = ["changed" if k in places else part for k, part in enumerate(parts)]
        two = described("x", {}, others)
        assert one["content"] != two["content"]
        count = len({k % PARTS for k in places})
        jobs = (Identity.of("eval", {"a": each}).about for each in (two, one))
        assert differences(*jobs) == f"input x: {count} of its chunks differ, or more"


@pytest.mark.parametrize(
    "about", [None, 5, [], {}, {"operation": []}, {"operation": 1, "parameters": 2, "inputs": 3}]
)
def test_descriptions_that_nobody_vouches_for(about: object) -> None:
    own = Identity.of("eval", {"a": described("x", {"shape": [3]}, ["1"])}, expression="a").about
    assert isinstance(differences(own, about), str)
    for parts in (None, 5, "text", [1, None]):
        broken = {
            **own,
            "inputs": {"a": {"path": 7, "facts": {"shape": "[3]"}, "content": "", "parts": parts}},
        }
        assert isinstance(differences(own, broken), str)


def test_descriptions_have_no_secrets() -> None:
    url = "https://me:hunter2@host/x.zarr?token=hunter2"
    identity = Identity.of("eval", {"a": described(url, {}, ["1"])}, mask=url)
    assert "hunter2" not in json.dumps(identity.about)
    assert "https://***@host/x.zarr" in identity.about["inputs"]["a"]["path"]


def test_long_parameters_differ_in_their_texts() -> None:
    texts = ["a" * 500 + end for end in "bc"]
    one, two = (Identity.of("eval", {}, expression=text) for text in texts)
    assert one != two
    told = differences(one.about, two.about)
    assert told.startswith("expression: aaa")
    assert len(told) < 400
    assert one == Identity.of("eval", {}, expression=texts[0])


def test_identities_follow_from_content_alone(tmp_path: Path) -> None:
    for name in ("a", "b"):
        put([1, 2, 3], path=str(tmp_path / name))
    a, b = (open_info(rd.store.locate(str(tmp_path / name))) for name in ("a", "b"))
    assert job_hash("sort", {"0": a}) == job_hash("sort", {"0": b})
    assert job_hash("sort", {"0": a}).about != job_hash("sort", {"0": b}).about  # their paths
    assert job_hash("sort", {"0": a}) != job_hash("sort", {"0": a}, axis=1)
    assert input_of(a)["content"] == input_of(b)["content"]


def test_folders_that_are_imported(tmp_path: Path) -> None:
    """Residues of a Zarr array of another program."""
    os.chdir(tmp_path)
    zarr.create_array("a", data=np.arange(12, dtype=np.int64).reshape(2, 6), chunks=(2, 3))
    shutil.copytree("a", "b")
    words = ["--residues", "--moduli-list", "97,101", "--resume"]
    succeed("import", "a", "x", *words)
    assert as_json("import", "b", "x", *words)["already_complete"]
    zarr.open_array("b", mode="r+")[0, 0] = 5
    assert f"input {tmp_path}/b: 1 file differs; replace" in fail("import", "b", "x", *words)
    assert import_hash("-", "x") is None
