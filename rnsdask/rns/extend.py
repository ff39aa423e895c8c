"""Base extension: residues modulo other moduli, without leaving the residue number system.

``X = sum(u_i M_i) - q M`` with ``u_i = |x_i w_i|`` modulo m_i gives the residue of X modulo any number, once
q is known exactly: n multiply-adds for each new residue (docs/mathematics.md, "Base extension"). The
fixed-point estimate of q leaves open only numbers within n 2**-32 M of the end of the range where it wraps;
those few pass through limbs.
"""

from functools import lru_cache

import numpy as np

from rnsdask.backend import Array, kernels_of
from rnsdask.constants import extension_constants, forward_constants, reverse_constants
from rnsdask.constants.factors import CACHED_SETS
from rnsdask.core.errors import abbreviate
from rnsdask.core.layout import as_matrix
from rnsdask.core.moduli import ModuliSet, unchecked_set
from rnsdask.core.place import Locate
from rnsdask.rns.system import RNS


def base_extend(residues: Array, system: RNS, targets: ModuliSet) -> Array:
    """Residues (k, *shape) of each number modulo each of k targets, exact for any targets.

    Residues modulo common moduli are copied. As with Python's remainders, those of negative numbers are not
    negative. The targets' range need not hold the numbers: a single target gives a remainder.
    """
    system.check_words(residues)
    matrix = as_matrix(residues)
    result = np.empty_like(matrix, shape=(len(targets), matrix.shape[1]), order="C")
    own = {m: i for i, m in enumerate(system.moduli)}
    common = [k for k, m in enumerate(targets) if m in own]
    new = [k for k, m in enumerate(targets) if m not in own]
    kept = len(common)
    if new and common == list(range(kept)) == [own[targets[k]] for k in common]:  # same moduli, then new ones
        result[:kept] = matrix[:kept]
        _extend_to_new(matrix, system, _subset(targets, tuple(new)) if kept else targets, result[kept:])
        return result.reshape(len(targets), *residues.shape[1:])
    if new:
        rows = result if not common else np.empty_like(result, shape=(len(new), result.shape[1]), order="C")
        _extend_to_new(matrix, system, _subset(targets, tuple(new)) if common else targets, rows)
        if common:
            result[new] = rows
    if common:
        result[common] = matrix[[own[targets[k]] for k in common]]
    return result.reshape(len(targets), *residues.shape[1:])


@lru_cache(CACHED_SETS)
def _subset(moduli: ModuliSet, positions: tuple[int, ...]) -> ModuliSet:
    # Cached, so that the subset's own constants are kept.
    return unchecked_set(moduli[k] for k in positions)


def _extend_to_new(matrix: Array, system: RNS, targets: ModuliSet, result: Array) -> None:
    """Write residues modulo targets outside the system's moduli; ambiguous numbers pass through limbs."""
    kernels = kernels_of(matrix)
    signed = system.signed
    constants = extension_constants(system.moduli, targets, signed, system.bound)
    (ambiguous,) = kernels.base_extend(matrix, constants, result).nonzero()
    if not ambiguous.size:
        return
    source = constants.moduli
    chosen = kernels.gather(matrix[: len(source)], ambiguous)
    limbs = kernels.residues_to_limbs(chosen, reverse_constants(source, signed))
    exact = np.empty_like(result, shape=(len(targets), ambiguous.size), order="C")
    kernels.limbs_to_residues(limbs, forward_constants(targets, limbs.shape[1], signed), exact)
    result[:, ambiguous] = exact


def change_moduli(residues: Array, system: RNS, targets: ModuliSet, locate: Locate = int) -> Array:
    """Convert residues to another moduli set whose range holds every number.

    If neither the two ranges nor the bound prove that, it is checked: the new residues are extended back, and
    a number that does not fit comes back changed. That is a ValueError, which names the first such number and
    its index.
    """
    result, target = base_extend(residues, system, targets), RNS(targets, system.signed)
    if not holds_every_value(system, target):
        # The target's range is part of the system's, so a number that comes back equal did fit.
        _check_return(residues, system, base_extend(result, target, system.moduli), target, locate)
    return result


def holds_every_value(system: RNS, target: RNS) -> bool:
    """Whether the target's range is known to hold all numbers of a system."""
    (lowest, highest), (least, greatest) = system.known_range, target.value_range
    return least <= lowest and highest <= greatest


def _check_return(residues: Array, system: RNS, returned: Array, target: RNS, locate: Locate) -> None:
    matrix = residues.reshape(system.rows, -1)
    (different,) = (matrix != returned.reshape(matrix.shape)).any(axis=0).nonzero()
    if not different.size:
        return
    first = int(different[0])
    what = f"value {abbreviate(system.decode_at(matrix, first))} at flat index {locate(first)}"
    raise target.out_of_range(what, repr(target.moduli))
