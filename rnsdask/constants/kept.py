"""Tables that are kept once they are made, and made once: also where several threads ask at a time."""

from collections.abc import Callable
from functools import lru_cache, wraps
from threading import Lock
from typing import Any, Generic, ParamSpec, TypeVar

from rnsdask.constants.factors import CACHED_SETS

P = ParamSpec("P")
T = TypeVar("T")


class _Slot(Generic[T]):
    """Where one table will be."""

    def __init__(self) -> None:
        self._made: list[T] = []
        self._lock = Lock()

    def get(self, make: Callable[[], T]) -> T:
        if not self._made:
            with self._lock:
                if not self._made:
                    self._made.append(make())
        return self._made[0]


def kept(function: Callable[P, T]) -> Callable[P, T]:
    """Keep the latest results of a function of moduli sets, whose tables are large.

    Threads that ask for the same one wait for the first of them: alone, ``functools.lru_cache`` would have
    each make its own. Who asks for another one does not wait.
    """
    slots: Any = lru_cache(CACHED_SETS)(lambda *_, **__: _Slot[T]())
    finding = Lock()

    @wraps(function)
    def find(*args: P.args, **kwargs: P.kwargs) -> T:
        with finding:
            slot: _Slot[T] = slots(*args, **kwargs)
        return slot.get(lambda: function(*args, **kwargs))

    return find


class kept_property(Generic[T]):  # noqa: N801  (as functools.cached_property)
    """A table that an object of constants makes at first use, once: other threads wait for it."""

    def __init__(self, make: Callable[[Any], T]) -> None:
        self._make = make
        self.__doc__ = make.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._key = f"_{name}"

    def __get__(self, instance: Any, owner: type | None = None) -> T:
        slot: _Slot[T] = instance.__dict__.setdefault(self._key, _Slot())
        return slot.get(lambda: self._make(instance))
