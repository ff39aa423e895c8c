"""Quotients, remainders, common divisors and roots of chunks of positional numbers, words (k, *shape).

Operands broadcast. They are in any limbs, in two's complement if ``signed``. No Dask in here.
"""

from collections.abc import Callable

import gmpy2
import numpy as np

from rnsdask.backend import Array, kernels_of
from rnsdask.core.place import Locate
from rnsdask.positional.operands import Operands, wide


def divmod_(x: Array, y: Array, signed: bool, locate: Locate = int) -> tuple[Array, Array]:
    """Quotients and remainders as Python's, in the limbs of x, and signed one more, and in those of y.

    The quotient of the least signed number by -1 is one more than the greatest: it has a limb for that.

    Raises
    ------
    ZeroDivisionError
        If a divisor is 0, naming the index that `locate` makes of the first one in the chunk.
    """
    operands = Operands(x, y)
    a, b = operands.matrices
    check_divisors(b, operands.count, locate)
    if operands.count == 0:
        return operands.shaped(operands.empty(len(x) + signed)), operands.shaped(operands.empty(len(y)))
    kernels = kernels_of(operands.like)
    results = kernels.positional_divmod(wide(a, operands.count), b, signed)
    lengths = (len(x) + signed, len(y))  # the kernel may give more limbs, or fewer that hold them all
    q, r = (_in_limbs(z, limbs, signed) for z, limbs in zip(results, lengths, strict=True))
    return operands.shaped(q), operands.shaped(r)


def remainder(x: Array, y: Array, signed: bool, locate: Locate = int) -> Array:
    """The remainders alone."""
    return divmod_(x, y, signed, locate)[1]


def check_divisors(matrix: Array, count: int, locate: Locate, name: str = "divisor") -> None:
    """Raise ZeroDivisionError if one of a matrix (k, N) or (k, 1) is 0 and there are numbers."""
    is_zero = ~(matrix != 0).any(axis=0)
    if count and bool(is_zero.any()):
        index = locate(int(is_zero.argmax()))
        raise ZeroDivisionError(f"the {name} at flat index {index} is 0")


def gcd(x: Array, y: Array, signed: bool) -> Array:
    """Greatest common divisors, in the limbs of the longer operand; of 0 and 0 it is 0."""
    operands = Operands(x, y)
    limbs = max(len(x), len(y))
    return _by_integers(gmpy2.gcd, operands, limbs, signed)


def isqrt(x: Array, signed: bool, locate: Locate = int) -> Array:
    """Floors of square roots.

    Raises
    ------
    ValueError
        If a number is negative, naming the index that `locate` makes of the first one in the chunk.
    """
    operands = Operands(x)
    negative = operands.matrices[0][-1] >> np.uint32(31) != 0
    if signed and bool(negative.any()):
        index = locate(int(negative.argmax()))
        raise ValueError(f"the number at flat index {index} is negative: it has no square root")
    return _by_integers(gmpy2.isqrt, operands, len(x), signed)


def to_integers(matrix: Array, signed: bool) -> list[gmpy2.mpz]:
    """The integers of a matrix (k, N), on the host."""
    host = matrix if isinstance(matrix, np.ndarray) else matrix.get()
    data, size = np.copy(host.T, order="C").astype("<u4", copy=False).tobytes(), 4 * len(host)
    values = [gmpy2.mpz.from_bytes(data[i : i + size], "little") for i in range(0, len(data), size)]
    if signed:
        half, modulus = gmpy2.mpz(1) << 8 * size - 1, gmpy2.mpz(1) << 8 * size
        values = [value - modulus if value >= half else value for value in values]
    return values


def from_integers(values: list[gmpy2.mpz], limbs: int, like: Array) -> Array:
    """A matrix (limbs, N) of integers that are not negative and fit, where `like` is."""
    data = b"".join(value.to_bytes(4 * limbs, "little") for value in values)
    rows = np.frombuffer(data, dtype="<u4").astype(np.uint32, copy=False).reshape(len(values), limbs)
    return np.asarray(np.copy(rows.T, order="C"), like=like)


def _by_integers(function: Callable[..., gmpy2.mpz], operands: Operands, limbs: int, signed: bool) -> Array:
    """One number at a time, by GMP on the host."""
    columns = [to_integers(wide(matrix, operands.count), signed) for matrix in operands.matrices]
    results = list(map(function, *columns))
    return operands.shaped(from_integers(results, limbs, operands.like))


def _in_limbs(matrix: Array, limbs: int, signed: bool) -> Array:
    """A matrix without its upper limbs, or with copies of the sign, or 0, above."""
    if len(matrix) >= limbs:
        return matrix[:limbs]
    out = np.zeros_like(matrix, shape=(limbs, matrix.shape[1]), order="C")
    out[: len(matrix)] = matrix
    if signed:
        out[len(matrix) :] = (matrix[-1].astype(np.int32) >> 31).astype(np.uint32)
    return out
