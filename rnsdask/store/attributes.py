"""The attributes that say what a Zarr array holds: its number system, and whether it is whole."""

import hashlib
import json
import re
from typing import Any, SupportsIndex

import google_crc32c

from rnsdask.core.errors import IncompleteStoreError, StoreAccessError, StoreError, abbreviate, brief
from rnsdask.core.moduli import ModuliSet, as_integer
from rnsdask.core.number_system import NumberSystem
from rnsdask.core.ways import REPLACE, Message, Way, with_ways
from rnsdask.core.wide_moduli import WideModuli
from rnsdask.fields.fermat_field import FermatField
from rnsdask.fields.system import FiniteFields, PrimeFields
from rnsdask.interval_rns.system import IntervalRNS
from rnsdask.positional.system import Positional
from rnsdask.rns.system import RNS
from rnsdask.store.documents import attributes_in, parse_document
from rnsdask.store.location import METADATA_KEY, Location

FORMAT = 1
"""Number of the format of stores of integers as residues."""

FIELDS_FORMAT = 2
"""Number of the format of stores of other words than residues: with the name of their number system."""

_PRIME_FIELDS = "prime-fields"
"""Name of PrimeFields in the attribute of a store."""

_FERMAT_FIELD = "fermat-field"
"""Name of FermatField in the attribute."""

_INTERVAL_RNS = "interval-rns"
"""Name of IntervalRNS in the attribute."""

_POSITIONAL = "positional"
"""Name of Positional in the attribute."""

ATTRIBUTE = "rnsdask"
"""Key of the Zarr attribute that makes an array a store."""

APPEND = "append-"
"""Prefix of the identity of a job that appends, which no other job has."""

PLAIN_ATTRIBUTE = "rnsdask_values"
"""Key of the Zarr attribute that says whether a plain array, such as a mask, is complete."""

_FIELDS = ("moduli", "signed", "bound", "complete")
_FIELDS_OF = {
    _FERMAT_FIELD: ("radix", "digits", "complete"),
    _POSITIONAL: ("bits", "signed", "complete"),
}
_HEXADECIMAL = re.compile("0[xX][0-9a-fA-F]+")

# ---- the number system ------------------------------------------------------------------------------------


def _system_fields(system: NumberSystem) -> dict[str, Any]:
    if isinstance(system, FermatField):
        values = {"radix": hex(system.radix), "digits": system.digits}
        return {"format": FIELDS_FORMAT, "system": _FERMAT_FIELD, **values}
    if isinstance(system, PrimeFields):
        values = {"moduli": list(system.moduli), "signed": False, "bound": None}
        return {"format": FIELDS_FORMAT, "system": _PRIME_FIELDS, **values}
    if isinstance(system, IntervalRNS):
        values = {"moduli": list(system.moduli), "signed": True, "bound": None}
        return {"format": FIELDS_FORMAT, "system": _INTERVAL_RNS, **values, **_source_fields(system.source)}
    if isinstance(system, Positional):
        values = {"bits": system.bits, "signed": system.signed}
        return {"format": FIELDS_FORMAT, "system": _POSITIONAL, **values}
    if not isinstance(system, RNS):
        raise TypeError(f"the store format has no number system {system!r}")
    bound = None if system.bound is None else hex(system.bound)
    values = {"moduli": list(system.moduli), "signed": system.signed, "bound": bound}
    mode = {"grows": True} if system.grows else {}
    return {"format": FORMAT, **values, **_source_fields(system.source), **mode}


def _source_fields(source: WideModuli | None) -> dict[str, Any]:
    # In text, for other readers' numbers end at 2**53.
    return {} if source is None else {"source": [hex(m) for m in source]}


def system_of(attribute: dict[str, Any]) -> NumberSystem:
    """The number system that a checked attribute names; TypeError or ValueError if there is none."""
    if attribute["format"] == FIELDS_FORMAT:
        return _system_of_format_2(attribute)
    moduli, source = ModuliSet(attribute["moduli"]), _source_of(attribute.get("source"))
    grows = attribute.get("grows", False)
    if not isinstance(grows, bool):
        raise ValueError(f"grows must be true or false, got {brief(grows)}")
    system, text = RNS(moduli, attribute["signed"], source=source, grows=grows), attribute["bound"]
    if text is None:
        return system
    if not isinstance(text, str) or not _HEXADECIMAL.fullmatch(text):
        raise ValueError(f"bound must be null or a hexadecimal string like 0x1f, got {brief(text)}")
    return with_exact_bound(system, int(text, 16))


