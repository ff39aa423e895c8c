"""Numbers as floats, and as what pandas, Arrow and Parquet files hold."""

import sys
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from conftest import Processor
from sample_arrays import host

import rnsdask as rd

pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")

WIDE = rd.ModuliSet.for_bits(1200)
MAKERS = {
    "rns": lambda values: rd.from_ints(values, WIDE, signed=True, chunks=None),
    "rns of little room": lambda values: rd.from_ints(values, signed=True, chunks=None),
    "rns without a bound": lambda values: rd.RNSArray(
        rd.from_ints(values, WIDE, signed=True, chunks=None).residues, rd.RNS(WIDE, True)
    ),
    "interval": lambda values: rd.from_ints(values, rd.IntervalRNS(WIDE), chunks=None),
    "positional": lambda values: rd.from_ints(values, rd.Positional(1200, signed=True), chunks=None),
}
KINDS = pytest.mark.parametrize("kind", MAKERS)
LAZY = pytest.mark.parametrize("lazy", [False, True])


def made(kind: str, values: Any, lazy: bool = False, chunks: Any = 3) -> Any:
    x = MAKERS[kind](values)
    return x.rechunk(chunks) if lazy else x


# ---- floats -----------------------------------------------------------------------------------------------


def nearest(value: int, dtype: Any) -> Any:
    """The float of a type that is nearest to an integer, the even one of two, by fractions."""
    digits = np.finfo(dtype).nmant + 1
    excess = max(abs(value).bit_length() - digits, 0)
    rounded = round(Fraction(value, 2**excess)) * 2**excess  # Python rounds halves to even
    return dtype(float(rounded)) if dtype is np.float32 else float(rounded)


def hard_to_round(dtype: Any, seed: int) -> list[int]:
    random, digits = Random(seed), np.finfo(dtype).nmant + 1
    most = 127 if dtype is np.float32 else 1020
    values = [0, 1, -1, 2**31, 2**32, 2**33 - 1, 2**63, 2**64 - 1, 2**64, -(2**64), 2**95, 2**96 - 1]
    values += [2**24 + 1, 2**24 + 3, 2**53 + 1, 2**53 + 3, -(2**53) - 1, 2**most, -(2**most)]
    for _ in range(60):
        excess = random.randrange(1, most - digits)
        half = (random.getrandbits(digits) << excess) + (1 << (excess - 1))
        values += [half, half - 1, half + 1, -half, -half - 1, -half + 1]
        values += [half + 2 ** random.randrange(excess), random.getrandbits(random.randrange(1, most))]
    return values


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@KINDS
@LAZY
def test_floats_are_the_nearest(kind: str, lazy: bool, dtype: Any) -> None:
    values = hard_to_round(dtype, 7)
    x = made(kind, values, lazy, 100)
    found = x.astype(dtype, casting="unsafe")
    assert found.dtype == dtype
    assert hasattr(found, "dask") == lazy
    expected = [nearest(value, dtype) for value in values]
    assert host(found).tolist() == [float(value) for value in expected]
    told = x.to_numpy(dtype, casting="unsafe")
    assert (type(told), told.dtype, told.tolist()) == (np.ndarray, dtype, host(found).tolist())


def test_floats_on_each_processor(on_each_processor: Processor) -> None:
    values = hard_to_round(np.float64, 11) * 2
    words = on_each_processor.xp.asarray(MAKERS["rns"](values).residues)
    x = rd.RNSArray(words, rd.RNS(WIDE, True)).reshape(2, -1)
    found = x.astype(float, casting="unsafe")
    assert type(found) is on_each_processor.xp.ndarray
    assert host(found).ravel().tolist() == [nearest(value, np.float64) for value in values]


def test_floats_of_unsigned_numbers() -> None:
    values = [0, 2**53 + 1, 2**64 - 1, 2**128 - 1]
    for x in (rd.from_ints(values), rd.from_ints(values, rd.Positional(128))):
        assert x.to_numpy(float, casting="unsafe").tolist() == [nearest(v, np.float64) for v in values]
    assert rd.from_ints([2**24 + 1], rd.Positional(25)).to_numpy("f4", casting="unsafe").tolist() == [2**24]
    assert rd.from_ints([], WIDE).to_numpy(float, casting="unsafe").tolist() == []


