"""The command that makes a moduli set."""

from typing import Any

import click

from rnsdask.cli.errors import Command, refuse, refusing
from rnsdask.cli.help import MODULI, options_of
from rnsdask.cli.integers import INTEGER
from rnsdask.cli.options import json_option, moduli_options, moduli_set
from rnsdask.cli.printing import echo
from rnsdask.cli.streams import print_json


@click.command(cls=Command)
@moduli_options
@options_of(MODULI)(
    "--start", type=INTEGER, metavar="M", help="Consecutive odd integers from M on, pairwise coprime."
)
@options_of(MODULI)("--count", type=INTEGER, metavar="N", help="With --start: how many.")
@json_option
def moduli(start: int | None, count: int | None, as_json: bool, **others: Any) -> None:
    """Make a moduli set and print it.

    It has one modulus a line, as --moduli reads it.
    """
    if (start is None) != (count is None):
        refuse("--start and --count go together")
    if start is None or count is None:
        chosen = moduli_set(**others)
    else:
        if any(value is not None for value in others.values()):
            refuse("--start excludes --bits and --moduli")
        from rnsdask.core.moduli import ModuliSet

        with refusing():
            chosen = ModuliSet.consecutive_odd(start, count)
    if as_json:
        size = {"count": len(chosen), "bits": chosen.bits, "product": chosen.product}
        print_json({"op": "moduli", **size, "moduli": list(chosen)})
    else:
        echo(f"# {chosen!r}", *map(str, chosen))
