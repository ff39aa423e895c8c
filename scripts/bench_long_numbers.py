"""Times the first and later calls with few long numbers, beside gmpy2 and FLINT, in processor time.

    python scripts/bench_long_numbers.py
    python scripts/bench_long_numbers.py --only convert --counts 100,1000 --bits 24000

The groups, of arrays in memory on one thread:

- convert: numbers to residues ("from ints") and back ("to ints"), beside a remainder tree in gmpy2, or one of
  the Chinese remainder theorem, for each number in turn, whose products and inverses are known;
- extend: numbers under moduli for twice as many bits, beside both trees;
- resultant: of `X + x^2` and `1 + X x`, with X of so many bits, beside FLINT's. Of lazy arrays too.

Each row has milliseconds of the first call, of the second and of later ones, each the least of some runs.
Each run has moduli in another order, so that no table of it exists before. "ratio" is the second call by what
stands beside, "first" the first call by the second, "later" the least of the calls by what stands beside.
Garbage is not collected in between: to look through all objects of a process takes longer than such a call.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))  # PYTHONSAFEPATH leaves it out

import argparse
import gc
import random
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import dask
import flint
import gmpy2
from benchmarking import argument_parser, print_rows, write_results

import rnsdask as rd
from rnsdask.core.moduli import unchecked_set

RUNS = {
    "cpu": ("",),
    "gpu": (),
    "tiny": ("--bits 400 --counts 1,2 --repeat 1 --calls 2",),
    "tiny-gpu": (),
}

BITS = "24000,332193"
COUNTS = "1,10"
RESULTANT_BITS = 33220

Call = Callable[[], Any]
Row = dict[str, Any]


def processor_seconds(call: Call) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def turned(moduli: rd.ModuliSet, run: int) -> rd.ModuliSet:
    """Rotate the order of the moduli."""
    return unchecked_set((*moduli.moduli[run:], *moduli.moduli[:run]))


def row_of(what: str, calls_of: Callable[[int], Call], same: Call, options: Any, **facts: Any) -> Row:
    """Time some calls of each run."""
    times = []
    for run in range(1, options.repeat + 1):
        call = calls_of(run)
        times.append([processor_seconds(call) for _ in range(options.calls)])
    beside = min(processor_seconds(same) for _ in range(3 * options.repeat))
    first, second, later = (
        min(min(t[part]) for t in times) for part in (slice(1), slice(1, 2), slice(1, None))
    )
    return {
        "what": what,
        **facts,
        "first_ms": 1e3 * first,
        "second_ms": 1e3 * second,
        "later_ms": 1e3 * later,
        "beside_ms": 1e3 * beside,
        "first": first / second,
        "ratio": second / beside,
        "later": later / beside,
    }


# ---- gmpy2 -------------------------------------------------------------------------------------------------


def product_levels(values: list[int]) -> list[list[Any]]:
    levels = [list(map(gmpy2.mpz, values))]
    while len(level := levels[-1]) > 1:
        pairs = zip(level[::2], level[1::2], strict=False)
        levels.append([a * b for a, b in pairs] + level[len(level) // 2 * 2 :])
    return levels


def remainders(levels: list[list[Any]], value: Any) -> list[Any]:
    rests = [value]
    for level in reversed(levels):
        rests = [rests[k // 2] % node for k, node in enumerate(level)]
    return rests


class Crt:
    """Integers of remainders by a tree of sums."""

    def __init__(self, levels: list[list[Any]]) -> None:
        self.levels, self.product = levels, levels[-1][0]
        self.inverses = [gmpy2.invert(self.product // m, m) for m in levels[0]]

    def value(self, rests: list[Any]) -> Any:
        sums = [x * w % m for x, w, m in zip(rests, self.inverses, self.levels[0], strict=True)]
        for level in self.levels[:-1]:
            pairs = zip(sums[::2], level[1::2], sums[1::2], level[::2], strict=False)
            sums = [u * b + v * a for u, b, v, a in pairs] + sums[len(sums) // 2 * 2 :]
        return sums[0] % self.product


# ---- groups ------------------------------------------------------------------------------------------------


def numbers(options: Any) -> Iterator[tuple[rd.ModuliSet, list[int]]]:
    draw = random.Random(1)
    for bits in map(int, options.bits.split(",")):
        moduli = rd.ModuliSet.for_bits(bits)
        for count in map(int, options.counts.split(",")):
            yield moduli, [draw.getrandbits(bits - 1) for _ in range(count)]


def convert(options: Any) -> Iterator[Row]:
    for moduli, ints in numbers(options):
        facts = {"bits": moduli.bits, "n": len(moduli), "numbers": len(ints)}
        levels = product_levels(list(moduli))
        crt, mpz = Crt(levels), list(map(gmpy2.mpz, ints))
        rests = [remainders(levels, value) for value in mpz]
        assert [crt.value(rest) for rest in rests] == ints

        def load(run: int, moduli: rd.ModuliSet = moduli, ints: list[int] = ints) -> Call:
            return partial(rd.from_ints, ints, turned(moduli, run))

        def save(run: int, moduli: rd.ModuliSet = moduli, ints: list[int] = ints) -> Call:
            x = rd.from_ints(ints, turned(moduli, -run))
            assert x.residues[0].tolist() == [value % x.moduli[0] for value in ints]
            return x.to_ints

        yield row_of("from ints", load, partial(each, partial(remainders, levels), mpz), options, **facts)
        yield row_of("to ints", save, partial(each, crt.value, rests), options, **facts)


def each(function: Callable[[Any], Any], values: list[Any]) -> list[Any]:
    return [function(value) for value in values]


def extend(options: Any) -> Iterator[Row]:
    for moduli, ints in numbers(options):
        targets = rd.ModuliSet.for_bits(2 * moduli.bits, 31)
        crt, levels = Crt(product_levels(list(moduli))), product_levels(list(targets))
        rests = [remainders(crt.levels, gmpy2.mpz(value)) for value in ints]

        def same(crt: Crt = crt, levels: list[Any] = levels, rests: list[Any] = rests) -> Any:
            return [remainders(levels, crt.value(rest)) for rest in rests]

        def calls(run: int, moduli: Any = moduli, ints: list[int] = ints, targets: Any = targets) -> Call:
            x = rd.from_ints(ints, turned(moduli, run))
            return partial(x.extend, turned(targets, run))

        facts = {"bits": moduli.bits, "n": len(moduli), "numbers": len(ints)}
        yield row_of("extend", calls, same, options, **facts)


def resultant(options: Any) -> Iterator[Row]:
    bits = min(RESULTANT_BITS, int(options.bits.split(",")[-1]))
    value = random.Random(1).getrandbits(bits) | 1
    moduli = rd.ModuliSet.for_bits(bits + 1)
    f, g = [value, 0, 1], [1, value]
    same = partial(flint.fmpz_poly(f).resultant, flint.fmpz_poly(g))
    for chunks in (None, -1):

        def calls(run: int, chunks: Any = chunks) -> Call:
            x, y = (rd.from_ints(v, turned(moduli, run), chunks=chunks) for v in (f, g))
            return lambda: dask.compute(rd.poly.resultant(x, y))[0]

        assert int(calls(0)()) == 1 + value**3
        what = "resultant" if chunks is None else "resultant, lazy"
        yield row_of(what, calls, same, options, bits=bits, n=len(moduli), numbers=5)


GROUPS = {"convert": convert, "extend": extend, "resultant": resultant}


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("--only", default=",".join(GROUPS), help=f"groups, of {', '.join(GROUPS)}")
    parser.add_argument("--bits", default=BITS, help="of numbers that are converted")
    parser.add_argument("--counts", default=COUNTS, help="numbers of an array")
    parser.add_argument("--repeat", type=int, default=2, help="runs, each with tables of its own")
    parser.add_argument("--calls", type=int, default=3, help="calls of a run")
    options: argparse.Namespace = parser.parse_args()
    gc.disable()
    rows = []
    for name in options.only.split(","):
        for row in GROUPS[name](options):
            rows.append(row)
            gc.collect()
    print_rows(rows)
    write_results(options.json, False, rows)


if __name__ == "__main__":
    main()
