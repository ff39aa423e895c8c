"""The command line: what it prints and writes, how it fails. Most runs are in this process, for speed."""

import importlib.metadata
import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
from click.testing import CliRunner
from commands import as_json, call, contents, fail, succeed
from forks import Commands
from strategies import BOTH_RANGES, slow

import rnsdask as rd
from rnsdask import store
from rnsdask.cli import main
from rnsdask.jobs import reduction

COMMAND = [sys.executable, "-c", "from rnsdask.cli import main; main(prog_name='rnsdask')"]
VALUES = [0, 1, 2**100, 17, 2**128 - 1, 5] + [i**13 for i in range(600)]
SIGNED_VALUES = [0, -1, 2**100, -(2**100), 2**127 - 1, -(2**127)] + [(-i) ** 13 for i in range(600)]


pytestmark = pytest.mark.usefixtures("in_empty_folder")


def text(values: list[int]) -> bytes:
    return b"".join(b"%d\n" % value for value in values)


def import_values(path: str = "x.zarr", values: list[int] = VALUES, *options: str | int) -> None:
    succeed("import", "-", path, "--bits", 128, "--chunk", 128, *options, stdin=text(values))


def edit_metadata(path: str, edit: Callable[[dict[str, Any]], None]) -> None:
    """Change the attribute of a store, as another program would write it: without a checksum."""
    file = Path(path, "zarr.json")
    document = json.loads(file.read_bytes())
    document["attributes"]["rnsdask"].pop("checksum", None)
    edit(document["attributes"]["rnsdask"])
    file.write_text(json.dumps(document))


def make_incomplete(path: str, *lost_chunks: int) -> None:
    edit_metadata(path, lambda attribute: attribute.update(complete=False))
    for i in lost_chunks:
        Path(path, f"c/0/{i}").unlink()


def is_complete(path: str) -> bool:
    return Path(path).exists() and bool(json.loads(succeed("info", path, "--json"))["complete"])


# ---- The program ------------------------------------------------------------------------------------------


def test_version_and_help() -> None:
    assert succeed("--version") == f"rnsdask, version {rd.__version__}\n"
    names = set(main.commands)
    reductions = {"max", "min", "sum", "gcd", "lcm", "bound", "prod", "eval", "group", "topk", "compare"}
    derivations = {"filter", "where", "sort", "cumsum", "cummax", "cummin", "extend", "shrink", "convert"}
    derivations |= {"concat", "convolve", "ntt", "powmod", "batchgcd", "slice", "rechunk", "reshape"}
    algebra = {"det", "rank", "charpoly", "rref", "nullspace", "solve", "resultant"}
    others = {
        "moduli",
        "import",
        "random",
        "info",
        "head",
        "stats",
        "hist",
        "verify",
        "doctor",
        "kernels",
        "export",
    }
    assert names == {*others, *reductions, *derivations, *algebra}
    for name in names:
        assert succeed(name, "-h").startswith(f"Usage: rnsdask {name} ")


def test_as_a_program(commands: Commands) -> None:
    subprocess.run([*COMMAND, "import", "-", "x.zarr", "--bits", "64"], input=b"1\n3\n2\n", check=True)
    ended = commands.run("max", "x.zarr", "--json", folder=Path.cwd())
    assert (ended.status, json.loads(ended.stdout)["value"], ended.stderr) == (0, "3", "")
    ended = commands.run("max", "none.zarr", folder=Path.cwd())
    assert (ended.status, ended.stdout) == (1, "")
    assert re.fullmatch(r"rnsdask: error: .*none\.zarr: there is no such store\n", ended.stderr)
    ended = commands.run("max", folder=Path.cwd())
    assert (ended.status, ended.stdout) == (2, "")
    assert ended.stderr == "rnsdask: error: Missing argument 'STORE'. (see rnsdask max --help)\n"


def test_as_plugin_of_dask() -> None:
    import_values()
    command = [sys.executable, "-m", "dask", "rns"]
    process = subprocess.run([*command, "max", "x.zarr", "--json"], capture_output=True, check=True)
    assert json.loads(process.stdout)["value"] == str(max(VALUES))
    assert process.stderr == b""
    (plugin,) = importlib.metadata.entry_points(group="dask_cli", name="rns")
    of_dask = click.Group("dask", {"rns": plugin.load()})
    result = CliRunner().invoke(of_dask, ["rns", "max", "none.zarr"])
    assert result.exit_code == 1
    assert re.fullmatch(r"rnsdask: error: .*no such store\n", result.stderr)
    result = CliRunner().invoke(of_dask, ["rns", "max", "--nothing"])
    assert result.exit_code == 2
    assert re.fullmatch(r"rnsdask: error: No such option:? .*--nothing.*\n", result.stderr)


