"""Times linear algebra of matrices over prime fields and of integers beside FLINT's, in turn.

    python scripts/bench_linalg.py cpu            one thread
    python scripts/bench_linalg.py gpu            and FLINT on one core beside it
    python scripts/bench_linalg.py cpu --lengths 8,64 --primes 1,100 --operations det,lu
    python scripts/bench_linalg.py cpu --bits 61 --primes 1    of primes beyond 2^32, in words of 64 bits

A row is one operation of matrices of one length modulo some primes, of so many matrices that their
determinants take `--steps` multiplications and subtractions. "G steps/s" counts N^3 steps of a product, an
inverse or a characteristic polynomial, N^3 / 3 of the others. "FLINT" is FLINT's time of a matrix over ours,
of some of the matrices; it has no LU decomposition to call from Python. Then matrices of signed
integers, one or as many as `--integers` says, beside `fmpz_mat` (on two threads where we are on the CPU), one
after another: "FLINT" is its time over ours. With --json FILE writes them.
"""

import math
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))  # PYTHONSAFEPATH leaves it out

from collections.abc import Callable
from functools import partial
from typing import Any

import flint
import numpy as np
from benchmarking import (
    argument_parser,
    print_rows,
    time_in_turn,
    waited_seconds,
    wall_seconds,
    write_results,
)

import rnsdask as rd
from rnsdask.core.primes import primes_below

RUNS = {
    "cpu": ("cpu",),
    "gpu": ("gpu",),
    "tiny": ("cpu --lengths 5 --primes 1,3 --steps 1 --repeat 1 --integers 3x40",),
    "tiny-gpu": ("gpu --lengths 5 --primes 1,3 --steps 1 --repeat 1 --integers 3x40",),
}

LENGTHS = "8,16,32,64,128,256,512,1024"
PRIMES = "1,100,1000"
INTEGERS = (
    "8x32,12x32,16x32,24x32,32x32,64x32,128x32,256x32,512x32,64x1024,128x1024,"
    "4x32x1000,8x32x1000,16x32x300,32x32x100"
)
STEPS = {"cpu": 3e6, "gpu": 1e10}
MOST_WORDS = 2**28
# Of FLINT, beside all that this process may use, and beside a GPU one.
THREADS = {"cpu": 2, "gpu": 1}
FLINT_STEPS = 3e6

Operation = Callable[[Any], Any]
OPERATIONS: dict[str, tuple[Operation, Callable[[Any], Any] | None, float]] = {
    "product": (lambda x: x @ x, lambda m: m * m, 1),
    "det": (rd.linalg.det, lambda m: m.det(), 1 / 3),
    "lu": (rd.linalg.lu, None, 1 / 3),
    "solve": (
        lambda x: rd.linalg.solve(x, x[..., :1]),
        lambda m: m.solve(flint.nmod_mat(m.nrows(), 1, [1] * m.nrows(), m.modulus())),
        1 / 3,
    ),
    "inv": (rd.linalg.inv, lambda m: m.inv(), 1),
    "charpoly": (rd.linalg.charpoly, lambda m: m.charpoly(), 1),
}
"""The function that is timed, FLINT's, and its steps as a multiple of N^3."""


def stack(fields: rd.PrimeFields, count: int, length: int) -> np.ndarray:
    """Random residues (n, count, length, length)."""
    rng = np.random.default_rng(1)
    shape = (count, length, length)
    words = [rng.integers(0, p, shape, dtype=np.uint64) for p in fields.primes]
    return np.stack(words).astype(fields.word_dtype)


def of_flint(residues: np.ndarray, fields: rd.PrimeFields) -> list[Any]:
    """Some of the matrices as FLINT's, at least one."""
    count = max(1, int(FLINT_STEPS / residues.shape[-1] ** 3))
    places = [(i, b) for b in range(residues.shape[1]) for i in range(len(residues))][:count]
    shape = residues.shape[-2:]
    return [flint.nmod_mat(*shape, residues[i, b].ravel().tolist(), fields.primes[i]) for i, b in places]


def each(function: Callable[[Any], Any], matrices: list[Any]) -> None:
    for matrix in matrices:
        function(matrix)


