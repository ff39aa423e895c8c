"""Names of places: a URL, a local path, or an error before any work; and no secret in an error."""

import logging
import traceback
from pathlib import Path
from typing import Any

import pytest
import zarr.storage
from commands import call, fail, succeed

import rnsdask as rd
from rnsdask import store
from rnsdask.core.messages import redact
from rnsdask.core.places import is_url, read_place

MODULI = rd.ModuliSet.for_bits(64)

pytestmark = pytest.mark.usefixtures("in_empty_folder")

NO_PLACES = [
    "s3:/bucket/x",
    "S3:/bucket/x",
    "s3:bucket/x",
    "s3:",
    " s3://bucket/x",
    "s3 ://bucket/x",
    "simplecache::s3:/bucket/x",
    "simplecache::/x",
    "file:x",
    "file:/x",
    "unknown:/x",
    "~/x",
    "~",
    "file://~/x",
    "file://s3://bucket/x",
    "file://s3:/bucket/x",
    "",
    "file://",
    "a\0b",
]
NO_STORES = [
    *NO_PLACES,
    "s3://",
    "memory://",
    "s3:///x",
    "s3://bucket//x",
    "s3://bucket/a/../x",
    "s3://bucket/./x",
    "memory://a//x",
    "simplecache::s3://bucket//x",
    "nosuch://x",
    "S3://bucket/x",
]
LOCAL = ["a:b", "C:x", "2024-01-01T10:00", "./s3:/bucket/x", "./~/x", "x//y", "y/../x", "a\nb", "x@y:z"]


class Named:
    """A path-like that is no ``pathlib.Path``."""

    def __init__(self, text: Any) -> None:
        self.text = text

    def __fspath__(self) -> Any:
        return self.text


def left() -> list[str]:
    """All that there is in the folder of the test."""
    return sorted(str(path) for path in Path().rglob("*"))


@pytest.mark.parametrize("text", NO_STORES)
def test_what_is_no_place_of_a_store(text: str) -> None:
    x = rd.from_ints([1, 2], MODULI)
    for given in (text, Named(text)):
        for use in (x.to_zarr, rd.open_zarr):
            with pytest.raises(ValueError) as caught:
                use(given)
            assert str(caught.value).isprintable()
    assert left() == []


@pytest.mark.parametrize("text", [text for text in NO_STORES if "\0" not in text])
def test_what_is_no_place_on_the_command_line(text: str) -> None:
    Path("n.txt").write_text("1\n2\n")
    rd.from_ints([1, 2], MODULI).to_zarr("x.zarr")
    before = left()
    for words in (
        ["import", "n.txt", text],
        ["random", text, "--bits", 64, "--count", 5],
        ["cumsum", "x.zarr", "-o", text],
        ["eval", "a + 1", "a=x.zarr", "-o", text],
        ["eval", "a > 1", "a=x.zarr", "-o", "y.zarr", "--mask", text, "--overflow", "flag"],
        ["sum", text],
    ):
        result = call(*words)
        assert result.exit_code in (1, 2), result.output
        assert result.stderr.startswith("rnsdask: error: "), result.output
        assert result.stderr.count("\n") == 1
        assert left() == before


URL = "s3://KEY:SECRET@bucket/o"


@pytest.mark.parametrize("text", [*(text for text in NO_PLACES if "\0" not in text), URL])
def test_what_is_no_local_file(text: str) -> None:
    Path("n.txt").write_text("1\n2\n")
    rd.from_ints([1, 2], MODULI).to_zarr("x.zarr")
    Path("s3:/KEY:SECRET@bucket").mkdir(parents=True)  # what an older version has made
    before = left()
    for words in (
        ["export", "x.zarr", text],
        ["export", "x.zarr", text, "--residues"],
        *(["export", "x.zarr", f"{text}{end}"] for end in (".npy", ".parquet", ".txt.gz") if text == URL),
        ["sum", "x.zarr", "--checkpoint", text],
        ["det", "x.zarr", "--checkpoint", text],
        ["sum", "x.zarr", "--log-json", text],
        ["sum", "x.zarr", "--scheduler-file", text],
        ["sum", "x.zarr", "--scheduler", "tcp://127.0.0.1:1", "--report", text],
        ["import", text, "y.zarr"],
        ["import", "n.txt", "y.zarr", "--moduli", text],
    ):
        result = call(*words)
        assert result.exit_code in (1, 2), result.output
        assert "SECRET" not in result.output
        assert "scheduler answers" not in result.output  # the place was looked at before
        assert result.stderr.startswith("rnsdask: error: "), result.output
        assert result.stderr.count("\n") == 1
        assert left() == before


@pytest.mark.parametrize("text", [*NO_PLACES, URL])
def test_what_is_no_local_file_in_python(text: str) -> None:
    pytest.importorskip("pyarrow")
    x = rd.from_ints([1, 2], MODULI)
    for use in (x.to_parquet, lambda path: rd.read_parquet(path, "value"), rd.sparse.read):
        for given in (text, Named(text)):
            with pytest.raises(ValueError) as caught:
                use(given)
            assert str(caught.value).isprintable()
            assert "SECRET" not in "".join(traceback.format_exception(caught.value))
    assert left() == []


