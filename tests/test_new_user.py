"""The walk of a new user, who knows NumPy, Dask, pandas and xarray: attempts of one line, eager and lazy.

An attempt has what it must give, computed with object arrays of Python's integers, or the error that must say
what to do.
"""

import math
import operator
import statistics
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
from conftest import Processor

import rnsdask as rd
from rnsdask.arrays.number_array import NumberArray

MODULI = rd.ModuliSet.for_bits(160)
WIDE = [2**61 - 1, 2**64, 2**59 - 55]  # as libraries of homomorphic encryption have them


@dataclass(frozen=True)
class Gives:
    """An attempt with numbers `x`, `y` (6 x 8) and `u`, `w` (48), and the same of `X`, `Y`, `U`, `W`."""

    attempt: str
    expected: str


@dataclass(frozen=True)
class Refused:
    """An attempt that must raise an error, whose message has these words."""

    attempt: str
    error: type[Exception]
    words: tuple[str, ...]


OPERATORS = [
    Gives("x + y", "X + Y"),
    Gives("3 * x - y", "3 * X - Y"),
    Gives("-x", "-X"),
    Gives("abs(x)", "abs(X)"),
    Gives("x // y", "X // Y"),
    Gives("x % 1000", "X % 1000"),
    Gives("divmod(x, y)[1]", "X % Y"),
    Gives("x ** 2", "X ** 2"),
    Gives("pow(x, 65537, 10**9 + 7)", "each(lambda v: pow(v, 65537, 10**9 + 7), X)"),
    Gives("x >> 7", "X >> 7"),
    Gives("x << 3", "X << 3"),
    Gives("x @ y.T", "X @ Y.T"),
    Gives("u @ w", "U @ W"),
    Gives("(x > 0) & (y != x)", "(X > 0) & (Y != X)"),
    Gives("x == y", "X == Y"),
    Gives("np.int64(3) + x", "3 + X"),
    Gives("x + np.int8(-3)", "X - 3"),
    Gives("U[0] in x", "U[0] in X"),
    Refused("x / 3", TypeError, ("not exact", "//")),
    Refused("3 / x", TypeError, ("not exact", "//")),
    Refused("x + 1.5", TypeError, ("float",)),
    Refused("x & 1", TypeError, ("to_positional",)),
    Refused("1 | x", TypeError, ("to_positional",)),
    Refused("~x", TypeError, ("to_positional",)),
    Refused("x ** -1", ValueError, ("negative",)),
    Refused("x // 0", ZeroDivisionError, ("0",)),
    Refused("x * HUGE", ValueError, ("range",)),
    Refused("x ** 3 * x", rd.RNSOverflowError, ("bits", "index", "extend", "overflow")),
    Refused("hash(x)", TypeError, ("unhashable",)),
    Refused("bool(x)", ValueError, ("any()",)),
]

UFUNCS = [
    Gives("np.add(x, y)", "X + Y"),
    Gives("np.subtract(5, x)", "5 - X"),
    Gives("np.multiply(x, y)", "X * Y"),
    Gives("np.negative(x)", "-X"),
    Gives("np.abs(x)", "abs(X)"),
    Gives("np.sign(x)", "np.sign(X)"),
    Gives("np.square(x)", "X * X"),
    Gives("np.power(x, 2)", "X ** 2"),
    Gives("np.floor_divide(x, 7)", "X // 7"),
    Gives("np.remainder(x, y)", "X % Y"),
    Gives("np.divmod(x, 10)[0]", "X // 10"),
    Gives("np.maximum(x, y)", "np.maximum(X, Y)"),
    Gives("np.minimum(x, 0)", "np.minimum(X, 0)"),
    Gives("np.less_equal(x, y)", "X <= Y"),
    Gives("np.gcd(x, y)", "each(math.gcd, X, Y)"),
    Gives("np.add.reduce(u)", "sum(U)"),
    Refused("np.sqrt(x)", TypeError, ("sqrt", "np.asarray")),
    Refused("np.true_divide(x, 2)", TypeError, ("divide", "//")),
    Refused("np.add(x, y, out=X)", TypeError, ("out",)),
]

