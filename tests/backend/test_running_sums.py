"""Running sums modulo each modulus, of lines of every length side by side, against Python's integers."""

from itertools import accumulate

import numpy as np
import pytest
from conftest import Processor

from rnsdask.backend import kernels_of
from rnsdask.core.moduli import ModuliSet

MODULI = ModuliSet([2, 2**32 - 1, 7, 2**31 - 1])
LENGTHS = (0, 1, 2, 15, 16, 17, 31, 33, 100)


def sums_of(residues: np.ndarray, starts: np.ndarray, moduli: ModuliSet) -> np.ndarray:
    """One addition after another, in Python's integers."""
    result = np.empty_like(residues)
    for i, a, b in np.ndindex(starts.shape):
        terms = [int(starts[i, a, b]), *residues[i, a, :, b].tolist()]
        result[i, a, :, b] = [s % moduli[i] for s in accumulate(terms)][1:]
    return result


@pytest.mark.parametrize("inner", [1, 2, 3, 15, 16, 17, 70])
@pytest.mark.parametrize("moduli", [MODULI, ModuliSet([2**32, 3])], ids=["odd", "largest"])
def test_lines(on_each_processor: Processor, moduli: ModuliSet, inner: int, rng: np.random.Generator) -> None:
    xp, last = on_each_processor.xp, np.array(list(moduli)).reshape(-1, 1, 1, 1) - 1
    for length in LENGTHS:
        shape = (len(moduli), 3, length, inner)
        # The greatest residues, whose sums pass the modulus, and 2**32, at every step; and any.
        for residues in (np.broadcast_to(last, shape), rng.integers(0, last, shape, endpoint=True)):
            terms = residues.astype(np.uint32)
            starts = rng.integers(0, last[..., 0], (len(moduli), 3, inner), endpoint=True).astype(np.uint32)
            found = kernels_of(xp.empty(0)).running_sums(xp.asarray(terms), xp.asarray(starts), moduli)
            np.testing.assert_array_equal(on_each_processor.to_numpy(found), sums_of(terms, starts, moduli))


def test_rows_apart(rng: np.random.Generator) -> None:
    terms = rng.integers(0, 2, (4, 1, 300, 1)).astype(np.uint32)
    starts = np.zeros((4, 1, 1), dtype=np.uint32)
    part = terms[:, :, 7:271]
    found = kernels_of(part).running_sums(part, starts, MODULI)
    np.testing.assert_array_equal(found, sums_of(part, starts, MODULI))
    part = terms[:, :, ::2]  # numbers apart, too
    np.testing.assert_array_equal(
        kernels_of(part).running_sums(part, starts, MODULI), sums_of(part, starts, MODULI)
    )
