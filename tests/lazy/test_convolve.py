"""Convolutions of arrays in every mode against NumPy's of Python integers and FLINT's, and what overflows."""

import itertools
from typing import Any

import dask.array as da
import flint
import numpy as np
import pytest
from conftest import Processor
from oracles.integers import objects
from sample_arrays import CPU, array_of, chunked, host
from strategies import BOTH_RANGES, MS_357, SHORT_SETS, SIGNED_AT_LEAST, edge_values, slow

import rnsdask as rd
from rnsdask.core.moduli import ModuliSet

MS = ModuliSet.for_bits(100)
NTT = ModuliSet.ntt_primes(200, 2**12)
PLAIN = ("full", "same", "valid")

pytestmark = pytest.mark.usefixtures("in_this_thread")


def exact(a: Any, b: Any, mode: str = "full") -> np.ndarray:
    """The convolution of two lists, or its numbers from N on added to the first, or subtracted."""
    a, b = objects(a), objects(b)
    if mode in PLAIN:
        return np.convolve(a, b, mode)
    result = np.convolve(a, b)
    after = result[len(a) :]
    result[: len(after)] += -after if mode == "negacyclic" else after
    return result[: len(a)]


def drawn(rng: np.random.Generator, count: int, lowest: int, highest: int) -> list[int]:
    """Numbers of a range, its ends among them."""
    width = highest - lowest + 1
    values = [lowest + int.from_bytes(rng.bytes(300)) % width for _ in range(count)]
    return [(lowest, highest, value, value)[int(rng.integers(4))] for value in values]


def check(a: rd.RNSArray, b: rd.RNSArray, mode: str, expected: np.ndarray) -> None:
    """Compare results, flags and the error with those of Python integers."""
    lowest, highest = a.moduli.value_range(a.signed)
    outside = [not lowest <= value <= highest for value in expected.ravel()]
    wrapped = [(value - lowest) % a.moduli.product + lowest for value in expected.ravel()]
    result, mask = rd.convolve(a, b, mode, overflow="flag")
    assert result.shape == mask.shape == expected.shape
    assert host(mask).ravel().tolist() == outside
    assert result.to_ints().ravel().tolist() == wrapped
    assert rd.convolve(a, b, mode, overflow="wrap").to_ints().ravel().tolist() == wrapped
    if True not in outside:
        found = rd.convolve(a, b, mode)
        assert found.to_ints().ravel().tolist() == wrapped
        assert found.bound is None or found.bound >= max(map(abs, wrapped))
        return
    with pytest.raises(rd.RNSOverflowError) as caught:
        rd.convolve(a, b, mode).to_ints()
    assert outside[caught.value.index]
    if not isinstance(a.words, da.Array):
        first = outside.index(True)
        of_value = rd.RNSOverflowError.of_value(expected.ravel()[first], first, a.moduli.bits, a.signed)
        assert str(caught.value) == str(of_value)


@SIGNED_AT_LEAST
@pytest.mark.parametrize("moduli", [MS, NTT, ModuliSet.for_bits(700, 20)], ids=["default", "ntt", "20 bits"])
def test_modes_and_chunks(
    on_each_processor: Processor, moduli: ModuliSet, signed: bool, rng: np.random.Generator
) -> None:
    lengths = [(1, 1), (5, 3), (3, 5), (30, 30), (200, 3), (17, 130), (300, 300), (256, 256)]
    for count, other in lengths:
        low = -(2**40) if signed else 0
        a, b = drawn(rng, count, low, 2**40), drawn(rng, other, low, 2**40)
        x, y = (array_of(on_each_processor, v, moduli, signed) for v in (a, b))
        for mode in (*PLAIN, *(("cyclic", "negacyclic") if count == other else ())):
            expected = exact(a, b, mode)
            check(x, y, mode, expected)
            left, right = ((7, 40), (1, 1), (150, 64), (40, 200))[int(rng.integers(2)) + 2 * (count > 20)]
            check(chunked(x, left), chunked(y, right), mode, expected)


