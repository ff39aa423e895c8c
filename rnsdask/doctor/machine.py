"""Checks of a machine: cores, memory, folders, limits and settings that jobs meet."""

import os
import resource
import shutil
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import dask
from dask.system import CPU_COUNT

from rnsdask.cluster.limits import process_limit
from rnsdask.core.messages import size_text
from rnsdask.doctor.findings import Finding, fault, warning
from rnsdask.doctor.installation import SHOWN_WITH_GPUS, installed_version

PROBE_BYTES = 2**20
"""Bytes that are written to see whether a folder takes them: more than a file system keeps in an inode."""

LITTLE_ROOM, LITTLE_CACHE_ROOM = 10 * 10**9, 2**30
"""Free bytes that are few for Dask's spilled chunks and imports, and for compiled kernels."""

FEW_FILES = 1024
"""The usual limit of open files: a GPU's readers, Zarr and a cluster's connections need a few hundred."""

LITTLE_SHARED_MEMORY = 2**30
"""Bytes of /dev/shm that are few for exchanges between workers of a host; containers have 64 MiB."""

LITTLE_MEMORY = 2**30
"""Free bytes of memory that are few: a process with all libraries takes a third of that."""

DiskUsage = Callable[[str], tuple[int, int, int]]
"""Returns total, used and free bytes of a folder's disk, as :func:`shutil.disk_usage`."""


def check_cores() -> Iterator[Finding]:
    """Say how many threads a job would run, and warn if they are more than the cores."""
    of_host = os.cpu_count() or CPU_COUNT
    few = "" if of_host == CPU_COUNT else f" of {of_host}, by affinity or a control group"
    cores = f"{CPU_COUNT}{few}"
    threads = dask.config.get("num_workers", None) or CPU_COUNT
    facts = {"cores": CPU_COUNT, "threads": threads}
    if threads > CPU_COUNT:
        text = f"{cores}; DASK_NUM_WORKERS or Dask's num_workers lets jobs run {threads} threads on them"
        yield warning("cores", text, f"unset DASK_NUM_WORKERS, or set it to {CPU_COUNT}", **facts)
    else:
        yield Finding("cores", f"{cores} (threads of a job: {threads})", facts=facts)


def check_memory() -> Iterator[Finding]:
    """Say how much memory a job would plan with, and warn if little of it is free."""
    import psutil

    memory, limit = psutil.virtual_memory(), process_limit()
    free = min(limit, memory.available)
    why = "" if limit >= memory.total else f" of {size_text(memory.total)}, by a control group or ulimit -v"
    text = f"a job may take {size_text(limit)}{why}; {size_text(free)} are free"
    facts = {"bytes": limit, "free_bytes": free}
    if free < LITTLE_MEMORY:
        yield warning("memory", text, "end other processes, or ask for more memory", **facts)
    else:
        yield Finding("memory", text, facts=facts)


def check_folder(
    subject: str, folder: Path, variable: str, enough: int, disk_usage: DiskUsage = shutil.disk_usage
) -> Iterator[Finding]:
    """Check that a folder can be written, with room; `variable` of the environment names another one.

    A file of `PROBE_BYTES` is written and removed, which also meets quotas. Less free room than `enough`
    bytes is a warning.
    """
    elsewhere = f"make room there, or set {variable}= to a folder with room"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(PROBE_BYTES))
            file.flush()
    except OSError as error:
        text = f"{folder}: it cannot be written: {error.strerror or error}"
        yield fault(subject, text, elsewhere, folder=str(folder))
        return
    _, _, free = disk_usage(str(folder))
    text, facts = f"{folder}: {size_text(free)} free", {"folder": str(folder), "free_bytes": free}
    if free < PROBE_BYTES:
        yield fault(subject, f"{folder}: the disk is full, {size_text(free)} are free", elsewhere, **facts)
    elif free < enough:
        yield warning(subject, text, elsewhere, **facts)
    else:
        yield Finding(subject, text, facts=facts)


