"""What tests of commands share."""

import re


def without_dashboard(errors: str) -> str:
    """Standard error without the line that a job on a cluster begins with."""
    return re.sub(r"\Adashboard: http://.*\n", "", errors)
