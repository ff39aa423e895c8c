"""Kernels that read everything: is every residue below its modulus; a plain read."""

import functools
from typing import Any

import cupy
import numpy as np

from rnsdask.backend.cuda import launching
from rnsdask.backend.cuda.launching import array_arguments
from rnsdask.backend.cuda.memory import table_on_gpu
from rnsdask.backend.protocol import Array
from rnsdask.constants import last_residues
from rnsdask.core.moduli import ModuliSet

NONE = 2**64 - 1
"""The position of no residue."""


@functools.lru_cache(256)
def _last_residues_on(moduli: ModuliSet, device: int) -> Any:
    return table_on_gpu(last_residues(moduli))


def first_invalid(residues: Array, moduli: ModuliSet) -> tuple[int, int] | None:
    position = cupy.empty(1, dtype=cupy.uint64)
    position.data.memset_async(0xFF, 8)  # 2**64 - 1; cupy.full would compile a kernel
    queue_first_invalid(residues, moduli, position)
    found = int(position[0])
    return None if found == NONE else divmod(found, residues.shape[1])


def queue_first_invalid(residues: Array, moduli: ModuliSet, position: Array) -> None:
    """Launch the kernel, which lowers a position to that of the first residue not below its modulus."""
    last = _last_residues_on(moduli, cupy.cuda.runtime.getDevice())
    arguments = (*array_arguments(residues), last, position)
    launching.launch("check", "first_invalid", residues.shape[1], arguments)


def read_all(residues: Array) -> int:
    residues = cupy.ascontiguousarray(residues)
    total = cupy.zeros(1, dtype=cupy.uint64)
    vectors, tail = divmod(residues.size, 4)
    launching.launch("check", "read_all", vectors, (residues, np.int64(vectors), np.int32(tail), total))
    return int(total[0])
