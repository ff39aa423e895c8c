"""Dask's public functions and what they do with arrays of numbers: docs/dask.md is made of this list.

    python scripts/dask_names.py           # write the page anew

A test calls each with arrays of every kind, lazy and in memory, and fails where Dask has a name that is not
here.
"""

import textwrap
from pathlib import Path
from typing import NamedTuple

PAGE = Path(__file__).resolve().parents[1] / "docs" / "dask.md"


class Row(NamedTuple):
    """Functions that do alike, their names in one string with blanks between.

    What becomes of a lazy RNSArray and of one in memory is "right", "error" or "wrong"; `instead` says what
    to call where it is not right, or what to know.
    """

    names: str
    lazy: str
    in_memory: str
    instead: str = ""


_ROUNDED = "Not exact; `x.to_dask_array().astype(float)` rounds."
_INTS = "`x.to_dask_array()`"
_MACHINE = "`x.astype(np.int64)`"

FUNCTIONS: dict[str, list[Row]] = {
    "dask.array": [
        Row(
            "abs absolute add clip divmod equal floor_divide greater greater_equal left_shift less "
            "less_equal maximum minimum mod multiply negative not_equal positive power remainder "
            "right_shift sign square subtract",
            "right",
            "right",
            "Operators and functions of `rd`: words stay words.",
        ),
        Row(
            "all any append apply_along_axis apply_over_axes argwhere array asanyarray asarray atleast_1d "
            "atleast_2d atleast_3d atop block blockwise broadcast_arrays broadcast_to choose compress "
            "concatenate count_nonzero delete diagonal diff dstack ediff1d einsum empty_like expand_dims "
            "extract flatnonzero flip fliplr flipud from_array full_like hstack isin isnull matmul max "
            "meshgrid min moveaxis nanmax nanmin nanprod nansum ndim nonzero notnull ones_like pad prod "
            "ptp ravel reduction result_type roll rollaxis rot90 select shape squeeze stack sum swapaxes "
            "take tile topk trace transpose unify_chunks union1d unique vstack where zeros_like",
            "right",
            "right",
            "Of Python ints mostly; those of `rd` and `np` stay with words.",
        ),
        Row("compute", "right", "right"),
        Row("average gradient mean", "right", "right", "Rounded as Python divides; `x.mean()` is exact."),
        Row(
            "map_blocks",
            "right",
            "right",
            "The function gets the whole array for each chunk of the result: use `x.map_blocks`.",
        ),
        Row(
            "apply_gufunc as_gufunc gufunc cumprod cumsum nancumprod nancumsum insert optimize "
            "searchsorted tril_indices_from triu_indices_from",
            "right",
            "error",
            "`x.rechunk()`, `x.cumsum()`, `rd.searchsorted`",
        ),
        Row("histogram", "right", "error", "`rd.histogram`"),
        Row("imag real", "right", "right"),
        Row("log2", "right", "right", "Rounded, as `x.log2()`."),
        Row("moment std var", "right", "error", "Rounded; `x.var()` is exact."),
        Row("argmax argmin argtopk nanargmax nanargmin", "error", "error", "`x.argmax()`, `x.argtopk(k)`"),
        Row(
            "dot vdot tensordot outer diag tril triu median nanmedian repeat reshape reshape_blockwise "
            "rechunk shuffle",
            "error",
            "error",
            "`rd.dot`, `rd.outer`, `rd.median`, `x.repeat`, `x.reshape`, `x.rechunk`, `x[indices]`, "
            "`rd.where(da.tri(n, dtype=bool), x, 0)`",
        ),
        Row(
            "histogram2d histogramdd percentile nanpercentile quantile nanquantile coarsen "
            "map_overlap piecewise push",
            "error",
            "error",
            f"{_INTS}; sorted numbers are `rd.sort(x)`.",
        ),
        Row(
            "to_npy_stack", "error", "error", f"{_INTS}: objects, which `np.load` reads with `allow_pickle`."
        ),
        Row("store to_zarr to_hdf5 to_tiledb", "error", "error", "`x.to_zarr`"),
        Row("bincount digitize ravel_multi_index unravel_index", "error", "error", _MACHINE),
        Row(
            "bitwise_and bitwise_not bitwise_or bitwise_xor invert",
            "error",
            "error",
            "`x.to_positional(bits)`",
        ),
        Row("logical_and logical_not logical_or logical_xor", "error", "error", "`x != 0`, `x == 0`"),
        Row("allclose isclose", "error", "error", "`x == y` is exact."),
        Row("divide true_divide reciprocal float_power", "error", "error", "`x // y`, `x**k`"),
        Row("assert_eq corrcoef cov frompyfunc", "error", "error", _INTS),
        Row(
            "angle arccos arccosh arcsin arcsinh arctan arctan2 arctanh cbrt copysign cos cosh deg2rad "
            "degrees exp exp2 expm1 fabs fmod frexp hypot i0 ldexp log log10 log1p logaddexp "
            "logaddexp2 modf nanmean nanstd nanvar nextafter rad2deg radians sin sinc sinh spacing sqrt "
            "tan tanh",
            "error",
            "error",
            _ROUNDED,
        ),
        Row(
            "around ceil conj fix floor fmax fmin iscomplex isfinite isinf isnan isneginf isposinf "
            "isreal nan_to_num rint round signbit trunc",
            "error",
            "error",
            "Nothing to do for integers; `x < 0`, `rd.maximum`, `rd.minimum`.",
        ),
    ],
    "dask.array.fft": [
        Row(
            "fft fft2 fft_wrap fftn hfft ifft ifft2 ifftn ihfft irfft irfft2 irfftn rfft rfft2 rfftn",
            "error",
            "error",
            "Not exact; `rd.ntt` is.",
        ),
        Row("fftshift ifftshift", "right", "error", "`x.rechunk()`"),
    ],
    "dask.array.linalg": [
        Row("norm", "right", "right", "Rounded."),
        Row(
            "cholesky compression_matrix inv lstsq lu qr sfqr solve solve_triangular svd svd_compressed tsqr",
            "error",
            "error",
            "`rd.linalg` is exact.",
        ),
    ],
    "dask.array.ma": [
        Row(
            "average count empty_like filled getdata getmaskarray masked_array masked_equal "
            "masked_greater masked_greater_equal masked_inside masked_less masked_less_equal "
            "masked_not_equal masked_outside masked_values masked_where nonzero ones_like set_fill_value "
            "where zeros_like",
            "right",
            "right",
            "Of Python ints.",
        ),
        Row("fix_invalid masked_invalid normalize_masked_array", "error", "error", "No number is invalid."),
    ],
    "dask.array.overlap": [
        Row("boundaries constant ensure_minimum_chunksize nearest periodic reflect", "right", "error", _INTS),
        Row(
            "add_dummy_padding map_overlap overlap overlap_internal push sliding_window_view",
            "error",
            "error",
            _INTS,
        ),
        Row(
            "trim_internal trim_overlap",
            "wrong",
            "error",
            f"By `da.map_blocks`, which repeats the whole array in each chunk: {_INTS}",
        ),
    ],
    "dask.array.lib.stride_tricks": [Row("sliding_window_view", "error", "error", _INTS)],
    "dask.array.random": [
        Row("choice", "right", "right", "Of Python ints."),
        Row("permutation", "right", "error", "`x.rechunk()`"),
        Row("exponential gamma normal poisson uniform", "error", "error", "And all others with parameters."),
    ],
    "dask.array.stats": [
        Row("kurtosis kurtosistest skew", "right", "error", "Rounded."),
        Row(
            "chisquare f_oneway normaltest power_divergence skewtest ttest_1samp ttest_ind ttest_rel",
            "error",
            "error",
            _ROUNDED,
        ),
    ],
    "dask": [
        Row("compute optimize persist is_dask_collection", "right", "right"),
        Row("delayed", "right", "right", "The function gets the array, in memory."),
    ],
    "dask.graph_manipulation": [Row("bind checkpoint clone wait_on", "right", "right")],
    "dask.bag": [
        Row("compute from_sequence map map_partitions", "right", "right", "`map` gives each call the array."),
        Row("concat", "right", "error", "One partition for each chunk of an array of one axis."),
        Row("assert_eq from_delayed to_textfiles zip", "error", "error", "`from_sequence`"),
    ],
    "dask.dataframe": [
        Row("compute from_map map_partitions", "right", "right"),
        Row("from_dict", "error", "right", "`x.to_ints()`"),
        Row("from_array from_dask_array", "error", "error", f"{_INTS}"),
        Row(
            "assert_eq concat from_delayed from_pandas get_dummies isna map_overlap melt merge merge_asof "
            "pivot_table repartition to_bag to_csv to_datetime to_hdf to_json to_numeric to_orc "
            "to_parquet to_records to_sql to_timedelta",
            "error",
            "error",
            "They take data frames.",
        ),
    ],
}
"""By module, its functions that take a collection."""

