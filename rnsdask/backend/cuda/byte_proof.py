"""The kernel of the proof of a bound."""

import cupy

from rnsdask.backend.cuda import launching
from rnsdask.backend.cuda.launching import (
    Parameter,
    has_matrix_units,
    is_aligned,
    on_device,
    row_stride,
    shared_bytes,
)
from rnsdask.backend.cuda_layout import BYTE_PROOF, PROOF_SUMS, WARP, proof_options
from rnsdask.backend.protocol import Array
from rnsdask.constants import ByteProofConstants, byte_proof_constants
from rnsdask.core.moduli import ModuliSet

_WORD = 2**64


def bound_proof(moduli: ModuliSet, others: ModuliSet, low: int, high: int) -> ByteProofConstants | None:
    has_kernel = has_matrix_units(cupy.cuda.runtime.getDevice())
    return byte_proof_constants(moduli, others, low, high) if has_kernel else None


def prove_bound(residues: Array, constants: ByteProofConstants) -> Array:
    tables, count = constants.tables, residues.shape[1]
    # Constants are kept for all GPUs of a process, of which another one may have the kernel.
    if not has_matrix_units(cupy.cuda.runtime.getDevice()):
        return cupy.zeros(count, dtype=cupy.bool_)
    proved = cupy.empty(count, dtype=cupy.bool_)
    steps = tables.factors.shape[1]
    task = Parameter(
        BYTE_PROOF,
        residues=residues,
        stride=row_stride(residues),
        count=count,
        is_aligned=is_aligned(residues),
        sources=on_device(tables, "sources"),
        source_count=len(tables.sources),
        targets=on_device(tables, "targets"),
        target_count=len(tables.targets),
        table=on_device(tables, "factors"),
        steps=steps,
        window=(_words(constants.start), _words(constants.room), tables.fraction_bits),
        proved=proved,
    )
    # Of a warp: its numbers' bytes, sums and quotients.
    words = WARP * (8 * steps + 2 * PROOF_SUMS + 1)
    warps = next(warps for warps in (8, 4, 2, 1) if shared_bytes(warps * words) or warps == 1)
    block, options = warps * WARP, proof_options(tables.bytes)
    shared = shared_bytes(warps * words)
    launching.launch("byte_proof", "prove_bound", count, (task,), block=block, shared=shared, defines=options)
    return proved


def _words(value: int) -> tuple[int, int]:
    """A number of 128 bits, the lower half first."""
    return value % _WORD, value // _WORD
