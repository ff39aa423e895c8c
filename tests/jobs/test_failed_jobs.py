"""Files after a job that fails by its data: nothing that it began, and all that was there before."""

import errno
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event, Semaphore
from time import sleep
from typing import Any

import dask
import fsspec
import numpy as np
import pytest
from commands import call, fail, succeed
from dask.distributed import Client, LocalCluster
from forking import forked_workers

import rnsdask as rd
from rnsdask import store
from rnsdask.core.errors import NumberError, StoreAccessError, StoreError
from rnsdask.lazy import blocks
from rnsdask.rns.system import RNS

MODULI = rd.ModuliSet.for_bits(64)
SMALL = list(range(1000))
LARGE = [*SMALL, MODULI.product - 1]
OF_RANDOM = ["--count", 1000, "--bits", 64, "--chunk", 128, "--seed", 1]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a store of large numbers and one of small ones."""
    folder = tmp_path_factory.mktemp("made")
    rd.from_ints(LARGE, MODULI, chunks=128).to_zarr(folder / "a")
    rd.from_ints(SMALL, MODULI, chunks=128).to_zarr(folder / "old")
    return folder


@pytest.fixture(autouse=True)
def folder(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies of them, of which a test may change any."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def workers() -> Iterator[LocalCluster]:
    how: dict[str, Any] = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with forked_workers(), LocalCluster(processes=True, **how) as cluster:
        yield cluster


def files() -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in Path().rglob("*") if path.is_file()}


def signed(values: list[int]) -> rd.RNSArray:
    return rd.from_ints(values, MODULI, signed=True, chunks=128)


def prepare(kind: str) -> None:
    """Make what the command of a kind reads."""
    if kind == "import":
        Path("n").write_text("\n".join([*map(str, SMALL), "x", "5"]))
    elif kind == "count":
        Path("n").write_text("\n".join(map(str, SMALL)))
    elif kind == "binary":
        Path("n").write_bytes(b"\1" * 8 * 300 + b"\xff" * 7)
    elif kind == "matrix":
        Path("n").write_text("%%MatrixMarket matrix coordinate integer general\n300 1 2\n1 1 5\n300 1 x\n")
    elif kind == "residues":
        residues = rd.from_ints(SMALL, rd.ModuliSet([97, 101, 103])).words.copy()
        residues[1, 900] = 101
        np.save("n.npy", residues)
    elif kind == "negative":
        signed([*SMALL, -5]).to_zarr("s")
    elif kind == "interval":
        rd.IntervalRNSArray.from_rns(signed([*SMALL, MODULI.product // 2 - 1])).to_zarr("g")
    elif kind in ("positional", "powmod", "batchgcd"):
        rd.from_ints([*SMALL, 2**64 - 1], rd.Positional(64, False), chunks=128).to_zarr("p")


JOBS = {
    "eval": "eval a*a a=a -o y",
    "mask": "eval a*a+a//a a=a -o y --mask m --overflow flag",
    "two": "eval -e b=a//2 -e c=a*a a=a -o b=y -o c=z",
    "divisor": "eval a//a a=a -o y",
    "intervals": "eval g*g g=g -o y",
    "cumsum": "cumsum a -o y",
    "convolve": "convolve a a -o y",
    "powmod": "powmod p -1 7 -o y",
    "batchgcd": "batchgcd p -o y",
    "shrink": "shrink a -o y --bits 32",
    "negative": "convert s -o y --to positional --unsigned",
    "bits": "convert a -o y --to positional --bits 32",
    "positional": "eval p*p p=p -o y",
    "import": "import n y --bits 64 --chunk 128",
    "count": "import n y --bits 64 --chunk 128 --shape 1001",
    "binary": "import n y --bits 64 --chunk 128 --binary 8",
    "matrix": "import n y --bits 64 --chunk 128",
    "residues": "import n.npy y --residues --moduli-list 97,101,103 --chunk 128",
}


def words_of(kind: str) -> list[str]:
    prepare("interval" if kind == "intervals" else kind)
    return JOBS[kind].split()


@pytest.mark.parametrize("kind", JOBS)
def test_a_command_that_fails_by_its_data_leaves_nothing(kind: str) -> None:
    words = words_of(kind)
    before = files()
    fail(*words)
    assert files() == before
    assert not Path("y").exists()


@pytest.mark.parametrize("kind", JOBS)
def test_what_was_to_be_replaced_stays(kind: str) -> None:
    words = words_of(kind)
    (signed(SMALL) if kind != "intervals" else rd.IntervalRNSArray.from_rns(signed(SMALL))).to_zarr("y")
    before = files()
    fail(*words, "--overwrite")
    assert files() == before
    assert sorted(path.name for path in Path().iterdir()) == sorted({name.split("/")[0] for name in before})


def test_the_message_can_be_followed_at_once() -> None:
    assert "extend" in fail("eval", "a*a", "a=a", "-o", "sq.zarr")
    assert call("eval", "a*a", "a=a", "-o", "sq.zarr", "--extend").exit_code == 0
    assert rd.open_zarr("sq.zarr").to_ints().tolist() == [value**2 for value in LARGE]


def test_a_task_that_goes_on_makes_nothing_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is about to make the folder of its chunk when the store is removed."""
    writer = store.create("y", RNS(MODULI), (256,), chunks=128)
    make, words = Path.mkdir, np.zeros((len(MODULI), 128), np.uint32)

    def lose_and_make(path: Path, *args: Any, **options: Any) -> None:
        if path.name == "c" and Path("y.partial/zarr.json").exists():
            writer.discard()
        make(path, *args, **options)

    monkeypatch.setattr(Path, "mkdir", lose_and_make)
    with pytest.raises(StoreError, match="it was removed"):
        writer.write_chunk((0,), words)
    assert not Path("y").exists()
    assert not Path("y.partial").exists()


