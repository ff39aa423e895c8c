"""Inputs of other libraries that have a shape of their own, in memory and on disk: they keep it."""

from pathlib import Path
from typing import Any

import dask.array as da
import flint
import numpy as np
import pytest
import zarr

import rnsdask as rd

MODULI = rd.ModuliSet.for_bits(200)
FIELDS = rd.PrimeFields([97, 101])
VALUES = [[1, 2, 10**30], [4, 5, -6]]
SMALL = np.array([[1, 2, 3], [4, 5, 6]])

WAYS = {
    "rns": lambda values: rd.from_ints(values, rd.RNS(MODULI, True)),
    "without moduli": rd.from_ints,
    "interval": lambda values: rd.from_ints(values, rd.IntervalRNS(MODULI)),
    "of intervals": lambda values: rd.IntervalRNSArray.from_ints(values, MODULI),
    "positional": lambda values: rd.from_ints(values, rd.Positional(128, True)),
    "fields": lambda values: rd.from_ints(values, FIELDS),
}


class Shaped:
    """Rows of integers as other libraries show them: iterated flat, with a shape and a way to an array."""

    def __init__(self, rows: list[list[int]], *, shape: Any = None) -> None:
        self.rows = rows
        self.shape = shape or np.shape(rows)

    def __iter__(self) -> Any:
        return (value for row in self.rows for value in row)


class WithArray(Shaped):
    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.array(self.rows, dtype=dtype or object)


class WithList(Shaped):
    def tolist(self) -> Any:
        return self.rows


def as_elements(x: Any) -> Any:
    return (x.lift() if isinstance(x, rd.FieldArray) else x).to_ints().tolist()


def of_way(way: str, rows: Any) -> Any:
    return [[v % (97 * 101) for v in row] for row in rows] if way == "fields" else rows


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", [flint.fmpz_mat, WithArray, WithList])
def test_matrices_of_other_libraries_keep_their_shape(kind: Any, way: str) -> None:
    x = WAYS[way](kind(VALUES))
    assert x.shape == (2, 3)
    assert as_elements(x) == of_way(way, VALUES)


def test_products_of_matrices_of_flint() -> None:
    given = flint.fmpz_mat([[1, 2], [3, 4]])
    x = rd.from_ints(given)
    assert (x @ x).to_ints().tolist() == [[int(v) for v in row] for row in (given * given).table()]
    for shape in ((0, 3), (3, 0)):
        assert rd.from_ints(flint.fmpz_mat(*shape)).shape == shape
    # A polynomial or a vector has one axis.
    assert rd.from_ints(flint.fmpz_poly([1, 2, 3])).to_ints().tolist() == [1, 2, 3]
    assert rd.from_ints(flint.fmpz_vec([1, 2])).to_ints().tolist() == [1, 2]


@pytest.mark.parametrize("way", WAYS)
def test_what_loses_its_shape_is_refused(way: str) -> None:
    for given, message in (
        (Shaped(VALUES), r"Shaped of shape \(2, 3\); give nested lists or a NumPy array"),
        (WithList(VALUES, shape=(3, 2)), r"WithList of shape \(3, 2\)"),
        (WithArray(VALUES, shape=(6, 1)), r"WithArray of shape \(6, 1\)"),
        (flint.nmod_mat([[1, 2], [3, 4]], 7), r"must be an integer, got 1 of type nmod"),
        (flint.fmpq_mat([[1, 2], [3, 4]]), r"must be an integer, got 1 of type fmpq"),
        ([flint.fmpz_mat([[1, 2], [3, 4]])], r"must be an integer, got \[1, 2\] \[3, 4\] of type fmpz_mat"),
    ):
        with pytest.raises(TypeError, match=message) as caught:
            WAYS[way](given)
        assert len(str(caught.value).splitlines()) == 1


def test_operands_with_a_shape_of_their_own() -> None:
    x, f = rd.from_ints([[1, 2], [3, 4]], MODULI), rd.from_ints([[1, 2], [3, 4]], FIELDS)
    given = flint.fmpz_mat([[1, 2], [3, 4]])
    for product in (lambda: x * given, lambda: f - given):
        with pytest.raises(TypeError, match="unsupported operand"):  # which FLINT has refused too
            product()
    for function in (
        lambda: rd.add(given, x),
        lambda: rd.convolve(x, given),
    ):
        with pytest.raises(TypeError, match=r"must be an integer, got \[1, 2\] \[3, 4\]"):
            function()
    assert rd.searchsorted(x.ravel(), given).shape == (2, 2)
    assert np.asarray(rd.isin(x, given)).all()


