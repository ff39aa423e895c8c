"""The commands ``max``, ``min``, ``sum`` and ``bound``."""

from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rnsdask.cli.errors import Command
from rnsdask.cli.options import (
    checkpoint_option,
    digits_option,
    joined,
    json_option,
    processor_options,
    progress_option,
    store_argument,
    with_cluster,
)
from rnsdask.cli.printing import counted, echo, number_text
from rnsdask.cli.streams import cost_text, print_json, size_text

if TYPE_CHECKING:
    from rnsdask.jobs.cost import Cost
    from rnsdask.jobs.sources import Source
    from rnsdask.rns.reduce import ReductionResult


_reduction_options = joined(
    *(store_argument, digits_option, json_option, progress_option, checkpoint_option),
    *(with_cluster, processor_options),
)
"""The store, and the options of :func:`_reduce_store`."""


def _reduction(name: str, description: str) -> click.Command:
    """Make the command of a reduction."""

    @click.command(name, cls=Command, help=description)
    @_reduction_options
    def command(path: str, as_json: bool, **options: Any) -> None:
        _, nbytes, result, cost = _reduce_store(path, name, **options)
        fields = result_fields(result)
        if as_json:
            print_json({"op": name, "store": path, **fields, **cost.as_dict(), "bytes_read": nbytes})
            return
        where = "" if result.index is None else f" at index {result.index}"
        echo(f"{name} of {counted(result.count, 'integers')}{where}:", number_text(fields["value"]))
        echo(f"({_work_text(nbytes, result, cost)}, {result.exact_fallbacks} exact fallbacks)")

    return command


def _reduce_store(
    path: str,
    name: str,
    connection: AbstractContextManager[Any],
    backend: str,
    progress: bool,
    checkpoint: Path | None,
) -> tuple["Source", int, "ReductionResult", "Cost"]:
    """Run the job of a reduction of a store or group; also tell how many bytes of it were read."""
    from rnsdask.jobs.compute import naming
    from rnsdask.jobs.cost import measured
    from rnsdask.jobs.memory_plan import fitting, work_on
    from rnsdask.jobs.reduction import reduce
    from rnsdask.jobs.sources import OF_INTEGERS, Source
    from rnsdask.rns.system import RNS

    found = Source.at(path, OF_INTEGERS)
    plan: dict[str, Any] = {"backend": backend, "info": found.whole_store}
    with connection as client, fitting(work_on(found.info, name), client, **plan) as part:
        array = found.array(part=part, backend=backend)
        if name == "bound" and isinstance(array.system, RNS):
            array = _whole(array)
        how: dict[str, Any] = {"progress": progress, "checkpoint": checkpoint, "info": found.info}
        with naming(f"{name} of {path}"), measured() as cost:
            result = reduce(array, name, client, backend=backend, **how)
    done = {"backend": result.backend, "exact_fallbacks": result.exact_fallbacks}
    cost.record(name, array.size, array.nbytes, **done)
    return found, array.nbytes, result, cost


def _whole(array: Any) -> Any:
    """The array to be measured from all residues, whatever bound its store states.

    One that holds for some numbers of its length only is checked in the same pass.
    """
    stated, array = array.bound, array.with_bound(None)
    if stated is None or stated & (stated + 1) == 0:
        return array
    return array.with_bound(stated).with_bound(None)


def _work_text(nbytes: int, result: "ReductionResult", cost: "Cost") -> str:
    return f"{size_text(nbytes)} in {cost_text(nbytes, cost)}, {result.backend}"


def result_fields(result: "ReductionResult") -> dict[str, Any]:
    """Write a result as JSON fields: an index only where it has one."""
    from rnsdask.core.integer_text import to_decimal

    index = {} if result.index is None else {"index": result.index}
    how = {"backend": result.backend, "exact_fallbacks": result.exact_fallbacks}
    return {"value": to_decimal(result.value), **index, "count": result.count, **how}


@click.command("bound", cls=Command)
@_reduction_options
@click.option("--write", is_flag=True, help="Put it into the metadata of STORE, unless that has a lower one.")
def _bound(path: str, as_json: bool, write: bool, **options: Any) -> None:
    """Measure how many bits the integers of STORE have.

    The bound that is printed is less than twice the greatest magnitude. It is measured from all numbers, also
    where the store states a bound. One that a number is beyond is an error.
    """
    from rnsdask import store
    from rnsdask.core.errors import StoreError, bits_text
    from rnsdask.jobs.sources import OF_INTEGERS
    from rnsdask.rns.system import RNS

    if write:
        location = store.locate(path)
        message = f"{location.path}: --write is of stores of residues, and this is a"
        if store.is_group(location):
            raise StoreError(f"{message} group")
        store.check_bound_is_writable(location)
        if not isinstance(store.open_info(path, OF_INTEGERS).system, RNS):
            raise StoreError(f"{message} store of limbs")
    found, nbytes, result, cost = _reduce_store(path, "bound", **options)
    info = found.residues
    bits, stated = result.value.bit_length(), getattr(info.system, "bound", None)
    if stated is not None and stated < 1 << bits >> 1:
        has = f"its bound has {bits_text(stated.bit_length())}"
        raise StoreError(
            f"{info.path}: {has}, but a number in it of {bits_text(bits)} is greater in magnitude"
        )
    fields = {"op": "bound", "store": path, "bits": bits, **result_fields(result)}
    if write:
        fields["written"] = stated is None or result.value < stated
        if fields["written"]:
            store.write_bound(info, result.value)
    if as_json:
        print_json({**fields, **cost.as_dict(), "bytes_read": nbytes})
        return
    echo(f"bound of {counted(result.count, 'integers')}, {bits_text(bits)}:", number_text(fields["value"]))
    echo(f"({_work_text(nbytes, result, cost)})")
    if write:
        echo(
            f"written to {path}" if fields["written"] else f"not written: {path} has one that is not greater"
        )


REDUCTIONS = (
    _reduction("max", "Print the maximum of STORE, and the smallest index that holds it."),
    _reduction("min", "Print the minimum of STORE, and the smallest index that holds it."),
    _reduction("sum", "Print the sum of STORE, also beyond the range of its moduli."),
    _bound,
)
