"""Outputs of whole processes: failed writes, and text that must not reach a terminal."""

import copy
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
from commands import call, fail, succeed
from distributed import LocalCluster
from forks import Commands, Ended
from strategies import slow

import rnsdask as rd
from rnsdask import store
from rnsdask.core import files, messages
from rnsdask.core.errors import JobError
from rnsdask.jobs import exporting, reduction

VALUES = [(i * 7919) % 2**40 for i in range(300)]

# Each reads the store {x}, or makes what it needs.
COMMANDS: dict[str, list[str]] = {
    "moduli": ["moduli", "--bits", "64"],
    "import": ["import", "{numbers}", "new.zarr", "--bits", "64"],
    "random": ["random", "new.zarr", "--bits", "64", "--count", "9", "--seed", "1"],
    "info": ["info", "{x}"],
    "verify": ["verify", "{x}"],
    "export": ["export", "{x}", "out.txt"],
    "export to standard output": ["export", "{x}", "-"],
    "max": ["max", "{x}"],
    "min": ["min", "{x}"],
    "sum": ["sum", "{x}"],
    "eval": ["eval", "x+1", "x={x}", "--sum", "--max"],
    "eval to a store": [
        "eval",
        "x+1",
        "x={x}",
        "-o",
        "new.zarr",
        "--overflow",
        "flag",
        "--mask",
        "mask.zarr",
    ],
    "cumsum": ["cumsum", "{x}", "-o", "new.zarr"],
    "cummax": ["cummax", "{x}", "-o", "new.zarr"],
    "cummin": ["cummin", "{x}", "-o", "new.zarr"],
    "convert": ["convert", "{x}", "-o", "new.zarr", "--to", "interval"],
    "slice": ["slice", "{x}", "-o", "new.zarr", "::-1"],
    "prod": ["prod", "{x}", "--overflow", "wrap"],
    "topk": ["topk", "3", "{x}"],
    "compare": ["compare", "{x}", "{x}"],
}
READING = [name for name in COMMANDS if name not in ("moduli", "random")]
LIKE_OTHERS = ("random", "min", "sum", "cummax", "cummin", "convert", "slice", "prod")
EACH_COMMAND = pytest.mark.parametrize(
    "name", [*(name for name in COMMANDS if name not in LIKE_OTHERS), *slow(*LIKE_OTHERS)]
)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a store, one without numbers, and a file of numbers."""
    folder = tmp_path_factory.mktemp("made")
    moduli = rd.ModuliSet.for_bits(64)
    rd.from_ints(VALUES, moduli, chunks=128).to_zarr(folder / "x.zarr")
    rd.from_ints(VALUES[:0], moduli, chunks="auto").to_zarr(folder / "empty.zarr")
    (folder / "numbers.txt").write_text("1\n2\n")
    return folder


pytestmark = pytest.mark.usefixtures("in_empty_folder")


def words(name: str, made: Path, **places: object) -> list[str]:
    """The words of a command, with the store and the file of numbers that are made, or others."""
    known = {"x": made / "x.zarr", "numbers": made / "numbers.txt", **places}
    return [word.format(**known) for word in COMMANDS[name]]


def run_here(*args: object) -> Ended:
    """Run a command in this process, in the folder where it is: quicker, where no stream is of interest."""
    result = call(*args)
    return Ended(result.exit_code, result.stdout, result.stderr, 0)


def failed_status(name: str) -> int:
    return 2 if name == "compare" else 1


def check_one_line(ended: Ended) -> str:
    """Check that a command ended in one line that a terminal can show; return its message."""
    assert ended.status in (1, 2), ended
    match = re.fullmatch(r"rnsdask: error: (.*)\n", ended.stderr)
    assert match, ended
    assert match[1].isprintable()
    return match[1]


# ---- Standard streams -------------------------------------------------------------------------------------


@EACH_COMMAND
def test_output_that_cannot_be_written(name: str, commands: Commands, made: Path, tmp_path: Path) -> None:
    closed = commands.run(*words(name, made), folder=tmp_path, stdout=None)
    assert check_one_line(closed) == "standard output is closed"
    assert closed.status == failed_status(name)
    assert not list(tmp_path.iterdir()), "it was checked before anything was done"
    for options in ([], ["--json"]):
        if name == "export to standard output" and options:
            continue
        full = commands.run(*words(name, made), *options, folder=tmp_path, stdout="/dev/full")
        assert check_one_line(full) == "standard output cannot be written: No space left on device"
        assert full.status == failed_status(name)
        for file in tmp_path.iterdir():
            shutil.rmtree(file) if file.is_dir() else file.unlink()


@pytest.mark.parametrize("option", ["--help", "--version", "max --help"])
def test_help_that_cannot_be_printed(option: str, commands: Commands, tmp_path: Path) -> None:
    for stdout in (None, "/dev/full"):
        ended = commands.run(*option.split(), folder=tmp_path, stdout=stdout)
        assert check_one_line(ended).startswith("standard output ")
        assert ended.status == 1


@EACH_COMMAND
def test_errors_that_cannot_be_written(name: str, commands: Commands, made: Path, tmp_path: Path) -> None:
    for i, stderr in enumerate((None, "/dev/full")):
        (tmp_path / str(i)).mkdir()
        progress = [] if name in ("moduli", "info") else ["--progress"]
        ended = commands.run(*words(name, made), *progress, folder=tmp_path / str(i), stderr=stderr)
        assert ended.status == 0
        assert ended.stdout or name == "export"
        assert "%" not in ended.stdout, "progress is no output"


def test_error_status_without_standard_error(commands: Commands, tmp_path: Path) -> None:
    for stderr in (None, "/dev/full"):
        assert commands.run("max", "none.zarr", folder=tmp_path, stderr=stderr)[:3] == (1, "", "")
        assert commands.run("compare", "none.zarr", "5", folder=tmp_path, stderr=stderr).status == 2


def test_closed_streams_are_not_the_stores(commands: Commands, made: Path, tmp_path: Path) -> None:
    """A file that is opened where a stream was closed has the stream's number."""
    args = words("eval to a store", made)
    assert commands.run(*args, folder=tmp_path, stdin=None, stderr=None).status == 0
    assert commands.run("verify", "new.zarr", folder=tmp_path).status == 0


