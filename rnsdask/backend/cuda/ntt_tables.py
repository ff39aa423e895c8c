"""Tables of powers of roots for tiles of number-theoretic transforms, on GPUs."""

from enum import Enum
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
        if bits <= 62:
            return "LooseWideField" if bits <= 60 else "LazyWideField"
        return "ShortWideField" if bits == 63 else "WideField"
    return "NarrowField" if is_narrow(primes) else "MontgomeryField"


def moduli_on(constants: TransformConstants, device: int) -> Any:
    """Table of the primes for arithmetic on a device."""
    moduli = constants.moduli
    return (
        wide_table_on(moduli, device) if isinstance(moduli, WideModuli) else modulus_table_on(moduli, device)
    )


class Twist(Enum):
    """When elements are multiplied by powers of a root psi of order 2N; as numbers in `ntt_pass.cuh`."""

    NONE = 0
    BEFORE = 1
    AFTER = 2


Twists = tuple[int, ...] | None
"""The roots psi modulo each prime; None if elements are not multiplied."""


def _roots(
    constants: TransformConstants, log_length: int, twists: Twists = None
) -> tuple[list[int], list[int]]:
    """The primes, and the powers of their roots that have an order, or of psi, which have twice of it."""
    primes = list(constants.moduli)
    exponent, roots = constants.length >> log_length, twists or constants.roots.tolist()
    return primes, [pow(root, exponent, p) for root, p in zip(roots, primes, strict=True)]


@lru_cache(32)
def roots_on(constants: TransformConstants, log_length: int, device: int, twists: Twists = None) -> Any:
    """Factors for passes of a length, on a device."""
    primes, roots = _roots(constants, log_length, twists)
    how: dict[str, Any] = {"is_twisted": twists is not None}
    return table_on_gpu(root_factors(roots, primes, 1 << log_length, constants.roots.dtype, **how))


@lru_cache(32)
def powers_on(
    constants: TransformConstants, log_length: int, device: int, twists: Twists = None
) -> tuple[Any, Any, int]:
    """Two tables whose products are the powers of a root of an order, or with twists of twice the order.

    Also the logarithm of the first one's length.
    """
    primes, roots = _roots(constants, log_length, twists)
    log_order = log_length + (twists is not None)
    low_bits = (log_order + 1) // 2
    steps = [pow(root, 1 << low_bits, p) for root, p in zip(roots, primes, strict=True)]
    ones, dtype = [1] * len(primes), constants.roots.dtype
    low = power_factors(ones, roots, primes, 1 << low_bits, dtype)
    high = power_factors(ones, steps, primes, 1 << (log_order - low_bits), dtype)
    return table_on_gpu(low), table_on_gpu(high), low_bits


@lru_cache(32)
def within_on(
    constants: TransformConstants,
    log_matrix: int,
    shape: Shape,
    device: int,
    twists: Twists = None,
    twist: Twist = Twist.NONE,
) -> Any:
    """The powers that stand between passes in columns c at indices j of the first tile.

    They are w**(c j), or with twists psi**(c (2j + 1)) or psi**((2c + 1) j).
    """
    primes, roots = _roots(constants, log_matrix, twists)
    count = 1 << (shape.length + shape.columns + (twists is not None))
    powers = power_factors([1] * len(primes), roots, primes, count, constants.roots.dtype)
    rows, columns = np.arange(1 << shape.length), np.arange(1 << shape.columns)
    if twist is Twist.BEFORE:
        rows = 2 * rows + 1
    if twist is Twist.AFTER:
        columns = 2 * columns + 1
    return table_on_gpu(powers[:, np.outer(rows, columns).ravel()])


@lru_cache(32)
def scales_on(constants: TransformConstants, device: int) -> Any:
    primes = list(constants.moduli)
    return table_on_gpu(power_factors(constants.scales.tolist(), primes, primes, 1, constants.roots.dtype))
