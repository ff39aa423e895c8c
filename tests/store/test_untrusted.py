"""Stores that anyone may have made: opening one gives its numbers, or one line of an error.

Neither a crash, nor an endless wait, nor memory beyond what the array's shape asks for. What takes long or
much if it goes wrong runs in a process of its own, with limits.
"""

import gzip
import json
import os
import random
import re
import resource
import struct
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import fsspec
import google_crc32c
import numcodecs
import numpy as np
import pytest
import zarr
from commands import call, fail, succeed
from documents import write_sealed
from numpy.typing import NDArray
from zarr.codecs import BloscCodec, Crc32cCodec, GzipCodec, Zlib, ZstdCodec

import rnsdask as rd
from rnsdask import store
from rnsdask.core.errors import CorruptChunkError, JobError, StoreError
from rnsdask.core.moduli import ModuliSet
from rnsdask.jobs import memory_plan
from rnsdask.rns.system import RNS
from rnsdask.store.location import LONGEST_METADATA

MODULI = ModuliSet([2**32, 2**32 - 1, 2**31 - 1, 7])
COMMAND = [sys.executable, "-c", "from rnsdask.cli import main; main(prog_name='rnsdask')"]
SECONDS = 120  # a hang; a machine with much other work is slow
GIGABYTES = 1.5  # of address space: libraries of a process with Dask take most of it


def write(path: Path, residues: NDArray[np.uint32], **options: Any) -> store.StoreInfo:
    writer = store.create(path, RNS(MODULI), residues.shape[1:], **options)
    for index in writer.info.indices():
        writer.write_chunk(index, residues[(slice(None), *slices(writer.info, index))])
    return writer.finish()


def slices(info: store.StoreInfo, index: tuple[int, ...]) -> list[slice]:
    return [slice(i * c, (i + 1) * c) for i, c in zip(index, info.chunks, strict=True)]


def some_residues(shape: tuple[int, ...], seed: int = 1) -> NDArray[np.uint32]:
    rng = np.random.default_rng(seed)
    return np.array([rng.integers(0, m, shape, dtype=np.uint64) for m in MODULI]).astype(np.uint32)


def limited(*args: str, stdin: Any = subprocess.DEVNULL) -> tuple[int, str]:
    """Run a command with limits of time and memory; return its status and its standard error."""

    def limit() -> None:
        size = int(GIGABYTES * 2**30)
        resource.setrlimit(resource.RLIMIT_AS, (size, size))

    result = subprocess.run(
        [*COMMAND, *args],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        preexec_fn=limit,
        stdin=stdin,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        check=False,
    )
    return result.returncode, result.stderr


def limited_failure(*args: object, status: int = 1) -> str:
    """Run a command with limits; it must end in one line on standard error, which is returned."""
    returned, errors = limited(*map(str, args))
    assert returned == status, errors[-2000:]
    assert errors.startswith("rnsdask: error: ")
    assert errors.count("\n") == 1, errors
    assert len(errors) < 1000
    return errors.removeprefix("rnsdask: error: ").rstrip("\n")


# Residues


def replace_chunk(file: Path, content: bytes) -> None:
    """Write a chunk with a checksum that matches it."""
    file.write_bytes(content + struct.pack("<I", google_crc32c.value(content)))


def edit_residues(info: store.StoreInfo, key: str, change: Callable[[NDArray[np.uint32]], object]) -> None:
    """Change the residues of an uncompressed chunk behind the package's back."""
    file = Path(info.path, key)
    residues = np.frombuffer(file.read_bytes()[:-4], "<u4").reshape(info.chunk_shape).copy()
    change(residues)
    replace_chunk(file, residues.tobytes())


