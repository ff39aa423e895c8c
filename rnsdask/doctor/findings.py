"""Findings: what a check says, how bad that is, and the way out."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeAlias

from rnsdask.core.errors import JobError


class State(StrEnum):
    """How bad a finding is, from good to bad."""

    OK = "ok"
    WARNING = "warning"
    FAULT = "fault"


@dataclass(frozen=True)
class Finding:
    """The result of a check.

    Attributes
    ----------
    subject : str
        What was checked, such as ``open files``.
    text : str
        What was found.
    state : State
        WARNING if jobs are slow or may fail, FAULT if some fail.
    way_out : str
        What to do; empty where the state is OK, and nowhere else.
    facts : dict
        What a script may want of it, as JSON can write it.
    """

    subject: str
    text: str
    state: State = State.OK
    way_out: str = ""
    facts: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        assert (self.state is State.OK) == (not self.way_out), self


def warning(subject: str, text: str, way_out: str, **facts: Any) -> Finding:
    """Make a finding of what slows jobs down, or may stop some."""
    return Finding(subject, text, State.WARNING, way_out, facts)


def fault(subject: str, text: str, way_out: str, **facts: Any) -> Finding:
    """Make a finding of what stops jobs, or makes their results wrong."""
    return Finding(subject, text, State.FAULT, way_out, facts)


Check: TypeAlias = Callable[[], Iterable[Finding]]


def run_checks(checks: Iterable[tuple[str, Check]]) -> Iterator[Finding]:
    """Run checks one after the other; one that fails itself is a fault of its subject."""
    for subject, check in checks:
        try:
            yield from check()
        except Exception as error:  # whatever is broken: the other checks may say why
            kind = "" if isinstance(error, JobError) else f"{type(error).__name__}: "
            way = "install rnsdask and what it needs anew, or report this line"
            yield fault(subject, f"{kind}{error}", way)
