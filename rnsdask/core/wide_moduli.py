"""Moduli of up to 64 bits, under which other libraries hold residues."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, SupportsIndex

from rnsdask.core.coprime import product
from rnsdask.core.moduli import (
    MODULUS_MAX,
    ModuliSet,
    as_integer,
    check_moduli,
    check_moduli_set,
    unchecked_set,
)

WIDE_BITS = 64
"""Bits of the greatest modulus, 2**64: its residues are unsigned 64-bit integers."""


@dataclass(frozen=True)
class WideModuli:
    """Pairwise coprime integers from 2 to 2**64, in the order given: hashable and picklable.

    Residues under them are read and written, and are elements of prime fields; all other computations use a
    ModuliSet.
    """

    moduli: tuple[int, ...]

    def __post_init__(self) -> None:
        check_moduli(self.moduli, WIDE_BITS)

    @cached_property
    def product(self) -> int:
        """Dynamic range, the product of all moduli."""
        return int(product(self.moduli))

    @cached_property
    def bits(self) -> int:
        """Length of M in bits."""
        return self.product.bit_length()

    def value_range(self, signed: bool) -> tuple[int, int]:
        """Return the lowest and highest number of the range, as :meth:`.ModuliSet.value_range`."""
        if signed:
            return -(self.product // 2), (self.product - 1) // 2
        return 0, self.product - 1

    def __len__(self) -> int:
        return len(self.moduli)

    def __getitem__(self, index: SupportsIndex) -> int:
        return self.moduli[index]

    def __iter__(self) -> Iterator[int]:
        return iter(self.moduli)

    def __repr__(self) -> str:
        width = (max(self.moduli) - 1).bit_length()
        if len(self) == 1:
            return f"the modulus {self.moduli[0]}"
        return f"{len(self)} moduli of up to {width} bits, M of {self.bits} bits"

    def __getstate__(self) -> dict[str, Any]:
        return {"moduli": self.moduli}

    def __dask_tokenize__(self) -> tuple[str, tuple[int, ...]]:
        return "rnsdask.WideModuli", self.moduli


def some_of(moduli: ModuliSet | WideModuli, chosen: Iterable[int]) -> ModuliSet | WideModuli:
    """Return the moduli at some places, one or more, for words of the same width."""
    found = tuple(moduli[i] for i in chosen)
    return unchecked_set(found) if isinstance(moduli, ModuliSet) else WideModuli(found)


def moduli_of_residues(moduli: ModuliSet | Iterable[SupportsIndex]) -> ModuliSet | WideModuli:
    """Return the moduli of foreign residues: a ModuliSet if all are up to 2**32, else WideModuli."""
    if isinstance(moduli, ModuliSet | WideModuli):
        return moduli
    if not isinstance(moduli, Iterable) or isinstance(moduli, str | bytes):
        check_moduli_set(moduli)  # its error names the ways to make one
    values = tuple(as_integer(m, f"modulus at position {i}") for i, m in enumerate(moduli))
    are_narrow = bool(values) and all(2 <= m <= MODULUS_MAX for m in values)
    return ModuliSet(values) if are_narrow else WideModuli(values)  # its error names the range of both
