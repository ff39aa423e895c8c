"""Comparison, sign, maximum, minimum and choice, against Python integers."""

from itertools import pairwise, permutations
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
from conftest import Processor
from hypothesis import given
from hypothesis import strategies as st
from oracles import rns
from sample_arrays import RELATIONS
from strategies import (
    ALL_SETS,
    BOTH_RANGES,
    EXHAUSTIVE_SETS,
    MODULI_SETS,
    SHORT_SETS,
    arrays_of_values,
    bounds_around_prefixes,
    edge_values,
    moduli_sets,
    values_within,
)

import rnsdask as rd
from rnsdask.core.moduli import ModuliSet
from rnsdask.lazy import elementwise
from rnsdask.rns import blocks, compare
from rnsdask.rns import order as order_by_limbs

MODULI = MODULI_SETS["unsorted"]


def encode(processor: Processor, values: list[int], moduli: ModuliSet, signed: bool = False) -> Any:
    return processor.xp.asarray(rns.encode(values, moduli, signed))


def order(a: int, b: int) -> int:
    return (a > b) - (a < b)


def check_pairs(
    processor: Processor,
    moduli: ModuliSet,
    a: list[int],
    b: list[int],
    signed: bool = False,
    bound: int | None = None,
) -> None:
    """Compare a[j] with b[j] for every j, both ways."""
    x, y = (encode(processor, values, moduli, signed) for values in (a, b))
    expected = np.array([order(*pair) for pair in zip(a, b, strict=True)], dtype=np.int8)
    result = compare.compare(x, y, rd.RNS(moduli, signed, bound))
    assert result.dtype == np.int8
    assert type(result) is type(x)
    assert (processor.to_numpy(result) == expected).all()
    assert (processor.to_numpy(compare.compare(y, x, rd.RNS(moduli, signed, bound))) == -expected).all()
    different = processor.to_numpy(compare.differ(x, y, rd.RNS(moduli, signed, bound)))
    assert (different == (expected != 0)).all()


def check_scalar(processor: Processor, moduli: ModuliSet, a: list[int], value: int, signed: bool) -> None:
    x, y = encode(processor, a, moduli, signed), rns.encode([value], moduli, signed)
    expected = np.array([order(v, value) for v in a], dtype=np.int8)
    assert (processor.to_numpy(compare.compare(x, y, rd.RNS(moduli, signed))) == expected).all()
    assert (processor.to_numpy(compare.compare(y, x, rd.RNS(moduli, signed))) == -expected).all()
    assert (processor.to_numpy(compare.differ(y, x, rd.RNS(moduli, signed))) == (expected != 0)).all()


