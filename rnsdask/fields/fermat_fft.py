"""Transforms of chunks of elements of Fermat fields along an axis. No Dask in here."""

from dataclasses import dataclass
from functools import lru_cache
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rnsdask.backend import Array, cpu, kernels_of
from rnsdask.constants import FermatConstants, FermatPass, fermat_root

# Most words in a table of factors, which stays in a processor's cache.
_TABLE_WORDS = 2**18


@dataclass(frozen=True, eq=False)
class FermatTwiddles:
    """Factors ``a**i * b**r * c**(i r)`` of a Fermat field, as :class:`.ntt.Factors` defines them."""

    field: FermatConstants
    a: int
    b: int
    c: int
    table: NDArray[Any]

    def at_row(self, i: int) -> NDArray[Any]:
        """Factors (k, R) of row i; times row j of `table` they are the factors of row i + j."""
        p = self.field.modulus
        ratio = self.b * pow(self.c, i, p) % p
        return progression(self.field, pow(self.a, i, p), ratio, self.table.shape[2])


@lru_cache(8)
def fermat_twiddles(
    field: FermatConstants, length: int, count: int, inverse: bool, negacyclic: bool
) -> FermatTwiddles:
    """Factors of transforms of length N as a matrix, whose columns have `count` elements.

    They correspond to :func:`.twiddle_factors` of prime fields.
    """
    root = root_for(field, length, inverse)
    half = root_for(field, 2 * length, inverse) if negacyclic else 1
    a, b = (1, half) if inverse else (half, 1)
    rows = min(length // count, max(1, _TABLE_WORDS // (field.digits * count)))
    power = progression(field, a, root, count)
    table = np.repeat(digits_of(1, field), count, axis=1)
    while (done := table.shape[1] // count) < rows:
        table = np.concatenate([table, product(table, np.tile(power, done), field)], axis=1)
        power = product(power, power, field)
    return FermatTwiddles(field, a, b, root, table.reshape(field.digits, rows, count))


def root_for(field: FermatConstants, order: int, inverse: bool) -> int:
    """Root of unity of an order, or its inverse."""
    return pow(fermat_root(field, order), -1 if inverse else 1, field.modulus)


def progression(field: FermatConstants, start: int, ratio: int, count: int) -> NDArray[Any]:
    """The numbers ``start * ratio**i`` for i < count, a power of two: digits (k, count)."""
    terms = digits_of(start, field)
    while (done := terms.shape[1]) < count:
        step = digits_of(pow(ratio, done, field.modulus), field)
        terms = np.concatenate([terms, product(terms, step, field)], axis=1)
    return terms


def product(x: NDArray[Any], y: NDArray[Any], field: FermatConstants) -> NDArray[Any]:
    """Multiply numbers (k, N) by N others, or by a single one, on the CPU."""
    out = np.empty(x.shape, dtype=x.dtype)
    cpu.fermat_apply("multiply", (x, y), field, out)
    return out


def digits_of(value: int, field: FermatConstants) -> NDArray[Any]:
    """Canonical digits (k, 1) of a number from 0 to p - 1."""
    digits = np.zeros((field.digits, 1), dtype=field.dtype)
    if value == field.modulus - 1:
        digits[-1] = field.radix
        return digits
    for i in range(field.digits):
        value, digits[i] = divmod(value, field.radix)
    return digits


# Tasks that begin together share factors, which may be as large as their chunks.
_MAKING = Lock()


def transform(
    words: Array, field: FermatConstants, axis: int, inverse: bool, negacyclic: bool = False
) -> Array:
    """Transforms of a chunk (k, *shape) along an axis of the numbers, or inverse ones, in new memory.

    ``X_j`` is the sum of ``x_i w**(i j)`` modulo r^k + 1, w the root of :func:`.fermat_root`; in natural
    order. The length N of the axis is a power of two that divides r^k = p - 1. For negacyclic transforms,
    element i is multiplied by ``psi**i`` before, or by its inverse after the inverse transform, where psi is
    the root of order 2N. ValueError if there is no such root.
    """
    moved = np.moveaxis(words, axis + 1, -1)
    length = moved.shape[-1]
    numbers = moved.reshape(field.digits, -1)
    if numbers.strides[1] != numbers.itemsize:
        numbers = numbers.copy()
    with _MAKING:
        passes = transform_passes(field, length, inverse) if numbers.size else ()
        twist = _twist(field, length, inverse) if negacyclic and passes else None  # for one number it is 1
    if twist is not None and not inverse:
        numbers = _apply_twist(numbers, twist, field)
    out = _transform(numbers, passes) if passes else numbers.copy()
    if twist is not None and inverse:
        out = _apply_twist(out, twist, field)
    return np.moveaxis(out.reshape(moved.shape), -1, axis + 1)


def _apply_twist(numbers: Array, twist: NDArray[np.generic], field: FermatConstants) -> Array:
    """Multiply runs of numbers by the numbers of a table."""
    out = np.empty_like(numbers, shape=numbers.shape, order="C")
    table = np.asarray(twist, like=numbers)[:, None]
    runs = (field.digits, numbers.shape[1] // twist.shape[1], twist.shape[1])
    factors = np.broadcast_to(table, runs).reshape(numbers.shape)
    kernels_of(numbers).fermat_apply("multiply", (numbers, factors), field, out)
    return out


def _transform(numbers: Array, passes: tuple[FermatPass, ...]) -> Array:
    kernels = kernels_of(numbers)
    for step in passes:
        out = np.empty_like(numbers, shape=numbers.shape, order="C")
        kernels.fermat_pass(numbers, step, out)
        numbers = out
    return numbers


@lru_cache(8)  # long transforms have as many factors as numbers
def transform_passes(field: FermatConstants, length: int, inverse: bool) -> tuple[FermatPass, ...]:
    """Plan the passes of transforms of N numbers, with radices R of nearly the same size; 1 takes no pass.

    R is at most 2 k, so that all roots of the pass are powers of the field's radix, and small enough that a
    tile of :attr:`.FermatConstants.tile` numbers has runs of at least eight columns.
    """
    powers = progression(field, 1, root_for(field, length, inverse), length)
    bits = length.bit_length() - 1
    most = min(2 * field.digits, 32, field.tile // 8).bit_length() - 1
    count = -(-bits // most)
    passes = []
    done = 0
    for k in range(count):
        log_radix = (bits - done) // (count - k) + ((bits - done) % (count - k) > 0)
        radix, between = 1 << log_radix, 1 << (bits - done - log_radix)
        exponents = np.outer(np.arange(between), np.arange(radix)).ravel() << done
        factors = powers.take(exponents, axis=1)
        if inverse and k == 0:
            scale = digits_of(pow(length, -1, field.modulus), field)
            factors = product(factors, scale, field)
        elif between == 1:
            factors = factors[:, :0]  # all of them are 1
        passes.append(FermatPass(field, log_radix, bits - done - log_radix + done, done, inverse, factors))
        done += log_radix
    return tuple(passes)


@lru_cache(8)
def _twist(field: FermatConstants, length: int, inverse: bool) -> NDArray[np.generic]:
    """Powers 0 to N - 1 of psi or of its inverse."""
    return progression(field, 1, root_for(field, 2 * length, inverse), length)
