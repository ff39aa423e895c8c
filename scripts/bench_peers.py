"""Times this package beside other ways to hold big integers in Python, for the same numbers in the same run.

    python scripts/bench_peers.py            the CPU: gmpy2, python-flint and NumPy object arrays
    python scripts/bench_peers.py --gpu      and this package on the GPU

Maximum, sum, element-wise sum and product, a matrix product, and the CRT; imports and conversions are apart.
An operation is timed on data that is already in the library's own form, with one thread and with two: lists
are cut into a part for each. The products need twice the bits, so this package's set holds as many for every
operation. "by_rnsdask" is a library's time by this package's on the CPU with as many threads: below 1 the
library is quicker. A library that is not installed is listed as missing. Prints tables, and with --json FILE
writes them.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))  # PYTHONSAFEPATH leaves it out

import argparse
import importlib.util
import operator
import random
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import dask
import gmpy2
import numpy as np
from benchmarking import Timing, argument_parser, print_rows, time_calls, write_results

import rnsdask as rd
from rnsdask.backend import kernels_of

RUNS = {
    "cpu": ("",),
    "gpu": ("--gpu --threads 1 --bits 1024 --matrix 48,192 --budget 1 --imports 3",),
    "tiny": ("--bits 128 --count 50 --matrix 3 --repeat 1 --imports 1",),
    "tiny-gpu": ("--gpu --bits 128 --count 50 --matrix 3 --repeat 1 --imports 1",),
}

MODULES = {"gmpy2": "gmpy2", "python-flint": "flint", "NumPy objects": "numpy", "rnsdask": "rnsdask"}
MISSING = tuple(name for name, module in MODULES.items() if importlib.util.find_spec(module) is None)

Call = Callable[[], Any]


# ---- each library's data and operations --------------------------------------------------------------------


class Peer(ABC):
    """Numbers as a library holds them, in a part for each thread, and its operations on them."""

    name: str

    def __init__(self, x: list[int], y: list[int], pool: ThreadPoolExecutor, threads: int) -> None:
        length = -(-len(x) // threads)
        starts = range(0, len(x), length)
        self.parts = [(self.load(x[i : i + length]), self.load(y[i : i + length])) for i in starts]
        self.pool = pool

    @abstractmethod
    def load(self, ints: list[int]) -> Any:
        """Convert Python integers."""

    def each(self, function: Callable[..., Any]) -> list[Any]:
        """Apply a function to each thread's part."""
        if len(self.parts) == 1:
            return [function(*self.parts[0])]
        return list(self.pool.map(lambda part: function(*part), self.parts))

    def operations(self) -> dict[str, Call]:
        return {
            "max": lambda: max(self.each(lambda x, _: max(x))),
            "sum": lambda: sum(self.each(lambda x, _: sum(x))),
            "add": lambda: self.each(lambda x, y: list(map(operator.add, x, y))),
            "multiply": lambda: self.each(lambda x, y: list(map(operator.mul, x, y))),
        }


class Gmpy2(Peer):
    """Lists of mpz."""

    name = "gmpy2"

    def load(self, ints: list[int]) -> Any:
        return list(map(gmpy2.mpz, ints))


class Flint(Peer):
    """Lists of fmpz, and for element-wise sums a matrix of one row."""

    name = "python-flint"

    def load(self, ints: list[int]) -> Any:
        import flint

        return flint.fmpz_mat(1, len(ints), ints), list(map(flint.fmpz, ints))

    def operations(self) -> dict[str, Call]:
        return {
            "max": lambda: max(self.each(lambda x, _: max(x[1]))),
            "sum": lambda: sum(self.each(lambda x, _: sum(x[1]))),
            "add": lambda: self.each(lambda x, y: x[0] + y[0]),
            "multiply": lambda: self.each(lambda x, y: list(map(operator.mul, x[1], y[1]))),
        }


class NumpyObjects(Peer):
    """Object arrays of Python integers."""

    name = "NumPy objects"

    def load(self, ints: list[int]) -> Any:
        return np.array(ints, dtype=object)

    def operations(self) -> dict[str, Call]:
        return {
            "max": lambda: max(self.each(lambda x, _: x.max())),
            "sum": lambda: sum(self.each(lambda x, _: x.sum())),
            "add": lambda: self.each(operator.add),
            "multiply": lambda: self.each(operator.mul),
        }


def rnsdask_operations(x: rd.RNSArray, y: rd.RNSArray, finish: Callable[[Any], Any]) -> dict[str, Call]:
    """The operations of this package; `finish` waits for a result."""
    return {
        "max": lambda: finish(x.max()),
        "sum": lambda: finish(x.sum()),
        "add": lambda: finish(x + y),
        "multiply": lambda: finish(x * y),
    }


