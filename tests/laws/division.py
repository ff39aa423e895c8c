"""Laws of division: quotients, remainders, shifts, common divisors, roots, lengths, modular powers."""

import math
import operator
from functools import partial
from typing import Any

import dask
import gmpy2
import numpy as np
from oracles.integers import mapped, objects

import rnsdask as rd
from laws.case import (
    INTEGERS,
    RESIDUES,
    Case,
    Chosen,
    check_index,
    firsts,
    law,
    law_of,
    must_fail,
    whole,
)


@law
def division(case: Case) -> None:
    """x == q d + r with r from 0 to d, by arrays and by integers."""
    if not case.limits.holds(1):  # signed numbers of 1 bit, 0 and -1, divide none
        return
    x, a = case.draw()
    drawn = case.numbers()
    quotients_fit = mapped(lambda v, d: d != 0 and case.limits.holds(v // d), a, drawn, dtype=bool)
    by_each = np.where(quotients_fit, drawn, 1)
    edges = case.system.edges()
    integer = max(case.random.choices(edges, k=4), key=abs)
    if abs(integer) < 2:  # 0, or -1, by which the quotient of the lowest number may be out of range
        integer = max(edges, key=abs)
    for divisor, d in ((case.array(by_each), by_each), (integer, np.full_like(a, integer))):
        quotient, remainder = divmod(x, divisor)
        q, r = case.host(quotient, remainder)
        assert ((q * d + r == a) & (abs(r) < abs(d)) & ((r == 0) | ((r < 0) == (d < 0)))).all()
        case.claim_array(quotient, a // d, "quotient")
        case.claim_array(x % divisor, a % d, "remainder")


PARTS = {"floordiv": operator.floordiv, "mod": operator.mod, "divmod": divmod}


@law_of(*RESIDUES)
def division_by_integers_is_pythons(case: Case) -> None:
    (x,), d = case.take(), divisor(case)
    case.note("divisor", d)
    name = case.random.choice(tuple(PARTS))
    if d == 0:
        must_fail(lambda: PARTS[name](x.array, d), ZeroDivisionError, "division by 0")
        return
    claim_parts(case, name, x, Chosen(d, d))


def divisor(case: Case) -> int:
    """An integer that divides: small, a power of two, a modulus and its like, or of any size."""
    random, moduli, bits = case.random, case.system.factors, case.limits.product.bit_length()
    value = random.choice(
        (
            random.randint(1, 20),
            1 << random.randint(0, bits + 40),
            random.choice(moduli),
            random.choice(moduli) * random.randint(1, 10),
            random.randint(2**32 - 3, 2**32 + 3),
            random.randint(2, 2**32),
            case.number(),
            case.limits.product + random.randint(-2, 2),
            case.limits.highest + random.randint(0, 2),
        )
    )
    return -value if case.system.signed and random.random() < 0.4 else value


@law_of(*INTEGERS)
def division_is_pythons(case: Case) -> None:
    """Arrays and integers by one another; zeros and results out of range are errors that name a place."""
    x, y = case.take(2)
    if not y.is_array and case.random.random() < 0.5:
        x, y = y, x
    is_wrong = not y.is_array and (y.values == 0 or (not case.system.signed and y.values < 0))
    name, zeros = case.random.choice(tuple(PARTS)), np.asarray(y.values == 0)
    # Few arrays of numbers at edges have no 0; those that have are another check.
    if y.is_array and zeros.any() and case.random.random() < 0.8:
        y = case.chosen(np.where(zeros, 1 if case.limits.holds(1) else -1, y.values), "divisors")
    if not is_wrong:
        claim_parts(case, name, x, y)


def claim_parts(case: Case, name: str, x: Chosen, y: Chosen) -> None:
    """Claim quotients, remainders or both; what is out of range must be an error."""
    a, b = whole([x, y])
    if not a.size:
        return
    call = partial(PARTS[name], x.array, y.array)
    is_lazy = any(dask.is_dask_collection(one.array) for one in (x, y))
    if y.is_array and (zeros := np.asarray(b == 0, dtype=bool)).any():
        check_zeros(call, zeros, is_lazy)
        return
    wanted = {"floordiv": ("//",), "mod": ("%",), "divmod": ("//", "%")}[name]
    exact = [mapped(operator.floordiv if part == "//" else operator.mod, a, b) for part in wanted]
    outside = [case.limits.outside(part) for part in exact]
    if not any(part.any() for part in outside):
        result = call()
        for got, part in zip(result if name == "divmod" else (result,), exact, strict=True):
            case.claim_array(got, part, name)
    elif is_lazy:
        result = call()
        result = result[int(not outside[0].any())] if name == "divmod" else result
        error = must_fail(lambda: result, rd.RNSOverflowError, "a result out of range")
        places = set().union(*(firsts(part, getattr(result, "chunks", None)) for part in outside))
        assert error.index in places, f"the error names flat index {error.index}, not one of {places}"
    else:
        error = must_fail(call, rd.RNSOverflowError, "a result out of range")
        # Quotients of a block are looked at before its remainders; no case is longer than a block.
        first = next(i for i, part in enumerate(outside) if part.any())
        case.check_overflow(error, exact[first], firsts(outside[first], None))


def check_zeros(call: Any, zeros: np.ndarray, is_lazy: bool) -> None:
    """Check that division by an array that holds 0 is an error, and which number it names."""
    if not is_lazy:
        check_index(must_fail(call, ZeroDivisionError, "division by 0"), zeros, None)
        return
    result = call()
    result = result[0] if isinstance(result, tuple) else result
    # A quotient out of range in another chunk may come first.
    error = must_fail(lambda: result, (ZeroDivisionError, rd.RNSOverflowError), "division by 0")
    if isinstance(error, ZeroDivisionError):
        check_index(error, zeros, result)


@law_of(*RESIDUES)
def shifts_are_pythons(case: Case) -> None:
    """By any number of bits; a factor out of range is an error."""
    (x,), random, bits = case.take(), case.random, case.limits.product.bit_length() - 1
    count = random.choice((0, 1, 31, 32, 33, 64, max(0, bits - 1), bits, 10**9, random.randint(0, 200)))
    case.note("bits", count)
    if random.random() < 0.6:
        case.claim_array(
            x.array >> count, mapped(lambda v: v >> min(count, bits + 1), x.values), "right shift"
        )
    elif count > bits or 1 << count > case.limits.highest:
        must_fail(lambda: x.array << count, ValueError, "a factor out of range")
    else:
        exact = x.values * (1 << count)
        case.claim_overflowing(lambda: x.array << count, exact, options=False, what="left shift")


@law_of(*INTEGERS)
def parity_is_the_last_bit(case: Case) -> None:
    (x,) = case.take()
    case.claim(x.array.is_even(), (x.values % 2 == 0).astype(bool), "is_even")


# ---- number theory -----------------------------------------------------------------------------------------


@law
def divisors_and_multiples(case: Case) -> None:
    """gcd and lcm by arrays of any shapes and by integers; numbers with much in common."""
    common = mapped(lambda v: case.clipped(case.random.choice((0, 1, 6, v))), case.pool[0])
    x = case.take(1)[0]
    for left, right in (case.take(2), (x, case.chosen(common, "others"))):
        values = whole([left, right])
        for name, exactly in (("gcd", math.gcd), ("lcm", math.lcm)):
            exact, function = mapped(exactly, *values), getattr(rd, name)
            result, mask = function(left.array, right.array, overflow="flag")
            case.claim_array(result, case.limits.wrapped(exact), name)
            case.claim(mask, case.limits.outside(exact), f"overflow of {name}")
            if case.random.random() < 0.3:
                case.claim_overflowing(partial(function, left.array, right.array), exact, what=name)
    roots = mapped(lambda v: math.isqrt(max(v, 0)), x.values)
    case.claim_array(rd.isqrt(rd.maximum(x.array, 0)), roots, "isqrt")


@law_of(*INTEGERS)
def combinatorial_numbers_are_pythons(case: Case) -> None:
    """Functions of small numbers; results out of range are found."""
    most = case.random.choice((1, 5, 20, 60))
    small = mapped(lambda _: case.clipped(case.random.randint(0, most)), case.pool[0])
    n, k = (case.chosen(part, name) for part, name in ((small, "n"), (small[::-1], "k")))
    for name, operands, exactly in (
        ("factorial", (n,), math.factorial),
        ("primorial", (n,), lambda v: math.prod(p for p in range(2, v + 1) if gmpy2.is_prime(p))),
        ("binomial", (n, k), math.comb),
    ):
        exact = mapped(exactly, *whole(list(operands)))
        result, mask = getattr(rd, name)(*(part.array for part in operands), overflow="flag")
        case.claim_array(result, case.limits.wrapped(exact), name)
        case.claim(mask, case.limits.outside(exact), f"overflow of {name}")


@law
def lengths_are_those_of_magnitudes(case: Case) -> None:
    x, a = case.draw()
    powers = objects(case.random.choice((-1, 1)) << case.random.randrange(700) for _ in range(a.size))
    powers = mapped(lambda v, d: v + d if case.limits.holds(v + d) else 0, powers.reshape(a.shape), a % 3 - 1)
    powers = np.where(abs(powers) <= max(map(abs, case.system.ends)), powers, 0)
    for y, b in ((x, a), (case.array(powers), powers)):
        expected = mapped(int.bit_length, b, dtype=np.int64)
        case.claim(y.bit_length(), expected, "bit_length")
        case.claim(rd.bit_length(y) * 2, expected * 2, "type of bit_length")


@law_of(*RESIDUES)
def powers_modulo_integers_are_pythons(case: Case) -> None:
    """By integers of either sign; a number without an inverse is an error that names it."""
    (x,), random, highest = case.take(), case.random, case.limits.highest
    sizes = (
        1,
        2,
        3,
        2**31,
        2**32 - 1,
        2**32,
        2**32 + 1,
        highest,
        highest + 1,
        random.randint(1, highest + 1),
    )
    m = min(random.choice(sizes), highest + 1) * (random.choice((1, -1)) if case.system.signed else 1)
    k = random.choice((0, 1, 2, 3, 17, 65537, random.getrandbits(70), -1, -2))
    case.note("exponent, modulus", (k, m))
    if not m:
        return
    bad = [i for i, v in enumerate(x.values.ravel().tolist()) if k < 0 and math.gcd(v, m) != 1]
    if bad:
        error = must_fail(lambda: pow(x.array, k, m), ValueError, "a number without an inverse")
        assert any(f"flat index {i} " in str(error) for i in bad), f"another error: {error}"
    elif abs(m).bit_length() <= 500 or k <= 2**60:
        case.claim_array(
            pow(x.array, k, m), mapped(lambda v: pow(v, k, m), x.values), "power modulo an integer"
        )
