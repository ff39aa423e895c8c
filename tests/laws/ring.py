"""Laws of a ring: sums and products of arrays, integers and other arrays; overflow; powers; inverses."""

import operator
from collections.abc import Callable
from functools import partial
from typing import Any

import dask.array as da
import numpy as np
from oracles.integers import Range, mapped, objects

import rnsdask as rd
from laws import inputs
from laws.case import (
    INTEGERS,
    INTERVALS,
    LAWS,
    RESIDUES,
    Case,
    Numbers,
    check_index,
    law,
    law_of,
    must_fail,
    whole,
)
from rnsdask.core.rows import ROWS
from rnsdask.lazy import elementwise
from rnsdask.lazy.planning import PLANS_QUERIES

ELEMENTWISE: dict[str, tuple[int, Callable[..., Any]]] = {
    "add": (2, lambda a, b: a + b),
    "subtract": (2, lambda a, b: a - b),
    "multiply": (2, lambda a, b: a * b),
    "negative": (1, lambda a: -a),
    "fma": (3, lambda a, b, c: a * b + c),
    "mulsub": (4, lambda a, b, c, d: a * b - c * d),
    "muladd": (4, lambda a, b, c, d: a * b + c * d),
}
"""Number of operands and exact result of each function whose results may overflow."""

OPERATORS = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "negative": operator.neg,
}


class Exact:
    """Numbers as operators must give them, each result wrapped, and where none was out of range so far."""

    def __init__(self, limits: Range, numbers: Numbers, fits: Any = True) -> None:
        self.limits, self.numbers, self.fits = limits, numbers, fits & ~limits.outside(numbers)

    def apply(self, function: Callable[..., int], *others: Any) -> "Exact":
        operands = [other.numbers if isinstance(other, Exact) else other for other in (self, *others)]
        exact = mapped(function, *np.broadcast_arrays(*(np.asarray(v, dtype=object) for v in operands)))
        fits = self.fits & ~self.limits.outside(exact)
        for other in others:
            fits = fits & (other.fits if isinstance(other, Exact) else True)
        return Exact(self.limits, self.limits.wrapped(exact), fits)

    def __add__(self, other: Any) -> "Exact":
        return self.apply(operator.add, other)

    def __mul__(self, other: Any) -> "Exact":
        return self.apply(operator.mul, other)

    def __sub__(self, other: Any) -> "Exact":
        return self.apply(operator.sub, other)

    def __rsub__(self, other: int) -> "Exact":
        return self.apply(lambda a: other - a)

    def __neg__(self) -> "Exact":
        return self.apply(operator.neg)

    def __pow__(self, exponent: int) -> "Exact":
        return self.apply(lambda a: a**exponent)

    __radd__, __rmul__ = __add__, __mul__


def of_either(name: str) -> Callable[..., Any]:
    """A function of arrays that `Exact` numbers have too."""
    exact = ELEMENTWISE[name][1]
    return lambda x, *others: (
        x.apply(exact, *others) if isinstance(x, Exact) else getattr(rd, name)(x, *others)
    )


fma, mulsub, muladd = map(of_either, ("fma", "mulsub", "muladd"))

RING: dict[str, dict[str, tuple[Callable[..., Any], Callable[..., Any]]]] = {
    "addition": {
        "commutative": (lambda x, y, _: x + y, lambda x, y, _: y + x),
        "associative": (lambda x, y, z: (x + y) + z, lambda x, y, z: x + (y + z)),
        "zero": (lambda x, *_: (x + 0) - 0, lambda x, *_: 0 + x),
        "negation": (lambda x, *_: x + -x, lambda _, y, z: (y - y) + (z - z)),
        "subtraction": (lambda x, y, _: x - y, lambda x, y, _: x + -y),
        "subtraction from zero": (lambda x, *_: 0 - x, lambda x, *_: -x),
    },
    "multiplication": {
        "commutative": (lambda x, y, _: x * y, lambda x, y, _: y * x),
        "associative": (lambda x, y, z: (x * y) * z, lambda x, y, z: x * (y * z)),
        "one": (lambda x, *_: x * 1, lambda x, *_: 1 * x),
        "zero": (lambda x, *_: x * 0, lambda _, y, z: 0 * y + 0 * z),
        "distributive": (lambda x, y, z: x * (y + z), lambda x, y, z: x * y + x * z),
        "distributive from the right": (lambda x, y, z: (x - y) * z, lambda x, y, z: x * z - y * z),
        "doubling": (lambda x, *_: x * 2, lambda x, *_: x + x),
    },
    "powers": {
        "product": (lambda x, *_: x**3, lambda x, *_: x * x * x),
        "sum": (lambda x, *_: x**2 * x**5, lambda x, *_: x**7),
        "none": (lambda x, *_: x**0, lambda x, *_: x * 0 + 1),
    },
    "fma": {"composition": (lambda x, y, z: fma(x, y, z), lambda x, y, z: x * y + z)},
    "mulsub": {"composition": (lambda x, y, z: mulsub(x, y, z, x), lambda x, y, z: x * y - z * x)},
    "muladd": {"composition": (lambda x, y, z: muladd(x, y, z, x), lambda x, y, z: x * y + z * x)},
}
"""Two ways to write the same, of three arrays and of three `Exact` numbers."""


