"""Operands of functions of polynomials over fields."""

from typing import Any

from rnsdask.lazy.fields import of_fields
from rnsdask.lazy.polynomials import checked_operands


def check_fields(name: str, *arrays: Any) -> None:
    """Raise TypeError or ValueError unless arrays have polynomials over the same fields."""
    checked_operands(name, *arrays)
    for x in arrays:
        if not of_fields(x):
            kind = type(x).__name__
            raise TypeError(
                f"{name} takes FieldArrays, got {kind}; rd.FieldArray.from_rns(x, fields) makes one of "
                "integers"
            )
