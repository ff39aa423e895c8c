"""Arithmetic modulo one integer, or modulo one for each number, lazy on Dask."""

from __future__ import annotations

from typing import Any

from rnsdask.core import rows
from rnsdask.core.errors import abbreviate
from rnsdask.core.moduli import as_integer
from rnsdask.core.rows import Row
from rnsdask.lazy.elementwise import entry_of, map_entry
from rnsdask.lazy.integer_operands import with_arrays
from rnsdask.lazy.operands import (
    N,
    Operand,
    blocks_with_integers,
    find_lengths,
    is_array,
    is_lazy_integer,
    is_number_array,
    make_like,
    prepare,
    scalar,
)
from rnsdask.lazy.promotion import fit
from rnsdask.typing import Integers


def mod_add(a: N | Integers, b: N | Integers, m: N | Integers) -> N:
    """Sum ``(a + b) % m``, element by element.

    Parameters
    ----------
    a, b : PositionalArray, RNSArray or int
        Numbers, which may be negative or exceed the modulus. Integers may be of any size if `m` is an
        integer, and else must be in the range of the arrays.
    m : PositionalArray, RNSArray or int
        One modulus for all numbers or one for each, positive and in the range. At least one argument is an
        array; arrays have the same bits and range, on the same processor, or are RNSArrays that meet as in
        :func:`.add`. Shapes broadcast.

    Returns
    -------
    PositionalArray or RNSArray
        From 0 to m - 1, with the operands' bits; lazy if an operand is. Residues are converted to limbs, and
        the results to residues.

    Raises
    ------
    ZeroDivisionError
        If a modulus is 0; it names the flat index. For a Dask array when it is computed; it names the first
        in a chunk.
    TypeError, ValueError
        If operands do not fit one another, or a modulus is negative.
    """
    found: N = _apply(rows.mod_add, (a, b), m)
    return found


def mod_subtract(a: N | Integers, b: N | Integers, m: N | Integers) -> N:
    """Difference ``(a - b) % m``, as :func:`mod_add`."""
    found: N = _apply(rows.mod_subtract, (a, b), m)
    return found


def mod_multiply(a: N | Integers, b: N | Integers, m: N | Integers) -> N:
    """Product ``(a * b) % m``, as :func:`mod_add`."""
    found: N = _apply(rows.mod_multiply, (a, b), m)
    return found


def mod_power(a: N | Integers, exponent: N | Integers, m: N | Integers) -> N:
    """Power ``pow(a, exponent, m)``, as :func:`mod_add`.

    Parameters
    ----------
    exponent : PositionalArray, RNSArray, int, or array of integers
        One integer of any size; or an array, or nested lists, of machine integers, one for each number, where
        each distinct value takes a pass over its numbers. Negative exponents apply to inverses. Or an array
        of numbers like the others, with an exponent for each number, not negative.

    Raises
    ------
    ZeroDivisionError
        If a number to be inverted has no inverse; it names the index.
    TypeError
        If an array has exponents that are not of an integer type.
    ValueError
        If an exponent in an array of numbers is negative; it names the index.
    """
    found: N
    if is_number_array(exponent):
        found = _apply(rows.mod_power, (a, exponent), m)
        return found
    if is_array(exponent):
        found = _apply(rows.mod_power_by_array, (a,), m, exponents=exponent)
        return found
    found = _apply(rows.mod_power_by_integer, (a,), m, exponent=as_integer(exponent, "exponent"))
    return found


def mod_inverse(a: N | Integers, m: N | Integers) -> N:
    """Inverse of each number modulo m, as :func:`mod_add`.

    Raises
    ------
    ZeroDivisionError
        If a number and its modulus have a common factor; it names the first index.
    """
    found: N = _apply(rows.mod_inverse, (a,), m)
    return found


def _apply(
    row: Row[..., Any], values: tuple[Operand, ...], m: Operand, *, exponents: Any = None, **options: Any
) -> Any:
    *others, m = with_arrays(*values, m)
    values = tuple(others)
    entry_of(row, *values, m, name="mod_power" if row.name.startswith("mod_power") else None)
    if not is_number_array(m) and not is_lazy_integer(m):
        modulus = scalar(m)
        if modulus == 0:
            raise ZeroDivisionError("the modulus is 0")
        if modulus < 0:
            raise ValueError(f"the modulus must be positive, got {abbreviate(modulus)}")
        is_one = [not is_number_array(value) and not is_lazy_integer(value) for value in values]
        values = tuple(
            scalar(value) % modulus if one else value for value, one in zip(values, is_one, strict=True)
        )
    arrays = [value for value in (*values, m) if is_number_array(value)]
    if exponents is not None:
        find_lengths(*arrays)
    operands = prepare(*values, m)
    system, blocks = operands.system, operands.blocks
    if exponents is not None:
        blocks = blocks_with_integers(blocks, arrays[0].words, exponents, "exponents")
    words = map_entry(row, blocks, system, **options)
    bounded = system.with_bound(_bound_of(m)) if system.extends else system
    return fit(make_like((*values, m), words, bounded, "raise"))


def _bound_of(m: Any) -> int | None:
    """Return the greatest remainder by moduli, or None if it is not known."""
    if is_lazy_integer(m):
        return None
    greatest = m.system.known_range[1] if is_number_array(m) else scalar(m)
    return max(greatest - 1, 0)