WITHOUT: dict[str, str] = {
    "dask.array": (
        "arange array_expr_enabled empty eye from_delayed from_npy_stack from_tiledb from_zarr "
        "fromfunction full indices linspace ones register_chunk_type tri tril_indices triu_indices zeros"
    ),
    "dask.array.fft": "fftfreq rfftfreq",
    "dask.array.linalg": "compression_level",
    "dask.array.overlap": "coerce_boundary coerce_depth coerce_depth_type",
    "dask.array.random": (
        "beta binomial chisquare default_rng f geometric gumbel hypergeometric laplace logistic lognormal "
        "logseries multinomial negative_binomial noncentral_chisquare noncentral_f pareto power randint "
        "random random_integers random_sample rayleigh seed standard_cauchy standard_exponential "
        "standard_gamma standard_normal standard_t triangular vonmises wald weibull zipf"
    ),
    "dask.array.stats": "moment",
    "dask": "annotate get get_annotations istask visualize",
    "dask.bag": "from_url range read_avro read_text",
    "dask.dataframe": (
        "from_graph get_collection_type read_csv read_fwf read_hdf read_json read_orc read_parquet "
        "read_sql read_sql_query read_sql_table read_table"
    ),
}
"""Functions that take no collection, or numbers of a distribution, or that only draw a graph."""


