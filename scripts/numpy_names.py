"""The names of NumPy, Dask and Zarr beside those here, and what differs: docs/numpy.md is made of this list.

    python scripts/numpy_names.py          # write the page anew

A test checks that each name here is there, that NumPy's functions do with an array of numbers what the rows
say, and that no public name of the package is left out.
"""

import textwrap
from pathlib import Path
from typing import NamedTuple

PAGE = Path(__file__).resolve().parents[1] / "docs" / "numpy.md"


class Row(NamedTuple):
    """Names that others have, in one string with blanks between; what has their place here; what differs.

    Without a name here, an attempt is an error that names the way out. Without a difference, arguments,
    results and errors are theirs.
    """

    theirs: str
    here: str = ""
    difference: str = ""


_OVERFLOWS = "Overflow raises `RNSOverflowError`, or what `overflow=` says."
_INTS = "Results are Python ints."
_MATRICES = "Of `np.linalg` along the last two axes: `axis1=-2, axis2=-1`."

SECTIONS: dict[str, tuple[str, list[Row]]] = {
    "Operators": (
        "With arrays of the same numbers, and with single integers of Python or NumPy.",
        [
            Row(
                "np.add np.subtract np.multiply np.negative",
                "rd.add rd.subtract rd.multiply rd.negative",
                _OVERFLOWS,
            ),
            Row("np.square", "rd.square", _OVERFLOWS),
            Row("np.positive", "x.__pos__"),
            Row("np.absolute", "rd.absolute", _OVERFLOWS),
            Row(
                "np.floor_divide np.remainder np.divmod",
                "x.__floordiv__ x.__mod__ x.__divmod__",
                "A divisor 0 raises.",
            ),
            Row("np.divide np.true_divide", "", "Not exact; `//` is. Of a FieldArray `x / y`."),
            Row(
                "np.power", "rd.power", f"Exponents are not negative; `pow(x, k, m)` is modular. {_OVERFLOWS}"
            ),
            Row(
                "np.left_shift np.right_shift",
                "rd.left_shift rd.right_shift",
                f"By one integer, of a PositionalArray by one for each too. {_OVERFLOWS}",
            ),
            Row(
                "np.bitwise_and np.bitwise_or np.bitwise_xor np.invert np.bitwise_count",
                "rd.bitwise_and rd.bitwise_or rd.bitwise_xor rd.invert rd.bitwise_count",
                "Of PositionalArrays: residues have no bits, and `x.to_positional(bits)` has.",
            ),
            Row(
                "np.matmul np.dot np.linalg.matmul",
                "rd.matmul rd.dot",
                f"`dot` of at most two axes. {_OVERFLOWS}",
            ),
            Row("np.outer np.linalg.outer", "rd.outer", _OVERFLOWS),
            Row(
                "np.convolve",
                "rd.convolve",
                f"`rd.convolve` takes an `axis`, and is cyclic and negacyclic too. {_OVERFLOWS}",
            ),
            Row(
                "np.linalg.matrix_power",
                "rd.linalg.matrix_power",
                f"Exponents are not negative but of a FieldArray. {_OVERFLOWS}",
            ),
            Row(
                "np.linalg.det",
                "rd.linalg.det",
                "Python ints, or an RNSArray by `moduli=`; of FieldArrays elements.",
            ),
            Row(
                "np.linalg.solve np.linalg.inv",
                "rd.linalg.solve rd.linalg.inv",
                "Numerators and denominators; of FieldArrays elements.",
            ),
            Row("np.linalg.matrix_rank", "rd.linalg.rank", "Of a FieldArray one for each prime."),
            Row("np.equal np.not_equal", "x.__eq__ x.__ne__", "Another type raises."),
            Row("np.less np.less_equal np.greater np.greater_equal", "x.__lt__ x.__le__ x.__gt__ x.__ge__"),
            Row("np.logical_and np.logical_or np.logical_not", "", "`(x != 0) & (y != 0)`, `x == 0`."),
        ],
    ),
    "Element by element": (
        "",
        [
            Row("np.sign", "rd.sign", "int8."),
            Row("np.maximum np.minimum np.clip", "rd.maximum rd.minimum rd.clip"),
            Row("np.where", "rd.where"),
            Row("np.gcd np.lcm", "rd.gcd rd.lcm", "`lcm` may overflow."),
            Row("np.diff", "rd.diff", _OVERFLOWS),
            Row("np.log2", "rd.log2 x.log2", "float64 with a relative error below 2^-50; beyond 2^1024 too."),
            Row("np.isin", "rd.isin"),
            Row("np.diagonal np.linalg.diagonal", "x.diagonal", _MATRICES),
            Row("np.sqrt np.exp np.log np.log10 np.sin np.floor", "", "Not exact, or nothing to do."),
            Row("np.iscomplexobj np.isrealobj", "x.dtype"),
        ],
    ),
    "Reductions": (
        "`axis` (or `()`), `keepdims` as NumPy's; lazy arrays give lazy integers. Dask's `split_every` too.",
        [
            Row("np.max np.amax np.nanmax", "x.max"),
            Row("np.min np.amin np.nanmin", "x.min"),
            Row("np.argmax np.argmin np.nanargmax np.nanargmin", "x.argmax x.argmin"),
            Row("np.ptp", "rd.ptp"),
            Row("np.sum np.nansum", "x.sum", f"Exact beyond the range. {_INTS}"),
            Row("np.trace np.linalg.trace", "x.trace", f"As `x.sum`. {_MATRICES}"),
            Row("np.prod np.nanprod", "x.prod", _OVERFLOWS),
            Row("np.gcd.reduce np.lcm.reduce", "x.gcd x.lcm", _INTS),
            Row("np.any np.all", "x.any x.all"),
            Row("np.count_nonzero", "rd.count_nonzero"),
            Row("np.mean np.nanmean", "x.mean", "`fractions.Fraction`."),
            Row("np.var np.nanvar", "x.var", "`fractions.Fraction`."),
            Row("np.std np.nanstd", "x.std", "`TypeError`: a root is not exact; `math.sqrt(x.var())`."),
            Row("np.median np.nanmedian", "rd.median", "An int, or a `fractions.Fraction`."),
            Row("np.average np.percentile np.quantile", "", "Not exact as a rule."),
            Row("np.histogram", "rd.histogram", "Edges are integers; no `density`, no `weights`."),
            Row("np.array_equal", "x.__eq__", "Of two arrays of numbers; computes lazy ones."),
        ],
    ),
    "Running results": (
        "",
        [
            Row("np.cumsum np.nancumsum", "x.cumsum", "A sum out of the range raises."),
            Row("np.cumprod np.nancumprod", "x.cumprod", _OVERFLOWS),
            Row("np.maximum.accumulate np.minimum.accumulate", "x.cummax x.cummin"),
        ],
    ),
    "Order": (
        "Each sort is stable; `kind` means nothing.",
        [
            Row("np.sort", "rd.sort", "The method `x.sort()` raises, for arrays never change."),
            Row("np.argsort", "rd.argsort x.argsort"),
            Row("np.searchsorted", "rd.searchsorted"),
            Row("np.unique", "rd.unique"),
            Row(
                "np.add.reduceat np.maximum.reduceat np.bincount",
                "rd.group_reduce",
                "NumPy's take arrays too: `reduceat` ascending indices, `bincount` small integers.",
            ),
            Row("np.partition np.argpartition np.lexsort", "", "`rd.sort`, `rd.argsort`, `x.topk`."),
            Row("da.topk da.argtopk", "x.topk x.argtopk"),
        ],
    ),
    "Shape and joining": (
        "Lazily, with the bound.",
        [
            Row(
                "np.reshape np.ravel np.transpose np.swapaxes",
                "x.reshape x.ravel x.transpose x.swapaxes",
                "In C order.",
            ),
            Row("np.ndarray.T np.moveaxis np.rollaxis", "x.T x.transpose"),
            Row("np.squeeze np.expand_dims np.broadcast_to", "x.squeeze rd.expand_dims rd.broadcast_to"),
            Row("np.flip np.roll np.take np.repeat np.tile", "x.flip x.roll x.take x.repeat rd.tile"),
            Row(
                "np.pad", "rd.pad", "With one number, or in the modes `edge`, `reflect`, `symmetric`, `wrap`."
            ),
            Row(
                "np.lib.stride_tricks.sliding_window_view",
                "x.__array_function__",
                "NumPy's function takes the arrays; xarray's `rolling` calls it.",
            ),
            Row("np.concatenate np.append", "rd.concatenate", "Of arrays of one number system."),
            Row(
                "np.stack np.hstack np.vstack np.block", "rd.stack rd.hstack rd.vstack rd.block", "Likewise."
            ),
            Row("np.split np.array_split np.hsplit np.vsplit np.dsplit", "rd.split"),
            Row(
                "np.ndarray.__getitem__", "x.__getitem__", "Fancy, Boolean, several axes; never assigned to."
            ),
            Row("np.nonzero np.flatnonzero", "x.nonzero"),
            Row("np.shape np.ndim np.size", "x.shape x.ndim x.size"),
        ],
    ),
    "Ways in and out": (
        "[inputs.md](inputs.md) has all of them.",
        [
            Row(
                "np.array np.asarray",
                "rd.array rd.asarray rd.from_ints",
                "Of integers of any length; the words are residues under a moduli set.",
            ),
            Row("np.zeros np.ones np.full np.eye np.identity", "rd.zeros rd.ones rd.full rd.eye rd.identity"),
            Row("np.arange np.linspace", "rd.arange rd.linspace", "Integers alone."),
            Row("np.frombuffer", "rd.from_bytes rd.from_limbs rd.from_residues"),
            Row("np.zeros_like np.ones_like np.full_like", "rd.zeros_like rd.ones_like rd.full_like"),
            Row("np.random.Generator.integers", "rd.random"),
            Row("np.ndarray.tolist np.ndarray.item", "x.tolist x.item", _INTS),
            Row(
                "np.ndarray.astype np.astype",
                "x.astype",
                'object, integers that hold each number, bool; floats with `casting="unsafe"`, rounded.',
            ),
            Row(
                "np.ndarray.__array__",
                "x.to_ints",
                "`np.asarray(x)` is an object array of Python ints, and so is each array in a list: "
                "`np.sum([f, g])` adds integers, of FieldArrays too; `np.sum(np.stack([f, g]), axis=0)` adds "
                "elements.",
            ),
            Row("np.ndarray.real np.ndarray.imag np.real np.imag", "x.real x.imag"),
            Row("np.ndarray.tobytes", "x.to_bytes x.to_limbs x.to_residues"),
            Row("np.ndarray.copy np.copy np.ndarray.flatten", "x.copy x.flatten"),
            Row(
                "np.ndarray.dtype np.result_type",
                "x.dtype",
                "object, what an element is; `x.words.dtype` is that of words.",
            ),
            Row("np.ndarray.nbytes", "x.nbytes", "Of the words."),
        ],
    ),
    "Dask": (
        "A lazy array is a Dask collection: `dask.compute`, `persist`, `visualize`, clusters. An array in "
        "memory has no `chunks`. [dask.md](dask.md) says what each of Dask's own functions does.",
        [
            Row("da.Array.compute da.Array.persist da.Array.visualize", "x.compute x.persist x.visualize"),
            Row("da.Array.chunks da.Array.chunksize da.Array.numblocks", "x.chunks x.chunksize x.numblocks"),
            Row("da.Array.npartitions da.Array.blocks da.Array.vindex", "x.npartitions x.blocks x.vindex"),
            Row("da.Array.rechunk", "x.rechunk", '`"auto"` is 64 to 128 MiB of words.'),
            Row(
                "da.Array.map_blocks",
                "x.map_blocks",
                "The function gets eager arrays of numbers, and gives such without `dtype`.",
            ),
            Row("da.Array.compute_chunk_sizes", "x.compute_chunk_sizes", "Called by what needs it."),
            Row(
                "da.concatenate da.stack da.asarray",
                "x.to_dask_array",
                "A Dask array of Python ints; `rd.concatenate` keeps residues. Not of FieldArrays.",
            ),
            Row("da.reduction", "x.reduce"),
            Row(
                "da.percentile",
                "x.to_dask_array",
                "`da.percentile(x, ...)` raises.",
            ),
            Row("da.to_npy_stack da.store", "x.to_zarr", "Dask's raise."),
        ],
    ),
    "Zarr": (
        "",
        [
            Row(
                "da.to_zarr da.Array.to_zarr",
                "x.to_zarr",
                "`mode`, `append_dim`, `component`, `compute` too.",
            ),
            Row(
                "da.from_zarr zarr.open",
                "rd.open_zarr",
                "The format is that of [store-format.md](store-format.md).",
            ),
        ],
    ),
}

