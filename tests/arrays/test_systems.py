"""Number systems as values: what makes arrays, what tells them apart, what does not mix."""

import pickle

import dask
import numpy as np
import pytest
from dask.base import tokenize

import rnsdask as rd

MODULI = rd.ModuliSet.for_bits(200)
OTHER = rd.ModuliSet([3, 5, 7])
HUGE = 10**5000
VALUES = [-3, 0, 2**150, 7]


def test_a_system_makes_arrays() -> None:
    for bound in (None, 2**160):
        system = rd.RNS(MODULI, signed=True, bound=bound)
        x = rd.from_ints(VALUES, system, chunks=None)
        assert x.to_ints().tolist() == VALUES
        assert (x.moduli, x.signed, x.bound) == (MODULI, True, 2**150)
        again = rd.from_residues(x.residues, system)
        assert again.system == system
        assert again.to_ints().tolist() == VALUES
    y = rd.from_ints([VALUES, VALUES], rd.IntervalRNS(MODULI))
    assert isinstance(y, rd.IntervalRNSArray)
    assert y.system == rd.IntervalRNS(MODULI)
    assert y.to_ints().tolist() == [VALUES, VALUES]
    z = rd.random(rd.RNS(MODULI, signed=True), 300, seed=1)
    assert (z.to_ints() == rd.random(MODULI, 300, seed=1, signed=True).to_ints()).all()


def test_what_is_given_besides_must_agree() -> None:
    system = rd.RNS(MODULI, True, 100)
    residues = system.encode([1, 2])
    assert rd.from_residues(residues, system, True, 100).system == system
    for wrong in ({"signed": False}, {"bound": 99}, {"bound": HUGE}):
        with pytest.raises(ValueError, match="contradicts the number system RNS"):
            rd.from_residues(residues, system, **wrong)
    with pytest.raises(ValueError, match="signed=True contradicts the number system IntervalRNS"):
        rd.from_ints([1], rd.IntervalRNS(MODULI), signed=True)
    with pytest.raises(ValueError, match="a number has the magnitude 101, beyond the bound of RNS"):
        rd.from_ints([1, -101], system)
    with pytest.raises(ValueError, match="the number at flat index 0 is 101, greater in magnitude"):
        rd.from_residues(system.encode([101]), system)
    with pytest.raises(TypeError, match="residues alone have no signs"):
        rd.from_residues(residues, rd.IntervalRNS(MODULI))  # type: ignore[arg-type]
    with pytest.raises(
        TypeError, match="random numbers are those of an RNS, a Positional or fields, got IntervalRNS"
    ):
        rd.random(rd.IntervalRNS(MODULI), 5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="moduli must be a ModuliSet"):
        rd.from_ints([1], 7)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="an RNSArray has words and an RNS system, got ModuliSet"):
        rd.RNSArray(residues, MODULI)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="an IntervalRNSArray has words and an IntervalRNS system, got RNS"):
        rd.IntervalRNSArray(residues, system)


def test_bounds_are_checked_and_cut_down() -> None:
    assert rd.RNS(OTHER, bound=HUGE).bound == 104
    assert rd.RNS(OTHER, True, bound=HUGE).bound == 52
    assert rd.RNS(OTHER, True, bound=7).known_range == (-7, 7)
    assert rd.RNS(OTHER, bound=7).known_range == (0, 7)
    with pytest.raises(ValueError, match="bound must not be negative"):
        rd.RNS(OTHER, bound=-1)
    with pytest.raises(TypeError, match="bound must be an integer"):
        rd.RNS(OTHER, bound=1.5)  # type: ignore[arg-type]


