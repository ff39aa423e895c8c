"""Transforms modulo r^k + 1 along axes in several chunks, against the definition in Python ints."""

from functools import cache
from itertools import combinations
from typing import Any

import dask
import numpy as np
import pytest
from conftest import Processor
from oracles.fermat import as_words
from strategies import slow

import rnsdask as rd

pytestmark = pytest.mark.usefixtures("in_steps")

FIELDS = {name: rd.FermatField.named(name) for name in ("F233", "F449", "P3")}


def draw(count: int, field: rd.FermatField, rng: np.random.Generator) -> list[int]:
    """Numbers, every other one of those whose sums carry far."""
    p, r, k = field.modulus, field.radix, field.digits
    ends = [0, 1, p - 1, p - 2, r, r - 1, r**k - r, r ** (k - 1), p - r]
    return [
        int.from_bytes(rng.bytes(80), "little") % p if rng.integers(2) else ends[rng.integers(len(ends))]
        for _ in range(count)
    ]


def definition(values: list[int], root: int, p: int, negacyclic: bool) -> list[int]:
    """X_j for `root` of order N, or of order 2N."""
    count = len(values)
    order, odd = (2 * count, 1) if negacyclic else (count, 0)
    powers = [1]
    for _ in range(order - 1):
        powers.append(powers[-1] * root % p)
    assert powers[-1] * root % p == 1
    exponents = ([(j + j * odd + odd) * i % order for i in range(count)] for j in range(count))
    return [sum(x * powers[e] for x, e in zip(values, row, strict=True)) % p for row in exponents]


@cache
def example(name: str, length: int, negacyclic: bool) -> tuple[rd.FieldArray, np.ndarray]:
    """An array of two lines, and the words of their transforms."""
    field, rng = FIELDS[name], np.random.default_rng([length, negacyclic])
    lines = [draw(length, field, rng), [field.modulus - 1] * length]
    (root,) = field.roots(2 * length if negacyclic else length)
    found = [definition(line, root, field.modulus, negacyclic) for line in lines]
    return rd.FieldArray(as_words(lines, field), field), as_words(found, field)


def check(name: str, length: int, chunks: Any, negacyclic: bool) -> None:
    x, expected = example(name, length, negacyclic)
    lazy = x.rechunk((1, chunks))
    found = rd.ntt(lazy, negacyclic=negacyclic)
    back = rd.intt(rd.FieldArray(expected, x.system).rechunk((2, chunks)), 1, negacyclic)
    assert found.chunks == lazy.chunks
    assert found.words.dtype == x.words.dtype
    with dask.config.set(scheduler="sync"):
        np.testing.assert_array_equal(np.asarray(found.words), expected, f"chunks {chunks}")
        np.testing.assert_array_equal(np.asarray(back.words), x.words, f"chunks {chunks}")


@pytest.mark.parametrize("negacyclic", [False, True])
@pytest.mark.parametrize("name", ["P3", *slow("F233", "F449")])
def test_ways_to_cut_short_axes(name: str, negacyclic: bool) -> None:
    """All, but for the longest some of them."""
    for length in (1, 2, 4, 8):
        cuts = [cut for count in range(length) for cut in combinations(range(1, length), count)]
        for cut in cuts[:: 31 if length == 8 else 1]:
            check(name, length, tuple(np.diff([0, *cut, length]).tolist()), negacyclic)


@pytest.mark.parametrize("negacyclic", [False, True])
@pytest.mark.parametrize("name", ["P3", *slow("F233", "F449")])
@pytest.mark.parametrize("length", [16, 32, 64])
def test_chunks_of_many_lengths(name: str, length: int, negacyclic: bool, rng: np.random.Generator) -> None:
    """Columns as short as rows and far shorter, of less than 2 k elements and of as many."""
    for chunk in (1, 3, length // 2):
        check(name, length, chunk, negacyclic)
    cuts = np.sort(rng.choice(np.arange(1, length), size=int(rng.integers(1, 9)), replace=False))
    check(name, length, tuple(np.diff([0, *cuts, length]).tolist()), negacyclic)


@pytest.mark.parametrize("negacyclic", [False, True])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_axes_in_chunks_among_others(
    axis: int, negacyclic: bool, on_each_processor: Processor, rng: np.random.Generator
) -> None:
    """Transforms along an axis in chunks equal those in one chunk."""
    field, shape, chunks = FIELDS["F449"], [3, 2, 2], [2, 2, 1]
    shape[axis], chunks[axis] = 2**12, 1019
    words = rng.integers(0, field.radix, (field.digits, *shape), dtype=np.uint32)
    x = rd.FieldArray(on_each_processor.xp.asarray(words), field)
    expected = on_each_processor.to_numpy(rd.ntt(x, axis, negacyclic).words)
    found = rd.ntt(x.rechunk(tuple(chunks)), axis, negacyclic)
    np.testing.assert_array_equal(on_each_processor.to_numpy(found.compute().words), expected)
    back = rd.intt(found, axis - 3, negacyclic).compute()
    assert isinstance(back.words, on_each_processor.xp.ndarray)
    np.testing.assert_array_equal(on_each_processor.to_numpy(back.words), words)


@pytest.mark.parametrize(("name", "length", "chunk"), [("F449", 2**16, 2**15 + 9), ("F3829", 2**9, 100)])
@pytest.mark.parametrize("negacyclic", [False, True])
def test_long_axes(name: str, length: int, chunk: int, negacyclic: bool, rng: np.random.Generator) -> None:
    """Transforms of one element that is not 0 are powers of the root, by factors of several tables too."""
    field = rd.FermatField.named(name)
    index = int(rng.integers(1, length)) | 1
    (root,) = field.roots(2 * length if negacyclic else length)
    x = rd.from_ints(np.eye(1, length, index, dtype=np.int64)[0], field)
    transformed = rd.ntt(x.rechunk(chunk), negacyclic=negacyclic).compute()
    for j in (0, 1, 127, 128, length - 1, *rng.integers(length, size=20).tolist()):
        exponent = index * (2 * j + 1 if negacyclic else j)
        assert transformed[j] == pow(root, exponent, field.modulus)
    back = rd.intt(transformed.rechunk(chunk), negacyclic=negacyclic)
    np.testing.assert_array_equal(np.asarray(back.words), x.words)


def test_nothing_and_lengths_that_are_not_known() -> None:
    field = FIELDS["F233"]
    empty = rd.from_ints(np.empty((0, 32), dtype=object), field, chunks=(1, 8))
    for negacyclic in (False, True):
        assert rd.ntt(empty, negacyclic=negacyclic).compute().shape == (0, 32)
    x = rd.from_ints(list(range(32)), field, chunks=8)
    selected = x[x != -1]  # of a length that Dask does not know
    assert (rd.intt(rd.ntt(selected)) == x).all()
    with pytest.raises(ValueError, match="takes an axis of a power of two elements, got 31 on axis 0"):
        rd.ntt(x[1:])
