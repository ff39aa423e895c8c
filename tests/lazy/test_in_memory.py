"""Arrays in memory beside lazy ones: words are not copied, what somebody may write to is."""

import gc
import weakref
from typing import Any

import dask.array as da
import numpy as np
import pytest

import rnsdask as rd

MS = rd.ModuliSet.for_bits(64)
SYSTEM = rd.RNS(MS, signed=True)
VALUES = [(-3) ** (i % 37) + i for i in range(6000)]


def blocks_in(array: Any) -> list[Any]:
    """The arrays that a graph holds."""
    return [value for value in dict(array.__dask_graph__()).values() if isinstance(value, np.ndarray)]


def names_in(array: Any) -> list[str]:
    return [name for name in array.__dask_graph__().layers if name.startswith("array-")]


@pytest.mark.parametrize("system", [SYSTEM, rd.Positional(64, True), rd.IntervalRNS(MS)])
def test_words_are_not_copied(system: Any) -> None:
    x = rd.from_ints(VALUES, system, chunks=None)
    y = rd.from_ints(da.from_array(np.array(VALUES, dtype=object), chunks=1500), system)
    for lazy in (x + y, rd.maximum(y, x), rd.where(x < y, x, y), x[da.arange(5, chunks=3)], x.rechunk(700)):
        blocks = [block for block in blocks_in(lazy) if block.dtype == x.words.dtype]
        assert blocks
        assert all(np.shares_memory(block, x.words) for block in blocks)
    assert (x + y).to_ints().tolist() == [2 * value for value in VALUES]
    assert x.rechunk(700).to_ints().tolist() == VALUES
    assert x[::-2].rechunk(700).to_ints().tolist() == VALUES[::-2]
    assert (x.reshape(60, 100).T + y.reshape(100, 60)).shape == (100, 60)


def test_names_follow_the_contents() -> None:
    x, same = (rd.from_ints(VALUES, SYSTEM, chunks=None) for _ in range(2))
    lazy = rd.from_ints(VALUES, SYSTEM, chunks=1500)
    other = rd.from_ints([VALUES[0] + 1, *VALUES[1:]], SYSTEM, chunks=None)
    (first,), (again,), (second,) = (names_in(array.rechunk(700)) for array in (x, same, other))
    assert first == again != second
    assert names_in(x.rechunk(700)) != names_in(x.rechunk(800))
    assert names_in(x[1:].rechunk(700)) != names_in(x[:-1].rechunk(700))
    assert names_in(x.rechunk(-1)) == names_in(x.rechunk(-1))
    assert ((x + lazy) - (other + lazy)).to_ints().tolist() == [-1] + [0] * (len(VALUES) - 1)


def test_what_users_may_write_to_is_copied() -> None:
    lazy = rd.from_ints(VALUES, SYSTEM, chunks=1500)
    mask = np.arange(60_000).reshape(10, -1) % 3 == 0
    view = mask[:]
    view.flags.writeable = False
    chosen = [rd.where(m, lazy, 0) for m in (mask, view, np.broadcast_to(mask[0], mask.shape))]
    exponents = np.ones(6000, dtype=np.int64)
    powers = np.power(lazy, exponents)
    expected = np.where(mask, np.array(VALUES, dtype=object), 0)
    mask[:] = False
    exponents[:] = 0
    for found, wanted in zip(chosen, (expected, expected, expected[[0] * 10]), strict=True):
        assert (found.to_ints() == wanted).all()
    assert powers.to_ints().tolist() == VALUES
    residues = np.array(rd.from_ints(VALUES, SYSTEM).words)
    x = rd.from_residues(residues, SYSTEM)
    total = x + lazy
    residues[:] = 0
    assert total.to_ints().tolist() == [2 * value for value in VALUES]


def test_what_is_chosen_keeps_no_other_memory() -> None:
    words = np.array(rd.from_ints(VALUES, SYSTEM, chunks=None).words)
    owner = weakref.ref(words)
    x = rd.RNSArray(words, SYSTEM).rechunk(700)
    chosen = [
        x[x.compute() > 0].persist(),
        x[[3, 1, 2]].persist(),
        (x[5:9] + 1).persist(),
        rd.sort(x).persist(),
    ]
    del x, words
    gc.collect()
    assert owner() is None
    assert [array.to_ints().tolist() for array in chosen[1:3]] == [
        [VALUES[k] for k in (3, 1, 2)],
        [value + 1 for value in VALUES[5:9]],
    ]
