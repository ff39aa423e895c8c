"""Laws of conversions: integers, limbs, bytes, residues, digits, intervals, other moduli; moduli sets."""

import itertools
import operator
from functools import reduce
from typing import Any

import gmpy2
import numpy as np
from oracles.integers import encoded, limbs, mapped, objects
from oracles.interval import encloses

import rnsdask as rd
from laws import inputs
from laws.case import (
    INTEGERS,
    INTERVALS,
    RESIDUES,
    RNS,
    Case,
    Chosen,
    System,
    check_index,
    computed,
    law,
    law_of,
    must_fail,
    shown,
)
from laws.systems import interval_system, is_narrow, rns_system
from rnsdask.rns import convert


def eager(chosen: Chosen) -> Any:
    """The residues of an array, for functions of NumPy and CuPy arrays alone."""
    residues = chosen.array.residues
    return residues.compute() if hasattr(residues, "dask") else residues


def in_system(case: Case, system: System) -> Case:
    """A case of the results of a conversion."""
    return Case(system, "eager", case.processor, case.random, case.folder)


@law
def integers_round_trip(case: Case) -> None:
    """In by the users' way and by words, and out again, as an array and one by one."""
    x, a = case.draw()
    case.claim_array(x, a)
    case.claim_array(case.system.from_ints(a), a, "from_ints")
    case.claim(np.asarray(x), a, "NumPy's conversion")
    b, y = case.take(1, integers=False)[0]
    case.claim_array(y, b)
    for got, expected in zip(y[:3], b[:3], strict=True):
        if b.ndim == 1:
            case.claim(got, expected, "iteration")
        else:
            case.claim_array(got, expected, "iteration")


@law
def conversions_round_trip(case: Case) -> None:
    x, a = case.draw()
    for convert_back in case.system.round_trips:
        case.claim_array(convert_back(x), a)


@law_of(*INTEGERS)
def integers_of_any_type_are_taken(case: Case) -> None:
    """gmpy2's, lists, machine integers; a number out of range is an error."""
    (x,), random, system = case.take(), case.random, case.system.value
    given: Any = random.choice((x.values, mapped(gmpy2.mpz, x.values), x.values.ravel().tolist()))
    expected = x.values if isinstance(given, np.ndarray) else x.values.ravel()
    chunks = random.choice((None, "auto", 128)) if expected.ndim == 1 else random.choice((None, "auto"))
    chunks = chunks if expected.size else None
    if expected.size:
        beyond = case.limits.highest + 1, case.limits.lowest - 1, case.limits.product * 3
        wrong = expected.copy()
        wrong.flat[random.randrange(expected.size)] = random.choice(beyond)
        must_fail(lambda: rd.from_ints(wrong, system, chunks=chunks), ValueError, "a number out of range")
    case.claim_array(rd.from_ints(given, system, chunks=chunks), expected, "from_ints")
    dtype = np.dtype(random.choice(("int8", "uint8", "int16", "int32", "uint32", "int64", "uint64")))
    info = np.iinfo(dtype)
    lowest, highest = max(int(info.min), case.limits.lowest), min(int(info.max), case.limits.highest)
    values = [
        random.choice((lowest, highest, random.randint(lowest, highest)))
        for _ in range(random.randint(1, 100))
    ]
    case.note("values", values)
    case.claim_array(
        rd.from_ints(np.array(values, dtype=dtype), system, chunks=None), objects(values), str(dtype)
    )


