"""Number-theoretic transforms against the definition, and cyclic products against Python's integers."""

from typing import Any

import dask
import gmpy2
import numpy as np
import pytest
from conftest import Processor

import rnsdask as rd
from rnsdask.core.primes import primes_below

# The greatest primes with transforms of length 2**17 below each power of two where another way begins.
GREATEST = [next(primes_below(2**k + 1, 2**17)) for k in (32, 31, 30)]
ENDS = rd.PrimeFields([*GREATEST, 786433])
SMALL = {
    1: (2, 3, 2**32 - 5),
    2: (3, 2**31 - 1, 2**32 - 5),
    4: (5, 13, 17),
    8: (17, 41),
    16: (17, 97),
    32: (97, 193),
    64: (193, 257),
}


def definition(residues: np.ndarray, fields: rd.PrimeFields, some: list[int] | None = None) -> np.ndarray:
    """X_j of residues (n, B, N), for some j, by the definition in NumPy: all is below 2**64."""
    length = residues.shape[-1]
    indices = np.arange(length) if some is None else np.array(some)
    result = np.empty((*residues.shape[:-1], len(indices)), dtype=np.uint32)
    for i, (root, p) in enumerate(zip(fields.roots(length), fields.primes, strict=True)):
        powers = np.empty(length, dtype=np.uint64)
        power = 1
        for k in range(length):
            powers[k] = power
            power = power * root % p
        assert power == 1
        for place, j in enumerate(indices.tolist()):
            terms = residues[i].astype(np.uint64) * powers[np.arange(length) * j % length] % np.uint64(p)
            result[i, :, place] = terms.sum(axis=-1) % np.uint64(p)
    return result


def on(processor: Processor, words: np.ndarray, fields: rd.PrimeFields) -> rd.FieldArray:
    """Elements of residues, on a processor."""
    return rd.FieldArray(processor.xp.asarray(words), fields)


def drawn(rng: np.random.Generator, fields: rd.PrimeFields, shape: tuple[int, ...]) -> np.ndarray:
    """Residues: p - 1 throughout in the first transform, one of them in the second, else any."""
    rows = []
    for p in fields.primes:
        row = rng.integers(0, p, shape, dtype=np.uint64)
        row[0] = p - 1
        if len(row) > 1:
            row[1] = 0
            row[1, -1] = p - 1
        rows.append(row.astype(np.uint32))
    return np.stack(rows)


@pytest.mark.parametrize("length", [2**e for e in range(11)])
@pytest.mark.parametrize("batch", [1, 2, 31, 33])
def test_every_short_length(
    length: int, batch: int, rng: np.random.Generator, on_each_processor: Processor
) -> None:
    if batch > 2 and length > 64:
        batch = {31: 3, 33: 32}[batch] if length < 512 else 3
    for fields in (ENDS, rd.PrimeFields(SMALL[length]) if length in SMALL else rd.PrimeFields([12289])):
        words = drawn(rng, fields, (batch, length))
        x = on(on_each_processor, words, fields)
        found = rd.ntt(x)
        assert isinstance(found.words, on_each_processor.xp.ndarray)
        result = on_each_processor.to_numpy
        np.testing.assert_array_equal(result(found.words), definition(words, fields))
        np.testing.assert_array_equal(result(rd.intt(found).words), words)
        np.testing.assert_array_equal(result(rd.ntt(rd.intt(x)).words), words)


@pytest.mark.parametrize("length", [2**11, 2**12, 2**15, 2**17])
def test_long_transforms(length: int, rng: np.random.Generator, on_each_processor: Processor) -> None:
    words = drawn(rng, ENDS, (3, length))
    some = [
        0,
        1,
        2,
        31,
        32,
        33,
        length // 2 - 1,
        length // 2,
        length - 1,
        *rng.integers(length, size=20).tolist(),
    ]
    found = rd.ntt(on(on_each_processor, words, ENDS))
    result = on_each_processor.to_numpy
    np.testing.assert_array_equal(result(found.words)[..., some], definition(words, ENDS, some))
    np.testing.assert_array_equal(result(rd.intt(found).words), words)


def test_lengths_beyond_all_residues(rng: np.random.Generator, on_each_processor: Processor) -> None:
    """Length 2**22, by linearity: a transform of two elements is two powers of the root."""
    fields = rd.PrimeFields(rd.ModuliSet.ntt_primes(60, 2**22))
    length = 2**22
    first, second = sorted(rng.integers(length, size=2).tolist())
    words = np.zeros((fields.rows, length), dtype=np.uint32)
    words[:, first] += 7
    words[:, second] += 1
    transformed = rd.ntt(on(on_each_processor, words, fields))
    found = on_each_processor.to_numpy(transformed.words)
    for j in (0, 1, 2**11, length - 1, *rng.integers(length, size=50).tolist()):
        for i, (root, p) in enumerate(zip(fields.roots(length), fields.primes, strict=True)):
            expected = (7 * pow(root, first * j, p) + pow(root, second * j, p)) % p
            assert found[i, j] == expected
    np.testing.assert_array_equal(on_each_processor.to_numpy(rd.intt(transformed).words), words)


