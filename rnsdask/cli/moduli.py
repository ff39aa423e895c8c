"""The command that makes a moduli set, and options that name prime fields."""

from typing import TYPE_CHECKING, Any

import click

from rnsdask.cli.commands import MODULI, Command, options_of, refuse, refusing
from rnsdask.cli.integers import INTEGER, read_integer
from rnsdask.cli.options import joined, json_option, moduli_options, moduli_set
from rnsdask.cli.printing import echo, print_json

if TYPE_CHECKING:
    from rnsdask.fields.system import PrimeFields


@click.command(cls=Command)
@moduli_options
@options_of(MODULI)(
    "--start", type=INTEGER, metavar="M", help="Consecutive odd integers from M on, pairwise coprime."
)
@options_of(MODULI)("--count", type=INTEGER, metavar="N", help="With --start: how many.")
@json_option
def moduli(start: int | None, count: int | None, as_json: bool, **others: Any) -> None:
    """Make a moduli set and print it.

    It prints one modulus a line, which --moduli reads.
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


_moduli = options_of(MODULI)

field_options = joined(
    _moduli("--primes", metavar="P,P,...", help="Make elements of the fields modulo these primes."),
    _moduli(
        "--ntt-length",
        type=INTEGER,
        metavar="N",
        help="With --bits: elements of prime fields that have transforms of this length.",
    ),
)
"""Options of fields: `primes` and `ntt_length`."""


def read_fields(primes: str | None, ntt_length: int | None, bits: int | None) -> "PrimeFields | None":
    """Make the fields that the options name, or None; `bits` is the value of ``--bits``."""
    if primes is None and ntt_length is None:
        return None
    if primes is not None and ntt_length is not None:
        refuse("give --primes or --ntt-length, not both")
    from rnsdask.core.moduli import ModuliSet
    from rnsdask.fields.system import PrimeFields

    if primes is None:
        if bits is None:
            refuse("--ntt-length needs --bits: the product of the primes is at least 2**B")
        assert ntt_length is not None
        with refusing():
            return PrimeFields(ModuliSet.ntt_primes(bits, ntt_length))
    if bits is not None:
        refuse("--primes excludes --bits, which is for --ntt-length")
    values = split_integers("--primes takes primes", primes, "97,193")
    with refusing():
        return PrimeFields(values)


def split_integers(rule: str, text: str, example: str) -> list[int]:
    """Read integers with commas between them; the `rule` says which option takes what."""
    values = []
    for item in text.split(","):
        value = read_integer(item.strip())
        if value is None:
            refuse(f"{rule} with commas between them, such as {example}, got {item!r:.40}")
        values.append(value)
    return values
