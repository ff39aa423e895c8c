"""Kernels of the floating-point interval evaluation."""

import cupy
import numpy as np

from rnsdask.backend.cuda import launching
from rnsdask.backend.cuda.launching import array_arguments, on_device
from rnsdask.backend.cuda_layout import INTERVAL_GOAL
from rnsdask.backend.protocol import Array, IntervalGoal
from rnsdask.constants import IntervalConstants


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
    fields = np.array((goal.accuracy, *scale, goal.signed), dtype=INTERVAL_GOAL)[()]
    results = (low, upp, exponent, steps)
    launching.launch("interval", "interval", count, (*array_arguments(residues), *tables, fields, *results))
    return results
