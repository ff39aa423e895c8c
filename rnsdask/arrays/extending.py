"""Extending: the mixin of arrays under a moduli set, which converts them to another set."""

from __future__ import annotations

from typing import Self

from rnsdask.arrays.collection import NumberCollection
from rnsdask.core.moduli import ModuliSet, check_moduli_set


class Extending(NumberCollection):
    """Base extension, and the methods based on it."""

    __slots__ = ()

    # ---- required to implement ----------------------------------------------------------------------------

    def extend(self, moduli: ModuliSet) -> Self:
        """Extend the numbers to another moduli set, exactly."""
        raise NotImplementedError

    # ---- based on it --------------------------------------------------------------------------------------

    def shrink(self, moduli: ModuliSet) -> Self:
        """Convert the numbers to a set of at most as many moduli; otherwise as :meth:`extend`."""
        check_moduli_set(moduli)
        if len(moduli) > len(self.moduli):
            raise ValueError(f"an array of {len(self.moduli)} moduli cannot shrink to {len(moduli)} moduli")
        return self.extend(moduli)
