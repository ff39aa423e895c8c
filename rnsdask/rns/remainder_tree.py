"""The Chinese remainder theorem for numbers modulo products of primes, by a tree.

A part (*shape) has integers modulo a product of primes: of each row along the last axis first the integers,
and last the product.
"""

import functools
from dataclasses import dataclass
from typing import Any

import gmpy2
import numpy as np
from numpy.typing import NDArray

from rnsdask.constants.factors import CACHED_SETS
from rnsdask.core.moduli import ModuliSet

MOST_NUMBERS = 16
"""More numbers are decoded by kernels."""

# Moduli from which one number takes less time by the tree where nothing is known of them yet, and little more
# where all is; and how many more with each number.
_FEWEST_MODULI, _FOR_EACH_NUMBER = 96, 16

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


def is_quicker(moduli: int, numbers: int) -> bool:
    """Whether :func:`from_remainders` takes so many numbers better than a kernel, as measured on a CPU."""
    return 0 < numbers <= MOST_NUMBERS and moduli >= _FEWEST_MODULI + _FOR_EACH_NUMBER * (numbers - 1)


def from_remainders(residues: NDArray[np.uint32], moduli: ModuliSet) -> NDArray[np.object_]:
    """The integers around 0 of residues (n, *shape), as Python ints of shape (*shape).

    A number is the sum of all ``|x_i w_i| M_i``, less a multiple of M, for partial products M_i and their
    inverses w_i. Sums of two moduli a and b, ``u b + v a``, are those of a b, and so on up to M. No step but
    the last one divides (J. von zur Gathen, J. Gerhard, "Modern Computer Algebra", Algorithm 10.20).
    """
    tree = _tree(moduli)
    words = residues.reshape(len(residues), -1).astype(np.uint64)
    sums: NDArray[Any] = words * tree.inverses % np.array(moduli.moduli, dtype=np.uint64)[:, None]
    for products in tree.products:
        if len(sums) < len(products):
            sums = np.concatenate([sums, np.zeros_like(sums[:1])])
        if products.dtype != sums.dtype:
            sums = np.asarray(_AS_MPZ(sums), dtype=object)
        sums = sums[::2] * products[1::2] + sums[1::2] * products[::2]
    values = np.asarray(_AS_MPZ(sums[0]), dtype=object) % moduli.product
    found = np.where(2 * values > moduli.product, values - moduli.product, values)
    return np.asarray(_AS_INT(found), dtype=object).reshape(residues.shape[1:])


@dataclass(frozen=True)
class _Tree:
    """Products of neighbouring moduli, level by level.

    Each level (2 k, 1) ends with a 1 if it needs one more to be even. The first is of words if sums of two
    moduli fit these; all others are of gmpy2's integers. `inverses` (n, 1) are those of the partial products.
    """

    products: list[NDArray[Any]]
    inverses: NDArray[np.uint64]


@functools.lru_cache(CACHED_SETS)
def _tree(moduli: ModuliSet) -> _Tree:
    products: list[NDArray[Any]] = []
    level = np.asarray(_AS_MPZ(np.array(moduli.moduli, dtype=object)), dtype=object)[:, None]
    while len(level) > 1 or not products:
        if len(level) % 2:
            level = np.concatenate([level, np.array([[gmpy2.mpz(1)]], dtype=object)])
        products.append(level)
        level = level[::2] * level[1::2]
    # The product of all moduli of a node but one is, modulo that, what comes down from above times the other
    # half's product.
    rests = np.array([[gmpy2.mpz(1)]], dtype=object)
    for level in reversed(products):
        pairs = level.reshape(-1, 2)
        rests = (rests[: len(pairs)] * pairs[:, ::-1] % pairs).reshape(-1, 1)
    partial = rests[: len(moduli), 0].tolist()
    inverses = [int(gmpy2.invert(rest, m)) for rest, m in zip(partial, moduli, strict=True)]
    if max(moduli) <= 2**31:  # u b + v a < 2 a b
        products[0] = products[0].astype(np.uint64)
    return _Tree(products, np.array(inverses, dtype=np.uint64)[:, None])
