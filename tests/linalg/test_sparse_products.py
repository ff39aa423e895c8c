"""Sparse matrices and their products with blocks of vectors, against Python's integers."""

import pickle
from typing import Any

import dask.array as da
import numpy as np
import pytest
import scipy.sparse
from conftest import Processor
from sample_arrays import host

import rnsdask as rd

FIELDS = rd.PrimeFields([2, 3, 65537, 2**31 - 1, 2147483659, 4294967291])
LONG_PRIMES = [2**32 + 15, 2**50 - 27, 2**61 - 1, 2**63 - 25, 2**64 - 59]
MIXED = rd.PrimeFields([2, 65537, *LONG_PRIMES, 4294967291])
OF_EACH_WIDTH = pytest.mark.parametrize("fields", [FIELDS, MIXED], ids=["short", "mixed"])

pytestmark = pytest.mark.usefixtures("in_this_thread")


def dense(rng: np.random.Generator, rows: int, columns: int, density: float, kind: str) -> np.ndarray:
    """Integers as objects, most of them 0: small ones, those that fill 64 bits, or longer ones."""
    bits = {"small": 6, "wide": 63, "long": 200}[kind]
    drawn = [int.from_bytes(rng.bytes(26), "little") % 2**bits for _ in range(rows * columns)]
    signs = rng.choice([-1, 1], (rows, columns)).astype(object)
    return np.array(drawn, object).reshape(rows, columns) * signs * (rng.random((rows, columns)) < density)


def matrix_of(values: np.ndarray) -> rd.sparse.SparseMatrix:
    rows, columns = values.nonzero()
    return rd.sparse.from_entries(rows, columns, values[rows, columns].tolist(), values.shape)


def vectors(
    processor: Processor, rng: np.random.Generator, fields: rd.PrimeFields, *shape: int
) -> rd.FieldArray:
    """Random elements, the greatest residues among them."""
    words = np.stack([rng.integers(0, p, shape, dtype=np.uint64) for p in fields.primes])
    words[:, ::3] = np.array(fields.primes, np.uint64).reshape(-1, *(1,) * len(shape)) - np.uint64(1)
    return rd.FieldArray(processor.xp.asarray(words.astype(fields.word_dtype)), fields)


def product(values: np.ndarray, x: rd.FieldArray) -> list[Any]:
    words = host(x.words).astype(object)
    return [(values @ part % p).tolist() for part, p in zip(words, x.system.primes, strict=True)]


@pytest.mark.parametrize("kind", ["small", "wide", "long"])
@pytest.mark.parametrize("width", [None, 1, 3, 8, 16, 33])
@OF_EACH_WIDTH
def test_products(
    on_each_processor: Processor,
    fields: rd.PrimeFields,
    kind: str,
    width: int | None,
    rng: np.random.Generator,
) -> None:
    for rows, columns, density in ((1, 1, 1), (9, 5, 0), (7, 40, 0.3), (40, 7, 1), (30, 31, 0.05)):
        values = dense(rng, rows, columns, density, kind)
        x = vectors(on_each_processor, rng, fields, columns, *(() if width is None else (width,)))
        a = matrix_of(values)
        assert host((a @ x).words).tolist() == product(values, x)
        assert (a.shape, a.nnz) == ((rows, columns), np.count_nonzero(values))
        y = vectors(on_each_processor, rng, fields, rows)
        assert host((a.T @ y).words).tolist() == product(values.T, y)


@OF_EACH_WIDTH
def test_values_where_ways_begin(
    on_each_processor: Processor, fields: rd.PrimeFields, rng: np.random.Generator
) -> None:
    """Magnitudes that add up to 2^31 - 1 in a row, and one more; the least and greatest of 64 bits."""
    for row in (
        [2**31 - 2, -1, 0],
        [2**31 - 1, -1, 0],
        [-(2**31), 0, 0],
        [1 - 2**31, 0, 0],
        [-(2**63), 2**63 - 1, 2**63],
    ):
        values = np.array([row, [-v for v in row], [0, 1, 0]], object)
        x = vectors(on_each_processor, rng, fields, 3, 5)
        assert host((matrix_of(values) @ x).words).tolist() == product(values, x)


