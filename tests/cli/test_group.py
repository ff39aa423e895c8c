"""The command that reduces groups: labels from files of all kinds, what it prints and writes, and errors."""

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import zarr
from commands import as_json, fail, succeed, values_in

import rnsdask as rd

VALUES = [5, -3, 2**70, 0, -(2**70), 7, 7, 12, -1, 30]
TEXT = ["b", "a", "b", "c", "a", "b", "c", "c", "a", "b"]
SUMS = {"a": -(2**70) - 4, "b": 2**70 + 42, "c": 19}
NUMBERS = [7, -7, 7, 2**40, -7, 7, 2**40, 2**40, -7, 7]


@pytest.fixture(autouse=True)
def inputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rd.from_ints(VALUES, chunks=3).to_zarr("x.zarr")
    table = pd.DataFrame({"account": TEXT, "n": NUMBERS})
    table.to_parquet("l.parquet")
    table[["account"]].to_parquet("one.parquet")
    table.to_csv("l.csv", index=False)
    table.to_csv("l.tsv", index=False, sep="\t")
    Path("quoted.csv").write_text("\n".join(["n;account", *(f'1;"{t};\n""{t}"""' for t in TEXT)]))
    table["account"].to_csv("plain.csv", index=False, header=False)
    Path("l.txt").write_text("\n".join(TEXT))
    Path("l.txt.gz").write_bytes(gzip.compress("\r\n".join(TEXT).encode()))
    rows = ({"account": text, "n": n, "pair": [n, text]} for text, n in zip(TEXT, NUMBERS, strict=True))
    Path("l.jsonl").write_text("\n".join(map(json.dumps, rows)))
    np.save("l.npy", np.array(TEXT))
    rd.from_ints(NUMBERS).to_zarr("n.zarr")
    zarr.save_array("plain.zarr", np.array(NUMBERS))


@pytest.mark.parametrize(
    "by",
    [
        *("l.parquet:account", "l.parquet:1", "one.parquet", "l.csv:account", "l.tsv:account", "plain.csv"),
        *("plain.csv:1", "l.txt", "l.txt.gz", "l.jsonl:account", "l.npy"),
    ],
)
def test_labels_of_text(by: str) -> None:
    assert succeed("group", "x.zarr", "--by", by) == "".join(f"{k}\t{v}\n" for k, v in SUMS.items())
    found = as_json("group", "x.zarr", "--by", by, "--op", "max")
    assert dict(zip(found["labels"], found["values"], strict=True)) == {"a": "-1", "b": str(2**70), "c": "12"}
    assert (found["op"], found["reduction"], found["by"], found["count"]) == ("group", "max", by, 10)


@pytest.mark.parametrize("by", ["l.parquet:n", "l.csv:n", "l.csv:2", "l.jsonl:n", "n.zarr", "plain.zarr"])
def test_labels_of_integers(by: str) -> None:
    if by == "l.csv:2":
        assert "got (11,) for (10,)" in fail("group", "x.zarr", "--by", by, status=2)
        return
    wanted = f"-7\t{SUMS['a']}\n7\t{SUMS['b']}\n{2**40}\t{SUMS['c']}\n"
    assert succeed("group", "x.zarr", "--by", by) == wanted


def test_labels_of_several_parts() -> None:
    assert succeed("group", "x.zarr", "--by", "l.jsonl:pair", "--op", "count").startswith("(-7, 'a')\t3\n")
    found = as_json("group", "x.zarr", "--by", "quoted.csv:account", "--op", "count")
    assert found["labels"] == ['a;\n"a"', 'b;\n"b"', 'c;\n"c"']
    assert found["values"] == ["3", "4", "3"]


def test_text_that_is_no_integer_stays_text() -> None:
    Path("l.txt").write_text("\n".join(["07", "7", "-0", "07", "7", "7", "7", "7", "7", "+7"]))
    found = as_json("group", "x.zarr", "--by", "l.txt", "--op", "count")
    assert dict(zip(found["labels"], found["values"], strict=True)) == {
        "+7": "1",
        "-0": "1",
        "07": "2",
        "7": "6",
    }


def test_output() -> None:
    job = ["group", "x.zarr", "--by", "l.csv:account", "--op", "sum", "-o", "o.zarr", "--labels", "o.jsonl"]
    assert "o.zarr: 3 integers" in succeed(*job)
    assert values_in("o.zarr") == list(SUMS.values())
    assert Path("o.jsonl").read_text() == '"a"\n"b"\n"c"\n'
    assert "o.jsonl: it exists" in fail(*job)
    assert "complete already" in succeed(*job, "--resume")
    Path("l.csv").write_text(Path("l.csv").read_text().replace("c,", "d,"))
    assert "another job" in fail(*job, "--resume") or "o.zarr" in fail(*job, "--resume")
    Path("l.csv").write_text(Path("l.csv").read_text().replace("d,", "c,"))
    Path("o.jsonl").write_text("of another program\n")
    assert "o.jsonl: it has other content than the labels of this job" in fail(*job, "--resume")
    assert Path("o.jsonl").read_text() == "of another program\n"
    Path("l.csv").write_text(Path("l.csv").read_text().replace("c,", "d,"))
    succeed(*job, "--overwrite")
    assert Path("o.jsonl").read_text() == '"a"\n"b"\n"d"\n'
    succeed("group", "x.zarr", "--by", "l.parquet:account", "--op", "prod", "-o", "p.zarr")
    assert values_in("p.zarr") == [-3 * 2**70, 5 * 2**70 * 7 * 30, 0]


