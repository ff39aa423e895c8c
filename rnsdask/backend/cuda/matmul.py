"""Kernels of matrix products."""

import cupy

from rnsdask.backend.cuda import launching
from rnsdask.backend.cuda.launching import (
    BLOCKS_PER_PROCESSOR,
    Parameter,
    modulus_table_on,
    processors,
)
from rnsdask.backend.cuda_layout import BLOCK, MATMUL_TILE, PRODUCT, WARP
from rnsdask.backend.protocol import Array
from rnsdask.core.moduli import ModuliSet

# With fewer rows or columns than this, tiles would be mostly empty.
_FEW_COLUMNS = 8
_LEAST_SEGMENT = 1024  # terms


def matmul(a: Array, b: Array, moduli: ModuliSet, out: Array) -> None:
    _, rows, columns = out.shape
    terms = a.shape[2]
    if out.size == 0 or terms == 0:
        out[...] = 0
    elif columns < _FEW_COLUMNS:
        _multiply("matmul_dots", a, b.transpose(0, 2, 1), (rows, terms, columns), moduli, out)
    elif rows < _FEW_COLUMNS:
        # The transposed product has few columns.
        turned = cupy.empty((len(out), columns, rows), dtype=cupy.uint32)
        _multiply("matmul_dots", b.transpose(0, 2, 1), a, (columns, terms, rows), moduli, turned)
        out[...] = turned.transpose(0, 2, 1)
    else:
        _multiply("matmul_tiled", a, b, (rows, terms, columns), moduli, out)


def _multiply(
    name: str, a: Array, b: Array, shape: tuple[int, int, int], moduli: ModuliSet, out: Array
) -> None:
    """Run a kernel of matrix products; with few numbers to compute, in segments of their terms."""
    n, (rows, terms, columns) = len(out), shape
    side = MATMUL_TILE if name == "matmul_tiled" else 1
    tasks = n * -(-rows // side) * -(-columns // side)
    threads_each = BLOCK if name == "matmul_tiled" else WARP
    device = cupy.cuda.runtime.getDevice()
    wanted = processors(device) * BLOCKS_PER_PROCESSOR * BLOCK // (threads_each * tasks)
    segments = max(1, min(wanted, terms // _LEAST_SEGMENT))
    length = -(-terms // segments)
    segments = -(-terms // length)
    parts = out if segments == 1 else cupy.empty((n, segments, rows, columns), dtype=cupy.uint32)
    product = Parameter(
        PRODUCT,
        a=_matrix(_with_contiguous_rows(a)),
        b=_matrix(_with_contiguous_rows(b)),
        out=parts,
        moduli=modulus_table_on(moduli, device),
        moduli_count=n,
        rows=rows,
        terms=terms,
        columns=columns,
        segments=segments,
        length=length,
    )
    launching.launch("matmul", name, tasks * segments * threads_each, (product,))
    if segments > 1:
        sizes = cupy.asarray(list(moduli), dtype=cupy.uint64)[:, None, None]
        out[...] = (parts.sum(axis=1, dtype=cupy.uint64) % sizes).astype(cupy.uint32)


def _matrix(x: Array) -> tuple[Array, int, int]:
    """The array, and the distances of planes and of rows in elements."""
    plane, row, _ = x.strides
    return x, plane // x.itemsize, row // x.itemsize


def _with_contiguous_rows(x: Array) -> Array:
    return x if x.shape[2] == 1 or x.strides[2] == x.itemsize else cupy.ascontiguousarray(x)
