"""Kernels for CuPy arrays: :mod:`.kernels` lists them; the package itself needs no CuPy."""
