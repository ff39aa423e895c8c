"""Conversion between numbers, limbs, residues, digits, intervals and moduli sets."""

import itertools
from random import Random
from typing import Any

import dask
import gmpy2
import numpy as np
from oracles.integers import Range, encoded, limbs, mapped, objects

import rnsdask as rd
from fuzzing import inputs
from fuzzing.case import Case, Chosen
from fuzzing.checking import (
    check_interval,
    computed,
    firsts,
    must_fail,
    named_index,
    operation,
    require,
    same_array,
    same_numbers,
    shown,
)
from rnsdask.rns import convert

RNS = ("unsigned", "signed")


def eager(chosen: Chosen) -> Any:
    """The residues of an array, for functions of NumPy and CuPy arrays alone."""
    residues = chosen.array.residues
    return residues.compute() if hasattr(residues, "dask") else residues


@operation("to ints")
def check_to_ints(case: Case, rng: Random) -> int:
    (x,) = case.take(rng)
    count = same_numbers(case, x.array, x.values) + same_array(np.asarray(x.array), x.values, "np.asarray")
    if len(x.values) <= 5 and x.values.size:
        for got, expected in zip(x.array, x.values, strict=True):
            same_array(
                computed(got) if x.values.ndim == 1 else got.to_ints(), np.asarray(expected), "iteration"
            )
    return count


@operation("from ints")
def check_from_ints(case: Case, rng: Random) -> int:
    (x,) = case.take(rng)
    as_given = rng.choice((lambda v: v, lambda v: mapped(gmpy2.mpz, v), lambda v: v.reshape(-1).tolist()))
    given = as_given(x.values)
    expected = x.values if isinstance(given, np.ndarray) else x.values.reshape(-1)
    chunks = rng.choice((None, "auto", 128)) if expected.ndim == 1 else rng.choice((None, "auto"))
    if not expected.size:
        chunks = None
    position, by_one = rng.randrange(max(expected.size, 1)), rng.random() < 0.5
    if by_one and expected.size:
        ends = rng.choice((case.limits.highest + 1, case.limits.lowest - 1, case.limits.product * 3))
        wrong = expected.copy()
        wrong.reshape(-1)[position] = ends
        must_fail(lambda: made(case, wrong, chunks), ValueError, "a number out of range")
    return same_numbers(case, made(case, given, chunks), expected)


def made(case: Case, given: Any, chunks: Any) -> Any:
    if case.system == "interval":
        return rd.IntervalRNSArray.from_ints(given, case.moduli, chunks)
    return rd.from_ints(given, case.moduli, case.signed, chunks)


@operation("from machine integers")
def check_from_machine_integers(case: Case, rng: Random) -> int:
    dtype = np.dtype(rng.choice(("int8", "uint8", "int16", "int32", "uint32", "int64", "uint64")))
    info = np.iinfo(dtype)
    lowest, highest = max(int(info.min), case.limits.lowest), min(int(info.max), case.limits.highest)
    values = [rng.choice((lowest, highest, rng.randint(lowest, highest))) for _ in range(rng.randint(1, 100))]
    case.note("values", values)
    return same_numbers(case, made(case, np.array(values, dtype=dtype), None), objects(values))


@operation("limbs", RNS)
def check_limbs(case: Case, rng: Random) -> int:
    (x,) = case.take(rng)
    residues = eager(x)
    got = convert.to_limbs(residues, case.moduli, case.signed)
    count = case.moduli.limb_count(case.signed)
    same_array(got, limbs(x.values, count), "limbs")
    wide = limbs(x.values, count + rng.randint(0, 3))
    again = convert.to_residues(case.processor.asarray(wide), case.moduli, case.signed)
    same_array(again, encoded(x.values, case.moduli.moduli), "residues")
    same_array(convert.limbs_to_ints(wide, case.signed), x.values, "limbs to ints")
    same_array(convert.ints_to_limbs(x.values, wide.shape[-1], case.signed), wide, "ints to limbs")
    return max(x.values.size, 1)


@operation("machine words")
def check_machine_words(case: Case, rng: Random) -> int:
    """Numbers as limbs of either width along any axis, and as bytes, and arrays of these again."""
    (x,) = case.take(rng)
    signed, bits, axis = case.system != "unsigned", rng.choice((32, 64)), rng.randint(0, x.values.ndim)
    case.note("bits, axis", (bits, axis))
    words = x.array.to_limbs(bits, axis=axis)
    places = bits * np.arange(words.shape[axis]).astype(object)
    expected = (x.values[..., None] >> places) & ((1 << bits) - 1)
    same_array(words, np.moveaxis(expected, -1, axis), "limbs")
    count = same_numbers(case, rd.from_limbs(words, x.array.system, axis=axis), x.values, "from limbs")
    order = rng.choice(("little", "big"))
    data = x.array.to_bytes(byteorder=order)
    length = data.shape[-1]
    rows = [list(v.to_bytes(length, order, signed=signed)) for v in x.values.reshape(-1).tolist()]
    same_array(data, np.array(rows, dtype=np.uint8).reshape(*x.values.shape, length), "bytes")
    again = rd.from_bytes(data, byteorder=order, moduli=x.array.system)
    return count + same_numbers(case, again, x.values, "from bytes")


