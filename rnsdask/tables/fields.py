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
    fermat_polynomials,
    ntt,
    polynomials,
)
from rnsdask.lazy import convolve, elimination
from rnsdask.lazy import polynomials as lazy_polynomials
from rnsdask.lazy.matmul import product_of_elements
from rnsdask.rns import decimal, matmul, products

ANY_FIELDS = table(
    Entry(rows.divide_by, arithmetic.divide_by, check=arithmetic.check_divisor),
    Entry(rows.matmul, product_of_elements),
    Entry(rows.poly_divmod, lazy_polynomials.divide),
    Entry(rows.poly_gcd, lazy_polynomials.common_divisor),
    Entry(rows.evaluate, lazy_polynomials.evaluate),
    Entry(rows.interpolate, lazy_polynomials.interpolate),
    Entry(rows.compose, lazy_polynomials.compose),
    Entry(rows.power_mod, lazy_polynomials.power_mod),
    Entry(rows.power_series, lazy_polynomials.powers),
    Entry(rows.inverse_series, lazy_polynomials.inverse_series),
    Entry(rows.log_series, lazy_polynomials.log_series),
    Entry(rows.exp_series, lazy_polynomials.exp_series),
    Entry(rows.rational_interpolate, lazy_polynomials.rational_interpolate),
    Entry(rows.resultant, lazy_polynomials.resultant),
    Entry(rows.discriminant, lazy_polynomials.discriminant),
)
"""Operations on elements of fields of either kind."""

PRIME_FIELDS = ANY_FIELDS | table(
    *(Entry(rows.ROWS[name], partial(arithmetic.apply, name)) for name in OPERATIONS),
    Entry(rows.differ, arithmetic.differ),
    Entry(rows.inverse, arithmetic.inverse),
    Entry(rows.power, arithmetic.power),
    Entry(rows.power_by_array, arithmetic.powers),
    Entry(
        rows.from_decimal, partial(decimal.decimal_to_residues, checked=False)
    ),  # any integer is an element
    Entry(rows.to_decimal, partial(decimal.residues_to_decimal, signed=False)),
    Entry(rows.sum_along, arithmetic.sums_along),
    Entry(rows.prod_along, products.factors_along),
    Entry(rows.multiply_matrices, matmul.multiply),
    Entry(rows.multiply_sparse, arithmetic.multiply_sparse),
    Entry(rows.convolve, convolve.convolve_prime_fields),
    Entry(rows.det, elimination.det),
    Entry(rows.rank, elimination.rank),
    Entry(rows.charpoly, elimination.charpoly),
    Entry(rows.solve, elimination.solve),
    Entry(rows.inv, elimination.inv),
    Entry(rows.rref, elimination.rref),
    Entry(rows.nullspace, elimination.nullspace),
    Entry(rows.lu, elimination.lu),
    Entry(rows.window, convolution.convolve),
    Entry(rows.transform, ntt.transform),
    Entry(rows.twiddled, ntt.twiddled),
    Entry(rows.resultants, polynomials.resultants),
    Entry(rows.discriminants, polynomials.discriminants),
    Entry(rows.common_divisors, polynomials.common_divisors),
    Entry(rows.divided, polynomials.divided),
)
"""Operations on elements of prime fields."""

FERMAT_FIELDS = ANY_FIELDS | table(
    *(Entry(rows.ROWS[name], partial(fermat_arithmetic.apply, name)) for name in OPERATIONS),
    Entry(rows.differ, fermat_arithmetic.differ),
    Entry(rows.inverse, fermat_arithmetic.inverse),
    Entry(rows.power, fermat_arithmetic.power),
    Entry(rows.power_by_array, fermat_arithmetic.powers),
    Entry(rows.multiply_by_root, fermat_arithmetic.multiply_by_root),
    Entry(rows.sum_along, fermat_arithmetic.sums_along),
    Entry(rows.prod_along, fermat_arithmetic.products_along),
    Entry(rows.multiply_matrices, fermat_arithmetic.matmul),
    Entry(rows.convolve, convolve.convolve_fermat_field, waiting=convolve.waiting_in_fermat_field),
    Entry(rows.window, fermat_convolution.convolve),
    Entry(rows.transform, fermat_arithmetic.transform),
    Entry(rows.twiddled, fermat_arithmetic.twiddled),
    Entry(rows.resultants, fermat_polynomials.resultants),
    Entry(rows.discriminants, fermat_polynomials.discriminants),
    Entry(rows.common_divisors, fermat_polynomials.common_divisors),
    Entry(rows.divided, fermat_polynomials.divided),
)
"""Operations on elements of Fermat fields; a product with a root of unity moves their digits."""
