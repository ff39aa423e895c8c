"""Every rule that carries a bound: results are those of Python's integers, and none is beyond its bound."""

import operator
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
from oracles import rns
from oracles.rns import in_range, wrapped
from strategies import BOTH_RANGES, MODULI_SETS, bounds_around_prefixes, values_within

import rnsdask as rd
from rnsdask import store
from rnsdask.core.errors import RNSOverflowError
from rnsdask.core.moduli import ModuliSet

SETS = {
    name: MODULI_SETS[name] for name in ("one", "one_full", "two_three", "tiny_unsorted", "top", "unsorted")
}
SETS["two"] = ModuliSet([2])  # signed: -1 and 0
KINDS = pytest.mark.parametrize("lazy", [False, True], ids=["eager", "lazy"])
COUNT = 12


def greatest_of(moduli: ModuliSet, signed: bool) -> int:
    return max(map(abs, moduli.value_range(signed)))


def numbers_of(x: rd.RNSArray) -> list[int]:
    residues = np.asarray(x.residues).reshape(len(x.moduli), -1)
    return [rns.value_of(column.tolist(), x.moduli, x.signed) for column in residues.T]


def check(x: Any, expected: list[int], what: str) -> None:
    """The numbers are the expected ones, and within the bound, which is within the range."""
    numbers = numbers_of(x)
    assert numbers == expected, what
    if x.bound is not None:
        assert max(map(abs, numbers), default=0) <= x.bound <= greatest_of(x.moduli, x.signed), what


class Operands:
    """Arrays of adversarial numbers with the tightest bounds, a loose one or none, and integers."""

    def __init__(self, moduli: ModuliSet, signed: bool, lazy: bool, rng: np.random.Generator) -> None:
        self.moduli, self.signed, self.lazy, self.rng = moduli, signed, lazy, rng
        self.bounds = [0, *bounds_around_prefixes(moduli, signed), greatest_of(moduli, signed)]

    def values(self, count: int = COUNT) -> list[int]:
        bound = self.bounds[self.rng.integers(len(self.bounds))]
        lowest, highest = self.moduli.value_range(self.signed)
        drawn = values_within(bound, self.signed, self.rng, count)
        return [min(max(v, lowest), highest) for v in (drawn * count)[:count]]

    def array(self, values: list[int], shape: tuple[int, ...] = (-1,)) -> rd.RNSArray:
        tight = max(map(abs, values), default=0)
        bound = [tight, tight, tight, 2 * tight + 1, 10**200, None][self.rng.integers(6)]
        residues = rns.encode(values, self.moduli, self.signed).reshape(len(self.moduli), *shape)
        if self.lazy:
            return rd.RNSArray(
                da.from_array(residues, (len(self.moduli), *(5,) * len(shape))),
                rd.RNS(self.moduli, self.signed, bound),
            )
        return rd.RNSArray(residues, rd.RNS(self.moduli, self.signed, bound))

    def operand(self) -> tuple[Any, list[int]]:
        values = self.values()
        if self.rng.integers(4) == 0:
            value = values[self.rng.integers(COUNT)]
            return value, [value] * COUNT
        return self.array(values), values


@BOTH_RANGES
@KINDS
def test_other_moduli(signed: bool, lazy: bool, rng: np.random.Generator) -> None:
    for source, target in (("unsorted", "top"), ("top", "unsorted"), ("top", "one"), ("two_three", "top")):
        operands = Operands(SETS[source], signed, lazy, rng)
        for _ in range(4):
            values = operands.values()
            x, moduli = operands.array(values), SETS[target]
            if all(in_range(v, moduli, signed) for v in values):
                check(x.extend(moduli), values, f"{values} to {moduli}")
            else:
                with pytest.raises(ValueError, match="is outside the"):
                    numbers_of(x.extend(moduli))


