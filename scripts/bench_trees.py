"""Batch gcd of RSA-like keys beside gmpy2's tree on as many cores: ``python scripts/bench_trees.py``.

Both find what each key has in common with all others; results are compared. Each takes its best of several
rounds, in turns, for other programs on the machine disturb single runs.
"""

import argparse
import os
import random
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Any

import gmpy2
from gmpy2 import mpz

import rnsdask as rd


def levels_of(numbers: list[mpz]) -> list[list[mpz]]:
    """All levels of the product tree of some integers, by gmpy2."""
    levels = [numbers]
    while len(levels[-1]) > 1:
        below = levels[-1]
        pairs = [below[i] * below[i + 1] for i in range(0, len(below) - 1, 2)]
        levels.append(pairs + below[len(below) // 2 * 2 :])
    return levels


def product_by_gmpy2(keys: list[mpz]) -> mpz:
    """Product of a part of the keys."""
    return levels_of(keys)[-1][0]


def divisors_by_gmpy2(keys: list[mpz], everything: mpz) -> list[mpz]:
    """Bernstein's remainder tree modulo squares, for a part of the keys."""
    rest = [everything]
    for level in reversed(levels_of(keys)):
        rest = [rest[i // 2] % (number * number) for i, number in enumerate(level)]
    return [gmpy2.gcd(r // n, n) for r, n in zip(rest, keys, strict=True)]


def batch_gcd_by_gmpy2(keys: list[mpz], pool: ProcessPoolExecutor, parts: int) -> list[mpz]:
    """Compute it on several processes, since GMP holds Python's lock."""
    step = -(-len(keys) // parts)
    blocks = [keys[i : i + step] for i in range(0, len(keys), step)]
    everything = product_by_gmpy2(list(pool.map(product_by_gmpy2, blocks)))
    found = pool.map(partial(divisors_by_gmpy2, everything=everything), blocks)
    return [divisor for block in found for divisor in block]


def seconds(function: Callable[[], Any]) -> tuple[float, Any]:
    """The time of one call, and its result."""
    start = time.perf_counter()
    result = function()
    return time.perf_counter() - start, result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keys", type=int, default=20_000)
    parser.add_argument("--bits", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    random.seed(1)
    keys = [mpz(random.getrandbits(options.bits) | 1) for _ in range(options.keys)]
    cores = len(os.sched_getaffinity(0))
    x = rd.from_ints(
        list(map(int, keys)), rd.Positional(options.bits), chunks=-(-len(keys) // cores)
    ).persist()
    best: dict[str, float] = {}
    with ProcessPoolExecutor(cores) as pool:
        ways = {
            "rnsdask": lambda: rd.batch_gcd(x).compute(),
            "gmpy2, one core": lambda: divisors_by_gmpy2(keys, product_by_gmpy2(keys)),
            f"gmpy2, {cores} cores": lambda: batch_gcd_by_gmpy2(keys, pool, cores),
        }
        results = {}
        for _ in range(options.rounds):
            for name, way in ways.items():
                spent, results[name] = seconds(way)
                best[name] = min(spent, best.get(name, spent))
    ours = results.pop("rnsdask").to_ints().tolist()
    assert all(ours == found for found in results.values())
    for name, spent in best.items():
        print(f"{name:<20} {spent:7.2f} s   {spent / best['rnsdask']:.2f}")


if __name__ == "__main__":
    main()
