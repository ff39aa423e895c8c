"""Options that name prime fields, for commands that make stores of their elements."""

from typing import TYPE_CHECKING

from rnsdask.cli.errors import refuse, refusing
from rnsdask.cli.help import MODULI, options_of
from rnsdask.cli.integers import INTEGER, read_integer
from rnsdask.cli.options import joined

if TYPE_CHECKING:
    from rnsdask.fields.system import PrimeFields

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
    """Make the fields that the options name; None if they name none.

    Parameters
    ----------
    bits : int, optional
        What ``--bits`` says.
    """
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
    values = []
    for item in primes.split(","):
        value = read_integer(item.strip())
        if value is None:
            refuse(f"--primes takes primes with commas between them, such as 97,193, got {item!r:.40}")
        values.append(value)
    with refusing():
        return PrimeFields(values)
