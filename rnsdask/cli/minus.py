"""Words of a command line that begin with a minus, but are no options: numbers and expressions."""

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import islice

import click

_NUMBER = re.compile(r"-+[^A-Za-z-]")
"""First characters of integers, indices and shapes, but of no option."""


def is_number(word: str) -> bool:
    """Return whether a word that begins with a minus is a number, or an expression that begins with one."""
    return _NUMBER.match(word) is not None


def options_first(
    args: Sequence[str], params: Iterable[click.Parameter], is_argument: Callable[[str], bool]
) -> list[str]:
    """Order the words of a command: options with their values, ``--``, and its arguments.

    So click takes no argument for an option. One is what has no minus, or follows ``--``, or what
    `is_argument` says so of, unless it is an option of `params`.
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
                return list(args)  # it lacks its value, which is what click shall tell
    return [*given, "--", *arguments]


def _is_option(word: str, names: set[str], taking: set[str], is_argument: Callable[[str], bool]) -> bool:
    with_value = word[:2] in taking or word.partition("=")[0] in taking
    return word in names or with_value or not is_argument(word)
