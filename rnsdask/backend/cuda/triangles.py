"""Operands and results of elimination, inverses of small triangular matrices, and solutions of systems."""

import cupy
import numpy as np

from rnsdask.backend.cuda import int8_product, launching
from rnsdask.backend.cuda.arithmetic import inverse
from rnsdask.backend.cuda.int8_product import SUBTRACT, Part
from rnsdask.backend.cuda.launching import Parameter, modulus_table_on, stack
from rnsdask.backend.cuda.layout import ELIMINATION, INVERSE_ROWS, MOST_INVERTED, TRIANGLES, TRIANGULAR, WARP
from rnsdask.backend.cuda.wide import wide_solve_upper
from rnsdask.backend.protocol import Array, Moduli
from rnsdask.core.moduli import ModuliSet
from rnsdask.core.wide_moduli import WideModuli

Found = tuple[Array, Array, Array]
"""Order, pivots and products, as :meth:`.Kernels.eliminate` gives them."""


def no_pivots(x: Array, pivot_columns: int) -> Found:
    """Order, pivots and products before elimination."""
    n, count, rows, _ = x.shape
    return pivots_of_none((n, count), rows, min(rows, pivot_columns))


def pivots_of_none(matrices: tuple[int, ...], rows: int, most: int) -> Found:
    """Order (*matrices, rows), pivots (*matrices, most) and products (*matrices) before elimination."""
    order, pivots = (cupy.empty((*matrices, length), dtype=cupy.int32) for length in (rows, most))
    products = cupy.empty(matrices, dtype=cupy.uint32)
    sizes = (np.int64(length) for length in (products.size, rows, most))
    arguments = (*sizes, order, pivots, products)
    launching.launch("ranks", "no_pivots", max(order.size, products.size), arguments)
    return order, pivots, products


def middle_ranks(first: Array, last: Array, half: int) -> Array:
    """Ranks of matrices `half` above the first ones, but not above the last ones."""
    middle = cupy.empty_like(first)
    arguments = (first, last, np.int64(first.size), np.int32(half), middle)
    launching.launch("ranks", "middle_ranks", first.size, arguments)
    return middle


def task_of(
    x: Array,
    found: Found,
    columns: tuple[int, int, int],
    moduli: ModuliSet,
    has_panels: bool = False,
    /,
    **results: Array | None,
) -> Parameter:
    """Elimination with pivots of columns from the first to the second, of what is left of the third."""
    n, count, rows, width = x.shape
    order, pivots, products = found
    return Parameter(
        ELIMINATION,
        x=stack(x),
        order=order,
        pivots=pivots,
        products=products,
        moduli=modulus_table_on(moduli, cupy.cuda.runtime.getDevice()),
        moduli_count=n,
        count=count,
        rows=rows,
        columns=width,
        most=pivots.shape[2],
        start=columns[0],
        stop=columns[1],
        reach=columns[2],
        has_panels=has_panels,
        **{name: array for name, array in results.items() if array is not None},
    )


def in_warps(threads: int) -> int:
    """So many threads in whole warps."""
    return -(-threads // WARP) * WARP


# Rows of triangular systems that are solved without products of matrices.
_MOST_SOLVED = 128


def invert(x: Array, moduli: ModuliSet, lower: Array, upper: Array) -> None:
    """Both factors L and U in square matrices of at most `MOST_INVERTED` rows."""
    _invert(x, moduli, lower=lower, upper=upper)


def lower_inverses(x: Array, ranks: tuple[Array, Array], size: int, moduli: ModuliSet) -> Array:
    """Inverses of the factors L in rows and columns from the first rank to the second, at most `size`."""
    lower = cupy.empty((*x.shape[:2], size, size), dtype=cupy.uint32)
    _invert(x, moduli, first=ranks[0], last=ranks[1], lower=lower)
    return lower


def _invert(x: Array, moduli: ModuliSet, lower: Array, **more: Array) -> None:
    n, count, size, _ = lower.shape
    task = Parameter(
        TRIANGLES,
        x=stack(x),
        lower=lower,
        moduli=modulus_table_on(moduli, cupy.cuda.runtime.getDevice()),
        moduli_count=n,
        count=count,
        size=size,
        **more,
    )
    block = (MOST_INVERTED // 2) ** 2 // INVERSE_ROWS
    blocks = n * count * (2 if "upper" in more else 1)
    launching.launch("triangles", "invert_triangles", blocks * block, (task,), block=block)


def solve_upper(upper: Array, right: Array, moduli: Moduli, out: Array) -> None:
    if isinstance(moduli, WideModuli):
        wide_solve_upper(upper, right, moduli, out)
        return
    if out.size == 0:
        return
    rows = right.shape[2]
    if rows <= _MOST_SOLVED:
        _solve_upper(upper, right, moduli, out)
        return
    if out is not right:
        out[...] = right
    half = rows // 2
    lower, above = out[:, :, half:], out[:, :, :half]
    solve_upper(upper[:, :, half:, half:], lower, moduli, lower)
    parts = [Part.whole(x) for x in (upper[:, :, :half, half:], lower, above)]
    shape = half, rows - half, out.shape[3]
    int8_product.multiply(parts[0], parts[1], moduli, parts[2], shape, SUBTRACT)
    solve_upper(upper[:, :, :half, :half], above, moduli, above)


def _solve_upper(upper: Array, right: Array, moduli: ModuliSet, out: Array) -> None:
    n, count, rows, columns = right.shape
    # A copy, with the diagonals as they are in memory.
    diagonals = upper.diagonal(axis1=2, axis2=3).reshape(n, count * rows).copy()
    inverses = cupy.empty_like(diagonals)
    inverse(diagonals, moduli, inverses)
    lanes = _lanes(columns)
    system = Parameter(
        TRIANGULAR,
        upper=stack(upper),
        right=stack(right),
        out=stack(out),
        inverses=inverses,
        moduli=modulus_table_on(moduli, cupy.cuda.runtime.getDevice()),
        moduli_count=n,
        count=count,
        rows=rows,
        columns=columns,
        lanes=lanes,
    )
    launching.launch("triangular_systems", "solve_upper", n * count * -(-columns // lanes) * WARP, (system,))


def _lanes(length: int) -> int:
    """The least power of two that is not below a length, or a warp."""
    return min(WARP, 1 << (length - 1).bit_length())
