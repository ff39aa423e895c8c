"""Commands that make a store of others, ``prod``, and arrays with intervals: against Python's integers."""

import json
import math
import re
import shutil
from itertools import accumulate, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from commands import as_json, contents, fail, succeed, values_in
from strategies import slow

import rnsdask as rd
from rnsdask import store
from rnsdask.jobs.derivation import most_alive

MS = rd.ModuliSet.for_bits(256)
X = [(i**7 * 12345678901) % 2**250 for i in range(700)]
S = [(-1) ** i * (i * i * i * 31 % 2**60) for i in range(30 * 256)]
TABLE = np.array(S, dtype=object).reshape(30, 256)
SMALL = [1, -1, 2, -3, 1, 5] * 20


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with stores of one and two axes, and those of the same numbers with intervals."""
    folder = tmp_path_factory.mktemp("made")
    x, s = rd.from_ints(X, MS, chunks=128), rd.from_ints(TABLE, MS, True, chunks=(7, 128))
    x.to_zarr(folder / "x.zarr")
    s.to_zarr(folder / "s.zarr")
    rd.IntervalRNSArray.from_rns(s).to_zarr(folder / "g.zarr", chunks=(7, 128))
    rd.IntervalRNSArray.from_rns(x).to_zarr(folder / "h.zarr", chunks=128)
    return folder


@pytest.fixture(autouse=True)
def stores(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies of them, of which a test may change any."""
    shutil.copytree(made, tmp_path / "copy")
    monkeypatch.chdir(tmp_path / "copy")


# ---- convolution ------------------------------------------------------------------------------------------


def test_convolve() -> None:
    rd.from_ints([(-1) ** i * i for i in range(50)], MS, True, chunks=20).to_zarr("a.zarr")
    rd.from_ints([3, -1, 2], MS, True).to_zarr("b.zarr")
    a, b = (rd.open_zarr(path).to_ints() for path in ("a.zarr", "b.zarr"))
    found = as_json("convolve", "a.zarr", "b.zarr", "-o", "o.zarr")
    assert (found["op"], found["stores"], found["shape"]) == ("convolve", ["a.zarr", "b.zarr"], [52])
    assert values_in("o.zarr") == np.convolve(a, b).tolist()
    assert rd.open_zarr("o.zarr").bound == 3 * 49 * 3
    succeed("convolve", "b.zarr", "a.zarr", "--mode", "valid", "-o", "v.zarr")
    assert values_in("v.zarr") == np.convolve(a, b, "valid").tolist()
    succeed("convolve", "s.zarr", "b.zarr", "--axis", 1, "-o", "t.zarr")
    assert values_in("t.zarr") == [np.convolve(row, b).tolist() for row in TABLE]
    succeed("convolve", "b.zarr", "b.zarr", "--mode", "negacyclic", "-o", "n.zarr")
    assert values_in("n.zarr") == [9 + 4, -6 - 4, 12 + 1]
    rd.IntervalRNSArray.from_rns(rd.open_zarr("b.zarr")).to_zarr("i.zarr")
    succeed("convolve", "i.zarr", "i.zarr", "--mode", "same", "-o", "j.zarr")
    assert values_in("j.zarr") == np.convolve(b, b, "same").tolist()


def test_convolve_out_of_range() -> None:
    values = np.array([2**200 + i for i in range(300)], dtype=object)
    rd.from_ints(values, MS, chunks=100).to_zarr("y.zarr")
    message = r"convolve of y.zarr: overflow at flat index 0"
    assert re.search(message, fail("convolve", "y.zarr", "y.zarr", "-o", "o.zarr", status=1))
    succeed("convolve", "y.zarr", "y.zarr", "--overflow", "wrap", "-o", "w.zarr")
    exact = np.convolve(values, values)
    assert values_in("w.zarr") == [value % MS.product for value in exact]


