"""NumPy's protocols for arrays of numbers, as for ``np.add(x, y)`` and ``np.max(x)``.

A function of NumPy is found by its name, as a public function of the package or as a method of the array. All
other functions are refused: NumPy itself would convert all residues to Python ints unasked.
"""

import inspect
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import dask.array as da
import numpy as np

from rnsdask.arrays.deferring import is_known
from rnsdask.cluster.limits import check_bytes
from rnsdask.core import rows
from rnsdask.core.axes import axis_indices
from rnsdask.core.errors import abbreviate, brief, with_article
from rnsdask.core.moduli import as_integer
from rnsdask.core.public import public_function
from rnsdask.core.reductions import REDUCTIONS
from rnsdask.lazy import functions, segments
from rnsdask.lazy.elementwise import has
from rnsdask.lazy.groups import SEGMENTS
from rnsdask.lazy.integer_operands import are_integers, with_arrays
from rnsdask.lazy.operands import check_no_array, find_lengths, is_number_array, is_true

# ---- ufuncs -----------------------------------------------------------------------------------------------


def _relate(relation: str, a: Any, b: Any) -> Any:
    if is_number_array(a):
        return functions.relate(a, relation, b)
    return functions.relate(b, relation.translate(str.maketrans("<>", "><")), a)


def _divide(parts: tuple[rows.Part, ...], a: Any, b: Any) -> Any:
    found = functions.floor_divide(a, b, *parts)
    return found[0] if len(parts) == 1 else tuple(found)


def _divide_in_field(_: None, a: Any, b: Any) -> Any:
    if not has(rows.divide_by, a, b):
        raise _refusal("numpy.divide", (a, b))
    return functions.divide(a, b)


_BY_ROWS: dict[rows.Row[..., Any], Callable[..., Any]] = {
    rows.absolute: lambda _, a: abs(a),
    rows.compare: _relate,
    rows.divide_by: _divide_in_field,
    rows.floor_divide: _divide,
}
"""Functions of what a name of NumPy's chooses of a row, and of the operands."""

_OPERATORS: dict[str, Callable[..., Any]] = {
    "positive": lambda a: a,  # no row: nothing is computed
    **{name: partial(f, chosen) for row, f in _BY_ROWS.items() for name, chosen in row.numpy.items()},
}
"""Ufuncs that are operators here; the others are public functions of the same name."""

_BY_MACHINE_INTEGERS = [row.name for row in (rows.left_shift, rows.right_shift, rows.power)]
"""Ufuncs whose second operand may be an array of machine integers, which their functions check."""

_REDUCTIONS = {
    **{reduction.ufunc: reduction.name for reduction in REDUCTIONS.values() if reduction.ufunc is not None},
    **{"multiply": "prod", "logical_and": "all", "logical_or": "any"},
}
_OF_ROWS = {name: row.name for row in rows.ROWS.values() if row not in _BY_ROWS for name in row.numpy}
_SCANS = {name.partition(".")[0]: method for name, method in _OF_ROWS.items() if "." in name}
"""Methods that correspond to ``ufunc.reduce`` and ``ufunc.accumulate``."""

_MAKERS = {"arange", "array", "asarray", "eye", "full", "identity", "ones", "zeros"}
"""Functions of no array of numbers, but like one, of which they learn no more than its kind."""

_INSTEAD = {
    **dict.fromkeys(_MAKERS, "rd.zeros(shape, x.system), rd.asarray and so on make arrays of a system"),
    **dict.fromkeys(("log", "log10", "log1p"), "np.log2(x) gives logarithms to the base 2, as float64"),
    **dict.fromkeys(("histogram2d", "histogramdd"), "rd.histogram counts the numbers of one array"),
    "histogram_bin_edges": "rd.histogram gives edges and counts",
    "sqrt": "rd.isqrt(x) gives roots rounded down, exactly",
    **{"divide": "x // y gives quotients", "logical_not": "x == 0 gives Booleans"},
    **dict.fromkeys(("logical_and", "logical_or", "logical_xor"), "x != 0 gives Booleans"),
    **{"isclose": "x == y is exact", "allclose": "np.array_equal is exact"},
    **dict.fromkeys(("lstsq", "pinv"), "rd.linalg.solve(x.T @ x, x.T @ b) gives least squares, exactly"),
    "cov": "y @ y.T of y = n * x - x.sum(axis=1)[:, None], with n columns, is n * n * (n - 1) times it",
}
"""Ways out for ufuncs that are missing; without an entry, the error says how to make Python ints."""


