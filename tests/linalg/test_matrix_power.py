"""Products of stacks of matrices, and powers of matrices, against NumPy on Python ints."""

from functools import reduce
from typing import Any

import dask.array as da
import numpy as np
import pytest
from conftest import Processor
from oracles.rns import limits_of
from sample_arrays import array_of, chunked, host
from strategies import BOTH_RANGES, MODULI_SETS, SIGNED_AT_LEAST

import rnsdask as rd
from rnsdask.core.moduli import ModuliSet
from rnsdask.rns import matmul as products

TOP = MODULI_SETS["top"]
STACKS = (
    ((2, 3, 4), (4, 2)),
    ((3, 4), (5, 4, 2)),
    ((2, 1, 3, 4), (3, 4, 4)),
    ((5, 2, 2), (5, 2, 2)),
    ((4,), (3, 4, 2)),
    ((3, 2, 4), (4,)),
    ((0, 2, 2), (2, 2)),
    ((3, 2, 0), (3, 0, 2)),
)


pytestmark = pytest.mark.usefixtures("in_this_thread")


def matrices(rng: np.random.Generator, shape: tuple[int, ...], signed: bool, reach: int = 5) -> np.ndarray:
    return rng.integers(-reach if signed else 0, reach + 1, size=shape).astype(object)


@SIGNED_AT_LEAST
def test_products_of_stacks(on_each_processor: Processor, signed: bool, rng: np.random.Generator) -> None:
    moduli = ModuliSet([2**32, 5, 7])
    limits = limits_of(moduli, signed)
    for left, right in STACKS:
        a, b = matrices(rng, left, signed) * 2**14, matrices(rng, right, signed) * 2**15
        exact = np.asarray(np.matmul(a, b), dtype=object)
        outside = limits.outside(exact)
        x, y = (array_of(on_each_processor, v, moduli, signed) for v in (a, b))
        for p, q in (
            (x, y),
            (chunked(x, *(2,) * a.ndim), y),
            (chunked(x, *a.shape), chunked(y, *(1,) * b.ndim)),
        ):
            result, mask = rd.matmul(p, q, overflow="flag")
            assert (result.to_ints() == limits.wrapped(exact)).all()
            assert (host(mask) == outside).all()
            assert (rd.matmul(p, q, overflow="wrap").to_ints() == limits.wrapped(exact)).all()
            if outside.any():
                with pytest.raises(rd.RNSOverflowError) as caught:
                    (p @ q).to_ints()
                assert outside.ravel()[caught.value.index]
            else:
                assert ((p @ q).to_ints() == exact).all()


