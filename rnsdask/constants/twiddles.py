"""Tables of powers of roots of unity (twiddle factors), as pairs for multiplication by them.

For primes below 2**31 a pair is that of Shoup, ``(w, floor(w 2**32 / p))``. If a set has greater primes, it
is that of Montgomery for all: ``v = w 2**32`` modulo p, and ``v / p`` modulo 2**32; all must be odd.
"""

import numpy as np
from numpy.typing import NDArray

from rnsdask.constants.progressions import progressions


def root_factors(roots: list[int], primes: list[int], length: int) -> NDArray[np.uint32]:
    """Factors for transforms of a length, of roots of that order: shape (n, length, 2).

    That at ``half + k`` is of the power k of a root of order ``2 half``, for every power of two ``half``.
    """
    values = np.zeros((len(primes), length), dtype=np.uint32)
    if length > 1:
        values[:, length // 2 :] = progressions([1] * len(primes), roots, length // 2, primes)
    half = length // 4
    while half > 0:
        values[:, half : 2 * half] = values[:, 2 * half : 4 * half : 2]
        half //= 2
    return _factors(values, primes)


def power_factors(starts: list[int], roots: list[int], primes: list[int], count: int) -> NDArray[np.uint32]:
    """Factors of ``start root**k`` for k below a power of two: shape (n, count, 2)."""
    return _factors(progressions(starts, roots, count, primes), primes)


def is_narrow(primes: list[int]) -> bool:
    """Whether pairs are those of Shoup."""
    return max(primes) < 2**31


def _factors(values: NDArray[np.uint32], primes: list[int]) -> NDArray[np.uint32]:
    sizes, shifted = np.array(primes, dtype=np.uint64)[:, None], values.astype(np.uint64) << np.uint64(32)
    if is_narrow(primes):
        return np.stack([values, (shifted // sizes).astype(np.uint32)], axis=-1)
    inverses = np.array([pow(p, -1, 2**32) for p in primes], dtype=np.uint32)[:, None]
    values = (shifted % sizes).astype(np.uint32)
    return np.stack([values, values * inverses], axis=-1)
