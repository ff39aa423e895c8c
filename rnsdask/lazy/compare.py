"""Comparison of whole arrays, NumPy, CuPy or Dask, chunk by chunk, and choice (:mod:`.rns.compare`)."""

from typing import Any

import numpy as np

from rnsdask.backend import Array
from rnsdask.lazy.chunks import as_lazy
from rnsdask.lazy.map import map_chunks
from rnsdask.lazy.operands import (
    Numbers,
    Operand,
    filled_like,
    integer_of,
    is_lazy_integer,
    is_number_array,
    made_like,
    prepare,
    scalar,
)
from rnsdask.lazy.promotion import fitted
from rnsdask.rns import compare
from rnsdask.rns.blocks import column_of
from rnsdask.rns.compare import RELATIONS
from rnsdask.rns.system import RNS


def relate(a: Numbers, relation: str, b: Operand) -> Any:
    """Where ``a relation b`` holds, for an array and an array or any integer.

    Parameters
    ----------
    relation : str
        One of `RELATIONS`.

    Returns
    -------
    Boolean NumPy or CuPy array, or a lazy Dask array if an operand is one
    """
    if is_lazy_integer(b):
        options: dict[str, Any] = {"relation": relation, "system": a.system}
        return map_chunks(_relate_integer, as_lazy(a.words), b, dtype=np.bool_, **options)
    if not is_number_array(b) and (side := _side_of(scalar(b), a.system)):
        return filled_like(a.words, RELATIONS[relation](0, side), np.bool_)
    operands = prepare(a, b)
    system = operands.system.with_bound(operands.bound)
    return map_chunks(_relate_blocks, *operands.blocks, dtype=np.bool_, relation=relation, system=system)


def order(a: Numbers, b: Operand) -> Any:
    """Order of the numbers of an array and of an array or any integer: -1, 0 or +1 as a < b, a == b or a > b.

    Returns
    -------
    int8 NumPy or CuPy array, or a lazy Dask array if an operand is one
    """
    if is_lazy_integer(b):
        return map_chunks(_order_integer, as_lazy(a.words), b, dtype=np.int8, system=a.system)
    if not is_number_array(b) and (side := _side_of(scalar(b), a.system)):
        return filled_like(a.words, -side, np.int8)
    operands = prepare(a, b)
    system = operands.system.with_bound(operands.bound)
    return map_chunks(_order_blocks, *operands.blocks, dtype=np.int8, system=system)


def sign(x: Numbers) -> Any:
    """Sign of each number, as :func:`.functions.sign` says."""
    return map_chunks(_sign_block, x.words, dtype=np.int8, system=x.system)


def maximum(a: Operand, b: Operand) -> Any:
    """The greater of two numbers, element by element."""
    return _extremum(a, b, minimum=False)


def minimum(a: Operand, b: Operand) -> Any:
    """The lesser of two numbers, element by element."""
    return _extremum(a, b, minimum=True)


def where(condition: Any, a: Operand, b: Operand) -> Any:
    """The number of `a` where a condition holds, else that of `b`."""
    operands = prepare(a, b, masks=(condition,))
    words = map_chunks(compare.choose, *operands.blocks, rows=operands.system.rows)
    return made_like((a, b), words, operands.system.with_bound(operands.bound), "raise")


def _extremum(a: Operand, b: Operand, minimum: bool) -> Any:
    operands = prepare(a, b)
    system: RNS = operands.system.with_bound(operands.bound)
    words = map_chunks(_extremum_block, *operands.blocks, rows=system.rows, system=system, minimum=minimum)
    if minimum and not system.signed:  # no greater than either
        system = system.with_bound(min((b for b in operands.bounds if b is not None), default=None))
    return fitted(made_like((a, b), words, system, "raise"))


def _side_of(value: int, system: RNS) -> int:
    """-1 or +1 if an integer is below or above all that an array may hold, else 0."""
    lowest, highest = system.known_range
    return int(value > highest) - int(value < lowest)


def _order_blocks(a: Array, b: Array, *, system: RNS) -> Array:
    return compare.compare(a, b, system)[None]


def _order_integer(a: Array, integer: Any, *, system: RNS) -> Array:
    value = integer_of(integer)
    if side := _side_of(value, system):
        return np.full_like(a[:1], -side, dtype=np.int8)
    return _order_blocks(a, column_of(value, system.moduli, a.ndim - 1), system=system)


def _relate_integer(a: Array, integer: Any, *, relation: str, system: RNS) -> Array:
    return RELATIONS[relation](_order_integer(a, integer, system=system), 0)


def _relate_blocks(a: Array, b: Array, *, relation: str, system: RNS) -> Array:
    if relation in ("==", "!="):
        different = compare.differ(a, b, system)
        return (different if relation == "!=" else ~different)[None]
    return RELATIONS[relation](_order_blocks(a, b, system=system), 0)


def _sign_block(block: Array, *, system: RNS) -> Array:
    return compare.sign(block, system)[None]


def _extremum_block(a: Array, b: Array, *, system: RNS, minimum: bool) -> Array:
    order = _order_blocks(a, b, system=system)
    return compare.choose(order <= 0 if minimum else order >= 0, a, b)
