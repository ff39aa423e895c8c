"""Inverses of triangular matrices over prime fields, whose products with the matrices FLINT computes."""

from typing import Any

import flint
import numpy as np
import pytest
from conftest import Processor
from sample_arrays import host

import rnsdask as rd
from rnsdask.fields import triangles

NARROW = rd.PrimeFields([2, 3, 65537, 2**31 - 1, 2**32 - 5])
WIDE = rd.PrimeFields([2, 65537, 2**32 - 5, 2**61 - 1, 2**64 - 59])
FIELDS = pytest.mark.parametrize("fields", [NARROW, WIDE], ids=["short", "long"])


def drawn(rng: np.random.Generator, fields: rd.PrimeFields, *shape: int) -> np.ndarray:
    """Words of which a tenth is 0 and a tenth the greatest one, with none on the diagonal that is 0."""
    words, kinds = fields.random_words(shape, rng), rng.integers(0, 10, shape)
    diagonal = np.einsum("...ii->...i", words)
    for row, p in zip(words, fields.primes, strict=True):
        row[kinds == 0] = 0
        row[kinds == 1] = p - 1
    diagonal[diagonal == 0] = 1
    return words.astype(fields.word_dtype)


def check(processor: Processor, words: np.ndarray, fields: rd.PrimeFields, given: Any = None) -> None:
    """Multiply triangles by their inverses, which are zero on their other side."""
    given = processor.xp.asarray(words) if given is None else given
    size, ones = words.shape[-1], np.eye(words.shape[-1], dtype=words.dtype)
    for inverse, whole, side in (
        (triangles.inverse_of_upper, np.triu(words), np.triu),
        (triangles.inverse_of_lower, np.tril(words, -1) + ones, np.tril),
    ):
        array = inverse(given, fields.moduli)
        found = host(array)
        assert array.flags.c_contiguous
        assert (found.shape, found.dtype) == (words.shape, words.dtype)
        assert (side(found) == found).all()
        for p, left, right in zip(fields.primes, whole, found, strict=True):
            for place in np.ndindex(words.shape[1:-2]):
                x, y = (flint.nmod_mat(size, size, z[place].ravel().tolist(), p) for z in (left, right))
                assert x * y == flint.nmod_mat(size, size, ones.ravel().tolist(), p)


@FIELDS
@pytest.mark.parametrize("size", [1, 2, 127, 128, 129, 255, 257, 600])
def test_inverses(
    size: int, fields: rd.PrimeFields, on_each_processor: Processor, rng: np.random.Generator
) -> None:
    check(on_each_processor, drawn(rng, fields, size, size), fields)


@FIELDS
@pytest.mark.parametrize("size", [1, 3, 4, 5, 8, 9, 17, 40])
@pytest.mark.parametrize("batch", [(3,), (2, 3)])
def test_batches_by_small_blocks(
    batch: tuple[int, ...],
    size: int,
    fields: rd.PrimeFields,
    on_each_processor: Processor,
    rng: np.random.Generator,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(triangles, "MOST_SOLVED", 4)
    words = drawn(rng, fields, *batch, size, size)
    check(on_each_processor, words, fields)
    turned = on_each_processor.xp.asarray(words.swapaxes(-1, -2).copy()).swapaxes(-1, -2)
    check(on_each_processor, words, fields, turned)
    part = on_each_processor.xp.asarray(np.pad(words, [*((0, 0),) * (words.ndim - 2), (1, 2), (2, 3)]))
    check(on_each_processor, words, fields, part[..., 1:-2, 2:-3])


@FIELDS
@pytest.mark.parametrize("shape", [(0, 0), (2, 0, 0), (0, 5, 5), (3, 0, 200, 200)])
def test_empty_stacks(shape: tuple[int, ...], fields: rd.PrimeFields, on_each_processor: Processor) -> None:
    check(on_each_processor, np.zeros((fields.rows, *shape), dtype=fields.word_dtype), fields)
