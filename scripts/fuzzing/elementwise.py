"""Operations element by element: arithmetic, powers, division, comparison, choice."""

import math
import operator
from functools import partial
from random import Random
from typing import Any

import dask
import dask.array as da
import numpy as np
from oracles.integers import mapped, objects, sum_of_products

import rnsdask as rd
from fuzzing.case import Case, Chosen, Operand
from fuzzing.checking import (
    check_overflow,
    check_overflowing,
    firsts,
    must_fail,
    named_index,
    operation,
    require,
    same_array,
    same_numbers,
)
from rnsdask.core.operations import OPERATIONS
from rnsdask.core.rows import ROWS
from rnsdask.lazy import elementwise

OPERATORS = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "negative": operator.neg,
}
RELATIONS = (operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne)


def whole(chosen: list[Chosen]) -> list[np.ndarray]:
    """Exact operands, all of the shape of the result."""
    values = [one.values for one in chosen]
    shape = np.broadcast_shapes(*(v.shape for v in values if isinstance(v, np.ndarray)))
    # A Python int of any size is no NumPy scalar.
    arrays = [v if isinstance(v, np.ndarray) else objects([v]) for v in values]
    return [np.broadcast_to(v, shape) for v in arrays]


def is_lazy(*chosen: Chosen) -> bool:
    return any(one.is_array and dask.is_dask_collection(one.array) for one in chosen)


# ---- arithmetic --------------------------------------------------------------------------------------------


def check_arithmetic(case: Case, rng: Random, name: str) -> int:
    terms = OPERATIONS[name].terms if name in OPERATIONS else ((-1, (0,)),)  # the opposite number
    chosen = case.take(rng, sum(len(factors) for _, factors in terms))
    exact = sum_of_products(terms, *whole(chosen))
    arrays = [one.array for one in chosen]
    by_operator, algorithm = rng.random() < 0.5, rng.choice((None, 1, 2, "digits"))
    # The operator - of intervals, which never overflows, gives no pair: "unary" checks it.
    has_modes = (case.system, name) != ("interval", "negative")
    if name in OPERATORS and by_operator and has_modes:
        return check_overflowing(case, rng, lambda: OPERATORS[name](*arrays), exact, options=False)
    function = getattr(rd, name)
    if case.system == "interval" and name in ("add", "subtract"):
        function = partial(elementwise.apply, ROWS[name], algorithm=algorithm)
    return check_overflowing(case, rng, lambda **mode: function(*arrays, **mode), exact)


for _name in ("negative", *OPERATIONS):
    operation(_name)(lambda case, rng, name=_name: check_arithmetic(case, rng, name))


@operation("unary", ("interval",))
def check_unary(case: Case, rng: Random) -> int:
    (x,) = case.take(rng)
    function = rng.choice((operator.neg, abs))
    return same_numbers(case, function(x.array), mapped(function, x.values))


@operation("square")
def check_square(case: Case, rng: Random) -> int:
    (x,) = case.take(rng)
    return check_overflowing(case, rng, lambda **mode: rd.square(x.array, **mode), x.values * x.values)


@operation("power")
def check_power(case: Case, rng: Random) -> int:
    (x,) = case.take(rng)
    long = rng.choice((case.moduli.bits, 63, 64, 65, 2**32, 2**64, 2**64 + 1, rng.getrandbits(130)))
    k = rng.choice((0, 1, 2, 3, rng.randint(0, 40), long))
    case.note("exponent", k)
    if rng.random() < 0.03:
        must_fail(lambda: x.array ** -max(k, 1), ValueError, "a negative power")
        return 1
    bits, product = case.moduli.bits, case.limits.product

    def raised(v: int) -> int:
        """The exact power, or if that is far out of range any number out of range."""
        return v**k if k <= 40 or (abs(v).bit_length() - 1) * k <= bits else 2 * product

    exact = mapped(raised, x.values)
    if k <= 40:
        return check_overflowing(case, rng, lambda **mode: rd.power(x.array, k, **mode), exact)
    signs = mapped(lambda v: -1 if v < 0 and k % 2 else 1, x.values)
    wrapped = mapped(lambda v, s: case.limits.wrap(s * pow(abs(v), k, product)), x.values, signs)
    outside = case.limits.outside(exact)
    values, mask = rd.power(x.array, k, overflow="flag")
    if outside.any():
        error = must_fail(lambda: rd.power(x.array, k), rd.RNSOverflowError, "a long power")
        require(
            error.index in firsts(outside, getattr(x.array, "chunks", None)),
            f"the error names flat index {error.index}",
        )
    else:
        same_numbers(case, x.array**k, wrapped)
    return same_numbers(case, values, wrapped) + same_array(mask, outside, "mask")


