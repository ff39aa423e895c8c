"""Integers of other libraries, and without moduli, against Python's integers."""

import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
import zarr
from hypothesis import given
from hypothesis import strategies as st

import rnsdask as rd
from rnsdask.rns.values import flat_integers

MODULI = rd.ModuliSet.for_bits(300)


# ---- without moduli ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "bits", "signed"),
    [
        ([], 1, False),
        ([0], 1, False),
        ([1], 1, False),
        ([-1], 1, True),
        ([2**32 - 1], 32, False),
        ([2**32], 33, False),
        ([2**31 - 1, -(2**31)], 32, True),
        ([2**64 - 2, 5], 64, False),
        ([-(2**64)], 65, True),
        ([3, "-0xfff"], 13, True),
        (np.array([[2**64 - 1, 1]], dtype=np.uint64), 64, False),
        (np.array([-128, 127], dtype=np.int8), 8, True),
        (np.array([], dtype=np.int64), 1, False),
        (np.array([np.int32(7), 10**30], dtype=object), 100, False),
    ],
)
def test_the_fewest_moduli_that_hold_the_numbers(values: Any, bits: int, signed: bool) -> None:
    x = rd.from_ints(values)
    assert (x.moduli, x.signed) == (rd.ModuliSet.for_bits(bits), signed)
    expected = [int(str(v), 0) for v in np.asarray(values, dtype=object).ravel()]
    assert x.to_ints().ravel().tolist() == expected
    assert x.bound == max(map(abs, expected), default=0)
    assert ("signed" if signed else "unsigned") in repr(x)
    wide = rd.from_ints(values, signed=True)
    assert wide.signed
    assert wide.to_ints().ravel().tolist() == expected


@given(st.lists(st.integers(-(2**200), 2**200), max_size=10))
def test_any_integers_without_moduli(values: list[int]) -> None:
    x = rd.from_ints(values, chunks=None)
    assert x.to_ints().tolist() == values
    lowest, highest = x.system.value_range
    assert all(lowest <= v <= highest for v in values)
    if len(x.moduli) > 1:
        least, greatest = x.moduli.prefix(len(x.moduli) - 1).value_range(x.signed)
        assert not all(least <= v <= greatest for v in values)
    if any(v < 0 for v in values):
        with pytest.raises(ValueError, match="outside the unsigned range"):
            rd.from_ints(values, signed=False)


def test_a_system_in_place_of_moduli() -> None:
    assert rd.from_ints([-5, "0x10"], rd.RNS(MODULI, signed=True)).to_ints().tolist() == [-5, 16]
    x = rd.from_ints([[-5, "0x10"]], rd.IntervalRNS(MODULI), chunks=None)
    assert isinstance(x, rd.IntervalRNSArray)
    assert x.to_ints().tolist() == [[-5, 16]]
    with pytest.raises(ValueError, match="signed=False contradicts"):
        rd.from_ints([5], rd.RNS(MODULI, signed=True), signed=False)
    with pytest.raises(TypeError, match=r"value at position 1 must be an integer, got 1\.5"):
        rd.from_ints([1, 1.5])


def test_text_that_is_no_integer_is_named() -> None:
    for values, message in (
        (["1", "x"], "value at position 1: 'x' is not an integer"),
        ([["1", "2"], ["3", ""]], r"value at index \(1, 1\): empty text is not an integer"),
        (np.array(["1_000"]), "value at position 0: '1_000' is not an integer"),
        (["1 2"], "'1 2' is not an integer"),
        (["٣"], "is not an integer"),
        (["1e3"], "'1e3' is not an integer"),
        (["x" * 500], r"'x{40}'\.\.\. is not an integer"),
    ):
        for make in (rd.from_ints, lambda v: rd.IntervalRNSArray.from_ints(v, MODULI)):
            with pytest.raises(ValueError, match=message):
                make(values)
    assert rd.from_ints(["9" * 5000]).to_ints().tolist() == [10**5000 - 1]  # more digits than Python reads


@pytest.mark.parametrize("digits", [1, 9, 10, 18, 19, 20, 37, 2048, 2049, 4100])
@pytest.mark.parametrize("place", [0, 4095, 4096])  # 4096 texts are converted together
def test_text_of_any_form(digits: int, place: int) -> None:
    """One text of a length and form among short ones."""
    texts: list[Any] = [str(k * (-1) ** k) for k in range(5001)]
    expected = [k * (-1) ** k for k in range(5001)]
    value = 10**digits - 1
    for form, number in (
        (str(value), value),
        (f"-{value}", -value),
        (f"{value:#x}\r\n", value),
        (f" \t+0{10 ** (digits - 1)}\n", 10 ** (digits - 1)),
        (f"-{value:#X}".encode(), -value),
        (value, value),
    ):
        texts[place], expected[place] = form, number
        assert flat_integers(texts) == (expected, (5001,))
        assert set(map(type, flat_integers(texts)[0])) == {int}
    for bad in ("1\n2", "\u00a01", "1\v", "1\r2", "", "\ud800", f"{value}x", f"x{value}", "0x", "--1", "1\0"):
        texts[place] = bad
        with pytest.raises(ValueError, match=rf"^value at position {place}: .* is not an integer"):
            flat_integers(texts)


