"""Kernels of polynomials modulo primes: resultants, greatest common divisors and division."""

import cupy

from rnsdask.backend.cuda import launching
from rnsdask.backend.cuda.launching import (
    BLOCKS_PER_PROCESSOR,
    SHARED_BYTES,
    Parameter,
    modulus_table_on,
    processors,
)
from rnsdask.backend.cuda_layout import BLOCK, DIVISIONS, SEQUENCES, WARP
from rnsdask.backend.protocol import Array
from rnsdask.core.moduli import ModuliSet

# Pairs have a thread each if there are so many and the coefficients of a warp's fit shared memory; else a
# block.
_MANY_PAIRS = 2**14


def _coefficients(x: Array) -> tuple[Array | int, ...]:
    """The structure Coefficients of polynomials."""
    return x, *(stride // x.itemsize for stride in x.strides), x.shape[-1]


def _threads(length: int) -> int:
    """Threads of a block for polynomials of so many coefficients."""
    return max(WARP, min(BLOCK, 1 << (length - 1).bit_length()))


def remainder_sequences(
    x: Array, y: Array, degrees: tuple[Array, Array], moduli: ModuliSet, divisors: bool
) -> tuple[Array, Array, Array]:
    n, count, _ = x.shape
    length = max(x.shape[-1], y.shape[-1]) if divisors else 0
    numerators, denominators = (cupy.empty((n, count), dtype=cupy.uint32) for _ in range(2))
    found = cupy.empty((n, count, length), dtype=cupy.uint32)
    pairs, words = n * count, x.shape[-1] + y.shape[-1]
    if not pairs:
        return numerators, denominators, found
    device = cupy.cuda.runtime.getDevice()
    by_threads = pairs >= _MANY_PAIRS and 4 * WARP * words <= SHARED_BYTES
    if by_threads:
        block = WARP
        while block < BLOCK // 2 and 8 * block * words <= SHARED_BYTES:
            block *= 2
        threads, shared = pairs, 4 * block * words
    else:
        block = _threads(min(x.shape[-1], y.shape[-1]))
        # As many blocks as are launched have memory.
        threads = block * min(pairs, processors(device) * BLOCKS_PER_PROCESSOR)
        shared = 4 * words if 4 * words <= SHARED_BYTES else 0
    task = Parameter(
        SEQUENCES,
        x=_coefficients(x),
        y=_coefficients(y),
        x_degrees=degrees[0],
        y_degrees=degrees[1],
        moduli=modulus_table_on(moduli, device),
        numerators=numerators,
        denominators=denominators,
        divisors=found,
        space=cupy.empty(0 if shared else threads // block * words, dtype=cupy.uint32),
        moduli_count=n,
        count=count,
        divisor_length=length,
        is_shared=bool(shared),
    )
    name = "sequences_by_threads" if by_threads else "sequences_by_blocks"
    launching.launch("polynomials", name, threads, (task,), block=block, shared=shared)
    return numerators, denominators, found


def divide_polynomials(x: Array, y: Array, degrees: Array, moduli: ModuliSet) -> tuple[Array, Array]:
    n, count, _ = x.shape
    quotients, remainders = (cupy.empty(x.shape, dtype=cupy.uint32) for _ in range(2))
    task = Parameter(
        DIVISIONS,
        x=_coefficients(x),
        y=_coefficients(y),
        y_degrees=degrees,
        moduli=modulus_table_on(moduli, cupy.cuda.runtime.getDevice()),
        quotients=quotients,
        remainders=remainders,
        moduli_count=n,
        count=count,
    )
    if n * count:
        block = _threads(y.shape[-1])
        launching.launch("polynomials", "divide_polynomials", n * count * block, (task,), block=block)
    return quotients, remainders
