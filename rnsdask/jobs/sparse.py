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
"""Vectors modulo the primes of a task that it holds, by estimate: random ones, products and recurrences."""

_DENSE_ARRAYS = 3
"""Arrays of the size of a matrix modulo one prime that elimination takes."""

_ENTRY_BYTES = 64
"""Bytes of an entry, by estimate: of the matrix and its transpose, and modulo the primes of a task."""


def work_of(operation: str, matrix: SparseMatrix, fields: PrimeFields) -> Work:
    """Describe the job by the vectors of a task, and by the matrix, which each process holds.

    Each thread may eliminate the matrix modulo a small prime.
    """
    count = min(PRIMES_OF_TASK, fields.rows)
    tasks = -(-fields.rows // count)
    held = _ENTRY_BYTES * matrix.nnz
    words = math.prod(matrix.shape) if may_eliminate(matrix, fields.moduli) else 0
    room = _DENSE_ARRAYS * words * RESIDUE_DTYPE.itemsize
    return Work(operation, count, max(*matrix.shape, 1), tasks, _VECTORS, 0, constants=held, room=room)


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
