"""What a store says about itself, read and checked."""

import hashlib
import json
import math
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from itertools import product
from pathlib import Path
from typing import Any, SupportsIndex, TypeAlias

import google_crc32c
import zarr
from zarr.abc.buffer import Buffer as AnyBuffer
from zarr.buffer.cpu import Buffer
from zarr.storage import MemoryStore

from rnsdask._version import __version__
from rnsdask.core.errors import (
    ChangedStoreError,
    IncompleteStoreError,
    JobError,
    StoreAccessError,
    StoreError,
    abbreviate,
)
from rnsdask.core.layout import RESIDUE_DTYPE, chunk_grid
from rnsdask.core.moduli import ModuliSet, as_integer, to_text
from rnsdask.rns.system import RNS
from rnsdask.store.codecs import ChunkCodecs, describe_codecs
from rnsdask.store.documents import array_document, parse_document
from rnsdask.store.location import (
    CHUNK_FOLDER,
    METADATA_KEY,
    Location,
)
from rnsdask.store.paths import StorePath, locate

Files: TypeAlias = dict[str, AnyBuffer]
"""Files of an array or group in memory, as Zarr's ``MemoryStore`` takes them."""

FORMAT = 1
"""Number of the store format that this version writes, and the only one that it reads."""

ATTRIBUTE = "rnsdask"
"""Key of the Zarr attribute that makes an array a store."""

PLAIN_ATTRIBUTE = "rnsdask_values"
"""Key of the Zarr attribute that says whether a plain array, such as a mask, is complete."""

DEFAULT_CODECS = ("bytes(endian=little)", "crc32c")

_ATTRIBUTE_FIELDS = ("moduli", "signed", "bound", "complete")
_BOUND = re.compile("0[xX][0-9a-fA-F]+")


@dataclass(frozen=True)
class Opened:
    """A metadata document as it was when a reader opened it.

    Attributes
    ----------
    digest : str
        Hash of its content.
    written : tuple or None
        What tells when it was written, where the content alone does not tell one store from another: in
        those of versions of the package that kept no hash of the chunks in it.
    """

    digest: str
    written: tuple[Any, ...] | None

    @classmethod
    def of(cls, location: Location, metadata: bytes, tells_content: bool) -> "Opened":
        """Remember a document that has been read just now."""
        return cls(_hash(metadata), None if tells_content else _written(location))

    def check(self, location: Location) -> None:
        """Raise ChangedStoreError unless the document at a place is the same still.

        Whoever overwrites a store changes its metadata before any chunk of it. So a chunk that was read
        before this belongs to the document.
        """
        try:
            metadata = location.read_metadata()
            unchanged = _hash(metadata) == self.digest
            if unchanged and self.written is not None:
                unchanged = _written(location) == self.written
        except FileNotFoundError:
            raise ChangedStoreError(f"{location.path}: it was removed since it was opened") from None
        if not unchanged:
            raise ChangedStoreError(
                f"{location.path}: it was overwritten, or its metadata changed, since it was opened"
            )


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _written(location: Location) -> tuple[Any, ...]:
    version = location.version(METADATA_KEY)
    # Not the inode: some networks' file systems number files anew on each machine.
    return version[:2] if location.is_local else version


