"""Logarithms of numbers against those of all their bits, by mpmath."""

import warnings
from typing import Any

import dask.array as da
import mpmath
import numpy as np
import pytest
from conftest import Processor

import rnsdask as rd
from rnsdask import FieldArray

MODULI = rd.ModuliSet.for_bits(6000)
SYSTEMS = {
    "unsigned": MODULI,
    "signed": rd.RNS(MODULI, True),
    "bounded": rd.RNS(rd.ModuliSet.for_bits(9000), True, 2**5990),
    "interval": rd.IntervalRNS(MODULI),
    "positional": rd.Positional(6000, True),
}
BOUND = mpmath.mpf(2) ** -50


def numbers() -> list[int]:
    rng = np.random.default_rng()
    near = [2**k + d for k in (1, 31, 32, 33, 52, 53, 54, 63, 64, 96, 1023, 1024, 5000) for d in (-1, 0, 1)]
    few = [(int(rng.integers(1, 2**63)) >> int(rng.integers(0, 62))) + 1 for _ in range(50)]
    many = [int.from_bytes(rng.bytes(int(rng.integers(1, 740))), "little") + 1 for _ in range(100)]
    return [*near, *range(1, 40), *few, *many, 2**5989, 10**1700]


@pytest.mark.parametrize("name", SYSTEMS)
@pytest.mark.parametrize("chunks", [None, 17])
def test_the_error_is_within_its_bound(name: str, chunks: int | None) -> None:
    values = numbers()
    x = rd.from_ints(values, SYSTEMS[name], chunks=chunks)
    found = np.log2(x)
    assert found.dtype == np.float64
    assert isinstance(found, da.Array) == (chunks is not None)
    with mpmath.workprec(300):
        for value, got in zip(values, np.asarray(found).tolist(), strict=True):
            exact = mpmath.log(value, 2)
            assert abs(mpmath.mpf(got) - exact) <= BOUND * exact, hex(value)


@pytest.mark.parametrize("name", SYSTEMS)
def test_powers_of_two_are_exact(name: str) -> None:
    exponents = [0, 1, 2, 31, 32, 63, 64, 1023, 1024, 1100, 5000, 5989]
    x = rd.from_ints([2**k for k in exponents], SYSTEMS[name], chunks=None)
    assert x.log2().tolist() == exponents
    assert rd.log2(x.reshape(3, 4)).shape == (3, 4)
    assert x[:0].log2().shape == (0,)


@pytest.mark.parametrize("name", ["signed", "interval", "positional", "bounded"])
def test_zero_and_negative_numbers_are_numpys(name: str) -> None:
    values = [0, -1, -(2**3000), 8]
    x = rd.from_ints(values, SYSTEMS[name], chunks=None)
    with np.errstate(all="ignore"):
        wanted = np.log2(np.array([0.0, -1.0, -1e300, 8.0]))
        np.testing.assert_array_equal(x.log2(), wanted)
    with pytest.warns(RuntimeWarning, match="divide by zero encountered in log2"):
        np.log2(x[:1])
    with pytest.warns(RuntimeWarning, match="invalid value encountered in log2"):
        np.log2(x[1:2])
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("error")
        x.log2()


@pytest.mark.parametrize("name", SYSTEMS)
def test_each_processor(name: str, on_each_processor: Processor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rnsdask.lazy.doubles.BLOCK_WORDS", 5000)  # several blocks
    values = numbers()
    x = rd.from_ints(values, SYSTEMS[name], chunks=None)
    y = type(x)(on_each_processor.xp.asarray(x.words), x.system)
    found = on_each_processor.to_numpy(rd.log2(y))
    np.testing.assert_allclose(found, x.log2(), rtol=2.0**-50, atol=0)
    assert isinstance(rd.log2(y), on_each_processor.xp.ndarray)


def test_what_has_no_logarithm() -> None:
    with pytest.raises(TypeError, match="log2 takes no FieldArray"):
        np.log2(rd.from_ints([1], rd.PrimeFields([7])))
    assert not hasattr(FieldArray, "log2")
    with pytest.raises(TypeError, match=r"np\.log2\(x\) gives logarithms"):
        np.log(rd.from_ints([1, 2]))
    with pytest.raises(TypeError, match="log2 takes"):
        rd.log2(5)


def test_blocks_of_a_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rnsdask.lazy.doubles.BLOCK_WORDS", 1000)
    values: list[Any] = [3**k for k in range(300)]
    found = rd.from_ints(values, MODULI, chunks=None).log2()
    np.testing.assert_allclose(found, np.arange(300) * np.log2(3), rtol=1e-15)
