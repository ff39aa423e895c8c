"""Reductions of a chunk in memory, and of the results of chunks: what tasks call, without a lazy array."""

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

from rnsdask.backend import Array, check_backend, naming_gpu_memory, to_backend
from rnsdask.core import rows
from rnsdask.core.number_system import NumberSystem
from rnsdask.core.place import Place
from rnsdask.core.reductions import REDUCTIONS, ReductionResult
from rnsdask.rns.bounds import check_bound
from rnsdask.rns.system import RNS


def check_reduction(operation: str, shape: Sequence[Any], backend: str) -> None:
    """Raise ValueError if an argument is wrong, or an array of that shape has no number to reduce."""
    check_operation(operation)
    check_backend(backend)
    if 0 in shape and REDUCTIONS[operation].identity is None:
        raise empty_error(operation, shape)


def check_operation(operation: str) -> None:
    """Raise ValueError unless there is a reduction of this name."""
    if operation not in REDUCTIONS:
        raise ValueError(f"reduction must be one of {', '.join(REDUCTIONS)}, got {operation!r}")


def empty_error(operation: str, shape: Sequence[Any]) -> ValueError:
    """Return the error for a reduction without numbers that has no result then."""
    return ValueError(f"{operation} of an empty array: it needs at least one number, got shape {shape}")


def reduce_words(operation: str, words: Array, system: NumberSystem) -> ReductionResult:
    """Reduce the words of numbers in memory, of NumPy or CuPy, for any system that has reductions."""
    check_operation(operation)
    found: ReductionResult = system.apply(rows.reduce, words, operation=operation)
    return found


def move_to_reduce(block: Array, system: NumberSystem, backend: str) -> Array:
    """Move a chunk to the processor that reduces it; it stays where it is unless one was chosen."""
    if backend == "auto" and not system.table[rows.reduce.name].moves:
        return block
    return to_backend(block, backend)


def reduce_chunk(
    block: Any, *, place: Place, operation: str, system: NumberSystem, backend: str
) -> ReductionResult:
    """Reduce one chunk; its index is converted to one of the whole array."""
    with naming_gpu_memory(f"chunk {place.index}"):
        result = reduce_words(operation, move_to_reduce(block, system, backend), system)
    return result if result.index is None else replace(result, index=place.flat_index(result.index))


def measure_chunk(block: Any, *, place: Place, stated: RNS, **how: Any) -> ReductionResult:
    """Measure the bound of one chunk with a system that knows none, whatever bound its store has stated.

    Other options are those of :func:`reduce_chunk`. NumberError for a number beyond a stated bound that only
    some numbers of its length respect: the measured bound may be as long, and would not show it.
    """
    if stated.known_magnitude & (stated.known_magnitude + 1):
        check_bound(block, system=stated, place=place)
    return reduce_chunk(block, place=place, **how)


def combine_results(results: Sequence[ReductionResult], operation: str) -> ReductionResult:
    """Combine the results of all chunks, or of groups of them, to the array's result."""
    return reduce(REDUCTIONS[operation].combine, results)
