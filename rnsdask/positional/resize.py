"""Limbs of numbers as those of the same numbers in more or fewer bits. No Dask in here."""

import numpy as np

from rnsdask.backend import Array


def limb_beyond(words: Array, signed: bool) -> Array:
    """The limb (N,) that goes on above each number of (k, N) limbs: of its sign, or 0."""
    top = words[-1]
    return np.uint32(0) - (top >> np.uint32(31)) if signed else np.zeros_like(top)


def trimmed(top: Array, top_bits: int, signed: bool) -> Array:
    """Highest limbs of which some bits are used: the others are 0, or copies of the sign."""
    unused = np.uint32(32 - top_bits)
    if not signed:
        return (top << unused) >> unused
    return ((top << unused).view(np.int32) >> np.int32(unused)).view(np.uint32)


def resized(words: Array, signed: bool, rows: int, top_bits: int, to_signed: bool) -> tuple[Array, Array]:
    """Numbers (k, N) in another number of bits, modulo a power of two, and which of them are out of range.

    Parameters
    ----------
    words : array of uint32, shape (k, N)
        NumPy or CuPy.
    signed, to_signed : bool
        Whether the numbers given, and those of the result, are in two's complement.
    rows, top_bits : int
        Limbs of the result, and bits of the highest one.

    Returns
    -------
    (words, outside)
        uint32 (rows, N) and Boolean (N,).
    """
    given = len(words)
    common, fill = min(rows, given), limb_beyond(words, signed)
    out = np.empty_like(words, shape=(rows, words.shape[1]), order="C")
    out[:common] = words[:common]
    out[common:] = fill
    top = out[-1].copy()
    out[-1] = trimmed(top, top_bits, to_signed)
    new_fill = limb_beyond(out, to_signed)
    # The limbs are the same below the highest one; from there on each number goes on by its sign.
    outside = (out[-1] != top) | (fill != new_fill)
    if given > rows:
        outside |= (words[rows:] != new_fill).any(axis=0)
    return out, outside
