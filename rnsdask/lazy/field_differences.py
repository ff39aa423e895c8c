"""Differences of two arrays of elements of prime fields: where they are, and which error makes them."""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from typing import Any

import dask.array as da
import numpy as np
from numpy.typing import NDArray

from rnsdask.backend import to_backend
from rnsdask.core import rows
from rnsdask.core.place import Place
from rnsdask.fields.base_change import some_fields
from rnsdask.fields.ntt import reversed_bits
from rnsdask.fields.system import PrimeFields
from rnsdask.lazy.chunks import rechunk
from rnsdask.lazy.map import map_chunks
from rnsdask.lazy.tree import combine_tree, put_in_box

LONGEST_LINE = 2**22
"""Most coefficients of a polynomial whose order is compared: 32 MiB a prime, which one task holds whole."""

_MOST_SHIFTS = 256  # of a polynomial that repeats itself; any of them may be the one of all


@dataclass(frozen=True)
class Steps:
    """Positions along an axis: within ``low`` to ``high``, and multiples of ``step`` from each other."""

    low: int
    high: int
    step: int


@dataclass(frozen=True)
class FirstDifference:
    """First element that differs, by its flat index, and the first of its residues that does."""

    index: int
    row: int
    values: tuple[int, int]


@dataclass(frozen=True)
class FieldDifferences:
    """Places where the elements of two arrays differ.

    Attributes
    ----------
    elements : int
        How many elements differ, in any residue.
    residues : tuple of int
        How many residues differ modulo each prime.
    first : FirstDifference or None
        The first of them.
    axes : tuple of Steps
        Positions along each axis of the elements that differ; empty if none does.
    factors : dict
        For each row that differs: the c with ``b = c a`` for all residues that differ, or None.
    """

    elements: int
    residues: tuple[int, ...]
    first: FirstDifference | None
    axes: tuple[Steps, ...]
    factors: dict[int, int | None]


def find_differences(a: da.Array, b: da.Array, fields: PrimeFields) -> da.Array:
    """Compare the words of two lazy arrays of one shape: lazy :class:`FieldDifferences`, in one pass."""
    partials = _map_pairs(_find_in_block, a, b, located=True, system=fields)
    return combine_tree(partials, _combine_differences, tuple(range(partials.ndim)), "rns-differences")


def find_patterns(a: da.Array, b: da.Array, fields: PrimeFields) -> da.Array | None:
    """Find the changes of order that make b of a: a lazy set of names, each with its shift, in one pass.

    Polynomials are along the last axis. One that is the same modulo a prime counts for nothing, and each
    other has to be changed in that way: ``"rotated"`` by k, where coefficient i is that of i + k before,
    ``"multiplied by x"`` to the power k modulo ``x**N + 1``, ``"bit-reversed"``, ``"reversed"``, or
    ``"reordered"`` in any way. None if polynomials are too long to be compared as wholes.
    """
    if a.ndim < 2 or not 2 <= a.shape[-1] <= LONGEST_LINE:
        return None
    lengths = {**dict.fromkeys(range(1, a.ndim - 1), "auto"), a.ndim - 1: -1}
    if len(a.chunks[-1]) > 1:
        a = rechunk(a, lengths)
    partials = _map_pairs(_patterns_of_block, a, b, system=fields)
    return combine_tree(partials, _combine_patterns, tuple(range(partials.ndim)), "rns-patterns")


def list_differences(a: da.Array, b: da.Array) -> list[da.Array]:
    """Lazy flat indices of the words that differ, and both words of each."""
    a, b = a.reshape(-1), b.reshape(-1)
    differs = a != b
    return [da.flatnonzero(differs), a[differs], b[differs]]


def _map_pairs(function: Callable[..., Any], a: da.Array, b: da.Array, **options: Any) -> da.Array:
    """Make one object of each pair of chunks, those of a."""
    b = rechunk(b, (b.chunks[0], *a.chunks[1:]))
    chunks = [(1,) * len(lengths) for lengths in a.chunks[1:]]
    mapped: da.Array = map_chunks(function, a, b, rows=1, dtype=object, chunks=chunks, **options)
    return mapped


# ---- the first pass ----------------------------------------------------------------------------------------


def _find_in_block(a: Any, b: Any, *, system: PrimeFields, place: Place) -> NDArray[np.object_]:
    a, b = to_backend(a, "cpu"), to_backend(b, "cpu")
    differs = a != b
    counts = tuple(int(np.count_nonzero(row)) for row in differs)
    if not any(counts):
        return put_in_box(FieldDifferences(0, counts, None, (), {}), a.ndim)
    some = differs.any(axis=0)
    flat = int(some.argmax())
    index = np.unravel_index(flat, some.shape)
    row = int(differs[(slice(None), *index)].argmax())
    first = FirstDifference(place.flat_index(flat), row, (int(a[row][index]), int(b[row][index])))
    axes = tuple(
        _steps_of(some, axis, start)
        for axis, (start, _) in enumerate(place.location or ((0, 0),) * some.ndim)
    )
    factors = dict(_factors_of(a, b, differs, counts, system))
    return put_in_box(FieldDifferences(int(np.count_nonzero(some)), counts, first, axes, factors), a.ndim)