WITH_INTEGERS = {"one", "doubling", "none"}
"""Names of those that take 1 or 2, which the least ranges lack."""


def ring_law(group: str, case: Case) -> None:
    *arrays, a, b, c = case.draw(3)
    exact = [Exact(case.limits, v) for v in (a, b, c)]
    for name, sides in RING[group].items():
        if name in WITH_INTEGERS and not case.limits.holds(2):
            continue
        with rd.errstate(overflow="wrap"):
            left, right = (side(*arrays) for side in sides)
        expected, other = (side(*exact) for side in sides)
        agree = np.ones(a.shape, bool) if case.system.is_ring else expected.fits & other.fits
        assert (expected.numbers == other.numbers)[agree].all()  # so the arrays' sides agree there too
        case.claim_array(left, expected.numbers, f"{group}, {name}, left")
        case.claim_array(right, other.numbers, f"{group}, {name}, right")


LAWS.update({group: partial(ring_law, group) for group in RING})


@law
def integers_act_as_arrays(case: Case) -> None:
    """An operation with an integer is that with an array of it."""
    x, a = case.draw()
    functions = (operator.add, operator.sub, operator.mul)
    for value, function in zip(case.random.choices(case.system.edges(), k=3), functions, strict=True):
        y = case.array(np.full_like(a, value))
        with rd.errstate(overflow="wrap"):
            after, as_arrays, before = function(x, value), function(x, y), function(value, x)
        what = f"{function.__name__} with {value}"
        case.claim_array(after, case.limits.wrapped(function(a, value)), what)
        case.claim_array(as_arrays, case.limits.wrapped(function(a, value)), what)
        case.claim_array(before, case.limits.wrapped(function(value, a)), what)


