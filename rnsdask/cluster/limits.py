"""Memory that this process may use, and the check that a graph of so many chunks fits into it."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import dask
from dask.utils import parse_bytes

from rnsdask.core.errors import JobError
from rnsdask.core.ways import Message, Setting, with_ways

GRAPH_BYTES = 16 * 1024
"""Bytes of Dask's graph and state for each chunk, in the process that holds the graph."""

_FEW_CHUNKS = 2**14
"""Number of chunks whose graph fits everywhere."""

_FEW_BYTES = 2**30
"""Bytes of an array that any process has room for, so that no limit is asked for."""


_OF_CONTROL_GROUP = [
    Path("/sys/fs/cgroup", name)
    for name in (
        "memory.max",
        "memory.high",
        "memory/memory.limit_in_bytes",
        "memory/memory.soft_limit_in_bytes",
    )
]
"""Files with limits in bytes of the process's control group, of versions 2 and 1; other text is no limit."""


@contextmanager
def limited_memory(size: str) -> Iterator[None]:
    """Limit the memory of this process in the context, such as ``"4GiB"``; ValueError for other text."""
    text = size.strip()
    most = 0 if text.isdecimal() else int(parse_bytes(text))
    if most < 1:
        raise ValueError("it has no unit, or is 0")
    with dask.config.set({"rnsdask.memory": most}):
        yield


def process_limit() -> int:
    """Return the bytes that this process may use: of the host, its control group, or its own limits.

    Dask's configuration ``rnsdask.memory``, such as ``"4GiB"``, is a limit too.
    """
    import resource

    import psutil

    limits = [psutil.virtual_memory().total]
    if (given := dask.config.get("rnsdask.memory", None)) is not None:
        limits.append(parse_bytes(given))
    for path in _OF_CONTROL_GROUP:
        with suppress(OSError, ValueError):
            limits.append(int(path.read_text(encoding="ascii")))
    _, resident = resource.getrlimit(resource.RLIMIT_RSS)
    limit: int = min(each for each in (*limits, resident) if each > 0)
    address_space, _ = resource.getrlimit(resource.RLIMIT_AS)
    if address_space == resource.RLIM_INFINITY:
        return limit
    usage = psutil.Process().memory_info()
    return min(limit, address_space - int(usage.vms - usage.rss))  # what is mapped and not used counts


def check_bytes(need: int, what: str, *way: str | Setting) -> None:
    """Raise JobError if an array of that many bytes would not fit into this process's memory.

    `way` are the parts of the way out that it names.
    """
    if need > _FEW_BYTES and need > (limit := process_limit()):
        shown = f"{need / 1e9:.3g}" if need < 2**80 else "more than 1e+15"
        text = f"{what} would take {shown} GB of {limit / 1e9:.3g} GB of memory"
        raise JobError(with_ways(text, Message(*way)) if way else text)


def check_graph(count: int, what: str) -> None:
    """Raise JobError if Dask's graph of that number of chunks would not fit into this process's memory."""
    if count <= _FEW_CHUNKS:
        return
    need, limit = count * GRAPH_BYTES, process_limit()
    if need > limit:
        raise JobError(
            f"{what}: its {count} chunks would take {need / 1e9:.3g} GB for Dask's graph alone, of "
            f"{limit / 1e9:.3g} GB of memory; larger chunks are fewer"
        )
