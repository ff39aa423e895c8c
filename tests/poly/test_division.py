"""Division, divisors, resultants and discriminants of polynomials over prime fields against FLINT's."""

import itertools
from collections.abc import Iterator
from typing import Any

import dask.array as da
import flint
import numpy as np
import pytest
from conftest import Processor
from sample_arrays import host

import rnsdask as rd
from rnsdask.fields import polynomials

# Where ways begin: fields in which everything is 0, primes of 31 and of 32 bits.
SMALL = rd.PrimeFields([2, 3, 5, 7])
MIXED = rd.PrimeFields([2, 7, 134217689, 2**31 - 1, 2147483659, 4294967291])
LENGTHS = [(1, 1), (1, 4), (4, 1), (2, 2), (3, 2), (5, 5), (3, 9), (17, 16), (40, 17), (33, 32)]


pytestmark = pytest.mark.usefixtures("in_this_thread")


def drawn(rng: np.random.Generator, fields: rd.PrimeFields, *shape: int) -> np.ndarray:
    return np.stack([rng.integers(0, p, shape, dtype=np.uint64) for p in fields.primes]).astype(np.uint32)


def pairs(
    rng: np.random.Generator, fields: rd.PrimeFields, count: int, lengths: tuple[int, int]
) -> tuple[np.ndarray, np.ndarray]:
    """Random polynomials, and zeros, constants, lower degrees and common factors among them."""
    x, y = (drawn(rng, fields, count, length) for length in lengths)
    x[:, :1] = 0
    y[:, 1:2] = x[:, 2:3, 1:] = y[:, 2:3, -1:] = 0
    x[:, 3:4, -1:] = y[:, 3:4, -1:] = 0
    for b in (4, 5) if count > 5 else ():
        for i, p in enumerate(fields.primes):
            factor = flint.nmod_poly([int(v) for v in rng.integers(0, p, b - 2)], p)
            for words in (x, y):
                if words.shape[-1] >= b - 2:
                    rest = flint.nmod_poly(words[i, b, : words.shape[-1] - b + 3].tolist(), p)
                    words[i, b] = padded(rest * factor, words.shape[-1])
    return x, y


def padded(polynomial: Any, length: int) -> list[int]:
    coefficients = list(map(int, polynomial.coeffs()))
    assert len(coefficients) <= length
    return coefficients + [0] * (length - len(coefficients))


def each(fields: rd.PrimeFields, *arrays: np.ndarray) -> Iterator[tuple[tuple[int, int], list[Any]]]:
    """Place, and FLINT's polynomials, of all words (n, count, length)."""
    for i, b in itertools.product(range(fields.rows), range(arrays[0].shape[1])):
        yield (i, b), [flint.nmod_poly(words[i, b].tolist(), fields.primes[i]) for words in arrays]


@pytest.mark.parametrize("fields", [SMALL, MIXED], ids=["small", "mixed"])
@pytest.mark.parametrize("lengths", LENGTHS)
def test_pairs(
    on_each_processor: Processor,
    fields: rd.PrimeFields,
    lengths: tuple[int, int],
    rng: np.random.Generator,
) -> None:
    # Enough that pairs are computed side by side, and then some.
    words = pairs(rng, fields, 37, lengths)
    f, g = (rd.FieldArray(on_each_processor.xp.asarray(v), fields) for v in words)
    resultants, divisors = host(rd.poly.resultant(f, g).words), host(rd.poly.gcd(f, g).words)
    discriminants = host(rd.poly.discriminant(f).words)
    y = words[1].copy()
    y[..., 0] += (y == 0).all(axis=-1)
    quotients, remainders = rd.poly.divmod(f, rd.FieldArray(on_each_processor.xp.asarray(y), fields))
    assert quotients.shape == (37, lengths[0])
    assert remainders.shape == (37, max(1, lengths[1] - 1))
    q, r = host(quotients.words), host(remainders.words)
    for place, (a, b, divisor) in each(fields, *words, y):
        both = a.degree() >= 0 and b.degree() >= 0
        assert resultants[place] == (int(a.resultant(b)) if both else 0)
        assert divisors[place].tolist() == padded(a.gcd(b), max(lengths))
        assert discriminants[place] == (int(a.discriminant()) if a.degree() > 0 else 0)
        quotient, remainder = divmod(a, divisor)
        assert q[place].tolist() == padded(quotient, lengths[0])
        assert r[place].tolist() == padded(remainder, max(1, lengths[1] - 1))


def test_long_polynomials(on_each_processor: Processor, rng: np.random.Generator) -> None:
    """Pairs computed one by one, sparse ones whose degrees drop by many, and long and short ones."""
    fields = rd.PrimeFields([2**31 - 1, 4294967291])
    x, y = drawn(rng, fields, 5, 700), drawn(rng, fields, 5, 600)
    x[:, 1, np.arange(700) % 7 != 6] = 0
    y[:, 1, np.arange(600) % 7 != 6] = 0
    y[:, 2, 12:] = 0
    y[:, 3, :200] = x[:, 3, :200] = 0
    f, g = (rd.FieldArray(on_each_processor.xp.asarray(v), fields) for v in (x, y))
    resultants, divisors = host(rd.poly.resultant(f, g).words), host(rd.poly.gcd(f, g).words)
    q, r = (host(part.words) for part in rd.poly.divmod(f, g))
    for place, (a, b) in each(fields, x, y):
        assert resultants[place] == int(a.resultant(b))
        assert divisors[place].tolist() == padded(a.gcd(b), 700)
        assert (q[place].tolist(), r[place].tolist()) == tuple(
            padded(v, n) for v, n in zip(divmod(a, b), (700, 599), strict=True)
        )


