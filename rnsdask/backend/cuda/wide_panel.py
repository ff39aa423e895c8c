"""Elimination in a few columns of one matrix modulo a prime beyond 32 bits, by all multiprocessors."""

import cupy
import numpy as np

from rnsdask.backend.cuda import launching
from rnsdask.backend.cuda.launching import Parameter
from rnsdask.backend.cuda.layout import WIDE_PANEL
from rnsdask.backend.cuda.wide import wide_table_on
from rnsdask.backend.protocol import Array, WidePanel
from rnsdask.core.wide_moduli import WideModuli

_BLOCK = 256


def wide_panel(words: Array, rank: int, columns: tuple[int, int], moduli: WideModuli) -> WidePanel:
    start, stop = columns
    rows, width = len(words) - rank, stop - start
    panels = cupy.empty((2, rows, width), dtype=cupy.uint64)
    pivot_rows = cupy.empty((width, width), dtype=cupy.uint64)
    found = cupy.full(width + 1, rows, dtype=cupy.uint64)
    state, order, pivots = (cupy.empty(n, dtype=cupy.int32) for n in (width + 2, rows, width))
    product = cupy.empty(1, dtype=cupy.uint64)
    task = Parameter(
        WIDE_PANEL,
        words=words[rank:, start:stop],
        stride=words.strides[0] // words.itemsize,
        rows=rows,
        width=width,
        pivot_rows=pivot_rows,
        found=found,
        state=state,
        order=order,
        pivots=pivots,
        product=product,
        modulus=wide_table_on(moduli, cupy.cuda.runtime.getDevice()),
    )
    threads = rows * width
    launching.launch("wide_panel", "wide_panel_begin", threads, (task, panels[0]), block=_BLOCK)
    ways = (panels[0], panels[1]), (panels[1], panels[0])
    each = ((task, *ways[column % 2], np.int64(column)) for column in range(width))
    launching.launch_each("wide_panel", "wide_panel_column", threads, each, block=_BLOCK)
    end = task, panels[width % 2], np.int64(start - rank)
    launching.launch("wide_panel", "wide_panel_end", threads, end, block=_BLOCK)
    count, is_moved = state[-2:].get().tolist()
    return WidePanel(order if is_moved else None, pivots[:count], product)
