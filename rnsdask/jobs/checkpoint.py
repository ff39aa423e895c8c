"""Finished pieces of a job, kept in a folder so that a restarted job continues from them.

The client writes one small JSON file for each piece as results arrive, so that only the client needs access
to the folder, and a single process writes it. A file is renamed into place when it is whole, and has a
checksum; a file that does not match counts as missing. ``job.json`` identifies the job.
"""

import errno
import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rnsdask.backend.cpu.files import read_first
from rnsdask.core.errors import JobError, brief
from rnsdask.core.files import naming_file, new_file
from rnsdask.core.messages import size_text
from rnsdask.core.moduli import to_text
from rnsdask.core.places import local_path
from rnsdask.core.reductions import ReductionResult
from rnsdask.jobs.hashes import job_hash
from rnsdask.store import StoreInfo
from rnsdask.store.chunk_files import PARTIAL_SUFFIX
from rnsdask.store.identity import Identity, differences

FORMAT = 1

LONGEST = 2**28
"""Most bytes of a file, 256 MiB: far more than results have, but few enough to parse in memory."""

_JOB_FILE = "job.json"

_ABOUT = "input_of"
"""Field that describes the hash of the inputs, for messages alone."""


class Checkpoint:
    """The results of one job's pieces, in a folder, which is created if missing.

    `job` describes the job in JSON: :func:`job_of_reduction`, :func:`job_of_pieces`. JobError if the folder
    holds results of another job, or of this job on input whose content has changed, or something else.
    """

    def __init__(self, folder: str | Path, job: dict[str, Any], kind: "Kind") -> None:
        self.folder = local_path(folder, "a checkpoint")
        self._pieces, self._kind = int(job["pieces"]), kind
        self._digest = _digest({name: value for name, value in job.items() if name != _ABOUT})
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._check_job(job)
        except OSError as error:
            raise self._cannot("used", error) from error

    def _check_job(self, job: dict[str, Any]) -> None:
        file = self.folder / _JOB_FILE
        if not file.exists():
            if any(not path.name.endswith(PARTIAL_SUFFIX) for path in self.folder.iterdir()):
                raise JobError(f"{self.folder}: it is not a checkpoint, but a folder with other files")
            self._write(file, job)
            return
        found = _read(file)
        if found is None:
            raise JobError(f"{file}: it is damaged, so the checkpoint cannot be used; remove {self.folder}")
        for name, value in job.items():
            if name != _ABOUT and found.get(name) != value:
                told = differences(job[_ABOUT], found.get(_ABOUT)) if name == "input" else ""
                why = told or _difference(name, found.get(name), value)
                raise JobError(f"{self.folder}: the checkpoint cannot be continued: {why}")

    def load(self) -> dict[int, Any]:
        """Return the results of the finished pieces by their numbers."""
        found = {}
        for i in range(self._pieces):
            try:
                fields = _read(self._file(i))
            except OSError as error:
                raise self._cannot("read", error) from error
            if fields is None:
                continue
            if (fields.pop("job", None), fields.pop("piece", None)) == (self._digest, i):
                found[i] = self._kind.read(fields)
        return found

    def save(self, i: int, result: Any) -> None:
        """Write the result of a piece; JobError if that fails."""
        try:
            self._write(self._file(i), {"job": self._digest, "piece": i, **self._kind.write(result)})
        except OSError as error:
            raise self._cannot("written", error) from error

    def _file(self, i: int) -> Path:
        return self.folder / f"piece-{i:05}.json"

    def _write(self, file: Path, content: dict[str, Any]) -> None:
        text = json.dumps({**content, "checksum": _digest(content)})
        with new_file(file, overwrite=True) as stream:
            stream.write(text.encode())

    def _cannot(self, what: str, error: OSError) -> JobError:
        where, why = error.filename or self.folder, error.strerror or error
        return JobError(f"{where}: the checkpoint cannot be {what}: {why}")


class Kind(NamedTuple):
    """Pair of functions that convert results to fields of JSON, and back."""

    write: Callable[[Any], dict[str, Any]]
    read: Callable[[dict[str, Any]], Any]


def _write_array(array: NDArray[Any]) -> dict[str, Any]:
    texts = [to_text(int(value)) for value in array.flat]
    return {"shape": list(array.shape), "dtype": array.dtype.name, "values": texts}


def _read_array(fields: dict[str, Any]) -> NDArray[Any]:
    values = np.array([int(text, 16) for text in fields["values"]], dtype=object)
    return values.astype(fields["dtype"]).reshape(fields["shape"])


REDUCTIONS = Kind(
    lambda result: {**asdict(result), "value": to_text(result.value)},
    lambda fields: ReductionResult(**{**fields, "value": int(fields["value"], 16)}),
)
"""Conversion of the results of reductions."""

ARRAYS = Kind(_write_array, _read_array)
"""Conversion of NumPy arrays of integers, also of Python ints."""


def job_of_pieces(job: Identity, operation: str, pieces: int, cut: str) -> dict[str, Any]:
    """Identify a job by the hash of its operands and parameters, so that it is recognised later.

    `cut` describes the pieces: on another processor, the same number may have other primes.
    """
    fields = {"format": FORMAT, "operation": operation, "pieces": pieces, "input": job, _ABOUT: job.about}
    return {**fields, "cut": _digest({"cut": cut})}


def job_of_reduction(info: StoreInfo, operation: str, groups: Sequence[range]) -> dict[str, Any]:
    """Identify a reduction of groups of a store's chunks, so that it is recognised later."""
    job = job_hash(operation, {"store": info})
    return {
        "format": FORMAT,
        "operation": operation,
        "input": job,
        "pieces": len(groups),
        _ABOUT: job.about,
    }


def _difference(name: str, found: Any, wanted: Any) -> str:
    if name == "input":
        return "its input has changed since, or an option"
    if name == "cut":
        return "its pieces are others, as on another processor"
    return f"its {name} is {brief(found)}, this job's {brief(wanted)}"


def _digest(content: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _read(file: Path) -> dict[str, Any] | None:
    """Read the content of a file; None if it is missing or does not match its checksum.

    OSError, naming the file, if it is a pipe, a device, a folder, or too long for a result.
    """
    with naming_file(file):
        try:
            text = read_first(file, LONGEST + 1)
        except FileNotFoundError:
            return None
        if len(text) > LONGEST:
            raise OSError(errno.EFBIG, f"it has more than {size_text(LONGEST)}, and is no result")
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(content, dict) or content.pop("checksum", None) != _digest(content):
        return None
    return content
