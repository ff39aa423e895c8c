"""Positional numbers: arithmetic, division, comparison, bits, folds, modular functions, expressions."""

import math
import operator
from collections.abc import Callable
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
from oracles.integers import Range, limbs, mapped, objects, product_of_all

import rnsdask as rd
from fuzzing import inputs
from fuzzing.case import Case, Chosen
from fuzzing.checking import MODES, computed, must_fail, named_index, operation, require, same_array
from fuzzing.elementwise import RELATIONS, whole
from fuzzing.expressions import STEPS, Steps, check_text

RNS = ("unsigned", "signed")

BITS = (1, 2, 7, 31, 32, 33, 63, 64, 65, 96, 109, 128, 239, 256, 300, 511, 512, 513, 1024, 2050)


def number(rng: Random, limits: Range) -> int:
    """A number at an end of the range, near a power of two or of any length."""
    bits = limits.product.bit_length() - 1
    value = rng.choice(
        (
            lambda: rng.choice((limits.lowest, limits.highest, 0, -1, 1)),
            lambda: (1 << rng.randint(0, bits)) + rng.randint(-1, 1),
            lambda: rng.getrandbits(rng.randint(1, bits)),
            lambda: limits.product // rng.randint(1, 9),
            lambda: rng.randint(limits.lowest, limits.highest),
        )
    )()
    return inputs.clipped(-value if rng.random() < 0.3 else value, limits)


