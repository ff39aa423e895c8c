"""Number-theoretic transforms of chunks of field elements along an axis. No Dask in here."""

import numpy as np

from rnsdask.backend import Array, backend_name, cpu
from rnsdask.constants import transform_constants
from rnsdask.core.moduli import ModuliSet


def transform(words: Array, moduli: ModuliSet, axis: int, inverse: bool) -> Array:
    """Transforms of a chunk (n, *shape) along an axis of the numbers, or inverse ones.

    Parameters
    ----------
    moduli : ModuliSet
        Primes p; the length of the axis is a power of two that divides each p - 1.

    Raises
    ------
    NotImplementedError
        If the words are on a GPU.
    """
    if backend_name(words) == "cuda":
        raise NotImplementedError(
            "transforms run on the CPU only; rd.FieldArray(f.words.get(), f.system) brings an array there"
        )
    last = np.ascontiguousarray(np.moveaxis(words, axis + 1, -1))
    out = np.empty_like(last)
    if out.size:
        constants = transform_constants(moduli, last.shape[-1], inverse)
        cpu.ntt(last.reshape(len(moduli), -1), constants, out.reshape(len(moduli), -1))
    return np.moveaxis(out, -1, axis + 1)
