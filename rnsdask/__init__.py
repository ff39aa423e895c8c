"""Exact reductions over huge arrays of huge integers, held in residue number systems.

The names below are imported when first used, so that a command pays only for what it needs.
"""

import sys
from typing import Any

import lazy_loader

_load, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    value = _load(name)
    if "dask.array" not in sys.modules:
        return value
    from rnsdask.lazy.planning import explained

    globals()[name] = explained(value)
    return globals()[name]
