"""Fermat fields and arrays of their elements against Python's integers and the oracle's digits."""

import json
import math
import operator
import pickle
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import flint
import gmpy2
import numpy as np
import pytest
from commands import call, fail, succeed
from conftest import Processor
from dask.base import tokenize
from oracles import fermat
from oracles.integers import objects
from sample_arrays import host
from strategies import slow

import rnsdask as rd
from rnsdask.core.fermat_primes import factors_of_radix, is_fermat_prime

NAMES = ("F233", "F256", "F449", "F481", "F851", "F1024", "F1813", "F2048", "F3829", "P3", "P4")
FEW_NAMES = ("F449", "P3")  # 32- and 64-bit digits
CHUNKS = (None, -1, 7, ((1, 20, 9),))
HUGE = 10**3000


def edges(field: rd.FermatField) -> list[int]:
    """Elements with forms of their own, and those that carry or borrow through all digits."""
    r, k, p = field.radix, field.digits, field.modulus
    return [
        0,
        1,
        p - 1,
        p - 2,
        r,
        r - 1,
        r**k - r,
        r ** (k - 1),
        r ** (k - 1) - 1,
        p // 2,
        p // 2 + 1,
        2,
        r**2,
    ]


def numbers(field: rd.FermatField, rng: np.random.Generator, count: int = 30) -> list[int]:
    width = field.bits // 8 + 1
    return [*edges(field), *(int.from_bytes(rng.bytes(width), "little") % field.modulus for _ in range(99))][
        :count
    ]


def others(field: rd.FermatField, rng: np.random.Generator, count: int = 30) -> list[int]:
    """Numbers in another order, so that each edge meets edges and others."""
    return [numbers(field, rng, count)[i] for i in rng.permutation(count)]


def same(found: Any, expected: Any) -> None:
    """That an array has the digits of these integers, whatever it is computed on."""
    field = found.system
    np.testing.assert_array_equal(host(found.words), fermat.encode(expected, field.radix, field.digits))


