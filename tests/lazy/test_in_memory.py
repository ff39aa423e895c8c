"""Arrays in memory beside lazy ones: what users write to later changes no lazy result."""

import gc
import weakref

import numpy as np

import rnsdask as rd

MS = rd.ModuliSet.for_bits(64)
SYSTEM = rd.RNS(MS, signed=True)
VALUES = [(-3) ** (i % 37) + i for i in range(6000)]


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
