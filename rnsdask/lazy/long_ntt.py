"""Number-theoretic transforms along an axis in several chunks (:mod:`rnsdask.fields.four_step`).

Between the steps each chunk gives a part to every other one: Dask's ``rechunk`` does it, of arrays (n,
*batch, K, K, W) that are in chunks along the first of the last three axes, and get chunks along the second.
"""

from collections.abc import Sequence
from typing import Any

import dask.array as da

from rnsdask.backend import Array, naming_gpu_memory, to_backend
from rnsdask.core.moduli import ModuliSet
from rnsdask.core.place import Place
from rnsdask.fields.four_step import FourStep
from rnsdask.lazy.map import map_chunks


def chunk_length(chunks: Sequence[int]) -> int:
    """The length C of chunks for an axis of a power of two elements in chunks of some lengths.

    It is the greatest power of two that is no longer than the longest one, but C**2 is at least the length,
    so that rows and columns both fit a chunk.
    """
    length, longest = sum(chunks), max(chunks)
    if longest == length:
        return length
    least = 1 << -(-(length.bit_length() - 1) // 2)
    return max(least, 1 << (longest.bit_length() - 1))


def transform_in_chunks(
    words: da.Array, moduli: ModuliSet, axis: int, chunk: int, inverse: bool, negacyclic: bool
) -> da.Array:
    """Transform an array (n, *shape) along an axis of the numbers, which gets chunks of a length.

    Parameters
    ----------
    chunk : int
        The length of chunks, what :func:`chunk_length` gives at least.
    inverse, negacyclic : bool
        As :func:`rnsdask.fields.ntt.transform` takes them.
    """
    steps = FourStep(moduli, words.shape[axis + 1], chunk, inverse, negacyclic)
    parts = divided(words, axis, steps)
    for step in ("columns", "rows"):
        parts = stepped(parts, steps, step)
    return joined(parts, axis, steps)


def divided(words: da.Array, axis: int, steps: FourStep) -> da.Array:
    """Chunks of an axis as rows of K parts, (n, *batch, K, K, W): along the first of these three."""
    last = da.moveaxis(words, axis + 1, -1).rechunk({-1: steps.chunk})
    parts: da.Array = last.reshape(*last.shape[:-1], steps.parts, steps.parts, steps.part)
    return parts


def stepped(parts: da.Array, steps: FourStep, step: str, backend: str | None = None) -> da.Array:
    """The transforms of ``"columns"``, or then ``"rows"``; `backend` is where, if not where the words are."""
    options: dict[str, Any] = {"steps": steps, "step": step, "backend": backend}
    rows, token = len(steps.moduli), f"field-ntt-{step}"
    stepped: da.Array = map_chunks(_step, _exchanged(parts), rows=rows, located=True, token=token, **options)
    return stepped


def joined(parts: da.Array, axis: int, steps: FourStep) -> da.Array:
    """What the steps have made of parts, as an axis again in its order, in chunks of length C."""
    exchanged = _exchanged(parts)
    chunks = (*exchanged.chunks[1:-2], (steps.part,), (steps.parts,))
    ordered = map_chunks(_order, exchanged, rows=len(steps.moduli), chunks=chunks, steps=steps)
    last: da.Array = da.moveaxis(ordered.reshape(*ordered.shape[:-3], steps.length), -1, axis + 1)
    return last


def _exchanged(parts: da.Array) -> da.Array:
    """Chunks of one part of each chunk."""
    exchanged: da.Array = parts.rechunk({-3: -1, -2: 1}).swapaxes(-3, -2)
    return exchanged


def _step(words: Array, *, steps: FourStep, step: str, backend: str | None, place: Place) -> Array:
    with naming_gpu_memory(f"chunk {place.index}"):
        words = words if backend is None else to_backend(words, backend)
        return steps.columns(words, place.index[-3]) if step == "columns" else steps.rows(words)


def _order(words: Array, *, steps: FourStep) -> Array:
    return steps.ordered(words)
