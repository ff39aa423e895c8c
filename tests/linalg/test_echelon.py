"""Reduced echelon forms, null spaces, solutions of any equations and modulo integers, against FLINT."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import dask.array as da
import flint
import numpy as np
import pytest
from conftest import Processor
from integer_matrices import integers, of_flint
from sample_arrays import array_of, chunked, host

import rnsdask as rd
from rnsdask.fields import echelon
from rnsdask.rns.lift import primes

MODULI = rd.ModuliSet.for_bits(200)
FIRST, SECOND = primes(0, 2)  # those that are asked first
FIELDS = rd.PrimeFields([2, 7, 65537, 4294967291])


def of_rank(rng: np.random.Generator, rows: int, columns: int, rank: int, bits: int = 20) -> np.ndarray:
    """Random integers of a rank, whose first columns and some later ones depend on others or are 0."""
    x = integers(rng, bits, rows, rank) @ integers(rng, bits, rank, columns) if rank else 0
    x = x + np.zeros((rows, columns), dtype=object)
    if columns > 3:
        x[:, 0] = 0
        x[:, 2] = 3 * x[:, 1]
    return x


SHAPES = ((1, 1, 1), (4, 7, 3), (7, 4, 3), (5, 5, 4), (6, 6, 0), (3, 8, 3), (8, 3, 2), (30, 20, 11))
EMPTY = ((0, 0), (0, 3), (3, 0))


def flint_form(values: np.ndarray, p: int | None = None) -> tuple[list[list[Any]], list[int]]:
    """The reduced form and its pivots, padded by -1."""
    rows, columns = values.shape
    if 0 in values.shape:
        return values.tolist(), []
    if p is None:
        found = flint.fmpq_mat(of_flint(values)).rref()[0]
        form = [[Fraction(int(c.p), int(c.q)) for c in row] for row in found.tolist()]
    else:
        reduced = [int(v) % p for v in values.ravel()]
        form = [[int(c) for c in row] for row in flint.nmod_mat(rows, columns, reduced, p).rref()[0].tolist()]
    pivots = [next(k for k, c in enumerate(row) if c) for row in form if any(row)]
    return form, pivots + [-1] * (min(rows, columns) - len(pivots))


# ---- fields -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(r, c) for r, c, _ in SHAPES] + [(70, 90), (130, 40)])
def test_forms_over_fields(
    on_each_processor: Processor, shape: tuple[int, int], rng: np.random.Generator
) -> None:
    rank = max(0, min(shape) - 2)
    stack = np.stack([of_rank(rng, *shape, k, 70) for k in (rank, min(shape), rank // 2)])
    stack[1] *= 14  # 0 modulo 2 and 7, and not modulo the others
    x = rd.from_ints(stack, FIELDS, chunks=None)
    x = rd.FieldArray(on_each_processor.xp.asarray(x.residues), FIELDS)
    found = rd.linalg.rref(x)
    for b, values in enumerate(stack):
        for row, p in enumerate(FIELDS.primes):
            form, pivots = flint_form(values, p)
            assert host(found.matrix.residues)[row, b].tolist() == form
            assert host(found.pivots)[row, b].tolist() == pivots
    assert found.pivots.dtype == np.int64
    lazy = rd.linalg.rref(x.rechunk((2, -1, -1)))
    assert isinstance(lazy.pivots, da.Array)
    np.testing.assert_array_equal(host(lazy.pivots), host(found.pivots))
    np.testing.assert_array_equal(host(lazy.matrix.residues), host(found.matrix.residues))


@pytest.mark.parametrize("great", [True, False])
@pytest.mark.parametrize("alike", [True, False])
@pytest.mark.parametrize("shape", [(1, 5), (6, 20), (20, 20), (40, 23)])
def test_null_spaces_over_fields(
    on_each_processor: Processor,
    monkeypatch: pytest.MonkeyPatch,
    shape: tuple[int, int],
    alike: bool,
    great: bool,
    rng: np.random.Generator,
) -> None:
    """A stack of one rank modulo all primes, in whose middle and at whose ends columns depend on others."""
    if great:
        monkeypatch.setattr(echelon, "GREAT_WORDS", 0)
        monkeypatch.setattr(echelon, "BAND_WORDS", 3 * shape[1] * 2)
    rows, columns = shape
    fields = rd.PrimeFields([7, 65537, 4294967291])
    least = min(shape)
    stack = np.zeros((2, rows, columns), dtype=object)
    for values in stack:
        values[:least, :least] = np.eye(least, dtype=int)
        part = values[: least // 2, least // 2 :: 3]
        part[...] = integers(rng, 60, *part.shape)
        values[:, 3:least:4] = 0
        rng.shuffle(values)
    if not alike:
        stack[1] = stack[1][:, ::-1]
    words = rd.from_ints(stack, fields, chunks=None).residues
    x = rd.FieldArray(on_each_processor.xp.asarray(words), fields)
    basis = rd.linalg.nullspace(x)
    for i, p in enumerate(fields.primes):
        for b, values in enumerate(stack):
            form, pivots = flint_form(values, p)
            rank = sum(k >= 0 for k in pivots)
            free = sorted(set(range(columns)) - set(pivots))
            expected = np.zeros((columns, len(free)), dtype=object)
            expected[free] = np.eye(len(free), dtype=int)
            if rank and free:
                expected[pivots[:rank]] = -np.array(form, dtype=object)[:rank][:, free] % p
            assert host(basis.residues)[i, b].tolist() == expected.tolist()
    lazy = rd.linalg.nullspace(x.rechunk((1, -1, -1)))
    np.testing.assert_array_equal(host(lazy.residues), host(basis.residues))


@pytest.mark.parametrize("shape", EMPTY)
def test_forms_of_empty_matrices(on_each_processor: Processor, shape: tuple[int, int]) -> None:
    none = np.zeros((2, *shape), dtype=object)
    for x in (rd.from_ints(none, FIELDS, chunks=None), array_of(on_each_processor, none, MODULI, True)):
        form, *_, pivots = rd.linalg.rref(x)
        assert form.shape == (2, *shape)
        assert pivots.shape[-2:] == (2, 0)
        b = x[..., :1] if shape[1] else rd.concatenate([x, x], axis=-1)[..., :0]
        found = rd.linalg.solve(x, b, unique=False)
        found = found if isinstance(found, rd.FieldArray) else found[0]
        assert found.shape == (2, shape[1], b.shape[-1])
        basis = rd.linalg.nullspace(x)
        assert basis.shape == (2, shape[1], shape[1])
        basis = basis.to_ints() if isinstance(basis, rd.FieldArray) else basis
        assert (basis == np.eye(shape[1], dtype=object)).all()


@pytest.mark.parametrize("great", [True, False])
@pytest.mark.parametrize(("rows", "columns", "rank"), SHAPES)
def test_solutions_over_fields(
    on_each_processor: Processor,
    monkeypatch: pytest.MonkeyPatch,
    rows: int,
    columns: int,
    rank: int,
    great: bool,
    rng: np.random.Generator,
) -> None:
    if great:
        monkeypatch.setattr(echelon, "GREAT_WORDS", 0)
        monkeypatch.setattr(echelon, "BAND_WORDS", 3 * columns)
    stack = np.stack([of_rank(rng, rows, columns, k, 70) for k in (rank, min(rows, columns))])
    stack[1] *= 14
    right = stack @ integers(rng, 50, 2, columns, 3)

    def on(values: np.ndarray) -> rd.FieldArray:
        words = rd.from_ints(values, FIELDS, chunks=None).residues
        return rd.FieldArray(on_each_processor.xp.asarray(words), FIELDS)

    a, b = on(stack), on(right)
    found = rd.linalg.solve(a, b, unique=False)
    assert found.shape == (2, columns, 3)
    assert bool((a @ found == b).all())
    pivots, residues = host(rd.linalg.rref(a).pivots), host(found.residues)
    for row in range(FIELDS.rows):
        for k in range(2):
            free = sorted(set(range(columns)) - set(pivots[row, k].tolist()))
            assert not residues[row, k, free].any()
    lazy = rd.linalg.solve(a.rechunk((1, -1, -1)), b, unique=False)
    np.testing.assert_array_equal(host(lazy.residues), residues)
    vector = rd.linalg.solve(a[0], b[0, :, 1], unique=False)
    np.testing.assert_array_equal(host(vector.residues), residues[:, 0, :, 1])


def test_equations_without_solutions_over_fields(on_each_processor: Processor) -> None:
    fields = rd.PrimeFields([11, 7])
    a = rd.from_ints([[[1, 2], [2, 4]], [[1, 0], [0, 7]]], fields, chunks=None)
    b = rd.from_ints([[1], [2]], fields, chunks=None)
    message = r"the matrix at index \(1,\) makes equations without a solution modulo 7"
    for left in (a, a.rechunk((1, 2, 2))):
        with pytest.raises(np.linalg.LinAlgError, match=message):
            host(rd.linalg.solve(left, b, unique=False).residues)
    with pytest.raises(
        np.linalg.LinAlgError, match="the matrix makes equations without a solution modulo 11"
    ):
        rd.linalg.solve(a[0], rd.from_ints([1, 3], fields, chunks=None), unique=False)


# ---- the rationals ----------------------------------------------------------------------------------------


def check_rational(x: Any, values: np.ndarray) -> None:
    """The form and the null space of one matrix."""
    form, pivots = flint_form(values)
    numerators, denominator, found = rd.linalg.rref(x)
    assert host(found).tolist() == pivots
    assert [[Fraction(int(c), int(denominator)) for c in row] for row in numerators] == form
    assert math.gcd(denominator, *numerators.ravel().tolist()) == 1
    basis = rd.linalg.nullspace(x)
    rank = sum(k >= 0 for k in pivots)
    assert basis.shape == (values.shape[1], values.shape[1] - rank)
    assert not (values @ basis).any()
    free = sorted(set(range(values.shape[1])) - set(pivots))
    for k, vector in enumerate(basis.T.tolist()):
        assert math.gcd(*vector) == 1
        assert vector[free[k]] > 0
        assert not any(vector[free[k] + 1 :])
        assert not any(vector[j] for j in free if j != free[k])


@pytest.mark.parametrize(("rows", "columns", "rank"), SHAPES)
def test_rational_forms(
    on_each_processor: Processor, rows: int, columns: int, rank: int, rng: np.random.Generator
) -> None:
    values = of_rank(rng, rows, columns, rank)
    x = array_of(on_each_processor, values, MODULI, True)
    check_rational(x, values)
    solutions = integers(rng, 20, columns, 2)
    right = values @ solutions
    b = array_of(on_each_processor, right, MODULI, True)
    numerators, denominator = rd.linalg.solve(x, b, unique=False)
    assert (values @ numerators == denominator * right).all()
    assert math.gcd(denominator, *numerators.ravel().tolist()) == 1
    free = sorted(set(range(columns)) - set(flint_form(values)[1]))
    assert not numerators[free].any()
    one, below = rd.linalg.solve(x, b[:, 1], unique=False)
    assert (values @ one == below * right[:, 1]).all()


def test_primes_that_divide_minors(on_each_processor: Processor) -> None:
    """Modulo the first prime the rank is less, or the pivots are others, or the denominator is 0."""
    p, q = FIRST, SECOND
    for rows in (
        [[p, 1], [2 * p, 2]],
        [[p, 1, 5], [0, p, 7]],
        [[1, 2, 3], [1, 2 + p, 3], [1, 2, 3 + p * q]],
        [[p * q, 0], [0, p]],
        [[0, p, 1, 0], [0, 0, q, p], [0, p, 1 + q, p]],
        [[p] * 3] * 3,
        [[3, p], [5, q]],
    ):
        values = np.array(rows, dtype=object)
        x = array_of(on_each_processor, values, MODULI, True)
        check_rational(x, values)
        right = values.sum(axis=1)
        numerators, denominator = rd.linalg.solve(
            x, array_of(on_each_processor, right, MODULI, True), unique=False
        )
        assert (values @ numerators == denominator * right).all()
    a = array_of(on_each_processor, np.array([[1, 1], [1, 1]], dtype=object), MODULI, True)
    with pytest.raises(np.linalg.LinAlgError, match=r"the matrix makes equations without a solution$"):
        rd.linalg.solve(a, [0, p], unique=False)
    with pytest.raises(np.linalg.LinAlgError, match="the matrix is singular"):
        rd.linalg.solve(a, [p, p])


def test_stacks_of_integer_matrices(on_each_processor: Processor, rng: np.random.Generator) -> None:
    values = np.stack([of_rank(rng, 5, 7, 3) for _ in range(4)])
    x = array_of(on_each_processor, values, MODULI, True)
    lazy = chunked(x, 3, -1, -1)
    forms, basis = rd.linalg.rref(lazy), rd.linalg.nullspace(lazy)
    numerators, denominators, pivots = map(host, forms)
    assert pivots.dtype == np.int64
    assert not (values @ host(basis)).any()
    for b in range(4):
        own = rd.linalg.rref(x[b])
        assert own.numerators.tolist() == numerators[b].tolist()
        assert own.denominators == denominators[b]
        assert own.pivots.tolist() == pivots[b].tolist()
    right = np.array([*values[:3, :, 1], values[3, :, 1] + [1, 0, 0, 0, 0]])[..., None]
    b = array_of(on_each_processor, right, MODULI, True)
    found = rd.linalg.solve(lazy, b, unique=False)[0]
    with pytest.raises(np.linalg.LinAlgError, match=r"the matrix at index \(3,\) makes equations without"):
        found.compute()
    values[2] = 0
    with pytest.raises(ValueError, match=r"one rank, got 3 at index \(0,\) and 0 at index \(2,\)"):
        rd.linalg.nullspace(array_of(on_each_processor, values, MODULI, True))


def test_results_under_moduli(on_each_processor: Processor) -> None:
    x = array_of(on_each_processor, np.array([[2, 4, 6]], dtype=object), MODULI, True)
    basis = rd.linalg.nullspace(x, moduli=MODULI)
    assert isinstance(basis, rd.RNSArray)
    assert basis.to_ints().T.tolist() == [[-2, 1, 0], [-3, 0, 1]]
    intervals = rd.linalg.rref(rd.from_ints([[2, 4, 6]], rd.IntervalRNS(MODULI), chunks=None))
    assert intervals.numerators.tolist() == [[1, 2, 3]]


# ---- modulo integers --------------------------------------------------------------------------------------

COMPOSITES: list[Any] = [2, 12, 97, 2**64, 3**40 * 10**5, [4, 9, 25], [FIRST, SECOND], [2, 2**61 - 1, 15]]


def regular(rng: np.random.Generator, length: int, modulus: int) -> np.ndarray:
    """A matrix whose determinant is 1, but of which many elements are no units."""
    lower, upper = (np.eye(length, dtype=object) for _ in range(2))
    at = np.tril_indices(length, -1)
    lower[at] = rng.integers(0, 10**6, len(at[0])).tolist()
    upper.T[at] = rng.integers(0, 10**6, len(at[0])).tolist()
    return lower @ upper % (2**60)


@pytest.mark.parametrize("modulo", COMPOSITES)
@pytest.mark.parametrize("length", [0, 1, 2, 5, 9])
def test_inverses_modulo_integers(
    on_each_processor: Processor, modulo: Any, length: int, rng: np.random.Generator
) -> None:
    modulus = math.prod(modulo) if isinstance(modulo, list) else modulo
    values = integers(rng, 90, 12, length, length)
    is_regular = [math.gcd(int(of_flint(v).det()) if length else 1, modulus) == 1 for v in values]
    values = np.concatenate([values[np.array(is_regular)], integers(rng, 90, 1, length, length) * 0])
    values[-1] = regular(rng, length, modulus)
    x = array_of(on_each_processor, values, MODULI, True)
    for y in (x, chunked(x, 2, -1, -1)):
        found = host(rd.linalg.inv(y, modulo=modulo))
        assert ((values @ found - np.eye(length, dtype=object)) % modulus == 0).all()
        assert ((found >= 0) & (found < modulus)).all()
        right = integers(rng, 150, length, 2)
        b = array_of(on_each_processor, right, MODULI, True)
        solutions = host(rd.linalg.solve(y, b, modulo=modulo))
        assert ((values @ solutions - right) % modulus == 0).all()


def test_no_units_in_a_column(on_each_processor: Processor) -> None:
    """Its elements have no common factor with the modulus together, though each has one."""
    values = np.array([[2, 1, 0], [3, 1, 0], [0, 0, 5]], dtype=object)
    assert math.gcd(int(of_flint(values).det()), 6) == 1
    x = array_of(on_each_processor, values, MODULI, True)
    found = rd.linalg.inv(x, modulo=6)
    assert ((values @ found - np.eye(3, dtype=object)) % 6 == 0).all()


@pytest.mark.parametrize(
    ("modulo", "divisor"), [(12, 4), ([4, 3], 4), (10**40, 20), ([2, 3, 7], 2), (5**9, 5)]
)
def test_what_has_no_inverse_modulo_an_integer(
    on_each_processor: Processor, modulo: Any, divisor: int
) -> None:
    values = np.array([[[1, 0], [0, 1]], [[2, 3], [6, 19]]], dtype=object)
    assert int(of_flint(values[1]).det()) == 20
    x = array_of(on_each_processor, values, MODULI, True)
    message = rf"the matrix at index \(1,\) has no inverse modulo \d+.*: the greatest .* is {divisor}$"
    for function in (rd.linalg.inv, lambda y, modulo: rd.linalg.solve(y, [1, 2], modulo=modulo)):
        for y in (x, chunked(x, 1, -1, -1)):
            with pytest.raises(np.linalg.LinAlgError, match=message):
                host(function(y, modulo=modulo))


def test_singular_modulo_some_factors() -> None:
    x = rd.from_ints([[0, 0], [0, 0]], chunks=None)
    with pytest.raises(np.linalg.LinAlgError, match=r"has no inverse modulo 30: .* is 30"):
        rd.linalg.inv(x, modulo=30)
    with pytest.raises(np.linalg.LinAlgError, match="is 30"):
        rd.linalg.inv(x, modulo=[2, 3, 5])


def raising(call: Callable[[], Any], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        call()


def test_what_is_refused() -> None:
    x = rd.from_ints([[1, 2], [3, 4]], chunks=None)
    y = rd.from_ints([[1, 2], [3, 4]], rd.PrimeFields([7]), chunks=None)
    wide = rd.from_ints([[1, 2, 3], [3, 4, 5]], chunks=None)
    raising(lambda: rd.linalg.inv(x, modulo=1), ValueError, "modulo must be at least 2, got 1")
    raising(lambda: rd.linalg.inv(x, modulo=[]), ValueError, "modulo must be at least 2")
    raising(lambda: rd.linalg.inv(x, modulo=[6, 4]), ValueError, "coprime, got 4, which shares 2")
    raising(lambda: rd.linalg.inv(x, modulo=2.5), TypeError, "modulo")
    raising(lambda: rd.linalg.inv(y, modulo=7), TypeError, "inv of a FieldArray takes no modulo")
    raising(lambda: rd.linalg.solve(x, [1, 2], modulo=7, unique=False), TypeError, "square matrices only")
    raising(lambda: rd.linalg.solve(wide, [1, 2]), ValueError, "square")
    raising(lambda: rd.linalg.solve(wide, [1, 2, 3], unique=False), ValueError, "do not fit")
    raising(lambda: rd.linalg.rref([[1]]), TypeError, "rref takes arrays of numbers")
    raising(lambda: rd.linalg.rref(x[0]), ValueError, "two axes")
    raising(lambda: rd.linalg.det(x, variables=2), ValueError, "variables must be 0 or 1, got 2")
