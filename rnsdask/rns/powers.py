"""Powers and inverses modulo M, with exact detection of overflow, and powers modulo an integer.

Many numbers are inverted by a single inversion: P. Montgomery's trick, in a tree. Powers modulo at most 32
bits are powers of single residues. Otherwise, on a CPU GMP raises Python integers, which is faster than any
division of residues; on a GPU residues are multiplied, under a moduli set that holds products of two
remainders, and divided.
"""

from collections.abc import Callable, Sequence
from typing import Any

import gmpy2
import numpy as np

from rnsdask.backend import Array, Moduli, backend_name, is_all, is_any, kernels_of
from rnsdask.constants import forward_constants
from rnsdask.core.errors import NumberError, abbreviate
from rnsdask.core.generic import check_exponent
from rnsdask.core.layout import as_matrix
from rnsdask.core.moduli import MODULUS_MAX, ModuliSet
from rnsdask.core.number_system import NumberSystem
from rnsdask.core.place import Locate
from rnsdask.core.ranges import Range
from rnsdask.core.ways import Message, Way
from rnsdask.rns.blocks import column_of, with_overflow
from rnsdask.rns.bounds import MANY, measured_bound, sampled_bound
from rnsdask.rns.compare import choose, compare, sign
from rnsdask.rns.divide import divide_by_integer, small_remainder
from rnsdask.rns.extend import base_extend
from rnsdask.rns.matmul import enlarged
from rnsdask.rns.system import RNS

Multiply = Callable[[Array, Array], Array]

# Words of elements that are inverted together on a CPU.
WORDS = 2**19


