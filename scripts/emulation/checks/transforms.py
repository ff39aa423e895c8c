"""Number-theoretic transforms, in one pass and in several, and the products that they are for."""

from typing import Any
from unittest.mock import patch

import numpy as np

from emulation.checks import Place, check, not_by_ptx, words
from rnsdask.backend.cuda import launching, ntt, ntt_shapes
from rnsdask.backend.cuda.ntt_shapes import Shape
from rnsdask.constants import transform_constants
from rnsdask.core.moduli import ModuliSet
from rnsdask.positional import multiply as transforms

SETS = ModuliSet([469762049]), ModuliSet([469762049, 4293918721])
"""A narrow prime, and a wide one beside it."""


def transformed(kernels: Any, place: Place, lengths: list[int], moduli: ModuliSet) -> list[Any]:
    """Two runs by passes of so many lengths, forward and back, and products by as many runs and by one."""
    results = []
    length = 2 ** sum(lengths)
    primes = np.array(list(moduli), np.uint32)[:, None]
    x, y = (words(len(moduli), 2 * length, seed) % primes for seed in (24, 25))
    x[:, ::5] = y[:, ::5] = primes - 1
    both = [transform_constants(moduli, length, inverse) for inverse in (False, True)]
    longest = {"_longest_row": lambda: lengths[-1], "_cut": lambda _: lengths, "_BETWEEN": 2 * length}
    with patch.multiple(ntt, **longest, _cut_product=lambda _: lengths[:-1]):
        for constants in both:
            out = place(np.empty_like(x))
            kernels.ntt(place(x), constants, out)
            results.append(out)
        for other in (y, y[:, :length]):
            out = place(np.empty_like(x))
            kernels.cyclic_products(place(x), place(other), *both, out)
            results.append(out)
    return results


@check
def transforms_in_one_pass(kernels: Any, place: Place) -> list[Any]:
    return [r for log in (1, 4, 6) for moduli in SETS for r in transformed(kernels, place, [log], moduli)]


@check
def transforms_in_passes(kernels: Any, place: Place) -> list[Any]:
    return [r for logs in ([3, 4], [3, 3, 4]) for r in transformed(kernels, place, logs, SETS[1])]


def few_tiles(tiles: int, _blocks: int, _log_tile: int, unit: int) -> tuple[int, int, int, int]:
    """Groups of no more tiles than must be, two of which are between the passes."""
    return unit, -(-tiles >> unit), 1 << unit, 2


@check
@not_by_ptx("what one block tells another")
def transforms_in_one_launch(kernels: Any, place: Place) -> list[Any]:
    """The last two passes, over whole transforms or parts of them, in place and forward and back."""
    shapes = {7: Shape(4, 2, 2, 4), 8: Shape(4, 3, 3, 4), 9: Shape(5, 2, 2, 5)}
    results = []
    for log, matrix in ((7, 7), (8, 8), (9, 9), (10, 7), (11, 8)):
        cut = {"_longest_row": lambda: 4, "_OVERLAPPED": {log: matrix}, "_BETWEEN": 2 ** (log + 1)}
        large = patch.object(launching, "is_hopper", lambda _: True)
        cache = patch.object(launching, "cache_bytes", lambda _: 2**26)
        tiles = patch.dict(ntt_shapes._OVERLAPPED, shapes)
        with patch.multiple(ntt, **cut, _groups=few_tiles), large, cache, tiles:
            for moduli in SETS:
                x = words(len(moduli), 5 << log, 26) % np.array(list(moduli), np.uint32)[:, None]
                for inverse in (False, True):
                    out = place(x)
                    kernels.ntt(out, transform_constants(moduli, 2**log, inverse), out)
                    results.append(out)
    return results


@check
def transformed_products(kernels: Any, place: Place) -> list[Any]:
    """Products of integers as limbs: pairwise, by one factor for all, and squares."""
    results = []
    for x_rows, y_rows, count in ((40, 40, 3), (130, 70, 2), (9, 200, 5)):
        x, y = place(words(x_rows, count, 20)), place(words(y_rows, count, 21))
        x[:, -1] = 2**32 - 1
        with patch.object(transforms, "kernels_of", lambda _: kernels):
            pairs = (x, y), (x, y[:, :1]), (x, x)
            results += [transforms.transformed_product(*pair, count) for pair in pairs]
    return results
