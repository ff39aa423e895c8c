"""Opening and checking the stores and plain arrays that a job reads.

Jobs that make no Dask array import this module too, so that ``dask.array`` is imported by those that do.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from rnsdask import store
from rnsdask.core import rows
from rnsdask.core.errors import JobError, StoreError
from rnsdask.core.number_system import NumberSystem
from rnsdask.core.overflow import overflow_mode
from rnsdask.core.table import PRIME_FIELDS_TABLE, WIDE_PRIME_FIELDS_TABLE
from rnsdask.core.ways import REPLACE, Message, with_ways

OF_INTEGERS: store.Kind = attrgetter("overflows")
"""Accept stores of integers, whose results can be out of range, unlike elements of fields."""

OF_NUMBERS = store.all_systems
"""Accept all stores, also of elements of fields."""


def of_integers_or_prime_fields(system: NumberSystem) -> bool:
    """Accept stores of integers, and of elements of prime fields, whose residues can be compared."""
    return system.overflows or system.table_name in (PRIME_FIELDS_TABLE, WIDE_PRIME_FIELDS_TABLE)


@dataclass(frozen=True)
class Source:
    """A store that a job reads: its path, as the user wrote it, and its metadata."""

    path: str
    info: store.StoreInfo

    @classmethod
    def at(cls, path: str, kind: store.Kind) -> "Source":
        """Open the complete store, of numbers of a kind, at a path; StoreError if it is missing."""
        return cls(path, store.open_info(path, kind))

    def array(self, **options: Any) -> Any:
        """Open it as a lazy array, with options of :func:`.open_zarr`."""
        from rnsdask.arrays.creation import open_words

        return open_words(self.info, **options)

    def whole_axes(self, count: int) -> dict[int, int]:
        """Chunks that span the last `count` axes, or the only axis of a vector."""
        return dict.fromkeys(range(len(self.info.shape))[-count:], -1)

    def array_with(self, method: str, **options: Any) -> Any:
        """Open it for a job that calls a method of arrays of residues; JobError if the array lacks it."""
        array = self.array(**options)
        if hasattr(array, method):
            return array
        raise JobError(Message(f"{self.path}: {method}: ", self.info.system.lacking(rows.residues_modulo)))


# ---- checks before a job ----------------------------------------------------------------------------------


def check_overflow(path: str, system: NumberSystem, overflow: str | None) -> None:
    """Raise an error for a mode of overflow that numbers of a store do not support.

    TypeError for elements of fields, which do not overflow; JobError for numbers that cannot wrap.
    """
    try:
        overflow_mode(overflow, system)
    except ValueError as error:
        raise JobError(Message(f"{path}: ", error)) from None


def check_target(output: store.Output, sources: Iterable[Source]) -> None:
    """Raise StoreError if a job would overwrite its input."""
    check_targets({"the result": output}, [source.info for source in sources])


def check_targets(
    written: Mapping[str, store.Output],
    read: Iterable[store.StoreInfo | store.PlainInfo],
    *,
    new: bool = False,
) -> None:
    """Raise StoreError unless a job can write all its outputs to their places.

    `written` maps the names of outputs in messages to the outputs; with `new` nothing may exist there.
    """
    before: dict[str, store.Location] = {}
    for what, output in written.items():
        path, target = output.path, output.place
        if other := next((other for other, place in before.items() if place.overlaps(target)), None):
            raise StoreError(f"{path}: {what} cannot be written there, {other} are")
        if any(info.location.overlaps(target) for info in read):
            raise StoreError(f"{path}: an operand is read from there, so the result cannot be written there")
        before[what] = target
    for output in written.values() if new else ():
        if store.exists(output.place):
            raise StoreError(with_ways(f"{output.path}: it exists", REPLACE))
