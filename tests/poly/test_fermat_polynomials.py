"""Division, divisors, resultants and discriminants of polynomials over Fermat fields against FLINT's."""

from typing import Any

import dask.array as da
import flint
import numpy as np
import pytest
from conftest import Processor
from sample_arrays import host

import rnsdask as rd

FIELDS = [rd.FermatField(2**8 + 2**5, 4), rd.FermatField.named("F233"), rd.FermatField.named("P3")]
LENGTHS = [(1, 1), (1, 4), (4, 1), (2, 2), (3, 2), (5, 5), (3, 9), (14, 13), (20, 9)]
Values = list[list[int]]


pytestmark = pytest.mark.usefixtures("in_this_thread")


def elements(processor: Processor, field: rd.FermatField, values: Any, *chunks: int) -> Any:
    words = processor.xp.asarray(field.encode(np.array(values, dtype=object)))
    if chunks:
        words = da.from_array(words, chunks=(-1, *chunks), asarray=False)
    return rd.FieldArray(words, field)


def integers(found: Any) -> Any:
    return found.system.decode(host(found.words)).tolist()


def drawn(rng: np.random.Generator, p: int, length: int) -> list[int]:
    """Elements of any size, those at the ends among them."""
    large = [int.from_bytes(rng.bytes(p.bit_length() // 8 + 8), "little") % p for _ in range(length)]
    return [v if rng.integers(3) else (0, 1, p - 1, 7)[v % 4] for v in large]


def padded(polynomial: Any, length: int) -> list[int]:
    coefficients = [int(c) for c in polynomial.coeffs()]
    assert len(coefficients) <= length
    return coefficients + [0] * (length - len(coefficients))


def pairs(rng: np.random.Generator, context: Any, p: int, lengths: tuple[int, int]) -> tuple[Values, Values]:
    """Random polynomials; zeros, constants, lower degrees, gaps and common factors among them."""
    found = []
    for length in lengths:
        batch = [drawn(rng, p, length) for _ in range(13)]
        batch[4] = [v if k % 3 == 2 else 0 for k, v in enumerate(batch[4])]
        batch[5][length // 2 :] = [0] * (length - length // 2)
        found.append(batch)
    f, g = found
    f[0] = [0] * lengths[0]
    g[0] = g[1] = [0] * lengths[1]
    f[2][1:], g[3][1:] = [0] * (lengths[0] - 1), [0] * (lengths[1] - 1)
    for b in (6, 7) if min(lengths) > 2 else ():
        factor = context([*drawn(rng, p, b - 5), 1])
        for batch, length in zip(found, lengths, strict=True):
            batch[b] = padded(context(batch[b][: length - factor.degree()]) * factor, length)
    return f, g


@pytest.mark.parametrize("field", FIELDS, ids=str)
@pytest.mark.parametrize("lengths", LENGTHS)
def test_pairs(
    on_each_processor: Processor,
    field: rd.FermatField,
    lengths: tuple[int, int],
    rng: np.random.Generator,
) -> None:
    p = field.modulus
    context = flint.fmpz_mod_poly_ctx(flint.fmpz_mod_ctx(p))
    a, b = pairs(rng, context, p, lengths)
    divisors = [v if any(v) else [1, *v[1:]] for v in b]
    f, g, d = (elements(on_each_processor, field, v) for v in (a, b, divisors))
    resultants, common = integers(rd.poly.resultant(f, g)), integers(rd.poly.gcd(f, g))
    discriminants = integers(rd.poly.discriminant(f))
    quotients, remainders = map(integers, rd.poly.divmod(f, d))
    for k in range(len(a)):
        x, y = context(a[k]), context(b[k])
        both = min(x.degree(), y.degree()) >= 0
        assert resultants[k] == (int(x.resultant(y)) if both else 0)
        assert common[k] == padded(x.gcd(y), max(lengths))
        assert discriminants[k] == (int(x.discriminant()) if x.degree() > 0 else 0)
        quotient, remainder = divmod(x, context(divisors[k]))
        assert quotients[k] == padded(quotient, lengths[0])
        assert remainders[k] == padded(remainder, max(1, lengths[1] - 1))


@pytest.mark.parametrize("lengths", [(300, 150), (200, 130), (260, 90)])
def test_long_division(
    on_each_processor: Processor, lengths: tuple[int, int], rng: np.random.Generator
) -> None:
    """By convolutions, and beside it divisors of lower degrees."""
    field = rd.FermatField.named("F233")
    p = field.modulus
    context = flint.fmpz_mod_poly_ctx(flint.fmpz_mod_ctx(p))
    a, b = ([drawn(rng, p, length) for _ in range(4)] for length in lengths)
    b[0][-1], b[1][-1], b[2][-1] = p - 1, 1, 5
    b[3] = [*drawn(rng, p, 3), 2] + [0] * (lengths[1] - 4)
    q, r = map(integers, rd.poly.divmod(*(elements(on_each_processor, field, v) for v in (a, b))))
    for k in range(4):
        quotient, remainder = divmod(context(a[k]), context(b[k]))
        assert q[k] == padded(quotient, lengths[0])
        assert r[k] == padded(remainder, lengths[1] - 1)


def test_chunks_and_broadcasting(on_each_processor: Processor, rng: np.random.Generator) -> None:
    field = FIELDS[0]
    p = field.modulus
    a, b = ([[drawn(rng, p, length) for _ in range(4)] for _ in range(3)] for length in (7, 5))
    b = b[0]
    for row in b:
        row[0] |= 1
    f, g = (elements(on_each_processor, field, v) for v in (a, b))
    lazy, other = elements(on_each_processor, field, a, 2, 3, 4), elements(on_each_processor, field, b, 3, 2)
    for x, y in ((lazy, g), (f, other), (lazy, other)):
        for name in ("resultant", "gcd", "divmod"):
            found, expected = getattr(rd.poly, name)(x, y), getattr(rd.poly, name)(f, g)
            for part, whole in zip(found, expected, strict=True) if name == "divmod" else [(found, expected)]:
                assert isinstance(part.words, da.Array)
                assert part.shape == whole.shape
                assert integers(part.compute()) == integers(whole)
    assert integers(rd.poly.discriminant(lazy).compute()) == integers(rd.poly.discriminant(f))
    one = rd.poly.resultant(f[0, 0], g[0])
    assert one == rd.poly.resultant(f, g)[0, 0]
    assert rd.poly.resultant(lazy[0, 0], g[0]).compute() == one
    assert rd.poly.discriminant(f[0, 0]) == rd.poly.discriminant(f)[0, 0]
    assert rd.poly.resultant(f[:0], g).shape == rd.poly.discriminant(f[:0]).shape == (0, 4)
    assert rd.poly.gcd(f[:0], g).shape == (0, 4, 7)
    assert [part.shape for part in rd.poly.divmod(f[:0], g)] == [(0, 4, 7), (0, 4, 4)]


def test_errors() -> None:
    field = FIELDS[0]
    f, g = (rd.from_ints(v, field, chunks=None) for v in ([[1, 2, 3], [3, 6, 5]], [[1, 2], [0, 0]]))
    with pytest.raises(
        ZeroDivisionError, match=r"the divisor at index \(1,\) is 0 modulo \(2\*\*8 \+ 2\*\*5\)"
    ):
        rd.poly.divmod(f, g)
    with pytest.raises(
        ZeroDivisionError, match=r"the divisor at index \(1,\) is 0 modulo \(2\*\*8 \+ 2\*\*5\)"
    ):
        rd.poly.divmod(f, g.rechunk(1))[0].compute()
    with pytest.raises(ZeroDivisionError, match="the divisor is 0 modulo"):
        rd.poly.divmod(f[0], g[1])
    with pytest.raises(ValueError, match="none of them empty"):
        rd.poly.resultant(f, g[:, :0])
    with pytest.raises(TypeError, match="takes integers in two variables"):
        rd.poly.resultant(f, f, variables=2)
