"""Arithmetic of chunks of elements of Fermat fields, as digits (k, *shape). No Dask in here."""

import math
from functools import partial

import gmpy2
import numpy as np

from rnsdask.backend import Array, is_any, kernels_of
from rnsdask.core.axes import reduced_shape
from rnsdask.core.conventions import Convention
from rnsdask.core.layout import as_matrix
from rnsdask.core.operations import OPERATIONS
from rnsdask.core.place import Locate
from rnsdask.fields import fermat_fft
from rnsdask.fields.fermat_fft import fermat_twiddles
from rnsdask.fields.fermat_field import FermatField
from rnsdask.fields.ntt import multiplied, placed
from rnsdask.rns.axis import fold, rows_along
from rnsdask.rns.powers import invert_together

# Elements of products of matrices that are computed together: their digits stay in cache.
_PRODUCTS = 2**14


# Elements that are inverted one by one, on the host.
_FEW = 32


def apply(name: str, *blocks: Array, system: FermatField) -> Array:
    """A sum of signed products (:data:`.operations.OPERATIONS`) of chunks, which broadcast."""
    total: Array | None = None
    for sign, factors in OPERATIONS[name].terms:
        term = blocks[factors[0]]
        for factor in factors[1:]:
            term = _both(system, "multiply", term, blocks[factor])
        joined = "add" if sign > 0 else "subtract"  # the first term stands alone
        total = term if total is None else _both(system, joined, total, term)
    assert total is not None
    return total


def differ(a: Array, b: Array) -> Array:
    """Mask (*shape) of the places where two chunks, which broadcast, differ."""
    like = a if isinstance(b, np.ndarray) else b
    return (np.asarray(a, like=like) != np.asarray(b, like=like)).any(axis=0)


def inverse(words: Array, system: FermatField, locate: Locate = int) -> Array:
    """Inverses of elements; ZeroDivisionError if one is 0, naming the index that `locate` derives."""
    matrix = as_matrix(words)
    is_zero = ~matrix.any(axis=0)
    if is_any(is_zero):
        index = locate(int(is_zero.argmax()))
        raise ZeroDivisionError(f"the element at flat index {index} is 0, so it has no inverse")
    multiply = partial(_both, system, "multiply")
    return invert_together(matrix, multiply, partial(_invert_few, system), _FEW).reshape(words.shape)


def _invert_few(system: FermatField, words: Array) -> Array:
    p = system.modulus
    inverses = [int(gmpy2.invert(value, p)) for value in system.decode(words).tolist()]
    return np.asarray(system.encode(inverses), like=words)


def power(words: Array, exponent: int, system: FermatField, locate: Locate = int) -> Array:
    """Raise elements to any integer power; a negative one takes the inverses, and 0**0 is 1."""
    if exponent < 0:
        words = inverse(words, system, locate)
    # x**p = x, and 0**k is 1 only for k = 0.
    k = (abs(exponent) - 1) % (system.modulus - 1) + 1 if exponent else 0
    base = as_matrix(words)
    if k == 0:
        return np.broadcast_to(_one(system, words), words.shape)
    result = base
    for bit in bin(k)[3:]:
        result = _both(system, "multiply", result, result)
        if bit == "1":
            result = _both(system, "multiply", result, base)
    return result.reshape(words.shape)


def powers(words: Array, exponents: Array, system: FermatField, locate: Locate = int) -> Array:
    """Raise each element to its own exponent, from machine integers (1, *shape), as :func:`power` does."""
    shape = np.broadcast_shapes(words.shape[1:], exponents.shape[1:])
    base = as_matrix(np.broadcast_to(words, (len(words), *shape)))
    given = np.broadcast_to(exponents, (1, *shape)).reshape(1, -1)
    negative = given < 0
    one = _one(system, base)
    if is_any(negative):
        base = np.where(negative, inverse(np.where(negative, base, one), system, locate), base)
        # The magnitude of the least 64-bit integer is the same word, read as unsigned.
        given = given.astype(np.int64)
        given = np.where(negative, -given, given)
    given = given.astype(np.uint64)
    result: Array = np.broadcast_to(one, base.shape)
    for bit in reversed(range(int(given.max()).bit_length() if given.size else 0)):
        square = _both(system, "multiply", result, result)
        has_bit = given >> np.uint64(bit) & np.uint64(1) != 0
        result = np.where(has_bit, _both(system, "multiply", square, base), square)
    return result.reshape(len(words), *shape)


