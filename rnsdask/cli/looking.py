"""The commands ``head``, ``stats``, ``hist`` and ``compare``."""

import math
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from itertools import pairwise
from typing import Any

import click

from rnsdask.cli.commands import Command, ComparingCommand, refuse
from rnsdask.cli.comparing import compare_fields
from rnsdask.cli.integers import POSITIVE, read_integer
from rnsdask.cli.options import (
    Connection,
    complete_path,
    digits_option,
    json_option,
    processor_job_options,
    store_argument,
)
from rnsdask.cli.printing import (
    CommandError,
    bars,
    cost_text,
    counted,
    echo,
    number_text,
    print_json,
    remark,
    size_text,
)
from rnsdask.cli.reductions import compute_of, run_on_blocks
from rnsdask.core.ways import Kind, Message

_MOST_LENGTHS = 20
"""Rows of the histogram of lengths."""


@click.command(cls=Command)
@store_argument
@click.option(
    "-n", "count", type=POSITIVE, metavar="N", default=10, show_default=True, help="How many numbers."
)
@digits_option
@json_option
def head(path: str, count: int, as_json: bool) -> None:
    """Print the first numbers of STORE with their indices.

    Only the chunks that hold them are read. STORE may also be a mask or an array of signs that eval wrote.
    """
    import numpy as np

    from rnsdask import store
    from rnsdask.core.integer_text import to_decimal

    found: store.StoreInfo | store.PlainInfo
    if store.is_plain(path):
        found = store.open_plain(path)
        part = tuple(map(slice, _first_lengths(found.shape, count)))
        values = np.asarray(store.open_any_array(path)[part]).ravel()[:count].astype(int)
    else:
        found = store.open_info(path, store.all_systems)
        values = store.read_corner(found, _first_lengths(found.shape, count)).ravel()[:count]
    indices = [list(map(int, np.unravel_index(i, found.shape))) for i in range(len(values))]
    texts = list(map(to_decimal, values.tolist()))
    if as_json:
        print_json({"op": "head", "store": path, "indices": indices, "values": texts, "count": found.count})
        return
    for index, text in zip(indices, texts, strict=True):
        echo(f"{','.join(map(str, index))}\t{number_text(text)}")


