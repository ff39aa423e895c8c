"""Products of chunks of positional numbers, words (k, *shape) that broadcast. No Dask in here.

Numbers are in any limbs, in two's complement if ``signed``. Results have the limbs of ``bits`` and are
canonical: above these bits is 0, or copies of the sign. Give the precisions' sum for the exact product.
"""

import numpy as np

from rnsdask.backend import Array, kernels_of
from rnsdask.positional.operands import LIMB_BITS, Operands, limbs_of
from rnsdask.positional.resize import resized
from rnsdask.positional.transforms import transformed_product


def multiply(x: Array, y: Array, bits: int, signed: bool) -> Array:
    """``x y`` modulo 2**bits."""
    return _product(x, y, None, bits, signed, False)[0]


def multiply_checked(x: Array, y: Array, bits: int, signed: bool) -> tuple[Array, Array]:
    """The same, and Boolean (*shape): the product does not fit."""
    return _product(x, y, None, bits, signed, True)


def multiply_add(x: Array, y: Array, addend: Array, bits: int, signed: bool) -> Array:
    """``x y + addend`` modulo 2**bits."""
    return _product(x, y, addend, bits, signed, False)[0]


def multiply_add_checked(x: Array, y: Array, addend: Array, bits: int, signed: bool) -> tuple[Array, Array]:
    """The same, and Boolean (*shape): the sum does not fit."""
    return _product(x, y, addend, bits, signed, True)


def _product(
    x: Array, y: Array, addend: Array | None, bits: int, signed: bool, checked: bool
) -> tuple[Array, Array]:
    operands = Operands(x, y) if addend is None else Operands(x, y, addend)
    if x is y:  # kernels take the products of a square once that come twice
        operands.matrices[1] = operands.matrices[0]
    kernels = kernels_of(operands.like)
    if min(len(x), len(y)) > kernels.most_product_limbs:
        return _by_transforms(operands, bits, signed)
    a, b, *more = operands.matrices
    out, overflowed = operands.empty(limbs_of(bits)), operands.flags() if checked else None
    if out.size:
        kernels.positional_multiply(a, b, more[0] if more else None, bits, signed, out, overflowed)
    return operands.shaped(out), None if overflowed is None else operands.shaped(overflowed)


def _by_transforms(operands: Operands, bits: int, signed: bool) -> tuple[Array, Array]:
    x, y, *more = operands.matrices
    exact = transformed_product(x, y, operands.count)
    if signed:
        # The limbs of a negative number stand for 2**(32 limbs) more.
        for number, other in ((x, y), (y, x)):
            upper = exact[len(number) :]
            added = np.where(number[-1] >> np.uint32(31) != 0, other, np.uint32(0))
            upper[...] = _sum(upper, added, False, True, len(upper))
    if more:
        exact = _sum(exact, more[0], signed, False, max(len(exact), len(more[0])) + 1)
    rows = limbs_of(bits)
    words, overflowed = resized(exact, signed, rows, bits - LIMB_BITS * (rows - 1), signed)
    return operands.shaped(words), operands.shaped(overflowed)


def _sum(x: Array, y: Array, signed: bool, subtract: bool, limbs: int) -> Array:
    """Sums or differences of (k, N) and (l, N) or (l, 1), which wrap."""
    out = np.empty_like(x, shape=(limbs, x.shape[1]), order="C")
    if out.size:
        kernels_of(out).positional_add((x, y), (signed, signed), subtract, LIMB_BITS, signed, out)
    return out
