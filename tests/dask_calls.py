"""Calls of Dask's public functions, each with what it should give by NumPy's function on Python ints.

A call gets a module and an array of two axes: Dask's and an array of numbers, or NumPy's and Python ints.
"""

import operator
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np

Call = Callable[[Any, Any], Any]


def _named(names: str, call: Callable[..., Any]) -> dict[str, Call]:
    """Pair one call with each of several functions of a module."""
    return {name: lambda m, x, name=name: call(getattr(m, name), x) for name in names.split()}


_ONE = (
    "abs absolute all any angle arccos arccosh arcsin arcsinh arctan arctanh argmax argmin argwhere "
    "around array asanyarray asarray atleast_1d atleast_2d atleast_3d average cbrt ceil conj "
    "cos cosh count_nonzero deg2rad degrees diff dstack ediff1d exp exp2 expm1 fabs fix "
    "flatnonzero fliplr flipud floor frexp gradient hstack i0 imag invert iscomplex isfinite isinf "
    "isnan isneginf isposinf isreal log log10 log1p logical_not max mean min modf nan_to_num "
    "nanargmax nanargmin nanmax nanmean nanmin nanprod nanstd nansum nanvar ndim negative nonzero "
    "ones_like positive prod ptp rad2deg radians ravel real reciprocal rint rot90 round shape sign "
    "signbit sin sinc sinh spacing sqrt square squeeze std sum tan tanh trace transpose tril triu "
    "trunc unique var vstack zeros_like"
)

_TWO = (
    "add allclose arctan2 bitwise_and bitwise_or bitwise_xor copysign divide dot equal float_power "
    "floor_divide fmax fmin fmod greater greater_equal hypot isclose isin ldexp less less_equal "
    "logaddexp logaddexp2 logical_and logical_or logical_xor matmul maximum minimum mod multiply "
    "nextafter not_equal outer remainder subtract true_divide union1d vdot"
)

_NUMPYS: dict[str, Call] = {
    **_named(_ONE, lambda f, x: f(x)),
    **_named(_TWO, lambda f, x: f(x, x)),
    **_named("append", lambda f, x: f(x, x, axis=0)),
    **_named("bincount", lambda f, x: f(x[3] * x[3])),
    **_named("bitwise_not", lambda f, x: f(x)),
    **_named("broadcast_arrays meshgrid", lambda f, x: list(f(x[0], x[1]))),
    **_named("broadcast_to", lambda f, x: f(x, (2, 4, 4))),
    **_named("choose", lambda f, x: f(x[0] > 2, [x[0], x[1]])),
    **_named("clip", lambda f, x: f(x, 1, 5)),
    **_named("compress", lambda f, x: f([True, False, True, True], x, axis=1)),
    **_named("concatenate stack block", lambda f, x: f([x, x])),
    **_named("cumprod cumsum nancumprod nancumsum", lambda f, x: f(x, axis=1)),
    **_named("delete", lambda f, x: f(x, [0, 2], axis=1)),
    **_named("diag", lambda f, x: f(x[0])),
    **_named("diagonal", lambda f, x: f(x)),
    **_named("digitize", lambda f, x: f(x, np.array([0, 3, 6]))),
    **_named("einsum", lambda f, x: f("ij,jk->ik", x, x)),
    **_named("expand_dims", lambda f, x: f(x, axis=0)),
    **_named("extract", lambda f, x: f(x > 2, x)),
    **_named("flip", lambda f, x: f(x, axis=0)),
    **_named("full_like", lambda f, x: f(x, 7)),
    **_named("histogram", lambda f, x: f(x[0], bins=[-10, 0, 5, 10])[0]),
    **_named("histogram2d", lambda f, x: f(x[0], x[1], bins=([-10, 0, 10], [-10, 0, 10]))[0]),
    **_named("histogramdd", lambda f, x: f(x[:, :2], bins=([-10, 0, 10], [-10, 0, 10]))[0]),
    **_named("insert", lambda f, x: f(x, 1, 7, axis=1)),
    **_named("left_shift right_shift power", lambda f, x: f(x, 2)),
    **_named("median nanmedian", lambda f, x: f(x, axis=0)),
    **_named("moveaxis swapaxes", lambda f, x: f(x, 0, 1)),
    **_named("rollaxis", lambda f, x: f(x, 1)),
    **_named("pad", lambda f, x: f(x, 1, mode="constant")),
    **_named("percentile nanpercentile", lambda f, x: f(x[0], [0, 100], method="lower")),
    **_named("quantile nanquantile", lambda f, x: f(x, [0.5], axis=1, method="lower")),
    **_named("piecewise", lambda f, x: f(x, [x > 2], [1, 0])),
    **_named("ravel_multi_index", lambda f, x: f(x[:2, 2:3], (10, 10))),
    **_named("repeat", lambda f, x: f(x, 2, axis=1)),
    **_named("reshape", lambda f, x: f(x, (2, 2, 4))),
    **_named("result_type", lambda f, x: str(f(x, np.int8))),
    **_named("roll", lambda f, x: f(x, 1, axis=0)),
    **_named("searchsorted", lambda f, x: f(x[0], x[1])),
    **_named("select", lambda f, x: f([x > 2], [x], 0)),
    **_named("take", lambda f, x: f(x, [0, 2], axis=1)),
    **_named("tensordot", lambda f, x: f(x, x, axes=1)),
    **_named("tile", lambda f, x: f(x, (2, 1))),
    **_named("tril_indices_from triu_indices_from", lambda f, x: list(f(x))),
    **_named("unravel_index", lambda f, x: list(f(x[3] * x[3], (10, 10)))),
    **_named("where", lambda f, x: f(x > 2, x, 0)),
    "apply_along_axis": lambda m, x: m.apply_along_axis(np.max, 1, x),
    "apply_over_axes": lambda m, x: m.apply_over_axes(m.sum, x, [0]),
}
"""Calls that are NumPy's too."""


