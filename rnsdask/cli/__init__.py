"""The command line: ``rnsdask``, also reachable as ``dask rns``.

Its modules import nothing but click at the top; each command imports what it needs when it runs.
"""

import click

from rnsdask.cli.commands import Group
from rnsdask.cli.derivations import (
    batchgcd,
    concat,
    convert,
    convolve,
    extend,
    powmod,
    rechunk,
    reshape,
    shrink,
    slice_,
    sort,
)
from rnsdask.cli.doctor import doctor
from rnsdask.cli.evaluation import eval_, filter_
from rnsdask.cli.exact_results import EXACT_RESULTS
from rnsdask.cli.exporting import export
from rnsdask.cli.grouping import group
from rnsdask.cli.importing import import_
from rnsdask.cli.inspection import info, verify
from rnsdask.cli.kernels import kernels
from rnsdask.cli.looking import compare, head, hist, stats
from rnsdask.cli.masks import where
from rnsdask.cli.moduli import moduli
from rnsdask.cli.random import random
from rnsdask.cli.reductions import REDUCTIONS, prod, topk
from rnsdask.cli.transforms import SCANS, ntt


@click.group(name="rns", cls=Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="rnsdask", prog_name="rnsdask")
def main() -> None:
    """Exact computing on huge arrays of huge integers, in stores on disk.

    rnsdask COMMAND --help shows an example and all options of a command. Exit status: 0 done, 1 the job
    failed, 2 wrong usage. An error is one line on standard error.
    """


SECTIONS = {
    "Make": (random, import_, moduli),
    "Look": (info, head, stats, hist, verify, compare, where, doctor),
    "Compute": (eval_, filter_, *REDUCTIONS, prod, group, topk, sort, *SCANS, powmod, batchgcd),
    "Matrices and polynomials": (*EXACT_RESULTS, convolve, ntt),
    "Convert": (export, convert, extend, shrink, slice_, concat, reshape, rechunk),
    "Install": (kernels,),
}

for commands in SECTIONS.values():
    for command in commands:
        main.add_command(command)
main.sections = {
    heading: [str(command.name) for command in commands] for heading, commands in SECTIONS.items()
}
