"""Sort keys of numbers, in any number system."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, eq=False)
class Ordering:
    """Sort keys of numbers, flattened.

    A number is less than another one if its key is, uint64 (N,), by more than `slack`. Equal numbers have
    equal keys, and rows of `words` (r, N) tell unequal ones apart. `digits` gives, for indices (k,), uint32
    (d, k) that compare as the numbers do, from the last row, the most significant, to the first.
    """

    keys: Any
    slack: int
    words: Any
    digits: Callable[[Any], Any]
