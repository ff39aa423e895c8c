"""Inverses of many elements by one: P. Montgomery's trick, in a tree. No Dask in here."""

from collections.abc import Callable

import numpy as np

from rnsdask.backend import Array, backend_name

Multiply = Callable[[Array, Array], Array]

# Words of elements that are inverted together on the CPU.
_WORDS = 2**19


def invert_together(elements: Array, multiply: Multiply, invert: Callable[[Array], Array], few: int) -> Array:
    """Inverses of elements (rows, N) of a ring, of which only a few are inverted one by one.

    Products of pairs, then of pairs of these, and so on, are inverted instead; the inverse of ``a b``, times
    b and times a, gives those of a and b. So N elements take less than 3 N products. On the CPU so many are
    taken together that they stay in cache.

    Parameters
    ----------
    multiply : callable
        Products of elements (rows, N), contiguous.
    invert : callable
        Inverses of a few elements.
    few : int
        Elements that are few enough for it, at least 1.

    Returns
    -------
    array (rows, N)
        If `invert` gives 0 for what has no inverse, and one of a row has none, there are zeros in that row.
    """
    count = elements.shape[1]
    together = count if backend_name(elements) == "cuda" else max(few, _WORDS // len(elements))
    if count <= together:
        return _inverses(elements, multiply, invert, few)
    result = np.empty_like(elements, shape=elements.shape, order="C")
    for start in range(0, count, together):
        part = slice(start, start + together)
        result[:, part] = _inverses(elements[:, part], multiply, invert, few)
    return result


def _inverses(elements: Array, multiply: Multiply, invert: Callable[[Array], Array], few: int) -> Array:
    if elements.shape[1] <= few:
        return invert(elements)
    half = elements.shape[1] // 2
    # The last one of an odd number goes up as it is.
    first, second, rest = np.split(elements, (half, 2 * half), axis=1)
    above = np.concatenate([multiply(first, second), rest], axis=1)
    inverted = _inverses(above, multiply, invert, few)
    pairs = inverted[:, :half]
    return np.concatenate([multiply(pairs, second), multiply(pairs, first), inverted[:, half:]], axis=1)
