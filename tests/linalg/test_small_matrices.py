"""Determinants and Cramer's rule of small matrices, several in step, against FLINT."""

import itertools
import math
from typing import Any

import flint
import numpy as np
import pytest

import rnsdask as rd
from rnsdask.backend import kernels_of
from rnsdask.core.moduli import ModuliSet
from rnsdask.core.primes import primes_below
from rnsdask.fields import elimination

NARROW = list(itertools.islice(primes_below(2**31, 1), 3))
WIDE = list(itertools.islice(primes_below(2**32, 1), 3))
SMALL = [3, 5, 7]


def of_flint(matrix: np.ndarray, rows: int, p: int) -> tuple[np.ndarray, int]:
    """Numerators and determinant of [A b]."""
    left = flint.nmod_mat(rows, rows, matrix[:, :rows].ravel().tolist(), p)
    determinant = left.det()
    columns = matrix.shape[1] - rows
    if int(determinant) == 0 or columns == 0:
        return np.zeros((rows, columns), np.uint32), int(determinant)
    right = flint.nmod_mat(rows, columns, matrix[:, rows:].ravel().tolist(), p)
    found = left.solve(right) * determinant
    return np.array([int(x) for x in found.entries()], np.uint32).reshape(rows, columns), int(determinant)


def adversarial(rng: np.random.Generator, rows: int, width: int, p: int) -> list[np.ndarray]:
    """Matrices whose pivots are 0, are found late, or are lacking, and such with numbers at the ends."""
    shape = rows, width
    random = rng.integers(0, p, shape)
    late, lacking, twice, low = (random.copy() for _ in range(4))
    late[: rows - 1, 0] = 0
    lacking[:, rows // 2] = 0
    twice[-1] = twice[0]
    low[:, :rows] = np.tril(low[:, :rows])[::-1]
    permutation = rng.integers(0, p, shape)
    permutation[:, :rows] = np.eye(rows, dtype=np.int64)[rng.permutation(rows)] * (p - 1)
    last = np.full(shape, p - 1)
    ends = rng.choice([0, 1, p - 1], shape)
    return [random, late, lacking, twice, low, permutation, last, ends, np.zeros(shape, np.int64)]


@pytest.mark.parametrize("primes", [NARROW, WIDE, SMALL], ids=["narrow", "wide", "small"])
@pytest.mark.parametrize(
    ("rows", "columns"),
    [
        *[(1, 0), (2, 0), (3, 0), (4, 0), (5, 0), (21, 0), (22, 0), (43, 0), (1, 1), (2, 3), (3, 1), (4, 1)],
        *[(5, 5), (8, 1), (14, 14), (15, 15), (17, 2), (22, 1), (32, 1), (37, 33), (96, 0)],
    ],
)
def test_small_matrices_modulo_primes(
    rows: int, columns: int, primes: list[int], rng: np.random.Generator
) -> None:
    stacks = [np.stack(adversarial(rng, rows, rows + columns, p) * 2) for p in primes]
    words = np.stack(stacks).astype(np.uint32)
    kernel = kernels_of(words).small_cramer
    assert kernel is not None
    numerators, determinants = kernel(words, ModuliSet(primes))
    turned = np.ascontiguousarray(words.transpose(3, 1, 2, 0)).transpose(3, 1, 2, 0)
    again = kernel(turned, ModuliSet(primes))
    assert (again[0] == numerators).all()
    assert (again[1] == determinants).all()
    for i, b in np.ndindex(determinants.shape):
        expected, determinant = of_flint(words[i, b], rows, primes[i])
        assert determinants[i, b] == determinant
        assert determinant == 0 or (numerators[i, b] == expected).all()


@pytest.mark.parametrize("primes", [NARROW, WIDE, SMALL, [2, *SMALL]], ids=["narrow", "wide", "small", "two"])
@pytest.mark.parametrize("rows", [1, 2, 3, 4, 9, 16, 34, 96, 97])
def test_characteristic_polynomials(rows: int, primes: list[int], rng: np.random.Generator) -> None:
    """Also of columns that are clear below the diagonal, or have 0 in the place of the pivot."""
    stacks = [np.stack(adversarial(rng, rows, rows, p)) for p in primes]
    for of, p in zip(stacks, primes, strict=True):
        of[1, 1:, 0], of[2] = 0, np.triu(of[2])
        of[3] = np.diag(of[3, 0]) + np.eye(rows, k=-1, dtype=np.int64) * (p - 1) % p
    words = np.stack(stacks).astype(np.uint32)[:, : 9 if rows < 90 else 4]
    found = elimination.characteristic_polynomials(words, ModuliSet(primes))
    alone = elimination.characteristic_polynomials(words[:1, :1], ModuliSet(primes[:1]))
    assert (alone == found[:1, :1]).all()
    for i, b in np.ndindex(words.shape[:2]):
        expected = flint.nmod_mat(rows, rows, words[i, b].ravel().tolist(), primes[i]).charpoly()
        assert found[i, b, 0].tolist() == [int(c) for c in expected.coeffs()]


@pytest.mark.parametrize("rows", [1, 4, 32, 33, 97])
def test_fields_of_two_elements_too(rows: int, rng: np.random.Generator) -> None:
    """Which no kernel of small matrices takes, nor those of more rows."""
    primes = [2, 3, 2**31 - 1]
    words = np.stack([rng.integers(0, p, (9, rows, rows)) for p in primes]).astype(np.uint32)
    found = elimination.determinants(words, ModuliSet(primes))
    for i, b in np.ndindex(3, 9):
        assert found[i, b, 0, 0] == of_flint(words[i, b], rows, primes[i])[1]


@pytest.mark.parametrize("p", [3, 5, 7, 251, 257, 2**31 - 1, 2**32 - 5])
def test_inverses_of_one_number(p: int, rng: np.random.Generator) -> None:
    """All modulo small primes; of great ones the ends, and such as take long by Euclid's algorithm."""
    golden = int(p / ((1 + 5**0.5) / 2))
    ends = [1, 2, 3, (p - 1) // 2, (p + 1) // 2, p - 3, p - 2, p - 1, *range(golden - 9, golden + 9)]
    values = range(p) if p < 300 else [*ends, *rng.integers(1, p, 2000).tolist()]
    # Of so many rows each pivot is inverted: here x_0 = 1 / value and x_1 = -x_0.
    rows = 44
    one = np.eye(rows, rows + 1, dtype=np.uint32)
    one[1, 0] = one[0, rows] = 1
    words = np.broadcast_to(one, (1, len(values), *one.shape)).copy()
    words[0, :, 0, 0] = values
    kernel = kernels_of(words).small_cramer
    assert kernel is not None
    numerators, determinants = kernel(words, ModuliSet([p]))
    assert determinants[0].tolist() == list(values)
    for value, column in zip(values, numerators[0, :, :, 0].tolist(), strict=True):
        assert value == 0 or column == [1, p - 1, *[0] * (rows - 2)]


def stack_of(system: rd.RNS, values: list[list[list[int]]]) -> rd.RNSArray:
    return rd.RNSArray(system.encode(np.array(values, dtype=object)), system)


@pytest.mark.parametrize(("rows", "bits", "count"), [(3, 31, 400), (8, 32, 60), (12, 200, 20), (25, 32, 5)])
@pytest.mark.parametrize("room", [1, 900])
def test_stacks_of_integers(rows: int, bits: int, count: int, room: int, rng: np.random.Generator) -> None:
    """Entries as long as the range, and much shorter ones, which are measured; some are singular."""
    draw = [int.from_bytes(rng.bytes(bits // 8 + 1), "little") for _ in range(count * rows * rows)]
    values = np.array([v % 2**bits - 2 ** (bits - 1) for v in draw], dtype=object).reshape(count, rows, rows)
    values[1::7, -1] = values[1::7, 0]
    values[2::7, :, 0] = 0
    values[3] = -(2 ** (bits - 1))
    x = stack_of(rd.RNS(rd.ModuliSet.for_bits(bits + room), signed=True), values.tolist())
    expected = [int(flint.fmpz_mat(m.tolist()).det()) for m in values]
    assert rd.linalg.det(x).tolist() == expected
    regular = [i for i, determinant in enumerate(expected) if determinant]
    a = x[regular]
    numerators, denominators = rd.linalg.solve(a, a[..., :1] + 1)
    for i, m in enumerate(values[regular]):
        assert (m.dot(numerators[i]) == denominators[i] * (m[:, :1] + 1)).all()
        assert denominators[i] > 0
        assert math.gcd(*numerators[i].ravel().tolist(), denominators[i]) == 1
    with pytest.raises(np.linalg.LinAlgError, match=r"at index \(1,\) is singular"):
        rd.linalg.solve(x, x)


@pytest.mark.parametrize("rows", [1, 2, 7, 16])
def test_one_small_matrix_at_the_ends_of_its_range(rows: int, rng: np.random.Generator) -> None:
    """No magnitude is measured: the determinant may be as great as Hadamard's bound."""
    system = rd.RNS(rd.ModuliSet.for_bits(65), signed=True)
    lowest, highest = system.value_range
    hadamard: Any = np.array([[1]], dtype=object)
    while len(hadamard) < rows:
        hadamard = np.block([[hadamard, hadamard], [hadamard, -hadamard]])
    for ends in ((1, -highest), (highest, -highest), (lowest, highest)):
        m = np.array([[ends[int(v < 0)] for v in row] for row in hadamard[:rows, :rows]], dtype=object)
        assert rd.linalg.det(stack_of(system, m.tolist())) == int(flint.fmpz_mat(m.tolist()).det())
    m = np.array([[int(v) for v in row] for row in rng.integers(-9, 9, (rows, rows))], dtype=object)
    assert rd.linalg.det(stack_of(system, m.tolist())) == int(flint.fmpz_mat(m.tolist()).det())


@pytest.mark.parametrize("rows", [13, 32])
@pytest.mark.parametrize("end", [2**31, -(2**31), 2**31 - 1, -(2**31) - 1])
def test_magnitudes_that_are_measured(rows: int, end: int) -> None:
    """Among few numbers, of which negative powers of 2 are the longest."""
    system = rd.RNS(rd.ModuliSet.for_bits(1000), signed=True)
    m = np.full((rows, rows), 1, dtype=object)
    for i in range(rows):
        m[i, i] = end
    a = flint.fmpz_mat(m.tolist())
    x = stack_of(system, m.tolist())
    assert rd.linalg.det(x) == int(a.det())
    assert rd.linalg.charpoly(x).tolist() == [int(c) for c in a.charpoly().coeffs()]
    numerators, denominator = rd.linalg.inv(x)
    assert (m.dot(numerators) == denominator * np.eye(rows, dtype=object)).all()


@pytest.mark.parametrize("rows", [5, 40])
def test_determinants_that_the_first_primes_divide(rows: int, rng: np.random.Generator) -> None:
    """They are not 0, and there is an inverse; of a stack with one that is singular there is none."""
    first = itertools.islice(primes_below(2**31, 1), 20)
    m = np.array(rng.integers(-9, 9, (rows, rows)).tolist(), dtype=object)
    m = np.tril(m, -1) + np.eye(rows, dtype=object)
    for i, p in zip(range(rows), first, strict=False):
        m[i] *= p
    system = rd.RNS(rd.ModuliSet.for_bits(80), signed=True)
    numerators, denominator = rd.linalg.inv(stack_of(system, m.tolist()))
    assert (m.dot(numerators) == denominator * np.eye(rows, dtype=object)).all()
    singular = m.copy()
    singular[-1] = singular[0] + singular[1]
    stack = stack_of(system, [m.tolist(), m.tolist(), singular.tolist()])
    with pytest.raises(np.linalg.LinAlgError, match=r"at index \(2,\) is singular$"):
        rd.linalg.inv(stack)
    with pytest.raises(np.linalg.LinAlgError, match=r"at index \(2,\) is singular$"):
        rd.linalg.solve(stack, stack[..., :0])
