"""Number-theoretic transforms: those that take one pass through memory, and how longer ones are cut.

A transform of length A B is one of a matrix of A rows (D. Bailey, "FFTs in external or hierarchical memory",
1990): of its columns, times powers of the root, and of its rows. Kernels are compiled for each length of a
pass and kind of prime, at first use.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import cupy
import numpy as np

from rnsdask.backend.cuda import launching
from rnsdask.backend.cuda.arithmetic import apply
from rnsdask.backend.cuda.launching import Parameter, modulus_table_on, row_stride
from rnsdask.backend.cuda.memory import table_on_gpu
from rnsdask.backend.cuda_layout import PASS
from rnsdask.backend.protocol import Array
from rnsdask.constants import TransformConstants
from rnsdask.constants.twiddles import is_narrow, power_factors, root_factors
from rnsdask.core.moduli import ModuliSet

_THREADS_PER_PROCESSOR = 1024  # with 64 registers each

# Elements that memory is taken for between two passes: so many that launches take no time beside them.
_BETWEEN = 2**26

# The logarithm of the longest run whose product is computed in one pass.
_LONGEST_PRODUCT = 13


@dataclass(frozen=True)
class Shape:
    """A tile as `kernels/cuda/ntt_tile.cuh` has it, and threads of a block; numbers by their logarithms."""

    length: int
    columns: int
    values: int
    threads: int

    @property
    def block(self) -> int:
        """Threads of a block."""
        return 1 << self.threads

    @property
    def slots(self) -> int:
        """Tiles of a block."""
        return 1 << (self.threads - (self.length + self.columns - self.values))

    @property
    def shared(self) -> int:
        """Bytes of a block's shared memory, as many as any kernel takes or some more."""
        words = 1 << (self.length + self.columns)
        spread = max(words >> 5, words >> self.values)
        table = 2 << self.length if self.columns else 0
        return 4 * (self.slots * (words + spread) + table)

    def defines(self, moduli: ModuliSet) -> tuple[str, ...]:
        """What the kernels are compiled for."""
        field = "NarrowField" if is_narrow(list(moduli)) else "MontgomeryField"
        blocks = max(1, _THREADS_PER_PROCESSOR // self.block)
        return (
            f"-DRNS_FIELD={field}",
            f"-DRNS_LOG_LENGTH={self.length}",
            f"-DRNS_LOG_COLUMNS={self.columns}",
            f"-DRNS_LOG_VALUES={self.values}",
            f"-DRNS_THREADS={self.block}",
            f"-DRNS_BLOCKS={blocks}",
        )


def _row_shape(log_length: int) -> Shape:
    """Of whole transforms: at least 8 elements a thread that are side by side with others'."""
    values = log_length if log_length <= 4 else 3 if log_length <= 6 else 4 if log_length <= 12 else 5
    return Shape(log_length, 0, values, max(log_length - values, 7))


def _matrix_shape(log_length: int, log_width: int) -> Shape:
    """Of columns of a matrix, 32 side by side where they fit: 128 bytes, a line of memory; at least 8."""
    for log_size in (14, 13):
        columns = min(5, log_width, log_size - log_length)
        values = min(4, log_length) if log_length <= 10 else 5
        shape = Shape(log_length, columns, values, log_length + columns - values)
        if shape.shared <= launching.most_shared(cupy.cuda.runtime.getDevice()):
            break
    return shape


def _longest_row() -> int:
    """The logarithm of the longest transform that shared memory holds."""
    shared = launching.most_shared(cupy.cuda.runtime.getDevice())
    return 14 if _row_shape(14).shared <= shared else 13


def _cut(log_length: int) -> list[int]:
    """Logarithms of the lengths of passes: two up to 11, else three of 8, of which the last may have 10."""
    count = 2 if log_length <= 22 else 3
    last = max(-(-log_length // count), min(10, log_length - 8 * (count - 1)))
    rest = log_length - last
    return [*((rest + k) // (count - 1) for k in range(count - 1)), last]


def _cut_product(log_length: int) -> list[int]:
    """Logarithms of the lengths of passes over columns, until what is left is multiplied in one pass."""
    lengths = []
    while log_length > _LONGEST_PRODUCT:
        lengths.append(min(8, log_length - 7))
        log_length -= lengths[-1]
    return lengths


# ---- tables ------------------------------------------------------------------------------------------------


@lru_cache(32)
def _roots_on(constants: TransformConstants, log_length: int, device: int) -> Any:
    """Factors for passes of a length, on a device."""
    primes = list(constants.moduli)
    exponent = constants.length >> log_length
    roots = [pow(root, exponent, p) for root, p in zip(constants.roots.tolist(), primes, strict=True)]
    return table_on_gpu(root_factors(roots, primes, 1 << log_length))


@lru_cache(32)
def _powers_on(constants: TransformConstants, log_length: int, device: int) -> tuple[Any, Any]:
    """Two tables whose products are the powers of a root of an order."""
    primes = list(constants.moduli)
    exponent = constants.length >> log_length
    roots = [pow(root, exponent, p) for root, p in zip(constants.roots.tolist(), primes, strict=True)]
    split = _split(log_length)
    steps = [pow(root, 1 << split, p) for root, p in zip(roots, primes, strict=True)]
    ones = [1] * len(primes)
    low = power_factors(ones, roots, primes, 1 << split)
    high = power_factors(ones, steps, primes, 1 << (log_length - split))
    return table_on_gpu(low), table_on_gpu(high)


@lru_cache(32)
def _within_on(constants: TransformConstants, log_matrix: int, shape: Shape, device: int) -> Any:
    """The powers w**(i j) of a root of an order, for columns i and rows j of a tile."""
    primes = list(constants.moduli)
    exponent = constants.length >> log_matrix
    roots = [pow(root, exponent, p) for root, p in zip(constants.roots.tolist(), primes, strict=True)]
    powers = power_factors([1] * len(primes), roots, primes, 1 << (shape.length + shape.columns))
    rows, columns = np.arange(1 << shape.length), np.arange(1 << shape.columns)
    return table_on_gpu(powers[:, np.outer(rows, columns).ravel()])


@lru_cache(32)
def _scales_on(constants: TransformConstants, device: int) -> Any:
    primes = list(constants.moduli)
    return table_on_gpu(power_factors(constants.scales.tolist(), primes, primes, 1))


def _split(log_length: int) -> int:
    return (log_length + 1) // 2


# ---- passes ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Rows:
    """Some of the rows of residues, and the tables for them."""

    constants: TransformConstants
    rows: slice

    def parameter(
        self, x: Array, out: Array, shape: Shape, tiles: int, tables: dict[str, Array], **fields: int
    ) -> Parameter:
        """Of a pass with so many tiles a row; `tables` are of all rows."""
        device = cupy.cuda.runtime.getDevice()
        tables = {
            "moduli": modulus_table_on(self.constants.moduli, device),
            "roots": _roots_on(self.constants, shape.length, device),
            **tables,
        }
        parameter = Parameter(
            PASS,
            x=x,
            out=out,
            x_stride=row_stride(x),
            out_stride=row_stride(out),
            rows=len(out),
            tiles=tiles,
            **{name: table[self.rows] for name, table in tables.items()},
            **fields,
        )
        parameter.arrays += tables.values()  # a part does not own what the cache may let go
        return parameter

    def scales(self) -> dict[str, Array]:
        return {"scales": _scales_on(self.constants, cupy.cuda.runtime.getDevice())}

    def launch(self, module: str, name: str, shape: Shape, parameter: Parameter, *arguments: Any) -> None:
        threads = int(parameter.fields["rows"]) * int(parameter.fields["tiles"]) * shape.block
        launching.launch(
            module,
            name,
            threads,
            (parameter, *arguments),
            block=shape.block,
            shared=shape.shared,
            defines=shape.defines(self.constants.moduli),
        )

    def transform_rows(self, x: Array, out: Array, log_length: int, scaled: bool) -> None:
        """Transforms that are one after another in each row, in one pass."""
        shape = _row_shape(log_length)
        transforms = out.shape[1] >> log_length
        tables = self.scales() if scaled else {}
        parameter = self.parameter(x, out, shape, -(-transforms // shape.slots), tables)
        self.launch("ntt_rows", "ntt_rows", shape, parameter, np.int64(transforms))

    def transform_columns(
        self,
        x: Array,
        out: Array,
        log_length: int,
        log_rest: int,
        *,
        scaled: bool = False,
        backward: bool = False,
    ) -> None:
        """Columns of matrices of 2**log_length rows and 2**log_rest columns, and the powers between."""
        shape = _matrix_shape(log_length, log_rest)
        log_matrix = log_length + log_rest
        device = cupy.cuda.runtime.getDevice()
        low, high = _powers_on(self.constants, log_matrix, device)
        split = _split(log_matrix)
        within = _within_on(self.constants, log_matrix, shape, device)
        tables = {"low": low, "high": high, "within": within, **(self.scales() if scaled else {})}
        parameter = self.parameter(
            x,
            out,
            shape,
            out.shape[1] >> (log_length + shape.columns),
            tables,
            log_rest=log_rest,
            log_split=split,
            log_high=log_matrix - split,
        )
        self.launch("ntt_columns", "ntt_columns_backward" if backward else "ntt_columns", shape, parameter)

    def transform_turned(self, x: Array, out: Array, log_length: int, log_between: int) -> None:
        """The last pass: rows, to columns of the result."""
        log_whole = self.constants.length.bit_length() - 1
        shape = _matrix_shape(log_length, log_whole - log_length - log_between)
        tiles = out.shape[1] >> (log_length + shape.columns)
        parameter = self.parameter(x, out, shape, tiles, {}, log_length=log_whole, log_rest=log_between)
        self.launch("ntt_turned", "ntt_turned", shape, parameter)


def ntt(residues: Array, constants: TransformConstants, out: Array) -> None:
    log_length = constants.length.bit_length() - 1
    is_scaled = bool((constants.scales != 1).any())
    if log_length == 0:
        out[...] = residues
        return
    if log_length <= _longest_row():
        _Rows(constants, slice(None)).transform_rows(residues, out, log_length, is_scaled)
        return
    lengths = _cut(log_length)
    for rows, columns in _parts(out.shape, constants.length):
        of_rows, source, target = _Rows(constants, rows), residues[rows, columns], out[rows, columns]
        between = cupy.empty(target.shape, dtype=cupy.uint32)
        log_rest = log_length
        for k, log_pass in enumerate(lengths[:-1]):
            log_rest -= log_pass
            of_rows.transform_columns(
                between if k else source, between, log_pass, log_rest, scaled=is_scaled and k == 0
            )
        of_rows.transform_turned(between, target, lengths[-1], sum(lengths[1:-1]))


def cyclic_products(
    x: Array, y: Array, forward: TransformConstants, inverse: TransformConstants, out: Array
) -> None:
    if x.shape[1] < y.shape[1]:
        x, y = y, x  # of y, one run may serve all
    length = forward.length
    if length == 1:
        apply("multiply", (x, y), forward.moduli, out)
        return
    serves_all = y.shape[1] == length < x.shape[1]
    lengths = _cut_product(length.bit_length() - 1)
    if not lengths:
        _multiply_part(x, y, forward, inverse, slice(None), lengths, serves_all, out)
        return
    for rows, columns in _parts(out.shape, length):
        part = y[rows] if serves_all else y[rows, columns]
        _multiply_part(
            x[rows, columns], part, forward, inverse, rows, lengths, serves_all, out[rows, columns]
        )


def _multiply_part(
    x: Array,
    y: Array,
    forward: TransformConstants,
    inverse: TransformConstants,
    rows: slice,
    lengths: Sequence[int],
    serves_all: bool,
    out: Array,
) -> None:
    """Products by passes over columns of some lengths, cyclic products of rows, and passes back."""
    of_rows, back = _Rows(forward, rows), _Rows(inverse, rows)
    log_rest = forward.length.bit_length() - 1
    other = cupy.empty(y.shape, dtype=cupy.uint32) if lengths or serves_all else y
    for log_pass in lengths:
        log_rest -= log_pass
        # y first, for the result may be where it is.
        of_rows.transform_columns(y, other, log_pass, log_rest)
        of_rows.transform_columns(x, out, log_pass, log_rest)
        x, y = out, other
    if serves_all:
        of_rows.transform_rows(y, other, log_rest, False)
    shape = _row_shape(log_rest)
    runs = out.shape[1] >> log_rest
    period = other.shape[1] >> log_rest if serves_all else 1 << 62
    parameter = of_rows.parameter(x, out, shape, -(-runs // shape.slots), back.scales())
    inverse_roots = _roots_on(inverse, log_rest, cupy.cuda.runtime.getDevice())  # owned until launched
    arguments = (other, row_stride(other), np.int32(serves_all), np.int64(period), inverse_roots[rows])
    of_rows.launch("cyclic_products", "cyclic_products", shape, parameter, *arguments, np.int64(runs))
    for log_pass in reversed(lengths):
        back.transform_columns(out, out, log_pass, log_rest, backward=True)
        log_rest += log_pass


def _parts(shape: tuple[int, int], length: int) -> Iterator[tuple[slice, slice]]:
    """Rows and columns of residues: at most `_BETWEEN` elements, or one transform of one row."""
    rows, count = shape
    columns = max(1, min(count, _BETWEEN) // length) * length
    step = max(1, _BETWEEN // count)
    for row in range(0, rows, step):
        for column in range(0, count, columns):
            yield slice(row, row + step), slice(column, column + columns)
