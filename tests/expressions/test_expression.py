"""Expressions over arrays, against Python's own evaluation of the same text; and what is refused."""

import functools
import math
import operator
import re
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
from conftest import Processor
from hypothesis import given
from hypothesis import strategies as st
from oracles import rns
from strategies import MODULI_SETS

import rnsdask as rd
from rnsdask.core.errors import ExpressionError
from rnsdask.core.moduli import ModuliSet
from rnsdask.core.operations import OPERATIONS
from rnsdask.expressions.expression import evaluate
from rnsdask.expressions.functions import EXTREMA, FUNCTIONS
from rnsdask.expressions.required_bits import Known, bits_of, range_of_steps
from rnsdask.expressions.syntax import parse

WIDE = MODULI_SETS["bits2048"]
SMALL = ModuliSet([2**32, 2**32 - 1])
VALUES = {
    "a": [5, 0, 3, 2**40, 1, 12, 7],
    "b": [1, 0, 9, 2**39 + 1, 8, 5, 7],
    "c": [2, 3, 1, 2**63 - 1, 4, 6, 7],
}
PYTHON = {
    **{name: operation.evaluate for name, operation in OPERATIONS.items()},
    "negative": operator.neg,
    "maximum": max,
    "minimum": min,
    "where": lambda condition, a, b: a if condition else b,
    "sign": lambda a: (a > 0) - (a < 0),
    "is_even": lambda a: a % 2 == 0,
    "abs": abs,
    "max": max,
    "min": min,
    "clip": lambda a, low, high: min(max(a, low), high),
    "pow": pow,
    "gcd": math.gcd,
    "lcm": math.lcm,
    "bit_length": int.bit_length,
    "isqrt": math.isqrt,
    "factorial": math.factorial,
    "binomial": math.comb,
    "primorial": (1, 1, 2, 6, 6, 30, 30).__getitem__,
    "bitwise_count": int.bit_count,
    "mod_add": lambda a, b, m: (a + b) % m,
    "mod_subtract": lambda a, b, m: (a - b) % m,
    "mod_multiply": lambda a, b, m: a * b % m,
    "mod_power": pow,
    "mod_inverse": lambda a, m: pow(a, -1, m),
}


def arrays(
    moduli: ModuliSet = WIDE, signed: bool = True, chunks: Any = 3, xp: Any = np, names: Any = VALUES
) -> dict[str, rd.RNSArray]:
    made = {}
    for name in names:
        values = VALUES[name]
        residues = xp.asarray(rns.encode(values, moduli, signed))
        x = rd.RNSArray(residues, rd.RNS(moduli, signed))
        made[name] = (
            x
            if chunks is None
            else rd.RNSArray(x.rechunk().residues.rechunk((-1, chunks)), rd.RNS(moduli, signed))
        )
    return made


def one(value: int) -> rd.RNSArray:
    return rd.from_ints([value], WIDE, signed=True)


def result(text: str, operands: dict[str, rd.RNSArray] | None = None, overflow: str = "raise") -> Any:
    expression = parse(text)
    operands = arrays() if operands is None else operands
    used = {name: operands[name] for name in operands if name in expression.names}
    return evaluate(expression, used, overflow)


def numbers(value: Any) -> list[Any]:
    if isinstance(value, rd.RNSArray | rd.IntervalRNSArray | rd.PositionalArray):
        return list(value.to_ints())
    value = value.compute() if hasattr(value, "compute") else value
    return list((value.get() if hasattr(value, "get") else value).tolist())


def numbers_of(value: Any) -> Any:
    """Return the result of an expression, in its shape, on the host."""
    if isinstance(value, rd.RNSArray):
        return value.to_ints()
    value = value.compute() if hasattr(value, "compute") else value
    return value.get() if hasattr(value, "get") else value


def by_python(text: str, values: dict[str, list[int]] = VALUES) -> list[Any]:
    code = compile(" ".join(text.split()), "test", "eval")
    rows = zip(*values.values(), strict=True)
    return [
        eval(code, {**PYTHON, **dict(zip(values, row, strict=True))}) for row in rows
    ]  # a test's own text


