"""Operations of arrays of signed integers with stored intervals, and of integers: lazy on Dask."""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import dask.array as da
import numpy as np

from rnsdask.core.moduli import ModuliSet
from rnsdask.core.overflow import overflow_mode
from rnsdask.core.place import flat_index
from rnsdask.interval_rns import arithmetic, compare, convert, divide, layout
from rnsdask.lazy.operands import (
    as_mask,
    broadcast_shape,
    check_same_processor,
    filled_like,
    integer_of,
    is_lazy_integer,
    lazy_column,
    map_located,
    map_with_integer,
    scalar,
    with_axes,
)
from rnsdask.rns.compare import RELATIONS, choose

# An IntervalRNSArray, or whatever has __index__ and is no bool, or a Dask array of one integer.
Operand: TypeAlias = Any


def add(x: Operand, y: Operand, *, algorithm: int | str | None = None, overflow: str | None = None) -> Any:
    """Sum ``x + y``, element by element.

    Parameters
    ----------
    x, y : IntervalRNSArray or int
        At least one array; arrays of the same moduli set, on the same processor. Shapes broadcast as NumPy's
        do. An integer must be in the range too.
    algorithm : {1, 2, "digits"}, optional
        Algorithm 1 of the paper, which branches on signs; Algorithm 2, by radix complement; or the residues
        of a number spread over threads. Without it, the fastest. The result is the same bit for bit.
    overflow : {"raise", "wrap", "flag"}, optional
        What happens to results out of range; without it, what :func:`.errstate` set, else ``"raise"``.

    Returns
    -------
    IntervalRNSArray
        Lazy if an operand is. Where the exact result is out of range, with ``"wrap"`` its sign and its
        magnitude modulo M. With ``"flag"`` a pair: the same, and a Boolean array that is true there.

    Raises
    ------
    RNSOverflowError
        With ``"raise"``, if the magnitude of an exact result is M or more; on Dask when it is computed.
    TypeError, ValueError
        If operands do not fit one another, or an option is unknown.
    """
    return _apply("add", x, y, algorithm, overflow)


def subtract(
    x: Operand, y: Operand, *, algorithm: int | str | None = None, overflow: str | None = None
) -> Any:
    """Difference ``x - y``, as :func:`add`."""
    return _apply("subtract", x, y, algorithm, overflow)


def multiply(x: Operand, y: Operand, *, overflow: str | None = None) -> Any:
    """Product ``x * y``, as :func:`add`."""
    return _apply("multiply", x, y, None, overflow)


def negative(x: Any, *, overflow: str | None = None) -> Any:
    """Opposite number ``-x``, which is always in range; with ``"flag"`` a pair as of :func:`add`."""
    return subtract(0, x, overflow=overflow) if overflow_mode(overflow) == "flag" else -x


def maximum(x: Operand, y: Operand) -> Any:
    """The greater of two numbers, element by element."""
    return _chosen(x, y, _maximum_block)


def minimum(x: Operand, y: Operand) -> Any:
    """The lesser of two numbers, element by element."""
    return _chosen(x, y, _minimum_block)


def where(condition: Any, x: Operand, y: Operand) -> Any:
    """The number of `x` where a condition holds, a Boolean array, else that of `y`."""
    return _chosen(x, y, _where_block, condition)


def sign(x: Any) -> Any:
    """Sign of each number: an int8 array of -1, 0 and +1."""
    return mapped(_sign_block, [x.columns], 1, dtype=np.int8, moduli=x.moduli)[0]


def _chosen(x: Operand, y: Operand, function: Callable[..., Any], *conditions: Any) -> Any:
    masks = [as_mask(condition) for condition in conditions]
    blocks, moduli, array_type = _prepare(x, y, masks=masks)
    return array_type(mapped(function, blocks, layout.rows_of(moduli), moduli=moduli), moduli)


def _apply(name: str, x: Operand, y: Operand, algorithm: int | str | None, overflow: str | None) -> Any:
    mode = overflow_mode(overflow)
    arithmetic.check_algorithm(algorithm)
    blocks, moduli, array_type = _prepare(x, y)
    rows = layout.rows_of(moduli)
    options = {"operation": name, "moduli": moduli, "mode": mode, "algorithm": algorithm}
    result = mapped(_apply_block, blocks, rows + (mode == "flag"), **options)
    array = array_type(result[:rows], moduli)
    return (array, result[rows] != 0) if mode == "flag" else array


def related(x: Operand, relation: str, y: Operand) -> Any:
    """Where ``x relation y`` holds, for an array and an array or any integer: a Boolean array."""
    if is_lazy_integer(y):
        options = {"relation": relation, "moduli": x.moduli}
        return map_with_integer(_relate_integer, x.columns, y, 1, dtype=np.bool_, **options)[0]
    if not _is_array(y):
        value = scalar(y)
        if abs(value) >= x.moduli.product:
            return filled_like(x.columns, RELATIONS[relation](0, value), np.bool_)
    blocks, moduli, _ = _prepare(x, y)
    return mapped(_relate_block, blocks, 1, dtype=np.bool_, relation=relation, moduli=moduli)[0]


