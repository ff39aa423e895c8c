"""Products of vectors and matrices, NumPy, CuPy or Dask, chunk by chunk (:mod:`rnsdask.rns.matmul`)."""

from functools import partial
from typing import Any

import dask.array as da
import numpy as np

from rnsdask.core.layout import RESIDUE_DTYPE
from rnsdask.core.moduli import ModuliSet
from rnsdask.core.overflow import overflow_mode
from rnsdask.core.place import flat_index
from rnsdask.lazy.operands import ResidueArray, check_alike, is_residue_array
from rnsdask.lazy.tree import boxed, check_sizes, combine_tree
from rnsdask.rns import matmul as products
from rnsdask.rns.arithmetic import operand_range
from rnsdask.rns.matmul import Product

# Parts of a product that are added at a time: each is as large as a chunk of the result.
_SPLIT_EVERY = 4


def matmul(a: ResidueArray, b: ResidueArray, *, overflow: str | None = None) -> Any:
    """Product ``a @ b`` of matrices or vectors, as NumPy's for one or two axes.

    Parameters
    ----------
    a, b : RNSArray, shape (I, K) or (K,), and (K, J) or (K,)
        Arrays of the same moduli set and range, on the same processor.
    overflow : {"raise", "wrap", "flag"}, optional
        What happens to results out of range; without it, what :func:`.errstate` set, else ``"raise"``. Only
        the results count, not partial sums.

    Returns
    -------
    RNSArray, shape (I, J), (I,) or (J,), or int
        Of two vectors a Python int. Lazy if an operand is. With ``"flag"`` a pair: the results modulo M, and
        a Boolean array (of two vectors a bool) that is true where the exact result is out of range.

    Raises
    ------
    RNSOverflowError
        With ``"raise"``, if an exact result is out of range; on Dask when it is computed.
    TypeError, ValueError
        If operands do not fit one another, have more than two axes, or `overflow` is no mode.
    """
    mode = overflow_mode(overflow)
    _check_operands(a, b)
    moduli, signed = a.moduli, a.signed
    x = a.residues if a.residues.ndim == 3 else a.residues[:, None, :]
    y = b.residues if b.residues.ndim == 3 else b.residues[:, :, None]
    _check_shapes(x, y, a, b)
    greatest = max(map(abs, moduli.value_range(signed)))
    bounds = [max(map(abs, operand_range(moduli, signed, array.bound))) for array in (a, b)]
    reach = int(x.shape[2]) * bounds[0] * bounds[1]
    is_safe = products.is_known_to_fit(moduli, signed, reach)
    # What is out of range raises, so a bound of what is left holds for every result.
    known = reach if reach < greatest and (mode == "raise" or is_safe) else None
    product, mask = _residues(x, y, moduli, signed, bounds, "wrap" if is_safe and mode == "raise" else mode)
    is_vector = [array.residues.ndim == 2 for array in (a, b)]
    kept = tuple(0 if vector else slice(None) for vector in is_vector)
    array_type: Any = type(a)
    if all(is_vector):
        result = array_type(product[:, 0], moduli, signed, known)[0]
    else:
        result = array_type(product[(slice(None), *kept)], moduli, signed, known)
    if mode != "flag":
        return result
    mask = mask[kept]
    return result, mask if mask.ndim or isinstance(mask, da.Array) else bool(mask)


def dot(a: ResidueArray, b: ResidueArray, *, overflow: str | None = None) -> Any:
    """Dot product, which for one or two axes is :func:`matmul`."""
    return matmul(a, b, overflow=overflow)


def _check_operands(a: Any, b: Any) -> None:
    for operand in (a, b):
        if not is_residue_array(operand):
            raise TypeError(
                f"both operands of a matrix product must be RNSArrays, got {type(operand).__name__} "
                "(* multiplies by a number)"
            )
        ndim = operand.residues.ndim - 1
        if ndim > 2:
            raise ValueError(f"operands of a matrix product have one or two axes, got {ndim}")
    check_alike(a, b)


