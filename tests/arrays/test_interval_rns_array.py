"""IntervalRNSArray against Python's integers: NumPy, CuPy, Dask, order, division, reductions, storage."""

import operator
import random
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
import zarr
from conftest import Processor
from interval_numbers import check_columns, edge_numbers
from sample_arrays import RELATIONS
from strategies import BOTH_RANGES, MODULI_SETS, slow

import rnsdask as rd
from rnsdask import IntervalRNSArray
from rnsdask.backend import to_backend
from rnsdask.core import rows
from rnsdask.core.errors import CorruptChunkError
from rnsdask.lazy import elementwise

MODULI = MODULI_SETS["table2_8"]
HALF = [operator.add, operator.sub, operator.floordiv, operator.mod]
KINDS = ["eager", "dask"]


def array_of(
    values: Any, moduli: rd.ModuliSet, processor: Processor, kind: str = "eager"
) -> IntervalRNSArray:
    host = IntervalRNSArray.from_ints(values, moduli)
    array = IntervalRNSArray(processor.xp.asarray(host.columns), rd.IntervalRNS(moduli))
    if kind == "eager":
        return array
    # Chunks of no particular length, on the processor.
    chunks = (len(host.columns), *(max(1, length // 3) for length in host.shape))
    return IntervalRNSArray(
        da.from_array(array.columns, chunks=chunks, asarray=False), rd.IntervalRNS(moduli)
    )


def computed(array: Any, processor: Processor) -> np.ndarray:
    return processor.to_numpy(array.compute() if isinstance(array, da.Array) else array)


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def some_numbers(seed: int, count: int, bits: int = 60) -> list[int]:
    generator = random.Random(seed)
    values = [generator.randint(-(2**bits), 2**bits) >> generator.choice([0, 0, 50]) for _ in range(count)]
    return [0, 1, -1, *values, 2**bits, -(2**bits)]


# ---- what it is -------------------------------------------------------------------------------------------


def computed_columns(x: IntervalRNSArray) -> Any:
    return x.columns.compute() if isinstance(x.columns, da.Array) else x.columns


def test_from_ints_refuses_numbers_out_of_range() -> None:
    product = MODULI.product
    IntervalRNSArray.from_ints([product - 1, 1 - product], MODULI)
    with pytest.raises(ValueError, match=r"value at position 2, -0x.* is outside the range from -"):
        IntervalRNSArray.from_ints([0, 1, -product], MODULI)


def test_from_residues(on_each_processor: Processor) -> None:
    x = array_of([5, -7, 0], MODULI, on_each_processor)
    again = IntervalRNSArray.from_residues(x.residues.copy(), x.sign, MODULI)
    check_columns(again.columns, [5, -7, 0], MODULI, on_each_processor)
    wrong = x.residues.copy()
    wrong[3, 1] = MODULI[3]
    with pytest.raises(ValueError, match="not below its modulus"):
        IntervalRNSArray.from_residues(wrong, x.sign, MODULI)
    with pytest.raises(ValueError, match="signs must be 0 or 1"):
        IntervalRNSArray.from_residues(x.residues, x.sign + 1, MODULI)


def test_columns_are_checked() -> None:
    with pytest.raises(TypeError, match="must be a NumPy, CuPy or Dask array"):
        IntervalRNSArray([1, 2], rd.IntervalRNS(MODULI))
    with pytest.raises(TypeError, match="uint32"):
        IntervalRNSArray(np.zeros((14, 2)), rd.IntervalRNS(MODULI))
    with pytest.raises(ValueError, match="must have 14 rows"):
        IntervalRNSArray(np.zeros((8, 2), dtype=np.uint32), rd.IntervalRNS(MODULI))


@pytest.mark.parametrize("name", ["one_full", "two_three", "tiny_unsorted", "top", "table2_32"])
@BOTH_RANGES
def test_rns_arrays_and_back(name: str, signed: bool, on_each_processor: Processor, kind: str) -> None:
    moduli = MODULI_SETS[name]
    lowest, highest = moduli.value_range(signed)
    inside = [v for v in edge_numbers(moduli, random.Random(2)) if lowest <= v <= highest]
    inside = sorted({*inside, lowest, highest})
    rns = rd.from_ints(inside, moduli, signed, chunks=None)
    residues = on_each_processor.xp.asarray(rns.residues)
    if kind == "dask":
        residues = da.from_array(residues, chunks=(len(moduli), 4), asarray=False)
    x = IntervalRNSArray.from_rns(rd.RNSArray(residues, rd.RNS(moduli, signed)))
    check_columns(computed_columns(x), inside, moduli, on_each_processor)
    again = x.to_rns(signed)
    assert again.signed == signed
    assert again.to_ints().tolist() == inside
    outside = array_of(
        [0, highest + 1] if highest + 1 < moduli.product else [0, -1], moduli, on_each_processor
    )
    if moduli.product > 2:
        with pytest.raises(ValueError, match="at flat index 1 is outside the"):
            outside.to_rns(signed)


# ---- arithmetic -------------------------------------------------------------------------------------------


def test_the_papers_failing_case(on_each_processor: Processor) -> None:
    x = array_of([10**20], MODULI, on_each_processor)
    y = array_of([10**20 + 1], MODULI, on_each_processor)
    for algorithm in (None, 1, 2, "digits"):
        result = elementwise.apply(rows.subtract, x, y, algorithm=algorithm)
        check_columns(result.columns, [-1], MODULI, on_each_processor)
        check_columns(
            elementwise.apply(rows.add, x, -x, algorithm=algorithm).columns, [0], MODULI, on_each_processor
        )


@pytest.mark.parametrize("algorithm", [0, 3, "digit", True, 2.0])
def test_unknown_algorithms(algorithm: Any) -> None:
    x = IntervalRNSArray.from_ints([1], MODULI)
    with pytest.raises(ValueError, match="algorithm must be 1, 2 or 'digits'"):
        elementwise.apply(rows.add, x, x, algorithm=algorithm)


def test_division_by_zero(on_each_processor: Processor, kind: str) -> None:
    x = array_of([4, 5, 6], MODULI, on_each_processor, kind)
    with pytest.raises(ZeroDivisionError, match="by the integer 0"):
        x // 0
    with pytest.raises(ZeroDivisionError, match="flat index 2"):
        computed_columns(x % array_of([1, 1, 0], MODULI, on_each_processor))


@pytest.mark.parametrize("name", ["one", "two_three", "tiny_unsorted", "top"])
def test_division_of_edges(name: str, on_each_processor: Processor) -> None:
    moduli = MODULI_SETS[name]
    values = edge_numbers(moduli, random.Random(8))[::2]
    pairs = [(x, y) for x in values for y in values if y]
    x, y = (array_of(side, moduli, on_each_processor) for side in zip(*pairs, strict=True))
    quotients, remainders = divmod(x, y)
    check_columns(quotients.columns, [x // y for x, y in pairs], moduli, on_each_processor)
    check_columns(remainders.columns, [x % y for x, y in pairs], moduli, on_each_processor)


# ---- comparison -------------------------------------------------------------------------------------------


def test_a_relation_decided_by_ranges_drops_no_error() -> None:
    x = IntervalRNSArray.from_ints([MODULI.product - 1] * 300, MODULI, chunks=128)
    zeros = IntervalRNSArray.from_ints([0] * 300, MODULI, chunks=128)
    for raising in (x * x, x // zeros, x % zeros, abs(x + x), -(x - (-x)), (x * x)[3:200]):
        for relation in RELATIONS.values():
            for value in (MODULI.product, -MODULI.product, 10**200):
                with pytest.raises((OverflowError, ZeroDivisionError)):
                    print(relation, value, relation(raising, value).compute(scheduler="sync"))


# ---- reductions -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "values",
    [
        [5],
        [0, 0, 0],
        [-5, -3, -3, -9, -9],
        [0, -5, 0],
        [7, 7, -7, -7],
        [10**30, 10**30 + 1, 10**30 + 1, 10**30],
        [-(10**30), -(10**30) - 1, -(10**30) - 1, -1],
        [1, 2**120, -(2**120), 2**120],
        edge_numbers(MODULI, random.Random(9)),
    ],
    ids=lambda values: f"{len(values)} from {values[0]}",
)
def test_reductions(values: list[int], on_each_processor: Processor, kind: str) -> None:
    x = array_of(values, MODULI, on_each_processor, kind)
    assert int(x.max()) == max(values)
    assert int(x.min()) == min(values)
    assert int(x.sum()) == sum(values)
    assert int(x.argmax()) == values.index(max(values))
    assert int(x.argmin()) == values.index(min(values))
    result = x.reduce("max")
    result = result.compute() if isinstance(result, da.Array) else result
    assert (result.count, result.index) == (len(values), values.index(max(values)))


def test_reductions_refuse(kind: str) -> None:
    empty = IntervalRNSArray.from_ints([], MODULI, chunks=128 if kind == "dask" else None)
    with pytest.raises(ValueError, match="max of an empty array"):
        empty.max()
    with pytest.raises(ValueError, match="reduction must be one of"):
        IntervalRNSArray.from_ints([1], MODULI, chunks=None if kind == "eager" else "auto").reduce("mean")


# ---- storage ----------------------------------------------------------------------------------------------


def test_store(tmp_path: Path, on_each_processor: Processor) -> None:
    """One array of all words, whose attribute has the fields of a store of residues."""
    values = some_numbers(12, 400)
    x = array_of(values, MODULI, on_each_processor)
    path = tmp_path / "x.zarr"
    x.to_zarr(path, chunks=128)
    y = rd.open_zarr(path)
    assert y.chunks == ((128, 128, 128, 21),)
    np.testing.assert_array_equal(computed_columns(y), on_each_processor.to_numpy(x.columns))
    array = zarr.open_array(path, mode="r+")
    np.testing.assert_array_equal(array[...], computed_columns(y))
    attribute = dict(array.attrs["rnsdask"])
    known = {"format": 2, "system": "interval-rns", "moduli": list(MODULI), "signed": True, "bound": None}
    assert {name: attribute[name] for name in known} == known
    for backend in ("cpu", on_each_processor.name):
        moved = rd.open_zarr(path, backend=backend, part=None if backend == "cpu" else 64).compute()
        np.testing.assert_array_equal(to_backend(moved.columns, "cpu"), computed_columns(y))
    array[len(MODULI), 130] = 2
    with pytest.raises(CorruptChunkError, match=r"chunk c/0/1: number 130 has a header .*: sign 2, low "):
        rd.open_zarr(path, backend=on_each_processor.name).compute()


SHAPES_WITHOUT_NUMBERS = [(0,), (3, 0), (0, 3), (5, 0, 7), (0, 0)]


@pytest.mark.parametrize("shape", [*SHAPES_WITHOUT_NUMBERS[:2], *slow(*SHAPES_WITHOUT_NUMBERS[2:])])
def test_arrays_without_numbers(shape: tuple[int, ...], on_each_processor: Processor, kind: str) -> None:
    x = array_of(np.zeros(shape, dtype=object), MODULI, on_each_processor, kind)
    assert (x.shape, x.size) == (shape, 0)
    assert f"shape={shape}" in repr(x)
    lowest, highest = 1 - MODULI.product, MODULI.product - 1
    for other in (x, 0, 5, -5, lowest, highest):
        for operation in (*HALF, operator.mul, divmod):
            if not (isinstance(other, int) and other == 0 and operation in (*HALF[2:], divmod)):
                for found in np.ravel(operation(x, other)):
                    assert found.to_ints().shape == shape
            for found in np.ravel(operation(other, x)):
                assert found.to_ints().shape == shape
    for other in (x, 0, 5, 10 * highest, 10 * lowest):
        for relation in RELATIONS.values():
            for found in (relation(x, other), relation(other, x)):
                assert computed(found, on_each_processor).dtype == np.bool_
                assert found.shape == shape
    for mode in ("wrap", "flag"):
        for function in (rd.add, rd.subtract, rd.multiply):
            found = function(x, 3, overflow=mode)
            if mode == "flag":
                found, mask = found
                assert computed(mask, on_each_processor).shape == shape
            assert found.to_ints().shape == shape
    for array in (-x, abs(x), x.to_rns(), x.to_rns(signed=False), IntervalRNSArray.from_rns(x.to_rns())):
        assert array.to_ints().shape == shape
    for part in (x.sign, x.low, x.upp, x.exponent, x.residues[0]):
        assert computed(part, on_each_processor).shape == shape
    assert int(x.sum()) == 0
    for name in ("max", "min", "argmax", "argmin"):
        with pytest.raises(ValueError, match="of an empty array: it needs at least one number"):
            getattr(x, name)()


@pytest.mark.parametrize("shape", SHAPES_WITHOUT_NUMBERS)
def test_stores_without_numbers(shape: tuple[int, ...], tmp_path: Path, kind: str) -> None:
    x = IntervalRNSArray.from_ints(
        np.zeros(shape, dtype=object), MODULI, chunks=None if kind == "eager" else "auto"
    )
    x.to_zarr(tmp_path / "x.zarr")
    y = rd.open_zarr(tmp_path / "x.zarr")
    assert (y.shape, y.to_ints().shape, int(y.sum()), y.moduli) == (shape, shape, 0, MODULI)
    (y + 1).to_zarr(tmp_path / "y.zarr")
    assert rd.open_zarr(tmp_path / "y.zarr").shape == shape
    x.to_zarr(tmp_path / "x.zarr", overwrite=True)
