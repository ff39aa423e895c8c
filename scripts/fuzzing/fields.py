"""Elements of prime and Fermat fields: arithmetic, powers, folds, transforms, and long products."""

import math
import operator
from random import Random
from typing import Any

import gmpy2
import numpy as np
from oracles.integers import encoded, mapped, matrix_product, objects

import rnsdask as rd
from fuzzing import inputs
from fuzzing.case import Case, Chosen
from fuzzing.checking import computed, must_fail, named_index, operation, require, same_array, same_int
from fuzzing.elementwise import whole

ANY = ("unsigned",)  # cases lend their processor only, and whether arrays are lazy

PRIMES = (2, 3, 5, 7, 97, 257, 65537, 12289, 2**31 - 1, 4293918721, 2013265921, 469762049, 4294967291)
TRANSFORMABLE = (12289, 65537, 469762049, 2013265921, 4293918721)
FERMAT_FIELDS = (rd.FermatField(2**28 + 2**22, 16), rd.FermatField(2**63 + 2**34, 8))


def field_of(rng: Random, transformable: bool = False) -> tuple[Any, int]:
    """Fields, and the product of their sizes."""
    if rng.random() < 0.2:
        fermat = rng.choice(FERMAT_FIELDS)
        return fermat, fermat.modulus
    primes = TRANSFORMABLE if transformable else PRIMES
    chosen = rng.sample(primes, rng.randint(1, min(5, len(primes))))
    return rd.PrimeFields(chosen), math.prod(chosen)


def array_of(case: Case, rng: Random, field: Any, values: np.ndarray, whole_axes: int = 0) -> Any:
    """An array of elements; the last axes are not cut into chunks."""
    xp = case.processor
    if isinstance(field, rd.FermatField):
        array = rd.FieldArray.from_words(xp.asarray(field.encode(values)), field)
    else:
        residues = inputs.laid_out(encoded(values, field.primes), rng.choice(inputs.LAYOUTS), xp)
        array = rd.from_residues(residues, field)
    if not case.is_lazy:
        return array
    chunks = inputs.chunks(rng, values.shape)
    cut = values.ndim - whole_axes
    return array.rechunk((*chunks[:cut], *((n,) for n in values.shape[cut:])))


def element(rng: Random, size: int) -> int:
    """0, an end, a number of any length, or 0 in one field only, as often as not."""
    bits = size.bit_length()
    value = rng.choice((0, 1, size - 1, rng.getrandbits(rng.randint(1, bits)), rng.randrange(size)))
    return value % size


def taken(case: Case, rng: Random, count: int, unit: bool = False) -> tuple[Any, int, list[Chosen]]:
    """Fields, their product, and operands: an array, and others or integers; the last one of units."""
    field, size = field_of(rng)
    shape = inputs.shape(rng, 300)
    chosen = []
    for i in range(count):
        own = inputs.broadcastable(rng, shape) if i and rng.random() < 0.2 else shape
        values = objects((element(rng, size) for _ in range(math.prod(own))), own)
        if unit and i == count - 1:
            values = mapped(lambda v: v if math.gcd(v, size) == 1 else 1, values)
        if i and rng.random() < 0.2:
            values = 1 if unit else element(rng, size) - size * rng.randint(0, 2)
        array = values if isinstance(values, int) else array_of(case, rng, field, values)
        chosen.append(Chosen(values, array))
        case.note(f"operand {i}", values)
    case.note("field", repr(field))
    return field, size, chosen


def same(field: Any, got: Any, expected: np.ndarray, what: str = "result") -> int:
    """Check an array of elements: its type, its fields, and every element."""
    require(type(got) is rd.FieldArray, f"{what}: {type(got).__name__}")
    require(got.system.same_numbers(field), f"{what}: {got.system!r} instead of {field!r}")
    return same_array(got.to_ints(), expected, what)


@operation("fields: arithmetic", ANY)
def check_arithmetic(case: Case, rng: Random) -> int:
    function = rng.choice((operator.add, operator.sub, operator.mul))
    field, size, chosen = taken(case, rng, 2)
    expected = mapped(lambda a, b: function(a, b) % size, *whole(chosen))
    a, b = (one.array for one in chosen)
    count = same(field, function(a, b), expected)
    if not chosen[1].is_array:
        swapped = mapped(lambda v: function(chosen[1].values, v) % size, chosen[0].values)
        count += same(field, function(b, a), swapped)
    equal = mapped(lambda v, w: (v - w) % size == 0, *whole(chosen), dtype=bool)
    return count + same_array(computed(a == b), equal, "==") + same(field, -a, -chosen[0].values % size)


@operation("fields: fused products", ANY)
def check_fused(case: Case, rng: Random) -> int:
    field, size, chosen = taken(case, rng, 3)
    exact = mapped(lambda a, b, c: (a * b + c) % size, *whole(chosen))
    return same(field, rd.fma(*(one.array for one in chosen)), exact)


