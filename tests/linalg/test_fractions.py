"""Linear algebra of matrices of fractions, and files of their entries, against FLINT's rational matrices."""

import gzip
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import dask.array as da
import flint
import gmpy2
import numpy as np
import pytest
import sympy

import rnsdask as rd
from rnsdask.core.errors import InputError, JobError

HALF, THIRD = Fraction(1, 2), Fraction(1, 3)
LONG = Fraction(10**60 + 1, 7**80)


def drawn(rng: np.random.Generator, shape: tuple[int, ...], rank: int | None = None) -> np.ndarray:
    """Fractions, every third of them 0; with a rank, products of two thin matrices."""
    if rank is not None:
        rows, columns = shape
        return drawn(rng, (rows, rank)) @ drawn(rng, (rank, columns))
    found = np.empty(shape, dtype=object)
    for index in np.ndindex(shape):
        above, below = int(rng.integers(-9, 10)), int(rng.integers(1, 13))
        found[index] = Fraction(above, below) if rng.integers(3) else Fraction(0)
    return found


def as_flint(a: Any) -> flint.fmpq_mat:
    a = np.asarray(a)
    items = [flint.fmpq(int(v.numerator), int(v.denominator)) for v in a.flat]
    return flint.fmpq_mat(*a.shape, items)


def from_flint(a: flint.fmpq_mat) -> list[list[Fraction]]:
    return [[Fraction(int(v.p), int(v.q)) for v in row] for row in a.tolist()]


def quotients(numerators: Any, denominator: Any) -> list[Any]:
    return (np.asarray(numerators) * Fraction(1, int(denominator))).tolist()


@pytest.mark.parametrize(("shape", "rank"), [((1, 1), 1), ((5, 5), 5), ((4, 7), 2), ((7, 4), 3), ((6, 6), 5)])
def test_matrices_of_any_rank(shape: tuple[int, int], rank: int, rng: np.random.Generator) -> None:
    a = drawn(rng, shape, rank)
    form, found = as_flint(a).rref()
    result = rd.linalg.rref(a)
    assert quotients(result.numerators, result.denominators) == from_flint(form)
    assert rd.linalg.rank(a) == found == (result.pivots >= 0).sum()
    null = rd.linalg.nullspace(a)
    assert null.shape == (shape[1], shape[1] - found)
    assert not (a @ null).any()
    assert rd.linalg.rank(rd.from_ints(null, chunks=None)) == null.shape[1]
    x = drawn(rng, (shape[1], 2))
    solved = quotients(*rd.linalg.solve(a, a @ x, unique=False))
    assert (a @ np.array(solved) == a @ x).all()


def test_square_matrices(rng: np.random.Generator) -> None:
    a = drawn(rng, (4, 4))
    while not as_flint(a).det():
        a = drawn(rng, (4, 4))
    exact = as_flint(a)
    det = rd.linalg.det(a)
    assert isinstance(det, Fraction)
    assert det == Fraction(int(exact.det().p), int(exact.det().q))
    assert quotients(*rd.linalg.inv(a)) == from_flint(exact.inv())
    b = drawn(rng, (4,))
    expected = [row[0] for row in from_flint(exact.solve(as_flint(b[:, None])))]
    for vector in (b, b.tolist()):
        assert quotients(*rd.linalg.solve(a, vector)) == expected
    numerators, denominator = rd.linalg.solve(a, b[:, None])
    assert (numerators.shape, quotients(numerators, denominator)) == ((4, 1), [[v] for v in expected])
    assert np.gcd.reduce([*numerators.flat, int(denominator)]) == 1
    assert denominator > 0


def test_stacks(rng: np.random.Generator) -> None:
    a = np.stack([drawn(rng, (3, 3)) + 20 * np.eye(3, dtype=object) for _ in range(2)])
    dets = rd.linalg.det(a)
    assert dets.shape == (2,)
    b = drawn(rng, (3, 2))
    numerators, denominators = rd.linalg.solve(a, b)
    for k in range(2):
        assert dets[k] == rd.linalg.det(a[k])
        assert quotients(numerators[k], denominators[k]) == from_flint(as_flint(a[k]).solve(as_flint(b)))
        inverse, below = rd.linalg.inv(a)
        assert quotients(inverse[k], below[k]) == from_flint(as_flint(a[k]).inv())


