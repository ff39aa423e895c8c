"""Laws of positional numbers: bits, results of more bits, functions modulo integers, trees of products."""

import math
import operator
from collections.abc import Callable

import numpy as np
from oracles.integers import mapped, objects

import rnsdask as rd
from laws import inputs
from laws.case import LIMBS, Case, Chosen, law_of, must_fail, named_index, whole
from laws.systems import positional_system

BITWISE = (operator.and_, operator.or_, operator.xor)


@law_of(*LIMBS)
def bits_are_pythons(case: Case) -> None:
    x, y = case.take(2)
    if not x.is_array:
        x, y = y, x
    random, a = case.random, x.array
    logic, shift = random.choice(BITWISE), random.randint(0, case.system.value.bits + 40)
    case.note("operation, shift", (logic.__name__, shift))
    case.claim_array(logic(a, y.array), mapped(logic, *whole([x, y])), logic.__name__)
    case.claim_array(~a, mapped(case.limits.wrap, ~x.values), "invert")
    case.claim_array(a >> shift, x.values >> shift, "right shift")
    case.claim(rd.bitwise_count(a), mapped(int.bit_count, x.values, dtype=np.int64), "bitwise_count")
    left = mapped(lambda v: v << shift, x.values)
    case.claim_overflowing(lambda **mode: rd.left_shift(a, shift, **mode), left, what="left shift")


@law_of(*LIMBS)
def exact_results_have_more_bits(case: Case) -> None:
    x, y = case.take(2, integers=False)
    name, exactly = case.random.choice(
        (("add", operator.add), ("subtract", operator.sub), ("multiply", operator.mul))
    )
    got = getattr(rd, name)(x.array, y.array, bits="exact")
    longer = positional_system("longer", got.system.bits, got.system.signed)
    claims = Case(longer, "eager", case.processor, case.random, case.folder)
    claims.claim_array(got, mapped(exactly, *whole([x, y])), name)
    claims.settle()


MODULAR: dict[str, Callable[..., int]] = {
    "mod_add": lambda a, b, m: (a + b) % m,
    "mod_subtract": lambda a, b, m: (a - b) % m,
    "mod_multiply": lambda a, b, m: a * b % m,
    "mod_power": pow,
    "mod_inverse": lambda a, m: pow(a, -1, m),
}


@law_of(*LIMBS)
def results_modulo_integers_are_pythons(case: Case) -> None:
    """By moduli that are positive more often than not, and odd in half of these cases."""
    random = case.random
    chosen, kind = case.take(3), random.choice(("any", "positive", "odd"))
    name, exactly = random.choice(tuple(MODULAR.items()))
    if kind != "any" and case.limits.highest > 0:
        modulus = chosen[-1]
        make = lambda v: case.clipped(max(abs(v), 1)) | (kind == "odd")  # noqa: E731
        if modulus.is_array:
            chosen[-1] = case.chosen(mapped(make, modulus.values), "moduli")
        else:
            chosen[-1] = Chosen(make(modulus.values), make(modulus.values))
    chosen = chosen[1:] if name == "mod_inverse" else chosen
    if not any(one.is_array for one in chosen):
        return
    case.note("function", name)
    *values, m = whole(chosen)
    arrays = [one.array for one in chosen]
    wrong = np.asarray(m <= 0, dtype=bool)
    if name == "mod_power":  # one negative exponent is one for all; those of an array are refused
        wrong = wrong | np.asarray(values[1] < 0, dtype=bool)
    elif name == "mod_inverse":
        wrong = wrong | (mapped(math.gcd, values[0], m) != 1)
    if not m.size:
        return
    call = lambda: getattr(rd, name)(*arrays)  # noqa: E731
    if not wrong.any():
        case.claim_array(call(), mapped(exactly, *values, m), name)
    elif name != "mod_power" or chosen[1].is_array:
        error = must_fail(call, (ZeroDivisionError, ValueError), name)
        if chosen[-1].is_array and not case.is_lazy:
            assert wrong.ravel()[named_index(error)], f"{name}: {error}"


PRIMES = (2, 3, 5, 7, 101, 65537, 2**31 - 1, 2**61 - 1)


@law_of(*LIMBS)
def trees_multiply_and_divide(case: Case) -> None:
    """Products, remainders of any integer by each number, and what each shares with all others."""
    random, limits, bits = case.random, case.limits, case.system.value.bits
    if bits < 2:
        return
    shape = inputs.shape(random, max(6, min(200, 20_000 // bits)))
    primes = [p for p in PRIMES if p <= limits.highest] or [1]

    def draw() -> int:
        value = random.randint(1, max(1, limits.highest >> random.randint(0, bits - 2)))
        while random.random() < 0.8 and value * (p := random.choice(primes)) <= limits.highest:
            value *= p
        return random.choice((value, value, limits.highest, 1, 1 << random.randrange(bits - 1)))

    values = objects((draw() for _ in range(math.prod(shape))), shape)
    wrong = random.random() < 0.05 and values.size
    if wrong:
        values.flat[random.randrange(values.size)] = random.choice((0, limits.lowest))
    x = case.chosen(values, "numbers").array
    if wrong:
        must_fail(lambda: rd.batch_gcd(x), ValueError, "a number that is not positive")
        return
    product = math.prod(values.ravel().tolist())
    drawn = random.getrandbits(random.randint(1, 9000))
    value = random.choice((0, -1, product, -product, product - 1, drawn))
    case.note("value", value)
    tree = rd.product_tree(x)
    case.claim(tree.product, product, "product")
    expected = mapped(lambda v: value % v, values)
    remainders = random.choice((tree.remainders, lambda v: rd.remainder_tree(v, x)))
    case.claim_array(remainders(value), expected, "remainders")
    expected = mapped(lambda v: math.gcd(v, product // v), values)
    case.claim_array(rd.batch_gcd(x), expected, "batch_gcd")
