"""Resultants and discriminants of chunks of integer polynomials in one variable, exact. No Dask in here.

A chunk is residues (n, *batch, coefficients) of an RNS. Each result is bounded (docs/exact-polynomials.md),
computed modulo primes with a product beyond that, and lifted (:mod:`rnsdask.rns.lift`).
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rnsdask.backend import Array
from rnsdask.core.moduli import ModuliSet
from rnsdask.fields import bareiss, polynomials
from rnsdask.fields.determinant_bounds import magnitude_of
from rnsdask.rns.lift import (
    Image,
    count_beyond,
    decode,
    empty_part,
    from_parts,
    images,
    join_parts,
    part_of,
    primes,
)
from rnsdask.rns.system import RNS

# Fewest primes of a group, and most primes that integers are converted from at once.
LEAST_GROUP, TOGETHER = 32, 1024


def sylvester_bound(m: int, n: int, f_square: int, g_square: int) -> int:
    """Bound of determinants of Sylvester's matrix of degrees m and n, from the squared lengths of its rows.

    J. Hadamard (1893): a determinant is at most the product of the rows' lengths, n of f's and m of g's.
    """
    return math.isqrt(max(f_square, 1) ** n * max(g_square, 1) ** m) + 1


def _degrees(words: Array) -> Array:
    """Degrees (*batch) over the integers: a coefficient is 0 if it is 0 modulo each m."""
    return polynomials.degrees_of((words != 0).any(axis=0))


def _greatest(degrees: Array) -> int:
    """Greatest of some degrees, or 0."""
    return max(0, int(degrees.max())) if degrees.size else 0


def resultants(f: Array, g: Array, system: RNS) -> NDArray[np.object_]:
    """Resultants (1, *batch, 1) of polynomials (n, *batch, A) and (n, *batch, C), Python ints."""
    pairs = math.prod(np.broadcast_shapes(f.shape[1:-1], g.shape[1:-1]))
    if are_small(f, (f.shape[-1], g.shape[-1]), pairs):
        return _by_elimination(*(np.asarray(system.decode(x), dtype=object) for x in (f, g)))[None]
    image, joined, bound = _problem(f, g, system)
    return _lift_images(image, joined, system, bound)[None]


def are_small(words: Array, lengths: tuple[int, int], pairs: int) -> bool:
    """Whether Sylvester's matrices of pairs of these lengths are eliminated more quickly without primes."""
    return bareiss.is_quicker(words, sum(lengths) - 2, 0, pairs)


def _by_elimination(f: NDArray[np.object_], g: NDArray[np.object_]) -> NDArray[np.object_]:
    """Resultants (*batch, 1) of polynomials (*batch, A) and (*batch, C), by Sylvester's matrices."""
    batch = np.broadcast_shapes(f.shape[:-1], g.shape[:-1])
    f, g = (np.broadcast_to(x, (*batch, x.shape[-1])) for x in (f, g))
    found = np.empty((*batch, 1), dtype=object)
    for index in np.ndindex(*batch):
        found[index] = _resultant(*(np.trim_zeros(x[index], "b").tolist() for x in (f, g)))
    return found


def _resultant(f: list[int], g: list[int]) -> int:
    """Resultant of two polynomials whose last coefficients are not 0."""
    if not f or not g:
        return 0
    m, n = len(f) - 1, len(g) - 1
    matrix = np.zeros((m + n, m + n), dtype=object)
    for k in range(n):
        matrix[k, k : k + m + 1] = f[::-1]
    for k in range(m):
        matrix[n + k, k : k + n + 1] = g[::-1]
    return int(bareiss.cramer(matrix)[1].item())


def _discriminants_by_elimination(f: NDArray[np.object_]) -> NDArray[np.object_]:
    """Discriminants (*batch, 1) of polynomials (*batch, A)."""
    found = np.zeros((*f.shape[:-1], 1), dtype=object)
    for index in np.ndindex(*f.shape[:-1]):
        values = np.trim_zeros(f[index], "b").tolist()
        degree = len(values) - 1
        if degree > 0:
            slope = [k * value for k, value in enumerate(values)][1:]
            sign = -1 if degree % 4 >= 2 else 1
            found[index] = sign * _resultant(values, slope) // values[-1]
    return found


def part_of_primes(f: Array, g: Array, system: RNS, group: tuple[int, int]) -> NDArray[np.object_]:
    """Part of resultants from a group of primes, (1, *batch, 2), as :func:`.part_of` gives it."""
    image, joined, bound = _problem(f, g, system)
    start, size = group
    count = min(size, count_beyond(2 * bound + 1) - start)
    if count <= 0:
        return empty_part((1, *joined.shape[1:-1], 1))
    return part_of(images(image, joined, system, start, count), primes(start, count))[None]


