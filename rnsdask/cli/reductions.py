"""The commands ``max``, ``min`` and ``sum``."""

from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rnsdask.cli.errors import Command
from rnsdask.cli.options import (
    checkpoint_option,
    json_option,
    processor_options,
    progress_option,
    store_argument,
    with_cluster,
)
from rnsdask.cli.printing import echo
from rnsdask.cli.streams import cost_text, print_json, size_text

if TYPE_CHECKING:
    from rnsdask.rns.reduce import ReductionResult


def _reduction(name: str, description: str) -> click.Command:
    """Make the command of a reduction."""

    @click.command(name, cls=Command, help=description)
    @store_argument
    @with_cluster
    @processor_options
    @progress_option
    @checkpoint_option
    @json_option
    def command(
        path: str,
        connection: AbstractContextManager[Any],
        backend: str,
        progress: bool,
        checkpoint: Path | None,
        as_json: bool,
    ) -> None:
        from rnsdask import store
        from rnsdask.arrays import creation
        from rnsdask.jobs.cost import measured
        from rnsdask.jobs.memory_plan import fitting, work_on
        from rnsdask.jobs.reduction import reduce

        found = store.open_info(path)
        options: dict[str, Any] = {"backend": backend, "info": found}
        with connection as client, fitting(work_on(found, name), client, **options) as part:
            array = creation.open_rns(path, part=part, backend=backend)
            how: dict[str, Any] = {"progress": progress, "checkpoint": checkpoint}
            with measured(client, [found.path]) as cost:
                result = reduce(array, name, client, **how, **options)
        fields = result_fields(result)
        done = {key: fields[key] for key in ("backend", "exact_fallbacks")}
        cost.record(name, array.size, array.nbytes, **done)
        if as_json:
            print_json({"op": name, "store": path, **fields, **cost.as_dict(), "bytes_read": array.nbytes})
            return
        where = "" if result.index is None else f" at index {result.index}"
        work = f"{size_text(array.nbytes)} in {cost_text(array.nbytes, cost)}, {result.backend}"
        echo(f"{name} of {result.count} integers{where}:", fields["value"])
        echo(f"({work}, {result.exact_fallbacks} exact fallbacks)")

    return command


def result_fields(result: "ReductionResult") -> dict[str, Any]:
    """Write a result as JSON fields: an index only where it has one."""
    from rnsdask.core.integer_text import to_decimal

    index = {} if result.index is None else {"index": result.index}
    how = {"backend": result.backend, "exact_fallbacks": result.exact_fallbacks}
    return {"value": to_decimal(result.value), **index, "count": result.count, **how}


REDUCTIONS = (
    _reduction("max", "Exact maximum of STORE, and the smallest index that holds it."),
    _reduction("min", "Exact minimum of STORE, and the smallest index that holds it."),
    _reduction("sum", "Exact sum of STORE, also beyond the range of its moduli set."),
)
