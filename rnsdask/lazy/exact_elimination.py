"""Exact linear algebra of matrices of integers, lazy on Dask.

Chunks are computed by :mod:`rnsdask.fields.exact_elimination` and `exact_solutions`.
"""

import math
from typing import Any

import dask.array as da
import numpy as np
from dask.array.utils import meta_from_array

from rnsdask.backend import Array, backend_beside, backend_name, to_backend
from rnsdask.core.errors import ResultOverflowError
from rnsdask.core.moduli import as_integer
from rnsdask.core.place import Place
from rnsdask.fields import modular_elimination, p_adic, polynomial_determinants
from rnsdask.fields.exact_elimination import (
    determinants,
    part_of_primes,
    polynomials,
    prime_groups,
    results_of_parts,
)
from rnsdask.fields.exact_solutions import ranks, solutions
from rnsdask.lazy.elimination import checked as checked_words
from rnsdask.lazy.elimination import joined_words, map_matrices, square
from rnsdask.lazy.lazy_ints import exact, number
from rnsdask.lazy.map import map_chunks
from rnsdask.lazy.pieces import join_blocks, kept_blocks
from rnsdask.lazy.promotion import common_bound
from rnsdask.lazy.tree import combine_tree
from rnsdask.rns.system import RNS

# Steps of elimination that a task does at least, where one matrix is several tasks: about a second.
STEPS = {"cpu": 2**31, "cuda": 2**37}


def det(x: Any) -> Any:
    """Determinants of square matrices: Python ints."""
    words = square("det", x)
    found = _by_groups_of_primes("det", words, x.system)
    if found is None:
        found = kept_blocks(map_matrices("det", determinants, words, (1, 1), **_integers(x.system)))
    return number(exact(found)[..., 0, 0])


def polynomial_det(x: Any) -> Any:
    """Determinants of matrices of integer polynomials, coefficients ascending: Python ints."""
    words = square("det", x, of_polynomials=True)
    lengths = 1, 1, polynomial_determinants.length_of(*words.shape[-2:])
    options = {**_integers(x.system), "of_polynomials": True}
    found = map_matrices("det", polynomial_determinants.integers, words, lengths, **options)
    return exact(kept_blocks(found))[..., 0, 0, :]


def rank(x: Any) -> Any:
    """Ranks over the rationals, int64."""
    words = checked_words("rank", x)
    options = {**_integers(x.system), "dtype": np.int64}
    return number(kept_blocks(map_matrices("rank", ranks, words, (1, 1), **options))[..., 0, 0])


def charpoly(x: Any) -> Any:
    """Characteristic polynomials, coefficients ascending: Python ints."""
    words = square("charpoly", x)
    found = _by_groups_of_primes("charpoly", words, x.system)
    if found is None:
        lengths = 1, words.shape[-1] + 1
        found = kept_blocks(map_matrices("charpoly", polynomials, words, lengths, **_integers(x.system)))
    return exact(found)[..., 0, :]


def solve(a: Any, b: Any) -> Any:
    """Solutions of ``a @ x == b`` over the rationals: numerators and denominators."""
    joined, rows, is_vector = joined_words(a, b)
    columns, system = joined.shape[-1] - rows, common_bound(a, b)
    packed = _solutions("solve", joined, system, columns)
    numerators = packed[..., :rows, :columns]
    return numerators[..., 0] if is_vector else numerators, number(packed[..., rows, 0])


def solve_modulo(a: Any, b: Any, *, factors: tuple[int, ...]) -> Any:
    """Solutions of ``a @ x == b`` modulo a product of coprime factors: Python ints."""
    joined, rows, is_vector = joined_words(a, b)
    options = {**_integers(common_bound(a, b)), "located": True, "factors": factors}
    lengths = rows, joined.shape[-1] - rows
    found = exact(
        kept_blocks(map_matrices("solve", modular_elimination.solutions, joined, lengths, **options))
    )
    return found[..., 0] if is_vector else found


def inv_modulo(x: Any, *, factors: tuple[int, ...]) -> Any:
    """Inverses modulo a product of coprime factors: Python ints."""
    words = square("inv", x)
    options = {**_integers(x.system), "located": True, "factors": factors, "of_identity": True}
    return exact(
        kept_blocks(map_matrices("inv", modular_elimination.solutions, words, words.shape[-2:], **options))
    )


def inv(x: Any) -> Any:
    """Inverses over the rationals: numerators and denominators."""
    words = square("inv", x)
    length = words.shape[-1]
    packed = _solutions("inv", words, x.system, length)
    return packed[..., :length, :length], number(packed[..., length, 0])


def _solutions(name: str, words: Any, system: RNS, columns: int) -> Any:
    """Numerators and denominators (*batch, N + 1, max(columns, 1)) of systems of equations."""
    found = _by_groups_of_primes(name, words, system, columns)
    if found is not None:
        return exact(found)
    options = {**_integers(system), "located": True, "of_identity": name == "inv"}
    lengths = words.shape[-2] + 1, max(columns, 1)
    return exact(kept_blocks(map_matrices(name, solutions, words, lengths, **options)))


def _by_groups_of_primes(name: str, words: Any, system: RNS, columns: int = 0) -> Any:
    """Results of chunks that take long, a task for each group of primes; None if one a chunk is better.

    What groups say is joined in a tree.
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
    return map_chunks(
        results_of_parts, joined, words, chunks=chunks, dtype=object, matched=True, located=True, **options
    )


def groups_of_chunks(
    name: str, words: da.Array, columns: int, magnitude: int, matrices: int
) -> list[tuple[int, int]]:
    """Groups of primes for chunks of a number of matrices, a task each: :func:`.prime_groups`."""
    return prime_groups(
        name, words.shape[-2], columns, magnitude, matrices, STEPS[backend_name(meta_from_array(words))]
    )


def _integers(system: RNS) -> dict[str, Any]:
    """Options of maps to one Python int of each number of a system."""
    return {"system": system, "dtype": object, "rows": None}


def residues_of_results(values: Any, system: RNS, like: Any) -> Any:
    """Words (n, *shape) of integers that a function gives; of a single one, of shape (1,).

    They are on the processor of the words `like`.

    Raises
    ------
    RNSOverflowError
        If one is out of range, naming its index; of a lazy array when it is computed.
    """
    if isinstance(values, int):
        values = np.array([values], dtype=object)
    elif values.ndim == 0:
        # Not by an index, for the chunk of a lazy number may be a Python int.
        values = values.map_blocks(
            _in_array, new_axis=0, chunks=((1,),), dtype=object, meta=np.empty(0, object)
        )
    meta = meta_from_array(like)
    options: dict[str, Any] = {"system": system, "processor": backend_beside(meta)}
    return map_chunks(_encoded, values[None], rows=system.rows, located=True, like=meta, **options)


def _in_array(number: Any) -> Any:
    return np.array([int(number)], dtype=object)


def _encoded(block: Any, *, system: RNS, processor: str, place: Place) -> Array:
    lowest, highest = system.value_range
    for i, value in enumerate(block.reshape(-1).tolist()):
        if not lowest <= value <= highest:
            index, bits = place.flat_index(i), system.moduli.bits
            raise ResultOverflowError.of_value(as_integer(value, "result"), index, bits, system.signed)
    return to_backend(system.encode(block[0]), processor)
