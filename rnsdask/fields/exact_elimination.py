"""Linear algebra of chunks of integer matrices, exact, by elimination modulo primes. No Dask in here.

A chunk is residues (n, *batch, rows, columns) of an RNS. Each result is bounded (docs/linalg.md), computed
modulo primes with a product beyond that, and lifted (:mod:`rnsdask.rns.lift`). Large matrices on the CPU take
less time by p-adic lifting (:mod:`rnsdask.fields.p_adic`).
"""

import math
from collections.abc import Callable
from typing import Any

import gmpy2
import numpy as np
from numpy.typing import NDArray

from rnsdask.backend import Array, backend_name
from rnsdask.core.moduli import ModuliSet
from rnsdask.core.place import Place
from rnsdask.fields import elimination, p_adic
from rnsdask.fields.determinant_bounds import elements, greatest_determinant, hadamard
from rnsdask.rns.extend import base_extend
from rnsdask.rns.lift import Image, at_a_time, count_beyond, decode, lift, lift_part, primes
from rnsdask.rns.matmul import greatest_magnitude
from rnsdask.rns.system import RNS

_AS_INT = np.frompyfunc(int, 1, 1)

# Primes of a group, at least.
_LEAST_GROUP = 16

# More than a unit of the elements' scale may be as a double, and more than rounding takes off.
_LEAST_UNIT, _UPWARDS = 2.0**-900, 1 + 2.0**-50


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
    batch = words.shape[1:-2]
    magnitude = magnitude_of(words, system)
    if not lifts(words, words.shape[-1], 0, magnitude):
        return lift(elimination.determinants, words, system, determinant_bound(words, system))[None]
    found = np.empty((1, *batch, 1, 1), dtype=object)
    for index in np.ndindex(*batch):
        matrix = words[(slice(None), *index)]
        value = p_adic.determinant(matrix, system, magnitude)
        if value is None:  # most likely 0
            value = lift(elimination.determinants, matrix, system, determinant_bound(matrix, system)).item()
        found[(0, *index, 0, 0)] = value
    return found


def determinant_bound(words: Array, system: RNS) -> int:
    """No determinant is greater."""
    known = hadamard_bound(words.shape[-1], system.known_magnitude)
    return min(known, hadamard(elements(words, system)))