def test_many_primes(rng: np.random.Generator, on_each_processor: Processor) -> None:
    fields = rd.PrimeFields(rd.ModuliSet.ntt_primes(12_000, 2**10))
    assert fields.rows > 380
    words = drawn(rng, fields, (2, 1024))
    some = [0, 1, 511, 1023]
    found = rd.ntt(on(on_each_processor, words, fields))
    result = on_each_processor.to_numpy
    np.testing.assert_array_equal(result(found.words)[..., some], definition(words, fields, some))
    np.testing.assert_array_equal(result(rd.intt(found).words), words)


def test_transforms_are_linear(rng: np.random.Generator, on_each_processor: Processor) -> None:
    x, y = (on(on_each_processor, drawn(rng, ENDS, (2, 2048)), ENDS) for _ in range(2))
    assert (rd.ntt(x * 5 - y) == rd.ntt(x) * 5 - rd.ntt(y)).all()


@pytest.mark.parametrize("chunks", [None, (2, -1, 3), (-1, 16, -1)])
def test_axes(chunks: Any, rng: np.random.Generator, on_each_processor: Processor) -> None:
    words = drawn(rng, ENDS, (4, 16, 8))
    for axis in (0, 1, 2, -1, -3):
        moved = np.moveaxis(words, axis + 1 if axis >= 0 else axis, -1)
        expected = np.stack([definition(moved[:, k], ENDS) for k in range(moved.shape[1])], axis=1)
        expected = np.moveaxis(expected, -1, axis + 1 if axis >= 0 else axis)
        x = on(on_each_processor, words, ENDS)
        if chunks is not None:
            x = x.rechunk(chunks)
        with dask.config.set(scheduler="sync"):
            found, back = rd.ntt(x, axis), rd.intt(rd.ntt(x, axis), axis)
            result = on_each_processor.to_numpy
            np.testing.assert_array_equal(result(found.compute().words), expected)
            np.testing.assert_array_equal(result(back.compute().words), words)


def cyclic_product(a: list[int], b: list[int], p: int) -> list[int]:
    """By one product of two long integers, each coefficient in a field of its own."""
    bits = 2 * p.bit_length() + len(a).bit_length()
    full = gmpy2.unpack(gmpy2.pack(a, bits) * gmpy2.pack(b, bits), bits)
    full += [0] * (2 * len(a) - len(full))
    return [(low + high) % p for low, high in zip(full[: len(a)], full[len(a) :], strict=True)]


@pytest.mark.parametrize("length", [2, 64, 4096, 2**15])
def test_products_of_transforms_are_those_of_cyclic_products(
    length: int, rng: np.random.Generator, on_each_processor: Processor
) -> None:
    words = [drawn(rng, ENDS, (1, length))[:, 0] for _ in range(2)]
    x, y = (on(on_each_processor, w, ENDS) for w in words)
    found = rd.intt(rd.ntt(x) * rd.ntt(y)).words.tolist()
    for row, a, b, p in zip(found, words[0].tolist(), words[1].tolist(), ENDS.primes, strict=True):
        assert row == cyclic_product(a, b, p)


def test_products_are_those_of_flint(rng: np.random.Generator, on_each_processor: Processor) -> None:
    flint = pytest.importorskip("flint")
    length = 2**14
    x, y = (drawn(rng, ENDS, (1, length))[:, 0] for _ in range(2))
    x[:, length // 2 :] = y[:, length // 2 :] = 0
    first, second = (on(on_each_processor, words, ENDS) for words in (x, y))
    found = rd.intt(rd.ntt(first) * rd.ntt(second)).words.tolist()
    for row, a, b, p in zip(found, x.tolist(), y.tolist(), ENDS.primes, strict=True):
        product = (flint.nmod_poly(a, p) * flint.nmod_poly(b, p)).coeffs()
        assert row == [int(c) for c in product] + [0] * (length - len(product))


def test_what_has_no_transform() -> None:
    x = rd.from_ints(list(range(12)), ENDS, chunks=None)
    with pytest.raises(ValueError, match="ntt takes an axis of a power of two elements, got 12 on axis 0"):
        rd.ntt(x)
    with pytest.raises(ValueError, match="got 0 on axis 0"):
        rd.intt(x[:0])
    with pytest.raises(ValueError, match="field modulo 7 has no primitive root of unity of order 4"):
        rd.ntt(rd.from_ints([1, 2, 3, 4], rd.PrimeFields([5, 7])))
    with pytest.raises(TypeError, match="ntt takes a FieldArray, got RNSArray"):
        rd.ntt(rd.from_ints([1, 2]))
    with pytest.raises(ValueError, match="axis 1 is out of bounds"):
        rd.ntt(x, 1)
    chosen = rd.from_ints(list(range(16)), ENDS, chunks=16)
    same = chosen[chosen != -1]  # of a length that Dask does not know
    assert (rd.intt(rd.ntt(same)) == chosen).all()
    empty = rd.from_ints(np.empty((0, 8), dtype=object), ENDS, chunks=None)
    assert rd.ntt(empty).shape == (0, 8)
