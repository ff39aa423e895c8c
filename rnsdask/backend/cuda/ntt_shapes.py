"""Tiles of number-theoretic transforms in shared memory, as they are compiled for each length of a pass."""

from dataclasses import dataclass

import cupy

from rnsdask.backend.cuda import launching
from rnsdask.constants.ntt import is_narrow
from rnsdask.core.moduli import ModuliSet

_THREADS_PER_PROCESSOR = 1024  # with 64 registers each


@dataclass(frozen=True)
class Shape:
    """A tile as `kernels/cuda/ntt_tile.cuh` has it, and threads of a block; numbers by their logarithms."""

    length: int
    columns: int
    values: int
    threads: int

    @property
    def block(self) -> int:
        """Threads of a block."""
        return 1 << self.threads

    @property
    def slots(self) -> int:
        """Tiles of a block."""
        return 1 << (self.threads - (self.length + self.columns - self.values))

    @property
    def shared(self) -> int:
        """Bytes of a block's shared memory, as many as any kernel takes or some more."""
        words = 1 << (self.length + self.columns)
        spread = max(words >> 5, words >> self.values)
        table = 2 << self.length if self.columns else 0
        return 4 * (self.slots * (words + spread) + table)

    def defines(self, moduli: ModuliSet) -> tuple[str, ...]:
        """What the kernels are compiled for."""
        field = "NarrowField" if is_narrow(list(moduli)) else "MontgomeryField"
        blocks = max(1, _THREADS_PER_PROCESSOR // self.block)
        return (
            f"-DRNS_FIELD={field}",
            f"-DRNS_LOG_LENGTH={self.length}",
            f"-DRNS_LOG_COLUMNS={self.columns}",
            f"-DRNS_LOG_VALUES={self.values}",
            f"-DRNS_THREADS={self.block}",
            f"-DRNS_BLOCKS={blocks}",
        )


def row_shape(log_length: int) -> Shape:
    """Of whole transforms: at least 8 elements a thread that are side by side with others'."""
    values = log_length if log_length <= 4 else 3 if log_length <= 6 else 4 if log_length <= 12 else 5
    return Shape(log_length, 0, values, max(log_length - values, 7))


def matrix_shape(log_length: int, log_width: int) -> Shape:
    """Of columns of a matrix, 32 side by side where they fit: 128 bytes, a line of memory; at least 8."""
    for log_size in (14, 13):
        columns = min(5, log_width, log_size - log_length)
        values = min(4, log_length) if log_length <= 10 else 5
        shape = Shape(log_length, columns, values, log_length + columns - values)
        if shape.shared <= launching.most_shared(cupy.cuda.runtime.getDevice()):
            break
    return shape
