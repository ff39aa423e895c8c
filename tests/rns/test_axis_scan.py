"""Products, and running sums, products, maxima and minima, along axes against NumPy on Python ints."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from conftest import Processor
from oracles.integers import Range, objects
from oracles.rns import limits_of
from sample_arrays import array_of, chunked, host
from strategies import BOTH_RANGES, MODULI_SETS, SIGNED_AT_LEAST, edge_values

import rnsdask as rd
from rnsdask.core.moduli import ModuliSet

NAMES = ("two_three", "table2_4")
SETS = pytest.mark.parametrize("moduli", [MODULI_SETS[name] for name in NAMES], ids=NAMES)
TOP = MODULI_SETS["top"]
EXTREMA = {"cummax": np.maximum, "cummin": np.minimum}


pytestmark = pytest.mark.usefixtures("in_this_thread")


def near_the_ends(moduli: ModuliSet, signed: bool, rng: np.random.Generator, shape: Any) -> np.ndarray:
    """Small numbers, whose products and sums stay in range for a while, and some edges, which end that."""
    limits, edges = limits_of(moduli, signed), edge_values(moduli, signed)
    small = [v for v in (-2, -1, -1, 0, 1, 1, 1, 2, 3) if limits.holds(v)]
    values = [small[i] for i in rng.integers(0, len(small), size=int(np.prod(shape)))]
    special = [edges[i] for i in rng.integers(0, len(edges), size=len(values) // 5)]
    special += [limits.lowest, limits.highest, limits.highest // 2 + 1][: len(values) // 4]
    for place, value in zip(rng.permutation(len(values)).tolist(), special, strict=False):
        values[place] = value
    return objects(values, shape)


def arrays_of(processor: Processor, a: np.ndarray, moduli: ModuliSet, signed: bool) -> list[rd.RNSArray]:
    """Eager, of a layout of its own, with a bound, and in chunks of several lengths."""
    x = array_of(processor, a, moduli, signed)
    bound = max(map(abs, a.ravel().tolist()), default=0)
    turned = rd.RNSArray(processor.xp.asfortranarray(x.residues), x.system)
    halves = [tuple(c for c in (1, length // 2, length - 1 - length // 2) if c) for length in a.shape]
    return [turned, chunked(x, *halves), chunked(x.with_bound(bound), *(2 for _ in a.shape))]


def check_overflow(function: Callable[..., Any], exact: np.ndarray, limits: Range) -> None:
    """Check a function's results in all modes of overflow."""
    outside = limits.outside(exact)
    assert (function(overflow="wrap").to_ints() == limits.wrapped(exact)).all()
    result, mask = function(overflow="flag")
    assert (result.to_ints() == limits.wrapped(exact)).all()
    assert (host(mask) == outside).all()
    if not outside.any():
        found = function(overflow="raise")
        assert (found.to_ints() == exact).all()
        assert found.bound is None or found.bound >= max(map(abs, exact.ravel().tolist()), default=0)
        return
    with pytest.raises(rd.RNSOverflowError) as caught:
        function(overflow="raise").to_ints()
    error = caught.value
    assert outside.ravel()[error.index]
    value = exact.ravel()[error.index]
    assert error.negative == (value < 0)
    true_bits = limits.bits_needed(value)
    assert error.bits_needed <= true_bits if error.at_least else error.bits_needed == true_bits


@SETS
@SIGNED_AT_LEAST
def test_products_along_axes(
    on_each_processor: Processor, moduli: ModuliSet, signed: bool, rng: np.random.Generator
) -> None:
    limits = limits_of(moduli, signed)
    for shape, axes in (((3, 5, 2), (0, 1, (0, 2))), ((1, 9), (1, 0)), ((6,), (0,))):
        a = near_the_ends(moduli, signed, rng, shape)
        for x in arrays_of(on_each_processor, a, moduli, signed):
            for axis in axes:
                exact = np.asarray(np.prod(a, axis=axis, keepdims=True), dtype=object)
                check_overflow(lambda x=x, k=axis, **o: x.prod(k, keepdims=True, **o), exact, limits)
            if len(shape) > 1:
                exact = np.prod(a, axis=axes[0])
                check_overflow(lambda x=x, k=axes[0], **o: x.prod(k, **o), exact, limits)


@SETS
@SIGNED_AT_LEAST
def test_running_products(
    on_each_processor: Processor, moduli: ModuliSet, signed: bool, rng: np.random.Generator
) -> None:
    limits = limits_of(moduli, signed)
    for shape, axis in (((2, 7), 1), ((5, 2), 0), ((2, 3, 2), 1), ((11,), 0), ((2, 4), None)):
        a = near_the_ends(moduli, signed, rng, shape)
        for x in arrays_of(on_each_processor, a, moduli, signed):
            check_overflow(lambda x=x, k=axis, **o: x.cumprod(k, **o), np.cumprod(a, axis=axis), limits)


