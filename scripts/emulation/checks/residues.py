"""Residues: their conversion to limbs and their running sums."""

from typing import Any
from unittest.mock import patch

import numpy as np

from emulation.checks import Place, check, words
from rnsdask.constants import reverse_constants
from rnsdask.core.moduli import ModuliSet


@check
def residues_of_few_numbers(kernels: Any, place: Place) -> list[Any]:
    results = []
    for bits, count in ((600, 33), (2100, 1)):
        moduli = ModuliSet.for_bits(bits)
        least = np.uint32(min(moduli))
        residues = words(len(moduli), count, 21) % least
        residues[:, 0] = [m - 1 for m in moduli]
        for signed in (False, True):
            constants = reverse_constants(moduli, signed)
            results.append(kernels.residues_to_limbs(place(residues), constants))
    return results


@check
def running_sums(kernels: Any, place: Place) -> list[Any]:
    """Of residues: all lines at once, some at a time, and parts of one."""
    moduli, results = ModuliSet.for_bits(150), []
    n, least = len(moduli), np.uint32(min(moduli))
    for block in (2**22, 90, 7):
        for shape in ((1, 1500, 1), (3, 40, 7), (2, 1, 5)):
            lines = words(n, int(np.prod(shape)), 11).reshape(n, *shape) % least
            starts = words(n, shape[0] * shape[2], 12).reshape(n, shape[0], shape[2]) % least
            with patch("rnsdask.backend.cuda.scan._BLOCK", block):
                results.append(kernels.running_sums(place(lines), place(starts), moduli))
    return results
