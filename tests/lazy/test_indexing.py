"""Indexing: against NumPy's arrays of Python ints, over a grid of indices, eager and lazy, of all arrays."""

import itertools
import math
import random
import statistics
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
from conftest import Processor
from strategies import slow

import rnsdask as rd

MODULI = rd.ModuliSet([251, 253, 255, 256])
SHAPES = [(7,), (1,), (0,), (5, 4), (3, 1), (4, 0), (3, 4, 2), (2, 3, 2, 3)]
WRONG: list[Any] = [
    *(1.0, 2j, "a", {0}, (0,), [1.5], [], [True, False], 10**30, -(10**30)),
    *(np.array([10**9]), np.array([1, 2], dtype=object), np.array([], dtype=float), np.zeros((2, 2), bool)),
]


def part_of_index(rng: random.Random, length: int) -> Any:
    """One part of an index of an axis of this length, right or wrong."""
    n = max(length, 1)

    def end() -> Any:
        return rng.choice([None, None, *range(-2 * n - 1, 2 * n + 2), 10**30, -(10**30)])

    def places(count: int) -> list[int]:
        return [rng.randrange(-n, n) for _ in range(count)]

    step = rng.choice([None, None, 1, 2, 3, -1, -1, -2, -3, 10**20, -(10**20)])
    choices: list[Callable[[], Any]] = [
        *[lambda: slice(end(), end(), step)] * 3,
        lambda: slice(None),
        lambda: rng.randrange(-n, n),
        lambda: rng.choice([np.int8, np.uint8, np.int64, np.uint64])(rng.randrange(n)),
        lambda: places(rng.randrange(4)),
        lambda: np.array([rng.randrange(n) for _ in range(3)], dtype=rng.choice([np.uint8, np.uint64])),
        lambda: np.array([places(2) for _ in range(rng.choice([1, 2]))], dtype=np.int8),
        lambda: np.zeros(rng.choice([(0, 2), (2, 0)]), dtype=np.int8),
        lambda: np.array([rng.random() < 0.5 for _ in range(length)], bool),
        lambda: range(rng.randrange(n + 1)),
        lambda: None,
        lambda: Ellipsis,
        lambda: rng.choice([True, False, np.True_, np.array(True), np.array(False)]),
        lambda: np.array(rng.randrange(-n, n)),
        lambda: rng.choice([*WRONG, n, -n - 1, [n + 3], np.ones(length + 1, bool)]),
    ]
    return rng.choice(choices)()


def index_of(rng: random.Random, shape: tuple[int, ...]) -> Any:
    """An index of an array of this shape, right or wrong."""
    if rng.random() < 0.15:
        covered = shape[: rng.randint(1, len(shape))]
        mask = np.array([rng.random() < 0.5 for _ in range(int(np.prod(covered)))], bool).reshape(covered)
        return mask if rng.random() < 0.5 or covered == shape else (mask, part_of_index(rng, shape[-1]))
    count, axis = rng.randrange(len(shape) + 2), 0
    parts: list[Any] = []
    for _ in range(count):
        parts.append(part_of_index(rng, shape[min(axis, len(shape) - 1)]))
        axis += parts[-1] is not None and parts[-1] is not Ellipsis
    return parts[0] if len(parts) == 1 and rng.random() < 0.7 else tuple(parts)


def outcome(select: Callable[[], Any]) -> Any:
    """Shape and Python ints of what is selected, or the error's type and message."""
    try:
        found = select()
    except Exception as error:
        return type(error), str(error)
    found = np.asarray(found.compute() if hasattr(found, "compute") else found, dtype=object)
    return found.shape, found.ravel().tolist()


def numbers(rng: random.Random, shape: tuple[int, ...]) -> Any:
    values = np.empty(shape, dtype=object)
    values.ravel()[:] = [rng.randrange(MODULI.product) for _ in range(values.size)]
    return values


