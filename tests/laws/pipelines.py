"""Law of pipelines: steps of all kinds, from one number system to another, on the way to disk and back."""

import pickle
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

import dask
import numpy as np
from oracles.integers import Range, mapped, matrix_product

import rnsdask as rd
from laws import inputs, shapes
from laws.case import INTEGERS, Case, law_of

MOST = 2000
"""Numbers of an array at most."""


@dataclass(frozen=True)
class State:
    """Exact numbers, the array that must hold them, and what arrays of its number system hold."""

    values: np.ndarray
    array: Any
    limits: Range


Step = Callable[[Random, State], State | None]
"""Makes the next state, or None where the step does not suit."""


def of_both(make: Callable[[Random, State], Callable[[Any, Any], Any]]) -> Step:
    """A step that is one function for NumPy's array and for ours, if its results are in range."""

    def step(rng: Random, state: State) -> State | None:
        function = make(rng, state)
        expected = np.asarray(function(np, state.values), dtype=object)
        if expected.size > MOST or not expected.ndim or state.limits.outside(expected).any():
            return None
        return replace(state, values=mapped(int, expected), array=function(rd, state.array))

    return step


def reshaped(rng: Random, state: State) -> Callable[[Any, Any], Any]:
    return rng.choice(shapes.FUNCTIONS)(rng, state.values) if state.values.size else lambda _, x: x


def with_integer(rng: Random, state: State) -> Callable[[Any, Any], Any]:
    number = rng.choice((0, 1, 2, 3, -1, -7, rng.getrandbits(20), rng.getrandbits(70)))
    k = inputs.clipped(number, (state.limits.lowest, state.limits.highest))
    divisor = rng.choice((1, 2, 3, 7, 2**16, 2**40 + 1))
    function: Callable[[Any, Any], Any] = rng.choice(
        (
            lambda _, x: x + k,
            lambda _, x: k - x,
            lambda _, x: x * k,
            lambda _, x: x // divisor,
            lambda _, x: x % divisor,
            lambda _, x: np.maximum(x, k),
            lambda _, x: np.minimum(k, x),
            lambda _, x: np.where(x < k, x, k),
            lambda _, x: abs(x),
        )
    )
    return function


def with_itself(rng: Random, state: State) -> Callable[[Any, Any], Any]:
    a = state.values
    axis = rng.randrange(a.ndim)
    functions: list[Callable[[Any, Any], Any]] = [
        lambda _, x: x + x[..., ::-1],
        lambda _, x: x - x[..., :1],
        lambda _, x: x * x,
        lambda _, x: np.where(x > x[..., ::-1], x, x[..., :1]),
        lambda _, x: np.sort(x, axis=axis),
        lambda _, x: np.cumsum(x, axis=axis),
        lambda _, x: np.maximum.accumulate(x, axis=axis),
        lambda _, x: np.diff(x, axis=axis),
        lambda _, x: np.unique(x),
        lambda _, x: np.outer(x[..., :2], x),
        lambda _, x: x[x > x.reshape(-1)[-1]],
    ]
    if a.ndim == 2 and not isinstance(state.array, rd.PositionalArray):
        functions.append(lambda m, x: matrix_product(x, x.T) if m is np else x @ x.T)
    return rng.choice(functions) if a.size else lambda _, x: x


def indexed(rng: Random, state: State) -> Callable[[Any, Any], Any]:
    a = state.values
    key = shapes.key_for(rng, a.shape)
    try:
        fits = np.ndim(a[key]) > 0
    except (IndexError, TypeError, ValueError):
        fits = False
    return (lambda _, x: x[key]) if fits else (lambda _, x: x)


