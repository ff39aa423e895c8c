"""Exact products of long positional numbers by number-theoretic transforms, all of a chunk together.

Numbers are polynomials with digits of some limbs as coefficients, as :func:`.long_multiply` takes one pair.
Everything is a kernel, so that products stay on the processor of the chunk. No Dask in here.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from rnsdask.backend import Array, kernels_of
from rnsdask.constants import (
    ForwardConstants,
    ReverseConstants,
    TransformConstants,
    forward_constants,
    reverse_constants,
    transform_constants,
)
from rnsdask.core.moduli import ModuliSet
from rnsdask.positional.operands import LIMB_BITS

_FEWEST_LIMBS = 8
"""Limbs of a digit, or up to twice as many: more take fewer transforms, but longer in and out of residues."""

_BLOCK_LIMBS = 2**20
"""Limbs of products that are computed together, in some nine times their memory."""

_CARRY_ROUNDS = 3
"""How often the carries of all limbs are passed on at once; few are left then, but where limbs are ones."""


@dataclass(frozen=True, eq=False)
class _Plan:
    """The polynomials' length, the limbs of a digit, and constants for the primes."""

    length: int
    digit_limbs: int
    to_residues: ForwardConstants
    to_limbs: ReverseConstants
    forward: TransformConstants
    inverse: TransformConstants


@lru_cache(16)
def _plan_for(x_limbs: int, y_limbs: int) -> _Plan:
    """The plan for numbers of so many limbs."""
    limbs = x_limbs + y_limbs
    length = 1 << max(2, limbs // _FEWEST_LIMBS).bit_length() - 1
    digit = -(-limbs // length)
    while (digits := -(-x_limbs // digit) + -(-y_limbs // digit)) > length:
        digit += 1
    # A coefficient is a sum of so many products at most.
    summed = digits // 2
    moduli = ModuliSet.ntt_primes(2 * LIMB_BITS * digit + summed.bit_length(), length)
    return _Plan(
        length,
        digit,
        forward_constants(moduli, digit),
        reverse_constants(moduli),
        transform_constants(moduli, length, False),
        transform_constants(moduli, length, True),
    )


def transformed_product(x: Array, y: Array, count: int) -> Array:
    """Products (k + l, count) of matrices (k, count) and (l, count), or (k, 1) and (l, 1), without signs.

    J. Pollard, "The fast Fourier transform in a finite field", Mathematics of Computation 25 (1971).
    """
    plan = _plan_for(len(x), len(y))
    out = np.empty_like(x, shape=(len(x) + len(y), count), order="C")
    step = max(1, _BLOCK_LIMBS // len(out))
    for first in range(0, count, step):
        block = slice(first, min(first + step, count))
        a = x if x.shape[1] == 1 else x[:, block]
        b = a if x is y else y if y.shape[1] == 1 else y[:, block]
        out[:, block] = _block_product(a, b, plan)
    return out


def _block_product(x: Array, y: Array, plan: _Plan) -> Array:
    a = _residues(x, plan)
    b = a if x is y else _residues(y, plan)
    if a.shape[1] < b.shape[1]:  # of the second, one run may serve all
        a, b = b, a
    kernels = kernels_of(a)
    products = np.empty_like(a)
    kernels.cyclic_products(a, b, plan.forward, plan.inverse, products)
    coefficients = kernels.residues_to_limbs(products, plan.to_limbs)
    return _carried(coefficients, plan)[: len(x) + len(y)]


def _residues(numbers: Array, plan: _Plan) -> Array:
    """Digits of numbers (k, N) modulo each prime, with zeros after those of each: (primes, N * length)."""
    limbs, count = numbers.shape
    digits, primes = -(-limbs // plan.digit_limbs), len(plan.forward.moduli)
    kernels = kernels_of(numbers)
    turned = np.empty_like(numbers, shape=(count, limbs), order="C")
    kernels.transpose(numbers, turned)
    rows = np.zeros_like(numbers, shape=(count, digits * plan.digit_limbs), order="C")
    rows[:, :limbs] = turned
    residues = np.empty_like(numbers, shape=(primes, count * digits), order="C")
    kernels.limbs_to_residues(rows.reshape(-1, plan.digit_limbs), plan.to_residues, residues)
    padded = np.zeros_like(numbers, shape=(primes, count, plan.length), order="C")
    padded[:, :, :digits] = residues.reshape(primes, count, digits)
    return padded.reshape(primes, -1)


def _carried(coefficients: Array, plan: _Plan) -> Array:
    """Numbers (k, N) of coefficients (N * length, L), each of which counts 2**(32 digit_limbs) of the next.

    They are sums of no more limbs than there are places: what is beyond these is 0.
    """
    length, digit = plan.length, plan.digit_limbs
    count, places = len(coefficients) // length, length * digit
    kernels = kernels_of(coefficients)
    if kernels.overlap_add is not None:
        # One number after another, in one line.
        line = np.zeros_like(coefficients, shape=(count * places + coefficients.shape[1],), order="C")
        kernels.overlap_add(coefficients, digit, line)
        return _turned(line[: count * places].reshape(count, places))
    sums = np.zeros_like(coefficients, shape=(count, length, digit), dtype=np.uint64, order="C")
    grid = coefficients.reshape(count, length, -1)
    for i in range(-(-grid.shape[2] // digit)):
        piece = grid[:, : length - i, i * digit : (i + 1) * digit]
        sums[:, i:, : piece.shape[2]] += piece
    return _passed_on(sums.reshape(count, places))


def _passed_on(sums: Array) -> Array:
    """Numbers (k, N) of sums of limbs (N, k), uint64."""
    for _ in range(_CARRY_ROUNDS):
        carries = sums >> np.uint64(LIMB_BITS)
        sums &= np.uint64(2**LIMB_BITS - 1)
        if not bool(carries.any()):
            return _turned(sums.astype(np.uint32))
        sums[:, 1:] += carries[:, :-1]
    # Carries run on where limbs are ones: from limb to limb, each number by itself.
    low = _turned(sums.astype(np.uint32))  # modulo 2**32
    carries = np.zeros_like(low)
    carries[1:] = _turned((sums >> np.uint64(LIMB_BITS)).astype(np.uint32))[:-1]
    total = np.empty_like(low)
    kernels_of(low).positional_add((low, carries), (False, False), False, LIMB_BITS, False, total)
    return total


def _turned(matrix: Array) -> Array:
    out = np.empty_like(matrix, shape=matrix.shape[::-1], order="C")
    kernels_of(matrix).transpose(matrix, out)
    return out
