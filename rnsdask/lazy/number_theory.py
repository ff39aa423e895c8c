"""Common divisors and multiples, and lengths in bits, lazy on Dask (:mod:`.rns.number_theory`)."""

import math
from typing import Any

import numpy as np

from rnsdask.backend import Array
from rnsdask.core.number_system import NumberSystem
from rnsdask.core.overflow import overflow_mode
from rnsdask.core.place import Place
from rnsdask.interval_rns import number_theory as of_intervals
from rnsdask.interval_rns.system import IntervalRNS
from rnsdask.lazy.fields import of_fields, refuse
from rnsdask.lazy.functions import check_one_kind
from rnsdask.lazy.growing import grown, of_common_divisors, of_common_multiples
from rnsdask.lazy.integer_operands import with_arrays
from rnsdask.lazy.map import map_chunks
from rnsdask.lazy.operands import Operand, is_number_array, made_like, prepare
from rnsdask.lazy.promotion import fitted
from rnsdask.positional import arithmetic, bits, divide
from rnsdask.positional.system import Positional
from rnsdask.rns import number_theory
from rnsdask.rns.system import RNS


def gcd(a: Operand, b: Operand, *, overflow: str | None = None) -> Any:
    """Greatest common divisor of two numbers, element by element, as ``numpy.gcd``.

    Parameters
    ----------
    a, b : RNSArray, IntervalRNSArray, PositionalArray or int
        At least one an array, both of one kind, as :func:`.add` takes them.
    overflow : {"raise", "wrap", "flag", "extend"}, optional
        What happens to results out of range; without it, what :func:`.errstate` set, else ``"extend"`` for
        arrays whose range grows, ``"raise"`` for others. Only
        the magnitude of the lowest number of a signed range can be.

    Returns
    -------
    array like the operands
        At least 0; ``gcd(0, x)`` is ``abs(x)``. Lazy if an operand is. With ``"flag"`` a pair, as of a sum.

    Raises
    ------
    RNSOverflowError
        With ``"raise"``, if an exact result is out of range; on Dask when it is computed.
    TypeError, ValueError
        If operands do not fit one another, or `overflow` is no mode.
    """
    return _of_pairs("gcd", a, b, overflow)


def lcm(a: Operand, b: Operand, *, overflow: str | None = None) -> Any:
    """Least common multiple of two numbers, as :func:`gcd` and ``numpy.lcm``: at least 0, and 0 of a 0."""
    return _of_pairs("lcm", a, b, overflow)


def isqrt(x: Operand) -> Any:
    """Floor of the square root of each number of a PositionalArray, as ``math.isqrt``.

    Returns
    -------
    PositionalArray
        Of the same shape, bits and range; lazy if `x` is.

    Raises
    ------
    TypeError
        If `x` is no PositionalArray.
    ValueError
        If a number is negative, naming its flat index; for a Dask array when it is computed.
    """
    if not is_number_array(x) or not isinstance(x.system, Positional):
        kind = type(x).__name__
        raise TypeError(f"isqrt takes a PositionalArray, got {kind}; x.to_positional(bits) makes one")
    words = map_chunks(_isqrt_block, x.words, rows=x.system.rows, located=True, system=x.system)
    return made_like((x,), words, x.system, "raise")


def bit_length(x: Operand) -> Any:
    """Bits of each number's magnitude, as Python's ``int.bit_length``: 0 of 0.

    Parameters
    ----------
    x : RNSArray, IntervalRNSArray or PositionalArray
        An array.

    Returns
    -------
    array of int64, shape of `x`
        NumPy or CuPy; lazy on Dask.

    Raises
    ------
    TypeError
        If `x` is no array of numbers.
    """
    if not is_number_array(x):
        kinds = "an RNSArray, an IntervalRNSArray or a PositionalArray"
        raise TypeError(f"bit_length takes {kinds}, got {type(x).__name__}")
    if of_fields(x):
        refuse("bit_length")
    return map_chunks(lengths_block, x.words, dtype=np.int64, system=x.system)


def _of_pairs(name: str, a: Operand, b: Operand, overflow: str | None) -> Any:
    a, b = with_arrays(a, b)
    if arrays := list(filter(is_number_array, (a, b))):
        check_one_kind(*arrays)
        if of_fields(arrays[0]):
            refuse(name)
    (a, b), overflow = grown(of_common_divisors if name == "gcd" else of_common_multiples, overflow, a, b)
    operands = prepare(a, b)
    system: Any = operands.system
    mode = overflow_mode(overflow, system)
    if isinstance(system, RNS):
        system = system.with_bound(_bound_of(name, (a, b), operands.bounds, system))
    options: dict[str, Any] = {"operation": name, "system": operands.system, "mode": mode}
    rows = system.rows + (mode == "flag")
    words = map_chunks(
        _pairs_block, *operands.blocks, rows=rows, located=True, token=f"rns-{name}", **options
    )
    found = made_like((a, b), words, system, mode)
    return fitted(found) if is_number_array(found) and isinstance(system, RNS) else found


def _bound_of(
    name: str, values: tuple[Operand, ...], bounds: tuple[int | None, ...], system: RNS
) -> int | None:
    """A bound of the results, or None if none is known or it is beyond the range."""
    known = [bound for bound in bounds if bound is not None]
    pairs = zip(values, bounds, strict=True)
    # Not of an array, whose number may be 0: the divisor of 0 and a number is as large as this number.
    divided = [bound for value, bound in pairs if bound and not is_number_array(value)]
    if name == "gcd" and divided:
        return min(divided)
    if len(known) < len(bounds):
        return None
    bound = math.prod(known) if name == "lcm" else max(known)
    return bound if bound <= system.value_range[1] else None


# ---- chunks -----------------------------------------------------------------------------------------------


def _pairs_block(
    x: Array, y: Array, *, operation: str, system: NumberSystem, mode: str, place: Place
) -> Array:
    if operation == "gcd" and isinstance(system, Positional):
        return arithmetic.gcd(x, y, system, mode, place.flat_index)
    return number_theory.of_pairs(operation, x, y, system, mode, place.flat_index)


def lengths_block(block: Array, *, system: NumberSystem) -> Array:
    """Bits of the magnitude of each number of a chunk (rows, *shape): int64 (1, *shape)."""
    if isinstance(system, IntervalRNS):
        return of_intervals.bit_length(block, system)[None]
    if isinstance(system, Positional):
        return bits.count(block, system, "length")[None]
    assert isinstance(system, RNS)
    return number_theory.bit_length(block, system)[None]


def _isqrt_block(block: Array, *, system: Positional, place: Place) -> Array:
    return divide.isqrt(block, system.signed, place.flat_index)
