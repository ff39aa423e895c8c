"""Times reading a local store into a GPU's memory, and MAX of it, on threads.

    python scripts/bench_storage.py gpu --gib 4
    python scripts/bench_storage.py cpu --gib 0.5          without a GPU: the read limit, checked reads, MAX

"read" is the limit: the files' bytes into (on a GPU: pinned) memory of the host, not checked. "host" is a
checked read, to a GPU through pinned memory. "max" is a whole call; its result is compared with the known
one. In the table "page cache" the files are in memory; before each call of the table "storage" the system is
asked to drop them, which it does where the file system lets it. The table "checksum" compares the kernel of
the CRC-32C with a plain read of the same memory of the GPU.

Prints tables, and with --json FILE the same figures as JSON.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))  # PYTHONSAFEPATH leaves it out

import os
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import dask
import numpy as np
from bench_scaling import equal_chunks, known_results, write_store
from benchmarking import (
    GIB,
    Timing,
    argument_parser,
    kernel_seconds,
    moduli_set,
    print_rows,
    time_in_turn,
    wall_seconds,
    write_results,
)

import rnsdask as rd
from rnsdask import store
from rnsdask.backend import has_gpu, kernels_of
from rnsdask.core.layout import default_chunk

BACKENDS = {"gpu": "cuda", "cpu": "cpu"}
BUDGET_SECONDS = 8.0  # for the calls of a table with so many threads; then fewer than --repeat are made

RUNS = {
    "cpu": ("cpu --gib 0.5 --threads 1,2",),
    "gpu": ("gpu --gib 1 --threads 1,4",),
    "tiny": ("cpu --gib 0.002 --set 8 --repeat 1 --threads 1",),
    "tiny-gpu": ("gpu --gib 0.002 --set 8 --repeat 1 --threads 2",),
}

Call = Callable[[], None]


def on_threads(threads: int, function: Callable[[tuple[int, ...]], None], info: store.StoreInfo) -> None:
    """Call a function with the index of each chunk."""
    with ThreadPoolExecutor(threads) as pool:
        for _ in pool.map(function, info.indices()):
            pass


def memory_for(backend: str, nbytes: int) -> np.ndarray:
    """Memory of the host, pinned where a GPU is used."""
    if backend == "cpu":
        return np.empty(nbytes, np.uint8)
    from rnsdask.backend.cuda.memory import pinned_memory

    return pinned_memory(-(-nbytes // 4)).view(np.uint8)[:nbytes]


def read_files(info: store.StoreInfo, threads: int, backend: str) -> Call:
    """Return a function that reads all chunk files into memory that each thread holds already."""
    files = [info.chunk_file(index) for index in info.indices()]
    buffers = [memory_for(backend, files[0].stat().st_size) for _ in range(threads)]

    def read(thread: int) -> None:
        for file in files[thread::threads]:
            with file.open("rb", buffering=0) as stream:
                while stream.readinto(buffers[thread].data):
                    pass

    def call() -> None:
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(read, range(threads)))

    return call


def read_on_host(info: store.StoreInfo, backend: str, index: tuple[int, ...]) -> None:
    if backend == "cuda":
        store.read_chunk_on_gpu(info, index)
    else:
        store.read_chunk(info, index)


def maximum(x: rd.RNSArray, threads: int, backend: str, known: tuple[int, int | None, int]) -> None:
    with dask.config.set(scheduler="threads", num_workers=threads):
        result = x.reduce("max", backend=backend).compute()
    if (result.value, result.index, result.count) != known or result.backend != backend:
        raise RuntimeError(f"the maximum of {x!r} is wrong: {result}")


def calls_of(info: store.StoreInfo, threads: int, backend: str, known: Any) -> dict[str, Call]:
    x = rd.open_zarr(info.path)
    return {
        "read": read_files(info, threads, backend),
        "host": partial(on_threads, threads, partial(read_on_host, info, backend), info),
        "max": partial(maximum, x, threads, backend, known),
    }


def drop(info: store.StoreInfo) -> None:
    """Ask the kernel to forget the files' content."""
    for index in info.indices():
        descriptor = os.open(info.chunk_file(index), os.O_RDONLY)
        try:
            os.fsync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)


def cold_seconds(info: store.StoreInfo, call: Call) -> float:
    drop(info)
    return wall_seconds(call)


def bench_store(info: store.StoreInfo, threads: int, backend: str, repeat: int) -> list[dict[str, Any]]:
    chunks = tuple(rd.open_zarr(info.path).chunks[0])
    calls = calls_of(info, threads, backend, known_results(info.moduli, chunks)["max"])
    rows = []
    for table, measure in (("page cache", wall_seconds), ("storage", partial(cold_seconds, info))):
        timings = time_in_turn(
            {name: partial(measure, call) for name, call in calls.items()}, repeat, BUDGET_SECONDS
        )
        fields = {"table": table, "threads": threads}
        rows += rows_of(timings, info.nbytes, "read", fields)
    return rows


def rows_of(
    timings: dict[str, Timing], nbytes: int, limit: str, fields: dict[str, Any]
) -> list[dict[str, Any]]:
    """Rows with the rate, and what part of the limit's it is."""
    return [
        {
            **fields,
            "what": name,
            "bytes": nbytes,
            "ms": 1e3 * timing.median,
            "spread": timing.spread,
            "calls": len(timing.seconds),
            "gb_per_s": nbytes / timing.median / 1e9,
            "of_limit": timings[limit].median / timing.median,
        }
        for name, timing in timings.items()
    ]


def bench_checksum(gib: float, repeat: int) -> list[dict[str, Any]]:
    """The kernel of the CRC-32C beside a plain read."""
    import cupy

    words = cupy.arange(int(gib * GIB) // 4, dtype=np.uint32)
    kernels = kernels_of(words)
    calls = {
        "plain read": partial(kernels.read_all, words[None]),
        "CRC-32C": partial(kernels.crc32c, words),
    }
    timings = time_in_turn({name: partial(kernel_seconds, call) for name, call in calls.items()}, repeat)
    return rows_of(timings, words.nbytes, "plain read", {"table": "checksum"})


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("kind", choices=tuple(BACKENDS))
    parser.add_argument("--set", default="2048b", help="size of one of Table 2's sets, or e.g. 2048b")
    parser.add_argument("--gib", type=float, default=4.0, help="of the store")
    parser.add_argument("--threads", default="1,4,8")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--folder", type=Path, help="where the store goes; default a temporary folder")
    options = parser.parse_args()
    backend = BACKENDS[options.kind]
    rows: list[dict[str, Any]] = []
    if backend == "cuda" and has_gpu():
        for gib in (min(0.125, options.gib), options.gib):
            rows += bench_checksum(gib, options.repeat)
    moduli = moduli_set(options.set)
    chunk_gib = default_chunk(len(moduli)) * 4 * len(moduli) / GIB
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        path = Path(folder) / "x.zarr"
        write_store(path, moduli, equal_chunks(moduli, options.gib, min(chunk_gib, options.gib)))
        info = store.open_info(path)
        for threads in map(int, options.threads.split(",")):
            rows += bench_store(info, threads, backend, options.repeat)
    print_rows(rows)
    write_results(options.json, options.kind == "gpu", rows)


if __name__ == "__main__":
    main()