def passed_on(rng: Random, state: State, folder: Path) -> State:
    """Pass numbers on: computed, pickled, in other chunks, in other words, or through a store."""
    x = state.array
    ways: list[Callable[[], Any]] = [
        lambda: pickled(x),
        lambda: x.compute() if dask.is_dask_collection(x) else x,
        lambda: x.persist() if dask.is_dask_collection(x) else x,
        lambda: x.rechunk(inputs.chunks(rng, state.values.shape)) if state.values.size else x,
        lambda: rd.from_ints(
            x.to_ints(), x.system.with_bound(None) if isinstance(x, rd.RNSArray) else x.system
        ),
        lambda: rd.from_limbs(
            x.to_limbs(), x.system.with_bound(None) if isinstance(x, rd.RNSArray) else x.system
        ),
        lambda: x.with_bound(x.measure_bound()) if isinstance(x, rd.RNSArray) else x,
        lambda: stored(x, state.values.shape, folder),
    ]
    return replace(state, array=rng.choice(ways)())


def pickled(x: Any) -> Any:
    """Pickle an array and load it again, which Dask's graphs refuse while another thread computes them."""
    for _ in range(50):
        try:
            return pickle.loads(pickle.dumps(x))
        except RuntimeError as error:
            if "changed size during iteration" not in str(error):
                raise
            time.sleep(0.02)
    return x


def stored(x: Any, shape: tuple[int, ...], folder: Path) -> Any:
    path = folder / "x.zarr"
    x.to_zarr(path, chunks=None if 0 in shape else shape)
    return rd.open_zarr(path).compute()


def converted(rng: Random, state: State) -> State | None:
    """In another number system that holds the numbers."""
    flat = state.values.ravel().tolist()
    least, greatest = min(flat, default=0), max(flat, default=0)
    bits = max(1, greatest.bit_length(), (-least).bit_length()) + rng.choice((1, 2, 33))
    moduli = rd.ModuliSet.for_bits(bits, rng.choice((17, 32)))
    signed = least < 0 or rng.random() < 0.5
    x, kind = state.array, "signed" if signed else "unsigned"
    if isinstance(x, rd.PositionalArray):
        limits = Range.of(kind, moduli.product)
        return (
            State(state.values, x.to_rns(moduli, signed), limits) if holds(limits, least, greatest) else None
        )
    way = rng.choice(("positional", "extend", "interval"))
    if way == "extend":
        own = "interval" if isinstance(x, rd.IntervalRNSArray) else "signed" if x.signed else "unsigned"
        limits = Range.of(own, moduli.product)
        return State(state.values, x.extend(moduli), limits) if holds(limits, least, greatest) else None
    if way == "interval":
        if isinstance(x, rd.IntervalRNSArray):
            limits = Range.of(kind, x.moduli.product)
            return State(state.values, x.to_rns(signed), limits) if holds(limits, least, greatest) else None
        return State(state.values, rd.IntervalRNSArray.from_rns(x), Range.of("interval", x.moduli.product))
    limits = Range.of("unsigned" if state.limits.system == "unsigned" else "signed", 1 << bits)
    return State(state.values, x.to_positional(bits), limits) if holds(limits, least, greatest) else None


def holds(limits: Range, *values: int) -> bool:
    return all(map(limits.holds, values))


STEPS: dict[str, Step] = {
    "shape": of_both(reshaped),
    "integer": of_both(with_integer),
    "itself": of_both(with_itself),
    "index": of_both(indexed),
    "other system": converted,
}


@law_of(*INTEGERS)
def pipelines_keep_numbers(case: Case) -> None:
    (x,) = case.take()
    if case.processor.name == "cuda" or x.values.size > MOST:
        return
    state, done = State(x.values, x.array, case.limits), []
    for _ in range(case.random.randint(2, 10)):
        name = case.random.choice(("passed on", *STEPS))
        done.append(name)
        case.note("steps", done)
        if name == "passed on":
            state = passed_on(case.random, state, case.folder())
        else:
            state = STEPS[name](case.random, state) or state
        check_bound(state)
    case.claim(state.array, state.values, " -> ".join(done))


def check_bound(state: State) -> None:
    greatest = max(map(abs, state.values.ravel().tolist()), default=0)
    bound = getattr(state.array, "bound", None)
    assert bound is None or bound >= greatest, f"the bound {bound} is below {greatest}"
