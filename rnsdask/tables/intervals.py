"""The table of signed integers with stored intervals."""

from functools import partial
from typing import Any

from rnsdask.core import generic, rows
from rnsdask.core.rows import Row
from rnsdask.core.table import Entry, ThroughRNS, table
from rnsdask.interval_rns import arithmetic, convert, divide, exact_results, products, reduce, widening
from rnsdask.rns.divide import check_divisor
from rnsdask.rns.powers import check_inverses
from rnsdask.rns.products import combine, factors_along

_AS_INTEGERS: tuple[Row[..., Any], ...] = (
    *(rows.det, rows.permanent, rows.rank, rows.charpoly, rows.solve, rows.inv, rows.rref, rows.nullspace),
    *(rows.poly_divmod, rows.poly_gcd, rows.evaluate, rows.interpolate, rows.resultant, rows.discriminant),
    *(rows.compose, rows.power_mod, rows.power_series, rows.inverse_series, rows.log_series, rows.exp_series),
)
"""Rows of whole arrays whose results are Python ints of any length."""

TABLE = generic.EVERYWHERE | table(
    *(
        Entry(row, partial(arithmetic.apply, row.name), check=arithmetic.check_algorithm)
        for row in (rows.add, rows.subtract, rows.multiply)
    ),
    *(Entry(row, partial(widening.apply, row.name)) for row in (rows.fma, rows.mulsub, rows.muladd)),
    Entry(rows.negative, arithmetic.negative),
    Entry(rows.absolute, arithmetic.absolute),
    Entry(rows.compare, arithmetic.compare),
    Entry(rows.sign, arithmetic.sign),
    Entry(rows.is_even, arithmetic.is_even),
    Entry(rows.floor_divide, divide.floor_divide),
    Entry(rows.floor_divide_by, divide.divide_by_integer, check=check_divisor),
    Entry(rows.bit_length, reduce.bit_length),
    Entry(rows.power, products.power, check=generic.check_power),
    Entry(rows.power_by_array, products.power_by_array),
    ThroughRNS(rows.power_modulo, check=exact_results.check_power_modulo),
    Entry(rows.inverse, products.inverse, check=check_inverses),
    Entry(rows.residues_modulo, convert.residues_modulo),
    Entry(rows.widened, widening.widened),
    Entry(rows.narrowed, widening.narrowed),
    Entry(rows.to_decimal, convert.to_decimal),
    Entry(rows.reduce, reduce.reduce_columns, moves=False),  # reads hardly any residues: intervals decide
    ThroughRNS(rows.extrema),
    ThroughRNS(rows.sums),
    ThroughRNS(rows.moments),
    ThroughRNS(rows.group_sums, exact_results.bits_of_sum),
    Entry(rows.axis_factors, products.axis_factors),
    Entry(rows.join_axis_factors, factors_along),
    Entry(rows.axis_products, products.finish),
    Entry(rows.factors, products.factors_of_chunk),
    Entry(rows.join_factors, combine),
    Entry(rows.product, products.result_of),
    ThroughRNS(rows.cumsum, exact_results.bits_of_sum),
    Entry(rows.cumprod, products.running_products),
    ThroughRNS(rows.cummax),
    ThroughRNS(rows.cummin),
    Entry(rows.ordering, reduce.ordering),
    *map(ThroughRNS, _AS_INTEGERS),
    ThroughRNS(rows.matmul, exact_results.bits_of_matmul, overflows=True),
    ThroughRNS(rows.convolve, exact_results.bits_of_convolution, overflows=True),
)
"""Operations on numbers with intervals."""
