"""The resultant of two integer polynomials in x and y with respect to y, exact. No Dask in here.

Modulo primes it is evaluated at enough points x, interpolated, and lifted; docs/polynomials.md proves how
many points and primes are enough. Sylvester's matrix has the same formal degrees everywhere, so that a
leading coefficient that is 0 at a point or modulo a prime does no harm.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from rnsdask.backend import Array
from rnsdask.core.moduli import ModuliSet
from rnsdask.fields import polynomials
from rnsdask.fields.exact_polynomials import sylvester_bound
from rnsdask.fields.geometric_points import GeometricPoints, count_beyond, primes
from rnsdask.rns.extend import base_extend
from rnsdask.rns.lift import decode
from rnsdask.rns.system import RNS

# Words of values of coefficients that are computed together: on a CPU they stay in its cache, or nearly.
_CPU_WORDS = 2**21
_GPU_WORDS = 2**27

RootDegree = tuple[int, Fraction | None]
"""How many roots y have a degree in x, or are 0."""


@dataclass(frozen=True, eq=False)
class Task:
    """What the resultant of two polynomials is computed from.

    Attributes
    ----------
    f, g : arrays of uint32, shapes (n, m + 1, A) and (n, k + 1, C)
        Residues of the coefficients, of degrees m and k in y.
    system : RNS
        That of the residues.
    degree : int
        No degree of the resultant in x is greater; -1 if it is known to be 0.
    bound : int
        No coefficient of it is greater in magnitude.
    """

    f: Array
    g: Array
    system: RNS
    degree: int
    bound: int

    @property
    def prime_count(self) -> int:
        """How many primes are enough."""
        return count_beyond(2 * self.bound + 1) if self.degree >= 0 else 0

    def parts(self, start: int, stop: int) -> list[ModuliSet]:
        """The primes from number `start` to `stop`, in parts that are computed with together."""
        words = _CPU_WORDS if isinstance(self.f, np.ndarray) else _GPU_WORDS
        values = (self.f.shape[1] + self.g.shape[1]) * (self.degree + 1)
        count = max(0, stop - start)
        step = -(-count // max(1, -(-count * values // words)))  # parts of about the same size
        return [primes(k, min(step, stop - k)) for k in range(start, stop, step or 1)]


def task_of(f: Array, g: Array, system: RNS) -> Task:
    """The task of one pair of polynomials (n, M, A) and (n, K, C), residues of a system."""
    values = [_coefficients(x, system) for x in (f, g)]
    rows = [[_degree(row) for row in coefficients] for coefficients in values]
    m, n = (_degree([d + 1 for d in degrees]) for degrees in rows)
    if min(m, n) < 0:
        return Task(f, g, system, -1, 0)
    squares = (sum(sum(map(abs, row)) ** 2 for row in coefficients) for coefficients in values)
    degree = degree_bound(rows[0][: m + 1], rows[1][: n + 1])
    widths = (max(degrees) + 1 for degrees in rows)
    f, g = (x[:, : d + 1, :width] for x, d, width in zip((f, g), (m, n), widths, strict=True))
    return Task(f, g, system, degree, sylvester_bound(m, n, *squares))


def known_bound(f: Sequence[int], g: Sequence[int], magnitude: int) -> int:
    """The greatest bound of any task of arrays of two shapes, with coefficients up to a magnitude."""
    (m, width), (n, other) = f, g
    squares = ((rows * (columns * magnitude) ** 2) for rows, columns in ((m, width), (n, other)))
    return sylvester_bound(m - 1, n - 1, *squares)


def _coefficients(words: Array, system: RNS) -> list[list[int]]:
    rows: list[list[int]] = np.asarray(system.decode(words), dtype=object).tolist()
    return rows


def _degree(coefficients: Sequence[int]) -> int:
    """The last place where there is no 0, or -1."""
    return next((k for k in range(len(coefficients) - 1, -1, -1) if coefficients[k]), -1)


def degree_bound(f: Sequence[int], g: Sequence[int]) -> int:
    """No resultant of polynomials in x and y with respect to y has a greater degree in x; -1 if it is 0.

    It is c^n d^m times the product of all differences of roots, where c and d are the leading coefficients. A
    difference has at most the greater degree of both roots, and Newton's polygons tell the degrees of roots.

    Parameters
    ----------
    f, g : sequence of int
        The degrees in x of the coefficients of y^0, y^1 and so on, -1 where they are 0; the last one is not.
    """
    m, n = len(f) - 1, len(g) - 1
    total = Fraction(n * f[-1] + m * g[-1])
    for count, first in _root_degrees(f):
        for other, second in _root_degrees(g):
            if first is None and second is None:
                return -1
            greater = max(d for d in (first, second) if d is not None)
            total += count * other * greater
    return max(-1, total.__floor__())


def _root_degrees(degrees: Sequence[int]) -> list[RootDegree]:
    """Degrees in x of the roots y, by the edges of the upper hull of the points (k, degree)."""
    hull: list[tuple[int, int]] = []
    for point in ((k, d) for k, d in enumerate(degrees) if d >= 0):
        while len(hull) > 1 and _is_below(hull[-1], hull[-2], point):
            hull.pop()
        hull.append(point)
    found: list[RootDegree] = [(hull[0][0], None)] if hull[0][0] else []
    return found + [(k - i, Fraction(d - e, k - i)) for (i, d), (k, e) in pairwise(hull)]


def _is_below(point: tuple[int, int], left: tuple[int, int], right: tuple[int, int]) -> bool:
    """Whether a point is not above the line from a left one to a right one."""
    (k, d), (i, low), (j, high) = point, left, right
    return (d - low) * (j - i) <= (high - low) * (k - i)


def image(task: Task, start: int, stop: int) -> Array:
    """The resultant modulo the primes from number `start` to `stop` that the task takes, (n, degree + 1)."""
    stop = min(stop, task.prime_count)
    if stop <= start:
        return np.zeros_like(task.f, shape=(0, task.degree + 1), order="C")
    return np.concatenate([Image(task, part).coefficients for part in task.parts(start, stop)])


@dataclass(frozen=True, eq=False)
class Image:
    """A resultant modulo some primes, step by step."""

    task: Task
    moduli: ModuliSet

    @cached_property
    def points(self) -> GeometricPoints:
        """Where it is evaluated."""
        return GeometricPoints(self.moduli, self.task.degree + 1, self.task.f)

    @cached_property
    def values(self) -> tuple[Array, Array]:
        """Coefficients of the powers of y at the points, (n, points, m + 1) and (n, points, k + 1)."""
        words = (base_extend(x, self.task.system, self.moduli) for x in (self.task.f, self.task.g))
        f, g = (self.points.evaluate(x).swapaxes(1, 2) for x in words)
        return f, g

    @cached_property
    def resultants(self) -> Array:
        """Resultants (n, points) of these."""
        f, g = self.values
        formal = (
            np.full_like(x, x.shape[2] - 1, shape=x.shape[:2], dtype=np.int32, order="C") for x in (f, g)
        )
        return polynomials.resultants(f, g, self.moduli, (next(formal), next(formal)))

    @cached_property
    def coefficients(self) -> Array:
        """Coefficients (n, degree + 1) of the resultant."""
        return self.points.interpolate(self.resultants)[:, : self.task.degree + 1]


def lifted(task: Task, images: Sequence[Array], length: int) -> NDArray[np.object_]:
    """So many coefficients, Python ints, of a task's images modulo all of its primes, in order."""
    found = np.zeros(length, dtype=object)
    if task.degree >= 0:
        found[: task.degree + 1] = decode(list(images), primes(0, task.prime_count))
    return found


def resultants(f: Array, g: Array, system: RNS, length: int) -> NDArray[np.object_]:
    """Resultants (1, *batch, length) of polynomials (n, *batch, M, A) and (n, *batch, K, C), Python ints."""
    batch = np.broadcast_shapes(f.shape[1:-2], g.shape[1:-2])
    x, y = (np.broadcast_to(v, (len(v), *batch, *v.shape[-2:])) for v in (f, g))
    found = np.zeros((1, *batch, length), dtype=object)
    for index in np.ndindex(batch):
        place = (slice(None), *index)
        task = task_of(x[place], y[place], system)
        found[(0, *index)] = lifted(task, [image(task, 0, task.prime_count)], length)
    return found
