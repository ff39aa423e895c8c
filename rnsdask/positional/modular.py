"""Modular arithmetic of chunks of positional numbers, words (k, *shape) that broadcast.

A single modulus for all numbers has the shape (k, 1, ..., 1). Operands have any number of limbs, in two's
complement if ``signed``, and are reduced; moduli are positive. Results are from 0 to m - 1, in the limbs of
the moduli.

All functions raise ZeroDivisionError for a modulus that is 0, and ValueError for a negative one, naming the
index that `locate` derives from the first one's index in the chunk. Without results, moduli are not checked.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial

import gmpy2
import numpy as np

from rnsdask.backend import Array, cpu, is_all, is_any, kernels_of
from rnsdask.core.errors import NumberError, abbreviate
from rnsdask.core.place import Locate
from rnsdask.positional.divide import check_divisors, divmod_, remainder
from rnsdask.positional.multiply import multiply, multiply_add
from rnsdask.positional.operands import (
    LIMB_BITS,
    Operands,
    from_integers,
    limbs_of,
    on_host,
    to_integers,
    used_limbs,
    wide,
)
from rnsdask.rns.powers import by_each_exponent, invert_together

# Powers and inverses modulo even numbers, from those modulo odd numbers.
#
# The power modulo ``2**s q`` is ``r + q t`` for the power r modulo the odd q, where t is ``(p - r) / q``
# modulo 2**s and p the power modulo 2**s (Garner's form of the Chinese remainder theorem). Numbers modulo
# 2**s have the limbs of the greatest of these.
#
# The inverse of x modulo an even m is ``m - (m t - 1) / x`` for the inverse t of m modulo x, which must be
# odd.

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
    p = _low_power(_low(x, low), *_reduce_exponents(exponents, bits, low), low)
    difference = _minus(p, _low(by_odd, low), width)
    quotient = multiply(difference, _inverse_modulo_power_of_two(_low(odd, low), width), width, False)
    t = quotient & _mask(limb, bit, low)
    return multiply_add(odd, t, by_odd, LIMB_BITS * len(moduli), False)


def inverse_modulo_any(x: Array, moduli: Array, invert: InvertModuloOdd) -> Array | None:
    """Inverses modulo each modulus, even or odd, of matrices (k, N); None if a number has no inverse.

    `invert` writes the inverses of its first argument modulo the second, and returns the index of a number
    that has no inverse.
    """
    is_even = moduli[0] & np.uint32(1) == 0
    odd = np.where(is_even, x, moduli)
    out = np.empty_like(moduli, order="C")
    if not is_any(is_even):
        return out if invert(x, moduli, out) is None else None
    if not is_all(odd[0] & np.uint32(1)) or invert(np.where(is_even, moduli, x), odd, out) is not None:
        return None
    out[0] |= (out == 0).all(axis=0) & is_even  # inverses modulo 1 are 0
    width = 2 * LIMB_BITS * len(x)
    product = multiply_add(moduli, out, _constant((1 << width) - 1, 2 * len(x), x), width, False)
    quotient = divmod_(product, odd, False)[0][: len(x)]
    return np.where(is_even, _minus(moduli, quotient, width // 2), out)


def _low(matrix: Array, limbs: int) -> Array:
    """Cut a matrix to its lower limbs, or pad it with zeros above."""
    if len(matrix) >= limbs:
        return matrix[:limbs]
    out = np.zeros_like(matrix, shape=(limbs, matrix.shape[1]), order="C")
    out[: len(matrix)] = matrix
    return out


def _constant(value: int, limbs: int, like: Array) -> Array:
    """Limbs (limbs, 1) of one number, where `like` is."""
    words = [value >> LIMB_BITS * i & 0xFFFFFFFF for i in range(limbs)]
    return np.asarray(np.array(words, dtype=np.uint32)[:, np.newaxis], like=like)


def _minus(x: Array, y: Array, width: int) -> Array:
    """``x - y`` modulo 2**width: x + (2**width - 1) y."""
    return multiply_add(y, _constant((1 << width) - 1, len(y), y), x, width, False)


def _trailing_zeros(matrix: Array) -> tuple[Array, Array]:
    """Index of the first nonzero limb, and its trailing zero bits, for nonzero numbers."""
    limb = (matrix != 0).argmax(axis=0)
    value = np.take_along_axis(matrix, limb[np.newaxis], axis=0)[0]
    lowest = value & (~value + np.uint32(1))
    exponent = np.frexp(lowest.astype(np.float64))[1]  # of a power of two, so exact
    return limb, exponent.astype(np.uint32) - np.uint32(1)


def _shift_right(matrix: Array, limb: Array, bit: Array) -> Array:
    """Shift numbers right by a number of limbs and bits each."""
    above = np.zeros_like(matrix, shape=(1, matrix.shape[1]), order="C")
    longer = np.concatenate([matrix, above])
    rows = np.asarray(np.arange(len(matrix) + 1)[:, np.newaxis], like=matrix)
    moved = np.take_along_axis(longer, np.minimum(rows + limb, len(matrix)), axis=0).astype(np.uint64)
    pairs = moved[:-1] | moved[1:] << np.uint64(LIMB_BITS)
    return (pairs >> bit.astype(np.uint64)).astype(np.uint32)


def _mask(limb: Array, bit: Array, limbs: int) -> Array:
    """Masks 2**s - 1, in `limbs` limbs."""
    rows = np.asarray(np.arange(limbs)[:, np.newaxis], like=limb)
    partial = (np.uint32(1) << bit) - np.uint32(1)
    return np.where(rows < limb, np.uint32(0xFFFFFFFF), np.where(rows == limb, partial, np.uint32(0)))


def _reduce_exponents(exponents: Array, bits: int, limbs: int) -> tuple[Array, int]:
    """Reduce exponents to fewer bits that give the same powers modulo 2**(32 limbs); return both.

    Powers of odd numbers repeat after 2**(32 limbs - 2). Powers of even numbers are 0 from the exponent 32
    limbs on, so that one bit replaces all above.
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
    """Invert by Newton's iteration: x is its own inverse modulo 8, and each step doubles the bits."""
    inverse, right = odd, 3
    while right < width:
        # inverse (2 - odd inverse)
        two = _constant(2, len(odd), odd)
        rest = _minus(two, multiply(odd, inverse, width, False), width)
        inverse, right = multiply(inverse, rest, width, False), 2 * right
    return inverse


