"""Coefficients of a scattering amplitude from its values modulo primes: points, linear systems, fractions.

    python pipelines/amplitude_ansatz.py amplitude [--size 2] [--gpus 1] [--picture coefficients.svg]

The tree amplitude of six gluons with helicities ---+++ is known here as a program alone, with a pole that
cancels. Over its least denominator the numerator is a polynomial in spinor brackets <ij> and [ij]: an unknown
coefficient for each of 1326 monomials, a basis. Values at random points modulo a prime give the coefficients
modulo it; fractions follow from residues modulo several primes. A prime is a task and a file; those in the
folder are kept. Checked: another formula of the amplitude, at other points, modulo another prime.
"""

from collections.abc import Iterator
from itertools import combinations, product
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from dask import delayed
from running import compute, connected, drawing, on_processor, parser_of, save

import rnsdask as rd

GLUONS = range(1, 7)
PAIRS = list(combinations(GLUONS, 2))
BRACKETS = [f"<{i}{j}>" for i, j in PAIRS] + [f"[{i}{j}]" for i, j in PAIRS]
FACTORS = 5  # brackets of each kind in a monomial of the numerator
WEIGHTS = 1, 0, 1, -1, 0, -1  # of the numerator: how often i is in <ij> more than in [ij]
MORE = 8  # equations beyond those that determine the coefficients
PRIME = 2**31 - 1  # of the check


# ---- points -----------------------------------------------------------------------------------------------


class Point:
    """Spinors of six massless momenta whose sum is 0, at random points in fields."""

    def __init__(self, fields: rd.PrimeFields, count: int, seed: list[int], gpu: bool) -> None:
        drawn = np.random.default_rng(seed).integers(0, 2**31, (2, 6, 2, count))
        self._spinors: Any = [[on_processor(rd.from_ints(x, fields), gpu) for x in y] for y in drawn]
        for here, other in ((5, 6), (6, 5)):  # the last two momenta are minus the others
            parts = [self.angle(other, i) * self._spinors[1][i - 1] for i in GLUONS[:4]]
            self._spinors[1][here - 1] = -sum(parts[1:], parts[0]) / self.angle(other, here)

    def _bracket(self, kind: int, i: int, j: int) -> Any:
        (a, b), (c, d) = self._spinors[kind][i - 1], self._spinors[kind][j - 1]
        return a * d - b * c

    def angle(self, i: int, j: int) -> Any:
        """Value of <ij>."""
        return self._bracket(0, i, j)

    def square(self, i: int, j: int) -> Any:
        """Value of [ij]."""
        return self._bracket(1, i, j)

    def between(self, i: int, middle: tuple[int, ...], j: int) -> Any:
        """Value of <i|k+l|j], the sum of <ik>[kj]."""
        terms = [self.angle(i, k) * self.square(k, j) for k in middle]
        return sum(terms[1:], terms[0])

    def invariant(self, *gluons: int) -> Any:
        """Square of a sum of momenta: the sum of <ij>[ji]."""
        terms = [self.angle(i, j) * self.square(j, i) for i, j in combinations(gluons, 2)]
        return sum(terms[1:], terms[0])

    def brackets(self) -> Any:
        """Values of all brackets, (30, points)."""
        return rd.stack([self.angle(i, j) for i, j in PAIRS] + [self.square(i, j) for i, j in PAIRS])


def amplitude(x: Point) -> Any:
    """Return the amplitude at points (Britto, Cachazo and Feng, 2004)."""
    first = x.between(1, (2, 3), 4) ** 3
    first = first / (x.square(2, 3) * x.square(3, 4) * x.angle(5, 6) * x.angle(6, 1) * x.invariant(2, 3, 4))
    second = x.between(3, (4, 5), 6) ** 3
    second = second / (x.square(6, 1) * x.square(1, 2) * x.angle(3, 4) * x.angle(4, 5) * x.invariant(3, 4, 5))
    return (first + second) / x.between(5, (3, 4), 2)


def denominator(x: Point) -> Any:
    """Return the least denominator of the amplitude."""
    angles = [x.angle(*pair) for pair in ((3, 4), (4, 5), (5, 6), (6, 1))]
    squares = [x.square(*pair) for pair in ((1, 2), (2, 3), (3, 4), (6, 1))]
    return prod(angles[1:] + squares, start=angles[0]) * x.invariant(2, 3, 4) * x.invariant(3, 4, 5)


def other_amplitude(x: Point) -> Any:
    """Return the same amplitude by Feynman diagrams (Mangano and Parke, 1991)."""
    beta = x.angle(2, 3) * x.square(5, 6) * x.between(1, (2, 3), 4)
    gamma = x.angle(1, 2) * x.square(4, 5) * x.between(3, (1, 2), 6)
    s = {i: x.invariant(i, i % 6 + 1) for i in GLUONS}
    first = beta * beta / (x.invariant(2, 3, 4) * s[2] * s[3] * s[5] * s[6])
    second = gamma * gamma / (x.invariant(3, 4, 5) * s[3] * s[4] * s[6] * s[1])
    third = x.invariant(1, 2, 3) * beta * gamma / (s[1] * s[2] * s[3] * s[4] * s[5] * s[6])
    return first + second + third


