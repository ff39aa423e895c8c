"""Determinants of matrices of polynomials against FLINT's at enough points, and closed forms."""

from typing import Any

import dask.array as da
import flint
import numpy as np
import pytest
from conftest import Processor
from integer_matrices import integers, of_flint
from sample_arrays import array_of, chunked, host

import rnsdask as rd
from rnsdask.fields import polynomial_determinants
from rnsdask.rns.lift import primes

MODULI = rd.ModuliSet.for_bits(200)


def value(polynomial: Any, point: int) -> Any:
    """Value of coefficients along the last axis."""
    return sum(c * point**k for k, c in enumerate(np.moveaxis(np.asarray(polynomial), -1, 0)))


def check(x: Any, matrices: np.ndarray) -> None:
    """Compare with determinants of values, at as many points as there are coefficients."""
    found = host(rd.linalg.det(x, variables=1))
    rows, coefficients = matrices.shape[-2:]
    length = rows * (coefficients - 1) + 1
    assert found.shape == (*matrices.shape[:-3], length)
    for index in np.ndindex(*matrices.shape[:-3]):
        for point in range(-(length // 2), length - length // 2):
            expected = int(of_flint(value(matrices[index], point)).det()) if rows else 1
            assert value(found[index], point) == expected


@pytest.mark.parametrize("rows", [1, 2, 3, 6])
@pytest.mark.parametrize(("coefficients", "bits"), [(1, 60), (2, 1), (5, 70)])
def test_determinants(
    on_each_processor: Processor, rows: int, coefficients: int, bits: int, rng: np.random.Generator
) -> None:
    values = integers(rng, bits, 3, rows, rows, coefficients)
    values[1, -1] = values[1, 0] * 2 if rows > 1 else 0
    values[2, :, 0] = 0
    values[2, :, 0, -1] = 2**bits
    x = array_of(on_each_processor, values, MODULI, True)
    check(x, values)
    check(chunked(x, 2, -1, -1, -1), values)
    check(x[0], values[0])


def test_empty_matrices(on_each_processor: Processor) -> None:
    for shape in ((0, 0, 3), (2, 0, 0, 1), (0, 2, 2, 2)):
        values = np.zeros(shape, dtype=object)
        check(array_of(on_each_processor, values, MODULI, True), values)


def test_greatest_coefficients(on_each_processor: Processor) -> None:
    """Hadamard's matrices of constants or of powers of z: a coefficient is the bound itself."""
    rows = np.array([[1]], dtype=object)
    while len(rows) < 8:
        rows = np.block([[rows, rows], [rows, -rows]])
    for degree in (0, 2):
        for last in (1, 2**70, primes(0, 1)[0]):
            values = np.zeros((8, 8, degree + 1), dtype=object)
            values[..., degree] = last * rows
            x = array_of(on_each_processor, values, MODULI, True)
            found = rd.linalg.det(x, variables=1)
            assert found.tolist() == [0] * (8 * degree) + [int(of_flint(rows).det()) * last**8]
            assert polynomial_determinants.bound(x.residues, x.system) >= abs(found[-1])


def test_characteristic_polynomial(on_each_processor: Processor, rng: np.random.Generator) -> None:
    matrix = integers(rng, 40, 12, 12)
    values = np.stack([-matrix, np.eye(12, dtype=object)], axis=-1)
    x, y = (array_of(on_each_processor, v, MODULI, True) for v in (values, matrix))
    assert rd.linalg.det(x, variables=1).tolist() == rd.linalg.charpoly(y).tolist()


def test_many_points_in_parts(
    on_each_processor: Processor, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(polynomial_determinants, "VALUES_WORDS", 100)
    values = integers(rng, 30, 2, 4, 4, 6)
    check(array_of(on_each_processor, values, MODULI, True), values)


def test_over_fields(on_each_processor: Processor, rng: np.random.Generator) -> None:
    fields = rd.PrimeFields([23, 65537, 4294967291])
    values = integers(rng, 20, 2, 4, 4, 6)
    values[1, 0] = 23
    x = rd.from_ints(values, fields, chunks=None)
    x = rd.FieldArray(on_each_processor.xp.asarray(x.residues), fields)
    found = host(rd.linalg.det(x, variables=1).residues)
    exact = rd.linalg.det(rd.from_ints(values, MODULI, signed=True, chunks=None), variables=1)
    for row, p in enumerate(fields.primes):
        assert (found[row] == exact % p).all()
    lazy = rd.linalg.det(x.rechunk((1, -1, -1, -1)), variables=1)
    assert isinstance(lazy.words, da.Array)
    np.testing.assert_array_equal(host(lazy.residues), found)
    few = rd.FieldArray(x.residues[:1] % 19, rd.PrimeFields([19]))
    with pytest.raises(ValueError, match=r"primes of at least 21, .* of shape \(2, 4, 4, 6\), got 19"):
        rd.linalg.det(few, variables=1)


def test_results_under_moduli_and_intervals() -> None:
    x = rd.from_ints([[[1, 1], [2, 0]], [[0, -3], [1, 1]]], MODULI, signed=True, chunks=None)
    found = rd.linalg.det(x, variables=1, moduli=MODULI)
    assert found.to_ints().tolist() == [1, 8, 1]
    intervals = rd.IntervalRNSArray.from_rns(x)
    assert rd.linalg.det(intervals, variables=1).tolist() == [1, 8, 1]
    polynomial = flint.fmpz_poly([1, 1]) * flint.fmpz_poly([1, 1]) - flint.fmpz_poly([0, -6])
    assert [int(c) for c in polynomial.coeffs()] == [1, 8, 1]


def test_what_is_refused() -> None:
    x = rd.from_ints([[1, 2], [3, 4]], MODULI, chunks=None)
    with pytest.raises(ValueError, match=r"polynomials, which have three axes, got shape \(2, 2\)"):
        rd.linalg.det(x, variables=1)
    with pytest.raises(ValueError, match=r"square matrices, got shape \(1, 2, 2\)"):
        rd.linalg.det(x[None], variables=1)
    with pytest.raises(ValueError, match=r"coefficients, got shape \(2, 2, 0\)"):
        rd.linalg.det(rd.stack([x, x], axis=-1)[..., :0], variables=1)
    lazy = rd.stack([x, x], axis=-1).rechunk((2, 2, 1))
    with pytest.raises(ValueError, match=r"one chunk, got 1 x 1 x 2; x.rechunk\(\{0: -1, 1: -1, 2: -1\}\)"):
        rd.linalg.det(lazy, variables=1)
