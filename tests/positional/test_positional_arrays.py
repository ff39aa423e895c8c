"""Positional arrays against Python's integers: sums, bits, order, conversion, errors."""

import itertools
import math
import operator
import random
from typing import Any

import dask.array as da
import numpy as np
import pytest
from conftest import Processor
from oracles import positional
from oracles.integers import Range, mapped, objects
from positional_numbers import PRECISIONS, some_values, special_values, to_values, wrapped
from strategies import slow

import rnsdask as rd
from rnsdask.backend import kernels_of
from rnsdask.positional.operands import resized

LONG = (*PRECISIONS, 20000)


def placed(numbers: np.ndarray, system: rd.Positional, processor: Processor) -> Any:
    words = processor.xp.asarray(positional.encode(numbers, system.bits))
    return rd.PositionalArray(words, system)


def draw(bits: int, signed: bool, count: int, rng: np.random.Generator) -> np.ndarray:
    """Special numbers first, in any order."""
    values = some_values(bits, signed, count, rng)
    return objects(random.Random(int(rng.integers(2**32))).sample(values, count))


def check(found: Any, exact: np.ndarray, limits: Range) -> None:
    """Results that wrap, their words, and the mask of those out of range."""
    result, mask = found
    wrapped = limits.wrapped(exact)
    assert (result.to_ints() == wrapped).all()
    words = result.words if isinstance(result.words, np.ndarray) else result.words.get()
    assert (words == positional.encode(wrapped, result.bits)).all()
    assert (np.asarray(mask if isinstance(mask, np.ndarray) else mask.get()) == limits.outside(exact)).all()


def host(array: Any) -> np.ndarray:
    return array if isinstance(array, np.ndarray) else array.get()


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("bits", [*LONG[::2], *slow(*LONG[1::2])])
def test_sums_bits_and_order_are_pythons(
    bits: int, signed: bool, on_each_processor: Processor, rng: np.random.Generator
) -> None:
    system, limits = rd.Positional(bits, signed), positional.limits_of(bits, signed)
    count = 70 if bits > 4096 else 1100  # more than a tile
    a, b = draw(bits, signed, count, rng), draw(bits, signed, count, rng)
    b[::7] = a[::7]
    x, y = (placed(v, system, on_each_processor) for v in (a, b))
    assert (x.to_ints() == a).all()
    for function, exact in ((rd.add, a + b), (rd.subtract, a - b)):
        check(function(x, y, overflow="flag"), exact, limits)
    one = min(1, limits.highest)
    check(rd.add(x, one, overflow="flag"), a + one, limits)
    check(rd.subtract(limits.highest, x, overflow="flag"), limits.highest - a, limits)
    check(rd.negative(x, overflow="flag"), -a, limits)
    check(rd.absolute(x, overflow="flag"), abs(a), limits)
    for function in (operator.and_, operator.or_, operator.xor):
        assert (function(x, y).to_ints() == mapped(function, a, b)).all()
    assert ((~x).to_ints() == (-1 - a if signed else limits.highest - a)).all()
    counts = rng.integers(0, bits + 40, count)
    counts[:6] = 0, 31, 32, 33, bits - 1, bits
    shifts = on_each_processor.xp.asarray(counts)
    check(rd.left_shift(x, shifts, overflow="flag"), mapped(operator.lshift, a, counts), limits)
    assert (rd.right_shift(x, shifts).to_ints() == mapped(operator.rshift, a, counts)).all()
    for k in (0, 1, 31, 32, 45, bits, 2**70):
        assert ((x >> k).to_ints() == mapped(lambda v, k=k: v >> min(k, bits), a)).all()
    for k in (0, 1, 31, 32, 45, bits):
        check(rd.left_shift(x, k, overflow="flag"), mapped(lambda v, k=k: v << k, a), limits)
    assert (host(rd.bitwise_count(x)) == mapped(lambda v: v.bit_count(), a, dtype=np.int64)).all()
    assert (host(x.bit_length()) == mapped(int.bit_length, a, dtype=np.int64)).all()
    for relation in (operator.lt, operator.le, operator.eq, operator.ne, operator.ge, operator.gt):
        assert (host(relation(x, y)) == relation(a, b).astype(bool)).all()
    assert (rd.maximum(x, y).to_ints() == np.maximum(a, b)).all()
    values = a.tolist()
    assert (x.max(), x.min(), x.sum()) == (max(values), min(values), sum(values))
    assert (x.argmax(), x.argmin()) == (values.index(max(values)), values.index(min(values)))
    assert x.topk(5).tolist() == sorted(values, reverse=True)[:5]
    assert (rd.sort(x).to_ints() == np.sort(a)).all()


