"""What tests of commands share."""

import re
from typing import Any

_MEASURES = ("seconds", "retries", "read_limit", "of_read_limit")


def without_dashboard(errors: str) -> str:
    """Standard error without the line that a job on a cluster begins with."""
    return re.sub(r"\Adashboard: http://.*\n", "", errors)


def without_measures(printed: dict[str, Any]) -> dict[str, Any]:
    """What a command prints with ``--json``, but for how long it took and what it met."""
    return {name: value for name, value in printed.items() if name not in _MEASURES}
