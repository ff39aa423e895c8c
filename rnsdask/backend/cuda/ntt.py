"""Number-theoretic transforms: those that take one pass through memory, and how longer ones are cut.

A transform of length A B is one of a matrix of A rows (D. Bailey, "FFTs in external or hierarchical memory",
1990): of its columns, times powers of the root, and of its rows. Kernels are compiled for each length of a
pass and kind of prime, words of 4 or 8 bytes, at first use.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import cupy
import numpy as np
from numpy.typing import NDArray

from rnsdask.backend.cuda import launching, ntt_tables
from rnsdask.backend.cuda.arithmetic import apply
from rnsdask.backend.cuda.copies import reverse_runs
from rnsdask.backend.cuda.launching import Parameter, row_stride
from rnsdask.backend.cuda.layout import FLOW, PASS
from rnsdask.backend.cuda.ntt_shapes import Shape, matrix_shape, overlapped, row_shape
from rnsdask.backend.cuda.ntt_tables import Twist, Twists
from rnsdask.backend.cuda.variants import overlapped_options, transform_options
from rnsdask.backend.protocol import Array
from rnsdask.constants import TransformConstants

# Elements of the memory between two passes: enough that the time of launches does not count.
BETWEEN = 2**26

# The logarithm of the longest run whose product is computed in one pass.
_LONGEST_PRODUCT = 13

# The logarithm of the least length of transforms that have a block each. A block asks for words of another
# one ahead of it, as many for each multiprocessor as a transform of that length has: the quickest on an H100.
_LONG_ROW = 13


def longest_row(word: int) -> int:
    """The logarithm of the longest transform that shared memory holds, of words of some bytes."""
    shared = launching.most_shared(cupy.cuda.runtime.getDevice())
    return 14 if row_shape(14, word).shared <= shared else 13


# For two passes in one launch: words between them in addition to those that blocks work on; least words of a
# group of tiles, which wait for one another; bytes of a second-level cache that holds all of it.
_SLACK = 2**20
_GROUP = 2**16
_CACHE_BYTES = 40 * 2**20

# What the last two passes transform in one launch, by the length of the whole, as logarithms. For 2**21 and
# from 2**26 on two launches are quicker.
_OVERLAPPED = {**{log: log for log in range(15, 21)}, 22: 15, 23: 15, 24: 16, 25: 16}


def overlapped_matrix(log_length: int) -> int:
    """The logarithm of what the last two passes transform in one launch, 0 where they take two."""
    device = cupy.cuda.runtime.getDevice()
    pays = launching.is_hopper(device) and launching.cache_bytes(device) >= _CACHE_BYTES
    return _OVERLAPPED.get(log_length, 0) if pays else 0


def _groups(tiles: int, blocks: int, log_tile: int, unit: int) -> tuple[int, int, int, int]:
    """Groups of tiles: the logarithm of their size, their number, tiles of the lag, groups of the ring.

    2**unit tiles of a pass need one another. The lag is what blocks work on at a time: so tiles of rows
    seldom wait for columns, and what stands between the passes is least.
    """
    log_group = max(unit, _GROUP.bit_length() - 1 - log_tile)
    size = 1 << log_group
    lag = min(tiles, max(1, blocks // size) * size)
    groups = -(-tiles // size)
    return log_group, groups, lag, min(groups, -(-(lag + (_SLACK >> log_tile)) // size) + 1)


def cut_length(log_length: int, word: int) -> list[int]:
    """Logarithms of the lengths of passes: two up to 11, or else three of 8, the last one up to 10.

    Of words of 8 bytes two are up to 10, for a tile holds fewer of them.
    """
    count = 2 if log_length <= (22 if word == 4 else 20) else 3
    last = max(-(-log_length // count), min(10, log_length - 8 * (count - 1)))
    rest = log_length - last
    return [*((rest + k) // (count - 1) for k in range(count - 1)), last]


def cut_product(log_length: int) -> list[int]:
    """Logarithms of the lengths of passes over columns, until what is left is multiplied in one pass."""
    lengths = []
    while log_length > _LONGEST_PRODUCT:
        lengths.append(min(8, log_length - 7))
        log_length -= lengths[-1]
    return lengths


@dataclass(frozen=True)
class _Rows:
    """Some of the rows of residues, and the tables for them; `twists` are None if there is no twist."""

    constants: TransformConstants
    rows: slice
    twists: Twists = None
    is_inverse: bool = False

    @property
    def twist(self) -> Twist:
        """When elements are multiplied by powers of the twists."""
        if self.twists is None:
            return Twist.NONE
        return Twist.AFTER if self.is_inverse else Twist.BEFORE

    @property
    def field(self) -> str:
        """Class of the kernels' arithmetic."""
        return ntt_tables.field(self.constants)

    @property
    def word(self) -> int:
        """Bytes of a word."""
        return self.constants.roots.itemsize

    def matrix_shape(self, log_length: int, log_width: int) -> Shape:
        """Shape for columns of a matrix, on the current device."""
        most = launching.most_shared(cupy.cuda.runtime.getDevice())
        return matrix_shape(log_length, log_width, most, self.word)

    def parameter(
        self,
        x: Array,
        out: Array,
        shape: Shape,
        tiles: int,
        tables: dict[str, Array],
        is_twisted: bool = False,
        **fields: int,
    ) -> Parameter:
        """Parameter of a pass with `tiles` tiles a row, twisted or not; `tables` are of all rows."""
        tables = {
            "moduli": ntt_tables.moduli_on(self.constants, cupy.cuda.runtime.getDevice()),
            "roots": self.roots(shape.length, is_twisted),
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
        return {"scales": ntt_tables.scales_on(self.constants, cupy.cuda.runtime.getDevice())}

    def roots(self, log_length: int, is_twisted: bool) -> Array:
        """Factors of a tile."""
        twists = self.twists if is_twisted else None
        return ntt_tables.roots_on(self.constants, log_length, cupy.cuda.runtime.getDevice(), twists)

    def powers(self, log_matrix: int) -> tuple[dict[str, Array], dict[str, int]]:
        """Tables of powers of a matrix's root, and the logarithms of their lengths."""
        device = cupy.cuda.runtime.getDevice()
        low, high, log_split = ntt_tables.powers_on(self.constants, log_matrix, device, self.twists)
        log_high = log_matrix + (self.twists is not None) - log_split
        return {"low": low, "high": high}, {"log_split": log_split, "log_high": log_high}

    def launch(
        self,
        module: str,
        name: str,
        shape: Shape,
        parameter: Parameter,
        *arguments: Any,
        strides: bool = True,
        reversed_: int = 0,
    ) -> None:
        threads = int(parameter.fields["rows"]) * int(parameter.fields["tiles"]) * shape.block
        launching.launch(
            module,
            name,
            threads,
            (parameter, *arguments),
            block=shape.block,
            shared=shape.shared,
            strides=strides and self.word == 4,  # words of 8 bytes take more registers
            defines=transform_options(shape, self.field, self.twist.value, reversed_),
        )

    def transform_rows(
        self, x: Array, out: Array, log_length: int, scaled: bool, is_reversed: bool = False
    ) -> None:
        """Transforms that are one after another in each row, in one pass."""
        shape = row_shape(log_length, self.word)
        transforms = out.shape[1] >> log_length
        tables = self.scales() if scaled else {}
        parameter = self.parameter(
            x, out, shape, -(-transforms // shape.slots), tables, self.twists is not None
        )
        is_long, processors = log_length >= _LONG_ROW, launching.processors(cupy.cuda.runtime.getDevice())
        log_ahead = log_length + self.word // 8 - _LONG_ROW  # by the bytes of a transform
        ahead = np.uint32(processors >> log_ahead if is_long else 0)
        reversed_ = is_reversed and (2 if self.is_inverse else 1)
        how: dict[str, Any] = {"strides": not is_long, "reversed_": reversed_}
        self.launch("ntt_rows", "ntt_rows", shape, parameter, np.int64(transforms), ahead, **how)

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
        shape = self.matrix_shape(log_length, log_rest)
        log_matrix = log_length + log_rest
        powers, logs = self.powers(log_matrix)
        how = shape, cupy.cuda.runtime.getDevice(), self.twists, self.twist
        within = ntt_tables.within_on(self.constants, log_matrix, *how)
        tables = {**powers, "within": within, **(self.scales() if scaled else {})}
        parameter = self.parameter(
            x,
            out,
            shape,
            out.shape[1] >> (log_length + shape.columns),
            tables,
            self.twist is Twist.BEFORE,
            log_rest=log_rest,
            **logs,
        )
        self.launch("ntt_columns", "ntt_columns_backward" if backward else "ntt_columns", shape, parameter)

    def transform_turned(self, x: Array, out: Array, log_length: int, log_between: int) -> None:
        """The last pass: rows, to columns of the result."""
        log_whole = self.constants.length.bit_length() - 1
        shape = self.matrix_shape(log_length, log_whole - log_length - log_between)
        tiles = out.shape[1] >> (log_length + shape.columns)
        how: dict[str, int] = {"log_length": log_whole, "log_rest": log_between}
        parameter = self.parameter(x, out, shape, tiles, {}, self.twist is Twist.AFTER, **how)
        self.launch("ntt_turned", "ntt_turned", shape, parameter)

    def transform_overlapped(
        self, x: Array, out: Array, log_matrix: int, log_outer: int, *, scaled: bool
    ) -> None:
        """The last two passes in one launch: matrices, 2**log_outer for each transform."""
        shape = overlapped(log_matrix, self.word)
        powers, logs = self.powers(log_matrix)
        tables = {**powers, **(self.scales() if scaled else {})}
        tiles = out.shape[1] >> shape.tile
        parameter = self.parameter(x, out, shape.first, tiles, tables, self.twist is Twist.BEFORE, **logs)
        device = cupy.cuda.runtime.getDevice()
        blocks = launching.processors(device) * shape.first.blocks
        unit = shape.first.length if log_outer else log_matrix - shape.tile
        log_group, groups, lag, ring = _groups(tiles * len(out), blocks, shape.tile + self.word // 8, unit)
        last_roots = self.roots(shape.last_length, self.twist is Twist.AFTER)
        flow = Parameter(
            FLOW,
            between=cupy.empty(ring << log_group + shape.tile, dtype=out.dtype),
            last_roots=last_roots[self.rows],
            counters=cupy.zeros(1 + 2 * groups, dtype=cupy.uint32),
            lag=lag,
            ring=ring,
            log_group=log_group,
            log_outer=log_outer,
        )
        flow.arrays.append(last_roots)
        launching.launch(
            "ntt_overlapped",
            "ntt_overlapped",
            min(tiles * len(out), blocks) * shape.first.block,
            (parameter, flow),
            block=shape.first.block,
            shared=shape.shared,
            defines=overlapped_options(shape, self.field, self.twist.value),
        )


def ntt(
    residues: Array,
    constants: TransformConstants,
    out: Array,
    *,
    twists: NDArray[Any] | None = None,
    is_inverse: bool = False,
    is_reversed: bool = False,
) -> None:
    log_length = constants.length.bit_length() - 1
    if log_length == 0:
        out[...] = residues
        return
    passes = _Rows(constants, slice(None), None if twists is None else tuple(twists.tolist()), is_inverse)
    if log_length <= longest_row(constants.roots.itemsize):
        passes.transform_rows(residues, out, log_length, _is_scaled(constants), is_reversed)
        return
    other = cupy.empty(out.shape, dtype=out.dtype) if is_reversed else out
    if is_reversed and is_inverse:
        reverse_runs(residues, log_length, other)
        _transform_in_passes(passes, other, out)
        return
    _transform_in_passes(passes, residues, other)
    if is_reversed:
        reverse_runs(other, log_length, out)


def _is_scaled(constants: TransformConstants) -> bool:
    return bool((constants.scales != 1).any())


def _transform_in_passes(passes: _Rows, residues: Array, out: Array) -> None:
    """Transforms that no tile holds."""
    constants = passes.constants
    log_length, is_scaled = constants.length.bit_length() - 1, _is_scaled(constants)
    log_matrix = overlapped_matrix(log_length)
    if log_matrix == log_length:
        passes.transform_overlapped(residues, out, log_matrix, 0, scaled=is_scaled)
        return
    lengths = [log_length - log_matrix, log_matrix] if log_matrix else cut_length(log_length, passes.word)
    for rows, columns in _parts(out.shape, constants.length):
        of_rows, source, target = replace(passes, rows=rows), residues[rows, columns], out[rows, columns]
        between = cupy.empty(target.shape, dtype=target.dtype)
        log_rest = log_length
        for k, log_pass in enumerate(lengths[:-1]):
            log_rest -= log_pass
            of_rows.transform_columns(
                between if k else source, between, log_pass, log_rest, scaled=is_scaled and k == 0
            )
            if passes.twist is Twist.BEFORE:  # what is left are cyclic transforms
                of_rows = replace(of_rows, twists=None)
        if log_matrix:
            of_rows.transform_overlapped(between, target, log_matrix, lengths[0], scaled=False)
            continue
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
    lengths = cut_product(length.bit_length() - 1)
    if not lengths:
        passes = _Rows(forward, slice(None)), _Rows(inverse, slice(None))
        _multiply_part(x, y, out, passes, lengths, serves_all)
        return
    for rows, columns in _parts(out.shape, length):
        part = y[rows] if serves_all else y[rows, columns]
        passes = _Rows(forward, rows), _Rows(inverse, rows)
        _multiply_part(x[rows, columns], part, out[rows, columns], passes, lengths, serves_all)


def _multiply_part(
    x: Array, y: Array, out: Array, passes: tuple[_Rows, _Rows], lengths: Sequence[int], serves_all: bool
) -> None:
    """Products by passes over columns of some lengths, cyclic products of rows, and passes back."""
    of_rows, back = passes
    log_rest = of_rows.constants.length.bit_length() - 1
    other = cupy.empty(y.shape, dtype=cupy.uint32) if lengths or serves_all else y
    for log_pass in lengths:
        log_rest -= log_pass
        # y first, for the result may be where it is.
        of_rows.transform_columns(y, other, log_pass, log_rest)
        of_rows.transform_columns(x, out, log_pass, log_rest)
        x, y = out, other
    if serves_all:
        of_rows.transform_rows(y, other, log_rest, False)
    shape = row_shape(log_rest)
    runs = out.shape[1] >> log_rest
    period = other.shape[1] >> log_rest if serves_all else 1 << 62
    parameter = of_rows.parameter(x, out, shape, -(-runs // shape.slots), back.scales())
    device = cupy.cuda.runtime.getDevice()
    inverse_roots = ntt_tables.roots_on(back.constants, log_rest, device)  # owned until launched
    second = other, row_stride(other), np.int32(serves_all), np.int64(period)
    arguments = *second, inverse_roots[back.rows], np.int64(runs)
    of_rows.launch("cyclic_products", "cyclic_products", shape, parameter, *arguments, strides=False)
    for log_pass in reversed(lengths):
        back.transform_columns(out, out, log_pass, log_rest, backward=True)
        log_rest += log_pass


def _parts(shape: tuple[int, int], length: int) -> Iterator[tuple[slice, slice]]:
    """Rows and columns of residues: at most `BETWEEN` elements, or one transform of one row."""
    rows, count = shape
    columns = max(1, min(count, BETWEEN) // length) * length
    step = max(1, BETWEEN // count)
    for row in range(0, rows, step):
        for column in range(0, count, columns):
            yield slice(row, row + step), slice(column, column + columns)
