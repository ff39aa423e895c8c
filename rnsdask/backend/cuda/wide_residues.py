"""Kernels of residues under moduli of up to 64 bits."""

import cupy
import numpy as np

from rnsdask.backend.cuda import launching
from rnsdask.backend.cuda.launching import on_device
from rnsdask.backend.protocol import Array
from rnsdask.constants import WideDigitConstants, WideForwardConstants


def wide_digits(residues: Array, constants: WideDigitConstants) -> Array:
    moduli, count = residues.shape
    digits = cupy.empty((count, moduli + 1), dtype=cupy.uint64)
    strides = (np.int64(stride // residues.itemsize) for stride in residues.strides)
    tables = (on_device(constants, field) for field in ("last", "inverses", "highest"))
    arguments = (residues, *strides, np.int64(count), np.int32(moduli), *tables, digits)
    launching.launch("wide_residues", "wide_digits", count, arguments)
    return digits


def limbs_to_wide_residues(limbs: Array, constants: WideForwardConstants) -> Array:
    limbs = cupy.ascontiguousarray(limbs)
    count, limb_count = limbs.shape
    moduli = len(constants.last)
    residues = cupy.empty((moduli, count), dtype=cupy.uint64)
    is_signed = len(constants.weights) > limb_count
    tables = (on_device(constants, field) for field in ("weights", "last", "factors"))
    numbers = (limbs, np.int64(count), np.int32(limb_count), np.int32(is_signed))
    arguments = (*numbers, *tables, np.int32(moduli), residues)
    launching.launch("wide_residues", "limbs_to_wide_residues", count, arguments)
    return residues
