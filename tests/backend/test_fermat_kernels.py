"""Arithmetic modulo r^k + 1, as the kernels of both processors do it, against Python's integers."""

import operator
from typing import Any

import numpy as np
import pytest
from conftest import Processor
from oracles.fermat import as_words

from rnsdask.backend import kernels_of
from rnsdask.constants import FermatConstants, fermat_root

# Radices and digits of known primes, and the ends of what kernels take, prime or not: sums of products that
# just fit two words and just do not, the greatest and least radices, exponents near each other and far apart.
PRIMES = (
    (2**63 + 2**34, 8),
    (2**62 + 2**36, 16),
    (2**32 - 2**20, 8),
    (2**29 + 2**25, 8),
    (2**28 + 2**22, 16),
    (2**30 + 2**16, 16),
    (2**32 - 2**13, 32),
    (2**27 - 2**25, 32),
    (2**28 + 2**26, 64),
    (2**32 - 2**24, 64),
    (2**30 - 2**26, 128),
)
ENDS = (
    (2**8 + 1, 4),
    (2**9 - 2, 128),
    (2**32 - 1, 128),
    (2**32 + 1, 4),
    (2**33 - 2**31, 8),
    (2**60 + 2**59, 4),
    (2**63 + 2**62, 16),
    (2**64 - 2, 4),
    (2**64 - 2, 128),
)
FIELDS = [pytest.param(FermatConstants(*f), id=f"{f[0]}^{f[1]}+1") for f in PRIMES + ENDS]
OPERATIONS = {"add": operator.add, "subtract": operator.sub, "multiply": operator.mul}


