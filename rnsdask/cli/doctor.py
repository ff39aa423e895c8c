"""The command ``doctor``, which says what of an installation and a machine works."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import click

from rnsdask.cli.commands import Command, refuse
from rnsdask.cli.integers import INTEGER, POSITIVE
from rnsdask.cli.options import complete_path, json_option, progress_option, with_scheduler
from rnsdask.cli.printing import print_json, print_table
from rnsdask.cli.wording import in_options

if TYPE_CHECKING:
    from rnsdask.doctor.findings import Finding

_SECONDS = 60
"""Time of a burn-in without ``--seconds``: so long that a card is as warm as in a job."""

_STYLES = {"ok": "green", "warning": "yellow", "fault": "bold red"}
_STATE_WIDTH, _SUBJECT_WIDTH = 7, 16


@click.command(cls=Command)
@click.argument("path", metavar="[STORE]", required=False, shell_complete=complete_path)
@click.option("--gpu", is_flag=True, help="Compute on each GPU, check every result, and measure rates.")
@click.option(
    "--seconds", type=POSITIVE, metavar="N", help=f"With --gpu: time to compute.  [default: {_SECONDS}]"
)
@click.option("--seed", type=INTEGER, metavar="N", help="With --gpu: seed of the data.  [default: drawn]")
@with_scheduler
@progress_option
@json_option
def doctor(
    path: str | None,
    gpu: bool,
    seconds: int | None,
    seed: int | None,
    cluster: Callable[[], Any],
    progress: bool,
    as_json: bool,
) -> None:
    """Say what of this installation and machine works.

    A line for each check says ok, warning or fault, and then the way out. With a scheduler it checks the
    cluster, and with STORE that all workers see the same. Exit status 0: no fault; 1: at least one.
    """
    if not gpu and (seconds, seed) != (None, None):
        refuse("--seconds and --seed need --gpu")
    if seed is not None and seed < 0:
        refuse(f"--seed must be at least 0, got {seed}")
    from rnsdask.doctor.findings import State

    findings = []
    for finding in _findings(path, gpu, seconds or _SECONDS, seed, cluster, progress):
        findings.append(finding)
        if not as_json:
            _show(finding)
    states = [finding.state for finding in findings]
    worst = max(states, key=list(State).index)
    if as_json:
        print_json({"op": "doctor", "store": path, "state": worst, "checks": list(map(_fields, findings))})
    if worst is State.FAULT:
        click.get_current_context().exit(1)


def _findings(
    path: str | None,
    gpu: bool,
    seconds: int,
    seed: int | None,
    cluster: Callable[[], Any],
    progress: bool,
) -> Iterator["Finding"]:
    """Run all checks, those first that explain the faults of others."""
    from rnsdask.doctor.findings import run_checks

    gpus: list[int] = []
    yield from run_checks(
        [
            ("packages", _check_installation),
            ("machine", _check_machine),
            ("GPU", lambda: _check_gpus(gpu, gpus)),
            ("cluster", lambda: _check_cluster(cluster, path)),
        ]
    )
    if gpu and gpus:
        yield from run_checks([("burn-in", lambda: _burn_in(gpus, seconds, seed, progress))])


# Each imports what it needs, so that what cannot be imported is one fault among the others.


def _check_installation() -> Iterator["Finding"]:
    from rnsdask.doctor import installation
    from rnsdask.doctor.findings import run_checks

    checks = {
        "packages": installation.check_versions,
        "extras": installation.check_extras,
        "extension": installation.check_extension,
    }
    yield from run_checks(checks.items())


def _check_machine() -> Iterator["Finding"]:
    from rnsdask.doctor import machine
    from rnsdask.doctor.findings import run_checks

    checks = {
        "cores": machine.check_cores,
        "memory": machine.check_memory,
        "temporary folder": machine.check_temporary_folder,
        "kernel cache": machine.check_kernel_cache,
        "shared memory": machine.check_shared_memory,
        "open files": machine.check_open_files,
        "settings": machine.check_settings,
    }
    yield from run_checks(checks.items())


def _check_gpus(needed: bool, found: list[int]) -> Iterator["Finding"]:
    from rnsdask.doctor.gpus import check_gpus

    yield from check_gpus(needed, found)


def _check_cluster(connect: Callable[[], Any], path: str | None) -> Iterator["Finding"]:
    from rnsdask.doctor.cluster import check_cluster

    yield from check_cluster(connect, path)


def _burn_in(gpus: list[int], seconds: int, seed: int | None, progress: bool) -> Iterator["Finding"]:
    import secrets

    from rnsdask.doctor.gpus import check_by_burn_in, check_rates
    from rnsdask.jobs.progress import metered

    drawn = secrets.randbits(32) if seed is None else seed
    with metered("burn-in", seconds, shown=progress) as meter:
        found = list(check_by_burn_in(gpus, seconds, drawn, lambda done: meter.update(int(done), seconds)))
    yield from found
    yield from check_rates(gpus)


def _fields(finding: "Finding") -> dict[str, Any]:
    fields = {"check": finding.subject, "state": finding.state, "text": in_options(finding.text)}
    return {**fields, "way_out": finding.way_out or None, **finding.facts}


def _show(finding: "Finding") -> None:
    """Print a finding in columns: its state, what was checked, what was found, and below it the way out."""
    from rich.table import Table
    from rich.text import Text

    from rnsdask.core.messages import escape, redact

    table = Table.grid(padding=(0, 2, 0, 0))
    for width in (_STATE_WIDTH, _SUBJECT_WIDTH):
        table.add_column(width=width)
    table.add_column(overflow="fold")
    state, subject = Text(finding.state, style=_STYLES[finding.state]), Text(finding.subject)
    table.add_row(state, subject, Text(escape(redact(in_options(finding.text)))))
    if finding.way_out:
        table.add_row("", "", Text(f"-> {escape(redact(finding.way_out))}"))
    print_table(table)
