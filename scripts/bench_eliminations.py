"""Times eliminations of a great matrix modulo 2^31 - 1: in memory, on workers, where memory is too small.

    python scripts/bench_eliminations.py gpu --folder /dev/shm     one GPU, and two if they are there
    python scripts/bench_eliminations.py cpu                       small ones
    python scripts/bench_eliminations.py --results FILE --chart docs/images/elimination.svg

"in memory": reduced forms and ranks of arrays in memory, which are overwritten from 40,000 rows on. "on
workers": ranks of matrices whose block columns are on workers in turn, two of them by UCX if it is there.
"out of memory": the whole command `rnsdask rank` of a store, in a process that has memory for half of it; on
a GPU this process holds the rest. Store and finished panels are in --folder. Two rows of each matrix are sums
of others, and each rank is compared. "seconds" are the least of --repeat calls after a first one. --chart
draws them beside Linac's.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))  # PYTHONSAFEPATH leaves it out

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from itertools import chain
from typing import Any

import dask
import dask.array as da
import numpy as np
from bench_protocols import places
from bench_scaling import addresses_of, cluster_of, kept, told
from benchmarking import (
    argument_parser,
    environment,
    print_rows,
    random_on_cpu,
    random_on_gpu,
    wall_seconds,
    write_results,
)

import rnsdask as rd
from rnsdask.backend import free_device_bytes

RUNS = {
    "cpu": ("cpu",),
    "gpu": ("gpu",),
    "tiny": ("cpu --memory 300 --blocks 300:100 --stored 1200:300 --repeat 1",),
    "tiny-gpu": ("gpu --memory 300 --blocks 300:100 --stored= --repeat 1",),  # others use the GPU too
}
SIZES = {
    "cpu": ("1000,2000,4000", "4000:500", "12000:500"),
    "gpu": ("1000,5000,10000,20000,50000,100000", "60000:3000,150000:4000", "60000:1500,100000:1250"),
}
"""Rows in memory; rows and columns of a block, on workers and in a store."""

FIELD = rd.PrimeFields([2**31 - 1])
PLANTED = 2
"""Rows of each matrix that are sums of two others: the last ones."""

OVERWRITTEN = 40_000
"""Rows from which on a matrix in memory is given up to its result: a GPU holds no second one."""

LEAST_ROOM = 2
"""How many times a matrix workers are to hold. One that they do not hold twice as often each call makes."""

PROCESS_BYTES = 2**29
"""Bytes of a process on a CPU beside what it computes with."""

LINAC = {1000: 0.52, 5000: 1.02, 10_000: 3.60, 20_000: 23.4, 100_000: 2825.0}
"""Seconds by rows that Linac 1.0.1 publishes for reduced row echelon forms, of an A100."""

Row = dict[str, Any]


# ---- matrices ----------------------------------------------------------------------------------------------


def columns_of(start: int, stop: int, *, rows: int, gpu: bool) -> Any:
    """Words (1, rows, stop - start) of columns of the square matrix, the same wherever they are made."""
    (p,) = FIELD.primes
    random = random_on_gpu if gpu else random_on_cpu
    words = random(FIELD.moduli, rows * (stop - start), seed=start).reshape(1, rows, stop - start)
    sums = words[:, :PLANTED].astype(np.uint64) + words[:, PLANTED : 2 * PLANTED]
    words[:, -PLANTED:] = sums % p
    return words


def blocks_of(rows: int, width: int) -> list[tuple[int, int]]:
    """First columns of blocks, and those after their last."""
    return [(start, min(start + width, rows)) for start in range(0, rows, width)]


def chunks_of(rows: int, width: int) -> tuple[tuple[int, ...], ...]:
    """Chunks of words (1, rows, rows) in these blocks."""
    return (1,), (rows,), tuple(stop - start for start, stop in blocks_of(rows, width))


@contextmanager
def on_workers(client: Any, rows: int, width: int, *, gpu: bool) -> Iterator[rd.FieldArray]:
    """A matrix whose block columns are on workers in turn."""
    ends, addresses = blocks_of(rows, width), addresses_of(client)
    calls = [partial(columns_of, *both, rows=rows, gpu=gpu) for both in ends]
    workers = [addresses[j % len(addresses)] for j in range(len(calls))]
    with kept(client, calls, workers, chunks_of(rows, width)) as words:
        yield rd.FieldArray(words, FIELD)


def made_on_demand(rows: int, width: int, *, gpu: bool) -> rd.FieldArray:
    """A matrix whose block columns are made where they are needed, and kept no longer."""
    ends = blocks_of(rows, width)

    def block(block_id: tuple[int, ...]) -> Any:
        return columns_of(*ends[block_id[-1]], rows=rows, gpu=gpu)

    meta: Any = np.empty((0, 0, 0), dtype=np.uint32)
    if gpu:
        import cupy

        meta = cupy.asarray(meta)
    words = da.map_blocks(block, chunks=chunks_of(rows, width), dtype=np.uint32, meta=meta)
    return rd.FieldArray(words, FIELD)


def check(rows: int, found: int) -> None:
    """RuntimeError if a rank is not the one that was planted."""
    if found != rows - PLANTED:
        raise RuntimeError(f"the rank of a matrix of {rows} rows is wrong: {found}")


# ---- what is timed -----------------------------------------------------------------------------------------


def row_of(table: str, rows: int, what: str, seconds: list[float], **more: Any) -> Row:
    """Make a row, and say on standard error that it is there."""
    told(f"{table}, {what} of {rows} rows: {min(seconds):.4g} s")
    facts = {"table": table, "rows": rows, "GB": 4 * rows**2 / 1e9, "operation": what}
    return {**facts, **more, "seconds": min(seconds), "calls": len(seconds)}


def in_memory(rows: int, operation: str, repeat: int, *, gpu: bool) -> Row:
    """Time an operation of a matrix that is made anew for each call; the first call is not counted."""
    is_given_up = rows >= OVERWRITTEN
    seconds = []
    for _ in range(1 + repeat):
        x = rd.FieldArray(columns_of(0, rows, rows=rows, gpu=gpu), FIELD)
        function: Callable[..., Any] = getattr(rd.linalg, operation)
        start = time.perf_counter()
        found = function(x, overwrite=is_given_up)
        # Of a form, its pivots: -1 where a column has none.
        rank = int(found[0]) if operation == "rank" else int((found[1][0] >= 0).sum())
        if gpu:
            import cupy

            cupy.cuda.Device().synchronize()
        seconds.append(time.perf_counter() - start)
        check(rows, rank)
        del x, found
        if gpu and is_given_up:  # the next one is to have a place in one piece
            cupy.get_default_memory_pool().free_all_blocks()
    return row_of("in memory", rows, operation, seconds[1:], overwritten=is_given_up)


def of_blocks(kind: str, sizes: list[tuple[int, int]], repeat: int) -> Iterator[Row]:
    """Time ranks on one worker, and on two that exchange chunks by the best protocol there is."""
    gpu, found = kind == "gpu", places(kind)
    for place, workers, protocol in dict.fromkeys((found[0], found[-1])):
        # Blocks stay as they are.
        with (
            cluster_of(kind, workers, protocol) as client,
            client.as_current(),
            dask.config.set({"array.chunk-size": "8GiB"}),
        ):
            for rows, width in sizes:
                room = workers * (free_device_bytes() or sys.maxsize) // (4 * rows**2)
                if room < LEAST_ROOM:
                    continue
                is_made = room < 2 * LEAST_ROOM
                with (
                    nullcontext(made_on_demand(rows, width, gpu=gpu))
                    if is_made
                    else on_workers(client, rows, width, gpu=gpu)
                ) as x:
                    seconds = [
                        wall_seconds(lambda x=x, rows=rows: check(rows, int(rd.linalg.rank(x).compute()[0])))
                        for _ in range(1 + repeat)
                    ]
                    del x  # it holds the chunks
                more = {"place": place, "columns of a block": width, "made": is_made, "first": seconds[0]}
                yield row_of("on workers", rows, "rank", seconds[1:], **more)


def out_of_memory(rows: int, width: int, folder: Path, *, gpu: bool) -> Row:
    """Time the command in a new process, whose working store is in the folder too."""
    with tempfile.TemporaryDirectory(dir=folder) as inside:
        path = Path(inside) / "matrix.zarr"
        made_on_demand(rows, width, gpu=False).to_zarr(path)
        command = [sys.executable, "-m", "rnsdask", "rank", str(path), "--quiet"]
        limit = 4 * rows**2 // 2
        how = ["--gpus", "1"] if gpu else ["--backend", "cpu", "--memory", f"{limit + PROCESS_BYTES}B"]
        environment = {**os.environ, "DASK_TEMPORARY_DIRECTORY": inside}
        with device_bytes_left(limit) if gpu else nullcontext():
            start = time.perf_counter()
            done = subprocess.run([*command, *how], env=environment, capture_output=True, text=True)
            seconds = time.perf_counter() - start
    if done.returncode:
        raise RuntimeError(done.stderr)
    check(rows, int(done.stdout.split()[-1]))
    return row_of("out of memory", rows, "rank", [seconds], limit_GB=limit / 1e9)


@contextmanager
def device_bytes_left(count: int) -> Iterator[None]:
    """Hold the memory of this process's GPU, but for so many bytes."""
    import cupy

    cupy.get_default_memory_pool().free_all_blocks()
    free, _ = cupy.cuda.runtime.memGetInfo()
    held = cupy.cuda.runtime.malloc(max(1, free - count))
    try:
        yield
    finally:
        cupy.cuda.runtime.free(held)


