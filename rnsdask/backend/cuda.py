"""The kernels for CuPy arrays, compiled at first use and cached on disk (see :class:`.protocol.Kernels`).

All work goes to the current device and stream, which must be the ones of the arrays.
"""

import functools
from collections.abc import Sequence
from typing import Any

import cupy
import numpy as np

from rnsdask.backend import cuda_sources
from rnsdask.backend.protocol import (
    INTERVAL_OPERATIONS,
    Array,
    Bounds,
    Extremum,
    IntervalGoal,
    KeySums,
)
from rnsdask.constants import (
    ExtensionConstants,
    FixedPointConstants,
    ForwardConstants,
    IntervalConstants,
    KeyConstants,
    MixedRadixConstants,
    ProductBounds,
    ReverseConstants,
    SumCheck,
    WindowCheck,
    last_residues,
    modulus_table,
)
from rnsdask.moduli import ModuliSet

_BLOCK = 256
_BLOCKS_PER_PROCESSOR = 8
_WARP = 32
_PROCESSOR_COUNT = 16  # cudaDevAttrMultiProcessorCount
_FLIP = {False: np.uint64(0), True: np.uint64(2**64 - 1)}

# As in kernels/include/rns/numbers.cuh, cuda/compare.cu and cuda/reduce.cu: the tables of coefficients and of
# one number's residues as kernel parameters, the description of an array of numbers, a block's result.
_PARAMETER_TABLE_SIZE = 256
_KEY_TABLE = np.dtype([("c", np.uint64, (_PARAMETER_TABLE_SIZE,))])
_SCALAR_TABLE = np.dtype([("x", np.uint32, (_PARAMETER_TABLE_SIZE,))])
_NUMBERS = np.dtype(
    [
        ("residues", np.uint64),
        ("stride", np.int64),
        ("count", np.int64),
        ("vectors", np.int64),
        ("start", np.uint64),
        ("ambiguous_below", np.uint64),
        ("moduli", np.int32),
    ],
    align=True,
)
_EXTREMUM = np.dtype(
    [("best", np.uint64), ("runner_up", np.uint64), ("index", np.int64), ("ambiguous", np.uint64)]
)
_KEY_VECTORS = 2  # that a thread takes at once
# As IntervalGoal in kernels/include/rns/interval.cuh.
_INTERVAL_GOAL = np.dtype(
    [
        ("accuracy", np.float64),
        ("scale_low", np.float64),
        ("scale_upp", np.float64),
        ("scale_exponent", np.int32),
        ("is_signed", np.int32),
    ]
)
_SUM_VECTORS = 4
_PAIR_VECTORS = 1
_SHARED_BYTES = 48 * 1024
# As in kernels/cuda/arith.cu and kernels/include/rns/arith.cuh.
_MAX_OPERANDS = 4
_OPERAND = np.dtype([("data", np.uint64), ("stride", np.int64), ("step", np.int64)])
_TASK = np.dtype(
    [
        ("operands", _OPERAND, (_MAX_OPERANDS,)),
        ("out", np.uint64),
        ("out_stride", np.int64),
        ("count", np.int64),
        ("vectors", np.int64),
        ("moduli", np.uint64),
        ("rows", np.int64),
    ]
)
# SumTest and WindowTest are five integers each.
_KEY_TEST = np.dtype([("limits", np.uint64, (5,))])
# As in kernels/cuda/matmul.cu; with fewer rows or columns than that, tiles would be mostly empty.
_MATRIX = np.dtype([("data", np.uint64), ("plane", np.int64), ("stride", np.int64)])
_PRODUCT = np.dtype(
    [
        ("a", _MATRIX),
        ("b", _MATRIX),
        ("out", np.uint64),
        ("moduli", np.uint64),
        ("moduli_count", np.int64),
        ("rows", np.int64),
        ("terms", np.int64),
        ("columns", np.int64),
        ("segments", np.int64),
        ("length", np.int64),
    ]
)
_MATMUL_TILE = 64  # kTile
_FEW_COLUMNS = 8
_LEAST_SEGMENT = 1024  # terms
# As ExtendedInterval in kernels/include/rns/extended_interval.cuh.
_EXTENDED_INTERVAL = np.dtype([("low", np.float64), ("upp", np.float64), ("exponent", np.int32)], align=True)
_DIGIT_VECTORS = 4
_TILE_LIMBS = 32  # kTileLimbs in kernels/cuda/convert.cu


