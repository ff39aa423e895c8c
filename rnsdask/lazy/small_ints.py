"""Numbers made of an array of small integers, such as signs, beside an array of numbers."""

from typing import Any

import numpy as np

from rnsdask.backend import Array, backend_name, to_backend
from rnsdask.core.number_system import NumberSystem
from rnsdask.core.place import Place
from rnsdask.lazy.map import map_chunks
from rnsdask.lazy.operands import Numbers, made_like
from rnsdask.rns.promotion import least_system


def numbers_of(small: Any, like: Numbers) -> Any:
    """An array of the integers of an array of an integer dtype.

    Parameters
    ----------
    small : NumPy, CuPy or Dask array of integers
        At most 64 bits each.
    like : RNSArray or IntervalRNSArray
        Whose kind, moduli set and range the result has; one that grows has moduli and a sign for the dtype.

    Returns
    -------
    RNSArray or IntervalRNSArray, shape of `small`
        Lazy if that is; with the bound that the dtype gives.

    Raises
    ------
    RNSOverflowError
        If an integer is out of range; for a Dask array when it is computed.
    """
    system, ends = like.system, np.iinfo(small.dtype)
    if system.grows:
        system = least_system(int(ends.min), int(ends.max), signed=False)
    words = map_chunks(_encode_block, small[None], rows=system.rows, located=True, system=system)
    bound = max(-int(ends.min), int(ends.max))
    return made_like((like,), words, system.with_bound(bound), "raise")


def _encode_block(block: Array, *, system: NumberSystem, place: Place) -> Array:
    host = to_backend(block[0], "cpu")
    ends, (lowest, highest) = np.iinfo(host.dtype), system.value_range
    outside = (host < max(lowest, int(ends.min))) | (host > min(highest, int(ends.max)))
    if outside.any():
        first = int(outside.reshape(-1).argmax())
        raise system.overflow_error(int(host.reshape(-1)[first]), place.flat_index(first))
    return to_backend(system.encode(host), backend_name(block))
