"""Lengths in bits of a chunk's signed integers, by their stored intervals. No Dask in here."""

import numpy as np

from rnsdask.backend import Array
from rnsdask.core.layout import as_matrix
from rnsdask.interval_rns import layout
from rnsdask.interval_rns.system import IntervalRNS
from rnsdask.rns.number_theory import decide_lengths, lengths_of


def bit_length(columns: Array, system: IntervalRNS) -> Array:
    """Bits of the magnitude of each number of a chunk (n + 6, *shape), 0 of 0: int64 (*shape)."""
    matrix, moduli = as_matrix(columns), system.moduli
    upp, exponent = (layout.part_of(matrix, moduli, name) for name in ("upp", "exponent"))
    lengths, decided = lengths_of(upp, exponent.astype(np.int64), layout.ACCURACY, moduli)
    decide_lengths(lengths, decided, matrix, system)
    return lengths.reshape(columns.shape[1:])
