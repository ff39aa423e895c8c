"""Prime fields beyond 32 bits against FLINT and Python's integers: widths, stores, errors, long operands."""

import math
import pickle
from itertools import chain, permutations
from pathlib import Path
from random import Random

import flint
import numpy as np
import pytest
from commands import succeed
from conftest import Processor
from sample_arrays import host

import rnsdask as rd
from rnsdask.fields import wide_products
from rnsdask.rns import matmul

PRIMES = [2, 3, 65537, 2**32 - 5, 2**32 + 15, 2**50 - 27, 2**59 - 55, 2**60 - 93, 2**61 - 1, 2**63 - 25]
GREATEST = 18446744073709551557  # below 2**64
ROOTED = 2**64 - 2**32 + 1  # 2**32 divides it less 1
AT_WIDTHS = 4611686018425815041, 4611686018429485057, 9223372036836950017, 9223372036855300097
"""Primes on both sides of 2**62 and of 2**63 that 2**18 divides less 1."""
MIXED = rd.PrimeFields([*PRIMES, ROOTED, GREATEST])


def elements(random: Random, p: int, count: int) -> list[int]:
    """The least and the greatest elements, then any."""
    edges = [x % p for x in (0, 1, 2, p - 1, p - 2, p // 2, p // 2 + 1, 2**32 - 1, 2**32, 2**63, 2**63 - 1)]
    return [*edges, *(random.randrange(p) for _ in range(count - len(edges)))]


def placed(
    processor: Processor, words: list[list[int]], fields: rd.PrimeFields, *shape: int
) -> rd.FieldArray:
    array = np.array(words, dtype=np.uint64).reshape(fields.rows, *(shape or (-1,)))
    return rd.FieldArray(processor.xp.asarray(array), fields)


@pytest.mark.parametrize("p", [*PRIMES[4:], ROOTED, GREATEST])
def test_arithmetic_is_flints(p: int, on_each_processor: Processor) -> None:
    random, fields = Random(p), rd.PrimeFields([p])
    a, b = elements(random, p, 500), elements(random, p, 500)[::-1]
    x, y = (placed(on_each_processor, [values], fields) for values in (a, b))
    ours = {"+": x + y, "-": x - y, "*": x * y, "**": x**12345, "fma": rd.fma(x, y, x), "neg": -x}
    one = [(flint.nmod(u, p), flint.nmod(v, p)) for u, v in zip(a, b, strict=True)]
    theirs = {
        "+": [u + v for u, v in one],
        "-": [u - v for u, v in one],
        "*": [u * v for u, v in one],
        "**": [u**12345 for u, _ in one],
        "fma": [u * v + u for u, v in one],
        "neg": [-u for u, _ in one],
    }
    for name, found in ours.items():
        assert found.words.dtype == np.uint64
        assert host(found.words)[0].tolist() == [int(v) for v in theirs[name]], name
    nonzero = [v or 1 for v in b]
    z = placed(on_each_processor, [nonzero], fields)
    assert host((x / z).words)[0].tolist() == [u * pow(v, -1, p) % p for u, v in zip(a, nonzero, strict=True)]
    assert (x.sum(), x.prod()) == (sum(a) % p, math.prod(a) % p)
    assert z.prod() == math.prod(nonzero) % p


@pytest.mark.parametrize("shape", [(200_003,), (3, 70_001), (70_001, 3), (400, 401), (2, 3, 30_000)])
def test_long_sums_along_axes(
    shape: tuple[int, ...], on_each_processor: Processor, rng: np.random.Generator
) -> None:
    """Add words near the primes, in any order in memory."""
    fields = rd.PrimeFields([GREATEST, 2**61 - 1])
    words = np.stack([np.uint64(p - 1) - rng.integers(0, 9, shape, dtype=np.uint64) for p in fields.primes])
    turned = np.ascontiguousarray(words.T).T
    every, exact = tuple(range(len(shape))), words.astype(object)
    for axes in (every, every[:2], *((axis,) for axis in every)):
        sums = [x.sum(axis=axes, keepdims=True) % p for x, p in zip(exact, fields.primes, strict=True)]
        for array in (words, turned):
            x = rd.FieldArray(on_each_processor.xp.asarray(array), fields)
            found = x.sum(axis=axes, keepdims=True).words
            np.testing.assert_array_equal(host(found), np.array(sums, dtype=np.uint64))


def test_words_are_of_64_bits_if_one_prime_needs_them() -> None:
    assert rd.PrimeFields([2**32 - 5, 2]).word_dtype == np.uint32
    assert isinstance(MIXED, rd.PrimeFields)
    assert MIXED.word_dtype == np.uint64
    assert repr(rd.PrimeFields([ROOTED])) == f"PrimeFields([{ROOTED}])"
    assert pickle.loads(pickle.dumps(MIXED)) == MIXED
    for p in (2**32 + 17, GREATEST - 2, 3825123056546413051):
        with pytest.raises(ValueError, match=rf"^{p} \(position 1\) is not a prime"):
            rd.PrimeFields([3, p])
    for p in (2**64, 2**64 + 13):
        with pytest.raises(ValueError, match=r"out of bounds: primes are from 2 to 2\*\*64"):
            rd.PrimeFields([3, p])


def test_machine_integers_are_reduced() -> None:
    for dtype in (np.int64, np.uint64, np.int8):
        limits = np.iinfo(dtype)
        values = np.array([limits.min, limits.max, limits.max // 2, 0, 1], dtype=dtype)
        x = rd.from_ints(values, MIXED)
        assert x.to_ints().tolist() == [int(v) % MIXED.moduli.product for v in values]


def test_stores_and_residues(tmp_path: Path, on_each_processor: Processor) -> None:
    random = Random(5)
    x = placed(on_each_processor, [elements(random, p, 40) for p in MIXED.primes], MIXED)
    x.rechunk(16).to_zarr(tmp_path / "store")
    again = rd.open_zarr(tmp_path / "store")
    assert again.system == MIXED
    assert again.words.dtype == np.uint64
    assert (again.compute().words == host(x.words)).all()
    assert (host(rd.from_residues(x.residues, MIXED).words) == host(x.words)).all()
    wrong = host(x.residues).copy()
    wrong[4, 7] = MIXED.primes[4]
    with pytest.raises(ValueError, match=r"4294967311 of the number at flat index 7 .* \(row 4\)"):
        rd.from_residues(wrong, MIXED)
    assert MIXED.first_invalid(wrong) == 7
    assert "row 4" in MIXED.fault_of(wrong[:, 7].tolist())
    narrow = rd.PrimeFields([97, 2**31 - 1])
    integers = x.to_ints().tolist()
    assert rd.FieldArray.from_rns(x.lift(), narrow).to_ints().tolist() == [
        v % narrow.moduli.product for v in integers
    ]
    half = (MIXED.moduli.product - 1) // 2
    assert x.lift(signed=True).to_ints().tolist() == [
        v if v <= half else v - MIXED.moduli.product for v in integers
    ]


@pytest.mark.parametrize("p", [2**32 + 15, 2**61 - 1, 2**63 - 25, GREATEST])
def test_matrices_are_flints(p: int, on_each_processor: Processor) -> None:
    random, fields = Random(p), rd.PrimeFields([p])
    for rows, terms, columns in ((1, 1, 1), (3, 300, 5), (37, 20, 33), (70, 70, 70)):
        a, b = (
            [random.choice((0, 1, p - 1, random.randrange(p))) for _ in range(k * terms)]
            for k in (rows, columns)
        )
        x = placed(on_each_processor, [a], fields, rows, terms)
        y = placed(on_each_processor, [b], fields, terms, columns)
        expected = (flint.nmod_mat(rows, terms, a, p) * flint.nmod_mat(terms, columns, b, p)).entries()
        assert host((x @ y).words).ravel().tolist() == [int(v) for v in expected]
        through = wide_products.through_residues(x.words, y.words, fields, terms, matmul.multiply)
        assert host(through).ravel().tolist() == [int(v) for v in expected]
    n = 70
    matrix = [random.randrange(p) for _ in range(n * n)]
    x, theirs = placed(on_each_processor, [matrix], fields, n, n), flint.nmod_mat(n, n, matrix, p)
    assert rd.linalg.det(x) == int(theirs.det())
    assert host(rd.linalg.inv(x).words).ravel().tolist() == [int(v) for v in theirs.inv().entries()]
    low = [*matrix[: n * (n - 9)], *matrix[: n * 9]]
    form, rank = flint.nmod_mat(n, n, low, p).rref()
    y = placed(on_each_processor, [low], fields, n, n)
    found = rd.linalg.rref(y)
    assert rd.linalg.rank(y).tolist() == [rank]
    assert int((found.pivots >= 0).sum()) == rank
    assert host(found.matrix.words).ravel().tolist() == [int(v) for v in form.entries()]
    polynomial = rd.linalg.charpoly(x)
    assert host(polynomial.words)[0].tolist() == [int(v) for v in theirs.charpoly().coeffs()]


@pytest.mark.parametrize("p", [2**32 + 15, 2**61 - 1, 2**63 - 25, GREATEST])
@pytest.mark.parametrize("shape", [(400, 400), (450, 500), (560, 390)], ids=str)
def test_great_matrices_are_flints(
    p: int, shape: tuple[int, int], on_each_processor: Processor, rng: np.random.Generator
) -> None:
    """Matrices that a GPU eliminates by halves: with columns of zeros, dependent rows, and exchanges."""
    fields, (rows, columns) = rd.PrimeFields([p]), shape
    words = rng.integers(0, p, (1, rows, columns), dtype=np.uint64)
    words[0, 1:40, 0], words[0, :, 130:140], words[0, 7] = 0, 0, p - 1
    words[0, :300, 200] = 0
    words[0, rows // 2 : rows // 2 + 20] = words[0, :20]
    x = rd.FieldArray(on_each_processor.xp.asarray(words), fields)
    form, rank = flint.nmod_mat(rows, columns, words.ravel().tolist(), p).rref()
    found = rd.linalg.rref(x)
    assert host(found.matrix.words)[0].ravel().tolist() == list(map(int, form.entries()))
    assert host(rd.linalg.rank(x)).tolist() == [rank]
    square = rng.integers(0, p, (1, 390, 390), dtype=np.uint64)
    square[0, 1:40, 0], square[0, :300, 200] = 0, 0
    y = rd.FieldArray(on_each_processor.xp.asarray(square), fields)
    theirs = flint.nmod_mat(390, 390, square.ravel().tolist(), p)
    assert rd.linalg.det(y) == int(theirs.det())
    assert host(rd.linalg.inv(y).words)[0].ravel().tolist() == list(map(int, theirs.inv().entries()))


@pytest.mark.parametrize("lengths", [(1, 1), (7, 5), (300, 300), (5000, 90), (4096, 4096)])
def test_convolutions_are_flints(lengths: tuple[int, int], on_each_processor: Processor) -> None:
    for p in (2**32 + 15, 2**63 - 25, GREATEST):
        random, fields = Random(p), rd.PrimeFields([p])
        a, b = ([p - 1] * (k // 2) + [random.randrange(p) for _ in range(k - k // 2)] for k in lengths)
        x, y = (placed(on_each_processor, [values], fields) for values in (a, b))
        expected = [int(v) for v in (flint.nmod_poly(a, p) * flint.nmod_poly(b, p)).coeffs()]
        full = sum(lengths) - 1
        expected += [0] * (full - len(expected))
        assert host(rd.convolve(x, y).words)[0].tolist() == expected
        if lengths[0] == lengths[1]:
            n = lengths[0]
            for mode, sign in (("cyclic", 1), ("negacyclic", -1)):
                folded = [(v + sign * w) % p for v, w in zip(expected[:n], [*expected[n:], 0], strict=True)]
                assert host(rd.convolve(x, y, mode).words)[0].tolist() == folded


@pytest.mark.parametrize("log_length", [0, 1, 5, 9, 10, 11, 16, 17])
def test_long_transforms(log_length: int, on_each_processor: Processor) -> None:
    """Products of transforms are cyclic convolutions; values of short ones are sums of powers."""
    fields = rd.PrimeFields([1152921504577486849, *AT_WIDTHS, ROOTED])
    length, random = 1 << log_length, Random(log_length)
    words = [elements(random, p, max(length, 11))[:length] for p in fields.primes]
    words[1] = [random.choice((0, fields.primes[1] - 1)) for _ in range(length)]
    x = placed(on_each_processor, words, fields)
    for negacyclic, mode in ((False, "cyclic"), (True, "negacyclic")):
        values = rd.ntt(x, negacyclic=negacyclic)
        assert (host(rd.intt(values, negacyclic=negacyclic).words) == host(x.words)).all()
        squares = rd.intt(values * values, negacyclic=negacyclic)
        assert (host(squares.words) == host(rd.convolve(x, x, mode).words)).all()
    roots = fields.roots(length)
    at = random.randrange(length)
    for row, root, p in zip(words, roots, fields.primes, strict=True):
        expected, power, step = 0, 1, pow(root, at, p)
        for value in row:
            expected, power = (expected + value * power) % p, power * step % p
        assert int(host(rd.ntt(x).words)[fields.primes.index(p), at]) == expected


def test_transforms_in_chunks_are_whole_ones() -> None:
    fields = rd.PrimeFields([1152921504577486849, 576460752298180609])
    x = rd.random(fields, (2, 2**12), seed=3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rnsdask.lazy.ntt.JOINED_BYTES", 2**10)
        for negacyclic in (False, True):
            lazy = rd.ntt(x.rechunk((1, 2**8)), negacyclic=negacyclic)
            assert (lazy.compute().words == rd.ntt(x, negacyclic=negacyclic).words).all()
            assert (rd.intt(lazy, negacyclic=negacyclic).compute().words == x.words).all()


def test_polynomials_are_flints(on_each_processor: Processor) -> None:
    for p in (2**32 + 15, 2**63 - 25, GREATEST):
        random, fields = Random(p), rd.PrimeFields([p])
        common, a, b = ([random.randrange(p) for _ in range(k)] for k in (5, 9, 7))
        f, g = (flint.nmod_poly(common, p) * flint.nmod_poly(v, p) for v in (a, b))
        x, y = (placed(on_each_processor, [[int(v) for v in one.coeffs()]], fields) for one in (f, g))
        divisor = host(rd.poly.gcd(x, y).words)[0].tolist()
        assert divisor[:5] == [int(v) for v in f.gcd(g).coeffs()]
        assert not any(divisor[5:])
        for ours, theirs in zip(rd.poly.divmod(x, y), divmod(f, g), strict=True):
            values = [int(v) for v in theirs.coeffs()]
            assert host(ours.words)[0].tolist() == values + [0] * (ours.shape[0] - len(values))
        assert rd.poly.resultant(x, y) == 0
        u, v = (placed(on_each_processor, [values], fields) for values in (a, b))
        assert rd.poly.resultant(u, v) == int(flint.nmod_poly(a, p).resultant(flint.nmod_poly(b, p)))


def test_half_of_an_even_product_lifts_as_from_fields_below_32_bits() -> None:
    for p in (97, GREATEST):
        fields = rd.PrimeFields([2, p])
        x = rd.from_ints([p - 1, p, p + 1], fields)
        assert x.lift(signed=True).to_ints().tolist() == [p - 1, -p, 1 - p]


def test_what_they_lack_is_an_error() -> None:
    x = rd.from_ints([[1, 2], [3, 4]], rd.PrimeFields([2**61 - 1]))
    with pytest.raises(TypeError, match="no order"):
        x < x  # noqa: B015
    with pytest.raises(TypeError, match="do not mix; FieldArray"):
        x + rd.from_ints([[1, 2], [3, 4]], rd.PrimeFields([97]))
    with pytest.raises(
        ValueError, match=rf"PrimeFields\(\[{2**61 - 1}\]\) and PrimeFields\(\[{GREATEST}\]\); .* converts"
    ):
        x + rd.from_ints([[1, 2], [3, 4]], rd.PrimeFields([GREATEST]))
    with pytest.raises(ZeroDivisionError, match="flat index 1 is 0 modulo 2305843009213693951"):
        rd.from_ints([1, 0], rd.PrimeFields([2**61 - 1])).inverse()
    with pytest.raises(np.linalg.LinAlgError, match="singular modulo 2305843009213693951"):
        rd.linalg.inv(rd.from_ints([[1, 2], [2, 4]], rd.PrimeFields([2**61 - 1])))
    with pytest.raises(ValueError, match="has no primitive root of unity of order 4"):
        rd.ntt(rd.from_ints([1, 2, 3, 4], rd.PrimeFields([2**61 - 1])))


@pytest.mark.parametrize("operation", ["det", "rank"])
def test_great_stored_matrices_are_eliminated_by_block_columns(
    operation: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rnsdask.lazy.block_elimination.MOST_JOINED", 16)
    monkeypatch.setattr("rnsdask.lazy.block_elimination.LEAST_COLUMNS", 8)
    p, random = 2**63 - 25, Random(7)
    matrix = [random.randrange(p) for _ in range(40 * 40)]
    rd.from_ints(matrix, rd.PrimeFields([p])).reshape(40, 40).rechunk(13).to_zarr(tmp_path / "matrix")
    theirs = flint.nmod_mat(40, 40, matrix, p)
    expected = {"det": int(theirs.det()), "rank": theirs.rank()}[operation]
    printed = succeed(operation, tmp_path / "matrix")
    assert printed.split()[-1] == str(expected)
    printed = succeed(operation, tmp_path / "matrix", "--checkpoint", tmp_path / "panels")
    assert printed.split()[-1] == str(expected)
    lazy = getattr(rd.linalg, operation)(rd.open_zarr(tmp_path / "matrix"))
    assert any("matrix-panel" in str(key) for key in lazy.__dask_graph__())
    assert int(np.asarray(lazy.compute()).ravel()[0]) == expected


def test_permanents_are_sums_over_all_orders(on_each_processor: Processor) -> None:
    for p in (2**32 + 15, 2**63 - 25, GREATEST):
        random = Random(p)
        rows = [[random.choice((0, 1, p - 1, random.randrange(p))) for _ in range(5)] for _ in range(5)]
        x = placed(on_each_processor, [list(chain.from_iterable(rows))], rd.PrimeFields([p]), 5, 5)
        products = (
            math.prod(row[j] for row, j in zip(rows, order, strict=True)) for order in permutations(range(5))
        )
        assert rd.linalg.permanent(x) == sum(products) % p
