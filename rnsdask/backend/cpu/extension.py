"""The compiled extension, as all modules of kernels take it."""

from pathlib import Path

try:
    from rnsdask import _cpu
except ImportError as error:
    raise ImportError(
        f"{Path(__file__).parents[2]} has no compiled extension (rnsdask._cpu): it is the source of a "
        "checkout, which Python finds first when it starts there; start it elsewhere, or with python -P"
    ) from error

__all__ = ["_cpu"]
