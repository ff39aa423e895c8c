"""The table of residue number systems."""

from functools import partial

from rnsdask.core import generic, rows
from rnsdask.core.operations import OPERATIONS
from rnsdask.core.table import Entry, table
from rnsdask.positional import modular, modular_residues
from rnsdask.rns import (
    arithmetic,
    axis,
    compare,
    decimal,
    divide,
    groups,
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
    *(
        Entry(row, partial(modular_residues.apply, function))
        for row, function in (
            (rows.mod_add, modular.mod_add),
            (rows.mod_subtract, modular.mod_subtract),
            (rows.mod_multiply, modular.mod_multiply),
            (rows.mod_power, modular.mod_power),
            (rows.mod_inverse, modular.mod_inverse),
        )
    ),
    Entry(rows.mod_power_by_array, partial(modular_residues.apply, modular.mod_power_by_array, plain=1)),
    Entry(rows.mod_power_by_integer, modular_residues.mod_power_by_integer),
    Entry(rows.inverse, powers.inverse, check=powers.check_inverses),
    Entry(rows.residues_modulo, unchanged),
    Entry(rows.from_decimal, decimal.decimal_to_words),
    Entry(rows.to_decimal, decimal.words_to_decimal),
    Entry(rows.reduce, reduce.reduce_chunk),
    Entry(rows.extrema, axis.extrema),
    Entry(rows.sums, axis.sums),
    Entry(rows.moments, axis.moments),
    Entry(rows.group_sums, groups.sums),
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
    Entry(rows.matmul, "rnsdask.lazy.matmul:product_of_residues"),
    Entry(rows.convolve, "rnsdask.lazy.convolve:convolve_residues"),
    Entry(rows.det, "rnsdask.lazy.exact_elimination:det"),
    Entry(rows.rank, "rnsdask.lazy.exact_elimination:rank"),
    Entry(rows.permanent, "rnsdask.lazy.exact_elimination:permanent"),
    Entry(rows.charpoly, "rnsdask.lazy.exact_elimination:charpoly"),
    Entry(rows.solve, "rnsdask.lazy.exact_elimination:solve"),
    Entry(rows.inv, "rnsdask.lazy.exact_elimination:inv"),
    Entry(rows.rref, "rnsdask.lazy.exact_elimination:rref"),
    Entry(rows.nullspace, "rnsdask.lazy.exact_elimination:nullspace"),
    Entry(rows.poly_divmod, "rnsdask.lazy.integer_polynomials:divide"),
    Entry(rows.poly_gcd, "rnsdask.lazy.integer_polynomials:common_divisor"),
    Entry(rows.evaluate, "rnsdask.lazy.integer_polynomials:evaluate"),
    Entry(rows.interpolate, "rnsdask.lazy.integer_polynomials:interpolate"),
    Entry(rows.compose, "rnsdask.lazy.integer_polynomials:compose"),
    Entry(rows.power_mod, "rnsdask.lazy.integer_polynomials:power_mod"),
    Entry(rows.power_series, "rnsdask.lazy.integer_polynomials:powers"),
    Entry(rows.inverse_series, "rnsdask.lazy.integer_polynomials:inverse_series"),
    Entry(rows.log_series, "rnsdask.lazy.integer_polynomials:log_series"),
    Entry(rows.exp_series, "rnsdask.lazy.integer_polynomials:exp_series"),
    Entry(rows.resultant, "rnsdask.lazy.exact_polynomials:resultant"),
    Entry(rows.discriminant, "rnsdask.lazy.exact_polynomials:discriminant"),
)
"""Operations on residues."""
