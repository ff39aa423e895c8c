"""Running sums, products and extrema of positional numbers, and variances, against Python's integers."""

import operator
from fractions import Fraction
from itertools import accumulate
from typing import Any

import dask
import numpy as np
import pytest
from conftest import Processor
from oracles import positional
from oracles.integers import mapped, objects
from positional_numbers import some_values, special_values

import rnsdask as rd
from rnsdask.positional import reduce as scan


def placed(numbers: np.ndarray, system: rd.Positional, processor: Processor, chunks: Any = None) -> Any:
    x = rd.PositionalArray(processor.xp.asarray(positional.encode(numbers, system.bits)), system)
    return x if chunks is None else x.rechunk(chunks)


def drawn(bits: int, signed: bool, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    values = some_values(bits, signed, int(np.prod(shape)), rng)
    order = rng.permutation(len(values))[: int(np.prod(shape))]
    return objects((values[i] for i in order), shape)


def host(array: Any) -> np.ndarray:
    array = array.compute() if dask.is_dask_collection(array) else array
    array = getattr(array, "words", array)
    return np.asarray(array.get() if hasattr(array, "get") else array)


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("bits", [1, 32, 33, 109, 1000])
def test_folds_along_axes_are_pythons(
    bits: int, signed: bool, on_each_processor: Processor, rng: np.random.Generator
) -> None:
    chunks = (4, 9) if rng.integers(2) else None
    system, limits = rd.Positional(bits, signed), positional.limits_of(bits, signed)
    a = drawn(bits, signed, (7, 20), rng)
    a[2] = limits.lowest  # products that are zeros, of either sign, or beyond 2**bits
    a[3], a[4, ::3] = limits.highest, 0
    a[5], a[6] = np.where(a[5] > 0, min(1, limits.highest), 0), -1 if signed else min(1, limits.highest)
    x = placed(a, system, on_each_processor, chunks)
    for axis in (0, 1):
        for name, exact in (("prod", np.prod(a, axis=axis)), ("cumprod", np.cumprod(a, axis=axis))):
            result, mask = getattr(x, name)(axis, overflow="flag")
            assert (result.to_ints() == limits.wrapped(exact)).all(), (name, axis)
            assert (host(mask) == limits.outside(exact)).all(), (name, axis)
            assert (host(result.words) == positional.encode(limits.wrapped(exact), bits)).all()
            wrapped = getattr(x, name)(axis, overflow="wrap")
            assert (wrapped.to_ints() == limits.wrapped(exact)).all(), (name, axis)
        for name, function in (("cummax", np.maximum), ("cummin", np.minimum)):
            assert (getattr(x, name)(axis).to_ints() == function.accumulate(a, axis=axis)).all()
        small = mapped(lambda v: abs(v) // 32 * (-1 if v < 0 else 1), a)
        sums = placed(small, system, on_each_processor, chunks).cumsum(axis)
        assert (sums.to_ints() == np.cumsum(small, axis=axis)).all()
        count = a.shape[axis]
        exact = mapped(lambda s, t, n=count: Fraction(n * s - t * t, n * n), (a * a).sum(axis), a.sum(axis))
        assert (host(x.var(axis)) == exact).all()
    values = a.ravel().tolist()
    value = x.prod(overflow="wrap")
    assert int(value.compute() if chunks else value) == limits.wrap(int(np.prod(a)))
    assert (x.cummax().to_ints() == objects(accumulate(values, max))).all()


@pytest.mark.parametrize("chunks", [None, 5])
def test_running_sums_use_the_whole_range(chunks: Any, on_each_processor: Processor) -> None:
    """To both ends, with a carry through all limbs, and with totals before a chunk at an end."""
    for bits in (1, 32, 33, 64, 20000):
        high = 2 ** (bits - 1) - 1
        signed = [high, -high, -1, -high, high, 1, -1, -(high + 1)][: 3 if bits == 1 else None]
        unsigned = [2 ** (bits - 1), 2 ** (bits - 1) - 1, *[0] * 9]
        for values, is_signed in ((signed, True), (unsigned, False)):
            sums = list(accumulate(values))
            system = rd.Positional(bits, is_signed)
            taken = next((i for i, s in enumerate(sums) if not -high - 1 <= s <= high), len(sums))
            taken = taken if is_signed else len(sums)
            x = placed(objects(values[:taken]), system, on_each_processor, chunks)
            assert (x.cumsum().to_ints() == objects(sums[:taken])).all(), (bits, is_signed)


@pytest.mark.parametrize("chunks", [None, 3])
def test_what_is_out_of_range_is_named(chunks: Any, on_each_processor: Processor) -> None:
    system = rd.Positional(33)
    x = placed(objects([2**31] * 3 + [2**32] * 4), system, on_each_processor, chunks)
    with pytest.raises(rd.RNSOverflowError, match=r"flat index [36]: .*3[45] bits"):
        x.cumsum().to_ints()
    y = placed(objects([3, 0, 5, 2**20, 2**20, 0]), system, on_each_processor, chunks)
    assert (y.cumprod().to_ints() == objects([3, 0, 0, 0, 0, 0])).all()
    assert int(np.asarray(y.prod())) == 0
    for function in (y[2:5].cumprod, y[2:5].prod):
        with pytest.raises(rd.RNSOverflowError, match="at least 34 bits"):
            host(function())
    z = placed(objects([-(2**31), -1]), rd.Positional(32, True), on_each_processor)
    with pytest.raises(rd.RNSOverflowError, match=r"flat index 0: .*33 bits"):
        z.prod()
    assert z[:1].prod() == -(2**31)
    with pytest.raises(rd.RNSOverflowError, match="index 1: "):
        z.cumsum()


def test_numpys_functions_and_empty_arrays() -> None:
    a = objects([3, -4, 5, 7, -1, 2], (2, 3))
    for chunks in (None, 2):
        x = rd.from_ints(a, rd.Positional(40, True), chunks=chunks)
        for found, exact in (
            (np.cumsum(x, axis=1), np.cumsum(a, axis=1)),
            (np.cumprod(x, axis=0), np.cumprod(a, axis=0)),
            (np.maximum.accumulate(x, axis=1), np.maximum.accumulate(a, axis=1)),
            (np.prod(x, axis=0, keepdims=True), np.prod(a, axis=0, keepdims=True)),
            (np.multiply.reduce(x, axis=1), np.prod(a, axis=1)),
        ):
            assert (found.to_ints() == exact).all()
        assert host(np.var(x, ddof=1)) == Fraction(104 * 6 - 12**2, 30)
        with pytest.raises(TypeError, match=r"math.sqrt\(x.var\(\)\)"):
            np.std(x)
    for bits, signed in ((1, False), (1, True), (40, True)):
        nothing = rd.from_ints(np.empty((0, 4), object), rd.Positional(bits, signed), chunks=None)
        assert nothing.prod(overflow="wrap") == (-1 if (bits, signed) == (1, True) else 1)
        assert nothing.cumsum(0).shape == nothing.cumprod(1).shape == nothing.cummax(0).shape == (0, 4)
        ones, mask = nothing.prod(0, overflow="flag")
        assert mask.tolist() == [(bits, signed) == (1, True)] * 4
        assert set(ones.to_ints().tolist()) == {-1 if mask[0] else 1}
    with pytest.raises(ValueError, match="at least one number"):
        nothing.var()


def test_sums_of_more_limbs_than_a_block(monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator) -> None:
    monkeypatch.setattr(scan, "BLOCK", 4)
    for signed in (False, True):
        for shape in ((11,), (3, 13), (9, 2), (4,), (8, 3)):
            a = drawn(100, signed, shape, rng) // 16
            x = rd.from_ints(a, rd.Positional(100, signed), chunks=None)
            for axis in range(len(shape)):
                assert (x.cumsum(axis).to_ints() == np.cumsum(a, axis=axis)).all()


@pytest.mark.slow
def test_the_longest_numbers() -> None:
    values = [0, *special_values(2**20, True)[-3:]]
    x = rd.from_ints([v // 4 for v in values], rd.Positional(2**20, True), chunks=None)
    assert x.cumsum().to_ints().tolist() == list(accumulate((v // 4 for v in values), operator.add))
    assert x.cummin().to_ints().tolist() == [0] * 4
    assert x.var(0) == Fraction(4 * sum((v // 4) ** 2 for v in values) - sum(v // 4 for v in values) ** 2, 16)
