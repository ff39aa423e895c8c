"""Reductions of all numbers to one: their definitions, and how results of chunks combine."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gmpy2

from rnsdask.core.integer_text import number_text


@dataclass(frozen=True, repr=False)
class ReductionResult:
    """Result of a reduction over some numbers.

    Attributes
    ----------
    value : int
        The maximum, minimum, sum, greatest common divisor or least common multiple, exact, of any size; or
        the bound (:func:`.measured_bound`).
    index : int or None
        Smallest flat (C order) index that holds the maximum or minimum.
    count : int
        How many numbers were reduced.
    exact_fallbacks : int
        How many numbers needed exact arithmetic, because interval evaluations could not decide.
    backend : str
        ``"cpu"`` or ``"cuda"``; ``"cpu+cuda"`` if chunks went to both.
    """

    value: int
    index: int | None
    count: int
    exact_fallbacks: int
    backend: str

    def __repr__(self) -> str:
        fields = f"index={self.index}, count={self.count}, exact_fallbacks={self.exact_fallbacks}"
        return f"ReductionResult(value={number_text(self.value)}, {fields}, backend={self.backend!r})"

    def __dask_tokenize__(self) -> Any:
        # Dask would write the value in decimal, which Python refuses beyond 4300 digits.
        value = hex(self.value)
        return "rnsdask.ReductionResult", value, self.index, self.count, self.exact_fallbacks, self.backend


@dataclass(frozen=True)
class Reduction:
    """Definition of a reduction, for every number system.

    Attributes
    ----------
    name : str
        Name of the array's method and of the command, too.
    of_integers : callable
        The value over a list of Python ints, at least one.
    combine : callable
        The result of two parts. It does not depend on order or grouping.
    identity : int, optional
        The value over no numbers, if there is one.
    locates : bool
        Whether the value is one of the numbers, with an index.
    ufunc : str, optional
        Name of NumPy's ufunc whose ``reduce`` computes the same.
    """

    name: str
    of_integers: Callable[[list[int]], int]
    combine: Callable[[ReductionResult, ReductionResult], ReductionResult]
    identity: int | None = None
    locates: bool = False
    ufunc: str | None = None

    def empty_result(self, backend: str) -> ReductionResult:
        """Return the result over no numbers; ValueError if there is none."""
        if self.identity is None:
            raise ValueError(f"{self.name} of an empty array: it needs at least one number")
        return ReductionResult(self.identity, None, 0, 0, backend)


def _combine_maxima(a: ReductionResult, b: ReductionResult) -> ReductionResult:
    return _join(a, b, b if (b.value, -_index(b)) > (a.value, -_index(a)) else a)


def _combine_minima(a: ReductionResult, b: ReductionResult) -> ReductionResult:
    return _join(a, b, b if (b.value, _index(b)) < (a.value, _index(a)) else a)


def _index(result: ReductionResult) -> int:
    assert result.index is not None
    return result.index


def _join(a: ReductionResult, b: ReductionResult, winner: ReductionResult) -> ReductionResult:
    """Return the winner's value and index, with the counts of both."""
    return ReductionResult(
        winner.value,
        winner.index,
        a.count + b.count,
        a.exact_fallbacks + b.exact_fallbacks,
        "+".join(sorted({*a.backend.split("+"), *b.backend.split("+")})),
    )


def _combine_sums(a: ReductionResult, b: ReductionResult) -> ReductionResult:
    return _join(a, b, ReductionResult(a.value + b.value, None, 0, 0, ""))


def _combine_divisors(a: ReductionResult, b: ReductionResult) -> ReductionResult:
    return _join(a, b, ReductionResult(math.gcd(a.value, b.value), None, 0, 0, ""))


def _combine_multiples(a: ReductionResult, b: ReductionResult) -> ReductionResult:
    return _join(a, b, ReductionResult(_common_multiple([a.value, b.value]), None, 0, 0, ""))


def _common_multiple(values: list[int]) -> int:
    """Least common multiple, by a tree: one after the other takes time quadratic in the result's length."""
    while len(values) > 1:
        values = [gmpy2.lcm(*values[i : i + 2]) for i in range(0, len(values), 2)]
    return abs(int(values[0]))


def _combine_bounds(a: ReductionResult, b: ReductionResult) -> ReductionResult:
    return _join(a, b, b if b.value > a.value else a)


REDUCTIONS = {
    reduction.name: reduction
    for reduction in (
        Reduction("max", max, _combine_maxima, locates=True, ufunc="maximum"),
        Reduction("min", min, _combine_minima, locates=True, ufunc="minimum"),
        Reduction("sum", sum, _combine_sums, identity=0, ufunc="add"),
        Reduction("gcd", lambda values: math.gcd(*values), _combine_divisors, identity=0, ufunc="gcd"),
        Reduction("lcm", _common_multiple, _combine_multiples, identity=1, ufunc="lcm"),
        Reduction("bound", lambda values: max(map(abs, values)), _combine_bounds, identity=0),
    )
}
"""The reductions by name."""
