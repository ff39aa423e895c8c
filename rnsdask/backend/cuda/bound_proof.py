"""Proofs of a bound in one pass: by words with few moduli, by bytes with more."""

import cupy

from rnsdask.backend.cuda.byte_proof import has_byte_proof, prove_by_bytes
from rnsdask.backend.cuda.word_proof import prove_by_words
from rnsdask.backend.protocol import Array
from rnsdask.constants import (
    ByteProofConstants,
    WordProofConstants,
    byte_proof_constants,
    short_word_proof_constants,
)
from rnsdask.core.moduli import ModuliSet


def bound_proof(
    moduli: ModuliSet, first: int, low: int, high: int
) -> WordProofConstants | ByteProofConstants | None:
    by_words = short_word_proof_constants(moduli, low, high)
    if by_words:
        return by_words
    by_bytes = byte_proof_constants(moduli, low, high)
    return by_bytes if has_byte_proof(by_bytes) else None


def prove_bound(residues: Array, constants: WordProofConstants | ByteProofConstants) -> Array:
    if isinstance(constants, WordProofConstants):
        return prove_by_words(residues, constants)
    # Constants are kept for all GPUs of a process, of which another one may have the kernel.
    if not has_byte_proof(constants):
        return cupy.zeros(residues.shape[1], dtype=cupy.bool_)
    return prove_by_bytes(residues, constants)
