"""Times products by transforms on the CPU, of polynomials and of very long integers, beside FLINT and gmpy2.

    python scripts/bench_products.py           up to 2**20 coefficients, and up to 10**9 bits
    python scripts/bench_products.py --tiny    only see that it works

Prints how many of ours a product of the peer takes, in one run and in turn. With --json FILE writes it.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))  # PYTHONSAFEPATH leaves it out

import time
from collections.abc import Callable
from functools import partial
from operator import mul
from typing import Any

import flint
import gmpy2
import numpy as np
from benchmarking import argument_parser, print_rows, time_in_turn, wall_seconds, write_results

import rnsdask as rd
from rnsdask.backend import cpu
from rnsdask.constants import transform_constants
from rnsdask.core.moduli import ModuliSet
from rnsdask.rns.convert import limbs_to_ints, to_limbs, to_residues

RUNS = {
    "cpu": ("",),
    "gpu": (),
    "tiny": ("--tiny",),
    "tiny-gpu": (),
}

PRIME = 2013265921
REPEAT = 9

# FLINT 3.6 with fft_small, compiled for such a CPU: milliseconds on one thread, quoted and not measured here.
NATIVE_FLINT = {2**16: 1.04, 2**20: 54.8}


def bench_products(sizes: list[int]) -> list[dict[str, Any]]:
    """A row for products of two polynomials of so many coefficients modulo a prime, beside python-flint's.

    The wheel of python-flint has no fft_small; "native FLINT" is how long that takes in the units of ours.
    """
    rows, moduli = [], ModuliSet([PRIME])
    for size in sizes:
        x, y = (random_run(PRIME, size, seed) for seed in (1, 2))
        constants = [transform_constants(moduli, 2 * size, direction) for direction in (False, True)]
        theirs = [flint.nmod_poly(a[0, :size].tolist(), PRIME) for a in (x, y)]
        calls = {
            "ours": partial(cpu.cyclic_products, x, y, *constants, np.empty_like(x)),
            "flint": partial(mul, *theirs),
        }
        timings = time_in_turn({name: partial(wall_seconds, c) for name, c in calls.items()}, REPEAT)
        least = {name: min(timing.seconds) for name, timing in timings.items()}
        row = {"table": "products of polynomials modulo a prime of 31 bits", "coefficients": size}
        row |= timings["ours"].row()
        row["G butterflies/s"] = 3 * size * (2 * size).bit_length() / least["ours"] / 1e9
        row["python-flint"] = least["flint"] / least["ours"]
        if size in NATIVE_FLINT:
            row["native FLINT"] = NATIVE_FLINT[size] / 1e3 / least["ours"]
        rows.append(row)
    return rows


def random_run(p: int, size: int, seed: int) -> np.ndarray:
    """Residues of `size` coefficients and as many zeros, (1, 2 size)."""
    run = np.zeros((1, 2 * size), dtype=np.uint32)
    run[0, :size] = np.random.default_rng(seed).integers(0, p, size, dtype=np.uint32)
    return run


def bench_integer_polynomials(sizes: list[int], bits: int) -> list[dict[str, Any]]:
    """A row for products of two polynomials with so many coefficients of `bits` bits, beside python-flint's.

    Ours are limbs that become residues, products modulo each prime, and limbs again.
    """
    rows = []
    for size in sizes:
        moduli = ModuliSet.ntt_primes(2 * bits + size.bit_length(), 2 * size)
        constants = [transform_constants(moduli, 2 * size, direction) for direction in (False, True)]
        rng = np.random.default_rng(1)
        limbs = [rng.integers(0, 2**32, (size, bits // 32), dtype=np.uint32) for _ in range(2)]
        theirs = [flint.fmpz_poly(limbs_to_ints(a).tolist()) for a in limbs]

        def product(limbs: Any = limbs, moduli: Any = moduli, size: int = size, by: Any = constants) -> Any:
            runs = np.zeros((2, len(moduli), 2 * size), dtype=np.uint32)
            for run, digits in zip(runs, limbs, strict=True):
                run[:, :size] = to_residues(digits, moduli)
            out = np.empty_like(runs[0])
            cpu.cyclic_products(*runs, *by, out)
            return to_limbs(out, moduli)

        calls = {"ours": product, "flint": partial(mul, *theirs)}
        timings = time_in_turn({name: partial(wall_seconds, c) for name, c in calls.items()}, REPEAT, 10)
        least = {name: min(timing.seconds) for name, timing in timings.items()}
        row = {"table": f"products of polynomials with coefficients of {bits} bits", "coefficients": size}
        row |= {"primes": len(moduli), **timings["ours"].row()}
        rows.append(row | {"python-flint": least["flint"] / least["ours"]})
    return rows


def bench_long_primes(sizes: list[int]) -> list[dict[str, Any]]:
    """Rows for polynomials of so many coefficients modulo a prime of 61 bits, beside python-flint's."""
    rows, p = [], 2**61 - 1
    for size in sizes:
        x, y = (rd.random(rd.PrimeFields([p]), (size,), seed=seed) for seed in (1, 2))
        u, v = (flint.nmod_poly(a.words[0].tolist(), p) for a in (x, y))
        square, theirs = rd.convolve(x, x), u * u
        operations = {
            "product": (partial(rd.convolve, x, y), partial(mul, u, v)),
            "divmod": (partial(rd.poly.divmod, square, y), partial(divmod, theirs, v)),
            "gcd": (partial(rd.poly.gcd, x, y), partial(u.gcd, v)),
            "resultant": (partial(rd.poly.resultant, x, y), partial(u.resultant, v)),
        }
        for name, sides in operations.items():
            calls = dict(zip(("ours", "flint"), sides, strict=True))
            busy = time_in_turn({side: partial(processor_seconds, c) for side, c in calls.items()}, 3)
            least = {side: min(timing.seconds) for side, timing in busy.items()}
            row = {"table": "polynomials modulo a prime of 61 bits", "operation": name, "coefficients": size}
            rows.append({**row, **busy["ours"].row(), "python-flint": least["flint"] / least["ours"]})
    return rows