OWN = {
    "rd": (
        "ModuliSet RNS RNSArray IntervalRNS IntervalRNSArray Positional PositionalArray PrimeFields "
        "FermatField FieldArray linalg "
        "errstate result_system fma mulsub muladd mod_add mod_subtract mod_multiply mod_power mod_inverse "
        "isqrt factorial binomial primorial inverse ntt intt to_interleaved from_interleaved long_multiply "
        "rescale base_extend "
        "batch_gcd product_tree remainder_tree ProductTree "
        "rational_reconstruct Fractions "
        "bit_length required_bits interval_arithmetic mixed_radix_digits fixed_point_interval to_decimal "
        "read_parquet read_seal write_seal SealForm FixedPointInterval IntervalEvaluation ReductionResult "
        "RNSError RNSOverflowError StoreError ChangedStoreError CorruptChunkError IncompleteStoreError "
        "InputError JobError NumberError poly sparse typing __version__"
    ),
    "rd.linalg": "lu rref nullspace charpoly permanent",
    "rd.poly": "multiply evaluate interpolate divmod gcd resultant discriminant derivative inverse_series "
    "log_series exp_series compose power_mod rational_interpolate",
    "rd.sparse": "SparseMatrix from_entries from_scipy read solve det rank minpoly",
    "x": (
        "system system_type moduli words residues signed bound with_bound measure_bound with_residues extend "
        "shrink interval is_even bit_length clip sort columns sign low upp exponent from_ints from_residues "
        "from_rns from_words plot to_numpy to_pandas to_arrow to_parquet to_rns to_positional bits lift "
        "inverse multiply_by_root create_store storable_lengths with_storable_chunks"
    ),
}
"""Public names that NumPy and Dask have nothing like, of the package and of arrays."""