def _first_lengths(shape: Sequence[int], count: int) -> tuple[int, ...]:
    """Lengths of a part of an array that holds its first `count` numbers in C order, and few others."""
    lengths = [1] * len(shape)
    for axis, length in enumerate(shape):
        inner = math.prod(shape[axis + 1 :])
        rows = -(-count // inner) if inner else 0
        lengths[axis] = min(rows, length)
        if rows > 1:
            return (*lengths[: axis + 1], *shape[axis + 1 :])
    return tuple(lengths)


@click.command(cls=Command)
@store_argument
@digits_option
@processor_job_options
def stats(path: str, connection: Connection, backend: str, progress: bool, as_json: bool) -> None:
    """Print count, extremes, sum, mean and lengths of STORE.

    STORE is read once. Everything is exact but the mean, which is rounded to two decimals. Lengths are in
    bits, each with the count of its numbers.
    """
    from rnsdask.core.integer_text import to_decimal
    from rnsdask.jobs.reduction import summarize

    job = partial(summarize, progress=progress)
    info, summary, cost = run_on_blocks("stats", path, job, connection, backend)
    cost.record("stats", info.count, info.nbytes)
    ends = {"min": summary.minimum, "max": summary.maximum, "sum": summary.total}
    texts = {name: None if value is None else to_decimal(value) for name, value in ends.items()}
    mean = None if summary.mean is None else _decimal(summary.mean)
    lengths = {bits: count for bits, count in enumerate(summary.lengths) if count}
    if as_json:
        of_lengths = {"bit_lengths": {str(bits): count for bits, count in lengths.items()}}
        fields = {"count": summary.count, **texts, "mean": mean, **of_lengths}
        print_json({"op": "stats", "store": path, **fields, **cost.as_dict(), "bytes_read": info.nbytes})
        return
    rows = {"count": str(summary.count), **texts, "mean": mean}
    echo(*(f"{name:<7}{number_text(text)}" for name, text in rows.items() if text is not None))
    if lengths:
        named = _group(lengths)
        echo("", "bits", *bars(list(named), list(named.values())))
    if progress:
        echo(f"({size_text(info.nbytes)} in {cost_text(info.nbytes, cost)})", err=True)


@click.command("hist", cls=Command)
@store_argument
@click.option("--bins", type=POSITIVE, metavar="N", help="How many bins.  [default: 10]")
@click.option("--edges", metavar="E,E,...", help="Edges of the bins; the last bin has its right one too.")
@digits_option
@processor_job_options
def hist(
    path: str,
    bins: int | None,
    edges: str | None,
    connection: Connection,
    backend: str,
    progress: bool,
    as_json: bool,
) -> None:
    """Count the numbers of STORE in bins, and draw bars.

    Without --edges, the bins divide the range from minimum to maximum evenly, for which STORE is read twice.
    """
    from rnsdask.core.integer_text import to_decimal
    from rnsdask.lazy.histogram import histogram

    if bins is not None and edges is not None:
        refuse("give --bins or --edges, not both")
    wanted = (bins or 10) if edges is None else _edges(edges)

    def function(array: Any, **_: Any) -> Any:
        counts, limits = histogram(array, wanted)
        return [counts, limits] if edges is None else [counts]  # a cluster computes lazy results

    (counts, *limits), array, cost = compute_of("hist", path, function, connection, backend, progress)
    nbytes = array.nbytes if edges is not None else 2 * array.nbytes
    texts = list(map(to_decimal, limits[0] if limits else wanted))  # type: ignore[arg-type]
    if as_json:
        fields = {"counts": counts.tolist(), "edges": texts}
        print_json({"op": "hist", "store": path, **fields, **cost.as_dict(), "bytes_read": nbytes})
        return
    names = [
        f"[{number_text(low, brief=True)}, {number_text(high, brief=True)})" for low, high in pairwise(texts)
    ]
    names[-1] = f"{names[-1][:-1]}]"
    echo(*bars(names, counts.tolist()))
    if progress:
        echo(f"({size_text(nbytes)} in {cost_text(nbytes, cost)})", err=True)


def _edges(text: str) -> list[int]:
    """Integers between commas."""
    items = [item.strip() for item in text.split(",")]
    found = [read_integer(item) for item in items]
    if wrong := next((item for item, value in zip(items, found, strict=True) if value is None), ""):
        refuse(f"--edges takes integers with commas between, got {wrong!r:.40}")
    edges = [value for value in found if value is not None]
    if len(edges) != len(items) or len(edges) < 2 or edges != sorted(edges):
        refuse("--edges takes two integers or more that do not decrease, with commas between")
    return edges


def _group(lengths: dict[int, int]) -> dict[str, int]:
    """Group counts by length, if there are many, into rows of equally many lengths."""
    low, high = min(lengths), max(lengths)
    width = -(-(high - low + 1) // _MOST_LENGTHS)
    rows = {}
    for first in range(low, high + 1, width):
        last = min(first + width - 1, high)
        name = str(first) if last == first else f"{first}-{last}"
        rows[name] = sum(lengths.get(bits, 0) for bits in range(first, last + 1))
    return rows


def _decimal(value: Any) -> str:
    """Format a fraction with at most two decimals, rounded to even."""
    from rnsdask.core.integer_text import to_decimal

    hundredths = round(value * 100)
    whole, rest = divmod(abs(hundredths), 100)
    decimals = f".{rest:02d}".rstrip("0") if rest else ""
    return f"{'-' if hundredths < 0 else ''}{to_decimal(whole)}{decimals}"


@click.command(cls=ComparingCommand)
@click.argument("path", metavar="A", shell_complete=complete_path)
@click.argument("other", metavar="B", shell_complete=complete_path)
@click.option("--all", "all_", is_flag=True, help="List all numbers that differ: index, A's and B's.")
@digits_option
@processor_job_options
def compare(
    path: str,
    other: str,
    all_: bool,
    connection: Connection,
    backend: str,
    progress: bool,
    as_json: bool,
) -> None:
    """Compare the numbers of A with those of B, or with an integer.

    It prints how many are less, equal and greater, and the first index where they differ. For elements of
    prime fields, with polynomials along the last axis, it prints how many differ modulo each prime, in which
    polynomials and coefficients, and whether a sign, a factor or another order explains all. Exit status 0:
    all are equal; 1: some differ; 2: an error. A store whose name is an integer is written ./NAME.
    """
    from rnsdask.core.integer_text import to_decimal
    from rnsdask.jobs.compute import compute
    from rnsdask.jobs.cost import measured
    from rnsdask.jobs.derivation import bytes_read
    from rnsdask.jobs.memory_plan import fitting, work_on
    from rnsdask.jobs.sources import OF_INTEGERS, Source, of_integers_or_prime_fields
    from rnsdask.lazy.order_counts import count_orders

    integer = read_integer(other)
    kind = of_integers_or_prime_fields if integer is None else OF_INTEGERS
    sources = [Source.at(place, kind) for place in (path, other)[: 2 if integer is None else 1]]
    arrays = [source.array(backend=backend) for source in sources]
    first = arrays[0]
    if integer is None:
        _check_alike(path, first, other, arrays[1])
    if not first.system.overflows:
        compare_fields(sources, arrays, connection, all_, progress, as_json)
        return
    second = arrays[1] if integer is None else integer
    work = work_on(sources[0].info, "compare", *(source.info for source in sources[1:]))
    with connection(work) as client, fitting(work, client, backend=backend):
        lazy = count_orders(first, second)
        amount: dict[str, Any] = {"numbers": first.size, "nbytes": sum(array.nbytes for array in arrays)}
        with measured() as cost:
            counts = compute(lazy, client, progress=progress, label="compare", **amount).item()
            differing = _differing(first, second, client) if all_ and counts.equal < first.size else []
    nbytes = bytes_read([lazy], [array.words for array in arrays])
    cost.record("compare", first.size, nbytes)
    if as_json:
        fields = {**asdict(counts), "count": first.size, **cost.as_dict(), "bytes_read": nbytes}
        if all_:
            fields["indices"] = [list(index) for index, *_ in differing]
            fields["values"] = [list(map(to_decimal, pair)) for _, *pair in differing]
        print_json({"op": "compare", "stores": [path, other], **fields})
    else:
        remark(f"{path} against {other}: {counted(first.size, 'integers')}")
        remark(f"{counts.less} less, {counts.equal} equal, {counts.greater} greater")
        if counts.first_difference is not None:
            remark(f"first difference at index {counts.first_difference}")
        for index, *pair in differing:
            echo("\t".join([",".join(map(str, index)), *(number_text(to_decimal(v)) for v in pair)]))
        remark(f"({size_text(nbytes)} in {cost_text(nbytes, cost)})")
    if counts.first_difference is not None:
        click.get_current_context().exit(1)


def _differing(first: Any, second: Any, client: Any) -> list[tuple[Any, ...]]:
    """Return index and both numbers of each place where a store differs from another, or an integer."""
    import numpy as np

    from rnsdask.jobs.compute import compute
    from rnsdask.lazy.indexing import nonzero

    first, shape = first.reshape(-1), first.shape
    second = second if isinstance(second, int) else second.reshape(-1)
    differs = first != second
    sides = [side[differs].astype(object) for side in (first, second) if not isinstance(side, int)]
    (places,) = nonzero(differs)
    found, *numbers = compute([places, *sides], client, label="compare")
    if isinstance(second, int):
        numbers.append(np.full(len(found), second, dtype=object))
    indices = zip(*(axis.tolist() for axis in np.unravel_index(found, shape)), strict=True)
    return [(index, int(a), int(b)) for index, a, b in zip(indices, *numbers, strict=True)]


def _check_alike(path: str, first: Any, other: str, second: Any) -> None:
    """Raise CommandError unless two stores are of one shape and one kind of numbers."""
    if type(first) is not type(second):
        raise CommandError(
            Message(
                f"{path} is ",
                Kind.of(type(first), "a"),
                f" and {other} ",
                Kind.of(type(second), "a"),
                "; rnsdask convert SRC -o DST --to rns makes them of one kind",
            )
        )
    if first.shape != second.shape:
        raise CommandError(
            f"{path} has shape {first.shape} and {other} {second.shape}; they must be the same"
        )