def _source_of(texts: Any) -> WideModuli | None:
    if texts is None:
        return None
    if not isinstance(texts, list) or not all(
        isinstance(text, str) and _HEXADECIMAL.fullmatch(text) for text in texts
    ):
        raise ValueError(f"source must be a list of hexadecimal strings like 0x1f, got {texts!r:.40}")
    return WideModuli(tuple(int(text, 16) for text in texts))


def _system_of_format_2(attribute: dict[str, Any]) -> IntervalRNS | FiniteFields | Positional:
    if (kind := attribute.get("system")) == _FERMAT_FIELD:
        radix = attribute["radix"]
        if not isinstance(radix, str) or not _HEXADECIMAL.fullmatch(radix):
            raise ValueError(f"radix must be a hexadecimal string like 0x1f, got {brief(radix)}")
        return FermatField(int(radix, 16), attribute["digits"])
    if kind == _POSITIONAL:
        if type(attribute["bits"]) is not int:
            raise ValueError(f"bits must be an integer, got {brief(attribute['bits'])}")
        return Positional(attribute["bits"], attribute["signed"])
    if kind == _INTERVAL_RNS:
        if attribute["signed"] is not True or attribute["bound"] is not None:
            raise ValueError(
                "numbers with intervals are signed, without a bound: signed must be true, bound null"
            )
        return IntervalRNS(ModuliSet(attribute["moduli"]), _source_of(attribute.get("source")))
    if kind != _PRIME_FIELDS:
        known = f"{_PRIME_FIELDS!r}, {_FERMAT_FIELD!r}, {_INTERVAL_RNS!r} or {_POSITIONAL!r}"
        raise ValueError(f"system must be {known}, got {brief(kind)}")
    if attribute["signed"] or attribute["bound"] is not None:
        raise ValueError("elements of fields have no sign and no bound: signed must be false, bound null")
    return PrimeFields(attribute["moduli"])


def with_exact_bound(system: RNS, bound: SupportsIndex) -> RNS:
    """The system with a bound of magnitudes, as it is: ValueError if it is beyond the range."""
    value = as_integer(bound, "bound")
    if not 0 <= value <= system.greatest_magnitude:
        raise ValueError(
            f"bound must be from 0 to {abbreviate(system.greatest_magnitude)}, got {abbreviate(value)}"
        )
    return system.with_bound(value)


# ---- writing ----------------------------------------------------------------------------------------------


def begun_fields(writer: str, job_identity: str | None) -> dict[str, Any]:
    """Fields of an array that is being written: its writer's token, and the identity of its job."""
    return {"complete": False, "writer": writer, "recipe": job_identity}


def begun_attribute(system: NumberSystem, writer: str, job_identity: str | None) -> dict[str, Any]:
    """Make the value of the attribute of a store that a writer is about to write."""
    return {**_system_fields(system), **begun_fields(writer, job_identity)}


def complete_attribute(metadata: dict[str, Any], system: NumberSystem, content: str) -> dict[str, Any]:
    """Make the value of the attribute of a store that is complete, with a hash of all chunks' checksums."""
    attribute = {**_system_fields(system), "complete": True}
    attribute["checksum"] = _checksum(attribute, metadata)
    attribute["content"] = content
    return {**attribute, "digest": _digest(attribute, metadata)}


def _checksum(attribute: dict[str, Any], metadata: dict[str, Any]) -> str:
    """CRC-32C of what makes numbers of the chunks' bytes, where the codecs are those of the format."""
    shape, chunks = metadata["shape"][1:], metadata["chunk_grid"]["configuration"]["chunk_shape"][1:]
    values = [*(attribute[name] for name in _names_of(attribute)), shape, chunks]
    return f"{google_crc32c.value(json.dumps([attribute['format'], *values]).encode()):#010x}"


