"""The command ``eval``."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import click

from rnsdask.cli.errors import Command, refuse
from rnsdask.cli.options import processor_job_options, with_mode
from rnsdask.cli.printing import echo
from rnsdask.cli.reductions import result_fields
from rnsdask.cli.streams import cost_text, print_json, size_text

if TYPE_CHECKING:
    from rnsdask.jobs.cost import Cost
    from rnsdask.jobs.evaluation import Outcome, PreparedExpression
    from rnsdask.jobs.writing import Transfer

_REDUCTIONS = {
    "max": "Greatest value, with the smallest index that holds it.",
    "min": "Least value, likewise.",
    "sum": "Sum, also beyond the range.",
    "argmax": "Smallest index of the greatest value.",
    "argmin": "Smallest index of the least value.",
    "count": "Of how many a comparison holds.",
}


def _read_bindings(_ctx: click.Context, _param: click.Parameter, texts: tuple[str, ...]) -> dict[str, str]:
    bindings: dict[str, str] = {}
    for text in texts:
        name, equals, path = text.partition("=")
        if not (equals and path and name.isidentifier() and name.isascii()):
            raise click.BadParameter(f"{text!r} is not NAME=STORE with a name like a or x1")
        if name in bindings:
            raise click.BadParameter(f"the name {name!r} is given twice")
        bindings[name] = path
    return bindings


def _reduction_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add an option for each reduction; the command gets those that are given as `wanted`, in their order."""

    def remember(ctx: click.Context, param: click.Parameter, given: bool) -> None:
        if given:
            ctx.meta.setdefault("wanted", []).append(param.name)

    for name, description in reversed(_REDUCTIONS.items()):
        option = click.option(
            f"--{name}", is_flag=True, expose_value=False, callback=remember, help=description
        )
        command = option(command)
    return command


@click.command("eval", cls=Command)
@click.argument("expression")
@click.argument("paths", metavar="NAME=STORE...", nargs=-1, required=True, callback=_read_bindings)
@click.option("-o", "--output", metavar="STORE", help="Write the values to a new store.")
@_reduction_options
@click.option(
    "--overflow",
    type=click.Choice(["raise", "wrap", "flag"]),
    default="raise",
    show_default=True,
    help="An error; results modulo M; or these with a count of those that were out of range.",
)
@click.option("--mask", "mask_path", metavar="PATH", help="With -o and --overflow flag: write where.")
@with_mode
@processor_job_options
def eval_(
    expression: str,
    paths: dict[str, str],
    output: str | None,
    overflow: str,
    mask_path: str | None,
    mode: dict[str, bool],
    connection: AbstractContextManager[Any],
    backend: str,
    progress: bool,
    as_json: bool,
) -> None:
    """Evaluate EXPRESSION over stores, and write its values or reduce them in one pass.

    The expression has + - * // % ** << >> @, comparisons, & | ^ ~ between them, integers of any size, the
    names, and functions: fma(a, b, c), muladd(a, b, c, d), mulsub, maximum, minimum, where(condition, a, b),
    sign, is_even, add, subtract, multiply, negative. It is parsed, never run as Python. If it starts with -,
    put it in parentheses.

    \b
    rnsdask eval "a*b + c" a=A.zarr b=B.zarr c=C.zarr -o OUT.zarr
    rnsdask eval "a*b + c" a=A.zarr b=B.zarr c=C.zarr --max --sum --argmax
    """  # noqa: D301  (click's own sign, for lines that stay as they are)
    wanted: list[str] = click.get_current_context().meta.get("wanted", [])
    _check_options(output, wanted, overflow, mask_path, mode)
    from rnsdask.core.errors import ExpressionError
    from rnsdask.jobs import evaluation
    from rnsdask.jobs.cost import measured
    from rnsdask.jobs.memory_plan import fitting

    count_flagged = overflow == "flag"
    try:
        prepared = evaluation.prepare(expression, paths, overflow=overflow, backend=backend)
        if output is None:
            evaluation.check_reductions(prepared, wanted)
    except ExpressionError as error:
        refuse(str(error))
    options: dict[str, Any] = {"count_flagged": count_flagged, "progress": progress}
    with (
        connection as client,
        fitting(prepared.work, client, backend=backend),
        measured(client, prepared.paths) as cost,
    ):
        if output is None:
            done = evaluation.reduce(prepared, wanted, client, backend=backend, **options)
        else:
            done = evaluation.write(prepared, output, client, mask_path=mask_path, **mode, **options)
    cost.record("eval", prepared.count, prepared.bytes_read, exact_fallbacks=_exact_fallbacks(done))
    if as_json:
        places: dict[str, Any] = {} if output is None else {"output": output, "mask": mask_path}
        print_json({**_fields(prepared, done, places), **cost.as_dict()})
    elif output is None:
        _print_results(prepared, done, cost)
    elif done.written is not None:
        _print_written(done, done.written, cost, output, mask_path)


