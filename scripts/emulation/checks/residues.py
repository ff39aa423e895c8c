"""Residues: their conversion to limbs, their running sums, and proofs of bounds."""

from random import Random
from typing import Any
from unittest.mock import patch

import numpy as np

from emulation.checks import Place, check, not_by_ptx, words
from rnsdask.constants import (
    ByteProofConstants,
    byte_proof_constants,
    length_constants,
    product_bounds,
    reverse_constants,
)
from rnsdask.constants.proofs import ByteProofTables
from rnsdask.core.moduli import ModuliSet
from rnsdask.interval_rns.layout import ACCURACY, evaluated


@check
def residues_of_few_numbers(kernels: Any, place: Place) -> list[Any]:
    results = []
    for bits, count in ((600, 33), (2100, 1)):
        moduli = ModuliSet.for_bits(bits)
        least = np.uint32(min(moduli))
        residues = words(len(moduli), count, 21) % least
        residues[:, 0] = [m - 1 for m in moduli]
        for signed in (False, True):
            constants = reverse_constants(moduli, signed)
            results.append(kernels.residues_to_limbs(place(residues), constants))
    return results


@check
def running_sums(kernels: Any, place: Place) -> list[Any]:
    """Running sums of residues: all lines at once, some at a time, and parts of one."""
    moduli, results = ModuliSet.for_bits(150), []
    n, least = len(moduli), np.uint32(min(moduli))
    for block in (2**22, 90, 7):
        for shape in ((1, 1500, 1), (3, 40, 7), (2, 1, 5)):
            lines = words(n, int(np.prod(shape)), 11).reshape(n, *shape) % least
            starts = words(n, shape[0] * shape[2], 12).reshape(n, shape[0], shape[2]) % least
            with patch("rnsdask.backend.cuda.arithmetic._BLOCK", block):
                results.append(kernels.running_sums(place(lines), place(starts), moduli))
    return results


@check
def lengths_by_fixed_point(kernels: Any, place: Place) -> list[Any]:
    """Lengths next to powers of two, those that are left open, and what is put in their places."""
    results: list[Any] = []
    for bits in (33, 150, 600):
        moduli = ModuliSet.for_bits(bits)
        near = [(1 << k) + d for k in range(moduli.bits) for d in (-1, 0, 1)]
        for signed in (False, True):
            values = [x * s for x in near if 2 * x < moduli.product for s in ((1, -1) if signed else (1,))]
            residues = np.array([[x % m for x in values] for m in moduli], dtype=np.uint32)
            for evaluation in (64, 128):
                constants = length_constants(moduli, signed, evaluation)
                lengths, decided = kernels.bit_lengths(place(residues), constants)
                left = kernels.find_unset(decided, 2**16)
                results += [np.copy(lengths), decided]
                kernels.put(np.arange(left.size), left, lengths)
                results.append(lengths)
    return results


@check
def running_maxima(kernels: Any, place: Place) -> list[Any]:
    """One tile and several, whole or not."""
    results = []
    for count in (0, 1, 7, 2048, 2049, 5000):
        few = np.random.default_rng(count).integers(0, 2**64, count, dtype=np.uint64)
        # Those that grow slowly, and those of which few are above all before.
        results += [kernels.running_maximum(place(values)) for values in (few, few % 1000, np.sort(few))]
    return results


@not_by_ptx("floating point")
@check
def lengths_by_headers(kernels: Any, place: Place) -> list[Any]:
    moduli = ModuliSet.for_bits(150)
    values = [(1 << k) + d for k in range(moduli.bits - 1) for d in (-1, 0, 1)]
    residues = np.array([[x % m for x in values] for m in moduli], dtype=np.uint32)
    columns = evaluated(residues, moduli, np.zeros(len(values), np.uint8))
    return list(kernels.interval_rns_lengths(place(columns), product_bounds(moduli)))


@not_by_ptx("floating point")
@check
def headers_of_no_number(kernels: Any, place: Place) -> list[Any]:
    """The first header that no number has: of a wrong sign, exponent or bound, and of 0 with a residue."""
    moduli, count, results = ModuliSet.for_bits(150), 700, []
    columns = evaluated(
        words(len(moduli), count, 3) % np.uint32(min(moduli)), moduli, np.zeros(count, np.uint8)
    )
    zero = evaluated(np.zeros((len(moduli), 1), np.uint32), moduli, np.zeros(1, np.uint8))
    columns[:, 5:6] = zero
    for row, value in (
        (-6, 2),
        (-5, 9),
        (-5, 2**32 - 1 - moduli.bits),
        (-3, 0),
        (-1, 0),
        (-1, 2**31 - 1),
        (0, 1),
    ):
        for places in ((), (0,), (5,), (699, 300)):
            wrong = columns.copy()
            wrong[row, list(places)] = value
            found = kernels.interval_rns_first_invalid(place(wrong), -moduli.bits, ACCURACY)
            results.append(np.array(-1 if found is None else found))
    return results


@check
def candidates_of_extrema(kernels: Any, place: Place) -> list[Any]:
    """Extrema with one, few and more candidates than come to the host at once, of either sign and 0."""
    moduli, results = ModuliSet.for_bits(150), []
    for count, equal in ((1, 1), (700, 1), (700, 90), (700, 700)):
        residues = words(len(moduli), count, 3) % np.uint32(min(moduli))
        residues[:, ::7] = 0
        residues[:, -equal:] = residues[:, -1:]
        for signs in (np.zeros(count), np.ones(count), np.arange(count) % 2):
            columns = evaluated(residues, moduli, signs.astype(np.uint8))
            for minimum in (False, True):
                results += kernels.interval_rns_candidates(place(columns), moduli.bits, 4, minimum)
    return [np.asarray(result) for result in results]


