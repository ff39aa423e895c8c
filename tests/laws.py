"""Laws of arrays of numbers: one suite for every number system, processor, layout and chunking.

A `System` says what the suite has to know of a number system; a law is a function of a `Case`, which draws
numbers, the adversarial ones first, and makes arrays of them. What is right is said by Python's integers:
`Range` says what the system makes of a result out of range, and nothing of the package is asked.
"""

import copy
import math
import operator
import pickle
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from itertools import accumulate
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import cloudpickle
import dask
import dask.array as da
import numpy as np
import pytest
from conftest import Processor
from dask.base import tokenize
from oracles.integers import Range, best, mapped, objects, product_of_all
from sample_arrays import RELATIONS, host

import rnsdask as rd
from rnsdask.arrays.number_array import NumberArray
from rnsdask.lazy.planning import PLANS_QUERIES

Numbers = np.ndarray  # of dtype object: Python ints

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

LAYOUTS: dict[str, dict[tuple[int, ...], tuple[Any, ...]]] = {
    "eager": {(96,): (None,), (8, 12): (None,)},
    "chunks": {(96,): ((96,), (32,), ((1, 60, 35),)), (8, 12): (((5, 3), (1, 11)),)},
}
"""Shapes by name, and Dask chunks, of which a case takes one each; None for NumPy and CuPy arrays."""


