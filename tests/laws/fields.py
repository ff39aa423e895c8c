"""Laws of prime and Fermat fields: division, powers, folds, transforms, integers for elements, fractions."""

import math
import operator
from fractions import Fraction
from typing import Any
from unittest.mock import patch

import gmpy2
import numpy as np
from oracles.integers import mapped, matrix_product, objects

import rnsdask as rd
from laws.case import (
    ANY_PRIME_FIELDS,
    FIELDS,
    RNS,
    Case,
    Chosen,
    computed,
    law_of,
    must_fail,
    named_index,
    whole,
)


def sizes_of(case: Case) -> list[int]:
    """Sizes of the fields."""
    return [case.limits.product] if case.system.kind == "fermat" else list(case.system.value.primes)


@law_of(*FIELDS)
def arithmetic_of_elements_is_modular(case: Case) -> None:
    """Sums, products and comparison, of arrays that broadcast and of any integers."""
    size, random = case.limits.product, case.random
    x, y, z = case.take(3, integers=False)
    beyond = case.number() - size * random.randint(0, 2)
    case.note("integer", beyond)
    function = random.choice((operator.add, operator.sub, operator.mul))
    for left, right in ((x, y), (x, Chosen(beyond, beyond)), (Chosen(beyond, beyond), x)):
        a, b = whole([left, right])
        case.claim_array(function(left.array, right.array), function(a, b) % size, function.__name__)
        case.claim(left.array == right.array, ((a - b) % size == 0).astype(bool), "==")
    case.claim_array(-x.array, -x.values % size, "the opposite element")
    factor = random.choice((y, Chosen(beyond, beyond)))
    a, b, c = whole([x, factor, z])
    case.claim_array(rd.fma(x.array, factor.array, z.array), (a * b + c) % size, "fma")


@law_of(*FIELDS)
def fields_divide(case: Case) -> None:
    """By units, or an error that names an element without an inverse."""
    size, (x, y) = case.limits.product, case.take(2)
    if case.random.random() < 0.7:
        unit = lambda v: v if math.gcd(v, size) == 1 else 1  # noqa: E731
        y = case.chosen(mapped(unit, whole([x, y])[1]), "units")
    a, b = whole([x, y])
    singular = mapped(lambda v: math.gcd(v, size) != 1, b, dtype=bool)
    if not singular.any():
        case.claim_array(
            x.array / y.array, mapped(lambda v, w: v * pow(w, -1, size) % size, a, b), "quotients"
        )
        return
    error = must_fail(lambda: x.array / y.array, ZeroDivisionError, "division by 0")
    if y.is_array and y.values.shape == a.shape:
        assert singular.ravel()[named_index(error)], "the error names an element with an inverse"


@law_of(*FIELDS)
def powers_of_elements_are_pythons(case: Case) -> None:
    """By integers of either sign, and by arrays of them."""
    size, random = case.limits.product, case.random
    x = case.chosen(mapped(lambda v: v if math.gcd(v, size) == 1 else 1, case.pool[0]))
    exponent = random.choice((0, 1, 2, -1, -5, 17, random.getrandbits(70), size - 1))
    case.note("exponent", exponent)
    case.claim_array(x.array**exponent, mapped(lambda v: pow(v, exponent, size), x.values), "power")
    drawn = [random.choice((0, 1, 3, 64, -2)) for _ in range(x.values.size)]
    exponents = np.array(drawn, dtype=np.int64).reshape(x.values.shape)
    expected = mapped(lambda v, e: pow(v, e, size), x.values, exponents)
    case.claim_array(np.power(x.array, case.processor.xp.asarray(exponents)), expected, "power by an array")


@law_of(*FIELDS)
def sums_and_products_of_elements_are_folds(case: Case) -> None:
    (x,), size = case.take(), case.limits.product
    flat = x.values.ravel().tolist()
    case.claim(x.array.sum(), sum(flat) % size, "sum")
    product = 1 % size
    for value in flat:
        product = product * value % size
    case.claim(x.array.prod(), product, "prod")
    axis = case.random.randrange(x.values.ndim)
    case.note("axis", axis)
    for name in ("sum", "prod"):
        folded = np.asarray(getattr(np, name)(x.values, axis=axis, keepdims=True), dtype=object)
        got = getattr(x.array, name)(axis=axis, keepdims=True)
        case.claim_array(got, mapped(lambda v: int(v) % size, folded), f"{name} along {axis}")
    case.claim(x.array != 0, x.values != 0, "!= 0")


@law_of(*FIELDS)
def transforms_are_sums_of_powers(case: Case) -> None:
    """Transforms of up to 32 elements, as sums of products with powers of the root, and back."""
    random, field, sizes = case.random, case.system.value, sizes_of(case)
    length, rows, negacyclic = 1 << random.randint(0, 5), random.randint(1, 3), random.random() < 0.5
    if case.system.kind != "fermat" and any((p - 1) % (2 * length) for p in sizes):
        return
    x = case.fresh((rows, length))
    with patch("rnsdask.lazy.ntt.JOINED_BYTES", random.choice((0, 2**26))):  # in steps, or in one task
        got = rd.ntt(x.array, negacyclic=negacyclic)
    elements = computed(got).to_ints()
    for p, root in zip(sizes, field.roots(2 * length), strict=True):
        assert pow(root, length, p) == p - 1, "a root is not primitive"
        steps = [[i * (2 * j + negacyclic) for j in range(length)] for i in range(length)]
        powers = objects((pow(root, e, p) for row in steps for e in row), (length, length))
        case.claim(elements % p, matrix_product(x.values, powers) % p, f"modulo {p}")
    case.claim_array(rd.intt(got, negacyclic=negacyclic), x.values, "back")


