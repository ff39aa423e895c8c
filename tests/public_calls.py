"""A table of everything public that takes arrays of numbers, each with what it should give by Python's ints.

A row has the name, a function of arrays of one number system (:class:`Arrays`), and the same by NumPy on
object arrays of Python ints. For elements of a field, what the ints give is taken modulo its prime.
"""

import itertools
import math
import operator
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import dask.array as da
import numpy as np

import rnsdask as rd

PRIME = 2013265921  # 15 * 2**27 + 1
MODULI = rd.ModuliSet.for_bits(200)
SYSTEMS: dict[str, Any] = {
    "rns": rd.RNS(MODULI, signed=True),
    "positional": rd.Positional(200, signed=True),
    "interval": rd.IntervalRNS(MODULI),
    "field": rd.PrimeFields([PRIME]),
    "fermat": rd.FermatField(2**63 + 2**34, 8),
}
CLASSES: dict[str, Any] = {
    "rns": rd.RNSArray,
    "positional": rd.PositionalArray,
    "interval": rd.IntervalRNSArray,
    "field": rd.FieldArray,
}
INTEGERS = ("rns", "positional", "interval")
RESIDUES = ("rns", "interval")
EACH = (*INTEGERS, "field")
FIELDS = ("field", "fermat")

_LINE = [3, -7, 0, 100, 2**40 + 1, -1, 5, 5, -(2**35), 12, 99, -100, 8, 17, 0, 6, -3, 1, 2, 64, -64, 7, 11, 9]
_POSITIVE = [10, 21, 15, 7, 2**33 + 6, 22, 35, 1, 49, 6, 14, 77, 3, 5, 9, 26, 91, 4, 13, 8, 25, 2, 12, 33]
_SQUARE = [[2, -1, 0, 3], [1, 4, -2, 0], [0, 5, 1, -1], [3, 0, 2, 7]]
_WIDE = [[2, -1, 0, 3, 4, 1], [1, 4, -2, 0, 2, 2], [0, 5, 1, -1, 3, 3], [3, 3, -2, 3, 6, 3]]
_POLYNOMIAL = [5, 0, -3, 2, 7, -1, 4, 1]
_DIVISOR = [3, -2, 0, 1]
VALUES: dict[str, tuple[Any, Any]] = {
    "x": (_LINE, 5),
    "y": (_POSITIVE, 7),
    "m": (_WIDE, (2, 4)),
    "s": (_SQUARE, (3, 2)),
    "b": ([1, -2, 3, 4], 3),
    "f": (_POLYNOMIAL, 3),
    "g": (_DIVISOR, 3),
    "t": (list(range(-20, 44)), 8),  # a power of two, in chunks that a transform leaves
}
"""Integers of each array, and its chunks."""


class Values:
    """The arrays by their names, as object arrays of Python ints."""

    def __getattr__(self, name: str) -> Any:
        return np.array(VALUES[name][0], dtype=object)


class Arrays:
    """The arrays of one system by their names, and things that rows need beside them."""

    def __init__(self, system: Any, arrays: dict[str, Any], folder: Path) -> None:
        self.system, self.folder = system, folder
        self._arrays = arrays

    def __getattr__(self, name: str) -> Any:
        return self._arrays[name]


class Row(NamedTuple):
    """A public name, how to call it, what it gives, and for which systems."""

    name: str
    call: Callable[[Arrays], Any]
    expected: Callable[[Any], Any]
    systems: tuple[str, ...]


def plain(result: Any) -> Any:
    """Nested lists of Python's numbers, computed, of any result."""
    if isinstance(result, tuple | list):
        return [plain(part) for part in result]
    if hasattr(result, "to_ints"):
        return plain(result.to_ints())
    result = result.compute() if isinstance(result, da.Array) else result
    result = result.get() if hasattr(result, "get") else result
    return result.tolist() if hasattr(result, "tolist") else result


def modulo(result: Any, prime: int) -> Any:
    """The elements of a field that ints in nested lists are."""
    if isinstance(result, list):
        return [modulo(part, prime) for part in result]
    return result % prime if type(result) is int else result


# ---- by Python's ints --------------------------------------------------------------------------------------


_gcd = np.frompyfunc(math.gcd, 2, 1)
_lcm = np.frompyfunc(math.lcm, 2, 1)
_isqrt = np.frompyfunc(math.isqrt, 1, 1)
_length = np.frompyfunc(lambda n: abs(n).bit_length(), 1, 1)
_sign = np.frompyfunc(lambda n: (n > 0) - (n < 0), 1, 1)
_power = np.frompyfunc(pow, 3, 1)


def _product(f: Any, g: Any) -> Any:
    found = [0] * (len(f) + len(g) - 1)
    for i, j in itertools.product(range(len(f)), range(len(g))):
        found[i + j] += int(f[i]) * int(g[j])
    return found


def _det(matrix: Any) -> int:
    total, n = 0, len(matrix)
    for order in itertools.permutations(range(n)):
        inversions = sum(a > b for a, b in itertools.combinations(order, 2))
        total += (-1) ** inversions * math.prod(int(matrix[i][j]) for i, j in enumerate(order))
    return total


def _charpoly(matrix: Any) -> list[int]:
    n = len(matrix)  # coefficients of z**k are sums of principal minors
    found = [1]
    for size in range(1, n + 1):
        minors = (matrix[np.ix_(rows, rows)] for rows in itertools.combinations(range(n), size))
        found.append((-1) ** size * sum(map(_det, minors)))
    return found[::-1]


def _resultant(f: Any, g: Any) -> int:
    m, n = len(f) - 1, len(g) - 1
    rows = [[0] * i + list(f[::-1]) + [0] * (n - 1 - i) for i in range(n)]
    rows += [[0] * i + list(g[::-1]) + [0] * (m - 1 - i) for i in range(m)]
    return _bareiss(rows)


def _bareiss(rows: list[list[Any]]) -> int:
    a, sign, before = [[Fraction(int(v)) for v in row] for row in rows], 1, Fraction(1)
    for k in range(len(a)):
        pivot = next((i for i in range(k, len(a)) if a[i][k]), None)
        if pivot is None:
            return 0
        if pivot != k:
            a[k], a[pivot], sign = a[pivot], a[k], -sign
        for i in range(k + 1, len(a)):
            factor = a[i][k] / a[k][k]
            a[i] = [v - factor * w for v, w in zip(a[i], a[k], strict=True)]
        before *= a[k][k]
    return sign * int(before)


