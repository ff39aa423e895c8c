"""Times calls on arrays in chunks beside the same calls in memory, and beside Dask's own cost for a task.

    python scripts/bench_chunks.py cpu
    python scripts/bench_chunks.py gpu
    python scripts/bench_chunks.py cpu --operations sort,ntt --places threads --scale -2

A row is an operation in one place: on the threads of this process, on a cluster of one worker, and with two
GPUs on a cluster of two. Operands have 16 chunks, which are in that place before. "memory ms" is the least
time of the call in memory, "least_ms" that in chunks, with making the graph and until all results are there;
"ratio" is theirs. "tasks" counts the tasks of the results, without those of operands, and "task ms" is what
the chunks cost more, for each task. "why" says what for, where the ratio is above 3 and a task costs over
2 ms. In memory the CPU takes one thread.

`--scale` multiplies lengths by a power of two. No operation begins after `--limit` seconds. With --json FILE
writes the rows.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))  # PYTHONSAFEPATH leaves it out

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any
from unittest.mock import patch

import dask
import dask.array as da
import numpy as np
from bench_scaling import forget
from benchmarking import argument_parser, moduli_set, print_rows, time_in_turn, write_results
from dask.system import CPU_COUNT
from distributed import futures_of, wait

import rnsdask as rd
from rnsdask.backend import gpu_count
from rnsdask.cluster.connecting import connect

RUNS = {
    "cpu": ("cpu",),
    "gpu": ("gpu --limit 100",),
    "tiny": ("cpu --scale -12 --repeat 1 --places threads",),
    "tiny-gpu": ("gpu --scale -14 --repeat 1 --places threads",),
}

CHUNKS = 16
FACTOR, TASK_MS = 3, 2
"""Ratio, and milliseconds of a task, above which a row says why."""

RESIDUES = rd.RNS(moduli_set("16"))
FIELD = rd.PrimeFields([3 * 2**30 + 1])  # which has roots of unity of order 2**30
MATRIX_FIELD = rd.PrimeFields([2**31 - 1])


@dataclass(frozen=True)
class Case:
    """An operation: its function, the system of its operands, their number and their axes.

    `cpu` and `gpu` are the logarithms of an axis's length on each; `why` is what chunks cost most for.
    """

    function: Callable[..., Any]
    system: Any
    cpu: tuple[int, ...]
    gpu: tuple[int, ...]
    operands: int = 1
    axes: int = 1
    why: str = "the tasks themselves"


def ntt_in_steps(x: Any) -> Any:
    """Transform as arrays are that no GPU has room for."""
    with (
        patch("rnsdask.lazy.one_task.free_device_bytes", return_value=0),
        patch("rnsdask.lazy.ntt.JOINED_BYTES", 0),
    ):
        return rd.ntt(x)


EXCHANGE = "all chunks exchange parts: K tasks of rechunk for each of K chunks"
CASES = {
    "add": Case(lambda x, y: rd.add(x, y, overflow="wrap"), RESIDUES, (20,), (25,), 2),
    "multiply": Case(lambda x, y: rd.multiply(x, y, overflow="wrap"), RESIDUES, (20,), (25,), 2),
    "compare": Case(lambda x: x > 12345, RESIDUES, (20,), (25,)),
    "maximum": Case(rd.maximum, RESIDUES, (20,), (25,), 2),
    "sum": Case(lambda x: x.sum(), RESIDUES, (20,), (25,)),
    "max": Case(lambda x: x.max(), RESIDUES, (20,), (25,)),
    "sort": Case(rd.sort, RESIDUES, (18,), (24,), why="chunks are sorted, and merged from parts of all"),
    "unique": Case(rd.unique, RESIDUES, (18,), (24,), why="as sort, and neighbours of chunks are compared"),
    "ntt": Case(rd.ntt, FIELD, (20, 24), (24, 28, 30), why="one task joins all chunks"),
    "ntt in steps": Case(ntt_in_steps, FIELD, (24,), (28,), why=EXCHANGE),
    "convolve": Case(rd.convolve, FIELD, (20,), (25,), 2, why="one task takes the whole axis"),
    "matmul": Case(lambda x, y: x @ y, MATRIX_FIELD, (11,), (14,), 2, 2, "tiles are read for each product"),
    "det": Case(rd.linalg.det, MATRIX_FIELD, (11,), (13,), 1, 2, "a panel waits for the one before"),
    "rref": Case(lambda x: rd.linalg.rref(x).matrix, MATRIX_FIELD, (11,), (13,), 1, 2, "as det"),
    "rechunk": Case(lambda x: rechunked(x), MATRIX_FIELD, (12,), (14,), 1, 2, EXCHANGE),
}


def rechunked(x: Any) -> Any:
    """Copy in memory, or turn chunks of rows into chunks of columns."""
    if not isinstance(x.words, da.Array):
        return x.words.copy()
    return x.rechunk((-1, x.words.chunksize[1]))


def block_of_words(_: Any, *, moduli: list[int], gpu: bool, seed: int, block_info: Any = None) -> Any:
    """Random words of a chunk, which depend on its place and the seed alone."""
    index = block_info[None]["chunk-location"]
    if gpu:
        import cupy as library
    else:
        library = np  # type: ignore[misc]
    rng = library.random.default_rng([seed, *index] if not gpu else hash((seed, *index)) % 2**31)
    words = library.empty(block_info[None]["chunk-shape"], dtype=library.uint32)
    for row, m in zip(words, moduli, strict=True):
        row[...] = (rng.random(row.shape) * m).astype(library.uint32)  # below m: doubles have more bits
    return words


def operand(case: Case, log_length: int, gpu: bool, seed: int) -> Any:
    """A lazy array of random elements in chunks along its first axis."""
    length, moduli = 1 << log_length, list(case.system.moduli)
    chunk = max(1, length // CHUNKS)
    shape, chunks = (length,) * case.axes, (chunk, -1)[: case.axes]
    like = da.zeros((len(moduli), *shape), dtype=np.uint32, chunks=(-1, *chunks))
    meta: Any = np.empty((0,) * (1 + case.axes), np.uint32)
    if gpu:
        import cupy

        meta = cupy.asarray(meta)
    words = da.map_blocks(block_of_words, like, moduli=moduli, gpu=gpu, seed=seed, dtype=np.uint32, meta=meta)
    made = rd.RNSArray if isinstance(case.system, rd.RNS) else rd.FieldArray
    return made(words, case.system)


# ---- places ------------------------------------------------------------------------------------------------


@contextmanager
def cluster(place: str, gpu: bool) -> Iterator[Any]:
    """The client of a place; None for the threads of this process."""
    if place == "threads":
        yield None
        return
    with ExitStack() as stack:
        if place == "two":
            client = stack.enter_context(connect(gpus=2))
            assert client is not None
            stack.enter_context(client.as_current())
            yield client
            return
        from distributed import Client, LocalCluster

        how: dict[str, Any] = {"n_workers": 1, "dashboard_address": None, "memory_limit": 0}
        local = stack.enter_context(LocalCluster(threads_per_worker=8 if gpu else CPU_COUNT, **how))
        yield stack.enter_context(Client(local))


def synchronize() -> None:
    """Wait for all that was queued on this process's GPU."""
    import cupy

    cupy.cuda.Device().synchronize()


