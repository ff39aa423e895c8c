"""Constants that the kernels read, computed once for a moduli set and kept for the process.

Each class holds NumPy arrays in the layout its kernels expect. Instances compare by identity, and the
functions that build them are cached, so the copies on a GPU can be cached by instance too
(:mod:`rnsdask.backend.cuda`).
"""

# ruff: noqa: F403

from rnsdask.constants.arithmetic import *
from rnsdask.constants.convert import *
from rnsdask.constants.factors import *
from rnsdask.constants.fermat import *
from rnsdask.constants.int8_product import *
from rnsdask.constants.keys import *
from rnsdask.constants.ntt import *
from rnsdask.constants.proofs import *
from rnsdask.constants.remainders import *
