"""Times MAX and SUM on Dask clusters of more and more workers: one GPU each, or one process each on a CPU.

    python scripts/bench_scaling.py gpu --gib 96           1, 2, 4, 8 GPUs, as many as there are
    python scripts/bench_scaling.py cpu                    1, 2 processes of one thread

"resident" data are chunks that the workers hold in the memory of their GPU, or in their own; "storage" is a
local store, which a warm-up has brought into the page cache; GPUs read it by KvikIO where that is installed.
Strong scaling is of --gib (--store-gib) in all, weak scaling of so much for each worker. A call is what a
user's is: it builds the graph, has the cluster compute it, and fetches the result, which is compared with
the one known. The speedup is how many times the rate of the least number of workers is reached, times that
number; the efficiency is the speedup by the number of workers. Dask takes about a millisecond a task, so
the chunks are few and large.

Prints a table, and with --json FILE the same figures as JSON.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))  # PYTHONSAFEPATH leaves it out

import functools
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import dask.array as da
import numpy as np
from benchmarking import (
    GIB,
    Timing,
    argument_parser,
    moduli_set,
    print_rows,
    random_on_cpu,
    time_in_turn,
    write_results,
)
from distributed import Client, Future, LocalCluster

import rnsdask as rd
from rnsdask.cluster.connecting import connect
from rnsdask.core.layout import CHUNK_MULTIPLE, default_chunk

OPERATIONS = ("max", "sum")
BACKENDS = {"gpu": "cuda", "cpu": "cpu"}
WORKERS = {"gpu": (1, 2, 4, 8), "cpu": (1, 2)}
DEFAULT_GIB = {"gpu": (96.0, 48.0, 2.0), "cpu": (0.5, 0.0625, 0.25)}  # resident, a chunk of it, in the store
BUDGET_SECONDS = {"gpu": 8.0, "cpu": 2.0}  # for the calls of one array; there may be fewer than --repeat
RELEASE_SECONDS = 30.0

RUNS = {
    "cpu": ("cpu",),
    "gpu": ("gpu",),
    "tiny": ("cpu --gib 0.001 --chunk-gib 0.0003 --store-gib 0.001 --set 8 --repeat 1",),
    "tiny-gpu": ("gpu --gib 0.01 --chunk-gib 0.003 --store-gib 0.01 --set 8 --repeat 1 --workers 1",),
}


# ---- numbers whose maximum and sum are known ---------------------------------------------------------------

PERIOD = 2**16
"""The numbers of a chunk repeat a random pattern of this length; but the last is the chunk's maximum."""


@functools.cache
def pattern_of(moduli: rd.ModuliSet) -> np.ndarray:
    return random_on_cpu(moduli, PERIOD)


@functools.cache
def pattern_ints(moduli: rd.ModuliSet) -> list[int]:
    return rd.from_residues(pattern_of(moduli), moduli).to_ints().tolist()


def planted(moduli: rd.ModuliSet, chunk: int) -> int:
    """The last number of a chunk: more than all before it, but not so near M that only exact ways tell."""
    return moduli.product - (moduli.product >> 30) + chunk


def chunk_of_known(chunk: int, lengths: tuple[int, ...], moduli: rd.ModuliSet, gpu: bool) -> Any:
    """Residues of a chunk; a CuPy array is made on the GPU of the process that calls this."""
    if gpu:
        import cupy as xp
    else:
        xp = np
    length = lengths[chunk]
    pattern = xp.asarray(pattern_of(moduli))
    residues = xp.empty((len(moduli), length), dtype=np.uint32)
    for start in range(0, length, PERIOD):
        residues[:, start : start + PERIOD] = pattern[:, : length - start]
    last = planted(moduli, chunk)
    residues[:, -1] = xp.asarray(np.array([last % m for m in moduli], dtype=np.uint32))
    return residues


def known_results(moduli: rd.ModuliSet, lengths: tuple[int, ...]) -> dict[str, tuple[int, int | None, int]]:
    """Value, index and count of the maximum and the sum of all chunks."""
    pattern = pattern_ints(moduli)
    assert max(pattern) < planted(moduli, 0)
    whole, total, count = sum(pattern), 0, sum(lengths)
    for chunk, length in enumerate(lengths):
        periods, rest = divmod(length - 1, PERIOD)
        total += periods * whole + sum(pattern[:rest]) + planted(moduli, chunk)
    return {"max": (planted(moduli, len(lengths) - 1), count - 1, count), "sum": (total, None, count)}


