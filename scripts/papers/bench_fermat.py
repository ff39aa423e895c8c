"""Times Fermat fields: sums and products by powers of the radix, and transforms beside small primes' ones.

    python scripts/papers/bench_fermat.py            the CPU, one thread; needs a C++ compiler (CXX, else c++)
    python scripts/papers/bench_fermat.py --gpu      the GPU, and there the other layout of digits too

Repeats two experiments of L. Chen, S. Covanov, D. Mohajerani, M. Moreno Maza, "Big prime field FFT on the
GPU" (2017), and shows their figures: GPU ones of a GeForce GTX 760M, CPU ones of three processors, from - to.

The first is element-wise, x + y and x r^5; "of copy" is the speed of their bytes by that of a copy's in the
same run; on a GPU times are of calls in a row. Where the layout is "by digit", the package's, the same digit
of all numbers lies together; "by number" all digits of a number do.

The second is a transform of N = K^e numbers, K = 2 k, modulo p = r^k + 1, and what does the same by the
Chinese remainder theorem: N numbers modulo the fewest primes below 2^31 whose product has as many bits as p,
transformed, and then converted to mixed radix or to limbs. "gain" is the time of the small primes with mixed
radix by that of p. On a GPU times are of kernels, "call" is the whole call with its synchronisation.
The small primes' transforms are the package's; "Cooley-Tukey", the same with stored powers, and "Stockham"
are the plain ones of small_prime_ffts.py, which the paper compares with. All of them are checked
against the package's before they are timed.

With --json FILE writes them.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # PYTHONSAFEPATH leaves them out
sys.path.insert(0, str(Path(__file__).resolve().parent))

import tempfile
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from benchmarking import (
    Copy,
    argument_parser,
    compile_for_gpu,
    kernel_seconds,
    print_rows,
    time_in_turn,
    waited_seconds,
    wall_seconds,
    write_results,
)
from small_prime_ffts import VARIANTS, CpuTransforms, GpuTransforms

import rnsdask as rd
from rnsdask.backend import kernels_of, to_backend
from rnsdask.backend.cuda.layout import field_options
from rnsdask.constants import mixed_radix_constants, reverse_constants

# P3 and P4, and the fields of 32-bit digits with about as many bits.
LAYOUT_FIELDS = ("P3", "P4", "F449")
TRANSFORM_FIELDS = ("P3", "F449", "F481", "P4", "F851", "F1024")
SHIFT = 5
SEED_COUNT = 2**17
REPEAT = 7
IN_A_ROW = 20
SECONDS = 20.0

# Of N = 2^17 numbers, in milliseconds, by operation and layout; the field is not said.
SEED_LAYOUTS = {
    ("x + y", "by number"): 2.395,
    ("x + y", "by digit"): 0.504,
    ("x r^5", "by number"): 3.331,
    ("x r^5", "by digit"): 0.380,
}

# By field, processor and e: modulo p, and modulo small primes with their recombination, in milliseconds.
SEED_TRANSFORMS = {
    ("P3", "gpu"): {
        2: ("0.03-0.05", "2.73-12.92"),
        3: ("0.88-1.24", "6.27-15.35"),
        4: ("17.4-26.1", "15.6-50.5"),
    },
    ("P4", "gpu"): {2: ("0.27-0.37", "9.33-27.2"), 3: ("14.8-20.8", "23.4-63.0"), 4: ("695-971", "437-1773")},
    ("P3", "cpu"): {2: ("0.73-4.13", "2.51-4.06"), 3: ("20.0-35.1", "14.2-23.2"), 4: ("506-750", "233-372")},
    ("P4", "cpu"): {
        2: ("8.00-12.9", "12.0-14.9"),
        3: ("396-692", "233-384"),
        4: ("22992-33351", "7574-11304"),
    },
}


def words_of(field: rd.FermatField, count: int, gpu: bool, seed: int = 1) -> Any:
    """Random digits of numbers."""
    shape = field.digits, count
    digits = np.random.default_rng(seed).integers(0, field.radix, shape, dtype=np.uint64)
    return to_backend(digits.astype(field.word_dtype), "cuda" if gpu else "cpu")


# ---- layouts -----------------------------------------------------------------------------------------------


def layout_rows(field_name: str, count: int, gpu: bool) -> list[dict[str, Any]]:
    """A row for each operation and layout."""
    field = rd.FermatField.named(field_name)
    x, y = (words_of(field, count, gpu, seed) for seed in (1, 2))
    out, kernels, constants = np.empty_like(x), kernels_of(x), field.constants
    calls: dict[tuple[str, str], Callable[[], Any]] = {
        ("x + y", "by digit"): partial(kernels.fermat_apply, "add", (x, y), constants, out),
        ("x r^5", "by digit"): partial(kernels.fermat_multiply_by_root, x, SHIFT, constants, out),
    }
    if gpu:
        calls |= calls_by_number(field, x, y, out)
    copy = Copy(x)
    measure = event_seconds if gpu else wall_seconds
    timings = time_in_turn(
        {name: partial(measure, call) for name, call in (calls | {"copy": copy}).items()}, REPEAT
    )
    least = {name: min(timing.seconds) for name, timing in timings.items()}
    rows = []
    for (operation, layout), arrays in zip(calls, (3, 2) * 2, strict=False):
        key = operation, layout
        rows.append(
            {
                "table": "element-wise",
                "field": field_name,
                "N": count,
                "operation": operation,
                "layout": layout,
                **timings[key].row(),
                "of copy": arrays / 2 * least["copy"] / least[key],
                "seed ms": SEED_LAYOUTS[key] if gpu and count == SEED_COUNT else None,
            }
        )
    return rows


def calls_by_number(
    field: rd.FermatField, x: Any, y: Any, out: Any
) -> dict[tuple[str, str], Callable[[], Any]]:
    """Operations on numbers whose digits lie side by side."""
    from rnsdask.backend.cuda.launching import BLOCKS_PER_PROCESSOR, processors
    from rnsdask.backend.cuda.layout import BLOCK

    path = Path(__file__).resolve().parent / "kernels" / "fermat_layouts.cu"
    module = compile_for_gpu(path, *field_options(field.constants))
    add, root = (module.get_function(f"{name}_by_number") for name in ("add", "multiply_by_root"))
    count = np.int64(x.shape[1])
    grid = (min(-(-int(count) // BLOCK), BLOCKS_PER_PROCESSOR * processors(0)),), (BLOCK,)
    # The arrays hold random digits: in the other layout they are random numbers too.
    return {
        ("x + y", "by number"): lambda: add(*grid, (x, y, out, count)),
        ("x r^5", "by number"): lambda: root(*grid, (x, np.int32(SHIFT), out, count)),
    }


def event_seconds(function: Callable[[], Any]) -> float:
    """Seconds of a call on the GPU: of several in a row, so that it works while the next are asked for."""
    import cupy

    first, last = cupy.cuda.Event(), cupy.cuda.Event()
    first.record()
    for _ in range(IN_A_ROW):
        function()
    last.record()
    last.synchronize()
    return float(cupy.cuda.get_elapsed_time(first, last)) / 1e3 / IN_A_ROW


# ---- transforms --------------------------------------------------------------------------------------------


def transform_row(field_name: str, e: int, plain: CpuTransforms | GpuTransforms) -> dict[str, Any]:
    """Transforms of N = K^e numbers modulo p and modulo small primes, on the processor of `plain`."""
    gpu = isinstance(plain, GpuTransforms)
    field = rd.FermatField.named(field_name)
    length = (2 * field.digits) ** e
    x = rd.FieldArray(words_of(field, length, gpu), field)
    measure = kernel_seconds if gpu else wall_seconds
    measures = {"big": partial(measure, partial(rd.ntt, x))}
    if gpu:
        measures["call"] = partial(waited_seconds, partial(rd.ntt, x))
    primes = small_primes(field, length)
    if primes is not None:
        residues = random_residues(primes, length, gpu)
        small, kernels = rd.FieldArray(residues, rd.PrimeFields(primes)), kernels_of(residues)
        mixed_radix, limbs = mixed_radix_constants(primes), reverse_constants(primes)
        measures |= {
            "ntt": partial(measure, partial(rd.ntt, small)),
            "mrc": partial(measure, partial(kernels.mixed_radix_digits, residues, mixed_radix)),
            "crt": partial(measure, partial(kernels.residues_to_limbs, residues, limbs)),
        }
        measures |= plain_measures(plain, small, primes)
    timings = time_in_turn(measures, REPEAT, SECONDS)
    ms = {name: 1e3 * min(timing.seconds) for name, timing in timings.items()}
    seed_big, seed_small = SEED_TRANSFORMS.get((field_name, "gpu" if gpu else "cpu"), {}).get(e, (None, None))
    return {
        "table": "transforms",
        "field": field_name,
        "bits": field.bits,
        "e": e,
        "N": length,
        "p ms": ms["big"],
        "call ms": ms.get("call"),
        "spread": timings["big"].spread,
        "ns a number": 1e6 * ms["big"] / length,
        "primes": primes and len(primes),
        "primes ms": ms.get("ntt"),
        "mixed radix ms": ms.get("mrc"),
        "limbs ms": ms.get("crt"),
        **{f"{name} ms": ms.get(name) for name in VARIANTS},
        "gain": primes and (ms["ntt"] + ms["mrc"]) / ms["big"],
        "seed p ms": seed_big,
        "seed primes ms": seed_small,
    }


def plain_measures(
    plain: CpuTransforms | GpuTransforms, x: rd.FieldArray, primes: rd.ModuliSet
) -> dict[str, Callable[[], float]]:
    """The plain transforms of x, which must be what the package's is."""
    calls = plain.calls(x.words, primes)
    expected = rd.ntt(x).words
    for name, call in calls.items():
        assert (call() == expected).all(), f"{name} is wrong for N = {len(x)}"
    measure = partial(kernel_seconds, owner=plain) if isinstance(plain, GpuTransforms) else wall_seconds
    return {name: partial(measure, call) for name, call in calls.items()}


