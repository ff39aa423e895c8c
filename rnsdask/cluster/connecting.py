"""Connections to where a job runs: threads of this process, GPUs of this host, or a Dask cluster."""

import asyncio
import json
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal

import dask

from rnsdask.backend import gpu_count as gpu_count
from rnsdask.backend import has_gpu
from rnsdask.backend.cpu.files import read_first
from rnsdask.cluster.failures import describe
from rnsdask.cluster.gpu_cluster import gpu_cluster
from rnsdask.cluster.workers import ask, check_workers, explained_by_workers, identity
from rnsdask.core.errors import JobError
from rnsdask.core.files import naming_file, private
from rnsdask.core.messages import redact, tell
from rnsdask.core.places import local_path
from rnsdask.core.ways import Message, Way

if TYPE_CHECKING:
    from distributed import Client
    from distributed.security import Security

CONNECT_SECONDS = 5
"""Time that a scheduler may take to answer."""

_LONGEST_FILE = 2**24
"""Most bytes of a scheduler file that are read: it has a few hundred for each worker."""

THREADS_PER_GPU = 8
"""Number of threads of a GPU's worker: while one computes, others read."""

WORKERS_SECONDS = 30
"""Time that a cluster may be without workers."""


@contextmanager
def connect(
    scheduler: str | None = None,
    scheduler_file: str | None = None,
    gpus: int | Literal["all"] | None = None,
    security: "Security | None" = None,
    threads_per_gpu: int = THREADS_PER_GPU,
    protocol: str | None = None,
) -> Iterator["Client | None"]:
    """Connect to the cluster that a job runs on, and check its workers.

    Without parameters that is the client that is active in this process, as in a notebook; else the scheduler
    of Dask's setting ``scheduler-address`` (``DASK_SCHEDULER_ADDRESS`` in the environment); else the threads
    of this process.

    Parameters
    ----------
    scheduler : str, optional
        Address of a running scheduler, such as ``tcp://node1:8786``.
    scheduler_file : str, optional
        File in which a running scheduler has written its address.
    gpus : int or "all", optional
        Start a worker for each of this number of GPUs of this host, or for all of them.
    security : distributed.Security, optional
        Certificates for a scheduler that is connected to by TLS; without it, those of Dask's settings
        (``distributed.comm.tls``).
    threads_per_gpu : int
        Threads of each worker that is started for a GPU.
    protocol : {"tcp", "ucx"}, optional
        How workers that are started for GPUs exchange chunks; by default TCP. UCX needs distributed-ucxx.

    Yields
    ------
    client : distributed.Client or None
        One made here does not become Dask's default client, and is closed in the end. None: the job runs on
        the threads of this process.

    Raises
    ------
    ValueError
        If more than one of `scheduler`, `scheduler_file` and `gpus` is given, `gpus` is less than 1, or
        `protocol` is given without `gpus`, or is not one of the two.
    JobError
        If a package is missing, the scheduler cannot be reached or has no workers, there are not so many
        GPUs, or a worker has not the same version of rnsdask (also one that joins
        later and fails the job).
    """
    if sum(given is not None for given in (scheduler, scheduler_file, gpus)) > 1:
        raise ValueError("give one of scheduler, scheduler_file and gpus, not several")
    if protocol is not None and gpus is None:
        raise ValueError(
            f"protocol={protocol!r} is for the workers of gpus=; a cluster that runs has its own"
        )
    with ExitStack() as stack:
        active = active_client() if scheduler is scheduler_file is gpus is None else None
        if active is not None:
            client, name = active, str(identity(active)["address"])
        else:
            address: Any = scheduler
            name = str(scheduler)
            if scheduler_file is not None:
                address = name = _address_in_file(local_path(scheduler_file, "scheduler_file"))
            elif gpus is not None:
                address = stack.enter_context(gpu_cluster(gpus, threads_per_gpu, protocol))
                name = "the cluster of this host's GPUs"
            elif scheduler is None:
                address = dask.config.get("scheduler-address", None)
                name = f"{address} (DASK_SCHEDULER_ADDRESS)"
            if address is None:
                yield None
                return
            client = stack.enter_context(_client(address, name, security))
        try:
            client.wait_for_workers(1, timeout=WORKERS_SECONDS)
        except TimeoutError:
            message = f"the Dask scheduler at {name} has had no worker for {WORKERS_SECONDS} s"
            raise JobError(message) from None
        check_workers(client)
        with explained_by_workers(client):
            yield client


def check_gpu() -> None:
    """Raise JobError unless this process has a GPU, which jobs on its threads use without a cluster."""
    if not has_gpu():
        raise JobError("1 GPU was asked for, and this host has 0, or no CuPy (extra cu12 or cu13)")


