"""Transforms modulo r^k + 1 against their definition and their properties, on both processors."""

from itertools import chain

import flint
import numpy as np
import pytest
from conftest import Processor
from oracles.fermat import as_words

import rnsdask as rd
from rnsdask.backend import kernels_of
from rnsdask.constants import FermatConstants, fermat_root
from rnsdask.fields.fermat_fft import transform

FIELDS = [
    pytest.param(FermatConstants(radix, digits), id=f"{radix}^{digits}+1")
    for radix, digits in (
        (2**63 + 2**34, 8),
        (2**62 + 2**36, 16),
        (2**32 - 2**20, 8),
        (2**28 + 2**22, 16),
        (2**27 - 2**25, 32),
        (2**30 - 2**26, 128),
    )
]


def draw(count: int, field: FermatConstants, rng: np.random.Generator) -> list[int]:
    """Numbers, every other one of those whose sums carry far."""
    p, r, k = field.modulus, field.radix, field.digits
    ends = [0, 1, p - 1, p - 2, r, r - 1, r**k - r, r ** (k - 1), p - r]
    return [
        int.from_bytes(rng.bytes(p.bit_length() // 8), "little")
        if rng.integers(2)
        else ends[rng.integers(len(ends))]
        for _ in range(count)
    ]


def recursive_transform(x: list[int], root: int, p: int) -> list[int]:
    if len(x) == 1:
        return x
    even, odd = (recursive_transform(x[i::2], root * root % p, p) for i in range(2))
    factor, low, high = 1, [], []
    for a, b in zip(even, odd, strict=True):
        low.append((a + b * factor) % p)
        high.append((a - b * factor) % p)
        factor = factor * root % p
    return low + high


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("length", [1, 2, 4, 8, 16, 32, 64, 256, 512])
def test_transforms_and_inverses(
    field: FermatConstants, length: int, on_each_processor: Processor, rng: np.random.Generator
) -> None:
    """Three side by side along each axis, the other one a view."""
    root = fermat_root(field, length)
    runs = [draw(length, field, rng) for _ in range(3)]
    words = as_words(list(chain(*runs)), field).reshape(field.digits, 3, length)
    results = [recursive_transform(run, root, field.modulus) for run in runs]
    expected = as_words(list(chain(*results)), field).reshape(words.shape)
    x, y = (on_each_processor.xp.asarray(array) for array in (words, expected))
    for axis in (0, 1):
        a, b = (array if axis == 1 else on_each_processor.xp.swapaxes(array, 1, 2) for array in (x, y))
        np.testing.assert_array_equal(*map(on_each_processor.to_numpy, (transform(a, field, axis, False), b)))
        np.testing.assert_array_equal(*map(on_each_processor.to_numpy, (transform(b, field, axis, True), a)))


@pytest.mark.parametrize("field", FIELDS[:1] + FIELDS[3:4])
def test_the_definition(field: FermatConstants, rng: np.random.Generator) -> None:
    p, root = field.modulus, fermat_root(field, 64)
    x = draw(64, field, rng)
    sums = [sum(value * pow(root, i * j, p) for i, value in enumerate(x)) for j in range(64)]
    np.testing.assert_array_equal(transform(as_words(x, field), field, 0, False), as_words(sums, field))


@pytest.mark.parametrize("field", FIELDS[:1] + FIELDS[3:4])
def test_long_transforms_come_back(
    field: FermatConstants, on_each_processor: Processor, rng: np.random.Generator
) -> None:
    """Transforms of several passes; the first run is powers of the root, so its transform is one number."""
    length = 2**14
    words = np.zeros((field.digits, 2, length), dtype=field.dtype)
    root, value = pow(fermat_root(field, length), 5, field.modulus), 1
    for j in range(length):
        words[:, 0, j] = as_words([value], field)[:, 0]
        value = value * root % field.modulus
    words[:, 1] = rng.integers(0, field.radix, (field.digits, length), dtype=np.uint64)
    x = on_each_processor.xp.asarray(words)
    result = transform(x, field, 1, False)
    first = on_each_processor.to_numpy(result)[:, 0]
    assert np.flatnonzero(first.any(axis=0)).tolist() == [length - 5]
    assert first[0, length - 5] == length
    assert kernels_of(result).fermat_first_invalid(result.reshape(field.digits, -1), field) is None
    np.testing.assert_array_equal(on_each_processor.to_numpy(transform(result, field, 1, True)), words)


def test_parts_and_nothing(on_each_processor: Processor, rng: np.random.Generator) -> None:
    """Every other column and every other run of an array, and arrays without elements."""
    field = FermatConstants(2**28 + 2**22, 16)
    words = rng.integers(0, field.radix, (16, 6, 128), dtype=np.uint64).astype(np.uint32)
    x = on_each_processor.xp.asarray(words)
    part = on_each_processor.to_numpy(transform(x[:, ::2, 1::2], field, 1, False))
    whole = transform(words[:, ::2, 1::2].copy(), field, 1, False)
    np.testing.assert_array_equal(part, whole)
    for shape in ((16, 0, 8), (16, 0, 1), (16, 3, 1)):
        assert transform(x[:, : shape[1], : shape[2]], field, 1, False).shape == shape


def test_refused_lengths() -> None:
    field = FermatConstants(2**28 + 2**22, 16)
    with pytest.raises(ValueError, match="no root of unity of order 12 modulo"):
        transform(np.zeros((16, 12), dtype=np.uint32), field, 0, False)


F449 = rd.FermatField.named("F449")


@pytest.mark.parametrize("name", ["F449", "P3"])
@pytest.mark.parametrize("negacyclic", [False, True])
def test_products_of_polynomials(name: str, negacyclic: bool, rng: np.random.Generator) -> None:
    """Cyclic and negacyclic ones of arrays along any axis, lazy in any chunks, against FLINT's."""
    field = rd.FermatField.named(name)
    p, length = field.modulus, 64
    a, b = (draw(length, field.constants, rng) for _ in range(2))
    product = list(flint.fmpz_poly(a) * flint.fmpz_poly(b))
    product += [0] * (2 * length - len(product))
    sign = -1 if negacyclic else 1
    expected = [(int(x) + sign * int(y)) % p for x, y in zip(product[:length], product[length:], strict=True)]
    x, y = (rd.from_ints([v, v], field) for v in (a, b))
    lazy = rd.from_ints([a, a], field, chunks=(1, 16)), rd.from_ints([b, b], field, chunks=(2, 64))
    for f, g in ((x, y), lazy):
        transforms = (rd.ntt(f, negacyclic=negacyclic), rd.ntt(g, negacyclic=negacyclic))
        result = rd.intt(transforms[0] * transforms[1], negacyclic=negacyclic)
        assert result.to_ints().tolist() == [expected, expected]
        assert result.words.dtype == field.word_dtype
    assert rd.ntt(lazy[0]).words.chunks == lazy[0].words.chunks
    across = rd.intt(rd.ntt(x.T, axis=0) * rd.ntt(y.T, axis=0), axis=0)
    assert across.shape == (length, 2)


def test_errors_of_arrays() -> None:
    x = rd.from_ints([1, 2, 3], F449)
    with pytest.raises(ValueError, match="power of two elements, got 3 on axis 0"):
        rd.ntt(x)
    with pytest.raises(ValueError, match="axis 1 is out of bounds"):
        rd.ntt(x, axis=1)
    assert rd.ntt(rd.from_ints([5], F449)).to_ints().tolist() == [5]
