"""Products of vectors and matrices, NumPy, CuPy or Dask, chunk by chunk (:mod:`rnsdask.rns.matmul`)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import Any, TypeAlias, overload

import dask.array as da
import numpy as np
from dask.array.utils import meta_from_array
from dask.base import tokenize

from rnsdask.backend import empty_like_chunks
from rnsdask.cluster.limits import check_graph
from rnsdask.core import rows
from rnsdask.core.layout import Lengths
from rnsdask.core.operations import OF_MATRICES, Footprint
from rnsdask.core.overflow import overflow_mode
from rnsdask.core.place import Grid, Place
from rnsdask.core.ways import Kind, Message
from rnsdask.lazy.chunks import as_lazy
from rnsdask.lazy.elementwise import entry_of
from rnsdask.lazy.growing import extend_operands, range_of_products, range_of_sums
from rnsdask.lazy.integer_operands import with_arrays
from rnsdask.lazy.map import array_of_tasks, keys_of, map_chunks, unify_chunks
from rnsdask.lazy.one_task import fits_one_task, in_one_task
from rnsdask.lazy.operands import (
    N,
    Numbers,
    common_system,
    find_lengths,
    is_number_array,
    make_alike,
    make_like,
    with_axes,
)
from rnsdask.lazy.parcels import parcelled
from rnsdask.lazy.tree import check_sizes
from rnsdask.lazy.widening import apply_to_arrays
from rnsdask.rns import matmul as products
from rnsdask.rns.matmul import Product
from rnsdask.typing import Flag, Flagged, Integers, Overflow

Systems: TypeAlias = tuple[Any, Any]
"""Systems of two operands: RNS that differ in bounds only, or the same fields."""

Add: TypeAlias = Callable[[Sequence[Product], Any], Product]
"""Function that adds parts of a product, given them and their system."""

_SPLIT_EVERY = 4
"""Sums of chains that are added at a time: each has the size of a chunk of the result."""

_CHAINS = 16
"""Chains of tasks that keep threads busy, where the result has few chunks."""


@overload
def matmul(a: N | Integers, b: N | Integers, *, overflow: Overflow | None = None) -> N: ...
@overload
def matmul(a: N | Integers, b: N | Integers, *, overflow: Flag) -> Flagged[N]: ...
def matmul(a: N | Integers, b: N | Integers, *, overflow: Overflow | Flag | None = None) -> N | Flagged[N]:
    """Multiply matrices or vectors, or stacks of matrices, ``a @ b``, as NumPy.

    Parameters
    ----------
    a, b : RNSArray, IntervalRNSArray or FieldArray, shape (*batch, I, K) or (K,), and (*batch, K, J) or (K,)
        Arrays of the same moduli set and range, on the same processor. The leading axes broadcast. One
        operand may be a nested list or a plain array, of integers in the other's range.
    overflow : {"raise", "wrap", "flag", "extend"}, optional
        What happens to results out of range. The default is the mode set by :func:`.errstate`, else
        ``"extend"`` for arrays whose range grows and ``"raise"`` for others. Only the results count, not
        partial sums.

    Returns
    -------
    RNSArray, IntervalRNSArray or FieldArray, shape (*batch, I, J), (*batch, I) or (*batch, J), or int
        A Python int for two vectors. Lazy if an operand is. With ``"flag"`` a pair of the results modulo M
        and a Boolean array (a bool for two vectors) that is true where the exact result is out of range.

    Raises
    ------
    RNSOverflowError
        With ``"raise"``, if an exact result is out of range; on Dask when it is computed.
    TypeError, ValueError
        If operands do not fit one another, or `overflow` is not a mode.
    """
    x, y = with_arrays(a, b)
    for operand in (x, y):
        if not is_number_array(operand):
            raise TypeError(
                Message(
                    "both operands of a matrix product must be ",
                    Kind("RNSArray", "s"),
                    f", got {type(operand).__name__} (* multiplies by a number)",
                )
            )
    entry_of(rows.matmul, x, y)
    find_lengths(x, y)
    found: N | Flagged[N]
    if not x.words.ndim == y.words.ndim == 2:
        found = apply_to_arrays("matmul", rows.matmul, x, y, overflow=overflow)
        return found
    _as_matrices(x, y)  # raises errors with the vectors' shapes
    row = make_like((x,), x.words[:, None], x.system, "raise")
    product: Any = apply_to_arrays("matmul", rows.matmul, row, y, overflow=overflow)
    if not isinstance(product, tuple):
        found = product[0]
        return found
    result, mask = product
    flags: Any = mask[0] if isinstance(mask, da.Array) else bool(mask[0])
    return result[0], flags


def product_of_residues(a: Numbers, b: Numbers, *, overflow: str | None = None) -> Any:
    """Multiply arrays of residues, at least one of which has several axes."""
    terms = int(a.words.shape[-1])
    (a, b), overflow = extend_operands(
        lambda x, y: range_of_sums(range_of_products(x, y), terms), overflow, a, b
    )
    a, b = make_alike(a, b)
    whole = common_system(a, b)
    mode = overflow_mode(overflow, whole)
    x, y, kept = _as_matrices(a, b)
    reach = int(x.shape[-1]) * a.system.known_magnitude * b.system.known_magnitude
    is_safe = products.is_known_to_fit(a.system, reach)
    # Results out of range raise an error, so the bound holds for all returned results.
    known = reach if reach < a.system.greatest_magnitude and (mode == "raise" or is_safe) else None
    checked = "wrap" if is_safe and mode == "raise" else mode
    product, mask = _words(x, y, (a.system, b.system), checked, products.add)
    result = make_like((a,), product[kept], whole.with_bound(known), "raise")
    return (result, mask[kept]) if mode == "flag" else result


def product_of_elements(a: Numbers, b: Numbers, *, overflow: str | None = None) -> Any:
    """Multiply arrays of elements of fields, at least one of which has several axes."""
    a, b = make_alike(a, b)
    mode = overflow_mode(overflow, a.system)
    x, y, kept = _as_matrices(a, b)
    words, _ = _words(x, y, (a.system, b.system), mode, _sum_of_elements)
    return make_like((a,), words[kept], a.system, "raise")


def _sum_of_elements(parts: Sequence[Product], system: Any) -> Product:
    return Product(reduce(partial(system.apply, rows.add), (part.residues for part in parts)), 0)


@overload
def dot(a: N | Integers, b: N | Integers, *, overflow: Overflow | None = None) -> N: ...
@overload
def dot(a: N | Integers, b: N | Integers, *, overflow: Flag) -> Flagged[N]: ...
def dot(a: N | Integers, b: N | Integers, *, overflow: Overflow | Flag | None = None) -> N | Flagged[N]:
    """Multiply matrices or vectors as ``numpy.dot``, which for one or two axes equals :func:`matmul`.

    Arguments, results and errors are those of :func:`matmul`; more axes are a ValueError.
    """
    for operand in (a, b):
        if is_number_array(operand) and operand.words.ndim > 3:
            raise ValueError(
                f"operands of dot have one or two axes, got {operand.words.ndim - 1}; matmul takes stacks of "
                "matrices"
            )
    mode: Any = overflow
    found: N | Flagged[N] = matmul(a, b, overflow=mode)
    return found


def identity_like(x: Numbers) -> Any:
    """Make identity matrices, modulo M, in the shape of an array of square matrices; lazy if it is."""
    system = x.system
    words = map_chunks(_identity_block, x.words, rows=system.rows, located=True, system=system)
    return make_like((x,), words, system.with_bound(1), "raise")


def _identity_block(block: Any, *, system: Any, place: Place) -> Any:
    starts = [start for start, _ in place.location[-2:]] or [0, 0]
    rows, columns = (
        np.arange(start, start + length, dtype=np.int64, like=block)
        for start, length in zip(starts, block.shape[-2:], strict=True)
    )
    values = (system.wrapped(1), 0)  # if the range lacks 1, the number with the same words
    one, zero = (np.asarray(system.column(value, block.ndim - 1), like=block) for value in values)
    return np.broadcast_to(np.where(rows[:, None] == columns, one, zero), block.shape)


def _as_matrices(a: Numbers, b: Numbers) -> tuple[Any, Any, tuple[Any, ...]]:
    """Return words of operands as stacks of matrices with equal axes, and an index of NumPy's result."""
    is_vector = [array.words.ndim == 2 for array in (a, b)]
    x = a.words[:, None, :] if is_vector[0] else a.words
    y = b.words[:, :, None] if is_vector[1] else b.words
    ndim = max(x.ndim, y.ndim) - 1
    x, y = with_axes(x, ndim), with_axes(y, ndim)
    _check_shapes(x, y, a, b)
    return x, y, (..., *(0 if vector else slice(None) for vector in is_vector))