TEXTS = [
    "factorial(a % 20) + binomial(30, b % 9) - primorial(c % 7)",
    "mod_multiply(a - b, a, c*c + 1) + mod_power(a, 65537, 2**61 - 1)",
    "mod_power(a, b % 1000, c*c + 2) - mod_inverse(2*b + 1, 2**70)",
    "a",
    "(a)",
    "+a - -b",
    "a*b + c",
    "c + a*b",
    "a*b - c",
    "c - a*b",
    "a*b - b*c",
    "a*b + b*c",
    "a*b + c*a*b - 3*a + 2*4",
    "(a + b) * (a - b)",
    "-a*b + c",
    "-(a*b) - c",
    "2*a + 1",
    "1 - 2*a",
    "3 - a",
    "a // 3 + a % 3",
    "-a // 7 - (-a % 7)",
    "a // (b + 1)",
    "100 // (a + 1) + 100 % (b + 1)",
    "a << 70 >> 68",
    "a * 2**100 // 0x10000000000000000",
    "a * (1 << 5) - 1_000_000 % 7 // 2",
    "maximum(a, b) - minimum(a, 4)",
    "where(a > b, a, b - c)",
    "where((a > b) & ~(c == 7) | is_even(a) ^ (b != c), a*b + c, 0)",
    "where(a < 2**5000, a, b)",
    "fma(a, b, c) + mulsub(a, b, c, 3) - add(a, subtract(b, multiply(c, negative(a))))",
    "\n a \t* b\r\n + c ",
    "abs(a - 3*b) + abs(b) - abs(-c)",
    "gcd(a - b, 6) + lcm(b, c) - gcd(12, a)",
    "bit_length(a - b) * c",
    "max(a, 3, b, 7) - min(a - b, c, -5)",
    "max(3, 7, a) + min(9, a, -2)",
    "clip(a - b, -2, 9)",
    "clip(a, b, c)",
    "pow(a, 2) - pow(b, 0)",
    "pow(a - b, 5, 7) + pow(b, 3, -9)",
    "sign(a - b) * c + a",
    "abs(sign(a - b)) - sign(c - 7)",
    "where(sign(a - 3) == -1, sign(b), a)",
    "-sign(b - a) * sign(c)",
    "sign(a) // 2 + a",
]
COMPARISONS = [
    "a < b",
    "a <= 5",
    "5 >= b",
    "a > c",
    "a*b == b*a",
    "a != b",
    "is_even(a + b)",
    "(a < b) & (b < c)",
    "sign(a - b) > 0",
    "sign(a - b) == sign(b - c)",
    "-1000 < sign(a)",
    "sign(a - b) < 2**100",
    "sign(a - b) * 2 <= b",
    "bit_length(a) < bit_length(b)",
    "bit_length(a) >= 2**70",
    "bit_length(a * 2**100) > b",
]


@pytest.mark.parametrize("text", [*TEXTS, *COMPARISONS, "sign(a - b)"])
def test_as_python_evaluates_it(on_each_processor: Processor, text: str) -> None:
    expected = by_python(text)
    for chunks in (None, 3, 2):
        value = result(text, arrays(chunks=chunks, xp=on_each_processor.xp)).value
        assert numbers(value) == expected
        if text in TEXTS and chunks:
            assert value.bound is None or max(map(abs, expected)) <= value.bound


OF_LIMBS = [
    "a & b | ~c ^ 12",
    "(a - b) & -4 | 6 & 3 ^ ~1",
    "~(a < b) & (c > 3) ^ (a & 1 == 1 & 3)",
    "where((a & 1) == 0, isqrt(a), a | b)",
    "isqrt(a * b) + bitwise_count(a - b) * (sign(c) | 1)",
    "bitwise_count(a ^ b) == bit_length(c)",
    "gcd(a, b) + lcm(b, 6) + pow(a, 3, 11)",
    "mod_add(a, -b, 7) - mod_subtract(a, b, c + 1)",
    "mod_multiply(a - b, 2**90, 2**61 - 1) * mod_power(2, a % 100, c)",
    "mod_power(a, -3, 2**89 - 1) + mod_inverse(2*b + 1, 1 << 70)",
    "mod_power(a, b, c) + mod_power(a, 2**70, b + 1)",
]


