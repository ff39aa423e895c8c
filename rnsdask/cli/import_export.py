"""Commands that bring integers into a store and out of it."""

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypedDict

import click

from rnsdask.cli.errors import Command, refuse, refusing
from rnsdask.cli.options import (
    binary_option,
    json_option,
    progress_option,
    store_argument,
    with_creation,
    with_log,
    with_moduli,
)
from rnsdask.cli.printing import echo, output_errors
from rnsdask.cli.streams import cost_text, open_input, print_json, size_text

if TYPE_CHECKING:
    from rnsdask.core.moduli import ModuliSet


@click.command("import", cls=Command)
@click.argument("source", metavar="INPUT")
@store_argument
@with_moduli
@with_creation
@binary_option
@with_log
@progress_option
@json_option
def import_(
    source: str,
    path: str,
    moduli: "ModuliSet",
    signed: bool,
    chunks: Any,
    mode: dict[str, bool],
    width: int | None,
    progress: bool,
    as_json: bool,
) -> None:
    """Write the integers of INPUT (- for standard input) to a new STORE.

    INPUT is text, with one decimal or 0x hexadecimal integer on every line and nothing else; or, with
    --binary, integers of a fixed width, in two's complement with --signed. It is read piece by piece, so it
    may have any size.
    """
    from rnsdask.core import layout
    from rnsdask.jobs import integers, memory_plan
    from rnsdask.jobs.cost import measured
    from rnsdask.jobs.integer_streams import BinaryReader, TextReader, remaining_bytes
    from rnsdask.jobs.progress import metered
    from rnsdask.rns.system import RNS

    with refusing():
        length = layout.normalize_chunks(chunks, (0,), len(moduli))
    system = RNS(moduli, signed)
    lowest, highest = system.value_range
    work = memory_plan.describe("import", len(moduli), length, length, cut=1)
    with memory_plan.fitting(work), open_input(source) as (stream, name):
        reader = (
            TextReader(stream, name, lowest, highest)
            if width is None
            else BinaryReader(stream, name, width, lowest, highest, signed=signed)
        )
        size = remaining_bytes(stream)
        with measured() as cost, metered("import", size, nbytes=size or 0, shown=progress) as meter:
            done = integers.import_integers(
                reader, name, path, system, chunks=chunks, advance=meter.advance, **mode
            )
    cost.record("import", done.count, done.bytes_read)
    if as_json:
        print_json({"op": "import", "store": path, "input": name, **done.as_dict(), **cost.as_dict()})
    else:
        time_taken = cost_text(done.bytes_read, cost)
        echo(f"{path}: {done.count} integers, {size_text(done.bytes_written)} of residues;")
        echo(f"  {size_text(done.bytes_read)} of {name} read ({time_taken}){done.resumed_text}")


class _Form(TypedDict):
    hexadecimal: bool
    width: int | None


@click.command(cls=Command)
@store_argument
@click.argument("output", metavar="OUTPUT")
@click.option("--hex", "hexadecimal", is_flag=True, help="Write 0x hexadecimal instead of decimal.")
@binary_option
@click.option("--overwrite", is_flag=True, help="Replace OUTPUT if there is such a file.")
@with_log
@progress_option
@json_option
def export(
    path: str,
    output: str,
    hexadecimal: bool,
    width: int | None,
    overwrite: bool,
    progress: bool,
    as_json: bool,
) -> None:
    """Write the integers of STORE to OUTPUT (- for standard output), as import reads them."""
    if hexadecimal and width is not None:
        refuse("give --hex or --binary, not both")
    if as_json and output == "-":
        refuse("--json needs an OUTPUT other than -")
    from rnsdask import store
    from rnsdask.jobs import integers, memory_plan
    from rnsdask.jobs.cost import measured
    from rnsdask.jobs.progress import metered

    found = store.open_info(path)
    form: _Form = {"hexadecimal": hexadecimal, "width": width}
    amount = {"numbers": found.count, "nbytes": found.nbytes}
    with (
        memory_plan.fitting(memory_plan.work_on(found, "export")),
        measured(paths=[found.path]) as cost,
        metered("export", found.count, **amount, shown=progress) as meter,
        _output(output, overwrite) as stream,
    ):
        done = integers.export_integers(found, stream, advance=meter.advance, **form)
    cost.record("export", done.count, done.bytes_read)
    if as_json:
        print_json({"op": "export", "store": path, "output": output, **done.as_dict(), **cost.as_dict()})
    elif output != "-" or progress:
        written = done.bytes_written
        work = f"{size_text(written)} ({cost_text(written, cost)})"
        echo(f"{output}: {done.count} integers, {work}", err=output == "-")


def _output(path: str, overwrite: bool) -> AbstractContextManager[BinaryIO]:
    from rnsdask.core.files import new_file

    return _standard_output() if path == "-" else new_file(Path(path), overwrite=overwrite)


@contextmanager
def _standard_output() -> Iterator[BinaryIO]:
    with output_errors():
        yield sys.stdout.buffer
