"""Laws of products of vectors, matrices and stacks of them, of powers of matrices, and of convolutions."""

from functools import partial, reduce
from typing import Any

import numpy as np
from oracles.integers import matrix_product

import rnsdask as rd
from laws.case import RESIDUES, Case, law_of, must_fail, shown

LENGTHS = (1, 2, 3, 7, 8, 9, 15, 17, 33)


def length(case: Case) -> int:
    return 0 if case.random.random() < 0.02 else case.random.choice(LENGTHS)


@law_of(*RESIDUES)
def matrix_products_are_numpys(case: Case) -> None:
    random, rows, terms, columns = case.random, length(case), length(case), length(case)
    kinds = random.choice(((2, 2), (2, 1), (1, 2), (1, 1)))
    if kinds == (1, 1) or random.random() < 0.1:
        terms = random.choice((terms, 100, 511, 512, 513, 600))
        rows, columns = min(rows, 3), min(columns, 3)
    shapes = (rows, terms) if kinds[0] == 2 else (terms,), (terms, columns) if kinds[1] == 2 else (terms,)
    if max(int(np.prod(shape)) for shape in shapes) > 4 * case.most_numbers:
        return
    a, b = (case.fresh(shape, name) for shape, name in zip(shapes, "ab", strict=True))
    exact = np.asarray(matrix_product(a.values, b.values), dtype=object)
    function = random.choice((rd.matmul, rd.dot))
    if kinds == (1, 1):
        check_inner(case, function, a.array, b.array, int(exact))
    elif random.random() < 0.3:
        case.claim_overflowing(lambda: a.array @ b.array, exact, options=False, what="@")
    else:
        case.claim_overflowing(partial(function, a.array, b.array), exact, what="matmul")


def check_inner(case: Case, function: Any, a: Any, b: Any, exact: int) -> None:
    """Check a product of two vectors, which is one number."""
    is_outside = not case.limits.holds(exact)
    result, mask = function(a, b, overflow="flag")
    case.claim(mask, is_outside, "overflow of an inner product")
    case.claim(result, case.limits.wrap(exact), "inner product")
    case.claim(function(a, b, overflow="wrap"), case.limits.wrap(exact), "inner product, wrapped")
    if is_outside:
        error = must_fail(lambda: function(a, b), rd.RNSOverflowError, "a product out of range")
        case.check_overflow(error, np.array([exact], dtype=object), {0})
    else:
        case.claim(function(a, b), exact, "inner product")


@law_of(*RESIDUES)
def products_of_stacks_are_numpys(case: Case) -> None:
    random = case.random
    rows, terms, columns, count = (random.randint(0, 4) for _ in range(4))
    left = random.choice(
        ((count, rows, terms), (1, rows, terms), (2, 1, rows, terms), (rows, terms), (terms,))
    )
    right = random.choice(((count, terms, columns), (2, count, terms, columns)))
    a, b = (case.fresh(shape, name) for shape, name in ((left, "a"), (right, "b")))
    exact = np.asarray(np.matmul(a.values, b.values), dtype=object)
    case.claim_overflowing(partial(rd.matmul, a.array, b.array), exact, what="products of stacks")
    if case.random.random() < 0.2:
        wrong = case.fresh((terms + 1, 2), "wrong")
        error = must_fail(lambda: a.array @ wrong.array, ValueError, "shapes that do not match")
        assert "do not match" in str(error), f"another error: {error}"


@law_of(*RESIDUES)
def powers_of_matrices_are_products(case: Case) -> None:
    random, side = case.random, case.random.randint(0, 4)
    k, power = random.choice((0, 1, 2, 3, 5, 8)), rd.linalg.matrix_power
    x = case.fresh(random.choice(((side, side), (2, side, side))))
    case.note("k", k)
    identity = np.broadcast_to(np.eye(side, dtype=object), x.values.shape)
    powers = [np.asarray(reduce(np.matmul, [x.values] * j, identity), dtype=object) for j in range(k + 1)]
    exact = powers[k]
    outside = case.limits.outside(exact)
    if case.system.kind == "interval":  # signs do not wrap
        must_fail(lambda: power(x.array, k, overflow="wrap"), ValueError, "a wrapped power")
        passed = [powers[1 << i] for i in range(k.bit_length())]
        if not any(case.limits.outside(each).any() for each in (exact, *passed)):
            case.claim_array(power(x.array, k), exact, f"power {k}")
    else:
        case.claim_array(power(x.array, k, overflow="wrap"), case.limits.wrapped(exact), f"power {k}")
    if outside.any():
        must_fail(lambda: power(x.array, k), rd.RNSOverflowError, f"power {shown(k)}")


@law_of(*RESIDUES)
def convolutions_are_numpys(case: Case) -> None:
    """In every mode, of short operands and of some that are transformed."""
    lengths = [case.random.choice((*LENGTHS, 64, 100, 130)) for _ in range(2)]
    mode = case.random.choice(("full", "same", "valid", "cyclic", "negacyclic"))
    if mode.endswith("cyclic"):
        lengths[1] = lengths[0]
    if sum(lengths) > case.most_numbers:
        return
    a, b = (case.fresh((count,), name) for count, name in zip(lengths, "ab", strict=True))
    if mode.endswith("cyclic"):
        exact = np.convolve(a.values, b.values)
        after = exact[lengths[0] :]
        exact[: len(after)] += -after if mode == "negacyclic" else after
        exact = exact[: lengths[0]]
    else:
        exact = np.convolve(a.values, b.values, mode)
    case.note("mode", mode)
    case.claim_overflowing(partial(rd.convolve, a.array, b.array, mode), exact, what=f"convolve, {mode}")
