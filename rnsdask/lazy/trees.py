"""Products and remainders of all numbers of an array in trees, on Dask in two passes over the chunks.

The first pass multiplies the numbers of each chunk. One task goes up and down the tree of the chunks. The
second pass multiplies again, which is cheaper than keeping all products, and goes down to the numbers.
"""

from __future__ import annotations

from typing import Any, Generic, SupportsIndex

import dask.array as da
import numpy as np

from rnsdask.core import rows
from rnsdask.core.moduli import as_integer
from rnsdask.core.place import Place
from rnsdask.lazy.chunks import as_lazy, rechunk
from rnsdask.lazy.elementwise import entry_of
from rnsdask.lazy.lazy_ints import as_exact
from rnsdask.lazy.map import map_chunks, reduce_chunks
from rnsdask.lazy.operands import N, integer_of, is_lazy_integer, make_like
from rnsdask.lazy.recompute import recompute
from rnsdask.lazy.tree import check_sizes, put_in_box
from rnsdask.positional import trees
from rnsdask.typing import Integer


class ProductTree(Generic[N]):
    """Products of all numbers of an array in a balanced tree, from :func:`product_tree`."""

    def __init__(self, x: N) -> None:
        entry_of(rows.product_tree, x)
        self._x = x
        self._is_lazy = isinstance(x.words, da.Array)
        if self._is_lazy:
            check_sizes(x.words)
        else:
            self._tree: trees.Tree = x.system.apply(rows.product_tree, x.words)

    @property
    def product(self) -> Integer:
        """Product of all numbers, a Python int; lazy if the array is. It is 1 without numbers."""
        product: Any
        if self._is_lazy:
            roots = self._roots(self._x.words, cofactors=False)
            chunks = ((1,),) * (roots.ndim - 1)
            found = map_chunks(_product, roots, rows=1, chunks=chunks, dtype=object)
            product = as_exact(found)[(0,) * found.ndim]
        else:
            product = self._tree.product
        integer: Integer = product
        return integer

    def remainders(self, value: SupportsIndex) -> N:
        """Compute the remainders ``value % x`` of one integer, of any size and sign, which may be lazy."""
        found: N
        if is_lazy_integer(value):
            found = self._leaves((value,), None, divisors=False)
            return found
        number = as_integer(value, "value")
        if self._is_lazy:
            found = self._leaves((), number, divisors=False)
        else:
            found = make_like((self._x,), self._tree.remainders(number), self._x.system, "raise")
        return found

    def common_divisors(self) -> N:
        """Compute common divisors of each number and the product of all others, as :func:`batch_gcd`."""
        if self._is_lazy:
            found: N = self._leaves((), None, divisors=True)
        else:
            found = make_like((self._x,), self._tree.common_divisors(), self._x.system, "raise")
        return found

    def _roots(self, words: da.Array, cofactors: bool) -> da.Array:
        how: dict[str, Any] = {"system": self._x.system, "cofactors": cofactors}
        boxes = reduce_chunks(_root_block, words, None, located=True, rows=1, dtype=object, **how)
        whole: da.Array = rechunk(boxes, dict.fromkeys(range(boxes.ndim), -1))
        return whole

    def _leaves(self, lazy: tuple[Any, ...], value: int | None, *, divisors: bool) -> Any:
        words, system = as_lazy(self._x.words), self._x.system
        roots = self._roots(words, cofactors=divisors)
        found = map_chunks(
            _fractions, roots, *lazy, rows=1, chunks=roots.chunks[1:], dtype=object, value=value
        )
        pairs = recompute(words), rechunk(found, dict.fromkeys(range(found.ndim), 1))
        how: dict[str, Any] = {"system": system, "divisors": divisors}
        made = map_chunks(_leaves_block, *pairs, rows=system.rows, located=True, matched=True, **how)
        return make_like((self._x,), made, system, "raise")


