"""Times batch gcd beside the same tree in gmpy2 on as many cores, and modular products of Paillier's lengths.

    python scripts/bench_trees.py                        20,000 keys of 1024 bits
    python scripts/bench_trees.py --keys 2000 --bits 512

Both find what each key has in common with all others; results are compared. Times are the least of several
rounds, in turn. With --json FILE writes the rows.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))  # PYTHONSAFEPATH leaves it out

import os
import random
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Any

import gmpy2
from benchmarking import argument_parser, print_rows, time_in_turn, wall_seconds, write_results
from gmpy2 import mpz

import rnsdask as rd

Row = dict[str, Any]

RUNS = {
    "cpu": ("",),
    "gpu": (),
    "tiny": ("--keys 20 --bits 64 --rounds 1 --products 4",),
    "tiny-gpu": (),
}

REPEAT = 5


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


def bench_products(size: int, lengths: tuple[int, ...] = (4096, 6144)) -> list[Row]:
    """Products modulo an odd number of so many bits, and gmpy2's one by one, on one core."""
    rows: list[Row] = []
    for bits in lengths:
        m, *numbers = (random.getrandbits(bits) | 1 | 1 << bits - 1 for _ in range(size + 1))
        x = rd.from_ints(numbers, rd.Positional(bits))
        y, theirs, modulus = x[::-1], [mpz(v) for v in numbers], mpz(m)
        calls: dict[str, Callable[[], Any]] = {
            "rnsdask": partial(rd.mod_multiply, x, y, m),
            "gmpy2": lambda v=theirs, m=modulus: [a * b % m for a, b in zip(v, reversed(v), strict=True)],
        }
        timings = time_in_turn({name: partial(wall_seconds, call) for name, call in calls.items()}, REPEAT)
        least = {name: min(timing.seconds) for name, timing in timings.items()}
        rows += [
            {
                "table": "products modulo one number",
                "bits": bits,
                "what": name,
                "per s": size / seconds,
                "gmpy2 by this": least["gmpy2"] / seconds,
            }
            for name, seconds in least.items()
        ]
    return rows


def bench_trees(count: int, bits: int, rounds: int) -> list[Row]:
    """Batch gcd of so many keys; RuntimeError if results differ."""
    keys = [mpz(random.getrandbits(bits) | 1) for _ in range(count)]
    cores = len(os.sched_getaffinity(0))
    x = rd.from_ints(list(map(int, keys)), rd.Positional(bits), chunks=-(-count // cores)).persist()
    results: dict[str, list[int]] = {}
    with ProcessPoolExecutor(cores) as pool:
        ways: dict[str, Callable[[], Any]] = {
            "rnsdask": lambda: rd.batch_gcd(x).compute().to_ints().tolist(),
            "gmpy2, one core": lambda: divisors_by_gmpy2(keys, product_by_gmpy2(keys)),
            f"gmpy2, {cores} cores": lambda: batch_gcd_by_gmpy2(keys, pool, cores),
        }

        def measured(name: str) -> float:
            start = time.perf_counter()
            results[name] = ways[name]()
            return time.perf_counter() - start

        timings = time_in_turn({name: partial(measured, name) for name in ways}, rounds)
    if any(found != results["rnsdask"] for found in results.values()):
        raise RuntimeError("the ways differ")
    least = {name: min(timing.seconds) for name, timing in timings.items()}
    return [
        {
            "table": "batch gcd",
            "keys": count,
            "bits": bits,
            "what": name,
            "s": seconds,
            "by rnsdask's": seconds / least["rnsdask"],
        }
        for name, seconds in least.items()
    ]


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("--keys", type=int, default=20_000)
    parser.add_argument("--bits", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--products", type=int, default=2000)
    options = parser.parse_args()
    random.seed(1)
    rows = bench_trees(options.keys, options.bits, options.rounds) + bench_products(options.products)
    print_rows(rows)
    write_results(options.json, False, rows)


if __name__ == "__main__":
    main()
