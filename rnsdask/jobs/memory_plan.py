"""Memory of a job before it runs: fewer threads, then parts of chunks, then a refusal.

The plan is one formula, :meth:`Place.need`: chunk bytes x arrays x threads, and a margin. The arrays of a
task are those that it reads and its footprint's, which :mod:`rnsdask.core.rows` declares with the row.
"""

import math
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import dask
from dask.system import CPU_COUNT

from rnsdask import store
from rnsdask.backend import free_device_bytes
from rnsdask.backend.cpu.trees import may_need_tables
from rnsdask.cluster.connecting import THREADS_PER_GPU
from rnsdask.cluster.limits import GRAPH_BYTES, process_limit
from rnsdask.cluster.workers import ask_workers, workers_of
from rnsdask.core import rows
from rnsdask.core.errors import JobError
from rnsdask.core.layout import CHUNK_MULTIPLE, RESIDUE_DTYPE, ChunkPlan, round_up
from rnsdask.core.messages import note
from rnsdask.core.number_system import NumberSystem
from rnsdask.core.operations import POWER_TABLES, Footprint
from rnsdask.jobs.log import record

if TYPE_CHECKING:
    from distributed import Client

_MIB = 2**20

_PROCESS_BYTES, _GPU_PROCESS_BYTES = 320 * _MIB, 1584 * _MIB
"""Bytes of a process with all libraries, without and with those of CUDA and pinned memory."""

_DEVICE_BYTES = 256 * _MIB
"""Bytes on a GPU for compiled kernels, constants, and what CuPy's pool loses to fragments."""

CONTEXT_BYTES = 1024 * _MIB
"""Bytes on a GPU for the context of a worker that is not started yet."""

_THREAD_BYTES = 8 * _MIB
"""Bytes of buffers of fixed size for each thread."""

_BATCH_ARRAYS, _BATCH_BYTES = 12, 256 * _MIB
"""Memory of the numbers that a task decides exactly, or converts, at a time: at most so many times its chunk,
and so many bytes."""

_PAIR_BYTES = 32
"""Bytes of a thread's tables for each pair of moduli."""

_CONVERSIONS = 8
"""Most conversions of each number that is read, to limbs, from limbs or to other moduli, by estimate."""

_COPIES, _DECODED_COPIES = 2, 4
"""Arrays of a chunk's size for each store that is read: the chunk, and a copy where the edge cuts it; with
Zarr's codecs also as fetched, and between two codecs. Measured with Zstd: 3."""

BYTES_OF_A_GPU = 4 * 10**9
"""Bytes that a job computes with for each GPU that it gets: a cluster of several takes 4 s to start."""

_INT_BYTES, _INT_BYTES_OF_WORD = 160, 10
"""Half of the bytes of a Python int with index and text where many are sorted, and of it for each word."""

_MOST_PARTS = 4096
"""Most parts of a chunk: for each of them the whole chunk is read."""

FOOTPRINTS = {
    **dict.fromkeys(("max", "min", "sum", "gcd"), rows.reduce.footprint),
    **dict.fromkeys(("compare", "stats", "hist"), rows.moments.footprint),
    **dict.fromkeys(("topk", "sort"), rows.ordering.footprint),
    **{"prod": rows.product.footprint, "group": rows.group_sums.footprint},
    **dict.fromkeys(("extend", "shrink", "convert"), rows.widened.footprint),
    "compare-fields": Footprint(8, 8),
    **{"ntt": rows.transform.footprint, "powmod": rows.power_modulo.footprint},
    "batchgcd": rows.product_tree.footprint,
    # Of no row.
    **dict.fromkeys(("concat", "slice", "rechunk", "reshape"), Footprint(3, 0)),
    **dict.fromkeys(("random", "import", "export"), Footprint(2, 4)),
    **{"residues": Footprint(8, 4), "verify": Footprint(0, 6), "bound": Footprint(3, 12)},
    "eval": Footprint(1, 0, POWER_TABLES),  # and what its steps take
}
"""Footprints of the commands that do not have the name of a row; others take that of their row."""


