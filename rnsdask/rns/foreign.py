"""Chunks of numbers in other programs' forms: residues under wide moduli, 32-bit limbs, bytes.

Residues under moduli of up to 64 bits become mixed-radix digits (Garner, 1959), whose weighted sums are the
residues under another moduli set: both take O(n^2) operations a number, without a large integer. The way back
is by limbs.
"""

import numpy as np
from numpy.typing import DTypeLike, NDArray

from rnsdask.backend import Array, is_any, kernels_of
from rnsdask.constants import (
    digits_to_residues,
    forward_constants,
    wide_digit_constants,
    wide_forward_constants,
)
from rnsdask.core.errors import abbreviate, out_of_range
from rnsdask.core.layout import as_matrix
from rnsdask.core.moduli import ModuliSet, as_integer, fewest_moduli
from rnsdask.core.number_system import NumberSystem
from rnsdask.core.place import Place
from rnsdask.core.wide_moduli import WideModuli
from rnsdask.rns.convert import limbs_to_ints
from rnsdask.rns.system import RNS

Moduli = ModuliSet | WideModuli


# ---- residues ---------------------------------------------------------------------------------------------


def system_of(moduli: Moduli, signed: bool, bound: int | None) -> RNS:
    """System for numbers with residues under some moduli: the same moduli, unless one is beyond 2**32.

    Otherwise it has the fewest 32-bit moduli that hold the range, with the range as its bound.
    """
    if isinstance(moduli, ModuliSet):
        return RNS(moduli, signed, bound)
    lowest, highest = moduli.value_range(signed)
    greatest = max(-lowest, highest)
    return RNS(
        fewest_moduli(lowest, highest, signed),
        signed,
        greatest if bound is None else min(as_integer(bound, "bound"), greatest),
        moduli,
    )


def words_of_residues(residues: Array, *, moduli: Moduli, system: RNS, trusted: bool, place: Place) -> Array:
    """Convert residues (n, *shape) of any integer type under some moduli to their :func:`system_of`.

    TypeError if an item of an array of objects is not an integer; ValueError if a residue is not below its
    modulus, naming the first number's index, unless all are `trusted`.
    """
    matrix = _checked(residues, moduli, trusted, place)
    if isinstance(moduli, ModuliSet):
        return matrix.astype(np.uint32, order="C").reshape(residues.shape)
    kernels = kernels_of(matrix)
    constants = wide_digit_constants(moduli, system.signed)
    digits = kernels.wide_digits(matrix.astype(np.uint64, copy=False), constants)
    words = np.empty_like(digits, shape=(system.rows, len(digits)), dtype=np.uint32, order="C")
    kernels.limbs_to_residues(digits.view(np.uint32), digits_to_residues(moduli, system.moduli), words)
    return words.reshape(system.rows, *residues.shape[1:])


def wide_residues(residues: Array, *, moduli: WideModuli, trusted: bool, place: Place) -> Array:
    """Convert residues (n, *shape) of any integer type under wide moduli to uint64, checked as above."""
    return _checked(residues, moduli, trusted, place).astype(np.uint64, order="C").reshape(residues.shape)


def _checked(residues: Array, moduli: Moduli, trusted: bool, place: Place) -> Array:
    matrix = residues.reshape(len(moduli), -1)
    if matrix.dtype == object:
        return _machine_words(matrix, moduli, place)
    if not trusted:
        _check_below(matrix, moduli, place)
    return matrix


def _check_below(matrix: Array, moduli: Moduli, place: Place) -> None:
    for i, (row, m) in enumerate(zip(matrix, moduli, strict=True)):
        # As unsigned 64-bit integers, which comparisons do not turn into floats.
        outside = row.astype(np.uint64, copy=False) > np.uint64(m - 1)
        if row.dtype.kind == "i":
            outside |= row < 0
        if is_any(outside):
            j = int(outside.argmax())
            raise _not_below(int(row[j]), i, m, j, place)


def _machine_words(matrix: NDArray[np.object_], moduli: Moduli, place: Place) -> NDArray[np.uint64]:
    """Check residues that are objects, and convert them to uint64."""
    words = np.empty(matrix.shape, dtype=np.uint64)
    for i, (row, m) in enumerate(zip(matrix.tolist(), moduli, strict=True)):
        for j, value in enumerate(row):
            residue = as_integer(value, f"residue {i} of the number at flat index {place.flat_index(j)}")
            if not 0 <= residue < m:
                raise _not_below(residue, i, m, j, place)
            words[i, j] = residue
    return words


def _not_below(residue: int, row: int, m: int, j: int, place: Place) -> ValueError:
    return ValueError(
        f"residue {abbreviate(residue)} of the number at flat index {place.flat_index(j)} is not from 0 to "
        f"below its modulus {m} (row {row})"
    )


