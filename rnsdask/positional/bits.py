"""Bits of chunks of positional numbers: logic, shifts, lengths.

As for Python's integers, a negative number has infinitely many ones above its sign.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from rnsdask.backend import Array, backend_name, is_any, kernels_of
from rnsdask.core.errors import NumberError, abbreviate
from rnsdask.core.layout import as_matrix
from rnsdask.core.place import Locate
from rnsdask.core.ways import must
from rnsdask.positional.operands import trimmed
from rnsdask.positional.system import Positional
from rnsdask.rns.blocks import matrices, with_overflow

LONGEST_SHIFT = 2**62
"""Shift that replaces all longer ones, with the same result: an int64, even with a number's bits added."""

LOGIC: dict[str, Callable[[Any, Any], Any]] = {
    "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor,
}
"""Operations of two operands that map canonical limbs to canonical limbs."""


def is_even(x: Array) -> Array:
    """Whether each number (k, *shape) is even: Boolean (*shape)."""
    return x[0] % 2 == 0


def logic(name: str, x: Array, y: Array) -> Array:
    """Apply an operation of `LOGIC` to two blocks (k, *shape), which broadcast."""
    like = y if backend_name(y) == "cuda" else x
    return LOGIC[name](np.asarray(x, like=like), np.asarray(y, like=like))


def invert(x: Array, system: Positional) -> Array:
    """Invert all bits of each number (k, *shape)."""
    out = ~x
    out[-1] = trimmed(out[-1], system.top_bits, system.signed)
    return out


def count(x: Array, system: Positional, what: str) -> Array:
    """Apply one of :data:`.LIMB_COUNTS` to each number (k, *shape): int64 (*shape)."""
    return kernels_of(x).positional_count(as_matrix(x), system.signed, what).reshape(x.shape[1:])


def right_shift(x: Array, counts: Array | int, system: Positional, locate: Locate = int) -> Array:
    """Divide numbers by powers of two, rounding down; ValueError for a negative count, naming the first.

    Counts are an int or an array (1, *shape) that broadcasts; a single count may be NumPy's on every
    processor.
    """
    (numbers, by), shape = matrices(x, _column(counts, x.ndim))
    bits = _check_counts(by, system, locate)
    out = kernels_of(numbers).positional_shift(numbers, -bits, system.top_bits, system.signed)
    return out.reshape(system.rows, *shape)


def left_shift(x: Array, counts: Array | int, system: Positional, mode: str, locate: Locate = int) -> Array:
    """Multiply by powers of two, with counts as in :func:`right_shift`, and overflow as in :func:`apply`."""
    (numbers, by), shape = matrices(x, _column(counts, x.ndim))
    bits = _check_counts(by, system, locate)
    kernels = kernels_of(numbers)
    out = kernels.positional_shift(numbers, bits, system.top_bits, system.signed)
    if mode != "wrap":
        lengths = kernels.positional_count(numbers, system.signed, "twos_length")
        negative = (numbers[-1] >> np.uint32(31) != 0) & system.signed
        shifts = np.asarray(bits, like=lengths)
        outside = ((lengths > 0) | negative) & (lengths + shifts > system.bits - system.signed)

        def error(index: int) -> Exception:
            place, by_place = (index if array.size > 1 else 0 for array in (lengths, shifts))
            count = int(by[0, by_place])
            length, is_cut = int(lengths[place]) + count, count >= LONGEST_SHIFT
            return system.overflow_of_length(length, bool(negative[place]), locate(index), at_least=is_cut)

        out = with_overflow(out, outside, mode, error)
    return out.reshape(len(out), *shape)


def _column(counts: Array | int, ndim: int) -> Array:
    """Convert a single integer to an array of counts."""
    if not isinstance(counts, int):
        return counts
    if counts < 0:
        raise NumberError(must("bits", f"not be negative, got {abbreviate(counts)}"))
    return np.full((1,) * ndim, min(counts, LONGEST_SHIFT), dtype=np.int64)


def _check_counts(counts: Array, system: Positional, locate: Locate) -> Array:
    """Convert counts (1, N) to int64 (N,), limited to those that shift everything out."""
    flat = counts[0]
    if flat.dtype.kind == "i" and is_any(flat < 0):
        index = int((flat < 0).argmax())
        raise NumberError(
            f"a number of bits to shift by must not be negative, got {abbreviate(int(flat[index]))} at flat "
            f"index {locate(index)}"
        )
    most = 32 * (system.rows + 1)
    if flat.dtype.itemsize == 1:  # the type may not hold the limit
        flat = flat.astype(np.int64)
    return np.minimum(flat, flat.dtype.type(min(most, np.iinfo(flat.dtype).max))).astype(np.int64)
