"""Groups by labels of all kinds, in all shapes and chunks, against dicts of Python's ints; and errors."""

import datetime
import math
from collections.abc import Callable, Iterable
from random import Random
from typing import Any

import dask.array as da
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import xarray as xr
from conftest import Processor
from oracles.integers import objects
from sample_arrays import array_of, chunked, host
from strategies import MODULI_SETS

import rnsdask as rd

EIGHT = MODULI_SETS["table2_8"]
FOLDS: dict[str, Callable[[list[int]], int]] = {
    "sum": sum,
    "prod": math.prod,
    "max": max,
    "min": min,
    "gcd": lambda values: math.gcd(*values),
    "count": len,
}
VALUES = [5, -3, 2**40, 0, -(2**40), 7, 7, 12, -1, 30]
TEXT = ["b", "a", "b", "c", "a", "b", "c", "c", "a", "b"]

pytestmark = pytest.mark.usefixtures("in_this_thread")


def expected(values: Iterable[int], labels: Iterable[Any], func: str) -> dict[Any, int]:
    groups: dict[Any, list[int]] = {}
    for value, label in zip(values, labels, strict=True):
        groups.setdefault(label, []).append(value)
    return {label: FOLDS[func](members) for label, members in groups.items()}


def ints(result: Any) -> Any:
    return host(result).tolist() if not hasattr(result, "to_ints") else result.to_ints().tolist()


def check(x: Any, by: Any, labels: Iterable[Any] = TEXT, values: Iterable[int] = VALUES) -> None:
    for func in FOLDS:
        groups, result = rd.group_reduce(x, by, func)
        wanted = expected(values, labels, func)
        assert dict(zip(groups.tolist(), ints(result), strict=True)) == wanted, func
        assert groups.tolist() == sorted(wanted)


SYSTEMS: dict[str, Any] = {
    "growing": None,
    "rns": rd.RNS(EIGHT, signed=True),
    "interval": rd.IntervalRNS(EIGHT),
    "positional": rd.Positional(200, signed=True),
}


@pytest.mark.parametrize("system", SYSTEMS.values(), ids=SYSTEMS)
@pytest.mark.parametrize("chunks", [None, 3, ((1, 0, 9),), ((10,),)], ids=str)
def test_systems_and_chunks(system: Any, chunks: Any) -> None:
    x = rd.from_ints(VALUES, system, chunks=None)
    x = x if chunks is None else x.rechunk(chunks)
    check(x, TEXT)
    check(x, da.from_array(np.array(TEXT), chunks=4))
    check(x, np.array(TEXT, dtype="S1"), [text.encode() for text in TEXT])


def test_processors(on_each_processor: Processor) -> None:
    x = array_of(on_each_processor, objects(VALUES), EIGHT, True)
    check(x, TEXT)
    check(chunked(x, 3), TEXT)
    check(x, on_each_processor.xp.asarray([3, 1] * 5), [3, 1] * 5)


