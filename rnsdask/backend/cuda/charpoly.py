"""Characteristic polynomials of matrices modulo primes."""

import cupy

from rnsdask.backend.cuda import launching
from rnsdask.backend.cuda.launching import Parameter, modulus_table_on, shared_bytes, stack
from rnsdask.backend.cuda_layout import POLYNOMIALS, WARP
from rnsdask.backend.protocol import Array
from rnsdask.core.moduli import ModuliSet

_MOST_THREADS = 512

# Numbers of its matrix that a thread computes at the first step, where there are enough.
_NUMBERS = 32


def characteristic_polynomials(x: Array, moduli: ModuliSet) -> Array:
    n, count, length, _ = x.shape
    out = cupy.empty((n, count, length + 1), dtype=cupy.uint32)
    size = length * (length + 2)
    shared = shared_bytes(size)
    task = Parameter(
        POLYNOMIALS,
        x=stack(x),
        out=out,
        space=cupy.empty(n * count * (length + 1) ** 2, dtype=cupy.uint32),
        work=cupy.empty(0 if shared else n * count * size, dtype=cupy.uint32),
        moduli=modulus_table_on(moduli, cupy.cuda.runtime.getDevice()),
        moduli_count=n,
        count=count,
        length=length,
        is_shared=bool(shared),
    )
    if n * count:
        block, name = _threads(size), "characteristic_polynomials"
        launching.launch("charpoly", name, n * count * block, (task,), block=block, shared=shared)
    return out


def _threads(size: int) -> int:
    """Threads of a block that computes so many numbers at a time."""
    return max(WARP, min(_MOST_THREADS, 1 << (-(-size // _NUMBERS) - 1).bit_length()))