@pytest.mark.parametrize("text", [*OF_LIMBS, *(text for text in (*TEXTS, *COMPARISONS) if "-9)" not in text)])
@pytest.mark.parametrize("chunks", [None, 3])
def test_limbs_as_python_evaluates_them(text: str, chunks: int | None) -> None:
    values = VALUES | {"a": [5, 1, 3, 2**40, 1, 12, 7]} if text in OF_LIMBS else VALUES
    operands = {name: rd.from_ints(v, rd.Positional(300, True), chunks=chunks) for name, v in values.items()}
    assert numbers(result(text, operands).value) == by_python(text, values)


@pytest.mark.parametrize(
    "text", ["a & b", "a | b", "a ^ b", "~a - b", "bitwise_count(a) + b", "isqrt(a*a) + b"]
)
def test_ranges_of_bits_hold_all_results(text: str) -> None:
    for ends in ((-5, 3), (0, 9), (4, 7), (-8, -3), (-1, 0)):
        for others in ((-9, -7), (-2, 17), (0, 0), (3, 16)):
            known = {"a": Known(ends), "b": Known(others)}
            low, high = range_of_steps({"": parse(text)}, known)
            values = {
                "a": [a for a in range(ends[0], ends[1] + 1) for _ in range(others[0], others[1] + 1)],
                "b": [*range(others[0], others[1] + 1)] * (ends[1] - ends[0] + 1),
            }
            found = by_python(text, values)
            assert low <= min(found) <= max(found) <= high, (text, ends, others)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("mod_add(a, b, c - 2)", "the modulus at flat index 0 is 0"),
        ("mod_inverse(a, 0)", "column 1: the modulus is 0"),
        ("a + mod_power(a, 2, -c)", "the modulus at flat index 0 is negative"),
        ("mod_power(a, 1 - b, 7)", "the exponent at flat index 2 is negative"),
        ("isqrt(4 - a)", "flat index 0"),
        ("mod_inverse(a - 2, 6)", "the number at flat index 0 has no inverse modulo"),
        ("a & 2**300", "column 1: .* outside"),
        ("mod_add(1, 2, 3) + a", "an argument of mod_add must be an array"),
    ],
)
def test_what_limbs_have_no_result_of(text: str, rule: str) -> None:
    operands = {name: rd.from_ints(v, rd.Positional(300, True), chunks=7) for name, v in VALUES.items()}
    with pytest.raises((ArithmeticError, ValueError), match=rule):
        result(text, operands).value.to_ints()


@pytest.mark.skipif(not hasattr(rd.RNSArray, "__pow__"), reason="arrays have no power")
def test_power() -> None:
    assert numbers(result("a**3 - b**2").value) == by_python("a**3 - b**2")


@pytest.mark.skipif(not hasattr(rd.RNSArray, "__matmul__"), reason="arrays have no matrix product")
def test_matrix_product() -> None:
    x = rd.from_ints(np.arange(6, dtype=object).reshape(2, 3), WIDE)
    y = rd.from_ints(np.arange(12, dtype=object).reshape(3, 4), WIDE)
    found = result("x @ y + 1", {"x": x, "y": y}).value
    expected = np.arange(6).reshape(2, 3) @ np.arange(12).reshape(3, 4) + 1
    assert found.to_ints().tolist() == expected.tolist()


FORMS = (
    *(
        "{} + {}",
        "({}) - ({})",
        "({}) * ({})",
        "-({})",
        "(({}) // 3)",
        "(({}) % 5)",
        "(({}) >> 2)",
        "(({}) << 3)",
    ),
    *(
        "maximum(a, {})",
        "minimum({}, b)",
        "where(a < ({}), a, {})",
        "where((is_even({} + c) ^ (a == a)) | (sign(b - ({})) == 0), b, c)",
        "max({}, 3 - b, {})",
        "min(a, {}, 7 - a)",
        "abs({} - a)",
        "(sign({} - b) + c)",
        "(sign(a - ({})) * ({}))",
        "clip({} - c, -5, {})",
        "pow(a + {}, 2)",
        "(({}) // (abs({} + a) + 1))",
        "(({}) % -3)",
        "mulsub(a, b, {}, {})",
        "({}) * a + b * ({})",
    ),
)


