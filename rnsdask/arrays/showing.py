"""Display of arrays: numbers as text and tables, pictures, and long integers in notebooks.

Text takes bounded time whatever the size of an array: only shown numbers are fetched and converted, and only
if they are in memory.
"""

from __future__ import annotations

import math
import sys
from bisect import bisect_right
from collections.abc import Sequence
from fractions import Fraction
from html import escape
from itertools import accumulate, product
from typing import TYPE_CHECKING, Any

import dask
import dask.array as da
import numpy as np
from dask.array.svg import svg
from dask.base import compute
from numpy.typing import NDArray

from rnsdask.arrays.collection import NumberCollection
from rnsdask.backend import to_backend
from rnsdask.core.integer_text import brief_decimal, number_text
from rnsdask.lazy.doubles import log2 as logarithms
from rnsdask.lazy.histogram import histogram

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_NUMBERS = 36
"""Most numbers that are shown."""

_MOST_WORDS = 2**16
"""Most words of 32 bits of the numbers that are shown together, unless these are one or two numbers."""

_BATCH = 8
"""Numbers that are converted together: so few that many moduli need no tables."""

_MOST_CHUNKS = 64
"""Most chunks of an array that is sliced as a whole."""

_EDGE_ITEMS = (3, 2, 1)
"""Candidates for the numbers shown at either end of a long axis; the first that fits is used."""

_ELLIPSIS = "…"
_WIDTH = 79

_MOST_ITEMS = 100
"""Most items of an object array that a notebook shows completely."""

_MOST_BITS = 1000
"""Most bits of numbers on an axis without a scale: Matplotlib adds margins to what doubles hold."""

_MOST_POINTS = 10**6
"""Most numbers of a line; each becomes a Python int and a double."""


# ---- text of an array -------------------------------------------------------------------------------------


class Showing(NumberCollection):
    """Text, tables and plots of an array."""

    __slots__ = ()

    def __repr__(self) -> str:
        """Return class, shape, system and chunks in one line, then the numbers if they are in memory."""
        numbers = numbers_text(self._words, self._system)
        return self._summary() if numbers is None else f"{self._summary()}\n{numbers}"

    def _summary(self) -> str:
        library = "dask" if self._is_lazy else type(self._words).__module__.partition(".")[0]
        chunks = f", chunksize={self.chunksize}" if self._is_lazy else ""
        return f"{type(self).__name__}<{library}: shape={self.shape}, {self._system}{chunks}>"

    def _repr_inline_(self, max_width: int) -> str:
        """Return the line that xarray shows for a variable."""
        numbers = inline_text(self._words, self._system, max_width)
        chunks = f"<chunksize={self.chunksize}>" if self._is_lazy else f"<shape={self.shape}>"
        return (f"{type(self).__name__}{chunks}" if numbers is None else numbers)[:max_width]

    def _repr_html_(self) -> str:
        """Return a table of shape, system and chunks, the numbers, and Dask's drawing of the chunks."""
        size = dask.utils.format_bytes(self.nbytes) if self._has_lengths else "unknown"
        rows = {"Shape": self.shape, **self._system.details(), "Bytes": size, **self._chunk_details()}
        cells = "".join(f"<tr><th>{name}</th><td>{value}</td></tr>" for name, value in rows.items())
        table = f"<table><caption>{type(self).__name__}</caption><tbody>{cells}</tbody></table>"
        numbers = numbers_text(self._words, self._system)
        shown = "" if numbers is None else f"<pre>{escape(numbers)}</pre>"
        return table + shown + self._picture()

    def _chunk_details(self) -> dict[str, str]:
        """Return the entries of Dask's table about chunks and graph, by name."""
        if not self._is_lazy:
            return {}
        count, layers = self.npartitions, len(getattr(self._words.dask, "layers", ()))
        return {
            "Chunk": f"{self.chunksize}, {count} chunk{'' if count == 1 else 's'}",
            "Dask graph": f"{layers} layer{'' if layers == 1 else 's'}",
        }

    def _picture(self) -> str:
        """Return Dask's drawing of the chunks along the axes of the numbers, if there is one."""
        if not self._is_lazy or not self._has_lengths:
            return ""
        try:
            picture: str = svg(self.chunks, size=dask.config.get("array.svg.size", 120))
        except NotImplementedError:  # Dask draws neither empty arrays nor many axes
            return ""
        return picture