def test_interruption_is_one_line() -> None:
    process = subprocess.Popen(
        [*COMMAND, "import", "-", "x.zarr", "--bits", "128", "--chunk", "16384"],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdin is not None
    process.stdin.write(b"0\n" * 2**17)  # as much as is read at a time
    process.stdin.flush()
    for _ in range(600):
        if Path("x.zarr.partial/c/0/1").exists():
            break
        time.sleep(0.05)
    else:
        pytest.fail("nothing was imported")
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate()
    assert (process.returncode, stderr) == (130, b"rnsdask: error: interrupted\n")
    assert not is_complete("x.zarr")


def test_broken_pipe_is_quiet() -> None:
    import_values("x.zarr", VALUES * 50)
    process = subprocess.Popen(
        [*COMMAND, "export", "x.zarr", "-"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline() == b"0\n"
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait() == 141


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--nothing"], "No such option"),
        (["nothing"], "No such command"),
        (["moduli"], "give either --bits or --moduli"),
        (["moduli", "--bits", "64", "--moduli", "set.txt"], "give either --bits or --moduli"),
        (["moduli", "--bits", "x"], "is not an integer, such as 1000000, 1e6"),
        (["moduli", "--bits", "0"], "bits must be at least 1, got 0"),
        (["moduli", "--bits", "64", "--modulus-bits", "33"], "^--modulus-bits must be from 2 to 32, got 33"),
        (["moduli", "--moduli", "set.txt", "--modulus-bits", "31"], "--modulus-bits needs --bits"),
        (["moduli", "--start", "3"], "--start and --count go together"),
        (["moduli", "--count", "3", "--bits", "64"], "--start and --count go together"),
        (["moduli", "--start", "4", "--count", "3"], "start must be an odd integer from 3 to .*, got 4"),
        (["moduli", "--start", "3", "--count", "0"], "count must be at least 1, got 0"),
        (["moduli", "--start", "3", "--count", "3", "--bits", "64"], "--start excludes --bits and --moduli"),
        (["import", "-"], "Missing argument 'STORE'"),
        (["import", "-", "x.zarr", "--modulus-bits", "31"], "--modulus-bits needs --bits"),
        (["import", "-", "x.zarr", "--bits", "64", "--moduli", "set.txt"], "give either --bits or --moduli"),
        (["import", "-", "x.zarr", "--moduli", "-"], "INPUT and --moduli cannot both be standard input"),
        (["import", "-", "x.zarr", "--bits", "64", "--chunk", "-1"], "an axis of known length"),
        (["import", "-", "x.zarr", "--bits", "64", "--chunk", "1,2"], "one length for each of the 1 axes"),
        (["import", "-", "x.zarr", "--bits", "64", "--chunk", "0"], "'--chunk'"),
        (["import", "-", "x.zarr", "--bits", "64", "--chunk", "9" * 5000], "from 1 to .*, got 9{40} "),
        (["random", "x.zarr", "--bits", "64", "--count", "9", "--chunk", str(2**63)], f"got {2**63} "),
        (["import", "-", "x.zarr", "--bits", "64", "--binary", "0"], "'--binary'"),
        (["random", "x.zarr", "--bits", "64"], "give either --count or --shape"),
        (["random", "x.zarr", "--bits", "64", "--count", "9", "--shape", "3,3"], "either --count or --shape"),
        (["random", "x.zarr", "--bits", "64", "--count", "0"], "--count"),
        (["random", "x.zarr", "--bits", "64", "--count", "1.5"], "'--count'"),
        (["random", "x.zarr", "--count", "9", "--ntt-length", "8"], "--ntt-length needs --bits"),
        (["random", "x.zarr", "--count", "9", "--primes", "97,99"], "99 .* is not a prime"),
        (["random", "x.zarr", "--count", "9", "--primes", "97;193"], "--primes takes primes"),
        (["random", "x.zarr", "--count", "9", "--primes", "97", "--signed"], "fields exclude"),
        (["random", "x.zarr", "--bits", "64", "--count", "9", "--seed", "-1"], "'--seed'"),
        (["random", "x.zarr", "--bits", "64", "--count", "900", "--chunk", "all"], "chunks must be 'auto'"),
        (
            ["random", "x.zarr", "--bits", "64", "--count", "9", "--chunk", "5,5"],
            "must add up to its length 9",
        ),
        (
            ["export", "x.zarr", "-", "--hex", "--binary", "8"],
            "give one of --hex, --binary and --residues, not several",
        ),
        (["export", "x.zarr", "-", "--json"], "--json needs an OUTPUT other than -"),
        (["max", "x.zarr", "--gpus", "0"], "it must be an integer from 1 to 999999999, or 'all', got '0'"),
        (
            ["max", "x.zarr", "--gpus", "9" * 5000],
            "it must be an integer from 1 to 999999999, or 'all', got '9999",
        ),
        (
            ["max", "x.zarr", "--gpus", "some"],
            "it must be an integer from 1 to 999999999, or 'all', got 'some'",
        ),
        (["max", "x.zarr", "--backend", "rocm"], "'--backend'"),
        (["max", "x.zarr", "--gpus", "1", "--scheduler", "tcp://a:1"], "not several"),
        (["sum", "x.zarr", "--scheduler-file", "s.json", "--scheduler", "tcp://a:1"], "not several"),
    ],
)
def test_wrong_usage(args: list[str], message: str) -> None:
    error = fail(*args, status=2)
    assert re.search(message, error)
    assert re.search(r"\(see rnsdask.* --help\)$", error)
    assert not Path("x.zarr").exists()


def test_debug_shows_the_traceback() -> None:
    result = call("max", "none.zarr", "--debug")
    assert result.exit_code == 1
    assert result.stderr.startswith("Traceback (most recent call last):\n")
    assert result.stderr.splitlines()[-1].startswith("rnsdask: error: ")
    assert result.stderr.splitlines()[-1].endswith("none.zarr: there is no such store")


def test_unexpected_error_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_args: object, **_options: object) -> None:
        raise KeyError("first line\nsecond line")

    import_values()
    monkeypatch.setattr(reduction, "reduce", broken)
    assert fail("max", "x.zarr").startswith("KeyError: 'first line")


