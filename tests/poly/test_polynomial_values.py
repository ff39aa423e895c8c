"""Values and interpolation of polynomials over fields against Python's integers."""

import re

import dask.array as da
import numpy as np
import pytest
from conftest import Processor
from sample_arrays import host

import rnsdask as rd
from rnsdask.fields import polynomial_values

MIXED = rd.PrimeFields([101, 134217689, 2**31 - 1, 2147483659, 4294967291])
FERMAT = rd.FermatField.named("F233")


pytestmark = pytest.mark.usefixtures("in_this_thread")


def elements(
    processor: Processor, fields: rd.PrimeFields | rd.FermatField, values: np.ndarray
) -> rd.FieldArray:
    words = fields.encode(values.tolist())
    return rd.FieldArray(processor.xp.asarray(words), fields)


def drawn(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Integers of 240 bits; those modulo 101 are all different up to 101 points."""
    great = rng.integers(0, 2**60, (*shape, 4)).astype(object)
    return great[..., 0] + (great[..., 1] << 60) + (great[..., 2] << 120) + (great[..., 3] << 180)


def moduli_of(fields: rd.PrimeFields | rd.FermatField) -> list[int]:
    return [fields.modulus] if isinstance(fields, rd.FermatField) else list(fields.primes)


def value(coefficients: list[int], x: int, p: int) -> int:
    total = 0
    for c in reversed(coefficients):
        total = (total * x + c) % p
    return total


@pytest.mark.parametrize("by_tree", [False, True])
@pytest.mark.parametrize("fields", [MIXED, FERMAT], ids=["primes", "fermat"])
@pytest.mark.parametrize(("length", "count"), [(1, 1), (1, 4), (5, 1), (2, 3), (30, 7), (9, 40)])
def test_values(
    on_each_processor: Processor,
    fields: rd.PrimeFields | rd.FermatField,
    length: int,
    count: int,
    by_tree: bool,
    rng: np.random.Generator,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if by_tree:
        monkeypatch.setattr(polynomial_values, "TREE_FROM", dict.fromkeys(("cpu", "cuda"), 0))
    coefficients, own, shared = drawn(rng, 3, length), drawn(rng, 3, count), drawn(rng, count)
    f, x, y = (elements(on_each_processor, fields, v) for v in (coefficients, own, shared))
    for points, given in ((x, own), (y, np.broadcast_to(shared, (3, count)))):
        found = rd.poly.evaluate(f, points)
        assert found.shape == (3, count)
        ints = found.to_ints()
        for p in moduli_of(fields):
            expected = [
                [value(row.tolist(), t, p) for t in at] for row, at in zip(coefficients, given, strict=True)
            ]
            assert [[int(v) % p for v in row] for row in ints] == expected
    one = rd.poly.evaluate(f[0], y)
    assert (host(one.words) == host(rd.poly.evaluate(f, y).words)[:, 0]).all()


@pytest.mark.parametrize("fields", [MIXED, FERMAT], ids=["primes", "fermat"])
@pytest.mark.parametrize("count", [1, 2, 3, 8, 21, 64])
def test_interpolation(
    on_each_processor: Processor,
    fields: rd.PrimeFields | rd.FermatField,
    count: int,
    rng: np.random.Generator,
) -> None:
    coefficients = drawn(rng, 3, count)
    own = np.stack([rng.permutation(101)[:count] + 101 * int(k) for k in rng.integers(0, 1000, 3)])
    f, x, y = (elements(on_each_processor, fields, v) for v in (coefficients, own.astype(object), own[0]))
    for points in (x, y):
        back = rd.poly.interpolate(points, rd.poly.evaluate(f, points))
        assert back.shape == (3, count)
        assert (host(back.words) == host(f.words)).all()
    lazy = rd.FieldArray(da.from_array(f.words, chunks=(-1, 2, 5), asarray=False), fields)
    values = rd.poly.evaluate(lazy, y)
    assert isinstance(values.words, da.Array)
    assert (host(rd.poly.interpolate(y, values).words) == host(f.words)).all()
    assert rd.poly.interpolate(x[:0], values.compute()[:0]).shape == (0, count)


def test_many_points(rng: np.random.Generator) -> None:
    """So many that they are evaluated by trees, and blocks of powers end within them."""
    p = 2147483659
    fields = rd.PrimeFields([p])
    words = rng.integers(0, p, 5000, dtype=np.uint64).astype(np.uint32)
    x = rng.permutation(2**20)[:5000].astype(np.uint32)
    f, points = (rd.FieldArray(v[None], fields) for v in (words, x))
    found = rd.poly.evaluate(f, points)
    expected = [value(words.tolist(), t, p) for t in x[:3].tolist()]
    assert [int(v) for v in found.words[0, :3]] == expected
    assert (rd.poly.evaluate(f, points[:4000]).words == found.words[:, :4000]).all()
    assert (rd.poly.interpolate(points, found).words == f.words).all()


def test_errors() -> None:
    points = rd.from_ints([[0, 1, 2, 3], [5, 7, 106, 9]], MIXED, chunks=None)
    with pytest.raises(ValueError, match=r"at index \(1, 0\) equals another modulo 101$"):
        rd.poly.interpolate(points, points)
    lazy = rd.poly.interpolate(points.rechunk(1), points)
    with pytest.raises(ValueError, match=r"at index \(1, 0\) equals another modulo 101$"):
        lazy.compute()
    twice = rd.from_ints([4, 4], FERMAT, chunks=None)
    with pytest.raises(ValueError, match=rf"at index \(0,\) equals another modulo {re.escape(str(FERMAT))}$"):
        rd.poly.interpolate(twice, twice)
    with pytest.raises(ValueError, match=r"as many values as points .* got shapes \(2, 4\) and \(2, 3\)"):
        rd.poly.interpolate(points, points[:, :3])
