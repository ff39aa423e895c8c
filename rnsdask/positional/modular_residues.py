"""Modular arithmetic of chunks of residues (n, *shape), by their limbs: :mod:`.modular`.

A modulus for each number leaves residues nothing to precompute, so numbers become limbs, and results residues
again. Options, errors and broadcasting are those of :mod:`.modular`.
"""

from collections.abc import Callable
from functools import partial

import numpy as np

from rnsdask.backend import Array
from rnsdask.core.place import Locate
from rnsdask.positional import modular
from rnsdask.positional.operands import used_limbs
from rnsdask.rns.convert import to_limbs, to_residues
from rnsdask.rns.system import RNS


def apply(
    function: Callable[..., Array], *blocks: Array, system: RNS, locate: Locate = int, plain: int = 0
) -> Array:
    """Apply a function of limbs to residues; the last `plain` blocks are machine integers (1, *shape)."""
    count = len(blocks) - plain
    limbs = [_limbs_of(block, system) for block in blocks[:count]]
    found = function(*limbs, *blocks[count:], signed=system.signed, locate=locate)
    return to_residues(np.moveaxis(found, 0, -1), system.moduli)


def mod_power_by_integer(x: Array, m: Array, exponent: int, system: RNS, locate: Locate = int) -> Array:
    """``x**exponent`` modulo m for one integer of any size."""
    return apply(partial(modular.mod_power_by_integer, exponent=exponent), x, m, system=system, locate=locate)


def _limbs_of(residues: Array, system: RNS) -> Array:
    """Limbs (k, *shape), without the upper ones that are 0 in all numbers."""
    words = np.copy(np.moveaxis(to_limbs(residues, system.moduli, system.signed), -1, 0), order="C")
    used = used_limbs(words.reshape(len(words), -1))
    return words[: used + 1 if system.signed and used < len(words) else used]
