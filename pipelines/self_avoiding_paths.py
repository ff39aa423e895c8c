"""Self-avoiding paths between opposite corners of n x n cells, counted exactly by a transfer matrix.

    python pipelines/self_avoiding_paths.py paths [--size 13] [--gpus 1] [--picture paths.svg]

Vertices are added row by row. A state says how paths cross the boundary so far: two bits for each edge there,
0 where it is free, 1 and 2 at the ends of a loose piece, 3 at that of the piece from the corner. States that
use other edges of the half of a row that a step leaves never meet (I. Jensen, 2003), and are in parts, a task
and a file each; those in the folder are kept. Checked: OEIS A007764, and a prime more than is needed.
"""

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from dask import delayed
from running import compute, connected, drawing, parser_of, save

import rnsdask as rd

PUBLISHED = {6: 575780564, 9: 41044208702632496804, 12: 64528039343270018963357185158482118}


def add_vertex(keys: Any, counts: Any, row: int, column: int, size: int) -> tuple[Any, Any]:
    """Return states after a vertex: its edges to the left and above become those below and to the right."""
    left, up, down, right = 2 * column, 2 * column + 2, row < size, column < size
    a, b = keys >> left & 3, keys >> up & 3
    bare, free, one = keys ^ (keys & 15 << left), a | b == 0, (a == 0) != (b == 0)
    moves = (
        (free, bare),
        (free & (down and right), bare | (1 << left | 2 << up)),  # a loose piece
        (one & down, bare | (a | b) << left),
        (one & right, bare | (a | b) << up),
        ((a == 2) & (b == 1), bare),  # two pieces become one; 1 beside 2 would be a circle
        (a & b == 1, relabel(bare, range(up + 2, 2 * size + 4, 2), 2, a)),
        (a & b & 2 == 2, relabel(bare, range(left - 2, -1, -2), 1, b)),
    )
    new = np.concatenate([counts[:, mask] for mask, _ in moves], axis=1)
    return np.concatenate([found[mask] for mask, found in moves]), new


def relabel(keys: Any, places: range, end: int, label: Any) -> Any:
    """Return keys with a label in the place of the bracket that ends the piece begun before `places`."""
    found, depth = keys, np.ones_like(keys, dtype=np.int8)
    for place in places:
        at = keys >> place & 3
        found = np.where((depth == 1) & (at == end), keys ^ (at ^ label) << place, found)
        depth += (depth > 0) * ((at == 3 - end) * np.int8(1) - (at == end) * np.int8(1))
    return found


def merge(keys: Any, counts: Any, primes: Any) -> tuple[Any, Any]:
    """Return the different keys, ascending, and the sums of their counts modulo primes."""
    order = keys.argsort() if keys.size else keys.astype(np.int64)
    keys = keys[order]
    last = np.append(keys[1:] != keys[:-1], keys[:1] == keys[:1]).nonzero()[0]
    sums = counts[:, order].cumsum(axis=1, dtype=np.uint64)[:, last]  # 2^32 residues fit
    sums[:, 1:] -= sums[:, :-1].copy()
    return keys[last], (sums % primes).astype(np.uint32)


def files_of(folder: Path, size: int, step: int) -> list[Path]:
    """Return the files of a step, one for each part of the states."""
    return [folder / f"{size}-{step}-{part}.npz" for part in range(2 ** max(min(size - 8, 6), 0))]


def load(files: list[Path], part: int) -> tuple[np.ndarray, np.ndarray]:
    """Return keys and counts of a part from all files of a step."""
    keys, counts = ([np.load(file)[f"{name}{part}"] for file in files] for name in ("keys", "counts"))
    return np.concatenate(keys), np.concatenate(counts, axis=1)


def advance(folder: Path, place: tuple[int, ...], moduli: rd.ModuliSet, gpu: bool, _: Any) -> None:
    """Add half a row of vertices to the states of a part, and write them in the parts of the next step."""
    (size, step, part), xp = place, import_module("cupy" if gpu else "numpy")
    files, (row, second), middle = files_of(folder, size, step), divmod(step, 2), size // 2 + 1
    primes = xp.array(list(moduli), dtype=np.uint64)[:, None]
    first = np.array([3] * (part == 0), np.uint64), np.ones((len(primes), int(part == 0)), np.uint32)
    keys, counts = map(xp.asarray, load(files_of(folder, size, step - 1), part) if step else first)
    for column in range(middle, size + (row < size)) if second else range(middle):
        keys, counts = merge(*add_vertex(keys, counts, row, column, size), primes)
    keys = keys << 2 * (second and row < size)
    left = 4**32 - 4 ** (middle + 1) if second else 4**middle - 1  # edges that the next step leaves
    parts = ((keys | keys >> 1) & (4**32 // 3 & left)) % 1009 % len(files)
    found = {f"keys{k}": keys[parts == k] for k in range(len(files))}
    save(files[part], **found, **{f"counts{k}": counts[:, parts == k] for k in range(len(files))})
    files_of(folder, size, step - 2)[part].unlink(missing_ok=True)


def count_paths(folder: Path, size: int, client: Any = None, gpu: bool = False) -> int:
    """Return the number of paths of a size; make the steps that are not in the folder."""
    # The cells on its right tell a path, so there are at most 2^(n^2); a prime more shows a wrong residue.
    moduli = rd.ModuliSet.ntt_primes(size**2 + 33, 1)
    steps = [files_of(folder, size, step) for step in range(2 * size + 2)]
    done, tasks = max((k for k, files in enumerate(steps) if all(f.exists() for f in files)), default=-1), []
    for step, files in [*enumerate(steps)][done + 1 :]:
        missing, barrier = [k for k, file in enumerate(files) if not file.exists()], delayed(len)(tasks)
        tasks = [delayed(advance)(folder, (size, step, k), moduli, gpu, barrier) for k in missing]
    compute(tasks, client, gpu)
    counts = [rd.FieldArray(load(steps[-1], k)[1], rd.PrimeFields(moduli)) for k in range(len(steps[-1]))]
    if (found := int(rd.concatenate(counts).sum())) > 2**size**2 or found != PUBLISHED.get(size, found):
        raise SystemExit(f"error: there are not {found} paths for n = {size}")
    return found


def main() -> None:
    options = parser_of(__doc__, 12, "n, up to 30", "folder for the states").parse_args()
    with connected(options) as client:
        how, sizes = (client, bool(options.gpus)), range(1, options.size + 1)
        numbers = {n: count_paths(options.folder, n, *how) for n in sizes}
    print(*(f"{n:3} {number}" for n, number in numbers.items()), sep="\n")
    if options.picture:
        with drawing(options.picture) as axes:
            axes.plot(sizes, [number ** (1 / n**2) for n, number in numbers.items()], "o-")
            axes.axhline(1.7445498, color="gray", linewidth=0.8)  # the limit: A. Guttmann, I. Jensen (2022)
            axes.set(xlabel="n", title="number of paths to the power 1/n²", ylim=(1.7, 1.9))


if __name__ == "__main__":
    main()
