"""The package's public functions by NumPy's names, for packages below those that define them."""

from collections.abc import Callable
from typing import Any, TypeAlias

Function: TypeAlias = Callable[..., Any]

_published: list[Callable[[str, str], Function | None]] = []


def publish(find: Callable[[str, str], Function | None]) -> None:
    """Give :func:`public_function` the function that knows the names: the package does, once it has them."""
    _published[:] = [find]


def public_function(name: str, module: str = "numpy") -> Function | None:
    """Return the public function that means what NumPy's of a name and module does, or None."""
    return _published[0](name, module)
