"""Tables of powers of roots for tiles of number-theoretic transforms, on GPUs."""

from functools import lru_cache
from typing import Any

import numpy as np

from rnsdask.backend.cuda.launching import modulus_table_on
from rnsdask.backend.cuda.memory import table_on_gpu
from rnsdask.backend.cuda.ntt_shapes import Shape
from rnsdask.backend.cuda.wide import wide_table_on
from rnsdask.constants import TransformConstants
from rnsdask.constants.ntt import is_narrow, power_factors, root_factors
from rnsdask.core.wide_moduli import WideModuli


def field(constants: TransformConstants) -> str:
    """Class of the kernels' arithmetic that serves all primes (``rns/ntt.cuh``, ``rns/wide_ntt.cuh``)."""
    primes = list(constants.moduli)
    if isinstance(constants.moduli, WideModuli):
        bits = (max(primes) - 1).bit_length()
        return "LazyWideField" if bits <= 62 else "ShortWideField" if bits == 63 else "WideField"
    return "NarrowField" if is_narrow(primes) else "MontgomeryField"


def moduli_on(constants: TransformConstants, device: int) -> Any:
    """Table of the primes for arithmetic on a device."""
    moduli = constants.moduli
    return (
        wide_table_on(moduli, device) if isinstance(moduli, WideModuli) else modulus_table_on(moduli, device)
    )


def _roots(constants: TransformConstants, log_length: int) -> tuple[list[int], list[int]]:
    """The primes, and the powers of their roots that have an order."""
    primes = list(constants.moduli)
    exponent = constants.length >> log_length
    return primes, [pow(root, exponent, p) for root, p in zip(constants.roots.tolist(), primes, strict=True)]


@lru_cache(32)
def roots_on(constants: TransformConstants, log_length: int, device: int) -> Any:
    """Factors for passes of a length, on a device."""
    primes, roots = _roots(constants, log_length)
    return table_on_gpu(root_factors(roots, primes, 1 << log_length, constants.roots.dtype))


@lru_cache(32)
def powers_on(constants: TransformConstants, log_length: int, device: int) -> tuple[Any, Any]:
    """Two tables whose products are the powers of a root of an order."""
    primes, roots = _roots(constants, log_length)
    low_bits = split(log_length)
    steps = [pow(root, 1 << low_bits, p) for root, p in zip(roots, primes, strict=True)]
    ones, dtype = [1] * len(primes), constants.roots.dtype
    low = power_factors(ones, roots, primes, 1 << low_bits, dtype)
    high = power_factors(ones, steps, primes, 1 << (log_length - low_bits), dtype)
    return table_on_gpu(low), table_on_gpu(high)


@lru_cache(32)
def within_on(constants: TransformConstants, log_matrix: int, shape: Shape, device: int) -> Any:
    """The powers w**(i j) of a root of an order, for columns i and rows j of a tile."""
    primes, roots = _roots(constants, log_matrix)
    count = 1 << (shape.length + shape.columns)
    powers = power_factors([1] * len(primes), roots, primes, count, constants.roots.dtype)
    rows, columns = np.arange(1 << shape.length), np.arange(1 << shape.columns)
    return table_on_gpu(powers[:, np.outer(rows, columns).ravel()])


@lru_cache(32)
def scales_on(constants: TransformConstants, device: int) -> Any:
    primes = list(constants.moduli)
    return table_on_gpu(power_factors(constants.scales.tolist(), primes, primes, 1, constants.roots.dtype))


def split(log_length: int) -> int:
    """The logarithm of the length of the lower table of powers."""
    return (log_length + 1) // 2
