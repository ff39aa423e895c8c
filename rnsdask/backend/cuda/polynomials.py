"""Polynomials modulo primes: products, resultants, greatest common divisors and division."""

from typing import Any

import cupy
import numpy as np

from rnsdask.backend.cuda import launching
from rnsdask.backend.cuda.launching import (
    BLOCKS_PER_PROCESSOR,
    SHARED_BYTES,
    Parameter,
    modulus_table_on,
    on_device,
    processors,
)
from rnsdask.backend.cuda.layout import BLOCK, CONVOLUTION, DIVISIONS, RUNS, SEQUENCES, THREE_PRIMES, WARP
from rnsdask.backend.protocol import Array, Moduli
from rnsdask.constants import ThreePrimeConstants
from rnsdask.core.moduli import ModuliSet

# Least pairs that get a thread each, if the coefficients of a warp's pairs fit shared memory; fewer pairs get
# a block each.
_MANY_PAIRS = 2**14


def _coefficients(x: Array) -> tuple[Array | int, ...]:
    """The structure Coefficients of polynomials."""
    return x, *(stride // x.itemsize for stride in x.strides), x.shape[-1]


def _threads(length: int) -> int:
    """Threads of a block for polynomials of `length` coefficients."""
    return max(WARP, min(BLOCK, 1 << (length - 1).bit_length()))


def remainder_sequences(
    x: Array, y: Array, degrees: tuple[Array, Array], moduli: Moduli, divisors: bool
) -> tuple[Array, Array, Array]:
    assert isinstance(moduli, ModuliSet)
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


def divide_polynomials(x: Array, y: Array, degrees: Array, moduli: Moduli) -> tuple[Array, Array]:
    assert isinstance(moduli, ModuliSet)
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


half_gcd = None


def convolve(x: Array, y: Array, moduli: ModuliSet, first: int, out: Array) -> None:
    rows, runs, count = out.shape
    device = cupy.cuda.runtime.getDevice()
    sizes = {"rows": rows, "runs": runs, "first": first, "count": count}
    operands = {"x": (x, *_layout(x)), "y": (y, *_layout(y))}
    task = Parameter(CONVOLUTION, out=out, moduli=modulus_table_on(moduli, device), **operands, **sizes)
    launching.launch("convolution", "convolve", out.size, (task,))


def padded_residues(x: Array, primes: ModuliSet, out: Array) -> None:
    rows, runs, _ = x.shape
    task = Parameter(RUNS, **dict(zip(RUNS.names or (), (x, *_layout(x)), strict=True)))
    table = modulus_table_on(primes, cupy.cuda.runtime.getDevice())
    sizes = (np.int64(rows), np.int64(runs), table, np.int64(len(out)), np.int64(out.shape[-1]))
    launching.launch("convolution", "padded_residues", out.size, (task, *sizes, out))


def three_prime_remainders(x: Array, constants: ThreePrimeConstants, out: Array) -> None:
    primes = np.frombuffer(constants.primes, dtype=THREE_PRIMES)[0]
    rows, count = out.shape
    sizes = (np.int64(rows), np.int64(count))
    arguments = (x, primes, on_device(constants, "weights"), *sizes, out)
    launching.launch("convolution", "three_prime_remainders", out.size, arguments)


def _layout(x: Array) -> tuple[Any, ...]:
    """Distances from row to row and from run to run, and the length of a run."""
    if x.size and x.shape[2] > 1 and x.strides[2] != x.itemsize:
        raise ValueError("residues: the numbers of a run must be contiguous")
    plane, step = (stride // x.itemsize for stride in x.strides[:2])
    return plane, step, x.shape[2]
