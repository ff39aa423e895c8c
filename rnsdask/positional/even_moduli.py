"""Powers and inverses modulo even numbers, by those modulo odd ones. No Dask in here.

The power modulo ``2**s q`` is ``r + q t`` for the power r modulo the odd q, where t is ``(p - r) / q`` modulo
2**s and p the power modulo that (Garner's form of the Chinese remainder theorem). What is modulo 2**s has the
limbs that the greatest of these takes.

The inverse of x modulo an even m is ``m - (m t - 1) / x`` for the inverse t of m modulo x, which must be odd.
"""

from collections.abc import Callable

import numpy as np

from rnsdask.backend import Array
from rnsdask.positional.divide import divmod_
from rnsdask.positional.multiply import multiply, multiply_add
from rnsdask.positional.operands import LIMB_BITS

PowerModuloOdd = Callable[[Array, Array, int, Array], Array]
InvertModuloOdd = Callable[[Array, Array, Array], int | None]


def power_modulo_even(
    x: Array, exponents: Array, bits: int, moduli: Array, power_modulo_odd: PowerModuloOdd
) -> Array:
    """``x**exponent`` modulo each modulus, even or odd, of matrices (k, N), for exponents below 2**bits."""
    limb, bit = _trailing_zeros(moduli)
    odd = _shift_right(moduli, limb, bit)
    by_odd = power_modulo_odd(x, exponents, bits, odd)
    low = int(limb.max()) + 1
    width = LIMB_BITS * low
    p = _low_power(_low(x, low), *_reduced(exponents, bits, low), low)
    difference = _minus(p, _low(by_odd, low), width)
    quotient = multiply(difference, _inverse_modulo_power_of_two(_low(odd, low), width), width, False)
    t = quotient & _mask(limb, bit, low)
    return multiply_add(odd, t, by_odd, LIMB_BITS * len(moduli), False)


def inverse_modulo_any(x: Array, moduli: Array, invert: InvertModuloOdd) -> Array | None:
    """Inverses modulo each modulus, even or odd, of matrices (k, N) alike; None if a number has none.

    `invert` writes those of its first argument modulo the second, and says the index of one that has none.
    """
    is_even = moduli[0] & np.uint32(1) == 0
    odd = np.where(is_even, x, moduli)
    out = np.empty_like(moduli, order="C")
    if not bool(is_even.any()):
        return out if invert(x, moduli, out) is None else None
    if not bool((odd[0] & np.uint32(1)).all()) or invert(np.where(is_even, moduli, x), odd, out) is not None:
        return None
    out[0] |= (out == 0).all(axis=0) & is_even  # that modulo 1, which is 0
    width = 2 * LIMB_BITS * len(x)
    product = multiply_add(moduli, out, _constant((1 << width) - 1, 2 * len(x), x), width, False)
    quotient = divmod_(product, odd, False)[0][: len(x)]
    return np.where(is_even, _minus(moduli, quotient, width // 2), out)


def _low(matrix: Array, limbs: int) -> Array:
    """The lower limbs, with zeros above if there are fewer."""
    if len(matrix) >= limbs:
        return matrix[:limbs]
    out = np.zeros_like(matrix, shape=(limbs, matrix.shape[1]), order="C")
    out[: len(matrix)] = matrix
    return out


def _constant(value: int, limbs: int, like: Array) -> Array:
    """One number (limbs, 1)."""
    words = [value >> LIMB_BITS * i & 0xFFFFFFFF for i in range(limbs)]
    return np.asarray(np.array(words, dtype=np.uint32)[:, np.newaxis], like=like)


def _minus(x: Array, y: Array, width: int) -> Array:
    """``x - y`` modulo 2**width: x + (2**width - 1) y."""
    return multiply_add(y, _constant((1 << width) - 1, len(y), y), x, width, False)


def _trailing_zeros(matrix: Array) -> tuple[Array, Array]:
    """Of numbers that are not 0: the first limb that is not, and its lower bits that are."""
    limb = (matrix != 0).argmax(axis=0)
    value = np.take_along_axis(matrix, limb[np.newaxis], axis=0)[0]
    lowest = value & (~value + np.uint32(1))
    exponent = np.frexp(lowest.astype(np.float64))[1]  # of a power of two, so exact
    return limb, exponent.astype(np.uint32) - np.uint32(1)


def _shift_right(matrix: Array, limb: Array, bit: Array) -> Array:
    """Numbers without the lower limbs and bits."""
    above = np.zeros_like(matrix, shape=(1, matrix.shape[1]), order="C")
    longer = np.concatenate([matrix, above])
    rows = np.asarray(np.arange(len(matrix) + 1)[:, np.newaxis], like=matrix)
    moved = np.take_along_axis(longer, np.minimum(rows + limb, len(matrix)), axis=0).astype(np.uint64)
    pairs = moved[:-1] | moved[1:] << np.uint64(LIMB_BITS)
    return (pairs >> bit.astype(np.uint64)).astype(np.uint32)


def _mask(limb: Array, bit: Array, limbs: int) -> Array:
    """2**s - 1, in so many limbs."""
    rows = np.asarray(np.arange(limbs)[:, np.newaxis], like=limb)
    partial = (np.uint32(1) << bit) - np.uint32(1)
    return np.where(rows < limb, np.uint32(0xFFFFFFFF), np.where(rows == limb, partial, np.uint32(0)))


def _reduced(exponents: Array, bits: int, limbs: int) -> tuple[Array, int]:
    """Exponents, and their bits, by which powers modulo 2**(32 limbs) are the same.

    Those of odd numbers repeat after 2**(32 limbs - 2); those of even ones are 0 from 32 limbs on, so that a
    bit stands for all above.
    """
    if len(exponents) <= limbs:
        return exponents, bits
    above = (exponents[limbs:] != 0).any(axis=0, keepdims=True)
    return np.concatenate([exponents[:limbs], above.astype(np.uint32)]), LIMB_BITS * limbs + 1


def _low_power(x: Array, exponents: Array, bits: int, limbs: int) -> Array:
    """``x**exponent`` modulo a power of two, bit by bit from the highest."""
    width = LIMB_BITS * limbs
    result: Array = np.broadcast_to(_constant(1, limbs, x), x.shape)
    for i in reversed(range(bits)):
        result = multiply(result, result, width, False)
        has_bit = exponents[i // LIMB_BITS] >> np.uint32(i % LIMB_BITS) & np.uint32(1) != 0
        result = np.where(has_bit, multiply(result, x, width, False), result)
    return result


def _inverse_modulo_power_of_two(odd: Array, width: int) -> Array:
    """By Newton's iteration: x is its own inverse modulo 8, and each step doubles the bits."""
    inverse, right = odd, 3
    while right < width:
        # inverse (2 - odd inverse)
        two = _constant(2, len(odd), odd)
        rest = _minus(two, multiply(odd, inverse, width, False), width)
        inverse, right = multiply(inverse, rest, width, False), 2 * right
    return inverse
