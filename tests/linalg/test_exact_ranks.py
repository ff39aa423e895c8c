"""Ranks of integer matrices, proved by null vectors and by primes, against FLINT."""

import math
from typing import Any

import flint
import numpy as np
import pytest
from conftest import Processor
from sample_arrays import array_of, host

import rnsdask as rd
from rnsdask.fields import p_adic
from rnsdask.fields.exact_solutions import has_null_vectors
from rnsdask.rns.lift import primes


def drawn(rng: np.random.Generator, bits: int, *shape: int) -> np.ndarray:
    """Signed integers of up to so many bits."""
    values = [int.from_bytes(rng.bytes(bits // 8 + 1), "little") for _ in range(math.prod(shape))]
    return np.array([v % 2 ** (bits + 1) - 2**bits for v in values], dtype=object).reshape(shape)


def of_flint(values: np.ndarray) -> Any:
    return flint.fmpz_mat(*values.shape, values.ravel().tolist())


def array(processor: Processor, values: np.ndarray) -> Any:
    """Encode entries under moduli whose range they nearly fill."""
    bits = max((abs(v).bit_length() for v in values.ravel().tolist()), default=0) + 2
    return array_of(processor, values, rd.ModuliSet.for_bits(bits), True)


def of_rank(rng: np.random.Generator, rows: int, columns: int, rank: int, bits: int = 40) -> np.ndarray:
    zeros = np.zeros((rows, columns), dtype=object)
    return drawn(rng, bits, rows, rank) @ drawn(rng, bits, rank, columns) + zeros


@pytest.fixture(params=["null vectors", "primes"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Ranks are proved in this way, whatever is quicker."""
    by_vectors = request.param == "null vectors"
    monkeypatch.setattr(p_adic, "is_quicker", lambda _words, rows, *_: by_vectors and rows > 0)
    return str(request.param)


def test_ranks(on_each_processor: Processor, way: str, rng: np.random.Generator) -> None:
    shapes = ((7, 7, 6), (7, 7, 3), (5, 9, 4), (9, 5, 4), (6, 8, 1), (8, 6, 0), (1, 1, 0), (12, 12, 11))
    for rows, columns, rank in shapes:
        values = of_rank(rng, rows, columns, rank)
        values[0] *= 2**60  # rows of other lengths
        assert rd.linalg.rank(array(on_each_processor, values)) == of_flint(values).rank() == rank
    values = of_rank(rng, 8, 8, 6)
    values[3] = values[:, 5] = 0
    assert rd.linalg.rank(array(on_each_processor, values)) == of_flint(values).rank()
    for shape in ((0, 0), (0, 3), (3, 0), (2, 0, 3)):
        none = array(on_each_processor, np.zeros(shape, dtype=object))
        assert not np.any(host(rd.linalg.rank(none)))


def test_stacks_of_all_ranks(on_each_processor: Processor, way: str, rng: np.random.Generator) -> None:
    values = np.stack([of_rank(rng, 6, 5, rank) for rank in (5, 0, 3, 5, 4, 1, 2)])
    found = host(rd.linalg.rank(array(on_each_processor, values)))
    assert found.tolist() == [5, 0, 3, 5, 4, 1, 2]


def test_primes_that_hide_rank(on_each_processor: Processor, way: str, rng: np.random.Generator) -> None:
    """Each of the first primes divides minors: the rank modulo them is too small, and not believed."""
    first = primes(0, 40)
    for product in (first[0], first[0] * first[1], first.product):
        for length in (1, 2, 5):
            values = np.eye(length, dtype=object)
            values[-1, -1] = product
            mixed = np.tril(drawn(rng, 5, length, length), -1) + np.eye(length, dtype=object)
            values = mixed @ values @ mixed.T
            x = array(on_each_processor, values)
            assert not has_null_vectors(x.words, x.system)
            assert rd.linalg.rank(x) == length
            wider = np.concatenate([values, values[:, :1] * 3], axis=1)
            assert rd.linalg.rank(array(on_each_processor, wider)) == length
            assert rd.linalg.rank(array(on_each_processor, wider.T)) == length
    # Each of 60 primes divides the determinant, which alone is beyond their product.
    values = np.diag([primes(20 * k, 20).product for k in range(3)])
    assert rd.linalg.rank(array(on_each_processor, values)) == 3
    assert rd.linalg.rank(array(on_each_processor, np.diag([*np.diag(values), 0]))) == 3


@pytest.mark.parametrize("length", [2, 3, 20, 90])
def test_singular_matrices(
    on_each_processor: Processor, length: int, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    monkeypatch.setattr(p_adic, "is_quicker", lambda _words, rows, *_: rows > 0)
    for rank in {length - 1, max(1, length - 3)}:
        values = of_rank(rng, length, length, rank, 20)
        x = array(on_each_processor, values)
        assert has_null_vectors(x.words, x.system)
        assert has_null_vectors(x.words, x.system, only_one=True)
        assert rd.linalg.rank(x) == rank
        assert rd.linalg.det(x) == 0
        with pytest.raises(np.linalg.LinAlgError, match=r"^the matrix is singular$"):
            rd.linalg.solve(x, x[:, :1])
        values[-1, 0] += 1
        expected = of_flint(values)
        y = array(on_each_processor, values)
        assert rd.linalg.rank(y) == expected.rank()
        assert rd.linalg.det(y) == int(expected.det())


def test_short_and_long_null_vectors(on_each_processor: Processor, rng: np.random.Generator) -> None:
    """Null vectors of large matrices, in the way that the package chooses."""
    length = 100
    values = drawn(rng, 31, length, length)
    values[:, 17] = values[:, 3] - 2 * values[:, 60]
    long = drawn(rng, 31, length, length)
    long[40] = long[41:45].sum(axis=0)
    for matrix in (values, values.T, long, np.concatenate([long, long[:3]])):
        x = array(on_each_processor, matrix)
        assert rd.linalg.rank(x) == length - 1
        if len(matrix) == length:
            assert rd.linalg.det(x) == 0
