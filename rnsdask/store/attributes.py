"""Attributes of Zarr arrays that name the number system, and say whether the array is complete."""

import hashlib
import json
from typing import Any

import numpy as np

from rnsdask.backend.cpu import extend_checksum
from rnsdask.core.errors import IncompleteStoreError, StoreAccessError, StoreError, brief
from rnsdask.core.number_system import RESIDUES, NumberSystem, system_type
from rnsdask.core.ways import REPLACE, Message, Way, with_ways
from rnsdask.store.documents import ATTRIBUTE, parse_document
from rnsdask.store.identity import Identity, differences
from rnsdask.store.location import METADATA_KEY, Location

FORMAT = 1
"""Number of the format of stores of integers as residues."""

NAMED_FORMAT = 2
"""Number of the format of all other stores, which name their number system."""

APPEND = "append-"
"""Prefix of the hashes of jobs that append."""

_OF_EACH_STORE = frozenset(
    (
        *("format", "system", "complete", "checksum", "content", "digest", "group"),
        *("writer", "recipe", "recipe_of", "replaced"),
    )
)
"""Fields of the attribute that do not describe the number system."""

# ---- the number system ------------------------------------------------------------------------------------


def _system_fields(system: NumberSystem) -> dict[str, Any]:
    name = system.stored_as
    kind = {"format": FORMAT} if name == RESIDUES else {"format": NAMED_FORMAT, "system": name}
    stored = system.stored_fields()
    if taken := sorted(stored.keys() & _OF_EACH_STORE):
        raise TypeError(f"fields of stores of {system!r} must have other names than {', '.join(taken)}")
    return {**kind, **stored}


def system_of(attribute: dict[str, Any]) -> NumberSystem:
    """Number system that a checked attribute names; TypeError or ValueError if it is invalid."""
    own = {name: value for name, value in attribute.items() if name not in _OF_EACH_STORE}
    found: NumberSystem = _type_of(attribute).from_stored(own)
    return found


def _type_of(attribute: dict[str, Any]) -> type[NumberSystem]:
    """Class of the system that an attribute of a known format names; ValueError if it is unknown."""
    name = RESIDUES if attribute["format"] == FORMAT else attribute.get("system")
    if not isinstance(name, str) or (name == RESIDUES and attribute["format"] != FORMAT):
        raise ValueError(f"system must be the name of a number system, got {brief(name)}")
    try:
        return system_type(name)
    except LookupError as error:
        raise ValueError(f"its numbers cannot be read: {error}") from None


# ---- writing ----------------------------------------------------------------------------------------------


def begun_fields(writer: str, job: str | None) -> dict[str, Any]:
    """Fields of an array that is being written: its writer's token, and its job, with what that is of."""
    about = {"recipe_of": job.about} if isinstance(job, Identity) and job.about else {}
    return {"complete": False, "writer": writer, "recipe": job, **about}


def begun_attribute(system: NumberSystem, writer: str, job: str | None) -> dict[str, Any]:
    """Make the value of the attribute of a store that a writer is about to write."""
    return {**_system_fields(system), **begun_fields(writer, job)}


def complete_attribute(metadata: dict[str, Any], system: NumberSystem, content: str) -> dict[str, Any]:
    """Make the value of the attribute of a store that is complete, with a hash of all chunks' checksums."""
    attribute = {**_system_fields(system), "complete": True}
    attribute["checksum"] = _checksum(attribute, metadata)
    attribute["content"] = content
    return {**attribute, "digest": _digest(attribute, metadata)}


def _checksum(attribute: dict[str, Any], metadata: dict[str, Any]) -> str:
    """CRC-32C of the metadata that give chunks' bytes their meaning, for the format's own codecs."""
    shape, chunks = metadata["shape"][1:], metadata["chunk_grid"]["configuration"]["chunk_shape"][1:]
    values = [*(attribute[name] for name in _names_of(attribute)), shape, chunks]
    text = json.dumps([attribute["format"], *values]).encode()
    return f"{extend_checksum(0, np.frombuffer(text, np.uint8)):#010x}"


def _digest(attribute: dict[str, Any], metadata: dict[str, Any]) -> str:
    """SHA-256 of the whole attribute, and of Zarr's metadata that give bytes their meaning."""
    named = [{"name": codec} if isinstance(codec, str) else codec for codec in metadata["codecs"]]
    codecs = [[codec["name"], codec.get("configuration") or {}] for codec in named]
    kept = {name: metadata[name] for name in ("data_type", "shape", "chunk_grid", "fill_value")}
    own = {name: value for name, value in attribute.items() if name != "digest"}
    return json_hash({"attribute": own, "codecs": codecs, **kept})