# ---- Dask -------------------------------------------------------------------------------------------------


def test_dask_arrays_stay_lazy() -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("computed")

    values = np.arange(-50, 250).reshape(3, 100)
    with dask.config.set(scheduler=refuse):
        x = rd.from_ints(da.from_array(values, chunks=(2, 40)), MODULI, signed=True)
        y = rd.from_ints(da.from_array(values, chunks=(2, 40)), rd.IntervalRNS(MODULI))
        z = rd.from_ints(da.from_array(values.astype(object), chunks=50), MODULI, True, chunks=(3, 128))
    assert (x.chunks, y.chunks) == (((2, 1), (40, 40, 20)),) * 2
    assert z.chunks == ((3,), (100,))
    assert (x.bound, z.bound) == (2**63, None)
    for array in (x, y, z):
        assert array.to_ints().tolist() == values.tolist()
    text = da.from_array(np.array(["1", "0xff"]), chunks=1)
    assert rd.from_ints(text, MODULI).to_ints().tolist() == [1, 255]
    unknown = da.arange(10)[da.arange(10) > 6]
    assert rd.from_ints(unknown, MODULI).to_ints().tolist() == [7, 8, 9]
    assert rd.from_ints(da.arange(4), rd.RNS(MODULI, bound=3)).bound == 3
    for wrong, error, message in (
        (lambda: rd.from_ints(da.arange(3).astype(object)), TypeError, "needs the moduli that hold"),
        (lambda: rd.from_ints(da.ones(3), MODULI), TypeError, "must be of integers"),
        (lambda: rd.from_ints(da.arange(3).sum(), MODULI), TypeError, "of one axis or more"),
        (lambda: rd.from_ints(da.arange(5), rd.RNS(MODULI, bound=3)).to_ints(), ValueError, "index 4 is 4"),
        (lambda: rd.from_ints(da.arange(-1, 5), MODULI).to_ints(), ValueError, "value -1 at position 0"),
        (
            lambda: rd.IntervalRNSArray.from_ints(da.arange(3), MODULI),
            TypeError,
            "got a lazy Array; compute it first",
        ),
    ):
        with pytest.raises(error, match=message):
            wrong()


def test_dask_arrays_of_another_type_than_they_say() -> None:
    def lying(values: Any, dtype: Any) -> Any:
        return da.from_array(np.array(values), chunks=2).map_blocks(lambda block: block, dtype=dtype)

    system, limbs = rd.RNS(MODULI, signed=True), rd.Positional(128)
    field = rd.FermatField(2**28 + 2**22, 16)
    x = rd.from_ints([1, 2, 3], system)
    for wrong in (
        lambda: rd.from_ints(lying([1000, 1, 2**40], np.uint8), system).max(),
        lambda: rd.from_ints(lying([1.0, 2.0, 3.0], np.int64), limbs),
        lambda: rd.from_limbs(lying([[1], [-3]], np.uint32), system, axis=0),
        lambda: rd.from_bytes(lying([[1, 300]], np.uint8), moduli=limbs),
        lambda: rd.from_residues(lying([[1.5, 2.0]] * len(MODULI), np.int64), system),
        lambda: rd.from_residues(lying([[1.5, 2.0]] * len(MODULI), np.uint32), system).sum(),
        lambda: rd.from_residues(lying([[1, 2]] * len(MODULI), np.uint32), system).max(),
        lambda: rd.FieldArray.from_words(lying([[1.5, 2.0]] * field.rows, np.uint32), field).sum(),
        lambda: np.power(x, lying([1.5, 1.0, 2.0], np.int64)),
        lambda: np.left_shift(x.to_positional(64), lying([1.5, 1.0, 2.0], np.int64)),
        lambda: x[lying([1.5, 0.0], np.int64)],
        lambda: x.rechunk(2).take(lying([1.5, 0.0], np.int64)),
        lambda: x[lying([1.5], np.int64)[0]],
        lambda: x[lying([0, 2, 1], np.bool_)],
        lambda: x.reshape(1, 3)[lying([[0, 2, 1]], np.bool_)],
        lambda: x.reshape(1, 3)[lying([0.5, 0], np.int64), np.array([0, 1])],
        lambda: rd.searchsorted(x, 2, sorter=lying([0.5, 1.5, 2], np.int64)),
        lambda: rd.where(lying([0, 2, 1], np.bool_), x, -x),
        lambda: np.where(lying([0.0, 0.5, 1.0], np.bool_), x.to_positional(64), 0),
    ):
        with pytest.raises(TypeError, match="a Dask array says that its chunks are"):
            wrong().compute()
    with pytest.raises(TypeError, match=r"an index must be an integer, got 1\.5"):
        x[lying([1.5], object)[0]].compute()
    assert rd.from_ints(lying(np.array([5, 6], np.int8), np.int64), system).to_ints().tolist() == [5, 6]
    for found, dtype in ((2, np.int64), (-1, np.int8), ([2, 0], np.int64), ([False, True, False], np.bool_)):
        given = da.from_delayed(dask.delayed(found), np.shape(found), dtype)
        for chosen in (x[given], x.rechunk(2)[given]):
            assert np.all(np.asarray(chosen) == x.to_ints()[np.asarray(found)])
    with pytest.raises(TypeError, match="that its chunks are int8, and one is int16"):
        x[da.from_delayed(dask.delayed(-129), (), np.int8)].compute()
    with pytest.raises(TypeError, match="that its chunks are int64, and one is float"):
        x[da.from_delayed(dask.delayed(0.5), (), np.int64)].compute()
    narrow = lying(np.array([[5], [6]], np.uint32), np.uint64)
    assert rd.from_limbs(narrow, limbs, axis=0).to_ints().tolist() == [5 + (6 << 64)]