_BY_LAPACK = {"cholesky", "cond", "eig", "eigh", "eigvals", "eigvalsh", "norm", "qr", "svd", "svdvals"}
"""Functions of ``numpy.linalg`` that take floating-point numbers alone, or make such of Python ints."""


def apply_ufunc(ufunc: np.ufunc, method: str, inputs: Sequence[Any], options: dict[str, Any]) -> Any:
    """Apply a ufunc to arrays of numbers, as ``__array_ufunc__``.

    TypeError if there is no such function, an operand is an array of another library, or an option is
    ``out``, ``where``, or a dtype other than object.
    """
    types: Iterable[type] = (type(v) for v in inputs if hasattr(v, "__array_ufunc__"))
    if not all(map(is_known, types)):
        return NotImplemented
    name = f"numpy.{ufunc.__name__}" + ("" if method == "__call__" else f".{method}")
    if method not in ("__call__", "outer", "reduce", "accumulate", "reduceat"):
        raise _refusal(name, inputs)
    given = _checked_options(name, options)
    if method == "reduceat":
        return _reduce_at(ufunc, name, inputs, **given)
    first, *others = inputs
    may_differ = ufunc.__name__ in _BY_MACHINE_INTEGERS and is_number_array(first)
    operands = [_operand(first), *map(_scalar if may_differ else _operand, others)]
    if method == "reduce":
        return _apply_along(_REDUCTIONS, ufunc, name, operands, {"axis": 0, **given})
    if method == "accumulate":
        return _apply_along(_SCANS, ufunc, name, operands, {"axis": 0, **given})
    if given:
        raise TypeError(f"{name} of an array of numbers takes no {next(iter(given))}")
    function = public_function(ufunc.__name__) or _OPERATORS.get(ufunc.__name__)
    if function is None:
        raise _refusal(name, inputs)
    if method != "outer":
        return function(*operands)
    return _outer(function, *(operands if may_differ else with_arrays(*operands)))


def _checked_options(name: str, options: dict[str, Any]) -> dict[str, Any]:
    """Refuse options that are not supported, and drop those that ask for the default."""
    given = dict(options)
    if any(array is not None for array in given.pop("out", None) or ()):
        raise TypeError(f"{name} of an array of numbers takes no out: its result is a new object")
    dtype = given.pop("dtype", None)
    if dtype is not None and np.dtype(dtype) != object:
        raise TypeError(f"{name} of an array of numbers is exact, got dtype {np.dtype(dtype)}")
    if given.pop("where", True) is not True:
        raise TypeError(f"{name} of an array of numbers takes no where; rd.where chooses numbers")
    return given


def _operand(value: Any) -> Any:
    """Convert an operand for operators: NumPy's scalars, which would call the ufunc again, to Python's."""
    if is_number_array(value) or (isinstance(value, da.Array) and not value.ndim):
        return value
    value = _scalar(value)
    if not are_integers(value):
        check_no_array(value)
    return value


def _scalar(value: Any) -> Any:
    """Convert NumPy's scalars and arrays without axes to Python's numbers."""
    return value.item() if isinstance(value, np.generic | np.ndarray) and not np.ndim(value) else value


