"""Kernels of element-wise arithmetic, with or without a check of the results' range."""

from collections.abc import Sequence
from typing import Any

import cupy
import numpy as np

from rnsdask.backend.cuda import launching
from rnsdask.backend.cuda.launching import Parameter, is_aligned, modulus_table_on, on_device, row_stride
from rnsdask.backend.cuda.results import results
from rnsdask.backend.cuda_layout import MAX_OPERANDS, SUM_TEST, TASK, WINDOW_TEST
from rnsdask.backend.protocol import Array
from rnsdask.constants import KeyConstants, SumCheck, WindowCheck
from rnsdask.core.moduli import ModuliSet


def arithmetic_task(operands: tuple[Array, ...], moduli: ModuliSet, out: Array) -> Parameter:
    """Description of operands that are on the device, and of the result."""
    rows, count = out.shape
    places, aligned = [], is_aligned(out)
    for x in operands:
        is_one = x.shape[1] == 1
        places.append((x, int(row_stride(x)), 0 if is_one else 1))
        aligned = aligned and (is_one or is_aligned(x))
    return Parameter(
        TASK,
        x=places + [(0, 0, 0)] * (MAX_OPERANDS - len(places)),
        out=out,
        out_stride=int(row_stride(out)),
        count=count,
        vectors=count // 4 if aligned else 0,
        moduli=modulus_table_on(moduli, cupy.cuda.runtime.getDevice()),
        rows=rows,
    )


def _on_gpu(operands: Sequence[Array]) -> tuple[Array, ...]:
    """The operands, of which those of one number may be NumPy's."""
    return tuple([x if isinstance(x, cupy.ndarray) else cupy.asarray(x) for x in operands])


def apply(operation: str, operands: Sequence[Array], moduli: ModuliSet, out: Array) -> None:
    task = arithmetic_task(_on_gpu(operands), moduli, out)
    launching.launch("arithmetic", f"{operation}_plain", -(-out.size // 16), (task,))


def apply_checked(
    operation: str, operands: Sequence[Array], moduli: ModuliSet, check: SumCheck, out: Array
) -> Array | None:
    test = np.array(check.limits, dtype=SUM_TEST)[()]
    return _launch_keyed("arithmetic_checked", operation, operands, moduli, (), check.keys, test, out)


def apply_windowed(
    operation: str, operands: Sequence[Array], moduli: ModuliSet, check: WindowCheck, out: Array
) -> Array | None:
    test = np.array(check.limits, dtype=WINDOW_TEST)[()]
    deciding = (np.int32(check.deciding),)
    return _launch_keyed("arithmetic_windowed", operation, operands, moduli, deciding, check.keys, test, out)


def _launch_keyed(
    module: str,
    operation: str,
    operands: Sequence[Array],
    moduli: ModuliSet,
    selection: tuple[Any, ...],
    keys: KeyConstants,
    test: Any,
    out: Array,
) -> Array | None:
    states, not_fitting = cupy.empty(out.shape[1], dtype=cupy.uint8), results()
    task = arithmetic_task(_on_gpu(operands), moduli, out)
    coefficients = (on_device(keys, "coefficients"), np.uint64(keys.start))
    arguments = (task, *selection, *coefficients, test, states, not_fitting.host)
    threads = -(-out.shape[1] // 4)
    blocks = launching.launch(module, f"{operation}_{module}", threads, arguments, shared=8 * len(moduli))
    return states if not_fitting.read(blocks).any() else None


def power(a: Array, exponent: int, moduli: ModuliSet, out: Array) -> None:
    launching.launch(
        "arithmetic", "power", out.size, (arithmetic_task((a,), moduli, out), np.uint64(exponent))
    )


def inverse(a: Array, moduli: ModuliSet, out: Array) -> None:
    launching.launch("arithmetic", "inverse", out.size, (arithmetic_task((a,), moduli, out),))
