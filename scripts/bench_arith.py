"""Times arithmetic, comparison, division and scans of whole arrays beside the limits of the same run.

    python scripts/bench_arith.py cpu                      arrays in host memory, one thread
    python scripts/bench_arith.py gpu --gib 2              arrays in GPU memory
    python scripts/bench_arith.py cpu --only division      one group

Prints a table for each group, and with --json FILE writes them:

- elementwise: bytes read and written a second, and their ratio to those of a plain copy. The kernels write to
  an array that exists already, as the copy does; the whole call allocates its result;
- checked: the time with the check for overflow over the time without it, with results that fit: factors
  with bounds, an integer, an unbounded factor by a bounded one, unbounded ones; and random ones that mostly
  overflow (`flag`);
- comparison: bytes read a second, and their ratio to those of a plain read;
- division, scan: numbers a second, beside gmpy2 doing the same with a list of numbers on one core.

A kernel's time on a GPU is that between CUDA events around its launch, of the copy as of the operation.
CuPy's own kernels, which look for what the check left open, are in the whole call's time only. "asked" is the
ratio that is asked for. Every operation is compared with Python integers on a sample before it is timed.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))  # PYTHONSAFEPATH leaves it out

import argparse
import heapq
import itertools
import random
from collections.abc import Callable
from functools import partial
from typing import Any

import gmpy2
import numpy as np
from benchmarking import (
    GIB,
    Copy,
    Timing,
    argument_parser,
    kernel_and_call,
    kernel_seconds,
    moduli_set,
    print_rows,
    random_on_cpu,
    random_on_gpu,
    time_calls,
    time_in_turn,
    waited_seconds,
    wall_seconds,
    with_new_arrays,
    write_results,
)

import rnsdask as rd
from rnsdask.backend import kernels_of

SAMPLE = 16
GMPY2_NUMBERS = 2000
SLOW_GROUPS = ("division", "scan")

# GiB of each operand, and of those of SLOW_GROUPS. On a GPU an addition reads and writes 3 GiB.
SIZES = {"cpu": (0.015625, 0.002), "gpu": (1.0, 0.0625)}

RUNS = {
    "cpu": ("cpu --sets 8,64,256",),
    "gpu": ("gpu --sets 8,64,256",),
    "tiny": ("cpu --sets 8 --gib 1e-6 --slow-gib 1e-6 --repeat 1 --budget 0",),
    "tiny-gpu": ("gpu --sets 8,64b --gib 0.001 --slow-gib 1e-5 --repeat 1",),
}

Call = Callable[[], Any]
Row = dict[str, Any]


class Bench:
    """Arrays of one moduli set on one processor, and how to time calls there."""

    def __init__(self, moduli: rd.ModuliSet, gib: float, options: argparse.Namespace) -> None:
        self.moduli, self.is_gpu = moduli, options.kind == "gpu"
        self.repeat, self.budget = options.repeat, options.budget
        self.count = max(128, int(gib * GIB) // (4 * len(moduli)) // 128 * 128)
        self.bytes = 4 * len(moduli) * self.count
        self._generator = random.Random(1)

    def random(self, seed: int) -> rd.RNSArray:
        """Uniform numbers without a bound."""
        make = random_on_gpu if self.is_gpu else random_on_cpu
        return rd.RNSArray(make(self.moduli, self.count, seed), rd.RNS(self.moduli))

    def numbers(self, bits: int, bound: bool = False, least: int = 0) -> rd.RNSArray:
        """Numbers of so many bits, some thousand of them in turn; with a bound or without."""
        some = [max(least, self._generator.getrandbits(bits)) for _ in range(min(self.count, 4096))]
        part = rd.from_ints(some, self.moduli).residues
        if self.is_gpu:
            import cupy

            part = cupy.asarray(part)
        whole = np.empty_like(part, shape=(len(part), self.count))
        for start in range(0, self.count, len(some)):
            whole[:, start : start + len(some)] = part[:, : self.count - start]
        return rd.RNSArray(whole, rd.RNS(self.moduli, bound=2**bits if bound else None))

    def kernels(self, call: Call, owner: Any = None) -> Callable[[], float]:
        """Return the function that times a call's kernels; on a CPU it times the whole call."""
        return partial(kernel_seconds, call, owner) if self.is_gpu else partial(wall_seconds, call)

    def whole(self, call: Call) -> Callable[[], float]:
        """Return the function that times the whole call."""
        return partial(waited_seconds if self.is_gpu else wall_seconds, call)

    def times(self, measures: dict[Any, Callable[[], float]]) -> dict[Any, Timing]:
        return time_in_turn(measures, self.repeat, self.budget)

    def row(self, what: str, **figures: Any) -> Row:
        return {"what": what, "n": len(self.moduli), "numbers": self.count, **figures}