_FEW = 32
"""Most numbers that are inverted one by one, on the host."""


@dataclass(frozen=True)
class _Moduli:
    """Moduli (k, N) or (k, 1), and the value of a single one, on the host."""

    matrix: Array
    value: int | None

    def __len__(self) -> int:
        return len(self.matrix)

    @property
    def are_odd(self) -> bool:
        if self.value is None:
            return is_all(self.matrix[0] & np.uint32(1))
        return self.value % 2 != 0

    def squares(self) -> Array:
        """``R**2`` modulo each modulus, for Montgomery's multiplication."""
        bits = 2 * kernels_of(self.matrix).montgomery_bits(len(self))
        if self.value is not None:
            return np.asarray(_square(self.value, len(self), bits), like=self.matrix)
        square = from_integers([gmpy2.mpz(1) << bits], limbs_of(bits + 1), self.matrix)
        return self.reduce(square, False)

    def reduce(self, matrix: Array, signed: bool) -> Array:
        """Reduce a matrix modulo the moduli."""
        return remainder(matrix, self.matrix, signed)

    def multiply(self, a: Array, b: Array, count: int) -> Array:
        """Multiply prepared matrices modulo the moduli."""
        out = np.empty_like(a, shape=(len(self), count), order="C")
        if count == 0:
            return out
        by_montgomery = len(self) <= kernels_of(out).most_montgomery_limbs
        if self.value is not None and self.are_odd and by_montgomery:
            kernels_of(out).montgomery_multiply(a, b, self.matrix, self.squares(), out)
            return out
        together = kernels_of(out).positional_mod_multiply
        if together is not None:
            together(a, b, self.matrix, out)
            return out
        product = multiply(a, b, LIMB_BITS * (len(a) + len(b)), False)
        return self.reduce(wide(product, count), False)


@lru_cache(64)
def _square(m: int, limbs: int, bits: int) -> Array:
    return from_integers([gmpy2.powmod(2, bits, m)], limbs, np.empty(0))


def mod_add(x: Array, y: Array, m: Array, signed: bool, locate: Locate = int) -> Array:
    """``x + y`` modulo m."""
    return _sum(x, y, m, signed, locate, False)


def mod_subtract(x: Array, y: Array, m: Array, signed: bool, locate: Locate = int) -> Array:
    """``x - y`` modulo m."""
    return _sum(x, y, m, signed, locate, True)


