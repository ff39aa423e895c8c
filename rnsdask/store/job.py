"""File in a complete array that names the job which completed it.

Readers do not compare it, so another job may rewrite the same array while they read. It is valid only while
the metadata document and the checksums of all chunks are as the job left them.
"""

import hashlib
import json
from contextlib import suppress
from typing import Any

from rnsdask.core.errors import CorruptChunkError, StoreAccessError, StoreError
from rnsdask.core.layout import ChunkPlan
from rnsdask.core.ways import REPLACE, with_ways
from rnsdask.store.attributes import APPEND, another_job, read_job
from rnsdask.store.content import content_of
from rnsdask.store.documents import ATTRIBUTE, PLAIN_ATTRIBUTE, array_document, parse_document
from rnsdask.store.identity import LONGEST, Identity
from rnsdask.store.location import JOB_KEY, Location, chunk_key
from rnsdask.store.target import Target, is_begun, state_at

_LONGEST = 2 * LONGEST
"""Most bytes of the file, of which the description of the job is most: it may be untrusted."""


def write_job(target: Target, job: Identity | None, metadata: bytes, content: str) -> None:
    """Record the job of an array that is about to be complete, if it has one.

    `metadata` is the document that will complete it; `content` is the hash of the checksums of all chunks.
    """
    if job is None or job.startswith(APPEND):
        return
    record: dict[str, Any] = {
        "job": job,
        "metadata": hashlib.sha256(metadata).hexdigest(),
        "content": content,
    }
    record |= {"job_of": job.about} if job.about else {}
    name = f"{target.location.path}: {JOB_KEY}"
    target.publish(JOB_KEY, json.dumps(record).encode(), name)


def job_of(location: Location) -> Identity | None:
    """Return the job that has completed or begun an array; None if it is unknown.

    Chunks are not read.
    """
    record = None
    with suppress(StoreAccessError):  # some services deny access to missing files
        record = _record(location)
    if record is not None:
        return _job_in(record)
    return _job_begun(location) or _job_begun(location.staged)


def is_begun_by(location: Location, job: str | None) -> bool:
    """Whether a job has begun the incomplete array at a place, or one that is to replace the array there."""
    return job is not None and _job_begun(location.staged if is_begun(location) else location) == job


def is_completed_by(location: Location, job: str | None, *, overwrite: bool = False) -> bool:
    """Whether a job has completed the array at a settled place, and it is unchanged since.

    StoreError if something else is complete there, unless it may be overwritten.
    """
    if state_at(location) != "whole":
        return False
    record = _record(location)
    is_same = record is not None and record["job"] == job
    if record is not None and is_same and record["content"] == _content_found(location):
        return True
    if overwrite or is_begun(location):
        return False
    if is_same:
        why = "but chunks of it are missing, or were changed since"
    elif record is None:
        why = "but not known to be this job's, or was changed since"
    else:
        why = f"but of {another_job(job or '', _job_in(record))}"
    raise StoreError(with_ways(f"{location.path}: it is complete, {why}", REPLACE))


def _record(location: Location) -> dict[str, Any] | None:
    """Content of the file, if it matches the metadata document that is there."""
    try:
        record = parse_document(location.read(JOB_KEY, f"{location.path}: {JOB_KEY}", _LONGEST))
        metadata = hashlib.sha256(location.read_metadata()).hexdigest()
    except (FileNotFoundError, ValueError) as error:
        if isinstance(error, StoreError):
            raise
        return None
    is_valid = all(isinstance(record.get(name), str) for name in ("job", "metadata", "content"))
    return record if is_valid and record["metadata"] == metadata else None


def _job_in(record: dict[str, Any]) -> Identity:
    about = record.get("job_of")
    return Identity(str(record["job"]), about if isinstance(about, dict) else {})


def _job_begun(location: Location) -> Identity | None:
    return read_job(location, ATTRIBUTE) or read_job(location, PLAIN_ATTRIBUTE)


def _content_found(location: Location) -> str | None:
    """Hash of the checksums of all chunks of an array; None if a chunk is missing, or for an old group."""
    try:
        metadata = location.read_metadata()
    except FileNotFoundError:  # another job is replacing it
        return None
    if parse_document(metadata)["node_type"] == "group":  # of an older version, read only
        return None
    document = array_document(metadata)
    plan = ChunkPlan(document["shape"], document["chunk_grid"]["configuration"]["chunk_shape"])
    try:
        return content_of(location, map(chunk_key, plan.indices()))
    except CorruptChunkError:
        return None
