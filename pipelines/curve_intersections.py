"""Real points where two dense plane curves meet, all of them, by the real roots of their resultant.

    python pipelines/curve_intersections.py curves [--size 50] [--gpus 1] [--picture curves.svg]

The curves are random, of total degree n; those that are in the folder are taken. At n = 50 the resultant has
degree 2481 and coefficients of 10,200 bits, as in P. Emeliyanenko's example. Each of its real roots is the x
of one real point. Checked: FLINT's resultants at some x; that y is the only one is proved by intervals. The
picture has the whole plane.
"""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
from flint import acb_poly, fmpz_poly
from real_roots import real_roots
from running import compute, connected, drawing, parser_of

import rnsdask as rd

BITS = 79


def random_curve(size: int, degrees: tuple[int, int], seed: int) -> np.ndarray:
    """Return coefficients of y^i x^j, normal with the variances that no rotation of the plane changes."""
    normal = np.random.default_rng(seed).normal(size=[degree + 1 for degree in degrees])
    found = np.zeros(normal.shape, dtype=object)
    for i, j in np.argwhere(np.add.outer(*map(np.arange, normal.shape)) <= size).tolist():
        weight = math.isqrt(math.comb(size, i) * math.comb(size - i, j) << 2 * BITS)
        found[i, j] = int(normal[i, j] * 2**50) * weight >> 50
    return found


def resultant(folder: Path, size: int, client: Any = None, gpu: bool = False) -> tuple[Any, ...]:
    """Return both curves and the coefficients of their resultant with respect to y; make what is missing."""
    stores = [folder / f"{name}.zarr" for name in ("first", "second", "resultant")]
    for k, store in enumerate(stores[:2]):
        if not store.exists():
            made = random_curve(size, (max(1, size - 4), max(1, size - 1 - 2 * k)), k)
            rd.from_ints(made, bits=int(abs(made).max()).bit_length() + 1).to_zarr(store)
    curves = [rd.open_zarr(store, backend="cuda" if gpu else "auto") for store in stores[:2]]
    if not stores[2].exists():
        (found,) = compute([rd.poly.resultant(*curves, variables=2)], client, gpu)
        rd.from_ints(np.trim_zeros(found, "b")).to_zarr(stores[2])
    return *(x.to_ints() for x in curves), rd.open_zarr(stores[2]).to_ints()


def points_of(folder: Path, curves: list[Any], coefficients: list[int]) -> list[list[str]]:
    """Return x and y of all real points, 30 digits: each real root of the resultant has one y."""
    if not (file := folder / "points.json").exists():
        points = []
        for x in sorted(real_roots(coefficients)):
            f, g = (acb_poly([fmpz_poly(row)(x) for row in curve.tolist()]) for curve in curves)
            common = [y.real for y in f.roots(tol=1e-20) if y.imag.contains(0) and g(y).contains(0)]
            if len(common) != 1:
                raise SystemExit(f"error: {len(common)} points have x = {x}")
            points.append([v.str(30, radius=False) for v in (x, *common)])
        file.write_text(json.dumps(points, indent=0))
    return json.loads(file.read_text())


def check(curves: list[Any], coefficients: list[int]) -> str:
    """Compare the resultant with FLINT's at some x."""
    for x in range(-2, 3):
        f, g = (fmpz_poly([int(fmpz_poly(row)(x)) for row in curve.tolist()]) for curve in curves)
        if f.resultant(g) != fmpz_poly(coefficients)(x):
            raise SystemExit(f"error: FLINT has another resultant at x = {x}")
    bits = max(map(abs, coefficients)).bit_length()
    return (
        f"resultant of degree {len(coefficients) - 1} with coefficients of {bits} bits, FLINT's at 5 points"
    )


def draw(curves: list[Any], points: list[list[str]], size: int, picture: Path) -> None:
    """Draw the plane as seen from the centre of a sphere that it touches, on a map that keeps areas."""
    u, v = np.meshgrid(*[np.linspace(-1, 1, 301)] * 2)
    z = np.clip(1 - u * u - v * v, 1e-3, None)
    a, b = (w * np.sqrt(1 + z) / z for w in (u, v))
    x, y = np.array(points, dtype=float).T
    length = np.sqrt(1 + x * x + y * y)
    with drawing(picture, 5, 5) as axes:
        for curve, color in zip(curves, ("C0", "C1"), strict=True):
            scaled = (curve / abs(curve).max()).astype(float)
            values = np.polynomial.polynomial.polyval2d(b, a, scaled) * z**size
            axes.contour(u, v, np.where(z > 1e-3, values, np.nan), [0], colors=color, linewidths=0.8)
        axes.plot(*(w / np.sqrt(length * (length + 1)) for w in (x, y)), "ko", markersize=3)
        axes.set(title=f"{len(points)} real points of two curves of degree {size}", aspect="equal")
        axes.axis("off")


def main() -> None:
    options = parser_of(__doc__, 50, "degree of both curves, from 2 on", least=2).parse_args()
    with connected(options) as client:
        *curves, found = resultant(options.folder, options.size, client, bool(options.gpus))
    coefficients = found.tolist()
    print(check(curves, coefficients))
    points = points_of(options.folder, curves, coefficients)
    print(f"{len(points)} real points: {options.folder}/points.json")
    if options.picture:
        draw(curves, points, options.size, options.picture)


if __name__ == "__main__":
    main()