def test_closed_input(commands: Commands, tmp_path: Path) -> None:
    ended = commands.run("import", "-", "x.zarr", "--bits", 64, folder=tmp_path, stdin=None)
    assert check_one_line(ended) == "standard input is closed"


def test_reader_that_goes_away(made: Path) -> None:
    """Quiet, and with a status that is no answer of compare either."""
    program = [sys.executable, "-c", "from rnsdask.cli import main; main(prog_name='rnsdask')"]
    read, write = os.pipe()
    os.close(read)
    x = str(made / "x.zarr")
    ended = subprocess.run(
        [*program, "compare", x, x], stdout=write, stderr=subprocess.PIPE, check=False, timeout=300
    )
    os.close(write)
    assert (ended.returncode, ended.stderr) == (141, b"")


# ---- Inputs -----------------------------------------------------------------------------------------------

STRANGE = "a\x1b[31mb\x9bc\u202ed"


@pytest.mark.parametrize("name", READING)
def test_inputs_that_are_none(name: str, commands: Commands, made: Path, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("x\n")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / os.fsdecode(b"\xff\xfe")).mkdir()
    (tmp_path / STRANGE).mkdir()
    before = sorted(tmp_path.iterdir())
    places = ["none", "folder", "file", "file/x", "loop", "/dev/null", os.fsdecode(b"\xff\xfe"), STRANGE]
    places += ["none\nrnsdask: error: a line of its own", "n" * 300]
    for place in places:
        args = words(name, made, x=place, numbers=place)
        ended = run_here(*args) if place.isprintable() else commands.run(*args, folder=tmp_path)
        check_one_line(ended)
        assert (ended.status, ended.stdout) == (failed_status(name), ""), place
        assert sorted(tmp_path.iterdir()) == before, place


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
@pytest.mark.parametrize("name", READING)
def test_unreadable_inputs(name: str, commands: Commands, made: Path, tmp_path: Path) -> None:
    shutil.copytree(made / "x.zarr", tmp_path / "x.zarr")
    (tmp_path / "numbers").write_text("1\n")
    for file in (tmp_path / "x.zarr/zarr.json", tmp_path / "numbers"):
        file.chmod(0)
    ended = commands.run(*words(name, made, x="x.zarr", numbers="numbers"), folder=tmp_path)
    assert "Permission denied" in check_one_line(ended)


