"""Clusters that this process starts on GPUs of its host, and how their workers exchange chunks."""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from typing import Any, Literal

from rnsdask.cluster.failures import describe
from rnsdask.core.errors import JobError
from rnsdask.core.ways import Message, Setting, must, with_ways

PROTOCOLS = ("tcp", "ucx")
"""Protocols of the workers, as Dask calls them."""

_BY_TCP = Message(Setting("protocol", "tcp"), " needs no UCX")


def check_protocol(protocol: str) -> None:
    """Raise ValueError if workers know no such protocol, JobError if it is UCX, which is not installed."""
    if protocol not in PROTOCOLS:
        raise ValueError(must("protocol", f"be one of {', '.join(PROTOCOLS)}, got {protocol!r:.80}"))
    if protocol == "ucx" and find_spec("distributed_ucxx") is None:
        raise JobError(with_ways("UCX needs the package distributed-ucxx (extra ucx12 or ucx13)", _BY_TCP))


@contextmanager
def gpu_cluster(gpus: int | Literal["all"], threads: int, protocol: str | None = None) -> Iterator[Any]:
    """Start a cluster on this host, a worker for each GPU, and close it in the end.

    Each worker has `threads` threads. They exchange chunks by TCP unless told otherwise: the ports of UCX are
    open on all networks. ValueError and JobError as of :func:`check_protocol`; JobError also if
    there are too few GPUs, or a package is missing.
    """
    protocol = protocol or "tcp"
    check_protocol(protocol)
    try:
        from dask_cuda import LocalCUDACluster
        from dask_cuda.utils import get_n_gpus
    except ImportError as error:
        raise JobError(f"GPU workers need the package dask-cuda (extra cu12 or cu13): {error}") from error
    try:
        available = get_n_gpus()
    except Exception as error:  # NVML has errors of its own
        raise JobError(f"the GPUs of this host cannot be counted: {error}") from error
    count = available if gpus == "all" else gpus
    if count < 1 and gpus != "all":
        raise ValueError(f"the number of GPUs must be at least 1, got {gpus}")
    if not 1 <= count <= available:
        raise JobError(f"{count or 'all'} GPUs were asked for, and this host has {available}")
    # Workers are as quiet as this process is told to be, also when Ctrl-C comes to them too.
    quiet = max(logging.WARNING, logging.root.manager.disable)
    # No dashboard: the versions of bokeh from 3.10 on and of distributed before 2026.8 fail to close one.
    options: dict[str, Any] = {"dashboard_address": None, "silence_logs": quiet}
    options |= {"threads_per_worker": threads, "protocol": protocol, "preload": ["rnsdask.worker"]}
    if protocol == "ucx":
        _prepare_ucx()
    try:
        started = LocalCUDACluster(n_workers=count, **options)
    except Exception as error:  # whatever UCX lacks on this host, with Dask's errors around it
        if protocol != "ucx":
            raise
        message = f"workers that exchange chunks by UCX do not start: {describe(_first_cause(error))}"
        raise JobError(with_ways(message, _BY_TCP)) from error
    try:
        yield started
    finally:
        with suppress(OSError):  # one that does not close in time costs no answer
            started.close()


def _prepare_ucx() -> None:
    """Set what UCX reads when it is loaded, here and in the workers, unless the user has set it."""
    # Its listeners are on every network of the host, and take connections of these devices only.
    os.environ.setdefault("UCX_NET_DEVICES", "lo")
    os.environ.setdefault("UCX_LOG_FILE", "stderr")  # standard output is for results
    os.environ.setdefault("UCX_WARN_UNUSED_ENV_VARS", "n")  # among others of one that UCXX itself sets
    # It warns of a CUDA context that it has not made: this process may have computed, on the right GPU.
    logging.getLogger("distributed_ucxx").setLevel(logging.ERROR)


def _first_cause(error: BaseException) -> BaseException:
    while error.__cause__ is not None:
        error = error.__cause__
    return error
