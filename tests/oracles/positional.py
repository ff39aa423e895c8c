"""Positional numbers from their definition: limbs and ranges in Python integers."""

import numpy as np

from oracles.integers import Range


def limits_of(bits: int, signed: bool) -> Range:
    """The range of numbers of so many bits, and what becomes of results out of it."""
    return Range.of("signed" if signed else "unsigned", 2**bits)


def encode(numbers: np.ndarray, bits: int) -> np.ndarray:
    """Limbs (k, *shape) in two's complement of all 32 k bits."""
    count = -(-bits // 32)
    rows = [(numbers >> 32 * i) & (2**32 - 1) for i in range(count)]
    return np.stack(rows).astype(np.uint32).reshape(count, *numbers.shape)
