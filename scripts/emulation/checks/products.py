"""Products of integers as limbs, of one thread, of several lanes, of halves and by transforms."""

from typing import Any

import numpy as np

from emulation.checks import Place, check, limbs_of, words


def products(
    kernels: Any, place: Place, factors: tuple[Any, Any], bits: int, addend: Any = None, signed: bool = False
) -> list[Any]:
    """So many bits of products, without flags and with those of overflow."""
    count, results = factors[0].shape[1], []
    for flags in (None, place(np.empty(count, np.bool_))):
        out = place(np.empty((-(-bits // 32), count), np.uint32))
        kernels.positional_multiply(*factors, addend, bits, signed, out, flags)
        results += [out, *([] if flags is None else [flags])]
    return results


@check
def positional_products(kernels: Any, place: Place) -> list[Any]:
    results = []
    for rows, others, bits, signed in ((1, 1, 64, False), (4, 3, 200, True), (9, 9, 288, False)):
        x, y = place(words(rows, 130, 3)), place(words(others, 130, 4))
        results += products(kernels, place, (x, y), bits, None, signed)
    return results


@check
def products_by_lanes(kernels: Any, place: Place) -> list[Any]:
    """Plain ones too long for one thread's registers, whole, cut, and checked; low ones by halves."""
    results = []
    for rows, others, bits, count in (
        (65, 1, 66 * 32, 33),
        (64, 64, 128 * 32 - 1, 5),
        (128, 129, 257 * 32, 1),
        (129, 65, 100 * 32 - 31, 3),
        (70, 60, 65 * 32 - 5, 31),  # by halves where no flags are asked for
        (20, 90, 131 * 32, 2),  # more than the product has
    ):
        x, y = (words(n, count, seed) for n, seed in ((rows, 13), (others, 14)))
        x[:, 0], y[:, -1] = 2**32 - 1, 2**32 - 1
        if others == 1:  # a carry that passes lanes of all ones: 3 (2^32k - 1) / 3 + 3 2^32j
            x[:, 1], y[:, 1] = (2**32 - 1) // 3, 3
            x[20, 1] += 1
        results += products(kernels, place, (place(x), place(y)), bits)
    return results


@check
def products_of_halves(kernels: Any, place: Place) -> list[Any]:
    """Equal halves, which differ by 0; halves of either order; carries through all limbs; odd lengths."""
    results = []
    for rows, others in ((64, 64), (37, 40), (128, 128), (121, 117), (255, 251), (112, 97)):
        ones = 2 ** (32 * rows) - 1
        half = 2 ** (16 * 32 * -(-rows // 32 // 2) * 2)
        a = (ones, ones, half - 1, half, half + 1, ones // (half - 1), ones - half, ones // 3, 0, ones)
        b = (ones, 1, half + 1, half - 1, half - 1, ones, half, 3, ones, half)
        x, y = words(rows, 40, 22), words(others, 40, 23)
        x[:, : len(a)], y[:, : len(b)] = limbs_of(a, rows), limbs_of(b, others)
        for j in range(12, 16):  # all orders of halves of two values
            x[: rows // 2, j], x[rows // 2 :, j] = j & 1, j >> 1 & 1
            y[: others // 2, j], y[others // 2 :, j] = 1, 2**32 - 1
        for bits in (32 * (rows + others), 32 * (rows + others) + 7):
            out = place(np.empty((-(-bits // 32), 40), np.uint32))
            kernels.positional_multiply(place(x), place(y), None, bits, False, out, None)
            results.append(out)
    return results


@check
def carries_that_pass_all_limbs(kernels: Any, place: Place) -> list[Any]:
    results = []
    for rows in (34, 127):  # lanes of 18 and of 32 limbs
        ones = 2 ** (32 * rows) - 1
        a, b = (ones, ones, ones // 3, ones // 3 + 2**640, ones - 2**32), (ones, 1, 3, 3, 2**32 + 1)
        x, y = (place(limbs_of(numbers, rows)) for numbers in (a, b))
        for addend, signed in ((None, False), (None, True), (x, False)):
            out = place(np.empty((2 * rows, len(a)), np.uint32))
            kernels.positional_multiply(x, y, addend, 64 * rows, signed, out, None)
            results.append(out)
    return results


@check
def products_with_addends(kernels: Any, place: Place) -> list[Any]:
    """The addend in the result's memory, and of one number for all."""
    results = []
    for rows, others, more, bits, signed in (
        (3, 2, 5, 160, False),
        (2, 2, 7, 199, True),
        (40, 40, 80, 80 * 32 - 1, False),
        (66, 3, 69, 69 * 32, True),
        (70, 66, 140, 137 * 32 - 9, True),  # by rows of four lanes
        (36, 40, 1, 76 * 32, True),  # of two, and of one
        (33, 31, 90, 80 * 32 - 1, True),
        (70, 66, 140, 138 * 32 - 1, False),
    ):
        x, y, addend = (place(words(n, 33, seed)) for n, seed in ((rows, 15), (others, 16), (more, 17)))
        results += products(kernels, place, (x, y), bits, addend[:, :1].copy(), signed)
        if -(-bits // 32) == more:
            kernels.positional_multiply(x, y, addend, bits, signed, addend, None)
            results.append(addend)
    return results
