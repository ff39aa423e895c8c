"""Counting, exactly: binomial coefficients by sums, a polynomial at many points, paths by powers of a matrix.

    python pipelines/counting.py [--rows 200] [--degree 60] [--points 1000000] [--width 8] [--length 1000]

- Pascal's triangle, read along its diagonals: each row of C(i + j, i) is the running sum of the row above.
- Horner's rule: a polynomial with long coefficients at many points at once, one fused product and sum a step.
- The transfer matrix: the domino tilings of a board of some width and any length are an entry of a power of
  the matrix that says which border may follow which.

Each bounds its results first, so that the moduli set holds them, and nothing has to be checked.
"""

import argparse
import math
from collections.abc import Iterable

import numpy as np

import rnsdask as rd


def pascal(rows: int) -> rd.RNSArray:
    """Return the square of binomial coefficients C(i + j, i) for i and j below `rows`."""
    moduli = rd.ModuliSet.for_bits(2 * rows)  # C(2k, k) < 4**k
    row = rd.from_ints([1] * rows, moduli)
    triangle = [row]
    for _ in range(1, rows):
        row = row.cumsum()
        triangle.append(row)
    return rd.stack(triangle)


def horner(coefficients: Iterable[int], points: np.ndarray) -> rd.RNSArray:
    """Return the values at integer points of a polynomial, its coefficients from the constant term on."""
    ascending = list(coefficients)
    farthest = max(1, *(abs(int(p)) for p in (points.min(), points.max())))
    bound = sum(abs(c) * farthest**k for k, c in enumerate(ascending))
    x = rd.from_ints(points, rd.ModuliSet.for_bits(bound.bit_length() + 1), signed=True, chunks="auto")
    value = x * 0
    for coefficient in reversed(ascending):
        value = rd.fma(value, x, coefficient)
    return value


def transitions(width: int) -> np.ndarray:
    """Return the 0-1 matrix of borders: which cells of a column of dominoes may reach into the next one."""
    matrix = np.zeros((1 << width, 1 << width), dtype=np.int64)

    def fill(cell: int, before: int, after: int) -> None:
        if cell == width:
            matrix[before, after] += 1
            return
        taken = before >> cell & 1
        if taken:
            fill(cell + 1, before, after)
            return
        fill(cell + 1, before, after | 1 << cell)  # a domino along the board
        if cell + 1 < width and not before >> (cell + 1) & 1:
            fill(cell + 2, before, after)  # one across it

    for before in range(1 << width):
        fill(0, before, 0)
    return matrix


def domino_tilings(width: int, length: int) -> int:
    """Return how many ways there are to tile a board of `width` times `length` cells with dominoes."""
    matrix = transitions(width)
    greatest = int(matrix.sum(axis=1).max()) ** length  # no entry of a power exceeds the power of the row sum
    borders = rd.from_ints(matrix, rd.ModuliSet.for_bits(greatest.bit_length()))
    return int(rd.linalg.matrix_power(borders, length)[0, 0])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=200)
    parser.add_argument("--degree", type=int, default=60)
    parser.add_argument("--points", type=int, default=100_000)
    parser.add_argument("--width", type=int, default=6)
    parser.add_argument("--length", type=int, default=1000)
    options = parser.parse_args()
    triangle = pascal(options.rows)
    half = options.rows - 1
    print("C(2k, k) for k =", half, "is right:", triangle[half, half] == math.comb(2 * half, half))
    points = np.arange(options.points) - options.points // 2
    values = horner([math.factorial(k) for k in range(options.degree + 1)], points)
    print("greatest value", rd.to_decimal(int(values.max()))[:60], "...")
    print("tilings", rd.to_decimal(domino_tilings(options.width, options.length)))


if __name__ == "__main__":
    main()
