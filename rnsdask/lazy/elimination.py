"""Linear algebra of matrices over prime fields, lazy on Dask (:mod:`rnsdask.fields.elimination`).

The last two axes are those of the matrices, and in a Dask array one chunk; all others, the batch, are in any
chunks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import dask.array as da
import numpy as np

from rnsdask.core import rows
from rnsdask.fields import elimination, polynomial_determinants
from rnsdask.lazy.chunks import as_lazy, by_tasks, rechunked
from rnsdask.lazy.elementwise import entry_of
from rnsdask.lazy.fields import check_fields
from rnsdask.lazy.map import map_chunks
from rnsdask.lazy.operands import broadcast_shape, find_lengths, made_alike, made_like, with_axes

if TYPE_CHECKING:
    from rnsdask.arrays.field_array import FieldArray


class LU(NamedTuple):
    """Factors of matrices ``A = P @ L @ U``, as ``scipy.linalg.lu`` names them."""

    P: FieldArray
    L: FieldArray
    U: FieldArray


def det(x: Any) -> Any:
    """Determinants of square matrices: a FieldArray, of one matrix an integer."""
    words = map_matrices("det", elimination.determinants, square("det", x), (1, 1), moduli=x.system.moduli)[
        ..., 0, 0
    ]
    return number_or_array(x, words)


def number_or_array(x: Any, words: Any) -> Any:
    """An array of words (rows, *batch) like another, or without a batch an integer, lazy if they are."""
    if words.ndim > 1:
        return made_like((x,), words, x.system, "raise")
    return made_like((x,), words[:, None], x.system, "raise")[0]


def polynomial_det(x: Any) -> Any:
    """Determinants of matrices of polynomials, coefficients ascending along the last axis: a FieldArray."""
    words = square("det", x, of_polynomials=True)
    polynomial_determinants.check_points(tuple(words.shape[1:]), x.system.moduli)
    options = {"moduli": x.system.moduli, "of_polynomials": True}
    lengths = 1, 1, polynomial_determinants.length_of(*words.shape[-2:])
    found = map_matrices("det", polynomial_determinants.determinants, words, lengths, **options)
    return made_like((x,), found[..., 0, 0, :], x.system, "raise")


def rank(x: Any) -> Any:
    """Ranks (n, ...) modulo each prime, int64."""
    words = checked("rank", x)
    options = {"moduli": x.system.moduli, "dtype": np.int64}
    return map_matrices("rank", elimination.ranks, words, (1, 1), **options)[..., 0, 0]


def lu(x: Any) -> LU:
    """Factors ``A = P @ L @ U`` of matrices with exchanges of rows, in each field, as ``scipy.linalg.lu``.

    Parameters
    ----------
    x : FieldArray, shape (..., R, C)
        One matrix, or a stack of them, of any rank and shape. Let K be the lesser of R and C.

    Returns
    -------
    P : FieldArray, shape (..., R, R)
        Permutation matrices. They differ from field to field: each row has a single 1 in each field.
    L : FieldArray, shape (..., R, K)
        1 on the diagonal, 0 above it; below it too in columns from the rank on.
    U : FieldArray, shape (..., K, C)
        Row echelon forms: what is not 0 of a row begins further to the right than that of the row before,
        and rows from the rank on are 0.

    All are lazy if `x` is. The pivot is the first element of a column that is not 0, so that factors do not
    depend on processor and chunks.

    Raises
    ------
    TypeError, ValueError
        As in :func:`.linalg.det`; the matrices need not be square.
    """
    check_fields("lu", x)
    words = checked("lu", x)
    rows, columns = words.shape[-2:]
    least = min(rows, columns)
    if not isinstance(words, da.Array):
        found = elimination.factors(words, x.system.moduli)
        return LU(*(made_like((x,), part, x.system, "raise") for part in found))
    packed = map_matrices("lu", elimination.packed_lu, words, (rows, columns + 1), moduli=x.system.moduli)
    parts = (
        (elimination.permutation_of, (rows, rows)),
        (elimination.lower_of, (rows, least)),
        (elimination.upper_of, (least, columns)),
    )
    return LU(
        *(
            made_like((x,), map_matrices("lu", function, packed, lengths), x.system, "raise")
            for function, lengths in parts
        )
    )


def solve(a: Any, b: Any) -> Any:
    """Solutions of ``a @ x == b`` for square matrices."""
    joined, rows, is_vector = joined_words(a, b)
    lengths = (rows, joined.shape[-1] - rows)
    options = {"moduli": a.system.moduli, "located": True}
    words = map_matrices("solve", elimination.solve, joined, lengths, **options)
    return made_like((a,), words[..., 0] if is_vector else words, a.system, "raise")


def joined_words(a: Any, b: Any, *, is_square: bool = True) -> tuple[Any, int, bool]:
    """Words [A b] (n, *batch, R, C + K) of systems, R, and whether b is one vector; batches broadcast."""
    a, b = made_alike(a, b)
    left = square("solve", a) if is_square else checked("solve", a)
    find_lengths(b)
    is_vector = b.words.ndim == 2
    right = b.words[..., None] if is_vector else b.words
    rows = left.shape[-2]
    if right.shape[-2] != rows:
        shapes = " and ".join(str(tuple(x.words.shape[1:])) for x in (a, b))
        raise ValueError(
            f"shapes {shapes} do not fit: systems of {rows} equations have as many right-hand sides"
        )
    is_lazy = any(isinstance(x, da.Array) for x in (left, right))
    if not is_lazy and left.shape[1:-2] == right.shape[1:-2]:
        return np.concatenate([left, right], axis=-1), rows, is_vector
    batch = broadcast_shape([x.shape[1:-2] for x in (left, right)])
    library: Any = da if is_lazy else np
    both = map(as_lazy, (left, right)) if is_lazy else (left, right)
    with by_tasks(left, right):
        arrays = [
            library.broadcast_to(with_axes(x, len(batch) + 2), (len(x), *batch, *x.shape[-2:])) for x in both
        ]
        joined = library.concatenate(arrays, axis=-1)
    return rechunked(joined, {-2: -1, -1: -1}) if is_lazy else joined, rows, is_vector


def inv(x: Any) -> Any:
    """Inverses of square matrices."""
    words = square("inv", x)
    options = {"moduli": x.system.moduli, "located": True}
    return made_like(
        (x,),
        map_matrices("inv", elimination.inverses, words, words.shape[-2:], **options),
        x.system,
        "raise",
    )


def charpoly(x: Any) -> Any:
    """Characteristic polynomials, coefficients ascending."""
    words = square("charpoly", x)
    shape = (1, words.shape[-1] + 1)
    found = map_matrices(
        "charpoly", elimination.characteristic_polynomials, words, shape, moduli=x.system.moduli
    )
    return made_like((x,), found[..., 0, :], x.system, "raise")


# ---- operands ---------------------------------------------------------------------------------------------


def checked(name: str, x: Any, *, of_polynomials: bool = False) -> Any:
    """Words of matrices (n, *batch, rows, columns), of known lengths, each matrix in one chunk.

    Of polynomials a last axis has the coefficients.
    """
    if x.system.residue_moduli is None:
        entry_of(rows.residues_modulo if x.system.overflows else rows.inverse, x, name=name)
        way = "; x.lift() makes integers, whose determinant modulo p is this one" if name == "det" else ""
        raise TypeError(
            f"{name} takes integers or elements of prime fields, got those of {x.system!r}, which have no "
            f"elimination{way}"
        )
    find_lengths(x)
    words, axes = x.words, 3 if of_polynomials else 2
    shape = tuple(words.shape[1:])
    if len(shape) < axes:
        what = "matrices of polynomials, which have three" if of_polynomials else "matrices, which have two"
        raise ValueError(f"{name} takes {what} axes, got shape {shape}")
    if of_polynomials and shape[-1] == 0:
        raise ValueError(f"{name} takes polynomials that have coefficients, got shape {shape}")
    if isinstance(words, da.Array) and max(words.numblocks[-axes:]) > 1:
        first = len(shape) - axes
        lengths = ", ".join(f"{first + k}: -1" for k in range(axes))
        raise ValueError(
            f"{name} takes matrices that are one chunk, got {' x '.join(map(str, words.numblocks[-axes:]))}; "
            f"x.rechunk({{{lengths}}}) joins them"
        )
    return words


def square(name: str, x: Any, *, of_polynomials: bool = False) -> Any:
    """Prepare square matrices."""
    words = checked(name, x, of_polynomials=of_polynomials)
    rows, columns = words.shape[-3:-1] if of_polynomials else words.shape[-2:]
    if rows != columns:
        raise ValueError(f"{name} takes square matrices, got shape {tuple(words.shape[1:])}")
    return words


def map_matrices(
    name: str,
    function: Any,
    words: Any,
    lengths: tuple[int, ...],
    *,
    of_polynomials: bool = False,
    **options: Any,
) -> Any:
    """Apply a function to the chunks of matrices; results are matrices of the given shape."""
    chunks = None
    if isinstance(words, da.Array):
        axes = 3 if of_polynomials else 2
        chunks = (*words.chunks[1:-axes], *((length,) for length in lengths))
    options = {"rows": words.shape[0], "token": f"matrix-{name}", **options}
    return map_chunks(function, words, chunks=chunks, **options)
