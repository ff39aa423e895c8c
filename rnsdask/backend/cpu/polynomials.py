"""Polynomials of residues: products by transforms, division, common divisors."""

import numpy as np
from numpy.typing import NDArray

from rnsdask.backend.cpu.extension import _cpu
from rnsdask.backend.protocol import Array
from rnsdask.constants import ThreePrimeConstants, TransformConstants, modulus_table, wide_modulus_table
from rnsdask.core.moduli import ModuliSet
from rnsdask.core.wide_moduli import WideModuli


def ntt(residues: Array, constants: TransformConstants, out: Array, method: str = "best") -> None:
    if isinstance(constants.moduli, WideModuli):
        wide = wide_modulus_table(constants.moduli)
        _cpu.wide_ntt(residues, constants.length, wide, constants.roots, constants.scales, out)
        return
    table = modulus_table(constants.moduli)
    _cpu.ntt(
        residues, constants.length, table, constants.roots, constants.scales, _space(constants), out, method
    )


def cyclic_products(
    x: Array,
    y: Array,
    forward: TransformConstants,
    inverse: TransformConstants,
    out: Array,
    method: str = "best",
) -> None:
    """Write the cyclic products of runs of ``forward.length`` elements, one after another in each row.

    `out` (n, N), which is written, is no operand. Where an operand has one run a row, it serves for all.
    """
    roots = (modulus_table(forward.moduli), forward.roots, inverse.roots, inverse.scales)
    _cpu.cyclic_products(x, y, forward.length, *roots, _space(forward), out, method)


def _space(constants: TransformConstants) -> NDArray[np.uint32]:
    # NumPy asks for huge pages, without which the first touch of so much takes as long as the transform.
    return np.empty(constants.length, dtype=np.uint32)


def transform_methods() -> list[str]:
    """The instruction sets by which this processor transforms, portable first; all give the same."""
    methods: list[str] = _cpu.transform_methods()
    return methods


def convolve(x: Array, y: Array, moduli: ModuliSet, first: int, out: Array) -> None:
    _cpu.convolve(x, y, modulus_table(moduli), first, out)


def padded_residues(x: Array, primes: ModuliSet, out: Array) -> None:
    _cpu.padded_residues(x, modulus_table(primes), out)


def three_prime_remainders(x: Array, constants: ThreePrimeConstants, out: Array) -> None:
    _cpu.three_prime_remainders(x, constants.primes, constants.weights, out)


def remainder_sequences(
    x: Array, y: Array, degrees: tuple[Array, Array], moduli: ModuliSet, divisors: bool
) -> tuple[NDArray[np.uint32], NDArray[np.uint32], NDArray[np.uint32]]:
    n, count, _ = x.shape
    length = max(x.shape[-1], y.shape[-1]) if divisors else 0
    numerators, denominators = (np.empty((n, count), dtype=np.uint32) for _ in range(2))
    found = np.empty((n, count, length), dtype=np.uint32)
    _cpu.remainder_sequences(x, y, *degrees, modulus_table(moduli), numerators, denominators, found)
    return numerators, denominators, found


def divide_polynomials(
    x: Array, y: Array, degrees: Array, moduli: ModuliSet
) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    quotients, remainders = (np.empty(x.shape, dtype=np.uint32) for _ in range(2))
    _cpu.divide_polynomials(x, y, degrees, modulus_table(moduli), quotients, remainders)
    return quotients, remainders
