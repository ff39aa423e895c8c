"""Sums, products and powers modulo long numbers."""

from typing import Any

import numpy as np

from emulation.checks import Place, check, integers_of, limbs_of, words


def odd_modulus(rows: int, count: int) -> tuple[np.ndarray, list[int]]:
    """Moduli of so many limbs, the greatest first, as limbs and as integers."""
    m = words(rows, count, 8)
    m[:, 0] = 2**32 - 1
    m[0] |= 1
    m[-1] |= np.uint32(2**31)
    return m, integers_of(m)


def squares(kernels: Any, rows: int, moduli: list[int]) -> np.ndarray:
    return limbs_of([(1 << 2 * kernels.montgomery_bits(rows)) % m for m in moduli], rows)


@check
def montgomery_products(kernels: Any, place: Place) -> list[Any]:
    results = []
    for rows, count, moduli in (
        (1, 70, 1),
        (4, 33, 33),
        (32, 3, 1),
        (33, 31, 1),  # four lanes
        (64, 9, 9),
        (65, 5, 1),  # eight
        (129, 3, 3),  # sixteen
        (257, 1, 1),  # thirty-two
    ):
        m, values = odd_modulus(rows, moduli)
        x, y = (words(rows, count, seed) for seed in (9, 10))
        x[:, -1] = 2**32 - 1  # of any limbs, y below the modulus
        y[-1] >>= np.uint32(1)
        out = place(np.empty((rows, count), np.uint32))
        square = place(squares(kernels, rows, values))
        kernels.montgomery_multiply(place(x[: max(1, rows - 1)].copy()), place(y), place(m), square, out)
        results.append(out)
    return results


@check
def montgomery_powers(kernels: Any, place: Place) -> list[Any]:
    sizes = (1, 130, 1, 0), (3, 33, 33, 64), (36, 9, 9, 7), (72, 5, 1, 33)
    return [powers(kernels, place, *size) for size in sizes]


@check
def squares_by_lanes(kernels: Any, place: Place) -> list[Any]:
    """Squares within powers, by two, four and eight lanes: -1, equal halves, and moduli of all ones."""
    sizes = (40, 17, 17, 9), (128, 9, 9, 13), (128, 9, 1, 4), (160, 5, 1, 7), (256, 5, 5, 3)
    return [powers(kernels, place, *size) for size in sizes]


def powers(kernels: Any, place: Place, rows: int, count: int, moduli: int, bits: int) -> np.ndarray:
    m, values = odd_modulus(rows, moduli)
    x, exponents = words(rows, count, 18), words(max(1, -(-bits // 32)), count, 19)
    exponents[-1] &= np.uint32((1 << (bits - 1) % 32 + 1) - 1 if bits else 0)
    x[-1] >>= np.uint32(1)
    x[: rows // 2, -1] = x[rows - rows // 2 :, -1]
    x[:, 0] = m[:, 0]
    x[0, 0] -= 1
    out = place(np.empty((rows, count), np.uint32))
    square = place(squares(kernels, rows, values))
    kernels.montgomery_power(place(x), place(exponents), bits, place(m), square, out)
    return out


@check
def modular_sums(kernels: Any, place: Place) -> list[Any]:
    """Sums at the modulus, and differences of equal numbers; and operands that are not below it."""
    results: list[Any] = []
    for rows, count in ((1, 33), (2, 31), (16, 5), (17, 5), (128, 3), (129, 2)):
        m, values = odd_modulus(rows, count)
        x = words(rows, count, 20)
        x[-1] >>= np.uint32(1)
        others = [m - z for m, z in zip(values, integers_of(x), strict=True)]
        for y in (x, *(limbs_of([z + more for z in others], rows) for more in (-1, 0, 1))):
            for subtract in (False, True):
                out = place(np.empty((rows, count), np.uint32))
                are_reduced = kernels.positional_mod_add(place(x), place(y), place(m), subtract, out)
                results += [np.array(are_reduced), *([out] if are_reduced else [])]
        out = place(np.empty((rows, count), np.uint32))
        results.append(np.array(kernels.positional_mod_add(place(x), place(m), place(m), False, out)))
    return results
