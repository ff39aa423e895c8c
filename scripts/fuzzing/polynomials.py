"""Polynomials of elements of fields and of integers."""

from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np

import rnsdask as rd
from fuzzing.case import Case
from fuzzing.checking import operation, require, same_array, same_int
from fuzzing.fields import ANY, array_of, element, field_of, same
from fuzzing.linear_algebra import determinant, in_one_chunk
from fuzzing.oracle import objects


def polynomial(rng: Random, size: int, length: int) -> np.ndarray:
    """Coefficients, the greatest of which has an inverse in all fields."""
    values = [element(rng, size) for _ in range(length)]
    return objects([*values[:-1], 1 % size])


def horner(coefficients: list[int], point: int, size: int) -> int:
    value = 0
    for coefficient in reversed(coefficients):
        value = (value * point + coefficient) % size
    return value


@operation("fields: polynomials", ANY)
def check_polynomials(case: Case, rng: Random) -> int:
    field, size = field_of(rng)
    case.note("field", repr(field))
    lengths = [rng.choice((1, 2, 3, 8, 17, 33, 70)) for _ in range(2)]
    f, g = (polynomial(rng, size, length) for length in lengths)
    points = objects(element(rng, size) for _ in range(rng.randint(1, 20)))
    case.note("f", f)
    case.note("g", g)
    x, y, z = (array_of(case, rng, field, v, whole_axes=1) for v in (f, g, points))
    exact = np.convolve(f, g) % size
    make: Callable[[Any, Any], Any] = rng.choice((rd.poly.multiply, rd.convolve))
    count = same(field, make(x, y), exact, "product")
    at_points = [horner(f.tolist(), point, size) for point in points.tolist()]
    count += same(field, rd.poly.evaluate(x, z), objects(at_points), "values")
    quotient, rest = (part.to_ints() for part in rd.poly.divmod(x, y))
    require(len(rest) < max(len(g), 2), "the remainder is too long")
    again = np.zeros(max(len(f), len(g), len(quotient) + len(g) - 1, len(rest)), dtype=object)
    whole_part = np.convolve(quotient, g) if quotient.size else objects([0])
    again[: len(whole_part)] += whole_part
    again[: len(rest)] += rest
    padded = np.zeros_like(again)
    padded[: len(f)] = f
    return count + same_array(again % size, padded % size, "quotient * divisor + remainder")


@operation("resultants")
def check_resultants(case: Case, rng: Random) -> int:
    """Of integer polynomials, as determinants of Sylvester's matrix."""
    f, g = (case.fresh(rng, (rng.randint(2, 4),), name) for name in "fg")
    if not f.values[-1] or not g.values[-1]:
        return 0
    m, n = f.values.size - 1, g.values.size - 1
    rows = [[0] * i + f.values[::-1].tolist() + [0] * (n - 1 - i) for i in range(n)]
    rows += [[0] * i + g.values[::-1].tolist() + [0] * (m - 1 - i) for i in range(m)]
    x, y = (in_one_chunk(p.array, p.values) for p in (f, g))
    return same_int(rd.poly.resultant(x, y), determinant(rows), "resultant")