@pytest.mark.parametrize("is_lazy", [False, True])
def test_masked_values(is_lazy: bool) -> None:
    """Masked values are refused as numbers, exponents, shifts, places and conditions."""

    def masked(values: Any, dtype: Any) -> Any:
        found = np.ma.array(np.array(values, dtype))
        found[..., -1] = np.ma.masked
        return da.from_array(found, chunks=2) if is_lazy else found

    system, field = rd.RNS(MODULI, signed=True), rd.FermatField(2**28 + 2**22, 16)
    x = rd.from_ints([1, 2, 3], system)
    places, truths = masked([0, 1, 2], np.int64), masked([True] * 3, np.bool_)
    for wrong in (
        lambda: rd.from_ints(places, system),
        lambda: rd.from_limbs(masked([[1, 2, 3]], np.uint32), system, axis=0),
        lambda: rd.from_bytes(masked([[1, 2, 3]], np.uint8), moduli=system),
        lambda: rd.from_residues(masked([[1, 2, 3]] * len(MODULI), np.uint32), system),
        lambda: rd.FieldArray.from_words(masked([[1, 2, 3]] * field.rows, np.uint32), field),
        lambda: x**places,
        lambda: rd.FieldArray.from_rns(x, field) ** places,
        lambda: np.left_shift(x.to_positional(64), places),
        lambda: x.to_positional(64) >> places,
        lambda: x[places],
        lambda: x.take(places),
        lambda: x[truths],
        lambda: rd.where(truths, x, -x),
    ):
        with pytest.raises(ValueError, match="are masked"):
            wrong().sum().compute()
    assert (x[places[:2]] ** places[:2]).to_ints().tolist() == [1, 2]


@pytest.mark.parametrize("count", [0, 1, 3])
def test_dask_arrays_of_another_length_than_they_say(count: int) -> None:
    """A result of some of the numbers would look like that of all."""

    def lying(dtype: Any, *shape: int, axis: int = -1) -> Any:
        found = np.ones(tuple(count if k == axis % len(shape) else n for k, n in enumerate(shape)), dtype)
        chunk = da.from_delayed(dask.delayed(found), shape, dtype)
        return da.concatenate([chunk, da.ones_like(chunk)], axis)

    system, field = rd.RNS(MODULI, signed=True), rd.FermatField(2**28 + 2**22, 16)
    x = rd.from_ints([1, 2, 3, 4], system, chunks=2)
    for wrong in (
        rd.from_ints(lying(np.int64, 2), system).sum(),
        rd.from_ints(lying(object, 2), rd.Positional(64)).sum(),
        rd.from_residues(lying(np.uint32, len(MODULI), 2), system).sum(),
        rd.from_residues(lying(np.int64, 2, len(MODULI), axis=0), system, axis=-1).sum(),
        rd.FieldArray.from_words(lying(np.uint32, field.rows, 2), field).sum(),
        rd.from_limbs(lying(np.uint32, 2, 3, axis=0), system).sum(),
        rd.from_bytes(lying(np.uint8, 2, 3, axis=0), moduli=system).sum(),
        rd.where(lying(np.bool_, 2), x, 0),
        x[lying(np.int64, 2)],
        x[x.to_ints() > 0][lying(np.bool_, 2)],
    ):
        with pytest.raises(ValueError, match=r"says that its chunk .* has shape .*, and it has"):
            wrong.compute()
    unknown = da.arange(10)[da.arange(10) > 6]
    assert rd.from_ints(unknown, system).sum().compute() == 24


