"""Commands that reduce a store: to a number, or to a few."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import click

from rnsdask.cli.commands import Command, refuse
from rnsdask.cli.integers import INTEGER
from rnsdask.cli.options import (
    Connection,
    checkpoint_option,
    digits_option,
    joined,
    json_option,
    processor_job_options,
    processor_options,
    progress_option,
    store_argument,
    with_cluster,
)
from rnsdask.cli.printing import answer, cost_text, counted, echo, number_text, print_json, remark, size_text

if TYPE_CHECKING:
    from distributed import Client

    from rnsdask.core.reductions import ReductionResult
    from rnsdask.jobs.cost import Cost
    from rnsdask.jobs.memory_plan import Work
    from rnsdask.lazy.blocks import Blocks
    from rnsdask.store import Kind, StoreInfo

Result = TypeVar("Result")

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
        if name == "sum" and _sums_values(path, as_json, **options):
            return
        info, result, cost = _reduce_store(path, name, **options)
        fields = result_fields(result)
        if as_json:
            print_json({"op": name, "store": path, **fields, **cost.as_dict(), "bytes_read": info.nbytes})
            return
        where = "" if result.index is None else f" at index {result.index}"
        answer(f"{name} of {counted(result.count, 'integers')}{where}", fields["value"])
        remark(f"({_work_text(info.nbytes, result, cost)}, {result.exact_fallbacks} exact fallbacks)")

    return command


def _sums_values(path: str, as_json: bool, **options: Any) -> bool:
    """Print the sum of a plain array, if that is what is at a path; return whether it is."""
    from rnsdask.cli.masks import sum_of_values
    from rnsdask.store import is_plain

    if not is_plain(path):
        return False
    if options["checkpoint"] is not None:
        refuse("--checkpoint is for stores of integers")
    sum_of_values(path, options["connection"], options["progress"], as_json)
    return True


def _reduce_store(
    path: str,
    name: str,
    connection: Connection,
    backend: str,
    progress: bool,
    checkpoint: str | None,
) -> tuple["StoreInfo", "ReductionResult", "Cost"]:
    """Run the job of a reduction of a store."""
    from rnsdask.jobs.reduction import reduce

    def job(blocks: "Blocks", client: "Client | None") -> "ReductionResult":
        return reduce(blocks, name, client, progress=progress, checkpoint=checkpoint)

    info, result, cost = run_on_blocks(name, path, job, connection, backend)
    done = {"backend": result.backend, "exact_fallbacks": result.exact_fallbacks}
    cost.record(name, info.count, info.nbytes, **done)
    return info, result, cost


def run_on_blocks(
    name: str,
    path: str,
    job: "Callable[[Blocks, Client | None], Result]",
    connection: Connection,
    backend: str,
) -> "tuple[StoreInfo, Result, Cost]":
    """Run a job on the blocks of a store of integers; return what it read, the result, and the cost."""
    from rnsdask.jobs.compute import naming
    from rnsdask.jobs.cost import measured
    from rnsdask.jobs.memory_plan import fitting, work_on
    from rnsdask.jobs.sources import OF_INTEGERS, Source
    from rnsdask.lazy.blocks import Blocks

    info = Source.at(path, OF_INTEGERS).info
    work = work_on(info, name)
    with connection(work) as client, fitting(work, client, backend=backend, info=info) as part:
        blocks = Blocks.of(info, part=part, backend=backend)
        with naming(f"{name} of {path}"), measured() as cost:
            result = job(blocks, client)
    return info, result, cost


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
@click.option(
    "--write", is_flag=True, help="Write it to the metadata of STORE, unless a lower bound is there."
)
def _bound(path: str, as_json: bool, write: bool, **options: Any) -> None:
    """Measure how many bits the integers of STORE have.

    The bound that is printed is less than twice the greatest magnitude. It is measured from all numbers, even
    where the store states a bound; a number beyond the stated bound is an error.
    """
    from rnsdask import store
    from rnsdask.core.errors import StoreError, bits_text
    from rnsdask.jobs.sources import OF_INTEGERS

    if write:
        location = store.locate(path)
        store.check_bound_is_writable(location)
        if not (system := store.open_info(path, OF_INTEGERS).system).extends:
            raise StoreError(
                f"{location.path}: --write is for stores of residues, and this is one of {system!r}"
            )
    info, result, cost = _reduce_store(path, "bound", **options)
    bits, stated = result.value.bit_length(), info.system.bound
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
        print_json({**fields, **cost.as_dict(), "bytes_read": info.nbytes})
        return
    answer(f"bound of {counted(result.count, 'integers')}, {bits_text(bits)}", fields["value"])
    remark(f"({_work_text(info.nbytes, result, cost)})")
    if write:
        remark(
            f"written to {path}" if fields["written"] else f"not written: {path} has one that is not greater"
        )


REDUCTIONS = (
    _reduction("max", "Print the maximum of STORE, and the smallest index that holds it."),
    _reduction("min", "Print the minimum of STORE, and the smallest index that holds it."),
    _reduction(
        "sum",
        "Print the sum of STORE, also beyond the range of its moduli.\n\nOf a mask, it is how many are true.",
    ),
    _reduction("gcd", "Print the greatest common divisor of the integers of STORE."),
    _reduction("lcm", "Print the least common multiple of the integers of STORE."),
    _bound,
)


def compute_of(
    operation: str,
    path: str,
    function: Callable[..., Any],
    connection: Connection,
    backend: str,
    progress: bool,
    work: "Callable[[StoreInfo], Work] | None" = None,
    systems: "Kind | None" = None,
) -> tuple[Any, Any, "Cost"]:
    """Compute a function of a store's lazy array; return the result, the array, and the cost.

    The store is one of integers, or of other number `systems`.
    """
    from rnsdask.jobs.compute import compute, naming
    from rnsdask.jobs.cost import measured
    from rnsdask.jobs.memory_plan import fitting, work_on
    from rnsdask.jobs.sources import OF_INTEGERS, Source

    source = Source.at(path, systems or OF_INTEGERS)
    plan = work_on(source.info, operation) if work is None else work(source.info)
    with connection(plan) as client, fitting(plan, client, backend=backend, info=source.info) as part:
        array = source.array(part=part, backend=backend)
        lazy = function(array, backend=backend)
        amount: dict[str, Any] = {"numbers": array.size, "nbytes": array.nbytes}
        with naming(f"{operation} of {path}"), measured() as cost:
            found = compute(lazy, client, progress=progress, label=operation, **amount)
    cost.record(operation, array.size, array.nbytes)
    return found, array, cost


@click.command(cls=Command)
@store_argument
@click.option(
    "--overflow",
    type=click.Choice(["raise", "wrap", "flag"]),
    help="On a product out of range: fail; take it modulo M (of limbs 2**BITS); or do that and say so.  "
    "[default: raise; stores that grow hold any product]",
)
@digits_option
@processor_job_options
def prod(
    path: str,
    overflow: str | None,
    connection: Connection,
    backend: str,
    progress: bool,
    as_json: bool,
) -> None:
    """Print the product of all integers of STORE; 1 of none."""
    from rnsdask.core.integer_text import to_decimal
    from rnsdask.jobs.sources import check_overflow

    def function(array: Any, **on: Any) -> list[Any]:
        check_overflow(path, array.system, overflow)
        found = array.prod(overflow=overflow, **on)
        return list(found) if overflow == "flag" else [found]

    (value, *flagged), array, cost = compute_of("prod", path, function, connection, backend, progress)
    text = to_decimal(value)
    if as_json:
        flags = {"flagged": bool(flagged[0])} if flagged else {}
        fields = {"value": text, "count": array.size, **flags, **cost.as_dict(), "bytes_read": array.nbytes}
        print_json({"op": "prod", "store": path, **fields})
        return
    answer(f"prod of {counted(array.size, 'integers')}", text)
    told = f"; out of range, modulo {array.system.wraps_modulo}" if any(map(bool, flagged)) else ""
    say = echo if told else remark
    say(f"({size_text(array.nbytes)} in {cost_text(array.nbytes, cost)}{told})")


@click.command(cls=Command)
@click.argument("k", metavar="K", type=INTEGER)
@store_argument
@digits_option
@processor_job_options
def topk(k: int, path: str, connection: Connection, backend: str, progress: bool, as_json: bool) -> None:
    """Print the K greatest integers of STORE with their indices.

    The greatest comes first. A negative K gives the -K least, the least first. Equal integers come by index,
    the lowest first. STORE may also be a mask, where true is 1, or other integers that eval wrote.
    """
    from rnsdask.cli.masks import top_of_values
    from rnsdask.core.integer_text import to_decimal
    from rnsdask.jobs.memory_plan import work_of_topk
    from rnsdask.store import is_plain

    if is_plain(path):
        top_of_values(path, k, as_json)
        return

    def function(array: Any, **on: Any) -> list[Any]:
        if array.ndim != 1:
            raise ValueError(
                f"topk takes an array of one axis, which rnsdask reshape makes; got shape {array.shape}"
            )
        return [array.topk(k, **on), array.argtopk(k, **on)]

    work = partial(work_of_topk, k=k)
    (values, indices), array, cost = compute_of("topk", path, function, connection, backend, progress, work)
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
