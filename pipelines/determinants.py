"""The greatest and least determinant among many random sign matrices, exact, by elimination modulo primes.

    python pipelines/determinants.py folder [--size 24] [--count 200000] [--gpus 1] [--picture x.svg]

Hadamard's maximal determinant problem asks how large the determinant of a k x k matrix of -1 and 1 can be.
Residues of determinants modulo a few primes are their form in a residue number system: extremes and sum
follow without reconstructing any. Hadamard's bound k**(k/2) tells how many primes. Stores of 2**18 of them in
the folder are kept. Checked: all are multiples of 2**(k - 1), and some are python-flint's.
"""

import math
from functools import partial
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import flint
import numpy as np
from running import connected, drawing, on_host, on_processor, parser_of, stored

import rnsdask as rd

CHUNK, OF_STORE = 2**13, 2**18


def sign_matrices(size: int, count: int, start: int = 0) -> np.ndarray:
    """Return random matrices of one chunk, which begins at a number, of shape (count, size, size)."""
    generator = np.random.Generator(np.random.Philox([1, start // CHUNK]))
    return 2 * generator.integers(0, 2, size=(count, size, size), dtype=np.int64) - 1


def _residues(size: int, count: int, start: int, fields: rd.PrimeFields, on_gpu: bool) -> Any:
    words = (sign_matrices(size, count, start) % np.reshape(fields.primes, (-1, 1, 1, 1))).astype("u4")
    return on_host(rd.linalg.det(on_processor(rd.FieldArray(words, fields), on_gpu)).residues)


def lazy_determinants(size: int, start: int, stop: int, on_gpu: bool = False) -> rd.RNSArray:
    """Return the determinants of the matrices of some numbers, lazy and signed."""
    bound, parts = math.isqrt(size**size), []
    fields = rd.PrimeFields(rd.ModuliSet.ntt_primes(bound.bit_length() + 1, 1))
    for first in range(start, stop, CHUNK):
        count = min(CHUNK, stop - first)
        words = dask.delayed(_residues)(size, count, first, fields, on_gpu)
        parts.append(da.from_delayed(words, (fields.rows, count), np.uint32))
    return rd.from_residues(da.concatenate(parts, 1), fields.moduli, signed=True, bound=bound, trusted=True)


def determinants(folder: Path, size: int, count: int, client: Any = None, on_gpu: bool = False) -> Any:
    """Return all determinants as a lazy array of stores, of which those that are missing are written."""
    stores = []
    for start in range(0, count, OF_STORE):
        stop = min(start + OF_STORE, count)
        if not (store := folder / f"{size}-{start}-{stop}.zarr").exists():
            print(f"determinants {start} to {stop - 1} of {count}")
        stores.append(stored(store, partial(lazy_determinants, size, start, stop, on_gpu), client, on_gpu))
    return rd.concatenate(stores)


def check(x: rd.RNSArray, size: int) -> None:
    """Check that all are multiples of 2**(size - 1), and some at the start against python-flint."""
    if (x % 2 ** (size - 1)).any().compute():
        raise SystemExit(f"error: a determinant is no multiple of 2**{size - 1}")
    matrices = sign_matrices(size, min(CHUNK, len(x)))[:100]
    expected = [int(flint.fmpz_mat(size, size, matrix.ravel().tolist()).det()) for matrix in matrices]
    if x[: len(expected)].to_ints().tolist() != expected:
        raise SystemExit("error: python-flint has other determinants")


def summary(x: rd.RNSArray) -> dict[str, int]:
    """Return the extremes, where the greatest is, and the sum."""
    names, values = ("greatest", "index", "least", "sum"), (x.max(), x.argmax(), x.min(), x.sum())
    return {**dict(zip(names, dask.compute(*values), strict=True)), "bound": x.bound}


def draw(x: rd.RNSArray, size: int, picture: Path) -> None:
    """Draw how the sizes of the determinants that are not 0 spread, beside Hadamard's bound."""
    values = np.asarray(rd.log2(abs(x[(x != 0).compute()])).compute()) / math.log2(10)
    with drawing(picture) as axes:
        axes.hist(values, bins=80)
        axes.axvline(size / 2 * math.log10(size), color="black")
        axes.set(xlabel="decimal logarithm of |det|, and of Hadamard's bound", title=f"{size} x {size}")


def main() -> None:
    parser = parser_of(__doc__, 24, "rows of a matrix", "folder for the stores")
    parser.add_argument("--count", type=int, default=200_000, help="number of matrices")
    o = parser.parse_args()
    with connected(o) as client:
        x = determinants(o.folder, o.size, o.count, client, bool(o.gpus))
        check(x, o.size)
        print(*(f"{name:>8}  {value}" for name, value in summary(x).items()), sep="\n")
        if o.picture:
            draw(x, o.size, o.picture)


if __name__ == "__main__":
    main()