def _apply_along(
    methods: dict[str, str], ufunc: np.ufunc, name: str, operands: list[Any], given: dict[str, Any]
) -> Any:
    """Reduce or accumulate by the array's method; an array of one axis gets no `axis`."""
    (x,) = operands
    method = getattr(x, methods.get(ufunc.__name__, ""), None)
    if method is None:
        raise _refusal(name, operands)
    if given.get("keepdims") is False:
        del given["keepdims"]
    if x.ndim == 1 and given["axis"] in (None, 0, -1) and "keepdims" not in given:
        del given["axis"]
    taken = inspect.signature(method).parameters
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in taken.values()):
        return method(**given)  # raises an error that says why the method is missing
    if wrong := next((key for key in given if key not in taken), None):
        raise TypeError(f"{name} of {with_article(type(x))} with {x.ndim} axes takes no {wrong}")
    return method(**given)


def _reduce_at(ufunc: np.ufunc, name: str, inputs: Sequence[Any], axis: Any = 0) -> Any:
    """Reduce segments of an array's axis, which begin at indices."""
    x, indices = inputs
    if not is_number_array(x) or (operation := _REDUCTIONS.get(ufunc.__name__)) not in SEGMENTS:
        raise _refusal(name, inputs)
    return segments.reduce_at(x, indices, axis, operation, name)


def _outer(function: Callable[..., Any], a: Any, b: Any) -> Any:
    """Apply a function to all pairs; the first operand's axes come first."""
    if is_number_array(a):
        a = a[(..., *(None,) * np.ndim(b))]  # type: ignore[index]
    return function(a, b)


# ---- other functions --------------------------------------------------------------------------------------

_MODULES = ("numpy", "numpy.linalg", "numpy.lib.stride_tricks")
"""NumPy's modules whose functions have counterparts of the same name here."""

_NUMPYS_OWN = {
    *("flatnonzero", "imag", "iscomplexobj", "isrealobj", "moveaxis", "ndim", "real", "reshape", "rollaxis"),
    *("shape", "size", "transpose"),
}
"""Functions that NumPy implements by an array's methods and attributes alone."""

_NUMPYS_SPLITS = {"array_split", "dsplit", "hsplit", "vsplit"}
"""NumPy's own functions that need known lengths."""

_PART_BYTES = 2**9
"""Least bytes that each part of a split array takes: Python's objects."""

_ALIASES = {
    **{"amax": "max", "amin": "min"},
    # Numbers are never NaN.
    **{f"nan{name}": name for name in ("argmax", "argmin", "cumprod", "cumsum", "max", "mean", "median")},
    **{f"nan{name}": name for name in ("min", "prod", "std", "sum", "var")},
    **{name: function for name, function in _OF_ROWS.items() if "." not in name},
}
"""NumPy's names of functions that are called otherwise here."""

_KEYWORDS = {"clip": {"a_min": "min", "a_max": "max"}, "isin": {"test_elements": "values"}}
"""NumPy's names of arguments that are called otherwise here."""

_OF_MATRICES = ("diagonal", "trace")
"""Functions whose matrices are the last two axes in ``numpy.linalg``, and the first two in ``numpy``."""


def apply_function(function: Callable[..., Any], types: Iterable[type], args: Any, kwargs: Any) -> Any:
    """Apply a function of NumPy, as ``__array_function__``; TypeError if it has no counterpart here."""
    if not all(map(is_known, types)):
        return NotImplemented
    name = function.__name__
    if function.__module__ not in _MODULES:
        raise _refusal(f"{function.__module__}.{name}", (*args, *kwargs.values()))
    args, kwargs = _bind_first(function, args, kwargs)
    if function.__module__ == "numpy.linalg" and name in _OF_MATRICES:
        kwargs = {"axis1": -2, "axis2": -1, **kwargs}
    if name in _NUMPYS_SPLITS:
        find_lengths(*filter(is_number_array, args[:1]))
        _check_sections(*args[1:2], **kwargs)
    if name in _NUMPYS_OWN | _NUMPYS_SPLITS:  # as for subclasses of NumPy's arrays
        return np.empty(0).__array_function__(function, (), args, kwargs)
    name, args = _ALIASES.get(name, name), tuple(map(_scalar, args))
    found = None if name in _MAKERS else _SPECIAL.get(name) or public_function(name, function.__module__)
    if found is None and args and is_number_array(args[0]):
        method = getattr(type(args[0]), name, None)
        found = method if callable(method) else None
    if found is None:
        raise _refusal(f"{function.__module__}.{name}", (*args, *kwargs.values()))
    _check_arguments(f"{function.__module__}.{name}", found, args, kwargs)
    return found(*args, **kwargs)