@operation("inverse")
def check_inverse(case: Case, rng: Random) -> int:
    (x,) = case.take(rng)
    product = case.limits.product

    def inverse(v: int) -> int | None:
        try:
            return case.limits.wrap(pow(abs(v), -1, product) * (-1 if v < 0 else 1))
        except ValueError:
            return None

    expected = mapped(inverse, x.values)
    missing = np.equal(expected, None).astype(bool)
    if not missing.any():
        return same_numbers(case, rd.inverse(x.array), expected)
    error = must_fail(lambda: rd.inverse(x.array), ValueError, "a number without inverse")
    require(
        named_index(error) in firsts(missing, getattr(x.array, "chunks", None)), f"another number: {error}"
    )
    return x.values.size


# ---- number theory -----------------------------------------------------------------------------------------


@operation("gcd and lcm")
def check_common(case: Case, rng: Random) -> int:
    chosen = case.take(rng, 2)
    function, exactly = rng.choice(((rd.gcd, math.gcd), (rd.lcm, math.lcm)))
    case.note("function", exactly.__name__)
    exact = mapped(exactly, *whole(chosen))
    return check_overflowing(
        case, rng, lambda **mode: function(*(one.array for one in chosen), **mode), exact
    )


@operation("bit_length")
def check_lengths(case: Case, rng: Random) -> int:
    (x,) = case.take(rng)
    exact = mapped(int.bit_length, x.values, dtype=np.int64)
    return same_array(rng.choice((rd.bit_length, type(x.array).bit_length))(x.array), exact, "bit_length")


# ---- division ----------------------------------------------------------------------------------------------

PARTS = {"floordiv": operator.floordiv, "mod": operator.mod, "divmod": divmod}


def divisor(case: Case, rng: Random) -> int:
    """An integer that divides: small, a power of two, a modulus and its like, or of any size."""
    moduli = case.moduli.moduli
    value = rng.choice(
        (
            rng.randint(1, 20),
            1 << rng.randint(0, case.moduli.bits + 40),
            rng.choice(moduli),
            rng.choice(moduli) * rng.randint(1, 10),
            rng.randint(2**32 - 3, 2**32 + 3),
            rng.randint(2, 2**32),
            case.number(rng),
            case.moduli.product + rng.randint(-2, 2),
            case.limits.highest + rng.randint(0, 2),
        )
    )
    return -value if case.system != "unsigned" and rng.random() < 0.4 else value


@operation("divide_by_integer")
def check_division_by_integer(case: Case, rng: Random) -> int:
    (x,), d = case.take(rng), divisor(case, rng)
    case.note("divisor", d)
    name = rng.choice(tuple(PARTS))
    if d == 0:
        must_fail(lambda: PARTS[name](x.array, d), ZeroDivisionError, "division by 0")
        return 1
    return check_parts(case, name, [x, Chosen(d, d)])


@operation("divide")
def check_division(case: Case, rng: Random) -> int:
    x, y = case.take(rng, 2)
    if not y.is_array and rng.random() < 0.5:
        x, y = y, x
    if not y.is_array and (y.values == 0 or (case.system == "unsigned" and y.values < 0)):
        return 0
    name, values = rng.choice(tuple(PARTS)), y.values
    zeros = np.asarray(values == 0) if y.is_array else np.zeros((), bool)
    # Few arrays of numbers at edges have no 0; those that have are another check.
    if zeros.any() and rng.random() < 0.8:
        y = without_zeros(case, y, zeros)
    return check_parts(case, name, [x, y])


def without_zeros(case: Case, y: Chosen, zeros: np.ndarray) -> Chosen:
    """Replace zeros by 1, or by -1 where the range has no 1."""
    values = np.where(zeros, 1 if case.limits.holds(1) else -1, y.values)
    case.note("divisors", values)
    return Chosen(values, case.built(Operand(values, None, "plain", getattr(y.array, "chunks", None))))


