"""Chunks of signed integers with stored intervals from limbs, and back."""

import numpy as np

from rnsdask.backend import Array, kernels_of
from rnsdask.constants import forward_constants, reverse_constants
from rnsdask.core.errors import abbreviate, out_of_range
from rnsdask.core.moduli import LIMB_BITS, ModuliSet
from rnsdask.core.place import Locate
from rnsdask.interval_rns import layout
from rnsdask.rns.convert import limbs_to_ints


def limbs_of_columns(columns: Array, moduli: ModuliSet) -> Array:
    """Limbs (N, L) in two's complement of the numbers of columns (n + 6, N)."""
    residues = layout.residues_of(columns, moduli)
    magnitudes = kernels_of(residues).residues_to_limbs(residues, reverse_constants(moduli, False))
    if (moduli.product - 1).bit_length() == LIMB_BITS * magnitudes.shape[1]:
        magnitudes = np.concatenate([magnitudes, np.zeros_like(magnitudes[:, :1])], axis=1)
    return _negated(magnitudes, layout.is_negative(columns, moduli))


def columns_of_limbs(limbs: Array, moduli: ModuliSet, signed: bool, locate: Locate = int) -> Array:
    """Columns (n + 6, N) of numbers of limbs (N, L), in two's complement if `signed`.

    Raises
    ------
    ValueError
        If a magnitude is M or more; the message names the first number and its index.
    """
    negative = limbs[:, -1] >> 31 != 0 if signed else np.zeros_like(limbs[:, 0], dtype=np.bool_)
    magnitudes = _negated(limbs, negative) if signed else limbs
    kernels = kernels_of(limbs)
    constants = forward_constants(moduli, limbs.shape[1])
    outside = kernels.first_outside(magnitudes, constants)
    if outside is not None:
        value = limbs_to_ints(limbs[outside : outside + 1], signed)[0]
        what = f"value {abbreviate(value)} at flat index {locate(outside)}"
        raise out_of_range(what, (1 - moduli.product, moduli.product - 1), "", "the moduli set")
    residues = np.empty_like(limbs, shape=(len(moduli), len(limbs)), order="C")
    kernels.limbs_to_residues(magnitudes, constants, residues)
    return layout.evaluated(residues, moduli, negative)


def _negated(limbs: Array, negative: Array) -> Array:
    """Limbs (N, L) modulo 2**(32 L) with the sign of some numbers changed."""
    result = np.empty_like(limbs)
    carry = negative
    for k in range(limbs.shape[1]):
        # The complement, plus a carry that passes on while all lower limbs are 0.
        limb = limbs[:, k]
        result[:, k] = np.where(negative, ~limb, limb) + carry.astype(np.uint32)
        carry = carry & (limb == 0)
    return result