@KINDS
def test_what_no_float_holds(kind: str) -> None:
    greatest = int(np.finfo(np.float64).max)
    half = 2**970  # of the distance between greatest floats, from where they would round up
    x = made(kind, [5, greatest, -greatest, greatest + half - 1])
    assert x.to_numpy(float, casting="unsafe").tolist() == [5.0, greatest, -greatest, greatest]
    for value in (greatest + half, -greatest - half, 2**1100):
        with pytest.raises(OverflowError):
            float(value)
        for lazy in (False, True):
            x = made(kind, [1, 2, 3, 4, value], lazy)
            with pytest.raises(OverflowError, match=r"flat index 4 is .* beyond float64: .*x\.log2\(\)"):
                host(x.astype(float, casting="unsafe"))
    with pytest.raises(OverflowError, match=r"flat index 1 is .* beyond float32"):
        made(kind, [1, 2**128]).astype(np.float32, casting="unsafe")


@KINDS
def test_floats_only_where_told_to_round(kind: str) -> None:
    x = made(kind, [1, 2, 3])
    for attempt in (
        lambda: x.astype(float),
        lambda: x.astype("f4", casting="same_kind"),
        lambda: x.to_numpy(float),
        lambda: np.asarray(x, dtype=float),
    ):
        with pytest.raises(TypeError, match=r'casting="unsafe"\)'):
            attempt()
    with pytest.raises(TypeError, match="rounds to float32 or float64, got float16"):
        x.astype(np.float16, casting="unsafe")
    with pytest.raises(TypeError, match="got complex128"):
        x.astype(complex, casting="unsafe")
    with pytest.raises(ValueError, match=r"casting must be one of 'no', .*, got 'quick'"):
        x.astype(int, casting="quick")
    assert x.astype(np.int8, casting="unsafe").tolist() == [1, 2, 3]
    with pytest.raises(OverflowError, match="index 0 is 300"):  # integers never wrap
        made(kind, [300]).astype(np.int8, casting="unsafe")
    assert x.to_numpy(np.uint8).dtype == np.uint8
    assert x.to_numpy(object).tolist() == [1, 2, 3]


def test_elements_are_not_rounded() -> None:
    x = rd.from_ints([1, 2], rd.PrimeFields([10007, 10009]))
    with pytest.raises(TypeError, match=r"have no order, sign or size; x\.lift\(\) makes integers"):
        x.astype(float, casting="unsafe")


def test_xarray_rounds() -> None:
    xr = pytest.importorskip("xarray")
    found = xr.DataArray(made("rns", [1, 2**60 + 1])).astype(float, casting="unsafe")
    assert found.values.tolist() == [1.0, 2.0**60]


# ---- pandas -----------------------------------------------------------------------------------------------

COLUMNS = [
    ([1, -2, 3, 4], np.int64),
    ([2**63 - 1, -(2**63)], np.int64),
    ([0, 2**63, 2**64 - 1], np.uint64),
    ([-1, 2**63], object),
    ([10**40, 5, -7], object),
]


@pytest.mark.parametrize(("values", "dtype"), COLUMNS)
@KINDS
@LAZY
def test_series(kind: str, lazy: bool, values: list[int], dtype: Any) -> None:
    x = made(kind, values, lazy, 2)
    series = x.to_pandas()
    assert isinstance(series, pd.Series)
    assert (series.tolist(), series.dtype) == (values, dtype)
    assert series.dtype == pd.Series(values).dtype  # as pandas takes a list of them
    assert all(type(value) is int for value in series.tolist())
    assert rd.from_ints(series).to_ints().tolist() == values


@KINDS
@LAZY
def test_data_frames(kind: str, lazy: bool) -> None:
    rows = [[1, 2, 10**30], [3, -4, 5]]
    x = made(kind, rows, lazy, 2)
    frame = x.to_pandas()
    assert isinstance(frame, pd.DataFrame)
    assert (frame.to_numpy().tolist(), set(frame.dtypes)) == (rows, {np.dtype(object)})
    assert set(x[:, :2].to_pandas().dtypes) == {np.dtype(np.int64)}
    with pytest.raises(ValueError, match=r"one axis or two, got shape \(1, 2, 3\); x\.reshape"):
        x[np.newaxis].to_pandas()