@pytest.mark.parametrize("how", ["command", "Python"])
def test_an_error_waits_for_tasks_of_other_threads(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error is there while another chunk is written, which ends some time later."""
    begun, failed = Semaphore(1), Event()
    write, ended = store.StoreWriter.write_chunk, []

    def write_late(writer: store.StoreWriter, index: tuple[int, ...], words: Any) -> None:
        if not begun.acquire(blocking=False):
            failed.set()
            raise ZeroDivisionError("division by zero")
        assert failed.wait(60)
        sleep(0.2)
        write(writer, index, words)
        ended.append(index)

    monkeypatch.setattr(store.StoreWriter, "write_chunk", write_late)
    with dask.config.set(num_workers=2):
        if how == "command":
            fail("eval", "old+1", "old=old", "-o", "y")
        else:
            with pytest.raises(ZeroDivisionError):
                (rd.open_zarr("old") + 1).to_zarr("y")
    assert ended, "the chunk was still being written"
    assert not Path("y").exists()


def test_on_a_cluster(workers: LocalCluster) -> None:
    before = files()
    fail("eval", "a*a", "a=a", "-o", "y", "--scheduler", workers.scheduler_address)
    array = rd.open_zarr("a")
    with Client(workers), pytest.raises(rd.RNSOverflowError):
        (array * array).to_zarr("y")
    assert files() == before


def test_a_resumed_job_leaves_what_it_found(monkeypatch: pytest.MonkeyPatch) -> None:
    words = words_of("import")
    with monkeypatch.context() as patched:
        patched.setattr(store.StoreWriter, "write_chunk", failing(OSError("x")))
        fail(*words)
    before = {name: content for name, content in files().items() if name.startswith("y.partial/c")}
    assert len(before) == 2
    assert "n:1001: " in fail(*words, "--resume")
    assert before.items() <= files().items()


def test_a_full_disk_leaves_what_a_resumed_job_found_and_has_added(monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["random", "y", *OF_RANDOM]
    for error, mode in ((OSError(errno.EROFS, "no"), []), (no_room(), ["--resume"])):
        with monkeypatch.context() as patched, dask.config.set(num_workers=1):
            patched.setattr(store.StoreWriter, "write_chunk", failing(error))
            fail(*words, *mode)
    assert len([name for name in files() if name.startswith("y.partial/c")]) == 4
    succeed(*words, "--resume")


def failing(error: Exception, count: int = 2) -> Callable[..., Any]:
    """Return a `write_chunk` that writes some chunks, and then fails."""
    write, left = store.StoreWriter.write_chunk, [count]

    def writing(*args: Any) -> Any:
        left[0] -= 1
        if left[0] < 0:
            raise error
        return write(*args)

    return writing


def no_room(*_args: object) -> StoreAccessError:
    return StoreAccessError.of("y: chunk c/0", OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))


@pytest.mark.parametrize(
    ("error", "stays"),
    [
        (no_room(), False),
        (ZeroDivisionError("division by zero"), False),
        (NumberError("no inverse"), False),
        (StoreAccessError("unplugged", errno.EIO), True),
        (ConnectionError("gone"), True),
        (MemoryError(), True),
        (RuntimeError("a device"), True),
    ],
)
@pytest.mark.parametrize(
    "command", ["random y", "rechunk old -o y --chunks 100", "eval old+1 old=old -o y", "cumsum old -o y"]
)
def test_what_may_pass_leaves_what_can_be_resumed(
    command: str, error: Exception, stays: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = [*command.split(), *(OF_RANDOM if command == "random y" else [])]
    with monkeypatch.context() as patched, dask.config.set(num_workers=1):
        patched.setattr(store.StoreWriter, "write_chunk", failing(error))
        fail(*words, "--retries", 0)
    assert Path("y.partial").exists() == stays
    assert not Path("y").exists()
    succeed(*words, *(["--resume"] if stays else []))


@pytest.mark.parametrize("passes", [1, 3])
def test_a_full_disk_between_the_passes_of_a_transform(passes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    from rnsdask.jobs import transform

    monkeypatch.setattr(transform, "default_chunk", lambda _rows: 16)
    fields = rd.PrimeFields(rd.ModuliSet.ntt_primes(30, 64))
    rd.random(fields, 64, seed=1, chunks=8).to_zarr("f")
    before = files()
    with monkeypatch.context() as patched, dask.config.set(num_workers=1):
        write = failing(no_room(), count=8 * passes)
        patched.setattr(store.StoreWriter, "write_chunk", write)
        assert "No space left" in fail("ntt", "f", "-o", "y")
    assert files() == before
    assert sorted(path.name for path in Path().iterdir()) == ["a", "f", "old"]


# ---- Python -----------------------------------------------------------------------------------------------


def overflowing(kind: str) -> Any:
    """An array whose last number has no result."""
    if kind == "limbs":
        return rd.from_ints([*SMALL, 2**64 - 1], rd.Positional(64, False), chunks=128) ** 2
    if kind == "fields":
        return 1 / rd.from_ints([*SMALL, 0], rd.PrimeFields([65537]), chunks=128)
    array = rd.open_zarr("a")
    return array * array


@pytest.mark.parametrize("kind", ["residues", "limbs", "fields"])
@pytest.mark.parametrize("how", [{}, {"mode": "w"}, {"append_dim": 0}])
@pytest.mark.parametrize("place", ["y", "memory://failed-jobs/y"])
def test_to_zarr_that_fails_by_its_data_leaves_nothing(kind: str, how: dict[str, Any], place: str) -> None:
    array = overflowing(kind)
    system = array.system if kind != "residues" else array.system.with_bound(None)
    file_system, root = fsspec.core.url_to_fs(place)
    if how:
        rd.from_ints(SMALL, system, chunks=128).to_zarr(place, mode="w")
    stays = bool(how) and not ("://" in place and how.get("mode") == "w")  # what a URL overwrites is gone
    before = {name: file_system.cat(name) for name in (file_system.find(root) if stays else [])}
    with pytest.raises((ArithmeticError, ValueError)):
        array.to_zarr(place, **how)
    found = file_system.find(root) if file_system.exists(root) else []
    assert {name: file_system.cat(name) for name in found} == before
    if stays:
        assert rd.open_zarr(place).to_ints().tolist() == SMALL
        file_system.rm(root, recursive=True)


# ---- places that cannot be written ------------------------------------------------------------------------


def no_chunk(*_args: object, **_options: object) -> None:
    raise AssertionError("a chunk is computed before its place is looked at")


@pytest.mark.parametrize(
    "command",
    [
        "eval a+1 a=a -o y",
        "cumsum a -o y",
        "cummax a -o y",
        "shrink a -o y --bits 32",
        "extend a -o y --bits 300",
        "convert a -o y --to positional",
        "convert a -o y --to interval",
        "convolve a a -o y",
        "powmod p 3 7 -o y",
        "slice a -o y 3:700",
        "rechunk a -o y --chunks 100",
        "concat a old -o y",
        "reshape a -o y 7,143",
        "random y --count 9 --bits 64 --seed 1",
        "import n y --bits 64",
        "import m y --bits 64",
    ],
)
def test_places_are_looked_at_before_anything_is_computed(
    command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rnsdask.io.integer_reading import TextReader

    prepare("positional")
    Path("n").write_text("5\n")
    Path("m").write_text("%%MatrixMarket matrix array integer general\n1 1\n5\n")
    for name in ("taken", "folder"):
        Path(name).mkdir()
        Path(name, "other").write_text("other")
    before = files()
    for module in (store.reading, store, blocks):
        for name in ("read_chunk", "read_part", "read_whole_chunk"):
            if hasattr(module, name):
                monkeypatch.setattr(module, name, no_chunk)
    monkeypatch.setattr(TextReader, "read", no_chunk)
    words = command.split()
    at = words.index("y")
    for place, options in (
        ("taken", []),
        ("folder", ["--overwrite"]),
        ("taken", ["--resume"]),
        ("n" * 256, []),
    ):
        words[at] = place
        message = fail(*words, *options)
        assert place in message
        assert "before its place" not in message
    assert files() == before


def test_to_zarr_looks_at_its_place_before_it_computes_lengths() -> None:
    computed = []

    def see(block: Any) -> Any:
        computed.append(block)
        return block

    array = rd.from_ints(SMALL, MODULI, chunks=128)
    seen = rd.RNSArray(array.words.map_blocks(see, dtype=np.uint32, meta=array.words._meta), array.system)
    few = seen[seen > 990]
    computed.clear()
    with pytest.raises(StoreError, match="old: it exists"):
        few.to_zarr("old")
    with pytest.raises(StoreError, match="it cannot be written"):
        few.to_zarr("/proc/y", mode="w")
    assert not computed
    few.to_zarr("old", mode="w")
    assert rd.open_zarr("old").to_ints().tolist() == list(range(991, 1000))
