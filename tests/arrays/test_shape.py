"""Shape and joining of arrays of numbers: as NumPy's object arrays, eager and lazy, with their errors."""

import math
from collections.abc import Callable
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
from conftest import Processor
from strategies import MODULI_SETS, slow

import rnsdask as rd

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


pytestmark = pytest.mark.usefixtures("in_this_thread")


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
    """Return the result of a call, or the type of the error that it raises."""
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
        if np.ndim(part) == 0:
            assert isinstance(computed, int)
            assert computed == part
            continue
        assert type(result) is type(x)
        assert result.system == x.system
        assert result.shape == computed.shape == part.shape
        assert dask.is_dask_collection(result) == dask.is_dask_collection(x)
        assert (computed.to_ints() == part).all()
        assert all(all(axis) or axis == (0,) for axis in getattr(result, "chunks", ()))
        if isinstance(computed.words, np.ndarray):
            assert not computed.words.flags.writeable


def of(module: Any, name: str, x: Any, *arguments: Any) -> Any:
    """NumPy's function, or the method of an array of numbers."""
    return getattr(np, name)(x, *arguments) if module is np else getattr(x, name)(*arguments)


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
    "concatenate rows": lambda m, x: m.concatenate(x.reshape(-1, 1, 2)),
    "concatenate none": lambda m, _: m.concatenate([]),
    "concatenate shapes": lambda m, x: m.concatenate([x, x[:, 1:]], 0),
    "concatenate axes": lambda m, x: m.concatenate([x, x[None]]),
    "concatenate axes along 1": lambda m, x: m.concatenate([x[None], x], 1),
    "stack": lambda m, x: m.stack([x, x[::-1], x]),
    "stack -1": lambda m, x: m.stack((x, x), axis=-1),
    "stack 1": lambda m, x: m.stack([x, x], 1),
    "stack far": lambda m, x: m.stack([x, x], 9),
    "stack shapes": lambda m, x: m.stack([x, x[:0], x[None]]),
    "stack none": lambda m, _: m.stack([]),
    "block": lambda m, x: m.block([[x, x], [x[::-1], x]]),
    "block of one": lambda m, x: m.block(x),
    "block of a list": lambda m, x: m.block([x, x[..., :1], x[..., :0]]),
    "block of four levels": lambda m, x: m.block([[[[x], [x]]], [[[x], [x]]]]),
    "block of fewer axes": lambda m, x: m.block([[x], [x.ravel()[: x.shape[-1]]], [x[:1]]]),
    "block of fewer axes beside": lambda m, x: m.block([[x[:1], x.ravel()[:3]]]),
    "block of columns": lambda m, x: m.block([[x, x[:, :0]], [x[:0]]]),
    "block none": lambda m, _: m.block([]),
    "block empty list": lambda m, x: m.block([[x], []]),
    "block other depth": lambda m, x: m.block([[x], x]),
    "block deeper": lambda m, x: m.block([x, [x]]),
    "block tuple": lambda m, x: m.block([(x, x)]),
    "block other shapes": lambda m, x: m.block([[x], [x, x]]),
    "hstack": lambda m, x: m.hstack([x, x]),
    "vstack": lambda m, x: m.vstack([x, x[..., ::-1]]),
    # ---- numbers in other places, or more often
    "flip": lambda m, x: of(m, "flip", x),
    "flip -1": lambda m, x: of(m, "flip", x, -1),
    "flip tuple": lambda m, x: of(m, "flip", x, (0, 1)),
    "flip repeated": lambda m, x: of(m, "flip", x, (0, 0)),
    "roll": lambda m, x: of(m, "roll", x, 3),
    "roll 0": lambda m, x: of(m, "roll", x, -1, 0),
    "roll -1": lambda m, x: of(m, "roll", x, 10**6 + 1, -1),
    "roll axes": lambda m, x: of(m, "roll", x, (1, -2), (1, 0)),
    "roll the same axis": lambda m, x: of(m, "roll", x, [1, 1], (0, 0)),
    "roll all axes": lambda m, x: of(m, "roll", x, 1, (0, -1)),
    "roll in C order twice": lambda m, x: of(m, "roll", x, (1, 2)),
    "roll mismatched": lambda m, x: of(m, "roll", x, (1, 2, 3), (0, 0)),
    "roll far": lambda m, x: of(m, "roll", x, 1, 4),
    "take": lambda _, x: x.take([0, -1, 0, 2]),
    "take one": lambda _, x: x.take(-1),
    "take 0": lambda _, x: x.take(0, axis=0),
    "take -1": lambda _, x: x.take(np.array([[0, 1], [2, 0]], np.uint8), axis=-1),
    "take 1": lambda _, x: x.take((1, 0), 1),
    "take Booleans": lambda _, x: x.take([True, False], 0),
    "take none": lambda _, x: x.take(np.array([], dtype=int), -1),
    "take far": lambda _, x: x.take([0, 99], 0),
    "take by NumPy": lambda _, x: np.take(x, [0, 0], axis=-1),
    "repeat": lambda _, x: x.repeat(2),
    "repeat 0": lambda _, x: x.repeat(3, axis=0),
    "repeat -1": lambda _, x: x.repeat([5], -1),
    "repeat 1": lambda _, x: x.repeat(1, 1),
    "repeat never": lambda _, x: x.repeat(0, 0),
    "repeat each": lambda _, x: x.repeat(np.arange(x.shape[-1]), axis=-1),
    "repeat mismatched": lambda _, x: x.repeat([1, 2, 3, 4, 5, 6, 7], axis=0),
    "repeat negatively": lambda _, x: x.repeat(-1, axis=0),
    "repeat each negatively": lambda _, x: x.repeat([-1] * x.shape[0], axis=0),
    "repeat far": lambda _, x: x.repeat(2, 3),
    "tile": lambda m, x: m.tile(x, 3),
    "tile pair": lambda m, x: m.tile(x, (2, 3)),
    "tile many": lambda m, x: m.tile(x, (2, 1, 1, 2)),
    "tile 1": lambda m, x: m.tile(x, ()),
    "tile never": lambda m, x: m.tile(x, (0, 2)),
    "tile floats": lambda m, x: m.tile(x, 1.5),
    "broadcast_to more": lambda m, x: m.broadcast_to(x, (3, *x.shape)),
    "broadcast_to longer": lambda m, x: m.broadcast_to(x, (*x.shape[:-1], 4)),
    "broadcast_to none": lambda m, x: m.broadcast_to(x[:1], (0, *x.shape[1:])),
    "broadcast_to int": lambda m, x: m.broadcast_to(x, 12),
    "broadcast_to ()": lambda m, x: m.broadcast_to(x, ()),
    "broadcast_to negative": lambda m, x: m.broadcast_to(x, (-1, *x.shape)),
    "pad": lambda m, x: m.pad(x, 2),
    "pad sides": lambda m, x: m.pad(x, (0, 7), constant_values=-(10**9)),
    "pad axes": lambda m, x: m.pad(x, [(1, 2), (0, 3)], "constant"),
    "pad far": lambda m, x: m.pad(x, [(1, 2)] * 4),
    "pad negatively": lambda m, x: m.pad(x, -1),
    "pad floats": lambda m, x: m.pad(x, 1.0),
    "split": lambda m, x: m.split(x, 2),
    "split -1": lambda m, x: m.split(x, 3, axis=-1),
    "split by none": lambda m, x: m.split(x, 0),
    "split at": lambda m, x: m.split(x, [1, 1, 9, -1, 3], axis=-1),
    "split at nothing": lambda m, x: m.split(x, []),
    "split far": lambda m, x: m.split(x, 1, axis=3),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("kind", ["RNS", *slow("IntervalRNS")])