# ---- moduli -----------------------------------------------------------------------------------------------


def test_moduli() -> None:
    expected = rd.ModuliSet.for_bits(2048)
    lines = succeed("moduli", "--bits", 2048).splitlines()
    assert lines[0] == f"# {expected!r}"
    assert [int(line) for line in lines[1:]] == list(expected)
    found = as_json("moduli", "--bits", 100, "--modulus-bits", 20)
    small = rd.ModuliSet.for_bits(100, 20)
    assert found["moduli"] == list(map(str, small))
    assert (found["op"], found["count"], found["bits"]) == ("moduli", len(small), small.bits)
    assert int(found["product"]) == small.product


def test_moduli_consecutive_odd_and_file() -> None:
    printed = succeed("moduli", "--start", 65725, "--count", 8)
    assert [int(line) for line in printed.splitlines()[1:]] == list(rd.ModuliSet.consecutive_odd(65725, 8))
    Path("set.txt").write_text(printed)
    assert succeed("moduli", "--moduli", "set.txt") == printed
    assert succeed("moduli", "--moduli", "-", stdin=printed.encode()) == printed
    succeed("random", "x.zarr", "--count", 10, "--seed", 0, "--moduli", "-", stdin=printed.encode())
    assert list(map(int, as_json("info", "x.zarr")["moduli"])) == list(rd.ModuliSet.consecutive_odd(65725, 8))


def test_bad_file_of_moduli() -> None:
    Path("set.txt").write_text("15\n6\n")
    assert re.match(r"set\.txt: moduli 15 .* and 6 .* are not coprime", fail("moduli", "--moduli", "set.txt"))
    assert fail("moduli", "--moduli", "-", stdin=b"5\nx\n").startswith("<stdin>:2: 'x' is not an integer")
    assert fail("moduli", "--moduli", "none.txt") == "none.txt: No such file or directory"


# ---- import and export ------------------------------------------------------------------------------------