def _check_options(
    output: str | None, wanted: list[str], overflow: str, mask_path: str | None, mode: dict[str, bool]
) -> None:
    if (output is None) == (not wanted):
        refuse("give either -o STORE or reductions, such as --max --sum")
    if mask_path is not None and (output is None or overflow != "flag"):
        refuse("--mask needs -o and --overflow flag")
    for name, given in mode.items():
        if given and output is None:
            refuse(f"--{name} needs -o")


def _fields(prepared: "PreparedExpression", done: "Outcome", places: dict[str, Any]) -> dict[str, Any]:
    fields: dict[str, Any] = {"op": "eval", "expression": prepared.text, **places}
    if not places:
        fields["results"] = {name: _value_fields(name, result) for name, result in done.results.items()}
    if done.flagged is not None:
        fields["flagged"] = done.flagged
    read = {"count": prepared.count, "bytes_read": prepared.bytes_read}
    return {**fields, **(read if done.written is None else done.written.as_dict())}


def _value_fields(name: str, result: Any) -> dict[str, Any]:
    if name == "count":
        return {"value": str(result)}
    if name.startswith("arg"):
        return {"value": str(result.index)}
    return result_fields(result)


def _exact_fallbacks(done: "Outcome") -> int | None:
    """Those of all reductions together; None if there was no reduction of numbers."""
    from rnsdask.jobs.evaluation import REDUCTION_OF

    # A maximum and its index are of one reduction.
    reductions = {REDUCTION_OF[name]: result for name, result in done.results.items() if name != "count"}
    return sum(result.exact_fallbacks for result in reductions.values()) if reductions else None


def _print_results(prepared: "PreparedExpression", done: "Outcome", cost: "Cost") -> None:
    for name, result in done.results.items():
        where = f" at index {result.index}" if name in ("max", "min") else ""
        value = _value_fields(name, result)["value"]
        echo(f"{name} of {prepared.count} values{where}:", value)
    work = f"{size_text(prepared.bytes_read)} in {cost_text(prepared.bytes_read, cost)}"
    fallbacks = _exact_fallbacks(done)
    exact = "" if fallbacks is None else f", {fallbacks} exact fallbacks"
    echo(f"({work}{exact}{_flagged_text(done)})")


def _print_written(
    done: "Outcome", written: "Transfer", cost: "Cost", output: str, mask_path: str | None
) -> None:
    mask = "" if mask_path is None else f", their mask in {mask_path}"
    work = f"{size_text(written.bytes_read)} read ({cost_text(written.bytes_read, cost)})"
    told = f"{written.count} values, {size_text(written.bytes_written)}; {work}"
    echo(f"{output}: {told}{_flagged_text(done)}{mask}{written.resumed_text}")


def _flagged_text(done: "Outcome") -> str:
    return "" if done.flagged is None else f"; {done.flagged} out of range, modulo M"
