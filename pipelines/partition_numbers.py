"""All partition numbers p(n), n < N, exact: one over Euler's product, modulo enough primes.

    python pipelines/partition_numbers.py partitions [--size 16777216] [--gpus 1] [--picture partitions.svg]

By Euler the series of p(n), the number of ways to write n as a sum of positive integers, is one over the
product of all 1 - x^k, in which few coefficients are not 0. A few primes are a task, and a store in the
folder: what is there already is not computed again. Checked: Ramanujan's congruences modulo 5, 7 and 11 at
every n, and FLINT's p(n) at some. The picture has the error of Hardy's and Ramanujan's formula.
"""

import math
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import flint
import numpy as np
from running import compute, connected, drawing, on_host, on_processor, parser_of

import rnsdask as rd


def primes_for(size: int) -> list[int]:
    """Return primes whose product is above p(n) for n < size, with transforms if there are enough such."""
    # p(n) <= exp(pi sqrt(2 n / 3)): T. Apostol, "Introduction to Analytic Number Theory", theorem 14.5.
    bits = math.ceil(math.pi * math.sqrt(2 * size / 3) / math.log(2)) + 1
    try:
        return list(rd.ModuliSet.ntt_primes(bits, 2 << (size - 1).bit_length()))
    except ValueError:
        return list(rd.ModuliSet.ntt_primes(bits, 1))


def euler_product(size: int) -> np.ndarray:
    """Return the first coefficients of the product of all 1 - x^k (Euler's pentagonal theorem)."""
    k = np.arange(-math.isqrt(size) - 1, math.isqrt(size) + 2)
    at, series = k * (3 * k - 1) // 2, np.zeros(size, dtype=np.int64)
    series[at[at < size]] = np.where(k % 2, -1, 1)[at < size]
    return series


def _residues(primes: list[int], size: int, on_gpu: bool) -> np.ndarray:
    words = np.array([euler_product(size) % p for p in primes], dtype=np.uint32)
    product = on_processor(rd.FieldArray(words, rd.PrimeFields(primes)), on_gpu)
    return on_host(rd.poly.inverse_series(product).residues)


def partition_numbers(folder: Path, size: int, client: Any = None, on_gpu: bool = False) -> rd.RNSArray:
    """Return all p(n), n < size, as a lazy array of stores of a few primes each; write those missing."""
    primes, step = primes_for(size), max(1, min(8, 2**22 // size))
    stores = {folder / f"{size}-{p}.zarr": primes[k : k + step] for k, p in enumerate(primes) if not k % step}
    missing = {store: few for store, few in stores.items() if not store.exists()}
    print(f"{len(primes)} primes in {len(stores)} stores, of which {len(stores) - len(missing)} are there")
    writes = []
    for store, few in missing.items():
        words = da.from_delayed(dask.delayed(_residues)(few, size, on_gpu), (len(few), size), np.uint32)
        series, chunk = rd.FieldArray(words, rd.PrimeFields(few)), max(2**16, size // 64)
        writes.append(series.to_zarr(store, chunks=chunk, mode="w", compute=False))
    compute(writes, client, on_gpu)
    residues = da.concatenate([rd.open_zarr(store).residues for store in stores]).rechunk({0: -1})
    return rd.from_residues(residues, primes, trusted=True)


def check(numbers: rd.RNSArray, count: int = 100) -> list[str]:
    """Check Ramanujan's congruences at every n, and p(n) at some n, the last among them."""
    if any((numbers[first::m] % m).any().compute() for m, first in ((5, 4), (7, 5), (11, 6))):
        raise SystemExit("error: a p(5 k + 4), p(7 k + 5) or p(11 k + 6) is no multiple of 5, 7 or 11")
    last = len(numbers) - 1
    places = np.unique([*np.random.default_rng(1).integers(0, last + 1, count), last])
    values = numbers[places].to_ints().tolist()
    if values != [int(flint.fmpz(n).partitions_p()) for n in places.tolist()]:
        raise SystemExit("error: FLINT has another p(n)")
    text = rd.to_decimal(values[-1])
    return [
        f"p({last}) has {len(text)} digits and ends in {text[-10:]}",
        "p(5 k + 4), p(7 k + 5), p(11 k + 6) are multiples of 5, 7 and 11 for every k",
        f"FLINT has the same p(n) at {len(places)} places",
    ]


def draw(numbers: rd.RNSArray, picture: Path) -> None:
    """Draw how far exp(pi sqrt(2 n / 3)) / (4 n sqrt 3) is above p(n)."""
    n = np.unique(np.geomspace(1, len(numbers) - 1, 200).astype(int))
    formula = math.pi * np.sqrt(2 * n / 3) / math.log(2) - np.log2(4 * n * math.sqrt(3))
    with drawing(picture) as axes:
        axes.loglog(n, 2 ** (formula - np.asarray(rd.log2(numbers[n]).compute())) - 1)
        axes.set(xlabel="n", ylabel="relative error", title="Hardy's and Ramanujan's formula for p(n)")


def main() -> None:
    options = parser_of(__doc__, 2**20, "p(0) to p(N - 1)").parse_args()
    with connected(options) as client:
        numbers = partition_numbers(options.folder, options.size, client, bool(options.gpus))
        print(*check(numbers), sep="\n")
        if options.picture:
            draw(numbers, options.picture)


if __name__ == "__main__":
    main()