@operation("measured bound", RNS)
def check_measured_bound(case: Case, rng: Random) -> int:
    """A measured bound has as many bits as the greatest magnitude, and the array can be given it."""
    (x,) = case.take(rng)
    greatest = max(map(abs, x.values.reshape(-1).tolist()), default=0)
    longest = max((v if v >= 0 else -v - 1 for v in x.values.reshape(-1).tolist()), default=0)
    measured = x.array.measure_bound()
    require(measured >= greatest, f"the bound {shown(measured)} is below {shown(greatest)}")
    least = 1 << max(greatest, longest).bit_length()
    require(measured < least, f"the bound {shown(measured)} is longer than {shown(greatest)}")
    return same_numbers(case, x.array.with_bound(measured), x.values)


@operation("wrong limbs", RNS)
def check_wrong_limbs(case: Case, rng: Random) -> int:
    beyond = rng.choice((case.limits.highest + 1, case.limits.highest + 2, case.limits.product + 5))
    if case.signed and rng.random() < 0.5:
        beyond = case.limits.lowest - 1
    count = case.moduli.limb_count(case.signed) + 1
    words = case.processor.asarray(limbs(objects([0, beyond, 0]), count))
    case.note("number", beyond)
    error = must_fail(
        lambda: convert.to_residues(words, case.moduli, case.signed), ValueError, "out of range"
    )
    require("position 1" in str(error), f"another position: {error}")
    return 1


@operation("wrong residues", RNS)
def check_wrong_residues(case: Case, rng: Random) -> int:
    (x,) = case.take(rng)
    rows = [i for i, m in enumerate(case.moduli.moduli) if m < 2**32]
    if not rows or not x.values.size:
        return 0
    row, column = rng.choice(rows), rng.randrange(x.values.size)
    words = np.array(computed(x.array.residues), order="C")
    words.reshape(len(words), -1)[row, column] = rng.choice((case.moduli.moduli[row], 2**32 - 1))
    given = case.processor.asarray(words)
    error = must_fail(lambda: rd.from_residues(given, case.moduli, case.signed), ValueError, "wrong residue")
    require(f"position {column} " in str(error), f"another position: {error}")
    return 1


