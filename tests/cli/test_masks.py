"""Masks: looking at them, counting, combining, selecting by them, and what differs between stores."""

import json
import re
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
import zarr
from commands import as_json, call, fail, succeed, values_in

import rnsdask as rd

VALUES = [5, -3, 2**70, 0, -(2**70), 7, 7, 12, -1, 30]
TABLE = np.arange(-12, 12).reshape(4, 6)


@pytest.fixture(autouse=True)
def inputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rd.from_ints(VALUES, chunks=3).to_zarr("x.zarr")
    rd.from_ints(TABLE, chunks=(3, 4)).to_zarr("t.zarr")
    succeed("eval", "x > 5", "x=x.zarr", "-o", "m.zarr")
    succeed("eval", "x % 2 == 0", "x=x.zarr", "-o", "even.zarr")
    succeed("eval", "t % 5 == 0", "t=t.zarr", "-o", "tm.zarr")
    succeed("eval", "bit_length(x)", "x=x.zarr", "-o", "bits.zarr")


TRUE = [i for i, v in enumerate(VALUES) if v > 5]


def test_head_and_sum() -> None:
    assert succeed("head", "m.zarr", "-n", 4) == "0\t0\n1\t0\n2\t1\n3\t0\n"
    assert as_json("head", "tm.zarr")["values"] == [str(int(v % 5 == 0)) for v in TABLE.ravel()[:10]]
    assert succeed("head", "tm.zarr", "-n", 2) == "0,0\t0\n0,1\t0\n"
    assert as_json("head", "bits.zarr")["values"] == [str(v.bit_length()) for v in VALUES]
    assert succeed("sum", "m.zarr").startswith(f"true of 10 values:\n{len(TRUE)}\n")
    assert succeed("sum", "bits.zarr").startswith(f"sum of 10 values:\n{sum(map(int.bit_length, VALUES))}\n")
    found = as_json("sum", "tm.zarr")
    assert (found["value"], found["count"], found["bytes_read"]) == (str((TABLE % 5 == 0).sum()), 24, 24)
    assert "--checkpoint is for stores of integers" in fail("sum", "m.zarr", "--checkpoint", "k", status=2)
    assert as_json("sum", "m.zarr", "--backend", "cpu")["value"] == str(len(TRUE))


def test_sums_beyond_64_bits() -> None:
    values = np.full(5, 2**62, dtype=np.int64)
    zarr.open_array("bits.zarr", mode="r+")[:5] = values
    total = 5 * 2**62 + sum(v.bit_length() for v in VALUES[5:])
    assert as_json("sum", "bits.zarr")["value"] == str(total)