@BOTH_RANGES
@pytest.mark.parametrize("chunk", [128, 256, 128_000])
@pytest.mark.parametrize(
    "form", [[], ["--hex"], ["--binary", 17], ["--binary", 16], *slow(["--binary", 20], ["--binary", 40])]
)
def test_round_trip(signed: bool, chunk: int, form: list[str | int]) -> None:
    values = SIGNED_VALUES if signed else VALUES
    options = ["--bits", 128, "--chunk", chunk, *(["--signed"] if signed else [])]
    imported = as_json("import", "-", "x.zarr", *options, stdin=text(values))
    assert imported["count"] == len(values)
    assert imported["bytes_read"] == len(text(values))
    exported = as_json("export", "x.zarr", "out", *form)
    assert exported["count"] == len(values)
    written = Path("out").read_bytes()
    assert exported["bytes_written"] == len(written)
    if not form:
        assert written == text(values)
    elif form == ["--hex"]:
        assert written.decode().split() == [hex(value) for value in values]
    else:
        width = int(form[1])
        assert written == b"".join(value.to_bytes(width, "little", signed=signed) for value in values)
    succeed("import", "out", "y.zarr", *options, *(form if "--binary" in form else []))
    assert contents("y.zarr") == contents("x.zarr")
    info = store.open_info("x.zarr")
    assert info.system.bound == max(map(abs, values))
    assert list(rd.open_zarr("x.zarr").to_ints()) == values


def test_import_of_a_short_input_makes_a_small_chunk() -> None:
    succeed("import", "-", "x.zarr", "--bits", 2048, stdin=b"1\n2\n3")
    assert store.open_info("x.zarr").chunks == (128,)


def test_import_of_exactly_full_chunks() -> None:
    for count in (127, 128, 129, 256, 257):
        values = list(range(count))
        import_values("x.zarr", values, "--overwrite")
        assert store.open_info("x.zarr").shape == (count,)
        assert list(rd.open_zarr("x.zarr").to_ints()) == values


def test_import_of_crlf_and_mixed_notations() -> None:
    succeed("import", "-", "x.zarr", "--bits", 64, stdin=b"1\r\n0x10\r\n+7\n007")
    assert succeed("export", "x.zarr", "-") == "1\n16\n7\n7\n"


def test_integers_beyond_the_digit_limit_of_python() -> None:
    value = 10**6000 + 1  # Python refuses to convert more than 4300 digits
    succeed("import", "-", "x.zarr", "--bits", 20000, "--chunk", 128, stdin=b"5\n1" + b"0" * 5999 + b"1\n")
    assert succeed("max", "x.zarr").splitlines()[1] == "1" + "0" * 5999 + "1"
    assert as_json("max", "x.zarr")["value"] == "1" + "0" * 5999 + "1"
    assert succeed("export", "x.zarr", "-", "--hex") == f"0x5\n{hex(value)}\n"


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        (b"", [], r"numbers: it is empty"),
        (b"1\nx\n", [], r"numbers:2: 'x' is not an integer"),
        (b"1\n\n2\n", ["--strict"], r"numbers:2: empty line"),
        (b"1\n-2\n", [], r"numbers:2: -2 is not in the range .* \(--signed allows negative integers\)"),
        (b"1\n" + b"%d\n" % 2**160, [], r"numbers:2: the line has more .*; --bits 161 holds it"),
        (b"1\n" + b"%d\n" % 2**128, [], r"numbers:2: .* is not in the range .*; --bits 129 holds it"),
        (b"1\n2\n%d\n" % -(2**159), ["--signed"], r"numbers:3: .*; --bits 160 holds it"),
        (b"1" * 10**6, [], r"numbers:1: the line has more than \d+ characters"),
        (b"1\n" * 300 + b"x", [], r"numbers:301: 'x' is not"),
        (b"", ["--binary", "8"], r"numbers: it is empty"),
        (b"12345678123", ["--binary", "8"], r"numbers: its size of 11 .* width of 8: 3 bytes remain"),
        (
            bytes(24) + bytes([0] * 20 + [1] * 4),
            ["--binary", "24"],
            r"numbers: index 1 \(byte 24\): .* range",
        ),
        (bytes(4000) + b"\xff" * 20, ["--binary", "20"], r"numbers: index 200 \(byte 4000\): .* range"),
    ],
)
def test_bad_input(data: bytes, options: list[str], message: str) -> None:
    Path("numbers").write_bytes(data)
    arguments = ["--bits", "128", "--chunk", "128", *options]
    assert re.match(message, fail("import", "numbers", "x.zarr", *arguments))
    if Path("x.zarr").exists():
        assert not is_complete("x.zarr")
        assert "incomplete" in fail("max", "x.zarr")
    else:
        assert "no such store" in fail("max", "x.zarr")
    if "numbers: its" not in message:
        in_stream = message.replace("numbers", "<stdin>")
        assert re.match(in_stream, fail("import", "-", "x.zarr", *arguments, "--overwrite", stdin=data))


