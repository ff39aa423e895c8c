"""Kernels of mixed-radix conversion."""

import cupy

from rnsdask.backend.cuda import launching
from rnsdask.backend.cuda.launching import array_arguments, on_device
from rnsdask.backend.protocol import Array
from rnsdask.constants import MixedRadixConstants


def mixed_radix_digits(residues: Array, constants: MixedRadixConstants) -> Array:
    digits = cupy.empty(residues.shape, dtype=cupy.uint32)
    tables = tuple(on_device(constants, field) for field in ("last", "ones", "inverses"))
    launching.launch(
        "mixed_radix", "mixed_radix_digits", residues.shape[1], (*array_arguments(residues), *tables, digits)
    )
    return digits
