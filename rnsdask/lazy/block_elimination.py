"""Elimination in matrices over prime fields that span several chunks, by block columns.

Tasks are functions of :mod:`rnsdask.fields.block_elimination`: of C / b block columns, each is factored in
turn, and those to its right are reduced by it, in (C / b)**2 / 2 tasks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import Any, TypeAlias

import dask
import dask.array as da
import numpy as np
from dask.array.utils import meta_from_array
from dask.base import tokenize
from dask.utils import parse_bytes
from numpy.typing import NDArray

from rnsdask.backend import Moduli, empty_like_chunks, in_turn
from rnsdask.cluster.limits import check_graph
from rnsdask.core.layout import RESIDUE_DTYPE
from rnsdask.core.number_system import NumberSystem
from rnsdask.core.operations import Footprint
from rnsdask.core.place import Place
from rnsdask.core.rows import lu
from rnsdask.fields import block_elimination as blocks
from rnsdask.fields.echelon import free_columns
from rnsdask.lazy.chunks import as_lazy, may_be_on_gpus, rechunk, without_empty_chunks
from rnsdask.lazy.map import array_of_tasks, keys_of
from rnsdask.lazy.one_task import fits_one_task
from rnsdask.lazy.operands import bring_to_one_processor, broadcast_shape, with_axes
from rnsdask.lazy.parcels import parcelled

LEAST_COLUMNS = 256
"""Fewest columns of a block, unless the matrix has fewer: products of fewer terms take longer by the term."""

MOST_JOINED = 1024
"""Rows, or columns, up to which a matrix that fits a chunk is joined to one: a thread takes about 0.2 s."""

WHOLE = Footprint(3, 20)
"""Footprint of the elimination of whole matrices: a copy, residues for products, and a result."""

QUICK_BYTES = 2**32
"""Bytes of a matrix that one GPU eliminates sooner than several, which wait for one panel after the other."""

_CHUNKS_ON_GPU = 4
"""Bytes of a block on a GPU, in ``array.chunk-size``: any task takes 2 ms or more in Python."""

_BLOCKS = 32
"""Block columns that keep threads busy: panels, one after the other, are 3 of 64 parts of the work."""


# ---- operands ---------------------------------------------------------------------------------------------


def joined_if_small(words: Any) -> Any:
    """Join matrices (n, *batch, rows, columns) to one chunk each, if they are small or a GPU has room.

    A GPU eliminates a whole matrix in the time of a few tasks of its blocks.
    """
    if not is_in_blocks(words):
        return words
    if 0 in words.shape:
        return rechunk(words, {words.ndim - 2: -1, words.ndim - 1: -1})
    small = is_small((_words32(words), *words.shape[-2:]), on_gpu=may_be_on_gpus(words))
    workers = math.inf if words.nbytes <= QUICK_BYTES else 1
    if not (small or fits_one_task(WHOLE, workers, words)):
        return words
    batch = dict.fromkeys(range(1, words.ndim - 2), "auto")
    return rechunk(words, {0: -1, **batch, words.ndim - 2: -1, words.ndim - 1: -1})


def has_block_elimination(system: NumberSystem) -> bool:
    """Whether matrices of a system may be eliminated by block columns: those over prime fields."""
    return lu.name in system.table


def is_in_blocks(words: Any) -> bool:
    """Whether matrices (n, *batch, rows, columns) span several chunks."""
    return isinstance(words, da.Array) and max(words.numblocks[-2:]) > 1


def _words32(words: da.Array) -> int:
    """Words of 32 bits that numbers (n, ...) have."""
    count: int = words.shape[0] * words.dtype.itemsize // RESIDUE_DTYPE.itemsize
    return count


def is_small(shape: tuple[int, int, int], *, on_gpu: bool) -> bool:
    """Whether a matrix (words of 32 bits, rows, columns) is best eliminated in one chunk.

    It fits Dask's ``array.chunk-size`` and, on a CPU, takes one thread little time.
    """
    is_quick = on_gpu or min(shape[1:]) <= MOST_JOINED
    return is_quick and math.prod(shape) * RESIDUE_DTYPE.itemsize <= _chunk_bytes()


def _chunk_bytes() -> int:
    return int(parse_bytes(dask.config.get("array.chunk-size")))


def _most_columns(shape: tuple[int, int, int], *, on_gpu: bool) -> int:
    """Columns of a matrix (words of 32 bits, rows, columns) that a block may have."""
    nbytes = _chunk_bytes() * (_CHUNKS_ON_GPU if on_gpu else 1)
    return nbytes // (shape[0] * shape[1] * RESIDUE_DTYPE.itemsize)


def width_of_blocks(shape: tuple[int, int, int], longest: int, *, on_gpu: bool) -> int:
    """Columns of a block of a matrix (words of 32 bits, rows, columns) in chunks of up to `longest` columns.

    Blocks fit Dask's ``array.chunk-size``, on a GPU four times that, and are as many as keep threads busy,
    but are 256 columns wide at least. Chunks are cut into equal parts, or joined.
    """
    columns, most = shape[2], _most_columns(shape, on_gpu=on_gpu)
    width = max(min(most, columns // _BLOCKS), min(LEAST_COLUMNS, columns))
    return width // longest * longest if longest <= width else -(-longest // -(-longest // width))


def least_width(longest: int) -> int:
    """Columns of the narrowest blocks that take no longer by the term, for chunks of up to `longest` columns.

    Chunks are cut into equal parts, or joined.
    """
    parts = longest // LEAST_COLUMNS
    return -(-longest // parts) if parts else LEAST_COLUMNS // longest * longest


def in_block_columns(words: da.Array) -> da.Array:
    """Rechunk a matrix (n, rows, columns) to block columns, unless it has such as fit a chunk."""
    words = without_empty_chunks(words)
    shape = _words32(words), *words.shape[1:]
    columns = shape[2]
    if not columns:
        return rechunk(words, {0: -1, 1: -1, 2: -1})
    on_gpu = may_be_on_gpus(words)
    lengths, most = words.chunks[-1], _most_columns(shape, on_gpu=on_gpu)
    least = min(LEAST_COLUMNS, max(most, 1))
    if words.numblocks[1] == 1 and least <= min(lengths[:-1], default=columns) and max(lengths) <= most:
        return words
    return rechunk(words, {0: -1, 1: -1, 2: width_of_blocks(shape, max(lengths), on_gpu=on_gpu)})


# ---- elimination ------------------------------------------------------------------------------------------

Steps: TypeAlias = dict[Any, Any]
"""Tasks by their keys."""


@dataclass(frozen=True)
class Elimination:
    """Tasks of an elimination downwards in the block columns of a matrix.

    Attributes
    ----------
    source : dask.array.Array
        An array that holds the tasks, and nothing else.
    token : str
        Part of the names of all tasks.
    words : dask.array.Array, shape (n, rows, columns)
        The matrix in block columns.
    found : tuple
        Key of :class:`.block_elimination.Found` after the last panel.
    panels, right : list of tuple
        Keys of the panels, and of the reduced right-hand sides.
    """

    source: da.Array
    token: str
    words: da.Array
    moduli: Moduli
    found: Any
    panels: list[Any]
    right: list[Any]

    @property
    def widths(self) -> tuple[int, ...]:
        """Columns of each block."""
        lengths: tuple[int, ...] = self.words.chunks[-1]
        return lengths

    @property
    def starts(self) -> list[int]:
        """First columns of the blocks."""
        return _starts(self.widths)

    def one_chunk(self, function: Callable[..., Any], shape: tuple[int, ...], dtype: Any) -> da.Array:
        """Apply a function to what was found, and to the last panel, for an array of one chunk."""
        name = f"matrix-{function.__name__}-{self.token}"
        task = parcelled(function), self.found, self.panels[-1]
        meta = empty_like_chunks(meta_from_array(self.words), len(shape), dtype)
        chunks = [(length,) for length in shape]
        return array_of_tasks(name, {(0,) * len(shape): task}, chunks, meta, self.source)

    def hold(self, steps: Steps, name: str) -> da.Array:
        """Hold tasks that use those of the elimination."""
        return _holding(f"matrix-{name}-{self.token}", steps, self.source)

    def matrix(
        self, name: str, tasks: Sequence[Any], rows: int, widths: Sequence[int], steps: da.Array
    ) -> da.Array:
        """Make a matrix of a task for each of its block columns, which are so many columns wide."""
        meta = meta_from_array(self.words)
        by_index = {(0, 0, j): task for j, task in enumerate(tasks)}
        chunks = (len(self.moduli),), (rows,), widths
        return array_of_tasks(f"matrix-{name}-{self.token}", by_index, chunks, meta, self.source, steps)

    def add_uppers(self, steps: Steps) -> list[Any]:
        """Add tasks for the upper triangles of all panels, and return their keys."""
        keys = [(f"matrix-upper-{self.token}", k) for k in range(len(self.panels))]
        function = parcelled(blocks.upper_of, moduli=self.moduli)
        steps.update({key: (function, panel) for key, panel in zip(keys, self.panels, strict=True)})
        return keys

    def add_reduction(self, steps: Steps, key: Any, uppers: Sequence[Any], *name: Any) -> Any:
        """Add tasks that reduce a block column upwards by some panels, the last first; return the key."""
        function = parcelled(blocks.reduce_by, moduli=self.moduli)
        for k in range(len(uppers) - 1, -1, -1):
            after = (f"matrix-reduce-{self.token}", *name, k)
            steps[after], key = (function, key, uppers[k]), after
        return key

    def add_forms(self, steps: Steps, wanted: Sequence[int]) -> list[Any]:
        """Add tasks for some block columns of the reduced form, of min(rows, columns) rows; return keys."""
        uppers, found = self.add_uppers(steps), []
        begin = parcelled(blocks.reduced_block, moduli=self.moduli, rows=min(self.words.shape[1:]))
        for j in wanted:
            key = (f"matrix-form-{self.token}", j)
            steps[key] = begin, self.panels[j], uppers[j]
            found.append(self.add_reduction(steps, key, uppers[:j], j))
        return found


def _starts(lengths: Sequence[int]) -> list[int]:
    return [0, *accumulate(lengths)][:-1]


def _holding(name: str, steps: Steps, *sources: da.Array) -> da.Array:
    """Make an array that holds tasks, for those that have it among their sources."""
    meta = np.empty(0, dtype=object)
    return array_of_tasks(name, {(0,): (_nothing,)}, ((0,),), meta, *sources, steps=steps)


def _nothing() -> Any:
    return np.empty(0, dtype=object)


def eliminate(
    words: da.Array, moduli: Moduli, right: da.Array | None = None, *, keeps: bool = True
) -> Elimination:
    """Eliminate downwards in a matrix (n, rows, columns), and in right-hand sides (n, rows, K).

    Unless it `keeps` them, rows with pivots are dropped. Whatever waits, block columns and panels, has the
    words of the matrix and of the right-hand sides once; beside it, a task makes three block columns.
    """
    words = in_block_columns(words)
    sides = [words] if right is None else [words, in_block_columns(right)]
    rows, columns = words.shape[1:]
    states, count = [key for side in sides for key in keys_of(side)], words.numblocks[2]
    check_graph(count * len(states), f"elimination in a matrix of shape {(rows, columns)}")
    token = tokenize([side.name for side in sides], moduli, keeps)
    factor = parcelled(_factor_in_turn, moduli=moduli, keeps=keeps)
    found, panels = (f"matrix-found-{token}", 0), []
    steps: Steps = {found: (parcelled(blocks.nothing_found, moduli=moduli, rows=rows, columns=columns),)}
    for k, start in enumerate(_starts(words.chunks[-1])):
        panel, before = (f"matrix-panel-{token}", k), found
        found = (f"matrix-found-{token}", k + 1)
        steps[panel] = factor, states[k], before
        steps[found] = parcelled(blocks.found_after, first_column=start, moduli=moduli), panel, before
        panels.append(panel)
        reduction = (f"matrix-reduction-{token}", k)
        if k + 1 < len(states):
            steps[reduction] = parcelled(blocks.reduction_of), panel
        for j in range(k + 1, len(states)):
            after = (f"matrix-apply-{token}", k, j)
            apply = parcelled(_apply_in_turn, moduli=moduli, order=j)
            steps[after], states[j] = (apply, states[j], reduction), after
    source = _holding(f"matrix-eliminate-{token}", steps, *sides)
    return Elimination(source, token, words, moduli, found, panels, states[count:])


def _factor_in_turn(block: Any, found: blocks.Found, *, moduli: Moduli, keeps: bool) -> blocks.Panel:
    """Factor a panel, for which all others wait, before any block column that a GPU is to reduce."""
    with in_turn(block, -1):
        return blocks.factor_panel(block, found, moduli=moduli, keeps=keeps)


def _apply_in_turn(block: Any, panel: blocks.Reduction, *, moduli: Moduli, order: int) -> Any:
    """Reduce a block column, so that a GPU can begin the next panel before it has reduced all of them."""
    with in_turn(block, order):
        return blocks.apply_panel(block, panel, moduli=moduli)


# ---- results ----------------------------------------------------------------------------------------------


def determinants(words: da.Array, moduli: Moduli) -> da.Array:
    """Determinants (n, *batch) of square matrices (n, *batch, N, N)."""

    def of_one(_: Place, matrix: da.Array) -> tuple[da.Array]:
        found = eliminate(matrix, moduli, keeps=False)
        return (found.one_chunk(blocks.determinant, (len(moduli),), words.dtype),)

    return _of_each(of_one, words)[0]


def ranks(words: da.Array, moduli: Moduli) -> da.Array:
    """Ranks (n, *batch), int64."""

    def of_one(_: Place, matrix: da.Array) -> tuple[da.Array]:
        return (eliminate(matrix, moduli, keeps=False).one_chunk(blocks.ranks, (len(moduli),), np.int64),)

    return _of_each(of_one, words)[0]


def pivots(words: da.Array, moduli: Moduli) -> da.Array:
    """Columns of the pivots (n, *batch, min(rows, columns)), int64, -1 beyond the rank."""
    shape = len(moduli), min(words.shape[-2:])

    def of_one(_: Place, matrix: da.Array) -> tuple[da.Array]:
        return (eliminate(matrix, moduli, keeps=False).one_chunk(blocks.pivots, shape, np.int64),)

    return _of_each(of_one, words)[0]


def forms(words: da.Array, moduli: Moduli) -> tuple[da.Array, da.Array]:
    """Reduced row echelon forms (n, *batch, rows, columns), and their pivots as :func:`pivots`."""
    rows = words.shape[-2]
    shape = len(moduli), min(words.shape[-2:])

    def of_one(_: Place, matrix: da.Array) -> tuple[da.Array, da.Array]:
        found = eliminate(matrix, moduli)
        steps: Steps = {}
        keys = found.add_forms(steps, range(len(found.panels)))
        tasks = [(parcelled(blocks.extended, rows=rows), key) for key in keys]
        form = found.matrix("rref", tasks, rows, found.widths, found.hold(steps, "forms"))
        return form, found.one_chunk(blocks.pivots, shape, np.int64)

    form, found = _of_each(of_one, words)
    return form, found


def solutions(left: da.Array, right: Any, moduli: Moduli, *, unique: bool) -> da.Array:
    """Solutions (n, *batch, columns, K) of equations with right-hand sides (n, *batch, rows, K).

    LinAlgError as for matrices of one chunk, when they are computed.
    """
    batch = broadcast_shape([x.shape[1:-2] for x in (left, right)])
    both = [
        x
        if x.shape[1:-2] == batch
        else da.broadcast_to(with_axes(x, len(batch) + 2), (len(moduli), *batch, *x.shape[-2:]))
        for x in bring_to_one_processor([left, as_lazy(right)])
    ]
    return _of_each(partial(_solutions, moduli, unique), *both)[0]


def _solutions(
    moduli: Moduli, unique: bool, place: Place, matrix: da.Array, right: da.Array
) -> tuple[da.Array]:
    rows, columns = matrix.shape[1:]
    right = in_block_columns(right)
    found = eliminate(matrix, moduli, right)
    token = f"{found.token}-{tokenize(unique, place)}"
    steps: Steps = {}
    checked = _add_check(steps, found, token, unique=unique, place=place)
    uppers, tasks = found.add_uppers(steps), []
    first_rows = parcelled(blocks.first_rows, rows=min(rows, columns))
    placed = parcelled(blocks.placed, rows=columns)
    for j, side in enumerate(found.right):
        key = (f"matrix-right-{token}", j)
        steps[key] = first_rows, side, checked
        tasks.append((placed, found.add_reduction(steps, key, uppers, token, j), checked))
    holding = found.hold(steps, f"sides-{token}")
    return (found.matrix(f"solve-{token}", tasks, columns, right.chunks[-1], holding),)


def _add_check(steps: Steps, found: Elimination, token: str, *, unique: bool, place: Place) -> Any:
    """Add the task that returns what was found if there are solutions; return its key."""
    checked = f"matrix-checked-{token}"
    options: dict[str, Any] = {"moduli": found.moduli, "place": place}
    if unique:
        steps[checked] = parcelled(blocks.check_regular, **options), found.found
        return checked
    fails = [(f"matrix-left-{token}", j) for j in range(len(found.right))]
    left_over = parcelled(blocks.left_over)
    steps.update({key: (left_over, side, found.found) for key, side in zip(fails, found.right, strict=True)})
    steps[checked] = parcelled(blocks.check_solvable, **options), found.found, fails
    return checked


def inverses(words: da.Array, moduli: Moduli) -> da.Array:
    """Inverses (n, *batch, N, N) of square matrices; LinAlgError as for matrices of one chunk."""

    def of_one(place: Place, matrix: da.Array) -> tuple[da.Array]:
        matrix = in_block_columns(matrix)
        return _solutions(moduli, True, place, matrix, _identity_like(matrix))

    return _of_each(of_one, words)[0]


def _identity_like(words: da.Array) -> da.Array:
    """Make the identity matrix in the block columns of a square matrix, on the processors of these."""
    n, rows, _ = words.shape
    widths = words.chunks[-1]
    tasks = {
        (0, 0, j): (parcelled(blocks.identity_block, shape=(n, rows, width), start=start), key)
        for j, (start, width, key) in enumerate(zip(_starts(widths), widths, keys_of(words), strict=True))
    }
    name = f"matrix-identity-{tokenize(words.name)}"
    return array_of_tasks(name, tasks, words.chunks, meta_from_array(words), words)


def nullspaces(words: da.Array, moduli: Moduli, found: Any, rank: int) -> da.Array:
    """Bases (n, *batch, columns, columns - rank) of nullspaces, given all pivots (n, *batch, K) in NumPy."""
    columns = words.shape[-1]

    def of_one(place: Place, matrix: da.Array) -> tuple[da.Array]:
        known = found[(slice(None), *place.index)][:, :rank]
        return (_nullspace(matrix, moduli, free_columns(known, columns)),)

    return _of_each(of_one, words)[0]


def _nullspace(words: da.Array, moduli: Moduli, free: NDArray[np.int64]) -> da.Array:
    """Basis of a nullspace, given the columns without a pivot, which say what each task needs."""
    found = eliminate(words, moduli)
    steps: Steps = {}
    columns, count = words.shape[-1], free.shape[1]
    at = np.searchsorted(found.starts, free, side="right") - 1  # the block of each column
    wanted = np.unique(at).tolist()
    keys = dict(zip(wanted, found.add_forms(steps, wanted), strict=True))
    tasks, widths = [], []
    for first in range(0, count, max(found.widths)):
        part = first, min(first + max(found.widths), count)
        own = np.unique(at[:, slice(*part)]).tolist()
        options = {"starts": [found.starts[j] for j in own], "columns": columns, "part": part}
        function = parcelled(blocks.nullspace_columns, moduli=moduli, **options)
        tasks.append((function, found.found, [keys[j] for j in own]))
        widths.append(part[1] - part[0])
    if not tasks:
        return as_lazy(np.zeros_like(meta_from_array(words), shape=(len(moduli), columns, 0), order="C"))
    return found.matrix("nullspace", tasks, columns, widths, found.hold(steps, "some_forms"))


def factors(words: da.Array, moduli: Moduli) -> tuple[da.Array, da.Array, da.Array]:
    """Factors P (n, *batch, rows, rows), L (n, *batch, rows, K) and U (n, *batch, K, columns)."""
    P, L, U = _of_each(lambda _, matrix: _factors(matrix, moduli), words)
    return P, L, U


def _factors(words: da.Array, moduli: Moduli) -> tuple[da.Array, da.Array, da.Array]:
    found = eliminate(words, moduli)
    steps: Steps = {}
    rows, columns = words.shape[1:]
    least, starts = min(rows, columns), found.starts
    packed = _add_packed(steps, found)
    holding = found.hold(steps, "packed")
    pairs = list(zip(packed, starts, strict=True))
    upper = [(parcelled(blocks.upper_block, first_column=at, rows=least), key) for key, at in pairs]
    U = found.matrix("U", upper, least, found.widths, holding)
    pairs = [(key, at) for key, at in pairs if at < least]
    lower = [(parcelled(blocks.lower_block, first_column=at, columns=least), key) for key, at in pairs]
    ends = [min(at + width, least) for width, (_, at) in zip(found.widths, pairs, strict=False)]
    L = found.matrix("L", lower, rows, np.diff([0, *ends]).tolist(), holding)
    width = max(found.widths)
    parts = [(at, min(at + width, rows)) for at in range(0, rows, width)]
    tasks = [(parcelled(blocks.permutation_block, part=p), found.found, found.panels[-1]) for p in parts]
    P = found.matrix("P", tasks, rows, [last - first for first, last in parts], holding)
    return P, L, U


def _add_packed(steps: Steps, found: Elimination) -> list[Any]:
    """Add tasks for block columns with the factors of all panels; return their keys."""
    name, keys = f"matrix-packed-{found.token}", []
    for j, start in enumerate(found.starts):
        key: Any = (name, j, j)
        pack = parcelled(blocks.packed_block, moduli=found.moduli, first_column=start)
        steps[key] = pack, found.panels[j]
        take = parcelled(blocks.take_factors, first_column=start)
        for k in range(j + 1, len(found.panels)):
            steps[name, j, k], key = (take, key, found.panels[k]), (name, j, k)
        keys.append(key)
    return keys


# ---- stacks -----------------------------------------------------------------------------------------------


def _of_each(function: Callable[..., tuple[da.Array, ...]], *arrays: da.Array) -> tuple[da.Array, ...]:
    """Apply a function to the place and words of each matrix of stacks (n, *batch, ...); stack results."""
    batch = arrays[0].shape[1:-2]

    def of_part(index: tuple[int, ...], *parts: da.Array) -> tuple[da.Array, ...]:
        if len(index) == len(batch):
            return function(Place(index, tuple((i, i + 1) for i in index), batch), *parts)
        found = [of_part((*index, i), *(x[:, i] for x in parts)) for i in range(batch[len(index)])]
        return tuple(da.stack(list(results), axis=1) for results in zip(*found, strict=True))

    return of_part((), *arrays)
