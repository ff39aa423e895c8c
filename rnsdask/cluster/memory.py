"""How much memory a job needs, from what its tasks hold at one time. Pure functions; nothing is measured.

A projection is an upper bound: adversarial data, of which no number can be told from another by its key, need
the most. ``tests/cluster/test_memory.py`` compares it with what jobs take.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rnsdask.backend.cuda.layout import MOST_POWER_TABLES
from rnsdask.constants import INT8_BYTES, INT8_GREATEST, INT8_WORKSPACE, LU_BYTES, LU_WORKSPACE
from rnsdask.core.layout import CHUNK_MULTIPLE, RESIDUE_DTYPE
from rnsdask.rns.blocks import BATCH_INTEGERS, BATCH_RESIDUES, EXACT_RESIDUES

_MIB = 2**20

_PROCESS_BYTES = 224 * _MIB
"""A process with the libraries of a job, and what its allocator keeps."""

_WORKER_BYTES = 320 * _MIB
"""The same of a cluster's worker, with all its libraries."""

_GPU_PROCESS_BYTES = 1584 * _MIB
"""The same with CUDA's context and libraries, and 48 MiB of pinned memory into which files are read."""

_DEVICE_BYTES = 256 * _MIB
"""On the GPU: compiled kernels, constants, and what CuPy's pool loses to fragments."""

GRAPH_BYTES = 16 * 1024
"""Dask's graph and state, for each chunk, in the process that runs the job on its threads."""

_THREAD_BYTES = 8 * _MIB
"""Buffers of fixed size that a task has: pieces of files that are written, and blocks of limbs."""

_BATCHES_BYTES = 288
"""For each residue of a batch of integers: itself, limbs and text, in all batches that there are at once."""


@dataclass(frozen=True)
class _Need:
    """What a task holds at one time, beside the chunks that it reads."""

    chunks: int = 0  # arrays of residues as large as a chunk
    per_number: int = 0  # bytes of keys, flags, orders and indices for each number
    per_exact: int = 0  # bytes for each residue gathered for an exact decision
    per_pair: int = 0  # bytes of tables for each pair of moduli, which threads make at the same time
    batched: bool = False  # integers are converted on their way to or from text or records
    integers: int = 0  # batches of Python ints, or of limbs and text
    writes: bool = False
    multiplies: bool = False  # matrices, by 8-bit ones where they are on a GPU
    powers: bool = False  # modulo limbs, from tables where they are on a GPU


_EXTREMUM = _Need(per_number=40, per_exact=48, per_pair=16)
_SCAN = _Need(chunks=2, per_number=160, per_exact=48, per_pair=20, integers=1, writes=True)

_NEEDS = {
    "max": _EXTREMUM,
    "min": _EXTREMUM,
    "sum": _EXTREMUM,
    "bound": _Need(chunks=3, per_number=40, per_exact=48, per_pair=16),
    "topk": _Need(chunks=6, per_number=240, per_exact=48, per_pair=20, integers=1),
    "verify": _Need(per_number=24, per_pair=16),
    "cumsum": _SCAN,
    "cummax": _SCAN,
    "cummin": _SCAN,
    **dict.fromkeys(
        ("compare", "stats", "hist"), _Need(per_number=120, per_exact=48, per_pair=16, integers=1)
    ),
    "eval": _Need(per_number=120, per_exact=48, per_pair=32, integers=1, writes=True, powers=True),
    "prod": _Need(chunks=3, per_number=40, per_pair=16, integers=1),
    "extend": _Need(chunks=3, per_number=40, per_pair=16, integers=1, writes=True),
    "shrink": _Need(chunks=3, per_number=40, per_pair=16, integers=1, writes=True),
    "convert": _Need(chunks=3, per_number=120, per_pair=16, integers=1, writes=True),
    **dict.fromkeys(("concat", "slice", "rechunk", "reshape"), _Need(chunks=2, writes=True)),
    "ntt": _Need(chunks=5, writes=True),
    "convolve": _Need(chunks=16, per_number=40, per_exact=48, per_pair=16, integers=1, writes=True),
    "powmod": _Need(chunks=12, per_number=64, integers=1, writes=True, powers=True),
    # Beside what :mod:`rnsdask.jobs.exact_results` says of images.
    **dict.fromkeys(("det", "rank", "solve"), _Need(chunks=2, integers=1, multiplies=True)),
    **dict.fromkeys(("charpoly", "resultant"), _Need(chunks=2, integers=1)),
    "random": _Need(chunks=1, per_number=16, writes=True),
    "import": _Need(chunks=1, per_pair=20, batched=True, writes=True),
    "export": _Need(chunks=1, per_pair=20, batched=True),
    "residues": _Need(chunks=5, per_number=16, writes=True),
}