@pytest.mark.parametrize("width", [1, 8, 17])
@pytest.mark.parametrize("primes", [[p] for p in LONG_PRIMES] + [LONG_PRIMES, FIELDS.primes])
def test_long_rows_of_the_greatest_numbers(
    on_each_processor: Processor, primes: list[int], width: int
) -> None:
    """Sums where they are greatest: of residues p - 1, and of signed entries up to 2^31 - 1 in all."""
    fields, count = rd.PrimeFields(primes), 2**16 - 1
    greatest = np.array([p - 1 for p in primes], fields.word_dtype).reshape(-1, 1, 1)
    words = np.broadcast_to(greatest, (len(primes), count, width)).copy()
    x = rd.FieldArray(on_each_processor.xp.asarray(words), fields)
    rows, columns = np.repeat(np.arange(4), [count, 0, count, 1]), [*range(count), *range(count), 7]
    signs = np.repeat([1, -1, 1], [count, count, 1])
    signed = signs * 2**15
    signed[-1] = 2**31 - 1
    expected = {"signed": [-count * 2**15, 0, count * 2**15, 1 - 2**31], "elements": [count, 0, count, 1]}
    elements = rd.FieldArray(np.repeat(greatest[:, :, 0], 2 * count + 1, axis=1), fields)
    for kind, values in (("signed", signed), ("elements", elements)):
        found = host((rd.sparse.from_entries(rows, columns, values, (4, count)) @ x).words)
        for part, p in zip(found.astype(object), primes, strict=True):
            assert part.tolist() == [[value % p] * width for value in expected[kind]], kind


@OF_EACH_WIDTH
def test_entries_of_one_place_are_added(fields: rd.PrimeFields) -> None:
    x = rd.from_ints([1, 10, 100], fields, chunks=None)
    for terms, total in (([1, 2], 3), ([5, -5], 0), ([2**62] * 4, 2**64), ([2**100, 1 - 2**100], 1)):
        a = rd.sparse.from_entries([1] * len(terms), [2] * len(terms), terms, (2, 3))
        assert a.nnz == (total != 0)
        assert (a @ x == [0, 100 * total]).all()
    greatest = rd.from_ints([-1] * 100 + [7], fields, chunks=None)
    a = rd.sparse.from_entries([1] * 100 + [0], [2] * 100 + [1], greatest, (2, 3))
    assert a.nnz == 2
    assert (a @ x == [70, -10000]).all()
    assert rd.sparse.from_entries([0, 0], [0, 0], greatest[99:] - greatest[100], (1, 1)).nnz == 1
    assert rd.sparse.from_entries([0, 0], [0, 0], rd.concatenate([x[:1], -x[:1]]), (1, 1)).nnz == 0


def test_iterators() -> None:
    a = rd.sparse.from_entries(iter([0, 1]), (k for k in (1, 0)), iter([2, 3]), (2, 2))
    assert a.to_dense(FIELDS).tolist() == [[0, 2], [3, 0]]
    assert rd.sparse.from_entries(np.array([]), np.array([]), np.array([]), (2, 2)).nnz == 0


def test_numbers_of_any_integer_type() -> None:
    x = rd.from_ints([1, 10], FIELDS, chunks=None)
    for kind in (np.bool_, np.int8, np.uint8, np.uint64, object):
        a = rd.sparse.from_entries(np.array([0, 1]), np.array([1, 0]), np.array([1, 1], kind), (2, 2))
        assert (a @ x == [10, 1]).all()
    a = rd.sparse.from_entries([0], [0], np.array([2**64 - 1], np.uint64), (1, 2))
    assert (a @ x == [2**64 - 1]).all()


