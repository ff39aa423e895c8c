"""Linear algebra of matrices over prime fields, lazy on Dask.

Chunks are computed by :mod:`rnsdask.fields.elimination` and :mod:`rnsdask.fields.echelon`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import dask.array as da
import numpy as np

from rnsdask.fields import echelon, elimination, polynomial_determinants
from rnsdask.lazy.matrices import (
    check_matrices,
    check_square,
    common_rank,
    joined_words,
    map_matrices,
    numbers_like,
)
from rnsdask.typing import PlainArray

if TYPE_CHECKING:
    from rnsdask.arrays.field_array import FieldArray


class LU(NamedTuple):
    """Factors of matrices ``A = P @ L @ U``, with the names of ``scipy.linalg.lu``."""

    P: FieldArray
    L: FieldArray
    U: FieldArray


class RREF(NamedTuple):
    """Reduced row echelon forms over fields, and the columns of their pivots."""

    matrix: FieldArray
    pivots: PlainArray[np.int64]


def det(x: Any, *, variables: int = 0) -> Any:
    """Determinants of square matrices, an integer for one matrix, or of matrices of polynomials."""
    words, options = check_square("det", x, of_polynomials=variables == 1), {"moduli": x.system.moduli}
    if not variables:
        return numbers_like(
            x, map_matrices("det", elimination.determinants, words, (1, 1), **options)[..., 0, 0]
        )
    polynomial_determinants.check_points(tuple(words.shape[1:]), x.system.moduli)
    lengths = 1, 1, polynomial_determinants.length_of(*words.shape[-2:])
    function = polynomial_determinants.determinants
    return numbers_like(
        x, map_matrices("det", function, words, lengths, of_polynomials=True, **options)[..., 0, 0, :]
    )


def rank(x: Any) -> Any:
    """Ranks (n, ...) modulo each prime, int64."""
    options = {"moduli": x.system.moduli, "dtype": np.int64}
    return map_matrices("rank", elimination.ranks, check_matrices("rank", x), (1, 1), **options)[..., 0, 0]


def lu(x: Any) -> LU:
    """Factor matrices with row exchanges."""
    words = check_matrices("lu", x)
    rows, columns = words.shape[-2:]
    least = min(rows, columns)
    if not isinstance(words, da.Array):
        return LU(*(numbers_like(x, part) for part in elimination.factors(words, x.system.moduli)))
    packed = map_matrices("lu", elimination.packed_lu, words, (rows, columns + 1), moduli=x.system.moduli)
    parts = (
        (elimination.permutation_of, (rows, rows)),
        (elimination.lower_of, (rows, least)),
        (elimination.upper_of, (least, columns)),
    )
    return LU(
        *(numbers_like(x, map_matrices("lu", function, packed, lengths)) for function, lengths in parts)
    )


def solve(a: Any, b: Any, *, unique: bool = True) -> Any:
    """Solutions of ``a @ x == b``."""
    joined, columns, is_vector = joined_words(a, b, is_square=unique)
    lengths = (columns, joined.shape[-1] - columns)
    options: dict[str, Any] = {"moduli": a.system.moduli, "located": True}
    if unique:
        words = map_matrices("solve", elimination.solve, joined, lengths, **options)
    else:
        words = map_matrices("solve", echelon.any_solutions, joined, lengths, columns=columns, **options)
    return numbers_like(a, words[..., 0] if is_vector else words)


def inv(x: Any) -> Any:
    """Inverses of square matrices."""
    words, options = check_square("inv", x), {"moduli": x.system.moduli, "located": True}
    return numbers_like(x, map_matrices("inv", elimination.inverses, words, words.shape[-2:], **options))


def charpoly(x: Any) -> Any:
    """Characteristic polynomials, coefficients ascending."""
    words, function = check_square("charpoly", x), elimination.characteristic_polynomials
    shape = (1, words.shape[-1] + 1)
    return numbers_like(
        x, map_matrices("charpoly", function, words, shape, moduli=x.system.moduli)[..., 0, :]
    )


def rref(x: Any) -> RREF:
    """Reduced row echelon forms in each field."""
    words = check_matrices("rref", x)
    rows, columns = words.shape[-2:]
    packed = map_matrices("rref", echelon.forms, words, (rows, columns + 1), moduli=x.system.moduli)
    pivots = packed[..., : min(rows, columns), columns].astype(np.int32).astype(np.int64)
    return RREF(numbers_like(x, packed[..., :columns]), pivots)


def nullspace(x: Any) -> Any:
    """Bases of the solutions of ``A @ v == 0`` in each field, as columns of matrices."""
    words, moduli = check_matrices("nullspace", x), x.system.moduli
    found = common_rank(rank(x), [f" modulo {p}" for p in moduli])
    shape = (words.shape[-1], words.shape[-1] - found)
    return numbers_like(
        x, map_matrices("nullspace", elimination.nullspaces, words, shape, moduli=moduli, rank=found)
    )
