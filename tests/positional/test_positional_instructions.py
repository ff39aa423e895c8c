"""All arithmetic of positional numbers by GMP and by each set of instructions, at all precisions."""

import math
from functools import partial
from inspect import signature

import numpy as np
import pytest
from conftest import Processor
from positional_numbers import PRECISIONS, some_values, special_values, to_values, to_words, wrapped
from strategies import slow

from rnsdask.backend import cpu
from rnsdask.positional.divide import divmod_
from rnsdask.positional.modular import mod_add, mod_inverse, mod_multiply, mod_power, mod_subtract
from rnsdask.positional.multiply import multiply, multiply_add_checked

HOST = Processor("cpu", np)


@pytest.fixture(params=cpu.positional_methods(), autouse=True)
def _method(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, function in vars(cpu).copy().items():
        if not (callable(function) and name.startswith(("positional_", "montgomery_"))):
            continue
        if "method" in signature(function).parameters:
            monkeypatch.setattr(cpu, name, partial(function, method=request.param))
    # No other way instead, whatever the length.
    monkeypatch.setattr(cpu, "most_product_limbs", 2**32)
    monkeypatch.setattr(cpu, "by_integers", lambda *_: request.param == cpu.GMP)
    if request.param == cpu.GMP:
        monkeypatch.setattr(cpu, "most_montgomery_limbs", 0)


def numbers_of(bits: int, signed: bool, rng: np.random.Generator) -> list[int]:
    """The ends and what is next to them, and as many others as make a small test."""
    few = special_values(bits, signed)
    inner = some_values(bits, signed, len(few) + 12, rng)[2:-2]
    step = max(1, len(inner) * bits // 2**15)
    return [*few[:2], *inner[::step], *few[-2:]]


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("bits", [*PRECISIONS, *slow(20000)])
def test_products_and_quotients(bits: int, signed: bool, rng: np.random.Generator) -> None:
    values = numbers_of(bits, signed, rng)
    pairs = [(p, q) for p in values for q in values]
    a, b = ([pair[i] for pair in pairs] for i in range(2))
    x, y = (to_words(v, bits, HOST) for v in (a, b))
    exact = [p * q for p, q in pairs]
    assert to_values(multiply(x, y, 2 * bits, signed), signed) == exact
    sums = [p + z for p, z in zip(exact, b, strict=True)]
    expected = [wrapped(z, bits, signed) for z in sums]
    low, overflowed = multiply_add_checked(x, y, y, bits, signed)
    assert to_values(low, signed) == expected
    assert overflowed.tolist() == [z != w for z, w in zip(sums, expected, strict=True)]
    square = multiply(x, x, 2 * bits, signed)
    assert to_values(square, signed) == [p * p for p in a]
    # Products of numbers and divisors, and next to these, so that quotients of two limbs and more come.
    numbers, divisors = ([z + d for z in exact for d in (-1, 0, 1)], [q for q in b for _ in range(3)])
    found = divmod_(
        to_words(numbers, 2 * bits + 2, HOST),
        to_words([q or 1 for q in divisors], bits + 1, HOST),
        True,
    )
    parts = zip(*(to_values(z, True) for z in found), strict=True)
    assert list(parts) == [divmod(p, q or 1) for p, q in zip(numbers, divisors, strict=True)]


@pytest.mark.parametrize("bits", [*PRECISIONS, 20000])
def test_modular_arithmetic(bits: int, rng: np.random.Generator) -> None:
    values = numbers_of(bits, False, rng)
    top = 2 ** (bits - 1)
    moduli = sorted({1, 2 * top - 1, top, top + 1 if bits > 1 else 1, max(1, 3 * top // 2), max(1, top - 1)})
    if bits > 4096:
        values, moduli = values[-2:], moduli[-2:]
    triples = [(p, q, m) for p in values for q in (values[-1], values[len(values) // 2]) for m in moduli]
    x, y, each = (to_words([triple[i] for triple in triples], bits, HOST) for i in range(3))
    one = [i for i, triple in enumerate(triples) if triple[2] == moduli[-1]]
    for operands, chosen in (((x, y, each), triples), ((x[:, one], y[:, one], each[:, one[:1]]), None)):
        given = chosen if chosen is not None else [triples[i] for i in one]
        assert to_values(mod_add(*operands, False)) == [(p + q) % m for p, q, m in given]
        assert to_values(mod_subtract(*operands, False)) == [(p - q) % m for p, q, m in given]
        assert to_values(mod_multiply(*operands, False)) == [p * q % m for p, q, m in given]
        p, _, m = operands
        assert to_values(mod_power(p, 5, m, False)) == [pow(p, 5, m) for p, _, m in given]
    coprime = [i for i, (p, _, m) in enumerate(triples) if math.gcd(p, m) == 1]
    inverses = mod_inverse(x[:, coprime], each[:, coprime], False)
    assert to_values(inverses) == [pow(triples[i][0], -1, triples[i][2]) for i in coprime]
