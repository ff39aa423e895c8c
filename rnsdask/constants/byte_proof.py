"""Constants of the proof of a bound by products of bytes, for processors that multiply matrices of them.

Only GPUs have this kernel (kernels/cuda/byte_proof.cu).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import gmpy2
import numpy as np
from numpy.typing import NDArray

from rnsdask.constants.arithmetic import modulus_table
from rnsdask.constants.factors import CACHED_SETS, last_residues, shoup_factors
from rnsdask.core.moduli import ModuliSet

GROUP = 16
"""Targets whose sums are made together."""

_LANES = 4  # threads among which a step's bytes are divided
_STEP = 32  # bytes
_MOST_STEPS = 90  # whose bytes of a warp's numbers fit the shared memory of all GPUs
_SUM_BITS = 128

# Fractions within a bound are 2**20 times as many as their error.
_ROOM_BITS = 20


@dataclass(frozen=True, eq=False)
class ByteProofTables:
    """What does not depend on the bound, with M' the product of the first moduli and k their number.

    Residues have `bytes` bytes, ``sources`` (k, 4) are the kernel's ``ProofSource``, ``targets`` (n - k, 5)
    its ``ProofTarget``. ``factors`` (groups, steps, bytes, 32, 4) are bytes, as matrix units take them, of
    what the bytes of ``u_i`` are multiplied by: in the first group, ``floor(2**fraction_bits / m_i)``; then
    ``M' / m_i`` modulo 16 targets each.
    """

    bytes: int
    fraction_bits: int
    sources: NDArray[np.uint32]
    targets: NDArray[np.uint32]
    factors: NDArray[np.uint32]


@dataclass(frozen=True, eq=False)
class ByteProofConstants:
    """Constants of a proof that numbers are from `low` to `high` and have the residues that the first give.

    A sum of ``u_i floor(2**F / m_i)`` and `start` has the integer part q and, for a number within the bound,
    a fraction up to `room`.
    """

    tables: ByteProofTables
    start: int
    room: int


def byte_proof_constants(
    moduli: ModuliSet, others: ModuliSet, low: int, high: int
) -> ByteProofConstants | None:
    """Constants to prove that numbers are from ``low <= 0`` to `high`, given the first moduli and the others.

    With ``u_i = |x_i / (M' / m_i)|`` modulo m_i, X' is the sum of ``u_i M' / m_i`` without q M'. The sum T of
    ``u_i floor(2**F / m_i)`` falls short of ``t = 2**F (X' / M' + q)`` by at most the error e, and with
    ``s = floor(-2**F low / M')``, ``0 <= T + s - 2**F q <= s + 2**F high / M' - e`` proves
    ``low <= X' <= high``. None if there are too many moduli, one of the others is too small for sums to be
    reduced at once, or the bound is too small beside the first.
    """
    tables = _tables(moduli, others)
    if tables is None:
        return None
    start, end = ((abs(limit) << tables.fraction_bits) // moduli.product for limit in (low, high))
    error = sum(m - 1 for m in moduli)
    is_wide = start + end >> _ROOM_BITS > error
    return ByteProofConstants(tables, start, start + end - error) if is_wide else None


@lru_cache(CACHED_SETS)
def _tables(moduli: ModuliSet, others: ModuliSet) -> ByteProofTables | None:
    """The constants for any bound."""
    size = 3 if max(*moduli, *others) <= 2**24 else 4
    steps = -(-size * -(-len(moduli) // _LANES) // (_STEP // _LANES))
    fraction_bits = _SUM_BITS - (len(moduli) + 1).bit_length()  # sums are below (k + 1) 2**fraction_bits
    greatest = _STEP * steps * 255 << 8 * size  # of a sum for a target, but for the quotient's term
    if steps > _MOST_STEPS:
        return None
    if any(greatest + (len(moduli) + 1) * m > m << 32 for m in others):
        return None
    whole = gmpy2.mpz(moduli.product)
    weights = [gmpy2.invert(whole // m, m) for m in moduli]
    sources = np.zeros((len(moduli), 4), dtype=np.uint32)
    sources[:, :2] = shoup_factors([int(w) for w in weights], list(moduli))
    sources[:, 2] = last_residues(moduli)
    products = np.array([int(-whole % m) for m in others], dtype=np.uint32)
    factors = [_of_fractions(moduli, fraction_bits, size), _of_targets(moduli, others, size)]
    return ByteProofTables(
        size,
        fraction_bits,
        sources,
        np.hstack([modulus_table(others), products[:, None]]),
        _as_units_take_them(np.concatenate(factors, axis=1), steps),
    )


def _of_fractions(moduli: ModuliSet, bits: int, size: int) -> NDArray[np.uint8]:
    """Bytes (k, 16, size, size) of fractions times 2**(8 b), for byte b of ``u_i``, modulo 2**128."""
    length = _SUM_BITS // 8
    found = np.zeros((len(moduli), size, GROUP * size), dtype=np.uint8)
    for i, m in enumerate(moduli):
        for b in range(size):
            value = ((1 << bits) // m << 8 * b) % (1 << _SUM_BITS)
            found[i, b, :length] = list(value.to_bytes(length, "little"))
    return found.reshape(len(moduli), size, GROUP, size).swapaxes(1, 2)


def _of_targets(moduli: ModuliSet, others: ModuliSet, size: int) -> NDArray[np.uint8]:
    """Bytes (k, targets, size, size) of ``|M' / m_i 2**(8 b)|`` modulo each target; of 16 n targets."""
    whole = gmpy2.mpz(moduli.product)
    found = np.zeros((len(moduli), -(-len(others) // GROUP) * GROUP, size, size), dtype=np.uint8)
    targets = np.array(list(others), dtype=np.uint64)
    values = np.array([_remainders(whole // m, others) for m in moduli], dtype=np.uint64)
    for b in range(size):
        found[:, : len(others), b] = values.astype("<u4")[:, :, None].view(np.uint8)[:, :, :size]
        values = (values << np.uint64(8)) % targets
    return found


def _remainders(value: Any, moduli: Iterable[int]) -> list[int]:
    return [int(value % m) for m in moduli]


def _as_units_take_them(factors: NDArray[np.uint8], steps: int) -> NDArray[np.uint32]:
    """Factors (k, rows, b, byte) as words (groups, steps, size, 32, 4).

    Thread 4 g + t of a warp has bytes of moduli t, t + 4, ... one after the other, 8 a step, and of 16 rows
    of a unit those of row g and g + 8: of all bytes of targets g and g + 8, two rows after the other.
    """
    count, rows, size, _ = factors.shape
    groups, length = rows // GROUP, -(-count // _LANES)
    padded = np.zeros((length * _LANES, *factors.shape[1:]), dtype=np.uint8)
    padded[:count] = factors
    lines = padded.reshape(length, _LANES, groups, 2, 8, size, size).transpose(2, 3, 6, 4, 1, 0, 5)
    filled = np.zeros((*lines.shape[:5], _STEP // _LANES * steps), dtype=np.uint8)
    filled[..., : length * size] = lines.reshape(*lines.shape[:5], length * size)
    # groups, size, 2 rows, g, t, steps, 2 halves, 4 bytes
    parts = filled.reshape(groups, size, 2, 8, _LANES, steps, 2, 4).transpose(0, 5, 1, 3, 4, 6, 2, 7)
    return np.ascontiguousarray(parts).view("<u4").reshape(groups, steps, size, 32, 4)
