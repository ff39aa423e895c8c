"""The command ``compare``."""

from contextlib import AbstractContextManager
from dataclasses import asdict
from typing import Any

import click

from rnsdask.cli.errors import ComparingCommand
from rnsdask.cli.integers import read_integer
from rnsdask.cli.options import complete_path, processor_job_options
from rnsdask.cli.printing import CommandError, counted, echo
from rnsdask.cli.streams import cost_text, print_json, size_text


@click.command(cls=ComparingCommand)
@click.argument("path", metavar="A", shell_complete=complete_path)
@click.argument("other", metavar="B", shell_complete=complete_path)
@processor_job_options
def compare(
    path: str,
    other: str,
    connection: AbstractContextManager[Any],
    backend: str,
    progress: bool,
    as_json: bool,
) -> None:
    """Compare the integers of A with those of B, or with an integer.

    It prints how many are less, equal and greater, and the first index where they differ. Exit status 0: all
    are equal; 1: some differ; 2: trouble. A store whose name is an integer is written ./NAME.
    """
    from rnsdask.jobs.compute import compute
    from rnsdask.jobs.cost import measured
    from rnsdask.jobs.memory_plan import fitting, work_on
    from rnsdask.jobs.sources import OF_INTEGERS, Source
    from rnsdask.lazy.order_counts import count_orders

    integer = read_integer(other)
    sources = [Source.at(place, OF_INTEGERS) for place in (path, other)[: 2 if integer is None else 1]]
    arrays = [source.array(backend=backend) for source in sources]
    first = arrays[0]
    if integer is None:
        _check_alike(path, first, other, arrays[1])
    second = arrays[1] if integer is None else integer
    work = work_on(sources[0].info, "compare", stores=len(arrays))
    with connection as client, fitting(work, client, backend=backend):
        lazy = count_orders(first, second)
        amount: dict[str, Any] = {"numbers": first.size, "nbytes": sum(array.nbytes for array in arrays)}
        with measured() as cost:
            counts = compute(lazy, client, progress=progress, label="compare", **amount).item()
    # An integer that no number of the store can be is compared without reading it.
    layers = lazy.dask.layers.keys()
    read = {array.words.name: array for array in arrays if not layers.isdisjoint(array.words.dask.layers)}
    bytes_read = sum(array.nbytes for array in read.values())  # a store beside itself is read once
    cost.record("compare", first.size, bytes_read)
    if as_json:
        fields = {**asdict(counts), "count": first.size, **cost.as_dict(), "bytes_read": bytes_read}
        print_json({"op": "compare", "stores": [path, other], **fields})
    else:
        echo(f"{path} against {other}: {counted(first.size, 'integers')}")
        echo(f"{counts.less} less, {counts.equal} equal, {counts.greater} greater")
        if counts.first_difference is not None:
            echo(f"first difference at index {counts.first_difference}")
        echo(f"({size_text(bytes_read)} in {cost_text(bytes_read, cost)})")
    if counts.first_difference is not None:
        click.get_current_context().exit(1)


def _check_alike(path: str, first: Any, other: str, second: Any) -> None:
    """Raise CommandError unless two stores are of one shape and one kind of numbers."""
    from rnsdask.core.errors import with_article

    if type(first) is not type(second):
        raise CommandError(
            f"{path} is {with_article(type(first))} and {other} {with_article(type(second))}; "
            "rnsdask convert SRC DST --to rns makes them of one kind"
        )
    if first.shape != second.shape:
        raise CommandError(
            f"{path} has shape {first.shape} and {other} {second.shape}; they must be the same"
        )