@pytest.mark.parametrize("lengths", [(6000, 2500), (4200, 2049), (9000, 2200), (4100, 2049)])
def test_long_division(
    on_each_processor: Processor,
    lengths: tuple[int, int],
    monkeypatch: pytest.MonkeyPatch,
    rng: np.random.Generator,
) -> None:
    """By convolutions, where all divisors have one degree, and else not."""
    monkeypatch.setattr(polynomials, "LONG", dict.fromkeys(("cpu", "cuda"), 1024))
    fields = rd.PrimeFields([2, 12289, 2**31 - 1, 4294967291])
    x, y = drawn(rng, fields, 2, lengths[0]), drawn(rng, fields, 2, lengths[1])
    y[..., -1] |= 1
    y[0, 0, -1] = rng.integers(2)
    f, g = (rd.FieldArray(on_each_processor.xp.asarray(v), fields) for v in (x, y))
    q, r = (host(part.words) for part in rd.poly.divmod(f, g))
    for place, (a, b) in each(fields, x, y):
        quotient, remainder = divmod(a, b)
        assert q[place].tolist() == padded(quotient, lengths[0])
        assert r[place].tolist() == padded(remainder, lengths[1] - 1)


def test_chunks_and_broadcasting(on_each_processor: Processor, rng: np.random.Generator) -> None:
    x, y = drawn(rng, MIXED, 3, 4, 9), drawn(rng, MIXED, 4, 6)
    y[..., 0] |= 1
    f, g = (rd.FieldArray(on_each_processor.xp.asarray(v), MIXED) for v in (x, y))
    lazy = rd.FieldArray(da.from_array(f.words, chunks=(-1, 2, 3, 4), asarray=False), MIXED)
    other = rd.FieldArray(da.from_array(g.words, chunks=(-1, 2, 6), asarray=False), MIXED)
    for a, b in ((lazy, g), (f, other), (lazy, other)):
        for name in ("resultant", "gcd", "divmod"):
            found, expected = getattr(rd.poly, name)(a, b), getattr(rd.poly, name)(f, g)
            parts = zip(found, expected, strict=True) if name == "divmod" else [(found, expected)]
            for part, whole in parts:
                assert isinstance(part.words, da.Array)
                assert part.shape == whole.shape
                assert (host(part.words) == host(whole.words)).all()
    assert (host(rd.poly.discriminant(lazy).words) == host(rd.poly.discriminant(f).words)).all()
    one = rd.poly.resultant(f[0, 0], g[0])
    assert one == rd.poly.resultant(f, g)[0, 0]
    assert rd.poly.resultant(lazy[0, 0], g[0]).compute() == one
    assert rd.poly.discriminant(f[0, 0]) == rd.poly.discriminant(f)[0, 0]
    unknown = rd.FieldArray(da.from_array(f.words[:, 0], chunks=(-1, 3, 4), asarray=False), MIXED)
    chosen = unknown[da.from_array(np.array([True, False, True, True]), chunks=3)]
    assert host(rd.poly.resultant(chosen, g[:3]).words).shape == (MIXED.rows, 3)
    empty = rd.poly.resultant(f[:0], g)
    assert empty.shape == (0, 4)
    assert rd.poly.gcd(f[:0], g).shape == (0, 4, 9)
    assert rd.poly.divmod(f[:0], g)[1].shape == (0, 4, 5)


def test_batches_that_do_not_broadcast() -> None:
    fields = rd.PrimeFields([5, 7])
    f, g = (rd.from_ints(np.ones((k, 2), dtype=int), fields) for k in (2, 3))
    functions = (rd.poly.gcd, rd.poly.divmod, rd.poly.resultant, rd.poly.evaluate, rd.poly.interpolate)
    for function in functions:
        for x, y in ((f, g), (f.compute(), g), (f.compute(), g.compute())):
            with pytest.raises(ValueError, match=r"^shapes do not broadcast together: \(2,\) and \(3,\)$"):
                function(x, y)


def test_errors() -> None:
    f = rd.from_ints([[1, 2, 3], [3, 6, 5]], MIXED, chunks=None)
    zero = rd.from_ints([[1, 2], [7, 14]], MIXED, chunks=None)
    with pytest.raises(ZeroDivisionError, match=r"the divisor at index \(1,\) is 0 modulo 7$"):
        rd.poly.divmod(f, zero)
    remainder = rd.poly.divmod(f, zero.rechunk(1))[1]
    with pytest.raises(ZeroDivisionError, match=r"the divisor at index \(1,\) is 0 modulo 7$"):
        remainder.compute()
    with pytest.raises(ZeroDivisionError, match=r"the divisor is 0 modulo 2$"):
        rd.poly.divmod(f[0], rd.from_ints([0, 0], MIXED, chunks=None))
    with pytest.raises(TypeError, match="resultant takes arrays of numbers, got int"):
        rd.poly.resultant(f, 2)
    with pytest.raises(ValueError, match=r"none of them empty, got shape \(2, 0\)"):
        rd.poly.resultant(f, zero[:, :0])
    with pytest.raises(ValueError, match="different moduli"):
        rd.poly.gcd(f, rd.from_ints([1, 2], SMALL, chunks=None))
    with pytest.raises(ValueError, match="variables must be 1 or 2, got 3"):
        rd.poly.resultant(f, f, variables=3)
    with pytest.raises(TypeError, match="takes integers in two variables"):
        rd.poly.resultant(f, f, variables=2)
