"""The definitions in plain Python integers: slow, obvious and exact.

The tests compare every kernel with these functions.
"""

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any, SupportsIndex

import numpy as np
import numpy.typing as npt

from rnsdask.core.errors import abbreviate
from rnsdask.core.layout import RESIDUE_AXIS, RESIDUE_DTYPE, check_residue_array
from rnsdask.core.moduli import ModuliSet, as_integer


def check_range(values: Iterable[SupportsIndex], moduli: ModuliSet, signed: bool = False) -> list[int]:
    """Return the values as Python ints after checking that each lies in the moduli set's range.

    Raises
    ------
    TypeError
        If a value is not an integer; the message names its position.
    ValueError
        If a value is out of range; the message names its position.
    """
    lowest, highest = moduli.value_range(signed)
    integers = [as_integer(value, f"value at position {i}") for i, value in enumerate(values)]
    for i, value in enumerate(integers):
        if not lowest <= value <= highest:
            kind = "signed" if signed else "unsigned"
            raise ValueError(
                f"value {abbreviate(value)} at position {i} is outside the {kind} range "
                f"from {abbreviate(lowest)} to {abbreviate(highest)} of the moduli set"
            )
    return integers


def residues_of(value: SupportsIndex, moduli: ModuliSet) -> list[int]:
    """Return the residues x_i = value mod m_i, each from 0 to m_i - 1; of any integer, negative ones too."""
    integer = as_integer(value, "value")
    return [integer % m for m in moduli]


def value_of(residues: Sequence[SupportsIndex], moduli: ModuliSet, signed: bool = False) -> int:
    """Return the only integer of the moduli set's range that has these residues (Chinese remainder theorem).

    Raises
    ------
    ValueError
        If there is not one residue for each modulus, or one is not less than its modulus.
    """
    constants = zip(moduli.partial_products, moduli.partial_inverses, strict=True)
    terms = zip(_check_residues(residues, moduli), moduli, constants, strict=True)
    value = sum(x * w % m * partial_product for x, m, (partial_product, w) in terms) % moduli.product
    _, highest = moduli.value_range(signed)
    return value if value <= highest else value - moduli.product


def mixed_radix_digits(residues: Sequence[SupportsIndex], moduli: ModuliSet) -> list[int]:
    """Return the mixed-radix digits d_i of an unsigned number, the least significant first.

    The number is the sum of d_i m_0 ... m_{i-1}, where 0 <= d_i < m_i.
    """
    value = value_of(residues, moduli)
    digits = []
    for m in moduli:
        value, digit = divmod(value, m)
        digits.append(digit)
    return digits


def from_mixed_radix(digits: Sequence[SupportsIndex], moduli: ModuliSet) -> int:
    """Return the unsigned number that has these mixed-radix digits.

    Raises
    ------
    ValueError
        If there is not one digit for each modulus, or one is not less than its modulus.
    """
    value = 0
    for digit, m in reversed(list(zip(_check_residues(digits, moduli, "digit"), moduli, strict=True))):
        value = value * m + digit
    return value


def encode(
    values: Iterable[SupportsIndex], moduli: ModuliSet, signed: bool = False
) -> npt.NDArray[np.uint32]:
    """Return the residues of N values as an array of shape (n, N).

    Raises
    ------
    TypeError, ValueError
        If a value is not an integer or out of range; the message names its position.
    """
    integers = check_range(values, moduli, signed)
    rows = [[value % m for value in integers] for m in moduli]
    return np.array(rows, dtype=RESIDUE_DTYPE)


def decode(residues: npt.NDArray[np.uint32], moduli: ModuliSet, signed: bool = False) -> list[int]:
    """Return the values of a residue array of shape (n, *shape), flat in C order.

    Raises
    ------
    TypeError, ValueError
        If the array does not hold residues under the moduli set.
    """
    check_residue_array(residues, moduli)
    columns: list[list[int]] = np.moveaxis(residues, RESIDUE_AXIS, -1).reshape(-1, len(moduli)).tolist()
    return [value_of(column, moduli, signed) for column in columns]


def fraction(value: SupportsIndex, moduli: ModuliSet) -> Fraction:
    """Return X / M exactly, the quantity that an interval evaluation encloses."""
    return Fraction(as_integer(value, "value"), moduli.product)


def maximum(values: Iterable[int]) -> tuple[int, int]:
    """Return the greatest value and the smallest index where it occurs.

    Raises
    ------
    ValueError
        If there are no values.
    """
    best = max(((value, -index) for index, value in enumerate(values)), default=None)
    if best is None:
        raise ValueError("the maximum of no values is not defined")
    return best[0], -best[1]


def minimum(values: Iterable[int]) -> tuple[int, int]:
    """Return the least value and the smallest index where it occurs.

    Raises
    ------
    ValueError
        If there are no values.
    """
    best = min(((value, index) for index, value in enumerate(values)), default=None)
    if best is None:
        raise ValueError("the minimum of no values is not defined")
    return best


def _check_residues(residues: Sequence[Any], moduli: ModuliSet, name: str = "residue") -> list[int]:
    """Check that there is one residue (or mixed-radix digit) for each modulus, less than it."""
    if len(residues) != len(moduli):
        raise ValueError(
            f"there must be one {name} for each of the {len(moduli)} moduli, got {len(residues)}"
        )
    integers = [as_integer(x, f"{name} {i}") for i, x in enumerate(residues)]
    for i, (x, m) in enumerate(zip(integers, moduli, strict=True)):
        if not 0 <= x < m:
            raise ValueError(
                f"{name} {i} must be from 0 to {m - 1} under the modulus {m}, got {abbreviate(x)}"
            )
    return integers
