"""Burn-in: operations whose one right result is known, repeated on a processor until time is up.

Each round draws new data. The first result of a round is brought to the host and checked exactly there; the
others are compared with it where they were computed, so that the processor is busy most of the time.
"""

import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from rnsdask.arrays.creation import from_residues
from rnsdask.backend import Array, free_device_bytes, to_backend
from rnsdask.core.moduli import ModuliSet
from rnsdask.fields.system import PrimeFields
from rnsdask.lazy.ntt import intt, ntt

PRIMES = (4293918721, 4276092929)
"""The two greatest primes below 2**32 that leave 1 when divided by 2**20, so that transforms have roots."""

MOST_LENGTH = 2**20
"""Most numbers of a transform, for which all of `PRIMES` have roots of unity."""

Words = NDArray[np.uint32]
Operands = tuple[Words, ...]


@dataclass(frozen=True)
class Size:
    """How large the operands of a burn-in are.

    Attributes
    ----------
    side : int
        Rows and columns of square matrices.
    length, transforms : int
        Numbers of a transform, at most `MOST_LENGTH`, and how many of them are computed side by side.
    numbers, copies : int
        Numbers that are drawn for a sum, and how often they stand in it.
    """

    side: int
    length: int
    transforms: int
    numbers: int
    copies: int

    @classmethod
    def of_gpu(cls) -> "Size":
        """Return sizes that keep the current GPU busy, and sum up half of its memory or 2**31 numbers."""
        numbers = 2**21
        free = free_device_bytes() or 0
        copies = min(free // 2 // (4 * len(PRIMES) * numbers), 2**31 // numbers)
        return cls(4096, MOST_LENGTH, 8, numbers, max(1, copies))


@dataclass(frozen=True)
class Difference:
    """A wrong result.

    Attributes
    ----------
    operation : str
        Name of the workload.
    index : tuple of int
        Index of the first wrong word: the prime's, then those of the number; empty for a sum.
    expected, found : int
        Values there.
    seed, round : int
        What the data were drawn by.
    repeat : int
        How often the same was computed right in this round before.
    """

    operation: str
    index: tuple[int, ...]
    expected: int
    found: int
    seed: int = 0
    round: int = 0
    repeat: int = 0

    def __str__(self) -> str:
        where = f" at index {list(self.index)}" if self.index else ""
        again = f", repeat {self.repeat}" if self.repeat else ""
        return (
            f"{self.operation}{where}: {self.found} in place of {self.expected} "
            f"(seed {self.seed}, round {self.round}{again})"
        )


class Workload(ABC):
    """An operation that is computed on a processor and checked on the host."""

    name: ClassVar[str]

    def __init__(self, size: Size) -> None:
        self.size = size

    @abstractmethod
    def draw(self, rng: np.random.Generator) -> Operands:
        """Draw operands, on the host."""

    @abstractmethod
    def load(self, operands: Operands, backend: str) -> Any:
        """Bring operands to a processor, as :meth:`compute` takes them."""

    @abstractmethod
    def compute(self, loaded: Any) -> Any:
        """Compute the result: words on the processor, or an int."""

    @abstractmethod
    def find_fault(self, operands: Operands, found: Any) -> Difference | None:
        """Check a result, of the host by now, exactly."""


class Product(Workload):
    """Products of matrices, checked by Freivalds' method: C v = A (B v) for a random v."""

    name = "matrix product"

    def draw(self, rng: np.random.Generator) -> Operands:
        """Draw two matrices and a column."""
        side = self.size.side
        shapes = [(side, side), (side, side), (side, 1)]
        return tuple(_random_words(rng, shape) for shape in shapes)

    def load(self, operands: Operands, backend: str) -> Any:
        """Bring the matrices."""
        return [_elements(operand, backend) for operand in operands[:2]]

    def compute(self, loaded: Any) -> Array:
        """Multiply them."""
        a, b = loaded
        return (a @ b).words

    def find_fault(self, operands: Operands, found: Any) -> Difference | None:
        """Find a row that is not the product's; one is missed with a chance of one in 2**31."""
        if wrong := _first_out_of_range(self.name, found):
            return wrong
        a, b, v = (_elements(operand, "cpu") for operand in operands)
        expected, product = (a @ (b @ v)).words, (_elements(found, "cpu") @ v).words
        rows = np.flatnonzero((expected != product).any(axis=(0, 2)))
        if not rows.size:
            return None
        row = slice(rows[0], rows[0] + 1)
        right = (_elements(operands[0][:, row], "cpu") @ b).words
        wrong = _first_difference(self.name, right, found[:, row])
        if wrong is None:
            raise RuntimeError(f"two products of the CPU contradict each other at row {rows[0]}")
        return replace(wrong, index=(wrong.index[0], int(rows[0]), wrong.index[2]))


class Transform(Workload):
    """Number theoretic transforms, compared with those of the CPU."""

    name = "transform"

    def draw(self, rng: np.random.Generator) -> Operands:
        """Draw what is transformed."""
        return (_random_words(rng, (self.size.transforms, self.size.length)),)

    def load(self, operands: Operands, backend: str) -> Any:
        """Bring it."""
        return _elements(operands[0], backend)

    def compute(self, loaded: Any) -> Array:
        """Transform it."""
        return ntt(loaded).words

    def find_fault(self, operands: Operands, found: Any) -> Difference | None:
        """Compare with what the CPU makes of it."""
        return _first_difference(self.name, ntt(_elements(operands[0], "cpu")).words, found)


class RoundTrip(Transform):
    """Transforms and back, which give what was transformed."""

    name = "transform and back"

    def compute(self, loaded: Any) -> Array:
        """Transform there and back."""
        return intt(ntt(loaded)).words

    def find_fault(self, operands: Operands, found: Any) -> Difference | None:
        """Compare with what was transformed."""
        return _first_difference(self.name, operands[0], found)


class Sum(Workload):
    """Sums of integers that fill much memory: of some numbers, many times over."""

    name = "sum"

    def draw(self, rng: np.random.Generator) -> Operands:
        """Draw the numbers."""
        return (_random_words(rng, (self.size.numbers,)),)

    def load(self, operands: Operands, backend: str) -> Any:
        """Bring them, and copy them there."""
        words = np.tile(to_backend(operands[0], backend), (1, self.size.copies))
        return from_residues(words, ModuliSet(PRIMES), trusted=True)  # not copied again

    def compute(self, loaded: Any) -> int:
        """Sum them up."""
        return int(loaded.sum())

    def find_fault(self, operands: Operands, found: Any) -> Difference | None:
        """Compare with the CPU's sum of the numbers, times their copies."""
        once = int(from_residues(operands[0], ModuliSet(PRIMES)).sum())
        return _first_difference(self.name, once * self.size.copies, found)


KINDS: tuple[type[Workload], ...] = (Product, Transform, RoundTrip, Sum)
"""The workloads of a burn-in, in their order."""


def _random_words(rng: np.random.Generator, shape: tuple[int, ...]) -> Words:
    return np.stack([rng.integers(0, prime, shape, dtype=np.uint32) for prime in PRIMES])


def _elements(words: Words, backend: str) -> Any:
    return from_residues(to_backend(words, backend), PrimeFields(PRIMES))


def _first_out_of_range(name: str, found: Words) -> Difference | None:
    """Find a word that is no residue, in place of the greatest one that is."""
    last = np.array(PRIMES, np.uint32)[:, None, None] - np.uint32(1)
    return _first_difference(name, np.minimum(found, last), found)


def _first_difference(name: str, expected: Any, found: Any) -> Difference | None:
    """Compare results on the host; index and values of the first word that differs."""
    if isinstance(found, int):
        return None if expected == found else Difference(name, (), expected, found)
    where = np.argwhere(expected != found)
    if not len(where):
        return None
    index = tuple(map(int, where[0]))
    return Difference(name, index, int(expected[index]), int(found[index]))


# ---- the loop ---------------------------------------------------------------------------------------------


@dataclass
class BurnIn:
    """Result of a burn-in.

    Attributes
    ----------
    runs : Counter of str
        How often each operation was computed.
    differences : list of Difference
        The wrong results, the first of each round and operation.
    error : str
        Why it ended before its time; empty if it did not.
    lacked_memory : bool
        Whether that was for want of memory.
    """

    runs: Counter[str] = field(default_factory=Counter)
    differences: list[Difference] = field(default_factory=list)
    error: str = ""
    lacked_memory: bool = False


def burn_in(
    backend: str,
    size: Size,
    seconds: float,
    seed: int,
    kinds: Sequence[type[Workload]] = KINDS,
    turn_seconds: float = 2.0,
    clock: Callable[[], float] = time.monotonic,
) -> BurnIn:
    """Compute on a processor for some time, each workload in turn, and return what was wrong.

    Every workload has one turn at least, and computes its result twice there at least. `backend` is
    ``"cpu"``, or ``"cuda"`` for the current GPU.
    """
    result = BurnIn()
    end, number = clock() + seconds, 0
    try:
        while number == 0 or clock() < end:
            for i, workload in enumerate(kind(size) for kind in kinds):
                if number and clock() >= end:
                    break
                rng = np.random.default_rng([seed, number, i])
                wrong = _take_turn(workload, rng, backend, turn_seconds, result.runs, clock)
                if wrong is not None:
                    result.differences.append(replace(wrong, seed=seed, round=number))
            number += 1
    except Exception as error:  # of CUDA, for one: a card that has failed
        result.error = f"{type(error).__name__}: {error}"
        result.lacked_memory = isinstance(error, MemoryError)
    return result


def _take_turn(
    workload: Workload,
    rng: np.random.Generator,
    backend: str,
    seconds: float,
    runs: Counter[str],
    clock: Callable[[], float],
) -> Difference | None:
    """Draw operands, compute with them until time is up, and return the first wrong result."""
    operands = workload.draw(rng)
    loaded = workload.load(operands, backend)
    first = workload.compute(loaded)
    on_host = _to_host(first)
    runs[workload.name] += 1
    if wrong := workload.find_fault(operands, on_host):
        return wrong
    repeat, end = 0, clock() + seconds
    while repeat == 0 or clock() < end:
        repeat += 1
        again = workload.compute(loaded)
        runs[workload.name] += 1
        if not bool(np.array_equal(again, first)):
            # What the host has was right. If no word differs there, the comparison itself was wrong.
            wrong = _first_difference(workload.name, on_host, _to_host(again))
            return replace(wrong or Difference("comparison", (), 1, 0), repeat=repeat)
    return None


def _to_host(result: Any) -> Any:
    return result if isinstance(result, int) else to_backend(result, "cpu")
