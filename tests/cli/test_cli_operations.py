"""The commands that compute over stores: what they print, write, read and refuse."""

import functools
import os
import re
import shutil
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from typing import Any

import dask
import numpy as np
import pytest
import zarr
from commands import as_json, call, fail, succeed, values_in
from distributed import LocalCluster
from strategies import slow

import rnsdask as rd
from rnsdask import backend, store
from rnsdask.core.moduli import ModuliSet
from rnsdask.rns.system import RNS

MS = ModuliSet.for_bits(256)
A = [(i * i * 31) % 1009 - 500 for i in range(700)]
B = [(i**3 + 7) % 2003 - 900 for i in range(700)]
C = [2**100 - i for i in range(700)]
FMA = [a * b + c for a, b, c in zip(A, B, C, strict=True)]
STORES = ["a=a.zarr", "b=b.zarr", "c=c.zarr"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with three stores whose chunks differ."""
    folder = tmp_path_factory.mktemp("made")
    for name, values, chunk in (("a", A, 128), ("b", B, 256), ("c", C, 384)):
        rd.from_ints(values, MS, True, chunks=chunk).to_zarr(folder / f"{name}.zarr")
    return folder


@pytest.fixture(autouse=True)
def stores(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies of them, of which a test may change any."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Counter[tuple[str, tuple[int, ...]]]:
    """How often each chunk was read."""
    found: Counter[tuple[str, tuple[int, ...]]] = Counter()
    read_chunk, lock = store.read_chunk, threading.Lock()

    def counted(info: store.StoreInfo, index: tuple[int, ...]) -> Any:
        with lock:
            found[Path(info.path).name, index] += 1
        return read_chunk(info, index)

    monkeypatch.setattr(store, "read_chunk", counted)
    return found


def all_chunks(*names: str, times: int = 1) -> Counter[tuple[str, tuple[int, ...]]]:
    found = Counter({(name, i): times for name in names for i in store.open_info(name).indices()})
    assert len(found) > 1
    return found


# ---- eval: reductions -------------------------------------------------------------------------------------


def test_reductions_in_one_pass(reads: Counter[Any]) -> None:
    before = sorted(Path().rglob("*"))
    found = as_json("eval", "a*b + c", *STORES, "--sum", "--argmax", "--max", "--min", "--argmin")
    results = found["results"]
    assert list(results) == ["sum", "argmax", "max", "min", "argmin"]
    assert results["max"]["value"] == str(max(FMA))
    assert results["max"]["index"] == FMA.index(max(FMA))
    assert results["argmax"] == {"value": str(FMA.index(max(FMA)))}
    assert (results["min"]["value"], results["argmin"]["value"]) == (str(min(FMA)), str(FMA.index(min(FMA))))
    assert results["sum"]["value"] == str(sum(FMA))
    assert (found["op"], found["expression"], found["count"]) == ("eval", "a*b + c", 700)
    assert found["bytes_read"] == sum(rd.open_zarr(f"{n}.zarr").nbytes for n in "abc")
    assert reads == all_chunks("a.zarr", "b.zarr", "c.zarr")
    assert sorted(Path().rglob("*")) == before


def test_text_of_reductions() -> None:
    lines = succeed("eval", "a - b", "a=a.zarr", "b=b.zarr", "--min", "--argmax", "--sum").splitlines()
    values = [a - b for a, b in zip(A, B, strict=True)]
    assert lines[:2] == [f"min of 700 values at index {values.index(min(values))}:", str(min(values))]
    assert lines[2:4] == ["argmax of 700 values:", str(values.index(max(values)))]
    assert lines[4:6] == ["sum of 700 values:", str(sum(values))]
    assert re.fullmatch(r"\(.* in .* s, .*/s, 0 exact fallbacks\)", lines[6])


def test_one_store_by_two_names_is_read_once(reads: Counter[Any]) -> None:
    found = as_json("eval", "x*y - y", "x=a.zarr", "y=a.zarr", "--max")
    assert found["results"]["max"]["value"] == str(max(a * a - a for a in A))
    assert reads == all_chunks("a.zarr")
    assert found["bytes_read"] == rd.open_zarr("a.zarr").nbytes


def test_counting(reads: Counter[Any]) -> None:
    found = as_json("eval", "(a < b) & (a % 2 == 1)", "a=a.zarr", "b=b.zarr", "--count")
    assert found["results"]["count"]["value"] == str(sum(a < b and a % 2 for a, b in zip(A, B, strict=True)))
    assert reads == all_chunks("a.zarr", "b.zarr")
    found = as_json("eval", f"a < {2**1000}", "a=a.zarr", "--count")
    assert found["results"]["count"]["value"] == str(len(A))


def test_a_comparison_decided_by_ranges_drops_no_error() -> None:
    for text in (
        f"(c*c*c) < {2**300}",
        f"(a // (b - b)) < {2**300}",
        f"where((c*c*c) < {2**300}, a, b) == 1",
    ):
        names = [store for store in STORES if store[0] in text]
        message = fail("eval", text, *names, "--count", status=1)
        assert "overflow at flat index" in message or "division by zero" in message, message


# ---- eval: writing ----------------------------------------------------------------------------------------


def test_bounds_beyond_the_range_are_written() -> None:
    succeed("eval", "c % 10**90", "c=c.zarr", "-o", "out.zarr")
    assert values_in("out.zarr") == C
    assert "whole and valid" in succeed("verify", "out.zarr")


@pytest.mark.parametrize("workers", [1, 2])
def test_values_are_written(reads: Counter[Any], workers: int) -> None:
    with dask.config.set(num_workers=workers):
        found = as_json("eval", "a*b + c", *STORES, "-o", "out.zarr")
    assert reads == all_chunks("a.zarr", "b.zarr", "c.zarr")
    assert values_in("out.zarr") == FMA
    info = store.open_info("out.zarr")
    assert (info.chunks, info.system.signed, info.moduli) == ((128,), True, MS)
    assert info.system.bound == max(map(abs, A)) * max(map(abs, B)) + 2**100
    assert (found["output"], found["bytes_written"], found["count"]) == ("out.zarr", info.nbytes, 700)
    assert "verify" not in fail("eval", "a + b", "a=a.zarr", "b=b.zarr", "-o", "out.zarr")
    assert values_in("out.zarr") == FMA
    text = succeed("eval", "a + b", "a=a.zarr", "b=b.zarr", "-o", "out.zarr", "--overwrite")
    assert text.startswith("out.zarr: 700 values, ")
    assert values_in("out.zarr") == [a + b for a, b in zip(A, B, strict=True)]


def test_broadcasting_and_shapes() -> None:
    x = np.arange(6 * 300, dtype=object).reshape(6, 300)
    rd.from_ints(x, MS, chunks=(2, 128)).to_zarr("x.zarr")
    rd.from_ints(x[:1], MS, chunks=(1, 256)).to_zarr("row.zarr")
    rd.from_ints(x[0], MS, chunks=128).to_zarr("flat.zarr")
    for name, chunks in (("row", (2, 128)), ("flat", (2, 128))):
        succeed("eval", "x + 2*y", "x=x.zarr", f"y={name}.zarr", "-o", "out.zarr", "--overwrite")
        assert (rd.open_zarr("out.zarr").to_ints() == x + 2 * x[0]).all()
        assert store.open_info("out.zarr").chunks == chunks


def test_empty_and_tiny_stores() -> None:
    store.create("none.zarr", RNS(MS), (0,)).finish()
    assert as_json("eval", "x + 1", "x=none.zarr", "-o", "out.zarr")["count"] == 0
    assert values_in("out.zarr") == []
    error = fail("eval", "x + 1", "x=none.zarr", "--max", "-o", "unwritten.zarr")
    assert error.startswith("expression 'x + 1': max of an empty array: it needs at least one number"), error
    assert not Path("unwritten.zarr").exists()
    summed = as_json("eval", "x + 1", "x=none.zarr", "--sum")
    assert summed["results"]["sum"]["value"] == as_json("sum", "none.zarr")["value"] == "0"
    succeed("eval", "x < 1", "x=none.zarr", "-o", "mask.zarr")
    assert zarr.open_array("mask.zarr").shape == (0,)
    rd.from_ints([5], MS).to_zarr("one.zarr")
    succeed("eval", "x + y", "x=one.zarr", "y=one.zarr", "-o", "two.zarr")
    assert values_in("two.zarr") == [10]
    succeed("cumsum", "none.zarr", "-o", "sums.zarr")
    assert values_in("sums.zarr") == []
    assert as_json("topk", 3, "none.zarr")["values"] == []
    assert as_json("compare", "none.zarr", "none.zarr")["equal"] == 0


@pytest.mark.parametrize(("text", "dtype"), [("a > b", "bool"), ("sign(a - b)", "int8")])
def test_comparisons_are_written_as_plain_arrays(text: str, dtype: str, reads: Counter[Any]) -> None:
    found = as_json("eval", text, "a=a.zarr", "b=b.zarr", "-o", "out.zarr")
    written = zarr.open_array("out.zarr")
    expected = [a > b if dtype == "bool" else (a > b) - (a < b) for a, b in zip(A, B, strict=True)]
    assert (written.dtype, written.chunks) == (dtype, (128,))
    assert written[:].tolist() == expected
    assert written.attrs["rnsdask_values"] == {"complete": True}
    assert found["bytes_written"] == 700
    assert reads == all_chunks("a.zarr", "b.zarr")
    assert "--overwrite" in fail("eval", text, "a=a.zarr", "b=b.zarr", "-o", "out.zarr")
    succeed("eval", text, "a=b.zarr", "b=a.zarr", "-o", "out.zarr", "--overwrite")
    assert "that eval wrote, not a store of numbers" in fail("max", "out.zarr")


def test_overflow_modes(reads: Counter[Any]) -> None:
    lowest, top = MS.value_range(True)
    x = [1, top - 1, 5, top, *[0] * 300, top, 3]
    rd.from_ints(x, MS, True, chunks=128).to_zarr("x.zarr")
    flags = [not lowest <= 3 * v <= top for v in x]
    wrapped = [(3 * v - lowest) % MS.product + lowest for v in x]
    message = fail("eval", "3*x", "x=x.zarr", "-o", "out.zarr")
    assert re.match(
        r"expression '3\*x': overflow at flat index (1|304): the exact result is \d+ bits", message
    )
    assert not Path("out.zarr").exists()
    assert re.match(r"expression '3\*x': overflow at flat index", fail("eval", "3*x", "x=x.zarr", "--max"))
    succeed("eval", "3*x", "x=x.zarr", "-o", "wrap.zarr", "--overflow", "wrap")
    assert values_in("wrap.zarr") == wrapped
    reads.clear()
    options = ["--overflow", "flag", "-o", "flag.zarr"]
    found = as_json("eval", "3*x", "x=x.zarr", *options, "--mask", "mask.zarr")
    assert reads == all_chunks("x.zarr")
    assert (found["flagged"], found["mask"]) == (sum(flags), "mask.zarr")
    assert values_in("flag.zarr") == wrapped
    assert zarr.open_array("mask.zarr")[:].tolist() == flags
    assert "3 out of range, modulo M" in succeed("eval", "3*x", "x=x.zarr", *options, "--overwrite")
    reads.clear()
    found = as_json("eval", "3*x", "x=x.zarr", "--overflow", "flag", "--max")
    assert reads == all_chunks("x.zarr")
    assert (found["flagged"], found["results"]["max"]["value"]) == (3, str(max(wrapped)))
    found = as_json("eval", "minimum(x, 9)", "x=x.zarr", *options, "--mask", "mask.zarr", "--overwrite")
    assert found["flagged"] == 0
    assert not zarr.open_array("mask.zarr")[:].any()


def test_products_of_vectors_are_arrays_of_one_number() -> None:
    """Also where NumPy has a number without an axis: of it, a store can be made, and it is broadcast."""
    values = [3, 0, 2**20, 7] * 100
    total = sum(value * value for value in values)
    moduli = rd.ModuliSet.for_bits(64)
    rd.from_ints(values, moduli, chunks=128).to_zarr("v.zarr")
    rd.from_ints([2**50, 2**50], moduli).to_zarr("w.zarr")
    found = as_json("eval", "v@v", "v=v.zarr", "--max", "--sum", "--argmin")["results"]
    assert [found[name]["value"] for name in ("max", "sum", "argmin")] == [str(total), str(total), "0"]
    succeed("eval", "(v@v)*v + v@v", "v=v.zarr", "-o", "o.zarr")
    assert values_in("o.zarr") == [total * value + total for value in values]
    assert as_json("eval", "v@v < v", "v=v.zarr", "--count")["results"]["count"]["value"] == "0"
    assert "flat index 0" in fail("eval", "w@w", "w=w.zarr", "-o", "p.zarr")
    succeed("eval", "w@w", "w=w.zarr", "-o", "q.zarr", "--overflow", "flag", "--mask", "m.zarr")
    assert values_in("q.zarr") == [2**101 % moduli.product]
    assert zarr.open_array("m.zarr", mode="r")[:].tolist() == [True]


def test_division_by_zero_is_one_line() -> None:
    message = fail("eval", "a // (b - b)", "a=a.zarr", "b=b.zarr", "--sum")
    assert re.fullmatch(r"expression 'a // \(b - b\)': division by zero at flat index \d+", message)


# ---- eval: what is refused --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["a +", "a=a.zarr", "--max"], "expression 'a \\+', column 4: invalid syntax"),
        (["a + d", "a=a.zarr", "--max"], "column 5: 'd' stands for nothing"),
        (["a", "a=a.zarr", "b=b.zarr", "--max"], "does not use the name 'b'"),
        (["a + m", "a=a.zarr", "m=m.zarr", "-o", "o.zarr"], "column 1: operands have different moduli sets"),
        (["a + s", "a=a.zarr", "s=s.zarr", "-o", "o.zarr"], "column 1: shapes do not broadcast"),
        (["a", "--max"], "Missing argument 'NAME=STORE...'"),
        (["a", "a=a.zarr"], "give -o STORE, or reductions"),
        (["a", "a.zarr", "--max"], "'a.zarr' is not NAME=STORE"),
        (["a", "a=", "--max"], "'a=' is not NAME=STORE"),
        (["a", "1=a.zarr", "--max"], "is not NAME=STORE"),
        (["a", "a=a.zarr", "a=b.zarr", "--max"], "the name 'a' is given twice"),
        (["a", "a=a.zarr", "--max", "--overflow", "no"], "'--overflow'"),
        (["a", "a=a.zarr", "--max", "--mask", "m"], "--mask needs -o and --overflow flag"),
        (["a", "a=a.zarr", "-o", "o.zarr", "--mask", "m"], "--mask needs -o and --overflow flag"),
        (["a", "a=a.zarr", "--max", "--overwrite"], "--overwrite needs -o"),
        (["a", "a=a.zarr", "--max", "--resume"], "--resume needs -o"),
        (["a < 3", "a=a.zarr", "--max"], "max is for numbers, and this has dtype bool"),
        (["sign(a)", "a=a.zarr", "--count"], "count is for comparisons, and this is not one"),
        (["a", "a=a.zarr", "--count"], "count is for comparisons, and this is not one"),
    ],
)
def test_wrong_usage(args: list[str], message: str, reads: Counter[Any]) -> None:
    rd.from_ints([1] * 700, MS, chunks=128).with_bound(None).to_zarr("u.zarr")
    rd.from_ints([1] * 700, ModuliSet.for_bits(64), True, chunks=128).to_zarr("m.zarr")
    rd.from_ints([1] * 699, MS, True, chunks=128).to_zarr("s.zarr")
    error = fail("eval", *args, status=2)
    assert re.search(message, error)
    assert error.endswith("(see rnsdask eval --help)")
    assert not Path("o.zarr").exists()
    assert not reads


def test_stores_that_cannot_be_used(reads: Counter[Any]) -> None:
    assert "none.zarr: there is no such store" in fail("eval", "a + n", "a=a.zarr", "n=none.zarr", "--max")
    store.create("half.zarr", RNS(MS, True), (700,))
    assert "incomplete" in fail("eval", "a + n", "a=a.zarr", "n=half.zarr", "-o", "o.zarr")
    message = fail("eval", "a + b", "a=a.zarr", "b=b.zarr", "-o", "./b.zarr", "--overwrite")
    assert "./b.zarr: an operand is read from there" in message
    options = ["-o", "o.zarr", "--overflow", "flag", "--overwrite"]
    message = fail("eval", "a + b", "a=a.zarr", "b=b.zarr", *options, "--mask", "./o.zarr")
    assert "./o.zarr: those of the mask cannot be written there, the values are" in message
    assert "is read from" in fail("eval", "a + b", "a=a.zarr", "b=b.zarr", *options, "--mask", "a.zarr")
    assert "cannot overwrite the store" in fail("cumsum", "a.zarr", "-o", "a.zarr", "--overwrite")
    assert (values_in("a.zarr"), values_in("b.zarr")) == (A, B)
    assert not Path("o.zarr").exists()


# ---- continuing a job, and no other -----------------------------------------------------------------------


def interrupt(monkeypatch: pytest.MonkeyPatch, *command: str) -> None:
    """Run a job that ends before it has written its last chunk."""
    write = store.StoreWriter.write_chunk

    def write_chunk(writer: store.StoreWriter, index: tuple[int, ...], block: Any) -> None:
        if index == (5,):
            raise RuntimeError("the end")
        write(writer, index, block)

    with monkeypatch.context() as patch:
        patch.setattr(store.StoreWriter, "write_chunk", write_chunk)
        assert "the end" in fail(*command)


OTHER_JOB = "it cannot be resumed: it was begun by another job: "


def test_eval_continues_only_its_own_job(monkeypatch: pytest.MonkeyPatch) -> None:
    flag = ["--overflow", "flag", "--mask", "m.zarr"]
    interrupt(monkeypatch, "eval", "a*b + c", *STORES, *flag, "-o", "o.zarr")
    assert "it cannot be resumed" in fail("eval", "a*b - c + 1", *STORES, *flag, "-o", "o.zarr", "--resume")
    for other in (
        ["c + a*b", *STORES, *flag],
        ["a*b + c", "a=b.zarr", "b=a.zarr", "c=c.zarr", *flag],
        ["a*b + c", *STORES, "--overflow", "wrap"],
        ["a*b + c", *STORES],
    ):
        assert OTHER_JOB in fail("eval", *other, "-o", "o.zarr", "--resume")
    for path in ("c.zarr/zarr.json", "c.zarr/c/0/1"):
        os.utime(path, ns=(0, 0))
    assert OTHER_JOB in fail("eval", "a*b - c", *STORES, *flag, "-o", "o.zarr", "--resume")
    assert as_json("eval", "a*b + c", *STORES, *flag, "-o", "o.zarr", "--resume")["chunks_kept"] > 0
    succeed("eval", "a*b + c", *STORES, *flag, "-o", "o.zarr", "--overwrite")
    assert values_in("o.zarr") == FMA
    interrupt(monkeypatch, "eval", "a*b + c", *STORES, *flag, "-o", "o.zarr", "--overwrite")
    assert as_json("eval", "a*b + c", *STORES, *flag, "-o", "o.zarr", "--resume")["chunks_kept"] > 0
    assert values_in("o.zarr") == FMA


# ---- scans, topk, compare ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "function"), [("cumsum", None), ("cummax", max), ("cummin", min)])
def test_scans(name: str, function: Any, reads: Counter[Any]) -> None:
    found = as_json(name, "a.zarr", "-o", "out.zarr")
    assert reads == all_chunks("a.zarr", times=2)
    assert values_in("out.zarr") == list(accumulate(A, function))
    assert store.open_info("out.zarr").chunks == (128,)
    assert (found["op"], found["store"], found["output"], found["count"]) == (name, "a.zarr", "out.zarr", 700)
    assert found["bytes_read"] == 2 * found["bytes_written"]
    assert "--overwrite" in fail(name, "a.zarr", "-o", "out.zarr")
    assert succeed(name, "b.zarr", "-o", "out.zarr", "--overwrite").startswith("out.zarr: 700 integers, ")
    assert values_in("out.zarr") == list(accumulate(B, function))


def test_scan_errors() -> None:
    rd.from_ints([MS.value_range(True)[1]] * 200, MS, True, chunks=128).to_zarr("x.zarr")
    assert re.match(
        r"cumsum of x\.zarr: overflow at flat index \d+: ", fail("cumsum", "x.zarr", "-o", "out.zarr")
    )
    rd.from_ints(np.ones((3, 3), dtype=object), MS).to_zarr("two.zarr")
    for args in (("cummax", "two.zarr", "-o", "out2.zarr"), ("topk", 2, "two.zarr")):
        assert fail(*args).endswith(
            "takes an array of one axis, which rnsdask reshape makes; got shape (3, 3)"
        )
    assert not Path("out2.zarr").exists()


@pytest.mark.parametrize("k", [3, -4, 0, 699, 1000, -1000])
def test_topk(k: int, reads: Counter[Any]) -> None:
    found = as_json("topk", k, "a.zarr")
    order = sorted(range(700), key=lambda i: (A[i] if k < 0 else -A[i], i))[: abs(k)]
    assert found["indices"] == order
    assert found["values"] == [str(A[i]) for i in order]
    assert (found["k"], found["count"]) == (k, 700)
    assert reads == all_chunks("a.zarr")
    lines = succeed("topk", k, "a.zarr").splitlines()
    assert lines == [f"{i}\t{A[i]}" for i in order]


def test_compare(reads: Counter[Any]) -> None:
    changed = [*A[:300], A[300] + 1, *A[301:600], A[600] - 1, *A[601:]]
    rd.from_ints(changed, MS, True, chunks=256).to_zarr("x.zarr")
    found = as_json("compare", "a.zarr", "x.zarr", status=1)
    assert {key: found[key] for key in ("less", "equal", "greater")} == {
        "less": 1,
        "equal": 698,
        "greater": 1,
    }
    assert (found["first_difference"], found["stores"], found["count"]) == (300, ["a.zarr", "x.zarr"], 700)
    assert reads == all_chunks("a.zarr", "x.zarr")
    lines = succeed("compare", "a.zarr", "x.zarr", status=1).splitlines()
    assert lines[:3] == [
        "a.zarr against x.zarr: 700 integers",
        "1 less, 698 equal, 1 greater",
        "first difference at index 300",
    ]
    reads.clear()
    assert as_json("compare", "a.zarr", "a.zarr")["first_difference"] is None
    assert reads == all_chunks("a.zarr")


@pytest.mark.parametrize("integer", ["7", "-7", "+0", "0x1f", "-0X1F", "1" * 5000])
def test_compare_with_an_integer(integer: str, reads: Counter[Any]) -> None:
    value = 10**5000 if len(integer) > 4000 else int(integer, 0)
    found = as_json("compare", "a.zarr", integer, status=1)
    assert found["less"] == sum(a < value for a in A)
    assert found["greater"] == sum(a > value for a in A)
    assert found["equal"] == A.count(value)
    assert found["bytes_read"] == rd.open_zarr("a.zarr").nbytes
    assert reads == all_chunks("a.zarr")


def test_compare_of_two_axes() -> None:
    x = np.arange(12 * 300, dtype=object).reshape(12, 300)
    rd.from_ints(x, MS, chunks=(5, 128)).to_zarr("x.zarr")
    x = x.copy()
    x[7, 200] += 1
    x[11, 3] += 1
    rd.from_ints(x, MS, chunks=(4, 256)).to_zarr("y.zarr")
    found = as_json("compare", "y.zarr", "x.zarr", status=1)
    assert (found["first_difference"], found["greater"]) == (7 * 300 + 200, 2)


@pytest.mark.parametrize(
    "args",
    [
        *([op, "a.zarr"] for op in ("max", "min", "sum")),
        ["prod", "a.zarr", "--overflow", "wrap"],
        ["extend", "a.zarr", "-o", "out.zarr", "--bits", "300"],
        ["convert", "a.zarr", "-o", "out.zarr", "--to", "interval"],
        *([op, "a.zarr", "-o", "out.zarr"] for op in ("cumsum", "cummax", "cummin")),
        ["topk", "3", "a.zarr"],
        ["compare", "a.zarr", "a.zarr"],
        ["compare", "a.zarr", "5"],
        ["eval", "a * b + c", *STORES, "--max", "--sum", "--argmin"],
        ["eval", "(a < b) | (a == 1)", *STORES[:2], "--count"],
        ["eval", "maximum(a, b) // 3 % c - 2 ** 5", *STORES, "-o", "out.zarr"],
    ],
    ids=" ".join,
)
def test_backend_cpu_leaves_the_gpu_alone(args: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    @functools.cache
    def has_gpu() -> bool:
        raise AssertionError("a GPU was looked for")

    monkeypatch.setattr(backend, "has_gpu", has_gpu)
    text = succeed(*args, "--backend", "cpu", status=int(args[-1] == "5"))
    assert "cuda" not in text
    if args[0] in ("cumsum", "cummax", "cummin"):
        return  # they compute on the host unless they are told otherwise
    automatic = call(*args, *(["--overwrite"] if "out.zarr" in args else []))
    assert "a GPU was looked for" in automatic.stderr


def test_trouble_in_compare_has_status_2() -> None:
    assert "no such store" in fail("compare", "a.zarr", "none.zarr", status=2)
    assert "there is no such store" in fail("compare", "a.zarr", "./5", status=2)
    rd.from_ints([1] * 3, MS, True).to_zarr("short.zarr")
    assert "they must be the same" in fail("compare", "a.zarr", "short.zarr", status=2)
    rd.from_ints(A, ModuliSet.for_bits(64), True).to_zarr("other.zarr")
    assert "different moduli sets" in fail("compare", "a.zarr", "other.zarr", status=2)
    assert "Missing argument" in fail("compare", "a.zarr", status=2)
    Path("a.zarr/c/0/3").unlink()
    assert "chunk c/0/3 is missing" in fail("compare", "a.zarr", "b.zarr", status=2)
    assert "No such option" in fail("topk", "--nothing", "a.zarr", status=2)


# ---- progress, clusters, memory ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    options: dict[str, Any] = {"processes": False, "protocol": "tcp", "dashboard_address": ":0"}
    with LocalCluster(n_workers=2, threads_per_worker=1, **options) as running:
        yield running.scheduler_address


def test_on_a_cluster(address: str, reads: Counter[Any]) -> None:
    place = ["--scheduler", address]
    found = as_json("eval", "a*b + c", *STORES, "--max", "--sum", *place)
    assert found["results"]["max"]["value"] == str(max(FMA))
    assert found["results"]["sum"]["value"] == str(sum(FMA))
    assert reads == all_chunks("a.zarr", "b.zarr", "c.zarr")
    succeed("eval", "a*b + c", *STORES, "-o", "o.zarr", "--overflow", "flag", "--mask", "m.zarr", *place)
    for path in ("o.zarr", "m.zarr"):
        file = Path(path, "zarr.json")
        file.write_text(re.sub('"complete": true', '"complete": false', file.read_text()))
    Path("m.zarr/c/1").unlink()
    resumed = ["-o", "o.zarr", "--overflow", "flag", "--mask", "m.zarr", "--resume"]
    assert as_json("eval", "a*b + c", *STORES, *resumed, *place)["chunks_kept"] == 5
    assert values_in("o.zarr") == FMA
    assert not zarr.open_array("m.zarr")[:].any()
    succeed("eval", "a < b", "a=a.zarr", "b=b.zarr", "-o", "l.zarr", *place)
    succeed("cumsum", "a.zarr", "-o", "s.zarr", *place)
    assert values_in("s.zarr") == list(accumulate(A))
    assert as_json("topk", 1, "a.zarr", *place)["values"] == [str(max(A))]
    assert as_json("compare", "a.zarr", "b.zarr", *place, status=1)["first_difference"] == 0
    error = fail("eval", "a*b*c*c*c + 1", *STORES, "--max", *place)
    assert error.startswith("expression 'a*b*c*c*c + 1': overflow at flat index ")


# The peaks of a process after a job of small stores, which shows what the packages take, and of large ones.
MEASURE = """
import resource, sys
import dask
from rnsdask.cli import main
dask.config.set(num_workers=2)
for size in ("small", "large"):
    try:
        main([argument.replace("SIZE", size) for argument in sys.argv[1:]], standalone_mode=False)
    except SystemExit:
        pass
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, file=sys.stderr)
"""


@pytest.fixture(scope="module")
def sizes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Stores of 2 and of 60 chunks of 1 MB."""
    folder, moduli = tmp_path_factory.mktemp("sizes"), ModuliSet.for_bits(1024)
    for seed, name in enumerate("xyz"):
        for size, chunks in (("small", 2), ("large", 60)):
            # Below all moduli, a number is its own residue.
            numbers = np.random.default_rng(seed).integers(0, 2**30, 8192 * chunks, dtype=np.uint32)
            residues = np.broadcast_to(numbers, (len(moduli), len(numbers)))
            x = rd.from_residues(residues, moduli, bound=2**30).rechunk(8192)
            x.to_zarr(folder / f"{size}-{name}.zarr")
    return folder


@pytest.mark.skipif(sys.platform != "linux", reason="units of ru_maxrss")
@pytest.mark.parametrize(
    "command",
    [
        *slow("eval a*b+c a=SIZE-x.zarr b=SIZE-y.zarr c=SIZE-z.zarr -o SIZE-eval.zarr --overwrite"),
        "cumsum SIZE-x.zarr -o SIZE-sums.zarr --overwrite",
    ],
)
def test_memory_is_bounded(sizes: Path, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    monkeypatch.chdir(sizes)
    arguments = [sys.executable, "-c", MEASURE, *command.split()]
    process = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
    before, after = map(int, process.stderr.split())
    assert rd.open_zarr("large-x.zarr").nbytes > 60e6
    assert after - before < 30e6