PAIRS = [(1, "x"), (0, "y")] * 5
RECORDS = np.array(PAIRS, dtype=[("number", "i4"), ("text", "U2")])
DAYS = np.array(["2024-01-02", "2023-05-06"] * 5, dtype="M8[D]")
KINDS: dict[str, tuple[Any, Any]] = {
    "ints": ([3, 1] * 5, [3, 1] * 5),
    "int8": (np.array([127, -128] * 5, dtype=np.int8), [127, -128] * 5),
    "uint64": (np.array([2**64 - 1, 2**63] * 5, dtype=np.uint64), [2**64 - 1, 2**63] * 5),
    "far": (np.array([-(2**63), 2**63 - 1] * 5), [-(2**63), 2**63 - 1] * 5),
    "huge": ([2**70, -(2**80)] * 5, [2**70, -(2**80)] * 5),
    "bools": (np.array([True, False] * 5), [True, False] * 5),
    "floats": (np.array([0.5, -np.inf] * 5), [0.5, -np.inf] * 5),
    "dates": (DAYS, DAYS.tolist()),
    "tuples": (PAIRS, PAIRS),
    "records": (RECORDS, PAIRS),
    "unicode": (np.array(TEXT), TEXT),
    "series": (pd.Series(TEXT), TEXT),
    "index": (pd.Index(TEXT), TEXT),
    "categories": (pd.Series(TEXT, dtype="category"), TEXT),
    "multi-index": (pd.MultiIndex.from_tuples(PAIRS), PAIRS),
    "arrow": (pa.array(TEXT), TEXT),
    "chunked arrow": (pa.chunked_array([TEXT[:4], [], TEXT[4:]]), TEXT),
    "arrow dictionary": (pa.array(TEXT).dictionary_encode(), TEXT),
    "xarray": (xr.DataArray(np.array(TEXT)), TEXT),
    "lazy xarray": (xr.DataArray(np.array(TEXT)).chunk(3), TEXT),
    "lazy dates": (da.from_array(DAYS, chunks=3), DAYS.tolist()),
    "lazy tuples": (da.from_array(pd.Series(PAIRS).to_numpy(), chunks=3), PAIRS),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("chunks", [None, 4])
def test_kinds_of_labels(kind: str, chunks: int | None) -> None:
    by, labels = KINDS[kind]
    x = rd.from_ints(VALUES, chunks=chunks)
    for func in ("sum", "max", "count"):
        groups, result = rd.group_reduce(x, by, func)
        wanted = expected(VALUES, labels, func)
        found = dict(zip(groups.tolist(), ints(result), strict=True))
        assert found == wanted
        assert groups.tolist() == sorted(wanted)


def test_labels_without_an_order_come_as_they_occur() -> None:
    x = rd.from_ints(VALUES, chunks=None)
    groups, result = rd.group_reduce(x, ["b", 1, (2,), 1, "b", "b", "b", "b", "b", "b"], "count")
    assert (groups.tolist(), result.tolist()) == (["b", 1, (2,)], [7, 2, 1])


def test_random_arrays_of_several_axes() -> None:
    seed = np.random.SeedSequence().entropy
    print("seed", seed)
    random = Random(seed)
    for _ in range(20):
        lead = random.choice([(), (3,), (2, 2), (0,)])
        own = random.choice([(), (1,), (5,), (40,), (4, 3), (0,)]) or (7,)
        size, count = math.prod(own), random.choice([1, 2, 3, 30])
        labels = np.array([random.randrange(count) * 10**12 for _ in range(size)], dtype=np.int64).reshape(
            own
        )
        length = random.choice([4, 64, 200])
        drawn = [random.randrange(-(2**length), 2**length) for _ in range(math.prod(lead) * size)]
        values = objects(drawn, (*lead, *own))
        x = rd.from_ints(values, rd.RNS(rd.ModuliSet.for_bits(2**14), signed=True), chunks=None)
        if random.random() < 0.6:
            x = x.rechunk(tuple(random.randint(1, max(n, 1)) for n in x.shape))
        by: Any = labels if random.random() < 0.6 else da.from_array(labels, chunks=3)
        for func in FOLDS:
            groups, result = rd.group_reduce(x, by, func, split_every=random.choice([None, 2]))
            assert result.shape == (*lead, len(groups))
            found = np.array(ints(result), dtype=object).reshape(result.shape)
            for place in np.ndindex(*lead):
                wanted = expected(values[place].ravel().tolist(), labels.ravel().tolist(), func)
                assert dict(zip(groups.tolist(), found[place].tolist(), strict=True)) == wanted, (func, seed)


@pytest.mark.parametrize("system", [rd.PrimeFields([97, 101]), rd.FermatField(2**63 + 2**34, 8)], ids=str)
@pytest.mark.parametrize("chunks", [None, 3])
def test_elements_of_fields(system: Any, chunks: int | None) -> None:
    x = rd.from_ints(VALUES, system, chunks=chunks)
    modulus = 97 * 101 if isinstance(system, rd.PrimeFields) else (2**63 + 2**34) ** 8 + 1
    for func in ("sum", "prod", "count"):
        groups, result = rd.group_reduce(x, TEXT, func)
        wanted = {label: value % modulus for label, value in expected(VALUES, TEXT, func).items()}
        assert dict(zip(groups.tolist(), ints(result), strict=True)) == wanted
    with pytest.raises(TypeError, match="max of groups takes no FieldArray"):
        rd.group_reduce(x, TEXT, "max")
    with pytest.raises(TypeError, match="gcd of groups takes no FieldArray"):
        rd.group_reduce(x, TEXT, "gcd")


# ---- ranges ------------------------------------------------------------------------------------------------


def test_sums_at_the_ends_of_ranges() -> None:
    """Sums that return into the range are no error, whatever the chunks; others name the group."""
    for system in (rd.RNS(rd.ModuliSet([13, 11, 7]), signed=True), rd.Positional(10, signed=True)):
        low, high = system.value_range
        values, labels = [high, high, low, low, 1, 1, high, 0], [1, 1, 1, 1, 0, 0, 0, 2]
        for chunks in (None, 1, 2, 3):
            x = rd.from_ints(values, system, chunks=chunks)
            _, result = rd.group_reduce(x, [1, 1, 1, 1, 0, 0, 3, 2], "sum")
            assert ints(result) == [2, 2 * (high + low), 0, high]
            with pytest.raises(rd.RNSOverflowError, match="overflow at flat index 0") as error:
                ints(rd.group_reduce(x, labels, "sum")[1])
            assert error.value.index == 0


@pytest.mark.parametrize("chunks", [None, (1, 2), (2, 3), (3, 6)])
def test_a_product_out_of_range_is_named_in_later_groups(chunks: Any) -> None:
    values = np.ones((3, 6), dtype=np.int64)
    values[2, 3:5] = 20  # whose product is the second of three in its row
    for system in (rd.RNS(rd.ModuliSet([13, 11]), signed=True), rd.Positional(8, signed=True)):
        x = rd.from_ints(values, system, chunks=chunks)
        with pytest.raises(rd.RNSOverflowError, match="overflow at flat index 7:"):
            ints(rd.group_reduce(x, [0, 0, 0, 1, 1, 2], "prod")[1])


@pytest.mark.parametrize("chunks", [None, 2])
@pytest.mark.parametrize(
    "chosen", [{}, {"bits": 64, "signed": True}, {"moduli": rd.ModuliSet.for_bits(64), "signed": True}]
)
def test_bounds_hold_for_results_and_fills(chunks: int | None, chosen: dict[str, Any]) -> None:
    values, labels = [-2, -2, -2, -2, 1], [0, 0, 0, 0, 1]
    folds = {"sum": sum, "prod": math.prod, "max": max, "min": min, "gcd": lambda group: math.gcd(*group)}
    x = rd.from_ints(values, **chosen, chunks=chunks).with_bound(2)
    for operation, fold in folds.items():
        for fill in (0, 7, -1000):
            how: Any = {"expected_groups": [0, 1, 2], "fill_value": fill}
            result = rd.group_reduce(x, labels, operation, **how)[1]
            exact = [fold(values[:4]), fold(values[4:]), fill]
            assert ints(result) == exact
            assert result.bound is None or max(map(abs, exact)) <= result.bound
            assert np.asarray(result > 5).tolist() == [value > 5 for value in exact]


def test_many_words_of_all_ones() -> None:
    """More words in a group than float64 adds exactly at once."""
    count = 2**21 + 3
    for system in (rd.Positional(64), rd.RNS(rd.ModuliSet.for_bits(64))):
        value = system.value_range[1]
        x = rd.full(count, value, system, chunks=None)
        wide = (
            x.to_positional(100)
            if isinstance(system, rd.Positional)
            else x.extend(rd.ModuliSet.for_bits(128))
        )
        groups, result = rd.group_reduce(wide, np.zeros(count, dtype=np.int8), "sum")
        assert (groups.tolist(), ints(result)) == ([0], [count * value])


def test_results_of_growing_arrays_have_few_moduli() -> None:
    x = rd.from_ints([2**64 - 1] * 8, chunks=4)
    _, sums = rd.group_reduce(x, [0, 1] * 4, "sum")
    assert (ints(sums), sums.system.known_range) == ([4 * (2**64 - 1)] * 2, (0, 4 * (2**64 - 1)))
    _, products = rd.group_reduce(x, [0, 1] * 4, "prod")
    assert ints(products) == [(2**64 - 1) ** 4] * 2
    assert ints(products + sums) == [(2**64 - 1) ** 4 + 4 * (2**64 - 1)] * 2
    _, divisors = rd.group_reduce(x, [0, 1] * 4, "gcd")
    assert divisors.system.bound == 2**64 - 1


# ---- expected groups ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("chunks", [None, 3])
def test_expected_groups(chunks: int | None) -> None:
    x = rd.from_ints(VALUES, chunks=chunks)
    labels = [None, *TEXT[1:-1], float("nan")]
    known = [(v, label) for v, label in zip(VALUES, labels, strict=True) if label in ("a", "b")]
    for by in (labels, da.from_array(objects(labels), chunks=4)):
        for func, default in (("sum", 0), ("prod", 1), ("gcd", 0), ("count", 0), ("max", -9), ("min", -9)):
            fill = {"fill_value": -9} if func in ("max", "min") else {}
            groups, result = rd.group_reduce(x, by, func, expected_groups=["b", "z", "a"], **fill)
            wanted = {"z": default, **expected(*zip(*known, strict=True), func)}
            assert groups.tolist() == ["b", "z", "a"]
            assert ints(result) == [wanted[label] for label in ("b", "z", "a")]
        with pytest.raises(
            ValueError, match="max of the group 'z': it needs at least one number, and has none"
        ):
            ints(rd.group_reduce(x, by, "max", expected_groups=["b", "z"])[1])


def test_lazy_labels_are_not_read_if_groups_are_expected() -> None:
    def fail(_: Any) -> Any:
        raise AssertionError("labels are read")

    by = da.zeros(10, dtype=np.int64, chunks=5).map_blocks(fail, dtype=np.int64, meta=np.empty(0, np.int64))
    x = rd.from_ints(VALUES, chunks=5)
    groups, result = rd.group_reduce(x, by, "sum", expected_groups=[4, 2])
    assert (groups.tolist(), result.shape) == ([4, 2], (2,))


def test_selections_are_counted_first() -> None:
    x = rd.from_ints(VALUES, chunks=3)
    chosen = x[x > 0]
    labels = da.from_array(np.array(TEXT), chunks=3)[x > 0]
    positive = [(v, label) for v, label in zip(VALUES, TEXT, strict=True) if v > 0]
    groups, result = rd.group_reduce(chosen, labels, "sum")
    assert dict(zip(groups.tolist(), ints(result), strict=True)) == expected(
        *zip(*positive, strict=True), "sum"
    )


# ---- errors ------------------------------------------------------------------------------------------------


def masked() -> Any:
    """Labels, two of which a mask hides: one that occurs elsewhere, and one that does not."""
    return np.ma.array([1, 2] * 4 + [1, 9], mask=[0] * 8 + [1, 1])


@pytest.mark.parametrize("chunks", [None, 3])
def test_masked_labels_are_in_no_group(chunks: int | None) -> None:
    x = rd.from_ints(range(10), chunks=chunks)
    for by in (masked(), da.from_array(masked(), chunks=4)):
        _, found = rd.group_reduce(x, by, "sum", expected_groups=[2, 1, 9])
        assert objects(found).tolist() == [16, 12, 0]


def test_wrong_arguments() -> None:
    x = rd.from_ints(VALUES, chunks=None)
    for lazy in (x, x.rechunk(3)):
        for by in ([*TEXT[:-1], None], pd.Series([*TEXT[:-1], None]), pa.array([*TEXT[:-1], None])):
            with pytest.raises(ValueError, match="label at position 9 is missing; fill or drop"):
                rd.group_reduce(lazy, by, "sum")
        with pytest.raises(ValueError, match="label at position 9 is missing"):
            rd.group_reduce(lazy, da.from_array(np.array([0.5] * 9 + [np.nan]), chunks=4), "sum")
        for by in (masked(), da.from_array(masked(), chunks=4)):
            with pytest.raises(ValueError, match="label at position 8 is missing"):
                rd.group_reduce(lazy, by, "sum")
        with pytest.raises(TypeError, match=r"labels must be plain values, got .*RNSArray.*astype\(object\)"):
            rd.group_reduce(lazy, lazy, "sum")
    calls: list[tuple[type[Exception], str, Callable[[], Any]]] = [
        (TypeError, "takes an array of numbers, got list", lambda: rd.group_reduce(VALUES, TEXT, "sum")),
        (ValueError, "func must be one of sum, prod,", lambda: rd.group_reduce(x, TEXT, "mean")),
        (ValueError, r"got \(9,\) for \(10,\)", lambda: rd.group_reduce(x, TEXT[1:], "sum")),
        (TypeError, "labels must be a column, got a DataFrame", lambda: _frame(x)),
        (
            TypeError,
            r"labels must be an array, a column or a list, got 3",
            lambda: rd.group_reduce(x, 3, "sum"),
        ),
        (
            TypeError,
            "label at position 1 must be hashable",
            lambda: rd.group_reduce(x, [1, [2], *TEXT[2:]], "sum"),
        ),
        (
            ValueError,
            "expected_groups must differ, got 'a' twice, at 0 and 2",
            lambda: _expecting(x, ["a", "b", "a"]),
        ),
        (ValueError, "is missing", lambda: _expecting(x, ["a", None])),
        (ValueError, "expected_groups must have one axis", lambda: _expecting(x, np.zeros((2, 2)))),
        (TypeError, "fill_value", lambda: rd.group_reduce(x, TEXT, "max", fill_value=0.5)),
        (ValueError, "split_every", lambda: rd.group_reduce(x, TEXT, "max", split_every=0)),
    ]
    for kind, text, call in calls:
        with pytest.raises(kind, match=text):
            call()


def _frame(x: Any) -> Any:
    return rd.group_reduce(x, pd.DataFrame({"a": TEXT, "b": TEXT}), "sum")


def _expecting(x: Any, groups: Any) -> Any:
    return rd.group_reduce(x, TEXT, "sum", expected_groups=groups)


def test_no_numbers() -> None:
    for x in (rd.from_ints([], chunks=None), rd.from_ints([])):
        for func in FOLDS:
            groups, result = rd.group_reduce(x, [], func)
            assert (groups.shape, ints(result)) == ((0,), [])
            groups, result = rd.group_reduce(x, [], func, expected_groups=["a"], fill_value=7)
            assert ints(result) == [0 if func == "count" else 7]


def test_dates_of_other_units() -> None:
    x = rd.from_ints([1, 2], chunks=None)
    seconds = np.array(["2024-01-02T00:00:00", "2024-01-03T00:00:01"], dtype="M8[s]")
    _, result = rd.group_reduce(x, seconds, "sum", expected_groups=np.array(["2024-01-02"], dtype="M8[D]"))
    assert ints(result) == [1]
    groups, _ = rd.group_reduce(x, [datetime.date(2024, 1, 2)] * 2, "sum")
    assert groups.tolist() == [datetime.date(2024, 1, 2)]


# ---- NumPy's names -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("chunks", [None, (3, 2)])
def test_segments(chunks: Any) -> None:
    values = objects([*VALUES, 3, 4], (4, 3))
    x = rd.from_ints(values, rd.RNS(rd.ModuliSet.for_bits(300), signed=True), chunks=chunks)
    for ufunc in (np.add, np.multiply, np.maximum, np.minimum, np.gcd):
        for axis, indices in (
            (0, [0, 2, 3]),
            (1, [0, 1]),
            (0, [1]),
            (-1, np.array([1, 2], np.uint8)),
            (0, []),
        ):
            found = ufunc.reduceat(x, indices, axis=axis)
            wanted = ufunc.reduceat(values, np.array(indices, dtype=np.int64), axis=axis)
            assert np.array_equal(found.to_ints(), abs(wanted) if ufunc is np.gcd else wanted), (ufunc, axis)
    for kind, indices, text in (
        (ValueError, [0, 2, 1], "takes indices that ascend, got 1 after 2; rd.group_reduce"),
        (ValueError, [1, 1], "takes indices that ascend, got 1 after 1"),
        (IndexError, [0, 4], "index 4 of numpy.add.reduceat is out of bounds for length 4"),
        (IndexError, [-1], "index -1 of numpy.add.reduceat is out of bounds"),
        (TypeError, [0.5], "takes indices of one axis, got float64"),
    ):
        with pytest.raises(kind, match=text):
            np.add.reduceat(x, indices)


@pytest.mark.parametrize("chunks", [None, 3])
def test_bincount(chunks: Any) -> None:
    x = rd.from_ints(VALUES, chunks=chunks)
    places = np.array([1, 1, 4, 0, 0, 4, 6, 1, 0, 6], dtype=np.uint8)
    sums = expected(VALUES, places.tolist(), "sum")
    for least in (0, 3, 9):
        wanted = [sums.get(i, 0) for i in range(max(7, least))]
        assert np.bincount(places, weights=x, minlength=least).tolist() == wanted
        assert np.bincount(places.tolist(), x, least).tolist() == wanted
    for text, call in (
        ("numpy.bincount counts machine integers, got an RNSArray", lambda: np.bincount(x)),
        ("numpy.bincount takes machine integers, got float64", lambda: np.bincount(places / 2, x)),
        ("takes one weight for each", lambda: np.bincount([1], x)),
        ("from 0 on", lambda: np.bincount([*places.tolist()[1:], -1], x)),
        ("from 0 on", lambda: np.bincount(places, x, -1)),
    ):
        with pytest.raises((TypeError, ValueError), match=text):
            call()
