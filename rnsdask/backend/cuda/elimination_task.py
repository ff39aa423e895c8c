"""What kernels of elimination take and find."""

import cupy

from rnsdask.backend.cuda.launching import Parameter, modulus_table_on, stack
from rnsdask.backend.cuda_layout import ELIMINATION, WARP
from rnsdask.backend.protocol import Array
from rnsdask.core.moduli import ModuliSet

Found = tuple[Array, Array, Array]
"""Order, pivots and products, as :meth:`.Kernels.eliminate` gives them."""


def no_pivots(x: Array, pivot_columns: int) -> Found:
    """What is known before there are pivots."""
    n, count, rows, _ = x.shape
    order = cupy.empty((n, count, rows), dtype=cupy.int32)
    order[...] = cupy.arange(rows, dtype=cupy.int32)
    pivots = cupy.full((n, count, min(rows, pivot_columns)), -1, dtype=cupy.int32)
    return order, pivots, cupy.ones((n, count), dtype=cupy.uint32)


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
