"""Proof of a bound: that no number of a chunk is greater in magnitude. No Dask in here.

Keys under the whole moduli set cannot tell small numbers from one another. So the numbers are taken for those
in the symmetric range of the first few moduli, whose product P is at least four times the bound. They are the
same numbers just when base extension gives all the other residues, and their keys tell them from the bound
(docs/mathematics.md, "Proof of a bound").
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from rnsdask.backend import Array, BoundProof, Kernels, kernels_of, to_backend
from rnsdask.constants import KEY_BITS, key_constants
from rnsdask.constants.factors import CACHED_SETS
from rnsdask.core.errors import abbreviate
from rnsdask.core.layout import as_matrix
from rnsdask.core.moduli import ModuliSet
from rnsdask.rns.blocks import column_of, numbers_at
from rnsdask.rns.extend import base_extend
from rnsdask.rns.order import order_of
from rnsdask.rns.sampled_bound import MANY, sampled_bound
from rnsdask.rns.system import RNS

# Residues looked at a time: on a CPU they stay in its cache, and the memory beside a chunk is bounded.
_CPU_RESIDUES = 2**20
_GPU_RESIDUES = 2**26

# Proofs in one pass write flags only, so that calls may be longer.
_PROVED_TOGETHER = 8

# So few that a proof leaves open, such as one that is the bound itself, are decided on the host, by their
# integers: base extension takes as long as that of thousands.
_FEW = 128

# Numbers that a proof leaves open are proved within lesser bounds, if that is one of so many at a time: base
# extension takes as long as many proofs.
_LEAST_PROVED = 8

# Those bounds are greater than the longest of a few numbers by so many bits: others of its kind are longer.
_MARGIN_BITS = 4

# Numbers of at most so many times the error of their keys are told apart by keys of their multiples.
_COARSE = 8


@dataclass(frozen=True)
class Excess:
    """Numbers that are greater in magnitude than they should be.

    Attributes
    ----------
    index : int
        Flat (C order) index of the first.
    value : int
        That number.
    count : int
        How many they are.
    """

    index: int
    value: int
    count: int

    def text(self, bound: int) -> str:
        """Say what the first number is, for a message that has named it."""
        more = f" (and {self.count - 1} more)" if self.count > 1 else ""
        return f"{abbreviate(self.value)}, greater in magnitude than the bound {abbreviate(bound)}{more}"


def find_excess(residues: Array, system: RNS) -> Excess | None:
    """Find the numbers that are greater in magnitude than the system's bound, exactly; None if no number is.

    Parameters
    ----------
    residues : array of uint32, shape (n, *shape)
        NumPy or CuPy; each residue below its modulus.
    """
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


def block_length(matrix: Array) -> int:
    """How many numbers of residues (n, N) are compared with a bound at a time."""
    return _PROVED_TOGETHER * _piece_length(matrix)


def _piece_length(matrix: Array) -> int:
    """How many of them where residues are extended."""
    limit = _CPU_RESIDUES if isinstance(matrix, np.ndarray) else _GPU_RESIDUES
    return max(1, limit // len(matrix))


@dataclass(frozen=True)
class _Plan:
    """How numbers are compared with a bound.

    Attributes
    ----------
    moduli : ModuliSet
        The first moduli, which tell numbers within the bound apart.
    others : ModuliSet or None
        The other moduli.
    signed : bool
        Whether numbers are taken for those of the symmetric range of the first moduli.
    coarse : int or None
        A greater bound, to be proved first: with it, keys tell numbers near the bound apart.
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
def _proof(system: RNS, kernels: Kernels) -> BoundProof | None:
    """How a processor proves the bound in one pass, if it does."""
    if _is_too_great(system):
        return None
    bound, first = system.known_magnitude, len(_plan(system).moduli)
    return kernels.bound_proof(system.moduli, first, -bound if system.signed else 0, bound)


def _is_too_great(system: RNS) -> bool:
    """Whether the bound is, for a proof in one pass."""
    return 4 * (system.known_magnitude + 1) > system.moduli.product


def find_beyond(matrix: Array, system: RNS) -> Array:
    """Ascending indices of numbers greater in magnitude than the bound, which is below the range's ends."""
    return find_those_beyond(matrix, find_open(matrix, system), system)


def find_open(matrix: Array, system: RNS) -> Array | None:
    """Ascending indices of numbers of which no proof in one pass says that they are within the bound.

    All where the bound is too great for such a proof; None if the processor has none. At most `_FEW` that one
    leaves are a NumPy array.
    """
    if _is_too_great(system):
        return np.arange(matrix.shape[1], like=matrix)
    kernels = kernels_of(matrix)
    constants = _proof(system, kernels)  # type: ignore[arg-type]  # mypy: modules have no hash
    return None if constants is None else kernels.find_unset(kernels.prove_bound(matrix, constants), _FEW)


def find_those_beyond(matrix: Array, left_open: Array | None, system: RNS) -> Array:
    """Find numbers beyond the bound among those that :func:`find_open` has left."""
    if left_open is None:
        return _find_by_extension(matrix, system)
    step, found = _piece_length(matrix), [left_open[:0]]
    for start in range(0, left_open.size, step):
        piece = left_open[start : start + step]
        piece, numbers = _without_small(piece, numbers_at(matrix, piece), system)
        beyond = _few_exceed(numbers, system) if numbers.shape[1] <= _FEW else _exceeds(numbers, system)
        found.append(piece[np.asarray(beyond, like=piece)])
    return np.concatenate(found) if len(found) > 1 else found[0]


def _find_by_extension(matrix: Array, system: RNS) -> Array:
    """Find numbers beyond the bound by base extension, where no kernel proves it in one pass."""
    step = _piece_length(matrix)
    pieces = ((start, matrix[:, start : start + step]) for start in range(0, matrix.shape[1] or 1, step))
    return np.concatenate([start + _exceeds(piece, system).nonzero()[0] for start, piece in pieces])


def _without_small(indices: Array, numbers: Array, system: RNS) -> tuple[Array, Array]:
    """The numbers at some indices that proofs of less than the bound leave open too.

    Unsigned numbers that are tiny beside the bound stay open in its proof: they are as near to M - 1.
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
    """Boolean (N,): each number is greater in magnitude than the bound; by base extension and keys."""
    plan, bound = _plan(system), system.known_magnitude
    chosen = matrix[: len(plan.moduli)]
    mask = _is_outside(chosen, plan, -bound if system.signed else 0, bound)
    if plan.others is not None:
        extended = base_extend(chosen, RNS(plan.moduli, True), plan.others)
        mask |= (extended != matrix[len(plan.moduli) :]).any(axis=0)
    return mask


def _is_outside(matrix: Array, plan: _Plan, low: int, high: int) -> Array:
    """Boolean (N,): each number under the first moduli is below `low` or above `high`."""
    mask = np.zeros_like(matrix[0], dtype=np.bool_)
    if plan.coarse is not None:
        mask |= _compare(matrix, plan.coarse, plan, None) > 0
        mask |= _compare(matrix, -plan.coarse, plan, None) < 0
    # Numbers beyond the coarse bound are found already, whatever comparing them gives.
    mask |= _compare(matrix, high, plan, plan.coarse) > 0
    if plan.signed:
        mask |= _compare(matrix, low, plan, plan.coarse) < 0
    return mask


def _compare(matrix: Array, value: int, plan: _Plan, bound: int | None) -> Array:
    return order_of(matrix, column_of(value, plan.moduli), key_constants(plan.moduli, plan.signed, bound))
