"""Products of vectors and matrices, and convolutions."""

from random import Random
from typing import Any

import numpy as np
from oracles.integers import matrix_product, objects

import rnsdask as rd
from fuzzing.case import Case
from fuzzing.checking import (
    MODES,
    check_overflow,
    check_overflowing,
    must_fail,
    operation,
    require,
    same_array,
    same_int,
)

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
