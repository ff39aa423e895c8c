"""Operations of arrays of field elements, lazy on Dask (:mod:`rnsdask.fields.arithmetic`)."""

from functools import partial
from typing import Any, NoReturn

import dask.array as da
import numpy as np

from rnsdask.backend import Array
from rnsdask.core.errors import brief
from rnsdask.core.layout import as_matrix
from rnsdask.core.moduli import as_integer
from rnsdask.core.number_system import NumberSystem
from rnsdask.core.place import ALONE, Place
from rnsdask.core.scalar_int import ScalarInt
from rnsdask.fields.elements import elements_of
from rnsdask.fields.fermat_field import FermatField
from rnsdask.fields.finite_fields import FiniteFields
from rnsdask.lazy.check import as_declared
from rnsdask.lazy.chunks import as_lazy
from rnsdask.lazy.lazy_ints import LazyInts
from rnsdask.lazy.map import map_chunks, map_values, reduce_chunks
from rnsdask.lazy.operands import (
    Numbers,
    Operand,
    integer_of,
    is_lazy_integer,
    is_number_array,
    made_like,
    prepare,
    scalar,
)
from rnsdask.lazy.tree import check_sizes, combine_tree
from rnsdask.rns.compare import choose


def of_fields(value: Any) -> bool:
    """Whether a value is an array of field elements."""
    return is_number_array(value) and isinstance(value.system, FiniteFields)


def refuse(name: str) -> NoReturn:
    """Raise the TypeError of what field elements do not have."""
    raise TypeError(
        f"{name} takes no FieldArray: elements of fields have no order, sign or size; x.lift() makes "
        "integers, which have"
    )


def check_no_overflow(overflow: str | None) -> None:
    """Raise TypeError if somebody asks what happens on overflow."""
    if overflow is not None:
        raise TypeError(
            f"results in a field do not overflow, so overflow= is not taken, got {brief(overflow)}"
        )


def apply(name: str, *values: Operand, overflow: str | None = None) -> Any:
    """Apply an operation of :data:`.operations.OPERATIONS` in each field."""
    check_no_overflow(overflow)
    operands = prepare(*values)
    options: dict[str, Any] = {"operation": name, "system": operands.system}
    words = map_chunks(
        _apply_block, *operands.blocks, rows=operands.system.rows, token=f"field-{name}", **options
    )
    return made_like(values, words, operands.system, "raise")


def divide(a: Operand, b: Operand) -> Any:
    """Quotient ``a / b`` in each field; ZeroDivisionError if one is divided by what is 0 in one."""
    if is_number_array(a) and 0 in a.words.shape[1:]:  # nothing is divided, so that b may be 0
        return apply("multiply", a, b)
    if is_number_array(b):
        return apply("multiply", a, inverse(b))
    system: FiniteFields = a.system
    if is_lazy_integer(b):
        reciprocal = LazyInts.of(map_values(_reciprocal_block, b, system=system, dtype=object))
        return apply("multiply", a, reciprocal)
    return apply("multiply", a, elements_of(system).reciprocal(scalar(b)))


def relate(a: Numbers, relation: str, b: Operand) -> Any:
    """Where ``a == b`` or ``a != b``: in all fields, or in one at least."""
    if relation not in ("==", "!="):
        refuse(relation)
    operands = prepare(a, b)
    options: dict[str, Any] = {"relation": relation, "system": operands.system}
    return map_chunks(_relate_block, *operands.blocks, dtype=np.bool_, **options)


def where(condition: Any, a: Operand, b: Operand) -> Any:
    """The element of `a` where a condition holds, else that of `b`."""
    operands = prepare(a, b, masks=(condition,))
    how: dict[str, Any] = {"rows": operands.system.rows, "dtype": operands.system.word_dtype}
    words = map_chunks(choose, *operands.blocks, **how)
    return made_like((a, b), words, operands.system, "raise")


def inverse(x: Numbers) -> Any:
    """Inverse of each element, as :func:`.powers.inverse` says."""
    options: dict[str, Any] = {"rows": x.system.rows, "system": x.system}
    return made_like((x,), map_chunks(_inverse_block, x.words, located=True, **options), x.system, "raise")


def power(x: Numbers, exponent: Any) -> Any:
    """Powers of each element by one integer, as :func:`.powers.power` says."""
    options: dict[str, Any] = {"rows": x.system.rows, "located": True, "system": x.system}
    if is_lazy_integer(exponent):
        words = map_chunks(_power_block_lazily, as_lazy(x.words), exponent, **options)
    else:
        k = as_integer(exponent, "exponent")
        words = map_chunks(_power_block, x.words, exponent=k, **options)
    return made_like((x,), words, x.system, "raise")


