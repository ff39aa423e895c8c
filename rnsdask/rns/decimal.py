"""Conversion between residues and decimal limbs, base 10**9: what text of integers consists of.

Limbs are ``uint32`` of shape ``(N, L)``, the least significant first.
"""

import numpy as np
from numpy.typing import NDArray

from rnsdask.backend import cpu
from rnsdask.constants import decimal_constants, decimal_forward_constants
from rnsdask.core.layout import as_matrix, check_residue_array
from rnsdask.core.moduli import ModuliSet


def decimal_to_residues(
    limbs: NDArray[np.uint32], moduli: ModuliSet, signed: bool = False
) -> NDArray[np.uint32]:
    """Convert decimal limbs to residues, of shape (n, N).

    Parameters
    ----------
    limbs : uint32 array of shape (N, L)
        Of signed integers in ten's complement: the last limb is 1 for a negative one, and counts
        ``-10**(9 (L - 1))``.
    moduli : ModuliSet
        The set of n moduli.
    signed : bool
        Whether the range is the symmetric one.

    Raises
    ------
    ValueError
        If a number is out of the set's range.
    """
    constants = decimal_forward_constants(moduli, limbs.shape[1], bool(signed))
    outside = cpu.first_outside(limbs, constants)
    if outside is not None:
        raise ValueError(f"the number at position {outside} is out of the range of the moduli set")
    residues = np.empty((len(moduli), len(limbs)), dtype=np.uint32)
    cpu.limbs_to_residues(limbs, constants, residues)
    return residues


def residues_to_decimal(
    residues: NDArray[np.uint32], moduli: ModuliSet, signed: bool = False
) -> tuple[NDArray[np.uint32], NDArray[np.bool_]]:
    """Convert residues to decimal limbs, by the Chinese remainder theorem.

    Returns
    -------
    limbs : uint32 array of shape (N, L)
        The numbers' magnitudes.
    negative : bool array of shape (N,)
        Which numbers are negative; none unless `signed`.
    """
    check_residue_array(residues, moduli)
    return cpu.residues_to_decimal(as_matrix(residues), decimal_constants(moduli, bool(signed)))
