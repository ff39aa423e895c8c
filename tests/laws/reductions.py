"""Laws of reductions, scans and statistics: of all numbers, along axes, and up to each number."""

import math
import operator
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from itertools import accumulate
from typing import Any

import dask
import numpy as np
from oracles.integers import REDUCTIONS, mapped, objects, product_of_all

import rnsdask as rd
from laws.case import INTEGERS, RESIDUES, Case, Chosen, computed, firsts, law, law_of, must_fail
from laws.ring import small_array


def split(case: Case) -> dict[str, Any]:
    every = case.random.choice((None, 2, 3, 7))
    return {} if every is None else {"split_every": every}


def axis_of(case: Case, x: Chosen) -> int:
    axis = case.random.randrange(x.values.ndim) - case.random.choice((0, x.values.ndim))
    case.note("axis", axis)
    return axis


@law
def reductions_are_folds(case: Case) -> None:
    """Reductions of all numbers, in C order, whatever the chunks; of no numbers there is no greatest."""
    (x,), options = case.take(), split(case)
    values = x.values.ravel().tolist()
    for name, best in (("max", max), ("min", min)):
        if not values:
            for each in (name, f"arg{name}"):
                must_fail(getattr(x.array, each), ValueError, f"{each} of no numbers")
            continue
        case.claim(getattr(x.array, name)(**options), best(values), name)
        case.claim(getattr(x.array, f"arg{name}")(**options), values.index(best(values)), f"arg{name}")
    case.claim(x.array.sum(**options), sum(values), "sum")
    case.claim(x.array.gcd(), math.gcd(*values), "gcd")
    case.claim(x.array.lcm(**options), math.lcm(*values), "lcm")
    case.claim(x.array[:0].sum(), 0, "sum of none")
    case.claim(x.array[:0].gcd(), 0, "gcd of none")
    case.claim(x.array[:0].lcm(), 1, "lcm of none")


@law_of(*INTEGERS)
def reductions_report_facts(case: Case) -> None:
    """`reduce` reports the right facts beside the value."""
    (x,), name = case.take(), case.random.choice(tuple(REDUCTIONS))
    flat = x.values.ravel().tolist()
    if not flat:
        return
    result = computed(x.array.reduce(name))
    expected = REDUCTIONS[name](flat)
    assert (result.value, result.count) == (expected, len(flat)), f"{name}: {result}"
    if name in ("max", "min"):
        assert result.index == flat.index(expected), f"{name}: index {result.index}"


@law
def products_are_folds(case: Case) -> None:
    (x,), options = case.take(), split(case)
    values = x.values.ravel().tolist()
    fitting = within_range(case, [v for v in values if v], operator.mul)
    y, exact = case.array(objects(fitting)), math.prod(fitting)
    if exact <= case.limits.highest:  # of no numbers it is 1, which is out of the range -1 to 0
        case.claim(y.prod(), exact, "product in range")
    wrapped, is_outside = product_of_all(values, case.limits)
    result, mask = x.array.prod(overflow="flag", **options)
    case.claim(result, wrapped, "product")
    case.claim(mask, is_outside, "overflow of a product")
    if is_outside and case.random.random() < 0.3:
        error = must_fail(lambda: x.array.prod(**options), rd.RNSOverflowError, "prod")
        assert error.index == 0, f"the error names flat index {error.index}"


@law
def scans_are_folds(case: Case) -> None:
    """Up to each of all numbers; a running sum out of range is an error that names it, or one before."""
    values = within_range(case, case.line()[1], operator.add)
    x = case.array(objects(values))
    for name, function in (("cumsum", operator.add), ("cummax", max), ("cummin", min)):
        case.claim_array(getattr(x, name)(), objects(accumulate(values, function)), name)
    if case.random.random() < 0.7:
        return
    y, drawn = case.line()
    exact = objects(accumulate(drawn))
    outside = case.limits.outside(exact)
    if not outside.any():
        case.claim_array(y.cumsum(), exact, "cumsum")
        return
    error = must_fail(y.cumsum, rd.RNSOverflowError, "a running sum out of range")
    places = firsts(outside, getattr(y, "chunks", None))
    if dask.is_dask_collection(y):  # or the last one before a chunk
        starts = np.cumsum((0, *y.chunks[0]))[1:-1]
        places |= {int(start) - 1 for start in starts if outside[start - 1]}
    case.check_overflow(error, exact, places)


