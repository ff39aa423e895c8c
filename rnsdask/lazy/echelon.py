"""Reduced row echelon forms, null spaces and solutions of any equations, lazy on Dask.

Chunks are computed by :mod:`rnsdask.fields.echelon`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import dask.array as da
import numpy as np

from rnsdask.backend import Array
from rnsdask.cluster.workers import checked_workers
from rnsdask.fields import echelon, elimination
from rnsdask.lazy import exact_elimination
from rnsdask.lazy.elimination import checked, joined_words, map_matrices
from rnsdask.lazy.elimination import rank as ranks_modulo_primes
from rnsdask.lazy.lazy_ints import exact, number
from rnsdask.lazy.operands import made_like
from rnsdask.lazy.pieces import kept_blocks
from rnsdask.lazy.promotion import common_bound
from rnsdask.typing import PlainArray

if TYPE_CHECKING:
    from rnsdask.arrays.field_array import FieldArray


class RREF(NamedTuple):
    """Reduced row echelon forms over fields, and the columns of their pivots."""

    matrix: FieldArray
    pivots: PlainArray[np.int64]


class RationalRREF(NamedTuple):
    """Reduced row echelon forms over the rationals, and the columns of their pivots."""

    numerators: PlainArray[np.object_]
    denominators: PlainArray[np.object_]
    pivots: PlainArray[np.int64]


# ---- over fields ------------------------------------------------------------------------------------------


def rref(x: Any) -> RREF:
    """Reduced row echelon forms in each field."""
    words = checked("rref", x)
    rows, columns = words.shape[-2:]
    packed = map_matrices("rref", echelon.forms, words, (rows, columns + 1), moduli=x.system.moduli)
    pivots = packed[..., : min(rows, columns), columns].astype(np.int32).astype(np.int64)
    return RREF(made_like((x,), packed[..., :columns], x.system, "raise"), pivots)


def nullspace(x: Any) -> Any:
    """Bases of the solutions of ``A @ v == 0``, in each field, as the columns of matrices."""
    words, moduli = checked("nullspace", x), x.system.moduli
    rank = _common_rank(ranks_modulo_primes(x), [f" modulo {p}" for p in moduli])
    shape = (words.shape[-1], words.shape[-1] - rank)
    found = map_matrices("nullspace", elimination.nullspaces, words, shape, moduli=moduli, rank=rank)
    return made_like((x,), found, x.system, "raise")


def solve(a: Any, b: Any) -> Any:
    """Solutions of ``a @ x == b`` for matrices of any shape and rank, in each field."""
    joined, _, is_vector = joined_words(a, b, is_square=False)
    columns = a.words.shape[-1]
    options = {"moduli": a.system.moduli, "columns": columns, "located": True}
    lengths = columns, joined.shape[-1] - columns
    words = map_matrices("solve", echelon.any_solutions, joined, lengths, **options)
    return made_like((a,), words[..., 0] if is_vector else words, a.system, "raise")


def _common_rank(ranks: Any, fields: list[str]) -> int:
    """The only value of ranks (n, *batch), or 0 of none; ValueError if there are several, naming two."""
    if isinstance(ranks, da.Array):
        with checked_workers():
            ranks = ranks.compute()
    if not ranks.size:
        return 0
    flat = ranks.reshape(-1)
    differing: Array = flat != flat[0]
    if differing.any():
        place = int(differing.argmax())
        row, *index = (int(i) for i in np.unravel_index(place, ranks.shape))
        where = [f" at index {tuple(at)}" if index else "" for at in ([0] * len(index), index)]
        raise ValueError(
            f"nullspace takes matrices of one rank, got {int(flat[0])}{where[0]}{fields[0]} and "
            f"{int(flat[place])}{where[1]}{fields[row]}"
        )
    return int(flat[0])


# ---- over the rationals -----------------------------------------------------------------------------------


def rational_rref(x: Any) -> RationalRREF:
    """Reduced row echelon forms over the rationals."""
    words = checked("rref", x)
    rows, columns = words.shape[-2:]
    lengths = rows + 1, columns + 1
    packed = _mapped("rref", echelon.rational_forms, words, lengths, x.system)
    pivots = packed[..., : min(rows, columns), columns].astype(np.int64)
    return RationalRREF(packed[..., :rows, :columns], number(packed[..., rows, 0]), pivots)


def integer_nullspace(x: Any) -> Any:
    """Bases of the rational solutions of ``A @ v == 0``, of integers without a common factor."""
    words = checked("nullspace", x)
    ranks = exact_elimination.rank(x)
    ranks = np.asarray(ranks) if isinstance(ranks, int) else ranks
    rank = _common_rank(ranks[None], [""])
    lengths = words.shape[-1], words.shape[-1] - rank
    return _mapped("nullspace", echelon.rational_nullspaces, words, lengths, x.system, rank=rank)


def rational_solve(a: Any, b: Any) -> Any:
    """Solutions of ``a @ x == b`` over the rationals for matrices of any shape and rank."""
    joined, _, is_vector = joined_words(a, b, is_square=False)
    columns = a.words.shape[-1]
    width, system = joined.shape[-1] - columns, common_bound(a, b)
    lengths, options = (columns + 1, max(width, 1)), {"columns": columns, "located": True}
    packed = _mapped("solve", echelon.rational_solutions, joined, lengths, system, **options)
    numerators = packed[..., :columns, :width]
    return numerators[..., 0] if is_vector else numerators, number(packed[..., columns, 0])


def _mapped(
    name: str, function: Any, words: Any, lengths: tuple[int, int], system: Any, **options: Any
) -> Any:
    """Python ints that a function gives of chunks of matrices."""
    options = {"system": system, "dtype": object, "rows": None, **options}
    return exact(kept_blocks(map_matrices(name, function, words, lengths, **options)))
