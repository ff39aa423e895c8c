"""Tiles of number-theoretic transforms in shared memory, and their tables of powers of roots."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import cupy
import numpy as np

from rnsdask.backend.cuda import launching
from rnsdask.backend.cuda.memory import table_on_gpu
from rnsdask.constants import TransformConstants
from rnsdask.constants.ntt import is_narrow, power_factors, root_factors
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
    def blocks(self) -> int:
        """Blocks of a multiprocessor."""
        return max(1, _THREADS_PER_PROCESSOR // self.block)

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
        """Shape for which the kernels are compiled."""
        field = "NarrowField" if is_narrow(list(moduli)) else "MontgomeryField"
        return (
            f"-DRNS_FIELD={field}",
            f"-DRNS_LOG_LENGTH={self.length}",
            f"-DRNS_LOG_COLUMNS={self.columns}",
            f"-DRNS_LOG_VALUES={self.values}",
            f"-DRNS_THREADS={self.block}",
            f"-DRNS_BLOCKS={self.blocks}",
        )


def row_shape(log_length: int) -> Shape:
    """Shape for whole transforms, with at least 8 elements a thread adjacent to others'."""
    values = log_length if log_length <= 4 else 3 if log_length <= 6 else 4 if log_length <= 12 else 5
    return Shape(log_length, 0, values, max(log_length - values, 7))


def matrix_shape(log_length: int, log_width: int) -> Shape:
    """Shape for columns of a matrix: 32 side by side, a 128-byte line, where they fit; at least 8."""
    for log_size in (14, 13):
        columns = min(5, log_width, log_size - log_length)
        values = min(4, log_length) if log_length <= 10 else 5
        shape = Shape(log_length, columns, values, log_length + columns - values)
        if shape.shared <= launching.most_shared(cupy.cuda.runtime.getDevice()):
            break
    return shape


# First passes of the two that run in one launch, by the logarithm of a matrix: the quickest on an H100. Lines
# of 64 bytes do, and where a multiprocessor has four blocks, they wait less at barriers than two.
_OVERLAPPED = {
    15: Shape(7, 5, 4, 8),
    16: Shape(8, 4, 4, 8),
    17: Shape(8, 5, 5, 8),
    18: Shape(9, 4, 5, 8),
    19: Shape(9, 4, 5, 8),
    20: Shape(10, 4, 5, 9),
}


@dataclass(frozen=True)
class Overlapped:
    """Two passes over matrices in one launch; `first` is that over columns. Logarithms again."""

    first: Shape
    last_length: int

    @property
    def tile(self) -> int:
        """Words of a tile, of either pass."""
        return self.first.length + self.first.columns

    @property
    def shared(self) -> int:
        """Bytes of a block's shared memory: a tile, and factors of its values and threads."""
        words = (1 << self.tile) + max(1 << self.tile >> 5, 1 << self.tile >> self.first.values)
        factors = (1 << (self.first.values + self.first.columns)) + self.first.block
        return 4 * (words + 2) + 8 * factors

    def defines(self, moduli: ModuliSet) -> tuple[str, ...]:
        """Shape for which the kernel is compiled."""
        return *self.first.defines(moduli), f"-DRNS_LAST_LENGTH={self.last_length}"


def overlapped(log_matrix: int) -> Overlapped:
    """Passes over matrices of a size from 2**15 to 2**20."""
    first = _OVERLAPPED[log_matrix]
    return Overlapped(first, log_matrix - first.length)


def _roots(constants: TransformConstants, log_length: int) -> tuple[list[int], list[int]]:
    """The primes, and the powers of their roots that have an order."""
    primes = list(constants.moduli)
    exponent = constants.length >> log_length
    return primes, [pow(root, exponent, p) for root, p in zip(constants.roots.tolist(), primes, strict=True)]


@lru_cache(32)
def roots_on(constants: TransformConstants, log_length: int, device: int) -> Any:
    """Factors for passes of a length, on a device."""
    primes, roots = _roots(constants, log_length)
    return table_on_gpu(root_factors(roots, primes, 1 << log_length))


@lru_cache(32)
def powers_on(constants: TransformConstants, log_length: int, device: int) -> tuple[Any, Any]:
    """Two tables whose products are the powers of a root of an order."""
    primes, roots = _roots(constants, log_length)
    low_bits = split(log_length)
    steps = [pow(root, 1 << low_bits, p) for root, p in zip(roots, primes, strict=True)]
    ones = [1] * len(primes)
    low = power_factors(ones, roots, primes, 1 << low_bits)
    high = power_factors(ones, steps, primes, 1 << (log_length - low_bits))
    return table_on_gpu(low), table_on_gpu(high)


@lru_cache(32)
def within_on(constants: TransformConstants, log_matrix: int, shape: Shape, device: int) -> Any:
    """The powers w**(i j) of a root of an order, for columns i and rows j of a tile."""
    primes, roots = _roots(constants, log_matrix)
    powers = power_factors([1] * len(primes), roots, primes, 1 << (shape.length + shape.columns))
    rows, columns = np.arange(1 << shape.length), np.arange(1 << shape.columns)
    return table_on_gpu(powers[:, np.outer(rows, columns).ravel()])


@lru_cache(32)
def scales_on(constants: TransformConstants, device: int) -> Any:
    primes = list(constants.moduli)
    return table_on_gpu(power_factors(constants.scales.tolist(), primes, primes, 1))


def split(log_length: int) -> int:
    """The logarithm of the length of the lower table of powers."""
    return (log_length + 1) // 2
