"""The package's public functions by NumPy's names, for packages below those that define them."""

from collections.abc import Callable
from typing import Any, TypeAlias

Function: TypeAlias = Callable[..., Any]

_published: list[Callable[[str, str], Function | None]] = []


def publish(find: Callable[[str, str], Function | None]) -> None:
    """Register the lookup behind :func:`public_function`; the package does so once its names exist."""
    _published[:] = [find]


def public_function(name: str, module: str = "numpy") -> Function | None:
    """Return the public function that corresponds to NumPy's of a name and module, or None."""
    return _published[0](name, module)
