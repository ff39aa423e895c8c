"""Sums, comparisons, shifts and quotients of integers as limbs, and how limbs lie."""

from typing import Any

import numpy as np

from emulation.checks import Place, check, words


@check
def limbs(kernels: Any, place: Place) -> list[Any]:
    results = []
    for rows, top_bits, signed in ((1, 1, True), (3, 32, True), (8, 5, False)):
        x, y = (place(words(rows, 300, seed)) for seed in (1, 2))
        x[-1] >>= np.uint32(32 - top_bits)
        y[-1] >>= np.uint32(32 - top_bits)
        out = place(np.empty((rows + 1, 300), np.uint32))
        for subtract in (False, True):
            flags = kernels.positional_add((x, y), (signed, signed), subtract, top_bits, signed, out)
            results += [out.copy(), flags]
        results.append(kernels.positional_compare(x, y[:, :1].copy(), signed))
        bits = place(np.arange(-150, 150, dtype=np.int64))
        results.append(kernels.positional_shift(x, bits, top_bits, signed))
        results += [kernels.positional_count(x, signed, what) for what in ("length", "ones", "twos_length")]
    return results


@check
def positional_division(kernels: Any, place: Place) -> list[Any]:
    results: list[Any] = []
    for rows, others in ((1, 1), (3, 1), (5, 3), (4, 4)):
        y = words(others, 130, 6)
        y[0] |= 1
        for signed in (False, True):
            found = kernels.positional_divmod(place(words(rows, 130, 5)), place(y), signed)
            results += [widened(numbers, rows + others, signed) for numbers in found]
    return results


def widened(numbers: np.ndarray, rows: int, signed: bool) -> np.ndarray:
    """So many limbs of numbers, for kernels may return as many as they like."""
    top = np.where(signed & (numbers[-1:] >> np.uint32(31)), np.uint32(2**32 - 1), np.uint32(0))
    return np.concatenate([numbers, np.repeat(top, rows - len(numbers), axis=0)])


@check
def transposition(kernels: Any, place: Place) -> list[Any]:
    """Tiles in shared memory, with barriers."""
    results = []
    for rows, count in ((1, 5), (33, 70), (64, 64), (100, 31)):
        out = place(np.empty((count, rows), np.uint32))
        kernels.transpose(place(words(rows, count, 7)), out)
        results.append(out)
    return results
