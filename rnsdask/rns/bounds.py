"""Bounds of the magnitudes of a chunk's numbers: guessed, proved and measured.

Keys under the whole moduli set cannot separate small numbers. So the first few residues are read as numbers
in the symmetric range of their moduli, whose product P is at least four times the bound. These are the given
numbers if and only if base extension yields all other residues; then their keys are compared with the bound's
(docs/mathematics.md, "Proof of a bound").

A measured bound is tight. A sample gives a bound that holds for nearly all numbers. One pass proves it, or
finds the numbers beyond it: if they are many, another sample raises it; the few that are left are measured.
So small numbers in a large range cost no more than the proof of their bound, and numbers as long as M cost
almost nothing, because no number can be longer.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from rnsdask.backend import Array, BoundProof, Kernels, kernels_of, to_backend
from rnsdask.constants import KEY_BITS, key_constants, reverse_constants, sufficient_prefix
from rnsdask.constants.factors import CACHED_SETS
from rnsdask.core.errors import NumberError, abbreviate
from rnsdask.core.layout import as_matrix
from rnsdask.core.moduli import LIMB_BITS, ModuliSet
from rnsdask.core.place import Place
from rnsdask.rns.blocks import batches, column_of, numbers_at
from rnsdask.rns.evaluation import magnitudes
from rnsdask.rns.extend import base_extend
from rnsdask.rns.order import order_of
from rnsdask.rns.system import RNS

MANY = 1024
"""Fewest numbers that are worth measuring before other work on them."""

SAMPLE = 128
"""Most numbers of a sample."""

# Fewest numbers in a sample of a short array of many moduli, where each takes as long as the proof of some n
# others.
_FEWEST = 16

# Residues of a sample, which the host converts while a GPU waits.
_SAMPLED_RESIDUES = 2**14


def sampled_bound(residues: Array, system: RNS) -> int:
    """Guess :func:`.measured_bound` from a sample of evenly spaced numbers; the guess is never above it."""
    moduli = sufficient_prefix(system.moduli, system.signed, system.bound)
    matrix = as_matrix(residues[: len(moduli)])
    if not matrix.shape[1]:
        return 0
    places = np.arange(0, matrix.shape[1], distance(matrix.shape[1], looked_at(matrix)))
    chosen = kernels_of(matrix).gather(matrix, np.asarray(places, like=matrix))
    chosen = to_backend(chosen, "cpu")  # which is quicker for so few
    limbs = kernels_of(chosen).residues_to_limbs(chosen, reverse_constants(moduli, system.signed))
    return min((1 << _longest(limbs, system.signed)) - 1, system.known_magnitude)


def looked_at(matrix: Array) -> int:
    """Number of numbers (n, N) in a sample, at most all."""
    count: int = matrix.shape[1]
    return min(max(_FEWEST, min(count // 4, _SAMPLED_RESIDUES) // len(matrix)), SAMPLE)


def distance(count: int, wanted: int) -> int:
    """Step that selects at most `wanted` of `count` numbers, and all phases of a short period."""
    least = -(-count // wanted)
    return next(k for k in range(least, least + 6) if math.gcd(k, 30) == 1)


def _longest(limbs: NDArray[np.uint32], signed: bool) -> int:
    """Bits of the longest number of (N, L) limbs; a negative X counts as -X - 1."""
    if signed:
        limbs = limbs ^ (np.uint32(0) - (limbs[:, -1:] >> np.uint32(LIMB_BITS - 1)))
    greatest = limbs.max(axis=0)
    (used,) = greatest.nonzero()
    return LIMB_BITS * int(used[-1]) + int(greatest[used[-1]]).bit_length() if used.size else 0


# Residues examined at a time, to fit a CPU's cache, and to bound the memory in addition to a chunk.
CPU_RESIDUES = 2**20
GPU_RESIDUES = 2**26

# Residues of a proof in one pass, which writes only flags and can take more.
_PROVED_TOGETHER = 8

# Most numbers left open by a proof (such as the bound itself) that the host decides by their integers: base
# extension takes as long for a few numbers as for thousands.
_FEW = 128

# Proofs with lesser bounds go on while they prove at least one in this many numbers: base extension takes as
# long as many proofs.
_LEAST_PROVED = 8

# Bits by which those bounds exceed the longest number of a sample, because others may be longer.
_MARGIN_BITS = 4

# Factor of the error of keys up to which numbers are distinguished by keys of their multiples.
_COARSE = 8


@dataclass(frozen=True)
class Excess:
    """Numbers beyond their bound in magnitude: their count, the first one and its flat index."""

    index: int
    value: int
    count: int

    def text(self, bound: int) -> str:
        """Describe the first number, for a message that has named its place."""
        more = f" (and {self.count - 1} more)" if self.count > 1 else ""
        return f"{abbreviate(self.value)}, greater in magnitude than the bound {abbreviate(bound)}{more}"


def find_excess(residues: Array, system: RNS) -> Excess | None:
    """Find exactly the numbers beyond the system's bound in magnitude; None if there are none."""
    if system.known_magnitude == system.greatest_magnitude:
        return None
    matrix = as_matrix(residues)
    step, first, count = block_length(matrix), None, 0
    for start in range(0, matrix.shape[1], step):
        beyond = find_beyond(matrix[:, start : start + step], system)
        if beyond.size and first is None:
            first = start + int(beyond[0])
        count += beyond.size
    if first is None:
        return None
    return Excess(first, system.decode_at(matrix, first), count)