def _check_sections(indices_or_sections: Any = 1, **_: Any) -> None:
    """Raise JobError if there is too little memory for so many parts."""
    if hasattr(indices_or_sections, "__index__") and not np.ndim(indices_or_sections):
        count = as_integer(indices_or_sections, "indices_or_sections")
        check_bytes(_PART_BYTES * count, f"{abbreviate(count)} parts of an array")


def _check_arguments(name: str, found: Callable[..., Any], args: Any, kwargs: Any) -> None:
    """Refuse arguments of NumPy's function that its counterpart does not take."""
    taken = inspect.signature(found)
    try:
        taken.bind(*args, **kwargs)
    except TypeError as error:
        wrong = next((key for key in kwargs if key not in taken.parameters), None)
        rule = f", {error}" if wrong is None else f" takes no {wrong}"
        raise TypeError(f"{name} of an array of numbers{rule}") from None


def _bind_first(function: Callable[..., Any], args: Any, kwargs: Any) -> tuple[Any, dict[str, Any]]:
    """Return arguments with the first one by position, and keywords by their names here."""
    names = _KEYWORDS.get(function.__name__, {})
    kwargs = {names.get(key, key): value for key, value in kwargs.items()}
    first = "" if args else next(iter(inspect.signature(function).parameters), "")
    return ((kwargs.pop(first),), kwargs) if first in kwargs else (args, kwargs)


def _array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> bool:  # noqa: ARG001  (numbers are never NaN)
    """Whether shapes and all numbers are equal; computes lazy arrays."""
    x, y = (a1, a2) if is_number_array(a1) else (a2, a1)
    if not (is_number_array(y) or are_integers(y)):
        kinds = f"{type(a1).__name__} and {type(a2).__name__}"
        raise TypeError(
            f"numpy.array_equal takes two arrays of numbers, got {kinds}; rd.from_ints makes them"
        )
    find_lengths(*filter(is_number_array, (x, y)))
    lengths = y.words.shape[1:] if is_number_array(y) else np.shape(y)
    return x.words.shape[1:] == lengths and is_true(functions.relate(x, "==", y).all())


def _result_type(*arrays_and_dtypes: Any) -> np.dtype[Any]:  # noqa: ARG001  (whatever the other operands are)
    return np.dtype(object)


def _where(condition: Any, x: Any = None, y: Any = None) -> Any:
    if x is None and y is None:
        return condition.nonzero()
    condition = np.bool_(condition) if isinstance(condition, bool) else condition
    condition, x = _fill_gaps(condition, x, False)
    condition, y = _fill_gaps(condition, y, True)
    return functions.where(condition, x, y)


def _fill_gaps(condition: Any, value: Any, unused: bool) -> tuple[Any, Any]:
    """Replace a value that is not a number by 0 if the whole condition is `unused`; returns both.

    xarray fills missing numbers before it searches a maximum, even if there are no missing ones.
    """
    is_number = is_number_array(value) or hasattr(value, "__index__") or np.ndim(value) > 0
    if is_number or getattr(condition, "dtype", None) != np.bool_:
        return condition, value
    problem = (
        f"numpy.where needs a number for each place, got {brief(value)} of type {type(value).__name__}; "
        "xarray's where(condition, 0) and fill_value=0 give one"
    )
    if isinstance(condition, da.Array):
        chunks: Any = condition
        return chunks.map_blocks(_check_all, value=unused, problem=problem, dtype=bool), 0
    return _check_all(condition, value=unused, problem=problem), 0


