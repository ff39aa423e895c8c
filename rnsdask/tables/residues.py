"""The table of residue number systems."""

from functools import partial

from rnsdask.core import generic, rows
from rnsdask.core.operations import OPERATIONS
from rnsdask.core.table import Entry, table
from rnsdask.lazy import exact_elimination, exact_polynomials, integer_polynomials
from rnsdask.lazy.convolve import convolve_residues
from rnsdask.lazy.matmul import product_of_residues
from rnsdask.rns import (
    arithmetic,
    axis,
    compare,
    decimal,
    divide,
    matmul,
    number_theory,
    powers,
    products,
    reduce,
    scan,
    sort,
)
from rnsdask.rns.convert import unchanged

TABLE = generic.EVERYWHERE | table(
    *(Entry(rows.ROWS[name], partial(arithmetic.apply_to_blocks, name)) for name in OPERATIONS),
    Entry(rows.absolute, compare.absolute),
    Entry(rows.compare, compare.compare),
    Entry(rows.differ, compare.differ),
    Entry(rows.sign, compare.sign),
    Entry(rows.is_even, divide.is_even),
    Entry(rows.floor_divide, divide.divide_arrays),
    Entry(rows.floor_divide_by, divide.divide_by_integer, check=divide.check_divisor),
    Entry(rows.bit_length, number_theory.bit_length),
    Entry(rows.power, powers.power, plan=powers.plan),
    Entry(rows.power_by_array, powers.power_by_array),
    Entry(rows.power_modulo, powers.power_modulo),
    Entry(rows.power_modulo_by_array, powers.power_modulo_by_array),
    Entry(rows.inverse, powers.inverse, check=powers.check_inverses),
    Entry(rows.residues_modulo, unchanged),
    Entry(rows.from_decimal, decimal.decimal_to_words),
    Entry(rows.to_decimal, decimal.words_to_decimal),
    Entry(rows.reduce, reduce.reduce_chunk),
    Entry(rows.extrema, axis.extrema),
    Entry(rows.sums, axis.sums),
    Entry(rows.moments, axis.moments),
    Entry(rows.axis_factors, products.axis_factors),
    Entry(rows.join_axis_factors, products.factors_along),
    Entry(rows.axis_products, products.finish),
    Entry(rows.factors, products.factors_of_chunk),
    Entry(rows.join_factors, products.combine),
    Entry(rows.product, products.result_of),
    Entry(rows.cumsum, scan.scan_sums),
    Entry(rows.cumprod, scan.AxisProducts),
    Entry(rows.cummax, partial(scan.scan_extrema, minimum=False)),
    Entry(rows.cummin, partial(scan.scan_extrema, minimum=True)),
    Entry(rows.ordering, sort.ordering),
    Entry(rows.multiply_matrices, matmul.multiply),
    Entry(rows.matmul, product_of_residues),
    Entry(rows.convolve, convolve_residues),
    Entry(rows.det, exact_elimination.det),
    Entry(rows.rank, exact_elimination.rank),
    Entry(rows.charpoly, exact_elimination.charpoly),
    Entry(rows.solve, exact_elimination.solve),
    Entry(rows.inv, exact_elimination.inv),
    Entry(rows.rref, exact_elimination.rref),
    Entry(rows.nullspace, exact_elimination.nullspace),
    Entry(rows.poly_divmod, integer_polynomials.divide),
    Entry(rows.poly_gcd, integer_polynomials.common_divisor),
    Entry(rows.evaluate, integer_polynomials.evaluate),
    Entry(rows.interpolate, integer_polynomials.interpolate),
    Entry(rows.compose, integer_polynomials.compose),
    Entry(rows.power_mod, integer_polynomials.power_mod),
    Entry(rows.power_series, integer_polynomials.powers),
    Entry(rows.inverse_series, integer_polynomials.inverse_series),
    Entry(rows.log_series, integer_polynomials.log_series),
    Entry(rows.exp_series, integer_polynomials.exp_series),
    Entry(rows.resultant, exact_polynomials.resultant),
    Entry(rows.discriminant, exact_polynomials.discriminant),
)
"""Operations on residues."""
