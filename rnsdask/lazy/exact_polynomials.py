"""Resultants and discriminants of polynomials of integers, exact, lazy on Dask.

A batch is mapped chunk by chunk (:mod:`rnsdask.fields.exact_polynomials`). A slow chunk of resultants in one
variable, or a single pair of lazy polynomials in two variables, becomes several tasks: one for each group of
primes, and tasks that join them.
"""

import math
from typing import Any

import dask.array as da
import numpy as np
from dask.array.utils import meta_from_array
from dask.delayed import delayed

from rnsdask.backend import Array, backend_name
from rnsdask.fields import bivariate_resultant as bivariate
from rnsdask.fields import exact_polynomials
from rnsdask.fields.geometric_points import count_beyond
from rnsdask.lazy.chunks import as_lazy, rechunk
from rnsdask.lazy.lazy_ints import as_exact, number
from rnsdask.lazy.map import map_chunks
from rnsdask.lazy.pieces import join_blocks, kept_blocks, kept_calls
from rnsdask.lazy.polynomials import map_each, map_pairs, pair_words
from rnsdask.lazy.promotion import common_bound
from rnsdask.lazy.tree import combine_tree
from rnsdask.rns.lift import from_parts
from rnsdask.rns.system import RNS

# Primes in a task, in two variables.
_GROUP = {"cpu": 32, "cuda": 256}

# Least number of Euclidean steps of a task, where one chunk is several tasks: about a second.
STEPS = {"cpu": 2**32, "cuda": 2**37}


def resultant(f: Any, g: Any, *, variables: int = 1) -> Any:
    """Resultants of polynomials: Python ints, or in two variables, with respect to y, coefficients in x."""
    system = common_bound(f, g)
    if variables == 2:
        return _bivariate_resultant(f, g, system)
    groups = _prime_groups(f, g, system)
    if len(groups) < 2:
        found = map_pairs(exact_polynomials.resultants, f, g, 1, None, False, system=system, dtype=object)
        return number(as_exact(kept_blocks(found))[..., 0])
    options = {"system": system, "dtype": object, "like": np.empty(0)}
    parts = da.concatenate(
        [map_pairs(exact_polynomials.part_of_primes, f, g, 2, 1, False, group=k, **options) for k in groups]
    )
    joined = combine_tree(kept_blocks(parts, groups), join_blocks, (0,), "resultant-parts")
    ends = (*joined.chunks[1:-1], (1,))
    found = map_chunks(from_parts, joined, chunks=ends, dtype=object, like=np.empty(0))
    return number(as_exact(found)[..., 0])


def _prime_groups(f: Any, g: Any, system: RNS) -> list[tuple[int, int]]:
    """Groups of primes for slow chunks, one task each; empty if one task per chunk is enough."""
    x, _, batch = pair_words(f, g)
    if batch is None or 0 in (*f.words.shape, *g.words.shape):
        return []
    lengths, pairs = (f.words.shape[-1], g.words.shape[-1]), math.prod(map(max, batch))
    meta = meta_from_array(x)
    if exact_polynomials.are_small(meta, lengths, pairs):
        return []
    steps = STEPS[backend_name(meta)]
    return exact_polynomials.prime_groups(lengths, system.known_magnitude, pairs, steps)


def discriminant(f: Any) -> Any:
    """Discriminants of polynomials in one variable: Python ints."""
    options: dict[str, Any] = {"system": f.system, "dtype": object}
    return number(as_exact(map_each(exact_polynomials.discriminants, f, 1, None, **options))[..., 0])


def _bivariate_resultant(f: Any, g: Any, system: RNS) -> Any:
    (m, a), (n, c) = (tuple(length - 1 for length in x.words.shape[-2:]) for x in (f, g))
    length = n * a + m * c + 1
    if f.words.ndim == g.words.ndim == 3 and any(isinstance(x.words, da.Array) for x in (f, g)):
        return _in_groups(f, g, system, length)
    x, y, batch = pair_words(f, g, 2)
    chunks = None if batch is None else (*batch, (1,), (1,), (1,), (length,))
    options = {"chunks": chunks, "dtype": object, "system": system, "length": length}
    return as_exact(kept_blocks(map_chunks(_bivariate_resultants, x, y, **options)))[..., 0, 0, 0, :]


def _in_groups(f: Any, g: Any, system: RNS, length: int) -> Any:
    """Compute one resultant with its primes in groups. The actual numbers may leave the last groups empty."""
    x, y = (rechunk(as_lazy(v.words)[:, None], -1).to_delayed().item() for v in (f, g))
    task = delayed(bivariate.task_of, pure=True)(x, y, system)
    first, second = (v.words.shape[1:] for v in (f, g))
    most = count_beyond(2 * bivariate.known_bound(first, second, system.known_magnitude) + 1)
    image, lifted = (delayed(function, pure=True) for function in (bivariate.image, bivariate.lifted))
    group = _GROUP[backend_name(meta_from_array(f.words))]
    images = kept_calls([image(task, start, start + group) for start in range(0, most, group)], group)
    found: da.Array = da.from_delayed(
        lifted(task, images, length), (1, length), meta=np.empty((0, 0), dtype=object)
    )
    return as_exact(found)[0]


def _bivariate_resultants(x: Array, y: Array, *, system: RNS, length: int) -> Any:
    found: Any = bivariate.resultants(x[..., 0, 0], y[..., 0, 0, :, :], system, length)
    return found[..., None, None, None, :]
