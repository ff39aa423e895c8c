"""Projected memory against what jobs take, jobs that do not fit, and chunks that are read in parts."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
import zarr
from click.testing import CliRunner
from conftest import Processor
from documents import write_sealed
from forks import Commands
from zarr.codecs import ZstdCodec

import rnsdask as rd
from rnsdask import store
from rnsdask.cli import main
from rnsdask.cluster import memory
from rnsdask.cluster.memory import Work, project
from rnsdask.core.errors import CorruptChunkError, JobError
from rnsdask.jobs import memory_plan
from rnsdask.rns.system import RNS
from rnsdask.store import writing
from rnsdask.store.reading import chunk_problems

MEASURED = """
import sys
from rnsdask.cli import main
try:
    main(sys.argv[1:], prog_name="rnsdask")
except SystemExit as end:
    if end.code not in (0, None):
        raise
finally:
    # The peak of this process alone: getrusage would tell that of its parent, if greater.
    with open("/proc/self/status") as status:
        print("peak", 1024 * int(next(line.split()[1] for line in status if line.startswith("VmHWM"))))
    if "cupy" in sys.modules:
        print("pool", sys.modules["cupy"].get_default_memory_pool().total_bytes())
"""

FALLING = "falling"  # small numbers, one less than the other
TOP = "top"  # the greatest ones of the range, which no key tells apart


def make_store(path: Path, n: int, numbers: int, data: str, compressed: bool) -> store.StoreInfo:
    """Four chunks, the last one cut; `data` is "random", FALLING or TOP."""
    moduli = rd.ModuliSet.for_bits(31 * n) if n > 1 else rd.ModuliSet([2**32 - 5])
    codecs = [ZstdCodec(level=1)] if compressed else None
    count = 4 * numbers - 1000
    rng = np.random.default_rng(n)
    writer = store.create(path, RNS(moduli), (count,), chunks=numbers, codecs=codecs)
    for (i,) in writer.info.indices():
        part = min(numbers, count - i * numbers)
        values = np.arange(count - i * numbers, count - i * numbers - part, -1, dtype=np.uint64)
        if data == "random":
            rows = [rng.integers(0, m, part) for m in moduli]
        else:
            rows = [m - 1 - values % m if data == TOP else values % m for m in moduli]
        writer.write_chunk((i,), np.stack(rows).astype(np.uint32))
    return writer.finish()


_COMMANDS: dict[int, Commands] = {}
"""What runs commands on so many threads, without their start."""


@pytest.fixture(scope="module", autouse=True)
def _no_more_commands() -> Iterator[None]:
    yield
    while _COMMANDS:
        _COMMANDS.popitem()[1].end()


def peaks(tmp_path: Path, command: list[str], threads: int) -> tuple[dict[str, Any], dict[str, int]]:
    """Run a command in a process of its own: its plan, and the most bytes that it took."""
    log = tmp_path / "log"
    found = (_taken_beside_a_gpu if "cuda" in command else _taken)(
        [*command, "--log-json", str(log)], threads
    )
    events = [json.loads(line) for line in log.read_text().splitlines()]
    (planned,) = (event for event in events if event["event"] == "plan")
    print(command, found, "projected:", planned["host"], planned["device"])  # shown with -s, and on failure
    return planned, found


def _commands(threads: int) -> Commands:
    if threads not in _COMMANDS:
        _COMMANDS[threads] = Commands(DASK_NUM_WORKERS=str(threads))
    return _COMMANDS[threads]


def _taken(command: list[str], threads: int) -> dict[str, int]:
    forks = _commands(threads)
    done = forks.run(*command, folder=Path.cwd())
    assert done.status == 0, done.stderr
    return {"peak": done.peak}


def _taken_beside_a_gpu(command: list[str], threads: int) -> dict[str, int]:
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, *command],
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
        env={**os.environ, "DASK_NUM_WORKERS": str(threads)},
    )
    assert done.returncode == 0, done.stderr
    found = [line.split() for line in done.stdout.splitlines() if line.startswith(("peak ", "pool "))]
    return {name: int(size) for name, size in found}


def check_tight(planned: dict[str, Any], taken: dict[str, int]) -> None:
    """A plan is an upper bound, and not by much more than what it grants any process.

    There must be more chunks than threads, of which some are then computed at one time.
    """
    assert taken["peak"] <= planned["host"] <= 1.5 * taken["peak"] + 240 * 2**20


OUT = ["-o", "out.zarr"]


@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is read from /proc")
def test_peak_of_a_transform_in_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    words = da.zeros((1, 2**22, 8), dtype=np.uint32, chunks=(1, 2**18, 8))
    rd.FieldArray(words, rd.PrimeFields([2013265921])).to_zarr("x.zarr")
    planned, found = peaks(tmp_path, ["ntt", "x.zarr", *OUT, "--axis", "0", "--backend", "cpu"], 2)
    assert found["peak"] <= planned["host"]


@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is read from /proc")
@pytest.mark.parametrize("chunk", [2**18, 2**21])
def test_peak_of_a_transform_of_a_fermat_field(
    chunk: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In passes and in one, with factors as large as a chunk."""
    monkeypatch.chdir(tmp_path)
    words = da.zeros((8, 2**21), dtype=np.uint64, chunks=(8, chunk))
    rd.FieldArray(words, rd.FermatField.named("P3")).to_zarr("x.zarr")
    job = ["ntt", "x.zarr", *OUT, "--inverse", "--negacyclic", "--backend", "cpu"]
    planned, found = peaks(tmp_path, job, 2)
    assert found["peak"] <= planned["host"]


