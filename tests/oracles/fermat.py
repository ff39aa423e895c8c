"""Fermat fields by their definition: digits of the integers modulo radix**digits + 1, in Python's own."""

from typing import Any

import numpy as np


def digits_of(value: int, radix: int, digits: int) -> list[int]:
    """The digits of an element, the least significant first; of -1 those that only it has."""
    value %= radix**digits + 1
    if value == radix**digits:
        return [0] * (digits - 1) + [radix]
    found = []
    for _ in range(digits):
        value, digit = divmod(value, radix)
        found.append(digit)
    return found


def encode(values: Any, radix: int, digits: int) -> np.ndarray:
    """Digits (digits, *shape) of integers, uint32 or, of a radix beyond 2**32, uint64."""
    flat = np.asarray(values, dtype=object)
    rows = [digits_of(int(value), radix, digits) for value in flat.ravel().tolist()]
    columns = np.array(rows, dtype=np.uint32 if radix < 2**32 else np.uint64).reshape(-1, digits)
    return np.ascontiguousarray(columns.T).reshape(digits, *flat.shape)


def as_words(values: Any, field: Any) -> np.ndarray:
    """Digits of integers, of what has the `radix` and `digits` of a field."""
    return encode(values, field.radix, field.digits)


def value_of(column: list[int], radix: int) -> int:
    """The integer from 0 to p - 1 of digits."""
    return sum(digit * radix**i for i, digit in enumerate(column))