def test_without_pandas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="to_pandas needs pandas: pip install 'rnsdask\\[pandas\\]'"):
        made("rns", [1]).to_pandas()


def test_elements_are_integers_in_columns(tmp_path: Path) -> None:
    x = rd.from_ints([-1, 5], rd.PrimeFields([10007, 10009]))
    values = [10007 * 10009 - 1, 5]
    assert x.to_pandas().tolist() == values
    assert pa.array(x).to_pylist() == values
    x.to_parquet(tmp_path / "x.parquet")
    assert rd.read_parquet(tmp_path / "x.parquet", "value", x.system).to_ints().tolist() == values
    y = rd.from_ints([5, -1], rd.FermatField(2**28 + 2**22, 16), chunks=None)
    values = [5, (2**28 + 2**22) ** 16]
    assert (y.to_pandas().tolist(), [int(v) for v in y.to_arrow().to_pylist()]) == (values, values)
    y.rechunk(1).to_parquet(tmp_path / "x.parquet", overwrite=True)
    assert written(tmp_path / "x.parquet") == (values, [1, 1], pa.large_string())


# ---- Arrow ------------------------------------------------------------------------------------------------

ARROW = [
    ([1, -2, 3, 4], pa.int64()),
    ([-(2**63), 2**63 - 1], pa.int64()),
    ([2**64 - 1, 0, 7], pa.uint64()),
    ([-1, 2**63], pa.decimal128(38, 0)),
    ([10**38 - 1, 1 - 10**38, 0], pa.decimal128(38, 0)),
    ([10**38, 5, -1], pa.decimal256(76, 0)),
    ([10**76 - 1, 1 - 10**76], pa.decimal256(76, 0)),
    ([10**76, 1], pa.large_string()),
    ([-(7**380), 0], pa.large_string()),
]


@pytest.mark.parametrize(("values", "kind"), ARROW)
@pytest.mark.parametrize("system", MAKERS)
@LAZY
def test_arrow(system: str, lazy: bool, values: list[int], kind: Any) -> None:
    x = made(system, values, lazy, 2)
    for found in (x.to_arrow(), pa.array(x)):
        assert isinstance(found, pa.Array)
        assert found.type == kind
        assert [int(value) for value in found.to_pylist()] == values
        found.validate(full=True)
    assert pa.table({"a": x})["a"].type == kind
    assert rd.from_ints(x.to_arrow()).to_ints().tolist() == values


def test_arrow_types_that_are_asked_for() -> None:
    x = made("rns", [1, 2, 300])
    for kind in (pa.int16(), pa.uint32(), pa.decimal128(5, 0), pa.decimal256(50, 0), pa.string()):
        for found in (x.to_arrow(kind), pa.array(x, kind)):
            assert found.type == kind
            assert [int(value) for value in found.to_pylist()] == [1, 2, 300]
    for kind, outside in ((pa.int8(), "outside of int8: -128 to 127"), (pa.decimal128(2, 0), "-99 to 99")):
        with pytest.raises(OverflowError, match=f"the number at flat index 2 is 300, .*{outside}"):
            x.to_arrow(kind)
    with pytest.raises(TypeError, match="got Arrow's type double"):
        pa.array(x, pa.float64())
    with pytest.raises(TypeError, match="type must be a type of pyarrow's, got str"):
        x.to_arrow("int64")
    with pytest.raises(ValueError, match=r"one axis, got shape \(1, 3\); x\.ravel\(\)"):
        x.reshape(1, 3).to_arrow()
    assert made("rns", [5])[:0].to_arrow().type == pa.int64()


# ---- Parquet ----------------------------------------------------------------------------------------------


def written(path: Path) -> tuple[list[int], list[int], Any]:
    """The numbers of a file's only column, the rows of its groups, and the column's type."""
    from pyarrow import parquet

    with parquet.ParquetFile(path) as file:
        rows = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
        column = file.read().column(0)
    return [int(value) for value in column.to_pylist()], rows, column.type


