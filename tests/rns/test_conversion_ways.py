"""Conversion and base extension by limbs, by digits of 100 bits and by trees, against Python integers."""

import gmpy2
import numpy as np
import pytest
from oracles import rns
from oracles.integers import limbs, objects
from strategies import BOTH_RANGES, MODULI_SETS, each_set

from rnsdask.backend import cpu
from rnsdask.backend.cpu import convert, trees
from rnsdask.constants import extension_constants, forward_constants, reverse_constants
from rnsdask.core.moduli import ModuliSet


@pytest.fixture(params=["limbs", "digits", "trees"], autouse=True)
def _way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trees, "is_quicker", lambda *_: request.param == "trees")
    if request.param == "digits" and not cpu.MULTIPLIES_WORDS:
        pytest.skip("this processor does not multiply words of 52 bits")
    fewest = 1 if request.param == "digits" else 2**32
    monkeypatch.setattr(convert, "FEWEST_BY_DIGITS", dict.fromkeys(convert.FEWEST_BY_DIGITS, fewest))


def primes_below(start: int, count: int) -> list[int]:
    primes = [start]
    while len(primes) <= count:
        primes.append(int(gmpy2.prev_prime(primes[-1])))
    return primes[1:]


SETS = {
    **MODULI_SETS,
    "a_modulus_beyond_a_group": ModuliSet([2**32 - 1, 2**32, 2**32 - 3, 7]),
    "bits16": ModuliSet(primes_below(2**16, 40)),
    "bits31": ModuliSet(primes_below(2**31, 31)),
    "many_to_a_group": ModuliSet([2, *primes_below(105, 26), 2**32 - 5]),
    # 65 and 66 terms: the sums of more than 64 have five words.
    "groups64": ModuliSet.for_bits(32 * 3 * 64 - 1),
    "groups65": ModuliSet.for_bits(32 * 3 * 65 - 1),
}
ALL_SETS = each_set(SETS, "ms")


