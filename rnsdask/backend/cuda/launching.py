"""Compiling kernels at first use, launching them, and what the arguments of all of them are made of.

All work goes to the current device and stream, which must be the ones of the arrays.
"""

import functools
from typing import Any

import cupy
import numpy as np

from rnsdask.backend import cuda_sources
from rnsdask.backend.protocol import Array
from rnsdask.constants import modulus_table
from rnsdask.moduli import ModuliSet

BLOCK = 256
BLOCKS_PER_PROCESSOR = 8
WARP = 32
SHARED_BYTES = 48 * 1024
_PROCESSOR_COUNT = 16  # cudaDevAttrMultiProcessorCount


@functools.cache
def _module(name: str) -> Any:
    options = (
        *cuda_sources.NVRTC_OPTIONS,
        f"-I{cuda_sources.include_directory()}",
        f"-DRNS_SOURCES={cuda_sources.sources_digest()}",
    )
    return cupy.RawModule(code=cuda_sources.source(name), options=options, backend="nvrtc")


@functools.cache
def _kernel(module: str, name: str, device: int) -> Any:
    # A function belongs to one device, hence `device` in the key of the cache.
    return _module(module).get_function(name)


@functools.cache
def processors(device: int) -> int:
    """Multiprocessors of a device."""
    return int(cupy.cuda.runtime.deviceGetAttribute(_PROCESSOR_COUNT, device))


def launch(
    module: str,
    name: str,
    threads: int,
    arguments: tuple[Any, ...],
    *,
    block: int = BLOCK,
    shared: int = 0,
) -> int:
    """Run a kernel whose threads stride over their work; returns the number of blocks."""
    device = cupy.cuda.runtime.getDevice()
    most = processors(device) * BLOCKS_PER_PROCESSOR * BLOCK // block
    blocks = max(1, min(most, -(-threads // block)))
    _kernel(module, name, device)((blocks,), (block,), arguments, shared_mem=shared)
    return blocks


@functools.lru_cache(256)
def _constant_on(constants: Any, field: str, device: int) -> Any:
    return cupy.asarray(getattr(constants, field))


def on_device(constants: Any, field: str) -> Any:
    """The array `field` of `constants` on the current device, copied once."""
    return _constant_on(constants, field, cupy.cuda.runtime.getDevice())


@functools.lru_cache(256)
def modulus_table_on(moduli: ModuliSet, device: int) -> Any:
    """What arithmetic needs of the moduli, on a device, copied once."""
    return cupy.asarray(modulus_table(moduli))


def row_stride(residues: Array) -> np.int64:
    """Distance in elements from a residue to the next residue of the same number.

    Raises
    ------
    ValueError
        If the numbers of a row are not next to one another, for the kernels would read others.
    """
    if residues.size and residues.shape[1] > 1 and residues.strides[1] != residues.itemsize:
        raise ValueError("residues: the numbers' axis must be contiguous")
    return np.int64(residues.strides[0] // residues.itemsize)


def array_arguments(residues: Array) -> tuple[Any, ...]:
    """Residues, stride, number of numbers, number of moduli: how every kernel but the reductions starts."""
    return residues, row_stride(residues), np.int64(residues.shape[1]), np.int32(residues.shape[0])
