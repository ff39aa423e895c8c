"""Element-wise arithmetic, with or without a check of the results' range, and running sums."""

from collections.abc import Sequence
from typing import Any

import cupy
import numpy as np

from rnsdask.backend.cuda import launching
from rnsdask.backend.cuda.launching import (
    Parameter,
    is_aligned,
    modulus_table_on,
    on_device,
    results,
    row_stride,
)
from rnsdask.backend.cuda.layout import MAX_OPERANDS, SUM_TEST, TASK, WINDOW_TEST
from rnsdask.backend.cuda.wide import wide_apply, wide_inverse, wide_power
from rnsdask.backend.protocol import Array, Moduli
from rnsdask.constants import KeyConstants, SumCheck, WindowCheck
from rnsdask.core.moduli import ModuliSet
from rnsdask.core.wide_moduli import WideModuli


def arithmetic_task(operands: tuple[Array, ...], moduli: ModuliSet, out: Array) -> Parameter:
    """Description of operands that are on the device, and of the result."""
    rows, count = out.shape
    places, aligned = [], is_aligned(out)
    for x in operands:
        is_one = x.shape[1] == 1
        places.append((x, int(row_stride(x)), 0 if is_one else 1))
        aligned = aligned and (is_one or is_aligned(x))
    return Parameter(
        TASK,
        x=places + [(0, 0, 0)] * (MAX_OPERANDS - len(places)),
        out=out,
        out_stride=int(row_stride(out)),
        count=count,
        vectors=count // 4 if aligned else 0,
        moduli=modulus_table_on(moduli, cupy.cuda.runtime.getDevice()),
        rows=rows,
    )


def _on_gpu(operands: Sequence[Array]) -> tuple[Array, ...]:
    """Operands as CuPy arrays; an operand of one number may be NumPy's."""
    return tuple([x if isinstance(x, cupy.ndarray) else cupy.asarray(x) for x in operands])


def apply(operation: str, operands: Sequence[Array], moduli: Moduli, out: Array) -> None:
    if isinstance(moduli, WideModuli):
        wide_apply(operation, operands, moduli, out)
        return
    task = arithmetic_task(_on_gpu(operands), moduli, out)
    launching.launch("arithmetic", f"{operation}_plain", -(-out.size // 16), (task,))


def apply_checked(
    operation: str, operands: Sequence[Array], moduli: ModuliSet, check: SumCheck, out: Array
) -> Array | None:
    test = np.array(check.limits, dtype=SUM_TEST)[()]
    return _launch_keyed("arithmetic_checked", operation, operands, moduli, (), check.keys, test, out)


def apply_windowed(
    operation: str, operands: Sequence[Array], moduli: ModuliSet, check: WindowCheck, out: Array
) -> Array | None:
    test = np.array(check.limits, dtype=WINDOW_TEST)[()]
    deciding = (np.int32(check.deciding),)
    return _launch_keyed("arithmetic_windowed", operation, operands, moduli, deciding, check.keys, test, out)


def _launch_keyed(
    module: str,
    operation: str,
    operands: Sequence[Array],
    moduli: ModuliSet,
    selection: tuple[Any, ...],
    keys: KeyConstants,
    test: Any,
    out: Array,
) -> Array | None:
    states, not_fitting = cupy.empty(out.shape[1], dtype=cupy.uint8), results()
    task = arithmetic_task(_on_gpu(operands), moduli, out)
    coefficients = (on_device(keys, "coefficients"), np.uint64(keys.start))
    arguments = (task, *selection, *coefficients, test, states, not_fitting.host)
    threads = -(-out.shape[1] // 4)
    blocks = launching.launch(module, f"{operation}_{module}", threads, arguments, shared=8 * len(moduli))
    return states if not_fitting.read(blocks).any() else None


def power(a: Array, exponent: int, moduli: Moduli, out: Array) -> None:
    if isinstance(moduli, WideModuli):
        wide_power(a, exponent, moduli, out)
        return
    launching.launch(
        "arithmetic", "power", out.size, (arithmetic_task((a,), moduli, out), np.uint64(exponent))
    )


def inverse(a: Array, moduli: Moduli, out: Array) -> None:
    if isinstance(moduli, WideModuli):
        wide_inverse(a, moduli, out)
        return
    launching.launch("arithmetic", "inverse", out.size, (arithmetic_task((a,), moduli, out),))


_BLOCK = 2**22
"""Words added up at a time: a scan of many rows takes no more calls than a scan of one row."""


def running_sums(residues: Array, starts: Array, moduli: ModuliSet) -> Array:
    moved = residues.transpose(0, 1, 3, 2)
    n, outer, inner, length = moved.shape
    count = n * outer * inner
    rows, last = moved.reshape(count, length), starts.reshape(count, 1).astype(np.uint64)
    sizes = np.repeat(np.array(list(moduli), dtype=np.uint64), outer * inner)[:, None]
    sizes = np.asarray(sizes, like=residues)
    result = np.empty_like(rows, order="C")
    width = max(1, min(length, _BLOCK))
    height = max(1, _BLOCK // width)
    for top in range(0, count, height):
        lines = slice(top, top + height)
        for first in range(0, length, width):
            block = lines, slice(first, first + width)
            totals = _sums(rows[block], last[lines], sizes[lines])
            result[block] = totals
            last[lines] = totals[:, -1:]
    sums = result.reshape(moved.shape).transpose(0, 1, 3, 2)
    return sums if inner == 1 else sums.copy()  # by their method: NumPy's function is not CuPy's


def _sums(terms: Array, before: Array, sizes: Array) -> Array:
    """Running sums of each row after what is before it, modulo its modulus: uint64."""
    # CuPy is quicker along an array of one axis. What a row's sums have of the rows above is taken off again,
    # modulo 2**64; all sums are below 2**22 2**32.
    totals = np.cumsum(terms, axis=None, dtype=np.uint64).reshape(terms.shape)
    offsets = before.copy()
    offsets[1:] -= totals[:-1, -1:]
    totals += offsets
    totals -= totals // sizes * sizes  # quicker than %
    return totals
