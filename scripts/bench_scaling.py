"""Times calls on Dask clusters of more and more workers: one GPU each, or one process each on a CPU.

    python scripts/bench_scaling.py gpu                    1, 2, 4, 8 GPUs, as many as there are
    python scripts/bench_scaling.py cpu                    1, 2 processes of one thread

MAX and SUM of resident and of stored data; and of resident data products, batches of transforms, one long
transform over all workers, and determinants, whose results stay on the workers (scaling_results.py).
"resident" data are chunks that the workers hold in the memory of their GPU, or in their own; "storage" is a
local store, which a warm-up has brought into the page cache.
Strong scaling is of --gib (--store-gib, --result-gib) in all, weak scaling of so much for each worker. A
call is what a user's is: it builds the graph, has the cluster compute it, and fetches the result or waits
until it is there; the result is compared with the one known. "with hardly any data" is MAX and SUM of as
many chunks as weak scaling has, but small ones: the time that Dask takes. The speedup is how many times the
rate of the least number of workers is reached, times that number; the efficiency is the speedup by the
number of workers. Dask takes about a millisecond a task, so the chunks are few and large.

Prints a table, and with --json FILE the same figures as JSON.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))  # PYTHONSAFEPATH leaves it out

import functools
import tempfile
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import dask
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
from distributed import Client, Future, LocalCluster, futures_of, wait
from scaling_results import Call, determinants, long_transform, products, transforms

import rnsdask as rd
from rnsdask.cluster.connecting import connect
from rnsdask.core.layout import CHUNK_MULTIPLE, default_chunk

OPERATIONS = ("max", "sum")
BACKENDS = {"gpu": "cuda", "cpu": "cpu"}
WORKERS = {"gpu": (1, 2, 4, 8), "cpu": (1, 2)}
# Of a worker: resident, in the store, and of the calls whose results stay; and log2 of the long transform.
# What is resident fits into 0.8 of the memory of a GPU of 80 GB: dask-cuda moves what is more to the host.
DEFAULT_SIZES = {"gpu": (60.0, 2.0, 12.0, 30), "cpu": (0.5, 0.25, 0.125, 20)}
LONG_CHUNKS = 16  # of the long transform
BUDGET_SECONDS = {"gpu": 6.0, "cpu": 2.0}  # for the calls of one array; there may be fewer than --repeat
RELEASE_SECONDS = 30.0
START = time.perf_counter()

RUNS = {
    "cpu": ("cpu",),
    "gpu": ("gpu",),
    "tiny": ("cpu --gib 0.001 --store-gib 0.001 --result-gib 0.0002 --long 12 --set 8 --repeat 1",),
    "tiny-gpu": (
        "gpu --gib 0.01 --store-gib 0.01 --result-gib 0.01 --long 20 --set 8 --repeat 1 --workers 1",
    ),
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


def chunk_of_known(chunk: int, lengths: tuple[int, ...], moduli: rd.ModuliSet, *, gpu: bool) -> Any:
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
def cluster_of(kind: str, workers: int, protocol: str | None = None) -> Iterator[Client]:
    """A client of a new cluster of this host, all of whose workers are there; the protocol is for GPUs."""
    if kind == "gpu":
        # Dask's other way to exchange parts of chunks takes NumPy's arrays only.
        with (
            connect(gpus=workers, protocol=protocol) as client,
            dask.config.set({"array.rechunk.method": "tasks"}),
        ):
            client.wait_for_workers(workers)
            yield client
        return
    options = {"processes": True, "threads_per_worker": 1, "dashboard_address": ":0"}
    with LocalCluster(n_workers=workers, **options) as cluster, connect(cluster.scheduler_address) as client:
        client.wait_for_workers(workers)
        yield client


def resident(
    client: Client, gpu: bool, make: Any, given: Any, lengths: tuple[int, ...], rows: int, *more: int
) -> AbstractContextManager[da.Array]:
    """Words (rows, length, *more): chunk i is what ``make(i, lengths, given, gpu=)`` returns on a worker.

    Each worker makes and keeps as many as any other, neighbours of one another. In the end all are forgotten.
    """
    chunks = (rows,), lengths, *((axis,) for axis in more)
    calls = [functools.partial(make, i, lengths, given, gpu=gpu) for i in range(len(lengths))]
    addresses = addresses_of(client)
    workers = [addresses[i * len(addresses) // len(calls)] for i in range(len(calls))]
    return kept(client, calls, workers, chunks)


def addresses_of(client: Client) -> list[str]:
    return sorted(client.scheduler_info(n_workers=-1)["workers"])


@contextmanager
def kept(
    client: Client, calls: list[Any], workers: list[str], chunks: tuple[tuple[int, ...], ...]
) -> Iterator[da.Array]:
    """An array whose chunks, in C order, are what calls return, each on a worker that keeps it."""
    name = f"resident-{time.monotonic_ns()}"
    # The chunk's key is its task's, as `persist` has it: by another name, a worker counts its bytes twice.
    keys = [(name, *index) for index in np.ndindex(*map(len, chunks))]
    futures = [
        client.submit(call, workers=[worker], key=key)
        for call, worker, key in zip(calls, workers, keys, strict=True)
    ]
    try:
        for future in futures:
            if (error := future.exception()) is not None:  # it waits, and fetches no words
                raise error
        graph: dict[Any, Any] = dict(zip(keys, futures, strict=True))
        yield da.Array(graph, name, chunks, meta=np.empty((0,) * len(chunks), dtype=np.uint32))
    finally:
        forget(client, futures)


def forget(client: Client, futures: list[Future]) -> None:
    """Release results, and wait until no worker holds them; RuntimeError if something else does."""
    keys, end = [future.key for future in futures], time.monotonic() + RELEASE_SECONDS
    for future in futures:
        future.release()
    while any(client.who_has(keys).values()):
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


def told(what: str) -> None:
    """Say on standard error what has been measured, and after how many seconds of the process."""
    print(f"{time.perf_counter() - START:6.1f} s: {what}", file=sys.stderr, flush=True)


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


def result_seconds(client: Client, call: Call, checked: list[str]) -> float:
    """Seconds until all chunks of a result are on the workers; RuntimeError if its ends are wrong."""
    with client.as_current():
        start = time.perf_counter()
        result = client.persist(call.compute())
        wait(result)
        seconds = time.perf_counter() - start
        if call.name not in checked:
            checked.append(call.name)
            if not call.check(result):
                raise RuntimeError(f"{call.name} is wrong: {result!r}")
        futures = futures_of(result)
        del result
        forget(client, futures)  # or the next call of the same name finds them done
    return seconds


def time_reductions(client: Client, x: rd.RNSArray, kind: str, repeat: int) -> dict[str, Timing]:
    known = known_results(x.moduli, x.chunks[0])
    calls = {
        operation: functools.partial(call_seconds, client, x, operation, known[operation][0])
        for operation in OPERATIONS
    }
    return time_in_turn(calls, repeat, BUDGET_SECONDS[kind])


def rows_of(table: str, workers: int, nbytes: int, timings: dict[str, Timing]) -> list[dict[str, Any]]:
    return [
        {
            "table": table,
            "what": what,
            "workers": workers,
            "bytes": nbytes,
            "ms": 1e3 * timing.median,
            "spread": timing.spread,
            "calls": len(timing.seconds),
            "gb_per_s": nbytes / timing.median / 1e9,
        }
        for what, timing in timings.items()
    ]


def bench_resident(
    client: Client, kind: str, workers: int, moduli: rd.ModuliSet, lengths: tuple[int, ...], repeat: int
) -> list[dict[str, Any]]:
    """Rows of strong and weak scaling; with one worker they are of the same calls."""
    rows: list[dict[str, Any]] = []
    for names, times in sizes(workers):
        with resident(client, kind == "gpu", chunk_of_known, moduli, lengths * times, len(moduli)) as words:
            x = rd.RNSArray(words, rd.RNS(moduli))
            timings = time_reductions(client, x, kind, repeat)
            told(f"resident, {workers} workers, {x.nbytes / GIB:.1f} GiB")
            rows += [
                row for name in names for row in rows_of(f"resident, {name}", workers, x.nbytes, timings)
            ]
            del words, x  # they hold the chunks
    tiny = (CHUNK_MULTIPLE,) * len(lengths) * workers
    with resident(client, kind == "gpu", chunk_of_known, moduli, tiny, len(moduli)) as words:
        x = rd.RNSArray(words, rd.RNS(moduli))
        rows += rows_of("with hardly any data", workers, x.nbytes, time_reductions(client, x, kind, repeat))
        del words, x
    return rows


def bench_results(
    client: Client, kind: str, workers: int, moduli: rd.ModuliSet, size: tuple[float, int, int], repeat: int
) -> list[dict[str, Any]]:
    """Rows of calls whose results stay; `size`: GiB of a worker, chunks of them, log2 of the transform."""
    rows: list[dict[str, Any]] = []
    (gib, chunks, long), make = size, functools.partial(resident, client, kind == "gpu")
    for names, times in sizes(workers):
        much = gib * times, chunks * times
        calls = [products(make, moduli, *much), transforms(make, *much), determinants(make, *much)]
        if "strong scaling" in names:
            calls.append(long_transform(make, long, LONG_CHUNKS))
        for opened in calls:
            with opened as call:
                measure = functools.partial(result_seconds, client, call, [])
                measure()  # compiles its kernels, which may take more than the budget
                timings = time_in_turn({call.name: measure}, repeat, BUDGET_SECONDS[kind])
                told(f"{call.name}, {workers} workers, {call.nbytes / GIB:.1f} GiB")
                if call.name.startswith("one "):  # of one length on however many workers
                    names = ("strong scaling",)
                rows += [
                    row
                    for name in names
                    for row in rows_of(f"results, {name}", workers, call.nbytes, timings)
                ]
    return rows


def bench_storage(
    client: Client, kind: str, workers: int, path: Path, count: int, repeat: int
) -> list[dict[str, Any]]:
    """Measure the first numbers of a store; strong scaling takes `count` of them."""
    rows: list[dict[str, Any]] = []
    for names, times in sizes(workers):
        x = rd.open_zarr(path, backend=BACKENDS[kind])[: count * times]
        timings = time_reductions(client, x, kind, repeat)
        told(f"storage, {workers} workers, {x.nbytes / GIB:.1f} GiB")
        rows += [row for name in names for row in rows_of(f"storage, {name}", workers, x.nbytes, timings)]
    return rows


def sizes(workers: int) -> list[tuple[tuple[str, ...], int]]:
    """Sizes to measure with a number of workers: the tables they belong to, and multiples of the data."""
    strong, weak = "strong scaling", "weak scaling"
    return [((strong, weak), 1)] if workers == 1 else [((strong,), 1), ((weak,), workers)]


def with_speedups(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows, table by table, with what they gain over those of the least number of workers."""
    first: dict[tuple[str, str], dict[str, Any]] = {}
    done = []
    for row in sorted(rows, key=lambda row: (row["table"], row["what"], row["workers"])):
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
        "--gib", type=float, help="resident data of a worker; default 60 a GPU, 0.5 a process"
    )
    parser.add_argument(
        "--store-gib", type=float, help="stored data of a worker; default 2, or 0.25 on a CPU"
    )
    parser.add_argument(
        "--result-gib", type=float, help="an operand of a worker; default 12, or 0.125 on a CPU"
    )
    parser.add_argument(
        "--long", type=int, help="log2 of the elements of the long transform; default 30 or 20"
    )
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--folder", type=Path, help="where the store goes; default a temporary folder")
    options = parser.parse_args()
    given = (options.gib, options.store_gib, options.result_gib, options.long)
    defaults = DEFAULT_SIZES[options.kind]
    gib, store_gib, result_gib, long = (d if g is None else g for g, d in zip(given, defaults, strict=True))
    if options.workers:
        counts = tuple(sorted({int(count) for count in options.workers.split(",")}))
    else:
        most = max(1, gpus_here()) if options.kind == "gpu" else max(WORKERS["cpu"])
        counts = tuple(count for count in WORKERS[options.kind] if count <= most)
    moduli = moduli_set(options.set)
    lengths = equal_chunks(moduli, gib, gib / max(counts))
    store_chunk_gib = min(default_chunk(len(moduli)) * 4 * len(moduli) / GIB, store_gib / max(counts))
    stored = equal_chunks(moduli, store_gib, store_chunk_gib)
    size = (result_gib, 2 * max(counts), long)
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        path = Path(folder) / "x.zarr"
        write_store(path, moduli, stored * max(counts))
        for workers in counts:
            with cluster_of(options.kind, workers) as client:
                what = (client, options.kind, workers)
                rows += bench_resident(*what, moduli, lengths, options.repeat)
                rows += bench_storage(*what, path, sum(stored), options.repeat)
                rows += bench_results(*what, moduli, size, options.repeat)
                write_results(options.json, options.kind == "gpu", with_speedups(rows))  # it takes long
    print_rows(with_speedups(rows))


if __name__ == "__main__":
    main()
