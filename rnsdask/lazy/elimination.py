"""Linear algebra of matrices over prime fields, lazy on Dask.

Chunks are computed by :mod:`rnsdask.fields.elimination` and :mod:`rnsdask.fields.echelon`; matrices that span
several chunks, and are not joined to one, by :mod:`rnsdask.lazy.block_elimination`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import dask.array as da
import numpy as np

from rnsdask.fields import echelon, elimination, permanents, polynomial_determinants
from rnsdask.fields.system import PrimeFields
from rnsdask.lazy import block_elimination
from rnsdask.lazy.block_elimination import has_block_elimination, is_in_blocks, joined_if_small
from rnsdask.lazy.chunks import rechunk
from rnsdask.lazy.matrices import (
    check_equations,
    check_matrices,
    check_square,
    common_rank,
    computed,
    join_equations,
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


def _matrices(name: str, x: Any, check: Any = check_matrices) -> Any:
    """Return checked words of matrices, in one chunk each unless they are large."""
    return _joined(check(name, x, any_chunks=True), x.system)


def _joined(words: Any, system: PrimeFields) -> Any:
    """Join matrices to one chunk each, if they are small or the fields have no elimination by blocks."""
    if is_in_blocks(words) and not has_block_elimination(system):
        return rechunk(words, {words.ndim - 2: -1, words.ndim - 1: -1})
    return joined_if_small(words)


def det(x: Any, *, variables: int = 0) -> Any:
    """Determinants of square matrices, an integer for one matrix, or of matrices of polynomials."""
    moduli = x.system.moduli
    if not variables:
        words = _matrices("det", x, check_square)
        if is_in_blocks(words):
            return numbers_like(x, block_elimination.determinants(words, moduli))
        found = map_matrices("det", elimination.determinants, words, (1, 1), moduli=moduli)
        return numbers_like(x, found[..., 0, 0])
    words = check_square("det", x, of_polynomials=True)
    polynomial_determinants.check_points(tuple(words.shape[1:]), moduli)
    lengths = 1, 1, polynomial_determinants.length_of(*words.shape[-2:])
    function = polynomial_determinants.determinants
    return numbers_like(
        x, map_matrices("det", function, words, lengths, of_polynomials=True, moduli=moduli)[..., 0, 0, :]
    )


def rank(x: Any) -> Any:
    """Ranks (n, ...) modulo each prime, int64."""
    words, moduli = _matrices("rank", x), x.system.moduli
    if is_in_blocks(words):
        return block_elimination.ranks(words, moduli)
    options = {"moduli": moduli, "dtype": np.int64}
    return map_matrices("rank", elimination.ranks, words, (1, 1), **options)[..., 0, 0]


def lu(x: Any) -> LU:
    """Factor matrices with row exchanges."""
    words, moduli = _matrices("lu", x), x.system.moduli
    rows, columns = words.shape[-2:]
    least = min(rows, columns)
    if is_in_blocks(words):
        return LU(*(numbers_like(x, part) for part in block_elimination.factors(words, moduli)))
    if not isinstance(words, da.Array):
        return LU(*(numbers_like(x, part) for part in elimination.factors(words, moduli)))
    packed = map_matrices("lu", elimination.packed_lu, words, (rows, columns + 1), moduli=moduli)
    parts = (
        (elimination.permutation_of, (rows, rows)),
        (elimination.lower_of, (rows, least)),
        (elimination.upper_of, (least, columns)),
    )
    return LU(
        *(
            numbers_like(x, map_matrices("lu", function, packed, lengths, dtype=packed.dtype))
            for function, lengths in parts
        )
    )


def solve(a: Any, b: Any, *, unique: bool = True) -> Any:
    """Solutions of ``a @ x == b``."""
    left, right, is_vector = check_equations(a, b, is_square=unique, any_chunks=True)
    left, moduli = _joined(left, a.system), a.system.moduli
    if is_in_blocks(left):
        words = block_elimination.solutions(left, right, moduli, unique=unique)
    else:
        joined, columns = join_equations(left, right), left.shape[-1]
        lengths = (columns, joined.shape[-1] - columns)
        options: dict[str, Any] = {"moduli": moduli, "located": True}
        if unique:
            words = map_matrices("solve", elimination.solve, joined, lengths, **options)
        else:
            words = map_matrices("solve", echelon.any_solutions, joined, lengths, columns=columns, **options)
    return numbers_like(a, words[..., 0] if is_vector else words)


def inv(x: Any) -> Any:
    """Inverses of square matrices."""
    words, moduli = _matrices("inv", x, check_square), x.system.moduli
    if is_in_blocks(words):
        return numbers_like(x, block_elimination.inverses(words, moduli))
    options = {"moduli": moduli, "located": True}
    return numbers_like(x, map_matrices("inv", elimination.inverses, words, words.shape[-2:], **options))


def permanent(x: Any) -> Any:
    """Permanents of square matrices, an integer for one matrix."""
    words, moduli = check_square("permanent", x), x.system.moduli
    found = map_matrices("permanent", permanents.permanents, words, (1, 1), moduli=moduli)
    return numbers_like(x, found[..., 0, 0])


def charpoly(x: Any) -> Any:
    """Characteristic polynomials, coefficients ascending."""
    words, function = check_square("charpoly", x), elimination.characteristic_polynomials
    shape = (1, words.shape[-1] + 1)
    return numbers_like(
        x, map_matrices("charpoly", function, words, shape, moduli=x.system.moduli)[..., 0, :]
    )


def rref(x: Any) -> RREF:
    """Reduced row echelon forms in each field."""
    words, moduli = _matrices("rref", x), x.system.moduli
    if is_in_blocks(words):
        found: Any = block_elimination.forms(words, moduli)
        return RREF(numbers_like(x, found[0]), found[1])
    rows, columns = words.shape[-2:]
    packed = map_matrices("rref", echelon.forms, words, (rows, columns + 1), moduli=moduli)
    signed = np.int32 if packed.dtype == np.uint32 else np.int64
    pivots = packed[..., : min(rows, columns), columns].astype(signed).astype(np.int64)
    return RREF(numbers_like(x, packed[..., :columns]), pivots)


def nullspace(x: Any) -> Any:
    """Bases of the solutions of ``A @ v == 0`` in each field, as columns of matrices."""
    words, moduli = _matrices("nullspace", x), x.system.moduli
    fields = [f" modulo {p}" for p in moduli]
    if is_in_blocks(words):
        # Pivots say which block columns a part of the basis needs.
        pivots = computed(block_elimination.pivots(words, moduli))
        found = common_rank((pivots >= 0).sum(axis=-1), fields)
        return numbers_like(x, block_elimination.nullspaces(words, moduli, pivots, found))
    found = common_rank(rank(x), fields)
    shape = (words.shape[-1], words.shape[-1] - found)
    return numbers_like(
        x, map_matrices("nullspace", elimination.nullspaces, words, shape, moduli=moduli, rank=found)
    )