def _check_shapes(x: Any, y: Any, a: Numbers, b: Numbers) -> None:
    for residues in (x, y):
        if isinstance(residues, da.Array):
            check_sizes(residues)
    shapes = " and ".join(str(tuple(array.words.shape[1:])) for array in (a, b))
    if x.shape[-1] != y.shape[-2]:
        raise ValueError(
            f"shapes {shapes} do not match for a matrix product: its sums would have {x.shape[-1]} and "
            f"{y.shape[-2]} terms"
        )
    try:
        np.broadcast_shapes(x.shape[1:-2], y.shape[1:-2])
    except ValueError:
        raise ValueError(
            f"shapes {shapes} do not match for a matrix product: all axes but the last two must broadcast"
        ) from None


def _words(x: Any, y: Any, systems: Systems, mode: str, add: Add) -> Any:
    """Multiply words: (rows, *batch, I, J), and with ``"flag"`` the mask; NumPy, CuPy or Dask.

    `add` sums the products of parts.
    """
    if isinstance(x, da.Array) or isinstance(y, da.Array):
        packed: Any = _multiply_lazily(as_lazy(x), as_lazy(y), systems, mode, add)
    else:
        packed = _multiply_whole(x, y, systems=systems, mode=mode)
    return (packed[:-1], packed[-1] != 0) if mode == "flag" else (packed, None)


