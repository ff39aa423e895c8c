"""The kernel of the proof of a bound by one fixed-point evaluation in words."""

from functools import lru_cache
from typing import Any

import cupy
import numpy as np
from numpy.typing import NDArray

from rnsdask.backend.cuda import launching
from rnsdask.backend.cuda.launching import Parameter, is_aligned, row_stride
from rnsdask.backend.cuda_layout import WORD_PROOF
from rnsdask.backend.protocol import Array
from rnsdask.constants import WordProofConstants
from rnsdask.constants.factors import CACHED_SETS
from rnsdask.constants.proofs import MOST_SHORT_COEFFICIENTS, MOST_SHORT_WORDS

_NUMBERS = 4  # of a thread
_FEWEST_WORDS = 4  # that the kernel is compiled for; those that there are not are 0


def prove_by_words(residues: Array, constants: WordProofConstants) -> Array:
    count = residues.shape[1]
    proved = cupy.empty(count, dtype=cupy.bool_)
    start, masks, coefficients = _tables(constants)
    task = Parameter(
        WORD_PROOF,
        residues=residues,
        stride=row_stride(residues),
        count=count,
        is_aligned=is_aligned(residues),
        proved=proved,
        moduli=len(residues),
        words=max(constants.words, _FEWEST_WORDS),
        window=(start, constants.room, constants.word_bits, masks),
        coefficients=coefficients,
    )
    launching.launch("word_proof", "prove_by_words", -(-count // _NUMBERS), (task,))
    return proved


@lru_cache(CACHED_SETS)
def _tables(constants: WordProofConstants) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """What is added to each word, the bits that count of it, and coefficients, as the kernel takes them."""
    start = np.zeros(MOST_SHORT_WORDS, dtype=np.uint64)
    start[: constants.words] = constants.start
    masks = np.zeros(MOST_SHORT_WORDS, dtype=np.uint32)
    masks[: constants.words] = (1 << constants.word_bits) - 1
    masks[constants.words - 1] = (1 << constants.top_bits) - 1
    moduli, words = constants.coefficients.shape
    padded = np.zeros((moduli, max(words, _FEWEST_WORDS)), dtype=np.uint32)
    padded[:, :words] = constants.coefficients
    coefficients = np.zeros(MOST_SHORT_COEFFICIENTS, dtype=np.uint32)
    coefficients[: padded.size] = padded.ravel()
    return start, masks, coefficients
