"""Determinants of chunks of matrices of polynomials, by values and interpolation. No Dask in here.

A chunk is (n, *batch, N, N, D): coefficients along the last axis, ascending. Determinants are (n, *batch, 1,
1, N (D - 1) + 1).
"""

import numpy as np
from numpy.typing import NDArray

from rnsdask.backend import Array
from rnsdask.core.moduli import ModuliSet
from rnsdask.core.place import ALONE
from rnsdask.fields import elimination, polynomial_values
from rnsdask.fields.determinant_bounds import Elements, elements, hadamard, hadamard_bound, magnitude_of
from rnsdask.fields.system import PrimeFields, fields_of
from rnsdask.rns.lift import lift
from rnsdask.rns.system import RNS

VALUES_WORDS = 2**22
"""Words of the matrices whose values are computed together."""

# Bound of the rounding error of a sum, for each of its terms.
_UNIT = 2.0**-51


def length_of(rows: int, coefficients: int) -> int:
    """Number of coefficients of a determinant, and of the points that it is interpolated from."""
    return rows * (coefficients - 1) + 1


def determinants(words: Array, moduli: ModuliSet) -> Array:
    """Determinants modulo primes, none below the number of points, which are 0, 1, 2, ..."""
    n, *batch, rows, _, coefficients = words.shape
    length, fields = length_of(rows, coefficients), fields_of(moduli)
    if words.size == 0:  # the determinant of no rows is 1
        found = np.zeros_like(words, shape=(n, *batch, 1, 1, length), order="C")
        found[..., 0] = 1
        return found
    points = np.asarray(fields.encode(list(range(length))), like=words)
    step = max(1, VALUES_WORDS // (words.size // coefficients))
    parts = []
    for start in range(0, length, step):
        few = points[:, start : start + step]
        parts.append(_values(words, few.reshape(n, *(1,) * (len(batch) + 2), few.shape[-1]), fields))
    values = np.concatenate(parts, axis=-1)
    points = points.reshape(n, *(1,) * len(batch), length)
    interpolated = polynomial_values.interpolated(points, values, fields, ALONE)
    return interpolated.reshape(n, *batch, 1, 1, length)


def _values(words: Array, points: Array, fields: PrimeFields) -> Array:
    """Values (n, *batch, P) of determinants at points."""
    matrices = polynomial_values.values_at(words, points, fields)
    found = elimination.determinants(np.moveaxis(matrices, -1, -3), fields.moduli)
    return found[..., 0, 0]


def integers(words: Array, *, system: RNS) -> NDArray[np.object_]:
    """Determinants of matrices of integer polynomials, Python ints (1, *batch, 1, 1, length)."""
    return lift(determinants, words, system, bound(words, system))[None]


def bound(words: Array, system: RNS) -> int:
    """Bound of the coefficients of a determinant (A. Goldstein and R. Graham, 1974).

    On the unit circle a polynomial is at most the sum of its coefficients' magnitudes, so a determinant is at
    most Hadamard's bound of the matrix of these sums; and coefficients are at most the greatest value on the
    circle.
    """
    rows, coefficients = words.shape[-2], words.shape[-1]
    if words.size == 0:
        return 1
    known = hadamard_bound(rows, coefficients * magnitude_of(words, system))
    found = elements(words, system)
    sums = abs(found.x).sum(axis=-1) * (1 + (coefficients + 8) * _UNIT)
    return min(known, hadamard(Elements(sums, found.scale, found.error)))


def check_points(shape: tuple[int, ...], moduli: ModuliSet) -> None:
    """Raise ValueError if a prime is below the number of points."""
    length = length_of(shape[-2], shape[-1])
    least = min(moduli)
    if least < length:
        raise ValueError(
            f"det takes primes of at least {length}, the number of coefficients of a determinant of shape "
            f"{shape}, got {least}"
        )