@check
def unset_flags(kernels: Any, place: Place) -> list[Any]:
    """None, as many as come to the host, one more, and all."""
    results = []
    for count, few in ((0, 5), (1, 5), (8, 5), (1003, 5), (5000, 128)):
        order = Random(count).sample(range(count), count)
        for unset in (0, 1, few, few + 1, count):
            flags = np.ones(count, dtype=np.bool_)
            flags[order[:unset]] = False
            results.append(np.asarray(kernels.find_unset(place(flags), few)))
    return results


@not_by_ptx("matrix units")
@check
def proofs_of_bounds(kernels: Any, place: Place) -> list[Any]:
    """Proofs for numbers within and beyond the bound, some with a wrong residue, at any alignment."""
    results = []
    for bits, size, count in (
        (150, 16, 300),
        (60, 30, 45),
        (200, 32, 70),
        (600, 17, 70),
        (1100, 32, 33),
        (2000, 24, 40),
    ):
        moduli = ModuliSet.for_bits(bits, size)
        bound = moduli.prefix(len(moduli) // 2).product // 5
        for low in (0, -bound):
            some = [
                0,
                bound // 3,
                bound >> 10,
                bound - (bound >> 10),
                bound + 1,
                2 * bound,
                4 * bound,
                low - 1,
            ]
            some += [-x for x in some] if low else [-1]
            numbers = [some[k % len(some)] for k in range(count)]
            residues = np.array([[x % m for x in numbers] for m in moduli], dtype=np.uint32)
            is_right = np.arange(count) % 7 < 6
            for k in (~is_right).nonzero()[0]:
                i = k % len(moduli)
                residues[i, k] = (int(residues[i, k]) + 1) % moduli[i]
            wide = np.full((len(moduli), count + 5), 2**32 - 1, dtype=np.uint32)
            wide[:, 3 : count + 3] = residues
            constants = byte_proof_constants(moduli, low, bound)
            for x in (place(residues), place(wide)[:, 3 : count + 3]):
                if not kernels.__name__.endswith("cuda.kernels"):  # it has no such kernel
                    results += 2 * [np.array([low <= x <= bound for x in numbers]) & is_right]
                    continue
                results.append(kernels.prove_bound(x, constants))
                with patch("rnsdask.backend.cuda.bound_proof._MOST_KEPT", 0):  # where it has coefficients
                    results.append(kernels.prove_bound(x, constants))
    return [*results, _proved_without_matrix_units(kernels, x, constants)]


@not_by_ptx("matrix units")
@check
def proofs_of_any_sums(kernels: Any, place: Place) -> list[Any]:
    """By bytes, of fractions and quotients that numbers hardly ever have: long carries, and the greatest."""
    random, results = Random(6), []
    for size, segment in ((2, 1), (4, 2), (3, 1), (3, 2)):
        every = ModuliSet.for_bits(90 * 8 * size, 8 * size)
        count, fraction = 60, 32 * 3 * segment
        moduli, others = every.prefix(count), every.moduli[count:]
        whole, greatest = 1 << fraction + 32 * segment, (1 << 31 if segment == 1 else 1 << 43)
        room, start = random.getrandbits(fraction), random.getrandbits(fraction)
        ends = [random.sample(range(3 * segment), 2) for _ in range(12)]
        added = [0, 1, room, room + 1, (1 << fraction) - 1]
        added += [1 << 32 * k for k in range(3 * segment)] + [
            abs((1 << 32 * a) - (1 << 32 * b)) for a, b in ends
        ]
        added = [x % (1 << fraction) for x in added]
        quotients = [random.choice((0, greatest - 1, random.randrange(greatest))) for _ in added]
        sums = [(q << fraction) + x for q, x in zip(quotients, added, strict=True)]
        # Number k has one of row k, and what is left of the rows for carries.
        common = [random.randrange(whole) for _ in range(count - len(sums))]
        rest = start + (2 ** (8 * size) - 1) * sum(common)
        coefficients = [(x - rest) % whole for x in sums] + common
        residues = np.eye(len(every), len(sums), dtype=np.uint32)
        residues[len(sums) : count] = 2 ** (8 * size) - 1
        parts = [p * w for p, w in zip(moduli.partial_products, moduli.partial_inverses, strict=True)]
        for k, q in enumerate(quotients):
            number = (
                sum(int(x) * p for x, p in zip(residues[:count, k], parts, strict=True)) - q * moduli.product
            )
            residues[count:, k] = [number % m for m in others]
        is_right = np.arange(len(sums)) % 3 < 2
        for k in (~is_right).nonzero()[0]:
            i = random.randrange(count, len(every))
            residues[i, k] = (int(residues[i, k]) + random.randrange(1, every[i])) % every[i]
        tables = ByteProofTables(moduli, others, tuple(range(len(every))), size, segment)
        constants = ByteProofConstants(tables, start, room)
        if kernels.__name__.endswith("cuda.kernels"):
            with patch("rnsdask.constants.proofs.key_coefficients", return_value=coefficients):
                results.append(kernels.prove_bound(place(residues), constants))
        else:
            results.append(np.array([x <= room for x in added]) & is_right)
    return results


def _proved_without_matrix_units(kernels: Any, x: Any, constants: Any) -> Any:
    """Nothing: another GPU of the process may have asked for the constants."""
    if not kernels.__name__.endswith("cuda.kernels"):
        return np.zeros(x.shape[1], dtype=np.bool_)
    with patch("rnsdask.backend.cuda.bound_proof.has_byte_proof", return_value=False):
        return kernels.prove_bound(x, constants)
