"""The proof of a bound in one pass, by products of bytes."""

from typing import NamedTuple

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
from rnsdask.backend.cuda.layout import BYTE_PROOF, WARP
from rnsdask.backend.cuda.variants import proof_division, proof_options
from rnsdask.backend.protocol import Array
from rnsdask.constants import ByteProofConstants, byte_proof_constants
from rnsdask.constants.proofs import MOST_WORDS, ByteProofTables
from rnsdask.core.moduli import ModuliSet

_MOST_KEPT = 3 * 2**10
"""Vectors of coefficients, of 16 bytes, that are kept in shared memory, at most."""


class _Shape(NamedTuple):
    """How a proof is divided: warps of a block, bytes that they share, whether coefficients are there."""

    warps: int
    shared: int
    is_kept: bool


def has_byte_proof(constants: ByteProofConstants) -> bool:
    """Whether the current GPU has the kernel, and memory for the bytes of a warp's numbers."""
    return has_matrix_units(cupy.cuda.runtime.getDevice()) and _shape(constants.tables).warps > 0


def bound_proof(moduli: ModuliSet, first: int, low: int, high: int) -> ByteProofConstants | None:
    constants = byte_proof_constants(moduli, low, high)
    return constants if has_byte_proof(constants) else None


def prove_bound(residues: Array, constants: ByteProofConstants) -> Array:
    # Constants are kept for all GPUs of a process, and perhaps only another GPU has the kernel.
    if not has_byte_proof(constants):
        return cupy.zeros(residues.shape[1], dtype=cupy.bool_)
    tables, count = constants.tables, residues.shape[1]
    shape = _shape(tables)
    proved = cupy.empty(count, dtype=cupy.bool_)
    task = Parameter(
        BYTE_PROOF,
        residues=residues,
        stride=row_stride(residues),
        count=count,
        is_aligned=is_aligned(residues),
        moduli=len(tables.moduli),
        steps=tables.steps,
        passes=tables.passes,
        **{name: on_device(tables, name) for name in ("table", "rows", "compared", "tests")},
        window=(_in_words(constants.start), _in_words(constants.room)),
        proved=proved,
    )
    launching.launch(
        "byte_proof",
        "prove_bound",
        count,
        (task,),
        block=shape.warps * WARP,
        shared=shape.shared,
        defines=proof_options(tables.bytes, tables.words, tables.is_wide, shape.is_kept),
    )
    return proved


def _shape(tables: ByteProofTables) -> _Shape:
    """Shape of a block with as many warps as its memory allows, or 0."""
    is_kept = tables.vectors <= _MOST_KEPT
    own = 8 * WARP * tables.steps  # words of a warp: its numbers' bytes
    common = 4 * tables.vectors if is_kept else 0
    shares = (
        (warps, shared_bytes(warps * own + common)) for warps in range(proof_division(is_kept)[0], 0, -1)
    )
    return _Shape(*next((share for share in shares if share[1]), (0, 0)), is_kept)


def _in_words(value: int) -> list[int]:
    """A fraction in words of 32 bits, the lowest first."""
    return [value >> 32 * k & 0xFFFFFFFF for k in range(MOST_WORDS)]
