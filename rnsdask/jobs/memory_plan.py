"""Whether a job fits into the memory of where it shall run; if need be with fewer threads, or in parts."""

import math
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import dask
from dask.system import CPU_COUNT

from rnsdask import store
from rnsdask.arrays.rns_storage import kvikio_is_wanted
from rnsdask.cluster.limits import process_limit
from rnsdask.cluster.memory import Place, Work, chunk_lengths
from rnsdask.cluster.scheduler import workers_of
from rnsdask.cluster.workers import ask_workers
from rnsdask.core import layout
from rnsdask.core.errors import JobError
from rnsdask.core.messages import tell
from rnsdask.core.number_system import NumberSystem
from rnsdask.interval_rns.system import IntervalRNS
from rnsdask.jobs.log import record
from rnsdask.positional.system import Positional
from rnsdask.rns.system import RNS

if TYPE_CHECKING:
    from distributed import Client

# These run on the host whatever the processor of others.
_HOST_OPERATIONS = ("verify", "random", "import", "export", "residues")

# These go through their chunks one by one.
_SERIAL_OPERATIONS = ("import", "export")

_THREADS_OF_A_GPU = 16
"""Threads that serve the GPU of this process: one of them writes a tenth of what its bus can."""

_INT_BYTES, _INT_BYTES_OF_WORD = 160, 10
"""Half of what a Python int, its index and its text take where many are sorted, and of it for each word."""

_MOST_PARTS = 4096
"""Most parts of a chunk: for each of them the whole chunk is read."""


def work_on(info: store.StoreInfo, operation: str, **fields: Any) -> Work:
    """Describe a job that reads a store, or writes one like it."""
    # Beside numbers with intervals: signs, bounds, copies of those of either sign, and the same numbers in a
    # wider system, where intervals do not decide.
    arrays = {"arrays": 6} if isinstance(info.system, IntervalRNS) else {}
    how: dict[str, Any] = {"direct": info.has_chunk_files, "kind": kind_of([info.system]), **arrays, **fields}
    return describe(operation, info.system.words32, info.shape, info.chunks, **how)


def work_of_topk(info: store.StoreInfo, k: int) -> Work:
    """Describe the job that finds the k greatest of a store: those of each chunk wait for those of others."""
    work = work_on(info, "topk")
    found = min(abs(k), work.numbers) * work.chunks
    return replace(work, held=found * (_INT_BYTES + _INT_BYTES_OF_WORD * work.moduli))


def kind_of(systems: Iterable[NumberSystem]) -> str:
    """What :class:`.Work` calls the kind of numbers of some systems."""
    kinds = {type(system) for system in systems}
    return {RNS: "residues", Positional: "limbs"}.get(kinds.pop(), "") if len(kinds) == 1 else ""


