"""Values that arrays are made of: taken exactly, or refused in one clear line."""

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import gmpy2
import numpy as np
import pandas as pd
import pytest
import zarr

import rnsdask as rd
from rnsdask.arrays.creation import fresh_seed
from rnsdask.backend import naming_gpu_memory
from rnsdask.core.errors import GPUMemoryError, abbreviate, brief

MODULI = rd.ModuliSet.for_bits(300)
HUGE = 10**5000  # Python does not write it


class Seven:
    """An integer by its ``__index__`` alone."""

    def __index__(self) -> int:
        return 7


MAKERS: list[Callable[[Any], Any]] = [
    lambda values: rd.from_ints(values, MODULI, signed=True, chunks=None),
    lambda values: rd.from_ints(values, MODULI, signed=True).compute(),
    lambda values: rd.IntervalRNSArray.from_ints(values, MODULI),
]


@pytest.mark.parametrize("make", MAKERS)
def test_what_integers_may_come_in(make: Callable[[Any], Any]) -> None:
    top = 2**64 - 1
    for values, expected in [
        ([Seven(), gmpy2.mpz(-5), np.uint64(top), np.int8(-3)], [7, -5, top, -3]),
        (np.array([top, top - 1], dtype=np.uint64), [top, top - 1]),
        (np.array([-(2**63), 2], dtype=">i8"), [-(2**63), 2]),
        (np.array([[2, 2**90]], dtype=object), [[2, 2**90]]),
        (np.ma.array([1, 2]), [1, 2]),
        ([[1, 2], (3, 4)], [[1, 2], [3, 4]]),
        ([[[1], [2]], [[3], [2**90]]], [[[1], [2]], [[3], [2**90]]]),
        ([np.array([1, 2]), np.array([3, 4])], [[1, 2], [3, 4]]),
        ([[], []], [[], []]),
        ([], []),
        (np.array([]), []),
        (range(3), [0, 1, 2]),
        (iter([5, 6]), [5, 6]),
        (itertools.islice(itertools.count(), 100_000), list(range(100_000))),
        (np.arange(10)[::-3], [9, 6, 3, 0]),
        (rd.from_ints([4, 5], MODULI, chunks=None), [4, 5]),
        (["5", b"-0x10", " +7\n", 8, "1" * 80], [5, -16, 7, 8, int("1" * 80)]),
        ([["1", 2], ("3", "0XFF")], [[1, 2], [3, 255]]),
        (np.array(["12", "-3"]), [12, -3]),
        (np.array([[b"12"], [b"0x3"]]), [[12], [3]]),
        (np.array(["12", "123456789012345678901"], np.dtypes.StringDType()), [12, 123456789012345678901]),
        (np.array(["12", 5], dtype=object), [12, 5]),
    ]:
        assert make(values).to_ints().tolist() == expected


@pytest.mark.parametrize("make", MAKERS)
def test_what_is_no_array_of_integers(make: Callable[[Any], Any]) -> None:
    for values, error, message in [
        (np.ma.array([1, 2, 3], mask=[0, 1, 0]), ValueError, "values are masked, the first at position 1"),
        (np.ma.array([[1, 2]], mask=[[0, 1]]), ValueError, r"the first at index \(0, 1\)"),
        ("123", TypeError, "got a str"),
        (b"123", TypeError, "got a bytes"),
        ({1, 2}, TypeError, "got a set"),
        ({1: 2}, TypeError, "got a dict"),
        (MODULI, TypeError, "got a ModuliSet"),
        (5, TypeError, "must be an iterable of integers, got 5 of type int"),
        (None, TypeError, "got None of type NoneType"),
        (np.array(5), TypeError, r"got array\(5\) of type ndarray"),
        ([1.0], TypeError, "at position 0 must be an integer, got 1.0 of type float"),
        (np.array([1.0, 2.0]), TypeError, "at position 0 must be an integer, got 1.0"),
        ([1, True], TypeError, "at position 1 must be an integer, got True of type bool"),
        (np.array([True]), TypeError, "got True of type bool"),
        ([None], TypeError, "got None of type NoneType"),
        ([["1"], 2], ValueError, "nested lists"),
        ([b"1.0"], ValueError, r"value at position 0: '1\.0' is not an integer"),
        (np.array([1 + 2j]), TypeError, "of type complex"),
        (np.array([(1, 2)], dtype="i4,i4"), TypeError, "got an array of dtype"),
        (np.array(["2020"], dtype="M8[ns]"), TypeError, r"got an array of dtype datetime64\[ns\]"),
        (np.array([5], dtype="m8[ns]"), TypeError, r"got an array of dtype timedelta64\[ns\]"),
        ([np.array(["2020"], dtype="M8[ns]")], TypeError, "got an array of dtype datetime64"),
        ([[1, 2], [3]], ValueError, "nested lists of values must all have one length"),
        ([[1], 2], ValueError, "nested lists"),
        ([1, [2]], TypeError, r"at position 1 must be an integer, got \[2\] of type list"),
        ([[1, 2], [3, 4.5]], TypeError, "got 4.5 of type float"),
        (rd.from_ints([1], MODULI, chunks=1), TypeError, "got a lazy RNSArray; compute it first"),
        ([rd.from_ints([1], MODULI, chunks=1).max()], TypeError, "got a lazy LazyInts; compute it first"),
    ]:
        with pytest.raises(error, match=message) as caught:
            make(values)
        assert len(str(caught.value).splitlines()) == 1


