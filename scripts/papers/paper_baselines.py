"""The MAX of K. Isupov's paper (kernels/paper.cu), on the CPU and on a GPU, for bench_paper.py.

Each class has the same methods. A maximum is an index: of one of the greatest numbers, not always the first.
Residues are of shape (count, n) for the paper's layout, number after number, and of shape (n, count) for the
interleaved one; they must be contiguous.
"""

import ctypes
import functools
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from benchmarking import compile_for_cpu, compile_for_gpu

from rnsdask import ModuliSet
from rnsdask.constants import directed, interval_constants, mixed_radix_constants

SOURCES = Path(__file__).resolve().parent / "kernels"
ACCURACY = 1e-7

# As in kernels/paper.cuh.
EXTENDED = np.dtype([("fraction", np.float64), ("exponent", np.int64)])
EVALUATION = np.dtype([("low", EXTENDED), ("upp", EXTENDED), ("index", np.int64)])
_TABLES = np.dtype(
    [
        ("last", np.uint64),
        ("inverses", np.uint64),
        ("blocks", np.int64),
        ("powers", np.uint64),
        ("reciprocals", np.uint64),
        ("mixed_radix", np.uint64),
        ("psi", np.float64),
        ("least", EXTENDED),
        ("factor", np.int32),
    ],
    align=True,
)


def threshold(n: int) -> float:
    """The paper's psi: bounds from there on have the accuracy that is asked for."""
    return 4 * 2.0**-52 * n * math.log2(n) * (1 + ACCURACY / 2) / ACCURACY


def refinement_factor(n: int) -> int:
    """The paper's k, floor(log2(1 / (2 psi)))."""
    return math.floor(-math.log2(2 * threshold(n)))


def most_refinement_steps(moduli: ModuliSet) -> int:
    """Theorem 1: the steps that the original refinement takes at most."""
    return math.ceil((moduli.bits + math.log2(threshold(len(moduli)))) / refinement_factor(len(moduli)))


class _Tables:
    """The constants for one set, in the memory of a processor."""

    def __init__(self, moduli: ModuliSet, xp: Any) -> None:
        n = len(moduli)
        if n < 2 or n & (n - 1) or list(moduli) != sorted(moduli):
            raise ValueError(f"the baselines need 2, 4, 8, ... moduli in ascending order, got {n}")
        interval = interval_constants(moduli)
        arrays = (interval.last, interval.inverses, interval.powers, interval.reciprocals)
        last, inverses, powers, reciprocals = self._kept = [xp.asarray(array) for array in arrays]
        self._kept.append(xp.asarray(mixed_radix_constants(moduli).inverses))
        address = (lambda array: array.ctypes.data) if xp is np else (lambda array: array.data.ptr)
        least = directed(Fraction(2**moduli.bits, moduli.product))[0]
        self.fields = np.array(
            (
                address(last),
                address(inverses),
                inverses.shape[1] // 2,
                address(powers),
                address(reciprocals),
                address(self._kept[-1]),
                threshold(n),
                (least, -moduli.bits),
                refinement_factor(n),
            ),
            dtype=_TABLES,
        )