@pytest.mark.parametrize("name", [name for name in READING if name != "import"])
def test_a_store_without_numbers(name: str, commands: Commands, made: Path, tmp_path: Path) -> None:
    ended = commands.run(*words(name, made, x=made / "empty.zarr"), folder=tmp_path)
    if ended.status:
        assert re.search("empty array", check_one_line(ended))
        assert name in ("max", "min", "sum", "eval")
    else:
        assert ended.stderr == ""


OUTPUTS = ["import", "random", "eval to a store", "cumsum", "cummax", "cummin", "convert", "slice"]


@pytest.mark.parametrize("name", OUTPUTS)
def test_outputs_that_cannot_be(name: str, made: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    (tmp_path / "loop").symlink_to("loop")
    for place in ("file", "file/x", "loop", "/dev/full", "/dev/null/x", "n" * 300):
        args = [word.replace("new.zarr", place) for word in words(name, made)]
        check_one_line(run_here(*args))
        assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize(
    "command",
    [
        ["max", "{x}", "--checkpoint", "{place}"],
        ["max", "{x}", "--log-json", "{place}"],
        ["max", "{x}", "--scheduler-file", "{place}"],
        ["moduli", "--moduli", "{place}"],
        ["export", "{x}", "{place}"],
        ["eval", "x+1", "x={x}", "-o", "{place}/y.zarr"],
        ["eval", "x+1", "x={x}", "-o", "out.zarr", "--overflow", "flag", "--mask", "{place}"],
    ],
)
def test_files_of_options_that_cannot_be(
    command: list[str], commands: Commands, made: Path, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("mine")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/file").write_text("mine")
    (tmp_path / "loop").symlink_to("loop")
    for place in ("file", "folder", "file/x", "loop", "/dev/full/x", STRANGE + "/x", "n" * 300):
        if (command[-2], place) in (("--log-json", "file"), ("-o", "folder")):
            continue  # a log is replaced, and there is room in a folder
        if place.startswith(STRANGE) and (command[0] == "eval" or "--checkpoint" in command):
            continue  # the folder is made
        args = [word.format(x=made / "x.zarr", place=place) for word in command]
        ended = run_here(*args) if place.isprintable() else commands.run(*args, folder=tmp_path)
        check_one_line(ended)
        assert ended.stdout == ""
    assert (tmp_path / "file").read_text() == (tmp_path / "folder/file").read_text() == "mine"


def test_stores_that_would_talk_to_a_terminal(commands: Commands, made: Path, tmp_path: Path) -> None:
    """Texts of a store and names of files in it are shown and not obeyed."""
    document = json.loads((made / "x.zarr/zarr.json").read_text())
    changes: list[Callable[[Any], object]] = [
        lambda d: d["codecs"][0].update(name=STRANGE),
        lambda d: d.update(node_type=STRANGE),
        lambda d: d.update(data_type=STRANGE),
        lambda d: d["attributes"]["rnsdask"].update(format=STRANGE),
        lambda d: d["attributes"]["rnsdask"].update(bound=STRANGE),
        lambda d: d["attributes"]["rnsdask"].update(moduli=STRANGE),
        lambda d: d["attributes"]["rnsdask"].update(moduli=[STRANGE]),
    ]
    shutil.copytree(made / "x.zarr", tmp_path / "x.zarr")
    for change in changes:
        changed = copy.deepcopy(document)
        change(changed)
        (tmp_path / "x.zarr/zarr.json").write_text(json.dumps(changed))
        for name in ("info", "max", "verify"):
            check_one_line(commands.run(name, "x.zarr", folder=tmp_path))
    (tmp_path / "x.zarr/zarr.json").write_text(json.dumps(document))
    (tmp_path / "x.zarr" / f"{STRANGE}\nx.zarr: 300 integers, whole and valid").write_text("")
    ended = commands.run("verify", "x.zarr", folder=tmp_path)
    assert ended.status == 1
    (line,) = ended.stdout.splitlines()
    assert line.isprintable()


def test_names_with_line_ends(commands: Commands, made: Path, tmp_path: Path) -> None:
    (tmp_path / "x\ny.zarr").symlink_to(made / "x.zarr")
    (tmp_path / os.fsdecode(b"x\xff.zarr")).symlink_to(made / "x.zarr")
    for name, shown in (("x\ny.zarr", r"x\ny.zarr"), (os.fsdecode(b"x\xff.zarr"), r"x\udcff.zarr")):
        ended = commands.run("verify", name, folder=tmp_path)
        assert (ended.status, ended.stdout.count("\n")) == (0, 1)
        assert ended.stdout.startswith(f"{shown}: 300 integers")
        ended = commands.run("info", name, folder=tmp_path)
        assert ended.stdout.splitlines()[0] == f"store      {tmp_path}/{shown}"
        assert len(ended.stdout.splitlines()) == 9
        assert json.loads(commands.run("info", name, "--json", folder=tmp_path).stdout)["store"].endswith(
            name
        )


# ---- Secrets ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("s3://AKIA:a/b+c@bucket/x.zarr: no", "s3://***@bucket/x.zarr: no"),
        ("http://user:p@ss@host:80/a b@c", "http://***@host:80/a b@c"),
        ("https://token@host/x", "https://***@host/x"),
        ("redis://:word@host/1", "redis://***@host/1"),
        ("https://h/x?X-Amz-Signature=ab&sig=cd end", "https://h/x?X-Amz-Signature=***&sig=*** end"),
        ("https://h/x?token=ab;key=cd#t=e", "https://h/x?token=***;key=***#t=***"),
        ("https://h/x?sig=ab: it cannot be read", "https://h/x?sig=***: it cannot be read"),
        ("'ftp://u:p@h/x', \"ftp://u:p@h/y\"", "'ftp://***@h/x', \"ftp://***@h/y\""),
        ("a=s3://k:s@b/x,b=s3://b/y", "a=s3://***@b/x,b=s3://b/y"),
    ],
)
def test_secrets_by_hand(text: str, shown: str) -> None:
    assert messages.redact(text) == shown


