"""Times the ways to multiply residues: each alone in a bare loop, and over arrays that do not fit a cache.

    python scripts/papers/bench_modular.py          the CPU, one thread; needs a C++ compiler (CXX, else c++)
    python scripts/papers/bench_modular.py --gpu    the GPU instead

Prints giga-products per second for a modulus of 17, of 31 and of 32 bits, and with --json FILE writes them.
The candidates are in kernels/; the product uses the normalised reciprocal, and its whole-array kernel is
timed beside them. The limit of whole arrays is 12 bytes a product at the speed of a plain read.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # PYTHONSAFEPATH leaves them out
sys.path.insert(0, str(Path(__file__).resolve().parent))

import ctypes
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np
from benchmarking import (
    Timing,
    argument_parser,
    compile_for_cpu,
    compile_for_gpu,
    print_rows,
    time_calls,
    write_results,
)

from rnsdask.backend import kernels_of
from rnsdask.core.moduli import ModuliSet

CANDIDATES = ("division", "barrett64", "montgomery", "floating_point", "normalised_reciprocal")
PRODUCT = "the product's kernel"
MODULI = {"17 bits": 65725, "31 bits": 2**31 - 1, "32 bits": 2**32 - 5}
BENCH = Path(__file__).resolve().parent / "kernels"
REPEAT = 5

# Numbers in a bare loop, which stay in the first-level cache or in registers, products of each of them, and
# numbers in the arrays.
CPU_SIZES = (2048, 2000, 2**24)
GPU_SIZES = (2**22, 256, 2**30)
TINY_SIZES = (2048, 2, 4096)

Run = Callable[[str, int, Any, Any, int], None]


def cpu_runner(folder: Path) -> Run:
    """Compile the candidates for this machine's processor."""
    functions = compile_for_cpu(BENCH / "modular_candidates.cpp", folder)

    def run(name: str, m: int, x: Any, y: Any, repeat: int) -> None:
        pointers = (ctypes.c_void_p(x.ctypes.data), ctypes.c_void_p(y.ctypes.data))
        getattr(functions, name)(
            ctypes.c_uint64(m), ctypes.c_int64(x.size), ctypes.c_int32(repeat), *pointers
        )

    return run


def gpu_runner() -> Run:
    """Compile the candidates for the current GPU."""
    import cupy

    module = compile_for_gpu(BENCH / "modular_candidates.cu")
    blocks = 8 * cupy.cuda.Device().attributes["MultiProcessorCount"]

    def run(name: str, m: int, x: Any, y: Any, repeat: int) -> None:
        arguments = (np.uint64(m), np.int64(x.size), np.int32(repeat), x, y)
        module.get_function(name)((blocks,), (256,), arguments)
        cupy.cuda.Device().synchronize()

    return run


def operands(xp: Any, m: int, count: int) -> tuple[Any, Any]:
    """Two arrays of residues, as random as a cheap generator makes them."""
    index = xp.arange(count, dtype=np.uint64)
    return tuple((index * np.uint64(f) % np.uint64(m)).astype(np.uint32) for f in (2654435761, 40503))


def check(run: Run, xp: Any, m: int) -> None:
    x, y = operands(xp, m, 4096)
    expected = (x.astype(np.uint64) * y % np.uint64(m)).astype(np.uint32)
    for name in CANDIDATES:
        result = x.copy()
        run(name, m, result, y, 1)
        assert (result == expected).all(), f"{name} is wrong for the modulus {m}"


def product_kernel(x: Any, y: Any, m: int) -> Callable[[], None]:
    """The whole-array kernel of rnsdask, which writes its results to another array."""
    moduli, x, y = ModuliSet([m]), x[None], y[None]
    out = np.empty_like(x)

    def run() -> None:
        kernels_of(x).apply("multiply", (x, y), moduli, out)
        if not isinstance(out, np.ndarray):
            out.device.synchronize()

    return run


def row(
    what: str, modulus: str, bare: tuple[Timing, int] | None, whole: tuple[Timing, int]
) -> dict[str, Any]:
    """Rates of the bare loop and of the whole array, each a timing and its number of products."""

    def rate(timed: tuple[Timing, int] | None, name: str) -> dict[str, Any]:
        if timed is None:
            return {name: None, f"{name.partition(',')[0]}, spread": None}
        timing, products = timed
        return {name: products / timing.median / 1e9, f"{name.partition(',')[0]}, spread": timing.spread}

    return {
        "reduction": what,
        "modulus": modulus,
        **rate(bare, "bare loop, G/s"),
        **rate(whole, "whole array, G/s"),
    }


def bench(run: Run, xp: Any, sizes: tuple[int, int, int]) -> list[dict[str, Any]]:
    """Giga-products a second of each candidate for each modulus."""
    loop, repeat, array = sizes
    rows = []
    for name, m in MODULI.items():
        check(run, xp, m)
        x, y = operands(xp, m, loop)
        long_x, long_y = operands(xp, m, array)
        for candidate in CANDIDATES:
            bare = time_calls(lambda c=candidate, m=m, x=x, y=y: run(c, m, x, y, repeat), REPEAT)
            whole = time_calls(lambda c=candidate, m=m, x=long_x, y=long_y: run(c, m, x, y, 1), REPEAT)
            rows.append(row(candidate, name, (bare, loop * repeat), (whole, array)))
        rows.append(row(PRODUCT, name, None, (time_calls(product_kernel(long_x, long_y, m), REPEAT), array)))
        read = time_calls(lambda x=long_x[None]: kernels_of(x).read_all(x), REPEAT)
        # A product reads two residues and writes one.
        rows.append(row("limit", name, None, (read, array // 3)))
    return rows


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("--gpu", action="store_true", help="time the GPU instead of the CPU")
    parser.add_argument("--tiny", action="store_true", help="only see that it works")
    options = parser.parse_args()
    if options.gpu:
        import cupy

        rows = bench(gpu_runner(), cupy, TINY_SIZES if options.tiny else GPU_SIZES)
    else:
        with tempfile.TemporaryDirectory() as folder:
            rows = bench(cpu_runner(Path(folder)), np, TINY_SIZES if options.tiny else CPU_SIZES)
    print_rows(rows)
    write_results(options.json, options.gpu, rows)


if __name__ == "__main__":
    main()