def test_systems_are_values() -> None:
    large = rd.ModuliSet.for_bits(16_383)
    systems = [
        rd.RNS(large),
        rd.RNS(large, True),
        rd.RNS(large, True, HUGE // 10**100),
        rd.RNS(large, True, HUGE // 10**100 + 1),
        rd.RNS(MODULI),
        rd.IntervalRNS(large),
        rd.IntervalRNS(MODULI),
    ]
    assert len(set(systems)) == len({tokenize(system) for system in systems}) == len(systems)
    for system in systems:
        again = pickle.loads(pickle.dumps(system))
        assert again == system
        assert hash(again) == hash(system)
        assert tokenize(again) == tokenize(system)
        assert repr(again) == repr(system)
        assert system.same_numbers(again)
        lowest, highest = system.value_range
        words = system.encode([lowest, highest, 0])
        assert words.shape == (system.rows, 3)
        assert system.decode(words).tolist() == [lowest, highest, 0]
        assert (system.column(highest, 2) == words[:, 1].reshape(-1, 1, 1)).all()
        for outside in (lowest - 1, highest + 1):
            with pytest.raises(ValueError, match=r"operand .* is outside the .*range from"):
                system.column(outside)
    assert systems[1].same_numbers(systems[2])
    assert not systems[0].same_numbers(systems[1])
    assert not systems[0].same_numbers(systems[5])


def test_systems_do_not_mix() -> None:
    x = rd.from_ints([1, 2], MODULI)
    y = rd.IntervalRNSArray.from_rns(x)
    functions = (rd.add, rd.subtract, rd.multiply, rd.maximum, rd.minimum)
    for function in functions:
        for pair in ((x, y), (y, x)):
            with pytest.raises(TypeError, match="RNSArrays and IntervalRNSArrays do not mix"):
                function(*pair)
        for one in (x, y):
            assert type(function(one, one)) is type(one)
    for call in (lambda: x < y, lambda: y // x, lambda: rd.where(x > 1, x, y), lambda: x % y):
        with pytest.raises(TypeError, match=r"do not mix; IntervalRNSArray.from_rns\(x\) and to_rns\(\)"):
            call()
    for function, count in ((rd.fma, 3), (rd.mulsub, 4), (rd.muladd, 4), (rd.matmul, 2), (rd.gcd, 2)):
        with pytest.raises(TypeError, match="RNSArrays and IntervalRNSArrays do not mix"):
            function(x, *(y,) * (count - 1))
        assert function(*(y,) * count) is not None
    with pytest.raises(TypeError, match="add takes at least one array of numbers, got int, int"):
        rd.add(1, 2)


@pytest.mark.parametrize("chunks", [None, 128])
def test_digits_and_fixed_point_of_an_array(chunks: int | None) -> None:
    values = [0, 1, MODULI.product - 1, MODULI.product // 2, *range(300)]
    x = rd.from_ints(values, MODULI, chunks=chunks)
    residues = x.system.encode(values)
    digits = rd.mixed_radix_digits(x)
    expected = rd.mixed_radix_digits(residues, MODULI)
    for bits, scale in ((None, 0), (64, 3), (128, 0)):
        (found,) = dask.compute(rd.fixed_point_interval(x, bits=bits, scale=scale))
        wanted = rd.fixed_point_interval(residues, MODULI, bits, scale)
        assert (found.bits, found.scale) == (wanted.bits, wanted.scale)
        for name in ("low", "upp"):
            (bound,) = dask.compute(getattr(found, name))
            np.testing.assert_array_equal(bound, getattr(wanted, name))
    if chunks:
        assert digits.chunks == ((len(MODULI),), (128, 128, 48))
    np.testing.assert_array_equal(dask.compute(digits)[0], expected)
    assert (rd.mixed_radix_digits(x, MODULI) == digits).all()
    with pytest.raises(TypeError, match="the array's moduli set is"):
        rd.mixed_radix_digits(x, OTHER)
    with pytest.raises(TypeError, match="residues need the moduli set"):
        rd.fixed_point_interval(residues)
    # Of a negative number those of what is the same modulo M.
    negative = rd.IntervalRNSArray.from_rns(x) - (MODULI.product - 5)
    same = rd.add(x, 5, overflow="wrap")
    assert (rd.mixed_radix_digits(negative) == rd.mixed_radix_digits(same)).all()
    found, wanted = dask.compute(rd.fixed_point_interval(negative), rd.fixed_point_interval(same))
    np.testing.assert_array_equal(found.low, wanted.low)