@pytest.mark.parametrize("length", [100, 256, 70_000])
@pytest.mark.parametrize("row", [1, 2, 3])
def test_a_residue_that_is_not_below_its_modulus_is_found_on_reading(
    tmp_path: Path, length: int, row: int
) -> None:
    info = write(tmp_path / "x", some_residues((2 * length,)), chunks=128 * -(-length // 128))
    chunk = info.chunks[0]
    for position in (0, length // 2, chunk - 1):
        number = 0 if info.n_chunks == 1 else chunk + position
        if number >= info.count:
            continue
        index = (number // chunk,)
        edit_residues(info, info.chunk_key(index), lambda r, p=position: r.__setitem__((row, p), MODULI[row]))
        message = f"residue {MODULI[row]} of number {index[0] * chunk + position} is not below its modulus"
        with pytest.raises(CorruptChunkError, match=message):
            store.read_chunk(info, index)
        (problem,) = store.verify(info)
        assert f"{message} {MODULI[row]} (row {row})" in problem
        edit_residues(info, info.chunk_key(index), lambda r, p=position: r.__setitem__((row, p), 0))
    store.read_chunk(info, (info.n_chunks - 1,))
    # What lies beyond the array's edge has no meaning.
    if info.count % chunk:
        edit_residues(
            info, info.chunk_key((info.n_chunks - 1,)), lambda r: r.__setitem__((row, -1), 2**32 - 1)
        )
        store.read_chunk(info, (info.n_chunks - 1,))
        (problem,) = store.verify(info)
        assert problem.endswith("its chunks are whole, but not those that it was completed with")


def test_parts_and_compressed_chunks_are_checked_too(tmp_path: Path) -> None:
    residues = some_residues((4, 300))
    info = write(tmp_path / "x", residues, chunks=(4, 128))
    edit_residues(info, "c/0/0/1", lambda r: r.__setitem__((2, 3, 7), MODULI[2] + 1))
    np.testing.assert_array_equal(store.read_part(info, (0, 1), 0, 3), residues[:, :3, 128:256])
    message = (
        r"c/0/0/1: residue 2147483648 of number \(3, 135\) is not below its modulus 2147483647 \(row 2\)"
    )
    for start, stop in ((3, 4), (2, 4), (1, 9)):
        with pytest.raises(CorruptChunkError, match=message):
            store.read_part(info, (0, 1), start, stop)
    packed = write(tmp_path / "y", residues[:, 0], codecs=[ZstdCodec()])
    bad = np.zeros(packed.chunk_shape, "<u4")
    bad[3, 5] = 7
    replace_chunk(tmp_path / "y/c/0/0", numcodecs.Zstd().encode(bad))
    with pytest.raises(CorruptChunkError, match="residue 7 of number 5 is not below its modulus 7"):
        store.read_chunk(packed, (0,))


def test_a_divisor_of_residues_that_stand_for_0(tmp_path: Path) -> None:
    """It ended the process: the residues are not 0, but the number is."""
    info = write(tmp_path / "x", some_residues((200,)))
    edit_residues(info, "c/0/0", lambda r: r.__setitem__((slice(None), 7), [m % 2**32 for m in MODULI]))
    message = limited_failure("eval", "a//a", f"a={info.path}", "-o", tmp_path / "y")
    assert message.startswith(f"{info.path}: chunk c/0/0: residue 4294967295 of number 7 is not below")


def test_kernels_are_safe_for_any_residues() -> None:
    """Results of residues that are too great mean nothing, but each comes, or an error."""
    code = """
import sys
import numpy as np
import rnsdask as rd
from rnsdask.core.moduli import ModuliSet
rng = np.random.default_rng(int(sys.argv[1]))
sets = [ModuliSet.for_bits(200), ModuliSet([7, 5, 9, 2**20]), ModuliSet([2**32]), ModuliSet([3, 2**31 - 1])]
for ms in sets:
    last = np.array([m - 1 for m in ms], np.uint64)[:, None]
    patterns = [
        rng.integers(0, 2**32, (len(ms), 300), dtype=np.uint32),
        np.full((len(ms), 300), 2**32 - 1, np.uint32),
        np.broadcast_to(last + 1, (len(ms), 300)).astype(np.uint32),
        (last + 1).astype(np.uint64) * rng.integers(0, 4, (len(ms), 300), dtype=np.uint64) % 2**32,
        np.broadcast_to(2 * last + 2, (len(ms), 300)).astype(np.uint32),
    ]
    patterns = [p.astype(np.uint32) for p in patterns]
    for signed in (False, True):
        for p in (patterns[i] for i in rng.permutation(5)[:3]):
            others = [patterns[0], p[:, ::-1].copy(), p[:, :1].repeat(300, axis=1)]
            for q in [others[rng.integers(3)]]:
                x, y = (rd.RNSArray(r, rd.RNS(ms, signed)) for r in (p, q))
                z = x.rechunk(128)
                operations = (
                    lambda: x + y, lambda: x - y, lambda: x * y, lambda: x // y, lambda: x % y,
                    lambda: divmod(x, y), lambda: x // 3, lambda: x % 2**40, lambda: x // 2**40,
                    lambda: x >> 3, lambda: x << 3, lambda: x**3, lambda: rd.inverse(x),
                    lambda: x < y, lambda: x == y,
                    lambda: x.max(), lambda: x.min(), lambda: x.sum(), lambda: x.prod(), lambda: x.topk(5),
                    lambda: x.argtopk(5), lambda: x.cumsum(), lambda: x.cummax(), lambda: rd.sign(x),
                    lambda: rd.maximum(x, y), lambda: x.is_even(), lambda: x @ y, lambda: x.to_ints(),
                    lambda: x.extend(ModuliSet.for_bits(300)), lambda: x.shrink(ms),
                    lambda: z.max().compute(), lambda: (z - z.max()).compute(), lambda: z.cumsum().compute(),
                    lambda: rd.IntervalRNSArray.from_rns(x) // rd.IntervalRNSArray.from_rns(y),
                    lambda: rd.IntervalRNSArray.from_rns(x) * rd.IntervalRNSArray.from_rns(y),
                    lambda: rd.IntervalRNSArray.from_rns(x).max(),
                )
                for operation in operations:
                    try:
                        operation()
                    except (ArithmeticError, ValueError, TypeError, AttributeError):
                        pass
print("done")
"""
    seed = random.randrange(2**32)
    result = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, str(seed)],
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert (result.returncode, result.stdout) == (0, "done\n"), (seed, result.stderr[-2000:])


ROWS = {"sign": (0, "<u4"), "exponent": (1, "<i4"), "low": (2, "<f8"), "upp": (4, "<f8")}


def header_of(path: Path, name: str, value: float | None = None) -> Any:
    """Read, or change with Zarr, a part of the header of the first number of an array."""
    array, (row, dtype) = zarr.open_array(path, mode="r+"), ROWS[name]
    row += len(MODULI)
    if value is not None:
        for k, word in enumerate(np.array([value], dtype).view("<u4")):
            array[row + k, 0] = word
    return np.ascontiguousarray(array[row : row + np.dtype(dtype).itemsize // 4, 0]).view(dtype)[0]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("sign", 2),
        ("low", float("nan")),
        ("upp", float("nan")),
        ("upp", float("inf")),
        ("low", -0.5),
        ("low", 0.25),
        ("upp", 0.0),
        ("upp", 1.0),
        ("exponent", 2**31 - 1),
        ("exponent", -(2**31)),
        ("exponent", 0),
    ],
)
@pytest.mark.parametrize("number", [5, 0])
def test_headers_of_signed_integers_are_checked(tmp_path: Path, name: str, value: float, number: int) -> None:
    path = tmp_path / "x"
    rd.IntervalRNSArray.from_ints([number, -3], MODULI).to_zarr(path)
    before = header_of(path, name)
    header_of(path, name, value)
    x = rd.open_zarr(path)
    if before == value or (number and (name, value) == ("exponent", 0)):
        return  # nothing has changed, or it is another interval that some number has
    with pytest.raises(CorruptChunkError, match=r"number 0 has a header that no number has: sign "):
        x.compute()


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_infinite_headers_make_no_warnings(tmp_path: Path) -> None:
    rd.IntervalRNSArray.from_ints([5, -3], MODULI).to_zarr(tmp_path / "x")
    for name in ("low", "upp"):
        header_of(tmp_path / "x", name, float("inf"))
    with pytest.raises(CorruptChunkError, match=r"number 0 has a header that no number has: sign "):
        rd.open_zarr(tmp_path / "x").compute()


# Chunks


@pytest.mark.parametrize(
    "codec", [BloscCodec(), GzipCodec(level=1), ZstdCodec(level=1), ZstdCodec(level=1, checksum=True)]
)
def test_compressors(tmp_path: Path, codec: Any) -> None:
    residues = some_residues((3, 300))
    residues[:, 1] = 5
    info = write(tmp_path / "x", residues, chunks=(2, 128), codecs=[codec])
    assert info.codecs[1].startswith(codec.to_dict()["name"])
    for index in info.indices():
        np.testing.assert_array_equal(
            store.read_chunk(info, index), residues[(slice(None), *slices(info, index))]
        )
    np.testing.assert_array_equal(zarr.open_array(tmp_path / "x", mode="r")[...], residues)
    assert list(store.verify(info)) == []


@pytest.mark.parametrize("kinds", [[Zlib], [ZstdCodec, GzipCodec], [Crc32cCodec, ZstdCodec]])
def test_other_codecs_are_refused(tmp_path: Path, kinds: list[Any]) -> None:
    message = "its codecs must be bytes, at most one of blosc, gzip, zstd, and crc32c; got bytes"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        codecs = [kind() for kind in kinds]
        with pytest.raises(ValueError, match=message):
            store.create(tmp_path / "x", RNS(MODULI), (10,), codecs=codecs)
        assert not (tmp_path / "x").exists()
        options: dict[str, Any] = {"shape": (4, 300), "chunks": (4, 128), "dtype": "uint32"}
        info = write(tmp_path / "y", some_residues((10,)))
        attributes = dict(zarr.open_array(info.path, mode="r").attrs)
        zarr.create_array(
            tmp_path / "x", compressors=[*codecs, Crc32cCodec()], attributes=attributes, **options
        )
        with pytest.raises(StoreError, match=message):
            store.open_info(tmp_path / "x")


def zstd_bomb(size: int, declared: bytes) -> bytes:
    """A frame of zeros, each 128 KiB of them in four bytes."""
    count = -(-size // 2**17)
    blocks = [(2**17 << 3 | 1 << 1 | (i == count - 1)).to_bytes(3, "little") + b"\0" for i in range(count)]
    return b"\x28\xb5\x2f\xfd" + bytes([0xC0 if declared else 0]) + b"\x38" + declared + b"".join(blocks)


def test_chunks_that_unpack_to_more_than_a_chunk(tmp_path: Path) -> None:
    """To 3 GB: a process that may use less finds it out, and at once."""
    member = gzip.compress(bytes(2**24))
    blosc = bytearray(numcodecs.Blosc().encode(bytes(2**16)))
    blosc[4:8] = struct.pack("<I", 2**31 - 1)
    paths = []
    for name, codec, content in (
        ("declared", ZstdCodec(), zstd_bomb(3 * 10**9, struct.pack("<Q", 3 * 10**9))),
        ("lying", ZstdCodec(), zstd_bomb(3 * 10**9, struct.pack("<Q", 4 * 128 * 4))),
        ("silent", ZstdCodec(), zstd_bomb(3 * 10**9, b"")),
        ("gzip", GzipCodec(), member),
        ("members", GzipCodec(), member * 3),
        ("blosc", BloscCodec(), bytes(blosc)),
    ):
        info = write(tmp_path / name, some_residues((100,)), codecs=[codec])
        replace_chunk(Path(info.path, "c/0/0"), content)
        paths.append(info.path)
    code = f"""
import resource, sys
from rnsdask import store
from rnsdask.core import errors
resource.setrlimit(resource.RLIMIT_AS, ({int(GIGABYTES * 2**30)},) * 2)
for path in sys.argv[1:]:
    try:
        store.read_chunk(store.open_info(path), (0,))
    except errors.CorruptChunkError as error:
        print(error)
print(open("/proc/self/status").read().split("VmHWM:")[1].split()[0])  # of this program alone
"""
    command = [sys.executable, "-c", code, *paths]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}  # its threads take address space
    result = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, env=environment)
    assert result.returncode == 0, result.stderr
    *problems, memory = result.stdout.splitlines()
    for path, problem in zip(paths, problems, strict=True):
        assert problem.startswith(f"{path}: chunk c/0/0 is corrupt: ")
    assert int(memory) < 300 * 1024


def test_compressed_chunks_of_random_bytes(tmp_path: Path) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    rng = random.Random(seed)
    residues = some_residues((500,))
    for name, codec in (("b", BloscCodec()), ("g", GzipCodec()), ("z", ZstdCodec())):
        info = write(tmp_path / name, residues, codecs=[codec])
        file = tmp_path / name / "c/0/0"
        good = file.read_bytes()[:-4]
        for _ in range(70):
            content = bytearray(good)
            for _ in range(rng.choice([1, 1, 3, 50])):
                content[rng.randrange(rng.choice([20, len(content)]))] = rng.randrange(256)
            if rng.random() < 0.3:
                del content[rng.randrange(len(content)) :]
            replace_chunk(file, bytes(content))
            message = ""
            try:
                found = store.read_chunk(info, (0,))
            except CorruptChunkError as error:
                message = str(error)
            if message:
                assert message.startswith(f"{info.path}: chunk c/0/0"), seed
                assert "\n" not in message
            else:
                assert found.shape == residues.shape
                assert all((row < m).all() for row, m in zip(found, MODULI, strict=True)), seed


# Files that are no files


@pytest.mark.timeout(SECONDS)
@pytest.mark.parametrize("key", ["zarr.json", "c/0/1"])
@pytest.mark.parametrize("codecs", [None, [ZstdCodec()]])
def test_pipes_and_devices_are_not_read(tmp_path: Path, key: str, codecs: Any) -> None:
    info = write(tmp_path / "x", some_residues((300,)), chunks=128, codecs=codecs)
    file = tmp_path / "x" / key
    file.unlink()
    for make in (os.mkfifo, lambda path: path.symlink_to("/dev/zero"), Path.mkdir):
        make(file)
        for command in ("info", "verify", "max"):
            result = call(command, tmp_path / "x")
            assert result.exit_code == (0 if (command, key) == ("info", "c/0/1") else 1)
            assert result.output.count("cannot be read: ") == result.exit_code
        file.rmdir() if file.is_dir() else file.unlink()
    assert info.n_chunks == 3


def test_long_metadata(tmp_path: Path) -> None:
    write(tmp_path / "x", some_residues((300,)))
    os.truncate(tmp_path / "x/zarr.json", 50 * 10**9)
    assert fail("info", tmp_path / "x") == (
        f"{tmp_path}/x: its zarr.json has more than {LONGEST_METADATA} bytes"
    )
    fsspec.filesystem("memory").pipe_file("/untrusted/x/zarr.json", bytes(LONGEST_METADATA + 1))
    with pytest.raises(StoreError, match=f"its zarr.json has more than {LONGEST_METADATA} bytes"):
        rd.open_zarr("memory://untrusted/x")


def test_files_that_do_not_belong_to_a_store(tmp_path: Path) -> None:
    info = write(tmp_path / "x", some_residues((3, 300)), chunks=(1, 128))
    others = [
        "c/0/0/00",
        "c/0/0/3",
        "c/0/3/0",
        "c/0/0/-1",
        "c/1/0/0",
        "c/0/0/0/0",
        "c/0/0/\u0661",
        "d/0/0/0",
    ]
    assert all(map(info.holds, ("c/0/2/2", "c/0/1", "c/0", "c")))
    assert not any(map(info.holds, (*others, "", "d", "zarr.json", "c/0/x/0")))
    (tmp_path / "x/c/0/0/00").touch()
    (tmp_path / "x/c/0/0/3").touch()
    assert list(store.verify(info)) == [
        f"{info.path}: file c/0/0/{name} does not belong to the store" for name in ("00", "3")
    ]


@pytest.mark.timeout(SECONDS)
def test_links_in_a_circle(tmp_path: Path) -> None:
    write(tmp_path / "x", some_residues((300,)))
    for name in ("a", "b"):
        (tmp_path / "x/c" / name).symlink_to("..")
    result = call("verify", tmp_path / "x")
    assert result.exit_code == 1
    assert len(result.output) < 10_000


# Metadata


def edit(path: Path, change: Callable[[Any], object]) -> None:
    """Change a metadata document, with a checksum that matches it."""
    document = json.loads((path / "zarr.json").read_text())
    change(document)
    write_sealed(path, document)


def set_chunks(*chunks: Any) -> Callable[[Any], object]:
    def change(document: Any) -> None:
        document["chunk_grid"]["configuration"]["chunk_shape"] = [len(MODULI), *chunks]

    return change


def set_shape(*shape: int) -> Callable[[Any], object]:
    def change(document: Any) -> None:
        document["shape"] = [len(MODULI), *shape]
        document["dimension_names"] = None

    return change


def both(*changes: Callable[[Any], object]) -> Callable[[Any], object]:
    return lambda document: [change(document) for change in changes]


IMPOSSIBLE = [
    (
        set_chunks(2**60),
        r"its chunk shape \(4, 1152921504606846976\) takes more than 9223372036854775807 bytes",
    ),
    (set_shape(2**62), r"its shape \(4, 4611686018427387904\) takes more than"),
    (both(set_shape(10**12), set_chunks(1)), "it has 1000000000000 chunks, of 67108864 at most"),
    (both(set_shape(2**40, 0), set_chunks(1, 1)), "it has 1099511627776 chunks"),
    (set_chunks(0), r"its chunk shape must be 2 integers from 1 on, got \[4, 0\]"),
    (set_chunks(-128), r"its chunk shape must be 2 integers from 1 on, got \[4, -128\]"),
    (set_chunks(True), r"its chunk shape must be 2 integers from 1 on, got \[4, True\]"),
    (set_chunks([128, 172]), r"its chunk shape must be 2 integers from 1 on, got \[4, \[128, 172\]\]"),
    (set_shape(-5), "its shape|Zarr cannot read its zarr.json"),
    (both(set_shape(*[1] * 40), set_chunks(*[1] * 40)), "it must have at most 32 axes, got 41"),
    (lambda d: d.update(attributes=[1]), "its attributes must be an object"),
]


@pytest.mark.timeout(SECONDS)
@pytest.mark.parametrize(("change", "message"), IMPOSSIBLE)
def test_impossible_metadata(tmp_path: Path, change: Callable[[Any], object], message: str) -> None:
    write(tmp_path / "x", some_residues((300,)), chunks=128)
    edit(tmp_path / "x", change)
    for command in ("info", "verify", "max"):
        assert re.match(f"{re.escape(str(tmp_path))}/x: ({message})", fail(command, tmp_path / "x"))
    with pytest.raises(StoreError, match=message):
        rd.open_zarr(tmp_path / "x")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[" * 10**6, "RecursionError|it is nested too deeply"),
        ('{"a":' * 10**5 + "1" + "}" * 10**5, "it is nested too deeply"),
        ('{"zarr_format": 3, "zarr_format": 3}', "it has two fields 'zarr_format'"),
        ('{"attributes": {"rnsdask": {"bound": null, "bound": "0x5"}}}', "it has two fields 'bound'"),
        ('{"shape": [' + "9" * 10**6 + "]}", "Exceeds the limit"),
        ("[NaN]", "it must be an object"),
    ],
)
def test_strange_json(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "x/zarr.json").write_text(text)
    for command in ("info", "max"):
        assert re.match(f".*x: Zarr cannot read its zarr.json: .*({message})", fail(command, tmp_path / "x"))
    # Nor may such a document be taken for something to replace.
    assert "it exists and is not a Zarr array" in fail(
        "random", tmp_path / "x", "--count", 5, "--bits", 60, "--overwrite"
    )


@pytest.mark.timeout(SECONDS)
def test_the_graph_of_too_many_chunks_is_not_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rnsdask.cluster.limits.process_limit", lambda: 2**33)
    write(tmp_path / "x", some_residues((300,)), chunks=128)
    edit(tmp_path / "x", both(set_shape(2**26), set_chunks(1)))
    message = "its 67108864 chunks would take 1.1e+03 GB for Dask's graph alone, of 8.59 GB of memory"
    assert message in fail("eval", "a+1", f"a={tmp_path}/x", "-o", tmp_path / "y")
    with pytest.raises(JobError, match=re.escape(f"{tmp_path}/x: {message}; larger chunks are fewer")):
        rd.open_zarr(tmp_path / "x")
    assert next(store.verify(store.open_info(tmp_path / "x"))).startswith(f"{tmp_path}/x: chunk c/0/0 has ")
    with pytest.raises(JobError, match=r"an array of shape \(1000000000000,\): its 7812500000 chunks"):
        rd.random(MODULI, 10**12, chunks=128)
    job = "random", tmp_path / "z", "--count", 10**12, "--bits", 60, "--chunk", 128
    assert "are free on the disk" in fail(*job)
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=2**60))
    assert "chunks would take" in fail(*job)
    with pytest.raises(ValueError, match="it has 7812500000 chunks, of 67108864 at most"):
        store.create(tmp_path / "z", RNS(MODULI), (10**12,), chunks=128)
    assert not (tmp_path / "z").exists()


