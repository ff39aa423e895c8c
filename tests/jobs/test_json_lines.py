"""JSON lines of integers: values, text, fields of objects, and the lines that are refused."""

import gzip
import json
from pathlib import Path

import pytest
from commands import as_json, fail, succeed, values_in

VALUES = [5, -7, 2**100, 10**5000, 0]

pytestmark = pytest.mark.usefixtures("in_empty_folder")


def write(path: str, text: str) -> None:
    data = text.encode()
    Path(path).write_bytes(gzip.compress(data) if path.endswith(".gz") else data)


@pytest.mark.parametrize("path", ["a.jsonl", "a.ndjson", "a.jsonl.gz"])
@pytest.mark.parametrize("end", ["\n", "\r\n", ""])
def test_values_and_fields(path: str, end: str) -> None:
    texts = ["5", "-7", str(2**100), "1" + "0" * 5000, "0"]
    write(path, "\n\n".join(texts) + end)
    succeed("import", path, "x.zarr")
    assert values_in("x.zarr") == VALUES
    write(path, (end or "\n").join(f'{{"n": null, "wei": {text}, "text": "{text}"}}' for text in texts))
    for field in ("wei", "text"):
        found = as_json("import", path, f"{field}.zarr", "--column", field)
        assert (found["count"], values_in(f"{field}.zarr")) == (5, VALUES)
    succeed("import", path, "bits.zarr", "--column", "wei", "--bits", "20000", "--signed")
    assert values_in("bits.zarr") == VALUES
    write(path, '"0xff"\n16\n')
    succeed("import", path, "hex.zarr")
    assert values_in("hex.zarr") == [255, 16]


def test_lines_of_several_pieces() -> None:
    rows = [{"text": "x" * 1000, "n": n} for n in range(2000)]
    write("a.jsonl", "\n".join(map(json.dumps, rows)))
    succeed("import", "a.jsonl", "x.zarr", "--column", "n")
    assert values_in("x.zarr") == list(range(2000))
    write("a.jsonl", "\n".join([*map(json.dumps, rows), "{"]))
    assert "a.jsonl:2001: it is no JSON" in fail("import", "a.jsonl", "y.zarr", "--column", "n")


@pytest.mark.parametrize(
    ("line", "column", "text"),
    [
        ("1.0", None, "a.jsonl:2: the value is 1.0, not an integer; text keeps all digits"),
        ("1e3", None, "the value is 1e3, not an integer"),
        ("NaN", None, "the value is NaN, not an integer"),
        ("true", None, "the value is a Boolean, not an integer"),
        ("null", None, "the value is missing, not an integer"),
        ("[1]", None, "the value is a list, not an integer"),
        ('"1_0"', None, "the value: "),
        ("{", None, "a.jsonl:2: it is no JSON"),
        ("# comment", None, "it is no JSON"),
        ('{"a": 1}', None, "it is an object; --column chooses one of ['a']"),
        ('{"a": 1}', "b", "the object has no field 'b', but ['a']"),
        ("1", "b", "it is no object, so that it has no field 'b'"),
        ('{"b": {}}', "b", "the field 'b' is an object, not an integer"),
        ('{"b": 0.5}', "b", "the field 'b' is 0.5, not an integer"),
        ("\xff", None, "a.jsonl:2: it is no JSON"),
    ],
)
def test_wrong_lines(line: str, column: str | None, text: str) -> None:
    Path("a.jsonl").write_bytes(b'{"a": 2, "b": 3}\n' if column else b"1\n")
    with Path("a.jsonl").open("ab") as file:
        file.write(line.encode("latin-1"))
    options = [] if column is None else ["--column", column]
    assert text in fail("import", "a.jsonl", "x.zarr", *options)
    assert not Path("x.zarr").exists()


def test_options_of_other_forms() -> None:
    write("a.jsonl", "1\n")
    for option in ("--hex", "--strict"):
        text = fail("import", "a.jsonl", "x.zarr", option, status=2)
        assert "--hex, --strict and --header are about other text" in text
    write("a.txt", "1\n")
    text = fail("import", "a.txt", "x.zarr", "--scale", "2", status=2)
    assert "--scale is about decimals of Parquet" in text
