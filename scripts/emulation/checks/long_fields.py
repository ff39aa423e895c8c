"""Residues modulo primes of up to 64 bits: arithmetic, elimination and transforms."""

from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np

from emulation.checks import Place, check
from rnsdask.backend import cpu
from rnsdask.constants import transform_constants
from rnsdask.core.operations import OPERATIONS
from rnsdask.core.wide_moduli import WideModuli
from rnsdask.fields import wide_elimination

PRIMES = WideModuli((2, 3, 65537, 2**61 - 1, 2**63 - 25, 2**64 - 2**32 + 1))
LONG_PRIMES = WideModuli((65537, 2**63 - 25))
WITH_ROOTS = WideModuli((65537, 1152921504577486849, 2**64 - 2**32 + 1))


def residues(moduli: WideModuli, seed: int, *shape: int) -> np.ndarray:
    """Random residues, among them 0, 1 and the greatest."""
    drawn = np.random.default_rng(seed).integers(0, 2**64, (len(moduli), *shape), dtype=np.uint64)
    found = drawn % np.array(list(moduli), np.uint64).reshape(-1, *(1,) * len(shape))
    flat = found.reshape(len(moduli), -1)
    flat[:, ::7], flat[:, 1::11] = 0, 1
    flat[:, 3::5] = np.array(list(moduli), np.uint64)[:, None] - np.uint64(1)
    return found


@check
def arithmetic_of_long_residues(kernels: Any, place: Place) -> list[Any]:
    """Operands that are arrays or single numbers."""
    operands, results = [residues(PRIMES, seed, 70) for seed in range(4)], []
    for name, operation in OPERATIONS.items():
        for single in range(operation.arity):
            given = [place(x[:, :1] if k == single else x) for k, x in enumerate(operands[: operation.arity])]
            out = place(np.empty_like(operands[0]))
            kernels.apply(name, given, PRIMES, out)
            results.append(out)
    for exponent in (0, 1, 5, 2**64 - 1):
        out = place(np.empty_like(operands[0]))
        kernels.power(place(operands[0]), exponent, PRIMES, out)
        results.append(out)
    out = place(np.empty_like(operands[0]))
    kernels.inverse(place(operands[0]), PRIMES, out)
    return [*results, out]


@check
def products_of_long_residues(kernels: Any, place: Place) -> list[Any]:
    """Matrices that do not fill tiles, of words that are all the greatest, too."""
    results = []
    for rows, terms, columns in ((1, 1, 1), (3, 70, 5), (65, 17, 66), (2, 33, 130)):
        a, b = residues(PRIMES, rows, 2, rows, terms), residues(PRIMES, terms, 2, terms, columns)
        for x in (a, b):
            x[:, 1] = np.array(list(PRIMES), np.uint64)[:, None, None] - np.uint64(1)
        out = place(np.empty((len(PRIMES), 2, rows, columns), np.uint64))
        assert kernels.wide_matmul(place(a), place(b), out, PRIMES)
        results.append(out)
    return results


@check
def elimination_of_long_residues(kernels: Any, place: Place) -> list[Any]:
    """Matrices of every rank, with pivots from some columns or all, their factors, and triangular systems."""
    results = []
    for rows, columns in ((1, 1), (5, 7), (9, 6)):
        x = residues(PRIMES, rows, 3, rows, columns)
        x[:, 1, :, : columns // 2] = 0
        x[:, 2, rows // 2 :] = x[:, 2, : rows - rows // 2]
        for pivot_columns in (columns // 2, columns):
            out = place(np.empty_like(x))
            results += [*kernels.eliminate(place(x), pivot_columns, PRIMES, out), out]
        least = min(rows, columns)
        shapes = (rows, rows), (rows, least), (least, columns)
        factors = tuple(place(np.empty((*x.shape[:2], *shape), dtype=np.uint64)) for shape in shapes)
        kernels.lu(place(x), PRIMES, factors)
        results += factors
    upper, right = residues(PRIMES, 5, 2, 8, 8), residues(PRIMES, 6, 2, 8, 3)
    diagonal = np.einsum("...ii->...i", upper)
    diagonal[diagonal == 0] = 1
    out = place(np.empty_like(right))
    kernels.solve_upper(place(upper), place(right), PRIMES, out)
    return [*results, out]


@check
def elimination_of_long_residues_by_halves(kernels: Any, place: Place) -> list[Any]:
    """Great matrices, taken as such: of every rank, with exchanges, with pivots from some columns or all."""
    results = []
    # Arrays that stand for CuPy's are NumPy's to what asks for their kernels, and to products.
    panels = SimpleNamespace(
        eliminate=kernels.eliminate, wide_panel=kernels.wide_panel, solve_upper=cpu.solve_upper
    )
    of_host = {"kernels_of": lambda _: panels}
    with patch.multiple(wide_elimination, LEAST_PIVOTS=2, PANEL=3, MOVED_WORDS=20, **of_host):
        for rows, columns in ((7, 7), (12, 9), (8, 13)):
            x = residues(LONG_PRIMES, rows, 5, rows, columns)
            x[:, 1, :, : columns // 2] = 0
            x[:, 2, rows // 2 :] = x[:, 2, : rows - rows // 2]
            x[:, 3, :, ::2] = 0
            x[:, 4] = np.random.default_rng(rows).integers(1, 65537, x[:, 4].shape, dtype=np.uint64)
            for pivot_columns in (columns // 2, columns):
                for b in range(x.shape[1]):
                    out = place(np.empty_like(x[:, b : b + 1]))
                    given = place(x[:, b : b + 1])
                    found = wide_elimination.eliminate(given, pivot_columns, LONG_PRIMES, out)
                    results += [*found, out]
        for height, width in ((1, 4), (7, 3), (40, 1), (40, 50)):
            upper, right = (residues(LONG_PRIMES, height, 2, height, k) for k in (height, width))
            diagonal = np.einsum("...ii->...i", upper)
            diagonal[diagonal == 0] = 1
            out = place(np.empty_like(right))
            wide_elimination.solve_upper(place(upper), place(right), LONG_PRIMES, out)
            results.append(out)
    return results


@check
def transforms_of_long_residues(kernels: Any, place: Place) -> list[Any]:
    """Runs shorter and longer than a tile, forward and back."""
    results = []
    for log, runs in ((0, 3), (1, 2), (5, 3), (11, 1), (13, 2)):
        x = residues(WITH_ROOTS, log, runs << log)
        for inverse in (False, True):
            out = place(np.empty_like(x))
            kernels.ntt(place(x), transform_constants(WITH_ROOTS, 1 << log, inverse), out)
            results.append(out)
    return results