@law_of(*FIELDS)
def integers_stand_for_elements(case: Case) -> None:
    """Integers that stand for elements, words of an element together, products with powers of the radix."""
    (x,), field, size = case.take(), case.system.value, case.limits.product
    signed = case.random.random() < 0.5
    half = size // 2 if signed else 0
    lifted = x.array.lift(signed)
    case.claim(lifted, (x.values + half) % size - half, "lift")
    case.claim_array(rd.FieldArray.from_rns(lifted, field), x.values, "from lifted")
    words = rd.from_interleaved(rd.to_interleaved(x.array.words))
    case.claim(words, computed(x.array.words), "words")
    if case.system.kind == "fermat":
        reach = case.random.randint(-(10**6), 10**6)
        exponent = case.random.choice((0, 1, -1, field.digits, reach))
        case.note("exponent", exponent)
        expected = x.values * pow(field.radix, exponent, size) % size
        case.claim_array(x.array.multiply_by_root(exponent), expected, "multiplied by a power")


@law_of(*ANY_PRIME_FIELDS)
def fractions_have_the_residues(case: Case) -> None:
    """Fractions with the residues and within the bounds, or none where there is none within them."""
    random, primes, size = case.random, sizes_of(case), case.limits.product
    shape = random.choice(((1,), (3,), (2, 3), (2, 1, 2)))
    proved = len(primes) < 2 or random.random() < 0.5
    confirm = 0 if proved else random.randint(1, len(primes) - 1)
    half = (math.prod(primes[: len(primes) - confirm]) - 1) // 2
    if half < 1:
        return
    top = random.choice((1, math.isqrt(half), half, random.randint(1, half)))
    bottom = half // top
    axis = random.choice((None, random.randrange(len(shape)), tuple(range(len(shape)))))
    is_one = random.random() < 0.8

    def denominator() -> int:
        value = random.choice((1, bottom, random.randint(1, bottom)))
        return value if math.gcd(value, size) == 1 else 1

    common = denominator()
    fractions, residues = [], []
    for _ in range(math.prod(shape)):
        below = common if axis is not None else denominator()
        above = random.choice((0, top, -top, random.randint(-top, top)))
        fractions.append(Fraction(above, below) if is_one else None)
        residues.append(above * pow(below, -1, size) % size if is_one else random.randrange(size))
    case.note("bounds, confirm, axis", (top, bottom, confirm, axis))
    x = case.chosen(objects(residues, shape), "residues").array
    options: dict[str, Any] = {"numerator_bound": top, "denominator_bound": bottom} if proved else {}
    if not proved:
        options = random.choice(({"numerator_bound": top}, {"denominator_bound": bottom}))
        options["confirm"] = confirm
        top = options.get("numerator_bound", half // bottom)
        bottom = options.get("denominator_bound", half // top)
    try:
        found = rd.rational_reconstruct(x, common_axis=axis, **options)
        tops, belows = (np.asarray(computed(part), dtype=object) for part in found[:2])
    except rd.RNSError:
        assert not is_one, "a fraction is not found"
        return
    assert tops.shape == shape, f"shape {tops.shape} of numerators"
    axes = () if axis is None else axis if isinstance(axis, tuple) else (axis,)
    assert belows.shape == tuple(n for k, n in enumerate(shape) if k not in axes), f"shape {belows.shape}"
    wide = np.broadcast_to(np.expand_dims(belows, axes), shape)
    for above, below, residue in zip(tops.flat, wide.flat, residues, strict=True):
        assert 0 < below <= bottom, f"{above} / {below} is out of the bounds"
        assert abs(above) <= top, f"{above} / {below} is out of the bounds"
        assert (above - below * residue) % size == 0, f"{above} / {below} has other residues"
        assert math.gcd(below, size) == 1, f"{below} has one of the primes as a factor"
    common = np.gcd.reduce(tops, axis=axes) if axes else tops
    assert np.all(np.gcd(common, belows) == 1), "a fraction is not in lowest terms"
    if is_one:
        expected = objects((f * b for f, b in zip(fractions, wide.flat, strict=True)), shape)
        case.claim(tops, expected, "numerators")


@law_of(*RNS)
def long_products_are_gmps(case: Case) -> None:
    """Products of integers of any sign, with random or equal bits, compared with GMP's."""
    random, factors = case.random, []
    most = 3_000_000 if case.is_great else 300_000
    for _ in range(2):
        bits = random.choice((1, 1000, 70_000, most // 3, random.randint(1, most)))
        value = random.choice((random.getrandbits(bits), (1 << bits) - 1, 1 << bits, (1 << bits) + 1))
        factors.append(-value if random.random() < 0.3 else value)
    case.note("bits", [value.bit_length() for value in factors])
    assert rd.long_multiply(*factors) == int(gmpy2.mpz(factors[0]) * factors[1]), "a product is wrong"
