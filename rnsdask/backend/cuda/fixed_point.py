"""Kernels of evaluation: mixed-radix digits, fixed point, floating-point intervals."""

import cupy
import numpy as np

from rnsdask.backend.cuda import launching
from rnsdask.backend.cuda.launching import array_arguments, on_device
from rnsdask.backend.protocol import Array, IntervalGoal
from rnsdask.constants import FixedPointConstants, IntervalConstants, MixedRadixConstants

# As IntervalGoal in kernels/include/rns/interval.cuh.
_INTERVAL_GOAL = np.dtype(
    [
        ("accuracy", np.float64),
        ("scale_low", np.float64),
        ("scale_upp", np.float64),
        ("scale_exponent", np.int32),
        ("is_signed", np.int32),
    ]
)


def mixed_radix_digits(residues: Array, constants: MixedRadixConstants) -> Array:
    digits = cupy.empty(residues.shape, dtype=cupy.uint32)
    tables = tuple(on_device(constants, field) for field in ("last", "ones", "inverses"))
    launching.launch(
        "mixed_radix", "mixed_radix_digits", residues.shape[1], (*array_arguments(residues), *tables, digits)
    )
    return digits


def fixed_point(residues: Array, constants: FixedPointConstants) -> tuple[Array, Array]:
    count = residues.shape[1]
    words = cupy.empty((constants.bits // 32, count), dtype=cupy.uint32)
    zero = cupy.empty(count, dtype=cupy.bool_)
    arguments = (*array_arguments(residues), on_device(constants, "coefficients"), words, zero)
    launching.launch("fixed_point", f"fixed_point_{constants.bits}", count, arguments)
    return words, zero


def interval(
    residues: Array, constants: IntervalConstants, goal: IntervalGoal
) -> tuple[Array, Array, Array, Array]:
    count = residues.shape[1]
    low, upp = cupy.empty(count, dtype=cupy.float64), cupy.empty(count, dtype=cupy.float64)
    exponent, steps = cupy.empty(count, dtype=cupy.int32), cupy.empty(count, dtype=cupy.uint32)
    scale = (goal.scale_low, goal.scale_upp, goal.scale_exponent)
    last, inverses, powers, reciprocals = (
        on_device(constants, field) for field in ("last", "inverses", "powers", "reciprocals")
    )
    tables = (last, inverses, np.int64(inverses.shape[1] // 2), powers, reciprocals)
    fields = np.array((goal.accuracy, *scale, goal.signed), dtype=_INTERVAL_GOAL)[()]
    results = (low, upp, exponent, steps)
    launching.launch("interval", "interval", count, (*array_arguments(residues), *tables, fields, *results))
    return results
