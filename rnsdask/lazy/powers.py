"""Powers and inverses of all numbers of an array, lazy on Dask."""

from typing import Any, SupportsIndex

import dask.array as da
import gmpy2
import numpy as np

from rnsdask.backend import Array, kernels_of
from rnsdask.core.errors import RNSOverflowError, abbreviate
from rnsdask.core.layout import RESIDUE_DTYPE, as_matrix
from rnsdask.core.moduli import ModuliSet, as_integer, from_text, to_text
from rnsdask.core.overflow import overflow_mode
from rnsdask.core.place import Locate, locate_in
from rnsdask.lazy.operands import (
    ResidueArray,
    integer_of,
    is_lazy_integer,
    is_residue_array,
    map_with_integer,
)
from rnsdask.rns import exact
from rnsdask.rns.arithmetic import operand_range
from rnsdask.rns.compare import compare

# The kernel takes exponents of so many bits.
_DIGIT_BITS = 64

# Longer powers are not computed to say in an error how long they are.
_EXACT_BITS = 2**20


def power(x: ResidueArray, exponent: SupportsIndex, *, overflow: str | None = None) -> Any:
    """Power ``x**exponent`` of each number; ``0**0`` is 1.

    Parameters
    ----------
    x : RNSArray
        The bases.
    exponent : int
        Any that is not negative; also one lazy integer, which is checked when it is computed.
    overflow : {"raise", "wrap", "flag"}, optional
        What happens to results out of range; without it, what :func:`.errstate` set, else ``"raise"``.

    Returns
    -------
    RNSArray
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
    _check_array(x)
    if is_lazy_integer(exponent):
        return _power_lazily(x, exponent, mode)
    k = as_integer(exponent, "exponent")
    _check_exponent(k)
    moduli, signed = x.moduli, x.signed
    low, high = operand_range(moduli, signed, x.bound)
    lowest, highest = bases_that_fit(k, moduli, signed)
    is_safe = lowest <= low and high <= highest
    known = None
    if mode == "raise" or is_safe:
        # What is out of range raises, so a bound of what is left holds for every result.
        base = max(abs(max(low, lowest)), abs(min(high, highest)))
        bound = base**k
        known = bound if bound < max(map(abs, moduli.value_range(signed))) else None
    packed_mode = "wrap" if is_safe and mode == "raise" else mode
    arguments = (hex(k), moduli, signed, to_text(x.bound), packed_mode)
    packed = _map(_power_block, x.residues, len(moduli) + (mode == "flag"), *arguments)
    array_type: Any = type(x)
    if mode == "flag":
        return array_type(packed[:-1], moduli, signed, known), packed[-1] != 0
    return array_type(packed, moduli, signed, known)


def inverse(x: ResidueArray) -> Any:
    """Inverse modulo M of each number: the number y of the range with ``x y`` = 1 modulo M.

    A product with it is an exact quotient: where x divides a, ``multiply(a, inverse(x), overflow="wrap")``
    is a / x.

    Parameters
    ----------
    x : RNSArray
        Numbers without a common factor with M.

    Returns
    -------
    RNSArray
        Lazy if `x` is.

    Raises
    ------
    TypeError
        If `x` is no RNSArray.
    ValueError
        If a number has a common factor with a modulus, naming both; for a Dask array when it is computed,
        and then the first number of its chunk.
    """
    _check_array(x)
    residues = _map(_inverse_block, x.residues, len(x.moduli), x.moduli)
    array_type: Any = type(x)
    return array_type(residues, x.moduli, x.signed)


def _power_lazily(x: ResidueArray, exponent: da.Array, mode: str) -> Any:
    """Powers by a lazy exponent, about which nothing is known before."""
    arguments = (x.moduli, x.signed, to_text(x.bound), mode)
    rows = len(x.moduli) + (mode == "flag")
    packed = map_with_integer(_power_block_lazily, x.residues, exponent, rows, *arguments)
    array_type: Any = type(x)
    if mode == "flag":
        return array_type(packed[:-1], x.moduli, x.signed), packed[-1] != 0
    return array_type(packed, x.moduli, x.signed)


def _check_exponent(k: int) -> None:
    if k < 0:
        raise ValueError(
            f"an exponent must not be negative, got {abbreviate(k)}; inverse(x) gives inverses modulo M"
        )


def _check_array(x: Any) -> None:
    if not is_residue_array(x):
        raise TypeError(f"the operand must be an RNSArray, got {type(x).__name__}")


def _map(function: Any, residues: Any, rows: int, *arguments: Any) -> Any:
    """Apply a function to each chunk (n, *shape), which gives one of `rows` rows."""
    if not isinstance(residues, da.Array):
        return function(residues, *arguments)
    return da.map_blocks(
        function,
        residues,
        *arguments,
        chunks=((rows,), *residues.chunks[1:]),
        dtype=RESIDUE_DTYPE,
        meta=residues._meta,
    )


# ---- chunks -----------------------------------------------------------------------------------------------


def bases_that_fit(exponent: int, moduli: ModuliSet, signed: bool) -> tuple[int, int]:
    """Lowest and highest number of the range whose power is in the range; so are those of all in between."""
    lowest, highest = moduli.value_range(signed)
    if exponent < 2:
        # x**0 = 1 is out of the range of M = 2 only, signed: then nothing fits.
        return (lowest, highest) if exponent or highest else (1, 0)
    root = _root(highest, exponent)
    return (0 if not signed else -_root(-lowest if exponent % 2 else highest, exponent)), root


def _root(value: int, exponent: int) -> int:
    """The greatest integer whose power is at most `value`."""
    if exponent >= value.bit_length():
        return min(value, 1)
    return int(gmpy2.iroot(gmpy2.mpz(value), exponent)[0])


def _power_block(
    block: Array,
    exponent: str,
    moduli: ModuliSet,
    signed: bool,
    bound: str | None,
    mode: str,
    block_info: Any = None,
) -> Array:
    return power_of_chunk(
        block, int(exponent, 16), moduli, signed, from_text(bound), mode, locate_in(block_info)
    )


def _power_block_lazily(
    block: Array,
    exponent: Any,
    moduli: ModuliSet,
    signed: bool,
    bound: str | None,
    mode: str,
    block_info: Any = None,
) -> Array:
    k = integer_of(exponent)
    _check_exponent(k)
    return _power_block(block, hex(k), moduli, signed, bound, mode, block_info)


def power_of_chunk(
    residues: Array,
    exponent: int,
    moduli: ModuliSet,
    signed: bool,
    bound: int | None,
    mode: str,
    locate: Locate = int,
) -> Array:
    """Powers of a chunk (n, *shape); with ``"flag"`` one row more, 1 where the exact one is out of range.

    A power is in range just when its base is between two roots of the ends of the range, so that comparing
    bases decides. With ``"raise"``, an error names the index that `locate` makes of that in the chunk.
    """
    if mode == "wrap":
        return _power_modulo(residues, exponent, moduli)
    mask = _outside(residues, bases_that_fit(exponent, moduli, signed), moduli, signed, bound)
    if mode == "flag":
        powers = _power_modulo(residues, exponent, moduli)
        return np.concatenate([powers, mask[None].astype(np.uint32)])
    if mask.any():
        index = int(mask.argmax())
        base = exact.value_of(residues.reshape(len(moduli), -1)[:, index].tolist(), moduli, signed)
        raise _overflow(base, exponent, locate(index), moduli, signed)
    # The bases of long exponents are 0, 1 and -1, for which only the parity counts.
    return _power_modulo(residues, exponent if exponent < moduli.bits else 2 - exponent % 2, moduli)


def _outside(
    residues: Array, fitting: tuple[int, int], moduli: ModuliSet, signed: bool, bound: int | None
) -> Array:
    """Boolean (*shape): numbers below the first or above the second of two values."""
    if fitting[0] > fitting[1]:
        return np.ones_like(residues[0], dtype=np.bool_)
    low, high = operand_range(moduli, signed, bound)
    mask = np.zeros_like(residues[0], dtype=np.bool_)
    for value, sign, is_possible in zip(fitting, (-1, 1), (low < fitting[0], high > fitting[1]), strict=True):
        # Beyond the bound nothing is to be found, and the moduli that the bound needs do not hold the value.
        if is_possible:
            value = min(max(value, low), high)
            column = np.array(exact.residues_of(value, moduli), dtype=RESIDUE_DTYPE)
            column = column.reshape(-1, *(1,) * (residues.ndim - 1))
            mask |= compare(residues, column, moduli, signed, bound) == sign
    return mask


def _power_modulo(residues: Array, exponent: int, moduli: ModuliSet) -> Array:
    """Powers modulo M. Exponents beyond the kernel's go digit by digit, as Horner's rule does."""
    matrix = as_matrix(residues)
    kernels = kernels_of(matrix)

    def raised(x: Array, k: int) -> Array:
        out = np.empty_like(matrix, order="C")
        kernels.power(x, k, moduli, out)
        return out

    *digits, top = _digits(exponent)
    result = raised(matrix, top)
    for digit in reversed(digits):
        shifted, factor = raised(raised(result, 2 ** (_DIGIT_BITS - 1)), 2), raised(matrix, digit)
        kernels.apply("multiply", (shifted, factor), moduli, result)
    return result.reshape(residues.shape)


def _digits(exponent: int) -> list[int]:
    """Digits of an exponent as the kernel takes them, the least significant first; at least one."""
    count = max(1, -(-exponent.bit_length() // _DIGIT_BITS))
    return [exponent >> _DIGIT_BITS * i & 2**_DIGIT_BITS - 1 for i in range(count)]


def _overflow(base: int, exponent: int, index: int, moduli: ModuliSet, signed: bool) -> RNSOverflowError:
    if base.bit_length() * exponent <= _EXACT_BITS:
        return RNSOverflowError.of_value(base**exponent, index, moduli.bits, signed)
    negative = base < 0 and exponent % 2 == 1
    # In two's complement -2**k is one bit shorter than 2**k.
    least = (abs(base).bit_length() - 1) * exponent + int(not negative)
    return RNSOverflowError(index, least + signed, moduli.bits - 1, signed, negative, at_least=True)


def _inverse_block(block: Array, moduli: ModuliSet, block_info: Any = None) -> Array:
    return inverse_of_chunk(block, moduli, locate_in(block_info))


def inverse_of_chunk(residues: Array, moduli: ModuliSet, locate: Locate = int) -> Array:
    """Inverses modulo M of a chunk (n, *shape); `locate` turns an index of it into the one to report."""
    matrix = as_matrix(residues)
    out = np.empty_like(matrix, order="C")
    kernels_of(matrix).inverse(matrix, moduli, out)
    failed = out == 0
    if failed.any():
        index = int(failed.any(axis=0).argmax())
        row = int(failed[:, index].argmax())
        raise ValueError(
            f"the number at flat index {locate(index)} has no inverse: it and the modulus {moduli[row]} have "
            f"a common factor"
        )
    return out.reshape(residues.shape)
