"""Fixed-point interval evaluation of X/M: integer bounds, one integer multiply-add a residue."""

from dataclasses import dataclass

import numpy as np

from rnsdask.backend import Array, kernels_of
from rnsdask.constants import FixedPointConstants, fixed_point_constants
from rnsdask.core.layout import as_matrix, check_residue_array
from rnsdask.core.moduli import ModuliSet
from rnsdask.rns.exact_order import are_near_top


@dataclass(frozen=True)
class FixedPointInterval:
    """Bounds of ``t = 2**bits * |2**scale * X|_M / M``, 0 <= t < 2**bits, for each number X.

    ``low`` and ``upp`` hold integers of `bits` bits as uint32 words, shape (bits/32, *shape), the least
    significant first: ``low <= floor(t) <= upp``. For X = 0 both are 0.
    """

    low: Array
    upp: Array
    bits: int
    scale: int


def fixed_point_interval(
    residues: Array, moduli: ModuliSet, bits: int | None = None, scale: int = 0
) -> FixedPointInterval:
    """Evaluate the interval of ``2**scale * X/M`` modulo 1 in fixed point.

    Parameters
    ----------
    residues : array of uint32, shape (n, *shape)
        NumPy or CuPy.
    moduli : ModuliSet
        The set of n moduli.
    bits : {64, 96, 128}, optional
        Fraction bits; without it, the fewest that make ``upp - low`` at most ``2**(bits - 24)``.
    scale : int
        A refinement: the result is that of ``2**scale * X`` modulo M.

    Raises
    ------
    TypeError, ValueError
        If residues do not fit the set, `bits` is another number or `scale` is negative.
    """
    check_residue_array(residues, moduli)
    constants = fixed_point_constants(moduli, bits, scale)
    matrix = as_matrix(residues)
    words, zero = kernels_of(matrix).fixed_point(matrix, constants)
    low, upp = _bounds(words, zero, matrix, constants)
    shape = (words.shape[0], *residues.shape[1:])
    return FixedPointInterval(low.reshape(shape), upp.reshape(shape), constants.bits, scale)


def _bounds(sums: Array, zero: Array, residues: Array, constants: FixedPointConstants) -> tuple[Array, Array]:
    """Turn the sums T of x_i c_i into bounds: floor(t) lies in [T, T + width] modulo 2**bits."""
    low, upp, wraps = sums, *_add(sums, constants.width)
    (unclear,) = (wraps & ~zero).nonzero()
    if unclear.size:
        # T + width passed 2**bits: t is near the top, or near 0 and T is a negative number.
        top = _near_top(residues, unclear, constants)
        low, upp = low.copy(), upp
        low[:, unclear[~top]] = 0
        upp[:, unclear[top]] = 0xFFFFFFFF
    upp[:, zero] = 0
    return low, upp


def _add(words: Array, addend: int) -> tuple[Array, Array]:
    """Add an integer to numbers of 32-bit words; the sums' words and whether they overflow."""
    total = words.astype(np.uint64)
    for k in range(len(total)):
        total[k] += (addend >> 32 * k) & 0xFFFFFFFF
        if k:
            total[k] += total[k - 1] >> np.uint64(32)
    overflow = (total[-1] >> np.uint64(32)).astype(bool)
    return (total & np.uint64(0xFFFFFFFF)).astype(np.uint32), overflow


def _near_top(residues: Array, indices: Array, constants: FixedPointConstants) -> Array:
    """Whether 2**scale * X modulo M is near M, for the numbers at `indices`, known to be near 0 or M."""
    moduli = constants.moduli
    factors = np.array([pow(2, constants.scale, m) for m in moduli], dtype=np.uint64)[:, None]
    sizes = np.array(list(moduli), dtype=np.uint64)[:, None]
    chosen = kernels_of(residues).gather(residues, indices).astype(np.uint64)
    # Below 2**32 each, so the product of a residue and a factor fits 64 bits.
    chosen = chosen * np.asarray(factors, like=chosen) % np.asarray(sizes, like=chosen)
    return are_near_top(chosen.astype(np.uint32), moduli, signed=False)
