"""Powers modulo an integer, and powers by arrays of exponents, against Python integers."""

from typing import Any

import dask.array as da
import numpy as np
import pytest
from conftest import Processor
from oracles.integers import mapped, objects
from oracles.rns import limits_of
from sample_arrays import array_of, chunked, host
from strategies import BOTH_RANGES, MODULI_SETS, edge_values

import rnsdask as rd
from rnsdask.core.moduli import ModuliSet
from rnsdask.rns.powers import by_division

SETS = [MODULI_SETS[name] for name in ("two_three", "unsorted", "table2_4", "top")]
SHAPE = (4, 9)


pytestmark = pytest.mark.usefixtures("in_this_thread")


def edges_of(moduli: ModuliSet, signed: bool, rng: np.random.Generator) -> np.ndarray:
    edges = edge_values(moduli, signed)
    return objects([edges[i] for i in rng.integers(0, len(edges), size=SHAPE[0] * SHAPE[1])], SHAPE)


def moduli_to_try(highest: int, rng: np.random.Generator) -> list[int]:
    """Moduli of powers that results in range allow: the smallest, those around 32 bits, and the greatest."""
    values = [1, 2, 3, 2**31, 2**32 - 1, 2**32, 2**32 + 1, highest // 3 + 1, highest, highest + 1]
    values += [int(rng.integers(1, 2**62)) * highest >> 63 | 1]
    return sorted({v for v in values if 0 < v <= highest + 1})


# ---- powers modulo an integer -----------------------------------------------------------------------------


@pytest.mark.parametrize("moduli", SETS, ids=str)
@BOTH_RANGES
def test_powers_modulo_an_integer(
    on_each_processor: Processor, moduli: ModuliSet, signed: bool, rng: np.random.Generator
) -> None:
    a = edges_of(moduli, signed, rng)
    x = array_of(on_each_processor, a, moduli, signed)
    lazy = chunked(x, (1, 3), 5)
    for m in moduli_to_try(limits_of(moduli, signed).highest, rng):
        for k in (0, 1, 2, int(rng.integers(3, 99)), 2**64 + 3):
            for modulus in (m, -m) if signed else (m,):
                expected = mapped(lambda v, k=k, m=modulus: pow(v, k, m), a)
                found = pow(x, k, modulus)
                assert (found.to_ints() == expected).all(), (k, modulus)
                assert found.bound == m - 1
            assert m < 2 or (by_residues(x, k, m) == mapped(lambda v, k=k, m=m: pow(v, k, m), a)).all()
        assert (pow(lazy, 5, m).to_ints() == mapped(lambda v, m=m: pow(v, 5, m), a)).all()


def by_residues(x: rd.RNSArray, k: int, m: int) -> np.ndarray:
    """The way that GPUs take, on each processor."""
    words = by_division(x.residues.reshape(len(x.moduli), -1), k, m, x.system)
    return rd.RNSArray(words.reshape(x.residues.shape), x.system.with_bound(m - 1)).to_ints()


@BOTH_RANGES
def test_inverses_modulo_an_integer(on_each_processor: Processor, signed: bool) -> None:
    moduli = MODULI_SETS["top"]
    for m in (7, 2**61 - 1, 2**89 - 1):
        a = objects([v for v in (1, 2, 3, 5, 6, 10**9, moduli.product // 2 - 1, -4) if v > 0 or signed])
        a = a[mapped(lambda v, m=m: v % m != 0, a, dtype=bool)]
        x = array_of(on_each_processor, a, moduli, signed)
        for y in (x, chunked(x, 2)):
            for k in (-1, -3):
                assert (pow(y, k, m).to_ints() == mapped(lambda v, k=k, m=m: pow(v, k, m), a)).all()
    x = array_of(on_each_processor, [1, 5, 7, 8, 2, 3], moduli, signed)
    for y, indices in ((x, "3"), (chunked(x, 3), "3"), (chunked(x, 2), "[34]")):
        with pytest.raises(ValueError, match=f"flat index {indices} is not invertible modulo 6"):
            pow(y, -1, 6).to_ints()


def test_moduli_that_are_refused(on_each_processor: Processor) -> None:
    x = array_of(on_each_processor, [1, 2, 3], ModuliSet([5, 7]))
    y = array_of(on_each_processor, [1, 2, 3], ModuliSet([5, 7]), True)
    assert pow(x, 2, 35).to_ints().tolist() == [1, 4, 9]
    assert pow(y, 2, -18).to_ints().tolist() == [-17, -14, -9]
    for array, m, message in (
        (x, 0, "must not be 0"),
        (x, -3, "need a positive modulus, got -3"),
        (x, 36, "powers modulo 36 do not fit the moduli set, whose unsigned range ends at 34"),
        (y, 19, "range ends at 17"),
        (y, -19, "range ends at 17"),
    ):
        with pytest.raises(ValueError, match=message):
            pow(array, 2, m)
    assert pow(x, 2, [3, 4, 5]).to_ints().tolist() == [1, 0, 4]  # a modulus for each number
    for k, m in ((2, 2.0), (0.5, 3), ([1.5, 2, 3], 3), (2, [3.5, 4, 5])):
        with pytest.raises(TypeError):
            pow(x, k, m)  # type: ignore[arg-type]


# ---- powers by arrays of exponents ------------------------------------------------------------------------


@pytest.mark.parametrize("moduli", SETS, ids=str)
@BOTH_RANGES
def test_powers_by_an_array(
    on_each_processor: Processor, moduli: ModuliSet, signed: bool, rng: np.random.Generator
) -> None:
    limits = limits_of(moduli, signed)
    a = edges_of(moduli, signed, rng)
    a[:, ::2] = rng.integers(-1 if signed else 0, 2, size=a[:, ::2].shape)
    k = rng.choice([0, 1, 2, 3, 5, 40, moduli.bits - 1, moduli.bits, moduli.bits + 1], size=SHAPE)
    exact = mapped(lambda v, e: v**e, a, k)
    outside = limits.outside(exact)
    x, exponents = array_of(on_each_processor, a, moduli, signed), on_each_processor.xp.asarray(k)
    fitting = on_each_processor.xp.asarray(np.where(outside, 1, k))
    pairs: list[Any] = [(x, exponents, fitting), (chunked(x, 3, (1, 8)), exponents, fitting)]
    pairs += [(x, *(da.from_array(e, chunks=(2, 3), asarray=False) for e in (exponents, fitting)))]
    for y, powers, small in pairs:
        assert (rd.power(y, powers, overflow="wrap").to_ints() == limits.wrapped(exact)).all()
        result, mask = rd.power(y, powers, overflow="flag")
        assert (result.to_ints() == limits.wrapped(exact)).all()
        assert (host(mask) == outside).all()
        assert ((y**small).to_ints() == np.where(outside, a, exact)).all()
        if outside.any():
            with pytest.raises(rd.RNSOverflowError) as caught:
                (y**powers).to_ints()
            assert outside.ravel()[caught.value.index]


def test_exponents_broadcast_and_may_be_long(on_each_processor: Processor) -> None:
    a = objects([1, -1, 0, 1, -1, 2], (2, 3))
    moduli = MODULI_SETS["top"]
    x = array_of(on_each_processor, a, moduli, True)
    for y in (x, chunked(x, 1, 2)):
        assert ((y[:1, :] ** [[0], [1], [3]]).to_ints() == a[:1] ** np.array([[0], [1], [3]])).all()
        assert ((y ** [5]).to_ints() == a**5).all()
        long = np.array([2**63 - 1, 2**63, 2**64 - 1], dtype=np.uint64)
        powers = on_each_processor.xp.asarray(long)
        assert ((y[0] ** powers).to_ints() == mapped(pow, a[0], long.astype(object))).all()
        wrapped = mapped(lambda v, k: pow(v, k, moduli.product), a[1], long.astype(object))
        found = rd.power(y[1], powers, overflow="wrap")
        assert (found.to_ints() % moduli.product == wrapped).all()
        with pytest.raises(rd.RNSOverflowError, match="index 2"):
            (y[1] ** powers).to_ints()
        assert (y[:0] ** powers).shape == (0, 3)


def test_exponents_that_are_refused(on_each_processor: Processor) -> None:
    x = array_of(on_each_processor, objects(range(6), (2, 3)), MODULI_SETS["top"])
    for y in (x, chunked(x, 1, 3)):
        with pytest.raises(ValueError, match="must not be negative, got -2 at flat index"):
            (y ** [0, 1, -2]).to_ints()
        for exponents in ([0.5, 1, 2], [True, False, True], objects([1, 2, 3]), y):
            with pytest.raises(TypeError):
                y**exponents
        with pytest.raises(ValueError, match="broadcast"):
            y ** [1, 2]
    if on_each_processor.name == "cuda":
        with pytest.raises(TypeError, match="different processors"):
            x ** np.arange(3)


@pytest.mark.parametrize("system", [rd.RNS(SETS[3]), rd.IntervalRNS(SETS[3]), rd.Positional(64)])
def test_exponents_and_shifts_of_selections(system: Any) -> None:
    """Lengths that are unknown are counted, of the numbers and of the integers."""
    values, counts = list(range(9)), np.array([3, 0, 1, 2, 1])
    x = rd.from_ints(values, system, chunks=4)
    chosen, few = [v for v in values if v % 2 == 0], da.from_array(np.arange(-3, 4), chunks=2)
    for given in (counts, da.from_array(counts, chunks=2), (few**2 % 4)[few > -2]):
        wanted = np.asarray(given).tolist()
        found = np.power(x[x % 2 == 0], given)
        assert found.to_ints().tolist() == [v**k for v, k in zip(chosen, wanted, strict=True)]
        if isinstance(system, rd.Positional):
            shifted = np.left_shift(x[x % 2 == 0], given)
            assert shifted.to_ints().tolist() == [v << k for v, k in zip(chosen, wanted, strict=True)]