def sample(x: Any) -> Any:
    """The first numbers of an array, as Python integers; integers stay as they are."""
    return x[:SAMPLE].to_ints().tolist() if isinstance(x, rd.RNSArray) else [x] * SAMPLE


def check(name: str, result: Any, expected: Callable[..., Any], *operands: Any) -> None:
    """Compare the first results with those of Python integers."""
    if isinstance(result, rd.RNSArray):
        values = sample(result)
    else:
        values = (result.get() if hasattr(result, "get") else result)[:SAMPLE].tolist()
    wanted = [expected(*row) for row in zip(*map(sample, operands), strict=True)]
    assert values == wanted, f"{name}: {values} instead of {wanted}"


# ---- groups ------------------------------------------------------------------------------------------------


def bench_elementwise(bench: Bench) -> list[Row]:
    a, b, c, d = (bench.random(seed) for seed in range(4))
    product = bench.moduli.product
    operations = {
        "add": ((a, b), lambda x, y: (x + y) % product),
        "subtract": ((a, b), lambda x, y: (x - y) % product),
        "multiply": ((a, b), lambda x, y: x * y % product),
        "fma": ((a, b, c), lambda x, y, z: (x * y + z) % product),
        "mulsub": ((a, b, c, d), lambda x, y, z, w: (x * y - z * w) % product),
    }
    copy, out = Copy(a.residues), np.empty_like(a.residues)
    measures = {("kernel", "copy"): bench.kernels(copy, copy), ("call", "copy"): bench.whole(copy)}
    for name, (operands, expected) in operations.items():
        call = partial(getattr(rd, name), *operands, overflow="wrap")
        check(name, call(), expected, *operands)
        kernel = partial(kernels_of(out).apply, name, [x.residues for x in operands], bench.moduli, out)
        measures["kernel", name], measures["call", name] = bench.kernels(kernel), bench.whole(call)
    moved = {"copy": 2} | {name: len(operands) + 1 for name, (operands, _) in operations.items()}
    least = ">= 0.85" if bench.is_gpu else ">= 0.5"
    return rates(bench, bench.times(measures), moved, {"add": least, "multiply": least})


def rates(bench: Bench, times: dict[Any, Timing], moved: dict[str, int], asked: dict[str, str]) -> list[Row]:
    """Rows of operations that move so many operands each, with ratios to the first one, the limit."""
    limit = next(iter(moved))

    def ratio(part: str, name: str) -> float:
        return times[part, limit].median / times[part, name].median * moved[name] / moved[limit]

    return [
        bench.row(
            name,
            **kernel_and_call(times["kernel", name], times["call", name]),
            gb_per_s=operands * bench.bytes / times["kernel", name].median / 1e9,
            kernel_ratio=ratio("kernel", name),
            call_ratio=ratio("call", name),
            asked=asked.get(name),
        )
        for name, operands in moved.items()
    ]