def json_hash(value: Any) -> str:
    """SHA-256 of a JSON value in canonical form."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


# ---- reading ----------------------------------------------------------------------------------------------


def check_attribute(attribute: Any) -> dict[str, Any]:
    """Check that the attribute has the fields of the format, each of its type."""
    if attribute is None:
        raise ValueError(
            Message(
                f"it is a Zarr array, but not a store of rnsdask: it has no attribute {ATTRIBUTE!r}; ",
                Way.OTHER_ARRAYS,
                " reads an array of integers",
            )
        )
    if not isinstance(attribute, dict):
        raise ValueError(f"attribute {ATTRIBUTE!r} must be an object, got {brief(attribute)}")
    number = attribute.get("format")
    if type(number) is not int or number not in (FORMAT, NAMED_FORMAT):
        known = f"formats {FORMAT} and {NAMED_FORMAT}"
        raise ValueError(f"it is of format {brief(number)}; this version of rnsdask reads {known}")
    names = _names_of(attribute)
    absent = [name for name in names if name not in attribute]
    if absent:
        raise ValueError(f"attribute {ATTRIBUTE!r} has no {', '.join(absent)}")
    if not isinstance(attribute["complete"], bool):
        raise ValueError(f"complete must be true or false, got {brief(attribute['complete'])}")
    return attribute


def _names_of(attribute: dict[str, Any]) -> tuple[str, ...]:
    """Fields that an attribute must have and its checksum covers."""
    names = _type_of(attribute).required_fields
    if names is None:
        names = tuple(sorted(attribute.keys() - _OF_EACH_STORE))
    return (*names, "complete")


def check_checksums(path: str, attribute: dict[str, Any], metadata: dict[str, Any]) -> None:
    """Check that the metadata of a complete store are unchanged since it was completed."""
    if not attribute["complete"]:
        return
    computed = {"checksum": _checksum(attribute, metadata)}
    if any(name in attribute for name in ("content", "digest", "group")):  # absent from old versions
        computed["digest"] = _digest(attribute, metadata)
    for name, value in computed.items():
        if name not in attribute:
            raise StoreError(f"{path}: its {METADATA_KEY} is damaged: it has no {name}")
        if attribute[name] != value:
            found = f"{brief(attribute[name])}"
            raise StoreError(f"{path}: its {METADATA_KEY} is damaged: its {name} is {value}, stored {found}")


def read_writer(location: Location, attribute: str = ATTRIBUTE) -> str | None:
    """Read the token of an incomplete array's writer; None without an array or a token."""
    token = _read_field(location, attribute, "writer")
    return None if token is None else str(token)


def read_job(location: Location, attribute: str = ATTRIBUTE) -> Identity | None:
    """Read the job that writes an incomplete array; None if it is unknown."""
    found = _read_field(location, attribute, "recipe")
    if found is None:
        return None
    about = _read_field(location, attribute, "recipe_of")
    return Identity(str(found), about if isinstance(about, dict) else {})


def incomplete_error(path: str, what: str, attribute: dict[str, Any]) -> IncompleteStoreError:
    """Make the error of reading an incomplete array or group, which messages call `what`."""
    why = f"{path}: the {what} is incomplete, because its writing did not finish"
    return IncompleteStoreError(with_ways(why, way_on(attribute)))


def way_on(attribute: dict[str, Any]) -> Way:
    """Return the way to go on with an incomplete array or group."""
    if attribute.get("recipe") is None:
        return Way.WRITE_ANEW
    # Only a command knows what it has begun.
    return Way.RESUME_OR_WRITE_ANEW


def check_job(location: Location, job: str | None, attribute: str = ATTRIBUTE) -> Identity | None:
    """Check that an incomplete array belongs to a job, if both are known; return the array's."""
    found = read_job(location, attribute)
    if found is not None and job is not None and found != job:
        why = f"{location.path}: it cannot be resumed: it was begun by {another_job(job, found)}"
        raise StoreError(with_ways(why, REPLACE))
    return found


def another_job(job: str, found: Identity) -> str:
    """Say that an array is of another job, and in what they differ."""
    told = differences(job.about, found.about) if isinstance(job, Identity) else ""
    if told:
        return f"another job: {told}"
    return "another job (another operation, option or operand), or an operand has changed since"


def _read_field(location: Location, attribute: str, name: str) -> Any:
    """Read a field of the attribute of an array; None without an array or a field."""
    try:
        return parse_document(location.read_metadata())["attributes"][attribute][name]
    except StoreAccessError:
        raise
    except (FileNotFoundError, ValueError, TypeError, KeyError):
        return None