FUNCTIONS = [
    Gives("np.max(x)", "X.max()"),
    Gives("np.min(x, axis=1)", "X.min(axis=1)"),
    Gives("np.sum(x, axis=0)", "X.sum(axis=0)"),
    Gives("np.argmax(x)", "int(X.argmax())"),
    Gives("np.prod(w[:3])", "math.prod(W[:3])"),
    Gives("np.cumsum(u)", "U.cumsum()"),
    Gives("np.where(x > 0, x, y)", "np.where(X > 0, X, Y)"),
    Gives("np.clip(x, -9, 9)", "np.clip(X, -9, 9)"),
    Gives("np.diff(u)", "np.diff(U)"),
    Gives("np.any(x)", "True"),
    Gives("np.all(x, axis=0)", "(X != 0).all(axis=0)"),
    Gives("np.count_nonzero(x)", "int((X != 0).sum())"),
    Gives("np.dot(x, y.T)", "X @ Y.T"),
    Gives("np.sort(x)", "np.sort(X)"),
    Gives("np.argsort(u)", "np.argsort(U, kind='stable')"),
    Gives("np.unique(x)", "np.unique(X)"),
    Gives("np.searchsorted(rd.sort(u), 0)", "np.searchsorted(np.sort(U), 0)"),
    Gives("np.concatenate([x, y])", "np.concatenate([X, Y])"),
    Gives("np.stack([x, y], axis=1)", "np.stack([X, Y], axis=1)"),
    Gives("np.array_equal(x, x)", "True"),
    Gives("np.reshape(x, (4, 12))", "X.reshape(4, 12)"),
    Gives("np.shape(x), np.ndim(x), np.size(x)", "(X.shape, X.ndim, X.size)"),
    Refused("np.fft.fft(x)", TypeError, ("fft", "np.asarray")),
    Refused("np.linalg.qr(x)", TypeError, ("qr", "np.asarray")),
    Refused("np.sum(x, dtype=float)", TypeError, ("exact", "float64")),
]

REDUCTIONS = [
    Gives("x.max()", "X.max()"),
    Gives("x.sum(axis=1, keepdims=True)", "X.sum(axis=1, keepdims=True)"),
    Gives("x.mean()", "Fraction(int(X.sum()), X.size)"),
    Gives("u.var(ddof=1)", "statistics.variance(map(Fraction, U.tolist()))"),
    Gives("rd.median(u)", "statistics.median(map(Fraction, U.tolist()))"),
    Gives("(x % 3 + 1).prod(axis=0)", "(X % 3 + 1).prod(axis=0)"),
    Gives("x.cumsum(axis=1)", "X.cumsum(axis=1)"),
    Gives("x.argmin(axis=0)", "X.argmin(axis=0)"),
    Gives("u.topk(3)", "np.sort(U)[::-1][:3]"),
    Gives("x[x > 5].max()", "X[X > 5].max()"),
    Gives("(x > 5).sum()", "(X > 5).sum()"),
    Gives("x.bit_length()", "each(int.bit_length, X)"),
    Refused("x.max(axis=2)", ValueError, ("axis 2",)),
    Refused("x[:0].max()", ValueError, ("empty",)),
    Refused("x.std()", TypeError, ("var",)),
]

SELECTIONS = [
    Gives("x[2, 3]", "X[2, 3]"),
    Gives("x[1:4, ::-2]", "X[1:4, ::-2]"),
    Gives("x[..., None]", "X[..., None]"),
    Gives("x[[0, 3, 3]]", "X[[0, 3, 3]]"),
    Gives("x[[0, 2], [5, 1]]", "X[[0, 2], [5, 1]]"),
    Gives("x[x < 0]", "X[X < 0]"),
    Gives("x[np.array([True, False] * 3), 1:]", "X[::2, 1:]"),
    Gives("list(u)[:4]", "U.tolist()[:4]"),
    Gives("len(x)", "6"),
    Refused("x[9]", IndexError, ("9", "axis 0")),
    Refused("x['a']", IndexError, ("integers", "slices")),
    Refused("operator.setitem(x, 0, 1)", TypeError, ("item assignment",)),
]

