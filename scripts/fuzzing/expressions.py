"""Expressions as text: random ones, evaluated step by step with Python's integers."""

import operator
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
from oracles.integers import Range, mapped

import rnsdask as rd
from fuzzing.case import Case, Chosen
from fuzzing.checking import must_fail, operation, require, same_array, same_numbers
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


@operation("expression")
def check_expression(case: Case, rng: Random) -> int:
    return check_text(case, rng, case.take(rng, 3, integers=False), case.limits, STEPS)


def check_text(
    case: Case,
    rng: Random,
    chosen: list[Chosen],
    limits: Range,
    steps: Steps,
    same: Callable[[Any, np.ndarray], int] | None = None,
) -> int:
    """Check a random expression of three arrays, which `same` compares with exact numbers.

    The result of each step is in range, or the whole is an overflow. No part of an overflow is asked for: a
    lazy part calculates its own chunks alone, which may be in range.
    """
    names = dict(zip("abc", chosen, strict=True))
    shape = np.broadcast_shapes(*(one.values.shape for one in chosen))
    if 0 in shape and any(one.values.size for one in chosen):
        return 0  # the exact results, of no numbers, would not tell what steps of some operands alone give
    values = {name: np.broadcast_to(one.values, shape) for name, one in names.items()}
    text, exact, fails = tree(limits, rng, values, rng.randint(1, 3), steps)
    compared, end = rng.random() < 0.2, rng.choice(WHOLE if fails else WHOLE + PARTS)
    text = f"(({text}) < a){end}" if compared else f"({text}){end}"
    case.note("expression", text)
    expression = parse(text)
    operands = {name: one.array for name, one in names.items() if name in expression.names}
    if fails:
        must_fail(lambda: evaluate(expression, operands).value, rd.RNSOverflowError, text)
        return max(exact.size, 1)
    used = np.broadcast_shapes(*(names[name].values.shape for name in operands))
    got = evaluate(expression, operands).value
    part = eval(f"whole{end}", {"whole": cut(exact, used)})
    if compared:
        less = mapped(lambda x, y: x < y, cut(exact, used), cut(values["a"], used)).astype(bool)
        return same_array(got, eval(f"whole{end}", {"whole": less}), text)
    require(got.shape == part.shape, f"{text}: shape {got.shape} instead of {part.shape}")
    part = np.ascontiguousarray(part)
    return same_numbers(case, got, part) if same is None else same(got, part)


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