@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is read from /proc")
@pytest.mark.parametrize(
    ("exponent", "modulus"), [("-1", 2**63), ("5", 2**63), ("-1", 2**63 - 25), ("65537", 2**63 - 25)]
)
def test_peak_of_powers_modulo_an_integer(
    exponent: str, modulus: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    numbers = 2**19
    words = da.full((2, 4 * numbers), 2**32 - 1, dtype=np.uint32, chunks=(2, numbers))
    rd.PositionalArray(words, rd.Positional(64)).to_zarr("x.zarr")
    check_tight(*peaks(tmp_path, ["powmod", "x.zarr", exponent, str(modulus), *OUT], 2))


@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is read from /proc")
@pytest.mark.parametrize(
    ("bits", "numbers", "expression"),
    [
        (64, 2**21, "a*a - a*b"),
        (64, 2**19, "where(bit_length(a) > 9, 0, b)"),
        (64, 2**20, "mod_multiply(a, b, 1000002)"),
        (64, 2**20, "mod_inverse(a, 65536) + b"),
        (2048, 2**17, "a // b"),
        (400_000, 2**9, "a*b + a"),
    ],
)
def test_peak_of_limbs(
    bits: int, numbers: int, expression: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The longest products by transforms."""
    monkeypatch.chdir(tmp_path)
    limbs = bits // 32
    words = da.full((limbs, 4 * numbers), 2**32 - 1, dtype=np.uint32, chunks=(limbs, numbers))
    rd.PositionalArray(words, rd.Positional(bits)).to_zarr("x.zarr")
    job = ["eval", expression, "a=x.zarr", "b=x.zarr", "--overflow", "flag", *OUT]
    check_tight(*peaks(tmp_path, job, 2))


@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is read from /proc")
@pytest.mark.parametrize(
    ("command", "n", "numbers", "data", "compressed", "threads"),
    [
        (["max", "x.zarr"], 2, 2**21, "random", False, 4),
        (["max", "x.zarr"], 3, 2**20, TOP, False, 2),
        (["min", "x.zarr"], 4, 2**19, FALLING, True, 2),
        (["max", "x.zarr"], 64, 2**16, "random", True, 4),
        (["sum", "x.zarr"], 3, 2**20, TOP, False, 2),
        (["bound", "x.zarr"], 64, 2**16, FALLING, False, 2),
        (["bound", "x.zarr"], 3, 2**20, "random", True, 2),
        (["topk", "100", "x.zarr"], 3, 2**20, TOP, False, 2),
        (["topk", "400000", "x.zarr", "--json"], 3, 2**17, TOP, False, 2),
        (["cumsum", "x.zarr", "out.zarr"], 64, 2**13, FALLING, False, 2),
        (["cummax", "x.zarr", "out.zarr"], 64, 2**14, TOP, False, 2),
        (["cummin", "x.zarr", "out.zarr"], 3, 2**17, FALLING, True, 2),
        (["compare", "x.zarr", "y.zarr"], 3, 2**18, TOP, False, 2),
        (["stats", "x.zarr"], 3, 2**18, TOP, False, 2),
        (["stats", "x.zarr"], 64, 2**14, FALLING, False, 2),
        (["hist", "x.zarr"], 3, 2**18, "random", False, 2),
        (["hist", "x.zarr"], 64, 2**14, TOP, True, 2),
        (["eval", "a*b + 7*a", "--overflow", "wrap", *OUT], 2, 2**20, "random", False, 2),
        (["eval", "a*b - b", "--overflow", "flag", "--sum", "--max"], 4, 2**16, FALLING, False, 2),
        (["eval", "where(a < b, a + b, a // 3)", "--overflow", "flag", *OUT], 8, 2**17, TOP, False, 2),
        (["eval", "a // b", *OUT], 3, 2**15, FALLING, True, 2),
        (["extend", "x.zarr", "out.zarr", "--bits", "4000"], 64, 2**16, "random", False, 2),
        (["convert", "x.zarr", "out.zarr", "--to", "interval"], 8, 2**18, "random", False, 2),
        (["prod", "x.zarr", "--overflow", "flag"], 3, 2**20, "random", False, 2),
    ],
)
def test_peak_is_not_above_projection(
    on_each_processor: Processor,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: list[str],
    n: int,
    numbers: int,
    data: str,
    compressed: bool,
    threads: int,
) -> None:
    monkeypatch.chdir(tmp_path)
    if on_each_processor.name == "cuda":  # enough to see beside what the projection grants any GPU
        numbers *= 8
    make_store(tmp_path / "x.zarr", n, numbers, data, compressed)
    if command[0] in ("compare", "eval"):
        make_store(tmp_path / "y.zarr", n, numbers, data, compressed)
    if command[0] == "eval":
        command = [*command[:2], "a=x.zarr", "b=y.zarr", *command[2:]]
    planned, taken = peaks(tmp_path, [*command, "--backend", on_each_processor.name], threads)
    assert planned["threads"] == threads
    assert taken["peak"] <= planned["host"]
    if on_each_processor.name == "cuda":
        assert 0 < taken["pool"] <= planned["device"]


@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is read from /proc")
@pytest.mark.parametrize(
    ("command", "n", "numbers", "compressed", "threads"),
    [
        (["verify", "x.zarr"], 64, 2**16, True, 3),
        (
            ["random", "out.zarr", "--bits", "62", "--count", str(2**22), "--chunk", str(2**20)],
            2,
            1024,
            False,
            3,
        ),
        (["slice", "x.zarr", "out.zarr", "::-3"], 64, 2**16, False, 2),
        (["rechunk", "x.zarr", "out.zarr", "--chunks", str(2**14)], 64, 2**16, True, 2),
        (["concat", "x.zarr", "x.zarr", "-o", "out.zarr"], 64, 2**15, False, 2),
        (["export", "x.zarr", "out", "--binary", "32"], 8, 2**15, True, 1),
        (["export", "x.zarr", "out"], 64, 2**15, False, 1),
        (["import", "lines", "out.zarr", "--bits", "1984", "--chunk", "32768"], 2, 1024, False, 1),
        (
            ["import", "zeros", "out.zarr", "--binary", "4", "--bits", "1984", "--chunk", "32768"],
            2,
            1024,
            False,
            1,
        ),
    ],
)
def test_peak_on_the_host(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: list[str],
    n: int,
    numbers: int,
    compressed: bool,
    threads: int,
) -> None:
    monkeypatch.chdir(tmp_path)
    make_store(tmp_path / "x.zarr", n, numbers, "random", compressed)
    Path("zeros").write_bytes(bytes(2**19))
    Path("lines").write_bytes(b"0\n" * 2**17)
    planned, taken = peaks(tmp_path, command, threads)
    assert planned["threads"] == threads
    assert taken["peak"] <= planned["host"]


@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is read from /proc")
@pytest.mark.parametrize("command", [["max", "group.zarr"], ["sum", "group.zarr"]])
def test_peak_of_a_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: list[str]) -> None:
    monkeypatch.chdir(tmp_path)
    make_store(tmp_path / "x.zarr", 3, 2**18, "random", False)
    array = rd.open_zarr("x.zarr")
    rd.IntervalRNSArray.from_rns(array).to_zarr("group.zarr", chunks=2**18)
    planned, taken = peaks(tmp_path, command, 2)
    assert planned["threads"] == 2
    assert taken["peak"] <= planned["host"]


@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is read from /proc")
@pytest.mark.parametrize(
    ("command", "data", "threads"),
    [
        (["max", "x.zarr"], TOP, 1),
        (["topk", "3", "x.zarr"], TOP, 2),
        (["cummax", "x.zarr", "out.zarr"], TOP, 2),
        (["eval", "a // b", "a=x.zarr", "b=x.zarr", *OUT], FALLING, 2),
        (["convert", "x.zarr", "out.zarr", "--to", "positional"], "random", 2),
        (["import", "lines", "out.zarr", "--bits", str(31 * 4096), "--chunk", "128"], "random", 1),
    ],
)
def test_peak_of_many_moduli(
    command: list[str], data: str, threads: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tables of conversions, which have a value for each pair of moduli, are larger than chunks then."""
    monkeypatch.chdir(tmp_path)
    make_store(tmp_path / "x.zarr", 4096, 384, data, compressed=False)
    Path("lines").write_text(f"{hex(2**120000)}\n" * 300)
    planned, taken = peaks(tmp_path, command, threads)
    assert planned["threads"] == threads
    assert taken["peak"] <= planned["host"]


@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is read from /proc")
@pytest.mark.parametrize("command", [["det", "x.zarr", *OUT], ["resultant", "y.zarr", "y.zarr", *OUT]])
def test_peak_of_many_small_results(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python ints of one word each: more than the bytes of their bounds, and than the matrices."""
    monkeypatch.chdir(tmp_path)
    count, chunk = 2**22, 2**16
    words = da.full((2, count), 2**31 - 1, dtype=np.uint32, chunks=(2, chunk))
    numbers = rd.RNSArray(words, RNS(rd.ModuliSet([2**32 - 5, 2**32 - 17]), False))
    numbers.reshape(count, 1, 1).to_zarr("x.zarr")
    numbers.reshape(count, 1).to_zarr("y.zarr")
    planned, taken = peaks(tmp_path, [*command, "--backend", "cpu"], 1)
    assert taken["peak"] <= planned["host"]


@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is read from /proc")
@pytest.mark.parametrize("operation", ["det", "charpoly"])
def test_peak_of_wide_results(operation: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of thousands of primes, of which tables are larger than the matrices."""
    monkeypatch.chdir(tmp_path)
    moduli, rng = rd.ModuliSet.for_bits(4650), np.random.default_rng(1)
    rows = [rng.integers(0, m, (2, 24, 24)).astype(np.uint32) for m in moduli]
    words = da.from_array(np.stack(rows), chunks=(len(moduli), 1, 24, 24))
    rd.RNSArray(words, RNS(moduli, signed=True)).to_zarr("x.zarr")
    planned, taken = peaks(tmp_path, [operation, "x.zarr", *OUT, "--backend", "cpu"], 1)
    assert taken["peak"] <= planned["host"]


@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is read from /proc")
@pytest.mark.parametrize("chunks", [(3, 2**21), (1, 2**21)])
def test_peak_of_residues_in_large_chunks(
    chunks: tuple[int, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A Zarr array of another program is read by its own chunks, however small those are that are written."""
    monkeypatch.chdir(tmp_path)
    residues = zarr.create_array("r.zarr", shape=(3, 2**23), chunks=chunks, dtype="int64", compressors=None)
    for start in range(0, 2**23, 2**21):
        residues[:, start : start + 2**21] = np.arange(3 * 2**21).reshape(3, -1)
    moduli = ",".join(map(str, (10**15 + 3, 10**15 + 37, 10**15 + 91)))
    how = ["--residues", "--moduli-list", moduli, "--chunk", str(2**16)]
    planned, taken = peaks(tmp_path, ["import", "r.zarr", "out.zarr", *how], 4)
    assert taken["peak"] <= planned["host"]


@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is read from /proc")
def test_peak_of_rows_that_become_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shape, chunks = (2**9, 2**13), (2**4, 2**13)
    writer = store.create("x.zarr", RNS(rd.ModuliSet.for_bits(31 * 16)), shape, chunks=chunks)
    for index in writer.info.indices():
        writer.write_chunk(index, np.zeros(writer.info.chunk_shape, dtype=np.uint32))
    size = writer.finish().nbytes
    planned, taken = peaks(tmp_path, ["rechunk", "x.zarr", "out.zarr", "--chunks", f"{2**9},{2**8}"], 2)
    assert size < taken["peak"] <= planned["host"]


def test_projection_grows() -> None:
    for operation in memory.OPERATIONS:
        for direct in (True, False):
            small = Work(operation, 8, 2**16, 100, direct=direct)
            for gpu in (True, False):
                one, two = (project(small, threads, gpu=gpu) for threads in (1, 2))
                assert one.host < two.host
                assert (one.device < two.device) == gpu
                large = project(Work(operation, 8, 2**22, 100, direct=direct), 1, gpu=gpu)
                reads = operation != "random" or not gpu
                assert large.host >= one.host + reads * 8 * 4 * (2**22 - 2**16)
    assert project(Work("max", 8, 128, 3), 16) == project(Work("max", 8, 128, 3), 3)
    with pytest.raises(ValueError, match=r"operation must be one of max, .*, got 'mean'"):
        project(Work("mean", 1, 1, 1), 1)


def test_products_of_matrices_take_memory_of_a_gpu() -> None:
    """Beside what a job takes that computes as much without products: at most one block of one product.

    And the factors of images that elimination keeps.
    """
    for length, most in ((8, 76 * 4 * 8 * 64), (1024, 2**29 + 2**29), (8192, 1_342_177_280 + 5 * 2**30)):
        det, other = (
            project(Work(name, 8, length**2, 5, arrays=4), 3, gpu=True) for name in ("det", "charpoly")
        )
        assert det.device - other.device == 3 * most
        assert det.host == other.host


def test_threads_and_chunks_that_fit() -> None:
    work = Work("max", 64, 2**20, 100)
    for threads in (1, 3, 8):
        limit = project(work, threads).host
        assert memory.Place("here", 8, limit).most_threads(work) == threads
        assert memory.Place("here", 8, limit - 1).most_threads(work) == threads - 1
    lengths = memory.chunk_lengths(2**20)
    assert lengths[:2] == [2**20, 2**19]
    assert lengths[-1] == 128
    limit = project(Work("max", 64, 2**16, 1600), 4).host
    assert memory.Place("here", 4, limit).largest_fitting(work, lengths, 4) == 2**16
    assert memory.Place("here", 4, 2**20).largest_fitting(work, lengths, 4) is None


def run(*args: str | int, status: int = 0) -> Any:
    result = CliRunner().invoke(main, [str(arg) for arg in args], prog_name="rnsdask")
    assert result.exit_code == status, result.output
    return result


def limited(monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    monkeypatch.setattr(memory_plan, "process_limit", lambda: limit)


def test_job_with_little_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    info = make_store(tmp_path / "x.zarr", 8, 2**18, "random", False)
    expected = json.loads(run("max", info.path, "--json").stdout)
    monkeypatch.setattr(memory_plan, "CPU_COUNT", 4)
    work = memory_plan.work_on(info, "max")
    limited(monkeypatch, project(work, 2).host)
    log = tmp_path / "log"
    result = run("max", info.path, "--json", "--log-json", log)
    assert "rnsdask: 2 of 4 threads run at a time, to fit into memory" in result.stderr
    assert json.loads(result.stdout)["value"] == expected["value"]
    events = [json.loads(line) for line in log.read_text().splitlines()]
    (planned,) = (event for event in events if event["event"] == "plan")
    assert (planned["threads"], planned["part"]) == (2, None)
    assert planned["host"] == planned["host_limit"] == project(work, 2).host

    limited(monkeypatch, project(work, 1).host - 1)
    result = run("max", info.path, "--json")
    assert "rnsdask: chunks are read in parts of " in result.stderr
    found = json.loads(result.stdout)
    assert [found[key] for key in ("value", "index", "count")] == [
        expected[key] for key in ("value", "index", "count")
    ]

    limited(monkeypatch, 2**20)
    error = run("max", info.path, status=1).stderr
    assert error.startswith("rnsdask: error: max with chunks of 262144 numbers (0.00839 GB) does not fit")
    assert "no chunk size would fit" in error
    assert error.count("\n") == 1


def test_chunks_that_an_import_finds_are_read_one_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many as its plan counts, however many threads there could be."""
    monkeypatch.chdir(tmp_path)
    how = ["import", "lines", "x.zarr", "--bits", 62, "--chunk", 128]
    Path("lines").write_text("".join(f"{i}\n" for i in range(1024)))
    run(*how)
    document = json.loads(Path("x.zarr", "zarr.json").read_text())
    document["attributes"]["rnsdask"]["complete"] = False
    write_sealed(Path("x.zarr"), document)
    Path("x.zarr", "c", "0", "7").unlink()
    reading: list[int] = []
    most = 0

    def look(info: store.StoreInfo, index: tuple[int, ...]) -> list[str]:
        nonlocal most
        reading.append(1)
        most = max(most, len(reading))
        time.sleep(0.02)
        reading.pop()
        return chunk_problems(info, index)

    monkeypatch.setattr(writing, "chunk_problems", look)
    assert "7 chunks kept" in run(*how, "--resume").output
    assert most == 1


def test_refusal_names_a_chunk_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    info = make_store(tmp_path / "x.zarr", 8, 2**18, "random", True)  # compressed: not in parts
    work = memory_plan.work_on(info, "sum")
    limited(monkeypatch, project(work, 1).host - 1)
    with pytest.raises(JobError, match=r"1 thread may need .* GB of .* GB; chunks of 131072 numbers would"):
        memory_plan.fitting(work, info=info).__enter__()
    bits = ["--bits", 256, "--count", 2**22, "--chunk", 2**22]
    assert " would fit" in run("random", tmp_path / "y.zarr", *bits, status=1).stderr
    assert not (tmp_path / "y.zarr").exists()


@pytest.mark.parametrize(
    ("shape", "chunks", "part"),
    [
        ((1000,), (384,), 128),
        ((1000,), (384,), 1),
        ((1000,), (1000,), 300),
        ((1000,), (384,), 384),
        ((10, 300), (4, 128), 1),
        ((10, 300), (4, 128), 3),
        ((3, 300), (1, 256), 128),
        ((2, 5, 130), (1, 4, 130), 3),
    ],
)
def test_reading_in_parts(
    tmp_path: Path, rng: np.random.Generator, shape: tuple[int, ...], chunks: tuple[int, ...], part: int
) -> None:
    moduli = rd.ModuliSet([7, 2**32, 11])
    residues = np.stack([rng.integers(0, m, shape).astype(np.uint32) for m in moduli])
    path = str(tmp_path / "x.zarr")
    writer = store.create(path, RNS(moduli), shape, chunks=chunks)
    for index in writer.info.indices():
        slices = [slice(i * c, (i + 1) * c) for i, c in zip(index, chunks, strict=True)]
        writer.write_chunk(index, residues[(slice(None), *slices)])
    info = writer.finish()
    x = rd.open_zarr(path, part=part)
    assert max(x.residues.chunks[1 + store.split_axis(chunks)]) <= part
    np.testing.assert_array_equal(x.residues.compute(), residues)
    assert int(x.argmax()) == int(rd.open_zarr(path).argmax())
    # Whatever byte is damaged, no part of the chunk is read.
    file = info.chunk_file((0,) * len(shape))
    content = bytearray(file.read_bytes())
    for byte in (0, len(content) // 2, len(content) - 1):
        damaged = bytearray(content)
        damaged[byte] ^= 1
        file.write_bytes(damaged)
        for start in range(0, chunks[store.split_axis(chunks)], part):
            with pytest.raises(CorruptChunkError, match="is corrupt: its CRC-32C is"):
                store.read_part(info, (0,) * len(shape), start, start + part)


def test_wrong_parts(tmp_path: Path) -> None:
    info = make_store(tmp_path / "x.zarr", 2, 2**10, "random", True)
    with pytest.raises(ValueError, match="part must be at least 1, got 0"):
        rd.open_zarr(info.path, part=0)
    with pytest.raises(ValueError, match="only local chunks without compression can be read in parts"):
        rd.open_zarr(info.path, part=128)
