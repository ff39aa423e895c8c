"""Processes forked from one that has imported what jobs and Dask's workers need: a second less for each."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.context import ForkServerContext, ForkServerProcess
from typing import cast

import dask
from distributed.utils import get_mp_context

_METHOD = {"distributed.worker.multiprocessing-method": "forkserver"}
_IMPORTED = ["distributed.cli.dask_scheduler", "distributed.cli.dask_worker", "rnsdask.jobs.evaluation"]


def _forking() -> ForkServerContext:
    with dask.config.set(_METHOD):
        context = cast("ForkServerContext", get_mp_context())  # it names modules of its own, the first time
    context.set_forkserver_preload(_IMPORTED)
    return context


@contextmanager
def forked_workers() -> Iterator[None]:
    """Let processes of Dask's clusters be forked, also those that it starts again."""
    _forking()
    with dask.config.set(_METHOD):
        yield


def start(code: str, *arguments: str) -> ForkServerProcess:
    """Start a process that does what ``python -c`` would, without a word."""
    process = _forking().Process(target=_run, args=(code, arguments))
    process.start()
    return process


def _run(code: str, arguments: tuple[str, ...]) -> None:
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (1, 2):
        os.dup2(nowhere, stream)
    sys.argv = ["-c", *arguments]
    exec(code, {"__name__": "__main__"})