def check_parts(case: Case, name: str, chosen: list[Chosen]) -> int:
    """Check quotients, remainders or both; what is out of range must be an error."""
    x, y = chosen
    a, b = whole(chosen)
    function = PARTS[name]
    if y.is_array and (zeros := np.asarray(b == 0, dtype=bool)).any():
        return check_zeros(name, chosen, zeros)
    wanted = {"floordiv": ("//",), "mod": ("%",), "divmod": ("//", "%")}[name]
    exact = [mapped(operator.floordiv if part == "//" else operator.mod, a, b) for part in wanted]
    outside = [case.limits.outside(part) for part in exact]

    def call() -> Any:
        return function(x.array, y.array)

    if not any(part.any() for part in outside):
        result = call()
        parts = result if name == "divmod" else (result,)
        return sum(same_numbers(case, *pair) for pair in zip(parts, exact, strict=True))
    if is_lazy(x, y):
        result = call()
        result = result[int(not outside[0].any())] if name == "divmod" else result
        error = must_fail(lambda: result, rd.RNSOverflowError, "a result out of range")
        places = set().union(*(firsts(part, getattr(result, "chunks", None)) for part in outside))
        require(error.index in places, f"the error names flat index {error.index}, not one of {places}")
        return a.size
    error = must_fail(call, rd.RNSOverflowError, "a result out of range")
    # Quotients of a block are looked at before its remainders; no case is longer than a block.
    first = next(i for i, part in enumerate(outside) if part.any())
    check_overflow(case, error, exact[first], firsts(outside[first], None))
    return a.size


def check_zeros(name: str, chosen: list[Chosen], zeros: np.ndarray) -> int:
    x, y = chosen
    if not is_lazy(x, y):
        error = must_fail(lambda: PARTS[name](x.array, y.array), ZeroDivisionError, "division by 0")
        require(named_index(error) in firsts(zeros, None), f"another number: {error}")
        return zeros.size
    result = PARTS[name](x.array, y.array)
    result = result[0] if name == "divmod" else result
    # A quotient out of range in another chunk may come first.
    error = must_fail(lambda: result, (ZeroDivisionError, rd.RNSOverflowError), "division by 0")
    if isinstance(error, ZeroDivisionError):
        require(
            named_index(error) in firsts(zeros, getattr(result, "chunks", None)), f"another number: {error}"
        )
    return zeros.size


@operation("shift")
def check_shifts(case: Case, rng: Random) -> int:
    (x,) = case.take(rng)
    bits = rng.choice(
        (0, 1, 31, 32, 33, 64, case.moduli.bits - 1, case.moduli.bits, 10**9, rng.randint(0, 200))
    )
    case.note("bits", bits)
    if rng.random() < 0.6:
        reach = min(bits, case.moduli.bits + 1)
        return same_numbers(case, x.array >> bits, mapped(lambda v: v >> reach, x.values))
    if bits >= case.moduli.bits or 1 << bits > case.limits.highest:
        must_fail(lambda: x.array << bits, ValueError, "a factor out of range")
        return 1
    return check_overflowing(case, rng, lambda: x.array << bits, x.values * (1 << bits), options=False)


@operation("is_even")
def check_is_even(case: Case, rng: Random) -> int:
    (x,) = case.take(rng)
    return same_array(x.array.is_even(), (x.values % 2 == 0).astype(bool), "is_even")


# ---- comparison --------------------------------------------------------------------------------------------


@operation("compare")
def check_comparison(case: Case, rng: Random) -> int:
    x, y = case.take(rng, 2)
    relation = rng.choice(RELATIONS)
    beyond = rng.choice((-1, 1)) * (case.moduli.product + rng.getrandbits(rng.randint(1, 100)))
    if rng.random() < 0.2 and x.is_array:
        y = Chosen(beyond, beyond)
        case.note("operand 1", beyond)
    case.note("relation", relation.__name__)
    a, b = whole([x, y])
    return same_array(relation(x.array, y.array), np.asarray(relation(a, b), dtype=bool), relation.__name__)


@operation("sign")
def check_sign(case: Case, rng: Random) -> int:
    (x,) = case.take(rng)
    return same_array(rd.sign(x.array), mapped(lambda v: (v > 0) - (v < 0), x.values, dtype=np.int8), "sign")


@operation("extremum of two")
def check_extremum_of_two(case: Case, rng: Random) -> int:
    x, y = case.take(rng, 2)
    function, exactly = rng.choice(((rd.maximum, max), (rd.minimum, min)))
    case.note("function", exactly.__name__)
    return same_numbers(case, function(x.array, y.array), mapped(exactly, *whole([x, y])))


@operation("where")
def check_where(case: Case, rng: Random) -> int:
    x, y = case.take(rng, 2)
    a, b = whole([x, y])
    seed, lazily = rng.getrandbits(32), rng.random() < 0.5
    condition = np.random.default_rng(seed).integers(0, 2, a.shape).astype(bool)
    if rng.random() < 0.3:
        condition = condition[:1]
    given = case.processor.asarray(condition)
    if case.is_lazy and lazily and condition.size:
        given = da.from_array(given, chunks=max(1, condition.shape[0] // 2), asarray=False)
    return same_numbers(case, rd.where(given, x.array, y.array), np.where(condition, a, b))