def within_range(case: Case, values: list[int], function: Callable[[int, int], int]) -> list[int]:
    """The values whose running fold, of those taken, stays in range."""
    taken, fold = values[:1], next(iter(values), 0)
    for value in values[1:]:
        if case.limits.holds(function(fold, value)):
            fold = function(fold, value)
            taken.append(value)
    return taken


@law_of(*INTEGERS)
def groups_are_folds(case: Case) -> None:
    """Groups by labels, whatever the chunks; a result out of range is an error that names it."""
    x, values = case.line()
    labels = [case.random.choice("abcde") for _ in values]
    members: dict[str, list[int]] = {}
    for label, value in zip(labels, values, strict=True):
        members.setdefault(label, []).append(value)
    folds: dict[str, Callable[[list[int]], int]] = {"sum": sum, "max": max, "min": min}
    for name, fold in {**folds, "prod": math.prod, "gcd": lambda group: math.gcd(*group)}.items():
        exact = objects([fold(members[label]) for label in sorted(members)])
        outside = case.limits.outside(exact)

        def reduce(name: Any = name) -> Any:
            return computed(rd.group_reduce(x, labels, name, **split(case))[1])

        if outside.any():
            error = must_fail(reduce, rd.RNSOverflowError, f"{name} of groups")
            case.check_overflow(error, exact, {int(outside.argmax())})
        else:
            case.claim_array(reduce(), exact, f"{name} of groups")


# ---- along axes --------------------------------------------------------------------------------------------


@law
def reductions_along_axes_are_folds(case: Case) -> None:
    """Along one axis or several; along an axis of no numbers there is no greatest."""
    (x,), options, random = case.take(), split(case), case.random
    ndim, shape = x.values.ndim, x.values.shape
    axes = tuple(random.sample(range(ndim), random.randint(1, ndim)))
    axis = axes[0] if len(axes) == 1 else axes
    keepdims = len(axes) == ndim or random.random() < 0.5
    case.note("axis, keepdims", (axis, keepdims))
    how: dict[str, Any] = {"axis": axis, "keepdims": keepdims}
    if any(shape[a] == 0 for a in axes):
        must_fail(lambda: x.array.max(axis), ValueError, "max along an axis of no numbers")
        zeros = np.zeros(np.sum(np.zeros(shape), **how).shape, dtype=object)
        case.claim(x.array.sum(**how), zeros, "sum of none")
        return
    for name in ("max", "min"):
        case.claim_array(getattr(x.array, name)(**how, **options), getattr(np, name)(x.values, **how), name)
    case.claim(x.array.sum(**how, **options), np.sum(x.values, **how), "sum")
    if len(axes) > 1 or not x.values.size:
        return
    case.claim(x.array.gcd(**how), abs(np.gcd.reduce(x.values, **how)), "gcd")
    case.claim(
        x.array.lcm(**how, **options), abs(np.frompyfunc(math.lcm, 2, 1).reduce(x.values, **how)), "lcm"
    )
    for name, best in (("argmax", np.max), ("argmin", np.min)):
        places = np.argmax(x.values == best(x.values, axis=axis, keepdims=True), **how)
        case.claim(getattr(x.array, name)(**how, **options), places, name)


