"""Checks of a cluster: it answers, all run the same versions, and see the same store."""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from typing import TYPE_CHECKING, Any

from rnsdask._version import __version__
from rnsdask.backend import gpu_count
from rnsdask.cluster.workers import ask, ask_workers, identity, workers_of
from rnsdask.core.errors import JobError, RNSError, WorkerVersionError
from rnsdask.core.messages import list_some, size_text
from rnsdask.doctor.findings import Finding, fault, warning
from rnsdask.store.location import Location
from rnsdask.store.metadata import read_metadata
from rnsdask.store.opening import load_any
from rnsdask.store.paths import locate

if TYPE_CHECKING:
    from distributed import Client

Connect = Callable[[], AbstractContextManager["Client | None"]]
"""Connects to the cluster of the options or of Dask's settings; gives None where there is none."""

SAME = ("python", "dask", "distributed", "rnsdask")
"""Packages that must have one version everywhere: what they send one another depends on it."""

ALIKE = ("numpy", "zarr", "numcodecs", "gmpy2", "msgpack", "cloudpickle", "toolz", "tornado")
"""Packages that should have one version everywhere."""


def check_cluster(connect: Connect, path: str | None) -> Iterator[Finding]:
    """Check the cluster that jobs would run on, if there is one, and the store of a path there and here."""
    here = list(check_store(path)) if path is not None else []
    try:
        with connect() as client:
            if client is not None:
                yield from _check_workers(client)
            yield from here
            if client is not None and path is not None and not here[0].way_out:
                yield from _check_store_on_workers(client, locate(path))
    except WorkerVersionError as error:
        yield fault("cluster", str(error), f"pip install rnsdask=={__version__} there, and start them anew")
        yield from here
    except (JobError, ValueError) as error:
        way = "start dask scheduler and dask worker ADDRESS, with this Python, or name another scheduler"
        yield fault("cluster", str(error), way)
        yield from here


def check_store(path: str) -> Iterator[Finding]:
    """Check that a store can be read here, as far as its metadata say."""
    try:
        info, complete = load_any(locate(path))
    except (OSError, ValueError, ImportError, RuntimeError) as error:
        yield fault("store", str(error), "correct the path, or write the store again")
        return
    shape = " x ".join(map(str, info.shape))
    text = f"{path}: {shape} {info.system.numbers_are}; chunks: {info.n_chunks}"
    if complete:
        yield Finding("store", text)
    else:
        way = "go on with the command that writes it, with --resume"
        yield warning("store", f"{text}, not complete", way)


def _check_workers(client: "Client") -> Iterator[Finding]:
    workers = workers_of(client)
    yield Finding("scheduler", f"{identity(client)['address']}: it answers")
    gpus = ask_workers(client, gpu_count, workers)
    threads = sum(worker["nthreads"] for worker in workers.values())
    memory = sum(worker["memory_limit"] or 0 for worker in workers.values())
    count = sum(answer for answer in gpus.values() if isinstance(answer, int))
    text = f"{len(workers)} (threads: {threads}, memory: {size_text(memory)}, GPUs: {count})"
    yield Finding("workers", text, facts={"workers": len(workers), "threads": threads, "gpus": count})
    if silent := sorted(set(workers) - set(gpus)):
        yield fault("workers", f"{list_some(silent)} do not answer", "start them anew, or look at their logs")
    yield from _check_versions(client)


def _check_versions(client: "Client") -> Iterator[Finding]:
    """Compare versions on the scheduler and the workers with those of this process."""
    packages = [name for name in (*SAME, *ALIKE) if name != "python"]
    answers: Any = ask(client, client.get_versions, packages=packages)
    own = answers["client"]["packages"]
    others = {"the scheduler": answers["scheduler"], **answers["workers"]}
    for names, make in ((SAME, fault), (ALIKE, warning)):
        differing = []
        for name in names:
            where: dict[str, list[str]] = {}
            for address, answer in others.items():
                found = answer["packages"].get(name) if answer else None
                if found != own.get(name):
                    where.setdefault(str(found), []).append(address)
            differing += [
                f"{name} {_short(own.get(name))} here, {_short(found)} on {list_some(places)}"
                for found, places in where.items()
            ]
        shown = ", ".join(f"{name} {_short(own.get(name))}" for name in SAME)
        if differing:
            way = "install the same versions everywhere, as from one lock file or image"
            yield make("versions", "; ".join(differing), way)
        elif names is SAME:
            yield Finding("versions", f"the same everywhere: {shown}")


def _short(version: Any) -> str:
    """Write a version as people do: that of Python is 3.11.9.final.0."""
    return str(version).removesuffix(".final.0")


def _check_store_on_workers(client: "Client", location: Location) -> Iterator[Finding]:
    """Compare the metadata of a store as each worker reads them with those that are read here."""
    expected = digest_of(location)
    answers = ask_workers(client, partial(digest_of, location), workers_of(client))
    others: dict[str, list[str]] = {}
    for address, (digest, error) in answers.items():
        if digest != expected[0]:
            others.setdefault(error or "another store is there", []).append(address)
    if others:
        text = "; ".join(f"{list_some(places)}: {what}" for what, places in sorted(others.items()))
        way = "put it on a file system that all share, or name it by its URL (docs/remote.md)"
        yield fault("store on workers", text, way)
    else:
        yield Finding("store on workers", f"all see the same ({len(answers)})")


def digest_of(location: Location) -> tuple[str, str]:
    """Return the SHA-256 of a store's metadata, and why they cannot be read; workers call it."""
    try:
        return hashlib.sha256(read_metadata(location)).hexdigest(), ""
    except Exception as error:  # of any type: the file systems of workers have their own
        return "", str(error) if isinstance(error, RNSError) else f"{type(error).__name__}: {error}"