SHAPES = [
    Gives("x.T", "X.T"),
    Gives("x.reshape(-1)", "X.reshape(-1)"),
    Gives("x.ravel()", "X.ravel()"),
    Gives("rd.concatenate([x, X])", "np.concatenate([X, X])"),
    Gives("rd.concatenate([x, y], axis=1)", "np.concatenate([X, Y], axis=1)"),
    Gives("rd.block([[x, y], [y, x]])", "np.block([[X, Y], [Y, X]])"),
    Gives("rd.split(x, 2)[1]", "np.split(X, 2)[1]"),
    Gives("x.take([1, 2], axis=1)", "X.take([1, 2], axis=1)"),
    Gives("x.roll(3)", "np.roll(X, 3)"),
    Gives("rd.broadcast_to(u[:8], (6, 8))", "np.broadcast_to(U[:8], (6, 8))"),
    Refused("x.reshape(5, 5)", ValueError, ("48", "(5,5)")),
    Refused("rd.concatenate([x, u])", ValueError, ("dimension",)),
]

CONVERSIONS = [
    Gives("np.asarray(x)", "X"),
    Gives("x.astype(object)", "X"),
    Gives("x.tolist()", "X.tolist()"),
    Gives("x.dtype == object", "True"),
    Gives("(x % 100).astype(np.int64)", "X % 100"),
    Gives("x.copy()", "X"),
    Gives("u[7:8].item()", "U[7]"),
    Gives("rd.from_ints(X)", "X"),
    Gives("rd.from_ints(['12', '-7', '0x1f'])", "[12, -7, 31]"),
    Gives("rd.from_ints(pd.Series([1, 2, 3]))", "[1, 2, 3]"),
    Gives("rd.from_ints(pa.array([1, -2]))", "[1, -2]"),
    Gives("rd.from_residues(x.to_residues(WIDE, axis=-1), WIDE, signed=True, axis=-1)", "X"),
    Refused("np.asarray(x, dtype=float)", TypeError, ("object", "float64")),
    Refused("x.astype(np.int8)", OverflowError, ("int8",)),
    Refused("rd.from_ints([1.0, 2])", TypeError, ("float", "0")),
    Refused("rd.from_ints([1, None])", TypeError, ("NoneType", "1")),
    Refused("rd.from_ints(['12', 'x'])", ValueError, ("'x'", "1")),
    Refused("rd.from_ints([2**200], MODULI)", ValueError, ("range", "0")),
    Refused("float(x)", TypeError, ("",)),
]

DASK = [
    Gives("x.rechunk(3).compute()", "X"),
    Gives("x.rechunk({1: 5}).chunks[1]", "(5, 3)"),
    Gives("rd.from_ints(X, chunks=(4, 1000)).chunks", "((4, 2), (8,))"),
    Gives("x.rechunk(2).map_blocks(lambda b: b + 1)", "X + 1"),
    Gives("x.rechunk((3, 8)).numblocks", "(2, 1)"),
    Gives("x.rechunk((3, 8)).blocks[1]", "X[3:]"),
    Gives("dask.compute(x.rechunk(4).max(), x.rechunk(4).sum())", "(X.max(), X.sum())"),
    Gives("x.rechunk(4).persist() + 1", "X + 1"),
    Gives("da.concatenate([x.rechunk(4), y.rechunk(4)])", "np.concatenate([X, Y])"),
    Gives("da.from_array(x, chunks=3)", "X"),
]

STORES = [
    Gives("reopened(x)", "X"),
    Gives("reopened(x, chunks=(5, 3))", "X"),
    Gives("reopened(u.rechunk(1000))", "U"),
    Gives("appended(x, y)", "np.concatenate([X, Y])"),
    Refused("x.to_zarr(taken)", rd.StoreError, ("taken", "it exists")),
    Refused("rd.open_zarr(taken / 'none')", rd.StoreError, ("none",)),
]

XARRAY = [
    Gives("xr.DataArray(x, dims=['row', 'column']).sum('row', skipna=False).values", "X.sum(axis=0)"),
    Gives("xr.DataArray(x.to_ints(), dims=['row', 'column']).max().item()", "X.max()"),
    Gives("pd.Series(u).tolist()", "U.tolist()"),
    Gives("pd.DataFrame({'u': u.to_ints()})['u'].max()", "U.max()"),
]

WALK = [
    *OPERATORS,
    *UFUNCS,
    *FUNCTIONS,
    *REDUCTIONS,
    *SELECTIONS,
    *SHAPES,
    *CONVERSIONS,
    *DASK,
    *STORES,
    *XARRAY,
]