def numbers_text(words: Any, system: Any) -> str | None:
    """Return the numbers of words (rows, *shape) in nested brackets; None if some are not in memory.

    Long arrays show a few numbers at both ends of each axis.
    """
    shape = words.shape[1:]
    if any(map(math.isnan, shape)):
        return None
    if 0 in shape:
        return "[]"
    places, cuts = _places(shape, system.words32)
    chosen = _select(words, places)
    if chosen is None:
        return None
    values = _values(chosen, system)
    texts = np.empty(len(values), dtype=object)
    texts[:] = list(map(number_text, values))
    return _nest(texts.reshape([len(along) for along in places]), cuts)


def inline_text(words: Any, system: Any, width: int) -> str | None:
    """Return the first and last numbers in C order in a line of at most `width` characters."""
    shape = words.shape[1:]
    if any(map(math.isnan, shape)) or 0 in shape:
        return None
    size = math.prod(shape)
    for count in (3, 2, 1):
        flat = list(range(size)) if size <= 2 * count else [*range(count), *range(size - count, size)]
        chosen = _select_at(words, [tuple(map(int, np.unravel_index(i, shape))) for i in flat])
        if chosen is None:
            return None
        texts = [brief_decimal(value)[0] for value in _values(chosen, system)]
        if size > len(texts):
            texts.insert(count, "...")
        if len(line := " ".join(texts)) <= width:
            return line
    return None


def _places(shape: Sequence[int], words32: int) -> tuple[list[list[int]], list[int | None]]:
    """Return the positions shown along each axis, and how many of them come before an ellipsis."""
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
        if math.prod(map(len, places)) > most:  # with this many axes, the first position alone
            places[axis], cut[axis] = [0], 1 if n > 1 else None
    return places, cut


def _select(words: Any, places: Sequence[Sequence[int]]) -> Any:
    """Return words (rows, n) of the numbers at all positions, or None if some are not in memory."""
    return _select_at(words, list(product(*places)))


def _select_at(words: Any, indices: Sequence[tuple[int, ...]]) -> Any:
    """Return words (rows, n) of the numbers at indices, or None if some are not in memory."""
    columns = [_column(words, index) for index in indices]
    return None if any(column is None for column in columns) else np.stack(columns, axis=1)


def _column(words: Any, index: tuple[int, ...]) -> Any:
    """Return the words of one number, or None if they are not in memory."""
    if isinstance(words, da.Array):
        ends = [list(accumulate(lengths)) for lengths in words.chunks[1:]]
        place = [bisect_right(along, i) for along, i in zip(ends, index, strict=True)]
        index = tuple(i - (along[k - 1] if k else 0) for along, i, k in zip(ends, index, place, strict=True))
        words = _chunk_in_memory(words, (0, *place))
    return None if words is None else words[(slice(None), *index)]


def is_in_memory(words: Any) -> bool:
    """Whether all chunks of a Dask array of few chunks are in this process's memory."""
    return math.prod(words.numblocks) <= _MOST_CHUNKS and all(
        _chunk_in_memory(words, index) is not None for index in np.ndindex(words.numblocks)
    )


def _chunk_in_memory(array: da.Array, index: Sequence[int]) -> Any:
    """Return a chunk of a Dask array, or None if it is not computed or is in another process."""
    layer = getattr(array.dask, "layers", {}).get(array.name)
    if layer is None or not layer.is_materialized():
        return None
    chunk = layer.get((array.name, *index))
    return chunk if hasattr(chunk, "shape") else None


def _values(words: Any, system: Any) -> list[int]:
    """Decode words (rows, n), without the tables that pay off for many numbers only."""
    on_host = to_backend(words, "cpu")
    parts = (on_host[:, first : first + _BATCH] for first in range(0, on_host.shape[1], _BATCH))
    return [value for part in parts for value in system.decode(part)]


def _nest(texts: NDArray[np.object_], cuts: Sequence[int | None], depth: int = 0) -> str:
    """Join texts in nested brackets, with an ellipsis for positions left out along an axis."""
    parts = list(texts) if texts.ndim == 1 else [_nest(part, cuts[1:], depth + 1) for part in texts]
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


# ---- notebooks --------------------------------------------------------------------------------------------


def show_long_integers() -> None:
    """Register formatters in IPython that abbreviate integers which Python refuses to write.

    They apply within lists, tuples, dictionaries and arrays of objects too. Other values are shown as before.
    """
    if "IPython" not in sys.modules:
        return
    from IPython import get_ipython

    if (shell := get_ipython()) is None:
        return
    formatter = shell.display_formatter.formatters["text/plain"]
    for kind in (int, Fraction, np.ndarray):
        formatter.for_type(kind, _print)


def _print(value: Any, printer: Any, _cycle: bool) -> None:
    """Print a value as IPython's pretty printers do."""
    try:
        text = repr(value)
    except ValueError:
        text = _abbreviate_all(value)
    printer.text(text)