@operation("fields: division", ANY)
def check_division(case: Case, rng: Random) -> int:
    field, size, chosen = taken(case, rng, 2, unit=rng.random() < 0.7)
    a, b = whole(chosen)
    singular = mapped(lambda v: math.gcd(v, size) != 1, b, dtype=bool)
    if singular.any():
        error = must_fail(lambda: chosen[0].array / chosen[1].array, ZeroDivisionError, "division by 0")
        if chosen[1].is_array and chosen[1].values.shape == a.shape:
            require(singular.reshape(-1)[named_index(error)], "the error names an element with an inverse")
        return 1
    exact = mapped(lambda v, w: v * pow(w, -1, size) % size, a, b)
    return same(field, chosen[0].array / chosen[1].array, exact)


@operation("fields: powers", ANY)
def check_powers(case: Case, rng: Random) -> int:
    field, size, (x,) = taken(case, rng, 1, unit=True)
    exponent = rng.choice((0, 1, 2, -1, -5, 17, rng.getrandbits(70), size - 1))
    case.note("exponent", exponent)
    count = same(field, x.array**exponent, mapped(lambda v: pow(v, exponent, size), x.values))
    drawn = [rng.choice((0, 1, 3, 64, -2)) for _ in range(x.values.size)]
    exponents = np.array(drawn, dtype=np.int64).reshape(x.values.shape)
    expected = mapped(lambda v, e: pow(v, e, size), x.values, exponents)
    powers = np.power(x.array, case.processor.asarray(exponents))
    return count + same(field, powers, expected)


@operation("fields: folds", ANY)
def check_folds(case: Case, rng: Random) -> int:
    field, size, (x,) = taken(case, rng, 1)
    count = same_int(x.array.sum(), sum(x.values.reshape(-1).tolist()) % size, "sum")
    product = 1 % size
    for value in x.values.reshape(-1).tolist():
        product = product * value % size
    count += same_int(x.array.prod(), product, "prod")
    axis = rng.randrange(x.values.ndim)
    case.note("axis", axis)
    for got, folded in (
        (x.array.sum(axis=axis, keepdims=True), np.sum(x.values, axis, keepdims=True)),
        (x.array.prod(axis=axis, keepdims=True), np.prod(x.values, axis, keepdims=True)),
    ):
        count += same(field, got, mapped(lambda v: int(v) % size, np.asarray(folded, dtype=object)))
    return count + same_array(computed(x.array != 0), x.values != 0, "!= 0")


@operation("fields: transforms", ANY)
def check_transforms(case: Case, rng: Random) -> int:
    """Transforms of up to 32 elements, as sums of products with powers of the root, and back."""
    field, size = field_of(rng, transformable=True)
    length, rows, negacyclic = 1 << rng.randint(0, 5), rng.randint(1, 3), rng.random() < 0.5
    case.note("field", repr(field))
    values = objects((element(rng, size) for _ in range(rows * length)), (rows, length))
    case.note("array", values)
    x = array_of(case, rng, field, values)
    got = rd.ntt(x, negacyclic=negacyclic)
    elements = got.to_ints()
    sizes = [size] if isinstance(field, rd.FermatField) else list(field.primes)
    count = 0
    for p, root in zip(sizes, field.roots(2 * length), strict=True):
        require(pow(root, length, p) == p - 1, "a root is not primitive")
        steps = [[i * (2 * j + negacyclic) for j in range(length)] for i in range(length)]
        powers = objects((pow(root, e, p) for row in steps for e in row), (length, length))
        expected = mapped(lambda v, p=p: v % p, matrix_product(values, powers))
        count += same_array(mapped(lambda v, p=p: v % p, elements), expected, f"modulo {p}")
    return count + same(field, rd.intt(got, negacyclic=negacyclic), values, "back")


@operation("fields: integers and words", ANY)
def check_integers(case: Case, rng: Random) -> int:
    """Integers that stand for elements, products with powers of the radix, words of an element together."""
    field, size, (x,) = taken(case, rng, 1)
    signed = rng.random() < 0.5
    half = size // 2 if signed else 0
    lifted = x.array.lift(signed)
    count = same_array(lifted.to_ints(), (x.values + half) % size - half, "lift")
    count += same(field, rd.FieldArray.from_rns(lifted, field), x.values, "from lifted")
    together = rd.to_interleaved(x.array.words)
    same_array(computed(rd.from_interleaved(together)), computed(x.array.words), "words")
    if isinstance(field, rd.FermatField):
        exponent = rng.choice((0, 1, -1, field.digits, rng.randint(-(10**6), 10**6)))
        case.note("exponent", exponent)
        expected = x.values * pow(field.radix, exponent, size) % size
        count += same(field, x.array.multiply_by_root(exponent), expected, "multiplied by a power")
    return count


@operation("long products", ANY)
def check_long_products(case: Case, rng: Random) -> int:
    """Products of integers of any sign, with random or equal bits, compared with GMP's."""
    factors = []
    for _ in range(2):
        bits = rng.choice((1, 1000, 70_000, 1_000_000, rng.randint(1, 3_000_000)))
        value = rng.choice((rng.getrandbits(bits), (1 << bits) - 1, 1 << bits, (1 << bits) + 1))
        factors.append(-value if rng.random() < 0.3 else value)
    case.note("bits", [value.bit_length() for value in factors])
    exact = int(gmpy2.mpz(factors[0]) * factors[1])
    require(rd.long_multiply(*factors) == exact, "a product is wrong")
    return 1
