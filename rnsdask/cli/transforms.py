"""The command ``ntt``."""

from contextlib import AbstractContextManager
from typing import Any

import click

from rnsdask.cli.errors import Command, refuse
from rnsdask.cli.options import check_store_path, complete_path, processor_job_options, with_mode
from rnsdask.cli.printing import echo
from rnsdask.cli.streams import cost_text, print_json, size_text


@click.command(cls=Command)
@click.argument("source", metavar="SRC", shell_complete=complete_path)
@click.option(
    "-o",
    "--output",
    "path",
    metavar="STORE",
    required=True,
    shell_complete=complete_path,
    help="The new store.",
)
@click.option("--inverse", is_flag=True, help="The inverse transform.")
@click.option("--negacyclic", is_flag=True, help="With roots of order 2N, for products modulo x**N + 1.")
@click.option("--axis", type=int, default=-1, show_default=True, help="The axis, of 2**e elements.")
@with_mode
@processor_job_options
def ntt(
    source: str,
    path: str,
    inverse: bool,
    negacyclic: bool,
    axis: int,
    mode: dict[str, Any],
    connection: AbstractContextManager[Any],
    backend: str,
    progress: bool,
    as_json: bool,
) -> None:
    """Write the number-theoretic transforms of the field elements in SRC to a new store.

    A long axis is transformed in four passes, with stores between them beside the output, of which at most
    two are there at a time.
    """
    check_store_path(path)
    from rnsdask.jobs.cost import measured
    from rnsdask.jobs.memory_plan import fitting
    from rnsdask.jobs.sources import OF_NUMBERS, Source
    from rnsdask.jobs.transform import prepare, write_transform

    opened = Source.at(source, OF_NUMBERS)
    try:
        prepared = prepare(opened, axis, inverse, negacyclic, backend)
    except (TypeError, ValueError) as error:
        refuse(f"ntt of {source}: {error}")
    paths = [opened.residues.path, *prepared.places(path)]
    with (
        connection as client,
        fitting(prepared.work, client, backend=backend),
        measured(client, paths) as cost,
    ):
        done = write_transform(prepared, path, client, progress=progress, **mode)
    cost.record("ntt", done.count, done.bytes_read)
    if as_json:
        fields = {"op": "ntt", "store": source, "output": path, "shape": prepared.result.shape}
        print_json({**fields, "passes": prepared.passes, **done.as_dict(), **cost.as_dict()})
        return
    passes = "" if prepared.passes == 1 else f" in {prepared.passes} passes"
    work = f"{size_text(done.bytes_read)} read{passes} ({cost_text(done.bytes_read, cost)})"
    echo(f"{path}: {done.count} elements, {size_text(done.bytes_written)}; {work}{done.resumed_text}")
