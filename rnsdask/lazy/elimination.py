"""Linear algebra of matrices over prime fields, lazy on Dask (:mod:`rnsdask.fields.elimination`).

The last two axes are those of the matrices, and in a Dask array one chunk; all others, the batch, are in any
chunks.
"""

from typing import Any, NamedTuple

import dask.array as da
import numpy as np

from rnsdask.backend import Array
from rnsdask.cluster.workers import checked_workers
from rnsdask.core.moduli import ModuliSet
from rnsdask.fields import elimination
from rnsdask.lazy.chunks import as_lazy, rechunked
from rnsdask.lazy.elementwise import entry_of
from rnsdask.lazy.fields import of_fields
from rnsdask.lazy.map import map_chunks
from rnsdask.lazy.operands import broadcast_shape, find_lengths, made_alike, made_like, with_axes


class LU(NamedTuple):
    """Factors of matrices ``A = P @ L @ U``, as ``scipy.linalg.lu`` names them."""

    P: Any
    L: Any
    U: Any


def det(x: Any) -> Any:
    """Determinants of square matrices: a FieldArray, of one matrix an integer."""
    words = map_matrices("det", elimination.determinants, square("det", x), (1, 1), moduli=x.system.moduli)[
        ..., 0, 0
    ]
    return made_like((x,), words, x.system, "raise") if words.ndim > 1 else _number(words, x)


def _number(words: Any, x: Any) -> Any:
    """The number of words (n,): an integer, lazy if they are."""
    return made_like((x,), words[:, None], x.system, "raise")[0]


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
        As of :func:`.linalg.det`; the matrices need not be square.
    """
    _check_fields("lu", x)
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


def joined_words(a: Any, b: Any) -> tuple[Any, int, bool]:
    """Words [A b] (n, *batch, N, N + K) of systems, N, and whether b is one vector; batches broadcast."""
    a, b = made_alike(a, b)
    left = square("solve", a)
    find_lengths(b)
    is_vector = b.words.ndim == 2
    right = b.words[..., None] if is_vector else b.words
    rows = left.shape[-1]
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


def nullspace(x: Any) -> Any:
    """Bases of the solutions of ``A @ v == 0``, in each field, as the columns of matrices.

    Parameters
    ----------
    x : FieldArray, shape (..., R, C)
        One matrix, or a stack of them. All must have one rank, in each field; :func:`rank` tells them.

    Returns
    -------
    FieldArray, shape (..., C, C - rank)
        Column k is 1 at the k-th column of A that is a sum of multiples of those before it, and 0 at the
        others that are. Of a lazy array it is lazy, but the ranks, which tell the shape, are found at once.

    Raises
    ------
    TypeError, ValueError
        As of :func:`.linalg.det`; the matrices need not be square. ValueError if ranks differ, naming two.
    """
    _check_fields("nullspace", x)
    words = checked("nullspace", x)
    ranks = rank(x)
    if isinstance(ranks, da.Array):
        with checked_workers():
            ranks = ranks.compute()
    moduli: ModuliSet = x.system.moduli
    common = _common_rank(ranks, moduli) if ranks.size else 0
    shape = (words.shape[-1], words.shape[-1] - common)
    found = map_matrices("nullspace", elimination.nullspaces, words, shape, moduli=moduli, rank=common)
    return made_like((x,), found, x.system, "raise")


def _common_rank(ranks: Array, moduli: ModuliSet) -> int:
    """The only value of ranks (n, *batch); ValueError if there are several."""
    first = int(ranks.reshape(-1)[0])
    differing = (ranks != first).reshape(-1)
    if differing.any():
        place = int(differing.argmax())
        row, *index = (int(i) for i in np.unravel_index(place, ranks.shape))
        other = int(ranks.reshape(-1)[place])
        where = f" at index {tuple(index)}" if index else ""
        origin = f" at index {(0,) * len(index)}" if index else ""
        raise ValueError(
            f"nullspace takes matrices of one rank, got {first}{origin} modulo {moduli[0]} and "
            f"{other}{where} modulo {moduli[row]}"
        )
    return first


def charpoly(x: Any) -> Any:
    """Characteristic polynomials, coefficients ascending."""
    words = square("charpoly", x)
    shape = (1, words.shape[-1] + 1)
    found = map_matrices(
        "charpoly", elimination.characteristic_polynomials, words, shape, moduli=x.system.moduli
    )
    return made_like((x,), found[..., 0, :], x.system, "raise")


# ---- operands ---------------------------------------------------------------------------------------------


def _check_fields(name: str, x: Any) -> None:
    if not of_fields(x):
        kind = type(x).__name__
        raise TypeError(
            f"{name} takes a FieldArray, got {kind}; rd.FieldArray.from_rns(x, fields) makes one of integers"
        )


def checked(name: str, x: Any) -> Any:
    """Words of matrices (n, *batch, rows, columns), of known lengths, each matrix in one chunk."""
    if not hasattr(x.system, "moduli"):
        entry_of("residues_modulo" if x.system.overflows else "inverse", x, name=name)
        raise TypeError(f"{name} takes integers or elements of prime fields, got those of {x.system!r}")
    find_lengths(x)
    words = x.words
    if words.ndim < 3:
        raise ValueError(f"{name} takes matrices, which have two axes, got shape {tuple(words.shape[1:])}")
    if isinstance(words, da.Array) and max(words.numblocks[-2:]) > 1:
        first = words.ndim - 3
        raise ValueError(
            f"{name} takes matrices that are one chunk, got {words.numblocks[-2]} x {words.numblocks[-1]}; "
            f"x.rechunk({{{first}: -1, {first + 1}: -1}}) joins them"
        )
    return words


def square(name: str, x: Any) -> Any:
    """Prepare square matrices."""
    words = checked(name, x)
    if words.shape[-1] != words.shape[-2]:
        raise ValueError(f"{name} takes square matrices, got shape {tuple(words.shape[1:])}")
    return words


def map_matrices(name: str, function: Any, words: Any, lengths: tuple[int, int], **options: Any) -> Any:
    """Apply a function to the chunks of matrices; results are matrices of the given shape."""
    chunks = None
    if isinstance(words, da.Array):
        chunks = (*words.chunks[1:-2], *((length,) for length in lengths))
    options = {"rows": words.shape[0], "token": f"matrix-{name}", **options}
    return map_chunks(function, words, chunks=chunks, **options)
