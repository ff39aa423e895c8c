"""Operations that a number system lacks: the way out that each error names makes an array that has them."""

import math
import operator
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from strategies import slow

import rnsdask as rd
from rnsdask.core.number_system import NumberSystem
from rnsdask.core.rows import ROWS

MODULI = rd.ModuliSet.for_bits(128)
FIELDS = rd.PrimeFields([65537, 2013265921])
NAMES = {"rd": rd, "np": np, "bits": 96, "moduli": MODULI, "fields": FIELDS, "a": [3]}
"""Names in the ways out, with values that a user would give them."""

VALUES = [12, 18, 35, 12]

ARRAYS: dict[str, Callable[[], Any]] = {
    "residues": lambda: rd.from_ints(VALUES, MODULI, chunks=None),
    "signed residues": lambda: rd.from_ints(VALUES, MODULI, signed=True, chunks=4),
    "growing residues": lambda: rd.from_ints(VALUES, chunks=None),
    "residues of wide moduli": lambda: rd.from_residues(
        np.array([VALUES] * 2, dtype=np.uint64), [2**61 - 1, 2**61 + 15]
    ),
    "intervals": lambda: rd.from_ints(VALUES, rd.IntervalRNS(MODULI), chunks=4),
    "limbs": lambda: rd.from_ints(VALUES, rd.Positional(64), chunks=None),
    "signed limbs": lambda: rd.from_ints(VALUES, rd.Positional(64, signed=True), chunks=4),
    "elements": lambda: rd.from_ints(VALUES, FIELDS, chunks=None),
    "Fermat elements": lambda: rd.from_ints(VALUES, rd.FermatField(2**28 + 2**22, 16), chunks=4),
}

OPERATIONS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "&": (lambda x: x & 10, [v & 10 for v in VALUES]),
    "|": (lambda x: x | 1, [v | 1 for v in VALUES]),
    "^": (lambda x: rd.bitwise_xor(x, x), [0] * 4),
    "bitwise_count": (rd.bitwise_count, [v.bit_count() for v in VALUES]),
    "mod_add": (lambda x: rd.mod_add(x, x, 7), [2 * v % 7 for v in VALUES]),
    "mod_subtract": (lambda x: rd.mod_subtract(x, 1, 7), [(v - 1) % 7 for v in VALUES]),
    "mod_multiply": (lambda x: rd.mod_multiply(x, x, 7), [v * v % 7 for v in VALUES]),
    "mod_power": (lambda x: rd.mod_power(x, 3, 7), [v**3 % 7 for v in VALUES]),
    "mod_power by an array": (lambda x: rd.mod_power(x, [1, 2, 3, 4], 7), [5, 2, 0, 2]),
    "mod_inverse": (lambda x: rd.mod_inverse(x, 11), [pow(v, -1, 11) for v in VALUES]),
    "product_tree": (lambda x: rd.product_tree(x).product, math.prod(VALUES)),
    "remainder_tree": (lambda x: rd.remainder_tree(1000, x), [1000 % v for v in VALUES]),
    "batch_gcd": (rd.batch_gcd, [12, 18, 1, 12]),
    "matmul": (lambda x: x.reshape(2, 2) @ x.reshape(2, 2), [[774, 432], [840, 774]]),
    "convolve": (lambda x: rd.convolve(x, x), np.convolve(VALUES, VALUES).tolist()),
    "gcd": (lambda x: rd.gcd(x, 8), [math.gcd(v, 8) for v in VALUES]),
    "lcm": (lambda x: rd.lcm(x, 8), [math.lcm(v, 8) for v in VALUES]),
    "isqrt": (rd.isqrt, [math.isqrt(v) for v in VALUES]),
    "bit_length": (rd.bit_length, [v.bit_length() for v in VALUES]),
    "abs": (abs, VALUES),
    "sign": (rd.sign, [1] * 4),
    "//": (lambda x: x // 5, [v // 5 for v in VALUES]),
    "%": (lambda x: x % 5, [v % 5 for v in VALUES]),
    "divmod": (lambda x: divmod(x, 5)[1], [v % 5 for v in VALUES]),
    "<": (lambda x: x < 15, [True, False, False, True]),
    ">=": (lambda x: x >= 15, [False, True, True, False]),
    "maximum": (lambda x: rd.maximum(x, 15), [15, 18, 35, 15]),
    "minimum": (lambda x: rd.minimum(x, 15), [12, 15, 15, 12]),
    "clip": (lambda x: x.clip(13, 20), [13, 18, 20, 13]),
    "max": (lambda x: x.max(), 35),
    "min": (lambda x: x.min(), 12),
    "argmax": (lambda x: x.argmax(), 2),
    "argmin": (lambda x: x.argmin(), 0),
    "cummax": (lambda x: x.cummax(), [12, 18, 35, 35]),
    "cummin": (lambda x: x.cummin(), [12] * 4),
    "sort": (rd.sort, sorted(VALUES)),
    "argsort": (rd.argsort, [0, 3, 1, 2]),
    "topk": (lambda x: x.topk(2), [35, 18]),
    "searchsorted": (lambda x: rd.searchsorted(rd.sort(x), [13]), [2]),
    "median": (lambda x: rd.median(x), 15),
    "unique": (rd.unique, sorted(set(VALUES))),
    "histogram": (lambda x: rd.histogram(x, [0, 15, 40])[0], [2, 2]),
    "shift to the left": (lambda x: x << 2, [v << 2 for v in VALUES]),
    "shifts to the left": (lambda x: x << np.arange(4), [v << i for i, v in enumerate(VALUES)]),
    "shift to the right": (lambda x: x >> 2, [v >> 2 for v in VALUES]),
    "shifts to the right": (lambda x: x >> np.arange(4), [v >> i for i, v in enumerate(VALUES)]),
    "log2": (lambda x: rd.log2(x).round(6), np.log2(VALUES).round(6).tolist()),
    "astype": (lambda x: x.astype(float, casting="unsafe"), [float(v) for v in VALUES]),
    "power": (lambda x: x**2, [v**2 for v in VALUES]),
    "pow": (lambda x: pow(x, 3, 7), [v**3 % 7 for v in VALUES]),
    "det": (lambda x: rd.linalg.det(x.reshape(2, 2)), -486),
    "rank": (lambda x: rd.linalg.rank(x.reshape(2, 2)), 2),
    "matrix_power": (lambda x: rd.linalg.matrix_power(x.reshape(2, 2), 2), [[774, 432], [840, 774]]),
    "fixed_point_interval": (lambda x: rd.fixed_point_interval(x).bits, 64),
    "mixed_radix_digits": (lambda x: rd.mixed_radix_digits(x)[0], VALUES),
    "resultant": (lambda x: rd.poly.resultant(x, x[:2]), -69984),
    "invert": (lambda x: (~x) & 255, [255 - v for v in VALUES]),
    "ntt": (lambda x: rd.intt(rd.ntt(x)), VALUES),
    "inverse": (lambda x: rd.inverse(x * 0 + 1) * x, VALUES),
}
"""Operations that some number system lacks, and the results in Python's integers."""

