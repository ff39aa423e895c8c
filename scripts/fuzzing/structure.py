"""Indexing, chunks, Dask's collections, random arrays, stores, and chains of operations."""

import operator
import pickle
import tempfile
from collections.abc import Callable
from functools import reduce
from pathlib import Path
from random import Random
from typing import Any

import dask
import numpy as np

import rnsdask as rd
from fuzzing import inputs
from fuzzing.case import Case, Chosen
from fuzzing.checking import (
    computed,
    must_fail,
    operation,
    require,
    same_array,
    same_int,
    same_numbers,
    shown,
)

RNS = ("unsigned", "signed")

# ---- chunks and collections --------------------------------------------------------------------------------


@operation("rechunk")
def check_rechunk(case: Case, rng: Random) -> int:
    (x,) = case.take(rng)
    if not x.values.size:
        return 0
    along = rng.choice((1, 2, 100)), rng.choice((128, 256, x.values.shape[-1]))
    lengths = (*(along[0],) * (x.values.ndim - 1), along[1])
    if np.prod([-(-n // c) for n, c in zip(x.values.shape, lengths, strict=True)]) > 50:
        return 0
    got = x.array.rechunk(rng.choice(("auto", lengths)))
    require(dask.is_dask_collection(got), "rechunk gives no Dask array")
    return same_numbers(case, got, x.values)


@operation("collection")
def check_collection(case: Case, rng: Random) -> int:
    """Dask's collection functions, and pickle, keep an array's numbers."""
    x, y = case.take(rng, 2, integers=False)
    if case.processor is np and rng.random() < 0.5:
        # One that no other thread uses: Dask's graphs cannot be pickled while they are computed.
        own = case.fresh(rng, x.values.shape)
        again = pickle.loads(pickle.dumps(own.array))
        require(dask.base.tokenize(again) == dask.base.tokenize(own.array), "a copy has another token")
        same_numbers(case, again, own.values, "unpickled")
    if not dask.is_dask_collection(x.array):
        return x.values.size
    same_numbers(case, x.array.persist(), x.values, "persisted")
    parts = dask.compute(x.array, y.array)
    return sum(same_numbers(case, got, one.values) for got, one in zip(parts, (x, y), strict=True))


@operation("map_blocks")
def check_map_blocks(case: Case, rng: Random) -> int:
    """Functions of chunks that give numbers or other things, keep the shape or do not."""
    (x,) = case.take(rng)
    if not x.values.size:
        return 0
    sign = rng.choice((1, -1))
    count = same_numbers(
        case, x.array.map_blocks(lambda b, step: b[..., ::step][..., ::step], step=sign), x.values
    )
    got = x.array.map_blocks(lambda b: np.asarray(b) % 7, dtype=object)
    count += same_array(got, x.values % 7, "objects")
    must_fail(lambda: x.array.map_blocks(lambda b: b[:0]), ValueError, "a chunk of another shape")
    must_fail(lambda: x.array.map_blocks(lambda b: b == b), TypeError, "no numbers")
    must_fail(lambda: x.array.map_blocks(lambda b: b == b, dtype=np.int8), TypeError, "another dtype")
    return count


@operation("random", RNS)
def check_random(case: Case, rng: Random) -> int:
    if case.processor is not np:
        return 0
    seed, size = rng.getrandbits(40), rng.choice((1, 100, 128, 300))
    case.note("seed, size", (seed, size))
    x = rd.random(case.moduli, size, seed=seed, chunks=128, signed=case.signed)
    numbers = x.to_ints()
    require(not case.limits.outside(numbers).any(), "a number out of range")
    again = rd.random(case.moduli, (size,), seed=seed, chunks=128, signed=case.signed)
    return same_numbers(case, again, numbers)


# ---- stores ------------------------------------------------------------------------------------------------


@operation("store")
def check_store(case: Case, rng: Random) -> int:
    (x,) = case.take(rng)
    if case.processor is not np:
        return 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.zarr"
        x.array.to_zarr(path)
        y = rd.open_zarr(path)
        count = same_numbers(case, y, x.values)
        if rng.random() < 0.3 and x.values.size:
            half = x.array[: max(1, len(x.values) // 2)]
            must_fail(lambda: half.to_zarr(path), rd.StoreError, "a store that is there")
            half.to_zarr(path, overwrite=True)
            same_numbers(case, rd.open_zarr(path), x.values[: max(1, len(x.values) // 2)], "overwritten")
        elif case.system != "interval" and x.values.size:
            part = rng.choice((None, 1, 128))
            y = rd.open_zarr(path, part=part and max(part, x.values.size // 8))
            same_int(y.max(), max(x.values.reshape(-1).tolist()), "max of a store")
            same_int(y.sum(), sum(x.values.reshape(-1).tolist()), "sum of a store")
    return count


# ---- chains ------------------------------------------------------------------------------------------------

STEPS: tuple[tuple[str, Callable[..., Any]], ...] = (
    ("+", operator.add),
    ("-", operator.sub),
    ("*", operator.mul),
)


@operation("chain")
def check_chain(case: Case, rng: Random) -> int:
    """A few operations one after the other: an error if any exact step is out of range, lazily too."""
    (x,) = case.take(rng)
    got, exact, fails, text = x.array, x.values, False, "x"
    limit = rng.choice((case.limits.highest, case.limits.product, 2 * case.limits.product, 0))
    ends_in_comparison = rng.random() < 0.4
    try:
        for _ in range(rng.randint(2, 5)):
            name, function = rng.choice(STEPS)
            other = small(case, rng) if rng.random() < 0.7 else case.take(rng, 1, integers=False)[0]
            text = f"({text} {name} {shown(other.values)[:200]})"
            case.note("chain", text)
            exact = function(exact, other.values)
            fails = fails or bool(case.limits.outside(exact).any())
            got = function(got, other.array)
        if ends_in_comparison:
            case.note("compared with", limit)
            got = got < limit
        if not fails:
            if ends_in_comparison:
                return same_array(got, np.asarray(exact < limit, dtype=bool), "comparison")
            return same_numbers(case, got, exact)
        computed(got)
    except rd.RNSOverflowError:
        require(fails, f"an overflow where every step is in range: {text}")
        return exact.size
    require(False, f"no overflow where a step is out of range: {text}")
    return 0


def small(case: Case, rng: Random) -> Chosen:
    value = inputs.clipped(rng.choice((0, 1, 2, 3, 10, -1, -5, rng.getrandbits(20))), case.limits)
    return Chosen(value, value)


# ---- moduli sets and expressions ---------------------------------------------------------------------------


@operation("required bits", ("unsigned",))
def check_required_bits(case: Case, rng: Random) -> int:
    """The least bits that hold every step, found by trying the ends of each name's range."""
    names = {name: sorted((rng.randint(-50, 2**70), rng.randint(-50, 50))) for name in "abc"}
    text, steps = expression(rng, names, rng.randint(1, 4))
    case.note("expression, bounds", (text, names))
    got = rd.required_bits(text, **{name: tuple(ends) for name, ends in names.items()})
    lowest, highest = min(min(step) for step in steps), max(max(step) for step in steps)
    needed = max(1, highest.bit_length())
    if lowest < 0:
        needed = 1 + max(highest.bit_length(), (-lowest - 1).bit_length())
    require(got == needed, f"required_bits({text!r}) is {got} instead of {needed}")
    return 1


def expression(rng: Random, names: dict[str, list[int]], depth: int) -> tuple[str, list[tuple[int, int]]]:
    """A random expression, and the least and greatest value of each step, the last one of the whole."""
    if depth == 0:
        name = rng.choice(sorted(names))
        return name, [(names[name][0], names[name][1])]
    kind = rng.choice(("+", "-", "*", "**", "neg"))
    left, steps = expression(rng, names, depth - 1)
    low, high = steps[-1]
    if kind == "neg":
        return f"(-{left})", [*steps, (-high, -low)]
    if kind == "**":
        k = rng.randint(0, 3)
        values = [v**k for v in {low, high, min(max(0, low), high)}]
        return f"({left})**{k}", [*steps, (min(values), max(values))]
    right, others = expression(rng, names, 0)
    function = dict(STEPS)[kind]
    values = [function(a, b) for a in (low, high) for b in others[-1]]
    return f"({left} {kind} {right})", [*steps, *others, (min(values), max(values))]


@operation("moduli set", ("unsigned",))
def check_moduli_set(case: Case, rng: Random) -> int:
    bits, width = rng.randint(1, 2000), rng.randint(12, 32)
    made = rd.ModuliSet.for_bits(bits, width)
    case.note("bits, width", (bits, width))
    product = reduce(operator.mul, made.moduli)
    require(product == made.product >= 2**bits, "for_bits: a product too small")
    require(product // made.moduli[-1] < 2**bits, "for_bits: a modulus too many")
    ms, one = case.moduli, rng.randrange(len(case.moduli))
    require(ms.partial_products[one] * ms[one] == case.limits.product, "a partial product")
    require(ms.partial_products[one] * ms.partial_inverses[one] % ms[one] == 1 % ms[one], "a partial inverse")
    shared = (*ms.moduli, 2 * ms.moduli[one] if ms.moduli[one] <= 2**31 else ms.moduli[one])
    must_fail(lambda: rd.ModuliSet(shared), ValueError, "moduli that share a factor")
    return 4


@operation("wrong operands")
def check_wrong_operands(case: Case, rng: Random) -> int:
    """Operands that do not fit are an error at once, lazy or not."""
    (x,) = case.take(rng)
    beyond = rng.choice((case.limits.highest + 1, case.limits.lowest - 1))
    must_fail(lambda: x.array + beyond, ValueError, "an integer out of range")
    must_fail(lambda: x.array * 1.5, TypeError, "a float")
    must_fail(lambda: x.array + True, TypeError, "a bool")
    other = rd.ModuliSet((1_000_003, 2))
    kind = rd.IntervalRNSArray.from_ints if case.system == "interval" else rd.from_ints
    must_fail(lambda: x.array + kind([1], other), ValueError, "another moduli set")
    if x.values.ndim == 1 and len(x.values) > 2:
        must_fail(lambda: x.array + x.array[:2], ValueError, "shapes that do not broadcast")
    same_array(computed(x.array == x.array), np.ones(x.values.shape, dtype=bool), "x == x")
    return 5