def edge_pairs(moduli: ModuliSet, signed: bool, rng: np.random.Generator) -> tuple[list[int], list[int]]:
    """Neighbours among the edge values, values that differ by little, and pairs picked at random."""
    values = edge_values(moduli, signed)
    lowest, highest = moduli.value_range(signed)
    count = max(60, 24_000 // len(moduli) // 3)
    picked = [values[i] for i in rng.integers(0, len(values), count)]
    others = [values[i] for i in rng.integers(0, len(values), count)]
    close = [
        min(max(v + int(d), lowest), highest) for v, d in zip(picked, rng.integers(-2, 3, count), strict=True)
    ]
    neighbours = values[:count]
    a = picked + picked + neighbours[:-1]
    return a, others + close + neighbours[1:]


# ---- chunks -----------------------------------------------------------------------------------------------


@ALL_SETS
@BOTH_RANGES
def test_edge_values(
    on_each_processor: Processor, moduli: ModuliSet, signed: bool, rng: np.random.Generator
) -> None:
    check_pairs(on_each_processor, moduli, *edge_pairs(moduli, signed, rng), signed)


@pytest.mark.parametrize("moduli", EXHAUSTIVE_SETS.values(), ids=EXHAUSTIVE_SETS)
@BOTH_RANGES
def test_every_pair_of_a_small_range(on_each_processor: Processor, moduli: ModuliSet, signed: bool) -> None:
    lowest, highest = moduli.value_range(signed)
    values = range(lowest, highest + 1, max(1, moduli.product // 200))
    pairs = [(a, b) for a in values for b in values]
    check_pairs(on_each_processor, moduli, [a for a, _ in pairs], [b for _, b in pairs], signed)


@pytest.mark.parametrize("name", ["table2_8", "table2_64", "unsorted"])
@BOTH_RANGES
def test_keys_decide_for_a_number_at_an_end_of_the_range(
    on_each_processor: Processor,
    name: str,
    signed: bool,
    rng: np.random.Generator,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    moduli = MODULI_SETS[name]
    lowest, highest = moduli.value_range(signed)
    values = [lowest + int.from_bytes(rng.bytes(moduli.bits // 8 + 8)) % moduli.product for _ in range(500)]
    # Within some 2**-40 of the range at its ends, keys may say nothing.
    far = moduli.product >> 24
    values = [v for v in values if lowest + far < v < highest - far]
    assert len(values) > 400

    def by_limbs(*_: Any) -> None:
        raise AssertionError("keys decide")

    monkeypatch.setattr(compare, "by_limbs", by_limbs)
    for value in (lowest, lowest + 1, lowest + 12345, highest - 12345, highest - 1, highest):
        check_scalar(on_each_processor, moduli, values, value, signed)


@ALL_SETS
@BOTH_RANGES
def test_one_number_next_to_others_at_an_end_of_the_range(
    on_each_processor: Processor, moduli: ModuliSet, signed: bool
) -> None:
    lowest, highest = moduli.value_range(signed)
    reach = min(moduli.product // 2, 60)
    near = [*range(lowest, lowest + reach), *range(highest - reach, highest + 1)]
    far = [lowest + moduli.product * k // 64 for k in range(64)]
    for value in (lowest, lowest + 1, lowest + reach - 1, highest - reach // 2, highest - 1, highest):
        for values in (
            near + far,
            [value] * 50,
            [min(value + 1, highest)] * 50,
            [max(value - 1, lowest)] * 50,
        ):
            check_scalar(on_each_processor, moduli, values, value, signed)


@pytest.mark.parametrize("dtype", [np.uint32, np.uint64])
@pytest.mark.parametrize(
    ("of_mask", "of_a", "of_b"),
    [
        ((1, 7, 9), (3, 7, 9), (3, 7, 9)),
        ((1, 7, 9), (3, 1, 1), (3, 7, 9)),
        ((1, 7, 9), (3, 7, 1), (3, 1, 1)),
        ((1, 7, 9), (3, 1, 1), (3, 1, 1)),
        ((1, 1, 9), (3, 7, 9), (3, 7, 1)),
        ((1, 1, 1), (3, 7, 9), (3, 7, 9)),
        ((1, 0, 9), (3, 0, 9), (3, 1, 1)),
        ((1,), (3,), (3,)),
        ((1, 100_000), (3, 100_000), (3, 100_000)),
    ],
)
def test_choice(dtype: Any, of_mask: Any, of_a: Any, of_b: Any, rng: np.random.Generator) -> None:
    most = np.iinfo(dtype).max
    a, b = (rng.integers(0, most, shape, dtype=dtype, endpoint=True) for shape in (of_a, of_b))
    mask = rng.integers(0, 2, of_mask).astype(np.bool_)
    found = compare.choose(mask, a, b)
    expected = np.where(mask, a, b)
    assert found.dtype == dtype
    assert found.shape == expected.shape
    assert (found == expected).all()
    if a.ndim == 2:  # not in C order
        assert (compare.choose(mask, np.asfortranarray(a), b[:, ::-1]) == np.where(mask, a, b[:, ::-1])).all()


@ALL_SETS
@BOTH_RANGES
def test_one_number_for_all(
    on_each_processor: Processor, moduli: ModuliSet, signed: bool, rng: np.random.Generator
) -> None:
    values, _ = edge_pairs(moduli, signed, rng)
    lowest, highest = moduli.value_range(signed)
    for value in {lowest, 0, 1, (lowest + highest) // 2, values[0], highest}:
        check_scalar(on_each_processor, moduli, values[:101], value, signed)
    check_scalar(on_each_processor, moduli, values[:1], values[0], signed)


@ALL_SETS
@BOTH_RANGES
def test_a_bound(
    on_each_processor: Processor, moduli: ModuliSet, signed: bool, rng: np.random.Generator
) -> None:
    _, highest = moduli.value_range(signed)
    for bound in {0, 1, highest // 10**6, highest // 7, highest}:
        near = [bound, bound - 1, bound // 2, bound // 2 + 1, 0, 1]
        values = [v for v in near if 0 <= v <= bound]
        values += [-v for v in values] if signed else []
        a, b = ([values[i] for i in rng.integers(0, len(values), 70)] for _ in "ab")
        check_pairs(on_each_processor, moduli, a, b, signed, bound)


@SHORT_SETS
@BOTH_RANGES
def test_bounds_around_the_products_of_prefixes(
    on_each_processor: Processor, moduli: ModuliSet, signed: bool, rng: np.random.Generator
) -> None:
    for bound in bounds_around_prefixes(moduli, signed):
        values = values_within(bound, signed, rng, count=12)
        b = [values[i] for i in rng.integers(0, len(values), len(values))]
        check_pairs(on_each_processor, moduli, values, b, signed, bound)
        lowest, steps = -bound if signed else 0, rng.integers(-1, 2, len(b)).tolist()
        near = [min(max(v + d, lowest), bound) for v, d in zip(b, steps, strict=True)]
        check_pairs(on_each_processor, moduli, b, near, signed, bound)


@BOTH_RANGES
def test_integers_beside_numbers_far_below_the_prefix(
    on_each_processor: Processor, signed: bool, rng: np.random.Generator
) -> None:
    moduli = MODULI_SETS["top"]
    for bound in bounds_around_prefixes(moduli, signed):
        values = values_within(bound, signed, rng, count=6)
        residues = encode(on_each_processor, values, moduli, signed)
        x = rd.RNSArray(residues, rd.RNS(moduli, signed, bound))
        unknown = rd.RNSArray(residues, rd.RNS(moduli, signed))
        for value in (0, 1, bound - 1, bound, -bound, bound + 1, -bound - 1, 3 * bound, 2**200, -(2**200)):
            for relation, function in RELATIONS.items():
                found = on_each_processor.to_numpy(function(x, value)).tolist()
                assert found == [function(v, value) for v in values], (relation, bound, value)
            in_range = moduli.value_range(signed)[0] <= value <= moduli.value_range(signed)[1]
            if in_range:
                assert rd.maximum(x, value).to_ints().tolist() == [max(v, value) for v in values]
                assert rd.minimum(value, x).to_ints().tolist() == [min(v, value) for v in values]
        assert on_each_processor.to_numpy(rd.sign(x)).tolist() == [order(v, 0) for v in values]
        # Without a bound on one of two operands, their keys are not scaled.
        assert not on_each_processor.to_numpy(x < unknown).any()


@BOTH_RANGES
def test_random_numbers_far_below_the_prefix_need_no_exact_decision(
    on_each_processor: Processor, signed: bool, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(order_by_limbs, "comparable_limbs")
    moduli = MODULI_SETS["bits2048"]
    for bound in (2**64, 2**1024, moduli.prefix(31).product):
        a, b = ([int(v) * bound >> 61 for v in rng.integers(0, 2**61, 500)] for _ in "ab")
        check_pairs(on_each_processor, moduli, a, [-v for v in b] if signed else b, signed, bound)
        check_pairs(on_each_processor, moduli, a, b, signed, bound)


def test_more_numbers_than_a_tile_or_a_batch(
    on_each_processor: Processor, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "EXACT_RESIDUES", 1000)
    monkeypatch.setattr(order_by_limbs, "SEARCH_BLOCK", 777)
    monkeypatch.setattr(order_by_limbs, "FEW", 100)
    a = rng.integers(0, 5, 5003).tolist()
    b = rng.integers(0, 5, 5003).tolist()
    check_pairs(on_each_processor, MODULI_SETS["table2_8"], a, b)
    check_scalar(on_each_processor, MODULI_SETS["table2_8"], a, 2, False)


def test_rows_that_are_not_aligned_to_vectors(on_each_processor: Processor, rng: np.random.Generator) -> None:
    moduli = MODULI_SETS["top"]
    values = [int(v) * moduli.product >> 62 for v in rng.integers(0, 2**62, 1003)]
    x = encode(on_each_processor, values, moduli)
    expected = np.array([order(a, b) for a, b in pairwise(values)])
    assert (
        on_each_processor.to_numpy(compare.compare(x[:, :-1], x[:, 1:], rd.RNS(moduli))) == expected
    ).all()


@given(st.data())
def test_any_set_and_values(on_each_processor: Processor, data: st.DataObject) -> None:
    moduli, signed = data.draw(moduli_sets()), data.draw(st.booleans())
    a = data.draw(arrays_of_values(moduli, signed, max_size=30))
    b = data.draw(st.permutations(a))
    check_pairs(on_each_processor, moduli, a, b, signed)
    check_scalar(on_each_processor, moduli, a, b[0], signed)


# ---- operators --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("relation", RELATIONS)
def test_integers_beyond_a_bound(relation: str) -> None:
    values = [-5, 0, 3, 5]
    x = rd.from_ints(values, MODULI, signed=True, chunks=None)
    assert x.bound == 5
    for integer in (-7, -6, -5, 5, 6, 10**9):
        expected = [RELATIONS[relation](v, integer) for v in values]
        assert RELATIONS[relation](x, integer).tolist() == expected


def raising_operands() -> dict[str, rd.RNSArray]:
    """Lazy arrays that raise when they are computed, by what they are."""
    x = rd.from_ints([2**60 + i for i in range(300)], MODULI, chunks=128)
    zeros = rd.from_ints([0] * 300, MODULI, chunks=128)
    residues = x.residues.map_blocks(lambda block: block | 2**31, dtype=np.uint32)
    overflowing = rd.multiply(x, x, overflow="raise")
    return {
        "overflow": overflowing,
        "division by zero": x // zeros,
        "remainder by zero": (x % zeros),
        "power": x**9,
        "residues out of range": rd.from_residues(residues, MODULI),
        "a part": overflowing[5:200],
        "other chunks": overflowing.rechunk(256),
        "of bound 0": overflowing * 0,
        "power 0": overflowing**0,
        "difference with itself": overflowing - overflowing,
        "divided by 1": overflowing // 1,
        "remainder by 1": overflowing % 1,
        "greater of two": rd.maximum(overflowing, 0),
        "shrunk": x.shrink(ModuliSet(MODULI.moduli[1:2])),
        "chosen": rd.where(da.zeros(300, dtype=bool, chunks=128), overflowing, 5),
        "selected by itself": x[overflowing.is_even()],
    }


def test_a_comparison_decided_by_ranges_drops_no_error() -> None:
    errors = (OverflowError, ZeroDivisionError, ValueError)
    for name, x in raising_operands().items():
        y = rd.from_ints(range(x.size), MODULI, chunks=128) if not np.isnan(x.shape[0]) else None
        for value in (MODULI.product, 10**90, -1):
            for sign, relation in RELATIONS.items():
                mask = relation(x, value)
                with pytest.raises(errors):
                    print(name, sign, value, mask.compute(scheduler="sync"))
            with pytest.raises(errors):
                print(name, elementwise.compare(x, value).compute(scheduler="sync"))
            with pytest.raises(errors):
                print(name, (x < value).sum().compute(scheduler="sync"))
            if y is not None and x.moduli == MODULI:
                with pytest.raises(errors):
                    print(name, rd.where(x < value, y, 3).compute(scheduler="sync"))


def test_results_that_need_no_numbers_drop_no_error() -> None:
    for name, x in raising_operands().items():
        results = {
            "topk": lambda x=x: x.topk(0),
            "argmax": lambda x=x: x[:1].argmax(),
            "max": lambda x=x: x[:1].max(axis=0, keepdims=True),
            "product": lambda x=x: x[:3].prod(overflow="wrap"),
            "less than itself": lambda x=x: x < x,
            "equal to itself": lambda x=x: x == x,
        }
        for operation, result in results.items():
            if operation != "topk" or not np.isnan(x.shape[0]):
                with pytest.raises((OverflowError, ZeroDivisionError, ValueError)):
                    print(name, operation, result().compute(scheduler="sync"))


def test_tokens_follow_the_operands() -> None:
    x = rd.from_ints(range(10), MODULI, chunks=128)
    assert (x < 5).name == (x < 5).name
    assert len({(x < 5).name, (x < 6).name, (x <= 5).name, (x > 5).name}) == 4


def test_an_array_has_no_hash() -> None:
    with pytest.raises(TypeError, match="unhashable"):
        hash(rd.from_ints([1], MODULI))


def test_operands_that_do_not_fit() -> None:
    x = rd.from_ints([1, 2, 3], MODULI, chunks=None)
    with pytest.raises(ValueError, match="different moduli sets"):
        _ = x == rd.from_ints([1, 2, 3], MODULI_SETS["top"], chunks=None)
    with pytest.raises(ValueError, match="one is signed, another unsigned"):
        _ = x.with_bound(None) < rd.from_ints([1, 2, 3], MODULI, signed=True, chunks=None)
    with pytest.raises(ValueError, match=r"do not broadcast together: \(3,\) and \(2,\)"):
        _ = x < rd.from_ints([1, 2], MODULI, chunks=None)
    for other in (1.0, True, None, "1", [1.0, 2, 3], np.ones(3)):
        for related in RELATIONS.values():
            with pytest.raises(TypeError, match="must be an integer"):
                related(x, other)
    with pytest.raises(ValueError, match=r"do not broadcast together: \(3,\) and \(2,\)"):
        _ = x == rd.from_ints([1, 2], MODULI).topk(2)
    with pytest.raises(ValueError, match=r"operand -1 is outside the unsigned range from 0 to"):
        rd.maximum(x, -1)
    with pytest.raises(TypeError, match="takes at least one array of numbers"):
        rd.minimum(1, 2)
    with pytest.raises(TypeError, match="must be a Boolean NumPy, CuPy or Dask array, got int64"):
        rd.where(np.arange(3), x, x)
    with pytest.raises(TypeError, match="must be a Boolean NumPy, CuPy or Dask array, got bool"):
        rd.where(True, x, x)


@pytest.mark.gpu
def test_operands_on_different_processors() -> None:
    import cupy

    x = rd.from_ints([1, 2, 3], MODULI, chunks=None)
    on_gpu = rd.RNSArray(cupy.asarray(x.residues), rd.RNS(MODULI))
    for other in (on_gpu, on_gpu.rechunk()):
        with pytest.raises(TypeError, match="different processors"):
            _ = x < other
    assert (on_gpu.rechunk() == on_gpu).compute().all()
    assert (on_gpu < on_gpu[:1]).tolist() == [False] * 3
    assert (on_gpu[:1] < on_gpu).tolist() == [False, True, True]


def test_no_numbers_in_other_chunks(on_each_processor: Processor) -> None:
    residues = on_each_processor.xp.zeros((len(MODULI), 0, 3), dtype=np.uint32)
    x = rd.RNSArray(residues, rd.RNS(MODULI))
    for a, b in permutations((x, x.rechunk((-1, 3)), x.rechunk((-1, 2))), 2):
        for result in (a < b, a == b, rd.maximum(a, b), rd.clip(a, b, 7), a + b):
            found = result.compute() if dask.is_dask_collection(result) else result
            assert found.shape == (0, 3)


# ---- sign, maximum, minimum, where ------------------------------------------------------------------------


def test_bounds_of_results() -> None:
    x, y = rd.from_ints([1, 5], MODULI), rd.from_ints([2, 9], MODULI)
    unknown = rd.RNSArray(y.residues, rd.RNS(MODULI))
    assert rd.maximum(x, y).bound == 9
    assert rd.minimum(x, y).bound == 5
    assert rd.minimum(x, unknown).bound == 5
    assert rd.maximum(x, unknown).bound is None
    assert rd.where(x < y, x, 7).bound == 7
    s, t = (rd.from_ints(v, MODULI, signed=True) for v in ([1, 5], [-9, 2]))
    assert rd.minimum(s, t).bound == rd.maximum(s, t).bound == 9