@dataclass(frozen=True)
class StoreInfo:
    """What there is to know about a store before its chunks are read.

    Attributes
    ----------
    location : Location
        Where it is; `path` is the absolute path, or the URL.
    moduli : ModuliSet
        The moduli set.
    shape : tuple of int
        Shape of the array of numbers, without the residue axis.
    chunks : tuple of int
        A chunk's length along each axis of `shape`.
    signed : bool
        Whether the numbers are of the symmetric range.
    bound : int or None
        Upper bound of the absolute value of every number, where one is known.
    codecs : tuple of str
        The codecs that make bytes of a chunk, in the order of encoding.
    identity : str
        Hash of the metadata and of when they were written: a store that was overwritten has another.
    opened : Opened
        The metadata document, to be recognised after each chunk that is read.
    content : str or None
        Hash of the checksums of all chunks; None if it is incomplete, or of an older version of the package.
    group : str or None
        Of which group it is a part: what all of its parts have in common.
    metadata : bytes
        Zarr's metadata document, where Zarr decodes the chunks; empty where chunks are read as files.
    release : tuple of str and int
        Versions of the package and of the format in the process that read the metadata.
    """

    location: Location
    moduli: ModuliSet
    shape: tuple[int, ...]
    chunks: tuple[int, ...]
    signed: bool
    bound: int | None
    codecs: tuple[str, ...]
    identity: str = field(repr=False)
    opened: Opened = field(repr=False)
    content: str | None = field(repr=False)
    group: str | None = field(repr=False)
    metadata: bytes = field(repr=False)
    release: tuple[str, int] = field(default=(__version__, FORMAT), repr=False)

    @property
    def path(self) -> str:
        """Absolute path, or URL."""
        return self.location.path

    @property
    def system(self) -> RNS:
        """The number system of what is stored."""
        return RNS(self.moduli, self.signed, self.bound)

    @property
    def count(self) -> int:
        """Number of numbers."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of all residues, as an array in memory."""
        return self.count * len(self.moduli) * RESIDUE_DTYPE.itemsize

    @property
    def chunk_bytes(self) -> int:
        """Bytes of the residues of a whole chunk, as an array in memory."""
        return math.prod(self.chunk_shape) * RESIDUE_DTYPE.itemsize

    @property
    def chunk_shape(self) -> tuple[int, ...]:
        """Shape of a whole chunk of residues: the number of moduli, then `chunks`."""
        return len(self.moduli), *self.chunks

    @property
    def grid(self) -> tuple[int, ...]:
        """Number of chunks along each axis."""
        return chunk_grid(self.shape, self.chunks)

    @property
    def n_chunks(self) -> int:
        """Number of chunks."""
        return math.prod(self.grid)

    @property
    def has_chunk_files(self) -> bool:
        """Whether chunks are read and written as files, without Zarr's codecs."""
        return not self.metadata

    def indices(self) -> Iterator[tuple[int, ...]]:
        """Iterate over the indices of all chunks in the grid, in C order."""
        return product(*map(range, self.grid))

    def chunk_key(self, index: Sequence[int]) -> str:
        """Return the name of a chunk within the store, such as ``c/0/17``."""
        return "/".join((CHUNK_FOLDER, "0", *map(str, index)))

    def has_chunk_key(self, key: str) -> bool:
        """Whether a file of this name is one of the store's chunks."""
        try:
            index = tuple(map(int, key.split("/")[2:]))
        except ValueError:
            return False
        grid = self.grid
        inside = len(index) == len(grid) and all(0 <= i < n for i, n in zip(index, grid, strict=True))
        return inside and key == self.chunk_key(index)

    def chunk_name(self, index: Sequence[int]) -> str:
        """Return what error messages call a chunk."""
        return f"{self.path}: chunk {self.chunk_key(index)}"

    def chunk_file(self, index: Sequence[int]) -> Path:
        """Return the file of a chunk of a local store."""
        return Path(self.path, self.chunk_key(index))

    def check_release(self) -> None:
        """Raise JobError unless this process has the same version of the package as the one that sent this.

        Tasks carry a store's description to workers, of which some may have joined since all were checked.
        An error in unpickling would be too early: it breaks a worker's connection, not the task.
        """
        if self.release != (__version__, FORMAT):
            sent = "rnsdask {} (store format {})".format(*self.release)
            own = f"rnsdask {__version__} (store format {FORMAT})"
            raise JobError(f"a task of {sent} came to a process that has {own}")

    def __dask_tokenize__(self) -> tuple[object, ...]:
        values = (getattr(self, f.name) for f in fields(self) if f.name not in ("moduli", "bound"))
        return "rnsdask.StoreInfo", self.moduli.moduli, to_text(self.bound), *values


def open_info(path: StorePath) -> StoreInfo:
    """Read and check what a complete store says about itself.

    Parameters
    ----------
    path
        Anything that `rnsdask.store.locate` takes.

    Raises
    ------
    IncompleteStoreError
        If the store is still being written, or its writing was interrupted.
    StoreError
        If there is no store, or it breaks a rule of the format; the message names the rule and the value.
    """
    info, complete = load(locate(path))
    if not complete:
        raise IncompleteStoreError(
            f"{info.path}: the store is incomplete, because its writing did not finish; write the rest with "
            "--resume"
        )
    return info


def load(location: Location) -> tuple[StoreInfo, bool]:
    """Read and check the metadata of the store at a place, and tell whether it is complete."""
    path = location.path
    metadata, identity = _read_metadata(location)
    try:
        document = array_document(metadata)
        attribute = _check_attribute((document.get("attributes") or {}).get(ATTRIBUTE))
        moduli = ModuliSet(attribute["moduli"])
        codecs = _check_document(document, len(moduli))
        bound = _parse_bound(attribute["bound"], moduli, attribute["signed"])
    except (TypeError, ValueError) as error:
        raise StoreError(f"{path}: {error}") from error
    _check_checksum(path, attribute, parse_document(metadata))
    has_chunk_files = location.is_local and codecs == DEFAULT_CODECS and sys.byteorder == "little"
    info = StoreInfo(
        location=location,
        moduli=moduli,
        shape=tuple(document["shape"])[1:],
        chunks=tuple(document["chunk_grid"]["configuration"]["chunk_shape"])[1:],
        signed=attribute["signed"],
        bound=bound,
        codecs=codecs,
        identity=identity,
        opened=Opened.of(location, metadata, tells_content="content" in attribute),
        content=attribute.get("content") if attribute["complete"] else None,
        group=attribute.get("group"),
        metadata=b"" if has_chunk_files else metadata,
    )
    return info, attribute["complete"]


