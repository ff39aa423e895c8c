"""Product of all numbers of an array, exact: on Dask chunk by chunk, in a tree (:mod:`.rns.products`)."""

from functools import partial, reduce
from typing import Any

import dask.array as da
import numpy as np

from rnsdask.backend import to_backend
from rnsdask.core.moduli import ModuliSet
from rnsdask.core.overflow import overflow_mode
from rnsdask.core.scalar_int import ScalarInt
from rnsdask.lazy.lazy_ints import LazyInts
from rnsdask.lazy.map import map_values, reduce_chunks
from rnsdask.lazy.operands import Numbers
from rnsdask.lazy.tree import boxed, combine_tree
from rnsdask.rns.products import combine, factors_of_chunk, result_of
from rnsdask.rns.system import RNS


def prod(x: Numbers, overflow: str | None, split_every: int | None) -> Any:
    """Product of all numbers, as :meth:`.RNSArray.prod` says."""
    mode = overflow_mode(overflow)
    words, system = x.words, x.system
    if not isinstance(words, da.Array):
        return result_of(factors_of_chunk(words, system, mode), system, mode)
    partials = reduce_chunks(_factors_block, words, system=system, mode=mode)
    axes = tuple(range(words.ndim))
    merge = partial(_combine_blocks, moduli=system.moduli)
    factors = combine_tree(partials, merge, axes, "rns-prod", split_every, keepdims=False)
    result = map_values(_result_block, factors, system, mode, dtype=object)
    if mode != "flag":
        return LazyInts.of(result)
    value = LazyInts.of(map_values(_item, result, 0, dtype=object))
    return value, map_values(_item, result, 1, dtype=np.bool_)


def _factors_block(block: Any, *, system: RNS, mode: str) -> np.ndarray[Any, Any]:
    return boxed(factors_of_chunk(to_backend(block, "auto"), system, mode), block.ndim)


def _combine_blocks(blocks: Any, axis: Any, keepdims: bool, moduli: ModuliSet) -> Any:  # noqa: ARG001
    if blocks.size == 0:  # Dask tries functions on an empty array to learn what they return
        return blocks
    factors = reduce(partial(combine, moduli=moduli), blocks.flat)
    return boxed(factors, blocks.ndim) if keepdims else factors


def _result_block(factors: Any, system: RNS, mode: str) -> Any:
    result = result_of(factors, system, mode)
    return result if mode == "flag" else ScalarInt(result)


def _item(pair: tuple[int, bool], index: int) -> Any:
    return np.bool_(pair[1]) if index else ScalarInt(pair[0])
