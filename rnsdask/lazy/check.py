"""Residues and bounds that users bring, checked: at once, or on Dask with each chunk."""

from typing import Any

import dask.array as da
import numpy as np

from rnsdask.backend import Array, backend_name, kernels_of
from rnsdask.core.layout import RESIDUE_DTYPE, as_matrix
from rnsdask.core.moduli import ModuliSet, from_text, to_text
from rnsdask.core.place import Locate, locate_in
from rnsdask.rns.bounds import find_excess


def readable(residues: Any) -> Any:
    """An array of NumPy, CuPy or Dask: a lazy one of any other kind, which is read by slices.

    Raises
    ------
    TypeError
        If it cannot be read by slices.
    """
    if isinstance(residues, np.ndarray):
        return np.asarray(residues)
    if isinstance(residues, da.Array) or backend_name(residues) == "cuda":
        return residues
    if not hasattr(residues, "__getitem__"):
        raise TypeError(f"residues must be an array that is read by slices, got {type(residues).__name__}")
    chunks = getattr(residues, "chunks", None) or ("auto",) * residues.ndim
    return da.from_array(residues, chunks=(-1, *chunks[1:]))


def checked(residues: Any, moduli: ModuliSet, signed: bool, bound: int | None) -> Any:
    """Check residues (n, *shape) of numbers, and that no number is greater in magnitude than a bound.

    Returns
    -------
    NumPy, CuPy or Dask array of uint32
        Nobody else can write to it: NumPy and CuPy arrays are copied, but for read-only ones. Of a Dask array
        each chunk is checked when it is computed.

    Raises
    ------
    ValueError
        If a residue is not below its modulus, or a number is beyond the bound; the message names the first.
    """
    if not isinstance(residues, da.Array):
        is_private = isinstance(residues, np.ndarray) and not residues.flags.writeable
        return _check_chunk(residues if is_private else residues.copy(), moduli, signed, bound)
    # Where a chunk lies makes its task large; only an error of the bound names the place.
    function = _check_residues if bound is None else _check_block
    return da.map_blocks(
        function,
        residues.rechunk({0: -1}),
        moduli,
        signed,
        to_text(bound),
        dtype=RESIDUE_DTYPE,
        meta=residues._meta,
    )


def checked_residues(residues: Array, moduli: ModuliSet) -> Array:
    """Return a NumPy or CuPy array of residues, or raise ValueError if one is not below its modulus."""
    matrix = as_matrix(residues)
    found = kernels_of(matrix).first_invalid(matrix, moduli)
    if found is not None:
        i, j = found
        raise ValueError(
            f"residue {int(matrix[i, j])} of the number at flat position {j} is not below "
            f"its modulus {moduli[i]} (row {i})"
        )
    return residues


def _check_chunk(
    residues: Array, moduli: ModuliSet, signed: bool, bound: int | None, locate: Locate = int
) -> Array:
    checked_residues(residues, moduli)
    excess = None if bound is None else find_excess(residues, moduli, signed, bound)
    if excess is not None and bound is not None:
        raise ValueError(f"the number at flat index {locate(excess.index)} is {excess.text(bound)}")
    return residues


def _check_residues(block: Array, moduli: ModuliSet, signed: bool, bound: None) -> Array:
    return _check_chunk(block, moduli, signed, bound)


def _check_block(
    block: Array, moduli: ModuliSet, signed: bool, bound: str | None, block_info: Any = None
) -> Array:
    return _check_chunk(block, moduli, signed, from_text(bound), locate_in(block_info))
