"""Shapes of the tiles for which transforms are compiled; imports the standard library only."""

from dataclasses import dataclass

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


def row_shape(log_length: int) -> Shape:
    """Shape for whole transforms, with at least 8 elements a thread adjacent to others'."""
    values = log_length if log_length <= 4 else 3 if log_length <= 6 else 4 if log_length <= 12 else 5
    return Shape(log_length, 0, values, max(log_length - values, 7))


def matrix_shape(log_length: int, log_width: int, most_shared: int) -> Shape:
    """Shape for columns of a matrix: 32 side by side, a 128-byte line, where they fit; at least 8.

    `most_shared` are the bytes of shared memory that a block of the device may ask for.
    """
    for log_size in (14, 13):
        columns = min(5, log_width, log_size - log_length)
        values = min(4, log_length) if log_length <= 10 else 5
        shape = Shape(log_length, columns, values, log_length + columns - values)
        if shape.shared <= most_shared:
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


def overlapped(log_matrix: int) -> Overlapped:
    """Passes over matrices of a size from 2**15 to 2**20."""
    first = _OVERLAPPED[log_matrix]
    return Overlapped(first, log_matrix - first.length)
