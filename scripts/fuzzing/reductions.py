"""Reductions, selections and scans: of all numbers, along axes, and up to each number."""

import math
from itertools import accumulate
from random import Random
from typing import Any

import dask
import numpy as np
from oracles.integers import best, objects, product_of_all

import rnsdask as rd
from fuzzing.case import Case, Chosen
from fuzzing.checking import (
    MODES,
    check_overflow,
    firsts,
    must_fail,
    operation,
    require,
    same_array,
    same_int,
    same_numbers,
)


def of_one_axis(case: Case, rng: Random) -> Chosen:
    """An array of the case, or if that has several axes one of its own."""
    (x,) = case.take(rng)
    if x.values.ndim == 1:
        return x
    return case.fresh(rng, (rng.randint(0, min(300, case.most_numbers)),))


def split(rng: Random) -> dict[str, Any]:
    every = rng.choice((None, 2, 3, 7))
    return {} if every is None else {"split_every": every}


@operation("reduce")
def check_reductions(case: Case, rng: Random) -> int:
    (x,), options = case.take(rng), split(rng)
    flat = x.values.reshape(-1).tolist()
    for name in ("max", "min", "argmax", "argmin"):
        if not flat:
            must_fail(lambda name=name: getattr(x.array, name)(), ValueError, f"{name} of no numbers")
            continue
        best_of = max(flat) if name.endswith("max") else min(flat)
        expected = flat.index(best_of) if name.startswith("arg") else best_of
        same_int(getattr(x.array, name)(**options), expected, name)
    same_int(x.array.sum(**options), sum(flat), "sum")
    return max(len(flat), 1)


@operation("reduce along axes")
def check_axes(case: Case, rng: Random) -> int:
    (x,), options = case.take(rng), split(rng)
    axes = tuple(rng.sample(range(x.values.ndim), rng.randint(1, x.values.ndim)))
    axes = tuple(axis - x.values.ndim if rng.random() < 0.3 else axis for axis in axes)
    axis = axes[0] if len(axes) == 1 else axes
    keepdims = rng.random() < 0.5
    case.note("axis, keepdims", (axis, keepdims))
    if len(axes) == x.values.ndim and not keepdims:
        return 0  # all numbers: "reduce"
    count = max(x.values.size, 1)
    if any(x.values.shape[a] == 0 for a in axes):
        must_fail(lambda: x.array.max(axis), ValueError, "max along an axis of no numbers")
        sums = np.zeros(np.sum(np.zeros(x.values.shape), axis=axis, keepdims=keepdims).shape, dtype=object)
        return same_array(x.array.sum(axis, keepdims=keepdims), sums, "sum")
    name = rng.choice(("max", "min", "sum"))
    expected = np.asarray(getattr(np, name)(x.values, axis=axis, keepdims=keepdims), dtype=object)
    case.note("reduction", name)
    got = getattr(x.array, name)(axis, keepdims=keepdims, **options)
    if name == "sum":
        same_array(got, expected, name)
    else:
        same_numbers(case, got, expected, name)
    return count


@operation("place along an axis")
def check_places(case: Case, rng: Random) -> int:
    (x,), options = case.take(rng), split(rng)
    axis, keepdims = rng.randrange(x.values.ndim), rng.random() < 0.5
    name = rng.choice(("argmax", "argmin"))
    case.note("axis, keepdims, reduction", (axis, keepdims, name))
    if x.values.shape[axis] == 0:
        must_fail(lambda: getattr(x.array, name)(axis), ValueError, f"{name} along an axis of no numbers")
        return 1
    if x.values.size == 0:
        return 0
    got = getattr(x.array, name)(axis, keepdims=keepdims, **options)
    expected = getattr(np, name)(x.values, axis=axis, keepdims=keepdims)
    same_array(got, np.asarray(expected), name)
    return x.values.size


@operation("prod")
def check_prod(case: Case, rng: Random) -> int:
    (x,), options, mode = case.take(rng), split(rng), rng.choice(MODES)
    if rng.random() < 0.5:  # few numbers, for a product in range
        x = case.fresh(rng, (rng.randint(0, 4),))
    flat = x.values.reshape(-1).tolist()
    wrapped, is_outside = product_of_all(flat, case.limits)
    case.note("overflow", mode)
    if mode == "raise" and is_outside:
        error = must_fail(lambda: x.array.prod(overflow=mode, **options), rd.RNSOverflowError, "prod")
        require(error.index == 0, f"the error names flat index {error.index}")
        return max(len(flat), 1)
    result = x.array.prod(overflow=mode, **options)
    if mode == "flag":
        result, mask = result
        same_array(mask, np.asarray(is_outside), "mask")
    same_int(result, wrapped, "prod")
    return max(len(flat), 1)


