"""Preparation of expressions over stores: parsed, checked, planned, and turned into lazy arrays."""

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import dask.array as da
import numpy as np

from rnsdask import store
from rnsdask.arrays.number_array import NumberArray
from rnsdask.core import rows
from rnsdask.core.errors import ExpressionError, JobError
from rnsdask.core.extension import enough_moduli, needed_product
from rnsdask.core.layout import RESIDUE_DTYPE, ChunkPlan, storable_plan
from rnsdask.core.number_system import NumberSystem
from rnsdask.core.ways import Conversions, Kind, Message, Setting, Way, with_ways
from rnsdask.expressions.expression import Evaluation, evaluate
from rnsdask.expressions.functions import BOOLEANS, NUMBERS, SIGNS
from rnsdask.expressions.required_bits import Known, range_of_steps
from rnsdask.expressions.syntax import Expression, parse
from rnsdask.jobs import memory_plan
from rnsdask.jobs.derivation import bytes_read, most_alive
from rnsdask.jobs.memory_plan import Work
from rnsdask.jobs.sources import OF_NUMBERS, Source, check_overflow
from rnsdask.lazy.chunks import rechunk
from rnsdask.lazy.plan import conversions_between
from rnsdask.lazy.read import read_plain
from rnsdask.positional.system import Positional
from rnsdask.rns.system import least_system

SINGLE = ""
"""Name of the result of an unnamed expression."""


@dataclass(frozen=True)
class Extension:
    """An extension of all operands: most moduli of an operand, moduli of results, operands without a bound.

    The latter count with their whole range.
    """

    before: int
    after: int
    unbounded: tuple[str, ...]


@dataclass(frozen=True)
class Paths:
    """Paths of a result's values and of their overflow mask."""

    path: str
    mask_path: str | None = None


@dataclass(frozen=True)
class Operand:
    """An input as a lazy array, with its metadata; plain arrays hold Booleans or small integers."""

    info: store.StoreInfo | store.PlainInfo
    array: Any

    @classmethod
    def at(cls, path: str, backend: str = "cpu") -> "Operand":
        """Open the complete store or plain array at a path; StoreError if it is missing."""
        if store.is_plain(path):
            info = store.open_plain(path)
            return cls(info, read_plain(info, backend))
        source = Source.at(path, OF_NUMBERS)
        return cls(source.info, source.array(backend=backend))

    @property
    def is_number(self) -> bool:
        """Whether it is an array of numbers."""
        return isinstance(self.array, NumberArray)

    @property
    def words(self) -> da.Array:
        """The array with a leading axis: its words, or one value for each number."""
        words: da.Array = self.array.words if self.is_number else self.array[None]
        return words

    @property
    def has_chunk_files(self) -> bool:
        """Whether chunks are read as files, without Zarr's codecs."""
        return isinstance(self.info, store.StoreInfo) and self.info.has_chunk_files

    @property
    def rows(self) -> int:
        """Words of a number; 1 for a plain array."""
        return 1 if isinstance(self.info, store.PlainInfo) else self.info.system.rows

    def with_words(self, words: da.Array) -> "Operand":
        """Replace the numbers or values by `words`, which have other chunks."""
        array = type(self.array)(words, self.array.system) if self.is_number else words[0]
        return replace(self, array=array)


@dataclass(frozen=True)
class PreparedExpressions:
    """Expressions over stores, checked; only the stores' metadata have been read.

    `expressions` and `evaluations`, their lazy values, map names of results in order; `stores` maps names in
    the expressions to metadata. `operands` holds each store that is read once.
    """

    expressions: dict[str, Expression]
    evaluations: dict[str, Evaluation]
    operands: tuple[Operand, ...]
    work: Work
    stores: dict[str, store.StoreInfo | store.PlainInfo]
    overflow: str
    extension: Extension | None

    @property
    def called(self) -> str:
        """The job's name in messages."""
        if list(self.expressions) == [SINGLE]:
            return f"expression {self.expressions[SINGLE].text!r}"
        return f"expressions {', '.join(self.expressions)}"

    def bytes_read(self, names: Sequence[str]) -> int:
        """Bytes of words that are read for some results."""
        values = [_array_of(self.evaluations[name].value) for name in names]
        return bytes_read(values, [_array_of(operand.array) for operand in self.operands])

    def count(self, name: str) -> int:
        """Number of values of a result."""
        return int(self.evaluations[name].value.size)

    def mask(self, name: str) -> da.Array:
        """Mask of the values for which an operation was out of range, with their shape and chunks."""
        value, mask = self.evaluations[name].value, self.evaluations[name].mask
        if mask is None:
            mask = da.zeros(value.shape, dtype=bool, chunks=value.chunks)
        whole: da.Array = rechunk(da.broadcast_to(mask, value.shape), value.chunks)
        return whole


