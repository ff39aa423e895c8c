"""The job of an expression over stores: reductions of it in one pass, or its values in a store."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import dask.array as da
import numpy as np

from rnsdask import store
from rnsdask.arrays import creation
from rnsdask.arrays.rns_array import RNSArray
from rnsdask.cluster.memory import Work
from rnsdask.core import layout
from rnsdask.core.errors import ExpressionError, StoreError
from rnsdask.expressions.expression import Evaluation, evaluate
from rnsdask.expressions.syntax import Expression, parse
from rnsdask.jobs import memory_plan, writing
from rnsdask.jobs.compute import compute, naming
from rnsdask.jobs.identity import job_identity

if TYPE_CHECKING:
    from distributed import Client

REDUCTION_OF = {"max": "max", "argmax": "max", "min": "min", "argmin": "min", "sum": "sum"}
"""What can be asked of numbers, and the reduction that tells it."""


@dataclass(frozen=True)
class PreparedExpression:
    """An expression over stores, checked; nothing has been read but what the stores say about themselves.

    Attributes
    ----------
    text : str
        The expression.
    evaluation : Evaluation
        Its lazy value.
    arrays : tuple of RNSArray
        The stores, each once.
    work : Work
        What is known of the memory that it takes.
    stores : dict of StoreInfo
        What each name stands for.
    overflow : str
        What happens to results out of range.
    """

    text: str
    evaluation: Evaluation
    arrays: tuple[RNSArray, ...]
    work: Work
    stores: dict[str, store.StoreInfo]
    overflow: str

    @property
    def paths(self) -> list[str]:
        """Where the stores are, as :class:`.StoreInfo` names it."""
        return list(dict.fromkeys(info.path for info in self.stores.values()))

    @property
    def bytes_read(self) -> int:
        """Bytes of residues that evaluating it reads."""
        value = self.evaluation.value
        layers = (value.residues if isinstance(value, RNSArray) else value).dask.layers.keys()
        return sum(a.nbytes for a in self.arrays if not layers.isdisjoint(a.residues.dask.layers))

    @property
    def count(self) -> int:
        """Number of values."""
        return int(self.evaluation.value.size)

    def mask(self) -> da.Array:
        """Where an operation was out of range, with shape and chunks of the value."""
        value, mask = self.evaluation.value, self.evaluation.mask
        if mask is None:
            mask = da.zeros(value.shape, dtype=bool, chunks=value.chunks)
        whole: da.Array = da.broadcast_to(mask, value.shape).rechunk(value.chunks)
        return whole


@dataclass(frozen=True)
class Outcome:
    """What a job found or did.

    Attributes
    ----------
    results : dict
        Of reductions: the result of each that was asked for; ``"count"`` is an int.
    flagged : int or None
        How many values are flagged, where that was asked for.
    written : Transfer or None
        What was written, without the mask, if anything was.
    """

    results: dict[str, Any]
    flagged: int | None
    written: writing.Transfer | None = None


def prepare(
    text: str, paths: Mapping[str, str], *, overflow: str = "raise", backend: str = "auto"
) -> PreparedExpression:
    """Check an expression and the stores that its names stand for.

    Stores with different chunks are brought to common ones, so that each chunk is read once.

    Raises
    ------
    ExpressionError
        If the expression is wrong, or its operands do not fit one another.
    StoreError
        If a store cannot be opened, or is incomplete.
    """
    expression = parse(text)
    _check_used(expression, paths)
    by_path = {path: creation.open_rns(path, backend=backend) for path in dict.fromkeys(paths.values())}
    aligned = align({name: by_path[path] for name, path in paths.items()})
    arrays = tuple(by_path.values())
    stores = {name: store.open_info(path) for name, path in paths.items()}
    work = memory_plan.describe(
        "eval",
        max(len(array.moduli) for array in arrays),
        *_largest_chunks(aligned),
        stores=len(arrays),
        direct=all(info.has_chunk_files for info in stores.values()),
        # Each operation's result may be alive until the last one is made.
        arrays=expression.operations,
    )
    return PreparedExpression(text, evaluate(expression, aligned, overflow), arrays, work, stores, overflow)


def _check_used(expression: Expression, names: Mapping[str, object]) -> None:
    for name in names:
        if name not in expression.names:
            raise ExpressionError(f"expression {expression.text!r} does not use the name {name!r}")


def _largest_chunks(arrays: Mapping[str, RNSArray]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Shape and chunk lengths of the array with the most numbers."""
    largest = max(arrays.values(), key=lambda array: array.size)
    return largest.shape, tuple(max(1, int(length)) for length in largest.residues.chunksize[1:])


