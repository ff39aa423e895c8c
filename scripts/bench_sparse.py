"""Times sparse matrices modulo primes: products beside SciPy's, and solutions, ranks and determinants.

    python scripts/bench_sparse.py                                  10,000 and 100,000 rows, 10 and 40 entries
    python scripts/bench_sparse.py --rows 1000000 --entries 10      one size
    python scripts/bench_sparse.py --gpu

SciPy multiplies the same matrix, as int64, with as many vectors of 64-bit integers below one prime; it does
not reduce what it gets, which is compared modulo the prime. Both use one core. Times are the least of several
calls in turn. With --json FILE writes the rows.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))  # PYTHONSAFEPATH leaves it out

import argparse
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse
from benchmarking import argument_parser, print_rows, time_in_turn, wall_seconds, write_results

import rnsdask as rd
from rnsdask.backend import to_backend

Row = dict[str, Any]

RUNS = {
    "cpu": ("",),
    "gpu": ("--gpu",),
    "tiny": ("--rows 50 --entries 3 --repeat 1 --system-rows 30",),
    "tiny-gpu": ("--gpu --rows 50 --entries 3 --repeat 1 --system-rows 30",),
}

BLOCKS = ((1, 1), (1, 4), (1, 16), (16, 1), (16, 16))
"""Primes and vectors."""


def random_matrix(rows: int, entries: int, rng: np.random.Generator) -> scipy.sparse.csr_array:
    """A square matrix with entries from -9 to 9 at random places, and a diagonal without zeros."""
    places = rng.integers(0, rows, (2, rows * entries))
    values = rng.integers(-9, 10, rows * entries)
    diagonal = scipy.sparse.diags_array(rng.integers(1, 10, rows), dtype=np.int64)
    return scipy.sparse.csr_array((values, places), (rows, rows)) + diagonal


def primes(count: int) -> rd.PrimeFields:
    return rd.PrimeFields(list(rd.ModuliSet.ntt_primes(31 * count + 31, 2))[:count])


def synchronized(call: Callable[[], rd.FieldArray], gpu: bool) -> float:
    """Seconds of a call until its result is there."""

    def done() -> None:
        result = call()
        if gpu:
            result.words[:1, :1].get()

    return wall_seconds(done)


def product_rows(options: argparse.Namespace, rng: np.random.Generator) -> Iterator[Row]:
    for rows in options.rows:
        for entries in options.entries:
            theirs = random_matrix(rows, entries, rng)
            ours = rd.sparse.from_scipy(theirs)
            for count, vectors in BLOCKS:
                yield product_row(ours, theirs, count, vectors, options, rng)


def product_row(
    ours: rd.sparse.SparseMatrix,
    theirs: scipy.sparse.csr_array,
    count: int,
    vectors: int,
    options: argparse.Namespace,
    rng: np.random.Generator,
) -> Row:
    """One product of each in turn; RuntimeError if they differ."""
    fields = primes(count)
    words = np.stack([rng.integers(0, p, (ours.shape[1], vectors), dtype=np.int64) for p in fields.primes])
    x = rd.FieldArray(to_backend(words.astype(np.uint32), "cuda" if options.gpu else "cpu"), fields)
    block = words[0] if vectors > 1 else words[0, :, 0]
    ways = {
        "rnsdask": partial(synchronized, lambda: ours @ x, options.gpu),
        "SciPy": partial(wall_seconds, lambda: theirs @ block),
    }
    timings = time_in_turn(ways, options.repeat)
    found = to_backend((ours @ x).words[0], "cpu").reshape(-1, vectors)
    if not (found == (theirs @ words[0]) % fields.primes[0]).all():
        raise RuntimeError("the products differ")
    least = {name: min(timing.seconds) for name, timing in timings.items()}
    return {
        "table": "products",
        "rows": ours.shape[0],
        "entries": ours.nnz,
        "primes": count,
        "vectors": vectors,
        "ms": 1e3 * least["rnsdask"],
        "ns each": 1e9 * least["rnsdask"] / (ours.nnz * count * vectors),
        "SciPy's ms, one prime": 1e3 * least["SciPy"],
        "SciPy by this": count * least["SciPy"] / least["rnsdask"],
    }


def system_rows(options: argparse.Namespace, rng: np.random.Generator) -> Iterator[Row]:
    """Solutions and the rest, of one prime and of 16 at once, by one call each."""
    backend = "cuda" if options.gpu else "cpu"
    for rows in options.system_rows:
        a = rd.sparse.from_scipy(random_matrix(rows, options.entries[0], rng))
        for count in (1, 16):
            fields = primes(count)
            x = rd.from_ints(rng.integers(0, 2**31, rows).tolist(), fields)
            b = a @ rd.FieldArray(to_backend(x.words, backend), fields)
            ways: dict[str, Callable[[], Any]] = {
                "solve": partial(rd.sparse.solve, a, b),
                "minpoly": partial(rd.sparse.minpoly, a, fields, backend=backend),
                "det": partial(rd.sparse.det, a, fields, backend=backend),
                "rank": partial(rd.sparse.rank, a, fields, backend=backend),
            }
            for name, call in ways.items():
                yield {
                    "table": "systems",
                    "rows": rows,
                    "entries": a.nnz,
                    "primes": count,
                    "what": name,
                    "s": wall_seconds(call),
                }


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--entries", type=int, nargs="+", default=[10, 40], help="entries of a row")
    parser.add_argument("--system-rows", type=int, nargs="+", default=[1000, 5000])
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--gpu", action="store_true")
    options = parser.parse_args()
    rng = np.random.default_rng(1)
    rows = [*product_rows(options, rng), *system_rows(options, rng)]
    print_rows(rows)
    write_results(options.json, options.gpu, rows)


if __name__ == "__main__":
    main()
