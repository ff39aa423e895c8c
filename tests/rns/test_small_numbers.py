"""Many small numbers in a large range, without a bound: reductions, comparison, products."""

import operator
from collections.abc import Callable
from itertools import accumulate
from random import Random

import numpy as np
import pytest
from conftest import Processor
from sample_arrays import RELATIONS, array_of, host
from strategies import BOTH_RANGES, MODULI_SETS, slow

import rnsdask as rd
from rnsdask.constants import key_constants
from rnsdask.rns import bounds

MODULI = MODULI_SETS["bits2048"]
COUNT = bounds.MANY + 77


def numbers(kind: str, signed: bool, random: Random) -> list[int]:
    """Numbers of which measuring a bound, or some of them, tells more than keys under the whole set."""
    lowest, highest = MODULI.value_range(signed)
    small = [random.getrandbits(random.randint(0, 900)) for _ in range(COUNT)]
    values = {
        "small": small,
        "tiny": [v % 7 for v in small],
        "equal": [2**900 + 1] * COUNT,
        "zeros": [0] * COUNT,
        "one-large": [*small[1:], highest - 1],
        "levels": [1 << (k * 1800 // COUNT) for k in range(COUNT)],
        "half-large": [v if k % 2 else highest - v for k, v in enumerate(small)],
        "near-the-top": [highest - v % 2**40 for v in small],
    }[kind]
    if signed:
        values = [random.choice((-1, 1)) * v for v in values]
        if kind == "near-the-top":
            values[random.randrange(COUNT)] = lowest
    random.shuffle(values)
    return values


KINDS = pytest.mark.parametrize(
    "kind", ["small", "tiny", "equal", "zeros", "one-large", "levels", "half-large", "near-the-top"]
)


@pytest.fixture
def random(rng: np.random.Generator) -> Random:
    return Random(int(rng.integers(2**63)))


@KINDS
@BOTH_RANGES
def test_reductions(on_each_processor: Processor, kind: str, signed: bool, random: Random) -> None:
    values = numbers(kind, signed, random)
    x = array_of(on_each_processor, values, MODULI, signed)
    assert (x.max(), x.argmax()) == (max(values), values.index(max(values)))
    assert (x.min(), x.argmin()) == (min(values), values.index(min(values)))
    assert x.sum() == sum(values)


@KINDS
@BOTH_RANGES
def test_comparison(on_each_processor: Processor, kind: str, signed: bool, random: Random) -> None:
    values, others = numbers(kind, signed, random), numbers(kind, signed, random)
    others[::3] = values[::3]
    x, y = (array_of(on_each_processor, v, MODULI, signed) for v in (values, others))
    scalar = random.choice(values)
    for name in ("<", "<=", ">", ">=", "==", "!="):
        relation: Callable[[object, object], object] = RELATIONS[name]
        expected = [relation(a, b) for a, b in zip(values, others, strict=True)]
        assert host(relation(x, y)).tolist() == expected
        assert host(relation(x, scalar)).tolist() == [relation(a, scalar) for a in values]


@KINDS
@BOTH_RANGES
@pytest.mark.parametrize("name", ["multiply", "mulsub", *slow("fma", "muladd")])
def test_products(on_each_processor: Processor, kind: str, signed: bool, name: str, random: Random) -> None:
    exact = {
        "multiply": operator.mul,
        "fma": lambda a, b, c: a * b + c,
        "mulsub": lambda a, b, c, d: a * b - c * d,
        "muladd": lambda a, b, c, d: a * b + c * d,
    }[name]
    arity = {"multiply": 2, "fma": 3}.get(name, 4)
    operands = [numbers(kind, signed, random) for _ in range(arity)]
    arrays = [array_of(on_each_processor, v, MODULI, signed) for v in operands]
    results = [exact(*values) for values in zip(*operands, strict=True)]
    lowest, highest = MODULI.value_range(signed)
    outside = [not lowest <= v <= highest for v in results]
    wrapped = [(v - lowest) % MODULI.product + lowest for v in results]
    function = getattr(rd, name)
    found, mask = function(*arrays, overflow="flag")
    assert host(mask).tolist() == outside
    assert found.to_ints().tolist() == wrapped
    if any(outside):
        with pytest.raises(rd.RNSOverflowError) as caught:
            function(*arrays)
        assert caught.value.index == outside.index(True)
    else:
        assert function(*arrays).to_ints().tolist() == results


@BOTH_RANGES
def test_powers(on_each_processor: Processor, signed: bool, random: Random) -> None:
    values = [v >> 300 for v in numbers("small", signed, random)]
    x = array_of(on_each_processor, values, MODULI, signed)
    assert (x**3).to_ints().tolist() == [v**3 for v in values]
    with pytest.raises(rd.RNSOverflowError):
        x**5


@BOTH_RANGES
@pytest.mark.parametrize("name", ["bits2048", "unsorted", "top"])
def test_comparison_with_numbers_at_the_ends(
    on_each_processor: Processor, name: str, signed: bool, random: Random
) -> None:
    """Keys of such numbers tell nothing of others; those of a barrier do, and numbers beside it are drawn."""
    moduli = MODULI_SETS[name]
    lowest, highest = moduli.value_range(signed)
    constants = key_constants(moduli, signed)
    reach = (2 * (constants.ambiguous_below + constants.slack) * moduli.product >> 64) + 1
    places = [lowest, highest, lowest + reach, highest - reach, lowest + reach // 2, highest - reach // 2]
    values = [random.choice(places) + random.randint(-3, 3) for _ in range(COUNT)]
    values += [random.randint(lowest, highest) for _ in range(COUNT)]
    values = [min(max(v, lowest), highest) for v in values]
    x = array_of(on_each_processor, values, moduli, signed)
    for scalar in (lowest, lowest + 5, highest - 5, highest, *random.sample(values, 4)):
        for relation in RELATIONS.values():
            assert host(relation(x, scalar)).tolist() == [relation(v, scalar) for v in values]


@KINDS
@BOTH_RANGES
def test_order(on_each_processor: Processor, kind: str, signed: bool, random: Random) -> None:
    values = numbers(kind, signed, random)
    x = array_of(on_each_processor, values, MODULI, signed)
    assert rd.sort(x).to_ints().tolist() == sorted(values)
    for k in (5, -5):
        best = sorted(range(COUNT), key=lambda i: (-values[i] if k > 0 else values[i], i))[:5]
        assert (list(x.topk(k)), host(x.argtopk(k)).tolist()) == ([values[i] for i in best], best)
    assert x.cummax().to_ints().tolist() == list(accumulate(values, max))
    assert x.cummin().to_ints().tolist() == list(accumulate(values, min))
    assert host(rd.bit_length(x)).tolist() == [v.bit_length() for v in values]


@KINDS
@BOTH_RANGES
def test_axes(on_each_processor: Processor, kind: str, signed: bool, random: Random) -> None:
    values = numbers(kind, signed, random)
    values += values[: -COUNT % 7]
    rows = [values[i : i + 7] for i in range(0, len(values), 7)]
    x = array_of(on_each_processor, values, MODULI, signed).reshape(-1, 7)
    assert x.max(axis=1).to_ints().tolist() == [max(row) for row in rows]
    assert host(x.argmin(axis=1)).tolist() == [row.index(min(row)) for row in rows]
    assert x.max(axis=0).to_ints().tolist() == [max(column) for column in zip(*rows, strict=True)]
    assert x.sum(axis=1).tolist() == [sum(row) for row in rows]
    assert x.sum(axis=0).tolist() == [sum(column) for column in zip(*rows, strict=True)]


@KINDS
@BOTH_RANGES
@pytest.mark.parametrize("name", ["add", "subtract"])
def test_sums(on_each_processor: Processor, kind: str, signed: bool, name: str, random: Random) -> None:
    exact = {"add": operator.add, "subtract": operator.sub}[name]
    values, others = numbers(kind, signed, random), numbers(kind, signed, random)
    others[::3] = values[::3]
    lowest, highest = MODULI.value_range(signed)
    x, y = (array_of(on_each_processor, v, MODULI, signed) for v in (values, others))
    some = values[7]
    for first, second, pairs in (
        (x, y, list(zip(values, others, strict=True))),
        (x, some, [(v, some) for v in values]),
        (some, x, [(some, v) for v in values]),
    ):
        results = [exact(a, b) for a, b in pairs]
        found, mask = getattr(rd, name)(first, second, overflow="flag")
        assert host(mask).tolist() == [not lowest <= v <= highest for v in results]
        assert found.to_ints().tolist() == [(v - lowest) % MODULI.product + lowest for v in results]
