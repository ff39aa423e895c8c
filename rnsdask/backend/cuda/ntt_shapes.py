"""Shapes of the tiles for which transforms are compiled; imports the standard library only."""

from dataclasses import dataclass

_THREADS_PER_PROCESSOR = 1024  # with 64 registers each, for up to 32 words of 4 bytes
_WIDE_THREADS = {4: 768, 5: 512}  # with 80 or 128 registers, by the logarithm of words of 8 bytes


@dataclass(frozen=True)
class Shape:
    """A tile as `kernels/cuda/ntt_tile.cuh` has it, and threads of a block; numbers by their logarithms.

    ``word`` are the bytes of a word, 4 or 8.
    """

    length: int
    columns: int
    values: int
    threads: int
    word: int = 4

    @property
    def block(self) -> int:
        """Threads of a block."""
        return 1 << self.threads

    @property
    def blocks(self) -> int:
        """Blocks of a multiprocessor."""
        threads = _WIDE_THREADS.get(self.values, 1024) if self.word == 8 else _THREADS_PER_PROCESSOR
        return max(1, threads // self.block)

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
        return self.word * (self.slots * (words + spread) + table)


def row_shape(log_length: int, word: int = 4) -> Shape:
    """Shape for whole transforms, whose threads read at least 32 bytes side by side."""
    if word == 8:
        short = log_length if log_length <= 3 else 2 if log_length == 4 else 3
    else:
        short = log_length if log_length <= 4 else 3
    values = short if log_length <= 6 else 4 if log_length <= 12 else 5
    return Shape(log_length, 0, values, max(log_length - values, 7), word)


def matrix_shape(log_length: int, log_width: int, most_shared: int, word: int = 4) -> Shape:
    """Shape for columns of a matrix: a 128-byte line side by side where they fit; at least 32 bytes.

    `most_shared` are the bytes of shared memory that a block of the device may ask for.
    """
    if word == 8:
        columns = min(4, log_width, max(3, 12 - log_length))
        values = min(4 if log_length <= 9 else 5, log_length)
        return Shape(log_length, columns, values, log_length + columns - values, word)
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


# The same for words of 8 bytes.
_WIDE_OVERLAPPED = {
    15: Shape(7, 5, 4, 8, 8),
    16: Shape(8, 4, 4, 8, 8),
    17: Shape(8, 5, 5, 8, 8),
    18: Shape(9, 4, 5, 8, 8),
    19: Shape(9, 4, 5, 8, 8),
    20: Shape(10, 3, 5, 8, 8),
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
        return self.first.word * (words + 2 + 2 * factors)


def overlapped(log_matrix: int, word: int = 4) -> Overlapped:
    """Passes over matrices of a size from 2**15 to 2**20."""
    first = (_WIDE_OVERLAPPED if word == 8 else _OVERLAPPED)[log_matrix]
    return Overlapped(first, log_matrix - first.length)
