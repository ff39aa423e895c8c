"""Times exact convolution, from arrays of numbers to an array of numbers, beside python-flint's polynomials.

    python scripts/bench_convolve.py            on the CPU with one thread
    python scripts/bench_convolve.py --gpu      arrays on a GPU; FLINT on the CPU
    python scripts/bench_convolve.py --tiny     only see that it works

A row is a product of two polynomials, or a batch of them, with coefficients of so many bits, under primes
that have the transforms ("ntt"), under the fewest moduli of 32 bits ("default"), under these without bounds
of the operands, which are then measured and the results' range checked ("no bounds"), or modulo one prime
("field"). "flint" is how many times as long python-flint takes for the same products, of fmpz_poly or
nmod_poly, in the same run. Its wheel has no `fft_small`, by which native FLINT does such products several
times as quickly. With --json FILE writes the rows.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))  # PYTHONSAFEPATH leaves it out

import random
from collections.abc import Callable
from functools import partial
from typing import Any

import flint
import numpy as np
from benchmarking import (
    argument_parser,
    print_rows,
    time_in_turn,
    waited_seconds,
    wall_seconds,
    write_results,
)

import rnsdask as rd
from rnsdask.backend import to_backend

# Polynomials in a batch, coefficients of both operands, their bits.
SIZES = [
    (1, 2**16, 2**16, 1024),
    (1, 2**12, 2**12, 1024),
    (1, 2**16, 2**16, 60),
    (1, 2**18, 2**6, 60),
    (2**10, 2**7, 2**7, 60),
]
PRIME = 2**31 - 1
REPEAT = 5
BUDGET = 20  # seconds for a size


def systems(count: int, length: int, bits: int) -> dict[str, tuple[Any, int | None]]:
    """Number systems and bounds of the operands, by name."""
    wanted, bound = 2 * bits + count.bit_length() + 1, 2**bits - 1
    default = rd.ModuliSet.for_bits(wanted)
    return {
        "ntt": (rd.ModuliSet.ntt_primes(wanted, length), bound),
        "default": (default, bound),
        "no bounds": (default, None),
        "field": (rd.PrimeFields([PRIME]), None),
    }


def array_of(values: list[list[int]], system: Any, bound: int | None, backend: str) -> Any:
    """The numbers as an eager array on a processor."""
    array = rd.from_ints(np.array(values, dtype=object), system)
    words = to_backend(array.words, backend)
    known = array.system if isinstance(array, rd.FieldArray) else array.system.with_bound(bound)
    return type(array)(words, known)


def products(left: list[Any], right: list[Any]) -> list[Any]:
    return [f * g for f, g in zip(left, right, strict=True)]


def check(found: Any, expected: list[Any]) -> None:
    """Compare some coefficients of the last product."""
    line, product = found[-1], expected[-1]
    for k in {0, 1, found.shape[-1] // 3, found.shape[-1] - 1}:
        assert int(line[k]) == int(product[k]), k


def bench(sizes: list[tuple[int, int, int, int]], gpu: bool) -> list[dict[str, Any]]:
    """A row for each size and system."""
    generator, rows = random.Random(1), []
    clock: Callable[..., float] = waited_seconds if gpu else wall_seconds
    for batch, count, other, bits in sizes:
        a, b = (
            [[generator.getrandbits(bits) for _ in range(length)] for _ in range(batch)]
            for length in (count, other)
        )
        length = 1 << (count + other - 2).bit_length()
        calls: dict[str, Any] = {}
        for name, (system, bound) in systems(other, length, bits).items():
            x, y = (array_of(v, system, bound, "cuda" if gpu else "cpu") for v in (a, b))
            is_field = name == "field"
            poly = partial(flint.nmod_poly, mod=PRIME) if is_field else flint.fmpz_poly
            left, right = (
                [poly([v % PRIME for v in line] if is_field else line) for line in v] for v in (a, b)
            )
            peer = "nmod_poly" if is_field else "fmpz_poly"
            calls[name] = partial(clock, partial(rd.convolve, x, y))
            calls[peer] = partial(wall_seconds, partial(products, left, right))
            check(rd.convolve(x, y), products(left, right))
        timings = time_in_turn(calls, REPEAT, BUDGET)
        least = {name: min(timing.seconds) for name, timing in timings.items()}
        rows += [
            {
                "batch": batch,
                "coefficients": f"{count} x {other}",
                "bits": PRIME.bit_length() if name == "field" else bits,
                "moduli": name,
                **timings[name].row(),
                "flint": least["nmod_poly" if name == "field" else "fmpz_poly"] / least[name],
            }
            for name in ("ntt", "default", "no bounds", "field")
        ]
    return rows


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("--gpu", action="store_true", help="arrays on a GPU")
    parser.add_argument("--tiny", action="store_true", help="only see that it works")
    options = parser.parse_args()
    rows = bench([(1, 2**8, 2**7, 100), (3, 2**5, 2**5, 60)] if options.tiny else SIZES, options.gpu)
    print_rows(rows)
    write_results(options.json, options.gpu, rows)


if __name__ == "__main__":
    main()
