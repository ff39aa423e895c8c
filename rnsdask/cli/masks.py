"""Looking at plain arrays, such as the masks that eval writes: the command ``where``, and parts of others."""

from typing import TYPE_CHECKING, Any

import click

from rnsdask.cli.commands import Command
from rnsdask.cli.integers import POSITIVE
from rnsdask.cli.options import Connection, complete_path, json_option
from rnsdask.cli.printing import CommandError, answer, cost_text, counted, echo, print_json, remark, size_text

if TYPE_CHECKING:
    from collections.abc import Iterator

PART_VALUES = 2**24
"""Values of a mask that are looked at together, where one row of it has fewer."""


def sum_of_values(path: str, connection: Connection, progress: bool, as_json: bool) -> None:
    """Print the sum of a plain array: of a mask, how many are true."""
    from rnsdask import store
    from rnsdask.jobs.cost import measured
    from rnsdask.jobs.memory_plan import describe, fitting
    from rnsdask.jobs.progress import metered
    from rnsdask.jobs.reduction import sum_plain

    info = store.open_plain(path)
    nbytes, work = info.count * info.dtype.itemsize, describe("sum", [], info, [info])
    with (
        connection(work) as client,
        fitting(work, client),
        measured() as cost,
        metered("sum", info.n_chunks, numbers=info.count, nbytes=nbytes, shown=progress) as meter,
    ):
        total = sum_plain(info, client, meter.advance)
    cost.record("sum", info.count, nbytes)
    if as_json:
        fields = {"value": str(total), "count": info.count, **cost.as_dict(), "bytes_read": nbytes}
        print_json({"op": "sum", "store": path, **fields})
        return
    what = "true" if info.dtype.name == "bool" else "sum"
    answer(f"{what} of {counted(info.count, 'values')}", str(total))
    remark(f"({size_text(nbytes)} in {cost_text(nbytes, cost)})")


@click.command("where", cls=Command)
@click.argument("path", metavar="MASK", shell_complete=complete_path)
@click.option("-n", "count", type=POSITIVE, metavar="N", help="At most so many.  [default: all]")
@json_option
def where(path: str, count: int | None, as_json: bool) -> None:
    """Print the indices where MASK is true.

    MASK is a Boolean array that eval wrote, or any Boolean Zarr array. Indices are in C order, one a line, of
    several axes with commas between.
    """
    from itertools import islice

    indices = islice(_indices(path), count)
    if as_json:
        print_json({"op": "where", "store": path, "indices": [list(index) for index in indices]})
        return
    for index in indices:
        echo(",".join(map(str, index)))


def top_of_values(path: str, k: int, as_json: bool) -> None:
    """Print the k greatest values of a plain array with their indices: of a mask, where it is true first."""
    import numpy as np

    from rnsdask import store

    shape = store.open_plain(path).shape
    best: Any = None
    for start, part in _parts(store.open_any_array(path), path):
        # Orders are stable, so equal values stay by index; ~ reverses the order without overflow.
        row = part[0].size if len(part) else 1
        found: Any = np.arange(start * row, start * row + part.size), part.ravel()
        if best is not None:
            found = tuple(map(np.concatenate, zip(best, found, strict=True)))
        order = np.argsort(~found[1] if k > 0 else found[1], kind="stable")[: abs(k)]
        best = found[0][order], found[1][order]
    places, values = ([], []) if best is None else best
    indices = [list(map(int, np.unravel_index(place, shape))) for place in places]
    texts = [str(int(value)) for value in values]
    if as_json:
        print_json({"op": "topk", "store": path, "k": k, "values": texts, "indices": indices})
        return
    for index, text in zip(indices, texts, strict=True):
        echo(f"{','.join(map(str, index))}\t{text}")


def _indices(path: str) -> "Iterator[tuple[int, ...]]":
    """Indices of the true values."""
    import numpy as np

    from rnsdask import store

    values = store.open_any_array(path)
    if values.dtype != np.bool_ or not values.ndim:
        raise CommandError(
            f"{path}: where is for Boolean arrays, and it has dtype {values.dtype}; "
            'rnsdask eval "x > 5" x=STORE -o MASK writes one'
        )
    for start, part in _parts(values, path):
        places = np.argwhere(part)
        places[:, 0] += start
        yield from map(tuple, places.tolist())


def _parts(values: Any, path: str) -> "Iterator[tuple[int, Any]]":
    """Parts of a plain array, a few rows of chunks at a time, each with the index of its first row."""
    import math

    row = max(1, math.prod(values.shape[1:]))
    step = values.chunks[0] * max(1, PART_VALUES // (row * values.chunks[0]))
    for start in range(0, values.shape[0], step):
        try:
            part = values[start : start + step]
        except Exception as error:  # of any type, because the chunks may hold anything
            rows = f"rows {start} to {min(start + step, values.shape[0]) - 1}"
            raise CommandError(
                f"{path}: {rows} cannot be read: {' '.join(str(error).split()):.200}"
            ) from error
        yield start, part
