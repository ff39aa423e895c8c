"""Powers and inverses modulo M of a chunk of numbers, and exactly which powers overflow. No Dask in here."""

from collections.abc import Sequence
from typing import Any

import gmpy2
import numpy as np

from rnsdask.backend import Array, backend_name, kernels_of
from rnsdask.core.errors import NumberError, RNSOverflowError, abbreviate
from rnsdask.core.layout import as_matrix
from rnsdask.core.moduli import ModuliSet
from rnsdask.core.number_system import NumberSystem
from rnsdask.core.place import Locate
from rnsdask.core.ranges import Range
from rnsdask.rns.blocks import column_of
from rnsdask.rns.compare import compare
from rnsdask.rns.inverses import invert_together
from rnsdask.rns.measured_bound import measured_bound
from rnsdask.rns.sampled_bound import MANY, sampled_bound
from rnsdask.rns.system import RNS

# The kernel takes exponents of so many bits.
_DIGIT_BITS = 64

# Residues that are inverted by themselves sooner than by products, as measured.
_FEW_RESIDUES = 1024

# Longer powers are not computed to say in an error how long they are.
_EXACT_BITS = 2**20


def check_exponent(k: int) -> None:
    """Raise ValueError if an exponent is negative."""
    if k < 0:
        raise NumberError(
            f"an exponent must not be negative, got {abbreviate(k)}; "
            "inverse(x) of an RNSArray and mod_inverse(x, m) of a PositionalArray give inverses"
        )


def bases_that_fit(exponent: int, system: RNS) -> tuple[int, int]:
    """Lowest and highest number of the range whose power is in the range; so are those of all in between."""
    lowest, highest = system.value_range
    if exponent < 2:
        # x**0 = 1 is out of the range of M = 2 only, signed: then nothing fits.
        return (lowest, highest) if exponent or highest else (1, 0)
    root = _root(highest, exponent)
    return (0 if not system.signed else -_root(-lowest if exponent % 2 else highest, exponent)), root


def check_power(_: NumberSystem, exponent: int, **__: Any) -> None:
    """Raise ValueError if the exponent of powers is negative."""
    check_exponent(exponent)


def plan(system: RNS, ranges: Sequence[Range], mode: str, exponent: int) -> tuple[str, int | None]:
    """Mode of overflow that chunks of bases in a range need, and a bound of their powers."""
    check_exponent(exponent)
    (low, high), (lowest, highest) = ranges[0], bases_that_fit(exponent, system)
    is_safe = lowest <= low and high <= highest
    bound = None
    if mode == "raise" or is_safe:
        # A power out of range raises, so a bound of the others holds for every result.
        bound = max(abs(max(low, lowest)), abs(min(high, highest))) ** exponent
    return "wrap" if is_safe and mode == "raise" else mode, bound


def check_inverses(system: NumberSystem, **_: Any) -> None:
    """Raise ValueError if inverses modulo M would be modulo moduli that the user has not given."""
    if system.source is not None:
        raise ValueError(
            f"inverse would be modulo the moduli that replaced the {system.source!r}, under which the "
            "residues were given; pow(x, -1, m) gives inverses modulo an integer m"
        )


def _root(value: int, exponent: int) -> int:
    """The greatest integer whose power is at most `value`."""
    if exponent >= value.bit_length():
        return min(value, 1)
    return int(gmpy2.iroot(gmpy2.mpz(value), exponent)[0])


def power(residues: Array, exponent: int, system: RNS, mode: str, locate: Locate = int) -> Array:
    """Powers of a chunk (n, *shape); with ``"flag"`` one row more, 1 where the exact one is out of range.

    A power is in range just when its base is between two roots of the ends of the range, so that comparing
    bases decides. With ``"raise"``, an error names the index that `locate` makes of that in the chunk.
    """
    check_exponent(exponent)
    moduli = system.moduli
    if mode == "wrap":
        return power_of_residues(residues, exponent, moduli)
    mask = _outside(residues, bases_that_fit(exponent, system), system)
    if mode == "flag":
        powers = power_of_residues(residues, exponent, moduli)
        return np.concatenate([powers, mask[None].astype(np.uint32)])
    if mask.any():
        index = int(mask.argmax())
        base = system.decode_at(residues, index)
        how: dict[str, Any] = {"signed": system.signed, "kind": system.overflow_type}
        raise overflow_error(base, exponent, locate(index), moduli.bits, **how)
    # The bases of long exponents are 0, 1 and -1, for which only the parity counts.
    return power_of_residues(residues, exponent if exponent < moduli.bits else 2 - exponent % 2, moduli)


