"""Preparation of Dask workers: ``dask worker ADDRESS --preload rnsdask.worker``.

Dask imports this module in each worker process, and calls :func:`dask_setup` before the worker joins its
scheduler. So the first task finds the extension and the arrays imported, and a worker of another version gets
no task.
"""

import asyncio
import logging
from typing import TYPE_CHECKING

from rnsdask import arrays as arrays  # with the extension and zarr, which take a second
from rnsdask.backend import prepare_gpu
from rnsdask.cluster.workers import check_scheduler
from rnsdask.core.errors import JobError

if TYPE_CHECKING:
    from distributed import Worker

_running: set[asyncio.Task[None]] = set()
"""Preparations of GPUs that are not done yet, to which asyncio itself keeps no lasting reference."""


async def dask_setup(worker: "Worker") -> None:
    """Refuse a scheduler of another version, and have the GPU prepared once the worker has started.

    SystemExit, after a line in the worker's log, if the scheduler runs another version of rnsdask or none.
    Dask only logs other errors of a preload, and lets the worker join.
    """
    try:
        await check_scheduler(worker)
    except JobError as error:
        logging.getLogger("distributed.worker").error("%s; it does not join", error)
        raise SystemExit(1) from None
    preparation = asyncio.create_task(_prepare_gpu(worker))
    _running.add(preparation)
    preparation.add_done_callback(_running.discard)


async def _prepare_gpu(worker: "Worker") -> None:
    await worker  # started: dask-cuda makes the CUDA context after this preload, and warns where there is one
    await asyncio.to_thread(prepare_gpu)