@pytest.mark.parametrize("system", [rd.PrimeFields([2013265921, 12289]), rd.FermatField.named("P3")])
@pytest.mark.parametrize("chunks", [9, 64])
def test_convolve_elements_of_fields(system: Any, chunks: int) -> None:
    x = rd.from_ints([7**i for i in range(64)], system, chunks=chunks)
    y = rd.from_ints([3**i - 1 for i in range(64)], system, chunks=20)
    for name, array in (("one.zarr", x), ("two.zarr", y)):
        array.to_zarr(name)
    for mode in ("full", "negacyclic"):
        succeed("convolve", "one.zarr", "two.zarr", "--mode", mode, "-o", f"{mode}.zarr")
        expected = rd.convolve(x.compute(), y.compute(), mode)
        assert (rd.open_zarr(f"{mode}.zarr").compute() == expected).all()
    options = ["--overflow", "wrap", "-o", "w.zarr"]
    assert "--overflow is not taken" in fail("convolve", "one.zarr", "two.zarr", *options, status=2)
    assert "do not mix" in fail("convolve", "one.zarr", "x.zarr", "-o", "w.zarr", status=2)


# ---- other words for the same numbers ---------------------------------------------------------------------


@pytest.mark.parametrize(("path", "values"), [("x.zarr", X), ("s.zarr", TABLE.tolist())])
def test_extend_and_shrink(path: str, values: list[Any]) -> None:
    found = as_json("extend", path, "-o", "e.zarr", "--bits", 300)
    assert values_in("e.zarr") == values
    info, wide = store.open_info(path), store.open_info("e.zarr")
    assert (wide.moduli, wide.chunks) == (rd.ModuliSet.for_bits(300), info.chunks)
    assert (wide.system.signed, wide.system.bound) == (info.system.signed, info.system.bound)
    assert (found["op"], found["store"], found["output"]) == ("extend", path, "e.zarr")
    assert (found["count"], found["bytes_read"]) == (info.count, info.nbytes)
    assert found["bytes_written"] == wide.nbytes
    Path("moduli").write_text("\n".join(map(str, reversed(MS))))
    assert succeed("shrink", "e.zarr", "-o", "x2.zarr", "--moduli", "moduli").startswith(
        f"x2.zarr: {info.count} "
    )
    assert values_in("x2.zarr") == values
    assert list(store.open_info("x2.zarr").moduli) == list(reversed(MS))