def small_primes(field: rd.FermatField, length: int) -> rd.ModuliSet | None:
    """Primes whose product has the bits of p; None if there are too few for transforms of the length."""
    try:
        return rd.ModuliSet.ntt_primes(field.bits, length)
    except ValueError:
        return None


def random_residues(primes: rd.ModuliSet, count: int, gpu: bool) -> Any:
    bounds = np.array(list(primes), dtype=np.uint64)[:, None]
    residues = np.random.default_rng(1).integers(0, bounds, (len(primes), count), dtype=np.uint64)
    return to_backend(residues.astype(np.uint32), "cuda" if gpu else "cpu")


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("--gpu", action="store_true")
    parser.add_argument("--tiny", action="store_true", help="only see that it works")
    options = parser.parse_args()
    counts = [2**10] if options.tiny else [SEED_COUNT, 2**22 if options.gpu else 2**19]
    most = 2**14 if options.tiny else 2**29 if options.gpu else 2**27  # bytes of the numbers
    rows = [row for f in LAYOUT_FIELDS for count in counts for row in layout_rows(f, count, options.gpu)]
    with tempfile.TemporaryDirectory() as folder:
        plain = GpuTransforms() if options.gpu else CpuTransforms(Path(folder))
    for name in TRANSFORM_FIELDS[:1] if options.tiny else TRANSFORM_FIELDS:
        field = rd.FermatField.named(name)
        size = field.digits * field.word_dtype.itemsize
        fitting = (e for e in range(2, 6) if (2 * field.digits) ** e * size <= most)
        rows += [transform_row(name, e, plain) for e in fitting]
    print_rows(rows)
    write_results(options.json, options.gpu, rows)


if __name__ == "__main__":
    main()
