"""How much memory this process may use, and whether a graph of so many chunks fits into it."""

from importlib.util import find_spec
from pathlib import Path
from runpy import run_path

from rnsdask.core.errors import JobError

GRAPH_BYTES = 16 * 1024
"""Bytes of Dask's graph and state for each chunk, in the process that holds the graph."""

_FEW_CHUNKS = 2**14
"""Chunks whose graph fits everywhere."""


def process_limit() -> int:
    """Bytes that this process may use: of the host, its control group, or its own limits."""
    import resource

    import psutil

    limit = _memory_limit()
    address_space, _ = resource.getrlimit(resource.RLIMIT_AS)
    if address_space == resource.RLIM_INFINITY:
        return limit
    usage = psutil.Process().memory_info()
    mapped = int(usage.vms - usage.rss)
    return min(limit, address_space - mapped)  # what is mapped and not used counts too


def _memory_limit() -> int:
    """What ``distributed.system`` says, by itself: importing its package takes longer than a short job."""
    package = find_spec("distributed")
    assert package is not None
    file = Path(package.origin or "").with_name("system.py")
    return int(run_path(str(file))["memory_limit"]())


def check_graph(count: int, what: str) -> None:
    """Check the number of chunks of an array before Dask's graph of them is made.

    Raises
    ------
    JobError
        If the graph would not fit into this process's memory.
    """
    if count <= _FEW_CHUNKS:
        return
    need, limit = count * GRAPH_BYTES, process_limit()
    if need > limit:
        raise JobError(
            f"{what}: its {count} chunks would take {need / 1e9:.3g} GB for Dask's graph alone, of "
            f"{limit / 1e9:.3g} GB of memory; larger chunks are fewer"
        )
