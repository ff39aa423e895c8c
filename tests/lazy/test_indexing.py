"""Indexing: against NumPy's arrays of Python ints, over a grid of indices, eager and lazy, of all arrays."""

import random
from collections.abc import Callable
from typing import Any

import dask.array as da
import numpy as np
import pytest

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


@pytest.mark.parametrize("seed", range(8))
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
        (
            np.ones(3, bool),
            "boolean index did not match indexed array along axis 0; size of axis is 5 but size of "
            "corresponding boolean axis is 3",
        ),
        (np.array([2**64 - 1], dtype=np.uint64), "index 18446744073709551615 is out of bounds"),
    ],
)
def test_messages_count_the_axes_of_the_numbers(index: Any, message: str) -> None:
    eager = rd.from_ints(np.arange(20).reshape(5, 4), MODULI, chunks=None)
    lazy = rd.RNSArray(da.from_array(eager.residues, chunks=(4, 2, 3)), rd.RNS(MODULI))
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
        assert found.chunks is not None
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
    with pytest.raises(NotImplementedError, match="beside a Dask array an index takes integers"):
        table[[0, 1], da.ones(4, dtype=bool)]


def test_lengths_that_are_unknown_say_what_to_do() -> None:
    values = [5, 3, 9, 1, 7, 2]
    for whole in (
        rd.from_ints(values, MODULI, chunks=128),
        rd.IntervalRNSArray.from_ints(values, MODULI, chunks=128),
    ):
        x: Any = whole[whole > 4]
        attempts: list[Callable[[], Any]] = [
            lambda x=x: len(x),
            lambda x=x: x.size,
            lambda x=x: x.nbytes,
            lambda x=x: x[0],
            lambda x=x: x[::2],
            lambda x=x: x[[0]],
            lambda x=x: x.rechunk(128),
            lambda x=x: x.max(),
            lambda x=x: x.sum(),
            lambda x=x: bool(x),
            lambda x=x: list(x),
            lambda x=x: x.to_zarr("never.zarr"),
        ]
        if isinstance(x, rd.RNSArray):
            attempts += [
                lambda x=x: x.topk(2),
                lambda x=x: x.cumsum(),
                lambda x=x: x.cummax(),
                lambda x=x: x.max(axis=0, keepdims=True),
                lambda x=x: x @ x,
            ]
            assert "unknown" in x._repr_html_()
        for attempt in attempts:
            with pytest.raises(ValueError, match=r"compute_chunk_sizes\(\)"):
                attempt()
        assert "nan" in repr(x)
        assert x[x > 5].to_ints().tolist() == [9, 7]
        assert x.compute_chunk_sizes().shape == (3,)
        assert int(x[0]) == 5


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