def check_temporary_folder(disk_usage: DiskUsage = shutil.disk_usage) -> Iterator[Finding]:
    """Check the folder of temporary files, where workers also put chunks that memory has no room for."""
    subject, wanted = "temporary folder", os.environ.get("TMPDIR")
    check = partial(check_folder, subject, enough=LITTLE_ROOM, disk_usage=disk_usage)
    if of_dask := dask.config.get("temporary-directory", None):
        yield from check(folder=Path(of_dask), variable="DASK_TEMPORARY_DIRECTORY")
        return
    try:
        folder = Path(tempfile.gettempdir())
    except FileNotFoundError:
        yield fault(subject, "no folder can be written", "set TMPDIR= to a folder that can be written")
        return
    if wanted and not (Path(wanted).is_dir() and folder.samefile(wanted)):
        yield fault(
            subject,
            f"TMPDIR={wanted} cannot be written, so that {folder} is used",
            "set TMPDIR= to a folder that can be written",
        )
        return
    yield from check(folder=folder, variable="TMPDIR")


def kernel_cache() -> Path:
    """Return the folder in which CuPy keeps compiled kernels."""
    return Path(os.environ.get("CUPY_CACHE_DIR") or Path.home() / ".cupy" / "kernel_cache")


def check_kernel_cache(disk_usage: DiskUsage = shutil.disk_usage) -> Iterator[Finding]:
    """Check the folder of compiled kernels, where CuPy is installed or the environment names the folder."""
    if "CUPY_CACHE_DIR" in os.environ or any(map(installed_version, SHOWN_WITH_GPUS)):
        place = kernel_cache(), "CUPY_CACHE_DIR"
        yield from check_folder("kernel cache", *place, LITTLE_CACHE_ROOM, disk_usage)


def check_shared_memory(
    folder: str = "/dev/shm", disk_usage: DiskUsage = shutil.disk_usage
) -> Iterator[Finding]:
    """Check the room for exchanges between processes, where dask-cuda may use UCX for them."""
    if not Path(folder).is_dir():  # as on macOS
        return
    total, _, free = disk_usage(folder)
    text, facts = f"{folder}: {size_text(total)}, {size_text(free)} free", {"free_bytes": free}
    if free < LITTLE_SHARED_MEMORY and installed_version("dask-cuda"):
        more = "give the container an shm-size of 8g; in Kubernetes an emptyDir of medium Memory there"
        yield warning("shared memory", f"{text}, little for UCX between workers", more, **facts)
    else:
        yield Finding("shared memory", text, facts=facts)


def check_open_files() -> Iterator[Finding]:
    """Check how many files a process may have open."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        yield Finding("open files", "no limit")
    elif soft < FEW_FILES:
        text = f"{soft} at a time: many threads or workers need more"
        unlimited = hard == resource.RLIM_INFINITY
        way = (
            f"ulimit -n {4096 if unlimited else min(hard, 4096)}"
            if unlimited or hard > soft
            else ("raise the hard limit (nofile in /etc/security/limits.conf), then ulimit -n 4096")
        )
        yield warning("open files", text, way, open_files=soft)
    else:
        yield Finding("open files", f"{soft} at a time", facts={"open_files": soft})


def check_settings() -> Iterator[Finding]:
    """Check settings that rnsdask refuses or that take functions away."""
    from rnsdask.lazy.planning import PLANS_QUERIES

    found = True
    if os.environ.get("CUPY_CUDA_PER_THREAD_DEFAULT_STREAM", "0") not in ("", "0"):
        text = "CUPY_CUDA_PER_THREAD_DEFAULT_STREAM is set, and threads share arrays on GPUs"
        yield fault("settings", text, "unset CUPY_CUDA_PER_THREAD_DEFAULT_STREAM")
        found = False
    if PLANS_QUERIES:
        text = "Dask's array.query-planning is on, whose arrays lack some operations"
        yield warning("settings", text, "set DASK_ARRAY__QUERY_PLANNING=False")
        found = False
    if found:
        yield Finding("settings", "none that harms")