@pytest.mark.timeout(SECONDS)
@pytest.mark.parametrize("chunk", [2**50, 3 * 2**45, 10**14 // 128 * 128])
def test_a_plan_for_huge_chunks(tmp_path: Path, chunk: int) -> None:
    write(tmp_path / "x", some_residues((300,)), chunks=128)
    for length in (chunk, 5 * chunk):
        edit(tmp_path / "x", both(set_shape(length), set_chunks(chunk)))
        lengths = memory_plan.part_lengths(store.open_info(tmp_path / "x"))
        assert 10 < len(lengths) < 5000
        assert all(part < chunk and (chunk % part == 0 or length == chunk) for part in lengths)
        assert "does not fit into the memory" in fail("max", tmp_path / "x")


def test_a_store_of_20000_moduli(tmp_path: Path) -> None:
    moduli = ModuliSet.for_bits(20_000 * 32 - 10)
    assert len(moduli) >= 20_000
    writer = store.create(tmp_path / "x", RNS(moduli), (2,), chunks=2)
    writer.write_chunk((0,), np.ones((len(moduli), 2), np.uint32))
    writer.finish(bound=1)
    start = time.process_time()
    assert store.open_info(tmp_path / "x").moduli == moduli
    edit(tmp_path / "x", lambda d: d["attributes"]["rnsdask"]["moduli"].__setitem__(19_000, 4294967291))
    with pytest.raises(StoreError, match=r"are not coprime: both are divisible by 4294967291"):
        store.open_info(tmp_path / "x")
    assert time.process_time() - start < 30  # 0.5 s for both on a quiet machine


@pytest.mark.timeout(SECONDS)
@pytest.mark.parametrize("source", ["/dev/zero", "yes ''", "yes 3"])
def test_moduli_without_an_end(source: str, tmp_path: Path) -> None:
    command = ["moduli", "--moduli", source]
    if source.startswith("/"):
        assert fail(*command).startswith("/dev/zero:1: ")
        return
    with subprocess.Popen(source, shell=True, stdout=subprocess.PIPE) as endless:
        assert endless.stdout is not None
        message = fail("moduli", "--moduli", f"/dev/fd/{endless.stdout.fileno()}")
        endless.kill()
    assert re.search("is not an integer|it has more than 1048576 lines", message)


NASTY = (
    *(0, -1, 1, 2**31, 2**32, 2**60, 2**63 - 1, 2**63, 10**400, 1.5, 300.0, 1e300),
    *(float("nan"), float("inf"), None, True, False, "", "0x", "A" * 10**5, "0x" + "f" * 10**5),
    *("\n\x1b[31m", "\0", "bytes", "zstd", "float64", "big", "/", ".", [], [0], [[]], {}, {"a": 1}),
    *([None] * 1000, [4, 0], [4, 1], [4, -128], [4, 2**31], [4, 2**60], [2**60] * 2, [4, 1.5], [4, "128"]),
    {"name": "sharding_indexed", "configuration": {}},
    {"name": "transpose", "configuration": {"order": [1, 0]}},
    {"name": "zstd", "configuration": {"level": 3, "checksum": False}},
)


def fields_of(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    pairs = value.items() if isinstance(value, dict) else enumerate(value if isinstance(value, list) else ())
    for key, part in pairs:
        yield from fields_of(part, (*path, key))


def with_field(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return value
    changed = json.loads(json.dumps(document))
    place = changed
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return changed


def outcome(path: Path) -> str:
    """Open a store, plan a job on it, and do it; return the error, if one of those that may be comes."""
    try:
        info = store.open_info(path)
        with memory_plan.fitting(memory_plan.work_on(info, "max"), info=info):
            x = rd.open_zarr(path)
        assert x.shape == info.shape
        if info.count:
            x.max().compute()
    except (StoreError, JobError) as error:
        return str(error)
    return ""


def test_any_field_of_the_metadata_may_be_anything(tmp_path: Path) -> None:
    """It opens as something that can be described, planned and read, or the store is refused in one line."""
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    rng = random.Random(seed)
    path = tmp_path / "x"
    write(path, some_residues((300,)), chunks=128)
    edit(path, lambda _: None)
    document = json.loads((path / "zarr.json").read_text())
    cases = [(field, value) for field in fields_of(document) for value in NASTY]
    assert len(cases) > 1500
    for field, value in rng.sample(cases, 250):
        write_sealed(path, with_field(document, field, value))
        case, start = f"seed {seed}: {field}: {value!r:.80}", time.process_time()
        message = outcome(path)
        assert message.isprintable(), case
        assert len(message) < 500 + len(str(path)), case
        assert time.process_time() - start < 20, case


# Arrays without numbers


@pytest.mark.parametrize("shape", [(0,), (5, 0), (0, 5), (2, 0, 3), (0, 0)])
def test_arrays_without_numbers(tmp_path: Path, shape: tuple[int, ...]) -> None:
    empty = np.zeros((len(MODULI), *shape), np.uint32)
    for name, x in (
        ("eager", rd.from_residues(empty, MODULI)),
        ("lazy", rd.from_residues(empty, MODULI).rechunk("auto")),
    ):
        path = tmp_path / name
        x.to_zarr(path)
        info = store.open_info(path)
        assert (info.shape, info.count, info.n_chunks, list(store.verify(info))) == (shape, 0, 0, [])
        assert "0 integers, whole and valid" in succeed("verify", path)
        assert f"integers   {' x '.join(map(str, shape))}\n" in succeed("info", path)
        y = rd.open_zarr(path)
        eager = rd.from_residues(empty, MODULI)
        results = (
            y,
            y + y,
            y * y,
            y // 3,
            y % 2**70,
            divmod(y, y)[1],
            y - eager,
            eager + y,
            rd.maximum(y, y),
        )
        for back in (*results, *(result.compute() for result in results)):
            assert back.shape == shape
            assert np.asarray(back.residues).shape == (len(MODULI), *shape)
        assert np.asarray(y < y).shape == shape
        for axis in range(len(shape)):
            if len(shape) > 1:
                sums = np.asarray(y.sum(axis=axis))
                assert sums.shape == np.zeros(shape).sum(axis=axis).shape
                assert (sums == 0).all()
            rest = shape[:axis] + shape[axis + 1 :]
            if shape[axis]:
                assert np.asarray(y.max(axis=axis)).shape == rest
            else:
                with pytest.raises(ValueError, match="needs at least one number"):
                    y.max(axis=axis)
        for command in ("max", "min"):
            assert "of an empty array: it needs at least one number" in fail(command, path)
        assert succeed("export", path, "-") == ""
        assert rd.open_zarr(path, part=1).compute().shape == shape
    integers = rd.IntervalRNSArray.from_rns(rd.from_residues(empty, MODULI))
    integers.to_zarr(tmp_path / "intervals")
    group = rd.open_zarr(tmp_path / "intervals")
    for back in (group, group.compute(), (group + group).compute(), (group * group).compute()):
        assert back.shape == shape
    assert group.to_rns().compute().shape == shape
    assert np.asarray(group < integers).shape == shape
