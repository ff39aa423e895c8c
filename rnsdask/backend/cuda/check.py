"""Kernels that read everything: is every residue below its modulus; a plain read; CRC-32C."""

import functools
from typing import Any

import cupy
import numpy as np

from rnsdask.backend.cuda import launching
from rnsdask.backend.cuda.launching import array_arguments, is_aligned
from rnsdask.backend.cuda.memory import table_on_gpu
from rnsdask.backend.protocol import Array
from rnsdask.constants import last_residues
from rnsdask.core.moduli import ModuliSet

NONE = 2**64 - 1
"""The position of no residue."""


@functools.lru_cache(256)
def last_residues_on(moduli: ModuliSet, device: int) -> Any:
    return table_on_gpu(last_residues(moduli))


def first_invalid(residues: Array, moduli: ModuliSet) -> tuple[int, int] | None:
    position = cupy.empty(1, dtype=cupy.uint64)
    position.data.memset_async(0xFF, 8)  # 2**64 - 1; cupy.full would compile a kernel
    queue_first_invalid(residues, moduli, position)
    found = int(position[0])
    return None if found == NONE else divmod(found, residues.shape[1])


def queue_first_invalid(residues: Array, moduli: ModuliSet, position: Array) -> None:
    """Launch the kernel, which lowers a position to that of the first residue not below its modulus."""
    last = last_residues_on(moduli, cupy.cuda.runtime.getDevice())
    arguments = (*array_arguments(residues), last, position)
    launching.launch("check", "first_invalid", residues.shape[1], arguments)


def read_all(residues: Array) -> int:
    residues = cupy.ascontiguousarray(residues)
    total = cupy.zeros(1, dtype=cupy.uint64)
    vectors, tail = divmod(residues.size, 4)
    launching.launch("check", "read_all", vectors, (residues, np.int64(vectors), np.int32(tail), total))
    return int(total[0])


def crc32c(words: Array) -> int:
    if words.size == 0:
        return 0
    checksum = cupy.empty(1, dtype=cupy.uint32)
    checksum.data.memset_async(0xFF, 4)  # 2**32 - 1; cupy.full would compile a kernel
    _queue(words, checksum)
    return int(checksum[0])


def crc32c_and_validity(words: Array, moduli: ModuliSet, rows: int) -> tuple[int, bool]:
    # One wait for both: between two of them other threads take Python's lock.
    found = cupy.empty(2, dtype=cupy.uint64)
    found.data.memset_async(0xFF, 16)
    _queue(words, found[:1])
    queue_first_invalid(words[:-1].reshape(rows, -1)[: len(moduli)], moduli, found[1:])
    checksum, position = found.get().tolist()
    return checksum % 2**32, position == NONE


def _queue(words: Array, checksum: Array) -> None:
    """Launch the kernel, which changes 2**32 - 1 into the checksum."""
    if not is_aligned(words):
        words = words.copy()
    vectors, tail = divmod(words.size, 4)
    launching.launch("crc32c", "crc32c", vectors, (words, np.int64(vectors), np.int32(tail), checksum))
