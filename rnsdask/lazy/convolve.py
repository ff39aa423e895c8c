"""Convolution along an axis, NumPy, CuPy or Dask, chunk by chunk (:mod:`rnsdask.fields.convolution`)."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, SupportsIndex, overload

import dask.array as da
import numpy as np

from rnsdask.backend import Array, backend_name
from rnsdask.core import rows
from rnsdask.core.axes import axis_index
from rnsdask.core.errors import brief
from rnsdask.core.moduli import ModuliSet
from rnsdask.core.operations import Footprint
from rnsdask.core.overflow import overflow_mode
from rnsdask.core.place import Grid, Place
from rnsdask.core.ranges import Range
from rnsdask.core.table import Entry
from rnsdask.core.ways import must
from rnsdask.fields import convolution, fermat_convolution, wide_products
from rnsdask.fields.fermat_field import FermatField
from rnsdask.fields.system import FiniteFields
from rnsdask.lazy.chunks import as_lazy, rechunk, without_empty_chunks
from rnsdask.lazy.elementwise import check_one_kind, entry_of
from rnsdask.lazy.growing import extend_operands, extends, range_of_products, range_of_sums
from rnsdask.lazy.integer_operands import are_integers, as_numbers, meta_of
from rnsdask.lazy.long_convolve import convolve_in_chunks, transform_length
from rnsdask.lazy.map import map_chunks, unify_chunks
from rnsdask.lazy.ntt import EXCHANGES
from rnsdask.lazy.one_task import fits_one_task
from rnsdask.lazy.operands import (
    N,
    Numbers,
    Operand,
    broadcast_shape,
    common_system,
    ends_of,
    find_lengths,
    is_lazy_integer,
    is_number_array,
    lazy_column,
    make_alike,
    make_like,
    scalar,
    with_axes,
)
from rnsdask.lazy.widening import Residues, apply_to_arrays
from rnsdask.rns import matmul as products
from rnsdask.rns.extend import base_extend
from rnsdask.rns.system import RNS
from rnsdask.typing import Flag, Flagged, Integers, Overflow

MODES = ("full", "same", "valid", "cyclic", "negacyclic")

_WHOLE = Footprint(20, 0)
"""Footprint of a convolution by transforms in one task, relative to the longer operand.