# ---- the walk ----------------------------------------------------------------------------------------------


def each(function: Any, *numbers: np.ndarray) -> np.ndarray:
    """A function of Python's integers, element by element."""
    return np.asarray(np.frompyfunc(function, len(numbers), 1)(*numbers))


def numbers_of(random: Random, shape: tuple[int, ...], bits: int) -> np.ndarray:
    values = [random.randint(-(2**bits), 2**bits) | 1 for _ in range(math.prod(shape))]
    return np.array(values, dtype=object).reshape(shape)


def surroundings(random: Random, lazy: bool, processor: Processor, folder: Path) -> dict[str, Any]:
    """The names that attempts know."""
    numbers = {
        "X": numbers_of(random, (6, 8), 60),
        "Y": numbers_of(random, (6, 8), 40),
        "U": numbers_of(random, (48,), 60),
        "W": numbers_of(random, (48,), 30),
    }
    arrays = {}
    for name, values in numbers.items():
        host = rd.from_ints(values, MODULI, signed=True, chunks=None)
        array = rd.RNSArray(processor.xp.asarray(host.residues), host.system)
        chunks = tuple(-(-length // 3) for length in values.shape)
        arrays[name.lower()] = array.rechunk(chunks) if lazy else array
    taken = folder / "taken"
    taken.mkdir()
    (taken / "file").touch()

    def reopened(array: Any, **options: Any) -> Any:
        array.to_zarr(folder / "x.zarr", **options)
        return rd.open_zarr(folder / "x.zarr")

    def appended(first: Any, second: Any) -> Any:
        first.to_zarr(folder / "x.zarr")
        second.to_zarr(folder / "x.zarr", append_dim=0)
        return rd.open_zarr(folder / "x.zarr")

    modules = {"np": np, "rd": rd, "da": da, "dask": dask, "math": math, "statistics": statistics}
    modules |= {"operator": operator, "Fraction": Fraction}
    helpers = {"each": each, "reopened": reopened, "appended": appended}
    given = {"MODULI": MODULI, "WIDE": WIDE, "HUGE": MODULI.product, "taken": taken}
    return modules | helpers | given | numbers | arrays


OPTIONAL = {"pd": "pandas", "pa": "pyarrow", "xr": "xarray"}


def with_optional_modules(attempt: str, names: dict[str, Any]) -> dict[str, Any]:
    """The names with those of libraries that an attempt uses; it is left out where one is not installed."""
    used = {name: library for name, library in OPTIONAL.items() if f"{name}." in attempt}
    return names | {name: pytest.importorskip(library) for name, library in used.items()}


def plain(value: Any) -> Any:
    """What a result holds, computed: integers, Booleans, fractions, and arrays and tuples of them."""
    if isinstance(value, tuple):
        return tuple(map(plain, value))
    if isinstance(value, NumberArray):
        return value.to_ints()
    if dask.is_dask_collection(value):
        return plain(value.compute())
    return value.get() if hasattr(value, "get") else value


def same(value: Any, expected: Any) -> bool:
    if isinstance(expected, tuple):
        return len(value) == len(expected) and all(map(same, value, expected))
    value, expected = (np.asarray(a, dtype=object) for a in (value, expected))
    return value.shape == expected.shape and bool((value == expected).all())


@pytest.mark.parametrize("lazy", [False, True], ids=["eager", "lazy"])
@pytest.mark.parametrize("step", WALK, ids=lambda step: step.attempt)
def test_walk(
    step: Gives | Refused,
    lazy: bool,
    on_each_processor: Processor,
    tmp_path: Path,
    rng: np.random.Generator,
) -> None:
    names = surroundings(Random(int(rng.integers(2**63))), lazy, on_each_processor, tmp_path)
    names = with_optional_modules(step.attempt, names)
    if isinstance(step, Gives):
        assert same(plain(eval(step.attempt, names)), eval(step.expected, names))
        return
    with pytest.raises(step.error) as caught:
        plain(eval(step.attempt, names))
    message = str(caught.value)
    assert [word for word in step.words if word not in message] == []
    assert "\n" not in message
    assert len(message) < 500
