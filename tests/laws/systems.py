"""Descriptions of all number systems to the laws: those that each law is tested of, and others, drawn."""

import itertools
from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
from oracles import fermat, positional, rns
from oracles.integers import Range
from oracles.interval import encloses
from sample_arrays import host
from strategies import MODULI_SETS, bounds_around_prefixes

import rnsdask as rd
from laws import inputs
from laws.case import KINDS, Numbers, System
from laws.ring import OVERFLOW
from rnsdask import IntervalRNSArray
from rnsdask.core.moduli import ModuliSet

PLAIN_FORMS: tuple[Callable[[Any], Any], ...] = (
    lambda x: rd.from_limbs(x.to_limbs(64, axis=0), x.system, axis=0),
    lambda x: rd.from_bytes(x.to_bytes(byteorder="big"), byteorder="big", moduli=x.system),
)


def rns_system(name: str, moduli: ModuliSet, signed: bool, bound: int | None = None) -> System:
    longer = ModuliSet(reversed(ModuliSet.for_bits(max(moduli.bits + 40, 18 * len(moduli)), 17).moduli))
    return System(
        name=name,
        limits=rns.limits_of(moduli, signed),
        array=lambda a, place: rd.RNSArray(
            place(rns.encode(a, moduli, signed)), rd.RNS(moduli, signed, bound)
        ),
        from_ints=lambda a: rd.from_ints(a, moduli, signed, chunks=None),
        is_defined=lambda x, a: bool((host(x.residues) == rns.encode(a, moduli, signed)).all()),
        kind="rns",
        value=rd.RNS(moduli, signed),
        factors=moduli.moduli,
        bound=bound,
        round_trips=(
            lambda x: rd.from_residues(x.residues, x.moduli, x.signed, x.bound),
            lambda x: x.extend(longer).shrink(x.moduli),
            lambda x: IntervalRNSArray.from_rns(x).to_rns(x.signed),
            *PLAIN_FORMS,
        ),
    )


def tight_system(name: str, moduli: ModuliSet, signed: bool) -> System:
    """Residues whose arrays have the least bounds, about the products of the first moduli."""

    def array(a: Numbers, place: Callable[[Any], Any]) -> Any:
        bound = max(map(abs, a.ravel().tolist()), default=0)
        return rd.RNSArray(place(rns.encode(a, moduli, signed)), rd.RNS(moduli, signed, bound))

    bounds = tuple(bound for bound in bounds_around_prefixes(moduli, signed) if bound > 2)
    return replace(rns_system(name, moduli, signed), array=array, bounds=bounds)


def interval_system(name: str, moduli: ModuliSet) -> System:
    to_rns, from_rns = IntervalRNSArray.to_rns, IntervalRNSArray.from_rns
    longer = ModuliSet(reversed(ModuliSet.for_bits(max(moduli.bits + 40, 18 * len(moduli)), 17).moduli))
    return System(
        name=name,
        limits=Range.of("interval", moduli.product),
        array=lambda a, place: IntervalRNSArray(
            place(IntervalRNSArray.from_ints(a, moduli).columns), rd.IntervalRNS(moduli)
        ),
        from_ints=lambda a: IntervalRNSArray.from_ints(a, moduli),
        is_defined=lambda x, a: headers_hold(x, a),
        kind="interval",
        value=rd.IntervalRNS(moduli),
        factors=moduli.moduli,
        is_ring=False,  # the sign of a product that overflows stays
        reopen=rd.open_zarr,
        round_trips=(
            lambda x: rd.where(x < 0, -from_rns(to_rns(abs(x), False)), abs(x)),
            lambda x: x.extend(longer).shrink(x.moduli),
            *PLAIN_FORMS,
        ),
    )


def field_system(name: str, fields: rd.PrimeFields) -> System:
    def encode(a: Numbers) -> np.ndarray:
        return rns.encode(a, fields.moduli)

    return System(
        name=name,
        limits=Range.of("unsigned", fields.moduli.product),
        array=lambda a, place: rd.FieldArray(place(encode(a)), fields),
        from_ints=lambda a: rd.from_ints(a + fields.moduli.product, fields, chunks=None),
        is_defined=lambda x, a: bool((host(x.residues) == encode(a)).all()),
        kind="field" if max(fields.primes) < 2**32 else "long-field",
        value=fields,
        factors=fields.moduli.moduli,
        is_ordered=False,
        round_trips=(
            lambda x: rd.from_residues(x.residues, x.system),
            *(
                lambda x, signed=signed: rd.FieldArray.from_rns(x.lift(signed), x.system)
                for signed in (False, True)
            ),
            *PLAIN_FORMS,
        ),
        lacks=WITHOUT_ORDER | dict.fromkeys(OVERFLOW, "results in fields do not overflow"),
    )


