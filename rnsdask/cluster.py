"""Where a job runs: on the threads of this process, on the GPUs of this host, or on a Dask cluster."""

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rnsdask.errors import JobError

if TYPE_CHECKING:
    from distributed import Client

CONNECT_SECONDS = 5
"""How long a scheduler may take to answer."""

WORKERS_SECONDS = 30
"""How long a scheduler may take to have its first worker."""


@contextmanager
def connect(
    scheduler: str | None = None,
    scheduler_file: str | None = None,
    gpus: int | Literal["all"] | None = None,
) -> Iterator["Client | None"]:
    """Connect to where a job shall run.

    Parameters
    ----------
    scheduler : str, optional
        Address of a running scheduler, such as ``tcp://node1:8786``.
    scheduler_file : str, optional
        File in which a running scheduler has written its address.
    gpus : int or "all", optional
        Start a worker for each of so many GPUs of this host, or of all of them.

    Yields
    ------
    client : distributed.Client or None
        It does not become Dask's default client. None where no parameter is given: then a job runs on the
        threads of this process.

    Raises
    ------
    ValueError
        If more than one parameter is given, or `gpus` is less than 1.
    JobError
        If a package is missing, the scheduler cannot be reached or has no workers, or there are not so many
        GPUs.
    """
    if sum(given is not None for given in (scheduler, scheduler_file, gpus)) > 1:
        raise ValueError("give one of scheduler, scheduler_file and gpus, not several")
    if scheduler is None and scheduler_file is None and gpus is None:
        yield None
        return
    with ExitStack() as stack:
        if gpus is not None:
            address: Any = stack.enter_context(_gpu_cluster(gpus))
            name = "the cluster of this host's GPUs"
        elif scheduler_file is not None:
            name = address = _address_in_file(Path(scheduler_file))
        else:
            name = address = str(scheduler)
        client = stack.enter_context(_client(address, name))
        _wait_for_workers(client, name)
        yield client


def _client(address: Any, name: str) -> "Client":
    try:
        from distributed import Client
        from distributed.comm.addressing import resolve_address
    except ImportError as error:
        raise JobError(f"a cluster needs the package distributed: {error}") from error
    try:
        if isinstance(address, str):
            resolve_address(address)  # a client made with a bad address would take ten seconds to go away
        # Not as the default: if it fails to connect, the default would be left set to what does not exist.
        return Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError) as error:
        raise JobError(f"no Dask scheduler answers at {name}: {error}") from error


def _address_in_file(path: Path) -> str:
    # Left to itself, the client would wait for ever for a file that does not exist.
    try:
        address = json.loads(path.read_text(encoding="utf-8"))["address"]
    except OSError as error:
        raise JobError(f"{path}: the scheduler file cannot be read: {error.strerror}") from error
    except (ValueError, TypeError, KeyError) as error:
        raise JobError(f"{path}: it is not a Dask scheduler file, for it holds no address") from error
    return str(address)


def _wait_for_workers(client: "Client", name: str) -> None:
    try:
        client.wait_for_workers(1, timeout=WORKERS_SECONDS)
    except TimeoutError as error:
        raise JobError(f"the Dask scheduler at {name} has had no worker for {WORKERS_SECONDS} s") from error


def _gpu_cluster(gpus: int | Literal["all"]) -> Any:
    """Start a cluster on this host, a worker for each GPU."""
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
    return LocalCUDACluster(n_workers=count)
