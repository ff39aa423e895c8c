"""The job that verifies a store, for which nothing lazy is made."""

from typing import TYPE_CHECKING

from rnsdask import store
from rnsdask.jobs.compute import Advance, mapping

if TYPE_CHECKING:
    from distributed import Client


def verify(
    info: store.StoreInfo, client: "Client | None" = None, *, advance: Advance = lambda _: None
) -> list[str]:
    """Verify a store in parallel, and list its problems; `advance` is called with the chunks done."""
    with mapping(client, advance) as map_items:
        return list(store.verify(info, map_chunks=map_items))
