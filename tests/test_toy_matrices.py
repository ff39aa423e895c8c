"""A number system of the tests' own has matrices, convolutions and polynomials by its table alone."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from toy_system import Pair, PairArray

import rnsdask as rd
from rnsdask.core import generic, rows
from rnsdask.core.table import Entry, table


def numbers_of(x: Any) -> np.ndarray:
    """The integers of an array, lazy ones computed."""
    return x.system.decode(np.asarray(x.words))


def determinant(x: Any, *, variables: int = 0) -> Any:
    assert variables == 0
    matrix, found = numbers_of(x), 0
    for order in permutations(range(len(matrix))):
        inversions = sum(order[i] > order[k] for k in range(len(order)) for i in range(k))
        found += (-1) ** inversions * math.prod(matrix[i, k] for i, k in enumerate(order))
    return found


def product(a: Any, b: Any, *, overflow: str | None = None) -> Any:
    assert overflow in (None, "raise")
    return type(a)(a.system.encode(numbers_of(a).dot(numbers_of(b))), a.system)


def convolution(a: Any, b: Any, *, mode: str, axis: int) -> Any:
    assert axis == -1
    return type(a)(a.system.encode(np.convolve(numbers_of(a), numbers_of(b), mode)), a.system)


def values_at(f: Any, points: Any) -> Any:
    return np.polynomial.polynomial.polyval(numbers_of(points), numbers_of(f))


TABLE = generic.INTEGERS | table(
    Entry(rows.det, determinant),
    Entry(rows.matmul, product),
    Entry(rows.convolve, convolution),
    Entry(rows.evaluate, values_at),
)


@dataclass(frozen=True, repr=False)
class PairWithMatrices(Pair):
    """Pairs of words with a table of their own."""

    table_name = f"{__name__}:TABLE"


class PairsWithMatrices(PairArray):
    """Numbers as such pairs."""

    __slots__ = ()

    system_type = PairWithMatrices


VALUES = [[5, 1, 0], [2, 7, 1], [0, 3, 4]]


@pytest.fixture(params=[False, True], ids=["in memory", "lazy"])
def x(request: pytest.FixtureRequest) -> Any:
    system = PairWithMatrices()
    array = PairsWithMatrices(system.encode(VALUES), system)
    return array.rechunk(-1) if request.param else array


def test_functions_are_those_of_the_table(x: Any) -> None:
    assert rd.linalg.det(x) == np.linalg.det(x) == 117  # 5 (28 - 3) - 1 (8 - 0)
    square = np.array(VALUES, dtype=object).dot(VALUES)
    for found in (x @ x, np.matmul(x, x), rd.linalg.matrix_power(x, 2)):
        assert type(found) is PairsWithMatrices
        assert numbers_of(found).tolist() == square.tolist()
    assert numbers_of(x @ x[0]).tolist() == np.dot(VALUES, VALUES[0]).tolist()
    assert numbers_of(rd.convolve(x[0], x[1])).tolist() == np.convolve(*VALUES[:2]).tolist()
    assert numbers_of(rd.poly.multiply(x[0], [1, 2])).tolist() == np.convolve(VALUES[0], [1, 2]).tolist()
    assert rd.poly.evaluate(x[1], x[2]).tolist() == [2, 32, 46]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (rd.linalg.rank, "rank takes no PairsWithMatrices: it has no such operation"),
        (lambda x: rd.linalg.solve(x, x), "solve takes no PairsWithMatrices: it has"),
        (lambda x: rd.poly.gcd(x, x), "gcd takes no PairsWithMatrices: it has"),
        (rd.poly.inverse_series, "inverse_series takes no PairsWithMatrices: it has"),
        (rd.ntt, "ntt takes a FieldArray, got PairsWithMatrices"),
        (
            lambda x: rd.linalg.det(x, moduli=rd.ModuliSet([97])),
            "det of a PairsWithMatrices takes no moduli, got moduli=RNS",
        ),
    ],
)
def test_what_the_table_lacks_is_an_error(x: Any, call: Callable[[Any], Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        call(x)