# ---- fields -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_named_fields_are_proved_and_have_roots(name: str) -> None:
    field = rd.FermatField.named(name)
    p, r, k = field.modulus, field.radix, field.digits
    assert p == r**k + 1
    assert flint.fmpz(p).is_probable_prime()
    assert field.bits == p.bit_length() == (int(name[1:]) if name[0] == "F" else {"P3": 505, "P4": 993}[name])
    assert field.value_range == (0, p - 1)
    assert field.word_dtype == (np.uint32 if r < 2**32 else np.uint64)
    most = ((p - 1) & -(p - 1)).bit_length() - 1
    for length in (1, 2, 8, k, 2 * k, *((4 * k, 2 ** (most - 1)) if field.bits < 2000 else ())):
        w = field.root_of_unity(length)
        assert field.roots(length) == (w,)
        assert length == 1 or gmpy2.powmod(w, length // 2, p) == p - 1
        assert length % (2 * k) or gmpy2.powmod(w, length // (2 * k), p) == r
        assert w**2 % p == field.root_of_unity(length // 2) if length > 1 else w == 1
    if factors_of_radix(r) != (2,):
        odd = factors_of_radix(r)[1]
        for length in (odd, odd * 4 * k):
            w = field.root_of_unity(length)
            assert gmpy2.powmod(w, length, p) == 1
            assert all(gmpy2.powmod(w, length // q, p) != 1 for q in {2, odd} if length % q == 0)
            assert length % (2 * k) or gmpy2.powmod(w, length // (2 * k), p) == r
    for length, message in ((0, "at least 1"), (-4, "at least 1"), (2 ** (most + 1), "does not divide")):
        with pytest.raises(ValueError, match=message):
            field.roots(length)


def test_all_sparse_radices_are_proved_or_refused() -> None:
    """Primes by gmpy2 are proved to be primes, for every radix and up to 32 digits."""
    found = 0
    for a in range(8, 64):
        for radix in {2**a + sign * 2**b for b in range(1, a) for sign in (1, -1)}:
            if radix >= 2**8:
                for digits in (4, 8, 16):
                    is_prime = is_fermat_prime(radix, digits)
                    assert is_prime == gmpy2.is_prime(gmpy2.mpz(radix) ** digits + 1)
                    found += is_prime
    assert found > 300


def test_what_makes_no_field() -> None:
    for radix, digits, message in (
        (2**63 + 2**34, 16, r"^9223372054034644992\*\*16 \+ 1 is not a prime, so it makes no field"),
        (2**28 + 2**22 + 2, 16, r"2\*\*a \+ 2\*\*b or 2\*\*a - 2\*\*b"),
        (2**28 + 2**22, 12, "digits"),
        (2**28 + 2**22, 256, "digits"),
        (2**28 + 2**22, 2, "digits"),
        (2**64, 4, "radix"),
        (4, 8, "radix"),
        (-(2**28), 8, "radix"),
    ):
        with pytest.raises(ValueError, match=message):
            rd.FermatField(radix, digits)
    with pytest.raises(TypeError, match="radix must be an integer"):
        rd.FermatField(2.0**28, 16)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"name must be one of F233, .*, P4, got 'F1'"):
        rd.FermatField.named("F1")


def test_fields_are_values() -> None:
    fields = [rd.FermatField.named(name) for name in NAMES]
    assert len({*fields}) == len({tokenize(f) for f in fields}) == len(fields)
    for field in fields:
        again = pickle.loads(pickle.dumps(field))
        assert again == field == rd.FermatField(field.radix, field.digits)
        assert hash(again) == hash(field)
        assert again.same_numbers(field)
        assert tokenize(again) == tokenize(field)
    assert repr(fields[2]) == "FermatField((2**28 + 2**22)**16 + 1)"
    x = rd.from_ints([1], fields[2])
    assert "(2**28 + 2**22)**16 + 1" in repr(x)
    assert "<td>449</td>" in x._repr_html_()


# ---- arrays -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_arithmetic_of_all_fields(name: str, rng: np.random.Generator, on_each_processor: Processor) -> None:
    field = rd.FermatField.named(name)
    p, xp = field.modulus, on_each_processor.xp
    a = numbers(field, rng)
    x = rd.FieldArray(xp.asarray(fermat.encode(a, field.radix, field.digits)), field)
    for b in (a, a[::-1], others(field, rng)):
        y = rd.FieldArray(xp.asarray(fermat.encode(b, field.radix, field.digits)), field)
        for function in (operator.add, operator.sub, operator.mul):
            same(function(x, y), [function(v, w) for v, w in zip(a, b, strict=True)])
        assert host(x == y).tolist() == [v == w for v, w in zip(a, b, strict=True)]
    assert x.to_ints().tolist() == a
    same(rd.from_ints(x.to_ints(), field), a)
    same(-x, [-v for v in a])
    same(x**-1 if 0 not in a else x[1:] ** -1, [pow(v, -1, p) for v in a if v])
    same(x**3, [v**3 for v in a])
    for exponent in (0, 1, field.digits - 1, field.digits, 2 * field.digits - 1, -1, 10**30 + 1):
        same(x.multiply_by_root(exponent), [v * pow(field.radix, exponent, p) for v in a])
    assert x.sum() == sum(a) % p
    assert x[1:].prod() == math.prod(a[1:]) % p


@pytest.mark.parametrize("name", FEW_NAMES)
@pytest.mark.parametrize("chunks", [CHUNKS[0], CHUNKS[-1], *slow(*CHUNKS[1:-1])])
def test_operators(name: str, chunks: Any, rng: np.random.Generator) -> None:
    field = rd.FermatField.named(name)
    a, b = numbers(field, rng), others(field, rng)
    x, y = (rd.from_ints(v, field, chunks=chunks) for v in (a, b))
    for function in (operator.add, operator.sub, operator.mul):
        for integer in (0, 1, -1, field.radix, HUGE, -HUGE, np.int8(-3), np.uint64(2**64 - 1)):
            same(function(x, integer), [function(v, int(integer)) for v in a])
            same(function(integer, x), [function(int(integer), v) for v in a])
        expected = [function(v, w) for v, w in zip(a, b, strict=True)]
        for found in (function(x, b), function(a, y), function(x, [w - HUGE * field.modulus for w in b])):
            same(found, expected)
    same(rd.fma(x, y, 7), [v * w + 7 for v, w in zip(a, b, strict=True)])
    same(rd.mulsub(x, y, y, 3), [v * w - 3 * w for v, w in zip(a, b, strict=True)])
    same(x[:, None] * y, np.multiply.outer(objects(a), objects(b)))
    same(x * y.sum(), [v * sum(b) for v in a])  # a lazy integer of a Dask array
    np.testing.assert_array_equal(host(x != b), np.array(a) != np.array(b))
    same(rd.where(x == y, x, -1), np.where(objects(a) == objects(b), objects(a), -1))
    assert rd.count_nonzero(x) == sum(map(bool, a))
    assert bool(x.any())
    assert not bool(x.all())
    assert HUGE not in x
    assert field.modulus - 1 in x


@pytest.mark.parametrize("name", FEW_NAMES)
@pytest.mark.parametrize("chunks", [CHUNKS[0], CHUNKS[-1], *slow(*CHUNKS[1:-1])])
def test_division_inverses_and_powers(name: str, chunks: Any, rng: np.random.Generator) -> None:
    field = rd.FermatField.named(name)
    p = field.modulus
    a, b = ([v or 5 for v in make(field, rng)] for make in (numbers, others))
    x, y = (rd.from_ints(v, field, chunks=chunks) for v in (a, b))
    for found in (x.inverse(), rd.inverse(x), 1 / x, x**-1):
        same(found, [pow(v, -1, p) for v in a])
    same(x / y, [v * pow(w, -1, p) for v, w in zip(a, b, strict=True)])
    same(x / 7, [v * pow(7, -1, p) for v in a])
    same(x / -HUGE, [v * pow(-HUGE, -1, p) for v in a])
    same(x / y.sum(), [v * pow(sum(b), -1, p) for v in a])
    z = rd.from_ints([*a, 0], field, chunks=None if chunks is None else 4)
    with pytest.raises(
        ZeroDivisionError, match=f"the element at flat index {len(a)} is 0, so it has no inverse"
    ):
        host((1 / z).words)
    with pytest.raises(ZeroDivisionError, match="division by 0, which is 0 modulo"):
        x / p.__mul__(0)
    for k in (0, 1, 2, 5, p - 1, p, 2 * p + 3, -2, -p):
        same(x**k, [pow(v, k, p) for v in a])
    same(z**0, [1] * (len(a) + 1))
    for k in (1, p - 1, p, 2 * (p - 1)):
        same(z**k, [*(pow(v, k, p) for v in a), 0])
    each = [0, 1, -1, 2**63 - 1, -(2**63), 3] * 5
    same(x ** np.array(each), [pow(v, k, p) for v, k in zip(a, each, strict=True)])
    same(rd.power(x, np.uint64(2**64 - 1)), [pow(v, 2**64 - 1, p) for v in a])


@pytest.mark.parametrize("count", [0, 1, 31, 32, 33, 64, 65, 101, 1000])
def test_inverses_of_many_take_one(
    count: int, rng: np.random.Generator, on_each_processor: Processor
) -> None:
    field = rd.FermatField.named("F233")
    a = [int.from_bytes(rng.bytes(29), "little") % (field.modulus - 1) + 1 for _ in range(count)]
    words = on_each_processor.xp.asarray(fermat.encode(a, field.radix, field.digits))
    x = rd.FieldArray(words, field)
    same(x.inverse(), [pow(v, -1, field.modulus) for v in a])
    for index in {0, count // 2, count - 1} if count else ():
        zero = words.copy()
        zero[:, index] = 0
        with pytest.raises(ZeroDivisionError, match=f"flat index {index} "):
            rd.FieldArray(zero, field).inverse()


@pytest.mark.parametrize("name", FEW_NAMES)
@pytest.mark.parametrize("chunks", [None, -1, (2, 3), ((1, 3), (5, 2))])
def test_sums_products_and_matrices(name: str, chunks: Any, rng: np.random.Generator) -> None:
    field = rd.FermatField.named(name)
    p = field.modulus
    a, b = (objects(make(field, rng, 28), shape) for make, shape in ((numbers, (4, 7)), (others, (7, 4))))
    x, y = (
        rd.from_ints(v, field, chunks=chunks if v is a else None if chunks is None else 3) for v in (a, b)
    )
    for function, exact in (("sum", np.sum), ("prod", np.prod)):
        assert int(getattr(x, function)()) == exact(a) % p
        for axis in (0, 1, (0, 1)):
            same(getattr(x, function)(axis, keepdims=True), exact(a, axis=axis, keepdims=True))
        assert int(getattr(x[:0], function)()) == exact(a[:0])
        same(getattr(x[:, :0], function)(1), exact(a[:, :0], axis=1))
    assert int(x.trace()) == np.trace(a) % p
    same(x @ y, a.dot(b))
    same(x @ y[:, 0], a.dot(b[:, 0]))
    assert int(x[0] @ y[:, 1]) == a[0].dot(b[:, 1]) % p
    same(rd.matmul(x[None], y[None, :, :2]), a.dot(b[:, :2])[None])
    same(x[:, :0] @ y[:0], a[:, :0].dot(b[:0]))
    same(x.T, a.T)
    same(rd.concatenate([x, x]).reshape(-1), np.concatenate([a, a]).reshape(-1))
    same(x[:, ::-1][1:], a[:, ::-1][1:])
    same(rd.diff(x, axis=1), np.diff(a, axis=1))
    assert x[1, 2] == a[1, 2]


def test_long_dot_products_are_cut(rng: np.random.Generator) -> None:
    field = rd.FermatField.named("F233")
    x = rd.random(field, 40_000, seed=int(rng.integers(2**32)), chunks=15_000)
    a = x.to_ints().tolist()
    assert int(x @ x) == sum(v * v for v in a) % field.modulus
    assert x.compute() @ x.compute() == sum(v * v for v in a) % field.modulus


def convolved(a: list[int], b: list[int], mode: str, p: int) -> list[int]:
    """By FLINT's product of polynomials."""
    full = (flint.fmpz_poly(a) * flint.fmpz_poly(b)).coeffs()
    full = [int(v) for v in full] + [0] * (len(a) + len(b) - 1 - len(full))
    short, longer = sorted((len(a), len(b)))
    if mode == "same":
        return full[(short - 1) // 2 : (short - 1) // 2 + longer]
    if mode == "valid":
        return full[short - 1 : longer]
    if mode == "full":
        return full
    sign = 1 if mode == "cyclic" else -1
    return [v + sign * w for v, w in zip(full[:longer], [*full[longer:], 0], strict=True)]


@pytest.mark.parametrize("name", FEW_NAMES)
@pytest.mark.parametrize("lengths", [(1, 1), (17, 17), (20, 7), (1, 9), *slow((16, 16), (3, 29))])
def test_convolutions(name: str, lengths: tuple[int, int], rng: np.random.Generator) -> None:
    first, second = lengths
    field = rd.FermatField.named(name)
    a, b = numbers(field, rng, first), others(field, rng, second)
    for chunks in (None, 6):
        x, y = (rd.from_ints(v, field, chunks=chunks) for v in (a, b))
        modes = ("full", "same", "valid", *(("cyclic", "negacyclic") if first == second else ()))
        for mode in modes:
            same(rd.convolve(x, y, mode), convolved(a, b, mode, field.modulus))
    rows = objects([*a, *a[::-1]], (2, first))
    z = rd.from_ints(rows, field, chunks=(1, 5))
    same(rd.convolve(z, b), [convolved(row, b, "full", field.modulus) for row in rows.tolist()])
    same(
        rd.convolve(z.T, y[:, None], axis=0).T,
        [convolved(r, b, "full", field.modulus) for r in rows.tolist()],
    )


# ---- ways in and out --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FEW_NAMES)
@pytest.mark.parametrize("chunks", [None, 5])
def test_ways_in_and_out(name: str, chunks: Any, rng: np.random.Generator) -> None:
    field = rd.FermatField.named(name)
    p = field.modulus
    a = [*numbers(field, rng), -1, -HUGE, HUGE, p, p + 1]
    x = rd.from_ints(a, field, chunks=chunks)
    same(x, a)
    for given in (objects(a), [hex(v) if v >= 0 else v for v in a], tuple(a)):
        same(rd.from_ints(given, field, chunks=chunks), a)
    for dtype in (np.int8, np.uint8, np.int64, np.uint64):
        ends = np.iinfo(dtype)
        machine = np.array([ends.min, ends.max, 0, 1, ends.max - 1], dtype=dtype)
        same(rd.from_ints(machine, field, chunks=chunks), machine.tolist())
    same(rd.from_ints(da.from_array(objects(a), chunks=7), field), a)
    least = [v % p for v in a]
    assert x.lift().to_ints().tolist() == least
    assert x.lift(signed=True).to_ints().tolist() == [(v + p // 2) % p - p // 2 for v in a]
    with rd.errstate(overflow="flag"):  # which elements do not know
        assert x.lift().to_ints().tolist() == least
        same(rd.diff(x, 2), np.diff(objects(a), 2))
    signed = rd.from_ints(a, chunks=chunks)
    for y in (signed, rd.IntervalRNSArray.from_rns(signed), x.lift(), x.lift(True)):
        same(rd.FieldArray.from_rns(y, field), a)
    same(
        rd.from_limbs(np.array([[5, 6], [2**64 - 1, 2**64 - 1]], np.uint64), field),
        [5 + 6 * 2**64, 2**128 - 1],
    )
    same(rd.from_bytes(b"\xff" * 40, 40, moduli=field, signed=True), [-1])
    assert list(x) == least
    assert x.astype(bool).all() == all(least)
    residues = x.to_residues([2**61 - 1, 2**31 - 1], overflow="wrap")
    np.testing.assert_array_equal(host(residues), [[v % m for v in least] for m in (2**61 - 1, 2**31 - 1)])
    y = rd.random(field, 50, seed=3, chunks=20)
    assert y.to_ints().tolist() == rd.random(field, 50, seed=3, chunks=20).to_ints().tolist()
    same(rd.zeros_like(x), [0] * len(a))
    same(rd.full_like(x, -1), [-1] * len(a))


@pytest.mark.parametrize("name", FEW_NAMES)
def test_digits_are_checked(name: str, on_each_processor: Processor) -> None:
    field = rd.FermatField.named(name)
    r, k, xp = field.radix, field.digits, on_each_processor.xp
    right = fermat.encode([3, -1, 0, r**k - 1, 4, 5], r, k)
    x = rd.FieldArray.from_words(xp.asarray(right), field)
    same(x, [3, -1, 0, r**k - 1, 4, 5])
    for row, column, digit, message in (
        (
            1,
            4,
            r,
            rf"the element at flat index 4 has the digit {r} \(row 1\), which is not below the radix {r}",
        ),
        (k - 1, 5, r + 1, rf"flat index 5 has the digit {r + 1}"),
        (k - 1, 4, r, r"flat index 4 has the radix .* as its last digit \(row .*\), as -1 has, but"),
        (0, 1, 1, r"flat index 1 has the radix"),
    ):
        wrong = right.copy()
        wrong[row, column] = digit
        with pytest.raises(ValueError, match=message):
            rd.FieldArray.from_words(xp.asarray(wrong), field)
        lazy = rd.FieldArray.from_words(da.from_array(xp.asarray(wrong), chunks=(3, 2), asarray=False), field)
        with pytest.raises(ValueError, match=message):
            lazy.compute()
    mine = xp.asarray(right)
    y = rd.FieldArray.from_words(mine, field)
    mine[...] = 0
    same(y, [3, -1, 0, r**k - 1, 4, 5])
    other = np.uint64 if field.word_dtype == np.uint32 else np.uint32
    with pytest.raises(TypeError, match=f"must have dtype {field.word_dtype}"):
        rd.FieldArray.from_words(right.astype(other), field)
    for wrong in (right[1:], right[:, 0]):
        with pytest.raises(ValueError, match=f"digits of .* must have {k} rows"):
            rd.FieldArray.from_words(wrong, field)
    with pytest.raises(TypeError, match="from_words takes a FermatField, got PrimeFields"):
        rd.FieldArray.from_words(right, rd.PrimeFields([7]))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="have digits: FieldArray"):
        rd.from_residues(right, field)  # type: ignore[arg-type]


def test_what_is_refused(rng: np.random.Generator) -> None:
    field = rd.FermatField.named("F449")
    x = rd.from_ints(numbers(field, rng), field, chunks=None)
    attempts: list[Callable[[], Any]] = [
        lambda: x < 1,
        x.max,
        x.sort,
        lambda: rd.maximum(x, 1),
        lambda: rd.gcd(x, 1),
        lambda: rd.bit_length(x),
        lambda: rd.mixed_radix_digits(x),
        lambda: rd.unique(x),
    ]
    for attempt in attempts:
        with pytest.raises(TypeError, match="elements of fields have no order, sign or size"):
            attempt()
    with pytest.raises(TypeError, match="overflow= is not taken"):
        rd.add(x, 1, overflow="wrap")
    with pytest.raises(TypeError, match=r"do not mix; FieldArray.from_rns\(x, field\) and lift\(\) convert"):
        x + rd.from_ints([1] * 30)
    with pytest.raises(
        TypeError, match=r"elements of FermatField.* and elements of PrimeFields.* do not mix"
    ):
        x + rd.from_ints([1] * 30, rd.PrimeFields([7]))
    with pytest.raises(
        ValueError, match=r"different fields.*; FieldArray.from_rns\(x.lift\(\), field\) converts"
    ):
        x + rd.from_ints([1] * 30, rd.FermatField.named("F233"))
    with pytest.raises(TypeError, match="multiply_by_root takes elements of a FermatField"):
        rd.from_ints([1], rd.PrimeFields([7])).multiply_by_root(1)
    with pytest.raises(AttributeError, match="have no residues but digits"):
        x.residues  # noqa: B018
    for function in (rd.linalg.det, rd.linalg.lu, rd.linalg.inv, rd.linalg.rank):
        with pytest.raises(TypeError, match="takes integers or elements of prime fields, got"):
            function(x[:25].reshape(5, 5))
    with pytest.raises(TypeError, match="integer"):
        x.multiply_by_root(1.5)  # type: ignore[arg-type]


# ---- stores -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["F256", "P4"])
@pytest.mark.parametrize("codec", [None, "zstd"])
def test_stores(name: str, codec: str | None, tmp_path: Path, rng: np.random.Generator) -> None:
    field = rd.FermatField.named(name)
    a = numbers(field, rng)
    path = tmp_path / "x"
    x = rd.from_ints(a, field, chunks=8)
    if codec:
        from zarr.codecs import ZstdCodec

        from rnsdask import store

        writer = store.create(path, field, (30,), chunks=8, codecs=[ZstdCodec()])
        for index in writer.indices():
            writer.write_chunk(index, x.blocks[index].compute().words)
        writer.finish()
    else:
        x.to_zarr(path)
        same(rd.open_zarr(path, part=3), a)
    again = rd.open_zarr(path)
    assert isinstance(again, rd.FieldArray)
    assert again.system == field
    assert again.words.dtype == field.word_dtype
    same(again, a)
    assert "30 integers, whole and valid" in succeed("verify", str(path))
    x.to_zarr(path, append_dim=0)
    same(rd.open_zarr(path), a + a)
    with pytest.raises(ValueError, match="nothing is appended"):
        rd.from_ints(a, rd.FermatField.named("F233")).to_zarr(path, append_dim=0)
    described = json.loads(succeed("info", str(path), "--json"))
    assert (described["radix"], described["digits"], described["bits"]) == (
        str(field.radix),
        field.digits,
        field.bits,
    )
    assert "elements of a Fermat field" in succeed("info", str(path))
    assert "it holds elements of FermatField" in fail("max", str(path))


@pytest.mark.parametrize("name", FEW_NAMES)
def test_stores_of_wrong_digits(name: str, tmp_path: Path) -> None:
    from rnsdask import store

    field = rd.FermatField.named(name)
    words = fermat.encode([1, 2, -1, 4], field.radix, field.digits)
    writer = store.create(tmp_path / "x", field, (4,), chunks=4)
    wrong = words.copy()
    wrong[0, 2] = 1
    with pytest.raises(ValueError, match="element 2 has the radix"):
        writer.write_chunk((0,), wrong)
    writer.write_chunk((0,), words)
    info = writer.finish()
    file = info.chunk_file((0,))
    content = file.read_bytes()
    file.write_bytes(_with_checksum(wrong.tobytes(), content))
    assert "element 2 has the radix" in call("verify", tmp_path / "x").stdout
    with pytest.raises(rd.CorruptChunkError, match="element 2 has the radix"):
        rd.open_zarr(tmp_path / "x").compute()


def _with_checksum(words: bytes, content: bytes) -> bytes:
    import google_crc32c

    padding = content[len(words) : -4]
    return words + padding + google_crc32c.value(words + padding).to_bytes(4, "little")


def test_what_a_store_says_of_its_field_is_checked(tmp_path: Path) -> None:
    field = rd.FermatField.named("F449")
    rd.from_ints([1, 2, 3], field).to_zarr(tmp_path / "x")
    file = tmp_path / "x" / "zarr.json"
    document = json.loads(file.read_text())
    attribute = document["attributes"]["rnsdask"]
    assert (attribute["format"], attribute["system"], attribute["digits"]) == (2, "fermat-field", 16)
    for changes, message in (
        ({"radix": "0x10400002"}, r"2\*\*a \+ 2\*\*b"),
        ({"radix": 272629760}, "radix must be a hexadecimal string"),
        ({"radix": hex(2**28 + 2**21)}, "is not a prime"),
        ({"digits": 8}, "is not a prime|rows"),
        ({"digits": "16"}, "digits must be an integer"),
        ({"radix": hex(2**29 + 2**25), "digits": 8}, "rows"),
        ({"system": "prime-fields"}, "has no moduli, signed, bound"),
        ({"complete": 1}, "complete must be true or false"),
        ({"format": 1}, "has no moduli"),
    ):
        document["attributes"]["rnsdask"] = {**attribute, **changes}
        file.write_text(json.dumps(document))
        with pytest.raises(rd.StoreError, match=message):
            rd.open_zarr(tmp_path / "x")
    del attribute["radix"]
    document["attributes"]["rnsdask"] = attribute
    file.write_text(json.dumps(document))
    with pytest.raises(rd.StoreError, match="has no radix"):
        rd.open_zarr(tmp_path / "x")


# ---- layouts ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.uint32, np.uint64])
@pytest.mark.parametrize(
    "shape", [(5, 4), (1000, 16), (33, 128), (3, 70, 8), (0, 4), (1, 1), (7, 2, 1), (2, 3000)]
)
def test_orders_of_words(
    dtype: Any, shape: tuple[int, ...], rng: np.random.Generator, on_each_processor: Processor
) -> None:
    numbers_first = rng.integers(0, 2**32, size=shape, dtype=np.uint64).astype(dtype)
    words_first = np.moveaxis(numbers_first, -1, 0)
    xp = on_each_processor.xp
    for given in (numbers_first, np.asfortranarray(numbers_first), numbers_first[::2]):
        found = rd.to_interleaved(xp.asarray(given))
        assert found.flags.c_contiguous
        np.testing.assert_array_equal(host(found), np.moveaxis(given, -1, 0))
        back = rd.from_interleaved(found)
        assert back.flags.c_contiguous
        np.testing.assert_array_equal(host(back), given)
    if numbers_first.size:
        lazy = rd.to_interleaved(da.from_array(xp.asarray(numbers_first), chunks=3, asarray=False))
        assert lazy.numblocks[0] == 1
        assert lazy.dtype == dtype
        np.testing.assert_array_equal(host(lazy), words_first)
        np.testing.assert_array_equal(host(rd.from_interleaved(lazy)), numbers_first)


def test_orders_of_what_cannot_be() -> None:
    for wrong, error in (
        ([[1]], TypeError),
        (np.zeros((2, 2)), TypeError),
        (np.zeros((2, 2), np.int32), TypeError),
        (np.zeros(2, np.uint32), ValueError),
    ):
        for function in (rd.to_interleaved, rd.from_interleaved):
            with pytest.raises(error, match="interleaved takes an"):
                function(wrong)


def test_lazy_arrays_compute_nothing_before() -> None:
    field = rd.FermatField.named("P3")
    x = rd.from_ints([1, 2, 3, 4], field, chunks=2)
    with dask.config.set(scheduler=lambda *_, **__: pytest.fail("something was computed")):
        lazy = [x * [1, 2, 3, 4], x / x, x**-1, x.multiply_by_root(1), x.sum(), x @ x, x == x, x.lift(True)]
    assert [type(v).__name__ for v in lazy[:4]] == ["FieldArray"] * 4
    assert {v.words.dtype for v in lazy[:4]} == {field.word_dtype}
    same(lazy[0], [1, 4, 9, 16])


def test_linear_algebra_of_a_fermat_field_is_what_the_documents_say() -> None:
    """Each function of rd.linalg: powers of matrices with exponents from 0 on; the others are a TypeError."""
    field = rd.FermatField.named("F233")
    values = [[1, 2], [-3, 5]]
    for x in (rd.from_ints(values, field), rd.from_ints(values, field).compute()):
        for name in set(rd.linalg.__all__) - {"read"}:
            function = getattr(rd.linalg, name)
            if name == "matrix_power":
                third = np.linalg.matrix_power(np.array(values, dtype=object), 3) % field.modulus
                assert (np.asarray(function(x, 3).to_ints()) == third).all()
                assert function(x, 0).to_ints().tolist() == [[1, 0], [0, 1]]
                function, arguments = partial(function, k=-1), (x,)
            else:
                arguments = (x, x) if name == "solve" else (x,)
            with pytest.raises(TypeError, match="takes integers or elements of prime fields, got"):
                function(*arguments)
