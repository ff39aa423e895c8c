"""Time how positional numbers may lie and be multiplied on a GPU, at the precisions of the semester project.

A. Carlessi and S. Kashani (EPFL, 2013) compare sums modulo a number in registers against global memory (their
Figure 4.1), and schoolbook against Karatsuba products (4.2, 4.3), at 109 to 239 bits, with the limbs of one
weight side by side. Beside these, numbers whose own limbs lie side by side. All results are checked against
Python's integers.

    python scripts/positional_layouts.py
    python scripts/positional_layouts.py --tiny    only see that it works

With --json FILE writes the figures too.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))  # PYTHONSAFEPATH leaves it out

from functools import partial
from typing import Any

import numpy as np
from benchmarking import (
    ROOT,
    argument_parser,
    compile_for_gpu,
    print_rows,
    write_results,
)

BITS = (109, 131, 163, 191, 239)
KERNELS = {
    "mod_add, registers": "add_modular_in_registers",
    "mod_add, memory": "add_modular_in_memory",
    "product, registers": "multiply_in_registers",
    "product, registers, Karatsuba": "multiply_karatsuba_in_registers",
    "product, memory": "multiply_in_memory",
}
LAYOUTS = {"limbs of one weight": 1, "limbs of one number": 0}
BLOCK = 128
REPEAT = 5
CHECKED = 100


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


def measure(bits: int, count: int, name: str, layout: str) -> dict[str, Any]:
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
    path = ROOT / "kernels" / "bench" / "positional_layouts.cu"
    module = compile_for_gpu(path, f"-DRNS_LIMBS={limbs}", f"-DRNS_INTERLEAVED={LAYOUTS[layout]}")
    kernel = module.get_function(KERNELS[name])
    run = partial(kernel, (-(-count // BLOCK),), (BLOCK,), (x, y, *modulus, out, np.int64(count)))
    seconds = float(benchmark(run, n_repeat=REPEAT, n_warmup=1).gpu_times.min())
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


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("--tiny", action="store_true", help="only see that it works")
    options = parser.parse_args()
    count = 1000 if options.tiny else 2**22
    rows = [measure(bits, count, name, layout) for bits in BITS for name in KERNELS for layout in LAYOUTS]
    print_rows(rows)
    write_results(options.json, True, rows)


if __name__ == "__main__":
    main()
