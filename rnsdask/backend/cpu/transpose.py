"""Matrices of words with rows for columns."""

from rnsdask.backend.cpu.extension import _cpu
from rnsdask.backend.protocol import Array


def transpose(matrix: Array, out: Array) -> None:
    _cpu.transpose(matrix, out)
