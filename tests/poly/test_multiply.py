"""Products of polynomials against FLINT's."""

import flint
import numpy as np
import pytest

import rnsdask as rd

MS = rd.ModuliSet.for_bits(200)


def test_multiply(rng: np.random.Generator) -> None:
    f, g = (rng.integers(-(2**60), 2**60, (3, count)).tolist() for count in (40, 25))
    expected = [
        [int(c) for c in (flint.fmpz_poly(a) * flint.fmpz_poly(b)).coeffs()]
        for a, b in zip(f, g, strict=True)
    ]
    x, y = (rd.from_ints(np.array(v, dtype=object), MS, True, chunks=None) for v in (f, g))
    for a, b in ((x, y), (x.rechunk((2, 9)), y), (x, y.rechunk((1, 25)))):
        assert rd.poly.multiply(a, b).to_ints().tolist() == expected
    fields = rd.PrimeFields([65537, 2**31 - 1])
    p, q = (rd.from_ints(np.array(v, dtype=object), fields, chunks=None) for v in (f, g))
    found = rd.poly.multiply(p, q).to_ints().tolist()
    assert found == [[c % fields.moduli.product for c in row] for row in expected]


def test_overflow() -> None:
    x = rd.from_ints([2**150, 1], MS, True, chunks=None)
    with pytest.raises(rd.RNSOverflowError, match="index 0"):
        rd.poly.multiply(x, x)
    product, mask = rd.poly.multiply(x, x, overflow="flag")
    assert np.asarray(mask).tolist() == [True, False, False]
    assert product.to_ints().tolist()[1:] == [2**151, 1]
