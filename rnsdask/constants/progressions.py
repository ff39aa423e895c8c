"""Geometric progressions modulo primes: powers of roots of unity, of which tables of factors are made."""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray


def progressions(
    starts: NDArray[np.uint32] | Sequence[int],
    ratios: NDArray[np.uint32] | Sequence[int],
    count: int,
    primes: Iterable[int],
) -> NDArray[np.uint32]:
    """Geometric progressions ``start * ratio**k`` for k < count, (n, count, *rest), of (n, *rest) of both."""
    start, ratio = (np.array(given, dtype=np.uint64) for given in (starts, ratios))
    sizes = np.array(list(primes), dtype=np.uint64).reshape(-1, *(1,) * start.ndim)
    terms = np.empty((len(start), count, *start.shape[1:]), dtype=np.uint64)
    terms[:, 0] = start
    known, power = 1, ratio[:, None]
    while known < count:
        more = min(known, count - known)
        # Both factors are below 2**32.
        terms[:, known : known + more] = terms[:, :more] * power % sizes
        known, power = known + more, power * power % sizes
    return terms.astype(np.uint32)
