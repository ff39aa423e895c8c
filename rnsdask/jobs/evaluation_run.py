"""Running prepared expressions: they are reduced, and written to stores, in one pass."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dask.array as da
import numpy as np

from rnsdask import store
from rnsdask.arrays.number_array import NumberArray
from rnsdask.core.errors import StoreError
from rnsdask.core.ways import Message, Setting
from rnsdask.expressions.expression import Evaluation
from rnsdask.jobs import writing
from rnsdask.jobs.compute import compute, naming
from rnsdask.jobs.evaluation import SINGLE, Paths, PreparedExpressions, storable
from rnsdask.jobs.hashes import job_hash
from rnsdask.jobs.sources import check_targets
from rnsdask.lazy.tree import pieces_of
from rnsdask.lazy.write import count_chunks, removing_failed

if TYPE_CHECKING:
    from distributed import Client

REDUCTION_OF = {"max": "max", "argmax": "max", "min": "min", "argmin": "min", "sum": "sum"}
"""Reduction that answers each option of numbers."""


@dataclass(frozen=True)
class Outcome:
    """Outcome of a result: reductions by name, number of flagged values, and totals of what was written.

    ``"count"`` is an int; anything not requested is None.
    """

    results: dict[str, Any]
    flagged: int | None
    written: writing.Transfer | None = None


def run(
    prepared: PreparedExpressions,
    wanted: Mapping[str, Sequence[str]],
    outputs: Mapping[str, Paths],
    client: "Client | None" = None,
    *,
    count_flagged: bool = False,
    overwrite: bool = False,
    resume: bool = False,
    backend: str = "auto",
    progress: bool = False,
) -> dict[str, Outcome]:
    """Reduce results, and write them chunk by chunk, in one pass that reads each chunk once.

    Numbers go to a store; the values of a comparison or of ``sign`` to a plain Zarr array of their dtype. An
    overflow mask goes to a plain Boolean array. `wanted` maps names of results to reductions that
    :func:`check_wanted` has checked, and `outputs` to paths. `count_flagged` counts the values for which an
    operation was out of range. With `resume`, only chunks that incomplete arrays lack or hold damaged, or
    whose mask is incomplete, are written; missing arrays are begun. `outputs` must not include complete
    arrays: :func:`complete_outputs`.

    StoreError if a path exists, is an input, or cannot be written or resumed. JobError if a result is out of
    range, or a divisor is 0; arrays that were begun are removed, unless they were resumed.
    """
    _check_paths(prepared, outputs, new=not (overwrite or resume))
    mode = {"overwrite": overwrite, "resume": resume}
    targets = _begin(prepared, outputs, count_flagged, mode)
    with naming(prepared.called), removing_failed(lambda: _discard(targets)):
        for target in targets.values():
            if target.resumed:
                target.find_kept(client)
        reductions = _reductions(prepared, wanted, outputs, count_flagged, backend)
        counts = [array for target in targets.values() for array in target.counts()]
        pieces = pieces_of(*counts, *reductions.values())
        names = [name for name in prepared.expressions if name in wanted or name in outputs]
        numbers, nbytes = sum(map(prepared.count, names)), prepared.bytes_read(names)
        how: dict[str, Any] = {"progress": progress, "label": "eval", "numbers": numbers, "nbytes": nbytes}
        found = iter(compute(pieces, client, **how))
        for target in targets.values():
            target.finish()
    flagged = {
        name: sum(next(found) for array in target.counts() for _ in range(array.npartitions))
        for name, target in targets.items()
    }
    reduced = dict(zip(reductions, map(_item, found), strict=True))
    flagged |= {name: int(count) for (name, option), count in reduced.items() if option == "flagged"}
    return {
        name: Outcome(
            _results(name, wanted.get(name, ()), reduced),
            flagged[name] if count_flagged else None,
            targets[name].transfer(prepared, name) if name in targets else None,
        )
        for name in names
    }


def _begin(
    prepared: PreparedExpressions, outputs: Mapping[str, Paths], count_flagged: bool, mode: dict[str, bool]
) -> "dict[str, _Target]":
    """Begin all outputs, or open them to resume; if one fails, none is kept."""
    if not mode["resume"]:  # for all together; each one also checks for itself
        store.check_room(_sizes(prepared, outputs))
    targets: dict[str, _Target] = {}
    for name, output in outputs.items():
        try:
            targets[name] = _Target.begin(prepared, name, output, count_flagged, mode)
        except StoreError:  # the others are still empty
            _discard(targets)
            raise
    return targets


def _discard(targets: "Mapping[str, _Target]") -> None:
    for target in targets.values():
        target.discard()


def _item(result: Any) -> Any:
    """The only item of a 0-dimensional array, as a task returns it."""
    return result.item() if isinstance(result, np.ndarray | np.generic) else result


def _reductions(
    prepared: PreparedExpressions,
    wanted: Mapping[str, Sequence[str]],
    outputs: Mapping[str, Paths],
    count_flagged: bool,
    backend: str,
) -> dict[tuple[str, str], Any]:
    """Lazy reductions by the names of results and reductions; a maximum and its index share one."""
    tasks: dict[tuple[str, str], Any] = {}
    for name, options in wanted.items():
        value = prepared.evaluations[name].value
        for option in options:
            if option == "count":
                tasks[name, option] = _count(value)
            elif (name, REDUCTION_OF[option]) not in tasks:
                tasks[name, REDUCTION_OF[option]] = value.reduce(REDUCTION_OF[option], backend=backend)
        if count_flagged and name not in outputs:
            tasks[name, "flagged"] = _count(prepared.mask(name))
    return tasks


def _count(values: da.Array) -> da.Array:
    """Lazy count of the True values of a Boolean array.

    Not Dask's sum: on a GPU, the threads would compile CuPy's kernel one after the other.
    """
    count: da.Array = count_chunks(values[None]).sum()
    return count


def _results(name: str, options: Sequence[str], reduced: Mapping[tuple[str, str], Any]) -> dict[str, Any]:
    return {
        option: int(reduced[name, option]) if option == "count" else reduced[name, REDUCTION_OF[option]]
        for option in options
    }


@dataclass
class _Target:
    """Writers of a result's values and of its mask."""

    blocks: da.Array
    writer: store.ArrayWriter
    mask: da.Array | None
    mask_writer: store.ArrayWriter | None
    resumed: bool
    kept: set[writing.Index]
    damaged: set[writing.Index]
    planned: list[da.Array] | None = None

    @classmethod
    def begin(
        cls,
        prepared: PreparedExpressions,
        name: str,
        output: Paths,
        count_flagged: bool,
        mode: dict[str, bool],
    ) -> "_Target":
        """Create the output, or open it to resume.

        Some outputs of an interrupted job may not have been begun.
        """
        evaluation = prepared.evaluations[name]
        source = storable(evaluation.value)
        stored = replace(
            prepared, evaluations={**prepared.evaluations, name: Evaluation(source, evaluation.mask)}
        )
        of_values, of_mask = _outputs(prepared, name, output, mode)
        decision = of_values.decide()
        if decision is store.Decision.DONE:  # but its mask is not, or the job would be done
            decision = store.Decision.BEGIN
        is_resumed = decision is store.Decision.GO_ON
        writer: store.ArrayWriter
        blocks: Any
        if isinstance(source, NumberArray):
            writer, blocks = writing.open_store(source, of_values, decision), source.words
        else:
            writer, blocks = _open_plain(of_values, source, decision), source[None]
        mask = stored.mask(name)[None] if count_flagged or output.mask_path is not None else None
        mask_writer = None
        if of_mask is not None and mask is not None:
            # The job may have ended just before or just after it created its mask.
            how = of_mask.decide() if is_resumed else store.Decision.BEGIN
            mask_writer = _open_plain(of_mask, mask[0], how)
        return cls(blocks, writer, mask, mask_writer, is_resumed, set(), set())

    def find_kept(self, client: "Client | None") -> None:
        """Find the chunks that are written already."""
        writers = [(self.writer, self.blocks)]
        if self.mask_writer is not None and self.mask is not None:
            writers.append((self.mask_writer, self.mask))
        self.kept, self.damaged = writing.check_written(writers, client)

    def counts(self) -> list[da.Array]:
        """Lazy arrays that write the missing chunks, and count the flagged values."""
        if self.planned is None:
            missing = [index for index in np.ndindex(self.blocks.numblocks[1:]) if index not in self.kept]
            masks: dict[str, Any] = {"mask": self.mask, "mask_writer": self.mask_writer}
            counted = sorted(self.kept)
            self.planned = writing.counts(self.blocks, self.writer, missing, counted=counted, **masks)
        return self.planned

    def discard(self) -> None:
        """Remove the arrays that were begun, unless they were resumed."""
        for one in (self.writer, self.mask_writer):
            if one is not None and not self.resumed:
                one.discard()

    def finish(self) -> None:
        """Declare all complete, the values last: while they are incomplete, both arrays can be resumed."""
        for one in (self.mask_writer, self.writer):
            if one is not None:
                one.finish()

    def transfer(self, prepared: PreparedExpressions, name: str) -> writing.Transfer:
        amount = prepared.count(name), prepared.bytes_read([name]), int(self.blocks.nbytes)
        return writing.Transfer(*amount, len(self.kept), len(self.damaged))