def test_bad_first_chunk_leaves_the_old_store() -> None:
    import_values()
    before = contents("x.zarr")
    fail("import", "-", "x.zarr", "--bits", 128, "--overwrite", stdin=b"1\nx\n")
    assert contents("x.zarr") == before


def test_import_refuses_to_replace() -> None:
    import_values()
    before = contents("x.zarr")
    assert "--overwrite" in fail("import", "-", "x.zarr", "--bits", 128, stdin=b"1\n")
    assert contents("x.zarr") == before
    Path("folder").mkdir()
    Path("folder/file").write_text("mine")
    fail("import", "-", "folder", "--bits", 128, "--overwrite", stdin=b"1\n")
    assert Path("folder/file").read_text() == "mine"


def test_import_of_a_missing_file() -> None:
    assert fail("import", "none.txt", "x.zarr", "--bits", 64) == "none.txt: No such file or directory"
    assert not Path("x.zarr").exists()


@pytest.mark.parametrize("form", [[], ["--binary", "16"]])
@pytest.mark.parametrize("lost", [[1, 2], []])
def test_import_resumes(form: list[str], lost: list[int]) -> None:
    import_values()
    expected = contents("x.zarr")
    make_incomplete("x.zarr", *lost)
    data = text(VALUES) if not form else b"".join(value.to_bytes(16, "little") for value in VALUES)
    succeed("import", "-", "x.zarr", "--bits", 128, *form, "--resume", stdin=data)
    assert contents("x.zarr") == expected


def test_an_import_that_a_bad_line_ended_begins_anew() -> None:
    import_values()
    expected = contents("x.zarr")
    good = text(VALUES)
    bad = good.replace(b"\n%d\n" % 400**13, b"\nx\n")
    arguments = ["import", "-", "y.zarr", "--bits", "128", "--chunk", "128"]
    assert fail(*arguments, stdin=bad).startswith("<stdin>:407: 'x' is not")
    assert not Path("y.zarr").exists()
    succeed(*arguments, stdin=good)
    assert contents("y.zarr") == expected


def test_import_resumes_only_the_same() -> None:
    import_values()
    message = fail("import", "-", "x.zarr", "--bits", 128, "--resume", stdin=text(VALUES))
    assert "it is complete, but not known to be this job's" in message  # standard input may be anything
    make_incomplete("x.zarr", 2)

    def refused(values: list[int], *options: str | int) -> str:
        message = fail("import", "-", "x.zarr", *options, "--resume", stdin=text(values))
        assert not is_complete("x.zarr")
        return message

    assert "x.zarr: chunk c/0/0 holds other numbers" in refused([3, *VALUES[1:]], "--bits", 128)
    later = VALUES.copy()
    later[200] += 1
    assert "x.zarr: chunk c/0/1 holds other numbers" in refused(later, "--bits", 128)
    assert "it was begun with 606 integers" in refused(VALUES[:-1], "--bits", 128)
    assert refused([*VALUES, 1], "--bits", 128)
    assert "its moduli" in refused(VALUES, "--bits", 64)
    assert "its signed" in refused(VALUES, "--bits", 128, "--signed")
    assert "its chunks" in refused(VALUES, "--bits", 128, "--chunk", 256)


def test_export_to_a_file_that_exists() -> None:
    import_values()
    Path("out").write_text("mine")
    assert fail("export", "x.zarr", "out") == "out: it exists; replace it with --overwrite"
    assert Path("out").read_text() == "mine"
    succeed("export", "x.zarr", "out", "--overwrite")
    assert Path("out").read_bytes() == text(VALUES)
    succeed("export", "x.zarr", "/dev/null")
    assert fail("export", "x.zarr", "none/out") == "none/out: No such file or directory"