def names(module: str) -> set[str]:
    """All names of a module that are listed."""
    listed = {name for row in FUNCTIONS[module] for name in row.names.split()}
    return listed | without_collections(module)


def without_collections(module: str) -> set[str]:
    """Names of a module's functions that take no collection."""
    return set(WITHOUT.get(module, "").split())


def verdict(module: str, name: str, where: str) -> str:
    """Expected result for an RNSArray that is "lazy" or "in memory"."""
    row = next(row for row in FUNCTIONS[module] if name in row.names.split())
    return row.lazy if where == "lazy" else row.in_memory


def page() -> str:
    """The page as Markdown."""
    parts = [
        "# Dask's functions and arrays of numbers",
        "Use the functions of `np` and `rd` and the methods of the array: they stay with words, "
        "[numpy.md](numpy.md) lists them. Dask's own functions ask no array how it is added or sorted. "
        "Most convert an array `x` of numbers to a Dask array of Python ints, as `x.to_dask_array()` "
        "does: exact, and slow.",
        "```python\n"
        ">>> import dask.array as da\n"
        ">>> import rnsdask as rd\n"
        ">>> x = rd.from_ints([1, 7, 3], chunks=2)\n"
        ">>> da.piecewise(x, [x > 2], [1, 0]).compute()\n"
        "Traceback (most recent call last):\n"
        "    ...\n"
        "TypeError: numpy.piecewise takes no RNSArray; ...\n"
        ">>> da.piecewise(x.to_dask_array(), [x > 2], [1, 0]).compute()\n"
        "array([0, 1, 1], dtype=object)\n"
        "```",
        "Functions that read the tasks of a collection get its chunks, which are arrays of numbers in "
        "memory: they do what NumPy's functions do with those, or fail with one line as that one.",
        'The tables say what a function does with an RNSArray: "right"; "error", one that says why; "wrong", '
        "where Dask leaves no way to refuse. IntervalRNSArrays and PositionalArrays do likewise, or fail "
        "where they have no such function. **FieldArrays** are not converted by `da.asarray`, for Dask "
        "would add integers and not elements: what is not right is an error, and "
        "`x.lift().to_dask_array()` has the integers.",
        "In memory, an array has no `chunks`, `numblocks` and other attributes of Dask's arrays, which "
        "many functions read: `x.rechunk()` makes it lazy.",
        "`x.map_blocks` is Dask's, with `drop_axis`, `new_axis`, `chunks`, `block_id`, `block_info` and "
        "the rest. Without `dtype` it gives an array of numbers; with `dtype=object`, which is `x.dtype`, "
        "a Dask array of Python ints.",
        "On a cluster of GPUs, Dask's own functions of `x.words` and other plain arrays need "
        '`dask.config.set({"array.rechunk.method": "tasks"})`: [clusters.md](clusters.md#in-a-notebook).',
        "Made by `scripts/dask_names.py`; a test calls every function.",
    ]
    parts = [part if part.startswith(("#", "```")) else textwrap.fill(part, 100) for part in parts]
    for module, rows in FUNCTIONS.items():
        lines = ["| functions | lazy | in memory | instead, or to know |", "|---|---|---|---|"]
        lines += [f"| {_code(row.names)} | {row.lazy} | {row.in_memory} | {row.instead} |" for row in rows]
        without = WITHOUT.get(module)
        text = textwrap.fill(f"No collections are taken by {_code(without)}.", 100) if without else ""
        parts.append("\n\n".join(filter(None, (f"## {module}", "\n".join(lines), text))))
    return "\n\n".join(parts) + "\n"


def _code(listed: str) -> str:
    return ", ".join(f"`{name}`" for name in sorted(listed.split()))


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE}")