def _check_all(condition: Any, *, value: bool, problem: str) -> Any:
    """Return a Boolean array; TypeError unless all its elements are `value`."""
    if not is_true((condition == value).all()):
        raise TypeError(problem)
    return condition


def _convolve(a: Any, v: Any, mode: str = "full") -> Any:
    """Convolve operands of one axis, with NumPy's arguments."""
    for operand in (a, v):
        if is_number_array(operand) and operand.words.ndim > 2:
            raise ValueError(
                f"numpy.convolve takes operands of one axis, got {operand.words.ndim - 1}; rd.convolve takes "
                "an axis"
            )
    return public_function("convolve")(a, v, mode)  # type: ignore[misc]


def _append(arr: Any, values: Any, axis: int | None = None) -> Any:
    return public_function("concatenate")((arr, values), axis)  # type: ignore[misc]


def _pad(array: Any, pad_width: Any, mode: str = "constant", *, constant_values: Any = 0) -> Any:
    """Pad with a number; pad arrays in memory also with other values, as xarray's NaN, as Python ints."""
    try:
        value = as_integer(constant_values, "constant_values")
    except TypeError:
        if mode != "constant" or np.ndim(constant_values) or array._is_lazy:
            raise
        return np.pad(array.astype(object), pad_width, constant_values=constant_values)
    return public_function("pad")(array, pad_width, mode, constant_values=value)  # type: ignore[misc]


def _sliding_window_view(x: Any, window_shape: Any, axis: Any = None) -> Any:
    """Return all windows along some axes, with the window axes last, as xarray's ``rolling`` needs them."""
    find_lengths(x)
    axes = range(x.ndim) if axis is None else axis_indices(axis, x.ndim, allow_duplicate=True)
    of_words = tuple(axis + 1 for axis in axes)
    return x._with_words(np.lib.stride_tricks.sliding_window_view(x.words, window_shape, of_words))


def _make_sort(name: str) -> Callable[..., Any]:
    """Make a sort with NumPy's arguments: each sort is stable here, and numbers have no fields."""

    def order(
        a: Any,
        axis: int | None = -1,
        kind: str | None = None,  # noqa: ARG001
        order: None = None,
        *,
        stable: bool | None = None,  # noqa: ARG001
    ) -> Any:
        if order is not None:
            raise TypeError(
                f"numpy.{name} of {with_article(type(a))} takes no order: its numbers have no fields"
            )
        return public_function(name)(a, axis)  # type: ignore[misc]

    return order


_SPECIAL: dict[str, Callable[..., Any]] = {
    "append": _append,
    "argsort": _make_sort("argsort"),
    "array_equal": _array_equal,
    "bincount": segments.bincount,
    "convolve": _convolve,
    "pad": _pad,
    "result_type": _result_type,
    "sliding_window_view": _sliding_window_view,
    "sort": _make_sort("sort"),
    "where": _where,
}


# ---- missing functions -------------------------------------------------------------------------------------


def _refusal(name: str, arguments: Iterable[Any]) -> TypeError:
    """Return the error of a function that would convert all residues to Python ints, with the way out."""
    kind = next((type(v).__name__ for v in arguments if is_number_array(v)), "array of numbers")
    way = _INSTEAD.get(name.split(".")[-1])
    if way is None and _takes_floats_alone(name):
        way = f'x.astype(float, casting="unsafe") rounds numbers to floats, which {name} takes'
    elif way is None:
        way = f"np.asarray(x), lazily x.astype(object), makes Python ints, which {name} may take"
    return TypeError(f"{name} takes no {kind}; {way}")


def _takes_floats_alone(name: str) -> bool:
    """Whether a function of NumPy needs real or complex numbers, so that Python ints would not help."""
    function = getattr(np, name.removeprefix("numpy."), None)
    if isinstance(function, np.ufunc):
        return all(kind[0] in "efdgFDGO" for kind in function.types)
    return name.startswith("numpy.fft.") or name.partition("linalg.")[2] in _BY_LAPACK
