"""The commands ``topk`` and ``compare``, which read stores once and print little."""

import re
from contextlib import AbstractContextManager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from rnsdask.cli.errors import Command, ComparingCommand
from rnsdask.cli.options import (
    json_option,
    processor_options,
    progress_option,
    store_argument,
    with_cluster,
)
from rnsdask.cli.printing import CommandError, echo
from rnsdask.cli.streams import cost_text, print_json, size_text

if TYPE_CHECKING:
    from rnsdask.arrays.rns_array import RNSArray

_INTEGER = re.compile(r"[+-]?(?:0[xX][0-9a-fA-F]+|[0-9]+)")

# So that -3 is an argument, not an option.
_NEGATIVE_NUMBERS = {"ignore_unknown_options": True}


@click.command(cls=Command, context_settings=_NEGATIVE_NUMBERS)
@click.argument("k", metavar="K", type=int)
@store_argument
@with_cluster
@processor_options
@progress_option
@json_option
def topk(
    k: int, path: str, connection: AbstractContextManager[Any], backend: str, progress: bool, as_json: bool
) -> None:
    """Print the K greatest integers of STORE with their indices, the greatest first.

    A negative K gives the -K least, the least first. Equal integers come by index, the lowest first.
    """
    from rnsdask import store
    from rnsdask.arrays import creation
    from rnsdask.core.integer_text import to_decimal
    from rnsdask.jobs import job
    from rnsdask.jobs.plan import fitting, work_on
    from rnsdask.jobs.summary import measured

    info = store.open_info(path)
    with connection as client, fitting(work_on(info, "topk"), client, backend=backend, info=info) as part:
        array = creation.open_rns(path, part=part, backend=backend)
        found = [array.topk(k, backend=backend), array.argtopk(k, backend=backend)]
        amount: dict[str, Any] = {"numbers": array.size, "nbytes": array.nbytes}
        with measured(client, [info.path]) as cost:
            values, indices = job.compute(found, client, progress=progress, label="topk", **amount)
    cost.record("topk", array.size, array.nbytes)
    texts = [to_decimal(value) for value in values]
    if as_json:
        fields = {"k": k, "values": texts, "indices": indices.tolist(), "count": array.size}
        cost_fields = {**cost.as_dict(), "bytes_read": array.nbytes}
        print_json({"op": "topk", "store": path, **fields, **cost_fields})
        return
    for index, text in zip(indices, texts, strict=True):
        echo(f"{index}\t{text}")
    if progress:  # on standard output are results alone
        echo(f"({size_text(array.nbytes)} in {cost_text(array.nbytes, cost)})", err=True)


@click.command(cls=ComparingCommand, context_settings=_NEGATIVE_NUMBERS)
@click.argument("path", metavar="A")
@click.argument("other", metavar="B")
@with_cluster
@processor_options
@progress_option
@json_option
def compare(
    path: str,
    other: str,
    connection: AbstractContextManager[Any],
    backend: str,
    progress: bool,
    as_json: bool,
) -> None:
    """Compare the integers of store A with those of store B, or with the integer B.

    Prints how many are less, equal and greater, and the first index where they differ. Exit status 0: all
    are equal; 1: some differ; 2: trouble. A store whose name is an integer is written ./NAME.
    """
    from rnsdask import store
    from rnsdask.arrays import creation
    from rnsdask.jobs import job
    from rnsdask.jobs.plan import fitting, work_on
    from rnsdask.jobs.summary import measured
    from rnsdask.lazy.order_counts import tally

    first = creation.open_rns(path, backend=backend)
    second = _integer(other) if _INTEGER.fullmatch(other) else _store(first, path, other, backend)
    arrays = [first] if isinstance(second, int) else [first, second]
    infos = [store.open_info(store_path) for store_path in (path, other)[: len(arrays)]]
    paths = [info.path for info in infos]
    work = work_on(infos[0], "compare", stores=len(arrays))
    with connection as client, fitting(work, client, backend=backend):
        lazy = tally(first, second)
        amount: dict[str, Any] = {"numbers": first.size, "nbytes": sum(array.nbytes for array in arrays)}
        with measured(client, paths) as cost:
            found = job.compute(lazy, client, progress=progress, label="compare", **amount).item()
    # An integer that no number of the store can be is compared without reading it.
    layers = lazy.dask.layers.keys()
    read = {
        array.residues.name: array for array in arrays if not layers.isdisjoint(array.residues.dask.layers)
    }
    bytes_read = sum(array.nbytes for array in read.values())  # a store beside itself is read once
    cost.record("compare", first.size, bytes_read)
    if as_json:
        fields = {**asdict(found), "count": first.size, **cost.as_dict(), "bytes_read": bytes_read}
        print_json({"op": "compare", "stores": [path, other], **fields})
    else:
        echo(f"{path} against {other}: {first.size} integers")
        echo(f"{found.less} less, {found.equal} equal, {found.greater} greater")
        if found.first_difference is not None:
            echo(f"first difference at index {found.first_difference}")
        echo(f"({size_text(bytes_read)} in {cost_text(bytes_read, cost)})")
    if found.first_difference is not None:
        click.get_current_context().exit(1)


def _integer(text: str) -> int:
    import gmpy2  # no limit on the number of digits, as Python's conversion has

    sign = -1 if text.startswith("-") else 1
    digits = text.lstrip("+-").lower()
    return sign * int(gmpy2.mpz(digits.removeprefix("0x"), 16 if digits.startswith("0x") else 10))


def _store(first: "RNSArray", path: str, other: str, backend: str) -> "RNSArray":
    """Open the second store, which must be of the first one's shape."""
    from rnsdask.arrays import creation

    second = creation.open_rns(other, backend=backend)
    if first.shape != second.shape:
        raise CommandError(
            f"{path} has shape {first.shape} and {other} {second.shape}; they must be the same"
        )
    return second