@pytest.mark.parametrize(("values", "kind"), ARROW)
@pytest.mark.parametrize("system", MAKERS)
def test_parquet_of_arrays_in_memory(system: str, values: list[int], kind: Any, tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    made(system, values).to_parquet(path)
    assert written(path) == (values, [len(values)], kind)
    assert rd.read_parquet(path, "value", rd.RNS(WIDE, True)).to_ints().tolist() == values


def test_parquet_of_lazy_arrays(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    values = [7**k * (-1) ** k for k in range(10)]
    x = rd.from_ints(values, chunks=None).rechunk(((4, 1, 3, 2),)) * 3
    values = [3 * value for value in values]
    x.to_parquet(str(path), "n")
    assert written(path) == (values, [4, 1, 3, 2], pa.int64())
    again = rd.read_parquet(path, "n")
    assert (again.chunks, again.to_ints().tolist()) == (((4, 1, 3, 2),), values)
    wide = x.extend(rd.ModuliSet.for_bits(500))
    square = wide * wide
    (square * square).to_parquet(path, "n", overwrite=True)
    assert written(path) == ([v**4 for v in values], [4, 1, 3, 2], pa.decimal128(38, 0))
    rd.IntervalRNSArray.from_rns(wide).to_parquet(path, overwrite=True)  # which has a range, and no bound
    assert written(path) == (values, [4, 1, 3, 2], pa.large_string())
    rd.IntervalRNSArray.from_rns(wide).to_parquet(path, type=pa.int64(), overwrite=True)
    assert written(path) == (values, [4, 1, 3, 2], pa.int64())
    x[x > 0].to_parquet(path, overwrite=True)
    assert written(path) == ([v for v in values if v > 0], [2, 1, 1, 1], pa.int64())
    x[:0].to_parquet(path, overwrite=True)
    assert rd.read_parquet(path, "value").shape == (0,)


def test_parquet_files_that_are_not_written(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    x = rd.from_ints([1, 2, 3, 4, 500], chunks=None).rechunk(2)
    with pytest.raises(OverflowError, match="the number at flat index 4 is 500, outside of int8"):
        x.to_parquet(path, type=pa.int8())
    assert list(tmp_path.iterdir()) == []
    x.to_parquet(path)
    with pytest.raises(rd.JobError, match=r"x\.parquet: it exists; replace it with overwrite=True"):
        x.to_parquet(path)
    for attempt, error, message in (
        (lambda: x.reshape(5, 1).to_parquet(path), ValueError, r"one axis, got shape \(5, 1\)"),
        (lambda: x.to_parquet(path, 5), TypeError, "column must be a name, got 5 of type int"),
        (lambda: x.to_parquet(5), TypeError, "path must be a str or path-like, got int"),
        (lambda: x.to_parquet(path, overwrite=1), TypeError, "overwrite"),
        (lambda: x.to_parquet(path, type=pa.bool_(), overwrite=True), TypeError, "got Arrow's type bool"),
    ):
        with pytest.raises(error, match=message):
            attempt()
    assert written(path) == ([1, 2, 3, 4, 500], [2, 2, 1], pa.int64())


def test_chunks_are_computed_a_few_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from rnsdask.arrays import tables

    monkeypatch.setattr(tables, "GROUP_BYTES", 1)
    x = rd.from_ints(range(20), chunks=None).rechunk(3)
    x.to_parquet(tmp_path / "x.parquet")
    assert written(tmp_path / "x.parquet") == (list(range(20)), [3] * 6 + [2], pa.int64())


def test_without_pyarrow(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    x = made("rns", [1])
    with pytest.raises(ImportError, match="to_arrow needs pyarrow: pip install 'rnsdask\\[parquet\\]'"):
        x.to_arrow()
    with pytest.raises(ImportError, match="to_parquet needs pyarrow: pip install 'rnsdask\\[parquet\\]'"):
        x.to_parquet(tmp_path / "x.parquet")
    assert list(tmp_path.iterdir()) == []
