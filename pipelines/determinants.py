"""The greatest and least determinant among many random sign matrices, exact, by elimination modulo primes.

    python pipelines/determinants.py --size 24 --count 200000 [--seed 1] [--store determinants.zarr]

Hadamard's maximal determinant problem asks how large the determinant of a k x k matrix of -1 and 1 can be.
Each matrix of a random sample is eliminated modulo a few primes. The residues of its determinant are its form
in a residue number system, so the extremes and the sum of all determinants follow without reconstructing any.
Hadamard's bound |det| <= k**(k/2) says how many primes are needed, and is the array's bound.
"""

import argparse
import math
from typing import Any

import dask
import dask.array as da
import gmpy2
import numpy as np
from numpy.typing import NDArray

import rnsdask as rd

_CHUNK = 8192


def hadamard_bound(size: int) -> int:
    """Return floor(size**(size/2)), which no determinant of signs exceeds in magnitude."""
    return math.isqrt(size**size)


def primes_for(bound: int) -> rd.ModuliSet:
    """Return the greatest primes below 2**31 whose product exceeds 2 bound + 1: products fit 64 bits."""
    primes: list[int] = []
    while math.prod(primes) <= 2 * bound + 1:
        primes.append(int(gmpy2.prev_prime(primes[-1] if primes else 2**31)))
    return rd.ModuliSet(primes)


def sign_matrices(size: int, count: int, seed: int, chunk: int) -> NDArray[np.int64]:
    """Return the random matrices of one chunk, shape (count, size, size)."""
    generator = np.random.Generator(np.random.Philox([seed, chunk]))
    return 2 * generator.integers(0, 2, size=(count, size, size), dtype=np.int64) - 1


def determinants_modulo(matrices: NDArray[np.int64], prime: int) -> NDArray[np.int64]:
    """Return the determinants of (count, size, size) matrices modulo a prime below 2**31, by elimination."""
    rows = matrices % prime
    everyone = np.arange(len(rows))
    result = np.ones(len(rows), dtype=np.int64)
    for column in range(rows.shape[1]):
        pivot_row = column + (rows[:, column:, column] != 0).argmax(axis=1)
        swapped = rows[everyone, pivot_row].copy()
        rows[everyone, pivot_row] = rows[:, column]
        rows[:, column] = swapped
        pivot = swapped[:, column]
        sign = np.where(pivot_row == column, 1, prime - 1)
        result = result * sign % prime * pivot % prime
        # Without a pivot the inverse is 0, and so is the determinant.
        factors = rows[:, column + 1 :, column] * inverse_modulo(pivot, prime)[:, None] % prime
        rows[:, column + 1 :] -= factors[:, :, None] * swapped[:, None, :] % prime
        rows[:, column + 1 :] %= prime
    return result


def inverse_modulo(values: NDArray[np.int64], prime: int) -> NDArray[np.int64]:
    """Return values**(prime - 2) modulo the prime: the inverses (Fermat), and 0 for 0."""
    result = np.ones_like(values)
    for bit in bin(prime - 2)[2:]:
        result = result * result % prime
        if bit == "1":
            result = result * values % prime
    return result


def _residues_of_chunk(
    *, size: int, count: int, seed: int, moduli: rd.ModuliSet, block_id: tuple[int, ...]
) -> NDArray[np.uint32]:
    chunk = block_id[1]
    matrices = sign_matrices(size, min(_CHUNK, count - chunk * _CHUNK), seed, chunk)
    return np.array([determinants_modulo(matrices, p) for p in moduli]).astype(np.uint32)


def determinants(size: int, count: int, seed: int) -> rd.RNSArray:
    """Return the determinants of random sign matrices as a lazy signed array of shape (count,)."""
    bound = hadamard_bound(size)
    moduli = primes_for(bound)
    residues = da.map_blocks(
        _residues_of_chunk,
        size=size,
        count=count,
        seed=seed,
        moduli=moduli,
        chunks=((len(moduli),), da.core.normalize_chunks(_CHUNK, (count,), dtype=np.uint32)[0]),
        dtype=np.uint32,
        meta=np.empty((0, 0), dtype=np.uint32),
    )
    return rd.from_residues(residues, moduli, signed=True, bound=bound)


def summary(size: int, count: int, seed: int, store: str | None = None) -> dict[str, Any]:
    """Return the extremes, where the greatest is, and the sum; with `store`, keep all determinants there."""
    x = determinants(size, count, seed)
    if store is not None:
        x.to_zarr(store)
        x = rd.open_zarr(store)
    greatest, index, least, total = dask.compute(x.max(), x.argmax(), x.min(), x.sum())
    return {"greatest": greatest, "index": index, "least": least, "sum": total, "bound": x.bound}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--size", type=int, default=16)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--store", help="keep the determinants in this new store")
    options = parser.parse_args()
    for name, value in summary(options.size, options.count, options.seed, options.store).items():
        print(f"{name:>8}  {value}")


if __name__ == "__main__":
    main()
