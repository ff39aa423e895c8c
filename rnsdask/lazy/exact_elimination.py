"""Exact linear algebra of matrices of integers, lazy on Dask (:mod:`rnsdask.fields.exact_elimination`)."""

import math
from typing import Any

import dask.array as da
import numpy as np

from rnsdask.backend import Array, backend_name, to_backend
from rnsdask.core.errors import ResultOverflowError
from rnsdask.core.moduli import as_integer
from rnsdask.core.place import Place
from rnsdask.fields import exact_elimination
from rnsdask.lazy.elimination import checked as checked_words
from rnsdask.lazy.elimination import joined_words, map_matrices, square
from rnsdask.lazy.map import map_chunks
from rnsdask.lazy.pieces import kept_blocks
from rnsdask.lazy.tree import combine_tree
from rnsdask.rns.lift import from_parts, join_parts
from rnsdask.rns.system import RNS

# Steps of elimination that a task does at least, where one matrix is several tasks: about a second.
_STEPS = {"cpu": 2**31, "cuda": 2**37}


def det(x: Any) -> Any:
    """Determinants of square matrices: Python ints."""
    words = square("det", x)
    function, prototype = exact_elimination.determinants, getattr(words, "_meta", words)
    if not exact_elimination.lifts(prototype, words.shape[-1], 0, x.system.known_magnitude):
        found = _by_groups_of_primes("det", x, words)
        if found is not None:
            return _number(found[..., 0, 0])
    return _number(kept_blocks(map_matrices("det", function, words, (1, 1), **_integers(x)))[..., 0, 0])


def _by_groups_of_primes(name: str, x: Any, words: Any) -> Any:
    """Results of chunks that take long, a task for each group of primes; None if one a chunk will do.

    What groups say is joined in a tree.
    """
    if not isinstance(words, da.Array) or 0 in words.shape:
        return None
    matrices, processor = math.prod(map(max, words.chunks[1:-2])), backend_name(words._meta)
    magnitude, length = x.system.known_magnitude, words.shape[-1]
    groups = exact_elimination.prime_groups(name, length, magnitude, matrices, _STEPS[processor])
    if len(groups) < 2:
        return None
    lengths = (1, 1 + (1 if name == "det" else length + 1))
    options = {**_integers(x), "rows": 1, "like": np.empty(0), "name_of": name}
    parts = da.concatenate(
        [map_matrices(name, _part_block, words, lengths, group=group, **options) for group in groups]
    )
    joined = combine_tree(kept_blocks(parts, groups), _join_blocks, (0,), f"matrix-{name}-parts")
    ends = (*joined.chunks[1:-1], (lengths[1] - 1,))
    return map_chunks(_integers_block, joined, chunks=ends, dtype=object, like=np.empty(0))


def _part_block(words: Array, *, system: RNS, name_of: str, group: tuple[int, int]) -> Any:
    return exact_elimination.part_of_primes(words, system, name_of, group)


def _join_blocks(blocks: Any, axis: Any, keepdims: bool) -> Any:  # noqa: ARG001  (combine_tree passes both)
    return join_parts(blocks)


def _integers_block(block: Any) -> Any:
    return from_parts(block)


def rank(x: Any) -> Any:
    """Ranks over the rationals, int64."""
    function, words = exact_elimination.ranks, checked_words("rank", x)
    options = {**_integers(x), "dtype": np.int64}
    return _number(kept_blocks(map_matrices("rank", function, words, (1, 1), **options))[..., 0, 0])


def charpoly(x: Any) -> Any:
    """Characteristic polynomials, coefficients ascending: Python ints."""
    words = square("charpoly", x)
    found = _by_groups_of_primes("charpoly", x, words)
    if found is not None:
        return found[..., 0, :]
    function, lengths = exact_elimination.polynomials, (1, words.shape[-1] + 1)
    return kept_blocks(map_matrices("charpoly", function, words, lengths, **_integers(x)))[..., 0, :]


def solve(a: Any, b: Any) -> Any:
    """Solutions of ``a @ x == b`` over the rationals: numerators and denominators."""
    joined, rows, is_vector = joined_words(a, b)
    columns = joined.shape[-1] - rows
    bounds = [x.system.bound for x in (a, b)]
    system = a.system.with_bound(None if None in bounds else max(bounds))
    options = {**_integers(a), "system": system, "located": True}
    function, lengths = exact_elimination.packed_solutions, (rows + 1, max(columns, 1))
    packed = kept_blocks(map_matrices("solve", function, joined, lengths, **options))
    numerators = packed[..., :rows, :columns]
    return numerators[..., 0] if is_vector else numerators, _number(packed[..., rows, 0])


def inv(x: Any) -> Any:
    """Inverses over the rationals: numerators and denominators."""
    words = square("inv", x)
    length = words.shape[-1]
    options, lengths = {**_integers(x), "located": True}, (length + 1, max(length, 1))
    packed = kept_blocks(map_matrices("inv", exact_elimination.packed_inverses, words, lengths, **options))
    return packed[..., :length, :length], _number(packed[..., length, 0])


def _integers(x: Any) -> dict[str, Any]:
    """Options of maps to one Python int of each number of a system."""
    return {"system": x.system, "dtype": object, "rows": None}


def _number(found: Any) -> Any:
    """An array, or the only number of one without axes, which stays lazy."""
    return found if found.ndim or isinstance(found, da.Array) else found.item()


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
    meta = getattr(like, "_meta", like)
    options: dict[str, Any] = {"system": system, "processor": backend_name(meta)}
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
