"""Hashes of all that determines a job's numbers, so that no other job continues its store."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rnsdask.core.places import is_url, read_place
from rnsdask.store import PlainInfo, StoreInfo, full_version, locate


def job_hash(operation: str, inputs: Mapping[str, StoreInfo | PlainInfo], **parameters: Any) -> str:
    """Hash of an operation, its parameters, and its inputs as they are now.

    `inputs` are the stores that are read, by their names in the operation: changes of their metadata, and of
    any chunk's size or time of modification, change the hash. `parameters` are all else that the result
    depends on, such as number systems, and can be written as JSON.
    """
    stores = {name: [info.path, full_version(info)] for name, info in inputs.items()}
    return _hash({"operation": operation, "inputs": stores, "parameters": parameters})


def import_hash(source: str, **parameters: Any) -> str | None:
    """Hash of an import's parameters and of its source, a file or a folder of files, as it is now.

    None for an input whose changes cannot be detected, such as standard input.
    """
    if source == "-":
        return None
    place = read_place(source, "an input")
    path = Path(place).absolute()
    if not is_url(place) and path.is_file():
        status = path.stat()
        found: list[Any] = [str(path), status.st_size, status.st_mtime_ns, status.st_ino]
    else:
        location = locate(source)
        if not (versions := location.versions()):
            return None
        found = [location.path, sorted(versions.items())]
    return _hash({"operation": "import", "inputs": found, "parameters": parameters})


def result_hash(job: str, **parameters: Any) -> str:
    """Hash of one array that a job writes, from the job's hash and the array's own parameters."""
    return _hash({"job": job, "parameters": parameters})


def _hash(content: dict[str, Any]) -> str:
    text = json.dumps(content, sort_keys=True, default=lambda system: system.__dask_tokenize__())
    return hashlib.sha256(text.encode()).hexdigest()
