"""The calls that tasks on chunks make, whether a Dask array or a job has the tasks.

A function learns the place of its chunk from the index of the chunk and a compact table of all chunks: Dask's
own ``block_info`` makes tasks large.
"""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from dask.base import tokenize

from rnsdask.backend import first_alone, uses_gpu
from rnsdask.core.place import Grid

# Dask's tokens would be decimal, which Python refuses for longer integers.
_SHORT_BITS = 64


@dataclass(frozen=True, eq=False)
class Call:
    """A function with its options, which may hold integers of any size, and the grid of chunks if needed."""

    function: Callable[..., Any]
    options: dict[str, Any]
    grid: Grid | None = None
    has_index: bool = False

    def __call__(self, *blocks: Any) -> Any:
        """Call the function with the chunks, and with their place if it asks for it."""
        options = self.options
        if self.has_index:
            index, blocks = blocks[0], blocks[1:]
        if self.grid is not None:
            rows = len(index) - len(self.grid.lengths)  # the axis of words, if any, is not part of the place
            options = {**options, "place": self.grid.place(index[rows:])}
        on_gpu = blocks and uses_gpu(options.get("backend", "cpu"), *blocks)
        # Each number of rows has its own kernels.
        kind = type(options.get("system")).__name__, options.get("operation"), options.get("mode")
        with first_alone(self.function, *kind) if on_gpu else nullcontext():
            return self.function(*blocks, **options)

    def __dask_tokenize__(self) -> Any:
        return tokenize(self.function, nameable(self.options), self.grid, self.has_index)


def nameable(value: Any) -> Any:
    """Return the options with long integers as text, which Dask can write into a token."""
    if type(value) is int and value.bit_length() > _SHORT_BITS:
        return "int", hex(value)
    if isinstance(value, dict):
        return {key: nameable(item) for key, item in value.items()}
    return type(value)(map(nameable, value)) if type(value) in (list, tuple) else value
