"""Matrix products and convolutions of chunks of elements of prime fields beyond 32 bits. No Dask in here.

Elements are read as integers, whose sums of products are computed by residues modulo 32-bit moduli and then
reduced modulo each prime. On a CPU matrices are multiplied in 64 bits.
"""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from rnsdask.backend import Array, kernels_of
from rnsdask.constants import digits_to_wide_residue, forward_constants, mixed_radix_constants
from rnsdask.constants.factors import CACHED_SETS
from rnsdask.core.moduli import ModuliSet
from rnsdask.core.wide_moduli import WideModuli
from rnsdask.fields import convolution
from rnsdask.fields.system import WidePrimeFields
from rnsdask.rns import matmul
from rnsdask.rns.arithmetic import apply
from rnsdask.rns.blocks import column_of
from rnsdask.rns.system import RNS


def multiply_matrices(a: Array, b: Array, system: WidePrimeFields) -> Array:
    """Products of matrices (n, *batch, I, K) and (n, *batch, K, J), whose batches broadcast."""
    batch = np.broadcast_shapes(a.shape[1:-2], b.shape[1:-2])
    new = np.empty_like if a.shape[-1] else np.zeros_like
    out = new(a, shape=(len(a), *batch, a.shape[-2], b.shape[-1]), order="C")
    if not out.size or not a.shape[-1]:
        return out
    a, b = (np.broadcast_to(x, (len(x), *batch, *x.shape[-2:])) for x in (a, b))
    left, right, products = (x.reshape(len(x), math.prod(batch), *x.shape[-2:]) for x in (a, b, out))
    if kernels_of(out).wide_matmul(left, right, products, system.moduli):
        return out
    return through_residues(a, b, system, a.shape[-1], matmul.multiply)


def convolve(x: Array, y: Array, system: WidePrimeFields, first: int = 0, stop: int | None = None) -> Array:
    """Convolutions (n, *batch, count) of (n, *batch, A) and (n, *batch, B), as by 32-bit moduli."""
    lengths = x.shape[-1], y.shape[-1]
    stop = sum(lengths) - 1 if stop is None else stop
    begin = max(0, first - min(lengths) + 1)
    plan = convolution.plan_blocks(max(lengths) - begin, min(lengths), first - begin, stop - begin)

    def window(a: Array, b: Array, moduli: ModuliSet) -> Array:
        return convolution.convolve(a, b, moduli, first, stop)

    return through_residues(x, y, system, min(lengths), window, length=plan.length)


def convolve_cyclic(x: Array, y: Array, system: WidePrimeFields, negacyclic: bool = False) -> Array:
    """Cyclic convolutions, as :func:`.convolution.convolve_cyclic`."""
    length = x.shape[-1]
    order = (
        length * (1 + negacyclic)
        if length.bit_count() == 1
        else convolution.plan_blocks(length, length, 0, 2 * length - 1).length
    )

    def cyclic(a: Array, b: Array, moduli: ModuliSet) -> Array:
        return convolution.convolve_cyclic(a, b, moduli, negacyclic)

    return through_residues(x, y, system, length, cyclic, length=order, is_signed=negacyclic)


def through_residues(
    x: Array,
    y: Array,
    system: WidePrimeFields,
    terms: int,
    product: Callable[[Array, Array, ModuliSet], Array],
    *,
    length: int | None = None,
    is_signed: bool = False,
) -> Array:
    """Compute sums of up to `terms` products of integers from 0 to p - 1 by `product`, modulo each p.

    With a `length`, moduli are primes with transforms of it, if there are enough. Sums may be negative if
    `is_signed`.
    """
    bits = (terms * (max(system.primes) - 1) ** 2).bit_length() + 2 * is_signed
    moduli = _moduli(bits, length)
    found = product(_residues(x, moduli), _residues(y, moduli), moduli)  # (k, n, ...)
    out = np.empty_like(x, shape=found.shape[1:], order="C")
    for i, p in enumerate(system.primes):
        sums = found[:, i].reshape(len(moduli), -1)
        if is_signed:
            least = -(-terms * (p - 1) ** 2 // p) * p
            sums = apply("add", (sums, column_of(least, moduli)), RNS(moduli), "wrap")
        out[i] = _modulo(sums, moduli, p).reshape(out.shape[1:])
    return out


@lru_cache(CACHED_SETS)
def _moduli(bits: int, length: int | None) -> ModuliSet:
    if length is not None:
        try:
            return ModuliSet.ntt_primes(bits, length)
        except ValueError:  # too few primes
            pass
    return ModuliSet.for_bits(bits)


def _residues(words: Array, moduli: ModuliSet) -> Array:
    """Residues (k, *shape) of 64-bit words (*shape)."""
    limbs = np.asarray(words, order="C", like=words).reshape(-1).view(np.uint32).reshape(-1, 2)
    out = np.empty_like(limbs, shape=(len(moduli), len(limbs)), order="C")
    if out.size:
        kernels_of(out).limbs_to_residues(limbs, forward_constants(moduli, 2, False), out)
    return out.reshape(len(moduli), *words.shape)


def _modulo(residues: Array, moduli: ModuliSet, p: int) -> Array:
    """Words (N,) modulo p of integers with residues (k, N)."""
    kernels: Any = kernels_of(residues)
    digits = kernels.mixed_radix_digits(residues, mixed_radix_constants(moduli))
    limbs = np.empty_like(digits, shape=digits.shape[::-1], order="C")
    if not limbs.size:
        return np.empty_like(limbs, shape=(0,), dtype=np.uint64, order="C")
    kernels.transpose(digits, limbs)
    return kernels.limbs_to_wide_residues(limbs, digits_to_wide_residue(moduli, WideModuli((p,))))[0]
