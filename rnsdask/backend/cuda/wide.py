"""Arithmetic and elimination modulo primes beyond 32 bits."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import cupy
import numpy as np

from rnsdask.backend import cpu
from rnsdask.backend.cuda import launching
from rnsdask.backend.cuda.launching import Parameter, row_stride
from rnsdask.backend.cuda.layout import (
    MAX_OPERANDS,
    WIDE_ACROSS,
    WIDE_MATRICES,
    WIDE_PRODUCT,
    WIDE_TASK,
    WIDE_TILE,
)
from rnsdask.backend.cuda.memory import table_on_gpu
from rnsdask.backend.protocol import Array, LUFactor
from rnsdask.constants import wide_modulus_table
from rnsdask.core.wide_moduli import WideModuli


@lru_cache(256)
def wide_table_on(moduli: WideModuli, device: int) -> Any:
    """Table of the moduli for arithmetic on a device, copied once."""
    return table_on_gpu(wide_modulus_table(moduli))


def launch_wide(name: str, operands: Sequence[Array], moduli: WideModuli, out: Array, *more: Any) -> None:
    """Launch a kernel of ``wide_arithmetic.cu``; an operand of one number may be NumPy's."""
    arrays = [cupy.asarray(x) for x in operands]
    places = [(x, int(row_stride(x)), 0 if x.shape[1] == 1 else 1) for x in arrays]
    rows, count = out.shape
    task = Parameter(
        WIDE_TASK,
        x=places + [(0, 0, 0)] * (MAX_OPERANDS - len(places)),
        out=out,
        out_stride=int(row_stride(out)),
        count=count,
        moduli=wide_table_on(moduli, cupy.cuda.runtime.getDevice()),
        rows=rows,
    )
    launching.launch("wide_arithmetic", name, out.size, (task, *more))


def wide_apply(operation: str, operands: Sequence[Array], moduli: WideModuli, out: Array) -> None:
    launch_wide(f"{operation}_wide", operands, moduli, out)


def wide_power(a: Array, exponent: int, moduli: WideModuli, out: Array) -> None:
    launch_wide("wide_power", (a,), moduli, out, np.uint64(exponent))


def wide_inverse(a: Array, moduli: WideModuli, out: Array) -> None:
    launch_wide("wide_inverse", (a,), moduli, out)


# ---- matrices ---------------------------------------------------------------------------------------------

_FACTOR = 2
"""Words of a factor with its quotient."""

_MATRIX_BLOCK = 1024


def _matrices(words: Array, moduli: WideModuli) -> Parameter:
    n, count, rows, columns = words.shape
    return Parameter(
        WIDE_MATRICES,
        words=words,
        total=n * count,
        count=count,
        rows=rows,
        columns=columns,
        moduli=_table(moduli),
    )


def _table(moduli: Any) -> Any:
    return wide_table_on(moduli, cupy.cuda.runtime.getDevice())


def wide_eliminate(
    x: Array, pivot_columns: int, moduli: WideModuli, out: Array | None
) -> tuple[Array, Array, Array]:
    n, count, rows, _ = x.shape
    words = cupy.empty(x.shape, dtype=cupy.uint64) if out is None else out
    words[...] = x
    order = cupy.empty((n, count, rows), dtype=cupy.int32)
    pivots = cupy.empty((n, count, min(rows, pivot_columns)), dtype=cupy.int32)
    products = cupy.ones((n, count), dtype=cupy.uint64)
    if n * count * rows:
        factors = cupy.empty(n * count * rows * _FACTOR, dtype=cupy.uint64)
        arguments = (_matrices(words, moduli), np.int64(pivot_columns), factors, order, pivots, products)
        threads = n * count * _MATRIX_BLOCK
        launching.launch("wide_elimination", "wide_eliminate", threads, arguments, block=_MATRIX_BLOCK)
    return order, pivots, products


def wide_solve_upper(upper: Array, right: Array, moduli: WideModuli, out: Array) -> None:
    if out is not right:
        out[...] = right
    if not out.size:
        return
    n, count, rows, _ = out.shape
    factors = cupy.empty(n * count * rows * 2 * _FACTOR, dtype=cupy.uint64)
    arguments = (_matrices(out, moduli), cupy.ascontiguousarray(upper), factors)
    threads = n * count * _MATRIX_BLOCK
    launching.launch("wide_elimination", "wide_solve_upper", threads, arguments, block=_MATRIX_BLOCK)


def wide_lu_factor(words: Array, order: Array, factor: LUFactor, out: Array) -> None:
    """Write a factor from echelon forms and the rows that came to each place."""
    rows, columns = cupy.arange(out.shape[2])[:, None], cupy.arange(out.shape[3])
    if factor == "P":
        out[...] = order[:, :, None] == rows
        return
    is_wanted = (columns < rows) == (factor == "L")
    others = (columns == rows).astype(out.dtype) * np.uint64(factor == "L")
    out[...] = np.where(is_wanted, words[:, :, : out.shape[2], : out.shape[3]], others)


def wide_characteristic_polynomials(x: Array, moduli: WideModuli) -> Array:
    return cupy.asarray(cpu.characteristic_polynomials(x.get(), moduli))  # on the host


_MOST_MULTIPLIED = 2**30
"""Multiplications up to which this takes less time than products of residues, which take many launches."""


def wide_matmul(a: Array, b: Array, out: Array, moduli: WideModuli) -> bool:
    n, count, rows, columns = out.shape
    terms = a.shape[3]
    if out.size * terms > _MOST_MULTIPLIED:
        return False
    product = Parameter(
        WIDE_PRODUCT,
        a=cupy.ascontiguousarray(a),
        b=cupy.ascontiguousarray(b),
        out=out,
        total=n * count,
        count=count,
        rows=rows,
        terms=terms,
        columns=columns,
        moduli=_table(moduli),
    )
    tiles = n * count * -(-rows // WIDE_TILE) * -(-columns // WIDE_TILE)
    block = WIDE_ACROSS**2
    launching.launch("wide_matmul", "wide_matmul", tiles * block, (product,), block=block)
    return True
