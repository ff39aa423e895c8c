"""Determinants and characteristic polynomials of chunks of integer matrices, exact. No Dask in here.

A chunk is residues (n, *batch, rows, columns) of an RNS. Each result is bounded (docs/exact-linalg.md),
computed modulo primes with a product beyond that, and lifted (:mod:`rnsdask.rns.lift`). P-adic lifting is
quicker for large matrices on the CPU (:mod:`rnsdask.fields.p_adic`), fraction-free elimination for a few
small ones (:mod:`rnsdask.fields.bareiss`).
"""

import functools
import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from rnsdask.backend import Array, backend_name
from rnsdask.constants.factors import CACHED_SETS
from rnsdask.core.place import Place
from rnsdask.fields import bareiss, elimination, p_adic
from rnsdask.fields.determinant_bounds import (
    FEW_ROWS,
    elements,
    greatest_determinant,
    hadamard,
    hadamard_bound,
    magnitude_of,
)
from rnsdask.fields.exact_solutions import Equations, has_null_vectors
from rnsdask.rns.lift import Image, count_beyond, empty_part, from_parts, images, lift, part_of, primes
from rnsdask.rns.system import RNS

_AS_INT = np.frompyfunc(int, 1, 1)

# Fewest primes of a group.
_LEAST_GROUP = 16

# Seconds, for small matrices: images of a number, for each bit of a bound; a bound by the lengths of rows and
# columns, for each number and for the call. Such a bound mostly saves less than a quarter of the images, so
# it is computed only where these take _LEAST_GAIN times as long.
_BIT_SECONDS, _ELEMENT_SECONDS, _CALL_SECONDS, _LEAST_GAIN = 7e-11, 5e-8, 5e-5, 4

# Least value of the elements' unit as a double, and a factor that outweighs rounding.
_LEAST_UNIT, _UPWARDS = 2.0**-900, 1 + 2.0**-50


def determinants(words: Array, system: RNS) -> NDArray[np.object_]:
    """Determinants (1, *batch, 1, 1), Python ints."""
    rows, batch = words.shape[-1], words.shape[1:-2]
    if bareiss.is_quicker(words, rows, 0):
        found = bareiss.cramer(np.asarray(system.decode(words), dtype=object))[1]
        return np.asarray(_AS_INT(found), dtype=object)[None]
    known = system.known_magnitude
    if not p_adic.is_quicker(words, rows, 0, known) or not p_adic.is_quicker(
        words, rows, 0, magnitude := magnitude_of(words, system)
    ):
        return lift(elimination.determinants, words, system, determinant_bound(words, system))[None]
    found = np.empty((1, *batch, 1, 1), dtype=object)
    for index in np.ndindex(*batch):
        matrix = words[(slice(None), *index)]
        value = p_adic.determinant(matrix, system, magnitude)
        if value is None:
            is_singular = has_null_vectors(matrix, system, only_one=True)
            value = 0 if is_singular else _by_images(matrix, system)
        found[(0, *index, 0, 0)] = value
    return found


def _by_images(matrix: Array, system: RNS) -> int:
    """The determinant of one matrix (n, N, N)."""
    found: int = lift(elimination.determinants, matrix, system, determinant_bound(matrix, system)).item()
    return found


def determinant_bound(words: Array, system: RNS) -> int:
    """Bound of the determinants, measured where that takes less time than it may save."""
    rows = words.shape[-1]
    if not _is_small(words):
        return min(hadamard_bound(rows, system.known_magnitude), hadamard(elements(words, system)))
    bound = hadamard_bound(rows, magnitude_of(words, system, rows))
    return min(bound, hadamard(elements(words, system))) if _is_worth_measuring(words, bound) else bound


def _is_small(words: Array) -> bool:
    """Whether matrices take so little time that bounds from all elements may take as long."""
    return words.shape[-1] <= FEW_ROWS and backend_name(words) == "cpu"