WITHOUT = re.compile(r"rank takes .*, got those of FermatField\(.*\), which have no elimination$")
"""Errors without a way out: of functions that mean another thing for integers."""

WAY = re.compile(r"\b((?:x|rd)\.[\w.]+\((?:[^()]|\([^()]*\))*\)(?:\.\w+\([^()]*\))*)")


def ways_of(message: str) -> list[str]:
    """The calls that a message names."""
    return WAY.findall(message)


def plain(result: Any) -> Any:
    """The result as Python's integers, Booleans and floats, in lists."""
    result = result.compute() if hasattr(result, "compute") else result
    result = result.to_ints() if hasattr(result, "to_ints") else result
    return result.tolist() if hasattr(result, "tolist") else int(result)


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("kind", ARRAYS)
def test_way_out_works(kind: str, operation: str) -> None:
    call, expected = OPERATIONS[operation]
    x = ARRAYS[kind]()
    try:
        result = call(x)
    except ValueError as error:
        if "moduli that replaced" not in str(error):
            raise
        return
    except TypeError as error:
        message = str(error)
    else:
        if kind == "elements" or kind == "Fermat elements":
            return  # whose results are elements: tests of fields compare them
        assert plain(result) == expected
        return
    assert "\n" not in message
    ways = ways_of(message)
    assert ways or WITHOUT.search(message), message
    for way in ways:
        assert plain(call(eval(way, {**NAMES, "x": x}))) == expected, way


@pytest.mark.parametrize("kind", ARRAYS)
def test_way_out_of_each_row_leads_to_a_system_that_has_it(kind: str) -> None:
    x = ARRAYS[kind]()
    every = [array().system.table for array in ARRAYS.values()]
    lacking = set().union(*every) - set(x.system.table)
    named = 0
    for row in sorted(lacking):
        for way in ways_of(x.system.lacking(ROWS[row])):
            made = eval(way, {**NAMES, "x": x})
            assert row in made.system.table, (row, way)
            assert plain(made) == VALUES
            named += 1
    assert named > 5


P = 65537


def solved(a: Any, b: Any) -> Any:
    """A solution modulo a prime, of integers or of elements of fields among which it is."""
    found = rd.linalg.solve(a, b)
    if isinstance(found, rd.FieldArray):
        return found.to_ints() % P
    numerators, denominator = found
    return numerators * pow(int(denominator), -1, P) % P


PAIRED: dict[str, tuple[Callable[[Any, Any], Any], Any]] = {
    "+": (operator.add, [2 * v for v in VALUES]),
    "//": (operator.floordiv, [1] * 4),
    "&": (operator.and_, VALUES),
    "convolve": (rd.convolve, np.convolve(VALUES, VALUES).tolist()),
    "concatenate": (lambda a, b: rd.concatenate([a, b]), VALUES * 2),
    "isin": (rd.isin, [True] * 4),
    "resultant": (lambda f, g: rd.poly.resultant(f, g - 1), None),
    "solve": (lambda a, b: solved(a.reshape(2, 2), b[:2]), None),
    "solve modulo": (lambda a, b: rd.linalg.solve(a.reshape(2, 2), b[:2], modulo=P), None),
}
"""Operations of two arrays, and their results in Python's integers, or None for those of residues."""