def divided(x: Operand, y: Operand) -> tuple[Any, Any]:
    """Quotients and remainders of floor division, of an array by an integer or an array, or of an integer.

    Raises
    ------
    ZeroDivisionError
        If a divisor is 0; on Dask when the result is computed.
    """
    if not _is_array(y) and not is_lazy_integer(y) and scalar(y) == 0:
        raise ZeroDivisionError("division of an array by the integer 0")
    blocks, moduli, array_type = _prepare(x, y)
    rows = layout.rows_of(moduli)
    both = mapped(_divide_block, blocks, 2 * rows, moduli=moduli)
    return array_type(both[:rows], moduli), array_type(both[rows:], moduli)


def mapped(function: Callable[..., Any], blocks: Sequence[Any], rows: int, **options: Any) -> Any:
    """Apply a function of chunks at once, or lazily if a block is a Dask array."""
    if any(isinstance(block, da.Array) for block in blocks):
        return map_located(
            function, blocks, rows, token=f"interval-rns-{function.__name__.strip('_')}", **options
        )
    options.pop("dtype", None)
    return function(*blocks, **options)


def _is_array(operand: Operand) -> bool:
    return hasattr(operand, "columns") and hasattr(operand, "moduli")


def _prepare(*operands: Operand, masks: Sequence[Any] = ()) -> tuple[list[Any], ModuliSet, Any]:
    """Masks (1, *shape), columns of operands, the moduli set, and the arrays' type.

    All blocks have as many axes as the result.
    """
    arrays = [operand for operand in operands if _is_array(operand)]
    moduli = arrays[0].moduli
    for other in arrays[1:]:
        if other.moduli != moduli:
            raise ValueError(f"operands have different moduli sets: {moduli!r} and {other.moduli!r}")
    inputs = [*masks, *(array.columns for array in arrays)]
    check_same_processor(inputs)
    shape = broadcast_shape([tuple(array.shape[1:]) for array in inputs])
    blocks = [with_axes(mask, len(shape)) for mask in masks]
    for operand in operands:
        if _is_array(operand):
            blocks.append(with_axes(operand.columns, len(shape)))
        elif is_lazy_integer(operand):
            rows = layout.rows_of(moduli)
            blocks.append(lazy_column(operand, len(shape), rows, _column_of, moduli=moduli))
        else:
            blocks.append(_column_of(scalar(operand), moduli).reshape(-1, *(1,) * len(shape)))
    return blocks, moduli, type(arrays[0])


def _column_of(value: int, moduli: ModuliSet) -> Any:
    """Columns (n + 6, 1) of an integer; ValueError if it is out of range."""
    convert.check_in_range(value, moduli, "operand")
    return convert.columns_of_ints([value], moduli)


# ---- chunks -----------------------------------------------------------------------------------------------


def _locate(block_info: Any) -> Callable[[int], int]:
    if not block_info:
        return int
    (_, *location), (_, *shape) = block_info[None]["array-location"], block_info[None]["shape"]
    return lambda index: flat_index(index, location, shape)


def _apply_block(
    x: Any,
    y: Any,
    *,
    operation: str,
    moduli: ModuliSet,
    mode: str,
    algorithm: int | str | None,
    block_info: Any = None,
) -> Any:
    return arithmetic.apply(operation, x, y, moduli, mode, algorithm, _locate(block_info))


def _relate_block(x: Any, y: Any, *, relation: str, moduli: ModuliSet, block_info: Any = None) -> Any:  # noqa: ARG001
    return RELATIONS[relation](compare.compare(x, y, moduli), 0)[None]


def _relate_integer(x: Any, integer: Any, *, relation: str, moduli: ModuliSet) -> Any:
    value = integer_of(integer)
    if abs(value) >= moduli.product:
        return np.full_like(x[:1], RELATIONS[relation](0, value), dtype=np.bool_)
    column = _column_of(value, moduli).reshape(-1, *(1,) * (x.ndim - 1))
    return _relate_block(x, column, relation=relation, moduli=moduli)


def _maximum_block(x: Any, y: Any, *, moduli: ModuliSet) -> Any:
    return choose((compare.compare(x, y, moduli) >= 0)[None], x, y)


def _minimum_block(x: Any, y: Any, *, moduli: ModuliSet) -> Any:
    return choose((compare.compare(x, y, moduli) <= 0)[None], x, y)


def _where_block(mask: Any, x: Any, y: Any, *, moduli: ModuliSet) -> Any:  # noqa: ARG001
    return choose(mask, x, y)


def _sign_block(x: Any, *, moduli: ModuliSet) -> Any:
    nonzero = layout.nonzero(x, moduli).astype(np.int8)
    return np.where(layout.is_negative(x, moduli), -nonzero, nonzero)[None]


def _divide_block(x: Any, y: Any, *, moduli: ModuliSet, block_info: Any = None) -> Any:
    return divide.floor_divide(x, y, moduli, _locate(block_info))
