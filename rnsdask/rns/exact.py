"""Conversion between one integer and its residues, in Python integers."""

from collections.abc import Sequence
from typing import SupportsIndex

import numpy as np

from rnsdask.constants.remainders import remainder_tree
from rnsdask.core.errors import abbreviate
from rnsdask.core.moduli import ModuliSet, as_integer

# Moduli from which a tree of products is quicker.
_FEWEST_MODULI = 32


def residues_of(value: SupportsIndex, moduli: ModuliSet) -> list[int]:
    """Return the residues x_i = value mod m_i of any integer, each from 0 to m_i - 1."""
    integer = as_integer(value, "value")
    if len(moduli) < _FEWEST_MODULI:
        return [integer % m for m in moduli]
    found: list[int] = remainder_tree(moduli).residues_of([integer])[:, 0].tolist()
    return found


def value_of(residues: Sequence[SupportsIndex], moduli: ModuliSet, signed: bool = False) -> int:
    """Return the only integer of the moduli set's range that has these residues (Chinese remainder theorem).

    ValueError unless there is one residue for each modulus, below the modulus.
    """
    return value_of_checked(_check_residues(residues, moduli), moduli, signed)


def value_of_checked(residues: Sequence[int], moduli: ModuliSet, signed: bool = False) -> int:
    """Return the integer of residues that need no check, such as a kernel's."""
    if len(moduli) >= _FEWEST_MODULI:
        column = np.array(residues, dtype=np.uint32)[:, None]
        return remainder_tree(moduli).values_of(column, signed)[0]
    terms = zip(residues, moduli.moduli, moduli.partial_products, moduli.partial_inverses, strict=True)
    value = sum([x * w % m * partial_product for x, m, partial_product, w in terms]) % moduli.product
    if signed and value > moduli.value_range(signed)[1]:
        value -= moduli.product
    return value


def _check_residues(residues: Sequence[SupportsIndex], moduli: ModuliSet) -> list[int]:
    """Check that there is one residue for each modulus, below the modulus."""
    if len(residues) != len(moduli):
        raise ValueError(
            f"there must be one residue for each of the {len(moduli)} moduli, got {len(residues)}"
        )
    integers = [x if type(x) is int else as_integer(x, f"residue {i}") for i, x in enumerate(residues)]
    for i, (x, m) in enumerate(zip(integers, moduli.moduli, strict=True)):
        if not 0 <= x < m:
            raise ValueError(
                f"residue {i} must be from 0 to {m - 1} under the modulus {m}, got {abbreviate(x)}"
            )
    return integers