def test_as_numpys(kind: str, name: str) -> None:
    for layout, (shape, chunks) in LAYOUTS.items():
        a = numbers_of(shape)
        for lengths in (None, chunks):
            try:
                check(CALLS[name], a, array_of(a, SYSTEMS[kind], lengths))
            except AssertionError as error:
                raise AssertionError(f"{layout}, chunks {lengths}") from error


@pytest.mark.parametrize(
    "name",
    [
        "reshape rows",
        "T",
        "concatenate",
        "stack -1",
        "squeeze",
        "roll -1",
        "repeat each",
        "tile pair",
        "broadcast_to more",
        "pad",
        "take -1",
    ],
)
def test_on_each_processor(name: str, on_each_processor: Processor) -> None:
    a = numbers_of((4, 6))
    for chunks in (None, (3, 4)):
        check(CALLS[name], a, array_of(a, SYSTEMS["RNS"], chunks, on_each_processor))


# ---- what joins -------------------------------------------------------------------------------------------


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


def test_what_makes_no_block() -> None:
    x = rd.from_ints([[1, 2]], MODULI)
    with pytest.raises(TypeError, match="block takes arrays of numbers, got int at position 1"):
        rd.block([[x, 3]])
    with pytest.raises(TypeError, match=r"block takes nested lists, got a tuple as arrays\[1\]"):
        rd.block([[x], (x,)])
    with pytest.raises(ValueError, match=r"block joins no empty list, got one as arrays\[0\]\[1\]"):
        rd.block([[[x], []]])
    with pytest.raises(ValueError, match=r"nested alike: arrays\[0\]\[0\] is 0 deep, arrays\[0\]\[2\] 1"):
        rd.block([[x, x, [x]]])


