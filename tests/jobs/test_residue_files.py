"""Residues of other programs by the command line: NumPy files and Zarr arrays, in and out."""

import io
import json
import math
import random
import re
from pathlib import Path
from typing import Any

import gmpy2
import numpy as np
import pytest
import zarr
from commands import call, fail, succeed

import rnsdask as rd
from rnsdask import store
from rnsdask.core.errors import JobError
from rnsdask.jobs.exporting import export_residues

pytestmark = pytest.mark.usefixtures("in_empty_folder")


def as_json(*args: object) -> dict[str, Any]:
    return dict(json.loads(succeed(*args, "--json", "--no-progress")))


def primes60(count: int) -> list[int]:
    found = [int(gmpy2.prev_prime(2**60))]
    while len(found) < count:
        found.append(int(gmpy2.prev_prime(found[-1])))
    return found


MODULI = primes60(8)
LIST = ",".join(map(str, MODULI))


def dump(values: list[int], axis: int = 0, dtype: Any = np.uint64) -> np.ndarray:
    residues = np.array([[v % m for v in values] for m in MODULI], dtype=dtype)
    return np.moveaxis(residues, 0, axis).copy()


def replace_dump(residues: np.ndarray) -> None:
    """Another file, for threads of a job that has failed may still read the one that they have mapped."""
    Path("dump.npy").unlink()
    np.save("dump.npy", residues)