@law_of(*RNS)
def limbs_are_digits_of_words(case: Case) -> None:
    """Functions of residues and limbs without arrays; limbs that are out of range are an error."""
    (x,), random = case.take(), case.random
    moduli, signed = case.system.value.moduli, case.system.signed
    residues, count = eager(x), moduli.limb_count(signed)
    case.claim(convert.to_limbs(residues, moduli, signed), limbs(x.values, count), "limbs")
    wide = limbs(x.values, count + random.randint(0, 3))
    again = convert.to_residues(case.processor.xp.asarray(wide), moduli, signed)
    case.claim(again, encoded(x.values, moduli.moduli), "residues")
    case.claim(convert.limbs_to_ints(wide, signed), x.values, "limbs to ints")
    case.claim(convert.ints_to_limbs(x.values, wide.shape[-1], signed), wide, "ints to limbs")
    beyond = random.choice((case.limits.highest + 1, case.limits.highest + 2, case.limits.product + 5))
    beyond = case.limits.lowest - 1 if signed and random.random() < 0.5 else beyond
    words = case.processor.xp.asarray(limbs(objects([0, beyond, 0]), count + 1))
    case.note("number out of range", beyond)
    error = must_fail(lambda: convert.to_residues(words, moduli, signed), ValueError, "out of range")
    assert "position 1" in str(error), f"another position: {error}"


@law_of(*INTEGERS)
def machine_words_round_trip(case: Case) -> None:
    """Numbers as limbs of either width along any axis, and as bytes, and arrays of these again."""
    (x,), random, signed = case.take(), case.random, case.system.signed
    bits, axis = random.choice((32, 64)), random.randint(0, x.values.ndim)
    case.note("bits, axis", (bits, axis))
    words = x.array.to_limbs(bits, axis=axis)
    places = bits * np.arange(words.shape[axis]).astype(object)
    expected = (x.values[..., None] >> places) & ((1 << bits) - 1)
    case.claim(words, np.moveaxis(expected, -1, axis), "limbs")
    case.claim_array(rd.from_limbs(words, x.array.system, axis=axis), x.values, "from limbs")
    order = random.choice(("little", "big"))
    data = x.array.to_bytes(byteorder=order)
    length = data.shape[-1]
    rows = [list(v.to_bytes(length, order, signed=signed)) for v in x.values.ravel().tolist()]
    case.claim(data, np.array(rows, dtype=np.uint8).reshape(*x.values.shape, length), "bytes")
    case.claim_array(rd.from_bytes(data, byteorder=order, moduli=x.array.system), x.values, "from bytes")


