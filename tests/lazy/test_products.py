"""Products of all numbers, powers and inverses against Python integers."""

import math
import pickle
import random
from collections.abc import Sequence

import dask.array as da
import numpy as np
import pytest
from conftest import Processor
from hypothesis import given
from hypothesis import strategies as st
from oracles.rns import in_range, wrapped
from sample_arrays import CPU, array_of, chunked, host
from strategies import (
    ALL_SETS,
    BOTH_RANGES,
    EXHAUSTIVE_SETS,
    MODULI_SETS,
    edge_values,
    moduli_sets,
    values_in,
)

import rnsdask as rd
from rnsdask.core.moduli import ModuliSet
from rnsdask.rns.powers import bases_that_fit

TOP = MODULI_SETS["top"]

pytestmark = pytest.mark.usefixtures("in_this_thread")


# ---- products of all numbers ------------------------------------------------------------------------------


def check_product(x: rd.RNSArray, values: Sequence[int]) -> None:
    exact, moduli, signed = math.prod(values), x.moduli, x.signed
    outside = not in_range(exact, moduli, signed)
    for array in (x, chunked(x, max(3, len(values) // 4))):
        found, flag = array.prod(overflow="flag")
        if array is x:
            assert type(found) is int
            assert type(flag) is bool
        assert (int(found), bool(flag)) == (wrapped(exact, moduli, signed), outside)
        assert int(array.prod(overflow="wrap")) == wrapped(exact, moduli, signed)
        if not outside:
            assert int(array.prod(split_every=2)) == exact
            continue
        with pytest.raises(rd.RNSOverflowError) as caught:
            int(array.prod())
        error = caught.value
        true_bits = rd.RNSOverflowError.of_value(exact, 0, moduli.bits, signed).bits_needed
        assert error.negative == (exact < 0)
        assert error.index == 0
        assert error.bits_needed <= true_bits if error.at_least else error.bits_needed == true_bits


@ALL_SETS
@BOTH_RANGES
def test_products_of_edges(
    on_each_processor: Processor, moduli: ModuliSet, signed: bool, rng: np.random.Generator
) -> None:
    lowest, highest = moduli.value_range(signed)
    edges = edge_values(moduli, signed)
    generator = random.Random(int(rng.integers(2**32)))
    ones = [v for v in (1, -1) if lowest <= v <= highest] or [0]
    near = [v for v in (lowest, highest, 2, 3, -2, highest // 2, highest // 2 + 1) if lowest <= v <= highest]
    rows = [[generator.choice(edges) for _ in range(generator.randint(1, 3))] for _ in range(3)]
    rows += [[generator.choice(near) for _ in range(generator.randint(1, 2))] for _ in range(3)]
    rows += [[highest, 0, highest], [0], [lowest], [highest]]
    for row in rows:
        padded = row + [generator.choice(ones) for _ in range(generator.randint(0, 7))]
        generator.shuffle(padded)
        check_product(array_of(on_each_processor, padded, moduli, signed), padded)


@pytest.mark.parametrize("name", ["top", "one", "one_full", "tiny_unsorted"])
@BOTH_RANGES
def test_many_factors(on_each_processor: Processor, name: str, signed: bool) -> None:
    moduli = MODULI_SETS[name]
    lowest, highest = moduli.value_range(signed)
    powers = [2] * (highest.bit_length() - 1)
    least = [-2] * (lowest.bit_length() - 1) if signed else []
    for values in (
        powers,
        [*powers, 2],
        [*powers, *[1] * 50, 2, 2],
        [2] * 500,
        [2] * 500 + [0],
        [0] + [2] * 500,
        *([least, [*least, -1], [*least, -2], [-3] * 501, [-1] * 501] if signed else [[3] * 501, [1] * 501]),
    ):
        check_product(array_of(on_each_processor, values, moduli, signed), values)


def test_product_of_nothing(on_each_processor: Processor) -> None:
    x = array_of(on_each_processor, [], TOP, True)
    for empty in (x, chunked(x, 5)):
        assert int(empty.prod()) == 1
        assert int(empty.prod(overflow="wrap")) == 1
        value, flag = empty.prod(overflow="flag")
        assert (int(value), bool(flag)) == (1, False)


def test_errors_of_products() -> None:
    x = array_of(CPU, [TOP.product - 1] * 300, TOP, False)
    with pytest.raises(rd.RNSOverflowError, match=r"index 0: .* is at least 301 bits long") as caught:
        x.prod()
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    with pytest.raises(ValueError, match="overflow must be one of"):
        x.prod(overflow="no")


# ---- powers -----------------------------------------------------------------------------------------------


def check_power(x: rd.RNSArray, values: Sequence[int], k: int) -> None:
    moduli, signed = x.moduli, x.signed
    # Powers far beyond every range are not worth computing.
    exact = [v**k if abs(v) < 2 or k * v.bit_length() < 2**16 else None for v in values]
    outside = [v is None or not in_range(v, moduli, signed) for v in exact]
    expected = [wrapped(pow(v, k, moduli.product), moduli, signed) for v in values]
    result, mask = rd.power(x, k, overflow="flag")
    assert host(mask).tolist() == outside
    assert result.to_ints().tolist() == expected
    assert rd.power(x, k, overflow="wrap").to_ints().tolist() == expected
    if True not in outside:
        assert (x**k).to_ints().tolist() == expected
        return
    with pytest.raises(rd.RNSOverflowError) as caught:
        (x**k).to_ints()
    assert isinstance(x.residues, da.Array) or caught.value.index == outside.index(True)
    inner = [v for v, out in zip(values, outside, strict=True) if not out]
    fitting = pow(array_of(CPU, inner, moduli, signed), k)
    assert fitting.to_ints().tolist() == [v**k for v in inner]


EXPONENTS = [0, 1, 2, 3, 4, 7, 64, 65, 127, 128, 129, 2**63, 2**64 - 1, 2**64, 2**64 + 1, 3**200, 3**200 + 1]


@ALL_SETS
@BOTH_RANGES
def test_powers_of_edges(on_each_processor: Processor, moduli: ModuliSet, signed: bool) -> None:
    lowest, highest = moduli.value_range(signed)
    edges = edge_values(moduli, signed)
    for k in EXPONENTS if len(moduli) < 10 else (0, 2, 40, moduli.bits, 2**64 + 1):
        low, high = bases_that_fit(k, rd.RNS(moduli, signed))
        near = {v + d for v in (low, high, 0) for d in (-1, 0, 1)}
        values = sorted({v for v in near if lowest <= v <= highest} | set(edges[:: len(edges) // 12 + 1]))
        x = array_of(on_each_processor, values, moduli, signed)
        check_power(x, values, k)
    check_power(chunked(x, 4), values, 3)


@pytest.mark.parametrize("moduli", EXHAUSTIVE_SETS.values(), ids=EXHAUSTIVE_SETS)
@BOTH_RANGES
def test_every_power_of_small_sets(moduli: ModuliSet, signed: bool) -> None:
    lowest, highest = moduli.value_range(signed)
    values = list(range(lowest, highest + 1))
    for k in (0, 1, 2, 3, 5, moduli.bits - 1, moduli.bits, moduli.bits + 1):
        check_power(array_of(CPU, values, moduli, signed), values, k)


@given(st.data())
def test_any_power(data: st.DataObject) -> None:
    moduli = data.draw(moduli_sets(max_size=6))
    signed = data.draw(st.booleans())
    values = data.draw(st.lists(values_in(moduli, signed), min_size=1, max_size=8))
    bound = data.draw(st.sampled_from([None, max(map(abs, values))]))
    k = data.draw(st.one_of(st.integers(0, 9), st.integers(0, 4000)))
    check_power(array_of(CPU, values, moduli, signed, bound), values, k)


@pytest.mark.parametrize("values", [[0], [-1], [0, -1]])
def test_not_even_one_fits_the_smallest_signed_range(on_each_processor: Processor, values: list[int]) -> None:
    moduli = ModuliSet([2])
    for k in (0, 1, 2, 3):
        check_power(array_of(on_each_processor, values, moduli, True), values, k)
        check_power(array_of(on_each_processor, values, moduli, True, 1), values, k)
    check_power(chunked(array_of(CPU, values, moduli, True), 1), values, 0)


def test_bounds_of_powers() -> None:
    x = array_of(CPU, [3, -4], TOP, True, 10)
    assert (x**3).bound == 1000
    assert (x**0).bound == 1
    assert rd.power(x, 3, overflow="wrap").bound == 1000
    assert (array_of(CPU, [0, 1], TOP, True, 1) ** 10**30).bound == 1
    assert rd.power(x, 1000, overflow="wrap").bound is None
    assert array_of(CPU, [0, 0], TOP, True).__pow__(0).to_ints().tolist() == [1, 1]


def test_bad_exponents() -> None:
    x = array_of(CPU, [3, 5], TOP, False)
    with pytest.raises(ValueError, match="must not be negative, got -1"):
        x**-1
    for exponent in (1.5, "2", None, True):
        with pytest.raises(TypeError, match="exponent must be an integer"):
            x**exponent
    with pytest.raises(TypeError, match="exponents must be machine integers, got an RNSArray"):
        x**x
    limbs = x.to_positional(64)
    for base in (3, limbs):
        with pytest.raises(TypeError, match="exponents must be machine integers, got a PositionalArray"):
            rd.power(base, limbs)
    with pytest.raises(TypeError, match="exponent"):
        rd.power(x, da.ones(3))
    with pytest.raises(TypeError, match="takes at least one array of numbers, got int"):
        rd.power(3, 4)
    with pytest.raises(TypeError, match="modulus must be an integer"):
        pow(x, 2, 5.0)  # type: ignore[call-overload]
    with pytest.raises(rd.RNSOverflowError, match=r"index 1: .* (at least|more than)") as caught:
        array_of(CPU, [1, 5], TOP, False) ** 10**30
    assert caught.value.bits_needed == 2 * 10**30 + 1


def test_error_of_a_power_on_dask_names_the_index_in_the_array() -> None:
    values = [1] * 500
    values[300] = 2**64
    lazy = chunked(array_of(CPU, values, TOP, False), 128) ** 2
    with pytest.raises(rd.RNSOverflowError) as caught:
        lazy.to_ints()
    assert (caught.value.index, caught.value.bits_needed) == (300, 129)


# ---- inverses ---------------------------------------------------------------------------------------------


@ALL_SETS
@BOTH_RANGES
def test_inverses(on_each_processor: Processor, moduli: ModuliSet, signed: bool) -> None:
    edges = edge_values(moduli, signed)
    values = [v for v in edges[:: len(edges) // 200 + 1] if math.gcd(v, moduli.product) == 1]
    x = array_of(on_each_processor, values, moduli, signed)
    expected = [wrapped(pow(v, -1, moduli.product), moduli, signed) for v in values]
    for result in (rd.inverse(x), rd.inverse(chunked(x, 7))):
        assert result.to_ints().tolist() == expected
        assert rd.multiply(x, result, overflow="wrap").to_ints().tolist() == [
            wrapped(1, moduli, signed) for _ in values
        ]


@pytest.mark.parametrize("m", [2, 3, 4, 6, 16, 360, 1009])
def test_every_residue(on_each_processor: Processor, m: int) -> None:
    moduli = ModuliSet([m])
    for v in range(m):
        x = array_of(on_each_processor, [v], moduli, False)
        if math.gcd(v, m) == 1:
            assert rd.inverse(x).to_ints().tolist() == [pow(v, -1, m)]
        else:
            with pytest.raises(ValueError, match=f"index 0 has no inverse: it and the modulus {m} "):
                rd.inverse(x)


def test_numbers_without_inverse() -> None:
    values = [1] * 300
    values[200], values[250] = 2**32 - 5, 2
    x = array_of(CPU, values, TOP, False)
    message = r"index 200 has no inverse: it and the modulus 4294967291 have a common factor"
    with pytest.raises(ValueError, match=message):
        rd.inverse(x)
    with pytest.raises(ValueError, match=message):
        rd.inverse(chunked(x, 128)).to_ints()
    with pytest.raises(TypeError, match="takes at least one array of numbers, got int"):
        rd.inverse(3)
    assert rd.inverse(array_of(CPU, [], TOP, False)).shape == (0,)
