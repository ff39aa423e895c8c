"""Resultants and discriminants of polynomials of integers, exact, lazy on Dask.

A batch is mapped chunk by chunk (:mod:`rnsdask.fields.exact_polynomials`). Two lazy polynomials in two
variables that are no batch are a task for each group of primes (:mod:`rnsdask.fields.bivariate_resultant`),
and one that joins them.
"""

from typing import Any

import dask.array as da
import numpy as np
from dask.delayed import delayed

from rnsdask.backend import Array
from rnsdask.core.place import Place
from rnsdask.fields import bivariate_resultant as bivariate
from rnsdask.fields import exact_polynomials
from rnsdask.fields.geometric_points import count_beyond
from rnsdask.lazy.map import map_chunks
from rnsdask.lazy.operands import as_lazy
from rnsdask.lazy.pieces import kept_blocks, kept_calls
from rnsdask.lazy.polynomials import map_pairs, one_chunk, side_by_side
from rnsdask.rns.system import RNS

# Primes of a task.
_GROUP = 32


def resultant(f: Any, g: Any) -> Any:
    """Resultants of polynomials in one variable: Python ints."""
    found = map_pairs(_resultants, f, g, 1, None, system=_system(f, g), dtype=object)
    return _number(kept_blocks(found)[..., 0])


def discriminant(f: Any) -> Any:
    """Discriminants of polynomials in one variable: Python ints."""
    words = one_chunk(f)
    chunks = (*words.chunks[1:-1], (1,)) if isinstance(words, da.Array) else None
    options = {"chunks": chunks, "system": f.system, "dtype": object}
    return _number(map_chunks(exact_polynomials.discriminants, words, **options)[..., 0])


def bivariate_resultant(f: Any, g: Any) -> Any:
    """Resultants of polynomials in two variables with respect to y: coefficients in x, Python ints."""
    system = _system(f, g)
    (m, a), (n, c) = (tuple(length - 1 for length in x.words.shape[-2:]) for x in (f, g))
    length = n * a + m * c + 1
    if f.words.ndim == g.words.ndim == 3 and any(isinstance(x.words, da.Array) for x in (f, g)):
        return _in_groups(f, g, system, length)
    x, y, batch = side_by_side(f, g, 2)
    chunks = None if batch is None else (*batch, (1,), (1,), (1,), (length,))
    options = {"chunks": chunks, "dtype": object, "system": system, "length": length}
    return kept_blocks(map_chunks(_bivariate_resultants, x, y, **options))[..., 0, 0, 0, :]


def _in_groups(f: Any, g: Any, system: RNS, length: int) -> da.Array:
    """One resultant, its primes in groups. What numbers turn out to be may leave the last groups empty."""
    x, y = (as_lazy(v.words)[:, None].rechunk(-1).to_delayed().item() for v in (f, g))
    task = delayed(bivariate.task_of, pure=True)(x, y, system)
    first, second = (v.words.shape[1:] for v in (f, g))
    most = count_beyond(2 * bivariate.known_bound(first, second, system.known_magnitude) + 1)
    image, lifted = (delayed(function, pure=True) for function in (bivariate.image, bivariate.lifted))
    images = kept_calls([image(task, start, start + _GROUP) for start in range(0, most, _GROUP)], _GROUP)
    found: da.Array = da.from_delayed(
        lifted(task, images, length), (1, length), meta=np.empty((0, 0), dtype=object)
    )
    one: da.Array = found[0]
    return one


def _system(f: Any, g: Any) -> RNS:
    """The system of two arrays of the same moduli, with a bound for both."""
    bounds = [x.system.bound for x in (f, g)]
    system: RNS = f.system
    return system.with_bound(None if None in bounds else max(bounds))


def _number(found: Any) -> Any:
    """An array, or the only number of one without axes, which stays lazy."""
    return found if found.ndim or isinstance(found, da.Array) else found.item()


def _resultants(f: Array, g: Array, *, system: RNS, place: Place) -> Any:  # noqa: ARG001
    return exact_polynomials.resultants(f, g, system)


def _bivariate_resultants(x: Array, y: Array, *, system: RNS, length: int) -> Any:
    found: Any = bivariate.resultants(x[..., 0, 0], y[..., 0, 0, :, :], system, length)
    return found[..., None, None, None, :]