def fermat_system(name: str, field: rd.FermatField) -> System:
    def encode(a: Numbers) -> np.ndarray:
        return fermat.encode(a, field.radix, field.digits)

    return System(
        name=name,
        limits=Range.of("unsigned", field.modulus),
        array=lambda a, place: rd.FieldArray(place(encode(a)), field),
        from_ints=lambda a: rd.from_ints(a - field.modulus, field, chunks=None),
        is_defined=lambda x, a: bool((host(x.words) == encode(a)).all()),
        kind="fermat",
        value=field,
        factors=(field.modulus,),
        is_ordered=False,
        round_trips=(
            lambda x: rd.FieldArray.from_words(x.words, x.system),
            *(
                lambda x, signed=signed: rd.FieldArray.from_rns(x.lift(signed), x.system)
                for signed in (False, True)
            ),
            lambda x: x.multiply_by_root(3).multiply_by_root(-3),
            *PLAIN_FORMS,
        ),
        lacks=WITHOUT_ORDER | dict.fromkeys(OVERFLOW, "results in fields do not overflow"),
    )


def positional_system(name: str, bits: int, signed: bool) -> System:
    system = rd.Positional(bits, signed)
    return System(
        name=name,
        limits=positional.limits_of(bits, signed),
        array=lambda a, place: rd.PositionalArray(place(positional.encode(a, bits)), system),
        from_ints=lambda a: rd.from_ints(a, system, chunks=None),
        is_defined=lambda x, a: bool((host(x.words) == positional.encode(a, bits)).all()),
        kind="positional",
        value=system,
        factors=(2**32,) * (bits // 32),
        round_trips=(
            lambda x: x.to_rns().to_positional(bits),
            lambda x: x.to_positional(bits + 33, True).to_positional(bits, signed),
            lambda x: x.to_rns(rd.ModuliSet.for_bits(bits + 1), True).to_positional(bits, signed),
            *PLAIN_FORMS,
        ),
    )


WITHOUT_ORDER = dict.fromkeys(
    (
        *("order_is_total", "order_with_integers", "order_agrees_with_addition", "extrema_and_choice"),
        *("division", "divisors_and_multiples", "lengths_are_those_of_magnitudes", "reductions_are_folds"),
        *("products_are_folds", "scans_are_folds", "selections_are_sorted", "sorting_is_stable"),
        *("selections_along_axes_are_sorted", "distinct_numbers_are_found", "running_folds_along_axes"),
        *("reductions_along_axes_are_folds", "elementary_functions_are_pythons"),
        *("selections_of_unknown_length_reduce", "medians_are_in_the_middle"),
        *("places_and_members_are_found", "means_and_variances_are_fractions"),
    ),
    "elements of fields have no order",
)


def headers_hold(x: IntervalRNSArray, numbers: Numbers) -> bool:
    """Whether signs and residues of magnitudes are the numbers', and the stored intervals contain |x|/M."""
    signs, *bounds = (host(part).ravel().tolist() for part in (x.sign, x.low, x.upp, x.exponent))
    values = numbers.ravel().tolist()
    return (
        bool((host(x.residues) == rns.encode(abs(numbers), x.moduli)).all())
        and signs == [int(v < 0) for v in values]
        and all(
            encloses(*b, abs(v), x.moduli.product) and is_narrow(*b[:2], v)
            for *b, v in itertools.islice(zip(*bounds, values, strict=True), MOST_INTERVALS)
        )
    )


MOST_INTERVALS = 300
"""Intervals that are looked at, of an array."""


def is_narrow(low: float, upp: float, value: int, accuracy: float = 2.0**-20) -> bool:
    """Whether the ends of an interval are that near, and 0 where the number is 0."""
    near = upp - low <= accuracy * min(abs(low), abs(upp)) * (1 + 1e-9)
    return near and (value == 0) == (low == 0 == upp)


EIGHT = MODULI_SETS["table2_8"]
DOWN = ModuliSet.for_bits(1050).moduli  # 33 of them, from 2**32
UNSORTED = ModuliSet([*DOWN[1::2], *DOWN[::-2]])
LONG_PRIMES_WITH_ROOTS = [
    *(1125899865948161, 576460752298180609, 1152921504577486849),  # of 50, 59 and 60 bits, 1 modulo 2**20
    *(2**64 - 2**32 + 1, 65537),
]
PRIMES = [2**32 - 5, 2, 3, 65537, 2**31 - 1, *rd.ModuliSet.ntt_primes(200, 2**20)]
LONG_PRIMES = [2**63 - 25, 2, 2**32 + 15, 3, *LONG_PRIMES_WITH_ROOTS]
SYSTEMS = {
    system.name: system
    for system in (
        rns_system("unsigned", EIGHT, False),
        rns_system("signed", EIGHT, True),
        rns_system("unsigned-bound", EIGHT, False, 2**70 + 3),
        tight_system("tight-bounds", MODULI_SETS["unsorted"], False),
        tight_system("tight-bounds-signed", MODULI_SETS["unsorted"], True),
        rns_system("one-modulus", MODULI_SETS["one_full"], False),
        rns_system("two-moduli-signed", ModuliSet([3, 2**32]), True),
        rns_system("33-moduli", UNSORTED, False),
        rns_system("33-moduli-signed-bound", UNSORTED, True, 2**256),
        field_system("field", rd.PrimeFields([2**32 - 5])),
        field_system("fields", rd.PrimeFields(PRIMES)),
        field_system("long-field", rd.PrimeFields([2**61 - 1])),
        field_system("long-fields", rd.PrimeFields(LONG_PRIMES)),
        fermat_system("fermat", rd.FermatField.named("F449")),
        fermat_system("fermat-64-bit-digits", rd.FermatField.named("P3")),
        positional_system("positional-33", 33, False),
        positional_system("positional-signed", 256, True),
        interval_system("interval", EIGHT),
        interval_system("interval-33-moduli", UNSORTED),
        interval_system("interval-two-moduli", ModuliSet([3, 2**32])),
    )
}


# ---- systems that are drawn --------------------------------------------------------------------------------

PRIMES_OF_FIELDS = (
    2,
    3,
    5,
    7,
    97,
    257,
    65537,
    12289,
    2**31 - 1,
    4293918721,
    2013265921,
    469762049,
    2**32 - 5,
)
PRIMES_WITH_ROOTS = (12289, 65537, 469762049, 2013265921, 4293918721)
FERMAT_FIELDS = (rd.FermatField(2**28 + 2**22, 16), rd.FermatField(2**63 + 2**34, 8))
BITS = (1, 2, 7, 31, 32, 33, 63, 64, 65, 96, 109, 128, 239, 256, 300, 511, 512, 513, 1024, 2050)


def drawn_system(random: Random, kinds: tuple[str, ...] = KINDS) -> System:
    """A number system of one of the kinds, of awkward moduli, primes or bits."""
    return DRAWN[random.choice(kinds)](random)


def drawn_rns(random: Random) -> System:
    """Residues whose arrays have no bound, the least, a loose one or that of the whole range."""
    moduli, signed, seed = inputs.moduli_set(random), random.random() < 0.5, random.getrandbits(64)
    system = rns_system("signed" if signed else "unsigned", moduli, signed)

    def array(a: Numbers, place: Callable[[Any], Any]) -> Any:
        # By the numbers, so that the same array has the same bound whoever makes it first.
        bound = inputs.bound_for(Random(f"{seed}/{a.ravel()[:9].tolist()}"), a, system.limits.magnitude)
        words = place(rns.encode(a, moduli, signed))
        return rd.from_residues(words, moduli, signed, bound)

    return replace(system, array=array)


def drawn_interval_rns(random: Random) -> System:
    moduli = inputs.moduli_set(random)

    def array(a: Numbers, place: Callable[[Any], Any]) -> Any:
        residues, sign = rns.encode(abs(a), moduli), (a < 0).astype(np.uint8)
        columns = IntervalRNSArray.from_residues(residues, sign, moduli).columns
        return IntervalRNSArray(place(columns), rd.IntervalRNS(moduli))

    return replace(interval_system("interval", moduli), array=array)


def drawn_field(random: Random) -> System:
    """Fields of some primes; half of them have transforms of up to 64 elements."""
    primes = random.choice((PRIMES_OF_FIELDS, PRIMES_WITH_ROOTS))
    return field_system("fields", rd.PrimeFields(random.sample(primes, random.randint(1, 5))))


def drawn_long_field(random: Random) -> System:
    """Fields of some primes, one of them beyond 2**32; half of them have transforms of up to 64 elements."""
    first = random.choice(LONG_PRIMES_WITH_ROOTS[:-1])
    others = random.choice((LONG_PRIMES, LONG_PRIMES_WITH_ROOTS))
    primes = {first, *random.sample(others, random.randint(0, 4))}
    return field_system("long-fields", rd.PrimeFields(random.sample(sorted(primes), len(primes))))


DRAWN: dict[str, Callable[[Random], System]] = {
    "rns": drawn_rns,
    "interval": drawn_interval_rns,
    "positional": lambda random: positional_system(
        "limbs", random.choice((*BITS, random.randint(1, 700))), random.random() < 0.5
    ),
    "field": drawn_field,
    "long-field": drawn_long_field,
    "fermat": lambda random: fermat_system("fermat", random.choice(FERMAT_FIELDS)),
}