# ---- the picture -------------------------------------------------------------------------------------------


def draw(rows: list[Row], processor: str, path: Path) -> None:
    """Draw seconds by rows, both by their logarithms, beside Linac's."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter

    series: dict[str, dict[int, float]] = {"Linac 1.0.1, rref, A100 (as published)": LINAC}
    for row in rows:
        name = {
            "in memory": "rref",
            "on workers": f"rank in chunks, {row.get('place', '').partition(',')[0]}",
            "out of memory": "rank from a store, memory for half",
        }[row["table"]]
        if row["table"] != "in memory" or row["operation"] == "rref":
            values = series.setdefault(f"rnsdask, {name}, {processor}", {})
            values[row["rows"]] = min(row["seconds"], values.get(row["rows"], float("inf")))
    figure = Figure(figsize=(6.4, 3.4), layout="constrained")
    axes = figure.subplots()
    for (name, values), marker in zip(series.items(), "so^vD<>", strict=False):
        axes.plot(*zip(*sorted(values.items()), strict=True), marker=marker, markersize=4, label=name)
    axes.set(xscale="log", yscale="log", xlabel="rows and columns", ylabel="seconds")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    figure.savefig(path, metadata={"Date": None})


# ---- command -----------------------------------------------------------------------------------------------


def pairs(text: str) -> list[tuple[int, int]]:
    """Return the pairs of numbers of "60000:3000,150000:4000"."""
    found = [part.split(":") for part in text.split(",") if part]
    return [(int(rows), int(width)) for rows, width in found]


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("kind", choices=("cpu", "gpu"), nargs="?", default="cpu")
    parser.add_argument("--memory", help="rows of matrices in memory")
    parser.add_argument("--blocks", help="rows and columns of a block, on workers")
    parser.add_argument("--stored", help="rows and columns of a chunk, in a store; empty for none")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--results", type=Path, help="rows of an earlier run, with --chart")
    parser.add_argument("--chart", type=Path, help="write a picture, .svg or .png; needs matplotlib")
    options = parser.parse_args()
    if options.results is not None:
        results = json.loads(options.results.read_text(encoding="utf-8"))
        rows, machine = results["rows"], results["machine"]
    else:
        gpu = options.kind == "gpu"
        given = options.memory, options.blocks, options.stored
        memory, blocks, stored = (
            default if one is None else one for one, default in zip(given, SIZES[options.kind], strict=True)
        )
        lengths = [int(rows) for rows in memory.split(",") if rows]
        measured = chain(
            (out_of_memory(*both, options.folder, gpu=gpu) for both in pairs(stored)),
            (in_memory(n, what, options.repeat, gpu=gpu) for n in lengths for what in ("rank", "rref")),
            of_blocks(options.kind, pairs(blocks), options.repeat),
        )
        rows, machine = [], environment(gpu)
        for row in measured:
            rows.append(row)
            write_results(options.json, gpu, rows)
        print_rows(rows)
    if options.chart is not None:
        draw(rows, machine.get("gpu", machine["cpu"]).removeprefix("NVIDIA "), options.chart)


if __name__ == "__main__":
    main()