@operation("wrong bound", RNS)
def check_wrong_bound(case: Case, rng: Random) -> int:
    """A bound that a number is above is an error: at once, or when a lazy array is computed."""
    (x,) = case.take(rng)
    least = max(map(abs, x.values.reshape(-1).tolist()), default=0)
    if least == 0:
        return 0
    bound = rng.choice((least - 1, least // 2, 0))
    case.note("bound", bound)
    must_fail(
        lambda: rd.from_residues(x.array.residues, case.moduli, case.signed, bound).residues,
        ValueError,
        "a bound too small",
    )
    again = rd.from_residues(x.array.residues, case.moduli, case.signed, least)
    return same_numbers(case, again, x.values)


@operation("write to residues")
def check_write_to_residues(case: Case, rng: Random) -> int:
    """Nobody changes an array's numbers: residues of NumPy are read-only, those of Dask a copy."""
    (x,) = case.take(rng)
    if case.processor is not np or not x.values.size:
        return 0
    words = x.array.residues
    if not dask.is_dask_collection(x.array):
        must_fail(lambda: words.__setitem__(..., 0), ValueError, "a write to residues")
    else:
        words[...] = 0
    return same_numbers(case, x.array, x.values)


@operation("mixed-radix digits")
def check_digits(case: Case, rng: Random) -> int:
    (x,) = case.take(rng)
    got = computed(rd.mixed_radix_digits(x.array if case.system == "interval" else eager(x), case.moduli))
    rest, rows = x.values % case.limits.product, []
    for m in case.moduli.moduli:
        rows.append((rest % m).astype(np.uint32))
        rest = rest // m
    return same_array(got, np.stack(rows), "digits")


@operation("interval", RNS)
def check_intervals(case: Case, rng: Random) -> int:
    (x,), accuracy = case.take(rng), rng.choice((1e-7, 1e-3, 0.5, 1e-9))
    got = x.array.interval(accuracy)
    fields = [computed(field) for field in (got.low, got.upp, got.exponent)]
    require(all(f.shape == x.values.shape for f in fields), "shape of the intervals")
    rows = zip(x.values.reshape(-1).tolist(), *(f.reshape(-1).tolist() for f in fields), strict=True)
    for value, low, upp, exponent in itertools.islice(rows, 1000):
        check_interval(value, case.limits.product, low, upp, exponent, accuracy, "interval")
    return min(x.values.size, 1000)


@operation("fixed point", RNS)
def check_fixed_point(case: Case, rng: Random) -> int:
    (x,), bits, scale = case.take(rng), rng.choice((None, 64, 96, 128)), rng.choice((0, 0, 1, 40, 1000))
    case.note("bits, scale", (bits, scale))
    got = rd.fixed_point_interval(eager(x), case.moduli, bits, scale)
    product, ends = case.limits.product, []
    for field in (got.low, got.upp):
        words = computed(field).astype(object)
        require(words.shape[1:] == x.values.shape, "shape of the bounds")
        ends.append(
            sum((words[k] << 32 * k for k in range(len(words))), np.zeros(x.values.shape, dtype=object))
        )
    scaled = (x.values << scale) % product
    t = (scaled << got.bits) // product
    wrong = (ends[0] > t) | (ends[1] < t)
    if wrong.any():
        i = int(np.asarray(wrong).reshape(-1).argmax())
        low, upp, inside = (shown(part.reshape(-1)[i]) for part in (*ends, t))
        require(False, f"fixed point at {i}: {inside} is not from {low} to {upp}")
    zero = x.values == 0
    require((ends[0][zero] == 0).all() and (ends[1][zero] == 0).all(), "the bounds of 0 are not 0")
    if bits is None:
        require((ends[1] - ends[0] <= 1 << got.bits - 24).all(), "bounds further apart than 2**(bits - 24)")
    return max(x.values.size, 1)


@operation("extend")
def check_extend(case: Case, rng: Random) -> int:
    (x,) = case.take(rng)
    kept = list(case.moduli.moduli[: rng.randint(1, len(case.moduli))])
    more = [m for m in inputs.coprime_moduli(rng, 3).moduli if all(np.gcd(m, k) == 1 for k in kept)]
    larger = [m for m in (2**32 - 17, 65521, 2**31 - 1) if all(np.gcd(m, k) == 1 for k in case.moduli.moduli)]
    targets = rd.ModuliSet(rng.choice((kept, kept + more, more or kept, [*larger, *case.moduli.moduli])))
    case.note("targets", targets.moduli)
    limits = Range.of(case.system, targets.product)
    outside = limits.outside(x.values)
    change = x.array.shrink if len(targets) <= len(case.moduli) and rng.random() < 0.5 else x.array.extend
    if outside.any():
        error = must_fail(lambda: change(targets).residues, ValueError, "numbers that do not fit")
        require(
            named_index(error) in firsts(outside, getattr(x.array, "chunks", None)),
            f"another number: {error}",
        )
        return outside.size
    got = change(targets)
    require(got.moduli == targets, "other moduli")
    there = Case(case.seed, case.system, targets, case.processor, case.is_lazy, [])
    return same_numbers(there, got, x.values)


@operation("to RNS and back", ("interval",))
def check_to_rns(case: Case, rng: Random) -> int:
    (x,), signed = case.take(rng), rng.random() < 0.5
    system = "signed" if signed else "unsigned"
    there = Case(case.seed, system, case.moduli, case.processor, case.is_lazy, [])
    outside = there.limits.outside(x.values)
    if outside.any():
        error = must_fail(lambda: x.array.to_rns(signed).residues, ValueError, "numbers out of range")
        require(
            named_index(error) in firsts(outside, getattr(x.array, "chunks", None)),
            f"another number: {error}",
        )
        inside = np.where(outside, 0, x.values)
        x = Chosen(inside, rd.IntervalRNSArray.from_ints(inside, case.moduli))
    got = x.array.to_rns(signed)
    same_numbers(there, got, x.values)
    return same_numbers(case, rd.IntervalRNSArray.from_rns(got), x.values)


INTERVALS = {
    "add": lambda x, y, M: (x + y, M),
    "subtract": lambda x, y, M: (x - y, M),
    "multiply": lambda x, y, M: (x * y, M),
    "divide": lambda x, y, M: (x, y * M),
}


@operation("interval arithmetic", ("interval",))
def check_interval_arithmetic(case: Case, rng: Random) -> int:
    """Bounds of the magnitudes' sums, differences, products and quotients, as fractions of M."""
    x, y = case.take(rng, 2, integers=False)
    if x.values.shape != y.values.shape or not x.values.size:
        return 0
    name = rng.choice(tuple(INTERVALS))
    if name == "divide" and (y.values == 0).any():
        return 0
    case.note("operation", name)
    a, b = (
        rd.IntervalRNSArray(computed_words(one.array), rd.IntervalRNS(case.moduli)).interval()
        for one in (x, y)
    )
    got = rd.interval_arithmetic(name, a, b, case.moduli)
    fields = [computed(field).reshape(-1).tolist() for field in (got.low, got.upp, got.exponent)]
    rows = zip(abs(x.values).reshape(-1).tolist(), abs(y.values).reshape(-1).tolist(), *fields, strict=True)
    for left, right, low, upp, exponent in itertools.islice(rows, 500):
        top, bottom = INTERVALS[name](left, right, case.limits.product)
        for end, is_low in ((low, True), (upp, False)):
            p, q = end.as_integer_ratio()
            p, q = (p << exponent, q) if exponent >= 0 else (p, q << -exponent)
            holds = p * bottom <= top * q if is_low else p * bottom >= top * q
            require(
                holds, f"{name}: {shown(left)}, {shown(right)}: not in [{low!r}, {upp!r}] * 2**{exponent}"
            )
    return min(x.values.size, 500)


def computed_words(array: rd.IntervalRNSArray) -> Any:
    return array.columns.compute() if dask.is_dask_collection(array) else array.columns
