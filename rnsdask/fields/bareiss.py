"""Determinants and solutions of a few small integer matrices, eliminated without fractions. No Dask here.

E. Bareiss, "Sylvester's identity and multistep integer-preserving Gaussian elimination", Mathematics of
Computation 22 (1968): each step divides by the previous pivot without remainder, because its results are
minors.
"""

import math

import gmpy2
import numpy as np
from numpy.typing import NDArray

from rnsdask.backend import Array, backend_name

# Steps of the elimination that take as long as the calls for images modulo primes.
MOST_STEPS = 150


def is_quicker(words: Array, rows: int, columns: int, matrices: int | None = None) -> bool:
    """Whether this elimination is quicker than others for matrices of `rows` and `columns` right-hand sides.

    Without `matrices`, their number is that of the batch of `words` (n, *batch, ...).
    """
    count = math.prod(words.shape[1:-2]) if matrices is None else matrices
    steps = count * rows**2 * (rows / 2 + columns if columns else rows / 3)
    return backend_name(words) == "cpu" and 0 < steps <= MOST_STEPS


def cramer(values: NDArray[np.object_]) -> tuple[NDArray[np.object_], NDArray[np.object_]]:
    """Numerators (*batch, N, K) of Cramer's rule and determinants (*batch, 1, 1) of [A b], as gmpy2's.

    Where a determinant is 0, the numerators are undefined.
    """
    *batch, rows, width = values.shape
    numerators = np.empty((*batch, rows, width - rows), dtype=object)
    determinants = np.empty((*batch, 1, 1), dtype=object)
    for index in np.ndindex(*batch):
        found, determinants[(*index, 0, 0)] = _eliminate(values[index].tolist())
        if width > rows:
            numerators[index] = [row[rows:] for row in found]
    return numerators, determinants


def _eliminate(matrix: list[list[int]]) -> tuple[list[list[gmpy2.mpz]], gmpy2.mpz]:
    """Eliminate [A b]: [A' det(A) x] with an undefined A', and det(A), which alone is valid without b."""
    rows, before, sign = [list(map(gmpy2.mpz, row)) for row in matrix], gmpy2.mpz(1), 1
    length = len(rows)
    for k in range(length):
        place = next((i for i in range(k, length) if rows[i][k]), None)
        if place is None:
            return rows, gmpy2.mpz(0)
        if place != k:
            rows[k], rows[place], sign = rows[place], rows[k], -sign
        pivot, right = rows[k][k], rows[k][k + 1 :]
        for i in range(k + 1 if len(rows[k]) == length else 0, length):
            row, factor = rows[i], rows[i][k]
            if i != k:
                pairs = zip(row[k + 1 :], right, strict=True)
                row[k + 1 :] = [gmpy2.divexact(pivot * x - factor * y, before) for x, y in pairs]
        before = pivot
    if sign < 0:
        rows = [[-x for x in row] for row in rows]
    return rows, sign * before
