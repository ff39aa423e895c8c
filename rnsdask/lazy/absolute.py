"""Absolute values of arrays of residues, lazy on Dask (:mod:`rnsdask.rns.absolute`)."""

from typing import Any

import numpy as np

from rnsdask.backend import Array
from rnsdask.core import ranges
from rnsdask.core.overflow import overflow_mode
from rnsdask.core.place import Place
from rnsdask.lazy.growing import grown
from rnsdask.lazy.map import map_chunks
from rnsdask.lazy.operands import Numbers, filled_like, made_like
from rnsdask.rns.absolute import absolute as absolute_of_chunk
from rnsdask.rns.system import RNS


def absolute(x: Numbers, *, overflow: str | None = None) -> Any:
    """Absolute value of each number, as :func:`.functions.absolute` says."""
    (x,), overflow = grown(ranges.absolute, overflow, x)
    mode, system, words = overflow_mode(overflow, x.system), x.system, x.words
    if not system.signed:
        result = made_like((x,), words, system, "raise")
        return (result, filled_like(words, 0, np.bool_)) if mode == "flag" else result
    rows = system.rows + (mode == "flag")
    words = map_chunks(_absolute_block, words, rows=rows, located=True, system=system, mode=mode)
    return made_like((x,), words, system, mode)


def _absolute_block(block: Array, *, system: RNS, mode: str, place: Place) -> Array:
    return absolute_of_chunk(block, system, mode, place.flat_index)
