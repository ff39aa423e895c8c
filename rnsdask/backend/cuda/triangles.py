"""Inverses of small triangular matrices modulo primes."""

import cupy

from rnsdask.backend.cuda import launching
from rnsdask.backend.cuda.launching import Parameter, modulus_table_on
from rnsdask.backend.cuda_layout import INVERSE_LANES, MOST_INVERTED, TRIANGLES
from rnsdask.backend.protocol import Array
from rnsdask.core.moduli import ModuliSet


def inverses(x: Array, moduli: ModuliSet) -> tuple[Array, Array]:
    """Of the factors L and U in square matrices of at most `MOST_INVERTED` rows."""
    lower, upper = (cupy.empty(x.shape, dtype=cupy.uint32) for _ in range(2))
    _invert(x, moduli, lower=lower, upper=upper)
    return lower, upper


def lower_inverses(x: Array, ranks: tuple[Array, Array], size: int, moduli: ModuliSet) -> Array:
    """Of the factors L in rows and columns from the first rank to the second, at most `size`."""
    lower = cupy.empty((*x.shape[:2], size, size), dtype=cupy.uint32)
    _invert(x, moduli, first=ranks[0], last=ranks[1], lower=lower)
    return lower


def _invert(x: Array, moduli: ModuliSet, lower: Array, **more: Array) -> None:
    n, count, size, _ = lower.shape
    task = Parameter(
        TRIANGLES,
        x=(x, *(stride // x.itemsize for stride in x.strides)),
        lower=lower,
        moduli=modulus_table_on(moduli, cupy.cuda.runtime.getDevice()),
        moduli_count=n,
        count=count,
        size=size,
        **more,
    )
    block = MOST_INVERTED * INVERSE_LANES
    blocks = n * count * (2 if "upper" in more else 1)
    launching.launch("triangles", "invert_triangles", blocks * block, (task,), block=block)