def _digest(attribute: dict[str, Any], metadata: dict[str, Any]) -> str:
    """SHA-256 of all of the attribute, and of all in Zarr's metadata that makes numbers of bytes."""
    named = [{"name": codec} if isinstance(codec, str) else codec for codec in metadata["codecs"]]
    codecs = [[codec["name"], codec.get("configuration") or {}] for codec in named]
    kept = {name: metadata[name] for name in ("data_type", "shape", "chunk_grid", "fill_value")}
    own = {name: value for name, value in attribute.items() if name != "digest"}
    return json_hash({"attribute": own, "codecs": codecs, **kept})


def json_hash(value: Any) -> str:
    """SHA-256 of a JSON value, written in one way."""
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
    if type(number) is not int or number not in (FORMAT, FIELDS_FORMAT):
        known = f"formats {FORMAT} and {FIELDS_FORMAT}"
        raise ValueError(f"it is of format {brief(number)}; this version of rnsdask reads {known}")
    names = _names_of(attribute)
    absent = [name for name in names if name not in attribute]
    if absent:
        raise ValueError(f"attribute {ATTRIBUTE!r} has no {', '.join(absent)}")
    if "moduli" in names and not isinstance(attribute["moduli"], list):
        raise ValueError(f"moduli must be a list, got {brief(attribute['moduli'])}")
    for name in {"signed", "complete"} & {*names}:
        if not isinstance(attribute[name], bool):
            raise ValueError(f"{name} must be true or false, got {brief(attribute[name])}")
    return attribute


def _names_of(attribute: dict[str, Any]) -> tuple[str, ...]:
    """The fields that an attribute must have."""
    if attribute["format"] != FIELDS_FORMAT:
        return _FIELDS
    kind = attribute.get("system")
    return _FIELDS_OF.get(kind, _FIELDS) if isinstance(kind, str) else _FIELDS


def check_checksums(path: str, attribute: dict[str, Any], metadata: dict[str, Any]) -> None:
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
            found = f"{brief(attribute[name])}"
            raise StoreError(f"{path}: its {METADATA_KEY} is damaged: its {name} is {value}, stored {found}")


def own_attribute(document: dict[str, Any] | None) -> dict[str, Any]:
    """Find the attribute of the package in a metadata document; empty if there is none."""
    attributes = attributes_in(document)
    own = [attributes.get(key) for key in (ATTRIBUTE, PLAIN_ATTRIBUTE)]
    return next((attribute for attribute in own if isinstance(attribute, dict)), {})


def read_writer(location: Location, attribute: str = ATTRIBUTE) -> str | None:
    """Read which writer an incomplete array belongs to; None if it has none or is not there."""
    return _read_field(location, attribute, "writer")


def read_job_identity(location: Location, attribute: str = ATTRIBUTE) -> str | None:
    """Read what the values of an incomplete array follow from; None if that is not known."""
    return _read_field(location, attribute, "recipe")


def incomplete_error(path: str, what: str, attribute: dict[str, Any]) -> IncompleteStoreError:
    """Make the error of reading an array or group, which `what` names, whose writing did not finish."""
    why = f"{path}: the {what} is incomplete, because its writing did not finish"
    return IncompleteStoreError(with_ways(why, way_on(attribute)))


def way_on(attribute: dict[str, Any]) -> Way:
    """Say how to go on with an incomplete array or group."""
    if attribute.get("recipe") is None:
        return Way.WRITE_ANEW
    # Only a command knows what it has begun.
    return Way.RESUME_OR_WRITE_ANEW


def check_job_identity(
    location: Location, job_identity: str | None, attribute: str = ATTRIBUTE
) -> str | None:
    """Check that an incomplete array is of the same job, if both are known; return what it names."""
    found = _read_field(location, attribute, "recipe")
    if None not in (found, job_identity) and found != job_identity:
        raise StoreError(
            with_ways(
                f"{location.path}: it cannot be resumed: it was begun by another job (another operation, "
                "option or operand), or an operand has changed since",
                REPLACE,
            )
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