def mod_multiply(x: Array, y: Array, m: Array, signed: bool, locate: Locate = int) -> Array:
    """``x y`` modulo m: by Montgomery's multiplication for one short odd modulus, else by a remainder."""
    operands, (a, b), modulus = _prepare((x, y), m, signed, locate)
    if x is y:
        b = a
    return operands.shaped(modulus.multiply(a, b, operands.count))


def mod_power(x: Array, exponent: int | Array, m: Array, signed: bool, locate: Locate = int) -> Array:
    """``x**exponent`` modulo m, for one integer or words (e, *shape) as exponents; x**0 is 1 modulo m.

    A negative integer raises the inverses; ZeroDivisionError for a number without one. Words must not be
    negative.
    """
    if isinstance(exponent, int):
        if exponent < 0:
            x, exponent, signed = mod_inverse(x, m, signed, locate), -exponent, False
        limbs = max(1, limbs_of(exponent.bit_length()))
        words = from_integers([gmpy2.mpz(exponent)], limbs, x).reshape(limbs, *(1,) * (x.ndim - 1))
    else:
        words = exponent
        shape = np.broadcast_shapes(*(z.shape[1:] for z in (x, words, m)))
        _check_not_negative(np.broadcast_to(words, (len(words), *shape)), signed, "exponent", locate)
    operands, (a, e), modulus = _prepare((x, words), m, signed, locate, reduced=1)
    if operands.count == 0:
        return operands.shaped(operands.empty(len(modulus)))
    e, bits = _trim_exponents(e)
    if kernels_of(operands.like).by_integers("mod_power", len(modulus), operands.count):
        return operands.shaped(_power_of_integers(a, e, modulus.matrix, operands.count))
    power = partial(_power_modulo_odd, count=operands.count)
    if modulus.are_odd:
        return operands.shaped(power(a, e, bits, modulus))
    a, e, moduli = (wide(z, operands.count) for z in (a, e, modulus.matrix))

    def by_odd(x: Array, exponents: Array, bits: int, odd: Array) -> Array:
        return power(x, exponents, bits, _Moduli(odd, None))

    return operands.shaped(power_modulo_even(a, e, bits, moduli, by_odd))


def mod_power_by_array(x: Array, m: Array, exponents: Array, signed: bool, locate: Locate = int) -> Array:
    """``x**exponent`` modulo m for machine integers (1, *shape), each as in :func:`mod_power`."""
    operands = Operands(x, m, exponents)
    bases, moduli, given = operands.matrices

    def power(chosen: Array, exponent: int) -> Array:
        # A single modulus stays single, because the kernels are faster for it.
        few, one = (z if z.shape[1] == 1 else z[:, chosen] for z in (bases, moduli))
        found = mod_power(few, exponent, one, signed, lambda index: locate(int(chosen[index])))
        return np.broadcast_to(found, (len(found), len(chosen)))

    result = operands.empty(len(m))
    return operands.shaped(by_each_exponent(power, result, np.broadcast_to(given[0], operands.count)))


def mod_power_by_integer(x: Array, m: Array, exponent: int, signed: bool, locate: Locate = int) -> Array:
    """``x**exponent`` modulo m for one integer, as in :func:`mod_power`."""
    return mod_power(x, exponent, m, signed, locate)


def mod_inverse(x: Array, m: Array, signed: bool, locate: Locate = int) -> Array:
    """Inverses of x modulo m; ZeroDivisionError if a factor is common, naming the first number's index."""
    operands, (a,), modulus = _prepare((x,), m, signed, locate)
    count = operands.count
    if modulus.value is not None and a.shape[1] > _FEW:
        try:
            together = invert_together(
                _lengthen(a, len(modulus)),
                lambda p, q: modulus.multiply(p, q, p.shape[1]),
                lambda few: _invert_each(few, wide(modulus.matrix, few.shape[1]), int),
                _FEW,
            )
            return operands.shaped(together)
        except ZeroDivisionError:
            pass  # one has no inverse: find which
    a, moduli = wide(a, count), wide(modulus.matrix, count)
    kernels = kernels_of(operands.like)
    if count and not kernels.by_integers("mod_inverse", len(modulus), count):
        each = inverse_modulo_any(_lengthen(a, len(modulus)), moduli, kernels.positional_inverse)
        if each is not None:
            return operands.shaped(each)
    return operands.shaped(_invert_each(a, moduli, locate))


