"""By what positional numbers are computed: loops of the processor's vectors, or GMP, as measured.

The loops take some numbers at once, GMP one after another in less time if they are long or few
(docs/limb-arithmetic.md).
"""

import math
from functools import lru_cache
from typing import NamedTuple

import gmpy2.gmpy2

from rnsdask.backend.cpu.extension import _cpu

GMP = "gmp"


class _Loops(NamedTuple):
    """From how many limbs to how many loops are quicker, and how many times if all lanes have a number."""

    least: int
    most: float
    gain: float


_LANES = {"avx2": 4, "ifma": 8}

_QUICKER = {
    "avx2": {
        "multiply": _Loops(1, 768, 1.3),
        "multiply_low": _Loops(1, 1536, 1.5),
        "divmod": _Loops(16, 256, 1.2),
        "divmod_short": _Loops(1, 16, 1.3),
        "mod_multiply": _Loops(1, 384, 1.3),
        "mod_power": _Loops(1, 512, 1.5),
        "mod_inverse": _Loops(1, 112, 1.4),
    },
    "ifma": {
        "multiply": _Loops(1, math.inf, 2.5),
        "multiply_low": _Loops(1, math.inf, 3.0),
        "divmod": _Loops(1, 2048, 1.5),
        "divmod_short": _Loops(1, 128, 1.3),
        "mod_multiply": _Loops(1, 3072, 2.0),
        "mod_power": _Loops(1, 1024, 2.4),
        "mod_inverse": _Loops(1, 256, 1.5),
    },
}

MOST_PRODUCT_LIMBS = {GMP: 2**32, "avx2": 4095, "ifma": 9216}
"""Of products that are quicker than by transforms."""


def positional_methods() -> list[str]:
    """The ways to multiply positional numbers that this processor has: "gmp", and levels, the best last."""
    return [GMP, *_cpu.positional_levels()]


best_method = positional_methods()[-1]


def method_for(operation: str, limbs: int, count: int) -> str:
    """The quickest one for numbers of so many limbs."""
    if best_method == GMP:
        return GMP
    loops, lanes = _QUICKER[best_method][operation], _LANES[best_method]
    if not loops.least <= limbs <= loops.most:
        return GMP
    return best_method if loops.gain * count > -(-count // lanes) * lanes else GMP


@lru_cache(1)
def gmp() -> _cpu.Gmp:
    """The functions of the GMP that gmpy2 has loaded."""
    return _cpu.Gmp(gmpy2.gmpy2.__file__)
