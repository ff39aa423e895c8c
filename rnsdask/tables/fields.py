"""The tables of prime fields and of Fermat fields."""

from functools import partial

from rnsdask.core import rows
from rnsdask.core.operations import OPERATIONS
from rnsdask.core.table import Entry, table
from rnsdask.fields import (
    arithmetic,
    base_change,
    convolution,
    fermat_arithmetic,
    fermat_convolution,
    fermat_polynomials,
    ntt,
    polynomials,
    wide_arithmetic,
    wide_polynomials,
    wide_products,
)
from rnsdask.rns import decimal, groups, matmul, products

ANY_FIELDS = table(
    Entry(rows.divide_by, arithmetic.divide_by, check=arithmetic.check_divisor),
    Entry(rows.group_prods, partial(arithmetic.fold_groups, "multiply")),
    Entry(rows.matmul, "rnsdask.lazy.matmul:product_of_elements"),
    Entry(rows.poly_divmod, "rnsdask.lazy.polynomials:divide"),
    Entry(rows.poly_gcd, "rnsdask.lazy.polynomials:common_divisor"),
    Entry(rows.evaluate, "rnsdask.lazy.polynomials:evaluate"),
    Entry(rows.interpolate, "rnsdask.lazy.polynomials:interpolate"),
    Entry(rows.compose, "rnsdask.lazy.polynomials:compose"),
    Entry(rows.power_mod, "rnsdask.lazy.polynomials:power_mod"),
    Entry(rows.power_series, "rnsdask.lazy.polynomials:powers"),
    Entry(rows.inverse_series, "rnsdask.lazy.polynomials:inverse_series"),
    Entry(rows.log_series, "rnsdask.lazy.polynomials:log_series"),
    Entry(rows.exp_series, "rnsdask.lazy.polynomials:exp_series"),
    Entry(rows.rational_interpolate, "rnsdask.lazy.polynomials:rational_interpolate"),
    Entry(rows.resultant, "rnsdask.lazy.polynomials:resultant"),
    Entry(rows.discriminant, "rnsdask.lazy.polynomials:discriminant"),
)
"""Operations on elements of fields of either kind."""

ANY_PRIME_FIELDS = ANY_FIELDS | table(
    Entry(rows.inverse, arithmetic.inverse),
    Entry(rows.power, arithmetic.power),
    Entry(rows.power_by_array, arithmetic.powers),
    Entry(rows.det, "rnsdask.lazy.elimination:det"),
    Entry(rows.rank, "rnsdask.lazy.elimination:rank"),
    Entry(rows.permanent, "rnsdask.lazy.elimination:permanent"),
    Entry(rows.charpoly, "rnsdask.lazy.elimination:charpoly"),
    Entry(rows.solve, "rnsdask.lazy.elimination:solve"),
    Entry(rows.inv, "rnsdask.lazy.elimination:inv"),
    Entry(rows.rref, "rnsdask.lazy.elimination:rref"),
    Entry(rows.nullspace, "rnsdask.lazy.elimination:nullspace"),
    Entry(rows.lu, "rnsdask.lazy.elimination:lu"),
    Entry(rows.multiply_sparse, arithmetic.multiply_sparse),
    Entry(rows.transform, ntt.transform),
    Entry(rows.twiddled, ntt.twiddled),
    Entry(rows.rescale, base_change.rescale),
    Entry(rows.base_extend, base_change.base_extend),
)
"""Operations on elements of prime fields of either width."""

PRIME_FIELDS = ANY_PRIME_FIELDS | table(
    *(Entry(rows.ROWS[name], partial(arithmetic.apply, name)) for name in OPERATIONS),
    Entry(rows.differ, arithmetic.differ),
    Entry(
        rows.from_decimal, partial(decimal.decimal_to_residues, checked=False)
    ),  # any integer is an element
    Entry(rows.to_decimal, partial(decimal.residues_to_decimal, signed=False)),
    Entry(rows.sum_along, arithmetic.sums_along),
    Entry(rows.prod_along, products.factors_along),
    Entry(rows.group_sums, groups.sums),
    Entry(rows.multiply_matrices, matmul.multiply),
    Entry(rows.convolve, "rnsdask.lazy.convolve:convolve_prime_fields"),
    Entry(rows.window, convolution.convolve),
    Entry(rows.resultants, polynomials.resultants),
    Entry(rows.discriminants, polynomials.discriminants),
    Entry(rows.common_divisors, polynomials.common_divisors),
    Entry(rows.divided, polynomials.divided),
)
"""Operations on elements of prime fields below 2**32."""

WIDE_PRIME_FIELDS = ANY_PRIME_FIELDS | table(
    *(Entry(rows.ROWS[name], partial(wide_arithmetic.apply, name)) for name in OPERATIONS),
    Entry(rows.differ, fermat_arithmetic.differ),
    Entry(rows.sum_along, wide_arithmetic.sums_along),
    Entry(rows.prod_along, wide_arithmetic.products_along),
    Entry(rows.group_sums, partial(arithmetic.fold_groups, "add")),
    Entry(rows.multiply_matrices, wide_products.multiply_matrices),
    Entry(rows.convolve, "rnsdask.lazy.convolve:convolve_wide_fields"),
    Entry(rows.window, wide_products.convolve),
    Entry(rows.resultants, wide_polynomials.resultants),
    Entry(rows.discriminants, wide_polynomials.discriminants),
    Entry(rows.common_divisors, wide_polynomials.common_divisors),
    Entry(rows.divided, wide_polynomials.divided),
)
"""Operations on elements of prime fields of which one is beyond 32 bits."""

FERMAT_FIELDS = ANY_FIELDS | table(
    *(Entry(rows.ROWS[name], partial(fermat_arithmetic.apply, name)) for name in OPERATIONS),
    Entry(rows.differ, fermat_arithmetic.differ),
    Entry(rows.inverse, fermat_arithmetic.inverse),
    Entry(rows.power, fermat_arithmetic.power),
    Entry(rows.power_by_array, fermat_arithmetic.powers),
    Entry(rows.multiply_by_root, fermat_arithmetic.multiply_by_root),
    Entry(rows.sum_along, fermat_arithmetic.sums_along),
    Entry(rows.prod_along, fermat_arithmetic.products_along),
    Entry(rows.group_sums, partial(arithmetic.fold_groups, "add")),
    Entry(rows.multiply_matrices, fermat_arithmetic.matmul),
    Entry(
        rows.convolve,
        "rnsdask.lazy.convolve:convolve_fermat_field",
        waiting="rnsdask.lazy.convolve:waiting_in_fermat_field",
    ),
    Entry(rows.window, fermat_convolution.convolve),
    Entry(rows.transform, fermat_arithmetic.transform),
    Entry(rows.twiddled, fermat_arithmetic.twiddled),
    Entry(rows.resultants, fermat_polynomials.resultants),
    Entry(rows.discriminants, fermat_polynomials.discriminants),
    Entry(rows.common_divisors, fermat_polynomials.common_divisors),
    Entry(rows.divided, fermat_polynomials.divided),
)
"""Operations on elements of Fermat fields; a product with a root of unity moves their digits."""