def _prepare(
    numbers: tuple[Array, ...], m: Array, signed: bool, locate: Locate, reduced: int | None = None
) -> tuple[Operands, list[Array], _Moduli]:
    """Matrices of numbers, and the moduli; the first `reduced` operands, or all, are ready for kernels.

    Kernels take nonnegative numbers, in no more limbs than the moduli.
    """
    operands = Operands(*numbers, m)
    *matrices, last = operands.matrices
    value = int(to_integers(last, signed)[0]) if last.shape[1] == 1 else None
    modulus = _Moduli(last, value)
    if operands.count == 0:
        return operands, matrices, modulus  # no modulus is used, so its value does not matter
    if value is None or value <= 0:
        check_divisors(last, operands.count, locate, "modulus")
        _check_not_negative(last, signed, "modulus", locate)
    for i, matrix in enumerate(matrices[:reduced]):
        if len(matrix) > len(modulus) or (signed and is_any(matrix[-1] >> np.uint32(31) != 0)):
            matrices[i] = modulus.reduce(matrix, signed)
    return operands, matrices, modulus


def _check_not_negative(words: Array, signed: bool, what: str, locate: Locate) -> None:
    negative = (words[-1] >> np.uint32(31) != 0).ravel()
    if signed and is_any(negative):
        index = locate(int(negative.argmax()))
        raise NumberError(f"the {what} at flat index {index} is negative")


def _lengthen(matrix: Array, limbs: int) -> Array:
    """Pad a matrix with zeros above, up to `limbs`."""
    out = np.zeros_like(matrix, shape=(limbs, matrix.shape[1]), order="C")
    out[: len(matrix)] = matrix
    return out


def _sum(x: Array, y: Array, m: Array, signed: bool, locate: Locate, subtract: bool) -> Array:
    operands = Operands(x, y, m)
    out = operands.empty(len(m))
    add = partial(kernels_of(out).positional_mod_add, subtract=subtract, out=out)
    is_plain = not signed and max(len(x), len(y)) <= len(m) and out.size > 0
    if is_plain and add(*operands.matrices):  # success implies that no modulus is 0
        return operands.shaped(out)
    _, (a, b), modulus = _prepare((x, y), m, signed, locate)
    if out.size and (is_plain or not add(a, b, modulus.matrix)):
        one = from_integers([gmpy2.mpz(1)], 1, out)
        count = max(z.shape[1] for z in (a, b, modulus.matrix))
        a, b = (modulus.multiply(matrix, one, count) for matrix in (a, b))
        add(a, b, modulus.matrix)
    return operands.shaped(out)


def _trim_exponents(exponents: Array) -> tuple[Array, int]:
    """Exponents without the upper limbs that are 0 in all, and their greatest number of bits."""
    limbs = used_limbs(exponents)
    top = int(exponents[limbs - 1].max())
    return exponents[:limbs], LIMB_BITS * (limbs - 1) + top.bit_length()


def _power_modulo_odd(a: Array, exponents: Array, bits: int, modulus: _Moduli, count: int) -> Array:
    out = np.empty_like(a, shape=(len(modulus), count), order="C")
    kernels_of(out).montgomery_power(a, exponents, bits, modulus.matrix, modulus.squares(), out)
    return out


def _power_of_integers(a: Array, exponents: Array, moduli: Array, count: int) -> Array:
    """Powers modulo odd or even numbers, by GMP on the host."""
    out = np.empty((len(moduli), count), dtype=np.uint32)
    cpu.positional_mod_power(on_host(a), on_host(exponents), on_host(moduli), out)
    return np.asarray(out, like=a)


def _invert_each(a: Array, modulus: Array, locate: Locate) -> Array:
    """Inverses of matrices (k, N) one by one, by GMP on the host."""
    x, m = on_host(a), on_host(modulus)
    out = np.empty_like(m, order="C")
    j = cpu.positional_inverse(x, m, out, method=cpu.GMP)
    if j is not None:
        number, value = (int(to_integers(z[:, j : j + 1], False)[0]) for z in (x, m))
        raise ZeroDivisionError(
            f"the number at flat index {locate(j)} has no inverse modulo {abbreviate(value)}: their "
            f"greatest common divisor is {abbreviate(math.gcd(number, value))}"
        )
    return np.asarray(out, like=a)