def bench(
    kind: str,
    bits: int,
    lengths: list[int],
    primes: list[int],
    operations: list[str],
    steps: float,
    repeat: int,
) -> list[dict[str, Any]]:
    """A row for each operation, length and number of primes below a power of two."""
    rows = []
    measure = waited_seconds if kind == "gpu" else wall_seconds
    moduli = list(zip(range(max(primes)), primes_below(2**bits, 1), strict=False))
    for length in lengths:
        for n in primes:
            fields = rd.PrimeFields([p for _, p in moduli[:n]])
            count = max(1, min(int(3 * steps / length**3), MOST_WORDS // length**2) // n)
            residues = stack(fields, count, length)
            matrices = of_flint(residues, fields)
            x = rd.FieldArray(on(kind, residues), fields)
            for name in operations:
                if n * count * length**3 > 60 * steps and n > 1:
                    continue  # it takes a minute, and is as one matrix after another
                ours, flints, share = OPERATIONS[name]
                calls = {"ours": partial(measure, partial(ours, x))}
                if flints is not None:
                    calls["flint"] = partial(wall_seconds, partial(each, flints, matrices))
                timings = time_in_turn(calls, repeat)
                total, least = n * count, min(timings["ours"].seconds)
                row = {"operation": name, "length": length, "bits": bits, "primes": n, "matrices": total}
                row |= {**timings["ours"].row(), "us each": 1e6 * least / total}
                row["G steps/s"] = share * length**3 * total / least / 1e9
                if flints is not None:
                    row["FLINT"] = min(timings["flint"].seconds) / len(matrices) * total / least
                rows.append(row)
                print_rows([row])
    return rows


EXACT: dict[str, tuple[Operation, Callable[[Any], Any]]] = {
    "det": (rd.linalg.det, lambda m: m.det()),
    "rank": (rd.linalg.rank, lambda m: m.rank()),
    "solve": (
        lambda x: rd.linalg.solve(x, rd.RNSArray(x.words[..., :1] * 0 + 1, x.system)),
        lambda m: m.solve(flint.fmpz_mat(m.nrows(), 1, [1] * m.nrows())),
    ),
    "inv": (rd.linalg.inv, lambda m: m.inv()),
    "charpoly": (rd.linalg.charpoly, lambda m: m.charpoly()),
}
# Of longer ones only these are timed.
LONG = ("det", "rank", "solve")
MOST_EXACT = 32


def bench_integers(kind: str, sizes: list[tuple[int, ...]], repeat: int) -> list[dict[str, Any]]:
    """A row for each operation, length, number of bits and of matrices."""
    rows = []
    flint.ctx.threads = THREADS[kind]
    measure = waited_seconds if kind == "gpu" else wall_seconds
    for length, bits, *several in sizes:
        rng, count = np.random.default_rng(1), math.prod(several)
        texts = (rng.bytes(bits // 8) for _ in range(count * length**2))
        drawn = [int.from_bytes(text, "little") - 2 ** (bits - 1) for text in texts]
        values = np.array(drawn, dtype=object).reshape(*several, length, length)
        system = rd.RNS(rd.ModuliSet.for_bits(bits + 1), signed=True)
        x = rd.RNSArray(on(kind, system.encode(values)), system)
        matrices = [
            flint.fmpz_mat(length, length, of.ravel().tolist()) for of in values.reshape(-1, length, length)
        ]
        for name, (ours, flints) in EXACT.items():
            if (length > MOST_EXACT or several) and name not in LONG:
                continue
            calls = {
                "ours": partial(measure, partial(ours, x)),
                "flint": partial(wall_seconds, partial(each, flints, matrices)),
            }
            timings = time_in_turn(calls, repeat, budget=10)
            least = {side: min(timing.seconds) for side, timing in timings.items()}
            row = {"table": "integers", "operation": name, "length": length, "bits": bits, "matrices": count}
            row |= {**timings["ours"].row(), "FLINT ms": 1e3 * least["flint"]}
            rows.append({**row, "FLINT": least["flint"] / least["ours"]})
            print_rows(rows[-1:])
    return rows


def on(kind: str, residues: np.ndarray) -> Any:
    if kind == "cpu":
        return residues
    import cupy

    return cupy.asarray(residues)


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("kind", choices=("cpu", "gpu"))
    parser.add_argument("--lengths", default=LENGTHS)
    parser.add_argument("--primes", default=PRIMES)
    parser.add_argument("--bits", type=int, default=32, help="of the primes; 61 for words of 64 bits")
    parser.add_argument("--operations", default=",".join(OPERATIONS))
    parser.add_argument("--steps", type=float, help="of a determinant, of all matrices together")
    parser.add_argument("--integers", default=INTEGERS, help="lengths, bits and, if several, matrices")
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    lengths, primes = ([int(v) for v in text.split(",")] for text in (options.lengths, options.primes))
    steps, operations = options.steps or STEPS[options.kind], options.operations.split(",")
    sizes = [tuple(map(int, size.split("x"))) for size in options.integers.split(",")]
    rows = bench(options.kind, options.bits, lengths, primes, operations, steps, options.repeat)
    rows += bench_integers(options.kind, sizes, options.repeat)
    write_results(options.json, options.kind == "gpu", rows)


if __name__ == "__main__":
    main()
