"""The command line: ``rnsdask``, also reachable as ``dask rns``.

Its modules import nothing but click at the top; each command imports what it needs when it runs.
"""

import click

from rnsdask.cli.comparison import compare
from rnsdask.cli.derivations import DERIVATIONS
from rnsdask.cli.errors import Group
from rnsdask.cli.evaluation import eval_
from rnsdask.cli.exact_results import EXACT_RESULTS
from rnsdask.cli.exporting import export
from rnsdask.cli.importing import import_
from rnsdask.cli.inspection import info, verify
from rnsdask.cli.looking import head, hist, stats
from rnsdask.cli.moduli import moduli
from rnsdask.cli.products import prod
from rnsdask.cli.random import random
from rnsdask.cli.reductions import REDUCTIONS
from rnsdask.cli.scans import SCANS
from rnsdask.cli.topk import topk
from rnsdask.cli.transforms import ntt


@click.group(name="rns", cls=Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="rnsdask", prog_name="rnsdask")
def main() -> None:
    """Exact operations on huge arrays of huge integers, held in residue number systems.

    Exit status: 0 done, 1 the job failed, 2 wrong usage. An error is one line on standard error.
    """


COMMANDS = (
    *(moduli, import_, random, info, head, stats, hist, verify, export),
    *(*REDUCTIONS, prod),
    *(eval_, *SCANS, topk, compare),
    *DERIVATIONS,
    ntt,
    *EXACT_RESULTS,
)

for command in COMMANDS:
    main.add_command(command)