def _selections(expression: Expression) -> int:
    """Number of indexing operations of an expression."""
    return sum(isinstance(node, ast.Subscript) for node in ast.walk(expression.body))


def _array_of(value: Any) -> Any:
    """The Dask array of a lazy value."""
    return value.words if isinstance(value, NumberArray) else value


def prepare(
    texts: Mapping[str, str],
    paths: Mapping[str, str],
    *,
    overflow: str | None = None,
    backend: str = "auto",
    extend: bool = False,
) -> PreparedExpressions:
    """Check expressions, by the names of their results, and the stores that other names refer to.

    Expressions may use earlier results. Stores with different chunks are rechunked to common ones, so that
    each chunk is read once. Without `overflow`, results out of range get more moduli if all stores of numbers
    grow, and are an error otherwise. With `extend`, all operands are extended to the fewest moduli that hold
    every result.

    ExpressionError if an expression is wrong, its operands do not match, or `overflow` is given for elements
    of fields; JobError if results are to wrap, but an operand's numbers cannot.
    """
    expressions = {name: parse(text) for name, text in texts.items()}
    _check_used(expressions, paths)
    opened = {path: Operand.at(path, backend) for path in dict.fromkeys(paths.values())}
    operands = {name: opened[path] for name, path in paths.items()}
    _check_one_kind(expressions, operands)
    _check_overflow(operands, paths, overflow)
    extension = None
    systems = [operand.array.system for operand in operands.values() if operand.is_number]
    all_grow = bool(systems) and all(system.grows for system in systems)
    if overflow is None:
        overflow = "extend" if all_grow else "raise"
    if extend and not (all_grow and overflow == "extend"):
        operands, extension = _extend(expressions, operands)
    together = _align(operands)
    values: dict[str, Any] = {name: operand.array for name, operand in together.items()}
    for name, expression in expressions.items():
        values[name] = evaluate(expression, values, overflow)
    evaluations = {name: values[name] for name in expressions}
    return PreparedExpressions(
        expressions,
        evaluations,
        tuple(opened.values()),
        _work(expressions, evaluations, opened, together),
        {name: operand.info for name, operand in operands.items()},
        overflow,
        extension,
    )


def _check_used(expressions: Mapping[str, Expression], paths: Mapping[str, str]) -> None:
    used = {name for expression in expressions.values() for name in expression.names}
    for name in paths:
        if name not in used:
            if list(expressions) == [SINGLE]:
                text = expressions[SINGLE].text
                raise ExpressionError(f"expression {text!r} does not use the name {name!r}")
            raise ExpressionError(f"no expression uses the name {name!r}")
        if name in expressions:
            raise ExpressionError(f"the name {name!r} is that of a store and of an expression")


def _check_one_kind(expressions: Mapping[str, Expression], operands: Mapping[str, Operand]) -> None:
    """Raise ExpressionError for numbers of several kinds; a way out leads to a kind that expressions take."""
    kinds = {type(operand.array): name for name, operand in operands.items() if operand.is_number}
    if len(kinds) < 2:
        return
    first, second, *_ = (Message(f"{name} is ", Kind.of(kind, "a")) for kind, name in kinds.items())
    systems = [operands[name].array.system for name in kinds.values()]
    known = {system.table_name: system for system in (least_system(0, 1, True), Positional(64), *systems)}
    a, b, *_ = systems
    ways = conversions_between(
        a, b, lambda table: table in known and _take(expressions, operands, known[table])
    )
    none = "no kind of numbers has all operations of the expressions"
    what = Message(first, ", and ", second, ", which do not mix")
    raise ExpressionError(with_ways(what, Conversions(ways) if ways else none))


