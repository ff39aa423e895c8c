"""Sums, products, powers and quotients of chunks of positional numbers."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from rnsdask.backend import Array, is_any, kernels_of, to_backend
from rnsdask.core.axes import reduced_shape
from rnsdask.core.errors import NumberError
from rnsdask.core.layout import as_matrix
from rnsdask.core.operations import OPERATIONS
from rnsdask.core.place import Locate
from rnsdask.core.rows import Part
from rnsdask.positional.divide import divmod_
from rnsdask.positional.divide import gcd as common_divisors
from rnsdask.positional.multiply import multiply, multiply_add, multiply_add_checked, multiply_checked
from rnsdask.positional.operands import Operands, limbs_of, resized, trimmed
from rnsdask.positional.system import Positional
from rnsdask.rns.axis import fold_along
from rnsdask.rns.blocks import with_overflow
from rnsdask.rns.compare import choose
from rnsdask.rns.products import BEYOND, NEGATIVE, ZERO, joined_flags, overflow_of, with_signs

_WRAPPING = {"multiply": multiply, "fma": multiply_add}
_CHECKED = {"multiply": multiply_checked, "fma": multiply_add_checked}

Results = tuple[Array, Array | None]
"""Words (rows, *shape) that wrap, and a mask (*shape) of results out of range; None if not checked."""


def apply(
    name: str,
    blocks: Sequence[Array],
    systems: Sequence[Positional],
    system: Positional,
    mode: str,
    locate: Locate = int,
) -> Array:
    """Apply an operation of :data:`.OPERATIONS` to a chunk of each operand.

    Each block has its own system, with at most as many bits as the result's.
    """
    words, outside = _results(name, blocks, systems, system, mode != "wrap")
    if outside is None:
        return words

    def error(index: int) -> Exception:
        pairs = zip(blocks, systems, strict=True)
        numbers = (_number_at(x, index, words.shape[1:], given) for x, given in pairs)
        return system.overflow_error(OPERATIONS[name].evaluate(*numbers), locate(index))

    return with_overflow(words, outside, mode, error)


def apply_to_blocks(
    name: str,
    *blocks: Array,
    system: Positional,
    mode: str = "raise",
    locate: Locate = int,
    given: Sequence[Positional] | None = None,
) -> Array:
    """Apply an operation as :func:`apply` does, as a row of the table; `given` are systems of the blocks."""
    return apply(name, blocks, given or (system,) * len(blocks), system, mode, locate)


def absolute(x: Array, system: Positional, mode: str, locate: Locate = int) -> Array:
    """Absolute values, as :func:`apply`; only that of the lowest signed number can be out of range."""
    zero = np.zeros((len(x), *(1,) * (x.ndim - 1)), np.uint32)
    is_negative = x[-1:] >> np.uint32(31) != 0
    # Only the negation of a negative number can be out of range.
    opposite = apply("subtract", (zero, x), (system, system), system, mode, locate)
    chosen = choose(is_negative, opposite[: len(x)], x)
    return np.concatenate([chosen, opposite[len(x) :]]) if mode == "flag" else chosen


def _results(
    name: str, blocks: Sequence[Array], systems: Sequence[Positional], system: Positional, checked: bool
) -> Results:
    bits, signed = system.bits, system.signed
    if OPERATIONS[name].is_sum:
        return _sum(blocks, [s.signed for s in systems], name == "subtract", bits, signed)
    factors = [_to_twos_complement(x, s, signed) for x, s in zip(blocks, systems, strict=True)]
    if name in ("multiply", "fma"):
        function: Any = _CHECKED[name] if checked else _WRAPPING[name]
        found = function(*factors, bits, signed)
        return found if checked else (found, None)
    # Exact, because a single product may be out of range.
    width = 2 * bits if checked else bits
    a, b, c, d = factors
    products = multiply(a, b, width, signed), multiply(c, d, width, signed)
    subtract = name == "mulsub"
    if not checked:
        return _sum(products, (signed, signed), subtract, bits, signed)[0], None
    exact, _ = _sum(products, (signed, signed), subtract, width + 1, subtract or signed)
    flat = exact.reshape(len(exact), -1)
    words, outside = resized(flat, subtract or signed, system.rows, system.top_bits, signed)
    return words.reshape(len(words), *exact.shape[1:]), outside.reshape(exact.shape[1:])


def _to_twos_complement(x: Array, given: Positional, signed: bool) -> Array:
    """Limbs of an operand, in two's complement if `signed`, which may take one more limb."""
    if given.signed == signed or given.bits % 32:
        return x
    zeros = np.zeros_like(x[:1])
    return np.concatenate([x, zeros])


