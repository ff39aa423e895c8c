"""Number-theoretic transforms of arrays of field elements, lazy on Dask (:mod:`rnsdask.fields.ntt`).

An axis in several chunks is transformed in one task where a GPU holds the array
(:mod:`rnsdask.lazy.one_task`), else in steps (:mod:`rnsdask.fields.ntt`). Between them all chunks exchange
parts: Dask's ``rechunk`` turns arrays (n, *batch, K, C) from chunks of rows into chunks of columns.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal, SupportsIndex, TypeAlias

import dask.array as da

from rnsdask.backend import Array, naming_gpu_memory, to_backend
from rnsdask.core import rows
from rnsdask.core.axes import axis_index
from rnsdask.core.conventions import Convention
from rnsdask.core.errors import abbreviate, brief
from rnsdask.core.moduli import as_integer
from rnsdask.core.place import Place
from rnsdask.core.primes import logarithm_of_root
from rnsdask.core.rows import Row
from rnsdask.core.ways import must
from rnsdask.fields.ntt import FourStep
from rnsdask.fields.system import FiniteFields
from rnsdask.lazy.chunks import by_tasks, rechunk
from rnsdask.lazy.elementwise import map_entry
from rnsdask.lazy.fields import check_elements
from rnsdask.lazy.map import map_chunks
from rnsdask.lazy.one_task import fits_one_task, in_one_task
from rnsdask.lazy.operands import N, find_lengths, make_like

Root: TypeAlias = SupportsIndex | Sequence[SupportsIndex]
Order: TypeAlias = Literal["natural", "bit-reversed"]

EXCHANGES = 3
"""How often a transform in steps moves all words between chunks."""


JOINED_BYTES = 2**26
"""Most bytes of whole lines that one task transforms: five threads take as long for the steps as it does."""


def chunk_length(length: int, longest: int) -> int:
    """Length C of chunks for an axis whose length is a power of two, given its longest chunk.

    It is the greatest power of two up to the longest chunk, but C**2 is at least the axis's length, so that
    rows and columns both fit into a chunk.
    """
    least = 1 << -(-(length.bit_length() - 1) // 2)
    return min(length, max(least, 1 << (longest.bit_length() - 1)))


def transform_in_chunks(
    words: da.Array, system: FiniteFields, axis: int, chunk: int, inverse: bool, negacyclic: bool
) -> da.Array:
    """Transform an array (n, *shape) along an axis, in chunks of at least :func:`chunk_length`."""
    steps = FourStep(system, words.shape[axis + 1], chunk, inverse, negacyclic)
    parts = divide_axis(words, axis, steps)
    for step in ("columns", "rows"):
        parts = transform_step(parts, steps, step)
    return join_steps(parts, axis, steps)


def divide_axis(words: da.Array, axis: int, steps: FourStep) -> da.Array:
    """View the chunks of an axis as rows: (n, *batch, K, C)."""
    last = rechunk(da.moveaxis(words, axis + 1, -1), {-1: steps.chunk})
    with by_tasks(last):
        rows: da.Array = last.reshape(*last.shape[:-1], steps.parts, steps.chunk)
    return rows


def transform_step(parts: da.Array, steps: FourStep, step: str, backend: str | None = None) -> da.Array:
    """Transform the ``"columns"``, or after them the ``"rows"``.

    With a `backend`, chunks on the host are moved to it and back.
    """
    options: dict[str, Any] = {"step": step, "backend": backend}
    return _map_parts(_step, parts, steps, located=True, token=f"field-ntt-{step}", **options)


def join_steps(parts: da.Array, axis: int, steps: FourStep) -> da.Array:
    """Join the result of the steps to one axis in its order, in chunks of length C."""
    ordered = _map_parts(_order, parts, steps, token="field-ntt-order")
    with by_tasks(ordered):
        last: da.Array = da.moveaxis(ordered.reshape(*ordered.shape[:-2], steps.length), -1, axis + 1)
    return last


def _map_parts(function: Callable[..., Any], parts: da.Array, steps: FourStep, **options: Any) -> da.Array:
    """Map a function over the parts that each chunk has for one of the next step; each makes a row of it."""
    given = rechunk(parts, {-2: -1, -1: steps.part}).swapaxes(-2, -1)
    chunks = (*given.chunks[1:-2], (1,) * steps.parts, (steps.chunk,))
    mapped: da.Array = map_chunks(
        function, given, rows=len(given), chunks=chunks, dtype=given.dtype, steps=steps, **options
    )
    return mapped


def _step(words: Array, *, steps: FourStep, step: str, backend: str | None, place: Place) -> Array:
    with naming_gpu_memory(f"chunk {place.index}"):
        moved = words if backend is None else to_backend(words, backend)
        found = steps.columns(moved, place.index[-2]) if step == "columns" else steps.rows(moved)
        return found if backend is None else to_backend(found, "cpu")


def _apply_row(words: Array, *, row: Row[..., Array], system: FiniteFields, **options: Any) -> Array:
    return system.apply(row, words, **options)


def _order(words: Array, *, steps: FourStep) -> Array:
    return steps.ordered(words)


def ntt(
    f: N,
    axis: SupportsIndex = -1,
    negacyclic: bool = False,
    *,
    root: Root | None = None,
    order: Order = "natural",
) -> N:
    """Number-theoretic transform along an axis: ``X_j`` is the sum of ``x_i w**(i j)``, in each field.

    Element-wise products of transforms are the transforms of cyclic convolutions, or with `negacyclic` of
    negacyclic ones: of products of polynomials modulo ``x**N + 1``.

    Parameters
    ----------
    f : FieldArray
        The array, in any chunks on Dask. Chunks along the axis are joined if they are few or take up to 64
        MiB, and so are all chunks of CuPy's that one GPU has room for; else they are passed through three
        times (docs/transforms.md), and meanwhile threads of one process hold the array in memory, and workers
        of a cluster on their disks.
    axis : int
        The axis, of a length N that is a power of two; w is the root of unity of order N from
        ``f.system.roots(N)``. The input is in natural order.
    negacyclic : bool
        Whether ``X_j`` is the sum of ``x_i psi**(i (2 j + 1))`` instead, where psi is the root of order 2N.
    root : int or sequence of int, optional
        Another primitive root in the place of w, or of psi with `negacyclic`: one for each field. SEAL,
        OpenFHE and HEonGPU take ``f.system.roots(2 * N, minimal=True)``.
    order : {"natural", "bit-reversed"}
        Order of the values: ``X_j`` is at j, or where the bits of j are reversed, as these libraries and
        Lattigo have it (docs/homomorphic-encryption.md). Except for natural order and the usual root, chunks
        along the axis are joined to one.

    Returns
    -------
    FieldArray
        With the same shape; lazy with the same chunks if `f` is.

    Raises
    ------
    TypeError
        If `f` is not a FieldArray, `negacyclic` is not a bool, or a root is not an integer.
    ValueError
        If the length is not a power of two, or if it, or twice the length with `negacyclic`, does not divide
        p - 1 for each prime p (the message names the first such p); if there is not a root for each field, or
        one is not of that order; if `order` is another name; AxisError, a ValueError, if the axis is out of
        range.
    """
    found: N = _transform("ntt", f, axis, negacyclic, root, order)
    return found


def intt(
    f: N,
    axis: SupportsIndex = -1,
    negacyclic: bool = False,
    *,
    root: Root | None = None,
    order: Order = "natural",
) -> N:
    """Inverse of :func:`ntt`: ``x_i`` is the sum of ``X_j w**(-i j)`` divided by N, in each field.

    With `negacyclic`, ``x_i`` is the sum of ``X_j psi**(-i (2 j + 1))`` divided by N. `root` and `order` are
    those of the transform that is given.
    """
    found: N = _transform("intt", f, axis, negacyclic, root, order)
    return found


def check_transform(name: str, f: Any, axis: SupportsIndex, negacyclic: bool) -> int:
    """Raise the errors of :func:`ntt`; return the axis, counted from 0."""
    check_elements(name, f)
    if not isinstance(negacyclic, bool):
        raise TypeError(f"negacyclic must be True or False, got {type(negacyclic).__name__}")
    find_lengths(f)
    shape = f.words.shape[1:]
    k = axis_index(axis, len(shape))
    length = shape[k]
    if length < 1 or length.bit_count() > 1:
        raise ValueError(f"{name} takes an axis of a power of two elements, got {length} on axis {k}")
    f.system.roots(2 * length if negacyclic else length)  # raises an error for a prime without such a root
    return k


def convention_of(
    system: FiniteFields, length: int, negacyclic: bool, root: Any, order: str
) -> Convention | None:
    """Check a root and an order; return the convention, None for the usual one."""
    if order not in ("natural", "bit-reversed"):
        raise ValueError(must("order", f"be 'natural' or 'bit-reversed', got {brief(order)}"))
    own = system.roots(2 * length if negacyclic else length)
    given: Sequence[Any] = own if root is None else root if isinstance(root, Sequence) else (root,)
    if len(given) != len(own):
        rule = f"be one primitive root for each of the {len(own)} fields, got {len(given)}"
        raise ValueError(must("root", rule))
    roots = tuple(as_integer(value, "root") for value in given)
    exponents = tuple(map(_exponent_of, roots, own, (length * (1 + negacyclic),) * len(own), system.primes))
    if order == "natural" and set(exponents) == {1}:
        return None
    return Convention(exponents, order == "bit-reversed")


def _exponent_of(root: int, own: int, order: int, p: int) -> int:
    """The k for which a given root of unity of an order is ``own**k``; ValueError if it is not primitive."""
    if root == own:
        return 1
    if not (0 < root < p and (pow(root, order // 2, p) == p - 1 if order > 1 else root == 1)):
        raise ValueError(
            f"root {abbreviate(root)} is not a primitive root of unity of order {order} modulo "
            f"{abbreviate(p)}; one is {own}, which is taken where none is given"
        )
    return logarithm_of_root(root, own, order, p)


def _bytes_of_lines(words: da.Array, axis: int) -> int:
    """Bytes of the words of a chunk whose lines along an axis are whole."""
    longest = [max(lengths, default=0) for lengths in words.chunks]
    longest[axis + 1] = words.shape[axis + 1]
    nbytes: int = math.prod(longest) * words.dtype.itemsize
    return nbytes


def _transform(name: str, f: Any, axis: SupportsIndex, negacyclic: bool, root: Any, order: str) -> Any:
    k, inverse = check_transform(name, f, axis, negacyclic), name == "intt"
    words, system = f.words, f.system
    convention = convention_of(system, words.shape[k + 1], negacyclic, root, order)
    chunks = words.chunks[k + 1] if isinstance(words, da.Array) else (words.shape[k + 1],)
    how: dict[str, Any] = {"inverse": inverse, "negacyclic": negacyclic}
    if convention is not None:
        how["convention"] = convention
    words = _transform_words(words, system, k, how)
    if len(chunks) > 1:
        words = rechunk(words, {k + 1: chunks})
    return make_like((f,), words, system, "raise")


def _transform_words(words: Any, system: FiniteFields, axis: int, how: dict[str, Any]) -> Any:
    """Transform words (n, *shape) along an axis, whose chunks may change."""
    chunks = words.chunks[axis + 1] if isinstance(words, da.Array) else (words.shape[axis + 1],)
    if len(chunks) > 1 and fits_one_task(rows.transform.footprint, EXCHANGES, words):
        options = {"row": rows.transform, "system": system, "axis": axis, "chunks": words.chunks[1:], **how}
        return in_one_task(_apply_row, words, rows=system.rows, token="field-ntt", **options)
    length = chunk_length(sum(chunks), max(chunks))
    if "convention" not in how and length < sum(chunks) and _bytes_of_lines(words, axis) > JOINED_BYTES:
        return transform_in_chunks(words, system, axis, length, **how)
    if len(chunks) > 1:
        words = rechunk(words, {axis + 1: -1})
    return map_entry(rows.transform, (words,), system, axis=axis, **how)
