"""Elementary functions, statistics, scans along axes, powers by arrays and modulo integers."""

import math
from fractions import Fraction
from functools import reduce
from random import Random
from typing import Any

import numpy as np
from oracles.integers import mapped

import rnsdask as rd
from fuzzing import inputs
from fuzzing.case import Case, Chosen
from fuzzing.checking import (
    check_overflow,
    check_overflowing,
    firsts,
    must_fail,
    operation,
    require,
    same_array,
    same_int,
    same_numbers,
    shown,
)


def small_array(case: Case, rng: Random) -> Chosen:
    """An array whose products along an axis are not too long."""
    most = max(1, min(40, case.most_numbers // 8))
    lengths = [
        rng.randint(0, 3) if rng.random() < 0.2 else rng.randint(1, 7) for _ in range(rng.randint(0, 2))
    ]
    lengths.insert(rng.randint(0, len(lengths)), rng.randint(0, most))
    x = case.fresh(rng, tuple(lengths))
    if rng.random() < 0.7:  # products that stay in range for a while
        values = x.values.copy()
        for place in np.ndindex(values.shape):
            if rng.random() < 0.8:
                values[place] = inputs.clipped(rng.choice((1, 1, -1, 2, -3, 0)), case.limits)
        operand = case.operands[0]
        chunks = inputs.chunks(rng, values.shape) if case.is_lazy else None
        made = type(operand)(values, inputs.bound_for(rng, values, case.limits), "plain", chunks)
        case.note("array", values)
        x = Chosen(values, case.built(made))
    return x


def axis_of(case: Case, rng: Random, x: Chosen) -> int:
    axis = rng.randrange(x.values.ndim) - rng.choice((0, x.values.ndim))
    case.note("axis", axis)
    return axis


@operation("absolute")
def check_absolute(case: Case, rng: Random) -> int:
    (x,) = case.take(rng)
    return check_overflowing(case, rng, lambda **mode: rd.absolute(x.array, **mode), abs(x.values))


@operation("clip")
def check_clip(case: Case, rng: Random) -> int:
    (x,), ends = case.take(rng), []
    for beyond in (case.limits.lowest - 2**70, case.limits.highest + 2**70):
        other = case.take(rng)[0] if rng.random() < 0.3 else None
        number = rng.choice((None, case.number(rng), beyond))
        fits = other is not None and np.broadcast_shapes(other.values.shape, x.values.shape) == x.values.shape
        ends.append(other if fits else Chosen(number, number))
    low, high = ends
    case.note("ends", [end.values for end in ends])
    exact = x.values if low.values is None else np.maximum(x.values, low.values)
    exact = exact if high.values is None else np.minimum(exact, high.values)
    return same_numbers(case, rd.clip(x.array, low.array, high.array), exact)


@operation("any and all")
def check_any_and_all(case: Case, rng: Random) -> int:
    (x,), keepdims = case.take(rng), rng.random() < 0.5
    axis = rng.choice((None, axis_of(case, rng, x)))
    options: dict[str, Any] = {"axis": axis, "keepdims": keepdims}
    for name in ("any", "all"):
        expected = getattr(x.values != 0, name)(**options)
        same_array(getattr(x.array, name)(**options), np.asarray(expected), name)
    same_array(rd.count_nonzero(x.array, **options), np.asarray((x.values != 0).sum(**options)), "count")
    return max(x.values.size, 1)


@operation("diff")
def check_diff(case: Case, rng: Random) -> int:
    (x,) = case.take(rng)
    axis, n = axis_of(case, rng, x), rng.choice((0, 1, 1, 1, 2, 3))
    case.note("n", n)
    if n == 1:
        options: dict[str, Any] = {}
        for side in ("prepend", "append"):
            if rng.random() < 0.2:
                options[side] = case.number(rng)
        exact = np.diff(x.values, axis=axis, **options)
        return check_overflowing(
            case, rng, lambda **mode: rd.diff(x.array, axis=axis, **options, **mode), exact
        )
    exact = x.values
    for _ in range(n):
        exact = case.limits.wrapped(np.diff(exact, axis=axis))
    return same_numbers(case, rd.diff(x.array, n, axis, overflow="wrap"), exact)


@operation("nonzero")
def check_nonzero(case: Case, rng: Random) -> int:
    (x,) = case.take(rng)
    for got, expected in zip(x.array.nonzero(), x.values.nonzero(), strict=True):
        same_array(got, expected, "indices")
    return max(x.values.size, 1)


@operation("mean and peak to peak")
def check_mean(case: Case, rng: Random) -> int:
    (x,) = case.take(rng)
    flat = x.values.reshape(-1).tolist()
    if not flat:
        must_fail(lambda: x.array.mean(), ValueError, "mean of no numbers")
        return 1
    same_array(x.array.mean(), np.asarray(Fraction(sum(flat), len(flat)), dtype=object), "mean")
    return len(flat) * same_int(rd.ptp(x.array), max(flat) - min(flat), "ptp")


@operation("mean and variance along an axis")
def check_variance(case: Case, rng: Random) -> int:
    (x,), keepdims, ddof = case.take(rng), rng.random() < 0.5, rng.choice((0, 0, 1, 2, -1))
    axis = rng.choice((None, axis_of(case, rng, x)))
    count = x.values.size if axis is None else x.values.shape[axis]
    case.note("axis, keepdims, ddof", (axis, keepdims, ddof))
    if count <= max(ddof, 0):
        must_fail(lambda: x.array.var(axis, ddof=ddof), ValueError, "variance of too few numbers")
        return 1
    totals, squares = (
        np.asarray(np.sum(v, axis=axis, keepdims=keepdims), dtype=object) for v in (x.values, x.values**2)
    )
    means = mapped(lambda total: Fraction(total, count), totals)
    variances = mapped(lambda s, t: Fraction(count * s - t * t, count * (count - ddof)), squares, totals)
    same_array(x.array.mean(axis, keepdims=keepdims), means, "mean")
    return max(x.values.size, 1) * bool(
        same_array(x.array.var(axis, ddof=ddof, keepdims=keepdims), variances, "var")
    )


@operation("outer")
def check_outer(case: Case, rng: Random) -> int:
    a, b = (case.fresh(rng, (rng.randint(0, 12),), name) for name in "ab")
    exact = np.outer(a.values, b.values)
    return check_overflowing(case, rng, lambda **mode: rd.outer(a.array, b.array, **mode), exact)


# ---- products and scans along axes -------------------------------------------------------------------------


@operation("prod along axes")
def check_products(case: Case, rng: Random) -> int:
    x = small_array(case, rng)
    ndim = x.values.ndim
    axis: Any = tuple(rng.sample(range(ndim), rng.randint(1, ndim)))
    axis = axis[0] if len(axis) == 1 else axis
    keepdims = len(np.atleast_1d(axis)) == ndim or rng.random() < 0.5
    case.note("axis, keepdims", (axis, keepdims))
    exact = np.asarray(np.prod(x.values, axis=axis, keepdims=keepdims), dtype=object)
    options: dict[str, Any] = {"keepdims": keepdims, "split_every": rng.choice((None, 2))}
    return check_overflowing(case, rng, lambda **mode: x.array.prod(axis, **options, **mode), exact)


@operation("cumprod")
def check_cumprod(case: Case, rng: Random) -> int:
    x = small_array(case, rng)
    axis = rng.choice((None, axis_of(case, rng, x)))
    exact = np.cumprod(x.values, axis=axis)
    return check_overflowing(case, rng, lambda **mode: x.array.cumprod(axis, **mode), exact)


@operation("scans along an axis")
def check_scans(case: Case, rng: Random) -> int:
    (x,) = case.take(rng)
    axis = rng.choice((None, axis_of(case, rng, x)))
    flat = x.values.reshape(-1) if axis is None else x.values
    for name, function in (("cummax", np.maximum), ("cummin", np.minimum)):
        same_numbers(case, getattr(x.array, name)(axis), function.accumulate(flat, axis=axis or 0), name)
    exact = np.cumsum(x.values, axis=axis)
    outside = case.limits.outside(exact)
    if not outside.any():
        return max(1, same_numbers(case, x.array.cumsum(axis), exact, "cumsum"))
    error = must_fail(lambda: x.array.cumsum(axis), rd.RNSOverflowError, "a running sum out of range")
    require(outside.reshape(-1)[error.index], f"the error names flat index {error.index}, which is in range")
    if flat.ndim > 1:
        check_overflow(case, error, exact, firsts(outside, getattr(x.array, "chunks", None)))
    return outside.size


# ---- powers ------------------------------------------------------------------------------------------------


@operation("power modulo an integer")
def check_modular_power(case: Case, rng: Random) -> int:
    (x,) = case.take(rng)
    highest = case.limits.highest
    sizes = (1, 2, 3, 2**31, 2**32 - 1, 2**32, 2**32 + 1, highest, highest + 1, rng.randint(1, highest + 1))
    m = min(rng.choice(sizes), highest + 1) * (1 if case.system == "unsigned" else rng.choice((1, -1)))
    k = rng.choice((0, 1, 2, 3, 17, 65537, rng.getrandbits(70), -1, -2))
    case.note("exponent, modulus", (k, m))
    if not m:
        return 0
    bad = [i for i, v in enumerate(x.values.reshape(-1).tolist()) if k < 0 and math.gcd(v, m) != 1]
    if bad:
        error = must_fail(lambda: pow(x.array, k, m), ValueError, "a number without an inverse")
        require(any(f"flat index {i} " in str(error) for i in bad), f"another error: {error}")
        return 1
    if abs(m).bit_length() > 500 and k > 2**60:
        return 0
    return same_numbers(case, pow(x.array, k, m), mapped(lambda v: pow(v, k, m), x.values))


@operation("power by an array")
def check_power_by_array(case: Case, rng: Random) -> int:
    x = small_array(case, rng)
    shape = inputs.broadcastable(rng, x.values.shape) if x.values.ndim else x.values.shape
    k = np.array([rng.choice((0, 1, 2, 3, rng.randint(0, 40))) for _ in range(math.prod(shape))], dtype=int)
    k = k.reshape(shape).astype(rng.choice((np.int64, np.uint8, np.uint64)))
    case.note("exponents", k)
    exact = np.asarray(x.values ** k.astype(object), dtype=object)
    exponents = case.processor.asarray(k)
    return check_overflowing(case, rng, lambda **mode: rd.power(x.array, exponents, **mode), exact)


@operation("stacks of matrices")
def check_stacks(case: Case, rng: Random) -> int:
    rows, terms, columns, count = (rng.randint(0, 4) for _ in range(4))
    left = rng.choice(((count, rows, terms), (1, rows, terms), (2, 1, rows, terms), (rows, terms), (terms,)))
    right = rng.choice(((count, terms, columns), (2, count, terms, columns)))
    a, b = (case.fresh(rng, shape, name) for shape, name in ((left, "a"), (right, "b")))
    exact = np.asarray(np.matmul(a.values, b.values), dtype=object)
    return check_overflowing(case, rng, lambda **mode: rd.matmul(a.array, b.array, **mode), exact)


@operation("matrix power")
def check_matrix_power(case: Case, rng: Random) -> int:
    side, k = rng.randint(0, 4), rng.choice((0, 1, 2, 3, 5, 8))
    x = case.fresh(rng, rng.choice(((side, side), (2, side, side))))
    case.note("k", k)
    identity = np.broadcast_to(np.eye(side, dtype=object), x.values.shape)
    powers = [reduce(np.matmul, [x.values] * j, identity) for j in range(k + 1)]
    exact = np.asarray(powers[k], dtype=object)
    outside = case.limits.outside(exact)
    if case.system == "interval":  # signs do not wrap
        must_fail(lambda: rd.linalg.matrix_power(x.array, k, overflow="wrap"), ValueError, "a wrapped power")
        passed = [np.asarray(powers[1 << i], dtype=object) for i in range(k.bit_length())]
        if not any(case.limits.outside(power).any() for power in (exact, *passed)):
            same_numbers(case, rd.linalg.matrix_power(x.array, k), exact)
    else:
        wrapped = case.limits.wrapped(exact)
        same_numbers(case, rd.linalg.matrix_power(x.array, k, overflow="wrap"), wrapped)
    if outside.any():
        must_fail(lambda: rd.linalg.matrix_power(x.array, k), rd.RNSOverflowError, f"power {shown(k)}")
    return max(1, x.values.size)
