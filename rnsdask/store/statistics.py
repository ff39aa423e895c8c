"""What the threads of this process have read of stores, and how many seconds they took for it."""

import threading
import time
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

_P = ParamSpec("_P")
_Info = TypeVar("_Info", bound=Any)  # it has a path
_Residues = TypeVar("_Residues", bound=Any)  # of NumPy or CuPy
_Read = Callable[Concatenate[_Info, _P], _Residues]

PROCESS = uuid.uuid4().hex
"""Another one in each process: a worker that was started again is not the one before."""


@dataclass(frozen=True)
class ReadStatistics:
    """Chunks, or parts of chunks, that were read.

    Attributes
    ----------
    chunks, nbytes : int
        How many, and the bytes of the residues that they gave.
    seconds : float
        Wall time of each, from opening its file to its residues, whose checksum matches; all added up.
    """

    chunks: int = 0
    nbytes: int = 0
    seconds: float = 0.0

    def __add__(self, other: "ReadStatistics") -> "ReadStatistics":
        return ReadStatistics(
            self.chunks + other.chunks, self.nbytes + other.nbytes, self.seconds + other.seconds
        )

    def __sub__(self, other: "ReadStatistics") -> "ReadStatistics":
        return ReadStatistics(
            self.chunks - other.chunks, self.nbytes - other.nbytes, self.seconds - other.seconds
        )


_statistics: dict[str, ReadStatistics] = {}
_lock = threading.Lock()


def counted(read: _Read[_Info, _P, _Residues]) -> _Read[_Info, _P, _Residues]:
    """Count what a function reads of a store, its first argument; what it fails to read is not counted."""

    @wraps(read)
    def counting(info: _Info, /, *args: _P.args, **kwargs: _P.kwargs) -> _Residues:
        started = time.perf_counter()
        residues = read(info, *args, **kwargs)
        read_now = ReadStatistics(1, residues.nbytes, time.perf_counter() - started)
        with _lock:
            _statistics[info.path] = _statistics.get(info.path, ReadStatistics()) + read_now
        return residues

    return counting


def read_so_far(paths: Iterable[str]) -> tuple[str, ReadStatistics]:
    """Token of this process, and all that it has read of the stores at these paths."""
    with _lock:
        return PROCESS, sum(
            (_statistics.get(path, ReadStatistics()) for path in set(paths)), start=ReadStatistics()
        )
