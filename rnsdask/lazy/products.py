"""Products of all numbers of an array or along axes, exact: on Dask chunk by chunk, in a tree.

Chunks of residues use :mod:`.rns.products`, chunks of positional numbers :mod:`.positional.arithmetic`.
"""

import math
from functools import partial, reduce
from itertools import pairwise
from typing import Any

import dask.array as da
import numpy as np

from rnsdask.backend import Array, check_backend, to_backend
from rnsdask.core import rows
from rnsdask.core.coprime import product
from rnsdask.core.layout import as_matrix
from rnsdask.core.number_system import NumberSystem
from rnsdask.core.overflow import overflow_mode
from rnsdask.core.place import Place
from rnsdask.core.scalar_int import ScalarInt
from rnsdask.lazy.elementwise import apply
from rnsdask.lazy.growing import extends
from rnsdask.lazy.lazy_ints import LazyInts
from rnsdask.lazy.map import map_chunks, map_values, reduce_chunks
from rnsdask.lazy.operands import Numbers, make_like
from rnsdask.lazy.shape import index_along
from rnsdask.lazy.tree import check_sizes, combine_tree, put_in_box
from rnsdask.rns.system import check_length
from rnsdask.typing import SplitEvery


def prod(x: Numbers, overflow: str | None, split_every: SplitEvery, backend: str = "auto") -> Any:
    """Multiply all numbers, as :meth:`.RNSArray.prod`."""
    extend = extends(overflow, x)
    mode = "extend" if extend else overflow_mode(overflow, x.system)
    words, system = x.words, x.system
    check_backend(backend)
    if not isinstance(words, da.Array):
        return _result(_factors(words, system, mode), system, mode)
    partials = reduce_chunks(_factors_block, words, system=system, mode=mode, backend=backend)
    axes = tuple(range(words.ndim))
    merge = partial(_combine_blocks, system=system)
    factors = combine_tree(partials, merge, axes, "rns-prod", split_every, keepdims=False)
    result = map_values(_result_block, factors, system=system, mode=mode, dtype=object)
    if mode != "flag":
        return LazyInts.of(result)
    value = LazyInts.of(map_values(_item, result, index=0, dtype=object))
    return value, map_values(_item, result, index=1, dtype=np.bool_)


def prod_along(x: Numbers, axes: tuple[int, ...], overflow: str | None, split_every: SplitEvery) -> Any:
    """Multiply numbers along axes, which keep length 1, as :meth:`.RNSArray.prod`."""
    words, system = x.words, x.system
    if isinstance(words, da.Array):
        check_sizes(words)
    terms = math.prod(int(words.shape[1 + axis]) for axis in axes)
    if extends(overflow, x):
        if terms:
            check_length(terms * (system.known_magnitude.bit_length() - 1) + 1)
            return _grown_products(x, axes)
        overflow = "raise"  # the product without factors is 1
    mode = overflow_mode(overflow, system)
    bound = system.bound_of_products(terms)
    checked = "wrap" if bound is not None and mode == "raise" else mode
    options: dict[str, Any] = {"system": system, "mode": checked}
    if isinstance(words, da.Array):
        count, dtype = system.factor_layout(checked)
        parts: dict[str, Any] = {"rows": count, "dtype": dtype, "axes": axes, **options}
        factors = reduce_chunks(_axis_factors_block, words, axes, **parts)
        merge = partial(_combine_factors, system=system, axes=axes)
        factors = combine_tree(factors, merge, tuple(a + 1 for a in axes), "rns-axis-prod", split_every)
    else:
        factors = _axis_factors_block(words, axes=axes, **options)
    words = map_chunks(_finish_block, factors, rows=system.rows + (mode == "flag"), located=True, **options)
    return make_like((x,), words, system.with_bound(bound), mode)


def _grown_products(x: Any, axes: tuple[int, ...]) -> Any:
    """Multiply along axes with results that extend, by multiplying halves of the axis repeatedly.

    In all steps but the last, numbers are shorter than the result.
    """
    for axis in axes:
        single: list[Any] = []
        while (length := int(x.words.shape[1 + axis])) > 1:
            half = length // 2
            ends = (0, half, 2 * half, length)
            parts = [x.words[index_along(axis, slice(*pair))] for pair in pairwise(ends)]
            first, second, last = (make_like((x,), words, x.system, "raise") for words in parts)
            if length % 2:
                single.append(last)
            x = apply(rows.multiply, first, second, overflow="extend")
        for last in single:
            x = apply(rows.multiply, last, x, overflow="extend")
    return x


def _axis_factors_block(block: Any, *, system: Any, mode: str, axes: tuple[int, ...]) -> Any:
    return system.apply(rows.axis_factors, block, mode=mode, axes=axes)


def _combine_factors(
    blocks: Any,
    axis: Any,  # noqa: ARG001  (combine_tree passes both)
    keepdims: bool,  # noqa: ARG001
    system: Any,
    axes: tuple[int, ...],
) -> Any:
    return system.apply(rows.join_axis_factors, blocks, axes=axes)


def _finish_block(factors: Any, *, system: Any, mode: str, place: Place) -> Any:
    return system.apply(rows.axis_products, factors, mode=mode, locate=place.flat_index)


def _factors(words: Array, system: NumberSystem, mode: str) -> Any:
    """Return the contribution of a chunk: :class:`.Factors`, or limbs (rows, 1), in NumPy.

    If results extend, it is the product as a Python int.
    """
    if mode == "extend":
        integers = system.decode(as_matrix(words)).tolist()
        return int(product(integers)) if integers else 1
    return system.apply(rows.factors, words, mode=mode)


def _combine(a: Any, b: Any, *, system: NumberSystem) -> Any:
    return a * b if isinstance(a, int) else system.apply(rows.join_factors, a, b)


def _result(factors: Any, system: NumberSystem, mode: str) -> Any:
    return factors if mode == "extend" else system.apply(rows.product, factors, mode=mode)


def _factors_block(block: Any, *, system: NumberSystem, mode: str, backend: str) -> np.ndarray[Any, Any]:
    return put_in_box(_factors(to_backend(block, backend), system, mode), block.ndim)


def _combine_blocks(blocks: Any, axis: Any, keepdims: bool, system: Any) -> Any:  # noqa: ARG001
    factors = reduce(partial(_combine, system=system), blocks.flat)
    return put_in_box(factors, blocks.ndim) if keepdims else factors


def _result_block(factors: Any, *, system: NumberSystem, mode: str) -> Any:
    result = _result(factors, system, mode)
    return result if mode == "flag" else ScalarInt(result)


def _item(pair: tuple[int, bool], *, index: int) -> Any:
    return np.bool_(pair[1]) if index else ScalarInt(pair[0])
