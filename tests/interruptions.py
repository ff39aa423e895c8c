"""Interruptions of what changes a place: after any request to a remote one, or any of the last renames."""

from pathlib import Path
from typing import Any

import pytest

from rnsdask.store import appending
from rnsdask.store.location import RemoteLocation


class Interrupted(BaseException):
    """Error that ends a call in the middle, as Ctrl-C does."""


def interrupting(monkeypatch: pytest.MonkeyPatch, after: int) -> list[int]:
    """Let what changes a remote place end with an interruption after so many changes.

    The list holds how many of them are left, below 0 once it was interrupted.
    """
    left = [after]
    for name in ("put_file", "copy", "remove"):
        change = getattr(RemoteLocation, name)

        def changing(*args: Any, change: Any = change, **options: Any) -> Any:
            left[0] -= 1
            if left[0] < 0:
                raise Interrupted
            return change(*args, **options)

        monkeypatch.setattr(RemoteLocation, name, changing)
    monkeypatch.setattr(appending, "REQUESTS", 1)
    return left


def interrupting_renames(monkeypatch: pytest.MonkeyPatch, after: int) -> None:
    """Let the renames that put an array in its place end with an interruption after so many of them."""
    rename, done = Path.rename, [0]

    def renaming(self: Path, target: Any) -> Any:
        if done[0] == after:
            raise Interrupted
        done[0] += 1
        renamed = rename(self, target)
        if done[0] == after == 2:
            raise Interrupted
        return renamed

    monkeypatch.setattr(Path, "rename", renaming)
