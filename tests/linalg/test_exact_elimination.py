"""Exact linear algebra of integer matrices against FLINT's, closed forms and substitution."""

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
from conftest import Processor
from integer_matrices import integers, of_flint
from sample_arrays import array_of, chunked, host

import rnsdask as rd
from rnsdask.fields import bareiss
from rnsdask.lazy import exact_elimination
from rnsdask.rns.lift import primes

pytestmark = pytest.mark.parametrize("most_steps", [bareiss.MOST_STEPS, 0], ids=["direct", "images"])

MODULI = rd.ModuliSet.for_bits(200)
SMALL = rd.ModuliSet([2**32, 3, 5])


@pytest.fixture(autouse=True)
def _in_this_thread(most_steps: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """With small matrices eliminated without fractions, and with none."""
    monkeypatch.setattr(bareiss, "MOST_STEPS", most_steps)
    with dask.config.set(scheduler="sync"):
        yield


def check(x: Any, values: np.ndarray) -> None:
    """Determinants, ranks and polynomials of an array of the values (batch, N, N)."""
    determinants, ranks, polynomials = rd.linalg.det(x), rd.linalg.rank(x), rd.linalg.charpoly(x)
    for b, matrix in enumerate(map(of_flint, values)):
        assert host(determinants)[b] == int(matrix.det())
        assert host(ranks)[b] == matrix.rank()
        assert host(polynomials)[b].tolist() == [int(c) for c in matrix.charpoly().coeffs()]


@pytest.mark.parametrize("length", [1, 2, 3, 5, 12])
@pytest.mark.parametrize("bits", [1, 31, 130])
def test_square_matrices(
    on_each_processor: Processor, length: int, bits: int, rng: np.random.Generator
) -> None:
    values = integers(rng, bits, 4, length, length)
    values[1, -1] = values[1, 0] * 2 if length > 1 else 0
    values[2, :, 0] = 0
    right = integers(rng, bits, 4, length, 3)
    x = array_of(on_each_processor, values, MODULI, True)
    b = array_of(on_each_processor, right, MODULI, True)
    check(x, values)
    check(chunked(x, 3, -1, -1), values)
    for index in (0, 3):
        if of_flint(values[index]).det() != 0:
            check_solutions(x[index], b[index], values[index], right[index])
            check_solutions(x[index], b[index, :, 1], values[index], right[index, :, 1])
    assert rd.linalg.det(x[3]) == host(rd.linalg.det(x))[3]
    assert rd.linalg.rank(x[3]) == host(rd.linalg.rank(x))[3]


def check_solutions(x: Any, b: Any, values: np.ndarray, right: np.ndarray) -> None:
    """By substitution, and that the denominators are the least."""
    numerators, denominator = rd.linalg.solve(x, b)
    assert (values @ numerators == right * denominator).all()
    assert denominator > 0
    assert math.gcd(denominator, *numerators.ravel().tolist()) == 1
    inverse, common = rd.linalg.inv(x)
    assert (values @ inverse == np.eye(len(values), dtype=object) * common).all()
    assert common > 0
    assert math.gcd(common, *inverse.ravel().tolist()) == 1


def test_ranks_of_any_shape(on_each_processor: Processor, rng: np.random.Generator) -> None:
    for rows, columns, rank in ((7, 4, 2), (4, 9, 3), (6, 6, 5), (1, 5, 1), (5, 5, 0), (3, 0, 0)):
        values = integers(rng, 40, 2, rows, rank) @ integers(rng, 40, 2, rank, columns) + 0 * np.zeros(
            (rows, columns), dtype=object
        )
        x = array_of(on_each_processor, values, MODULI, True)
        expected = [of_flint(v).rank() if columns else 0 for v in values]
        assert host(rd.linalg.rank(x)).tolist() == expected


def test_primes_that_divide_determinants(on_each_processor: Processor) -> None:
    """Singular modulo the very primes that images are computed by: the first, and all of a part."""
    first, second = primes(0, 32), primes(32, 32)
    diagonals = ([first[0], 1, -1], [first[0], first[1], second[0]], [1, first[31], first[31]], [3, 5, 7])
    values = np.stack([np.diag(np.array(d, dtype=object)) for d in diagonals])
    values[:, 0, 2] = 11
    x = array_of(on_each_processor, values, MODULI, True)
    check(x, values)
    numerators, denominators = rd.linalg.inv(x)
    for value, numerator, denominator in zip(values, numerators, denominators, strict=True):
        assert (value @ numerator == np.eye(3, dtype=object) * denominator).all()
    wide = rd.ModuliSet.for_bits(first.bits + 40)
    product = np.array([[first.product, 1], [0, 1]], dtype=object)
    y = array_of(on_each_processor, product, wide, True)
    assert rd.linalg.det(y) == first.product
    assert rd.linalg.rank(y) == 2
    assert rd.linalg.rank(y[:, :1]) == 1
    found, denominator = rd.linalg.inv(y)
    assert denominator == first.product
    assert found.tolist() == [[1, -1], [0, first.product]]


def test_hilbert_like_matrix(on_each_processor: Processor) -> None:
    """Times the least common multiple of its denominators; its determinant has a closed form."""
    length = 120 if on_each_processor.name == "cpu" else 60
    common = math.lcm(*range(1, 2 * length))
    values = np.array([[common // (i + j + 1) for j in range(length)] for i in range(length)], dtype=object)
    x = array_of(on_each_processor, values, rd.ModuliSet.for_bits(common.bit_length() + 2), True)
    products = math.prod(math.factorial(k) for k in range(length)) ** 4
    expected = Fraction(products, math.prod(math.factorial(k) for k in range(2 * length))) * common**length
    assert rd.linalg.det(x) == expected


def test_large_matrices(on_each_processor: Processor, rng: np.random.Generator) -> None:
    """Matrices that the CPU lifts p-adically: in a stack, regular and singular, and lazy."""
    length = 130
    values, right = integers(rng, 31, 3, length, length), integers(rng, 40, 3, length, 1)
    values[1, 5] = values[1, 7] + values[1, 9]
    values[2] = np.eye(length, dtype=object)[rng.permutation(length)] * 3
    x, b = (array_of(on_each_processor, v, MODULI, True) for v in (values, right))
    expected = [int(of_flint(v).det()) for v in values]
    assert expected[1] == 0
    assert host(rd.linalg.det(x)).tolist() == expected
    assert host(rd.linalg.det(chunked(x, 2, -1, -1))).tolist() == expected
    assert host(rd.linalg.rank(x)).tolist() == [length, length - 1, length]
    for index in (0, 2):
        numerators, denominator = rd.linalg.solve(x[index], b[index])
        assert (values[index] @ numerators == right[index] * denominator).all()
        assert type(numerators[0, 0]) is type(denominator) is int
    lazy = chunked(x, 1, -1, -1)
    for y, where in ((x, 1), (lazy, 1), (lazy[1:], 0)):
        with pytest.raises(np.linalg.LinAlgError, match=rf"the matrix at index \({where},\) is singular$"):
            dask.compute(*rd.linalg.solve(y, b[3 - len(y) :]))


def test_kinds_and_ranges(on_each_processor: Processor, rng: np.random.Generator) -> None:
    """Unsigned, with a bound, of intervals, views, and under the least moduli."""
    values = abs(integers(rng, 30, 3, 4, 4))
    for moduli in (SMALL, MODULI):
        x = array_of(on_each_processor, values, moduli)
        check(x, values)
        check(x.with_bound(2**30), values)
        check(x.transpose(0, 2, 1), values.transpose(0, 2, 1))
    signed = array_of(on_each_processor, -values, MODULI, True)
    check(rd.IntervalRNSArray.from_rns(signed), -values)
    numerators, denominators = rd.linalg.solve(*[rd.IntervalRNSArray.from_rns(signed)] * 2)
    assert (numerators == np.eye(4, dtype=int)).all()
    assert (denominators == 1).all()
    for is_signed in (False, True):
        bit = array_of(on_each_processor, np.array([[-1 if is_signed else 1]]), rd.ModuliSet([2]), is_signed)
        assert rd.linalg.det(bit) == rd.linalg.inv(bit)[0][0, 0] == (-1 if is_signed else 1)


def test_chunks_and_batches(on_each_processor: Processor, rng: np.random.Generator) -> None:
    values, right = integers(rng, 60, 2, 3, 4, 4), integers(rng, 20, 3, 4, 2)
    x = array_of(on_each_processor, values, MODULI, True)
    b = array_of(on_each_processor, right, MODULI, True, 2**20)
    numerators, denominators = rd.linalg.solve(x, b)
    assert (values @ numerators == right * denominators[..., None, None]).all()
    lazy = chunked(x, 1, 2, -1, -1)
    for found, expected in zip(rd.linalg.solve(lazy, b), (numerators, denominators), strict=True):
        assert (host(found) == expected).all()
    one = rd.linalg.det(lazy[0, 0])
    assert one.compute() == rd.linalg.det(x[0, 0])
    assert (np.linalg.det(x) == rd.linalg.det(x)).all()
    assert host(np.linalg.matrix_rank(x)).tolist() == [[4] * 3] * 2


def test_intervals_of_unknown_length(rng: np.random.Generator) -> None:
    """Matrices that a lazy mask has selected."""
    values, mask = integers(rng, 60, 3, 4, 4), np.array([True, False, True])
    x = rd.IntervalRNSArray.from_ints(values, MODULI, chunks=(1, 4, 4))

    def some() -> Any:
        return x[da.from_array(mask, chunks=1)]

    check(some(), values[mask])
    assert (
        rd.linalg.det(some(), moduli=rd.ModuliSet.for_bits(260)).to_ints() == host(rd.linalg.det(x))[mask]
    ).all()
    for found in (
        rd.linalg.inv(some()),
        rd.linalg.solve(some(), rd.IntervalRNSArray.from_ints(np.eye(4, dtype=int), MODULI)),
    ):
        for part, expected in zip(found, rd.linalg.inv(x), strict=True):
            assert (host(part) == host(expected)[mask]).all()


def test_results_under_moduli(on_each_processor: Processor, rng: np.random.Generator) -> None:
    """RNSArrays of the results, lazy where the matrices are; out of range an error with the index."""
    values, right = integers(rng, 30, 3, 4, 4), integers(rng, 20, 3, 4)[..., None]
    wide = rd.ModuliSet.for_bits(180)
    x, b = (array_of(on_each_processor, v, MODULI, True) for v in (values, right))
    for y in (x, chunked(x, 2, -1, -1), rd.IntervalRNSArray.from_rns(x)):
        c = rd.IntervalRNSArray.from_rns(b) if isinstance(y, rd.IntervalRNSArray) else b
        calls = (
            (rd.linalg.det, (y,)),
            (rd.linalg.charpoly, (y,)),
            (rd.linalg.inv, (y,)),
            (rd.linalg.solve, (y, c)),
        )
        for function, operands in calls:
            for moduli in (wide, rd.RNS(wide, signed=True)):
                found, expected = function(*operands, moduli=moduli), function(*operands)
                pairs = zip(found, expected, strict=True) if type(found) is tuple else [(found, expected)]
                for array, integers_of in pairs:
                    assert isinstance(array, rd.RNSArray)
                    assert isinstance(array.words, da.Array) == isinstance(y.words, da.Array)
                    assert array.system == rd.RNS(wide, signed=True)
                    assert (host(array.to_ints()) == host(integers_of)).all()
    for scheduler in ("sync", "threads"):
        one = rd.linalg.det(chunked(x, 1, -1, -1)[1], moduli=wide)
        assert host(one.compute(scheduler=scheduler).to_ints()).tolist() == [rd.linalg.det(x[1])]
        (same,) = dask.compute(one, scheduler=scheduler)
        assert host(same.to_ints()).tolist() == [rd.linalg.det(x[1])]
    assert rd.linalg.det(x[1], moduli=wide).to_ints().tolist() == [rd.linalg.det(x[1])]
    tight = np.stack([np.eye(2, dtype=object) * k for k in (1, 2, 3, 50)])
    z = array_of(on_each_processor, tight, MODULI, True)
    small = rd.ModuliSet([2**11 - 1])
    for y in (z, chunked(z, 2, -1, -1)):
        with pytest.raises(rd.RNSOverflowError) as caught:
            rd.linalg.det(y, moduli=small).compute()
        assert caught.value.index == 3
        assert "give moduli of more bits" in str(caught.value)
    with pytest.raises(rd.RNSOverflowError):
        rd.linalg.det(
            array_of(on_each_processor, -tight[:1, :1, :1], MODULI, True), moduli=rd.RNS(small)
        ).compute()
    with pytest.raises(TypeError, match=r"^det takes a ModuliSet or an RNS, got moduli=7$"):
        rd.linalg.det(x, moduli=7)
    with pytest.raises(TypeError, match=r"^inv of a FieldArray takes no moduli"):
        rd.linalg.inv(rd.FieldArray.from_rns(x, rd.PrimeFields([101])), moduli=small)


def test_groups_of_primes(
    on_each_processor: Processor, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    """One matrix as many tasks: those of primes that its elements do not need say nothing."""
    for name in ("cpu", "cuda"):
        monkeypatch.setitem(exact_elimination.STEPS, name, 1)
    hadamard = np.array([[1, 1], [1, -1]], dtype=object)
    for bits, batch, length in ((20, 1, 6), (199, 2, 7), (3, 3, 2)):
        values = integers(rng, bits, batch, length, length)
        values[0, 0] = 0
        if length == 2:
            values[1:] = hadamard * 2**199
        x = chunked(array_of(on_each_processor, values, MODULI, True), 1, -1, -1)
        determinants, polynomials = rd.linalg.det(x), rd.linalg.charpoly(x)
        if length > 2:
            assert sum("matrix-charpoly" in str(key) for key in polynomials.dask) >= 3 * batch
        assert host(determinants).tolist() == [int(of_flint(v).det()) for v in values]
        expected = [[int(c) for c in of_flint(v).charpoly().coeffs()] for v in values]
        assert host(polynomials).tolist() == expected
        assert rd.linalg.det(x[0]).compute() == 0
        assert host(rd.linalg.det(x, moduli=rd.ModuliSet.for_bits(2000)).to_ints()).tolist() == [
            int(of_flint(v).det()) for v in values
        ]
    none = chunked(array_of(on_each_processor, np.zeros((0, 3, 3), dtype=object), MODULI, True), 1, -1, -1)
    assert host(rd.linalg.det(none)).shape == (0,)


def test_solutions_in_groups_of_primes(
    on_each_processor: Processor, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    """Primes of some groups, or of all of the first, divide determinants: others are taken."""
    for name in ("cpu", "cuda"):
        monkeypatch.setitem(exact_elimination.STEPS, name, 1)
    first = primes(0, 40)
    for bits, batch, length in ((150, 2, 7), (199, 1, 5), (150, 3, 5)):
        values, right = integers(rng, bits, batch, length, length), integers(rng, bits, batch, length, 2)
        values[0, 0] *= math.prod(first[k] for k in (0, 17, 33)) if bits < 190 else 1
        if batch == 3:
            values[1, 0, 0] += 1
            values[2] = np.diag([first[0], first[1], 1, -1, 7])
        wide = rd.ModuliSet.for_bits(400)
        x = chunked(array_of(on_each_processor, values, wide, True, 2**300), 2, -1, -1)
        b = array_of(on_each_processor, right, wide, True)
        inverses, common = rd.linalg.inv(x)
        assert sum("matrix-inv" in str(key) for key in inverses.dask) >= 3
        numerators, denominators = rd.linalg.solve(x, b)
        none, of_none = rd.linalg.solve(x, b[..., :0])
        assert none.compute().shape == (batch, length, 0)
        assert host(of_none).tolist() == [1] * batch
        found = dask.compute(inverses, common, numerators, denominators)
        for matrix, vectors, inverse, one, above, below in zip(values, right, *found, strict=True):
            assert (matrix @ inverse == np.eye(length, dtype=object) * one).all()
            assert (matrix @ above == vectors * below).all()
            assert min(one, below) > 0
            assert math.gcd(one, *inverse.ravel().tolist()) == 1
            assert math.gcd(below, *above.ravel().tolist()) == 1
            assert type(one) is type(inverse[0, 0]) is type(above[0, 0]) is int
        values[-1, 2] = values[-1, 1]
        singular = chunked(array_of(on_each_processor, values, wide, True), 1, -1, -1)
        for call in (rd.linalg.inv, lambda z, b=b: rd.linalg.solve(z, b)):
            with pytest.raises(
                np.linalg.LinAlgError, match=rf"matrix at index \({batch - 1},\) is singular$"
            ):
                dask.compute(*call(singular))


def test_singular_matrices(on_each_processor: Processor) -> None:
    values = np.ones((2, 2, 3, 3), dtype=object) * 2**90
    values[0] = np.eye(3, dtype=int)
    x = array_of(on_each_processor, values, MODULI, True)
    assert host(rd.linalg.det(x)).tolist() == [[1, 1], [0, 0]]
    for y in (x, chunked(x, 1, 1, -1, -1)[:, ::-1]):
        for call in (rd.linalg.inv, lambda z: rd.linalg.solve(z, z)):
            with pytest.raises(np.linalg.LinAlgError, match=r"the matrix at index \(1, [01]\) is singular$"):
                dask.compute(*call(y))
    with pytest.raises(np.linalg.LinAlgError, match=r"^the matrix is singular$"):
        rd.linalg.inv(x[1, 1])


def test_empty_matrices(on_each_processor: Processor) -> None:
    for batch in ((), (0,), (2,)):
        x = array_of(on_each_processor, np.zeros((*batch, 0, 0), dtype=object), MODULI, True)
        assert (np.asarray(rd.linalg.det(x)) == np.ones(batch, dtype=object)).all()
        assert (host(rd.linalg.charpoly(x)) == 1).all()
        assert rd.linalg.charpoly(x).shape == (*batch, 1)
        assert host(rd.linalg.rank(x)).tolist() == np.zeros(batch).tolist()
        numerators, denominators = rd.linalg.inv(x)
        assert numerators.shape == (*batch, 0, 0)
        assert (np.asarray(denominators) == np.ones(batch, dtype=object)).all()
    none = array_of(on_each_processor, np.zeros((0, 3, 3), dtype=object), MODULI, True)
    assert rd.linalg.det(none).shape == (0,)
    assert [part.shape for part in rd.linalg.solve(none, none[..., :2])] == [(0, 3, 2), (0,)]


def test_what_is_refused(on_each_processor: Processor) -> None:
    x = array_of(on_each_processor, np.ones((2, 3, 3), dtype=object), MODULI, True)
    for function in (rd.linalg.det, rd.linalg.inv, rd.linalg.charpoly):
        with pytest.raises(ValueError, match=r"takes square matrices, got shape \(2, 3, 2\)"):
            function(x[..., :2])
    with pytest.raises(TypeError, match=r"RNSArrays and FieldArrays do not mix"):
        rd.linalg.solve(x, rd.FieldArray.from_rns(x, rd.PrimeFields([7])))
    with pytest.raises(ValueError, match="different moduli sets"):
        rd.linalg.solve(x, array_of(on_each_processor, np.ones(3, dtype=object), SMALL, True))
    with pytest.raises(TypeError, match="lu takes a FieldArray, got RNSArray"):
        rd.linalg.lu(x)