def collections_of(found: Any) -> list[Any]:
    """The Dask collections among results."""
    found = list(found) if isinstance(found, tuple) else [found]
    found = [getattr(one, "words", one) for one in found]
    return [one for one in found if dask.is_dask_collection(one)]


def seconds_of(call: Callable[[], Any], client: Any, gpu: bool) -> float:
    """Wall-clock seconds until all results of a call are there."""
    start = time.perf_counter()
    kept = dask.persist(*collections_of(call()))
    futures = [] if client is None else futures_of(kept)
    if futures:
        wait(futures)
        if failed := [future for future in futures if future.status != "finished"]:
            failed[0].result()  # raises its error
    if gpu and client is not None:
        client.run(synchronize)
    elif gpu:
        synchronize()
    seconds = time.perf_counter() - start
    if futures:
        del kept
        forget(client, futures)  # or the next call finds them done
    return seconds


def own_tasks(found: Any, operands: list[Any]) -> int:
    """Number of tasks of results, without those of their operands."""
    given = {key for x in operands for key in dict(x.words.__dask_graph__())}
    return len({key for one in collections_of(found) for key in dict(one.__dask_graph__())} - given)


# ---- rows --------------------------------------------------------------------------------------------------


def row_of(name: str, log_length: int, place: str, client: Any, gpu: bool, repeat: int) -> dict[str, Any]:
    """Measure an operation in one place, and in memory in turn with it."""
    case = CASES[name]
    lazy = [operand(case, log_length, gpu, seed) for seed in range(case.operands)]
    with dask.config.set(scheduler="threads"):
        whole = [type(x)(x.words.compute(), x.system) for x in lazy]
    chunks = [type(x)(x.words.persist(), x.system) for x in lazy]
    new = [partial(case.function, *(type(x)(x.words, x.system) for x in given)) for given in (whole, chunks)]
    calls = {
        "memory": lambda: seconds_of(new[0], None, gpu),
        "chunks": lambda: seconds_of(new[1], client, gpu),
    }
    timings = time_in_turn(calls, repeat)
    least = {side: 1e3 * min(timing.seconds) for side, timing in timings.items()}
    tasks = own_tasks(new[1](), chunks)
    more = (least["chunks"] - least["memory"]) / max(1, tasks)
    row: dict[str, Any] = {"operation": f"{name} 2^{log_length}" + f" x 2^{log_length}" * (case.axes - 1)}
    row |= {"place": place, "memory ms": least["memory"], **timings["chunks"].row()}
    row |= {"ratio": least["chunks"] / least["memory"], "tasks": tasks, "task ms": max(0.0, more)}
    row["why"] = case.why if row["ratio"] > FACTOR and more > TASK_MS else None
    return row


