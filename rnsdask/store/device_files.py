"""Chunk files that KvikIO reads straight into a GPU's memory, where they are checked.

With GPUDirect Storage the data do not pass through the host's memory. Where that is not available, KvikIO
reads through buffers of its own ("compatibility mode").
"""

import functools
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rnsdask.backend import Array, device_memory, has_gpu
from rnsdask.core.errors import StoreAccessError
from rnsdask.core.moduli import ModuliSet
from rnsdask.store.chunk_files import checked_words, chunk_file_size, open_chunk_file

_PIECE_BYTES = 2**30
"""Read at a time: one call of the operating system reads less than 2 GiB."""


@functools.cache
def _kvikio() -> Any:
    """KvikIO's module; None if it is not installed, or lacks a library that it needs."""
    try:
        import kvikio
    except (ImportError, OSError, RuntimeError):
        return None
    return kvikio


def reads_on_gpu() -> bool:
    """Whether this process has a GPU, and KvikIO to read into its memory."""
    return has_gpu() and _kvikio() is not None


def read_device_file(
    file: Path, shape: Sequence[int], moduli: ModuliSet | None, name: str
) -> tuple[Array, bool]:
    """Read a chunk into memory of the current GPU, and check it.

    Parameters
    ----------
    file
        The chunk's file.
    shape
        Shape of a whole chunk of residues: n, then the chunk's length along each axis.
    moduli
        Of the rows; None to read words of another kind.
    name
        What error messages call the chunk.

    Returns
    -------
    residues : cupy.ndarray
        ``uint32``, of `shape`.
    valid : bool
        Whether each is below its row's modulus; False if they have none.

    Raises
    ------
    CorruptChunkError, StoreAccessError
        As :func:`.chunk_files.read_chunk_file`.
    """
    file_size = chunk_file_size(shape)
    with open_chunk_file(file, file_size, name):
        words = device_memory(math.prod(shape) + 1)  # the last one is the checksum
        size = _fill(words, file, name)
    return checked_words(words, size, shape, moduli, name)


def _fill(words: Array, file: Path, name: str) -> int:
    """Read a file into memory of a GPU, and return how many bytes were read."""
    content = words.view(np.uint8)
    done = 0
    try:
        with _kvikio().CuFile(file, "r") as source:
            while done < content.size:
                # In this thread: after an error, threads of KvikIO's own might still write to memory that is
                # another chunk's by then.
                read = source.raw_read(content[done : done + _PIECE_BYTES], file_offset=done)
                if read == 0:
                    break
                done += read
    except RuntimeError as error:  # what KvikIO makes of errors of the system, of CUDA and of cuFile
        reason = " ".join(str(error).split())
        way_out = "Dask's setting rnsdask.kvikio: false reads without it"
        raise StoreAccessError(f"{name} cannot be read by KvikIO: {reason} ({way_out})") from error
    return done
