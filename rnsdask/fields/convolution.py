"""Convolutions modulo each m of chunks of residues, along their last axis. No Dask in here.

Modulo a prime that has transforms of the length, they are products of transforms. Modulo any other m, the
sums are computed modulo three primes whose product is greater than any sum, and reduced modulo m. With a
short operand they are sums of products. An operand much longer than the other is cut into blocks
("overlap-save").
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby

import numpy as np

from rnsdask.backend import Array, kernels_of
from rnsdask.constants import THREE_PRIMES, sufficient_prefix, three_prime_constants, transform_constants
from rnsdask.constants.factors import CACHED_SETS
from rnsdask.core.moduli import ModuliSet
from rnsdask.core.primes import is_prime
from rnsdask.fields.ntt import twisted
from rnsdask.rns.arithmetic import apply
from rnsdask.rns.system import RNS

# Convolutions by cyclic ones: of numbers padded with zeros, or of blocks ("overlap-save").
#
# Arrays are of residues or digits, (n, *shape), on NumPy or CuPy.

# Cost of a transform besides its butterflies, in levels of butterflies: copies and the product.
_LEVELS_BESIDE = 4


@dataclass(frozen=True)
class Plan:
    """Way to compute the numbers `first` to `stop` of convolutions.

    `short` is the length of the shorter operand, `length` that of the transforms; `blocks` of the longer
    operand are transformed, and each gives `step` numbers.
    """

    short: int
    length: int
    blocks: int
    first: int
    stop: int
    step: int


@lru_cache(CACHED_SETS)
def plan_for(longer: int, short: int, first: int, stop: int, longest: int) -> Plan | None:
    """Plan with the fewest butterflies by transforms up to a longest length; None if that is too short."""
    # A single cyclic convolution must fold no number onto one that is wanted.
    whole = 1 << (max(stop, longer + short - 1 - first) - 1).bit_length()
    plans = [Plan(short, whole, 1, first, stop, stop - first)] if whole <= longest else []
    length = max(4, 1 << (2 * short - 3).bit_length())
    while length < whole and length <= longest:
        step = length - short + 1
        count = -(-(stop - first) // step)
        if count > 1:
            plans.append(Plan(short, length, count, first, stop, step))
        length *= 2
    return min(plans, key=_cost, default=None)


def _cost(plan: Plan) -> int:
    return (2 * plan.blocks + 1) * plan.length * (plan.length.bit_length() + _LEVELS_BESIDE)


def as_runs(x: Array, batch: tuple[int, ...]) -> Array:
    """Reshape (n, *batch, length) to contiguous runs; to a single run if broadcasting makes all the same."""
    if math.prod(x.shape[1:-1]) != 1:
        x = x[(slice(None), *(None,) * (len(batch) - x.ndim + 2))]
        x = np.broadcast_to(x, (len(x), *batch, x.shape[-1]))
    x = x.reshape(len(x), -1, x.shape[-1])
    return x if x.shape[-1] == 1 or x.strides[-1] == x.itemsize else x.copy()


def padded(x: Array, length: int) -> Array:
    """Pad the last axis with zeros to a length."""
    out = np.empty_like(x, shape=(*x.shape[:-1], length), order="C")
    out[..., : x.shape[-1]] = x
    out[..., x.shape[-1] :] = 0
    return out


def blocks(x: Array, plan: Plan) -> Array:
    """Cut the longer operand into blocks, (n, runs, blocks, length), each overlapping the next."""
    if plan.blocks == 1:
        return padded(x, plan.length)[:, :, None]
    overlap, count = plan.short - 1, plan.blocks * plan.step
    # The operand from number first - overlap on, with zeros before and after it.
    line = np.zeros_like(x, shape=(*x.shape[:-1], count + plan.step), order="C")
    start = plan.first - overlap
    part = x[..., max(start, 0) : start + count + overlap]
    line[..., max(-start, 0) : max(-start, 0) + part.shape[-1]] = part
    out = np.empty_like(x, shape=(*x.shape[:-1], plan.blocks, plan.length), order="C")
    shape = (*x.shape[:-1], plan.blocks, plan.step)
    out[..., : plan.step] = line[..., :count].reshape(shape)
    out[..., plan.step :] = line[..., plan.step :].reshape(shape)[..., :overlap]
    return out


def expanded(x: Array, y: Array) -> tuple[Array, Array]:
    """Flatten (n, runs, blocks, length) to runs that pair up one by one, or one run that serves for all."""
    shape = np.broadcast_shapes(x.shape[1:3], y.shape[1:3])
    parts = (
        v if math.prod(v.shape[1:3]) == 1 else np.broadcast_to(v, (len(v), *shape, v.shape[-1]))
        for v in (x, y)
    )
    a, b = (v.reshape(len(v), -1, v.shape[-1]) for v in parts)
    return a, b


def wanted(products: Array, plan: Plan) -> Array:
    """Take the numbers that a plan wants from cyclic products (n, runs * blocks, length)."""
    if plan.blocks == 1:
        return products[..., plan.first : plan.stop]
    numbers = products[..., plan.short - 1 :].reshape(len(products), -1, plan.blocks * plan.step)
    return numbers[..., : plan.stop - plan.first]


LONGEST = 2**26
"""The greatest length of a transform modulo the three primes."""

# Longest short operands: modulo primes with transforms of the length, and modulo other integers.
SHORT_OWN = 8
SHORT_OTHER = 96

# Fewest consecutive rows with transforms of the length that are transformed apart from rows without.
_FEW_ROWS = 3

# Words of an operand that are transformed at a time: on a CPU they stay in its cache, and the memory beside a
# chunk is bounded.
_CPU_WORDS = 2**17
_GPU_WORDS = 2**24

# Cost of a residue, in transforms modulo a prime that has them: a multiply-add of base extension; a result of
# sums of products, and the share of each term.
_EXTENSION_TERM = 1 / 200
_SUM, _SUM_TERM = 1.3, 1 / 60


def convolve(x: Array, y: Array, moduli: ModuliSet, first: int = 0, stop: int | None = None) -> Array:
    """Convolutions modulo M, (n, *batch, count): number k is the sum of all ``x_i y_j`` with i + j = k.

    Operands (n, *batch, A) and (n, *batch, B), both NumPy's or CuPy's, are in any layout, and not empty along
    the last axis; the axes of the batch broadcast. Without `first` and `stop` all A + B - 1 numbers are
    wanted. ValueError if no transform is long enough.
    """
    if x.shape[-1] < y.shape[-1]:
        x, y = y, x
    short, stop = y.shape[-1], x.shape[-1] + y.shape[-1] - 1 if stop is None else stop
    start = max(0, first - short + 1)  # of the numbers that the wanted results depend on
    x = x[..., start:stop]
    return _convolve_runs(x, y, moduli, plan_blocks(x.shape[-1], short, first - start, stop - start))


def convolve_cyclic(x: Array, y: Array, moduli: ModuliSet, negacyclic: bool = False) -> Array:
    """Cyclic convolutions: the numbers of :func:`convolve` from N on are added to the first, or subtracted.

    Both operands have shape (n, *batch, N), and so has the result.
    """
    length = x.shape[-1]
    order = length * (1 + negacyclic)  # of the roots of unity
    is_whole = length.bit_count() == 1 and length > SHORT_OWN and order <= LONGEST
    # Differences modulo the three primes would not be remainders.
    if is_whole and (not negacyclic or all(own for *_, own in _stretches(moduli, order))):
        plan = Plan(length, length, 1, 0, length, length)
        return _convolve_runs(x, y, moduli, plan, _negacyclic_products if negacyclic else cyclic_products)
    result = convolve(x, y, moduli)
    if length == 1:
        return result
    parts = result[..., : length - 1], result[..., length:]
    system = RNS(moduli)
    folded = apply("subtract" if negacyclic else "add", parts, system, "wrap")
    return np.concatenate([folded, result[..., length - 1 : length]], axis=-1)


def cyclic_products(x: Array, y: Array, moduli: ModuliSet) -> Array:
    """Cyclic convolutions of contiguous x and y (n, runs, N) modulo primes, by products of transforms.

    N is a power of two that divides each p - 1. An operand may have a single run, which serves for all.
    """
    n, length = len(moduli), x.shape[-1]
    forward, inverse = (transform_constants(moduli, length, is_inverse) for is_inverse in (False, True))
    out = np.empty_like(x, shape=(n, max(x.shape[1], y.shape[1]), length), order="C")
    operands = x.reshape(n, -1), y.reshape(n, -1)
    kernels_of(x).cyclic_products(*operands, forward, inverse, out.reshape(n, -1))
    return out


def _negacyclic_products(x: Array, y: Array, moduli: ModuliSet) -> Array:
    """Negacyclic convolutions, where 2N divides each p - 1: cyclic ones of ``x_i psi**i``."""
    products = cyclic_products(twisted(x, moduli, False), twisted(y, moduli, False), moduli)
    return twisted(products, moduli, True)


# ---- through integers -------------------------------------------------------------------------------------


def through_primes(
    lengths: tuple[int, int],
    window: tuple[int, int] | None,
    systems: tuple[RNS, RNS],
    targets: ModuliSet,
    reach: int,
    negacyclic: bool = False,
) -> ModuliSet | None:
    """Primes modulo which convolving integers is quicker than modulo the targets, or None.

    The results of operands with bounds are integers within `reach`, which primes with a product of two or
    three words hold as well as any moduli. So operands and results are extended to other moduli, and each
    residue takes one transform instead of three. `lengths` are the operands' lengths; `window` is the range
    of numbers that are wanted, None for a cyclic convolution.
    """
    longer, short = max(lengths), min(lengths)
    plan = plan_blocks(longer, short, *(window or (0, longer + short - 1)))
    if short <= SHORT_OWN:
        return None
    is_whole = window is None and longer.bit_count() == 1
    length = longer * (1 + negacyclic) if is_whole else plan.length
    return _through_primes(length, short, systems, targets, reach)


@lru_cache(CACHED_SETS)
def _through_primes(
    length: int, short: int, systems: tuple[RNS, RNS], targets: ModuliSet, reach: int
) -> ModuliSet | None:
    other = 3 if short > SHORT_OTHER else _SUM + short * _SUM_TERM
    direct = sum((1 if own else other) * (stop - start) for start, stop, own in _stretches(targets, length))
    try:
        primes = ModuliSet.ntt_primes(reach.bit_length() + 2, length)
    except ValueError:  # too few primes
        return None
    sources = sum(len(sufficient_prefix(s.moduli, s.signed, s.bound)) for s in systems) / 2
    cost = len(primes) * (1 + (sources + len(targets)) * _EXTENSION_TERM)
    return primes if cost < direct else None


def plan_blocks(longer: int, short: int, first: int, stop: int) -> Plan:
    """Plan the coefficients `first` to `stop` of a product by blocks; ValueError if too long."""
    plan = plan_for(longer, short, first, stop, LONGEST)
    if plan is None:
        raise ValueError(
            f"operands of a convolution have at most {LONGEST // 2} numbers where both are so long, got "
            f"{longer} and {short}"
        )
    return plan


# ---- rows of moduli ---------------------------------------------------------------------------------------


@lru_cache(CACHED_SETS)
def _stretches(moduli: ModuliSet, length: int) -> tuple[tuple[int, int, bool], ...]:
    """Stretches of moduli with or without transforms of a length: first row, end, whether they have them."""
    owned = [(m - 1) % length == 0 and is_prime(m) for m in moduli]
    # A few rows join their neighbours: each stretch takes launches of its own.
    runs = [(own, len(list(rows))) for own, rows in groupby(owned)]
    kept = [own and (count >= _FEW_ROWS or len(runs) == 1) for own, count in runs for _ in range(count)]
    stretches, start = [], 0
    for own, rows in groupby(kept):
        stop = start + len(list(rows))
        stretches.append((start, stop, own))
        start = stop
    return tuple(stretches)


# ---- runs of numbers: (n, runs, length), where one run may serve for all ----------------------------------


def _convolve_runs(
    x: Array, y: Array, moduli: ModuliSet, plan: Plan, whole: Callable[..., Array] | None = None
) -> Array:
    """Convolve by a plan; or cyclically, by the function `whole` modulo primes with transforms."""
    batch = np.broadcast_shapes(x.shape[1:-1], y.shape[1:-1])
    out = np.empty_like(x, shape=(len(moduli), math.prod(batch), plan.stop - plan.first), order="C")
    if out.size:
        x, y = as_runs(x, batch), as_runs(y, batch)
        for start, stop, own in _stretches(moduli, plan.length):
            if whole is None and plan.short <= (SHORT_OWN if own else SHORT_OTHER):
                _by_sums(x[start:stop], y[start:stop], _part(moduli, start, stop), plan, out[start:stop])
                continue
            for a, b in _batches(start, stop, x, y, plan, own):
                part = x[a:b], y[a:b], _part(moduli, a, b), plan
                out[a:b] = _by_own_primes(*part, whole or cyclic_products) if own else _by_three_primes(*part)
    return out.reshape(len(moduli), *batch, out.shape[-1])


@lru_cache(1024)
def _part(moduli: ModuliSet, start: int, stop: int) -> ModuliSet:
    return moduli if stop - start == len(moduli) else ModuliSet(list(moduli)[start:stop])


def _batches(start: int, stop: int, x: Array, y: Array, plan: Plan, own: bool) -> Iterator[tuple[int, int]]:
    """Ranges of rows that are transformed together."""
    runs, others = sorted((x.shape[1] * plan.blocks, y.shape[1]))
    limit = _CPU_WORDS if isinstance(x, np.ndarray) else _GPU_WORDS
    step = max(1, limit // (max(x.shape[1], y.shape[1]) * plan.blocks * plan.length))
    if (
        not own and runs == 1 < others
    ):  # the operands of all rows become runs, and none serves those of another
        step = 1
    return ((a, min(a + step, stop)) for a in range(start, stop, step))


def _by_sums(x: Array, y: Array, moduli: ModuliSet, plan: Plan, out: Array) -> None:
    x, y = (np.broadcast_to(v, (*out.shape[:2], v.shape[-1])) for v in (x, y))
    kernels_of(out).convolve(x, y, moduli, plan.first, out)


def _by_own_primes(
    x: Array, y: Array, moduli: ModuliSet, plan: Plan, products: Callable[..., Array]
) -> Array:
    x, y = expanded(blocks(x, plan), padded(y, plan.length)[:, :, None])
    return wanted(products(x, y, moduli), plan)


def _by_three_primes(x: Array, y: Array, moduli: ModuliSet, plan: Plan) -> Array:
    cut = x[:, :, None] if plan.blocks == 1 else blocks(x, plan)
    operands = expanded(cut, y[:, :, None])
    runs = max(operand.shape[1] for operand in operands)
    x, y = (_modulo_three_primes(operand, plan.length) for operand in operands)
    products = cyclic_products(x, y, THREE_PRIMES).reshape(len(THREE_PRIMES), -1)
    out = np.empty_like(products, shape=(len(moduli), runs * plan.length), order="C")
    kernels_of(out).three_prime_remainders(products, three_prime_constants(moduli), out)
    return wanted(out.reshape(len(moduli), runs, plan.length), plan)


def _modulo_three_primes(x: Array, length: int) -> Array:
    """Residues (3, n * runs, length) of runs of any words, padded with zeros."""
    out = np.empty_like(x, shape=(len(THREE_PRIMES), x.shape[0] * x.shape[1], length), order="C")
    kernels_of(out).padded_residues(x, THREE_PRIMES, out)
    return out
