"""Commands that make a store of random integers, describe a store, and verify one."""

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import click

from rnsdask.cli.errors import Command, refusing
from rnsdask.cli.options import (
    POSITIVE,
    json_option,
    progress_option,
    store_argument,
    with_cluster,
    with_creation,
    with_moduli,
)
from rnsdask.cli.printing import CommandError, echo
from rnsdask.cli.streams import cost_text, print_json, progress_bar, size_text

if TYPE_CHECKING:
    from rnsdask.core.moduli import ModuliSet
    from rnsdask.store import StoreInfo


@click.command(cls=Command)
@store_argument
@click.option("--count", type=POSITIVE, required=True, metavar="N", help="How many integers.")
@with_moduli
@click.option(
    "--seed", type=click.IntRange(min=0), help="Of the generator; by default a new one, which is told."
)
@with_creation
@with_cluster
@progress_option
@json_option
def random(
    path: str,
    count: int,
    moduli: "ModuliSet",
    seed: int | None,
    signed: bool,
    chunks: Any,
    mode: dict[str, bool],
    connection: AbstractContextManager[Any],
    progress: bool,
    as_json: bool,
) -> None:
    """Write uniform random integers to a new STORE; the same seed and chunk give the same bytes.

    Without --seed one is drawn, and told on standard error at once: to repeat the numbers, or to --resume.
    """
    from rnsdask.arrays import creation
    from rnsdask.jobs import job, plan
    from rnsdask.jobs.identity import recipe
    from rnsdask.jobs.summary import measured

    is_told = seed is None
    if seed is None:
        if mode.get("resume"):
            raise click.UsageError("--resume needs --seed, the one that the store was begun with")
        seed = creation.fresh_seed()
    with refusing():
        array = creation.random(moduli, count, seed=seed, chunks=chunks, signed=signed)
    work = plan.describe("random", len(moduli), array.shape, array.residues.chunksize[1:])
    options: dict[str, Any] = {"progress": progress, "recipe": recipe("random", {}, seed=seed), **mode}
    if is_told:  # before a job that may be cut off, and goes on with the same seed only
        options["begun"] = lambda: echo(f"rnsdask: seed {seed}", err=True)
    with connection as client, plan.fitting(work, client), measured(client) as cost:
        transfer = job.write_array(array, path, client, **options)
    cost.record("random", array.size, array.nbytes, seed=seed)
    if as_json:
        print_json({"op": "random", "store": path, "seed": seed, **transfer.as_dict(), **cost.as_dict()})
    else:
        size, time_taken = size_text(array.nbytes), cost_text(array.nbytes, cost)
        echo(f"{path}: {count} random integers, {size} of residues ({time_taken}){transfer.resumed_text}")


@click.command(cls=Command)
@store_argument
@json_option
def info(path: str, as_json: bool) -> None:
    """Describe STORE, without reading its chunks."""
    from rnsdask.store.group import describe_group
    from rnsdask.store.metadata import load
    from rnsdask.store.paths import locate

    kind, found, complete = describe_group(path) or (None, *load(locate(path)))
    place = locate(path).path
    if as_json:
        group = {} if kind is None else {"group": kind}
        print_json({"op": "info", **_info_fields(found), **group, "store": place, "complete": complete})
        return
    chunk = " x ".join(map(str, found.chunks))
    group = {} if kind is None else {"group": f"{kind}: magnitudes, with signs and intervals"}
    rows = {
        "store": place,
        **group,
        "integers": " x ".join(map(str, found.shape)),
        "moduli": repr(found.moduli),
        "range": _range_text(found, kind),
        "magnitude": "unknown" if found.bound is None else f"at most {found.bound.bit_length()} bits",
        "chunks": f"{found.n_chunks} of {chunk} integers, {size_text(found.chunk_bytes)} each",
        "residues": size_text(found.nbytes),
        "codecs": ", ".join(found.codecs),
        "complete": "yes" if complete else "no",
    }
    echo(*(f"{name:<11}{value}" for name, value in rows.items()))


def _range_text(found: "StoreInfo", kind: str | None) -> str:
    if kind is not None:
        return "signed, -(M-1) to M-1"
    return "signed, -(M//2) to (M-1)//2" if found.signed else "unsigned, 0 to M-1"


def _info_fields(found: "StoreInfo") -> dict[str, Any]:
    return {
        "store": found.path,
        "count": found.count,
        "shape": found.shape,
        "chunks": found.chunks,
        "n_chunks": found.n_chunks,
        "bytes": found.nbytes,
        "signed": found.signed,
        "bound": None if found.bound is None else hex(found.bound),
        "bits": found.moduli.bits,
        "moduli": list(found.moduli),
        "codecs": found.codecs,
    }


@click.command(cls=Command)
@store_argument
@with_cluster
@progress_option
@json_option
def verify(path: str, connection: AbstractContextManager[Any], progress: bool, as_json: bool) -> None:
    """Read all of STORE, and print what is wrong with it, one problem a line."""
    from rnsdask import store
    from rnsdask.arrays import interval_rns_storage
    from rnsdask.interval_rns import layout
    from rnsdask.jobs import job, plan
    from rnsdask.jobs.summary import measured

    described: store.StoreInfo | store.GroupInfo
    if store.describe_group(path) is None:
        described = found = store.open_info(path)
        work = plan.work_on(found, "verify")
    else:
        described = interval_rns_storage.open_info(path)
        found = described.residues
        # Residues and headers, and those of a new evaluation beside them.
        rows = 2 * layout.rows_of(found.moduli)
        work = plan.describe("verify", rows, found.shape, found.chunks, direct=False)
    amount = {"numbers": found.count, "nbytes": found.nbytes}
    with (
        connection as client,
        plan.fitting(work, client),
        measured(client, [found.path]) as cost,
        progress_bar(progress, "verify", found.n_chunks, **amount) as advance,
    ):
        problems = job.verify(described, client, advance=advance)
    cost.record("verify", found.count, found.nbytes, problems=len(problems))
    if as_json:
        fields = {"count": found.count, **cost.as_dict(), "bytes_read": found.nbytes, "problems": problems}
        print_json({"op": "verify", "store": path, **fields})
    elif problems:
        echo(*problems)
    else:
        echo(f"{path}: {found.count} integers, whole and valid ({cost_text(found.nbytes, cost)})")
    if problems:
        raise CommandError(f"{path}: {len(problems)} problem{'s' if len(problems) > 1 else ''} found")