def _horner(f: Any, point: int) -> int:
    value = 0
    for coefficient in reversed(list(f)):
        value = value * point + int(coefficient)
    return value


def _transform(values: Any, root: int) -> list[int]:
    n = len(values)
    return [sum(int(v) * pow(root, i * j, PRIME) for i, v in enumerate(values)) % PRIME for j in range(n)]


def _rounded(values: Any) -> Any:
    if isinstance(values, list):
        return list(map(_rounded, values))
    return values if math.isinf(values) else round(values, 9)


def _fractions(words: Any, moduli: Any) -> list[int]:
    """Integers that mixed-radix digits stand for."""
    weights = [math.prod(list(moduli)[:i]) for i in range(len(moduli))]
    return [
        sum(int(d) * w for d, w in zip(column, weights, strict=True)) for column in zip(*words, strict=True)
    ]


def _bounds_hold(interval: Any, exact: list[Fraction]) -> bool:
    lower, upper, exponents = plain([interval.low, interval.upp, interval.exponent])
    return all(
        Fraction(a) * Fraction(2) ** e <= t <= Fraction(b) * Fraction(2) ** e
        for a, b, e, t in zip(lower, upper, exponents, exact, strict=True)
    )


def _of_m(values: Any) -> list[Fraction]:
    return [Fraction(int(v), MODULI.product) for v in values]


# ---- the rows ----------------------------------------------------------------------------------------------

ROWS: list[Row] = []


def row(
    name: str,
    call: Callable[[Any], Any],
    expected: Callable[[Any], Any] | None = None,
    systems: tuple[str, ...] = EACH,
) -> None:
    """Add a row; what is expected is by the same function of object arrays unless another is given."""
    ROWS.append(Row(name, call, expected or call, systems))


