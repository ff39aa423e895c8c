"""The CRC-32C of google_crc32c, by its C function, which other threads need not wait for."""

import ctypes
from collections.abc import Callable
from importlib import import_module
from typing import Any

import google_crc32c
import numpy as np
from numpy.typing import NDArray

_KNOWN = b"123456789"


def _c_function() -> Any:
    """The function of the library that google_crc32c wraps; None where it cannot be had, or does not agree.

    The wrapper holds Python's lock: 16 threads that read from the page cache get no further than 3.
    """
    try:
        library = ctypes.CDLL(import_module("google_crc32c._crc32c").__file__)
        function = library.crc32c_extend  # found among the libraries that the module is linked with
    except (ImportError, OSError, AttributeError):
        return None
    function.argtypes, function.restype = (ctypes.c_uint32, ctypes.c_void_p, ctypes.c_size_t), ctypes.c_uint32
    # It is no part of what the wrapper promises: another release may have another one of that name.
    return function if function(0, _KNOWN, len(_KNOWN)) == google_crc32c.value(_KNOWN) else None


_extend = _c_function()


def _extend_without_lock(checksum: int, content: NDArray[np.uint8]) -> int:
    return int(_extend(checksum, content.ctypes.data, content.size))


address: int | None = ctypes.cast(_extend, ctypes.c_void_p).value if _extend else None
"""Address of google-crc32c's ``uint32_t extend(uint32_t, const uint8_t *, size_t)``, or None."""

extend: Callable[[int, NDArray[np.uint8]], int] = _extend_without_lock if _extend else google_crc32c.extend
"""The checksum of what `checksum` is of, 0 of nothing, with the bytes of a contiguous array after it."""
