"""Jobs of linear algebra and of resultants, over the matrices or polynomials of stores.

A matrix is read in one chunk, or, if it is a large one of elements of prime fields, in block columns, which
all threads and workers share.

Results over fields are elements, a lazy array that :mod:`.derivation` writes. Results over integers are exact
and of unknown size, so they are computed as Python ints; so are ranks.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from dask.array.utils import meta_from_array
from gmpy2 import mpq
from numpy.typing import NDArray

from rnsdask import store
from rnsdask.arrays.creation import from_ints
from rnsdask.arrays.number_array import NumberArray
from rnsdask.arrays.rns_array import RNSArray
from rnsdask.backend import to_backend, uses_gpu
from rnsdask.constants import INT8_BYTES, INT8_GREATEST, LU_BYTES, LU_WORKSPACE
from rnsdask.core.errors import JobError
from rnsdask.core.integer_text import to_decimal
from rnsdask.core.layout import RESIDUE_DTYPE, ChunkPlan
from rnsdask.core.moduli import ModuliSet
from rnsdask.core.number_system import NumberSystem
from rnsdask.core.rows import divide_by
from rnsdask.core.ways import Message
from rnsdask.fields.p_adic import Plan, is_quicker
from rnsdask.fields.polynomial_determinants import VALUES_WORDS
from rnsdask.jobs import memory_plan
from rnsdask.jobs.checkpoint import ARRAYS, Checkpoint, job_of_pieces
from rnsdask.jobs.compute import compute, naming
from rnsdask.jobs.hashes import job_hash, result_hash
from rnsdask.jobs.memory_plan import Work
from rnsdask.jobs.sources import Source, check_targets
from rnsdask.jobs.writing import Transfer, write_array
from rnsdask.lazy.block_elimination import has_block_elimination, is_in_blocks, is_small, width_of_blocks
from rnsdask.lazy.pieces import keeping
from rnsdask.lazy.read import is_as_read
from rnsdask.rns.lift import at_a_time

if TYPE_CHECKING:
    from distributed import Client

_COPIES = 4
"""Arrays of the size of the images modulo some primes that a task holds."""

_OVERWRITTEN = 1
"""Arrays of a task that eliminates where it has read matrices: half of that is a panel with its copy."""

_RANK_BYTES, _INT_BYTES, _INT_BYTES_OF_BYTE = 40, 80, 4
"""Estimated bytes: half those of a rank; those of any other result and its text, and for each byte of it."""


_WAITING = {"det": 0.875, "rank": 0.875, "solve": 1.625, "rref": 1.625, "nullspace": 1.625}
"""Matrices' sizes that wait between tasks where matrices are in block columns. Measured on 8192 and 16,384
rows with all that the tasks of two threads take: 0.95 and 1.8."""

_UNCUT = 1.125
"""Sizes that chunks of the height of a matrix take until they are cut into block columns. Measured: 1.1."""

_TASK_BLOCKS = 3
"""Block columns that a task makes."""

_SIDE, _SIDE_OF_INTEGERS, _SIDE_OF_CHARPOLY = 2**16, 2**13, 320
"""Rows of a matrix on which a GPU computes for about a second for each GB. Over fields, 4096 rows took
0.06 s, and characteristic polynomials of 1024 rows 3.2 s; results over integers take more primes."""


def computing(operation: str, array: Any) -> float:
    """Amount of computation of a GPU on an array of whole matrices, as in :attr:`.Footprint.passes`."""
    # Images modulo primes are separate computations; a matrix over fields in one chunk is one task.
    of_integers = _has_integer_results(array.system)
    if not of_integers and math.prod(array.words.numblocks) == 1:
        return 0
    side = _SIDE_OF_INTEGERS if of_integers else _SIDE
    return float(array.shape[-1] / (_SIDE_OF_CHARPOLY if operation == "charpoly" else side))


def _has_integer_results(system: NumberSystem) -> bool:
    """Whether results are Python ints of any size, as for all numbers but elements of fields."""
    return divide_by.name not in system.table


def _greatest(arrays: Sequence[Any]) -> int:
    """Greatest magnitude that a number of some arrays may have."""
    greatest: int = max(abs(end) for array in arrays for end in array.system.known_range)
    return greatest


@dataclass(frozen=True)
class Problem:
    """A problem over stores, checked; only the stores' metadata have been read.

    `operation` is the name of the command. `make` returns the results, a tuple of lazy arrays; `results` is
    a first such tuple. `size` and `nbytes` count the numbers that are read, and the bytes of their words;
    `job` is a hash of all that determines the results.
    """

    operation: str
    sources: tuple[Source, ...]
    make: Callable[[], tuple[Any, ...]]
    results: tuple[Any, ...]
    work: Work
    size: int
    nbytes: int
    job: store.Identity


def axes_of(operation: str, parameters: Mapping[str, Any]) -> int:
    """Number of last axes that hold a matrix or a polynomial, for an operation with these parameters."""
    variables: int = parameters.get("variables", 0)
    return variables if operation == "resultant" else 2 + variables


def chunks_of(operation: str, source: Source, backend: str, parameters: Mapping[str, Any]) -> dict[int, int]:
    """Chunks in which a source is opened: whole matrices or polynomials, or block columns of large matrices.

    A matrix that is one chunk of a store stays so.
    """
    axes, info = axes_of(operation, parameters), source.info
    last = len(info.shape) - 1
    is_whole = operation not in _WAITING or axes != 2 or not has_block_elimination(info.system)
    if is_whole or last < 1 or 0 in info.shape or max(info.grid[-2:]) == 1:
        return source.whole_axes(axes)
    shape = info.system.words32, info.shape[-2], info.shape[-1]
    on_gpu = uses_gpu(backend)
    if is_small(shape, on_gpu=on_gpu):
        return source.whole_axes(axes)
    width = width_of_blocks(shape, min(info.chunks[-1], info.shape[-1]), on_gpu=on_gpu)
    return {last - 1: -1, last: width}


def plan_in_blocks(operation: str, infos: Sequence[store.StoreInfo], *arrays: Any) -> Work | None:
    """Describe a job on matrices in block columns, opened as lazy arrays; None if each is whole."""
    of_blocks = operation in _WAITING and has_block_elimination(arrays[0].system)
    if not of_blocks or not any(is_in_blocks(array.words) for array in arrays if array.ndim > 1):
        return None
    return work_in_blocks(operation, infos, max(map(int, arrays[0].words.chunks[-1])))


def work_in_blocks(operation: str, infos: Sequence[store.StoreInfo], width: int) -> Work:
    """Describe a job on matrices in block columns of a width, which wait in memory for one another."""
    info, rows, columns = infos[0], infos[0].shape[-2], infos[0].shape[-1]
    # Until it is cut into block columns, a stored column of chunks waits whole.
    uncut = _UNCUT * min(1, info.chunks[-1] / columns) if info.grid[-2] > 1 else 0
    waiting = (_WAITING[operation] + uncut) * sum(one.count for one in infos)
    words = max(one.system.words32 for one in infos)
    return Work(
        operation,
        words,
        rows * width,
        -(-columns // width),
        _TASK_BLOCKS,
        direct=all(one.has_chunk_files for one in infos),
        held=int(waiting * words * RESIDUE_DTYPE.itemsize) // 2,  # the plan counts twice as much
        workspace=min(INT8_BYTES * rows * width, INT8_GREATEST) + min(LU_BYTES * rows * width, LU_WORKSPACE),
        passes=columns / _SIDE,
        batches=False,
        whole=f"matrices of shape {info.shape[-2:]} by block columns of {width}",
    )


def prepare(
    operation: str,
    sources: Sequence[Source],
    function: Callable[..., Any],
    backend: str = "cpu",
    **parameters: Any,
) -> Problem:
    """Check a job that computes arrays by a function, which returns an array or a tuple, or raises.

    `parameters` are all else that the results depend on, and can be written as JSON.
    """
    axes = axes_of(operation, parameters)
    arrays = [
        source.array(backend=backend, chunks=chunks_of(operation, source, backend, parameters))
        for source in sources
    ]

    def make() -> tuple[Any, ...]:
        found = function(*arrays)
        return tuple(found) if isinstance(found, tuple) else (found,)

    results = make()
    work = _work(operation, sources, arrays, results, axes)
    size, nbytes = (sum(int(getattr(array, name)) for array in arrays) for name in ("size", "nbytes"))
    inputs = {str(position): source.info for position, source in enumerate(sources)}
    job = job_hash(operation, inputs, **parameters)
    return Problem(operation, tuple(sources), make, results, work, size, nbytes, job)


def _work(
    operation: str, sources: Sequence[Source], arrays: Sequence[Any], results: Sequence[Any], axes: int
) -> Work:
    """Describe the job by its largest chunk, with images modulo the primes that are computed together."""
    infos = [source.info for source in sources]
    if (work := plan_in_blocks(operation, infos, *arrays)) is not None:
        return work
    largest = max(arrays, key=lambda array: math.prod(array.words.chunksize))
    rows, *chunks = (max(1, int(length)) for length in largest.words.chunksize)
    one = np.zeros(1, dtype=largest.words.dtype, like=meta_from_array(largest.words))
    images = at_a_time(np.broadcast_to(one, (rows, *chunks)))
    words, each = _COPIES * images * len(arrays), 0
    if operation == "rank":
        each = _RANK_BYTES
    elif _has_integer_results(largest.system):
        # A result is a sum of products of at most a row's and a column's numbers.
        factors = sum(sum(array.shape[-axes:]) for array in arrays)
        nbytes = factors * (2 + _greatest(arrays).bit_length() // 8)
        each = _INT_BYTES + _INT_BYTES_OF_BYTE * nbytes
        words += 2 * _count_lifting_primes(operation, arrays, 8 * nbytes) if axes == 2 else 0
    entries = words // _COPIES * math.prod(chunks)  # of images: 8-bit products, and stored factors
    workspace = min(INT8_BYTES * entries, INT8_GREATEST) + min(LU_BYTES * entries, LU_WORKSPACE)
    if axes == 3:  # matrices of polynomials, with several copies of their values
        workspace += _COPIES * RESIDUE_DTYPE.itemsize * VALUES_WORDS
    work = memory_plan.describe(
        operation,
        [largest.system],
        ChunkPlan(largest.shape, tuple(chunks)),
        infos,
        beside=words / rows,
        held=each * sum(int(result.size) for result in results),
        workspace=workspace,
        passes=computing(operation, largest),
    )
    is_eliminated = operation in ("det", "rank") and axes == 2 and has_block_elimination(largest.system)
    is_overwritten = is_eliminated and is_as_read(largest.words)
    return replace(work, arrays=_OVERWRITTEN) if is_overwritten else work


def _count_lifting_primes(operation: str, arrays: Sequence[Any], bits: int) -> int:
    """Number of primes whose inverses are kept to lift solutions of `bits` bits."""
    matrices, *right = arrays
    rows = int(matrices.shape[-1])
    of_vectors = [b for b in right if b.ndim > 1]
    columns = of_vectors[0].shape[-1] if of_vectors else 1
    magnitude = _greatest(arrays)
    if operation not in ("det", "solve") or not is_quicker(
        meta_from_array(matrices.words), rows, columns, magnitude
    ):
        return 0
    return Plan.of(1 << 2 * bits, rows, columns, rows * magnitude).primes


def integers(
    problem: Problem,
    client: "Client | None" = None,
    *,
    progress: bool = False,
    checkpoint: str | Path | None = None,
) -> list[NDArray[np.object_]]:
    """Compute the results, as arrays of Python ints.

    The folder `checkpoint` keeps finished pieces: results of chunks, or parts of them from groups of primes;
    pieces that it holds already are not computed again. JobError if it belongs to another job, or a matrix or
    polynomial has no result.
    """
    amount: dict[str, Any] = {"numbers": problem.size, "nbytes": problem.nbytes}
    how: dict[str, Any] = {"progress": progress, "label": problem.operation, **amount}
    named = f"{problem.operation} of {' '.join(source.path for source in problem.sources)}"
    try:
        with naming(named):
            if checkpoint is None:
                found = compute(list(problem.results), client, **how)
            else:
                # Pieces that are kept are computed while the results are made.
                with keeping(partial(_compute_missing, checkpoint, problem, client, how)):
                    results = problem.make()
                found = compute(list(results), client)
    except (np.linalg.LinAlgError, ValueError) as error:
        raise JobError(Message(f"{named}: ", error)) from error
    return [as_ints(part) for part in found]


def as_ints(part: Any) -> NDArray[np.object_]:
    """Return a result as an array of Python ints."""
    return part.to_ints() if isinstance(part, NumberArray) else np.asarray(to_backend(part, "cpu"), object)


def _compute_missing(
    folder: str | Path,
    problem: Problem,
    client: "Client | None",
    how: dict[str, Any],
    pieces: list[Any],
    cut: str,
) -> list[NDArray[Any]]:
    """Compute the results of the pieces that a checkpoint lacks."""
    job = job_of_pieces(problem.job, problem.operation, len(pieces), cut)
    checkpoint = Checkpoint(folder, job, ARRAYS)
    results = checkpoint.load()
    missing = [i for i in range(len(pieces)) if i not in results]

    def keep(i: int, result: Any) -> None:
        array = results[missing[i]] = to_backend(result, "cpu")
        checkpoint.save(missing[i], array)

    compute([pieces[i] for i in missing], client, done=keep, **how)
    return [results[i] for i in range(len(pieces))]


def outputs_of(
    problem: Problem, paths: Sequence[str], moduli: ModuliSet | None = None, **mode: bool
) -> list[store.Output]:
    """Outputs of the arrays of results, under given moduli or others; `mode` has options of :class:`.Output`.

    For solutions, `paths` are of the numerators and of the denominators. StoreError if an output cannot be
    written to its place.
    """
    under = None if moduli is None else list(moduli)
    outputs = [
        store.Output(path, result_hash(problem.job, result=k, moduli=under), **mode)
        for k, path in enumerate(paths)
    ]
    written = dict(zip(("the numerators", "the denominators"), outputs, strict=False))
    check_targets(written, [source.info for source in problem.sources])
    return outputs


def write_integers(
    values: Sequence[NDArray[np.object_]],
    moduli: ModuliSet | None,
    outputs: Sequence[store.Output],
    client: "Client | None" = None,
    *,
    progress: bool = False,
) -> list[Transfer]:
    """Write each array of results to a new store, under the fewest moduli that hold it unless some are given.

    The range is signed if a result is negative; JobError if one is out of the moduli's range. Arrays that the
    job has already completed stay as they are.
    """
    pairs = list(zip(values, outputs, strict=False))
    arrays = [_array_of(found, moduli, str(output.path)) for found, output in pairs]
    return [
        write_array(array, output, client, progress=progress)
        for array, output in zip(arrays, outputs, strict=False)
    ]


def _array_of(values: NDArray[np.object_], moduli: ModuliSet | None, path: str) -> RNSArray:
    signed = any(int(value) < 0 for value in values.flat)
    try:
        array: RNSArray = from_ints(values.reshape(values.shape or (1,)), moduli, signed).rechunk("auto")
    except ValueError as error:
        raise JobError(Message(f"{path}: ", error)) from error
    return array


def texts(values: NDArray[np.object_]) -> Any:
    """Convert results to decimal text, in nested lists."""
    return np.vectorize(to_decimal, otypes=[object])(values).tolist() if values.size else values.tolist()


def fractions(values: Sequence[NDArray[np.object_]]) -> NDArray[np.object_]:
    """Convert results to decimal text; numerators and denominators to fractions or integers."""
    numerators = values[0]
    if len(values) == 1:
        return np.array(texts(numerators), dtype=object).reshape(numerators.shape)
    lacking = numerators.ndim - values[1].ndim
    denominators = np.broadcast_to(values[1].reshape(values[1].shape + (1,) * lacking), numerators.shape)
    pairs = zip(numerators.flat, denominators.flat, strict=True)
    found = np.empty(numerators.size, dtype=object)
    found[:] = [str(mpq(numerator, denominator)) for numerator, denominator in pairs]
    return found.reshape(numerators.shape)
