"""The tables of prime fields and of Fermat fields."""

from collections.abc import Callable
from typing import Any

import numpy as np

from rnsdask.backend import Array
from rnsdask.core.operations import OPERATIONS
from rnsdask.core.table import Entry, Table
from rnsdask.fields import (
    arithmetic,
    convolution,
    fermat_convolution,
    fermat_polynomials,
    ntt,
    polynomials,
)
from rnsdask.fields.fermat_arithmetic import FermatElements
from rnsdask.fields.fermat_field import FermatField, random_digits
from rnsdask.fields.system import PrimeFields
from rnsdask.rns import matmul
from rnsdask.rns.arithmetic import apply
from rnsdask.rns.compare import differ
from rnsdask.rns.decimal import decimal_to_residues, residues_to_decimal
from rnsdask.rns.products import factors_along
from rnsdask.rns.random import random_residues
from rnsdask.rns.system import RNS


def _of_moduli(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make a chunk function of one that takes moduli."""
    return lambda *blocks, system, **how: function(*blocks, moduli=system.moduli, **how)


def _of_field(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make a chunk function of one that takes a Fermat field."""
    return lambda *blocks, system, **how: function(*blocks, field=system, **how)


def _of_elements(name: str) -> Callable[..., Any]:
    """Make a chunk function of a method of :class:`.FermatElements`."""
    return lambda *blocks, system, **how: getattr(FermatElements(system), name)(*blocks, **how)


def _sum_of_products(name: str) -> Entry:
    def function(*blocks: Array, system: PrimeFields) -> Array:
        return apply(name, blocks, RNS(system.moduli), "wrap")

    return Entry(function)


def _sum_of_fermat_products(name: str) -> Entry:
    def function(*blocks: Array, system: FermatField) -> Array:
        return FermatElements(system).apply(name, blocks)

    return Entry(function)


def _from_decimal(limbs: Array, *, system: Any, signed: bool) -> Array:
    return decimal_to_residues(
        limbs, system.moduli, signed, checked=False
    )  # any integer stands for an element


PRIME_FIELDS: Table = {
    **{name: _sum_of_products(name) for name in OPERATIONS},
    "differ": Entry(lambda a, b, system: differ(a, b, RNS(system.moduli)), np.bool_),
    "matmul": Entry(_of_moduli(matmul.multiply)),
    "window": Entry(_of_moduli(convolution.convolve)),
    "transform": Entry(_of_moduli(ntt.transform)),
    "twiddled": Entry(_of_moduli(ntt.twiddled)),
    "sum_along": Entry(_of_moduli(arithmetic.sums_along)),
    "prod_along": Entry(_of_moduli(factors_along)),
    "random": Entry(lambda system, **how: random_residues(system=RNS(system.moduli), **how)),
    "inverse": Entry(_of_moduli(arithmetic.inverse), located=True),
    "reciprocal": Entry(_of_moduli(arithmetic.reciprocal)),
    "power": Entry(_of_moduli(arithmetic.power), located=True),
    "power_by_array": Entry(_of_moduli(arithmetic.powers), located=True),
    "resultants": Entry(_of_moduli(polynomials.resultants)),
    "discriminants": Entry(_of_moduli(polynomials.discriminants)),
    "common_divisors": Entry(_of_moduli(polynomials.common_divisors)),
    "divided": Entry(_of_moduli(polynomials.divided)),
    "from_decimal": Entry(_from_decimal),
    "to_decimal": Entry(lambda words, system: residues_to_decimal(words, system.moduli)),
}
"""Operations of elements of prime fields, by name.

`reciprocal` is of one integer, and `window` gives some coefficients of products of polynomials.
"""

FERMAT_FIELDS: Table = {
    **{name: _sum_of_fermat_products(name) for name in OPERATIONS},
    "differ": Entry(_of_elements("differ"), np.bool_),
    "matmul": Entry(_of_elements("matmul")),
    "window": Entry(_of_field(fermat_convolution.convolve)),
    "transform": Entry(_of_elements("transform")),
    "twiddled": Entry(_of_elements("twiddled")),
    "sum_along": Entry(_of_elements("sums_along")),
    "prod_along": Entry(_of_elements("products_along")),
    "random": Entry(random_digits),
    "inverse": Entry(_of_elements("inverse"), located=True),
    "reciprocal": Entry(_of_elements("reciprocal")),
    "power": Entry(_of_elements("power"), located=True),
    "power_by_array": Entry(_of_elements("powers"), located=True),
    "resultants": Entry(_of_field(fermat_polynomials.resultants)),
    "discriminants": Entry(_of_field(fermat_polynomials.discriminants)),
    "common_divisors": Entry(_of_field(fermat_polynomials.common_divisors)),
    "divided": Entry(_of_field(fermat_polynomials.divided)),
    "multiply_by_root": Entry(_of_elements("multiply_by_root")),
}
"""Operations of elements of Fermat fields, by name; a product with a root of unity moves their digits."""