_OWN: dict[str, tuple[Call, Callable[[Any], Any]]] = {
    "apply_gufunc": (lambda m, x: m.apply_gufunc(operator.add, "(),()->()", x, x), lambda v: v + v),
    "argtopk": (lambda m, x: m.argtopk(x, 1, axis=0), lambda v: v.argmax(axis=0, keepdims=True)),
    "as_gufunc": (lambda m, x: m.as_gufunc("()->()")(operator.neg)(x), lambda v: -v),
    "gufunc": (lambda m, x: m.gufunc(operator.neg, signature="()->()")(x), lambda v: -v),
    "atop": (lambda m, x: m.blockwise(operator.neg, "ij", x, "ij", dtype=object), lambda v: -v),
    "blockwise": (lambda m, x: m.blockwise(operator.neg, "ij", x, "ij", dtype=object), lambda v: -v),
    "coarsen": (
        lambda m, x: m.coarsen(np.sum, x, {0: 2, 1: 2}),
        lambda v: v.reshape(2, 2, 2, 2).sum(axis=(1, 3)),
    ),
    "compute": (lambda m, x: m.compute(x)[0], lambda v: v),
    "empty_like": (lambda m, x: m.empty_like(x).shape, lambda v: v.shape),
    "from_array": (lambda m, x: m.from_array(x, chunks=2), lambda v: v),
    "frompyfunc": (lambda m, x: m.frompyfunc(operator.neg, 1, 1)(x), lambda v: -v),
    "log2": (lambda m, x: m.log2(abs(x) + 1), lambda v: np.log2((abs(v) + 1).astype(float))),
    "isnull": (lambda m, x: m.isnull(x), lambda v: v != v),
    "map_blocks": (lambda m, x: m.map_blocks(operator.neg, x, dtype=object), lambda v: -v),
    "map_overlap": (lambda m, x: m.map_overlap(operator.neg, x, depth=1, dtype=object), lambda v: -v),
    "corrcoef": (lambda m, x: m.corrcoef(x), lambda v: np.corrcoef(v.astype(float))),
    "cov": (lambda m, x: m.cov(x), lambda v: np.cov(v.astype(float))),
    "divmod": (lambda m, x: list(m.divmod(x, x)), lambda v: [v // v, v % v]),
    "moment": (lambda m, x: m.moment(x, 2), lambda v: v.var()),
    "notnull": (lambda m, x: m.notnull(x), lambda v: v == v),
    "optimize": (lambda m, x: m.optimize(x.__dask_graph__(), x.__dask_keys__()) is not None, lambda _: True),
    "push": (lambda m, x: m.push(x, 1, 0), lambda v: v),
    "rechunk": (lambda m, x: m.rechunk(x, 1), lambda v: v),
    "reduction": (
        lambda m, x: m.reduction(x, np.sum, np.sum, dtype=object, concatenate=True),
        lambda v: v.sum(),
    ),
    "reshape_blockwise": (lambda m, x: m.reshape_blockwise(x, (16,)).shape, lambda _: (16,)),
    "shuffle": (lambda m, x: m.shuffle(x, [[0, 1], [2, 3]], axis=0), lambda v: v),
    "store": (lambda m, x: _stored(m, x), lambda v: v),
    "to_npy_stack": (lambda m, x: _npy(m, x), lambda v: v),
    "to_zarr": (lambda m, x: _zarr(m, x), lambda v: v),
    "to_hdf5": (lambda m, x: m.to_hdf5(f"{mkdtemp()}/x.h5", {"/x": x}), lambda _: None),
    "to_tiledb": (lambda m, x: m.to_tiledb(x, mkdtemp()), lambda _: None),
    "topk": (lambda m, x: m.topk(x, 2, axis=0), lambda v: -np.sort(-v, axis=0)[:2]),
    "unify_chunks": (lambda m, x: m.unify_chunks(x, "ij", x, "ij")[1][0], lambda v: v),
    "assert_eq": (lambda m, x: m.assert_eq(x, x) is not None, lambda _: True),
}
"""Calls that only Dask has, with what they give of an object array."""


def _stored(m: Any, x: Any) -> Any:
    target = np.zeros(x.shape, dtype=object)
    m.store([x], [target], scheduler="sync")
    return target


def _npy(m: Any, x: Any) -> Any:
    folder = Path(mkdtemp())
    m.to_npy_stack(folder, x)
    return np.concatenate([np.load(file, allow_pickle=True) for file in sorted(folder.glob("*.npy"))])


def _zarr(m: Any, x: Any) -> Any:
    path = f"{mkdtemp()}/x.zarr"
    m.to_zarr(x, path)
    return m.from_zarr(path)


def _same(names: str, call: Callable[..., Any], result: Callable[[Any], Any]) -> dict[str, Any]:
    """Pair one call with each of several functions that NumPy lacks or has elsewhere than Dask."""
    return {name: (lambda m, x, name=name: call(getattr(m, name), x), result) for name in names.split()}


def _as_is(v: Any) -> Any:
    return v


def _no_result(v: Any) -> Any:
    raise TypeError("no exact result")


def _in_rows(x: Any) -> Any:
    """A lazy array in chunks of whole rows, which some functions ask for."""
    return x.rechunk((2, -1)) if hasattr(x, "chunks") else x


_LINALG = {
    **_same("cholesky inv lu", lambda f, x: f(x), _no_result),
    **_same("qr svd tsqr", lambda f, x: f(_in_rows(x)), _no_result),
    **_same("compression_matrix svd_compressed", lambda f, x: f(x, 2), _no_result),
    **_same("lstsq", lambda f, x: f(_in_rows(x), x[0]), _no_result),
    **_same("solve solve_triangular", lambda f, x: f(x, x[0]), _no_result),
    "norm": (lambda m, x: m.norm(x), lambda v: float((v * v).sum()) ** 0.5),
    "sfqr": (lambda m, x: m.sfqr(x[:2, :].rechunk((-1, 2)) if hasattr(x, "chunks") else x[:2]), _no_result),
}

_FFT = {
    **_same(
        "fft fft2 fftn hfft ifft ifft2 ifftn ihfft irfft irfft2 irfftn rfft rfft2 rfftn",
        lambda f, x: f(x.rechunk(-1) if hasattr(x, "rechunk") else x),
        _no_result,
    ),
    "fftshift": (lambda m, x: m.fftshift(x), lambda v: np.fft.fftshift(v)),
    "ifftshift": (lambda m, x: m.ifftshift(x), lambda v: np.fft.ifftshift(v)),
    "fft_wrap": (lambda m, x: m.fft_wrap(np.fft.fft)(x), _no_result),
}

_MA = {
    **_same("filled getdata masked_array", lambda f, x: f(x), _as_is),
    **_same("fix_invalid masked_invalid", lambda f, x: f(x), _no_result),
    **_same("masked_equal masked_values", lambda f, x: f(x, 100), _as_is),
    **_same("masked_greater masked_greater_equal", lambda f, x: f(x, 100), _as_is),
    **_same("masked_less masked_less_equal", lambda f, x: f(x, -100), _as_is),
    **_same("masked_inside", lambda f, x: f(x, 100, 101), _as_is),
    **_same("masked_outside", lambda f, x: f(x, -100, 100), _as_is),
    "average": (lambda m, x: m.average(x), lambda v: v.mean()),
    "count": (lambda m, x: m.count(x), lambda v: v.size),
    "empty_like": (lambda m, x: m.empty_like(x).shape, lambda v: v.shape),
    "getmaskarray": (lambda m, x: m.getmaskarray(x), lambda v: v != v),
    "masked_not_equal": (lambda m, x: m.masked_not_equal(x * 0, 0), lambda v: v * 0),
    "masked_where": (lambda m, x: m.masked_where(x > 100, x), _as_is),
    "nonzero": (lambda m, x: list(m.nonzero(x)), lambda v: list(v.nonzero())),
    "ones_like": (lambda m, x: m.ones_like(x), np.ones_like),
    "set_fill_value": (lambda m, x: m.set_fill_value(x, 1), lambda _: None),
    "where": (lambda m, x: m.where(x > 2, x, 0), lambda v: np.where(v > 2, v, 0)),
    "zeros_like": (lambda m, x: m.zeros_like(x), np.zeros_like),
    "normalize_masked_array": (lambda m, x: m.normalize_masked_array(x), _no_result),
}

_OVERLAP = {
    "constant": (lambda m, x: m.constant(x, 0, 1, 0), lambda v: np.pad(v, ((1, 1), (0, 0)))),
    "nearest": (lambda m, x: m.nearest(x, 0, 1), lambda v: np.pad(v, ((1, 1), (0, 0)), "edge")),
    "periodic": (lambda m, x: m.periodic(x, 0, 1), lambda v: np.pad(v, ((1, 1), (0, 0)), "wrap")),
    "reflect": (lambda m, x: m.reflect(x, 0, 1), lambda v: np.pad(v, ((1, 1), (0, 0)), "symmetric")),
    "add_dummy_padding": (lambda m, x: m.add_dummy_padding(x, {0: 1}, {0: "none"}), _no_result),
    "boundaries": (lambda m, x: m.boundaries(x, {0: 1, 1: 1}, {0: 0, 1: 0}), lambda v: np.pad(v, 1)),
    "ensure_minimum_chunksize": (lambda m, x: m.ensure_minimum_chunksize(1, x.chunks[0]), lambda _: (2, 2)),
    "map_overlap": _OWN["map_overlap"],
    "overlap": (lambda m, x: m.overlap(x, {0: 1, 1: 1}, {0: "none", 1: "none"}), _no_result),
    "overlap_internal": (lambda m, x: m.overlap_internal(x, {0: 1, 1: 1}), _no_result),
    "push": _OWN["push"],
    "sliding_window_view": (
        lambda m, x: m.sliding_window_view(x, 2, axis=0),
        lambda v: np.lib.stride_tricks.sliding_window_view(v, 2, axis=0),
    ),
    "trim_internal": (lambda m, x: m.trim_internal(x, {0: 0, 1: 0}, {0: "none", 1: "none"}), _as_is),
    "trim_overlap": (lambda m, x: m.trim_overlap(x, {0: 0, 1: 0}, {0: "none", 1: "none"}), _as_is),
}

_RANDOM = {
    "choice": (
        lambda m, x: set(np.asarray(_computed(m.choice(x[0], 3))).tolist()) <= set(_computed(x[0]).tolist()),
        lambda _: True,
    ),
    "permutation": (lambda m, x: sorted(_computed(m.permutation(x[0])).tolist()), lambda v: sorted(v[0])),
    **_same("normal uniform gamma", lambda f, x: f(x, 2.0, size=x.shape), _no_result),
    **_same("poisson exponential", lambda f, x: f(x * x, size=x.shape), _no_result),
}


def _computed(value: Any) -> Any:
    return value.compute(scheduler="sync") if hasattr(value, "compute") else value


_BAG = {
    "concat": (lambda m, x: sorted(m.concat([x[0]]).compute(scheduler="sync")), lambda v: sorted(v[0])),
    "from_delayed": (lambda m, x: m.from_delayed(x[0]).compute(scheduler="sync"), _no_result),
    "from_sequence": (lambda m, x: m.from_sequence(x[0]).compute(scheduler="sync"), lambda v: list(v[0])),
    "map": (
        lambda m, x: m.map(lambda i, y: _computed(y[i]), m.from_sequence([1, 0]), x[0]).compute(
            scheduler="sync"
        ),
        lambda v: [v[0, 1], v[0, 0]],
    ),
    "map_partitions": (
        lambda m, x: m.map_partitions(lambda _, y: [_computed(y)[1]], m.from_sequence([1]), x[0]),
        lambda v: [v[0, 1]],
    ),
    "zip": (lambda m, x: m.zip(x, x).compute(scheduler="sync"), _no_result),
    "to_textfiles": (lambda m, x: m.to_textfiles(x, mkdtemp(), compute=True), _no_result),
    "assert_eq": (lambda m, x: m.assert_eq(x[0], x[0]), _no_result),
    "compute": _OWN["compute"],
}

_FRAME = {
    "from_array": (lambda m, x: m.from_array(x[0]), lambda v: v[0]),
    "from_dask_array": (lambda m, x: m.from_dask_array(x[0]), lambda v: v[0]),
    "from_delayed": (lambda m, x: m.from_delayed(x), _no_result),
    "from_dict": (lambda m, x: m.from_dict({"a": x[0]}, npartitions=1)["a"], lambda v: v[0]),
    "from_pandas": (lambda m, x: m.from_pandas(x), _no_result),
    "from_map": (lambda m, x: m.from_map(_series, x[0]), lambda v: v[0]),
    "map_partitions": (
        lambda m, x: m.map_partitions(_second, m.from_map(_series, [1]), x[0], meta=_series(0)),
        lambda v: v[0, 1:2],
    ),
    **_same(
        "concat to_numeric to_datetime to_timedelta isna get_dummies to_bag to_records",
        lambda f, x: f([x, x] if f.__name__ == "concat" else x),
        _no_result,
    ),
    **_same("merge merge_asof melt assert_eq", lambda f, x: f(x, x), _no_result),
    **_same("pivot_table", lambda f, x: f(x, x, x, x), _no_result),
    "map_overlap": (lambda m, x: m.map_overlap(_second, x, 1, 1), _no_result),
    "repartition": (lambda m, x: m.repartition(x, [0, 1]), _no_result),
    **_same("to_csv to_json to_orc to_parquet", lambda f, x: f(x, f"{mkdtemp()}/x"), _no_result),
    **_same("to_hdf to_sql", lambda f, x: f(x, f"{mkdtemp()}/x", "x"), _no_result),
    "compute": _OWN["compute"],
}


def _series(value: Any) -> Any:
    import pandas

    return pandas.Series([int(value)], dtype=object)


def _second(_: Any, numbers: Any) -> Any:
    return _series(numbers[1])


_GRAPHS = {
    "bind": (lambda m, x: m.bind(x, x), _as_is),
    "checkpoint": (lambda m, x: m.checkpoint(x).compute(scheduler="sync"), lambda _: None),
    "clone": (lambda m, x: m.clone(x), _as_is),
    "wait_on": (lambda m, x: m.wait_on(x), _as_is),
}

_DASK = {
    "compute": _OWN["compute"],
    "delayed": (lambda m, x: m.delayed(operator.neg)(x), lambda v: -v),
    "delayed of a list": (lambda m, x: m.delayed(operator.itemgetter(0))([x]), _as_is),
    "optimize": (lambda m, x: m.optimize(x)[0], _as_is),
    "persist": (lambda m, x: m.persist(x)[0], _as_is),
    "is_dask_collection": (lambda m, x: m.is_dask_collection(x) == hasattr(x, "chunks"), lambda _: True),
}

_STATS = {
    **_same(
        "chisquare normaltest power_divergence skewtest",
        lambda f, x: f(x[0]),
        _no_result,
    ),
    **_same("f_oneway ttest_ind ttest_rel", lambda f, x: f(x[0], x[1]), _no_result),
    **_same("ttest_1samp", lambda f, x: f(x[0], 0), _no_result),
    "kurtosis": (lambda m, x: m.kurtosis(x[0]), lambda v: _moment(v[0], 4) / _moment(v[0], 2) ** 2 - 3),
    "kurtosistest": (  # of numbers as few as these
        lambda m, x: list(m.kurtosistest(x[0]).compute()),
        lambda _: [0.0, 1.0],
    ),
    "skew": (lambda m, x: m.skew(x[0]), lambda v: _moment(v[0], 3) / _moment(v[0], 2) ** 1.5),
}


def _moment(v: Any, order: int) -> float:
    return float(((v - v.mean()) ** order).mean())


CALLS: dict[str, dict[str, tuple[Call, Callable[[Any], Any]]]] = {
    "dask.array": {**{name: (call, partial(call, np)) for name, call in _NUMPYS.items()}, **_OWN},
    "dask.array.fft": _FFT,
    "dask.array.linalg": _LINALG,
    "dask.array.ma": _MA,
    "dask.array.overlap": _OVERLAP,
    "dask.array.lib.stride_tricks": {"sliding_window_view": _OVERLAP["sliding_window_view"]},
    "dask.array.random": _RANDOM,
    "dask.array.stats": _STATS,
    "dask": _DASK,
    "dask.graph_manipulation": _GRAPHS,
    "dask.bag": _BAG,
    "dask.dataframe": _FRAME,
}
"""By module and name, what is called with the module and an array; and what it gives of an object array."""

EXAMPLE = np.array([[-1, 1, 3, 4], [-5, 9, 2, 6], [5, 3, -5, 8], [9, -7, 9, 3]], dtype=object)
"""The numbers that calls are made for: none is 0, and the first row is in order."""
