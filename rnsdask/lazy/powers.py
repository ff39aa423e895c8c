"""Powers and inverses of all numbers of an array, lazy on Dask (:mod:`rnsdask.rns.powers`)."""

from typing import Any, SupportsIndex

import dask.array as da

from rnsdask.backend import Array
from rnsdask.core.moduli import ModuliSet, as_integer
from rnsdask.core.overflow import overflow_mode
from rnsdask.core.place import Place
from rnsdask.lazy import interval_rns
from rnsdask.lazy.map import map_chunks
from rnsdask.lazy.operands import Numbers, as_lazy, check_rns_array, integer_of, is_lazy_integer, made_like
from rnsdask.lazy.widening import also_of_intervals
from rnsdask.rns import powers
from rnsdask.rns.system import RNS


@also_of_intervals(interval_rns.power)
def power(x: Numbers, exponent: SupportsIndex, *, overflow: str | None = None) -> Any:
    """Power ``x**exponent`` of each number; ``0**0`` is 1.

    Parameters
    ----------
    x : RNSArray or IntervalRNSArray
        The bases.
    exponent : int
        Any that is not negative; also one lazy integer, which is checked when it is computed.
    overflow : {"raise", "wrap", "flag"}, optional
        What happens to results out of range; without it, what :func:`.errstate` set, else ``"raise"``.

    Returns
    -------
    RNSArray or IntervalRNSArray
        Lazy if `x` is. With ``"flag"`` a pair: the results modulo M, and a Boolean array that is true where
        the exact result is out of range.

    Raises
    ------
    RNSOverflowError
        With ``"raise"``, if an exact result is out of range; on Dask when it is computed.
    TypeError, ValueError
        If an argument is none of these, or the exponent is negative.
    """
    mode = overflow_mode(overflow)
    check_rns_array(x)
    if is_lazy_integer(exponent):
        return _power_lazily(x, exponent, mode)
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


@also_of_intervals(interval_rns.inverse)
def inverse(x: Numbers) -> Any:
    """Inverse modulo M of each number: the number y of the range with ``x y`` = 1 modulo M, of two x's sign.

    A product with it is an exact quotient: where x divides a, ``multiply(a, inverse(x), overflow="wrap")``
    is a / x.

    Parameters
    ----------
    x : RNSArray or IntervalRNSArray
        Numbers without a common factor with M.

    Returns
    -------
    RNSArray or IntervalRNSArray
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
    moduli = x.system.moduli
    words = map_chunks(_inverse_block, x.words, rows=len(moduli), located=True, moduli=moduli)
    return made_like((x,), words, x.system.with_bound(None), "raise")


def _power_lazily(x: Numbers, exponent: da.Array, mode: str) -> Any:
    """Powers by a lazy exponent, about which nothing is known before."""
    system, words = x.system, as_lazy(x.words)
    options: dict[str, Any] = {"system": system, "mode": mode, "rows": system.rows + (mode == "flag")}
    packed = map_chunks(_power_block_lazily, words, exponent, located=True, **options)
    return made_like((x,), packed, system.with_bound(None), mode)


# ---- chunks -----------------------------------------------------------------------------------------------


def _power_block(block: Array, *, exponent: int, system: RNS, mode: str, place: Place) -> Array:
    return powers.power(block, exponent, system, mode, place.flat_index)


def _power_block_lazily(block: Array, exponent: Any, *, system: RNS, mode: str, place: Place) -> Array:
    return powers.power(block, integer_of(exponent), system, mode, place.flat_index)


def _inverse_block(block: Array, *, moduli: ModuliSet, place: Place) -> Array:
    return powers.inverse(block, moduli, place.flat_index)