def tls_security(ca_file: Path | None, cert: Path | None, key: Path | None) -> "Security | None":
    """Read certificates for :func:`connect` from PEM files; None if no file is given.

    `ca_file` has the certificates that signed the scheduler's; `cert` has this client's certificate, and its
    key unless `key` is given. An option that is None comes from Dask's settings
    (``distributed.comm.tls``). ValueError if neither give certificates of both sides; JobError if a file is
    not what it should be.
    """
    if ca_file is cert is key is None:
        return None
    from distributed.security import Security

    files = {"tls_ca_file": ca_file, "tls_client_cert": cert, "tls_client_key": key}
    given = {name: str(path) for name, path in files.items() if path is not None}
    # With it Dask refuses an address of another protocol, where it would ignore the certificates.
    security = Security(require_encryption=True, **given)
    try:
        context = security.get_connection_args("client").get("ssl_context")
    except OSError as error:
        raise JobError(f"{', '.join(given.values())}: no certificates or key for TLS: {error}") from error
    if context is None:
        raise ValueError("TLS needs the certificates of a CA and of this client")
    return security


def dashboard_of(client: "Client") -> str | None:
    """Return the address of the dashboard of a client's cluster, if it has one.

    A scheduler without Bokeh, or whose dashboard is switched off, has an HTTP server and its address too, but
    no application there.
    """

    def has_pages(dask_scheduler: Any) -> bool:  # local, as pickle then sends it whole
        return bool(dask_scheduler.http_application.applications)

    if "dashboard" not in identity(client)["services"] or not ask(client, client.run_on_scheduler, has_pages):
        return None
    return str(client.dashboard_link)


@contextmanager
def reporting(client: "Client | None", path: str | None) -> Iterator[None]:
    """Write Dask's performance report of what a client's cluster does meanwhile, as HTML, if there is a path.

    If it cannot be written in the end, after the work, that is a line on standard error: no answer is lost. A
    job that fails has no report. OSError if the file cannot be written, before the work.
    """
    if client is None or path is None:
        yield
        return
    from distributed import performance_report

    with naming_file(path), open(path, "ab", opener=private):  # better now than after hours of work
        pass
    with client.as_current(), TemporaryDirectory() as folder:
        draft = Path(folder, "report.html")
        report = performance_report(filename=str(draft))
        ask(client, report.__aenter__)
        yield
        try:
            ask(client, report.__aexit__, None, None, None, code="rnsdask")
            with naming_file(path):
                Path(path).write_text(redact(draft.read_text(encoding="utf-8")), encoding="utf-8")
        except Exception as error:  # of any type: the scheduler's own are sent along
            tell(f"rnsdask: warning: {path}: there is no report: {describe(error)}")


def active_client() -> "Client | None":
    """Return the client that is Dask's default in this process."""
    if "distributed" not in sys.modules:
        return None
    from distributed import default_client

    try:
        client: Client = default_client()
        return client
    except ValueError:
        return None


@contextmanager
def _client(address: Any, name: str, security: "Security | None") -> Iterator["Client"]:
    """Make a client, and close it in the end."""
    try:
        from distributed import Client
    except ImportError as error:
        raise JobError(f"a cluster needs the package distributed: {error}") from error
    # Not as the default: if it fails to connect, the default would be left set to what does not exist.
    options: dict[str, Any] = {"timeout": CONNECT_SECONDS, "set_as_default": False, "security": security}
    try:
        if isinstance(address, str):
            _check_encryption(address, security)
            with ThreadPoolExecutor(1) as thread:  # this one may run an event loop, as in a notebook
                thread.submit(asyncio.run, _answer_from(address, security)).result()
        client = Client(address, **options)
    except (OSError, ValueError) as error:
        raise JobError(Message(f"no Dask scheduler answers at {name}: ", error)) from error
    try:
        yield client
    finally:
        with suppress(OSError):  # a scheduler that is silent now, or gone: the answer is there
            client.close()


async def _answer_from(address: str, security: "Security | None") -> None:
    """Raise OSError unless a scheduler answers in time.

    A client's own limit ends once it is connected, and a frozen scheduler still takes connections.
    """
    from distributed.comm.core import connect as connected
    from distributed.security import Security

    how = (security or Security()).get_connection_args("client")
    try:
        async with asyncio.timeout(CONNECT_SECONDS + 1):  # after Dask's own limit, which says more
            comm = await connected(address, timeout=CONNECT_SECONDS, **how)
    except TimeoutError as error:
        raise OSError(f"it accepts connections, and does not answer for {CONNECT_SECONDS} s") from error
    await comm.close()


def _check_encryption(address: str, security: "Security | None") -> None:
    """Raise ValueError where an address and what there is for TLS do not fit."""
    from distributed.comm.addressing import parse_address
    from distributed.security import Security

    known = Security() if security is None else security  # Dask's settings
    protocol, _ = parse_address(address)
    if protocol == "tcp" and known.require_encryption:
        raise ValueError(
            "its address is not encrypted, although TLS was asked for: it must begin with tls://"
        )
    if protocol == "tls" and known.get_connection_args("client").get("ssl_context") is None:
        raise ValueError(
            Message(
                "TLS needs certificates, in ",
                Way.CERTIFICATES,
                " or in Dask's settings distributed.comm.tls",
            )
        )


def _address_in_file(path: Path) -> str:
    # Left to itself, the client would wait for ever for a file that does not exist.
    try:
        address = json.loads(read_first(path, _LONGEST_FILE))["address"]
    except OSError as error:
        raise JobError(f"{path}: the scheduler file cannot be read: {error.strerror}") from error
    except (ValueError, TypeError, KeyError) as error:
        raise JobError(f"{path}: it is not a Dask scheduler file, for it holds no address") from error
    return str(address)
