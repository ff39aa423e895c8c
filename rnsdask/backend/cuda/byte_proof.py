"""The kernel of the proof of a bound by products of bytes."""

import cupy

from rnsdask.backend.cuda import launching
from rnsdask.backend.cuda.launching import (
    Parameter,
    has_matrix_units,
    is_aligned,
    most_shared,
    on_device,
    row_stride,
    shared_bytes,
)
from rnsdask.backend.cuda_layout import BLOCK, BYTE_PROOF, WARP, proof_options
from rnsdask.backend.protocol import Array
from rnsdask.constants import ByteProofConstants
from rnsdask.constants.byte_proof import LOW_WORDS


def has_byte_proof(constants: ByteProofConstants) -> bool:
    """Whether the current GPU has the kernel, and memory for the bytes of a warp's numbers."""
    has_units = has_matrix_units(cupy.cuda.runtime.getDevice())
    return has_units and _shared(constants.tables.steps)[0] > 0


def prove_by_bytes(residues: Array, constants: ByteProofConstants) -> Array:
    tables, count = constants.tables, residues.shape[1]
    warps, shared = _shared(tables.steps)
    proved = cupy.empty(count, dtype=cupy.bool_)
    task = Parameter(
        BYTE_PROOF,
        residues=residues,
        stride=row_stride(residues),
        count=count,
        is_aligned=is_aligned(residues),
        moduli=len(residues),
        table=on_device(tables, "factors"),
        steps=tables.steps,
        words=tables.words,
        segment=tables.segment,
        window=(_low_words(constants.start), _low_words(constants.room)),
        proved=proved,
    )
    blocks = 2 if 2 * shared <= most_shared(cupy.cuda.runtime.getDevice()) else 1
    block, options = warps * WARP, proof_options(tables.bytes, blocks)
    launching.launch("byte_proof", "prove_bound", count, (task,), block=block, shared=shared, defines=options)
    return proved


def _shared(steps: int) -> tuple[int, int]:
    """Warps of a block, and the bytes that they share, for so many steps; 0 if the GPU has less for one."""
    own = 8 * WARP * steps  # words of a warp: its numbers' bytes
    shares = ((warps, shared_bytes(warps * own)) for warps in range(BLOCK // WARP, 0, -1))
    return next((share for share in shares if share[1]), (0, 0))


def _low_words(value: int) -> list[int]:
    """A number of 128 bits in words, the lowest first."""
    return [value >> 32 * k & 0xFFFFFFFF for k in range(LOW_WORDS)]
