"""Exact reductions over huge arrays of huge integers, held in residue number systems.

The names below are imported when first used, so that a command pays only for what it needs.
"""

import sys
from collections.abc import Callable
from importlib.util import find_spec
from inspect import isfunction
from typing import Any

import lazy_loader

from rnsdask.core.public import publish, unknown_name

_load, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    is_known = name in __all__ or name.startswith("_")
    if not is_known and find_spec(f"{__name__}.{name}") is None:  # no module, which `import` looks for here
        raise unknown_name("rnsdask", name, __all__, _meaning(name))
    value = _load(name)
    if "dask.array" not in sys.modules:
        return value
    from rnsdask.lazy.planning import explain

    globals()[name] = explain(value)
    return globals()[name]


_FACTORS = "python-flint has it: [flint.fmpz(n).factor() for n in x.to_ints().tolist()]"
_PRIMES = "gmpy2 has it: list(map(gmpy2.is_prime, x.to_ints().tolist()))"
_ELSEWHERE = {
    "load": "rd.open_zarr opens a store",
    "save": "x.to_zarr writes a store",
    "comb": "binomial is meant",
    "empty": "zeros is as quick",
    "empty_like": "zeros_like is as quick",
    "pow": "power is meant, or mod_power; Python's pow(x, k, m) takes arrays too",
    "invmod": "mod_inverse is meant",
    "factor": _FACTORS,
    "factorint": _FACTORS,
    "is_prime": _PRIMES,
    "isprime": _PRIMES,
    "fibonacci": "gmpy2 has it: rd.array([int(gmpy2.fib(n)) for n in range(100)])",
}
"""Answers to names that other packages have: the name here, or who has it."""


def _meaning(name: str) -> str | None:
    """Return where a name is that the package itself lacks, or None."""
    package: Any = sys.modules[__name__]
    for owner in (package.linalg, package.poly, package.sparse):
        if name in owner.__all__:
            return f"rd.{owner.__name__.rpartition('.')[2]}.{name} is meant"
    if hasattr(package.RNSArray, name):
        return f"arrays have it: x.{name}"
    return _ELSEWHERE.get(name)


def _find_function(name: str, module: str) -> Callable[..., Any] | None:
    """Return the public function that means what a function of NumPy's does, by its name and module."""
    package: Any = sys.modules[__name__]
    owners = (package.linalg, package) if module == "numpy.linalg" else (package,)
    found = next((getattr(owner, name) for owner in owners if name in owner.__all__), None)
    return found if isfunction(found) else None


publish(_find_function)
