"""Kernels that turn limbs into digits of Fermat fields, and back."""

import cupy
import numpy as np

from rnsdask.backend.cuda import launching
from rnsdask.backend.cuda.launching import Parameter, row_stride
from rnsdask.backend.cuda_layout import RADIX_RECIPROCAL
from rnsdask.backend.protocol import Array
from rnsdask.constants import FermatConstants, radix_division


def limbs_to_fermat(limbs: Array, signed: bool, field: FermatConstants) -> Array:
    limbs = cupy.ascontiguousarray(limbs)
    numbers, count = limbs.shape
    digits = cupy.empty((field.digits, numbers), dtype=field.dtype)
    arguments = (limbs, np.int64(count), np.int64(numbers), np.int32(signed), _radix(field), digits)
    launching.launch("fermat_limbs", f"limbs_to_fermat_{_bits(field)}", numbers, arguments)
    return digits


def fermat_to_limbs(digits: Array, field: FermatConstants) -> Array:
    numbers = digits.shape[1]
    limbs = cupy.empty((numbers, radix_division(field).limb_count), dtype=cupy.uint32)
    arguments = (
        digits,
        row_stride(digits),
        np.int64(numbers),
        _radix(field),
        limbs,
        np.int64(limbs.shape[1]),
    )
    launching.launch("fermat_limbs", f"fermat_to_limbs_{_bits(field)}", numbers, arguments)
    return limbs


def _bits(field: FermatConstants) -> int:
    return 8 * field.dtype.itemsize


def _radix(field: FermatConstants) -> Parameter:
    division = radix_division(field)
    values = (field.radix, division.normalized, division.reciprocal, division.shift, field.digits)
    names = ("radix", "normalized", "reciprocal", "shift", "digits")
    return Parameter(RADIX_RECIPROCAL[_bits(field)], **dict(zip(names, values, strict=True)))
