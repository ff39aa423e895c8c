"""Random matrices of long integers, and FLINT's matrices of them."""

import math
from typing import Any

import flint
import numpy as np


def integers(rng: np.random.Generator, bits: int, *shape: int) -> np.ndarray:
    """Signed integers of up to so many bits, the ends among them."""
    drawn = [int.from_bytes(rng.bytes(bits // 8 + 1), "little") for _ in range(math.prod(shape))]
    values = [v % (2**bits + 1) * (1 - 2 * (v >> bits & 1)) for v in drawn]
    values[::7] = [2**bits] * len(values[::7])
    return np.array(values, dtype=object).reshape(shape)


def of_flint(values: np.ndarray) -> Any:
    return flint.fmpz_mat(*values.shape, values.ravel().tolist())
