"""A case: arrays of one moduli set and range, eager or lazy, that operations share, and smaller ones."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from random import Random
from typing import Any

import dask.array as da
import numpy as np
from oracles.integers import SYSTEMS, Range, encoded, objects

import rnsdask as rd
from fuzzing import inputs

RESIDUES = 60_000
"""So many in an array of a case, about."""

OPERANDS = 4


@dataclass
class Operand:
    """Numbers, and how the array of them is made."""

    values: np.ndarray
    bound: int | None
    layout: str
    chunks: tuple[tuple[int, ...], ...] | None


@dataclass
class Chosen:
    """An operand of one operation: exact numbers for the oracle, an array or an integer for the package."""

    values: Any
    array: Any

    @property
    def is_array(self) -> bool:
        return isinstance(self.values, np.ndarray)


@dataclass
class Case:
    """Four arrays of shapes that broadcast; the first one has the shape of all."""

    seed: int
    system: str
    moduli: rd.ModuliSet
    processor: Any
    is_lazy: bool
    operands: list[Operand]
    used: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def drawn(cls, seed: int, processor: Any = np) -> "Case":
        """The case of a seed, with arrays of NumPy or CuPy."""
        rng = Random(f"{seed}/case")
        moduli = inputs.moduli_set(rng)
        case = cls(seed, rng.choice(SYSTEMS), moduli, processor, rng.random() < 0.3, [])
        whole = inputs.shape(rng, case.most_numbers)
        shapes = [whole] + [
            inputs.broadcastable(rng, whole) if rng.random() < 0.2 else whole for _ in range(OPERANDS - 1)
        ]
        for shape in shapes:
            case.operands.append(case._operand(rng, shape))
        if shapes[1] == whole and rng.random() < 0.5:
            case.operands[1].values = inputs.partner(rng, case.operands[0].values, case.limits)
            case.operands[1].bound = None
        return case

    @property
    def most_numbers(self) -> int:
        return max(6, min(4200, RESIDUES // len(self.moduli)))

    @cached_property
    def limits(self) -> Range:
        return Range.of(self.system, self.moduli.product)

    @property
    def signed(self) -> bool:
        return self.system == "signed"

    @property
    def shape(self) -> tuple[int, ...]:
        return self.operands[0].values.shape

    # ---- what operations take ------------------------------------------------------------------------------

    def take(self, rng: Random, count: int = 1, integers: bool = True) -> list[Chosen]:
        """Operands for an operation, at least one of them an array, some of the others integers."""
        positions = [rng.randrange(OPERANDS) for _ in range(count)]
        if rng.random() < 0.6:
            positions[0] = 0
        chosen = [Chosen(self.operands[i].values, self.arrays[i]) for i in positions]
        for i in range(count):
            value = self.number(rng)
            # Each draws as much whatever comes of it, so that a smaller case chooses the same.
            if rng.random() < 0.25 and integers and any(c.is_array for c in chosen[:i] + chosen[i + 1 :]):
                chosen[i] = Chosen(value, value)
        for i, one in enumerate(chosen):
            self.note(f"operand {i}", one.values)
        return chosen

    def fresh(self, rng: Random, shape: tuple[int, ...], name: str = "array") -> Chosen:
        """An array of its own shape."""
        operand = self._operand(rng, shape)
        self.note(name, operand.values)
        return Chosen(operand.values, self.built(operand))

    def number(self, rng: Random) -> int:
        return inputs.number(rng, self.moduli, self.limits)

    def note(self, name: str, value: Any) -> None:
        """Keep what a report of a mismatch shall show."""
        self.used[name] = value

    @cached_property
    def arrays(self) -> list[Any]:
        return [self.built(operand) for operand in self.operands]

    def built(self, operand: Operand) -> Any:
        """An RNSArray or IntervalRNSArray of an operand's numbers."""
        if self.system == "interval":
            return self._signed_with_intervals(operand)
        residues = inputs.laid_out(
            encoded(operand.values, self.moduli.moduli), operand.layout, self.processor
        )
        return rd.from_residues(self._chunked(residues, operand), self.moduli, self.signed, operand.bound)

    def _signed_with_intervals(self, operand: Operand) -> rd.IntervalRNSArray:
        values, xp = operand.values, self.processor
        residues = xp.asarray(encoded(abs(values), self.moduli.moduli))
        sign = xp.asarray((values < 0).astype(np.uint8))
        columns = rd.IntervalRNSArray.from_residues(residues, sign, self.moduli).columns
        columns = columns if operand.layout == "plain" else xp.asfortranarray(columns)
        return rd.IntervalRNSArray(self._chunked(columns, operand), rd.IntervalRNS(self.moduli))

    def _chunked(self, words: Any, operand: Operand) -> Any:
        if operand.chunks is None:
            return words
        return da.from_array(words, chunks=((len(words),), *operand.chunks), asarray=False)

    def _operand(self, rng: Random, shape: tuple[int, ...]) -> Operand:
        count = int(np.prod(shape, dtype=int))
        values = objects(inputs.numbers(rng, self.moduli, self.limits, count), shape)
        is_lazy = self.is_lazy and rng.random() < 0.85
        chunks = inputs.chunks(rng, shape) if is_lazy else None
        bound = inputs.bound_for(rng, values, self.limits)
        return Operand(values, bound, rng.choice(inputs.LAYOUTS), chunks)

    # ---- smaller ones --------------------------------------------------------------------------------------

    def smaller(self) -> Iterator["Case"]:
        """Smaller cases: half of the numbers along an axis, and eager arrays."""
        whole = self.shape
        for axis, length in enumerate(whole):
            if length > 1:
                for half in (slice(length // 2), slice(length // 2, length)):
                    yield self._with([_part(one, axis - len(whole), length, half) for one in self.operands])
        if any(one.chunks is not None for one in self.operands):
            yield self._with([replace(one, chunks=None) for one in self.operands])

    def _with(self, operands: list[Operand]) -> "Case":
        return Case(self.seed, self.system, self.moduli, self.processor, self.is_lazy, operands)


def _part(operand: Operand, axis: int, length: int, half: slice) -> Operand:
    """The part of an operand along an axis counted from the last, or all of one that is broadcast there."""
    values = operand.values
    if values.ndim < -axis or values.shape[axis] != length:
        return operand
    values = values[(..., half, *(slice(None),) * (-axis - 1))]
    return replace(operand, values=values, chunks=operand.chunks and tuple((n,) for n in values.shape))
