"""The kernels for NumPy arrays: calls into the compiled extension (see :class:`.protocol.Kernels`)."""

# ruff: noqa: F403

from rnsdask.backend.cpu.arithmetic import *
from rnsdask.backend.cpu.convert import *
from rnsdask.backend.cpu.fermat import *
from rnsdask.backend.cpu.files import *
from rnsdask.backend.cpu.interval import *
from rnsdask.backend.cpu.keyed import *
from rnsdask.backend.cpu.matrices import *
from rnsdask.backend.cpu.polynomials import *
from rnsdask.backend.cpu.positional import *
from rnsdask.backend.cpu.text import *
