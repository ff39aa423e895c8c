"""Times number-theoretic transforms of arrays of one prime field, batched, on the CPU with one thread.

    python scripts/bench_ntt.py            2**20 elements as transforms of each length
    python scripts/bench_ntt.py --tiny     only see that it works

Prints giga-butterflies a second, N/2 log2 N of them in a transform of length N, and beside it in the same run
a copy of the elements and numpy.fft of as many complex numbers: how many copies a transform takes, and how
many transforms numpy's. With --json FILE writes them.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))  # PYTHONSAFEPATH leaves it out

from functools import partial
from typing import Any

import numpy as np
from benchmarking import Copy, argument_parser, print_rows, time_in_turn, wall_seconds, write_results

from rnsdask.backend import cpu
from rnsdask.constants import transform_constants
from rnsdask.core.moduli import ModuliSet

RUNS = {
    "cpu": ("",),
    "gpu": (),
    "tiny": ("--tiny",),
    "tiny-gpu": (),  # transforms run on the CPU only
}

PRIMES = {"31 bits": 2013265921, "32 bits": 4293918721}
LENGTHS = [2**e for e in (8, 10, 12, 14, 16, 18, 20)]
ELEMENTS = 2**20
REPEAT = 9


def bench(lengths: list[int], elements: int) -> list[dict[str, Any]]:
    """A row for each prime and length."""
    rows = []
    for bits, p in PRIMES.items():
        for length in lengths:
            x = np.random.default_rng(1).integers(0, p, (1, elements), dtype=np.uint32)
            out, constants = np.empty_like(x), transform_constants(ModuliSet([p]), length, False)
            numbers = x.reshape(-1, length).astype(complex)
            calls = {
                "ntt": partial(cpu.ntt, x, constants, out),
                "copy": Copy(x),
                "numpy": partial(np.fft.fft, numbers),
            }
            timings = time_in_turn({name: partial(wall_seconds, c) for name, c in calls.items()}, REPEAT)
            butterflies = elements // 2 * (length.bit_length() - 1)
            least = {name: min(timing.seconds) for name, timing in timings.items()}
            rows.append(
                {
                    "prime": bits,
                    "length": length,
                    "transforms": elements // length,
                    **timings["ntt"].row(),
                    "G butterflies/s": butterflies / least["ntt"] / 1e9,
                    "copies": least["ntt"] / least["copy"],
                    "numpy.fft": least["numpy"] / least["ntt"],
                }
            )
    return rows


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("--tiny", action="store_true", help="only see that it works")
    options = parser.parse_args()
    rows = bench([2**8, 2**12], 2**12) if options.tiny else bench(LENGTHS, ELEMENTS)
    print_rows(rows)
    write_results(options.json, False, rows)


if __name__ == "__main__":
    main()
