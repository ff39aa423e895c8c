"""Calls of Dask's public functions: each with what it should give, by NumPy's function of that name on integers.

A call gets a module and an array of two axes: Dask's and an array of numbers, or NumPy's and Python ints.
"""

import operator
from collections.abc import Callable
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import dask.array as da
import numpy as np

Call = Callable[[Any, Any], Any]


def _named(names: str, call: Callable[..., Any]) -> dict[str, Call]:
    """The same call of several functions."""
    return {name: lambda m, x, name=name: call(getattr(m, name), x) for name in names.split()}


_ONE = (
    "abs absolute all any angle arccos arccosh arcsin arcsinh arctan arctanh argmax argmin argwhere around array "
    "asanyarray asarray atleast_1d atleast_2d atleast_3d average cbrt ceil conj corrcoef cos cosh count_nonzero "
    "cov deg2rad degrees diff dstack ediff1d exp exp2 expm1 fabs fix flatnonzero fliplr flipud floor frexp "
    "gradient hstack i0 imag invert iscomplex isfinite isinf isnan isneginf isposinf isreal log log10 log1p log2 "
    "logical_not max mean min modf nan_to_num nanargmax nanargmin nanmax nanmean nanmin nanprod nanstd nansum "
    "nanvar ndim negative nonzero ones_like positive prod ptp rad2deg radians ravel real reciprocal rint "
    "rot90 round shape sign signbit sin sinc sinh spacing sqrt square squeeze std sum tan tanh trace transpose "
    "tril triu trunc unique var vstack zeros_like"
)

_TWO = (
    "add allclose arctan2 array bitwise_and bitwise_or bitwise_xor copysign divide divmod dot equal float_power "
    "floor_divide fmax fmin fmod greater greater_equal hypot isclose isin ldexp less less_equal logaddexp "
    "logaddexp2 logical_and logical_or logical_xor matmul maximum minimum mod multiply nextafter not_equal outer "
    "remainder subtract true_divide union1d vdot"
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
    **_named("reshape", lambda f, x: f(x, (2, 8))),
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


def _of(result: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    """What a function that NumPy lacks should give, of an object array."""
    return lambda _, v: result(v)


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
    "isnull": (lambda m, x: m.isnull(x), lambda v: v != v),
    "map_blocks": (lambda m, x: m.map_blocks(operator.neg, x, dtype=object), lambda v: -v),
    "map_overlap": (lambda m, x: m.map_overlap(operator.neg, x, depth=1, dtype=object), lambda v: -v),
    "moment": (lambda m, x: m.moment(x, 1), lambda v: 0),
    "notnull": (lambda m, x: m.notnull(x), lambda v: v == v),
    "optimize": (lambda m, x: m.optimize(x.__dask_graph__(), x.__dask_keys__()) is not None, lambda v: True),
    "push": (lambda m, x: m.push(x, 1, 0), lambda v: v),
    "rechunk": (lambda m, x: m.rechunk(x, 1), lambda v: v),
    "reduction": (
        lambda m, x: m.reduction(x, np.sum, np.sum, dtype=object, concatenate=True),
        lambda v: v.sum(),
    ),
    "reshape_blockwise": (lambda m, x: m.reshape_blockwise(x, (16,)).shape, lambda v: (16,)),
    "shuffle": (lambda m, x: m.shuffle(x, [[0, 1], [2, 3]], axis=0), lambda v: v),
    "store": (lambda m, x: _stored(m, x), lambda v: v),
    "to_npy_stack": (lambda m, x: _npy(m, x), lambda v: v),
    "to_zarr": (lambda m, x: _zarr(m, x), lambda v: v),
    "to_hdf5": (lambda m, x: m.to_hdf5(f"{mkdtemp()}/x.h5", "/x", x), lambda v: None),
    "to_tiledb": (lambda m, x: m.to_tiledb(x, mkdtemp()), lambda v: None),
    "topk": (lambda m, x: m.topk(x, 2, axis=0), lambda v: -np.sort(-v, axis=0)[:2]),
    "unify_chunks": (lambda m, x: m.unify_chunks(x, "ij", x, "ij")[1][0], lambda v: v),
    "assert_eq": (lambda m, x: m.assert_eq(x, x) is not None, lambda v: True),
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
