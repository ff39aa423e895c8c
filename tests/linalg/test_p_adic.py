"""Determinants, their bounds, and solutions by p-adic lifting, against FLINT and closed forms."""

import math
from fractions import Fraction

import numpy as np
import pytest
from conftest import Processor
from integer_matrices import integers, of_flint
from sample_arrays import array_of

import rnsdask as rd
from rnsdask.fields import determinant_bounds, p_adic
from rnsdask.fields.determinant_bounds import elements, hadamard
from rnsdask.rns.lift import primes


def moduli_for(values: np.ndarray) -> rd.ModuliSet:
    return rd.ModuliSet.for_bits(max(map(abs, values.ravel().tolist()), default=0).bit_length() + 2)


def greatest(values: np.ndarray) -> int:
    return max(map(abs, values.ravel().tolist()), default=0)


def determinant(processor: Processor, values: np.ndarray) -> int | None:
    x = array_of(processor, values, moduli_for(values), True)
    return p_adic.determinant(x.words, x.system, greatest(values))


def check_solution(processor: Processor, values: np.ndarray, right: np.ndarray) -> None:
    """By substitution, and that the denominator is the least."""
    moduli = moduli_for(np.concatenate([values.ravel(), right.ravel()]))
    x, b = (array_of(processor, v, moduli, True) for v in (values, right))
    found = p_adic.solution(x.words, b.words, x.system, (greatest(values), greatest(right)))
    assert found is not None
    numerators, denominator = found
    assert (values @ numerators == right * denominator).all()
    assert denominator > 0
    assert math.gcd(denominator, *map(int, numerators.ravel())) == 1


@pytest.mark.parametrize(
    ("length", "bits"), [(1, 1), (1, 900), (2, 31), (5, 64), (23, 8), (40, 300), (70, 31)]
)
def test_random_matrices(
    on_each_processor: Processor, length: int, bits: int, rng: np.random.Generator
) -> None:
    values = integers(rng, bits, length, length)
    expected = int(of_flint(values).det())
    assert determinant(on_each_processor, values) == expected or expected == 0
    assert determinant(on_each_processor, values.T * -1) == (-1) ** length * expected or expected == 0
    if expected:
        check_solution(on_each_processor, values, integers(rng, 5, length, 1))
        check_solution(on_each_processor, values, integers(rng, 2 * bits, length, 2))


def test_cofactors(on_each_processor: Processor, rng: np.random.Generator) -> None:
    """Determinants of which a denominator is a small part, or 1, as of permutations."""
    length = 12
    shuffled = np.eye(length, dtype=object)[rng.permutation(length)]
    first = primes(0, 3, p_adic.LIMIT)
    for factor in (1, -7, 10**30, first[0], first.product):
        mixed = integers(rng, 9, length, length)
        for values in (shuffled * factor, np.eye(length, dtype=object) * factor @ mixed):
            assert determinant(on_each_processor, values) == int(of_flint(values).det())
    small = np.eye(3, dtype=object) * first[0]
    small[0, 2], small[2, 2] = 5, first[1]
    assert determinant(on_each_processor, small) == first[0] ** 2 * first[1]
    check_solution(on_each_processor, small, np.array([[1], [0], [-1]], dtype=object))


def test_primes_that_divide(on_each_processor: Processor, rng: np.random.Generator) -> None:
    """Singular modulo the first primes: others are taken; modulo too many: none, as for singular ones."""
    first = primes(0, 200, p_adic.LIMIT)
    values = integers(rng, 20, 6, 6)
    values[0] *= first[0]
    assert determinant(on_each_processor, values) in (None, int(of_flint(values).det()))
    values[1] *= math.prod(first)
    assert determinant(on_each_processor, values) is None
    values[1] = values[2]
    assert determinant(on_each_processor, values) is None
    values[1] = 0
    assert determinant(on_each_processor, values) == 0


def test_short_solutions(on_each_processor: Processor, rng: np.random.Generator) -> None:
    """Integer solutions, and such with a small denominator, end before all digits are there."""
    values = integers(rng, 40, 45, 45)
    for denominator in (1, 6):
        x = integers(rng, 10, 45, 2)
        check_solution(on_each_processor, values * denominator, values @ x)


def test_vandermonde_and_hilbert(on_each_processor: Processor) -> None:
    points = [3 * k - 20 for k in range(25)]
    values = np.array([[p**k for k in range(25)] for p in points], dtype=object)
    expected = math.prod(b - a for i, a in enumerate(points) for b in points[i + 1 :])
    assert determinant(on_each_processor, values) == expected
    common = math.lcm(*range(1, 60))
    hilbert = np.array([[common // (i + j + 1) for j in range(30)] for i in range(30)], dtype=object)
    products = math.prod(math.factorial(k) for k in range(30)) ** 4
    exact = Fraction(products, math.prod(math.factorial(k) for k in range(60))) * common**30
    assert determinant(on_each_processor, hilbert) == exact
    check_solution(on_each_processor, hilbert, np.ones((30, 1), dtype=object))


@pytest.mark.parametrize("bits", [1, 31, 500])
def test_bounds(monkeypatch: pytest.MonkeyPatch, bits: int, rng: np.random.Generator) -> None:
    """No bound is below a determinant; that of random matrices, orthogonalized, is not far above it."""
    monkeypatch.setattr(determinant_bounds, "MANY_ROWS", 0)
    for length in (1, 2, 3, 10, 30):
        stack = integers(rng, bits, 3, length, length)
        stack[1, 0] = 0
        stack[1, 0, 0] = 1
        stack[2] *= np.array([2 ** (40 * i % 600) for i in range(length)], dtype=object)
        for values in stack:
            system = rd.RNS(moduli_for(values), signed=True)
            matrix = elements(system.encode(values), system)
            exact = abs(int(of_flint(values).det()))
            bound = determinant_bounds.determinant_bound(matrix)
            assert exact <= bound <= hadamard(matrix)
        system = rd.RNS(moduli_for(stack), signed=True)
        determinants = [abs(int(of_flint(values).det())) for values in stack]
        assert max(determinants) <= hadamard(elements(system.encode(stack), system))
    values = integers(rng, 31, 60, 60)
    system = rd.RNS(moduli_for(values), signed=True)
    matrix = elements(system.encode(values), system)
    exact = abs(int(of_flint(values).det()))
    assert exact <= determinant_bounds.determinant_bound(matrix) <= exact + exact // 50


def test_orthogonal_matrices_reach_the_bound() -> None:
    """Hadamard matrices, whose determinants are the bound itself: rounded downwards it would be too small."""
    values = np.array([[1]], dtype=object)
    for _ in range(6):
        values = np.block([[values, values], [values, -values]])
        for factor in (1, 3, 2**31 - 1, 10**40 + 7):
            system = rd.RNS(moduli_for(values * factor), signed=True)
            matrix = elements(system.encode(values * factor), system)
            exact = abs(int(of_flint(values * factor).det()))
            assert exact <= hadamard(matrix) <= exact + exact // 10**6 + 1
