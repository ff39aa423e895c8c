"""The job that reduces an array; a checkpoint may keep its partial results."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from rnsdask import store
from rnsdask.jobs.checkpoint import REDUCTIONS, Checkpoint, job_of_reduction
from rnsdask.jobs.compute import compute
from rnsdask.jobs.run import groups_of
from rnsdask.lazy.tree import combine_results, reduce_groups

if TYPE_CHECKING:
    from distributed import Client

    from rnsdask.arrays.integer_array import IntegerArray
    from rnsdask.core.reductions import ReductionResult


def reduce(
    array: "IntegerArray",
    operation: str,
    client: "Client | None" = None,
    *,
    backend: str = "auto",
    progress: bool = False,
    checkpoint: str | Path | None = None,
    info: store.StoreInfo | None = None,
) -> "ReductionResult":
    """Reduce a lazy array, which is read from the store `info`.

    The folder `checkpoint` keeps finished partial results, which are not computed again. JobError if they
    belong to another job, the input has changed, or the cluster is lost.
    """
    words: Any = array.words
    groups = groups_of(words.npartitions)
    kept = None
    if checkpoint is not None and info is not None:
        kept = Checkpoint(checkpoint, job_of_reduction(info, operation, groups), REDUCTIONS)
    results = {} if kept is None else kept.load()
    missing = [i for i in range(len(groups)) if i not in results]
    left = [groups[i] for i in missing]
    pieces = reduce_groups(words, array.system, operation, left, backend=backend) if left else []

    def keep(i: int, result: "ReductionResult") -> None:
        if kept is not None:
            kept.save(missing[i], result)

    amount: dict[str, Any] = {"numbers": array.size, "nbytes": array.nbytes}
    found = compute(pieces, client, progress=progress, label=operation, done=keep, **amount)
    results.update(zip(missing, found, strict=True))
    return combine_results([results[i] for i in range(len(groups))], operation)