def test_integers_beside_fractions() -> None:
    a, b = [[2, 1], [1, 1]], [HALF, THIRD]
    for integers in (rd.from_ints(a), rd.from_ints(a, chunks=None), rd.from_ints(a, bits=64), np.array(a), a):
        assert quotients(*rd.linalg.solve(integers, b)) == [Fraction(1, 6), Fraction(1, 6)]
    for integers in (rd.from_ints([3, 2]), np.array([3, 2]), [3, 2]):
        assert quotients(*rd.linalg.solve([[HALF, 0], [0, THIRD]], integers)) == [6, 6]
    with pytest.raises(TypeError, match="takes arrays of integers beside them, got a FieldArray; in fields"):
        rd.linalg.solve([[HALF]], rd.from_ints([1], rd.PrimeFields([7])))
    with pytest.raises(TypeError, match="takes arrays of integers beside them, got a FieldArray; in fields"):
        rd.linalg.solve(rd.from_ints([[1]], rd.PrimeFields([7])), [HALF])


def test_items_of_other_libraries() -> None:
    expected = rd.linalg.rref([[HALF, 3], [THIRD, 1]])
    for half, third in (
        (gmpy2.mpq(1, 2), gmpy2.mpq(1, 3)),
        (flint.fmpq(1, 2), flint.fmpq(1, 3)),
        (sympy.Rational(1, 2), sympy.Rational(1, 3)),
    ):
        for a in ([[half, 3], [third, 1]], np.array([[half, 3], [third, 1]], dtype=object)):
            found = rd.linalg.rref(a)
            assert found.numerators.tolist() == expected.numerators.tolist()
            assert found.denominators == expected.denominators


def test_numerators_over_denominators() -> None:
    above = np.array([[1, -2], [3, 10**40]], dtype=object)
    entries = [[Fraction(1, 2), Fraction(-2, 2)], [Fraction(3, 5), Fraction(10**40, 5)]]
    rows_below = np.array([[2], [5]], dtype=object)
    for below in (rows_below, -rows_below * [[-1]], np.broadcast_to(rows_below, (2, 2))):
        assert rd.linalg.det(rd.Fractions(above, below)) == rd.linalg.det(entries)
    assert rd.linalg.det(rd.Fractions(above, np.array([[-2], [5]]))) == -rd.linalg.det(entries)
    assert rd.linalg.det(rd.Fractions(above, np.array(3))) == rd.linalg.det(above * Fraction(1, 3))
    lazy = rd.Fractions(da.from_array(above, chunks=1), da.from_array(rows_below, chunks=1))
    assert rd.linalg.rank(lazy) == 2
    with pytest.raises(ValueError, match=r"denominators must not be 0, got 0 at index \(1, 0\)"):
        rd.linalg.rref(rd.Fractions(above, np.array([[1], [0]])))
    with pytest.raises(ValueError, match=r"got shape \(2,\); denominators\[\.\.\., None\] are those of rows"):
        rd.linalg.rref(rd.Fractions(above, np.array([1, 2])))


def test_fractions_from_residues_go_on() -> None:
    fields = rd.PrimeFields([2**31 - 1, 2147483629])
    a = rd.from_ints([[1, 4], [2, 6]], fields, chunks=None) / [[3, 7], [5, 1]]
    found = rd.rational_reconstruct(a, numerator_bound=100, denominator_bound=100)
    assert rd.linalg.det(found) == Fraction(1, 3) * 6 - Fraction(4, 7) * Fraction(2, 5)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda a: rd.linalg.rref([*a, [HALF, 0.5]]),
            r"rref takes integers and fractions, got 0\.5 at index \(2, 1\)",
        ),
        (
            lambda a: rd.linalg.solve(a, [1, 2], modulo=7),
            "solve of fractions takes no modulo; rd.from_ints of rows",
        ),
        (lambda a: rd.linalg.inv(a, modulo=7), "inv of fractions takes no modulo; rd.from_ints of rows"),
        (
            lambda a: rd.linalg.det(a, variables=1),
            "det of fractions takes no variables=1; rd.from_ints of rows",
        ),
        (lambda a: rd.linalg.det(a, moduli=rd.ModuliSet.for_bits(64)), "det of fractions takes no moduli"),
    ],
)
def test_what_is_not_there(call: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        call([[HALF, 1], [1, THIRD]])


def test_shapes_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match=r"shapes \(2, 2\) and \(3,\) do not fit"):
        rd.linalg.solve([[HALF, 1], [1, 1]], [1, 2, 3])
    with pytest.raises(ValueError, match="inv takes square matrices"):
        rd.linalg.inv([[HALF, 1]])
    with pytest.raises(np.linalg.LinAlgError, match="singular"):
        rd.linalg.inv([[HALF, 1], [HALF, 1]])


