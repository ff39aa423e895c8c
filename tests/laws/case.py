"""Cases of laws: a number system on a processor, numbers with the awkward ones first, and arrays of them."""

import itertools
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import dask
import dask.array as da
import numpy as np
import pytest
from conftest import Processor
from oracles.integers import Range, objects
from sample_arrays import host

import rnsdask as rd
from laws import inputs
from rnsdask.arrays.number_array import NumberArray

Numbers = np.ndarray  # of dtype object: Python ints

LAYOUTS: dict[str, dict[tuple[int, ...], tuple[Any, ...]]] = {
    "eager": {(96,): (None,), (8, 12): (None,)},
    "chunks": {(96,): ((96,), (32,), ((1, 60, 35),)), (8, 12): (((5, 3), (1, 11)),)},
}
"""Shapes by name, and Dask chunks, of which a case takes one each; None for NumPy and CuPy arrays."""

GREAT_SHAPES = ((96,), (8, 12), (1152,), (48, 24))
"""Shapes of great cases: they can be reshaped as those of `LAYOUTS`."""

OPERANDS = 4
"""Arrays that the laws of a case share."""

MODES = ("raise", "raise", "wrap", "flag")


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
    kind
        What laws of some systems alone ask for: "rns", "interval", "field", "long-field", "fermat" or
        "positional".
    value
        The number system, for laws that ask it or the package for more arrays.
    factors
        Integers of which the product is the range's size: numbers near their products are awkward.
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
    kind: str = "other"
    value: Any = None
    factors: tuple[int, ...] = ()
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

    @property
    def signed(self) -> bool:
        return self.limits.system != "unsigned"

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


class Chosen(NamedTuple):
    """An operand: exact numbers for the oracle, and an array or an integer for the package."""

    values: Any
    array: Any

    @property
    def is_array(self) -> bool:
        return isinstance(self.values, np.ndarray)


