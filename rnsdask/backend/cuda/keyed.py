"""Kernels that order numbers by their keys: reductions and comparison."""

import functools
from typing import Any

import cupy
import numpy as np

from rnsdask.backend.cuda import launching
from rnsdask.backend.cuda.launching import (
    SHARED_BYTES,
    Parameter,
    is_aligned,
    on_device,
    results,
    row_stride,
)
from rnsdask.backend.cuda.layout import (
    BLOCK,
    EXTREMUM,
    KEY_TABLE,
    KEY_VECTORS,
    NUMBERS,
    PAIR_VECTORS,
    PARAMETER_TABLE_SIZE,
    SCALAR_TABLE,
    SCAN_TILE,
    SUM_VECTORS,
    WARP,
)
from rnsdask.backend.cuda.variants import SHARED_TABLE
from rnsdask.backend.protocol import Array, Extremum, KeySums
from rnsdask.constants import KeyConstants
from rnsdask.constants.factors import CACHED_SETS

_FLIP = {False: np.uint64(0), True: np.uint64(2**64 - 1)}
_FLAGS = 8  # that a thread looks at together
_GATHERING_THREADS = 2**16  # that few numbers are gathered by


def _numbers(residues: Array, constants: KeyConstants) -> Parameter:
    count = residues.shape[1]
    return Parameter(
        NUMBERS,
        residues=residues,
        stride=row_stride(residues),
        count=count,
        vectors=count // 4 if is_aligned(residues) else 0,
        start=constants.start,
        ambiguous_below=constants.ambiguous_below,
        moduli=residues.shape[0],
    )


