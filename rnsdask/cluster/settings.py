"""What Dask's settings say of clusters."""

import dask


def scheduler_address() -> str | None:
    """Where the scheduler is that the settings name, if they name one."""
    address: str | None = dask.config.get("scheduler-address", None)
    return address