def _add_elementwise() -> None:
    row("rd.absolute", lambda a: rd.absolute(a.x), lambda v: abs(v.x), INTEGERS)
    row("rd.add", lambda a: rd.add(a.x, a.y), lambda v: v.x + v.y)
    row("rd.subtract", lambda a: rd.subtract(a.x, a.y), lambda v: v.x - v.y)
    row("rd.multiply", lambda a: rd.multiply(a.x, a.y), lambda v: v.x * v.y)
    row("rd.negative", lambda a: rd.negative(a.x), lambda v: -v.x)
    row("rd.square", lambda a: rd.square(a.x), lambda v: v.x**2)
    row("rd.power", lambda a: rd.power(a.m, 3), lambda v: v.m**3)
    row(
        "rd.power [by arrays]",
        lambda a: rd.power(a.m, [1, 2, 3, 0, 1, 2]),
        lambda v: v.m ** np.array([1, 2, 3, 0, 1, 2]),
        ("rns", "field"),
    )
    row("rd.fma", lambda a: rd.fma(a.x, a.y, a.x), lambda v: v.x * v.y + v.x)
    row("rd.muladd", lambda a: rd.muladd(a.x, a.y, a.y, a.x), lambda v: 2 * v.x * v.y)
    row("rd.mulsub", lambda a: rd.mulsub(a.x, a.y, a.y, a.y), lambda v: v.x * v.y - v.y * v.y)
    row("rd.sign", lambda a: rd.sign(a.x), lambda v: _sign(v.x), INTEGERS)
    row("rd.maximum", lambda a: rd.maximum(a.x, a.y), lambda v: np.maximum(v.x, v.y), INTEGERS)
    row("rd.minimum", lambda a: rd.minimum(a.x, 5), lambda v: np.minimum(v.x, 5), INTEGERS)
    row("rd.clip", lambda a: rd.clip(a.x, -50, 50), lambda v: np.clip(v.x, -50, 50), INTEGERS)
    row("rd.where", lambda a: rd.where(a.y > 9, a.x, a.y), lambda v: np.where(v.y > 9, v.x, v.y), INTEGERS)
    row("rd.where [a number]", lambda a: rd.where(a.x == 5, a.x, 0), lambda v: np.where(v.x == 5, v.x, 0))
    row("rd.gcd", lambda a: rd.gcd(a.x, a.y), lambda v: _gcd(v.x, v.y), INTEGERS)
    row("rd.lcm", lambda a: rd.lcm(a.x, a.y), lambda v: _lcm(v.x, v.y), INTEGERS)
    row("rd.isqrt", lambda a: rd.isqrt(a.y), lambda v: _isqrt(v.y), INTEGERS)
    row(
        "rd.factorial",
        lambda a: rd.factorial(a.y % 9),
        lambda v: [math.factorial(n) for n in v.y % 9],
        INTEGERS,
    )
    row(
        "rd.binomial",
        lambda a: rd.binomial(9, a.y % 9),
        lambda v: [math.comb(9, k) for k in v.y % 9],
        INTEGERS,
    )
    row(
        "rd.primorial",
        lambda a: rd.primorial(a.y % 5),
        lambda v: [(1, 1, 2, 6, 6)[n] for n in v.y % 5],
        INTEGERS,
    )
    row("rd.bit_length", lambda a: rd.bit_length(a.x), lambda v: _length(v.x), INTEGERS)
    row(
        "rd.log2",
        lambda a: _rounded(plain(rd.log2(a.y))),
        lambda v: [round(math.log2(n), 9) for n in v.y],
        INTEGERS,
    )
    row("rd.left_shift", lambda a: rd.left_shift(a.x, 3), lambda v: v.x * 8, INTEGERS)
    row("rd.right_shift", lambda a: rd.right_shift(a.x, 2), lambda v: v.x // 4, INTEGERS)
    row(
        "x.log2",
        lambda a: _rounded(plain(a.y.log2())),
        lambda v: [round(math.log2(n), 9) for n in v.y],
        INTEGERS,
    )
    row("x.bit_length", lambda a: a.m.bit_length(), lambda v: _length(v.m), INTEGERS)
    row("x.clip", lambda a: a.m.clip(0), lambda v: np.clip(v.m, 0, None), INTEGERS)
    limbs = ("positional",)
    row("rd.bitwise_and", lambda a: rd.bitwise_and(a.x, a.y), lambda v: v.x & v.y, limbs)
    row("rd.bitwise_or", lambda a: rd.bitwise_or(a.x, a.y), lambda v: v.x | v.y, limbs)
    row("rd.bitwise_xor", lambda a: rd.bitwise_xor(a.x, a.y), lambda v: v.x ^ v.y, limbs)
    row("rd.invert", lambda a: rd.invert(a.x), lambda v: ~v.x, limbs)
    row("rd.bitwise_count", lambda a: rd.bitwise_count(a.y), lambda v: [n.bit_count() for n in v.y], limbs)
    row("rd.mod_add", lambda a: rd.mod_add(a.y % 97, a.y % 97, 97), lambda v: 2 * v.y % 97, limbs)
    row(
        "rd.mod_subtract",
        lambda a: rd.mod_subtract(a.y % 97, a.x % 97, 97),
        lambda v: (v.y - v.x) % 97,
        limbs,
    )
    row(
        "rd.mod_multiply",
        lambda a: rd.mod_multiply(a.y, a.y, a.y + 1),
        lambda v: v.y * v.y % (v.y + 1),
        limbs,
    )
    row(
        "rd.mod_power",
        lambda a: rd.mod_power(3, a.y, 2 * a.y + 1),
        lambda v: _power(3, v.y, 2 * v.y + 1),
        limbs,
    )
    row(
        "rd.mod_inverse",
        lambda a: rd.mod_inverse(a.y, 2**61 - 1),
        lambda v: _power(v.y, -1, 2**61 - 1),
        limbs,
    )
    row("rd.inverse", lambda a: rd.inverse(a.y), lambda v: _power(v.y, -1, PRIME), ("field",))
    row("x.inverse", lambda a: a.y.inverse(), lambda v: _power(v.y, -1, PRIME), ("field",))
    row("x + list", lambda a: a.x + list(range(24)), lambda v: v.x + np.arange(24))
    row(
        "x + array in memory",
        lambda a: a.x + rd.from_ints(np.arange(24), a.system, chunks=None),
        lambda v: v.x + np.arange(24),
    )
    row(
        "array in memory - x",
        lambda a: rd.from_ints(np.arange(24), a.system, chunks=None) - a.x,
        lambda v: np.arange(24) - v.x,
    )
    row(
        "x + NumPy's in chunks",
        lambda a: a.x + rd.from_ints(np.arange(24), a.system, chunks=7),
        lambda v: v.x + np.arange(24),
    )
    row("x * integer", lambda a: -3 * a.x, lambda v: -3 * v.x)
    row("x // y", lambda a: a.x // a.y, lambda v: v.x // v.y, ("rns", "positional"))
    row("x % y", lambda a: a.x % a.y, lambda v: v.x % v.y, ("rns", "positional"))
    row("x % integer", lambda a: a.x % 7, lambda v: v.x % 7, INTEGERS)
    row("divmod(x, integer)", lambda a: divmod(a.x, 7), lambda v: [v.x // 7, v.x % 7], ("rns", "positional"))
    row("x / y", lambda a: a.x / a.y, lambda v: v.x * _power(v.y, -1, PRIME), ("field",))
    row("x == y", lambda a: a.x == a.y, lambda v: v.x == v.y)
    row("x < y", lambda a: a.x < a.y, lambda v: v.x < v.y, INTEGERS)
    row("x + maximum", lambda a: a.x + a.y.max(), lambda v: v.x + max(v.y), INTEGERS)
    row("x[::-1] + x", lambda a: a.x[::-1] + a.x, lambda v: v.x[::-1] + v.x)
    row("m + row", lambda a: a.m + a.m[0], lambda v: v.m + v.m[0])


def _add_shapes() -> None:
    row(
        "rd.block", lambda a: rd.block([[a.m, a.m], [a.m, a.m]]), lambda v: np.block([[v.m, v.m], [v.m, v.m]])
    )
    row("rd.broadcast_to", lambda a: rd.broadcast_to(a.x, (3, 24)), lambda v: np.broadcast_to(v.x, (3, 24)))
    row("rd.concatenate", lambda a: rd.concatenate([a.x, a.y]), lambda v: np.concatenate([v.x, v.y]))
    row(
        "rd.concatenate [other chunks]",
        lambda a: rd.concatenate([a.m, a.s], axis=1),
        lambda v: np.concatenate([v.m, v.s], axis=1),
    )
    row(
        "rd.concatenate [in memory]",
        lambda a: rd.concatenate([a.x, rd.from_ints([1, 2], a.system, chunks=None)]),
        lambda v: [*v.x, 1, 2],
    )
    row("rd.expand_dims", lambda a: rd.expand_dims(a.x, 0), lambda v: v.x[None])
    row("rd.hstack", lambda a: rd.hstack([a.x, a.y]), lambda v: np.hstack([v.x, v.y]))
    row("rd.vstack", lambda a: rd.vstack([a.x, a.y]), lambda v: np.vstack([v.x, v.y]))
    row("rd.stack", lambda a: rd.stack([a.x, a.y], axis=1), lambda v: np.stack([v.x, v.y], axis=1))
    row("rd.split", lambda a: rd.split(a.x, 3), lambda v: np.split(v.x, 3))
    row("rd.tile", lambda a: rd.tile(a.x, (2, 2)), lambda v: np.tile(v.x, (2, 2)))
    row(
        "rd.pad",
        lambda a: rd.pad(a.x, (3, 8), constant_values=1),
        lambda v: np.pad(v.x, (3, 8), constant_values=1),
    )
    row(
        "rd.pad [of a matrix]",
        lambda a: rd.pad(a.m, ((1, 0), (2, 9))),
        lambda v: np.pad(v.m, ((1, 0), (2, 9))),
    )
    row("rd.pad [rechunked]", lambda a: rd.pad(a.x, 3).rechunk(4), lambda v: np.pad(v.x, 3))
    row("rd.pad + y", lambda a: rd.pad(a.x, 3)[3:27] + a.y, lambda v: v.x + v.y)
    for mode in ("edge", "reflect", "symmetric", "wrap"):
        row(
            f"rd.pad [{mode}]",
            lambda a, mode=mode: rd.pad(a.x, 4, mode),
            lambda v, mode=mode: np.pad(v.x, 4, mode),
        )
    row("rd.diff", lambda a: rd.diff(a.x, 2), lambda v: np.diff(v.x, 2))
    row(
        "rd.diff [prepend]", lambda a: rd.diff(a.x, prepend=4, append=a.y), lambda v: np.diff([4, *v.x, *v.y])
    )
    row("rd.full_like", lambda a: rd.full_like(a.x, 7) + a.x, lambda v: 7 + v.x)
    row("rd.ones_like", lambda a: rd.ones_like(a.m), lambda v: np.ones_like(v.m))
    row("rd.zeros_like", lambda a: rd.zeros_like(a.m) - a.m, lambda v: -v.m)
    row("np.append", lambda a: np.append(a.x, a.y), lambda v: np.append(v.x, v.y))
    row("x.T", lambda a: a.m.T, lambda v: v.m.T)
    row("x.transpose", lambda a: a.m.transpose(1, 0), lambda v: v.m.T)
    row("x.swapaxes", lambda a: a.m.swapaxes(0, 1), lambda v: v.m.T)
    row("x.reshape", lambda a: a.x.reshape(4, 6), lambda v: v.x.reshape(4, 6))
    row("x.reshape [merge]", lambda a: a.m.reshape(3, 8), lambda v: v.m.reshape(3, 8))
    row("x.ravel", lambda a: a.m.ravel(), lambda v: v.m.ravel())
    row("x.flatten", lambda a: a.m.flatten(), lambda v: v.m.ravel())
    row("x.squeeze", lambda a: a.x[None].squeeze(0), lambda v: v.x)
    row("x.flip", lambda a: a.m.flip(1), lambda v: np.flip(v.m, 1))
    row("x.roll", lambda a: a.x.roll(7), lambda v: np.roll(v.x, 7))
    row("x.roll [flat]", lambda a: a.m.roll(7), lambda v: np.roll(v.m, 7))
    row("x.repeat", lambda a: a.x.repeat(2), lambda v: np.repeat(v.x, 2))
    row(
        "x.repeat [counts]",
        lambda a: a.m.repeat([1, 0, 2, 1], axis=0),
        lambda v: np.repeat(v.m, [1, 0, 2, 1], axis=0),
    )
    row("x.take", lambda a: a.x.take([20, 3, -1, 3]), lambda v: v.x.take([20, 3, -1, 3]))
    row("x.diagonal", lambda a: a.s.diagonal(1), lambda v: v.s.diagonal(1))
    row("x.trace", lambda a: a.s.trace(), lambda v: int(v.s.trace()))
    row("x.rechunk", lambda a: a.x.rechunk(9), lambda v: v.x)
    row("x.rechunk [2-d]", lambda a: a.m.rechunk((3, 1)), lambda v: v.m)
    row("x.blocks", lambda a: a.x.blocks[1:3], lambda v: v.x[5:15])
    row("x.vindex", lambda a: a.m.vindex[[0, 3, 1], [5, 2, 2]], lambda v: v.m[[0, 3, 1], [5, 2, 2]])
    row("x.with_storable_chunks", lambda a: a.x[2:].with_storable_chunks(), lambda v: v.x[2:])
    row("x[slice]", lambda a: a.x[3:20:4], lambda v: v.x[3:20:4])
    row("x[list]", lambda a: a.m[:, [5, 0, 0, 3]], lambda v: v.m[:, [5, 0, 0, 3]])
    row("x[arrays]", lambda a: a.m[[0, 3], [1, 5]], lambda v: v.m[[0, 3], [1, 5]])
    row("x[mask]", lambda a: a.x[a.x > 2], lambda v: v.x[v.x > 2], INTEGERS)
    row("x[mask of another]", lambda a: a.x[a.y == 1], lambda v: v.x[v.y == 1])
    row("x[mask of a matrix]", lambda a: a.m[a.m == 3], lambda v: v.m[v.m == 3])
    row("x[lazy index]", lambda a: a.x[a.y.argmax()], lambda v: v.x[v.y.argmax()], INTEGERS)
    row(
        "x[lazy indices]",
        lambda a: a.x[rd.argsort(a.y)],
        lambda v: v.x[np.argsort(v.y, kind="stable")],
        INTEGERS,
    )
    row("x[mask in memory]", lambda a: a.x[np.arange(24) % 3 == 0], lambda v: v.x[::3])


def _add_reductions() -> None:
    for name in ("max", "min", "argmax", "argmin"):
        call = operator.methodcaller(name)
        row(f"x.{name}", lambda a, call=call: call(a.x), None, INTEGERS)
        along = operator.methodcaller(name, axis=1)
        row(f"x.{name} [axis]", lambda a, along=along: along(a.m), None, INTEGERS)
    row("x.sum", lambda a: a.x.sum(), lambda v: int(v.x.sum()))
    row("x.sum [axis]", lambda a: a.m.sum(axis=0), lambda v: v.m.sum(axis=0))
    row("x.prod", lambda a: a.b.prod(), lambda v: math.prod(v.b))
    row("x.prod [axis]", lambda a: (a.m + 8).prod(axis=1), lambda v: (v.m + 8).prod(axis=1))
    row("x.all", lambda a: a.m.all(axis=0), lambda v: (v.m != 0).all(axis=0))
    row("x.any", lambda a: a.m.any(), lambda _: True)
    row(
        "x.mean",
        lambda a: a.m.mean(axis=0),
        lambda v: [Fraction(int(n), 4) for n in v.m.sum(axis=0)],
        INTEGERS,
    )
    row("x.var", lambda a: a.b.var(), lambda _: Fraction(21, 4), INTEGERS)
    row("x.gcd", lambda a: (a.y * 6).gcd(), lambda _: 6, INTEGERS)
    row("x.lcm", lambda a: a.y.lcm(), lambda v: math.lcm(*v.y), INTEGERS)
    row("x.measure_bound", lambda a: a.x.measure_bound(), lambda v: max(abs(v.x)), ("rns",))
    row("x.reduce", lambda a: a.x.reduce("max").compute().value, lambda v: max(v.x), INTEGERS)
    row("x.nonzero", lambda a: a.m.nonzero(), lambda v: v.m.nonzero())
    row("x.is_even", lambda a: a.x.is_even(), lambda v: v.x % 2 == 0, INTEGERS)
    row("rd.count_nonzero", lambda a: rd.count_nonzero(a.x), lambda _: 22)
    row("rd.count_nonzero [axis]", lambda a: rd.count_nonzero(a.m, axis=1), lambda v: (v.m != 0).sum(axis=1))
    row("rd.ptp", lambda a: rd.ptp(a.x), lambda v: max(v.x) - min(v.x), INTEGERS)
    row("x.cumsum", lambda a: a.x.cumsum(), lambda v: v.x.cumsum(), INTEGERS)
    row("x.cumsum [axis]", lambda a: a.m.cumsum(axis=1), lambda v: v.m.cumsum(axis=1), INTEGERS)
    row("x.cumprod", lambda a: a.b.cumprod(), lambda v: v.b.cumprod(), INTEGERS)
    row("x.cummax", lambda a: a.x.cummax(), lambda v: np.maximum.accumulate(v.x), INTEGERS)
    row("x.cummin", lambda a: a.m.cummin(axis=0), lambda v: np.minimum.accumulate(v.m, axis=0), INTEGERS)
    row("rd.sort", lambda a: rd.sort(a.x), lambda v: np.sort(v.x), INTEGERS)
    row("rd.sort [axis]", lambda a: rd.sort(a.m, axis=0), lambda v: np.sort(v.m, axis=0), INTEGERS)
    row("rd.argsort", lambda a: rd.argsort(a.x), lambda v: np.argsort(v.x, kind="stable"), INTEGERS)
    row(
        "x.argsort", lambda a: a.m.argsort(axis=1), lambda v: np.argsort(v.m, axis=1, kind="stable"), INTEGERS
    )
    row("rd.median", lambda a: rd.median(a.b), lambda _: Fraction(2), INTEGERS)
    row("x.topk", lambda a: a.x.topk(3), lambda v: np.sort(v.x)[:-4:-1], INTEGERS)
    row("x.argtopk", lambda a: a.y.argtopk(-2), lambda v: np.argsort(v.y)[:2], INTEGERS)
    row(
        "rd.unique",
        lambda a: rd.unique(a.x, return_index=True, return_inverse=True, return_counts=True),
        lambda v: np.unique(v.x, return_index=True, return_inverse=True, return_counts=True),
        INTEGERS,
    )
    row(
        "rd.group_reduce",
        lambda a: rd.group_reduce(a.x, np.arange(24) % 5, "sum"),
        lambda v: (np.arange(5), [sum(v.x[k::5]) for k in range(5)]),
    )
    row(
        "rd.group_reduce [lazy labels]",
        lambda a: rd.group_reduce(a.m, da.from_array(np.array(list("abcaba")), chunks=4), "max"),
        lambda v: (
            np.array(list("abc")),
            [[max(v.m[i, list(k)]) for k in ([0, 3, 5], [1, 4], [2])] for i in range(4)],
        ),
        INTEGERS,
    )
    row(
        "rd.searchsorted",
        lambda a: rd.searchsorted(rd.sort(a.x), a.y),
        lambda v: np.searchsorted(np.sort(v.x), v.y),
        INTEGERS,
    )
    row(
        "rd.searchsorted [integers]",
        lambda a: rd.searchsorted(rd.sort(a.x), [5, 10**80], sorter=np.arange(24)),
        lambda v: np.searchsorted(np.sort(v.x), [5, 10**80]),
        INTEGERS,
    )
    row("rd.isin", lambda a: rd.isin(a.x, a.y), lambda v: np.isin(v.x, v.y), INTEGERS)
    row("rd.isin [list]", lambda a: rd.isin(a.x, [5, 99]), lambda v: np.isin(v.x, [5, 99]), INTEGERS)
    row(
        "rd.histogram",
        lambda a: rd.histogram(a.x, 5, range=(-100, 100))[0],
        lambda v: np.histogram(v.x.astype(float), 5, range=(-100, 100))[0],
        INTEGERS,
    )


def _product_of(factors: Any) -> Any:
    exchanges, lower, upper = factors
    return exchanges @ lower @ upper


def _first_of_power(f: Any, k: int, length: int) -> list[int]:
    found = [1]
    for _ in range(k):
        found = _product(found, f)[:length]
    return [*found, *[0] * length][:length]


def _with_one(f: Any) -> Any:
    """A series that begins with 1, and goes on with coefficients."""
    return rd.concatenate((f[:1] * 0 + 1, f))


def _logarithmic_derivative(f: Any) -> Any:
    return rd.poly.multiply(rd.poly.derivative(rd.poly.log_series(f, 6)), f)


def _modulo_g(f: Any, g: Any) -> list[int]:
    """Remainder by a polynomial with the leading coefficient 1."""
    left, degree = [int(c) for c in f], len(g) - 1
    for k in range(len(left) - 1, degree - 1, -1):
        for i, c in enumerate(g):
            left[k - degree + i] -= left[k] * int(c) if i < degree else 0
    return left[:degree]


def _add_products() -> None:
    both = ("rns", "interval", "field")
    row("rd.matmul", lambda a: rd.matmul(a.s, a.m), lambda v: v.s @ v.m, both)
    row("rd.dot", lambda a: rd.dot(a.x, a.y), lambda v: int(v.x @ v.y), both)
    row("rd.outer", lambda a: rd.outer(a.x, a.b), lambda v: np.outer(v.x, v.b))
    row("rd.convolve", lambda a: rd.convolve(a.x, a.b), lambda v: _product(v.x, v.b), both)
    row("rd.convolve [long]", lambda a: rd.convolve(a.x, a.y), lambda v: _product(v.x, v.y), FIELDS)
    row(
        "rd.batch_gcd",
        lambda a: rd.batch_gcd(a.y),
        lambda v: [math.gcd(n, math.prod(v.y) // n) for n in v.y],
        ("positional",),
    )
    row(
        "rd.product_tree",
        lambda a: [rd.product_tree(a.y).product, rd.product_tree(a.y).remainders(10**40)],
        lambda v: [math.prod(v.y), 10**40 % v.y],
        ("positional",),
    )
    row(
        "rd.remainder_tree", lambda a: rd.remainder_tree(10**99, a.y), lambda v: 10**99 % v.y, ("positional",)
    )
    row("linalg.det", lambda a: rd.linalg.det(_whole(a.s)), lambda v: _det(v.s), both)
    row(
        "linalg.permanent",
        lambda a: rd.linalg.permanent(_whole(a.s)),
        lambda v: sum(
            math.prod(v.s[i, j] for i, j in enumerate(p)) for p in itertools.permutations(range(len(v.s)))
        ),
        both,
    )
    row("linalg.rank", lambda a: np.ravel(plain(rd.linalg.rank(_whole(a.m)))), lambda _: [3], both)
    row("linalg.lu", lambda a: _product_of(rd.linalg.lu(_whole(a.s))), lambda v: v.s, ("field",))
    row("linalg.charpoly", lambda a: rd.linalg.charpoly(_whole(a.s)), lambda v: _charpoly(v.s), both)
    row(
        "linalg.matrix_power",
        lambda a: rd.linalg.matrix_power(a.s, 5),
        lambda v: np.linalg.matrix_power(v.s, 5),
        both,
    )
    row("linalg.solve", lambda a: a.s @ rd.linalg.solve(_whole(a.s), a.b), lambda v: v.b, ("field",))
    row("linalg.solve [of integers]", lambda a: _solution(a), lambda v: v.b, RESIDUES)
    row("linalg.inv", lambda a: a.s @ rd.linalg.inv(_whole(a.s)), lambda _: np.eye(4, dtype=int), ("field",))
    row("linalg.inv [of integers]", lambda a: _inverse(a), lambda _: np.eye(4, dtype=int), RESIDUES)
    row("linalg.rref", lambda a: rd.linalg.rref(_whole(a.s))[0], lambda _: np.eye(4, dtype=int), ("field",))
    row(
        "linalg.rref [of integers]",
        lambda a: rd.linalg.rref(_whole(a.s))[1:],
        lambda _: [1, [0, 1, 2, 3]],
        RESIDUES,
    )
    row(
        "linalg.nullspace",
        lambda a: a.m @ rd.linalg.nullspace(_whole(a.m)),
        lambda _: np.zeros((4, 3), int),
        ("field",),
    )
    row("linalg.nullspace [of integers]", lambda a: _null(a), lambda _: np.zeros((4, 3), int), RESIDUES)
    row("poly.multiply", lambda a: rd.poly.multiply(a.f, a.g), lambda v: _product(v.f, v.g), both)
    row(
        "poly.derivative",
        lambda a: rd.poly.derivative(a.f),
        lambda v: [k * c for k, c in enumerate(v.f)][1:],
        both,
    )
    row(
        "poly.compose",
        lambda a: rd.poly.compose(a.f, a.g, 6),
        lambda v: [sum(int(c) * _first_of_power(v.g, k, 6)[i] for k, c in enumerate(v.f)) for i in range(6)],
        both,
    )
    row(
        "poly.power_mod",
        lambda a: rd.poly.power_mod(a.f, 2, a.g),
        lambda v: _modulo_g(_product(v.f, v.f), v.g),
        both,
    )
    row(
        "poly.inverse_series",
        lambda a: rd.poly.multiply(_with_one(a.f), rd.poly.inverse_series(_with_one(a.f), 5))[:5],
        lambda _: [1, 0, 0, 0, 0],
        ("field",),
    )
    row(
        "poly.log_series",
        lambda a: _logarithmic_derivative(_with_one(a.f))[:5],
        lambda v: [k * c for k, c in enumerate([1, *v.f])][1:6],
        ("field",),
    )
    row(
        "poly.exp_series",
        lambda a: rd.poly.exp_series(rd.poly.log_series(_with_one(a.f), 5), 5),
        lambda v: [1, *v.f][:5],
        ("field",),
    )
    row("poly.divmod", lambda a: _recombined(a), lambda v: v.f, both)
    row("poly.evaluate", lambda a: rd.poly.evaluate(a.f, a.b), lambda v: [_horner(v.f, n) for n in v.b], both)
    row("poly.resultant", lambda a: rd.poly.resultant(a.f, a.g), lambda v: _resultant(v.f, v.g), both)
    row("poly.discriminant", lambda a: rd.poly.discriminant(a.g), lambda _: -4 * (-2) ** 3 - 27 * 3**2, both)
    row("poly.gcd", lambda a: rd.poly.gcd(rd.poly.multiply(a.f, a.g), a.g), lambda v: [*v.g, *[0] * 7], both)
    row(
        "poly.interpolate",
        lambda a: rd.poly.interpolate(a.t[:8], rd.poly.evaluate(a.f, a.t[:8])),
        lambda v: v.f,
        ("field",),
    )
    row(
        "poly.rational_interpolate",
        lambda a: rd.poly.rational_interpolate(
            a.t[:12], rd.poly.evaluate(a.g, a.t[:12]), numerator_degree=3, denominator_degree=0
        ),
        lambda v: [v.g, [1]],
        ("field",),
    )
    row("rd.ntt", lambda a: rd.ntt(a.t), lambda v: _transform(v.t, _root(64)), ("field",))
    row(
        "rd.ntt [negacyclic]",
        lambda a: rd.ntt(a.t, negacyclic=True),
        lambda v: _transform([n * pow(_root(128), i, PRIME) for i, n in enumerate(v.t)], _root(64)),
        ("field",),
    )
    row("rd.intt", lambda a: rd.intt(rd.ntt(a.t)), lambda v: v.t, FIELDS)
    row(
        "rd.intt [reversed bits]",
        lambda a: rd.intt(rd.ntt(a.t, order="bit-reversed"), order="bit-reversed"),
        lambda v: v.t,
        FIELDS,
    )
    row(
        "rd.base_extend",
        lambda a: rd.base_extend(rd.base_extend(a.t, [97, PRIME], signed=True), [PRIME]),
        lambda v: v.t,
        ("field",),
    )
    row(
        "rd.rescale",
        lambda a: rd.rescale(rd.base_extend(a.t, [PRIME, 97])),
        lambda v: (v.t % PRIME + 48) // 97,
        ("field",),
    )
    row(
        "x.multiply_by_root",
        lambda a: a.x.multiply_by_root(3),
        lambda v: v.x * (2**63 + 2**34) ** 3,
        ("fermat",),
    )
    row(
        "rd.rational_reconstruct",
        lambda a: rd.rational_reconstruct(a.b / 7, confirm=0, numerator_bound=9, denominator_bound=9)[:2],
        lambda v: [v.b, [7] * 4],
        ("field",),
    )
    row("sparse @ x", lambda a: _sparse() @ a.b, lambda v: v.s @ v.b, ("field",))
    row("sparse.solve", lambda a: _sparse() @ rd.sparse.solve(_sparse(), a.b), lambda v: v.b, ("field",))
    row(
        "sparse.det",
        lambda a: rd.sparse.det(_sparse(), a.system, chunks=1, backend="auto"),
        lambda v: _det(v.s),
        ("field",),
    )
    row(
        "sparse.rank",
        lambda a: rd.sparse.rank(_sparse(), a.system, chunks=1, backend="auto"),
        lambda _: [4],
        ("field",),
    )
    row(
        "sparse.minpoly",
        lambda a: rd.sparse.minpoly(_sparse(), a.system, chunks=1, backend="auto"),
        lambda v: _charpoly(v.s),
        ("field",),
    )


def _root(order: int) -> int:
    (found,) = rd.PrimeFields([PRIME]).roots(order)
    assert pow(found, order // 2, PRIME) == PRIME - 1
    return int(found)


def _sparse() -> Any:
    rows, columns = np.nonzero(np.array(_SQUARE))
    return rd.sparse.from_entries(rows, columns, np.array(_SQUARE)[rows, columns], (4, 4))


def _whole(matrix: Any) -> Any:
    return matrix.rechunk(-1)


def _solution(a: Any) -> Any:
    numerators, denominator = map(plain, rd.linalg.solve(_whole(a.s), a.b))
    found = [Fraction(n, denominator) for n in numerators]
    return [int(sum(c * x for c, x in zip(line, found, strict=True))) for line in _SQUARE]


def _inverse(a: Any) -> Any:
    numerators, denominator = map(plain, rd.linalg.inv(_whole(a.s)))
    return np.array(_SQUARE, object) @ np.array(numerators, object) // denominator


def _null(a: Any) -> Any:
    return np.array(_WIDE, object) @ np.array(plain(rd.linalg.nullspace(_whole(a.m))), object)


def _recombined(a: Any) -> Any:
    quotient, remainder = map(plain, rd.poly.divmod(a.f, a.g))
    found = _product(quotient, _DIVISOR)[: len(_POLYNOMIAL)]
    return [n + (remainder[i] if i < len(remainder) else 0) for i, n in enumerate(found)]


def _add_conversions() -> None:
    row("x.to_ints", lambda a: a.x.to_ints(), lambda v: v.x)
    row("x.tolist", lambda a: a.x.tolist(), lambda v: v.x)
    row("x.to_dask_array", lambda a: a.x.to_dask_array(), lambda v: v.x, INTEGERS)
    row("x.to_numpy", lambda a: a.x.to_numpy(object), lambda v: v.x)
    row("x.to_pandas", lambda a: a.x.to_pandas().tolist(), lambda v: v.x)
    row("x.to_arrow", lambda a: [int(n) for n in a.x.to_arrow().to_pylist()], lambda v: v.x)
    row("x.item", lambda a: a.m.item(3, 5), lambda _: 3)
    row("x.astype", lambda a: a.m.astype(np.int64, casting="unsafe"), lambda v: v.m)
    row("x.copy", lambda a: a.x.copy(), lambda v: v.x)
    row("x.real", lambda a: a.x.real, lambda v: v.x)
    row("x.imag", lambda a: a.x.imag, lambda v: v.x * 0)
    row("x.compute", lambda a: a.x.compute(), lambda v: v.x)
    row("x.persist", lambda a: a.x.persist() + a.y, lambda v: v.x + v.y)
    row("x.compute_chunk_sizes", lambda a: a.x[a.x == 5].compute_chunk_sizes().shape, lambda _: [2])
    row("x.map_blocks", lambda a: a.x.map_blocks(operator.neg), lambda v: -v.x)
    row("x.words", lambda a: _class_of(a)(a.x.words, a.system), lambda v: v.x)
    row("x.residues", lambda a: rd.from_residues(a.x.residues, a.system), lambda v: v.x, ("rns", "field"))
    row(
        "x.residues [of intervals]",
        lambda a: (abs(a.x).to_rns().residues == a.x.residues).all(),
        lambda _: True,
        ("interval",),
    )
    row(
        "rd.from_residues",
        lambda a: rd.from_residues(a.x.residues, a.system.moduli, True) + 1,
        lambda v: v.x + 1,
        ("rns",),
    )
    row("rd.write_seal", _seal_file, lambda v: v.x, ("field",))
    row("x.with_residues", lambda a: a.x.with_residues(a.x.residues), lambda v: v.x, ("rns",))
    row("x.with_bound", lambda a: a.x.with_bound(2**50), lambda v: v.x, ("rns",))
    row("x.bits", lambda a: a.x.bits, lambda _: 200, ("positional",))
    row("x.extend", lambda a: a.x.extend(rd.ModuliSet.for_bits(300)), lambda v: v.x, RESIDUES)
    row("x.shrink", lambda a: a.x.shrink(rd.ModuliSet.for_bits(100)), lambda v: v.x, RESIDUES)
    row("x.to_limbs", lambda a: rd.from_limbs(a.x.to_limbs(), a.system), lambda v: v.x, INTEGERS)
    row(
        "rd.from_limbs",
        lambda a: rd.from_limbs(a.x.to_limbs(), rd.Positional(256, signed=True)),
        lambda v: v.x,
        INTEGERS,
    )
    row("x.to_bytes", lambda a: rd.from_bytes(a.x.to_bytes(), moduli=a.system), lambda v: v.x, INTEGERS)
    row(
        "rd.from_bytes",
        lambda a: rd.from_bytes(a.y.to_bytes(8, "big"), 8, "big", a.system),
        lambda v: v.y,
        INTEGERS,
    )
    row("x.to_residues", lambda a: a.b.to_residues([251, 256]), lambda v: [v.b % 251, v.b % 256], INTEGERS)
    row("x.to_positional", lambda a: a.x.to_positional(128, True) + 1, lambda v: v.x + 1, INTEGERS)
    row("x.to_rns", lambda a: a.x.to_rns() + 1, lambda v: v.x + 1, ("positional", "interval"))
    row("x.lift", lambda a: a.x.lift(), lambda v: v.x % PRIME, ("field",))
    row("x.from_rns", lambda a: _class_of(a).from_rns(a.rns_x), lambda v: v.x, ("interval",))
    row(
        "x.from_rns [of fields]",
        lambda a: rd.FieldArray.from_rns(a.rns_x, a.system),
        lambda v: v.x,
        ("field",),
    )
    row("rd.from_ints", lambda a: rd.from_ints(a.m.astype(np.int64), a.system), lambda v: v.m, INTEGERS)
    row(
        "rd.from_interleaved",
        lambda a: rd.from_interleaved(a.y.words),
        lambda v: [[int(n)] for n in v.y],
        ("field",),
    )
    row(
        "rd.to_interleaved",
        lambda a: _class_of(a)(rd.to_interleaved(rd.from_interleaved(a.x.words)), a.system),
        lambda v: v.x,
        ("rns", "positional", "field"),
    )
    row(
        "rd.mixed_radix_digits",
        lambda a: _fractions(plain(rd.mixed_radix_digits(a.y)), MODULI),
        lambda v: v.y,
        ("rns",),
    )
    row(
        "rd.fixed_point_interval",
        lambda a: _is_between(rd.fixed_point_interval(a.y)),
        lambda _: True,
        ("rns",),
    )
    row("x.interval", lambda a: _bounds_hold(a.x.interval(), _of_m(_LINE)), lambda _: True, ("rns",))
    row(
        "x.interval [of magnitudes]",
        lambda a: _bounds_hold(a.x.interval(), _of_m(map(abs, _LINE))),
        lambda _: True,
        ("interval",),
    )
    row(
        "rd.interval_arithmetic",
        lambda a: _bounds_hold(
            rd.interval_arithmetic("add", *(v.compute().interval() for v in (a.x, a.y)), MODULI),
            _of_m(np.array(_LINE) + _POSITIVE),
        ),
        lambda _: True,
        ("rns",),
    )
    row("x.low", lambda a: _bounds_hold(a.x, _of_m(map(abs, _LINE))), lambda _: True, ("interval",))
    row("x.sign", lambda a: a.x.sign, lambda v: v.x < 0, ("interval",))
    row("x.to_zarr", lambda a: _stored(a, a.x), lambda v: v.x)
    row("x.to_zarr [chunks]", lambda a: _stored(a, a.x, chunks=7), lambda v: v.x)
    row("x.to_zarr [append]", lambda a: _appended(a), lambda v: [*v.x, *v.y])
    row("rd.open_zarr", lambda a: _stored(a, a.m, open_chunks=(3, 5)), lambda v: v.m)
    row("x.to_parquet", lambda a: _parquet(a), lambda v: v.x, INTEGERS)


def _class_of(a: Any) -> Any:
    return a.system.array_type


def _is_between(interval: Any) -> bool:
    low, upp = (np.array(plain(part), object) for part in (interval.low, interval.upp))
    weights = np.array([2 ** (32 * i) for i in range(len(low))], object)[:, None]
    low, upp = (low * weights).sum(axis=0), (upp * weights).sum(axis=0)
    whole = 2 ** (32 * len(weights))
    return all(a <= n * whole // MODULI.product <= b for n, a, b in zip(_POSITIVE, low, upp, strict=True))


def _stored(a: Any, x: Any, chunks: Any = None, open_chunks: Any = None) -> Any:
    path = a.folder / "stored.zarr"
    x.to_zarr(path, chunks=chunks, overwrite=True)
    return rd.open_zarr(path, chunks=open_chunks, backend="auto").to_ints()


def _appended(a: Any) -> Any:
    path = a.folder / "appended.zarr"
    a.x.to_zarr(path, overwrite=True)
    a.y.to_zarr(path, mode="r+", append_dim=0)
    return rd.open_zarr(path, backend="auto").to_ints()


def _parquet(a: Any) -> Any:
    a.x.to_parquet(a.folder / "x.parquet", overwrite=True)
    return rd.read_parquet(a.folder / "x.parquet", "value").to_ints()


def _seal_file(a: Any) -> Any:
    path = a.folder / "x.seal"
    rd.write_seal(path, a.x[None], rd.SealForm(bytes(32), False), overwrite=True)
    return rd.read_seal(path, a.system)[0][0]


BESIDE_NUMPYS = {
    "x + array in memory",
    "array in memory - x",
    "x + NumPy's in chunks",
    "rd.concatenate [in memory]",
}
"""Rows with an operand of NumPy's, which arrays that are known to be CuPy's refuse."""

_add_elementwise()
_add_shapes()
_add_reductions()
_add_products()
_add_conversions()

# ---- names -------------------------------------------------------------------------------------------------

WITHOUT_ARRAYS = {
    "rd": "errstate random required_bits result_system to_decimal read_parquet read_seal long_multiply "
    "typing arange array asarray eye full identity linspace ones zeros",
    "poly": "",
    "linalg": "read",
    "sparse": "from_entries from_scipy read",
    "x": "bound chunks chunksize columns create_store dtype exponent moduli nbytes ndim npartitions "
    "numblocks plot shape signed size sort std storable_lengths system system_type upp visualize from_ints "
    "from_residues from_words",
}
"""Names that take no lazy array, tell what is known of one, refuse it, or are tested by a row of another."""


def public_names() -> Iterator[str]:
    """Every public function and every attribute of arrays, as rows name them."""
    yield from (f"rd.{name}" for name in rd.__all__ if name[0].islower() and name not in WITHOUT_ARRAYS)
    for name in ("linalg", "poly"):
        yield from (f"{name}.{key}" for key in sorted(getattr(rd, name).__all__))
    yield from (f"sparse.{name}" for name in rd.sparse.__all__ if name[0].islower())
    attributes = {name for kind in CLASSES.values() for name in dir(kind) if not name.startswith("_")}
    yield from (f"x.{name}" for name in sorted(attributes))