def _take(
    expressions: Mapping[str, Expression], operands: Mapping[str, Operand], system: NumberSystem
) -> bool:
    """Whether expressions take numbers of one system in the place of all operands' numbers.

    ExpressionError for expressions that are wrong for numbers of any kind.
    """
    values: dict[str, Any] = {}
    for name, operand in operands.items():
        words = da.zeros((system.rows, *operand.array.shape), dtype=system.word_dtype, chunks=-1)
        values[name] = system.array_type(words, system) if operand.is_number else operand.array
    try:
        for name, expression in expressions.items():
            values[name] = evaluate(expression, values, "raise")
    except ExpressionError as error:
        if error.__cause__ is None:
            raise
        return not isinstance(error.__cause__, TypeError)  # which says that an operation is lacking
    return True


def _check_overflow(operands: Mapping[str, Operand], paths: Mapping[str, str], overflow: str | None) -> None:
    for name, operand in operands.items():
        if operand.is_number:
            try:
                check_overflow(paths[name], operand.array.system, overflow)
            except TypeError as error:
                raise ExpressionError(str(error)) from None


def _work(
    expressions: Mapping[str, Expression],
    evaluations: Mapping[str, Evaluation],
    opened: Mapping[str, Operand],
    together: Mapping[str, Operand],
) -> Work:
    """Describe the job by the largest chunks and the most words of a number."""
    blocks = [operand.words for operand in together.values()]
    largest = max(blocks, key=lambda words: words.size)
    arrays = [*(one.array for one in together.values()), *(one.value for one in evaluations.values())]
    systems = [array.system for array in arrays if isinstance(array, NumberArray)]
    rows = max((system.words32 for system in systems), default=2)
    # Results, also those that others use, stay in memory until the last one is made.
    steps = sum(evaluation.words for evaluation in evaluations.values())
    steps += max(evaluation.peak for evaluation in evaluations.values())
    parts = [evaluation for name, evaluation in evaluations.items() if _selections(expressions[name])]
    # Extended operands are in memory beside those that are read.
    extended = sum(not one.has_chunk_files or one.rows != rows for one in opened.values())
    return memory_plan.describe(
        "eval",
        systems,
        ChunkPlan.longest(largest.chunks[1:]),
        [operand.info for operand in opened.values()],
        beside=extended + steps / rows,
        passes=sum(evaluation.passes for evaluation in evaluations.values()),
        held=sum(_alive_of_parts(one.value) for one in parts) * rows * RESIDUE_DTYPE.itemsize,
    )


def _alive_of_parts(value: Any) -> int:
    """Most values in memory while parts are joined to storable chunks."""
    source = storable(value)
    return most_alive(value.chunks, source.chunks, value.shape)


def storable(value: Any) -> Any:
    """Rechunk values to chunks that a store can have."""
    if isinstance(value, NumberArray):
        return value.with_storable_chunks()
    return rechunk(value, storable_plan(value.chunks, 1).chunks)


# ---- operands in common chunks -----------------------------------------------------------------------------


def _align(operands: Mapping[str, Operand]) -> dict[str, Operand]:
    """Rechunk arrays whose shapes broadcast to common chunks: the shortest along each axis."""
    try:
        shape = np.broadcast_shapes(*(operand.array.shape for operand in operands.values()))
    except ValueError:  # parts of them may fit, or a matrix product; if not, the expression raises
        return dict(operands)
    lengths: dict[int, int] = {}
    for operand in operands.values():
        own = operand.words.shape[1:]
        for axis, (length, chunk) in enumerate(zip(own, operand.words.chunksize[1:], strict=True)):
            place = axis - len(own)
            if length == shape[place] and length:
                lengths[place] = int(min(chunk, lengths.get(place, chunk)))
    return {name: _rechunk(operand, lengths) for name, operand in operands.items()}


def _rechunk(operand: Operand, lengths: Mapping[int, int]) -> Operand:
    words = operand.words
    shape = words.shape[1:]
    own = zip(shape, range(-len(shape), 0), strict=True)
    chunks = tuple(min(length, lengths[place]) if length else 0 for length, place in own)
    if 0 in chunks or chunks == words.chunksize[1:]:
        return operand
    return operand.with_words(rechunk(words, (words.shape[0], *chunks)))