def _threads(numbers: Parameter, vectors_each: int) -> int:
    """Threads that keep a kernel busy: one for several vectors, or one for each number outside of vectors."""
    vectors, count = int(numbers.fields["vectors"]), int(numbers.fields["count"])
    return max(-(-vectors // vectors_each), count - 4 * vectors)


def _coefficients(constants: KeyConstants) -> tuple[tuple[str, ...], Any, int]:
    """Options of the compiler, argument, and bytes of shared memory for the table of coefficients."""
    count = len(constants.coefficients)
    if count > PARAMETER_TABLE_SIZE:
        return SHARED_TABLE, on_device(constants, "coefficients"), 8 * count
    return (), _key_table(constants), 0


@functools.lru_cache(CACHED_SETS)
def _key_table(constants: KeyConstants) -> Any:
    table = np.zeros((), dtype=KEY_TABLE)
    table["c"][: len(constants.coefficients)] = constants.coefficients
    return table[()]


def extremum(residues: Array, constants: KeyConstants, minimum: bool) -> Extremum:
    n = residues.shape[0]
    numbers = _numbers(residues, constants)
    defines, table, shared = _coefficients(constants)
    found = results()
    places = (found.arrived, found.partials, found.host, found.host + np.uint64(EXTREMUM.itemsize))
    arguments = (numbers, table, _FLIP[minimum], *places)
    threads = _threads(numbers, KEY_VECTORS)
    launching.launch("extremum", "extremum", threads, arguments, shared=shared, defines=defines)
    words = found.read(EXTREMUM.itemsize // 8 + (n + 1) // 2)
    best, runner_up, index, ambiguous = words[:4].tolist()
    if best == 0:
        return Extremum(0, -1, runner_up, ambiguous, [])
    return Extremum(best, index, runner_up, ambiguous, words[4:].view(np.uint32)[:n].tolist())


def row_sums(residues: Array, constants: KeyConstants) -> KeySums:
    n = residues.shape[0]
    numbers = _numbers(residues, constants)
    defines, table, shared = _coefficients(constants)
    # Each warp keeps n sums of 64 bits in shared memory: many moduli leave room for fewer warps.
    warps = min(BLOCK // WARP, (SHARED_BYTES - shared) // (8 * n))
    if warps < 1:
        raise ValueError(f"sums on a GPU are limited to {SHARED_BYTES // 16} moduli, got {n}")
    found = results()
    arguments = (numbers, table, found.arrived, found.sums, found.host)
    shared += 8 * n * warps
    threads = _threads(numbers, SUM_VECTORS)
    how: dict[str, Any] = {"block": warps * WARP, "shared": shared, "defines": defines}
    launching.launch("sum", "row_sums", threads, arguments, **how)
    *rows, low, high, ambiguous = found.read(n + 3).tolist()
    return KeySums(rows, low + (high << 32), ambiguous)


def candidates(residues: Array, constants: KeyConstants, minimum: bool, threshold: int) -> Array:
    flags = cupy.empty(residues.shape[1], dtype=cupy.bool_)
    arguments = (
        _numbers(residues, constants),
        on_device(constants, "coefficients"),
        _FLIP[minimum],
        np.uint64(threshold),
        flags,
    )
    shared = 8 * len(constants.coefficients)
    threads = _threads(arguments[0], KEY_VECTORS)
    launching.launch("candidates", "candidates_shared", threads, arguments, shared=shared)
    return flags


def compare(a: Array, b: Array, constants: KeyConstants, settled_key: int | None = None) -> tuple[Array, int]:
    order, undecided = cupy.empty(a.shape[1], dtype=cupy.int8), results()
    numbers = _numbers(a, constants)
    defines, table, shared = _coefficients(constants)
    second: tuple[Any, ...]
    if isinstance(b, np.ndarray):
        key = constants.key_of(b[:, 0].tolist()) if settled_key is None else settled_key
        kind, second = "scalar", (_scalar(b[:, 0]), np.uint64(key))
    else:
        other = _numbers(b, constants)
        vectors = min(numbers.fields["vectors"], other.fields["vectors"])
        numbers.fields["vectors"] = other.fields["vectors"] = vectors
        kind, second = "arrays", (other,)
    arguments = (numbers, *second, table, np.uint64(constants.slack), order, undecided.host)
    threads = _threads(numbers, PAIR_VECTORS)
    how: dict[str, Any] = {"shared": shared, "defines": defines}
    blocks = launching.launch("compare", f"compare_{kind}", threads, arguments, **how)
    return order, int(undecided.read(blocks).sum())


def _scalar(residues: Any) -> Any:
    """The argument for the residues of one number, which are where the coefficients are too."""
    if len(residues) > PARAMETER_TABLE_SIZE:
        return cupy.asarray(residues)
    table = np.zeros((), dtype=SCALAR_TABLE)
    table["x"][: len(residues)] = residues
    return table[()]


def find_unset(flags: Array, few: int) -> Array:
    found = cupy.zeros(1 + few, dtype=cupy.uint64)
    arguments = (flags, np.int64(flags.size), np.uint64(few), found)
    launching.launch("candidates", "find_unset", -(-flags.size // _FLAGS), arguments)
    count, indices = np.split(found.get().view(np.int64), [1])
    return np.sort(indices[: count[0]]) if count[0] <= few else (~flags).nonzero()[0]


def running_maximum(values: Array) -> Array:
    tiles = -(-values.size // SCAN_TILE)
    found, tops = cupy.empty(values.size, np.uint64), cupy.empty(tiles, np.uint64)
    count = np.int64(values.size)
    if tiles:
        arguments = (values, count, found, tops)
        launching.launch("scan", "maximum_in_tiles", tiles * BLOCK, arguments, strides=False)
    if tiles > 1:
        launching.launch("scan", "above_tops", values.size, (found, count, running_maximum(tops)))
    return found


def gather(residues: Array, indices: Array) -> Array:
    n, chosen = residues.shape[0], indices.size
    indices = cupy.asarray(indices, order="C")  # a view of one line of an array may not be
    out = cupy.empty((n, chosen), dtype=cupy.uint32)
    parts = max(
        1, min(n, _GATHERING_THREADS // max(1, chosen))
    )  # of a few numbers, rows are read side by side
    counts = np.int64(chosen), np.int32(parts)
    arguments = (residues, row_stride(residues), np.int32(n), indices, *counts, out)
    launching.launch("candidates", "gather", chosen * parts, arguments)
    return out


def put(values: Array, indices: Array, out: Array) -> None:
    values, indices = (cupy.asarray(array, order="C") for array in (values, indices))
    launching.launch("candidates", "put", indices.size, (values, indices, np.int64(indices.size), out))
