"""The Chinese remainder theorem for numbers modulo products of primes.

A part (*shape) has integers modulo a product of primes: of each row along the last axis first the integers,
and last the product.
"""

import functools

import gmpy2
import numpy as np
from numpy.typing import NDArray

_AS_MPZ = np.frompyfunc(gmpy2.mpz, 1, 1)
_AS_INT = np.frompyfunc(int, 1, 1)

# Rows mostly have the same two moduli as the row before, and large ones take long to invert.
_INVERSE = np.frompyfunc(functools.lru_cache(4)(gmpy2.invert), 2, 1)


def join_parts(parts: NDArray[np.object_]) -> NDArray[np.object_]:
    """One part (1, *shape) of several (k, *shape) of different primes, of Python ints.

    Two numbers a modulo m and b modulo n are ``a + m ((b - a) / m modulo n)`` modulo m n; so are pairs of
    pairs, up to the product of all (J. von zur Gathen, J. Gerhard, "Modern Computer Algebra", section 10.3).
    """
    joined = np.asarray(_AS_MPZ(parts), dtype=object)
    while len(joined) > 1:
        half = len(joined) // 2
        a, b, rest = np.split(joined, [half, 2 * half])
        modulus, other = a[..., -1:], b[..., -1:]
        steps = (b[..., :-1] - a[..., :-1]) * _INVERSE(modulus, other) % other
        pairs = np.concatenate([a[..., :-1] + modulus * steps, modulus * other], axis=-1)
        joined = np.concatenate([pairs, rest])
    return np.asarray(_AS_INT(joined), dtype=object)


def from_parts(part: NDArray[np.object_]) -> NDArray[np.object_]:
    """The integers around 0 of the one part that all were joined to."""
    values, modulus = part[..., :-1], part[..., -1:]
    return np.where(2 * values > modulus, values - modulus, values)
