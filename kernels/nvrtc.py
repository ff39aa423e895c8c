"""NVIDIA's run-time compiler through ctypes: where it is, and what it makes of a source; needs no GPU."""

import ctypes
import ctypes.util
import importlib.metadata
import os
import re
from pathlib import Path

WHEELS = ("nvidia-cuda-nvrtc", "nvidia-cuda-nvrtc-cu12")


class CompilationError(Exception):
    """The compiler's own messages."""


def wheel_libraries() -> list[Path]:
    """Return the NVRTC libraries of the installed wheels."""
    libraries = []
    for wheel in WHEELS:
        try:
            files = importlib.metadata.files(wheel) or []
        except importlib.metadata.PackageNotFoundError:
            continue
        found = (file for file in files if re.fullmatch(r"libnvrtc\.so\.\d+", file.name))
        libraries += [Path(str(file.locate())) for file in found]
    return libraries


def find_library() -> str | None:
    """Return NVRTC's library, of a wheel or else of a CUDA toolkit; None where there is none.

    A toolkit is that of CUDA_HOME or CUDA_PATH, ``/usr/local/cuda``, or what the system's linker knows.
    """
    if wheels := wheel_libraries():
        return str(wheels[0])
    toolkits = (os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda")
    for toolkit in filter(None, toolkits):
        for folder in ("lib64", "lib", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib"):
            for library in sorted((Path(toolkit) / folder).glob("libnvrtc.so*")):
                return str(library)
    return ctypes.util.find_library("nvrtc")


class NVRTC:
    """A library of NVRTC. Threads may compile side by side.

    Attributes
    ----------
    version : (int, int)
        That of the CUDA toolkit.
    architectures : frozenset of int
        What it compiles for: 90 for sm_90.
    """

    def __init__(self, library: str | Path) -> None:
        self._library = ctypes.CDLL(str(library))
        self._library.nvrtcGetErrorString.restype = ctypes.c_char_p
        numbers = ctypes.c_int(), ctypes.c_int()
        self._check(self._library.nvrtcVersion(*map(ctypes.byref, numbers)))
        self.version = numbers[0].value, numbers[1].value
        count = ctypes.c_int()
        self._check(self._library.nvrtcGetNumSupportedArchs(ctypes.byref(count)))
        found = (ctypes.c_int * count.value)()
        self._check(self._library.nvrtcGetSupportedArchs(found))
        self.architectures = frozenset(found)

    def translate(self, source: str, name: str, options: tuple[str, ...], what: str) -> bytes:
        """Make ``CUBIN`` or ``PTX`` of a source; `name` stands in messages. CompilationError holds these."""
        program = ctypes.c_void_p()
        create = self._library.nvrtcCreateProgram
        self._check(create(ctypes.byref(program), source.encode(), name.encode(), 0, None, None))
        try:
            array = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
            if self._library.nvrtcCompileProgram(program, len(options), array) != 0:
                raise CompilationError(self._text(program, "ProgramLog").rstrip(b"\0").decode())
            return self._text(program, what)
        finally:
            self._library.nvrtcDestroyProgram(ctypes.byref(program))

    def _text(self, program: ctypes.c_void_p, what: str) -> bytes:
        size = ctypes.c_size_t()
        self._check(getattr(self._library, f"nvrtcGet{what}Size")(program, ctypes.byref(size)))
        buffer = ctypes.create_string_buffer(size.value)
        self._check(getattr(self._library, f"nvrtcGet{what}")(program, buffer))
        return buffer.raw

    def _check(self, status: int) -> None:
        if status != 0:
            raise CompilationError(self._library.nvrtcGetErrorString(status).decode())


def compiled_entry_points(cubin: bytes) -> set[str]:
    """Return the names of the kernels in machine code: each has a section for its parameters."""
    return {name.decode() for name in re.findall(rb"\.nv\.constant0\.(\w+)\0", cubin)}