def test_what_does_not_join() -> None:
    a = numbers_of((3,))
    x = array_of(a, SYSTEMS["RNS"], None)
    with pytest.raises(TypeError, match="RNSArrays and IntervalRNSArrays do not mix; IntervalRNSArray"):
        rd.concatenate([x, array_of(a, SYSTEMS["IntervalRNS"], None)])
    with pytest.raises(TypeError, match="stack takes arrays of numbers, got int at position 1"):
        rd.stack([x, 5])
    with pytest.raises(TypeError, match="hstack takes a sequence of arrays, got one RNSArray"):
        rd.hstack(x)
    with pytest.raises(TypeError, match="concatenate takes arrays of numbers, got ndarray at position 0"):
        rd.concatenate([a, a])
    with pytest.raises(TypeError, match="expand_dims takes arrays of numbers, got list"):
        rd.expand_dims([1], 0)
    with pytest.raises(ValueError, match="different moduli sets"):
        rd.concatenate([x, array_of(a, rd.RNS(rd.ModuliSet.for_bits(99), True), None)])
    with pytest.raises(ValueError, match="different ranges"):
        rd.hstack([x, array_of(abs(a), rd.RNS(MODULI), None)])


def test_a_padded_array_is_bounded() -> None:
    x = array_of(numbers_of((3,), 0)[:1], rd.RNS(MODULI, True, 5), None)
    assert [rd.pad(x, 1, constant_values=v).bound for v in (0, 3, -9)] == [5, 5, 9]
    assert rd.pad(array_of(numbers_of((3,)), rd.RNS(MODULI, True), None), 1).bound is None
    with pytest.raises(ValueError, match="is outside the signed range"):
        rd.pad(x, 1, constant_values=MODULI.product)
    with pytest.raises(TypeError, match="constant_values must be an integer"):
        rd.pad(x, 1, constant_values=0.5)
    with pytest.raises(ValueError, match="got 'maximum'"):
        rd.pad(x, 1, "maximum")


@pytest.mark.parametrize("system", ["RNS", *slow("IntervalRNS")])
@pytest.mark.parametrize("shape", [(1,), (2,), (5,), (3, 4), (2, 0)])
@pytest.mark.parametrize("chunks", [None, 2])
def test_numbers_are_repeated_as_numpy_does(chunks: int | None, shape: tuple[int, ...], system: str) -> None:
    values = numbers_of(shape)
    x = array_of(values, SYSTEMS[system], chunks and (chunks,) * len(shape))
    for mode in ("edge", "reflect", "symmetric", "wrap"):
        for widths in (0, 1, 3, 7, (2, 0), (0, 9)):
            if not x.size and widths:
                with pytest.raises(ValueError, match="an empty axis has no numbers for mode"):
                    rd.pad(x, widths, mode)
                continue
            padded = np.pad(x, widths, mode)
            assert type(padded) is type(x)
            assert padded.system.bound == x.system.bound
            np.testing.assert_array_equal(padded.to_ints(), np.pad(values, widths, mode))


def test_what_is_stricter_than_numpy() -> None:
    x = array_of(numbers_of((4, 6)), SYSTEMS["RNS"], None)
    for lazy in (x, x.rechunk()):
        for floats in (lambda y: y.roll(1.5), lambda y: y.repeat(1.5), lambda y: y.take([0.0])):
            with pytest.raises(TypeError):
                floats(lazy)
        with pytest.raises(ValueError, match="reps must not be negative, got -1"):
            rd.tile(lazy[:0], -1)
    with pytest.raises(ValueError, match="mode must be 'raise', got 'wrap'"):
        x.take(7, 0, mode="wrap")
    with pytest.raises(TypeError, match="takes no out"):
        x.take(1, out=x)  # type: ignore[arg-type]