@functools.cache
def _module(name: str) -> Any:
    options = (
        *cuda_sources.NVRTC_OPTIONS,
        f"-I{cuda_sources.include_directory()}",
        f"-DRNS_SOURCES={cuda_sources.sources_digest()}",
    )
    return cupy.RawModule(code=cuda_sources.source(name), options=options, backend="nvrtc")


@functools.cache
def _kernel(module: str, name: str, device: int) -> Any:
    # A function belongs to one device, hence `device` in the key of the cache.
    return _module(module).get_function(name)


@functools.cache
def _processors(device: int) -> int:
    return int(cupy.cuda.runtime.deviceGetAttribute(_PROCESSOR_COUNT, device))


def launch(
    module: str,
    name: str,
    threads: int,
    arguments: tuple[Any, ...],
    *,
    block: int = _BLOCK,
    shared: int = 0,
) -> int:
    """Run a kernel whose threads stride over their work; returns the number of blocks."""
    device = cupy.cuda.runtime.getDevice()
    most = _processors(device) * _BLOCKS_PER_PROCESSOR * _BLOCK // block
    blocks = max(1, min(most, -(-threads // block)))
    _kernel(module, name, device)((blocks,), (block,), arguments, shared_mem=shared)
    return blocks


@functools.lru_cache(256)
def _constant_on(constants: Any, field: str, device: int) -> Any:
    return cupy.asarray(getattr(constants, field))


def on_device(constants: Any, field: str) -> Any:
    """The array `field` of `constants` on the current device, copied once."""
    return _constant_on(constants, field, cupy.cuda.runtime.getDevice())


@functools.lru_cache(256)
def _last_residues_on(moduli: ModuliSet, device: int) -> Any:
    return cupy.asarray(last_residues(moduli))


def row_stride(residues: Array) -> np.int64:
    """Distance in elements from a residue to the next residue of the same number.

    Raises
    ------
    ValueError
        If the numbers of a row are not next to one another, for the kernels would read others.
    """
    if residues.size and residues.shape[1] > 1 and residues.strides[1] != residues.itemsize:
        raise ValueError("residues: the numbers' axis must be contiguous")
    return np.int64(residues.strides[0] // residues.itemsize)


def array_arguments(residues: Array) -> tuple[Any, ...]:
    """Residues, stride, number of numbers, number of moduli: how every kernel but the reductions starts."""
    return residues, row_stride(residues), np.int64(residues.shape[1]), np.int32(residues.shape[0])


def _numbers(residues: Array, constants: KeyConstants) -> Any:
    stride, count = int(row_stride(residues)), residues.shape[1]
    aligned = residues.data.ptr % 16 == 0 and stride % 4 == 0
    fields = (
        residues.data.ptr,
        stride,
        count,
        count // 4 if aligned else 0,
        constants.start,
        constants.ambiguous_below,
        residues.shape[0],
    )
    return np.array(fields, dtype=_NUMBERS)[()]


def _threads(numbers: Any, vectors_each: int) -> int:
    """Threads that keep a kernel busy: one for so many vectors, or one for each number outside of vectors."""
    vectors, count = int(numbers["vectors"]), int(numbers["count"])
    return max(-(-vectors // vectors_each), count - 4 * vectors)


def _coefficients(constants: KeyConstants) -> tuple[str, Any, int]:
    """Suffix of the entry point, argument, and bytes of shared memory for the table of coefficients."""
    count = len(constants.coefficients)
    if count > _PARAMETER_TABLE_SIZE:
        return "shared", on_device(constants, "coefficients"), 8 * count
    table = np.zeros((), dtype=_KEY_TABLE)
    table["c"][:count] = constants.coefficients
    return "parameter", table[()], 0


def extremum(residues: Array, constants: KeyConstants, minimum: bool) -> Extremum:
    numbers = _numbers(residues, constants)
    suffix, table, shared = _coefficients(constants)
    most_blocks = _processors(cupy.cuda.runtime.getDevice()) * _BLOCKS_PER_PROCESSOR
    partials = cupy.empty(most_blocks * _EXTREMUM.itemsize, dtype=cupy.uint8)
    threads = _threads(numbers, _KEY_VECTORS)
    arguments = (numbers, table, _FLIP[minimum], partials)
    blocks = launch("reduce", f"extremum_{suffix}", threads, arguments, shared=shared)
    return _merge(partials.get().view(_EXTREMUM)[:blocks])


def _merge(partials: Any) -> Extremum:
    """The blocks' results as one; a few thousand at most, so the host does it."""
    best = partials["best"].max()
    holders = np.flatnonzero(partials["best"] == best)
    winner = holders[partials["index"][holders].argmin()]
    others = np.delete(partials["best"], winner)
    runner_up = max(int(partials["runner_up"][winner]), int(others.max(initial=0)))
    index = int(partials["index"][winner]) if best else -1
    return Extremum(int(best), index, runner_up, int(partials["ambiguous"].sum()))


def row_sums(residues: Array, constants: KeyConstants) -> KeySums:
    n = residues.shape[0]
    numbers = _numbers(residues, constants)
    suffix, table, shared = _coefficients(constants)
    # Each warp keeps n sums of 64 bits in shared memory: many moduli leave room for fewer warps.
    warps = min(_BLOCK // _WARP, (_SHARED_BYTES - shared) // (8 * n))
    if warps < 1:
        raise ValueError(f"sums on a GPU are limited to {_SHARED_BYTES // 16} moduli, got {n}")
    sums = cupy.zeros(n + 3, dtype=cupy.uint64)
    threads = _threads(numbers, _SUM_VECTORS)
    arguments = (numbers, table, sums[:n], sums[n:])
    shared += 8 * n * warps
    launch("reduce", f"sum_{suffix}", threads, arguments, block=warps * _WARP, shared=shared)
    *rows, low, high, ambiguous = sums.get().tolist()
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
    launch("reduce", "candidates_shared", _threads(arguments[0], _KEY_VECTORS), arguments, shared=shared)
    return flags


def compare(a: Array, b: Array, constants: KeyConstants) -> tuple[Array, int]:
    order = cupy.empty(a.shape[1], dtype=cupy.int8)
    undecided = cupy.zeros(1, dtype=cupy.uint64)
    numbers = _numbers(a, constants)
    suffix, table, shared = _coefficients(constants)
    second: tuple[Any, ...]
    if isinstance(b, np.ndarray):
        kind, second = "scalar", _scalar(b[:, 0], constants)
    else:
        other = _numbers(b, constants)
        numbers["vectors"] = other["vectors"] = min(numbers["vectors"], other["vectors"])
        kind, second = "arrays", (other,)
    arguments = (numbers, *second, table, np.uint64(constants.slack), order, undecided)
    threads = _threads(numbers, _PAIR_VECTORS)
    launch("compare", f"compare_{kind}_{suffix}", threads, arguments, shared=shared)
    return order, int(undecided[0])


def _scalar(residues: Any, constants: KeyConstants) -> tuple[Any, np.uint64]:
    """The arguments for one number: its residues, where the coefficients are too, and its key."""
    terms = zip(residues.tolist(), constants.coefficients.tolist(), strict=True)
    key = np.uint64((constants.start + sum(x * c for x, c in terms)) % 2**64)
    if len(residues) > _PARAMETER_TABLE_SIZE:
        return cupy.asarray(residues), key
    table = np.zeros((), dtype=_SCALAR_TABLE)
    table["x"][: len(residues)] = residues
    return table[()], key


def gather(residues: Array, indices: Array) -> Array:
    n, chosen = residues.shape[0], indices.size
    out = cupy.empty((n, chosen), dtype=cupy.uint32)
    arguments = (residues, row_stride(residues), np.int32(n), indices, np.int64(chosen), out)
    launch("reduce", "gather", chosen, arguments)
    return out


def mixed_radix_digits(residues: Array, constants: MixedRadixConstants) -> Array:
    digits = cupy.empty(residues.shape, dtype=cupy.uint32)
    tables = tuple(on_device(constants, field) for field in ("last", "ones", "inverses"))
    launch(
        "mixed_radix", "mixed_radix_digits", residues.shape[1], (*array_arguments(residues), *tables, digits)
    )
    return digits


def fixed_point(residues: Array, constants: FixedPointConstants) -> tuple[Array, Array]:
    count = residues.shape[1]
    words = cupy.empty((constants.bits // 32, count), dtype=cupy.uint32)
    zero = cupy.empty(count, dtype=cupy.bool_)
    arguments = (*array_arguments(residues), on_device(constants, "coefficients"), words, zero)
    launch("evaluate", f"fixed_point_{constants.bits}", count, arguments)
    return words, zero


def interval(
    residues: Array, constants: IntervalConstants, goal: IntervalGoal
) -> tuple[Array, Array, Array, Array]:
    count = residues.shape[1]
    low, upp = cupy.empty(count, dtype=cupy.float64), cupy.empty(count, dtype=cupy.float64)
    exponent, steps = cupy.empty(count, dtype=cupy.int32), cupy.empty(count, dtype=cupy.uint32)
    scale = (goal.scale_low, goal.scale_upp, goal.scale_exponent)
    last, inverses, powers, reciprocals = (
        on_device(constants, field) for field in ("last", "inverses", "powers", "reciprocals")
    )
    tables = (last, inverses, np.int64(inverses.shape[1] // 2), powers, reciprocals)
    fields = np.array((goal.accuracy, *scale, goal.signed), dtype=_INTERVAL_GOAL)[()]
    results = (low, upp, exponent, steps)
    launch("interval", "interval", count, (*array_arguments(residues), *tables, fields, *results))
    return results


def first_outside(limbs: Array, constants: ForwardConstants) -> int | None:
    if constants.bounds is None:
        return None
    position = cupy.full(1, 2**64 - 1, dtype=cupy.uint64)
    bounds = on_device(constants, "bounds")
    arguments = (*_limb_arguments(limbs), bounds, np.uint32(constants.flip), position)
    launch("convert", "first_outside", limbs.shape[0], arguments)
    found = int(position[0])
    return None if found == 2**64 - 1 else found


def _limb_arguments(limbs: Array) -> tuple[Any, ...]:
    return limbs, row_stride(limbs), np.int64(limbs.shape[0]), np.int32(limbs.shape[1])


def limbs_to_residues(limbs: Array, constants: ForwardConstants, residues: Array) -> None:
    table, last, factors = (on_device(constants, field) for field in ("table", "last", "factors"))
    terms, padded = (np.int32(length) for length in table.shape)
    moduli = np.int32(residues.shape[0])
    results = (last, factors, moduli, residues, row_stride(residues))
    arguments = (*_limb_arguments(limbs), terms, table, padded, *results)
    shared = 4 * _TILE_LIMBS * (_BLOCK + 1)
    launch("convert", "limbs_to_residues", limbs.shape[0], arguments, shared=shared)


def residues_to_limbs(residues: Array, constants: ReverseConstants) -> Array:
    limbs = cupy.empty((residues.shape[1], constants.limb_count), dtype=cupy.uint32)
    table, *others = (
        on_device(constants, field) for field in ("table", "last", "inverses", "product", "highest")
    )
    results = (*others, np.int32(constants.limb_count), limbs)
    arguments = (*array_arguments(residues), table, np.int32(table.shape[1]), *results)
    launch("convert", "residues_to_limbs", residues.shape[1], arguments)
    return limbs


def base_extend(residues: Array, constants: ExtensionConstants, result: Array) -> Array:
    source = residues[: len(constants.moduli)]
    ambiguous = cupy.empty(residues.shape[1], dtype=cupy.bool_)
    table, *tables, target_last, factors = (
        on_device(constants, field) for field in ("table", "last", "inverses", "target_last", "factors")
    )
    decision = (np.uint32(constants.start), np.uint32(constants.ambiguous_below))
    targets = (target_last, factors, np.int32(len(constants.targets)))
    results = (result, row_stride(result), ambiguous)
    arguments = (table, np.int32(table.shape[1]), *tables, *decision, *targets, *results)
    launch("convert", "base_extend", residues.shape[1], (*array_arguments(source), *arguments))
    return ambiguous


def floor_divide_limbs(limbs: Array, divisors: Array, width: int, signed: bool) -> tuple[Array, Array]:
    quotients, remainders = (cupy.empty((len(limbs), width), dtype=cupy.uint32) for _ in range(2))
    stride = np.int64(divisors.shape[1] if len(divisors) > 1 else 0)
    numbers = (limbs, np.int64(len(limbs)), np.int32(limbs.shape[1]))
    others = (divisors, stride, np.int32(divisors.shape[1]))
    results = (np.int32(signed), np.int32(width), quotients, remainders)
    launch("divide", "floor_divide_limbs", len(limbs), (*numbers, *others, *results))
    return quotients, remainders


def first_invalid(residues: Array, moduli: ModuliSet) -> tuple[int, int] | None:
    position = cupy.full(1, 2**64 - 1, dtype=cupy.uint64)
    last = _last_residues_on(moduli, cupy.cuda.runtime.getDevice())
    launch("check", "first_invalid", residues.shape[1], (*array_arguments(residues), last, position))
    found = int(position[0])
    return None if found == 2**64 - 1 else divmod(found, residues.shape[1])


def read_all(residues: Array) -> int:
    residues = cupy.ascontiguousarray(residues)
    total = cupy.zeros(1, dtype=cupy.uint64)
    vectors, tail = divmod(residues.size, 4)
    launch("check", "read_all", vectors, (residues, np.int64(vectors), np.int32(tail), total))
    return int(total[0])


@functools.lru_cache(256)
def _modulus_table_on(moduli: ModuliSet, device: int) -> Any:
    return cupy.asarray(modulus_table(moduli))


def _task(operands: tuple[Array, ...], moduli: ModuliSet, out: Array) -> Any:
    """Description of operands that are on the device, and of the result."""
    task = np.zeros((), dtype=_TASK)
    rows, count = out.shape
    aligned = True
    for k, x in enumerate((*operands, out)):
        stride, is_single = int(row_stride(x)), x.shape[1] == 1
        aligned &= is_single or (x.data.ptr % 16 == 0 and stride % 4 == 0)
        if k < len(operands):
            task["operands"][k] = (x.data.ptr, stride, not is_single)
    table = _modulus_table_on(moduli, cupy.cuda.runtime.getDevice())
    task["out"], task["out_stride"], task["count"] = out.data.ptr, row_stride(out), count
    task["vectors"], task["moduli"], task["rows"] = count // 4 if aligned else 0, table.data.ptr, rows
    return task[()]


def _apply(name: str, operands: tuple[Array, ...], moduli: ModuliSet, out: Array) -> None:
    operands = tuple(map(cupy.asarray, operands))
    task = _task(operands, moduli, out)
    launch("arith", name, -(-out.size // 16), (task,))


def add(a: Array, b: Array, moduli: ModuliSet, out: Array) -> None:
    _apply("add", (a, b), moduli, out)


def subtract(a: Array, b: Array, moduli: ModuliSet, out: Array) -> None:
    _apply("subtract", (a, b), moduli, out)


def multiply(a: Array, b: Array, moduli: ModuliSet, out: Array) -> None:
    _apply("multiply", (a, b), moduli, out)


def fma(a: Array, b: Array, c: Array, moduli: ModuliSet, out: Array) -> None:
    _apply("fma_residues", (a, b, c), moduli, out)


def mulsub(a: Array, b: Array, c: Array, d: Array, moduli: ModuliSet, out: Array) -> None:
    _apply("mulsub", (a, b, c, d), moduli, out)


def power(a: Array, exponent: int, moduli: ModuliSet, out: Array) -> None:
    launch("arith", "power", out.size, (_task((a,), moduli, out), np.uint64(exponent)))


def inverse(a: Array, moduli: ModuliSet, out: Array) -> None:
    launch("arith", "inverse", out.size, (_task((a,), moduli, out),))


def matmul(a: Array, b: Array, moduli: ModuliSet, out: Array) -> None:
    _, rows, columns = out.shape
    terms = a.shape[2]
    if out.size == 0 or terms == 0:
        out[...] = 0
    elif columns < _FEW_COLUMNS:
        _multiply("matmul_dots", a, b.transpose(0, 2, 1), (rows, terms, columns), moduli, out)
    elif rows < _FEW_COLUMNS:
        # The transposed product has few columns.
        turned = cupy.empty((len(out), columns, rows), dtype=cupy.uint32)
        _multiply("matmul_dots", b.transpose(0, 2, 1), a, (columns, terms, rows), moduli, turned)
        out[...] = turned.transpose(0, 2, 1)
    else:
        _multiply("matmul_tiled", a, b, (rows, terms, columns), moduli, out)


def _multiply(
    name: str, a: Array, b: Array, shape: tuple[int, int, int], moduli: ModuliSet, out: Array
) -> None:
    """Run a kernel of matrix products; with few numbers to compute, in segments of their terms."""
    n, (rows, terms, columns) = len(out), shape
    side = _MATMUL_TILE if name == "matmul_tiled" else 1
    tasks = n * -(-rows // side) * -(-columns // side)
    threads_each = _BLOCK if name == "matmul_tiled" else _WARP
    device = cupy.cuda.runtime.getDevice()
    wanted = _processors(device) * _BLOCKS_PER_PROCESSOR * _BLOCK // (threads_each * tasks)
    segments = max(1, min(wanted, terms // _LEAST_SEGMENT))
    length = -(-terms // segments)
    segments = -(-terms // length)
    parts = out if segments == 1 else cupy.empty((n, segments, rows, columns), dtype=cupy.uint32)
    a, b = (_with_contiguous_rows(x) for x in (a, b))
    table = _modulus_table_on(moduli, device)
    product = np.zeros((), dtype=_PRODUCT)
    for field, x in (("a", a), ("b", b)):
        product[field] = (x.data.ptr, x.strides[0] // x.itemsize, x.strides[1] // x.itemsize)
    product["out"], product["moduli"], product["moduli_count"] = parts.data.ptr, table.data.ptr, n
    product["rows"], product["terms"], product["columns"] = shape
    product["segments"], product["length"] = segments, length
    launch("matmul", name, tasks * segments * threads_each, (product[()],))
    if segments > 1:
        sizes = cupy.asarray(list(moduli), dtype=cupy.uint64)[:, None, None]
        out[...] = (parts.sum(axis=1, dtype=cupy.uint64) % sizes).astype(cupy.uint32)


def _with_contiguous_rows(x: Array) -> Array:
    return x if x.shape[2] == 1 or x.strides[2] == x.itemsize else cupy.ascontiguousarray(x)


def add_checked(a: Array, b: Array, moduli: ModuliSet, check: SumCheck, out: Array) -> Array:
    return _apply_checked("add_checked", (a, b), moduli, check, out)


def subtract_checked(a: Array, b: Array, moduli: ModuliSet, check: SumCheck, out: Array) -> Array:
    return _apply_checked("subtract_checked", (a, b), moduli, check, out)


def _apply_checked(
    name: str, operands: tuple[Array, ...], moduli: ModuliSet, check: SumCheck, out: Array
) -> Array:
    return _launch_keyed(name, operands, moduli, (), check, out)


def windowed(
    operation: str, operands: Sequence[Array], moduli: ModuliSet, check: WindowCheck, out: Array
) -> Array:
    deciding = (np.int32(check.deciding),)
    return _launch_keyed(f"{operation}_windowed", operands, moduli, deciding, check, out)


def _launch_keyed(
    name: str,
    operands: Sequence[Array],
    moduli: ModuliSet,
    selection: tuple[Any, ...],
    check: SumCheck | WindowCheck,
    out: Array,
) -> Array:
    test = np.array((check.limits,), dtype=_KEY_TEST)[()]
    operands = tuple(map(cupy.asarray, operands))
    states = cupy.empty(out.shape[1], dtype=cupy.uint8)
    coefficients = (on_device(check.keys, "coefficients"), np.uint64(check.keys.start))
    arguments = (_task(operands, moduli, out), *selection, *coefficients, test, states)
    launch("arith", name, -(-out.shape[1] // 4), arguments, shared=8 * len(moduli))
    return states


def _mpint_task(x: Array, y: Array, moduli: ModuliSet, out: Array) -> Any:
    """Description of columns of n residues and a header; the header's rows follow those of the residues."""
    operands = tuple(map(cupy.asarray, (x, y)))
    task = _task(operands, moduli, out)
    task["rows"] = len(moduli)
    # The operands, for a copy made above must live until the kernel has been launched.
    return task, operands


def _column_threads(task: Any) -> int:
    """Threads of a kernel that takes a vector of numbers each, or a number outside of vectors."""
    return max(int(task["vectors"]), int(task["count"]) - 4 * int(task["vectors"]))


def mpint_add(
    x: Array, y: Array, moduli: ModuliSet, subtract: bool, algorithm: int | str, accuracy: float, out: Array
) -> Array:
    n, count = len(moduli), out.shape[1]
    flags = cupy.empty(count, dtype=cupy.uint8)
    task, _operands = _mpint_task(x, y, moduli, out)
    how = (task, np.uint32(subtract), np.float64(accuracy))
    if algorithm == 1:
        launch("mpint", "mpint_add_signs", count, (*how, flags))
    elif algorithm == 2:
        if 4 * n > _SHARED_BYTES:
            most = _SHARED_BYTES // 4
            raise ValueError(f"algorithm 2 on a GPU is limited to {most} moduli, got {n}; use 'digits'")
        launch("mpint", "mpint_add_complement", _column_threads(task), (*how, flags), shared=4 * n)
    else:
        selectors = cupy.empty(count, dtype=cupy.uint8)
        launch("mpint", "mpint_plan", count, (*how, selectors, flags))
        launch("mpint", "mpint_add_digits", -(-n * count // (4 * _DIGIT_VECTORS)), (task, selectors))
    return flags


def mpint_multiply(x: Array, y: Array, product: ProductBounds, accuracy: float, out: Array) -> Array:
    n, moduli = len(product.moduli), product.moduli
    flags = cupy.empty(out.shape[1], dtype=cupy.uint8)
    multiply(x[:n], y[:n], moduli, out[:n])
    task, _operands = _mpint_task(x, y, moduli, out)
    arguments = (task, _extended(product), np.float64(accuracy), flags)
    launch("mpint", "mpint_multiply_headers", out.shape[1], arguments)
    return flags


def _extended(product: ProductBounds) -> Any:
    return np.array((product.low, product.upp, product.exponent), dtype=_EXTENDED_INTERVAL)[()]


def mpint_compare(x: Array, y: Array, moduli: ModuliSet) -> Array:
    longer = x if x.shape[1] >= y.shape[1] else y
    order = cupy.empty(longer.shape[1], dtype=cupy.int8)
    numbers = cupy.asarray(longer)
    task, _operands = _mpint_task(x, y, moduli, numbers)
    launch("mpint", "mpint_compare", longer.shape[1], (task, order))
    return order


def interval_arithmetic(operation: str, x: Bounds, y: Bounds, product: ProductBounds) -> Bounds:
    z = tuple(cupy.empty_like(array) for array in x)
    number = np.int32(INTERVAL_OPERATIONS.index(operation))
    arguments = (number, np.int64(x[0].size), *x, *y, _extended(product), *z)
    launch("mpint", "interval_arithmetic", x[0].size, arguments)
    return z