@SHORT_SETS
@BOTH_RANGES
def test_edges_of_every_set(
    on_each_processor: Processor, moduli: ModuliSet, signed: bool, rng: np.random.Generator
) -> None:
    """Each sum ends beside an end of the range or 0, if the operand's number that decides it is in range."""
    lowest, highest = moduli.value_range(signed)
    edges = edge_values(moduli, signed)
    for other in (2, 5, 12):
        b = [1, *(edges[i] for i in rng.integers(0, len(edges), other - 1))]
        a: list[int] = []
        for k in range(20):
            target = (lowest, highest, 0)[int(rng.integers(3))] + int(rng.integers(-2, 3))
            rest = sum(b[j] * a[k - j] for j in range(1, min(k + 1, other)))
            a.append(min(max(target - rest, lowest), highest))
        x, y = (array_of(on_each_processor, v, moduli, signed) for v in (a, b))
        for mode in PLAIN:
            check(x, y, mode, exact(a, b, mode))
        padded = b + [0] * (20 - other)
        for mode in ("cyclic", "negacyclic"):
            check(array_of(on_each_processor, padded, moduli, signed), x, mode, exact(padded, a, mode))


@BOTH_RANGES
def test_bounds_at_the_end_of_the_range(signed: bool) -> None:
    """Sums of 3 A B that are the greatest number, or the one after it, whether bounds are known or not."""
    moduli = ModuliSet([2**16 + 1, 2**8 - 1, 2**10])
    highest = moduli.value_range(signed)[1]
    small, large = 7, highest // 21
    for value in (large, large + 1):
        a, b = [value] * 3, [small] * 3
        for bounds in ((None, None), (value, small), (value, None)):
            x, y = (array_of(CPU, v, moduli, signed, n) for v, n in zip((a, b), bounds, strict=True))
            for mode in PLAIN:
                check(x, y, mode, exact(a, b, mode))
    x, y = (array_of(CPU, v, moduli, signed, v[0]) for v in ([large] * 3, [small] * 3))
    assert rd.convolve(x, y).bound == 21 * large
    assert rd.convolve(x, y, overflow="wrap").bound == 21 * large
    x = array_of(CPU, [large + 1], moduli, signed, large + 1)
    assert rd.convolve(x, [1, 2]).bound == 2 * (large + 1)


def test_many_bits_beside_flint(rng: np.random.Generator) -> None:
    a, b = (drawn(rng, 2**12, -(2**47), 2**47) for _ in range(2))
    product = (flint.fmpz_poly(a) * flint.fmpz_poly(b)).coeffs()
    expected = [int(c) for c in product] + [0] * (2**13 - 1 - len(product))
    for moduli in (MS, ModuliSet.ntt_primes(110, 2**13), ModuliSet([2**32, 2**31 - 1, 2013265921, 3**20])):
        x, y = (rd.from_ints(v, moduli, True, chunks=None) for v in (a, b))
        assert rd.convolve(x, y).to_ints().tolist() == expected
        assert rd.poly.multiply(x.rechunk(1000), y).to_ints().tolist() == expected


@pytest.mark.parametrize("axis", [0, 1, -1, *slow(2, -3)])
@pytest.mark.parametrize("mode", PLAIN)
def test_axes_and_batches(
    on_each_processor: Processor, axis: int, mode: str, rng: np.random.Generator
) -> None:
    a = objects(drawn(rng, 4 * 5 * 6, -(2**30), 2**30), (4, 5, 6))
    shape = [1, 5, 1] if axis == 1 else [4, 1, 6]
    shape[axis] = 3
    if axis in (2, -1):
        shape = [5, 3]
    b = objects(drawn(rng, int(np.prod(shape)), -(2**30), 2**30), tuple(shape))
    wide = b.reshape((1,) * (3 - b.ndim) + b.shape)
    left, right = np.moveaxis(a, axis, -1), np.moveaxis(wide, axis, -1)
    batch = np.broadcast_shapes(left.shape[:-1], right.shape[:-1])
    left, right = (np.broadcast_to(v, (*batch, v.shape[-1])) for v in (left, right))
    lines = [np.convolve(left[i], right[i], mode) for i in np.ndindex(batch)]
    expected = np.moveaxis(np.array(lines, dtype=object).reshape(*batch, -1), -1, axis)
    x, y = (array_of(on_each_processor, v, MS, True) for v in (a, b))
    assert rd.convolve(x, y, mode, axis).to_ints().tolist() == expected.tolist()
    assert rd.convolve(y, x, mode, axis).to_ints().tolist() == expected.tolist()
    for chunks in itertools.product((4, 1), (5, 2), (6, 3)):
        z = chunked(x, *chunks)
        found = rd.convolve(z, y, mode, axis)
        assert found.shape == expected.shape
        assert found.to_ints().tolist() == expected.tolist()
        z = chunked(y, *(min(length, 2) for length in y.shape))
        assert rd.convolve(chunked(x, *chunks), z, mode, axis).to_ints().tolist() == expected.tolist()
    with pytest.raises(rd.RNSOverflowError) as caught:
        rd.convolve(array_of(CPU, a * 2**70, MS, True), array_of(CPU, b, MS, True), mode, axis)
    lowest, highest = MS.value_range(True)
    outside = [not lowest <= value <= highest for value in (expected * 2**70).ravel()]
    assert caught.value.index == outside.index(True)


