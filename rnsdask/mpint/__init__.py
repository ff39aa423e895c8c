"""Signed multiple-precision integers with stored interval evaluations (docs/mpint.md)."""

from rnsdask.mpint.array import MPIntArray, open_zarr
from rnsdask.mpint.intervals import interval_arithmetic
from rnsdask.mpint.operations import add, multiply, subtract

__all__ = ["MPIntArray", "add", "interval_arithmetic", "multiply", "open_zarr", "subtract"]
