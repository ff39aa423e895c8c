"""Help texts: a command's own options first, those it shares with others in groups after them."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import click

_Function = Callable[..., Any]

_OWN, MODULI, RECORDS, OUTPUT = "Options", "Number system", "Records and residues", "Output"
PROCESSORS, CLUSTER, OTHER = "Processors", "Cluster", "Other"
_ORDER = (_OWN, MODULI, RECORDS, OUTPUT, PROCESSORS, CLUSTER, OTHER)

_WIDEST = 26
"""Columns of the names of options; one that is longer has a line of its own."""


class Option(click.Option):
    """An option that the help text shows in a group."""

    def __init__(self, *args: Any, group: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.group = group


def options_of(group: str) -> Callable[..., Callable[[_Function], _Function]]:
    """Return a decorator like ``click.option``, whose options are shown in a group of `_ORDER`."""
    return partial(click.option, cls=Option, group=group)


def write_options(
    params: Iterable[click.Parameter], ctx: click.Context, formatter: click.HelpFormatter
) -> None:
    """Write the options in their groups, all texts in one column."""
    groups: dict[str, list[tuple[str, str]]] = {}
    for param in params:
        if isinstance(param, click.Option) and (record := param.get_help_record(ctx)):
            is_of_click = param.is_eager  # --help, --version
            groups.setdefault(getattr(param, "group", OTHER if is_of_click else _OWN), []).append(record)
    width = min(max(len(name) for rows in groups.values() for name, _ in rows), _WIDEST)
    for group in sorted(groups, key=_ORDER.index):
        with formatter.section(group):
            formatter.write_dl([(name.ljust(width), text) for name, text in groups[group]], col_max=width)


def write_example(name: str, formatter: click.HelpFormatter) -> None:
    """Write what somebody types to use a command, and what is printed then."""
    from rnsdask.cli.examples import EXAMPLES

    with formatter.section("Example"):
        formatter.write("".join(f"  {line}".rstrip() + "\n" for line in EXAMPLES[name].strip().splitlines()))
