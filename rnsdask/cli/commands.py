"""Commands and their group: grouped help, words that begin with a minus, Ctrl-C, errors in one line."""

import logging
import os
import re
import shlex
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from itertools import islice
from typing import Any, NoReturn

import click

from rnsdask.cli.printing import (
    CommandError,
    ReaderGoneError,
    check_output,
    echo,
    output_errors,
    prepare_streams,
)
from rnsdask.cli.wording import in_options

_Function = Callable[..., Any]

_OWN, MODULI, RECORDS, OUTPUT = "Options", "Number system", "Records and residues", "Output"
PROCESSORS, CLUSTER, OTHER = "Processors", "Cluster", "Other"
_ORDER = (_OWN, MODULI, RECORDS, OUTPUT, PROCESSORS, CLUSTER, OTHER)

_WIDEST = 26
"""Columns for the names of options; a longer name has a line of its own."""


class Option(click.Option):
    """An option that the help text shows in a group."""

    def __init__(self, *args: Any, group: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.group = group


def options_of(group: str) -> Callable[..., Callable[[_Function], _Function]]:
    """Return a decorator like ``click.option``, whose options are shown in a group of `_ORDER`."""
    return partial(click.option, cls=Option, group=group)


# ---- words that begin with a minus ------------------------------------------------------------------------

_NUMBER = re.compile(r"-+[^A-Za-z-]")
"""First characters of integers, indices and shapes, which no option has."""


def options_first(
    args: Sequence[str], params: Iterable[click.Parameter], is_argument: Callable[[str], bool]
) -> list[str]:
    """Order the words of a command: options with their values, ``--``, and its arguments.

    So click takes no argument for an option. An argument is a word without a minus, after ``--``, or accepted
    by `is_argument`, unless it is an option of `params`.
    """
    options = [param for param in params if isinstance(param, click.Option)]
    names = {name for option in options for name in (*option.opts, *option.secondary_opts)}
    taking = {name for option in options if not (option.is_flag or option.count) for name in option.opts}
    given: list[str] = []
    arguments: list[str] = []
    words = iter(args)
    for word in words:
        if word == "--":
            arguments.extend(words)
        elif word == "-" or not word.startswith("-") or not _is_option(word, names, taking, is_argument):
            arguments.append(word)
        else:
            given.extend((word, *(value := tuple(islice(words, int(word in taking))))))
            if word in taking and not value:
                return list(args)  # it lacks its value, which click reports
    return [*given, "--", *arguments]


def _is_option(word: str, names: set[str], taking: set[str], is_argument: Callable[[str], bool]) -> bool:
    with_value = word[:2] in taking or word.partition("=")[0] in taking
    return word in names or with_value or not is_argument(word)


# ---- Ctrl-C -----------------------------------------------------------------------------------------------

GRACE_SECONDS = 1.0
"""Seconds after which the process ends even if cleaning up is not finished."""

STATUS = 130

_SHOW_CURSOR = b"\x1b[?25h"  # an interrupted bar has hidden it


@contextmanager
def ending_soon(way_on: Callable[[], str]) -> Iterator[None]:
    """End the process at Ctrl-C, with one line on standard error and status 130.

    Python would wait for all threads, and so for their chunks; therefore a thread ends the process by
    ``os._exit``. Files have a temporary name until they are whole, and workers notice that their client is
    gone. Outside the main thread, and where Ctrl-C is ignored, as in the background, nothing changes.
    `way_on` returns the command that resumes the job, or an empty text.
    """
    in_main_thread = threading.current_thread() is threading.main_thread()
    if not in_main_thread or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    # The resource tracker, which cleans up after this process and its workers, would print warnings.
    sys.warnoptions.append("ignore:resource_tracker:UserWarning")
    watched, told = os.pipe()
    os.set_blocking(told, False)
    # The system writes to the pipe; Python would wait until the main thread leaves a library.
    signal.set_wakeup_fd(told, warn_on_full_buffer=False)
    is_tidy = threading.Event()

    def end() -> None:
        while signal.SIGINT not in os.read(watched, 1):
            pass
        is_tidy.wait(GRACE_SECONDS)
        message = _SHOW_CURSOR if os.isatty(2) else b""
        message += b"rnsdask: error: interrupted"
        with suppress(Exception):
            if command := way_on():
                message += b"; to go on: " + os.fsencode(command)
        with suppress(OSError):
            os.write(2, message + b"\n")
        os._exit(STATUS)

    threading.Thread(target=end, name="rnsdask-interrupt", daemon=True).start()
    try:
        yield
    except KeyboardInterrupt:
        is_tidy.set()
        os.write(told, bytes([signal.SIGINT]))
        while True:
            with suppress(KeyboardInterrupt):
                time.sleep(GRACE_SECONDS)


def way_on(args: Sequence[str], params: Mapping[str, Any], drawn: int | None) -> str:
    """Return the command that resumes an interrupted one; empty if it cannot be resumed.

    `args` are the program's arguments, `params` the options of the command that they give, and `drawn` is the
    seed that was drawn without ``--seed``.
    """
    from rnsdask.core.messages import redacted

    more: list[str] = []
    if "resume" in params and params.get("outputs", params.get("output", True)):
        more = [] if params["resume"] else ["--resume"]
        if "seed" in params and params["seed"] is None:
            if drawn is None:
                return ""
            more += ["--seed", str(drawn)]
    elif params.get("checkpoint") is None:
        return ""
    end = args.index("--") if "--" in args else len(args)
    text = shlex.join(["rnsdask", *args[:end], *more, *args[end:]])
    is_repeatable = "-" not in (params.get("source"), params.get("moduli_file"))
    return text if is_repeatable and "\n" not in text and redacted(text) == text else ""


def is_program(args: list[str]) -> bool:
    """Whether these are the arguments that this process was started with, not those of a call."""
    return bool(args) and sys.argv[-len(args) :] == args


# ---- commands ---------------------------------------------------------------------------------------------

_PROGRAM = "rnsdask.program"
"""Key in click's `meta` of the arguments that this process was started with."""

DRAWN_SEED = "rnsdask.seed"
"""Key in click's `meta` of the seed that a command has drawn without ``--seed``."""


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
    """Turn a ValueError into wrong usage, where only the user's input can cause one."""
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
        from rnsdask.cli.examples import EXAMPLES

        super().format_help_text(ctx, formatter)
        with formatter.section("Example"):
            for line in EXAMPLES[str(self.name)].strip().splitlines():
                formatter.write(f"  {line}".rstrip() + "\n")

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options in their groups, all texts in one column."""
        groups: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            if isinstance(param, click.Option) and (record := param.get_help_record(ctx)):
                is_of_click = param.is_eager  # --help, --version
                groups.setdefault(getattr(param, "group", OTHER if is_of_click else _OWN), []).append(record)
        width = min(max(len(name) for rows in groups.values() for name, _ in rows), _WIDEST)
        for group in sorted(groups, key=_ORDER.index):
            with formatter.section(group):
                rows = [(name.ljust(width), text) for name, text in groups[group]]
                formatter.write_dl(rows, col_max=width)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the options, after a check that the answer can be printed."""
        check_output()
        is_argument = partial(self.is_argument, args)
        return super().parse_args(ctx, options_first(args, self.get_params(ctx), is_argument))

    def is_argument(self, _args: list[str], word: str) -> bool:
        """Whether a word that begins with a minus is an argument."""
        return _NUMBER.match(word) is not None

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        debug = ctx.params.pop("debug")
        if not debug:
            logging.disable(logging.CRITICAL)  # distributed logs tracebacks of errors shown as one line
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
    """A command whose status 1 is an answer, as for ``cmp``, so that failures are 2."""

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
        if not args or args[0].startswith("-"):  # --help and --version print, and end
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
        with output_errors():  # of a help text; commands report those of their jobs
            yield
    except click.exceptions.NoArgsIsHelpError:
        raise
    except click.UsageError as error:
        hint = f" (see {error.ctx.command_path} --help)" if error.ctx else ""
        raise WrongUsageError(error.format_message() + hint) from None
