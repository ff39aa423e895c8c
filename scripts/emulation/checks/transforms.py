"""Number-theoretic transforms, in one pass and in several, and the products that they are for."""

from typing import Any
from unittest.mock import patch

import numpy as np

from emulation.checks import Place, check, words
from rnsdask.backend.cuda import ntt
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