# ---- the ansatz -------------------------------------------------------------------------------------------


def tableaux(shape: tuple[int, ...], content: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], ...]]:
    """Yield semistandard Young tableaux, each as its shapes of the numbers up to 1, up to 2, and so on."""
    if not content:
        yield ()
        return
    below = (*shape[1:], 0)
    for inner in product(*(range(low, high + 1) for low, high in zip(below, shape, strict=True))):
        if sum(shape) - sum(inner) == content[-1] and not any(inner[len(content) - 1 :]):
            yield from ((*rest, shape) for rest in tableaux(inner, content[:-1]))


def monomials() -> list[list[int]]:
    """Return a basis of numerators: for each monomial the indices of its ten brackets.

    Tableaux of columns with two numbers, i and j of <ij>, and with four, all but i and j of [ij], are a basis
    modulo Schouten's identities and the conservation of momentum (Henning and Melia, 2019).
    """
    shape = 2 * FACTORS, 2 * FACTORS, FACTORS, FACTORS
    found = []
    for shapes in tableaux(shape, tuple(FACTORS + weight for weight in WEIGHTS)):
        rows = [[next(n for n in GLUONS if shapes[n - 1][r] > c) for c in range(shape[r])] for r in range(4)]
        columns = list(zip(*rows[:2], strict=True))
        short = [PAIRS.index(column) for column in columns[FACTORS:]]
        long = [{*GLUONS} - {*column} for column in zip(*(row[:FACTORS] for row in rows), strict=True)]
        found.append(short + [len(PAIRS) + PAIRS.index(tuple(sorted(pair))) for pair in long])
    return found


def values_of(terms: list[list[int]], x: Point) -> Any:
    """Return the values of monomials, (points, monomials)."""
    brackets, indices = x.brackets(), np.array(terms).T
    found = brackets[indices[0]]
    for which in indices[1:]:
        found = found * brackets[which]
    return found.T


# ---- the coefficients -------------------------------------------------------------------------------------


def solve_modulo(file: Path, prime: int, gpu: bool) -> None:
    """Write the coefficients modulo a prime; LinAlgError if no numerator has the values of the amplitude."""
    terms, fields = monomials(), rd.PrimeFields([prime])
    x = Point(fields, len(terms) + MORE, [prime], gpu)
    matrix, values = values_of(terms, x), amplitude(x) * denominator(x)
    if rd.linalg.rank(matrix).item() < len(terms):
        raise SystemExit(f"error: the points determine no coefficients modulo {prime}")
    save(file, coefficients=rd.linalg.solve(matrix, values, unique=False).residues)


def find_coefficients(folder: Path, count: int, client: Any = None, gpu: bool = False) -> list[Any]:
    """Return numerators over denominators of all coefficients; make what the folder lacks."""
    primes = list(rd.ModuliSet.ntt_primes(32 * count, 1))[:count]
    files = {folder / f"{prime}.npz": prime for prime in primes}
    missing = [(file, prime, gpu) for file, prime in files.items() if not file.exists()]
    compute([delayed(solve_modulo)(*task) for task in missing], client, gpu)
    found = np.concatenate([np.load(file)["coefficients"] for file in files])
    fractions = rd.rational_reconstruct(found, primes)
    nonzero = int(np.count_nonzero(fractions.numerators))
    print(f"{len(found[0])} coefficients, {nonzero} not 0, {fractions.certainty}")
    return list(zip(fractions.numerators.tolist(), fractions.denominators.tolist(), strict=True))


def check(coefficients: list[Any], file: Path) -> str:
    """Check the numerator against another formula modulo another prime, and write it as text."""
    terms, fields = monomials(), rd.PrimeFields([PRIME])
    x = Point(fields, 100, [PRIME], gpu=False)
    above, below = (rd.from_ints(list(part), fields) for part in zip(*coefficients, strict=True))
    numerator = values_of(terms, x) @ (above / below)
    if not (numerator == other_amplitude(x) * denominator(x)).all():
        raise SystemExit("error: the numerator is not that of Feynman diagrams")
    lines = [
        f"{above}/{below} {' '.join(BRACKETS[k] for k in term)}\n".replace("/1 ", " ")
        for (above, below), term in zip(coefficients, terms, strict=True)
        if above
    ]
    file.write_text("".join(lines))
    return f"it is the sum of Feynman diagrams at 100 points modulo {PRIME}: {file}"


def draw(coefficients: list[Any], picture: Path) -> None:
    """Draw how often each coefficient occurs."""
    with drawing(picture) as axes:
        values, counts = np.unique([a / b for a, b in coefficients if a], return_counts=True)
        axes.bar(range(len(values)), counts, tick_label=[f"{v:g}" for v in values])
        axes.set(xlabel="coefficient", title="monomials by coefficient")


def main() -> None:
    o = parser_of(__doc__, 2, "number of primes, from 2 on", "folder for coefficients", 2, 64).parse_args()
    with connected(o) as client:
        coefficients = find_coefficients(o.folder, o.size, client, bool(o.gpus))
    print(check(coefficients, o.folder / "numerator.txt"))
    if o.picture:
        draw(coefficients, o.picture)


if __name__ == "__main__":
    main()