@pytest.mark.parametrize(
    "text", ["http://host:8080/x@y", "abfs://container@account/x", "s3://b/x.zarr", "a@b: c@d", "memory://x"]
)
def test_what_is_no_secret(text: str) -> None:
    assert messages.redact(text) == text


def test_secrets_are_shown_nowhere(made: Path, tmp_path: Path) -> None:
    """In no command's output, error, log, traceback or store's name; and the store is reached with them."""
    import fsspec
    from fsspec.implementations.memory import MemoryFileSystem

    class Guarded(MemoryFileSystem):  # type: ignore[misc]
        protocol = ("guarded",)
        store: ClassVar[dict[str, Any]] = {}
        pseudo_dirs: ClassVar[list[str]] = [""]

        @classmethod
        def _strip_protocol(cls, path: str) -> str:
            found = re.match(r"guarded://user:Secret-1@host(/[^?]*)", path)
            if found is None and "://" in path:
                raise ValueError(f"{path}: wrong password")
            return found[1] if found else str(MemoryFileSystem._strip_protocol(path))

    fsspec.register_implementation("guarded", Guarded, clobber=True)
    url = "guarded://user:Secret-1@host/x.zarr"
    log = tmp_path / "log"
    out = succeed("random", url, "--count", 300, "--bits", 64, "--chunk", 128, "--seed", 3, "--log-json", log)
    assert "guarded://***@host/x.zarr: 300 random integers" in out
    for options in ([], ["--json"]):
        for args in (["info"], ["verify"], ["max"], ["compare", 5], ["eval", "x+1"]):
            rest = ["x=" + url, "--max"] if args[0] == "eval" else [url, *args[1:]]
            line = [*args, *rest] if args[0] == "eval" else [args[0], *rest]
            extra = [] if args[0] == "info" else ["--log-json", log]
            result = call(*line, *extra, *options)
            assert result.exit_code in (0, 1), result.output
            assert "Secret" not in result.output + log.read_text()
    assert json.loads(succeed("max", url, "--json"))["store"] == "guarded://***@host/x.zarr"
    bad = "guarded://user:Secret-2@host/x.zarr?token=Secret-3"
    result = call("max", bad, "--debug", "--log-json", log)
    assert result.exit_code == 1
    assert "guarded://***@host/x.zarr?token=***" in result.stderr
    assert "Secret" not in result.output + log.read_text()
    with pytest.raises(ValueError, match="wrong password") as error:
        rd.open_zarr(bad)
    assert "Secret" not in str(error.value)
    x = rd.open_zarr(url)
    assert int(x.max()) == int(json.loads(succeed("max", url, "--json"))["value"])
    assert "Secret" not in repr(store.open_info(url)) + repr(x)