def test_a_moduli_set_and_an_integer_are_told_apart() -> None:
    residues = np.zeros((1, 3), np.uint32)
    attempts: list[Callable[[Any], Any]] = [
        lambda moduli: rd.from_ints([1], moduli),
        lambda moduli: rd.IntervalRNSArray.from_ints([1], moduli),
        lambda moduli: rd.IntervalRNSArray.from_residues(residues, residues[0], moduli),
        lambda moduli: rd.from_residues(residues, moduli),
        lambda moduli: rd.RNSArray(residues, rd.RNS(moduli)),
        lambda moduli: rd.random(moduli, 3),
    ]
    for attempt in attempts:
        with pytest.raises(TypeError, match=r"moduli must be a ModuliSet, got 64 of type int; .*for_bits"):
            attempt(64)
    for attempt in (*attempts[:3], *attempts[4:]):  # residues may have moduli that are no ModuliSet
        with pytest.raises(TypeError, match=r"must be a ModuliSet, got \[7, 11\] of type list"):
            attempt([7, 11])
    x = rd.from_ints([1], MODULI, chunks=None)
    for wrong in (
        lambda: rd.random(MODULI, MODULI),
        lambda: rd.ModuliSet.for_bits(MODULI),
        lambda: x + MODULI,
    ):
        with pytest.raises(TypeError, match="must be an integer, got ModuliSet"):
            wrong()


def test_residues_that_are_read_by_slices(tmp_path: Path) -> None:
    moduli = rd.ModuliSet([251, 253])
    residues = np.arange(2 * 300, dtype=np.uint32).reshape(2, 300) % 251
    stored = zarr.create_array(tmp_path / "a.zarr", shape=residues.shape, dtype="uint32", chunks=(1, 128))
    stored[:] = residues
    x = rd.from_residues(stored, moduli)
    assert x.chunks == ((128, 128, 44),)
    assert (x.residues.compute() == residues).all()
    stored[1, 200] = 253
    with pytest.raises(ValueError, match="residue 253 of the number at flat position 200 is not below"):
        rd.from_residues(stored, moduli).to_ints()
    with pytest.raises(TypeError, match="residues must be integers, got dtype float64"):
        rd.from_residues(zarr.create_array({}, shape=(2, 3), dtype="float64"), moduli)
    masked = np.ma.array(residues, mask=False)
    assert (
        rd.from_residues(masked, moduli).to_ints().tolist()
        == rd.from_residues(residues, moduli).to_ints().tolist()
    )
    masked[1, 3] = np.ma.masked
    for make in (rd.from_residues, rd.RNSArray):
        with pytest.raises(ValueError, match="residues are masked"):
            make(masked, rd.RNS(moduli))
    for residues, sign in (
        (da.zeros((2, 3), dtype=np.uint32), np.zeros(3)),
        (np.zeros((2, 3), np.uint32), [0] * 3),
    ):
        with pytest.raises(TypeError, match="must be a NumPy or CuPy array"):
            rd.IntervalRNSArray.from_residues(residues, sign, moduli)


# ---- NumPy's functions ------------------------------------------------------------------------------------


def arrays(values: Any) -> list[Any]:
    eager = rd.from_ints(values, MODULI, chunks=None)
    made = [eager, eager.rechunk()]
    return [*made, *map(rd.IntervalRNSArray.from_rns, made)]


def test_sums_of_nothing_are_0() -> None:
    for x in arrays([5, 3]):
        empty = x[:0]
        assert dask.compute(empty.sum())[0] == 0
        result = dask.compute(empty.reduce("sum"))[0]
        assert (result.value, result.index, result.count) == (0, None, 0)
        for name in ("max", "min", "argmax", "argmin"):
            with pytest.raises(ValueError, match="of an empty array"):
                getattr(empty, name)()
    for shape in ((0, 4), (3, 0), (0, 0), (2, 0, 3)):
        values = np.empty(shape, dtype=object)
        x = rd.from_ints(values, MODULI, chunks=None)
        lazy = rd.RNSArray(da.from_array(x.residues, chunks=(-1, *(2,) * len(shape))), rd.RNS(MODULI))
        for each in (x, lazy):
            assert dask.compute(each.sum())[0] == 0
            for axis in range(len(shape)):
                for keepdims in (False, True):
                    found = np.asarray(dask.compute(each.sum(axis=axis, keepdims=keepdims))[0])
                    expected = values.sum(axis=axis, keepdims=keepdims)
                    assert (found.shape, found.tolist()) == (expected.shape, expected.tolist())
                if shape[axis]:
                    assert each.max(axis=axis).shape == values.max(axis=axis).shape
                else:
                    with pytest.raises(ValueError, match="needs at least one number"):
                        each.max(axis=axis)


