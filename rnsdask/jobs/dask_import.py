"""Dask's arrays imported without what jobs have no use for, which takes longer than all the rest."""

import sys


def import_dask_array() -> None:
    """Import ``dask.array``, which would import xarray, and with it pandas, to know its arrays if it met one.

    In this process Dask then takes xarray not to be installed; a later ``import xarray`` finds it.
    """
    is_unknown = "xarray" not in sys.modules
    if is_unknown:
        sys.modules["xarray"] = None  # type: ignore[assignment]  # Python's way to say that there is none
    try:
        import dask.array  # noqa: F401
    finally:
        if is_unknown:
            del sys.modules["xarray"]
