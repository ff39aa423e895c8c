"""Powers of roots of unity of Fermat fields, and twiddle factors made of them. No Dask in here."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rnsdask.backend import cpu
from rnsdask.constants import FermatConstants, fermat_root

# Most words in a table of factors, which stays in a processor's cache.
_TABLE_WORDS = 2**18


@dataclass(frozen=True, eq=False)
class FermatTwiddles:
    """Factors ``a**i * b**r * c**(i r)`` of a Fermat field, as :class:`.ntt.Factors` says."""

    field: FermatConstants
    a: int
    b: int
    c: int
    table: NDArray[Any]

    def at_row(self, i: int) -> NDArray[Any]:
        """The factors of row i, (k, R); those of row i + j are these by row j of `table`."""
        p = self.field.modulus
        ratio = self.b * pow(self.c, i, p) % p
        return progression(self.field, pow(self.a, i, p), ratio, self.table.shape[2])


@lru_cache(8)
def fermat_twiddles(
    field: FermatConstants, length: int, count: int, inverse: bool, negacyclic: bool
) -> FermatTwiddles:
    """Factors of transforms of length N as a matrix, whose columns have `count` elements.

    They are those that :func:`.twiddle_factors` gives for prime fields.
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
    """The root of unity of an order, or its inverse."""
    return pow(fermat_root(field, order), -1 if inverse else 1, field.modulus)


def progression(field: FermatConstants, start: int, ratio: int, count: int) -> NDArray[Any]:
    """The numbers ``start * ratio**i`` for i < count, a power of two: digits (k, count)."""
    terms = digits_of(start, field)
    while (done := terms.shape[1]) < count:
        step = digits_of(pow(ratio, done, field.modulus), field)
        terms = np.concatenate([terms, product(terms, step, field)], axis=1)
    return terms


def product(x: NDArray[Any], y: NDArray[Any], field: FermatConstants) -> NDArray[Any]:
    """Numbers (k, N) by as many others, or by one, on the CPU."""
    out = np.empty(x.shape, dtype=x.dtype)
    cpu.fermat_apply("multiply", (x, y), field, out)
    return out


def digits_of(value: int, field: FermatConstants) -> NDArray[Any]:
    """The (k, 1) canonical digits of a number from 0 to p - 1."""
    digits = np.zeros((field.digits, 1), dtype=field.dtype)
    if value == field.modulus - 1:
        digits[-1] = field.radix
        return digits
    for i in range(field.digits):
        value, digits[i] = divmod(value, field.radix)
    return digits
