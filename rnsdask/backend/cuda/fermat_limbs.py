"""Kernels that turn limbs into digits of Fermat fields, and back."""

from typing import Any

import cupy
import numpy as np

from rnsdask.backend.cuda import launching
from rnsdask.backend.cuda.launching import Parameter, row_stride
from rnsdask.backend.cuda_layout import WIDE_RADIX
from rnsdask.backend.protocol import Array
from rnsdask.constants import FermatConstants, radix_division


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
