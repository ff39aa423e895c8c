"""Modular arithmetic of residues with a modulus for each number, against Python's integers."""

# ruff: noqa: ARG005

import math
from random import Random
from typing import Any

import numpy as np
import pytest
from conftest import Processor

import rnsdask as rd

OPERATIONS: dict[str, tuple[Any, Any]] = {
    "mod_add": (lambda x, e, m: rd.mod_add(x, x, m), lambda v, e, m: 2 * v % m),
    "mod_subtract": (lambda x, e, m: rd.mod_subtract(1, x, m), lambda v, e, m: (1 - v) % m),
    "mod_multiply": (lambda x, e, m: rd.mod_multiply(x, x, m), lambda v, e, m: v * v % m),
    "mod_power": (rd.mod_power, pow),
    "pow": (pow, pow),
    "pow by one": (lambda x, e, m: pow(x, 65537, m), lambda v, e, m: pow(v, 65537, m)),
    "inverses": (lambda x, e, m: pow(x, -1, m), lambda v, e, m: pow(v, -1, m)),
    "mod_inverse": (lambda x, e, m: rd.mod_inverse(x, m), lambda v, e, m: pow(v, -1, m)),
}


def drawn(bits: int, signed: bool, rng: np.random.Generator) -> tuple[list[int], list[int], list[int]]:
    """Numbers coprime to their moduli, exponents, and moduli, some of which are even, and 1."""
    random = Random(int(rng.integers(2**62)))
    moduli = [1, 2, 2**bits - 1, 2 ** (bits - 1), *(random.getrandbits(bits) | 1 for _ in range(12))]
    values = []
    for m in moduli:
        value = random.randrange(-m if signed else 0, m + 1)
        while math.gcd(value, m) != 1:
            value += 1
        values.append(value)
    return values, [0, 1, 2, 2**bits - 1, *(random.getrandbits(20) for _ in moduli[4:])], moduli


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("bits", [31, 64, 200])
@pytest.mark.parametrize("signed", [False, True])
def test_each_number_has_a_modulus(name: str, bits: int, signed: bool, rng: np.random.Generator) -> None:
    call, expected = OPERATIONS[name]
    values, exponents, moduli = drawn(bits, signed, rng)
    wanted = [expected(*given) for given in zip(values, exponents, moduli, strict=True)]
    fixed = rd.RNS(rd.ModuliSet.for_bits(bits + 1), signed)
    for system in (None, fixed):
        for chunks in (None, 5):
            arrays = [rd.array(given, system, chunks=chunks) for given in (values, exponents, moduli)]
            found = call(*arrays)
            assert isinstance(found, rd.RNSArray)
            assert found.to_ints().tolist() == wanted
            assert found.bound is None or found.bound >= max(wanted)


def test_on_each_processor(on_each_processor: Processor, rng: np.random.Generator) -> None:
    values, exponents, moduli = drawn(90, False, rng)
    system = rd.RNS(rd.ModuliSet.for_bits(91))
    x, e, m = (
        rd.RNSArray(on_each_processor.xp.asarray(system.encode(given)), system)
        for given in (values, exponents, moduli)
    )
    assert pow(x, e, m).to_ints().tolist() == list(map(pow, values, exponents, moduli))


def test_integers_and_lists_beside_arrays() -> None:
    x = rd.array([[3], [10]])
    assert pow(x, 5, [7, 11]).tolist() == [[pow(v, 5, m) for m in (7, 11)] for v in (3, 10)]
    assert pow(x, np.array([1, -1]), rd.array([7, 11])).tolist() == [[3, 4], [3, 10]]
    assert rd.mod_inverse(x, 2**61 - 1).tolist() == [[pow(v, -1, 2**61 - 1)] for v in (3, 10)]
    assert rd.mod_power(3, rd.array([2**70, 1]), 5).tolist() == [pow(3, 2**70, 5), 3]
    assert pow(rd.array([], bits=64), 2, rd.array([], bits=64)).shape == (0,)


def test_what_is_refused() -> None:
    x = rd.array([3, 6, 5], chunks=2)
    with pytest.raises(ZeroDivisionError, match=r"flat index 1 has no inverse modulo 9: .* is 3"):
        rd.mod_inverse(x, rd.array([7, 9, 7])).to_ints()
    with pytest.raises(ZeroDivisionError, match="modulus at flat index 2 is 0"):
        pow(x, 2, rd.array([7, 9, 0])).to_ints()
    with pytest.raises(ValueError, match="modulus at flat index 0 is negative"):
        pow(x, 2, [-7, 9, 7]).to_ints()
    with pytest.raises(ValueError, match="exponent at flat index 0 is negative"):
        pow(x, rd.array([-1, 2, 3]), 7).to_ints()
    intervals = rd.array([3], rd.IntervalRNS(rd.ModuliSet.for_bits(64)))
    with pytest.raises(TypeError, match=r"mod_power takes no IntervalRNSArray: .* x\.to_rns\(\)"):
        pow(intervals, 2, [7])
