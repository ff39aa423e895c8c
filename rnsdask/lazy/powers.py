"""Powers and inverses of all numbers of an array, lazy on Dask (:mod:`rnsdask.rns.powers`)."""

from typing import Any, SupportsIndex

import dask.array as da

from rnsdask.backend import Array
from rnsdask.core.errors import abbreviate, with_article
from rnsdask.core.moduli import ModuliSet, as_integer
from rnsdask.core.overflow import overflow_mode
from rnsdask.core.place import Place
from rnsdask.fields.elements import elements_of
from rnsdask.fields.finite_fields import FiniteFields
from rnsdask.interval_rns import powers as interval_powers
from rnsdask.interval_rns.system import IntervalRNS
from rnsdask.lazy import fields, interval_rns, positional
from rnsdask.lazy.chunks import as_lazy
from rnsdask.lazy.growing import extends, greatest_exponent, grown, grows, of_power, of_powers
from rnsdask.lazy.map import map_chunks
from rnsdask.lazy.modular import mod_power
from rnsdask.lazy.operands import (
    Numbers,
    check_rns_array,
    integer_of,
    is_array,
    is_lazy_integer,
    is_number_array,
    made_like,
    with_machine_integers,
)
from rnsdask.lazy.promotion import fitted
from rnsdask.lazy.widening import also_of, also_of_intervals, through_rns
from rnsdask.positional.system import Positional
from rnsdask.rns import modular_power, powers
from rnsdask.rns.system import RNS


def _power_of_intervals(x: Numbers, exponent: Any, *, overflow: str | None = None) -> Any:
    if is_array(exponent):
        return _power_by_array(x, exponent, overflow_mode(overflow, x.system))
    return interval_rns.power(x, exponent, overflow=overflow)


def _power_of_intervals_modulo(x: Numbers, exponent: Any, modulus: SupportsIndex) -> Any:
    if is_number_array(exponent):
        raise TypeError(f"exponents must be machine integers, got {with_article(type(exponent))}")
    highest, m = x.system.value_range[1], as_integer(modulus, "modulus")
    if abs(m) - 1 > highest:
        raise ValueError(
            f"powers modulo {abbreviate(m)} do not fit the moduli set, whose range ends at "
            f"{abbreviate(highest)}; x.extend(moduli) takes more moduli"
        )
    return _wide_power_modulo(x, exponent, m)


def _power_of_fields(x: Numbers, exponent: Any, *, overflow: str | None = None) -> Any:
    fields.check_no_overflow(overflow)
    return _power_by_array(x, exponent, "wrap") if is_array(exponent) else fields.power(x, exponent)


@also_of(Positional, positional.power)
@also_of(FiniteFields, _power_of_fields)
@also_of_intervals(_power_of_intervals)
def power(x: Numbers, exponent: Any, *, overflow: str | None = None) -> Any:
    """Power ``x**exponent`` of each number; ``0**0`` is 1.

    Parameters
    ----------
    x : RNSArray, IntervalRNSArray, PositionalArray or FieldArray
        The bases.
    exponent : int, or array of integers
        Any that is not negative; also one lazy integer, which is checked when it is computed. Of an array, or
        nested lists, of machine integers one for each number; both broadcast. In a field it may be negative:
        then it raises the inverses, as :func:`inverse` gives them.
    overflow : {"raise", "wrap", "flag", "extend"}, optional
        What happens to results out of range; without it, what :func:`.errstate` set, else ``"extend"`` for
        arrays whose range grows, ``"raise"`` for others.

    Returns
    -------
    RNSArray, IntervalRNSArray or FieldArray
        Lazy if `x` or the array of exponents is. With ``"flag"`` a pair: the results modulo M, and a Boolean
        array that is true where the exact result is out of range.

    Raises
    ------
    RNSOverflowError
        With ``"raise"``, if an exact result is out of range; on Dask when it is computed.
    TypeError, ValueError
        If an argument is none of these, or an exponent is negative; of a lazy one when it is computed.
    """
    check_rns_array(x)
    x, overflow = _extended(x, exponent, overflow)
    mode = overflow_mode(overflow, x.system)
    if is_lazy_integer(exponent):
        return _power_lazily(x, exponent, mode)
    if is_array(exponent):
        return _power_by_array(x, exponent, mode)
    k, system = as_integer(exponent, "exponent"), x.system
    powers.check_exponent(k)
    (low, high), (lowest, highest) = system.known_range, powers.bases_that_fit(k, system)
    is_safe = lowest <= low and high <= highest
    known = None
    if mode == "raise" or is_safe:
        # What is out of range raises, so a bound of what is left holds for every result.
        bound = max(abs(max(low, lowest)), abs(min(high, highest))) ** k
        known = bound if bound < system.greatest_magnitude else None
    mode = "wrap" if is_safe and mode == "raise" else mode
    options: dict[str, Any] = {"exponent": k, "system": system, "mode": mode}
    words = map_chunks(_power_block, x.words, rows=system.rows + (mode == "flag"), located=True, **options)
    return made_like((x,), words, system.with_bound(known), mode)


def _extended(x: Numbers, exponent: Any, overflow: str | None) -> tuple[Any, str | None]:
    """The bases with moduli for all powers, and the mode of overflow, where results extend."""
    if not extends(overflow, x):
        return x, overflow
    if is_lazy_integer(exponent):
        raise ValueError(
            "powers by an exponent that is not computed yet have no bound to extend by; compute() it first, "
            'or give overflow="raise"'
        )
    if is_array(exponent):
        most = greatest_exponent(exponent)
        (x,), overflow = grown(lambda base: of_powers(base, most), overflow, x)
    else:
        k = as_integer(exponent, "exponent")
        powers.check_exponent(k)
        (x,), overflow = grown(lambda base: of_power(base, k), overflow, x)
    return x, overflow


