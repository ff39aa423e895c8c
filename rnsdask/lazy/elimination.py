"""Linear algebra of matrices over prime fields, lazy on Dask.

Chunks are computed by :mod:`rnsdask.fields.elimination` and :mod:`rnsdask.fields.echelon`; matrices that span
several chunks, and are not joined to one, by :mod:`rnsdask.lazy.block_elimination`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import dask.array as da
import numpy as np

from rnsdask.core.place import ALONE
from rnsdask.fields import echelon, elimination, in_place, permanents, polynomial_determinants
from rnsdask.lazy import block_elimination
from rnsdask.lazy.block_elimination import is_in_blocks, joined_if_small
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
from rnsdask.lazy.operands import broadcast_shape, with_axes
from rnsdask.lazy.read import map_read
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


def _matrices(name: str, x: Any, check: Any = check_matrices, *, overwrite: bool = False) -> Any:
    """Return checked words of matrices, in one chunk each unless they are large."""
    words = check(name, x, any_chunks=True)
    return _overwritten(name, words) if overwrite else joined_if_small(words)


def _overwritten(name: str, words: Any) -> Any:
    """Return words that a function may write to: TypeError for lazy ones, ValueError where it may not."""
    if isinstance(words, da.Array):
        raise TypeError(
            f"{name} takes overwrite=True for arrays in memory, got one on Dask, whose chunks other tasks "
            "may need; x.compute() brings it to memory"
        )
    fault = "" if words.flags.c_contiguous else "a view whose words are not contiguous"
    if not fault and isinstance(words, np.ndarray):
        words = words.view()
        try:
            words.flags.writeable = True  # arrays have views of their words that are not
        except ValueError:
            fault = "one of read-only memory"
    if fault:
        raise ValueError(
            f"{name} with overwrite=True takes an array to write to, got {fault}; x.copy() is one"
        )
    return words


def _of_each(name: str, function: Any, words: Any, *, overwrite: bool, **options: Any) -> Any:
    """Apply a function that returns a number for each matrix, and overwrites what is read for it alone."""
    options = {"rows": len(words), "token": f"matrix-{name}", **options}
    if isinstance(words, da.Array):
        found = map_read(function, words, (*words.chunks[1:-2], (1,), (1,)), **options)
        if found is not None:
            return found[..., 0, 0]
    return map_matrices(name, function, words, (1, 1), overwrite=overwrite, **options)[..., 0, 0]


def det(x: Any, *, variables: int = 0, overwrite: bool = False) -> Any:
    """Determinants of square matrices, an integer for one matrix, or of matrices of polynomials."""
    moduli = x.system.moduli
    if not variables:
        words = _matrices("det", x, check_square, overwrite=overwrite)
        if is_in_blocks(words):
            return numbers_like(x, block_elimination.determinants(words, moduli))
        found = _of_each("det", elimination.determinants, words, overwrite=overwrite, moduli=moduli)
        return numbers_like(x, found)
    if overwrite:
        raise TypeError("det takes overwrite=True for matrices of numbers only, without variables=1")
    words = check_square("det", x, of_polynomials=True)
    polynomial_determinants.check_points(tuple(words.shape[1:]), moduli)
    lengths = 1, 1, polynomial_determinants.length_of(*words.shape[-2:])
    function = polynomial_determinants.determinants
    return numbers_like(
        x, map_matrices("det", function, words, lengths, of_polynomials=True, moduli=moduli)[..., 0, 0, :]
    )


def rank(x: Any, *, overwrite: bool = False) -> Any:
    """Ranks (n, ...) modulo each prime, int64."""
    words, moduli = _matrices("rank", x, overwrite=overwrite), x.system.moduli
    if is_in_blocks(words):
        return block_elimination.ranks(words, moduli)
    how = {"moduli": moduli, "dtype": np.int64}
    return _of_each("rank", elimination.ranks, words, overwrite=overwrite, **how)


def lu(x: Any, *, overwrite: bool = False) -> LU:
    """Factor matrices with row exchanges."""
    words, moduli = _matrices("lu", x, overwrite=overwrite), x.system.moduli
    rows, columns = words.shape[-2:]
    least = min(rows, columns)
    if is_in_blocks(words):
        return LU(*(numbers_like(x, part) for part in block_elimination.factors(words, moduli)))
    if not isinstance(words, da.Array):
        parts = elimination.factors(words, moduli, overwrite=overwrite)
        return LU(*(numbers_like(x, part) for part in parts))
    packed = map_matrices("lu", elimination.packed_lu, words, (rows, columns + 1), moduli=moduli)
    functions = (
        (elimination.permutation_of, (rows, rows)),
        (elimination.lower_of, (rows, least)),
        (elimination.upper_of, (least, columns)),
    )
    return LU(
        *(
            numbers_like(x, map_matrices("lu", function, packed, lengths, dtype=packed.dtype))
            for function, lengths in functions
        )
    )


def solve(a: Any, b: Any, *, unique: bool = True, overwrite: bool = False) -> Any:
    """Solutions of ``a @ x == b``."""
    left, right, is_vector = check_equations(a, b, is_square=unique, any_chunks=True)
    moduli = a.system.moduli
    left = _overwritten("solve", left) if overwrite else joined_if_small(left)
    if overwrite:
        words = in_place.solve(left, _own_right(left, right, unique=unique), moduli, ALONE)
    elif is_in_blocks(left):
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


def _own_right(left: Any, right: Any, *, unique: bool) -> Any:
    """Return right-hand sides where matrices are overwritten; TypeError or ValueError if they cannot be."""
    if not unique:
        raise TypeError("solve takes overwrite=True for regular matrices, without unique=False")
    if isinstance(right, da.Array):
        raise TypeError(
            "solve takes overwrite=True for b in memory, got one on Dask; b.compute() is in memory"
        )
    batch = left.shape[1:-2]
    if broadcast_shape([batch, right.shape[1:-2]]) != batch:
        raise ValueError(
            f"solve takes overwrite=True where each b has its own matrix, got the batches {tuple(batch)} of "
            f"a and {tuple(right.shape[1:-2])} of b; without it they broadcast"
        )
    if np.may_share_memory(left, right):
        right = right.copy()
    return np.broadcast_to(with_axes(right, left.ndim - 1), (len(left), *batch, *right.shape[-2:]))


def inv(x: Any, *, overwrite: bool = False) -> Any:
    """Inverses of square matrices."""
    words, moduli = _matrices("inv", x, check_square, overwrite=overwrite), x.system.moduli
    if is_in_blocks(words):
        return numbers_like(x, block_elimination.inverses(words, moduli))
    options: dict[str, Any] = {"moduli": moduli, "located": True}
    function: Any = elimination.inverses
    if words.size and (overwrite or words.shape[-1] >= in_place.GREAT_ROWS):
        function, options["overwrite"] = in_place.inverses, overwrite
    return numbers_like(x, map_matrices("inv", function, words, words.shape[-2:], **options))


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


def rref(x: Any, *, overwrite: bool = False) -> RREF:
    """Reduced row echelon forms in each field."""
    words, moduli = _matrices("rref", x, overwrite=overwrite), x.system.moduli
    if not isinstance(words, da.Array):
        form, places = echelon.forms(words, moduli, overwrite=overwrite)
        found: Any = form, np.asarray(places, like=words)
    elif is_in_blocks(words):
        found = block_elimination.forms(words, moduli)
    else:
        rows, columns = words.shape[-2:]
        packed = map_matrices("rref", echelon.packed_forms, words, (rows, columns + 1), moduli=moduli)
        signed = np.int32 if packed.dtype == np.uint32 else np.int64
        pivots = packed[..., : min(rows, columns), columns].astype(signed).astype(np.int64)
        found = packed[..., :columns], pivots
    return RREF(numbers_like(x, found[0]), found[1])


def nullspace(x: Any) -> Any:
    """Bases of the solutions of ``A @ v == 0`` in each field, as columns of matrices."""
    words, moduli = _matrices("nullspace", x), x.system.moduli
    fields = [f" modulo {p}" for p in moduli]
    if is_in_blocks(words):
        # Pivots say which block columns a part of the basis needs.
        pivots = computed(block_elimination.pivots(words, moduli))
        found = common_rank((pivots >= 0).sum(axis=-1), fields)
        return numbers_like(x, block_elimination.nullspaces(words, moduli, pivots, found))
    if not isinstance(words, da.Array):
        form, places = echelon.forms(words, moduli)
        found = common_rank((places >= 0).sum(axis=-1), fields)
        return numbers_like(x, echelon.null_vectors(form, places, moduli, found))
    found = common_rank(rank(x), fields)
    shape = (words.shape[-1], words.shape[-1] - found)
    return numbers_like(
        x, map_matrices("nullspace", echelon.nullspaces, words, shape, moduli=moduli, rank=found)
    )
