"""Absolute values, clip, any and all, differences, means and variances against NumPy on Python ints."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
from conftest import Processor
from oracles.integers import objects
from oracles.rns import limits_of
from sample_arrays import CPU, array_of, chunked, host
from strategies import BOTH_RANGES, MODULI_SETS, edge_values

import rnsdask as rd
from rnsdask import IntervalRNSArray
from rnsdask.core.moduli import ModuliSet

NAMES = ("top", "two_three")
SETS = pytest.mark.parametrize("moduli", [MODULI_SETS[name] for name in NAMES], ids=NAMES)
SIGNED = MODULI_SETS["top"]
SHAPE = (5, 7)
AXES: tuple[Any, ...] = (None, 0, -1, (0, 1))


pytestmark = pytest.mark.usefixtures("in_this_thread")


def numbers_of(moduli: ModuliSet, signed: bool, rng: np.random.Generator, zeros: int = 6) -> np.ndarray:
    """Edges of the range, with some zeros among them."""
    edges = edge_values(moduli, signed)
    numbers = objects([edges[i] for i in rng.integers(0, len(edges), size=SHAPE[0] * SHAPE[1])])
    numbers[rng.permutation(numbers.size)[:zeros]] = 0
    return numbers.reshape(SHAPE)


def arrays_of(processor: Processor, a: np.ndarray, moduli: ModuliSet, signed: bool) -> list[rd.RNSArray]:
    """Eager without and with a bound, and in chunks of several lengths."""
    x = array_of(processor, a, moduli, signed)
    bound = max(map(abs, a.ravel().tolist()), default=0)
    return [x, x.with_bound(bound), chunked(x, (1, 4), (3, 3, 1)), chunked(x, 3, 7)]


def computed(value: Any) -> Any:
    value = dask.compute(value)[0]
    return value.get() if hasattr(value, "get") else value


def refusal(error: type[Exception], call: Callable[[], Any]) -> str:
    with pytest.raises(error) as caught:
        dask.compute(call())
    return str(caught.value)


# ---- absolute values and clip -----------------------------------------------------------------------------


@SETS
@BOTH_RANGES
def test_absolute_values(
    on_each_processor: Processor, moduli: ModuliSet, signed: bool, rng: np.random.Generator
) -> None:
    a, limits = numbers_of(moduli, signed, rng), limits_of(moduli, signed)
    a[2, 3] = limits.lowest
    outside = limits.outside(abs(a))
    for x in arrays_of(on_each_processor, a, moduli, signed):
        assert (rd.absolute(x, overflow="wrap").to_ints() == limits.wrapped(abs(a))).all()
        result, mask = rd.absolute(x, overflow="flag")
        assert (result.to_ints() == limits.wrapped(abs(a))).all()
        assert (host(mask) == outside).all()
        if not outside.any():
            assert (abs(x).to_ints() == abs(a)).all()
            assert abs(x).bound == x.bound
            continue
        with pytest.raises(rd.RNSOverflowError) as caught:
            abs(x).to_ints()
        assert outside.ravel()[caught.value.index]
        assert caught.value.bits_needed == limits.bits_needed(-limits.lowest)
        inside = np.where(outside, 0, a)
        (y, *_) = arrays_of(on_each_processor, inside, moduli, signed)
        assert (abs(y).to_ints() == abs(inside)).all()


@SETS
@BOTH_RANGES
def test_clip(
    on_each_processor: Processor, moduli: ModuliSet, signed: bool, rng: np.random.Generator
) -> None:
    a, limits = numbers_of(moduli, signed, rng), limits_of(moduli, signed)
    low, high = np.sort(np.stack([numbers_of(moduli, signed, rng) for _ in range(2)]), axis=0)
    ends = sorted(edge_values(moduli, signed)[i] for i in rng.integers(0, 3, size=2))
    beyond = limits.lowest - 1 << 100, limits.highest + 1 << 100
    for x in arrays_of(on_each_processor, a, moduli, signed):
        y, z = (array_of(on_each_processor, v, moduli, signed) for v in (low, high))
        pairs: list[tuple[Any, Any, Any]] = [
            (*ends, np.clip(a, *ends)),
            (ends[0], None, np.maximum(a, ends[0])),
            (None, ends[1], np.minimum(a, ends[1])),
            (*ends[::-1], np.minimum(np.maximum(a, ends[1]), ends[0])),
            (*beyond, a),
            (y, z, np.clip(a, low, high)),
            (y[0], ends[1], np.minimum(np.maximum(a, low[0]), ends[1])),
            (None, z[:, :1], np.minimum(a, high[:, :1])),
            (None, None, a),
        ]
        for least, greatest, expected in pairs:
            found = x.clip(least, greatest)
            assert (found.to_ints() == expected).all()
            assert found.bound is None or found.bound >= abs(expected).max()
            assert (rd.clip(x, min=least, max=greatest).to_ints() == expected).all()
    whole = array_of(on_each_processor, a, moduli, signed)
    assert whole.clip(0, min(3, limits.highest)).bound == min(3, limits.highest)
    for least, greatest in ((beyond[1], None), (None, beyond[0]), (y[:2, :3], None)):
        assert refusal(ValueError, lambda least=least, greatest=greatest: whole.clip(least, greatest))


def test_an_array_that_ends_nothing_is_not_passed_over_by_clip(on_each_processor: Processor) -> None:
    a = objects(range(12), (2, 6))
    x = array_of(on_each_processor, a[1], SIGNED, False)
    zeros = (array_of(on_each_processor, a, SIGNED, False) * 0).with_bound(0)
    for end in (zeros, chunked(zeros, 1, 4)):
        assert (x.clip(end).to_ints() == np.stack([a[1], a[1]])).all()
    negative = -chunked(x, 4)
    assert "negative" in refusal(rd.RNSOverflowError, lambda: x.clip(negative).to_ints())


def test_clip_by_lazy_integers_and_as_numpys_function(on_each_processor: Processor) -> None:
    a = objects(range(-6, 6), (3, 4))
    x = chunked(array_of(on_each_processor, a, SIGNED, True), 2, 3)
    assert (x.clip(x[1].min(), x[1].max()).to_ints() == np.clip(a, -2, 1)).all()
    assert (np.clip(x, -1, 2).to_ints() == np.clip(a, -1, 2)).all()
    assert "takes no out" in refusal(TypeError, lambda: x.clip(0, 1, out=a))
    assert "clip takes an array of numbers, got int" in refusal(TypeError, lambda: rd.clip(5, 0, 1))
    assert refusal(TypeError, lambda: x.clip(0.5))


# ---- numbers that are not 0 -------------------------------------------------------------------------------


def test_any_and_all_of_nothing(on_each_processor: Processor) -> None:
    x = array_of(on_each_processor, objects([], (0, 3)), SIGNED, True)
    for empty in (x, chunked(x, 1, 2)):
        assert not computed(empty.any())
        assert computed(empty.all())
        assert computed(rd.count_nonzero(empty)) == 0
        assert computed(empty.all(axis=0)).tolist() == [True] * 3
        assert computed(empty.any(axis=1)).shape == (0,)
        assert "axis 2 is out of bounds" in refusal(ValueError, lambda empty=empty: empty.any(axis=2))
    assert refusal(TypeError, lambda: rd.count_nonzero([1, 2]))
    one = array_of(on_each_processor, objects([3]), SIGNED, True)
    assert (type(one.any()), type(one.all()), type(rd.count_nonzero(one))) == (bool, bool, int)
    assert np.any(one)
    assert np.all(one)


# ---- differences ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("system", ["unsigned", "signed", "interval"])
def test_differences(on_each_processor: Processor, system: str, rng: np.random.Generator) -> None:
    signed, most = system != "unsigned", SIGNED.product // 64
    steps = objects(int(rng.integers(0, 2**62)) * most >> 66 for _ in range(35)).reshape(SHAPE)
    # Unsigned differences must not be negative, also the second ones.
    a = steps.cumsum(1).cumsum(1).cumsum(0).cumsum(0) if not signed else steps * rng.choice([-1, 1], SHAPE)
    for x in arrays_of(on_each_processor, a, SIGNED, signed):
        y: Any = IntervalRNSArray.from_rns(x) if system == "interval" else x
        for axis in (0, 1, -1):
            for n in (0, 1, 2, *((9,) if signed else ())):
                assert (rd.diff(y, n, axis).to_ints() == np.diff(a, n, axis)).all()
        assert (rd.diff(y, prepend=0).to_ints() == np.diff(a, prepend=0)).all()
        assert (rd.diff(y, prepend=y[:, :1], axis=1).to_ints() == np.diff(a, prepend=a[:, :1])).all()
        last = a[-1:] + 5
        z = y[-1:] + 5
        assert (
            rd.diff(y, axis=0, prepend=y[:1], append=z).to_ints()
            == np.diff(np.concatenate([a[:1], a, last]), axis=0)
        ).all()


def test_differences_out_of_range(on_each_processor: Processor) -> None:
    a = objects([5, 3, 9, 0], (2, 2))
    x = array_of(on_each_processor, a, SIGNED, False)
    for y in (x, chunked(x, 1, 1), chunked(x, 2, 2)):
        result, mask = rd.diff(y, overflow="flag")
        assert host(mask).tolist() == [[True], [True]]
        assert result.to_ints().tolist() == [[SIGNED.product - 2], [SIGNED.product - 9]]
        assert refusal(rd.RNSOverflowError, lambda y=y: rd.diff(y).residues)
        with rd.errstate(overflow="wrap"):
            assert rd.diff(y, 2, 0).shape == (0, 2)
    empty, mask = rd.diff(x[:, :0], overflow="flag")
    assert (empty.shape, mask.shape) == ((2, 0), (2, 0))
    assert "takes n=1, got 2" in refusal(ValueError, lambda: rd.diff(x, 2, overflow="flag"))
    assert "n must not be negative, got -1" in refusal(ValueError, lambda: rd.diff(x, -1))
    assert refusal(TypeError, lambda: rd.diff(x, 1.5))
    assert refusal(ValueError, lambda: rd.diff(x, axis=2))
    assert refusal(ValueError, lambda: rd.diff(x, prepend=x[:, :1], axis=0))
    assert refusal(TypeError, lambda: rd.diff(a))
    unknown = chunked(x.ravel(), 2)
    selected = np.array([v for v in np.ravel(a) if v > 3], dtype=object)
    assert rd.diff(unknown[unknown > 3]).to_ints().tolist() == np.diff(selected).tolist()


def test_diagonals(on_each_processor: Processor) -> None:
    a = objects(range(-12, 12), (2, 3, 4))
    x = array_of(on_each_processor, a, SIGNED, True)
    for y in (x, chunked(x, 1, 2, 3), IntervalRNSArray.from_rns(chunked(x, 2, 2, 2))):
        for offset in (0, 1, -2, 9):
            for axes in ((0, 1), (2, 0), (-1, 1)):
                assert (y.diagonal(offset, *axes).to_ints() == a.diagonal(offset, *axes)).all()
                if isinstance(y, rd.RNSArray):
                    assert (np.asarray(computed(y.trace(offset, *axes))) == a.trace(offset, *axes)).all()
        assert int(y[0].trace()) == a[0].trace()
        assert int(y[0].trace(9)) == 0
        for error, axes in ((ValueError, (1, 1)), (ValueError, (0, 3))):
            assert refusal(error, lambda y=y, k=axes: y.diagonal(0, *k))
    assert refusal(ValueError, lambda: x[0, 0].diagonal())


# ---- statistics -------------------------------------------------------------------------------------------


def test_lazy_fractions_calculate(on_each_processor: Processor) -> None:
    x = chunked(array_of(on_each_processor, [1, 2, 4, 2**90], SIGNED), 3)
    mean = x.mean()
    assert isinstance(mean, da.Array)
    assert float(mean) == 2.0**88
    assert int(mean) == 2**88 + 1
    assert computed(mean * 4) == 7 + 2**90
    assert type(computed(mean)) is Fraction
    assert type(computed(x.var())) is Fraction
    assert {type(v) for v in computed(x[None].var(axis=0))} == {Fraction}
    assert np.mean(x) == computed(mean)
    assert np.var(x, ddof=2) == computed(x.var(ddof=2))
    assert computed(mean > 5)


def test_statistics_that_are_refused(on_each_processor: Processor) -> None:
    x = array_of(on_each_processor, objects(range(6), (2, 3)), SIGNED)
    for y in (x, chunked(x, 1, 2)):
        assert "mean needs at least one number, got 0" in refusal(ValueError, lambda y=y: y[:0].mean())
        assert "got 0 of shape" in refusal(ValueError, lambda y=y: y[:0].var(axis=0))
        assert computed(y[:0].var(axis=1)).shape == (0,)
        assert "more numbers than ddof=6, got 6" in refusal(ValueError, lambda y=y: y.var(ddof=6))
        assert "math.sqrt(x.var())" in refusal(TypeError, lambda y=y: np.std(y, axis=0))
        assert refusal(TypeError, lambda y=y: y.var(ddof=0.5))
        assert refusal(TypeError, lambda y=y: y.mean(dtype=float))
        assert computed(y.var(ddof=-6)) == Fraction(35, 24)
    unknown = chunked(x.ravel(), 2)
    assert computed(unknown[unknown > 3].mean()) == Fraction(9, 2)
    selected = unknown[unknown > 3].compute_chunk_sizes()
    assert (computed(selected.mean()), computed(selected.var())) == (Fraction(9, 2), Fraction(1, 4))


@BOTH_RANGES
def test_peak_to_peak(on_each_processor: Processor, signed: bool, rng: np.random.Generator) -> None:
    a, limits = numbers_of(SIGNED, signed, rng), limits_of(SIGNED, signed)
    a[0, :2] = limits.lowest, limits.highest
    for x in arrays_of(on_each_processor, a, SIGNED, signed):
        assert int(rd.ptp(x)) == limits.product - 1
        small = x // 4
        assert (rd.ptp(small, axis=0).to_ints() == np.ptp(a // 4, axis=0)).all()
        assert (rd.ptp(small, 1, keepdims=True).to_ints() == np.ptp(a // 4, axis=1, keepdims=True)).all()
        if signed:
            assert refusal(rd.RNSOverflowError, lambda x=x: rd.ptp(x, axis=1).residues)
    assert rd.ptp(IntervalRNSArray.from_rns(array_of(CPU, a, SIGNED, signed))) == limits.product - 1


def test_absolute_values_of_numbers_that_a_bound_keeps_from_the_lowest() -> None:
    """For even M the lowest number and 0 agree modulo all odd moduli, and a bound may leave only those."""
    moduli = rd.ModuliSet([3, 5, 7, 2**16])
    for bound in (0, 1, 30, None):
        x = rd.from_ints([0, 0], moduli, signed=True, chunks=None).with_bound(bound)
        assert abs(x).to_ints().tolist() == [0, 0]
    lowest = moduli.value_range(True)[0]
    with pytest.raises(rd.RNSOverflowError):
        abs(rd.from_ints([0, lowest], moduli, signed=True, chunks=None)).to_ints()


def test_square_says_what_happens_to_overflow() -> None:
    x = rd.from_ints([3, -40], rd.ModuliSet([11, 13]), signed=True, chunks=None)
    squares, beyond = rd.square(x, overflow="flag")
    assert squares.tolist()[0] == 9
    assert beyond.tolist() == [False, True]
    with pytest.raises(rd.RNSOverflowError):
        rd.square(x)
