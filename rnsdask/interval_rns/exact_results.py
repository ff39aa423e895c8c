"""Bits of exact results of arrays of numbers with intervals, to choose the moduli that hold them."""

import math
from typing import Any

from rnsdask.core.errors import abbreviate
from rnsdask.core.ways import Message, Way


def bits_of_sum(x: Any, *_: Any, **__: Any) -> int:
    """Most bits of the sum of all numbers of an array."""
    return int(x.system.moduli.bits + math.prod(x.words.shape[1:]).bit_length())


def bits_of_matmul(a: Any, *_: Any) -> int:
    """Most bits of an element of a matrix product."""
    return int(2 * a.system.moduli.bits + a.words.shape[-1].bit_length())


def bits_of_convolution(a: Any, *_: Any, **__: Any) -> int:
    """Most bits of an element of a convolution."""
    return int(2 * a.system.moduli.bits + max(a.words.shape).bit_length())


def check_power_modulo(x: Any, _: Any, modulus: int) -> None:
    """Raise ValueError if the range does not hold all remainders."""
    highest = x.system.value_range[1]
    if abs(modulus) - 1 > highest:
        raise ValueError(
            Message(
                f"powers modulo {abbreviate(modulus)} do not fit the moduli set, whose range ends at "
                f"{abbreviate(highest)}; ",
                Way.EXTEND,
                " takes more moduli",
            )
        )