It holds the other operand, and some four arrays of transforms, which are up to four times as long.
"""

Window = tuple[int, int]
"""First wanted index of the full convolution, and the index after the last."""


@overload
def convolve(
    a: N | Integers,
    b: N | Integers,
    mode: str = "full",
    axis: SupportsIndex = -1,
    *,
    overflow: Overflow | None = None,
) -> N: ...
@overload
def convolve(
    a: N | Integers, b: N | Integers, mode: str = "full", axis: SupportsIndex = -1, *, overflow: Flag
) -> Flagged[N]: ...
def convolve(
    a: N | Integers,
    b: N | Integers,
    mode: str = "full",
    axis: SupportsIndex = -1,
    *,
    overflow: Overflow | Flag | None = None,
) -> N | Flagged[N]:
    """Convolve along an axis, exactly: number k is the sum of all products ``a_i b_j`` with i + j = k.

    Parameters
    ----------
    a, b : RNSArray, IntervalRNSArray, FieldArray, integers, or int
        At least one array of numbers; two must have the same number system and processor. The other axes
        broadcast. A list or plain array of integers is converted to the other operand's system. An integer,
        maybe lazy, counts as an array of length 1.
    mode : {"full", "same", "valid", "cyclic", "negacyclic"}
        For A and B numbers along the axis, with A >= B: all A + B - 1 results; the middle A of them; or the
        A - B + 1 that use all B numbers of the shorter operand (these three as ``numpy.convolve``). For
        operands of one length N: result k plus or minus result k + N.
    axis : int
        The axis, of the shape that the operands broadcast to.
    overflow : {"raise", "wrap", "flag", "extend"}, optional
        What happens to results out of range. The default is the mode set by :func:`.errstate`, else
        ``"extend"`` for arrays whose range grows and ``"raise"`` for others. Only the results count, not
        partial sums. FieldArrays never overflow and do not take it.

    Returns
    -------
    RNSArray, IntervalRNSArray or FieldArray
        Lazy if an operand is, with the bound that the operands' bounds imply. With ``"flag"`` a pair of the
        results modulo M and a Boolean array that is true where the exact result is out of range.

    Raises
    ------
    RNSOverflowError
        With ``"raise"``, if an exact result is out of range; on Dask when it is computed.
    TypeError, ValueError
        If the operands do not fit one another, one is empty along the axis, or `mode` or `overflow` is
        unknown; AxisError, a ValueError, if the axis is out of range.

    Notes
    -----
    On Dask, the longer operand may have several chunks along the axis; if the shorter one has B numbers, it
    becomes one chunk, and each chunk of the longer one is extended by the last B - 1 numbers of its
    predecessor. If B exceeds a chunk of the longer operand, or the mode is cyclic, the axis becomes one chunk
    of both, or for elements of a Fermat field is transformed in chunks of a power of two. Other axes may have
    any chunks.
    """
    if mode not in MODES:
        raise ValueError(must("mode", f"be one of {', '.join(MODES)}, got {brief(mode)}"))
    arrays = [operand for operand in (a, b) if is_number_array(operand)]
    if not arrays:
        raise TypeError("convolve takes at least one array of numbers, got none")
    check_one_kind(*arrays, row=rows.convolve)
    x, y = (_as_array(operand, arrays[0]) for operand in (a, b))
    find_lengths(x, y)
    if not extends(overflow, x, y):
        x, y = make_alike(x, y)
    how: dict[str, Any] = {"mode": mode, "axis": axis, "overflow": overflow}
    found: N | Flagged[N] = apply_to_arrays("convolve", rows.convolve, x, y, **how)
    return found


def numbers_waiting(a: Numbers, b: Numbers, mode: str, axis: SupportsIndex) -> int:
    """Most numbers of a convolution that one process holds at once because they wait for others."""
    entry = entry_of(rows.convolve, a, b)
    count = entry.count_waiting if isinstance(entry, Entry) else None
    return 0 if count is None else count(a, b, mode=mode, axis=axis)


def _as_array(operand: Operand, like: Numbers) -> Any:
    """Convert an operand to an array of the same number system."""
    if is_number_array(operand):
        return operand
    system = like.system
    if are_integers(operand):
        return as_numbers(operand, like)
    if ends := ends_of(operand):
        system = system.for_range(min(ends), max(ends))
    if is_lazy_integer(operand):
        return make_like((like,), lazy_column(operand, system, 1), system.with_bound(None), "raise")
    value = scalar(operand)
    words = np.asarray(system.column(value, 1), like=meta_of(like.words))
    return make_like((like,), words, system.with_bound(abs(value)), "raise")


def convolve_prime_fields(
    a: Numbers, b: Numbers, *, mode: str, axis: SupportsIndex, overflow: str | None = None
) -> Any:
    """Convolve elements of prime fields, by residues modulo M."""
    overflow_mode(overflow, a.system)
    x, y = (Residues(v.words, RNS(v.system.moduli)) for v in (a, b))
    found = convolve_residues(x, y, mode=mode, axis=axis, overflow="wrap")
    return make_like((a,), found.words, a.system, "raise")


def convolve_fermat_field(
    a: Numbers, b: Numbers, *, mode: str, axis: SupportsIndex, overflow: str | None = None
) -> Any:
    """Convolve elements of a Fermat field chunk by chunk, or long operands by transforms in chunks."""
    overflow_mode(overflow, a.system)
    field, (x, y, k, lengths) = a.system, _line_up(a, b, axis, mode)
    fermat_convolution.check_lengths(field, lengths, mode)
    window = _window(mode, lengths)
    is_cut = _goes_in_chunks(x, y, k, mode, field)
    if is_cut and not _fits_whole(x, y):
        long, short = (make_like((a,), as_lazy(words), field, "raise") for words in (x, y))
        return convolve_in_chunks(long, short, k, mode, window)
    options: dict[str, Any] = {"system": field, "mode": mode, "axis": k}
    words = _map(_convolve_field_block, x, y, window, rows=field.rows, options=options)
    if is_cut:
        words = rechunk(words, {k + 1: max(max(v.chunks[k + 1]) for v in (x, y) if isinstance(v, da.Array))})
    return make_like((a,), words, field, "raise")


def convolve_wide_fields(
    a: Numbers, b: Numbers, *, mode: str, axis: SupportsIndex, overflow: str | None = None
) -> Any:
    """Convolve elements of prime fields beyond 32 bits chunk by chunk."""
    overflow_mode(overflow, a.system)
    fields, (x, y, k, lengths) = a.system, _line_up(a, b, axis, mode)
    options: dict[str, Any] = {"system": fields, "mode": mode, "axis": k}
    words = _map(_convolve_field_block, x, y, _window(mode, lengths), rows=fields.rows, options=options)
    return make_like((a,), words, fields, "raise")


def waiting_in_fermat_field(a: Numbers, b: Numbers, *, mode: str, axis: SupportsIndex) -> int:
    """Count the numbers of transforms in chunks: of a transformed operand, and three arrays of a step."""
    x, y, k, lengths = _line_up(a, b, axis, mode)
    if not _goes_in_chunks(x, y, k, mode, a.system):
        return 0
    batch = np.broadcast_shapes(*((*v.shape[1 : k + 1], *v.shape[k + 2 :]) for v in (x, y)))
    return 4 * math.prod(batch) * transform_length(a.system, lengths, mode)


def _line_up(a: Numbers, b: Numbers, axis: SupportsIndex, mode: str) -> tuple[Any, Any, int, Window]:
    """Return words with equally many axes, the longer operand first; the axis, and the lengths along it."""
    ndim = max(array.words.ndim for array in (a, b)) - 1
    k = axis_index(axis, ndim)
    x, y = (with_axes(array.words, ndim) for array in (a, b))
    first, second = _checked_lengths(x, y, k, mode)
    return (x, y, k, (first, second)) if first >= second else (y, x, k, (second, first))


def _fits_whole(x: Any, y: Any) -> bool:
    """Whether one task takes both operands whole, rather than three transforms in chunks."""
    return fits_one_task(_WHOLE, 3 * EXCHANGES, *(words for words in (x, y) if isinstance(words, da.Array)))


def _goes_in_chunks(x: Any, y: Any, axis: int, mode: str, field: FermatField) -> bool:
    length = transform_length(field, (x.shape[axis + 1], y.shape[axis + 1]), mode)
    return _is_long(x, y, axis, mode) and length <= fermat_convolution.longest_transform(field)


def convolve_residues(a: Any, b: Any, *, mode: str, axis: SupportsIndex, overflow: str | None = None) -> Any:
    """Convolve residues chunk by chunk."""
    ndim = max(array.words.ndim for array in (a, b)) - 1
    k = axis_index(axis, ndim)
    lengths = _checked_lengths(with_axes(a.words, ndim), with_axes(b.words, ndim), k, mode)
    window, terms = _window(mode, lengths), min(lengths)
    (a, b), overflow = extend_operands(partial(_range_of_sums, terms, mode), overflow, a, b)
    whole = common_system(a, b)
    overflows = overflow_mode(overflow, whole)
    x, y = (with_axes(array.words, ndim) for array in (a, b))
    systems = (a.system, b.system)
    system = systems[0]
    reach = terms * a.system.known_magnitude * b.system.known_magnitude
    is_safe = products.is_known_to_fit(system, reach) and (mode != "negacyclic" or system.signed)
    # Results out of range raise an error, so the bound holds for all returned results.
    is_known = reach < system.greatest_magnitude and (overflows == "raise" or is_safe)
    if x.shape[k + 1] < y.shape[k + 1]:
        x, y, systems = y, x, systems[::-1]
    options = {
        "systems": systems,
        "overflows": "wrap" if is_safe and overflows == "raise" else overflows,
        "mode": mode,
        "axis": k,
    }
    count = system.rows + (overflows == "flag")
    words = _map(_convolve_block, x, y, window, rows=count, options=options)
    return make_like((a,), words, whole.with_bound(reach if is_known else None), overflows)


def _range_of_sums(terms: int, mode: str, a: Range, b: Range) -> Range:
    low, high = range_of_sums(range_of_products(a, b), terms)
    return (-max(-low, high), max(-low, high)) if mode == "negacyclic" else (low, high)


def _checked_lengths(x: Any, y: Any, axis: int, mode: str) -> Window:
    """Return the lengths along the axis, checked for the mode."""
    shapes = [tuple(map(int, words.shape[1:])) for words in (x, y)]
    broadcast_shape([(*shape[:axis], 1, *shape[axis + 1 :]) for shape in shapes])
    lengths = shapes[0][axis], shapes[1][axis]
    if not all(lengths):
        raise ValueError(
            f"convolve takes operands that are not empty, got {lengths[0]} and {lengths[1]} numbers"
        )
    if mode.endswith("cyclic") and lengths[0] != lengths[1]:
        raise ValueError(
            f"a {mode} convolution takes operands of one length, got {lengths[0]} and {lengths[1]} numbers"
        )
    return lengths


def _window(mode: str, lengths: Window) -> Window:
    short, longer = sorted(lengths)
    if mode == "same":
        return (short - 1) // 2, (short - 1) // 2 + longer
    if mode == "valid":
        return short - 1, longer
    return (0, short + longer - 1) if mode == "full" else (0, longer)


def _map(
    function: Callable[..., Array], x: Any, y: Any, window: Window, rows: int, options: dict[str, Any]
) -> Any:
    """Map a function over chunks of words, `x` being the longer operand."""
    k, overlap = options["axis"], 0
    if isinstance(x, da.Array) or isinstance(y, da.Array):
        x, y = (without_empty_chunks(as_lazy(words)) for words in (x, y))
        x, y, overlap = _with_chunks(x, y, k, options["mode"])
    # One axis becomes two: each operand has its own, with length 1 along the other's.
    x, y = x[(slice(None),) * (k + 2) + (None,)], y[(slice(None),) * (k + 1) + (None,)]
    located: dict[str, Any] = {}
    if isinstance(x, da.Array):
        axes = tuple(range(x.ndim))
        (x, y), _ = unify_chunks((x, y), (axes, axes))
        places = map(Grid.of(x.chunks[k + 1 : k + 2]).place, np.ndindex(x.numblocks[k + 1]))
        windows = [_window_of(window, overlap, place, 0) for place in places]
        chunks = [c if sum(c) != 1 else d for c, d in zip(x.chunks[1:], y.chunks[1:], strict=True)]
        chunks[k : k + 2] = [tuple(stop - first for first, stop in windows), (1,)]
        located = {"chunks": chunks, "grid": Grid.of([*chunks[: k + 1], *chunks[k + 2 :]])}
    options |= {"window": window, "overlap": overlap, "token": "rns-convolve", **located}
    words = map_chunks(function, x, y, rows=rows, located=True, **options)
    words = words[(slice(None),) * (k + 2) + (0,)]
    return without_empty_chunks(words) if isinstance(words, da.Array) else words


def _is_long(x: Any, y: Any, axis: int, mode: str) -> bool:
    """Whether operands in several chunks along the axis cannot be convolved chunk by chunk."""
    cut, other = (
        words.chunks[axis + 1] if isinstance(words, da.Array) else words.shape[axis + 1 : axis + 2]
        for words in (x, y)
    )
    return len(cut) + len(other) > 2 and (mode.endswith("cyclic") or sum(other) > max(cut))


def _with_chunks(x: da.Array, y: da.Array, axis: int, mode: str) -> tuple[da.Array, da.Array, int]:
    """Return words in matching chunks, and how many numbers of its predecessor a chunk of `x` begins with."""
    y, is_long = rechunk(y, {axis + 1: -1}), _is_long(x, y, axis, mode)
    if x.numblocks[axis + 1] == 1 or is_long:
        return rechunk(x, {axis + 1: -1}), y, 0
    overlap = int(y.shape[axis + 1]) - 1
    if overlap:
        depth = {axis + 1: (overlap, 0)}
        x = da.overlap.overlap(x, depth=depth, boundary=dict.fromkeys(depth, "none"))
    return x, y, overlap


def _window_of(window: Window, overlap: int, place: Place, axis: int) -> Window:
    """Wanted numbers that a chunk yields along the axis, counted from its start.

    A chunk yields numbers at the positions of its own; the last chunk also yields all later ones.
    """
    if not place.index:
        return window
    k, (start, stop) = place.index[axis], place.location[axis]
    begin = start - k * overlap  # without the repeated numbers
    first = max(window[0], begin + overlap if k else begin)
    end = window[1] if stop == place.shape[axis] else min(window[1], begin + stop - start)
    return first - begin, max(first, end) - begin


def _convolve_block(
    x: Array,
    y: Array,
    *,
    systems: tuple[RNS, RNS],
    overflows: str,
    mode: str,
    axis: int,
    window: Window,
    overlap: int,
    place: Place,
    grid: Grid | None = None,
) -> Array:
    """Convolve a chunk of residues; adds an axis of length 1 after the axis, and with ``"flag"`` the mask."""
    k = axis + 1
    x, y = _operands_of(x, y, k)
    index = place.index[: axis + 1] + place.index[axis + 2 :]
    locate = int if grid is None else grid.place(index).flat_index
    wanted = None if mode.endswith("cyclic") else _window_of(window, overlap, place, axis)
    lengths, system = (x.shape[k], y.shape[k]), systems[0]
    if overflows == "wrap":
        targets, reach = system.moduli, min(lengths) * math.prod(s.known_magnitude for s in systems)
    else:
        negative = mode == "negacyclic"
        systems, targets, reach = products.measure_sums(x, y, min(lengths), systems, differences=negative)
    sizes = lengths, wanted, systems, targets, reach
    primes = convolution.through_primes(*sizes, negacyclic=mode == "negacyclic")
    moduli = primes or targets
    x, y = (products.extended(v, s, moduli) for v, s in zip((x, y), systems, strict=True))
    found = _multiply(x, y, moduli, mode, axis, wanted)
    if primes is not None:
        found = base_extend(found, RNS(primes, True, reach), targets)
    if overflows != "wrap":
        found = products.finish(products.Product(found, reach), system, overflows, locate)
    return np.expand_dims(found, k + 1)


def _convolve_field_block(
    x: Array,
    y: Array,
    *,
    system: FiniteFields,
    mode: str,
    axis: int,
    window: Window,
    overlap: int,
    place: Place,
    grid: Grid | None = None,  # noqa: ARG001  (no error names an index)
) -> Array:
    """Convolve one chunk of elements; adds an axis of length 1 after the axis."""
    of: Any = fermat_convolution if isinstance(system, FermatField) else wide_products
    x, y = (np.moveaxis(words, axis + 1, -1) for words in _operands_of(x, y, axis + 1))
    if mode.endswith("cyclic"):
        found = of.convolve_cyclic(x, y, system, mode == "negacyclic")
    else:
        found = of.convolve(x, y, system, *_window_of(window, overlap, place, axis))
    return np.expand_dims(np.moveaxis(found, -1, axis + 1), axis + 2)


def _operands_of(x: Array, y: Array, axis: int) -> tuple[Array, Array]:
    """Remove from each chunk the other operand's axis, and move both to one processor."""
    # A single number may be a NumPy array on either processor.
    like = next((block for block in (x, y) if backend_name(block) == "cuda"), x)
    x, y = (np.asarray(block, like=like) for block in (x, y))
    return x[(slice(None),) * (axis + 1) + (0,)], y[(slice(None),) * axis + (0,)]


def _multiply(x: Array, y: Array, moduli: ModuliSet, mode: str, axis: int, window: Window | None) -> Array:
    """Convolve modulo M along an axis of the numbers."""
    x, y = np.moveaxis(x, axis + 1, -1), np.moveaxis(y, axis + 1, -1)
    if window is None:
        found = convolution.convolve_cyclic(x, y, moduli, mode == "negacyclic")
    else:
        found = convolution.convolve(x, y, moduli, *window)
    return np.moveaxis(found, -1, axis + 1)