def drawn(count: int, signed: bool = False) -> list[int]:
    product = math.prod(MODULI)
    lowest = -(product // 2) if signed else 0
    draw = random.Random(count)
    return [lowest, lowest + product - 1] + [lowest + draw.randrange(product) for _ in range(count - 2)]


@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize("signed", [[], ["--signed"]])
def test_a_dump_goes_in_and_out(axis: int, signed: list[str]) -> None:
    values = drawn(3000, bool(signed))
    written = dump(values, axis)
    np.save("dump.npy", written)
    Path("moduli.txt").write_text("\n".join(map(str, MODULI)))
    told = as_json("import", "--residues", "dump.npy", "x.zarr", "--moduli", "moduli.txt", "--axis", axis,
                   "--chunk", 512, *signed)  # fmt: skip
    assert (told["count"], told["bytes_read"], told["n_moduli"]) == (3000, written.nbytes, 16)
    x = rd.open_zarr("x.zarr")
    assert (x.to_ints().tolist(), x.chunks[0][0], x.signed) == (values, 512, bool(signed))
    assert json.loads(succeed("max", "x.zarr", "--json", "--no-progress"))["value"] == rd.to_decimal(
        max(values)
    )
    told = as_json("export", "--residues", "x.zarr", "out.npy", "--moduli-list", LIST, "--axis", axis)
    assert told["bytes_written"] == written.nbytes
    assert Path("out.npy").read_bytes() == Path("dump.npy").read_bytes()
    result = call("export", "--residues", "x.zarr", "-", "--moduli-list", LIST, "--axis", -1)
    assert np.load(io.BytesIO(result.stdout_bytes)).tolist() == dump(values, -1).tolist()


@pytest.mark.parametrize("shape", [(37, 5), (3, 7, 11), (1, 50), (50, 1)])
@pytest.mark.parametrize("chunk", [6, -1])
def test_residues_along_any_axis(shape: tuple[int, ...], chunk: int) -> None:
    values = drawn(math.prod(shape), signed=True)
    numbers = np.array(values, dtype=object).reshape(shape)
    Path("n").write_text("".join(f"{v}\n" for v in values))
    succeed("import", "n", "x.zarr", "--bits", 490, "--signed", "--shape", ",".join(map(str, shape)),
            "--chunk", chunk)  # fmt: skip
    for axis in range(-len(shape) - 1, len(shape) + 1):
        expected = np.stack([(numbers % m).astype(np.uint64) for m in MODULI], axis=axis)
        succeed(
            "export", "--residues", "x.zarr", "o.npy", "--moduli-list", LIST, "--axis", axis, "--overwrite"
        )
        found = np.load("o.npy")
        assert found.dtype == np.uint64
        assert found.shape == expected.shape
        assert (found == expected).all()
        if chunk == 6:
            how = ["--residues", "o.npy", "y.zarr", "--moduli-list", LIST, "--axis", axis, "--signed"]
            succeed("import", *how, "--overwrite", "--no-progress")
            assert (rd.open_zarr("y.zarr").to_ints() == numbers).all()


def test_an_inner_axis_of_residues_needs_a_file() -> None:
    rd.from_ints([[1, 2], [3, 4]], rd.ModuliSet([251, 253])).to_zarr("x.zarr")
    problem = r"residues along axis 1 can be written to a file only.*axis=-1 writes them in order"
    info = store.open_info("x.zarr")
    with Path("o").open("ab") as stream, pytest.raises(JobError, match=problem):
        export_residues(info, stream, info.moduli, axis=1)
    message = fail("export", "--residues", "x.zarr", "o.npy", "--axis", 3, status=2)
    assert "axis 3 is out of bounds for array of dimension 3" in message
    result = call("export", "--residues", "x.zarr", "-", "--axis", 2)
    assert np.load(io.BytesIO(result.stdout_bytes)).shape == (2, 2, 2)


@pytest.mark.parametrize("shape", [(8, 0), (8, 0, 3), (8, 3, 0)])
def test_no_residues(shape: tuple[int, ...]) -> None:
    np.save("none.npy", np.zeros(shape, np.uint64))
    zarr.create_array("none.zarr", shape=shape, dtype="uint64", chunks=(8, *(2 for _ in shape[1:])))
    how = ["import", "--overwrite", "--moduli-list", LIST, "--residues"]
    for source in ("none.npy", "none.zarr"):
        assert "0 integers" in succeed(*how, source, "x")
        assert rd.open_zarr("x").shape == shape[1:]
    succeed("export", "--residues", "x", "out.npy", "--moduli-list", LIST)
    assert Path("out.npy").read_bytes() == Path("none.npy").read_bytes()


def test_under_the_stores_own_moduli() -> None:
    values = [0, 5, 2**60, 2**63]
    rd.from_ints(values, rd.ModuliSet([2**32, 2**32 - 1]), chunks=128).to_zarr("x.zarr")
    succeed("export", "--residues", "x.zarr", "own.npy", "--no-progress")
    found = np.load("own.npy")
    assert found.dtype == np.uint32
    assert found.tolist() == [[v % m for v in values] for m in (2**32, 2**32 - 1)]
    for dtype in ("int64", "uint32", ">u8"):
        np.save("again.npy", found.astype(dtype))
        succeed("import", "--residues", "again.npy", "y.zarr", "--moduli-list", "4294967296,0xffffffff",
                "--overwrite", "--no-progress")  # fmt: skip
        assert rd.open_zarr("y.zarr").to_ints().tolist() == values
        assert store.open_info("y.zarr").moduli == rd.ModuliSet([2**32, 2**32 - 1])


def test_a_zarr_array_of_any_program() -> None:
    values = drawn(700)
    written = dump(values, -1)
    stored = zarr.create_array("r.zarr", shape=written.shape, dtype="uint64", chunks=(128, 3))
    stored[:] = written
    succeed(
        "import", "--residues", "r.zarr", "x.zarr", "--moduli-list", LIST, "--axis", "-1", "--no-progress"
    )
    assert rd.open_zarr("x.zarr").to_ints().tolist() == values


def interrupted(*_args: object) -> None:
    raise RuntimeError("the end")


def test_an_interrupted_import_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    values = drawn(1000)
    written = dump(values)
    written[3, 900] = MODULI[3]
    np.save("dump.npy", written)
    how = ["--residues", "--moduli-list", LIST, "--chunk", 128, "--no-progress"]
    message = fail("import", "dump.npy", "x.zarr", *how)
    assert message == (
        f"dump.npy: residue {MODULI[3]} of the number at flat index 900 is not from 0 to below its modulus "
        f"{MODULI[3]} (row 3)"
    )
    assert not Path("x.zarr").exists()
    replace_dump(dump(values))
    with monkeypatch.context() as patched:
        patched.setattr(store.StoreWriter, "finish", interrupted)
        call("import", "dump.npy", "x.zarr", *how)
    other = ["--residues", "--moduli-list", ",".join(map(str, MODULI[::-1])), *how[3:]]
    assert "cannot be resumed: its source: " in fail("import", "dump.npy", "x.zarr", *other, "--resume")
    succeed("import", "dump.npy", "x.zarr", *how, "--resume")
    assert rd.open_zarr("x.zarr").to_ints().tolist() == values


def test_an_interrupted_import_compares_all_that_it_keeps(monkeypatch: pytest.MonkeyPatch) -> None:
    values = drawn(1000)
    np.save("dump.npy", dump(values))
    how = ["--residues", "--moduli-list", LIST, "--chunk", 128, "--no-progress"]
    with monkeypatch.context() as patched:
        patched.setattr(store.StoreWriter, "finish", interrupted)
        call("import", "dump.npy", "x.zarr", *how)
    for changed in (300, 999):
        replace_dump(dump([*values[:changed], 5, *values[changed + 1 :]]))
        message = fail("import", "dump.npy", "x.zarr", *how, "--resume")
        assert message.endswith(
            f"x.zarr.partial: chunk c/0/{changed // 128} holds other numbers than this job's; it cannot be "
            "resumed; replace it with --overwrite"
        )
    replace_dump(dump(values))
    assert "8 chunks kept" in succeed("import", "dump.npy", "x.zarr", *how, "--resume")
    assert rd.open_zarr("x.zarr").to_ints().tolist() == values


def test_stores_that_are_not_whole_are_no_residues() -> None:
    """Zarr would read zeros where a chunk is missing."""
    moduli = rd.ModuliSet([251, 253])
    x = rd.from_ints(range(500), moduli, chunks=128)
    x.to_zarr("damaged.zarr")
    Path("damaged.zarr/c/0/1").unlink()
    x.to_zarr("begun.zarr", compute=False)
    how = ["--residues", "y.zarr", "--moduli-list", "251,253", "--no-progress"]
    assert fail("import", "damaged.zarr", *how) == "damaged.zarr: 1 of its 4 chunks are missing"
    begun = fail("import", "begun.zarr", *how)
    assert begun == "begun.zarr: there is no such file or Zarr array"
    assert not Path("y.zarr").exists()
    x.to_zarr("whole.zarr")
    succeed("import", "whole.zarr", *how)
    assert rd.open_zarr("y.zarr").to_ints().tolist() == list(range(500))


@pytest.mark.parametrize(
    ("args", "status", "message"),
    [
        (
            ["text.txt", "x.zarr", "--moduli-list", "7"],
            1,
            r"text.txt: it is no NumPy file \(.npy\) of integers",
        ),
        (["none.npy", "x.zarr", "--moduli-list", "7"], 1, "none.npy: there is no such file or Zarr array"),
        (["pair.npz", "x.zarr", "--moduli-list", "7,11"], 1, "an archive of NumPy files"),
        (["objects.npy", "x.zarr", "--moduli-list", "7,11"], 1, "it is no NumPy file"),
        (
            ["floats.npy", "x.zarr", "--moduli-list", "7,11"],
            1,
            "^floats.npy: residues must be integers, got dtype float64$",
        ),
        (["good.npy", "x.zarr", "--moduli-list", "7"], 2, "one row for each of the 1 moduli"),
        (["good.npy", "x.zarr", "--moduli-list", "7,14"], 2, "not coprime"),
        (["good.npy", "x.zarr", "--moduli-list", "7,x"], 2, "--moduli-list:2: 'x' is not an integer"),
        (["-", "x.zarr", "--moduli-list", "7,11"], 2, "not standard input"),
        (["good.npy", "x.zarr"], 2, "--residues needs either --moduli-list or --moduli"),
        (["good.npy", "x.zarr", "--moduli-list", "7,11", "--bits", "8"], 2, "--residues excludes"),
        (["good.npy", "x.zarr", "--moduli-list", "7,11", "--axis", "2"], 2, "axis 2 is out of bounds"),
        (["good.npy", "x.zarr", "--moduli-list", "7,11", "--axis", "x"], 2, "Invalid value for '--axis'"),
    ],
)
def test_what_is_refused(args: list[str], status: int, message: str) -> None:
    Path("text.txt").write_text("1\n2\n")
    np.save("good.npy", np.zeros((2, 5), np.int16))
    np.save("floats.npy", np.zeros((2, 5)))
    np.save("objects.npy", np.array([[1], [2]], dtype=object), allow_pickle=True)
    np.savez("pair.npz", a=np.zeros((2, 5), np.int16))
    assert re.search(message, fail("import", "--residues", *args, status=status))


def test_residues_that_are_appended_to_a_file() -> None:
    """The system writes them to its end, wherever they belong."""
    values = list(range(1000))
    moduli = rd.ModuliSet.for_bits(64)
    rd.from_ints(values, moduli, chunks=128).to_zarr("x.zarr")
    info = store.open_info("x.zarr")
    with Path("o").open("ab") as stream:
        with pytest.raises(JobError, match=r"not be appended to one; axis=-1 writes them in order"):
            export_residues(info, stream, moduli)
        assert not stream.tell()
        stream.write(b"begin")
        export_residues(info, stream, moduli, axis=-1)
    with Path("o").open("r+b") as stream:
        assert stream.read(5) == b"begin"
        assert np.load(stream).tolist() == [[v % m for m in moduli] for v in values]
        begun = stream.tell()
        export_residues(info, stream, moduli)
        stream.seek(begun)
        assert np.load(stream).tolist() == [[v % m for v in values] for m in moduli]


def test_exports_that_are_refused() -> None:
    rd.from_ints([1, 2**40], rd.ModuliSet.for_bits(64), chunks=128).to_zarr("x.zarr")
    message = fail("export", "--residues", "x.zarr", "o.npy", "--moduli-list", "257", "--no-progress")
    assert "value 1099511627776 at flat index 1 is outside the unsigned range from 0 to 256" in message
    assert not Path("o.npy").exists()
    rd.from_ints([1, -2], rd.IntervalRNS(rd.ModuliSet([7, 11]))).to_zarr("i.zarr")
    message = fail("export", "--residues", "i.zarr", "o.npy")
    assert "i.zarr: it holds numbers of IntervalRNS(" in message
    assert "; rnsdask convert SRC -o DST --to rns makes residues of them" in message
    assert not Path("o.npy").exists()
    assert "not several" in fail("export", "--residues", "--hex", "x.zarr", "o.npy", status=2)
    assert "need --residues" in fail("export", "x.zarr", "o.npy", "--axis", "-1", status=2)
    assert "need --residues" in fail("import", __file__, "y.zarr", "--bits", 8, "--axis", "-1", status=2)
