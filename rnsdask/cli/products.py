"""The command ``prod``."""

from contextlib import AbstractContextManager
from typing import Any

import click

from rnsdask.cli.errors import Command
from rnsdask.cli.options import digits_option, processor_job_options, store_argument
from rnsdask.cli.printing import counted, echo, number_text
from rnsdask.cli.streams import cost_text, print_json, size_text


@click.command(cls=Command)
@store_argument
@click.option(
    "--overflow",
    type=click.Choice(["raise", "wrap", "flag"]),
    help="Of a product out of range: an error; it modulo M, or of limbs modulo 2**BITS; or this, and whether "
    "it was.  [default: raise; a store that grows has any product]",
)
@digits_option
@processor_job_options
def prod(
    path: str,
    overflow: str | None,
    connection: AbstractContextManager[Any],
    backend: str,
    progress: bool,
    as_json: bool,
) -> None:
    """Print the product of all integers of STORE; 1 of none."""
    from rnsdask.core.integer_text import to_decimal
    from rnsdask.jobs.compute import compute, naming
    from rnsdask.jobs.cost import measured
    from rnsdask.jobs.memory_plan import fitting, work_on
    from rnsdask.jobs.sources import OF_INTEGERS, Source, check_overflow

    source = Source.at(path, OF_INTEGERS)
    plan: dict[str, Any] = {"backend": backend, "info": source.whole_store}
    with connection as client, fitting(work_on(source.info, "prod"), client, **plan) as part:
        array = source.array_with("prod", part=part, backend=backend)
        check_overflow(path, array.system, overflow)
        where: dict[str, Any] = {} if source.whole_store is None else {"backend": backend}
        found = array.prod(overflow=overflow, **where)
        wanted = list(found) if overflow == "flag" else [found]
        amount: dict[str, Any] = {"numbers": array.size, "nbytes": array.nbytes}
        with naming(f"prod of {path}"), measured() as cost:
            value, *flagged = compute(wanted, client, progress=progress, label="prod", **amount)
    cost.record("prod", array.size, array.nbytes)
    text = to_decimal(value)
    if as_json:
        flags = {"flagged": bool(flagged[0])} if flagged else {}
        fields = {"value": text, "count": array.size, **flags, **cost.as_dict(), "bytes_read": array.nbytes}
        print_json({"op": "prod", "store": path, **fields})
        return
    echo(f"prod of {counted(array.size, 'integers')}:", number_text(text))
    modulus = "M" if hasattr(array, "moduli") else f"2**{array.bits}"
    told = f"; out of range, modulo {modulus}" if any(map(bool, flagged)) else ""
    echo(f"({size_text(array.nbytes)} in {cost_text(array.nbytes, cost)}{told})")
