"""The table of integers of a fixed number of bits."""

from functools import partial

from rnsdask.core import generic, rows
from rnsdask.core.operations import OPERATIONS
from rnsdask.core.table import Entry, table
from rnsdask.positional import arithmetic, bits, decimal, divide, groups, modular, reduce, trees

TABLE = generic.EVERYWHERE | table(
    *(Entry(rows.ROWS[name], partial(arithmetic.apply_to_blocks, name)) for name in OPERATIONS),
    *(Entry(rows.ROWS[name], partial(bits.logic, name)) for name in bits.LOGIC),
    Entry(rows.absolute, arithmetic.absolute),
    Entry(rows.compare, reduce.compare),
    Entry(rows.sign, reduce.sign),
    Entry(rows.is_even, bits.is_even),
    Entry(rows.floor_divide, arithmetic.floor_divide),
    Entry(rows.floor_divide_by, arithmetic.divide_by_integer, check=generic.check_nonzero),
    Entry(rows.gcd, arithmetic.gcd),
    Entry(rows.isqrt, divide.isqrt),
    Entry(rows.bit_length, partial(bits.count, what="length")),
    Entry(rows.bitwise_count, partial(bits.count, what="ones")),
    Entry(rows.invert, bits.invert),
    Entry(rows.left_shift, bits.left_shift),
    Entry(rows.right_shift, bits.right_shift),
    Entry(rows.power, arithmetic.power, check=generic.check_power),
    Entry(rows.power_by_array, arithmetic.power),
    Entry(rows.mod_add, modular.mod_add),
    Entry(rows.mod_subtract, modular.mod_subtract),
    Entry(rows.mod_multiply, modular.mod_multiply),
    Entry(rows.mod_power, modular.mod_power),
    Entry(rows.mod_power_by_array, modular.mod_power_by_array),
    Entry(rows.mod_power_by_integer, modular.mod_power_by_integer),
    Entry(rows.mod_inverse, modular.mod_inverse),
    Entry(rows.from_decimal, decimal.from_decimal),
    Entry(rows.to_decimal, decimal.to_decimal),
    Entry(rows.reduce, reduce.reduce_words),
    Entry(rows.extrema, reduce.extrema),
    Entry(rows.sums, reduce.sums),
    Entry(rows.moments, reduce.moments),
    Entry(rows.group_sums, groups.sums),
    Entry(rows.widened, groups.widened),
    Entry(rows.narrowed, groups.narrowed),
    Entry(rows.axis_factors, arithmetic.axis_factors),
    Entry(rows.join_axis_factors, arithmetic.factors_along),
    Entry(rows.axis_products, arithmetic.finish),
    Entry(rows.factors, arithmetic.factors_of_chunk),
    Entry(rows.join_factors, arithmetic.join),
    Entry(rows.product, arithmetic.result_of),
    Entry(rows.product_tree, trees.Tree),
    Entry(rows.cumsum, reduce.PositionalSums),
    Entry(rows.cumprod, reduce.PositionalProducts),
    Entry(rows.cummax, partial(reduce.PositionalExtrema, minimum=False)),
    Entry(rows.cummin, partial(reduce.PositionalExtrema, minimum=True)),
    Entry(rows.ordering, reduce.ordering),
)
"""Operations on limbs."""
