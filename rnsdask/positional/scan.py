"""Running sums, extrema and products of positional numbers along an axis, as those of residues.

How chunks continue is said by :mod:`rnsdask.rns.axis_scan`. No Dask in here.
"""

from dataclasses import dataclass
from typing import Any

import gmpy2
import numpy as np

from rnsdask.backend import Array
from rnsdask.core.place import Place
from rnsdask.positional import products
from rnsdask.positional.compare import compare
from rnsdask.positional.integers import from_integers, to_integers
from rnsdask.positional.operands import limbs_of
from rnsdask.positional.reduce import sums
from rnsdask.positional.resize import resized
from rnsdask.positional.system import Positional
from rnsdask.rns.axis_scan import Fold, Scan, better

# Sums of so many limbs stay far below 2**63, and CuPy's cumsum is right.
_BLOCK = 2**26


@dataclass(frozen=True)
class PositionalSums(Scan[Positional]):
    """Running sums along an axis, in as many limbs as hold them all; those in range are kept."""

    def total(self, block: Array) -> Any:
        """Sums along the axis, an object array of Python ints."""
        return sums(block, self.system, (self.axis,))

    def join(self, first: Any, second: Any) -> Any:
        """Sums of both."""
        return first + second

    def results(self, block: Array, before: Any | None, place: Place) -> Array:
        """Limbs of the running sums."""
        system, length = self.system, int(block.shape[1 + self.axis])
        totals = [] if before is None else list(map(gmpy2.mpz, before.ravel().tolist()))
        longest = max((abs(total).bit_length() for total in totals), default=0)
        rows = limbs_of(max(system.bits, longest) + length.bit_length() + 2)
        shape = (rows, *block.shape[1 : 1 + self.axis], 1, *block.shape[2 + self.axis :])
        start = np.zeros_like(block, shape=shape, order="C")
        if totals:
            start = from_integers(totals, rows, block).reshape(shape)
        found = _running_sums(block, self.axis + 1, start, system.signed)
        flat = found.reshape(rows, -1)
        words, outside = resized(flat, True, system.rows, system.top_bits, system.signed)
        if bool(outside.any()):
            index = int(outside.argmax())
            value = int(to_integers(flat[:, index : index + 1], True)[0])
            raise system.overflow_error(value, place.flat_index(index))
        return words.reshape(block.shape)


def _running_sums(words: Array, axis: int, start: Array, signed: bool) -> Array:
    """Running sums along an axis of words (k, *shape), after (rows, *reduced), modulo 2**(32 rows)."""
    out = np.empty_like(words, shape=(len(start), *words.shape[1:]), order="C")
    for first in range(0, words.shape[axis], _BLOCK):
        block: Any = (slice(None),) * (axis - 1) + (slice(first, first + _BLOCK),)
        carry: Any = np.int64(0)
        for i, added in enumerate(start):
            if i < len(words):
                row = words[i][block]
                row = row.view(np.int32) if signed and i == len(words) - 1 else row
                carry = np.cumsum(row, axis=axis - 1, dtype=np.int64) + carry
            carry = carry + added.astype(np.int64)
            out[i][block] = (carry & np.int64(2**32 - 1)).astype(np.uint32)
            carry >>= np.int64(32)
        last: Any = (slice(None),) * axis + (slice(first + _BLOCK - 1, first + _BLOCK),)
        start = out[last] if first + _BLOCK < words.shape[axis] else start
    return out


@dataclass(frozen=True)
class PositionalExtrema(Fold[Positional]):
    """Running maxima or minima along an axis, by comparisons of pairs."""

    minimum: bool = False

    def join(self, first: Any, second: Any) -> Any:
        """Limbs of the extrema of both."""
        return better(first, second, compare(first, second, self.system), self.minimum)


@dataclass(frozen=True)
class PositionalProducts(Fold[Positional]):
    """Running products along an axis (:mod:`.positional.products`)."""

    def join(self, first: Any, second: Any) -> Any:
        """Factors of both."""
        return products.join(first, second, self.system)

    def begin(self, block: Array) -> Array:
        """Factors of single numbers."""
        return products.factors_of(block, self.system, self.mode)

    def finish(self, found: Array, place: Place) -> Array:
        """Limbs of products, and with ``"flag"`` a mask."""
        return products.finish(found, self.system, self.mode, place.flat_index)
