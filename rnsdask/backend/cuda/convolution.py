"""Kernels of convolution: of short operands, and around transforms modulo three primes."""

from typing import Any

import cupy
import numpy as np

from rnsdask.backend.cuda import launching
from rnsdask.backend.cuda.launching import Parameter, modulus_table_on, on_device
from rnsdask.backend.cuda_layout import CONVOLUTION, RUNS, THREE_PRIMES
from rnsdask.backend.protocol import Array
from rnsdask.constants import ThreePrimeConstants
from rnsdask.core.moduli import ModuliSet


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
