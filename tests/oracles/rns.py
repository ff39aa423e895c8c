"""Residue number systems by their definitions: ranges, residues, Chinese remainder theorem, mixed radix."""

import math
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

import numpy as np

from oracles.integers import Range, encoded, objects


def limits_of(moduli: Iterable[int], signed: bool = False) -> Range:
    """The range of a moduli set, 0 .. M-1 or symmetric."""
    return _limits(tuple(moduli), signed)


@cache
def _limits(moduli: tuple[int, ...], signed: bool) -> Range:
    return Range.of("signed" if signed else "unsigned", math.prod(moduli))


def wrapped(value: int, moduli: Iterable[int], signed: bool = False) -> int:
    """The only number of the range that is the same modulo M."""
    return limits_of(moduli, signed).wrap(value)


def in_range(value: int, moduli: Iterable[int], signed: bool = False) -> bool:
    return limits_of(moduli, signed).holds(value)


def encode(values: Any, moduli: Iterable[int], signed: bool = False) -> np.ndarray:
    """Residues of a list, or of an array of any shape, of numbers of the range, as :func:`.encoded`."""
    numbers = values.astype(object) if isinstance(values, np.ndarray) else objects(values)
    moduli = tuple(moduli)
    assert not limits_of(moduli, signed).outside(numbers).any()
    if len(moduli) < LONG or not numbers.size:
        return encoded(numbers, moduli)
    known, flat = _known(moduli), list(map(int, numbers.ravel().tolist()))
    columns: dict[int, Any] = {
        value: known.get(value) for value in flat
    }  # other threads may clear what is known
    new = [value for value, column in columns.items() if column is None]
    columns.update(zip(new, encoded(objects(new), moduli).T, strict=True))
    if len(known) + len(new) > MOST_KNOWN:
        known.clear()
    known.update((value, columns[value]) for value in new)
    return np.stack([columns[value] for value in flat], axis=1).reshape(len(moduli), *numbers.shape)


LONG = 64  # moduli, of which residues are kept for the next test of the same edge values
MOST_KNOWN = 10_000  # numbers of each set


@cache
def _known(moduli: tuple[int, ...]) -> dict[int, np.ndarray]:
    """Residues of numbers that were asked for."""
    return {}


def decode(residues: np.ndarray, moduli: Iterable[int], signed: bool = False) -> list[int]:
    """The numbers of residues (n, *shape), flat in C order."""
    columns = residues.reshape(len(residues), -1).T.tolist()
    return [value_of(column, moduli, signed) for column in columns]


def value_of(residues: Sequence[int], moduli: Iterable[int], signed: bool = False) -> int:
    """The only number of the range that has these residues: sum x_i e_i mod M."""
    terms = zip(residues, _units(tuple(moduli)), strict=True)
    return wrapped(sum(x * e for x, e in terms), moduli, signed)


@cache
def _units(moduli: tuple[int, ...]) -> tuple[int, ...]:
    """Numbers e_i that are 1 modulo m_i and 0 modulo all others."""
    rest = [math.prod(moduli) // m for m in moduli]
    return tuple(r * pow(r, -1, m) for r, m in zip(rest, moduli, strict=True))


def mixed_radix_digits(value: int, moduli: Iterable[int]) -> list[int]:
    """The digits d_i of a number of 0 .. M-1, the sum of d_i m_0 ... m_{i-1}, the least significant first."""
    digits = []
    for m in moduli:
        value, digit = divmod(value, m)
        digits.append(digit)
    return digits


def from_mixed_radix(digits: Sequence[int], moduli: Iterable[int]) -> int:
    value, weight = 0, 1
    for digit, m in zip(digits, moduli, strict=True):
        assert 0 <= digit < m
        value += digit * weight
        weight *= m
    return value
