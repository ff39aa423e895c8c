"""Plain transforms modulo small primes, on the CPU and on a GPU, for bench_fermat.py.

They are the three that the paper's authors compare with, radix 2 and one level after the other: J. Cooley and
J. Tukey's, in place after a reversal of bits, with powers of the root that are computed or stored, and
T. Stockham's, which needs no reversal, with stored ones. Computed powers are a running product on the CPU; on
a GPU each butterfly raises a root to its power.
"""

import ctypes
import functools
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from benchmarking import compile_for_cpu, compile_for_gpu

from rnsdask import ModuliSet
from rnsdask.backend import to_backend
from rnsdask.constants import modulus_table, transform_constants

VARIANTS = ("Cooley-Tukey", "Cooley-Tukey, stored", "Stockham")
SOURCES = Path(__file__).resolve().parent / "kernels"


def factors(values: np.ndarray, primes: ModuliSet) -> np.ndarray:
    """Pairs for Shoup's multiplication, (n, count, 2), of values (n, count)."""
    sizes = np.array(list(primes), dtype=np.uint64)[:, None]
    return np.stack([values, (values << np.uint64(32)) // sizes], axis=-1).astype(np.uint32)


def roots_of_levels(primes: ModuliSet, length: int) -> np.ndarray:
    """Factors of roots of order 2, 4, ..., length, for each prime."""
    orders = [2**level for level in range(1, length.bit_length())]
    roots = [transform_constants(primes, order, False).roots.astype(np.uint64) for order in orders]
    return factors(np.stack(roots, axis=1), primes)


def stored_powers(primes: ModuliSet, length: int) -> np.ndarray:
    """Factors ``w**k`` for k < length / 2, for each prime's root w of order `length`."""
    sizes = np.array(list(primes), dtype=np.uint64)[:, None]
    w = transform_constants(primes, length, False).roots.astype(np.uint64)[:, None]
    powers = np.ones((len(primes), length // 2), dtype=np.uint64)
    known = 1
    while known < length // 2:
        powers[:, known : 2 * known] = powers[:, :known] * w % sizes
        known, w = 2 * known, w * w % sizes
    return factors(powers, primes)


class CpuTransforms:
    """On one thread of the CPU."""

    def __init__(self, folder: Path) -> None:
        self._functions = compile_for_cpu(SOURCES / "small_prime_ffts.cpp", folder)

    def calls(self, x: np.ndarray, primes: ModuliSet) -> dict[str, Callable[[], np.ndarray]]:
        """For each of `VARIANTS` a call that returns the transforms of x (n, length >= 2), contiguous."""
        length = x.shape[1]
        roots, powers = roots_of_levels(primes, length), stored_powers(primes, length)
        moduli = modulus_table(primes)
        return {
            "Cooley-Tukey": partial(self._call, "cooley_tukey", x, roots, moduli),
            "Cooley-Tukey, stored": partial(self._call, "cooley_tukey_stored", x, powers, moduli),
            "Stockham": partial(self._call, "stockham", x, powers, moduli, np.empty_like(x[0])),
        }

    def _call(self, name: str, x: np.ndarray, table: np.ndarray, moduli: np.ndarray, *buffer: Any) -> Any:
        rows, length = x.shape
        out = np.empty_like(x)
        before, after = (
            [ctypes.c_void_p(array.ctypes.data) for array in arrays]
            for arrays in ((x, table, moduli), (out, *buffer))
        )
        sizes = ctypes.c_int64(rows), ctypes.c_int64(length.bit_length() - 1)
        getattr(self._functions, name)(*before, *sizes, *after)
        return out


class GpuTransforms:
    """On the current GPU: a launch for each level of all rows."""

    def __init__(self) -> None:
        # Looked up once, so that no launch that is timed does.
        self._function = functools.cache(compile_for_gpu(SOURCES / "small_prime_ffts.cu").get_function)

    def calls(self, x: Any, primes: ModuliSet) -> dict[str, Callable[[], Any]]:
        """Return the transforms by name, as :meth:`CpuTransforms.calls` does."""
        length = x.shape[1]
        roots, powers, moduli = (
            to_backend(table, "cuda")
            for table in (
                roots_of_levels(primes, length),
                stored_powers(primes, length),
                modulus_table(primes),
            )
        )
        return {
            "Cooley-Tukey": partial(self._cooley_tukey, "cooley_tukey", x, roots, moduli),
            "Cooley-Tukey, stored": partial(self._cooley_tukey, "cooley_tukey_stored", x, powers, moduli),
            "Stockham": partial(self._stockham, x, powers, moduli),
        }

    def launch(self, name: str, threads: int, *arguments: Any) -> None:
        from rnsdask.backend.cuda.launching import BLOCKS_PER_PROCESSOR, processors
        from rnsdask.backend.cuda.layout import BLOCK

        blocks = min(-(-threads // BLOCK), BLOCKS_PER_PROCESSOR * processors(0))
        self._function(name)((blocks,), (BLOCK,), arguments)

    def _cooley_tukey(self, name: str, x: Any, table: Any, moduli: Any) -> Any:
        out = np.empty_like(x)
        sizes, levels = _sizes(x)
        self.launch("reverse_bits", x.size, x, *sizes, out)
        for level in levels:
            self.launch(name, x.size // 2, table, moduli, *sizes, level, out)
        return out

    def _stockham(self, x: Any, powers: Any, moduli: Any) -> Any:
        targets = np.empty_like(x), np.empty_like(x)
        sizes, levels = _sizes(x)
        for level in levels:
            self.launch("stockham", x.size // 2, x, powers, moduli, *sizes, level, targets[level % 2])
            x = targets[level % 2]
        return x


def _sizes(x: Any) -> tuple[tuple[np.int32, np.int32], list[np.int32]]:
    """Rows and bits of a length, and the levels of its transform."""
    bits = x.shape[1].bit_length() - 1
    return (np.int32(x.shape[0]), np.int32(bits)), [np.int32(level) for level in range(bits)]
