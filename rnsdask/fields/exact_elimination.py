"""Linear algebra of chunks of integer matrices, exact, by elimination modulo primes. No Dask in here.

A chunk is residues (n, *batch, rows, columns) of an RNS. Each result is bounded (docs/linalg.md), computed
modulo primes with a product beyond that, and lifted (:mod:`rnsdask.rns.lift`).
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rnsdask.backend import Array
from rnsdask.core.moduli import ModuliSet
from rnsdask.core.place import Place
from rnsdask.fields import elimination
from rnsdask.rns.extend import base_extend
from rnsdask.rns.lift import at_a_time, count_beyond, decode, lift, primes
from rnsdask.rns.matmul import greatest_magnitude
from rnsdask.rns.system import RNS

# Primes of the first ranks.
_FIRST = 4


def magnitude_of(words: Array, system: RNS) -> int:
    """An upper bound of the magnitudes in a chunk: the array's, or one measured."""
    return min(system.known_magnitude, greatest_magnitude(words, system.with_bound(None)))


def hadamard_bound(length: int, magnitude: int, last: int | None = None) -> int:
    """No determinant of so many rows with elements up to `magnitude` is greater; of a column up to `last`.

    J. Hadamard (1893): it is at most the product of the columns' lengths, here ``magnitude sqrt(length)``.
    """
    if length == 0:
        return 1
    factor = magnitude if last is None else last
    return math.isqrt(length**length * (magnitude ** (length - 1) * factor) ** 2) + 1


def determinants(words: Array, system: RNS) -> NDArray[np.object_]:
    """Determinants (1, *batch, 1, 1), Python ints."""
    bound = hadamard_bound(words.shape[-1], magnitude_of(words, system))
    return lift(elimination.determinants, words, system, bound)[None]


def ranks(words: Array, system: RNS) -> Array:
    """Ranks (1, *batch, 1, 1), int64.

    Modulo a prime a rank is at most the true one, r, and less only if the prime divides all minors of r rows:
    not all primes of a product beyond the bound of these do.
    """
    least = min(words.shape[-2:])
    bound = hadamard_bound(least, magnitude_of(words, system))
    found = np.zeros_like(words, shape=(*words.shape[1:-2], 1, 1), dtype=np.int64, order="C")
    start, count = 0, count_beyond(bound)
    while start < count and (start == 0 or (found < least).any()):
        # The first are enough but where a matrix is singular.
        part = primes(start, min(at_a_time(words) if start else _FIRST, count - start))
        here = elimination.ranks(base_extend(words, system, part), part)
        found = np.maximum(found, here.max(axis=0))
        start += len(part)
    return found[None]


def polynomials(words: Array, system: RNS) -> NDArray[np.object_]:
    """Coefficients (1, *batch, 1, N + 1) of det(z - A), Python ints; each is a sum of principal minors."""
    length, magnitude = words.shape[-1], magnitude_of(words, system)
    bound = max(math.comb(length, k) * hadamard_bound(k, magnitude) for k in range(length + 1))
    return lift(elimination.characteristic_polynomials, words, system, bound)[None]


def packed_inverses(words: Array, system: RNS, place: Place) -> NDArray[np.object_]:
    """Inverses of square matrices, as :func:`packed_solutions` gives solutions."""
    magnitudes = magnitude_of(words, system), 1

    def image(residues: Array, moduli: ModuliSet) -> tuple[Array, Array]:
        return elimination.cramer(elimination.with_identity(residues), moduli)

    return _packed(*_lifted(image, words, system, magnitudes, place))


def packed_solutions(words: Array, system: RNS, place: Place) -> NDArray[np.object_]:
    """Solutions of [A b] as numerators and a denominator, in lowest terms: (1, *batch, N + 1, max(K, 1)).

    The last row begins with the denominators.

    Raises
    ------
    numpy.linalg.LinAlgError
        If a matrix is singular, naming its index in the array.
    """
    rows = words.shape[-2]
    magnitudes = magnitude_of(words[..., :rows], system), magnitude_of(words[..., rows:], system)
    return _packed(*_lifted(elimination.cramer, words, system, magnitudes, place))


def _packed(numerators: Any, denominators: Any) -> NDArray[np.object_]:
    """Both in one array, in lowest terms, with positive denominators."""
    *batch, rows, columns = numerators.shape
    packed = np.zeros((math.prod(batch), rows + 1, max(columns, 1)), dtype=object)
    numbers = packed.shape[0], rows, columns
    pairs = zip(packed, numerators.reshape(numbers), denominators.reshape(-1), strict=True)
    for out, values, denominator in pairs:
        common = math.gcd(denominator, *values.reshape(-1).tolist())
        common = -common if denominator < 0 else common
        out[:rows, :columns] = values // common
        out[rows, 0] = denominator // common
    return packed.reshape(1, *batch, *packed.shape[1:])


def _lifted(
    image: Callable[[Array, ModuliSet], tuple[Array, Array]],
    words: Array,
    system: RNS,
    magnitudes: tuple[int, int],
    place: Place,
) -> tuple[Any, Any]:
    """Numerators and determinants, lifted from primes modulo which no matrix is singular.

    A determinant that is a multiple of more primes than its bound has room for is 0.
    """
    rows, batch = words.shape[-2], words.shape[1:-2]
    left, right = magnitudes
    bound = hadamard_bound(rows, left)
    greatest = max(bound, hadamard_bound(rows, left, right))
    start, product, dividing = 0, 1, np.ones(batch, dtype=object)
    kept, images = [], []
    while product <= 2 * greatest + 1:
        part = primes(start, min(at_a_time(words), count_beyond((2 * greatest + 1) // product, start)))
        start += len(part)
        numerators, determinants = image(base_extend(words, system, part), part)
        regular = (determinants != 0).reshape(len(part), -1)
        good = regular.all(axis=1).tolist()
        for p, is_good, of_matrices in zip(part, good, regular, strict=True):
            if not is_good:
                bad = np.asarray((~of_matrices).tolist(), dtype=np.bool_).reshape(batch)
                dividing = np.where(bad, dividing * p, dividing)
        singular = np.asarray(dividing > bound, dtype=np.bool_)
        if singular.any():
            which = elimination.matrix_at(int(singular.argmax()), batch, place)
            raise np.linalg.LinAlgError(f"{which} is singular")
        places = [k for k, is_good in enumerate(good) if is_good]
        if places:
            images.append((numerators[places], determinants[places]))
        kept += [part[k] for k in places]
        product *= math.prod(kept[len(kept) - len(places) :])
    first, second = (decode(list(parts), ModuliSet(kept)) for parts in zip(*images, strict=True))
    return first, second
