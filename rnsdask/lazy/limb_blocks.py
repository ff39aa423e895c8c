"""Limbs of the numbers of a chunk, some numbers at a time."""

from collections.abc import Iterator

from rnsdask.backend import Array
from rnsdask.core.layout import as_matrix
from rnsdask.core.number_system import NumberSystem

# Words of numbers whose limbs are in memory at one time.
_BLOCK_WORDS = 2**22


def limb_blocks(block: Array, system: NumberSystem) -> Iterator[tuple[slice, Array]]:
    """Yield limbs (N, L) of the numbers of a chunk (rows, *shape), in order, with their flat positions.

    In two's complement if the system is signed. Of residues with a bound only the moduli that tell such
    numbers apart are read.
    """
    matrix = as_matrix(block)
    system, matrix = system.sufficient(matrix)
    count, step = matrix.shape[1], max(1, _BLOCK_WORDS // system.rows)
    for start in range(0, count, step):
        part = slice(start, min(start + step, count))
        yield part, system.limbs_of(matrix[:, part])
