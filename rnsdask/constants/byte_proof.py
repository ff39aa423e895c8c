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

LOW_WORDS = 4
"""Words of 32 bits of a sum that may be other than 0."""

_SEGMENTS = 4  # of the words of a sum, each with a thread
_LANES = 4  # threads among which a step's bytes are divided
_STEP = 32  # bytes
_WORD_BITS = 32

# Sums within a bound are at least 2**48 times as many as their error.
_ROOM_BITS = 48


@dataclass(frozen=True, eq=False)
class ByteProofTables:
    """What depends on the moduli and on how many words of 32 bits sums have, not on the bound otherwise.

    Residues have `bytes` bytes. Sums are too low by at most `error`.
    """

    moduli: ModuliSet
    bytes: int
    words: int
    error: int

    @property
    def steps(self) -> int:
        """How many times 32 bytes, 8 for each of four threads, hold the bytes of a number."""
        runs = -(-len(self.moduli) // _LANES)
        return -(-runs * self.bytes // (_STEP // _LANES))

    @property
    def segment(self) -> int:
        """Words of each of four segments of a sum."""
        return max(-(-self.words // _SEGMENTS), LOW_WORDS)

    @property
    def factors(self) -> NDArray[np.uint32]:
        """The table (segment, steps, 32, 4), made anew: hosts need none, and it is great with many moduli.

        It has bytes, as matrix units take them, of the coefficients ``c_i = floor(2**(32 words) w_i / m_i)``
        times ``2**(8 b)``, for byte b of a residue.
        """
        bits = _WORD_BITS * self.words
        shape = len(self.moduli), self.bytes, _SEGMENTS * self.segment * _WORD_BITS // 8
        factors = np.zeros(shape, dtype=np.uint8)
        for i, coefficient in enumerate(key_coefficients(self.moduli, bits)):
            for b in range(self.bytes):
                value = ((coefficient << 8 * b) % (1 << bits)).to_bytes(bits // 8, "little")
                factors[i, b, : bits // 8] = np.frombuffer(value, dtype=np.uint8)
        return _as_units_take_them(factors, self.steps)


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
    words = max(-(-bits // _WORD_BITS), LOW_WORDS)
    tables = _tables(moduli, max(size, 2), words)
    return ByteProofConstants(tables, *proof_window(moduli, low, high, _WORD_BITS * words, tables.error))


@lru_cache(CACHED_SETS)
def _tables(moduli: ModuliSet, size: int, words: int) -> ByteProofTables:
    return ByteProofTables(moduli, size, words, coefficient_slack(moduli, _WORD_BITS * words))


def _as_units_take_them(factors: NDArray[np.uint8], steps: int) -> NDArray[np.uint32]:
    """Factors (k, b, byte) as words (segment, steps, 32, 4).

    Thread 4 g + t of a warp has bytes of residues t, t + 4, ... one after the other, 8 a step, in column g of
    two matrices: those of byte g % 2 of a word of segment g // 2, and of byte g % 2 + 2.
    """
    count, size, length = factors.shape
    runs = -(-count // _LANES)
    padded = np.zeros((runs * _LANES, size, length), dtype=np.uint8)
    padded[:count] = factors
    # runs, t, b, segments, words, 2 matrices, 2 bytes
    parts = padded.reshape(runs, _LANES, size, _SEGMENTS, -1, 2, 2).transpose(4, 5, 3, 6, 1, 0, 2)
    filled = np.zeros((*parts.shape[:5], _STEP // _LANES * steps), dtype=np.uint8)
    filled[..., : runs * size] = parts.reshape(*parts.shape[:5], runs * size)
    # words, 2 matrices, segments, 2 bytes, t, steps, 2 halves, 4 bytes
    columns = filled.reshape(-1, 2, _SEGMENTS, 2, _LANES, steps, 2, 4).transpose(0, 5, 2, 3, 4, 1, 6, 7)
    return np.ascontiguousarray(columns).view("<u4").reshape(-1, steps, 32, 4)