# ---- export -----------------------------------------------------------------------------------------------


def lines(values: list[int]) -> bytes:
    return b"".join(b"%d\n" % value for value in values)


def test_export_leaves_other_files_alone(made: Path) -> None:
    other = Path("other")
    other.write_text("mine")
    Path("out.part").write_text("mine too")
    succeed("export", made / "x.zarr", "out")
    Path("out2.part").symlink_to("other")
    succeed("export", made / "x.zarr", "out2")
    assert (other.read_text(), Path("out.part").read_text()) == ("mine", "mine too")
    assert Path("out").read_bytes() == Path("out2").read_bytes() == lines(VALUES)
    assert sorted(file.name for file in Path().iterdir()) == ["other", "out", "out.part", "out2", "out2.part"]


def test_two_exports_to_one_file(made: Path) -> None:
    """Both write at the same time, to files of their own; the later one finds the name taken."""
    met = threading.Barrier(2, timeout=300)
    info = store.open_info(str(made / "x.zarr"))
    refusals: list[str] = []

    def export() -> None:
        try:
            with files.new_file(Path("out"), overwrite=overwrite) as stream:
                met.wait()
                exporting.export_integers(exporting.Numbers.of(info), stream)
                met.wait()
        except JobError as error:
            refusals.append(str(error))

    for overwrite in (False, True):
        refusals.clear()
        threads = [threading.Thread(target=export) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(refusals) == (0 if overwrite else 1)
        assert all("it exists; replace it with overwrite=True" in text for text in refusals)
        assert Path("out").read_bytes() == lines(VALUES)
    assert [file.name for file in Path().iterdir()] == ["out"]


@pytest.mark.parametrize("links", [True, False])
def test_what_came_into_being_meanwhile_stays(links: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_link(source: object, target: object) -> None:
        raise PermissionError(1, "no links here", str(source))

    if not links:
        monkeypatch.setattr(os, "link", no_link)
    with pytest.raises(JobError, match="out: it exists"), files.new_file(Path("out")):
        Path("out").write_text("mine")
    assert Path("out").read_text() == "mine"
    with files.new_file(Path("other")) as stream:
        stream.write(b"new")
    assert Path("other").read_text() == "new"
    assert sorted(file.name for file in Path().iterdir()) == ["other", "out"]


def test_permissions_and_links_of_new_files() -> None:
    old = os.umask(0o027)
    try:
        with files.new_file(Path("new")) as stream:
            stream.write(b"1")
    finally:
        os.umask(old)
    assert Path("new").stat().st_mode & 0o777 == 0o640
    Path("private").write_text("old")
    Path("private").chmod(0o600)
    Path("link").symlink_to("private")
    with pytest.raises(JobError, match="link: it exists"), files.new_file(Path("link")):
        pass
    with files.new_file(Path("link"), overwrite=True) as stream:
        assert all(file.stat().st_mode & 0o077 == 0 for file in Path().glob(".rnsdask-*"))
        stream.write(b"2")
    assert (Path("link").is_symlink(), Path("private").read_text()) == (True, "2")
    assert Path("private").stat().st_mode & 0o777 == 0o600
    Path("nowhere").symlink_to("none")
    for overwrite in (False, True):
        with pytest.raises(JobError, match="link to nothing"):
            files.new_file(Path("nowhere"), overwrite=overwrite).__enter__()
    assert not Path("none").exists()


def test_export_to_a_full_disk(commands: Commands, made: Path, tmp_path: Path) -> None:
    ended = commands.run("export", made / "x.zarr", "/dev/full", folder=tmp_path)
    assert check_one_line(ended) == "/dev/full: No space left on device"


@pytest.mark.parametrize("call_name", ["write", "fsync"])
def test_export_of_what_finds_no_room(call_name: str, made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import resource

    if call_name == "fsync":

        def fail_to_sync(_descriptor: int) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "fsync", fail_to_sync)
        assert fail("export", made / "x.zarr", "out") == "out: No space left on device"
    else:
        _, highest = resource.getrlimit(resource.RLIMIT_FSIZE)
        ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, highest))
        try:
            assert fail("export", made / "x.zarr", "out") == "out: File too large"
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (highest, highest))
            signal.signal(signal.SIGXFSZ, ignored)
    assert not list(Path().iterdir())