@operation("topk")
def check_topk(case: Case, rng: Random) -> int:
    x = of_one_axis(case, rng)
    flat = x.values.tolist()
    k = rng.choice((0, 1, 2, 5, 100, len(flat), len(flat) + 1)) * rng.choice((1, -1))
    case.note("k", k)
    indices = best(flat, k)
    same_array(x.array.topk(k), objects([flat[i] for i in indices]), "topk")
    same_array(x.array.argtopk(k), np.array(indices, dtype=np.int64), "argtopk")
    return max(len(flat), 1)


@operation("cumsum")
def check_cumsum(case: Case, rng: Random) -> int:
    x = of_one_axis(case, rng)
    exact = objects(accumulate(x.values.tolist()))
    outside = case.limits.outside(exact)
    if not outside.any():
        return same_numbers(case, x.array.cumsum(), exact)
    error = must_fail(lambda: x.array.cumsum(), rd.RNSOverflowError, "a running sum out of range")
    places = firsts(outside, getattr(x.array, "chunks", None))
    if dask.is_dask_collection(x.array):  # or the last one before a chunk
        starts = np.cumsum((0, *x.array.chunks[0]))[1:-1]
        places |= {int(start) - 1 for start in starts if outside[start - 1]}
    check_overflow(case, error, exact, places)
    return outside.size


@operation("cummax and cummin")
def check_running_extrema(case: Case, rng: Random) -> int:
    x = of_one_axis(case, rng)
    flat = x.values.tolist()
    return sum(
        same_numbers(case, getattr(x.array, name)(), objects(accumulate(flat, function)), name)
        for name, function in (("cummax", max), ("cummin", min))
    )


@operation("reduce reports")
def check_reduce_reports(case: Case, rng: Random) -> int:
    """`reduce` reports the right facts beside the value."""
    (x,), name = case.take(rng), rng.choice(("max", "min", "sum", "gcd"))
    flat = x.values.reshape(-1).tolist()
    if not flat:
        return 0
    result = x.array.reduce(name)
    result = result.compute() if hasattr(result, "compute") else result
    functions = {"max": max, "min": min, "sum": sum, "gcd": lambda values: math.gcd(*values)}
    expected = functions[name](flat)
    require((result.value, result.count) == (expected, len(flat)), f"{name}: {result}")
    if name in ("max", "min"):
        require(result.index == flat.index(expected), f"{name}: index {result.index}")
    return len(flat)


@operation("NumPy's functions")
def check_functions_of_numpy(case: Case, rng: Random) -> int:
    """NumPy's functions of an array agree with its methods."""
    (x,), name = case.take(rng), rng.choice(("max", "min", "sum"))
    axis = rng.choice((None, rng.randrange(x.values.ndim)))
    case.note("function, axis", (name, axis))
    if not x.values.size:
        return 0
    expected, got = getattr(np, name)(x.values, axis=axis), getattr(np, name)(x.array, axis=axis)
    if np.ndim(expected) == 0:
        same_int(got, int(expected), name)
    elif name == "sum":
        same_array(got, expected, name)
    else:
        same_numbers(case, got, expected, name)
    return x.values.size


@operation("lazy integers")
def check_lazy_integers(case: Case, rng: Random) -> int:
    """Results of lazy reductions calculate like Python ints, and are taken as operands."""
    (x,) = case.take(rng)
    flat = x.values.reshape(-1).tolist()
    if not flat or not dask.is_dask_collection(x.array):
        return 0
    least, greatest, total = x.array.min(), x.array.max(), x.array.sum()
    require(int(greatest - least) == max(flat) - min(flat), "max - min")
    require(int(greatest * 3 + 1) == max(flat) * 3 + 1, "max * 3 + 1")
    require(int(total // len(flat)) == sum(flat) // len(flat), "sum // size")
    require(bool(greatest > 5) == (max(flat) > 5), "max > 5")
    same_array(x.array == greatest, np.asarray(x.values == max(flat), dtype=bool), "x == max")
    if case.limits.holds(max(flat) - min(flat)):
        same_numbers(case, x.array - least, x.values - min(flat), "x - min")
    else:
        must_fail(lambda: (x.array - least).to_ints(), rd.RNSOverflowError, "x - min")
    return len(flat)
