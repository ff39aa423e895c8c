"""Time other ways to hold and to multiply positional numbers, beside ours.

On a CPU, in one thread. Layouts: numbers whose own limbs lie side by side are brought into rows of limbs of
one weight, and results back, so that the figures are what an operation on such numbers takes here.
Algorithms: products by the schoolbook, by Karatsuba's recursion down to few digits, and as the kernel
chooses, which halves operands where that was measured to pay.

On a GPU, at the precisions of A. Carlessi and S. Kashani (EPFL, 2013), what they compare: sums modulo a
number in registers against global memory (their Figure 4.1), and schoolbook against Karatsuba products (4.2,
4.3), with the limbs of one weight side by side, and beside these, those of one number. All results are
checked against Python's integers.

    python scripts/papers/bench_positional_variants.py
    python scripts/papers/bench_positional_variants.py --gpu
    python scripts/papers/bench_positional_variants.py --tiny    only see that it works

With --json FILE writes the figures too. What others have measured on GPUs is listed besides.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # PYTHONSAFEPATH leaves them out
sys.path.insert(0, str(Path(__file__).resolve().parent))

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from bench_positional import words
from benchmarking import (
    argument_parser,
    compile_for_gpu,
    print_rows,
    time_in_turn,
    wall_seconds,
    write_results,
)
from positional_figures import project_rows

from rnsdask.backend import cpu
from rnsdask.positional.arithmetic import apply
from rnsdask.positional.multiply import multiply
from rnsdask.positional.system import Positional

BITS = (109, 131, 163, 191, 239, 256, 512, 1024, 2048, 4096, 8192)
ALGORITHMS = ("schoolbook", "karatsuba", "best")
REPEAT = 5

# On a GPU.
PROJECT_BITS = (109, 131, 163, 191, 239)
KERNELS = {
    "mod_add, registers": "add_modular_in_registers",
    "mod_add, memory": "add_modular_in_memory",
    "product, registers": "multiply_in_registers",
    "product, registers, Karatsuba": "multiply_karatsuba_in_registers",
    "product, memory": "multiply_in_memory",
}
LAYOUTS = {"limbs of one weight": 1, "limbs of one number": 0}
BLOCK = 128
CHECKED = 100

Call = Callable[[], object]


def numbers_of(bits: int, count: int, seed: int) -> Any:
    """Random numbers below 2**bits."""
    rows = words(np, -(-bits // 32), count, seed)
    rows[-1] >>= np.uint32(-bits % 32)
    return rows


def transposed(matrix: Any) -> Any:
    """Transpose limbs: each number's side by side, or back in rows."""
    out = np.empty(matrix.shape[::-1], dtype=matrix.dtype)
    cpu.transpose(matrix, out)
    return out


def in_turn(table: str, bits: int, operation: str, count: int, calls: dict[str, Call]) -> dict[str, Any]:
    """A row: nanoseconds a number of the first call, and how many times that the others take."""
    timings = time_in_turn({name: partial(wall_seconds, call) for name, call in calls.items()}, REPEAT)
    least = {name: min(timing.seconds) for name, timing in timings.items()}
    first, *others = least
    row: dict[str, Any] = {"table": table, "bits": bits, "operation": operation, "numbers": count}
    row |= {f"{first}, ns a number": 1e9 * least[first] / count}
    return row | {f"{name}, times that": least[name] / least[first] for name in others}


def layout_rows(bits: int, count: int) -> list[dict[str, Any]]:
    """Sums and products of rows of limbs, and of numbers that lie as a whole."""
    system = Positional(bits)
    x, y = (numbers_of(bits, count, seed) for seed in (1, 2))
    whole = transposed(x), transposed(y)

    def total(a: Any, b: Any) -> Any:
        return apply("add", (a, b), (system, system), system, "wrap")

    def product(a: Any, b: Any) -> Any:
        return multiply(a, b, 2 * bits, False)

    return [
        in_turn(
            "layouts",
            bits,
            name,
            count,
            {
                "rows of limbs": partial(function, x, y),
                "whole numbers": lambda f=function: transposed(f(*map(transposed, whole))),
            },
        )
        for name, function in (("add", total), ("exact product", product))
    ]


