"""A CUDA source compiled by NVRTC to PTX, as on a user's machine, which `ptx` runs."""

import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "kernels"))

import nvrtc

from emulation import ptx
from emulation.cupy_of_host import launched_by


class PtxModule:
    """A source compiled by NVRTC to PTX, its kernels by their names."""

    def __init__(self, code: str, options: tuple[str, ...], backend: str) -> None:  # noqa: ARG002
        self.text = ptx_of(code, tuple(o for o in options if not o.startswith("-arch")))

    def compile(self) -> None:
        """Nothing, for it is compiled."""

    def get_function(self, name: str) -> Callable[..., None]:
        return launched_by(ptx.Kernel(self.text, name).launch)


def ptx_of(code: str, options: tuple[str, ...]) -> str:
    """A source of CUDA as PTX of a Hopper GPU, by NVRTC."""
    library = nvrtc.find_library()
    if library is None:
        sys.exit(f"error: --ptx needs NVRTC: a wheel ({' or '.join(nvrtc.WHEELS)}) or a CUDA toolkit")
    made = nvrtc.NVRTC(library).translate(code, "kernels.cu", (*options, "-arch=compute_90"), "PTX")
    return made.rstrip(b"\0").decode()
