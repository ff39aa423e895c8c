"""The k greatest or least numbers of a chunk, and how those of chunks combine. No Dask in here."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rnsdask.backend import Array, kernels_of, to_backend
from rnsdask.core.layout import as_matrix
from rnsdask.rns.blocks import batches
from rnsdask.rns.keys import certain_below, complemented, keyed
from rnsdask.rns.system import RNS

# For each of the greatest numbers: they are seldom in the same group.
_GROUPS = 64


@dataclass(frozen=True)
class Selection:
    """Numbers with their indices, the best first; equal ones by index."""

    values: tuple[int, ...]
    indices: tuple[int, ...]

    def values_array(self) -> NDArray[np.object_]:
        """The numbers as an array of Python ints."""
        array = np.empty(len(self.values), dtype=object)
        array[:] = self.values
        return array

    def indices_array(self) -> NDArray[np.int64]:
        """The indices as an array."""
        return np.array(self.indices, dtype=np.int64)


def select(residues: Array, system: RNS, k: int, offset: int = 0) -> Selection:
    """The k greatest numbers in descending order, or for k < 0 the -k least in ascending order.

    Keys choose the candidates: the numbers not proved to be worse than k others. These alone become Python
    ints, so the cost beside one pass is that of converting and sorting about k numbers, and of all numbers
    if the keys cannot tell them apart.

    Parameters
    ----------
    residues : array of uint32, shape (n, N)
        NumPy or CuPy.
    k : int
        Not more than N are returned.
    offset : int
        Index of the first number.
    """
    count, minimum = min(abs(k), residues.shape[1]), k < 0
    if count == 0:
        return Selection((), ())
    numbers = keyed(as_matrix(residues), system)
    used = RNS(numbers.constants.moduli, system.signed)
    keys = complemented(numbers.keys, minimum)
    threshold = _reached(keys, count)
    (candidates,) = (keys >= certain_below(threshold, numbers.constants)).nonzero()
    best = Selection((), ())
    for indices in batches(candidates, len(numbers.residues)):
        values = used.decode(kernels_of(residues).gather(numbers.residues, indices))
        found = Selection(tuple(values), tuple((indices + offset).tolist()))
        best = combine([best, found], k)
    return best


def _reached(keys: Array, count: int) -> Any:
    """A key that so many keys reach, and few others: of groups of keys the greatest ones tell it.

    These are as many as `count` keys, each of another group. To order all keys takes longer than all else.
    """
    groups = _GROUPS * count
    if len(keys) >= 2 * groups:
        # Each group has keys from everywhere, so that sorted numbers are spread over all groups too.
        keys = to_backend(keys[: len(keys) // groups * groups].reshape(-1, groups).max(axis=0), "cpu")
    return np.partition(keys, len(keys) - count)[len(keys) - count]


def combine(selections: Iterable[Selection], k: int) -> Selection:
    """The best of several selections from different parts of an array, in any order."""
    pairs = [pair for s in selections for pair in zip(s.values, s.indices, strict=True)]
    pairs.sort(key=lambda pair: (pair[0] if k < 0 else -pair[0], pair[1]))
    values, indices = zip(*pairs[: abs(k)], strict=True) if pairs else ((), ())
    return Selection(tuple(values), tuple(indices))
