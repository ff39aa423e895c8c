"""A CUDA source compiled by NVRTC to PTX, as on a user's machine, which `ptx` runs."""

import sys
from collections.abc import Callable

import check_kernels

from emulation import ptx
from emulation.cupy_of_host import launched_by


class PtxModule:
    """A source compiled by NVRTC to PTX, its kernels by their names."""

    def __init__(self, code: str, options: tuple[str, ...], backend: str) -> None:  # noqa: ARG002
        self.text = ptx_of(code, tuple(o for o in options if not o.startswith("-arch")))

    def get_function(self, name: str) -> Callable[..., None]:
        return launched_by(ptx.Kernel(self.text, name).launch)


def ptx_of(code: str, options: tuple[str, ...]) -> str:
    """A source of CUDA as PTX of a Hopper GPU, by NVRTC."""
    libraries = check_kernels.nvrtc_libraries()
    if not libraries:
        sys.exit(f"error: --ptx needs a wheel of NVRTC ({' or '.join(check_kernels.NVRTC_WHEELS)})")
    translate = check_kernels.nvrtc_translator(libraries[0])
    return translate(code, "kernels.cu", (*options, "-arch=compute_90"), "PTX").rstrip(b"\0").decode()