def special_values(field: FermatConstants) -> list[int]:
    """Numbers next to 0, to the powers of r, and to their negatives: carries run through all digits."""
    r, k = field.radix, field.digits
    powers = {1, r, r ** (k // 2), r**k, (r - 1) * r ** (k - 1)}
    return sorted({sign * x + d for x in powers for sign in (1, -1) for d in (-1, 0, 1)})


def some_values(field: FermatConstants, rng: np.random.Generator) -> list[int]:
    some = [int.from_bytes(rng.bytes(field.modulus.bit_length() // 8), "little") for _ in range(8)]
    return special_values(field) + some


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_pairs(
    field: FermatConstants, operation: str, on_each_processor: Processor, rng: np.random.Generator
) -> None:
    values = some_values(field, rng)
    pairs = [(a, b) for a in values for b in values]
    expected = as_words([OPERATIONS[operation](a, b) for a, b in pairs], field)
    words, count = as_words(values, field), len(values)
    x, y = map(on_each_processor.xp.asarray, (np.repeat(words, count, axis=1), np.tile(words, count)))
    out = on_each_processor.xp.empty_like(x)
    kernels_of(x).fermat_apply(operation, (x, y), field, out)
    np.testing.assert_array_equal(on_each_processor.to_numpy(out), expected)


@pytest.mark.parametrize("field", FIELDS)
def test_powers_of_the_radix(
    field: FermatConstants, on_each_processor: Processor, rng: np.random.Generator
) -> None:
    values = some_values(field, rng)
    x = on_each_processor.xp.asarray(as_words(values, field))
    out = on_each_processor.xp.empty_like(x)
    for exponent in {0, 1, 2, field.digits - 1, field.digits, field.digits + 1, 2 * field.digits - 1}:
        factor = pow(field.radix, exponent, field.modulus)
        kernels_of(x).fermat_multiply_by_root(x, exponent, field, out)
        expected = as_words([value * factor for value in values], field)
        np.testing.assert_array_equal(on_each_processor.to_numpy(out), expected)
    kernels_of(x).fermat_apply("negate", (x,), field, out)
    expected = as_words([-value for value in values], field)
    np.testing.assert_array_equal(on_each_processor.to_numpy(out), expected)


@pytest.mark.parametrize(("radix", "digits"), [(2**28 + 2**22, 16), (2**63 + 2**34, 8)])
@pytest.mark.parametrize("count", [0, 1, 2, 7, 16, 33, 1000])
def test_layouts(
    radix: int, digits: int, count: int, on_each_processor: Processor, rng: np.random.Generator
) -> None:
    """Any number of numbers, rows that are apart, and one number for all."""
    field = FermatConstants(radix, digits)
    values = rng.choice(np.array(special_values(field), dtype=object), 2 * count + 3).tolist()
    x = on_each_processor.xp.asarray(as_words(values, field))
    a, b, one = x[:, 1 : count + 1], x[:, count + 2 : 2 * count + 2], as_words([values[0]], field)
    out = on_each_processor.xp.empty((digits, count), dtype=field.dtype)
    for operands, others in (((a, b), values[count + 2 :]), ((a, one), values[:1] * count)):
        for name, operation in OPERATIONS.items():
            kernels_of(x).fermat_apply(name, operands, field, out)
            results = [operation(p, q) for p, q in zip(values[1 : count + 1], others, strict=False)]
            np.testing.assert_array_equal(on_each_processor.to_numpy(out), as_words(results, field))
    for some, start in ((a, 1), (x[:, :count], 0)):
        kernels_of(x).fermat_multiply_by_root(some, 3, field, out)
        expected = as_words([value * radix**3 for value in values[start : start + count]], field)
        np.testing.assert_array_equal(on_each_processor.to_numpy(out), expected)


@pytest.mark.parametrize("field", FIELDS)
def test_first_invalid(field: FermatConstants, on_each_processor: Processor) -> None:
    r, last = field.radix, field.digits - 1
    words = np.repeat(as_words([-1, 0, 5], field), 100, axis=1)

    def found(**changes: Any) -> int | None:
        changed = words.copy()
        for place, digit in changes.items():
            i, j = map(int, place[1:].split("_"))
            changed[i, j] = digit
        x = on_each_processor.xp.asarray(changed)
        return kernels_of(x).fermat_first_invalid(x, field)

    assert found() is None
    assert found(**{f"x{last}_150": r}) is None  # from 0 to -1
    assert found(x0_150=r, x0_250=r, x1_200=r) == 150
    if r + 1 < 2 ** (8 * field.dtype.itemsize):
        assert found(**{f"x{last}_150": r + 1}) == 150
    assert found(x0_40=1, x0_250=r) == 40  # beside the last digit r
    assert found(**{f"x{last}_299": r}) == 299


@pytest.mark.parametrize(
    ("radix", "digits", "message"),
    [
        (2**28 + 2**22, 6, "takes 4, 8, 16, 32, 64, 128 digits, got 6"),
        (2**28 + 2**22, 256, "got 256"),
        (2**28, 16, r"takes a radix 2\*\*a \+ 2\*\*b or 2\*\*a - 2\*\*b, a > b \+ 1, got 268435456"),
        (2**28 + 2**22 + 1, 16, r"a > b \+ 1, got 272629761"),
        (2**8 - 2, 8, r"from 2\*\*8 \+ 1 to 2\*\*64 - 2, got 254"),
        (2**64 - 1, 8, "got 18446744073709551615"),
    ],
)
def test_refused_fields(radix: int, digits: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        FermatConstants(radix, digits)


@pytest.mark.parametrize("field", FIELDS[: len(PRIMES)])
def test_roots_of_unity(field: FermatConstants) -> None:
    p, order = field.modulus, 2 * field.digits
    for length in (1, 2, order // 2, order, 2 * order, 2**16, (p - 1) & (1 - p)):
        root = fermat_root(field, length)
        assert pow(root, length, p) == 1
        assert length == 1 or pow(root, length // 2, p) == p - 1
        if length >= order:
            assert pow(root, length // order, p) == field.radix
    with pytest.raises(ValueError, match="no root of unity of order 12 modulo"):
        fermat_root(field, 12)
    with pytest.raises(ValueError, match="no root of unity"):
        fermat_root(field, 2 * ((p - 1) & (1 - p)))
