"""Division of whole arrays, NumPy, CuPy or Dask, chunk by chunk (:mod:`rnsdask.rns.divide`)."""

from typing import Any

import dask.array as da
import numpy as np

from rnsdask.backend import Array
from rnsdask.core.moduli import ModuliSet, from_text, to_text
from rnsdask.core.place import locate_in
from rnsdask.lazy import operands
from rnsdask.rns import divide
from rnsdask.rns.divide import Part


def divided(
    dividend: operands.Operand, divisor: operands.Operand, parts: tuple[Part, ...]
) -> list[tuple[Any, int | None]]:
    """Divide an array by an integer or an array, or an integer by an array.

    Returns
    -------
    list of (residues, bound)
        For each of `parts`; lazy if an array is.

    Raises
    ------
    TypeError, ValueError
        If the operands do not fit one another, or the divisor of unsigned numbers is negative.
    ZeroDivisionError
        If the divisor is the integer 0. One among an array's, and a lazy one, is found when the result is
        computed; its index is the first in its chunk.
    """
    if operands.is_residue_array(divisor):
        both = operands.prepare(dividend, divisor)
        moduli, bounds = both.moduli, divide.bounds_by_array(both.bounds[0], both.bounds[1], both.signed)
        stacked = _by_array(both, parts)
    elif operands.is_lazy_integer(divisor):
        moduli, bounds = dividend.moduli, divide.bounds_by_array(dividend.bound, None, dividend.signed)
        arguments = (moduli, dividend.signed, parts, to_text(dividend.bound))
        rows = len(parts) * len(moduli)
        stacked = operands.map_with_integer(
            _block_by_lazy_integer, dividend.residues, divisor, rows, *arguments
        )
    else:
        moduli, integer = dividend.moduli, operands.scalar(divisor)
        divide.check_divisor(integer, dividend.signed)
        bounds = divide.bounds_by_integer(integer, moduli, dividend.signed, dividend.bound)
        stacked = _by_integer(dividend, integer, parts)
    n = len(moduli)
    return [(stacked[i * n : (i + 1) * n], bounds[part]) for i, part in enumerate(parts)]


def _by_integer(dividend: operands.ResidueArray, divisor: int, parts: tuple[Part, ...]) -> Any:
    residues, moduli = dividend.residues, dividend.moduli
    arguments = (hex(divisor), moduli, dividend.signed, parts, to_text(dividend.bound))
    if not isinstance(residues, da.Array):
        return _block_by_integer(residues, *arguments)
    return _map_blocks(_block_by_integer, [residues], arguments, len(parts) * len(moduli))


def _by_array(both: operands.Operands, parts: tuple[Part, ...]) -> Any:
    n = len(both.moduli)
    shape, arguments = (n, *both.shape), (both.moduli, both.signed, parts)
    if not any(isinstance(block, da.Array) for block in both.blocks):
        x, y = both.blocks
        like = y if isinstance(x, np.ndarray) else x  # an integer comes as a NumPy array on any processor
        x, y = (np.broadcast_to(np.asarray(block, like=like), shape) for block in (x, y))
        return _block_by_block(x, y, *arguments)
    axes = tuple(range(len(shape)))
    pairs: list[Any] = []
    for block in both.blocks:
        lazy = block if isinstance(block, da.Array) else da.from_array(block, chunks=-1, asarray=False)
        pairs += [da.broadcast_to(lazy, shape), axes]
    _, aligned = da.core.unify_chunks(*pairs)  # here, so that a block's place is known
    return _map_blocks(_block_by_block, aligned, arguments, len(parts) * n)


def _map_blocks(function: Any, arrays: list[da.Array], arguments: tuple[Any, ...], rows: int) -> da.Array:
    first = arrays[0]
    mapped: da.Array = da.map_blocks(
        function,
        *arrays,
        *arguments,
        chunks=((rows,), *first.chunks[1:]),
        dtype=np.uint32,
        meta=first._meta,
    )
    return mapped


def _block_by_integer(
    block: Array,
    divisor: str,
    moduli: ModuliSet,
    signed: bool,
    parts: tuple[Part, ...],
    bound: str | None,
    block_info: Any = None,
) -> Array:
    locate, integer = locate_in(block_info), int(divisor, 16)
    return divide.divide_by_integer(block, integer, moduli, signed, parts, from_text(bound), locate)


def _block_by_lazy_integer(
    block: Array,
    divisor: Any,
    moduli: ModuliSet,
    signed: bool,
    parts: tuple[Part, ...],
    bound: str | None,
    block_info: Any = None,
) -> Array:
    integer = operands.integer_of(divisor)
    divide.check_divisor(integer, signed)
    return _block_by_integer(block, hex(integer), moduli, signed, parts, bound, block_info)


def _block_by_block(
    x: Array, y: Array, moduli: ModuliSet, signed: bool, parts: tuple[Part, ...], block_info: Any = None
) -> Array:
    like = y if isinstance(x, np.ndarray) else x
    x, y = (np.asarray(block, like=like) for block in (x, y))
    return divide.floor_divide(x, y, moduli, signed, parts, locate_in(block_info))


def is_even_block(block: Array, moduli: ModuliSet, signed: bool, bound: str | None) -> Array:
    """Whether each number of a chunk is even, with an axis of length 1 in front."""
    return divide.is_even(block, moduli, signed, from_text(bound))[None]
