"""The command ``topk``."""

from contextlib import AbstractContextManager
from typing import Any

import click

from rnsdask.cli.errors import Command
from rnsdask.cli.integers import INTEGER
from rnsdask.cli.options import digits_option, processor_job_options, store_argument
from rnsdask.cli.printing import echo, number_text
from rnsdask.cli.streams import cost_text, print_json, size_text


@click.command(cls=Command)
@click.argument("k", metavar="K", type=INTEGER)
@store_argument
@digits_option
@processor_job_options
def topk(
    k: int, path: str, connection: AbstractContextManager[Any], backend: str, progress: bool, as_json: bool
) -> None:
    """Print the K greatest integers of STORE with their indices.

    The greatest comes first. A negative K gives the -K least, the least first. Equal integers come by index,
    the lowest first.
    """
    from rnsdask.core.integer_text import to_decimal
    from rnsdask.jobs.compute import compute
    from rnsdask.jobs.cost import measured
    from rnsdask.jobs.memory_plan import fitting, work_of_topk
    from rnsdask.jobs.sources import OF_INTEGERS, Source

    source = Source.at(path, OF_INTEGERS)
    plan: dict[str, Any] = {"backend": backend, "info": source.whole_store}
    with connection as client, fitting(work_of_topk(source.info, k), client, **plan) as part:
        array = source.array_with("topk", part=part, backend=backend)
        if array.ndim != 1:
            raise ValueError(
                f"topk takes an array of one axis, which rnsdask reshape makes; got shape {array.shape}"
            )
        found = [array.topk(k, backend=backend), array.argtopk(k, backend=backend)]
        amount: dict[str, Any] = {"numbers": array.size, "nbytes": array.nbytes}
        with measured() as cost:
            values, indices = compute(found, client, progress=progress, label="topk", **amount)
    cost.record("topk", array.size, array.nbytes)
    texts = [to_decimal(value) for value in values]
    if as_json:
        fields = {"k": k, "values": texts, "indices": indices.tolist(), "count": array.size}
        cost_fields = {**cost.as_dict(), "bytes_read": array.nbytes}
        print_json({"op": "topk", "store": path, **fields, **cost_fields})
        return
    for index, text in zip(indices, texts, strict=True):
        echo(f"{index}\t{number_text(text)}")
    if progress:  # on standard output are results alone
        echo(f"({size_text(array.nbytes)} in {cost_text(array.nbytes, cost)})", err=True)
