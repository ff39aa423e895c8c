"""Laws of arrays as values and as Dask collections: nothing changes them, tokens, pickles, chunks, stores."""

import copy
import operator
import pickle
import warnings
from collections.abc import Callable
from typing import Any

import cloudpickle
import dask
import dask.array as da
import numpy as np
import pytest
from dask.base import tokenize

import rnsdask as rd
from laws.case import INTEGERS, RESIDUES, RNS, Case, Chosen, computed, law, law_of, must_fail, shown


@law
def numbers_never_change(case: Case) -> None:
    x, a = case.draw()
    given = a.copy()
    made = case.system.from_ints(given)
    given[...] = 0
    case.claim_array(made, a, "an array after a write to what it was made of")
    y = x
    y -= x
    case.claim_array(y, a * 0)
    with pytest.raises(TypeError):
        x[0] = 0
    with pytest.raises(AttributeError):
        x.system = x.system
    words = x.words
    if isinstance(words, np.ndarray):
        with pytest.raises(ValueError, match="read-only"):
            words[0] = 1
    elif isinstance(words, da.Array) and hasattr(words, "__setitem__"):
        words[0] = 1  # to a copy
    case.claim_array(x, a, "an array after all")


@law
def nothing_is_computed_before_it_is_asked_for(case: Case) -> None:
    x, a = case.draw()
    with dask.config.set(scheduler=lambda *_, **__: pytest.fail("something was computed")):
        text = repr(x)
        assert not hasattr(x, "_repr_html_") or type(x).__name__ in x._repr_html_()
        assert (x.shape, x.ndim, len(x), x.size) == (a.shape, a.ndim, len(a), a.size)
        lazy = [x - x, x * 0 + x, x[::-1], x == 0, x.sum()]
        if case.system.is_ordered:
            lazy += [x // 1, x < 0, rd.maximum(x, 0), rd.sign(x), x.max(), x.argmin()]
    assert type(x).__name__ in text
    assert str(x.shape) in text
    assert len(text) < 2000
    case.claim_array(lazy[0], a * 0)


@law
def tokens_tell_numbers_apart(case: Case) -> None:
    a = case.numbers()
    state, changed = case.random.getstate(), a.copy()
    changed.flat[-1] = next(v for v in case.system.edges() if v != a.flat[-1])
    arrays = []
    for numbers in (a, a.copy(), changed):
        case.random.setstate(state)  # in the same chunks
        arrays.append(case.array(numbers))
    x, again, other = arrays
    assert tokenize(x) == tokenize(again) != tokenize(other)
    with rd.errstate(overflow="wrap"):
        results = [[y + y, y * y, y[::-1], y[1:]] for y in (x, again)]
    tokens, repeated = ([tokenize(y) for y in row] for row in results)
    assert tokens == repeated
    assert len({*tokens, tokenize(x)}) == 5 or len(set(a.ravel().tolist())) < 10


@law
def stores_round_trip(case: Case) -> None:
    """A store opens as the array that was written, and written again it has the same bytes."""
    x, a = case.draw()
    folder, contents = case.folder(), []
    for path in (folder / "first", folder / "second"):
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "the array's chunks differ", UserWarning)
            x.to_zarr(path)
        files = [file for file in path.rglob("*") if file.is_file()]
        contents.append({file.relative_to(path): file.read_bytes() for file in files})
    assert len(contents[0]) > 1
    assert contents[0] == contents[1]
    again = case.system.reopen(folder / "first")
    case.claim_array(again, a)
    for name in ("moduli", "signed", "bound"):
        assert getattr(again, name, None) == getattr(x, name, None)


@law
def stores_grow(case: Case) -> None:
    """Appended numbers come after those that are there, along any axis, in the store's chunks."""
    x, y, a, b = case.draw(2)
    for axis in range(a.ndim):
        path = case.folder() / f"grown-{axis}"
        x.to_zarr(path, chunks=17)
        y.to_zarr(path, append_dim=axis)
        again = case.system.reopen(path)
        assert all(set(lengths[:-1]) <= {17} for lengths in again.chunks)
        case.claim_array(again, np.concatenate([a, b], axis))


@law
def pickles_round_trip(case: Case) -> None:
    """Copies have the array's token, and Dask's collection functions keep its numbers."""
    x, a = case.draw()
    for module in (pickle, cloudpickle):
        again = module.loads(module.dumps(x))
        assert tokenize(again) == tokenize(x)
        case.claim_array(again, a)
    case.claim_array(copy.deepcopy(x), a)
    if dask.is_dask_collection(x):
        b, y = case.take(1, integers=False)[0]
        case.claim_array(x.persist(), a, "persisted")
        for got, expected in zip(dask.compute(x, y), (a, b), strict=True):
            case.claim_array(got, expected, "computed together")


# ---- chunks ------------------------------------------------------------------------------------------------