def taken(
    case: Case, rng: Random, count: int, divides: bool = False, integers: bool = True
) -> tuple[rd.Positional, Range, list[Chosen]]:
    """A system, its range, and operands of it: the first an array, others arrays that broadcast, or integers.

    Where the last one `divides`, it is positive more often than not, and odd in half of these cases.
    """
    bits, signed = rng.choice((*BITS, rng.randint(1, 700))), case.signed
    system, limits = rd.Positional(bits, signed), Range.of(case.system, 1 << bits)
    shape = inputs.shape(rng, max(6, min(300, 30_000 // bits)))
    chosen = []
    kind = rng.choice(("any", "positive", "odd"))

    def draw(i: int) -> int:
        value = number(rng, limits)
        if not divides or i < count - 1 or kind == "any" or limits.highest < 1:
            return value
        return inputs.clipped(max(abs(value), 1), limits) | (kind == "odd")

    for i in range(count):
        if i and rng.random() < 0.25 and integers:
            value = draw(i)
            chosen.append(Chosen(value, value))
            continue
        own = inputs.broadcastable(rng, shape) if i and rng.random() < 0.2 else shape
        values = objects((draw(i) for _ in range(math.prod(own))), own)
        words = inputs.laid_out(words_of(values, bits), rng.choice(inputs.LAYOUTS), case.processor)
        array = rd.PositionalArray(words, system)
        chosen.append(Chosen(values, array.rechunk(inputs.chunks(rng, own)) if case.is_lazy else array))
    case.note("system", repr(system))
    for i, one in enumerate(chosen):
        case.note(f"operand {i}", one.values)
    return system, limits, chosen


def words_of(values: np.ndarray, bits: int) -> np.ndarray:
    return np.ascontiguousarray(np.moveaxis(limbs(values, -(-bits // 32)), -1, 0))


def same(system: rd.Positional, got: Any, expected: np.ndarray, what: str = "result") -> int:
    """Check an array of limbs: its type, its system, and every word."""
    require(type(got) is rd.PositionalArray, f"{what}: {type(got).__name__}")
    require(got.system == system, f"{what}: {got.system!r} instead of {system!r}")
    return same_array(computed(got.words), words_of(expected, system.bits), what)


def check_modes(
    system: rd.Positional, limits: Range, rng: Random, function: Callable[..., Any], exact: np.ndarray
) -> int:
    """Check a function that may overflow in one of the modes."""
    mode, outside, wrapped = rng.choice(MODES), limits.outside(exact), limits.wrapped(exact)
    if mode == "raise" and outside.any():
        error: Any = must_fail(lambda: function(overflow=mode), rd.RNSOverflowError, "overflow")
        require(outside.reshape(-1)[error.index], f"the error names flat index {error.index}")
        return int(outside.size)
    result = function(overflow=mode)
    if mode != "flag":
        return same(system, result, wrapped)
    return same(system, result[0], wrapped) + same_array(result[1], outside, "mask")


@operation("limbs: arithmetic", RNS)
def check_arithmetic(case: Case, rng: Random) -> int:
    name, exactly = rng.choice(
        (("add", operator.add), ("subtract", operator.sub), ("multiply", operator.mul))
    )
    system, limits, chosen = taken(case, rng, 2)
    case.note("operation", name)
    exact, arrays = mapped(exactly, *whole(chosen)), [one.array for one in chosen]
    count = check_modes(system, limits, rng, lambda **mode: getattr(rd, name)(*arrays, **mode), exact)
    if not chosen[1].is_array:
        return count
    longer = getattr(rd, name)(*arrays, bits="exact")
    return count + same(longer.system, longer, exact, "exact bits")


@operation("limbs: division", RNS)
def check_division(case: Case, rng: Random) -> int:
    system, limits, chosen = taken(case, rng, 2, divides=True)
    x, y = whole(chosen)
    zero = np.asarray(y == 0, dtype=bool)
    if zero.any() and x.size:
        # Of chunks computed side by side another may be first to fail: with the lowest number by -1.
        lowest = bool(((x == limits.lowest) & (y == -1)).any())
        errors = (ZeroDivisionError, rd.RNSOverflowError) if case.is_lazy and lowest else ZeroDivisionError
        must_fail(lambda: chosen[0].array // chosen[1].array, errors, "a divisor of 0")
        return 1
    if not x.size:
        return 0
    exact = mapped(operator.floordiv, x, y)
    if limits.outside(exact).any():  # the lowest number by -1
        must_fail(lambda: chosen[0].array // chosen[1].array, rd.RNSOverflowError, "a quotient")
    else:
        same(system, chosen[0].array // chosen[1].array, exact, "quotient")
    return same(system, chosen[0].array % chosen[1].array, mapped(operator.mod, x, y), "remainder")


@operation("limbs: comparison", RNS)
def check_comparison(case: Case, rng: Random) -> int:
    system, _, chosen = taken(case, rng, 2)
    relation, (x, y) = rng.choice(RELATIONS), whole(chosen)
    exact = mapped(relation, x, y, dtype=bool)
    same_array(relation(chosen[0].array, chosen[1].array), exact, relation.__name__)
    return same(system, rd.maximum(chosen[0].array, chosen[1].array), mapped(max, x, y), "maximum")


@operation("limbs: bits", RNS)
def check_bits(case: Case, rng: Random) -> int:
    system, limits, chosen = taken(case, rng, 2)
    x, a = chosen[0].values, chosen[0].array
    logic, shift = rng.choice((operator.and_, operator.or_, operator.xor)), rng.randint(0, system.bits + 40)
    case.note("operation, shift", (logic.__name__, shift))
    count = same(system, logic(a, chosen[1].array), mapped(logic, *whole(chosen)), "logic")
    same(system, ~a, mapped(limits.wrap, ~x), "invert")
    same(system, a >> shift, x >> shift, "right shift")
    same_array(rd.bitwise_count(a), mapped(int.bit_count, x, dtype=np.int64), "bitwise_count")
    same_array(a.bit_length(), mapped(int.bit_length, x, dtype=np.int64), "bit_length")
    same_array(a.is_even(), mapped(lambda v: v % 2 == 0, x, dtype=bool), "is_even")
    left = mapped(lambda v: v << shift, x)
    return count + check_modes(system, limits, rng, lambda **mode: rd.left_shift(a, shift, **mode), left)


@operation("limbs: folds", RNS)
def check_folds(case: Case, rng: Random) -> int:
    """Products, running results and variances along an axis, and the product of all."""
    system, limits, (x, *_) = taken(case, rng, 1)
    a, axis = x.values, rng.randrange(x.values.ndim)
    name = rng.choice(("prod", "cumprod", "cumsum", "cummax", "cummin", "var", "all"))
    case.note("fold, axis", (name, axis))
    if name == "var" and a.shape[axis]:
        count, (sums, squares) = a.shape[axis], (np.sum(v, axis=axis, keepdims=True) for v in (a, a * a))
        exact = mapped(lambda s, t: Fraction(count * s - t * t, count**2), squares, sums)
        return same_array(x.array.var(axis, keepdims=True), exact, "variance")
    if name in ("prod", "cumprod"):
        kept = {"keepdims": True} if name == "prod" else {}
        exact = np.cumprod(a, axis=axis) if name == "cumprod" else np.prod(a, axis=axis, keepdims=True)
        fold = getattr(x.array, name)
        return check_modes(system, limits, rng, lambda **mode: fold(axis, **kept, **mode), exact)
    if name == "all":
        found = map(int, (computed(part) for part in x.array.prod(overflow="flag")))
        require(tuple(found) == product_of_all(a.ravel().tolist(), limits), "product of all")
        return 1
    if name == "cumsum":
        exact = np.cumsum(a, axis=axis)
        if limits.outside(exact).any():
            must_fail(lambda: computed(x.array.cumsum(axis).words), rd.RNSOverflowError, "overflow")
            return int(exact.size)
        return same(system, x.array.cumsum(axis), exact)
    if name == "var":
        return 0
    function = np.maximum if name == "cummax" else np.minimum
    return same(system, getattr(x.array, name)(axis), function.accumulate(a, axis=axis))


@operation("limbs: expression", RNS)
def check_limb_expression(case: Case, rng: Random) -> int:
    system, limits, chosen = taken(case, rng, 3, integers=False)
    if system.bits < 2:  # which a sign has
        return 0
    steps = steps_of(rng, limits)
    return check_text(case, rng, chosen, limits, steps, lambda got, exact: same(system, got, exact))


def steps_of(rng: Random, limits: Range) -> Steps:
    """Steps for any integers, for bits, and modulo an integer of the range."""
    one, two, three = STEPS
    k, shift, m = (
        number(rng, limits),
        rng.randint(0, 40),
        inputs.clipped(abs(number(rng, limits)) or 1, limits),
    )
    e = rng.randint(0, 2**40)
    of_one = (
        *((f"({{}}) & {k}", lambda a: a & k), (f"{k} | ({{}})", lambda a: a | k)),
        *(("~({})", lambda a: limits.wrap(~a)), ("isqrt(max({}, 0))", lambda a: math.isqrt(max(a, 0)))),
        *((f"({{}}) << {shift}", lambda a: a << shift), (f"({{}}) >> {shift}", lambda a: a >> shift)),
        *(
            (f"mod_power({{}}, {e}, {m})", lambda a: pow(a, e, m)),
            (f"gcd({{}}, {k})", lambda a: math.gcd(a, k)),
        ),
        (f"mod_add({{}}, {k}, {m})", lambda a: (a + k) % m),
    )
    of_two = (
        *(("({}) & ({})", operator.and_), ("({}) | ({})", operator.or_), ("({}) ^ ({})", operator.xor)),
        *(("gcd({}, {})", math.gcd), ("lcm({}, {})", math.lcm)),
        (f"mod_multiply({{}}, {{}}, {m})", lambda a, b: a * b % m),
        (f"mod_subtract({{}}, {{}}, {m})", lambda a, b: (a - b) % m),
        ("where((({0}) & ({1})) == ({1}), {0}, {1})", lambda a, b: a if a & b == b else b),
    )
    return (*one, *of_one, *of_one), (*two, *of_two), three


@operation("limbs: modulo an integer", RNS)
def check_modular(case: Case, rng: Random) -> int:
    system, _, chosen = taken(case, rng, 3, divides=True)
    name, exactly = rng.choice(tuple(MODULAR.items()))
    chosen = chosen[1:] if name == "mod_inverse" else chosen
    if not any(one.is_array for one in chosen):
        return 0
    case.note("function", name)
    *values, m = whole(chosen)
    arrays = [one.array for one in chosen]
    wrong = np.asarray(m <= 0, dtype=bool)
    if name == "mod_power":  # one negative exponent is one for all; those of an array are refused
        wrong |= np.asarray(values[1] < 0, dtype=bool)
    elif name == "mod_inverse":
        wrong |= mapped(math.gcd, values[0], m) != 1
    if not m.size:
        return 0
    call = lambda: getattr(rd, name)(*arrays)  # noqa: E731
    if not wrong.any():
        return same(system, call(), mapped(exactly, *values, m), name)
    if name == "mod_power" and not chosen[1].is_array:
        return 0
    error = must_fail(call, (ZeroDivisionError, ValueError), name)
    if chosen[-1].is_array and not case.is_lazy:
        require(wrong.reshape(-1)[named_index(error)], f"{name}: {error}")
    return 1


MODULAR: dict[str, Callable[..., int]] = {
    "mod_add": lambda a, b, m: (a + b) % m,
    "mod_subtract": lambda a, b, m: (a - b) % m,
    "mod_multiply": lambda a, b, m: a * b % m,
    "mod_power": pow,
    "mod_inverse": lambda a, m: pow(a, -1, m),
}
