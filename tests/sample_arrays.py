"""Arrays of a test's numbers, on a processor and in chunks of any lengths, and results brought back."""

import operator
from typing import Any

import dask.array as da
import numpy as np
from conftest import Processor
from oracles import rns

import rnsdask as rd

CPU = Processor("cpu", np)

RELATIONS = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


def array_of(
    processor: Processor, values: Any, moduli: rd.ModuliSet, signed: bool = False, bound: int | None = None
) -> rd.RNSArray:
    """An eager array without a bound that could prove anything, unless one is given."""
    return rd.RNSArray(
        processor.xp.asarray(rns.encode(values, moduli, signed)), rd.RNS(moduli, signed, bound)
    )


def chunked(x: rd.RNSArray, *chunks: Any) -> rd.RNSArray:
    """Cut an array into Dask chunks of given lengths along each axis, also such as no store allows."""
    return rd.RNSArray(da.from_array(x.residues, chunks=(-1, *chunks)), x.system)


def host(array: Any) -> np.ndarray:
    """A NumPy, CuPy or Dask array in NumPy."""
    array = array.compute(scheduler="sync") if isinstance(array, da.Array) else array
    return array.get() if hasattr(array, "get") else np.asarray(array)