@BOTH_RANGES
def test_export_of_what_does_not_fit_leaves_no_file(signed: bool) -> None:
    values = [1] * 300 + [-(2**63) - 1 if signed else 2**64, 2**100]
    import_values("x.zarr", values, *(["--signed"] if signed else []))
    message = fail("export", "x.zarr", "out", "--binary", 8)
    assert re.match(r"index 300: .* does not fit into 8 bytes", message)
    assert [file.name for file in Path().iterdir()] == ["x.zarr"]


def test_export_of_arrays_of_more_axes() -> None:
    ms = rd.ModuliSet.for_bits(64)
    values = np.arange(12 * 256, dtype=object).reshape(3, 4, 256)
    for chunks, consecutive in [
        ((1, 2, 256), True),
        ((3, 4, 256), True),
        ((3, 2, 256), False),
        ((1, 4, 128), False),
    ]:
        rd.from_ints(values, ms, chunks=chunks).to_zarr("x.zarr", overwrite=True)
        if consecutive:
            assert succeed("export", "x.zarr", "-").split() == [str(i) for i in range(12 * 256)]
        else:
            assert "not consecutive" in fail("export", "x.zarr", "-")


# ---- random -----------------------------------------------------------------------------------------------


def make_random(path: str, *options: str | int, seed: int = 7, count: int = 1000) -> None:
    arguments = ["--count", count, "--bits", 100, "--seed", seed, "--chunk", 128]
    succeed("random", path, *arguments, *options)


def test_random_is_reproducible() -> None:
    make_random("a.zarr")
    make_random("b.zarr")
    make_random("c.zarr", seed=8)
    assert contents("a.zarr") == contents("b.zarr") != contents("c.zarr")
    assert succeed("verify", "a.zarr").startswith("a.zarr: 1000 integers, whole and valid")
    expected = rd.random(1000, bits=100, seed=7, chunks=128).to_ints()
    assert list(rd.open_zarr("a.zarr").to_ints()) == list(expected)
    assert len(set(expected)) == 1000


@pytest.mark.parametrize("bits", [1, 7, 33, 256])
@pytest.mark.parametrize("signed", [False, True])
def test_random_numbers_have_the_bits_that_are_told(bits: int, signed: bool) -> None:
    """Uniform below 2**bits, with a sign below 2**(bits - 1) in magnitude: by command and in Python."""
    options = ["--signed"] if signed else []
    succeed("random", "a.zarr", "--count", "2e3", "--bits", bits, "--seed", 1, *options)
    x = rd.open_zarr("a.zarr")
    values = x.to_ints().tolist()
    top = 2 ** (bits - signed)
    assert len(values) == 2000
    assert x.moduli == rd.ModuliSet.for_bits(bits)
    assert all((-top if signed else -1) < v < top for v in values)
    assert max(values) >= (0.9 * (top - 1))
    assert min(values) <= (-0.9 * (top - 1) if signed else 0.1 * (top - 1))
    mean = sum(values) / 2000
    assert abs(mean - (0 if signed else (top - 1) / 2)) <= 0.1 * top
    assert rd.random(2000, bits=bits, seed=1, signed=signed).to_ints().tolist() == values


def test_random_numbers_of_several_axes_and_of_fields() -> None:
    succeed("random", "a.zarr", "--shape", "20,30", "--bits", 64, "--seed", 1)
    assert as_json("info", "a.zarr")["shape"] == [20, 30]
    succeed("random", "f.zarr", "--shape", "8,8", "--primes", "97, 193", "--seed", 1)
    found = rd.open_zarr("f.zarr")
    assert found.system == rd.PrimeFields([97, 193])
    assert (found.to_ints() == rd.random(found.system, (8, 8), seed=1).to_ints()).all()
    printed = succeed("random", "g.zarr", "--count", 8, "--bits", 256, "--ntt-length", "1024", "--seed", 1)
    assert "8 random elements" in printed
    assert rd.open_zarr("g.zarr").moduli == rd.ModuliSet.ntt_primes(256, 1024)


