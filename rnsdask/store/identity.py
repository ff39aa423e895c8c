"""Identity of a job: a hash of all that its values follow from, and a description that says what differs.

The hash alone decides. It follows from the content of inputs, not from their places, times or inodes. The
description is for messages, and may come from files that nobody vouches for.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Self

from rnsdask.core.messages import redact
from rnsdask.core.number_system import NumberSystem

LONGEST = 2**16
"""Most characters of a description as JSON: an array's metadata have it, which are read after each chunk."""

PARTS = 256
"""Most parts of an input whose checksums a description has."""

_SHOWN = 120
"""Most characters of a value in a description."""

BOUND = "bound"
"""Fact of an input that changes with its numbers."""

_LISTED = 3
"""Most differences that a message names."""


class Identity(str):
    """Hash of a job, as text.

    Attributes
    ----------
    about : dict
        Its ``operation``; its ``parameters``, a text by each name; its ``inputs``, by name :func:`described`.
        Empty if unknown.
    """

    about: dict[str, Any]

    def __new__(cls, digest: str, about: Mapping[str, Any]) -> Self:
        """Join a hash and a description."""
        self = super().__new__(cls, digest)
        self.about = dict(about)
        return self

    @classmethod
    def of(cls, operation: str, inputs: Mapping[str, Mapping[str, Any]], **parameters: Any) -> Self:
        """Make the identity of an operation, its parameters, and its inputs as :func:`described`."""
        contents = {name: each["content"] for name, each in inputs.items()}
        digest = digest_of({"operation": operation, "inputs": contents, "parameters": parameters})
        about = {"operation": operation, "parameters": _texts(parameters), "inputs": dict(inputs)}
        return cls(digest, about if len(json.dumps(about)) <= LONGEST else {})

    def derived(self, **parameters: Any) -> "Identity":
        """Return the identity of one array that the job writes, with parameters of its own."""
        digest = digest_of({"job": self, "parameters": parameters})
        texts = {**self.about.get("parameters", {}), **_texts(parameters)}
        return Identity(digest, {**self.about, "parameters": texts} if self.about else {})


def digest_of(content: Mapping[str, Any]) -> str:
    """Hash what JSON can hold, and number systems."""
    text = json.dumps(content, sort_keys=True, default=lambda system: system.__dask_tokenize__())
    return hashlib.sha256(text.encode()).hexdigest()


def described(
    path: str, facts: Mapping[str, Any], parts: list[str], part: str = "chunk", **more: Any
) -> dict[str, Any]:
    """Describe an input: its path, facts that its values follow from, and checksums of its parts, in order.

    ``content`` is the hash of facts and parts; messages call each of them a `part`.
    """
    content = digest_of({"facts": facts, "parts": parts})
    count = -(-len(parts) // PARTS)
    few = parts if count < 2 else [digest_of({"parts": parts[i::PARTS]})[:8] for i in range(PARTS)]
    return {
        "path": redact(path),
        "facts": _texts(facts),
        "content": content,
        "parts": few,
        "part": part,
        **more,
    }


def _texts(values: Mapping[str, Any]) -> dict[str, str]:
    return {name: _text(value) for name, value in values.items()}


def _text(value: Any) -> str:
    """Write a value for people; two different ones have different texts."""
    is_system = isinstance(value, NumberSystem)
    text = value if isinstance(value, str) else repr(value) if is_system else json.dumps(value, default=repr)
    text = redact(text)  # files have it
    if len(text) <= _SHOWN and not is_system:
        return text
    return f"{text[:_SHOWN]}{'...' * (len(text) > _SHOWN)} ({digest_of({'value': value})[:8]})"


def differences(now: Mapping[str, Any], then: Any) -> str:
    """Say in what two descriptions differ, or nothing if that is unknown."""
    try:
        found = list(_differences(now, then))
    except (KeyError, TypeError, ValueError, AttributeError):  # of another version, or nobody's
        return ""
    more = f" and {len(found) - _LISTED} more" if len(found) > _LISTED else ""
    return "; ".join(found[:_LISTED]) + more


def _differences(now: Mapping[str, Any], then: Mapping[str, Any]) -> Iterator[str]:
    if now["operation"] != then["operation"]:
        yield _changed("operation", now["operation"], then["operation"])
    for name, one, other in _pairs(now["parameters"], then["parameters"], str):
        yield _changed(name, one, other)
    for _, one, other in _pairs(now["inputs"], then["inputs"], lambda each: each["content"]):
        if one is None or other is None:
            yield f"input {(one or other)['path']}: it is {'not read now' if one is None else 'new'}"
            continue
        what = f"input {one['path']}"
        facts = list(_pairs(one["facts"], other["facts"], str))
        if one["parts"] != other["parts"]:  # from which a bound follows
            facts = [fact for fact in facts if fact[0] != BOUND]
        if facts:
            yield from (_changed(f"{what}: its {fact}", *pair) for fact, *pair in facts)
        else:
            yield f"{what}: {_changed_parts(one['parts'], other['parts'], one['part'])}"


def _pairs(
    now: Mapping[str, Any], then: Mapping[str, Any], key: Callable[[Any], Any]
) -> Iterator[tuple[str, Any, Any]]:
    """Values by a name in two mappings, where they differ by a key; None where one has no such name."""
    for name in sorted({*now, *then}):
        one, other = now.get(name), then.get(name)
        if one is None or other is None or key(one) != key(other):
            yield name, one, other


def _changed(name: str, now: Any, then: Any) -> str:
    one, other = ("none" if value is None else str(value)[: 2 * _SHOWN] for value in (now, then))
    return f"{name}: {one}, was {other}"


def _changed_parts(now: list[str], then: list[str], part: str) -> str:
    count = sum(one != other for one, other in zip(now, then, strict=False)) + abs(len(now) - len(then))
    if len(now) < 2 or not count:
        return "its content differs"
    if len(now) == PARTS:  # each part may be several chunks
        return f"{count} of its {part}s differ, or more"
    return f"1 {part} differs" if count == 1 else f"{count} {part}s differ"
