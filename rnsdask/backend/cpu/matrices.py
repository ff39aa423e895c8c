"""Matrices of residues: products and elimination."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rnsdask.backend.cpu.extension import _cpu
from rnsdask.backend.protocol import LU_FACTORS, Array, LUFactor, Moduli, SparseRows
from rnsdask.constants import Int8Constants, modulus_table, wide_modulus_table
from rnsdask.core.moduli import ModuliSet
from rnsdask.core.wide_moduli import WideModuli

# Most rows, and fewest matrices, of a batch that is eliminated in step, if moduli are odd.
_SMALL_ROWS, _SEVERAL = 96, 4

# Rows of factors that are written at a time.
_BAND = 256


def matmul(a: Array, b: Array, moduli: ModuliSet, out: Array) -> None:
    _cpu.matmul(a, b, modulus_table(moduli), out)


def wide_matmul(a: Array, b: Array, out: Array, moduli: WideModuli) -> bool:
    _cpu.wide_matmul(a, b, wide_modulus_table(moduli), out)
    return True


# Elimination itself is by halves.
wide_panel = None


def sparse_matmul(a: SparseRows, x: Array, moduli: Moduli, out: Array) -> None:
    _cpu.sparse_matmul(a.starts, a.columns, a.values, x, _table(moduli), out)


def _table(moduli: Moduli) -> NDArray[Any]:
    return wide_modulus_table(moduli) if isinstance(moduli, WideModuli) else modulus_table(moduli)


def shortest_recurrences(sequences: Array, moduli: Moduli) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Shortest linear recurrences c (n, T + 1) of sequences (n, T), one modulo each prime, and lengths (n,).

    With the length L, ``c[0] = 1`` and ``sum(c[i] * s[t - i] for i in range(L + 1)) = 0`` for all t from L
    on.
    """
    n, terms = sequences.shape
    coefficients, lengths = np.empty((n, terms + 1), sequences.dtype), np.empty(n, dtype=np.uint64)
    _cpu.shortest_recurrences(sequences, _table(moduli), coefficients, lengths)
    return coefficients, lengths.astype(np.int64)


def int8_split(x: Array, constants: Int8Constants, is_left: bool, out: Array) -> None:
    _cpu.int8_split(x, constants.left if is_left else constants.right, constants.weights, out)


def int8_join(sums: Array, constants: Int8Constants, out: Array) -> None:
    _cpu.int8_join(sums, constants.left, constants.weights, out)


def eliminate(
    x: Array, pivot_columns: int, moduli: Moduli, out: Array | None
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[Any]]:
    n, count, rows, _ = x.shape
    if out is None:
        out = np.empty((0, 0, 0, 0), dtype=x.dtype)
    order = np.empty((n, count, rows), dtype=np.int32)
    pivots = np.empty((n, count, min(rows, pivot_columns)), dtype=np.int32)
    products = np.empty((n, count), dtype=x.dtype)
    if isinstance(moduli, WideModuli):
        _cpu.wide_eliminate(x, pivot_columns, wide_modulus_table(moduli), out, order, pivots, products)
    else:
        _cpu.eliminate(x, pivot_columns, modulus_table(moduli), out, order, pivots, products)
    return order, pivots, products


def small_cramer(x: Array, moduli: ModuliSet) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    n, count, rows, columns = x.shape
    numerators = np.empty((n, count, rows, columns - rows), dtype=np.uint32)
    determinants = np.empty((n, count), dtype=np.uint32)
    _cpu.small_cramer(x, modulus_table(moduli), numerators, determinants)
    return numerators, determinants


def lu(x: Array, moduli: Moduli, factors: tuple[Array, Array, Array]) -> None:
    is_in_place = any(out is x for out in factors)
    words = x if is_in_place else np.empty_like(x, order="C")
    order = eliminate(x, x.shape[3], moduli, words)[0]
    # What goes to the place of the echelon form comes last.
    for factor, out in sorted(zip(LU_FACTORS, factors, strict=True), key=lambda one: one[1] is x):
        _lu_factor(words, order, factor, out)


def lu_factor(packed: Array, factor: LUFactor, out: Array) -> None:
    _lu_factor(packed[..., :-1], packed[..., -1], factor, out)


def _lu_factor(words: Array, order: Array, factor: LUFactor, out: Array) -> None:
    rows, columns = np.ogrid[: out.shape[2], : out.shape[3]]
    if factor == "P":
        np.equal(order[:, :, None], rows, out=out, casting="unsafe")
        return
    for first in range(0, out.shape[2], _BAND):
        band = slice(first, first + _BAND)
        is_below = columns < rows[band]
        others = columns == rows[band] if factor == "L" else np.uint32(0)
        own = words[:, :, : out.shape[2], : out.shape[3]][:, :, band]
        out[:, :, band] = np.where(is_below == (factor == "L"), own, others)


def solve_upper(upper: Array, right: Array, moduli: Moduli, out: Array) -> None:
    if isinstance(moduli, WideModuli):
        _cpu.wide_solve_upper(upper, right, wide_modulus_table(moduli), out)
    else:
        _cpu.solve_upper(upper, right, modulus_table(moduli), out)


def characteristic_polynomials(x: Array, moduli: Moduli) -> NDArray[Any]:
    n, count, length, _ = x.shape
    out = np.empty((n, count, length + 1), dtype=x.dtype)
    if isinstance(moduli, WideModuli):
        _cpu.wide_characteristic_polynomials(x, wide_modulus_table(moduli), out)
        return out
    is_small = 0 < length <= _SMALL_ROWS and n * count >= _SEVERAL and 2 not in moduli.moduli
    kernel = _cpu.small_polynomials if is_small else _cpu.characteristic_polynomials
    kernel(x, modulus_table(moduli), out)
    return out
