"""Files of a checkpoint that are none: pipes, devices, folders, links to them, files without an end."""

import os
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from commands import fail, succeed

import rnsdask as rd
from rnsdask.jobs import checkpoint

pytestmark = pytest.mark.usefixtures("in_empty_folder")


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """End the test if it hangs."""

    def end(*_: object) -> None:
        raise TimeoutError("it hangs")

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def pipe(path: Path) -> None:
    os.mkfifo(path)


def link_to_a_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def folder(path: Path) -> None:
    path.mkdir()


MAKERS: list[tuple[Callable[[Path], None], str]] = [
    (pipe, "it is no regular file"),
    (link_to_a_device, "it is no regular file"),
    (folder, "Is a directory|it is no regular file"),
]


@pytest.mark.parametrize("name", ["job.json", "piece-00000.json", "piece-00001.json"])
@pytest.mark.parametrize(("make", "why"), MAKERS)
def test_what_is_no_file(name: str, make: Callable[[Path], None], why: str) -> None:
    rd.from_ints(range(500), rd.ModuliSet.for_bits(64), chunks=128).to_zarr("x.zarr")
    succeed("sum", "x.zarr", "--checkpoint", "kept")
    Path("kept", name).unlink()
    make(Path("kept", name))
    with at_most(seconds=3):
        message = fail("sum", "x.zarr", "--checkpoint", "kept")
    assert re.fullmatch(f"kept/{name}: the checkpoint cannot be (used|read): ({why})", message)


def test_a_file_without_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint, "LONGEST", 2**12)
    rd.from_ints(range(500), rd.ModuliSet.for_bits(64), chunks=128).to_zarr("x.zarr")
    expected = succeed("sum", "x.zarr", "--checkpoint", "kept", "--digits", "all").split("(")[0]
    os.truncate("kept/piece-00002.json", 2**12 + 1)
    assert "kept/piece-00002.json: the checkpoint cannot be read: it has more than 4.096 kB" in fail(
        "sum", "x.zarr", "--checkpoint", "kept"
    )
    os.truncate("kept/piece-00002.json", 2**12)  # a damaged file is computed again
    assert succeed("sum", "x.zarr", "--checkpoint", "kept").split("(")[0] == expected


def test_nested_without_end() -> None:
    rd.from_ints(range(500), rd.ModuliSet.for_bits(64), chunks=128).to_zarr("x.zarr")
    expected = succeed("sum", "x.zarr", "--checkpoint", "kept").split("(")[0]
    Path("kept/piece-00002.json").write_text("[" * 100_000)
    assert succeed("sum", "x.zarr", "--checkpoint", "kept").split("(")[0] == expected
    Path("kept/job.json").write_text("[" * 100_000)
    assert "job.json: it is damaged" in fail("sum", "x.zarr", "--checkpoint", "kept")
