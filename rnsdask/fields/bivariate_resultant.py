"""Resultants of two integer polynomials in x and y with respect to y, exact. No Dask in here.

A resultant is evaluated modulo primes at enough points x, interpolated, and lifted; docs/exact-polynomials.md
proves how many points and primes are enough. Sylvester's matrix has the same formal degrees everywhere, so
that a leading coefficient that is 0 at a point or modulo a prime does no harm.
"""

import math
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
from rnsdask.fields.exact_polynomials import integers_of, sylvester_bound
from rnsdask.fields.geometric_points import GeometricPoints, count_beyond, primes
from rnsdask.rns.extend import base_extend
from rnsdask.rns.system import RNS

# Words of coefficients' values that are computed together: on a CPU they nearly fit its cache.
_CPU_WORDS = 2**21
_GPU_WORDS = 2**27

# Least number of primes whose values a batch computes together.
_FEW = 32

RootDegree = tuple[int, Fraction | None]
"""Number of roots y of one degree in x, and the degree; None for roots that are 0."""


@dataclass(frozen=True, eq=False)
class Task:
    """Input of the resultants of B pairs of polynomials: residues of their coefficients, uint32.

    `f` and `g` have shapes (n, m + 1, B, A) and (n, k + 1, B, C), of degrees up to m and k in y, and
    `degrees` are their degrees, -1 for the polynomial 0. The resultants have a degree in x of at most
    `degree`, -1 if all are known to be 0, and coefficients of magnitude at most `bound`.
    """

    f: Array
    g: Array
    system: RNS
    degrees: tuple[NDArray[np.int32], NDArray[np.int32]]
    degree: int
    bound: int

    @cached_property
    def prime_count(self) -> int:
        """Number of primes that determine the resultants."""
        return count_beyond(2 * self.bound + 1) if self.degree >= 0 else 0

    def parts(self, start: int, stop: int) -> list[ModuliSet]:
        """The primes from number `start` to `stop`, in parts that are computed together."""
        values = (self.f.shape[1] + self.g.shape[1]) * self.f.shape[2] * (self.degree + 1)
        count = max(0, stop - start)
        step = -(-count // max(1, -(-count * values // _words(self.f))))  # parts of about the same size
        return [primes(k, min(step, stop - k)) for k in range(start, stop, step or 1)]


def _words(x: Array) -> int:
    return _CPU_WORDS if isinstance(x, np.ndarray) else _GPU_WORDS


def task_of(f: Array, g: Array, system: RNS) -> Task:
    """Make the task of pairs of polynomials (n, B, M, A) and (n, B, K, C), residues of a system."""
    found, bound, degree, widths = [], 0, -1, [1, 1]
    for pair in zip(*(_coefficients(x, system) for x in (f, g)), strict=True):
        rows = [[_degree(row) for row in coefficients] for coefficients in pair]
        m, n = (_degree([d + 1 for d in degrees]) for degrees in rows)
        found.append((m, n))
        if min(m, n) < 0:
            continue
        squares = (sum(sum(map(abs, row)) ** 2 for row in coefficients) for coefficients in pair)
        bound = max(bound, sylvester_bound(m, n, *squares))
        degree = max(degree, degree_bound(rows[0][: m + 1], rows[1][: n + 1]))
        widths = [max(width, *(d + 1 for d in degrees)) for width, degrees in zip(widths, rows, strict=True)]
    degrees = tuple(np.array(d, dtype=np.int32) for d in zip(*found, strict=True))
    f, g = (
        x.swapaxes(1, 2)[:, : max(0, int(d.max())) + 1, :, :width]
        for x, d, width in zip((f, g), degrees, widths, strict=True)
    )
    return Task(f, g, system, (degrees[0], degrees[1]), degree, bound)


def known_bound(f: Sequence[int], g: Sequence[int], magnitude: int) -> int:
    """Greatest bound of all tasks with arrays of two shapes and coefficients up to a magnitude."""
    (m, width), (n, other) = f, g
    squares = ((rows * (columns * magnitude) ** 2) for rows, columns in ((m, width), (n, other)))
    return sylvester_bound(m - 1, n - 1, *squares)


def _coefficients(words: Array, system: RNS) -> list[list[list[int]]]:
    rows: list[list[list[int]]] = np.asarray(system.decode(words), dtype=object).tolist()
    return rows


def _degree(coefficients: Sequence[int]) -> int:
    """Index of the last coefficient that is not 0, or -1."""
    return next((k for k in range(len(coefficients) - 1, -1, -1) if coefficients[k]), -1)


def degree_bound(f: Sequence[int], g: Sequence[int]) -> int:
    """Bound of the degree in x of resultants with respect to y; -1 if they are 0.

    A resultant is c^n d^m times the product of all differences of roots, where c and d are the leading
    coefficients. A difference has at most the greater degree of its two roots, and Newton's polygons give the
    degrees of roots. `f` and `g` are the degrees in x of the coefficients of y^0, y^1 and so on, -1 where one
    is 0; the last one is not.
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
    """Whether a point is on or below the line from a left point to a right one."""
    (k, d), (i, low), (j, high) = point, left, right
    return (d - low) * (j - i) <= (high - low) * (k - i)


def image(task: Task, start: int, stop: int) -> Array:
    """Resultants (n, B, degree + 1) modulo the primes of a task from number `start` to `stop`."""
    stop = min(stop, task.prime_count)
    if stop <= start:
        return np.zeros_like(task.f, shape=(0, task.f.shape[2], task.degree + 1), order="C")
    return np.concatenate([Image(task, part).coefficients for part in task.parts(start, stop)])


@dataclass(frozen=True, eq=False)
class Image:
    """Resultants modulo some primes, step by step."""

    task: Task
    moduli: ModuliSet

    @cached_property
    def points(self) -> GeometricPoints:
        """Points at which the resultant is evaluated."""
        return GeometricPoints(self.moduli, self.task.degree + 1, self.task.f)

    @cached_property
    def values(self) -> tuple[Array, Array]:
        """Coefficients in y at the points, (n, B * points, m + 1) and (n, B * points, k + 1)."""
        f, g = (self._values_of(x) for x in (self.task.f, self.task.g))
        return f, g

    def _values_of(self, x: Array) -> Array:
        _, rows, batch, length = x.shape
        words = base_extend(x, self.task.system, self.moduli).reshape(-1, rows * batch, length)
        return self.points.evaluate(words).reshape(len(words), rows, -1).swapaxes(1, 2)

    @cached_property
    def formal_degrees(self) -> tuple[Array, Array]:
        """Degrees in y of all pairs at all points, (n, B * points) each."""
        f, g = (np.repeat(d, self.points.count) for d in self.task.degrees)
        shape = len(self.moduli), len(f)
        x, y = (np.asarray(np.broadcast_to(d, shape).copy(), like=self.task.f) for d in (f, g))
        return x, y

    @cached_property
    def resultants(self) -> Array:
        """Resultants (n, B * points) of the values."""
        return polynomials.resultants(*self.values, self.moduli, self.formal_degrees)

    @cached_property
    def coefficients(self) -> Array:
        """Coefficients (n, B, degree + 1) of the resultants."""
        values = self.resultants.reshape(len(self.moduli), -1, self.points.count)
        return self.points.interpolate(values)[..., : self.task.degree + 1]


def lifted(task: Task, images: Sequence[Array], length: int) -> NDArray[np.object_]:
    """First `length` coefficients (B, length), Python ints, from images modulo all primes of a task."""
    found = np.zeros((task.f.shape[2], length), dtype=object)
    if task.degree >= 0:
        found[:, : task.degree + 1] = integers_of(list(images), primes)
    return found


def resultants(f: Array, g: Array, system: RNS, length: int) -> NDArray[np.object_]:
    """Resultants (1, *batch, length) of polynomials (n, *batch, M, A) and (n, *batch, K, C), Python ints."""
    batch = np.broadcast_shapes(f.shape[1:-2], g.shape[1:-2])
    x, y = (
        np.broadcast_to(v, (len(v), *batch, *v.shape[-2:])).reshape(len(v), math.prod(batch), *v.shape[-2:])
        for v in (f, g)
    )
    found = np.zeros((math.prod(batch), length), dtype=object)
    # Pairs are computed together while their values modulo _FEW primes have those words.
    step = max(1, _words(f) // (_FEW * (x.shape[2] + y.shape[2]) * length))
    for start in range(0, len(found), step):
        part = slice(start, start + step)
        task = task_of(x[:, part], y[:, part], system)
        found[part] = lifted(task, [image(task, 0, task.prime_count)], length)
    return found.reshape(1, *batch, length)
