"""Products, running products, powers and moments of IntervalRNSArrays, against Python's integers."""

from fractions import Fraction
from random import Random
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
from conftest import Processor
from fuzzing.oracle import Range, mapped, objects
from interval_numbers import check_columns, edge_numbers
from sample_arrays import host
from strategies import MODULI_SETS

import rnsdask as rd
from rnsdask import IntervalRNSArray, RNSOverflowError
from rnsdask.core.moduli import ModuliSet

EIGHT = MODULI_SETS["table2_8"]
LIMITS = Range.of("interval", EIGHT.product)
SHAPE = (4, 6)


pytestmark = pytest.mark.usefixtures("in_this_thread")


@pytest.fixture(params=["eager", "dask"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def numbers(rng: np.random.Generator) -> np.ndarray:
    random = Random(int(rng.integers(2**63)))
    pool = [*edge_numbers(EIGHT, random), *(-3, -2, -1, 0, 1, 2, 5) * 6]
    return objects(random.choices(pool, k=24), SHAPE)


def made(values: Any, processor: Processor, kind: str, moduli: ModuliSet = EIGHT) -> IntervalRNSArray:
    x = IntervalRNSArray.from_ints(values, moduli)
    columns = processor.xp.asarray(x.columns)
    if kind == "dask":
        columns = da.from_array(columns, chunks=(-1, *(max(1, n // 2) for n in x.shape)), asarray=False)
    return IntervalRNSArray(columns, x.system)


def check(result: Any, expected: np.ndarray, processor: Processor) -> None:
    (result,) = dask.compute(result)
    assert isinstance(result, IntervalRNSArray)
    assert result.shape == expected.shape
    flat = result.columns.reshape(len(result.columns), -1)
    check_columns(flat, expected.reshape(-1).tolist(), result.moduli, processor)


def check_flagged(pair: Any, exact: np.ndarray, processor: Processor) -> None:
    result, mask = pair
    assert (host(mask) == LIMITS.outside(exact)).all()
    check(result, LIMITS.wrapped(exact), processor)


@pytest.mark.parametrize("axis", [0, 1, (0, 1)])
@pytest.mark.parametrize("keepdims", [False, True])
def test_products_along_axes(
    axis: Any, keepdims: bool, numbers: np.ndarray, on_each_processor: Processor, kind: str
) -> None:
    x = made(numbers, on_each_processor, kind)
    exact = np.prod(numbers, axis=axis, keepdims=keepdims)
    if np.ndim(exact):
        check_flagged(x.prod(axis, keepdims=keepdims, overflow="flag"), exact, on_each_processor)
        wrapped = x.prod(axis, keepdims=keepdims, overflow="wrap")
        check(wrapped, LIMITS.wrapped(exact), on_each_processor)
    signs = np.sign(numbers)
    y = made(signs, on_each_processor, kind)
    found, expected = y.prod(axis, keepdims=keepdims), np.prod(signs, axis=axis, keepdims=keepdims)
    if np.ndim(expected):
        check(found, expected, on_each_processor)
    else:
        assert int(found) == expected


@pytest.mark.parametrize("axis", [0, 1, None])
def test_running_products_and_sums(
    axis: int | None, numbers: np.ndarray, on_each_processor: Processor, kind: str
) -> None:
    x = made(numbers, on_each_processor, kind)
    exact = np.cumprod(numbers, axis=axis)
    check_flagged(x.cumprod(axis, overflow="flag"), exact, on_each_processor)
    with rd.errstate(overflow="wrap"):
        check(x.cumprod(axis), LIMITS.wrapped(exact), on_each_processor)
    signs = made(np.sign(numbers), on_each_processor, kind)
    check(signs.cumprod(axis), np.cumprod(np.sign(numbers), axis=axis), on_each_processor)
    eighth = made(numbers // 32, on_each_processor, kind)
    check(eighth.cumsum(axis), np.cumsum(numbers // 32, axis=axis), on_each_processor)
    flat = numbers if axis is not None else numbers.reshape(-1)
    check(x.cummax(axis), np.maximum.accumulate(flat, axis=axis or 0), on_each_processor)
    check(x.cummin(axis), np.minimum.accumulate(flat, axis=axis or 0), on_each_processor)


def test_products_out_of_range_name_the_first(on_each_processor: Processor, kind: str) -> None:
    top = EIGHT.product - 1
    x = made([[1, top, 1, -1], [-1, 2, 0, 7], [3, -top, 5, 1], [1, 1, 1, 0]], on_each_processor, kind)
    for call, places in ((lambda: x.prod(1), {2}), (lambda: x.cumprod(0), {5, 9})):
        with pytest.raises(RNSOverflowError) as error:
            dask.compute(call())
        assert error.value.index in places
        assert error.value.at_least
        assert error.value.bits_available == EIGHT.bits
    (mask,) = dask.compute(x.prod(1, overflow="flag")[1])
    assert host(mask).tolist() == [False, False, True, False]
    check(x[:0].prod(0), objects([1] * 4), on_each_processor)
    with pytest.raises(ValueError, match="axis"):
        x.prod(2)


def test_exponents_for_each_number(numbers: np.ndarray, on_each_processor: Processor, kind: str) -> None:
    x = made(numbers, on_each_processor, kind)
    exponents = np.array([0, 1, 2, 3, EIGHT.bits, EIGHT.bits + 7])
    given = on_each_processor.xp.asarray(exponents)
    exact = mapped(pow, numbers, np.broadcast_to(exponents.astype(object), SHAPE))
    check_flagged(rd.power(x, given, overflow="flag"), exact, on_each_processor)
    check(rd.power(x, exponents.tolist(), overflow="wrap"), LIMITS.wrapped(exact), on_each_processor)
    signs = np.sign(numbers)
    check(made(signs, on_each_processor, kind) ** given, signs**exponents, on_each_processor)
    outside = LIMITS.outside(exact)
    if outside.any():
        with pytest.raises(RNSOverflowError) as error:
            dask.compute(x**given)
        index = error.value.index
        assert outside.reshape(-1)[index]
        assert error.value.bits_needed == LIMITS.bits_needed(exact.reshape(-1)[index])
    with pytest.raises(ValueError, match="an exponent must not be negative"):
        dask.compute(made(signs, on_each_processor, kind) ** (given - 1))
    with pytest.raises(TypeError, match="exponents must be"):
        rd.power(x, x)


@pytest.mark.parametrize("modulus", [1, 97, -97, 2**32, 2**40 + 15, EIGHT.product - 1, -EIGHT.product])
def test_powers_modulo_integers(
    modulus: int, numbers: np.ndarray, on_each_processor: Processor, kind: str
) -> None:
    x = made(numbers, on_each_processor, kind)
    for exponent in (0, 1, 5, 2**70):
        exact = mapped(lambda v, k=exponent: pow(v, k, modulus), numbers)
        check(pow(x, exponent, modulus), exact, on_each_processor)
    with pytest.raises(ValueError, match="do not fit the moduli set"):
        pow(x, 2, EIGHT.product + 1)
    with pytest.raises(ValueError, match="must not be 0"):
        pow(x, 2, 0)


def test_powers_and_stacks_of_matrices(numbers: np.ndarray, on_each_processor: Processor, kind: str) -> None:
    a = numbers[:, :4] % 11 - 5
    x = made(a, on_each_processor, kind)
    check(rd.linalg.matrix_power(x, 0), np.eye(4, dtype=object) * 1, on_each_processor)
    check(rd.linalg.matrix_power(x, 5), a.dot(a).dot(a).dot(a).dot(a), on_each_processor)
    check(rd.dot(x, x), a.dot(a), on_each_processor)
    stack = rd.stack([x, -x])
    check(rd.matmul(stack, x), np.stack([a.dot(a), -a.dot(a)]), on_each_processor)
    with pytest.raises(ValueError, match='takes overflow="raise", got "wrap"'):
        rd.linalg.matrix_power(x, 2, overflow="wrap")
    with pytest.raises(ValueError, match="have one or two axes, got 3"):
        rd.dot(stack, stack)


def test_means_and_variances(numbers: np.ndarray, on_each_processor: Processor, kind: str) -> None:
    x = made(numbers, on_each_processor, kind)
    for axis in (0, 1):
        count = SHAPE[axis]
        means = mapped(lambda total, n=count: Fraction(total, n), numbers.sum(axis=axis))
        squares = mapped(lambda total, n=count: Fraction(total, n), (numbers * numbers).sum(axis=axis))
        assert (np.asarray(dask.compute(x.mean(axis))[0]) == means).all()
        assert (np.asarray(dask.compute(x.var(axis))[0]) == squares - means * means).all()
