"""Shape and joining of arrays of numbers: as NumPy's object arrays, eager and lazy, with their errors."""

import math
from collections.abc import Callable
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
from conftest import Processor
from strategies import MODULI_SETS

import rnsdask as rd
from rnsdask.arrays.number_array import NumberArray

MODULI = MODULI_SETS["table2_8"]
SYSTEMS = {"RNS": rd.RNS(MODULI, signed=True, bound=10**10), "IntervalRNS": rd.IntervalRNS(MODULI)}

# Lengths and chunks: also uneven ones, axes of length 1 and of no numbers.
LAYOUTS: dict[str, tuple[tuple[int, ...], tuple[Any, ...]]] = {
    "line": ((12,), ((5, 6, 1),)),
    "one": ((1,), (1,)),
    "empty": ((0,), (0,)),
    "plane": ((4, 6), ((1, 3), (4, 2))),
    "column": ((5, 1), (2, 1)),
    "empty-plane": ((3, 0), (2, 0)),
    "cube": ((2, 3, 4), (1, (2, 1), (1, 3))),
    "thin-cube": ((1, 4, 1), (1, 3, 1)),
}

Call = Callable[[Any, Any], Any]


@pytest.fixture(autouse=True)
def _in_this_thread() -> Any:
    with dask.config.set(scheduler="sync"):
        yield


def numbers_of(shape: tuple[int, ...], start: int = -7) -> np.ndarray:
    values = [start + 10**8 * k * (-1) ** k for k in range(math.prod(shape))]
    return np.array([*values, None], dtype=object)[:-1].reshape(shape)


def array_of(
    numbers: np.ndarray, system: Any, chunks: tuple[Any, ...] | None, processor: Processor | None = None
) -> Any:
    words = system.encode(numbers.ravel()).reshape(system.rows, *numbers.shape)
    words = processor.xp.asarray(words) if processor else words
    words = words if chunks is None else da.from_array(words, chunks=(-1, *chunks), asarray=False)
    kind = rd.RNSArray if isinstance(system, rd.RNS) else rd.IntervalRNSArray
    return kind(words, system)


def outcome(call: Call, module: Any, x: Any) -> Any:
    """What a call returns, or the type of what it raises."""
    try:
        return call(module, x)
    except (ValueError, TypeError, IndexError, ZeroDivisionError) as error:
        return type(error)


def check(call: Call, a: np.ndarray, x: Any) -> None:
    """That a call does to an array of numbers what it does to NumPy's array of them."""
    expected, found = outcome(call, np, a), outcome(call, rd, x)
    if isinstance(expected, type) or isinstance(found, type):
        assert found is expected
        return
    for part, result in zip(
        expected if isinstance(expected, list) else [expected],
        found if isinstance(found, list) else [found],
        strict=True,
    ):
        (computed,) = dask.compute(result)
        if part.ndim == 0:
            assert isinstance(computed, int)
            assert computed == part.item()
            continue
        assert type(result) is type(x)
        assert result.system == x.system
        assert result.shape == computed.shape == part.shape
        assert dask.is_dask_collection(result) == dask.is_dask_collection(x)
        assert (computed.to_ints() == part).all()
        assert result.chunks is None or all(all(axis) or axis == (0,) for axis in result.chunks)
        if isinstance(computed.words, np.ndarray):
            assert not computed.words.flags.writeable


