"""Sorting, medians, the k greatest along axes, distinct numbers, searching and membership."""

import math
from bisect import bisect_left, bisect_right
from fractions import Fraction
from random import Random
from typing import Any

import gmpy2
import numpy as np
from oracles.integers import mapped, objects

import rnsdask as rd
from fuzzing.case import Case, Chosen
from fuzzing.checking import computed, operation, require, same_array, same_numbers
from rnsdask.lazy import ranks


def with_few_together(case: Case, rng: Random, x: Chosen) -> None:
    """Take few chunks of a result together, now and then, so that the array is made several times."""
    ranks.TOGETHER = rng.choice((2, 16, 16))
    case.note("chunks, together", (getattr(x.array, "chunks", None), ranks.TOGETHER))


@operation("sort")
def check_sort(case: Case, rng: Random) -> int:
    (x,) = case.take(rng)
    with_few_together(case, rng, x)
    axis = rng.choice((None, -1, rng.randrange(x.values.ndim)))
    case.note("axis", axis)
    same_numbers(case, rd.sort(x.array, axis), np.sort(x.values, axis), "sort")
    expected = np.argsort(x.values, axis, kind="stable")
    same_array(rd.argsort(x.array, axis), expected, "argsort")
    return max(x.values.size, 1)


@operation("median")
def check_median(case: Case, rng: Random) -> int:
    (x,) = case.take(rng)
    with_few_together(case, rng, x)
    axis, keepdims = rng.choice((None, rng.randrange(x.values.ndim))), rng.random() < 0.3
    case.note("axis, keepdims", (axis, keepdims))
    if not x.values.size:
        return 0
    lines = np.sort(x.values, axis)
    lines = lines if axis is None else np.moveaxis(lines, axis, -1)
    count = lines.shape[-1]
    pairs = np.asarray(lines[..., (count - 1) // 2]), np.asarray(lines[..., count // 2])
    expected = mapped(lambda a, b: Fraction(a + b, 2), *pairs)
    if keepdims:
        expected = expected.reshape((1,) * x.values.ndim) if axis is None else np.expand_dims(expected, axis)
    got = computed(rd.median(x.array, axis, keepdims=keepdims))
    return same_array(np.asarray(got, dtype=object), expected, "median")


@operation("topk along axes")
def check_topk_along_axes(case: Case, rng: Random) -> int:
    (x,) = case.take(rng)
    axis = rng.randrange(x.values.ndim)
    length = x.values.shape[axis]
    k = rng.choice((0, 1, 2, 5, length, length + 1)) * rng.choice((1, -1))
    case.note("k, axis", (k, axis))
    order = np.argsort(-x.values if k > 0 else x.values, axis, kind="stable")
    places = np.take(order, range(min(abs(k), length)), axis)
    same_array(x.array.topk(k, axis), np.take_along_axis(x.values, places, axis), "topk")
    return same_array(x.array.argtopk(k, axis), places, "argtopk")


@operation("unique")
def check_unique(case: Case, rng: Random) -> int:
    (x,) = case.take(rng)
    with_few_together(case, rng, x)
    flat = x.values.reshape(-1).tolist()
    held = sorted(set(flat))
    first: dict[int, int] = {}
    counts = dict.fromkeys(held, 0)
    for i, value in enumerate(flat):
        first.setdefault(value, i)
        counts[value] += 1
    place = {value: i for i, value in enumerate(held)}
    numbers, index, inverse, found = rd.unique(x.array, True, True, True)
    same_numbers(case, numbers.compute_chunk_sizes(), objects(held), "distinct numbers")
    same_array(index, np.array([first[v] for v in held], dtype=np.int64), "index")
    same_array(inverse, mapped(lambda v: place[v], x.values, dtype=np.int64), "inverse")
    same_array(found, np.array([counts[v] for v in held], dtype=np.int64), "counts")
    return max(len(flat), 1)


@operation("searchsorted and isin")
def check_search(case: Case, rng: Random) -> int:
    x, y = case.take(rng, 2, integers=False)
    flat = sorted(x.values.reshape(-1).tolist())
    side, bisect = rng.choice((("left", bisect_left), ("right", bisect_right)))
    case.note("side", side)
    ordered = rd.sort(x.array, None)
    expected = mapped(lambda v: bisect(flat, v), y.values, dtype=np.int64)
    same_array(rd.searchsorted(ordered, y.array, side), expected, "places of numbers")
    beyond = (-(case.limits.product**2), case.limits.highest + 1, 1 << 5000)
    wanted = [*rng.sample(flat, min(len(flat), 5)), *beyond, case.number(rng)]
    places = np.array([bisect(flat, v) for v in wanted], dtype=np.int64)
    same_array(rd.searchsorted(ordered, wanted, side), places, "places of integers")
    found = rd.searchsorted(ordered, wanted[-1], side)
    require(int(found) == places[-1], f"place of an integer: {found}")
    some = set(wanted)
    same_array(rd.isin(x.array, wanted), mapped(some.__contains__, x.values, dtype=bool), "isin of integers")
    held = set(y.values.reshape(-1).tolist())
    same_array(rd.isin(x.array, y.array), mapped(held.__contains__, x.values, dtype=bool), "isin of numbers")
    return max(x.values.size + y.values.size, 1)


@operation("histogram")
def check_histogram(case: Case, rng: Random) -> int:
    """Counts in bins whose edges are given, or of equal width, as the number of bins says."""
    (x,) = case.take(rng)
    flat = x.values.reshape(-1).tolist()
    if not flat:
        return 0
    bins, ends = rng.randint(1, 9), (min(flat), max(flat))
    options: dict[str, Any] = {"bins": bins}
    if rng.random() < 0.3:
        low, high = sorted(rng.choice((case.number(rng), rng.choice(flat))) for _ in range(2))
        ends = options["range"] = low, high
    first, last = map(Fraction, ends)
    if first == last:
        first, last = first - Fraction(1, 2), last + Fraction(1, 2)
    exact = [first + (last - first) * k / bins for k in range(bins + 1)]
    if rng.random() < 0.4:
        exact = sorted(Fraction(rng.choice((*flat[:5], case.number(rng)))) for _ in range(bins + 1))
        options = {"bins": [int(edge) for edge in exact]}
    case.note("options", options)
    counts, edges = rd.histogram(x.array, **options)
    rounded = [math.ceil(edge) for edge in exact]
    if options.get("range") and ends[0] == ends[1] and bins <= 2:  # the number is in the last bin
        rounded[-1] = ends[0]
    same_array(edges, objects(rounded), "edges")
    places = [bisect_right(exact, v) - 1 for v in flat if exact[0] <= v <= exact[-1]]
    expected = [0] * (len(exact) - 1)
    for place in places:
        expected[min(place, len(expected) - 1)] += 1
    return same_array(counts, np.array(expected), "counts")


@operation("logarithms and decimals")
def check_logarithms(case: Case, rng: Random) -> int:
    """Logarithms to the base 2, compared with GMP's, and texts of numbers of any length."""
    (x,) = case.take(rng)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.asarray(computed(rd.log2(x.array))).reshape(-1).tolist()
    flat = x.values.reshape(-1).tolist()
    with gmpy2.context(gmpy2.get_context(), precision=120):
        for value, got in zip(flat, found, strict=True):
            if value <= 0:
                require(got == -math.inf if value == 0 else math.isnan(got), f"log2({value}) is {got}")
                continue
            wanted = gmpy2.log2(value)
            require(abs(got - wanted) <= abs(wanted) * 2.0**-50, f"log2 of {hex(value)} is {got}")
    value = rng.choice(flat or [0])
    require(rd.to_decimal(value) == gmpy2.mpz(value).digits(), "another text")
    return max(len(flat), 1)