def bench_checked(bench: Bench) -> list[Row]:
    bits = bench.moduli.bits - 2
    large, other = bench.numbers(bits - 12), bench.numbers(bits - 12)
    small, half, full = bench.numbers(8, bound=True), bench.numbers(bits // 2 - 8), bench.random(1)
    tiny = bench.numbers(bits // 4, bound=True)
    cases: dict[str, tuple[str, tuple[Any, ...], str]] = {
        "add": ("add", (large, other), "raise"),
        "subtract": ("subtract", (full, large), "flag"),
        "add an int": ("add", (large, 1000), "raise"),
        "multiply, both bounded": ("multiply", (tiny, tiny), "raise"),
        "multiply by an int": ("multiply", (large, 1000), "raise"),
        "multiply by bounded": ("multiply", (large, small), "raise"),
        "multiply, unbounded": ("multiply", (half, half), "raise"),
        "multiply, random": ("multiply", (full, full), "flag"),
        "fma, int and bounded": ("fma", (large, 1000, tiny), "raise"),
        "fma, unbounded": ("fma", (half, half, large), "raise"),
        "mulsub, bounded": ("mulsub", (large, small, tiny, small), "flag"),
        "mulsub, unbounded": ("mulsub", (large, small, half, half), "flag"),
    }
    evaluate = {
        "add": lambda a, b: a + b,
        "subtract": lambda a, b: a - b,
        "multiply": lambda a, b: a * b,
        "fma": lambda a, b, c: a * b + c,
        "mulsub": lambda a, b, c, d: a * b - c * d,
    }
    rows = []
    for what, (name, operands, mode) in cases.items():
        function, exact = getattr(rd, name), evaluate[name]
        result = function(*operands, overflow="flag")
        check(what, result[0], lambda *x, f=exact: f(*x) % bench.moduli.product, *operands)
        check(what, result[1], lambda *x, f=exact: not 0 <= f(*x) < bench.moduli.product, *operands)
        calls = {m: partial(with_new_arrays, function, *operands, overflow=m) for m in ("wrap", mode)}
        measures = {("call", m): bench.whole(call) for m, call in calls.items()}
        if bench.is_gpu:
            measures |= {("kernel", m): bench.kernels(call) for m, call in calls.items()}
        rows.append(bench.row(what, **overhead(bench.times(measures), mode), asked="<= 1.3"))
    return rows


def overhead(times: dict[Any, Timing], mode: str) -> Row:
    """The time with the check by the time without it, of kernels if they were timed and of the whole call."""
    figures: Row = {}
    for part in dict.fromkeys(part for part, _ in times):
        unchecked, checked = times[part, "wrap"], times[part, mode]
        figures |= {
            f"unchecked_{part}_ms": 1e3 * unchecked.median,
            f"checked_{part}_ms": 1e3 * checked.median,
            f"{part}_spread": max(unchecked.spread, checked.spread),
            f"{part}_ratio": checked.median / unchecked.median,
            "calls": len(checked.seconds),
        }
    return figures


def bench_comparison(bench: Bench) -> list[Row]:
    a, b = bench.random(1), bench.random(2)
    middle = bench.moduli.product // 2
    calls: dict[str, Call] = {
        "read": lambda: kernels_of(a.residues).read_all(a.residues),
        "two arrays": lambda: a < b,
        "array and int": lambda: a < middle,
    }
    check("two arrays", calls["two arrays"](), lambda x, y: x < y, a, b)
    check("array and int", calls["array and int"](), lambda x: x < middle, a)
    measures = {("kernel", name): bench.kernels(call) for name, call in calls.items()}
    measures |= {("call", name): bench.whole(call) for name, call in calls.items()}
    moved = {"read": 1, "two arrays": 2, "array and int": 1}
    asked = dict.fromkeys(("two arrays", "array and int"), ">= 0.8")
    return rates(bench, bench.times(measures), moved, asked)


def bench_division(bench: Bench) -> list[Row]:
    bits = bench.moduli.bits - 1
    x, divisor, short = bench.numbers(bits), bench.numbers(bits // 2, least=1), bench.numbers(bits - 40)
    large = 3**21 << bits // 4
    cases: dict[str, tuple[Call, Callable[..., Any], tuple[Any, ...]]] = {
        "x // y": (lambda: x // divisor, gmpy2.f_div, (x, divisor)),
        "x // 10": (lambda: x // 10, lambda v: gmpy2.f_div(v, 10), (x,)),
        "x % 10": (lambda: x % 10, lambda v: gmpy2.f_mod(v, 10), (x,)),
        "x // large int": (lambda: x // large, lambda v: gmpy2.f_div(v, large), (x,)),
        "x >> 1": (lambda: x >> 1, lambda v: gmpy2.f_div_2exp(v, 1), (x,)),
        "x >> 100": (lambda: x >> 100, lambda v: gmpy2.f_div_2exp(v, 100), (x,)),
        "x << 20": (lambda: short << 20, lambda v: v << 20, (short,)),
    }
    rows = []
    for name, (call, same, operands) in cases.items():
        check(name, call(), lambda *v, f=same: int(f(*map(gmpy2.mpz, v))), *operands)
        columns = [list(map(gmpy2.mpz, x[:GMPY2_NUMBERS].to_ints())) for x in operands]
        rows.append(beside_gmpy2(bench, name, call, partial(of_lists, same, columns), len(columns[0])))
    return rows


def bench_scan(bench: Bench) -> list[Row]:
    x = bench.numbers(max(1, bench.moduli.bits - 1 - bench.count.bit_length()))
    first = x[: 4 * SAMPLE]
    numbers = list(map(gmpy2.mpz, x[:GMPY2_NUMBERS].to_ints()))
    ints = first.to_ints().tolist()
    assert first.cumsum().to_ints().tolist() == list(itertools.accumulate(ints))
    assert first.topk(10).tolist() == heapq.nlargest(10, ints)
    calls: dict[str, tuple[Call, Call]] = {
        "cumsum": (lambda: x.cumsum(), lambda: list(itertools.accumulate(numbers))),
        "topk(10)": (lambda: x.topk(10), lambda: heapq.nlargest(10, numbers)),
    }
    return [beside_gmpy2(bench, name, call, same, len(numbers)) for name, (call, same) in calls.items()]


def of_lists(function: Callable[..., Any], columns: list[list[Any]]) -> list[Any]:
    return list(map(function, *columns))


def beside_gmpy2(bench: Bench, name: str, call: Call, same: Call, count: int) -> Row:
    """Numbers a second of a call, and of gmpy2 for a list of `count` of them."""
    own = bench.times({name: bench.whole(call)})[name]
    alone = time_calls(same, bench.repeat, bench.budget)
    rate, gmpy2_rate = bench.count / own.median, count / alone.median
    figures = {"million_per_s": rate / 1e6, "gmpy2_million_per_s": gmpy2_rate / 1e6}
    return bench.row(name, **own.row(), **figures, ratio=rate / gmpy2_rate)


GROUPS = {
    "elementwise": bench_elementwise,
    "checked": bench_checked,
    "comparison": bench_comparison,
    "division": bench_division,
    "scan": bench_scan,
}


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("kind", choices=("gpu", "cpu"))
    parser.add_argument("--only", default=",".join(GROUPS), help=f"groups, of {', '.join(GROUPS)}")
    parser.add_argument("--sets", default="8,16,32,64,128,256", help="sizes of Table 2's sets, or e.g. 2048b")
    parser.add_argument("--gib", type=float, help="size of each operand; default 1 on a GPU, 1/64 on a CPU")
    parser.add_argument("--slow-gib", type=float, help="the same for division and scans; 1/16 and 0.002")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--budget", type=float, default=2.0, help="seconds for the calls of one timing")
    options = parser.parse_args()
    groups = options.only.split(",")
    if unknown := set(groups) - set(GROUPS):
        parser.error(f"--only: no group {', '.join(sorted(unknown))}; the groups are {', '.join(GROUPS)}")
    rows: list[Row] = []
    for group in groups:
        chosen = options.slow_gib if group in SLOW_GROUPS else options.gib
        gib = chosen or SIZES[options.kind][group in SLOW_GROUPS]
        for name in options.sets.split(","):
            rows += [{"table": group, **row} for row in GROUPS[group](Bench(moduli_set(name), gib, options))]
            if options.kind == "gpu":
                import cupy

                cupy.get_default_memory_pool().free_all_blocks()
    print_rows(rows)
    write_results(options.json, options.kind == "gpu", rows)


if __name__ == "__main__":
    main()
