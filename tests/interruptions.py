"""Interruptions of what changes a remote place, after any of its requests."""

from typing import Any

import pytest

from rnsdask.store import ownership, replacing
from rnsdask.store.location import RemoteLocation


class Interrupted(BaseException):
    """What ends a call in the middle, as Ctrl-C does."""


def interrupting(monkeypatch: pytest.MonkeyPatch, after: int) -> list[int]:
    """Let what changes a remote place end with an interruption after so many changes.

    The list holds how many of them are left, below 0 once it was interrupted.
    """
    left = [after]
    for name in ("_put", "copy", "remove"):
        change = getattr(RemoteLocation, name)

        def changing(*args: Any, change: Any = change, **options: Any) -> Any:
            left[0] -= 1
            if left[0] < 0:
                raise Interrupted
            return change(*args, **options)

        monkeypatch.setattr(RemoteLocation, name, changing)
    for module in (replacing, ownership):
        monkeypatch.setattr(module, "_REQUESTS", 1)
    return left
