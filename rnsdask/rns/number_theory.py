"""Bit lengths of a chunk's numbers: from X/M, except near powers of two, where limbs decide."""

from collections.abc import Callable

import numpy as np

from rnsdask.backend import Array, empty_like, kernels_of, to_backend
from rnsdask.constants import length_constants, reverse_constants, sufficient_prefix
from rnsdask.core.layout import as_matrix
from rnsdask.core.moduli import ModuliSet
from rnsdask.rns.blocks import batches
from rnsdask.rns.bounds import narrowed
from rnsdask.rns.order import FEW
from rnsdask.rns.system import RNS

_EVALUATIONS = (64, 128)
"""Fraction bits of the evaluations that decide lengths, each for the numbers that the one before leaves."""

_MOST_LISTED = 2**16
"""Most undecided numbers whose indices a GPU writes without a kernel of CuPy's."""


def bit_length(residues: Array, system: RNS) -> Array:
    """Bits of the magnitude of each number of a chunk (n, *shape), 0 for 0: int64 (*shape)."""
    matrix = as_matrix(residues)
    if not matrix.shape[1]:
        return np.empty_like(matrix, shape=residues.shape[1:], dtype=np.int64, order="C")
    system = narrowed(system, matrix) or system
    moduli = sufficient_prefix(system.moduli, system.signed, system.bound)
    return lengths_of(matrix[: len(moduli)], moduli, system.signed).reshape(residues.shape[1:])


def lengths_of(
    matrix: Array, moduli: ModuliSet, signed: bool, evaluations: tuple[int, ...] = _EVALUATIONS
) -> Array:
    """Bit lengths (N,) of the magnitudes of numbers (n, N), by evaluations of X/M, then by limbs: int64."""
    kernels = kernels_of(matrix)
    if not evaluations:
        limbs = kernels.residues_to_limbs(matrix, reverse_constants(moduli, signed))
        rows = empty_like(limbs, limbs.shape[::-1])
        kernels.transpose(limbs, rows)
        return kernels.positional_count(rows, signed, "length")
    first, *others = evaluations
    lengths, decided = kernels.bit_lengths(matrix, length_constants(moduli, signed, first))
    decide(lengths, decided, matrix, lambda left: lengths_of(left, moduli, signed, tuple(others)))
    return lengths


def decide(lengths: Array, decided: Array, words: Array, measure: Callable[[Array], Array]) -> None:
    """Write the lengths of the undecided numbers of words (rows, N), which `measure` finds by their words.

    A few numbers are measured on the host.
    """
    kernels = kernels_of(words)
    left = kernels.find_unset(decided, _MOST_LISTED)
    for part in batches(left, len(words)):
        numbers = kernels.gather(words, part)
        kernels.put(measure(to_backend(numbers, "cpu") if left.size <= FEW else numbers), part, lengths)
