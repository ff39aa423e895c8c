"""Matrices of fractions as operands of linear algebra: integers, by a common denominator of each row."""

import numbers
import operator
from collections.abc import Iterable, Sequence
from functools import reduce
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from rnsdask.arrays.creation import from_ints
from rnsdask.arrays.integer_array import IntegerArray
from rnsdask.arrays.number_array import NumberArray
from rnsdask.arrays.reconstruction import Fractions
from rnsdask.arrays.rns_array import RNSArray
from rnsdask.core.errors import brief, with_article
from rnsdask.core.ways import must
from rnsdask.typing import RationalMatrix


def is_rational(x: object) -> TypeGuard[RationalMatrix]:
    """Whether an operand is a matrix of fractions, rather than an array of numbers or integers alone."""
    if isinstance(x, Fractions):
        return True
    if isinstance(x, NumberArray) or not isinstance(x, np.ndarray | Sequence) or isinstance(x, str | bytes):
        return False
    return any(map(_is_fraction, x.flat if isinstance(x, np.ndarray) and x.dtype == object else _items(x)))


def clear_denominators(name: str, *operands: Any) -> tuple[tuple[RNSArray, ...], NDArray[np.object_]]:
    """Multiply each row of matrices side by side by its least common denominator.

    Ranks, echelon forms, null vectors and solutions stay the same. An operand of one axis is a column.

    Returns
    -------
    RNSArrays of the operands' shapes
        In memory.
    object array of int, shape (..., R)
        The multipliers of rows.

    Raises
    ------
    TypeError
        If an operand holds anything but integers and fractions; it names the first such item.
    ValueError
        If lists have no shape, or a denominator is 0 or has another shape than its matrix.
    """
    parts = [_over_denominators(name, x) for x in operands]
    columns = [tuple(part[:, None] if part.ndim == 1 else part for part in pair) for pair in parts]
    multipliers = [np.lcm.reduce(below, axis=-1, initial=1) for _, below in columns]
    try:
        multiplier = reduce(np.lcm, multipliers)
        scaled = [above * (multiplier[..., None] // below) for above, below in columns]
    except ValueError:  # rows that do not fit, of which the function itself speaks
        scaled, multiplier = [above for above, _ in columns], multipliers[0]
    whole = [
        items if above.ndim > 1 else items[..., 0] for items, (above, _) in zip(scaled, parts, strict=True)
    ]
    return tuple(from_ints(items) for items in whole), multiplier


def _is_fraction(item: object) -> bool:
    """Whether it is a number with a denominator, of Python, gmpy2, FLINT or SymPy."""
    return hasattr(item, "denominator") and not isinstance(item, numbers.Integral)


def _items(x: Iterable[Any]) -> Iterable[Any]:
    """Items of nested lists."""
    return (leaf for item in x for leaf in (_items(item) if isinstance(item, list | tuple) else (item,)))


def _over_denominators(name: str, x: Any) -> tuple[NDArray[np.object_], NDArray[np.object_]]:
    """Numerators of a matrix and, of the same shape, positive denominators."""
    if not isinstance(x, Fractions):
        return _parts_of(name, x)
    above, below = (_parts_of(name, part)[0] for part in (x.numerators, x.denominators))
    if below.ndim not in (0, above.ndim):
        raise ValueError(
            f"{name} takes one denominator, or denominators that broadcast to shape {above.shape}, got shape "
            f"{below.shape}; denominators[..., None] are those of rows"
        )
    below = np.broadcast_to(below, above.shape)
    if not below.all():
        index = tuple(map(int, np.argwhere(below == 0)[0]))
        raise ValueError(must("denominators", f"not be 0, got 0 at index {index}"))
    return np.where(below < 0, -above, above), np.abs(below)


def _parts_of(name: str, x: Any) -> tuple[NDArray[np.object_], NDArray[np.object_]]:
    """Numerators and denominators of integers and fractions; lazy ones are computed."""
    if isinstance(x, NumberArray) and not isinstance(x, IntegerArray):
        raise TypeError(
            f"{name} of fractions takes arrays of integers beside them, got {with_article(type(x))}; in "
            "fields fractions are rd.from_ints(numerators, fields) / rd.from_ints(denominators, fields)"
        )
    in_memory = x.compute() if hasattr(x, "compute") else x
    items = x.to_ints() if isinstance(x, NumberArray) else np.array(in_memory, dtype=object)
    above, below = np.empty_like(items), np.empty_like(items)
    for index, item in np.ndenumerate(items):
        try:
            above[index], below[index] = int(item.numerator), int(item.denominator)
        except AttributeError:
            if not hasattr(item, "__index__"):
                raise TypeError(
                    f"{name} takes integers and fractions, got {brief(item)} at index {index}"
                ) from None
            above[index], below[index] = operator.index(item), 1
    return above, below
