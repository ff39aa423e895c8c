"""Quotients, remainders, common divisors and roots of chunks of positional numbers, words (k, *shape).

Operands broadcast. They have any number of limbs, in two's complement if ``signed``.
"""

import numpy as np

from rnsdask.backend import Array, is_all, is_any, kernels_of
from rnsdask.core.errors import NumberError
from rnsdask.core.place import Locate
from rnsdask.positional.operands import Operands, wide


def divmod_(x: Array, y: Array, signed: bool, locate: Locate = int) -> tuple[Array, Array]:
    """Divide as Python does: quotients in the limbs of x, one more if signed, and remainders in those of y.

    The extra limb is for the quotient of the least signed number by -1. A divisor of 0 is a ZeroDivisionError
    that names the index of the first.
    """
    operands = Operands(x, y)
    a, b = operands.matrices
    check_divisors(b, operands.count, locate)
    if operands.count == 0:
        return operands.shaped(operands.empty(len(x) + signed)), operands.shaped(operands.empty(len(y)))
    kernels = kernels_of(operands.like)
    results = kernels.positional_divmod(wide(a, operands.count), b, signed)
    lengths = (len(x) + signed, len(y))  # the kernel may return more limbs, or fewer that suffice
    q, r = (_resize(z, limbs, signed) for z, limbs in zip(results, lengths, strict=True))
    return operands.shaped(q), operands.shaped(r)


def remainder(x: Array, y: Array, signed: bool, locate: Locate = int) -> Array:
    """Remainders only, as :func:`divmod_` gives them."""
    return divmod_(x, y, signed, locate)[1]


def check_divisors(matrix: Array, count: int, locate: Locate, name: str = "divisor") -> None:
    """Raise ZeroDivisionError if one of a matrix (k, N) or (k, 1) is 0 and there are numbers."""
    if is_all(matrix[0] != 0):  # the cheapest proof that no divisor is 0
        return
    is_zero = ~(matrix != 0).any(axis=0)
    if count and is_any(is_zero):
        index = locate(int(is_zero.argmax()))
        raise ZeroDivisionError(f"the {name} at flat index {index} is 0")


def gcd(x: Array, y: Array, signed: bool) -> Array:
    """Greatest common divisors, in the limbs of the longer operand; that of 0 and 0 is 0."""
    operands = Operands(x, y)
    out = operands.empty(max(len(x), len(y)))
    if operands.count:
        a, b = operands.matrices
        kernels_of(out).positional_gcd(a, b, signed, out)
    return operands.shaped(out)


def isqrt(x: Array, signed: bool, locate: Locate = int) -> Array:
    """Floors of square roots; ValueError for a negative number, naming the first."""
    operands = Operands(x)
    negative = operands.matrices[0][-1] >> np.uint32(31) != 0
    if signed and is_any(negative):
        index = locate(int(negative.argmax()))
        raise NumberError(f"the number at flat index {index} is negative: it has no square root")
    out = operands.empty(len(x))
    if operands.count:
        kernels_of(out).positional_isqrt(operands.matrices[0], out)
    return operands.shaped(out)


def _resize(matrix: Array, limbs: int, signed: bool) -> Array:
    """Cut or extend a matrix to a number of limbs; new limbs are copies of the sign, or 0."""
    if len(matrix) >= limbs:
        return matrix[:limbs]
    out = np.zeros_like(matrix, shape=(limbs, matrix.shape[1]), order="C")
    out[: len(matrix)] = matrix
    if signed:
        out[len(matrix) :] = (matrix[-1].astype(np.int32) >> 31).astype(np.uint32)
    return out
