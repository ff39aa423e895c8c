"""Jobs over sparse matrices in files: ranks and determinants modulo primes."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rnsdask import sparse
from rnsdask.core.layout import RESIDUE_DTYPE
from rnsdask.fields.system import PrimeFields
from rnsdask.jobs.compute import compute, naming
from rnsdask.jobs.memory_plan import Work
from rnsdask.sparse.matrix import SparseMatrix
from rnsdask.sparse.systems import PRIMES_OF_TASK
from rnsdask.sparse.wiedemann import may_eliminate

if TYPE_CHECKING:
    from distributed import Client

_VECTORS = 16
"""Estimated number of vectors that a task holds for each prime: random ones, products, recurrences."""

_DENSE_ARRAYS = 3
"""Arrays of the size of a matrix modulo one prime that elimination holds."""

_ENTRY_BYTES, _ROW_BYTES = 64, 32
"""Estimated bytes of an entry, and of a row or column, in the matrix, its transpose and a task's residues."""


def work_of(operation: str, shape: tuple[int, int], entries: int, fields: PrimeFields) -> Work:
    """Describe the job by the vectors of a task, and by the matrix, which each process holds."""
    count = min(PRIMES_OF_TASK, fields.rows)
    tasks = -(-fields.rows // count)
    how = memory_of(shape, entries, may_eliminate(shape, fields.moduli))
    words = count * fields.words32 // fields.rows
    return Work(operation, words, max(*shape, 1), tasks, how.pop("beside"), **how)


def memory_of(shape: tuple[int, int], entries: int, eliminates: bool) -> dict[str, Any]:
    """Return what :func:`.describe` takes of a matrix, which each thread may eliminate."""
    words = math.prod(shape) if eliminates else 0
    return {
        "beside": _VECTORS,
        "constants": _ENTRY_BYTES * entries + _ROW_BYTES * sum(shape),
        "room": _DENSE_ARRAYS * words * RESIDUE_DTYPE.itemsize,
        "whole": f"a sparse matrix of shape {shape} with up to {entries} entries",
    }


def results_of(
    operation: str,
    path: Path,
    matrix: SparseMatrix,
    fields: PrimeFields,
    client: "Client | None" = None,
    *,
    backend: str = "cpu",
    progress: bool = False,
) -> list[int]:
    """Compute the rank modulo each prime, or the determinant modulo their product.

    Raises
    ------
    JobError
        If a prime is too small for the matrix.
    TypeError, ValueError
        If the matrix of a determinant is not square.
    """
    with naming(f"{operation} of {path}"):
        lazy: Any = getattr(sparse, operation)(matrix, fields, chunks=PRIMES_OF_TASK, backend=backend)
        how: dict[str, Any] = {"progress": progress, "label": operation, "numbers": matrix.nnz}
        found = compute(lazy, client, **how)
    return [int(value) for value in np.atleast_1d(np.asarray(found, dtype=object))]