def test_both_ways_to_multiply_stacks(
    on_each_processor: Processor, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = (matrices(rng, (9, 3, 3), True, 2**40) for _ in range(2))
    x, y = (array_of(on_each_processor, v, TOP, True) for v in (a, b))
    for most in (0, 2**30):
        monkeypatch.setattr(products, "SMALL_PRODUCT", most)
        assert ((x @ y).to_ints() == np.matmul(a, b)).all()


def test_stacks_that_do_not_match(on_each_processor: Processor) -> None:
    x = array_of(on_each_processor, np.ones((2, 3, 3), dtype=object), TOP)
    y = array_of(on_each_processor, np.ones((3, 3, 3), dtype=object), TOP)
    for p, q in ((x, y), (chunked(x, 1, 3, 3), y)):
        with pytest.raises(ValueError, match="all axes but the last two must broadcast"):
            p @ q
    with pytest.raises(ValueError, match="its sums would have 3 and 2 terms"):
        x @ x[:, :2]
    with pytest.raises(ValueError, match="dot have one or two axes, got 3"):
        rd.dot(x[0], x)


def power_of(a: np.ndarray, k: int) -> np.ndarray:
    identity = np.broadcast_to(np.eye(a.shape[-1], dtype=object), a.shape)
    return reduce(np.matmul, [a] * k, identity)


@BOTH_RANGES
def test_powers(on_each_processor: Processor, signed: bool, rng: np.random.Generator) -> None:
    for shape in ((3, 3), (5, 2, 2), (2, 1, 1, 1), (2, 0, 0), (0, 2, 2)):
        a = matrices(rng, shape, signed, 2)
        x = array_of(on_each_processor, a, TOP, signed)
        for y in (x, x.with_bound(2), chunked(x, *(2,) * a.ndim)):
            for k in (0, 1, 2, 3, 7, 12):
                exact = power_of(a, k)
                found = rd.linalg.matrix_power(y, k)
                assert found.shape == shape
                assert (found.to_ints() == exact).all()
                assert found.bound is None or found.bound >= max(map(abs, exact.ravel().tolist()), default=0)
                assert getattr(found, "chunks", None) == getattr(y, "chunks", None)


def test_powers_out_of_range(on_each_processor: Processor) -> None:
    a = np.array([[1, 1], [1, 0]], dtype=object)
    numbers = [0, 1]
    while numbers[-1] < TOP.product:
        numbers.append(numbers[-1] + numbers[-2])
    last = len(numbers) - 2
    x = array_of(on_each_processor, a, TOP)
    for y in (x, chunked(x, 1, 2)):
        # The powers of this matrix are made of Fibonacci numbers.
        assert rd.linalg.matrix_power(y, last - 1).to_ints()[0, 0] == numbers[last]
        with pytest.raises(rd.RNSOverflowError, match="index 0"):
            rd.linalg.matrix_power(y, last).to_ints()
        found = rd.linalg.matrix_power(y, last, overflow="wrap").to_ints()
        assert found[0].tolist() == [numbers[-1] - TOP.product, numbers[-2]]
        with rd.errstate(overflow="wrap"):
            huge: Any = rd.linalg.matrix_power(y, 10**30).to_ints()
        b = power_modulo(a, 10**30, TOP.product)
        assert (huge == b).all()


def power_modulo(a: np.ndarray, k: int, m: int) -> np.ndarray:
    result = np.eye(len(a), dtype=object)
    for bit in f"{k:b}":
        result = result @ result % m
        result = result @ a % m if bit == "1" else result
    return result


def test_powers_that_are_refused(on_each_processor: Processor) -> None:
    x = array_of(on_each_processor, np.ones((2, 2), dtype=object), TOP)
    power = rd.linalg.matrix_power
    for bad in (x[0], x[:1], rd.expand_dims(x[:1], 0)):
        with pytest.raises(ValueError, match="takes square matrices, got shape"):
            power(bad, 2)
    with pytest.raises(
        ValueError, match="k must not be negative, for only a FieldArray has inverses, got -1"
    ):
        power(x, -1)
    with pytest.raises(ValueError, match='takes overflow="raise" or "wrap"'):
        power(x, 2, overflow="flag")
    for matrix, k in ((x, 1.5), (np.eye(2), 2), (x, "2")):
        with pytest.raises(TypeError):
            power(matrix, k)
    unknown = chunked(x.ravel(), 2)
    with pytest.raises(ValueError, match=r"square matrices, got shape \(1, "):
        power(unknown[unknown > 0][None], 2)
    tiny = array_of(on_each_processor, np.zeros((1, 1), dtype=object), ModuliSet([2]), True)
    with pytest.raises(rd.RNSOverflowError):
        power(tiny, 0)
    assert power(tiny, 0, overflow="wrap").to_ints().tolist() == [[-1]]
    lazy = rd.RNSArray(da.from_array(x.residues, chunks=(-1, 1, 1), asarray=False), x.system)
    assert power(lazy, 0).to_ints().tolist() == [[1, 0], [0, 1]]


def test_an_exponent_that_no_graph_holds_is_refused_at_once() -> None:
    x = rd.from_ints([[0, 1], [1, 0]], ModuliSet([2**32, 5]), chunks=1)
    with pytest.raises(
        ValueError, match=r"^k of a lazy array has at most 128 bits, .*; x\.compute\(\) takes any$"
    ):
        rd.linalg.matrix_power(x, 10**5000)
    eager = rd.linalg.matrix_power(x.compute(), 10**100 + 1)  # a permutation, which no power makes longer
    assert eager.to_ints().tolist() == [[0, 1], [1, 0]]
