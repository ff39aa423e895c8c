"""Fields of generalised Fermat primes: arithmetic, transforms, limbs. Each field has its own compilation."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import cupy
import numpy as np

from rnsdask.backend.cuda import launching
from rnsdask.backend.cuda.launching import Parameter, is_aligned, row_stride
from rnsdask.backend.cuda.layout import FERMAT_TASK, FERMAT_TRANSFORM, WIDE_RADIX, fermat_side, field_options
from rnsdask.backend.cuda.memory import table_on_gpu
from rnsdask.backend.protocol import Array
from rnsdask.constants import FermatConstants, FermatPass, radix_division

(_MOST_OPERANDS,) = FERMAT_TASK["x"].shape


def _launch(
    name: str, operands: Sequence[Array], field: FermatConstants, out: Array | None, *more: Array
) -> None:
    arrays = [*map(cupy.asarray, operands)]
    places = [(x, row_stride(x), x.shape[1] != 1) for x in arrays]
    result = {} if out is None else {"out": out, "out_stride": row_stride(out)}
    arrays += [] if out is None else [out]
    count, side = arrays[-1].shape[1], fermat_side(field)
    together = all(x.shape[1] == count and is_aligned(x) for x in arrays)
    task = Parameter(
        FERMAT_TASK,
        x=places + [(0, 0, 0)] * (_MOST_OPERANDS - len(places)),
        count=count,
        vectors=count // side if together else 0,
        **result,
    )
    launching.launch("fermat", name, -(-count // side), (task, *more), defines=field_options(field))


def fermat_apply(operation: str, operands: Sequence[Array], field: FermatConstants, out: Array) -> None:
    if operation == "negate":
        _launch("multiply_by_root", operands, field, out, np.int32(field.digits))
    else:
        _launch(f"{operation}_numbers", operands, field, out)


def fermat_multiply_by_root(x: Array, exponent: int, field: FermatConstants, out: Array) -> None:
    _launch("multiply_by_root", (x,), field, out, np.int32(exponent))


@lru_cache(32)  # of few transforms, for long ones have as many factors as numbers
def _factors_on(step: FermatPass, device: int) -> Array:
    return table_on_gpu(step.factors)


def fermat_pass(x: Array, step: FermatPass, out: Array) -> None:
    task = Parameter(
        FERMAT_TRANSFORM,
        x=x,
        stride=row_stride(x),
        factors=_factors_on(step, cupy.cuda.runtime.getDevice()) if step.factors.size else 0,
        factor_count=step.factors.shape[1],
        out=out,
        out_stride=row_stride(out),
        columns=out.shape[1] >> step.log_radix,
        shape=step.shape,
    )
    launching.launch(
        "fermat_fft",
        "transform_pass",
        -(-out.shape[1] // 2),
        (task,),
        block=step.field.tile // 2,
        defines=field_options(step.field),
    )


def fermat_first_invalid(x: Array, field: FermatConstants) -> int | None:
    count = x.shape[1]
    first = cupy.full(1, count, dtype=np.int64)
    _launch("first_invalid", (x,), field, None, first)
    index = int(first[0])
    return None if index == count else index


def limbs_to_fermat(limbs: Array, signed: bool, field: FermatConstants) -> Array:
    limbs = cupy.ascontiguousarray(limbs)
    numbers, count = limbs.shape
    digits = cupy.empty((field.digits, numbers), dtype=field.dtype)
    size = (np.int64(count), np.int64(numbers), np.int32(signed))
    arguments = (limbs, *size, *_radix_arguments(field), digits)
    launching.launch("fermat_limbs", f"limbs_to_fermat_{_bits(field)}", numbers, arguments)
    return digits


def fermat_to_limbs(digits: Array, field: FermatConstants) -> Array:
    numbers = digits.shape[1]
    limbs = cupy.empty((numbers, radix_division(field).limb_count), dtype=cupy.uint32)
    size = (row_stride(digits), np.int64(numbers))
    arguments = (digits, *size, *_radix_arguments(field), limbs, np.int64(limbs.shape[1]))
    launching.launch("fermat_limbs", f"fermat_to_limbs_{_bits(field)}", numbers, arguments)
    return limbs


def _bits(field: FermatConstants) -> int:
    return int(8 * field.dtype.itemsize)


def _radix_arguments(field: FermatConstants) -> tuple[Any, ...]:
    wide = radix_division(field)
    fields = {name: getattr(wide, name) for name in ("radix", "normalized", "reciprocal", "shift", "digits")}
    return np.uint64(field.radix), Parameter(WIDE_RADIX, **fields)
