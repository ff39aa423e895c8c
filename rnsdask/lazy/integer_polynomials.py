"""Polynomials of integers, exact, lazy on Dask (:mod:`rnsdask.fields.integer_polynomials`).

Results are Python ints in object arrays; rationals are a pair of numerators and denominators.
"""

from collections.abc import Callable
from typing import Any

import dask.array as da

from rnsdask.fields import integer_polynomials
from rnsdask.lazy.fields import of_fields
from rnsdask.lazy.integer_operands import with_arrays
from rnsdask.lazy.lazy_ints import exact, number
from rnsdask.lazy.map import map_chunks
from rnsdask.lazy.pieces import kept_blocks
from rnsdask.lazy.polynomials import checked_operands, map_pairs, one_chunk, point_count
from rnsdask.lazy.promotion import common_bound
from rnsdask.lazy.widening import of_residues

Function = Callable[..., Any]


def by_kind(name: str, of_elements: Function, of_integers: Function, *arrays: Any) -> Any:
    """Apply the function for polynomials over fields, or the one for integers, to checked operands.

    Raises
    ------
    TypeError, ValueError
        If the operands are no polynomials of one kind, or do not fit one another.
    """
    arrays = checked_operands(name, *with_arrays(*arrays))
    if of_fields(arrays[0]):
        return of_elements(*arrays)
    return of_residues(name, of_integers, *arrays)


def divided(f: Any, g: Any) -> tuple[Any, Any]:
    """Quotients and remainders by polynomials with the leading coefficient 1 or -1."""
    first, second = f.words.shape[-1], max(g.words.shape[-1] - 1, 1)
    packed = of_pairs(integer_polynomials.divided, f, g, first + second)
    return packed[..., :first], packed[..., first:]


def common_divisor(f: Any, g: Any) -> Any:
    """Greatest common divisors over the integers."""
    return of_pairs(
        integer_polynomials.common_divisors, f, g, max(f.words.shape[-1], g.words.shape[-1]), False
    )


def evaluate(f: Any, points: Any) -> Any:
    """Values of polynomials at integers."""
    return of_pairs(integer_polynomials.values_at, f, points, points.words.shape[-1], False)


def interpolate(points: Any, values: Any) -> tuple[Any, Any]:
    """Polynomials of the least degree with values at points: numerators and denominators."""
    length = point_count("interpolate", points, values)
    return rationals(of_pairs(integer_polynomials.interpolated, points, values, length + 1))


def of_pairs(function: Function, f: Any, g: Any, length: int, located: bool = True, **options: Any) -> Any:
    """Python ints (*batch, length) that a function gives of two arrays' chunks, as :func:`map_pairs`."""
    system = common_bound(f, g)
    found = map_pairs(function, f, g, length, None, located, system=system, dtype=object, **options)
    return exact(kept_blocks(found))


def of_each(function: Function, f: Any, length: int, **options: Any) -> Any:
    """Python ints (*batch, length) that a function gives of the chunks of an array."""
    words = one_chunk(f)
    chunks = (*words.chunks[1:-1], (length,)) if isinstance(words, da.Array) else None
    options = {"system": f.system, "dtype": object, "located": True, **options}
    return exact(kept_blocks(map_chunks(function, words, chunks=chunks, **options)))


def rationals(packed: Any) -> tuple[Any, Any]:
    """Numerators (*batch, length) and denominators (*batch), which are last in packed ones."""
    return packed[..., :-1], number(packed[..., -1])
