"""Residues from and to decimal limbs, against Python's integers."""

import random

import numpy as np
import pytest
from strategies import BOTH_RANGES

from rnsdask.core.moduli import ModuliSet
from rnsdask.rns.decimal import decimal_to_residues, residues_to_decimal

SETS = {
    "2": [2],
    "5": [5],
    "2**32": [2**32],
    "3,4": [3, 4],
    "10**9": [10**9, 10**9 + 1],
    "small": [7, 11, 13, 16, 17, 19, 23, 27, 29, 31],
    "pairs": [2**32, 2**32 - 1],
    "8": ModuliSet.for_bits(256),
    "37": ModuliSet.for_bits(37 * 32 - 40),
    "130": ModuliSet.for_bits(4150),
}


@pytest.fixture(params=SETS)
def moduli(request: pytest.FixtureRequest) -> ModuliSet:
    return ModuliSet(SETS[request.param])


def limbs_of(values: list[int], count: int) -> np.ndarray:
    texts = [str(value % 10 ** (9 * count)).zfill(9 * count) for value in values]
    limbs = [[int(text[start : start + 9]) for start in range(0, 9 * count, 9)] for text in texts]
    return np.array(limbs, dtype=np.uint32).reshape(-1, count)[:, ::-1]


def complements_of(values: list[int], count: int, signed: bool) -> np.ndarray:
    limbs = limbs_of(values, count)
    signs = [[value < 0] for value in values]
    return np.hstack([limbs, signs] if signed else [limbs], dtype=np.uint32)


def residues_of(values: list[int], moduli: ModuliSet) -> np.ndarray:
    return np.array([[value % m for value in values] for m in moduli], dtype=np.uint32)


def samples(moduli: ModuliSet, signed: bool, seed: int) -> list[int]:
    """Ends of the range and numbers next to them and to 0, powers of ten, and some of all lengths."""
    low, high = moduli.value_range(signed)
    source = random.Random(seed)
    near = [end + step for end in (low, 0, high, low // 2, high // 2) for step in range(-3, 4)]
    digits = len(str(high))
    powers = [10**k + step for k in range(0, digits, 1 + digits // 50) for step in (-1, 0, 1)]
    any_length = [source.randint(low, high) >> source.randrange(high.bit_length() + 1) for _ in range(200)]
    values = [v for v in [*near, *powers, *(-p for p in powers), *any_length] if low <= v <= high]
    source.shuffle(values)
    return values


@BOTH_RANGES
def test_to_residues(moduli: ModuliSet, signed: bool, rng: np.random.Generator) -> None:
    values = samples(moduli, signed, int(rng.integers(2**63)))
    digits = len(str(moduli.product))
    for count in (-(-digits // 9), digits // 9 + 3):
        limbs = complements_of(values, count, signed)
        assert (decimal_to_residues(limbs, moduli, signed) == residues_of(values, moduli)).all()


@BOTH_RANGES
def test_out_of_range_is_refused(moduli: ModuliSet, signed: bool) -> None:
    low, high = moduli.value_range(signed)
    count = len(str(2 * moduli.product)) // 9 + 2
    for value in (high + 1, 10 ** (9 * count) - 1, *((low - 1, -(10 ** (9 * count))) if signed else ())):
        with pytest.raises(ValueError, match="the number at position 2 is out of the range"):
            decimal_to_residues(complements_of([low, high, value, value], count, signed), moduli, signed)


@BOTH_RANGES
def test_fewer_limbs_than_the_range_has(signed: bool) -> None:
    moduli = SETS["8"]
    values = [0, 1, 10**18 - 1] + [-1, -(10**18)] * signed
    found = decimal_to_residues(complements_of(values, 2, signed), moduli, signed)
    assert (found == residues_of(values, moduli)).all()


@BOTH_RANGES
def test_from_residues(moduli: ModuliSet, signed: bool, rng: np.random.Generator) -> None:
    values = samples(moduli, signed, int(rng.integers(2**63)))
    residues = residues_of(values, moduli)
    limbs, negative = residues_to_decimal(residues, moduli, signed)
    assert (limbs == limbs_of(list(map(abs, values)), limbs.shape[1])).all()
    assert negative.tolist() == [value < 0 for value in values]
    for part in (slice(0), slice(1), slice(63), slice(3, 67), slice(1, 66)):  # around tiles of 64
        some, signs = residues_to_decimal(residues[:, part], moduli, signed)
        assert (some == limbs[part]).all()
        assert (signs == negative[part]).all()