@law
def running_folds_along_axes(case: Case) -> None:
    """Products, running products, sums and extrema along an axis, or of all numbers."""
    x = small_array(case)
    for name, exactly in (("prod", np.prod), ("cumprod", np.cumprod)) if x.values.size else ():
        axis = case.random.choice((None, axis_of(case, x))) if name == "cumprod" else axis_of(case, x)
        keepdims = {"keepdims": True} if name == "prod" else {}
        exact = np.asarray(exactly(x.values, axis=axis, **keepdims), dtype=object)
        function = partial(getattr(x.array, name), axis, **keepdims)
        result, mask = function(overflow="flag")
        case.claim_array(result, case.limits.wrapped(exact), f"{name} along {axis}")
        case.claim(mask, case.limits.outside(exact), f"overflow of {name} along {axis}")
        if case.random.random() < 0.3:
            case.claim_overflowing(function, exact, what=f"{name} along {axis}")
    (y,) = case.take()
    axis = case.random.choice((None, axis_of(case, y)))
    flat = y.values.ravel() if axis is None else y.values
    for name, extremum in (("cummax", np.maximum), ("cummin", np.minimum)):
        expected = extremum.accumulate(flat, axis=axis or 0)
        case.claim_array(getattr(y.array, name)(axis), expected, f"{name} along {axis}")
    exact = np.cumsum(y.values, axis=axis)
    outside = case.limits.outside(exact)
    if not outside.any():
        case.claim_array(y.array.cumsum(axis), exact, f"cumsum along {axis}")
        return
    error = must_fail(lambda: y.array.cumsum(axis), rd.RNSOverflowError, "a running sum out of range")
    assert outside.ravel()[error.index], f"the error names flat index {error.index}, which is in range"
    if flat.ndim > 1:
        case.check_overflow(error, exact, firsts(outside, getattr(y.array, "chunks", None)))


@law_of(*INTEGERS)
def products_along_axes_are_folds(case: Case) -> None:
    """Along several axes at once, in groups of chunks."""
    x, random = small_array(case), case.random
    ndim = x.values.ndim
    axis: Any = tuple(random.sample(range(ndim), random.randint(1, ndim)))
    axis = axis[0] if len(axis) == 1 else axis
    keepdims = len(np.atleast_1d(axis)) == ndim or random.random() < 0.5
    case.note("axis, keepdims", (axis, keepdims))
    exact = np.asarray(np.prod(x.values, axis=axis, keepdims=keepdims), dtype=object)
    options: dict[str, Any] = {"keepdims": keepdims, "split_every": random.choice((None, 2))}
    case.claim_overflowing(partial(x.array.prod, axis, **options), exact, what=f"prod along {axis}")


# ---- statistics and elementary functions -------------------------------------------------------------------


@law
def means_and_variances_are_fractions(case: Case) -> None:
    (x,), random = case.take(), case.random
    keepdims, ddof = random.random() < 0.5, random.choice((0, 0, 1, 2, -1))
    axis = random.choice((None, axis_of(case, x)))
    case.note("axis, keepdims, ddof", (axis, keepdims, ddof))
    if not x.values.size:
        must_fail(x.array.mean, ValueError, "mean of no numbers")
        return
    flat = x.values.ravel().tolist()
    case.claim(x.array.mean(), Fraction(sum(flat), len(flat)), "mean of all")
    case.claim(rd.ptp(x.array), max(flat) - min(flat), "ptp")
    count = x.values.size if axis is None else x.values.shape[axis]
    if count <= max(ddof, 0):
        must_fail(lambda: x.array.var(axis, ddof=ddof), ValueError, "variance of too few numbers")
        return
    totals, squares = (
        np.asarray(np.sum(v, axis=axis, keepdims=keepdims), dtype=object) for v in (x.values, x.values**2)
    )
    means = mapped(lambda total: Fraction(total, count), totals)
    variances = mapped(lambda s, t: Fraction(count * s - t * t, count * (count - ddof)), squares, totals)
    case.claim(x.array.mean(axis, keepdims=keepdims), means, "mean")
    case.claim(x.array.var(axis, ddof=ddof, keepdims=keepdims), variances, "variance")


