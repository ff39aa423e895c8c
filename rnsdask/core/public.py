"""The package's public names: functions by NumPy's names, and what is meant by a name that is not there."""

from collections.abc import Callable, Iterable
from difflib import get_close_matches
from typing import Any, TypeAlias

Function: TypeAlias = Callable[..., Any]

_published: list[Callable[[str, str], Function | None]] = []


def publish(find: Callable[[str, str], Function | None]) -> None:
    """Register the lookup behind :func:`public_function`; the package does so once its names exist."""
    _published[:] = [find]


def public_function(name: str, module: str = "numpy") -> Function | None:
    """Return the public function that corresponds to NumPy's of a name and module, or None."""
    return _published[0](name, module)


def unknown_name(module: str, name: str, names: Iterable[str], way: str | None = None) -> AttributeError:
    """Return the error for a name that a module lacks, with the way to what is meant, or a near name."""
    near = get_close_matches(name, names, 1)
    way = way or (f"did you mean {near[0]}?" if near else None)
    return AttributeError(f"{module} has no {name!r}" + (f"; {way}" if way else ""), name=name)
