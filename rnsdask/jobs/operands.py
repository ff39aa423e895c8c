"""What names in an expression stand for: stores, groups, and plain arrays that an expression gave."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import dask.array as da
import numpy as np
from dask.base import tokenize
from dask.core import flatten
from dask.highlevelgraph import HighLevelGraph

from rnsdask import store
from rnsdask.arrays.number_array import NumberArray
from rnsdask.backend import naming_gpu_memory, to_backend
from rnsdask.cluster.limits import check_graph
from rnsdask.core import layout
from rnsdask.core.errors import StoreAccessError, StoreError
from rnsdask.core.place import Place
from rnsdask.interval_rns.layout import rows_of
from rnsdask.jobs.sources import OF_NUMBERS, Source
from rnsdask.lazy.map import map_chunks

Described = store.StoreInfo | store.GroupInfo | store.PlainInfo


@dataclass(frozen=True)
class Operand:
    """An array that is read.

    Attributes
    ----------
    info : StoreInfo, GroupInfo or PlainInfo
        What it says about itself.
    array : RNSArray, IntervalRNSArray, PositionalArray, FieldArray or Dask array
        Itself, lazy; a plain array has Booleans or small integers.
    """

    info: Described
    array: Any

    @classmethod
    def at(cls, path: str, backend: str = "cpu") -> "Operand":
        """The complete store, group or plain array at a place.

        Raises
        ------
        StoreError
            If there is none, or it is incomplete.
        """
        try:
            source = Source.at(path, OF_NUMBERS)
        except StoreError as error:
            if isinstance(error, StoreAccessError) or not store.is_plain(path):
                raise
            info = store.open_plain(path)
            return cls(info, open_plain(info, backend))
        return cls(source.info, source.array(backend=backend))

    @property
    def is_number(self) -> bool:
        """Whether it is an array of numbers."""
        return isinstance(self.array, NumberArray)

    @property
    def words(self) -> da.Array:
        """The array with an axis in front: its words, or one value for each number."""
        words: da.Array = self.array.words if self.is_number else self.array[None]
        return words

    @property
    def name(self) -> str:
        """How the names of the tasks that read its chunks begin."""
        return str(self.array.words.name if self.is_number else self.array.name)

    @property
    def has_chunk_files(self) -> bool:
        """Whether chunks are read as files, without Zarr's codecs."""
        return isinstance(self.info, store.StoreInfo) and self.info.has_chunk_files

    @property
    def rows(self) -> int:
        """Words of a number; of a plain array 1."""
        if isinstance(self.info, store.GroupInfo):
            return rows_of(self.info.residues.moduli)
        return 1 if isinstance(self.info, store.PlainInfo) else self.info.system.rows

    def with_words(self, words: da.Array) -> "Operand":
        """The same numbers or values in other chunks."""
        array = type(self.array)(words, self.array.system) if self.is_number else words[0]
        return replace(self, array=array)


def open_plain(info: store.PlainInfo, backend: str = "cpu") -> da.Array:
    """A complete plain array as a lazy one, whose chunks go to a processor as :func:`.open_zarr` says."""
    check_graph(info.n_chunks, info.path)
    chunks = da.core.normalize_chunks(info.chunks, info.shape, dtype=info.dtype)
    options: dict[str, Any] = {"dtype": info.dtype, "located": True, "info": info, "backend": backend}
    name = f"open-plain-{tokenize(info, backend)}"
    values = map_chunks(_read_block, rows=1, chunks=chunks, name=name, **options)
    array: da.Array = values[0]
    return array


def _read_block(*, info: store.PlainInfo, backend: str, place: Place) -> Any:
    if info.count:
        values = store.read_plain_chunk(info, place.index)
    else:  # Dask has chunks of no values where the array has none
        values = np.empty(layout.part_shape(place.index, info.shape, info.chunks), dtype=info.dtype)
    with naming_gpu_memory(info.chunk_name(place.index)):
        return to_backend(values[None], backend)


def aligned(operands: Mapping[str, Operand]) -> dict[str, Operand]:
    """Give arrays whose shapes broadcast the same chunks along each axis: the shortest ones there are."""
    try:
        shape = np.broadcast_shapes(*(operand.array.shape for operand in operands.values()))
    except ValueError:  # parts of them may fit, or a product of matrices; if not, the expression tells
        return dict(operands)
    lengths: dict[int, int] = {}
    for operand in operands.values():
        own = operand.words.shape[1:]
        for axis, (length, chunk) in enumerate(zip(own, operand.words.chunksize[1:], strict=True)):
            place = axis - len(own)
            if length == shape[place] and length:
                lengths[place] = int(min(chunk, lengths.get(place, chunk)))
    return {name: _rechunked(operand, lengths) for name, operand in operands.items()}


def _rechunked(operand: Operand, lengths: Mapping[int, int]) -> Operand:
    words = operand.words
    shape = words.shape[1:]
    own = zip(shape, range(-len(shape), 0), strict=True)
    chunks = tuple(min(length, lengths[place]) if length else 0 for length, place in own)
    if 0 in chunks or chunks == words.chunksize[1:]:
        return operand
    return operand.with_words(words.rechunk((words.shape[0], *chunks)))


def bytes_read(results: Sequence[da.Array], operands: Iterable[Operand], parts: bool) -> int:
    """Bytes of the chunks of operands, as they were opened, that computing some arrays reads.

    Parameters
    ----------
    parts : bool
        Whether it may be fewer than all of an operand that is read at all; to know takes a look at each task.
    """
    graph = HighLevelGraph.merge(*(result.dask for result in results))
    if parts:
        graph = graph.cull({key for result in results for key in flatten(result.__dask_keys__())})
    return sum(_bytes_of(operand, graph, parts) for operand in operands)


def _bytes_of(operand: Operand, graph: HighLevelGraph, parts: bool) -> int:
    # A layer that is cut down has a name that goes on.
    layers = [layer for name, layer in graph.layers.items() if name.startswith(operand.name)]
    if not parts:
        return int(operand.words.nbytes) if layers else 0
    chunks, itemsize = operand.array.chunks, operand.words.itemsize
    places: list[Any] = [key for layer in layers for key in layer.get_output_keys()]
    numbers = (
        math.prod(axis[i] for axis, i in zip(chunks, place[-len(chunks) :], strict=True)) for place in places
    )
    return int(sum(numbers)) * operand.rows * itemsize