def test_files_that_change_are_other_arrays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrays that were read keep their numbers, and relative paths start where the call was made."""
    stored = zarr.create_array(tmp_path / "a.zarr", shape=(2, 3), dtype="uint32")
    mapped = np.lib.format.open_memmap(tmp_path / "a.npy", mode="w+", dtype=np.uint32, shape=(2, 3))
    for array in (stored, mapped):
        arrays = []
        for value in (1, 2):
            array[:] = value
            arrays.append(rd.from_residues(array, [3, 5], chunks=2).persist())
        assert (arrays[1] - arrays[0]).to_ints().tolist() == [1, 1, 1]
        lazy = rd.from_residues(array, [3, 5], chunks=2)  # which reads nothing yet
        array[:] = 0
        assert lazy.to_ints().tolist() == [0, 0, 0]
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pytest.importorskip("pyarrow").table({"n": [7, 8]}), tmp_path / "n.parquet")
    monkeypatch.chdir(tmp_path)
    x = rd.read_parquet("n.parquet", "n")
    monkeypatch.chdir(tmp_path / "a.zarr")
    assert x.to_ints().tolist() == [7, 8]


# ---- pandas -----------------------------------------------------------------------------------------------


def test_pandas() -> None:
    pd = pytest.importorskip("pandas")
    for values, expected in (
        (pd.Series([1, -2, 3]), [1, -2, 3]),
        (pd.Series([1, 2], index=["a", "b"], dtype="uint8"), [1, 2]),
        (pd.Series([1, 2**63], dtype="UInt64"), [1, 2**63]),
        (pd.Series([-1, 2**62 + 1], dtype="Int64"), [-1, 2**62 + 1]),
        (pd.Series([10**40, 5], dtype=object), [10**40, 5]),
        (pd.Series(["10", "0x10"]), [10, 16]),
        (pd.Series(["10", "-7"], dtype="string"), [10, -7]),
        (pd.Index([5, 6]), [5, 6]),
        (pd.RangeIndex(3), [0, 1, 2]),
        (pd.array([5, 6]), [5, 6]),
        (pd.Series([], dtype="Int64"), []),
    ):
        assert rd.from_ints(values).to_ints().tolist() == expected
        assert rd.IntervalRNSArray.from_ints(values, MODULI).to_ints().tolist() == expected
    again = pd.Series(rd.from_ints(pd.Series([10**40, 5])).to_ints())
    assert again.tolist() == [10**40, 5]
    for values, error, message in (
        (pd.Series([1, None, 3], dtype="Int64"), ValueError, "value at position 1 is missing; fill or drop"),
        (pd.Series([1, None, 3]), ValueError, "value at position 1 is missing"),
        (pd.Series(["1", None]), ValueError, "value at position 1 is missing"),
        (pd.Series([1.0]), TypeError, "must be an integer, got 1.0"),
        (pd.Series([True]), TypeError, "must be an integer, got True"),
        (pd.Series(["1", "x"]), ValueError, "value at position 1: 'x' is not an integer"),
        (pd.DataFrame({"a": [1]}), TypeError, "got a DataFrame; choose a column"),
        (pd.Series(pd.to_datetime(["2020-01-01"])), TypeError, "got an array of dtype datetime64"),
    ):
        with pytest.raises(error, match=message):
            rd.from_ints(values)


# ---- Arrow and Parquet ------------------------------------------------------------------------------------


def test_arrow() -> None:
    pa = pytest.importorskip("pyarrow")
    huge = [10**37, -(10**37), 0, -1]
    wide = [10**75, -(10**75), 7]
    for values, expected in (
        (pa.array([1, -2]), [1, -2]),
        (pa.array([2**64 - 1], pa.uint64()), [2**64 - 1]),
        (pa.chunked_array([[1, 2], [], [3]]), [1, 2, 3]),
        (pa.chunked_array([[1, 2], [3]]).slice(1), [2, 3]),
        (pa.array(list(map(Decimal, huge)), pa.decimal128(38, 0)), huge),
        (pa.array(list(map(Decimal, huge)), pa.decimal128(38, 0)).slice(1, 2), huge[1:3]),
        (pa.array(list(map(Decimal, wide)), pa.decimal256(76, 0)), wide),
        (pa.chunked_array([pa.array([Decimal(5)]), pa.array([Decimal(6)])]), [5, 6]),
        (pa.array(["1", "0x10"]), [1, 16]),
        (pa.array(["1"], pa.large_string()), [1]),
        (pa.array([], pa.int64()), []),
        (pa.array([], pa.decimal128(5, 0)), []),
    ):
        assert rd.from_ints(values).to_ints().tolist() == expected
    for values, error, message in (
        (pa.array([1, None]), ValueError, "value at position 1 is missing"),
        (pa.chunked_array([[1], [2, None]]), ValueError, "value at position 2 is missing"),
        (pa.array([1.5]), TypeError, "got Arrow's type double"),
        (pa.array([Decimal("1.5")]), TypeError, r"type decimal128\(2, 1\) has 1 digits .*; scale=1 reads"),
        (pa.array([[1]]), TypeError, "got Arrow's type list"),
        (pa.table({"a": [1]}), TypeError, "got a Table; choose a column"),
    ):
        with pytest.raises(error, match=message):
            rd.from_ints(values)
    pd = pytest.importorskip("pandas")
    series = pd.Series([Decimal(10**30), Decimal(-1)], dtype=pd.ArrowDtype(pa.decimal128(38, 0)))
    assert rd.from_ints(series).to_ints().tolist() == [10**30, -1]


def test_parquet(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    file = tmp_path / "a.parquet"
    columns = {
        "int": pa.array(range(-5, 995), pa.int32()),
        "big": pa.array([Decimal(v) ** 9 for v in range(1000)], pa.decimal128(38, 0)),
        "text": pa.array([str(7**v) for v in range(1000)]),
        "gap": pa.array([None if v == 700 else v for v in range(1000)]),
        "real": pa.array(np.arange(1000.0)),
    }
    parquet.write_table(pa.table(columns), file, row_group_size=300)
    x = rd.read_parquet(file, "int")
    assert (x.chunks, x.signed, x.bound) == (((300, 300, 300, 100),), True, 2**31)
    assert x.to_ints().tolist() == list(range(-5, 995))
    big = rd.read_parquet(str(file), "big")
    assert (big.signed, big.bound) == (True, 10**38 - 1)
    assert big.to_ints().tolist() == [v**9 for v in range(1000)]
    assert big.max().compute() == 999**9
    moduli = rd.ModuliSet.for_bits(3000)
    assert rd.read_parquet(file, "text", moduli).sum().compute() == sum(7**v for v in range(1000))
    both = rd.read_parquet([file, file], "int", rd.IntervalRNS(MODULI))
    assert both.to_ints().tolist() == list(range(-5, 995)) * 2
    parquet.write_table(pa.table({"int": pa.array([], pa.uint16())}), tmp_path / "empty.parquet")
    assert rd.read_parquet(tmp_path / "empty.parquet", "int").shape == (0,)
    (tmp_path / "none.parquet").write_bytes(b"nothing at all")
    for attempt, error, message in (
        (
            lambda: rd.read_parquet(file, "text"),
            ValueError,
            "column 'text' is text, .*: give their length, such as bits=256, or moduli",
        ),
        (lambda: rd.read_parquet(file, "real"), TypeError, "got Arrow's type double"),
        (lambda: rd.read_parquet(file, "other"), rd.InputError, "it has no column 'other'"),
        (lambda: rd.read_parquet([], "int"), ValueError, "at least one Parquet file"),
        (lambda: rd.read_parquet(tmp_path / "none.parquet", "int"), rd.InputError, "it is no Parquet file"),
        (lambda: rd.read_parquet(tmp_path / "no.parquet", "int"), FileNotFoundError, "no.parquet"),
        (
            lambda: rd.read_parquet(file, "gap").to_ints(),
            rd.InputError,
            r"a\.parquet: row group 2, column 'gap': value at position 100 is missing",
        ),
        (
            lambda: rd.read_parquet(file, "int", MODULI).to_ints(),
            rd.InputError,
            "row group 0, .* value -5 at",
        ),
    ):
        with pytest.raises(error, match=message):
            attempt()
    parquet.write_table(pa.table(columns), file, row_group_size=500)
    with pytest.raises(rd.InputError, match="it was changed since it was opened"):
        x.to_ints()


def test_without_pyarrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(ImportError, match=r"needs pyarrow: pip install 'rnsdask\[parquet\]'"):
        rd.read_parquet("a.parquet", "a")