@dataclass(frozen=True)
class Work:
    """A job, as far as its memory depends on it; :func:`describe` makes most.

    Attributes
    ----------
    operation : str
        What it does, as messages call it.
    rows, numbers : int
        Words of a number, and numbers of a chunk, or of the part of it that a task reads.
    chunks : int
        How many there are.
    arrays : float
        Arrays of a chunk's size that a task holds beside what it reads.
    stores : int
        Stores of which a task reads a chunk.
    direct : bool
        Whether chunks are files that are read without Zarr's codecs.
    held : int
        Bytes that wait between tasks in the process that runs them all, whatever its threads: pieces of
        chunks that are to be joined to others. Workers put them on their disks.
    constants : int
        Bytes that each process holds once, whatever its threads.
    room : int
        Bytes on the host for each thread beside arrays: of a chunk's file beyond the ends of its axes, which
        are read with it, or of a sparse matrix as a whole.
    workspace : int
        Bytes on a GPU for each thread beside arrays.
    moduli : int
        Moduli of a number, by whose pairs tables are made.
    passes : float
        How much is computed with what is read, as :class:`.Footprint` has it.
    batches : bool
        Whether a task converts numbers, or decides some exactly, in batches.
    whole : str
        What the job is computed of, as messages call it, where it is not in chunks that could be smaller.
    """

    operation: str
    rows: int
    numbers: int
    chunks: int
    arrays: float
    stores: int = 0
    direct: bool = True
    held: int = 0
    constants: int = 0
    room: int = 0
    workspace: int = 0
    moduli: int = 0
    passes: float = 0
    batches: bool = True
    whole: str = ""

    def gpus(self, available: int) -> int:
        """Number of GPUs that the job should use: more than one only where that saves time."""
        computed = self.passes * self.chunks * self.chunk_bytes
        return max(1, min(available, int(computed // BYTES_OF_A_GPU)))

    @property
    def chunk_bytes(self) -> int:
        """Bytes of a chunk's words."""
        return self.rows * self.numbers * RESIDUE_DTYPE.itemsize

    @property
    def arrays_read(self) -> int:
        """Arrays of a chunk's size that reading takes."""
        return (_COPIES if self.direct else _DECODED_COPIES) * self.stores

    def table_bytes(self, *, gpu: bool) -> int:
        """Bytes of the tables that each thread makes at the same time; trees convert few numbers without."""
        conversions = _CONVERSIONS * self.numbers * self.chunks
        return _PAIR_BYTES * self.moduli**2 if may_need_tables(conversions, self.moduli, gpu=gpu) else 0


def describe(
    operation: str,
    systems: Sequence[NumberSystem],
    plan: ChunkPlan,
    sources: Sequence[store.StoreInfo | store.PlainInfo] = (),
    *,
    beside: float = 0,
    room: int = 0,
    **fields: Any,
) -> Work:
    """Describe a job by the systems of its numbers, the chunks of its largest array, and its stores.

    A task reads a chunk of each of the `sources`, and holds arrays `beside` those of the footprint of the
    operation, a command, and `room` for a matrix. `fields` are those of :class:`Work` that differ.
    """
    footprint = FOOTPRINTS[operation] if operation in FOOTPRINTS else rows.ROWS[operation].footprint
    words = max((system.words32 for system in systems), default=2)  # plain values have up to 64 bits
    beyond = max(map(_numbers_beyond, sources), default=0)
    known = {
        "moduli": max((len(system.residue_moduli or ()) for system in systems), default=0),
        "stores": len(sources),
        "direct": all(isinstance(one, store.StoreInfo) and one.has_chunk_files for one in sources),
        "room": room + beyond * words * RESIDUE_DTYPE.itemsize,
        "workspace": footprint.workspace,
        "passes": footprint.passes,
    }
    arrays = footprint.arrays + footprint.words / words + beside
    return Work(operation, words, plan.chunk_count, max(plan.n_chunks, 1), arrays, **known | fields)


def _numbers_beyond(plan: ChunkPlan) -> int:
    """Numbers that a chunk's file has beyond the ends of its axes."""
    return plan.chunk_count - math.prod(map(min, plan.chunks, (max(1, n) for n in plan.shape)))


def work_on(info: store.StoreInfo, operation: str, *others: store.StoreInfo) -> Work:
    """Describe a job that reads a store, and `others` like it, or writes one like it."""
    beside = info.system.arrays_beside
    return describe(operation, [info.system], info, [info, *others], beside=beside)


def work_of_topk(info: store.StoreInfo, k: int) -> Work:
    """Describe the job that finds the k greatest of a store: those of each chunk wait for those of others."""
    work = work_on(info, "topk")
    found = min(abs(k), work.numbers) * work.chunks
    return replace(work, held=found * (_INT_BYTES + _INT_BYTES_OF_WORD * work.rows))


@dataclass(frozen=True)
class Place:
    """A process that runs tasks, as many as it has threads, and the bytes that it may hold.

    `device` is None where no GPU takes part. A `local` one is this process, which holds the job's graph, and
    whose threads may be fewer.
    """

    name: str
    threads: int
    host: int
    device: int | None = None
    local: bool = True

    def need(self, work: Work, threads: int) -> tuple[int, int]:
        """Bytes that a job takes here, on the host and the GPU: chunk bytes x arrays x threads, and a margin.

        Where a GPU computes, the host has only the chunks that are read and written.
        """
        gpu, threads = self.device is not None, min(threads, work.chunks)
        batch = min(_BATCH_ARRAYS * work.chunk_bytes, _BATCH_BYTES) if work.batches else 0
        tables = work.table_bytes(gpu=gpu)
        computing = threads * (int(work.chunk_bytes * (work.arrays_read + work.arrays)) + batch)
        # A piece that waits may be a view of a chunk twice its size.
        waiting = work.chunks * GRAPH_BYTES + 2 * work.held if self.local else 0
        margin = work.constants + waiting + threads * (work.room + tables + _THREAD_BYTES)
        if not gpu:
            return computing + margin + _PROCESS_BYTES, 0
        moving = threads * work.chunk_bytes * (work.arrays_read + 1)
        device = computing + _DEVICE_BYTES + work.constants + tables + threads * work.workspace
        return moving + margin + _GPU_PROCESS_BYTES, device

    def fits(self, work: Work, threads: int, *, on_device: int = 0) -> bool:
        """Whether a job with that number of threads, and bytes that wait on a GPU, is within the limits."""
        host, device = self.need(work, threads)
        return host <= self.host and (self.device is None or device + on_device <= self.device)

    def part(self, share: float) -> "Place":
        """Return a place like this one with a part of its memory."""
        device = None if self.device is None else int(share * self.device)
        return replace(self, host=int(share * self.host), device=device)

    def most_threads(self, work: Work) -> int:
        """The most threads with which a job fits, 0 if it does not; a worker's are what they are."""
        fewest = 1 if self.local else self.threads
        return next((t for t in range(self.threads, fewest - 1, -1) if self.fits(work, t)), 0)

    def longest_fitting(self, work: Work, lengths: Sequence[int], threads: int) -> int:
        """The most of some numbers of numbers in a chunk with which a job fits, 0 if it fits with none."""
        total = work.numbers * work.chunks
        parts = (replace(work, numbers=n, chunks=-(-total // n)) for n in sorted(lengths, reverse=True))
        return next((part.numbers for part in parts if self.fits(part, threads)), 0)


def threads_per_gpu(work: Work, gpus: int) -> int:
    """Threads for each worker that is to be started for a GPU of this host: as many as its memory allows.

    The usual number if that allows none, so that :func:`fitting` says what is lacking.
    """
    free, host = free_device_bytes(), int(_pause_share() * process_limit()) // gpus
    device = None if free is None else free - CONTEXT_BYTES
    place = Place("a worker", THREADS_PER_GPU, host, device, local=False)
    count = next((t for t in range(THREADS_PER_GPU, 0, -1) if place.fits(work, t)), THREADS_PER_GPU)
    if count < THREADS_PER_GPU:
        note(f"rnsdask: {count} of {THREADS_PER_GPU} threads of each GPU run at a time, to fit into memory")
    return count


def _pause_share() -> float:
    """Part of a worker's limit above which it pauses."""
    return dask.config.get("distributed.worker.memory.pause", None) or 1.0


@contextmanager
def fitting(
    work: Work,
    client: "Client | None" = None,
    *,
    backend: str = "cpu",
    info: store.StoreInfo | None = None,
    threads: int | None = None,
) -> Iterator[int | None]:
    """Run a job within the memory there is; yield the length of parts to open the store with, or None.

    On the threads of this process, `threads` at most, fewer of them run at one time if need be. Where that is
    not enough, or workers run the job, each chunk of the store `info` is read in parts, if it is given.
    JobError if the job cannot fit; the message has the figures, and a chunk size that would fit.
    """
    places = places_of(work, client, backend, threads)
    fitted = [(place, place.most_threads(work)) for place in places]
    tightest, count = min(fitted, key=lambda one: one[1] / one[0].threads)
    part = None
    if not count:
        part, count = _part(work, places, info), tightest.threads
        if not part:
            raise JobError(_refusal(work, tightest))
        note(f"rnsdask: chunks are read in parts of {part} along their first axis, to fit into memory")
    elif count < tightest.threads:
        note(f"rnsdask: {count} of {tightest.threads} threads run at a time, to fit into memory")
    host, device = tightest.need(work, count)
    limits: dict[str, Any] = {"host_limit": tightest.host, "device_limit": tightest.device}
    record("plan", place=tightest.name, threads=count, part=part, host=host, device=device, **limits)
    with dask.config.set({} if client else {"num_workers": count}):
        yield part


def _part(work: Work, places: list[Place], info: store.StoreInfo | None) -> int:
    """The greatest length of parts of a chunk with which the job fits everywhere, 0 if none does."""
    if info is None or not info.has_chunk_files:
        return 0
    inner = math.prod(info.chunks[info.split_axis + 1 :])
    lengths = [inner * length for length in part_lengths(info)]
    return min(place.longest_fitting(work, lengths, place.threads) for place in places) // inner


def part_lengths(info: store.StoreInfo) -> list[int]:
    """Lengths into which a store's chunks can be divided evenly, as chunks of another store have to be."""
    axis = info.split_axis
    chunk, grid = info.chunks[axis], info.grid[axis]
    is_aligned = axis == len(info.chunks) - 1 and chunk % CHUNK_MULTIPLE == 0
    unit = CHUNK_MULTIPLE if is_aligned else 1
    most = min(_MOST_PARTS, -(-chunk // unit))
    lengths = {round_up(-(-chunk // parts), unit) for parts in range(2, most + 1)}
    return sorted(length for length in lengths if length < chunk and (grid == 1 or chunk % length == 0))


def _refusal(work: Work, place: Place) -> str:
    threads = 1 if place.local else place.threads
    host, device = place.need(work, threads)
    figures = f"{host / 1e9:.3g} GB of {place.host / 1e9:.3g} GB"
    if place.device is not None:
        figures += f", on its GPU {device / 1e9:.3g} GB of {place.device / 1e9:.3g} GB"
    plural = "s" if threads > 1 else ""
    does_not_fit = (
        f"does not fit into the memory of {place.name}: {threads} thread{plural} may need {figures}"
    )
    if work.whole:
        return f"{work.operation} of {work.whole} {does_not_fit}"
    halves = (work.numbers >> k for k in range(work.numbers.bit_length()))
    lengths = [half // CHUNK_MULTIPLE * CHUNK_MULTIPLE for half in halves if half >= CHUNK_MULTIPLE]
    smaller = place.longest_fitting(work, lengths, threads)
    advice = f"chunks of {smaller} numbers would fit" if smaller else "no chunk size would fit"
    chunks = f"chunks of {work.numbers} numbers ({work.chunk_bytes / 1e9:.3g} GB)"
    return f"{work.operation} with {chunks} {does_not_fit}; {advice}"


def places_of(
    work: Work, client: "Client | None" = None, backend: str = "cpu", threads: int | None = None
) -> list[Place]:
    """Return the places that run a job: this process, or the workers, one of each kind."""
    gpu = backend != "cpu"
    return [_this_process(work, gpu, threads)] if client is None else worker_places(client, gpu)


def _this_process(work: Work, gpu: bool, threads: int | None) -> Place:
    device = free_device_bytes() if gpu else None
    # More threads wait for one another in Python, unless what they read is to be decoded.
    most = CPU_COUNT if device is None or not work.direct else min(CPU_COUNT, THREADS_PER_GPU)
    threads = threads or dask.config.get("num_workers", None) or most
    return Place("this process", threads, process_limit(), device)


def worker_places(client: "Client", gpu: bool) -> list[Place]:
    """The workers, one of each kind."""
    workers = workers_of(client)
    answers: dict[str, Any] = dict.fromkeys(workers)
    if gpu:
        answers = ask_workers(client, free_device_bytes, workers)
    kinds = {}
    for address, worker in workers.items():
        if address not in answers:  # it has left
            continue
        device = answers[address]
        if isinstance(device, Exception):
            raise JobError(f"worker {address} cannot tell its GPU's memory: {device}") from device
        host = int(_pause_share() * worker["memory_limit"]) if worker["memory_limit"] else sys.maxsize
        place = Place(f"worker {address}", worker["nthreads"], host, device, local=False)
        kinds[replace(place, name="")] = place
    if not kinds:
        raise JobError("the cluster has no worker any more")
    return list(kinds.values())
