"""The command ``eval``."""

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

from rnsdask.cli.commands import Command, refuse
from rnsdask.cli.options import (
    Connection,
    check_store_path,
    digits_option,
    output_option,
    processor_job_options,
    source_argument,
    with_mode,
)
from rnsdask.cli.printing import answer, cost_text, counted, echo, print_json, remark, size_text
from rnsdask.cli.reductions import result_fields

if TYPE_CHECKING:
    from rnsdask.jobs.cost import Cost
    from rnsdask.jobs.evaluation import Paths, PreparedExpressions
    from rnsdask.jobs.evaluation_run import Outcome

_REDUCTIONS = {
    "max": "Greatest value, and its smallest index.",
    "min": "Least value, and its smallest index.",
    "sum": "Sum, also beyond the range.",
    "argmax": "Smallest index of the greatest value.",
    "argmin": "Smallest index of the least value.",
    "count": "How often a comparison holds.",
}

_INDEX = re.compile(r"[-+0-9:,.\s]+|None")
"""Text in brackets that is an index, and no condition."""

_SINGLE = ""
"""Name of the result of a single expression, as in `jobs/evaluation.py`."""


class _EvalCommand(Command):
    """Command whose reductions are flags for a single expression, and take a name with several."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the options."""
        end = args.index("--") if "--" in args else len(args)
        if not _has_names(args[:end]):
            flags = {f"--{name}" for name in _REDUCTIONS}
            args = [f"{arg}=" if arg in flags else arg for arg in args[:end]] + args[end:]
        return super().parse_args(ctx, args)

    def is_argument(self, args: list[str], word: str) -> bool:
        """Whether a word is an expression: it begins with a number, a function or a store's name."""
        first = re.match(r"-+(?P<name>\w+)(?P<call>\()?", word)
        is_known = first and (first["call"] or any(arg.startswith(f"{first['name']}=") for arg in args))
        return super().is_argument(args, word) or bool(is_known and not _has_names(args))


def _has_names(args: Sequence[str]) -> bool:
    """Whether expressions are given by an option, with names."""
    return any(arg.startswith(("-e", "--expression")) for arg in args)


def _read_expressions(_ctx: click.Context, _param: click.Parameter, texts: tuple[str, ...]) -> dict[str, str]:
    return _read_pairs(texts, "EXPRESSION")


def _read_pairs(texts: Sequence[str], kind: str) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        name = name.strip() if kind == "EXPRESSION" else name
        if not (equals and value and name.isidentifier() and name.isascii()):
            raise click.BadParameter(f"{text!r} is not NAME={kind} with a name like a or x1")
        if name in pairs:
            raise click.BadParameter(f"the name {name!r} is given twice")
        pairs[name] = value
    return pairs


