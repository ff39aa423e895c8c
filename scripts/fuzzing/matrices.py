"""Products of vectors and matrices, and convolutions."""

import math
from random import Random
from typing import Any

import numpy as np

import rnsdask as rd
from fuzzing.case import Case
from fuzzing.checking import (
    MODES,
    check_overflow,
    check_overflowing,
    computed,
    must_fail,
    operation,
    require,
    same_array,
    same_int,
)
from fuzzing.oracle import matrix_product, objects

LENGTHS = (1, 2, 3, 7, 8, 9, 15, 17, 33)


def length(rng: Random) -> int:
    return 0 if rng.random() < 0.02 else rng.choice(LENGTHS)


@operation("matmul")
def check_matmul(case: Case, rng: Random) -> int:
    rows, terms, columns = length(rng), length(rng), length(rng)
    kinds = rng.choice(((2, 2), (2, 1), (1, 2), (1, 1)))
    if kinds == (1, 1) or rng.random() < 0.1:
        terms = rng.choice((terms, 100, 511, 512, 513, 600))
        rows, columns = min(rows, 3), min(columns, 3)
    shapes = (rows, terms) if kinds[0] == 2 else (terms,), (terms, columns) if kinds[1] == 2 else (terms,)
    if max(int(np.prod(shape)) for shape in shapes) > case.most_numbers:
        return 0
    a, b = (case.fresh(rng, shape, name) for shape, name in zip(shapes, "ab", strict=True))
    exact = matrix_product(a.values, b.values)
    function = rng.choice((rd.matmul, rd.dot))
    if kinds == (1, 1):
        return max(terms, 1) * check_inner(case, rng, function, a.array, b.array, int(exact))
    if rng.random() < 0.3:
        return check_overflowing(case, rng, lambda: a.array @ b.array, exact, options=False)
    return check_overflowing(case, rng, lambda **mode: function(a.array, b.array, **mode), exact)


def check_inner(case: Case, rng: Random, function: Any, a: Any, b: Any, exact: int) -> int:
    """Check a product of two vectors, which is one number."""
    mode, is_outside = rng.choice(MODES), not case.limits.holds(exact)
    case.note("overflow", mode)
    if mode == "raise" and is_outside:
        error = must_fail(lambda: function(a, b), rd.RNSOverflowError, "a product out of range")
        check_overflow(case, error, objects([exact]), {0})
        return 1
    result = function(a, b, overflow=mode)
    if mode == "flag":
        result, mask = result
        same_array(mask, np.asarray(is_outside), "mask")
    return same_int(result, exact if mode == "raise" else case.limits.wrap(exact))


@operation("convolve")
def check_convolve(case: Case, rng: Random) -> int:
    """Check convolutions in every mode, of short operands and of some that are transformed."""
    lengths = [rng.choice((*LENGTHS, 64, 100, 130)) for _ in range(2)]
    mode = rng.choice(("full", "same", "valid", "cyclic", "negacyclic"))
    if mode.endswith("cyclic"):
        lengths[1] = lengths[0]
    if sum(lengths) > case.most_numbers:
        return 0
    a, b = (case.fresh(rng, (count,), name) for count, name in zip(lengths, "ab", strict=True))
    if mode.endswith("cyclic"):
        exact = np.convolve(a.values, b.values)
        after = exact[lengths[0] :]
        exact[: len(after)] += -after if mode == "negacyclic" else after
        exact = exact[: lengths[0]]
    else:
        exact = np.convolve(a.values, b.values, mode)
    case.note("mode", mode)
    return check_overflowing(
        case, rng, lambda **options: rd.convolve(a.array, b.array, mode, **options), exact
    )


@operation("matmul of wrong shapes")
def check_wrong_shapes(case: Case, rng: Random) -> int:
    terms = rng.randint(1, 3)
    a, b = case.fresh(rng, (2, terms), "a"), case.fresh(rng, (terms + 1, 2), "b")
    error = must_fail(lambda: a.array @ b.array, ValueError, "shapes that do not match")
    require("do not match" in str(error), f"another error: {error}")
    return 1


def determinant(rows: list[list[int]]) -> int:
    """By the first row."""
    if not rows:
        return 1
    minors = ([row[:j] + row[j + 1 :] for row in rows[1:]] for j in range(len(rows)))
    return sum(
        (-1) ** j * a * determinant(minor) for j, (a, minor) in enumerate(zip(rows[0], minors, strict=True))
    )


def in_one_chunk(x: Any, values: np.ndarray) -> Any:
    return x if x.chunks is None else x.rechunk(values.shape)


@operation("determinants and solutions")
def check_determinants(case: Case, rng: Random) -> int:
    """Exact ones over the integers; characteristic polynomials by what a matrix makes of them."""
    n, columns = rng.randint(1, 4), rng.randint(1, 3)
    a, b = case.fresh(rng, (n, n), "a"), case.fresh(rng, (n, columns), "b")
    if rng.random() < 0.2:  # a singular one
        a.values[-1] = a.values[0]
        a.array = rd.concatenate([a.array[:-1], a.array[:1]]) if n > 1 else a.array
    matrix, right = (in_one_chunk(x.array, x.values) for x in (a, b))
    det = determinant(a.values.tolist())
    same_int(rd.linalg.det(matrix), det, "det")
    power, total = np.eye(n, dtype=object), np.zeros((n, n), dtype=object)
    for coefficient in computed(rd.linalg.charpoly(matrix)).tolist():
        total, power = total + coefficient * power, matrix_product(power, a.values)
    require(not total.any(), "a matrix is no root of its characteristic polynomial")
    if det == 0:
        must_fail(lambda: rd.linalg.solve(matrix, right), np.linalg.LinAlgError, "a singular matrix")
        return n
    same_int(rd.linalg.rank(matrix), n, "rank")
    numerators, denominator = map(computed, rd.linalg.solve(matrix, right))
    factor = int(denominator.item() if hasattr(denominator, "item") else denominator)
    require(factor > 0, "a denominator is not positive")
    require(math.gcd(factor, *numerators.reshape(-1).tolist()) == 1, "a denominator is not the least")
    return same_array(matrix_product(a.values, numerators), b.values * factor, "a @ solve(a, b)")


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