@OF_EACH_WIDTH
def test_a_matrix_of_each_prime(
    on_each_processor: Processor, fields: rd.PrimeFields, rng: np.random.Generator
) -> None:
    """Elements as entries, such as the values of a parameter give: one pattern, other numbers."""
    words = np.array([[p - 1, 1 % p, p // 2, 1] for p in fields.primes], np.uint64).astype(fields.word_dtype)
    elements = rd.FieldArray(words, fields)
    a = rd.sparse.from_entries([0, 0, 2, 2], [1, 1, 0, 3], elements, (3, 4))
    assert a.fields == fields
    x = vectors(on_each_processor, rng, fields, 4, 3)
    found, given = host((a @ x).words).astype(object), host(x.words).astype(object)
    for p, row, part, result in zip(fields.primes, words.astype(object), given, found, strict=True):
        values = np.zeros((3, 4), object)
        values[0, 1], values[2, 0], values[2, 3] = row[0] + row[1], row[2], row[3]
        assert (result == values @ part % p).all()
    with pytest.raises(ValueError, match=r"the matrix is of elements of .*, got vectors of"):
        a @ rd.from_ints([1, 2, 3, 4], rd.PrimeFields([7]), chunks=None)


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "lil", "dok", "dia"])
def test_matrices_of_scipy(kind: str, rng: np.random.Generator) -> None:
    values = rng.integers(-3, 4, (7, 5)) * (rng.random((7, 5)) < 0.5)
    x = rd.from_ints([1, 2, 3, 4, 5], FIELDS, chunks=None)
    for make in (scipy.sparse.coo_array, scipy.sparse.coo_matrix):
        a = rd.sparse.from_scipy(make(values).asformat(kind))
        assert (a @ x == (values @ [1, 2, 3, 4, 5]).tolist()).all()
        assert (a.to_dense(FIELDS) == values.tolist()).all()


@OF_EACH_WIDTH
def test_lengths_of_0(fields: rd.PrimeFields) -> None:
    for rows, columns in ((0, 0), (0, 3), (3, 0)):
        a = rd.sparse.from_entries([], [], [], (rows, columns))
        for width in ((), (0,), (2,)):
            x = rd.FieldArray(np.zeros((fields.rows, columns, *width), fields.word_dtype), fields)
            found = a @ x
            assert found.shape == (rows, *width)
            assert not found.words.any()
        assert a.T.shape == (columns, rows)


@OF_EACH_WIDTH
def test_chunks_change_nothing(
    on_each_processor: Processor, fields: rd.PrimeFields, rng: np.random.Generator
) -> None:
    values = dense(rng, 12, 9, 0.4, "small")
    x, a = vectors(on_each_processor, rng, fields, 9, 20), matrix_of(values)
    for chunks in ((9, 7), (4, (1, 19)), (9, 20)):
        lazy = rd.FieldArray(da.from_array(x.words, chunks=(-1, *chunks)), fields)
        found = a @ lazy
        assert found.chunks == ((12,), lazy.chunks[1])
        assert (host(found.words) == host((a @ x).words)).all()
    assert (host((a @ rd.FieldArray(da.from_array(x.words[..., 0]), fields)).words)).tolist() == product(
        values, x[:, 0]
    )


def test_a_matrix_goes_to_other_processes() -> None:
    for values in ([3, -4], [3, 2**100]):
        a = rd.sparse.from_entries([0, 1], [1, 0], values, (2, 2))
        x = rd.from_ints([1, 10], FIELDS, chunks=None)
        assert (pickle.loads(pickle.dumps(a)) @ x == [10 * values[0], values[1]]).all()
        assert a.__dask_tokenize__() is not None
    assert repr(a) == "SparseMatrix(2 x 2, 2 entries, integers)"


def test_what_is_refused() -> None:
    make = rd.sparse.from_entries
    for error, message, arguments in (
        (ValueError, r"rows\[1\] is 2, out of the 2 rows of shape", ([0, 2], [0, 0], [1, 1], (2, 2))),
        (ValueError, r"columns\[0\] is -1, out of the 2 columns", ([0], [-1], [1], (2, 2))),
        (ValueError, r"columns must have shape \(2,\) as values have", ([0, 1], [0], [1, 1], (2, 2))),
        (TypeError, "rows must be integers, got float64", ([0.0], [0], [1], (2, 2))),
        (TypeError, "value 1 must be an integer, got 0.5", ([0, 1], [0, 1], [1, 0.5], (2, 2))),
        (TypeError, "values must be integers, got float64", ([0], [0], np.array([0.5]), (2, 2))),
        (ValueError, "shape must be a pair", ([], [], [], (2,))),
        (ValueError, r"rows and columns must be from 0 to 2\*\*31 - 1", ([], [], [], (2, 2**31))),
        (ValueError, "values must have one axis, got 2", ([0], [0], np.ones((1, 1), int), (2, 2))),
        (ValueError, "values must have one axis, got 2", ([0, 1], [0, 1], [[1], [2]], (2, 2))),
        (ValueError, "values must have one axis, got 2", ([0], [0], np.ones((1, 1), object), (2, 2))),
        (TypeError, "values must be integers or a FieldArray, got 5 of type int", ([0], [0], 5, (2, 2))),
        (ValueError, r"rows\[1\] is 0x40.*, out of the 2 rows", ([0, 2**70], [0, 0], [1, 1], (2, 2))),
    ):
        with pytest.raises(error, match=message):
            make(*arguments)
    a = make([0], [1], [5], (3, 2))
    with pytest.raises(TypeError, match="a SparseMatrix multiplies a FieldArray of PrimeFields, got list"):
        a @ [1, 2]
    with pytest.raises(TypeError, match="got FermatField"):
        a @ rd.from_ints([1, 2], rd.FermatField(2**63 + 2**34, 8), chunks=None)
    with pytest.raises(ValueError, match=r"x must have shape \(2,\) or \(2, K\), got \(3,\)"):
        a @ rd.from_ints([1, 2, 3], FIELDS, chunks=None)
    with pytest.raises(TypeError, match=r"from_scipy takes integers, got float64"):
        rd.sparse.from_scipy(scipy.sparse.coo_array([[0.5]]))
    with pytest.raises(TypeError, match=r"takes a matrix or array of scipy.sparse, got ndarray"):
        rd.sparse.from_scipy(np.eye(2))
