"""Times what may cost more than it seems, each thing beside its limit or its peer in the same run.

    python scripts/bench_costs.py                      the CPU
    python scripts/bench_costs.py --gpu                what runs on a GPU: one call, few numbers and many
    python scripts/bench_costs.py --only checked,text  some groups

Prints one table, and with --json FILE writes it. "ratio" is the time by that of what stands beside, so 1 is
as quick, and "asked" the ratio or the time that is asked for. The groups, of eager arrays on one thread
unless they say else:

- checked: operations of arrays that carry no bound, beside the same unchecked (overflow="wrap"). The numbers
  have less than half of M's bits, so every result fits; but nothing says so. Bounds are measured in each
  call; "again" is a call after another one has measured them;
- unbounded: max and x > 5 of such arrays, measured in each call, beside the same of arrays with a bound;
- reduction: max, min and sum beside a plain read of the residues (0.9 of its speed is a ratio of 1.11);
- conversion, division, scan: beside gmpy2 doing the same with a list of numbers; an int is as long as y, half
  as long as x;
- text: import into a store and export from it, by Dask's threads, beside a gmpy2 loop over the lines;
- lazy: calls on few numbers that are in memory, in Dask's chunks, beside a list of gmpy2's numbers;
- start: new processes, beside one that imports NumPy alone.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))  # PYTHONSAFEPATH leaves it out

import argparse
import contextlib
import io
import itertools
import operator
import random
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import gmpy2
import numpy as np
from benchmarking import (
    GIB,
    argument_parser,
    moduli_set,
    print_rows,
    time_in_turn,
    waited_seconds,
    wall_seconds,
    with_new_arrays,
    write_results,
)

import rnsdask as rd
from rnsdask.backend import kernels_of
from rnsdask.cli import main as command_line

PERIOD = 4096
GMPY2_NUMBERS = 20000  # fewer are over before their time is steady
LAZY_NUMBERS = 1000
BITS = (256, 1024, 2048, 4096)
SETS = ("8", "64", "256")

RUNS = {
    "cpu": ("--repeat 5 --budget 1",),
    "gpu": ("--gpu --sets 8,64 --bits 256,2048 --repeat 5 --budget 0.5",),
    "tiny": ("--sets 8 --bits 64 --gib 1e-6 --numbers 100 --repeat 1 --budget 0",),
    "tiny-gpu": ("--gpu --sets 8 --bits 64 --counts 200 --repeat 1 --budget 0",),
}

Call = Callable[[], Any]
Row = dict[str, Any]


@dataclass(frozen=True)
class Cost:
    """A call, and what stands beside it, which does this part of its work."""

    what: str
    call: Call
    beside: str
    same: Call
    asked: str | None = None
    part: float = 1.0


# ---- arrays ------------------------------------------------------------------------------------------------


class Numbers:
    """Makes eager arrays of one moduli set on one processor, some thousand numbers in turn."""

    def __init__(self, moduli: rd.ModuliSet, count: float, gpu: bool = False, bits: int = 0) -> None:
        self.moduli, self.count, self.gpu = moduli, max(16, int(count)), gpu
        self.bits = bits or moduli.bits - 1  # of numbers that fit
        self._generator = random.Random(1)

    def ints(self, bits: int, least: int = 0) -> list[int]:
        """Numbers of at most so many bits: the greatest and the least, which come once, and random ones."""
        some = [max(least, self._generator.getrandbits(bits)) for _ in range(min(self.count - 2, PERIOD))]
        return [2**bits - 1, least, *itertools.islice(itertools.cycle(some), self.count - 2)]

    def array(self, ints: list[int], signed: bool = False, bound: int | None = None) -> rd.RNSArray:
        """An array of these numbers; if it is signed, every other one is negated."""
        values = [-v if signed and i % 2 else v for i, v in enumerate(ints[: PERIOD + 2])]
        part = rd.from_ints(values, self.moduli, signed=signed).residues
        if self.gpu:
            import cupy

            part = cupy.asarray(part)
        whole = np.empty_like(part, shape=(len(part), self.count))
        whole[:, :2] = part[:, :2]
        for start in range(2, self.count, PERIOD):
            whole[:, start : start + PERIOD] = part[:, 2 : 2 + self.count - start]
        return rd.from_residues(whole, self.moduli, signed=signed, bound=bound, trusted=True)


def of_sets(options: argparse.Namespace) -> Iterator[Numbers]:
    for name in options.sets.split(","):
        moduli = moduli_set(name)
        counts = options.counts.split(",") if options.gpu else [options.gib * GIB / (4 * len(moduli))]
        yield from (Numbers(moduli, float(count), options.gpu) for count in counts)


def of_bits(options: argparse.Namespace) -> Iterator[Numbers]:
    for bits in map(int, options.bits.split(",")):
        counts = options.counts.split(",") if options.gpu else [options.numbers]
        moduli = rd.ModuliSet.for_bits(bits)
        yield from (Numbers(moduli, float(count), options.gpu, bits) for count in counts)


def of_few(options: argparse.Namespace) -> Iterator[Numbers]:
    yield Numbers(moduli_set("8"), min(LAZY_NUMBERS, options.numbers))


# ---- groups ------------------------------------------------------------------------------------------------


def checked(numbers: Numbers) -> Iterator[Cost]:
    half = numbers.bits // 2 - 2
    for kind in ("unsigned", "signed"):
        factors = (numbers.ints(half, least=2 ** (half - 1)) for _ in range(2))
        x, y = (numbers.array(ints, kind == "signed") for ints in factors)
        z, w = (numbers.array(numbers.ints(half - 2), kind == "signed") for _ in range(2))
        calls: dict[str, Call] = {
            "x * y": partial(with_new_arrays, rd.multiply, x, y),
            "fma(x, y, z)": partial(with_new_arrays, rd.fma, x, y, z),
            "mulsub(x, y, z, w)": partial(with_new_arrays, rd.mulsub, x, y, z, w),
            "x ** 2": partial(rd.power, x, 2),
        }
        for what, call in calls.items():
            with_check, without = (partial(call, overflow=mode) for mode in ("raise", "wrap"))
            yield Cost(f"{what}, {kind}", with_check, "unchecked", without)


def unbounded(numbers: Numbers) -> Iterator[Cost]:
    half = numbers.bits // 2
    ints = numbers.ints(half)
    x, bounded = numbers.array(ints), numbers.array(ints, bound=2**half)
    assert int(x.max()) == int(bounded.max()) == max(ints)
    greater, same = (partial(with_new_arrays, operator.gt, of, 5) for of in (x, bounded))
    yield Cost("max", partial(with_new_arrays, rd.RNSArray.max, x), "with a bound", bounded.max)
    yield Cost("x > 5", greater, "with a bound", same)


def reduction(numbers: Numbers) -> Iterator[Cost]:
    x = numbers.array(numbers.ints(numbers.bits))
    read = partial(kernels_of(x.residues).read_all, x.residues)
    asked = {1000: "<= 0.05 ms", 5_000_000: "<= 0.1 ms"} if len(numbers.moduli) == 8 else {}
    for name in ("max", "min", "sum"):
        yield Cost(name, getattr(x, name), "read", read, asked.get(x.size) if numbers.gpu else "<= 1.11")


def conversion(numbers: Numbers) -> Iterator[Cost]:
    ints, moduli = numbers.ints(numbers.bits), numbers.moduli
    x, mpz = rd.from_ints(ints, moduli), list(map(gmpy2.mpz, ints))
    assert x.to_ints().tolist() == ints
    asked = "<= 1" if numbers.bits <= 1024 else "<= 1.5"
    load = partial(rd.from_ints, ints, moduli)
    yield Cost("from ints", load, "gmpy2", lambda: list(map(gmpy2.mpz, ints)), asked)
    yield Cost("to ints", x.to_ints, "gmpy2", lambda: list(map(int, mpz)), asked)


def division(numbers: Numbers) -> Iterator[Cost]:
    ints, divisors = numbers.ints(numbers.bits), numbers.ints(numbers.bits // 2, least=1)
    x, y, d = numbers.array(ints), numbers.array(divisors), divisors[2]
    columns = [list(map(gmpy2.mpz, values[:GMPY2_NUMBERS])) for values in (ints, divisors)]
    part, repeated = len(columns[0]) / numbers.count, [columns[0], [gmpy2.mpz(d)] * len(columns[0])]
    for sign, function in (("//", operator.floordiv), ("%", operator.mod)):
        assert function(x, y)[:9].to_ints().tolist() == list(map(function, ints[:9], divisors[:9]))
        assert function(x, d)[:9].to_ints().tolist() == [function(v, d) for v in ints[:9]]
        by_int, by_array = (partial(of_lists, function, lists) for lists in (repeated, columns))
        yield Cost(f"x {sign} int", partial(function, x, d), "gmpy2", by_int, "<= 1.5", part)
        yield Cost(f"x {sign} y", partial(function, x, y), "gmpy2", by_array, "<= 1.5", part)


def of_lists(function: Callable[..., Any], columns: list[list[Any]]) -> list[Any]:
    return list(map(function, *columns))


def scan(numbers: Numbers) -> Iterator[Cost]:
    ints = numbers.ints(numbers.bits - numbers.count.bit_length())
    x, some = numbers.array(ints), list(map(gmpy2.mpz, ints[:GMPY2_NUMBERS]))
    assert x.cumsum()[:9].to_ints().tolist() == list(itertools.accumulate(ints[:9]))
    part = len(some) / numbers.count
    yield Cost("cumsum", x.cumsum, "gmpy2", lambda: list(itertools.accumulate(some)), "<= 1", part)


def text(numbers: Numbers) -> Iterator[Cost]:
    ints = numbers.ints(numbers.bits, least=1)  # gmpy2 does not read a line of 0
    mpz = list(map(gmpy2.mpz, ints))
    with tempfile.TemporaryDirectory() as folder:
        lines, back, store, moduli = (Path(folder) / name for name in ("lines", "back", "x.zarr", "moduli"))
        lines.write_text("".join(f"{rd.to_decimal(v)}\n" for v in ints))
        moduli.write_text("".join(f"{m}\n" for m in numbers.moduli))
        load = partial(command, "import", lines, store, "--moduli", moduli, "--overwrite")
        save = partial(command, "export", store, back, "--overwrite")
        load()
        save()
        assert back.read_bytes() == lines.read_bytes()
        yield Cost("import", load, "gmpy2", partial(read_lines, lines), "<= 0.5")
        yield Cost("export", save, "gmpy2", partial(write_lines, back, mpz), "<= 0.5")


def command(*arguments: Any) -> None:
    """A command in this process, without what it prints."""
    with contextlib.redirect_stdout(io.StringIO()):
        command_line([*map(str, arguments), "--no-progress"], standalone_mode=False)


def read_lines(path: Path) -> list[Any]:
    with path.open() as file:
        return [gmpy2.mpz(line) for line in file]


def write_lines(path: Path, numbers: list[Any]) -> None:
    path.write_text("\n".join(map(str, numbers)))


def lazy(numbers: Numbers) -> Iterator[Cost]:
    ints = numbers.ints(numbers.bits - 1)
    mpz = list(map(gmpy2.mpz, ints))
    for chunks, name in ((1, "1 chunk"), (8, "8 chunks")):
        x = rd.from_ints(ints, numbers.moduli, chunks=-(-len(ints) // chunks)).persist()
        asked = "<= 1 ms" if chunks == 1 else None
        calls: dict[str, tuple[Call, Call]] = {
            "max": (partial(finished, x.max), partial(max, mpz)),
            "sum": (partial(finished, x.sum), partial(sum, mpz)),
            "x + 1": (partial(finished, partial(operator.add, x, 1)), lambda: [v + 1 for v in mpz]),
        }
        for what, (call, same) in calls.items():
            yield Cost(f"{what}, {name}", call, "gmpy2", same, asked)


def finished(call: Call) -> Any:
    """Compute the result of a lazy call."""
    return call().compute()


def start(numbers: Numbers) -> Iterator[Cost]:
    with tempfile.TemporaryDirectory() as folder:
        store = str(Path(folder) / "x.zarr")
        rd.from_ints(numbers.ints(numbers.bits), numbers.moduli).to_zarr(store)
        numpy, package = (partial(process, f"import {name}") for name in ("numpy", "rnsdask"))
        greatest = partial(process, "from rnsdask.cli import main; main()", "max", store)
        yield Cost("import rnsdask", package, "import numpy", numpy, "<= 150 ms")
        yield Cost("rnsdask max", greatest, "import numpy", numpy, "<= 500 ms")


def process(program: str, *arguments: str) -> None:
    """Run Python in a new process; its own start counts too."""
    subprocess.run([sys.executable, "-P", "-c", program, *arguments], check=True, capture_output=True)


GROUPS = {
    "checked": (checked, of_sets),
    "unbounded": (unbounded, of_sets),
    "reduction": (reduction, of_sets),
    "conversion": (conversion, of_bits),
    "division": (division, of_bits),
    "scan": (scan, of_bits),
    "text": (text, of_bits),
    "lazy": (lazy, of_few),
    "start": (start, of_few),
}
ON_GPUS = ("checked", "unbounded", "reduction", "division", "scan")


def rows_of(group: str, options: argparse.Namespace) -> Iterator[Row]:
    costs, sizes = GROUPS[group]
    for numbers in sizes(options):
        for cost in costs(numbers):
            yield row_of(group, numbers, cost, options)


def row_of(group: str, numbers: Numbers, cost: Cost, options: argparse.Namespace) -> Row:
    clock = waited_seconds if options.gpu else wall_seconds
    measures = {"call": partial(clock, cost.call), "same": partial(clock, cost.same)}
    times = time_in_turn(measures, options.repeat, options.budget)
    beside = times["same"].median / cost.part
    return {
        "group": group,
        "what": cost.what,
        "n": len(numbers.moduli),
        "bits": numbers.bits,
        "numbers": numbers.count,
        "ms": 1e3 * times["call"].median,
        "beside": cost.beside,
        "beside_ms": 1e3 * beside,
        "ratio": times["call"].median / beside,
        "asked": cost.asked,
        "spread": max(timing.spread for timing in times.values()),
        "calls": len(times["call"].seconds),
    }


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("--gpu", action="store_true", help="arrays in GPU memory")
    parser.add_argument("--only", help=f"groups, of {', '.join(GROUPS)}")
    parser.add_argument("--sets", default=",".join(SETS), help="sizes of Table 2's sets, or e.g. 2048b")
    parser.add_argument("--bits", default=",".join(map(str, BITS)), help="where gmpy2 stands beside")
    parser.add_argument("--gib", type=float, default=0.03, help="size of each array, on the CPU")
    parser.add_argument("--numbers", type=int, default=20000, help="where gmpy2 stands beside, on the CPU")
    parser.add_argument("--counts", default="1000,5000000", help="numbers of each array, on a GPU")
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--budget", type=float, default=3.0, help="seconds for the calls of one timing")
    options = parser.parse_args()
    groups = options.only.split(",") if options.only else list(ON_GPUS if options.gpu else GROUPS)
    if unknown := set(groups) - set(ON_GPUS if options.gpu else GROUPS):
        parser.error(f"--only: no group {', '.join(sorted(unknown))} here")
    rows = [row for group in groups for row in rows_of(group, options)]
    print_rows(rows)
    write_results(options.json, options.gpu, rows)


if __name__ == "__main__":
    main()
