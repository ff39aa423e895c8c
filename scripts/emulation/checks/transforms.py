"""Number-theoretic transforms, in one pass and in several, and the products that they are for."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np

from emulation.checks import Place, check, not_by_ptx, words
from rnsdask.backend import padded
from rnsdask.backend.cuda import launching, ntt, ntt_shapes
from rnsdask.backend.cuda.ntt_shapes import Shape
from rnsdask.constants import transform_constants, twists
from rnsdask.core.moduli import ModuliSet
from rnsdask.core.primes import primes_below
from rnsdask.core.wide_moduli import WideModuli
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
    longest = {"longest_row": lambda _: lengths[-1], "cut_length": lambda *_: lengths, "BETWEEN": 2 * length}
    with patch.multiple(ntt, **longest, cut_product=lambda _: lengths[:-1]):
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


def in_passes(lengths: list[int]) -> Any:
    """Cut transforms into passes of such lengths, as logarithms."""
    cut = {"longest_row": lambda _: 1, "cut_length": lambda *_: lengths, "BETWEEN": 2 << sum(lengths)}
    return patch.multiple(ntt, **cut)


def few_tiles(tiles: int, _blocks: int, _log_tile: int, unit: int) -> tuple[int, int, int, int]:
    """Groups of no more tiles than must be, two of which are between the passes."""
    return unit, -(-tiles >> unit), 1 << unit, 2


@contextmanager
def in_one_launch(log: int, matrix: int, shapes: dict[int, Shape]) -> Iterator[None]:
    """Transform matrices of such logarithms in one launch, in tiles of such shapes."""
    cut = {"longest_row": lambda _: 4, "_OVERLAPPED": {log: matrix}, "BETWEEN": 2 ** (log + 1)}
    with (
        patch.multiple(ntt, **cut, _groups=few_tiles),
        patch.multiple(launching, is_hopper=lambda _: True, cache_bytes=lambda _: 2**26),
        patch.dict(ntt_shapes._OVERLAPPED, shapes),
        patch.dict(ntt_shapes._WIDE_OVERLAPPED, {k: replace(shape, word=8) for k, shape in shapes.items()}),
    ):
        yield


@check
@not_by_ptx("what one block tells another")
def transforms_in_one_launch(kernels: Any, place: Place) -> list[Any]:
    """The last two passes, over whole transforms or parts of them, in place and forward and back."""
    shapes = {7: Shape(4, 2, 2, 4), 8: Shape(4, 3, 3, 4), 9: Shape(5, 2, 2, 5)}
    results = []
    for log, matrix in ((7, 7), (8, 8), (9, 9), (10, 7), (11, 8)):
        with in_one_launch(log, matrix, shapes):
            for moduli in SETS:
                x = words(len(moduli), 5 << log, 26) % np.array(list(moduli), np.uint32)[:, None]
                for inverse in (False, True):
                    out = place(x)
                    kernels.ntt(out, transform_constants(moduli, 2**log, inverse), out)
                    results.append(out)
    return results


WIDE_SETS = tuple(
    WideModuli(tuple(next(primes_below(2**bits, 2**20)) for bits in widths))
    for widths in ((60,), (33, 50, 62), (61, 63), (64,))
)
"""Primes of each arithmetic of words of 8 bytes, and of several widths together."""


def wide_words(moduli: WideModuli, count: int, seed: int) -> np.ndarray:
    """Residues, many of which are p - 1."""
    random = np.random.default_rng(seed)
    primes = np.array(list(moduli), np.uint64)[:, None]
    x = random.integers(2**64, size=(len(moduli), count), dtype=np.uint64) % primes
    return np.where(random.integers(3, size=x.shape) == 0, primes - np.uint64(1), x)


def wide_transformed(kernels: Any, place: Place, log: int, runs: int) -> list[Any]:
    """Transforms modulo long primes, forward and back, in place and not."""
    results = []
    for moduli in WIDE_SETS:
        x = place(wide_words(moduli, runs << log, 27))
        for inverse in (False, True):
            out = place(np.empty_like(x))
            kernels.ntt(x, transform_constants(moduli, 2**log, inverse), out)
            results.append(out)
    return results


def conventions(kernels: Any, place: Place, log: int, runs: int) -> list[Any]:
    """Negacyclic transforms modulo primes of each arithmetic, forward and back, in either order."""
    results = []
    for moduli in (*SETS, *WIDE_SETS):
        if isinstance(moduli, WideModuli):
            x = wide_words(moduli, runs << log, 29)
        else:
            x = words(len(moduli), runs << log, 29) % np.array(list(moduli), np.uint32)[:, None]
        for inverse in (False, True):
            constants, psi = transform_constants(moduli, 1 << log, inverse), twists(moduli, 1 << log, inverse)
            for powers, is_reversed in ((psi, False), (psi, True), (None, True)):
                out = place(np.empty_like(x))
                how: dict[str, Any] = {"twists": powers, "is_inverse": inverse, "is_reversed": is_reversed}
                kernels.ntt(place(x), constants, out, **how)
                results.append(out)
    return results


@check
def conventions_in_one_pass(kernels: Any, place: Place) -> list[Any]:
    return [
        r
        for log, runs in ((0, 2), (1, 3), (4, 2), (7, 3), (9, 1))
        for r in conventions(kernels, place, log, runs)
    ]


@check
def conventions_in_passes(kernels: Any, place: Place) -> list[Any]:
    results = []
    for lengths in ([5, 5], [3, 3, 4]):
        with in_passes(lengths):
            results += conventions(kernels, place, sum(lengths), 2)
    return results


@check
@not_by_ptx("what one block tells another")
def conventions_in_one_launch(kernels: Any, place: Place) -> list[Any]:
    shapes = {8: Shape(4, 3, 3, 4), 10: Shape(5, 3, 3, 5)}
    results = []
    for log, matrix in ((10, 10), (11, 8)):
        with in_one_launch(log, matrix, shapes):
            results += conventions(kernels, place, log, 2)
    return results


@check
def wide_transforms_in_one_pass(kernels: Any, place: Place) -> list[Any]:
    return [
        r for log in (*range(8), 9) for runs in (1, 3) for r in wide_transformed(kernels, place, log, runs)
    ]


@check
def wide_transforms_in_passes(kernels: Any, place: Place) -> list[Any]:
    results = []
    for lengths in ([3, 4], [5, 5], [3, 3, 4]):
        with in_passes(lengths):
            results += wide_transformed(kernels, place, sum(lengths), 3)
    return results


@check
@not_by_ptx("what one block tells another")
def wide_transforms_in_one_launch(kernels: Any, place: Place) -> list[Any]:
    shapes = {7: Shape(4, 2, 2, 4), 8: Shape(4, 3, 3, 4), 9: Shape(5, 2, 2, 5)}
    results = []
    for log, matrix in ((7, 7), (8, 8), (9, 9), (10, 7), (11, 8)):
        with in_one_launch(log, matrix, shapes):
            results += wide_transformed(kernels, place, log, 5)
    return results


@check
def transformed_products(kernels: Any, place: Place) -> list[Any]:
    """Products of integers as limbs: pairwise, by one factor for all, and squares."""
    results = []
    for x_rows, y_rows, count in ((40, 40, 3), (130, 70, 2), (9, 200, 5)):
        x, y = place(words(x_rows, count, 20)), place(words(y_rows, count, 21))
        x[:, -1] = 2**32 - 1
        as_given = {"kernels_of": lambda _: kernels, "padded": lambda a, shape: place(padded(a, shape))}
        with patch.multiple(transforms, **as_given):
            pairs = (x, y), (x, y[:, :1]), (x, x)
            results += [transforms.transformed_product(*pair, count) for pair in pairs]
    return results