def _steps_of(some: NDArray[np.bool_], axis: int, start: int) -> Steps:
    others = tuple(k for k in range(some.ndim) if k != axis)
    positions = np.flatnonzero(some.any(axis=others)) + start
    return Steps(int(positions[0]), int(positions[-1]), int(np.gcd.reduce(positions - positions[0])))


def _factors_of(
    a: Any, b: Any, differs: NDArray[np.bool_], counts: tuple[int, ...], system: PrimeFields
) -> Iterator[tuple[int, int | None]]:
    """The factor of each row that differs, verified for all residues that do."""
    for row, p in enumerate(system.primes):
        if not counts[row]:
            continue
        before, after = (side[row][differs[row]][None] for side in (a, b))
        factor: int | None = None
        if before[0, 0]:
            factor = int(after[0, 0]) * pow(int(before[0, 0]), -1, p) % p
            field = some_fields((p,))
            before, after = (side.astype(field.word_dtype) for side in (before, after))
            found = field.apply(rows.multiply, before, field.column(factor))
            factor = factor if (found == after).all() else None
        yield row, factor


def _combine_differences(blocks: Any, axis: Any, keepdims: bool) -> Any:  # noqa: ARG001  (combine_tree passes both)
    return put_in_box(reduce(_join, blocks.flat), blocks.ndim)


def _join(x: FieldDifferences, y: FieldDifferences) -> FieldDifferences:
    """Differences of two parts of an array."""
    if not (x.elements and y.elements):
        return x if x.elements else y
    factors = x.factors | {row: c if x.factors.get(row, c) == c else None for row, c in y.factors.items()}
    return FieldDifferences(
        x.elements + y.elements,
        tuple(map(sum, zip(x.residues, y.residues, strict=True))),
        min((x.first, y.first), key=lambda first: first.index),  # type: ignore[union-attr]
        tuple(
            Steps(min(s.low, t.low), max(s.high, t.high), math.gcd(s.step, t.step, s.low - t.low))
            for s, t in zip(x.axes, y.axes, strict=True)
        ),
        factors,
    )


# ---- the second pass ---------------------------------------------------------------------------------------


def _patterns_of_block(a: Any, b: Any, *, system: PrimeFields) -> NDArray[np.object_]:
    """Changes of order that hold for all polynomials of a block that differ; None if none differs."""
    a, b = to_backend(a, "cpu"), to_backend(b, "cpu")
    differs = (a != b).any(axis=-1)
    if not differs.any():
        return put_in_box(None, a.ndim)
    before, after = a[differs], b[differs]
    dtype = before.dtype
    p = np.array(system.primes, np.uint64)[np.nonzero(differs)[0], None]
    minus = np.where(before == 0, 0, p - before).astype(dtype)
    return put_in_box(frozenset(_patterns_of_lines(before, minus, after)), a.ndim)


def _patterns_of_lines(a: Any, minus: Any, b: Any) -> Iterator[tuple[str, int]]:
    """Changes of order that make the lines b (n, N) of a, whose negatives are `minus`."""
    length = a.shape[1]
    if (np.sort(a, axis=1) == np.sort(b, axis=1)).all():
        yield "reordered", 0
        if (a[:, ::-1] == b).all():
            yield "reversed", 0
        if length.bit_count() == 1 and (a[:, reversed_bits(length)] == b).all():
            yield "bit-reversed", 0
        for k in _places_in(np.concatenate([a[0], a[0, :-1]]), b[0]):
            if (a[:, k:] == b[:, : length - k]).all() and (a[:, :k] == b[:, length - k :]).all():
                yield "rotated", k
    for start in _places_in(np.concatenate([minus[0], a[0], minus[0, :-1]]), b[0]):
        k = (length - start) % (2 * length)
        head, tail = (a, minus) if k < length else (minus, a)
        k %= length
        if (head[:, : length - k] == b[:, k:]).all() and (tail[:, length - k :] == b[:, :k]).all():
            yield "multiplied by x", (length - start) % (2 * length)


def _places_in(line: Any, part: Any) -> Iterator[int]:
    """Places where a part is in a line, a few at most."""
    data, sought, width = line.tobytes(), part.tobytes(), line.itemsize
    place, found = data.find(sought), 0
    while place >= 0 and found < _MOST_SHIFTS:
        if place % width == 0:
            found += 1
            yield place // width
        place = data.find(sought, place + 1)


def _combine_patterns(blocks: Any, axis: Any, keepdims: bool) -> Any:  # noqa: ARG001  (combine_tree passes both)
    return put_in_box(_common(blocks.flat), blocks.ndim)


def _common(sets: Iterable[frozenset[Any] | None]) -> frozenset[Any] | None:
    """Patterns that all sets have."""
    some = [found for found in sets if found is not None]
    return frozenset.intersection(*some) if some else None
