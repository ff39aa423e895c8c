"""Fractions from residues, against Python's fractions."""

import math
from fractions import Fraction
from typing import Any

import dask.array as da
import numpy as np
import pytest
from conftest import Processor

import rnsdask as rd
from rnsdask.rns import lift

PRIMES = list(lift.primes(0, 6))

pytestmark = pytest.mark.usefixtures("in_this_thread")


def residues(values: Any, moduli: list[int]) -> np.ndarray:
    """Residues (n, *shape) of fractions."""
    flat = np.array(values, dtype=object)
    rows = [
        [int(v.numerator) * pow(int(v.denominator), -1, p) % p for v in flat.reshape(-1).tolist()]
        for p in moduli
    ]
    kind = np.uint32 if max(moduli) <= 2**32 else np.uint64
    return np.array(rows, dtype=kind).reshape(len(moduli), *flat.shape)


def draw(rng: np.random.Generator, count: int, bits: int) -> list[Fraction]:
    found = []
    while len(found) < count:
        n, d = (int.from_bytes(rng.bytes(bits // 8 + 1), "little") % 2**bits for _ in range(2))
        found.append(Fraction(n * int(rng.choice([-1, 1])), max(1, d)))
    return found


def check(found: rd.Fractions, expected: Any) -> None:
    numerators, denominators = (np.asarray(v) for v in found[:2])
    flat = np.array(expected, dtype=object)
    assert numerators.shape == denominators.shape == flat.shape
    for n, d, right in zip(*(v.reshape(-1).tolist() for v in (numerators, denominators, flat)), strict=True):
        assert (n, d) == (right.numerator, right.denominator)
        assert type(n) is type(d) is int


@pytest.mark.parametrize("bits", [1, 8, 31, 73])
def test_elementwise(on_each_processor: Processor, bits: int, rng: np.random.Generator) -> None:
    values = [*draw(rng, 20, bits), Fraction(0), Fraction(1), Fraction(-1), Fraction(2**bits, 1)]
    words = on_each_processor.xp.asarray(residues(values, PRIMES))
    found = rd.rational_reconstruct(rd.FieldArray(words, rd.PrimeFields(PRIMES)))
    check(found, values)
    assert (found.confirmed_by, found.certainty) == (1, "confirmed by 1 more prime")
    bounds = {"numerator_bound": 2**bits, "denominator_bound": 2**bits}
    found = rd.rational_reconstruct(words, PRIMES, **bounds)
    check(found, values)
    assert (found.confirmed_by, found.certainty) == (None, "proved by bounds")
    found = rd.rational_reconstruct(
        words, rd.ModuliSet(PRIMES), numerator_bound=2**bits, confirm=1 + (bits < 50)
    )
    check(found, values)
    assert found.certainty == ("confirmed by 2 more primes" if bits < 50 else "confirmed by 1 more prime")
    check(rd.rational_reconstruct(words, rd.PrimeFields(PRIMES), denominator_bound=2**bits), values)


@pytest.mark.parametrize("lazy", [False, True])
def test_common_denominators(on_each_processor: Processor, lazy: bool, rng: np.random.Generator) -> None:
    below = [[7, 360], [1, 997], [2**31, 12]]
    values = [
        [[Fraction(int(n), d) for n in rng.integers(-(2**40), 2**40, 5)] for d in line] for line in below
    ]
    x = rd.FieldArray(on_each_processor.xp.asarray(residues(values, PRIMES)), rd.PrimeFields(PRIMES))
    if lazy:
        x = rd.FieldArray(da.from_array(x.words, chunks=(-1, 2, 1, 2), asarray=False), x.system)
    whole = np.array(values, dtype=object)
    for axes in (2, -1, (1, 2), (0, 2), (2, 0), 0, (0, 1, 2)):
        found = rd.rational_reconstruct(x, common_axis=axes, numerator_bound=2**92, denominator_bound=2**52)
        numerators, denominators = (v.compute() if lazy else v for v in found[:2])
        several = axes if isinstance(axes, tuple) else (axes,)
        assert numerators.shape == whole.shape
        spread = np.expand_dims(denominators, tuple(k % 3 for k in several))
        right = np.frompyfunc(lambda v: v.denominator, 1, 1)(whole)
        for index in np.ndindex(whole.shape):
            own = np.broadcast_to(spread, whole.shape)[index]
            assert Fraction(numerators[index], own) == whole[index]
        expected = right
        for k in sorted((k % 3 for k in several), reverse=True):
            expected = np.frompyfunc(math.lcm, 2, 1).reduce(expected, axis=k)
        assert np.array_equal(denominators, expected)


def test_lazy(rng: np.random.Generator) -> None:
    values = [draw(rng, 7, 40) for _ in range(4)]
    words = residues(values, PRIMES)
    found = rd.rational_reconstruct(da.from_array(words, chunks=(2, 3, 2)), PRIMES)
    assert all(hasattr(v, "dask") for v in found[:2])
    check(found, values)
    # The numbers of an RNSArray are images modulo M, whatever its sign says.
    x = rd.from_residues(words, PRIMES, signed=True)
    check(rd.rational_reconstruct(x), values)
    check(rd.rational_reconstruct(x.rechunk((2, 2))), values)
    assert rd.rational_reconstruct(x[:0]).numerators.shape == (0, 7)


def test_primes_of_63_bits(rng: np.random.Generator) -> None:
    """Numbers are written anew under other moduli, but fractions are modulo the primes."""
    primes = [2**63 - 25, 2**63 - 165, 2**63 - 259]
    values = draw(rng, 9, 50)
    check(rd.rational_reconstruct(residues(values, primes), primes), values)


def test_bounds_that_just_fit() -> None:
    """Twice the product of the bounds is M - 1 at most."""
    moduli = [3, 5, 7]
    for n, d in ((52, 1), (4, 13), (7, 7), (1, 52)):
        for above in range(-n, n + 1):
            for below in range(1, d + 1):
                if math.gcd(above, below) == 1 and math.gcd(below, 105) == 1:
                    value = Fraction(above, below)
                    found = rd.rational_reconstruct(
                        residues([value], moduli), moduli, numerator_bound=n, denominator_bound=d
                    )
                    check(found, [value])


@pytest.mark.parametrize("lazy", [False, True])
def test_no_fraction(lazy: bool) -> None:
    """A wrong residue, a denominator that one of the primes divides, and a fraction beyond the bounds."""
    values = [[Fraction(1, 3), Fraction(2, 5)], [Fraction(-7, 9), Fraction(10**30, 7)]]
    words = residues(values, PRIMES)
    words[-1, 0, 1] ^= 1
    x = rd.FieldArray(words, rd.PrimeFields(PRIMES))
    x = x.rechunk(1) if lazy else x

    def tried(y: Any, **options: Any) -> Any:
        found = rd.rational_reconstruct(y, **options)
        return found.numerators.compute() if lazy else found

    with pytest.raises(
        ValueError, match=r", confirmed by the other moduli, has the residues at index \([01], 1\)"
    ):
        tried(x)
    with pytest.raises(ValueError, match=r"over one denominator .* has the residues at index \([01], 1\)"):
        tried(x, common_axis=(0, 1))
    message = (
        r"^no fraction with a numerator up to 1000 and a denominator up to 9 has the residues at index "
        r"\([01], 0\); residues modulo more primes, or other bounds, may find one$"
    )
    with pytest.raises(ValueError, match=message):
        tried(x[[1, 1], 1:], numerator_bound=1000, denominator_bound=9)
    # The image of a / p would be modulo all primes but p.
    words = residues([Fraction(5, PRIMES[0])], PRIMES[1:])
    for first in (0, 1, 12345):
        wrong = np.concatenate([np.full((1, 1), first, dtype=np.uint32), words])
        with pytest.raises(ValueError, match=r"has the residues at index \(0,\)"):
            rd.rational_reconstruct(wrong, PRIMES, numerator_bound=5, denominator_bound=PRIMES[0])
        moved = np.concatenate([words, np.full((1, 1), first, dtype=np.uint32)])
        with pytest.raises(ValueError, match=r"has the residues at index \(0,\)"):
            rd.rational_reconstruct(moved, [*PRIMES[1:], PRIMES[0]])


@pytest.mark.parametrize("chunks", [None, 1])
@pytest.mark.parametrize("moduli", [[2], [3], [2, 3], [7, 11], PRIMES])
def test_0_is_the_only_fraction_with_a_numerator_up_to_0(moduli: list[int], chunks: int | None) -> None:
    zero, one = (rd.from_ints([v, 0], rd.PrimeFields(moduli), chunks=chunks) for v in (0, 1))
    ways: list[dict[str, int]] = [{"denominator_bound": d} for d in (1, 2, 6, 10**50)]
    ways += [{}, {"confirm": 1}] if len(moduli) > 1 else []
    for how in ways:
        found = rd.rational_reconstruct(zero, numerator_bound=0, **how)
        assert [np.asarray(part).tolist() for part in found[:2]] == [[0, 0], [1, 1]]
        with pytest.raises(ValueError, match=r"no fraction with a numerator up to 0 .* at index \(0,\)"):
            np.asarray(rd.rational_reconstruct(one, numerator_bound=0, **how).numerators)
    # Multiples of one prime, whose products with the others are 0.
    if len(moduli) > 1:
        multiple = rd.from_ints([moduli[0]], rd.PrimeFields(moduli), chunks=None)
        with pytest.raises(ValueError, match="no fraction"):
            rd.rational_reconstruct(multiple, numerator_bound=0, denominator_bound=math.prod(moduli))


def test_errors() -> None:
    x = rd.from_ints([1, 2], rd.PrimeFields([7, 11]), chunks=None)
    with pytest.raises(ValueError, match=r"must be less than the product .* of 7 bits; take more moduli"):
        rd.rational_reconstruct(x, numerator_bound=7, denominator_bound=6)
    rd.rational_reconstruct(x, numerator_bound=6, denominator_bound=6)
    for confirm in (0, 2, -1):
        with pytest.raises(ValueError, match=f"confirm must be from 1 to 1, .* got {confirm}$"):
            rd.rational_reconstruct(x, confirm=confirm)
    with pytest.raises(ValueError, match="takes both bounds or two moduli, got 1 modulus"):
        rd.rational_reconstruct(rd.from_ints([1], rd.PrimeFields([101]), chunks=None))
    with pytest.raises(ValueError, match="denominator_bound must be at least 1, got 0"):
        rd.rational_reconstruct(x, denominator_bound=0)
    with pytest.raises(ValueError, match="numerator_bound must be at least 0, got -1"):
        rd.rational_reconstruct(x, numerator_bound=-1)
    with pytest.raises(ValueError, match="take more moduli or lower bounds"):
        rd.rational_reconstruct(x, denominator_bound=10**9)
    with pytest.raises(TypeError, match="moduli= is for plain residues; a FieldArray has its own"):
        rd.rational_reconstruct(x, [7, 11])
    with pytest.raises(TypeError, match="moduli must be a ModuliSet, got 101 of type int"):
        rd.rational_reconstruct(x.residues, 101)
    found = rd.rational_reconstruct(x.residues, iter([7, 11]), numerator_bound=2, denominator_bound=2)
    assert found.numerators.tolist() == [1, 2]
    with pytest.raises(TypeError, match="takes residues with moduli="):
        rd.rational_reconstruct(x.residues)
    with pytest.raises(TypeError, match="prime fields, an RNSArray or residues, got a PositionalArray"):
        rd.rational_reconstruct(rd.from_ints([1], rd.Positional(64), chunks=None))
    with pytest.raises(ValueError, match="axis"):
        rd.rational_reconstruct(x, common_axis=1)