# ---- Logs and reports -------------------------------------------------------------------------------------


def test_log_that_cannot_be_written(commands: Commands, made: Path, tmp_path: Path) -> None:
    for place, why in (("/dev/full", "No space left on device"), ("a/b", "No such file or directory")):
        for name in ("max", "export", "import"):
            ended = commands.run(*words(name, made), "--log-json", place, folder=tmp_path)
            assert check_one_line(ended) == f"{place}: {why}"
            assert ended.stdout == ""
            assert not list(tmp_path.iterdir())


def test_log_that_finds_no_room_later(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import resource

    reduce = reduction.reduce
    _, highest = resource.getrlimit(resource.RLIMIT_FSIZE)

    def without_room(*args: Any, **options: Any) -> Any:
        resource.setrlimit(resource.RLIMIT_FSIZE, (Path("log").stat().st_size, highest))
        return reduce(*args, **options)

    monkeypatch.setattr(reduction, "reduce", without_room)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        result = call("max", made / "x.zarr", "--log-json", "log")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (highest, highest))
        signal.signal(signal.SIGXFSZ, ignored)
    assert (result.exit_code, result.stdout.splitlines()[1]) == (0, str(max(VALUES)))
    assert result.stderr == "rnsdask: warning: log: the log ends here: File too large\n"
    assert [json.loads(line)["event"] for line in Path("log").read_text().splitlines()] == ["start", "plan"]


def test_logs_are_private(made: Path) -> None:
    old = os.umask(0)
    try:
        succeed("max", made / "x.zarr", "--log-json", "log")
    finally:
        os.umask(old)
    assert Path("log").stat().st_mode & 0o777 == 0o600


