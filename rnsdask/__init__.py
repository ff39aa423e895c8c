"""Exact reductions over huge arrays of huge integers, held in residue number systems.

The names below are imported when first used, so that a command pays only for what it needs.
"""

import sys
from collections.abc import Callable
from inspect import isfunction
from typing import Any

import lazy_loader

from rnsdask.core.public import publish

_load, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    value = _load(name)
    if "dask.array" not in sys.modules:
        return value
    from rnsdask.lazy.planning import explain

    globals()[name] = explain(value)
    return globals()[name]


def _find_function(name: str, module: str) -> Callable[..., Any] | None:
    """Return the public function that means what a function of NumPy's does, by its name and module."""
    package: Any = sys.modules[__name__]
    owners = (package.linalg, package) if module == "numpy.linalg" else (package,)
    found = next((getattr(owner, name) for owner in owners if name in owner.__all__), None)
    return found if isfunction(found) else None


publish(_find_function)
