"""The command ``group``, which reduces the groups of a store by labels."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rnsdask.cli.commands import Command, refuse
from rnsdask.cli.derivations import derive
from rnsdask.cli.options import (
    LOCAL_PATH,
    Connection,
    complete_path,
    digits_option,
    processor_job_options,
    store_argument,
    with_mode,
)
from rnsdask.cli.printing import cost_text, echo, number_text, print_json, size_text
from rnsdask.cli.reductions import compute_of
from rnsdask.core.ways import Message

if TYPE_CHECKING:
    from rnsdask.jobs.memory_plan import Work
    from rnsdask.store import StoreInfo

_OPERATIONS = ("sum", "prod", "max", "min", "gcd", "count")


@click.command("group", cls=Command)
@store_argument
@click.option(
    "--by",
    metavar="FILE[:COLUMN]",
    required=True,
    shell_complete=complete_path,
    help="Labels, one for each number: a column of Parquet or CSV by its name or number, a field of JSON "
    "lines, a NumPy file, lines of text, or a Zarr array.",
)
@click.option(
    "--op",
    "operation",
    type=click.Choice(_OPERATIONS),
    default="sum",
    show_default=True,
    help="What becomes of the numbers of a group.",
)
@click.option(
    "-o",
    "--output",
    "output",
    metavar="STORE",
    shell_complete=complete_path,
    help="New store of the results, in the order of the labels, which are then not printed.",
)
@click.option(
    "--labels",
    "labels_path",
    metavar="FILE",
    type=LOCAL_PATH,
    help="With -o: new file of the groups' labels, as JSON, one a line.",
)
@with_mode
@digits_option
@processor_job_options
def group(
    path: str,
    by: str,
    operation: str,
    output: str | None,
    labels_path: str | None,
    mode: dict[str, bool],
    connection: Connection,
    backend: str,
    progress: bool,
    as_json: bool,
) -> None:
    """Print the sum of each group of STORE.

    Or its product, extremes, greatest common divisor or count. Numbers with the same label are a group; a
    line is a label and its result, in the order of the labels.
    """
    if output is None:
        if labels_path is not None or any(mode.values()):
            refuse("--labels, --overwrite and --resume need -o")
        _print_groups(path, by, operation, connection, backend, progress, as_json)
        return
    if operation == "count":
        refuse("--op count goes without -o: counts are printed")
    from rnsdask.jobs.grouping import bytes_held, labels_at, labels_hash
    from rnsdask.lazy.groups import group_reduce

    if labels_path is not None:
        _check_labels_path(Path(labels_path), by, output, mode)
    labels, found = labels_at(by), {}

    def make(x: Any) -> Any:
        found["labels"], result = group_reduce(x, labels, operation)  # type: ignore[call-overload]
        return result

    def memory(x: Any) -> dict[str, Any]:
        return {"held": bytes_held(x.size, x.system.words32, x.npartitions, len(found["labels"]))}

    about: dict[str, Any] = {"by": labels_hash(by, output), "op": operation}
    how: dict[str, Any] = {"mode": mode, "connection": connection, "progress": progress, "as_json": as_json}
    derive("group", [path], output, make, of_fields=True, memory=memory, backend=backend, **about, **how)
    if labels_path is not None:
        lines = _lines_of(found["labels"].tolist())
        if mode["resume"]:
            _check_same_labels(Path(labels_path), lines)
        _write_labels(labels_path, lines, replace=any(mode.values()))


def _check_labels_path(path: Path, by: str, output: str, mode: dict[str, bool]) -> None:
    """Raise JobError if the file of labels exists, has no folder, or is another file of the job."""
    from rnsdask.core.errors import JobError
    from rnsdask.core.ways import REPLACE, with_ways
    from rnsdask.jobs.grouping import split_place

    if path.resolve() in (Path(split_place(by)[0]).resolve(), Path(output).resolve()):
        raise JobError(f"{path}: the job reads or writes it otherwise; give --labels another path")
    if not path.parent.is_dir():
        raise JobError(f"{path}: there is no folder {path.parent}")
    if path.exists() and not any(mode.values()):
        raise JobError(with_ways(f"{path}: it exists", REPLACE))


def _check_same_labels(path: Path, lines: bytes) -> None:
    """Raise JobError if a job that goes on would replace a file that has something else than its labels."""
    from rnsdask.core.errors import JobError
    from rnsdask.core.files import naming_file
    from rnsdask.core.ways import REPLACE, with_ways

    with naming_file(path):
        if path.is_file() and path.stat().st_size and path.read_bytes() != lines:
            raise JobError(with_ways(f"{path}: it has other content than the labels of this job", REPLACE))


def _lines_of(labels: list[Any]) -> bytes:
    return "".join(json.dumps(label, default=str) + "\n" for label in labels).encode()


def _write_labels(labels_path: str, lines: bytes, *, replace: bool) -> None:
    from rnsdask.core.files import naming_file, new_file

    with naming_file(labels_path), new_file(Path(labels_path), overwrite=replace) as stream:
        stream.write(lines)


def _print_groups(
    path: str, by: str, operation: str, connection: Connection, backend: str, progress: bool, as_json: bool
) -> None:
    """Print a line for each group: its label and its number."""
    from rnsdask.core.integer_text import to_decimal
    from rnsdask.jobs.grouping import bytes_held, labels_at
    from rnsdask.jobs.memory_plan import work_on
    from rnsdask.jobs.sources import OF_NUMBERS
    from rnsdask.lazy.groups import group_reduce

    labels, found = labels_at(by), {}

    def work(info: "StoreInfo") -> "Work":
        from dataclasses import replace

        held = bytes_held(info.count, info.system.words32, info.n_chunks, info.count)
        return replace(work_on(info, "group"), held=held)

    def function(x: Any, **_: Any) -> list[Any]:
        found["labels"], result = group_reduce(x, labels, operation)  # type: ignore[call-overload]
        if result.ndim > 1:
            raise ValueError(f"results of shape {result.shape} are not printed; -o writes a store")
        return [result if operation == "count" else result.astype(object)]

    how: dict[str, Any] = {"work": work, "systems": OF_NUMBERS}
    try:
        (values,), array, cost = compute_of("group", path, function, connection, backend, progress, **how)
    except (TypeError, ValueError) as error:
        refuse(Message(f"group of {path}: ", error))
    names, texts = found["labels"].tolist(), list(map(to_decimal, values.tolist()))
    if as_json:
        named = [list(map(str, label)) if isinstance(label, tuple) else str(label) for label in names]
        fields = {"by": by, "reduction": operation, "labels": named, "values": texts, "count": array.size}
        print_json({"op": "group", "store": path, **fields, **cost.as_dict(), "bytes_read": array.nbytes})
        return
    for label, text in zip(names, texts, strict=True):
        echo(f"{label}\t{number_text(text)}")
    if progress:
        echo(f"({size_text(array.nbytes)} in {cost_text(array.nbytes, cost)})", err=True)
