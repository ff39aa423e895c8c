"""What the first chunks that come to a GPU wait for, made by a thread while the process imports libraries."""

from contextlib import suppress
from threading import Thread

from rnsdask.backend.cuda import files, launching


def prepare() -> None:
    """Have a thread make it ready. Errors are met, and told, by whoever uses the GPU then."""
    Thread(target=_prepare, name="rnsdask-first-use").start()


def _prepare() -> None:
    with suppress(Exception):
        files.prepare()
        launching.load("crc32c", "crc32c")  # and the compiler, which CuPy asks even for kernels on disk
