"""Rational functions over fields against python-flint's polynomials and Python's integers."""

import re

import dask.array as da
import flint
import numpy as np
import pytest
from conftest import Processor
from sample_arrays import host

import rnsdask as rd
from rnsdask.core.errors import NumberError

MIXED = rd.PrimeFields([10007, 134217689, 2**31 - 1, 4294967291])
FERMAT = rd.FermatField.named("F233")

pytestmark = pytest.mark.usefixtures("in_this_thread")


def elements(processor: Processor, fields: rd.PrimeFields | rd.FermatField, values: list) -> rd.FieldArray:
    return rd.FieldArray(processor.xp.asarray(fields.encode(values)), fields)


def reduced(p: list[int], q: list[int], prime: int) -> tuple[list[int], list[int]]:
    """Divide by the common factor and the leading coefficient of q."""
    f, g = (flint.nmod_poly([c % prime for c in v], prime) for v in (p, q))
    common = f.gcd(g)
    f, g = f // common, g // common
    leading = g.leading_coefficient()
    return [int(c / leading) for c in f.coeffs()], [int(c / leading) for c in g.coeffs()]


@pytest.mark.parametrize("more", [0, 1, 7])
@pytest.mark.parametrize(("a", "b"), [(0, 0), (3, 0), (0, 3), (1, 1), (4, 9), (9, 4), (20, 20)])
def test_functions(on_each_processor: Processor, a: int, b: int, more: int, rng: np.random.Generator) -> None:
    """Functions of the degrees and of lower ones, some with common factors, at shared and own points."""
    p, q = (rng.integers(-50, 50, (4, degree + 1)).astype(object) for degree in (a, b))
    q[:, 0] = 1_000_000_007  # so that nothing is 0 at a point, but by chance
    p[1], p[2, 1:], q[2, 1:] = 0, 0, 0
    if a and b:
        p[3], q[3] = (np.convolve(v[0, :-1], [3, 1]) for v in (p, q))
    shared = rng.permutation(10007)[: a + b + 1 + more]
    own = np.stack([rng.permutation(10007)[: len(shared)] for _ in range(4)])
    f, g = (elements(on_each_processor, MIXED, v.tolist()) for v in (p, q))
    for points in (shared, own):
        x = elements(on_each_processor, MIXED, points.tolist())
        below = rd.poly.evaluate(g, x)
        if (host(below.words) == 0).any():
            continue
        y = rd.poly.evaluate(f, x) / below
        found = rd.poly.rational_interpolate(x, y, numerator_degree=a, denominator_degree=b)
        assert [v.shape for v in found] == [(4, a + 1), (4, b + 1)]
        for row, prime in enumerate(MIXED.primes):
            for k in range(4):
                expected = reduced(p[k].tolist(), q[k].tolist(), prime)
                for v, coefficients in zip(found, expected, strict=True):
                    words = host(v.words)[row, k].tolist()
                    assert words == coefficients + [0] * (len(words) - len(coefficients))
        lazy = rd.FieldArray(da.from_array(y.words, chunks=(-1, 3, 2), asarray=False), MIXED)
        again = rd.poly.rational_interpolate(x, lazy, numerator_degree=a, denominator_degree=b)
        for v, w in zip(again, found, strict=True):
            assert isinstance(v.words, da.Array)
            assert (host(v.compute().words) == host(w.words)).all()


def test_fermat_field(on_each_processor: Processor) -> None:
    p, q = [5, -7, 0, 2**200], [2**231, 3, 1]
    f, g = (elements(on_each_processor, FERMAT, v) for v in (p, q))
    x = elements(on_each_processor, FERMAT, [k**9 for k in range(1, 9)])
    y = rd.poly.evaluate(f, x) / rd.poly.evaluate(g, x)
    found = rd.poly.rational_interpolate(x, y, denominator_degree=2)
    assert [int(c) for c in found[0].to_ints()] == [c % FERMAT.modulus for c in [*p, 0]]
    assert [int(c) for c in found[1].to_ints()] == q
    with pytest.raises(NumberError, match=re.escape(f"degrees up to 2 and 2 has the values modulo {FERMAT}")):
        rd.poly.rational_interpolate(x, y, numerator_degree=2, denominator_degree=2)
    with pytest.raises(ValueError, match=r"point.* at index \(7,\) equals another"):
        rd.poly.rational_interpolate(x[[0, 1, 2, 3, 4, 5, 6, 3]], y)


