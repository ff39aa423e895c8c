"""Commands and errors: one line on standard error, and an exit status."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any, NoReturn

import click

from rnsdask.cli.help import OTHER, Option, write_example, write_options
from rnsdask.cli.interruption import STATUS, ending_soon, is_program, way_on
from rnsdask.cli.minus import is_number, options_first
from rnsdask.cli.printing import (
    CommandError,
    ReaderGoneError,
    check_output,
    echo,
    output_errors,
    prepare_streams,
)
from rnsdask.cli.wording import in_options

_PROGRAM = "rnsdask.program"
"""Among what click keeps of a call: the arguments, if this process was started with them."""

DRAWN_SEED = "rnsdask.seed"
"""Among what click keeps of a call: the seed that a command has drawn for want of one."""


class WrongUsageError(CommandError):
    """A command line that makes no sense."""

    exit_code = 2


class InterruptionError(CommandError):
    """Ctrl-C, with the exit status that shells give it."""

    exit_code = STATUS


def refuse(message: str) -> NoReturn:
    """Refuse the options of the command that is running."""
    raise click.UsageError(in_options(message), click.get_current_context()) from None


@contextmanager
def refusing() -> Iterator[None]:
    """Take a ValueError for wrong usage, where only what the user gave can cause one."""
    try:
        yield
    except ValueError as error:
        refuse(str(error))


class Command(click.Command):
    """A command that has ``--debug`` and turns every error of its job into one line."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        debug = Option(["--debug"], group=OTHER, is_flag=True, help="Show the traceback of an error.")
        self.params.append(debug)

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write what the command does, and an example."""
        super().format_help_text(ctx, formatter)
        write_example(str(self.name), formatter)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options in groups."""
        write_options(self.get_params(ctx), ctx, formatter)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the options, unless there is nowhere to print the answer."""
        check_output()
        is_argument = partial(self.is_argument, args)
        return super().parse_args(ctx, options_first(args, self.get_params(ctx), is_argument))

    def is_argument(self, _args: list[str], word: str) -> bool:
        """Return whether one of the words, which begins with a minus, is no option."""
        return is_number(word)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        debug = ctx.params.pop("debug")
        if not debug:
            logging.disable(logging.CRITICAL)  # distributed logs tracebacks of what becomes one line here
        try:
            args = ctx.meta.get(_PROGRAM)
            command = partial(way_on, args or (), ctx.params)
            with nullcontext() if args is None else ending_soon(lambda: command(ctx.meta.get(DRAWN_SEED))):
                return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit):
            raise
        except KeyboardInterrupt:
            raise InterruptionError("interrupted") from None
        except Exception as error:
            if debug:
                import traceback

                echo(*traceback.format_exc().splitlines(), err=True)
            from rnsdask.cluster.failures import describe

            raise CommandError(in_options(describe(error, " (--debug shows where)"), ctx)) from None
        finally:
            logging.disable(logging.NOTSET)


class ComparingCommand(Command):
    """A command whose status 1 is an answer, as that of ``cmp``, so that each failure is 2."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the options."""
        with _failures_as_2():
            return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        with _failures_as_2():
            return super().invoke(ctx)


@contextmanager
def _failures_as_2() -> Iterator[None]:
    try:
        yield
    except (InterruptionError, ReaderGoneError):
        raise
    except CommandError as error:
        raise WrongUsageError(error.message) from None


class Group(click.Group):
    """The group of commands; wrong usage of any of them is one line too.

    `sections` are the names of commands under the headings of the help text.
    """

    sections: Mapping[str, Sequence[str]] = {}

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands under their headings, and then the options."""
        width = max(map(len, self.commands))
        for heading, names in self.sections.items():
            with formatter.section(heading):
                texts = [self.commands[name].get_short_help_str(formatter.width) for name in names]
                rows = [(name.ljust(width), text) for name, text in zip(names, texts, strict=True)]
                formatter.write_dl(rows)
        click.Command.format_options(self, ctx, formatter)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the options before the command."""
        if is_program(args):
            ctx.meta[_PROGRAM] = list(args)
            prepare_streams()
        if not args or args[0].startswith("-"):  # what follows prints, and ends
            check_output()
        with _usage_errors_in_one_line():
            return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Read the command and its options, and run it."""
        with _usage_errors_in_one_line():
            return super().invoke(ctx)


@contextmanager
def _usage_errors_in_one_line() -> Iterator[None]:
    try:
        with output_errors():  # of a help text: those of a job are told by its command
            yield
    except click.UsageError as error:
        # No arguments at all: click shows the help, as an error of this type since 8.2.
        if isinstance(error, getattr(click.exceptions, "NoArgsIsHelpError", ())):
            raise
        hint = f" (see {error.ctx.command_path} --help)" if error.ctx else ""
        raise WrongUsageError(error.format_message() + hint) from None
