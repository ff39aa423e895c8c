"""Extending: the mixin of arrays under a moduli set, which bring their numbers under another one."""

from __future__ import annotations

from typing import Self

from rnsdask.arrays.collection import NumberCollection
from rnsdask.core.moduli import ModuliSet, check_moduli_set


class Extending(NumberCollection):
    """Base extension, and what follows from it."""

    __slots__ = ()

    # ---- required to implement ----------------------------------------------------------------------------

    def extend(self, moduli: ModuliSet) -> Self:
        """Extend the numbers to another moduli set, exactly."""
        raise NotImplementedError

    # ---- what follows -------------------------------------------------------------------------------------

    def shrink(self, moduli: ModuliSet) -> Self:
        """Bring the numbers under a set of at most as many moduli; otherwise as :meth:`extend`."""
        check_moduli_set(moduli)
        if len(moduli) > len(self.moduli):
            raise ValueError(f"an array of {len(self.moduli)} moduli cannot shrink to {len(moduli)} moduli")
        return self.extend(moduli)