def test_all_values_of_a_small_field() -> None:
    """Functions on a whole field of 5 elements: one of degrees 2 and 2, by search, or an error."""
    fields, points = rd.PrimeFields([5]), range(5)
    functions = {}
    for code in range(5**5):
        p = [code // 5**k % 5 for k in range(3)]
        for tail in ([1, 0, 0], *([c, 1, 0] for c in range(5)), *([c, code // 125 % 5, 1] for c in range(5))):
            at = [sum(c * x**k for k, c in enumerate(tail)) % 5 for x in points]
            if 0 not in at:
                values = [
                    sum(c * x**k for k, c in enumerate(p)) * pow(v, -1, 5) % 5
                    for x, v in zip(points, at, strict=True)
                ]
                functions[tuple(values)] = tuple(map(tuple, reduced(p, tail, 5)))
    x = rd.from_ints(list(points), fields, chunks=None)
    for code in range(0, 5**5, 3):
        values = tuple(code // 5**k % 5 for k in range(5))
        y = rd.from_ints(list(values), fields, chunks=None)
        if values not in functions:
            with pytest.raises(NumberError, match="no rational function of degrees up to 2 and 2"):
                rd.poly.rational_interpolate(x, y, numerator_degree=2, denominator_degree=2)
            continue
        found = rd.poly.rational_interpolate(x, y, numerator_degree=2, denominator_degree=2)
        assert tuple(tuple(np.trim_zeros(v.tolist(), "b")) for v in found) == functions[values]


def test_degrees_that_points_allow() -> None:
    x = rd.from_ints(range(2, 12), MIXED, chunks=None)
    y = (x * x + 1) / (x - 100)

    def lengths(**options: int) -> list[int]:
        return [v.shape[0] for v in rd.poly.rational_interpolate(x, y, **options)]

    assert lengths() == [5, 5]
    assert lengths(confirm=0) == [6, 5]
    assert lengths(confirm=4) == [4, 3]
    assert lengths(numerator_degree=2) == [3, 7]
    assert lengths(denominator_degree=1, confirm=5) == [4, 2]
    assert lengths(numerator_degree=2, denominator_degree=1) == [3, 2]


def test_errors() -> None:
    x = rd.from_ints(range(1, 7), MIXED, chunks=None)
    y = rd.from_ints([[1, 2, 3, 4, 5, 6], [1, 1, 1, 1, 1, 2]], MIXED, chunks=None)
    function = rd.poly.rational_interpolate
    for lazy in (False, True):
        values = y.rechunk(1) if lazy else y
        with pytest.raises(
            NumberError, match=r"degrees up to 2 and 2 has the values at index \(1,\) modulo 10007"
        ):
            function(x, values)[0].compute()
        with pytest.raises(ValueError, match=r"point.* at index \(2,\) equals another modulo 10007"):
            function(rd.from_ints([1, 2, 10008, 4, 5, 6], MIXED, chunks=None), values[0])[1].compute()
    with pytest.raises(ValueError, match="as many values as points"):
        function(x, y[:, :5])
    with pytest.raises(ValueError, match="degrees of 3 and 3 take 7 points, and 0 more to confirm, got 6"):
        function(x, y, numerator_degree=3, denominator_degree=3)
    with pytest.raises(ValueError, match="degrees of 5 take 6 points, and 1 more to confirm, got 6"):
        function(x, y, numerator_degree=5)
    with pytest.raises(ValueError, match="denominator_degree must be at least 0, got -1"):
        function(x, y, denominator_degree=-1)
    with pytest.raises(ValueError, match="confirm must be at least 0, got -2"):
        function(x, y, confirm=-2)
    with pytest.raises(TypeError, match="takes a FieldArray, got RNSArray"):
        function(x.lift(), [1] * 6)
    with pytest.raises(TypeError, match="confirm"):
        function(x, y, confirm=1.5)
    assert [v.shape for v in function(x, y[:0])] == [(0, 3), (0, 3)]