# ---- functions of two arrays of either kind ---------------------------------------------------------------


# ---- random -----------------------------------------------------------------------------------------------


def test_without_a_seed_random_numbers_are_new_and_can_be_repeated() -> None:
    x, y = (rd.random(MODULI, 300, chunks=128) for _ in range(2))
    assert not (x == y).any().compute()
    again = x.to_ints()
    assert (x.to_ints() == again).all()
    assert (x[::-1].compute().to_ints()[::-1] == again).all()
    _, _, seed, _ = x.residues.name.split("-")
    assert (rd.random(MODULI, 300, chunks=128, seed=int(seed)).to_ints() == again).all()
    assert fresh_seed() != fresh_seed()
    assert (
        rd.random(MODULI, 3, seed=HUGE).to_ints().tolist()
        == rd.random(MODULI, 3, seed=HUGE).to_ints().tolist()
    )


# ---- integers that Python does not write ------------------------------------------------------------------


def test_no_message_meets_pythons_limit_of_digits() -> None:
    x = rd.from_ints([3, 4], MODULI, chunks=None)
    attempts: list[Callable[[], Any]] = [
        lambda: x**HUGE,
        lambda: x.rechunk(128)[:1] ** HUGE,
        lambda: x**-HUGE,
        lambda: x >> -HUGE,
        lambda: x << -HUGE,
        lambda: x + HUGE,
        lambda: x * -HUGE,
        lambda: x // -HUGE,
        lambda: x[HUGE],
        lambda: x[[HUGE]],
        lambda: x[x.rechunk(128)[0] + HUGE],
        lambda: rd.from_ints([HUGE], MODULI),
        lambda: rd.from_ints([[HUGE]], MODULI),
        lambda: rd.from_ints([1, [HUGE]], MODULI),
        lambda: rd.IntervalRNSArray.from_ints([HUGE], MODULI),
        lambda: rd.IntervalRNSArray.from_ints([1], MODULI) + HUGE,
        lambda: rd.from_ints([1], MODULI, chunks=-HUGE),
        lambda: rd.from_ints([1], MODULI, chunks=(HUGE, HUGE)),
        lambda: rd.random(MODULI, -HUGE),
        lambda: rd.random(MODULI, 3, seed=-HUGE),
        lambda: rd.ModuliSet([HUGE]),
        lambda: rd.ModuliSet.for_bits(HUGE),
        lambda: rd.ModuliSet.for_bits(-HUGE),
        lambda: rd.ModuliSet.for_bits(10, HUGE),
        lambda: rd.ModuliSet.consecutive_odd(HUGE, 1),
        lambda: rd.ModuliSet.consecutive_odd(3, -HUGE),
        lambda: MODULI.prefix(HUGE),
        lambda: x.max(axis=HUGE),
        lambda: rd.required_bits("x + y", x=(HUGE, 0), y=1),
        lambda: rd.required_bits("x + y", x=(HUGE, 0, 1), y=1),
        lambda: rd.required_bits("x ** y", x=2, y=HUGE),
        lambda: rd.RNSArray(x.residues, rd.RNS(MODULI, bound=-HUGE)),
    ]
    for attempt in attempts:
        with pytest.raises((ValueError, TypeError, IndexError, OverflowError)) as caught:
            dask.compute(attempt())
        message = str(caught.value)
        assert "4300 digits" not in message
        assert len(message) < 400, message
    result = rd.ReductionResult(HUGE, None, 1, 0, "cpu")
    assert "value=10000…00000 (5001 digits)" in repr(result)
    error = rd.RNSOverflowError(0, HUGE, 3, signed=False, negative=False, at_least=True)
    assert "more than 2**16609 bits long" in str(error)
    assert brief([HUGE]) == f"[{abbreviate(HUGE)}]"
    long = rd.ModuliSet.for_bits(20_000)
    y = rd.from_ints([HUGE], long, chunks=None)
    for array in (y, y.rechunk(), rd.IntervalRNSArray.from_rns(y)):
        assert "shape=(1,)" in repr(array)
        assert rd.to_decimal(dask.compute(array.max())[0]) == "1" + "0" * 5000
    assert rd.to_decimal(y.rechunk().max()) == "1" + "0" * 5000
    assert rd.to_decimal(-12) == "-12"
    assert rd.to_decimal(np.int8(5)) == "5"
    with pytest.raises(TypeError):
        rd.to_decimal(1.5)


