"""Times arithmetic, comparison, division and scans of whole arrays beside the limits of the same run.

    python scripts/bench_arith.py cpu                      arrays in host memory, one thread
    python scripts/bench_arith.py gpu --gib 2              arrays in GPU memory
    python scripts/bench_arith.py cpu --only division      one group

Prints a table for each group, and with --json FILE the same figures as JSON:

- elementwise: bytes read and written a second, and their ratio to those of a plain copy;
- checked: the time with the check for overflow over the time without it, with results that fit: factors
  with bounds, an integer, an unbounded factor by a bounded one, unbounded ones; and random ones that mostly
  overflow (`flag`);
- comparison: bytes read a second, and their ratio to those of a plain read;
- division, scan: numbers a second, beside gmpy2 doing the same with a list of numbers on one core.

Every operation is compared with Python integers on a sample before it is timed.
"""

import argparse
import heapq
import itertools
import json
import random
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gmpy2
import numpy as np
from bench_reduce import GIB, machine, moduli_set, print_table, random_on_gpu

import rnsdask as rd
from rnsdask.backend import kernels_of

SAMPLE = 16
GMPY2_NUMBERS = 2000

Call = Callable[[], Any]
Row = dict[str, Any]


class Bench:
    """Arrays of one moduli set on one processor, and how to time calls there."""

    def __init__(self, kind: str, moduli: rd.ModuliSet, gib: float, repeat: int) -> None:
        self.kind, self.moduli, self.repeat = kind, moduli, repeat
        self.count = max(128, int(gib * GIB) // (4 * len(moduli)) // 128 * 128)
        self.bytes = 4 * len(moduli) * self.count
        self._generator = random.Random(1)

    def random(self, seed: int) -> rd.RNSArray:
        """Uniform numbers without a bound."""
        if self.kind == "gpu":
            return rd.RNSArray(random_on_gpu(self.moduli, self.count), self.moduli)
        x = rd.random(self.moduli, self.count, seed=seed, chunks=self.count)
        return rd.RNSArray(x.residues.compute(), self.moduli)

    def numbers(self, bits: int, bound: bool = False, least: int = 0) -> rd.RNSArray:
        """Numbers of so many bits, some thousand of them in turn; with a bound or without."""
        some = [max(least, self._generator.getrandbits(bits)) for _ in range(min(self.count, 4096))]
        part = rd.from_ints(some, self.moduli, chunks=len(some)).residues.compute()
        whole = np.tile(part, (1, -(-self.count // len(some))))[:, : self.count]
        if self.kind == "gpu":
            import cupy

            whole = cupy.asarray(whole)
        return rd.RNSArray(np.ascontiguousarray(whole), self.moduli, bound=2**bits if bound else None)

    def seconds(self, calls: dict[str, Call]) -> dict[str, float]:
        """Median seconds of each call, taken in turn so that other load meets all alike."""
        for call in calls.values():
            call()
        times: dict[str, list[float]] = {name: [] for name in calls}
        for _ in range(self.repeat):
            for name, call in calls.items():
                self._wait()
                start = time.perf_counter()
                call()
                self._wait()
                times[name].append(time.perf_counter() - start)
        return {name: statistics.median(values) for name, values in times.items()}

    def _wait(self) -> None:
        if self.kind == "gpu":
            import cupy

            cupy.cuda.Device().synchronize()


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
    target = np.empty_like(a.residues)

    def copy() -> None:
        target[...] = a.residues

    calls: dict[str, Call] = {"copy": copy}
    for name, (operands, expected) in operations.items():
        function = getattr(rd, name)
        calls[name] = lambda f=function, o=operands: f(*o, overflow="wrap")
        check(name, calls[name](), expected, *operands)
    # Results go to an array that exists already, as the copy's do: allocation is not what is timed.
    out = np.empty_like(a.residues)
    for name, (operands, _) in operations.items():
        kernel, blocks = getattr(kernels_of(out), name), [x.residues for x in operands]
        calls[name] = lambda k=kernel, r=blocks: k(*r, bench.moduli, out)
    moved = {"copy": 2} | {name: len(operands) + 1 for name, (operands, _) in operations.items()}
    rates = {name: moved[name] * bench.bytes / s for name, s in bench.seconds(calls).items()}
    return [
        {"what": name, "n": len(bench.moduli), "gb_per_s": rate / 1e9, "copy_ratio": rate / rates["copy"]}
        for name, rate in rates.items()
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
        modes = {m: lambda m=m, f=function, o=operands: f(*o, overflow=m) for m in ("wrap", mode)}
        seconds = bench.seconds(modes)
        rows.append(
            {
                "what": what,
                "n": len(bench.moduli),
                "unchecked_ms": 1e3 * seconds["wrap"],
                "checked_ms": 1e3 * seconds[mode],
                "time_ratio": seconds[mode] / seconds["wrap"],
            }
        )
    return rows


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
    moved = {"read": 1, "two arrays": 2, "array and int": 1}
    rates = {name: moved[name] * bench.bytes / s for name, s in bench.seconds(calls).items()}
    return [
        {"what": name, "n": len(bench.moduli), "gb_per_s": rate / 1e9, "read_ratio": rate / rates["read"]}
        for name, rate in rates.items()
    ]


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
        rate = bench.count / bench.seconds({name: call})[name]
        columns = [list(map(gmpy2.mpz, x[:GMPY2_NUMBERS].to_ints())) for x in operands]
        alone = gmpy2_rate(lambda f=same, c=columns: list(map(f, *c)), columns[0], bench.repeat)
        rows.append(rates_row(name, bench, rate, alone))
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
    rows = []
    for name, (call, same) in calls.items():
        rate = bench.count / bench.seconds({name: call})[name]
        rows.append(rates_row(name, bench, rate, gmpy2_rate(same, numbers, bench.repeat)))
    return rows


def gmpy2_rate(call: Call, numbers: list[Any], repeat: int) -> float:
    """Numbers a second of a call with gmpy2's integers."""
    call()
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return len(numbers) / statistics.median(times)


def rates_row(name: str, bench: Bench, rate: float, alone: float) -> Row:
    return {
        "what": name,
        "n": len(bench.moduli),
        "million_per_s": rate / 1e6,
        "gmpy2_million_per_s": alone / 1e6,
        "ratio": rate / alone,
    }


RUN = {
    "elementwise": bench_elementwise,
    "checked": bench_checked,
    "comparison": bench_comparison,
    "division": bench_division,
    "scan": bench_scan,
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kind", choices=("gpu", "cpu"))
    parser.add_argument("--only", default=",".join(RUN), help=f"groups, of {', '.join(RUN)}")
    parser.add_argument("--sets", default="8,16,32,64,128,256", help="sizes of Table 2's sets, or e.g. 2048b")
    parser.add_argument("--gib", type=float, default=0.015625, help="size of each operand")
    parser.add_argument("--division-gib", type=float, default=0.002, help="the same for division and scans")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    groups = options.only.split(",")
    if unknown := set(groups) - set(RUN):
        parser.error(f"--only: no group {', '.join(sorted(unknown))}; the groups are {', '.join(RUN)}")
    results: dict[str, list[Row]] = {}
    for group in groups:
        gib = options.division_gib if group in ("division", "scan") else options.gib
        benches = (Bench(options.kind, moduli_set(s), gib, options.repeat) for s in options.sets.split(","))
        results[group] = [row for bench in benches for row in RUN[group](bench)]
        print(f"\n{group}")
        print_table(results[group])
    if options.json:
        text = json.dumps({"machine": machine(options.kind), "groups": results}, indent=1)
        options.json.write_text(f"{text}\n")


if __name__ == "__main__":
    main()