def _reduction_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add an option for each reduction; the command gets them, in order, as `wanted` by names of results."""

    def remember(ctx: click.Context, param: click.Parameter, names: tuple[str, ...]) -> None:
        wanted = ctx.meta.setdefault("wanted", {})
        for name in dict.fromkeys(names):
            wanted.setdefault(name, []).append(param.name)

    for name, description in reversed(_REDUCTIONS.items()):
        option = click.option(
            f"--{name}",
            multiple=True,
            metavar="[NAME]",
            expose_value=False,
            callback=remember,
            help=description,
        )
        command = option(command)
    return command


@click.command("eval", cls=_EvalCommand)
@click.argument("words", metavar="[EXPRESSION] NAME=STORE...", nargs=-1)
@click.option(
    "-e",
    "--expression",
    "named",
    metavar="NAME=EXPRESSION",
    multiple=True,
    callback=_read_expressions,
    help="One of several; those after it may use its name.",
)
@click.option(
    "-o",
    "--output",
    "outputs",
    metavar="[NAME=]STORE",
    multiple=True,
    help="New store of the values; with -e, NAME says which expression.",
)
@_reduction_options
@click.option(
    "--overflow",
    type=click.Choice(["raise", "wrap", "flag"]),
    help="On a result out of range: fail; take it modulo M; or do that and count it.  [default: raise, or "
    "more moduli for stores that grow]",
)
@click.option(
    "--mask",
    "masks",
    metavar="[NAME=]PATH",
    multiple=True,
    help="With --overflow flag: new Boolean array, true where results were out of range.",
)
@click.option("--extend", is_flag=True, help="Compute under the moduli that all results need.")
@with_mode
@digits_option
@processor_job_options
def eval_(
    words: tuple[str, ...],
    named: dict[str, str],
    outputs: tuple[str, ...],
    overflow: str | None,
    masks: tuple[str, ...],
    extend: bool,
    mode: dict[str, bool],
    connection: Connection,
    backend: str,
    progress: bool,
    as_json: bool,
) -> None:
    """Evaluate an expression over stores; write or reduce its values.

    Each NAME of EXPRESSION stands for a store. All stores are read once. The text is parsed, never run as
    Python; text that looks like an option, such as -h, goes in parentheses.

    \b
    operators  + - * // % ** << >> @; < <= > >= == !=, and & | ^ ~ between these
    parts      a[10:20], a[::2], a[:, 3], a[..., -1]
    functions  abs, max, min, gcd, lcm, isqrt, bit_length, sign, is_even,
               factorial, binomial(n, k), primorial, where(condition, a, b),
               clip(a, low, high), pow(a, k), pow(a, k, m), maximum, minimum,
               add, subtract, multiply, negative, fma(a, b, c),
               muladd(a, b, c, d), mulsub(a, b, c, d), mod_add(a, b, m),
               mod_subtract, mod_multiply, mod_power, mod_inverse(a, m)
    of limbs   & | ^ ~ of numbers, bitwise_count
    """  # noqa: D301  (click's own sign, for lines that stay as they are)
    texts, paths = _read_words(words, named)
    wanted: dict[str, list[str]] = click.get_current_context().meta.get("wanted", {})
    _check_options(outputs, wanted, overflow, masks, mode, extend)
    written = _read_outputs(outputs, masks, bool(named))
    _evaluate(
        "eval",
        (texts, paths, wanted, written),
        (overflow, extend, mode),
        connection=connection,
        backend=backend,
        progress=progress,
        as_json=as_json,
    )


@click.command("filter", cls=Command)
@source_argument
@click.argument("condition", metavar="CONDITION")
@click.argument("words", metavar="[NAME=STORE]...", nargs=-1)
@output_option
@with_mode
@digits_option
@processor_job_options
def filter_(
    source: str,
    condition: str,
    words: tuple[str, ...],
    path: str,
    mode: dict[str, bool],
    **options: Any,
) -> None:
    """Write the numbers of SRC that meet a condition.

    In CONDITION, x stands for SRC, as in "x > 5" or "(x > 5) & (x % 2 == 0)"; other names stand for stores or
    masks of the same shape. It is short for eval "x[CONDITION]" x=SRC.
    """
    stores = _read_pairs(words, "STORE")
    if "x" in stores:
        refuse("x stands for SRC itself; give the other store another name")
    if _INDEX.fullmatch(condition.strip()):
        refuse(f"{condition.strip()!r:.60} is an index, no condition such as 'x > 5'; rnsdask slice takes it")
    written = _read_outputs((path,), (), named=False)
    texts = {_SINGLE: f"x[{condition}]"}
    _evaluate("filter", (texts, {"x": source, **stores}, {}, written), (None, False, mode), **options)


def _evaluate(
    operation: str,
    about: "tuple[dict[str, str], dict[str, str], dict[str, list[str]], dict[str, Paths]]",
    how: tuple[str | None, bool, dict[str, bool]],
    *,
    connection: Connection,
    backend: str,
    progress: bool,
    as_json: bool,
) -> None:
    """Evaluate expressions (texts, stores, reductions and outputs by names), and report it."""
    (texts, paths, wanted, written), (overflow, extend, mode) = about, how
    from rnsdask.core.errors import ExpressionError
    from rnsdask.jobs import evaluation, evaluation_run
    from rnsdask.jobs.cost import measured
    from rnsdask.jobs.memory_plan import fitting

    try:
        prepared = evaluation.prepare(texts, paths, overflow=overflow, backend=backend, extend=extend)
        evaluation.check_wanted(prepared, wanted, written)
    except ExpressionError as error:
        refuse(str(error))
    _tell_extension(prepared)
    complete = evaluation_run.complete_outputs(prepared, written, **mode)
    written = {name: output for name, output in written.items() if name not in complete}
    if not (written or wanted):
        if as_json:
            print_json({"op": operation, **_fields(prepared, {}, {}, complete, 0)})
        else:
            _print_complete(complete)
        return
    options: dict[str, Any] = {"count_flagged": overflow == "flag", "progress": progress, **mode}
    with (
        connection(prepared.work) as client,
        fitting(prepared.work, client, backend=backend),
        measured() as cost,
    ):
        done = evaluation_run.run(prepared, wanted, written, client, backend=backend, **options)
    nbytes = prepared.bytes_read(list(done))
    count = sum(map(prepared.count, done))
    cost.record(operation, count, nbytes, exact_fallbacks=_exact_fallbacks(done))
    if as_json:
        print_json({"op": operation, **_fields(prepared, done, written, complete, nbytes), **cost.as_dict()})
    else:
        _print_complete(complete)
        _print(prepared, done, written, cost, nbytes)


# ---- what is given ----------------------------------------------------------------------------------------


def _read_words(words: tuple[str, ...], named: dict[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Read the expressions, by the names of their results, and the stores, by their names."""
    if not named and not words:
        refuse("Missing argument 'EXPRESSION'.")
    texts, stores = (named, words) if named else ({_SINGLE: words[0]}, words[1:])
    if not stores:
        refuse("Missing argument 'NAME=STORE...'.")
    return texts, _read_pairs(stores, "STORE")


