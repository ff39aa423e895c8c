"""Checks of residues and bounds from users: at once, or on Dask with each chunk."""

import math
from typing import Any

import dask.array as da
import numpy as np
from dask.array.utils import meta_from_array

from rnsdask.backend import Array, kernels_of
from rnsdask.core.layout import as_matrix
from rnsdask.core.moduli import ModuliSet
from rnsdask.core.place import ALONE, Place
from rnsdask.lazy.chunks import rechunk, without_empty_chunks
from rnsdask.lazy.map import map_chunks, map_values
from rnsdask.rns.bounds import check_bound
from rnsdask.rns.system import RNS


def as_declared(values: Any) -> Any:
    """Check that an array has no masked values; a Dask array also that its chunks are as declared.

    Bounds, limbs, masks and positions are interpreted by the declared type, so that integers and Booleans
    must have it. A chunk of other lengths would lose or shift numbers, and masked values would count as
    present. Empty chunks of a Dask array are removed. An invalid chunk is an error when it is computed, for
    example if a function was declared to return another type or shape.
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
    if not hasattr(block, "dtype"):  # a Delayed function returned one integer
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
    # Limbs of a narrower type would count as parts of limbs.
    return block if declared is None else block.astype(declared, copy=False)


def check_numbers(residues: Any, system: RNS) -> Any:
    """Check residues (n, *shape) of numbers, and that no number is greater in magnitude than the bound.

    NumPy and CuPy arrays are copied unless they are read-only, so that nobody else can write to them. Each
    chunk of a Dask array is checked when it is computed. ValueError for the first invalid number.
    """
    if not isinstance(residues, da.Array):
        is_private = isinstance(residues, np.ndarray) and not residues.flags.writeable
        return _check_block(residues if is_private else residues.copy(), system=system)
    residues = rechunk(as_declared(residues), {0: -1})
    return map_chunks(_check_block, residues, rows=system.rows, located=True, system=system)


def check_within_bound(residues: Any, system: RNS) -> Any:
    """Check that no number is greater in magnitude than the bound, given valid residues.

    Return the same array, or a Dask array that checks each chunk when it is computed.
    """
    return map_chunks(check_bound, residues, rows=system.rows, located=True, system=system)


def checked_residues(residues: Array, moduli: ModuliSet, place: Place = ALONE) -> Array:
    """Return residues of NumPy or CuPy; ValueError if one is not below its modulus."""
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
    return check_bound(checked_residues(residues, system.moduli, place), system=system, place=place)