def _outputs(
    prepared: PreparedExpressions, name: str, paths: Paths, mode: Mapping[str, bool]
) -> tuple[store.Output, store.Output | None]:
    """Outputs of a result's values and of their mask.

    The job includes the mask's place beside the values, because complete values do not record it.
    """
    texts = {other: expression.text for other, expression in prepared.expressions.items()}
    how: dict[str, Any] = {"expression": texts[SINGLE]} if SINGLE in texts else {"expressions": texts}
    how["overflow"] = prepared.overflow
    if name != SINGLE:
        how["name"] = name
    if paths.mask_path is not None:
        how["mask"] = _beside(paths.mask_path, paths.path)
    if prepared.extension is not None:
        how["extended_to"] = prepared.extension.after
    job = job_hash("eval", prepared.stores, **how)
    mask = None if paths.mask_path is None else store.Output(paths.mask_path, job, **mode)
    return store.Output(paths.path, job, **mode), mask


def _beside(path: str, other: str) -> str:
    """Place of an array as seen from the folder of another, so that both may be moved together."""
    place, beside = (store.locate(each) for each in (path, other))
    if place.is_local != beside.is_local:
        return place.path
    return os.path.relpath(place.path, Path(beside.path).parent)


def complete_outputs(
    prepared: PreparedExpressions, outputs: Mapping[str, Paths], **mode: bool
) -> dict[str, Paths]:
    """Outputs that this very job has already completed, each with its mask; `mode` has options of Output.

    StoreError as in :meth:`.Output.decide`, and if an output is in the place of another output or an input.
    """
    _check_paths(prepared, outputs)
    return {name: paths for name, paths in outputs.items() if _is_complete(prepared, name, paths, mode)}


