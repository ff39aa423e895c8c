"""Elimination in matrices modulo primes, whole or in parts, factors of LU, characteristic polynomials."""

from collections.abc import Callable

import cupy
import numpy as np
from numpy.typing import NDArray

from rnsdask.backend.cuda import block_lu, launching
from rnsdask.backend.cuda.copies import assign
from rnsdask.backend.cuda.launching import Parameter, modulus_table_on, shared_bytes, stack
from rnsdask.backend.cuda.layout import (
    BLOCK,
    BOARD_BYTES,
    LU_STRIP,
    POLYNOMIALS,
    ROW,
    ROW_TILE,
    WARP,
    WHOLE_ROWS,
)
from rnsdask.backend.cuda.panel_lu import GreatMatrices
from rnsdask.backend.cuda.triangles import Found, in_warps, no_pivots, task_of
from rnsdask.backend.cuda.wide import wide_characteristic_polynomials, wide_eliminate, wide_lu_factor
from rnsdask.backend.cuda.wide import wide_matmul as wide_matmul
from rnsdask.backend.protocol import LU_FACTORS, Array, LUFactor, Moduli
from rnsdask.core.moduli import ModuliSet
from rnsdask.core.wide_moduli import WideModuli

_MOST_THREADS = 512

# Pivots up to which matrices are quicker as a whole in shared memory than by products, as measured.
_MOST_WHOLE = 128


def eliminate(x: Array, pivot_columns: int, moduli: Moduli, out: Array | None) -> Found:
    if isinstance(moduli, WideModuli):
        return wide_eliminate(x, pivot_columns, moduli, out)
    # Results begin at whole vectors; a view may begin elsewhere.
    if out is not None and out is x and not launching.is_aligned(x.reshape(-1)):
        words = cupy.empty(x.shape, dtype=cupy.uint32)
        results = eliminate(x, pivot_columns, moduli, words)
        assign(x, words)
        return results
    found = no_pivots(x, pivot_columns)
    if x.size == 0 or _eliminate_whole(x, pivot_columns, moduli, found, out=out):
        return found
    n, count, rows, columns = x.shape
    if out is None:
        out = cupy.empty(x.shape, dtype=cupy.uint32)
    if (2 in moduli or rows > WHOLE_ROWS) and (shared := shared_bytes(rows * (columns | 1))):
        ranks = cupy.zeros((2, n, count), dtype=cupy.int32)
        task = task_of(
            x, found, (0, pivot_columns, columns), moduli, out=out, ranks=ranks[0], new_ranks=ranks[1]
        )
        block = max(WARP, min(_MOST_THREADS, 1 << (2 * rows - 1).bit_length()))  # two for each row
        launching.launch("elimination", "eliminate", n * count * block, (task,), block=block, shared=shared)
    else:
        _eliminate_great(x, pivot_columns, moduli, out, found)
    return found