@law
def lists_and_plain_arrays_act_as_arrays(case: Case) -> None:
    """An operation with a list, or an array of integers of NumPy or Dask, is that with an array of them."""
    x, a = case.draw()
    lowest, highest = case.system.ends
    b = case.numbers()
    small = np.clip(b, max(lowest, -(2**62)), min(highest, 2**62)).astype(np.int64)
    chunks = tuple(-(-length // 2) for length in case.shape)
    for name, plain in (
        *(("a list", b.tolist()), ("objects", b), ("one row", b[-1:]), ("int64", small)),
        ("of Dask", da.from_array(small, chunks=chunks)),
    ):
        given = np.asarray(small if isinstance(plain, da.Array) else plain, dtype=object)
        values = objects(given.ravel().tolist(), given.shape)
        with rd.errstate(overflow="wrap"):
            after = x - plain
            # Dask's arrays as expressions ask no other array whether it takes over.
            before = x * plain if PLANS_QUERIES and isinstance(plain, da.Array) else plain * x
        case.claim_array(after, case.limits.wrapped(a - values), f"{name} after x")
        case.claim_array(before, case.limits.wrapped(values * a), f"{name} before x")
        case.claim(x == plain, a == values, f"== {name}")


def overflow_law(names: tuple[str, ...], case: Case) -> None:
    """Overflow is flagged and raised just where the exact result is out of range."""
    for name in names:
        arity, exactly = ELEMENTWISE[name]
        chosen, function = case.take(arity), getattr(rd, name)
        values, arrays = whole(chosen), [one.array for one in chosen]
        exact = mapped(exactly, *values)
        outside = case.limits.outside(exact)
        result, mask = function(*arrays, overflow="flag")
        case.claim_array(result, case.limits.wrapped(exact), name)
        case.claim(mask, outside, f"overflow of {name}")
        if case.random.random() < 0.5:  # an error takes a computation of its own
            case.claim_overflowing(partial(function, *arrays), exact, what=name)
        # The operator - of intervals never overflows, and gives no pair.
        has_modes = name in OPERATORS and (case.system.kind, name) != ("interval", "negative")
        if has_modes and case.random.random() < 0.5:
            case.claim_overflowing(partial(OPERATORS[name], *arrays), exact, options=False, what=name)
        inside = [case.array(np.where(outside, 0, v)) for v in values]
        case.claim_array(function(*inside, overflow="raise"), np.where(outside, 0, exact), name)


OVERFLOW = {"overflow": ("add", "subtract", "multiply", "negative")}
OVERFLOW |= {f"overflow_of_{name}": (name,) for name in ("fma", "mulsub", "muladd")}
LAWS.update({name: partial(overflow_law, names) for name, names in OVERFLOW.items()})


@law_of(*INTERVALS)
def algorithms_of_sums_agree(case: Case) -> None:
    """Sums and differences of the addition paper's algorithms, each chosen by name."""
    name = case.random.choice(("add", "subtract"))
    x, y = case.take(2)
    exact = mapped(ELEMENTWISE[name][1], *whole([x, y]))
    algorithm = case.random.choice((1, 2, "digits"))
    case.note("algorithm", algorithm)
    apply = partial(elementwise.apply, ROWS[name], x.array, y.array, algorithm=algorithm)
    case.claim_overflowing(apply, exact, what=f"{name} by algorithm {algorithm}")


# ---- powers and inverses -----------------------------------------------------------------------------------


@law_of(*INTEGERS)
def squares_are_products(case: Case) -> None:
    (x,) = case.take()
    case.claim_overflowing(partial(rd.square, x.array), x.values * x.values, what="square")


@law_of(*RESIDUES)
def powers_are_pythons(case: Case) -> None:
    """By integers up to far more than the bits of the range."""
    (x,) = case.take()
    product = case.limits.product
    bits = product.bit_length() - 1
    long = case.random.choice((bits, 63, 64, 65, 2**32, 2**64, 2**64 + 1, case.random.getrandbits(130)))
    k = case.random.choice((0, 1, 2, 3, case.random.randint(0, 40), long))
    case.note("exponent", k)
    if case.random.random() < 0.03:
        must_fail(lambda: x.array ** -max(k, 1), ValueError, "a negative power")
        return

    def raised(v: int) -> int:
        """The exact power, or if that is far out of range any number out of range."""
        return v**k if k <= 40 or (abs(v).bit_length() - 1) * k <= bits else 2 * product

    exact = mapped(raised, x.values)
    if k <= 40:
        case.claim_overflowing(partial(rd.power, x.array, k), exact, what=f"power {k}")
        return
    signs = mapped(lambda v: -1 if v < 0 and k % 2 else 1, x.values)
    wrapped = mapped(lambda v, s: case.limits.wrap(s * pow(abs(v), k, product)), x.values, signs)
    outside = case.limits.outside(exact)
    values, mask = rd.power(x.array, k, overflow="flag")
    case.claim_array(values, wrapped, f"power {k}")
    case.claim(mask, outside, f"overflow of power {k}")
    if outside.any():
        error = must_fail(lambda: rd.power(x.array, k), rd.RNSOverflowError, "a long power")
        check_index(error, outside, x.array)
    else:
        case.claim_array(x.array**k, wrapped, f"operator of power {k}")


@law_of(*RESIDUES)
def powers_by_arrays_are_pythons(case: Case) -> None:
    x = small_array(case)
    random, shape = case.random, inputs.broadcastable(case.random, x.values.shape)
    drawn = [
        random.choice((0, 1, 2, 3, random.randint(0, 40))) for _ in range(int(np.prod(shape, dtype=int)))
    ]
    k = np.array(drawn, dtype=int).reshape(shape).astype(random.choice((np.int64, np.uint8, np.uint64)))
    case.note("exponents", k)
    exact = np.asarray(x.values ** k.astype(object), dtype=object)
    exponents = case.processor.xp.asarray(k)
    case.claim_overflowing(partial(rd.power, x.array, exponents), exact, what="power by an array")


def small_array(case: Case) -> Any:
    """An array whose products along an axis are not too long."""
    random, most = case.random, max(1, min(40, case.most_numbers // 8))
    lengths = [
        random.randint(0, 3) if random.random() < 0.2 else random.randint(1, 7)
        for _ in range(random.randint(0, 2))
    ]
    lengths.insert(random.randint(0, len(lengths)), random.randint(0, most))
    values = case.numbers(tuple(lengths))
    if random.random() < 0.7:  # products that stay in range for a while
        for place in np.ndindex(values.shape):
            if random.random() < 0.8:
                values[place] = case.clipped(random.choice((1, 1, -1, 2, -3, 0)))
    return case.chosen(values)


@law_of(*RESIDUES)
def inverses_multiply_to_one(case: Case) -> None:
    """Modulo the range's size, or an error that names a number without an inverse."""
    (x,) = case.take()
    product = case.limits.product

    def inverse(v: int) -> int | None:
        try:
            return case.limits.wrap(pow(abs(v), -1, product) * (-1 if v < 0 else 1))
        except ValueError:
            return None

    expected = mapped(inverse, x.values)
    missing = np.equal(expected, None).astype(bool)
    if not missing.any():
        case.claim_array(rd.inverse(x.array), expected, "inverses")
        return
    error = must_fail(lambda: rd.inverse(x.array), ValueError, "a number without inverse")
    check_index(error, missing, x.array)