CALLS: dict[str, Call] = {
    # ---- one array in another shape
    "reshape -1": lambda _, x: x.reshape(-1),
    "reshape rows": lambda _, x: x.reshape(2, -1),
    "reshape tuple": lambda _, x: x.reshape((-1, 2, 3)),
    "reshape 4 3": lambda _, x: x.reshape(4, 3),
    "reshape 1": lambda _, x: x.reshape(1),
    "reshape ()": lambda _, x: x.reshape(()),
    "reshape 0": lambda _, x: x.reshape(0, 7),
    "reshape two unknowns": lambda _, x: x.reshape(-1, -1),
    "reshape float": lambda _, x: x.reshape(2.0, -1),
    "reshape with order": lambda _, x: x.reshape(-1, order="C"),
    "ravel": lambda _, x: x.ravel(),
    "ravel transposed": lambda _, x: x.T.ravel(),
    "T": lambda _, x: x.T,
    "transpose": lambda _, x: x.transpose(),
    "transpose None": lambda _, x: x.transpose(None),
    "transpose 1 0": lambda _, x: x.transpose(1, 0),
    "transpose tuple": lambda _, x: x.transpose((2, 0, -2)),
    "transpose 0": lambda _, x: x.transpose(0),
    "transpose repeated": lambda _, x: x.transpose(0, 0),
    "transpose far": lambda _, x: x.transpose(0, 5),
    "swapaxes": lambda _, x: x.swapaxes(0, -1),
    "swapaxes 1 2": lambda _, x: x.swapaxes(1, 2),
    "squeeze": lambda _, x: x.squeeze(),
    "squeeze 0": lambda _, x: x.squeeze(0),
    "squeeze -1": lambda _, x: x.squeeze(axis=-1),
    "squeeze tuple": lambda _, x: x.squeeze((0, 2)),
    "squeeze none": lambda _, x: x.squeeze(()),
    "None in an index": lambda _, x: x[None, ..., None],
    "expand_dims 0": lambda m, x: m.expand_dims(x, 0),
    "expand_dims -1": lambda m, x: m.expand_dims(x, -1),
    "expand_dims tuple": lambda m, x: m.expand_dims(x, (0, -1)),
    "expand_dims far": lambda m, x: m.expand_dims(x, 5),
    "expand_dims repeated": lambda m, x: m.expand_dims(x, (1, 1)),
    # ---- several arrays in one
    "concatenate": lambda m, x: m.concatenate([x, x[1:], x[:0]]),
    "concatenate -1": lambda m, x: m.concatenate((x, x[..., ::-1], x[..., :1]), axis=-1),
    "concatenate 1": lambda m, x: m.concatenate([x, x], 1),
    "concatenate all": lambda m, x: m.concatenate([x, x[:1]], axis=None),
    "concatenate one": lambda m, x: m.concatenate([x]),
    "concatenate none": lambda m, _: m.concatenate([]),
    "concatenate shapes": lambda m, x: m.concatenate([x, x[:, 1:]], 0),
    "concatenate axes": lambda m, x: m.concatenate([x, x[None]]),
    "stack": lambda m, x: m.stack([x, x[::-1], x]),
    "stack -1": lambda m, x: m.stack((x, x), axis=-1),
    "stack 1": lambda m, x: m.stack([x, x], 1),
    "stack far": lambda m, x: m.stack([x, x], 9),
    "stack shapes": lambda m, x: m.stack([x, x[:0], x[None]]),
    "stack none": lambda m, _: m.stack([]),
    "hstack": lambda m, x: m.hstack([x, x]),
    "vstack": lambda m, x: m.vstack([x, x[..., ::-1]]),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("kind", SYSTEMS)
def test_as_numpys(kind: str, name: str) -> None:
    for layout, (shape, chunks) in LAYOUTS.items():
        a = numbers_of(shape)
        for lengths in (None, chunks):
            try:
                check(CALLS[name], a, array_of(a, SYSTEMS[kind], lengths))
            except AssertionError as error:
                raise AssertionError(f"{layout}, chunks {lengths}") from error


@pytest.mark.parametrize("name", ["reshape rows", "T", "concatenate", "stack -1", "squeeze"])
def test_on_each_processor(name: str, on_each_processor: Processor) -> None:
    a = numbers_of((4, 6))
    for chunks in (None, (3, 4)):
        check(CALLS[name], a, array_of(a, SYSTEMS["RNS"], chunks, on_each_processor))


# ---- what joins --------------------------------------------------------------------------------------------


def test_the_bound_of_a_join_is_the_greatest() -> None:
    small, large, unknown = (
        array_of(numbers_of((3,), 0)[:1], rd.RNS(MODULI, True, b), None) for b in (5, 99, None)
    )
    assert rd.concatenate([small, large, small]).bound == 99
    assert rd.stack([small, small]).bound == 5
    assert rd.vstack([large, unknown]).bound is None
    assert rd.hstack([unknown]).bound is None


def test_a_join_of_eager_and_lazy_is_lazy() -> None:
    a = numbers_of((4, 6))
    for system in SYSTEMS.values():
        eager, lazy = array_of(a, system, None), array_of(a, system, (2, 4))
        joined = rd.concatenate([eager, lazy], axis=1)
        assert dask.is_dask_collection(joined)
        assert joined.to_ints().tolist() == np.concatenate([a, a], 1).tolist()


def test_what_does_not_join() -> None:
    a = numbers_of((3,))
    x = array_of(a, SYSTEMS["RNS"], None)
    with pytest.raises(TypeError, match="RNSArrays and IntervalRNSArrays do not mix; IntervalRNSArray"):
        rd.concatenate([x, array_of(a, SYSTEMS["IntervalRNS"], None)])
    with pytest.raises(TypeError, match="stack takes arrays of numbers, got int at position 1"):
        rd.stack([x, 5])
    with pytest.raises(TypeError, match="concatenate takes arrays of numbers, got ndarray at position 0"):
        rd.concatenate([a, x])
    with pytest.raises(TypeError, match="expand_dims takes arrays of numbers, got list"):
        rd.expand_dims([1], 0)
    with pytest.raises(ValueError, match="different moduli sets"):
        rd.concatenate([x, array_of(a, rd.RNS(rd.ModuliSet.for_bits(99), True), None)])
    with pytest.raises(ValueError, match="different ranges"):
        rd.hstack([x, array_of(abs(a), rd.RNS(MODULI), None)])


# ---- lazy arrays -------------------------------------------------------------------------------------------


def test_nothing_is_computed_and_rows_stay_in_one_chunk() -> None:
    x = array_of(numbers_of((6, 4)), SYSTEMS["RNS"], (2, 3))
    with dask.config.set(scheduler=lambda *_, **__: pytest.fail("something was computed")):
        results = [call(rd, x) for call in (CALLS["reshape rows"], CALLS["T"], CALLS["concatenate"])]
        results += [x.reshape(3, 8), x.reshape(2, 3, 4), x.ravel(), rd.stack([x, x], -1)]
    assert all(result.words.numblocks[0] == 1 for result in results)


def test_of_unknown_length() -> None:
    a = numbers_of((6, 4))
    x = array_of(a, SYSTEMS["RNS"], (2, 3))
    some, chosen = x[da.from_array(np.arange(6) > 2, chunks=2)], a[3:]
    for refused in (lambda: some.reshape(-1), some.ravel, lambda: rd.concatenate([some, some], 1)):
        with pytest.raises(ValueError, match="call compute_chunk_sizes"):
            refused()
    with pytest.raises(ValueError, match="size not equal to one"):
        some.squeeze(0)
    assert some.T.to_ints().tolist() == chosen.T.tolist()
    assert rd.concatenate([x, some]).to_ints().tolist() == np.concatenate([a, chosen]).tolist()
    assert rd.expand_dims(some, 1).to_ints().tolist() == chosen[:, None].tolist()


def test_other_orders_are_refused() -> None:
    x = array_of(numbers_of((4, 6)), SYSTEMS["RNS"], None)
    for refused in (lambda: x.reshape(-1, order="F"), lambda: x.ravel("F")):
        with pytest.raises(ValueError, match="order must be 'C', got 'F'"):
            refused()


def test_results_calculate() -> None:
    """Views of any strides are operands as others are."""
    a = numbers_of((4, 6))
    for system in SYSTEMS.values():
        for chunks in (None, (3, 4)):
            x = array_of(a, system, chunks)
            found: NumberArray = x.T.reshape(3, 8) + rd.concatenate([x[:2], x[2:]]).reshape(3, 8)
            expected = a.T.reshape(3, 8) + a.reshape(3, 8)
            assert found.to_ints().tolist() == expected.tolist()
            assert dask.compute(found.max(), found.argmin()) == (expected.max(), expected.argmin())
