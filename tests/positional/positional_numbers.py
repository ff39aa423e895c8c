"""Positional numbers for tests: Python's integers as words, and those at which carries and signs go wrong."""

from typing import Any

import numpy as np
from conftest import Processor

PRECISIONS = (1, 31, 32, 33, 63, 64, 65, 109, 239, 256, 1000, 1024, 2048, 4096)


def to_words(values: list[int], bits: int, processor: Processor) -> Any:
    """Words (k, N) of integers modulo 2**(32 k), so two's complement of negative ones."""
    limbs = -(-bits // 32)
    data = b"".join((v % 2 ** (32 * limbs)).to_bytes(4 * limbs, "little") for v in values)
    words = np.frombuffer(data, dtype="<u4").reshape(len(values), limbs).T
    return processor.xp.asarray(np.ascontiguousarray(words))


def to_values(words: Any, signed: bool = False) -> list[int]:
    """The integers of words (k, N)."""
    host = np.asarray(words if isinstance(words, np.ndarray) else words.get())
    rows = np.ascontiguousarray(host.T).astype("<u4")
    return [int.from_bytes(row.tobytes(), "little", signed=signed) for row in rows]


def wrapped(value: int, bits: int, signed: bool) -> int:
    """Wrap an integer to a number of bits."""
    half = 2 ** (bits - 1) if signed else 0
    return (value + half) % 2**bits - half


def special_values(bits: int, signed: bool) -> list[int]:
    """The ends, and numbers next to powers of two and to the borders of limbs."""
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    powers = {2**e for e in (0, 1, 31, 32, 33, 51, 52, 53, bits // 2, bits - 2, bits - 1) if 0 <= e < bits}
    near = {sign * p + d for p in powers for sign in (1, -1) for d in (-1, 0, 1)}
    holes = {high - 2**e for e in (0, 32, bits // 2) if e < bits}  # all ones but one
    return sorted(v for v in near | holes | {low, low + 1, high - 1, high} if low <= v <= high)


def some_values(bits: int, signed: bool, count: int, rng: np.random.Generator) -> list[int]:
    """The special ones, and random ones of all lengths."""
    values = special_values(bits, signed)
    while len(values) < count:
        length = int(rng.integers(1, bits + 1))
        values.append(wrapped(int.from_bytes(rng.bytes(length // 8 + 1), "little") % 2**length, bits, signed))
    return values
