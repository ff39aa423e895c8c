"""Sort keys of numbers, in any number system."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, eq=False)
class Ordering:
    """Sort keys of numbers, flattened.

    A number is less than another one if its key is, uint64 (N,), by more than `slack`. Equal numbers have
    equal keys; unequal numbers differ in a row of `words` (r, N). For indices (k,), `digits` returns uint32
    (d, k) that compare as the numbers do; the last row is the most significant.
    """

    keys: Any
    slack: int
    words: Any
    digits: Callable[[Any], Any]
