"""Laws of expressions as text: random ones, evaluated step by step with Python's integers."""

import math
import operator
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
from oracles.integers import Range, mapped

import rnsdask as rd
from laws.case import LIMBS, RESIDUES, RNS, Case, law_of, must_fail
from rnsdask.expressions.expression import evaluate
from rnsdask.expressions.syntax import parse

Step = tuple[str, Callable[..., int]]
Steps = tuple[tuple[Step, ...], tuple[Step, ...], tuple[Step, ...]]

# Products by name: with + and - they would be one operation, of which only the result must be in range.
ONE: tuple[Step, ...] = (
    ("-({})", lambda a: -a),
    ("abs({})", abs),
    ("({}) // 3", lambda a: a // 3),
    ("({}) % 5", lambda a: a % 5),
    ("({}) >> 2", lambda a: a >> 2),
    ("({})**2", lambda a: a**2),
)
TWO: tuple[Step, ...] = (
    ("({}) + ({})", lambda a, b: a + b),
    ("({}) - ({})", lambda a, b: a - b),
    ("multiply({}, {})", lambda a, b: a * b),
    ("max({}, {})", max),
    ("min({}, {})", min),
    ("multiply(sign({}), {})", lambda a, b: ((a > 0) - (a < 0)) * b),
    ("where(({0}) < ({1}), {1}, {0})", lambda a, b: b if a < b else a),
    ("where(is_even({0}) ^ (({0}) != ({1})), {0}, {1})", lambda a, b: a if (a % 2 == 0) ^ (a != b) else b),
)
DIFFERENCE = "({2}) - ({0}) * ({1})"
THREE: tuple[Step, ...] = (
    ("({}) * ({}) + ({})", lambda a, b, c: a * b + c),
    (DIFFERENCE, lambda a, b, c: c - a * b),
    ("clip({}, {}, {})", lambda a, b, c: min(max(a, b), c)),
)
STEPS: Steps = (ONE, TWO, THREE)
"""Steps of one, two and three operands."""

WHOLE = ("", "[..., ::-1]")
PARTS = ("[..., ::2]", "[..., 1:-1]", "[..., -1:]")


@law_of(*RESIDUES)
def expressions_are_evaluated(case: Case) -> None:
    claim_text(case, STEPS)


def claim_text(case: Case, steps: Steps) -> None:
    """Claim that a random expression of three arrays gives exact numbers.

    The result of each step is in range, or the whole is an overflow. No part of an overflow is asked for: a
    lazy part calculates its own chunks alone, which may be in range.
    """
    chosen, random = case.take(3, integers=False), case.random
    names = dict(zip("abc", chosen, strict=True))
    shape = np.broadcast_shapes(*(one.values.shape for one in chosen))
    if 0 in shape and any(one.values.size for one in chosen):
        return  # the exact results, of no numbers, would not tell what steps of some operands alone give
    values = {name: np.broadcast_to(one.values, shape) for name, one in names.items()}
    text, exact, fails = tree(case.limits, random, values, random.randint(1, 3), steps)
    compared, end = random.random() < 0.2, random.choice(WHOLE if fails else WHOLE + PARTS)
    text = f"(({text}) < a){end}" if compared else f"({text}){end}"
    case.note("expression", text)
    expression = parse(text)
    operands = {name: one.array for name, one in names.items() if name in expression.names}
    if fails:
        must_fail(lambda: evaluate(expression, operands).value, rd.RNSOverflowError, text)
        return
    used = np.broadcast_shapes(*(names[name].values.shape for name in operands))
    got = evaluate(expression, operands).value
    if compared:
        less = mapped(lambda x, y: x < y, cut(exact, used), cut(values["a"], used)).astype(bool)
        case.claim(got, eval(f"whole{end}", {"whole": less}), text)
    else:
        case.claim_array(got, np.ascontiguousarray(eval(f"whole{end}", {"whole": cut(exact, used)})), text)


def cut(values: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Cut values that were repeated to the shape of all operands to the shape of those used."""
    if values.size == 0:
        return np.empty(shape, dtype=values.dtype)
    index = (0,) * (values.ndim - len(shape))
    places = tuple(slice(0, own) for own in shape)
    return values[index][places]


def tree(
    limits: Range, rng: Random, values: dict[str, np.ndarray], depth: int, steps: Steps
) -> tuple[str, np.ndarray, bool]:
    """A random expression, its exact values, and whether a step of it is out of range."""
    if depth == 0:
        name = rng.choice(sorted(values))
        return name, values[name], False
    count = rng.choice((1, 2, 2, 3))
    form, function = rng.choice(steps[count - 1])
    parts = [tree(limits, rng, values, rng.randint(0, depth - 1), steps) for _ in range(count)]
    exact: Any = mapped(function, *(part[1] for part in parts))
    fails = any(part[2] for part in parts) or bool(limits.outside(exact).any())
    if form == DIFFERENCE and not limits.holds(1):  # it is one operation only where 1 is a number
        product = mapped(operator.mul, parts[0][1], parts[1][1])
        fails = fails or bool(limits.outside(product).any())
    return form.format(*(part[0] for part in parts)), exact, fails


@law_of(*LIMBS)
def expressions_of_limbs_are_evaluated(case: Case) -> None:
    """Steps for any integers, for bits, and modulo an integer of the range."""
    if case.system.value.bits < 2:  # which a sign has
        return
    one, two, three = STEPS
    random, limits = case.random, case.limits
    k, shift, e = case.number(), random.randint(0, 40), random.randint(0, 2**40)
    m = case.clipped(abs(case.number()) or 1)
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
    claim_text(case, ((*one, *of_one, *of_one), (*two, *of_two), three))


# ---- bits that expressions need ----------------------------------------------------------------------------


@law_of(*RNS)
def required_bits_are_least(case: Case) -> None:
    """The least bits that hold every step, found by trying the ends of each name's range."""
    names = {name: sorted((case.random.randint(-50, 2**70), case.random.randint(-50, 50))) for name in "abc"}
    text, steps = expression(case.random, names, case.random.randint(1, 4))
    case.note("expression, bounds", (text, names))
    got = rd.required_bits(text, **{name: tuple(ends) for name, ends in names.items()})
    lowest, highest = min(min(step) for step in steps), max(max(step) for step in steps)
    needed = max(1, highest.bit_length())
    if lowest < 0:
        needed = 1 + max(highest.bit_length(), (-lowest - 1).bit_length())
    assert got == needed, f"required_bits({text!r}) is {got} instead of {needed}"


def expression(rng: Random, names: dict[str, list[int]], depth: int) -> tuple[str, list[tuple[int, int]]]:
    """A random expression, and the least and greatest value of each step, the last one of the whole."""
    if depth == 0:
        name = rng.choice(sorted(names))
        return name, [(names[name][0], names[name][1])]
    kind = rng.choice(("+", "-", "*", "**", "neg"))
    left, steps = expression(rng, names, depth - 1)
    low, high = steps[-1]
    if kind == "neg":
        return f"(-{left})", [*steps, (-high, -low)]
    if kind == "**":
        k = rng.randint(0, 3)
        values = [v**k for v in {low, high, min(max(0, low), high)}]
        return f"({left})**{k}", [*steps, (min(values), max(values))]
    right, others = expression(rng, names, 0)
    function = {"+": operator.add, "-": operator.sub, "*": operator.mul}[kind]
    values = [function(a, b) for a in (low, high) for b in others[-1]]
    return f"({left} {kind} {right})", [*steps, *others, (min(values), max(values))]