@pytest.mark.parametrize("seed", [*range(4), *slow(*range(4, 8))])
def test_any_index_selects_or_fails_as_numpys(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(60):
        shape = rng.choice(SHAPES)
        values = numbers(rng, shape)
        eager = rd.RNSArray(rd.from_ints(values, MODULI, chunks=None).residues, rd.RNS(MODULI))
        chunks = (4, *(rng.randint(1, max(length, 1)) for length in shape))
        lazy = rd.RNSArray(da.from_array(eager.residues, chunks=chunks), rd.RNS(MODULI))
        index = index_of(rng, shape)
        expected = outcome(lambda v=values, i=index: v[i])
        signed = [rd.IntervalRNSArray.from_rns(x) for x in (eager, lazy)] if values.size else []
        for x in (eager, lazy, *signed):
            found = outcome(lambda x=x, i=index: x[i])
            if isinstance(expected[0], type):  # an error: of the same type
                assert found[0] is expected[0], (seed, shape, chunks, index, expected, found)
            else:
                assert found == expected, (seed, shape, chunks, index)


@pytest.mark.parametrize(
    ("index", "message"),
    [
        (7, "index 7 is out of bounds for axis 0 with size 5"),
        ((0, 4), "index 4 is out of bounds for axis 1 with size 4"),
        ((slice(None), [1, 9]), "index 9 is out of bounds for axis 1 with size 4"),
        ((0, 0, 0), "too many indices for array: array is 2-dimensional, but 3 were indexed"),
        ((..., ...), "an index can only have a single ellipsis"),
        (1.0, "only integers, slices"),
        (np.float32(2), "only integers, slices"),
        ("a", "only integers, slices"),
        (
            np.ones(3, bool),
            "boolean index did not match indexed array along axis 0; size of axis is 5 but size of "
            "corresponding boolean axis is 3",
        ),
        (np.array([2**64 - 1], dtype=np.uint64), "index 18446744073709551615 is out of bounds"),
    ],
)
def test_messages_count_the_axes_of_the_numbers(
    index: Any, message: str, on_each_processor: Processor
) -> None:
    residues = rd.from_ints(np.arange(20).reshape(5, 4), MODULI, chunks=None).residues
    words = on_each_processor.xp.asarray(residues)
    eager = rd.RNSArray(words, rd.RNS(MODULI))
    lazy = rd.RNSArray(da.from_array(words, chunks=(4, 2, 3), asarray=False), rd.RNS(MODULI))
    for x in (eager, lazy, rd.IntervalRNSArray.from_rns(eager), rd.IntervalRNSArray.from_rns(lazy)):
        with pytest.raises(IndexError) as caught:
            x[index]
        assert message in str(caught.value)


@pytest.mark.parametrize("eager", [False, True])
def test_a_lazy_index(eager: bool) -> None:
    values = np.arange(24, dtype=object).reshape(6, 4) * 7 % 19
    x = rd.from_ints(values, MODULI, chunks=None)
    if not eager:
        x = rd.RNSArray(da.from_array(x.residues, chunks=(4, 2, 3)), rd.RNS(MODULI))
    plain = np.array([3, -1, 0, 3], np.int8)
    rows = da.from_array(plain, chunks=3)
    mask = values > 5
    lazy_mask = da.from_array(mask, chunks=(3, 2))
    column = mask[0]
    for found, expected in [
        (x[rows], values[plain]),
        (x[:, rows], values[:, plain]),
        (x[1, rows], values[1, plain]),
        (x[None, ::-2, rows], values[None, ::-2, plain]),
        (x[rows.reshape(2, 2)], values[plain.reshape(2, 2)]),
        (x[lazy_mask], values[mask]),
        (x[:, lazy_mask[0]], values[:, column]),
        (x[2, lazy_mask[0]], values[2, column]),
    ]:
        assert dask.is_dask_collection(found)
        assert found.to_ints().tolist() == expected.tolist()
    assert int(x[2][x[2].argmax()]) == values[2].max()
    assert int(x[rows[0], rows[2]]) == values[3, 0]


def test_a_lazy_index_that_is_wrong() -> None:
    x = rd.RNSArray(
        da.from_array(rd.from_ints(range(12), MODULI, chunks=None).residues, chunks=(4, 5)), rd.RNS(MODULI)
    )
    far = x[da.from_array(np.array([1, 12]), chunks=1)]
    with pytest.raises(IndexError, match="index 12 is out of bounds for axis 0 with size 12"):
        far.to_ints()
    with pytest.raises(IndexError, match="size of axis is 12 but size of corresponding boolean axis is 11"):
        x[da.ones(11, dtype=bool)]
    with pytest.raises(IndexError, match="must be of integer"):
        x[da.ones(12)]
    with pytest.raises(IndexError, match="an RNSArray is no index"):
        x[x]
    table = rd.RNSArray(x.residues.reshape((4, 3, 4)), rd.RNS(MODULI))
    with pytest.raises(IndexError, match=r"shape mismatch: .* with shapes \(2,\) \(4,\)"):
        table[[0, 1], da.ones(4, dtype=bool)]
    with pytest.raises(IndexError, match="index 9 is out of bounds for axis 1 with size 4"):
        table[[0, 1], da.from_array(np.array([0, 9]))].to_ints()


def lazy_part(rng: random.Random, item: Any) -> Any:
    """An array in an index as Dask's, of any chunks; sometimes as it is."""
    if not isinstance(item, np.ndarray) or rng.random() < 0.3:
        return item
    chunks = tuple(rng.randint(1, max(length, 1)) for length in item.shape)
    return da.from_array(item, chunks=chunks)


@pytest.mark.parametrize("seed", range(4))
def test_several_arrays_in_an_index_some_of_them_lazy(seed: int, on_each_processor: Processor) -> None:
    rng = random.Random(seed)
    for _ in range(12):
        shape = rng.choice([(5, 4), (3, 4, 2), (2, 3, 2, 3), (4, 0), (6,)])
        values = numbers(rng, shape)
        common, parts = rng.choice([(2,), (3, 2), (1,), (0,)]), []
        axis = 0
        while axis < len(shape):
            n = shape[axis]
            indices = [rng.randrange(-n, n) for _ in range(math.prod(common))] if n else []
            wide = np.array(indices, int).reshape(common if n else 0)
            mask = np.zeros(shape[axis : axis + rng.randint(1, 2)], bool)
            mask.ravel()[: common[0]] = True
            number = rng.randrange(n or 1)
            parts.append(rng.choice([wide, wide, wide[..., :1], mask, slice(None, None, -1), number]))
            axis += mask.ndim if parts[-1] is mask else 1
        expected = outcome(lambda v=values, i=tuple(parts): v[i])
        index = tuple(lazy_part(rng, p) for p in parts)
        words = rd.from_ints(values, MODULI, chunks=None).residues
        eager = rd.RNSArray(on_each_processor.xp.asarray(words), rd.RNS(MODULI))
        chunks = (4, *(rng.randint(1, max(length, 1)) for length in shape))
        lazy = rd.RNSArray(da.from_array(eager.residues, chunks=chunks, asarray=False), rd.RNS(MODULI))
        for x in (eager, lazy):
            found = outcome(lambda x=x, i=index: x[i])
            assert found == expected or (found[0] is expected[0] is IndexError), (seed, shape, parts, index)


def test_a_lazy_truth_as_an_index() -> None:
    x = rd.from_ints(range(4), MODULI, chunks=None)
    for truth in (True, False):
        lazy = da.from_array(np.array(truth))
        expected = np.arange(4)[np.array(truth)]
        assert x[lazy].to_ints().tolist() == expected.tolist()
        assert x[lazy].compute().shape == expected.shape
        assert x[lazy, [2]].to_ints().tolist() == np.arange(4)[np.array(truth), [2]].tolist()


def test_masks_of_several_axes_are_conditions_on_numbers(on_each_processor: Processor) -> None:
    values = np.arange(24, dtype=object).reshape(2, 3, 4) * 7 % 19
    words = on_each_processor.xp.asarray(rd.from_ints(values, MODULI, chunks=None).residues)
    eager = rd.RNSArray(words, rd.RNS(MODULI))
    lazy = rd.RNSArray(da.from_array(words, chunks=(4, 1, 2, 3), asarray=False), rd.RNS(MODULI))
    for x in (eager, lazy, rd.IntervalRNSArray.from_rns(eager), rd.IntervalRNSArray.from_rns(lazy)):
        for found, expected in [
            (x[x > 5], values[values > 5]),
            (x[x[..., 0] > 5], values[values[..., 0] > 5]),
            (x[:, x[0] > 5], values[:, values[0] > 5]),
            (x[1, x[0] > 5], values[1, values[0] > 5]),
            (x[:, (x > 5)[0, :, 0], ::-2], values[:, (values > 5)[0, :, 0], ::-2]),
            (x[np.nonzero(x)], values[np.nonzero(values)]),
            (x[x > 99], values[values > 99]),
        ]:
            assert found.to_ints().tolist() == expected.tolist()


def selections() -> list[tuple[str, Any, list[int]]]:
    """Arrays of unknown length by name, each made anew, and their numbers: some, of one chunk, and none."""
    values = np.array([[5, 3, 9, 1, 7], [2, 8, 8, 0, 4], [6, 1, 3, 9, 9]], dtype=object)
    words = rd.from_ints(values, MODULI, chunks=None).residues
    lazy = rd.RNSArray(da.from_array(words, chunks=(4, (1, 1, 1), (2, 3))), rd.RNS(MODULI))
    made = []
    for name, x in (("rns", lazy), ("interval", rd.IntervalRNSArray.from_rns(lazy))):
        made += [(f"{name} > {v}", x[x > v], values[values > v].tolist()) for v in (4, 8, 100)]
        made += [(f"{name} < 0", x[x < 1], [0])]
    return made


WITHOUT_LENGTHS: dict[str, tuple[Callable[[Any], Any], Callable[[list[int]], Any]]] = {
    "max": (lambda x: x.max(), max),
    "min": (lambda x: x.min(), min),
    "argmax": (lambda x: x.argmax(), lambda v: v.index(max(v))),
    "argmin": (lambda x: x.argmin(), lambda v: v.index(min(v))),
    "sum": (lambda x: x.sum(), sum),
    "comparison": (lambda x: x > 6, lambda v: [n > 6 for n in v]),
    "selection": (lambda x: x[x > 6], lambda v: [n for n in v if n > 6]),
    "arithmetic": (lambda x: x * 2 + 1, lambda v: [n * 2 + 1 for n in v]),
}

WITH_LENGTHS: dict[str, tuple[Callable[[Any], Any], Callable[[list[int]], Any]]] = {
    "len": (len, len),
    "iteration": (list, list),
    "number": (lambda x: x[-1], lambda v: v[-1]),
    "slice": (lambda x: x[::-2], lambda v: v[::-2]),
    "places": (lambda x: x[[0, 0, -1]], lambda v: [v[0], v[0], v[-1]]),
    "rechunk": (lambda x: x.rechunk(), list),
    "flip": (lambda x: x.flip(), lambda v: v[::-1]),
    "reshape": (lambda x: x.reshape(1, -1), lambda v: [v]),
    "take": (lambda x: x.take([0]), lambda v: [v[0]]),
    "sum of two": (lambda x: x + x[:], lambda v: [2 * n for n in v]),
    "choice": (lambda x: rd.where(x > 6, x, 0), lambda v: [n if n > 6 else 0 for n in v]),
    "padding": (lambda x: rd.pad(x, 1), lambda v: [0, *v, 0]),
    "stack": (lambda x: rd.stack([x, x]), lambda v: [v, v]),
    "product of vectors": (lambda x: int(x @ x), lambda v: sum(n * n for n in v)),
    "sort": (lambda x: rd.sort(x), sorted),
    "order of all": (lambda x: rd.argsort(x, None), lambda v: sorted(range(len(v)), key=v.__getitem__)),
    "median": (
        lambda x: rd.median(x).compute(),
        lambda v: statistics.median(map(Fraction, v)) if v else v[0],
    ),
    "distinct": (lambda x: rd.unique(x), lambda v: sorted(set(v))),
    "values to look for": (lambda x: rd.isin(x, x), lambda v: [True] * len(v)),
    "sorter": (lambda x: rd.searchsorted(x, 9, sorter=rd.argsort(x[:])), lambda v: sum(n < 9 for n in v)),
    "nonzero": (lambda x: x[x.nonzero()], lambda v: [n for n in v if n]),
    "truth": (lambda x: bool(x[:1]), lambda v: bool(v[0]) if v else 1 / 0),
}


@pytest.mark.parametrize("name", WITHOUT_LENGTHS)
def test_a_selection_is_not_computed_to_know_its_length(name: str) -> None:
    function, oracle = WITHOUT_LENGTHS[name]
    for what, x, values in selections():
        with dask.config.set(scheduler=lambda *_, **__: pytest.fail("something was computed")):
            result = function(x)
        assert np.isnan(x.shape[0])
        if not values and name in ("max", "min", "argmax", "argmin"):
            with pytest.raises(ValueError, match="of an empty array"):
                result.compute(scheduler="sync")
        else:
            found = np.asarray(result.compute(scheduler="sync"))
            assert found.tolist() == oracle(values), what


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (2, 0, 3)])
def test_lazy_masks_of_no_numbers(on_each_processor: Processor, shape: tuple[int, ...]) -> None:
    values = np.empty(shape, dtype=object)
    chunks = [(length - length // 2, length // 2) if length else (0,) for length in shape]
    words = on_each_processor.xp.asarray(rd.from_ints(values, MODULI, chunks=None).residues)
    eager = rd.RNSArray(words, rd.RNS(MODULI))
    for numbers in (eager, rd.IntervalRNSArray.from_rns(eager)):
        x = numbers.rechunk(tuple(chunks))
        selected = x[x > 0]
        assert selected.to_ints().tolist() == []
        assert int(selected.sum()) == 0
        assert [places.compute().tolist() for places in x.nonzero()] == [[]] * len(shape)


@pytest.mark.parametrize("name", [*[*WITH_LENGTHS][::2], *slow(*[*WITH_LENGTHS][1::2])])
def test_lengths_of_a_selection_are_found_where_they_are_needed(name: str) -> None:
    function, oracle = WITH_LENGTHS[name]
    with dask.config.set(scheduler="sync"):
        for what, x, values in selections():
            try:
                expected = oracle(values)
            except (IndexError, ZeroDivisionError):
                with pytest.raises((IndexError, ValueError)):
                    function(x)
                continue
            assert np.asarray(function(x), dtype=object).tolist() == expected, what
            assert x.shape == (len(values),)


def test_selections_are_scanned_sorted_out_and_stored(tmp_path: Path) -> None:
    with dask.config.set(scheduler="sync"):
        for what, x, values in selections():
            if not isinstance(x, rd.RNSArray):
                continue
            assert x[:].cumsum().to_ints().tolist() == list(itertools.accumulate(values)), what
            assert x.cummax().to_ints().tolist() == list(itertools.accumulate(values, max))
            assert x.topk(2).compute().tolist() == sorted(values, reverse=True)[:2]
            assert int(x.prod()) == math.prod(values)
            if values:
                assert int(x.max(axis=0, keepdims=True).to_ints()[0]) == max(values)
                assert int(x @ x) == sum(n * n for n in values)
        for number, (what, x, values) in enumerate(selections()):
            x.to_zarr(tmp_path / str(number))
            assert rd.open_zarr(tmp_path / str(number)).to_ints().tolist() == values, what


def test_selections_of_tables_keep_the_other_axes() -> None:
    values = np.arange(24, dtype=object).reshape(4, 6) * 7 % 19
    words = rd.from_ints(values, MODULI, chunks=None).residues
    with dask.config.set(scheduler="sync"):
        for mask in (values[0] > 9, values[0] > 99):

            def make(mask: Any = mask) -> Any:
                x = rd.RNSArray(da.from_array(words, chunks=(4, 3, 2)), rd.RNS(MODULI))
                return x[:, da.from_array(mask, chunks=2)]

            expected = values[:, mask]
            assert int(make().sum()) == expected.sum()
            assert make().sum(axis=0).compute().tolist() == expected.sum(axis=0).tolist()
            assert make().sum(axis=1).compute().tolist() == expected.sum(axis=1).tolist()
            assert make().prod(axis=0).to_ints().tolist() == expected.prod(axis=0).tolist()
            assert make().prod(axis=1).to_ints().tolist() == expected.prod(axis=1).tolist()
            assert make().prod(keepdims=True).to_ints().tolist() == [[expected.prod()]]
            assert make()[1].to_ints().tolist() == expected[1].tolist()
            assert make().T.to_ints().tolist() == expected.T.tolist()
            if expected.size:
                assert int(make().argmax()) == expected.argmax()
                assert int(make().argmin()) == expected.argmin()
                assert make().max(axis=0).to_ints().tolist() == expected.max(axis=0).tolist()


def test_masks_and_arrays_of_unknown_lengths_meet() -> None:
    values = np.array([5, 3, 9, 1, 7, 8, 6, 2], dtype=object)
    x = rd.RNSArray(
        da.from_array(rd.from_ints(values, MODULI, chunks=None).residues, chunks=(4, 3)), rd.RNS(MODULI)
    )
    chosen = values[values > 4]
    plain = np.array([True, False, True, True, False])
    with dask.config.set(scheduler="sync"):
        assert x[x > 4][da.from_array(plain, chunks=5)].to_ints().tolist() == chosen[plain].tolist()
        assert x[x > 4][plain].to_ints().tolist() == chosen[plain].tolist()
        mask = x[x > 4] > 6  # of unknown length, for an array whose length is known
        known = x[x > 4].compute_chunk_sizes()
        for same in (known, known.rechunk(), known.compute()):
            assert same[mask].to_ints().tolist() == chosen[chosen > 6].tolist()
        with pytest.raises(IndexError, match="size of axis is 8 but size of corresponding boolean axis is 5"):
            x[mask]
        with pytest.raises(IndexError, match="size of axis is 5 but size of corresponding boolean axis is 8"):
            x[x > 4][da.ones(8, dtype=bool)]
        table = x.reshape(2, 4)
        rows, columns = (
            da.from_array(np.array([False, True])),
            da.from_array(np.array([1, 0, 1, 1]) > 0, chunks=2),
        )
        both = table[rows][:, columns]
        expected = values.reshape(2, 4)[1:, [0, 2, 3]]
        assert np.isnan(both.shape).all()
        assert (int(both.argmin()), int(both.max())) == (expected.argmin(), expected.max())
        assert both.to_ints().tolist() == expected.tolist()
        both = table[rows][:, columns]
        assert both[both > 3].to_ints().tolist() == [7, 6]  # by a mask of as many axes


@pytest.mark.parametrize("lengths", [(0, 1), (1, 0), (0, 1, 0), (2, 0, 3), (0, 5)])
def test_masks_and_positions_in_empty_chunks(lengths: tuple[int, ...]) -> None:
    """Dask takes the only number of an axis for one that is repeated, beside an empty chunk."""
    count = sum(lengths)
    values, places = list(range(7, 7 + count)), np.arange(count)[::-1]

    def lazy(given: Any, *more: Any) -> Any:
        return da.from_array(given, chunks=(*more, lengths))

    for system in (rd.RNS(MODULI), rd.Positional(64)):
        x = rd.from_ints(values, system, chunks=2)
        assert x[lazy(places >= 0)].to_ints().tolist() == values
        assert x[lazy(places)].to_ints().tolist() == values[::-1]
        assert rd.where(lazy(places > 0), x, 0).to_ints().tolist() == [*values[:-1], 0]
        assert np.power(x, lazy(places % 2)).to_ints().tolist() == [
            v if k % 2 else 1 for v, k in zip(values, places.tolist(), strict=True)
        ]
        table = rd.stack([x, x])
        first = np.array([[True], [False]]) & (places >= 0)
        assert table[lazy(first, (0, 2, 0))].to_ints().tolist() == values


def test_what_must_not_compute_says_what_to_do() -> None:
    x = selections()[0][1]
    for what in ("size", "nbytes"):
        with pytest.raises(ValueError, match=r"compute_chunk_sizes\(\)"):
            getattr(x, what)
    assert "nan" in repr(x)
    assert "unknown" in x._repr_html_()
    assert x.compute_chunk_sizes().size == 8


def test_the_truth_of_an_array_is_numpys() -> None:
    for make in (
        lambda v: rd.from_ints(v, MODULI, chunks=None),
        lambda v: rd.from_ints(v, MODULI),
        lambda v: rd.IntervalRNSArray.from_ints(v, MODULI),
        lambda v: rd.IntervalRNSArray.from_ints(v, MODULI, chunks=None).rechunk(),
    ):
        assert bool(make([7])) is True
        assert bool(make([0])) is False
        assert bool(make(np.array([[0]]))) is False
        for wrong in ([], [1, 2], [0, 0]):
            with pytest.raises(ValueError, match="ambiguous"):
                bool(make(wrong))
        table = make(np.array([[3, 4], [5, 6]]))
        assert 5 in table
        assert 7 not in table
