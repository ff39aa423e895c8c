"""Kernels of element-wise arithmetic, with or without a check of the results' range."""

from collections.abc import Sequence
from typing import Any

import cupy
import numpy as np

from rnsdask.backend.cuda import launching
from rnsdask.backend.cuda.launching import Parameter, is_aligned, modulus_table_on, on_device, row_stride
from rnsdask.backend.cuda_layout import SUM_TEST, TASK, WINDOW_TEST
from rnsdask.backend.protocol import Array
from rnsdask.constants import SumCheck, WindowCheck
from rnsdask.core.moduli import ModuliSet


def arithmetic_task(operands: tuple[Array, ...], moduli: ModuliSet, out: Array) -> Parameter:
    """Description of operands that are on the device, and of the result."""
    rows, count = out.shape
    aligned = all(x.shape[1] == 1 or is_aligned(x) for x in (*operands, out))
    task = Parameter(
        TASK,
        out=out,
        out_stride=row_stride(out),
        count=count,
        vectors=count // 4 if aligned else 0,
        moduli=modulus_table_on(moduli, cupy.cuda.runtime.getDevice()),
        rows=rows,
    )
    for k, x in enumerate(operands):
        task.fields["x"][k] = (task.address(x), row_stride(x), x.shape[1] != 1)
    return task


def _apply(name: str, operands: tuple[Array, ...], moduli: ModuliSet, out: Array) -> None:
    operands = tuple(map(cupy.asarray, operands))
    task = arithmetic_task(operands, moduli, out)
    launching.launch("arithmetic", name, -(-out.size // 16), (task,))


def add(a: Array, b: Array, moduli: ModuliSet, out: Array) -> None:
    _apply("add", (a, b), moduli, out)


def subtract(a: Array, b: Array, moduli: ModuliSet, out: Array) -> None:
    _apply("subtract", (a, b), moduli, out)


def multiply(a: Array, b: Array, moduli: ModuliSet, out: Array) -> None:
    _apply("multiply", (a, b), moduli, out)


def fma(a: Array, b: Array, c: Array, moduli: ModuliSet, out: Array) -> None:
    _apply("fma_residues", (a, b, c), moduli, out)


def mulsub(a: Array, b: Array, c: Array, d: Array, moduli: ModuliSet, out: Array) -> None:
    _apply("mulsub", (a, b, c, d), moduli, out)


def power(a: Array, exponent: int, moduli: ModuliSet, out: Array) -> None:
    launching.launch(
        "arithmetic", "power", out.size, (arithmetic_task((a,), moduli, out), np.uint64(exponent))
    )


def inverse(a: Array, moduli: ModuliSet, out: Array) -> None:
    launching.launch("arithmetic", "inverse", out.size, (arithmetic_task((a,), moduli, out),))


def add_checked(a: Array, b: Array, moduli: ModuliSet, check: SumCheck, out: Array) -> Array:
    return _apply_checked("add_checked", (a, b), moduli, check, out)


def subtract_checked(a: Array, b: Array, moduli: ModuliSet, check: SumCheck, out: Array) -> Array:
    return _apply_checked("subtract_checked", (a, b), moduli, check, out)


def _apply_checked(
    name: str, operands: tuple[Array, ...], moduli: ModuliSet, check: SumCheck, out: Array
) -> Array:
    return _launch_keyed(name, operands, moduli, (), check, out)


def windowed(
    operation: str, operands: Sequence[Array], moduli: ModuliSet, check: WindowCheck, out: Array
) -> Array:
    deciding = (np.int32(check.deciding),)
    return _launch_keyed(f"{operation}_windowed", operands, moduli, deciding, check, out)


def _launch_keyed(
    name: str,
    operands: Sequence[Array],
    moduli: ModuliSet,
    selection: tuple[Any, ...],
    check: SumCheck | WindowCheck,
    out: Array,
) -> Array:
    dtype = SUM_TEST if isinstance(check, SumCheck) else WINDOW_TEST
    test = np.array(check.limits, dtype=dtype)[()]
    operands = tuple(map(cupy.asarray, operands))
    states = cupy.empty(out.shape[1], dtype=cupy.uint8)
    coefficients = (on_device(check.keys, "coefficients"), np.uint64(check.keys.start))
    arguments = (arithmetic_task(operands, moduli, out), *selection, *coefficients, test, states)
    launching.launch("arithmetic", name, -(-out.shape[1] // 4), arguments, shared=8 * len(moduli))
    return states
