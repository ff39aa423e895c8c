"""Times calls whose workers exchange chunks: by TCP and by UCX on two GPUs, beside one GPU.

    python scripts/bench_protocols.py gpu    1 GPU, 2 GPUs by each protocol that is installed
    python scripts/bench_protocols.py cpu    1 process, 2 processes by TCP

A sort, transforms over all chunks, a rechunk to chunks of 2/3 of the length, and a product of matrices in
chunks of rows. Operands are in the memory of the workers, and results stay there. The results' ends are
compared with the ones known. Prints a table, and with --json FILE the same figures as JSON.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))  # PYTHONSAFEPATH leaves it out

import functools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from importlib.util import find_spec
from typing import Any

import dask
import numpy as np
from bench_scaling import (
    chunk_of_known,
    cluster_of,
    equal_chunks,
    known_results,
    pattern_ints,
    resident,
    result_seconds,
    rows_of,
    told,
)
from benchmarking import (
    GIB,
    argument_parser,
    moduli_set,
    print_rows,
    random_on_cpu,
    time_in_turn,
    write_results,
)
from scaling_results import FIELDS, PATTERN, Call, Resident, long_transform, repeated

import rnsdask as rd
from rnsdask.backend import gpu_count

CHUNKS = 8
BUDGET_SECONDS = 5.0  # for the calls of one place and kind; there may be fewer than --repeat
MODULI = moduli_set("8")

RUNS = {
    "cpu": ("cpu",),
    "gpu": ("gpu",),
    "tiny": ("cpu --gib 0.001 --long 12 --side 128 --repeat 1",),
    "tiny-gpu": ("gpu --gib 0.01 --long 20 --side 256 --repeat 1",),
}


@contextmanager
def numbers(make: Resident, gib: float, name: str, compute: Callable[[rd.RNSArray], Any]) -> Iterator[Call]:
    """A call that keeps all numbers, and the greatest as the last one."""
    lengths = equal_chunks(MODULI, gib, gib / CHUNKS)
    greatest = known_results(MODULI, lengths)["max"][0]
    with make(chunk_of_known, MODULI, lengths, len(MODULI)) as words:
        x = rd.RNSArray(words, rd.RNS(MODULI))
        kept = pattern_ints(MODULI)[: lengths[0] - 1]  # the chunk's last number is another
        first = min(kept) if name == "sort" else kept[0]

        def check(result: Any) -> bool:
            ends = result[:1].to_ints().tolist() + result[-1:].to_ints().tolist()
            return bool(ends == [first, greatest] and len(result) == len(x))

        yield Call(name, lambda: compute(x), check, x.nbytes)


@contextmanager
def matrix_product(make: Resident, side: int) -> Iterator[Call]:
    """A product of a square matrix with itself, in chunks of rows."""
    p = FIELDS.moduli[0]
    pattern = random_on_cpu(FIELDS.moduli, PATTERN * side).reshape(1, PATTERN, side)
    rows = side // CHUNKS
    with make(repeated, pattern, (rows,) * CHUNKS, 1, side) as words:
        x = rd.FieldArray(words, FIELDS)
        row = [int(value) for value in pattern[0, 0]]
        # Each chunk begins with the first row of the pattern.
        column = [int(pattern[0, k % rows % PATTERN, 0]) for k in range(side)]

        def check(result: Any) -> bool:
            found = int(np.asarray(result[:1, :1].to_ints())[0, 0])
            return found == sum(a * b for a, b in zip(row, column, strict=True)) % p

        yield Call(f"product of {side} x {side}", lambda: x @ x, check, 2 * x.nbytes)


def calls(make: Resident, gib: float, longs: list[int], side: int) -> Iterator[AbstractContextManager[Call]]:
    length = equal_chunks(MODULI, gib, gib / CHUNKS)[0]
    yield numbers(make, gib, "sort", rd.sort)
    yield numbers(make, gib, "rechunk", lambda x: x.rechunk(max(128, length * 2 // 3 // 128 * 128)))
    for bits in longs:
        yield long_transform(make, bits, 2 * CHUNKS)
    yield matrix_product(make, side)


def places(kind: str) -> list[tuple[str, int, str]]:
    """Name, number of workers and protocol of each cluster."""
    one, two = ("1 GPU", "2 GPUs") if kind == "gpu" else ("1 process", "2 processes")
    found = [(one, 1, "tcp"), (f"{two}, TCP", 2, "tcp")]
    if kind == "gpu" and gpu_count() < 2:
        return found[:1]
    if kind == "gpu" and find_spec("distributed_ucxx") is not None:
        found.append((f"{two}, UCX", 2, "ucx"))
    return found


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("kind", choices=("cpu", "gpu"))
    parser.add_argument("--gib", type=float, help="numbers to sort and rechunk; default 8, or 0.125 on a CPU")
    parser.add_argument("--long", help="log2 of the lengths of transforms; default 28,30, or 18 on a CPU")
    parser.add_argument("--side", type=int, help="rows of the matrices; default 16384, or 1024 on a CPU")
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()
    on_gpu = options.kind == "gpu"
    gib = options.gib or (8.0 if on_gpu else 0.125)
    longs = [int(bits) for bits in (options.long or ("28,30" if on_gpu else "18")).split(",")]
    side = options.side or (16384 if on_gpu else 1024)
    rows: list[dict[str, Any]] = []
    for place, workers, protocol in places(options.kind):
        by_tasks = dask.config.set({"array.rechunk.method": "tasks"})  # as chunks of GPUs need it
        with cluster_of(options.kind, workers, protocol) as client, by_tasks:
            for opened in calls(functools.partial(resident, client, on_gpu), gib, longs, side):
                with opened as call:
                    measure = functools.partial(result_seconds, client, call, [])
                    measure()  # compiles its kernels
                    timings = time_in_turn({place: measure}, options.repeat, BUDGET_SECONDS)
                    told(f"{call.name}, {place}, {call.nbytes / GIB:.1f} GiB")
                    rows += rows_of(call.name, workers, call.nbytes, timings)
    rows.sort(key=lambda row: row["table"])  # stable: places stay in order
    write_results(options.json, on_gpu, rows)
    print_rows(rows)


if __name__ == "__main__":
    main()