@BOTH_RANGES
@KINDS
def test_chains(signed: bool, lazy: bool, rng: np.random.Generator) -> None:
    """Results of results, as each rule relies on the bound that the one before it gave."""
    moduli = SETS["unsorted"]
    operands = Operands(moduli, signed, lazy, rng)
    for _ in range(4 if lazy else 40):
        values = operands.values()
        x, what = operands.array(values), f"{values}"
        for _ in range(6):
            other = operands.values()
            y, step = operands.array(other), int(rng.integers(8))
            what += f" {step} {other}"
            if step < 3:
                function = (rd.add, rd.subtract, rd.multiply)[step]
                exact = (operator.add, operator.sub, operator.mul)[step]
                x = function(x, y, overflow="wrap")
                values = [wrapped(exact(v, w), moduli, signed) for v, w in zip(values, other, strict=True)]
            elif step == 3:
                x, _ = rd.fma(x, y, y, overflow="flag")
                values = [wrapped(v * w + w, moduli, signed) for v, w in zip(values, other, strict=True)]
            elif step == 4:
                x, values = x // 1000, [v // 1000 for v in values]
            elif step == 5:
                x, values = x % 2**33, [v % 2**33 for v in values]
            elif step == 6:
                x, values = rd.minimum(x, y), list(map(min, values, other))
            else:
                x, values = x >> 40, [v >> 40 for v in values]
        check(x, values, what)
        assert (int(x.max()), int(x.min()), int(x.sum())) == (max(values), min(values), sum(values)), what


@BOTH_RANGES
def test_ways_to_make_an_array(signed: bool, tmp_path: Path, rng: np.random.Generator) -> None:
    for name, moduli in SETS.items():
        values = Operands(moduli, signed, False, rng).values()
        x = rd.from_ints(values, moduli, signed)
        check(x, values, name)
        assert x.bound == max(map(abs, values))
        x.to_zarr(tmp_path / name)
        check(rd.open_zarr(tmp_path / name), values, name)
        assert list(store.verify(store.open_info(tmp_path / name))) == []
        check(rd.from_residues(x.residues, moduli, signed, 10**200), values, name)
        random = rd.random(moduli, 50, seed=3, signed=signed)
        check(random, numbers_of(random), name)
        inverse = rd.inverse(rd.from_ints([-1 if signed else 1], moduli, signed))
        check(inverse, numbers_of(inverse), name)


def test_a_bound_beyond_the_range_is_cut_down_to_it(tmp_path: Path) -> None:
    moduli = SETS["unsorted"]
    highest = moduli.product - 1
    x = rd.from_ints([5, 7], moduli)
    assert rd.RNSArray(x.residues, rd.RNS(moduli, bound=highest + 1)).bound == highest
    assert rd.RNSArray(x.residues, rd.RNS(moduli, bound=highest)).bound == highest
    assert rd.RNSArray(x.residues, rd.RNS(moduli, True, highest)).bound == moduli.product // 2
    signed = rd.from_ints([5, 7], moduli, True)
    small = ModuliSet([65537])
    results = [signed % 10**50, signed % 10**30, x.shrink(small)]
    loose = rd.RNSArray(x.residues, rd.RNS(moduli, bound=10**20))
    results += [loose.shrink(small), loose.extend(SETS["one_full"]), (loose % 10**50).shrink(small)]
    for i, result in enumerate(results):
        result.to_zarr(tmp_path / f"{i}")
        written = rd.open_zarr(tmp_path / f"{i}")
        assert written.to_ints().tolist() == [5, 7]
        assert list(store.verify(store.open_info(tmp_path / f"{i}"))) == []


def test_errors_where_chunk_sizes_are_unknown() -> None:
    moduli = SETS["top"]
    x = rd.from_ints([2**100 + i for i in range(300)], moduli, chunks=128)
    x = x[x > 2**100 + 100]
    for function in (lambda: x * 2**60, lambda: x**2, lambda: rd.fma(x, 2**60, 1), lambda: x << 100):
        with pytest.raises(RNSOverflowError, match="overflow at flat index 0"):
            function().compute(scheduler="sync")
    with pytest.raises(ValueError, match="at flat index 0 is outside the unsigned range"):
        x.extend(ModuliSet([5])).compute(scheduler="sync")
    with pytest.raises(ValueError, match="the number at flat index 0 is 0x1"):
        x.with_residues(x.residues, bound=5).compute(scheduler="sync")
    assert x.with_residues(x.residues, bound=2**101).compute().size == 199