@SETS
@SIGNED_AT_LEAST
def test_running_sums_and_extrema(
    on_each_processor: Processor, moduli: ModuliSet, signed: bool, rng: np.random.Generator
) -> None:
    limits = limits_of(moduli, signed)
    for shape, axis in (((2, 7), -1), ((5, 2), 0), ((2, 3, 2), 1), ((2, 4), None)):
        a = near_the_ends(moduli, signed, rng, shape)
        flat = a.ravel() if axis is None else a
        for x in arrays_of(on_each_processor, a, moduli, signed):
            for name, function in EXTREMA.items():
                found = getattr(x, name)(axis)
                assert (found.to_ints() == function.accumulate(flat, axis=axis or 0)).all()
                assert found.bound == x.bound
            exact = np.cumsum(a, axis=axis)
            outside = limits.outside(exact)
            if outside.any():
                with pytest.raises(rd.RNSOverflowError) as caught:
                    x.cumsum(axis).to_ints()
                assert outside.ravel()[caught.value.index]
                assert caught.value.bits_needed == limits.bits_needed(exact.ravel()[caught.value.index])
            # Numbers of as many terms' share of the range, where no sum overflows.
            parts = a // 16
            exact = np.cumsum(parts, axis=axis)
            y = x // 16
            if not limits.outside(exact).any():
                assert (y.cumsum(axis).to_ints() == exact).all()
                assert (np.cumsum(y, axis=axis).to_ints() == exact).all()


@BOTH_RANGES
def test_sums_at_the_ends_of_the_range(on_each_processor: Processor, signed: bool) -> None:
    """A sum that reaches an end is right, one more is an overflow, wherever chunks end."""
    limits = limits_of(TOP, signed)
    low = limits.lowest if signed else 0
    rows = [[limits.highest - 5, 5, 0, 0], [low, 0, limits.highest, 0], [1, limits.highest - 1, 0, 0]]
    a = objects([v for row in rows for v in row], (3, 4))
    for x in arrays_of(on_each_processor, a, TOP, signed):
        assert (x.cumsum(1).to_ints() == np.cumsum(a, axis=1)).all()
    for row, place in ((0, 2), (2, 3)):
        b = a.copy()
        b[row, place] = 1
        for x in arrays_of(on_each_processor, b, TOP, signed):
            with pytest.raises(rd.RNSOverflowError) as caught:
                x.cumsum(1).to_ints()
            assert limits.outside(np.cumsum(b, axis=1)).ravel()[caught.value.index]


def test_long_rows_and_many(on_each_processor: Processor, rng: np.random.Generator) -> None:
    """More numbers than are added up at a time, along either axis."""
    for shape in ((3, 70_001), (70_001, 3)):
        a = rng.integers(-(2**40), 2**40, size=shape).astype(object)
        x = array_of(on_each_processor, a, ModuliSet([2**32, 2**31 - 1]), True)
        for axis in (0, 1):
            assert (x.cumsum(axis).to_ints() == np.cumsum(a, axis=axis)).all()


def test_scans_of_nothing_and_of_wrong_axes(on_each_processor: Processor) -> None:
    x = array_of(on_each_processor, objects([], (0, 3)), TOP, True)
    for empty in (x, chunked(x, 1, 2)):
        for name in ("cumsum", "cumprod", "cummax", "cummin"):
            assert getattr(empty, name)(0).shape == getattr(empty, name)(1).shape == (0, 3)
            assert getattr(empty, name)().shape == (0,)
        assert empty.prod(axis=0).to_ints().tolist() == [1, 1, 1]
        assert empty.prod(axis=1).shape == (0,)
        assert empty.prod(keepdims=True).to_ints().tolist() == [[1]]
    y = array_of(on_each_processor, objects(range(6), (2, 3)), TOP, True)
    for name in ("cumsum", "cumprod", "cummax", "cummin", "prod"):
        with pytest.raises(ValueError, match="axis 2 is out of bounds"):
            getattr(y, name)(2)
    with pytest.raises(ValueError, match="backend"):
        chunked(y, 1, 1).cumprod(0, backend="no")
    with pytest.raises(TypeError):
        y.cumsum((0, 1))
    unknown = chunked(y.ravel(), 2)
    assert unknown[unknown > 2].cumprod().to_ints().tolist() == [3, 12, 60]
    assert unknown[unknown > 2].cummax().to_ints().tolist() == [3, 4, 5]


def test_bounds_that_prove_products(on_each_processor: Processor) -> None:
    x = array_of(on_each_processor, objects(range(-4, 4), (2, 4)), TOP, True, bound=4)
    assert x.prod(axis=1).bound == 4**4
    assert x.cumprod(axis=1).bound == 4**4
    assert x.cumsum(axis=1).bound == 16
    assert (x**20).prod(axis=1).bound is None
    ones = array_of(on_each_processor, objects([1, -1] * 500, (2, 500)), TOP, True, bound=1)
    assert ones.prod(axis=1).bound == 1