def test_random_without_a_seed_tells_a_new_one() -> None:
    arguments = ["--count", 300, "--bits", 100, "--chunk", 128]
    seeds = []
    for path in ("a.zarr", "b.zarr"):
        done = call("random", path, *arguments, "--json")
        told = re.fullmatch(r"rnsdask: seed (\d+)\n", done.stderr)
        assert told
        seeds.append(int(told[1]))
        assert json.loads(done.stdout)["seed"] == told[1]
    assert seeds[0] != seeds[1]
    assert contents("a.zarr") != contents("b.zarr")
    succeed("random", "c.zarr", *arguments, "--seed", seeds[0])
    assert contents("c.zarr") == contents("a.zarr")
    make_incomplete("a.zarr", 1)
    assert "--resume needs --seed" in fail("random", "a.zarr", *arguments, "--resume", status=2)
    succeed("random", "a.zarr", *arguments, "--resume", "--seed", seeds[0])
    assert contents("a.zarr") == contents("c.zarr")


def test_random_resumes() -> None:
    make_random("a.zarr")
    expected = contents("a.zarr")
    make_incomplete("a.zarr", 3, 7)
    for options in (["--signed"], ["--seed", 8], ["--count", 1001], ["--bits", 200], ["--chunk", 256]):
        arguments = ["--count", 1000, "--bits", 100, "--seed", 7, "--chunk", 128, *options]
        assert "it cannot be resumed" in fail("random", "a.zarr", *arguments, "--resume")
    assert "--overwrite" in fail("random", "a.zarr", "--count", 1000, "--bits", 100, "--seed", 7)
    make_random("a.zarr", "--resume")
    assert contents("a.zarr") == expected
    make_random("a.zarr", "--overwrite", seed=8)
    assert contents("a.zarr") != expected


@pytest.mark.parametrize(
    ("chunks", "length"),
    [("33", 33), ("-1", 100), ("60,40", 60), ("128", 100), ("auto", 100), ("300", 100), ("0.1 kB", 6)],
)
def test_chunks_of_any_length(chunks: str, length: int) -> None:
    options = ["--bits", 100, "--chunks", chunks]
    succeed("random", "a.zarr", "--count", 100, "--seed", 7, *options)
    assert as_json("info", "a.zarr")["chunks"] == [length]
    assert succeed("verify", "a.zarr").startswith("a.zarr: 100 integers, whole and valid")


def test_chunks_that_a_store_cannot_have() -> None:
    options = ["--count", 100, "--bits", 100, "--seed", 7, "--chunk", "40,60"]
    assert "chunks of a store are of one length along each axis" in fail(
        "random", "a.zarr", *options, status=2
    )
    assert not Path("a.zarr").exists()


def test_random_signed() -> None:
    make_random("a.zarr", "--signed")
    assert int(as_json("min", "a.zarr")["value"]) < 0 < int(as_json("max", "a.zarr")["value"])


# ---- info and verify --------------------------------------------------------------------------------------


def test_info() -> None:
    import_values()
    ms = rd.ModuliSet.for_bits(128)
    found = as_json("info", "x.zarr")
    assert list(map(int, found["moduli"])) == list(ms)
    assert int(found["bound"]) == 2**128 - 1
    assert (found["count"], found["shape"], found["chunks"], found["n_chunks"]) == (606, [606], [128], 5)
    assert (found["bytes"], found["signed"], found["complete"]) == (606 * 4 * len(ms), False, True)
    lines = dict(line.split(None, 1) for line in succeed("info", "x.zarr").splitlines())
    assert lines["integers"] == "606"
    assert lines["magnitude"] == "at most 128 bits"
    assert lines["complete"] == "yes"
    make_incomplete("x.zarr")
    assert as_json("info", "x.zarr")["complete"] is False
    assert succeed("info", "x.zarr").splitlines()[-1].split() == ["complete", "no"]


@pytest.mark.parametrize("command", ["info", "verify", "max", "export"])
def test_what_is_not_a_store(command: str) -> None:
    output = ["-"] if command == "export" else []
    Path("file").write_text("1\n")
    Path("folder").mkdir()
    assert re.match(r".*/file: ", fail(command, "file", *output))
    assert re.match(r".*/folder: it is not a Zarr store", fail(command, "folder", *output))
    assert re.match(r".*/none: there is no such store", fail(command, "none", *output))