class CpuBaselines:
    """The paper's MAX on one thread of the CPU."""

    def __init__(self, moduli: ModuliSet, folder: Path) -> None:
        self.moduli = moduli
        self._tables = _Tables(moduli, np)
        self._functions = compile_for_cpu(SOURCES / "paper.cpp", folder, f"-DRNS_MODULI={len(moduli)}")
        for name in ("reduce_numbers", "reduce_interleaved", "reduce_naively", "reduce_digits"):
            getattr(self._functions, name).restype = ctypes.c_int64

    def _call(self, name: str, residues: np.ndarray, *others: Any) -> Any:
        arguments = [residues, residues.size // len(self.moduli), self._tables.fields, *others]
        converted = [
            ctypes.c_void_p(a.ctypes.data) if isinstance(a, np.ndarray) else ctypes.c_int64(a)
            for a in arguments
        ]
        return getattr(self._functions, name)(*converted)

    def evaluate(self, residues: np.ndarray, interleaved: bool = False) -> np.ndarray:
        """The paper's interval evaluations, elements of type `EVALUATION`."""
        evaluations = np.empty(residues.size // len(self.moduli), dtype=EVALUATION)
        self._call("evaluate_interleaved" if interleaved else "evaluate_numbers", residues, evaluations)
        return evaluations

    def proposed(self, residues: np.ndarray, interleaved: bool = False) -> int:
        evaluations = self.evaluate(residues, interleaved)
        return self._call("reduce_interleaved" if interleaved else "reduce_numbers", residues, evaluations)

    def naive(self, residues: np.ndarray) -> int:
        return self._call("reduce_naively", residues)

    def mixed_radix(self, residues: np.ndarray) -> int:
        records = _digit_records(np, residues, len(self.moduli))
        self._call("convert_numbers", residues, records)
        count = ctypes.c_int64(len(residues))
        return self._functions.reduce_digits(ctypes.c_void_p(records.ctypes.data), count)

    def refinement_steps(self, residues: np.ndarray, improved: bool) -> np.ndarray:
        steps = np.empty(residues.shape[1], dtype=np.uint32)
        self._call("refinement_steps", residues, int(improved), steps)
        return steps


class GpuBaselines:
    """The paper's MAX on the current GPU, in blocks of 256 threads, eight of them for each multiprocessor."""

    _BLOCK = 256
    _BLOCKS_PER_PROCESSOR = 8  # the paper's 256 partial results are 5.6 for each of its GPU's

    def __init__(self, moduli: ModuliSet) -> None:
        import cupy

        self.moduli = moduli
        self._cupy = cupy
        self._tables = _Tables(moduli, cupy)
        module = compile_for_gpu(SOURCES / "paper.cu", f"-DRNS_MODULI={len(moduli)}")
        # Looked up once, so that no launch that is timed does.
        self._function = functools.cache(module.get_function)
        processors = cupy.cuda.Device().attributes["MultiProcessorCount"]
        self._most_blocks = self._BLOCKS_PER_PROCESSOR * processors

    def compile(self) -> None:
        """Compile now and not at the first launch."""
        self._function("reduce_numbers")

    def launch(self, name: str, blocks: int, arguments: tuple[Any, ...]) -> None:
        self._function(name)((blocks,), (self._BLOCK,), arguments)

    def _blocks(self, count: int) -> int:
        return max(1, min(self._most_blocks, -(-count // self._BLOCK)))

    def _arguments(self, residues: Any) -> tuple[Any, ...]:
        return residues, np.int64(residues.size // len(self.moduli)), self._tables.fields[()]

    def evaluate(self, residues: Any, interleaved: bool = False) -> Any:
        """The bytes of an array of `EVALUATION`."""
        name = "evaluate_interleaved" if interleaved else "evaluate_numbers"
        count = residues.size // len(self.moduli)
        evaluations = self._cupy.empty(count * EVALUATION.itemsize, dtype=np.uint8)
        self.launch(name, self._blocks(count), (*self._arguments(residues), evaluations))
        return evaluations

    def proposed(self, residues: Any, interleaved: bool = False) -> int:
        evaluations = self.evaluate(residues, interleaved)
        name = "reduce_interleaved" if interleaved else "reduce_numbers"
        count = size = residues.size // len(self.moduli)
        for blocks in (self._blocks(count), 1):
            partials = self._cupy.empty(blocks * EVALUATION.itemsize, dtype=np.uint8)
            self.launch(name, blocks, (*self._arguments(residues), evaluations, np.int64(size), partials))
            evaluations, size = partials, blocks
        return int(evaluations.get().view(EVALUATION)["index"][0])

    def naive(self, residues: Any) -> int:
        size = residues.size // len(self.moduli)
        indices = np.uint64(0)
        for blocks in (self._blocks(size), 1):
            partials = self._cupy.empty(blocks, dtype=np.int64)
            self.launch(
                "reduce_naively",
                blocks,
                (residues, self._tables.fields[()], indices, np.int64(size), partials),
            )
            indices, size = partials, blocks
        return int(indices[0])

    def mixed_radix(self, residues: Any) -> int:
        size = len(residues)
        records = _digit_records(self._cupy, residues, len(self.moduli))
        self.launch("convert_numbers", self._blocks(size), (*self._arguments(residues), records))
        positions = np.uint64(0)
        for blocks in (self._blocks(size), 1):
            partials = self._cupy.empty(blocks, dtype=np.int64)
            self.launch("reduce_digits", blocks, (records, positions, np.int64(size), partials))
            positions, size = partials, blocks
        return int(positions[0])

    def refinement_steps(self, residues: Any, improved: bool) -> Any:
        count = residues.shape[1]
        steps = self._cupy.empty(count, dtype=np.uint32)
        arguments = (*self._arguments(residues), np.int32(improved), steps)
        self.launch("refinement_steps", self._blocks(count), arguments)
        return steps


def _digit_records(xp: Any, residues: Any, n: int) -> Any:
    """Room for the digits of each number and its index of 64 bits."""
    return xp.empty((len(residues), 4 * n + 8), dtype=np.uint8)
