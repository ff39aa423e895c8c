"""Stable sorting, binary search, selection of the k greatest, and merging of sorted runs.

Keys of 64 bits order the numbers, except those that are too close. For a run of close numbers, residues are
compared: if all are equal, it is in order already. Otherwise, each distinct number is converted to limbs
once, however often it occurs.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rnsdask.backend import Array, backend_name, is_all, is_any, kernels_of, to_backend
from rnsdask.constants import KeyConstants
from rnsdask.core import rows
from rnsdask.core.layout import as_matrix
from rnsdask.core.number_system import NumberSystem
from rnsdask.core.order import Ordering
from rnsdask.rns.blocks import batches
from rnsdask.rns.keys import complemented, distinct, groups_of, keyed
from rnsdask.rns.order import comparable_limbs
from rnsdask.rns.system import RNS

# Length beyond which CuPy's functions that take items at indices are wrong.
_MOST_ON_GPU = 2**31

Compare = Callable[[Array, Array], Array]
"""Function that orders the numbers of two blocks of words: int8 of -1, 0 and +1."""

Sorter = Callable[[Array], Array]
"""Function that returns the indices (k,) that sort words (rows, k); equal numbers by index."""

# Part of the keys, as its inverse, up to which equal ones are put in order after a sort.
_FEW_EQUAL = 16

# Numbers with close keys that a GPU leaves to the host.
_FEW_CLOSE = 2**16

# Samples of a run for each number of runs times wanted numbers, where parts of runs are cut again.
_SPACINGS = 8

# Candidates, relative to the wanted numbers, beyond which parts of runs are cut again.
_MOST_CANDIDATES = 1.5


def ordering(residues: Array, system: RNS) -> Ordering:
    """Sort keys of residues (n, *shape); with a bound, fewer moduli are read."""
    numbers = keyed(as_matrix(residues), system)
    words, constants = numbers.residues, numbers.constants
    return Ordering(numbers.keys, constants.slack, words, partial(_limbs, words, constants))


def _limbs(residues: Array, constants: KeyConstants, indices: Array) -> Array:
    parts = []
    for part in batches(indices, len(residues)):
        chosen = kernels_of(residues).gather(residues, part)
        if len(indices) <= _FEW_CLOSE:
            chosen = to_backend(chosen, "cpu")
        parts.append(comparable_limbs(chosen, constants.moduli, constants.signed))
    return np.concatenate(parts, axis=1)


# ---- sorting -----------------------------------------------------------------------------------------------


def sorted_indices(by: Ordering, shape: tuple[int, ...], axis: int, descending: bool = False) -> Array:
    """Flat (C order) indices of the numbers of an array, sorted along an axis; equal ones by index.

    `by` is the ordering of all numbers of the array, in C order. ValueError for 2**31 or more numbers on a
    GPU.
    """
    count, length = math.prod(shape), shape[axis]
    if count >= _MOST_ON_GPU and backend_name(by.keys) == "cuda":
        raise ValueError(f"a GPU sorts less than 2**31 numbers at a time, got {count}; make smaller chunks")
    numbers = np.arange(count, dtype=np.int64, like=by.keys)
    if length < 2 or not count:
        return numbers.reshape(shape)
    moved = np.moveaxis(numbers.reshape(shape), axis, -1)
    keys = np.moveaxis(complemented(by.keys, descending).reshape(shape), axis, -1).reshape(-1, length)
    places, keys = _stably_sorted(keys, numbers[::length, None])
    numbers = places if axis == len(shape) - 1 else moved.reshape(-1)[places]
    _settle(numbers, keys, length, by, descending)
    return np.moveaxis(numbers.reshape(moved.shape), -1, axis)


def positions(indices: Array, shape: tuple[int, ...], axis: int) -> Array:
    """Convert flat indices of an array of a shape to indices along an axis."""
    return indices // math.prod(shape[axis + 1 :]) % shape[axis] if indices.size else indices


def taken(words: Array, indices: Array) -> Array:
    """Words (rows, *indices.shape) of the numbers at flat indices."""
    chosen = kernels_of(words).gather(as_matrix(words), indices.reshape(-1))
    return chosen.reshape(len(words), *indices.shape)


def _stably_sorted(keys: Array, starts: Array) -> tuple[Array, Array]:
    """Flat indices that sort keys (lines, length) along lines, equal keys by index; and the sorted keys.

    The lines, which begin at `starts`, (lines, 1), are consecutive.
    """
    if backend_name(keys) != "cuda":
        # NumPy sorts different keys faster without care for the order of equal ones, which is then restored.
        order = np.argsort(keys, axis=1)
        ordered = np.take_along_axis(keys, order, axis=1)
        equal = ordered[:, 1:] == ordered[:, :-1]
        if _FEW_EQUAL * np.count_nonzero(equal) <= keys.size:
            _order_equal(order, ordered, equal)
            return (order + starts).reshape(-1), ordered.reshape(-1)
    places = np.argsort(keys, axis=1, kind="stable")
    if len(starts) > 1:
        places += starts
    places = places.reshape(-1)
    return places, keys.reshape(-1)[places]


def _order_equal(order: Array, ordered: Array, equal: Array) -> None:
    """Sort the indices of equal keys, in place; `equal` marks the keys that equal the next one in a line."""
    if not is_any(equal):
        return
    lines, begins = equal.nonzero()
    length, places = order.shape[1], order.reshape(-1)
    pairs = lines * length + begins
    tied = np.unique(np.concatenate([pairs, pairs + 1]))
    by = [places[tied], ordered.reshape(-1)[tied], tied // length]
    places[tied] = places[tied][np.lexsort(by)]


def _settle(numbers: Array, keys: Array, length: int, by: Ordering, descending: bool) -> None:
    """Sort numbers exactly, in place, in lines of a length that are sorted by keys."""
    is_linked = np.zeros_like(keys, dtype=np.bool_)
    np.less_equal(keys[1:] - keys[:-1], np.uint64(by.slack), out=is_linked[1:])
    if length < len(keys):
        is_linked[::length] = False
    (links,) = is_linked.nonzero()
    if not len(links):
        return
    if len(links) <= _FEW_CLOSE:  # on the host: a GPU takes longer to launch, and far longer to compile
        links = to_backend(links, "cpu")
        near = np.union1d(links - 1, links)
        linked = np.isin(near, links)
        close = numbers[np.asarray(near, like=numbers)]
        words = to_backend(kernels_of(by.words).gather(by.words, close), "cpu")
        close, at = to_backend(close, "cpu"), np.arange(len(near))
    else:
        is_near = is_linked.copy()
        np.logical_or(is_near[:-1], is_linked[1:], out=is_near[:-1])
        (near,) = is_near.nonzero()
        linked, close, words = is_linked[near], numbers[near], by.words
        at = close
    runs = groups_of(~linked)
    differs = linked & _differ_from_previous(words, at)
    is_unsettled = np.zeros_like(linked)
    is_unsettled[runs[differs]] = True  # indexed by runs, of which there are at most as many as numbers
    chosen = is_unsettled[runs]
    near, runs, close, at = near[chosen], runs[chosen], close[chosen], at[chosen]
    if not len(near):
        return
    first, group = distinct(words, at)
    digits = to_backend(by.digits(np.asarray(close[first], like=numbers)), backend_name(close))
    ranks = _ranks(~digits if descending else digits)[group]
    # Equal numbers have equal keys, so they are in the order of their indices.
    settled = close[np.lexsort(np.stack([ranks, runs]))]
    numbers[np.asarray(near, like=numbers)] = np.asarray(settled, like=numbers)


def _differ_from_previous(words: Array, indices: Array) -> Array:
    """Mask (k,) of the indices whose number differs from that at the previous index; False for the first."""
    differs = np.zeros_like(indices, dtype=np.bool_)
    start = 1
    for part in batches(indices[1:], len(words)):
        chosen = kernels_of(words).gather(words, indices[start - 1 : start + len(part)])
        differs[start : start + len(part)] = (chosen[:, 1:] != chosen[:, :-1]).any(axis=0)
        start += len(part)
    return differs


def _ranks(digits: Array) -> Array:
    """Count of the numbers less than each one, int64 (k,), by digits (d, k) as in `Ordering`."""
    ranks = np.zeros_like(digits[0], dtype=np.int64)
    undecided = np.arange(len(ranks), dtype=np.int64, like=digits)
    for row in digits[::-1]:
        digit = row[undecided].astype(np.int64)
        if not len(digit):
            break
        if is_all(digit == digit[0]):
            continue
        order = np.lexsort(np.stack([digit, ranks[undecided]]))
        undecided, digit = undecided[order], digit[order]
        rank = ranks[undecided]
        begins = _begins(rank)
        parts = begins | _begins(digit)
        # A part begins after all lesser numbers of its rank.
        firsts = _first_places(parts)
        ranks[undecided] = rank + firsts - _first_places(begins)
        is_alone = parts.copy()
        np.logical_and(is_alone[:-1], parts[1:], out=is_alone[:-1])
        undecided = undecided[~is_alone]
    return ranks


def _begins(values: Array) -> Array:
    """Mask (k,) of the values that differ from the previous one; True for the first."""
    begins = np.ones_like(values, dtype=np.bool_)
    begins[1:] = values[1:] != values[:-1]
    return begins


def _first_places(begins: Array) -> Array:
    """For each place, the last beginning up to it."""
    (starts,) = begins.nonzero()
    return starts[groups_of(begins)]


# ---- equal numbers -----------------------------------------------------------------------------------------


def begin_groups(words: Array, indices: Array) -> Array:
    """Mask (k,) of the places, in sorted indices, where a group of equal numbers begins.

    Rows of words (r, N) differ where numbers do.
    """
    begins = _differ_from_previous(as_matrix(words), indices)
    begins[:1] = True
    return begins


# ---- search ------------------------------------------------------------------------------------------------


def search(a: Array, v: Array, compare: Compare, sorter: Sorter, side: str) -> Array:
    """Positions (int64) at which inserting v keeps the sorted numbers a sorted, before or after equal ones.

    Both are words; `sorter` returns the indices that sort words, equal numbers by index. Few numbers are
    found by bisection; many are sorted together with a.
    """
    a, v = as_matrix(a), as_matrix(v)
    count, wanted = a.shape[1], v.shape[1]
    if count and wanted * count.bit_length() > 2 * (count + wanted):
        return _places_by_sorting(a, v, sorter, side)
    found = np.zeros_like(v, shape=v.shape[1:], dtype=np.int64, order="C")
    indices = np.arange(wanted, dtype=np.int64, like=found)
    for part in batches(indices, len(v)) if count else ():
        found[part] = _places_by_halving(a, kernels_of(v).gather(v, part), compare, side)
    return found


def _places_by_sorting(a: Array, v: Array, sorter: Sorter, side: str) -> Array:
    # Equal numbers keep the order that they have here.
    a_is_first = side == "right"
    order = sorter(np.concatenate([a, v] if a_is_first else [v, a], axis=1))
    start = a.shape[1] if a_is_first else 0
    is_wanted = (order >= start) & (order < start + v.shape[1])
    (places,) = is_wanted.nonzero()
    found = np.empty_like(places)
    # All numbers before each place, minus those of v among them.
    found[order[places] - start] = places - np.arange(len(places), dtype=np.int64, like=places)
    return found


def _places_by_halving(a: Array, v: Array, compare: Compare, side: str) -> Array:
    low = np.zeros_like(v, shape=v.shape[1:], dtype=np.int64, order="C")
    high = np.full_like(low, a.shape[1])
    for _ in range(a.shape[1].bit_length()):
        middle = (low + high) // 2
        is_open = low < high
        order = compare(kernels_of(a).gather(a, np.minimum(middle, a.shape[1] - 1)), v)
        is_before = order <= 0 if side == "right" else order < 0
        low = np.where(is_open & is_before, middle + 1, low)
        high = np.where(is_open & ~is_before, middle, high)
    return low


# ---- selection ---------------------------------------------------------------------------------------------

# Groups for each of the greatest numbers, which are seldom in the same group.
_GROUPS = 64

# Most candidates that a GPU leaves to the host: sorting takes some thirty kernels, each launched from Python.
_FEW = 2**10


@dataclass(frozen=True)
class Selection:
    """Numbers with their indices, the best first; equal ones by index."""

    values: tuple[int, ...]
    indices: tuple[int, ...]

    def values_array(self) -> NDArray[np.object_]:
        """Numbers as an array of Python ints."""
        array = np.empty(len(self.values), dtype=object)
        array[:] = self.values
        return array

    def indices_array(self) -> NDArray[np.int64]:
        """Indices as an array."""
        return np.array(self.indices, dtype=np.int64)


def select(residues: Array, system: RNS, k: int, offset: int = 0) -> Selection:
    """The k greatest numbers in descending order, or for k < 0 the -k least in ascending order.

    Indices are counted from `offset`; with fewer numbers, all are returned.
    """
    return selection_by(ordering(residues, system), residues, system, k, offset)


def selection_by(by: Ordering, words: Array, system: NumberSystem, k: int, offset: int) -> Selection:
    """Select the k best numbers of any system, words (rows, N), by their sort keys.

    Keys choose the candidates: the numbers not proved to be worse than k others. Only these are sorted, and
    only the best become Python ints. So the cost in addition to one pass grows with k; if keys cannot
    separate the numbers, it is the cost of sorting them all.
    """
    count, minimum = min(abs(k), len(by.keys)), k < 0
    if count == 0:
        return Selection((), ())
    keys = complemented(by.keys, minimum)
    threshold = _find_threshold(keys, count)
    slack = np.uint64(by.slack)
    (candidates,) = (keys >= np.maximum(threshold, slack) - slack).nonzero()
    chosen = kernels_of(words).gather(as_matrix(words), candidates)
    if len(candidates) <= _FEW:
        chosen, candidates = (to_backend(array, "cpu") for array in (chosen, candidates))
    best = sorted_indices(system.apply(rows.ordering, chosen), candidates.shape, 0, not minimum)[:count]
    values = system.decode(kernels_of(chosen).gather(chosen, best))
    return Selection(tuple(values), tuple((candidates[best] + offset).tolist()))


def _find_threshold(keys: Array, count: int) -> Any:
    """Key that `count` keys reach and few others do, found from the greatest keys of groups.

    These belong to `count` different groups. Sorting all keys would take longer than all else.
    """
    groups = _GROUPS * count
    if len(keys) >= 2 * groups:
        # Groups are interleaved, so that even sorted numbers are spread over all of them.
        keys = to_backend(keys[: len(keys) // groups * groups].reshape(-1, groups).max(axis=0), "cpu")
    return np.partition(keys, len(keys) - count)[len(keys) - count]


def combine_selections(selections: Iterable[Selection], k: int) -> Selection:
    """Combine selections, in any order, from different parts of an array to the best of all."""
    pairs = [pair for s in selections for pair in zip(s.values, s.indices, strict=True)]
    pairs.sort(key=lambda pair: (pair[0] if k < 0 else -pair[0], pair[1]))
    values, indices = zip(*pairs[: abs(k)], strict=True) if pairs else ((), ())
    return Selection(tuple(values), tuple(indices))


# ---- cuts of sorted runs -----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class RunSample:
    """Some of a sorted run's `count` numbers: words (rows, m), in NumPy, and their places (m,), ascending.

    The first and the last number of a run are among them.
    """

    words: NDArray[np.uint32]
    places: NDArray[np.int64]
    count: int


def sample_run(run: Array, rows: int, places: NDArray[np.int64]) -> RunSample:
    """Take the numbers at some places of a sorted run, whose first `rows` rows are the words of a number."""
    words = to_backend(taken(run[:rows], np.asarray(places, like=run)), "cpu")
    return RunSample(words, places, run.shape[1])


def sample_places(count: int, size: int) -> NDArray[np.int64]:
    """Choose at most `size` places in a run of `count` numbers, evenly spaced, with both ends."""
    return np.unique(np.linspace(0, count - 1, min(size, count)).round().astype(np.int64))


class RunCuts:
    """Bounds of ranks in sorted runs, by samples of these.

    Numbers are ordered by value, then by run, then by place in the run. Cut t is before the t-th of all
    samples in this order, or at the end. For each run it is known how many numbers are before a cut at least,
    up to the run's last sample before it, and at most, up to its next sample.
    """

    def __init__(self, samples: Sequence[RunSample], sorter: Sorter) -> None:
        self.words = np.concatenate([s.words for s in samples], axis=1)
        self.order = sorter(self.words)  # stable, so that equal numbers stay in the order of runs and places
        self.runs = np.repeat(np.arange(len(samples)), [len(s.places) for s in samples])
        self.places = np.concatenate([s.places for s in samples])
        self._least = [np.concatenate([[0], s.places + 1]) for s in samples]
        self._most = [np.concatenate([s.places, [s.count]]) for s in samples]
        least = np.concatenate([np.diff(counts) for counts in self._least])[self.order]
        most = np.concatenate([np.diff(counts) for counts in self._most])[self.order]
        self._least_before = np.concatenate([[0], np.cumsum(least)])
        self._most_before = np.concatenate([[0], np.cumsum(most)])

    def enclose(self, starts: Any, stops: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Find the last cuts up to the ranks `starts`, and the first cuts from the ranks `stops` on."""
        first = np.searchsorted(self._most_before, starts, side="right") - 1
        return first, np.searchsorted(self._least_before, stops, side="left")

    def number(self, cut: int) -> tuple[int, NDArray[np.uint32]] | None:
        """Return the sample after a cut, its run and its words (rows, 1); None at either end."""
        if not 0 < cut < len(self.order):
            return None
        chosen = self.order[cut]
        return int(self.runs[chosen]), self.words[:, chosen : chosen + 1]

    def slices(self, first: Any, last: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Parts of all runs that have the numbers between cuts: starts and stops, each (cuts, runs)."""
        by_run = np.argsort(self.runs[self.order], kind="stable")
        sizes = [len(counts) - 1 for counts in self._least]
        passed = np.split(by_run, np.cumsum(sizes)[:-1])
        starts = [c[np.searchsorted(at, first)] for c, at in zip(self._least, passed, strict=True)]
        stops = [c[np.searchsorted(at, last)] for c, at in zip(self._most, passed, strict=True)]
        return np.stack(starts, axis=-1), np.stack(stops, axis=-1)


def merge_runs(pieces: Sequence[Array], rows: int, start: int, stop: int, sorter: Sorter) -> Array:
    """Merge parts of sorted runs, in their order, to the numbers of ranks `start` to `stop` - 1 among them.

    The first `rows` rows are the words of a number. If parts have many more numbers than are wanted, they are
    cut by samples first.
    """
    wanted = stop - start
    counts = [piece.shape[1] for piece in pieces]
    spacing = wanted // (_SPACINGS * len(pieces))
    if spacing > 1 and sum(counts) > _MOST_CANDIDATES * wanted:
        places = [sample_places(count, 2 + count // spacing) for count in counts]
        samples = [sample_run(piece, rows, some) for piece, some in zip(pieces, places, strict=True)]
        cuts = RunCuts(samples, sorter)
        firsts, lasts = cuts.slices(*cuts.enclose(start, stop))
        pieces = [piece[:, low:high] for piece, low, high in zip(pieces, firsts, lasts, strict=True)]
        start -= int(firsts.sum())
    joined = np.concatenate(pieces, axis=1)
    return taken(joined, sorter(joined[:rows])[start : start + wanted])
