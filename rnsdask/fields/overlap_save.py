"""Convolutions by cyclic ones: of numbers with zeros after them, or of blocks of them ("overlap-save").

Arrays are of residues or digits, (n, *shape), on NumPy or CuPy. No Dask in here.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from rnsdask.backend import Array
from rnsdask.constants.factors import CACHED_SETS

# What a transform costs besides its butterflies, as levels of them: copies and the product.
_LEVELS_BESIDE = 4


@dataclass(frozen=True)
class Plan:
    """How convolutions are computed.

    Attributes
    ----------
    short : int
        Length of the shorter operand.
    length : int
        Of the transforms.
    blocks : int
        So many of the longer operand are transformed.
    first, stop : int
        The numbers wanted.
    step : int
        How many of them a block gives.
    """

    short: int
    length: int
    blocks: int
    first: int
    stop: int
    step: int


@lru_cache(CACHED_SETS)
def plan_for(longer: int, short: int, first: int, stop: int, longest: int) -> Plan | None:
    """The way with the fewest butterflies, by transforms up to the longest one; None if that is too short."""
    # Numbers that a single cyclic convolution folds onto those that are wanted must be none.
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
    """(n, *batch, length) as runs, contiguous each; one if all are the same by broadcasting."""
    if math.prod(x.shape[1:-1]) != 1:
        x = x[(slice(None), *(None,) * (len(batch) - x.ndim + 2))]
        x = np.broadcast_to(x, (len(x), *batch, x.shape[-1]))
    x = x.reshape(len(x), -1, x.shape[-1])
    return x if x.shape[-1] == 1 or x.strides[-1] == x.itemsize else x.copy()


def padded(x: Array, length: int) -> Array:
    """Numbers with as many zeros after them as make the last axis so long."""
    out = np.empty_like(x, shape=(*x.shape[:-1], length), order="C")
    out[..., : x.shape[-1]] = x
    out[..., x.shape[-1] :] = 0
    return out


def blocks(x: Array, plan: Plan) -> Array:
    """(n, runs, blocks, length): each block has the numbers that its own take, and then those of the next."""
    if plan.blocks == 1:
        return padded(x, plan.length)[:, :, None]
    overlap, count = plan.short - 1, plan.blocks * plan.step
    # From number first - overlap on, with zeros before and after the operand's.
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
    """(n, runs, blocks, length) as runs that go together one by one, or of which one serves for all."""
    shape = np.broadcast_shapes(x.shape[1:3], y.shape[1:3])
    parts = (
        v if math.prod(v.shape[1:3]) == 1 else np.broadcast_to(v, (len(v), *shape, v.shape[-1]))
        for v in (x, y)
    )
    a, b = (v.reshape(len(v), -1, v.shape[-1]) for v in parts)
    return a, b


def wanted(products: Array, plan: Plan) -> Array:
    """The numbers that are wanted of cyclic products (n, runs * blocks, length)."""
    if plan.blocks == 1:
        return products[..., plan.first : plan.stop]
    numbers = products[..., plan.short - 1 :].reshape(len(products), -1, plan.blocks * plan.step)
    return numbers[..., : plan.stop - plan.first]
