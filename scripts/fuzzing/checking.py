"""How results are compared with what is right: numbers, masks, errors, and the registry of operations."""

import itertools
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from random import Random
from typing import Any

import dask
import numpy as np
from oracles.integers import SYSTEMS

import rnsdask as rd
from fuzzing.case import Case

Check = Callable[[Case, Random], int]

MODES = ("raise", "raise", "wrap", "flag")


@dataclass(frozen=True)
class Operation:
    """Something that is checked: a function of a case that returns how many results it has checked."""

    name: str
    check: Check
    systems: tuple[str, ...]


OPERATIONS: dict[str, Operation] = {}


def operation(name: str, systems: tuple[str, ...] = SYSTEMS) -> Callable[[Check], Check]:
    """Register a function under a name, for cases of some systems."""

    def register(check: Check) -> Check:
        assert name not in OPERATIONS, f"two operations are named {name}"
        OPERATIONS[name] = Operation(name, check, systems)
        return check

    return register


class MismatchError(AssertionError):
    """A result that is not what it must be."""


def require(condition: Any, message: str) -> None:
    if not condition:
        raise MismatchError(message)


def shown(value: Any, most: int = 20) -> str:
    """A value for a report, long arrays cut; hexadecimal, for Python refuses long decimals."""
    if isinstance(value, np.ndarray):
        flat = value.reshape(-1).tolist()
        cut = ", ..." if len(flat) > most else ""
        return f"{value.dtype} of shape {value.shape}: [{', '.join(shown(v) for v in flat[:most])}{cut}]"
    if type(value) is int and abs(value) >= 2**64:
        return hex(value)
    return repr(value)


# ---- results -----------------------------------------------------------------------------------------------


def computed(value: Any) -> Any:
    """A result of any kind on the host: lazy ones are computed, CuPy's arrays copied."""
    if dask.is_dask_collection(value):
        value = value.compute()
    return value.get() if hasattr(value, "get") else value


def same_array(got: Any, expected: np.ndarray, what: str) -> int:
    """Check an array of machine numbers or ints, and its shape."""
    got = np.asarray(computed(got))
    require(got.shape == expected.shape, f"{what}: shape {got.shape} instead of {expected.shape}")
    different = np.asarray(got != expected).reshape(-1)
    if different.any():
        i = int(different.argmax())
        raise MismatchError(
            f"{what}: {shown(got.reshape(-1)[i])} at flat index {i} instead of "
            f"{shown(expected.reshape(-1)[i])} ({int(different.sum())} of {different.size} are wrong)"
        )
    return max(expected.size, 1)


def same_numbers(case: Case, got: Any, expected: np.ndarray, what: str = "result") -> int:
    """Check an array of numbers: type, range, residues, bound, and every number."""
    kind = rd.IntervalRNSArray if case.system == "interval" else rd.RNSArray
    require(type(got) is kind, f"{what}: {type(got).__name__} instead of {kind.__name__}")
    require(got.moduli == case.moduli, f"{what}: other moduli")
    require(got.shape == expected.shape, f"{what}: shape {got.shape} instead of {expected.shape}")
    got = got.compute() if dask.is_dask_collection(got) else got
    ints = got.to_ints()
    count = same_array(ints, expected, what)
    require(
        all(type(v) is int for v in ints.reshape(-1).tolist()), f"{what}: numbers that are no Python ints"
    )
    check_words(case, got, expected, what)
    return count


def check_words(case: Case, got: Any, expected: np.ndarray, what: str) -> None:
    """Check what the numbers are held by: residues below their moduli, a bound or intervals that hold."""
    residues = computed(got.residues)
    sizes = np.array(case.moduli.moduli, dtype=np.uint64).reshape(-1, *(1,) * (residues.ndim - 1))
    require((residues.astype(np.uint64) < sizes).all(), f"{what}: a residue is not below its modulus")
    flat = expected.reshape(-1).tolist()
    if case.system != "interval":
        require(got.signed == case.signed, f"{what}: another range")
        greatest = max(map(abs, flat), default=0)
        bound = got.bound
        require(
            bound is None or bound >= greatest, f"{what}: the bound {shown(bound)} is below {shown(greatest)}"
        )
        return
    require((computed(got.sign) == (expected < 0)).all(), f"{what}: a sign is wrong")
    low, upp, exponent = (computed(field).reshape(-1).tolist() for field in (got.low, got.upp, got.exponent))
    for value, *interval in itertools.islice(zip(flat, low, upp, exponent, strict=True), 300):
        check_interval(abs(value), case.moduli.product, *interval, 2.0**-20, what)


