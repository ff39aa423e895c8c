"""Format 1 as it was written before, what its checksums cover, and groups of older versions.

The stores in data/format1 were written by the version of the package before a store kept a hash of its
chunks: they are readable for ever. The numbers in them are those of `NUMBERS`.
"""

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from commands import call, fail, succeed
from documents import checksum_of
from strategies import STORE_SET
from zarr.codecs import ZstdCodec

import rnsdask as rd
from rnsdask import store
from rnsdask.core.errors import StoreError
from rnsdask.rns.system import RNS

DATA = Path(__file__).parents[1] / "data" / "format1"
MODULI = STORE_SET
M = 2**32 * (2**32 - 1) * 7 * 65519
NUMBERS: dict[str, Any] = {
    "signed": [i * 0x9E3779B97F4A7C15F39CC060 % M - M // 2 for i in range(200)],
    "small": [i**3 for i in range(200)],
    "zstd": [i**3 for i in range(200)],
    "matrix": [[(4 * i + j) ** 5 for j in range(4)] for i in range(3)],
    "empty": [],
}
SIGNED = [(-1) ** i * i**7 for i in range(200)]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


# ---- Stores of older versions -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", NUMBERS)
def test_older_stores_are_read(name: str) -> None:
    x = rd.open_zarr(DATA / name)
    assert x.to_ints().tolist() == NUMBERS[name]
    assert (x.moduli, x.signed) == (MODULI, name == "signed")
    assert x.bound == (199**3 if name == "zstd" else x.bound)
    info = store.open_info(DATA / name)
    assert info.content is None
    assert list(store.verify(info)) == []
    assert succeed("verify", DATA / name).endswith(")\n")


def test_older_readers_read_what_is_written_now() -> None:
    """Older readers check the checksum as it was; fields that they do not know change no number."""
    rd.from_ints(NUMBERS["signed"], MODULI, signed=True, chunks=128).to_zarr("x")
    old, new = (json.loads(Path(p, "zarr.json").read_text()) for p in (DATA / "signed", "x"))
    own = new["attributes"]["rnsdask"]
    assert own["checksum"] == checksum_of(new)
    assert {**own, "content": "", "digest": ""} == {
        **old["attributes"]["rnsdask"],
        "content": "",
        "digest": "",
    }
    assert {**old, "attributes": {}} == {**new, "attributes": {}}
    for chunk in ("c/0/0", "c/0/1"):
        assert Path("x", chunk).read_bytes() == (DATA / "signed" / chunk).read_bytes()


# ---- Checksums of metadata --------------------------------------------------------------------------------


def document_at(path: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path(path, "zarr.json").read_text())
    return found


def edit(path: Any, change: Callable[[dict[str, Any], dict[str, Any]], object]) -> None:
    """Change a metadata document by hand, and the attribute in it."""
    document = document_at(path)
    change(document, document["attributes"]["rnsdask"])
    Path(path, "zarr.json").write_text(json.dumps(document))


def test_the_hashes_are_as_they_are_described() -> None:
    rd.from_ints(range(300), MODULI, chunks=128).to_zarr("x")
    document = document_at("x")
    own = document["attributes"]["rnsdask"]
    ends = b"".join(Path(f"x/c/0/{i}").read_bytes()[-4:] for i in range(3))
    assert own["content"] == hashlib.sha256(ends).hexdigest()
    digest = own.pop("digest")
    names = ("data_type", "shape", "chunk_grid", "fill_value")
    codecs = [["bytes", {"endian": "little"}], ["crc32c", {}]]
    covered = {"attribute": own, "codecs": codecs, **{name: document[name] for name in names}}
    text = json.dumps(covered, sort_keys=True, separators=(",", ":"))
    assert digest == hashlib.sha256(text.encode()).hexdigest()


def set_codecs(*codecs: dict[str, Any]) -> Callable[..., object]:
    return lambda document, _: document.update(codecs=list(codecs))


BYTES, CRC = {"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}
BIG = {"name": "bytes", "configuration": {"endian": "big"}}
TRANSPOSE = {"name": "transpose", "configuration": {"order": [0, 2, 1]}}
ZSTD = {"name": "zstd", "configuration": {"level": 3, "checksum": False}}
SHARDS = {
    "name": "sharding_indexed",
    "configuration": {"chunk_shape": [4, 1, 128], "codecs": [BYTES, CRC], "index_codecs": [BYTES, CRC]},
}
EDITS: dict[str, Callable[[dict[str, Any], dict[str, Any]], object]] = {
    "big endian": set_codecs(BIG, CRC),
    "transpose": set_codecs(TRANSPOSE, BYTES, CRC),
    "compression": set_codecs(BYTES, ZSTD, CRC),
    "compression after": set_codecs(BYTES, CRC, ZSTD),
    "shards": set_codecs(SHARDS, CRC),
    "two checksums": set_codecs(BYTES, CRC, CRC),
    "signed": lambda _, own: own.update(signed=False),
    "bound": lambda _, own: own.update(bound="0x1"),
    "no bound": lambda _, own: own.update(bound=None),
    "moduli": lambda _, own: own["moduli"].reverse(),
    "content": lambda _, own: own.update(content="0" * 64),
    "more": lambda _, own: own.update(unknown=1),
    "shape": lambda document, _: document["shape"].__setitem__(2, 299),
    "chunks": lambda document, _: document["chunk_grid"]["configuration"].update(chunk_shape=[4, 4, 64]),
    "fill": lambda document, _: document.update(fill_value=1),
    "transformers": lambda document, _: document.update(storage_transformers=[{"name": "x"}]),
}
REMOVED: dict[str, tuple[str, ...]] = {
    "": (),
    "checksum": ("checksum",),
    "digest": ("digest",),
    "content": ("content",),
    "hashes": ("content", "digest"),
    "all": ("content", "digest", "checksum"),
}


@pytest.mark.parametrize("removed", REMOVED)
@pytest.mark.parametrize("kind", EDITS)
def test_nothing_is_changed_by_hand(kind: str, removed: str) -> None:
    """Whatever is changed, and whatever checksums are removed: it is seen, or no number depends on it."""
    values = np.array([[7**k + j for j in range(300)] for k in range(4)], dtype=object)
    x = rd.from_ints(values, MODULI, signed=True, chunks=(2, 128))
    x.to_zarr("x")
    edit("x", EDITS[kind])
    edit("x", lambda _, own: [own.pop(name, None) for name in REMOVED[removed]])
    harmless = kind in ("content", "more", "fill") and removed == "hashes"
    if harmless:
        assert rd.open_zarr("x").to_ints().tolist() == values.tolist()
        return
    with pytest.raises(StoreError, match=r"^\S*x: \S.*"):
        rd.open_zarr("x").to_ints()


@pytest.mark.parametrize("removed", [name for name in REMOVED if name not in ("", "hashes")])
@pytest.mark.parametrize("name", ["new", "signed"])
def test_a_checksum_that_is_missing(name: str, removed: str) -> None:
    if name == "signed":
        shutil.copytree(DATA / name, "x")
    else:
        rd.from_ints(range(300), MODULI, chunks=128).to_zarr("x")
    edit("x", lambda _, own: [own.pop(field, None) for field in REMOVED[removed]])
    if name == "signed" and removed in ("digest", "content"):
        assert rd.open_zarr("x").to_ints().tolist() == NUMBERS[name]
        return
    assert "its zarr.json is damaged: " in fail("max", "x")


def test_other_attributes_are_the_users(tmp_path: Path) -> None:
    rd.from_ints(range(300), MODULI, chunks=128).to_zarr("x")
    array = zarr.open_array("x", mode="r+")
    array.attrs["units"] = "none"
    assert int(rd.open_zarr("x").max()) == 299
    writer = store.create("z", RNS(MODULI), (128,), codecs=[ZstdCodec(level=3)])
    writer.write_chunk((0,), np.ones((4, 128), np.uint32))
    writer.finish()
    edit("z", lambda document, _: document["codecs"][1]["configuration"].update(level=4))
    assert "its digest is" in fail("max", "z")


# ---- Chunks -----------------------------------------------------------------------------------------------


def test_verify_sees_chunks_of_another_place() -> None:
    """Whole chunks of the same size, whose residues are in range."""
    rd.from_ints(range(300), MODULI, chunks=128).to_zarr("x")
    shutil.copytree("x", "y")
    shutil.copy("x/c/0/0", "y/c/0/1")
    result = call("verify", "y")
    assert result.exit_code == 1
    path = Path("y").absolute()
    assert result.stdout == f"{path}: its chunks are whole, but not those that it was completed with\n"
    assert succeed("verify", "x")


# ---- Groups of older versions -----------------------------------------------------------------------------

PARTS = ("exponent", "low", "residues", "sign", "upp")


def json_hash(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def make_group(path: str, kind: str) -> None:
    """Make a group as they were first, or one tied together by the hash of all chunks, as they were later."""
    shutil.copytree(DATA / "group", path)
    if kind == "tied":
        hashes = {}
        for part in PARTS:
            ends = (
                file.read_bytes()[-4:]
                for file in sorted(Path(path, part, "c").rglob("[01]"))
                if file.is_file()
            )
            hashes[part] = hashlib.sha256(b"".join(ends)).hexdigest()
        tie(path, json_hash(hashes))


def tie(path: str, group: str) -> None:
    for part in PARTS:
        document = document_at(f"{path}/{part}")
        own = document["attributes"].setdefault("rnsdask", {})
        own["group"] = group
        if part == "residues":
            own["digest"] = digest_of(document)
        Path(path, part, "zarr.json").write_text(json.dumps(document))
    document = document_at(path)
    own = document["attributes"]["rnsdask"]
    own["group"] = group
    own["digest"] = json_hash(own)
    Path(path, "zarr.json").write_text(json.dumps(document))


def digest_of(document: dict[str, Any]) -> str:
    kept = {name: document[name] for name in ("data_type", "shape", "chunk_grid", "fill_value")}
    codecs = [[codec["name"], codec.get("configuration") or {}] for codec in document["codecs"]]
    return json_hash({"attribute": document["attributes"]["rnsdask"], "codecs": codecs, **kept})


@pytest.mark.parametrize("kind", ["first", "tied"])
def test_older_groups_are_read(kind: str) -> None:
    make_group("g", kind)
    x = rd.open_zarr("g")
    assert isinstance(x, rd.IntervalRNSArray)
    assert x.to_ints().tolist() == SIGNED
    assert rd.open_zarr("g/residues").to_ints().tolist() == list(map(abs, SIGNED))
    assert "200 integers, whole and valid" in succeed("verify", "g")
    found = json.loads(succeed("info", "g", "--json"))
    assert (found["intervals"], found["count"], found["complete"]) == (True, 200, True)
    assert (found["store"], found["moduli"]) == (str(Path("g").absolute()), list(map(str, MODULI)))
    assert succeed("export", "g", "-") == "".join(f"{i}\n" for i in SIGNED)
    x.to_zarr("x")
    again = rd.open_zarr("x")
    assert zarr.open_array("x", mode="r").shape == (10, 200)
    assert again.to_ints().tolist() == SIGNED
    with pytest.raises(StoreError, match="nothing can be appended to it; write it to another place"):
        again.to_zarr("g", append_dim=0)
    with pytest.raises(StoreError, match="an array cannot overwrite the store that it is read from"):
        (x + 1).to_zarr("g", overwrite=True)
    edit("g", lambda _, own: own.update(complete=False))
    if kind == "first":
        assert "the store is incomplete" in fail("verify", "g")


def test_parts_of_two_groups_are_not_mixed() -> None:
    for part in PARTS:
        make_group(part, "tied")
        make_group("other", "first")
        tie("other", "0" * 64)
        shutil.rmtree(f"{part}/{part}")
        shutil.copytree(f"other/{part}", f"{part}/{part}")
        assert f"its array '{part}' is not of this group, but of another" in fail("verify", part)
        shutil.rmtree("other")


@pytest.mark.parametrize("field", ["group", "digest"])
def test_the_metadata_of_a_group_are_covered(field: str) -> None:
    make_group("g", "tied")
    edit("g", lambda _, own: own.pop(field))
    with pytest.raises(StoreError, match=r"is damaged: it does not match its digest|is not of this group"):
        rd.open_zarr("g")


PART_EDITS: dict[str, Callable[[dict[str, Any]], object]] = {
    "big endian": lambda document: document.update(codecs=[BIG, CRC]),
    "no checksum": lambda document: document.update(codecs=[BYTES]),
    "dtype": lambda document: document.update(data_type="int64"),
    "shape": lambda document: document.update(shape=[199]),
    "chunks": lambda document: document["chunk_grid"]["configuration"].update(chunk_shape=[64]),
    "keys": lambda document: document["chunk_key_encoding"]["configuration"].update(separator="."),
    "no codecs": lambda document: document.pop("codecs"),
    "codecs": lambda document: document.update(codecs=3),
}


@pytest.mark.parametrize("kind", PART_EDITS)
def test_the_metadata_of_a_part_are_checked(kind: str) -> None:
    make_group("g", "first")
    document = document_at("g/upp")
    PART_EDITS[kind](document)
    Path("g/upp/zarr.json").write_text(json.dumps(document))
    with pytest.raises(StoreError, match=r"g: .*its array 'upp'"):
        rd.open_zarr("g")


def test_verify_names_what_is_wrong_with_a_group() -> None:
    make_group("g", "first")
    Path("g/notes").write_text("mine")
    Path("g/low/c/1").unlink()
    content = Path("g/sign/c/0").read_bytes()
    Path("g/sign/c/0").write_bytes(bytes([content[0] ^ 1]) + content[1:])
    lines = call("verify", "g").stdout.splitlines()
    g = Path("g").absolute()
    assert lines[0] == f"{g}: file notes does not belong to the store"
    assert lines[1].startswith(f"{g}: chunk sign/c/0 is corrupt: ")
    assert lines[2:] == [f"{g}: chunk low/c/1 is missing"]
    make_group("i", "tied")
    for part in PARTS:
        array = zarr.open_array(f"i/{part}", mode="r+").with_config({"write_empty_chunks": True})
        values = array[...]
        values[..., 3], values[..., 4] = values[..., 4].copy(), values[..., 3].copy()
        array[...] = values
    assert "its chunks are whole, but not those that it was completed with" in call("verify", "i").stdout


# ---- Headers of numbers with intervals --------------------------------------------------------------------

WORDS = {"residues": 0, "sign": 4, "exponent": 5, "low": 6, "upp": 8}


def set_part(path: str, name: str, number: int, value: Any) -> None:
    """Change a part of a number of an array or a group, with chunks whose checksums are right."""
    if Path(path, name).is_dir():
        array = zarr.open_array(f"{path}/{name}", mode="r+").with_config({"write_empty_chunks": True})
        array[(2, number) if name == "residues" else number] = value
        return
    array = zarr.open_array(path, mode="r+")
    words = np.array(value, {"low": "<f8", "upp": "<f8", "exponent": "<i4"}.get(name, "<u4")).reshape(1)
    row = WORDS[name] + 2 * (name == "residues")
    for k, word in enumerate(words.view("<u4")):
        array[row + k, number] = word


@pytest.mark.parametrize("path", ["array", "group"])
@pytest.mark.parametrize(
    ("name", "number", "value", "message"),
    [
        ("sign", 5, 2, "number 5 has a header that no number has: sign 2, "),
        ("sign", 0, 1, "number 0 has a header that no number has: sign 1, "),
        ("exponent", 130, 0, "number 130 has a wrong header: "),
        ("exponent", 130, -(2**31), "number 130 has a header that no number has: "),
        ("low", 7, 0.999, "number 7 has a header that no number has: "),
        ("low", 7, -1.0, "number 7 has a header that no number has: "),
        ("low", 7, float("nan"), "number 7 has a header that no number has: "),
        ("upp", 7, 0.5, "number 7 has a header that no number has: "),
        ("upp", 0, 0.5, "number 0 has a header that no number has: "),
        ("upp", 7, float("inf"), "number 7 has a header that no number has: "),
        ("residues", 9, 6, "number 9 has a wrong header: "),
        ("residues", 9, 7, "residue 7 of number 9 is not below its modulus 7 (row 2)"),
    ],
)
def test_verify_looks_at_headers(path: str, name: str, number: int, value: Any, message: str) -> None:
    if path == "group":
        make_group(path, "first")
    else:
        rd.IntervalRNSArray.from_ints(SIGNED, MODULI, chunks=128).to_zarr(path)
    assert "200 integers, whole and valid" in succeed("verify", path)
    set_part(path, name, number, value)
    result = call("verify", path, "--json")
    problems = json.loads(result.stdout)["problems"]
    assert result.exit_code == 1
    assert len(problems) == 1
    assert f"{Path(path).absolute()}: chunk c/0/{number // 128}: {message}" in problems[0]


def test_intervals_of_results_are_verified() -> None:
    """They are not those of a new evaluation, and contain their numbers all the same."""
    x = rd.IntervalRNSArray.from_ints([v * 3 for v in SIGNED], MODULI, chunks=128)
    y = rd.IntervalRNSArray.from_ints([v // 5 - 9 for v in SIGNED], MODULI, chunks=128)
    ((x - y) * 77 + y - x).to_zarr("g", chunks=128)
    assert list(store.verify(store.open_info("g", store.all_systems))) == []
