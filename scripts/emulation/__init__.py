"""CUDA kernels run on the host, beside the CPU's; ``scripts/emulate_kernels.py`` runs it.

`cupy_of_host` stands for CuPy, and launches what a compiler gives: `host_compiler` takes a source as C++,
with ``host_cuda.hpp``, and `ptx_compiler` as PTX, which `ptx` runs. `checks` call kernels, a file a subject.
"""
