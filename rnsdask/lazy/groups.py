"""Reductions of groups of numbers, by labels: on Dask within each chunk, then in a tree, as flox does."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple, SupportsIndex, TypeAlias, overload

import dask.array as da
import numpy as np
from dask.array.utils import meta_from_array
from numpy.typing import NDArray

from rnsdask.backend import Array, count_each, to_backend
from rnsdask.cluster.workers import checked_workers
from rnsdask.core import rows
from rnsdask.core.errors import brief
from rnsdask.core.generic import encode_results
from rnsdask.core.layout import as_matrix
from rnsdask.core.moduli import as_integer
from rnsdask.core.number_system import NumberSystem
from rnsdask.core.place import ALONE, Grid, Place
from rnsdask.lazy import labels as labelling
from rnsdask.lazy import shape
from rnsdask.lazy.chunks import as_lazy, rechunk
from rnsdask.lazy.elementwise import has, map_entry, refuse
from rnsdask.lazy.growing import extend_operands, grows, range_of_powers, range_of_sums
from rnsdask.lazy.labels import MISSING
from rnsdask.lazy.map import map_chunks, map_values
from rnsdask.lazy.operands import N, Numbers, find_lengths, is_number_array, make_like
from rnsdask.lazy.promotion import convert_to_system
from rnsdask.lazy.ranks import sorted_indices
from rnsdask.lazy.tree import checked_split, combine_tree, put_in_box
from rnsdask.lazy.widening import by_table
from rnsdask.positional.system import MOST_BITS, Positional
from rnsdask.rns.groups import distinct_codes, fold_groups
from rnsdask.rns.sort import taken
from rnsdask.typing import PlainArray, SplitEvery

Numeric: TypeAlias = Literal["sum", "prod", "max", "min", "gcd"]

_EMPTY = {"sum": 0, "prod": 1, "gcd": 0}
"""Results of groups without numbers."""


# ---- labels ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Grouping:
    """Groups of the numbers along the last axis of an array.

    Attributes
    ----------
    labels : array (G,)
        Label of each group, in memory.
    codes : NumPy or Dask array of int64, (N,)
        Group of each number, or -1 for none.
    largest : int
        Most numbers of a group, or a bound of it.
    """

    labels: NDArray[Any]
    codes: Any
    largest: int


def group_by(by: Any, expected: Any, lazy: bool) -> tuple[Grouping, tuple[int, ...]]:
    """Group by labels (*shape), which errors call `by`; return the grouping and the shape.

    Lazy labels stay lazy if `lazy` is true, but for a pass that finds the groups unless these are expected.
    """
    labels = labelling.as_labels(by)
    if isinstance(labels, da.Array) and any(map(math.isnan, labels.shape)):
        labels = labels.copy().compute_chunk_sizes()
    if isinstance(labels, da.Array) and not lazy:
        with checked_workers():
            labels = labelling.as_labels(labels.compute())
    lengths = tuple(map(int, labels.shape)) if hasattr(labels, "shape") else (len(labels),)
    groups = None if expected is None else labelling.as_groups(expected)
    if isinstance(labels, da.Array):
        return _group_lazily(shape.reshape(labels[None], (-1,))[0], groups), lengths
    if groups is None:
        groups, codes = labelling.factorize(labels)
        labelling.check_complete(codes)
    else:
        codes = labelling.codes_among(labels, groups)
    codes = codes.reshape(-1)
    counts = np.bincount(codes[codes >= 0])
    return Grouping(groups, codes, int(counts.max(initial=0))), lengths


def _group_lazily(labels: da.Array, groups: NDArray[Any] | None) -> Grouping:
    largest = int(labels.shape[0])
    if groups is None:
        ones = ((1,) * labels.numblocks[0],)
        found = map_values(_distinct_block, labels, dtype=object, chunks=ones, located=True)
        merged = combine_tree(found, _merge_blocks, (0,), "rns-labels", keepdims=False)
        with checked_workers():
            groups, counts = merged.compute().item()
        largest = int(counts.max(initial=0))
    codes = map_values(_codes_block, labels, dtype=np.int64, groups=groups)
    return Grouping(groups, codes, largest)


def _distinct_block(labels: Any, *, place: Place) -> NDArray[np.object_]:
    groups, codes = labelling.factorize(to_backend(labels, "cpu"))
    if codes.size and int(codes.min()) == MISSING:
        raise labelling.missing_label(place.flat_index(int((codes == MISSING).argmax())))
    return put_in_box((groups, np.bincount(codes, minlength=len(groups))), 1)


def _merge_blocks(boxes: Any, axis: Any, keepdims: bool) -> Any:  # noqa: ARG001
    merged = put_in_box(labelling.merge(boxes.ravel().tolist()), 1)
    return merged if keepdims else merged[0:1].reshape(())


def _codes_block(labels: Any, *, groups: NDArray[Any]) -> Any:
    return labelling.codes_among(to_backend(labels, "cpu"), groups)


# ---- chunks ------------------------------------------------------------------------------------------------


class Part(NamedTuple):
    """Results of the groups that some numbers are in.

    `codes` (k,) are of these groups, ascending, in NumPy; `values` (rows, *lead, k) are words or, in one row,
    Python ints.
    """

    codes: NDArray[np.int64]
    values: Any


Fold: TypeAlias = Callable[[Any, Any, int, NumberSystem], Any]
"""Function of values (rows, N), codes (N,), the count of groups and the system: values (rows, count)."""


def _sums(words: Array, codes: Array, count: int, system: NumberSystem) -> Array:
    return system.apply(rows.group_sums, words, codes=codes, count=count)


def _prods(words: Array, codes: Array, count: int, system: NumberSystem) -> Array:
    return system.apply(rows.group_prods, words, codes=codes, count=count)


def _extrema(words: Array, codes: Array, count: int, system: NumberSystem, *, last: bool) -> Array:
    order = sorted_indices(words, system, 0)
    order = order[np.argsort(codes[order], kind="stable")]
    counts = count_each(codes, count)
    ends = np.cumsum(counts)
    places = ends - 1 if last else ends - counts
    return taken(words, order[np.asarray(places, like=order)])


def _fold_ints(values: Any, codes: Any, _: int, __: NumberSystem, *, ufunc: np.ufunc) -> Any:
    return fold_groups(values, codes, ufunc)


_OF_WORDS: dict[str, Fold] = {
    "sum": _sums,
    "prod": _prods,
    "max": partial(_extrema, last=True),
    "min": partial(_extrema, last=False),
}
_OF_INTS: dict[str, Fold] = {
    "sum": partial(_fold_ints, ufunc=np.add),
    "prod": partial(_fold_ints, ufunc=np.multiply),
    "gcd": partial(_fold_ints, ufunc=np.gcd),
}


def _reduce_values(
    values: Any, codes: NDArray[np.int64], *, operation: str, system: NumberSystem, by_ints: bool
) -> Part:
    """Reduce values (rows, *lead, N) by codes (N,), which may be -1."""
    inside = codes >= 0
    if not inside.all():
        values, codes = values[..., np.asarray(inside, like=values)], codes[inside]
    present, index = distinct_codes(codes)
    lead, count = values.shape[1:-1], len(present)
    matrix, total = values.reshape(len(values), -1), math.prod(lead) * count
    if not total:
        return Part(present, np.empty_like(values, shape=(len(values), *lead, count), order="C"))
    if lead:
        index = (np.arange(math.prod(lead))[:, None] * count + index).reshape(-1)
    fold = (_OF_INTS if by_ints else _OF_WORDS)[operation]
    if not by_ints:
        matrix = as_matrix(matrix)
        index = np.asarray(index, like=matrix)
    found = fold(matrix, index, total, system)
    return Part(present, found.reshape(len(found), *lead, count))


def _reduce_block(words: Array, codes: Any, **how: Any) -> Part:
    """Reduce a chunk (rows, *lead, N) by codes of N numbers."""
    values: Any = words
    if how["by_ints"]:
        values = how["system"].decode(words)[None]
        if how["operation"] == "gcd":
            values = abs(values)
    return _reduce_values(values, codes.reshape(-1), **how)


def _reduce_boxed(words: Array, codes: Any, **how: Any) -> NDArray[np.object_]:
    return put_in_box(_reduce_block(words, to_backend(codes, "cpu"), **how), words.ndim)


def _combine_boxed(boxes: Any, axis: Any, keepdims: bool, **how: Any) -> NDArray[np.object_]:  # noqa: ARG001
    parts: list[Part] = boxes.ravel().tolist()
    codes = np.concatenate([part.codes for part in parts])
    values = np.concatenate([part.values for part in parts], axis=-1)
    return put_in_box(_reduce_values(values, codes, **how), boxes.ndim)


def _place(
    part: Part,
    *,
    labels: NDArray[Any],
    operation: str,
    system: NumberSystem,
    by_ints: bool,
    fill: int | None,
    target: NumberSystem,
    like: Any,
    place: Place = ALONE,
) -> Array:
    """Put results at their groups: words (rows, *lead, G); those without numbers get `fill`.

    Python ints are encoded in `target`, where `like` is.
    """
    codes, values = part
    count = len(labels)
    if len(codes) < count:
        if fill is None:
            missing = np.ones(count, dtype=np.bool_)
            missing[codes] = False
            name = labelling.name_of(labels[missing.argmax()])
            raise ValueError(
                f"{operation} of the group {name}: it needs at least one number, and has none; fill_value= "
                "gives groups without numbers a value"
            )
        dense = np.empty_like(values, shape=(*values.shape[:-1], count), order="C")
        dense[...] = fill if by_ints else np.asarray(system.column(fill, values.ndim - 1), like=values)
        dense[..., np.asarray(codes, like=dense)] = values
        values = dense
    if not by_ints:
        return values
    found = encode_results(values.ravel().tolist(), like, target, "raise", place.flat_index)
    return found.reshape(len(found), *values.shape[1:])


def _place_boxed(box: Any, *, place: Place, grid: Grid, **how: Any) -> Array:
    """Place the results in a box at `place`, of which the chunk of `grid` there is made."""
    return _place(box.item(), **how, like=np.empty(0), place=grid.place(place.index))


# ---- arrays ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Asked:
    """A reduction of groups: its name, the groups, the value of empty groups, and the fan-in of the tree."""

    operation: str
    groups: Grouping
    fill: int | None
    split_every: SplitEvery


def _reduce(x: Numbers, asked: Asked, by_ints: bool, target: NumberSystem | None = None) -> Any:
    """Reduce groups of words (rows, *lead, N); return words (rows, *lead, G) in `target`."""
    words, system, groups = x.words, x.system, asked.groups
    to = system if target is None else target
    how: dict[str, Any] = {"operation": asked.operation, "system": system, "by_ints": by_ints}
    end: dict[str, Any] = {"labels": groups.labels, "fill": asked.fill, "target": to}
    if not isinstance(words, da.Array):
        return _place(_reduce_block(words, groups.codes, **how), **how, **end, like=words)
    chunks, last = words.chunks[1:], words.ndim - 1
    codes = rechunk(as_lazy(groups.codes), (chunks[-1],))[(None,) * last]
    given: dict[str, Any] = {"rows": 1, "dtype": object, "chunks": [(1,) * len(axis) for axis in chunks]}
    parts = map_chunks(_reduce_boxed, words, codes, **given, **how)
    joined = combine_tree(parts, partial(_combine_boxed, **how), (last,), "rns-groups", asked.split_every)
    out: dict[str, Any] = {"rows": to.rows, "dtype": to.word_dtype, "located": True}
    out["chunks"] = (*chunks[:-1], (len(groups.labels),))
    out["grid"] = Grid.of(out["chunks"])
    out["like"] = np.empty(0) if by_ints else meta_from_array(words)  # Python ints become words of NumPy
    return map_chunks(_place_boxed, joined, **out, **how, **end)


def like(x: Numbers, words: Any, system: NumberSystem) -> Any:
    """Make an array of the kind of another one."""
    return make_like((x,), words, system, "raise")


def _sums_of(x: Any, asked: Asked) -> Any:
    if rows.group_sums.name not in x.system.table:
        return like(x, _reduce(x, asked, True), x.system)
    return _sums_of_words(x, asked)


@by_table(rows.group_sums)
def _sums_of_words(x: Any, asked: Asked) -> Any:
    """Sum residues under more moduli and limbs in more bits, which no sum can leave, or elements."""
    system, most = x.system, max(asked.groups.largest, 1)
    if not has(rows.compare, x):  # elements
        return like(x, _reduce(x, asked, False), system)
    low, high = range_of_sums(system.known_range, most)
    if isinstance(system, Positional):
        bits = max(low.bit_length(), high.bit_length()) + system.signed
        if bits > MOST_BITS:
            return like(x, _reduce(x, asked, True), system)
        wide = Positional(bits, system.signed)
        words = map_entry(rows.widened, (x.words,), system, result=wide, wide=wide)
        words = _reduce(like(x, words, wide), asked, False)
        return like(x, map_entry(rows.narrowed, (words,), system, wide=wide), system)
    (extended,), _ = extend_operands(lambda known: range_of_sums(known, most), "extend", x)
    found = like(x, _reduce(extended, asked, False), extended.system.holding((low, high)))
    return found if grows(x) else convert_to_system(found, system.with_bound(None))


def _prods_of(x: Any, asked: Asked) -> Any:
    """Multiply elements as words, and integers as Python ints: under more moduli if their system grows."""
    if rows.group_prods.name in x.system.table:
        return like(x, _reduce(x, asked, False), x.system)
    system = x.system.with_bound(None)
    if grows(x):
        known = x.system if isinstance(x.words, da.Array) else x._measured_system()
        system = _holding(system, *range_of_powers(known.known_range, asked.groups.largest))
    return like(x, _reduce(x, asked, True, system), system)


def _extrema_of(x: Any, asked: Asked) -> Any:
    if not has(rows.ordering, x):
        refuse(f"{asked.operation} of groups", x, rows.ordering)
    return like(x, _reduce(x, asked, False), x.system)


def _divisors_of(x: Any, asked: Asked) -> Any:
    if not has(rows.gcd, x):
        refuse("gcd of groups", x, rows.gcd)
    system = x.system
    if grows(x):
        system = _holding(system, 0, max(map(abs, system.known_range)))
    return like(x, _reduce(x, asked, True, system), system)


def _holding(system: Any, low: int, high: int) -> Any:
    """Return the system for a range of results, with the bound that follows."""
    return system.for_range(low, high).holding((low, high))


_REDUCTIONS: dict[str, Callable[[Any, Asked], Any]] = {
    "sum": _sums_of,
    "prod": _prods_of,
    "max": _extrema_of,
    "min": _extrema_of,
    "gcd": _divisors_of,
}


SEGMENTS = frozenset(_REDUCTIONS)
"""Reductions of :func:`reduce_at`."""


def _counts(groups: Grouping, lead: tuple[int, ...], lazy: bool, split_every: SplitEvery) -> Any:
    """Count the numbers of each group: int64 (*lead, G)."""
    count = len(groups.labels)
    if not lazy:
        found: Any = np.bincount(groups.codes + 1, minlength=count + 1)[1:]
    else:
        codes = as_lazy(groups.codes) + 1
        found = da.bincount(codes, minlength=count + 1, split_every=split_every)[1:]
    library: Any = da if lazy else np
    return library.broadcast_to(found, (*lead, count)) if lead else found


def reduce_grouped(
    x: Numbers, groups: Grouping, operation: str, fill: int | None = None, split_every: SplitEvery = None
) -> Any:
    """Reduce groups of the numbers along the last axis of an array of known lengths: (*lead, G)."""
    default = _EMPTY.get(operation) if fill is None else fill
    found = _REDUCTIONS[operation](x, Asked(operation, groups, default, split_every))
    if found.system.bound is not None and abs(default or 0) > found.system.bound:
        return like(x, found.words, found.system.with_bound(None))
    return found


@overload
def group_reduce(
    x: N,
    by: Any,
    func: Numeric,
    *,
    expected_groups: Any = None,
    fill_value: SupportsIndex | None = None,
    split_every: SplitEvery = None,
) -> tuple[NDArray[np.generic], N]: ...
@overload
def group_reduce(
    x: Numbers,
    by: Any,
    func: Literal["count"],
    *,
    expected_groups: Any = None,
    fill_value: SupportsIndex | None = None,
    split_every: SplitEvery = None,
) -> tuple[NDArray[np.generic], PlainArray[np.int64]]: ...
def group_reduce(
    x: N,
    by: Any,
    func: Numeric | Literal["count"],
    *,
    expected_groups: Any = None,
    fill_value: SupportsIndex | None = None,
    split_every: SplitEvery = None,
) -> tuple[NDArray[np.generic], N | PlainArray[np.int64]]:
    """Reduce the numbers of each group, named by labels, to one: exact sums by account, say.

    A lazy array is reduced within each chunk, and the results of chunks in a tree, as flox does; groups may
    be in any chunks. One task holds the results of all groups.

    Parameters
    ----------
    x : array of numbers, shape (*lead, *shape)
        Integers of any number system; of elements of fields there are sums, products and counts.
    by : labels, shape (*shape)
        A label for each number along the last axes of `x`: integers, text, dates, tuples, records or other
        hashable objects. An array of NumPy, CuPy, Dask or xarray, a column of pandas, Arrow, polars or
        dask.dataframe, or a list.
    func : {"sum", "prod", "max", "min", "gcd", "count"}
        The reduction. Sums and products extend the moduli of systems that grow (docs/growing.md).
    expected_groups : labels of one axis, optional
        The groups, in the order of the result; numbers with other labels are left out. By default all
        distinct labels, sorted if they have an order. Without it, labels that are lazy are computed once to
        find the groups.
    fill_value : int, optional
        Result of expected groups without numbers; by default 0, for products 1.
    split_every : int or dict, optional
        Number of partial results that one task combines on Dask.

    Returns
    -------
    groups : NumPy array, shape (G,)
        The labels of the groups.
    result : array like `x`, shape (*lead, G)
        A number for each group, lazy if `x` is; for ``"count"`` int64 in NumPy or Dask.

    Raises
    ------
    TypeError
        If `x` is not an array of numbers or lacks the reduction, or labels are not hashable or a table.
    ValueError
        If `func` is unknown, shapes differ, a label is missing (None, NaN, NaT) without `expected_groups`,
        expected groups repeat, or a maximum or minimum of no numbers has no `fill_value`.
    RNSOverflowError
        If a result is out of the range of a system that does not grow; it names the group's index. For a
        lazy array when it is computed.
    """
    if not is_number_array(x):
        raise TypeError(
            f"group_reduce takes an array of numbers, got {type(x).__name__}; rd.from_ints makes one"
        )
    if func not in (*_REDUCTIONS, "count"):
        raise ValueError(f"func must be one of {', '.join((*_REDUCTIONS, 'count'))}, got {brief(func)}")
    fill = None if fill_value is None else as_integer(fill_value, "fill_value")
    find_lengths(x)
    lazy, lengths = isinstance(x.words, da.Array), x.words.shape[1:]
    checked_split(split_every, len(lengths))
    groups, labelled = group_by(by, expected_groups, lazy)
    lead = lengths[: len(lengths) - len(labelled)]
    if lengths[len(lead) :] != labelled:
        raise ValueError(
            f"labels must have the shape of the last axes of the numbers, got {labelled} for {lengths}"
        )
    if func == "count":
        return groups.labels, _counts(groups, lead, lazy, split_every)
    if len(labelled) > 1:
        x = like(x, shape.reshape(x.words, (*lead, math.prod(labelled))), x.system)
    return groups.labels, reduce_grouped(x, groups, func, fill, split_every)