def _eliminate_whole(
    x: Array, pivot_columns: int, moduli: ModuliSet, found: Found, **results: Array | None
) -> bool:
    """Eliminate by a thread for each row with the matrix in shared memory, if it is one for that."""
    n, count, rows, columns = x.shape
    # Products by Montgomery are modulo odd numbers.
    if 2 in moduli or rows > WHOLE_ROWS or min(rows, pivot_columns) > _MOST_WHOLE:
        return False
    is_small = rows <= WARP and columns <= ROW and columns == pivot_columns
    right = 0 if is_small else ROW * (ROW + ROW_TILE)
    shared = shared_bytes(BOARD_BYTES // 4 + right + rows * (columns | 1))
    if not shared:
        return False
    task = task_of(x, found, (0, pivot_columns, columns), moduli, **results)
    block, name = in_warps(rows), "eliminate_small" if is_small else "eliminate_whole"
    launching.launch("eliminate_whole", name, n * count * block, (task,), block=block, shared=shared)
    return True


def _eliminate_great(x: Array, pivot_columns: int, moduli: ModuliSet, out: Array, found: Found) -> None:
    """Eliminate as if no rows had to be exchanged, or each column had a pivot; modulo other primes by ranks.

    So most of the time nothing waits for a rank. In place panels are narrow, for the columns of each are kept
    until it is done.
    """
    n, count, rows, _ = x.shape
    pivots = min(rows, pivot_columns)
    if out is x:  # nothing is there to begin again from
        if block_lu.is_for(pivots, rows, n * count, moduli):
            width = block_lu.width_in_place(pivots)
            block_lu.eliminate_in_panels(x, pivot_columns, moduli, found, _eliminate_whole, x, width=width)
        else:
            _eliminate_with_ranks(x, pivot_columns, moduli, found)
    elif not block_lu.is_for(pivots, rows, n * count, moduli):
        is_done = _eliminate_with_all_pivots(x, pivot_columns, moduli, found, out)
        _again(x, pivot_columns, moduli, out, found, is_done, _eliminate_with_ranks)
    elif pivots > block_lu.MOST_PIVOTS:
        block_lu.eliminate_in_panels(x, pivot_columns, moduli, found, _eliminate_whole, out)
    else:
        leading = block_lu.eliminate(x, pivot_columns, moduli, found, _eliminate_whole, out)
        left, least = np.flatnonzero(leading < pivots), int(leading.min())
        for i in left.tolist():
            assign(out[i : i + 1, :, least:, least:], x[i : i + 1, :, least:, least:])

        def go_on(words: Array, pivot_columns: int, moduli: ModuliSet, found: Found) -> None:
            block_lu.go_on(words, pivot_columns, moduli, found, least)

        _again(out, pivot_columns, moduli, out, found, leading == pivots, go_on)


Way = Callable[[Array, int, ModuliSet, Found], None]
"""Eliminates in matrices, which it changes."""


def _again(
    x: Array,
    pivot_columns: int,
    moduli: ModuliSet,
    out: Array,
    found: Found,
    is_done: NDArray[np.bool_],
    way: Way,
) -> None:
    """Eliminate once more, in another way, modulo the primes that are not done."""
    left = np.flatnonzero(~is_done).tolist()
    if not left:
        return
    # One by one: CuPy's indices are not to be trusted beyond 2**31.
    words = out
    if x is not out or len(left) < len(out):
        words = cupy.empty((len(left), *x.shape[1:]), dtype=x.dtype)
        for k, i in enumerate(left):
            assign(words[k : k + 1], x[i : i + 1])
    new = no_pivots(words, pivot_columns)
    way(words, pivot_columns, ModuliSet([moduli[i] for i in left]), new)
    if words is not out:
        for k, i in enumerate(left):
            assign(out[i : i + 1], words[k : k + 1])
    for whole, part in zip(found, new, strict=True):
        whole[left] = part


def _eliminate_with_all_pivots(
    x: Array, pivot_columns: int, moduli: ModuliSet, found: Found, out: Array
) -> NDArray[np.bool_]:
    if out is not x:
        assign(out, x)
    GreatMatrices(out, found, pivot_columns, moduli, is_full=True).eliminate()
    pivots = found[1].get()
    is_full: NDArray[np.bool_] = (pivots == np.arange(pivots.shape[2])).all(axis=(1, 2))
    return is_full


def _eliminate_with_ranks(words: Array, pivot_columns: int, moduli: ModuliSet, found: Found) -> None:
    GreatMatrices(words, found, pivot_columns, moduli, is_full=False).eliminate()


# Many small matrices are eliminated in shared memory, which takes no less time without factors.
small_cramer = None


def lu(x: Array, moduli: Moduli, factors: tuple[Array, Array, Array]) -> None:
    if isinstance(moduli, WideModuli):
        words = cupy.empty(x.shape, dtype=cupy.uint64)
        order = wide_eliminate(x, x.shape[3], moduli, words)[0]
        for factor, out in zip(LU_FACTORS, factors, strict=True):
            wide_lu_factor(words, order, factor, out)
        return
    rows, columns = x.shape[2:]
    if x.size == 0:
        factors[0][...] = cupy.eye(rows, dtype=cupy.uint32)  # the others are empty
        return
    found, is_in_place = no_pivots(x, columns), any(out is x for out in factors)
    results = dict(zip(("permutation", "lower", "upper"), factors, strict=True))
    if is_in_place or not _eliminate_whole(x, columns, moduli, found, **results):
        words = x if is_in_place else cupy.empty(x.shape, dtype=cupy.uint32)
        order = eliminate(x, columns, moduli, words)[0]
        # What goes to the place of the echelon form comes last: a thread writes where it has read.
        for factor, out in sorted(zip(LU_FACTORS, factors, strict=True), key=lambda one: one[1] is x):
            _lu_factor(words, columns, order, 1, factor, out)


def lu_factor(packed: Array, factor: LUFactor, out: Array) -> None:
    if packed.dtype == np.uint64:
        wide_lu_factor(packed[..., :-1], packed[..., -1], factor, out)
        return
    words, width = cupy.ascontiguousarray(packed), packed.shape[3]
    _lu_factor(words, width, words.reshape(-1)[width - 1 :], width, factor, out)


def _lu_factor(words: Array, width: int, order: Array, step: int, factor: LUFactor, out: Array) -> None:
    """A factor of echelon forms in rows of `width` words; numbers of the order are `step` words apart."""
    n, count, rows, columns = out.shape
    strips = n * count * -(-rows // LU_STRIP)
    sizes = tuple(map(np.int64, (n * count, words.shape[2], width, rows, columns)))
    if out.size:
        arguments = words, order, np.int64(step), out, *sizes, np.int32(LU_FACTORS.index(factor))
        launching.launch("lu_factors", "lu_factor", strips * BLOCK, arguments)


# Numbers of its matrix that a thread computes at the first step, where there are enough.
_NUMBERS = 32


def characteristic_polynomials(x: Array, moduli: Moduli) -> Array:
    if isinstance(moduli, WideModuli):
        return wide_characteristic_polynomials(x, moduli)
    n, count, length, _ = x.shape
    out = cupy.empty((n, count, length + 1), dtype=cupy.uint32)
    size = length * (length + 2)
    shared = shared_bytes(size)
    task = Parameter(
        POLYNOMIALS,
        x=stack(x),
        out=out,
        space=cupy.empty(n * count * (length + 1) ** 2, dtype=cupy.uint32),
        work=cupy.empty(0 if shared else n * count * size, dtype=cupy.uint32),
        moduli=modulus_table_on(moduli, cupy.cuda.runtime.getDevice()),
        moduli_count=n,
        count=count,
        length=length,
        is_shared=bool(shared),
    )
    if n * count:
        block, name = _threads_for(size), "characteristic_polynomials"
        launching.launch("charpoly", name, n * count * block, (task,), block=block, shared=shared)
    return out


def _threads_for(size: int) -> int:
    """Threads of a block that computes so many numbers at a time."""
    return max(WARP, min(_MOST_THREADS, 1 << (-(-size // _NUMBERS) - 1).bit_length()))