@st.composite
def expressions(draw: st.DrawFn, depth: int = 4) -> str:
    if depth == 0 or draw(st.integers(0, 5)) == 0:
        return draw(st.sampled_from(["a", "b", "c", "a", "0", "1", "7", "0x1f", "12345678901234567890"]))
    inner = expressions(depth=depth - 1)
    left, right = draw(inner), draw(inner)
    form = draw(st.sampled_from(FORMS))
    return form.format(left, right) if form.count("{}") == 2 else form.format(left)


@given(expressions())
def test_any_expression(text: str) -> None:
    if not set("abc") & set(re.findall(r"\b[abc]\b", text)):
        text = f"a + ({text})"
    found = result(text, arrays(chunks=None)).value
    assert numbers(found) == by_python(text)
    # In the range that it is said to need, nothing is out of range.
    known = {name: Known((min(values), max(values))) for name, values in VALUES.items()}
    low, high = range_of_steps({"": parse(text)}, known)
    signed = bits_of((min(low, -high - 1), high))
    enough = arrays(ModuliSet.for_bits(signed), chunks=None, names=parse(text).names)
    assert numbers(result(text, enough).value) == by_python(text)
    ends = {name: (min(values), max(values)) for name, values in VALUES.items()}
    assert signed <= 1 + rd.required_bits(text, **ends)


# ---- parts ------------------------------------------------------------------------------------------------

GRID = np.array([[(31 * i * i + 7 * j) % 101 - 50 for j in range(5)] for i in range(6)], dtype=object)
ROW = np.array([3, -1, 4, -1, 5], dtype=object)
PARTS = [
    *("g[0]", "g[-1]", "g[2:5]", "g[::2]", "g[::-1]", "g[:, 3]", "g[..., -2:]", "g[1:, ::-2]", "g[5:2]"),
    *("g[-100:100]", "g[10**30:]", "g[...]", "g[2:3, 1:2]", "(g + r)[1:4][1:]", "g[1:] - g[:-1]", "g[1] * r"),
    *("(g*r - 3)[::2, 1:]", "r[1:3][0:1] + r", "g[3 - 1:1 << 2]", "(g < r)[2:]", "sign(g)[:, 0] * g[:, 1]"),
    *("where((g > 0)[1:], g[1:], g[:-1])", "g[0:0]", "~(g == r)[0]", "r[::-1]", "max(g[:2], r, 0)"),
]


@pytest.mark.parametrize("text", PARTS)
def test_parts_are_those_of_numpy(on_each_processor: Processor, text: str) -> None:
    elementwise = {
        "sign": np.sign,
        "where": np.where,
        "max": lambda *several: functools.reduce(np.maximum, several),
    }
    expected = np.asarray(eval(text.replace("~(g == r)", "(g != r)"), {**elementwise, "g": GRID, "r": ROW}))
    for chunks in (None, (4, 3), (1, 5)):
        operands = {}
        for name, values in (("g", GRID), ("r", ROW)):
            words = on_each_processor.xp.asarray(rns.encode(values.ravel().tolist(), WIDE, True))
            words = words.reshape(-1, *values.shape)
            if chunks is not None:
                words = da.from_array(words, (-1, *chunks[-values.ndim :]), asarray=False)
            operands[name] = rd.RNSArray(words, rd.RNS(WIDE, True))
        found = result(text, operands).value
        assert found.shape == expected.shape
        assert np.array_equal(numbers_of(found), expected)


def test_an_index_of_one_number_gives_an_array_of_one() -> None:
    for text, value in (("a[3]", 2**40), ("a[-1]", 7), ("a[-7]", 5), ("(a + b)[0]", 6), ("a[...][2]", 3)):
        assert numbers(result(text).value) == [value]
    x = rd.from_ints(GRID, WIDE, signed=True)
    assert numbers(result("x[2, 3]", {"x": x}).value) == [GRID[2, 3]]
    assert numbers(result("x[-1, -1] + x[0]", {"x": x}).value) == (GRID[-1, -1] + GRID[0]).tolist()
    assert numbers(result("(x < 0)[2, 3]", {"x": x}).value) == [GRID[2, 3] < 0]


