"""Times the ways to multiply residues: each alone in a bare loop, and over arrays that do not fit a cache.

    python scripts/bench_modular.py            the CPU, one thread; needs a C++ compiler (CXX, else c++)
    python scripts/bench_modular.py --gpu      the GPU too

Prints giga-products per second for a modulus of 17, of 31 and of 32 bits. The candidates are in
kernels/bench; the product uses the normalised reciprocal, and its whole-array kernel is timed beside them.
"""

import argparse
import ctypes
import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from rnsdask.backend import kernels_of
from rnsdask.backend.cuda_sources import NVRTC_OPTIONS, include_directory
from rnsdask.moduli import ModuliSet

CANDIDATES = ("division", "barrett64", "montgomery", "floating_point", "normalised_reciprocal")
PRODUCT = "the product's kernel"
MODULI = {"17 bits": 65725, "31 bits": 2**31 - 1, "32 bits": 2**32 - 5}
BENCH = Path(__file__).resolve().parents[1] / "kernels" / "bench"

# Numbers in a bare loop, which stay in the first-level cache or in registers, and products of each of them.
CPU_LOOP, CPU_REPEAT = 2048, 2000
GPU_LOOP, GPU_REPEAT = 2**22, 256
CPU_ARRAY, GPU_ARRAY = 2**24, 2**30

Run = Callable[[str, int, Any, Any, int], None]


def cpu_runner(folder: str) -> Run:
    """Compile the candidates for this machine's processor."""
    library = Path(folder) / "modular_candidates.so"
    flags = ["-std=c++17", "-O3", "-march=native", "-fno-math-errno", "-shared", "-fPIC"]
    source = BENCH / "modular_candidates.cpp"
    compiler = os.environ.get("CXX", "c++")
    command = [compiler, *flags, f"-I{include_directory()}", str(source), "-o", str(library)]
    subprocess.run(command, check=True)
    functions = ctypes.CDLL(str(library))

    def run(name: str, m: int, x: Any, y: Any, repeat: int) -> None:
        pointers = (ctypes.c_void_p(x.ctypes.data), ctypes.c_void_p(y.ctypes.data))
        getattr(functions, name)(
            ctypes.c_uint64(m), ctypes.c_int64(x.size), ctypes.c_int32(repeat), *pointers
        )

    return run


def gpu_runner() -> Run:
    """Compile the candidates for the current GPU."""
    import cupy

    options = (*NVRTC_OPTIONS, f"-I{include_directory()}", f"-I{BENCH}")
    source = (BENCH / "modular_candidates.cu").read_text(encoding="utf-8")
    module = cupy.RawModule(code=source, options=options, backend="nvrtc")
    blocks = 8 * cupy.cuda.Device().attributes["MultiProcessorCount"]

    def run(name: str, m: int, x: Any, y: Any, repeat: int) -> None:
        arguments = (np.uint64(m), np.int64(x.size), np.int32(repeat), x, y)
        module.get_function(name)((blocks,), (256,), arguments)
        cupy.cuda.Device().synchronize()

    return run


def rate(function: Callable[[], None], products: int, times: int = 5) -> float:
    """Giga-products a second, of the quickest call after one that warms up."""
    function()
    seconds = []
    for _ in range(times):
        start = time.perf_counter()
        function()
        seconds.append(time.perf_counter() - start)
    return products / min(seconds) / 1e9


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
        kernels_of(x).multiply(x, y, moduli, out)
        if not isinstance(out, np.ndarray):
            out.device.synchronize()

    return run


def table(title: str, run: Run, xp: Any, loop: int, repeat: int, array: int) -> None:
    """Print one row for each candidate: the bare loop and the pass over arrays, for each modulus."""
    rows: dict[str, list[str]] = {name: [] for name in (*CANDIDATES, PRODUCT)}
    for m in MODULI.values():
        check(run, xp, m)
        x, y = operands(xp, m, loop)
        long_x, long_y = operands(xp, m, array)
        for name in CANDIDATES:
            bare = rate(lambda name=name, m=m, x=x, y=y: run(name, m, x, y, repeat), loop * repeat)
            whole = rate(lambda name=name, m=m, x=long_x, y=long_y: run(name, m, x, y, 1), array)
            rows[name].append(f"{bare:.2f} / {whole:.2f}")
        rows[PRODUCT].append(f"- / {rate(product_kernel(long_x, long_y, m), array):.2f}")
    print(f"\n{title}: giga-products per second, bare loop / whole array")
    print("| reduction | " + " | ".join(MODULI) + " |")
    print("| --- |" + " --- |" * len(MODULI))
    for name, cells in rows.items():
        print(f"| {name} | " + " | ".join(cells) + " |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--gpu", action="store_true", help="time the GPU too")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        table("CPU, one thread", cpu_runner(folder), np, CPU_LOOP, CPU_REPEAT, CPU_ARRAY)
    if arguments.gpu:
        import cupy

        table("GPU", gpu_runner(), cupy, GPU_LOOP, GPU_REPEAT, GPU_ARRAY)


if __name__ == "__main__":
    main()
