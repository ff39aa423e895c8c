"""Time other ways to hold and to multiply positional numbers on the CPU, in one thread, beside ours.

Layouts: numbers whose own limbs lie side by side are brought into rows of limbs of one weight, and results
back, so that the figures are what an operation on such numbers takes here. Algorithms: products by the
schoolbook and by Karatsuba's recursion, each forced on the kernel.

    python scripts/bench_positional_variants.py
    python scripts/bench_positional_variants.py --tiny    only see that it works

With --json FILE writes the figures too. What others have measured on GPUs is listed besides.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))  # PYTHONSAFEPATH leaves it out

from collections.abc import Callable
from functools import partial
from inspect import signature
from typing import Any

import numpy as np
from bench_positional import words
from benchmarking import argument_parser, print_rows, time_in_turn, wall_seconds, write_results
from positional_figures import project_rows

from rnsdask.backend import cpu
from rnsdask.positional.arithmetic import apply
from rnsdask.positional.multiply import multiply
from rnsdask.positional.system import Positional

RUNS = {
    "cpu": ("",),
    "gpu": (),
    "tiny": ("--tiny",),
    "tiny-gpu": (),
}

BITS = (109, 131, 163, 191, 239, 256, 512, 1024, 2048, 4096, 8192)
ALGORITHMS = ("schoolbook", "karatsuba")
REPEAT = 5

Call = Callable[[], object]


def numbers_of(bits: int, count: int, seed: int) -> Any:
    """Random numbers below 2**bits."""
    rows = words(np, -(-bits // 32), count, seed)
    rows[-1] >>= np.uint32(-bits % 32)
    return rows


def transposed(matrix: Any) -> Any:
    """The same limbs, those of one number side by side, or back in rows."""
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
    if "algorithm" not in signature(cpu.positional_multiply).parameters:
        return []
    x, y = (numbers_of(bits, count, seed) for seed in (1, 2))
    out = np.empty((-(-2 * bits // 32), count), np.uint32)
    calls: dict[str, Call] = {
        name: partial(cpu.positional_multiply, x, y, None, 2 * bits, False, out, None, algorithm=name)
        for name in ALGORITHMS
    }
    return [in_turn("algorithms", bits, "exact product", count, calls)]


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("--tiny", action="store_true", help="only see that it works")
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for bits in (64,) if options.tiny else BITS:
        count = 100 if options.tiny else min(50_000, 2**26 // bits)
        rows += layout_rows(bits, count)
        rows += algorithm_rows(bits, count)
    rows = sorted(rows, key=lambda row: row["table"], reverse=True) + project_rows()
    print_rows(rows)
    write_results(options.json, False, rows)


if __name__ == "__main__":
    main()
