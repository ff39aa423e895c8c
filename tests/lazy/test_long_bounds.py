"""Operations under bounds of 20,000 bits: lazy results, their tokens, their pickles and their numbers."""

import math
import operator
import pickle
from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import cache
from itertools import accumulate
from typing import Any

import numpy as np
import pytest
from dask.base import tokenize

import rnsdask as rd
from rnsdask.core.table import table_at

BITS = 20_000
BOUND = 2**BITS - 1
A = [3, -BOUND, BOUND // 7, 12]
B = [-BOUND + 5, 7, BOUND // 3, 1]
SMALL = [1, 2, 0, 1]
PRIME = 2**19_937 - 1
COPRIME = [2**9_941 - 1, -PRIME, 2**11_213 - 1, 1]


def each(function: Callable[..., int]) -> Callable[..., list[int]]:
    """A function of integers, of lists of them."""
    return lambda *lists: [function(*numbers) for numbers in zip(*lists, strict=True)]


def both(function: Callable[..., Any]) -> tuple[Callable[..., Any], Callable[..., Any]]:
    return function, each(function)


def scan(name: str, function: Callable[[int, int], int]) -> tuple[Callable[..., Any], Callable[..., Any]]:
    return lambda a, _: getattr(a, name)(0), lambda a, _: list(accumulate(a, function))


def variance(values: list[int]) -> Fraction:
    mean = Fraction(sum(values), len(values))
    return sum((v - mean) ** 2 for v in values) / len(values)


def wide(x: Any) -> rd.ModuliSet:
    return rd.ModuliSet.for_bits(x.system.moduli.bits + 100)


def inverted(x: Any) -> Any:
    """Products of numbers and their inverses modulo M."""
    numbers = rd.from_ints(COPRIME, x.system).rechunk(2)
    return rd.multiply(numbers, rd.inverse(numbers), overflow="wrap")


CALLS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "add": both(operator.add),
    "subtract": both(operator.sub),
    "multiply": both(operator.mul),
    "fma": (lambda a, b: rd.fma(a, b, a), each(lambda a, b: a * b + a)),
    "mulsub": (lambda a, b: rd.mulsub(a, b, b, a), each(lambda _a, _b: 0)),
    "muladd": (lambda a, b: rd.muladd(a, b, a, b), each(lambda a, b: 2 * a * b)),
    "negative": (lambda a, _: -a, each(lambda a, _: -a)),
    "absolute": (lambda a, _: abs(a), each(lambda a, _: abs(a))),
    "compare": both(operator.lt),
    "differ": both(operator.ne),
    "sign": (lambda a, _: rd.sign(a), each(lambda a, _: (a > 0) - (a < 0))),
    "floor_divide": both(operator.floordiv),
    "floor_divide_by": (lambda a, _: a // (BOUND // 5), each(lambda a, _: a // (BOUND // 5))),
    "is_even": (lambda a, _: a.is_even(), each(lambda a, _: a % 2 == 0)),
    "reduce": (lambda a, _: a.max(), lambda a, _: max(a)),
    "extrema": (lambda a, _: a.reshape(2, 2).max(axis=0), lambda a, _: [max(a[0], a[2]), max(a[1], a[3])]),
    "sums": (lambda a, _: a.reshape(2, 2).sum(axis=0), lambda a, _: [a[0] + a[2], a[1] + a[3]]),
    "axis_products": (lambda a, _: a.reshape(2, 2).prod(axis=0), lambda a, _: [a[0] * a[2], a[1] * a[3]]),
    "cumsum": scan("cumsum", operator.add),
    "cumprod": scan("cumprod", operator.mul),
    "cummax": scan("cummax", max),
    "cummin": scan("cummin", min),
    "product": (lambda a, _: a.prod(), lambda a, _: math.prod(a)),
    "matmul": (lambda a, b: a @ b, lambda a, b: sum(map(operator.mul, a, b))),
    "convolve": (
        lambda a, b: rd.convolve(a, b),
        lambda a, b: np.convolve(np.array(a, dtype=object), np.array(b, dtype=object)).tolist(),
    ),
    "ordering": (lambda a, _: rd.sort(a), lambda a, _: sorted(a)),
    "unique": (lambda a, _: rd.unique(a), lambda a, _: sorted(a)),
    "gcd": (rd.gcd, each(math.gcd)),
    "lcm": (rd.lcm, each(math.lcm)),
    "bit_length": (lambda a, _: rd.bit_length(a), each(lambda a, _: a.bit_length())),
    "power": (lambda a, _: a**2, each(lambda a, _: a * a)),
    "power_by_array": (lambda a, _: rd.power(a, SMALL), lambda a, _: each(pow)(a, SMALL)),
    "power_modulo": (lambda a, _: pow(a, 5, BOUND // 9), each(lambda a, _: pow(a, 5, BOUND // 9))),
    "bitwise_and": both(operator.and_),
    "bitwise_or": both(operator.or_),
    "bitwise_xor": both(operator.xor),
    "invert": (lambda a, _: ~a, each(lambda a, _: ~a)),
    "bitwise_count": (lambda a, _: rd.bitwise_count(a), each(lambda a, _: abs(a).bit_count())),
    "left_shift": (lambda a, _: a << 9, each(lambda a, _: a << 9)),
    "right_shift": (lambda a, _: a >> 9, each(lambda a, _: a >> 9)),
    "isqrt": (lambda a, _: rd.isqrt(abs(a)), each(lambda a, _: math.isqrt(abs(a)))),
    "mod_add": (
        lambda a, _: rd.mod_add(a, a, BOUND // 9),
        each(lambda a, _: 2 * a % (BOUND // 9)),
    ),
    "mod_multiply": (
        lambda a, _: rd.mod_multiply(a, a, BOUND // 9),
        each(lambda a, _: a * a % (BOUND // 9)),
    ),
    "mod_subtract": (lambda a, b: rd.mod_subtract(a, b, PRIME), each(lambda a, b: (a - b) % PRIME)),
    "mod_inverse": (lambda a, _: rd.mod_inverse(a, PRIME), each(lambda a, _: pow(a, -1, PRIME))),
    "mod_power": (
        lambda a, _: rd.mod_power(a, rd.from_ints(SMALL, a.system).rechunk(2), PRIME),
        lambda a, _: each(lambda v, k: pow(v, k, PRIME))(a, SMALL),
    ),
    "mod_power_by_integer": (lambda a, _: rd.mod_power(a, -2, PRIME), each(lambda a, _: pow(a, -2, PRIME))),
    "mod_power_by_array": (
        lambda a, _: rd.mod_power(a, SMALL, PRIME),
        lambda a, _: each(lambda v, k: pow(v, k, PRIME))(a, SMALL),
    ),
    "power_modulo_by_array": (
        lambda a, _: pow(a, np.array(SMALL), PRIME),
        lambda a, _: each(lambda v, k: pow(v, k, PRIME))(a, SMALL),
    ),
    "inverse": (lambda a, _: inverted(a), lambda _a, _b: [1] * len(COPRIME)),
    "moments": (lambda a, _: a.var(), lambda a, _: variance(a)),
    "topk": (lambda a, _: a.topk(3), lambda a, _: sorted(a, reverse=True)[:3]),
    "exact": (lambda a, b: rd.multiply(a, b, bits="exact"), each(operator.mul)),
    "product_tree": (lambda a, _: rd.product_tree(abs(a)).product, lambda a, _: abs(math.prod(a))),
    "change_moduli": (lambda a, _: a.extend(wide(a)), lambda a, _: a),
    "from_rns": (lambda a, _: rd.IntervalRNSArray.from_rns(a.to_rns()), lambda a, _: a),
    "to_rns": (lambda a, _: a.to_rns(), lambda a, _: a),
    "part_sign": (lambda a, _: a.sign, each(lambda a, _: a < 0)),
}
"""Public calls by the row of a table that they run, or by a name, and the results for Python's integers."""


@cache
def system(name: str) -> Any:
    if name == "positional":
        return rd.Positional(2 * BITS + 20, signed=True)
    moduli = rd.ModuliSet.for_bits(2 * BITS + 20)
    return rd.IntervalRNS(moduli) if name == "intervals" else rd.RNS(moduli, signed=True, bound=BOUND)


TABLES = {
    "rns": "rnsdask.tables.residues:TABLE",
    "intervals": "rnsdask.tables.intervals:TABLE",
    "positional": "rnsdask.tables.limbs:TABLE",
}


def slow_rows(rows: Iterable[str]) -> list[Any]:
    """Rows of interval arrays, whose constants take longest, that are tried with --slow only."""
    return [pytest.param("intervals", row, marks=pytest.mark.slow) for row in rows]


def rows_of(name: str) -> list[str]:
    """Rows of a table that have a call."""
    return [row for row in CALLS if row in table_at(TABLES[name])]


@pytest.mark.parametrize(
    ("name", "row"),
    [
        *((name, row) for name in ("rns", "positional") for row in rows_of(name)),
        *(("intervals", row) for row in rows_of("intervals")[::3]),
        *slow_rows(row for k, row in enumerate(rows_of("intervals")) if k % 3),
        *((name, call) for name in ("rns", "positional") for call in ("unique", "topk")),
        ("intervals", "change_moduli"),
        *slow_rows(("unique", "topk", "from_rns", "to_rns", "part_sign")),
        ("positional", "exact"),
    ],
)
def test_row(name: str, row: str) -> None:
    call, of_integers = CALLS[row]
    a, b = (rd.from_ints(values, system(name)).rechunk(2) for values in (A, B))
    lazy = call(a, b)
    assert tokenize(lazy) == tokenize(call(a, b))
    found = pickle.loads(pickle.dumps(lazy)).compute()
    found = found.tolist() if hasattr(found, "tolist") else found
    assert found == of_integers(A, B)


AS_IN_MEMORY: dict[str, Callable[[Any], Any]] = {
    "part_low": lambda x: x.low,
    "part_upp": lambda x: x.upp,
    "part_exponent": lambda x: x.exponent,
    "residues_modulo": rd.mixed_radix_digits,
}
"""Calls that run a row of a table, and give no integers."""


@pytest.mark.parametrize(
    ("name", "row"),
    [(name, row) for name, table in TABLES.items() for row in AS_IN_MEMORY if row in table_at(table)],
)
def test_row_as_in_memory(name: str, row: str) -> None:
    x = rd.from_ints(A, system(name))
    call, chunked = AS_IN_MEMORY[row], x.rechunk(2)
    lazy = call(chunked)
    assert tokenize(lazy) == tokenize(call(chunked))
    assert np.array_equal(pickle.loads(pickle.dumps(lazy)).compute(), call(x.compute()))


@pytest.mark.parametrize("name", ["rns", "positional"])
def test_random(name: str) -> None:
    made = system(name) if name == "rns" else rd.Positional(BITS, signed=True)
    x = rd.random(made, 6, chunks=2, seed=1)
    assert tokenize(x) == tokenize(rd.random(made, 6, chunks=2, seed=1))
    found = pickle.loads(pickle.dumps(x)).to_ints().tolist()
    assert found == x.compute().to_ints().tolist()
    assert all(BITS - 64 < value.bit_length() <= BITS for value in found)
