"""The tables of prime fields and of Fermat fields."""

from functools import partial

from rnsdask.core import rows
from rnsdask.core.operations import OPERATIONS
from rnsdask.core.table import Entry, table
from rnsdask.fields import (
    arithmetic,
    convolution,
    fermat_arithmetic,
    fermat_convolution,
    fermat_field,
    fermat_polynomials,
    ntt,
    polynomials,
)
from rnsdask.rns import decimal, matmul, products, random

PRIME_FIELDS = table(
    *(Entry(rows.ROWS[name], partial(arithmetic.apply, name)) for name in OPERATIONS),
    Entry(rows.differ, arithmetic.differ),
    Entry(rows.inverse, arithmetic.inverse),
    Entry(rows.divide_by, arithmetic.divide_by, check=arithmetic.check_divisor),
    Entry(rows.power, arithmetic.power),
    Entry(rows.power_by_array, arithmetic.powers),
    Entry(rows.random, random.random_residues),
    Entry(
        rows.from_decimal, partial(decimal.decimal_to_residues, checked=False)
    ),  # any integer is an element
    Entry(rows.to_decimal, partial(decimal.residues_to_decimal, signed=False)),
    Entry(rows.sum_along, arithmetic.sums_along),
    Entry(rows.prod_along, products.factors_along),
    Entry(rows.matmul, matmul.multiply),
    Entry(rows.window, convolution.convolve),
    Entry(rows.transform, ntt.transform),
    Entry(rows.twiddled, ntt.twiddled),
    Entry(rows.resultants, polynomials.resultants),
    Entry(rows.discriminants, polynomials.discriminants),
    Entry(rows.common_divisors, polynomials.common_divisors),
    Entry(rows.divided, polynomials.divided),
)
"""Operations of elements of prime fields."""

FERMAT_FIELDS = table(
    *(Entry(rows.ROWS[name], partial(fermat_arithmetic.apply, name)) for name in OPERATIONS),
    Entry(rows.differ, fermat_arithmetic.differ),
    Entry(rows.inverse, fermat_arithmetic.inverse),
    Entry(rows.divide_by, fermat_arithmetic.divide_by, check=fermat_arithmetic.check_divisor),
    Entry(rows.power, fermat_arithmetic.power),
    Entry(rows.power_by_array, fermat_arithmetic.powers),
    Entry(rows.multiply_by_root, fermat_arithmetic.multiply_by_root),
    Entry(rows.random, fermat_field.random_digits),
    Entry(rows.sum_along, fermat_arithmetic.sums_along),
    Entry(rows.prod_along, fermat_arithmetic.products_along),
    Entry(rows.matmul, fermat_arithmetic.matmul),
    Entry(rows.window, fermat_convolution.convolve),
    Entry(rows.transform, fermat_arithmetic.transform),
    Entry(rows.twiddled, fermat_arithmetic.twiddled),
    Entry(rows.resultants, fermat_polynomials.resultants),
    Entry(rows.discriminants, fermat_polynomials.discriminants),
    Entry(rows.common_divisors, fermat_polynomials.common_divisors),
    Entry(rows.divided, fermat_polynomials.divided),
)
"""Operations of elements of Fermat fields; a product with a root of unity moves their digits."""
