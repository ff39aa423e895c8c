"""Linear algebra over the integers and over prime fields."""

import math
from random import Random
from typing import Any

import numpy as np

import rnsdask as rd
from fuzzing.case import Case
from fuzzing.checking import computed, must_fail, operation, require, same_array, same_int
from fuzzing.fields import ANY, array_of, element, field_of, same
from fuzzing.oracle import matrix_product, objects


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


@operation("fields: matrices", ANY)
def check_matrices(case: Case, rng: Random) -> int:
    """Products, determinants, and inverses and solutions by what they are multiplied with."""
    field, size = field_of(rng)
    n, columns = rng.randint(1, 5), rng.randint(1, 4)
    case.note("field", repr(field))
    values = objects((element(rng, size) for _ in range(n * n)), (n, n))
    right = objects((element(rng, size) for _ in range(n * columns)), (n, columns))
    case.note("matrix", values)
    a, b = (array_of(case, rng, field, v, whole_axes=2) for v in (values, right))
    count = same(field, a @ b, matrix_product(values, right) % size, "product")
    if isinstance(field, rd.FermatField):
        return count
    det = determinant(values.tolist()) % size
    count += same_int(rd.linalg.det(a), det, "det")
    if math.gcd(det, size) != 1:
        must_fail(lambda: rd.linalg.inv(a), np.linalg.LinAlgError, "a singular matrix")
        must_fail(lambda: rd.linalg.solve(a, b), np.linalg.LinAlgError, "a singular matrix")
        return count + 2
    solutions = rd.linalg.solve(a, b).to_ints()
    count += same_array(matrix_product(values, solutions) % size, right, "a @ solve(a, b)")
    inverse = rd.linalg.inv(a).to_ints()
    identity = np.eye(n, dtype=object) * (1 % size)
    return count + same_array(matrix_product(values, inverse) % size, identity, "a @ inv(a)")
