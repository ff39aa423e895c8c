"""Intervals of residues' fractions, and signed integers that carry one."""

from typing import Any

import cupy
import numpy as np
from numpy.typing import NDArray

from rnsdask.backend.cuda import launching
from rnsdask.backend.cuda.arithmetic import apply, arithmetic_task
from rnsdask.backend.cuda.check import NONE
from rnsdask.backend.cuda.launching import SHARED_BYTES, Parameter, array_arguments, on_device
from rnsdask.backend.cuda.layout import DIGIT_VECTORS, EXTENDED_INTERVAL, INTERVAL_GOAL
from rnsdask.backend.protocol import INTERVAL_OPERATIONS, Array, Bounds, IntervalGoal
from rnsdask.constants import IntervalConstants, ProductBounds
from rnsdask.core.moduli import ModuliSet

_FEW = 126
"""Candidates of an extremum that come to the host with their count."""


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


def _interval_rns_task(x: Array, y: Array, moduli: ModuliSet, out: Array) -> Parameter:
    """Description of columns of n residues and a header; the header's rows follow those of the residues."""
    task = arithmetic_task((cupy.asarray(x), cupy.asarray(y)), moduli, out)
    task.fields["rows"] = len(moduli)
    return task


def interval_rns_first_invalid(x: Array, least_exponent: int, width: float) -> int | None:
    position = cupy.empty(1, dtype=cupy.uint64)
    position.data.memset_async(0xFF, 8)  # NONE; cupy.full would compile a kernel
    arguments = (*array_arguments(x), np.int32(least_exponent), np.float64(width), position)
    launching.launch("interval_rns", "interval_rns_first_invalid", x.shape[1], arguments)
    found = int(position[0])
    return None if found == NONE else found


def interval_rns_lengths(x: Array, product: ProductBounds) -> tuple[Array, Array]:
    count = x.shape[1]
    lengths, decided = cupy.empty(count, dtype=cupy.int64), cupy.empty(count, dtype=cupy.bool_)
    arguments = (*array_arguments(x), _extended(product), lengths, decided)
    launching.launch("interval_rns", "interval_rns_lengths", count, arguments)
    return lengths, decided


def interval_rns_candidates(x: Array, bits: int, slack: int, minimum: bool) -> tuple[int, NDArray[np.int64]]:
    few = _FEW
    while True:
        # As a rule one wait: between two of them other threads take Python's lock.
        on_gpu = cupy.empty(2 + few, dtype=cupy.uint64)
        on_gpu.data.memset_async(0, 16)
        arguments = (*array_arguments(x), np.int32(bits), np.uint32(minimum))
        launching.launch("interval_rns", "interval_rns_greatest_key", x.shape[1], (*arguments, on_gpu))
        near = (*arguments, np.int32(slack), np.uint64(few), on_gpu)
        launching.launch("interval_rns", "interval_rns_near_greatest_key", x.shape[1], near)
        found = on_gpu.get()
        count = int(found[1])
        if count <= few:
            key = int(found[0]) - 2**63
            return -key if minimum else key, np.sort(found[2 : 2 + count].view(np.int64))
        few = count


def _column_threads(task: Parameter) -> int:
    """Threads of a kernel that takes a vector of numbers each, or a number outside of vectors."""
    vectors, count = int(task.fields["vectors"]), int(task.fields["count"])
    return max(vectors, count - 4 * vectors)


def interval_rns_add(
    x: Array, y: Array, moduli: ModuliSet, subtract: bool, algorithm: int | str, accuracy: float, out: Array
) -> Array:
    n, count = len(moduli), out.shape[1]
    flags = cupy.empty(count, dtype=cupy.uint8)
    task = _interval_rns_task(x, y, moduli, out)
    how = (task, np.uint32(subtract), np.float64(accuracy))
    if algorithm == 1:
        launching.launch("interval_rns", "interval_rns_add_signs", count, (*how, flags))
    elif algorithm == 2:
        if 4 * n > SHARED_BYTES:
            most = SHARED_BYTES // 4
            raise ValueError(f"algorithm 2 on a GPU is limited to {most} moduli, got {n}; use 'digits'")
        launching.launch(
            "interval_rns", "interval_rns_add_complement", _column_threads(task), (*how, flags), shared=4 * n
        )
    else:
        selectors = cupy.empty(count, dtype=cupy.uint8)
        launching.launch("interval_rns", "interval_rns_plan", count, (*how, selectors, flags))
        vectors = -(-n * count // (4 * DIGIT_VECTORS))
        launching.launch("interval_rns", "interval_rns_add_digits", vectors, (task, selectors))
    return flags


def interval_rns_multiply(x: Array, y: Array, product: ProductBounds, accuracy: float, out: Array) -> Array:
    n, moduli = len(product.moduli), product.moduli
    flags = cupy.empty(out.shape[1], dtype=cupy.uint8)
    apply("multiply", (x[:n], y[:n]), moduli, out[:n])
    task = _interval_rns_task(x, y, moduli, out)
    arguments = (task, _extended(product), np.float64(accuracy), flags)
    launching.launch("interval_rns", "interval_rns_multiply_headers", out.shape[1], arguments)
    return flags


def _extended(product: ProductBounds) -> Any:
    return np.array((product.low, product.upp, product.exponent), dtype=EXTENDED_INTERVAL)[()]


def interval_rns_compare(x: Array, y: Array, moduli: ModuliSet) -> Array:
    longer = x if x.shape[1] >= y.shape[1] else y
    order = cupy.empty(longer.shape[1], dtype=cupy.int8)
    numbers = cupy.asarray(longer)
    task = _interval_rns_task(x, y, moduli, numbers)
    launching.launch("interval_rns", "interval_rns_compare", longer.shape[1], (task, order))
    return order


def interval_arithmetic(operation: str, x: Bounds, y: Bounds, product: ProductBounds) -> Bounds:
    z = tuple(cupy.empty_like(array) for array in x)
    number = np.int32(INTERVAL_OPERATIONS.index(operation))
    arguments = (number, np.int64(x[0].size), *x, *y, _extended(product), *z)
    launching.launch("interval_rns", "interval_arithmetic", x[0].size, arguments)
    return z