@dataclass(frozen=True)
class System:
    """A number system under test.

    Attributes
    ----------
    limits
        The range, and what becomes of results out of it.
    array
        Makes an eager array of numbers; its words go through the second argument, to a processor or to Dask.
    from_ints
        The way in for users: an eager array of Python's integers.
    is_defined
        Whether an array's words are those that the definition of the system gives numbers.
    bound
        Greatest magnitude of the numbers to draw, if less than the range has.
    bounds
        Magnitudes of which each case takes one as its `bound`.
    is_ring
        Whether overflow keeps the laws of a ring, as modulo M. Else they hold where nothing overflows.
    is_ordered
        Whether numbers are less or greater than others. Else laws leave out what comes of that.
    reopen
        Opens what `to_zarr` wrote.
    round_trips
        Conversions there and back, which give an equal array.
    lacks
        Laws that do not apply, with the reason: what they are of raises ``TypeError`` or ``AttributeError``.
    """

    name: str
    limits: Range
    array: Callable[[Numbers, Callable[[Any], Any]], Any]
    from_ints: Callable[[Numbers], Any]
    is_defined: Callable[[Any, Numbers], bool]
    bound: int | None = None
    bounds: tuple[int, ...] = ()
    is_ring: bool = True
    is_ordered: bool = True
    reopen: Callable[[Path], Any] = rd.open_zarr
    round_trips: tuple[Callable[[Any], Any], ...] = ()
    lacks: Mapping[str, str] = field(default_factory=dict)

    @property
    def ends(self) -> tuple[int, int]:
        """Least and greatest number to draw."""
        reach = self.limits.magnitude if self.bound is None else self.bound
        return max(self.limits.lowest, -reach), min(self.limits.highest, reach)

    def edges(self) -> list[int]:
        """0, the ends and the middle of the range, M/2 and powers of two around words, with neighbours."""
        lowest, highest = self.ends
        places = [0, highest, highest // 2, self.limits.product // 2, *(1 << k for k in (31, 32, 63, 64))]
        near = {sign * v + d for v in (lowest, *places) for d in (-1, 0, 1) for sign in (1, -1)}
        return sorted(v for v in near if lowest <= v <= highest)


class Claim(NamedTuple):
    """Expected numbers of a result; with `defined`, its words are those of the system's definition."""

    result: Any
    expected: np.ndarray
    what: str
    defined: bool


class Case:
    """A system on a processor in a layout, a source of random numbers, one of folders, and a law's claims."""

    def __init__(
        self, system: System, layout: str, processor: Processor, random: Random, folder: Callable[[], Path]
    ) -> None:
        system = replace(system, bound=random.choice(system.bounds)) if system.bounds else system
        self.system, self.limits, self.layout, self.processor = system, system.limits, layout, processor
        self.random, self.folder = random, folder
        self.shape = random.choice(list(LAYOUTS[layout]))
        self.chunks = random.choice(LAYOUTS[layout][self.shape])
        self.claims: list[Claim] = []

    # ---- numbers and arrays of them

    def place(self, words: np.ndarray) -> Any:
        """Bring words (rows, *shape) to the processor and into chunks; those of another shape into halves."""
        words = self.processor.xp.asarray(words)
        if self.chunks is None:
            return words
        halves = tuple(-(-length // 2) or 1 for length in words.shape[1:])
        chunks = self.chunks if words.shape[1:] == self.shape else halves
        return da.from_array(words, chunks=(len(words), *chunks), asarray=False)

    def array(self, numbers: Numbers) -> Any:
        return self.system.array(numbers, self.place)

    def numbers(self, shape: tuple[int, ...] | None = None) -> Numbers:
        """Edges, then numbers near some of them, then any, in random order."""
        shape = self.shape if shape is None else shape
        count = math.prod(shape)
        lowest, highest = self.system.ends
        edges = self.system.edges()
        values = self.random.sample(edges, min(len(edges), -(-count // 2)))
        near = [v + self.random.randint(-2, 2) for v in values[: count // 6]]
        values += [min(max(v, lowest), highest) for v in near]
        values += [self.random.randint(lowest, highest) for _ in range(count - len(values))]
        return objects(self.random.sample(values, count), shape)

    def draw(self, count: int = 1) -> tuple[Any, ...]:
        """Arrays, then their numbers."""
        numbers = [self.numbers() for _ in range(count)]
        return *map(self.array, numbers), *numbers

    def line(self) -> tuple[Any, list[int]]:
        """An array of one axis, and its numbers."""
        x, a = self.draw()
        return (x, a.tolist()) if x.ndim == 1 else (x[1], a[1].tolist())

    def mask(self) -> tuple[Any, np.ndarray]:
        """A random condition on the processor, and in NumPy."""
        mask = objects(self.random.choices((True, False), k=math.prod(self.shape)), self.shape).astype(bool)
        return self.processor.xp.asarray(mask), mask

    # ---- what must hold

    def host(self, *results: Any) -> list[np.ndarray]:
        """Python ints of arrays of numbers, and the items of other arrays, from one computation."""
        return list(map(on_host, dask.compute(*results, traverse=False)))

    def claim(self, result: Any, expected: Any, what: str = "", defined: bool = False) -> None:
        """That a result's numbers, or items, are those expected."""
        self.claims.append(Claim(result, np.asarray(expected), what, defined))

    def claim_array(self, result: Any, expected: Numbers, what: str = "") -> None:
        self.claim(result, expected, what, defined=True)

    def settle(self) -> None:
        """Compute all that was claimed something of, at once, and compare."""
        results = dask.compute(*(claim.result for claim in self.claims), traverse=False)
        for result, (lazy, expected, what, defined) in zip(results, self.claims, strict=True):
            lengths = zip(getattr(lazy, "shape", expected.shape), expected.shape, strict=True)
            assert all(known == length or math.isnan(known) for known, length in lengths), what
            found = on_host(result)
            assert found.shape == expected.shape, what
            wrong = np.argwhere(np.asarray(found != expected))
            if len(wrong):
                place = tuple(wrong[0].tolist())
                message = f"{what or 'a result'} at {place} is {found[place]} instead of {expected[place]}"
                pytest.fail(f"{self.system.name}: {message} ({len(wrong)} of {found.size} differ)")
            assert not defined or self.system.is_defined(result, expected), f"words of {what}"
            bound = getattr(result, "bound", None)
            assert bound is None or abs(expected).max(initial=0) <= bound, f"bound of {what}"
        self.claims.clear()


def wrapping(function: Callable[..., Any], *operands: Any) -> Any:
    """The result of a function where results out of range wrap, as in fields they do in any case."""
    with rd.errstate(overflow="wrap"):
        return function(*operands)


def on_host(result: Any) -> np.ndarray:
    return result.to_ints() if isinstance(result, NumberArray) else host(result)


LAWS: dict[str, Callable[[Case], None]] = {}
"""By name. A law makes claims, and may assert what it has computed itself."""


def law(function: Callable[[Case], None]) -> Callable[[Case], None]:
    LAWS[function.__name__] = function
    return function


def check(name: str, case: Case) -> None:
    LAWS[name](case)
    case.settle()


# ---- ring --------------------------------------------------------------------------------------------------


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


def ring_law(group: str, case: Case) -> None:
    *arrays, a, b, c = case.draw(3)
    exact = [Exact(case.limits, v) for v in (a, b, c)]
    for name, sides in RING[group].items():
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
        arity, function = ELEMENTWISE[name]
        drawn = case.draw(arity)
        arrays, exact = drawn[:arity], mapped(function, *drawn[arity:])
        outside = case.limits.outside(exact)
        result, mask = getattr(rd, name)(*arrays, overflow="flag")
        case.claim_array(result, case.limits.wrapped(exact), name)
        case.claim(mask, outside, f"overflow of {name}")
        if outside.any() and case.random.random() < 0.5:  # an error takes a computation of its own
            with pytest.raises(rd.RNSOverflowError):
                case.host(getattr(rd, name)(*arrays, overflow="raise"))
        inside = [case.array(np.where(outside, 0, v)) for v in drawn[arity:]]
        case.claim_array(getattr(rd, name)(*inside, overflow="raise"), np.where(outside, 0, exact), name)


OVERFLOW = {"overflow": ("add", "subtract", "multiply", "negative")}
OVERFLOW |= {f"overflow_of_{name}": (name,) for name in ("fma", "mulsub", "muladd")}
LAWS.update({name: partial(overflow_law, names) for name, names in OVERFLOW.items()})


# ---- order -------------------------------------------------------------------------------------------------


@law
def order_is_total(case: Case) -> None:
    x, a = case.draw()
    b = np.where(case.mask()[1], a, case.numbers())
    y = case.array(b)
    found = case.host(*(relation(x, y) for relation in RELATIONS.values()))
    for (name, relation), mask in zip(RELATIONS.items(), found, strict=True):
        assert mask.dtype == bool
        case.claim(mask, relation(a, b).astype(bool), name)
    below, at_most, above, at_least, equal, differ = found
    assert (below.astype(int) + equal + above == 1).all()  # trichotomy
    assert ((at_most == ~above) & (at_least == ~below) & (differ == ~equal)).all()


@law
def order_with_integers(case: Case) -> None:
    """Any integer, also one out of range."""
    x, a = case.draw()
    beyond = case.limits.lowest - 1, case.limits.highest + 1, -(case.limits.product**2), 1 << 5000
    for value in (case.random.choice(case.system.edges()), case.random.choice(beyond)):
        for name, relation in RELATIONS.items():
            case.claim(relation(x, value), relation(a, value).astype(bool), f"{name} {value}")


@law
def order_agrees_with_addition(case: Case) -> None:
    """x < y just where x + z < y + z, where neither sum overflows."""
    x, y, z, a, b, c = case.draw(3)
    (left, _), (right, _) = (rd.add(v, z, overflow="flag") for v in (x, y))
    fits = ~(case.limits.outside(a + c) | case.limits.outside(b + c))
    assert fits.any()
    before, after = case.host(x < y, left < right)
    assert (before == after)[fits].all()
    case.claim(before, (a < b).astype(bool))


@law
def extrema_and_choice(case: Case) -> None:
    x, y, a, b = case.draw(2)
    condition, mask = case.mask()
    case.claim_array(rd.maximum(x, y), np.maximum(a, b), "maximum")
    case.claim_array(rd.minimum(x, y), np.minimum(a, b), "minimum")
    case.claim_array(rd.where(condition, x, y), np.where(mask, a, b), "where")
    case.claim_array(rd.where(x < y, y, x), np.maximum(a, b), "maximum by choice")
    case.claim(rd.sign(x), mapped(lambda v: (v > 0) - (v < 0), a, dtype=np.int8), "sign")


# ---- division ----------------------------------------------------------------------------------------------


@law
def division(case: Case) -> None:
    """x == q d + r with r from 0 to d, by arrays and by integers."""
    x, a = case.draw()
    drawn = case.numbers()
    quotients_fit = mapped(lambda v, d: d != 0 and case.limits.holds(v // d), a, drawn, dtype=bool)
    by_each = np.where(quotients_fit, drawn, 1)
    integer = max(case.random.sample(case.system.edges(), 4), key=abs)
    for divisor, d in ((case.array(by_each), by_each), (integer, np.full_like(a, integer))):
        quotient, remainder = divmod(x, divisor)
        q, r = case.host(quotient, remainder)
        assert ((q * d + r == a) & (abs(r) < abs(d)) & ((r == 0) | ((r < 0) == (d < 0)))).all()
        case.claim_array(quotient, a // d, "quotient")
        case.claim_array(x % divisor, a % d, "remainder")


# ---- number theory -----------------------------------------------------------------------------------------


@law
def divisors_and_multiples(case: Case) -> None:
    """gcd and lcm by arrays and by integers; their product is that of the magnitudes."""
    x, y, a, b = case.draw(2)
    few = case.numbers(a.shape[-1:]) // case.random.getrandbits(64)
    common = mapped(lambda v: case.random.choice((0, 1, 6, v)), a)  # numbers with much in common
    z = case.array(common)
    integer = case.random.choice(case.system.edges())
    pairs = ((x, y, a, b), (x, z, a, common), (x, case.array(few), a, few), (integer, x, integer, a))
    for left, right, values, others in pairs:
        both = [np.broadcast_to(np.asarray(v, dtype=object), a.shape) for v in (values, others)]
        for name, function in (("gcd", math.gcd), ("lcm", math.lcm)):
            exact = mapped(function, *both)
            outside = case.limits.outside(exact)
            result, mask = getattr(rd, name)(left, right, overflow="flag")
            case.claim_array(result, case.limits.wrapped(exact), name)
            case.claim(mask, outside, f"overflow of {name}")
            if outside.any() and case.random.random() < 0.2:
                with pytest.raises(rd.RNSOverflowError):
                    case.host(getattr(rd, name)(left, right))
            elif not outside.any():
                case.claim_array(getattr(rd, name)(left, right), exact, name)
    roots = mapped(lambda v: math.isqrt(max(v, 0)), a)
    case.claim_array(rd.isqrt(rd.maximum(x, 0)), roots, "isqrt")


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


# ---- round trips -------------------------------------------------------------------------------------------


@law
def integers_round_trip(case: Case) -> None:
    """In by the users' way and by words, and out again."""
    x, a = case.draw()
    case.claim_array(x, a)
    case.claim_array(case.system.from_ints(a), a, "from_ints")
    case.claim(np.asarray(x), a, "NumPy's conversion")


@law
def conversions_round_trip(case: Case) -> None:
    x, a = case.draw()
    for convert in case.system.round_trips:
        case.claim_array(convert(x), a)


@law
def stores_round_trip(case: Case) -> None:
    """A store opens as the array that was written, and written again it has the same bytes."""
    x, a = case.draw()
    folder, contents = case.folder(), []
    for path in (folder / "first", folder / "second"):
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "the array's chunks differ", UserWarning)
            x.to_zarr(path)
        files = [file for file in path.rglob("*") if file.is_file()]
        contents.append({file.relative_to(path): file.read_bytes() for file in files})
    assert len(contents[0]) > 1
    assert contents[0] == contents[1]
    again = case.system.reopen(folder / "first")
    case.claim_array(again, a)
    for name in ("moduli", "signed", "bound"):
        assert getattr(again, name, None) == getattr(x, name, None)


@law
def stores_grow(case: Case) -> None:
    """Appended numbers come after those that are there, along any axis, in the store's chunks."""
    x, y, a, b = case.draw(2)
    for axis in range(a.ndim):
        path = case.folder() / f"grown-{axis}"
        x.to_zarr(path, chunks=17)
        y.to_zarr(path, append_dim=axis)
        again = case.system.reopen(path)
        assert all(set(lengths[:-1]) <= {17} for lengths in again.chunks)
        case.claim_array(again, np.concatenate([a, b], axis))


@law
def pickles_round_trip(case: Case) -> None:
    x, a = case.draw()
    for module in (pickle, cloudpickle):
        again = module.loads(module.dumps(x))
        assert tokenize(again) == tokenize(x)
        case.claim_array(again, a)
    case.claim_array(copy.deepcopy(x), a)


# ---- reductions --------------------------------------------------------------------------------------------


@law
def reductions_are_folds(case: Case) -> None:
    """Reductions of all numbers, in C order, whatever the chunks."""
    x, a = case.draw()
    values = a.ravel().tolist()
    found = case.host(x.max(), x.min(), x.sum(), x.argmax(), x.argmin(), x[:0].sum(), x.gcd(), x[:0].gcd())
    places = values.index(max(values)), values.index(min(values))
    assert list(map(int, found)) == [max(values), min(values), sum(values), *places, 0, math.gcd(*values), 0]


@law
def products_are_folds(case: Case) -> None:
    x, a = case.draw()
    values = a.ravel().tolist()
    fitting = within_range(case, [v for v in values if v], operator.mul)
    y = case.array(objects(fitting))
    found = case.host(*x.prod(overflow="flag"), *y.prod(overflow="flag"), y.prod())
    expected = *product_of_all(values, case.limits), math.prod(fitting), False, math.prod(fitting)
    assert tuple(map(int, found)) == expected


@law
def scans_are_folds(case: Case) -> None:
    values = within_range(case, case.line()[1], operator.add)
    x = case.array(objects(values))
    for name, function in (("cumsum", operator.add), ("cummax", max), ("cummin", min)):
        case.claim_array(getattr(x, name)(), objects(accumulate(values, function)), name)


def within_range(case: Case, values: list[int], function: Callable[[int, int], int]) -> list[int]:
    """The values whose running fold, of those taken, stays in range."""
    taken, fold = values[:1], values[0]
    for value in values[1:]:
        if case.limits.holds(function(fold, value)):
            fold = function(fold, value)
            taken.append(value)
    return taken


@law
def selections_are_sorted(case: Case) -> None:
    x, values = case.line()
    for k in (1, -1, 5, -5, len(values) + 1):
        places = best(values, k)
        case.claim(x.argtopk(k), places, f"argtopk({k})")
        case.claim(x.topk(k), objects(values[i] for i in places), f"topk({k})")


@law
def selections_along_axes_are_sorted(case: Case) -> None:
    x, a = case.draw()
    x, a = (x, a) if x.ndim > 1 else (x[None], a[None])
    for axis, k in ((0, 3), (1, -2)):
        order = np.argsort(-a if k > 0 else a, axis, kind="stable")
        places = np.take(order, range(min(abs(k), a.shape[axis])), axis)
        case.claim(x.argtopk(k, axis), places, f"argtopk({k}) along {axis}")
        case.claim(x.topk(k, axis), np.take_along_axis(a, places, axis), f"topk({k}) along {axis}")


@law
def sorting_is_stable(case: Case) -> None:
    """Along the last axis and of all numbers, with equal ones among them."""
    a = case.numbers()
    a = np.where(case.mask()[1], a, a.flat[0])
    x = case.array(a)
    for axis in (-1, None):
        case.claim_array(rd.sort(x, axis), np.sort(a, axis), f"sorted along {axis}")
        case.claim(rd.argsort(x, axis), np.argsort(a, axis, kind="stable"), f"indices along {axis}")
    middle = np.sort(a, None)[[(a.size - 1) // 2, a.size // 2]].tolist()
    case.claim(rd.median(x), Fraction(sum(middle), 2), "median")


@law
def distinct_numbers_are_found(case: Case) -> None:
    a = case.numbers()
    a = np.where(case.mask()[1], a, a.flat[0])
    x, held = case.array(a), sorted(set(a.ravel().tolist()))
    numbers, index, inverse, counts = rd.unique(x, True, True, True)
    flat, place = a.ravel().tolist(), {value: i for i, value in enumerate(held)}
    case.claim_array(numbers, objects(held), "distinct numbers")
    case.claim(index, [flat.index(value) for value in held], "where they are first")
    case.claim(inverse, mapped(place.get, a, dtype=np.int64), "inverse")
    case.claim(counts, [flat.count(value) for value in held], "counts")
    some = [*held[::2], case.limits.highest + 1]
    case.claim(rd.isin(x, some), mapped(set(some).__contains__, a, dtype=bool), "membership")
    case.claim(rd.searchsorted(rd.sort(x, None), some), [sorted(flat).index(v) for v in some[:-1]] + [a.size])


@law
def reductions_along_axes_are_folds(case: Case) -> None:
    x, a = case.draw()
    x, a = (x, a) if x.ndim > 1 else (x[None], a[None])
    for axis, keepdims in ((0, True), (1, False)):
        options = {"axis": axis, "keepdims": keepdims}
        for name in ("max", "min", "sum"):
            what = f"{name} along {axis}"
            case.claim(getattr(x, name)(**options), getattr(np, name)(a, **options), what)
        case.claim(x.gcd(**options), abs(np.gcd.reduce(a, **options)), f"gcd along {axis}")
        places = np.argmax(a == np.max(a, axis=axis, keepdims=True), **options)
        case.claim(x.argmax(**options), places, f"argmax along {axis}")


@law
def running_folds_along_axes(case: Case) -> None:
    """Products, running sums, products and extrema, and variances, along an axis."""
    x, a = case.draw()
    x, a = (x, a) if x.ndim > 1 else (x.reshape(8, 12), a.reshape(8, 12))
    axis = case.random.randrange(2)
    for name, exact in (("prod", np.prod(a, axis=axis)), ("cumprod", np.cumprod(a, axis=axis))):
        result, mask = getattr(x, name)(axis, overflow="flag")
        case.claim_array(result, case.limits.wrapped(exact), f"{name} along {axis}")
        case.claim(mask, case.limits.outside(exact), f"overflow of {name} along {axis}")
    for name, function in (("cummax", np.maximum), ("cummin", np.minimum)):
        case.claim_array(getattr(x, name)(axis), function.accumulate(a, axis=axis), f"{name} along {axis}")
    case.claim_array((x // 16).cumsum(axis), np.cumsum(a // 16, axis=axis), f"cumsum along {axis}")
    count = a.shape[axis]
    means = mapped(lambda total, n=count: Fraction(total, n), a.sum(axis=axis))
    squares = mapped(lambda total, n=count: Fraction(total, n), (a * a).sum(axis=axis))
    case.claim(x.var(axis), squares - means * means, f"variance along {axis}")


@law
def elementary_functions_are_pythons(case: Case) -> None:
    x, y, a, b = case.draw(2)
    low, high = sorted(case.random.sample(case.system.edges(), 2))
    with rd.errstate(overflow="wrap"):
        case.claim_array(abs(x), case.limits.wrapped(abs(a)), "absolute value")
        case.claim_array(rd.diff(x, axis=0), case.limits.wrapped(np.diff(a, axis=0)), "difference")
    case.claim_array(x.clip(low, high), np.clip(a, low, high), f"clip to {low} and {high}")
    case.claim_array(rd.clip(x, y), np.maximum(a, b), "clip by an array")
    values = a.ravel().tolist()
    case.claim(rd.count_nonzero(x, 0), np.count_nonzero(a, axis=0), "count of those that are not 0")
    case.claim(x.any(-1), (a != 0).any(-1), "any")
    case.claim(x.all(0), (a != 0).all(0), "all")
    mean, span, everything = case.host(x.mean(), rd.ptp(x), x.all())
    assert (mean, span, everything) == (
        Fraction(sum(values), len(values)),
        max(values) - min(values),
        all(values),
    )


# ---- shapes ------------------------------------------------------------------------------------------------


@law
def slicing_commutes_with_operations(case: Case) -> None:
    x, y, a, b = case.draw(2)
    total, exact = wrapping(rd.add, x, y), case.limits.wrapped(a + b)
    keys: list[Any] = [slice(None, None, -1), slice(7, 1, -2), slice(3, 3), (..., None)]
    keys += [[5, 0, -1, 5]] if x.ndim == 1 else [2, (slice(None, None, -2), slice(4, -1)), (slice(None), -1)]
    for key in keys:
        case.claim_array(total[key], exact[key], f"{key} of a sum")
        case.claim_array(wrapping(rd.add, x[key], y[key]), exact[key], f"sum of {key}")
    last = (-1,) * x.ndim
    case.claim(x[last], a[last])


@law
def selections_of_unknown_length_reduce(case: Case) -> None:
    """Numbers that a condition selects are reduced, iterated and indexed as those in memory are."""
    x, a = case.draw()
    edges = sorted(a.ravel().tolist())
    for limit in (edges[len(edges) // 2], edges[-1]):
        chosen = a[(a >= limit).astype(bool)]
        for name in ("max", "min", "sum", "argmax", "argmin"):
            expected = getattr(chosen, name)()
            case.claim(getattr(x[x >= limit], name)(), expected, f"{name} of a selection")
        case.claim_array(x[x >= limit][::-1], chosen[::-1], "a selection reversed")
        assert [int(number) for number in x[x >= limit]] == chosen.tolist()
    case.claim(x[x > edges[-1]].sum(), 0, "sum of none")


@law
def numpys_functions_are_found(case: Case) -> None:
    """NumPy's functions give what operators and methods do, on the array's side of the way to integers."""
    x, y, a, b = case.draw(2)
    with rd.errstate(overflow="wrap"):
        for name in ("add", "subtract", "multiply"):
            ufunc = getattr(np, name)
            case.claim_array(ufunc(x, y), case.limits.wrapped(ufunc(a, b)), f"np.{name}")
    for name in ("maximum", "minimum") if case.system.is_ordered else ():
        case.claim_array(getattr(np, name)(x, y), getattr(np, name)(a, b), f"np.{name}")
    for name in ("equal", "not_equal", *(("less", "greater_equal") if case.system.is_ordered else ())):
        value = case.random.choice(a.ravel().tolist())
        expected = getattr(np, name)(value, a).astype(bool)
        case.claim(getattr(np, name)(value, x), expected, f"np.{name}")
    if case.system.is_ordered:
        case.claim(np.sum(x), a.sum(), "np.sum")
        case.claim(np.maximum.reduce(x, axis=None), a.max(), "np.maximum.reduce")
    condition, mask = case.mask()
    case.claim_array(np.where(condition, x, y), np.where(mask, a, b), "np.where")
    case.claim_array(np.concatenate([x, y], axis=-1), np.concatenate([a, b], axis=-1), "np.concatenate")
    case.claim_array(np.moveaxis(x, 0, -1), np.moveaxis(a, 0, -1), "np.moveaxis")
    assert np.array_equal(x, x[:])
    assert np.array_equal(x, y) == (a.tolist() == b.tolist())


@law
def selecting_commutes_with_operations(case: Case) -> None:
    """By Boolean masks, of the caller's or of a comparison."""
    x, y, a, b = case.draw(2)
    mask = case.mask()[1]
    total, exact = wrapping(rd.add, x, y), case.limits.wrapped(a + b)
    case.claim_array(total[mask], exact[mask], "mask of a sum")
    alike = np.where(mask, a, b)
    case.claim_array(total[x == case.array(alike)], exact[(a == alike).astype(bool)], "comparison as a mask")
    case.claim_array(wrapping(rd.add, x[mask], y[mask]), exact[mask], "sum of masks")


SHAPES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "reshape": lambda _, x, __: x.reshape(4, -1, 3),
    "ravel of the transpose": lambda _, x, __: x.T.ravel(),
    "swapped axes": lambda m, x, y: m.stack([x, y]).swapaxes(0, -1),
    "squeeze": lambda m, x, _: m.expand_dims(x, (0, -1)).squeeze(0),
    "concatenate": lambda m, x, y: m.concatenate([x, y[::-1], x[:3]]),
    "stack": lambda m, x, y: m.stack([x, y], axis=-1),
    "hstack": lambda m, x, y: m.hstack([y, x]),
    "vstack": lambda m, x, y: m.vstack([x, y]),
    "block": lambda m, x, y: m.block([[x, y], [y, x]]),
    "take": lambda _, x, __: x.take([3, -1, 3], axis=0),
    "repeat": lambda _, x, __: x.repeat(2, axis=-1),
    "tile": lambda m, x, _: m.tile(x, (2, 1)),
    "broadcast_to": lambda m, x, _: m.broadcast_to(x, (2, *x.shape)),
    "pad": lambda m, x, _: m.pad(x, (1, 2)),
    "split": lambda m, x, _: m.split(x, 4)[2],
}
"""By NumPy's module and two arrays of it, or by this package and two arrays of numbers."""


@law
def shapes_commute_with_operations(case: Case) -> None:
    x, y, a, b = case.draw(2)
    total, exact = wrapping(rd.add, x, y), case.limits.wrapped(a + b)
    for name in case.random.sample(sorted(SHAPES), 8):
        function = SHAPES[name]
        expected = function(np, exact, a)
        case.claim_array(function(rd, total, x), expected, f"{name} of a sum")
        sides = function(rd, x, x[:]), function(rd, y, case.array(a * 0))
        case.claim_array(wrapping(rd.add, *sides), expected, f"sum of {name}")


@law
def shapes_broadcast_as_numpys(case: Case) -> None:
    x, a = case.draw()
    for shape in ((1,), a.shape[-1:], (3, *(1,) * a.ndim), (*a.shape[:-1], 1)):
        b = case.numbers(shape)
        y = case.array(b)
        case.claim_array(wrapping(rd.subtract, x, y), case.limits.wrapped(a - b), f"minus {shape}")
        case.claim(y == x, (b == a).astype(bool), f"{shape} is equal")
        if case.system.is_ordered:
            case.claim_array(rd.maximum(y, x), np.maximum(b, a), f"maximum of {shape}")
            case.claim(y >= x, (b >= a).astype(bool), f"{shape} is at least")


# ---- collections -------------------------------------------------------------------------------------------


@law
def numbers_never_change(case: Case) -> None:
    x, a = case.draw()
    given = a.copy()
    made = case.system.from_ints(given)
    given[...] = 0
    case.claim_array(made, a, "an array after a write to what it was made of")
    y = x
    y -= x
    case.claim_array(y, a * 0)
    with pytest.raises(TypeError):
        x[0] = 0
    with pytest.raises(AttributeError):
        x.system = x.system
    words = x.words
    if isinstance(words, np.ndarray):
        with pytest.raises(ValueError, match="read-only"):
            words[0] = 1
    elif isinstance(words, da.Array) and hasattr(words, "__setitem__"):
        words[0] = 1  # to a copy
    case.claim_array(x, a, "an array after all")


@law
def nothing_is_computed_before_it_is_asked_for(case: Case) -> None:
    x, a = case.draw()
    with dask.config.set(scheduler=lambda *_, **__: pytest.fail("something was computed")):
        text = repr(x)
        assert not hasattr(x, "_repr_html_") or type(x).__name__ in x._repr_html_()
        assert (x.shape, x.ndim, len(x), x.size) == (a.shape, a.ndim, len(a), a.size)
        lazy = [x - x, x * 0 + x, x[::-1], x == 0, x.sum()]
        if case.system.is_ordered:
            lazy += [x // 1, x < 0, rd.maximum(x, 0), rd.sign(x), x.max(), x.argmin()]
    assert type(x).__name__ in text
    assert str(x.shape) in text
    assert len(text) < 2000
    case.claim_array(lazy[0], a * 0)


@law
def tokens_tell_numbers_apart(case: Case) -> None:
    a = case.numbers()
    x, again, changed = case.array(a), case.array(a.copy()), a.copy()
    changed.flat[-1] = next(v for v in case.system.edges() if v != a.flat[-1])
    assert tokenize(x) == tokenize(again) != tokenize(case.array(changed))
    with rd.errstate(overflow="wrap"):
        results = [[y + y, y * y, y[::-1], y[1:]] for y in (x, again)]
    tokens, repeated = ([tokenize(y) for y in row] for row in results)
    assert tokens == repeated
    assert len({*tokens, tokenize(x)}) == 5
