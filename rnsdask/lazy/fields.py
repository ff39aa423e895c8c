"""Operations of arrays of field elements, lazy on Dask (:mod:`rnsdask.fields.arithmetic`)."""

from functools import partial
from typing import Any

import dask.array as da

from rnsdask.backend import Array
from rnsdask.core import rows
from rnsdask.core.moduli import as_integer
from rnsdask.core.place import ALONE, Place
from rnsdask.core.ways import Kind, Message, Way, with_ways
from rnsdask.fields.fermat_field import FermatField
from rnsdask.fields.system import FiniteFields
from rnsdask.lazy.check import as_declared
from rnsdask.lazy.chunks import rechunk
from rnsdask.lazy.elementwise import apply, has
from rnsdask.lazy.map import map_chunks, reduce_chunks
from rnsdask.lazy.operands import Numbers, is_number_array, make_like
from rnsdask.lazy.tree import check_sizes, combine_tree
from rnsdask.typing import SplitEvery


def check_elements(name: str, value: Any) -> None:
    """Raise TypeError, for a function of elements of fields, unless a value is an array with division."""
    if not is_number_array(value) or rows.divide_by.name not in value.system.table:
        way = Way.FIELDS if is_number_array(value) else "rd.from_ints(x, fields)"
        got = Kind.of(type(value)) if is_number_array(value) else type(value).__name__
        what = Message(f"{name} takes ", Kind("FieldArray", "a"), ", got ", got)
        raise TypeError(with_ways(what, Message(way, " makes one")))


def multiply_by_root(x: Numbers, exponent: Any) -> Any:
    """Multiply each element by a power of the radix, as :meth:`.FieldArray.multiply_by_root`."""
    if not has(rows.multiply_by_root, x):
        raise TypeError(
            f"multiply_by_root takes elements of a FermatField, whose digits it moves, got {x.system!r}"
        )
    return apply(rows.multiply_by_root, x, exponent=as_integer(exponent, "exponent") % (2 * x.system.digits))


def checked_words(words: Any, system: FermatField) -> Any:
    """Check the digits of elements; digits in memory are copied."""
    if isinstance(words, da.Array):
        words = rechunk(as_declared(words), {0: -1})
    return map_chunks(_checked_block, words, rows=system.rows, located=True, system=system)


def reduce_along(name: str, x: Numbers, axes: tuple[int, ...], split_every: SplitEvery) -> Any:
    """Compute the ``"sum"`` or ``"prod"`` of elements along axes, which keep length 1; on Dask in a tree."""
    system: FiniteFields = x.system
    options: dict[str, Any] = {"operation": name, "system": system, "axes": axes}
    if not isinstance(x.words, da.Array):
        return make_like((x,), _reduce_block(x.words, **options), x.system, "raise")
    check_sizes(x.words)
    parts = reduce_chunks(_reduce_block, x.words, axes, rows=system.rows, dtype=system.word_dtype, **options)
    combine = partial(_combine_parts, **options)
    words = combine_tree(parts, combine, tuple(axis + 1 for axis in axes), f"field-{name}", split_every)
    return make_like((x,), words, x.system, "raise")


# ---- chunks -----------------------------------------------------------------------------------------------


def _reduce_block(block: Array, *, operation: str, system: FiniteFields, axes: tuple[int, ...]) -> Array:
    row = {"sum": rows.sum_along, "prod": rows.prod_along}[operation]
    return system.apply(row, block, axes=axes)


def _combine_parts(
    blocks: Any,
    axis: Any,  # noqa: ARG001  (combine_tree passes both)
    keepdims: bool,  # noqa: ARG001
    **options: Any,
) -> Any:
    return _reduce_block(blocks, **options)


def _checked_block(block: Array, *, system: FermatField, place: Place) -> Array:
    system.check_digits(block, place.flat_index)
    return block.copy() if place is ALONE else block
