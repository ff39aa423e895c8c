"""Errors of a job in one line, and whether they may pass."""

import errno
from concurrent.futures import CancelledError

from rnsdask.core.errors import CorruptChunkError, RNSError, StoreAccessError, StoreError
from rnsdask.core.ways import Message

_LASTING = frozenset(
    (
        *(errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS),
        *(errno.EACCES, errno.EPERM, errno.EEXIST, errno.EINVAL, errno.ENOSYS),
        *(errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.ENAMETOOLONG),
    )
)
"""Errors of the operating system, or of a service, that are the same a moment later."""

_NO_ROOM = frozenset((errno.ENOSPC, errno.EDQUOT))

# Of distributed, by name: it need not be imported to describe what it raises.
_WORKER_ERRORS = {"KilledWorker", "NoWorkerError", "NoValidWorkerError"}


def can_pass(error: BaseException) -> bool:
    """Return whether the same work may succeed when it is done again.

    It may after an error of a file system or a network that is not of a lasting kind, when memory was short,
    and when the workers that had the work died. Nothing else is worth a second try: a damaged chunk or an
    overflow is there again.
    """
    if isinstance(error, StoreAccessError | OSError):  # a connection or a time-out of distributed's too
        return error.errno not in _LASTING
    return isinstance(error, MemoryError) or type(error).__name__ in _WORKER_ERRORS


def leaves_nothing(error: BaseException) -> bool:
    """Return whether a job that ends with this error must remove what it began to write.

    It has after an error of its data, such as an overflow, a line that is no integer or a divisor of 0, which
    is there again when the job goes on; and when there is no room on the disk. After any other error, what is
    written can be of use to a job that resumes it.
    """
    if isinstance(error, StoreError | OSError):
        return getattr(error, "errno", None) in _NO_ROOM
    return isinstance(error, ArithmeticError | ValueError)


def describe(error: BaseException, unexpected: str = "") -> str:
    """Describe an error for people, with the type of those whose message alone is not meant for them.

    `unexpected` is what such a description ends with.
    """
    kind = type(error).__name__
    if kind == "KilledWorker":
        return _killed(error)
    if isinstance(error, CancelledError):
        return "the job was cancelled on the Dask cluster"
    if kind == "CommClosedError":
        return f"the connection to the Dask cluster was lost: {error}"
    if isinstance(error, CorruptChunkError | StoreAccessError):
        return str(error)
    if isinstance(error, OSError) and error.filename and error.strerror:
        return f"{error.filename}: {error.strerror}"
    if isinstance(error, MemoryError) and not isinstance(error, RNSError):
        figures = f": {error}" if str(error) else ""
        return f"not enough memory{figures}; smaller chunks or fewer threads need less"
    if isinstance(error, RNSError | OSError | ValueError):
        return str(error) or kind
    return Message(f"{kind}: ", error, unexpected)


def _killed(error: BaseException) -> str:
    address = getattr(getattr(error, "last_worker", None), "address", "unknown")
    deaths = getattr(error, "allowed_failures", 0) + 1
    return (
        f"{deaths} workers died at the same piece of work, the last of them {address}; if they ran out of "
        "memory, smaller chunks or fewer threads a worker need less"
    )
