"""Chunks of signed integers with stored intervals from Python ints, residues and limbs, and back."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rnsdask.backend import Array, is_any, kernels_of
from rnsdask.constants import forward_constants, reverse_constants
from rnsdask.core.errors import abbreviate, out_of_range
from rnsdask.core.moduli import LIMB_BITS, ModuliSet, as_integer
from rnsdask.core.number_system import NumberSystem
from rnsdask.core.place import Locate
from rnsdask.interval_rns import layout
from rnsdask.interval_rns.arithmetic import compare, to_ints
from rnsdask.rns.convert import ints_to_residues, limbs_to_ints
from rnsdask.rns.decimal import residues_to_decimal
from rnsdask.rns.evaluation import interval_evaluation
from rnsdask.rns.system import RNS


def columns_of_ints(values: Iterable[Any], moduli: ModuliSet) -> NDArray[np.uint32]:
    """Columns (n + 6, N) of integers of any type, in NumPy.

    TypeError for a value that is not an integer, ValueError for a magnitude of M or more; both name the
    position.
    """
    integers = [as_integer(value, f"value at position {i}") for i, value in enumerate(values)]
    product = moduli.product
    if any(abs(value) >= product for value in integers):
        i, value = next((i, value) for i, value in enumerate(integers) if abs(value) >= product)
        what = f"value at position {i}, {abbreviate(value)}"
        raise out_of_range(what, (1 - product, product - 1), "", "the moduli set")
    residues = ints_to_residues(map(abs, integers), moduli)
    signs = np.fromiter((value < 0 for value in integers), dtype=np.bool_, count=len(integers))
    return layout.evaluated(residues, moduli, signs)  # type: ignore[no-any-return]


def columns_of_residues(residues: Array, system: RNS) -> Array:
    """Convert an RNSArray's residues (n, *shape) to columns (n + 6, *shape)."""
    moduli = system.moduli
    if not system.signed:
        return layout.evaluated(residues, moduli, np.zeros_like(residues[0], dtype=np.bool_))
    interval = interval_evaluation(residues, RNS(moduli, True), layout.new_accuracy(moduli))
    negative = interval.upp < 0
    low = np.where(negative, -interval.upp, interval.low)
    upp = np.where(negative, -interval.low, interval.upp)
    magnitudes = np.where(negative, layout.complement(residues, moduli), residues)
    return layout.pack(magnitudes, moduli, negative, *layout.normalised(low, upp, interval.exponent))


def check_range(columns: Array, moduli: ModuliSet, target: NumberSystem, owner: str, locate: Locate) -> None:
    """Raise ValueError unless each number is in the range of another, narrower system."""
    ends = columns_of_ints(target.value_range, moduli).reshape(len(columns), 2, *(1,) * (columns.ndim - 1))
    low, high = (compare(columns, ends[:, k], moduli) for k in range(2))
    outside = (low < 0) | (high > 0)
    if is_any(outside):
        first = int(outside.reshape(-1).argmax())
        value = to_ints(columns.reshape(len(columns), -1)[:, [first]], moduli)[0]
        raise target.out_of_range(f"value {abbreviate(value)} at flat index {locate(first)}", owner)


def residues_of_columns(columns: Array, system: RNS, locate: Locate = int) -> Array:
    """Residues (n, *shape) of the numbers in another system; ValueError if a number is out of its range."""
    moduli = system.moduli
    check_range(columns, moduli, system, repr(moduli), locate)
    return residues_modulo(columns, moduli)


def residues_modulo(columns: Array, moduli: ModuliSet) -> Array:
    """Residues (n, *shape) of numbers of either sign modulo their own moduli."""
    residues, negative = layout.residues_of(columns, moduli), layout.is_negative(columns, moduli)
    return np.where(negative, layout.complement(residues, moduli), residues)


def to_decimal(columns: Array, moduli: ModuliSet) -> tuple[Array, Array]:
    """Convert columns to limbs of 9 decimal digits of the magnitudes, and a mask of the negative numbers."""
    limbs, _ = residues_to_decimal(layout.residues_of(columns, moduli), moduli)
    return limbs, layout.is_negative(columns, moduli)


def limbs_of_columns(columns: Array, moduli: ModuliSet) -> Array:
    """Convert columns (n + 6, N) to limbs (N, L) in two's complement."""
    residues = layout.residues_of(columns, moduli)
    magnitudes = kernels_of(residues).residues_to_limbs(residues, reverse_constants(moduli, False))
    if (moduli.product - 1).bit_length() == LIMB_BITS * magnitudes.shape[1]:
        magnitudes = np.concatenate([magnitudes, np.zeros_like(magnitudes[:, :1])], axis=1)
    return _negate(magnitudes, layout.is_negative(columns, moduli))


def columns_of_limbs(limbs: Array, moduli: ModuliSet, signed: bool, locate: Locate = int) -> Array:
    """Convert limbs (N, L), in two's complement if `signed`, to columns (n + 6, N).

    ValueError for a magnitude of M or more, naming the first number's index.
    """
    negative = limbs[:, -1] >> 31 != 0 if signed else np.zeros_like(limbs[:, 0], dtype=np.bool_)
    magnitudes = _negate(limbs, negative) if signed else limbs
    kernels = kernels_of(limbs)
    constants = forward_constants(moduli, limbs.shape[1])
    outside = kernels.first_outside(magnitudes, constants)
    if outside is not None:
        value = limbs_to_ints(limbs[outside : outside + 1], signed)[0]
        what = f"value {abbreviate(value)} at flat index {locate(outside)}"
        raise out_of_range(what, (1 - moduli.product, moduli.product - 1), "", "the moduli set")
    residues = np.empty_like(limbs, shape=(len(moduli), len(limbs)), order="C")
    kernels.limbs_to_residues(magnitudes, constants, residues)
    return layout.evaluated(residues, moduli, negative)


def _negate(limbs: Array, negative: Array) -> Array:
    """Negate the marked numbers of limbs (N, L), modulo 2**(32 L)."""
    result = np.empty_like(limbs)
    carry = negative
    for k in range(limbs.shape[1]):
        # The complement, plus a carry that propagates while all lower limbs are 0.
        limb = limbs[:, k]
        result[:, k] = np.where(negative, ~limb, limb) + carry.astype(np.uint32)
        carry = carry & (limb == 0)
    return result
