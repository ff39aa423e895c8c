"""Times number-theoretic transforms of arrays of one prime field, batched, on one CPU thread or a GPU.

    python scripts/bench_ntt.py            2**20 elements as transforms of each length
    python scripts/bench_ntt.py --gpu      2**30 elements, and cyclic products of them; fewer if memory lacks
    python scripts/bench_ntt.py --tiny     only see that it works

On the CPU it prints giga-butterflies a second, N/2 log2 N of them in a transform of length N, and beside it
in the same run a copy of the elements and numpy.fft of as many complex numbers: how many copies a transform
takes, and how many transforms numpy's. On a GPU it prints giga-elements a second, of both operands where
they are multiplied, and as a ratio to those of a copy; "cuFFT" is that ratio of its transforms of as many
bytes of complex numbers of 8 bytes, "asked" the least ratio that is asked for. With --json FILE writes them.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))  # PYTHONSAFEPATH leaves it out

from functools import partial
from typing import Any

import numpy as np
from benchmarking import (
    Copy,
    argument_parser,
    print_rows,
    random_on_cpu,
    random_on_gpu,
    time_in_turn,
    waited_seconds,
    wall_seconds,
    write_results,
)

import rnsdask as rd
from rnsdask.backend import cpu
from rnsdask.constants import transform_constants, twists
from rnsdask.core.primes import primes_below

PRIMES = {
    "31 bits": 2013265921,
    "32 bits": 4293918721,
    **{f"{bits} bits": next(primes_below(2**bits, 2**26)) for bits in (50, 60, 64)},
}
LENGTHS = [2**e for e in (8, 10, 12, 14, 16, 18, 20)]
ELEMENTS = 2**20
REPEAT = 9

GPU_LENGTHS = [2**e for e in range(8, 27, 2)]
GPU_ELEMENTS = 2**30
GPU_REPEAT = 5

# Elements a second for each of a copy's, of transforms.
ASKED = {
    "31 bits": {
        2**8: 0.75,
        2**10: 0.66,
        2**12: 0.57,
        2**14: 0.72,
        2**16: 0.58,
        2**18: 0.5,
        2**20: 0.48,
        2**22: 0.4,
        2**24: 0.38,
    },
    "60 bits": {2**12: 0.5, 2**14: 0.4, 2**16: 0.33, 2**20: 0.25},
}


def bench(lengths: list[int], elements: int) -> list[dict[str, Any]]:
    """A row for each prime and length."""
    rows = []
    for bits, p in PRIMES.items():
        fields = rd.PrimeFields([p])
        x = random_on_cpu(fields.moduli, elements, dtype=fields.word_dtype)
        for length in lengths:
            out, constants = np.empty_like(x), transform_constants(fields.moduli, length, False)
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


def bench_gpu(lengths: list[int], elements: int) -> list[dict[str, Any]]:
    """A row for each prime, operation and length."""
    import cupy
    from cupyx.scipy.fft import get_fft_plan

    from rnsdask.backend.cuda import kernels as cuda

    while 16 * elements > cupy.cuda.runtime.memGetInfo()[0]:
        elements //= 2
    rows = []
    for bits, p in PRIMES.items():
        fields = rd.PrimeFields([p])
        moduli, is_wide = fields.moduli, fields.word_dtype == np.uint64
        x = random_on_gpu(moduli, elements // 2 if is_wide else elements, dtype=fields.word_dtype)
        out = cupy.empty_like(x)
        half = x.size // 2
        for length in lengths:
            if (p - 1) % length:
                continue
            forward, inverse = (transform_constants(moduli, length, back) for back in (False, True))
            arguments = x[:, :half], x[:, half:], forward, inverse, out[:, :half]
            numbers, spectra = (words.view(cupy.complex64).reshape(-1, length) for words in (x, out))
            plan = get_fft_plan(numbers, axes=1)
            ours = {"ntt": partial(cuda.ntt, x, forward, out)}
            if (p - 1) % (2 * length) == 0:
                psi = twists(moduli, length, False)
                ours["negacyclic"] = partial(cuda.ntt, x, forward, out, twists=psi, is_reversed=True)
            if not is_wide:
                ours["cyclic product"] = partial(cuda.cyclic_products, *arguments)
            calls = {
                "copy": partial(out.data.copy_from_device, x.data, x.nbytes),
                "cuFFT": partial(plan.fft, numbers, spectra, cupy.cuda.cufft.CUFFT_FORWARD),
                **ours,
            }
            timings = time_in_turn(
                {name: partial(waited_seconds, c) for name, c in calls.items()}, GPU_REPEAT
            )
            copy = min(timings["copy"].seconds)
            for name in ours:
                seconds = min(timings[name].seconds)
                rows.append(
                    {
                        "prime": bits,
                        "operation": name,
                        "length": length,
                        "elements": x.size,
                        **timings[name].row(),
                        "G elements/s": x.size / seconds / 1e9,
                        "of copy": copy / seconds,
                        "cuFFT": copy / min(timings["cuFFT"].seconds) if name == "ntt" else None,
                        "asked": ASKED.get(bits, {}).get(length) if name == "ntt" else None,
                    }
                )
    return rows


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("--tiny", action="store_true", help="only see that it works")
    parser.add_argument("--gpu", action="store_true", help="on a GPU")
    options = parser.parse_args()
    if options.gpu:
        rows = bench_gpu([2**8, 2**16], 2**18) if options.tiny else bench_gpu(GPU_LENGTHS, GPU_ELEMENTS)
    else:
        rows = bench([2**8, 2**12], 2**12) if options.tiny else bench(LENGTHS, ELEMENTS)
    print_rows(rows)
    write_results(options.json, options.gpu, rows)


if __name__ == "__main__":
    main()
