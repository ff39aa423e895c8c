"""The tables of prime fields and of Fermat fields."""

from collections.abc import Callable
from typing import Any

import numpy as np

from rnsdask.backend import Array
from rnsdask.core.operations import OPERATIONS
from rnsdask.core.table import Entry, Table
from rnsdask.fields.elements import elements_of
from rnsdask.fields.fermat_field import random_digits
from rnsdask.fields.finite_fields import FiniteFields
from rnsdask.rns.decimal import decimal_to_residues, residues_to_decimal
from rnsdask.rns.random import random_residues
from rnsdask.rns.system import RNS


def _on(name: str) -> Callable[..., Any]:
    """Make a chunk function of a method of :class:`.Elements`."""
    return lambda *blocks, system, **how: getattr(elements_of(system), name)(*blocks, **how)


def _sum_of_products(name: str) -> Entry:
    def function(*blocks: Array, system: FiniteFields) -> Array:
        result: Array = elements_of(system).apply(name, blocks)
        return result

    return Entry(function)


def _random_residues(*, system: Any, **how: Any) -> Array:
    """Draw elements of all fields alike: residues of uniform integers."""
    return random_residues(system=RNS(system.moduli), **how)


def _from_decimal(limbs: Array, *, system: Any, signed: bool) -> Array:
    return decimal_to_residues(
        limbs, system.moduli, signed, checked=False
    )  # any integer stands for an element


_SHARED: Table = {
    **{name: _sum_of_products(name) for name in OPERATIONS},
    "differ": Entry(_on("differ"), np.bool_),
    "matmul": Entry(_on("matmul")),
    "transform": Entry(_on("transform")),
    "sum_along": Entry(_on("sums_along")),
    "prod_along": Entry(_on("products_along")),
    "inverse": Entry(_on("inverse"), located=True),
    "reciprocal": Entry(_on("reciprocal")),
    "power": Entry(_on("power"), located=True),
    "power_by_array": Entry(_on("powers"), located=True),
}
"""Operations of elements of all fields."""

PRIME_FIELDS: Table = {
    **_SHARED,
    "random": Entry(_random_residues),
    "from_decimal": Entry(_from_decimal),
    "to_decimal": Entry(lambda words, system: residues_to_decimal(words, system.moduli)),
}
"""Operations of elements of prime fields, by name; `reciprocal` is of one integer."""

FERMAT_FIELDS: Table = {
    **_SHARED,
    "random": Entry(random_digits),
    "multiply_by_root": Entry(_on("multiply_by_root")),
}
"""Operations of elements of Fermat fields, whose digits a product with a root of unity moves."""
