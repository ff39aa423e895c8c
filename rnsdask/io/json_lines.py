"""JSON lines of integers: an integer, its text, or an object with a field of it on each line."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from rnsdask.core.errors import InputError, NumberError, brief
from rnsdask.core.integer_text import not_an_integer, parse_integer
from rnsdask.core.ways import Message, Setting, with_ways


class _Integer(str):
    """Digits of a JSON integer, which may be longer than Python converts."""

    __slots__ = ()


class _Fraction(str):
    """Text of a JSON number with a point or an exponent."""

    __slots__ = ()


def json_fields(pieces: Iterable[bytes], name: str, field: str | None) -> Iterator[bytes]:
    """Convert pieces of whole lines of JSON to lines of integers in decimal or hexadecimal text.

    Without a `field` the values are the lines' own. Blank lines stay. InputError, which calls the text `name`
    and counts lines, for a line that is no JSON, or has no integer: floats are refused, as their digits may
    be lost already.
    """
    number = 0
    for piece in pieces:
        made = []
        for line in piece.removesuffix(b"\n").split(b"\n"):
            number += 1
            try:
                made.append(_integer_of(line, field) if line.strip() else b"")
            except ValueError as error:
                if made:
                    yield b"".join([text + b"\n" for text in made])
                problem = error if isinstance(error, NumberError) else f"it is no JSON: {error}"
                raise InputError(Message(f"{name}:{number}: ", problem)) from None
        yield b"".join([text + b"\n" for text in made])


def _integer_of(line: bytes, field: str | None) -> bytes:
    value: Any = json.loads(line, parse_int=_Integer, parse_float=_Fraction, parse_constant=_Fraction)
    what = "the value"
    if field is not None:
        what = f"the field {field!r:.80}"
        if not isinstance(value, dict):
            raise NumberError(f"it is no object, so that it has no field {field!r:.80}")
        if field not in value:
            raise NumberError(f"the object has no field {field!r:.80}, but {brief(list(value))}")
        value = value[field]
    elif isinstance(value, dict):
        way = Message(Setting("column"), f" chooses one of {brief(list(value))}")
        raise NumberError(with_ways("it is an object", way))
    if not isinstance(value, str):
        kind = {type(None): "missing", bool: "a Boolean", list: "a list"}.get(type(value), "an object")
        raise NumberError(f"{what} is {kind}, not an integer")
    if isinstance(value, _Fraction):
        raise NumberError(f"{what} is {value:.40}, not an integer; text keeps all digits")
    text = value.strip().encode("utf-8", "surrogatepass")
    if not isinstance(value, _Integer) and parse_integer(text) is None:
        raise NumberError(f"{what}: {not_an_integer(text)}")
    return text
