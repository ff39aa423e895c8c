"""The table of a number system: a function of chunks for each row (:mod:`.rows`) that it has."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property, partial
from pkgutil import resolve_name
from typing import Any, TypeAlias

from rnsdask.core.rows import Row

OF_SYSTEMS = ("system", "moduli", "signed", "source")
"""Parameter names by which functions of chunks take the system, or some of its attributes."""


@dataclass(frozen=True)
class Entry:
    """Function of a number system for a row.

    Attributes
    ----------
    row : Row
        What the function takes and returns.
    source : callable or str
        ``f(*blocks, system=..., **options)``. Instead of the system it may take attributes of it, by the
        names in :data:`OF_SYSTEMS`. For a row of whole arrays ``f(*arrays, **options)``, by its name such as
        ``rnsdask.lazy.elimination:det``: these modules import ``dask.array``, which tasks on chunks do not
        need and which takes longer than a small job.
    check : callable, optional
        Called with the system and the options before anything is computed, to raise errors known by then.
    plan : callable, optional
        ``plan(system, ranges, mode, **options)`` for systems that know bounds: the mode that chunks need, and
        a bound of the results or None. It replaces ``row.result``.
    waiting : str, optional
        For a row of whole arrays, the name of a function that is called as the other one: the most numbers
        that one process holds at once because they wait for others.
    moves : bool
        Whether chunks in host memory move to a GPU for it, unless the user chose a processor.
    """

    row: Row[..., Any]
    source: Callable[..., Any] | str
    check: Callable[..., None] | None = None
    plan: Callable[..., tuple[str, int | None]] | None = None
    waiting: str | None = None
    moves: bool = True

    @cached_property
    def function(self) -> Callable[..., Any]:
        """The function, imported if `source` is its name."""
        found: Callable[..., Any] = resolve_name(self.source) if isinstance(self.source, str) else self.source
        return found

    @property
    def count_waiting(self) -> Callable[..., int] | None:
        """The function that `waiting` names."""
        return None if self.waiting is None else resolve_name(self.waiting)

    @cached_property
    def call(self) -> Callable[..., Any]:
        """The function, called as ``call(*blocks, system=..., **options)`` with all options of the row."""
        function, names, unused = self.function, self._of_system, self._unused_options
        if names == ("system",) and not unused:
            return function  # an extra call takes a few percent of a small operation

        def call(*blocks: Any, system: Any, **options: Any) -> Any:
            for name in names:
                options[name] = system if name == "system" else getattr(system, name)
            for name in unused.intersection(options):
                del options[name]
            return function(*blocks, **options)

        return call

    @cached_property
    def overflows(self) -> bool:
        """Whether results may be out of range."""
        return "mode" in self.parameters

    @cached_property
    def located(self) -> bool:
        """Whether errors name the place of a number."""
        return "locate" in self.parameters

    @cached_property
    def ranged(self) -> bool:
        """Whether the function uses ranges of the operands."""
        return "ranges" in self.parameters

    @cached_property
    def parameters(self) -> frozenset[str]:
        """Names of the function's free parameters: those that a partial function has not bound."""
        given = self.function.keywords if isinstance(self.function, partial) else {}
        return frozenset(inspect.signature(self.function).parameters) - set(given)

    @cached_property
    def _unused_options(self) -> frozenset[str]:
        # Elementwise operations ask for modes, places and ranges alike.
        return frozenset() if self.row.kind == "numbers" else self.row.optional - self.parameters

    @cached_property
    def _of_system(self) -> tuple[str, ...]:
        options = self.row.signature.parameters
        return tuple(name for name in OF_SYSTEMS if name in self.parameters and name not in options)


@dataclass(frozen=True)
class ThroughRNS:
    """Row computed in a system of more moduli, with conversions there and back.

    Attributes
    ----------
    row : Row
        The row.
    bits : callable, optional
        Bits that hold every exact result, by the arguments of the operation, so that none overflows on the
        way. Without it, results are no longer than the numbers.
    overflows : bool
        Whether the operation takes ``overflow=``. Otherwise results out of range are an error.
    check : callable, optional
        Called with the arguments, to raise errors that residues of more moduli would not.
    """

    row: Row[..., Any]
    bits: Callable[..., int] | None = None
    overflows: bool = False
    check: Callable[..., None] | None = None


Table: TypeAlias = dict[str, Any]
"""An :class:`Entry` or a :class:`ThroughRNS` by the name of each row."""


def table(*entries: Entry | ThroughRNS) -> Table:
    """Make a table; ValueError for a row given twice."""
    made = {entry.row.name: entry for entry in entries}
    if len(made) < len(entries):
        names = [entry.row.name for entry in entries]
        raise ValueError(f"rows stand twice: {sorted({name for name in names if names.count(name) > 1})}")
    return made


RNS_TABLE = "rnsdask.tables.residues:TABLE"
INTERVAL_RNS_TABLE = "rnsdask.tables.intervals:TABLE"
POSITIONAL_TABLE = "rnsdask.tables.limbs:TABLE"
PRIME_FIELDS_TABLE = "rnsdask.tables.fields:PRIME_FIELDS"
WIDE_PRIME_FIELDS_TABLE = "rnsdask.tables.fields:WIDE_PRIME_FIELDS"
FERMAT_FIELDS_TABLE = "rnsdask.tables.fields:FERMAT_FIELDS"
"""Names of the tables, by which systems refer to one another without importing them."""


@cache
def table_at(name: str) -> Table:
    """Import the table of a name such as ``rnsdask.tables.residues:TABLE``."""
    found: Table = resolve_name(name)
    return found
