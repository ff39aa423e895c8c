"""Ramanujan's tau(n), 0 < n < N, exact: Jacobi's series of eta^3, to the power 8, modulo a few primes.

    python pipelines/ramanujan_tau.py tau [--size 16777216] [--gpus 1] [--picture tau.svg]

tau(n) is the coefficient of x^n in x times the product of all (1 - x^k)^24. By Jacobi that of all (1 - x^k)^3
has few coefficients that are not 0, and its 8th power takes three squarings. Each prime is a task; a store
that is there is kept. Checked: tau(n) is the sum of the 11th powers of the divisors of n, modulo 691, at
every n (Ramanujan, 1916). D. Lehmer's conjecture is that no tau(n) is 0: zeros are counted. The picture has
tau(p) / (2 p^(11/2)) of the primes p, which spread as a semicircle (Sato, Tate).
"""

import math
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
from running import connected, drawing, on_host, on_processor, parser_of, stored

import rnsdask as rd


def primes_for(size: int) -> list[int]:
    """Return primes whose product is above 2 |tau(n)| for n < size, with transforms if there are such."""
    # |tau(n)| is at most n^(11/2) times the number of divisors of n, so at most 2 n^6 (P. Deligne, 1974).
    bits = (4 * size**6).bit_length() + 1
    try:
        return list(rd.ModuliSet.ntt_primes(bits, 2 << (size - 1).bit_length()))
    except ValueError:
        return list(rd.ModuliSet.ntt_primes(bits, 1))


def jacobi_series(size: int) -> np.ndarray:
    """Return the first coefficients of the product of all (1 - x^k)^3: (-1)^k (2 k + 1) at k (k + 1) / 2."""
    k = np.arange(math.isqrt(2 * size) + 1)
    at, series = k * (k + 1) // 2, np.zeros(size, dtype=np.int64)
    series[at[at < size]] = np.where(k % 2, -2 * k - 1, 2 * k + 1)[at < size]
    return series


def _residues(prime: int, size: int, on_gpu: bool) -> np.ndarray:
    words = (jacobi_series(size) % prime).astype(np.uint32)[None]
    series = on_processor(rd.FieldArray(words, rd.PrimeFields([prime])), on_gpu)
    return on_host(rd.poly.power_mod(series, 8, length=size).residues)


def lazy_tau(size: int, on_gpu: bool = False) -> rd.RNSArray:
    """Return tau(1) to tau(size), lazy."""
    primes = primes_for(size + 1)
    tasks = (dask.delayed(_residues)(p, size, on_gpu) for p in primes)
    residues = da.concatenate([da.from_delayed(task, (1, size), np.uint32) for task in tasks])
    return rd.from_residues(residues.rechunk((-1, 2**20)), primes, signed=True, trusted=True)


def tau(folder: Path, size: int, client: Any = None, on_gpu: bool = False) -> rd.RNSArray:
    """Return tau(1) to tau(size) as a lazy array of a store, which is written if it is not there."""
    return stored(folder / f"{size}.zarr", lambda: lazy_tau(size, on_gpu), client, on_gpu)


def divisor_sums(size: int) -> np.ndarray:
    """Return the sums of the 11th powers of all divisors of 1 to size, modulo 691."""
    powers = np.array([pow(d, 11, 691) for d in range(691)])[np.arange(size + 1) % 691]
    sums = np.zeros(size + 1, dtype=np.int64)
    for d in range(1, math.isqrt(size) + 1):
        sums[d * d] += powers[d]
        sums[d * (d + 1) :: d] += powers[d] + powers[d + 1 : size // d + 1]
    return sums[1:] % 691


def check(numbers: rd.RNSArray) -> str:
    """Check Ramanujan's congruence modulo 691 at every n."""
    if not (numbers % 691 == divisor_sums(len(numbers))).all().compute():
        raise SystemExit("error: a tau(n) is not the sum of the 11th powers of divisors modulo 691")
    zeros = int((numbers == 0).sum().compute())
    return f"tau(n) is the sum of 11th powers modulo 691 for n = 1 to {len(numbers)}; {zeros} are 0"


def draw(numbers: rd.RNSArray, picture: Path) -> None:
    """Draw how tau(p) / (2 p^(11/2)) spreads over the primes p, beside the semicircle."""
    is_prime = np.ones(len(numbers) + 1, dtype=bool)
    for d in range(2, math.isqrt(len(numbers)) + 1):
        is_prime[d * d :: d] = False
    primes = np.flatnonzero(is_prime)[2:]
    values = numbers[primes - 1].astype(float, casting="unsafe").compute() / (2 * primes**5.5)
    with drawing(picture) as axes:
        axes.hist(values, bins=100, range=(-1, 1), density=True)
        axes.plot(x := np.linspace(-1, 1, 400), 2 / math.pi * np.sqrt(1 - x**2))
        axes.set(xlabel="tau(p) / (2 p^(11/2))", title=f"{len(primes)} primes p")


def main() -> None:
    options = parser_of(__doc__, 2**20, "greatest n").parse_args()
    with connected(options) as client:
        numbers = tau(options.folder, options.size, client, bool(options.gpus))
        print(check(numbers))
        if options.picture:
            draw(numbers, options.picture)


if __name__ == "__main__":
    main()
