"""The kernels for CuPy arrays, compiled at first use and cached on disk (see :class:`.protocol.Kernels`).

All work goes to the current device and stream, which must be the ones of the arrays.
"""

# ruff: noqa: F403

from rnsdask.backend.cuda.arithmetic import *
from rnsdask.backend.cuda.bound_proof import *
from rnsdask.backend.cuda.check import *
from rnsdask.backend.cuda.convert import *
from rnsdask.backend.cuda.copies import *
from rnsdask.backend.cuda.elimination import *
from rnsdask.backend.cuda.fermat import *
from rnsdask.backend.cuda.int8_product import *
from rnsdask.backend.cuda.interval import *
from rnsdask.backend.cuda.keyed import *
from rnsdask.backend.cuda.matmul import *
from rnsdask.backend.cuda.ntt import *
from rnsdask.backend.cuda.polynomials import *
from rnsdask.backend.cuda.positional import *
from rnsdask.backend.cuda.positional_products import *
from rnsdask.backend.cuda.sparse import *
from rnsdask.backend.cuda.triangles import *
from rnsdask.backend.cuda.wide_panel import *