_EXAMPLE = """\
```pycon
>>> import numpy as np
>>> import rnsdask as rd
>>> x = rd.from_ints([10**30, 7, 12])
>>> np.add(x, 5).tolist() == rd.add(x, 5).tolist() == (x + 5).tolist()
True
>>> np.sort(x).tolist(), np.max(x)
([7, 12, 1000000000000000000000000000000], 1000000000000000000000000000000)
```"""


def page() -> str:
    """The page as Markdown."""
    parts = [
        "# For those who know NumPy and Dask",
        _wrapped(
            "`np` is NumPy, `da` dask.array, `rd` rnsdask, and `x` an array of numbers. NumPy's functions "
            "take arrays of numbers, and do what the name beside them does:"
        ),
        _EXAMPLE,
        _wrapped(
            "A function that is not named here is a `TypeError` that says so, for NumPy itself would turn "
            "all residues into Python ints; `np.asarray(x)` does so when asked. `out=`, `where=` and dtypes "
            "other than object are refused, for results are new arrays of exact numbers."
        ),
        "Made by `scripts/numpy_names.py`; a test compares it with the code.",
    ]
    for title, (text, rows) in SECTIONS.items():
        lines = ["| there | here | difference |", "|---|---|---|"]
        lines += [f"| {_code(row.theirs)} | {_code(row.here) or 'none'} | {row.difference} |" for row in rows]
        parts.append("\n\n".join(filter(None, (f"## {title}", _wrapped(text), "\n".join(lines)))))
    own = [_code(" ".join(f"{owner}.{name}" for name in names.split())) for owner, names in OWN.items()]
    own[-1] += (
        ": see [operations.md](operations.md), [fields.md](fields.md), [positional.md](positional.md), "
        "[linalg.md](linalg.md), [polynomials.md](polynomials.md) and [sparse.md](sparse.md)."
    )
    parts += ["## Only here", *map(_wrapped, own)]
    return "\n\n".join(parts) + "\n"


def _wrapped(text: str) -> str:
    return textwrap.fill(text, 100, break_long_words=False, break_on_hyphens=False)


def _code(names: str) -> str:
    return ", ".join(f"`{_spelled(name)}`" for name in names.split())


_OPERATORS = {
    "mul": "x * x",
    "pos": "+x",
    "floordiv": "x // y",
    "mod": "x % y",
    "divmod": "divmod(x, y)",
    "lshift": "x << k",
    "rshift": "x >> k",
    "eq": "x == y",
    "ne": "x != y",
    "lt": "x < y",
    "le": "x <= y",
    "gt": "x > y",
    "ge": "x >= y",
    "getitem": "x[key]",
    "array": "np.asarray(x)",
}


def _spelled(name: str) -> str:
    """A name as people write it: operators by their signs."""
    owner, _, last = name.rpartition(".")
    sign = _OPERATORS.get(last.strip("_")) if last.startswith("__") else None
    return name if sign is None else sign.replace("x", "a") if owner.startswith("np") else sign


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE}")
