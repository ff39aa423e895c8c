"""The graph of a function of chunks: Dask's blockwise layer, with the tasks listed faster."""

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import product
from typing import Any

import dask.array as da
from dask._task_spec import Task, TaskRef
from dask.blockwise import Blockwise, BlockwiseDep, blockwise_token
from dask.highlevelgraph import HighLevelGraph, MaterializedLayer


def blockwise_graph(
    call: Callable[..., Any],
    name: str,
    axes: Sequence[int],
    pairs: Sequence[tuple[Any, Sequence[int] | None]],
    *,
    concatenate: bool = False,
) -> HighLevelGraph:
    """The graph of a function of chunks: one layer more than its arguments have.

    This is what ``da.blockwise`` makes of the same arguments, here in pairs, without the time that takes to
    find out the result's chunks, name and type.
    """
    sources: list[Any] = [argument for argument, _ in pairs if isinstance(argument, da.Array)]
    task = Task(name, call, *(TaskRef(blockwise_token(i)) for i in range(len(pairs))))
    indices: list[Any] = [
        (argument.name if isinstance(argument, da.Array) else argument, along and _labels(along))
        for argument, along in pairs
    ]
    numblocks = {array.name: array.numblocks for array in sources}
    layer = ChunkLayer(name, _labels(axes), task, indices, numblocks, concatenate or None)
    return HighLevelGraph.from_collections(name, layer, dependencies=sources)


def _labels(axes: Sequence[int]) -> tuple[str, ...]:
    return tuple(map(_label, axes))


def _label(axis: int) -> str:
    """An axis as Dask names it."""
    label: str = blockwise_token(axis, ".")
    return label


class TreeLayer(MaterializedLayer):
    """All tasks that combine the results of the chunks of one array."""


class ChunkLayer(Blockwise):
    """A blockwise layer, not fused with another yet, of one task a chunk.

    Dask makes each task from that of the layer by putting one argument after the other into a copy, which for
    a small chunk takes longer than to compute it.
    """

    def __getitem__(self, key: Any) -> Any:
        return self._tasks[key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._tasks)

    @cached_property
    def _tasks(self) -> dict[Any, Any]:
        axes = self.output_indices
        if any(label not in axes for _, along in self.indices for label in along or ()):
            # A task takes lists of the chunks along an axis that the result lacks; or these joined.
            listed: dict[Any, Any] = self._dict
            return listed
        arguments = [self._argument(argument, along) for argument, along in self.indices]
        tasks = {}
        for place in product(*(range(self.dims[axis]) for axis in axes)):
            key = (self.output, *place)
            tasks[key] = Task(key, self.task.func, *[of(place) for of in arguments])
        return tasks

    def _argument(self, argument: Any, along: Sequence[str] | None) -> Callable[[Sequence[int]], Any]:
        """A function of a chunk's place in the result, which returns an argument of its task."""
        if along is None:
            return lambda _: argument
        numblocks = zip(along, self.numblocks[argument], strict=True)
        # An axis of one chunk is broadcast.
        chosen = [(self.output_indices.index(axis), count > 1) for axis, count in numblocks]

        def index(place: Sequence[int]) -> tuple[int, ...]:
            return tuple([place[i] if many else 0 for i, many in chosen])

        if argument in self.io_deps:
            table: BlockwiseDep = self.io_deps[argument]
            return lambda place: table[index(place)]
        return lambda place: TaskRef((argument, *index(place)))
