"""What the numbers that a job writes follow from, as a hash: so that no other job continues its store."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from rnsdask.store import GroupInfo, PlainInfo, StoreInfo, fingerprint, fingerprint_group


def state_of(info: StoreInfo | GroupInfo | PlainInfo) -> str:
    """Hash of a store, a group or a plain array as it is now: of metadata, and each chunk's size and time."""
    return fingerprint_group(info) if isinstance(info, GroupInfo) else fingerprint(info)


def job_identity(
    operation: str, inputs: Mapping[str, StoreInfo | GroupInfo | PlainInfo], **parameters: Any
) -> str:
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
