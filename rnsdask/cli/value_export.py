"""What ``export`` does for groups, Booleans and signs: the same as for stores."""

from contextlib import AbstractContextManager
from typing import BinaryIO

from rnsdask.cli.printing import echo
from rnsdask.cli.streams import cost_text, print_json, size_text


def export_values(
    path: str,
    output: str,
    opened: AbstractContextManager[BinaryIO],
    hexadecimal: bool,
    width: int | None,
    progress: bool,
    as_json: bool,
) -> bool:
    """Write what is at a path to an output, unless it is a store; tell whether that was done."""
    from rnsdask.jobs import memory_plan
    from rnsdask.jobs.cost import measured
    from rnsdask.jobs.progress import metered
    from rnsdask.jobs.value_export import Values

    found = Values.at(path)
    if found is None:
        return False
    count = found.array.count
    with (
        memory_plan.fitting(found.work),
        measured(paths=[found.array.path]) as cost,
        metered("export", count, numbers=count, nbytes=found.nbytes, shown=progress) as meter,
        opened as stream,
    ):
        done = found.export(stream, hexadecimal=hexadecimal, width=width, advance=meter.advance)
    cost.record("export", done.count, done.bytes_read)
    if as_json:
        print_json({"op": "export", "store": path, "output": output, **done.as_dict(), **cost.as_dict()})
    elif output != "-" or progress:
        work = f"{size_text(done.bytes_written)} ({cost_text(done.bytes_written, cost)})"
        echo(f"{output}: {done.count} values, {work}", err=output == "-")
    return True