def _check_shapes(x: Any, y: Any, a: ResidueArray, b: ResidueArray) -> None:
    for residues in (x, y):
        if isinstance(residues, da.Array):
            check_sizes(residues)
    if x.shape[2] != y.shape[1]:
        shapes = " and ".join(str(tuple(array.residues.shape[1:])) for array in (a, b))
        raise ValueError(
            f"shapes {shapes} do not match for a matrix product: its sums would have {x.shape[2]} and "
            f"{y.shape[1]} terms"
        )


def _residues(x: Any, y: Any, moduli: ModuliSet, signed: bool, bounds: list[int], mode: str) -> Any:
    """Residues (n, I, J) of the product and, with ``"flag"``, the mask; NumPy, CuPy or Dask arrays."""
    if isinstance(x, da.Array) or isinstance(y, da.Array):
        packed: Any = _multiply_lazily(x, y, moduli, signed, bounds, mode)
    elif mode == "wrap":
        packed = products.multiply(x, y, moduli)
    else:
        packed = products.finish(products.exact_product(x, y, moduli, signed, bounds), moduli, signed, mode)
    return (packed[:-1], packed[-1] != 0) if mode == "flag" else (packed, None)


def _multiply_lazily(
    x: Any, y: Any, moduli: ModuliSet, signed: bool, bounds: list[int], mode: str
) -> da.Array:
    """Products of chunks, sums of those along the contracted axis in a tree, and a check of the results."""
    x, y = (z if isinstance(z, da.Array) else da.from_array(z, chunks=-1, asarray=False) for z in (x, y))
    options: dict[str, Any] = {"moduli": moduli, "signed": signed}
    partials = da.blockwise(
        _multiply_blocks,
        "kij",
        x,
        "rik",
        y,
        "rkj",
        **options,
        bounds=None if mode == "wrap" else tuple(map(hex, bounds)),
        # Blocks come in lists along r: to join them, Dask would copy each.
        concatenate=False,
        adjust_chunks=dict.fromkeys("kij", 1),
        dtype=object,
        meta=np.empty((0, 0, 0), dtype=object),
        token="rns-matmul",
    )
    combine = partial(_add_blocks, **options)
    products = combine_tree(partials, combine, (0,), "rns-matmul-sum", _SPLIT_EVERY)
    rows = len(moduli) + (mode == "flag")
    like = next(z._meta for z in (x, y))
    result: da.Array = da.map_blocks(
        _finish_block,
        products,
        **options,
        mode=mode,
        chunks=((rows,), x.chunks[1], y.chunks[2]),
        dtype=RESIDUE_DTYPE,
        meta=np.empty_like(like, shape=(0, 0, 0), dtype=RESIDUE_DTYPE),
    )
    return result


def _multiply_blocks(
    a: list[Any], b: list[Any], *, moduli: ModuliSet, signed: bool, bounds: tuple[str, str] | None
) -> Any:
    """Box of the product of two chunks; without bounds modulo M."""
    (x,), (y,) = a, b
    if bounds is None:
        return boxed(Product(products.multiply(x, y, moduli), 0), 3)
    known = [int(bound, 16) for bound in bounds]
    return boxed(products.exact_product(x, y, moduli, signed, known), 3)


def _add_blocks(blocks: Any, axis: Any, keepdims: bool, moduli: ModuliSet, signed: bool) -> Any:  # noqa: ARG001
    if blocks.size == 0:  # Dask tries functions on an empty array to learn what they return
        return blocks
    return boxed(products.add(blocks.ravel().tolist(), moduli, signed), 3)


def _finish_block(box: Any, *, moduli: ModuliSet, signed: bool, mode: str, block_info: Any = None) -> Any:
    product = box.item()
    if mode == "wrap":
        return product.residues
    (_, *location), (_, *shape) = block_info[None]["array-location"], block_info[None]["shape"]
    return products.finish(product, moduli, signed, mode, lambda index: flat_index(index, location, shape))