def bench_integers(lengths: list[int]) -> list[dict[str, Any]]:
    """A row for products of two integers of so many bits by rd.long_multiply, beside GMP's.

    The ratio of the processors' time is that of one thread.
    """
    rows = []
    for bits in lengths:
        state = gmpy2.random_state(bits)
        x, y = (gmpy2.mpz_urandomb(state, bits) for _ in range(2))
        calls = {"ours": partial(rd.long_multiply, x, y), "gmpy2": partial(mul, x, y)}
        wall = time_in_turn({name: partial(wall_seconds, c) for name, c in calls.items()}, REPEAT, 10)
        busy = time_in_turn({name: partial(processor_seconds, c) for name, c in calls.items()}, REPEAT, 10)
        rows.append(
            {
                "table": "products of integers",
                "bits": bits,
                **wall["ours"].row(),
                "gmpy2": min(wall["gmpy2"].seconds) / min(wall["ours"].seconds),
                "gmpy2, processors' time": min(busy["gmpy2"].seconds) / min(busy["ours"].seconds),
            }
        )
    return rows


def processor_seconds(function: Callable[[], Any]) -> float:
    start = time.process_time()
    function()
    return time.process_time() - start


def bench(tiny: bool) -> list[dict[str, Any]]:
    """The rows of all products."""
    if tiny:
        rows = bench_products([2**6]) + bench_long_primes([2**6])
        return rows + bench_integer_polynomials([2**6], 64) + bench_integers([2**17])
    rows = bench_products([2**e for e in (8, 12, 16, 20)])
    rows += bench_long_primes([2**e for e in (8, 10, 12, 14)])
    rows += bench_integer_polynomials([2**12, 2**16], 1024)
    return rows + bench_integers([10**e for e in (6, 7, 8, 9)])


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("--tiny", action="store_true", help="only see that it works")
    options = parser.parse_args()
    rows = bench(options.tiny)
    print_rows(rows)
    write_results(options.json, False, rows)


if __name__ == "__main__":
    main()