def _read_outputs(outputs: tuple[str, ...], masks: tuple[str, ...], named: bool) -> dict[str, "Paths"]:
    """Read the paths of each result and its mask."""
    from rnsdask.jobs.evaluation import Paths

    if not named and max(len(outputs), len(masks)) > 1:
        refuse("one expression has one -o and one --mask; give several as -e NAME=EXPRESSION")
    paths = _read_pairs(outputs, "STORE") if named else dict(zip([_SINGLE], outputs, strict=False))
    of_masks = _read_pairs(masks, "PATH") if named else dict(zip([_SINGLE], masks, strict=False))
    for name in of_masks:
        if name not in paths:
            refuse(f"--mask {name}=PATH needs -o {name}=STORE")
    for path in (*paths.values(), *of_masks.values()):
        check_store_path(path)
    return {name: Paths(path, of_masks.get(name)) for name, path in paths.items()}


def _check_options(
    outputs: tuple[str, ...],
    wanted: dict[str, list[str]],
    overflow: str | None,
    masks: tuple[str, ...],
    mode: dict[str, bool],
    extend: bool,
) -> None:
    if not outputs and not wanted:
        refuse("give -o STORE, or reductions, such as --max --sum")
    if masks and (not outputs or overflow != "flag"):
        refuse("--mask needs -o and --overflow flag")
    if extend and overflow not in (None, "raise"):
        refuse("--extend makes all results fit; it does not go with --overflow wrap or flag")
    for name, given in mode.items():
        if given and not outputs:
            refuse(f"--{name} needs -o")


# ---- what is told -----------------------------------------------------------------------------------------


def _tell_extension(prepared: "PreparedExpressions") -> None:
    """Print the number of moduli of the results, and how it might be reduced."""
    from rnsdask.core.messages import note

    extension = prepared.extension
    if extension is None or extension.before == extension.after:
        return
    line = f"rnsdask: extended from {extension.before} to {extension.after} moduli"
    if extension.unbounded:
        names = ", ".join(extension.unbounded)
        line += f"; of {names} no bound is known: rnsdask bound STORE --write may make them fewer"
    note(line)


