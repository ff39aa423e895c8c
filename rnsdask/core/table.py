"""The table of a number system: for each row that it has (:mod:`.rows`), a function of chunks."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property, partial
from pkgutil import resolve_name
from typing import Any, TypeAlias

from rnsdask.core.rows import Row

OF_SYSTEMS = ("system", "moduli", "signed", "source")
"""Names by which functions of chunks take the system, or some of its attributes."""


@dataclass(frozen=True)
class Entry:
    """A row of a number system.

    Attributes
    ----------
    row : Row
        What the function takes and gives.
    function : callable
        ``f(*blocks, system=..., **options)``. In the place of the system it may take what it needs of it, by
        name: :data:`OF_SYSTEMS`. Of a row of whole arrays ``f(*arrays, **options)``.
    check : callable, optional
        Called with the system and the options before anything is computed, to raise what can be known then.
    plan : callable, optional
        ``plan(system, ranges, mode, **options)`` of a system that knows bounds: the mode that chunks need,
        and a bound of the results or None, where ``row.result`` is not the way to find them.
    waiting : callable, optional
        Of a row of whole arrays, called as the function: the most numbers that are in memory of one process
        together because they wait for others.
    moves : bool
        Whether chunks of host memory go to a GPU for it, unless somebody chose a processor.
    """

    row: Row[..., Any]
    function: Callable[..., Any]
    check: Callable[..., None] | None = None
    plan: Callable[..., tuple[str, int | None]] | None = None
    waiting: Callable[..., int] | None = None
    moves: bool = True

    @cached_property
    def call(self) -> Callable[..., Any]:
        """The function, called as ``call(*blocks, system=..., **options)`` with all options of the row."""
        function, names, not_taken = self.function, self._of_system, self._not_taken
        if names == ("system",) and not not_taken:
            return function  # as a call between takes a few percent of a small operation

        def call(*blocks: Any, system: Any, **options: Any) -> Any:
            for name in names:
                options[name] = system if name == "system" else getattr(system, name)
            for name in not_taken.intersection(options):
                del options[name]
            return function(*blocks, **options)

        return call

    @cached_property
    def overflows(self) -> bool:
        """Whether results may be out of range."""
        return "mode" in self.taken

    @cached_property
    def located(self) -> bool:
        """Whether errors name the place of a number."""
        return "locate" in self.taken

    @cached_property
    def ranged(self) -> bool:
        """Whether ranges of the operands are of use."""
        return "ranges" in self.taken

    @cached_property
    def taken(self) -> frozenset[str]:
        """Names of the function's parameters, but for what a partial function has been given."""
        given = self.function.keywords if isinstance(self.function, partial) else {}
        return frozenset(inspect.signature(self.function).parameters) - set(given)

    @cached_property
    def _not_taken(self) -> frozenset[str]:
        # Elementwise operations ask which of the options it takes: modes, places and ranges.
        return frozenset() if self.row.kind == "numbers" else self.row.offered - self.taken

    @cached_property
    def _of_system(self) -> tuple[str, ...]:
        options = self.row.signature.parameters
        return tuple(name for name in OF_SYSTEMS if name in self.taken and name not in options)


@dataclass(frozen=True)
class ThroughRNS:
    """A row that is done by residues of more moduli, to which numbers are brought and back.

    Attributes
    ----------
    row : Row
        The row.
    bits : callable, optional
        How many bits every exact result takes, by the arguments of the operation, so that none is out of
        range on the way. Without it, results are no longer than the numbers.
    overflows : bool
        Whether the operation takes ``overflow=``. Else results out of range are an error.
    check : callable, optional
        Called with the arguments, to raise what residues of more moduli would not.
    """

    row: Row[..., Any]
    bits: Callable[..., int] | None = None
    overflows: bool = False
    check: Callable[..., None] | None = None


Table: TypeAlias = dict[str, Any]
"""An :class:`Entry` or a :class:`ThroughRNS` by the name of each row."""


def table(*entries: Entry | ThroughRNS) -> Table:
    """Make a table; ValueError if a row stands twice."""
    made = {entry.row.name: entry for entry in entries}
    if len(made) < len(entries):
        names = [entry.row.name for entry in entries]
        raise ValueError(f"rows stand twice: {sorted({name for name in names if names.count(name) > 1})}")
    return made


RNS_TABLE = "rnsdask.tables.residues:TABLE"
INTERVAL_RNS_TABLE = "rnsdask.tables.intervals:TABLE"
POSITIONAL_TABLE = "rnsdask.tables.limbs:TABLE"
PRIME_FIELDS_TABLE = "rnsdask.tables.fields:PRIME_FIELDS"
FERMAT_FIELDS_TABLE = "rnsdask.tables.fields:FERMAT_FIELDS"
"""Names of the tables, by which systems name one another's without importing them."""


@cache
def table_at(name: str) -> Table:
    """Import the table of a name such as ``rnsdask.tables.residues:TABLE``."""
    found: Table = resolve_name(name)
    return found
