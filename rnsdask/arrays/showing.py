"""Numbers of an array as text that people read: few of them, and the ends of long ones.

The work is bounded whatever the size of an array: only numbers that are shown are fetched and converted, and
none that is yet to be computed.
"""

import math
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate, product
from typing import Any

import dask.array as da
import numpy as np
from numpy.typing import NDArray

from rnsdask.backend import to_backend
from rnsdask.core.integer_text import brief_decimal, number_text

# Numbers that are shown at most, and their words of 32 bits, unless these are of one or two numbers.
_MOST_NUMBERS = 36
_MOST_WORDS = 2**16

# Numbers that are converted together: so few of many moduli need no tables.
_BATCH = 8

_EDGE_ITEMS = (3, 2, 1)
"""Numbers at either end of an axis that is too long to be shown, as many of these as fit."""

_ELLIPSIS = "…"
_WIDTH = 79


def numbers_text(words: Any, system: Any) -> str | None:
    """The numbers of words (rows, *shape) in nested brackets, as NumPy's; None if some are not in memory.

    Where there are many, it is some at both ends of each axis.
    """
    shape = words.shape[1:]
    if any(map(math.isnan, shape)):
        return None
    if 0 in shape:
        return "[]"
    places, cuts = _places(shape, system.words32)
    chosen = _chosen(words, places)
    if chosen is None:
        return None
    values = _values(chosen, system)
    texts = np.empty(len(values), dtype=object)
    texts[:] = list(map(number_text, values))
    return _nested(texts.reshape([len(along) for along in places]), cuts)


def inline_text(words: Any, system: Any, width: int) -> str | None:
    """The first and last numbers along one line of so many characters, in C order, as xarray shows them."""
    shape = words.shape[1:]
    if any(map(math.isnan, shape)) or 0 in shape:
        return None
    size = math.prod(shape)
    for count in (3, 2, 1):
        flat = list(range(size)) if size <= 2 * count else [*range(count), *range(size - count, size)]
        chosen = _chosen_at(words, [tuple(map(int, np.unravel_index(i, shape))) for i in flat])
        if chosen is None:
            return None
        texts = [brief_decimal(value)[0] for value in _values(chosen, system)]
        if size > len(texts):
            texts.insert(count, "...")
        if len(line := " ".join(texts)) <= width:
            return line
    return None


def _places(shape: Sequence[int], words32: int) -> tuple[list[list[int]], list[int | None]]:
    """Which places along each axis are shown, and after how many of them others are left out."""
    most = min(_MOST_NUMBERS, max(2, _MOST_WORDS // words32))
    if math.prod(shape) <= most:
        return [list(range(n)) for n in shape], [None] * len(shape)
    places: list[list[int]] = []
    cut: list[int | None] = []
    for edge in _EDGE_ITEMS:
        places = [list(range(n)) if n <= 2 * edge else [*range(edge), *range(n - edge, n)] for n in shape]
        cut = [edge if n > 2 * edge else None for n in shape]
        if math.prod(map(len, places)) <= most:
            break
    for axis, n in enumerate(shape):
        if math.prod(map(len, places)) > most:  # of so many axes the first place alone
            places[axis], cut[axis] = [0], 1 if n > 1 else None
    return places, cut


def _chosen(words: Any, places: Sequence[Sequence[int]]) -> Any:
    """Words (rows, n) of the numbers at all places, or None."""
    return _chosen_at(words, list(product(*places)))


def _chosen_at(words: Any, indices: Sequence[tuple[int, ...]]) -> Any:
    """Words (rows, n) of the numbers at indices, or None if some are not in memory."""
    columns = [_column(words, index) for index in indices]
    return None if any(column is None for column in columns) else np.stack(columns, axis=1)


def _column(words: Any, index: tuple[int, ...]) -> Any:
    """The words of one number, or None if they are not in memory."""
    if isinstance(words, da.Array):
        ends = [list(accumulate(lengths)) for lengths in words.chunks[1:]]
        place = [bisect_right(along, i) for along, i in zip(ends, index, strict=True)]
        index = tuple(i - (along[k - 1] if k else 0) for along, i, k in zip(ends, index, place, strict=True))
        words = _chunk_in_memory(words, (0, *place))
    return None if words is None else words[(slice(None), *index)]


def _chunk_in_memory(array: da.Array, index: Sequence[int]) -> Any:
    """Return a chunk of a Dask array, or None if it is yet to be computed or is in another process."""
    layer = getattr(array.dask, "layers", {}).get(array.name)
    if layer is None or not layer.is_materialized():
        return None
    chunk = layer.get((array.name, *index))
    return chunk if hasattr(chunk, "shape") else None


def _values(words: Any, system: Any) -> list[int]:
    """The integers of words (rows, n), without tables for many numbers of many moduli."""
    on_host = to_backend(words, "cpu")
    parts = (on_host[:, first : first + _BATCH] for first in range(0, on_host.shape[1], _BATCH))
    return [value for part in parts for value in system.decode(part)]


def _nested(texts: NDArray[np.object_], cuts: Sequence[int | None], depth: int = 0) -> str:
    """Texts in nested brackets, each axis with an ellipsis where places are left out."""
    parts = list(texts) if texts.ndim == 1 else [_nested(part, cuts[1:], depth + 1) for part in texts]
    cut = cuts[0]
    if cut is not None:
        parts.insert(cut, _ELLIPSIS)
    if texts.ndim > 1:
        between = ",\n" + "\n" * (texts.ndim - 2) + " " * (depth + 1)
        return f"[{between.join(parts)}]"
    lines, line = [], "[" + parts[0]
    for part in parts[1:]:
        if depth + len(line) + len(part) + 3 > _WIDTH:
            lines.append(line + ",")
            line = " " * (depth + 1) + part
        else:
            line += ", " + part
    return "\n".join([*lines, line + "]"])
