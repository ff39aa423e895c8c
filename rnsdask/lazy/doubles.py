"""Rounding to doubles, and logarithms, by the numbers' leading limbs; lazy on Dask."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from rnsdask.backend import Array
from rnsdask.core import rows
from rnsdask.core.errors import abbreviate
from rnsdask.core.layout import as_matrix
from rnsdask.core.number_system import NumberSystem
from rnsdask.core.place import Place
from rnsdask.lazy.elementwise import entry_of
from rnsdask.lazy.map import map_chunks
from rnsdask.lazy.operands import Numbers
from rnsdask.rns.evaluation import leading_limbs
from rnsdask.typing import PlainArray

# Words of the numbers whose limbs are in memory at one time.
BLOCK_WORDS = 2**22


def limb_blocks(block: Array, system: NumberSystem) -> Iterator[tuple[slice, Array]]:
    """Yield limbs (N, L) of the numbers of a chunk (rows, *shape), in order, with their flat positions.

    Limbs are in two's complement if the system is signed. For residues with a bound, only as many moduli are
    read as the bound needs.
    """
    matrix = as_matrix(block)
    system, matrix = system.sufficient(matrix)
    count, step = matrix.shape[1], max(1, BLOCK_WORDS // system.rows)
    for start in range(0, count, step):
        part = slice(start, min(start + step, count))
        yield part, system.limbs_of(matrix[:, part])


_LIMB_BITS = 32

_FLOATS = (np.dtype(np.float32), np.dtype(np.float64))

_KEPT_BITS = 63
"""Leading bits of a number that are kept. The last bit is also set if a later bit is 1."""


def to_floats(x: Numbers, dtype: np.dtype[Any]) -> Any:
    """Round each number to the nearest float of a type, ties to even.

    OverflowError if a number is beyond the greatest float. It names the number's flat index; for a lazy array
    when it is computed.
    """
    if dtype not in _FLOATS:
        raise TypeError(f"astype rounds to float32 or float64, got {dtype}")
    entry_of(rows.bit_length, x, name=f"astype({dtype})")
    return map_chunks(_round_block, x.words, dtype=dtype, located=True, system=x.system, kind=dtype)


def _round_block(block: Array, *, system: NumberSystem, kind: np.dtype[Any], place: Place) -> Array:
    """Convert a chunk to floats (1, *shape)."""
    matrix = as_matrix(block)
    out = np.empty_like(matrix, shape=(matrix.shape[1],), dtype=kind, order="C")
    for part, limbs in limb_blocks(block, system):
        out[part] = _round(limbs, system.is_signed, kind)
    (lost,) = np.isinf(out).nonzero()
    if lost.size:
        index = int(lost[0])
        (value,) = system.decode(matrix[:, index : index + 1])
        raise OverflowError(
            f"the number at flat index {place.flat_index(index)} is {abbreviate(int(value))}, beyond {kind}: "
            f"at most {np.finfo(kind).max:.3g}; x.log2() gives logarithms of numbers of any size"
        )
    return out.reshape(1, *block.shape[1:])


def _round(limbs: Array, signed: bool, kind: np.dtype[Any]) -> Array:
    """Round numbers of limbs (N, L), in two's complement if `signed`, to floats or infinities.

    Only the conversion of a 64-bit integer rounds, to nearest, ties to even. The bits that the integer lacks
    could only break a tie; its last bit does so for them.
    """
    count, length = limbs.shape
    negative = limbs[:, -1] >> np.uint32(_LIMB_BITS - 1) if signed else np.zeros_like(limbs[:, 0])
    flip, carry = np.uint32(0) - negative, negative.astype(np.uint64)
    sizes = np.zeros_like(limbs, shape=(count, length + 2), order="C")  # with two limbs of 0 at the low end
    top, lowest = (np.full_like(carry, k, dtype=np.int64) for k in (2, length + 2))
    for k in range(2, length + 2):
        total = (limbs[:, k - 2] ^ flip) + carry
        sizes[:, k] = total & np.uint64(0xFFFFFFFF)
        carry = total >> np.uint64(_LIMB_BITS)
        is_some = sizes[:, k] != 0
        lowest = np.where(is_some & (lowest > k), k, lowest)
        top = np.where(is_some, k, top)
    first, second, third = (
        np.take_along_axis(sizes, (top - k)[:, None], 1)[:, 0].astype(np.uint64) for k in range(3)
    )
    used = np.frexp(first.astype(np.float64))[1].astype(np.int64)  # bits of the leading limb
    shift = used.astype(np.uint64)
    leading = (first << np.uint64(_LIMB_BITS) | second) << (np.uint64(_LIMB_BITS) - shift) | third >> shift
    rest = third & ((np.uint64(1) << shift) - np.uint64(1))
    is_more = (leading & np.uint64(1) != 0) | (rest != 0) | (lowest < top - 2)
    kept = (leading >> np.uint64(1) | is_more.astype(np.uint64)).astype(np.int64)
    exponents = _LIMB_BITS * (top - 2) + used - _KEPT_BITS
    with np.errstate(over="ignore"):
        floats = np.ldexp(kept.astype(kind), exponents.astype(np.int32))
    return np.where(negative != 0, -floats, floats)


def log2(x: Numbers) -> PlainArray[np.float64]:
    """Logarithm to the base 2 of each number, as ``numpy.log2``, even beyond the range of doubles.

    Parameters
    ----------
    x : RNSArray, IntervalRNSArray or PositionalArray
        The numbers.

    Returns
    -------
    array of float64, shape of `x`
        NumPy or CuPy; lazy on Dask. The relative error is below ``2**-50``, and logarithms of powers of two
        are exact. It is -inf for 0 and nan for a negative number, with NumPy's warnings (``numpy.errstate``).

    Raises
    ------
    TypeError
        If `x` is not an array of integers.
    """
    entry_of(rows.bit_length, x, name="log2")
    found: PlainArray[np.float64] = map_chunks(_log2_block, x.words, dtype=np.float64, system=x.system)
    return found


def _log2_block(block: Array, *, system: NumberSystem) -> Array:
    """Logarithms of a chunk (rows, *shape): float64 (1, *shape)."""
    matrix = as_matrix(block)
    out = np.empty_like(matrix, shape=(matrix.shape[1],), dtype=np.float64, order="C")
    for part, limbs in limb_blocks(block, system):
        sizes, exponents = leading_limbs(limbs, system.is_signed)
        # For a mantissa of 0 or below, NumPy returns the logarithm and warns. Errors: the two roundings of a
        # mantissa are below 1.5 * 2**-53; its logarithm and the sum add 2**-52 and 2**-53.
        mantissas, shifts = np.frexp(sizes)
        out[part] = np.log2(mantissas) + (shifts + exponents)
    return out.reshape(1, *block.shape[1:])
