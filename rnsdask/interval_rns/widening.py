"""Conversion of signed integers with intervals to residues of a wider signed system, and back.

The *wide* system has the moduli of the numbers and some more, so that its symmetric range holds every number
and the exact results that are computed there. On the way back, the first residues of a result and its sign
give its magnitude modulo M. Stored intervals show how few moduli a base extension needs.
"""

import math
from typing import Any

import numpy as np

from rnsdask.backend import Array, backend_name, kernels_of
from rnsdask.core.moduli import ModuliSet
from rnsdask.core.operations import OPERATIONS
from rnsdask.core.place import Locate
from rnsdask.core.wide_moduli import WideModuli
from rnsdask.interval_rns import layout
from rnsdask.interval_rns.arithmetic import overflow_error
from rnsdask.interval_rns.convert import check_range
from rnsdask.interval_rns.system import IntervalRNS
from rnsdask.interval_rns.wide_system import rounded, wide_system
from rnsdask.rns.blocks import column_of, matrices, with_overflow
from rnsdask.rns.compare import compare, sign
from rnsdask.rns.extend import base_extend
from rnsdask.rns.system import RNS


def magnitude_bits(columns: Array, moduli: ModuliSet) -> int:
    """Bits that hold every magnitude of a chunk (n + 6, *shape), from the stored intervals; at least 1."""
    exponents = layout.part_of(columns, moduli, "exponent")
    if not exponents.size:
        return 1
    lowest = np.full_like(exponents, -moduli.bits)  # as of 0
    greatest = np.where(layout.nonzero(columns, moduli), exponents, lowest).max()
    return max(int(greatest) + moduli.bits, 1)


def extended_magnitudes(columns: Array, moduli: ModuliSet, targets: ModuliSet) -> Array:
    """Residues (k, *shape) of the magnitudes of a chunk (n + 6, *shape) modulo each target."""
    bits = rounded(magnitude_bits(columns, moduli))
    known = RNS(moduli, bound=2**bits if bits < moduli.bits else None)
    return base_extend(layout.residues_of(columns, moduli), known, targets)


def change_moduli(columns: Array, moduli: ModuliSet, targets: ModuliSet, locate: Locate = int) -> Array:
    """Convert columns to other moduli; ValueError if a number is out of their range."""
    if targets.product < moduli.product:
        check_range(columns, moduli, IntervalRNS(targets), repr(targets), locate)
    magnitudes = extended_magnitudes(columns, moduli, targets)
    return layout.evaluated(magnitudes, targets, layout.is_negative(columns, moduli))


def widened(columns: Array, moduli: ModuliSet, wide: RNS) -> Array:
    """Convert columns (n + 6, *shape) to residues (w, *shape) in a wide system."""
    magnitudes = extended_magnitudes(columns, moduli, wide.moduli)
    return np.where(
        layout.is_negative(columns, moduli), layout.complement(magnitudes, wide.moduli), magnitudes
    )


def narrowed(
    residues: Array,
    wide: RNS,
    moduli: ModuliSet,
    mode: str,
    locate: Locate = int,
    source: WideModuli | None = None,
) -> Array:
    """Convert residues (w, *shape) in a wide system to columns."""
    negative = sign(residues, wide) < 0
    own = residues[: len(moduli)]
    magnitudes = np.where(negative, layout.complement(own, moduli), own)
    columns = layout.evaluated(magnitudes, moduli, negative)
    if mode == "wrap":
        return columns
    outside = _outside(residues, wide, moduli.product - 1)

    def error(index: int) -> Exception:
        return overflow_error(wide.decode_at(residues, index), locate(index), moduli, source)

    return with_overflow(columns, outside, mode, error)


def _outside(residues: Array, wide: RNS, greatest: int) -> Array:
    """Mask (*shape) of the magnitudes above the greatest one allowed."""
    if wide.known_magnitude <= greatest:
        return np.zeros_like(residues[0], dtype=np.bool_)
    ndim = residues.ndim - 1
    low, high = (compare(residues, column_of(end, wide.moduli, ndim), wide) for end in (-greatest, greatest))
    return (low < 0) | (high > 0)


def apply(
    name: str,
    *blocks: Array,
    moduli: ModuliSet,
    mode: str,
    locate: Locate = int,
    source: WideModuli | None = None,
) -> Array:
    """Apply one of :data:`.OPERATIONS` to a chunk of each operand, in a system that holds the exact results.

    The intervals show how many moduli that takes. Parameters and results are as in :func:`.arithmetic.apply`.
    """
    sizes = [magnitude_bits(block, moduli) for block in blocks]
    terms = OPERATIONS[name].terms
    bits = rounded(max(sum(sizes[k] for k in factors) for _, factors in terms) + len(terms) - 1)
    wide = wide_system(moduli, bits).with_bound(2**bits)
    operands, shape = matrices(*(widened(block, moduli, wide) for block in blocks))
    prototype: Any = next((block for block in operands if backend_name(block) == "cuda"), operands[0])
    out = np.empty_like(prototype, shape=(wide.rows, math.prod(shape)), order="C")
    kernels_of(out).apply(name, operands, wide.moduli, out)
    return narrowed(out.reshape(wide.rows, *shape), wide, moduli, mode, locate, source)
