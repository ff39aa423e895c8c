"""Resultants and discriminants of integer polynomials, in one and two variables, against FLINT's."""

import math
from typing import Any

import dask.array as da
import flint
import numpy as np
import pytest
from conftest import Processor
from sample_arrays import array_of, chunked, host

import rnsdask as rd
from rnsdask.fields import bivariate_resultant, exact_polynomials, geometric_points
from rnsdask.fields.bivariate_resultant import degree_bound
from rnsdask.lazy import exact_polynomials as lazy_polynomials
from rnsdask.rns.lift import primes

MODULI = rd.ModuliSet.for_bits(140)
XY = flint.fmpz_mpoly_ctx.get(("x", "y"), "lex")


pytestmark = pytest.mark.usefixtures("in_this_thread")


def integers(rng: np.random.Generator, bits: int, *shape: int) -> np.ndarray:
    """Signed integers of up to so many bits, the ends among them."""
    flat = [int.from_bytes(rng.bytes(bits // 8 + 2), "little") for _ in range(int(np.prod(shape)))]
    values = [(v >> 1) % (2**bits + 1) * (-1) ** (v & 1) for v in flat]
    values[::5] = [2**bits] * len(values[::5])
    return np.array(values, dtype=object).reshape(shape)


def one_variable(a: np.ndarray, b: np.ndarray) -> int:
    f, g = (flint.fmpz_poly(v.tolist()) for v in (a, b))
    return int(f.resultant(g)) if min(f.degree(), g.degree()) >= 0 else 0


def discriminant(a: np.ndarray) -> int:
    f = flint.fmpz_poly(a.tolist())
    return int(f.discriminant()) if f.degree() > 0 else 0


@pytest.mark.parametrize("bits", [1, 31, 130])
@pytest.mark.parametrize("lengths", [(1, 1), (1, 3), (2, 2), (7, 5), (12, 13)])
def test_one_variable(
    on_each_processor: Processor, bits: int, lengths: tuple[int, int], rng: np.random.Generator
) -> None:
    f, g = (integers(rng, bits, 7, length) for length in lengths)
    f[0] = g[1] = 0
    f[2, -1] = g[2, -1] = g[3, 1:] = f[4, -1] = 0
    if min(lengths) > 1:  # a common root 1 or -1
        f[5], g[5] = 0, 0
        f[5, :2], g[5, -2:] = (-1, 1), (3, -3)
    x, y = (array_of(on_each_processor, v, MODULI, True) for v in (f, g))
    expected = [one_variable(a, b) for a, b in zip(f, g, strict=True)]
    assert rd.poly.resultant(x, y).tolist() == expected
    assert rd.poly.resultant(x, y[6]).tolist() == [one_variable(a, g[6]) for a in f]
    assert rd.poly.resultant(x[6], y[6]) == expected[6]
    assert rd.poly.discriminant(x).tolist() == [discriminant(a) for a in f]
    assert rd.poly.discriminant(x[6]) == discriminant(f[6])
    lazy, other = chunked(x, 3, 2), chunked(y, 4, -1)
    for found in (rd.poly.resultant(lazy, other), rd.poly.resultant(x, other)):
        assert isinstance(found, da.Array)
        assert host(found).tolist() == expected
    assert host(rd.poly.discriminant(lazy)).tolist() == [discriminant(a) for a in f]
    assert rd.poly.resultant(lazy[6], y[6]).compute() == expected[6]
    assert rd.poly.resultant(x[:0], y[:0]).shape == (0,)


LONG = rd.ModuliSet.for_bits(33230)


def refuse(*_: Any, **__: Any) -> None:
    pytest.fail("primes are looked for")


def test_small_degrees_take_no_primes(monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator) -> None:
    """Few long coefficients are eliminated as they are: tables modulo primes would take seconds."""
    for module, name in ((exact_polynomials, "images"), (exact_polynomials, "count_beyond")):
        monkeypatch.setattr(module, name, refuse)
    a = int(integers(rng, 33220, 2)[1]) | 1
    for x, y in ((a, a), (a, -a), (2**33220, 1 - 2**33219), (0, a), (a, 0), (1, LONG[0])):
        f, g = (rd.from_ints(v, LONG, signed=True, chunks=3) for v in ([x, 0, 1], [1, y]))
        assert int(rd.poly.resultant(f, g).compute()) == 1 + x * y * y
        assert int(rd.poly.discriminant(f).compute()) == -4 * x
        f, g = (rd.from_ints(v, LONG, signed=True, chunks=None) for v in ([x, y, 3], [y, x, -3]))
        assert rd.poly.resultant(f, g) == one_variable(np.array([x, y, 3]), np.array([y, x, -3]))
        assert rd.poly.discriminant(f) == y * y - 12 * x


@pytest.mark.parametrize("lengths", [(1, 1), (1, 2), (2, 1), (2, 2), (3, 2), (4, 4), (1, 8), (5, 4)])
def test_small_degrees_of_all_kinds(lengths: tuple[int, int], rng: np.random.Generator) -> None:
    """Coefficients that are 0 lower the degrees, to none at all."""
    choices = [0, 0, 1, -1, 2**100, -(2**100), 5]
    for _ in range(30):
        a, b = (np.array([choices[k] for k in rng.integers(7, size=n)], dtype=object) for n in lengths)
        f, g = (rd.from_ints(v, MODULI, signed=True, chunks=None) for v in (a, b))
        assert rd.poly.resultant(f, g) == one_variable(a, b)
        assert rd.poly.discriminant(f) == discriminant(a)


def test_parts_of_primes(
    on_each_processor: Processor, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    """So many primes that their residues are converted in parts."""
    monkeypatch.setattr(exact_polynomials, "TOGETHER", 4)
    f, g = integers(rng, 100, 3, 4, 6), integers(rng, 70, 3, 3, 5)
    x, y = (array_of(on_each_processor, v, MODULI, True) for v in (f, g))
    first = rd.poly.resultant(x[:, 0], y[:, 0]).tolist()
    assert first == [one_variable(a, b) for a, b in zip(f[:, 0], g[:, 0], strict=True)]
    assert rd.poly.discriminant(x[0]).tolist() == [discriminant(a) for a in f[0]]
    expected = [two_variables(a, b) for a, b in zip(f, g, strict=True)]
    assert rd.poly.resultant(x, y, variables=2).tolist() == expected
    lazy = rd.poly.resultant(chunked(x[0], -1, -1), y[0], variables=2)
    assert host(lazy).tolist() == expected[0]


def test_groups_of_primes(
    on_each_processor: Processor, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    """One pair, and chunks of a batch, in several tasks each; some say nothing, for numbers are small."""
    monkeypatch.setattr(lazy_polynomials, "STEPS", dict.fromkeys(("cpu", "cuda"), 1000))
    monkeypatch.setattr(exact_polynomials, "LEAST_GROUP", 3)
    f, g = integers(rng, 100, 5, 9), integers(rng, 70, 5, 8)
    f[1], f[2], g[3] = 0, f[2] >> 90, g[3] >> 60
    x, y = (array_of(on_each_processor, v, MODULI, True) for v in (f, g))
    expected = [one_variable(a, b) for a, b in zip(f, g, strict=True)]
    found = rd.poly.resultant(chunked(x, 2, -1), y)
    assert len(found.__dask_graph__()) > 10
    assert host(found).tolist() == expected
    assert rd.poly.resultant(chunked(x[4], -1), y[4]).compute() == expected[4]
    assert host(rd.poly.resultant(chunked(x, 2, -1), y[0])).tolist() == [one_variable(a, g[0]) for a in f]
    assert rd.poly.resultant(chunked(x, 2, -1)[:0], y[:0]).shape == (0,)


def test_leading_coefficients_that_primes_divide(on_each_processor: Processor) -> None:
    first = primes(0, 3)
    f = np.array([[1, 2, first[0]], [5, first[0], first[1]], [1, 1, first[0] * first[1]]], dtype=object)
    g = np.array([[3, 0, 7], [1, 1, first[0]], [2, 5, first[0] * first[2]]], dtype=object)
    x, y = (array_of(on_each_processor, v, MODULI, True) for v in (f, g))
    assert rd.poly.resultant(x, y).tolist() == [one_variable(a, b) for a, b in zip(f, g, strict=True)]
    assert rd.poly.discriminant(x).tolist() == [discriminant(a) for a in f]
    first = geometric_points.primes(0, 3)
    f = np.array([[1, 2, first[0]], [5, first[0], first[1]], [1, 1, first[0] * first[1]]], dtype=object)
    wide = [np.stack([np.array([1, 0, 0]), row]).astype(object) for row in f]
    for a, b in zip(wide, reversed(wide), strict=True):
        check_two(on_each_processor, a, b)
        check_two(on_each_processor, a.T.copy(), b.T.copy())


def two_variables(f: np.ndarray, g: np.ndarray) -> list[int]:
    """Coefficients in x of FLINT's resultant, as many as shapes allow."""
    (m, a), (n, c) = ((length - 1 for length in v.shape) for v in (f, g))
    found = [0] * (n * a + m * c + 1)
    p, q = (XY.from_dict({(j, i): int(v) for (i, j), v in np.ndenumerate(w) if v}) for w in (f, g))
    if p != 0 and q != 0:
        for (k, _), v in p.resultant(q, "y").to_dict().items():
            found[k] = int(v)
    return found


def check_two(processor: Processor, f: np.ndarray, g: np.ndarray) -> None:
    x, y = (array_of(processor, v, MODULI, True) for v in (f, g))
    expected = two_variables(f, g)
    assert rd.poly.resultant(x, y, variables=2).tolist() == expected
    found = rd.poly.resultant(chunked(x, 1, 2), y, variables=2)
    assert isinstance(found, da.Array)
    assert found.shape == (len(expected),)
    assert host(found).tolist() == expected


@pytest.mark.parametrize("bits", [1, 31, 100])
@pytest.mark.parametrize(
    "shapes", [((1, 1), (1, 1)), ((1, 3), (1, 2)), ((3, 1), (4, 1)), ((2, 3), (4, 2)), ((5, 4), (4, 6))]
)
def test_two_variables(
    on_each_processor: Processor, bits: int, shapes: tuple[Any, Any], rng: np.random.Generator
) -> None:
    f, g = (integers(rng, bits, *shape) for shape in shapes)
    check_two(on_each_processor, f, g)
    # Of bounded total degree: the degree is lower than shapes allow.
    triangles = [np.where(np.add.outer(*map(np.arange, v.shape)) < min(v.shape), v, 0) for v in (f, g)]
    check_two(on_each_processor, *triangles)
    check_two(on_each_processor, f, np.zeros_like(g))
    f[-1], g[-1, :1] = 0, 0  # a lower degree in y, and a leading coefficient that is 0 at x = 0
    check_two(on_each_processor, f, g)


def test_two_variables_with_common_parts(on_each_processor: Processor) -> None:
    line, other = np.array([[0, 1], [1, 0]], dtype=object), np.array([[3, 1], [2, 5]], dtype=object)
    check_two(on_each_processor, line, line)
    check_two(on_each_processor, line, other)
    zero_root = np.array([[0, 0], [1, 2]], dtype=object)
    check_two(on_each_processor, zero_root, np.array([[0, 0], [0, 1], [4, 5]], dtype=object))
    # x y - 1 and x: the leading coefficient is 0 at the only root.
    check_two(on_each_processor, np.array([[-1, 0], [0, 1]], dtype=object), np.array([[0, 1]], dtype=object))


def test_batches_in_two_variables(on_each_processor: Processor, rng: np.random.Generator) -> None:
    f, g = integers(rng, 40, 2, 3, 3, 2), integers(rng, 40, 3, 2, 4)
    x, y = (array_of(on_each_processor, v, MODULI, True) for v in (f, g))
    expected = [[two_variables(f[i, j], g[j]) for j in range(3)] for i in range(2)]
    found = rd.poly.resultant(x, y, variables=2)
    assert found.tolist() == expected
    lazy = rd.poly.resultant(chunked(x, 1, 2, 2, -1), y, variables=2)
    assert lazy.shape == found.shape
    assert host(lazy).tolist() == expected
    assert rd.poly.resultant(x[:0], y, variables=2).shape == (0, 3, 8)


@pytest.mark.parametrize("words", [2**8, 2**14, 2**21])
def test_batches_of_pairs_of_all_kinds(
    on_each_processor: Processor, words: int, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    """Degrees, bounds and zeros differ from pair to pair; computed a few at a time, or all together."""
    for name in ("_CPU_WORDS", "_GPU_WORDS"):
        monkeypatch.setattr(bivariate_resultant, name, words)
    f, g = integers(rng, 20, 12, 4, 3), integers(rng, 20, 12, 3, 4)
    f[0] = g[1] = 0
    f[2, 1:] = g[3, 1:] = 0  # of degree 0 in y
    f[4, ..., 1:] = g[4, ..., 1:] = 0  # and in x
    f[5, :2] = g[5, :1] = 0  # both have the root 0
    f[6, 2:], g[6, -1, 1:] = 0, 0
    f[7] = f[7] * 2**100
    f[8, -1, 0] = g[8, -1, 0] = 0
    f[9, 1:] = g[9, 1:] = 0
    f[10] //= 2**18
    x, y = (array_of(on_each_processor, v, MODULI, True) for v in (f, g))
    expected = [two_variables(a, b) for a, b in zip(f, g, strict=True)]
    assert rd.poly.resultant(x, y, variables=2).tolist() == expected
    assert host(rd.poly.resultant(chunked(x, 5, -1, -1), y, variables=2)).tolist() == expected


def test_many_points(on_each_processor: Processor, rng: np.random.Generator) -> None:
    """So many that points are those of roots of unity; checked at some x."""
    f, g = integers(rng, 20, 9, 30), integers(rng, 20, 11, 24)
    x, y = (array_of(on_each_processor, v, MODULI, True) for v in (f, g))
    found = rd.poly.resultant(x, y, variables=2).tolist()
    assert len(found) == 10 * 29 + 8 * 23 + 1
    for at in (0, 1, -1, 2, 10**9):
        values = [np.array([flint.fmpz_poly(row)(at) for row in v.tolist()], dtype=object) for v in (f, g)]
        expected = one_variable(*(np.array([int(c) for c in v], dtype=object) for v in values))
        assert int(flint.fmpz_poly(found)(at)) == expected


@pytest.mark.parametrize("shape", [None, (512, 4), (8, 2)])
@pytest.mark.parametrize(
    ("moduli", "count"),
    [((2, 0, 3), 1), ((1, 5, 2), 2), ((3, 0, 2), 31), ((3, 0, 2), 47), ((0, 0, 3), 513), ((0, 7681, 1), 130)],
)
def test_points(
    on_each_processor: Processor,
    moduli: tuple[int, int, int],
    count: int,
    shape: tuple[int, int] | None,
    monkeypatch: pytest.MonkeyPatch,
    rng: np.random.Generator,
) -> None:
    """Different points, values of polynomials at them, and these polynomials again."""
    if shape is not None:
        monkeypatch.setitem(geometric_points.SHAPES, on_each_processor.name, shape)
    start, own, number = moduli
    fields = rd.ModuliSet([own]) if own > 100 else geometric_points.primes(start, number)
    xp = on_each_processor.xp
    points = geometric_points.GeometricPoints(fields, count, xp.zeros(1, dtype=xp.uint32))
    assert count <= points.count < 2 * count
    n = len(fields)
    line = np.zeros((n, 1, 2), dtype=np.uint32)
    line[..., 1] = 1
    where = host(points.evaluate(xp.asarray(line)))[:, 0]
    words = np.stack([rng.integers(0, p, (2, points.count), dtype=np.uint64) for p in fields]).astype(
        np.uint32
    )
    found = points.evaluate(xp.asarray(words))
    for k, p in enumerate(fields):
        assert len(set(where[k].tolist())) == points.count
        for b in range(2):
            f = flint.nmod_poly(words[k, b].tolist(), p)
            assert host(found)[k, b].tolist() == [int(f(x)) for x in where[k].tolist()]
    assert (host(points.interpolate(found)) == words).all()


def test_count_of_primes() -> None:
    first = list(geometric_points.primes(0, 41))
    products = [math.prod(first[:k]) for k in range(42)]
    for limit in (0, 1, 2**30, 2**31 - 1, 2**62, *products[:3], products[40], products[40] - 1):
        count = geometric_points.count_beyond(limit)
        assert products[count] > limit
        assert count == 0 or products[count - 1] <= limit


def test_known_curves(on_each_processor: Processor) -> None:
    """Degrees and coefficients that are known: Chebyshev's y = T_n(x), and Bezout's number."""
    chebyshev = [[1], [0, 1]]
    for _ in range(10):
        shifted, before = [0, *chebyshev[-1]], [*chebyshev[-2], 0, 0]
        chebyshev.append([2 * a - b for a, b in zip(shifted, before, strict=False)])
    for n in (2, 5, 10):
        f = np.zeros((2, n + 1), dtype=object)
        f[0], f[1, 0] = [-c for c in chebyshev[n]], 1
        g = np.array([[-1], [0], [1]], dtype=object)  # y^2 - 1
        check_two(on_each_processor, f, g)
        x, y = (array_of(on_each_processor, v, MODULI, True) for v in (f, g))
        squared = flint.fmpz_poly(chebyshev[n]) ** 2 - 1
        assert rd.poly.resultant(x, y, variables=2).tolist() == [int(c) for c in squared.coeffs()]


def test_degree_bound(rng: np.random.Generator) -> None:
    """Never below the degree of random polynomials with the same Newton polygons, and equal to it."""
    assert degree_bound([50 - k for k in range(51)], [50 - k for k in range(51)]) == 2500
    assert degree_bound([-1, 3], [-1, 0, 2]) == -1
    for _ in range(60):
        f, g = (rng.integers(-1, 5, rng.integers(1, 6)).tolist() for _ in range(2))
        f[-1], g[-1] = max(f[-1], 0), max(g[-1], 0)
        polynomials = []
        for degrees in (f, g):
            terms = {
                (j, i): int(c)
                for i, d in enumerate(degrees)
                for j, c in enumerate(rng.integers(1, 2**40, d + 1))
            }
            polynomials.append(XY.from_dict(terms))
        found = polynomials[0].resultant(polynomials[1], "y")
        degree = max((k for k, _ in found.to_dict()), default=-1)
        assert degree == degree_bound(f, g)


def test_intervals_and_ranges(rng: np.random.Generator) -> None:
    f, g = integers(rng, 30, 3, 5), integers(rng, 30, 3, 4)
    signed, x = (
        [rd.from_ints(v, rd.ModuliSet.for_bits(40), True, chunks=None) for v in (f, g)] for _ in range(2)
    )
    expected = [one_variable(a, b) for a, b in zip(f, g, strict=True)]
    assert rd.poly.resultant(*signed).tolist() == expected
    intervals = [rd.IntervalRNSArray.from_rns(v) for v in x]
    assert rd.poly.resultant(*intervals).tolist() == expected
    assert rd.poly.discriminant(intervals[0]).tolist() == [discriminant(a) for a in f]
    assert rd.poly.resultant(*intervals, variables=2).tolist() == two_variables(f, g)
    lazy = [v.rechunk((2, -1)) for v in intervals]
    assert rd.poly.resultant(*lazy).compute().tolist() == expected
    assert rd.poly.discriminant(lazy[0]).compute().tolist() == [discriminant(a) for a in f]
    assert rd.poly.resultant(*lazy, variables=2).compute().tolist() == two_variables(f, g)
    unsigned = [rd.from_ints(abs(v), rd.ModuliSet.for_bits(31), chunks=None) for v in (f, g)]
    assert rd.poly.resultant(*unsigned).tolist() == [
        one_variable(abs(a), abs(b)) for a, b in zip(f, g, strict=True)
    ]
    with pytest.raises(ValueError, match="two axes of coefficients"):
        rd.poly.resultant(signed[0][0], signed[1], variables=2)