def describe(operation: str, moduli: int, shape: Sequence[int], chunks: Sequence[int], **fields: Any) -> Work:
    """Describe a job by its array and its chunks."""
    grid = layout.chunk_grid(shape, chunks)
    whole = math.prod(length // chunk for length, chunk in zip(shape, chunks, strict=True))
    count = math.prod(grid)
    return Work(operation, moduli, math.prod(chunks), max(count, 1), **{"cut": count - whole, **fields})


@contextmanager
def fitting(
    work: Work, client: "Client | None" = None, *, backend: str = "auto", info: store.StoreInfo | None = None
) -> Iterator[int | None]:
    """Have a job use no more memory than there is.

    On the threads of this process, fewer of them run at one time if need be. Where that is not enough, or not
    in this process's hand, each chunk is read in parts.

    Parameters
    ----------
    info : StoreInfo, optional
        The store that is read, if its chunks may be read in parts.

    Yields
    ------
    part : int or None
        What to open the store with (:func:`.open_zarr`); None for whole chunks.

    Raises
    ------
    JobError
        If the job cannot fit. The message has the figures, and a chunk size that would fit.
    """
    gpu = backend != "cpu" and work.operation not in _HOST_OPERATIONS
    places = [_this_process(work, gpu)] if client is None else _workers(client, gpu)
    threads = {place.name: place.most_threads(work) for place in places}
    part, tightest = None, min(places, key=lambda place: threads[place.name] / place.threads)
    if not threads[tightest.name]:
        part = _part(work, places, info)
        if part is None:
            raise JobError(_refusal(work, tightest))
    elif threads[tightest.name] < tightest.threads:
        few = f"{threads[tightest.name]} of {tightest.threads} threads"
        tell(f"rnsdask: {few} run at a time, to fit into memory")
    if part is not None:
        tell(f"rnsdask: chunks are read in parts of {part} along their first axis, to fit into memory")
    count = threads[tightest.name] or tightest.threads
    need = tightest.project(work, count)
    amounts = {"host": need.host, "device": need.device, "host_limit": tightest.host}
    record("plan", place=tightest.name, threads=count, part=part, **amounts, device_limit=tightest.device)
    if client is None:
        with dask.config.set(num_workers=count):
            yield part
    else:
        yield part


def _part(work: Work, places: list[Place], info: store.StoreInfo | None) -> int | None:
    """The greatest length of parts along a chunk's axis with which the job fits everywhere."""
    if info is None or not info.has_chunk_files:
        return None
    axis = store.split_axis(info.chunks)
    inner = math.prod(info.chunks[axis + 1 :])
    lengths = [inner * length for length in part_lengths(info)]
    # Parts are read on the host.
    on_host = [replace(place, bounce=None) for place in places]
    found = [place.largest_fitting(work, lengths, place.threads) for place in on_host]
    least = min((numbers or 0) for numbers in found)
    return least // inner or None


def part_lengths(info: store.StoreInfo) -> list[int]:
    """Lengths into which a store's chunks can be divided evenly, as chunks of another store have to be."""
    axis = store.split_axis(info.chunks)
    chunk, grid = info.chunks[axis], info.grid[axis]
    is_aligned = axis == len(info.chunks) - 1 and chunk % layout.CHUNK_MULTIPLE == 0
    unit = layout.CHUNK_MULTIPLE if is_aligned else 1
    most = min(_MOST_PARTS, -(-chunk // unit))
    lengths = {layout.round_up(-(-chunk // parts), unit) for parts in range(2, most + 1)}
    return sorted(length for length in lengths if length < chunk and (grid == 1 or chunk % length == 0))


def _refusal(work: Work, place: Place) -> str:
    threads = 1 if place.local else place.threads
    need = place.project(work, threads)
    figures = f"{need.host / 1e9:.3g} GB of {place.host / 1e9:.3g} GB"
    if place.device is not None:
        figures += f", on its GPU {need.device / 1e9:.3g} GB of {place.device / 1e9:.3g} GB"
    smaller = place.largest_fitting(work, chunk_lengths(work.numbers), threads)
    advice = "no chunk size would fit" if smaller is None else f"chunks of {smaller} numbers would fit"
    plural = "s" if threads > 1 else ""
    return (
        f"{work.operation} with chunks of {work.numbers} numbers ({work.chunk_bytes / 1e9:.3g} GB) does not "
        f"fit into the memory of {place.name}: {threads} thread{plural} may need {figures}; {advice}"
    )


def _this_process(work: Work, gpu: bool) -> Place:
    device, bounce = store.gpu_memory() if gpu else (None, None)
    # More threads than these move files no faster to a GPU and back, unless what they read is to be decoded.
    most = CPU_COUNT if device is None or not work.direct else min(CPU_COUNT, _THREADS_OF_A_GPU)
    serial = work.operation in _SERIAL_OPERATIONS
    threads = 1 if serial else dask.config.get("num_workers", None) or most
    return Place("this process", threads, process_limit(), device, True, _if_wanted(bounce))


def _if_wanted(bounce: int | None) -> int | None:
    return bounce if kvikio_is_wanted() else None


def _workers(client: "Client", gpu: bool) -> list[Place]:
    """The workers, one of each kind."""
    # Above this part of its limit a worker pauses.
    share = dask.config.get("distributed.worker.memory.pause", None) or 1.0
    workers = workers_of(client)
    no_gpu = dict.fromkeys(workers, (None, None))
    answers = ask_workers(client, store.gpu_memory, workers) if gpu else no_gpu
    kinds = {}
    for address, worker in workers.items():
        if address not in answers:  # it has left
            continue
        answer = answers[address]
        if isinstance(answer, Exception):
            raise JobError(f"worker {address} cannot tell its GPU's memory: {answer}") from answer
        device, bounce = answer
        host = int(share * worker["memory_limit"]) if worker["memory_limit"] else sys.maxsize
        place = Place(f"worker {address}", worker["nthreads"], host, device, False, _if_wanted(bounce))
        kinds[replace(place, name="")] = place
    if not kinds:
        raise JobError("the cluster has no worker any more")
    return list(kinds.values())