@pytest.mark.parametrize("bits", [32, 64, 65, 1024, 20000])
def test_carries_and_borrows_pass_through_all_limbs(bits: int, on_each_processor: Processor) -> None:
    ones, one = objects([2**bits - 1] * 3), objects([1, 0, 2**bits - 1])
    system = rd.Positional(bits)
    x, y = (placed(v, system, on_each_processor) for v in (ones, one))
    assert rd.add(x, y, overflow="wrap").to_ints().tolist() == [0, 2**bits - 1, 2**bits - 2]
    assert rd.add(x, y, bits="exact").to_ints().tolist() == (ones + one).tolist()
    assert rd.subtract(0, y, overflow="wrap").to_ints().tolist() == [2**bits - 1, 0, 1]
    assert rd.subtract(y, x, bits="exact").to_ints().tolist() == (one - ones).tolist()
    assert rd.multiply(x, y, bits="exact").to_ints().tolist() == (ones * one).tolist()


@pytest.mark.parametrize(("a_bits", "b_bits"), [(1, 1), (31, 33), (32, 64), (64, 63), (100, 256)])
@pytest.mark.parametrize("signs", [(False, False), (True, False), (False, True), (True, True)])
def test_exact_results_have_the_bits_that_they_take(
    a_bits: int, b_bits: int, signs: tuple[bool, bool], on_each_processor: Processor, rng: np.random.Generator
) -> None:
    a, b = (draw(bits, sign, 64, rng) for bits, sign in zip((a_bits, b_bits), signs, strict=True))
    x = placed(a, rd.Positional(a_bits, signs[0]), on_each_processor)
    y = placed(b, rd.Positional(b_bits, signs[1]), on_each_processor)
    for function, exact in ((rd.add, a + b), (rd.subtract, a - b), (rd.multiply, a * b)):
        found = function(x, y, bits="exact")
        assert (found.to_ints() == exact).all()
        assert found.system == rd.Positional(found.bits, found.signed)
    assert rd.multiply(x, y, bits="exact").bits == a_bits + b_bits
    wide = max(a_bits + (signs[1] > signs[0]), b_bits + (signs[0] > signs[1]))
    assert rd.add(x, y, bits="exact").system == rd.Positional(wide + 1, any(signs))
    assert rd.subtract(x, y, bits="exact").system == rd.Positional(wide + 1, True)


@pytest.mark.parametrize("top_bits", [1, 31, 32])
@pytest.mark.parametrize("limbs", [1, 2])
def test_sums_of_operands_whose_signs_are_not_the_results(
    limbs: int, top_bits: int, on_each_processor: Processor
) -> None:
    xp, bits = on_each_processor.xp, 32 * (limbs - 1) + top_bits
    words = xp.asarray(positional.encode(objects(special_values(32 * limbs, False)), 32 * limbs))
    x, y = (
        xp.ascontiguousarray(z.reshape(limbs, -1))
        for z in xp.broadcast_arrays(words[..., None], words[:, None])
    )
    out = xp.empty_like(x)
    for x_signed, y_signed, signed, subtract in itertools.product((False, True), repeat=4):
        flags = kernels_of(x).positional_add((x, y), (x_signed, y_signed), subtract, top_bits, signed, out)
        a, b = (to_values(z, sign) for z, sign in ((x, x_signed), (y, y_signed)))
        exact = [p - q if subtract else p + q for p, q in zip(a, b, strict=True)]
        right = [wrapped(value, bits, signed) for value in exact]
        assert to_values(out, signed) == right
        assert host(flags).tolist() == [int(value != z) for value, z in zip(exact, right, strict=True)]


def test_exact_results_of_chunks_that_differ(rng: np.random.Generator) -> None:
    a, b = draw(100, True, 12, rng), draw(40, False, 12, rng)
    eager, other = (
        rd.from_ints(v, s, chunks=None) for v, s in ((a, rd.Positional(100, True)), (b, rd.Positional(40)))
    )
    for x, y in ((eager.rechunk(5), other.rechunk(4)), (eager, other.rechunk(7)), (eager.rechunk(12), other)):
        assert (rd.add(x, y, bits="exact").to_ints() == a + b).all()
        assert (rd.multiply(y[:, None], x[:3], bits="exact").to_ints() == b[:, None] * a[:3]).all()


