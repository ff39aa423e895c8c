"""The commands of scans along an axis, and ``ntt``."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from rnsdask.cli.commands import Command, refuse
from rnsdask.cli.integers import INTEGER
from rnsdask.cli.moduli import split_integers
from rnsdask.cli.options import (
    Connection,
    check_store_path,
    destination_option,
    host_job_options,
    output_option,
    processor_job_options,
    source_argument,
    with_mode,
)
from rnsdask.cli.printing import is_done, tell_derived
from rnsdask.core.ways import Message

if TYPE_CHECKING:
    from rnsdask.lazy.ntt import Order


def _scan(name: str, description: str) -> click.Command:
    """Make the command of a scan."""

    @click.command(name, cls=Command, help=description)
    @source_argument
    @destination_option
    @with_mode
    @host_job_options
    def command(source: str, path: str, **options: Any) -> None:
        check_store_path(path)
        _write_scan(name, source, path, **options)

    return command


def _write_scan(
    name: str,
    source: str,
    path: str,
    *,
    mode: dict[str, Any],
    connection: Connection,
    backend: str,
    progress: bool,
    as_json: bool,
) -> None:
    """Write the scan of a store to a new one, and print that."""
    from rnsdask.jobs.compute import naming
    from rnsdask.jobs.cost import measured
    from rnsdask.jobs.hashes import job_hash
    from rnsdask.jobs.memory_plan import fitting, work_on
    from rnsdask.jobs.sources import OF_INTEGERS, Source
    from rnsdask.jobs.writing import write_array
    from rnsdask.store import Output

    opened = Source.at(source, OF_INTEGERS)
    array = opened.array_with(name, backend=backend)
    if array.ndim != 1:  # whose memory the plan knows
        raise ValueError(
            f"{name} takes an array of one axis, which rnsdask reshape makes; got shape {array.shape}"
        )
    output = Output(path, job_hash(name, {"source": opened.info}), **mode)
    if is_done(name, output, as_json):
        return
    scanned, work = getattr(array, name)(backend=backend), work_on(opened.info, name)
    with (
        connection(work) as client,
        fitting(work, client, backend=backend),
        naming(f"{name} of {source}"),
        measured() as cost,
    ):
        done = write_array(scanned, output, client, progress=progress)
    done = replace(done, bytes_read=2 * array.nbytes)
    tell_derived(name, [source], path, done, cost, as_json, read="read in two passes")


SCANS = (
    _scan("cumsum", "Write the running sums of SRC to a new store."),
    _scan("cummax", "Write the running maxima of SRC to a new store."),
    _scan("cummin", "Write the running minima of SRC to a new store."),
)


@click.command(cls=Command)
@source_argument
@output_option
@click.option("--inverse", is_flag=True, help="The inverse transform.")
@click.option("--negacyclic", is_flag=True, help="With roots of order 2N, for products modulo x**N + 1.")
@click.option(
    "--axis", type=INTEGER, metavar="K", default=-1, show_default=True, help="The axis, of 2**e elements."
)
@click.option(
    "--root",
    metavar="W,W,...",
    help="Other primitive roots of order N, or 2N with --negacyclic: one for each field.",
)
@click.option(
    "--order",
    type=click.Choice(["natural", "bit-reversed"]),
    default="natural",
    show_default=True,
    help="Order of the values.",
)
@with_mode
@processor_job_options
def ntt(
    source: str,
    path: str,
    inverse: bool,
    negacyclic: bool,
    axis: int,
    root: str | None,
    order: "Order",
    mode: dict[str, Any],
    connection: Connection,
    backend: str,
    progress: bool,
    as_json: bool,
) -> None:
    """Write number-theoretic transforms of SRC to a new store.

    SRC has elements of fields. A long axis is transformed in four passes, with temporary stores beside the
    output, at most two at a time; with another root or order in one, with whole lines in memory.
    """
    check_store_path(path)
    from rnsdask.jobs.cost import measured
    from rnsdask.jobs.memory_plan import fitting
    from rnsdask.jobs.sources import OF_NUMBERS, Source, check_target
    from rnsdask.jobs.transform import prepare, write_transform
    from rnsdask.store import Output

    roots = None if root is None else split_integers("--root takes roots", root, "4,16")
    opened = Source.at(source, OF_NUMBERS)
    try:
        prepared = prepare(opened, axis, inverse, negacyclic, backend, root=roots, order=order)
    except (TypeError, ValueError) as error:
        refuse(Message(f"ntt of {source}: ", error))
    output = Output(path, prepared.job, **mode)
    check_target(output, [opened])
    if is_done("ntt", output, as_json):
        return
    with (
        connection(prepared.work) as client,
        fitting(prepared.work, client, backend=backend),
        measured() as cost,
    ):
        done = write_transform(prepared, output, client, progress=progress)
    read = "read" if prepared.passes == 1 else f"read in {prepared.passes} passes"
    fields = {"shape": prepared.result.shape, "passes": prepared.passes}
    tell_derived("ntt", [source], path, done, cost, as_json, what="elements", read=read, **fields)