def multiply_by_root(x: Numbers, exponent: Any) -> Any:
    """Each element times a power of the radix, as :meth:`.FieldArray.multiply_by_root` says."""
    if not isinstance(x.system, FermatField):
        raise TypeError(
            f"multiply_by_root takes elements of a FermatField, whose digits it moves, got {x.system!r}"
        )
    power = as_integer(exponent, "exponent") % (2 * x.system.digits)
    how: dict[str, Any] = {"rows": x.system.rows, "system": x.system, "exponent": power}
    return made_like((x,), map_chunks(_multiply_by_root_block, x.words, **how), x.system, "raise")


def elements_of_integers(x: Numbers, system: FiniteFields) -> Any:
    """Words of the elements that the integers of an array stand for."""
    how: dict[str, Any] = {"rows": system.rows, "integers": x.system, "system": system}
    return map_chunks(_elements_block, x.words, located=True, **how)


def checked_words(words: Any, system: FermatField) -> Any:
    """Digits of elements, checked; those in memory are copied."""
    if isinstance(words, da.Array):
        words = as_declared(words).rechunk({0: -1})
    return map_chunks(_checked_block, words, rows=system.rows, located=True, system=system)


def reduce_along(name: str, x: Numbers, axes: tuple[int, ...], split_every: int | None) -> Any:
    """The ``"sum"`` or ``"prod"`` of elements along axes, which keep length 1; lazy on Dask, in a tree."""
    system: FiniteFields = x.system
    options: dict[str, Any] = {"operation": name, "system": system, "axes": axes}
    if not isinstance(x.words, da.Array):
        return made_like((x,), _reduce_block(x.words, **options), x.system, "raise")
    check_sizes(x.words)
    parts = reduce_chunks(_reduce_block, x.words, axes, rows=system.rows, dtype=system.word_dtype, **options)
    combine = partial(_combine_parts, **options)
    words = combine_tree(parts, combine, tuple(axis + 1 for axis in axes), f"field-{name}", split_every)
    return made_like((x,), words, x.system, "raise")


# ---- chunks -----------------------------------------------------------------------------------------------


def _apply_block(*blocks: Array, operation: str, system: FiniteFields) -> Array:
    return elements_of(system).apply(operation, blocks)


def _relate_block(a: Array, b: Array, *, relation: str, system: FiniteFields) -> Array:
    different = elements_of(system).differ(a, b)
    return (different if relation == "!=" else ~different)[None]


def _reciprocal_block(integer: Any, system: FiniteFields) -> Any:
    return ScalarInt(elements_of(system).reciprocal(integer_of(integer)))


def _inverse_block(block: Array, *, system: FiniteFields, place: Place) -> Array:
    return elements_of(system).inverse(block, place.flat_index)


def _power_block(block: Array, *, exponent: int, system: FiniteFields, place: Place) -> Array:
    return elements_of(system).power(block, exponent, place.flat_index)


def _power_block_lazily(block: Array, exponent: Any, *, system: FiniteFields, place: Place) -> Array:
    return elements_of(system).power(block, integer_of(exponent), place.flat_index)


def _multiply_by_root_block(block: Array, *, exponent: int, system: FermatField) -> Array:
    return elements_of(system).multiply_by_root(block, exponent)


def _reduce_block(block: Array, *, operation: str, system: FiniteFields, axes: tuple[int, ...]) -> Array:
    elements = elements_of(system)
    return (elements.sums_along if operation == "sum" else elements.products_along)(block, axes)


def _combine_parts(
    blocks: Any,
    axis: Any,  # noqa: ARG001  (combine_tree passes both)
    keepdims: bool,  # noqa: ARG001
    **options: Any,
) -> Any:
    return _reduce_block(blocks, **options)


def _elements_block(block: Array, *, integers: NumberSystem, system: FiniteFields, place: Place) -> Array:
    limbs = integers.limbs_of(as_matrix(block))
    words = system.words_of_limbs(limbs, integers.is_signed, place.flat_index)
    return words.reshape(system.rows, *block.shape[1:])


def _checked_block(block: Array, *, system: FermatField, place: Place) -> Array:
    system.check_digits(block, place.flat_index)
    return block.copy() if place is ALONE else block
