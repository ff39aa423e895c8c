"""Run CUDA kernels on the host, under sanitizers, and compare what they give with the CPU's kernels.

Each source is compiled by g++ as it is, with CUDA's words of ``emulation/host_cuda.hpp``, and launched by the
package's own code: NumPy arrays that call themselves CuPy's stand for those of a GPU. So reads and writes
beyond arrays, undefined arithmetic, barriers that not all threads reach and wrong results are found without a
GPU. Of inline assembly sums and products with carries are known, and what is in headers that ``emulation/``
has, too; rounding, memory models and speed are not a GPU's.

With ``--ptx`` NVRTC compiles each source to PTX, as on a user's machine, and ``emulation/ptx.py`` runs that:
so inline assembly is what the compiler makes of it, and operands that lack ``&`` are found, which C++ cannot
show; reads beyond arrays are not found. It needs NVRTC's wheel, and no g++.

    python scripts/emulate_kernels.py              all checks
    python scripts/emulate_kernels.py limbs        those whose name has this in it
    python scripts/emulate_kernels.py --ptx limbs  the same by PTX
"""

import importlib
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))  # PYTHONSAFEPATH leaves it out

from emulation import cupy_of_host
from emulation.checks import CHECKS, NOT_BY_PTX, Check
from emulation.host_compiler import RawModule, with_sanitizers
from emulation.ptx_compiler import PtxModule

SUBJECTS = "limbs", "products", "modular", "matrices", "residues", "transforms", "long_fields"
"""Files of ``emulation/checks``."""


def agrees(name: str, check: Check) -> bool:
    from rnsdask.backend import cpu
    from rnsdask.backend.cuda import kernels as cuda

    ours = check(cuda, lambda array: np.copy(array, order="C").view(cupy_of_host.ndarray))
    expected = check(cpu, lambda array: np.copy(array, order="C"))
    same = len(ours) == len(expected) and all(map(np.array_equal, ours, expected))
    print(f"{name}: {len(ours)} results {'agree' if same else 'DIFFER'}", flush=True)
    return same


def main(wanted: list[str], by_ptx: bool) -> int:
    cupy_of_host.install(PtxModule if by_ptx else RawModule)
    for subject in SUBJECTS:
        importlib.import_module(f"emulation.checks.{subject}")
    failed = 0
    for name, check in CHECKS.items():
        if wanted and not any(part in name for part in wanted):
            continue
        if by_ptx and name in NOT_BY_PTX:
            print(f"{name}: not by PTX, for it has {NOT_BY_PTX[name]}", flush=True)
            continue
        failed += not agrees(name, check)
    return int(failed > 0)


if __name__ == "__main__":
    WANTED = [argument for argument in sys.argv[1:] if argument != "--ptx"]
    BY_PTX = "--ptx" in sys.argv
    if not BY_PTX:
        with_sanitizers()
    sys.exit(main(WANTED, BY_PTX))
