"""Ranks, solutions and inverses of chunks of integer matrices, exact (docs/exact-linalg.md). No Dask here."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rnsdask.backend import Array, backend_name
from rnsdask.core.moduli import ModuliSet, unchecked_set
from rnsdask.core.place import Place
from rnsdask.fields import bareiss, elimination, p_adic
from rnsdask.fields.determinant_bounds import hadamard_bound, magnitude_of
from rnsdask.rns.extend import base_extend
from rnsdask.rns.lift import (
    at_a_time,
    count_beyond,
    decode,
    empty_part,
    from_parts,
    join_parts,
    lift,
    modulo_primes,
    part_of,
    parts_of,
    primes,
)
from rnsdask.rns.system import RNS

# Ranks of integer matrices, and singular ones, proved (docs/exact-linalg.md).
# A rank modulo a prime is at most the true one. Null vectors, found p-adically, prove that the two are equal;
# or enough primes whose ranks are no greater.


def ranks(words: Array, system: RNS) -> Array:
    """Ranks (1, *batch, 1, 1), int64, of matrices (n, *batch, rows, columns)."""
    first, least = primes(0, 1), min(words.shape[-2:])
    # The first prime is enough unless a matrix is singular.
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
    """Ranks (B,) of matrices (n, B, rows, columns), given the ranks modulo the first prime.

    All minors with one row more than a rank are 0 if they are 0 modulo primes with a product beyond their
    bound.
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
    """Try to prove that the rank modulo the first prime is the rank of a matrix (n, rows, columns).

    The columns without pivots modulo the prime are linear combinations of the others: these are found
    p-adically in the pivots' rows, and checked in all rows. False where images modulo primes are quicker.
    With `only_one` a single such column is checked, which proves that a square matrix is singular.
    """
    if matrix.shape[1] < matrix.shape[2]:
        matrix = matrix.swapaxes(1, 2)  # has fewer columns
    if not p_adic.is_quicker(matrix, matrix.shape[2], 1, system.known_magnitude):
        return False
    first = primes(0, 1)
    rows, columns = elimination.pivots(base_extend(matrix, system, first), first)
    others = sorted(set(range(matrix.shape[2])) - set(columns))[: 1 if only_one else None]
    magnitude = magnitude_of(matrix, system)
    if not others or not p_adic.is_quicker(matrix, len(rows), len(others), magnitude):
        return False
    of_pivots = matrix[:, rows]
    found = p_adic.solution(of_pivots[:, :, columns], of_pivots[:, :, others], system, (magnitude,) * 2)
    if found is None:
        return False
    numerators, denominator = found
    rest = sorted(set(range(matrix.shape[1])) - set(rows))
    values = np.asarray(system.decode(matrix[:, rest]), dtype=object)
    return bool((values[:, columns] @ numerators == denominator * values[:, others]).all())


# Solutions and inverses of chunks of integer matrices, exact (docs/exact-linalg.md).
# By Cramer's rule, numerators and determinants are integers. They are computed modulo primes, in groups of
# primes where that takes long; or p-adically; or without fractions where there is little to do.

_AS_INT = np.frompyfunc(int, 1, 1)

# Most residues of matrices on a CPU for which a few primes are tried first, and how many primes.
_MUCH, _FEW_PRIMES = 2**17, 16


def solutions(words: Array, system: RNS, place: Place, *, of_identity: bool = False) -> NDArray[np.object_]:
    """Solve [A b] by numerators and a denominator in lowest terms: (1, *batch, N + 1, max(K, 1)).

    The last row begins with the denominators. With `of_identity` the chunks are A alone, and b is 1.
    LinAlgError if a matrix is singular, naming its index in the array.
    """
    equations = Equations(words, system, of_identity)
    if bareiss.is_quicker(words, equations.rows, equations.columns):
        numerators, determinants = bareiss.cramer(equations.integers())
        _check_regular(determinants, place)
        return _pack(numerators, determinants)
    if not of_identity:
        lifted = _solve_by_lifting(equations, place) if _is_lifted(equations) else _short(equations)
        if lifted is not None:
            return lifted
    found = equations.without_bad_primes()
    if found is not None:
        return _pack(*found)
    _check_regular(equations.determinants(), place)
    return equations.finished(equations.part(0, equations.prime_count)[None], place)


