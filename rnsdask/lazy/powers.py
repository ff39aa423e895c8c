"""Powers and inverses of all numbers of an array, lazy on Dask (:mod:`rnsdask.rns.powers`)."""

from __future__ import annotations

from typing import Any, overload

from rnsdask.core import rows
from rnsdask.core.generic import check_exponent
from rnsdask.core.moduli import as_integer
from rnsdask.lazy.elementwise import apply, entry_of, finish, has, map_entry, plan_operation
from rnsdask.lazy.growing import (
    extend_operands,
    extends,
    greatest_exponent,
    grows,
    range_of_power,
    range_of_powers,
)
from rnsdask.lazy.modular import mod_power
from rnsdask.lazy.operands import (
    N,
    Numbers,
    check_machine_integers,
    is_array,
    is_lazy_integer,
    is_number_array,
    make_like,
    with_machine_integers,
)
from rnsdask.lazy.promotion import fit
from rnsdask.lazy.widening import by_table
from rnsdask.rns import powers
from rnsdask.typing import Flag, Flagged, Integers, Overflow


@overload
def power(x: N, exponent: Integers, *, overflow: Overflow | None = None) -> N: ...
@overload
def power(x: N, exponent: Integers, *, overflow: Flag) -> Flagged[N]: ...
def power(x: N, exponent: Integers, *, overflow: Overflow | Flag | None = None) -> N | Flagged[N]:
    """Power ``x**exponent`` of each number; ``0**0`` is 1.

    Parameters
    ----------
    x : RNSArray, IntervalRNSArray, PositionalArray or FieldArray
        The bases.
    exponent : int, or array of integers
        Not negative, maybe one lazy integer, which is checked when it is computed. An array, or nested lists,
        of machine integers has one for each number; both broadcast. In a field it may be negative: then it
        applies to the inverses, as from :func:`inverse`.
    overflow : {"raise", "wrap", "flag", "extend"}, optional
        What happens to results out of range. The default is the mode set by :func:`.errstate`, else
        ``"extend"`` for arrays whose range grows and ``"raise"`` for others.

    Returns
    -------
    RNSArray, IntervalRNSArray or FieldArray
        Lazy if `x` or the array of exponents is. With ``"flag"`` a pair of the results modulo M and a Boolean
        array that is true where the exact result is out of range.

    Raises
    ------
    RNSOverflowError
        With ``"raise"``, if an exact result is out of range; on Dask when it is computed.
    TypeError, ValueError
        If an argument is not of these types, or an exponent is negative; for a lazy one when it is computed.
    """
    found: N | Flagged[N]
    check_machine_integers(exponent, "exponents", "rd.from_ints(a) **")
    entry_of(rows.power, x)
    x, mode_given = _extend(x, exponent, overflow)
    if not is_lazy_integer(exponent) and not is_array(exponent):
        found = apply(rows.power, x, overflow=mode_given, exponent=as_integer(exponent, "exponent"))
        return found
    row = rows.power_by_array if is_array(exponent) else rows.power
    planned, integer = plan_operation(row, (x,), mode_given), None
    blocks: tuple[Any, ...] = (x.words,)
    if is_array(exponent):
        blocks = with_machine_integers(x, exponent, "exponents")
    else:
        integer = ("exponent", exponent)
    found = finish(planned, (x,), map_entry(row, blocks, planned.system, mode=planned.mode, integer=integer))
    return found


def _extend(x: Numbers, exponent: Any, overflow: str | None) -> tuple[Any, str | None]:
    """Extend the bases to moduli for all powers, if results extend; return also the mode of overflow."""
    if not extends(overflow, x):
        return x, overflow
    if is_lazy_integer(exponent):
        raise ValueError(
            "powers by an exponent that is not computed yet have no bound to extend by; compute() it first, "
            'or give overflow="raise"'
        )
    if is_array(exponent):
        most = greatest_exponent(exponent)
        (x,), overflow = extend_operands(lambda base: range_of_powers(base, most), overflow, x)
    else:
        k = as_integer(exponent, "exponent")
        check_exponent(k)
        (x,), overflow = extend_operands(lambda base: range_of_power(base, k), overflow, x)
    return x, overflow


def power_modulo(x: N, exponent: N | Integers, modulus: N | Integers) -> N:
    """Power ``pow(number, exponent, modulus)`` of each number, as in Python.

    Parameters
    ----------
    x : RNSArray, IntervalRNSArray or PositionalArray
        The bases.
    exponent : int, or array of integers
        One integer of any size, or an array, or nested lists, of machine integers: one for each number; both
        broadcast. Negative ones apply to the inverses modulo `modulus`. Each distinct exponent of an array
        takes a pass over its numbers. With an RNSArray or a PositionalArray of exponents, or of moduli, this
        is :func:`.mod_power`.
    modulus : int, or array of integers
        Not 0; negative for signed numbers only. Its magnitude minus 1 must be in the range.

    Returns
    -------
    RNSArray or IntervalRNSArray
        0, or of the modulus's sign and less in magnitude; lazy if `x` is.

    Raises
    ------
    TypeError, ValueError
        If an argument is not of these types.
    ValueError
        If a number has no inverse. It names the flat index; for a Dask array when it is computed, and then
        the first one in its chunk. With an array of exponents, it names the first number with an exponent.
    """
    found: N
    by_arrays = is_number_array(exponent) or is_number_array(modulus) or is_array(modulus)
    if by_arrays or (has(rows.mod_power, x) and not has(rows.power_modulo, x)):
        found = mod_power(x, exponent, modulus)
        return found
    check_machine_integers(exponent, "exponents", "rd.from_ints(a) **")
    found = _power_modulo(x, exponent, as_integer(modulus, "modulus"))
    return found


@by_table(rows.power_modulo)
def _power_modulo(x: Numbers, exponent: Any, m: int) -> Any:
    if grows(x):
        (x,), _ = extend_operands(lambda _: (min(m, 0), max(m, 0)), None, x)
    system = x.system
    powers.check_modulus(m, system)
    if is_array(exponent):
        blocks = with_machine_integers(x, exponent, "exponents")
        words = map_entry(rows.power_modulo_by_array, blocks, system, modulus=m)
    else:
        k = as_integer(exponent, "exponent")
        words = map_entry(rows.power_modulo, (x.words,), system, modulus=m, exponent=k)
    return fit(make_like((x,), words, system.with_bound(abs(m) - 1), "raise"))


def inverse(x: N) -> N:
    """Inverse modulo M of each number x: the y in range with ``x y`` = 1 modulo M, of x's sign if two are.

    In a FieldArray elements are inverted; if one is 0 in a field, ZeroDivisionError names its index.

    A product with it is an exact quotient if x divides a: ``multiply(a, inverse(x), overflow="wrap")`` is a /
    x.

    Parameters
    ----------
    x : RNSArray, IntervalRNSArray or FieldArray
        Numbers coprime to M.

    Returns
    -------
    RNSArray, IntervalRNSArray or FieldArray
        Lazy if `x` is.

    Raises
    ------
    TypeError
        If `x` is not such an array.
    ValueError
        If a number has a common factor with a modulus; it names both. For a Dask array when it is computed,
        and then for the first number in its chunk.
    """
    found: N = apply(rows.inverse, x)
    return found