def _is_complete(prepared: PreparedExpressions, name: str, paths: Paths, mode: Mapping[str, bool]) -> bool:
    done = store.Decision.DONE
    values, mask = _outputs(prepared, name, paths, mode)
    if values.decide() is not done:
        return False
    if mask is None or mask.decide() is done:
        return True
    if values.overwrite:
        return False
    raise StoreError(
        Message(
            f"{values.place.path}: it is complete, but its mask {mask.path} is not; replace both with ",
            Setting("overwrite", True),
        )
    )


def _check_paths(prepared: PreparedExpressions, outputs: Mapping[str, Paths], new: bool = False) -> None:
    written = {}
    for name, paths in outputs.items():
        of_name = "" if name == SINGLE else f" of {name}"
        written[f"the values{of_name}"] = store.Output(paths.path)
        if paths.mask_path is not None:
            written[f"those of the mask{of_name}"] = store.Output(paths.mask_path)
    # With several outputs, none is begun if another cannot be; a single one reports its own error.
    check_targets(written, prepared.stores.values(), new=new and len(written) > 1)


def _sizes(prepared: PreparedExpressions, outputs: Mapping[str, Paths]) -> dict[store.Location, int]:
    """Bytes to be written to each place."""
    sizes: dict[store.Location, int] = {}
    for name, output in outputs.items():
        value = prepared.evaluations[name].value
        sizes[store.locate(output.path)] = int(value.nbytes)
        if output.mask_path is not None:
            sizes[store.locate(output.mask_path)] = int(value.size)
    return sizes


def _open_plain(output: store.Output, values: da.Array, decision: store.Decision) -> store.PlainWriter:
    """Create or open a plain array; a complete mask is opened too, because its values are counted."""
    chunks = tuple(max(1, int(length)) for length in values.chunksize)
    array = (output.path, values.shape, chunks, values.dtype)
    if decision is store.Decision.BEGIN:
        return store.create_plain(*array, overwrite=output.overwrite, job=output.job)
    return store.resume_plain(*array, complete_too=decision is store.Decision.DONE, job=output.job)
