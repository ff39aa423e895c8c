"""Laws of order: comparison, extrema of two, choice, signs; sorting, ranks, membership and histograms."""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Any
from unittest.mock import patch

import dask.array as da
import gmpy2
import numpy as np
from oracles.integers import best, mapped, objects
from sample_arrays import RELATIONS

import rnsdask as rd
from laws.case import INTEGERS, Case, Chosen, computed, law, law_of, whole
from rnsdask.lazy import ranks


@law
def order_is_total(case: Case) -> None:
    """Between arrays of any shapes, and integers."""
    x, y = case.take(2)
    a, b = whole([x, y])
    results = {name: relation(x.array, y.array) for name, relation in RELATIONS.items()}
    for (name, relation), mask in zip(RELATIONS.items(), results.values(), strict=True):
        case.claim(mask, relation(a, b).astype(bool), name)
    found = case.host(*results.values())
    assert all(mask.dtype == bool for mask in found)
    below, at_most, above, at_least, equal, differ = found
    assert (below.astype(int) + equal + above == 1).all()  # trichotomy
    assert ((at_most == ~above) & (at_least == ~below) & (differ == ~equal)).all()


@law
def order_with_integers(case: Case) -> None:
    """Any integer, also one out of range."""
    x, a = case.draw()
    beyond = case.limits.lowest - 1, case.limits.highest + 1, -(case.limits.product**2), 1 << 5000
    for value in (case.random.choice(case.system.edges()), case.random.choice(beyond)):
        for name, relation in RELATIONS.items():
            case.claim(relation(x, value), relation(a, value).astype(bool), f"{name} an integer")


@law
def order_agrees_with_addition(case: Case) -> None:
    """x < y just where x + z < y + z, where neither sum overflows."""
    x, y, z, a, b, c = case.draw(3)
    (left, _), (right, _) = (rd.add(v, z, overflow="flag") for v in (x, y))
    fits = ~(case.limits.outside(a + c) | case.limits.outside(b + c))
    assert fits.any() or case.is_drawn
    before, after = case.host(x < y, left < right)
    assert (before == after)[fits].all()
    case.claim(before, (a < b).astype(bool))