def sums_along(words: Array, system: FermatField, axes: tuple[int, ...]) -> Array:
    """Add elements along axes of the numbers, which keep length 1."""
    return _fold("add", 0, words, system, axes)


def products_along(words: Array, system: FermatField, axes: tuple[int, ...]) -> Array:
    """Multiply elements along axes of the numbers, which keep length 1; an empty product is 1."""
    return _fold("multiply", 1, words, system, axes)


def _fold(operation: str, empty: int, words: Array, system: FermatField, axes: tuple[int, ...]) -> Array:
    shape = (len(words), *reduced_shape(words.shape[1:], axes))
    if words.size == 0:
        column = system.column(empty, len(shape) - 1)
        return np.broadcast_to(np.asarray(column, like=words), shape)
    rows = np.stack([rows_along(row, axes) for row in words])
    return fold(rows, partial(_both, system, operation)).reshape(shape)


def matmul(a: Array, b: Array, system: FermatField) -> Array:
    """Products of matrices (k, *batch, I, K) and (k, *batch, K, J), whose batches broadcast."""
    batch = np.broadcast_shapes(a.shape[1:-2], b.shape[1:-2])
    shape = (*batch, a.shape[-2], b.shape[-1])
    terms = a.shape[-1]
    total: Array = np.broadcast_to(
        np.zeros_like(a, shape=(len(a), *(1,) * len(shape)), order="C"), (len(a), *shape)
    )
    step = max(1, _PRODUCTS // max(1, math.prod(shape)))
    for start in range(0, terms if math.prod(shape) else 0, step):
        part = slice(start, start + step)
        products = _both(system, "multiply", a[..., part, None], b[..., None, part, :])
        sums = sums_along(products, system, (products.ndim - 3,))
        total = _both(system, "add", total, sums.reshape(len(a), *shape))
    return total


def multiply_by_root(words: Array, exponent: int, system: FermatField) -> Array:
    """Multiply elements by any integer power of the radix, whose order is 2 k."""
    matrix = as_matrix(words)
    out = _empty(matrix)
    times = exponent % (2 * system.digits)
    kernels_of(matrix).fermat_multiply_by_root(matrix, times, system.constants, out)
    return out.reshape(words.shape)


def transform(
    words: Array,
    system: FermatField,
    axis: int,
    inverse: bool,
    negacyclic: bool,
    convention: Convention | None = None,
) -> Array:
    """Number-theoretic transforms along an axis of the numbers."""
    if convention is not None and inverse:
        words = placed(words, axis, inverse, negacyclic, convention)
    found = fermat_fft.transform(words, system.constants, axis, inverse, negacyclic)
    return placed(found, axis, inverse, negacyclic, convention) if convention and not inverse else found


def twiddled(
    words: Array, system: FermatField, length: int, first: int, inverse: bool, negacyclic: bool
) -> Array:
    """Multiply contiguous matrices (k, B, I, K) by the :func:`.fermat_twiddles` of transforms of a length."""
    factors = fermat_twiddles(system.constants, length, words.shape[3], inverse, negacyclic)
    return multiplied(words, factors, first, partial(_both, system, "multiply"))


def _both(system: FermatField, operation: str, a: Array, b: Array) -> Array:
    """Apply an operation of the kernels to two chunks, which broadcast."""
    shape = np.broadcast_shapes(a.shape[1:], b.shape[1:])
    like = a if isinstance(b, np.ndarray) else b
    operands = [_operand(np.asarray(x, like=like), shape) for x in (a, b)]
    out = np.empty_like(like, shape=(len(a), math.prod(shape)), order="C")
    if out.size:
        kernels_of(out).fermat_apply(operation, operands, system.constants, out)
    return out.reshape(len(a), *shape)


def _operand(words: Array, shape: tuple[int, ...]) -> Array:
    """Words in the shape that kernels take: (k, 1) for one element, else (k, N)."""
    if words.size == len(words):
        return words.reshape(len(words), 1)
    return as_matrix(np.broadcast_to(words, (len(words), *shape)))


def _one(system: FermatField, words: Array) -> Array:
    return np.asarray(system.column(1, words.ndim - 1), like=words)


def _empty(matrix: Array) -> Array:
    return np.empty_like(matrix, shape=matrix.shape, order="C")
