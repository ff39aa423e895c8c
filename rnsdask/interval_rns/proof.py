"""Proof of headers: that sign and interval of each number of a chunk are those of its residues.

An interval that holds one evaluated from the residues holds X/M. Fresh numbers carry the very interval of
such an evaluation, the others mostly hold a tighter one, and Python integers decide the rest. No Dask here.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from rnsdask.backend import Array, kernels_of
from rnsdask.core.errors import abbreviate
from rnsdask.core.layout import as_matrix
from rnsdask.core.moduli import ModuliSet
from rnsdask.interval_rns import layout
from rnsdask.rns.blocks import batches
from rnsdask.rns.convert import residues_to_ints
from rnsdask.rns.interval import interval_evaluation, least_accuracy
from rnsdask.rns.system import RNS

# Numbers looked at a time: they bound the memory beside a chunk.
_BLOCK = 2**16

# Exponents of intervals that have anything in common differ by less.
_FAR = 8


@dataclass(frozen=True)
class WrongHeader:
    """The first number of a chunk whose header is not that of its residues.

    Attributes
    ----------
    index : int
        Its flat (C order) index.
    magnitude : int
        What its residues say.
    sign, exponent : int
    low, upp : float
        What its header says.
    """

    index: int
    magnitude: int
    sign: int
    low: float
    upp: float
    exponent: int

    def text(self) -> str:
        """Say what is wrong, for a message that has named the number."""
        return (
            f"its residues are those of {abbreviate(self.magnitude)}, its header has the sign {self.sign} "
            f"and X/M from {self.low!r} to {self.upp!r} times 2**{self.exponent}"
        )


def find_wrong_header(columns: Array, moduli: ModuliSet) -> WrongHeader | None:
    """Find the first number whose header is wrong, exactly; None if there is none.

    A header is right if the sign is 0 or 1, the interval holds X/M and is as narrow and normalised as
    :mod:`.layout` says, and all of it is 0 just for 0.

    Parameters
    ----------
    columns : array of uint32, shape (n + 6, *shape)
        NumPy or CuPy; each residue below its modulus, anything in the headers.
    """
    matrix = as_matrix(columns)
    for start in range(0, matrix.shape[1], _BLOCK):
        block = matrix[:, start : start + _BLOCK]
        (wrong,) = (~_is_right(block, moduli)).nonzero()
        if wrong.size:
            chosen = block[:, wrong[:1]]
            parts = {name: layout.part_of(chosen, moduli, name)[0].item() for name in layout.PART_DTYPES}
            parts["sign"] = int(chosen[len(moduli)][0])
            magnitude = residues_to_ints(layout.residues_of(chosen, moduli), moduli)[0]
            return WrongHeader(start + int(wrong[0]), int(magnitude), **parts)
    return None


def _is_right(columns: Array, moduli: ModuliSet) -> Array:
    """Boolean (N,): the header is that of the residues."""
    residues = layout.residues_of(columns, moduli)
    low, upp, exponent = (layout.part_of(columns, moduli, name) for name in ("low", "upp", "exponent"))
    is_zero = ~residues.any(axis=0)
    right = is_zero & ~columns[len(moduli) :].any(axis=0)
    follow = layout.follow_rules(residues, moduli, columns[len(moduli)], low, upp, exponent)
    (open_,) = (~is_zero & follow).nonzero()
    for accuracy in (layout.new_accuracy(moduli), 1.02 * float(least_accuracy(len(moduli)))):
        if not open_.size:
            break
        chosen = kernels_of(residues).gather(residues, open_)
        holds = _holds(low[open_], upp[open_], exponent[open_], chosen, moduli, accuracy)
        right[open_[holds]] = True
        open_ = open_[~holds]
    for part in batches(open_, len(residues)):
        stored = (low[part].tolist(), upp[part].tolist(), exponent[part].tolist())
        magnitudes = residues_to_ints(kernels_of(residues).gather(residues, part), moduli)
        exact = list(_hold_exactly(magnitudes.tolist(), *stored, moduli))
        right[part] = np.asarray(np.array(exact, dtype=np.bool_), like=right)
    return right


def _holds(
    low: Array, upp: Array, exponent: Array, residues: Array, moduli: ModuliSet, accuracy: float
) -> Array:
    """Boolean (N,): each interval holds one that is evaluated from the residues."""
    found = interval_evaluation(residues, RNS(moduli), accuracy)
    other_low, other_upp, other_exponent = layout.normalised(found.low, found.upp, found.exponent)
    shift = np.clip(exponent.astype(np.int64) - other_exponent, -_FAR, _FAR).astype(np.int32)
    return (np.ldexp(low, shift) <= other_low) & (other_upp <= np.ldexp(upp, shift))


def _hold_exactly(
    magnitudes: list[int], low: list[float], upp: list[float], exponents: list[int], moduli: ModuliSet
) -> Iterator[bool]:
    for magnitude, least, greatest, exponent in zip(magnitudes, low, upp, exponents, strict=True):
        # Further exponents hold no number from 1 to M - 1, and would take memory.
        if not -moduli.bits - _FAR <= exponent <= _FAR:
            yield False
            continue
        scale = Fraction(2) ** exponent * moduli.product
        yield Fraction(least) * scale <= magnitude <= Fraction(greatest) * scale