def _sum(
    blocks: Sequence[Array], signs: Sequence[bool], subtract: bool, bits: int, signed: bool
) -> tuple[Array, Array]:
    """Sum or difference modulo 2**bits, and a mask of results out of range."""
    operands = Operands(*blocks)
    rows = limbs_of(bits)
    out = operands.empty(rows)
    top_bits = bits - 32 * (rows - 1)
    flags = kernels_of(out).positional_add(operands.matrices, signs, subtract, top_bits, signed, out)
    return operands.shaped(out), operands.shaped(flags != 0)


# ---- powers -----------------------------------------------------------------------------------------------


def power(x: Array, exponent: Array | int, system: Positional, mode: str, locate: Locate = int) -> Array:
    """Raise numbers to one nonnegative exponent, or to machine integers (1, *shape); 0**0 is 1.

    Bits are taken from the highest down, so that intermediate results are no greater than the power: if one
    is out of range, so is the power. A negative exponent in an array is a ValueError that names its index.
    """
    if isinstance(exponent, int):
        by_number: Array = np.ones((1,) * x.ndim, np.bool_)
        longest = exponent.bit_length()
    else:
        by_number = np.asarray(exponent, like=x)
        longest = int(by_number.max()).bit_length() if by_number.size else 0
    shape = np.broadcast_shapes(x.shape[1:], by_number.shape[1:])
    if by_number.dtype.kind == "i":
        _check_exponents(np.broadcast_to(by_number[0], shape).reshape(-1), locate)
    bits, signed = max(system.bits, 1 + system.signed), system.signed  # enough for the number 1
    words = np.zeros_like(x, shape=(system.rows, *shape), order="C")
    words[0] = 1
    outside = np.zeros_like(words[0], dtype=np.bool_)
    for k in range(longest - 1, -1, -1):
        words, beyond = multiply_checked(words, words, bits, signed)
        outside |= beyond
        if isinstance(exponent, int) and not exponent >> k & 1:
            continue
        products, beyond = multiply_checked(words, x, bits, signed)
        if not isinstance(exponent, int):
            taken = (by_number >> by_number.dtype.type(k) & by_number.dtype.type(1)) != 0
            products, beyond = np.where(taken, products, words), beyond & taken[0]
        words = products
        outside |= beyond
    flat, beyond = resized(words.reshape(system.rows, -1), signed, system.rows, system.top_bits, signed)
    words, outside = flat.reshape(words.shape), outside | beyond.reshape(shape)

    def error(index: int) -> Exception:
        k = exponent if isinstance(exponent, int) else int(_at(by_number, index, shape)[0, 0])
        base = _number_at(x, index, shape, system)
        # The power itself may be too long to compute.
        length = max((abs(base).bit_length() - 1) * k, system.bits)
        negative = base < 0 and k % 2 == 1
        return system.overflow_of_length(length, negative, locate(index), at_least=True)

    return with_overflow(words, outside, mode, error)


def _check_exponents(exponents: Array, locate: Locate) -> None:
    negative = exponents < 0
    if is_any(negative):
        index = int(negative.argmax())
        value = int(exponents[index])
        raise NumberError(f"an exponent must not be negative, got {value} at flat index {locate(index)}")


def _at(words: Array, index: int, shape: tuple[int, ...]) -> Array:
    """Words (k, 1) at a flat index of the shape that a chunk broadcasts to."""
    whole = np.broadcast_to(words, (len(words), *shape))
    place: Any = (slice(None), *np.unravel_index(index, shape))
    return whole[place][:, None]


def _number_at(words: Array, index: int, shape: tuple[int, ...], system: Positional) -> int:
    number: int = system.decode(_at(words, index, shape))[0]
    return number


# ---- division ---------------------------------------------------------------------------------------------


def floor_divide(
    x: Array, y: Array, system: Positional, parts: Sequence[Part], locate: Locate = int
) -> Array:
    """Divide numbers of one system, as :func:`divided` does."""
    return divided(x, y, (system, system), system, parts, locate)


def divide_by_integer(
    x: Array, divisor: int, system: Positional, parts: Sequence[Part], locate: Locate = int
) -> Array:
    """Divide by an integer of any size, as :func:`divided` does."""
    given = Positional(max(1, divisor.bit_length() + (divisor < 0)), divisor < 0)
    return divided(x, given.column(divisor, x.ndim - 1), (system, given), system, parts, locate)


def divided(
    x: Array,
    y: Array,
    systems: Sequence[Positional],
    system: Positional,
    parts: Sequence[Part],
    locate: Locate = int,
) -> Array:
    """Quotients, rounded down, and remainders of two chunks, as Python's: words (rows of each part, *shape).

    `systems` are the systems of dividends and divisors. A divisor of 0 is a ZeroDivisionError, a result out
    of range an RNSOverflowError; both name the index of the first.
    """
    signed = any(s.signed for s in systems)
    numbers, divisors = (_to_twos_complement(z, s, signed) for z, s in zip((x, y), systems, strict=True))
    found = dict(zip(("quotient", "remainder"), divmod_(numbers, divisors, signed, locate), strict=True))
    results = []
    for part in parts:
        words = found[part]
        flat, outside = resized(
            words.reshape(len(words), -1), signed, system.rows, system.top_bits, system.signed
        )
        if is_any(outside):
            index = int(outside.argmax())
            wide = Positional(32 * len(words), signed)
            raise system.overflow_error(_number_at(words, index, words.shape[1:], wide), locate(index))
        results.append(flat.reshape(system.rows, *words.shape[1:]))
    return np.concatenate(results)


