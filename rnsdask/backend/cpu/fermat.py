"""Elements of fields of generalised Fermat primes: arithmetic, transforms, and limbs."""

from collections.abc import Sequence

import numpy as np

from rnsdask.backend.cpu.extension import _cpu
from rnsdask.backend.protocol import Array
from rnsdask.constants import FermatConstants, FermatPass, radix_division


def fermat_apply(operation: str, operands: Sequence[Array], field: FermatConstants, out: Array) -> None:
    _cpu.fermat_apply(operation, operands, field.parameters, out)


def fermat_multiply_by_root(x: Array, exponent: int, field: FermatConstants, out: Array) -> None:
    _cpu.fermat_multiply_by_root(x, exponent, field.parameters, out)


def fermat_pass(x: Array, step: FermatPass, out: Array) -> None:
    _cpu.fermat_pass(x, step.field.parameters, step.shape, step.factors, out)


def fermat_first_invalid(x: Array, field: FermatConstants) -> int | None:
    index: int = _cpu.fermat_first_invalid(x, field.parameters)
    return None if index < 0 else index


def limbs_to_fermat(limbs: Array, signed: bool, field: FermatConstants) -> Array:
    limbs = np.ascontiguousarray(limbs)
    digits = np.empty((field.digits, len(limbs)), dtype=field.dtype)
    _cpu.limbs_to_fermat(limbs, signed, *_radix_arguments(field), digits)
    return digits


def fermat_to_limbs(digits: Array, field: FermatConstants) -> Array:
    limbs = np.empty((digits.shape[1], radix_division(field).limb_count), dtype=np.uint32)
    _cpu.fermat_to_limbs(digits, *_radix_arguments(field), limbs)
    return limbs


def _radix_arguments(field: FermatConstants) -> tuple[int, ...]:
    wide = radix_division(field)
    return field.radix, wide.radix, wide.normalized, wide.reciprocal, wide.shift
