"""Dask's schedulers in forked processes, which lack the threads of the process that they came from."""

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NoReturn

import dask
from dask import threaded
from dask.system import CPU_COUNT

from rnsdask.core.errors import JobError

# Values of Dask's setting `scheduler` with which the current client computes.
_OF_CLIENTS = (None, "dask.distributed", "distributed")


class ForkThreads(ThreadPoolExecutor):
    """Threads of a forked process in place of those that it lacks, where nobody chose a pool for it."""


def _replace_scheduler() -> None:
    """Give Dask new threads if its pools have lost theirs, and an error in place of a client that has.

    Dask would wait for their results for ever.
    """
    if dask.config.get("scheduler", None) in _OF_CLIENTS and _has_client():
        dask.config.set(scheduler=_refuse)
    if threaded.default_pool or threaded.pools or dask.config.get("pool", None):
        dask.config.set(pool=ForkThreads(dask.config.get("num_workers", None) or CPU_COUNT))


def _has_client() -> bool:
    if "distributed" not in sys.modules:
        return False
    from distributed import Client

    try:
        Client.current()
    except ValueError:
        return False
    return True


def _refuse(_graph: Any, _keys: Any, **_options: Any) -> NoReturn:
    raise JobError(
        "this process was forked from one that has a Dask client, which cannot compute here; start the "
        "process by multiprocessing.get_context('spawn'), or use compute(scheduler='threads')"
    )


os.register_at_fork(after_in_child=_replace_scheduler)