def gcd(x: Array, y: Array, system: Positional, mode: str, locate: Locate = int) -> Array:
    """Greatest common divisors of two chunks, as :func:`apply`; for the least number and 0 it may not fit."""
    found = common_divisors(x, y, system.signed)
    flat = found.reshape(len(found), -1)
    flat, outside = resized(flat, False, system.rows, system.top_bits, system.signed)
    shape, value = found.shape[1:], -system.value_range[0]
    return with_overflow(
        flat.reshape(system.rows, *shape),
        outside.reshape(shape),
        mode,
        lambda index: system.overflow_error(value, locate(index)),
    )


# Products of positional numbers along axes, and exactly which overflow.
# Factors are as in :mod:`rnsdask.rns.products`: limbs of a magnitude, as an unsigned number of the same bits,
# and a row of flags; or the numbers' limbs where overflow is not checked.


def factors_of(words: Array, system: Positional, mode: str) -> Array:
    """Factors of single numbers (k, *shape) for a mode of overflow; with ``"wrap"`` their limbs."""
    if mode == "wrap":
        return words
    negative = (words[-1] >> np.uint32(31) != 0) & system.signed
    zero = ~words.any(axis=0)
    magnitudes = words
    if system.signed:
        magnitudes = choose(negative[None], _opposite(words, Positional(system.bits)), words)
    return with_signs(magnitudes, zero, negative)


def join(a: Array, b: Array, system: Positional) -> Array:
    """Factors of the products of two blocks of factors, element by element."""
    if len(a) == system.rows:
        return multiply(a, b, system.bits, system.signed)
    magnitudes, beyond = multiply_checked(a[:-1], b[:-1], system.bits, False)
    flags = joined_flags(a, b) | beyond * np.uint32(BEYOND)
    return np.concatenate([magnitudes, flags[None]])


def factors_along(factors: Array, system: Positional, axes: tuple[int, ...]) -> Array:
    """Multiply factors along axes of the numbers, which keep length 1; no factors give 1."""
    if factors.size:
        return fold_along(factors, axes, lambda a, b: join(a, b, system))
    one = np.zeros_like(factors, shape=(len(factors), *reduced_shape(factors.shape[1:], axes)), order="C")
    one[0] = 1
    if len(factors) == system.rows:
        one = _wrap(one, system)
    return one


def axis_factors(words: Array, system: Positional, axes: tuple[int, ...], mode: str) -> Array:
    """Factors of the products of numbers along axes, which keep length 1."""
    return factors_along(factors_of(words, system, mode), system, axes)


def factors_of_chunk(words: Array, system: Positional, mode: str) -> Array:
    """Factors (rows, 1) of the product of all numbers, in NumPy."""
    return to_backend(axis_factors(as_matrix(words), system, (0,), mode), "cpu")


def result_of(factors: Array, system: Positional, mode: str) -> Any:
    """Product of factors (rows, 1) as an int; with ``"flag"`` a pair of it and a bool."""
    words = finish(factors, system, mode)
    value = system.decode_at(words[: system.rows], 0)
    return (value, bool(words[-1, 0])) if mode == "flag" else value


def finish(factors: Array, system: Positional, mode: str, locate: Locate = int) -> Array:
    """Convert factors to the limbs of their products."""
    if mode == "wrap":
        return factors
    magnitudes, flags = factors[:-1], factors[-1]
    negative = flags & np.uint32(NEGATIVE) != 0
    outside, words = flags & np.uint32(BEYOND) != 0, magnitudes
    if system.signed:
        words = choose(negative[None], _opposite(magnitudes, system), _wrap(magnitudes, system))
        # A wrapped number below 2**bits in magnitude has the right sign just when it is in range.
        outside |= (words[-1] >> np.uint32(31) != 0) != negative
    outside &= flags & np.uint32(ZERO) == 0
    error = partial(overflow_of, factors, Positional(system.bits), system, locate)
    return with_overflow(words, outside, mode, error)


def _wrap(words: Array, system: Positional) -> Array:
    """Reduce limbs (k, *shape) of any numbers modulo 2**bits."""
    top = trimmed(words[-1], system.top_bits, system.signed)
    return np.concatenate([words[:-1], top[None]])


def _opposite(words: Array, system: Positional) -> Array:
    """Negate factors."""
    zero = np.zeros((len(words), *(1,) * (words.ndim - 1)), np.uint32)
    return apply("subtract", (zero, words), (system, system), system, "wrap")