def integers_of(residues: list[Array], primes_of: Callable[[int, int], ModuliSet]) -> NDArray[np.object_]:
    """Convert residues (n, *shape) modulo the first primes of a kind, in order, to integers around 0.

    Many primes are taken in parts, because a conversion's tables grow with the square of their number.
    """
    words = np.concatenate(residues)
    if len(words) <= TOGETHER:
        return decode([words], primes_of(0, len(words)))
    blocks = ((start, words[start : start + TOGETHER]) for start in range(0, len(words), TOGETHER))
    parts = [part_of([block], primes_of(start, len(block))) for start, block in blocks]
    joined: NDArray[np.object_] = from_parts(join_parts(np.stack(parts)))[0]
    return joined


def _lift_images(image: Image, words: Array, system: RNS, bound: int) -> NDArray[np.object_]:
    """Lift images modulo any number of primes, as :func:`.lift`."""
    return integers_of(images(image, words, system, 0, count_beyond(2 * bound + 1)), primes)


def prime_groups(lengths: tuple[int, int], magnitude: int, pairs: int, steps: int) -> list[tuple[int, int]]:
    """Divide primes into groups of about `steps` steps, for pairs of these lengths and this magnitude."""
    m, n = (length - 1 for length in lengths)
    squares = (length * magnitude**2 for length in lengths)
    count = count_beyond(2 * sylvester_bound(m, n, *squares) + 1)
    size = min(TOGETHER, max(LEAST_GROUP, steps // max(1, pairs * m * n)))
    return [(start, min(size, count - start)) for start in range(0, count, size)]


def _problem(f: Array, g: Array, system: RNS) -> tuple[Image, Array, int]:
    """Arguments of :func:`.lift` for resultants: the images, their operands' words, and the bound."""
    degrees = _degrees(f), _degrees(g)
    m, n = map(_greatest, degrees)
    squares = ((d + 1) * magnitude_of(x, system) ** 2 for d, x in ((m, f), (n, g)))
    batch, length = np.broadcast_shapes(f.shape[1:-1], g.shape[1:-1]), f.shape[-1]
    joined = np.concatenate([np.broadcast_to(x, (len(x), *batch, x.shape[-1])) for x in (f, g)], axis=-1)

    def image(words: Array, moduli: ModuliSet) -> Array:
        formal = tuple(_for_each(found, len(moduli), batch) for found in degrees)
        return polynomials.resultants(words[..., :length], words[..., length:], moduli, formal)[..., None]

    return image, joined, sylvester_bound(m, n, *squares)


def _for_each(degrees: Array, count: int, batch: tuple[int, ...]) -> Array:
    """Broadcast degrees (*batch) over the integers to formal degrees (count, *batch) modulo primes."""
    return np.broadcast_to(degrees, (count, *batch)).copy()


def discriminants(f: Array, system: RNS) -> NDArray[np.object_]:
    """Discriminants (1, *batch, 1) of polynomials (n, *batch, A), Python ints; 0 of constants.

    For the degree m and the leading coefficient c it is (-1)^(m (m - 1) / 2) R(f, f') / c, over the integers.
    """
    if are_small(f, (f.shape[-1], f.shape[-1] - 1), math.prod(f.shape[1:-1])):
        return _discriminants_by_elimination(np.asarray(system.decode(f), dtype=object))[None]
    degrees = _degrees(f)
    lower, greatest = np.maximum(degrees, 0), _greatest(degrees)
    magnitude = magnitude_of(f, system)
    squares = (greatest + 1) * magnitude**2, max(greatest, 1) * (greatest * magnitude) ** 2
    batch = f.shape[1:-1]

    def image(words: Array, moduli: ModuliSet) -> Array:
        formal = tuple(_for_each(d.astype(np.int32), len(moduli), batch) for d in (lower, lower - 1))
        slopes = polynomials.derivatives(words, moduli)
        return polynomials.resultants(words, slopes, moduli, formal)[..., None]

    found = _lift_images(image, f, system, sylvester_bound(greatest, max(greatest - 1, 0), *squares))
    place = np.broadcast_to(lower[None, ..., None], (len(f), *batch, 1)).astype(np.int64)
    leading: Any = np.asarray(system.decode(np.take_along_axis(f, place, axis=-1)), dtype=object)
    signs = np.where(np.array(degrees.tolist()).reshape(*batch, 1) % 4 >= 2, -1, 1).astype(object)
    quotients = found * signs // np.where(leading == 0, 1, leading)
    return np.asarray(quotients, dtype=object)[None]