@also_of(Positional, mod_power)
@also_of_intervals(_power_of_intervals_modulo)
def power_modulo(x: Numbers, exponent: Any, modulus: SupportsIndex) -> Any:
    """Power ``pow(number, exponent, modulus)`` of each number, as Python has it for integers.

    Parameters
    ----------
    x : RNSArray or IntervalRNSArray
        The bases.
    exponent : int, or array of integers
        One integer of any size, or an array, or nested lists, of machine integers: one for each number; both
        broadcast. A negative one raises the inverses modulo `modulus`. Of an array each of the different
        exponents takes a pass over its numbers.
    modulus : int
        Not 0; negative of signed numbers only. Its magnitude minus 1 must be in the range.

    Returns
    -------
    RNSArray or IntervalRNSArray
        0, or of the modulus' sign and less in magnitude; lazy if `x` is.

    Raises
    ------
    TypeError, ValueError
        If an argument is none of these.
    ValueError
        If a number has no inverse, naming its flat index; for a Dask array when it is computed, and then the
        first number of its chunk. With an array of exponents, the first one of an exponent.
    """
    check_rns_array(x)
    m = as_integer(modulus, "modulus")
    if grows(x):
        (x,), _ = grown(lambda _: (min(m, 0), max(m, 0)), None, x)
    system = x.system
    modular_power.check_modulus(m, system)
    options: dict[str, Any] = {"modulus": m, "system": system, "rows": system.rows}
    if is_array(exponent):
        blocks = with_machine_integers(x, exponent, "exponents")
        words = map_chunks(_power_modulo_block_by_array, *blocks, located=True, **options)
    else:
        k = as_integer(exponent, "exponent")
        words = map_chunks(_power_modulo_block, x.words, located=True, exponent=k, **options)
    return fitted(made_like((x,), words, system.with_bound(abs(m) - 1), "raise"))


_wide_power_modulo = through_rns(power_modulo)


@also_of(FiniteFields, fields.inverse)
@also_of_intervals(interval_rns.inverse)
def inverse(x: Numbers) -> Any:
    """Inverse modulo M of each number: the number y of the range with ``x y`` = 1 modulo M, of two x's sign.

    In a FieldArray, of each element; one that is 0 in a field is a ZeroDivisionError, with its index.

    A product with it is an exact quotient: where x divides a, ``multiply(a, inverse(x), overflow="wrap")``
    is a / x.

    Parameters
    ----------
    x : RNSArray, IntervalRNSArray or FieldArray
        Numbers without a common factor with M.

    Returns
    -------
    RNSArray, IntervalRNSArray or FieldArray
        Lazy if `x` is.

    Raises
    ------
    TypeError
        If `x` is no such array.
    ValueError
        If a number has a common factor with a modulus, naming both; for a Dask array when it is computed,
        and then the first number of its chunk.
    """
    check_rns_array(x)
    interval_rns.check_inverses(x.system)
    moduli = x.system.moduli
    words = map_chunks(_inverse_block, x.words, rows=len(moduli), located=True, moduli=moduli)
    return made_like((x,), words, x.system.with_bound(None), "raise")


def _power_lazily(x: Numbers, exponent: da.Array, mode: str) -> Any:
    """Powers by a lazy exponent, about which nothing is known before."""
    system, words = x.system, as_lazy(x.words)
    options: dict[str, Any] = {"system": system, "mode": mode, "rows": system.rows + (mode == "flag")}
    packed = map_chunks(_power_block_lazily, words, exponent, located=True, **options)
    return made_like((x,), packed, system.with_bound(None), mode)


def _power_by_array(x: Numbers, exponents: Any, mode: str) -> Any:
    """Powers by an array of exponents, which broadcasts with the numbers."""
    blocks, system = with_machine_integers(x, exponents, "exponents"), x.system
    options: dict[str, Any] = {"system": system, "mode": mode, "rows": system.rows + (mode == "flag")}
    packed = map_chunks(_power_block_by_array, *blocks, located=True, **options)
    return made_like((x,), packed, system.with_bound(None) if isinstance(system, RNS) else system, mode)


# ---- chunks -----------------------------------------------------------------------------------------------


def _power_block(block: Array, *, exponent: int, system: RNS, mode: str, place: Place) -> Array:
    return powers.power(block, exponent, system, mode, place.flat_index)


def _power_block_lazily(block: Array, exponent: Any, *, system: RNS, mode: str, place: Place) -> Array:
    return powers.power(block, integer_of(exponent), system, mode, place.flat_index)


def _power_block_by_array(block: Array, exponents: Array, *, system: Any, mode: str, place: Place) -> Array:
    if isinstance(system, FiniteFields):
        return elements_of(system).powers(block, exponents, place.flat_index)
    if isinstance(system, IntervalRNS):
        with system.naming_ways_out():
            return interval_powers.power_by_array(block, exponents, system.moduli, mode, place.flat_index)
    return powers.power_by_array(block, exponents, system, mode, place.flat_index)


def _power_modulo_block(block: Array, *, exponent: int, modulus: int, system: RNS, place: Place) -> Array:
    return modular_power.power_modulo(block, exponent, modulus, system, place.flat_index)


def _power_modulo_block_by_array(
    block: Array, exponents: Array, *, modulus: int, system: RNS, place: Place
) -> Array:
    return modular_power.power_modulo_by_array(block, exponents, modulus, system, place.flat_index)


def _inverse_block(block: Array, *, moduli: ModuliSet, place: Place) -> Array:
    return powers.inverse(block, moduli, place.flat_index)