def test_sympy() -> None:
    sympy = pytest.importorskip("sympy")
    rows = [[1, 2, 10**30], [4, 5, -6]]
    for kind in (sympy.Matrix, sympy.ImmutableMatrix, sympy.SparseMatrix, sympy.Array):
        assert rd.from_ints(kind(rows)).to_ints().tolist() == rows
    assert rd.from_ints(sympy.Matrix([1, 2])).to_ints().tolist() == [[1], [2]]
    with pytest.raises(TypeError, match="must be an integer"):
        rd.from_ints(sympy.Matrix([[sympy.Symbol("a")]]))


# ---- arrays of other libraries ----------------------------------------------------------------------------


class ArrayAPI:
    """An array in memory whose type is none of NumPy's, as those of the array API may be."""

    def __init__(self, array: Any) -> None:
        self._array, self.dtype = array, f"an_array_api.{array.dtype}"
        self.shape, self.ndim = array.shape, array.ndim

    def __array_namespace__(self) -> None: ...

    def __getitem__(self, key: Any) -> Any:
        return ArrayAPI(self._array[key])

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.array(self._array, dtype=dtype)


class TensorStore:
    """An array on disk with TensorStore's attributes, whose first index may be any."""

    __module__ = "tensorstore"

    class _Dtype:
        def __init__(self, dtype: Any) -> None:
            self.numpy_dtype = dtype

    def __init__(self, array: Any, origin: tuple[int, ...] | None = None) -> None:
        self._array, self._origin = array, origin or (0,) * array.ndim
        self.dtype, self.shape, self.ndim = self._Dtype(array.dtype), array.shape, array.ndim

    @property
    def translate_to(self) -> Any:
        array = self._array

        class To:
            def __getitem__(self, origin: Any) -> Any:
                return TensorStore(array, origin)

        return To()

    def __getitem__(self, key: tuple[slice, ...]) -> Any:
        assert not any(self._origin)
        return TensorStore(self._array[key])

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.array(self._array, dtype=dtype)


def with_xarray(array: Any) -> Any:
    return pytest.importorskip("xarray").DataArray(array, dims=["a", "b"][: array.ndim])


ARRAYS = {
    "array API": ArrayAPI,
    "tensorstore": TensorStore,
    "tensorstore from 7 on": lambda array: TensorStore(array, (7,) * array.ndim),
    "zarr": lambda array: zarr.array(array, chunks=(2,) * array.ndim),
    "xarray": with_xarray,
    "lazy xarray": lambda array: with_xarray(da.from_array(array, chunks=2)),
    "xarray of zarr": lambda array: with_xarray(da.from_zarr(zarr.array(array, chunks=(2,) * array.ndim))),
}


@pytest.mark.parametrize("kind", ARRAYS)
def test_arrays_of_integers_of_other_libraries(kind: str) -> None:
    given = ARRAYS[kind](SMALL)
    for way in ("rns", "interval", "positional", "fields", "without moduli"):
        x = WAYS[way](given)
        assert x.shape == (2, 3)
        assert as_elements(x) == SMALL.tolist()
    x = rd.from_ints([[1, 1, 1], [2, 2, 2]], rd.RNS(MODULI, True))
    assert rd.power(x, given).to_ints().tolist() == [[1, 1, 1], [16, 32, 64]]
    if "xarray" in kind:  # which has operators of its own
        assert (x * given).data.tolist() == [[1, 2, 3], [8, 10, 12]]
        return
    with pytest.raises(TypeError, match="an operand"):
        x * given


@pytest.mark.parametrize("kind", ARRAYS)
def test_arrays_of_residues_of_other_libraries(kind: str) -> None:
    for dtype in (np.int64, np.uint32):
        residues = np.array([[v % m for v in range(5)] for m in (3, 5)], dtype=dtype)
        x = rd.from_residues(ARRAYS[kind](residues), [3, 5])
        assert x.to_ints().tolist() == list(range(5))
        assert rd.from_residues(ARRAYS[kind](residues.T), [3, 5], axis=1).to_ints().tolist() == list(range(5))
    f = rd.from_residues(ARRAYS[kind](residues), rd.PrimeFields([3, 5]))
    assert f.lift().to_ints().tolist() == list(range(5))
    with pytest.raises(ValueError, match=r"not below|not from 0"):
        rd.from_residues(ARRAYS[kind](residues + np.uint32(7)), [3, 5]).to_ints()