@pytest.mark.parametrize("k", [3, 30, -4, -30, 0])
@pytest.mark.parametrize("name", ["m", "tm", "bits"])
def test_topk(name: str, k: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rnsdask.cli.masks.PART_VALUES", 5)
    values = np.asarray(zarr.open_array(f"{name}.zarr", mode="r")[:]).astype(int)
    order = sorted(np.ndindex(values.shape), key=lambda i: -values[i] if k > 0 else values[i])[: abs(k)]
    found = as_json("topk", k, f"{name}.zarr")
    assert found["indices"] == [list(index) for index in order]
    assert found["values"] == [str(values[index]) for index in order]
    lines = [f"{','.join(map(str, index))}\t{values[index]}\n" for index in order]
    assert succeed("topk", k, f"{name}.zarr") == "".join(lines)


def test_where() -> None:
    assert succeed("where", "m.zarr") == "".join(f"{i}\n" for i in TRUE)
    assert succeed("where", "m.zarr", "-n", 2) == "".join(f"{i}\n" for i in TRUE[:2])
    assert as_json("where", "tm.zarr")["indices"] == np.argwhere(TABLE % 5 == 0).tolist()
    assert succeed("where", "tm.zarr", "-n", 1) == "0,2\n"
    zarr.save_array("plain.zarr", np.array([False, True]))
    assert succeed("where", "plain.zarr") == "1\n"
    zarr.save_array("none.zarr", np.zeros((0, 3), dtype=bool))
    assert succeed("where", "none.zarr") == ""
    for path in ("x.zarr", "bits.zarr"):
        assert "where is for Boolean arrays" in fail("where", path)
    assert "there is no such file or Zarr array" in fail("where", "no.zarr")


def test_masks_combine() -> None:
    m, even = np.array([v > 5 for v in VALUES]), np.array([v % 2 == 0 for v in VALUES])
    for text, wanted in {
        "m & e": m & even,
        "m | ~e": m | ~even,
        "m ^ e": m ^ even,
        "(m ^ (x < 0)) & ~(e | m)": (m ^ np.array([v < 0 for v in VALUES])) & ~(even | m),
    }.items():
        places = {"m": "m.zarr", "e": "even.zarr", "x": "x.zarr"}
        names = [f"{name}={path}" for name, path in places.items() if name in text]
        succeed("eval", text, *names, "-o", "o.zarr", "--overwrite")
        assert as_json("where", "o.zarr")["indices"] == [[i] for i in np.flatnonzero(wanted)]


@pytest.mark.parametrize("backend", ["auto", "cpu"])
def test_filter(backend: str) -> None:
    succeed("filter", "x.zarr", "x > 5", "-o", "o.zarr", "--backend", backend)
    assert values_in("o.zarr") == [v for v in VALUES if v > 5]
    job = ["filter", "x.zarr", "(x < 20) & m", "m=m.zarr", "-o", "p.zarr"]
    found = as_json(*job)
    assert (found["op"], values_in("p.zarr")) == ("filter", [7, 7, 12])
    assert "complete already" in succeed(*job, "--resume")
    succeed("filter", "t.zarr", "t == 0", "t=t.zarr", "-o", "q.zarr")
    assert values_in("q.zarr") == [0]
    succeed("filter", "t.zarr", "x % 5 == 0", "-o", "r.zarr")
    assert values_in("r.zarr") == TABLE[TABLE % 5 == 0].tolist()
    succeed("filter", "x.zarr", "x > 2**90", "-o", "none.zarr")
    assert values_in("none.zarr") == []
    assert "x stands for SRC itself" in fail("filter", "x.zarr", "x > 5", "x=t.zarr", "-o", "o", status=2)
    for text, message in (("x + 1", "or one condition, and it is an array"), ("x >", "invalid syntax")):
        assert message in fail("filter", "x.zarr", text, "-o", "s.zarr", status=2)


@pytest.mark.parametrize("index", ["0:3", "2", "..., ::2", "None", "-1"])
def test_an_index_is_no_condition(index: str) -> None:
    error = fail("filter", "x.zarr", f" {index}", "-o", "s.zarr", status=2)
    assert f"{index!r} is an index, no condition such as 'x > 5'; rnsdask slice takes it" in error
    assert not Path("s.zarr").exists()


@pytest.mark.parametrize(
    "job", ["verify m.zarr", "compare m.zarr x.zarr", "slice m.zarr -o s.zarr 0:3", "max m.zarr"]
)
def test_masks_are_no_stores(job: str) -> None:
    error = fail(*job.split(), status=2 if job.startswith("compare") else 1)
    assert "it is a mask that eval wrote, not a store of numbers; rnsdask info, head, sum, topk" in error
    with pytest.raises(rd.StoreError, match=r"not a store of numbers; zarr\.open_array\(path\) reads it"):
        rd.open_zarr("m.zarr")
    with pytest.raises(rd.StoreError, match="it is an array of machine integers that eval wrote"):
        rd.open_zarr("bits.zarr")


def test_selections_in_expressions() -> None:
    values = np.array(VALUES, dtype=object)
    m = np.array([v > 5 for v in VALUES])
    for text, wanted in {
        "x[x > 5] * 2 - 1": values[m] * 2 - 1,
        "x[1:][x[1:] < 7]": values[1:][(values[1:] < 7).astype(bool)],
        "x[~m][::2]": values[~m][::2],
        "x[where(m, x, 1) == x] + x[m]": values[m] + values[m],
        "where(m, 1, 0)": m.astype(int),
        "where(x != 7, 1, 0) + x": (values != 7).astype(int) + values,
    }.items():
        names = ["x=x.zarr"] * ("x" in text) + ["m=m.zarr"] * ("m" in text)
        done = succeed("eval", text, *names, "-o", "o.zarr", "--sum", "--overwrite")
        assert values_in("o.zarr") == wanted.tolist(), text
        assert str(sum(wanted.tolist())) in done.replace("\n", ""), text
    assert as_json("eval", "m[m]", "m=m.zarr", "--count")["count"] == len(TRUE)
    errors = {
        "x[x]": "an index is an integer or a slice for each axis, or one condition, and it is an array of",
        "x[m[1:]]": r"a condition must have the shape of the array, \(10,\), got \(9,\)",
    }
    for text, message in errors.items():
        names = ["x=x.zarr"] + ["m=m.zarr"] * ("m" in text)
        assert re.search(message, fail("eval", text, *names, "--sum", status=2))
    flagged = ["--overflow", "flag", "--sum"]
    rd.from_ints([1, 2], rd.ModuliSet([11, 13])).to_zarr("small.zarr")
    text = fail("eval", "(x * 100)[x > 1]", "x=small.zarr", *flagged, status=2)
    assert "with overflow flagged, a selection by a condition is of names" in text
    assert as_json("eval", "x[x > 1] * 100", "x=small.zarr", *flagged)["flagged"] == 1


def test_choices_of_integers_in_every_system() -> None:
    intervals = rd.IntervalRNS(rd.ModuliSet.for_bits(80))
    for name, system in {"limbs": rd.Positional(80, True), "interval": intervals}.items():
        rd.from_ints(VALUES, system).to_zarr(f"{name}.zarr")
        succeed("eval", "where(x > 5, 1, 0) + x", f"x={name}.zarr", "-o", "o.zarr", "--overwrite")
        assert values_in("o.zarr") == [v + (v > 5) for v in VALUES]


def test_compare_all() -> None:
    succeed("eval", "where(x > 10, 11, x)", "x=x.zarr", "-o", "y.zarr")
    printed = call("compare", "x.zarr", "y.zarr", "--all")
    assert printed.exit_code == 1
    assert f"2\t{2**70}\t11\n7\t12\t11\n9\t30\t11\n" in printed.stdout
    found = call("compare", "t.zarr", "3", "--all", "--json")
    fields: dict[str, Any] = json.loads(found.stdout)
    assert fields["indices"] == [list(i) for i in np.ndindex(4, 6) if TABLE[i] != 3]
    assert fields["values"] == [[str(v), "3"] for v in TABLE.ravel() if v != 3]
    assert call("compare", "x.zarr", "x.zarr", "--all").exit_code == 0
    assert "\t" not in call("compare", "x.zarr", "y.zarr").stdout


def test_where_of_integers_in_python() -> None:
    x = rd.from_ints(VALUES, chunks=3)
    m = np.array([v > 5 for v in VALUES])
    for condition in (x > 5, m, da.from_array(m, chunks=4)):
        for a, b in ((1, 0), (-(2**70), 5), (list(range(10)), 7), (np.arange(10), [2**80] * 10)):
            found = rd.where(condition, a, b)
            assert isinstance(found, rd.RNSArray)
            wanted = np.where(m, np.array(a, dtype=object), np.array(b, dtype=object))
            assert found.to_ints().tolist() == wanted.tolist()
            assert (found + x).to_ints().tolist() == (wanted + VALUES).tolist()
    lazy = rd.where(m, da.arange(10, chunks=4), -1)
    assert lazy.to_ints().tolist() == np.where(m, np.arange(10), -1).tolist()
    assert np.where(x > 5, 1, 0).compute().tolist() == m.astype(int).tolist()
    for a, text in ((1.5, "beside a condition must be an integer, got 1.5"), (da.ones(10), "known range")):
        with pytest.raises(TypeError, match=text):
            rd.where(m, a, 0)
    with pytest.raises(TypeError, match="a condition must be a Boolean"):
        rd.where([True], 1, 0)


def test_damaged_masks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are named, and no fault of how the command is used."""
    monkeypatch.chdir(tmp_path)
    rd.from_ints(range(9), chunks=3).to_zarr("nine.zarr")
    succeed("eval", "x > 4", "x=nine.zarr", "-o", "nine-mask.zarr")
    chunk = Path("nine-mask.zarr/c/1")
    chunk.write_bytes(b"\1" + chunk.read_bytes()[1:])
    assert "nine-mask.zarr: rows 0 to 8 cannot be read: " in fail("where", "nine-mask.zarr")
    text = fail("filter", "nine.zarr", "m", "m=nine-mask.zarr", "-o", "o.zarr")
    assert "nine-mask.zarr: chunk c/1 is corrupt" in text
    assert "expression" not in text
    assert not Path("o.zarr").exists()