class Case:
    """A system on a processor in a layout, a source of random numbers, one of folders, and a law's claims.

    In the layout "drawn", shapes, chunks and strides are drawn for each array, and numbers in many styles;
    `pool` are the numbers of arrays that several laws share. Where it `is_great`, so are its arrays.
    """

    def __init__(
        self,
        system: System,
        layout: str,
        processor: Processor,
        random: Random,
        folder: Callable[[], Path],
        pool: list[Numbers] | None = None,
        is_lazy: bool = False,
        is_great: bool = False,
    ) -> None:
        system = replace(system, bound=random.choice(system.bounds)) if system.bounds else system
        self.system, self.limits, self.layout, self.processor = system, system.limits, layout, processor
        self.random, self.folder = random, folder
        self.is_drawn = layout == "drawn"
        self.is_lazy, self.is_great = is_lazy or layout == "chunks", is_great
        self.shape = random.choice(GREAT_SHAPES if is_great else list(LAYOUTS["eager"]))
        self.chunks = None if self.is_drawn else random.choice(LAYOUTS[layout][self.shape])
        self.claims: list[Claim] = []
        self.used: dict[str, Any] = {}
        self.compared = 0
        if pool is not None:
            self.pool = pool

    # ---- numbers

    def numbers(self, shape: tuple[int, ...] | None = None) -> Numbers:
        """Edges, then numbers near some of them, then any, in random order; or of a style that is drawn."""
        shape = self.shape if shape is None else shape
        count = math.prod(shape)
        if self.is_drawn:
            factors, ends = self.system.factors, self.system.ends
            return objects(inputs.numbers(self.random, factors, self.limits.product, ends, count), shape)
        lowest, highest = self.system.ends
        edges = self.system.edges()
        values = self.random.sample(edges, min(len(edges), -(-count // 2)))
        near = [v + self.random.randint(-2, 2) for v in values[: count // 6]]
        values += [min(max(v, lowest), highest) for v in near]
        values += [self.random.randint(lowest, highest) for _ in range(count - len(values))]
        return objects(self.random.sample(values, count), shape)

    def number(self) -> int:
        """One number of the range, at an edge more often than not."""
        return inputs.number(self.random, self.system.factors, self.limits.product, self.system.ends)

    def clipped(self, value: int) -> int:
        """The number of the range that is next to an integer."""
        return min(max(value, self.system.ends[0]), self.system.ends[1])

    @property
    def most_numbers(self) -> int:
        """Numbers of one array at most."""
        words = max(1, self.limits.product.bit_length() // 32)
        return max(6, min(4200 if self.is_great else 300, 60_000 // words))

    def note(self, name: str, value: Any) -> None:
        """Keep what a report of a mismatch shall show."""
        self.used[name] = value

    # ---- arrays of them

    def place(self, words: np.ndarray, whole_axes: int = 0) -> Any:
        """Bring words (rows, *shape) to the processor and into chunks, the last axes in one piece."""
        if self.is_drawn:
            return self._place_drawn(words, whole_axes)
        words = self.processor.xp.asarray(words)
        if self.chunks is None:
            return words
        halves = tuple(-(-length // 2) or 1 for length in words.shape[1:])
        chunks = self.chunks if words.shape[1:] == self.shape else halves
        chunks = (*chunks[: len(chunks) - whole_axes], *(-1,) * whole_axes)
        return da.from_array(words, chunks=(len(words), *chunks), asarray=False)

    def _place_drawn(self, words: np.ndarray, whole_axes: int) -> Any:
        random = Random(self.random.getrandbits(64))  # a smaller case goes on with the same numbers
        words = inputs.laid_out(words, random.choice(inputs.LAYOUTS), self.processor.xp)
        if not self.is_lazy or random.random() < 0.15:
            return words
        lengths = words.shape[1:]
        chunks = inputs.chunks(random, lengths)
        cut = len(lengths) - whole_axes
        chunks = (*chunks[:cut], *((n,) for n in lengths[cut:]))
        return da.from_array(words, chunks=((len(words),), *chunks), asarray=False)

    def array(self, numbers: Numbers, whole_axes: int = 0) -> Any:
        return self.system.array(numbers, lambda words: self.place(words, whole_axes))

    def draw(self, count: int = 1) -> tuple[Any, ...]:
        """Arrays of one shape, then their numbers."""
        numbers = [self.numbers() for _ in range(count)]
        return *map(self.array, numbers), *numbers

    def fresh(self, shape: tuple[int, ...], name: str = "array", whole_axes: int = 0) -> Chosen:
        """An array of a shape."""
        values = self.numbers(shape)
        return self.chosen(values, name, whole_axes)

    def chosen(self, values: Numbers, name: str = "array", whole_axes: int = 0) -> Chosen:
        """An array of numbers that a law has made."""
        self.note(name, values)
        return Chosen(values, self.array(values, whole_axes))

    @cached_property
    def pool(self) -> list[Numbers]:
        """Numbers of shapes that broadcast; the first have the shape of all."""
        whole = inputs.shape(self.random, self.most_numbers) if self.is_drawn else self.shape
        shapes = [whole] + [
            inputs.broadcastable(self.random, whole) if self.random.random() < 0.2 else whole
            for _ in range(OPERANDS - 1)
        ]
        pool = [self.numbers(shape) for shape in shapes]
        if shapes[1] == whole and self.random.random() < 0.5:
            pool[1] = inputs.partner(self.random, pool[0], self.system.ends)
        return pool

    @cached_property
    def arrays(self) -> list[Any]:
        return [self.array(numbers) for numbers in self.pool]

    def take(self, count: int = 1, integers: bool = True) -> list[Chosen]:
        """Operands for an operation, at least one of them an array, some of the others integers."""
        random = self.random
        positions = [random.randrange(OPERANDS) for _ in range(count)]
        if random.random() < 0.6:
            positions[0] = 0
        chosen = [Chosen(self.pool[i], self.arrays[i]) for i in positions]
        for i in range(count):
            value = self.number()
            # Each draws as much whatever comes of it, so that a smaller case chooses the same.
            if random.random() < 0.25 and integers and any(c.is_array for c in chosen[:i] + chosen[i + 1 :]):
                chosen[i] = Chosen(value, value)
        for i, one in enumerate(chosen):
            self.note(f"operand {i}", one.values)
        return chosen

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
        """That a result is an array of the system, of the numbers expected."""
        value = self.system.value
        assert value is None or result.system.same_numbers(value), f"{what}: {result.system!r}"
        self.claim(result, expected, what, defined=True)

    def claim_overflowing(
        self, function: Callable[..., Any], exact: np.ndarray, options: bool = True, what: str = ""
    ) -> None:
        """That a function does what one of the overflow modes says, given by argument or around the call."""
        mode, by_argument = self.random.choice(MODES), self.random.random() < 0.5
        self.note("overflow", mode)

        def call() -> Any:
            if options and by_argument:
                return function(overflow=mode)
            with rd.errstate(overflow=mode):
                return function()

        outside = self.limits.outside(exact)
        if mode == "raise" and outside.any():
            self._check_raised(call, exact, outside)
        elif mode == "flag":
            result, mask = call()
            self.claim_array(result, self.limits.wrapped(exact), what)
            self.claim(mask, outside, f"overflow of {what}")
        else:
            self.claim_array(call(), self.limits.wrapped(exact) if mode == "wrap" else exact, what)

    def _check_raised(self, call: Callable[[], Any], exact: np.ndarray, outside: np.ndarray) -> None:
        try:
            result = call()
        except rd.RNSOverflowError as error:
            self.check_overflow(error, exact, firsts(outside, None))
            return
        assert dask.is_dask_collection(result), f"no error for {shown(exact[outside][0])}"
        error = must_fail(lambda: result, rd.RNSOverflowError, "overflow")
        self.check_overflow(error, exact, firsts(outside, getattr(result, "chunks", None)))

    def check_overflow(self, error: Any, exact: np.ndarray, places: Iterable[int]) -> None:
        """Check the index and the bits that an overflow names."""
        index, places = error.index, set(places)
        assert index in places, f"the error names flat index {index}, not one of {sorted(places)[:10]}"
        needed = self.limits.bits_needed(int(exact.reshape(-1)[index]))
        right = error.bits_needed <= needed if error.at_least else error.bits_needed == needed
        assert right, f"the error says {error.bits_needed} bits, the exact result at {index} has {needed}"

    def settle(self) -> None:
        """Compute all that was claimed something of, at once, and compare."""
        results = dask.compute(*(claim.result for claim in self.claims), traverse=False)
        for result, (lazy, expected, what, defined) in zip(results, self.claims, strict=True):
            lengths = zip(getattr(lazy, "shape", expected.shape), expected.shape, strict=True)
            assert all(known == length or math.isnan(known) for known, length in lengths), what
            found = on_host(result)
            assert found.shape == expected.shape, f"{what}: shape {found.shape} instead of {expected.shape}"
            wrong = np.argwhere(np.asarray(found != expected))
            if len(wrong):
                place = tuple(wrong[0].tolist())
                message = f"{what or 'a result'} at {place} is {found[place]} instead of {expected[place]}"
                pytest.fail(f"{self.system.name}: {message} ({len(wrong)} of {found.size} differ)")
            assert not defined or self.system.is_defined(result, expected), f"words of {what}"
            bound = getattr(result, "bound", None)
            assert bound is None or abs(expected).max(initial=0) <= bound, f"bound of {what}"
            self.compared += max(1, expected.size)
        self.claims.clear()

    # ---- smaller ones

    def smaller(self) -> Iterator[tuple[list[Numbers], bool]]:
        """Smaller pools, and whether each is lazy: half of the numbers along an axis, and eager arrays."""
        whole = self.pool[0].shape
        for axis, length in enumerate(whole):
            if length > 1:
                for half in (slice(length // 2), slice(length // 2, length)):
                    yield [_part(one, axis - len(whole), length, half) for one in self.pool], self.is_lazy
        if self.is_lazy:
            yield self.pool, False


def _part(values: Numbers, axis: int, length: int, half: slice) -> Numbers:
    """The part along an axis counted from the last, or all of what is broadcast there."""
    if values.ndim < -axis or values.shape[axis] != length:
        return values
    return values[(..., half, *(slice(None),) * (-axis - 1))]


def whole(chosen: Iterable[Chosen]) -> list[Numbers]:
    """Exact operands, all of the shape of the result."""
    # A Python int of any size is no NumPy scalar.
    arrays = [one.values if one.is_array else objects([one.values], ()) for one in chosen]
    shape = np.broadcast_shapes(*(values.shape for values in arrays))
    return [np.broadcast_to(values, shape) for values in arrays]


def wrapping(function: Callable[..., Any], *operands: Any) -> Any:
    """The result of a function where results out of range wrap, as in fields they do in any case."""
    with rd.errstate(overflow="wrap"):
        return function(*operands)


def on_host(result: Any) -> np.ndarray:
    return result.to_ints() if isinstance(result, NumberArray) else host(result)


def computed(value: Any) -> Any:
    """A result of any kind on the host: lazy ones are computed, CuPy's arrays copied."""
    if dask.is_dask_collection(value):
        value = value.compute()
    return value.get() if hasattr(value, "get") else value


def shown(value: Any, most: int = 20) -> str:
    """A value for a report, long arrays cut; hexadecimal, for Python refuses long decimals."""
    if isinstance(value, np.ndarray):
        flat = value.reshape(-1).tolist()
        cut = ", ..." if len(flat) > most else ""
        return f"{value.dtype} of shape {value.shape}: [{', '.join(shown(v) for v in flat[:most])}{cut}]"
    if type(value) is int and abs(value) >= 2**64:
        return hex(value)
    return repr(value)


# ---- errors ------------------------------------------------------------------------------------------------


def must_fail(
    call: Callable[[], Any], types: type[Exception] | tuple[type[Exception], ...], what: str
) -> Any:
    """Check that a call, its result computed, raises one of some errors, and return it."""
    try:
        result = call()
        for part in result if isinstance(result, tuple) else (result,):
            computed(part)
    except types as error:
        return error
    pytest.fail(f"{what}: no error, {shown(computed(result))[:500]} instead")


def firsts(mask: np.ndarray, chunks: Any) -> set[int]:
    """Flat indices that an error may name: the first one marked, of a lazy array that of each chunk."""
    places = np.arange(mask.size).reshape(mask.shape)
    if chunks is None:
        return {int(mask.reshape(-1).argmax())}
    ends = [np.cumsum((0, *axis)).tolist() for axis in chunks]
    blocks = itertools.product(*(map(slice, axis[:-1], axis[1:]) for axis in ends))
    return {int(places[b][mask[b]][0]) for b in blocks if mask[b].any()}


def named_index(error: Exception) -> int:
    """The flat index that an error names."""
    found = re.search(r"flat index (\d+)", str(error))
    assert found, f"the error names no flat index: {error}"
    return int(found.group(1))


def check_index(error: Exception, mask: np.ndarray, array: Any) -> None:
    """Check that an error names the first number marked, of a lazy array that of a chunk."""
    assert named_index(error) in firsts(mask, getattr(array, "chunks", None)), f"another number: {error}"


# ---- laws --------------------------------------------------------------------------------------------------

Law = Callable[[Case], None]

RNS, INTERVALS, LIMBS, PRIME_FIELDS = ("rns",), ("interval",), ("positional",), ("field",)
RESIDUES = RNS + INTERVALS
INTEGERS = RESIDUES + LIMBS
ANY_PRIME_FIELDS = (*PRIME_FIELDS, "long-field")  # of primes beyond 2**32 too
FIELDS = (*ANY_PRIME_FIELDS, "fermat")
KINDS = INTEGERS + FIELDS

LAWS: dict[str, Law] = {}
"""Laws of every number system by name. A law makes claims, and may assert what it has computed itself."""

SUBJECTS: dict[str, tuple[tuple[str, ...], Law]] = {}
"""Laws of some kinds of systems by name, which need not be tested of each system: with those kinds."""


def law(function: Law) -> Law:
    LAWS[function.__name__] = function
    return function


def law_of(*kinds: str) -> Callable[[Law], Law]:
    def register(function: Law) -> Law:
        assert function.__name__ not in SUBJECTS | LAWS, function.__name__
        SUBJECTS[function.__name__] = kinds, function
        return function

    return register


def check(name: str, case: Case) -> int:
    """Check a law in a case; how many numbers were compared."""
    function = LAWS[name] if name in LAWS else SUBJECTS[name][1]
    function(case)
    case.settle()
    return case.compared
