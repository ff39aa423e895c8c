"""Sign, maximum, minimum and choice of numbers, element by element."""

from typing import Any

import numpy as np

from rnsdask.arrays.rns_array import RNSArray
from rnsdask.backend import Array
from rnsdask.core.moduli import ModuliSet, from_text, to_text
from rnsdask.lazy.operands import Operand, elementwise, function_of, prepare
from rnsdask.rns import compare


def sign(x: RNSArray) -> Any:
    """Sign of each number: -1, 0 or +1.

    Parameters
    ----------
    x : RNSArray or IntervalRNSArray
        An array; an integer's sign needs no residues.

    Returns
    -------
    array of int8, shape of `x`
        NumPy or CuPy; lazy on Dask.

    Raises
    ------
    TypeError
        If `x` is no RNSArray.
    """
    if function := function_of("sign", x):
        return function(x)
    operands = prepare(x)
    arguments = (operands.moduli, operands.signed, to_text(operands.bound))
    return elementwise(_sign_block, operands, *arguments, dtype=np.int8, drop_residues=True)


def maximum(a: Operand, b: Operand) -> Any:
    """The greater of two numbers, element by element.

    Parameters
    ----------
    a, b : RNSArray, IntervalRNSArray or int
        At least one an array, both of one kind; shapes broadcast, an integer is in the array's range.

    Returns
    -------
    RNSArray or IntervalRNSArray
        Lazy if an operand is.

    Raises
    ------
    TypeError, ValueError
        If the operands do not fit one another: moduli sets, ranges, shapes, processors.
    """
    return _extremum(a, b, minimum=False)


def minimum(a: Operand, b: Operand) -> Any:
    """The lesser of two numbers, element by element, as :func:`maximum`."""
    return _extremum(a, b, minimum=True)


def where(condition: Any, a: Operand, b: Operand) -> Any:
    """The number of `a` where a condition holds, else that of `b`.

    Parameters
    ----------
    condition : Boolean NumPy, CuPy or Dask array
        For instance a comparison of RNSArrays.
    a, b : RNSArray, IntervalRNSArray or int
        At least one an array, both of one kind; all shapes broadcast.

    Returns
    -------
    RNSArray or IntervalRNSArray
        Lazy if an operand or the condition is.

    Raises
    ------
    TypeError, ValueError
        If the condition is not Boolean, or the operands do not fit one another.
    """
    if function := function_of("where", a, b):
        return function(condition, a, b)
    operands = prepare(a, b, masks=(condition,))
    residues = elementwise(compare.choose, operands)
    return RNSArray(residues, operands.moduli, operands.signed, operands.bound)


def _extremum(a: Operand, b: Operand, minimum: bool) -> Any:
    if function := function_of("minimum" if minimum else "maximum", a, b):
        return function(a, b)
    operands = prepare(a, b)
    arguments = (minimum, operands.moduli, operands.signed, to_text(operands.bound))
    residues = elementwise(_extremum_block, operands, *arguments)
    bound = operands.bound
    if minimum and not operands.signed:  # no greater than either
        bound = min((b for b in operands.bounds if b is not None), default=None)
    return RNSArray(residues, operands.moduli, operands.signed, bound)


def _sign_block(block: Array, moduli: ModuliSet, signed: bool, bound: str | None) -> Array:
    return compare.sign(block, moduli, signed, from_text(bound))[None]


def _extremum_block(
    a: Array, b: Array, minimum: bool, moduli: ModuliSet, signed: bool, bound: str | None
) -> Array:
    order = compare.compare(a, b, moduli, signed, from_text(bound))[None]
    return compare.choose(order <= 0 if minimum else order >= 0, a, b)