def test_difference_that_compare_finds_is_no_failure_in_the_log(made: Path) -> None:
    succeed("compare", made / "x.zarr", 5, "--log-json", "log", status=1)
    assert json.loads(Path("log").read_text().splitlines()[-1])["status"] == "done"


@pytest.fixture(scope="module")
def local_cluster() -> Iterator[LocalCluster]:
    with LocalCluster(n_workers=1, processes=False, dashboard_address=":0", protocol="tcp") as cluster:
        yield cluster


def no_job(*_args: Any, **_options: Any) -> None:
    raise AssertionError("the job has begun")


def test_report_that_cannot_be_written(
    made: Path, local_cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = ["--scheduler", local_cluster.scheduler_address]
    result = call("max", made / "x.zarr", *place, "--report", "/dev/full")
    assert (result.exit_code, result.stdout.splitlines()[1]) == (0, str(max(VALUES)))
    expected = "rnsdask: warning: /dev/full: there is no report: /dev/full: No space left on device"
    assert result.stderr.splitlines()[1:] == [expected]

    monkeypatch.setattr(reduction, "reduce", no_job)
    assert "a/b: No such file" in fail("max", made / "x.zarr", *place, "--report", "a/b")


def test_report_whose_scheduler_fails(
    made: Path, local_cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_args: Any, **_options: Any) -> Any:
        raise ImportError("no bokeh after all")

    monkeypatch.setitem(local_cluster.scheduler.handlers, "performance_report", broken)
    place = ["--scheduler", local_cluster.scheduler_address]
    result = call("max", made / "x.zarr", *place, "--report", "report.html")
    assert (result.exit_code, result.stdout.splitlines()[1]) == (0, str(max(VALUES)))
    assert "there is no report: ImportError: no bokeh after all" in result.stderr


# ---- Ctrl-C -----------------------------------------------------------------------------------------------

SLOW = """
import sys, time
from pathlib import Path
from rnsdask.cluster import connecting
from rnsdask import store
from rnsdask.store import reading

def slow(*_args, **_options):
    Path({started!r}).touch()
    end = time.monotonic() + 600
    while time.monotonic() < end:
        time.sleep(0.01)

store.read_chunk = slow
reading.chunk_problems = slow

def local_cluster(_gpus, _threads, _protocol):
    from distributed import LocalCluster
    quiet = {{"silence_logs": 50, "dashboard_address": ":0"}}
    return LocalCluster(n_workers=1, threads_per_worker=1, preload=__file__, **quiet)

connecting.gpu_cluster = local_cluster

if __name__ == "__main__":
    from rnsdask.cli import main
    main(prog_name="rnsdask")
"""


@pytest.mark.parametrize(
    ("name", "times"),
    [
        ("max", 2),
        ("verify", 1),
        pytest.param("max", 1, marks=pytest.mark.slow),
        pytest.param("max --gpus 2", 1, marks=pytest.mark.slow),
    ],
)
def test_interruption_is_quick(name: str, times: int, made: Path, tmp_path: Path) -> None:
    """Nobody waits for the work at hand (ten minutes); the group gets the signal, as from a terminal."""
    script, started = tmp_path / "slow.py", tmp_path / "started"
    script.write_text(SLOW.format(started=str(started)))
    command, *options = name.split()
    process = subprocess.Popen(
        [sys.executable, script, command, made / "x.zarr", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    end = time.monotonic() + 300
    while not started.exists() and process.poll() is None and time.monotonic() < end:
        time.sleep(0.02)
    for _ in range(times):
        os.killpg(process.pid, signal.SIGINT)
        time.sleep(0.1)
    try:
        stdout, stderr = process.communicate(timeout=300)  # 0.1 to 1 s on a quiet machine
    finally:
        process.kill()
    stderr = re.sub(r"\Adashboard: .*\n", "", stderr)
    assert (process.returncode, stdout, stderr) == (130, "", "rnsdask: error: interrupted\n")
