"""Convolutions of chunks of elements of Fermat fields, along their last axis. No Dask in here."""

import math

import numpy as np

from rnsdask.backend import Array
from rnsdask.core import rows
from rnsdask.fields.convolution import Plan, as_runs, blocks, expanded, padded, plan_for, wanted
from rnsdask.fields.fermat_field import FermatField

# Operands shorter than this are multiplied element by element.
_SHORT = 6

# Words of an operand that are transformed at a time, to bound the memory in addition to a chunk.
_CPU_WORDS = 2**20
_GPU_WORDS = 2**24


def longest_transform(field: FermatField) -> int:
    """The greatest power of two that divides p - 1."""
    return (field.modulus - 1) & (1 - field.modulus)


def convolve(x: Array, y: Array, system: FermatField, first: int = 0, stop: int | None = None) -> Array:
    """Convolutions modulo p of digits (k, *batch, A), as :func:`.convolution.convolve` defines them."""
    if x.shape[-1] < y.shape[-1]:
        x, y = y, x
    short, stop = y.shape[-1], x.shape[-1] + y.shape[-1] - 1 if stop is None else stop
    if short <= _SHORT:
        return _by_sums(x, y, system, first, stop)
    start = max(0, first - short + 1)  # of the elements that the wanted results depend on
    x = x[..., start:stop]
    return _by_transforms(x, y, system, _plan(system, x.shape[-1], short, first - start, stop - start))


def _plan(field: FermatField, longer: int, short: int, first: int, stop: int) -> Plan:
    longest = longest_transform(field)
    plan = plan_for(longer, short, first, stop, longest)
    if plan is None:
        raise ValueError(
            f"the field modulo {field} has roots of unity for transforms of at most {longest} elements, so "
            f"for no convolution of {longer} by {short}"
        )
    return plan


def convolve_cyclic(x: Array, y: Array, field: FermatField, negacyclic: bool = False) -> Array:
    """Cyclic convolutions: elements of :func:`convolve` from N on are added to the first, or subtracted."""
    length = x.shape[-1]
    if length > _SHORT and has_cyclic_transform(field, length, negacyclic):
        return _by_transforms(x, y, field, Plan(length, length, 1, 0, length, length), negacyclic)
    found = convolve(x, y, field)
    after = length - 1
    parts = found[..., :after], found[..., length:]
    folded = field.apply(rows.subtract if negacyclic else rows.add, *parts)
    return np.concatenate([folded, found[..., after:length]], axis=-1)


def has_cyclic_transform(field: FermatField, length: int, negacyclic: bool) -> bool:
    """Whether a cyclic convolution of this length is a product of transforms of the same length."""
    return length.bit_count() == 1 and length * (1 + negacyclic) <= longest_transform(field)


def check_lengths(field: FermatField, lengths: tuple[int, int], mode: str) -> None:
    """Raise ValueError if no root of unity serves a convolution, even by parts of the longer operand."""
    short, longer = sorted(lengths)
    is_whole = mode.endswith("cyclic") and has_cyclic_transform(field, longer, mode == "negacyclic")
    if short > _SHORT and not is_whole:
        _plan(field, longer, short, 0, longer + short - 1)


def _by_sums(x: Array, y: Array, field: FermatField, first: int, stop: int) -> Array:
    """Convolve by adding the products with each element of `y`."""
    batch = np.broadcast_shapes(x.shape[1:-1], y.shape[1:-1])
    out = np.zeros_like(x, shape=(len(x), *batch, stop - first), order="C")
    for j in range(y.shape[-1]):
        low, high = max(first - j, 0), min(stop - j, x.shape[-1])
        if low < high and out.size:
            place = (..., slice(low + j - first, high + j - first))
            terms = x[..., low:high], y[..., j : j + 1], out[place]
            out[place] = field.apply(rows.fma, *terms)
    return out


def _by_transforms(x: Array, y: Array, field: FermatField, plan: Plan, negacyclic: bool = False) -> Array:
    batch = np.broadcast_shapes(x.shape[1:-1], y.shape[1:-1])
    if not math.prod(batch):
        return np.zeros_like(x, shape=(len(x), *batch, plan.stop - plan.first), order="C")
    cut = blocks(as_runs(x, batch), plan), padded(as_runs(y, batch), plan.length)[:, :, None]
    products = _cyclic_products(*expanded(*cut), field, negacyclic)
    return wanted(products, plan).reshape(len(x), *batch, plan.stop - plan.first)


def _cyclic_products(x: Array, y: Array, field: FermatField, negacyclic: bool) -> Array:
    """Cyclic convolutions of runs (k, runs, N) by products of transforms; a single run serves for all."""

    def transformed(part: Array, inverse: bool = False) -> Array:
        found: Array = field.apply(rows.transform, part, axis=1, inverse=inverse, negacyclic=negacyclic)
        return found

    if x.shape[1] < y.shape[1]:
        x, y = y, x
    one = transformed(y) if y.shape[1] == 1 else None
    out = np.empty_like(x, order="C")
    step = max(1, (_CPU_WORDS if isinstance(x, np.ndarray) else _GPU_WORDS) // (len(x) * x.shape[2]))
    for start in range(0, x.shape[1], step):
        part = np.s_[:, start : start + step]
        other = transformed(y[part]) if one is None else one
        out[part] = transformed(field.apply(rows.multiply, transformed(x[part]), other), inverse=True)
    return out
