"""Kernels of matrix products."""

import cupy

from rnsdask.backend.cuda import int8_product, launching
from rnsdask.backend.cuda.int8_product import Part
from rnsdask.backend.cuda.launching import (
    BLOCKS_PER_PROCESSOR,
    Parameter,
    modulus_table_on,
    processors,
    stack,
)
from rnsdask.backend.cuda.layout import BLOCK, MATMUL_TILE, PRODUCT, WARP
from rnsdask.backend.protocol import Array
from rnsdask.core.moduli import ModuliSet

# With fewer rows or columns than this, tiles would be mostly empty.
_FEW_COLUMNS = 8
_LEAST_SEGMENT = 1024  # terms

# Least terms, harmonic mean of rows and columns, and multiplications with which products of 8-bit matrices
# are quicker: fewer do not repay the splitting of the matrices.
_INT8_TERMS = 128
_INT8_SIDE = 128
INT8_WORK = 2**29


def is_int8_quicker(matrices: int, rows: int, terms: int, columns: int) -> bool:
    """Whether a product of that shape is quicker by 8-bit matrices, as measured."""
    work = matrices * rows * terms * columns
    is_wide = 2 * rows * columns >= _INT8_SIDE * (rows + columns)
    return is_wide and terms >= _INT8_TERMS and work >= INT8_WORK


def matmul(a: Array, b: Array, moduli: ModuliSet, out: Array) -> None:
    n, count, rows, columns = out.shape
    terms = a.shape[3]
    if out.size == 0 or terms == 0:
        out[...] = 0
    elif is_int8_quicker(n * count, rows, terms, columns):
        parts = [Part.whole(x) for x in (a, b, out)]
        int8_product.multiply(parts[0], parts[1], moduli, parts[2], (rows, terms, columns))
    elif columns < _FEW_COLUMNS:
        _multiply("matmul_dots", a, b.transpose(0, 1, 3, 2), (rows, terms, columns), moduli, out)
    elif rows < _FEW_COLUMNS:
        # The transposed product has few columns.
        turned = cupy.empty((n, count, columns, rows), dtype=cupy.uint32)
        _multiply("matmul_dots", b.transpose(0, 1, 3, 2), a, (columns, terms, rows), moduli, turned)
        out[...] = turned.transpose(0, 1, 3, 2)
    else:
        _multiply("matmul_tiled", a, b, (rows, terms, columns), moduli, out)


def _multiply(
    name: str, a: Array, b: Array, shape: tuple[int, int, int], moduli: ModuliSet, out: Array
) -> None:
    """Run a kernel of matrix products; with few numbers to compute, in segments of their terms."""
    (n, count), (rows, terms, columns) = out.shape[:2], shape
    side = MATMUL_TILE if name == "matmul_tiled" else 1
    tasks = n * count * -(-rows // side) * -(-columns // side)
    threads_each = BLOCK if name == "matmul_tiled" else WARP
    device = cupy.cuda.runtime.getDevice()
    wanted = processors(device) * BLOCKS_PER_PROCESSOR * BLOCK // (threads_each * tasks)
    segments = max(1, min(wanted, terms // _LEAST_SEGMENT))
    length = -(-terms // segments)
    segments = -(-terms // length)
    parts = out if segments == 1 else cupy.empty((n, count, segments, rows, columns), dtype=cupy.uint32)
    product = Parameter(
        PRODUCT,
        a=stack(_with_contiguous_rows(a)),
        b=stack(_with_contiguous_rows(b)),
        out=parts,
        moduli=modulus_table_on(moduli, device),
        moduli_count=n,
        count=count,
        rows=rows,
        terms=terms,
        columns=columns,
        segments=segments,
        length=length,
    )
    launching.launch("matmul", name, tasks * segments * threads_each, (product,))
    if segments > 1:
        sizes = cupy.asarray(list(moduli), dtype=cupy.uint64)[:, None, None, None]
        out[...] = (parts.sum(axis=2, dtype=cupy.uint64) % sizes).astype(cupy.uint32)


def _with_contiguous_rows(x: Array) -> Array:
    return x if x.shape[3] == 1 or x.strides[3] == x.itemsize else cupy.ascontiguousarray(x)
