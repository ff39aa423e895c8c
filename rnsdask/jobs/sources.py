"""Stores that a job reads."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from rnsdask import store
from rnsdask.arrays import creation
from rnsdask.core.errors import JobError, StoreError
from rnsdask.core.number_system import NumberSystem
from rnsdask.interval_rns.system import IntervalRNS
from rnsdask.positional.system import Positional
from rnsdask.rns.system import RNS

OF_INTEGERS: tuple[type[NumberSystem], ...] = (RNS, IntervalRNS, Positional)
"""The number systems of stores of integers."""

OF_NUMBERS = store.ALL_SYSTEMS
"""The same, and fields of which stores have elements."""


@dataclass(frozen=True)
class Source:
    """A store that a job reads.

    Attributes
    ----------
    path : str
        Where it is, as the user says it.
    info : StoreInfo
        What it says about itself.
    """

    path: str
    info: store.StoreInfo

    @classmethod
    def at(cls, path: str, systems: tuple[type[NumberSystem], ...] = (RNS,)) -> "Source":
        """The complete store, of one of some number systems, at a place.

        Raises
        ------
        StoreError
            If there is none.
        """
        return cls(path, store.open_info(path, systems))

    def array(self, *, backend: str = "cpu", part: int | None = None) -> Any:
        """Open it as a lazy array, whose chunks go to a processor as :func:`.open_zarr` says."""
        return creation.open_words(self.info, backend=backend, part=part)

    def array_with(self, method: str, **options: Any) -> Any:
        """The same, for a job that calls a method of the array.

        Raises
        ------
        JobError
            If the array has no such method; it names the way out.
        """
        array = self.array(**options)
        if hasattr(array, method):
            return array
        kind = "intervals" if isinstance(self.info.system, IntervalRNS) else "limbs"
        raise JobError(
            f"{self.path}: {method} is of stores of residues, and this is a store of {kind}; "
            "x.to_rns(moduli) makes residues of its numbers"
        )


def check_overflow(path: str, system: NumberSystem, overflow: str | None) -> None:
    """Raise JobError if numbers of a store do not wrap as a command was told to."""
    if overflow == "wrap":
        try:
            system.check_wraps()
        except ValueError as error:
            raise JobError(f"{path}: {error}") from None


def check_target(path: str, sources: Iterable[Source]) -> None:
    """Raise StoreError if what a job writes would be in the place of what it reads."""
    check_targets({"the result": path}, [source.info for source in sources])


def check_targets(
    written: Mapping[str, str], read: Iterable[store.StoreInfo | store.PlainInfo], *, new: bool = False
) -> None:
    """Raise StoreError unless all that a job writes can be written to its place.

    Parameters
    ----------
    written : mapping
        Paths by what is written there, as messages call it.
    read
        The stores that the job reads.
    new : bool
        Whether nothing may be there.
    """
    before: dict[str, store.Location] = {}
    for what, path in written.items():
        target = store.locate(path)
        if other := next((other for other, place in before.items() if place.overlaps(target)), None):
            raise StoreError(f"{path}: {what} cannot be written there, {other} are")
        if any(info.location.overlaps(target) for info in read):
            raise StoreError(f"{path}: an operand is read from there, so the result cannot be written there")
        before[what] = target
    for path in written.values() if new else ():
        if store.exists(path):
            raise StoreError(f"{path}: it exists; replace it with overwrite=True")
