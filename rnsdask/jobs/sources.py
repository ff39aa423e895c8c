"""Stores and groups that a job reads, opened alike."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from rnsdask import store
from rnsdask.arrays import creation, interval_rns_storage
from rnsdask.arrays.interval_rns_array import open_group
from rnsdask.core.errors import JobError, StoreAccessError, StoreError
from rnsdask.core.number_system import NumberSystem
from rnsdask.fields.finite_fields import FiniteFields
from rnsdask.positional.system import Positional
from rnsdask.rns.system import RNS

OF_INTEGERS: tuple[type[NumberSystem], ...] = (RNS, Positional)
"""The number systems of stores of integers."""

OF_NUMBERS: tuple[type[NumberSystem], ...] = (*OF_INTEGERS, FiniteFields)  # type: ignore[type-abstract]
"""Those, and fields of which stores have elements."""

Described: TypeAlias = store.StoreInfo | store.GroupInfo


@dataclass(frozen=True)
class Source:
    """A store or a group that a job reads.

    Attributes
    ----------
    path : str
        Where it is, as the user says it.
    info : StoreInfo or GroupInfo
        What it says about itself.
    """

    path: str
    info: Described

    @classmethod
    def at(cls, path: str, systems: tuple[type[NumberSystem], ...] = (RNS,)) -> "Source":
        """The complete store, of one of some number systems, or group at a place.

        Raises
        ------
        StoreError
            If there is none.
        """
        try:
            return cls(path, store.open_info(path, systems))
        except StoreError as error:
            if isinstance(error, StoreAccessError) or not store.is_group(store.locate(path)):
                raise
        return cls(path, interval_rns_storage.open_info(path))

    @property
    def residues(self) -> store.StoreInfo:
        """The store of its residues: of a group, those of the magnitudes."""
        return self.info.residues if isinstance(self.info, store.GroupInfo) else self.info

    @property
    def whole_store(self) -> store.StoreInfo | None:
        """The store, whose chunks may be read in parts; None if it is a group."""
        return None if isinstance(self.info, store.GroupInfo) else self.info

    def array(self, *, backend: str = "cpu", part: int | None = None) -> Any:
        """Open it as a lazy array, whose chunks go to a processor as :func:`.open_zarr` says."""
        if isinstance(self.info, store.StoreInfo):
            return creation.open_words(self.info, backend=backend, part=part)
        return open_group(self.info.location, backend)

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
        kind = "a store of limbs" if isinstance(self.info, store.StoreInfo) else "a group with intervals"
        raise JobError(
            f"{self.path}: {method} is of stores of residues, and this is {kind}; "
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
    written: Mapping[str, str], read: Iterable[Described | store.PlainInfo], *, new: bool = False
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