def test_a_full_gpu_names_the_chunk() -> None:
    def fill() -> None:
        with naming_gpu_memory("x.zarr: chunk 3"), naming_gpu_memory():
            raise GPUMemoryError("GPU 0 has no memory left")

    with pytest.raises(GPUMemoryError, match=r"^x\.zarr: chunk 3: GPU 0 has no memory left$"):
        fill()


class SparseMatrix:
    """A sparse matrix with the attributes that SciPy's, CuPy's and others' share."""

    shape, ndim, nnz, dtype = (2, 2), 2, 2, np.dtype(np.int64)

    def toarray(self) -> Any:
        return np.eye(2, dtype=np.int64)

    def __iter__(self) -> Any:
        yield from (self, self)


def sparse_matrices() -> list[Any]:
    try:
        from scipy import sparse
    except ImportError:
        return [SparseMatrix()]
    kinds = ("csr_array", "csc_array", "coo_array", "dok_array", "lil_array", "dia_array", "csr_matrix")
    return [SparseMatrix(), *(getattr(sparse, kind)(np.eye(2, dtype=np.uint32)) for kind in kinds)]


@pytest.mark.parametrize("matrix", sparse_matrices(), ids=lambda matrix: type(matrix).__name__)
def test_sparse_matrices_are_refused_with_the_way(matrix: Any) -> None:
    x = rd.from_ints([[1, 2], [3, 4]], MODULI)
    calls: list[Callable[[], Any]] = [
        lambda: rd.from_ints(matrix),
        lambda: rd.from_ints(matrix, MODULI),
        lambda: rd.from_ints(matrix, rd.IntervalRNS(MODULI)),
        lambda: rd.from_ints(matrix, rd.Positional(64)),
        lambda: rd.from_ints(matrix, rd.PrimeFields([7])),
        lambda: rd.from_residues(matrix, [3, 5]),
        lambda: rd.from_limbs(matrix, 64),
        lambda: rd.isin(x, matrix),
    ]
    kind = type(matrix).__name__
    for call in calls:
        with pytest.raises(TypeError, match=rf"must be dense, got a sparse {kind}; its toarray\(\)"):
            call()
    assert rd.from_ints(matrix.toarray(), MODULI).to_ints().tolist() == [[1, 0], [0, 1]]


def test_containers_are_taken_or_refused_in_one_line() -> None:
    """Containers of Python and pandas are taken, or named in the error."""
    frame = pd.DataFrame({"a": [1, 2], "b": [3, 4]})
    for values in (frame["a"], pd.Index([1, 2]), frame["a"].array, iter([1, 2]), {1: 0, 2: 0}.keys(), (1, 2)):
        assert rd.from_ints(values, MODULI).to_ints().tolist() == [1, 2]
    refused: dict[str, Any] = {
        "got a DataFrame; choose a column": frame,
        "got a MultiIndex; choose a column": pd.MultiIndex.from_tuples([(1, 2)]),
        "got a dict": {1: 2},
        "got a set": {1, 2},
        "got a str": "12",
        "got a bytes": b"12",
        "got None": None,
        "position 1 must be an integer, got None": [1, None],
        "position 1 must be an integer, got 2.5 of type float": np.array([1, 2.5], dtype=object),
        "position 0 must be an integer, got 1.5 of type float": np.array([1.5, 2]),
        "position 0 must be an integer, got 0 1 1 2": [frame["a"], frame["b"]],
    }
    for message, values in refused.items():
        with pytest.raises((TypeError, ValueError)) as caught:
            rd.from_ints(values, MODULI)
        assert message in str(caught.value)
        assert "\n" not in str(caught.value)


def test_random_numbers_of_bits_under_moduli_that_are_told() -> None:
    x = rd.random(rd.RNS(rd.ModuliSet.for_bits(64), signed=True), (3, 4), bits=9, seed=2)
    assert (x.shape, x.signed, x.bound, x.moduli.bits) == ((3, 4), True, 255, 96)
    assert -256 < x.min() <= x.max() < 256
    for wrong, kind, message in (
        (lambda: rd.random(5), TypeError, r"random\(shape, bits=256\)"),
        (lambda: rd.random(shape=5), TypeError, r"random\(shape, bits=256\)"),
        (lambda: rd.random(5, bits=0), ValueError, "bits must be at least 1, got 0"),
        (lambda: rd.random(rd.ModuliSet([97]), 5, bits=7), ValueError, "does not hold all numbers of 7 bits"),
        (lambda: rd.random(rd.Positional(64), 5, bits=7), TypeError, "bits= is for moduli sets and RNS"),
    ):
        with pytest.raises(kind, match=message):
            wrong()