def algorithm_rows(bits: int, count: int) -> list[dict[str, Any]]:
    """Exact products by each algorithm that the kernel can be told to take."""
    x, y = (numbers_of(bits, count, seed) for seed in (1, 2))
    out = np.empty((-(-2 * bits // 32), count), np.uint32)
    calls: dict[str, Call] = {
        name: partial(cpu.positional_multiply, x, y, None, 2 * bits, False, out, None, algorithm=name)
        for name in ALGORITHMS
    }
    return [in_turn("algorithms", bits, "exact product", count, calls)]


def cpu_rows(tiny: bool) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for bits in (64,) if tiny else BITS:
        count = 100 if tiny else min(50_000, 2**26 // bits)
        rows += layout_rows(bits, count)
        rows += algorithm_rows(bits, count)
    return sorted(rows, key=lambda row: row["table"], reverse=True)


def to_words(values: list[int], limbs: int) -> np.ndarray:
    """Rows of limbs, (N, limbs)."""
    data = b"".join(value.to_bytes(4 * limbs, "little") for value in values)
    return np.frombuffer(data, dtype="<u4").reshape(-1, limbs)


def operands(bits: int, count: int) -> tuple[int, list[int], np.ndarray]:
    """A modulus, as many numbers below it as are checked, and `count` rows that repeat these."""
    rng = np.random.default_rng(bits)
    m = 2**bits - 1 - int.from_bytes(rng.bytes(bits // 16), "little")
    values = [
        0,
        1,
        m - 1,
        m - 2**31,
        *(int.from_bytes(rng.bytes(bits // 8 + 8), "little") % m for _ in range(CHECKED)),
    ]
    values = values[:CHECKED]
    rows = to_words(values, -(-bits // 32))
    return m, values, rows[np.arange(count) % CHECKED]


def kernel_row(bits: int, count: int, name: str, layout: str) -> dict[str, Any]:
    """A row for one kernel: the quickest run, numbers a second and bytes that must be moved."""
    import cupy
    from cupyx.profiler import benchmark

    limbs = -(-bits // 32)
    m, values, rows = operands(bits, count)
    is_product = name.startswith("product")
    out_limbs = 2 * limbs if is_product else limbs
    lies = (lambda rows: rows.T) if LAYOUTS[layout] else (lambda rows: rows)
    x = cupy.asarray(np.ascontiguousarray(lies(rows)))
    y = cupy.asarray(np.ascontiguousarray(lies(rows[::-1])))
    out = cupy.empty(lies(np.empty((count, out_limbs), np.uint8)).shape, dtype=cupy.uint32)
    modulus = () if is_product else (cupy.asarray(to_words([m], limbs)[0]),)
    path = Path(__file__).resolve().parent / "kernels" / "positional_layouts.cu"
    module = compile_for_gpu(path, f"-DRNS_LIMBS={limbs}", f"-DRNS_INTERLEAVED={LAYOUTS[layout]}")
    kernel = module.get_function(KERNELS[name])
    run = partial(kernel, (-(-count // BLOCK),), (BLOCK,), (x, y, *modulus, out, np.int64(count)))
    seconds = float(benchmark(run, n_repeat=REPEAT, n_warmup=1, name=name).gpu_times.min())
    found = np.ascontiguousarray(lies(out.get())[:CHECKED])
    for j, row in enumerate(found):
        a, b = values[j], values[(count - 1 - j) % CHECKED]
        if int.from_bytes(row.tobytes(), "little") != (a * b if is_product else (a + b) % m):
            raise AssertionError(f"{name} of {bits} bits, {layout}: number {j} is wrong")
    moved = 4 * count * (2 * limbs + out_limbs)
    return {
        "table": "layouts",
        "bits": bits,
        "operation": name,
        "side by side": layout,
        "registers": kernel.num_regs,
        "G numbers/s": count / seconds / 1e9,
        "TB/s": moved / seconds / 1e12,
    }


def gpu_rows(tiny: bool) -> list[dict[str, Any]]:
    count = 1000 if tiny else 2**22
    return [
        kernel_row(bits, count, name, layout)
        for bits in PROJECT_BITS
        for name in KERNELS
        for layout in LAYOUTS
    ]


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("--gpu", action="store_true", help="what is compared on a GPU")
    parser.add_argument("--tiny", action="store_true", help="only see that it works")
    options = parser.parse_args()
    rows = (gpu_rows if options.gpu else cpu_rows)(options.tiny) + project_rows()
    print_rows(rows)
    write_results(options.json, options.gpu, rows)


if __name__ == "__main__":
    main()
