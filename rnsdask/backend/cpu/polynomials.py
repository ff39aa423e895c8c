"""Polynomials of residues: products by transforms, division, common divisors."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rnsdask.backend.cpu.extension import _cpu
from rnsdask.backend.protocol import Array, HalfGcd, Moduli
from rnsdask.constants import ThreePrimeConstants, TransformConstants, modulus_table, wide_modulus_table
from rnsdask.core.moduli import ModuliSet
from rnsdask.core.wide_moduli import WideModuli


def ntt(
    residues: Array,
    constants: TransformConstants,
    out: Array,
    method: str = "best",
    *,
    twists: NDArray[Any] | None = None,
    is_inverse: bool = False,
    is_reversed: bool = False,
) -> None:
    powers_of = np.ones_like(constants.roots) if twists is None else twists
    how = constants.roots, powers_of, constants.scales, is_inverse, is_reversed
    if isinstance(constants.moduli, WideModuli):
        # A run, its factors and its twists with their quotients, and the rest of a line of the cache before.
        space = np.empty(5 * constants.length + 8, dtype=np.uint64)
        table = wide_modulus_table(constants.moduli)
        _cpu.wide_ntt(residues, constants.length, table, *how, space, out, method)
        return
    of_moduli = modulus_table(constants.moduli)
    _cpu.ntt(residues, constants.length, of_moduli, *how, _space(constants), out, method)


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
    x: Array, y: Array, degrees: tuple[Array, Array], moduli: Moduli, divisors: bool
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    n, count, _ = x.shape
    length = max(x.shape[-1], y.shape[-1]) if divisors else 0
    numerators, denominators = (np.ones((n, count), dtype=x.dtype) for _ in range(2))
    found = np.empty((n, count, length), dtype=x.dtype)
    if isinstance(moduli, WideModuli):
        _cpu.wide_remainder_sequences(x, y, *degrees, wide_modulus_table(moduli), numerators, found)
    else:
        _cpu.remainder_sequences(x, y, *degrees, modulus_table(moduli), numerators, denominators, found)
    return numerators, denominators, found


def divide_polynomials(
    x: Array, y: Array, degrees: Array, moduli: Moduli
) -> tuple[NDArray[Any], NDArray[Any]]:
    quotients, remainders = (np.empty(x.shape, dtype=x.dtype) for _ in range(2))
    if isinstance(moduli, WideModuli):
        _cpu.wide_divide_polynomials(x, y, degrees, wide_modulus_table(moduli), quotients, remainders)
    else:
        _cpu.divide_polynomials(x, y, degrees, modulus_table(moduli), quotients, remainders)
    return quotients, remainders


def half_gcd(pair: Array, least: int, moduli: WideModuli, wants_matrix: bool) -> HalfGcd:
    length = pair.shape[1]
    words = pair.copy()
    matrix = np.empty((2, 2, length - least + 1 if wants_matrix else 0), dtype=np.uint64)
    leading, degrees = (np.empty(length - least + 1, dtype=dtype) for dtype in (np.uint64, np.int64))
    table = wide_modulus_table(moduli)
    m, n, steps = _cpu.wide_half_gcd(words, least, table, matrix, leading, degrees)
    return HalfGcd(matrix, words[0, : m + 1], words[1, : n + 1], leading[:steps], degrees[:steps])
