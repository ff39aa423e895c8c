"""A number system of the tests' own: integers from 0 to 2**64 - 1 as two words, the higher one first."""

import operator
from dataclasses import dataclass
from typing import Any

import numpy as np

from rnsdask.arrays.integer_array import IntegerArray
from rnsdask.core.number_system import NumberSystem

COUNT = 2**64


@dataclass(frozen=True, repr=False)
class Pair(NumberSystem):
    """The value: what the two words of a number mean. All that arrays of it can do follows from this."""

    rows = 2
    value_range = (0, COUNT - 1)

    def encode(self, values: Any) -> np.ndarray:
        numbers = np.array(values, dtype=object)
        flat = [operator.index(v) for v in numbers.ravel().tolist()]
        if not all(0 <= v < COUNT for v in flat):
            raise ValueError("a value is out of range")
        words = np.array([[v >> 32 for v in flat], [v & 0xFFFFFFFF for v in flat]], dtype=np.uint32)
        return words.reshape(2, *numbers.shape)

    def decode(self, words: Any) -> np.ndarray:
        found = np.empty(words.shape[1:], dtype=object)
        found[...] = (words[0].astype(object) << 32) + words[1].astype(object)
        return found

    def __dask_tokenize__(self) -> Any:
        return "toy_system.Pair"

    def __str__(self) -> str:
        return "pairs of words"


class PairArray(IntegerArray):
    """Numbers as pairs of words."""

    __slots__ = ()

    system_type = Pair


SYSTEM = Pair()