def residues_of_words(
    words: Array, *, system: NumberSystem, moduli: Moduli, wrap: bool, dtype: DTypeLike, place: Place
) -> Array:
    """Residues (k, *shape) of numbers under any moduli, nonnegative also for negative numbers.

    ValueError for a number out of the range of these moduli, naming its index, unless numbers may `wrap`.
    """
    shape = words.shape[1:]
    limbs = system.limbs_of(as_matrix(words))
    kernels, count = kernels_of(limbs), limbs.shape[1]
    if isinstance(moduli, ModuliSet):
        constants = forward_constants(moduli, count, system.is_signed)
        if not wrap:
            _check_range(limbs, kernels.first_outside(limbs, constants), moduli, system.is_signed, place)
        residues = np.empty_like(limbs, shape=(len(moduli), len(limbs)), order="C")
        kernels.limbs_to_residues(limbs, constants, residues)
    else:
        wide = wide_forward_constants(moduli, count, system.is_signed)
        if not wrap:
            _check_range(limbs, kernels.first_outside(limbs, wide), moduli, system.is_signed, place)
        residues = kernels.limbs_to_wide_residues(limbs, wide)
    return residues.astype(dtype, copy=False).reshape(len(moduli), *shape)


def _check_range(limbs: Array, outside: int | None, moduli: Moduli, signed: bool, place: Place) -> None:
    if outside is None:
        return
    value = limbs_to_ints(limbs[outside : outside + 1], signed)[0]
    what = f"value {abbreviate(value)} at flat index {place.flat_index(outside)}"
    kind = "signed" if signed else "unsigned"
    raise out_of_range(what, moduli.value_range(signed), kind, repr(moduli))


# ---- limbs and bytes --------------------------------------------------------------------------------------


def words_of_limbs(limbs: Array, *, system: NumberSystem, signed: bool, place: Place) -> Array:
    """Convert limbs (L, *shape) of uint32, uint64 or bytes, least significant first, to words (rows, *shape).

    `signed` limbs are in two's complement. A number out of the system's range is a ValueError that names its
    index.
    """
    matrix = np.moveaxis(limbs, 0, -1).reshape(-1, len(limbs))
    if matrix.dtype == np.uint8:
        matrix = widened(matrix, signed)
    matrix = matrix.astype(matrix.dtype.newbyteorder("="), order="C", copy=False).view(np.uint32)
    words = system.words_of_limbs(matrix, signed, place.flat_index)
    return words.reshape(system.rows, *limbs.shape[1:])


def limbs_of_words(
    words: Array, *, system: NumberSystem, count: int, dtype: DTypeLike, reverse: bool, place: Place
) -> Array:
    """Convert words to limbs (count, *shape) of uint32, uint64 or bytes, in two's complement if signed.

    The least significant comes first, or last with `reverse`. A number that does not fit is a ValueError that
    names its index.
    """
    limbs = system.limbs_of(as_matrix(words))
    size = np.dtype(dtype).itemsize
    lost = first_lost(limbs, count * size, system.is_signed)
    if lost is not None:
        value = limbs_to_ints(limbs[lost : lost + 1], system.is_signed)[0]
        what = f"the number at flat index {place.flat_index(lost)}, {abbreviate(value)}"
        kind = "signed" if system.is_signed else "unsigned"
        raise ValueError(f"{what}, does not fit into {count * size} bytes, {kind}")
    octets = resized(limbs, count * size, system.is_signed)
    matrix = octets.view(dtype).T
    return (matrix[::-1] if reverse else matrix).reshape(count, *words.shape[1:])


def widened(octets: Array, signed: bool) -> Array:
    """Extend numbers (N, W) of bytes to whole limbs: uint32 (N, L)."""
    width = octets.shape[1]
    octets = np.asarray(octets, order="C", like=octets)
    if width % 4:
        wide = np.empty_like(octets, shape=(len(octets), width + -width % 4), order="C")
        wide[:, :width] = octets
        wide[:, width:] = _sign_bytes(octets[:, -1], signed)[:, None]
        octets = wide
    return octets.view("<u4").astype(np.uint32, copy=False)


def first_lost(limbs: Array, width: int, signed: bool) -> int | None:
    """Row of the first number of limbs (N, L) that does not fit into `width` bytes, or None."""
    octets = limbs.view(np.uint8)
    if not octets.size:
        return None
    fill = _sign_bytes(octets[:, min(width, octets.shape[1]) - 1], signed)
    lost = (octets[:, width:] != fill[:, None]).any(axis=1)
    return int(lost.argmax()) if is_any(lost) else None


def resized(limbs: Array, width: int, signed: bool) -> Array:
    """Convert limbs (N, L) of numbers that fit to little-endian bytes (N, width)."""
    octets = limbs.view(np.uint8)
    given = octets.shape[1]
    result = np.empty_like(octets, shape=(len(octets), width), order="C")
    result[:, :given] = octets[:, :width]
    if width > given:
        result[:, given:] = _sign_bytes(octets[:, -1], signed)[:, None]
    return result


def _sign_bytes(top: Array, signed: bool) -> Array:
    """Byte that extends each integer, from its most significant byte."""
    return (top >> 7) * np.uint8(255 if signed else 0)
