"""How many ways there are to tile a square board with dominoes, exact: determinants of Kasteleyn's matrices.

    python pipelines/domino_tilings.py folder [--size 32] [--gpus 1] [--picture tilings.svg]

A tiling pairs each black cell with a white one. P. Kasteleyn (1961) gave pairs signs with which all tilings
count alike in the determinant of the matrix of black and white cells. Boards 2 x 2, 4 x 4, ... are a task and
a file each; files that are there are kept. Checked: the cosine formula, evaluated in enough bits.
"""

import math
from pathlib import Path
from typing import Any

import dask
import gmpy2
import numpy as np
from running import compute, connected, drawing, on_processor, parser_of

import rnsdask as rd


def edges(size: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return black and white cells' numbers of all horizontal and all vertical pairs of neighbours."""
    number = np.arange(size * size).reshape(size, size) // 2  # of black and of white cells, row by row
    is_black = np.indices((size, size)).sum(axis=0) % 2 == 0
    pairs = []
    for one, other in ((np.s_[:, :-1], np.s_[:, 1:]), (np.s_[:-1], np.s_[1:])):
        ends = (number[one], number[other]), (number[other], number[one])
        pairs.append(tuple(np.where(is_black[one], first, last) for first, last in ends))
    return pairs


def kasteleyn_matrix(size: int) -> np.ndarray:
    """Return the signs of all pairs of a black and a white cell: -1 for vertical ones in odd columns."""
    matrix = np.zeros((size * size // 2,) * 2, dtype=np.int64)
    horizontal, vertical = edges(size)
    matrix[horizontal] = 1
    matrix[vertical] = np.where(np.arange(size) % 2, -1, 1)
    return matrix


def _count(size: int, on_gpu: bool, file: Path) -> None:
    x = on_processor(rd.from_ints(kasteleyn_matrix(size)), on_gpu)
    part = file.with_suffix(".part")
    part.write_text(rd.to_decimal(abs(rd.linalg.det(x))) + "\n")
    part.replace(file)


def domino_tilings(folder: Path, size: int, client: Any = None, on_gpu: bool = False) -> dict[int, int]:
    """Return the tilings of all square boards of even size, by size; count those without a file."""
    folder.mkdir(parents=True, exist_ok=True)
    files = {n: folder / f"{n}.txt" for n in range(2, max(size, 2) + 1, 2)}
    missing = [n for n, file in files.items() if not file.exists()]
    print(f"{len(files)} boards, of which {len(files) - len(missing)} are there")
    compute([dask.delayed(_count)(n, on_gpu, files[n]) for n in reversed(missing)], client, on_gpu, at_once=1)
    return {n: int(gmpy2.mpz(file.read_text())) for n, file in files.items()}


def cosine_formula(size: int, bits: int) -> int:
    """Return the product of all 4 cos^2(j pi / (n + 1)) + 4 cos^2(k pi / (n + 1)), for j and k to n / 2."""
    # Each of n^2 / 4 factors is off by some n roundings: 64 bits more than those of n^2 are enough.
    with gmpy2.context(precision=bits + 64 + 2 * size.bit_length()):
        step = gmpy2.const_pi() / (size + 1)
        squares = [4 * gmpy2.cos(step * j) ** 2 for j in range(1, size // 2 + 1)]
        return int(gmpy2.rint(math.prod((x + y for x in squares for y in squares), start=gmpy2.mpfr(1))))


def check(tilings: dict[int, int]) -> str:
    """Check all counts by the cosine formula."""
    if wrong := [n for n, count in tilings.items() if cosine_formula(n, count.bit_length()) != count]:
        raise SystemExit(f"error: the cosine formula gives another number for {wrong[0]} x {wrong[0]}")
    return f"the cosine formula gives the same for all {len(tilings)} boards"


def draw(tilings: dict[int, int], picture: Path, size: int = 16) -> None:
    """Draw the growth by cell, and the shares of tilings with a horizontal domino on each cell of a board."""
    matrix, horizontal = kasteleyn_matrix(size), edges(size)[0]
    numerators, denominator = rd.linalg.inv(rd.from_ints(matrix))
    shares = (matrix * numerators.T / denominator).astype(float)[horizontal]
    cells = np.pad(shares, ((0, 0), (0, 1))) + np.pad(shares, ((0, 0), (1, 0)))
    with drawing(picture, columns=2) as (left, right):
        left.plot(list(tilings), [float(gmpy2.log(count)) / n**2 for n, count in tilings.items()], ".-")
        left.axhline(float(gmpy2.const_catalan()) / np.pi, color="black")
        left.set(xlabel="n", title="log(tilings) / n², and G / π", ylim=(0.15, 0.3))
        left.figure.colorbar(right.imshow(cells, cmap="RdBu", vmin=0.2, vmax=0.8))
        right.set(title=f"horizontal dominoes, {size} x {size}", xticks=[], yticks=[])


def main() -> None:
    parser = parser_of(__doc__, 40, "side of the greatest board, even", "folder for the counts", least=2)
    options = parser.parse_args()
    with connected(options) as client:
        tilings = domino_tilings(options.folder, options.size, client, bool(options.gpus))
        print(check(tilings), f"{(n := max(tilings))} x {n}: {rd.to_decimal(tilings[n])}", sep="\n")
        if options.picture:
            draw(tilings, options.picture)


if __name__ == "__main__":
    main()
