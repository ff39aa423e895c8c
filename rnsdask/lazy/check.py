"""Residues and bounds that users bring, checked: at once, or on Dask with each chunk."""

import math
from typing import Any

import dask.array as da
import numpy as np
from dask.array.utils import meta_from_array

from rnsdask.backend import Array, kernels_of
from rnsdask.core.errors import NumberError
from rnsdask.core.layout import as_matrix
from rnsdask.core.moduli import ModuliSet
from rnsdask.core.place import ALONE, Place
from rnsdask.lazy.chunks import rechunked, without_empty_chunks
from rnsdask.lazy.map import map_chunks, map_values
from rnsdask.rns.bounds import find_excess
from rnsdask.rns.system import RNS


def as_declared(values: Any) -> Any:
    """An array without masked values; one of Dask without empty chunks, the others as it says that they are.

    The type is that of machine integers and Booleans: bounds follow from it, limbs are read as of it, and
    masks and positions are taken for it. Where a chunk has other lengths, numbers would be left out, or have
    the places of others; what is masked would count as if it were not. Of Dask it is an error when such a
    chunk is computed, as of a function that was told another type or shape.
    """
    if not isinstance(values, da.Array):
        if np.ma.is_masked(values):
            raise ValueError("values are masked; fill them first")
        return values
    declared = values.dtype if values.dtype.kind in "biu" else None
    if declared is None and not values.ndim:  # an integer of any size, or text
        return values
    how: dict[str, Any] = {"dtype": values.dtype, "like": meta_from_array(values), "located": True}
    return without_empty_chunks(map_values(_as_declared_block, values, declared=declared, **how))


def _as_declared_block(block: Any, *, declared: np.dtype[Any] | None, place: Place) -> Any:
    if not hasattr(block, "dtype"):  # of one integer that a function gave, as it was made delayed
        block = np.asarray(block, dtype=np.min_scalar_type(block))
    if np.ma.is_masked(block):
        raise ValueError(f"values are masked in chunk {place.index} of a Dask array; fill them first")
    if declared is not None and not np.can_cast(block.dtype, declared):
        raise TypeError(f"a Dask array says that its chunks are {declared}, and one is {block.dtype}")
    lengths = tuple(stop - start for start, stop in place.location)
    if len(lengths) != block.ndim or any(
        length != known for length, known in zip(block.shape, lengths, strict=True) if not math.isnan(known)
    ):
        raise ValueError(
            f"a Dask array says that its chunk {place.index} has shape {lengths}, and it has {block.shape}"
        )
    # Limbs of a narrower type would be taken for parts of limbs.
    return block if declared is None else block.astype(declared, copy=False)


def checked(residues: Any, system: RNS) -> Any:
    """Check residues (n, *shape) of numbers, and that no number is greater in magnitude than the bound.

    NumPy and CuPy arrays are copied, so that nobody else can write to them, but for read-only ones. Each
    chunk of a Dask array is checked when it is computed. ValueError for the first wrong one.
    """
    if not isinstance(residues, da.Array):
        is_private = isinstance(residues, np.ndarray) and not residues.flags.writeable
        return _check_block(residues if is_private else residues.copy(), system=system)
    residues = rechunked(as_declared(residues), {0: -1})
    return map_chunks(_check_block, residues, rows=system.rows, located=True, system=system)


def within_bound(residues: Any, system: RNS) -> Any:
    """Check that no number is greater in magnitude than the bound; each residue is below its modulus.

    Return the same array; or a Dask array that checks each chunk when it is computed.
    """
    return map_chunks(_check_bound, residues, rows=system.rows, located=True, system=system)


def checked_residues(residues: Array, moduli: ModuliSet, place: Place = ALONE) -> Array:
    """Return a NumPy or CuPy array of residues, or raise ValueError if one is not below its modulus."""
    matrix = as_matrix(residues)
    found = kernels_of(matrix).first_invalid(matrix, moduli)
    if found is not None:
        i, j = found
        raise ValueError(
            f"residue {int(matrix[i, j])} of the number at flat position {place.flat_index(j)} is not below "
            f"its modulus {moduli[i]} (row {i})"
        )
    return residues


def _check_block(residues: Array, *, system: RNS, place: Place = ALONE) -> Array:
    return _check_bound(checked_residues(residues, system.moduli, place), system=system, place=place)


def _check_bound(residues: Array, *, system: RNS, place: Place) -> Array:
    excess = find_excess(residues, system)
    if excess is not None and system.bound is not None:
        where = place.flat_index(excess.index)
        raise NumberError(f"the number at flat index {where} is {excess.text(system.bound)}")
    return residues
