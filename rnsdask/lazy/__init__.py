"""The Dask half of every operation: mapping over chunks, reduction in trees, and writing."""