def check_bound(residues: Array, *, system: RNS, place: Place) -> Array:
    """Return the residues of a chunk; NumberError for the first number beyond the system's bound."""
    excess = find_excess(residues, system)
    if excess is not None and system.bound is not None:
        where = place.flat_index(excess.index)
        raise NumberError(f"the number at flat index {where} is {excess.text(system.bound)}")
    return residues


def block_length(matrix: Array) -> int:
    """Number of numbers (n, N) that are compared with a bound at a time."""
    return _PROVED_TOGETHER * _piece_length(matrix)


def _piece_length(matrix: Array) -> int:
    """Number of numbers (n, N) that are compared at a time by base extension."""
    limit = CPU_RESIDUES if isinstance(matrix, np.ndarray) else GPU_RESIDUES
    return max(1, limit // len(matrix))


@dataclass(frozen=True)
class _Plan:
    """Way to compare numbers with a bound.

    The first `moduli` determine numbers within the bound, in their symmetric range if `signed`; `others` are
    the remaining moduli. `coarse` is a greater bound to prove first, with which keys separate numbers near
    the bound.
    """

    moduli: ModuliSet
    others: ModuliSet | None
    signed: bool
    coarse: int | None


@lru_cache(CACHED_SETS)
def _plan(system: RNS) -> _Plan:
    moduli, bound = system.moduli, system.known_magnitude
    product, count = 1, 0
    while product < 4 * (bound + 1) and count < len(moduli):
        product *= moduli[count]
        count += 1
    chosen = moduli.prefix(count)
    others = ModuliSet(list(moduli)[count:]) if count < len(moduli) else None
    symmetric = system.signed or product >= 4 * (bound + 1)
    coarse = None
    if symmetric:
        error = key_constants(chosen, True).slack * product >> KEY_BITS
        coarse = _COARSE * (error + 1)
    is_needed = coarse is not None and bound < coarse < product // 4
    return _Plan(chosen, others, symmetric, coarse if is_needed else None)


@lru_cache(CACHED_SETS)
def proof_of(system: RNS, kernels: Kernels) -> BoundProof | None:
    """Constants for a processor's proof of the bound in one pass; None if it cannot prove it so."""
    if _is_too_great(system):
        return None
    bound, first = system.known_magnitude, len(_plan(system).moduli)
    return kernels.bound_proof(system.moduli, first, -bound if system.signed else 0, bound)


def _is_too_great(system: RNS) -> bool:
    """Whether the bound is too great for a proof in one pass."""
    return 4 * (system.known_magnitude + 1) > system.moduli.product


def find_beyond(matrix: Array, system: RNS) -> Array:
    """Ascending indices of the numbers beyond the bound in magnitude; the bound is below the range's ends."""
    return find_those_beyond(matrix, find_open(matrix, system), system)


def find_open(matrix: Array, system: RNS) -> Array | None:
    """Ascending indices of the numbers that one pass cannot prove within the bound.

    All indices if the bound is too great for such a proof, None if the processor has no kernel for it. Up to
    `_FEW` of them are a NumPy array.
    """
    if _is_too_great(system):
        return np.arange(matrix.shape[1], like=matrix)
    kernels = kernels_of(matrix)
    constants = proof_of(system, kernels)  # type: ignore[arg-type]  # mypy: modules have no hash
    return None if constants is None else kernels.find_unset(kernels.prove_bound(matrix, constants), _FEW)


def find_those_beyond(matrix: Array, left_open: Array | None, system: RNS) -> Array:
    """Find numbers beyond the bound among those that :func:`find_open` has left."""
    if left_open is None:
        return _find_by_extension(matrix, system)
    step, found = _piece_length(matrix), [left_open[:0]]
    for start in range(0, left_open.size, step):
        piece = left_open[start : start + step]
        piece, numbers = _drop_small(piece, numbers_at(matrix, piece), system)
        beyond = _few_exceed(numbers, system) if numbers.shape[1] <= _FEW else _exceeds(numbers, system)
        found.append(piece[np.asarray(beyond, like=piece)])
    return np.concatenate(found) if len(found) > 1 else found[0]


def _find_by_extension(matrix: Array, system: RNS) -> Array:
    """Find numbers beyond the bound by base extension, where no kernel proves it in one pass."""
    step = _piece_length(matrix)
    pieces = ((start, matrix[:, start : start + step]) for start in range(0, matrix.shape[1] or 1, step))
    return np.concatenate([start + _exceeds(piece, system).nonzero()[0] for start, piece in pieces])


def _drop_small(indices: Array, numbers: Array, system: RNS) -> tuple[Array, Array]:
    """Keep the numbers, at some indices, that proofs of lesser bounds leave open too.

    Unsigned numbers far below the bound stay open in its proof, because they seem near M - 1.
    """
    while numbers.shape[1] >= MANY:
        bound = ((sampled_bound(numbers, system.with_bound(None)) + 1) << _MARGIN_BITS) - 1
        left_open = find_open(numbers, system.with_bound(bound)) if bound < system.known_magnitude else None
        if left_open is None or _LEAST_PROVED * (indices.size - left_open.size) < indices.size:
            break
        left_open = np.asarray(left_open, like=indices)
        indices, numbers = indices[left_open], kernels_of(numbers).gather(numbers, left_open)
    return indices, numbers


def _few_exceed(matrix: Array, system: RNS) -> NDArray[np.bool_]:
    """Mark numbers that exceed the bound on the host, by their integers."""
    integers = system.decode(to_backend(matrix, "cpu"))
    return np.fromiter((abs(x) > system.known_magnitude for x in integers), np.bool_, len(integers))


def _exceeds(matrix: Array, system: RNS) -> Array:
    """Mask (N,) of the numbers beyond the bound in magnitude, by base extension and keys."""
    plan, bound = _plan(system), system.known_magnitude
    chosen = matrix[: len(plan.moduli)]
    mask = _is_outside(chosen, plan, -bound if system.signed else 0, bound)
    if plan.others is not None:
        extended = base_extend(chosen, RNS(plan.moduli, True), plan.others)
        mask |= (extended != matrix[len(plan.moduli) :]).any(axis=0)
    return mask


def _is_outside(matrix: Array, plan: _Plan, low: int, high: int) -> Array:
    """Mask (N,) of the numbers that are below `low` or above `high` under the first moduli."""
    mask = np.zeros_like(matrix[0], dtype=np.bool_)
    if plan.coarse is not None:
        mask |= _compare(matrix, plan.coarse, plan, None) > 0
        mask |= _compare(matrix, -plan.coarse, plan, None) < 0
    # Numbers beyond the coarse bound are already found, so their comparison does not matter.
    mask |= _compare(matrix, high, plan, plan.coarse) > 0
    if plan.signed:
        mask |= _compare(matrix, low, plan, plan.coarse) < 0
    return mask


def _compare(matrix: Array, value: int, plan: _Plan, bound: int | None) -> Array:
    return order_of(matrix, column_of(value, plan.moduli), key_constants(plan.moduli, plan.signed, bound))


# Numbers that are examined first: mostly one of them shows that not all are small.
_FIRST = 8

# If a proof leaves open more than one number in this many, a sample of them is examined.
_MANY_OPEN = 16

# Most rounds of that: samples that always hit the shortest numbers would take a proof of all for each bit.
_MOST_SAMPLES = 16

SMALL_BITS = 16
"""Bits by which a bound of small numbers is shorter than the bound of their system."""

_EXPONENT_OF_ZERO = -(2**40)


def narrowed(system: RNS, *matrices: Array) -> RNS | None:
    """System with a measured bound for many numbers that are all small; None for other numbers.

    Evaluations under it separate numbers of the matrices (n, N) that look equal under the whole system.
    """
    if max(matrix.shape[1] for matrix in matrices) < MANY:
        return None
    enough, bound = system.known_magnitude >> SMALL_BITS, 0
    if enough == 0:
        return None
    guesses = [_glance(matrix, system) for matrix in matrices]
    if any(guess > enough for guess in guesses):
        return None
    for matrix, guess in zip(matrices, guesses, strict=True):
        sampled = None if isinstance(matrix, np.ndarray) else guess
        bound = max(bound, measured_bound(matrix, system, enough, sampled))
        if bound > enough:
            return None
    return system.with_bound(bound)


def _glance(matrix: Array, system: RNS) -> int:
    """Guess the bound from a few numbers; on a GPU from more, which take no longer."""
    return sampled_bound(matrix[:, :_FIRST] if isinstance(matrix, np.ndarray) else matrix, system)


def measured_bound(
    residues: Array, system: RNS, enough: int | None = None, sampled: int | None = None
) -> int:
    """Greatest integer with as many bits as the greatest magnitude; 0 without numbers.

    It is at least the greatest magnitude and less than twice that, and does not depend on the chunks; it is
    limited to the range and to the system's bound. Measuring stops once the bound exceeds `enough`: the
    result is then the greatest possible bound. `sampled` is the result of :func:`sampled_bound`, if already
    known.
    """
    bound = _proved_bound(residues, system, enough, sampled)
    return system.known_magnitude if bound is None else bound


def _proved_bound(residues: Array, system: RNS, enough: int | None, sampled: int | None) -> int | None:
    """Measure the bound; None if it exceeds `enough`."""
    system = RNS(sufficient_prefix(system.moduli, system.signed, system.bound), system.signed, system.bound)
    matrix = as_matrix(residues[: system.rows])
    bound = sampled_bound(matrix, system) if sampled is None else sampled
    if not system.signed and matrix.shape[1] <= looked_at(matrix):
        return bound  # for all numbers
    step = block_length(matrix)
    for start in range(0, matrix.shape[1], step):
        if enough is not None and bound > enough:
            return None
        if bound == system.known_magnitude:
            break
        bound = _raise_for_block(bound, matrix[:, start : start + step], system)
    return bound


def _raise_for_block(bound: int, block: Array, system: RNS) -> int:
    """Raise the bound until it also holds for a block of numbers (n, N)."""
    left_open = find_open(block, system.with_bound(bound))
    # A proof that leaves many open shows that the sample missed the long numbers: one of these is added.
    for _ in range(_MOST_SAMPLES):
        if left_open is None or left_open.size <= block.shape[1] // _MANY_OPEN:
            break
        some = left_open[:: distance(left_open.size, SAMPLE)]
        guess = sampled_bound(kernels_of(block).gather(block, some), system)
        if guess <= bound or guess == system.known_magnitude:
            break
        bound = guess
        left_open = find_open(block, system.with_bound(bound))
    beyond = find_those_beyond(block, left_open, system.with_bound(bound))
    for indices in batches(beyond, system.rows):
        bound = _raise_for_numbers(bound, kernels_of(block).gather(block, indices), system)
    return bound


def _raise_for_numbers(bound: int, residues: Array, system: RNS) -> int:
    """Raise the bound until it also holds for some numbers (n, k)."""
    while residues.shape[1]:
        bound = _raise_for_greatest(bound, residues, system)
        if bound == system.known_magnitude:
            break
        # Any left are longer than the apparent greatest number, because of the error of magnitudes.
        beyond = find_beyond(residues, system.with_bound(bound))
        residues = kernels_of(residues).gather(residues, beyond)
    return bound


def _raise_for_greatest(bound: int, residues: Array, system: RNS) -> int:
    """Raise the bound to hold for the number with the apparent greatest magnitude."""
    mantissas, exponents = magnitudes(residues, system)
    fractions, shifts = np.frexp(abs(mantissas))
    sizes = np.where(fractions == 0, _EXPONENT_OF_ZERO, exponents + shifts)
    index = int(np.where(sizes == sizes.max(), fractions, 0.0).argmax())
    bits: int = system.decode_at(residues, index).bit_length()
    return min(max(bound, (1 << bits) - 1), system.known_magnitude)
