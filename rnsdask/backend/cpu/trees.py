"""Conversion of few numbers of many moduli by trees of products, and where it takes less time than tables.

Tables take time to make, too, and n**2 words. So a tree takes numbers until it has taken as much longer than
kernels as the table takes to be made; then the table is made. In all that is at most twice as long as the
better of both ways.
"""

import math
from dataclasses import dataclass

import gmpy2
import numpy as np
from numpy.typing import NDArray

from rnsdask.backend.cpu.text import format_decimal, ints_to_limbs, limbs_to_ints
from rnsdask.constants import ExtensionConstants, ForwardConstants, ReverseConstants
from rnsdask.constants.convert import Spent
from rnsdask.constants.digits import MOST_DIGIT_BITS
from rnsdask.constants.remainders import remainder_tree
from rnsdask.core.moduli import LIMB_BITS

FEWEST_MODULI = 96
"""Moduli from which a tree is worth it."""

# Seconds of a tree for each modulus of a number, and for a call, measured on an AMD EPYC.
_NODE_SECONDS, _CALL_SECONDS = 6e-7, 5e-5

# Numbers that kernels convert together.
_TOGETHER = 16


@dataclass(frozen=True)
class Seconds:
    """Seconds for each element of a table: to convert 16 numbers by it, and to make it.

    Tables of fewer than the `fewest` elements are always made.
    """

    use: float
    make: float
    fewest: int = 0


BY_DIGITS = Seconds(2e-10, 3e-8)
BY_LIMBS = Seconds(2e-9, 1.5e-8)

BY_GPU = Seconds(5e-12, 2e-8, fewest=2**22)
"""Tables of a GPU are made on the host and copied."""

# Nodes of one level that are in memory at a time.
_MOST_NODES = 2**17


def is_quicker(spent: Spent, numbers: int, moduli: tuple[int, int], table: Seconds) -> bool:
    """Whether trees convert the numbers of a call; their time beyond a kernel's is added to `spent`.

    `moduli` are the lengths of the table's axes.
    """
    elements, nodes = moduli[0] * moduli[1], max(moduli)
    if min(moduli) < FEWEST_MODULI or elements < table.fewest or numbers == 0:
        return False
    kernel = -(-numbers // _TOGETHER) * elements * table.use
    longer = numbers * nodes * _NODE_SECONDS + _CALL_SECONDS - kernel
    if longer > 0 and spent.seconds + longer > elements * table.make:
        return False
    spent.seconds += max(0.0, longer)
    return True


def may_need_tables(numbers: int, moduli: int, *, gpu: bool = False) -> bool:
    """Whether a number of conversions, in calls of any size, may need the tables of all pairs of moduli.

    :func:`is_quicker` has them made once trees have taken as long as it takes to make a table.
    """
    # M is at least the factorial of how many coprime moduli there are.
    has_digits = math.lgamma(moduli + 1) <= MOST_DIGIT_BITS * math.log(2)
    on_host = (BY_DIGITS, BY_LIMBS) if has_digits else (BY_LIMBS,)
    for table in (BY_GPU,) if gpu else on_host:
        if moduli < FEWEST_MODULI or moduli**2 < table.fewest:
            return True
        kernel = moduli**2 * table.use / _TOGETHER
        longer = max(0.0, moduli * _NODE_SECONDS + _CALL_SECONDS - kernel)
        if numbers * longer > moduli**2 * table.make:
            return True
    return False


def _blocks(count: int, moduli: int) -> list[slice]:
    step = max(1, _MOST_NODES // moduli)
    return [slice(first, first + step) for first in range(0, count, step)]


def limbs_to_residues(
    limbs: NDArray[np.uint32], constants: ForwardConstants, residues: NDArray[np.uint32]
) -> None:
    """Write residues (n, N) of (N, L) limbs."""
    tree = remainder_tree(constants.moduli)
    for block in _blocks(len(limbs), len(residues)):
        residues[:, block] = tree.residues_of(_integers(limbs[block], constants))


def _integers(limbs: NDArray[np.uint32], constants: ForwardConstants) -> list[int]:
    """Numbers of limbs, in two's complement or the complement of their base."""
    if constants.base == 2**LIMB_BITS:
        return limbs_to_ints(limbs, constants.flip != 0)
    is_signed = constants.flip != 0
    digits = np.ascontiguousarray(limbs[:, : limbs.shape[1] - is_signed])
    lines = format_decimal(digits, np.zeros(len(digits), dtype=np.bool_)).tobytes().split()
    complements = limbs[:, -1].tolist() if is_signed else [0] * len(lines)
    end = constants.base ** digits.shape[1]
    return [int(gmpy2.mpz(line)) - c * end for line, c in zip(lines, complements, strict=True)]


def residues_to_limbs(
    residues: NDArray[np.uint32], constants: ReverseConstants, limbs: NDArray[np.uint32]
) -> None:
    """Write (N, L) limbs of residues (n, N)."""
    tree = remainder_tree(constants.moduli)
    for block in _blocks(len(limbs), len(residues)):
        values = tree.values_of(residues[:, block], constants.signed)
        fitting = ints_to_limbs(values, constants.signed, limbs[block])
        assert fitting == len(values)


def base_extend(
    residues: NDArray[np.uint32], constants: ExtensionConstants, result: NDArray[np.uint32]
) -> None:
    """Write residues (k, N) modulo the targets of residues (n, N), none of them ambiguous."""
    source, targets = remainder_tree(constants.moduli), remainder_tree(constants.targets)
    for block in _blocks(residues.shape[1], max(len(residues), len(result))):
        result[:, block] = targets.residues_of(source.values_of(residues[:, block], constants.signed))
