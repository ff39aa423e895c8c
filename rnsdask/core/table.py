"""The table of a number system: each operation that it has, by name, as a function of chunks."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pkgutil import resolve_name
from typing import Any, TypeAlias

from numpy.typing import DTypeLike


@dataclass(frozen=True)
class Entry:
    """An operation of a number system.

    Attributes
    ----------
    function : callable
        ``f(*blocks, system=...)``, of a chunk of words (rows, *shape) for each operand, on NumPy or CuPy; the
        operation's own options are keywords too. It returns words, or a plain value for each number,
        (*shape). An integer beside arrays is a block of one number.
    gives : dtype, optional
        Type of the plain values; None for words.
    overflows : bool
        Whether exact results may be out of range: the function is called with ``mode=``, ``"raise"``,
        ``"wrap"`` or ``"flag"``, and with ``"flag"`` returns a row more, 1 where a result is out of range.
    located : bool
        Whether it is called with ``locate=``, which turns a flat index in the chunk into the one to report.
    ranged : bool
        Whether it is called with ``ranges=``, what is known of each operand: its least and greatest number.
    check : callable, optional
        Called with the system and the options before anything is computed, to raise what can be known then.
    plan : callable, optional
        ``plan(system, ranges, mode, **options)`` of a system that knows bounds: the mode that chunks need,
        and a bound of the results or None, where the range of results (:data:`.ranges.RESULTS`) is not the
        way to find them.
    moves : bool
        Whether chunks of host memory go to a GPU for it, unless somebody chose a processor.
    """

    function: Callable[..., Any]
    gives: DTypeLike | None = None
    overflows: bool = False
    located: bool = False
    ranged: bool = False
    check: Callable[..., None] | None = None
    plan: Callable[..., tuple[str, int | None]] | None = None
    moves: bool = True


@dataclass(frozen=True)
class ThroughRNS:
    """An operation that is done by residues of more moduli, to which numbers are brought and back.

    Attributes
    ----------
    bits : callable, optional
        How many bits every exact result takes, by the arguments of the operation, so that none is out of
        range on the way. Without it, results are no longer than the numbers.
    overflows : bool
        Whether the operation takes ``overflow=``. Else results out of range are an error.
    check : callable, optional
        Called with the arguments, to raise what residues of more moduli would not.
    """

    bits: Callable[..., int] | None = None
    overflows: bool = False
    check: Callable[..., None] | None = None


Table: TypeAlias = Mapping[str, Any]
"""Operations by name: an :class:`Entry` or a :class:`ThroughRNS` each."""


RNS_TABLE = "rnsdask.rns.table:TABLE"
INTERVAL_RNS_TABLE = "rnsdask.interval_rns.table:TABLE"
POSITIONAL_TABLE = "rnsdask.positional.table:TABLE"
PRIME_FIELDS_TABLE = "rnsdask.fields.table:PRIME_FIELDS"
FERMAT_FIELDS_TABLE = "rnsdask.fields.table:FERMAT_FIELDS"
"""Names of the tables, by which systems name one another's without importing them."""


@cache
def table_at(name: str) -> Table:
    """Import the table of a name such as ``rnsdask.rns.table:TABLE``."""
    table: Table = resolve_name(name)
    return table
