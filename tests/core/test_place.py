"""Places of chunks of any lengths, against NumPy's indices."""

import math
import pickle

import numpy as np
import pytest

from rnsdask.core.place import ALONE, Grid


@pytest.mark.parametrize(
    "chunks",
    [((4, 4, 2),), ((5,),), ((3, 1, 4),), ((2, 2), (3, 3, 1)), ((1, 2), (4,), (2, 3, 2)), ((0,), (2, 1))],
)
def test_indices_are_those_of_the_whole(chunks: tuple[tuple[int, ...], ...]) -> None:
    grid = pickle.loads(pickle.dumps(Grid.of(chunks)))
    shape = tuple(map(sum, chunks))
    numbers = np.arange(math.prod(shape)).reshape(shape)
    seen = []
    for index in np.ndindex(*map(len, chunks)):
        place = grid.place(index)
        part = numbers[tuple(slice(*ends) for ends in place.location)]
        assert part.shape == tuple(c[i] for c, i in zip(chunks, index, strict=True))
        assert [place.flat_index(i) for i in range(part.size)] == part.ravel().tolist()
        seen += part.ravel().tolist()
    assert sorted(seen) == list(range(numbers.size))


def test_chunks_of_one_length_take_one_number() -> None:
    many = Grid.of(((128,) * 10_000 + (5,),))
    assert many.lengths == (128,)
    assert many.place((10_000,)).location == ((1_280_000, 1_280_005),)


def test_unknown_lengths_leave_the_index_in_the_chunk() -> None:
    place = Grid.of(((math.nan, math.nan), (2,))).place((1, 0))
    assert place.flat_index(3) == 3
    assert ALONE.flat_index(7) == 7
