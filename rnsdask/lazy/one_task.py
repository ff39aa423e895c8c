"""One task for a whole array of CuPy's chunks, where one GPU has the memory for it.

Operations that let all chunks exchange parts, such as long transforms and sorts, take one task for each chunk
and step, each of a millisecond or more of Python. A GPU that holds the array does the work in a few
milliseconds: there one task joins the chunks and computes, and its result is cut into chunks again. The words
are the same either way.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from itertools import accumulate, pairwise, product
from typing import Any

import dask.array as da
import numpy as np
from dask.array.utils import meta_from_array
from dask.base import tokenize

from rnsdask.backend import Array, backend_name, empty_like, free_device_bytes, naming_gpu_memory
from rnsdask.cluster.connecting import active_client
from rnsdask.cluster.workers import workers_of
from rnsdask.core.errors import SchedulerLostError
from rnsdask.core.layout import RESIDUE_DTYPE, Lengths
from rnsdask.core.operations import Footprint
from rnsdask.lazy.call import Call
from rnsdask.lazy.map import array_of_tasks, keys_of

_SHARE = 0.5
"""Part of the GPU's free memory that the task may take: others may run beside it."""

_LONGEST = 2**31
"""Fewest numbers, and bytes, that are too many for CuPy's own functions and for sorts on a GPU."""


def fits_one_task(footprint: Footprint, exchanges: float, *operands: Any) -> bool:
    """Whether one task is to take all chunks of its operands, words (rows, *shape).

    That is so for several chunks of CuPy's, if this process's GPU has the free memory, and if no more workers
    than `exchanges` share the work. The steps in chunks move all words that often, but over the links of all
    workers at a time; one task moves them once, over its own worker's link. The footprint is beside the
    operands, and relative to the greatest.
    """
    if not all(isinstance(words, da.Array) for words in operands):
        return False
    counts = [math.prod(words.shape[1:]) for words in operands]
    # Chunks without numbers may be NumPy's.
    if all(math.prod(words.numblocks) < 2 for words in operands) or not all(counts):
        return False
    if any(backend_name(meta_from_array(words)) != "cuda" for words in operands):
        return False
    free, count = free_device_bytes(), max(counts)
    sizes = [len(words) * n * words.dtype.itemsize for words, n in zip(operands, counts, strict=True)]
    needed = sum(sizes) + footprint.arrays * max(sizes) + footprint.workspace
    needed += footprint.words * RESIDUE_DTYPE.itemsize * count
    # NaN, for chunks of unknown lengths, compares false.
    is_small = free is not None and count < _LONGEST and needed <= _SHARE * free
    return is_small and 0 < _count_workers() <= exchanges


def _count_workers() -> int:
    """Number of workers that would compute: 1 for this process, 0 if the scheduler cannot be asked."""
    client = active_client()
    if client is None:
        return 1
    if client.asynchronous:  # of its event loop, which cannot wait
        return 0
    try:
        return len(workers_of(client))
    except SchedulerLostError:  # whoever computes the array is told
        return 0


def in_one_task(
    function: Callable[..., Array],
    *operands: da.Array,
    rows: int,
    chunks: Lengths,
    token: str,
    **options: Any,
) -> da.Array:
    """Apply a function to whole operands, words (n, *shape), in one task; it returns (rows, *shape).

    The result is cut into chunks of these lengths, as views of the memory that the function returned.
    """
    call = Call(function, options)
    name = f"{token}-{tokenize(operands, call, chunks)}"
    whole = f"{name}-whole"
    apply = partial(_apply, call=call, chunks=[words.chunks for words in operands])
    steps = {whole: (apply, *map(keys_of, operands))}
    parts = zip(np.ndindex(*map(len, chunks)), _places(chunks), strict=True)
    tasks = {(0, *index): (partial(_part, place=place), whole) for index, place in parts}
    meta = meta_from_array(operands[0])
    return array_of_tasks(name, tasks, ((rows,), *chunks), meta, *operands, steps=steps)


def _places(chunks: Lengths) -> list[tuple[slice, ...]]:
    """Parts of an array that its chunks are, in C order."""
    axes = [[slice(*ends) for ends in pairwise((0, *accumulate(lengths)))] for lengths in chunks]
    return list(product(*axes))


def _apply(*operands: Sequence[Array], call: Call, chunks: Sequence[Lengths]) -> Array:
    with naming_gpu_memory("an array that one task takes"):
        return call(*map(_joined, operands, chunks))


def _joined(blocks: Sequence[Array], chunks: Lengths) -> Array:
    """Join blocks in C order, one by one: CuPy's function compiles a kernel for each number of blocks."""
    # Dask makes NumPy blocks of any empty ones.
    given = [(block, place) for block, place in zip(blocks, _places(chunks), strict=True) if block.size]
    whole = empty_like(given[0][0] if given else blocks[0], tuple(map(sum, chunks)))
    rows = range(len(whole)) if whole.nbytes >= _LONGEST else [slice(None)]
    for (block, place), row in product(given, rows):
        whole[(row, *place[1:])] = block[row]
    return whole


def _part(whole: Array, *, place: tuple[slice, ...]) -> Array:
    part: Array = whole[(slice(None), *place)]
    return part