# ---- where they are ----------------------------------------------------------------------------------------


@contextmanager
def cluster_of(kind: str, workers: int) -> Iterator[Client]:
    """A client of a new cluster of this host, all of whose workers are there."""
    if kind == "gpu":
        with connect(gpus=workers) as client:
            client.wait_for_workers(workers)
            yield client
        return
    options = {"processes": True, "threads_per_worker": 1, "dashboard_address": ":0"}
    with LocalCluster(n_workers=workers, **options) as cluster, connect(cluster.scheduler_address) as client:
        client.wait_for_workers(workers)
        yield client


@contextmanager
def resident(
    client: Client, make: Any, moduli: rd.ModuliSet, lengths: tuple[int, ...]
) -> Iterator[rd.RNSArray]:
    """An array whose chunk i is what ``make(i, lengths, moduli)`` returns on a worker, which keeps it.

    Each worker makes as many as any other, neighbours of one another. In the end all are forgotten.
    """
    addresses = sorted(client.scheduler_info(n_workers=-1)["workers"])
    name = f"resident-{time.monotonic_ns()}"
    keys = [(name, 0, i) for i in range(len(lengths))]
    homes = [addresses[i * len(addresses) // len(lengths)] for i in range(len(lengths))]
    futures = {
        key: client.submit(make, i, lengths, moduli, key=key, workers=[home], pure=False)
        for i, (key, home) in enumerate(zip(keys, homes, strict=True))
    }
    try:
        for future in futures.values():
            if (error := future.exception()) is not None:  # it waits, and fetches no residues
                raise error
        meta = np.empty((0, 0), dtype=np.uint32)
        yield rd.RNSArray(da.Array(futures, name, ((len(moduli),), lengths), meta=meta), rd.RNS(moduli))
    finally:
        forget(client, list(futures.values()))


def forget(client: Client, futures: list[Future]) -> None:
    """Release results, and wait until a client holds them no more; RuntimeError if something else does."""
    end = time.monotonic() + RELEASE_SECONDS
    for future in futures:
        future.release()
    while any(future.key in client.futures for future in futures):
        if time.monotonic() > end:
            raise RuntimeError(f"results are still held after {RELEASE_SECONDS:.0f} s")
        time.sleep(1e-3)


def write_store(path: Path, moduli: rd.ModuliSet, lengths: tuple[int, ...]) -> None:
    """Write the same numbers as a store, on the threads of this process."""

    def block(block_id: tuple[int, ...]) -> np.ndarray:
        return chunk_of_known(block_id[1], lengths, moduli, gpu=False)

    meta = np.empty((0, 0), dtype=np.uint32)
    residues = da.map_blocks(block, chunks=((len(moduli),), lengths), dtype=np.uint32, meta=meta)
    rd.RNSArray(residues, rd.RNS(moduli)).to_zarr(path)


def equal_chunks(moduli: rd.ModuliSet, gib: float, chunk_gib: float) -> tuple[int, ...]:
    """Lengths of so many GiB of numbers in chunks of about so many."""
    chunks = max(1, round(gib / chunk_gib))
    length = int(gib * GIB) // chunks // (4 * len(moduli)) // CHUNK_MULTIPLE * CHUNK_MULTIPLE
    return (max(CHUNK_MULTIPLE, length),) * chunks


# ---- measuring ---------------------------------------------------------------------------------------------


def call_seconds(client: Client, x: rd.RNSArray, operation: str, known: int) -> float:
    """Seconds of a reduction until its result is here; RuntimeError if it is not the one known."""
    with client.as_current():
        start = time.perf_counter()
        result = getattr(x, operation)().compute()
        seconds = time.perf_counter() - start
    if result != known:
        raise RuntimeError(f"{operation} of {x!r} is wrong: {result}")
    return seconds


def time_reductions(client: Client, x: rd.RNSArray, kind: str, repeat: int) -> dict[str, Timing]:
    known = known_results(x.moduli, x.chunks[0])
    calls = {
        operation: functools.partial(call_seconds, client, x, operation, known[operation][0])
        for operation in OPERATIONS
    }
    return time_in_turn(calls, repeat, BUDGET_SECONDS[kind])


def rows_of(table: str, workers: int, x: rd.RNSArray, timings: dict[str, Timing]) -> list[dict[str, Any]]:
    return [
        {
            "table": table,
            "what": operation,
            "workers": workers,
            "numbers": x.size,
            "bytes": x.nbytes,
            "ms": 1e3 * timing.median,
            "spread": timing.spread,
            "calls": len(timing.seconds),
            "gb_per_s": x.nbytes / timing.median / 1e9,
        }
        for operation, timing in timings.items()
    ]


def bench_resident(
    client: Client, kind: str, workers: int, moduli: rd.ModuliSet, lengths: tuple[int, ...], repeat: int
) -> list[dict[str, Any]]:
    """Rows of strong and weak scaling; with one worker they are of the same calls."""
    rows: list[dict[str, Any]] = []
    make = functools.partial(chunk_of_known, gpu=kind == "gpu")
    for names, times in sizes(workers):
        with resident(client, make, moduli, lengths * times) as x:
            timings = time_reductions(client, x, kind, repeat)
            rows += [row for name in names for row in rows_of(f"resident, {name}", workers, x, timings)]
    return rows


def bench_storage(
    client: Client, kind: str, workers: int, path: Path, count: int, repeat: int
) -> list[dict[str, Any]]:
    """The same of the first numbers of a store; `count` of them are what strong scaling takes."""
    rows: list[dict[str, Any]] = []
    for names, times in sizes(workers):
        x = rd.open_zarr(path, backend=BACKENDS[kind])[: count * times]
        timings = time_reductions(client, x, kind, repeat)
        rows += [row for name in names for row in rows_of(f"storage, {name}", workers, x, timings)]
    return rows


def sizes(workers: int) -> list[tuple[tuple[str, ...], int]]:
    """What is measured with so many workers: the tables that it is for, and how many times the data."""
    strong, weak = "strong scaling", "weak scaling"
    return [((strong, weak), 1)] if workers == 1 else [((strong,), 1), ((weak,), workers)]


def with_speedups(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows, table by table, with what they gain over those of the least number of workers."""
    first: dict[tuple[str, str], dict[str, Any]] = {}
    done = []
    for row in sorted(rows, key=lambda row: (row["table"], OPERATIONS.index(row["what"]), row["workers"])):
        base = first.setdefault((row["table"], row["what"]), row)
        speedup = row["gb_per_s"] / base["gb_per_s"] * base["workers"]
        done.append(row | {"speedup": speedup, "efficiency": speedup / row["workers"]})
    return done


def gpus_here() -> int:
    from dask_cuda.utils import get_n_gpus

    return int(get_n_gpus())


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("kind", choices=tuple(WORKERS))
    parser.add_argument("--set", default="64", help="size of one of Table 2's sets, or e.g. 2048b")
    parser.add_argument("--workers", help="e.g. 1,2,4; default as many GPUs as there are, or 1,2 processes")
    parser.add_argument(
        "--gib", type=float, help="resident data of a worker; default 96 a GPU, 0.5 a process"
    )
    parser.add_argument("--chunk-gib", type=float, help="a chunk of them; default 48 on GPUs, else 1/16")
    parser.add_argument(
        "--store-gib", type=float, help="stored data of a worker; default 2, or 0.25 on a CPU"
    )
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--folder", type=Path, help="where the store goes; default a temporary folder")
    options = parser.parse_args()
    given = (options.gib, options.chunk_gib, options.store_gib)
    defaults = DEFAULT_GIB[options.kind]
    gib, chunk_gib, store_gib = (d if g is None else g for g, d in zip(given, defaults, strict=True))
    if options.workers:
        counts = tuple(sorted({int(count) for count in options.workers.split(",")}))
    else:
        most = max(1, gpus_here()) if options.kind == "gpu" else max(WORKERS["cpu"])
        counts = tuple(count for count in WORKERS[options.kind] if count <= most)
    moduli = moduli_set(options.set)
    lengths = equal_chunks(moduli, gib, chunk_gib)
    store_chunk_gib = min(default_chunk(len(moduli)) * 4 * len(moduli) / GIB, store_gib / max(counts))
    stored = equal_chunks(moduli, store_gib, store_chunk_gib)
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        path = Path(folder) / "x.zarr"
        write_store(path, moduli, stored * max(counts))
        for workers in counts:
            with cluster_of(options.kind, workers) as client:
                what = (client, options.kind, workers)
                rows += bench_resident(*what, moduli, lengths, options.repeat)
                rows += bench_storage(*what, path, sum(stored), options.repeat)
    rows = with_speedups(rows)
    print_rows(rows)
    write_results(options.json, options.kind == "gpu", rows)


if __name__ == "__main__":
    main()
