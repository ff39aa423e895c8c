"""Number-theoretic transforms along an axis in several chunks (:mod:`rnsdask.fields.ntt`).

Between the steps each chunk gives a part to every other one: Dask's ``rechunk`` does it, of arrays (n,
*batch, K, C), whose chunks are rows and become columns.
"""

from collections.abc import Callable
from typing import Any

import dask.array as da

from rnsdask.backend import Array, naming_gpu_memory, to_backend
from rnsdask.core.place import Place
from rnsdask.fields.ntt import FourStep
from rnsdask.fields.system import FiniteFields
from rnsdask.lazy.chunks import rechunked
from rnsdask.lazy.map import map_chunks


def chunk_length(length: int, longest: int) -> int:
    """The length C of chunks for an axis of a power of two elements, of which the longest chunk is given.

    It is the greatest power of two that is no longer than that, but C**2 is at least the length, so that rows
    and columns both fit a chunk.
    """
    least = 1 << -(-(length.bit_length() - 1) // 2)
    return min(length, max(least, 1 << (longest.bit_length() - 1)))


def transform_in_chunks(
    words: da.Array, system: FiniteFields, axis: int, chunk: int, inverse: bool, negacyclic: bool
) -> da.Array:
    """Transform an array (n, *shape) along an axis of the numbers, which gets chunks of a length.

    Parameters
    ----------
    chunk : int
        The length of chunks, what :func:`chunk_length` gives at least.
    inverse, negacyclic : bool
        As :class:`.FourStep` takes them.
    """
    steps = FourStep(system, words.shape[axis + 1], chunk, inverse, negacyclic)
    parts = divided(words, axis, steps)
    for step in ("columns", "rows"):
        parts = stepped(parts, steps, step)
    return joined(parts, axis, steps)


def divided(words: da.Array, axis: int, steps: FourStep) -> da.Array:
    """Chunks of an axis as rows: (n, *batch, K, C)."""
    last = rechunked(da.moveaxis(words, axis + 1, -1), {-1: steps.chunk})
    rows: da.Array = last.reshape(*last.shape[:-1], steps.parts, steps.chunk)
    return rows


def stepped(parts: da.Array, steps: FourStep, step: str, backend: str | None = None) -> da.Array:
    """The transforms of ``"columns"``, or then of ``"rows"``.

    With a `backend`, chunks on the host are brought to it, and back.
    """
    options: dict[str, Any] = {"step": step, "backend": backend}
    return _mapped(_step, parts, steps, located=True, token=f"field-ntt-{step}", **options)


def joined(parts: da.Array, axis: int, steps: FourStep) -> da.Array:
    """Join the steps' result to one axis in its order, in chunks of length C."""
    ordered = _mapped(_order, parts, steps, token="field-ntt-order")
    last: da.Array = da.moveaxis(ordered.reshape(*ordered.shape[:-2], steps.length), -1, axis + 1)
    return last


def _mapped(function: Callable[..., Any], parts: da.Array, steps: FourStep, **options: Any) -> da.Array:
    """A function of what each chunk has for one of the next step, which makes a row of it."""
    given = rechunked(parts, {-2: -1, -1: steps.part}).swapaxes(-2, -1)
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


def _order(words: Array, *, steps: FourStep) -> Array:
    return steps.ordered(words)
