"""Ranges, overflow and results in Python integers, without using the package."""

import math
from collections.abc import Callable
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

SYSTEMS = ("unsigned", "signed", "interval")
"""RNSArrays of either range, and IntervalRNSArrays."""


class Range(NamedTuple):
    """The numbers that arrays of a system and a moduli set of product M hold: `lowest` to `highest`."""

    system: str
    product: int
    lowest: int
    highest: int

    @classmethod
    def of(cls, system: str, product: int) -> "Range":
        ends = {
            "unsigned": (0, product - 1),
            "signed": (-(product // 2), (product - 1) // 2),
            "interval": (1 - product, product - 1),
        }
        return cls(system, product, *ends[system])

    @property
    def magnitude(self) -> int:
        return max(-self.lowest, self.highest)

    def holds(self, value: int) -> bool:
        return self.lowest <= value <= self.highest

    def outside(self, exact: np.ndarray) -> np.ndarray:
        """Which exact results are out of range: Boolean, of the same shape."""
        return ((exact < self.lowest) | (exact > self.highest)).astype(bool)

    def wrap(self, value: int) -> int:
        """Result of a wrapping operation, given the exact one."""
        if self.system == "interval":
            return abs(value) % self.product * (-1 if value < 0 else 1)
        return (value - self.lowest) % self.product + self.lowest

    def wrapped(self, exact: np.ndarray) -> np.ndarray:
        return mapped(self.wrap, exact)

    def bits_needed(self, value: int) -> int:
        """Bits of a number, with one for the sign if it is negative or the range has negative numbers."""
        magnitude = value if value >= 0 else -value - 1
        return magnitude.bit_length() + int(self.system != "unsigned" or value < 0)


def sum_of_products(terms: Any, *operands: Any) -> Any:
    """The exact sum of products, each a sign and the indices of the operands that are multiplied."""
    return sum(sign * math.prod(operands[k] for k in factors) for sign, factors in terms)


def objects(values: Any, shape: tuple[int, ...] | None = None) -> np.ndarray:
    """An array of Python ints, of the shape given, else of one axis."""
    values = list(values)
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array if shape is None else array.reshape(shape)


def mapped(function: Callable[..., Any], *arrays: Any, dtype: Any = object) -> np.ndarray:
    """Apply a function of ints to each number of arrays of one shape."""
    flat = [array.reshape(-1).tolist() for array in arrays]
    return objects(map(function, *flat), arrays[0].shape).astype(dtype)


def encoded(values: np.ndarray, moduli: tuple[int, ...]) -> np.ndarray:
    """Residues (n, *shape) of what is modulo M the same number: uint32, or uint64 if one modulus needs it."""
    return _residues(mapped(int, values), moduli, np.uint32 if max(moduli) <= 2**32 else np.uint64)


def _residues(values: np.ndarray, moduli: tuple[int, ...], dtype: type[np.generic]) -> np.ndarray:
    """Residues of Python ints; by half of the moduli, of remainders by their product, which are shorter."""
    product = math.prod(moduli)
    if product <= 2**64:
        words = (values % product).astype(np.uint64)
        rows = [words % np.uint64(m) if m < 2**64 else words for m in moduli]
        return np.array(rows, dtype=dtype).reshape(len(moduli), *values.shape)
    halves = moduli[: len(moduli) // 2], moduli[len(moduli) // 2 :]
    return np.concatenate([_residues(values % math.prod(half), half, dtype) for half in halves])


def limbs(values: np.ndarray, count: int) -> np.ndarray:
    """Little-endian limbs of 32 bits, uint32 (*shape, count), negative numbers in two's complement."""
    rows = [((values >> 32 * k) & 0xFFFFFFFF).astype(np.uint32) for k in range(count)]
    return np.stack(rows, axis=-1)


def matrix_product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Product of vectors and matrices, as an array, also of no terms."""
    if a.shape[-1]:
        return np.asarray(np.dot(a, b), dtype=object)
    shape = (*a.shape[:-1], *b.shape[1:])
    return objects([0] * math.prod(shape), shape)


def product_of_all(values: list[int], limits: Range) -> tuple[int, bool]:
    """The product as one that wraps gives it, and whether it is out of range."""
    if 0 in values:
        return 0, False
    exact = 1
    for value in values:
        exact *= value
        if abs(exact) > limits.product:
            break  # no factor is 0, so it never comes back
    sign = -1 if sum(value < 0 for value in values) % 2 else 1
    modulo = reduce(lambda x, y: x * abs(y) % limits.product, values, 1 % limits.product)
    return limits.wrap(sign * modulo), not limits.holds(exact)


def best(values: list[int], k: int) -> list[int]:
    """Indices of the k greatest, or for k < 0 of the least; of equals the lowest first."""
    order = sorted(range(len(values)), key=lambda i: (values[i] if k < 0 else -values[i], i))
    return order[: abs(k)]


REDUCTIONS: dict[str, Callable[[list[int]], int]] = {
    "max": max,
    "min": min,
    "sum": sum,
    "gcd": lambda values: math.gcd(*values),
    "lcm": lambda values: math.lcm(*values),
}
"""Reductions of `reduce` over Python ints, by name; the bound is not among them."""