def lifts(words: Array, rows: int, columns: int, magnitude: int) -> bool:
    """Whether matrices of so many rows, with so many right-hand sides, are better lifted.

    `words` are an array of their processor: on a GPU images are quick.
    """
    if backend_name(words) != "cpu" or rows == 0 or columns > max(1, rows // 16):
        return False
    return p_adic.is_quicker(rows, columns, magnitude, hadamard_bound(rows, magnitude))


def ranks(words: Array, system: RNS) -> Array:
    """Ranks (1, *batch, 1, 1), int64.

    Modulo a prime a rank is at most the true one, r, and less only if the prime divides all minors of r rows:
    not all primes of a product beyond the bound of these do.
    """
    least = min(words.shape[-2:])
    # The first prime is enough but where a matrix is singular.
    found = elimination.ranks(base_extend(words, system, primes(0, 1)), primes(0, 1))[0]
    if not (found < least).any():
        return found[None]
    start, count = 1, count_beyond(hadamard_bound(least, magnitude_of(words, system)))
    while start < count and (found < least).any():
        part = primes(start, min(at_a_time(words), count - start))
        here = elimination.ranks(base_extend(words, system, part), part)
        found = np.maximum(found, here.max(axis=0))
        start += len(part)
    return found[None]


def polynomials(words: Array, system: RNS) -> NDArray[np.object_]:
    """Coefficients (1, *batch, 1, N + 1) of det(z - A), Python ints; each is a sum of principal minors."""
    return lift(elimination.characteristic_polynomials, words, system, polynomial_bound(words, system))[None]


def polynomial_bound(words: Array, system: RNS) -> int:
    """No coefficient of a characteristic polynomial is greater."""
    length, magnitude = words.shape[-1], magnitude_of(words, system)
    bound = max(math.comb(length, k) * hadamard_bound(k, magnitude) for k in range(length + 1))
    found = elements(words, system)
    one = max(float(1 / found.scale), _LEAST_UNIT)
    lengths = ((of + one) * _UPWARDS for of in (found.row_lengths(), found.column_lengths()))
    return min(bound, *(greatest_determinant(of, found.scale) for of in lengths))


PARTS: dict[str, tuple[Image, Callable[[Array, RNS], int]]] = {
    "det": (elimination.determinants, determinant_bound),
    "charpoly": (elimination.characteristic_polynomials, polynomial_bound),
}
"""Images of what groups of primes give parts of, and the bounds."""


def part_of_primes(words: Array, system: RNS, name: str, group: tuple[int, int]) -> NDArray[np.object_]:
    """What a group of primes says of the results of a chunk: :func:`.lift_part`."""
    image, bound = PARTS[name]
    return lift_part(image, words, system, bound(words, system), group)


def prime_groups(name: str, length: int, magnitude: int, matrices: int, steps: int) -> list[tuple[int, int]]:
    """Groups of primes, each of about so many steps, for some matrices of elements up to a magnitude."""
    bound = hadamard_bound(length, magnitude)
    if name == "charpoly":
        bound <<= length
    count = count_beyond(2 * bound + 1)
    size = max(_LEAST_GROUP, steps // max(1, matrices * length**3))
    return [(start, min(size, count - start)) for start in range(0, count, size)]


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
    *batch, rows, width = words.shape[1:]
    left, right = words[..., :rows], words[..., rows:]
    magnitudes = magnitude_of(left, system), magnitude_of(right, system)
    if not lifts(words, rows, width - rows, magnitudes[0]):
        return _packed(*_lifted(elimination.cramer, words, system, magnitudes, place))
    numerators = np.empty((*batch, rows, width - rows), dtype=object)
    denominators = np.empty(batch, dtype=object)
    for index in np.ndindex(*batch):
        at = (slice(None), *index)
        found = p_adic.solution(left[at], right[at], system, magnitudes)
        if found is None:  # most likely singular
            alone = words[(slice(None), *(slice(i, i + 1) for i in index))]
            both = _lifted(elimination.cramer, alone, system, magnitudes, _place_of(index, place))
            found = both[0].reshape(numerators[index].shape), both[1].item()
        numerators[index], denominators[index] = found
    return _packed(numerators, denominators)


def _place_of(index: tuple[int, ...], place: Place) -> Place:
    """Where in the array a matrix of a chunk lies."""
    starts = [start for start, _ in place.location[: len(index)]] or [0] * len(index)
    location = tuple((start + i, start + i + 1) for start, i in zip(starts, index, strict=True))
    return Place((), location, place.shape)


def _packed(numerators: Any, denominators: Any) -> NDArray[np.object_]:
    """Both in one array, in lowest terms, with positive denominators."""
    *batch, rows, columns = numerators.shape
    packed = np.zeros((math.prod(batch), rows + 1, max(columns, 1)), dtype=object)
    numbers = packed.shape[0], rows, columns
    pairs = zip(packed, numerators.reshape(numbers), denominators.reshape(-1), strict=True)
    for out, values, denominator in pairs:
        common = gmpy2.gcd(denominator, *values.reshape(-1).tolist())
        common = -common if denominator < 0 else common
        out[:rows, :columns] = _AS_INT(values if common == 1 else values // common)
        out[rows, 0] = int(denominator // common)
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
    # To check a set of thousands of moduli takes long, and those without a bad prime are known.
    known = primes(0, len(kept))
    moduli = known if known.moduli == tuple(kept) else ModuliSet(kept)
    first, second = (decode(list(parts), moduli) for parts in zip(*images, strict=True))
    return first, second
