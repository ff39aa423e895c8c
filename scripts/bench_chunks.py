"""Times linear algebra of one matrix over a prime field in memory and in several chunks, in turn.

    python scripts/bench_chunks.py cpu
    python scripts/bench_chunks.py gpu
    python scripts/bench_chunks.py cpu --lengths 4096 --widths 256 --operations det,solve

A row is one operation of a square matrix in block columns of one width. "ratio" is its time, with all
threads and with making the graph, over the time in memory, where the CPU takes one thread; "tasks" counts the
tasks of the graph. With --json FILE writes them.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))  # PYTHONSAFEPATH leaves it out

from functools import partial
from typing import Any

import dask
import dask.array as da
import numpy as np
from benchmarking import (
    argument_parser,
    print_rows,
    time_in_turn,
    waited_seconds,
    wall_seconds,
    write_results,
)
from dask.system import CPU_COUNT

import rnsdask as rd

RUNS = {
    "cpu": ("cpu",),
    "gpu": ("gpu",),
    "tiny": ("cpu --lengths 9 --widths 3 --repeat 1",),
    "tiny-gpu": ("gpu --lengths 9 --widths 3 --repeat 1",),
}

LENGTHS, WIDTHS = {"cpu": "2048", "gpu": "16384"}, {"cpu": "256", "gpu": "1024"}
PRIME = 2**31 - 1

OPERATIONS = {
    "det": rd.linalg.det,
    "rank": rd.linalg.rank,
    "rref": lambda x: rd.linalg.rref(x).matrix.words,
    "solve": lambda x: rd.linalg.solve(x, x[:, 0]).words,
    "inv": lambda x: rd.linalg.inv(x).words,
    "lu": lambda x: [part.words for part in rd.linalg.lu(x)],
}
"""Functions of a matrix."""


def computed(name: str, x: Any) -> None:
    """Compute the result of an operation."""
    dask.compute(OPERATIONS[name](x))


def bench(
    kind: str, lengths: list[int], widths: list[int], operations: list[str], repeat: int
) -> list[dict[str, Any]]:
    """A row for each operation, length and width."""
    rows, fields = [], rd.PrimeFields([PRIME])
    measure = waited_seconds if kind == "gpu" else wall_seconds
    for length in lengths:
        words: Any = np.random.default_rng(1).integers(0, PRIME, (1, length, length)).astype(np.uint32)
        if kind == "gpu":
            import cupy

            words = cupy.asarray(words)
        x = rd.FieldArray(words, fields)
        for width in widths:
            lazy = rd.FieldArray(da.from_array(words, chunks=(1, length, width), asarray=False), fields)
            for name in operations:
                both = {"memory": x, "chunks": lazy}
                calls = {side: partial(measure, partial(computed, name, one)) for side, one in both.items()}
                timings = time_in_turn(calls, repeat)
                least = {side: min(timing.seconds) for side, timing in timings.items()}
                row = {"operation": name, "length": length, "width": width, "threads": CPU_COUNT}
                row |= {**timings["chunks"].row(), "memory ms": 1e3 * least["memory"]}
                row["ratio"] = least["chunks"] / least["memory"]
                row["tasks"] = tasks_of(OPERATIONS[name](lazy))
                rows.append(row)
                print_rows([row])
    return rows


def tasks_of(found: Any) -> int:
    """Number of tasks of lazy results."""
    found = found if isinstance(found, list) else [found]
    return len({key for one in found for key in one.__dask_graph__()})


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("kind", choices=("cpu", "gpu"))
    parser.add_argument("--lengths", help="rows of the matrices")
    parser.add_argument("--widths", help="columns of a block")
    parser.add_argument("--operations", default=",".join(OPERATIONS))
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    texts = options.lengths or LENGTHS[options.kind], options.widths or WIDTHS[options.kind]
    lengths, widths = ([int(v) for v in text.split(",")] for text in texts)
    rows = bench(options.kind, lengths, widths, options.operations.split(","), options.repeat)
    write_results(options.json, options.kind == "gpu", rows)


if __name__ == "__main__":
    main()
