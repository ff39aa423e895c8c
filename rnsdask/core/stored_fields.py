"""Fields of a store's attribute, read and checked: they are JSON values and not trusted."""

import re
from collections.abc import Mapping
from typing import Any

from rnsdask.core.errors import brief
from rnsdask.core.moduli import ModuliSet
from rnsdask.core.wide_moduli import WideModuli

_HEXADECIMAL = re.compile("0[xX][0-9a-fA-F]+")


def read_moduli(fields: Mapping[str, Any]) -> ModuliSet:
    """Read the moduli set; TypeError or ValueError if it is invalid."""
    return ModuliSet(read_list(fields, "moduli"))


def read_list(fields: Mapping[str, Any], name: str) -> list[Any]:
    """Read a list."""
    values = fields[name]
    if not isinstance(values, list):
        raise ValueError(f"{name} must be a list, got {brief(values)}")
    return values


def read_flag(fields: Mapping[str, Any], name: str, default: bool | None = None) -> bool:
    """Read a Boolean; with a default, the field may be missing."""
    value = fields[name] if default is None else fields.get(name, default)
    if not isinstance(value, bool):
        raise ValueError(f"{name} must be true or false, got {brief(value)}")
    return value


def read_hexadecimal(fields: Mapping[str, Any], name: str, or_null: str = "") -> int:
    """Read an integer of any length, written as text; `or_null` says in messages what else is allowed."""
    text = fields[name]
    if not _is_hexadecimal(text):
        raise ValueError(f"{name} must be {or_null}a hexadecimal string like 0x1f, got {brief(text)}")
    return int(text, 16)


def read_bound(fields: Mapping[str, Any]) -> int | None:
    """Read a bound of magnitudes; null means that no bound is known."""
    return None if fields["bound"] is None else read_hexadecimal(fields, "bound", "null or ")


def read_source(fields: Mapping[str, Any]) -> WideModuli | None:
    """Read the moduli that a store's moduli replace, or None."""
    texts = fields.get("source")
    if texts is None:
        return None
    if not isinstance(texts, list) or not all(map(_is_hexadecimal, texts)):
        raise ValueError(f"source must be a list of hexadecimal strings like 0x1f, got {texts!r:.40}")
    return WideModuli(tuple(int(text, 16) for text in texts))


def source_fields(source: WideModuli | None) -> dict[str, Any]:
    """Write the replaced moduli as text: other readers' integers may end at 2**53."""
    return {} if source is None else {"source": [hex(m) for m in source]}


def _is_hexadecimal(text: Any) -> bool:
    return isinstance(text, str) and _HEXADECIMAL.fullmatch(text) is not None