@law
def elementary_functions_are_pythons(case: Case) -> None:
    (x,), random = case.take(), case.random
    ends = []
    for beyond in (case.limits.lowest - 2**70, case.limits.highest + 2**70):
        other = case.take()[0] if random.random() < 0.3 else None
        # Arrays of the tests' own systems take no end out of range.
        number = random.choice((case.number(), beyond if case.system.kind in RESIDUES else case.number()))
        fits = other is not None and np.broadcast_shapes(other.values.shape, x.values.shape) == x.values.shape
        ends.append(other if other is not None and fits else Chosen(number, number))
    low, high = ends
    exact = np.minimum(np.maximum(x.values, low.values), high.values)
    case.claim_array(rd.clip(x.array, low.array, high.array), exact, "clip")
    case.claim_array(rd.clip(x.array, low.array), np.maximum(x.values, low.values), "clip from below")
    case.claim_array(rd.clip(x.array, None, high.array), np.minimum(x.values, high.values), "clip from above")
    with rd.errstate(overflow="wrap"):
        case.claim_array(abs(x.array), case.limits.wrapped(abs(x.values)), "absolute value")
    keepdims, axis = random.random() < 0.5, random.choice((None, axis_of(case, x)))
    options: dict[str, Any] = {"axis": axis, "keepdims": keepdims}
    for name in ("any", "all"):
        expected = np.asarray(getattr(x.values != 0, name)(**options))
        case.claim(getattr(x.array, name)(**options), expected, name)
    count = np.asarray((x.values != 0).sum(**options))
    case.claim(rd.count_nonzero(x.array, **options), count, "count of those that are not 0")
    for got, expected in zip(x.array.nonzero(), x.values.nonzero(), strict=True):
        case.claim(got, expected, "indices of those that are not 0")


@law
def differences_are_pythons(case: Case) -> None:
    (x,), random = case.take(), case.random
    axis, n = axis_of(case, x), random.choice((0, 1, 1, 1, 2, 3))
    case.note("n", n)
    exact = x.values
    for _ in range(n):
        exact = case.limits.wrapped(np.diff(exact, axis=axis))
    with rd.errstate(overflow="wrap"):
        case.claim_array(rd.diff(x.array, n, axis), exact, "differences")
    if not case.system.is_ordered:  # of fields, whose results do not overflow
        return
    ends = {side: case.number() for side in ("prepend", "append") if random.random() < 0.3}
    exact = np.diff(x.values, axis=axis, **ends)
    case.claim_overflowing(partial(rd.diff, x.array, axis=axis, **ends), exact, what="difference")


@law_of(*INTEGERS)
def absolute_values_are_pythons(case: Case) -> None:
    (x,) = case.take()
    case.claim_overflowing(partial(rd.absolute, x.array), abs(x.values), what="absolute value")
    if case.system.kind == "interval":
        case.claim_array(-x.array, -x.values, "the opposite number")


@law_of(*INTEGERS)
def outer_products_are_numpys(case: Case) -> None:
    a, b = (case.fresh((case.random.randint(0, 12),), name) for name in "ab")
    case.claim_overflowing(partial(rd.outer, a.array, b.array), np.outer(a.values, b.values), what="outer")


# ---- results that are used ---------------------------------------------------------------------------------


@law_of(*INTEGERS)
def numpys_reductions_are_methods(case: Case) -> None:
    (x,), name = case.take(), case.random.choice(("max", "min", "sum"))
    axis = case.random.choice((None, case.random.randrange(x.values.ndim)))
    case.note("function, axis", (name, axis))
    if x.values.size:
        expected, got = getattr(np, name)(x.values, axis=axis), getattr(np, name)(x.array, axis=axis)
        claim = case.claim if np.ndim(expected) == 0 or name == "sum" else case.claim_array
        claim(got, expected, name)


@law_of(*RESIDUES)
def lazy_integers_calculate(case: Case) -> None:
    """Results of lazy reductions calculate like Python ints, and are taken as operands."""
    (x,) = case.take()
    flat = x.values.ravel().tolist()
    if not flat or not dask.is_dask_collection(x.array):
        return
    least, greatest, total = x.array.min(), x.array.max(), x.array.sum()
    assert int(greatest - least) == max(flat) - min(flat), "max - min"
    assert int(greatest * 3 + 1) == max(flat) * 3 + 1, "max * 3 + 1"
    assert int(total // len(flat)) == sum(flat) // len(flat), "sum // size"
    assert bool(greatest > 5) == (max(flat) > 5), "max > 5"
    case.claim(x.array == greatest, np.asarray(x.values == max(flat), dtype=bool), "x == max")
    if case.limits.holds(max(flat) - min(flat)):
        case.claim_array(x.array - least, x.values - min(flat), "x - min")
    else:
        must_fail(lambda: (x.array - least).to_ints(), rd.RNSOverflowError, "x - min")
