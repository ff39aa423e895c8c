"""Where the numbers of a chunk lie in the whole array, for messages that name one."""

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

# Turns a flat (C order) index in a chunk into one in the whole array.
Locate: TypeAlias = Callable[[int], int]


def locate_in(block_info: Any) -> Locate:
    """Indices of a chunk's numbers in its array, from what Dask's ``map_blocks`` tells of the first one."""
    if not block_info:
        return int  # a call outside any graph: the chunk is the array
    (_, *location), (_, *shape) = block_info[0]["array-location"], block_info[0]["shape"]
    return lambda index: flat_index(index, location, shape)


def flat_index(index: int, location: Sequence[tuple[int, int]], shape: Sequence[int]) -> int:
    """Index in an array of `shape` of the number at `index` in its part from the starts to the stops.

    Parameters
    ----------
    index : int
        Flat (C order) index in the part.
    location : sequence of (start, stop)
        The part, along each axis.
    shape : sequence of int
        Shape of the whole array. Where Dask does not know it, as after a selection, its lengths are not
        numbers, and the index stays the one in the part.
    """
    if any(map(math.isnan, shape)):
        return index
    part = tuple(stop - start for start, stop in location)
    inside = np.unravel_index(index, part)
    place = [start + int(i) for (start, _), i in zip(location, inside, strict=True)]
    return int(np.ravel_multi_index(place, tuple(shape)))
