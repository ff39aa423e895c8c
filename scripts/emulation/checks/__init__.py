"""Calls of kernels whose results must be the same on both processors, one file a subject.

A new one needs no more than the decorator `check`, and its file in `SUBJECTS` of ``emulate_kernels.py``. They
are imported when `cupy_of_host` has taken CuPy's place.
"""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

Place = Callable[[Any], Any]
Check = Callable[[Any, Place], list[Any]]
CHECKS: dict[str, Check] = {}
"""Checks by name: they take kernels and a function that places arrays, and return arrays to compare."""
NOT_BY_PTX: dict[str, str] = {}
"""Checks that `ptx` cannot run, and why."""


def check(function: Check) -> Check:
    CHECKS[function.__name__] = function
    return function


def not_by_ptx(reason: str) -> Callable[[Check], Check]:
    def noted(function: Check) -> Check:
        NOT_BY_PTX[function.__name__] = reason
        return function

    return noted


def words(rows: int, count: int, seed: int) -> np.ndarray:
    """Random words, with all ones and zeros among them."""
    found = np.random.default_rng(seed).integers(0, 2**32, (rows, count), dtype=np.uint32)
    found[:, ::5], found[:, 1::7] = 2**32 - 1, 0
    return found


def limbs_of(numbers: Iterable[int], rows: int) -> np.ndarray:
    """The lowest limbs of integers, a column each."""
    data = b"".join((int(z) % 2 ** (32 * rows)).to_bytes(4 * rows, "little") for z in numbers)
    return np.frombuffer(data, np.uint32).reshape(-1, rows).T.copy()


def integers_of(limbs: np.ndarray) -> list[int]:
    return [int.from_bytes(column.tobytes(), "little") for column in limbs.T]
