"""Solutions and inverses of chunks of integer matrices modulo any integer. No Dask in here."""

import math
from collections.abc import Sequence

import gmpy2
import numpy as np
from numpy.typing import NDArray

from rnsdask.backend import Array, to_backend
from rnsdask.core.errors import abbreviate
from rnsdask.core.moduli import unchecked_set
from rnsdask.core.place import Place
from rnsdask.core.primes import is_prime
from rnsdask.fields import elimination
from rnsdask.rns.extend import base_extend
from rnsdask.rns.lift import at_a_time, join_parts, part_of
from rnsdask.rns.system import RNS

Ints = NDArray[np.object_]

_AS_MPZ = np.frompyfunc(gmpy2.mpz, 1, 1)
_AS_INT = np.frompyfunc(int, 1, 1)
_GCD = np.frompyfunc(gmpy2.gcd, 2, 1)


def solutions(
    words: Array, system: RNS, factors: Sequence[int], place: Place, *, of_identity: bool = False
) -> Ints:
    """Solutions (1, *batch, N, K) of chunks [A b] modulo the product of coprime factors, from 0 on.

    With `of_identity` the chunks are A alone, and b is 1. Kernels eliminate modulo primes of a word, Python
    modulo other factors; the Chinese remainder theorem joins the results. LinAlgError if a determinant has a
    common factor with the modulus; it names both and the matrix' index.
    """
    *batch, rows, width = words.shape[1:]
    columns = rows if of_identity else width - rows
    primes = [p for p in factors if p < 2**32 and is_prime(p)]
    others = [m for m in factors if m not in set(primes)]
    parts, common = [], np.ones(batch, dtype=object)
    step = at_a_time(words)
    for start in range(0, len(primes), step):
        few = unchecked_set(primes[start : start + step])
        image = base_extend(words, system, few)
        image = elimination.with_identity(image) if of_identity else image
        found, determinants = elimination.solutions_and_determinants(image, few)
        parts.append(part_of([found], few))
        for prime, zero in zip(few, to_backend(determinants[..., 0, 0] == 0, "cpu"), strict=True):
            common = np.where(zero, common * prime, common)
    values = _AS_MPZ(system.decode(words)) if others else np.empty(0, dtype=object)
    if of_identity and others:
        ones = np.broadcast_to(np.eye(rows, dtype=object), values.shape)
        values = np.concatenate([values, ones], axis=-1)
    for modulus in others:
        part = np.zeros((*batch, rows, columns + 1), dtype=object)
        part[..., -1] = modulus
        for index in np.ndindex(*batch):
            part[(*index, slice(None), slice(-1))], divisor = _solve_one(values[index], gmpy2.mpz(modulus))
            common[index] *= int(divisor)
        parts.append(part)
    _check_invertible(common, math.prod(factors), place)
    values = join_parts(np.stack(parts))[..., :-1] % math.prod(factors)
    return np.asarray(_AS_INT(values), dtype=object)


def _solve_one(matrix: Ints, modulus: gmpy2.mpz) -> tuple[Ints, gmpy2.mpz]:
    """Solution (N, K) of one [A b], and the greatest common divisor of A's determinant and the modulus.

    Unless that is 1, the solution is undefined. A column without an invertible element gets one, if any
    combination of its elements is invertible, by row operations of determinant 1 that follow Euclid's
    algorithm.
    """
    length = len(matrix)
    rows, determinant = matrix % modulus, gmpy2.mpz(1)
    for k in range(length):
        units = np.flatnonzero(_GCD(rows[k:, k], modulus) == 1)
        if len(units):
            rows[[k, k + units[0]]] = rows[[k + units[0], k]]
        else:
            _join_rows(rows, k, modulus)
        pivot = rows[k, k]
        determinant = determinant * pivot % modulus
        if gmpy2.gcd(pivot, modulus) == 1:
            rows[k, k:] = rows[k, k:] * gmpy2.invert(pivot, modulus) % modulus
            rows[k + 1 :, k:] = (rows[k + 1 :, k:] - np.outer(rows[k + 1 :, k], rows[k, k:])) % modulus
    for k in range(length - 1, 0, -1):
        rows[:k, length:] = (rows[:k, length:] - np.outer(rows[:k, k], rows[k, length:])) % modulus
    return rows[:, length:], gmpy2.gcd(determinant, modulus)


def _join_rows(rows: Ints, k: int, modulus: gmpy2.mpz) -> None:
    """Bring a column's greatest common divisor to row k, and 0 below, by row operations of determinant 1."""
    for i in range(k + 1, len(rows)):
        if rows[i, k]:
            a, b = rows[k, k], rows[i, k]
            divisor, s, t = gmpy2.gcdext(a, b)
            upper, lower = rows[k].copy(), rows[i].copy()
            rows[k] = (s * upper + t * lower) % modulus
            rows[i] = (a // divisor * lower - b // divisor * upper) % modulus


def _check_invertible(common: Ints, modulus: int, place: Place) -> None:
    """Raise LinAlgError unless all divisors (*batch) that determinants share with the modulus are 1."""
    for i, divisor in enumerate(common.reshape(-1).tolist()):
        if divisor != 1:
            which = elimination.matrix_at(i, common.shape, place)
            raise np.linalg.LinAlgError(
                f"{which} has no inverse modulo {abbreviate(modulus)}: the greatest common divisor of its "
                f"determinant and the modulus is {abbreviate(divisor)}"
            )