def test_nothing_is_computed_early() -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("computed")

    with dask.config.set(scheduler=refuse):
        for text in (*TEXTS, *COMPARISONS):
            result(text)


# ---- overflow ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["a*b + c - c", "a*b - c", "c - a*b", "a*b - b*a", "a*b + b*-a", "b*a + c"])
def test_only_the_result_of_a_fused_operation_must_fit(text: str) -> None:
    top = SMALL.product - 1
    operands = {
        "a": rd.from_ints([2**40, 3], SMALL, True, 2),
        "b": rd.from_ints([2**40, 5], SMALL, True, 2),
        "c": rd.from_ints([top // 2, top // 2 - 20], SMALL, True, 2),
    }
    fits = text in ("a*b - b*a", "a*b + b*-a")
    found = result(text, operands, "flag")
    flags = [False] if found.mask is None else found.mask.compute().tolist()
    assert flags[0] is not fits
    unsigned = {k: rd.from_ints([2**40, 3], SMALL) for k in "ab"} | {"c": rd.from_ints([1, 15], SMALL)}
    with pytest.raises(rd.RNSOverflowError):
        result("a*b", unsigned).value.to_ints()
    assert result("a*b - b*a + c", unsigned).value.to_ints().tolist() == [1, 15]


def test_modes() -> None:
    a, b = rd.from_ints([2**40, 3, 1], SMALL, chunks=128), rd.from_ints([2**40, 5, 2], SMALL, chunks=128)
    with pytest.raises(rd.RNSOverflowError, match="flat index 0"):
        result("a*b + 1", {"a": a, "b": b}).value.to_ints()
    wrapped = [(2**80 + 1) % SMALL.product, 16, 3]
    assert result("a*b + 1", {"a": a, "b": b}, "wrap").value.to_ints().tolist() == wrapped
    flagged = result("maximum(a*b + 1, a - b)", {"a": a, "b": b}, "flag")
    assert flagged.mask.compute().tolist() == [True, True, True]
    flagged = result("a*b + 1", {"a": a, "b": b}, "flag")
    assert flagged.mask.compute().tolist() == [True, False, False]
    assert flagged.value.to_ints().tolist() == wrapped
    assert result("maximum(a, b)", {"a": a, "b": b}, "flag").mask is None
    assert result("where(a < b << 1, a, b)", {"a": a, "b": b}, "flag").mask.compute().tolist() == [False] * 3


def test_the_mask_of_a_part_is_a_part_of_the_mask() -> None:
    a = rd.from_ints([2**40, 3, 1, 2**40], SMALL, chunks=128)
    for text, expected in (
        ("(a*a)[1:]", [False, False, True]),
        ("(a*a)[0]", [True]),
        ("(a*a)[::-2] + a[:2]", [True, False]),
        ("(a*a)[1:3] + a[0]", [False, False]),
        ("where((a*a)[1:] > 3, a[1:], a[0])", [False, False, True]),
        ("((a*a)[:1] + a)[2:]", [True, True]),
        ("abs(a - 2)", [False, False, True, False]),
    ):
        found = result(text, {"a": a}, "flag")
        mask = np.broadcast_to(found.mask.compute(), found.value.shape)
        assert mask.tolist() == expected, text


def test_results_of_other_expressions_are_operands() -> None:
    a, b = rd.from_ints([2**40, 3, 1], SMALL, chunks=128), rd.from_ints([2**40, 5, 2], SMALL, chunks=128)
    product = result("a*b", {"a": a, "b": b}, "flag")
    found = evaluate(parse("p - p + a"), {"p": product, "a": a}, "flag")
    assert found.mask.compute().tolist() == [True, False, False]
    with pytest.raises(ExpressionError, match="operands of @ must be names"):
        evaluate(parse("p @ a"), {"p": product, "a": a}, "flag")
    less = result("a < b", {"a": a, "b": b})
    assert numbers(evaluate(parse("where(less & (a > 1), a, b)"), {"less": less, "a": a, "b": b}).value) == [
        2**40,
        3,
        2,
    ]


@pytest.mark.parametrize("lazy", [False, True])
def test_masks_and_signs_as_operands(on_each_processor: Processor, lazy: bool) -> None:
    xp = on_each_processor.xp
    mask, signs = xp.array([True, False] * 3 + [True]), xp.array([1, 0, -1, 1, 1, 0, -1], dtype=np.int8)
    if lazy:
        mask, signs = da.from_array(mask, 2, asarray=False), da.from_array(signs, 4, asarray=False)
    operands = {**arrays(chunks=3 if lazy else None, xp=xp), "m": mask, "s": signs}
    host = dict(VALUES, m=[True, False] * 3 + [True], s=[1, 0, -1, 1, 1, 0, -1])
    for text in (
        *("where(m, a, b)", "s * b", "a - s", "abs(s) + a", "s*a + b*s", "-s*a", "(a + s) // 2"),
        *("s == sign(a - b)", "s < 1", "s >= b", "where(s > 0, a, s)", "max(s, a - b, -1)", "s*0 - s + a*0"),
    ):
        rows = [dict(zip(host, row, strict=True)) for row in zip(*host.values(), strict=True)]
        expected = [eval(text, {**PYTHON, **row}) for row in rows]
        assert numbers(result(text, operands).value) == expected, text
    found = numbers(result("~m & (a > 3) | (b == 9)", operands).value)
    triples = zip(host["m"], host["a"], host["b"], strict=True)
    assert found == [(not m and a > 3) or b == 9 for m, a, b in triples]
    unsigned = {**arrays(signed=False, xp=xp), "s": signs}
    with pytest.raises(rd.RNSOverflowError, match=r"flat index [26]"):
        result("a + s", unsigned).value.to_ints()
    with pytest.raises(ExpressionError, match="column 1: arrays of signs alone have no moduli set"):
        result("s + s", operands)
    both = [m and s >= 0 for m, s in zip(host["m"], host["s"], strict=True)]
    assert numbers(result("(s > -1) & m", operands).value) == both


def test_interval_arrays() -> None:
    made = {name: rd.IntervalRNSArray.from_ints(values, WIDE, 128) for name, values in VALUES.items()}
    for text in (
        *(
            "a*b + c",
            "c - a*b",
            "a*b - b*c",
            "a // (b + 1) - c % 5",
            "max(a, b, 3) - min(a, c)",
            "abs(a - b)",
        ),
        *("where(a < b, a, -c)", "sign(a - b) * c", "a[::-1][1:]", "clip(a, 1, 6)"),
    ):
        expected = VALUES["a"][::-1][1:] if "[" in text else by_python(text)
        found = result(text, made).value
        assert isinstance(found, rd.IntervalRNSArray)
        assert found.to_ints().tolist() == expected, text
    assert numbers(result("is_even(a) & (a < b)", made).value) == by_python("is_even(a) & (a < b)")
    flagged = result(
        "a*b - c", {n: rd.IntervalRNSArray.from_ints(v, SMALL, 128) for n, v in VALUES.items()}, "flag"
    )
    expected = [abs(a * b) >= SMALL.product for a, b in zip(VALUES["a"], VALUES["b"], strict=True)]
    assert flagged.mask.compute().tolist() == expected
    mixed = {**made, "b": arrays()["b"]}
    with pytest.raises(ExpressionError, match=r"column 1: .*do not mix"):
        result("a + b", mixed)
    assert numbers(result("pow(a, 3, 7)", made).value) == [pow(v, 3, 7) for v in VALUES["a"]]
    dot = sum(a * b for a, b in zip(VALUES["a"], VALUES["b"], strict=True))
    assert numbers(result("a @ b + c", made).value) == [dot + c for c in VALUES["c"]]


def test_a_range_without_one() -> None:
    moduli = ModuliSet([2])
    x = rd.from_ints([-1, 0, -1], moduli, signed=True)
    assert result("x*x*0 - x*x*0 + x", {"x": x}, "wrap").value.to_ints().tolist() == [-1, 0, -1]
    assert result("x - 0*x", {"x": x}).value.to_ints().tolist() == [-1, 0, -1]


# ---- integers ---------------------------------------------------------------------------------------------


def test_integers_of_any_size() -> None:
    moduli = ModuliSet.for_bits(20000)
    x = rd.from_ints([5, 7], moduli)
    huge = 10**6000 + 1
    for text in (f"x + 1{'0' * 5999}1", f"x + {huge:#x}", f"1{'0' * 5999}1 + x", f"x+1_{'0' * 5999}1"):
        assert result(text, {"x": x}).value.to_ints().tolist() == [huge + 5, huge + 7]
    node = parse(f"1{'0' * 5000} + z").names["z"]
    assert node.col_offset == 5004  # columns stay
    assert not result(f"x > 1{'0' * 9000}", {"x": x}).value.any()


@pytest.mark.parametrize(
    "text", ["2**(2**40) + a", "7**7**7**7**7 + a", "(1 << 2**60) + a", "(1 << 700000)*(1 << 700000) + a"]
)
def test_integers_that_would_fill_the_memory(text: str) -> None:
    with pytest.raises(ExpressionError, match="would have more than 1048576 bits"):
        result(text)


# ---- what is refused --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "column", "rule"),
    [
        ("a + d", 5, "'d' stands for nothing; the names are a"),
        ("a +", 4, "invalid syntax"),
        ("a b", 3, "invalid syntax"),
        ("  a + * b", 7, "invalid syntax"),
        ("(a", 1, "was never closed"),
        ("a) + (b", 2, "unmatched"),
        ("a + b/2", 5, "// is the division"),
        ("a + 1.5", 5, "allowed are integers, names"),
        ("a + 1e5", 5, "allowed are"),
        ("a + 1j", 5, "allowed are"),
        ("a + True", 5, "allowed are"),
        ("a + None", 5, "allowed are"),
        ("a and b", 1, "use & and |"),
        ("not a", 1, "use ~"),
        ("a if b else c", 1, "use where"),
        ("a < b < c", 1, "write"),
        ("a in b", 1, "comparisons are"),
        ("a is b", 1, "comparisons are"),
        ("a[b]", 3, "an index is an integer or a slice for each axis, or one condition, and it is an array"),
        ("a[[0, 1]]", 3, "not a list"),
        ("a[0, 0]", 1, "too many indices"),
        ("a[7]", 1, "index 7 is out of bounds"),
        ("a[-8]", 1, "index -8 is out of bounds"),
        ("a[::0]", 1, "zero"),
        ("a[1:None]", 5, "allowed are"),
        ("a[None]", 3, "allowed are"),
        ("a[True]", 3, "allowed are"),
        ("a[1.0]", 3, "allowed are"),
        ("a[...,...]", 1, "an index can only have a single ellipsis"),
        ("5[0]", 1, "an array is needed here, and it is an integer"),
        ("a + [1]", 5, "not a list"),
        (f"a[{10**4000}]", 3, "index is out of bounds: arrays are shorter"),
        ("a.residues", 1, "allowed are"),
        ("[a for a in b]", 1, "allowed are"),
        ("lambda: a", 1, "allowed are"),
        ("(a := b)", 2, "allowed are"),
        ("a, b", 1, "allowed are"),
        ("open(a)", 1, "'open' is none"),
        ("a.max()", 1, "the functions are"),
        ("a + __import__('os')", 16, "unexpected character"),
        ("a # b", 3, "unexpected character '#'"),
        ("a × b", 3, "unexpected character"),
        ("a\0", 2, "unexpected character"),
        ("fma(a, b)", 1, "fma takes 3 arguments without names, got 2"),
        ("sign(x=a)", 1, "sign takes 1 argument without names"),
        ("maximum(*a, b)", 9, "allowed are"),
        ("a + sign(1)", 5, "an argument of sign must be an array"),
        ("a + maximum(1, 2)", 5, "an argument of maximum must be an array"),
        ("a[(a > 3)[1:]]", 1, "a condition must have the shape of the array"),
        ("where(a, b, c)", 7, "a comparison is needed here, and it is an array of numbers"),
        ("(a > b) + 1", 2, "a number is needed here, and it is a Boolean array"),
        ("1 @ 2 + a", 1, "an operand of @ must be an array"),
        ("a @ 2", 1, "matrix product must be RNSArrays"),
        ("max(a)", 1, "max takes 2 arguments or more without names, got 1"),
        ("min(1, 2) + a", 1, "an argument of min must be an array"),
        ("max(a, b=b)", 1, "max takes 2 arguments or more"),
        ("pow(a)", 1, "pow takes 2 or 3 without names, got 1"),
        ("pow(a, b)", 8, "an integer is needed here, and it is an array of numbers"),
        ("clip(a, 1)", 1, "clip takes 3 arguments without names, got 2"),
        ("sign(a) & (a > 3)", 1, "a comparison is needed here, and it is an array of signs"),
        ("~a", 1, "invert takes no RNSArray: .*x.to_positional"),
        ("a & 1", 1, "bitwise_and takes no RNSArray: .*x.to_positional"),
        ("1 | (a > 3)", 1, "a comparison is needed here, and it is an integer"),
        ("bitwise_count(a)", 1, "bitwise_count takes no RNSArray: .*x.to_positional"),
        ("1 < 2", 1, "one side of a comparison must be an array"),
        ("a ** b", 6, "the exponent of [*][*] must be an integer, and it is an array of numbers"),
        ("a << b", 6, "the shift of << must be an integer"),
        ("a + 2**-1", 8, "must not be negative"),
        ("2 << a", 6, "the shift of <<"),
        ("1 >> -1", 6, "must not be negative"),
        ("a >> -1", 6, "the shift of >> must not be negative, got -1"),
        ("a // 0", 1, "division of an array by the integer 0"),
        ("a + 1 % 0", 5, "zero"),
        ("1 + 2", 1, "no array"),
        ("a + 2**3000", 1, "is outside the signed range"),
    ],
)
def test_refused(text: str, column: int, rule: str) -> None:
    with pytest.raises(ExpressionError, match=f"expression .*, column {column}: .*{rule}") as caught:
        result(text)
    assert "\n" not in str(caught.value)


def test_operands_that_disagree() -> None:
    operands = arrays()
    other = {
        "m": rd.from_ints([1] * 7, SMALL, True),
        "u": rd.from_ints([1] * 7, WIDE).with_bound(None),
        "s": rd.from_ints([1] * 6, WIDE, True),
    }
    for name, rule in (("m", "different moduli sets"), ("u", "different ranges"), ("s", "do not broadcast")):
        for text in (
            f"a + {name}",
            f"a*b + {name}",
            f"maximum({name}, a)",
            f"a < {name}",
            f"where(a < b, a, {name})",
        ):
            with pytest.raises(ExpressionError, match=f"column 1: .*{rule}"):
                result(text, operands | other)
    with pytest.raises(ExpressionError, match="column 1: "):
        result("(a < b) & (s < 2)", operands | other)


def test_names() -> None:
    with pytest.raises(ExpressionError, match="the expression is empty"):
        parse(" \n ")
    assert list(parse("maximum(b, a) + b*max").names) == ["b", "a", "max"]
    # A name that is a function's is a value where it is not called.
    assert numbers(result("sign + max(sign, max)", {"sign": one(5), "max": one(7)}).value) == [12]


def test_long_and_deep_expressions() -> None:
    assert numbers(result("+".join("a" * 120)).value) == [120 * v for v in VALUES["a"]]
    for text in ("(" * 5000 + "a" + ")" * 5000, "-" * 100_000 + "a", "+".join("a" * 50_000)):
        with pytest.raises(ExpressionError) as caught:
            result(text)
        assert len(str(caught.value)) < 250
    with pytest.raises(ExpressionError, match=r"'\.\.\..* \+ zz \+ .*\.\.\.', column 501: "):
        result(" + ".join(["a"] * 125 + ["zz"] + ["a"] * 125))


def test_the_functions_are_those_of_python_here() -> None:
    assert PYTHON.keys() == FUNCTIONS.keys() | EXTREMA.keys()