_OF_RESIDUES = {
    **dict.fromkeys(("max", "min", "sum"), _Need(per_number=48, per_exact=20, per_pair=16)),
    "topk": _Need(chunks=5, per_number=160, per_pair=20),
    "compare": _Need(per_number=48, per_exact=32, per_pair=16),
    "eval": _Need(per_number=64, per_exact=32, per_pair=32, writes=True),
    "extend": _Need(chunks=1, per_number=40, per_pair=16, writes=True),
    "shrink": _Need(chunks=2, per_number=40, per_pair=16, writes=True),
    "convert": _Need(chunks=3, per_number=40, per_pair=16, writes=True),
}
"""What :data:`_NEEDS` says, of residues on a CPU, where it is less: Python ints are made of results alone."""

_OF_LIMBS = {
    **dict.fromkeys(("max", "min", "sum", "bound"), _Need(per_number=32)),
    "topk": _Need(chunks=3, per_number=80),
    "compare": _Need(per_number=16),
    "prod": _Need(chunks=3, per_number=24),
    **dict.fromkeys(("cummax", "cummin"), _Need(chunks=3, per_number=16, writes=True)),
    "cumsum": _Need(chunks=3, per_number=64, writes=True),
    "convert": _Need(chunks=3, per_number=16, writes=True),
    "eval": _Need(per_number=24, writes=True),
    "powmod": _Need(chunks=2, per_number=16, writes=True),
    "import": _Need(chunks=1, batched=True, writes=True),
    "export": _Need(chunks=1, batched=True),
}
"""The same of positional numbers on a CPU: no keys, no intervals, and few Python ints."""

_ON_CPU = {"residues": _OF_RESIDUES, "limbs": _OF_LIMBS}

OPERATIONS = tuple(_NEEDS)
"""Names of the operations whose memory can be projected."""


@dataclass(frozen=True)
class Work:
    """What a job does, as far as its memory depends on it.

    Attributes
    ----------
    operation : str
        One of `OPERATIONS`.
    moduli, numbers : int
        Rows and columns of a chunk, or of the part of it that a task reads.
    chunks : int
        How many there are.
    stores : int
        How many stores a task reads a chunk of.
    direct : bool
        Whether chunks are files, read and written without Zarr's codecs.
    cut : int
        How many chunks the array's edge cuts, so that they are copied.
    arrays : int
        Of ``eval``: how many results of operations are alive at one time; of limbs, with what the operations
        hold besides. Of others: what depends on their arguments.
    held : int
        Bytes that wait between tasks in the process that runs them all, whatever its threads: pieces of
        chunks that are to be joined to others. Workers put them on their disks.
    constants : int
        Bytes of constants as long as an axis, which each process makes once, whatever its threads.
    kind : {"residues", "limbs", ""}
        What all numbers are, where operations on a CPU are known to need less than any others.
    """

    operation: str
    moduli: int
    numbers: int
    chunks: int
    stores: int = 1
    direct: bool = True
    cut: int = 0
    arrays: int = 0
    held: int = 0
    constants: int = 0
    kind: str = ""

    def need(self, gpu: bool) -> _Need:
        """What each task holds beside the chunks that it reads."""
        known = {} if gpu else _ON_CPU.get(self.kind, {})
        return known.get(self.operation, _NEEDS[self.operation])

    @property
    def chunk_bytes(self) -> int:
        """Bytes of a chunk's residues."""
        return self.moduli * self.numbers * RESIDUE_DTYPE.itemsize

    @property
    def writes(self) -> bool:
        """Whether tasks write chunks."""
        return _NEEDS[self.operation].writes


@dataclass(frozen=True)
class Projection:
    """Most bytes that a process holds at one time, on the host and on its GPU."""

    host: int
    device: int