def test_damage_is_named() -> None:
    import_values()
    chunk = Path("x.zarr/c/0/3")
    data = bytearray(chunk.read_bytes())
    data[1000] ^= 1
    chunk.write_bytes(data)
    Path("x.zarr/c/0/1").unlink()
    result = call("verify", "x.zarr")
    assert result.exit_code == 1
    assert result.stderr == "rnsdask: error: x.zarr: 2 problems found\n"
    first, second = result.stdout.splitlines()
    assert "x.zarr: chunk c/0/1 is missing" in first
    assert "x.zarr: chunk c/0/3 " in second
    result = call("verify", "x.zarr", "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["problems"] == [first, second]
    for command in (["max", "x.zarr"], ["sum", "x.zarr"], ["export", "x.zarr", "out"]):
        assert re.search(r"x\.zarr: chunk c/0/[13] ", fail(*command))
    assert not Path("out").exists()


def test_residue_out_of_range_is_named() -> None:
    import_values()
    edit_metadata("x.zarr", lambda attribute: attribute["moduli"].__setitem__(2, 1009))
    edit_metadata("x.zarr", lambda attribute: attribute.update(bound=None))
    result = call("verify", "x.zarr")
    assert result.exit_code == 1
    assert all("modulus 1009 (row 2)" in line for line in result.stdout.splitlines())


# ---- max, min, sum ----------------------------------------------------------------------------------------


@BOTH_RANGES
def test_reductions(signed: bool) -> None:
    values = (SIGNED_VALUES if signed else VALUES) * 3
    import_values("x.zarr", values, *(["--signed"] if signed else []))
    for op, expected in [("max", max(values)), ("min", min(values)), ("sum", sum(values))]:
        found = as_json(op, "x.zarr", "--backend", "cpu")
        assert (found["op"], found["value"], found["count"]) == (op, str(expected), len(values))
        assert found.get("index") == (None if op == "sum" else values.index(expected))
        assert ("index" in found) == (op != "sum")
        assert (found["backend"], found["store"]) == ("cpu", "x.zarr")
        assert found["bytes_read"] == store.open_info("x.zarr").nbytes
        assert found["seconds"] > 0
        assert isinstance(found["exact_fallbacks"], int)
        lines = succeed(op, "x.zarr", "--backend", "cpu").splitlines()
        assert lines[1] == str(expected)
        assert lines[0].startswith(f"{op} of {len(values)} integers")
        assert op == "sum" or lines[0].endswith(f" at index {values.index(expected)}:")


def test_sum_beyond_the_range() -> None:
    ms = rd.ModuliSet.for_bits(32)
    values = [ms.product - 1] * 1000
    succeed("import", "-", "x.zarr", "--bits", 32, stdin=text(values))
    assert as_json("sum", "x.zarr")["value"] == str(sum(values))


# ---- Progress ---------------------------------------------------------------------------------------------


def test_progress_is_shown_on_stderr_when_forced() -> None:
    Path("numbers").write_bytes(text(VALUES))
    for command in (
        ["import", "numbers", "x.zarr", "--bits", "128"],
        ["random", "r.zarr", "--bits", "128", "--count", "1000"],
        ["verify", "x.zarr"],
        ["export", "x.zarr", "out"],
        ["max", "x.zarr"],
        ["topk", "2", "x.zarr"],
        ["cummax", "x.zarr", "-o", "p.zarr"],
    ):
        result = call(*command, "--json", "--progress")
        assert result.exit_code == 0
        assert "100%" in result.stderr
        json.loads(result.stdout)


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
@pytest.mark.parametrize("options", [[], ["--no-progress"]])
def test_progress_is_shown_on_a_terminal(options: list[str], commands: Commands) -> None:
    import_values()
    command = ["verify", "x.zarr", "--json", *options]
    ended, shown = commands.run_on_terminal(*command, folder=Path.cwd(), streams=["stderr"])
    assert ended.status == 0
    assert ("verify" in shown) == (not options)
    assert json.loads(ended.stdout)["problems"] == []


def test_main_is_a_click_group() -> None:
    assert isinstance(main, click.Group)
    assert main.name == "rns"  # the name that Dask gives the plug-in


@pytest.mark.parametrize(
    "words",
    [
        "import n y",
        "random y --count 3",
        "shrink x -o y",
        "extend x -o y",
        "moduli",
        "convert p -o y --to rns",
    ],
)
def test_moduli_that_no_store_can_hold_are_refused_at_once(
    words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rd.from_ints([1, 2], rd.ModuliSet.for_bits(64)).to_zarr("x")
    rd.from_ints([1, 2], rd.Positional(64, False)).to_zarr("p")
    Path("n").write_text("1\n")
    assert "has at most 1048576 moduli" in fail(*words.split(), "--bits", 2**32, status=2)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["n", "p", "x"]
