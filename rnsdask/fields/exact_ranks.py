"""Ranks of integer matrices, and singular ones, proved (docs/exact-linalg.md). No Dask in here.

Modulo a prime a rank is at most the true one. That this is no greater is proved by vectors that the matrix
takes to 0, found p-adically, or by enough primes modulo which it is no greater.
"""

import numpy as np

from rnsdask.backend import Array
from rnsdask.fields import elimination, p_adic, p_adic_plan
from rnsdask.fields.determinant_bounds import hadamard_bound, magnitude_of
from rnsdask.rns.extend import base_extend
from rnsdask.rns.lift import at_a_time, count_beyond, modulo_primes, primes
from rnsdask.rns.system import RNS


def ranks(words: Array, system: RNS) -> Array:
    """Ranks (1, *batch, 1, 1), int64, of matrices (n, *batch, rows, columns)."""
    first, least = primes(0, 1), min(words.shape[-2:])
    # The first prime is enough but where a matrix is singular.
    found = elimination.ranks(modulo_primes(words, system, first), first)
    if not (found < least).any():
        return found
    stack = words.reshape(len(words), -1, *words.shape[-2:])
    flat = found.reshape(-1)
    (deficient,) = (flat < least).nonzero()
    places = [b for b in deficient.tolist() if not has_null_vectors(stack[:, b], system)]
    if places:
        flat[places] = _by_images(stack[:, places], system, flat[places])
    return found


def _by_images(words: Array, system: RNS, found: Array) -> Array:
    """Ranks (B,) of matrices (n, B, rows, columns), of which those modulo the first prime are known.

    All minors of one row more than a rank are 0 if they are modulo primes with a product beyond their bound.
    """
    least, magnitude = min(words.shape[-2:]), magnitude_of(words, system)
    start, product = 1, primes(0, 1).product
    while (found < least).any():
        bound = hadamard_bound(int(found[found < least].max()) + 1, magnitude)
        if bound < product:
            break
        part = primes(start, min(at_a_time(words), count_beyond(bound // product, start)))
        here = elimination.ranks(base_extend(words, system, part), part)
        found = np.maximum(found, here[..., 0, 0].max(axis=0))
        start, product = start + len(part), product * part.product
    return found


def has_null_vectors(matrix: Array, system: RNS, *, only_one: bool = False) -> bool:
    """Whether the rank modulo the first prime is proved to be that of a matrix (n, rows, columns).

    Columns that are no pivots modulo the prime are sums of multiples of the others: solutions of the pivots'
    rows are found p-adically, and checked in all rows. Not where images modulo primes are quicker.

    Parameters
    ----------
    only_one : bool
        Find no more than one such column, which proves that a square matrix is singular.
    """
    if matrix.shape[1] < matrix.shape[2]:
        matrix = matrix.swapaxes(1, 2)  # has fewer columns
    if not p_adic_plan.is_quicker(matrix, matrix.shape[2], 1, system.known_magnitude):
        return False
    first = primes(0, 1)
    rows, columns = elimination.pivots(base_extend(matrix, system, first), first)
    others = sorted(set(range(matrix.shape[2])) - set(columns))[: 1 if only_one else None]
    magnitude = magnitude_of(matrix, system)
    if not others or not p_adic_plan.is_quicker(matrix, len(rows), len(others), magnitude):
        return False
    of_pivots = matrix[:, rows]
    found = p_adic.solution(of_pivots[:, :, columns], of_pivots[:, :, others], system, (magnitude,) * 2)
    if found is None:
        return False
    numerators, denominator = found
    rest = sorted(set(range(matrix.shape[1])) - set(rows))
    values = np.asarray(system.decode(matrix[:, rest]), dtype=object)
    return bool((values[:, columns] @ numerators == denominator * values[:, others]).all())