def power_by_array(residues: Array, exponents: Array, system: RNS, mode: str, locate: Locate = int) -> Array:
    """Powers of a chunk (n, *shape) by an exponent for each number, integers (1, *shape), as :func:`power`.

    Exponents of so many bits take as many squares of all numbers. Whether powers are in range is decided for
    all numbers of one exponent together; beyond the bits of M exponents differ by their parity alone.
    """
    lengths = np.broadcast_shapes(residues.shape[1:], exponents.shape[1:])
    matrix = as_matrix(np.broadcast_to(residues, (len(residues), *lengths)))
    given = np.broadcast_to(exponents[0], lengths).reshape(-1)
    negative = given < 0
    if negative.any():
        index = int(negative.argmax())
        raise NumberError(
            f"an exponent must not be negative, got {int(given[index])} at flat index {locate(index)}"
        )
    given = given.astype(np.uint64)
    if mode == "wrap":
        return _power_of_each(matrix, given, system.moduli).reshape(len(matrix), *lengths)
    most = np.uint64(system.moduli.bits)
    alike = np.where(given > most, most + (given + most) % np.uint64(2), given)
    mask = np.zeros_like(given, dtype=np.bool_)
    for exponent in np.unique(alike).tolist():
        (chosen,) = (alike == np.uint64(exponent)).nonzero()
        part = kernels_of(matrix).gather(matrix, chosen)
        mask[chosen] = _outside(part, bases_that_fit(exponent, system), system)
    if mode == "raise" and mask.any():
        index = int(mask.argmax())
        base, bits = system.decode_at(matrix, index), system.moduli.bits
        how: dict[str, Any] = {"signed": system.signed, "kind": system.overflow_type}
        raise overflow_error(base, int(given[index]), locate(index), bits, **how)
    # What is in range has the same power by an exponent that is like its own.
    powers = _power_of_each(matrix, given if mode == "flag" else alike, system.moduli)
    if mode == "flag":
        powers = np.concatenate([powers, mask[None].astype(np.uint32)])
    return powers.reshape(len(powers), *lengths)


def _power_of_each(matrix: Array, exponents: Array, moduli: ModuliSet) -> Array:
    """Powers modulo M of numbers (n, N) by exponents (N,), by squares from the most significant bit."""
    kernels = kernels_of(matrix)
    result = np.broadcast_to(np.asarray(column_of(1, moduli), like=matrix), matrix.shape).copy()
    for bit in reversed(range(int(exponents.max()).bit_length() if exponents.size else 0)):
        square = np.empty_like(matrix, order="C")
        kernels.apply("multiply", (result, result), moduli, square)
        kernels.apply("multiply", (square, matrix), moduli, result)
        has_bit = (exponents >> np.uint64(bit)) & np.uint64(1) != 0
        result = np.where(has_bit[None], result, square)
    return result


def _outside(residues: Array, fitting: tuple[int, int], system: RNS) -> Array:
    """Boolean (*shape): numbers below the first or above the second of two values."""
    if fitting[0] > fitting[1]:
        return np.ones_like(residues[0], dtype=np.bool_)
    system = _measured(residues, fitting, system)
    low, high = system.known_range
    mask = np.zeros_like(residues[0], dtype=np.bool_)
    for value, sign, is_possible in zip(fitting, (-1, 1), (low < fitting[0], high > fitting[1]), strict=True):
        # Beyond the bound nothing is to be found, and the moduli that the bound needs do not hold the value.
        if is_possible:
            column = column_of(min(max(value, low), high), system.moduli, residues.ndim - 1)
            mask |= compare(residues, column, system) == sign
    return mask


def _measured(residues: Array, fitting: tuple[int, int], system: RNS) -> RNS:
    """The system, with the numbers' bound if some of them tell that it may leave nothing to compare."""
    lowest, highest = system.known_range
    fits = fitting[0] <= lowest and highest <= fitting[1]
    if fits or system.bound is not None or residues[0].size < MANY:
        return system
    matrix, enough = as_matrix(residues), min(fitting[1], -fitting[0]) if system.signed else fitting[1]
    sampled = sampled_bound(matrix, system)
    return system if sampled > enough else system.with_bound(measured_bound(matrix, system, enough, sampled))


def power_of_residues(residues: Array, exponent: int, moduli: ModuliSet) -> Array:
    """Powers modulo M of residues (n, *shape); long exponents go digit by digit, as Horner's rule does."""
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


def overflow_error(
    base: int,
    exponent: int,
    index: int,
    range_bits: int,
    *,
    signed: bool,
    kind: type[RNSOverflowError] = RNSOverflowError,
) -> RNSOverflowError:
    """The error of a power out of range, as :meth:`.RNSOverflowError.of_value` says, of whatever length."""
    if base.bit_length() * exponent <= _EXACT_BITS:
        return kind.of_value(base**exponent, index, range_bits, signed)
    negative = base < 0 and exponent % 2 == 1
    # In two's complement -2**k is one bit shorter than 2**k.
    least = (abs(base).bit_length() - 1) * exponent + int(not negative)
    return kind(index, least + signed, range_bits - 1, signed, negative, at_least=True)


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


def inverses_of(residues: Array, moduli: ModuliSet) -> tuple[Array, tuple[int, int] | None]:
    """Inverses modulo M of a chunk (n, *shape), and row and flat index of the first that there is not."""
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

    # Each level is some launches on a GPU, for which the trick has not been measured to pay.
    few = matrix.shape[1] if backend_name(matrix) == "cuda" else max(1, _FEW_RESIDUES // len(moduli))
    inverses = invert_together(matrix, multiply, invert, few)
    place = None
    if not inverses.all():
        failed = invert(matrix) == 0  # where all of a row have become 0
        index = int(failed.any(axis=0).argmax())
        place = int(failed[:, index].argmax()), index
    return inverses.reshape(residues.shape), place