def test_only_results_that_are_wanted_count() -> None:
    moduli, high = ModuliSet.for_bits(63), 2**62
    a, b = [high, 1, 2, 3, -1, high], [1, 1, 4]
    x, y = (array_of(CPU, v, moduli, True) for v in (a, b))
    inner = x[1:-1]
    for z in (inner, chunked(inner, 3), chunked(x, 2)[1:-1]):
        assert rd.convolve(z, y, "valid").to_ints().tolist() == [9, 10]
    wide = array_of(CPU, [high, high, 0, -high, -high], moduli, True)
    for z in (wide, chunked(wide, 2), chunked(wide, 1)):
        assert rd.convolve(z, [1, 1, 1, 1, 1], "valid").to_ints().tolist() == [0]
        with pytest.raises(rd.RNSOverflowError):
            rd.convolve(z, [1, 1, 1, 1, 1], "same").to_ints()


# ---- operands of other kinds ------------------------------------------------------------------------------


def test_integers_and_lists() -> None:
    x = rd.from_ints([1, 2, 3], MS, chunks=None)
    lazy = x.rechunk(2)
    for y in (x, lazy):
        assert rd.convolve(y, [1, 0, 5]).to_ints().tolist() == [1, 2, 8, 10, 15]
        assert rd.convolve((1, 1), y, "valid").to_ints().tolist() == [3, 5]
        assert rd.convolve(y, 7).to_ints().tolist() == [7, 14, 21]
        assert rd.convolve(np.int64(7), y).to_ints().tolist() == [7, 14, 21]
        assert rd.convolve(y, lazy.max()).to_ints().tolist() == [3, 6, 9]
        assert rd.poly.multiply(y, [[1], [2]]).to_ints().tolist() == [[1, 2, 3], [2, 4, 6]]
    assert rd.convolve(x.with_bound(3), [4, 4]).bound == 24
    signed = rd.from_ints([1, 2, 3], MS, signed=True).with_bound(3)
    for least in (np.int8(-(2**7)), np.int64(-(2**63))):  # which NumPy's abs leaves negative
        assert rd.convolve(signed, [least, 1]).bound == 6 * -int(least)
        assert rd.convolve(signed, least).max() == int(least)
    with pytest.raises(ValueError, match="outside the unsigned range"):
        rd.convolve(x, [-1])
    with pytest.raises(ValueError, match="operand -1 is outside the unsigned range"):
        rd.convolve(x, -1)


def test_unknown_lengths() -> None:
    x = rd.from_ints(list(range(20)), MS, chunks=6)
    chosen = x[x % 3 == 0]
    assert rd.convolve(chosen, [1, 1]).to_ints().tolist() == np.convolve(range(0, 20, 3), [1, 1]).tolist()
    empty = x[x > 100]
    with pytest.raises(ValueError, match="not empty, got 0 and 1"):
        rd.convolve(empty, [1])


def test_fields(rng: np.random.Generator) -> None:
    fields = rd.PrimeFields([2013265921, 2, 3, 4294967291, 12289])
    product = fields.moduli.product
    a, b = (drawn(rng, n, -product, 2 * product) for n in (300, 40))
    f, g = (rd.from_ints(v, fields, chunks=None) for v in (a, b))
    for mode in PLAIN:
        expected = [value % product for value in exact(a, b, mode)]
        for left, right in ((f, g), (f, b), (f.rechunk(90), g), (a, g)):
            found = rd.convolve(left, right, mode)
            assert isinstance(found, rd.FieldArray)
            assert found.to_ints().tolist() == expected
    for mode in ("cyclic", "negacyclic"):
        expected = [value % product for value in exact(a, b + [0] * 260, mode)]
        assert rd.convolve(f, b + [0] * 260, mode).to_ints().tolist() == expected
    ntt = rd.PrimeFields(rd.ModuliSet.ntt_primes(60, 256))
    f, g = (rd.from_ints(drawn(rng, 256, 0, 2**62), ntt, chunks=None) for _ in range(2))
    assert (rd.convolve(f, g, "cyclic") == rd.intt(rd.ntt(f) * rd.ntt(g))).all()
    with pytest.raises(TypeError, match="overflow= is not taken"):
        rd.convolve(f, g, overflow="wrap")
    with pytest.raises(TypeError, match="do not mix"):
        rd.convolve(f, rd.from_ints([1], MS))