def align(arrays: Mapping[str, RNSArray]) -> dict[str, RNSArray]:
    """Give arrays whose shapes broadcast the same chunks along each axis: the shortest ones there are."""
    try:
        shape = np.broadcast_shapes(*(array.shape for array in arrays.values()))
    except ValueError:  # the expression may be a product of matrices; if not, it tells what is wrong
        return dict(arrays)
    lengths: dict[int, int] = {}
    for array in arrays.values():
        for axis, (length, chunk) in enumerate(zip(array.shape, array.residues.chunksize[1:], strict=True)):
            place = axis - array.ndim
            if length == shape[place] and length:
                lengths[place] = min(chunk, lengths.get(place, chunk))
    return {name: _rechunked(array, lengths) for name, array in arrays.items()}


def _rechunked(array: RNSArray, lengths: Mapping[int, int]) -> RNSArray:
    own = zip(array.shape, range(-array.ndim, 0), strict=True)
    chunks = tuple(min(length, lengths[place]) if length else 0 for length, place in own)
    if 0 in chunks or chunks == array.residues.chunksize[1:]:
        return array
    residues = array.residues.rechunk((len(array.moduli), *chunks))
    return RNSArray(residues, array.system)


# ---- reductions -------------------------------------------------------------------------------------------


def reduce(
    prepared: PreparedExpression,
    wanted: Sequence[str],
    client: "Client | None" = None,
    *,
    count_flagged: bool = False,
    backend: str = "auto",
    progress: bool = False,
) -> Outcome:
    """Reduce the values of an expression in one pass that reads each chunk once and writes nothing.

    Parameters
    ----------
    wanted
        Of ``"max"``, ``"min"``, ``"sum"``, ``"argmax"``, ``"argmin"`` for numbers; ``"count"`` for a
        comparison: of how many it holds.

    Raises
    ------
    ExpressionError
        If the expression's values are not of that kind.
    JobError
        If a result is out of range, or a divisor is 0.
    """
    value = prepared.evaluation.value
    check_reductions(prepared, wanted)
    tasks: dict[str, Any] = {
        name: value.sum() if name == "count" else value.reduce(name, backend=backend)
        for name in dict.fromkeys("count" if w == "count" else REDUCTION_OF[w] for w in wanted)
    }
    if count_flagged:
        tasks["flagged"] = prepared.mask().sum()
    with naming(f"expression {prepared.text!r}"):
        values = compute(list(tasks.values()), client, progress=progress, **_amount(prepared))
        found = dict(zip(tasks, values, strict=True))
    flagged = int(found["flagged"]) if count_flagged else None
    results = {w: int(found[w]) if w == "count" else found[REDUCTION_OF[w]] for w in wanted}
    return Outcome(results, flagged)


def check_reductions(prepared: PreparedExpression, wanted: Sequence[str]) -> None:
    """Raise ExpressionError if the values of an expression cannot be reduced so."""
    value, name = prepared.evaluation.value, f"expression {prepared.text!r}"
    for option in wanted:
        if option == "count" and (isinstance(value, RNSArray) or value.dtype != np.bool_):
            raise ExpressionError(f"{name}: --count counts where a comparison holds, and this is none")
        if option != "count" and not isinstance(value, RNSArray):
            raise ExpressionError(f"{name}: --{option} is of numbers, and this is of dtype {value.dtype}")


# ---- writing ----------------------------------------------------------------------------------------------