def check_interval(
    value: int, product: int, low: float, upp: float, exponent: int, accuracy: float, what: str
) -> None:
    """Check that low 2**exponent <= value / product <= upp 2**exponent, and how far apart the ends are."""
    for end, is_low in ((low, True), (upp, False)):
        top, bottom = end.as_integer_ratio()
        left, right = top * product, value * bottom
        left, right = (left << exponent, right) if exponent >= 0 else (left, right << -exponent)
        require(
            left <= right if is_low else left >= right,
            f"{what}: {shown(value)} is not in the interval [{low!r}, {upp!r}] * 2**{exponent} * M",
        )
    require(
        (value == 0) == (low == 0 == upp), f"{what}: the interval of {shown(value)} is [{low!r}, {upp!r}]"
    )
    narrow = upp - low <= accuracy * min(abs(low), abs(upp)) * (1 + 1e-9)
    require(narrow, f"{what}: the interval [{low!r}, {upp!r}] is wider than {accuracy}")


def same_int(got: Any, expected: int, what: str = "result") -> int:
    """Check one number: of an eager array a Python int, of a lazy one what computes to it."""
    value = computed(got)
    value = value.item() if isinstance(value, np.ndarray) else value
    require(int(value) == expected, f"{what}: {shown(int(value))} instead of {shown(expected)}")
    return 1


# ---- errors ------------------------------------------------------------------------------------------------


def must_fail(
    call: Callable[[], Any], types: type[Exception] | tuple[type[Exception], ...], what: str
) -> Exception:
    """Check that a call, its result computed, raises one of some errors, and return it."""
    try:
        result = call()
        for part in result if isinstance(result, tuple) else (result,):
            computed(part)
    except types as error:
        return error
    raise MismatchError(f"{what}: no error, {shown(computed(result))[:500]} instead")


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
    require(found, f"the error names no flat index: {error}")
    return int(found.group(1))


def check_overflow(case: Case, error: Exception, exact: np.ndarray, places: Iterable[int]) -> None:
    """Check the index and the bits that an overflow names."""
    index, places = error.index, set(places)
    require(index in places, f"the error names flat index {index}, not one of {sorted(places)[:10]}")
    needed = case.limits.bits_needed(exact.reshape(-1)[index])
    stated = error.bits_needed
    right = stated <= needed if error.at_least else stated == needed
    require(right, f"the error says {stated} bits, the exact result at {index} has {needed}")


# ---- results that may overflow -----------------------------------------------------------------------------


def check_overflowing(
    case: Case, rng: Random, function: Callable[..., Any], exact: np.ndarray, options: bool = True
) -> int:
    """Check a function of one of the overflow modes, given by argument or around the call."""
    mode, by_argument = rng.choice(MODES), rng.random() < 0.5
    case.note("overflow", mode)

    def call() -> Any:
        if options and by_argument:
            return function(overflow=mode)
        with rd.errstate(overflow=mode):
            return function()

    outside = case.limits.outside(exact)
    if mode == "raise" and outside.any():
        return _check_raised(case, call, exact, outside)
    result = call()
    if mode != "flag":
        return same_numbers(case, result, case.limits.wrapped(exact) if mode == "wrap" else exact)
    values, mask = result
    return same_numbers(case, values, case.limits.wrapped(exact)) + same_array(mask, outside, "mask")


def _check_raised(case: Case, call: Callable[[], Any], exact: np.ndarray, outside: np.ndarray) -> int:
    try:
        result = call()
    except rd.RNSOverflowError as error:
        check_overflow(case, error, exact, firsts(outside, None))
        return outside.size
    require(dask.is_dask_collection(result), f"no error for {shown(exact[outside][0])}")
    error = must_fail(lambda: result, rd.RNSOverflowError, "overflow")
    check_overflow(case, error, exact, firsts(outside, getattr(result, "chunks", None)))
    return outside.size