def bench(
    gpu: bool, operations: list[str], places: list[str], scale: int, repeat: int, limit: float
) -> list[Any]:
    """Rows of all operations in all places; those of one place first, for a cluster is started once."""
    start, rows = time.perf_counter(), []
    for place in places:
        with cluster(place, gpu) as client:
            for name in operations:
                logs = CASES[name].gpu if gpu else CASES[name].cpu
                for log_length in logs:
                    log_length = max(1, log_length + scale)
                    if time.perf_counter() - start > limit:
                        print(
                            f"left out, for {limit:.0f} s are over: {name} 2^{log_length}, {place}",
                            flush=True,
                        )
                        continue
                    rows.append(row_of(name, log_length, place, client, gpu, repeat))
                    print_rows(rows[-1:])
                    if gpu:
                        import cupy

                        cupy.get_default_memory_pool().free_all_blocks()
    return rows


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("kind", choices=("cpu", "gpu"))
    parser.add_argument("--operations", default=",".join(CASES))
    parser.add_argument("--places", help="of threads, worker, two; default all that are there")
    parser.add_argument("--scale", type=int, default=0, help="power of two by which lengths are multiplied")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--limit", type=float, default=float("inf"), help="seconds")
    options = parser.parse_args()
    gpu = options.kind == "gpu"
    places = ["threads", "worker", *(["two"] if gpu and gpu_count() > 1 else [])]
    if options.places:
        places = options.places.split(",")
    rows = bench(gpu, options.operations.split(","), places, options.scale, options.repeat, options.limit)
    write_results(options.json, gpu, rows)


if __name__ == "__main__":
    main()