def write(
    prepared: PreparedExpression,
    path: str,
    client: "Client | None" = None,
    *,
    mask_path: str | None = None,
    count_flagged: bool = False,
    overwrite: bool = False,
    resume: bool = False,
    progress: bool = False,
) -> Outcome:
    """Write the values of an expression, chunk by chunk.

    Numbers go to a store; what a comparison or ``sign`` gives, to a plain Zarr array of its dtype.

    Parameters
    ----------
    mask_path
        Where the mask of overflows goes, a plain Boolean Zarr array, in the same pass.
    resume
        Write only the chunks that an incomplete array at `path` still lacks, or holds damaged, or whose mask
        is not whole at `mask_path`.

    Raises
    ------
    StoreError
        If a path is taken, or is one of the stores that are read, or cannot be written, or resumed.
    JobError
        If a result is out of range, or a divisor is 0. What is written stays, incomplete. If what is to be
        resumed is not of this job.
    """
    paths = [path] if mask_path is None else [path, mask_path]
    _check_paths(prepared, paths)
    value = prepared.evaluation.value
    source = value.with_storable_chunks() if isinstance(value, RNSArray) else _storable(value)
    prepared = replace(prepared, evaluation=Evaluation(source, prepared.evaluation.mask))
    identity = job_identity("eval", prepared.stores, expression=prepared.text, overflow=prepared.overflow)
    mode: dict[str, Any] = {"overwrite": overwrite, "resume": resume, "job_identity": identity}
    writer: store.ArrayWriter
    if isinstance(source, RNSArray):
        writer, blocks = writing.open_store(source, path, **mode), source.residues
    else:
        writer, blocks = _open_plain(path, source, **mode), source[None]
    writers = [(writer, blocks)]
    mask = prepared.mask()[None] if count_flagged or mask_path is not None else None
    mask_writer = None
    if mask_path is not None and mask is not None:
        mask_writer = _open_mask(mask_path, mask[0], **mode)
        writers.append((mask_writer, mask))
    with naming(f"expression {prepared.text!r}"):
        kept, damaged = writing.check_written(writers, client) if resume else (set(), set())
        missing = [index for index in np.ndindex(blocks.numblocks[1:]) if index not in kept]
        options: dict[str, Any] = {"mask": mask, "mask_writer": mask_writer, "counted": sorted(kept)}
        options.update(progress=progress, **_amount(prepared))
        flagged = writing.write(blocks, writer, missing, client, **options)
    amounts = (prepared.count, prepared.bytes_read, blocks.nbytes, len(kept), len(damaged))
    return Outcome({}, None if mask is None else flagged, writing.Transfer(*amounts))


def _amount(prepared: PreparedExpression) -> dict[str, Any]:
    """What progress says of a job."""
    return {"label": "eval", "numbers": prepared.count, "nbytes": prepared.bytes_read}


def _check_paths(prepared: PreparedExpression, paths: Sequence[str]) -> None:
    targets = {path: store.locate(path) for path in paths}
    first, *others = targets.values()
    if len(targets) < len(paths) or any(first.overlaps(other) for other in others):
        raise StoreError(f"{paths[0]}: the values and the mask cannot both be written there")
    for path, target in targets.items():
        if any(info.location.overlaps(target) for info in prepared.stores.values()):
            raise StoreError(f"{path}: an operand is read from there, so the result cannot be written there")


def _storable(values: da.Array) -> da.Array:
    chunks = layout.storable_chunks(values.chunks, values.shape, 1)
    storable: da.Array = values.rechunk(layout.normalize_chunks(chunks, values.shape, 1))
    return storable


def _open_plain(
    path: str,
    values: da.Array,
    *,
    overwrite: bool,
    resume: bool,
    job_identity: str,
    complete_too: bool = False,
) -> store.PlainWriter:
    chunks = tuple(max(1, int(length)) for length in values.chunksize)
    array = (path, values.shape, chunks, values.dtype)
    if resume:
        return store.resume_plain(*array, complete_too=complete_too, job_identity=job_identity)
    return store.create_plain(*array, overwrite=overwrite, job_identity=job_identity)


def _open_mask(
    path: str, mask: da.Array, *, overwrite: bool, resume: bool, job_identity: str
) -> store.PlainWriter:
    """Create a mask, or continue one: a job may have ended before it made its mask, or just after that."""
    mode: dict[str, Any] = {"overwrite": overwrite, "resume": resume and store.exists(path)}
    return _open_plain(path, mask, **mode, job_identity=job_identity, complete_too=True)