# ---- files ------------------------------------------------------------------------------------------------


def test_files_of_entries(rng: np.random.Generator, tmp_path: Path) -> None:
    a = drawn(rng, (5, 4))
    a[1, 2] = LONG
    entries = {index: value for index, value in np.ndenumerate(a) if value}
    entries.setdefault((4, 3), a[4, 3])
    as_json = json.dumps({str(index): str(value) for index, value in entries.items()})
    (tmp_path / "a.json").write_text(as_json)
    lines = "".join(f"{i} {j} {value}\n" for (i, j), value in entries.items())
    (tmp_path / "a.txt").write_text(lines)
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(lines.encode()))
    for name in ("a.json", "a.txt", "a.txt.gz"):
        found = rd.linalg.read(tmp_path / name)
        assert found.numerators.tolist() == [[v.numerator for v in row] for row in a.tolist()]
        assert found.denominators.tolist() == [[v.denominator for v in row] for row in a.tolist()]
    assert rd.linalg.rank(rd.linalg.read(tmp_path / "a.json")) == as_flint(a).rank()


@pytest.mark.parametrize(
    ("text", "numerators"),
    [
        ("{}", []),
        ("", []),
        ('{"(0, 1)": 7, "(1,0)": "-4/6"}', [[0, 7], [-2, 0]]),
        ('{"1, 1": "0"}', [[0, 0], [0, 0]]),
        ("0 0 +5\n\n 1\t0  -3/-9\r\n", [[5], [1]]),
        ("0 0 " + "9" * 5000, [[10**5000 - 1]]),
    ],
)
def test_what_files_may_hold(text: str, numerators: list[Any], tmp_path: Path) -> None:
    (tmp_path / "a").write_text(text)
    assert rd.linalg.read(tmp_path / "a").numerators.tolist() == numerators


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"(0, 0)": "1", "(0,0)": "2"}', r"a: \(0, 0\): two entries have the position \(0, 0\)"),
        ("0 0 1\n0 0 1\n", r"a:2: two entries have the position \(0, 0\)"),
        ('{"(0, 0)": 0.5}', r"a: \(0, 0\): expected an integer or a fraction as -1/2, got 0\.5"),
        ('{"(0, 0)": "1/0"}', r"a: \(0, 0\): expected an integer or a fraction as -1/2, got '1/0'"),
        ('{"(0, 0)": "1e9"}', r"expected an integer or a fraction as -1/2, got '1e9'"),
        ('{"(0, 0)": ["1", "2"]}', "expected an integer or a fraction as -1/2"),
        ('{"(0, -1)": "1"}', r"a: expected a position as '\(0, 2\)', got '\(0, -1\)'"),
        ('{"(0, 1, 2)": "1"}', "expected a position"),
        ('{"(0, 0)": "1"', "a: it is no JSON: "),
        ("1 2", "a:1: expected a row, a column and a fraction, got '1 2'"),
        ("0 0 1\n-1 2 3", "a:2: expected a row, a column and a fraction, got '-1 2 3'"),
        ("0 0 x", "a:1: expected an integer or a fraction as -1/2, got 'x'"),
    ],
)
def test_what_files_may_not_hold(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "a").write_text(text)
    with pytest.raises(InputError, match=message):
        rd.linalg.read(tmp_path / "a")


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"\xff\xfe")
    (tmp_path / "b.gz").write_bytes(b"\x1f\x8b\x08")
    for name in ("a", "b.gz"):
        with pytest.raises(InputError, match="it is no text"):
            rd.linalg.read(tmp_path / name)
    (tmp_path / "a").write_text(f"{10**12} {10**12} 1")
    with pytest.raises(
        JobError, match=r"a matrix of shape \(1000000000001, 1000000000001\) takes 1\.6e\+16 GB"
    ):
        rd.linalg.read(tmp_path / "a")
