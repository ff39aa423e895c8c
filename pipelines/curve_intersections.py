"""Real points where two dense plane curves meet, all of them, by the real roots of their resultant.

    python pipelines/curve_intersections.py curves [--size 50] [--gpus 1] [--picture curves.svg]

The curves are random, of total degree n; those in the folder are taken. Each real root of the resultant is
the x of one point. Checked: FLINT's resultants at some x; intervals prove that no root or y is missed.
"""

from functools import partial
from math import comb, isqrt
from pathlib import Path
from typing import Any

import numpy as np
from flint import acb, acb_poly, arb, arb_poly, ctx, fmpz_poly
from running import compute, connected, drawing, parser_of, stored

import rnsdask as rd


def random_curve(size: int, which: int) -> rd.RNSArray:
    """Return coefficients of y^i x^j, normal with the variances that no rotation of the plane changes."""
    normal = np.random.default_rng(which).normal(size=(max(2, size - 3), max(2, size - 2 * which)))
    found = np.zeros(normal.shape, dtype=object)
    for i, j in np.argwhere(np.add.outer(*map(np.arange, normal.shape)) <= size).tolist():
        found[i, j] = int(normal[i, j] * 2**50) * isqrt(comb(size, i) * comb(size - i, j) << 158) >> 50
    return rd.from_ints(found, bits=int(abs(found).max()).bit_length() + 1)


def resultant(folder: Path, size: int, client: Any = None, gpu: bool = False) -> list[np.ndarray]:
    """Return both curves and the coefficients of their resultant with respect to y; make what is missing."""
    f, g = (
        stored(folder / f"{name}.zarr", partial(random_curve, size, k), backend="cuda" if gpu else "cpu")
        for k, name in enumerate(("first", "second"))
    )
    task = rd.poly.resultant(f, g, variables=2)
    found = stored(folder / "resultant.zarr", lambda: rd.from_ints(compute([task], client, gpu)[0]))
    return [f.to_ints(), g.to_ints(), np.trim_zeros(found.to_ints(), "b")]


def real_roots(coefficients: list[int], bits: int = 600, terms: int = 80) -> list[arb]:
    """Return all real roots of f, by Taylor polynomials of F(t) = f(tan(t)) cos(t)^d around some angles."""
    ctx.prec = 3 * len(coefficients) + bits
    c = acb_poly(fmpz_poly(coefficients))(acb_poly([acb(0, -1), acb(0, 2)])).coeffs()[::-1]
    c = acb_poly(c)(acb_poly([1, 1])).coeffs()  # F(t) = sum of c_k e^((2 k - d) i t)
    ctx.prec, degree, found, series = bits, len(c) - 1, [], []
    half = arb.pi() / (2 * (count := 4 * isqrt(degree) + 4))  # half of the step of angles
    angles = [(count - 1 - 2 * k + arb(1) / 3) * half for k in range(count)]  # none is halved at 45 degrees
    c = [x * acb(0, 2 * j * angles[0]).exp() for j, x in enumerate(c)]
    for k in range(1, terms + 1):
        series.append(acb.dft([sum(c[j::count], acb(0)) for j in range(count)]))
        c = [x * acb(0, (2 * j - degree) * half) / k for j, x in enumerate(c)]
    error = arb_poly([arb(0, sum((abs(x) for x in c), arb(0)).abs_upper())])  # the next term, at any angle
    for middle, values in zip(angles, zip(*series, strict=True), strict=True):
        f = arb_poly([(acb(0, -degree * middle).exp() * x).real for x in values])
        zeros = separate(f + error, f.derivative() + terms * error, arb(-1), arb(1))
        found += [(middle + half * t).tan() for t in zeros]
    return found


def separate(f: arb_poly, slope: arb_poly, low: arb, high: arb) -> list[arb]:
    """Return all zeros in an interval of a function in f, whose derivative is in `slope`."""
    middle, part, signs = (low + high) / 2, low.union(high), f(low) * f(high)
    if not f(part).contains(0):
        return []
    if slope(part).contains(0) or signs.contains(0):
        if high - low < 2.0**-60:
            raise SystemExit("error: two points are too near one another")
        return separate(f, slope, low, middle) + separate(f, slope, middle, high)
    for _ in range(20 if signs < 0 else 0):  # Newton's method in intervals
        part = part.intersection(part.mid() - f(part.mid()) / slope(part))
    return [part] if signs < 0 else []


def check(curves: list[Any], coefficients: list[int]) -> list[tuple[arb, arb]]:
    """Return all real points, one for each real root; compare the resultant with FLINT's at some x."""
    for x in range(-2, 3):
        f, g = (fmpz_poly([int(fmpz_poly(row)(x)) for row in curve.tolist()]) for curve in curves)
        if f.resultant(g) != fmpz_poly(coefficients)(x):
            raise SystemExit(f"error: FLINT has another resultant at x = {x}")
    points = []
    for x in sorted(real_roots(coefficients)):
        f, g = (acb_poly([fmpz_poly(row)(x) for row in curve.tolist()]) for curve in curves)
        common = [y.real for y in f.roots(tol=1e-20) if y.imag.contains(0) and g(y).contains(0)]
        if len(common) != 1:
            raise SystemExit(f"error: {len(common)} points have x = {x}")
        points.append((x, *common))
    return points


def draw(curves: list[Any], points: list[tuple[arb, arb]], picture: Path) -> None:
    """Draw the plane as seen from the centre of a sphere that it touches, on a map that keeps areas."""
    u, v = np.meshgrid(*[np.linspace(-1, 1, 301)] * 2)
    z = np.where(u * u + v * v < 0.999, 1 - u * u - v * v, np.nan)
    a, b = (w * np.sqrt(1 + z) / z for w in (u, v))
    x, y = np.array(points, dtype=float).T
    length = np.sqrt(1 + x * x + y * y)
    with drawing(picture, 5, 5) as axes:
        for k, curve in enumerate(curves):
            values = np.polynomial.polynomial.polyval2d(b, a, curve) * z ** sum(curve.nonzero()).max()
            axes.contour(u, v, values, [0], colors=f"C{k}", linewidths=0.8)
        axes.plot(*(w / np.sqrt(length * (length + 1)) for w in (x, y)), "ko", markersize=3)
        axes.set(title=f"{len(points)} real points of two curves", aspect="equal")
        axes.axis("off")


def main() -> None:
    o = parser_of(__doc__, 50, "degree of both curves", least=2).parse_args()
    with connected(o) as client:
        *curves, found = resultant(o.folder, o.size, client, bool(o.gpus))
    points, bits = check(curves, found.tolist()), max(map(abs, found)).bit_length()
    print(f"resultant of degree {len(found) - 1} with coefficients of {bits} bits, FLINT's at 5 points")
    np.savetxt(o.folder / "points.txt", [[v.str(30, radius=False) for v in point] for point in points], "%s")
    print(f"{len(points)} real points: {o.folder}/points.txt")
    if o.picture:
        draw([(x / abs(x).max()).astype(float) for x in curves], points, o.picture)


if __name__ == "__main__":
    main()
