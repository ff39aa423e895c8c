"""The Dask half of every operation: how chunks map, meet in trees, and are written."""