@dataclass(frozen=True)
class Equations:
    """Chunks [A b] of integers (n, *batch, N, N + K); or A alone, where b is 1.

    A part of their solutions is (*batch, N + 1, max(K, 1) + 1): numerators, and in the last row the
    determinants (:func:`.part_of`).
    """

    words: Array
    system: RNS
    of_identity: bool = False

    @property
    def rows(self) -> int:
        """N, the number of rows of A."""
        return int(self.words.shape[-2])

    @property
    def columns(self) -> int:
        """K, the number of right-hand sides."""
        return self.rows if self.of_identity else int(self.words.shape[-1]) - self.rows

    def integers(self) -> NDArray[np.object_]:
        """[A b] as Python ints."""
        found: Any = self.system.decode(self.words)
        if not self.of_identity:
            return np.asarray(found, dtype=object)
        ones = np.broadcast_to(np.eye(self.rows, dtype=object), found.shape)
        return np.concatenate([found, ones], axis=-1)

    @cached_property
    def magnitudes(self) -> tuple[int, int]:
        """Bounds of the elements of A and of b."""
        left = magnitude_of(self.words[..., : self.rows], self.system, self.rows)
        if self.of_identity:
            return left, 1
        return left, magnitude_of(self.words[..., self.rows :], self.system, self.rows)

    @cached_property
    def bounds(self) -> tuple[int, int]:
        """Bound of the determinants, and of numerators and determinants."""
        left, right = self.magnitudes
        bound = hadamard_bound(self.rows, left)
        return bound, max(bound, hadamard_bound(self.rows, left, right))

    @property
    def prime_count(self) -> int:
        """Number of primes that suffice unless one divides a determinant."""
        return count_beyond(2 * self.bounds[1] + 1)

    def images(self, moduli: ModuliSet) -> tuple[Array, Array]:
        """Numerators and determinants modulo primes."""
        words = modulo_primes(self.words, self.system, moduli)
        return elimination.cramer(elimination.with_identity(words) if self.of_identity else words, moduli)

    def determinants(self) -> NDArray[np.object_]:
        """Determinants (*batch, 1, 1), whose images take less time than images of numerators."""
        left = self.words[..., : self.rows]
        return lift(elimination.determinants, left, self.system, self.bounds[0])

    def without_bad_primes(self) -> tuple[NDArray[np.object_], NDArray[np.object_]] | None:
        """Numerators and determinants, unless one of the first primes divides a determinant."""
        if self.columns == 0 or 0 in self.words.shape:
            return None
        count, parts = self.prime_count, []
        # Singular matrices are singular modulo the first primes.
        is_long = backend_name(self.words) == "cpu" and count * self.words[0].size >= _MUCH
        first = min(count, _FEW_PRIMES) if is_long else 0
        probe = [(0, first)] if first else []
        for start, size in (*probe, *parts_of(self.words, first, count - first)):
            parts.append(self.images(primes(start, size)))
            if not parts[-1][1].all():
                return None
        every = primes(0, count)
        if len(parts) > 1 or parts[0][0].size >= _MUCH:
            return decode([above for above, _ in parts], every), decode([below for _, below in parts], every)
        # For few numbers, the calls take most of the time.
        shape = parts[0][0].shape[1:]
        found = decode([np.concatenate([x.reshape(count, -1) for x in parts[0]], axis=1)], every)
        size = math.prod(shape)
        return found[:size].reshape(shape), found[size:].reshape(*shape[:-2], 1, 1)

    def part(self, start: int, count: int) -> NDArray[np.object_]:
        """Part from `count` primes after the first `start`.

        A prime that divides a determinant of the chunk contributes nothing to the numerators.
        """
        if count <= 0:
            return empty_part((*self.words.shape[1:-2], self.rows + 1, max(self.columns, 1)))
        kept, numerators, determinants = [], [], []
        for first, size in parts_of(self.words, start, count):
            moduli = primes(first, size)
            above, below = self.images(moduli)
            good = (below != 0).reshape(len(moduli), -1).all(axis=1).tolist()
            places = [i for i, is_good in enumerate(good) if is_good]
            kept += [moduli[i] for i in places]
            numerators.append(above[places] if len(places) < len(good) else above)
            determinants.append(below)
        every = primes(start, count)
        # A new set of thousands of moduli takes long to check; the set without bad primes is cached.
        return self._part(numerators, every if len(kept) == count else kept, part_of(determinants, every))

    def _part(
        self, numerators: list[Array], moduli: ModuliSet | list[int], below: NDArray[np.object_]
    ) -> NDArray[np.object_]:
        """Join numerators modulo some primes and the part (*batch, 1, 2) of the determinants to one part."""
        batch, width = self.words.shape[1:-2], max(self.columns, 1)
        if not self.columns:
            above = empty_part((*batch, self.rows, width))
            above[..., -1:] = below[..., -1:]  # without numerators, none is missing
        elif moduli:
            found = moduli if isinstance(moduli, ModuliSet) else unchecked_set(moduli)
            above = part_of(numerators, found)
        else:
            above = empty_part((*batch, self.rows, width))
        zeros = np.zeros((*batch, 1, width - 1), dtype=object)
        last = np.concatenate([below[..., :1], zeros, below[..., 1:]], axis=-1)
        return np.concatenate([above, last], axis=-2)

    def finished(self, part: NDArray[np.object_], place: Place) -> NDArray[np.object_]:
        """Solutions, as from :func:`solutions`, of the part (1, ...) that joins all parts.

        Primes that divide a determinant are replaced by others; the determinant is 0 if primes with a product
        beyond its bound divide it.
        """
        start, (bound, greatest) = self.prime_count, self.bounds
        while True:
            moduli, determinants = part[..., -1], from_parts(part[0, ..., -1:, :])[..., :1]
            if (moduli[..., -1] > bound).all():
                _check_regular(determinants, place)
            least = min(moduli.reshape(-1).tolist(), default=None)
            if least is None or least > 2 * greatest + 1:
                return _pack(from_parts(part[0, ..., :-1, :])[..., : self.columns], determinants)
            count = count_beyond((2 * greatest + 1) // least, start)
            part = join_parts(np.concatenate([part, self.part(start, count)[None]]))
            start += count


def _is_lifted(equations: Equations) -> bool:
    """Whether solutions are to be lifted p-adically."""
    words, rows, columns = equations.words, equations.rows, equations.columns
    # Magnitudes are measured unless the array's own show that images are quicker.
    known = equations.system.known_magnitude
    return p_adic.is_quicker(words, rows, columns, known) and p_adic.is_quicker(
        words, rows, columns, equations.magnitudes[0]
    )


def _short(equations: Equations) -> NDArray[np.object_] | None:
    """Solutions of [A b] if all are short and a trial takes little time; else None."""
    words, system, rows = equations.words, equations.system, equations.rows
    known = system.known_magnitude
    if not p_adic.may_be_short(words, rows, equations.columns, (known, known)):
        return None
    packed = np.empty((1, *words.shape[1:-2], rows + 1, max(equations.columns, 1)), dtype=object)
    for index in np.ndindex(*words.shape[1:-2]):
        matrix = words[(slice(None), *index)]
        found = p_adic.short_solution(matrix[..., :rows], matrix[..., rows:], system, equations.magnitudes)
        if found is None:
            return None
        packed[(0, *index)] = _pack(found[0], np.array([[found[1]]], dtype=object))[0]
    return packed


def _solve_by_lifting(equations: Equations, place: Place) -> NDArray[np.object_]:
    """Solve each [A b] by p-adic lifting."""
    words, system, rows = equations.words, equations.system, equations.rows
    *batch, _, _ = words.shape[1:]
    packed = np.empty((1, *batch, rows + 1, max(equations.columns, 1)), dtype=object)
    for index in np.ndindex(*batch):
        matrix = words[(slice(None), *index)]
        found = p_adic.solution(matrix[..., :rows], matrix[..., rows:], system, equations.magnitudes)
        if found is not None:
            packed[(0, *index)] = _pack(found[0], np.array([[found[1]]], dtype=object))[0]
            continue
        here = _place_of(index, place)
        if has_null_vectors(matrix[..., :rows], system, only_one=True):
            _check_regular(np.zeros((*(1,) * len(batch), 1, 1), dtype=object), here)
        alone = Equations(words[(slice(None), *(slice(i, i + 1) for i in index))], system)
        packed[(0, *index)] = alone.finished(alone.part(0, alone.prime_count)[None], here).reshape(
            packed.shape[-2:]
        )
    return packed


def _place_of(index: tuple[int, ...], place: Place) -> Place:
    """Place in the array of the matrix at an index of a chunk."""
    starts = [start for start, _ in place.location[: len(index)]] or [0] * len(index)
    location = tuple((start + i, start + i + 1) for start, i in zip(starts, index, strict=True))
    return Place((), location, place.shape)


def _check_regular(determinants: NDArray[np.object_], place: Place) -> None:
    """Raise LinAlgError if one of the determinants (*batch, 1, 1) is 0; it names the first."""
    batch = determinants.shape[:-2]
    for i, determinant in enumerate(determinants.reshape(-1).tolist()):
        if determinant == 0:
            raise np.linalg.LinAlgError(f"{elimination.matrix_at(i, batch, place)} is singular")


def _pack(numerators: Any, determinants: Any) -> NDArray[np.object_]:
    """Reduce numerators (*batch, N, K) and determinants (*batch, 1, 1) to lowest terms, and join them."""
    *batch, rows, columns = numerators.shape
    flat = numerators.reshape(math.prod(batch), rows * columns).tolist()
    for i, below in enumerate(determinants.reshape(-1).tolist()):
        common = math.gcd(below, *flat[i])
        if below < 0:
            common = -common
        if common != 1:
            flat[i] = [value // common for value in flat[i]]
        flat[i].append(below // common)
    numbers = np.array(flat, dtype=object).reshape(len(flat), rows * columns + 1)
    values = np.asarray(_AS_INT(numbers), dtype=object)
    packed = np.zeros((len(flat), rows + 1, max(columns, 1)), dtype=object)
    packed[:, :rows, :columns] = values[:, :-1].reshape(len(flat), rows, columns)
    packed[:, rows, 0] = values[:, -1]
    return packed.reshape(1, *batch, *packed.shape[1:])