@law_of(*INTEGERS)
def chunks_change_no_number(case: Case) -> None:
    (x,), random = case.take(), case.random
    if not x.values.size:
        return
    along = random.choice((1, 2, 100)), random.choice((128, 256, x.values.shape[-1]))
    lengths = (*(along[0],) * (x.values.ndim - 1), along[1])
    if np.prod([-(-n // c) for n, c in zip(x.values.shape, lengths, strict=True)]) > 50:
        return
    got = x.array.rechunk(random.choice(("auto", lengths)))
    assert dask.is_dask_collection(got), "rechunk gives no Dask array"
    case.claim_array(got, x.values, "rechunked")


@law_of(*RESIDUES)
def functions_of_chunks_are_mapped(case: Case) -> None:
    """Functions that give numbers or other things, keep the shape or do not."""
    (x,) = case.take()
    if not x.values.size:
        return
    sign = case.random.choice((1, -1))
    got = x.array.map_blocks(lambda b, step: b[..., ::step][..., ::step], step=sign)
    case.claim_array(got, x.values, "turned twice")
    got = x.array.map_blocks(lambda b: np.asarray(b) % 7, dtype=object)
    case.claim(got, x.values % 7, "objects")
    must_fail(lambda: x.array.map_blocks(lambda b: b[:0]), ValueError, "a chunk of another shape")
    must_fail(lambda: x.array.map_blocks(lambda b: b == b), TypeError, "no numbers")
    must_fail(lambda: x.array.map_blocks(lambda b: b == b, dtype=np.int8), TypeError, "another dtype")


@law_of(*RNS)
def seeds_repeat_random_numbers(case: Case) -> None:
    if case.processor.name == "cuda":
        return
    moduli, signed = case.system.value.moduli, case.system.signed
    seed, size = case.random.getrandbits(40), case.random.choice((1, 100, 128, 300))
    case.note("seed, size", (seed, size))
    numbers = rd.random(moduli, size, seed=seed, chunks=128, signed=signed).to_ints()
    assert not case.limits.outside(numbers).any(), "a number out of range"
    case.claim_array(
        rd.random(moduli, (size,), seed=seed, chunks=128, signed=signed), numbers, "the same seed"
    )


# ---- stores ------------------------------------------------------------------------------------------------


@law_of(*RESIDUES)
def stores_are_overwritten_and_reduced(case: Case) -> None:
    """A store that is there is kept but for `overwrite`; parts of chunks are reduced one after the other."""
    (x,), random = case.take(), case.random
    if case.processor.name == "cuda":
        return
    path = case.folder() / "x.zarr"
    x.array.to_zarr(path)
    case.claim_array(rd.open_zarr(path), x.values, "stored")
    case.settle()
    if not x.values.size:
        return
    if random.random() < 0.3:
        count = max(1, len(x.values) // 2)
        half = x.array[:count]
        must_fail(lambda: half.to_zarr(path), rd.StoreError, "a store that is there")
        half.to_zarr(path, overwrite=True)
        case.claim_array(rd.open_zarr(path), x.values[:count], "overwritten")
    elif case.system.kind == "rns":
        part = random.choice((None, 1, 128))
        y = rd.open_zarr(path, part=part and max(part, x.values.size // 8))
        flat = x.values.ravel().tolist()
        case.claim(y.max(), max(flat), "max of a store")
        case.claim(y.sum(), sum(flat), "sum of a store")


# ---- chains of operations ----------------------------------------------------------------------------------

STEPS: tuple[tuple[str, Callable[..., Any]], ...] = (
    ("+", operator.add),
    ("-", operator.sub),
    ("*", operator.mul),
)


@law_of(*INTEGERS)
def chains_fail_where_a_step_does(case: Case) -> None:
    """A few operations one after the other: an error if any exact step is out of range, lazily too."""
    (x,), random = case.take(), case.random
    got, exact, fails, text = x.array, x.values, False, "x"
    limit = random.choice((case.limits.highest, case.limits.product, 2 * case.limits.product, 0))
    ends_in_comparison = random.random() < 0.4
    try:
        for _ in range(random.randint(2, 5)):
            name, function = random.choice(STEPS)
            other = small(case) if random.random() < 0.7 else case.take(1, integers=False)[0]
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
                case.claim(got, np.asarray(exact < limit, dtype=bool), text)
            else:
                case.claim_array(got, exact, text)
            return
        computed(got)
    except rd.RNSOverflowError:
        assert fails, f"an overflow where every step is in range: {text}"
        return
    pytest.fail(f"no overflow where a step is out of range: {text}")


def small(case: Case) -> Chosen:
    value = case.clipped(case.random.choice((0, 1, 2, 3, 10, -1, -5, case.random.getrandbits(20))))
    return Chosen(value, value)


@law_of(*RESIDUES)
def wrong_operands_are_refused(case: Case) -> None:
    """Operands that do not fit are an error at once, lazy or not."""
    (x,) = case.take()
    beyond = case.random.choice((case.limits.highest + 1, case.limits.lowest - 1))
    must_fail(lambda: x.array + beyond, ValueError, "an integer out of range")
    must_fail(lambda: x.array * 1.5, TypeError, "a float")
    must_fail(lambda: x.array + True, TypeError, "a bool")
    other = rd.ModuliSet((1_000_003, 2))
    kind = rd.IntervalRNSArray.from_ints if case.system.kind == "interval" else rd.from_ints
    must_fail(lambda: x.array + kind([1], other), ValueError, "another moduli set")
    if x.values.ndim == 1 and len(x.values) > 2:
        must_fail(lambda: x.array + x.array[:2], ValueError, "shapes that do not broadcast")
    case.claim(x.array == x.array, np.ones(x.values.shape, dtype=bool), "x == x")
