"""What the numbers that a job writes follow from, as a hash: so that no other job continues its store."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from rnsdask.store import GroupInfo, StoreInfo, fingerprint, fingerprint_group


def state_of(info: StoreInfo | GroupInfo) -> str:
    """Hash of a store, or a group, as it is now: of its metadata, and of the size and time of each chunk."""
    return fingerprint_group(info) if isinstance(info, GroupInfo) else fingerprint(info)


def job_identity(operation: str, inputs: Mapping[str, StoreInfo | GroupInfo], **parameters: Any) -> str:
    """Hash of an operation, its parameters, and its inputs as they are now.

    Parameters
    ----------
    inputs
        The stores that are read, by the names that the operation has for them. Changes of their metadata, and
        of any chunk's size or time of modification, change the hash.
    parameters
        What else the result depends on; JSON can write it.
    """
    stores = {name: [info.path, state_of(info)] for name, info in inputs.items()}
    content = {"operation": operation, "inputs": stores, "parameters": parameters}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