def _abbreviate_all(value: Any) -> str:
    if isinstance(value, np.ndarray):
        items = np.array2string(
            value, separator=", ", prefix="array(", formatter={"all": _abbreviate_all}, threshold=_MOST_ITEMS
        )
        return f"array({items}, dtype={value.dtype})"
    if isinstance(value, int):
        return number_text(value)
    if isinstance(value, Fraction):
        return f"Fraction({number_text(value.numerator)}, {number_text(value.denominator)})"
    return f"{value!r}"


# ---- plots -----------------------------------------------------------------------------------------------


class Plot:
    """Plots of an array's numbers: ``x.plot.hist()``, ``x.plot.line()``.

    Axes use doubles. Numbers beyond their range are divided by a power of two, which the axis label names. A
    lazy array is computed.
    """

    def __init__(self, array: Any) -> None:
        self._array = array

    def hist(
        self,
        bins: Any = 10,
        *,
        range: Any = None,  # noqa: A002  (as of rd.histogram)
        log2: bool = False,
        ax: Axes | None = None,
        **options: Any,
    ) -> Axes:
        """Draw a histogram, with numbers counted exactly.

        Parameters
        ----------
        bins, range
            As :func:`.histogram` takes them; with `log2` as ``numpy.histogram``, of the logarithms.
        log2 : bool
            Show the distribution of the logarithms to the base 2, for numbers of very different sizes.
        ax : matplotlib.axes.Axes, optional
            Where to draw; without it the current axes.
        **options
            Options of Matplotlib's ``stairs``, such as ``color``.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        ImportError
            If Matplotlib is not installed.
        TypeError, ValueError
            As :func:`.histogram`; or with `log2` if a number is not positive.
        """
        axes = _axes(ax)
        if log2:
            counts, edges = np.histogram(self._logarithms(), bins, range)
            label = "log2 of the numbers"
        else:
            counts, exact_edges = compute(*histogram(self._array, bins, range))
            shift = _shift(exact_edges)
            edges, label = _scale(exact_edges, shift), _label("numbers", shift)
        axes.stairs(counts, edges, **{"fill": True, **options})
        axes.set_xlabel(label)
        axes.set_ylabel("count")
        return axes

    def line(self, *, log2: bool = False, ax: Axes | None = None, **options: Any) -> Axes:
        """Draw the numbers of an array of one axis against their index.

        Parameters
        ----------
        log2 : bool
            Draw the logarithms to the base 2.
        ax : matplotlib.axes.Axes, optional
            Where to draw; without it the current axes.
        **options
            Options of Matplotlib's ``plot``, such as ``color`` and ``marker``.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        ImportError
            If Matplotlib is not installed.
        ValueError
            If the array has several axes, or more than a million numbers, or with `log2` a number that is not
            positive.
        """
        array = self._array
        if array.ndim != 1:
            raise ValueError(f"plot.line draws numbers along one axis, got shape {array.shape}; select some")
        if len(array) > _MOST_POINTS:
            way = f"x[::{-(-len(array) // _MOST_POINTS)}].plot.line() draws some of them"
            raise ValueError(f"plot.line draws at most {_MOST_POINTS} numbers, got {len(array)}; {way}")
        axes = _axes(ax)
        if log2:
            values, label = self._logarithms(), "log2 of the number"
        else:
            integers = array.to_ints()
            shift = _shift(integers)
            values, label = _scale(integers, shift), _label("number", shift)
        axes.plot(values, **options)
        axes.set_xlabel("index")
        axes.set_ylabel(label)
        return axes

    def _logarithms(self) -> Any:
        """Return the logarithms of all numbers in one NumPy array (N,)."""
        with np.errstate(divide="ignore", invalid="ignore"):
            (found,) = compute(logarithms(self._array))
        flat = (found.get() if hasattr(found, "get") else found).ravel()
        if not np.isfinite(flat).all():
            place = int((~np.isfinite(flat)).argmax())
            raise ValueError(f"log2=True is for positive numbers; the one at flat index {place} is not")
        return flat


def _axes(ax: Axes | None) -> Axes:
    """Return the axes to draw on."""
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError:
        raise ImportError("pictures need Matplotlib: pip install 'rnsdask[plot]'") from None
    return pyplot.gca()


def _shift(integers: Any) -> int:
    """Return by how many bits integers must be shifted right to fit into doubles; 0 if they fit."""
    bits = max((abs(value).bit_length() for value in integers), default=0)
    return bits if bits > _MOST_BITS else 0


def _scale(integers: Any, shift: int) -> Any:
    """Divide integers by a power of two, rounding each once."""
    return np.array([float(Fraction(value, 1 << shift)) for value in integers])


def _label(what: str, shift: int) -> str:
    return f"{what} / 2**{shift}" if shift else what
