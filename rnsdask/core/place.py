"""Places of chunks in an array, to convert indices of numbers and to name them in messages."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TypeAlias

# Turns a flat (C order) index in a chunk into one in the whole array.
Locate: TypeAlias = Callable[[int], int]


@dataclass(frozen=True)
class Place:
    """Place of a chunk in its array.

    `index` is its index in the grid of chunks; `location` is its part of the array, a start and a stop along
    each axis. `shape` is the whole array's; lengths that Dask does not know, as after a selection, are NaN.
    """

    index: tuple[int, ...]
    location: tuple[tuple[int, int], ...]
    shape: tuple[float, ...]

    def flat_index(self, index: int) -> int:
        """Flat (C order) index in the array of the number at a flat index in the chunk.

        In an array of unknown shape the index stays the one in the chunk.
        """
        if any(map(math.isnan, self.shape)):
            return index
        index, place, stride = int(index), 0, 1
        for (start, stop), length in zip(reversed(self.location), reversed(self.shape), strict=True):
            index, inside = divmod(index, stop - start)
            place += (start + inside) * stride
            stride *= int(length)
        return place


@dataclass(frozen=True)
class Grid:
    """Grid of an array's chunks, stored so compactly that each task on a chunk can have it.

    `lengths` has an entry for each axis: the length of all chunks but the last, or, where they differ, a
    table of the starts of all chunks and the end of the last one.
    """

    shape: tuple[int, ...]
    lengths: tuple[int | tuple[int, ...], ...]

    @classmethod
    def of(cls, chunks: Sequence[Sequence[int]]) -> "Grid":
        """Make the grid of chunks with the given lengths along each axis."""
        # NaN lengths add up to NaN.
        return cls(tuple(map(sum, chunks)), tuple(map(_brief_lengths, chunks)))

    def __dask_tokenize__(self) -> tuple[object, ...]:
        return "rnsdask.Grid", self.shape, self.lengths

    def place(self, index: Sequence[int]) -> Place:
        """Return the place of one chunk."""
        axes = zip(index, self.lengths, self.shape, strict=True)
        location = tuple(
            (i * axis, min((i + 1) * axis, length)) if isinstance(axis, int) else (axis[i], axis[i + 1])
            for i, axis, length in axes
        )
        return Place(tuple(index), location, self.shape)


def _brief_lengths(lengths: Sequence[int]) -> int | tuple[int, ...]:
    if all(c == lengths[0] for c in lengths[:-1]) and lengths[-1] <= lengths[0]:
        return int(lengths[0])
    return (0, *accumulate(lengths))


ALONE = Place((), (), (math.nan,))
"""Place of a chunk that is the whole array, where indices stay the same."""
