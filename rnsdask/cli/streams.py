"""What commands read and print."""

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from rnsdask.cli.printing import CommandError, counted, echo
from rnsdask.core.files import naming_file
from rnsdask.core.messages import redacted_fields
from rnsdask.core.messages import size_text as size_text

if TYPE_CHECKING:
    from rnsdask.jobs.cost import Cost
    from rnsdask.jobs.writing import Transfer


@contextmanager
def open_input(path: str) -> Iterator[tuple[BinaryIO, str]]:
    """Open a file, or standard input for ``-``; give the stream and its name in messages."""
    if path != "-":
        with naming_file(path), Path(path).open("rb") as stream:
            yield stream, path
    elif sys.stdin is None:
        raise CommandError("standard input is closed")
    else:
        yield sys.stdin.buffer, "<stdin>"


def cost_text(nbytes: int, cost: "Cost") -> str:
    """Write what a job took, and the rate at which it went through so many bytes."""
    parts = [f"{cost.seconds:.3f} s", f"{size_text(nbytes / max(cost.seconds, 1e-9))}/s"]
    if cost.retries:
        parts.append("1 retry" if cost.retries == 1 else f"{cost.retries} retries")
    return ", ".join(parts)


_INTEGERS = frozenset(["bound", "moduli", "product", "radix", "seed", "source", "value", "values"])
"""Fields of integers of any size. What counts or measures, an index or a shape is a number of JSON."""


def print_json(fields: dict[str, Any]) -> None:
    """Print one JSON object on a line; integers of any size are texts, for most readers keep 53 bits."""
    texts = {name: _text(value) if name in _INTEGERS else value for name, value in fields.items()}
    echo(json.dumps(redacted_fields(texts)))


def _text(value: Any) -> Any:
    """Write an integer, or each one of a list, in decimal; anything else stays."""
    from rnsdask.core.integer_text import to_decimal

    if isinstance(value, list | tuple):
        return list(map(_text, value))
    return to_decimal(value) if isinstance(value, int) else value


def is_done(operation: str, path: str, identity: str | None, mode: dict[str, bool], as_json: bool) -> bool:
    """Return whether --resume finds the store of this very job complete, and print that line if so."""
    from rnsdask import store

    overwrite, place = mode["overwrite"], store.locate(path)
    if not (mode["resume"] and store.is_completed_by(place, identity, overwrite=overwrite)):
        return False
    tell_done(operation, {"output": path}, as_json)
    return True


def tell_done(operation: str, paths: dict[str, str], as_json: bool) -> None:
    """Print that the job has completed stores before, given by their names in JSON."""
    if as_json:
        print_json({"op": operation, **paths, "already_complete": True})
        return
    for path in paths.values():
        echo(f"{path}: complete already, by this very job; nothing to do")


def tell_derived(
    operation: str,
    sources: Sequence[str],
    path: str,
    done: "Transfer",
    cost: "Cost",
    as_json: bool,
    *,
    what: str = "integers",
    read: str = "read",
    **fields: Any,
) -> None:
    """Tell of a store that was made of others; `fields` are what JSON has besides."""
    cost.record(operation, done.count, done.bytes_read)
    if as_json:
        named = {"store": sources[0]} if len(sources) == 1 else {"stores": list(sources)}
        print_json({"op": operation, **named, "output": path, **fields, **done.as_dict(), **cost.as_dict()})
        return
    work = f"{size_text(done.bytes_read)} {read} ({cost_text(done.bytes_read, cost)})"
    echo(f"{path}: {counted(done.count, what)}, {size_text(done.bytes_written)}; {work}{done.resumed_text}")