@law_of(*RNS)
def measured_bounds_are_least(case: Case) -> None:
    """A measured bound has as many bits as the greatest magnitude; a lesser one is an error."""
    (x,), value = case.take(), case.system.value
    flat = x.values.ravel().tolist()
    greatest = max(map(abs, flat), default=0)
    longest = max((v if v >= 0 else -v - 1 for v in flat), default=0)
    measured = x.array.measure_bound()
    assert measured >= greatest, f"the bound {shown(measured)} is below {shown(greatest)}"
    least = 1 << max(greatest, longest).bit_length()
    assert measured < least, f"the bound {shown(measured)} is longer than {shown(greatest)}"
    case.claim_array(x.array.with_bound(measured), x.values, "with the measured bound")
    if greatest:
        bound = case.random.choice((greatest - 1, greatest // 2, 0))
        case.note("bound", bound)
        make = lambda b: rd.from_residues(x.array.residues, value.moduli, value.signed, b)  # noqa: E731
        must_fail(lambda: make(bound).residues, ValueError, "a bound too small")
        case.claim_array(make(greatest), x.values, "with the least bound")


@law_of(*RNS)
def wrong_residues_are_refused(case: Case) -> None:
    (x,), random, value = case.take(), case.random, case.system.value
    moduli = value.moduli.moduli
    rows = [i for i, m in enumerate(moduli) if m < 2**32]
    if not rows or not x.values.size:
        return
    row, column = random.choice(rows), random.randrange(x.values.size)
    words = np.array(computed(x.array.residues), order="C")
    words.reshape(len(words), -1)[row, column] = random.choice((moduli[row], 2**32 - 1))
    given = case.processor.xp.asarray(words)
    error = must_fail(
        lambda: rd.from_residues(given, value.moduli, value.signed), ValueError, "a wrong residue"
    )
    assert f"position {column} " in str(error), f"another position: {error}"


@law_of(*RESIDUES)
def mixed_radix_digits_are_quotients(case: Case) -> None:
    (x,), moduli = case.take(), case.system.value.moduli
    got = rd.mixed_radix_digits(x.array if case.system.kind == "interval" else eager(x), moduli)
    rest, rows = x.values % case.limits.product, []
    for m in moduli:
        rows.append((rest % m).astype(np.uint32))
        rest = rest // m
    case.claim(got, np.stack(rows), "digits")


# ---- intervals and fixed point -----------------------------------------------------------------------------


@law_of(*RNS)
def intervals_enclose_numbers(case: Case) -> None:
    (x,), accuracy = case.take(), case.random.choice((1e-7, 1e-3, 0.5, 1e-9))
    got = x.array.interval(accuracy)
    fields = [computed(part) for part in (got.low, got.upp, got.exponent)]
    assert all(f.shape == x.values.shape for f in fields), "shape of the intervals"
    rows = zip(x.values.ravel().tolist(), *(f.ravel().tolist() for f in fields), strict=True)
    for value, low, upp, exponent in itertools.islice(rows, 1000):
        what = f"{shown(value)}: [{low!r}, {upp!r}] * 2**{exponent}"
        assert encloses(low, upp, exponent, value, case.limits.product), what
        assert is_narrow(low, upp, value, accuracy), what


@law_of(*RNS)
def fixed_points_enclose_numbers(case: Case) -> None:
    (x,), random, product = case.take(), case.random, case.limits.product
    bits, scale = random.choice((None, 64, 96, 128)), random.choice((0, 0, 1, 40, 1000))
    case.note("bits, scale", (bits, scale))
    got = rd.fixed_point_interval(eager(x), case.system.value.moduli, bits, scale)
    ends = []
    for part in (got.low, got.upp):
        words = computed(part).astype(object)
        assert words.shape[1:] == x.values.shape, "shape of the bounds"
        zeros = np.zeros(x.values.shape, dtype=object)
        ends.append(sum((words[k] << 32 * k for k in range(len(words))), zeros))
    inside = (((x.values << scale) % product) << got.bits) // product
    wrong = np.asarray((ends[0] > inside) | (ends[1] < inside))
    if wrong.any():
        i = int(wrong.ravel().argmax())
        low, upp, value = (shown(part.ravel()[i]) for part in (*ends, inside))
        raise AssertionError(f"fixed point at {i}: {value} is not from {low} to {upp}")
    zero = x.values == 0
    assert (ends[0][zero] == 0).all(), "the low bounds of 0 are not 0"
    assert (ends[1][zero] == 0).all(), "the upper bounds of 0 are not 0"
    if bits is None:
        assert (ends[1] - ends[0] <= 1 << got.bits - 24).all(), "bounds further apart than 2**(bits - 24)"


INTERVAL_RESULTS = {
    "add": lambda x, y, M: (x + y, M),
    "subtract": lambda x, y, M: (x - y, M),
    "multiply": lambda x, y, M: (x * y, M),
    "divide": lambda x, y, M: (x, y * M),
}


@law_of(*INTERVALS)
def interval_arithmetic_encloses_results(case: Case) -> None:
    """Bounds of the magnitudes' sums, differences, products and quotients, as fractions of M."""
    x, y = case.take(2, integers=False)
    if x.values.shape != y.values.shape or not x.values.size:
        return
    name = case.random.choice(tuple(INTERVAL_RESULTS))
    if name == "divide" and (y.values == 0).any():
        return
    case.note("operation", name)
    value = case.system.value
    a, b = (rd.IntervalRNSArray(computed_words(one.array), value).interval() for one in (x, y))
    got = rd.interval_arithmetic(name, a, b, value.moduli)
    fields = [computed(part).ravel().tolist() for part in (got.low, got.upp, got.exponent)]
    rows = zip(abs(x.values).ravel().tolist(), abs(y.values).ravel().tolist(), *fields, strict=True)
    for left, right, low, upp, exponent in itertools.islice(rows, 500):
        top, bottom = INTERVAL_RESULTS[name](left, right, case.limits.product)
        what = f"{name}: {shown(left)}, {shown(right)}: not in [{low!r}, {upp!r}] * 2**{exponent}"
        assert encloses(low, upp, exponent, top, bottom), what


def computed_words(array: Any) -> Any:
    return array.columns.compute() if hasattr(array.columns, "dask") else array.columns


# ---- other moduli ------------------------------------------------------------------------------------------


@law_of(*RESIDUES)
def other_moduli_hold_the_same_numbers(case: Case) -> None:
    """More moduli, fewer or others; numbers that do not fit are an error that names one."""
    (x,), random = case.take(), case.random
    own = case.system.value.moduli
    kept = list(own.moduli[: random.randint(1, len(own))])
    more = [m for m in inputs.coprime_moduli(random, 3).moduli if all(np.gcd(m, k) == 1 for k in kept)]
    larger = [m for m in (2**32 - 17, 65521, 2**31 - 1) if all(np.gcd(m, k) == 1 for k in own.moduli)]
    targets = rd.ModuliSet(random.choice((kept, kept + more, more or kept, [*larger, *own.moduli])))
    case.note("targets", targets.moduli)
    describe = interval_system if case.system.kind == "interval" else rns_system
    there = describe("targets", targets, *([] if describe is interval_system else [case.system.signed]))
    outside = there.limits.outside(x.values)
    change = x.array.shrink if len(targets) <= len(own) and random.random() < 0.5 else x.array.extend
    if outside.any():
        error = must_fail(lambda: change(targets).residues, ValueError, "numbers that do not fit")
        check_index(error, outside, x.array)
        return
    claims = in_system(case, there)
    claims.claim_array(change(targets), x.values, "under other moduli")
    claims.settle()


@law_of(*INTERVALS)
def intervals_become_residues(case: Case) -> None:
    """IntervalRNSArrays as RNSArrays and back; a number out of range is an error that names it."""
    (x,), signed = case.take(), case.random.random() < 0.5
    there = rns_system("residues", case.system.value.moduli, signed)
    outside = there.limits.outside(x.values)
    if outside.any():
        error = must_fail(lambda: x.array.to_rns(signed).residues, ValueError, "numbers out of range")
        check_index(error, outside, x.array)
        x = case.chosen(np.where(outside, 0, x.values))
    got = x.array.to_rns(signed)
    claims = in_system(case, there)
    claims.claim_array(got, x.values, "as residues")
    claims.settle()
    case.claim_array(rd.IntervalRNSArray.from_rns(got), x.values, "and back")


@law_of(*RNS)
def moduli_sets_are_what_they_say(case: Case) -> None:
    """Products and inverses of the case's set; a set for a number of bits; moduli that share a factor."""
    random, own = case.random, case.system.value.moduli
    bits, width = random.randint(1, 2000), random.randint(12, 32)
    made = rd.ModuliSet.for_bits(bits, width)
    case.note("bits, width", (bits, width))
    product = reduce(operator.mul, made.moduli)
    assert product == made.product >= 2**bits, "for_bits: a product too small"
    assert product // made.moduli[-1] < 2**bits, "for_bits: a modulus too many"
    one = random.randrange(len(own))
    assert own.partial_products[one] * own[one] == case.limits.product, "a partial product"
    assert own.partial_products[one] * own.partial_inverses[one] % own[one] == 1 % own[one], (
        "a partial inverse"
    )
    shared = (*own.moduli, 2 * own.moduli[one] if own.moduli[one] <= 2**31 else own.moduli[one])
    must_fail(lambda: rd.ModuliSet(shared), ValueError, "moduli that share a factor")