def test_pathlib_makes_one_slash_of_two() -> None:
    x = rd.from_ints([1, 2], MODULI)
    url = Path("s3://KEY:SECRET@bucket/x.zarr")
    assert str(url) == "s3:/KEY:SECRET@bucket/x.zarr"
    for use in (x.to_zarr, x.to_parquet, rd.open_zarr, rd.sparse.read):
        with pytest.raises(ValueError, match="is no URL: a URL has :// after its scheme") as caught:
            use(url)
        assert "SECRET" not in str(caught.value)
    with pytest.raises(ValueError, match="is no URL"):
        x.to_zarr(zarr.storage.LocalStore("s3://bucket/x.zarr"))
    with pytest.raises(TypeError, match="a store's path must be a str or path-like, got "):
        x.to_zarr(Named(b"x"))
    assert left() == []


@pytest.mark.parametrize("text", LOCAL)
def test_local_names(text: str) -> None:
    """Also with a colon: what the operating system calls so, and nothing else."""
    Path("y").mkdir()
    Path(text).parent.mkdir(parents=True, exist_ok=True)
    x = rd.from_ints([1, 2], MODULI)
    for given in (f"{text}.zarr", f"file://{text}.fs" if not text.startswith("./") else f"{text}.fs"):
        x.to_zarr(given)
        assert Path(given.removeprefix("file://"), "zarr.json").is_file()
        assert rd.open_zarr(given).to_ints().tolist() == [1, 2]
        assert succeed("sum", given) != ""
    succeed("export", f"{text}.zarr", f"{text}.txt")
    assert Path(f"{text}.txt").read_text() == "1\n2\n"
    succeed("import", f"{text}.txt", f"{text}-again.zarr")
    assert rd.open_zarr(f"{text}-again.zarr").to_ints().tolist() == [1, 2]
    succeed("sum", f"{text}.zarr", "--checkpoint", f"{text}.kept", "--log-json", f"{text}.log")
    assert Path(f"{text}.kept/job.json").is_file()
    assert Path(f"{text}.log").is_file()


def test_local_urls_of_files() -> None:
    rd.from_ints([1, 2], MODULI).to_zarr("x.zarr")
    here = Path.cwd()
    succeed("export", f"file://{here}/x.zarr", f"file://{here}/o.txt")
    succeed("import", f"file://{here}/o.txt", f"local://{here}/y.zarr")
    succeed("sum", "y.zarr", "--checkpoint", f"file://{here}/kept", "--log-json", f"file://{here}/log")
    assert {path.name for path in here.iterdir()} == {"kept", "log", "o.txt", "x.zarr", "y.zarr"}
    x = rd.open_zarr("x.zarr")
    for url in (f"file://{here}/x.zarr", f"local://{here}/x.zarr"):
        with pytest.raises(store.paths.StoreError, match="an array cannot overwrite the store that it is"):
            x.to_zarr(url, overwrite=True)


def test_urls() -> None:
    for url in ("s3://b/x", "gs://b", "simplecache::s3://b/x", "zip://x::s3://b/a.zip", "X-1+a.b://c"):
        assert is_url(url)
        assert read_place(url, "it") == url
    for text in ("x", "/s3://b", "./s3://b", "a/b://c", "1s3://b", "::s3://b"):
        assert not is_url(text)


def test_a_url_through_another_is_not_written() -> None:
    """A cache would give old chunks in the place of new ones."""
    x = rd.from_ints([1, 2], MODULI)
    x.to_zarr("memory://chained/x")
    cached = "simplecache::memory://chained/x"
    y = rd.open_zarr(cached)
    assert y.to_ints().tolist() == [1, 2]
    for url in (cached, "simplecache::memory://chained/y"):
        with pytest.raises(store.paths.StoreError, match="write to the URL after ::"):
            x.to_zarr(url, overwrite=True)
    with pytest.raises(store.paths.StoreError, match="an array cannot overwrite the store that it is read"):
        y.to_zarr("memory://chained/x", overwrite=True)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("s3:/KEY:SECRET@bucket/x", "s3:/***@bucket/x"),
        ("http:/TOKEN@host/x", "http:/***@host/x"),
        ("s3:/bucket/x?X-Amz-Signature=SECRET&a=b", "s3:/bucket/x?X-Amz-Signature=***&a=***"),
        ("simplecache::s3://KEY:SEC/RET@bucket/x", "simplecache::s3://***@bucket/x"),
        ("in C:/x and a:b@c", "in C:/x and a:b@c"),
        ("./2024-01-01T10:00/x", "./2024-01-01T10:00/x"),
    ],
)
def test_secrets_after_one_slash(text: str, shown: str) -> None:
    assert redact(text) == shown


def test_secrets_in_chained_errors(caplog: pytest.LogCaptureFixture) -> None:
    """Neither in the errors that a traceback shows beside the last, nor in what is logged."""
    pytest.importorskip("aiohttp")
    caplog.set_level(logging.INFO)
    urls = (
        "http://USER:SECRET@127.0.0.1:1/x.zarr?token=SECRET",
        "nosuch://USER:SECRET@host/x",
        "memory://x?signature=SECRET",
    )
    for url in urls:
        with pytest.raises(ValueError) as caught:
            rd.open_zarr(url)
        text = "".join(traceback.format_exception(caught.value))
        assert "SECRET" not in text.replace("rd.open_zarr(url)", ""), text
        assert "SECRET" not in repr(caught.value)
        assert "SECRET" not in fail("sum", url, "--log-json", "log")
        assert "SECRET" not in Path("log").read_text()
        assert "SECRET" not in call("sum", url, "--debug").output
    assert "SECRET" not in caplog.text
