"""Comparison of whole arrays, NumPy, CuPy or Dask, chunk by chunk (:mod:`rnsdask.rns.compare`)."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from rnsdask.backend import Array
from rnsdask.core.moduli import ModuliSet, from_text, to_text
from rnsdask.lazy.operands import (
    Operand,
    ResidueArray,
    elementwise,
    filled_like,
    integer_of,
    integer_residues,
    is_lazy_integer,
    is_residue_array,
    map_with_integer,
    prepare,
    scalar,
)
from rnsdask.rns.compare import RELATIONS, compare, differ


def relate(a: ResidueArray, relation: str, b: Operand) -> Any:
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
        return _with_lazy(_relate_integer, a, b, np.bool_, relation)
    if not is_residue_array(b) and (side := _side(a, scalar(b))):
        return filled_like(a.residues, RELATIONS[relation](0, side), np.bool_)
    operands = prepare(a, b)
    arguments = (relation, operands.moduli, operands.signed, to_text(operands.bound))
    return elementwise(_relate_blocks, operands, *arguments, dtype=np.bool_, drop_residues=True)


def order(a: ResidueArray, b: Operand) -> Any:
    """Order of the numbers of an array and of an array or any integer: -1, 0 or +1 as a < b, a == b or a > b.

    Returns
    -------
    int8 NumPy or CuPy array, or a lazy Dask array if an operand is one
    """
    if is_lazy_integer(b):
        return _with_lazy(_order_integer, a, b, np.int8)
    if not is_residue_array(b) and (side := _side(a, scalar(b))):
        return filled_like(a.residues, -side, np.int8)
    operands = prepare(a, b)
    arguments = (operands.moduli, operands.signed, to_text(operands.bound))
    return elementwise(_order_blocks, operands, *arguments, dtype=np.int8, drop_residues=True)


def _order_blocks(a: Array, b: Array, moduli: ModuliSet, signed: bool, bound: str | None) -> Array:
    return compare(a, b, moduli, signed, from_text(bound))[None]


def _side(a: ResidueArray, value: int) -> int:
    """-1 or +1 if an integer is below or above all that the array may hold, else 0."""
    return _side_of(value, a.moduli, a.signed, a.bound)


def _side_of(value: int, moduli: ModuliSet, signed: bool, bound: int | None) -> int:
    lowest, highest = moduli.value_range(signed)
    if bound is not None:
        lowest, highest = max(lowest, -bound), min(highest, bound)
    return int(value > highest) - int(value < lowest)


def _with_lazy(
    function: Callable[..., Array], a: ResidueArray, integer: Any, dtype: DTypeLike, *arguments: Any
) -> Any:
    """Compare an array with a lazy integer of any size."""
    described = (a.moduli, a.signed, to_text(a.bound))
    return map_with_integer(function, a.residues, integer, 1, *arguments, *described, dtype=dtype)[0]


def _order_integer(a: Array, integer: Any, moduli: ModuliSet, signed: bool, bound: str | None) -> Array:
    value, known = integer_of(integer), from_text(bound)
    if side := _side_of(value, moduli, signed, known):
        return np.full_like(a[:1], -side, dtype=np.int8)
    column = integer_residues(value, moduli, signed).reshape(-1, *(1,) * (a.ndim - 1))
    return compare(a, column, moduli, signed, known)[None]


def _relate_integer(
    a: Array, integer: Any, relation: str, moduli: ModuliSet, signed: bool, bound: str | None
) -> Array:
    return RELATIONS[relation](_order_integer(a, integer, moduli, signed, bound), 0)


def _relate_blocks(
    a: Array, b: Array, relation: str, moduli: ModuliSet, signed: bool, bound: str | None
) -> Array:
    if relation in ("==", "!="):
        different = differ(a, b, moduli, signed, from_text(bound))
        return (different if relation == "!=" else ~different)[None]
    return RELATIONS[relation](compare(a, b, moduli, signed, from_text(bound)), 0)[None]