def test_intervals(rng: np.random.Generator) -> None:
    a, b = drawn(rng, 200, -(2**45), 2**45), drawn(rng, 30, -(2**45), 2**45)
    x, y = (rd.IntervalRNSArray.from_rns(rd.from_ints(v, MS, True, chunks=None)) for v in (a, b))
    for mode in PLAIN:
        found = rd.convolve(x, y, mode)
        assert isinstance(found, rd.IntervalRNSArray)
        assert found.to_ints().tolist() == exact(a, b, mode).tolist()
        assert rd.convolve(x, b, mode).to_ints().tolist() == exact(a, b, mode).tolist()
    high = MS.product - 1
    x = rd.IntervalRNSArray.from_ints([high, -high, 1], MS, chunks=None)
    assert rd.convolve(x, [1, 0]).to_ints().tolist() == [high, -high, 1, 0]
    with pytest.raises(rd.RNSOverflowError, match="index 1"):
        rd.convolve(x, [1, -1])
    values, mask = rd.convolve(x, [1, -1], overflow="flag")
    assert np.asarray(mask).tolist() == [False, True, True, False]
    assert values.to_ints().tolist() == [high, -(2 * high - MS.product), 0, -1]


def test_numpy_calls_it() -> None:
    x = rd.from_ints([1, 2, 3], MS, chunks=None)
    for mode in PLAIN:
        assert np.convolve(x, x, mode).to_ints().tolist() == np.convolve([1, 2, 3], [1, 2, 3], mode).tolist()
    assert np.convolve([1, 1], x).to_ints().tolist() == [1, 3, 5, 3]
    assert np.convolve(a=x, v=x, mode="valid").to_ints().tolist() == [10]
    with pytest.raises(ValueError, match=r"numpy.convolve takes operands of one axis, got 2"):
        np.convolve(x[None], x)


def test_errors() -> None:
    x, y = rd.from_ints([1, 2, 3], MS, chunks=None), rd.from_ints([1], MS, True, chunks=None)
    for call, error, message in (
        (lambda: rd.convolve(x, x, "circular"), ValueError, "mode must be one of full, .*, got 'circular'"),
        (lambda: rd.convolve([1], [2]), TypeError, "at least one array of numbers"),
        (lambda: rd.convolve(x.with_bound(None), y), ValueError, "different ranges"),
        (lambda: rd.convolve(x, rd.from_ints([1], MS_357)), ValueError, "different moduli sets"),
        (lambda: rd.convolve(x, x[:2], "cyclic"), ValueError, "cyclic .* of one length, got 3 and 2 numbers"),
        (lambda: rd.convolve(x, x[:0]), ValueError, "not empty, got 3 and 0 numbers"),
        (lambda: rd.convolve(x, []), ValueError, "not empty, got 3 and 0 numbers"),
        (lambda: rd.convolve(x, x, axis=1), np.exceptions.AxisError, "axis 1 is out of bounds"),
        (lambda: rd.convolve(x, x, axis=0.5), TypeError, "axis must be an integer"),  # type: ignore[arg-type]
        (lambda: rd.convolve(x, x, overflow="no"), ValueError, "overflow must be one of"),
        (
            lambda: rd.convolve(x, np.ones(3)),
            TypeError,
            "position 0 must be an integer, got 1.0 of type float",
        ),
        (lambda: rd.convolve(x, 1.5), TypeError, "must be an integer"),
        (lambda: rd.convolve(x.reshape(3, 1), x[None, :2].reshape(2, 1), axis=1), ValueError, "broadcast"),
    ):
        with pytest.raises(error, match=message):
            call()
