"""Element-wise arithmetic of arrays and integers: + - * and the fused operations, lazy on Dask."""

from typing import Any

import dask.array as da

from rnsdask.core.moduli import ModuliSet
from rnsdask.core.overflow import overflow_mode
from rnsdask.core.place import flat_index
from rnsdask.lazy.operands import (
    Operand,
    Operands,
    elementwise,
    function_of,
    is_lazy_integer,
    is_residue_array,
    map_located,
    prepare,
    scalar,
)
from rnsdask.rns import arithmetic


def add(a: Operand, b: Operand, *, overflow: str | None = None) -> Any:
    """Sum ``a + b``, element by element.

    Parameters
    ----------
    a, b : RNSArray or int
        At least one array; arrays of the same moduli set and range, on the same processor. Shapes broadcast
        as NumPy's do. An integer must be in the range too. It may be lazy, as ``x.max()`` of a Dask array; it
        is checked when it is computed. Of IntervalRNSArrays, as :func:`rnsdask.lazy.interval_rns.add`.
    overflow : {"raise", "wrap", "flag"}, optional
        What happens to results out of range; without it, what :func:`.errstate` set, else ``"raise"``.

    Returns
    -------
    RNSArray
        Lazy if an operand is. With ``"flag"`` a pair: the results modulo M, and a Boolean array that is true
        where the exact result is out of range.

    Raises
    ------
    RNSOverflowError
        With ``"raise"``, if an exact result is out of range; on Dask when it is computed.
    TypeError, ValueError
        If operands do not fit one another, or `overflow` is no mode.
    """
    return _apply("add", (a, b), overflow)


def subtract(a: Operand, b: Operand, *, overflow: str | None = None) -> Any:
    """Difference ``a - b``, as :func:`add`; of unsigned arrays a result below 0 is an overflow."""
    return _apply("subtract", (a, b), overflow)


def multiply(a: Operand, b: Operand, *, overflow: str | None = None) -> Any:
    """Product ``a * b``, as :func:`add`."""
    return _apply("multiply", (a, b), overflow)


def negative(a: Operand, *, overflow: str | None = None) -> Any:
    """Opposite number ``-a``, as :func:`add`; of an unsigned array only 0 has one."""
    return _apply("subtract", (0, a), overflow)


def fma(a: Operand, b: Operand, c: Operand, *, overflow: str | None = None) -> Any:
    """``a * b + c`` in one pass, as :func:`add`; only the final result must be in range."""
    return _apply("fma", (a, b, c), overflow)


def mulsub(a: Operand, b: Operand, c: Operand, d: Operand, *, overflow: str | None = None) -> Any:
    """``a * b - c * d`` in one pass, as :func:`add`; only the final result must be in range."""
    return _apply("mulsub", (a, b, c, d), overflow)


def muladd(a: Operand, b: Operand, c: Operand, d: Operand, *, overflow: str | None = None) -> Any:
    """``a * b + c * d`` in one pass, as :func:`add`; only the final result must be in range."""
    return _apply("muladd", (a, b, c, d), overflow)


def _apply(name: str, values: tuple[Operand, ...], overflow: str | None) -> Any:
    if function := function_of(name, *values):
        return function(*values, overflow=overflow)
    mode = overflow_mode(overflow)
    operands = prepare(*values)
    moduli, signed = operands.moduli, operands.signed
    lowest, highest = moduli.value_range(signed)
    ranges = tuple(_range_of(value, moduli, signed) for value in values)
    low, high = arithmetic.result_range(name, *ranges)
    is_safe = lowest <= low and high <= highest
    if mode == "raise" or is_safe:
        # What is out of range raises, so a bound of what is left holds for every result.
        bound = max(abs(max(low, lowest)), abs(min(high, highest)))
        known = bound if bound < max(-lowest, highest) else None
    else:
        known = None
    residues, mask = _residues(name, operands, "wrap" if is_safe and mode == "raise" else mode, ranges)
    array_type: Any = type(next(value for value in values if is_residue_array(value)))
    result = array_type(residues, moduli, signed, known)
    return (result, mask) if mode == "flag" else result


def _range_of(value: Operand, moduli: ModuliSet, signed: bool) -> arithmetic.Range:
    if is_residue_array(value):
        return arithmetic.operand_range(moduli, signed, value.bound)
    if is_lazy_integer(value):
        return moduli.value_range(signed)
    return scalar(value), scalar(value)


def _residues(
    name: str, operands: Operands, mode: str, ranges: tuple[arithmetic.Range, ...]
) -> tuple[Any, Any]:
    """Residues of the result and, with ``"flag"``, the mask; NumPy, CuPy or Dask arrays."""
    moduli, signed = operands.moduli, operands.signed
    if mode == "wrap":
        return elementwise(_wrapped_block, operands, name, moduli, signed), None
    if any(isinstance(block, da.Array) for block in operands.blocks):
        packed = _map_checked(name, operands, mode, ranges)
    else:
        packed = arithmetic.apply(name, operands.blocks, moduli, signed, mode, ranges=ranges)
    return (packed[:-1], packed[-1] != 0) if mode == "flag" else (packed, None)


def _wrapped_block(*arguments: Any) -> Any:
    *blocks, name, moduli, signed = arguments
    return arithmetic.apply(name, blocks, moduli, signed, "wrap")


def _map_checked(name: str, operands: Operands, mode: str, ranges: tuple[arithmetic.Range, ...]) -> da.Array:
    """Apply an operation to each chunk, which learns where it lies so that an error can name the index.

    With ``"flag"``, the mask is one more row of the residues, so that one task computes both and parting them
    copies nothing.
    """
    return map_located(
        _checked_block,
        operands.blocks,
        len(operands.moduli) + (mode == "flag"),
        token=f"rns-{name}",
        operation=name,
        moduli=operands.moduli,
        signed=operands.signed,
        mode=mode,
        ranges=tuple((hex(low), hex(high)) for low, high in ranges),
    )


def _checked_block(
    *blocks: Any,
    operation: str,
    moduli: ModuliSet,
    signed: bool,
    mode: str,
    ranges: tuple[tuple[str, str], ...],
    block_info: Any = None,
) -> Any:
    (_, *location), (_, *shape) = block_info[None]["array-location"], block_info[None]["shape"]
    return arithmetic.apply(
        operation,
        blocks,
        moduli,
        signed,
        mode,
        lambda index: flat_index(index, location, shape),
        tuple((int(low, 16), int(high, 16)) for low, high in ranges),
    )