def _fields(
    prepared: "PreparedExpressions",
    done: dict[str, "Outcome"],
    outputs: dict[str, "Paths"],
    complete: dict[str, "Paths"],
    nbytes: int,
) -> dict[str, Any]:
    how: dict[str, Any] = {}
    if prepared.extension is not None:
        how["n_moduli"] = prepared.extension.after
    results = {name: _result_fields(prepared, name, outcome, outputs) for name, outcome in done.items()}
    for name, output in complete.items():
        before = results.get(name, {"expression": prepared.expressions[name].text})
        where = {"output": output.path, "mask": output.mask_path}
        results[name] = {**before, **where, "already_complete": True}
    if list(results) == [_SINGLE]:
        return {**results[_SINGLE], "bytes_read": nbytes, **how}
    return {"results": results, **how, "bytes_read": nbytes}


def _result_fields(
    prepared: "PreparedExpressions",
    name: str,
    outcome: "Outcome",
    outputs: dict[str, "Paths"],
) -> dict[str, Any]:
    fields: dict[str, Any] = {"expression": prepared.expressions[name].text}
    if name in outputs:
        fields.update(output=outputs[name].path, mask=outputs[name].mask_path)
    if outcome.results:
        fields["results"] = {
            option: _value_fields(option, found) for option, found in outcome.results.items()
        }
    if outcome.flagged is not None:
        fields["flagged"] = outcome.flagged
    amounts: dict[str, Any] = {"count": prepared.count(name)}
    if outcome.written is not None:
        amounts.update(outcome.written.as_dict())
    amounts.pop("bytes_read", None)
    return {**fields, **amounts}


def _value_fields(name: str, result: Any) -> dict[str, Any]:
    if name == "count":
        return {"value": str(result)}
    if name.startswith("arg"):
        return {"value": str(result.index)}
    return result_fields(result)


def _exact_fallbacks(done: dict[str, "Outcome"]) -> int | None:
    """Count the exact fallbacks of all reductions; None without reductions of numbers."""
    from rnsdask.jobs.evaluation_run import REDUCTION_OF

    # A maximum and its index come from the same reduction.
    reductions = {
        (name, REDUCTION_OF[option]): result
        for name, outcome in done.items()
        for option, result in outcome.results.items()
        if option != "count"
    }
    return sum(result.exact_fallbacks for result in reductions.values()) if reductions else None


def _print_complete(outputs: dict[str, "Paths"]) -> None:
    for output in outputs.values():
        remark(f"{output.path}: complete already, by this very job; nothing to do")


def _print(
    prepared: "PreparedExpressions",
    done: dict[str, "Outcome"],
    outputs: dict[str, "Paths"],
    cost: "Cost",
    nbytes: int,
) -> None:
    written = {name: outcome.written for name, outcome in done.items() if outcome.written is not None}
    for name, outcome in done.items():
        amount = counted(prepared.count(name), "values")
        of = f"{name}, {amount}" if name else amount
        for option, result in outcome.results.items():
            where = f" at index {result.index}" if option in ("max", "min") else ""
            answer(f"{option} of {of}{where}", _value_fields(option, result)["value"])
    work = f"{size_text(nbytes)} in {cost_text(nbytes, cost)}"
    for name, transfer in written.items():
        flagged, mask_path = _flagged_text(done[name]), outputs[name].mask_path
        mask = "" if mask_path is None else f", their mask in {mask_path}"
        told = f"{counted(transfer.count, 'values')}, {size_text(transfer.bytes_written)}"
        if list(done) == [_SINGLE] and not done[name].results:
            told += f"; {size_text(nbytes)} read ({cost_text(nbytes, cost)})"
        say = echo if flagged else remark
        say(f"{outputs[name].path}: {told}{flagged}{mask}{transfer.resumed_text}")
    if list(written) != [_SINGLE] or done[_SINGLE].results:
        fallbacks = _exact_fallbacks(done)
        exact = "" if fallbacks is None else f", {fallbacks} exact fallbacks"
        others = "".join(_flagged_text(done[name], name) for name in done if name not in written)
        say = echo if others else remark
        say(f"({work}{exact}{others})")


def _flagged_text(outcome: "Outcome", name: str = "") -> str:
    of = f" of {name}" if name else ""
    return "" if outcome.flagged is None else f"; {outcome.flagged}{of} out of range, modulo M"
