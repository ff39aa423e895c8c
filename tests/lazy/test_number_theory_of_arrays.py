"""gcd, lcm and bit_length of arrays: shapes, operands, laziness, bounds and errors."""

import math

import dask
import dask.array as da
import numpy as np
import pytest
from fuzzing.oracle import mapped, objects

import rnsdask as rd

MODULI = rd.ModuliSet.for_bits(200)
SYSTEMS = {"signed": rd.RNS(MODULI, True), "unsigned": rd.RNS(MODULI), "interval": rd.IntervalRNS(MODULI)}
VALUES = [0, 1, 12, 18, 2**100, 2**90 * 3, 7, 0]


def made(values: object, kind: str, chunks: object = None) -> rd.IntervalRNSArray | rd.RNSArray:
    return rd.from_ints(values, SYSTEMS[kind], chunks=chunks)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", SYSTEMS)
@pytest.mark.parametrize(("function", "exactly"), [(rd.gcd, math.gcd), (rd.lcm, math.lcm)])
def test_operands_of_every_kind(kind: str, function: object, exactly: object) -> None:
    x = made([*VALUES, *VALUES], kind)
    lazy = type(x)(da.from_array(x.words, chunks=(-1, (3, 13))), x.system)
    a = objects([*VALUES, *VALUES])
    for y in (x, lazy):
        for other, b in ((12, 12), (np.int8(12), 12), (True + 11, 12), (0, 0), (x[::-1], a[::-1])):
            expected = mapped(exactly, a, np.broadcast_to(np.asarray(b, dtype=object), a.shape))
            for pair in ((y, other), (other, y)):
                assert (function(*pair).to_ints() == expected).all()  # type: ignore[operator]
    with dask.config.set(scheduler="sync"):
        greatest = function(lazy, lazy.max())  # type: ignore[operator]
        assert greatest.to_ints().tolist() == [exactly(v, 2**100) for v in a]  # type: ignore[operator]
    table = function(x[:4].reshape(4, 1), x[:8])  # type: ignore[operator]
    assert table.shape == (4, 8)
    assert table.to_ints()[2, 3] == exactly(12, 18)  # type: ignore[operator]


@pytest.mark.parametrize("kind", SYSTEMS)
def test_no_numbers_and_unknown_lengths(kind: str) -> None:
    x = made(VALUES, kind)
    empty = x[:0]
    assert rd.gcd(empty, 5).shape == rd.lcm(empty, empty).shape == empty.bit_length().shape == (0,)
    lazy = x.rechunk()
    some = lazy[lazy > 5]
    assert rd.gcd(some, 6).to_ints().tolist() == [math.gcd(v, 6) for v in VALUES if v > 5]
    assert some.bit_length().compute().tolist() == [v.bit_length() for v in VALUES if v > 5]


@pytest.mark.parametrize("kind", SYSTEMS)
def test_what_is_refused(kind: str) -> None:
    x = made(VALUES, kind)
    other = made(VALUES, "signed" if kind == "interval" else "interval")
    with pytest.raises(TypeError, match="do not mix"):
        rd.gcd(x, other)
    with pytest.raises(TypeError, match="takes at least one array of numbers"):
        rd.lcm(4, 6)
    with pytest.raises(TypeError, match="an operand beside an array of numbers must be an integer"):
        rd.gcd(x, 1.5)
    with pytest.raises(TypeError, match=r"bit_length takes at least one array of numbers, got int"):
        rd.bit_length(5)
    with pytest.raises(ValueError, match=r"outside the .*range"):
        rd.gcd(x, MODULI.product)
    with pytest.raises(ValueError, match="overflow must be one of"):
        rd.gcd(x, 5, overflow="ignore")
    with pytest.raises(ValueError, match="do not broadcast"):
        rd.gcd(x, x[:3])
    with pytest.raises(rd.RNSOverflowError, match="overflow at flat index 4"):
        rd.lcm(x, 3**125)


def test_bounds_hold() -> None:
    x, y = (rd.from_ints([0, 5, v], SYSTEMS["signed"]) for v in (-(2**60), 2**50))
    assert (x.bound, y.bound) == (2**60, 2**50)
    assert rd.gcd(x, y).bound == 2**60  # of 0 and -2**60
    assert rd.gcd(x, 12).bound == 12
    assert rd.gcd(x, 0).bound == 2**60
    assert rd.lcm(x, y).bound == 2**110
    assert rd.gcd(x.with_bound(None), y).bound is None
    assert rd.gcd(x.with_bound(None), -12).bound == 12
    lowest = SYSTEMS["signed"].value_range[0]
    edge = rd.from_ints([lowest], SYSTEMS["signed"], chunks=None)
    wrapped, mask = rd.gcd(edge, 0, overflow="flag")
    assert mask.tolist() == [True]
    assert wrapped.to_ints().tolist() == [lowest]
    assert wrapped.bound is None


def test_numbers_are_taken_in_slabs(monkeypatch: pytest.MonkeyPatch) -> None:
    from rnsdask.rns import number_theory

    monkeypatch.setattr(number_theory, "EXACT_RESIDUES", 3 * len(MODULI))
    values = [*range(20), 2**222]
    for kind in SYSTEMS:
        x = made(values, kind)
        assert rd.gcd(x, x[::-1]).to_ints().tolist() == list(map(math.gcd, values, values[::-1]))
        with pytest.raises(rd.RNSOverflowError, match="overflow at flat index 20"):
            rd.lcm(x, 101)
        _, mask = rd.lcm(x, 101, overflow="flag")
        assert mask.tolist() == [False] * 20 + [True]