def project(
    work: Work, threads: int, *, gpu: bool = False, local: bool = True, bounce: int | None = None
) -> Projection:
    """Project the memory of a process that runs tasks of a job on its threads.

    Parameters
    ----------
    threads : int
        Tasks that run at one time.
    gpu : bool
        Whether they compute on a GPU.
    local : bool
        Whether the process holds the job's graph too; a worker does not.
    bounce : int, optional
        Where whole chunks are read straight into the GPU's memory: bytes of the buffer on the host that each
        thread may need for it.

    Raises
    ------
    ValueError
        If the operation is unknown.
    """
    if work.operation not in _NEEDS:
        raise ValueError(f"operation must be one of {', '.join(OPERATIONS)}, got {work.operation!r}")
    need = work.need(gpu)
    threads = min(threads, work.chunks)
    computing = _computing(work, need)
    tables = need.per_pair * work.moduli**2
    if not (gpu and work.direct):
        bounce = None
    host = (_reading(work) if bounce is None else bounce) + _writing(work, need) + _THREAD_BYTES
    # A piece may be a view of a chunk twice its size.
    graph = work.chunks * GRAPH_BYTES + 2 * work.held if local else 0
    kept = graph + work.constants
    # Beside the threads' own: copies of cut chunks.
    copies = min(threads, work.cut) * work.chunk_bytes * max(work.stores, 1)
    if not gpu:
        process = _PROCESS_BYTES if local else _WORKER_BYTES
        return Projection(process + kept + threads * (host + computing + tables) + copies, 0)
    each = work.stores * work.chunk_bytes + computing + (_products(work) if need.multiplies else 0)
    each += MOST_POWER_TABLES if need.powers else 0
    device = _DEVICE_BYTES + work.constants + tables + threads * each
    if work.direct:  # chunks are cut, and filled up, on the GPU
        device += copies + (min(threads, work.cut) * work.chunk_bytes if need.writes else 0)
    # What comes back from the GPU is one more array on the host.
    back = (need.chunks + 1) * work.chunk_bytes if need.writes else 0
    host = _GPU_PROCESS_BYTES + kept + threads * (host + back + tables)
    return Projection(host + copies if bounce is None else host, device)


def _reading(work: Work) -> int:
    # Zarr holds the encoded bytes, twice with the copy that its codecs take, and what each codec makes of it.
    one = work.chunk_bytes if work.direct else 5 * work.chunk_bytes + _MIB
    return 0 if work.operation in ("random", "import") else work.stores * one


def _writing(work: Work, need: _Need) -> int:
    if not need.writes:
        return 0
    if work.direct:
        return work.chunk_bytes if work.cut else 0
    return 4 * work.chunk_bytes + _MIB


def _computing(work: Work, need: _Need) -> int:
    gathered = min(work.moduli * work.numbers, EXACT_RESIDUES)
    # A Python int of n moduli takes up to 28 + 4.3 n bytes. Numbers are held as such twice, as limbs and as
    # bytes, in tuples with their indices.
    integers = gathered // work.moduli * (16 * work.moduli + 320)
    return (
        (need.chunks + work.arrays) * work.chunk_bytes
        + need.per_number * work.numbers
        + need.per_exact * gathered
        + need.integers * integers
        + need.batched * _BATCHES_BYTES * max(BATCH_RESIDUES, BATCH_INTEGERS * work.moduli)
    )


def _products(work: Work) -> int:
    """Memory for products on a GPU, modulo the primes of one group of images (docs/exact-linalg.md)."""
    least = max(INT8_WORKSPACE, min(INT8_BYTES * work.numbers, INT8_GREATEST))
    images = work.arrays * work.moduli * work.numbers
    factors = min(LU_BYTES * images, max(LU_WORKSPACE, LU_BYTES * work.numbers))
    return min(INT8_BYTES * images, least) + factors


@dataclass(frozen=True)
class Place:
    """A process that runs tasks, and its limits.

    Attributes
    ----------
    name : str
        What messages call it.
    threads : int
        Tasks that it runs at one time.
    host, device : int, int or None
        Bytes that it may hold; `device` is None where no GPU takes part.
    local, bounce
        As :func:`project` takes them.
    """

    name: str
    threads: int
    host: int
    device: int | None = None
    local: bool = True
    bounce: int | None = None

    def project(self, work: Work, threads: int) -> Projection:
        """Project the memory of a job on so many threads here."""
        return project(work, threads, gpu=self.device is not None, local=self.local, bounce=self.bounce)

    def fits(self, work: Work, threads: int) -> bool:
        """Whether that is within the limits."""
        need = self.project(work, threads)
        return need.host <= self.host and (self.device is None or need.device <= self.device)

    def most_threads(self, work: Work) -> int:
        """The most threads with which a job fits; 0 if it does not. Those of a worker are its own affair."""
        fewest = 1 if self.local else self.threads
        return next((t for t in range(self.threads, fewest - 1, -1) if self.fits(work, t)), 0)

    def largest_fitting(self, work: Work, lengths: Sequence[int], threads: int) -> int | None:
        """The greatest of some numbers of numbers in a chunk with which the job fits; None if none does.

        The array stays the same, so that smaller chunks are more chunks.
        """
        total = work.numbers * work.chunks
        for numbers in sorted(lengths, reverse=True):
            if self.fits(replace(work, numbers=numbers, chunks=-(-total // numbers)), threads):
                return numbers
        return None


def chunk_lengths(longest: int) -> list[int]:
    """Lengths of chunks worth trying: multiples of 128, each about half of the one before it."""
    lengths = []
    while longest >= CHUNK_MULTIPLE:
        lengths.append(longest // CHUNK_MULTIPLE * CHUNK_MULTIPLE)
        longest //= 2
    return lengths