def _multiply_whole(x: Any, y: Any, *, systems: Systems, mode: str) -> Any:
    """Multiply whole matrices of words, and finish the product by the mode."""
    if mode == "wrap":
        return _multiply(x, y, systems[0])
    return products.finish(products.exact_product(x, y, systems), systems[0], mode)


def _footprint(x: da.Array, y: da.Array) -> Footprint:
    """Footprint of a whole product, which may be greater than the operands."""
    batch = math.prod(np.broadcast_shapes(x.shape[1:-2], y.shape[1:-2]))
    found, *given = (batch * x.shape[-2] * y.shape[-1], math.prod(x.shape[1:]), math.prod(y.shape[1:]))
    times = max(1, math.ceil(found / max(1, *given)))
    return Footprint(OF_MATRICES.arrays * times, OF_MATRICES.words * times)


def _multiply(x: Any, y: Any, system: Any) -> Any:
    """Multiply matrices of words, modulo M or p."""
    return system.apply(rows.multiply_matrices, x, y)


def _multiply_lazily(x: da.Array, y: da.Array, systems: Systems, mode: str, add: Add) -> da.Array:
    """Multiply chunks, add products along the contracted axis, and check the results."""
    system, batch = systems[0], tuple(f"b{axis}" for axis in range(x.ndim - 3))
    rows = system.rows + (mode == "flag")
    if fits_one_task(_footprint(x, y), 1, x, y):
        whole: dict[str, Any] = {"rows": rows, "chunks": _chunks_of_product(x, y), "token": "rns-matmul"}
        return in_one_task(_multiply_whole, x, y, systems=systems, mode=mode, **whole)
    (x, y), _ = unify_chunks((x, y), (("r", *batch, "i", "k"), ("s", *batch, "k", "j")))
    chunks, terms = _chunks_of_product(x, y), x.numblocks[-1]
    grid, shape = Grid.of(chunks), [len(lengths) for lengths in chunks]
    check_graph(math.prod(shape) * terms, f"a product of matrices of {terms} chunks of terms")
    token = tokenize(x.name, y.name, systems, mode)
    how: dict[str, Any] = {"systems": systems, "is_exact": mode != "wrap", "add": add}
    steps, tasks = _Sums(f"rns-matmul-sum-{token}", x, y, how, -(-_CHAINS // math.prod(shape))), {}
    for index in np.ndindex(*shape):
        finish = parcelled(_finish_block, system=system, mode=mode, place=grid.place(index))
        tasks[0, *index] = finish, steps.add(index)
    meta = empty_like_chunks(meta_from_array(x), len(shape) + 1, system.word_dtype)
    return array_of_tasks(f"rns-matmul-{token}", tasks, ((rows,), *chunks), meta, x, y, steps=steps.tasks)


class _Sums:
    """Tasks that add products of chunks along the contracted axis, by chunks of the result.

    A chain of tasks adds a product each, so that one sum waits, and products are not sent; `chains` of them
    for a result run side by side, and their sums meet in a tree.
    """

    def __init__(self, name: str, x: da.Array, y: da.Array, how: dict[str, Any], chains: int) -> None:
        self.tasks: dict[Any, Any] = {}
        self._name, self._terms, self._chains = name, x.numblocks[-1], min(chains, x.numblocks[-1])
        self._keys = [dict(zip(np.ndindex(z.numblocks), keys_of(z), strict=True)) for z in (x, y)]
        self._counts = [z.numblocks[1:-2] for z in (x, y)]
        self._step = parcelled(_add_product, **how)
        self._join = parcelled(_add, system=how["systems"][0], add=how["add"])

    def add(self, index: tuple[int, ...]) -> Any:
        """Add the tasks of a chunk of the result; return the key of its sum, a :class:`.Product`."""
        *batch, i, j = index
        places = [
            [at if n > 1 else 0 for at, n in zip(batch, counts, strict=True)] for counts in self._counts
        ]
        ends: list[Any] = [None] * self._chains
        for k in range(self._terms):
            key, chain = (self._name, *index, k), k * self._chains // self._terms
            left, right = self._keys[0][0, *places[0], i, k], self._keys[1][0, *places[1], k, j]
            self.tasks[key] = self._step, left, right, *([] if ends[chain] is None else [ends[chain]])
            ends[chain] = key
        level = 0
        while len(ends) > 1:
            groups = [ends[at : at + _SPLIT_EVERY] for at in range(0, len(ends), _SPLIT_EVERY)]
            ends = [(self._name, *index, f"tree-{level}", at) for at in range(len(groups))]
            self.tasks.update({key: (self._join, *group) for key, group in zip(ends, groups, strict=True)})
            level += 1
        return ends[0]


def _chunks_of_product(x: da.Array, y: da.Array) -> Lengths:
    pairs = zip(x.chunks[1:-2], y.chunks[1:-2], strict=True)
    return (*(a if sum(a) != 1 else b for a, b in pairs), x.chunks[-2], y.chunks[-1])


def _add_product(
    x: Any, y: Any, total: Product | None = None, *, systems: Systems, is_exact: bool, add: Add
) -> Product:
    """Multiply two chunks, exactly or modulo M, and add the product to what was added before."""
    # Chunks without numbers may be NumPy's on either processor, because Dask makes new ones.
    like = next((block for block in (x, y) if not isinstance(block, np.ndarray)), x)
    x, y = (np.asarray(block, like=like) for block in (x, y))
    product = products.exact_product(x, y, systems) if is_exact else Product(_multiply(x, y, systems[0]), 0)
    return product if total is None else add([total, product], systems[0])


def _add(*parts: Product, system: Any, add: Add) -> Product:
    return add(parts, system)


def _finish_block(product: Product, *, system: Any, mode: str, place: Place) -> Any:
    if mode == "wrap":
        return product.residues
    return products.finish(product, system, mode, place.flat_index)
