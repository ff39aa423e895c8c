"""The suite of laws for every number system that there is."""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from conftest import Processor
from dask.base import tokenize
from laws import LAWS, LAYOUTS, OVERFLOW, Case, Numbers, System, check
from oracles import fermat, positional, rns
from oracles.integers import Range, objects
from oracles.interval import encloses
from sample_arrays import CPU, host
from strategies import MODULI_SETS, bounds_around_prefixes

import rnsdask as rd
from rnsdask import IntervalRNSArray
from rnsdask.core.moduli import ModuliSet

PLAIN_FORMS: tuple[Callable[[Any], Any], ...] = (
    lambda x: rd.from_limbs(x.to_limbs(64, axis=0), x.system, axis=0),
    lambda x: rd.from_bytes(x.to_bytes(byteorder="big"), byteorder="big", moduli=x.system),
)


def rns_system(name: str, moduli: ModuliSet, signed: bool, bound: int | None = None) -> System:
    longer = ModuliSet([*reversed(ModuliSet.for_bits(moduli.bits + 40, 17))])
    return System(
        name=name,
        limits=rns.limits_of(moduli, signed),
        array=lambda a, place: rd.RNSArray(
            place(rns.encode(a, moduli, signed)), rd.RNS(moduli, signed, bound)
        ),
        from_ints=lambda a: rd.from_ints(a, moduli, signed, chunks=None),
        is_defined=lambda x, a: bool((host(x.residues) == rns.encode(a, moduli, signed)).all()),
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
    longer = ModuliSet([*reversed(ModuliSet.for_bits(moduli.bits + 40, 17))])
    return System(
        name=name,
        limits=Range.of("interval", moduli.product),
        array=lambda a, place: IntervalRNSArray(
            place(IntervalRNSArray.from_ints(a, moduli).columns), rd.IntervalRNS(moduli)
        ),
        from_ints=lambda a: IntervalRNSArray.from_ints(a, moduli),
        is_defined=lambda x, a: headers_hold(x, a),
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
        "selections_of_unknown_length_reduce",
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
        and all(encloses(*b, abs(v), x.moduli.product) for *b, v in zip(*bounds, values, strict=True))
    )


EIGHT = MODULI_SETS["table2_8"]
DOWN = ModuliSet.for_bits(1050).moduli  # 33 of them, from 2**32
UNSORTED = ModuliSet([*DOWN[1::2], *DOWN[::-2]])
PRIMES = [2**32 - 5, 2, 3, 65537, 2**31 - 1, *rd.ModuliSet.ntt_primes(200, 2**20)]
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
        fermat_system("fermat", rd.FermatField.named("F449")),
        fermat_system("fermat-64-bit-digits", rd.FermatField.named("P3")),
        positional_system("positional-33", 33, False),
        positional_system("positional-signed", 256, True),
        interval_system("interval", EIGHT),
        interval_system("interval-33-moduli", UNSORTED),
        interval_system("interval-two-moduli", ModuliSet([3, 2**32])),
    )
}


OF_ANY_NUMBERS = {"nothing_is_computed_before_it_is_asked_for", "tokens_tell_numbers_apart"}
LACKS = {name: system.lacks for name, system in SYSTEMS.items()}


pytestmark = pytest.mark.usefixtures("in_this_thread")


@pytest.fixture
def random(rng: np.random.Generator) -> Random:
    return Random(int(rng.integers(2**63)))


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Path]:
    """Makes a folder where one is asked for."""
    return lambda: tmp_path_factory.mktemp("laws")


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("name", "law"), [(s, w) for s in SYSTEMS for w in LAWS if w not in LACKS[s]])
def test_law(
    name: str, law: str, layout: str, on_each_processor: Processor, random: Random, folder: Callable[[], Path]
) -> None:
    check(law, Case(SYSTEMS[name], layout, on_each_processor, random, folder))


@pytest.mark.parametrize(("name", "law"), [(s, w) for s in SYSTEMS for w in LACKS[s]])
def test_what_a_system_is_said_to_lack_it_lacks(
    name: str, law: str, random: Random, folder: Callable[[], Path]
) -> None:
    with pytest.raises((TypeError, AttributeError)):
        check(law, Case(SYSTEMS[name], "eager", CPU, random, folder))


@pytest.mark.parametrize("law", [w for w in LAWS if w not in OF_ANY_NUMBERS])
def test_wrong_numbers_break_every_law(law: str, random: Random, folder: Callable[[], Path]) -> None:
    right = SYSTEMS["signed"]
    wrong = replace(right, array=lambda a, place: right.array((a - np.sign(a))[::-1], place))
    with pytest.raises((AssertionError, ArithmeticError, pytest.fail.Exception)):
        check(law, Case(wrong, "chunks", CPU, random, folder))


def tokens() -> list[str]:
    """Tokens of the same numbers in every system, and of a lazy result of them."""
    numbers = objects([0, 1, 2, 0, 1])
    arrays = [system.array(numbers, lambda words: words) for system in SYSTEMS.values()]
    lazy = [x.rechunk() for x in arrays]
    return [tokenize(x) for x in (*arrays, *lazy, *(x + x[::-1] for x in lazy))]


def test_tokens_tell_systems_apart_and_are_the_same_in_every_process() -> None:
    found = tokens()
    assert len(set(found)) == len(found)
    code = f"import sys; sys.path[:0] = {sys.path!r}; import test_laws; print(*test_laws.tokens())"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.split() == found
