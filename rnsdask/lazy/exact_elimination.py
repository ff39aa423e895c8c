"""Exact linear algebra of matrices of integers, lazy on Dask.

Chunks are computed by :mod:`rnsdask.fields.exact_elimination`, `exact_solutions` and `echelon`. Results are
Python ints or, with `moduli`, their residues.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import dask.array as da
import numpy as np
from dask.array.utils import meta_from_array

from rnsdask.backend import Array, backend_beside, backend_name, to_backend
from rnsdask.core.errors import ResultOverflowError
from rnsdask.core.moduli import as_integer
from rnsdask.core.place import Place
from rnsdask.fields import echelon, modular_elimination, p_adic, permanents, polynomial_determinants
from rnsdask.fields.exact_elimination import (
    determinants,
    part_of_primes,
    polynomials,
    prime_groups,
    results_of_parts,
)
from rnsdask.fields.exact_solutions import ranks, solutions
from rnsdask.lazy.lazy_ints import as_exact, number
from rnsdask.lazy.map import map_chunks
from rnsdask.lazy.matrices import (
    check_matrices,
    check_square,
    common_rank,
    joined_words,
    map_matrices,
    map_to_integers,
)
from rnsdask.lazy.pieces import join_blocks, kept_blocks
from rnsdask.lazy.promotion import common_bound
from rnsdask.lazy.tree import combine_tree
from rnsdask.rns.system import RNS
from rnsdask.typing import PlainArray

# Least number of elimination steps of a task, where one matrix is several tasks: about a second.
STEPS = {"cpu": 2**31, "cuda": 2**37}


class RationalRREF(NamedTuple):
    """Reduced row echelon forms over the rationals, and the columns of their pivots."""

    numerators: PlainArray[np.object_]
    denominators: PlainArray[np.object_]
    pivots: PlainArray[np.int64]


def det(x: Any, *, variables: int = 0, moduli: RNS | None = None) -> Any:
    """Determinants of square matrices, or of matrices of polynomials, coefficients ascending."""
    words, system = check_square("det", x, of_polynomials=variables == 1), x.system
    if variables:
        lengths = 1, 1, polynomial_determinants.length_of(*words.shape[-2:])
        function = polynomial_determinants.integers
        found = map_to_integers("det", function, words, lengths, system, of_polynomials=True)[..., 0, 0, :]
    else:
        found = _by_groups_of_primes("det", words, system)
        if found is None:
            found = map_to_integers("det", determinants, words, (1, 1), system)
        found = number(found[..., 0, 0])
    return _reduce_under(moduli, found, words)


def permanent(x: Any, *, moduli: RNS | None = None) -> Any:
    """Permanents of square matrices."""
    words = check_square("permanent", x)
    found = number(map_to_integers("permanent", permanents.integers, words, (1, 1), x.system)[..., 0, 0])
    return _reduce_under(moduli, found, words)


def rank(x: Any) -> Any:
    """Ranks over the rationals, int64."""
    options: dict[str, Any] = {"system": x.system, "dtype": np.int64, "rows": None}
    return number(
        kept_blocks(map_matrices("rank", ranks, check_matrices("rank", x), (1, 1), **options))[..., 0, 0]
    )


def charpoly(x: Any, *, moduli: RNS | None = None) -> Any:
    """Characteristic polynomials, coefficients ascending."""
    words = check_square("charpoly", x)
    found = _by_groups_of_primes("charpoly", words, x.system)
    if found is None:
        found = map_to_integers("charpoly", polynomials, words, (1, words.shape[-1] + 1), x.system)
    return _reduce_under(moduli, found[..., 0, :], words)


def solve(
    a: Any, b: Any, *, unique: bool = True, modulo: tuple[int, ...] | None = None, moduli: RNS | None = None
) -> Any:
    """Solutions of ``a @ x == b``: numerators and denominators, or modulo a product of coprime factors."""
    joined, columns, is_vector = joined_words(a, b, is_square=unique)
    width, system = joined.shape[-1] - columns, common_bound(a, b)
    if modulo is not None:
        lengths, options = (columns, width), {"factors": modulo, "located": True}
        found = map_to_integers("solve", modular_elimination.solutions, joined, lengths, system, **options)
        return _reduce_under(moduli, found[..., 0] if is_vector else found, joined)
    if unique:
        packed = _solutions("solve", joined, system, width)
    else:
        lengths, options = (columns + 1, max(width, 1)), {"columns": columns, "located": True}
        packed = map_to_integers("solve", echelon.rational_solutions, joined, lengths, system, **options)
    numerators = packed[..., :columns, :width]
    found = numerators[..., 0] if is_vector else numerators, number(packed[..., columns, 0])
    return _reduce_under(moduli, found, joined)


def inv(x: Any, *, modulo: tuple[int, ...] | None = None, moduli: RNS | None = None) -> Any:
    """Inverses: numerators and denominators, or modulo a product of coprime factors."""
    words, system = check_square("inv", x), x.system
    if modulo is not None:
        options: dict[str, Any] = {"factors": modulo, "located": True, "of_identity": True}
        lengths = words.shape[-2:]
        found = map_to_integers("inv", modular_elimination.solutions, words, lengths, system, **options)
    else:
        length = words.shape[-1]
        packed = _solutions("inv", words, system, length)
        found = packed[..., :length, :length], number(packed[..., length, 0])
    return _reduce_under(moduli, found, words)


def rref(x: Any) -> RationalRREF:
    """Reduced row echelon forms over the rationals."""
    words = check_matrices("rref", x)
    rows, columns = words.shape[-2:]
    packed = map_to_integers("rref", echelon.rational_forms, words, (rows + 1, columns + 1), x.system)
    pivots = packed[..., : min(rows, columns), columns].astype(np.int64)
    return RationalRREF(packed[..., :rows, :columns], number(packed[..., rows, 0]), pivots)


def nullspace(x: Any, *, moduli: RNS | None = None) -> Any:
    """Bases of the rational solutions of ``A @ v == 0``, as primitive integer vectors."""
    words, found = check_matrices("nullspace", x), rank(x)
    own = common_rank((np.asarray(found) if isinstance(found, int) else found)[None], [""])
    lengths = words.shape[-1], words.shape[-1] - own
    function = echelon.rational_nullspaces
    return _reduce_under(
        moduli, map_to_integers("nullspace", function, words, lengths, x.system, rank=own), words
    )


def _solutions(name: str, words: Any, system: RNS, columns: int) -> Any:
    """Numerators and denominators (*batch, N + 1, max(columns, 1)) of solutions of equations."""
    found = _by_groups_of_primes(name, words, system, columns)
    if found is not None:
        return found
    options: dict[str, Any] = {"located": True, "of_identity": name == "inv"}
    lengths = words.shape[-2] + 1, max(columns, 1)
    return map_to_integers(name, solutions, words, lengths, system, **options)


def _by_groups_of_primes(name: str, words: Any, system: RNS, columns: int = 0) -> Any:
    """Results of slow chunks, with a task for each group of primes; None if one task per chunk is faster.

    A tree joins the groups' results.
    """
    if not isinstance(words, da.Array) or 0 in words.shape:
        return None
    rows, magnitude = words.shape[-2], system.known_magnitude
    if name in ("det", "solve") and p_adic.is_quicker(meta_from_array(words), rows, columns, magnitude):
        return None
    matrices = math.prod(map(max, words.chunks[1:-2]))
    groups = groups_of_chunks(name, words, columns, magnitude, matrices)
    if len(groups) < 2:
        return None
    lengths = {"det": (1, 1), "charpoly": (1, rows + 1)}.get(name, (rows + 1, max(columns, 1)))
    of_parts = lengths[0], lengths[1] + 1
    options: dict[str, Any] = {"system": system, "name_of": name}
    blocks = (
        map_matrices(name, part_of_primes, words, of_parts, group=group, rows=1, dtype=object, **options)
        for group in groups
    )
    parts = kept_blocks(da.concatenate(list(blocks)), groups)
    joined = combine_tree(parts, join_blocks, (0,), f"matrix-{name}-parts")
    chunks = *joined.chunks[1:-1], (lengths[1],)
    return as_exact(
        map_chunks(
            results_of_parts,
            joined,
            words,
            chunks=chunks,
            dtype=object,
            matched=True,
            located=True,
            **options,
        )
    )


def groups_of_chunks(
    name: str, words: da.Array, columns: int, magnitude: int, matrices: int
) -> list[tuple[int, int]]:
    """Groups of primes for chunks of a number of matrices, one task each: :func:`.prime_groups`."""
    return prime_groups(
        name, words.shape[-2], columns, magnitude, matrices, STEPS[backend_name(meta_from_array(words))]
    )


# ---- under moduli -----------------------------------------------------------------------------------------


def _reduce_under(system: RNS | None, results: Any, like: Any) -> Any:
    """Return results, or with a system their residues as arrays (each of a tuple), on the words' processor.

    A single integer becomes an array of shape (1,).

    Raises
    ------
    RNSOverflowError
        If a result is out of range; it names the index. For a lazy array when it is computed.
    """
    if system is None:
        return results
    if isinstance(results, tuple):
        return tuple(_reduce_under(system, values, like) for values in results)
    return system.array_type(_residues_of(results, system, like), system.with_bound(None))


def _residues_of(values: Any, system: RNS, like: Any) -> Any:
    if isinstance(values, int):
        values = np.array([values], dtype=object)
    elif values.ndim == 0:
        # Indexing would fail: the chunk of a lazy number may be a Python int.
        values = values.map_blocks(
            _in_array, new_axis=0, chunks=((1,),), dtype=object, meta=np.empty(0, object)
        )
    meta = meta_from_array(like)
    options: dict[str, Any] = {"system": system, "processor": backend_beside(meta)}
    return map_chunks(_encode, values[None], rows=system.rows, located=True, like=meta, **options)


def _in_array(number: Any) -> Any:
    return np.array([int(number)], dtype=object)


def _encode(block: Any, *, system: RNS, processor: str, place: Place) -> Array:
    lowest, highest = system.value_range
    for i, value in enumerate(block.reshape(-1).tolist()):
        if not lowest <= value <= highest:
            index, bits = place.flat_index(i), system.moduli.bits
            raise ResultOverflowError.of_value(as_integer(value, "result"), index, bits, system.signed)
    return to_backend(system.encode(block[0]), processor)
