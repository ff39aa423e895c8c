"""Elements of several prime fields at once: their number system, and chunks of them. No Dask in here."""
