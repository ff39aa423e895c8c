"""Rescaling, base extension and centred integers of elements of prime fields, against Python's integers."""

import math
import random
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
import zarr
from conftest import Processor

import rnsdask as rd

SMALL = [3, 2, 5, 7, 11, 65537, 2**31 - 1, 2**32 - 5]
WIDE = [2**32 + 15, 2**50 - 27, 2**59 - 55, 2**60 - 93, 2**61 - 1, 2**63 - 25, 2**64 - 2**32 + 1, 2**64 - 59]
FERMAT = rd.FermatField(2**28 + 2**22, 16)
OTHERS = [13, 2**31 - 19, 2**62 - 57]

CUTS = {
    (False, None): lambda m: m,
    (True, None): lambda m: (m + 1) // 2,
    (True, "up"): lambda m: m // 2 + 1,
    (True, "down"): lambda m: m // 2,
}
"""The least integer below M that is read as negative, by the arguments `signed` and `half`."""


def drawn_primes(draw: random.Random, count: int) -> list[int]:
    return draw.sample(draw.choice([SMALL, WIDE, SMALL + WIDE]), count)


def edges(draw: random.Random, m: int, d: int) -> list[int]:
    """Integers below m: the ends, the halves, those next to multiples of d and to halves between, and any."""
    found = [0, 1, m - 1, m - 2, *(m // 2 + k for k in (-1, 0, 1))]
    for _ in range(4):
        multiple = draw.randrange(m) // d * d
        found += [multiple + k for k in (-1, 0, 1, d // 2 - 1, d // 2, d // 2 + 1, d - 1)]
    return [x % m for x in [*found, *(draw.randrange(m) for _ in range(12))]]


def placed(processor: Processor, values: list[int], fields: rd.PrimeFields) -> rd.FieldArray:
    words = np.array([[x % p for x in values] for p in fields.primes], dtype=fields.word_dtype)
    return rd.FieldArray(processor.xp.asarray(words), fields)


@pytest.mark.parametrize("seed", range(12))
def test_rescaling_rounds_exactly(seed: int, on_each_processor: Processor) -> None:
    draw = random.Random(seed)
    primes = drawn_primes(draw, draw.randrange(2, 7))
    fields, m = rd.PrimeFields(primes), math.prod(primes)
    for dropped in range(1, len(primes)):
        d, kept = math.prod(primes[-dropped:]), math.prod(primes[:-dropped])
        xs = edges(draw, m, d)
        f = placed(on_each_processor, xs, fields)
        for rounding, shift in (("round", d // 2), ("floor", 0)):
            expected = [(x + shift) // d % kept for x in xs]
            centred = [(x - m + shift) // d % kept for x in xs]
            assert expected == centred  # whichever integer an element is read as
            for given in (f, f.rechunk(7), f[3:].reshape(2, 2, -1)):
                found = rd.rescale(given, dropped, rounding)
                assert found.system == rd.PrimeFields(primes[:-dropped])
                assert found.shape == given.shape
                assert found.words.dtype == found.system.word_dtype
                there = found.compute()
                assert there.words.dtype == found.words.dtype
                assert there.reshape(-1).tolist() == expected[-there.size :]


def test_an_exact_half_is_rounded_up() -> None:
    f = rd.from_ints([3, 9, 15, 21], rd.PrimeFields([2**61 - 1, 3, 2]))
    assert rd.rescale(f, 2).tolist() == [1, 2, 3, 4]
    assert rd.rescale(f, 2, "floor").tolist() == [0, 1, 2, 3]


def test_roundings_one_after_another_are_one_of_the_product(rng: np.random.Generator) -> None:
    """Lattigo rounds after each of several primes: for odd ones that is the same."""
    f = rd.random(rd.PrimeFields([2**61 - 1, 5, 7, 3]), 1000, seed=int(rng.integers(2**32)))
    assert (rd.rescale(f, 3) == rd.rescale(rd.rescale(rd.rescale(f)))).all()
    every = rd.from_ints(range(105 * 3), f.system)
    assert (rd.rescale(every, 3) == rd.rescale(rd.rescale(every, 2))).all()


@pytest.mark.parametrize("seed", range(12))
def test_other_primes_have_the_same_integers(seed: int, on_each_processor: Processor) -> None:
    draw = random.Random(seed)
    primes = drawn_primes(draw, draw.randrange(1, 7))
    m = math.prod(primes)
    xs = edges(draw, m, m)
    f = placed(on_each_processor, xs, rd.PrimeFields(primes))
    for (signed, half), cut in CUTS.items():
        integers = [x if x < cut(m) else x - m for x in xs]
        for given in (f, f.rechunk(5)):
            lifted = given.lift(signed, half)
            assert lifted.compute().tolist() == integers
            assert lifted.bound is None or lifted.bound >= max(map(abs, integers))
            for others in (OTHERS, [*primes, *OTHERS], primes[:1], [OTHERS[0], primes[-1]]):
                found = rd.base_extend(given, others, signed, half)
                assert found.system == rd.PrimeFields(others)
                there = found.compute()
                assert there.words.dtype == found.words.dtype == found.system.word_dtype
                assert there.tolist() == [x % math.prod(others) for x in integers]


@pytest.mark.parametrize("count", [1, 3, 12, 13])
def test_many_elements_under_few_and_many_primes(count: int, on_each_processor: Processor) -> None:
    """Several parts of an array, by digits and by limbs, with integers at the ends among them."""
    primes = [*WIDE, *SMALL][:count]
    fields, m, draw = rd.PrimeFields(primes), math.prod(primes), random.Random(count)
    xs = [0, 1, m - 1, m // 2, *(draw.randrange(m) for _ in range(2**15 // count + 9))]
    found = rd.base_extend(placed(on_each_processor, xs, fields), [*OTHERS, primes[0]])
    for row, q in zip(on_each_processor.to_numpy(found.words), found.system.primes, strict=True):
        assert row.tolist() == [x % q for x in xs]


@pytest.mark.parametrize("primes", [[97, 193], [2, 97], [2**61 - 1, 2**60 - 93], [2, 2**61 - 1]])
def test_halves_of_the_product(primes: list[int]) -> None:
    m = math.prod(primes)
    f = rd.from_ints([m // 2, m // 2 + 1, m // 2 - 1], rd.PrimeFields(primes))
    low, high = m // 2, m // 2 - m
    assert f.lift(signed=True, half="up").tolist() == [low, high + 1, low - 1]
    assert f.lift(signed=True, half="down").tolist() == [high, high + 1, low - 1]
    assert f.lift(signed=True).tolist() == [high if m % 2 == 0 else low, high + 1, low - 1]
    if m % 2 and m < 2**32:
        assert f.lift(signed=True, half="up").residues is f.residues or np.shares_memory(
            f.lift(signed=True, half="up").residues, f.residues
        )


def test_noise_is_the_greatest_magnitude_of_centred_integers() -> None:
    primes = [2**50 - 27, 2**60 - 93]
    f = rd.from_ints([5, -(10**25), 10**24], rd.PrimeFields(primes), chunks=2)
    assert abs(f.lift(signed=True)).max().compute() == 10**25


def test_digits_of_a_gadget() -> None:
    """The digits of hybrid key switching, and that they make the number again."""
    primes = [2**59 - 55, 2**60 - 93, 2**61 - 1, 2**63 - 25]
    m, groups = math.prod(primes), [primes[:2], primes[2:]]
    f = rd.from_ints([0, 1, -1, 10**30, m // 2], rd.PrimeFields(primes))
    digits = [rd.base_extend(rd.base_extend(f, group), primes) for group in groups]
    whole: Any = 0
    for digit, group in zip(digits, groups, strict=True):
        q = math.prod(group)
        assert digit.tolist() == [x % q for x in f.tolist()]
        whole = digit * (m // q * pow(m // q, -1, q)) + whole
    assert (whole == f).all()


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda f: rd.rescale(f, 3), ValueError, "primes must be from 1 to 2, so that some of the 3 primes"),
        (lambda f: rd.rescale(f, 0), ValueError, "are left, got 0"),
        (lambda f: rd.rescale(f, 1.5), TypeError, "primes must be an integer"),
        (lambda f: rd.rescale(f, 1, "up"), ValueError, "rounding must be 'round' or 'floor', got 'up'"),
        (lambda f: rd.rescale(f.lift()), TypeError, "rescale takes a FieldArray, got RNSArray"),
        (lambda f: rd.rescale(f.tolist()), TypeError, "rescale takes a FieldArray, got list"),
        (
            lambda f: rd.rescale(rd.from_ints(f.tolist(), FERMAT)),
            TypeError,
            "rescale takes elements of PrimeFields, got FermatField",
        ),
        (lambda f: rd.base_extend(f, [7, 7]), ValueError, "the prime 7 is given more than once"),
        (lambda f: rd.base_extend(f, [9]), ValueError, r"9 \(position 0\) is not a prime"),
        (lambda f: rd.base_extend(f, []), ValueError, "at least one"),
        (lambda f: rd.base_extend(f, [7], signed=1), TypeError, "signed must be a bool"),
        (lambda f: rd.base_extend(f, [7], True, "even"), ValueError, "half must be 'up' or 'down'"),
        (lambda f: f.lift(half="up"), ValueError, "half= is for signed=True"),
    ],
)
def test_wrong_arguments_are_one_clear_line(call: Any, error: type[Exception], text: str) -> None:
    f = rd.from_ints([1, 2, 3], rd.PrimeFields([97, 2**61 - 1, 193]))
    with pytest.raises(error, match=text) as caught:
        call(f)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("primes", [WIDE, SMALL, [65537, 2**61 - 1]], ids=["uint64", "uint32", "mixed"])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("dtype", [np.uint64, np.dtype(">u8"), np.int64])
def test_residues_of_files_come_and_go_unchanged(
    primes: list[int], axis: int, dtype: Any, tmp_path: Path, rng: np.random.Generator
) -> None:
    if dtype == np.int64:
        primes = [p for p in primes if p < 2**63]
    fields = rd.PrimeFields(primes)
    first = np.array([rng.integers(0, p, (6, 10), dtype=np.uint64) for p in primes])
    first[:, 0, 0], first[:, 0, 1] = [p - 1 for p in primes], 0
    given = np.moveaxis(first, 0, axis).astype(dtype, order="C")
    np.save(tmp_path / "residues.npy", given)
    mapped = np.load(tmp_path / "residues.npy", mmap_mode="r")
    stored = zarr.create_array(tmp_path / "a.zarr", data=given.astype(given.dtype.newbyteorder("=")))
    lazy = da.from_array(given, chunks=4)
    arrays = [
        rd.from_residues(given, fields, axis=axis),
        rd.from_residues(mapped, fields, axis=axis),
        rd.from_residues(mapped, fields, axis=axis, chunks=4),
        rd.from_residues(stored, fields, axis=axis),
        rd.from_residues(lazy, fields, axis=axis),
    ]
    for f in arrays:
        assert f.words.dtype == fields.word_dtype
        there = f.compute()
        assert (there.residues == first).all()
        back = f.to_residues(fields.primes, axis=axis, dtype=np.uint64)
        assert back.dtype == np.uint64
        assert (np.asarray(back) == given).all()
        assert (np.asarray(f.to_residues(fields.moduli, axis=axis)) == given).all()
    assert arrays[0].to_ints()[0, 0] == math.prod(primes) - 1
    wrong = given.copy()
    np.moveaxis(wrong, axis, 0)[1, 3, 4] = primes[1]
    with pytest.raises(ValueError, match=rf"residue {primes[1]} of the number at flat index 34 .* \(row 1\)"):
        rd.from_residues(wrong, fields, axis=axis)


@pytest.mark.parametrize("shape", [(0,), (3, 0), (1,)])
def test_few_numbers_or_none(shape: tuple[int, ...]) -> None:
    f = rd.full(shape, 1000, rd.PrimeFields([2**61 - 1, 97, 7]))
    assert rd.rescale(f).to_ints().tolist() == np.full(shape, 143, dtype=object).tolist()
    assert rd.rescale(f, 2).shape == rd.base_extend(f, [5, 2**32 + 15], signed=True).shape == shape