@law
def extrema_and_choice(case: Case) -> None:
    x, y = case.take(2)
    a, b = whole([x, y])
    mask = np.array(case.random.choices((True, False), k=a.size), dtype=bool).reshape(a.shape)
    mask = mask[:1] if case.random.random() < 0.3 else mask
    condition = case.processor.xp.asarray(mask)
    if case.is_lazy and condition.size and case.random.random() < 0.5:
        condition = da.from_array(condition, chunks=max(1, condition.shape[0] // 2), asarray=False)
    case.claim_array(rd.maximum(x.array, y.array), np.maximum(a, b), "maximum")
    case.claim_array(rd.minimum(x.array, y.array), np.minimum(a, b), "minimum")
    case.claim_array(rd.where(condition, x.array, y.array), np.where(mask, a, b), "where")
    case.claim_array(rd.where(x.array < y.array, y.array, x.array), np.maximum(a, b), "maximum by choice")
    one = x if x.is_array else y
    case.claim(rd.sign(one.array), mapped(lambda v: (v > 0) - (v < 0), one.values, dtype=np.int8), "sign")


# ---- sorting -----------------------------------------------------------------------------------------------


def with_ties(case: Case) -> Chosen:
    """An array, with equal numbers among others."""
    (x,) = case.take()
    if x.values.size and case.random.random() < 0.5:
        mask = np.array(case.random.choices((True, False), k=x.values.size)).reshape(x.values.shape)
        x = case.chosen(np.where(mask, x.values, x.values.flat[0]))
    return x


@contextmanager
def few_together(case: Case) -> Iterator[None]:
    """Take few chunks of a result together, now and then, so that an array is made several times."""
    together = case.random.choice((2, 16, 16))
    case.note("chunks together", together)
    with patch.object(ranks, "chunks_together", lambda words, _rows: min(together, words.numblocks[1])):
        yield
        case.settle()


@law
def sorting_is_stable(case: Case) -> None:
    x = with_ties(case)
    with few_together(case):
        for axis in (-1, None, case.random.randrange(x.values.ndim)):
            case.claim_array(rd.sort(x.array, axis), np.sort(x.values, axis), f"sorted along {axis}")
            order = np.argsort(x.values, axis, kind="stable")
            case.claim(rd.argsort(x.array, axis), order, f"indices along {axis}")


@law
def medians_are_in_the_middle(case: Case) -> None:
    x, random = with_ties(case), case.random
    axis, keepdims = random.choice((None, random.randrange(x.values.ndim))), random.random() < 0.3
    case.note("axis, keepdims", (axis, keepdims))
    if not x.values.size:
        return
    lines = np.sort(x.values, axis)
    lines = lines if axis is None else np.moveaxis(lines, axis, -1)
    count = lines.shape[-1]
    pairs = np.asarray(lines[..., (count - 1) // 2]), np.asarray(lines[..., count // 2])
    expected = mapped(lambda a, b: Fraction(a + b, 2), *pairs)
    if keepdims:
        expected = expected.reshape((1,) * x.values.ndim) if axis is None else np.expand_dims(expected, axis)
    with few_together(case):
        case.claim(rd.median(x.array, axis, keepdims=keepdims), expected, "median")


@law
def selections_are_sorted(case: Case) -> None:
    x, values = case.line()
    if case.random.random() < 0.5:
        (shared,) = case.take()
        x, values = shared.array.ravel(), shared.values.ravel().tolist()
    for k in (0, 1, -1, 5, -5, 100, len(values), -len(values) - 1):
        places = best(values, k)
        case.claim(x.argtopk(k), np.array(places, dtype=int), f"argtopk({k})")
        case.claim(x.topk(k), objects(values[i] for i in places), f"topk({k})")


@law
def selections_along_axes_are_sorted(case: Case) -> None:
    (x,) = case.take()
    axis = case.random.randrange(x.values.ndim)
    length = x.values.shape[axis]
    for k in (case.random.choice((0, 1, 5, length, length + 1)), -2):
        order = np.argsort(-x.values if k > 0 else x.values, axis, kind="stable")
        places = np.take(order, range(min(abs(k), length)), axis)
        case.claim(x.array.argtopk(k, axis), places, f"argtopk({k}) along {axis}")
        case.claim(
            x.array.topk(k, axis), np.take_along_axis(x.values, places, axis), f"topk({k}) along {axis}"
        )


@law
def distinct_numbers_are_found(case: Case) -> None:
    x = with_ties(case)
    flat = x.values.ravel().tolist()
    held = sorted(set(flat))
    first: dict[int, int] = {}
    counts = dict.fromkeys(held, 0)
    for i, value in enumerate(flat):
        first.setdefault(value, i)
        counts[value] += 1
    place = {value: i for i, value in enumerate(held)}
    with few_together(case):
        numbers, index, inverse, found = rd.unique(x.array, True, True, True)
        case.claim_array(numbers, objects(held), "distinct numbers")
        case.claim(index, np.array([first[v] for v in held], dtype=np.int64), "where they are first")
        case.claim(inverse, mapped(place.get, x.values, dtype=np.int64), "inverse")
        case.claim(found, np.array([counts[v] for v in held], dtype=np.int64), "counts")


@law
def places_and_members_are_found(case: Case) -> None:
    """Among sorted numbers and in sets, of other arrays and of any integers."""
    x, y = case.take(2, integers=False)
    flat = sorted(x.values.ravel().tolist())
    side, bisect = case.random.choice((("left", bisect_left), ("right", bisect_right)))
    case.note("side", side)
    ordered = rd.sort(x.array, None)
    expected = mapped(lambda v: bisect(flat, v), y.values, dtype=np.int64)
    case.claim(rd.searchsorted(ordered, y.array, side), expected, "places of numbers")
    beyond = (-(case.limits.product**2), case.limits.highest + 1, 1 << 5000)
    wanted = [*case.random.sample(flat, min(len(flat), 5)), *beyond, case.number()]
    places = np.array([bisect(flat, v) for v in wanted], dtype=np.int64)
    case.claim(rd.searchsorted(ordered, wanted, side), places, "places of integers")
    case.claim(rd.searchsorted(ordered, wanted[-1], side), places[-1], "place of an integer")
    some, held = set(wanted), set(y.values.ravel().tolist())
    case.claim(rd.isin(x.array, wanted), mapped(some.__contains__, x.values, dtype=bool), "isin of integers")
    case.claim(rd.isin(x.array, y.array), mapped(held.__contains__, x.values, dtype=bool), "isin of numbers")


@law_of(*INTEGERS)
def histograms_count(case: Case) -> None:
    """Numbers in bins whose edges are given, or of equal width, as the number of bins says."""
    (x,), random = case.take(), case.random
    flat = x.values.ravel().tolist()
    if not flat:
        return
    bins, ends = random.randint(1, 9), (min(flat), max(flat))
    options: dict[str, Any] = {"bins": bins}
    if random.random() < 0.3:
        low, high = sorted(random.choice((case.number(), random.choice(flat))) for _ in range(2))
        ends = options["range"] = low, high
    first, last = map(Fraction, ends)
    if first == last:
        first, last = first - Fraction(1, 2), last + Fraction(1, 2)
    exact = [first + (last - first) * k / bins for k in range(bins + 1)]
    if random.random() < 0.4:
        exact = sorted(Fraction(random.choice((*flat[:5], case.number()))) for _ in range(bins + 1))
        options = {"bins": [int(edge) for edge in exact]}
    case.note("options", options)
    counts, edges = rd.histogram(x.array, **options)
    rounded = [math.ceil(edge) for edge in exact]
    if options.get("range") and ends[0] == ends[1] and bins <= 2:  # the number is in the last bin
        rounded[-1] = ends[0]
    case.claim(edges, objects(rounded), "edges")
    places = [bisect_right(exact, v) - 1 for v in flat if exact[0] <= v <= exact[-1]]
    expected = [0] * (len(exact) - 1)
    for place in places:
        expected[min(place, len(expected) - 1)] += 1
    case.claim(counts, np.array(expected), "counts")


@law_of(*INTEGERS)
def logarithms_and_decimals_are_gmps(case: Case) -> None:
    """Logarithms to the base 2, compared with GMP's, and texts of numbers of any length."""
    (x,) = case.take()
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.asarray(computed(rd.log2(x.array))).ravel().tolist()
    flat = x.values.ravel().tolist()
    with gmpy2.context(gmpy2.get_context(), precision=120):
        for value, got in zip(flat, found, strict=True):
            if value <= 0:
                assert got == -math.inf if value == 0 else math.isnan(got), f"log2({value}) is {got}"
                continue
            wanted = gmpy2.log2(value)
            assert abs(got - wanted) <= abs(wanted) * 2.0**-50, f"log2 of {hex(value)} is {got}"
    value = case.random.choice(flat or [0])
    assert rd.to_decimal(value) == gmpy2.mpz(value).digits(), "another text"
