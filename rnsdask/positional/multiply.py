"""Products of chunks of positional numbers, words (k, *shape) that broadcast."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from rnsdask.backend import Array, assign, is_any, kernels_of, padded
from rnsdask.constants import (
    ForwardConstants,
    ReverseConstants,
    TransformConstants,
    forward_constants,
    reverse_constants,
    transform_constants,
)
from rnsdask.core.moduli import ModuliSet
from rnsdask.positional.operands import LIMB_BITS, Operands, limbs_of, resized

# Exact products of long positional numbers by number-theoretic transforms, a whole chunk together.
#
# Numbers are polynomials with digits of some limbs as coefficients, as :func:`.long_multiply` takes one pair.
# Every step is a kernel, so that products stay on the processor of the chunk.

_FEWEST_LIMBS = 8
"""Fewest limbs of a digit, which has up to twice as many: longer digits take fewer transforms."""

BLOCK_LIMBS = 2**20
"""Limbs of products that are computed together, in about nine times their memory."""

CARRY_ROUNDS = 3
"""Rounds in which the carries of all limbs are passed on at once; then few are left, but for runs of ones."""


@dataclass(frozen=True, eq=False)
class _Plan:
    """Length of the polynomials, limbs of a digit, and constants for the primes."""

    length: int
    digit_limbs: int
    to_residues: ForwardConstants
    to_limbs: ReverseConstants
    forward: TransformConstants
    inverse: TransformConstants


@lru_cache(16)
def _plan_for(x_limbs: int, y_limbs: int) -> _Plan:
    """Plan for numbers of these lengths in limbs."""
    limbs = x_limbs + y_limbs
    length = 1 << max(2, limbs // _FEWEST_LIMBS).bit_length() - 1
    digit = -(-limbs // length)
    while (digits := -(-x_limbs // digit) + -(-y_limbs // digit)) > length:
        digit += 1
    # Most products in the sum of a coefficient.
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
    """Products (k + l, count) of unsigned matrices (k, count) or (k, 1), and (l, count) or (l, 1).

    J. Pollard, "The fast Fourier transform in a finite field", Mathematics of Computation 25 (1971).
    """
    plan = _plan_for(len(x), len(y))
    out = np.empty_like(x, shape=(len(x) + len(y), count), order="C")
    step = max(1, BLOCK_LIMBS // len(out))
    for first in range(0, count, step):
        block = slice(first, min(first + step, count))
        a = x if x.shape[1] == 1 else x[:, block]
        b = a if x is y else y if y.shape[1] == 1 else y[:, block]
        assign(out[:, block], _block_product(a, b, plan))
    return out


def _block_product(x: Array, y: Array, plan: _Plan) -> Array:
    a = _residues(x, plan)
    b = a if x is y else _residues(y, plan)
    if a.shape[1] < b.shape[1]:  # one run of the second may serve all
        a, b = b, a
    kernels = kernels_of(a)
    products = np.empty_like(a)
    kernels.cyclic_products(a, b, plan.forward, plan.inverse, products)
    coefficients = kernels.residues_to_limbs(products, plan.to_limbs)
    return _carry(coefficients, plan)[: len(x) + len(y)]


def _residues(numbers: Array, plan: _Plan) -> Array:
    """Digits of numbers (k, N) modulo each prime, padded with zeros: (primes, N * length)."""
    limbs, count = numbers.shape
    digits, primes = -(-limbs // plan.digit_limbs), len(plan.forward.moduli)
    kernels = kernels_of(numbers)
    turned = np.empty_like(numbers, shape=(count, limbs), order="C")
    kernels.transpose(numbers, turned)
    width = digits * plan.digit_limbs
    rows = turned if limbs == width else padded(turned, (count, width))
    residues = np.empty_like(numbers, shape=(primes, count * digits), order="C")
    kernels.limbs_to_residues(rows.reshape(-1, plan.digit_limbs), plan.to_residues, residues)
    runs = padded(residues.reshape(primes * count, digits), (primes * count, plan.length))
    return runs.reshape(primes, -1)


def _carry(coefficients: Array, plan: _Plan) -> Array:
    """Sum coefficients (N * length, L), each 2**(32 digit_limbs) times the weight of the last, to (k, N).

    The numbers fit their places: what is beyond them is 0.
    """
    length, digit = plan.length, plan.digit_limbs
    count, places = len(coefficients) // length, length * digit
    kernels = kernels_of(coefficients)
    if kernels.overlap_add is not None:
        # All numbers, one after another, on one axis.
        line = np.zeros_like(coefficients, shape=(count * places + coefficients.shape[1],), order="C")
        kernels.overlap_add(coefficients, digit, line)
        return _transpose(line[: count * places].reshape(count, places))
    sums = np.zeros_like(coefficients, shape=(count, length, digit), dtype=np.uint64, order="C")
    grid = coefficients.reshape(count, length, -1)
    for i in range(-(-grid.shape[2] // digit)):
        piece = grid[:, : length - i, i * digit : (i + 1) * digit]
        place = sums[:, i:, : piece.shape[2]]
        place += piece  # sums[...] += piece would copy it to itself on a GPU
    return _pass_on_carries(sums.reshape(count, places))


def _pass_on_carries(sums: Array) -> Array:
    """Pass on the carries of sums of limbs (N, k), uint64: numbers (k, N)."""
    for _ in range(CARRY_ROUNDS):
        carries = sums >> np.uint64(LIMB_BITS)
        sums &= np.uint64(2**LIMB_BITS - 1)
        if not is_any(carries):
            return _transpose(sums.astype(np.uint32))
        upper = sums[:, 1:]
        upper += carries[:, :-1]
    # Carries propagate through limbs of ones: from limb to limb, each number separately.
    low = _transpose(sums.astype(np.uint32))  # modulo 2**32
    carries = np.zeros_like(low)
    carries[1:] = _transpose((sums >> np.uint64(LIMB_BITS)).astype(np.uint32))[:-1]
    total = np.empty_like(low)
    kernels_of(low).positional_add((low, carries), (False, False), False, LIMB_BITS, False, total)
    return total


def _transpose(matrix: Array) -> Array:
    out = np.empty_like(matrix, shape=matrix.shape[::-1], order="C")
    kernels_of(matrix).transpose(matrix, out)
    return out


# Products of chunks of positional numbers, words (k, *shape) that broadcast.
# Numbers have any number of limbs, in two's complement if ``signed``. Results have the limbs of ``bits`` and
# are canonical: above these bits are zeros, or copies of the sign. The sum of both precisions gives exact
# products.


def multiply(x: Array, y: Array, bits: int, signed: bool) -> Array:
    """``x y`` modulo 2**bits."""
    return _product(x, y, None, bits, signed, False)[0]


def multiply_checked(x: Array, y: Array, bits: int, signed: bool) -> tuple[Array, Array]:
    """``x y`` modulo 2**bits, and a mask (*shape) of the products that do not fit."""
    return _product(x, y, None, bits, signed, True)


def multiply_add(x: Array, y: Array, addend: Array, bits: int, signed: bool) -> Array:
    """``x y + addend`` modulo 2**bits."""
    return _product(x, y, addend, bits, signed, False)[0]


def multiply_add_checked(x: Array, y: Array, addend: Array, bits: int, signed: bool) -> tuple[Array, Array]:
    """``x y + addend`` modulo 2**bits, and a mask (*shape) of the sums that do not fit."""
    return _product(x, y, addend, bits, signed, True)


def _product(
    x: Array, y: Array, addend: Array | None, bits: int, signed: bool, checked: bool
) -> tuple[Array, Array]:
    operands = Operands(x, y) if addend is None else Operands(x, y, addend)
    if x is y:  # kernels compute the symmetric products of a square once
        operands.matrices[1] = operands.matrices[0]
    kernels = kernels_of(operands.like)
    if min(len(x), len(y)) > kernels.most_product_limbs:
        return _by_transforms(operands, bits, signed, checked)
    a, b, *more = operands.matrices
    out, overflowed = operands.empty(limbs_of(bits)), operands.flags() if checked else None
    if out.size:
        kernels.positional_multiply(a, b, more[0] if more else None, bits, signed, out, overflowed)
    return operands.shaped(out), None if overflowed is None else operands.shaped(overflowed)


def _by_transforms(operands: Operands, bits: int, signed: bool, checked: bool) -> tuple[Array, Array]:
    x, y, *more = operands.matrices
    exact = transformed_product(x, y, operands.count)
    if signed:
        # The limbs of a negative number, read as unsigned, are greater by 2**(32 limbs).
        for number, other in ((x, y), (y, x)):
            upper = exact[len(number) :]
            added = np.where(number[-1] >> np.uint32(31) != 0, other, np.uint32(0))
            upper[...] = add(upper, added, len(upper), subtract=True)
    if more:
        exact = add(exact, more[0], max(len(exact), len(more[0])) + 1, signed)
    rows = limbs_of(bits)
    if not signed and not checked and bits == LIMB_BITS * rows <= LIMB_BITS * len(exact):
        if rows < len(exact):  # a view would keep all of the product
            whole, exact = exact, operands.empty(rows)
            assign(exact, whole[:rows])
        return operands.shaped(exact), None
    words, overflowed = resized(exact, signed, rows, bits - LIMB_BITS * (rows - 1), signed)
    return operands.shaped(words), operands.shaped(overflowed)


def add(x: Array, y: Array, limbs: int, signed: bool = False, subtract: bool = False) -> Array:
    """Wrapped sums or differences of (k, N) and (l, N) or (l, 1)."""
    out = np.empty_like(x, shape=(limbs, x.shape[1]), order="C")
    if out.size:
        kernels_of(out).positional_add((x, y), (signed, signed), subtract, LIMB_BITS, signed, out)
    return out
