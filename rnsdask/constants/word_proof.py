"""Constants of the proof of a bound by one fixed-point evaluation in words, for few moduli.

CPUs that multiply words of 52 bits have this kernel (kernels/cpu/word_proof.cpp), and GPUs with words of 31
(kernels/cuda/word_proof.cu).
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rnsdask.constants.factors import CACHED_SETS
from rnsdask.constants.keys import coefficient_slack, key_coefficients
from rnsdask.core.moduli import ModuliSet

_PRODUCT_BITS = 52  # of what a CPU adds up, without loss
_MOST_WORDS = 12  # of more, digits take less time
_MOST_MODULI = 2**11  # sums of so many products of 52 bits fit 64

# On GPUs; with more, bytes take less time.
_SHORT_BITS = 31
MOST_SHORT_WORDS = 8
MOST_SHORT_COEFFICIENTS = 256
"""Words of all coefficients that GPUs take as a parameter of the kernel."""

# Within the bound there are 2**12 and 2**28 times as many fractions as their error, if words are not too long
# for that; at least so many times as many, or nothing is proved.
_ROOM_BITS = 12
_SHORT_ROOM_BITS = 28
_LEAST_ROOM = 64


@dataclass(frozen=True, eq=False)
class WordProofConstants:
    """Constants of a proof that numbers are from `low` to `high`, by sums of x_i c_i modulo 2**F.

    ``coefficients[i]`` are the words of ``c_i = floor(2**F w_i / m_i)``, of `word_bits` bits each, the least
    significant first, and ``start`` those of a number that is added to each sum; of the last word `top_bits`
    bits count. A number is within the bound if the first `low_words` words are together at most `room`, and
    the others are 0.
    """

    coefficients: NDArray[np.uint64]
    start: NDArray[np.uint64]
    word_bits: int
    top_bits: int
    low_words: int
    room: int

    @property
    def words(self) -> int:
        """How many words sums have."""
        return len(self.start)


@lru_cache(CACHED_SETS)
def word_proof_constants(moduli: ModuliSet, low: int, high: int) -> WordProofConstants | None:
    """Constants to prove that numbers are from ``low <= 0`` to ``high < M/4``; None if words are too many."""
    word_bits = _PRODUCT_BITS - _residue_bits(moduli)
    if len(moduli) > _MOST_MODULI:
        return None
    return _constants_of(moduli, low, high, word_bits, 63 // word_bits, _ROOM_BITS, _MOST_WORDS)


@lru_cache(CACHED_SETS)
def short_word_proof_constants(moduli: ModuliSet, low: int, high: int) -> WordProofConstants | None:
    """The same with words of up to 31 bits, whose products are added up in 64, of which the first two count.

    None if words are more than MOST_SHORT_WORDS, or MOST_SHORT_COEFFICIENTS in all.
    """
    word_bits = min(_SHORT_BITS, 63 - _residue_bits(moduli) - len(moduli).bit_length())
    if len(moduli) * MOST_SHORT_WORDS > MOST_SHORT_COEFFICIENTS:
        return None
    return _constants_of(moduli, low, high, word_bits, 2, _SHORT_ROOM_BITS, MOST_SHORT_WORDS)


def _residue_bits(moduli: ModuliSet) -> int:
    return max(m - 1 for m in moduli).bit_length()


def _constants_of(
    moduli: ModuliSet, low: int, high: int, word_bits: int, low_words: int, room_bits: int, most_words: int
) -> WordProofConstants | None:
    """Constants of at most so many words, of which the first ones hold fractions within the bound.

    Where words are too many none are made: of many moduli they take longer than a chunk's proof.
    """
    error_bits = sum(moduli).bit_length()
    room_bits = min(room_bits, low_words * word_bits - error_bits - 2)
    bits = error_bits + room_bits + (moduli.product // (high + 1)).bit_length()
    words = -(-bits // word_bits)
    if words > most_words:
        return None
    error = coefficient_slack(moduli, bits)
    start, room = proof_window(moduli, low, high, bits, error)
    if room < _LEAST_ROOM * error:
        return None
    coefficients = [_words(c, words, word_bits) for c in key_coefficients(moduli, bits)]
    return WordProofConstants(
        np.array(coefficients, dtype=np.uint64),
        np.array(_words(start, words, word_bits), dtype=np.uint64),
        word_bits,
        bits - (words - 1) * word_bits,
        -(-room.bit_length() // word_bits),
        room,
    )


def proof_window(moduli: ModuliSet, low: int, high: int, bits: int, error: int) -> tuple[int, int]:
    """Start s and room of sums T of fractions that prove that numbers X are from ``low <= 0`` to `high`.

    T falls short of ``t = 2**bits X / M`` by at most the error. X is an integer: with s the greatest below
    ``2**bits (1 - low) / M`` and r below ``2**bits (high + 1) / M``, ``0 <= T + s <= s + r - error`` proves
    ``low <= X <= high``, as ``-s <= T <= t <= T + error <= r``.
    """
    start, most = (-(-((1 + abs(end)) << bits) // moduli.product) - 1 for end in (low, high))
    return start, start + most - error


def _words(value: Any, count: int, bits: int) -> list[int]:
    return [value >> bits * k & (1 << bits) - 1 for k in range(count)]
