"""The commands ``cumsum``, ``cummax`` and ``cummin``."""

from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

import click

from rnsdask.cli.errors import Command
from rnsdask.cli.options import (
    check_store_path,
    destination_argument,
    host_job_options,
    source_argument,
    with_mode,
)
from rnsdask.cli.streams import is_done, tell_derived


def _scan(name: str, description: str) -> click.Command:
    """Make the command of a scan."""

    @click.command(name, cls=Command, help=description)
    @source_argument
    @destination_argument
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
    connection: AbstractContextManager[Any],
    backend: str,
    progress: bool,
    as_json: bool,
) -> None:
    """Write the scan of a store or a group to a new one, and tell of it."""
    from rnsdask.jobs.compute import naming
    from rnsdask.jobs.cost import measured
    from rnsdask.jobs.identity import job_identity
    from rnsdask.jobs.memory_plan import fitting, work_on
    from rnsdask.jobs.sources import OF_INTEGERS, Source
    from rnsdask.jobs.writing import write_array

    opened = Source.at(source, OF_INTEGERS)
    array = opened.array_with(name, backend=backend)
    if array.ndim != 1:  # whose memory the plan knows
        raise ValueError(
            f"{name} takes an array of one axis, which rnsdask reshape makes; got shape {array.shape}"
        )
    identity = job_identity(name, {"source": opened.info})
    if is_done(name, path, identity, mode, as_json):
        return
    scanned = getattr(array, name)(backend=backend)
    with (
        connection as client,
        fitting(work_on(opened.info, name), client, backend=backend),
        naming(f"{name} of {source}"),
        measured() as cost,
    ):
        done = write_array(scanned, path, client, progress=progress, job_identity=identity, **mode)
    done = replace(done, bytes_read=2 * array.nbytes)
    tell_derived(name, [source], path, done, cost, as_json, read="read in two passes")


SCANS = (
    _scan("cumsum", "Write the running sums of SRC to a new store DST."),
    _scan("cummax", "Write the running maxima of SRC to a new store DST."),
    _scan("cummin", "Write the running minima of SRC to a new store DST."),
)
