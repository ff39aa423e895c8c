"""What the numbers that a job writes follow from, as a hash: so that no other job continues its store."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from rnsdask.store import StoreInfo, fingerprint


def job_identity(operation: str, inputs: Mapping[str, StoreInfo], **parameters: Any) -> str:
    """Hash of an operation, its parameters, and its inputs as they are now.

    Parameters
    ----------
    inputs
        The stores that are read, by the names that the operation has for them. Changes of their metadata, and
        of any chunk's size or time of modification, change the hash.
    parameters
        What else the result depends on; JSON can write it.
    """
    stores = {name: [info.path, fingerprint(info)] for name, info in inputs.items()}
    content = {"operation": operation, "inputs": stores, "parameters": parameters}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