def _is_worth_measuring(words: Array, bound: int) -> bool:
    """Whether images of small matrices take longer than to measure rows and columns."""
    numbers = math.prod(words.shape[1:])
    seconds = _CALL_SECONDS + numbers * _ELEMENT_SECONDS
    return bool(bound.bit_length() * numbers * _BIT_SECONDS >= _LEAST_GAIN * seconds)


def polynomials(words: Array, system: RNS) -> NDArray[np.object_]:
    """Coefficients (1, *batch, 1, N + 1) of det(z - A), Python ints; each is a sum of principal minors."""
    return lift(elimination.characteristic_polynomials, words, system, polynomial_bound(words, system))[None]


def polynomial_bound(words: Array, system: RNS) -> int:
    """Bound of the coefficients of characteristic polynomials, measured as :func:`determinant_bound` is."""
    length = words.shape[-1]
    is_small = _is_small(words)
    bound = _greatest_coefficient(length, magnitude_of(words, system, length if is_small else None))
    if is_small and not _is_worth_measuring(words, bound):
        return bound
    found = elements(words, system)
    one = max(float(1 / found.scale), _LEAST_UNIT)
    lengths = ((of + one) * _UPWARDS for of in (found.row_lengths(), found.column_lengths()))
    return min(bound, *(greatest_determinant(of, found.scale) for of in lengths))


@functools.lru_cache(CACHED_SETS)
def _greatest_coefficient(length: int, magnitude: int) -> int:
    """Bound of sums of principal minors, for matrices of elements up to a magnitude."""
    return max(math.comb(length, k) * hadamard_bound(k, magnitude) for k in range(length + 1))


# ---- groups of primes -------------------------------------------------------------------------------------

_IMAGES: dict[str, tuple[Image, Callable[[Array, RNS], int]]] = {
    "det": (elimination.determinants, determinant_bound),
    "charpoly": (elimination.characteristic_polynomials, polynomial_bound),
}


def part_of_primes(words: Array, system: RNS, name_of: str, group: tuple[int, int]) -> NDArray[np.object_]:
    """Part of a chunk's results from a group of primes: (1, *batch, ...), as :func:`.part_of` gives it.

    `name_of` names the function of :mod:`rnsdask.linalg`; for `solve`, chunks are [A b]. A group is how many
    of the primes that the bound needs are skipped, and how many are taken then.
    """
    start, count = group
    if name_of in ("solve", "inv"):
        equations = Equations(words, system, name_of == "inv")
        return equations.part(start, min(count, equations.prime_count - start))[None]
    image, bound = _IMAGES[name_of]
    count = min(count, count_beyond(2 * bound(words, system) + 1) - start)
    if count <= 0:
        return empty_part((1, *words.shape[1:-2], 1, 1 if name_of == "det" else words.shape[-1] + 1))
    return part_of(images(image, words, system, start, count), primes(start, count))[None]


def results_of_parts(
    part: NDArray[np.object_], words: Array, *, system: RNS, name_of: str, place: Place
) -> NDArray[np.object_]:
    """Results of a chunk from the part (1, *batch, ...) that joins the parts of all groups."""
    if name_of in ("solve", "inv"):
        return Equations(words, system, name_of == "inv").finished(part, place)
    return from_parts(part)


def known_bound(name: str, rows: int, magnitude: int) -> int:
    """Bound of results for matrices of `rows` rows, with elements up to a magnitude."""
    return hadamard_bound(rows, magnitude) << (rows if name == "charpoly" else 0)


def prime_groups(
    name: str, rows: int, columns: int, magnitude: int, matrices: int, steps: int
) -> list[tuple[int, int]]:
    """Divide primes into groups of about `steps` steps each, for matrices of elements up to a magnitude.

    For `solve` and `inv`, `columns` counts right-hand sides.
    """
    count = count_beyond(2 * known_bound(name, rows, magnitude) + 1)
    size = max(_LEAST_GROUP, steps // max(1, matrices * rows**2 * (rows + columns)))
    return [(start, min(size, count - start)) for start in range(0, count, size)]
