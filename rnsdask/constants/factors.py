"""Tables that are kept for the process, factors of multiplication by constants, geometric progressions."""

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, wraps
from threading import Lock
from typing import Any, Generic, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from rnsdask.core.moduli import MODULUS_MAX, ModuliSet

CACHED_SETS = 64
"""Sets in use at a time in one process: their tables are small next to one chunk of residues."""


def last_residues(moduli: ModuliSet) -> NDArray[np.uint32]:
    """The greatest residue m_i - 1 of each modulus: it fits 32 bits even when m_i is 2**32."""
    return np.array([m - 1 for m in moduli], dtype=np.uint32)


def shoup_factors(values: list[int], moduli: list[int]) -> NDArray[np.uint32]:
    """Pairs (w, floor(w 2**32 / m)) as a uint32 array of shape (len(values), 2)."""
    factors, sizes = (np.array(column, dtype=np.uint64) for column in (values, moduli))
    return np.stack([factors, (factors << np.uint64(32)) // sizes], axis=-1).astype(np.uint32)


def factors_of_powers(
    start: NDArray[np.uint64], base: int, count: int, sizes: NDArray[np.uint64]
) -> NDArray[np.uint32]:
    """Factors ``|start_i base**k|`` modulo each size, k < count, as a row of pairs for each size."""
    factors = np.empty((len(sizes), count, 2), dtype=np.uint32)
    ratio = np.array([base % m for m in sizes.tolist()], dtype=np.uint64)
    values = start
    for k in range(count):
        factors[:, k, 0] = values
        factors[:, k, 1] = (values << np.uint64(32)) // sizes
        values = values * ratio % sizes
    return factors.reshape(len(sizes), 2 * count)


def word_factors(moduli: ModuliSet) -> NDArray[np.uint32]:
    """Factors of 1, 2**32 and 2**64 modulo each: those of the words of a sum of products; shape (n, 6)."""
    sizes = np.array(list(moduli), dtype=np.uint64)
    return factors_of_powers(np.ones_like(sizes), 2**32, 3, sizes)


P = ParamSpec("P")
T = TypeVar("T")


class _Slot(Generic[T]):
    """Slot of a table that is built once."""

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


def progressions(
    starts: NDArray[Any] | Sequence[int],
    ratios: NDArray[Any] | Sequence[int],
    count: int,
    primes: Iterable[int],
) -> NDArray[Any]:
    """Geometric progressions ``start * ratio**k`` for k < count, (n, count, *rest), of (n, *rest) of both.

    They are uint32, or uint64 if a prime is beyond 2**32: then computed in Python's integers.
    """
    values = list(primes)
    is_wide = max(values) > MODULUS_MAX
    dtype = np.dtype(object if is_wide else np.uint64)
    start, ratio = (np.array(given, dtype=dtype) for given in (starts, ratios))
    sizes = np.array(values, dtype=dtype).reshape(-1, *(1,) * start.ndim)
    terms = np.empty((len(start), count, *start.shape[1:]), dtype=dtype)
    terms[:, 0] = start
    known, power = 1, ratio[:, None]
    while known < count:
        more = min(known, count - known)
        # Both factors are below 2**32, or of any size.
        terms[:, known : known + more] = terms[:, :more] * power % sizes
        known, power = known + more, power * power % sizes
    return terms.astype(np.uint64 if is_wide else np.uint32)
