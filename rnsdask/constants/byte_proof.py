"""Constants of the proof of a bound by products of bytes, for processors that multiply matrices of them.

Only GPUs have this kernel (kernels/cuda/byte_proof.cu).
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from rnsdask.constants.factors import CACHED_SETS
from rnsdask.constants.keys import coefficient_slack, key_coefficients
from rnsdask.constants.word_proof import proof_window
from rnsdask.core.moduli import ModuliSet

PROOF_WORDS = 8
"""Words of 32 bits of the sums that are made together."""

_LANES = 4  # threads among which a step's bytes are divided
_STEP = 32  # bytes
_WORD_BITS = 32
_WINDOW_BITS = 128

# Sums within a bound are at least 2**48 times as many as their error.
_ROOM_BITS = 48


@dataclass(frozen=True, eq=False)
class ByteProofTables:
    """What depends on the moduli and on how many words of 32 bits sums have, not on the bound otherwise.

    Residues have `bytes` bytes. ``factors`` (groups, steps, 2, 32, 4) are bytes, as matrix units take them,
    of the coefficients ``c_i = floor(2**(32 words) w_i / m_i)`` times ``2**(8 b)``, for byte b of a residue:
    of PROOF_WORDS words a group. Sums are too low by at most `error`.
    """

    bytes: int
    words: int
    factors: NDArray[np.uint32]
    error: int


@dataclass(frozen=True, eq=False)
class ByteProofConstants:
    """Constants of a proof that numbers are from `low` to `high`.

    A number is within the bound if its sum and `start`, modulo ``2**(32 words)``, are at most `room`.
    """

    tables: ByteProofTables
    start: int
    room: int


def byte_proof_constants(moduli: ModuliSet, low: int, high: int) -> ByteProofConstants:
    """Constants to prove that numbers are from ``low <= 0`` to ``high < M/4``.

    Sums are so long that at least ``2**48`` times their error is within the bound.
    """
    size = -(-(max(moduli) - 1).bit_length() // 8)
    bits = _ROOM_BITS + sum(moduli).bit_length() + (moduli.product // (high + 1)).bit_length()
    words = max(-(-bits // _WORD_BITS), _WINDOW_BITS // _WORD_BITS)
    tables = _tables(moduli, max(size, 2), words)
    return ByteProofConstants(tables, *proof_window(moduli, low, high, _WORD_BITS * words, tables.error))


@lru_cache(CACHED_SETS)
def _tables(moduli: ModuliSet, size: int, words: int) -> ByteProofTables:
    steps = -(-size * -(-len(moduli) // _LANES) // (_STEP // _LANES))
    bits, groups = _WORD_BITS * words, -(-words // PROOF_WORDS)
    factors = np.zeros((len(moduli), size, groups * PROOF_WORDS * _WORD_BITS // 8), dtype=np.uint8)
    for i, coefficient in enumerate(key_coefficients(moduli, bits)):
        for b in range(size):
            value = (coefficient << 8 * b) % (1 << bits)
            factors[i, b, : bits // 8] = np.frombuffer(value.to_bytes(bits // 8, "little"), dtype=np.uint8)
    return ByteProofTables(size, words, _as_units_take_them(factors, steps), coefficient_slack(moduli, bits))


def _as_units_take_them(factors: NDArray[np.uint8], steps: int) -> NDArray[np.uint32]:
    """Factors (k, b, byte) as words (groups, steps, 2, 32, 4).

    Thread 4 g + t of a warp has bytes of residues t, t + 4, ... one after the other, 8 a step, and of 16 rows
    of a unit those of row g and g + 8: two bytes of word g, and in the other unit two more.
    """
    count, size, length = factors.shape
    runs = -(-count // _LANES)
    padded = np.zeros((runs * _LANES, size, length), dtype=np.uint8)
    padded[:count] = factors
    # runs, t, b, groups, g, 2 units, 2 rows
    lines = padded.reshape(runs, _LANES, size, -1, PROOF_WORDS, 2, 2).transpose(3, 5, 6, 4, 1, 0, 2)
    filled = np.zeros((*lines.shape[:5], _STEP // _LANES * steps), dtype=np.uint8)
    filled[..., : runs * size] = lines.reshape(*lines.shape[:5], runs * size)
    # groups, 2 units, 2 rows, g, t, steps, 2 halves, 4 bytes
    parts = filled.reshape(-1, 2, 2, PROOF_WORDS, _LANES, steps, 2, 4).transpose(0, 5, 1, 3, 4, 6, 2, 7)
    return np.ascontiguousarray(parts).view("<u4").reshape(-1, steps, 2, 32, 4)