def test_lazy_indices_are_taken() -> None:
    a = numbers_of((4, 6))
    indices = np.array([3, 0, -1])
    for chunks in (None, (3, 4)):
        x = array_of(a, SYSTEMS["RNS"], chunks)
        assert x.take(da.from_array(indices, chunks=2), 1).to_ints().tolist() == a.take(indices, 1).tolist()
        assert rd.stack([x, x]).max(axis=(0, 1)).to_ints().tolist() == a.max(axis=0).tolist()
    assert int(x.take(x.argmax())) == a.max()


def test_what_makes_arrays_longer_keeps_chunks_short() -> None:
    x = array_of(numbers_of((4,)), SYSTEMS["RNS"], (3,))
    assert rd.pad(x, (0, 10)).chunks == ((3, 1, 3, 3, 3, 1),)
    assert rd.tile(x, 2).chunks == ((3, 1, 3, 1),)
    wide = rd.broadcast_to(x, (10**4, 10**4, 4))
    assert wide.chunks[1:] == ((10**4,), (3, 1))
    assert 4 * len(MODULI) * math.prod(wide.words.chunksize[1:]) in range(2**25, 2**26)


# ---- lazy arrays ------------------------------------------------------------------------------------------


def test_more_chunks_than_memory_has_room_for_are_refused_before_they_are_made() -> None:
    x = rd.from_ints(numbers_of((4, 6)), SYSTEMS["RNS"]).rechunk(2)
    for longer in (
        lambda: rd.tile(x, 2**40),
        lambda: rd.tile(x, (2**20, 2**20)),
        lambda: rd.tile(x, (0, 2**40)),
        lambda: rd.pad(x, 2**40),
        lambda: rd.pad(x, [(2**25, 0), (2**25, 0)]),
        lambda: rd.broadcast_to(x, (2**50, 4, 6)),
        lambda: rd.broadcast_to(x[:1, :1], (2**20, 2**40)),
    ):
        with pytest.raises(rd.JobError, match=r"its \d+ chunks would take .* GB for Dask's graph alone"):
            longer()


def test_nothing_is_computed_and_rows_stay_in_one_chunk() -> None:
    x = array_of(numbers_of((6, 4)), SYSTEMS["RNS"], (2, 3))
    with dask.config.set(scheduler=lambda *_, **__: pytest.fail("something was computed")):
        results = [call(rd, x) for call in (CALLS["reshape rows"], CALLS["T"], CALLS["concatenate"])]
        results += [x.reshape(3, 8), x.reshape(2, 3, 4), x.ravel(), rd.stack([x, x], -1)]
    assert all(result.words.numblocks[0] == 1 for result in results)


def test_of_unknown_length() -> None:
    a = numbers_of((6, 4))
    x = array_of(a, SYSTEMS["RNS"], (2, 3))
    mask, chosen = da.from_array(np.arange(6) > 1, chunks=2), a[2:]
    calls = ["reshape -1", "ravel", "concatenate 1", "flip", "roll", "take", "repeat", "tile", "pad", "split"]
    assert rd.broadcast_to(x[mask], (2, 4, 4)).to_ints().tolist() == [chosen.tolist()] * 2
    for name in calls:
        found, expected = CALLS[name](rd, x[mask]), CALLS[name](np, chosen)
        pairs = zip(found, expected, strict=True) if isinstance(found, list) else [(found, expected)]
        assert all(part.to_ints().tolist() == exact.tolist() for part, exact in pairs), name
    with pytest.raises(ValueError, match="size not equal to one"):
        x[mask].squeeze(0)
    one = da.from_array(np.arange(6) == 1, chunks=2)
    assert x[one].squeeze().to_ints().tolist() == x[one].squeeze(0).to_ints().tolist() == a[1].tolist()
    some = x[mask]
    assert some.T.to_ints().tolist() == chosen.T.tolist()
    assert rd.concatenate([x, some]).to_ints().tolist() == np.concatenate([a, chosen]).tolist()
    assert rd.expand_dims(some, 1).to_ints().tolist() == chosen[:, None].tolist()
    assert not np.array_equal(x[mask], x[one])
    assert not np.array_equal(x, x[mask])
    parts = np.array_split(x[mask], 3)
    assert [p.to_ints().tolist() for p in parts] == [p.tolist() for p in np.array_split(chosen, 3)]


def test_other_orders_are_refused() -> None:
    x = array_of(numbers_of((4, 6)), SYSTEMS["RNS"], None)
    for refused in (lambda: x.reshape(-1, order="F"), lambda: x.ravel("F")):
        with pytest.raises(ValueError, match="order must be 'C', got 'F'"):
            refused()