def product_tree(x: N) -> ProductTree[N]:
    """Multiply all numbers of an array in a balanced tree.

    Parameters
    ----------
    x : PositionalArray
        Positive numbers, of any count and shape.

    Returns
    -------
    ProductTree
        Its ``product`` is an int of any size, and its ``remainders(value)`` divide one integer by each
        number. Both are lazy if `x` is.

    Raises
    ------
    TypeError
        If `x` is not a PositionalArray.
    ValueError
        If a number is 0 or negative; it names the flat index. For a Dask array when it is computed.

    Examples
    --------
    >>> import rnsdask as rd
    >>> x = rd.from_ints([3, 5, 7], rd.Positional(64))
    >>> tree = rd.product_tree(x)
    >>> tree.product, tree.remainders(100).tolist()
    (105, [1, 0, 2])
    """
    return ProductTree(x)


def remainder_tree(value: SupportsIndex, x: N) -> N:
    """Remainders of one integer by each number of an array, as ``value % x``, in a tree.

    It is faster than one division for each number if the integer is about as long as all numbers together,
    for example their product.

    Parameters
    ----------
    value : int
        An integer of any size and sign, which may be lazy.
    x : PositionalArray
        Positive numbers, of any count and shape.

    Returns
    -------
    PositionalArray
        Like `x`; lazy if `x` or the integer is.

    Raises
    ------
    TypeError
        If `x` is not a PositionalArray, or `value` is not an integer.
    ValueError
        If a number is 0 or negative; it names the flat index. For a Dask array when it is computed.

    Notes
    -----
    D. Bernstein, "Scaled remainder trees" (2004).
    """
    entry_of(rows.product_tree, x, name="remainder_tree")
    found: N = ProductTree(x).remainders(value)
    return found


def batch_gcd(x: N) -> N:
    """Greatest common divisors of each number of an array and the product of all others.

    The time is nearly linear in the total length of all numbers: a tree of products, one of remainders, and
    one common divisor for each number.

    Parameters
    ----------
    x : PositionalArray
        Positive numbers, of any count and shape, such as RSA moduli.

    Returns
    -------
    PositionalArray
        Like `x`; lazy if `x` is. It is 1 for a number without common factors with any other, and the number
        itself if the others contain all of its factors.

    Raises
    ------
    TypeError
        If `x` is not a PositionalArray.
    ValueError
        If a number is 0 or negative; it names the flat index. For a Dask array when it is computed.

    Notes
    -----
    D. Bernstein, "How to find smooth parts of integers" (2004). The sum of all products that omit one number,
    taken modulo a number, is the product of the others: this number divides all other terms.

    Examples
    --------
    >>> import rnsdask as rd
    >>> x = rd.from_ints([3 * 5, 7 * 11, 5 * 13, 2], rd.Positional(64))
    >>> rd.batch_gcd(x).tolist()
    [5, 1, 5, 1]
    """
    entry_of(rows.product_tree, x, name="batch_gcd")
    found: N = ProductTree(x).common_divisors()
    return found


def _root_block(block: Any, *, system: Any, cofactors: bool, place: Place) -> np.ndarray[Any, Any]:
    tree = system.apply(rows.product_tree, block, locate=place.flat_index)
    return put_in_box(tree.root(cofactors), block.ndim)


def _product(roots: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return put_in_box(trees.product_of(list(roots.flat)), roots.ndim)


def _fractions(roots: np.ndarray[Any, Any], *lazy: Any, value: int | None) -> np.ndarray[Any, Any]:
    number = integer_of(lazy[0]) if lazy else value
    found = np.empty(roots.size, dtype=object)
    for i, fraction in enumerate(trees.fractions(list(roots.flat), number)):
        found[i] = fraction
    return found.reshape(roots.shape)


def _leaves_block(
    block: Any, fraction: np.ndarray[Any, Any], *, system: Any, divisors: bool, place: Place
) -> Any:
    tree = system.apply(rows.product_tree, block, locate=place.flat_index)
    return tree.leaves(fraction.item(), divisors=divisors)