RARE = ("//", "concatenate", "isin", "resultant", "solve modulo")

MIXED = ("residues", "intervals", "limbs", "elements", "Fermat elements")
CALLS = re.compile(r"do not mix; (.*) converts?$")


def call_of(conversion: str) -> str:
    """A conversion that an error names as a call."""
    return f"rd.{conversion}" if conversion[0].isupper() else f"x.{conversion}"


def alike(x: Any) -> Any:
    """Integers of one kind under the same moduli, or of as many bits, as the errors of others say."""
    if isinstance(x, rd.PositionalArray):
        return x.to_positional(128, signed=True)
    return x if isinstance(x, rd.FieldArray) else x.extend(rd.ModuliSet.for_bits(600))


@pytest.mark.parametrize("operation", ["+", "&", "convolve", "solve", *slow(*RARE)])
@pytest.mark.parametrize("second", MIXED)
@pytest.mark.parametrize("first", MIXED)
def test_each_conversion_of_arrays_that_do_not_mix_works(first: str, second: str, operation: str) -> None:
    """One array is converted, or both are to a third kind, and the operation takes them."""
    if first == second or (operation == "solve" and "Fermat elements" in (first, second)):
        return  # elements of Fermat fields have no elimination, as an error of its own says
    call, expected = PAIRED[operation]
    pair = ARRAYS[first](), ARRAYS[second]()
    with pytest.raises(TypeError) as caught:
        call(*pair)
    found = CALLS.search(str(caught.value))
    if found is None:  # a kind that lacks the operation, whatever it is beside: tests above
        assert ways_of(str(caught.value))
        return
    if expected is None:
        expected = plain(call(*(ARRAYS["residues"](),) * 2))
    names = {**NAMES, "bits": 64, "field": ARRAYS["Fermat elements"]().system}
    conversions = [call_of(conversion) for conversion in found[1].split(" and ")]
    for conversion in conversions:
        results = []
        for place in (0, 1):
            made: list[Any] = [*pair]
            try:
                made[place] = eval(conversion, {**names, "x": pair[place]})
                if len({type(x.system) for x in made}) > 1:  # to a third kind, each by a way of its own
                    other = next((one for one in conversions if one != conversion), conversion)
                    made[1 - place] = eval(other, {**names, "x": pair[1 - place]})
                results.append(plain(call(*map(alike, made))))
            except (TypeError, AttributeError):
                continue
        assert results, conversion
        assert expected in results, (conversion, results)


EXPONENTS: dict[str, tuple[Callable[[Any], Any], Callable[[int], int]]] = {
    "2 ** x": (lambda x: 2**x, lambda v: 3**v),
    "x ** x": (lambda x: x**x, lambda v: 3**v),
    "1 << x": (lambda x: 1 << x, lambda v: 3 << v),
    "x << x": (lambda x: x << x, lambda v: 3 << v),
    "x >> x": (lambda x: x >> x, lambda v: 3 >> v),
}
"""Operators whose right operands are machine integers, and what the way out of each computes, beside 3."""


@pytest.mark.parametrize("name", EXPONENTS)
@pytest.mark.parametrize("kind", ARRAYS)
def test_way_out_of_numbers_as_exponents(kind: str, name: str) -> None:
    call, expected = EXPONENTS[name]
    x = ARRAYS[kind]()
    with pytest.raises(TypeError, match=r"must be machine integers, got an? ") as caught:
        call(x)
    way = re.search("; (.*) takes its numbers", str(caught.value))
    assert way
    integers = x.lift() if kind.endswith("elements") else x  # as astype of elements says
    if "**" in name and hasattr(integers, "compute"):  # as the error of lazy exponents says
        integers = integers.compute()
    found = eval(way[1], {**NAMES, "x": integers})
    assert plain(found) == [expected(v) for v in VALUES]


class Other:
    """Another library's array, which has operators of its own."""

    __array_ufunc__ = None


def _answer(self: Any, other: Any) -> str:
    return "the other's"


BINARY = ("add", "floordiv", "mod", "divmod", "pow", "lshift", "rshift", "and", "or", "xor")
for _name in BINARY:
    setattr(Other, f"__r{_name}__", _answer)


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("kind", ARRAYS)
def test_operators_of_other_libraries_have_their_say(kind: str, name: str) -> None:
    function = divmod if name == "divmod" else getattr(operator, f"__{name}__")
    assert function(ARRAYS[kind](), Other()) == "the other's"


def test_a_system_without_ways_names_none() -> None:
    assert NumberSystem.ways_out == {}
    assert NumberSystem.lacks == "it has no such operation"