def make_attribute(
    moduli: ModuliSet,
    signed: bool,
    bound: int | None,
    writer: str,
    recipe: str | None,
    group: str | None = None,
) -> dict[str, Any]:
    """Make the value of the attribute of a store that a writer is about to write."""
    begun = {"complete": False, "writer": writer, "recipe": recipe}
    return {**_contents(moduli, signed, bound, group), **begun}


def complete_attribute(
    info: StoreInfo, bound: int | None, content: str, group: str | None = None
) -> dict[str, Any]:
    """Make the value of the attribute of a store that is complete, with checksums.

    Parameters
    ----------
    content
        Hash of the checksums of all chunks.
    group
        What it has in common with the other parts of its group, if it is in one.
    """
    metadata = parse_document(info.location.read_metadata())
    attribute = {**_contents(info.moduli, info.signed, bound, group), "complete": True}
    attribute["checksum"] = _checksum(attribute, metadata)
    attribute["content"] = content
    return {**attribute, "digest": _digest(attribute, metadata)}


def _contents(moduli: ModuliSet, signed: bool, bound: int | None, group: str | None) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "moduli": list(moduli),
        "signed": bool(signed),
        "bound": None if bound is None else hex(bound),
        **({} if group is None else {"group": group}),
    }


def _checksum(attribute: dict[str, Any], metadata: dict[str, Any]) -> str:
    """CRC-32C of what makes numbers of the chunks' bytes, where the codecs are those of the format."""
    shape, chunks = metadata["shape"][1:], metadata["chunk_grid"]["configuration"]["chunk_shape"][1:]
    values = [*(attribute[name] for name in _ATTRIBUTE_FIELDS), shape, chunks]
    return f"{google_crc32c.value(json.dumps([FORMAT, *values]).encode()):#010x}"


def _digest(attribute: dict[str, Any], metadata: dict[str, Any]) -> str:
    """SHA-256 of all of the attribute, and of all in Zarr's metadata that makes numbers of bytes."""
    named = [{"name": codec} if isinstance(codec, str) else codec for codec in metadata["codecs"]]
    codecs = [[codec["name"], codec.get("configuration") or {}] for codec in named]
    kept = {name: metadata[name] for name in ("data_type", "shape", "chunk_grid", "fill_value")}
    own = {name: value for name, value in attribute.items() if name != "digest"}
    return json_hash({"attribute": own, "codecs": codecs, **kept})


def json_hash(value: Any) -> str:
    """SHA-256 of a JSON value, written in one way."""
    return _hash(json.dumps(value, sort_keys=True, separators=(",", ":")).encode())


def _check_checksum(path: str, attribute: dict[str, Any], metadata: dict[str, Any]) -> None:
    """Check that the metadata of a complete store are those that it was completed with."""
    if not attribute["complete"]:
        return
    computed = {"checksum": _checksum(attribute, metadata)}
    if any(name in attribute for name in ("content", "digest", "group")):  # what older versions did not write
        computed["digest"] = _digest(attribute, metadata)
    for name, value in computed.items():
        if name not in attribute:
            raise StoreError(f"{path}: its {METADATA_KEY} is damaged: it has no {name}")
        if attribute[name] != value:
            found = f"{attribute[name]!r:.40}"
            raise StoreError(f"{path}: its {METADATA_KEY} is damaged: its {name} is {value}, stored {found}")


def read_writer(location: Location, attribute: str = ATTRIBUTE) -> str | None:
    """Read which writer an incomplete array belongs to; None if it has none or is not there."""
    return _read_field(location, attribute, "writer")


def check_recipe(location: Location, recipe: str | None, attribute: str = ATTRIBUTE) -> str | None:
    """Check that an incomplete array is of a recipe, if both are known, and return the array's.

    Raises
    ------
    StoreError
        If it is of another one.
    """
    found = _read_field(location, attribute, "recipe")
    if None not in (found, recipe) and found != recipe:
        raise StoreError(
            f"{location.path}: it cannot be resumed: it was begun by another job (another operation, option "
            "or operand), or an operand has changed since"
        )
    return found


def _read_field(location: Location, attribute: str, name: str) -> str | None:
    """Read a field of the attribute of an array; None if it has none or is not there."""
    try:
        value = parse_document(location.read_metadata())["attributes"][attribute][name]
    except StoreAccessError:
        raise
    except (FileNotFoundError, ValueError, TypeError, KeyError):
        return None
    return None if value is None else str(value)


