"""Kernels of elimination in matrices modulo primes, of triangular systems and characteristic polynomials."""

import cupy

from rnsdask.backend.cuda import launching
from rnsdask.backend.cuda.arithmetic import inverse
from rnsdask.backend.cuda.launching import Parameter, modulus_table_on, most_shared
from rnsdask.backend.cuda_layout import ELIMINATION, POLYNOMIALS, TRIANGULAR, WARP
from rnsdask.backend.protocol import Array
from rnsdask.core.moduli import ModuliSet

# Numbers of its matrix that a thread computes at the first step, where there are enough.
_NUMBERS = 32

# A kernel has so many bytes of shared memory besides.
_STATIC_BYTES = 64


def _lanes(length: int, least: int = 1) -> int:
    """The least power of two from `least` to a warp that is not below a length, or a warp."""
    return min(WARP, max(least, 1 << (length - 1).bit_length()))


def _threads(size: int, most: int) -> int:
    """Threads of a block that computes so many numbers at a time."""
    return max(WARP, min(most, 1 << (-(-size // _NUMBERS) - 1).bit_length()))


def _stack(x: Array) -> tuple[Array | int, ...]:
    """The structure Stack of matrices."""
    return x, *(stride // x.itemsize for stride in x.strides)


def _shared(words: int) -> int:
    """Bytes of so many words if a block of the current device can share them, else 0."""
    size = 4 * words
    return size if size + _STATIC_BYTES <= most_shared(cupy.cuda.runtime.getDevice()) else 0


def eliminate(x: Array, pivot_columns: int, moduli: ModuliSet, out: Array) -> tuple[Array, Array, Array]:
    n, count, rows, columns = x.shape
    most = min(rows, pivot_columns)
    order = cupy.empty((n, count, rows), dtype=cupy.int32)
    pivots = cupy.empty((n, count, most), dtype=cupy.int32)
    products = cupy.empty((n, count), dtype=cupy.uint32)
    scales = 2 * most + 1
    shared = _shared(rows * columns + scales)
    task = Parameter(
        ELIMINATION,
        x=_stack(x),
        out=out,
        order=order,
        pivots=pivots,
        products=products,
        space=cupy.empty(0 if shared else n * count * scales, dtype=cupy.uint32),
        moduli=modulus_table_on(moduli, cupy.cuda.runtime.getDevice()),
        moduli_count=n,
        count=count,
        rows=rows,
        columns=columns,
        pivot_columns=pivot_columns,
        is_shared=bool(shared),
        lanes=_lanes(columns, WARP // 4),
    )
    if n * count:
        block = _threads(rows * columns, 1024)
        launching.launch("elimination", "eliminate", n * count * block, (task,), block=block, shared=shared)
    return order, pivots, products


def solve_upper(upper: Array, right: Array, moduli: ModuliSet, out: Array) -> None:
    if out.size == 0:
        return
    n, count, rows, columns = right.shape
    # A copy, with the diagonals as they are in memory.
    diagonals = upper.diagonal(axis1=2, axis2=3).reshape(n, count * rows).copy()
    inverses = cupy.empty_like(diagonals)
    inverse(diagonals, moduli, inverses)
    lanes = _lanes(columns)
    system = Parameter(
        TRIANGULAR,
        upper=_stack(upper),
        right=_stack(right),
        inverses=inverses,
        out=out,
        moduli=modulus_table_on(moduli, cupy.cuda.runtime.getDevice()),
        moduli_count=n,
        count=count,
        rows=rows,
        columns=columns,
        lanes=lanes,
    )
    launching.launch("elimination", "solve_upper", n * count * -(-columns // lanes) * WARP, (system,))


def characteristic_polynomials(x: Array, moduli: ModuliSet) -> Array:
    n, count, length, _ = x.shape
    out = cupy.empty((n, count, length + 1), dtype=cupy.uint32)
    size = length * (length + 2)
    shared = _shared(size)
    task = Parameter(
        POLYNOMIALS,
        x=_stack(x),
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
        block, name = _threads(size, 512), "characteristic_polynomials"
        launching.launch("elimination", name, n * count * block, (task,), block=block, shared=shared)
    return out
