"""Products of positional numbers along axes, and exactly which overflow. No Dask in here.

Factors are those of :mod:`rnsdask.rns.axis_products`: limbs of a magnitude, as an unsigned number of as many
bits, and a row of flags; or where nobody asks about overflow the numbers' limbs.
"""

import numpy as np

from rnsdask.backend import Array
from rnsdask.core.errors import PrecisionOverflowError
from rnsdask.core.place import Locate
from rnsdask.positional.arithmetic import apply, with_flags
from rnsdask.positional.multiply import multiply, multiply_checked
from rnsdask.positional.resize import trimmed
from rnsdask.positional.system import Positional
from rnsdask.rns.axis import fold_along, reduced_shape
from rnsdask.rns.axis_products import BEYOND, NEGATIVE, ZERO
from rnsdask.rns.compare import choose


def factors_of(words: Array, system: Positional, mode: str) -> Array:
    """Factors of single numbers (k, *shape), for a mode of overflow; with ``"wrap"`` their limbs."""
    if mode == "wrap":
        return words
    negative = (words[-1] >> np.uint32(31) != 0) & system.signed
    zero = ~words.any(axis=0)
    magnitudes = words
    if system.signed:
        magnitudes = choose(negative[None], _opposite(words, Positional(system.bits)), words)
    flags = zero * np.uint32(ZERO) + negative * np.uint32(NEGATIVE)
    return np.concatenate([magnitudes, flags[None].astype(np.uint32)])


def join(a: Array, b: Array, system: Positional) -> Array:
    """Factors of the products of two blocks of factors, element by element."""
    if len(a) == system.rows:
        return multiply(a, b, system.bits, system.signed)
    magnitudes, beyond = multiply_checked(a[:-1], b[:-1], system.bits, False)
    flags = (a[-1] | b[-1]) & np.uint32(BEYOND | ZERO)
    flags |= (a[-1] ^ b[-1]) & np.uint32(NEGATIVE)
    flags |= beyond * np.uint32(BEYOND)
    return np.concatenate([magnitudes, flags[None]])


def factors_along(factors: Array, system: Positional, axes: tuple[int, ...]) -> Array:
    """Factors multiplied along axes of the numbers, which keep length 1; no factors give 1."""
    if factors.size:
        return fold_along(factors, axes, lambda a, b: join(a, b, system))
    one = np.zeros_like(factors, shape=(len(factors), *reduced_shape(factors.shape[1:], axes)), order="C")
    one[0] = 1
    if len(factors) == system.rows:
        one = _wrapped(one, system)
    return one


def finish(factors: Array, system: Positional, mode: str, locate: Locate = int) -> Array:
    """Limbs of the products that factors stand for; with ``"flag"`` one row more, 1 if one is out of range.

    Raises
    ------
    RNSOverflowError
        With ``"raise"``, if a product is out of range; it names the index that `locate` makes of that in the
        chunk.
    """
    if mode == "wrap":
        return factors
    magnitudes, flags = factors[:-1], factors[-1]
    negative = flags & np.uint32(NEGATIVE) != 0
    outside, words = flags & np.uint32(BEYOND) != 0, magnitudes
    if system.signed:
        words = choose(negative[None], _opposite(magnitudes, system), _wrapped(magnitudes, system))
        # Below 2**bits in magnitude, a number has its own sign if it is in range, and the other one if not.
        outside |= (words[-1] >> np.uint32(31) != 0) != negative
    outside &= flags & np.uint32(ZERO) == 0
    if mode == "raise" and bool(outside.any()):
        raise _overflow(factors, int(outside.argmax()), system, locate)
    return with_flags(words, outside, mode)


def _wrapped(words: Array, system: Positional) -> Array:
    """Limbs (k, *shape) of any numbers modulo 2**bits."""
    top = trimmed(words[-1], system.top_bits, system.signed)
    return np.concatenate([words[:-1], top[None]])


def _opposite(words: Array, system: Positional) -> Array:
    """The same of the opposite numbers."""
    zero = np.zeros((len(words), *(1,) * (words.ndim - 1)), np.uint32)
    return apply("subtract", (zero, words), (system, system), system, "wrap")


def _overflow(factors: Array, index: int, system: Positional, locate: Locate) -> PrecisionOverflowError:
    flags = int(factors[-1].reshape(-1)[index])
    negative = bool(flags & NEGATIVE)
    if flags & BEYOND:
        # In two's complement -2**k is one bit shorter than 2**k.
        length = system.bits + 1 - int(negative)
        return system.overflow_of_length(length, negative, locate(index), at_least=True)
    magnitude = Positional(system.bits).decode_at(factors[:-1], index)
    return system.overflow_error(-magnitude if negative else magnitude, locate(index))
