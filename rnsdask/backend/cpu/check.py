"""Whether words are residues, and what reads all of them."""

import numpy as np
from numpy.typing import NDArray

from rnsdask.backend.cpu.extension import _cpu
from rnsdask.backend.protocol import Array
from rnsdask.constants import last_residues
from rnsdask.core.moduli import ModuliSet


def first_invalid(residues: Array, moduli: ModuliSet) -> tuple[int, int] | None:
    row, index = _cpu.first_invalid(residues, last_residues(moduli))
    return None if row < 0 else (row, index)


def exceeds(residues: Array, last: NDArray[np.uint32]) -> bool:
    """Whether a residue of a row is above the row's last one: for pieces of a chunk, as they are read."""
    row, _ = _cpu.first_invalid(residues, last)
    return bool(row >= 0)


def read_all(residues: Array) -> int:
    total: int = _cpu.read_all(residues)
    return total


def crc32c(words: Array) -> int:
    checksum: int = _cpu.crc32c(words)
    return checksum


def crc32c_and_validity(words: Array, moduli: ModuliSet) -> tuple[int, bool]:
    return crc32c(words), first_invalid(words[:-1].reshape(len(moduli), -1), moduli) is None
