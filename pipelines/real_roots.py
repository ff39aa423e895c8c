"""All real roots of a polynomial of integers, proved to be all by intervals, for degrees up to thousands.

At x = tan(t) the polynomial times cos(t)^d is a trigonometric polynomial. Between neighbouring angles a
Taylor polynomial in balls (Arb) holds it.
"""

import math

from flint import acb, acb_poly, arb, arb_poly, ctx, fmpz_poly

BITS, TERMS = 600, 80


def fourier(coefficients: list[int]) -> list[acb]:
    """Return the c_k of F(t) = sum of c_k e^((2 k - d) i t), the polynomial at tan(t) times cos(t)^d."""
    ctx.prec = 3 * len(coefficients) + BITS
    moved = acb_poly(fmpz_poly(coefficients))(acb_poly([acb(0, -1), acb(0, 2)]))
    found = acb_poly(moved.coeffs()[::-1])(acb_poly([1, 1])).coeffs()
    ctx.prec = BITS
    scale = max(c.abs_upper() for c in found)
    return [c / scale for c in found]


def real_roots(coefficients: list[int]) -> list[arb]:
    """Return all real roots of a polynomial, proved to be all; an error if two are too close."""
    c = fourier(coefficients)
    degree, found, series = len(c) - 1, [], []
    count = 4 * math.isqrt(degree) + 4
    half = arb.pi() / (2 * count)  # of the angles from one Taylor polynomial to the next
    angles = [(count - 1 - 2 * k + arb(1) / 3) * half for k in range(count)]  # none is halved at 45 degrees
    c = [x * acb(0, 2 * j * angles[0]).exp() for j, x in enumerate(c)]
    for k in range(1, TERMS + 1):
        series.append(acb.dft([sum(c[j::count], acb(0)) for j in range(count)]))
        c = [x * acb(0, (2 * j - degree) * half) / k for j, x in enumerate(c)]
    error = arb(0, sum((abs(x) for x in c), arb(0)).abs_upper())  # the next term, at any angle
    for middle, values in zip(angles, zip(*series, strict=True), strict=True):
        turn = acb(0, -degree * middle).exp()
        terms = [(turn * x).real for x in values]
        slopes = [j * x for j, x in enumerate(terms)][1:]
        f, slope = ([x + more, *rest] for (x, *rest), more in ((terms, error), (slopes, TERMS * error)))
        found += [(middle + half * t).tan() for t in separated(arb_poly(f), arb_poly(slope))]
    return found


def separated(f: arb_poly, slope: arb_poly) -> list[arb]:
    """Return the zeros from -1 to 1 of a function in f, where its derivative is in `slope`."""
    found, todo = [], [(arb(-1), arb(1))]
    while todo:
        low, high = todo.pop()
        middle, part = (low + high) / 2, low.union(high)
        if not f(part).contains(0):
            continue
        signs = f(low) * f(high)
        if slope(part).contains(0) or signs.contains(0):
            if high - low < 2.0**-60:
                raise SystemExit("error: two points are too near one another")
            todo += [(low, middle), (middle, high)]
        elif signs < 0:  # Newton's method in intervals
            for _ in range(20):
                part = part.intersection(middle - f(middle) / slope(part))
                middle = part.mid()
            found.append(part)
    return found
