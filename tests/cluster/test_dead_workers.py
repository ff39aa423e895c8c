"""Workers that die while they are asked."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from rnsdask.cluster import workers

ADDRESS = "tcp://127.0.0.1:1"


class _Cluster:
    """A client whose worker cannot be reached, which takes `seconds` to find out."""

    def __init__(self, seconds: float, is_listed: bool) -> None:
        self.seconds, self.is_listed = seconds, is_listed
        self.scheduler = SimpleNamespace(ncores=self.ncores)

    async def run(self, function: Any, **options: Any) -> dict[str, Any]:  # noqa: ARG002
        await asyncio.sleep(self.seconds)
        return {ADDRESS: OSError("Timed out trying to connect")}

    async def ncores(self, workers: list[str]) -> dict[str, int]:
        return dict.fromkeys(workers, 1) if self.is_listed else {}


@pytest.mark.parametrize("seconds", [0, 0.2])
@pytest.mark.parametrize("is_listed", [False, True])
def test_workers_that_cannot_be_reached(
    monkeypatch: pytest.MonkeyPatch, seconds: float, is_listed: bool
) -> None:
    monkeypatch.setattr(workers, "_DEATH_SECONDS", 0.1)
    client: Any = cast("Any", _Cluster(seconds, is_listed))
    answer = asyncio.run(workers._ask(client, int, ADDRESS))
    if is_listed:
        assert isinstance(answer, OSError)
    else:
        assert answer is workers._GONE  # also where it took longer to find out than to wait for news