@pytest.mark.parametrize("kind", ARRAYS)
def test_arrays_of_limbs_and_bytes_of_other_libraries(kind: str) -> None:
    limbs = np.array([[1, 2], [3, 4]], dtype=np.uint32)
    assert rd.from_limbs(ARRAYS[kind](limbs)).to_ints().tolist() == [1 + 2**33, 3 + 2**34]
    assert rd.from_bytes(ARRAYS[kind](limbs.astype(np.uint8))).to_ints().tolist() == [513, 1027]


def test_arrays_on_disk_stay_lazy(tmp_path: Path) -> None:
    stored = zarr.create_array(tmp_path / "a.zarr", shape=(4, 6), chunks=(2, 3), dtype="int16")
    stored[:] = values = np.arange(-12, 12).reshape(4, 6)
    x = rd.from_ints(stored)
    assert x.chunks == ((2, 2), (3, 3))
    assert (x.system.value_range[0] <= -(2**15), x.bound) == (True, 2**15)
    assert x.to_ints().tolist() == values.tolist()
    assert rd.from_ints(stored, chunks=4).chunks == ((4,), (4, 2))
    y = rd.from_ints(stored, MODULI, signed=True)
    stored[0, 0] = 99  # which is read when it is computed
    assert int(y[0, 0].compute()) == 99
    with pytest.raises(ValueError, match=r"value -\d+ at position [01] is outside"):
        rd.from_ints(stored, signed=False).to_ints()
    # One rule for all that is lazy.
    for dtype, bits in (("uint8", 8), ("int64", 64), ("uint64", 64)):
        x = rd.from_ints(da.ones(3, dtype=dtype, chunks=2))
        assert (x.bound.bit_length(), x.signed) == (bits, dtype[0] == "i")
        assert x.to_ints().tolist() == [1, 1, 1]
    with pytest.raises(
        TypeError, match=r"whose numbers may have any size, needs the moduli.*from_ints\(x, moduli\)"
    ):
        rd.from_ints(da.ones(3, dtype=object, chunks=3))
    with pytest.raises(TypeError, match="must be of integers"):
        rd.from_ints(zarr.array(np.ones(3)), MODULI)
    with pytest.raises(
        TypeError, match=r"values must be integers in memory, got a .*Array; np.asarray\(values\)"
    ):
        rd.IntervalRNSArray.from_ints(stored, MODULI)


def test_arrays_that_are_read_are_not_what_their_types_say() -> None:
    for wrong, error, message in (
        (
            lambda: rd.from_residues(ArrayAPI(np.ones((2, 3))), [3, 5]),
            TypeError,
            "residues must be integers, got",
        ),
        (
            lambda: rd.from_residues(TensorStore(np.ones((2, 3))), [3, 5]),
            TypeError,
            "residues must be integers, got",
        ),
        (lambda: rd.from_ints(TensorStore(np.ones((2, 3))), MODULI), TypeError, "must be of integers"),
        (
            lambda: rd.from_residues(SMALL.tolist(), [3, 5]),
            TypeError,
            "must be a NumPy, CuPy or Dask array",
        ),
        (
            lambda: rd.power(rd.from_ints([2]), TensorStore(np.ones(1))),
            TypeError,
            "exponents must be integers",
        ),
    ):
        with pytest.raises(error, match=message):
            wrong()


def test_tensorstore(tmp_path: Path) -> None:
    ts = pytest.importorskip("tensorstore")
    for dtype in (np.int64, np.uint32):
        residues = np.array([[v % m for v in range(5)] for m in (3, 5)], dtype=dtype)
        wide = ts.array(np.vstack([residues, residues]))
        for given in (ts.array(residues), wide[2:4], wide[2:]):
            assert rd.from_residues(given, [3, 5]).to_ints().tolist() == list(range(5))
            assert rd.from_ints(given, MODULI).to_ints().tolist() == residues.tolist()
    spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": str(tmp_path / "a")}}
    how: dict[str, Any] = {"dtype": ts.int64, "shape": [4, 6], "create": True}
    stored = ts.open(spec, chunk_layout=ts.ChunkLayout(chunk_shape=[2, 3]), **how).result()
    stored[...] = np.arange(24).reshape(4, 6)
    x = rd.from_ints(stored)
    assert (x.chunks, x.to_ints().tolist()) == (((2, 2), (3, 3)), np.arange(24).reshape(4, 6).tolist())


def test_strict_array_api() -> None:
    xp = pytest.importorskip("array_api_strict")
    assert rd.from_ints(xp.asarray([[1, 2], [3, 4]])).to_ints().tolist() == [[1, 2], [3, 4]]
    assert rd.from_residues(xp.asarray([[1, 2], [3, 4]]), [3, 5]).to_ints().tolist() == [13, 14]