def check_bound(bound: SupportsIndex | None, moduli: ModuliSet, signed: bool) -> int | None:
    """Check that a bound of absolute values lies within the range of the moduli set."""
    if bound is None:
        return None
    value = as_integer(bound, "bound")
    lowest, highest = moduli.value_range(signed)
    largest = max(-lowest, highest)
    if not 0 <= value <= largest:
        raise ValueError(f"bound must be from 0 to {abbreviate(largest)}, got {abbreviate(value)}")
    return value


def changed_metadata(location: Location, change: Callable[[Any], object]) -> bytes:
    """The metadata of the array or group at a place, as Zarr changes them."""
    metadata = location.read_metadata()
    files: Files = {METADATA_KEY: Buffer.from_bytes(metadata)}
    change(zarr.open(MemoryStore(files), mode="r+"))
    return files[METADATA_KEY].to_bytes()


def _read_metadata(location: Location) -> tuple[bytes, str]:
    """Read the metadata document, and make a hash of its content and of when it was written."""
    try:
        metadata = location.read_metadata()
        written = location.version(METADATA_KEY)
    except FileNotFoundError:
        raise StoreError(f"{location.path}: {_why_no_metadata(location)}") from None
    return metadata, hashlib.sha256(metadata + repr(written).encode()).hexdigest()


def _why_no_metadata(location: Location) -> str:
    kind = location.kind()
    if kind == "nothing" or not location.lists:
        return "there is no such store"
    if kind == "file":
        return "it is a file, not a Zarr store"
    if any(location.exists(name) for name in (".zarray", ".zgroup")):
        return "it is of Zarr format 2; a store of rnsdask is of Zarr format 3"
    return f"it is not a Zarr store: it has no {METADATA_KEY}"


def _check_attribute(attribute: Any) -> dict[str, Any]:
    """Check that the attribute has the fields of the format, each of its type."""
    if attribute is None:
        raise ValueError(f"it is a Zarr array, but not a store of rnsdask: it has no attribute {ATTRIBUTE!r}")
    if not isinstance(attribute, dict):
        raise ValueError(f"attribute {ATTRIBUTE!r} must be an object, got {attribute!r:.40}")
    number = attribute.get("format")
    if type(number) is not int or number != FORMAT:
        raise ValueError(f"it is of format {number!r:.40}; this version of rnsdask reads format {FORMAT}")
    absent = [name for name in _ATTRIBUTE_FIELDS if name not in attribute]
    if absent:
        raise ValueError(f"attribute {ATTRIBUTE!r} has no {', '.join(absent)}")
    if not isinstance(attribute["moduli"], list):
        raise ValueError(f"moduli must be a list, got {attribute['moduli']!r:.40}")
    for name in ("signed", "complete"):
        if not isinstance(attribute[name], bool):
            raise ValueError(f"{name} must be true or false, got {attribute[name]!r:.40}")
    return attribute


def _check_document(document: dict[str, Any], n_moduli: int) -> tuple[str, ...]:
    """Check Zarr's own metadata against the format, and return the codecs."""
    if document["data_type"] != RESIDUE_DTYPE.name:
        raise ValueError(f"its dtype must be uint32, got {document['data_type']}")
    shape = tuple(document["shape"])
    if len(shape) < 2:
        raise ValueError(f"it must have a residue axis and at least one axis of numbers, got shape {shape}")
    if shape[0] != n_moduli:
        raise ValueError(f"its residue axis (axis 0) has {shape[0]} rows for {n_moduli} moduli")
    grid, keys = document["chunk_grid"], document["chunk_key_encoding"]
    if (rows := grid["configuration"]["chunk_shape"][0]) != n_moduli:
        raise ValueError(f"its residue axis (axis 0) of {n_moduli} rows is cut into chunks of {rows}")
    if keys["name"] != "default" or keys["configuration"]["separator"] != "/":
        raise ValueError(f"its chunks must have keys like c/0/1, got the key encoding {keys}")
    if document.get("storage_transformers"):
        raise ValueError(
            f"it must have no storage transformers, got {document['storage_transformers']!r:.40}"
        )
    ChunkCodecs.of(document)
    codecs = describe_codecs(document)
    if codecs[0] != DEFAULT_CODECS[0]:
        raise ValueError(f"the first of its codecs must be {DEFAULT_CODECS[0]}, got {codecs[0]}")
    return codecs


def _parse_bound(text: Any, moduli: ModuliSet, signed: bool) -> int | None:
    if text is None:
        return None
    if not isinstance(text, str) or not _BOUND.fullmatch(text):
        raise ValueError(f"bound must be null or a hexadecimal string like 0x1f, got {text!r:.40}")
    return check_bound(int(text, 16), moduli, signed)
