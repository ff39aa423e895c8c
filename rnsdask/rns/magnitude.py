"""How large numbers are: X/M of each as a double with an exponent of its own.

Fixed-point evaluations of 64 and 128 bits tell it of all numbers but those that are much smaller than M, or
at an end of the range. These pass through limbs: table products of O(n**2) operations a number, but far fewer
than refining an interval step by step takes.
"""

import numpy as np

from rnsdask.backend import Array, kernels_of
from rnsdask.constants import fixed_point_constants, reverse_constants, sufficient_prefix
from rnsdask.core.layout import as_matrix
from rnsdask.core.moduli import LIMB_BITS, ModuliSet
from rnsdask.rns.system import RNS

MAGNITUDE_ERROR = 2.0**-13
"""Upper bound of the relative error of :func:`magnitudes`."""

# An evaluation is taken for a number whose magnitude is at least 2**_ACCURACY_BITS times its error.
_ACCURACY_BITS = 14

# A limb, rounded up, divided by the size of M (1/2 to 1) is below 2**_LIMB_ROOM.
_LIMB_ROOM = LIMB_BITS + 2


def magnitudes(residues: Array, system: RNS) -> tuple[Array, Array]:
    """X/M of each number, as ``mantissa * 2**exponent``.

    Parameters
    ----------
    residues : array of uint32, shape (n, N)
        NumPy or CuPy.
    system : RNS
        Their number system: fewer moduli are looked at if it has a bound.

    Returns
    -------
    mantissas, exponents : arrays of float64 and int64, shape (N,)
        Mantissas are below 1 in magnitude, and 0 for 0 alone; the relative error is below `MAGNITUDE_ERROR`.
    """
    whole, signed = system.moduli, system.signed
    moduli = sufficient_prefix(whole, signed, system.bound)
    residues = as_matrix(residues[: len(moduli)])
    kernels = kernels_of(residues)
    mantissas, known = _evaluate(residues, moduli, signed, 64)
    exponents = np.zeros_like(mantissas, dtype=np.int64)
    (rest,) = (~known).nonzero()
    if rest.size:
        chosen = kernels.gather(residues, rest)
        mantissas[rest], known = _evaluate(chosen, moduli, signed, 128)
        small = rest[~known]
        if small.size:
            limbs = kernels.residues_to_limbs(
                kernels.gather(residues, small), reverse_constants(moduli, signed)
            )
            mantissa, exponent = leading_limbs(limbs, signed)
            mantissas[small] = mantissa / size_of(moduli) * 2.0**-_LIMB_ROOM
            exponents[small] = exponent + (_LIMB_ROOM - moduli.bits)
    if moduli is not whole:
        mantissas *= size_of(moduli) / size_of(whole) / 2
        exponents += moduli.bits - whole.bits + 1
    return mantissas, exponents


def size_of(moduli: ModuliSet) -> float:
    """M / 2**bits, from 1/2 to 1, rounded to a double."""
    return float(moduli.product >> max(moduli.bits - 64, 0)) / 2.0 ** min(moduli.bits, 64)


def _evaluate(residues: Array, moduli: ModuliSet, signed: bool, bits: int) -> tuple[Array, Array]:
    """X/M by a fixed-point evaluation, and which are known to be accurate.

    With t = 2**bits X/M, the evaluation is less than `width` below t, modulo 2**bits. So it is t for all but
    the numbers at the ends of the range, which are taken to be unknown together with many beside them, so
    that the doubles' own errors do not matter.
    """
    constants = fixed_point_constants(moduli, bits)
    words, _ = kernels_of(residues).fixed_point(residues, constants)
    high = words[-1].view(np.int32) if signed else words[-1]
    values = high.astype(np.float64)
    for word in words[-2::-1]:
        values = values * 2.0**LIMB_BITS + word
    size = abs(values)
    limit = 2.0 ** (bits - signed) * (1 - 2.0**-_ACCURACY_BITS)
    return values * 2.0**-bits, (size >= float(constants.width << _ACCURACY_BITS)) & (size < limit)


def leading_limbs(limbs: Array, signed: bool) -> tuple[Array, Array]:
    """Numbers of (N, L) limbs as doubles and exponents, divided by the weight of the leading limb.

    In two's complement if `signed`. The relative error of a double is below 1.5 * 2**-53 where the number is
    positive: it is rounded with the leading limb, and with the one before, which counts half as much.
    """
    count, limb_count = limbs.shape
    inverted = limbs[:, -1] >> np.uint32(LIMB_BITS - 1) if signed else np.zeros_like(limbs[:, 0])
    flip = np.uint32(0) - inverted  # all bits of a negative X, which leaves -X - 1
    mantissas, top = (
        np.zeros_like(limbs, shape=(count,), dtype=t, order="C") for t in (np.float64, np.int64)
    )
    below = np.zeros_like(mantissas)
    for k in range(limb_count):
        limb = limbs[:, k] ^ flip
        below = below * 2.0**-LIMB_BITS + limb  # the number so far, divided by 2**(32 k)
        mantissas = np.where(limb != 0, below, mantissas)
        top = np.where(limb != 0, k, top)
    one = np.ldexp(inverted.astype(np.float64), np.maximum(-LIMB_BITS * top, -1000).astype(np.int32))
    return np.where(inverted != 0, -(mantissas + one), mantissas), LIMB_BITS * top