def invert_together(elements: Array, multiply: Multiply, invert: Callable[[Array], Array], few: int) -> Array:
    """Invert elements (rows, N) of a ring by products and only a few single inversions.

    Products of pairs, then of pairs of these, and so on, are inverted instead; the inverse of ``a b``, times
    b and times a, gives the inverses of a and b. So N elements take less than 3 N products. On a CPU, parts
    that stay in cache are inverted together. `invert` takes from 1 to `few` elements. If it returns 0 for an
    element without an inverse, that element's row has zeros.
    """
    count = elements.shape[1]
    together = count if backend_name(elements) == "cuda" else max(few, WORDS // len(elements))
    if count <= together:
        return _inverses(elements, multiply, invert, few)
    result = np.empty_like(elements, shape=elements.shape, order="C")
    for start in range(0, count, together):
        part = slice(start, start + together)
        result[:, part] = _inverses(elements[:, part], multiply, invert, few)
    return result


def _inverses(elements: Array, multiply: Multiply, invert: Callable[[Array], Array], few: int) -> Array:
    if elements.shape[1] <= few:
        return invert(elements)
    half = elements.shape[1] // 2
    # The last of an odd number of elements goes up unchanged.
    first, second, rest = np.split(elements, (half, 2 * half), axis=1)
    above = np.concatenate([multiply(first, second), rest], axis=1)
    inverted = _inverses(above, multiply, invert, few)
    pairs = inverted[:, :half]
    return np.concatenate([multiply(pairs, second), multiply(pairs, first), inverted[:, half:]], axis=1)


# Bits of the exponents that the kernel takes.
_DIGIT_BITS = 64

# Most residues that are inverted more quickly one by one than by products, as measured.
_FEW_RESIDUES = 1024

# Bits of the longest power that is computed to report its length in an error.
_EXACT_BITS = 2**20


def bases_that_fit(exponent: int, system: RNS) -> tuple[int, int]:
    """Lowest and highest number of the range whose powers are in the range; so are all powers in between."""
    lowest, highest = system.value_range
    if exponent < 2:
        # x**0 = 1 is out of range only for M = 2, signed: then nothing fits.
        return (lowest, highest) if exponent or highest else (1, 0)
    root = _root(highest, exponent)
    return (0 if not system.signed else -_root(-lowest if exponent % 2 else highest, exponent)), root


def plan(system: RNS, ranges: Sequence[Range], mode: str, exponent: int) -> tuple[str, int | None]:
    """Mode of overflow for chunks of bases in a range, and a bound of their powers."""
    check_exponent(exponent)
    (low, high), (lowest, highest) = ranges[0], bases_that_fit(exponent, system)
    is_safe = lowest <= low and high <= highest
    bound = None
    if mode == "raise" or is_safe:
        # A power out of range raises, so the bound of the others holds for every result.
        bound = max(abs(max(low, lowest)), abs(min(high, highest))) ** exponent
    return "wrap" if is_safe and mode == "raise" else mode, bound


def check_inverses(system: NumberSystem, **_: Any) -> None:
    """Raise ValueError if inverses modulo M would depend on moduli that the user has not given."""
    if system.source is not None:
        raise ValueError(
            f"inverse would be modulo the moduli that replaced the {system.source!r}, under which the "
            "residues were given; pow(x, -1, m) gives inverses modulo an integer m"
        )


def _root(value: int, exponent: int) -> int:
    """Greatest integer whose power is at most `value`."""
    if exponent >= value.bit_length():
        return min(value, 1)
    return int(gmpy2.iroot(gmpy2.mpz(value), exponent)[0])


def power(residues: Array, exponent: int, system: RNS, mode: str, locate: Locate = int) -> Array:
    """Powers of a chunk (n, *shape); with ``"flag"`` another row, 1 where the exact power is out of range.

    A power is in range just when its base is between two roots of the ends of the range, so comparing bases
    decides. With ``"raise"``, an error names the index that `locate` derives from the index in the chunk.
    """
    check_exponent(exponent)
    moduli = system.moduli
    if mode == "wrap":
        return power_of_residues(residues, exponent, moduli)
    mask = _outside(residues, bases_that_fit(exponent, system), system)
    # With "raise", the bases of long exponents are 0, 1 and -1, for which only the parity matters.
    is_long = mode == "raise" and exponent >= moduli.bits
    powers = power_of_residues(residues, 2 - exponent % 2 if is_long else exponent, moduli)

    def error(index: int) -> Any:
        base = system.decode_at(residues, index)
        return overflow_error(base, exponent, locate(index), system)

    return with_overflow(powers, mask, mode, error)


def power_by_array(residues: Array, exponents: Array, system: RNS, mode: str, locate: Locate = int) -> Array:
    """Raise each number of a chunk (n, *shape) to its own exponent, integers (1, *shape), as :func:`power`.

    All numbers are squared once for each bit of the exponents. Overflow is decided for all numbers of one
    exponent together; exponents beyond the bits of M differ only by parity.
    """
    lengths = np.broadcast_shapes(residues.shape[1:], exponents.shape[1:])
    matrix = as_matrix(np.broadcast_to(residues, (len(residues), *lengths)))
    given = np.broadcast_to(exponents[0], lengths).reshape(-1)
    negative = given < 0
    if is_any(negative):
        index = int(negative.argmax())
        raise NumberError(
            f"an exponent must not be negative, got {int(given[index])} at flat index {locate(index)}"
        )
    given = given.astype(np.uint64)
    if mode == "wrap":
        return power_of_each(matrix, given, system.moduli).reshape(len(matrix), *lengths)
    most = np.uint64(system.moduli.bits)
    alike = np.where(given > most, most + (given + most) % np.uint64(2), given)
    mask = np.zeros_like(given, dtype=np.bool_)
    for exponent in np.unique(alike).tolist():
        (chosen,) = (alike == np.uint64(exponent)).nonzero()
        part = kernels_of(matrix).gather(matrix, chosen)
        mask[chosen] = _outside(part, bases_that_fit(exponent, system), system)

    def error(index: int) -> Any:
        base = system.decode_at(matrix, index)
        return overflow_error(base, int(given[index]), locate(index), system)

    # A number in range has the same power under any equivalent exponent.
    powers = power_of_each(matrix, given if mode == "flag" else alike, system.moduli)
    powers = with_overflow(powers, mask, mode, error)
    return powers.reshape(len(powers), *lengths)


def power_of_each(matrix: Array, exponents: Array, moduli: Moduli) -> Array:
    """Powers modulo M of numbers (n, N) by exponents uint64 (N,), by squaring from the highest bit."""
    kernels = kernels_of(matrix)
    result = np.ones_like(matrix, order="C")  # a residue modulo any m
    for bit in reversed(range(int(exponents.max()).bit_length() if exponents.size else 0)):
        square = np.empty_like(matrix, order="C")
        kernels.apply("multiply", (result, result), moduli, square)
        kernels.apply("multiply", (square, matrix), moduli, result)
        has_bit = (exponents >> np.uint64(bit)) & np.uint64(1) != 0
        result = np.where(has_bit[None], result, square)
    return result


def _outside(residues: Array, fitting: tuple[int, int], system: RNS) -> Array:
    """Mask (*shape) of the numbers below the first or above the second of two values."""
    if fitting[0] > fitting[1]:
        return np.ones_like(residues[0], dtype=np.bool_)
    system = _measure(residues, fitting, system)
    low, high = system.known_range
    mask = np.zeros_like(residues[0], dtype=np.bool_)
    for value, side, is_possible in zip(fitting, (-1, 1), (low < fitting[0], high > fitting[1]), strict=True):
        # No number is beyond the bound, and the moduli that the bound needs do not hold the value.
        if is_possible:
            column = column_of(min(max(value, low), high), system.moduli, residues.ndim - 1)
            mask |= compare(residues, column, system) == side
    return mask


def _measure(residues: Array, fitting: tuple[int, int], system: RNS) -> RNS:
    """The system, with a measured bound if a sample shows that it may make comparisons unnecessary."""
    lowest, highest = system.known_range
    fits = fitting[0] <= lowest and highest <= fitting[1]
    if fits or system.bound is not None or residues[0].size < MANY:
        return system
    matrix, enough = as_matrix(residues), min(fitting[1], -fitting[0]) if system.signed else fitting[1]
    sampled = sampled_bound(matrix, system)
    return system if sampled > enough else system.with_bound(measured_bound(matrix, system, enough, sampled))


def power_of_residues(residues: Array, exponent: int, moduli: Moduli) -> Array:
    """Powers modulo M of residues (n, *shape); long exponents are taken digit by digit, by Horner's rule."""
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
    """Digits of an exponent for the kernel, the least significant first; at least one."""
    count = max(1, -(-exponent.bit_length() // _DIGIT_BITS))
    return [exponent >> _DIGIT_BITS * i & 2**_DIGIT_BITS - 1 for i in range(count)]


def overflow_error(base: int, exponent: int, index: int, system: Any) -> Any:
    """Error of a power out of range, of any length, worded as by :meth:`.RNSOverflowError.of_value`."""
    if base.bit_length() * exponent <= _EXACT_BITS:
        return system.overflow_error(base**exponent, index)
    negative = base < 0 and exponent % 2 == 1
    # In two's complement -2**k is one bit shorter than 2**k.
    least = (abs(base).bit_length() - 1) * exponent + int(not negative)
    return system.overflow_of_length(least, negative, index, at_least=True)


def inverse(residues: Array, moduli: ModuliSet, locate: Locate = int) -> Array:
    """Inverses modulo M of a chunk (n, *shape); `locate` turns an index of it into the one to report."""
    inverses, failed = inverses_of(residues, moduli)
    if failed is not None:
        row, index = failed
        raise NumberError(
            f"the number at flat index {locate(index)} has no inverse: it and the modulus {moduli[row]} have "
            f"a common factor"
        )
    return inverses


def inverses_of(residues: Array, moduli: Moduli) -> tuple[Array, tuple[int, int] | None]:
    """Inverses modulo M of a chunk (n, *shape), and row and flat index of the first that is missing."""
    matrix = as_matrix(residues)
    kernels = kernels_of(matrix)

    def multiply(a: Array, b: Array) -> Array:
        out = np.empty_like(a, order="C")
        kernels.apply("multiply", (a, b), moduli, out)
        return out

    def invert(a: Array) -> Array:
        out = np.empty_like(a, order="C")
        kernels.inverse(a, moduli, out)
        return out

    # On a GPU each level takes several launches, and the trick has not been measured to pay.
    few = matrix.shape[1] if backend_name(matrix) == "cuda" else max(1, _FEW_RESIDUES // len(moduli))
    inverses = invert_together(matrix, multiply, invert, few)
    place = None
    if not is_all(inverses):
        failed = invert(matrix) == 0  # one by one, where a whole row has become 0
        index = int(failed.any(axis=0).argmax())
        place = int(failed[:, index].argmax()), index
    return inverses.reshape(residues.shape), place


def check_modulus(modulus: int, system: RNS) -> None:
    """Raise ValueError if powers modulo an integer are not defined, or may be out of the system's range."""
    if modulus == 0:
        raise ValueError("the modulus of a power must not be 0")
    if modulus < 0 and not system.signed:
        raise ValueError(f"powers of unsigned numbers need a positive modulus, got {abbreviate(modulus)}")
    highest = system.value_range[1]
    if abs(modulus) - 1 > highest:
        raise ValueError(
            Message(
                f"powers modulo {abbreviate(modulus)} do not fit the moduli set, whose {system.range_kind} "
                f"range ends at {abbreviate(highest)}; ",
                Way.EXTEND,
                " takes more moduli",
            )
        )


def power_modulo(residues: Array, exponent: int, modulus: int, system: RNS, locate: Locate = int) -> Array:
    """Residues of ``pow(number, exponent, modulus)``, for an exponent of any size and sign.

    The modulus must pass :func:`check_modulus`. Results are 0, or have its sign and a smaller magnitude. A
    number that lacks a required inverse is a ValueError that names its index.
    """
    size, matrix = abs(modulus), as_matrix(residues)
    if exponent < 0 or (isinstance(matrix, np.ndarray) and size > MODULUS_MAX):
        result = _by_integers(matrix, exponent, size, system, locate)
    elif size == 1:
        result = np.zeros_like(matrix)
    elif size <= MODULUS_MAX:
        result = _by_one_residue(matrix, exponent, size, system)
    else:
        result = by_division(matrix, exponent, size, system)
    if modulus < 0:
        result = _make_negative(result, size, system)
    return result.reshape(residues.shape)


def power_modulo_by_array(
    residues: Array, exponents: Array, modulus: int, system: RNS, locate: Locate = int
) -> Array:
    """Raise numbers to powers modulo an integer, by exponents (1, *shape) that broadcast with the numbers."""
    shape = np.broadcast_shapes(residues.shape[1:], exponents.shape[1:])
    matrix = as_matrix(np.broadcast_to(residues, (len(residues), *shape)))

    def power(chosen: Array, exponent: int) -> Array:
        part = kernels_of(matrix).gather(matrix, chosen)
        return power_modulo(part, exponent, modulus, system, lambda index: locate(int(chosen[index])))

    result = np.empty_like(matrix, order="C")
    return by_each_exponent(power, result, np.broadcast_to(exponents[0], shape)).reshape(len(matrix), *shape)


def by_each_exponent(power: Callable[[Array, int], Array], result: Array, exponents: Array) -> Array:
    """Write powers (k, N) by an exponent for each number, one exponent at a time, and return them.

    ``power(chosen, exponent)`` returns the words of the powers of the numbers at some indices by a Python
    int.
    """
    given = exponents.reshape(-1)
    for exponent in np.unique(given).tolist():
        (chosen,) = (given == exponent).nonzero()
        result[:, chosen] = power(chosen, exponent)
    return result


def _by_integers(matrix: Array, exponent: int, modulus: int, system: RNS, locate: Locate) -> Array:
    values = system.decode(matrix).tolist()
    if exponent < 0:
        for index, value in enumerate(values):
            if gmpy2.gcd(value, modulus) != 1:
                raise NumberError(
                    f"the number at flat index {locate(index)} is not invertible modulo {abbreviate(modulus)}"
                )
    powers = gmpy2.powmod_base_list(values, exponent, modulus)
    return np.asarray(system.encode(powers), like=matrix)


def _by_one_residue(matrix: Array, exponent: int, modulus: int, system: RNS) -> Array:
    remainders = small_remainder(matrix, system, modulus)[None]
    powers = power_of_residues(remainders, exponent, ModuliSet([modulus])).reshape(-1, 1)
    result = np.empty_like(matrix, order="C")
    kernels_of(result).limbs_to_residues(powers, forward_constants(system.moduli, 1), result)
    return result


def by_division(matrix: Array, exponent: int, modulus: int, system: RNS) -> Array:
    """Powers by residues alone, for a nonnegative exponent and a modulus of at least 2."""
    wide = enlarged(RNS(system.moduli), modulus**2)
    base = divide_by_integer(matrix, modulus, system, ("remainder",))
    base = base_extend(base, system.with_bound(modulus - 1), wide.moduli)
    products = wide.with_bound((modulus - 1) ** 2)

    def multiplied(a: Array, b: Array) -> Array:
        out = np.empty_like(base, order="C")
        kernels_of(out).apply("multiply", (a, b), wide.moduli, out)
        return divide_by_integer(out, modulus, products, ("remainder",))

    result = np.broadcast_to(np.asarray(column_of(1, wide.moduli), like=base), base.shape).copy()
    for position, bit in enumerate(f"{exponent:b}"):
        result = multiplied(result, result) if position else result
        result = multiplied(result, base) if bit == "1" else result
    return result[: system.rows]


def _make_negative(result: Array, size: int, system: RNS) -> Array:
    """Convert results from 0 to size - 1 to a negative modulus: nonzero ones become less by `size`."""
    out = np.empty_like(result, order="C")
    kernels_of(out).apply("subtract", (result, column_of(size, system.moduli)), system.moduli, out)
    nonzero = sign(result, system.with_bound(size - 1)) != 0
    return choose(nonzero[None], out, result)