@pytest.mark.parametrize("bits", [1, 33, 64, 256])
@pytest.mark.parametrize("signed", [False, True])
def test_powers_quotients_and_modular_results_are_pythons(
    bits: int, signed: bool, on_each_processor: Processor, rng: np.random.Generator
) -> None:
    system, limits = rd.Positional(bits, signed), positional.limits_of(bits, signed)
    a, b = draw(bits, signed, 60, rng), draw(bits, signed, 60, rng)
    x = placed(a, system, on_each_processor)
    not_negative = np.where(a < 0, 0, a)
    roots = rd.isqrt(placed(not_negative, system, on_each_processor))
    assert (roots.to_ints() == mapped(math.isqrt, not_negative)).all()
    for k in (0, 1, 2, 3, 10, 200):
        check(rd.power(x, k, overflow="flag"), a**k, limits)
    exponents = rng.integers(0, 12, 60)
    powers = mapped(lambda v, k: v ** int(k), a, exponents)
    check(rd.power(x, on_each_processor.xp.asarray(exponents), overflow="flag"), powers, limits)
    huge = rd.power(x, 2**80 + 1, overflow="wrap").to_ints()
    assert (huge == mapped(lambda v: limits.wrap(pow(v, 2**80 + 1, 2**bits)), a)).all()
    small = a >> 1  # whose quotients by -1 are in range
    z, divisors = placed(small, system, on_each_processor), np.where(b == 0, limits.lowest or 1, b)
    y = placed(divisors, system, on_each_processor)
    if limits.highest:
        assert ((z // y).to_ints() == small // divisors).all()
    assert ((z % y).to_ints() == small % divisors).all()
    assert ((z // 2**300).to_ints() == small // 2**300).all()
    moduli = np.where(b > 0, b, limits.highest or 1)
    if limits.highest:
        m = placed(moduli, system, on_each_processor)
        assert (rd.mod_add(x, -5, limits.highest).to_ints() == (a - 5) % limits.highest).all()
        assert (rd.mod_subtract(x, x[::-1], m).to_ints() == (a - a[::-1]) % moduli).all()
        assert (rd.mod_multiply(x, x[::-1], m).to_ints() == a * a[::-1] % moduli).all()
        assert (
            rd.mod_power(x, 10**20, m).to_ints() == mapped(lambda v, n: pow(v, 10**20, n), a, moduli)
        ).all()
        assert (pow(x, 7, limits.highest).to_ints() == mapped(lambda v: pow(v, 7, limits.highest), a)).all()
    if limits.highest > 1:  # 2 and odd numbers have no common factor
        inverses = rd.mod_inverse(2, placed(moduli | 1, system, on_each_processor))
        assert (inverses.to_ints() == mapped(lambda n: pow(2, -1, n), moduli | 1)).all()


def test_results_out_of_range_name_their_index_and_bits() -> None:
    x = rd.from_ints([0, 2**63 - 1, -(2**63)], rd.Positional(64, True), chunks=None)
    with pytest.raises(
        rd.RNSOverflowError,
        match=r"flat index 1: .* 65 bits long with its sign, .* holds signed .* 64",
    ):
        x + 1
    with pytest.raises(rd.RNSOverflowError, match="flat index 2"):
        abs(x)
    with pytest.raises(rd.RNSOverflowError, match="flat index 2"):
        x // -1
    with pytest.raises(rd.RNSOverflowError, match=r"flat index 1: the exact result is at least"):
        x**100
    lazy = rd.from_ints([0, 1, 2, 255], rd.Positional(8), chunks=2)
    with pytest.raises(
        rd.RNSOverflowError, match=r"flat index 3: .* 9 bits long, the array holds unsigned .* 8"
    ):
        (lazy << 1).compute()
    with pytest.raises(ZeroDivisionError, match="flat index 0"):
        (lazy // lazy).compute()
    with pytest.raises(rd.RNSOverflowError, match="negative"):
        rd.negative(lazy).compute()


def test_a_negative_exponent_is_named_by_the_index_of_its_power() -> None:
    system = rd.Positional(70, True)
    x = rd.from_ints(objects(range(12)).reshape(4, 3), system, chunks=None)
    exponents = np.array([[1], [1], [-1], [1]])
    of_numbers = rd.from_ints(exponents, system, chunks=None)
    for base in (x, x.rechunk((4, 3)), x.rechunk((2, 3))):
        with pytest.raises(ValueError, match="negative, got -1 at flat index 6"):
            rd.power(base, exponents).to_ints()
        with pytest.raises(ValueError, match="exponent at flat index 6 is negative"):
            rd.mod_power(base, of_numbers, 7).to_ints()


def test_errors_name_the_argument_and_the_rule() -> None:
    x = rd.from_ints([1, 2], rd.Positional(40), chunks=None)
    for bits in (0, -1, 2**20 + 1):
        with pytest.raises(ValueError, match=r"bits must be from 1 to 1048576"):
            rd.Positional(bits)
    with pytest.raises(TypeError, match="signed must be a bool"):
        rd.Positional(8, "yes")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="signed must be a bool"):
        x.to_rns(signed="no")  # type: ignore[arg-type]
    with pytest.raises(
        ValueError, match=r"position 1 .*0 to 1099511627775 of Positional\(40 bits, unsigned\)"
    ):
        rd.from_ints([1, 2**40], rd.Positional(40))
    with pytest.raises(ValueError, match="different precisions"):
        x + x.to_positional(41)
    with pytest.raises(TypeError, match=r"to_positional\(bits\) and to_rns\(moduli\) convert"):
        x + x.to_rns()
    with pytest.raises(TypeError, match=r"takes no RNSArray: .*x.to_positional\(bits\) makes limbs"):
        x.to_rns() & 1
    with pytest.raises(TypeError, match="bits must be None, or 'exact' for PositionalArrays"):
        rd.add(x.to_rns(), 1, bits="exact")
    with pytest.raises(ValueError, match="bits must be None, or 'exact'"):
        rd.add(x, 1, bits="more")
    with pytest.raises(ValueError, match="operand -1 is outside"):
        x + -1
    for counts in (-1, [3, -1]):
        with pytest.raises(ValueError, match="must not be negative"):
            x >> counts
    with pytest.raises(TypeError, match="machine type"):
        x << [0.5, 1]
    with pytest.raises(ZeroDivisionError, match="modulus"):
        rd.mod_add(x, x, 0)
    with pytest.raises(ZeroDivisionError, match="flat index 1 has no inverse modulo 6"):
        rd.mod_inverse(rd.from_ints([5, 3], rd.Positional(40), chunks=None), 6)
    with pytest.raises(ValueError, match="flat index 1 is negative"):
        rd.isqrt(rd.from_ints([5, -3], rd.Positional(40, True), chunks=None))
    with pytest.raises(TypeError, match="mod_add takes no FieldArray"):
        rd.mod_add(rd.from_ints([1, 2], rd.PrimeFields([7])), 1, 7)
    assert rd.mod_add(rd.from_ints([5, 6]), 1, 7).to_ints().tolist() == [6, 0]  # residues become limbs
    with pytest.raises(TypeError, match="PositionalArray"):
        x @ x
    with pytest.raises(TypeError, match="signed must be a bool, got 'no'"):
        rd.RNS(rd.ModuliSet.for_bits(40), "no")  # type: ignore[arg-type]


def test_numpys_functions_take_machine_integers() -> None:
    values, counts = [7, -5, 3, 1], np.array([1, 0, 30, 2], np.int8)
    x = rd.from_ints(values, rd.Positional(40, True), chunks=2)
    for function in (np.left_shift, np.right_shift):
        exact = function(np.array(values, object), counts.astype(object))
        assert (function(x, counts).to_ints() == exact).all()
        assert (function(x, counts.tolist()).to_ints() == exact).all()
        assert (function.outer(x, counts).to_ints() == function.outer(np.array(values, object), counts)).all()
    assert np.power(x, [2, 3, 4, 5]).to_ints().tolist() == [49, -125, 81, 1]
    assert np.left_shift(x, np.array(2)).to_ints().tolist() == [28, -20, 12, 4]
    assert np.power.outer(x, [2, 3]).to_ints().tolist() == [[49, 343], [25, -125], [9, 27], [1, 1]]
    with pytest.raises(TypeError, match="residues are shifted by one integer"):
        np.left_shift(x.to_rns(), counts)


@pytest.mark.parametrize("bits", [1, 31, 32, 33, 64, 109, 1024])
@pytest.mark.parametrize("signed", [False, True])
def test_numbers_go_to_residues_and_back(
    bits: int, signed: bool, on_each_processor: Processor, rng: np.random.Generator
) -> None:
    a = draw(bits, signed, 70, rng)
    x = placed(a, rd.Positional(bits, signed), on_each_processor)
    y = x.to_rns()
    assert y.signed == signed
    assert y.bound == max(map(abs, x.system.value_range))
    assert (y.to_ints() == a).all()
    assert (y.to_positional(bits).to_ints() == a).all()
    assert (x.to_positional(bits + 200, True).to_ints() == a).all()
    assert type(y.to_positional(bits).words) is type(x.words)
    lazy = x.rechunk(32)
    assert (
        lazy.to_rns(rd.ModuliSet.for_bits(bits + 1), True).to_positional(bits, signed).to_ints() == a
    ).all()


@pytest.mark.parametrize("chunks", [None, 2])
def test_the_longest_unsigned_numbers_become_signed_residues(chunks: int | None) -> None:
    moduli = rd.ModuliSet.for_bits(64)
    x = rd.from_ints([0, 5, 2**63 - 1], rd.Positional(2**20), chunks=chunks)
    assert x.to_rns(moduli, signed=True).to_ints().tolist() == [0, 5, 2**63 - 1]
    with pytest.raises(ValueError, match=r"at flat index [02] is outside the signed range"):
        (~x).to_rns(moduli, signed=True).to_ints()


def test_conversion_out_of_range_names_the_first_index() -> None:
    x = rd.from_ints([1, -2, 2**40, 3], rd.ModuliSet.for_bits(100), signed=True, chunks=2)
    with pytest.raises(ValueError, match=r"value -2 at flat index 1 .*Positional\(50 bits, unsigned\)"):
        x.to_positional(50, signed=False).compute()
    with pytest.raises(ValueError, match=r"at flat index 2 is outside the signed range"):
        x.to_positional(40).compute()
    p = x.to_positional(50)
    with pytest.raises(ValueError, match=r"at flat index 2"):
        p.to_rns(rd.ModuliSet([2**31 - 1])).compute()
    with pytest.raises(ValueError, match=r"value -2 at flat index 1"):
        p.to_rns(signed=False).compute()


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("to_signed", [False, True])
def test_resizing_keeps_just_the_numbers_that_fit(signed: bool, to_signed: bool) -> None:
    for bits, to_bits in ((32, 33), (64, 31), (65, 64), (96, 96), (33, 100), (100, 1)):
        values = objects(special_values(bits, signed))
        system = rd.Positional(to_bits, to_signed)
        words = positional.encode(values, bits)
        found, outside = resized(words, signed, system.rows, system.top_bits, to_signed)
        limits = positional.limits_of(to_bits, to_signed)
        assert (outside == limits.outside(values)).all()
        assert (system.decode(found) == limits.wrapped(values)).all()


def test_arrays_of_any_layout_and_size() -> None:
    system = rd.Positional(70, True)
    a = objects(range(-12, 12)).reshape(4, 6) * 2**60
    x = rd.from_ints(a, system, chunks=None)
    assert ((x.T[::-2] + x.T[::-2]).to_ints() == 2 * a.T[::-2]).all()
    assert ((x[:, :1] - x[2]).to_ints() == a[:, :1] - a[2]).all()
    assert (
        (x[:, ::5] >> [[3], [1], [0], [70]]).to_ints() == a[:, ::5] >> objects([3, 1, 0, 70])[:, None]
    ).all()
    empty = x[:0]
    for none in (empty, empty.ravel(), empty.rechunk(2), rd.from_ints([], system, chunks=None)):
        assert none.to_positional(33).to_rns().to_positional(90).shape == none.shape
    assert (empty + 1).shape == (0, 6)
    assert empty.sum() == 0
    assert (empty << 3).to_ints().shape == (~empty).to_ints().shape == empty.to_rns().shape == (0, 6)
    with pytest.raises(ValueError, match="empty array"):
        empty.max()
    lazy = x.rechunk((2, 3))
    chosen = lazy[lazy > 0]
    assert ((chosen - 1).to_ints() == a[(a > 0).astype(bool)] - 1).all()
    assert ((lazy + lazy.max() - lazy.max()).to_ints() == a).all()
    assert ((lazy >> da.asarray(np.array(2))).to_ints() == a >> 2).all()
    assert ((lazy % lazy.max()).to_ints() == a % a.max()).all()
    assert "70 bits, signed" in repr(lazy)
    assert str(rd.Positional(1)) == "1 bit, unsigned"
    assert "bound of 1 bit>" in repr(rd.from_ints([1, 0], rd.ModuliSet.for_bits(64)))
    assert rd.random(system, 1000, seed=3).min() < 0
    assert rd.random(rd.Positional(1), 100, seed=3).to_ints().max() == 1
    assert (rd.from_limbs(x.to_limbs(), system).to_ints() == a).all()


def test_stores_tell_limbs_that_are_none(tmp_path: Any) -> None:
    system = rd.Positional(40, True)
    x = rd.from_ints([-1, 5, 2**39 - 1], system, chunks=2)
    x.to_zarr(tmp_path / "p.zarr")
    assert (rd.open_zarr(tmp_path / "p.zarr").to_ints() == x.to_ints()).all()
    wrong = rd.PositionalArray(np.array([[1, 2], [0, 0x80]], np.uint32), system)
    with pytest.raises(ValueError, match=r"number 1 has the highest limb 0x80 .* copies of the sign"):
        wrong.to_zarr(tmp_path / "w.zarr")
