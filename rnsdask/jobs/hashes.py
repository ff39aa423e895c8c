"""Identities of jobs: all that their numbers follow from, so that no other job continues their stores."""

import hashlib
import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from rnsdask.core.files import naming_file
from rnsdask.core.moduli import to_text
from rnsdask.core.places import is_url, read_place
from rnsdask.jobs.progress import metered
from rnsdask.store import PlainInfo, StoreInfo, job_of, locate
from rnsdask.store.content import checksums_of
from rnsdask.store.identity import BOUND, Identity, described

_INPUT = "input"
"""Name of the input of an import."""

_BLOCK = 2**24
"""Bytes of a file that a thread hashes in one turn."""

_LONG = 2**30
"""Bytes of a file whose hashing takes so long that its progress is shown."""

_THREADS = 4
"""Threads that hash a file: few disks are quicker."""


def job_hash(operation: str, inputs: Mapping[str, StoreInfo | PlainInfo], **parameters: Any) -> Identity:
    """Identify an operation by its parameters, and by the content of its inputs as they are now.

    `inputs` are the stores that are read, by their names in the operation: their number systems, shapes,
    chunks and checksums count, not their places and times. `parameters` are all else that the result depends
    on, such as number systems, and can be written as JSON.
    """
    return Identity.of(operation, {name: input_of(info) for name, info in inputs.items()}, **parameters)


def input_of(info: StoreInfo | PlainInfo) -> dict[str, Any]:
    """Describe a store that a job reads: :func:`.described`."""
    facts: dict[str, Any] = {"shape": info.shape, "chunks": info.chunks, "codecs": info.codecs}
    if isinstance(info, PlainInfo):
        facts["dtype"] = info.dtype.name
    else:
        bound = info.system.bound
        facts |= {"number system": info.system.with_bound(None)}
        facts |= {} if bound is None else {BOUND: to_text(bound)}
    found = checksums_of(info.location, info.chunk_keys())
    return described(info.path, facts, ["missing" if end is None else end.hex() for _, end in found])


def import_hash(source: str, output: str, *, progress: bool = False, **parameters: Any) -> Identity | None:
    """Identify an import by its parameters, and by the content of its source, a file or a folder of files.

    A file that has not been touched since the job at `output` read it is not read again. Of a long one,
    `progress` is shown. None for an input whose changes cannot be detected, such as standard input.
    """
    if source == "-":
        return None
    place = read_place(source, "an input")
    path = Path(place).absolute()
    if not is_url(place) and path.is_file():
        return Identity.of("import", {_INPUT: _file(path, output, progress)}, **parameters)
    location = locate(source)
    if not (versions := location.versions()):
        return None
    if location.is_local:
        parts = [[name, _content_of_file(path / name, progress)] for name in sorted(versions)]
    else:
        parts = [[name, *map(str, version)] for name, version in sorted(versions.items())]
    found = described(location.path, {"files": len(parts)}, list(map("/".join, parts)), "file")
    return Identity.of("import", {_INPUT: found}, **parameters)


def _file(path: Path, output: str, progress: bool) -> dict[str, Any]:
    """Describe a file, by what the job at `output` knows of it if no mark of it has changed."""
    marks = _marks(path)
    known = job_of(locate(output))
    try:
        found = known.about["inputs"][_INPUT] if known is not None else {}
        is_untouched = (found["path"], found["marks"]) == (str(path), marks)
        digests = list(map(str, found["parts"])) if is_untouched else None
    except (KeyError, TypeError):  # not known, or of another version
        digests = None
    parts = [_content_of_file(path, progress)] if digests is None else digests
    return described(str(path), {"bytes": marks[0]}, parts, marks=marks)


def _marks(path: Path) -> list[int]:
    """Size, times and inode of a file: nobody changes its content and leaves them all."""
    status = path.stat()
    return [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]


def _content_of_file(path: Path, progress: bool) -> str:
    """Hash the content of a file: the hash of those of its blocks."""
    digest, size = hashlib.sha256(), path.stat().st_size
    shown = metered("hash", size, nbytes=size, shown=progress) if size > _LONG else nullcontext()
    with naming_file(path), path.open("rb") as file, ThreadPoolExecutor(_THREADS) as pool, shown as meter:
        starts = range(0, size, _BLOCK)
        for part in pool.map(lambda start: _block_of_file(file.fileno(), start), starts):
            digest.update(part)
            if meter is not None:
                meter.advance(_BLOCK)
    return digest.hexdigest()


def _block_of_file(descriptor: int, start: int) -> bytes:
    digest, end = hashlib.sha256(), start + _BLOCK
    while start < end and (data := os.pread(descriptor, min(2**20, end - start), start)):
        digest.update(data)
        start += len(data)
    return digest.digest()


def result_hash(job: Identity, **parameters: Any) -> Identity:
    """Identify one array that a job writes, by the job and the array's own parameters."""
    return job.derived(**parameters)
