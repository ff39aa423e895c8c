"""Products of chunks of positional numbers, words (k, *shape) that broadcast. No Dask in here.

Numbers are in any limbs, in two's complement if ``signed``. Results have the limbs of ``bits`` and are
canonical: above these bits is 0, or copies of the sign. Give the precisions' sum for the exact product.
"""

import gmpy2
import numpy as np

from rnsdask.backend import Array, kernels_of
from rnsdask.fields.long_product import long_multiply
from rnsdask.positional.integers import from_integers, map_integers
from rnsdask.positional.operands import Operands, limbs_of


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
    if min(len(x), len(y)) > kernels_of(operands.like).most_product_limbs:
        return _by_integers(operands, bits, signed)
    a, b, *more = operands.matrices
    if x is y:  # kernels take the products of a square once that come twice
        b = a
    out, overflowed = operands.empty(limbs_of(bits)), operands.flags() if checked else None
    if out.size:
        kernels_of(out).positional_multiply(a, b, more[0] if more else None, bits, signed, out, overflowed)
    return operands.shaped(out), None if overflowed is None else operands.shaped(overflowed)


def _by_integers(operands: Operands, bits: int, signed: bool) -> tuple[Array, Array]:
    exact = map_integers(_multiply_add, operands, signed)
    half = gmpy2.mpz(1) << bits - 1 if signed else 0
    wrapped = [gmpy2.f_mod_2exp(value + half, bits) - half for value in exact]
    overflowed = np.array([x != y for x, y in zip(exact, wrapped, strict=True)], dtype=np.bool_)
    words = from_integers(wrapped, limbs_of(bits), operands.like)
    return operands.shaped(words), operands.shaped(np.asarray(overflowed, like=operands.like))


def _multiply_add(x: gmpy2.mpz, y: gmpy2.mpz, addend: int = 0) -> gmpy2.mpz:
    return long_multiply(x, y) + addend
