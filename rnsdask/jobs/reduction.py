"""The jobs that reduce a store, chunk by chunk; a checkpoint may keep partial results."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rnsdask import store
from rnsdask.core.reductions import ReductionResult
from rnsdask.jobs.checkpoint import REDUCTIONS, Checkpoint, job_of_reduction
from rnsdask.jobs.compute import Advance, compute, mapping
from rnsdask.jobs.run import groups_of
from rnsdask.lazy.blocks import Blocks
from rnsdask.lazy.chunk_reductions import check_reduction, combine_results, measure_chunk, reduce_chunk
from rnsdask.lazy.summary import Summary, combine_summaries, summarize_chunk

if TYPE_CHECKING:
    from distributed import Client


def reduce(
    blocks: Blocks,
    operation: str,
    client: "Client | None" = None,
    *,
    progress: bool = False,
    checkpoint: str | Path | None = None,
) -> ReductionResult:
    """Reduce a store; ``"bound"`` is measured from all residues, whatever bound the store states.

    The folder `checkpoint` keeps finished partial results, which are not computed again. JobError if they
    belong to another job, the input has changed, or the cluster is lost.
    """
    info = blocks.info
    check_reduction(operation, info.shape, blocks.backend)
    groups = groups_of(blocks.count)
    kept = None
    if checkpoint is not None:
        kept = Checkpoint(checkpoint, job_of_reduction(info, operation, groups), REDUCTIONS)
    results = {} if kept is None else kept.load()
    missing = [i for i in range(len(groups)) if i not in results]
    how: dict[str, Any] = {"operation": operation, "system": info.system, "backend": blocks.backend}
    function: Any = reduce_chunk
    if operation == "bound" and info.system.bound is not None:
        function = measure_chunk
        how |= {"system": info.system.with_bound(None), "stated": info.system}
    combine = partial(combine_results, operation=operation)
    pieces = blocks.reduce([groups[i] for i in missing], function, combine, **how)

    def keep(i: int, result: ReductionResult) -> None:
        if kept is not None:
            kept.save(missing[i], result)

    found = compute(pieces, client, progress=progress, label=operation, done=keep, **_amount(info))
    results.update(zip(missing, found, strict=True))
    return combine([results[i] for i in range(len(groups))])


def summarize(blocks: Blocks, client: "Client | None" = None, *, progress: bool = False) -> Summary:
    """Summarize a store of integers; JobError if the cluster is lost."""
    info = blocks.info
    how: dict[str, Any] = {"system": info.system, "backend": blocks.backend}
    # In one piece, for summaries of long numbers are long: a tree holds few of them at a time.
    (piece,) = blocks.reduce([range(blocks.count)], summarize_chunk, combine_summaries, **how)
    found: Summary = compute(piece, client, progress=progress, label="stats", **_amount(info))
    return found


def sum_plain(
    info: store.PlainInfo, client: "Client | None" = None, advance: Advance = lambda _: None
) -> int:
    """Sum the values of a plain array: of a mask, how many are true."""
    with mapping(client, advance) as mapped:
        return sum(mapped(partial(_sum_chunk, info), np.ndindex(info.grid) if info.count else ()))


def _sum_chunk(info: store.PlainInfo, index: tuple[int, ...]) -> int:
    values = store.read_plain_chunk(info, index)
    if values.dtype != np.int64:
        return int(values.sum(dtype=np.int64))
    low, high = values & 0xFFFFFFFF, values >> 32  # whose sums fit into 64 bits
    return int(low.sum()) + (int(high.sum()) << 32)


def _amount(info: store.StoreInfo) -> dict[str, Any]:
    return {"numbers": info.count, "nbytes": info.nbytes}
