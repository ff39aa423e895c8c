"""The commands ``info``, which describes a store, and ``verify``, which reads all of it."""

from typing import TYPE_CHECKING, Any

import click

from rnsdask.cli.commands import Command
from rnsdask.cli.options import Connection, job_options, json_option, store_argument
from rnsdask.cli.printing import CommandError, cost_text, counted, echo, print_json, remark, size_text
from rnsdask.cli.wording import in_options

if TYPE_CHECKING:
    from rnsdask.store import PlainInfo, StoreInfo


@click.command(cls=Command)
@store_argument
@json_option
def info(path: str, as_json: bool) -> None:
    """Describe STORE, without reading its numbers.

    STORE may also be an array that eval wrote for a comparison.
    """
    from rnsdask.store.job import job_of
    from rnsdask.store.opening import load_any
    from rnsdask.store.paths import locate
    from rnsdask.store.plain import is_plain, load_plain
    from rnsdask.store.target import find_described

    job, place = job_of(locate(path)), locate(path).path
    described = find_described(locate(path))
    if is_plain(described):
        _describe_values(*load_plain(described), place, job, as_json)
        return
    found, complete = load_any(described)
    if as_json:
        print_json({"op": "info", **_info_fields(found), "store": place, "complete": complete, "job": job})
        return
    chunk = " x ".join(map(str, found.chunks))
    rows = {
        "store": place,
        found.system.numbers_are: " x ".join(map(str, found.shape)),
        **found.system.summary(),
        "chunks": f"{found.n_chunks} of {chunk} integers, {size_text(found.chunk_bytes)} each",
        "size" if found.system.residue_moduli is None else "residues": size_text(found.nbytes),
        "codecs": ", ".join(found.codecs),
        "complete": "yes" if complete else "no",
        **({} if job is None else {"job": job}),
    }
    echo(*(f"{name:<11}{value}" for name, value in rows.items()))


def _describe_values(found: "PlainInfo", complete: bool, place: str, job: str | None, as_json: bool) -> None:
    """Print what a plain array says about itself."""
    dtype, nbytes = found.dtype.name, found.count * found.dtype.itemsize
    if as_json:
        facts = {name: getattr(found, name) for name in ("count", "shape", "chunks", "n_chunks", "codecs")}
        facts |= {"store": place, "dtype": dtype, "bytes": nbytes, "complete": complete, "job": job}
        print_json({"op": "info", "group": "values", **facts})
        return
    kind = "true and false" if dtype == "bool" else "integers"
    shape, chunk = (" x ".join(map(str, lengths)) for lengths in (found.shape, found.chunks))
    rows = {
        "store": place,
        "values": f"{shape} of {dtype}: {kind}, no store of residues",
        "chunks": f"{found.n_chunks} of {chunk} values",
        "size": size_text(nbytes),
        "codecs": ", ".join(found.codecs),
        "complete": "yes" if complete else "no",
        **({} if job is None else {"job": job}),
    }
    echo(*(f"{name:<11}{value}" for name, value in rows.items()))


def _info_fields(found: "StoreInfo") -> dict[str, Any]:
    return {
        "store": found.path,
        "count": found.count,
        "shape": found.shape,
        "chunks": found.chunks,
        "n_chunks": found.n_chunks,
        "bytes": found.nbytes,
        "signed": found.system.is_signed,
        "bound": found.system.bound,
        **found.system.facts(),
        "codecs": found.codecs,
    }


@click.command(cls=Command)
@store_argument
@job_options
def verify(path: str, connection: Connection, progress: bool, as_json: bool) -> None:
    """Read all of STORE, and print what is wrong with it.

    It prints one problem a line.
    """
    from rnsdask import store
    from rnsdask.jobs import memory_plan
    from rnsdask.jobs.cost import measured
    from rnsdask.jobs.progress import metered
    from rnsdask.jobs.verification import verify as problems_of

    found = store.open_info(path, store.all_systems)
    work = memory_plan.work_on(found, "verify")
    amount = {"numbers": found.count, "nbytes": found.nbytes}
    with (
        connection(work) as client,
        memory_plan.fitting(work, client),
        measured() as cost,
        metered("verify", found.n_chunks, **amount, shown=progress) as meter,
    ):
        problems = [*map(in_options, problems_of(found, client, advance=meter.advance))]
    cost.record("verify", found.count, found.nbytes, problems=len(problems))
    if as_json:
        fields = {"count": found.count, **cost.as_dict(), "bytes_read": found.nbytes, "problems": problems}
        print_json({"op": "verify", "store": path, **fields})
    elif problems:
        echo(*problems)
    else:
        remark(
            f"{path}: {counted(found.count, 'integers')}, whole and valid ({cost_text(found.nbytes, cost)})"
        )
    if problems:
        raise CommandError(f"{path}: {counted(len(problems), 'problems')} found")