def drawn(ms: ModuliSet, signed: bool, count: int, rng: np.random.Generator) -> list[int]:
    """Values at edges of the range, of greatest and least sums, next to fractions of it, and random."""
    lowest, highest = ms.value_range(signed)
    greatest = -sum(ms.partial_products)  # each u_i is m_i - 1
    near = [ms.product * k // 8 for k in range(8)]
    values = [0, lowest, highest, greatest, -greatest, *near, *ms.partial_products[:4]]
    values += [value + d for value in values for d in (-1, 1)]
    values += [int.from_bytes(rng.bytes(ms.bits // 8 + 8), "little") for _ in range(count)]
    return [lowest + (value - lowest) % ms.product for value in values]


def residues_of(values: list[int], ms: ModuliSet) -> np.ndarray:
    rows = [[value % m for value in values] for m in ms]
    return np.array(rows, dtype=np.uint32).reshape(len(ms), len(values))


@ALL_SETS
@BOTH_RANGES
def test_from_limbs_of_any_number(ms: ModuliSet, signed: bool, rng: np.random.Generator) -> None:
    for limb_count in {1, 3, ms.limb_count(signed), ms.limb_count(signed) + 2}:
        size = 2 ** (32 * limb_count)
        values = [0, 1, size - 1, size // 2, size // 2 - 1, size - size // 7, size // 3]
        values += [int.from_bytes(rng.bytes(4 * limb_count), "little") for _ in range(33 - len(values))]
        numbers = [value - size if signed and 2 * value >= size else value for value in values]
        residues = np.empty((len(ms), len(values)), dtype=np.uint32)
        constants = forward_constants(ms, limb_count, signed)
        cpu.limbs_to_residues(limbs(objects(numbers), limb_count), constants, residues)
        np.testing.assert_array_equal(residues, residues_of(numbers, ms))


@ALL_SETS
@BOTH_RANGES
def test_to_limbs(ms: ModuliSet, signed: bool, rng: np.random.Generator) -> None:
    values = drawn(ms, signed, 40, rng)
    found = cpu.residues_to_limbs(rns.encode(values, ms, signed), reverse_constants(ms, signed))
    np.testing.assert_array_equal(found, limbs(objects(values), ms.limb_count(signed)))


@ALL_SETS
@BOTH_RANGES
def test_extension_but_of_ambiguous_numbers(ms: ModuliSet, signed: bool, rng: np.random.Generator) -> None:
    values = drawn(ms, signed, 40, rng)
    targets = (ModuliSet([2**32]), ModuliSet([3, 2**31 - 1, 65537, 2, 5, 7, 11, 13]), ms)[rng.integers(3)]
    constants = extension_constants(ms, targets, signed)
    result = np.empty((len(targets), len(values)), dtype=np.uint32)
    ambiguous = cpu.base_extend(rns.encode(values, ms, signed), constants, result)
    np.testing.assert_array_equal(result[:, ~ambiguous], residues_of(values, targets)[:, ~ambiguous])
    # Only those next to an end of the range, where q changes.
    lowest, highest = ms.value_range(signed)
    near = 2 * (len(ms) + 1) * ms.product >> 32
    for value in np.array(values, dtype=object)[ambiguous]:
        assert value - lowest <= near or highest - value <= near


@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 15, 16, 17, 47, 48, 49, 63, 64, 65, 127, 129])
@pytest.mark.parametrize("bits", [32, 96, 160, 700])
def test_counts_of_numbers(count: int, bits: int, rng: np.random.Generator) -> None:
    # In the middle of wider arrays, whose other elements stay as they are.
    ms, targets = ModuliSet.for_bits(bits), ModuliSet([65537, 2**31 - 1, 3, 5, 7])
    values = [int.from_bytes(rng.bytes(bits // 8), "little") for _ in range(count)]
    wide = np.full((len(ms), count + 5), 2**32 - 1, dtype=np.uint32)
    residues = wide[:, 2 : 2 + count]
    cpu.limbs_to_residues(
        limbs(objects(values), ms.limb_count()), forward_constants(ms, ms.limb_count()), residues
    )
    np.testing.assert_array_equal(residues, residues_of(values, ms))
    assert (wide[:, :2] == 2**32 - 1).all()
    assert (wide[:, 2 + count :] == 2**32 - 1).all()
    found = cpu.residues_to_limbs(residues, reverse_constants(ms))
    np.testing.assert_array_equal(found, limbs(objects(values), ms.limb_count()))
    result = np.empty((len(targets), count), dtype=np.uint32)
    ambiguous = cpu.base_extend(residues, extension_constants(ms, targets), result)
    np.testing.assert_array_equal(result[:, ~ambiguous], residues_of(values, targets)[:, ~ambiguous])


# Up to 8 terms are added up without pairs, and fewer than 512 at all; more are left to the other way.
@pytest.mark.parametrize("digits", [8, 9, 63, 64, 65, 510, 511, 512])
@BOTH_RANGES
def test_most_terms_of_limbs(digits: int, signed: bool, rng: np.random.Generator) -> None:
    ms = ModuliSet([2**32 - 1, 2**32, 2**32 - 3, 2**32 - 5, 7])
    limb_count = 100 * digits // 32
    constants = forward_constants(ms, limb_count, signed)
    assert (constants.digits is None) == (digits + signed > 511)
    size = 2 ** (32 * limb_count)
    values = [size - 1, size // 2 - 1, size // 2, int.from_bytes(rng.bytes(4 * limb_count), "little")]
    numbers = [value - size if signed and 2 * value >= size else value for value in values]
    residues = np.empty((len(ms), len(values)), dtype=np.uint32)
    cpu.limbs_to_residues(limbs(objects(numbers), limb_count), constants, residues)
    np.testing.assert_array_equal(residues, residues_of(numbers, ms))


@pytest.mark.parametrize("groups", [510, 511])
def test_most_terms_of_residues(groups: int, rng: np.random.Generator) -> None:
    ms = ModuliSet(primes_below(2**32, 3 * groups))
    constants = reverse_constants(ms)
    assert (constants.digits is None) == (groups == 511)
    values = [ms.product - 1, 0, -sum(ms.partial_products) % ms.product, *drawn(ms, False, 1, rng)[-1:]]
    found = cpu.residues_to_limbs(residues_of(values, ms), constants)
    np.testing.assert_array_equal(found, limbs(objects(values), ms.limb_count()))