def compute(result: Any) -> Any:
    """A lazy integer's value, or a lazy array with its chunks computed."""
    return result.persist() if isinstance(result, rd.RNSArray) else result.compute()


def synchronise(result: Any) -> Any:
    import cupy

    cupy.cuda.Device().synchronize()
    return result


# ---- tables ------------------------------------------------------------------------------------------------


def rows_of(
    table: str, threads: int, calls: dict[str, dict[str, Call]], options: argparse.Namespace
) -> list[dict[str, Any]]:
    """Time operations by library, and compare with this package on the CPU."""
    operations = list(dict.fromkeys(op for made in calls.values() for op in made))
    rows = []
    for operation in operations:
        timed: dict[str, Timing] = {
            library: time_calls(made[operation], options.repeat, options.budget)
            for library, made in calls.items()
            if operation in made
        }
        own = timed.get("rnsdask")
        rows += [
            {"table": table, "operation": operation, "threads": threads, "library": library, **timing.row()}
            | {"by_rnsdask": timing.median / own.median if own else None}
            for library, timing in timed.items()
        ]
    return rows


def bench_arrays(bits: int, threads: int, options: argparse.Namespace) -> list[dict[str, Any]]:
    x, y = random_ints(bits, options.count, 1), random_ints(bits, options.count, 2)
    moduli = rd.ModuliSet.for_bits(2 * bits)
    eager = [rd.from_ints(values, moduli) for values in (x, y)]
    calls: dict[str, dict[str, Call]] = {}
    with ThreadPoolExecutor(threads) as pool, dask.config.set(scheduler="threads", num_workers=threads):
        for peer in (Gmpy2, Flint, NumpyObjects):
            if peer.name not in MISSING:
                calls[peer.name] = peer(x, y, pool, threads).operations()
        if threads == 1:
            residues = eager[0].residues
            calls["rnsdask"] = rnsdask_operations(*eager, lambda result: result)
            calls["rnsdask"]["plain read"] = lambda: kernels_of(residues).read_all(residues)
        else:
            chunk = -(-options.count // (4 * threads * 128)) * 128
            chunked = [a.rechunk(min(chunk, options.count)).persist() for a in eager]
            calls["rnsdask"] = rnsdask_operations(*chunked, compute)
        if options.gpu and threads == 1:
            import cupy

            on_gpu = [rd.RNSArray(cupy.asarray(a.residues), rd.RNS(moduli, a.signed, a.bound)) for a in eager]
            calls["rnsdask, GPU"] = rnsdask_operations(*on_gpu, synchronise)
        check(calls, x, y, eager)
        return rows_of(f"{options.count:,} numbers of {bits:,} bits", threads, calls, options)


def check(calls: dict[str, dict[str, Call]], x: list[int], y: list[int], eager: list[rd.RNSArray]) -> None:
    """All libraries agree with Python's integers."""
    for library, made in calls.items():
        assert int(made["max"]()) == max(x), f"{library}: max"
        assert int(made["sum"]()) == sum(x), f"{library}: sum"
    a, b = eager
    assert (a + b)[:50].to_ints().tolist() == [i + j for i, j in zip(x[:50], y[:50], strict=True)]
    assert (a * b)[:50].to_ints().tolist() == [i * j for i, j in zip(x[:50], y[:50], strict=True)]


def bench_matrices(bits: int, size: int, threads: int, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Product of two square matrices; NumPy's takes one thread only."""
    x, y = random_ints(bits, size * size, 3), random_ints(bits, size * size, 4)
    a, b = (np.array(values, dtype=object).reshape(size, size) for values in (x, y))
    moduli = rd.ModuliSet.for_bits(2 * bits + size.bit_length())
    own = [rd.from_ints(values, moduli) for values in (a, b)]
    products: dict[str, Call] = {}
    if "python-flint" not in MISSING:
        import flint

        flint.ctx.threads = threads
        left, right = flint.fmpz_mat(size, size, x), flint.fmpz_mat(size, size, y)
        products["python-flint"] = lambda: left * right
    if threads == 1:
        products["NumPy objects"] = lambda: a @ b
        products["rnsdask"] = lambda: own[0] @ own[1]
    else:
        # A band of rows for each thread.
        band = own[0].rechunk((-(-size // threads), size)).persist()
        other = own[1].rechunk((size, size)).persist()
        products["rnsdask"] = lambda: compute(band @ other)
    if options.gpu and threads == 1:
        import cupy

        p, q = (rd.RNSArray(cupy.asarray(z.residues), rd.RNS(moduli, z.signed, z.bound)) for z in own)
        products["rnsdask, GPU"] = lambda: synchronise(p @ q)
    check_products(products, a, b)
    calls = {library: {"matrix product": product} for library, product in products.items()}
    with dask.config.set(scheduler="threads", num_workers=threads):
        return rows_of(f"{size} x {size} matrices of {bits:,} bits", threads, calls, options)


def check_products(products: dict[str, Call], a: np.ndarray, b: np.ndarray) -> None:
    """The first row and column of each library's product are those of Python's integers."""
    row, column = (a[:1] @ b)[0].tolist(), (a @ b[:, :1])[:, 0].tolist()
    for library, product in products.items():
        result = product()
        if isinstance(result, rd.RNSArray):
            entries = result[0].to_ints(), result[:, 0].to_ints()
        elif isinstance(result, np.ndarray):
            entries = result[0], result[:, 0]
        else:
            size = len(b)
            entries = result.entries()[:size], result.entries()[::size]
        assert [list(map(int, part)) for part in entries] == [row, column], f"{library}: matrix product"


def bench_conversion(bits: int, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Python integers to each library's form and back, and the CRT from residues to its integers."""
    x = random_ints(bits, options.count, 1)
    moduli = rd.ModuliSet.for_bits(bits)
    own = rd.from_ints(x, moduli)
    mpz = list(map(gmpy2.mpz, x))
    calls: dict[str, dict[str, Call]] = {
        "gmpy2": {
            "from Python's integers": lambda: list(map(gmpy2.mpz, x)),
            "to Python's integers": lambda: list(map(int, mpz)),
        },
        "NumPy objects": {"from Python's integers": lambda: np.array(x, dtype=object)},
        "rnsdask": {
            "from Python's integers": lambda: rd.from_ints(x, moduli),
            "to Python's integers": own.to_ints,
            "CRT": own.to_ints,
        },
    }
    if "python-flint" not in MISSING:
        import flint

        fmpz = list(map(flint.fmpz, x))
        # The CRT as a product with the weights |w_i M_i|, then modulo M.
        weights = [int(gmpy2.invert(moduli.product // m, m)) * (moduli.product // m) for m in moduli]
        residues = flint.fmpz_mat(options.count, len(moduli), own.residues.T.ravel().tolist())
        column, product = flint.fmpz_mat(len(moduli), 1, weights), flint.fmpz(moduli.product)
        calls["python-flint"] = {
            "from Python's integers": lambda: list(map(flint.fmpz, x)),
            "to Python's integers": lambda: list(map(int, fmpz)),
            "CRT": lambda: [total % product for total in (residues * column).entries()],
        }
        assert list(map(int, calls["python-flint"]["CRT"]())) == x
    assert own.to_ints().tolist() == x
    return rows_of(f"Conversion of {options.count:,} numbers of {bits:,} bits", 1, calls, options)


def bench_imports(processes: int) -> list[dict[str, Any]]:
    """Time to import each library in so many processes, of which the first is to warm up unless it is alone.

    This package's arrays bring Dask with them.
    """
    statements = {name: f"import {module}" for name, module in MODULES.items() if name not in MISSING}
    statements["rnsdask"] = "import rnsdask; rnsdask.RNSArray"
    program = "import time; start = time.perf_counter(); {}; print(time.perf_counter() - start)"

    def seconds(statement: str) -> float:
        command = [sys.executable, "-P", "-c", program.format(statement)]
        return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)

    return [
        {"table": "Imports", "library": name}
        | Timing(tuple(seconds(statement) for _ in range(processes))[processes > 1 :]).row()
        for name, statement in statements.items()
    ]


def random_ints(bits: int, count: int, seed: int) -> list[int]:
    generator = random.Random(seed)
    return [generator.getrandbits(bits) for _ in range(count)]


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("--gpu", action="store_true", help="time this package on the GPU too")
    parser.add_argument("--bits", default="256,1024,4096", help="sizes of the numbers")
    parser.add_argument("--count", type=int, default=50_000, help="how many numbers")
    parser.add_argument("--matrix", default="48", help="sizes of the matrices")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--imports", type=int, default=6, help="processes that import each library, or 0")
    parser.add_argument("--budget", type=float, default=2.0, help="seconds for the calls of one timing")
    options = parser.parse_args()
    rows = [{"table": "Missing", "library": name} for name in MISSING]
    for bits in map(int, options.bits.split(",")):
        for threads in map(int, options.threads.split(",")):
            rows += bench_arrays(bits, threads, options)
            for size in map(int, options.matrix.split(",")):
                rows += bench_matrices(bits, size, threads, options)
        rows += bench_conversion(bits, options)
    if options.imports:
        rows += bench_imports(options.imports)
    print_rows(rows)
    write_results(options.json, options.gpu, rows)


if __name__ == "__main__":
    main()