def test_numbers_that_a_set_does_not_hold() -> None:
    message = fail("shrink", "x.zarr", "-o", "o.zarr", "--bits", 64)
    match = re.match(r"shrink of x\.zarr: value 0x([0-9a-f]+) .* at flat index (\d+) is outside", message)
    assert match, message
    index = int(match[2])
    assert X[index] == int(match[1], 16)
    range_end = rd.ModuliSet.for_bits(64).product
    assert [value >= range_end for value in X[index // 128 * 128 :]].index(True) == index % 128
    assert "of 9 moduli cannot shrink to 10 moduli" in fail(
        "shrink", "x.zarr", "-o", "n", "--bits", 300, status=2
    )
    assert not Path("o.zarr").exists()


def test_convert() -> None:
    succeed("convert", "s.zarr", "-o", "i.zarr", "--to", "interval")
    found = rd.open_zarr("i.zarr")
    assert isinstance(found, rd.IntervalRNSArray)
    assert found.to_ints().tolist() == TABLE.tolist()
    assert found.chunks == rd.open_zarr("s.zarr").chunks
    assert "whole and valid" in succeed("verify", "i.zarr")
    assert contents("i.zarr") == contents("g.zarr")
    succeed("convert", "i.zarr", "-o", "r.zarr", "--to", "rns")
    assert values_in("r.zarr") == TABLE.tolist()
    assert store.open_info("r.zarr").system.signed
    succeed("convert", "h.zarr", "-o", "u.zarr", "--to", "rns", "--unsigned")
    assert values_in("u.zarr") == X
    assert not store.open_info("u.zarr").system.signed
    assert "convert of g.zarr: value -" in fail(
        "convert", "g.zarr", "-o", "no.zarr", "--to", "rns", "--unsigned"
    )


# ---- the same words in another order ----------------------------------------------------------------------


INDICES: list[tuple[str, str, Any]] = [
    ("x.zarr", "10:500", np.s_[10:500]),
    ("x.zarr", "-300:", np.s_[-300:]),
    ("x.zarr", "::-1", np.s_[::-1]),
    ("x.zarr", " 650 : 3 : -7 ", np.s_[650:3:-7]),
    ("x.zarr", "::2", np.s_[::2]),
    ("x.zarr", "5:5", np.s_[5:5]),
    ("x.zarr", f"{-(10**30)}:{10**30}", np.s_[:]),
    ("x.zarr", "None, 1:4", np.s_[None, 1:4]),
    ("x.zarr", "...", np.s_[...]),
    ("s.zarr", "3", np.s_[3]),
    ("s.zarr", "-1, ::-3", np.s_[-1, ::-3]),
    ("s.zarr", "..., 200", np.s_[..., 200]),
    ("s.zarr", "4:25:5, 100:140", np.s_[4:25:5, 100:140]),
    ("s.zarr", "::-1, ::-1", np.s_[::-1, ::-1]),
    ("g.zarr", "20:, 255:0:-2", np.s_[20:, 255:0:-2]),
    ("h.zarr", "-1:-400:-1", np.s_[-1:-400:-1]),
]


@pytest.mark.parametrize(("path", "text", "key"), INDICES)
def test_slice(path: str, text: str, key: Any) -> None:
    values = TABLE if path in ("s.zarr", "g.zarr") else np.array(X, dtype=object)
    found = as_json("slice", path, "-o", "o.zarr", text)
    assert values_in("o.zarr") == values[key].tolist()
    assert type(rd.open_zarr("o.zarr")) is type(rd.open_zarr(path))
    assert found["shape"] == list(values[key].shape)
    assert found["count"] == values[key].size
    assert "whole and valid" in succeed("verify", "o.zarr")


def test_slice_reads_what_it_needs() -> None:
    whole = store.open_info("x.zarr").chunk_bytes
    for text, chunks in (("5:100", 1), ("120:130", 2), ("::-200", 4), ("690:", None), ("5:5", 0)):
        found = as_json("slice", "x.zarr", "-o", "o.zarr", text, "--overwrite")["bytes_read"]
        last = (700 - 5 * 128) * whole // 128
        assert found == (last if chunks is None else chunks * whole - (text == "::-200") * (whole - last)), (
            text
        )
    for path in Path("x.zarr/c/0").iterdir():
        if path.name != "1":
            path.unlink()
    succeed("slice", "x.zarr", "-o", "o.zarr", "130:250:3", "--overwrite")
    assert values_in("o.zarr") == X[130:250:3]
    assert "x.zarr: chunk c/0/2" in fail("slice", "x.zarr", "-o", "o.zarr", "130:260", "--overwrite")


def test_concat() -> None:
    rd.from_ints(X[:300], MS, chunks=256).to_zarr("y.zarr")
    found = as_json("concat", "x.zarr", "y.zarr", "x.zarr", "-o", "o.zarr")
    assert values_in("o.zarr") == X + X[:300] + X
    assert found["stores"] == ["x.zarr", "y.zarr", "x.zarr"]
    read = sum(store.open_info(path).nbytes for path in ("x.zarr", "y.zarr"))
    assert (found["count"], found["bytes_read"]) == (1700, read)
    assert store.open_info("o.zarr").system.bound == max(X)
    succeed("concat", "s.zarr", "s.zarr", "--axis", -1, "-o", "t.zarr")
    assert values_in("t.zarr") == np.concatenate([TABLE, TABLE], axis=1).tolist()
    succeed("concat", "g.zarr", "g.zarr", "--axis", 0, "-o", "u.zarr")
    assert values_in("u.zarr") == np.concatenate([TABLE, TABLE]).tolist()
    succeed("concat", "h.zarr", "-o", "v.zarr")
    assert values_in("v.zarr") == X


@pytest.mark.parametrize("path", ["s.zarr", "g.zarr"])
@pytest.mark.parametrize("chunks", ["30,128", "1,-1", "11,100", "auto", "64KiB"])
def test_rechunk(path: str, chunks: str) -> None:
    succeed("rechunk", path, "-o", "o.zarr", "--chunks", chunks)
    assert values_in("o.zarr") == TABLE.tolist()
    if "," in chunks:
        expected = tuple(int(length) if length != "-1" else 256 for length in chunks.split(","))
        assert rd.open_zarr("o.zarr").words.chunksize[1:] == expected


@pytest.mark.parametrize("path", ["s.zarr", "g.zarr", "x.zarr"])
@pytest.mark.parametrize("shape", ["-1", "2,-1", "5,2,-1"])
def test_reshape(path: str, shape: str) -> None:
    succeed("reshape", path, "-o", "o.zarr", shape)
    values = np.array(X, dtype=object) if path == "x.zarr" else TABLE
    assert values_in("o.zarr") == values.reshape(tuple(map(int, shape.split(",")))).tolist()


def test_an_empty_store() -> None:
    succeed("slice", "x.zarr", "-o", "empty.zarr", "0:0")
    for args in (
        ["extend", "empty.zarr", "-o", "o.zarr", "--bits", 300],
        ["convert", "empty.zarr", "-o", "o.zarr", "--to", "interval"],
        ["slice", "empty.zarr", "-o", "o.zarr", "::-1"],
        ["rechunk", "empty.zarr", "-o", "o.zarr", "--chunks", 256],
        ["reshape", "empty.zarr", "-o", "o.zarr", "0,5"],
        ["concat", "empty.zarr", "empty.zarr", "-o", "o.zarr"],
    ):
        assert as_json(*args)["count"] == 0, args
        assert rd.open_zarr("o.zarr").size == 0
        shutil.rmtree("o.zarr")
    succeed("concat", "empty.zarr", "x.zarr", "-o", "o.zarr")
    assert values_in("o.zarr") == X
    assert as_json("prod", "empty.zarr")["value"] == "1"


# ---- prod -------------------------------------------------------------------------------------------------


def test_prod() -> None:
    rd.from_ints(SMALL, MS, True, chunks=128).to_zarr("small.zarr")
    value = math.prod(SMALL)
    found = as_json("prod", "small.zarr")
    assert (found["op"], found["value"], found["count"]) == ("prod", str(value), 120)
    assert found["bytes_read"] == store.open_info("small.zarr").nbytes
    assert succeed("prod", "small.zarr").splitlines()[:2] == ["prod of 120 integers:", str(value)]
    found = as_json("prod", "small.zarr", "--overflow", "flag")
    assert (found["value"], found["flagged"]) == (str(value), False)
    rd.from_ints([*X[1:5], 0, *X[5:300]], MS, chunks=128).to_zarr("zero.zarr")
    assert as_json("prod", "zero.zarr")["value"] == "0"
    rd.from_ints(X[1:], MS, chunks=128).to_zarr("huge.zarr")
    wrapped = math.prod(X[1:]) % MS.product
    assert as_json("prod", "huge.zarr", "--overflow", "wrap")["value"] == str(wrapped)
    found = as_json("prod", "huge.zarr", "--overflow", "flag")
    assert (found["value"], found["flagged"]) == (str(wrapped), True)
    assert "out of range, modulo M" in succeed("prod", "huge.zarr", "--overflow", "flag")
    assert fail("prod", "huge.zarr").startswith("prod of huge.zarr: overflow at flat index 0: ")


def test_random_within_bits() -> None:
    for bits, signed in ((1, []), (7, ["--signed"]), (200, ["--signed"]), (256, [])):
        args = ["--count", 2000, "--bits", 256, "--max-bits", bits, "--seed", 4, "--chunk", 512, *signed]
        succeed("random", f"{bits}.zarr", *args)
        values, highest = values_in(f"{bits}.zarr"), 2**bits - 1
        assert all((-highest if signed else 0) <= value <= highest for value in values)
        assert max(values).bit_length() == bits
        assert (min(values) < 0) == bool(signed)
        assert store.open_info(f"{bits}.zarr").system.bound == highest
        assert "whole and valid" in succeed("verify", f"{bits}.zarr")
        expected = contents(f"{bits}.zarr")
        succeed("random", f"{bits}.zarr", *args, "--overwrite")
        assert contents(f"{bits}.zarr") == expected


# ---- numbers with intervals -------------------------------------------------------------------------------


def test_reductions_of_intervals() -> None:
    for name, value in (("max", max(S)), ("min", min(S)), ("sum", sum(S))):
        found = as_json(name, "g.zarr")
        assert (found["value"], found["count"]) == (str(value), len(S))
        if name != "sum":
            assert found["index"] == S.index(value)
    assert as_json("bound", "g.zarr")["bits"] == max(map(abs, S)).bit_length()
    assert "--write is for stores of residues" in fail("bound", "g.zarr", "--write")


def test_compare_intervals() -> None:
    other = [value + (i % 3 - 1) for i, value in enumerate(S)]
    table = np.array(other, dtype=object).reshape(TABLE.shape)
    rd.IntervalRNSArray.from_ints(table, MS, chunks=(30, 128)).to_zarr("k.zarr")
    counts = [sum(i % 3 == k for i in range(len(S))) for k in (2, 1, 0)]
    found = as_json("compare", "g.zarr", "k.zarr", status=1)
    assert [found[name] for name in ("less", "equal", "greater")] == counts
    assert found["first_difference"] == 0
    assert as_json("compare", "g.zarr", "g.zarr")["equal"] == len(S)
    for integer in (0, -5, 10**30, -(10**400), 10**400):
        found = as_json("compare", "g.zarr", integer, status=1)
        expected = [sum(f) for f in zip(*((v < integer, v == integer, v > integer) for v in S), strict=True)]
        assert [found[name] for name in ("less", "equal", "greater")] == expected
    assert "makes them of one kind" in fail("compare", "g.zarr", "s.zarr", status=2)


def test_checkpoint_of_intervals() -> None:
    expected = as_json("max", "g.zarr", "--checkpoint", "kept")["value"]
    assert as_json("max", "g.zarr", "--checkpoint", "kept")["value"] == expected == str(max(S))
    zarr.open_array("g.zarr", mode="r+")[-1, 0, 0] += 1
    assert "g.zarr: 1 chunk differs" in fail("max", "g.zarr", "--checkpoint", "kept")


def test_other_commands_take_intervals() -> None:
    flat = [(-1) ** i * i**5 for i in range(300)]
    rd.IntervalRNSArray.from_ints(flat, MS, chunks=128).to_zarr("f.zarr")
    found = as_json("topk", 3, "f.zarr")
    assert found["values"] == [str(value) for value in sorted(flat)[:-4:-1]]
    assert [flat[i] for i in found["indices"]] == sorted(flat)[:-4:-1]
    for name, function in (("cumsum", None), ("cummax", max), ("cummin", min)):
        succeed(name, "f.zarr", "-o", f"{name}.zarr")
        assert values_in(f"{name}.zarr") == list(accumulate(flat, function))
    succeed("extend", "f.zarr", "-o", "wide.zarr", "--bits", 300)
    assert values_in("wide.zarr") == flat
    succeed("slice", "f.zarr", "-o", "part.zarr", "1:9")
    assert as_json("prod", "part.zarr")["value"] == str(math.prod(flat[1:9]))
    assert as_json("prod", "part.zarr", "--overflow", "flag", "--backend", "cpu")["flagged"] is False


# ---- faults -----------------------------------------------------------------------------------------------


FAULTS: list[tuple[list[Any], int, str]] = [
    (["extend", "none.zarr", "-o", "o", "--bits", 300], 1, r"none.zarr: there is no such store"),
    (["slice", "none.zarr", "-o", "o", ":"], 1, r"none.zarr: there is no such store"),
    (["concat", "x.zarr", "none.zarr", "-o", "o"], 1, r"none.zarr: there is no such store"),
    (["prod", "none.zarr"], 1, r"none.zarr: there is no such store"),
    (
        ["extend", "x.zarr", "-o", "s.zarr", "--bits", 300],
        1,
        r"s.zarr: it exists; replace it with --overwrite",
    ),
    (["convert", "s.zarr", "-o", "g.zarr", "--to", "interval"], 1, r"g.zarr: it exists; replace it"),
    (["slice", "x.zarr", "-o", "x.zarr", ":5", "--overwrite"], 1, r"x.zarr: an operand is read from there"),
    (["concat", "x.zarr", "-o", "x.zarr/deep"], 1, r"x.zarr/deep: an operand is read from there"),
    (
        ["convert", "g.zarr", "-o", "g.zarr", "--to", "rns", "--overwrite"],
        1,
        r"g.zarr: an operand is read from",
    ),
    (["extend", "x.zarr", "-o", "o"], 2, r"give either --bits or --moduli"),
    (["extend", "x.zarr", "-o", "-", "--bits", 300], 2, r"a store cannot be standard output; rnsdask export"),
    (["cumsum", "x.zarr", "-o", "-"], 2, r"a store cannot be standard output; rnsdask export"),
    (["eval", "x", "x=x.zarr", "-o", "-"], 2, r"a store cannot be standard output; rnsdask export"),
    (["random", "-", "--count", 5, "--bits", 64], 2, r"a store cannot be standard output; rnsdask export"),
    (["random", "o", "--count", 5, "--bits", 64, "--max-bits", 96], 2, r"--max-bits must be at most 95"),
    (["random", "o", "--count", 5, "--bits", 64, "--signed", "--max-bits", 95], 2, r"must be at most 94"),
    (["convert", "x.zarr", "-o", "o"], 2, r"Missing option '--to'"),
    (
        ["convert", "x.zarr", "-o", "o", "--to", "rns"],
        2,
        r"convert of x.zarr: it is a store of residues already",
    ),
    (["convert", "g.zarr", "-o", "o", "--to", "interval"], 2, r"it is a store of intervals already"),
    (["convert", "x.zarr", "-o", "o", "--to", "interval", "--signed"], 2, r"are for --to rns"),
    (
        ["concat", "u.zarr", "s.zarr", "-o", "o"],
        2,
        r"concat of u.zarr s.zarr: operands have different ranges",
    ),
    (["concat", "x.zarr", "e.zarr", "-o", "o"], 2, r"concat of x.zarr e.zarr: .*different moduli sets"),
    (["concat", "s.zarr", "g.zarr", "-o", "o"], 2, r"rnsdask convert SRC -o DST --to interval or --to rns"),
    (["concat", "x.zarr", "-o", "o", "--axis", 1], 2, r"concat of x.zarr: axis 1 is out of bounds"),
    (
        ["concat", "s.zarr", "t.zarr", "-o", "o"],
        2,
        r"concat of s.zarr t.zarr: all the input array dimensions",
    ),
    (["concat", "x.zarr", "s.zarr"], 2, r"Missing option '-o'"),
    (
        ["convolve", "u.zarr", "s.zarr", "-o", "o"],
        2,
        r"convolve of u.zarr s.zarr: operands have different ranges",
    ),
    (["convolve", "x.zarr", "x.zarr", "-o", "o", "--axis", 1], 2, r"axis 1 is out of bounds"),
    (["slice", "x.zarr", "-o", "o", "5"], 2, r"slice of x.zarr: it is one number"),
    (["slice", "x.zarr", "-o", "o", "700:, 1"], 2, r"slice of x.zarr: too many indices"),
    (
        ["slice", "s.zarr", "-o", "o", "30"],
        2,
        r"slice of s.zarr: index 30 is out of bounds for axis 0 with size 30",
    ),
    (["slice", "x.zarr", "-o", "o", "::0"], 2, r"slice of x.zarr: slice step cannot be zero"),
    *(
        (
            ["slice", "x.zarr", "-o", "o", text],
            2,
            r"INDEX: .* is no index of integers, slices, \.\.\. and None",
        )
        for text in (
            "",
            "5:;",
            "a",
            "1.5:",
            "x[3]",
            "[1, 2]",
            "True",
            "'5'",
            "5](3)[",
            "f()",
            "1:(2",
        )
    ),
    (["slice", "x.zarr", "-o", "o", "-None"], 2, r"No such option '-N'\. \(see rnsdask slice --help\)"),
    (
        ["slice", "x.zarr", "-o", "o", "--", "-None"],
        2,
        r"INDEX: .* is no index of integers, slices, \.\.\. and None",
    ),
    (["slice", "s.zarr", "-o", "o", "..., ..."], 2, r"an index can only have a single ellipsis"),
    (
        ["rechunk", "x.zarr", "-o", "o", "--chunks", "many"],
        2,
        r"rechunk of x.zarr: --chunks must be 'auto', a size",
    ),
    (
        ["rechunk", "x.zarr", "-o", "o", "--chunks", "0"],
        2,
        r"rechunk of x.zarr: a chunk's length must be at least 1",
    ),
    (
        ["rechunk", "s.zarr", "-o", "o", "--chunks", "128"],
        2,
        r"rechunk of s.zarr: .*one length for each of the 2",
    ),
    (["reshape", "x.zarr", "-o", "o", "7,x"], 2, r"SHAPE: '7,x' is not integers with commas"),
    (["reshape", "x.zarr", "-o", "o", "7,99"], 2, r"reshape of x.zarr: cannot reshape array of size 700"),
]


@pytest.mark.parametrize(("args", "status", "message"), FAULTS)
def test_faults(args: list[Any], status: int, message: str) -> None:
    if "e.zarr" in args:
        rd.from_ints(X, rd.ModuliSet.for_bits(300), chunks=128).to_zarr("e.zarr")
    if "u.zarr" in args:
        rd.from_ints(X, MS, chunks=128).with_bound(None).to_zarr("u.zarr")
    if "t.zarr" in args:
        rd.from_ints(TABLE[:, :128], MS, True, chunks=(30, 128)).to_zarr("t.zarr")
    before = {path: contents(path) for path in ("x.zarr", "s.zarr", "g.zarr")}
    found = fail(*args, status=status)
    assert re.search(message, found), found
    assert before == {path: contents(path) for path in before}
    assert not Path("o").exists()


# ---- order ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 3, *slow(40)])
def test_sort(count: int, rng: np.random.Generator) -> None:
    values = [int(v) ** 3 for v in rng.integers(-50, 50, 20 * count)]
    arrays = {
        "rns": rd.from_ints(values, chunks=20),
        "interval": rd.from_ints(values, rd.IntervalRNS(MS), chunks=20),
        "limbs": rd.from_ints(values, rd.Positional(40, signed=True), chunks=20),
    }
    for name, x in arrays.items():
        x.to_zarr(name)
        done = as_json("sort", name, "-o", f"{name}-sorted")
        found = rd.open_zarr(f"{name}-sorted")
        assert found.compute().tolist() == sorted(values)
        assert found.chunks == x.chunks
        assert done["bytes_read"] == x.nbytes


def test_sort_along_an_axis(rng: np.random.Generator) -> None:
    values = rng.integers(-99, 99, (6, 9))
    rd.from_ints(values, chunks=(2, 4)).to_zarr("table.zarr")
    succeed("sort", "table.zarr", "-o", "rows.zarr")
    succeed("sort", "table.zarr", "-o", "columns.zarr", "--axis", 0)
    assert rd.open_zarr("rows.zarr").compute().tolist() == np.sort(values).tolist()
    assert rd.open_zarr("columns.zarr").compute().tolist() == np.sort(values, axis=0).tolist()
    assert "axis 2 is out of bounds" in fail("sort", "table.zarr", "-o", "y.zarr", "--axis", 2, status=2)
    rd.from_ints([1, 2], rd.PrimeFields([7])).to_zarr("field.zarr")
    assert "field.zarr" in fail("sort", "field.zarr", "-o", "y.zarr")


# ---- jobs that go on --------------------------------------------------------------------------------------


JOBS: dict[str, list[Any]] = {
    "extend": ["extend", "x.zarr", "-o", "out.zarr", "--bits", 300],
    "interval": ["convert", "x.zarr", "-o", "out.zarr", "--to", "interval"],
    "rns": ["convert", "h.zarr", "-o", "out.zarr", "--to", "rns"],
    "slice": ["slice", "x.zarr", "-o", "out.zarr", "128:"],
    "intervals": ["slice", "h.zarr", "-o", "out.zarr", "128:"],
    "concat": ["concat", "x.zarr", "-o", "out.zarr"],
    "convolve": ["convolve", "s.zarr", "rows.zarr", "-o", "out.zarr", "--mode", "same"],
    "powmod": ["powmod", "p.zarr", -3, 509, "-o", "out.zarr"],
    "rechunk": ["rechunk", "s.zarr", "-o", "out.zarr", "--chunks", "5,256"],
    "reshape": ["reshape", "rows.zarr", "-o", "out.zarr", "60,128"],
    "sort": ["sort", "x.zarr", "-o", "out.zarr"],
    "filter": ["filter", "x.zarr", "x >= 0", "-o", "out.zarr"],
    "group": ["group", "s.zarr", "--by", "labels.txt", "-o", "out.zarr"],
}


def set_incomplete(path: str) -> None:
    """Undo the end of a job that has written a store."""
    file = Path(path, "zarr.json")
    document = json.loads(file.read_text())
    document["attributes"]["rnsdask"]["complete"] = False
    file.write_text(json.dumps(document))


@pytest.mark.parametrize("kind", JOBS)
def test_an_interrupted_job_continues(kind: str) -> None:
    rd.from_ints(TABLE, MS, True, chunks=(6, 256)).to_zarr("rows.zarr")
    rd.from_ints(range(1, 301), rd.Positional(9), chunks=128).to_zarr("p.zarr")
    Path("labels.txt").write_text("a\nb\n" * 128)
    printed = as_json(*JOBS[kind])
    expected = contents("out.zarr")
    files = [path for path in sorted(Path("out.zarr/c").rglob("*")) if path.is_file()]
    total = len(files)
    set_incomplete("out.zarr")
    files[0].unlink()
    damaged = bytearray(files[1].read_bytes())
    damaged[20] ^= 1
    files[1].write_bytes(damaged)
    found = as_json(*JOBS[kind], "--resume")
    assert (found["chunks_kept"], found["chunks_rewritten"]) == (total - 2, 1)
    assert {name: printed[name] for name in ("count", "bytes_read", "bytes_written")}.items() <= found.items()
    assert contents("out.zarr") == expected
    assert "out.zarr: complete already" in succeed(*JOBS[kind], "--resume")
    assert contents("out.zarr") == expected
    succeed(*JOBS[kind], "--overwrite")
    assert contents("out.zarr") == expected


# ---- the plan of memory -----------------------------------------------------------------------------------


def lengths(total: int, chunk: int) -> tuple[int, ...]:
    return tuple(min(chunk, total - start) for start in range(0, total, chunk))


@pytest.mark.parametrize("shape", [(24,), (12, 10), (6, 4, 8)])
def test_what_is_alive_at_a_time(shape: tuple[int, ...], rng: np.random.Generator) -> None:
    """No fewer than are alive where new chunks are made in C order, and old ones go when the last is made."""
    for _ in range(60):
        before = tuple(lengths(n, int(rng.integers(1, n + 1))) for n in shape)
        after = tuple(lengths(n, int(rng.integers(1, n + 1))) for n in shape)
        old = np.stack(np.meshgrid(*(np.repeat(range(len(c)), c) for c in before), indexing="ij"), -1)
        new = np.stack(np.meshgrid(*(np.repeat(range(len(c)), c) for c in after), indexing="ij"), -1)
        order = {index: i for i, index in enumerate(product(*(range(len(c)) for c in after)))}
        uses: dict[tuple[int, ...], list[int]] = {}
        for a, b in zip(old.reshape(-1, len(shape)), new.reshape(-1, len(shape)), strict=True):
            uses.setdefault(tuple(a.tolist()), []).append(order[tuple(b.tolist())])
        size = {index: math.prod(c[i] for c, i in zip(before, index, strict=True)) for index in uses}
        waiting = [
            sum(size[index] for index, when in uses.items() if min(when) <= step < max(when))
            for step in range(len(order))
        ]
        assert max(waiting) <= most_alive(before, after, shape), (before, after)
