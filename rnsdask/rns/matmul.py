"""Matrix products of chunks of numbers, with exact detection of overflow.

A product is computed under a moduli set that surely holds it: the operands' own if the bound K A B allows it
(K terms, magnitudes at most A and B), otherwise with the further moduli that this bound needs. So nothing is
lost in partial sums. A result is in the range of the operands' moduli just when its residues modulo these
imply its residues modulo the others (docs/exact-operations.md).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from rnsdask.backend import Array, kernels_of
from rnsdask.core.moduli import MODULUS_MAX, ModuliSet
from rnsdask.core.place import Locate
from rnsdask.rns.arithmetic import apply
from rnsdask.rns.blocks import with_overflow
from rnsdask.rns.bounds import measured_bound
from rnsdask.rns.evaluation import interval_evaluation
from rnsdask.rns.extend import base_extend
from rnsdask.rns.system import RNS

# Relative width of the intervals that bound the magnitudes in a chunk. It adds less than 1/1000 of a bit.
_ACCURACY = 2.0**-13
_LEAST_EXPONENT = -(2**30)
_LEAST_SHIFT = -500

_CACHED_SETS = 256

# Fewest products of a matrix that is multiplied by itself; smaller ones are multiplied all together.
SMALL_PRODUCT = 2**12


@dataclass(frozen=True)
class Product:
    """A matrix product, or a part of one that is to be added to other parts.

    Residues (n + p, *batch, I, J) are under the moduli set :func:`enlarged` by p moduli for `reach`, the
    bound of the numbers' magnitudes.
    """

    residues: Array
    reach: int


@lru_cache(_CACHED_SETS)
def _add_moduli(moduli: ModuliSet, count: int) -> ModuliSet:
    """The set and the `count` greatest moduli that are coprime to all others; a prefix of longer sets."""
    further: list[int] = []
    product, candidate = moduli.product, MODULUS_MAX
    while len(further) < count:
        if math.gcd(product, candidate) == 1:
            further.append(candidate)
            product *= candidate
        candidate -= 1
    return ModuliSet((*moduli, *further)) if count else moduli


@lru_cache(_CACHED_SETS)
def _find_moduli(moduli: ModuliSet, count: int) -> ModuliSet:
    return ModuliSet(_add_moduli(moduli, count).moduli[len(moduli) :])


def enlarged(system: RNS, reach: int) -> RNS:
    """The system with the fewest further moduli, possibly none, that hold magnitudes up to `reach`.

    With further moduli it is signed. The set for a greater reach begins with the set for a smaller one.
    """
    # A modulus adds at most this number of bits, so fewer moduli would not suffice.
    count = max(0, reach.bit_length() - system.moduli.bits) // 32
    while True:
        signed = system.signed or count > 0
        moduli = _add_moduli(system.moduli, count)
        if moduli.value_range(signed)[1] >= reach:
            return RNS(moduli, signed)
        count += 1


def is_known_to_fit(system: RNS, reach: int) -> bool:
    """Whether all numbers up to `reach` in magnitude are in the range of the system."""
    return reach <= system.value_range[1]


def multiply(a: Array, b: Array, moduli: ModuliSet) -> Array:
    """Matrix products modulo M of residues (n, *batch, I, K) and (n, *batch, K, J) in any layout."""
    batch = np.broadcast_shapes(a.shape[1:-2], b.shape[1:-2])
    a, b = (np.broadcast_to(x, (len(x), *batch, *x.shape[-2:])) for x in (a, b))
    terms, count = a.shape[-1], math.prod(batch)
    products = len(moduli) * a.shape[-2] * terms * b.shape[-1]
    if 0 < terms < count and products < SMALL_PRODUCT:
        return _multiply_small(a, b, moduli)
    out = np.empty_like(a, shape=(len(moduli), *batch, a.shape[-2], b.shape[-1]), order="C")
    if out.size:
        _multiply_stacks(a, b, moduli, out)
    return out


def _multiply_stacks(a: Array, b: Array, moduli: ModuliSet, out: Array) -> None:
    """Multiply stacks of matrices, broadcast to the batch of `out`, into contiguous memory."""
    last = out.ndim - 4
    axis = next((k for k in range(1, last + 1) if _is_one_axis(a, k) and _is_one_axis(b, k)), None)
    if last <= 0:
        shape = (len(out), math.prod(out.shape[1:-2]))
        x, y, result = (z.reshape(*shape, *z.shape[-2:]) for z in (a, b, out))
        kernels_of(out).matmul(x, y, moduli, result)
    elif axis is not None:
        x, y, result = (
            z.reshape(*z.shape[:axis], math.prod(z.shape[axis : axis + 2]), *z.shape[axis + 2 :])
            for z in (a, b, out)
        )
        _multiply_stacks(x, y, moduli, result)
    else:
        axis = 1 + int(np.argmin(out.shape[1:-2]))
        for k in range(out.shape[axis]):
            place = (*(slice(None),) * axis, k)
            part = np.empty_like(out[place], order="C")
            _multiply_stacks(a[place], b[place], moduli, part)
            out[place] = part


def _is_one_axis(x: Array, axis: int) -> bool:
    """Whether an axis and the next one can be joined without a copy."""
    return bool(1 in x.shape[axis : axis + 2] or x.strides[axis] == x.shape[axis + 1] * x.strides[axis + 1])


def _multiply_small(a: Array, b: Array, moduli: ModuliSet) -> Array:
    """Multiply many small matrices, one term of all results at a time."""
    total = None
    for k in range(a.shape[-1]):
        factors = a[..., k : k + 1], b[..., k : k + 1, :]
        if total is None:
            total = apply("multiply", factors, RNS(moduli), "wrap")
        else:
            total = apply("fma", (*factors, total), RNS(moduli), "wrap")
    return total


def exact_product(a: Array, b: Array, systems: Sequence[RNS]) -> Product:
    """Exact matrix product, as by :func:`multiply`, of numbers of systems that differ only by bounds.

    If these do not prove that all results are in range, better bounds are measured.
    """
    measured, larger, reach = measure_sums(a, b, a.shape[-1], systems)
    a, b = (extended(x, system, larger) for x, system in zip((a, b), measured, strict=True))
    return Product(multiply(a, b, larger), reach)


def measure_sums(
    a: Array, b: Array, terms: int, systems: Sequence[RNS], *, differences: bool = False
) -> tuple[tuple[RNS, RNS], ModuliSet, int]:
    """Moduli that hold all sums of at most `terms` products of numbers of `a` and of `b`.

    Systems are as in :func:`exact_product`; with `differences`, products are also subtracted. Return the
    systems with possibly better bounds; the moduli of :func:`enlarged` for a reach; and that reach, the bound
    of all sums' magnitudes.
    """
    system = systems[0]
    bounds = [known.known_magnitude for known in systems]
    for measure in (measured_bound, greatest_magnitude):
        reach = terms * bounds[0] * bounds[1]
        if is_known_to_fit(system, reach):
            break
        # The first may give nearly twice the magnitudes; the second takes longer.
        if measure is greatest_magnitude and not is_known_to_fit(system, reach // 4):
            break
        measured = (measure(x, system.with_bound(None)) for x in (a, b))
        bounds = [min(pair) for pair in zip(bounds, measured, strict=True)]
    reach = terms * bounds[0] * bounds[1]
    if differences and not system.signed:  # negative numbers are out of range, and need further moduli
        reach = max(reach, system.moduli.product)
    first, second = (system.with_bound(bound) for bound in bounds)
    return (first, second), enlarged(system, reach).moduli, reach


def extended(x: Array, system: RNS, moduli: ModuliSet) -> Array:
    """Extend residues to another moduli set."""
    return x if moduli == system.moduli else base_extend(x, system, moduli)


def greatest_magnitude(residues: Array, system: RNS) -> int:
    """Upper bound of the magnitudes of numbers, at most a thousandth above the greatest."""
    if residues[0].size == 0:
        return 0
    interval = interval_evaluation(residues, system, _ACCURACY)
    magnitudes = np.maximum(abs(interval.low), abs(interval.upp))
    # The exponent of 0 is meaningless.
    exponents = np.where(magnitudes == 0, _LEAST_EXPONENT, interval.exponent)
    top = int(exponents.max())
    # At a common exponent bounds are comparable; one that is cut off is far below the greatest, and only
    # grows.
    shifts = np.maximum(exponents - top, _LEAST_SHIFT).astype(np.int32)
    numerator, denominator = float(np.ldexp(magnitudes, shifts).max()).as_integer_ratio()
    product = numerator * system.moduli.product
    return (product << top if top >= 0 else product >> -top) // denominator


def add(parts: Sequence[Product], system: RNS) -> Product:
    """Add parts of a product."""
    reach = sum(part.reach for part in parts)
    larger = enlarged(system, reach)
    total = None
    for part in parts:
        own = enlarged(system, part.reach)
        residues = part.residues
        if own != larger:
            residues = base_extend(residues, own.with_bound(part.reach), larger.moduli)
        total = residues if total is None else sum_modulo(total, residues, larger.moduli)
    assert total is not None
    return Product(total, reach)


def sum_modulo(a: Array, b: Array, moduli: ModuliSet) -> Array:
    """Sum modulo M of two arrays of the same shape (n, *shape)."""
    out = np.empty_like(a, shape=(len(moduli), a[0].size), order="C")
    kernels_of(out).apply("add", (a.reshape(len(moduli), -1), b.reshape(len(moduli), -1)), moduli, out)
    return out.reshape(a.shape)


def overflows(product: Product, system: RNS) -> Array:
    """Mask (*batch, I, J) of the numbers outside the range of the system."""
    n, count = system.rows, len(product.residues) - system.rows
    inner = product.residues[:n]
    if count == 0:
        return np.zeros_like(inner[0], dtype=np.bool_)
    # A result that fits is the number with these residues in the range, so its other residues agree as well.
    expected = base_extend(inner, system.with_bound(None), _find_moduli(system.moduli, count))
    return (expected != product.residues[n:]).any(axis=0)


def finish(product: Product, system: RNS, mode: str, locate: Locate = int) -> Array:
    """Convert an exact product to residues of the system, with the mode ``"raise"`` or ``"flag"``."""
    inner, mask = product.residues[: system.rows], overflows(product, system)

    def error(index: int) -> Exception:
        value = enlarged(system, product.reach).decode_at(product.residues, index)
        return system.overflow_error(value, locate(index))

    return with_overflow(inner, mask, mode, error)
