"""Feynman integrals as sums of three master integrals times rational functions, by sparse linear systems.

    python pipelines/feynman_integrals.py bubble [--size 30] [--gpus 1] [--picture bubble.svg]

I(a, b) is the integral of 1 / ((k^2 - 1)^a ((k + p)^2 - 3)^b) over all k in 11/3 dimensions: two particles of
masses 1 and sqrt(3) in a loop. Integration by parts gives linear equations between neighbours, with a
parameter s = p^2. They are solved modulo primes at points s; functions follow from values, and fractions from
residues. A few primes are a task and a file; those in the folder are kept. Checked: the functions solve all
equations, and their poles are where two particles come into being.
"""

from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from dask import delayed
from flint import fmpq_poly, fmpz_poly
from running import compute, connected, drawing, on_processor, parser_of, save

import rnsdask as rd

MASTERS = (1, 1), (1, 0), (0, 1)
POLES = fmpz_poly([4, -8, 1])  # (s - (m + M)^2) (s - (m - M)^2) for m^2 = 1 and M^2 = 3


def equations(size: int) -> tuple[list[Any], list[dict[Any, Any]]]:
    """Return integrals besides the masters, and as many equations; (u, v) is the coefficient u + v s."""
    found = []
    for a, b in ((a, total - a) for total in range(1, size) for a in range(total + 1)):
        row = {(a, b): (11 - 6 * a - 3 * b, 0), (a + 1, b): (-6 * a, 0), (a - 1, b + 1): (-3 * b, 0)}
        row |= {(a, b + 1): (-12 * b, 3 * b)}  # the integral of a divergence is 0: here that of k f(k)
        found.append(row if a else {(0, b): (11 - 6 * b, 0), (0, b + 1): (-18 * b, 0)})
        if a == 1 and b:  # that of p f(k)
            row = {(1, b): (1 - b, 0), (2, b - 1): (-1, 0), (2, b): (-2, 1), (0, b + 1): (b, 0)}
            found.append(row | {(1, b + 1): (-2 * b, -b)})
    pairs = dict.fromkeys(pair for equation in found for pair in equation)
    return [pair for pair in pairs if pair not in MASTERS], found


def find_functions(file: Path, size: int, primes: list[int], gpu: bool) -> None:
    """Solve all equations modulo some primes at points s, and write functions through the solutions."""
    fields, (unknown, rows), entries = rd.PrimeFields(primes), equations(size), []
    column, right = {pair: k for k, pair in enumerate(unknown)}, np.zeros((2, len(rows), 3), dtype=np.int64)
    for i, equation in enumerate(rows):
        entries += [(i, column[pair], *value) for pair, value in equation.items() if pair in column]
        for k, pair in enumerate(MASTERS):
            right[:, i, k] -= equation.get(pair, (0, 0))
    down, across, u, v = np.array(entries).T
    points, values = np.arange(1, 4 * size - 5), []  # degrees are up to 2 n - 4; a point more confirms them
    for s in points:
        matrix = rd.sparse.from_entries(down, across, u + v * s, (len(rows),) * 2)
        b = rd.from_ints(right[0] + right[1] * s, fields)
        values.append(rd.sparse.solve(matrix, on_processor(b, gpu)))
    x = on_processor(rd.from_ints(points, fields), gpu)
    found = rd.poly.rational_interpolate(x, rd.stack(values, axis=-1))
    save(file, coefficients=rd.concatenate(found, axis=-1).residues)


def reduce_integrals(folder: Path, size: int, client: Any = None, gpu: bool = False) -> dict[Any, Any]:
    """Return numerators and denominators, three for each integral; make what the folder lacks."""
    step = 32 if gpu else 8
    for count in range(-(-(2 * size // 3 + 2) // step), size + 9):
        primes = np.array(list(rd.ModuliSet.ntt_primes(32 * step * count, 1)))[: step * count]
        files = {folder / f"{size}-{step}-{k}.npz": part for k, part in enumerate(np.split(primes, count))}
        missing = [(file, size, part.tolist(), gpu) for file, part in files.items() if not file.exists()]
        compute([delayed(find_functions)(*task) for task in missing], client, gpu)
        found = np.concatenate([np.load(file)["coefficients"] for file in files])
        lacking = found[..., ::-1].astype(bool).argmax(axis=-1)  # powers of s in denominators
        good = (lacking == lacking.min(axis=0)).all(axis=(1, 2))  # modulo other primes a function is shorter
        with suppress(*[rd.NumberError] if count < size + 8 else []):  # raised if there are too few primes
            fractions = rd.rational_reconstruct(found[good], primes[good].tolist(), common_axis=-1)
            break
    numbers, end = fractions.numerators.tolist(), 2 * size - 3
    bits = int(abs(fractions.numerators).max()).bit_length()
    print(f"{len(numbers)} integrals, coefficients of up to {bits} bits, {fractions.certainty}")
    functions = [[(fmpz_poly(x[:end]), fmpz_poly(x[end:])) for x in row] for row in numbers]
    return dict(zip(equations(size)[0], functions, strict=True))


def check(size: int, functions: dict[Any, Any], file: Path) -> str:
    """Check poles and equations, exactly, as polynomials, and write the functions as text."""
    common, lines = POLES ** (size - 2), []
    numerators = {m: [fmpq_poly(common) * (m == other) for other in MASTERS] for m in MASTERS}
    for pair, row in functions.items():
        if any(common * q[q.degree()] % q != 0 for _, q in row):
            raise SystemExit(f"error: I{pair} has poles beside the zeros of {POLES}")
        numerators[pair] = [fmpq_poly(common * q[q.degree()] // q * p, q[q.degree()]) for p, q in row]
        terms = [f"({p})/({q})*I{m}" for (p, q), m in zip(row, MASTERS, strict=True) if p != 0]
        lines.append(f"I{pair} = {' + '.join(terms)}\n".replace("x", "s"))
    for equation in equations(size)[1]:
        terms = [[x * fmpq_poly(list(value)) for x in numerators[pair]] for pair, value in equation.items()]
        if any(sum(column) != 0 for column in zip(*terms, strict=True)):
            raise SystemExit(f"error: the functions do not solve {equation}")
    file.write_text("".join(lines))
    return f"they solve all {len(lines)} equations, without poles but the zeros of s^2 - 8 s + 4: {file}"


def draw(functions: dict[Any, Any], picture: Path) -> None:
    """Draw the factor of I(1, 1) in some integrals."""
    with drawing(picture) as axes:
        s = np.linspace(-2, 12, 1401)
        for pair in [pair for pair in functions if all(pair) and sum(pair) <= 4]:
            p, q = (np.polyval([float(c) for c in x.coeffs()[::-1]], s) for x in functions[pair][0])
            axes.semilogy(s, abs(p / q), label=f"I{pair}")
        axes.set(xlabel="s", title="magnitude of the factor of I(1, 1)")
        axes.legend()


def main() -> None:
    o = parser_of(__doc__, 30, "greatest a + b, from 2 on", "folder for the functions", least=2).parse_args()
    with connected(o) as client:
        functions = reduce_integrals(o.folder, o.size, client, bool(o.gpus))
    print(check(o.size, functions, o.folder / f"{o.size}.txt"))
    if o.picture:
        draw(functions, o.picture)


if __name__ == "__main__":
    main()
