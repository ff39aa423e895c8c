"""The command ``ntt``."""

from contextlib import AbstractContextManager
from typing import Any

import click

from rnsdask.cli.errors import Command, refuse
from rnsdask.cli.integers import INTEGER
from rnsdask.cli.options import (
    check_store_path,
    output_option,
    processor_job_options,
    source_argument,
    with_mode,
)
from rnsdask.cli.streams import is_done, tell_derived


@click.command(cls=Command)
@source_argument
@output_option
@click.option("--inverse", is_flag=True, help="The inverse transform.")
@click.option("--negacyclic", is_flag=True, help="With roots of order 2N, for products modulo x**N + 1.")
@click.option(
    "--axis", type=INTEGER, metavar="K", default=-1, show_default=True, help="The axis, of 2**e elements."
)
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
    """Write number-theoretic transforms of SRC to a new store.

    SRC has elements of fields. A long axis is transformed in four passes, with stores between them beside the
    output, of which at most two are there at a time.
    """
    check_store_path(path)
    from rnsdask.jobs.cost import measured
    from rnsdask.jobs.memory_plan import fitting
    from rnsdask.jobs.sources import OF_NUMBERS, Source, check_target
    from rnsdask.jobs.transform import prepare, write_transform

    opened = Source.at(source, OF_NUMBERS)
    try:
        prepared = prepare(opened, axis, inverse, negacyclic, backend)
    except (TypeError, ValueError) as error:
        refuse(f"ntt of {source}: {error}")
    check_target(path, [opened])
    if is_done("ntt", path, prepared.identity, mode, as_json):
        return
    with (
        connection as client,
        fitting(prepared.work, client, backend=backend),
        measured() as cost,
    ):
        done = write_transform(prepared, path, client, progress=progress, **mode)
    read = "read" if prepared.passes == 1 else f"read in {prepared.passes} passes"
    fields = {"shape": prepared.result.shape, "passes": prepared.passes}
    tell_derived("ntt", [source], path, done, cost, as_json, what="elements", read=read, **fields)
