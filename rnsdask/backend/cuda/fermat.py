"""Kernels of arithmetic modulo r^k + 1. Each field has a compilation of its own."""

from collections.abc import Sequence

import cupy
import numpy as np

from rnsdask.backend.cuda import launching
from rnsdask.backend.cuda.launching import Parameter, row_stride
from rnsdask.backend.cuda_layout import FERMAT_TASK, fermat_options
from rnsdask.backend.protocol import Array
from rnsdask.constants import FermatConstants


def _launch(
    name: str, operands: Sequence[Array], field: FermatConstants, out: Array | None, *more: Array
) -> None:
    operands = tuple(map(cupy.asarray, operands))
    count = operands[0].shape[1] if out is None else out.shape[1]
    task = Parameter(FERMAT_TASK, count=count)
    if out is not None:
        task.fields["out"], task.fields["out_stride"] = task.address(out), row_stride(out)
    for k, x in enumerate(operands):
        task.fields["x"][k] = (task.address(x), row_stride(x), x.shape[1] != 1)
    launching.launch("fermat", name, count, (task, *more), defines=fermat_options(field))


def fermat_apply(operation: str, operands: Sequence[Array], field: FermatConstants, out: Array) -> None:
    if operation == "negate":
        _launch("multiply_by_root", operands, field, out, np.int32(field.digits))
    else:
        _launch(f"{operation}_numbers", operands, field, out)


def fermat_multiply_by_root(x: Array, exponent: int, field: FermatConstants, out: Array) -> None:
    _launch("multiply_by_root", (x,), field, out, np.int32(exponent))


def fermat_first_invalid(x: Array, field: FermatConstants) -> int | None:
    count = x.shape[1]
    first = cupy.full(1, count, dtype=np.int64)
    _launch("first_invalid", (x,), field, None, first)
    index = int(first[0])
    return None if index == count else index