@pytest.mark.parametrize(
    ("labels", "text"),
    [
        ("l.csv", "the job reads or writes it otherwise"),
        ("./o.zarr", "the job reads or writes it otherwise"),
        ("no/o.jsonl", "there is no folder no"),
    ],
)
def test_files_of_labels_that_cannot_be(labels: str, text: str) -> None:
    before = Path("l.csv").read_bytes()
    job = ["group", "x.zarr", "--by", "l.csv:account", "-o", "o.zarr", "--labels", labels]
    for mode in ([], ["--overwrite"], ["--resume"]):
        assert text in fail(*job, *mode)
        assert Path("l.csv").read_bytes() == before
        assert not Path("o.zarr").exists()


def test_other_axes() -> None:
    rd.from_ints(np.array(VALUES, dtype=object).reshape(2, 5), chunks=2).to_zarr("m.zarr")
    Path("five.txt").write_text("x\ny\nx\ny\nx\n")
    assert "-o writes a store" in fail("group", "m.zarr", "--by", "five.txt", status=2)
    succeed("group", "m.zarr", "--by", "five.txt", "-o", "o.zarr")
    assert values_in("o.zarr") == [[5 + 2**70 - 2**70, -3], [7 + 12 + 30, 6]]


def test_elements_of_fields() -> None:
    rd.from_ints(VALUES, rd.PrimeFields([97])).to_zarr("f.zarr")
    found = as_json("group", "f.zarr", "--by", "l.txt", "--op", "sum")
    assert found["values"] == [str(v % 97) for v in SUMS.values()]
    assert "max of groups takes no" in fail("group", "f.zarr", "--by", "l.txt", "--op", "max", status=2)


@pytest.mark.parametrize(
    ("by", "text"),
    [
        ("l.parquet", "l.parquet: it has several columns; FILE:COLUMN chooses one of 'account', 'n'"),
        ("l.parquet:x", "l.parquet: it has no column 'x', or several; FILE:COLUMN"),
        ("l.csv", "l.csv: it has several columns; FILE:COLUMN chooses one of"),
        ("l.csv:x", "l.csv: it has no column 'x'"),
        ("l.jsonl", "l.jsonl:1: the label is an object; FILE:FIELD"),
        ("l.jsonl:x", "l.jsonl:1: the object has no field 'x'"),
        ("l.npy:1", "l.npy: a NumPy file has no columns, got column '1'"),
        ("l.txt:1", "l.txt: a text file has no columns"),
        ("gap.txt", "gap.txt:2: the label is empty"),
        ("gap.csv:a", "gap.csv:3: the label in column 1 is missing"),
        ("gap.parquet", "label at position 1 is missing; fill or drop missing labels first (see"),
        ("mixed.jsonl", "mixed.jsonl:2: the label is true or false, and the labels before are a number"),
        (
            "parts.jsonl",
            "parts.jsonl:2: the label is a number, text, and the labels before are a number, a number",
        ),
        ("bad.jsonl", "bad.jsonl:2: it is no JSON"),
        ("bad.npy", "bad.npy: it is no NumPy file"),
        ("bad.csv", "bad.csv: it is no UTF-8 text"),
        ("none.txt", "none.txt: there is no such file or Zarr array"),
        ("x.h5", "x.h5: labels come from Parquet, CSV, JSON lines, NumPy or text, got an HDF5 file"),
    ],
)
def test_wrong_labels(by: str, text: str) -> None:
    Path("gap.txt").write_text("a\n\nb")
    Path("gap.csv").write_text("a,b\n1,2\n,3\n")
    pd.DataFrame({"a": ["x", None, *"abcdefgh"]}).to_parquet("gap.parquet")
    Path("mixed.jsonl").write_text("1\ntrue\n")
    Path("parts.jsonl").write_text('[1, 2]\n[1, "2"]\n')
    Path("bad.jsonl").write_text('"a"\n{\n')
    Path("bad.npy").write_bytes(Path("l.npy").read_bytes()[:100])
    Path("bad.csv").write_bytes(b"a\xff\n")
    Path("x.h5").write_bytes(b"\x89HDF\r\n\x1a\n")
    status = 2 if "position" in text else 1
    assert text in fail("group", "x.zarr", "--by", by, status=status)


def test_wrong_options() -> None:
    calls: list[tuple[list[Any], str]] = [
        (["x.zarr"], "Missing option '--by'"),
        (["x.zarr", "--by", "l.txt", "--labels", "f"], "--labels, --overwrite and --resume need -o"),
        (["x.zarr", "--by", "l.txt", "--resume"], "need -o"),
        (["x.zarr", "--by", "l.txt", "--op", "count", "-o", "o.zarr"], "--op count goes without -o"),
        (["x.zarr", "--by", "l.txt", "--op", "mean"], "'mean' is not one of 'sum'"),
    ]
    for args, text in calls:
        assert text in fail("group", *args, status=2)