# ---- more moduli ------------------------------------------------------------------------------------------


def _extend(
    expressions: Mapping[str, Expression], operands: Mapping[str, Operand]
) -> tuple[dict[str, Operand], Extension]:
    """Bring all arrays of numbers to the fewest moduli that hold every result."""
    numbers = {name: operand for name, operand in operands.items() if operand.is_number}
    if not numbers:
        raise ExpressionError(Message(Setting("extend", True), " needs an array of numbers"))
    systems = [operand.array.system for operand in numbers.values()]
    for name, operand in numbers.items():
        if rows.residues_modulo.name not in operand.array.system.table:
            raise ExpressionError(
                Message(
                    Setting("extend", True),
                    f" is for residues, and {name} holds none: ",
                    operand.array.system.lacking(rows.residues_modulo),
                )
            )
    signed = {system.value_range[0] < 0 for system in systems}
    if len(signed) > 1:
        raise ExpressionError(
            "operands have different ranges: one is signed, another unsigned; no extension changes that"
        )
    known = {name: _known(operand) for name, operand in operands.items()}
    is_signed = signed.pop()
    found = range_of_steps(expressions, known, lowest=None if is_signed else 0)
    widest = max((system.moduli for system in systems), key=lambda moduli: moduli.product)
    needed = needed_product(
        found, is_signed, symmetric=systems[0].value_range[1] < systems[0].moduli.product - 1
    )
    target = enough_moduli(widest, needed)
    made: dict[int, Any] = {}
    for operand in numbers.values():
        if operand.array.moduli != target:
            made.setdefault(id(operand), replace(operand, array=operand.array.extend(target)))
    unbounded = tuple(name for name, o in numbers.items() if getattr(o.array, "bound", 0) is None)
    extension = Extension(max(len(system.moduli) for system in systems), len(target), unbounded)
    return {name: made.get(id(operand), operand) for name, operand in operands.items()}, extension


def _known(operand: Operand) -> Known:
    """Kind, range and shape of an operand's values."""
    array = operand.array
    if operand.is_number:
        system = array.system
        return Known(system.known_range, array.shape, NUMBERS)
    if array.dtype == np.bool_:
        return Known((0, 1), array.shape, BOOLEANS)
    ends = np.iinfo(array.dtype)
    return Known((int(ends.min), int(ends.max)), array.shape, SIGNS)


# ---- what is asked of results -----------------------------------------------------------------------------


def check_wanted(
    prepared: PreparedExpressions, wanted: Mapping[str, Sequence[str]], outputs: Mapping[str, Paths]
) -> None:
    """Raise ExpressionError for an unknown result, an impossible reduction, or a result that is not used.

    JobError if there is no number to reduce.

    `wanted` maps names of results to reductions: ``"max"``, ``"min"``, ``"sum"``, ``"argmax"``, ``"argmin"``
    for numbers; for a comparison ``"count"``, the number of places where it holds.
    """
    known = prepared.expressions
    for name in (*wanted, *outputs):
        if name not in known:
            raise ExpressionError(f"{name!r} is the name of no expression; these are {', '.join(known)}")
    used = {name for expression in known.values() for name in expression.names}
    for name, expression in known.items():
        if name not in used and name not in wanted and name not in outputs:
            raise ExpressionError(f"expression {expression.text!r}: {name!r} is not reduced, written or used")
    for name, reductions in wanted.items():
        value, called = prepared.evaluations[name].value, f"expression {known[name].text!r}"
        is_number = isinstance(value, NumberArray)
        for option in reductions:
            if is_number and rows.compare.name not in value.system.table:
                raise ExpressionError(
                    Message(
                        f"{called}: {option} is for integers, and these are elements of fields; ",
                        Way.INTEGERS,
                        " makes integers",
                    )
                )
            if option == "count" and (is_number or value.dtype != np.bool_):
                raise ExpressionError(f"{called}: count is for comparisons, and this is not one")
            if option != "count" and not is_number:
                raise ExpressionError(f"{called}: {option} is for numbers, and this has dtype {value.dtype}")
            if option not in ("count", "sum") and 0 in value.shape:
                raise JobError(
                    f"{called}: {option} of an empty array: it needs at least one number, got shape "
                    f"{value.shape}"
                )
