"""Absolute values of a chunk of numbers. No Dask in here."""

import numpy as np

from rnsdask.backend import Array, kernels_of
from rnsdask.core.layout import as_matrix
from rnsdask.core.place import Locate
from rnsdask.rns.blocks import column_of
from rnsdask.rns.compare import choose, differ, sign
from rnsdask.rns.system import RNS


def absolute(residues: Array, system: RNS, mode: str, locate: Locate = int) -> Array:
    """Absolute values of a chunk (n, *shape); with ``"flag"`` one row more, 1 where it is out of range.

    That is so of the lowest number of a signed range of even M alone. With ``"raise"``, an error names the
    index that `locate` makes of that in the chunk.
    """
    matrix = as_matrix(residues)
    negated = np.empty_like(matrix, order="C")
    kernels_of(matrix).apply("subtract", (column_of(0, system.moduli), matrix), system.moduli, negated)
    negative = sign(residues, system) < 0
    result = choose(negative[None], negated.reshape(residues.shape), residues)
    if mode == "wrap":
        return result
    lowest, highest = system.value_range
    if -lowest <= highest or system.known_magnitude < -lowest:  # a bound leaves less to compare by
        outside = np.zeros_like(negative)
    else:
        outside = ~differ(residues, column_of(lowest, system.moduli, residues.ndim - 1), system)
    if mode == "flag":
        return np.concatenate([result, outside[None].astype(np.uint32)])
    if outside.any():
        raise system.overflow_error(-lowest, locate(int(outside.argmax())))
    return result
